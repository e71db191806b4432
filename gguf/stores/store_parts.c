#include "gguf/stores/store_parts.h"
#include "gguf/support/safe_print.h"
#include "gguf/support/strings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A manifest of 2,000 layers has 500 KB; Ollama's image models have more. */
#define MAX_JSON_BYTES ((uint64_t)16 << 20)
/* Licenses, projectors and adapters of a model. */
enum { MAX_EXTRAS = 1000 };
/* No store has folders deeper below each other. */
enum { MAX_DEPTH = 8 };

/* ---- texts ---- */

char *gguf_store_text(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    return text;
}

char *gguf_store_next_line(char **rest)
{
    char *name = *rest;

    if (!name || *name == '\0')
        return NULL;
    *rest += strcspn(name, "\n");
    if (**rest == '\n')
        *(*rest)++ = '\0';
    return name;
}

char *gguf_store_add_tag(char *name)
{
    const char *slash = name ? strrchr(name, '/') : NULL;
    char *longer;

    if (!name || name[0] == '\0' || strchr(slash ? slash + 1 : name, ':'))
        return name;
    longer = slash && slash[1] == '\0' ? NULL : gguf_store_text("%s:latest", name);
    free(name);
    return longer;
}

/* ---- files ---- */

static int walk(struct gguf_store_search *search, const char *path, const char *below, int depth,
                gguf_store_visit *visit)
{
    struct gguf_folder folder = {0};
    const int result =
        path ? search->access->list(search->access->argument, path, &folder) : -ENOMEM;

    for (size_t i = 0; result == 0 && i < folder.n_entries; i++) {
        const struct gguf_folder_entry *entry = &folder.entries[i];
        char *full = gguf_store_text("%s/%s", path, entry->name);
        char *deeper = gguf_store_text("%s%s%s", below, below[0] != '\0' ? "/" : "", entry->name);

        if (full && deeper && depth < MAX_DEPTH &&
            visit(search, &(struct gguf_store_thing){&folder, entry, full, deeper}))
            walk(search, full, deeper, depth + 1, visit);
        free(deeper);
        free(full);
    }
    gguf_folder_free(&folder);
    return result;
}

int gguf_store_walk(struct gguf_store_search *search, const char *path, gguf_store_visit *visit)
{
    return walk(search, path, "", 0, visit);
}

const struct gguf_folder *gguf_store_list_folder(struct gguf_store_search *search, const char *path)
{
    if (path && search->listed && strcmp(search->listed, path) == 0)
        return &search->folder;
    gguf_folder_free(&search->folder);
    free(search->listed);
    search->listed = path ? strdup(path) : NULL;
    if (!path || search->access->list(search->access->argument, path, &search->folder) < 0)
        search->folder = (struct gguf_folder){0};
    return &search->folder;
}

static int compare_entry(const void *name, const void *entry)
{
    return strcmp(name, ((const struct gguf_folder_entry *)entry)->name);
}

const struct gguf_folder_entry *gguf_store_entry(const struct gguf_folder *folder, const char *name)
{
    return folder->n_entries > 0 ? bsearch(name, folder->entries, folder->n_entries,
                                           sizeof *folder->entries, compare_entry)
                                 : NULL;
}

char *gguf_store_read(const struct gguf_store_search *search, const char *path)
{
    const int fd = path ? search->access->open(search->access->argument, path) : -ENOMEM;
    struct gguf_file_status status;
    char *text = NULL;
    ssize_t n = -1;

    errno = fd < 0 ? -fd : 0;
    if (fd < 0)
        return NULL;
    if (gguf_get_file_status(fd, &status) == 0) {
        errno = status.size_bytes > MAX_JSON_BYTES ? EFBIG : 0;
        text = errno == 0 ? malloc(status.size_bytes + 1) : NULL;
        n = text ? pread(fd, text, status.size_bytes, 0) : -1;
    }
    if (n >= 0)
        text[n] = '\0';
    else if (text)
        free(text), text = NULL;
    close(fd);
    return text;
}

cJSON *gguf_store_read_json(const struct gguf_store_search *search, char *path)
{
    char *text = gguf_store_read(search, path);
    cJSON *json = text ? cJSON_Parse(text) : NULL;

    if (text && !json)
        errno = EBADMSG;
    free(text);
    free(path);
    return json;
}

const char *gguf_store_string(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text ? text : "";
}

/* ---- models ---- */

struct gguf_listed_model *gguf_store_add(struct gguf_model_list *list, char *name, char *path)
{
    struct gguf_listed_model *model = NULL;

    if (name && list->n_models < GGUF_STORE_MAX_MODELS &&
        gguf_model_list_add(list, name, path, 0, NULL) == 0)
        model = &list->models[list->n_models - 1];
    free(name);
    free(path);
    return model;
}

int gguf_store_add_extra(struct gguf_listed_model *model, const char *name, char *path)
{
    const size_t stem = strcspn(name, ".");
    char numbered[100];
    size_t n_same = 1;
    int result;

    for (size_t i = 0; i < model->n_extras; i++)
        n_same += strncmp(model->extras[i].name, name, stem) == 0;
    if (model->n_extras == MAX_EXTRAS) {
        gguf_store_refuse(model, "has more than %d files besides the model", MAX_EXTRAS);
        free(path);
        return 0;
    }
    snprintf(numbered, sizeof numbered, "%.*s-%zu%s", (int)stem, name, n_same, name + stem);
    result = path ? gguf_listed_model_add(model, n_same > 1 ? numbered : name, path) : -ENOMEM;
    free(path);
    return result;
}

void gguf_store_refuse(struct gguf_listed_model *model, const char *format, ...)
{
    va_list args;
    char *text;

    if (!model || model->error)
        return;
    va_start(args, format);
    if (vasprintf(&text, format, args) >= 0) {
        model->error = gguf_escaped(text);
        free(text);
    }
    va_end(args);
}

void gguf_store_refuse_manifest(struct gguf_listed_model *model, const char *path, int error)
{
    if (error == EBADMSG)
        gguf_store_refuse(model, "its manifest %s is not JSON; download the model again", path);
    else if (error == EINVAL)
        gguf_store_refuse(model, "its manifest %s is not a regular file", path);
    else
        gguf_store_refuse(model, "%s: %s", path, strerror(error));
}

cJSON *gguf_store_read_manifest(const struct gguf_store_search *search,
                                const struct gguf_listed_model *entry,
                                struct gguf_listed_model *model)
{
    cJSON *manifest = gguf_store_read_json(search, strdup(entry->path));

    if (!manifest)
        gguf_store_refuse_manifest(model, entry->path, errno);
    return manifest;
}

bool gguf_store_is_partial(const char *name)
{
    static const char *const endings[] = {"-partial", ".partial", ".incomplete",
                                          ".downloadInProgress"};

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (gguf_string_ends_with((struct gguf_string){name, strlen(name)}, endings[i]))
            return true;
    return false;
}

void gguf_store_check_file(struct gguf_store_search *search, struct gguf_listed_model *model,
                           char **path)
{
    char *slash = *path ? strrchr(*path, '/') : NULL;
    char *path_of_folder = slash ? strndup(*path, (size_t)(slash - *path)) : NULL;
    const struct gguf_folder *folder = gguf_store_list_folder(search, path_of_folder);
    const struct gguf_folder_entry *entry = slash ? gguf_store_entry(folder, slash + 1) : NULL;

    for (size_t i = 0; slash && !entry && i < folder->n_entries; i++) {
        const char *name = folder->entries[i].name;

        if (gguf_text_starts_with(name, slash + 1) && gguf_store_is_partial(name)) {
            entry = &folder->entries[i];
            model->is_partial = true;
            free(*path);
            *path = gguf_store_text("%s/%s", path_of_folder, name);
        }
    }
    if (entry && model->size_bytes == 0)
        model->file = entry->status;
    if (entry)
        model->size_bytes += entry->status.size_bytes;
    else if (slash)
        gguf_store_refuse(model, "its file %s is missing; download the model again", *path);
    free(path_of_folder);
}
