/*
 * Which tensors a checkpoint may lack: each kind is dropped from all layers of the fixtures'
 * models. llama.cpp says the same but for the cases that are marked.
 */
#include "tests/unit/fs/hf_verdict.h"
#include "tests/unit/gguf/model_file.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

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
    char kind[HF_VERDICT_BYTES], other[HF_VERDICT_BYTES], reason[HF_VERDICT_BYTES];

    cr_assert(kept);
    if (!hf_verdict(model, reason)) {
        cr_expect_str_eq(name, "deepseek-moe"); /* transformers has no class */
        free(kept);
        return;
    }
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_model less = *model;
        bool is_first = true;

        less.tensors = kept;
        less.n_tensors = 0;
        hf_verdict_kind(model->tensors[i].name, kind);
        for (uint64_t j = 0; j < model->n_tensors; j++) {
            hf_verdict_kind(model->tensors[j].name, other);
            if (strcmp(kind, other) != 0)
                kept[less.n_tensors++] = model->tensors[j];
            else
                is_first &= j >= i;
        }
        if (is_first)
            cr_expect_eq(hf_verdict(&less, reason), may_be_missing(name, kind), "%s without %s",
                         name, kind);
    }
    free(kept);
}

Test(fs_hf_drop, tensors_of_the_fixtures)
{
    hf_verdict_fixtures(check_model);
}
