#include "fs/models/set_parts.h"
#include "gguf/support/arrays.h"
#include "gguf/support/strings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fs_set_free_entry(struct fs_entry *entry)
{
    gguf_listed_model_free(&entry->model);
    free(entry->target);
    free(entry);
}

static int compare_entries(const void *a, const void *b)
{
    const struct fs_entry *x = *(struct fs_entry *const *)a, *y = *(struct fs_entry *const *)b;
    const int order = strcmp(x->model.name, y->model.name);

    /* A folder keeps its name; of two models, the one whose file comes first; links do not. */
    if (order != 0 || x->is_folder || y->is_folder)
        return order != 0 ? order : y->is_folder - x->is_folder;
    if (!x->target != !y->target)
        return x->target ? 1 : -1;
    return strcmp(x->model.path ? x->model.path : "", y->model.path ? y->model.path : "");
}

/* Add an entry, which takes the model. */
static int add_entry(struct fs_listing *listing, struct gguf_listed_model *model, bool is_folder)
{
    struct fs_entry *entry;

    if (gguf_reserve(&listing->entries, &listing->room, listing->n + 1, sizeof entry) < 0 ||
        !(entry = calloc(1, sizeof *entry)))
        return -ENOMEM;
    entry->model = *model;
    entry->is_folder = is_folder;
    *model = (struct gguf_listed_model){0};
    listing->entries[listing->n++] = entry;
    return 0;
}

/* Add the folders of a path that the one before it does not have. */
static int add_folders(struct fs_listing *listing, const char *path, const char *before)
{
    int result = 0;

    for (const char *slash = strchr(path, '/'); result == 0 && slash;
         slash = strchr(slash + 1, '/')) {
        const size_t length = (size_t)(slash - path);
        struct gguf_listed_model folder = {0};

        if (strncmp(path, before, length + 1) == 0)
            continue;
        folder.name = strndup(path, length);
        result = folder.name ? add_entry(listing, &folder, true) : -ENOMEM;
        free(folder.name);
    }
    return result;
}

const char *const fs_root_files[FS_N_ROOT_FILES] = {"models.json", "models.tsv", "presets.ini"};

bool fs_is_root_file(const char *name)
{
    bool is_one = false;

    for (size_t i = 0; i < FS_N_ROOT_FILES; i++)
        is_one |= strcmp(name, fs_root_files[i]) == 0;
    return is_one;
}

static int rename_entry(struct fs_entry *entry, size_t number)
{
    char *name = gguf_text("%s~%zu", entry->model.name, number);

    if (!name)
        return -ENOMEM;
    free(entry->model.name);
    entry->model.name = name;
    return 0;
}

/* Give models of one name different ones, NAME~2 …, and drop second folders of one name. */
static int separate(struct fs_listing *listing)
{
    bool is_clash = true;

    while (is_clash) {
        size_t n = 0, n_equal = 1;

        is_clash = false;
        if (listing->n > 0)
            qsort(listing->entries, listing->n, sizeof(struct fs_entry *), compare_entries);
        for (size_t i = 0; i < listing->n; i++) {
            struct fs_entry *entry = listing->entries[i];
            const struct fs_entry *first = n > 0 ? listing->entries[n - n_equal] : NULL;

            if (!first || strcmp(first->model.name, entry->model.name) != 0) {
                n_equal = 1;
            } else if (entry->is_folder) {
                fs_set_free_entry(entry);
                continue;
            } else if (rename_entry(entry, ++n_equal) < 0) {
                return -ENOMEM;
            } else {
                is_clash = true;
            }
            listing->entries[n++] = entry;
        }
        listing->n = n;
    }
    return 0;
}

/*
 * Add a directory with links for each model that can be opened, as llama-server's --models-dir and
 * LM Studio want them: llama-server/NAME, where '_' stands for '/' and what would end a section or
 * a value of presets.ini.
 */
static int add_links(struct fs_listing *listing)
{
    const size_t n = listing->n;
    int result = 0;

    for (size_t i = 0; i < n && result == 0; i++) {
        const struct gguf_listed_model *model = &listing->entries[i]->model;
        struct gguf_listed_model links = {.file = model->file};
        char *target;

        if (!model->path || model->error || model->is_partial)
            continue;
        links.name = gguf_text(FS_LLAMA_SERVER "/%s", model->name);
        for (char *c = links.name ? links.name + strlen(FS_LLAMA_SERVER "/") : NULL; c && *c; c++)
            if (strchr("/];#", *c))
                *c = '_';
        target = strdup(model->name);
        result = target && links.name ? add_folders(listing, links.name, "") : -ENOMEM;
        if (result == 0)
            result = add_entry(listing, &links, false);
        if (result == 0)
            listing->entries[listing->n - 1]->target = target;
        else
            free(target);
        free(links.name);
    }
    return result;
}

int fs_set_make_listing(struct gguf_model_list *list, struct fs_listing *listing)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < list->n_models; i++) {
        const size_t n = listing->n;

        result = add_folders(listing, list->models[i].name,
                             n > 0 ? listing->entries[n - 1]->model.name : "");
        if (result == 0)
            result = add_entry(listing, &list->models[i], false);
        if (result == 0 && fs_is_root_file(listing->entries[listing->n - 1]->model.name))
            result = rename_entry(listing->entries[listing->n - 1], 2);
    }
    if (result == 0)
        result = separate(listing);
    if (result == 0)
        result = add_links(listing);
    return result == 0 ? separate(listing) : result;
}

static bool are_same_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool fs_set_is_same_file(const struct gguf_file_status *a, const struct gguf_file_status *b)
{
    return a->inode == 0 || b->inode == 0 || memcmp(a, b, sizeof *a) == 0;
}

bool fs_set_is_same(const struct fs_entry *entry, const struct fs_entry *listed)
{
    const struct gguf_listed_model *a = &entry->model, *b = &listed->model;

    if (entry->is_folder || listed->is_folder)
        return entry->is_folder && listed->is_folder;
    if (entry->is_changed || !are_same_texts(entry->target, listed->target) ||
        !are_same_texts(a->path, b->path) || !are_same_texts(a->place, b->place) ||
        !are_same_texts(a->error, b->error) || a->is_partial != b->is_partial ||
        a->n_extras != b->n_extras)
        return false;
    for (size_t i = 0; i < a->n_extras; i++)
        if (strcmp(a->extras[i].name, b->extras[i].name) != 0 ||
            strcmp(a->extras[i].path, b->extras[i].path) != 0)
            return false;
    return a->is_partial ||
           (a->size_bytes == b->size_bytes && fs_set_is_same_file(&a->file, &b->file));
}
