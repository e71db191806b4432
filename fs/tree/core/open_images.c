#include "fs/tree/core/open_images.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

enum state { NOT_BUILT, BEING_BUILT, BUILT };

struct fs_open_image {
    struct fs_image image; /* must come first: callers hold a pointer to it */
    fs_node_index node;
    enum state state;
    uint64_t n_users; /* users that hold, build or wait for it, plus one if it is kept */
};

static int compare_nodes(const void *a, const void *b)
{
    const struct fs_open_image *first = a, *second = b;

    return (first->node > second->node) - (first->node < second->node);
}

static void free_entry(void *entry)
{
    if (entry)
        fs_image_free(&((struct fs_open_image *)entry)->image);
    free(entry);
}

void fs_open_images_begin(struct fs_open_images *images)
{
    *images = (struct fs_open_images){0};
    pthread_mutex_init(&images->lock, NULL);
    pthread_cond_init(&images->changed, NULL);
}

void fs_open_images_end(struct fs_open_images *images)
{
    tdestroy(images->tree, free_entry);
    pthread_cond_destroy(&images->changed);
    pthread_mutex_destroy(&images->lock);
}

/* Call the functions below with the lock held. */

/* Find or add the entry of a node, and count one user more. Returns NULL if out of memory. */
static struct fs_open_image *use(struct fs_open_images *images, fs_node_index node)
{
    struct fs_open_image *made = calloc(1, sizeof *made), **found = NULL;

    if (made) {
        made->node = node;
        found = tsearch(made, &images->tree, compare_nodes);
    }
    if (!found || *found != made)
        free(made);
    if (found)
        (*found)->n_users++;
    return found ? *found : NULL;
}

/* Count one user less. If it was the last, returns the entry, to be freed without the lock. */
static struct fs_open_image *drop(struct fs_open_images *images, struct fs_open_image *entry)
{
    if (--entry->n_users > 0)
        return NULL;
    tdelete(entry, &images->tree, compare_nodes);
    return entry;
}

int fs_open_images_get(struct fs_open_images *images, fs_node_index node, fs_image_builder *build,
                       void *user, const struct fs_interrupt *interrupt,
                       const struct fs_image **image)
{
    struct fs_open_image *entry, *unused = NULL;
    int result = 0;

    pthread_mutex_lock(&images->lock);
    entry = use(images, node);
    if (!entry)
        result = -ENOMEM;
    while (result == 0 && entry->state == BEING_BUILT)
        result = fs_wait_for_change(&images->changed, &images->lock, interrupt);
    if (result == 0 && entry->state == NOT_BUILT) {
        entry->state = BEING_BUILT;
        pthread_mutex_unlock(&images->lock);
        result = build(user, node, interrupt, &entry->image);
        pthread_mutex_lock(&images->lock);
        entry->state = result == 0 ? BUILT : NOT_BUILT;
        entry->n_users += result == 0 && fs_image_is_worth_keeping(&entry->image);
        pthread_cond_broadcast(&images->changed);
    }
    if (result == 0)
        *image = &entry->image;
    else if (entry)
        unused = drop(images, entry);
    pthread_mutex_unlock(&images->lock);
    free_entry(unused);
    return result;
}

void fs_open_images_hold(struct fs_open_images *images, const struct fs_image *image)
{
    pthread_mutex_lock(&images->lock);
    ((struct fs_open_image *)(uintptr_t)image)->n_users++;
    pthread_mutex_unlock(&images->lock);
}

void fs_open_images_put(struct fs_open_images *images, const struct fs_image *image)
{
    struct fs_open_image *entry = (struct fs_open_image *)(uintptr_t)image, *unused;

    pthread_mutex_lock(&images->lock);
    unused = drop(images, entry);
    pthread_mutex_unlock(&images->lock);
    free_entry(unused);
}
