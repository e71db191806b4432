/* SHA256SUMS: its lines, which of them a read computes, errors, interrupts and changes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_checksums, .init = model_file_begin_test);

#define ID_OF_I8 24

static void add_bytes(struct gguf_writer *w, const char *name, const void *bytes, uint64_t n)
{
    gguf_writer_add_tensor(w, name, strlen(name), 1, &n, ID_OF_I8, bytes, n);
}

static void write_digits(const void *bytes, size_t n_bytes, char digits[65])
{
    uint8_t checksum[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;

    sha256_init(&context);
    sha256_update(&context, n_bytes, bytes);
    sha256_digest(&context, sizeof checksum, checksum);
    for (size_t i = 0; i < sizeof checksum; i++)
        sprintf(digits + 2 * i, "%02x", checksum[i]);
}

/* The checksums of "abc" and of nothing are FIPS 180-4's examples. */
Test(fs_checksums, lines)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    char expected[2000], digits[65];
    struct model_bytes bytes;
    struct gguf_model *model;
    struct fs_tree *tree;

    add_bytes(w, "back\\slash", "abc", 3);
    add_bytes(w, "a/b\n", "", 0);
    gguf_writer_add_tensor(w, "unknown", 7, 1, (uint64_t[]){4}, 99, "1234", 4);
    bytes = model_file_finish(w);
    model = model_file_accept(bytes.data, bytes.size_bytes);
    tree = tree_file_make_tree(model);
    write_digits(bytes.data, bytes.size_bytes, digits);
    snprintf(expected, sizeof expected,
             "\\ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
             "  tensors/back\\\\slash/raw\n"
             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
             "  tensors/a%%2Fb%%0A/raw\n"
             "%s  model.gguf\n",
             digits);
    tree_file_expect(tree, "SHA256SUMS", expected);
    fs_tree_free(tree);
    gguf_close(model);
    free(bytes.data);
}

Test(fs_checksums, a_model_without_sums)
{
    struct gguf_writer *w = gguf_writer_open(3, true);
    struct gguf_model *model;
    struct fs_tree *tree;

    gguf_writer_add_tensor(w, "unknown", 7, 1, (uint64_t[]){4}, 99, "1234", 4);
    model = model_file_make(w);
    tree = tree_file_make_tree(model);
    tree_file_expect(tree, "SHA256SUMS", "");
    fs_tree_free(tree);
    gguf_close(model);
}

/* ---- a model of several tensors that take several chunks each ---- */

enum { N_TENSORS = 5, TENSOR_BYTES = 600000, N_LINES = N_TENSORS + 1 };

struct sums {
    struct model_bytes bytes;
    int descriptor;
    struct gguf_model *model;
    struct fs_tree *tree;
    const struct fs_image *image;
    char text[1000]; /* what the file must hold */
    size_t ends[N_LINES];
};

static void expect_lines(struct sums *sums)
{
    size_t length = 0;

    for (size_t i = 0; i < N_LINES; i++) {
        const struct gguf_tensor *tensor = &sums->model->tensors[i];
        char digits[65];

        if (i < N_TENSORS) {
            write_digits(sums->bytes.data + tensor->file_offset, tensor->size_bytes, digits);
            length += (size_t)sprintf(sums->text + length, "%s  tensors/t%zu/raw\n", digits, i);
        } else {
            write_digits(sums->bytes.data, sums->bytes.size_bytes, digits);
            length += (size_t)sprintf(sums->text + length, "%s  model.gguf\n", digits);
        }
        sums->ends[i] = length;
    }
}

static void begin(struct sums *sums, bool is_growing)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const struct gguf_open_options options = {.partial = is_growing};
    struct gguf_report report = {0};
    char *data = malloc(TENSOR_BYTES);
    uint64_t state = 1;

    for (size_t i = 0; i < N_TENSORS; i++) {
        char name[8];

        for (size_t j = 0; j < TENSOR_BYTES; j++)
            data[j] = (char)model_file_random(&state);
        snprintf(name, sizeof name, "t%zu", i);
        add_bytes(w, name, data, TENSOR_BYTES);
    }
    free(data);
    sums->bytes = model_file_finish(w);
    sums->descriptor = model_file_create(sums->bytes.data, sums->bytes.size_bytes);
    cr_assert_eq(model_file_open_descriptor_with(sums->descriptor, &options, &sums->model, &report),
                 0);
    sums->tree = tree_file_make_tree(sums->model);
    cr_assert_eq(
        fs_tree_open(sums->tree, tree_file_find(sums->tree, "SHA256SUMS"), NULL, &sums->image), 0);
    expect_lines(sums);
    cr_assert_eq(sums->image->size_bytes, sums->ends[N_TENSORS]);
}

static void end(struct sums *sums)
{
    fs_tree_close(sums->tree, sums->image);
    fs_tree_free(sums->tree);
    gguf_close(sums->model);
    close(sums->descriptor);
    free(sums->bytes.data);
}

static void reopen(struct sums *sums)
{
    fs_tree_close(sums->tree, sums->image);
    cr_assert_eq(
        fs_tree_open(sums->tree, tree_file_find(sums->tree, "SHA256SUMS"), NULL, &sums->image), 0);
}

/* Read from `offset` on; check that `n` bytes come, or that the error `n` does. */
static void expect(const struct sums *sums, size_t offset, size_t length, ssize_t n)
{
    char out[1000];

    cr_assert_eq(fs_image_read(sums->image, offset, length, out), n, "%zu bytes from %zu", length,
                 offset);
    if (n > 0)
        cr_assert_arr_eq(out, sums->text + offset, (size_t)n);
}

Test(fs_checksums, any_slice)
{
    struct sums sums;
    uint64_t state = 1;

    begin(&sums, false);
    for (size_t i = 0; i < 3000; i++) {
        const size_t offset = (size_t)(model_file_random(&state) % (sums.image->size_bytes + 1));
        const size_t length = (size_t)(model_file_random(&state) % 300);
        const size_t left = sums.image->size_bytes - offset;

        expect(&sums, offset, length, (ssize_t)(length < left ? length : left));
    }
    end(&sums);
}

/* The file ends inside tensor 2: lines before it need no more than is there. */
Test(fs_checksums, a_read_hashes_only_the_files_of_its_lines)
{
    struct sums sums;
    const size_t all = sizeof sums.text;

    begin(&sums, false);
    cr_assert_eq(
        ftruncate(sums.descriptor, (off_t)sums.model->tensors[2].file_offset + TENSOR_BYTES / 2),
        0);
    expect(&sums, 3, 10, 10);
    expect(&sums, 0, sums.ends[1], (ssize_t)sums.ends[1]);
    expect(&sums, 0, all, -EIO);
    for (size_t i = 1; i + 1 < N_LINES; i++)
        expect(&sums, sums.ends[i], 1, -EIO);
    model_file_restore(sums.descriptor, sums.bytes, sums.model);
    expect(&sums, sums.ends[1], all, (ssize_t)(sums.ends[N_TENSORS] - sums.ends[1]));
    expect(&sums, 0, all, (ssize_t)sums.ends[N_TENSORS]);
    end(&sums);
}

/* Without its data, the model shows which checksums are kept. */
Test(fs_checksums, are_kept_unless_the_file_grows)
{
    for (int is_growing = 0; is_growing < 2; is_growing++) {
        struct sums sums;
        size_t whole;

        begin(&sums, is_growing);
        whole = sums.ends[N_TENSORS];
        expect(&sums, 0, whole, (ssize_t)whole);
        cr_assert_eq(ftruncate(sums.descriptor, (off_t)sums.model->tensors[0].file_offset), 0);
        expect(&sums, 0, whole, (ssize_t)whole);
        reopen(&sums);
        expect(&sums, 0, whole, is_growing ? -EIO : (ssize_t)whole);
        end(&sums);
    }
}

Test(fs_checksums, of_data_that_changed)
{
    struct sums sums;

    begin(&sums, false);
    expect(&sums, 0, sizeof sums.text, (ssize_t)sums.ends[N_TENSORS]);
    for (int i = 0; i < 2; i++) {
        const uint64_t at = sums.model->tensors[3].file_offset + 7;
        const unsigned char changed = ++sums.bytes.data[at];
        struct stat before, after;

        cr_assert_eq(fstat(sums.descriptor, &before), 0);
        do { /* file times have steps of some milliseconds */
            cr_assert_eq(pwrite(sums.descriptor, &changed, 1, (off_t)at), 1);
            cr_assert_eq(fstat(sums.descriptor, &after), 0);
        } while (memcmp(&before.st_mtim, &after.st_mtim, sizeof after.st_mtim) == 0);
        expect_lines(&sums);
        expect(&sums, 0, sizeof sums.text, (ssize_t)sums.ends[N_TENSORS]);
    }
    /* A new header makes the tree invalid, with all checksums. */
    cr_assert_eq(pwrite(sums.descriptor, "x", 1, 20), 1);
    expect(&sums, 0, 1, -ESTALE);
    end(&sums);
}

/* ---- interrupts ---- */

struct countdown {
    atomic_int left; /* checks that do not interrupt yet */
};

static bool is_over(void *user)
{
    return atomic_fetch_sub(&((struct countdown *)user)->left, 1) <= 0;
}

/* A reader that is interrupted after some chunks, and tries again, gets to the end. */
Test(fs_checksums, what_an_interrupted_read_has_done_is_kept)
{
    struct sums sums;
    ssize_t n = -EINTR;
    int n_interrupted = -1;
    char out[1000];

    begin(&sums, false);
    while (n == -EINTR && n_interrupted < 20) {
        struct countdown countdown = {12};
        const struct fs_interrupt interrupt = {.check = is_over, .user = &countdown};

        n_interrupted++;
        n = fs_image_read_interruptible(sums.image, 0, sizeof out, &interrupt, out);
    }
    cr_assert_eq(n, (ssize_t)sums.ends[N_TENSORS]);
    cr_expect_arr_eq(out, sums.text, sums.ends[N_TENSORS]);
    /* The whole model alone is more chunks than a read may hash here. */
    cr_expect_gt(n_interrupted, 0);
    end(&sums);
}

struct reader {
    const struct sums *sums;
    struct countdown countdown;
    ssize_t n;
    char out[1000];
};

static void *read_whole(void *user)
{
    struct reader *reader = user;
    const struct fs_interrupt interrupt = {.check = is_over, .user = &reader->countdown};

    reader->n = fs_image_read_interruptible(reader->sums->image, 0, sizeof reader->out, &interrupt,
                                            reader->out);
    return NULL;
}

/* Half of the readers give up; the others then hash what those were hashing. */
Test(fs_checksums, of_several_readers)
{
    for (int round = 0; round < 10; round++) {
        struct reader readers[6] = {0};
        pthread_t threads[COUNT(readers)];
        struct sums sums;

        begin(&sums, false);
        for (size_t i = 0; i < COUNT(readers); i++) {
            readers[i].sums = &sums;
            atomic_init(&readers[i].countdown.left, i % 2 ? 3 + round : 1000000);
            cr_assert_eq(pthread_create(&threads[i], NULL, read_whole, &readers[i]), 0);
        }
        for (size_t i = 0; i < COUNT(readers); i++) {
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
            if (i % 2)
                cr_expect(readers[i].n == -EINTR || readers[i].n > 0, "%zd", readers[i].n);
            else
                cr_expect_eq(readers[i].n, (ssize_t)sums.ends[N_TENSORS]);
            if (readers[i].n > 0)
                cr_expect_arr_eq(readers[i].out, sums.text, sums.ends[N_TENSORS]);
        }
        end(&sums);
    }
}
