/* Shared by the files behind the public interface, ggufs.h. */
#pragma once

#include "fs/library/ggufs.h"
#include "fs/tree/tree.h"

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>

/* Options of ggufs_open(). Set them with fs_library_options_parse(). */
struct fs_library_options {
    struct gguf_open_options open;
    struct fs_tree_options tree;
    bool mapped;
    int command; /* the parser's; the library has none */
};

struct ggufs_model {
    struct gguf_model *model;
    struct ggufs_info info;
    struct ggufs_key *keys;
    struct ggufs_tensor *tensors;
    const struct gguf_tensor **tensors_by_name; /* of `model` */
    /* For each key that is an array of strings: the offset in its data of every 256th one. */
    uint64_t **string_marks;

    struct fs_library_options options;
    char *option_words; /* options point into them */
    struct fs_findings findings;
    pthread_mutex_t tree_lock; /* of `tree` while it is made */
    struct fs_tree *_Atomic tree;
    atomic_uint n_cancels;
};

/*
 * Parse options; *words is what `options` points into, to be freed in every case. Returns 0, or a
 * negative errno with the reason in `report`.
 */
int fs_library_options_parse(const char *text, struct fs_library_options *options, char **words,
                             struct gguf_report *report);

/* The rule of findings that are not about a file: a wrong option. */
#define FS_NO_RULE GGUF_N_RULES

/* Return true after ggufs_catch_faults() has succeeded. */
bool fs_library_catches_faults(void);

/* Make the tables of keys and tensors. Return 0 or -ENOMEM; free them in every case. */
int fs_library_make_keys(struct ggufs_model *model);
int fs_library_make_tensors(struct ggufs_model *model);
void fs_library_free_keys(struct ggufs_model *model);

/* Make the table of types and choose the kernels, once in the process. */
void fs_library_begin(void);

/*
 * The same, and give the calling thread the locale "C": numbers in texts have a point. Returns the
 * locale that it had, for uselocale().
 */
locale_t fs_library_enter(void);
