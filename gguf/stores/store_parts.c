#include "gguf/stores/store_parts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A manifest of 2,000 layers has 500 KB; Ollama's image models have more. */
#define MAX_JSON_BYTES ((uint64_t)16 << 20)
/* Licenses, projectors and adapters of a model. */
enum { MAX_EXTRAS = 1000 };

bool gguf_is_safe(const char *path)
{
    bool is_start = true;

    for (const char *c = path; *c != '\0'; c++) {
        if ((!isalnum((unsigned char)*c) && !strchr("_-./:@=~+ ", *c)) ||
            (is_start && strchr("./", *c)))
            return false;
        is_start = *c == '/';
    }
    return !is_start;
}

void gguf_append_name(char *list, size_t room, const char *name, const char *mark)
{
    const size_t length = strlen(list);

    if (gguf_string_ends_with(gguf_string_of(list), ", ..."))
        return;
    if (length + strlen(name) + strlen(mark) + sizeof ", , ..." > room)
        name = mark = "...";
    snprintf(list + length, room - length, "%s%s%s", length > 0 ? ", " : "", name,
             name == mark ? "" : mark);
}

char *gguf_store_add_tag(char *name)
{
    const char *base = name ? gguf_base_name(name) : "";
    char *longer;

    if (!name || name[0] == '\0' || strchr(base, ':'))
        return name;
    longer = base[0] == '\0' ? NULL : gguf_text("%s:latest", name);
    free(name);
    return longer;
}

char *gguf_store_read(const struct gguf_store_access *access, char *path)
{
    const int fd = path ? access->open(access->argument, path) : -ENOMEM;
    struct gguf_file_status status;
    char *text = NULL;
    ssize_t n = -1;

    free(path);
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

cJSON *gguf_store_read_json(const struct gguf_store_access *access, char *path)
{
    char *text = gguf_store_read(access, path);
    cJSON *json = text ? cJSON_Parse(text) : NULL;

    if (text && !json)
        errno = EBADMSG;
    free(text);
    return json;
}

const char *gguf_store_string(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text ? text : "";
}

struct gguf_listed_model *gguf_store_begin(struct gguf_store_search *search,
                                           const struct gguf_listed_model *entry)
{
    struct gguf_listed_model *model = gguf_model_list_add(search->found, strdup(entry->name), NULL);

    if (model && entry->path) {
        model->place = strdup(entry->path);
        search->access->status(search->access->argument, entry->path, &model->place_status);
    }
    return model;
}

void gguf_store_add_extra(struct gguf_store_search *search, struct gguf_listed_model *model,
                          const char *name, char *path)
{
    const size_t stem = strcspn(name, ".");
    size_t n_same = 1;
    char *numbered;

    for (size_t i = 0; i < model->n_extras; i++)
        n_same += strncmp(model->extras[i].name, name, stem) == 0;
    numbered = n_same > 1 ? gguf_text("%.*s-%zu%s", (int)stem, name, n_same, name + stem) : NULL;
    if (model->n_extras < MAX_EXTRAS) {
        gguf_model_list_add_file(search->found, model, numbered ? numbered : name, path);
    } else {
        gguf_listed_model_refuse(model, "has more than %d files besides the model", MAX_EXTRAS);
        free(path);
    }
    free(numbered);
}

void gguf_store_refuse_manifest(struct gguf_listed_model *model, const char *path, int error)
{
    gguf_listed_model_refuse(
        model, "its manifest %s cannot be used: %s", path,
        error == EBADMSG  ? "it is not JSON; download the model again"
        : error == EINVAL ? "it is not a regular file"
        : error == EFBIG  ? "it is too large, over 16 MiB; download the model again"
        : error == EXDEV  ? "it is a link out of the store; copy the file there if you trust it"
                          : strerror(error));
}

void gguf_store_check_file(struct gguf_store_search *search, struct gguf_listed_model *model,
                           char **path)
{
    const struct gguf_store_access *access = search->access;
    struct gguf_file_status status = {0};
    int result = *path ? access->status(access->argument, *path, &status) : -ENOMEM;

    for (size_t i = 0; result == -ENOENT && gguf_partial_endings[i]; i++) {
        char *other = gguf_text("%s%s", *path, gguf_partial_endings[i]);

        if (other && access->status(access->argument, other, &status) == 0) {
            char *missing = *path;

            *path = other;
            other = missing;
            model->is_partial = true;
            result = 0;
        }
        free(other);
    }
    if (!*path)
        search->found->error = -ENOMEM;
    else if (result == -ENOENT)
        gguf_listed_model_refuse(model, "its file %s is missing; download the model again", *path);
    if (model->size_bytes == 0)
        model->file = status;
    model->size_bytes += status.size_bytes;
}
