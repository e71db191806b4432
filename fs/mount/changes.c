#include "fs/mount/changes.h"

#include "gguf/support/thread_start.h"

void fs_changes_begin(struct fs_changes *changes, const struct fs_tree *tree, uint64_t first_inode,
                      struct fuse_session *session)
{
    *changes = (struct fs_changes){.tree = tree,
                                   .first_inode = first_inode,
                                   .session = session,
                                   .generation = gguf_model_generation(tree->model),
                                   .modified = gguf_model_modified(tree->model)};
    pthread_mutex_init(&changes->lock, NULL);
    pthread_cond_init(&changes->wake, NULL);
}

void fs_changes_end(struct fs_changes *changes)
{
    pthread_cond_destroy(&changes->wake);
    pthread_mutex_destroy(&changes->lock);
}

/* Call it without the lock: the kernel may first wait for answers of other threads. */
static void notify_kernel(const struct fs_changes *changes)
{
    /* Inodes that the kernel does not know are skipped. */
    for (fs_node_index i = 0; i < changes->tree->nodes.count; i++)
        fuse_lowlevel_notify_inval_inode(changes->session, changes->first_inode + i, 0, 0);
}

static void *run(void *argument)
{
    struct fs_changes *changes = argument;
    const struct gguf_model *model = changes->tree->model;

    pthread_mutex_lock(&changes->lock);
    while (!changes->should_stop) {
        const unsigned generation = gguf_model_generation(model);

        if (generation == changes->generation) {
            pthread_cond_wait(&changes->wake, &changes->lock);
            continue;
        }
        changes->modified = gguf_model_modified(model);
        pthread_mutex_unlock(&changes->lock);
        notify_kernel(changes);
        pthread_mutex_lock(&changes->lock);
        changes->generation = generation;
    }
    pthread_mutex_unlock(&changes->lock);
    return NULL;
}

void fs_changes_stop(struct fs_changes *changes)
{
    bool is_started;

    pthread_mutex_lock(&changes->lock);
    changes->should_stop = true;
    is_started = changes->is_started;
    pthread_cond_signal(&changes->wake);
    pthread_mutex_unlock(&changes->lock);
    if (is_started)
        pthread_join(changes->thread, NULL);
}

bool fs_changes_notice(struct fs_changes *changes)
{
    const unsigned generation = gguf_model_generation(changes->tree->model);
    bool is_new;

    pthread_mutex_lock(&changes->lock);
    is_new = generation != changes->generation;
    if (is_new && !changes->is_started && !changes->should_stop)
        changes->is_started = gguf_thread_start(&changes->thread, run, changes) == 0;
    else if (is_new)
        pthread_cond_signal(&changes->wake);
    pthread_mutex_unlock(&changes->lock);
    return is_new;
}

struct timespec fs_changes_modified(struct fs_changes *changes)
{
    struct timespec modified;

    pthread_mutex_lock(&changes->lock);
    modified = changes->modified;
    pthread_mutex_unlock(&changes->lock);
    return modified;
}
