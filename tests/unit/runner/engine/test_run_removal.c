/*
 * Strictness at loading: from a tiny model of every architecture, each kind of tensor and each key
 * is removed in turn. The model is then refused, or computes the same logits, or the list of the
 * architecture says that it may be missing and the table below says why.
 */
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/engine/engine.h"
#include "gguf/models/key_lists.h"
#include "gguf/models/tensor_lists.h"
#include "tests/unit/runner/metadata_files.h"
#include "tests/unit/runner/run_tree_files.h"
#include "tests/unit/runner/tiny_models.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { N_TOKENS = 9 };

static struct run_files files;
static struct tiny_model model;
static struct run_failure failure;

struct logits {
    float values[N_TOKENS * TINY_N_VOCAB];
};

/* Open the tree. Listing its tensors takes most of the time, so it is done if one is missing. */
static struct run_tree open_tree(bool has_all_tensors)
{
    struct run_tree tree;

    if (!has_all_tensors)
        return run_files_open(&files);
    cr_assert_eq(run_tree_open(files.path, &tree, &failure), 0, "%s", failure.text);
    return tree;
}

/* Run the model. Returns 0 or a negative errno. */
static int run(bool has_all_tensors, struct logits *logits)
{
    static const int32_t tokens[N_TOKENS] = {1, 5, 2, 7, 3, 9, 4, 23, 0};
    const struct run_engine_options options = {.n_context = 2 * N_TOKENS};
    struct run_engine *engine = NULL;
    struct run_tree tree = open_tree(has_all_tensors);
    int code = run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure);

    memset(logits, 0, sizeof *logits);
    if (code == 0) {
        cr_assert_eq(run_engine_counts(engine).n_vocab, (uint32_t)TINY_N_VOCAB);
        code = run_engine_feed(engine, tokens, N_TOKENS, RUN_LOGITS_ALL, logits->values, &failure);
    }
    run_engine_close(engine);
    run_tree_close(&tree);
    return code;
}

static void rename_file(const char *from, const char *to)
{
    char old[300], new[300];

    snprintf(old, sizeof old, "%s/%s", files.path, from);
    snprintf(new, sizeof new, "%s/%s", files.path, to);
    cr_assert_eq(rename(old, new), 0, "%s", from);
}

static void move_kind(const char *kind, bool is_away)
{
    for (size_t i = 0; i < model.n_tensors; i++) {
        char in[100], out[100];

        if (strcmp(tiny_kind(&model.tensors[i]), kind) != 0)
            continue;
        snprintf(in, sizeof in, "tensors/%s", model.tensors[i].name);
        snprintf(out, sizeof out, "away.%s", model.tensors[i].name);
        rename_file(is_away ? in : out, is_away ? out : in);
    }
}

/* Why models may lack a tensor or a key, and then compute something else. */
struct exception {
    const char *name, *reason;
    size_t n; /* models where it has an effect */
};

static struct exception tensor_exceptions[] = {
    {"output.weight", "without it, the token embeddings are used twice", 0},
    {"token_embd.weight", "CodeShell: without it, the output's rows are used twice", 0},
    {"rope_freqs.weight", "models without scaled rotation have none", 0},
    {"attn_output.bias", "a switch of the configuration, as llama.cpp has it", 0},
    {"output.bias", "a switch of the configuration, as llama.cpp has it", 0},
    {"output_norm.bias", "a switch of the configuration, as llama.cpp has it", 0},
    {"ssm_conv1d.bias", "a switch of the configuration, as llama.cpp has it", 0},
    {"ssm_norm.weight", "a switch of the configuration, as llama.cpp has it", 0},
    {"attn_gate.weight", "a switch of the configuration, as llama.cpp has it", 0},
    {"attn_sinks.weight", "a switch of the configuration, as llama.cpp has it", 0},
    {"exp_probs_b.bias", "DeepSeek 2 has none, DeepSeek 3 has it", 0},
    {"layer_output_scale.weight", "earlier files of Gemma 4 have none", 0},
};

/* llama.cpp has the same defaults, unless the reason says otherwise. */
static struct exception key_exceptions[] = {
    {"rope.freq_base", "10000, as in files from before the key", 0},
    {"rope.freq_base_swa", "the base of other layers, or 10000", 0},
    {"attention.sliding_window", "without it, attention sees all tokens, or a default", 0},
    {"attention.clamp_kqv", "without it, nothing is clamped", 0},
    {"attention.max_alibi_bias", "8 in BLOOM and Refact", 0},
    {"attention.scale", "without it, one over the root of a head's width", 0},
    {"attention.output_scale", "Grok's number", 0},
    {"attention.value_scale", "1", 0},
    {"attn_logit_softcapping", "a number of the architecture, or none", 0},
    {"final_logit_softcapping", "a number of the architecture, or none", 0},
    {"logit_scale", "a number of the architecture", 0},
    {"residual_scale", "a number of the architecture", 0},
    {"embedding_scale", "a number of the architecture", 0},
    {"expert_weights_norm", "no: converters leave it out if it is false", 0},
    {"expert_weights_scale", "1", 0},
    {"expert_gating_func", "softmax in DeepSeek 2, whose converter left it out", 0},
    {"num_loops", "1", 0},
    {"skip_loop_final_norm", "no", 0},
    {"rescale_every_n_layers", "never", 0},
    {"ssm.dt_b_c_rms", "no: only Falcon Mamba has the key", 0},
    {"swiglu_clamp_exp", "without it, nothing is clamped", 0},
    {"swiglu_clamp_shexp", "without it, nothing is clamped", 0},
};

static void expect_exception(struct exception list[], size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            list[i].n++;
            return;
        }
    }
    cr_expect_fail("%s: without %s, the model runs and computes something else", model.architecture,
                   name);
}

static size_t n_removals, n_refused;

static void expect_refused_or_same(const struct logits *expected, struct exception list[], size_t n,
                                   const char *name)
{
    const bool has_all_tensors = list == key_exceptions;
    struct logits logits;

    n_removals++;
    if (run(has_all_tensors, &logits) < 0)
        n_refused++;
    else if (memcmp(&logits, expected, sizeof logits) != 0)
        expect_exception(list, n, name);
}

/* Tensors that may have no effect on these few tokens: they only choose, or serve later layers. */
static const char *const idle[] = {
    "exp_probs_b.bias", "indexer.",       "rope_freqs.weight",      "time_mix_v",
    "time_mix_ln.",     "time_mix_gate.", "time_mix_lerp_g.weight", "time_mix_first.weight",
};

static bool has_effect(const struct tiny_tensor *tensor)
{
    for (size_t i = 0; i < COUNT(idle); i++)
        if (strncmp(tiny_kind(tensor), idle[i], strlen(idle[i])) == 0)
            return false;
    return true;
}

/* Return true for the first architecture with the kind, and always for one with pruned layers. */
static bool is_new_kind(const char *kind)
{
    static char seen[400][48];
    static size_t n_seen;

    for (size_t i = 0; i < n_seen; i++)
        if (strcmp(seen[i], kind) == 0)
            return strcmp(model.architecture, "deci") == 0;
    cr_assert_lt(n_seen, COUNT(seen));
    snprintf(seen[n_seen++], sizeof seen[0], "%s", kind);
    return true;
}

/* Write other values in a tensor of each new kind, and expect other logits. */
static void change_each(const struct logits *expected)
{
    for (size_t i = 0; i < model.n_tensors; i++) {
        const struct tiny_tensor *tensor = &model.tensors[i];
        struct logits logits;

        if (!tensor->is_kind || !is_new_kind(tiny_kind(tensor)))
            continue;
        tiny_write(&files, tensor, 0.5f);
        if (run(true, &logits) == 0 && memcmp(&logits, expected, sizeof logits) == 0)
            cr_expect(!has_effect(tensor), "%s: %s has no effect", model.architecture,
                      tensor->name);
        tiny_write(&files, tensor, 1);
    }
}

static void remove_each(const char *architecture, bool has_experts)
{
    struct logits expected, logits;

    tiny_model_make(architecture, has_experts, &model);
    tiny_model_write(&model, &files);
    if (run(false, &expected) < 0) {
        cr_expect_fail("%s: %s", architecture, failure.text);
        run_files_remove(&files);
        return;
    }
    for (size_t i = 0; i < COUNT(expected.values); i++)
        cr_assert(isfinite(expected.values[i]), "%s", architecture);
    change_each(&expected);
    for (size_t i = 0; i < model.n_tensors; i++) {
        const char *kind = tiny_kind(&model.tensors[i]);

        if (!model.tensors[i].is_kind)
            continue;
        move_kind(kind, true);
        expect_refused_or_same(&expected, tensor_exceptions, COUNT(tensor_exceptions), kind);
        move_kind(kind, false);
    }
    run(false, &logits); /* lists all tensors again */
    for (size_t i = 0; i < model.n_keys; i++) {
        char path[100];

        snprintf(path, sizeof path, "metadata/%s.json", model.keys[i].name);
        rename_file(path, "away");
        expect_refused_or_same(&expected, key_exceptions, COUNT(key_exceptions),
                               model.keys[i].listed);
        rename_file("away", path);
    }
    run_files_remove(&files);
}

/* Trees in memory, because of some 100,000 files. */
static void begin(void)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
}

TestSuite(run_removal, .init = begin);

Test(run_removal, refused_or_the_same_logits)
{
    const struct gguf_architecture *row;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++) {
        remove_each(row->name, false);
        if (tiny_model_may_have_experts(gguf_architecture_find(row->name)))
            remove_each(row->name, true);
    }
    cr_expect_gt(n_refused, n_removals / 2, "%zu of %zu", n_refused, n_removals);
    for (size_t i = 0; i < COUNT(tensor_exceptions); i++)
        cr_expect_gt(tensor_exceptions[i].n, 0u, "%s has no effect", tensor_exceptions[i].name);
    for (size_t i = 0; i < COUNT(key_exceptions); i++)
        cr_expect_gt(key_exceptions[i].n, 0u, "%s has no effect", key_exceptions[i].name);
}

/* A tensor is there in two forms. The loader would ignore one. */
Test(run_removal, a_tensor_too_many_is_refused)
{
    static const struct {
        const char *architecture, *name;
        uint64_t ne[3];
        const char *refused; /* NULL: the model runs */
    } cases[] = {
        {"llama", "blk.1.attn_qkv.weight", {32, 64}, "blk.1.attn_q.weight"},
        {"llama", "blk.1.attn_qkv.bias", {64}, "blk.1.attn_qkv.bias"},
        {"bloom", "blk.0.attn_v.bias", {32}, "blk.0.attn_v.bias"},
        {"qwen3moe", "blk.0.ffn_gate_up_exps.weight", {32, 96, 4}, "blk.0.ffn_up_exps.weight"},
        {"qwen3moe", "blk.0.ffn_gate_up_exps.scale", {4}, "blk.0.ffn_gate_up_exps.scale"},
        {"gpt-oss", "blk.1.ffn_gate_up_exps.bias", {48, 4}, "blk.1.ffn_gate_up_exps.bias"},
        {"deepseek2", "blk.1.attn_kv_b.weight", {12, 48}, NULL},
    };
    static const float zeros[32 * 96 * 4];
    struct logits logits;

    for (size_t i = 0; i < COUNT(cases); i++) {
        tiny_model_make(cases[i].architecture, false, &model);
        tiny_model_write(&model, &files);
        cr_expect_eq(run(false, &logits), 0, "%s", failure.text);
        run_files_floats(&files, cases[i].name, cases[i].ne[0], cases[i].ne[1], cases[i].ne[2],
                         zeros);
        cr_expect_eq(run(false, &logits), cases[i].refused ? -EINVAL : 0, "%s: %s", cases[i].name,
                     failure.text);
        cr_expect(!cases[i].refused || strstr(failure.text, cases[i].refused), "%s: %s",
                  cases[i].name, failure.text);
        run_files_remove(&files);
    }
}

/* Earlier converters write the bias of experts without ".bias". */
Test(run_removal, a_selection_bias_without_suffix)
{
    struct logits with_suffix, bare, none;

    tiny_model_make("deepseek2", false, &model);
    tiny_model_write(&model, &files);
    cr_expect_eq(run(false, &with_suffix), 0, "%s", failure.text);
    rename_file("tensors/blk.1.exp_probs_b.bias", "tensors/blk.1.exp_probs_b");
    cr_expect_eq(run(false, &bare), 0, "%s", failure.text);
    cr_expect_eq(memcmp(&with_suffix, &bare, sizeof bare), 0);
    rename_file("tensors/blk.1.exp_probs_b", "away");
    cr_expect_eq(run(false, &none), 0, "%s", failure.text);
    cr_expect_neq(memcmp(&with_suffix, &none, sizeof none), 0);
    run_files_remove(&files);
}

/* A recurrent layer could not forget its drafts. The third layer has the tensors of the first. */
Test(run_removal, a_recurrent_layer_drafts_nothing)
{
    const struct run_engine_options options = {
        .n_context = 2 * N_TOKENS, .can_rewind = true, .has_nextn = true};
    struct run_engine *engine = NULL;
    struct run_tree tree;
    const char *problem = NULL;

    tiny_model_make("qwen35", false, &model);
    tiny_model_write(&model, &files);
    for (size_t i = 0; i < model.n_tensors; i++) {
        struct tiny_tensor tensor = model.tensors[i];

        if (strncmp(tensor.name, "blk.0.", 6) != 0)
            continue;
        tensor.name[4] = '2';
        tiny_write(&files, &tensor, 1);
    }
    run_files_random(&files, "blk.2.nextn.enorm.weight", 32, 0, 0, 1);
    run_files_random(&files, "blk.2.nextn.hnorm.weight", 32, 0, 0, 1);
    run_files_random(&files, "blk.2.nextn.eh_proj.weight", 64, 32, 0, 1);
    run_files_write_text(&files, "metadata/qwen35.block_count.json", "3");
    run_files_write_text(&files, "metadata/qwen35.nextn_predict_layers.json", "1");
    tree = run_files_open(&files);
    cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure), 0, "%s",
                 failure.text);
    cr_expect(!run_engine_can_draft(engine, &problem));
    cr_assert_not_null(problem);
    cr_expect_not_null(strstr(problem, "a recurrent layer"), "%s", problem);
    run_engine_close(engine);
    run_tree_close(&tree);
    run_files_remove(&files);
}

Test(run_removal, damaged_weights_and_epsilons)
{
    struct logits logits;
    float norm[32] = {NAN};

    tiny_model_make("llama", false, &model);
    tiny_model_write(&model, &files);
    cr_expect_eq(run(false, &logits), 0, "%s", failure.text);
    run_files_floats(&files, "output_norm.weight", COUNT(norm), 0, 0, norm);
    cr_expect_eq(run(true, &logits), -EDOM);
    cr_expect_not_null(strstr(failure.text, "216 of 216 logits after token 8 are NaN"), "%s",
                       failure.text);
    run_files_write_text(&files, "metadata/llama.attention.layer_norm_rms_epsilon.json", "-1e-5");
    cr_expect_eq(run(true, &logits), -EINVAL);
    cr_expect_not_null(strstr(failure.text, "epsilon of norms is negative"), "%s", failure.text);
    run_files_remove(&files);
}

/* An indexer selects tokens, so another number of them gives other logits. */
Test(run_removal, indexers_select_tokens)
{
    static const char *const architectures[] = {"deepseek32", "glm-dsa", "minimax-m3"};
    struct logits some, all;

    for (size_t i = 0; i < COUNT(architectures); i++) {
        char path[100];

        tiny_model_make(architectures[i], false, &model);
        tiny_model_write(&model, &files);
        cr_expect_eq(run(false, &some), 0, "%s", failure.text);
        snprintf(path, sizeof path, "metadata/%s.attention.indexer.top_k.json", architectures[i]);
        run_files_write_text(&files, path, "9");
        cr_expect_eq(run(true, &all), 0, "%s", failure.text);
        cr_expect_neq(memcmp(&some, &all, sizeof all), 0, "%s", architectures[i]);
        run_files_remove(&files);
    }
}

static void expect_indexers(const char *types, int code, const char *message)
{
    struct logits logits;

    run_files_write_text(&files, "metadata/glm-dsa.attention.indexer.types.json", types);
    cr_expect_eq(run(false, &logits), code, "%s: %s", types, failure.text);
    cr_expect(code == 0 || strstr(failure.text, message), "%s: %s", types, failure.text);
}

static void move_indexer(unsigned layer)
{
    for (size_t i = 0; i < model.n_tensors; i++) {
        unsigned number;
        char in[100], out[100];

        if (strncmp(tiny_kind(&model.tensors[i]), "indexer.", 8) != 0 ||
            sscanf(model.tensors[i].name, "blk.%u.", &number) != 1 || number != layer)
            continue;
        snprintf(in, sizeof in, "tensors/%s", model.tensors[i].name);
        snprintf(out, sizeof out, "away.%s", model.tensors[i].name);
        rename_file(in, out);
    }
}

/* A layer without indexer uses the selection of an earlier layer, if the metadata say so. */
Test(run_removal, indexers_must_be_there)
{
    struct logits logits;

    tiny_model_make("minimax-m3", false, &model);
    tiny_model_write(&model, &files);
    move_indexer(1);
    cr_expect_eq(run(false, &logits), -ENOENT);
    cr_expect_not_null(strstr(failure.text, "tensors/blk.1.indexer.q_proj.weight: missing"), "%s",
                       failure.text);
    run_files_remove(&files);

    tiny_model_make("glm-dsa", false, &model);
    tiny_model_write(&model, &files);
    expect_indexers("[false, true]", -EINVAL, "glm-dsa.attention.indexer.types: layer 0 has no ");
    move_indexer(1);
    expect_indexers("[true, true]", -ENOENT, "tensors/blk.1.indexer.attn_q_b.weight: missing");
    expect_indexers("[true, false]", 0, NULL);
    move_indexer(0);
    expect_indexers("[true, false]", -ENOENT, "tensors/blk.0.indexer.attn_q_b.weight: missing");
    run_files_remove(&files);
}

/* Rewinding needs mixers that keep what they forget; most recurrent ones do not. */
Test(run_removal, models_that_can_rewind)
{
    static const char *const others[] = {
        "mamba",      "mamba2",         "jamba",  "granitehybrid", "falcon-h1",
        "nemotron_h", "nemotron_h_moe", "plamo2", "lfm2",          "lfm2moe",
        "rwkv",       "rwkv6",          "rwkv7",  "rwkv6qwen2",    "arwkv7",
    };
    const struct run_engine_options options = {.n_context = 2 * N_TOKENS, .can_rewind = true};
    const struct gguf_architecture *row;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++) {
        struct run_engine *engine;
        struct run_tree tree;
        bool is_expected = true;

        for (size_t j = 0; j < COUNT(others); j++)
            is_expected &= strcmp(others[j], row->name) != 0;
        tiny_model_make(row->name, false, &model);
        tiny_model_write(&model, &files);
        tree = run_files_open(&files);
        cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure), 0);
        cr_expect_eq(run_engine_can_rewind(engine), is_expected, "%s", row->name);
        run_engine_close(engine);
        run_tree_close(&tree);
        run_files_remove(&files);
    }
}
