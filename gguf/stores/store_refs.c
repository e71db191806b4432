/*
 * Stores where a small file lists the files of a model: llama.cpp's cache before March 2026, and
 * ramalama's store.
 *
 *   llama.cpp  manifest=ORG=NAME=TAG.json           ORG_NAME_FILE
 *   ramalama   TRANSPORT/ORG/NAME/refs/TAG[.json]   TRANSPORT/ORG/NAME/snapshots/HASH/FILE
 */
#include "gguf/stores/store_parts.h"
#include "gguf/support/strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool tagged_key(const char *name, char *out, size_t room)
{
    return (size_t)snprintf(out, room, "%s", name) < room &&
           (out[0] == '\0' || gguf_store_add_tag(out, room));
}

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
static int flat_index(struct gguf_store_search *search, struct gguf_model_list *index)
{
    const struct gguf_folder *folder = gguf_store_list_folder(search, search->root);

    for (size_t i = 0; i < folder->n_entries; i++) {
        const char *file = folder->entries[i].name, *ending = strstr(file, ENDING);
        const bool is_partial = ending && gguf_store_is_partial(ending);
        char *name = NULL;

        if (gguf_text_starts_with(file, MANIFEST))
            name = name_of_manifest(file);
        else if (is_partial ||
                 (ending && ending[strlen(ENDING)] == '\0' && !has_manifest(folder, file)))
            name = strndup(file, (size_t)(ending - file));
        if (name) {
            struct gguf_listed_model *entry =
                gguf_store_add(index, name, gguf_store_text("%s/%s", search->root, file));

            if (entry)
                entry->is_partial = is_partial;
        }
    }
    return 0;
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
                     ? gguf_store_text("%s/%s_%s", search->root, repository, flat)
                     : NULL;

    free(flat);
    free(repository);
    return path;
}

static int flat_load(struct gguf_store_search *search, const struct gguf_listed_model *entry,
                     const char *wanted)
{
    const bool has_manifest = gguf_text_starts_with(strrchr(entry->path, '/') + 1, MANIFEST);
    struct gguf_listed_model *model =
        gguf_store_add(search->found, strdup(entry->name), strdup(entry->path));
    cJSON *manifest;
    char *path;

    (void)wanted;
    if (!model)
        return -ENOMEM;
    model->is_partial = entry->is_partial;
    if (!has_manifest) {
        gguf_store_check_file(search, model, &model->path);
        return 0;
    }
    manifest = gguf_store_read_json(search, entry->path);
    if (!manifest)
        gguf_store_refuse_manifest(model, entry->path, errno);
    free(model->path);
    model->path = path_in_flat(search, entry->name, manifest, "ggufFile");
    path = path_in_flat(search, entry->name, manifest, "mmprojFile");
    cJSON_Delete(manifest);
    if (model->path)
        gguf_store_check_file(search, model, &model->path);
    else
        gguf_store_refuse(model, "its manifest %s names no file", entry->path);
    return path ? gguf_store_add_extra(model, "mmproj.gguf", path) : 0;
}

#define FLAT_PLACES                                                                                \
    (const struct gguf_store_place[])                                                              \
    {                                                                                              \
        {"LLAMA_CACHE", ""}, {"XDG_CACHE_HOME", "/llama.cpp"}, {"HOME", "/.cache/llama.cpp"},      \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

const struct gguf_store_kind gguf_flat_store = {
    .prefix = "hf:",
    .form = "ORG/NAME[:TAG]",
    .places = FLAT_PLACES,
    .is_confined = true,
    .key = tagged_key,
    .index = flat_index,
    .load = flat_load,
};

const struct gguf_store_kind gguf_llama_flat_store = {
    .prefix = "llamacpp:",
    .form = "ORG/NAME[:TAG]",
    .places = FLAT_PLACES,
    .is_confined = true,
    .key = tagged_key,
    .index = flat_index,
    .load = flat_load,
};

/* ---- ramalama ---- */

#define REFS "/refs"

enum { MAX_DEPTH = 8 };

/* Add the models in a folder below the root, and in its folders. */
static int walk_refs(struct gguf_store_search *search, const char *path, int depth,
                     struct gguf_model_list *index)
{
    char *path_of_folder = gguf_store_text("%s%s", search->root, path);
    const size_t n = strlen(path);
    const bool is_refs = n > 5 && strcmp(path + n - 5, REFS) == 0;
    struct gguf_folder folder = {0};
    const int result = path_of_folder
                           ? search->access->list(search->access->argument, path_of_folder, &folder)
                           : -ENOMEM;
    const bool has_refs = result == 0 && gguf_store_entry(&folder, &REFS[1]);

    for (size_t i = 0; result == 0 && i < folder.n_entries; i++) {
        const char *name = folder.entries[i].name;
        const size_t length = strlen(name);
        const bool is_json = length > 5 && strcmp(name + length - 5, ".json") == 0;
        char *below =
            is_refs ? gguf_store_text("%s.json", name) : gguf_store_text("%s/%s", path, name);

        if (below && is_refs && !gguf_store_entry(&folder, below)) /* the newer form */
            gguf_store_add(index,
                           gguf_store_text("%.*s:%.*s", (int)n - 6, path + 1,
                                           (int)(is_json ? length - 5 : length), name),
                           gguf_store_text("%s/%s", path_of_folder, name));
        else if (below && !is_refs && folder.entries[i].is_folder && depth < MAX_DEPTH &&
                 (!has_refs || strcmp(name, &REFS[1]) == 0))
            walk_refs(search, below, depth + 1, index);
        free(below);
    }
    gguf_folder_free(&folder);
    free(path_of_folder);
    return result;
}

static int ramalama_index(struct gguf_store_search *search, struct gguf_model_list *index)
{
    return walk_refs(search, "", 0, index);
}

/* Return the path of FOLDER/NAME below a repository, or NULL if it would lead out of it. */
static char *path_below(const char *repository, size_t length, const char *folder, const char *hash,
                        const char *name)
{
    char *safe_hash = replace(hash, strlen(hash), ':', '-');
    char *path = NULL;

    if (safe_hash && safe_hash[0] != '\0' && strspn(safe_hash, "-_") == 0 &&
        !strpbrk(safe_hash, "/.") && name[0] != '.' && !strstr(name, "/."))
        path = gguf_store_text("%.*s/%s/%s%s%s", (int)length, repository, folder, safe_hash,
                               name[0] != '\0' ? "/" : "", name);
    free(safe_hash);
    return path;
}

/* Add a file of a reference to its model. `type` is as in either form of the file. */
static int add_ref_file(struct gguf_store_search *search, struct gguf_listed_model *model,
                        const char *reference, const char *snapshot, const char *type,
                        const char *name, const char *hash)
{
    const size_t length = (size_t)(strstr(strrchr(reference, '/') - 5, "/refs/") - reference);
    const bool is_model = strcmp(type, "gguf") == 0 || strcmp(type, "model") == 0;
    const bool is_text = strcmp(type, "chat_template") == 0 || strcmp(type, "chat") == 0;
    char *path;

    if (gguf_text_starts_with(type, "safetensor"))
        gguf_store_refuse(model, "is a model in safetensors files, which ggufs does not read");
    if (!is_text && strcmp(type, "mmproj") != 0 && (!is_model || model->path))
        return 0;
    path = path_below(reference, length, "snapshots", snapshot, name);
    if (!path) {
        gguf_store_refuse(model, "its reference %s has a name or hash of another form", reference);
        return 0;
    }
    if (!is_model)
        return gguf_store_add_extra(model, is_text ? "template" : "mmproj.gguf", path);
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
    return 0;
}

static int ramalama_load(struct gguf_store_search *search, const struct gguf_listed_model *entry,
                         const char *wanted)
{
    struct gguf_listed_model *model =
        gguf_store_add(search->found, strdup(entry->name), strdup(entry->path));
    char *text = gguf_store_read(search, entry->path), *rest = text, *line;
    cJSON *json = text && text[0] == '{' ? cJSON_Parse(text) : NULL;
    const cJSON *file;
    const char *hash;
    int result = model ? 0 : -ENOMEM;

    (void)wanted;
    if (!text || (text[0] == '{' && !json))
        gguf_store_refuse_manifest(model, entry->path, text ? EBADMSG : errno);
    if (model) {
        free(model->path);
        model->path = NULL;
    }
    cJSON_ArrayForEach(file, cJSON_GetObjectItemCaseSensitive(json, "files"))
    {
        if (result == 0)
            result = add_ref_file(search, model, entry->path, gguf_store_string(json, "hash"),
                                  gguf_store_string(file, "type"), gguf_store_string(file, "name"),
                                  gguf_store_string(file, "hash"));
    }
    hash = !json ? gguf_store_next_name(&rest) : NULL;
    while (hash && result == 0 && (line = gguf_store_next_name(&rest)) != NULL) {
        char *type = strstr(line, "---");

        if (type) {
            *type = '\0';
            result = add_ref_file(search, model, entry->path, hash, type + 3, line, "");
        }
    }
    if (model && !model->path)
        gguf_store_refuse(model, "its reference %s names no model file", entry->path);
    cJSON_Delete(json);
    free(text);
    return result;
}

const struct gguf_store_kind gguf_ramalama_store = {
    .prefix = "ramalama:",
    .form = "TRANSPORT/ORG/NAME[:TAG]",
    .places = (const struct gguf_store_place[]){{"XDG_DATA_HOME", "/ramalama/store"},
                                                {"HOME", "/.local/share/ramalama/store"},
                                                {NULL, "/var/lib/ramalama/store"},
                                                {NULL, NULL}},
    .inside = "store",
    .key = tagged_key,
    .index = ramalama_index,
    .load = ramalama_load,
};
