/* Names of model files and of shards. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/support/shard_names.h"

static const struct {
    const char *path, *stem;
    bool has_ending;
    uint32_t number, count;
} names[] = {
    {"model.gguf", "model", true, 0, 0},
    {"dir.gguf/model", "dir.gguf/model", false, 0, 0},
    {"model.bin", "model", true, 0, 0},
    {"model.gguf.part", "model.gguf.part", false, 0, 0},
    {"m-00002-of-00003.gguf", "m", true, 2, 3},
    {"m-99999-of-99999.gguf", "m", true, 99999, 99999},
    {"/-00001-of-00003.gguf", "/", true, 1, 3},
    /* numbers, but no shards */
    {"m-00002-of-00003.bin", "m", true, 0, 0},
    {"m-00002-of-00003", "m", false, 0, 0},
    /* no numbers */
    {"m-00000-of-00003.gguf", "m-00000-of-00003", true, 0, 0},
    {"m-00001-of-00000.gguf", "m-00001-of-00000", true, 0, 0},
    {"m-0001-of-00003.gguf", "m-0001-of-00003", true, 0, 0},
    {"m-00001_of_00003.gguf", "m-00001_of_00003", true, 0, 0},
    {"00001-of-00003.gguf", "00001-of-00003", true, 0, 0},
    {"", "", false, 0, 0},
};

Test(gguf_shard_names, are_taken_apart)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = names[i].path;
        uint32_t number, count;

        cr_expect_eq(gguf_has_model_ending(path), names[i].has_ending, "%s", path);
        cr_expect_eq(gguf_stem_bytes(path), strlen(names[i].stem), "%s", path);
        cr_expect_eq(gguf_read_shard_numbers(path, &number, &count), names[i].number > 0, "%s",
                     path);
        cr_expect_eq(number, names[i].number, "%s", path);
        cr_expect_eq(count, names[i].count, "%s", path);
    }
}

Test(gguf_shard_names, of_one_model_differ_in_their_number)
{
    char *shard = gguf_shard_path("a/m-00002-of-00013.gguf", 10);

    cr_assert_str_eq(shard, "a/m-00010-of-00013.gguf");
    cr_expect(gguf_are_shards_of_one_model("a/m-00002-of-00013.gguf", shard));
    cr_expect_not(gguf_are_shards_of_one_model("a/m-00002-of-00012.gguf", shard));
    cr_expect_not(gguf_are_shards_of_one_model("a/n-00002-of-00013.gguf", shard));
    cr_expect_not(gguf_are_shards_of_one_model("m-00002-of-00013.gguf", shard));
    cr_expect_not(gguf_are_shards_of_one_model("a/m-00002-of-00013.bin", shard));
    free(shard);
}
