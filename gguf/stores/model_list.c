#include "gguf/stores/model_list.h"

#include "gguf/support/arrays.h"
#include "gguf/support/safe_print.h"
#include "gguf/support/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- folders ---- */

int gguf_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fill in what the system knows of an entry. */
static void get_facts(int folder, const struct gguf_store_access *access, const char *path,
                      struct gguf_folder_entry *entry)
{
    struct stat status = {0};
    char *target;

    if (entry->is_folder) /* it may be a mount that does not answer */
        return;
    if (fstatat(folder, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(status.st_mode)) {
        entry->is_link = true;
        target = gguf_text("%s/%s", path, entry->name);
        if (target) /* opening it says why not */
            access->status(access->argument, target, &entry->status);
        free(target);
        return;
    }
    entry->is_folder = S_ISDIR(status.st_mode);
    entry->status = (struct gguf_file_status){.device = status.st_dev,
                                              .inode = status.st_ino,
                                              .size_bytes = (uint64_t)status.st_size,
                                              .modified = status.st_mtim,
                                              .status_changed = status.st_ctim};
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct gguf_folder_entry *)a)->name,
                  ((const struct gguf_folder_entry *)b)->name);
}

int gguf_folder_read(int descriptor, const struct gguf_store_access *access, const char *path,
                     struct gguf_folder *folder)
{
    DIR *stream = fdopendir(descriptor);
    const struct dirent *entry;
    struct gguf_folder_entry *last;
    size_t room = 0;
    int result = stream ? 0 : -errno;

    *folder = (struct gguf_folder){0};
    for (errno = 0; result == 0 && (entry = readdir(stream)); errno = 0) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof last->name)
            continue;
        result = gguf_reserve(&folder->entries, &room, folder->n_entries + 1, sizeof *last);
        if (result < 0)
            break;
        last = &folder->entries[folder->n_entries++];
        *last = (struct gguf_folder_entry){.is_folder = entry->d_type == DT_DIR};
        strcpy(last->name, entry->d_name);
        get_facts(descriptor, access, path, last);
    }
    result = result == 0 ? -errno : result;
    if (folder->n_entries > 0)
        qsort(folder->entries, folder->n_entries, sizeof *last, compare_entries);
    if (result < 0) {
        free(folder->entries);
        *folder = (struct gguf_folder){0};
    }
    if (stream)
        closedir(stream);
    else
        close(descriptor);
    return result;
}

/* ---- access by system calls ---- */

int gguf_keep_regular(int descriptor)
{
    struct stat status;
    int result = fstat(descriptor, &status) < 0 ? -errno
                 : S_ISREG(status.st_mode)      ? descriptor
                 : S_ISDIR(status.st_mode)      ? -EISDIR
                                                : -EINVAL;

    if (result < 0)
        close(descriptor);
    return result;
}

int gguf_take_status(int descriptor, struct gguf_file_status *status)
{
    const int result = gguf_get_file_status(descriptor, status);

    close(descriptor);
    return result;
}

static int open_directly(void *argument, const char *path)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    return descriptor < 0 ? -errno : gguf_keep_regular(descriptor);
}

static int get_status_directly(void *argument, const char *path, struct gguf_file_status *status)
{
    const int descriptor = open(path, O_PATH | O_CLOEXEC);

    return descriptor < 0 ? -errno : gguf_take_status(descriptor, status);
}

static int list_directly(void *argument, const char *path, struct gguf_folder *folder)
{
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return descriptor < 0 ? -errno
                          : gguf_folder_read(descriptor, &gguf_direct_access, path, folder);
}

const struct gguf_store_access gguf_direct_access = {
    .open = open_directly, .status = get_status_directly, .list = list_directly};

/* ---- lists ---- */

struct gguf_listed_model *gguf_model_list_add(struct gguf_model_list *list, char *name, char *path)
{
    const bool is_full = list->n_models >= GGUF_MAX_LISTED_MODELS;
    struct gguf_listed_model *model;

    if (!name || is_full ||
        gguf_reserve(&list->models, &list->room, list->n_models + 1, sizeof *model) < 0) {
        list->error = is_full ? -E2BIG : -ENOMEM;
        free(name);
        free(path);
        return NULL;
    }
    model = &list->models[list->n_models++];
    *model = (struct gguf_listed_model){.name = name, .path = path};
    return model;
}

void gguf_model_list_add_file(struct gguf_model_list *list, struct gguf_listed_model *model,
                              const char *name, char *path)
{
    struct gguf_listed_file *grown =
        realloc(model->extras, (model->n_extras + 1) * sizeof *model->extras);
    char *copy = strdup(name);

    if (grown)
        model->extras = grown;
    if (grown && copy && path) {
        grown[model->n_extras++] = (struct gguf_listed_file){copy, path};
        return;
    }
    list->error = -ENOMEM;
    free(copy);
    free(path);
}

/* Return a text without bytes that are not for a terminal, or NULL if out of memory. */
static char *print_escaped(const char *format, va_list args)
{
    char *text, *escaped;

    if (vasprintf(&text, format, args) < 0)
        return NULL;
    escaped = gguf_escaped(text);
    free(text);
    return escaped;
}

void gguf_listed_model_refuse(struct gguf_listed_model *model, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (model && !model->error)
        model->error = print_escaped(format, args);
    va_end(args);
}

void gguf_listed_model_free(struct gguf_listed_model *model)
{
    for (size_t i = 0; i < model->n_extras; i++) {
        free(model->extras[i].name);
        free(model->extras[i].path);
    }
    free(model->extras);
    for (size_t i = 0; i < model->n_shards; i++)
        free(model->shards[i]);
    free(model->shards);
    free(model->name);
    free(model->path);
    free(model->place);
    free(model->error);
    *model = (struct gguf_listed_model){0};
}

void gguf_model_list_free(struct gguf_model_list *list)
{
    for (size_t i = 0; i < list->n_models; i++)
        gguf_listed_model_free(&list->models[i]);
    free(list->models);
    *list = (struct gguf_model_list){0};
}

int gguf_set_reason(char reason[GGUF_LIST_REASON_BYTES], int code, const char *format, ...)
{
    va_list args;
    char *escaped;

    va_start(args, format);
    escaped = print_escaped(format, args);
    va_end(args);
    snprintf(reason, GGUF_LIST_REASON_BYTES, "%s", escaped ? escaped : strerror(ENOMEM));
    free(escaped);
    return code;
}
