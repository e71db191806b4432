/*
 * The images of open files. A file has at most one image, shared by all its open handles; the first
 * opener builds it while the others wait. Images that take long to build are kept when the file is
 * closed. Any thread may call these functions.
 */
#pragma once

#include "fs/tree/core/image.h"
#include "fs/tree/core/interrupt.h"
#include "fs/tree/core/nodes.h"

#include <pthread.h>

struct fs_open_images {
    void *tree; /* of tsearch(3), by node */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an image was built, or building was given up */
};

/* Build the image of a node. Returns 0 or a negative errno; then the caller frees it. */
typedef int fs_image_builder(void *user, fs_node_index node, const struct fs_interrupt *interrupt,
                             struct fs_image *image);

void fs_open_images_begin(struct fs_open_images *images);

/* Free all images, including those still in use. */
void fs_open_images_end(struct fs_open_images *images);

/*
 * Get the image of a node, built by `build` if nobody has it open. Give it back with
 * fs_open_images_put(). Returns 0, -ENOMEM, -EINTR if interrupted, or the error of `build`.
 */
int fs_open_images_get(struct fs_open_images *images, fs_node_index node, fs_image_builder *build,
                       void *user, const struct fs_interrupt *interrupt,
                       const struct fs_image **image);

/* Get an image, which is open already, once more. */
void fs_open_images_hold(struct fs_open_images *images, const struct fs_image *image);
void fs_open_images_put(struct fs_open_images *images, const struct fs_image *image);
