/*
 * libggufs: reads models in GGUF files, and in the older files of ggml, as `ggufs` mounts them.
 * Nothing is mounted, and no file is written.
 *
 *     struct ggufs_error error;
 *     struct ggufs_model *model;
 *
 *     if (ggufs_open("model.gguf", NULL, &model, &error) < 0)
 *         errx(1, "model.gguf: %s", error.message);
 *     const struct ggufs_tensor *tensor = ggufs_find_tensor(model, "output.weight");
 *     float *values = tensor ? malloc(tensor->n_elements * sizeof *values) : NULL;
 *     if (values && ggufs_read(model, tensor, GGUFS_F32, 0, tensor->n_elements, values) == 0)
 *         ...
 *     ggufs_close(model);
 *
 * Units: a name says its own: _bytes, _elements; n_ is a number of things. An offset is in bytes,
 * an index counts from 0. Numbers are in the byte order of the host.
 *
 * Texts: a struct ggufs_string is what the file holds, mostly UTF-8, with any byte in it, and does
 * not end with a NUL. A const char * is the library's own, English, printable UTF-8, and ends with
 * a NUL.
 *
 * Ownership: a model owns all that is reached from it; pointers to its keys, tensors, names and
 * strings are valid, and their contents unchanged, until ggufs_close(). Types, rules and remedies
 * are valid for ever. The caller owns every buffer that a function fills; the library keeps no
 * pointer to an argument after the call.
 *
 * Errors: a function that returns int gives 0, or a negative errno. Any may give -ENOMEM. Those
 * that read a file may also give
 *
 *     -EIO     a part of the file cannot be read: the disk fails, or the file became shorter
 *     -ESTALE  the file is not the one that was opened: its header or its size changed. Close the
 *              model and open it again; what was read before is from the first file
 *     -EAGAIN  the bytes of a tensor have not arrived yet (option partial)
 *
 * On an error, a buffer has undefined contents and other results stay as they were. No function
 * prints, ends the process, reads the environment or changes the locale. Names and numbers in a
 * file are checked at the opening, so a bad file is an error of ggufs_open() and of no later call.
 *
 * Threads: any thread may call any function at any time, with the same model too; only
 * ggufs_close() and ggufs_close_file() must be the last call with their argument. A function works
 * in the calling thread, unless it says otherwise, takes up to 192 KiB of its stack, and leaves no
 * thread behind. After fork(), a child may go on with the models of a parent that had one thread.
 *
 * Signals: no handler is installed unless ggufs_catch_faults() is called.
 *
 * Versions: functions and enumerators are only added. A change that needs programs to be compiled
 * again changes the name of the shared library (libggufs.so.0, .1).
 */
#ifndef GGUFS_H
#define GGUFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, "0.1.0". */
const char *ggufs_version(void);

/* Bytes that do not end with a NUL; `data` may be NULL if there are none. */
struct ggufs_string {
    const char *data;
    uint64_t length_bytes;
};

/* ---- models ---- */

struct ggufs_model;

/* The offset of a thing that has no place in a file. */
#define GGUFS_NO_OFFSET UINT64_MAX

/* Why a model cannot be opened. */
struct ggufs_error {
    int code;         /* negative errno: what the function returned */
    uint64_t offset;  /* of the byte in the file that it is about, or GGUFS_NO_OFFSET */
    const char *rule; /* see FINDINGS in ggufs(5), "overlap"; names of rules never change; NULL: it
                         is not about a file but about the options */
    const char *remedy; /* what can be done, one line; NULL if the message says it */
    char message[1024]; /* one line: what is wrong with which key, tensor or part and its value; in
                           another file than the named one, the line begins with its path */
};

/*
 * Open the model at `path`: a file, any shard of a split model, a folder with one model, or a name
 * in the store of another program, as in ggufs(1): "ollama:NAME:TAG", "hf:ORG/NAME:TAG". Reads and
 * checks the headers, no tensor data.
 *
 * `options` are words of -o in ggufs(1), separated by commas, as in "dtype=f16,export=q8_0"; or
 * NULL. About the file: partial (it is still being written), offset=BYTES, size=BYTES,
 * family=NAME, era=N, type=ID:NAME, ik=old, part=PART. About files of the tree: dtype=TYPE,
 * export=TYPE, split=SIZE, hf_shard=SIZE. And, here only: mapped, which reads through a mapping.
 * That takes a third to a half less time for files in the system's cache, and needs
 * ggufs_catch_faults().
 *
 * On success *model must be closed. On failure *model is NULL, and *error, unless `error` is NULL,
 * says why. Errors: any of open(2); -EINVAL and -ENODATA for a bad file; -EINVAL for a bad
 * option; -EISDIR for a folder with no model or several.
 */
int ggufs_open(const char *path, const char *options, struct ggufs_model **model,
               struct ggufs_error *error);

/* Close a model and free all of it. NULL does nothing. Close its open files of the tree first. */
void ggufs_close(struct ggufs_model *model);

/*
 * Install a handler for SIGBUS in the process: a page of a mapped file that cannot be read then
 * gives -EIO. Faults in other memory go to the handler that was there before. Do not replace the
 * handler while a mapped model is open. Later calls do nothing. Errors: any of sigaction(2).
 */
int ggufs_catch_faults(void);

enum ggufs_severity { GGUFS_ERROR, GGUFS_WARNING, GGUFS_NOTE };

/*
 * A finding about a file, with the members of a line of `ggufs --check --json`. They are valid
 * during the call; the name, explanation and remedy of the rule stay valid.
 */
struct ggufs_finding {
    enum ggufs_severity severity;
    uint64_t offset;            /* in that file, or GGUFS_NO_OFFSET */
    const char *path;           /* of the file; NULL: the one that was given */
    struct ggufs_string tensor; /* its name; data is NULL if it is about no tensor */
    struct ggufs_string key;    /* likewise */
    const char *message;        /* one line */
    const char *rule;           /* see struct ggufs_error */
    const char *explanation;    /* of the rule, one line; NULL without a rule */
    const char *remedy;         /* likewise; the message may say it, too */
};

/*
 * Report all errors, warnings and notes about a model, as `ggufs --check` does: calls
 * each(user, finding) for every one, in the calling thread. Parameters as for ggufs_open(). Returns
 * 0, or the code of the first error.
 */
int ggufs_check(const char *path, const char *options,
                void (*each)(void *user, const struct ggufs_finding *finding), void *user);

/* Facts about a model. Owned by it. */
struct ggufs_info {
    const char *format; /* "GGUF v3", "ggjt v3" */
    uint64_t n_keys;
    uint64_t n_tensors;
    uint64_t alignment_bytes; /* of tensor data in a GGUF file */
    uint32_t n_files;
    bool is_big_endian;
};

const struct ggufs_info *ggufs_get_info(const struct ggufs_model *model);

/* The absolute path of file `index`, below n_files, as bytes of the system, symbolic links not
 * resolved; owned by the model. NULL past the end. */
const char *ggufs_file_path(const struct ggufs_model *model, uint32_t index);

/* Check that the files are those that were opened; functions that read data do so too. Errors:
 * -ESTALE, -EIO. */
int ggufs_recheck(const struct ggufs_model *model);

/* ---- keys ---- */

/* The ids of the GGUF specification. */
enum ggufs_value_type {
    GGUFS_UINT8,
    GGUFS_INT8,
    GGUFS_UINT16,
    GGUFS_INT16,
    GGUFS_UINT32,
    GGUFS_INT32,
    GGUFS_FLOAT32,
    GGUFS_BOOL,
    GGUFS_STRING,
    GGUFS_ARRAY,
    GGUFS_UINT64,
    GGUFS_INT64,
    GGUFS_FLOAT64
};

/* A key with its value. Owned by the model. */
struct ggufs_key {
    struct ggufs_string name;
    enum ggufs_value_type type;
    enum ggufs_value_type element_type; /* of an array, else `type` */
    uint64_t n_elements;                /* of an array, else 1 */
    uint32_t element_bytes;             /* 1 for bools, 0 for strings and arrays of arrays */
    /* The value, unless it is an array. No type is converted to another. */
    uint64_t u64;               /* unsigned integers; bool: 0 or 1 */
    int64_t i64;                /* signed integers */
    double f64;                 /* FLOAT32 and FLOAT64 */
    struct ggufs_string string; /* STRING */
};

/* Key `index`, below n_keys, in the order of the file. NULL past the end. */
const struct ggufs_key *ggufs_key_at(const struct ggufs_model *model, uint64_t index);

/* The key of that name, or NULL. Takes the time of some comparisons. */
const struct ggufs_key *ggufs_find_key(const struct ggufs_model *model, const char *name);

/*
 * Copy elements `first` to `first` + n - 1 of an array of numbers or bools, or of a single one, to
 * `out`, at element_bytes each; any alignment. Errors: -ERANGE past the end; -EINVAL for strings
 * and arrays of arrays.
 */
int ggufs_key_numbers(const struct ggufs_model *model, const struct ggufs_key *key, uint64_t first,
                      uint64_t n, void *out);

/*
 * Get elements `first` to `first` + n - 1 of an array of strings, or of a single string. Takes the
 * time of n + 256 elements. Errors: -ERANGE past the end; -EINVAL for anything else than strings.
 * For arrays of arrays, read metadata.json of the tree.
 */
int ggufs_key_strings(const struct ggufs_model *model, const struct ggufs_key *key, uint64_t first,
                      uint64_t n, struct ggufs_string *out);

/* ---- types of tensors ---- */

/*
 * How numbers are stored. A row is row_header_bytes and then blocks of block_elements numbers;
 * interleave_rows rows are stored together; tail_bytes follow the last row. Two types are the same
 * if their addresses are.
 */
struct ggufs_type {
    uint32_t id;         /* in GGUF files; several programs gave one id to types of their own */
    const char *name;    /* "Q4_K" */
    const char *program; /* that gave it the id: "ggml", "ik_llama.cpp" */
    uint32_t block_elements;
    uint32_t block_bytes;
    uint32_t row_header_bytes;
    uint32_t interleave_rows;
    uint32_t tail_bytes;
    bool can_decode; /* ggufs_read() and ggufs_decode() know its values */
    bool can_encode; /* ggufs_encode() writes it */
    bool is_in_ggml; /* llama.cpp of today loads it */
};

/* Type `index` of the table: today's by id, old layouts, other readings of an id. NULL past the
 * end. */
const struct ggufs_type *ggufs_type_at(uint32_t index);

/* The first type of that name in the table, in upper or lower case; or NULL. */
const struct ggufs_type *ggufs_find_type(const char *name);

/*
 * Get the size of a tensor of n_rows rows of row_elements each. Errors: -EINVAL if a row is not a
 * whole number of blocks, or the rows no whole groups of interleaved ones; -EOVERFLOW beyond
 * INT64_MAX.
 */
int ggufs_rows_bytes(const struct ggufs_type *type, uint64_t row_elements, uint64_t n_rows,
                     uint64_t *n_bytes);

/*
 * Decode a tensor in memory, ggufs_rows_bytes() little-endian bytes at `stored`, of any alignment,
 * to n_rows * row_elements floats. Gives the bits that ggml gives, on every CPU. Errors: as for
 * ggufs_rows_bytes(); -ENOTSUP unless can_decode.
 */
int ggufs_decode(const struct ggufs_type *type, const void *stored, uint64_t row_elements,
                 uint64_t n_rows, float *out);

/*
 * Encode n_rows * row_elements floats to ggufs_rows_bytes() bytes at `out`, of any alignment:
 * rounded to nearest with ties to even in F16 and BF16, else as ggml's reference does without an
 * importance matrix. Errors: as for ggufs_rows_bytes(); -ENOTSUP unless can_encode.
 */
int ggufs_encode(const struct ggufs_type *type, const float *values, uint64_t row_elements,
                 uint64_t n_rows, void *out);

/* ---- tensors ---- */

#define GGUFS_MAX_DIMS 8

/* A tensor. Owned by the model. */
struct ggufs_tensor {
    struct ggufs_string name;
    const struct ggufs_type *type; /* NULL if unknown, or its layout is: only
                                      ggufs_read_stored() works */
    uint32_t type_id;              /* as the file says */
    uint32_t n_dims;
    /*
     * In the order of NumPy and PyTorch: the last dimension is the fastest. GGUF files and ggml
     * have the reverse. 1 from n_dims on.
     */
    uint64_t shape[GGUFS_MAX_DIMS];
    uint64_t n_elements;
    uint64_t size_bytes;  /* as stored; of an unknown type, the most that it can have */
    uint64_t file_offset; /* its data are at this offset of … */
    uint32_t file_index;  /* … ggufs_file_path(file_index), for programs that map it themselves */
    bool is_big_endian;   /* its data */
};

/* Tensor `index`, below n_tensors, in the order of the file. NULL past the end. */
const struct ggufs_tensor *ggufs_tensor_at(const struct ggufs_model *model, uint64_t index);

/* The tensor of that name, or NULL. Takes the time of some comparisons. */
const struct ggufs_tensor *ggufs_find_tensor(const struct ggufs_model *model, const char *name);

/* Formats of elements. */
enum ggufs_format {
    GGUFS_F32,    /* float */
    GGUFS_F16,    /* uint16_t: IEEE binary16, rounded to nearest with ties to even */
    GGUFS_BF16,   /* uint16_t: the upper half of a float, rounded alike */
    GGUFS_STORED, /* the type's own: numbers of block_bytes each, which are exact where GGUFS_F32
                     rounds (I32, I64, F64), or whole blocks, in little-endian order */
};

/*
 * Write elements `first` to `first` + n - 1, in row-major order, to `out`, of any alignment.
 * Decodes the blocks that hold them, which costs least if `first` and n are multiples of
 * type->block_elements. Errors: -ERANGE past the end; -ENOTSUP if the type is unknown or cannot be
 * decoded. GGUFS_STORED: -EINVAL unless `first` and n are multiples of it and the type has no row
 * headers, interleaved rows or tail.
 */
int ggufs_read(const struct ggufs_model *model, const struct ggufs_tensor *tensor,
               enum ggufs_format format, uint64_t first, uint64_t n, void *out);

/*
 * Copy n_bytes from `offset` of the tensor's data as the file has them, in its byte order. Errors:
 * -ERANGE past the end.
 */
int ggufs_read_stored(const struct ggufs_model *model, const struct ggufs_tensor *tensor,
                      uint64_t offset, size_t n_bytes, void *out);

/* ---- the tree ---- */

/*
 * The files that ggufs would mount, see ggufs(5). They are made when they are read; the tree itself
 * by the first call that needs it, in some microseconds for each tensor, which may fail with
 * -EEXIST if two names give one file name.
 */
enum ggufs_node_kind { GGUFS_DIRECTORY, GGUFS_FILE, GGUFS_LINK };

/* An index in the tree. */
typedef uint32_t ggufs_node;
#define GGUFS_ROOT ((ggufs_node)0)

struct ggufs_node_info {
    const char *name; /* a safe file name, at most 255 bytes; "" for the root. Owned by the model */
    const char *target; /* of a link, relative to its directory; else NULL. Owned by the model */
    enum ggufs_node_kind kind;
    uint32_t n_children; /* of a directory, else 0 */
    ggufs_node parent;   /* the root's is the root */
};

/*
 * Find the node at a path from the root, "tensors/output.weight/f32". Follows links, also the last.
 * A path may begin with a slash; "" is the root. Errors: -ENOENT, -ENOTDIR, -ELOOP.
 */
int ggufs_find_node(struct ggufs_model *model, const char *path, ggufs_node *node);

/* Describe a node. Errors: -ENOENT for a wrong index. */
int ggufs_describe_node(struct ggufs_model *model, ggufs_node node, struct ggufs_node_info *info);

/* Get child `index`, below n_children, of a directory; children are sorted by name. Errors:
 * -ENOENT for a wrong index, -ENOTDIR, -ERANGE. */
int ggufs_child(struct ggufs_model *model, ggufs_node directory, uint32_t index, ggufs_node *child);

/*
 * Get the size of a file in bytes; 0 for a directory, the length of its target for a link. Texts
 * are written once to count them; the result is kept. Errors: -ENOENT.
 */
int ggufs_node_size(struct ggufs_model *model, ggufs_node node, uint64_t *size_bytes);

struct ggufs_file;

/*
 * Open a file of the tree. *file must be closed with ggufs_close_file(). A file of figures
 * (stats.json) is computed now, in a thread per processor, which can take minutes; ggufs_cancel()
 * ends it. Errors: -ENOENT, -EISDIR; -EINVAL for a link; -EFBIG for a text over 256 MiB;
 * -ECANCELED.
 */
int ggufs_open_file(struct ggufs_model *model, ggufs_node node, struct ggufs_file **file);

/* Close a file. NULL does nothing. */
void ggufs_close_file(struct ggufs_file *file);

/*
 * Write bytes `offset` to `offset` + n_bytes - 1 of the file to `out`. Returns the number of bytes,
 * which is below n_bytes only at the end of the file, or a negative errno. SHA256SUMS is computed
 * when it is read, in a thread per processor; ggufs_cancel() ends that with -ECANCELED.
 */
int64_t ggufs_pread(struct ggufs_file *file, void *out, size_t n_bytes, uint64_t offset);

/*
 * End the calls of ggufs_open_file() and ggufs_pread() with this model that run now and compute for
 * long: they return -ECANCELED soon. May be called in a signal handler.
 */
void ggufs_cancel(struct ggufs_model *model);

#ifdef __cplusplus
}
#endif

#endif
