#include "fs/models/set_parts.h"
#include "fs/models/text_tree.h"
#include "fs/tree/identity.h"
#include "gguf/support/keyed_hash.h"
#include "gguf/support/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- closing ---- */

void fs_set_take_out(struct fs_model_set *set, struct fs_opened *opened)
{
    struct fs_opened **link = &set->opened;

    while (*link != opened)
        link = &(*link)->next;
    *link = opened->next;
    if (opened->entry)
        opened->entry->opened = NULL;
    opened->entry = NULL;
    opened->next = NULL;
}

void fs_set_close(struct fs_model_set *set, struct fs_opened *opened)
{
    struct fs_tree *tree = opened ? opened->tree : NULL;

    if (tree && tree->user)
        set->calls.hide(tree);
    if (tree && fs_is_text_tree(tree)) {
        fs_text_tree_free(tree);
    } else if (tree) {
        struct gguf_model *model = (struct gguf_model *)(uintptr_t)tree->model;

        fs_tree_free(tree);
        gguf_close(model);
    }
    free(opened);
}

/* Take out the tree that was unused for longest, if more than `n_kept` are unused. */
static struct fs_opened *take_idle(struct fs_model_set *set, size_t n_kept)
{
    struct fs_opened *oldest = NULL;
    size_t n = 0;

    for (struct fs_opened *at = set->opened; at; at = at->next) {
        if (at->n_users > 0 || (at->entry && at->entry->id == FS_MODELS_ROOT))
            continue;
        n++;
        if (!oldest || at->last_use < oldest->last_use)
            oldest = at;
    }
    if (n <= n_kept)
        return NULL;
    fs_set_take_out(set, oldest);
    return oldest;
}

struct fs_opened *fs_set_drop_tree(struct fs_model_set *set, struct fs_entry *entry)
{
    struct fs_opened *opened = entry->opened;

    entry->opened = NULL;
    if (!opened)
        return NULL;
    opened->entry = NULL;
    if (opened->n_users > 0)
        return NULL;
    fs_set_take_out(set, opened);
    return opened;
}

/* ---- opening ---- */

/* Make a tree of links to those files of a model that programs look for. */
static int make_links(struct fs_model_set *set, const char *target, struct fs_tree **links,
                      uint64_t *identity)
{
    static const char *const names[FS_MAX_TEXTS] = {"error.txt", "mmproj.gguf", "model.gguf"};
    struct fs_named_text texts[FS_MAX_TEXTS] = {{0}};
    const struct fs_entry *entry;
    struct fs_tree *tree;
    fs_node_index node;
    uint32_t id;
    int result;

    pthread_mutex_lock(&set->lock);
    entry = fs_set_find_path(set, target);
    id = entry && !entry->target ? entry->id : FS_MODELS_ROOT;
    pthread_mutex_unlock(&set->lock);
    result = id != FS_MODELS_ROOT ? fs_model_set_enter(set, id, &tree) : -ESTALE;
    if (result < 0)
        return result;
    for (size_t i = 0; i < FS_MAX_TEXTS; i++)
        if (fs_tree_find(tree, names[i], &node) == 0) {
            texts[i] = (struct fs_named_text){names[i], gguf_text("../../%s/%s", target, names[i]),
                                              0, true};
            result = texts[i].text ? result : -ENOMEM;
            *identity |= 2u << i;
        }
    fs_model_set_leave(set, tree);
    return fs_text_tree_make(result, texts, links);
}

/* Make the tree of a model, or of the reason why it cannot be opened. */
static int make_tree(struct fs_model_set *set, const struct fs_entry *entry,
                     struct fs_opened *opened, uint64_t *identity)
{
    const struct fs_set_calls *calls = &set->calls;
    char *error = NULL;
    int result = entry->target ? make_links(set, entry->target, &opened->tree, identity)
                               : calls->models->load(calls->models->argument, calls->access,
                                                     &entry->model, &opened->tree, &error);

    if (error) {
        *identity = gguf_hash(&(struct gguf_hash_key){{0}}, error, strlen(error));
        result = fs_text_tree_make(
            0,
            (const struct fs_named_text[FS_MAX_TEXTS]){{"error.txt", error, strlen(error), false}},
            &opened->tree);
    } else if (result == 0 && !entry->target) {
        *identity = fs_tree_identity(opened->tree, calls->content_options);
    }
    *identity |= 1; /* 0: it was never opened */
    return result < 0 ? result
                      : calls->show(calls->argument, opened->tree, entry->id, (uint32_t)*identity,
                                    entry->model.file.modified);
}

/* Open an entry. The caller has the lock, which is released meanwhile. */
static int open_entry(struct fs_model_set *set, struct fs_entry *entry, struct fs_opened **out)
{
    struct fs_opened *opened = calloc(1, sizeof *opened), *idle = NULL;
    uint64_t identity = 0;
    size_t n_open = 0;
    int result = opened ? 0 : -ENOMEM;

    for (const struct fs_opened *at = set->opened; at; at = at->next)
        n_open++;
    if (n_open > FS_MAX_OPEN_MODELS) /* one is the root's */
        idle = take_idle(set, 0);
    if (n_open > FS_MAX_OPEN_MODELS && !idle)
        result = -EMFILE;
    entry->is_opening = true;
    pthread_mutex_unlock(&set->lock);
    fs_set_close(set, idle);
    if (result == 0)
        result = make_tree(set, entry, opened, &identity);
    pthread_mutex_lock(&set->lock);
    entry->is_opening = false;
    pthread_cond_broadcast(&set->changed);
    if (result == 0) {
        opened->n_users = 1;
        opened->id = entry->id;
        opened->next = set->opened;
        set->opened = opened;
        if (!entry->is_gone && (entry->identity == 0 || entry->identity == identity)) {
            entry->identity = identity;
            entry->opened = opened;
            opened->entry = entry;
        } else {
            result = -ESTALE; /* its files have changed while it was closed */
            entry->is_changed = true;
            fs_set_take_out(set, opened);
        }
    }
    if (entry->is_gone)
        fs_set_free_entry(entry);
    if (result < 0 && opened) {
        pthread_mutex_unlock(&set->lock);
        fs_set_close(set, opened);
        pthread_mutex_lock(&set->lock);
    }
    *out = opened;
    return result;
}

/* Find a tree, or the tree of an id. */
static struct fs_opened *find_opened(const struct fs_model_set *set, const struct fs_tree *tree,
                                     uint32_t id)
{
    struct fs_opened *opened = set->opened;

    while (opened && opened->tree != tree && (tree || opened->id != id))
        opened = opened->next;
    return opened;
}

int fs_model_set_enter(struct fs_model_set *set, uint32_t id, struct fs_tree **tree)
{
    struct fs_opened *opened;
    struct fs_entry *entry;
    int result = 0;

    pthread_mutex_lock(&set->lock);
    while ((entry = fs_set_get_entry(set, id)) && entry->is_opening)
        pthread_cond_wait(&set->changed, &set->lock);
    /* Files of a model that is gone need their attributes while they are open. */
    opened = entry ? entry->opened : find_opened(set, NULL, id);
    if (opened) {
        opened->n_users++;
    } else if (!entry || entry->is_changed) {
        result = -ESTALE;
    } else if (entry->is_folder) {
        result = -EISDIR;
    } else {
        result = open_entry(set, entry, &opened);
    }
    if (result == 0) {
        opened->last_use = ++set->clock;
        *tree = opened->tree;
    }
    pthread_mutex_unlock(&set->lock);
    return result;
}

void fs_model_set_hold(struct fs_model_set *set, struct fs_tree *tree)
{
    pthread_mutex_lock(&set->lock);
    find_opened(set, tree, 0)->n_users++;
    pthread_mutex_unlock(&set->lock);
}

void fs_model_set_leave(struct fs_model_set *set, struct fs_tree *tree)
{
    struct fs_opened *opened, *unused = NULL;

    pthread_mutex_lock(&set->lock);
    opened = find_opened(set, tree, 0);
    if (--opened->n_users == 0 && !opened->entry) {
        fs_set_take_out(set, opened);
        unused = opened;
    } else if (opened->n_users == 0) {
        unused = take_idle(set, FS_MAX_IDLE_MODELS);
    }
    pthread_mutex_unlock(&set->lock);
    fs_set_close(set, unused);
}

void fs_model_set_count(struct fs_model_set *set, size_t *n_models, size_t *n_open)
{
    *n_models = *n_open = 0;
    pthread_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->n_entries; i++)
        *n_models += !set->by_path[i]->is_folder && !set->by_path[i]->target;
    for (const struct fs_opened *at = set->opened; at; at = at->next)
        *n_open += !fs_is_text_tree(at->tree);
    pthread_mutex_unlock(&set->lock);
}
