#include "fs/tree/core/open_images.h"

#include <errno.h>
#include <stdlib.h>

enum state { NOT_BUILT, BEING_BUILT, BUILT };

struct fs_open_image {
    struct fs_image image; /* must come first: callers hold a pointer to it */
    fs_node_index node;
    enum state state;
    uint64_t n_users;           /* users that hold, build or wait for it, plus one if it is kept */
    struct fs_open_image *next; /* in the bucket */
};

static struct fs_open_image **bucket_of(struct fs_open_images *images, fs_node_index node)
{
    return &images->buckets[node % FS_OPEN_IMAGES_BUCKETS];
}

void fs_open_images_begin(struct fs_open_images *images)
{
    *images = (struct fs_open_images){0};
    pthread_mutex_init(&images->lock, NULL);
    pthread_cond_init(&images->changed, NULL);
}

void fs_open_images_end(struct fs_open_images *images)
{
    for (size_t i = 0; i < FS_OPEN_IMAGES_BUCKETS; i++) {
        while (images->buckets[i]) {
            struct fs_open_image *entry = images->buckets[i];

            images->buckets[i] = entry->next;
            fs_image_free(&entry->image);
            free(entry);
        }
    }
    pthread_cond_destroy(&images->changed);
    pthread_mutex_destroy(&images->lock);
}

/* Call the functions below with the lock held. */

/* Find or add the entry of a node, and count one user more. Returns NULL if out of memory. */
static struct fs_open_image *use(struct fs_open_images *images, fs_node_index node)
{
    struct fs_open_image **bucket = bucket_of(images, node);
    struct fs_open_image *entry = *bucket;

    while (entry && entry->node != node)
        entry = entry->next;
    if (!entry) {
        entry = calloc(1, sizeof *entry);
        if (!entry)
            return NULL;
        entry->node = node;
        entry->next = *bucket;
        *bucket = entry;
    }
    entry->n_users++;
    return entry;
}

/* Count one user less. If it was the last, returns the entry, to be freed without the lock. */
static struct fs_open_image *drop(struct fs_open_images *images, struct fs_open_image *entry)
{
    struct fs_open_image **link = bucket_of(images, entry->node);

    if (--entry->n_users > 0)
        return NULL;
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    return entry;
}

static void free_entry(struct fs_open_image *entry)
{
    if (entry)
        fs_image_free(&entry->image);
    free(entry);
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

void fs_open_images_put(struct fs_open_images *images, const struct fs_image *image)
{
    struct fs_open_image *entry = (struct fs_open_image *)(uintptr_t)image, *unused;

    pthread_mutex_lock(&images->lock);
    unused = drop(images, entry);
    pthread_mutex_unlock(&images->lock);
    free_entry(unused);
}
