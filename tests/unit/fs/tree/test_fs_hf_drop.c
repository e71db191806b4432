/*
 * Which tensors a checkpoint may lack: each kind is dropped from all layers of the fixtures'
 * models. llama.cpp says the same but for the cases that are marked.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/hf/hf_config_file.h"
#include "fs/tree/hf/hf_tensors.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_hf_drop, .init = model_file_begin_test);

/* All other tensors are needed. */
static const struct {
    const char *model, *tensor;
} may_lack[] = {
    {"deepseek2-lite", "output.weight"},
    {"granite", "output.weight"},
    {"granitemoe", "output.weight"},
    {"llama", "output.weight"},
    {"llama-linear", "output.weight"},
    {"llama-rope3", "output.weight"},
    {"llama-rope3", "rope_freqs.weight"},
    {"llama-tied-bias", "blk.%.attn_output.bias"},
    {"mistral", "output.weight"},
    {"mixtral", "output.weight"},
    {"olmo", "output.weight"},
    {"phi3", "output.weight"},
    {"qwen2", "output.weight"},
    {"qwen3", "output.weight"},
    {"qwen3moe", "output.weight"},
};

/* Write a tensor's name with '%' for the layer. */
static void write_kind(struct gguf_string name, char kind[GGUF_NAME_BYTES])
{
    unsigned layer;
    int n = 0;

    snprintf(kind, GGUF_NAME_BYTES, "%.*s", (int)name.length_bytes, name.data);
    if (sscanf(kind, "blk.%u%n", &layer, &n) == 1)
        snprintf(kind, GGUF_NAME_BYTES, "blk.%%%.*s", (int)name.length_bytes - n, name.data + n);
}

static bool has_checkpoint(const struct gguf_model *model)
{
    struct gguf_buffer unused = {0}, obstacles = {0};
    struct fs_hf_all_factors factors = {.are_read = true};
    struct fs_hf_tensors tensors = {0};
    struct fs_sink sink = fs_sink_that_counts();
    struct fs_hf_model hf;
    struct fs_hf_config config = {.hf = &hf, .factors = &factors, .sink = &sink};
    const struct fs_hf_row *row;
    bool is_complete = false;

    cr_assert_eq(fs_hf_model_make(model, &hf), 0);
    fs_hf_factors_find(&hf, &factors);
    row = fs_hf_row_of(&hf);
    if (row) {
        cr_assert_eq(fs_hf_tensors_find(&hf, row, &tensors, &unused, &obstacles), 0);
        fs_hf_write_config(&config, row, "float32");
        is_complete = obstacles.length == 0 && config.problem[0] == '\0';
    }
    fs_hf_tensors_free(&tensors);
    fs_hf_model_free(&hf);
    gguf_buffer_free(&unused);
    gguf_buffer_free(&obstacles);
    return is_complete;
}

static bool may_be_missing(const char *model, const char *kind)
{
    for (size_t i = 0; i < COUNT(may_lack); i++) {
        if (strcmp(may_lack[i].model, model) == 0 && strcmp(may_lack[i].tensor, kind) == 0)
            return true;
    }
    return false;
}

/* Drop each kind of tensor. */
static void check_model(const char *name, const struct gguf_model *model)
{
    struct gguf_tensor *kept = calloc((size_t)model->n_tensors, sizeof *kept);
    char kind[GGUF_NAME_BYTES], other[GGUF_NAME_BYTES];

    cr_assert(kept);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_model less = *model;
        bool is_first = true;

        less.tensors = kept;
        less.n_tensors = 0;
        write_kind(model->tensors[i].name, kind);
        for (uint64_t j = 0; j < model->n_tensors; j++) {
            write_kind(model->tensors[j].name, other);
            if (strcmp(kind, other) != 0)
                kept[less.n_tensors++] = model->tensors[j];
            else
                is_first &= j >= i;
        }
        if (!is_first)
            continue;
        if (getenv("GGUFS_PRINT_DROPS"))
            fprintf(stderr, "%s\t%s\t%s\n", name, kind, has_checkpoint(&less) ? "yes" : "no");
        cr_expect_eq(has_checkpoint(&less), may_be_missing(name, kind), "%s without %s", name,
                     kind);
    }
    free(kept);
}

Test(fs_hf_drop, tensors_of_the_fixtures)
{
    const char *root = getenv("GGUFS_FIXTURES");
    char folder[4096], path[8192];
    struct dirent *entry;
    DIR *directory;

    snprintf(folder, sizeof folder, "%s/archs", root ? root : "../shared/fixtures");
    directory = opendir(folder);
    if (!directory) {
        fprintf(stderr, "SKIPPED: no %s (set GGUFS_FIXTURES to the fixtures folder)\n", folder);
        cr_skip_test("no fixtures");
    }
    while ((entry = readdir(directory))) {
        char *suffix = strstr(entry->d_name, ".gguf");
        struct gguf_report report = {0};
        struct gguf_model *model;

        if (!suffix)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        cr_assert_eq(gguf_open(path, &model, &report), 0, "%s", path);
        *suffix = '\0';
        if (has_checkpoint(model))
            check_model(entry->d_name, model);
        else
            cr_expect_str_eq(entry->d_name, "deepseek-moe"); /* transformers has no class */
        gguf_close(model);
    }
    closedir(directory);
}
