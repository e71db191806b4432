/*
 * Stores where a small file lists the files of a model: llama.cpp's cache before March 2026, and
 * ramalama's store.
 *
 *   llama.cpp  manifest=ORG=NAME=TAG.json           ORG_NAME_FILE
 *   ramalama   TRANSPORT/ORG/NAME/refs/TAG[.json]   TRANSPORT/ORG/NAME/snapshots/HASH/FILE
 */
#include "gguf/stores/store_parts.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- llama.cpp ---- */

#define MANIFEST "manifest="
#define ENDING   ".gguf"

/* Return a copy of a text with every `from` replaced by `to`, or NULL if out of memory. */
static char *replace(const char *text, size_t length, char from, char to)
{
    char *copy = strndup(text, length);

    for (char *c = copy; c && *c != '\0'; c++)
        if (*c == from)
            *c = to;
    return copy;
}

/* Return true if a manifest in the folder is for this file, ORG_NAME_FILE. */
static bool has_manifest(const struct gguf_folder *folder, const char *file)
{
    bool has = false;

    for (size_t i = 0; i < folder->n_entries && !has; i++) {
        const char *name = folder->entries[i].name, *end = strrchr(name, '=');
        const size_t n = strlen(MANIFEST);
        char *start = end && gguf_text_starts_with(name, MANIFEST) && end >= name + n
                          ? replace(name + n, (size_t)(end + 1 - name) - n, '=', '_')
                          : NULL;

        has = start && gguf_text_starts_with(file, start);
        free(start);
    }
    return has;
}

/* Return the name ORG/NAME:TAG of a manifest, or NULL. */
static char *name_of_manifest(const char *file)
{
    const char *repository = file + strlen(MANIFEST);
    const size_t length = strlen(repository);
    char *name = length > 5 ? replace(repository, length - strlen(".json"), '=', '/') : NULL;
    char *tag = name ? strrchr(name, '/') : NULL;

    if (tag && strchr(name, '/') != tag) {
        *tag = ':';
        return name;
    }
    free(name);
    return NULL;
}

/* Models with a manifest, other files, and unfinished downloads. */
static bool visit_flat(void *user, const struct gguf_thing *thing)
{
    struct gguf_store_search *search = user;
    const char *file = thing->entry ? thing->entry->name : NULL;
    const char *ending = file ? strstr(file, ENDING) : NULL;
    const bool is_partial = ending && gguf_partial_bytes(ending) > 0;
    char *name = NULL;

    if (!file)
        return false;
    if (gguf_text_starts_with(file, MANIFEST))
        name = name_of_manifest(file);
    else if (is_partial ||
             (ending && ending[strlen(ENDING)] == '\0' && !has_manifest(thing->folder, file)))
        name = strndup(file, (size_t)(ending - file));
    if (name)
        gguf_model_list_add(&search->index, name, strdup(thing->path));
    return false;
}

int gguf_flat_index(struct gguf_store_search *search)
{
    return gguf_walk(search->access, &search->index, search->root, visit_flat, search);
}

/* Return the path of a file that a manifest names, or NULL. */
static char *path_in_flat(const struct gguf_store_search *search, const char *model,
                          const cJSON *manifest, const char *member)
{
    const char *file =
        gguf_store_string(cJSON_GetObjectItemCaseSensitive(manifest, member), "rfilename");
    char *repository = replace(model, strcspn(model, ":"), '/', '_');
    char *flat = replace(file, strlen(file), '/', '_');
    char *path = repository && flat && file[0] != '\0'
                     ? gguf_text("%s/%s_%s", search->root, repository, flat)
                     : NULL;

    free(flat);
    free(repository);
    return path;
}

void gguf_flat_load(struct gguf_store_search *search, const struct gguf_listed_model *entry)
{
    struct gguf_listed_model *model = gguf_store_begin(search, entry);
    cJSON *manifest;
    char *projector;

    if (!model)
        return;
    if (gguf_text_starts_with(gguf_base_name(entry->path), MANIFEST)) {
        manifest = gguf_store_read_json(search->access, strdup(entry->path));
        if (!manifest)
            gguf_store_refuse_manifest(model, entry->path, errno);
        model->path = path_in_flat(search, entry->name, manifest, "ggufFile");
        projector = path_in_flat(search, entry->name, manifest, "mmprojFile");
        cJSON_Delete(manifest);
        if (!model->path)
            gguf_listed_model_refuse(model, "its manifest %s names no file", entry->path);
        if (projector)
            gguf_store_add_extra(search, model, "mmproj.gguf", projector);
    } else {
        model->is_partial = gguf_partial_bytes(entry->path) > 0;
        model->path = strdup(entry->path);
    }
    if (model->path)
        gguf_store_check_file(search, model, &model->path);
}

/* ---- ramalama ---- */

/* Go down to the references of each repository, …/refs/TAG. */
static bool visit_refs(void *user, const struct gguf_thing *thing)
{
    struct gguf_store_search *search = user;
    const char *name = thing->entry ? thing->entry->name : NULL;
    char *refs = name ? strstr(thing->below, "/refs/") : NULL, *newer, *ending;

    if (!name)
        return false;
    if (!refs)
        return thing->entry->is_folder &&
               (strcmp(name, "refs") == 0 || !gguf_folder_has(thing->folder, "refs"));
    newer = gguf_text("%s.json", name);
    if (newer && !gguf_folder_has(thing->folder, newer)) {
        ending = strrchr(refs, '.');
        if (ending && strcmp(ending, ".json") == 0)
            *ending = '\0';
        refs[0] = ':';
        memmove(refs + 1, refs + strlen("/refs/"), strlen(refs + strlen("/refs/")) + 1);
        gguf_model_list_add(&search->index, strdup(thing->below), strdup(thing->path));
    }
    free(newer);
    return false;
}

int gguf_ramalama_index(struct gguf_store_search *search)
{
    return gguf_walk(search->access, &search->index, search->root, visit_refs, search);
}

/* Return the path of FOLDER/NAME below a repository, or NULL if it would lead out of it. */
static char *path_below(const char *repository, size_t length, const char *folder, const char *hash,
                        const char *name)
{
    char *safe_hash = replace(hash, strlen(hash), ':', '-');
    char *path = NULL;

    if (safe_hash && safe_hash[0] != '\0' && strspn(safe_hash, "-_") == 0 &&
        !strpbrk(safe_hash, "/.") && name[0] != '.' && !strstr(name, "/."))
        path = gguf_text("%.*s/%s/%s%s%s", (int)length, repository, folder, safe_hash,
                         name[0] != '\0' ? "/" : "", name);
    free(safe_hash);
    return path;
}

/* Add a file of a reference to its model. `type` is as in either form of the file. */
static void add_ref_file(struct gguf_store_search *search, struct gguf_listed_model *model,
                         const char *reference, const char *snapshot, const char *type,
                         const char *name, const char *hash)
{
    const size_t length = (size_t)(strstr(strrchr(reference, '/') - 5, "/refs/") - reference);
    const bool is_model = strcmp(type, "gguf") == 0 || strcmp(type, "model") == 0;
    const bool is_text = strcmp(type, "chat_template") == 0 || strcmp(type, "chat") == 0;
    char *path;

    if (gguf_text_starts_with(type, "safetensor"))
        gguf_listed_model_refuse(model,
                                 "is a model in safetensors files, which ggufs does not read");
    if (!is_text && strcmp(type, "mmproj") != 0 && (!is_model || model->path))
        return;
    path = path_below(reference, length, "snapshots", snapshot, name);
    if (!path) {
        gguf_listed_model_refuse(model, "its reference %s has a name or hash of another form",
                                 reference);
        return;
    }
    if (!is_model) {
        gguf_store_add_extra(search, model, is_text ? "template" : "mmproj.gguf", path);
        return;
    }
    model->path = path;
    gguf_store_check_file(search, model, &model->path);
    if (model->error && hash[0] != '\0' &&
        (path = path_below(reference, length, "blobs", hash, "")) != NULL) {
        free(model->error);
        free(model->path);
        model->error = NULL;
        model->path = path;
        gguf_store_check_file(search, model, &model->path);
    }
}

void gguf_ramalama_load(struct gguf_store_search *search, const struct gguf_listed_model *entry)
{
    struct gguf_listed_model *model = gguf_store_begin(search, entry);
    char *text = gguf_store_read(search->access, strdup(entry->path)), *rest = text, *line;
    cJSON *json = text && text[0] == '{' ? cJSON_Parse(text) : NULL;
    const cJSON *file;
    const char *hash;

    if (!text || (text[0] == '{' && !json))
        gguf_store_refuse_manifest(model, entry->path, text ? EBADMSG : errno);
    cJSON_ArrayForEach(file, cJSON_GetObjectItemCaseSensitive(model ? json : NULL, "files"))
        add_ref_file(search, model, entry->path, gguf_store_string(json, "hash"),
                     gguf_store_string(file, "type"), gguf_store_string(file, "name"),
                     gguf_store_string(file, "hash"));
    hash = model && !json ? strsep(&rest, "\n") : NULL;
    while (hash && (line = strsep(&rest, "\n")) != NULL) {
        char *type = strstr(line, "---");

        if (!type)
            continue;
        *type = '\0';
        add_ref_file(search, model, entry->path, hash, type + 3, line, "");
    }
    if (model && !model->path)
        gguf_listed_model_refuse(model, "its reference %s names no model file", entry->path);
    cJSON_Delete(json);
    free(text);
}
