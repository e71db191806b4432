/* Facts about a model that views need: made with the tree, constant after that. */
#pragma once

#include "fs/tree/data/statistics.h"
#include "fs/tree/facts/export.h"
#include "fs/tree/facts/split.h"
#include "gguf/model.h"
#include "gguf/orig_shapes.h"
#include "gguf/translate/translate.h"

struct fs_tree;
struct fs_hf_checkpoint;
struct fs_vocabulary;

/* The findings in a model file: their number, and the first one. All zero: none. */
struct fs_findings {
    size_t n_findings;
    char first[768]; /* one printable line */
};

/* The number type of floating-point tensors in safetensors files, as the user wants it. */
enum fs_dtype {
    FS_DTYPE_STORED, /* F32, F16 and F64 as they are, BF16 for all others */
    FS_DTYPE_F32,
    FS_DTYPE_F16,
    FS_DTYPE_BF16,
};

/* A file that is shown beside the model's, as it is: "mmproj.gguf". */
struct fs_extra {
    char *name; /* owned */
    struct gguf_file file;
};

/* The GGUF files in the tree. */
enum fs_part_id {
    FS_PART_MODEL,     /* model.gguf and split/: what llama.cpp loads */
    FS_PART_PROJECTOR, /* mmproj.gguf: encoders of images and sound */
    FS_PART_ORIGINAL,  /* original.gguf: the file as it is, if model.gguf is not */
    FS_PART_OLLAMA,    /* ollama.gguf: model and projector in one file */
    FS_N_PARTS
};

struct fs_part {
    const struct gguf_model *model; /* NULL: the file is missing */
    struct fs_export export;        /* the types of its tensors */
};

struct fs_facts {
    struct gguf_translation translation;   /* for llama.cpp */
    struct gguf_model *projector, *joined; /* in another file; with it, for Ollama; or NULL */
    char *no_ollama;                       /* why ollama.gguf is missing; owned; or NULL */
    struct fs_part parts[FS_N_PARTS];
    struct fs_shard *shards; /* the files in split/ */
    uint32_t n_shards;
    struct gguf_shape *shapes;   /* by tensor, if they differ from `ne`; NULL if none does */
    struct fs_hf_checkpoint *hf; /* hf/, or the reasons why it is missing */
    enum fs_dtype dtype;
    struct fs_vocabulary *vocabulary;
    struct fs_findings findings;
    struct fs_extra *extras; /* owned */
    size_t n_extras;
    struct fs_statistics_cache *statistics; /* owned */
};

/* Get the shape, the slowest dimension first. Returns the number of dimensions. */
uint32_t fs_tensor_shape(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         uint64_t shape[GGUF_MAX_DIMS]);

/* Get the coordinates of an element by its row-major index. Returns the number of dimensions. */
uint32_t fs_locate(const struct fs_tree *tree, const struct gguf_tensor *tensor, uint64_t index,
                   uint64_t coordinates[GGUF_MAX_DIMS]);

/*
 * Find the first byte of the tensor's data; if they are in parts, see gguf_source_find_pieces().
 * The path is the name of the model file, without its directory.
 */
struct gguf_pieces fs_tensor_pieces(const struct fs_tree *tree, const struct gguf_tensor *tensor);

/*
 * Return the type of a tensor's numbers in safetensors files: F32, F16 or BF16. By default, float64
 * and integers that BF16 would round give F32, which matters only in files that do not keep the
 * stored type, like those in hf/.
 */
const struct dequant_type *fs_dtype_of(const struct fs_tree *tree,
                                       const struct gguf_tensor *tensor);
