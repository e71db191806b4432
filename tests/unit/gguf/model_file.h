/*
 * Model files for tests: made in memory and opened by the name that /proc gives their descriptor,
 * so that nothing is left behind. What can't be done fails the test that asked for it.
 */
#ifndef GGUFS_TESTS_MODEL_FILE_H
#define GGUFS_TESTS_MODEL_FILE_H

#include "contrib/sample/gguf_writer.h"
#include "gguf/model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct model_bytes {
    unsigned char *data; /* to be freed */
    size_t size_bytes;
    uint64_t hole_bytes; /* that follow in the file; of hostile files only */
};

/* Every way in which a GGUF file can write its numbers. */
struct model_encoding {
    uint32_t version;
    bool big_endian;
    unsigned length_bytes; /* of a count or length */
    const char *format;    /* as struct gguf_model has it */
};
#define MODEL_N_ENCODINGS 4
extern const struct model_encoding model_encodings[MODEL_N_ENCODINGS];

/* For TestSuite(..., .init): what gguf_open() and readers of images need. */
void model_file_begin_test(void);

/* Ends the writer. */
struct model_bytes model_file_finish(struct gguf_writer *w);

/* Make a file in memory with these bytes. The caller closes the descriptor. */
int model_file_create(const void *bytes, size_t size_bytes);

/* Writes the bytes of that file again and sets its time to that of the open model. */
void model_file_restore(int descriptor, struct model_bytes bytes, const struct gguf_model *model);

/* gguf_open() of that file. */
int model_file_open_descriptor(int descriptor, struct gguf_model **model,
                               struct gguf_report *report);

/* gguf_open_with() of that file. */
int model_file_open_descriptor_with(int descriptor, const struct gguf_open_options *options,
                                    struct gguf_model **model, struct gguf_report *report);

/* gguf_open() of a file with these bytes. */
int model_file_open(const void *bytes, size_t size_bytes, struct gguf_model **model,
                    struct gguf_report *report);

/* Open a model from bytes, which must succeed. Free it with gguf_close(). */
struct gguf_model *model_file_accept(const void *bytes, size_t size_bytes);

/* End the writer and open the model that it has written. */
struct gguf_model *model_file_make(struct gguf_writer *w);

/* A report that counts its notes. */
struct model_notes {
    size_t count;
    struct gguf_finding last;
};
struct gguf_report model_file_report(struct model_notes *notes);

/*
 * A file with a key of each value type and arrays of most, and with tensors of several types and
 * shapes, whose data are random bytes that decode to finite numbers in most places.
 */
struct model_bytes model_file_rich(const struct model_encoding *encoding);

/* Open the model of model_file_rich(), by the number of the encoding. */
struct gguf_model *model_file_rich_model(size_t encoding);

/* Pseudo-random numbers; the sequence depends on the state alone. */
uint64_t model_file_random(uint64_t *state);

#endif
