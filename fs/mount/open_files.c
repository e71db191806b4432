#include "fs/mount/open_files.h"

#include <errno.h>
#include <stdlib.h>

static struct fs_open_file **bucket_of(struct fs_open_files *files, fs_node_index index)
{
    return &files->buckets[index % FS_OPEN_FILES_BUCKETS];
}

/* The file if it is open, with one more user; else NULL. */
static struct fs_open_file *use(struct fs_open_files *files, fs_node_index index)
{
    struct fs_open_file *file = *bucket_of(files, index);

    while (file && file->index != index)
        file = file->next;
    if (file)
        file->n_users++;
    return file;
}

static void free_file(struct fs_open_file *file)
{
    fs_image_free(&file->image);
    free(file);
}

/* Adds a file that was made while others were not kept waiting, unless somebody was faster. */
static struct fs_open_file *add(struct fs_open_files *files, struct fs_open_file *made)
{
    struct fs_open_file **bucket = bucket_of(files, made->index);
    struct fs_open_file *file = use(files, made->index);

    if (file) {
        free_file(made);
        return file;
    }
    made->n_users = 1;
    made->next = *bucket;
    *bucket = made;
    return made;
}

int fs_open_files_get(struct fs_open_files *files, struct fs_tree *tree, fs_node_index index,
                      struct fs_open_file **file)
{
    struct fs_open_file *made;
    int result;

    pthread_mutex_lock(&files->lock);
    *file = use(files, index);
    pthread_mutex_unlock(&files->lock);
    if (*file)
        return 0;

    made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->index = index;
    result = fs_tree_open(tree, index, &made->image);
    if (result < 0) {
        free(made);
        return result;
    }
    pthread_mutex_lock(&files->lock);
    *file = add(files, made);
    pthread_mutex_unlock(&files->lock);
    return 0;
}

void fs_open_files_put(struct fs_open_files *files, struct fs_open_file *file)
{
    struct fs_open_file **link = bucket_of(files, file->index);
    bool is_last;

    pthread_mutex_lock(&files->lock);
    is_last = --file->n_users == 0;
    if (is_last) {
        while (*link != file)
            link = &(*link)->next;
        *link = file->next;
    }
    pthread_mutex_unlock(&files->lock);
    if (is_last)
        free_file(file);
}

void fs_open_files_end(struct fs_open_files *files)
{
    for (size_t i = 0; i < FS_OPEN_FILES_BUCKETS; i++) {
        while (files->buckets[i]) {
            struct fs_open_file *file = files->buckets[i];

            files->buckets[i] = file->next;
            free_file(file);
        }
    }
    pthread_mutex_destroy(&files->lock);
}
