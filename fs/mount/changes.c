#include "fs/mount/changes.h"

void fs_changes_begin(struct fs_changes *changes, const struct fs_tree *tree, uint64_t first_inode,
                      struct fuse_session *session)
{
    *changes = (struct fs_changes){.tree = tree,
                                   .first_inode = first_inode,
                                   .session = session,
                                   .generation = gguf_model_generation(tree->model),
                                   .modified = gguf_model_modified(tree->model)};
    pthread_mutex_init(&changes->lock, NULL);
}

void fs_changes_end(struct fs_changes *changes)
{
    pthread_mutex_destroy(&changes->lock);
}

bool fs_changes_are_new(struct fs_changes *changes)
{
    bool are_new;

    pthread_mutex_lock(&changes->lock);
    are_new = gguf_model_generation(changes->tree->model) != changes->generation;
    pthread_mutex_unlock(&changes->lock);
    return are_new;
}

void fs_changes_report(struct fs_changes *changes)
{
    const struct gguf_model *model = changes->tree->model;
    unsigned generation;

    pthread_mutex_lock(&changes->lock);
    while (!changes->is_reporting &&
           (generation = gguf_model_generation(model)) != changes->generation) {
        changes->is_reporting = true;
        changes->modified = gguf_model_modified(model);
        pthread_mutex_unlock(&changes->lock);
        /* Inodes that the kernel does not know are skipped. */
        for (fs_node_index i = 0; i < changes->tree->nodes.count; i++)
            fuse_lowlevel_notify_inval_inode(changes->session, changes->first_inode + i, 0, 0);
        pthread_mutex_lock(&changes->lock);
        changes->is_reporting = false;
        changes->generation = generation;
    }
    pthread_mutex_unlock(&changes->lock);
}

struct timespec fs_changes_modified(struct fs_changes *changes)
{
    struct timespec modified;

    pthread_mutex_lock(&changes->lock);
    modified = changes->modified;
    pthread_mutex_unlock(&changes->lock);
    return modified;
}
