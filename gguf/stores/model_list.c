#include "gguf/stores/model_list.h"

#include "gguf/support/arrays.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- folders ---- */

void gguf_folder_free(struct gguf_folder *folder)
{
    free(folder->entries);
    free(folder->names);
    *folder = (struct gguf_folder){0};
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct gguf_folder_entry *)a)->name,
                  ((const struct gguf_folder_entry *)b)->name);
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
        if (asprintf(&target, "%s/%s", path, entry->name) >= 0) {
            access->status(access->argument, target, &entry->status); /* opening it says why not */
            free(target);
        }
        return;
    }
    entry->is_folder = S_ISDIR(status.st_mode);
    entry->status = (struct gguf_file_status){.device = status.st_dev,
                                              .inode = status.st_ino,
                                              .size_bytes = (uint64_t)status.st_size,
                                              .modified = status.st_mtim,
                                              .status_changed = status.st_ctim};
}

/* Read the names of a folder into `names`, after each a NUL, and before it 'd' for a folder. */
static int read_names(DIR *stream, struct gguf_buffer *names, size_t *n)
{
    const struct dirent *entry;
    int result = 0;

    *n = 0;
    errno = 0;
    while (result == 0 && (entry = readdir(stream))) {
        if (entry->d_name[0] != '.') {
            result = gguf_buffer_add(names, entry->d_type == DT_DIR ? "d" : "-", 1);
            if (result == 0)
                result = gguf_buffer_add(names, entry->d_name, strlen(entry->d_name) + 1);
            ++*n;
        }
        errno = 0;
    }
    return result == 0 ? -errno : result;
}

int gguf_folder_read(int descriptor, const struct gguf_store_access *access, const char *path,
                     struct gguf_folder *folder)
{
    struct gguf_buffer names = {0};
    DIR *stream = fdopendir(descriptor);
    size_t n = 0;
    int result = stream ? read_names(stream, &names, &n) : -errno;

    *folder = (struct gguf_folder){.names = names.bytes};
    if (result == 0 && n > 0)
        folder->entries = calloc(n, sizeof *folder->entries);
    if (n > 0 && result == 0 && !folder->entries)
        result = -ENOMEM;
    for (const char *name = names.bytes; result == 0 && folder->n_entries < n;
         name += strlen(name) + 1) {
        struct gguf_folder_entry *entry = &folder->entries[folder->n_entries++];

        entry->name = name + 1;
        entry->is_folder = name[0] == 'd';
        get_facts(descriptor, access, path, entry);
    }
    if (folder->n_entries > 0)
        qsort(folder->entries, folder->n_entries, sizeof *folder->entries, compare);
    if (stream)
        closedir(stream);
    else
        close(descriptor);
    if (result < 0)
        gguf_folder_free(folder);
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

    (void)argument;
    return descriptor < 0 ? -errno : gguf_keep_regular(descriptor);
}

static int get_status_directly(void *argument, const char *path, struct gguf_file_status *status)
{
    const int descriptor = open(path, O_PATH | O_CLOEXEC);

    (void)argument;
    return descriptor < 0 ? -errno : gguf_take_status(descriptor, status);
}

static int list_directly(void *argument, const char *path, struct gguf_folder *folder)
{
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)argument;
    return descriptor < 0 ? -errno
                          : gguf_folder_read(descriptor, &gguf_direct_access, path, folder);
}

const struct gguf_store_access gguf_direct_access = {
    .open = open_directly, .status = get_status_directly, .list = list_directly};

/* ---- lists ---- */

int gguf_model_list_add(struct gguf_model_list *list, const char *name, const char *path,
                        uint64_t size_bytes, const char *error)
{
    struct gguf_listed_model *grown =
        gguf_grow(list->models, &list->room, list->n_models + 1, sizeof *grown);
    struct gguf_listed_model *model;

    if (!grown)
        return -ENOMEM;
    list->models = grown;
    model = &grown[list->n_models++];
    *model = (struct gguf_listed_model){.name = strdup(name),
                                        .path = path ? strdup(path) : NULL,
                                        .error = error ? strdup(error) : NULL,
                                        .size_bytes = size_bytes};
    return model->name && (!path || model->path) && (!error || model->error) ? 0 : -ENOMEM;
}

int gguf_listed_model_add(struct gguf_listed_model *model, const char *name, const char *path)
{
    struct gguf_listed_file *grown =
        realloc(model->extras, (model->n_extras + 1) * sizeof *model->extras);

    if (!grown)
        return -ENOMEM;
    model->extras = grown;
    grown += model->n_extras++;
    *grown = (struct gguf_listed_file){strdup(name), strdup(path)};
    return grown->name && grown->path ? 0 : -ENOMEM;
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
