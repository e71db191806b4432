/* Tiles of transposed arrays whose files change. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/tree/arranged.h"
#include "fs/tree/tile_cache.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_arranged_tiles, .init = model_file_begin_test);

enum { ROW_ELEMENTS = 64, N_ROWS = 32 };

/* A model with a tensor of zeros, transposed: one tile. */
struct transposed {
    int descriptor; /* of the file */
    struct gguf_model *model;
    struct fs_arranged *arranged;
};

static struct transposed begin(bool is_growing)
{
    static const float zeros[ROW_ELEMENTS * N_ROWS];
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct fs_arrangement of = {
        .n_dims = 2, .size = {ROW_ELEMENTS, N_ROWS}, .stride = {1, ROW_ELEMENTS}};
    struct gguf_report report = {0};
    struct transposed made;
    struct model_bytes bytes;

    gguf_writer_add_tensor(w, "a", 1, 2, (uint64_t[]){ROW_ELEMENTS, N_ROWS}, DEQUANT_F32, zeros,
                           sizeof zeros);
    bytes = model_file_finish(w);
    made.descriptor = model_file_create(bytes.data, bytes.size_bytes);
    free(bytes.data);
    cr_assert_eq(model_file_open_descriptor_with(made.descriptor,
                                                 &(struct gguf_open_options){.partial = is_growing},
                                                 &made.model, &report),
                 0);
    of.tensors[0] = &made.model->tensors[0];
    cr_assert_eq(fs_arranged_make(&of, FS_F32, &made.arranged), 0);
    return made;
}

static void end(struct transposed *made)
{
    fs_arranged_free(made->arranged);
    gguf_close(made->model);
    close(made->descriptor);
}

static int read_number(const struct transposed *from, uint64_t column, uint64_t row, float *found)
{
    return fs_arranged_read(from->model, from->arranged, (column * N_ROWS + row) * sizeof *found,
                            sizeof *found, (char *)found);
}

static void write_number(const struct transposed *to, uint64_t column, uint64_t row, float value)
{
    const uint64_t offset =
        to->model->tensors[0].file_offset + (row * ROW_ELEMENTS + column) * sizeof value;

    cr_assert_eq(pwrite(to->descriptor, &value, sizeof value, (off_t)offset), sizeof value);
}

static void cut(const struct transposed *to)
{
    cr_assert_eq(ftruncate(to->descriptor, (off_t)to->model->tensors[0].file_offset), 0);
}

Test(fs_arranged_tiles, changed_data_are_read_again)
{
    struct transposed made = begin(false);
    float found;

    cr_expect_eq(read_number(&made, 0, 0, &found), 0);
    write_number(&made, 1, 2, 3);
    cr_expect_eq(read_number(&made, 1, 2, &found), 0);
    cr_expect_eq(found, 3);
    /* The tile is there, but not the file. */
    cut(&made);
    cr_expect_eq(read_number(&made, 0, 0, &found), -EIO);
    end(&made);
}

/* The times and the size of a growing file do not say that its data are the same. */
Test(fs_arranged_tiles, data_of_a_growing_file_are_read_again)
{
    struct transposed made = begin(true);

    for (float value = 1; value < 4; value++) {
        float found = 0;

        write_number(&made, 5, 6, value);
        cr_assert_eq(read_number(&made, 5, 6, &found), 0);
        cr_expect_eq(found, value);
    }
    end(&made);
}

/* A read of the first number by another thread. */
struct reader {
    const struct transposed *from;
    float found;
    int result;
};

static void *run_reader(void *argument)
{
    struct reader *reader = argument;

    reader->result = read_number(reader->from, 0, 0, &reader->found);
    return NULL;
}

/* Let a reader wait for a tile, which is filled with zeros after the file has changed. */
static struct reader read_during_a_change(bool becomes_shorter)
{
    struct transposed made = begin(false);
    struct reader reader = {.from = &made};
    struct fs_tile *tile;
    pthread_t thread;

    cr_assert_eq(fs_tile_get(&(struct fs_tile_key){.owner = made.arranged}, false, &tile),
                 FS_TILE_MISSING);
    cr_assert_eq(pthread_create(&thread, NULL, run_reader, &reader), 0);
    usleep(200000); /* until it waits */
    if (becomes_shorter)
        cut(&made);
    else
        write_number(&made, 0, 0, 3);
    memset(fs_tile_bytes(tile), 0, FS_TILE_BYTES);
    fs_tile_filled(tile, ROW_ELEMENTS * N_ROWS * sizeof(float));
    fs_tile_put(tile, 0);
    pthread_join(thread, NULL);
    end(&made);
    reader.from = NULL; /* it is closed */
    return reader;
}

Test(fs_arranged_tiles, those_of_other_threads_are_checked)
{
    const struct reader reader = read_during_a_change(false);

    cr_expect_eq(reader.result, 0);
    cr_expect_eq(reader.found, 3);
    cr_expect_eq(read_during_a_change(true).result, -EIO);
}
