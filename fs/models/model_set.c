#include "fs/models/model_set.h"

#include "fs/models/list_texts.h"
#include "fs/models/set_parts.h"
#include "fs/models/text_tree.h"
#include "gguf/support/arrays.h"
#include "gguf/support/keyed_hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- listing ---- */

/* Forget an entry, which is not in by_path any more. Adds its tree to the trees to be closed. */
static void forget(struct fs_model_set *set, struct fs_entry *entry, struct fs_opened **unused)
{
    struct fs_opened *opened = fs_set_drop_tree(set, entry);

    if (opened) {
        opened->next = *unused;
        *unused = opened;
    }
    set->by_id[entry->id] = NULL;
    entry->is_gone = true;
    if (!entry->is_opening)
        fs_set_free_entry(entry);
}

/* Replace the entries of the set by the listed ones. Entries that stay keep their ids. */
static bool merge(struct fs_model_set *set, struct fs_listing *listing, struct fs_opened **unused)
{
    struct fs_entry **old = set->by_path;
    const size_t n_old = set->n_entries;
    bool is_changed = false;

    for (size_t i = 0, j = 0; i < listing->n || j < n_old;) {
        const int order = i == listing->n ? 1
                          : j == n_old
                              ? -1
                              : strcmp(listing->entries[i]->model.name, old[j]->model.name);

        if (order == 0 && fs_set_is_same(old[j], listing->entries[i])) {
            old[j]->model.size_bytes = listing->entries[i]->model.size_bytes;
            old[j]->model.place_status = listing->entries[i]->model.place_status;
            fs_set_free_entry(listing->entries[i]);
            listing->entries[i++] = old[j++];
            continue;
        }
        is_changed = true;
        if (order <= 0) {
            listing->entries[i]->id = (uint32_t)set->n_ids;
            set->by_id[set->n_ids++] = listing->entries[i++];
        }
        if (order >= 0)
            forget(set, old[j++], unused);
    }
    free(old);
    set->by_path = listing->entries;
    set->n_entries = listing->n;
    *listing = (struct fs_listing){0};
    return is_changed;
}

/* Return the index of the first entry whose path is not before the first `length` bytes of one. */
static size_t find_index(const struct fs_model_set *set, const char *path, size_t length)
{
    size_t low = 0, high = set->n_entries;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const char *name = set->by_path[middle]->model.name;
        const int order = strncmp(name, path, length);

        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct fs_entry *fs_set_find_path(const struct fs_model_set *set, const char *path)
{
    const size_t i = find_index(set, path, strlen(path) + 1);

    return i < set->n_entries && strcmp(set->by_path[i]->model.name, path) == 0 ? set->by_path[i]
                                                                                : NULL;
}

/* Write a section of llama-server's presets for a directory of links. */
static void write_preset(const struct fs_model_set *set, const struct fs_entry *links,
                         struct fs_sink *sink)
{
    const struct fs_entry *entry = fs_set_find_path(set, links->target);
    const char *name = links->model.name, *mountpoint = set->calls.mountpoint;

    fs_sink_print(sink, "\n[%s]\nmodel = %s/%s/model.gguf\n", strrchr(name, '/') + 1, mountpoint,
                  name);
    for (size_t i = 0; entry && i < entry->model.n_extras; i++)
        if (strcmp(entry->model.extras[i].name, "mmproj.gguf") == 0)
            fs_sink_print(sink, "mmproj = %s/%s/mmproj.gguf\n", mountpoint, name);
}

/* Make the tree of the files at the root. */
static int write_texts(struct fs_model_set *set, struct fs_opened **unused)
{
    struct fs_sink tsv = fs_sink_that_grows(FS_MAX_TEXT_BYTES), json = tsv, ini = tsv;
    struct fs_entry *root = set->by_id[FS_MODELS_ROOT];
    struct fs_opened *opened = calloc(1, sizeof *opened);
    const bool has_presets = !strpbrk(set->calls.mountpoint, ";#\r\n");
    bool is_first = true;
    int result;

    if (!opened)
        return -ENOMEM;
    fs_sink_literal(&tsv, FS_MODELS_TSV_HEADER);
    fs_sink_literal(&ini, "version = 1\n");
    if (!has_presets)
        fs_sink_literal(&ini, "; no models: the mount point has ';', '#' or a line break in its "
                              "path, which ends a value; mount elsewhere\n");
    for (size_t i = 0; i < set->n_entries; i++) {
        const struct fs_entry *entry = set->by_path[i];

        if (entry->target && has_presets)
            write_preset(set, entry, &ini);
        if (entry->is_folder || entry->target)
            continue;
        fs_models_tsv_line(&entry->model, &tsv);
        fs_sink_literal(&json, is_first ? "[\n" : ",\n");
        fs_models_json_object(&entry->model, &json);
        is_first = false;
    }
    fs_sink_literal(&json, is_first ? "[]\n" : "\n]\n");
    result = fs_text_tree_make(
        tsv.error < 0    ? tsv.error
        : json.error < 0 ? json.error
                         : ini.error,
        (const struct fs_named_text[]){{"models.json", json.out, (size_t)json.position, false},
                                       {"models.tsv", tsv.out, (size_t)tsv.position, false},
                                       {"presets.ini", ini.out, (size_t)ini.position, false}},
        &opened->tree);
    clock_gettime(CLOCK_REALTIME, &root->model.file.modified);
    if (result == 0)
        result = set->calls.show(set->calls.argument, opened->tree, FS_MODELS_ROOT, 0,
                                 root->model.file.modified);
    if (result < 0) {
        fs_set_close(set, opened);
        return result;
    }
    *unused = fs_set_drop_tree(set, root);
    opened->entry = root;
    opened->next = set->opened;
    root->opened = set->opened = opened;
    return 0;
}

/* ---- what was listed ---- */

/* A folder that was listed, or a file that was read for the list. */
struct fs_place_seen {
    char *path;
    struct gguf_file_status status; /* zeros: it was not there */
};

/* A younger change may have the time of the next one; times to come are another clock's. */
enum { SETTLED_SECONDS = 2 };

static int get_status(void *argument, const char *path, struct gguf_file_status *status)
{
    const struct gguf_store_access *access = ((struct fs_model_set *)argument)->calls.access;

    return access->status(access->argument, path, status);
}

/* Without memory for it, the list is never taken to be up to date. */
static void remember(struct fs_model_set *set, const char *path, bool is_there)
{
    struct gguf_file_status status = {0};

    if (gguf_reserve(&set->seen, &set->seen_room, set->n_seen + 1, sizeof *set->seen) < 0) {
        set->listed.tv_sec = 0;
        return;
    }
    if (is_there)
        get_status(set, path, &status);
    set->seen[set->n_seen++] = (struct fs_place_seen){strdup(path), status};
}

static int open_and_remember(void *argument, const char *path)
{
    const struct fs_model_set *set = argument;
    const int result = set->calls.access->open(set->calls.access->argument, path);

    remember(argument, path, result >= 0);
    return result;
}

static int list_and_remember(void *argument, const char *path, struct gguf_folder *folder)
{
    const struct fs_model_set *set = argument;
    const int result = set->calls.access->list(set->calls.access->argument, path, folder);

    if (result != -ELOOP) /* else it is the mount itself */
        remember(argument, path, result == 0);
    return result;
}

static void forget_places(struct fs_model_set *set)
{
    while (set->n_seen > 0)
        free(set->seen[--set->n_seen].path);
}

/* Return true if no model can have been added since the models were listed. */
static bool is_list_up_to_date(struct fs_model_set *set)
{
    bool is_same;

    pthread_mutex_lock(&set->listing);
    is_same = set->listed.tv_sec != 0;
    for (size_t i = 0; i < set->n_seen && is_same; i++) {
        const struct fs_place_seen *seen = &set->seen[i];
        const time_t age = set->listed.tv_sec - seen->status.status_changed.tv_sec;
        struct gguf_file_status now = {0};

        is_same = seen->path && (age < 0 || age > SETTLED_SECONDS);
        if (is_same)
            get_status(set, seen->path, &now);
        is_same &= memcmp(&now, &seen->status, sizeof now) == 0;
    }
    pthread_mutex_unlock(&set->listing);
    return is_same;
}

int fs_model_set_refresh(struct fs_model_set *set)
{
    const struct fs_models *models = set->calls.models;
    const struct gguf_store_access access = {open_and_remember, get_status, list_and_remember, set};
    struct gguf_model_list list = {0};
    struct fs_listing listing = {0};
    struct fs_opened *unused = NULL, *texts = NULL;
    unsigned n_before;
    int result;

    pthread_mutex_lock(&set->lock);
    n_before = set->n_listings;
    pthread_mutex_unlock(&set->lock);
    pthread_mutex_lock(&set->listing);
    if (set->n_listings != n_before) {
        pthread_mutex_unlock(&set->listing);
        return 0;
    }
    pthread_mutex_lock(&set->lock);
    set->n_listings++;
    pthread_mutex_unlock(&set->lock);
    forget_places(set);
    clock_gettime(CLOCK_REALTIME, &set->listed);
    result = models->list(models->argument, &access, &list);
    if (result == 0)
        result = fs_set_make_listing(&list, &listing);
    pthread_mutex_lock(&set->lock);
    if (result == 0)
        result = gguf_reserve(&set->by_id, &set->room, set->n_ids + listing.n, sizeof *set->by_id);
    if (result == 0 && (merge(set, &listing, &unused) || !set->by_id[FS_MODELS_ROOT]->opened))
        result = write_texts(set, &texts);
    pthread_mutex_unlock(&set->lock);
    pthread_mutex_unlock(&set->listing);
    gguf_model_list_free(&list);
    for (size_t i = 0; i < listing.n; i++)
        fs_set_free_entry(listing.entries[i]);
    free(listing.entries);
    fs_set_close(set, texts);
    while (unused) {
        struct fs_opened *next = unused->next;

        fs_set_close(set, unused);
        unused = next;
    }
    return result;
}

/* ---- finding ---- */

static uint32_t generation_of(const struct fs_entry *entry)
{
    const struct gguf_file_status *file = &entry->model.file;

    return (uint32_t)gguf_hash(
        &(struct gguf_hash_key){{(uint64_t)file->modified.tv_sec, file->inode}}, entry->model.name,
        strlen(entry->model.name));
}

int fs_model_set_describe(struct fs_model_set *set, uint32_t id, struct fs_set_entry *out)
{
    const struct fs_entry *entry;

    pthread_mutex_lock(&set->lock);
    entry = fs_set_get_entry(set, id);
    if (entry) {
        const char *slash = strrchr(entry->model.name, '/');

        *out = (struct fs_set_entry){.is_folder = entry->is_folder,
                                     .is_lasting = !entry->is_folder && !entry->model.is_partial &&
                                                   entry->model.file.inode != 0,
                                     .generation = id == FS_MODELS_ROOT ? 0 : generation_of(entry),
                                     .modified = entry->model.file.modified};
        snprintf(out->name, sizeof out->name, "%s", slash ? slash + 1 : entry->model.name);
        if (entry->is_folder)
            out->modified = set->by_id[FS_MODELS_ROOT]->model.file.modified;
    }
    pthread_mutex_unlock(&set->lock);
    return entry ? 0 : -ESTALE;
}

/* Write the path of a name in a folder. Returns 0 or a negative errno. */
static int make_path(struct fs_model_set *set, uint32_t folder, const char *name, char **path)
{
    const struct fs_entry *entry = fs_set_get_entry(set, folder);
    const char *above = entry ? entry->model.name : "";
    const char *slash = strrchr(above, '/');

    *path = NULL;
    if (!entry)
        return -ESTALE;
    if (strcmp(name, "..") == 0)
        *path = strndup(above, slash ? (size_t)(slash - above) : 0);
    else if (strcmp(name, ".") == 0)
        *path = strdup(above);
    else if (asprintf(path, "%s%s%s", above, above[0] != '\0' ? "/" : "", name) < 0)
        *path = NULL;
    return *path ? 0 : -ENOMEM;
}

/*
 * Return true if a model is as it was. The caller has the lock, which is released meanwhile. A
 * model that could not be opened is closed, to be tried again.
 */
static bool is_up_to_date(struct fs_model_set *set, struct fs_entry *entry)
{
    const struct gguf_store_access *access = set->calls.access;
    const uint32_t id = entry->id;
    char *path = entry->model.path ? strdup(entry->model.path) : NULL;
    char *place = entry->model.place ? strdup(entry->model.place) : NULL;
    struct gguf_file_status now = {0}, place_now = {0};
    struct fs_opened *unused = NULL;
    int result = 0;

    pthread_mutex_unlock(&set->lock);
    if (path)
        result = access->status(access->argument, path, &now);
    if (place && result == 0)
        result = access->status(access->argument, place, &place_now);
    free(path);
    free(place);
    pthread_mutex_lock(&set->lock);
    entry = fs_set_get_entry(set, id);
    if (!entry)
        return false;
    if (now.inode != 0 && (entry->model.file.inode == 0 || entry->model.is_partial))
        entry->model.file = now;
    if (entry->opened && fs_is_text_tree(entry->opened->tree) && entry->opened->n_users == 0)
        unused = fs_set_drop_tree(set, entry);
    entry->is_changed |= !fs_set_is_same_file(&entry->model.file, &now);
    if (unused) {
        pthread_mutex_unlock(&set->lock);
        fs_set_close(set, unused);
        pthread_mutex_lock(&set->lock);
    }
    return fs_set_get_entry(set, id) == entry && !entry->is_changed && result == 0 &&
           fs_set_is_same_file(&entry->model.place_status, &place_now);
}

int fs_model_set_find(struct fs_model_set *set, uint32_t folder, const char *name, uint32_t *id)
{
    struct fs_entry *found;
    char *path = NULL;
    int result;

    pthread_mutex_lock(&set->lock);
    result = make_path(set, folder, name, &path);
    if (result == 0) {
        found = path[0] != '\0' ? fs_set_find_path(set, path) : set->by_id[FS_MODELS_ROOT];
        if (!found || (!found->is_folder && !is_up_to_date(set, found))) {
            const bool is_missing = !found;

            pthread_mutex_unlock(&set->lock);
            result = is_missing && is_list_up_to_date(set) ? 0 : fs_model_set_refresh(set);
            pthread_mutex_lock(&set->lock);
            found = fs_set_find_path(set, path);
        }
        if (found)
            *id = found->id;
        else if (result == 0)
            result = -ENOENT;
    }
    pthread_mutex_unlock(&set->lock);
    free(path);
    return result;
}

int fs_model_set_list(struct fs_model_set *set, uint32_t folder, uint32_t **ids, size_t *n)
{
    char *path = NULL;
    int result = fs_model_set_refresh(set);

    *n = 0;
    pthread_mutex_lock(&set->lock);
    if (result == 0)
        result = make_path(set, folder, "", &path); /* with a slash at its end */
    *ids = result == 0 ? malloc((set->n_entries + 1) * sizeof **ids) : NULL;
    if (result == 0 && !*ids)
        result = -ENOMEM;
    if (result == 0) {
        const size_t length = strlen(path);

        for (size_t i = find_index(set, path, length);
             i < set->n_entries && strncmp(set->by_path[i]->model.name, path, length) == 0; i++)
            if (!strchr(set->by_path[i]->model.name + length, '/'))
                (*ids)[(*n)++] = set->by_path[i]->id;
    }
    pthread_mutex_unlock(&set->lock);
    free(path);
    return result;
}

/* ---- life ---- */

int fs_model_set_make(const struct fs_set_calls *calls, struct fs_model_set **out)
{
    struct fs_model_set *set = calloc(1, sizeof *set);
    struct fs_entry *root = calloc(1, sizeof *root);

    *out = set;
    if (!set || !root || !(root->model.name = strdup("")) ||
        gguf_reserve(&set->by_id, &set->room, 1, sizeof *set->by_id) < 0) {
        free(set);
        free(root);
        return -ENOMEM;
    }
    set->calls = *calls;
    root->is_folder = true;
    set->by_id[set->n_ids++] = root;
    pthread_mutex_init(&set->listing, NULL);
    pthread_mutex_init(&set->lock, NULL);
    pthread_cond_init(&set->changed, NULL);
    return fs_model_set_refresh(set);
}

void fs_model_set_free(struct fs_model_set *set)
{
    while (set->opened) {
        struct fs_opened *opened = set->opened;

        fs_set_take_out(set, opened);
        fs_set_close(set, opened);
    }
    for (size_t i = 0; i < set->n_ids; i++)
        if (set->by_id[i])
            fs_set_free_entry(set->by_id[i]);
    free(set->by_id);
    free(set->by_path);
    forget_places(set);
    free(set->seen);
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->lock);
    pthread_mutex_destroy(&set->listing);
    free(set);
}
