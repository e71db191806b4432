/*
 * hf/ shows a bias that models of an architecture may lack only if the class of transformers has
 * it: transformers ignores other tensors without an error.
 */
#include "contrib/runner/compute/thread_pool.h"
#include "fs/tree/hf/hf_rows.h"
#include "gguf/models/tensor_lists.h"
#include "tests/unit/fs/hf_verdict.h"
#include "tests/unit/fs/tiny_file.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static void begin(void)
{
    model_file_begin_test();
    thread_pool_begin_test();
}

TestSuite(fs_hf_optional, .init = begin, .fini = run_thread_pool_end);

/* The classes of transformers 5.23 that have a bias, if a member of the configuration says so. */
#define WITH_ATTENTION                                                                             \
    "Afmoe Apertus Arcee Bamba Cohere Cohere2 Dots1 Ernie4_5 Ernie4_5_Moe FalconH1 Gemma Gemma2 "  \
    "Gemma3 Glm Glm4 Glm4Moe Granite GraniteMoe GraniteMoeHybrid GraniteMoeShared HYV3 "           \
    "HunYuanDenseV1 HunYuanMoEV1 Laguna Llama Llama4 Mellum Nemotron Olmo Olmo2 Olmo3 Olmoe "      \
    "Qwen3 Qwen3Moe Qwen3Next Qwen3_5 Qwen3_5Moe SeedOss SmolLM3 StableLm MiMoV2Flash"
#define WITH_MLP "Bamba FalconH1 Granite Llama Nemotron NemotronH"

struct has_bias {
    const char *bias, *classes; /* without ForCausalLM */
};

static const struct has_bias alone[] = {
    {"attn_q.bias", WITH_ATTENTION},
    {"attn_k.bias", WITH_ATTENTION},
    {"attn_v.bias", WITH_ATTENTION},
    {"attn_qkv.bias", "Falcon"},
    {"ffn_gate.bias", "Bamba FalconH1 Granite Llama"},
    {"ffn_up.bias", WITH_MLP},
    {"ffn_down.bias", WITH_MLP},
    {"ssm_conv1d.bias", "Bamba FalconH1 GraniteMoeHybrid NemotronH"},
    {"indexer.k_norm.bias", "GlmMoeDsa DeepseekV32"},
    {NULL, NULL},
};

/* Classes whose member for biases of queries switches on others. */
static const struct has_bias beside_queries[] = {
    {"attn_output.bias", "Apertus Bamba Ernie4_5 Ernie4_5_Moe Falcon FalconH1 Granite GraniteMoe "
                         "GraniteMoeHybrid GraniteMoeShared Llama Nemotron"},
    {"ffn_up.bias", "Falcon"},
    {"ffn_down.bias", "Falcon"},
    {NULL, NULL},
};

/* `class_name` ends with ForCausalLM. */
static bool has(const struct has_bias *row, const char *bias, const char *class_name)
{
    const size_t length = strlen(class_name) - strlen("ForCausalLM");

    for (; row->bias; row++) {
        const char *at = row->classes;

        while (strcmp(row->bias, bias) == 0 && *at != '\0') {
            const size_t n = strcspn(at, " ");

            if (n == length && strncmp(at, class_name, n) == 0)
                return true;
            at += n + strspn(at + n, " ");
        }
    }
    return false;
}

/* Models of other rows: a part of the names of tensors and keys that they lack. */
static const struct {
    const char *architecture;
    bool has_experts;
    const char *left_out;
} variants[] = {
    {"falcon", false, "attn_norm_2"},
    {"granitemoe", true, "shexp"},
    {"olmo2", false, "sliding_window"},
    {"granitehybrid", false, "scale"},
};

static struct {
    const char *architecture;
    bool has_experts;
    const char *left_out;
    struct tiny_model tiny;
    size_t n_accepted, n_refused;
} subject;

/* Make the model with no biases but those that it must have. */
static void make_tiny(void)
{
    struct tiny_model *tiny = &subject.tiny;
    size_t n_tensors = 0, n_keys = 0;

    tiny_file_model(subject.architecture, subject.has_experts, false, tiny);
    for (size_t i = 0; i < tiny->n_tensors; i++) {
        if (!subject.left_out || !strstr(tiny->tensors[i].name, subject.left_out))
            tiny->tensors[n_tensors++] = tiny->tensors[i];
    }
    for (size_t i = 0; i < tiny->n_keys; i++) {
        if (!subject.left_out || !strstr(tiny->keys[i].name, subject.left_out))
            tiny->keys[n_keys++] = tiny->keys[i];
    }
    tiny->n_tensors = n_tensors;
    tiny->n_keys = n_keys;
}

/*
 * Add a bias wherever its weight is, and what it requires. Returns false if the model has it
 * already, or nowhere the weight.
 */
static bool add_bias(const char *bias)
{
    struct tiny_model *tiny = &subject.tiny;
    const size_t n_before = tiny->n_tensors, n_base = strlen(bias) - strlen(".bias");

    for (size_t i = 0; i < n_before; i++) {
        const char *weight = tiny->tensors[i].name, *kind = tiny_kind(&tiny->tensors[i]);
        char name[GGUF_NAME_BYTES];

        snprintf(name, sizeof name, "%.*s%s", (int)(kind - weight), weight, bias);
        if (strncmp(kind, bias, n_base) != 0 || strcmp(kind + n_base, ".weight") != 0)
            continue;
        if (tiny_file_has(tiny, name))
            return false;
        tiny_file_extend(tiny, name);
    }
    return tiny->n_tensors > n_before && tiny_file_complete(tiny);
}

static const char *class_of(const struct gguf_model *model)
{
    struct fs_hf_model hf;
    const struct fs_hf_row *row;

    cr_assert_eq(fs_hf_model_make(model, &hf), 0);
    row = fs_hf_row_of(&hf);
    fs_hf_model_free(&hf);
    cr_assert_not_null(row, "%s", subject.architecture);
    return row->class_name;
}

/* Check the verdicts about the model, which has the bias, and also the bias `queries` unless NULL.
 */
static void check(const char *bias, const char *queries)
{
    struct gguf_model *model = model_file_make(tiny_file_begin(&subject.tiny, NULL));
    const char *name = class_of(model);
    const bool is_had = queries ? has(alone, queries, name) &&
                                      (has(alone, bias, name) || has(beside_queries, bias, name))
                                : has(alone, bias, name);
    char of_hf[HF_VERDICT_BYTES], of_runner[HF_VERDICT_BYTES];
    struct tree_copy copy;

    tree_copy_make(model, &copy);
    cr_expect_eq(hf_verdict(model, of_hf), is_had, "%s with %s%s: %s", name, bias,
                 queries ? " beside queries" : "", of_hf);
    cr_expect(is_had || strstr(of_hf, "for the bias"), "%s with %s: %s", name, bias, of_hf);
    cr_expect(runner_verdict(&copy, of_runner), "%s with %s: %s", name, bias, of_runner);
    subject.n_accepted += is_had;
    subject.n_refused += !is_had;
    tree_copy_remove(&copy);
    gguf_close(model);
}

static int check_listed(void *user, const char *listed, size_t length, bool is_required)
{
    const char *queries =
        tiny_is_in(tiny_fused, subject.architecture) ? "attn_qkv.bias" : "attn_q.bias";
    char bias[40];

    snprintf(bias, sizeof bias, "%.*s", (int)length, listed);
    if (length < 6 || strcmp(bias + length - 5, ".bias") != 0)
        return 0;
    make_tiny();
    if (add_bias(bias))
        check(bias, NULL);
    make_tiny();
    if (add_bias(queries) && add_bias(bias))
        check(bias, queries);
    return 0;
}

/* Check all biases that the lists name, if the model has hf/ without any. */
static void check_biases(const char *architecture, bool has_experts, const char *left_out)
{
    const struct gguf_tensor_lists *lists = &gguf_architecture_find(architecture)->tensors;
    const char *const all[] = {lists->model,      lists->layer, lists->attention,
                               lists->recurrence, lists->dense, lists->experts};
    struct gguf_model *model;
    char reason[HF_VERDICT_BYTES];
    bool has_hf;

    subject.architecture = architecture;
    subject.has_experts = has_experts;
    subject.left_out = left_out;
    make_tiny();
    model = model_file_make(tiny_file_begin(&subject.tiny, NULL));
    has_hf = hf_verdict(model, reason);
    gguf_close(model);
    for (size_t i = 0; has_hf && i < COUNT(all); i++)
        gguf_list_walk(all[i], check_listed, NULL);
}

Test(fs_hf_optional, biases_are_those_of_the_class)
{
    const struct fs_hf_row *row;
    const char *previous = "";

    for (size_t i = 0; (row = fs_hf_row_at(i)); i++) {
        const struct gguf_architecture *listed = gguf_architecture_find(row->architecture);

        if (strcmp(row->architecture, previous) == 0)
            continue;
        previous = row->architecture;
        for (int e = 0; e <= tiny_model_may_have_experts(listed); e++)
            check_biases(previous, e, NULL);
    }
    for (size_t i = 0; i < COUNT(variants); i++)
        check_biases(variants[i].architecture, variants[i].has_experts, variants[i].left_out);
    cr_expect_geq(subject.n_accepted, 100u, "%zu", subject.n_accepted);
    cr_expect_geq(subject.n_refused, 40u, "%zu", subject.n_refused);
}
