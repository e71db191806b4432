/*
 * Many models below one root: folders, and in them a directory per model. It knows their names from
 * a list, opens a model when its directory is entered, and closes it when nobody uses it. Each
 * folder and each model has an id, which is never used again: a model that changes gets a new one,
 * and the id of the root is 0. Any thread may call these functions.
 */
#pragma once

#include "fs/tree/tree.h"
#include "gguf/stores/model_list.h"

/* So many models stay open while nobody uses them, and so many can be open at all. */
enum { FS_MAX_IDLE_MODELS = 8, FS_MAX_OPEN_MODELS = 256 };

#define FS_MODELS_ROOT 0u

/* The files at the root, sorted. */
enum { FS_N_ROOT_FILES = 3 };
extern const char *const fs_root_files[FS_N_ROOT_FILES];
bool fs_is_root_file(const char *name);

/* The folder of links to all models. */
#define FS_LLAMA_SERVER "llama-server"

/* The provider of the models. Its functions open all files through `access`. */
struct fs_models {
    const char *const
        *roots; /* the folders and files that it may open, absolute; NULL at the end */
    /* Make a new list of the models. Returns 0 or a negative errno. */
    int (*list)(void *argument, const struct gguf_store_access *access,
                struct gguf_model_list *list);
    /*
     * Open a model; the set closes it. Returns 0 or a negative errno: if that is the model's fault,
     * *error is the reason as a text, to be freed; else the next user of the model tries again.
     */
    int (*load)(void *argument, const struct gguf_store_access *access,
                const struct gguf_listed_model *model, struct fs_tree **tree, char **error);
    void *argument;
};

/* The functions and settings of a set. */
struct fs_set_calls {
    const struct fs_models *models;
    const struct gguf_store_access *access;
    /*
     * Set tree->user for those who show the tree of an id; and free it before the tree is gone. The
     * first returns 0 or a negative errno.
     */
    int (*show)(void *argument, struct fs_tree *tree, uint32_t id, uint32_t generation,
                struct timespec modified);
    void (*hide)(struct fs_tree *tree);
    uint64_t content_options; /* for fs_tree_identity() */
    const char *mountpoint;   /* for presets.ini */
    void *argument;           /* of show() */
};

struct fs_model_set;
int fs_model_set_make(const struct fs_set_calls *calls, struct fs_model_set **set);
void fs_model_set_free(struct fs_model_set *set);

/* A folder or the directory of a model. */
struct fs_set_entry {
    char name[256];
    bool is_folder;
    bool is_lasting;     /* as long as it has this id, what is said here is true */
    uint32_t generation; /* tells it from others that have its id in another process */
    struct timespec modified;
};

/* Describe an id. Returns 0, or -ESTALE if it is gone. */
int fs_model_set_describe(struct fs_model_set *set, uint32_t id, struct fs_set_entry *entry);

/* List all models anew, unless another thread has begun to since this was called. */
int fs_model_set_refresh(struct fs_model_set *set);

/* Find a name in a folder, also ".." and "."; lists anew if it must. 0, -ENOENT, or others. */
int fs_model_set_find(struct fs_model_set *set, uint32_t folder, const char *name, uint32_t *id);

/* List a folder anew. The caller frees *ids, which are sorted by name. */
int fs_model_set_list(struct fs_model_set *set, uint32_t folder, uint32_t **ids, size_t *n);

/*
 * Get the tree of a model, or of the files at the root: models.tsv and models.json. A model that
 * cannot be opened has the file error.txt. Give the tree back with fs_model_set_leave(). Returns 0,
 * -ESTALE if the id is gone, -EISDIR for other folders, -EMFILE if too many models are in use.
 */
int fs_model_set_enter(struct fs_model_set *set, uint32_t id, struct fs_tree **tree);
void fs_model_set_leave(struct fs_model_set *set, struct fs_tree *tree);

/* Count another user of a tree that is in use. */
void fs_model_set_hold(struct fs_model_set *set, struct fs_tree *tree);

/* Count the models, and those that are open. */
void fs_model_set_count(struct fs_model_set *set, size_t *n_models, size_t *n_open);
