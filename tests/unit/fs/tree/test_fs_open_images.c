/* Images of open files: shared by all users, built by one of them, with interruptible waiting. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "fs/tree/core/open_images.h"

/* Settings and counters of the builders below. */
struct work {
    atomic_int n_built;
    int result;
    sem_t begun, may_end; /* posted and awaited by build_slowly() */
};

static int build(void *user, fs_node_index node, const struct fs_interrupt *interrupt,
                 struct fs_image *image)
{
    struct work *work = user;

    atomic_fetch_add(&work->n_built, 1);
    fs_image_begin(image, NULL);
    return work->result < 0 ? work->result : fs_image_add_zeros(image, 100 + (uint64_t)node);
}

static int build_slowly(void *user, fs_node_index node, const struct fs_interrupt *interrupt,
                        struct fs_image *image)
{
    struct work *work = user;

    sem_post(&work->begun);
    while (sem_wait(&work->may_end) != 0)
        ;
    return build(user, node, interrupt, image);
}

Test(fs_open_images, shared_until_the_last_put)
{
    struct fs_open_images images;
    const struct fs_image *first, *second, *other;
    struct work work = {0};

    fs_open_images_begin(&images);
    cr_assert_eq(fs_open_images_get(&images, 1, build, &work, NULL, &first), 0);
    cr_assert_eq(fs_open_images_get(&images, 1, build, &work, NULL, &second), 0);
    /* Another node. */
    cr_assert_eq(fs_open_images_get(&images, 257, build, &work, NULL, &other), 0);
    cr_expect_eq(first, second);
    cr_expect_eq(first->size_bytes, 101u);
    cr_expect_eq(other->size_bytes, 101u + 256);
    cr_expect_eq(work.n_built, 2);
    fs_open_images_put(&images, first);
    cr_expect_eq(second->size_bytes, 101u);
    fs_open_images_put(&images, second);
    cr_assert_eq(fs_open_images_get(&images, 1, build, &work, NULL, &first), 0);
    cr_expect_eq(work.n_built, 3);
    fs_open_images_end(&images);
}

Test(fs_open_images, a_failed_build_is_retried)
{
    struct fs_open_images images;
    const struct fs_image *image;
    struct work work = {.result = -EIO};

    fs_open_images_begin(&images);
    cr_expect_eq(fs_open_images_get(&images, 7, build, &work, NULL, &image), -EIO);
    work.result = 0;
    cr_expect_eq(fs_open_images_get(&images, 7, build, &work, NULL, &image), 0);
    fs_open_images_put(&images, image);
    fs_open_images_end(&images);
}

struct reader {
    struct fs_open_images *images;
    struct work *work;
    const struct fs_image *image;
    int result;
};

static void *get_slowly(void *argument)
{
    struct reader *reader = argument;

    reader->result =
        fs_open_images_get(reader->images, 3, build_slowly, reader->work, NULL, &reader->image);
    return NULL;
}

static bool is_interrupted(void *user)
{
    return true;
}

Test(fs_open_images, built_once_while_others_wait)
{
    enum { READERS = 6 };
    const struct fs_interrupt interrupt = {.check = is_interrupted, .user = NULL};
    struct fs_open_images images;
    struct reader readers[READERS];
    pthread_t threads[READERS];
    const struct fs_image *image;
    struct work work = {0};

    sem_init(&work.begun, 0, 0);
    sem_init(&work.may_end, 0, 0);
    fs_open_images_begin(&images);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.images = &images, .work = &work};
        cr_assert_eq(pthread_create(&threads[i], NULL, get_slowly, &readers[i]), 0);
    }
    while (sem_wait(&work.begun) != 0)
        ;
    /* An interrupted caller does not wait for the image. Other images are available meanwhile. */
    cr_expect_eq(fs_open_images_get(&images, 3, build, &work, &interrupt, &image), -EINTR);
    cr_expect_eq(fs_open_images_get(&images, 4, build, &work, NULL, &image), 0);
    cr_expect_eq(work.n_built, 1);
    sem_post(&work.may_end);
    for (int i = 0; i < READERS; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
        cr_expect_eq(readers[i].result, 0);
        cr_expect_eq(readers[i].image, readers[0].image);
    }
    cr_expect_eq(work.n_built, 2);
    fs_open_images_end(&images);
    sem_destroy(&work.begun);
    sem_destroy(&work.may_end);
}
