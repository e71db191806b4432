/*
 * Lists of the models in a folder or a store, made without opening a model. Whoever lists has the
 * files opened by a struct gguf_store_access: by system calls, or by a process that may still open
 * them. Functions return 0 or a negative errno.
 */
#pragma once

#include "gguf/support/file_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The files of a folder, without hidden ones, sorted by name (bytes). All zero: none. */
struct gguf_folder_entry {
    char name[256];
    bool is_folder; /* and not a link to one */
    bool is_link;
    struct gguf_file_status status; /* of the file, also of one that a link leads to; or zeros */
};

struct gguf_folder {
    struct gguf_folder_entry *entries; /* owned, sorted by name */
    size_t n_entries;
};

/* Each takes an absolute path. */
struct gguf_store_access {
    /*
     * Open a regular file for reading, without waiting for a FIFO. Returns the descriptor, or
     * -EINVAL for what is not a regular file, -EXDEV for a link out of the folder or store.
     */
    int (*open)(void *argument, const char *path);
    /* Get the status of a file or a folder. */
    int (*status)(void *argument, const char *path, struct gguf_file_status *status);
    /*
     * List a folder; -ELOOP: it is a place that must not be listed. Does not follow links. The
     * caller frees folder->entries.
     */
    int (*list)(void *argument, const char *path, struct gguf_folder *folder);
    void *argument;
};

/* For open(): return the descriptor, or close it and return why it is not of a regular file. */
int gguf_keep_regular(int descriptor);
/* For status(): get the status of an open file, and close it. */
int gguf_take_status(int descriptor, struct gguf_file_status *status);

/* By system calls. */
extern const struct gguf_store_access gguf_direct_access;

/* Read the entries of the folder at `path`, which is open, and close it. `access` follows links. */
int gguf_folder_read(int descriptor, const struct gguf_store_access *access, const char *path,
                     struct gguf_folder *folder);

struct gguf_listed_file {
    char *name; /* first, as in the others, for gguf_compare_names(): "mmproj.gguf" */
    char *path; /* absolute */
};

/* A model. All texts are owned. */
struct gguf_listed_model {
    char *name;  /* of its directory, with '/' after each folder: "llama3.2/1b" */
    char *path;  /* of its file or its first shard; NULL: not there */
    char *place; /* the manifest or folder of a store that names it; NULL: none */
    struct gguf_file_status place_status; /* before it was read; zeros: not known */
    /* All shards in order, if their names do not say which they are; NULL: their names do. */
    char **shards;
    size_t n_shards;
    /* Shown beside the model's tree: projectors, adapters, drafts, texts, as they are. */
    struct gguf_listed_file *extras;
    size_t n_extras;
    struct gguf_file_status file; /* of `path`; zeros: not known */
    bool is_partial;              /* an unfinished download, opened as -o partial does */
    char *error;                  /* why it cannot be opened; NULL if it can be tried */
    uint64_t size_bytes;          /* of the model's files, as the folder or the manifest has them */
};

/* No folder or store has more. */
enum { GGUF_MAX_LISTED_MODELS = 200000 };

struct gguf_model_list {
    struct gguf_listed_model *models;
    size_t n_models, room;
    int error; /* -ENOMEM or -E2BIG: there is more than it has */
};

/*
 * Add a model. Takes ownership of both texts; the path may be NULL. Returns it, or NULL with
 * list->error, also if the name is NULL.
 */
struct gguf_listed_model *gguf_model_list_add(struct gguf_model_list *list, char *name, char *path);

/* Add a file to a model of the list. Takes `path`, which may be NULL: it sets list->error. */
void gguf_model_list_add_file(struct gguf_model_list *list, struct gguf_listed_model *model,
                              const char *name, char *path);

/* Set the error of a model, unless it has one or is NULL. */
void gguf_listed_model_refuse(struct gguf_listed_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void gguf_listed_model_free(struct gguf_listed_model *model);
void gguf_model_list_free(struct gguf_model_list *list);

enum { GGUF_LIST_REASON_BYTES = 700 };

/* Set a reason, without bytes that are not for a terminal. Returns `code`. */
int gguf_set_reason(char reason[GGUF_LIST_REASON_BYTES], int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum gguf_folder_kind {
    GGUF_FOLDER,
    GGUF_FOLDER_ALONE, /* without the folders below it */
    GGUF_REPOSITORY, /* every projector is for all models; names are not made fit for directories */
};

/*
 * Add the models in a folder and in the folders below it: GGUF files, named by their paths without
 * ".gguf", sorted. The shards of a model count as one; a projector (*mmproj*) goes with the models
 * that its name or its folder says. What cannot be opened has an `error`. On failure the reason is
 * in `reason`, to follow the folder's name and a colon.
 */
int gguf_list_folder(const struct gguf_store_access *access, const char *root,
                     enum gguf_folder_kind kind, struct gguf_model_list *list,
                     char reason[GGUF_LIST_REASON_BYTES]);

/*
 * Add the models in files with absolute paths, of shards the first ones. The projectors among them
 * go with the models, which must then be types of one model. Returns list->error.
 */
int gguf_list_files(const struct gguf_store_access *access, const char *const *paths, size_t n,
                    struct gguf_model_list *list);

/*
 * Find the model that a user names: a file, which need not be there; a folder with one model in it,
 * or else below it; or a name in a store, see stores.h. Returns 0 with *model, for
 * gguf_listed_model_free(), or a negative errno with the reason and the remedy in `reason`, to
 * follow the name and a colon. With `partial`, it may be an unfinished download.
 */
int gguf_find_model(const char *name, bool partial, struct gguf_listed_model *model,
                    char reason[GGUF_LIST_REASON_BYTES]);
