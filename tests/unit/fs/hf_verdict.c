#include "tests/unit/runner/metadata_files.h"
#include "tests/unit/fs/hf_verdict.h"

#include "contrib/runner/engine/engine.h"
#include "fs/tree/hf/hf_config.h"
#include "fs/tree/hf/hf_tensors.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hf_verdict(const struct gguf_model *model, char reason[HF_VERDICT_BYTES])
{
    struct fs_hf_lines unused = {0}, obstacles = {0};
    struct fs_hf_all_factors factors = {.are_read = true};
    struct fs_hf_tensors tensors = {0};
    struct fs_sink sink = fs_sink_that_counts();
    struct fs_hf_model hf;
    struct fs_hf_config config = {.hf = &hf, .factors = &factors, .sink = &sink};
    const struct fs_hf_row *row;

    cr_assert_eq(fs_hf_model_make(model, &hf), 0);
    fs_hf_factors_find(&hf, &factors);
    row = fs_hf_row_of(&hf);
    snprintf(reason, HF_VERDICT_BYTES, "no row");
    if (row) {
        cr_assert_eq(fs_hf_tensors_find(&hf, row, &tensors, &unused, &obstacles), 0);
        fs_hf_write_config(&config, row, "float32");
        snprintf(reason, HF_VERDICT_BYTES, "%.*s",
                 obstacles.text.length > 0 ? (int)strcspn((char *)obstacles.text.bytes, "\n") : 256,
                 obstacles.text.length > 0 ? (char *)obstacles.text.bytes : config.problem);
    }
    fs_hf_tensors_free(&tensors);
    fs_hf_model_free(&hf);
    gguf_buffer_free(&unused.text);
    gguf_buffer_free(&obstacles.text);
    return reason[0] == '\0';
}

bool runner_verdict(const struct tree_copy *copy, char reason[HF_VERDICT_BYTES])
{
    const struct run_engine_options options = {.n_context = 8};
    struct run_failure failure = {0};
    struct run_engine *engine = NULL;
    struct run_tree tree;
    int code = run_tree_open(copy->path, &tree, &failure);

    if (code == 0) {
        code = run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure);
        run_engine_close(engine);
        run_tree_close(&tree);
    }
    snprintf(reason, HF_VERDICT_BYTES, "%.*s", HF_VERDICT_BYTES - 1, failure.text);
    return code == 0;
}

void hf_verdict_kind(struct gguf_string name, char kind[HF_VERDICT_BYTES])
{
    unsigned layer;
    int n = 0;

    snprintf(kind, HF_VERDICT_BYTES, "%.*s", (int)name.length_bytes, name.data);
    if (sscanf(kind, "blk.%u%n", &layer, &n) == 1)
        snprintf(kind, HF_VERDICT_BYTES, "blk.%%%.*s", (int)name.length_bytes - n, name.data + n);
}

void hf_verdict_fixtures(void (*check)(const char *name, const struct gguf_model *model))
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
        check(entry->d_name, model);
        gguf_close(model);
    }
    closedir(directory);
}
