/*
 * Model files for tests: made in memory and opened as /proc/self/fd/N, so that no files are left
 * behind. A function that cannot do its task fails the test.
 */
#pragma once

#include "tests/writer/gguf_writer.h"
#include "gguf/model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct model_bytes {
    unsigned char *data; /* the caller frees them */
    size_t size_bytes;
    uint64_t hole_bytes; /* zeros that follow in the file; only for hostile files */
};

/* The encodings of a GGUF file: version and byte order. */
struct model_encoding {
    uint32_t version;
    bool big_endian;
    unsigned length_bytes; /* width of counts and lengths */
    const char *format;    /* expected member `format` of struct gguf_model */
};
#define MODEL_N_ENCODINGS 4
extern const struct model_encoding model_encodings[MODEL_N_ENCODINGS];

/* Initialiser for TestSuite(): prepares gguf_open() and reads of images. */
void model_file_begin_test(void);

/* Finish the file. The caller frees the bytes. */
struct model_bytes model_file_finish(struct gguf_writer *w);

/* Make a file in memory with these bytes. Returns a descriptor, which the caller closes. */
int model_file_create(const void *bytes, size_t size_bytes);

/* Write the bytes to the file again and restore the time that the open model knows. */
void model_file_restore(int descriptor, struct model_bytes bytes, const struct gguf_model *model);

/* Call gguf_open() for that descriptor. */
int model_file_open_descriptor(int descriptor, struct gguf_model **model,
                               struct gguf_report *report);

/* Call gguf_open_with() for that descriptor. */
int model_file_open_descriptor_with(int descriptor, const struct gguf_open_options *options,
                                    struct gguf_model **model, struct gguf_report *report);

/* Call gguf_open() for a file with these bytes. */
int model_file_open(const void *bytes, size_t size_bytes, struct gguf_model **model,
                    struct gguf_report *report);

/* Open a model from valid bytes. Free it with gguf_close(). */
struct gguf_model *model_file_accept(const void *bytes, size_t size_bytes);

/* Finish the file and open it. Free the model with gguf_close(). */
struct gguf_model *model_file_make(struct gguf_writer *w);

/* Return a report that counts its notes. */
struct model_notes {
    size_t count;
    struct gguf_finding last;
};
struct gguf_report model_file_report(struct model_notes *notes);

/*
 * Make a file with a key of each value type, arrays of most types, and tensors of several types and
 * shapes. Most of the random tensor data decode to finite numbers.
 */
struct model_bytes model_file_rich(const struct model_encoding *encoding);

/* Open the file of model_file_rich() in the encoding with this index. */
struct gguf_model *model_file_rich_model(size_t encoding);

/*
 * Return the byte after `at` to damage: the next one in the first 256 bytes, which hold the header,
 * then every 17th. With GGUFS_THOROUGH in the environment (tests/run hostile), it is always the
 * next one.
 */
size_t model_file_next_damage(size_t at);

/* Return the next pseudo-random number and advance the state. */
uint64_t model_file_random(uint64_t *state);
