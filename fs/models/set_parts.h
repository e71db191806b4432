/* Parts of a set of models that its files share. See model_set.h. */
#pragma once

#include "fs/models/model_set.h"

#include <pthread.h>

struct fs_opened;
struct fs_place_seen;

/* A folder or a model. */
struct fs_entry {
    struct gguf_listed_model model; /* its name is the path from the root; of a folder, no more */
    uint32_t id;
    char *target; /* the name of the model that its links lead to; NULL: a model */
    bool is_folder;
    bool is_changed; /* its file is not what it was */
    bool is_gone;    /* from the set; another thread that opens it frees it */
    bool is_opening;
    uint64_t identity;        /* of the tree when it was first opened; 0: it never was */
    struct fs_opened *opened; /* NULL: closed */
};

/* The tree of a model, or of texts. */
struct fs_opened {
    struct fs_tree *tree;
    uint32_t id;
    struct fs_entry *entry; /* NULL: it is gone, and the tree closes with its last user */
    unsigned n_users;
    uint64_t last_use;
    struct fs_opened *next; /* in the list of all, or of those to be closed */
};

struct fs_model_set {
    struct fs_set_calls calls;
    pthread_mutex_t listing; /* held while the models are listed; also of what was seen then */
    struct fs_place_seen *seen;
    size_t n_seen, seen_room;
    struct timespec listed;  /* when the last listing began */
    pthread_mutex_t lock;    /* of all below; never held while a file is read */
    pthread_cond_t changed;  /* a model was opened, or could not be */
    unsigned n_listings;     /* begun */
    struct fs_entry **by_id; /* NULL: gone */
    size_t n_ids, room;
    struct fs_entry **by_path; /* sorted; without the root */
    size_t n_entries;
    struct fs_opened *opened;
    uint64_t clock; /* counts uses */
};

/* A new list, as entries. */
struct fs_listing {
    struct fs_entry **entries;
    size_t n, room;
};

/* ---- model_set.c ---- */

/* Return the entry with a path, or NULL. */
struct fs_entry *fs_set_find_path(const struct fs_model_set *set, const char *path);

/* ---- set_listing.c ---- */

void fs_set_free_entry(struct fs_entry *entry);

/* Make entries of the models, which it takes, and of the folders above them, sorted by path. */
int fs_set_make_listing(struct gguf_model_list *list, struct fs_listing *listing);

/* Return true unless both are known and differ. */
bool fs_set_is_same_file(const struct gguf_file_status *a, const struct gguf_file_status *b);

/* Return true if a listed entry is one that is known. */
bool fs_set_is_same(const struct fs_entry *entry, const struct fs_entry *listed);

/* ---- set_trees.c ---- */

/* Take a tree out of the list of all. Its entry, if it has one, is closed. */
void fs_set_take_out(struct fs_model_set *set, struct fs_opened *opened);

/* Close a tree that nobody knows of, if there is one; without the lock if it was shown. */
void fs_set_close(struct fs_model_set *set, struct fs_opened *opened);

/* Separate an entry from its tree. Returns the tree if nobody uses it, to be closed. */
struct fs_opened *fs_set_drop_tree(struct fs_model_set *set, struct fs_entry *entry);

static inline struct fs_entry *fs_set_get_entry(const struct fs_model_set *set, uint32_t id)
{
    return id < set->n_ids ? set->by_id[id] : NULL;
}
