/*
 * A model: the contents of a file of any format, in one form. It is complete and valid once
 * gguf_open() has returned, and never changes after that, so any thread may read it without a lock.
 * Names and values lie in memory of the model; only tensor data are read from its files.
 */
#pragma once

#include "dequant/types.h"
#include "gguf/file.h"
#include "gguf/support/limits.h"
#include "gguf/report.h"
#include "gguf/values.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* The limits of the GGUF specification. */
#define GGUF_MAX_KEY_BYTES     65535
#define GGUF_DEFAULT_ALIGNMENT 32
/* The specification says 64; files with longer ones exist, and nothing here depends on it. */
#define GGUF_MAX_TENSOR_NAME_BYTES 65535
#define GGUF_MAX_LOADED_NAME_BYTES 63 /* that llama.cpp takes */

/* All names of keys and tensors together: 128 bytes for each of 262144. */
#define GGUF_MAX_NAMES_BYTES ((uint64_t)32 << 20)

/* The largest page size of any system: nothing gains from a larger alignment. */
#define GGUF_MAX_ALIGNMENT ((uint64_t)64 << 10)

/* Amounts whose limits hold for all files of a model together. */
struct gguf_usage {
    uint64_t header_bytes, hole_bytes, names_bytes;
    uint64_t n_keys, n_tensors;
};

struct gguf_key {
    struct gguf_string name;
    struct gguf_value value;
    /*
     * The byte of the file where the key's name begins, for messages. GGUF_NO_OFFSET if an edit set
     * the key, 0 if a parser made it.
     */
    uint64_t file_offset;
};

struct gguf_tensor {
    struct gguf_string name;
    struct gguf_string gguf_name;    /* the name in GGUF files, if it differs and is known */
    uint32_t type_id;                /* as the file says */
    const struct dequant_type *type; /* NULL if the id is unknown */
    bool big_endian;                 /* the byte order of its data */

    uint32_t n_dims;
    uint64_t ne[GGUF_MAX_DIMS]; /* elements per dimension, ggml order: ne[0] is the fastest;
                                   1 from n_dims on */
    uint64_t n_elements;
    uint64_t size_bytes; /* of its data; 0 if the type is unknown */
    /*
     * If the type is unknown, the largest possible size of its data: up to the next tensor or the
     * end of the file. 0 if the file is growing and has no next tensor.
     */
    uint64_t extent_bytes;

    uint32_t file_index;  /* its data are in files[file_index] … */
    uint64_t file_offset; /* … at this offset */
    uint64_t info_offset; /* of its entry in the tensor table, for messages */
};

struct gguf_model {
    const char *format; /* "GGUF v3" */
    bool big_endian;
    bool is_current; /* files[0] alone is the model, as a little-endian GGUF of version 3 */
    uint64_t alignment_bytes; /* of tensor data in GGUF files; a power of two */
    bool has_entries_between; /* entries and data of tensors alternate */

    struct gguf_file *files; /* at least one; files[0] has all keys */
    uint32_t n_files;
    uint32_t named_file;   /* the index of the one that was given to gguf_open() */
    struct gguf_key *keys; /* in file order */
    uint64_t n_keys;
    struct gguf_tensor *tensors; /* in file order */
    uint64_t n_tensors;

    /* How they are in GGUF, see gguf/legacy/rwkv_tensors.h; NULL: the same under GGUF names. */
    const struct gguf_rwkv_rule *rwkv_rules;
    const char *gguf_remark; /* whether current programs run the exported GGUF file; may be NULL */

    /* A composition, see gguf/compose.h: the first files belong to other models. */
    uint32_t n_borrowed_files;
    struct gguf_model *owned; /* closed with it; may be NULL */

    uint64_t names_bytes;     /* of all names that were read, see gguf_add_name_bytes() */
    struct gguf_usage before; /* by the files of the model that were parsed before this one */

    void **allocated; /* by gguf_model_alloc() */
    size_t n_allocated, room;
};

/* At least the number of ambiguous ids, see dequant_candidate_at(). */
#define GGUF_MAX_TYPE_CHOICES 64

/* A part of a file of Ollama, as gguf/translate/ makes it. */
enum gguf_file_part { GGUF_WHOLE_FILE_PART, GGUF_TEXT_PART, GGUF_PROJECTOR_PART };

/* Properties of a file that the user states because the file does not. All zero: none. */
struct gguf_open_options {
    const char *family; /* of old ggml files, see gguf/legacy/families.h; NULL: what fits */
    int era;            /* 1 + the era of blocks of an rwkv.cpp file of version 100; 0: unknown */
    bool partial;       /* the file is still being written: its data may be missing */
    enum gguf_file_part part;               /* the model is this part of the file */
    bool unmapped;                          /* read the file with pread() instead of mapping it */
    const struct gguf_store_access *opener; /* of files; NULL: system calls */
    /* Types of ambiguous ids, one per id; see gguf/ambiguous_types.h. */
    const struct dequant_type *types[GGUF_MAX_TYPE_CHOICES];
    size_t n_types;
    bool old_ik; /* for types whose layout ik_llama.cpp changed, use the old one where it fits */
    /* The paths of all shards, if their names do not say which they are; NULL: their names do. */
    char *const *shards;
    size_t n_shards;
    /* The model's place in each file. 0 and 0: the whole file, or found in it; see locate.h. */
    uint64_t offset;
    uint64_t size_bytes; /* 0: up to the end of the file */
};

struct gguf_files;

/*
 * Parse and validate the model in files that gguf_files_open() has opened; opens nothing. Files of
 * the model are taken over; gguf_files_close() must be called for the rest. Everything else is as
 * for gguf_open_with().
 */
int gguf_parse_files(struct gguf_files *files, const struct gguf_open_options *options,
                     struct gguf_model **model, struct gguf_report *report);

/*
 * Open, parse and validate the model file at `path`; if it is a shard, all others too. `options`
 * may be NULL. On success *model must be freed with gguf_close(). On failure returns a negative
 * errno, *model is NULL, and `report` has the reason. Before tensor data are read,
 * gguf_faults_catch() must be called once.
 */
int gguf_open_with(const char *path, const struct gguf_open_options *options,
                   struct gguf_model **model, struct gguf_report *report);

/* The same without options. */
int gguf_open(const char *path, struct gguf_model **model, struct gguf_report *report);

void gguf_close(struct gguf_model *model);

/*
 * Call gguf_file_check() on every file of the model, with end_offset 0. Returns 0, or -ESTALE if
 * the header or the size of a file changed.
 */
int gguf_model_check(const struct gguf_model *model);

/*
 * Return how often a file was found with new times and an unchanged header; see
 * gguf_file_check().
 */
unsigned gguf_model_generation(const struct gguf_model *model);

/* Return the newest modification time of its files; see gguf_file_modified(). */
struct timespec gguf_model_modified(const struct gguf_model *model);

/*
 * For parsers and edits: allocate memory of zeros that lives as long as the model, or return NULL.
 * It is for names, strings and arrays that come from no file.
 */
void *gguf_model_alloc(struct gguf_model *model, size_t n_bytes);

/*
 * Make memory from malloc() the model's. Returns it, or NULL, having freed it, if out of memory or
 * NULL is given.
 */
void *gguf_model_keep(struct gguf_model *model, void *memory);

/* The same as gguf_model_alloc() with a text, written as printf(3) does. Returns NULL if out of
 * memory. */
char *gguf_model_print(struct gguf_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *gguf_model_vprint(struct gguf_model *model, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/*
 * Set the value of a key, which is added if it is new. The name is copied; memory that the value
 * points to must live as long as the model. Returns the key, or NULL if out of memory.
 */
struct gguf_key *gguf_set_key(struct gguf_model *model, const char *name, struct gguf_value value);

/* Count the bytes of another name. Returns 0, or -E2BIG beyond GGUF_MAX_NAMES_BYTES. */
int gguf_add_name_bytes(struct gguf_model *model, uint64_t n_bytes, struct gguf_place place,
                        struct gguf_report *report);

/* Add the amounts that a parsed file uses. */
void gguf_add_usage(struct gguf_usage *usage, const struct gguf_model *file);

/* Return the place of a key, or of a tensor's entry in the table of tensors. */
static inline struct gguf_place gguf_key_place(const struct gguf_key *key)
{
    return gguf_at_key(key->name, key->file_offset);
}

static inline struct gguf_place gguf_tensor_place(const struct gguf_tensor *tensor)
{
    return gguf_at_tensor(tensor->name, tensor->info_offset);
}

/* Return the path to set in a report for findings about that file of the model. */
const char *gguf_path_to_report(const struct gguf_model *model, uint32_t file_index);

/*
 * Set the path in a report for findings about the byte at `offset` of a file of the model, and
 * return the byte's offset in the file at that path; see gguf_source_find_pieces().
 */
uint64_t gguf_offset_to_report(const struct gguf_model *model, uint32_t file_index, uint64_t offset,
                               struct gguf_report *report);

/* Remove a key. Returns 0, or -ENOENT if the model lacks it. */
int gguf_remove_key(struct gguf_model *model, const char *name);

/* Return the name that a GGUF file gives the tensor. */
static inline struct gguf_string gguf_name_of(const struct gguf_tensor *tensor)
{
    return tensor->gguf_name.length_bytes > 0 ? tensor->gguf_name : tensor->name;
}

/* Return the key of that name, or NULL. */
const struct gguf_key *gguf_find_key(const struct gguf_model *model, const char *name);

/* Return the text of general.architecture, or an empty one. */
struct gguf_string gguf_architecture_of(const struct gguf_model *model);

/* Return the key of the name ARCHITECTURE.name, or NULL. */
const struct gguf_key *gguf_find_arch_key(const struct gguf_model *model, const char *name);

/* Return its integer, or 0; of an array, the element of a layer. */
uint64_t gguf_arch_number(const struct gguf_model *model, const char *name, uint64_t layer);

/* Copy the text of a key; "" if the key is missing, no string, or longer than the room. */
void gguf_get_text(const struct gguf_model *model, const char *key, char *text, size_t room);

/* Return the first key whose name begins with `prefix`, or NULL. */
const struct gguf_key *gguf_find_key_group(const struct gguf_model *model, const char *prefix);

/* Return the tensor of that name in GGUF files, or NULL. Looks at all of them. */
const struct gguf_tensor *gguf_tensor_named(const struct gguf_model *model, const char *name);

/*
 * Return pointers to the model's keys or tensors, sorted by name, or NULL if out of memory. Those
 * of one name are in file order. The caller frees the pointers.
 */
const struct gguf_key **gguf_keys_by_name(const struct gguf_model *model);
const struct gguf_tensor **gguf_tensors_by_name(const struct gguf_model *model);

/* The same, sorted by gguf_name_of(). */
const struct gguf_tensor **gguf_tensors_by_gguf_name(const struct gguf_model *model);

/*
 * The same, sorted by the file and the start of the data. At one offset, tensors of unknown type
 * come last: their extent is what follows.
 */
const struct gguf_tensor **gguf_tensors_by_offset(const struct gguf_model *model);

/* Return a tensor of that name among `n_tensors` ones sorted by name, or NULL. */
const struct gguf_tensor *gguf_find_tensor(const struct gguf_tensor *const *by_name,
                                           uint64_t n_tensors, struct gguf_string name);
const struct gguf_tensor *gguf_find_gguf_tensor(const struct gguf_tensor *const *by_gguf_name,
                                                uint64_t n_tensors, struct gguf_string name);
