#include "tests/unit/gguf/shard_files.h"

#include <criterion/criterion.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Size of a tensor: each shard has its own. */
#define TENSOR_BYTES(number) (40u * (number))

struct shard_file shard_file_good(unsigned number)
{
    static const char *const prefixes[] = {"", "first.", "second.", "third."};

    return (struct shard_file){.version = 3,
                               .no = (uint16_t)(number - 1),
                               .count = N_SHARDS,
                               .n_total = 6,
                               .n_tensors = number,
                               .prefix = prefixes[number],
                               .byte = (unsigned char)number};
}

/*
 * Return the bytes of the file: a key "general.name" in the first shard, "own" in the others, the
 * keys split.*, and tensors of type I8. The caller frees them.
 */
static struct model_bytes bytes_of(const struct shard_file *shard)
{
    struct gguf_writer *w = gguf_writer_open(shard->version, shard->big_endian);
    const size_t n_bytes = TENSOR_BYTES(shard->byte);
    char name[32];
    char *data = malloc(n_bytes + 1);

    cr_assert_not_null(data);
    memset(data, shard->byte, n_bytes);
    gguf_writer_add_string(w, shard->no == 0 ? "general.name" : "own", "value");
    if (!shard->has_no_keys) {
        gguf_writer_add_u16(w, "split.no", shard->no);
        gguf_writer_add_i32(w, "split.tensors.count", shard->n_total);
        gguf_writer_add_u16(w, "split.count", shard->count);
    }
    for (unsigned i = 1; i <= shard->n_tensors; i++) {
        snprintf(name, sizeof name, "%s%u", shard->prefix, i);
        gguf_writer_add_tensor(w, name, strlen(name), 1, (uint64_t[]){n_bytes}, 24, data, n_bytes);
    }
    free(data);
    return model_file_finish(w);
}

void shard_file_path(char path[SHARD_PATH_BYTES], const char *folder, unsigned number)
{
    snprintf(path, SHARD_PATH_BYTES, "%s/model-%05u-of-%05u.gguf", folder, number, N_SHARDS);
}

void shard_file_write(const char *folder, unsigned number, const struct shard_file *shard)
{
    struct model_bytes bytes = bytes_of(shard);
    char path[SHARD_PATH_BYTES];
    FILE *file;

    shard_file_path(path, folder, number);
    file = fopen(path, "we");
    cr_assert_not_null(file, "%s", path);
    cr_assert_eq(fwrite(bytes.data, 1, bytes.size_bytes, file), bytes.size_bytes);
    cr_assert_eq(fclose(file), 0);
    free(bytes.data);
}

void shard_files_make(char folder[SHARD_PATH_BYTES])
{
    snprintf(folder, SHARD_PATH_BYTES, "/tmp/ggufs-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    for (unsigned i = 1; i <= N_SHARDS; i++) {
        const struct shard_file shard = shard_file_good(i);

        shard_file_write(folder, i, &shard);
    }
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

void shard_files_remove(const char *folder)
{
    cr_expect_eq(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
