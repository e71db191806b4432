/* Hyperparameters of a model, as the runner reads them from the metadata. */
#include "contrib/runner/engine/engine.h"
#include "contrib/runner/engine/hparams.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct run_files files;
static struct run_tree tree;
static struct run_hparams hparams;
static struct run_failure failure;
static unsigned n_layer; /* block_count of the models */

static void begin(void)
{
    run_files_make(&files);
    n_layer = 6;
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_hparams, .init = begin, .fini = end);

/* Read a model of this architecture, with these keys after the usual ones. */
static int read_keys(const char *architecture, const char *keys)
{
    char text[2000];
    int code;

    snprintf(text, sizeof text,
             "{\"general.architecture\": \"%s\", \"%s.block_count\": %u, "
             "\"%s.embedding_length\": 64, \"%s.attention.head_count\": 4, "
             "\"%s.context_length\": 100%s}",
             architecture, architecture, n_layer, architecture, architecture, architecture, keys);
    run_files_metadata(&files, text);
    run_files_complete_keys(&files, architecture);
    tree = run_files_open(&files);
    code = run_hparams_read(tree.metadata, &hparams, &failure);
    cr_expect(code == 0 || !hparams.layers);
    return code;
}

static void read_model(const char *architecture, const char *keys)
{
    cr_assert_eq(read_keys(architecture, keys), 0, "%s", failure.text);
}

static void close_model(void)
{
    run_hparams_free(&hparams);
    run_tree_close(&tree);
}

static void expect_refused(const char *architecture, const char *keys, int code,
                           const char *pattern)
{
    failure.text[0] = '\0';
    cr_expect_eq(read_keys(architecture, keys), code, "%s", keys);
    cr_expect_not_null(strstr(failure.text, pattern), "\"%s\" does not contain \"%s\"",
                       failure.text, pattern);
    close_model();
}

Test(run_hparams, defaults)
{
    read_model("llama", "");
    cr_expect_eq(hparams.n_layer, 6u);
    cr_expect_eq(hparams.n_context, 100u);
    cr_expect(hparams.dim_k == 16 && hparams.dim_v == 16 && hparams.n_rot == 16);
    cr_expect_eq(hparams.attention_scale, 0.25f);
    cr_expect_eq(hparams.experts.n, 0u);
    cr_expect_eq(hparams.latent_rank, 0u);
    cr_expect_eq(hparams.embedding_scale, 1);
    cr_expect_not(hparams.is_parallel);
    for (size_t i = 0; i < 6; i++) {
        cr_expect(hparams.layers[i].n_head == 4 && hparams.layers[i].n_head_kv == 4);
        cr_expect(hparams.layers[i].is_rotated && !hparams.layers[i].is_windowed);
    }
    close_model();
}

Test(run_hparams, heads_may_differ_by_layer)
{
    read_model("llama", ", \"llama.attention.head_count_kv\": [4, 2, 0, 1, 4, 4], "
                        "\"llama.attention.key_length\": 24, "
                        "\"llama.attention.value_length\": 8, "
                        "\"llama.rope.dimension_count\": 10");
    cr_expect(hparams.dim_k == 24 && hparams.dim_v == 8 && hparams.n_rot == 10);
    cr_expect_eq(hparams.layers[1].n_head_kv, 2u);
    cr_expect_eq(hparams.layers[2].n_head, 0u, "a layer without keys has no attention");
    cr_expect_eq(hparams.layers[3].n_head_kv, 1u);
    close_model();
}

Test(run_hparams, layers_have_a_limit)
{
    n_layer = GGUF_MAX_LAYERS;
    read_model("llama", "");
    cr_expect_eq(hparams.n_layer, GGUF_MAX_LAYERS);
    close_model();
    n_layer++;
    expect_refused("llama", "", -EINVAL, "llama.block_count");
}

Test(run_hparams, invalid_values_are_refused)
{
    expect_refused("llama", ", \"llama.attention.head_count_kv\": 3", -EINVAL, "not a multiple");
    expect_refused("llama", ", \"llama.attention.head_count_kv\": [4, 4]", -EINVAL,
                   "llama.attention.head_count_kv: 2 values, layer 2 has none");
    expect_refused("llama", ", \"llama.rope.dimension_count\": 5", -EINVAL, "is odd");
    expect_refused("exaone4", ", \"exaone4.nextn_predict_layers\": 6", -EINVAL,
                   "exaone4.nextn_predict_layers");
    expect_refused("llama", ", \"llama.attention.key_length\": 0", -EINVAL, "without width");
    expect_refused("llama", ", \"llama.attention.key_length\": 1e9", -EINVAL, "key_length");
    expect_refused("llama", ", \"llama.expert_count\": 4", -ENOENT, "no llama.expert_used_count");
    expect_refused("llama", ", \"llama.expert_count\": 4, \"llama.expert_used_count\": 5", -EINVAL,
                   "llama.expert_used_count: 5");
    expect_refused("llama", ", \"llama.expert_count\": 4, \"llama.expert_used_count\": 0", -EINVAL,
                   "llama.expert_used_count: 0, not an integer from 1 to ");
    expect_refused("deepseek2",
                   ", \"deepseek2.expert_count\": 4, \"deepseek2.expert_used_count\": 2, "
                   "\"deepseek2.expert_group_count\": 3, \"deepseek2.expert_group_used_count\": 1",
                   -EINVAL, "not a multiple of expert_group_count");
    expect_refused("deepseek2",
                   ", \"deepseek2.expert_count\": 4, \"deepseek2.expert_used_count\": 3, "
                   "\"deepseek2.expert_group_count\": 2, \"deepseek2.expert_group_used_count\": 1",
                   -EINVAL, "fewer than expert_used_count");
    expect_refused("rwkv7", ", \"rwkv7.architecture_version\": 0", -EINVAL,
                   "metadata: rwkv7.architecture_version: 0 is not 4, 5, 6 or 7");
    expect_refused("rwkv7", ", \"rwkv7.architecture_version\": 8", -EINVAL,
                   "metadata: rwkv7.architecture_version: 8 is not 4, 5, 6 or 7");
    expect_refused("llama", ", \"llama.expert_count\": 100000", -EINVAL, "llama.expert_count");
}

static void expect_unreadable(const char *text, int code, const char *pattern)
{
    run_files_metadata(&files, text);
    tree = run_files_open(&files);
    cr_expect_eq(run_hparams_read(tree.metadata, &hparams, &failure), code, "%s", text);
    cr_expect_not_null(strstr(failure.text, pattern), "\"%s\" does not contain \"%s\"",
                       failure.text, pattern);
    run_tree_close(&tree);
}

Test(run_hparams, missing_keys_are_named)
{
    expect_unreadable("{}", -ENOENT, "no general.architecture");
    expect_unreadable("{\"general.architecture\": \"perceptron\"}", -ENOTSUP, "\"perceptron\"");
    expect_unreadable("{\"general.architecture\": \"llama\"}", -ENOENT, "no llama.block_count");
    expect_unreadable("{\"general.architecture\": \"llama\", \"llama.block_count\": 1}", -ENOENT,
                      "no llama.embedding_length");
    expect_refused("llama", ", \"llama.expert_count\": 4", -ENOENT, "no llama.expert_used_count");
}

Test(run_hparams, required_keys_are_named)
{
    run_files_metadata(&files, "{\"general.architecture\": \"command-r\", "
                               "\"command-r.block_count\": 1, \"command-r.embedding_length\": 8, "
                               "\"command-r.attention.head_count\": 2, "
                               "\"command-r.attention.layer_norm_epsilon\": 1e-5}");
    tree = run_files_open(&files);
    cr_expect_eq(run_hparams_read(tree.metadata, &hparams, &failure), -ENOENT);
    cr_expect_str_eq(failure.text,
                     "metadata: no command-r.logit_scale: every model of this architecture has the "
                     "key; the file is incomplete, convert the model again or add the key with "
                     "ggufs --set");
    run_tree_close(&tree);
}

Test(run_hparams, rotated_weights_are_refused)
{
    cr_expect_eq(read_keys("qwen35", ", \"prism.hadamard.sign_mode\": \"explicit\""), -EINVAL);
    cr_expect(strstr(failure.text, "prism.hadamard.*: the weights are stored rotated"), "%s",
              failure.text);
    run_tree_close(&tree);
    read_model("llama", ", \"prism.other\": 1");
    close_model();
}

Test(run_hparams, every_architecture_has_a_row)
{
    const struct gguf_architecture *row;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++)
        cr_expect_not_null(run_architecture_find(row->name), "%s", row->name);
    cr_expect_null(run_architecture_find(""));
    cr_expect_null(run_architecture_find("LLAMA"));
    cr_expect_null(run_architecture_find("qwen qwen2"));
}

static void expect_windows(const char *expected)
{
    for (size_t i = 0; i < 6; i++)
        cr_expect_eq(hparams.layers[i].is_windowed, expected[i] == 'w', "layer %zu of %s", i,
                     expected);
}

Test(run_hparams, windows_by_layer)
{
    read_model("gemma2", ", \"gemma2.attention.sliding_window\": 7");
    cr_expect_eq(hparams.window, 7u);
    expect_windows("w-w-w-");
    close_model();
    read_model("gemma3", ", \"gemma3.attention.sliding_window\": 7");
    expect_windows("wwwww-");
    close_model();
    read_model("gemma3", ", \"gemma3.attention.sliding_window\": 7, "
                         "\"gemma3.attention.sliding_window_pattern\": 3");
    expect_windows("ww-ww-");
    close_model();
    read_model("gemma3",
               ", \"gemma3.attention.sliding_window\": 7, "
               "\"gemma3.attention.sliding_window_pattern\": [true, false, false, true, 1, 0]");
    expect_windows("w--ww-");
    close_model();
    read_model("gemma3", ", \"gemma3.attention.sliding_window\": 0, "
                         "\"gemma3.attention.sliding_window_pattern\": [true]");
    expect_windows("------");
    close_model();
    expect_refused("gemma3",
                   ", \"gemma3.attention.sliding_window\": 7, "
                   "\"gemma3.attention.sliding_window_pattern\": [true]",
                   -EINVAL, "1 values, layer 1 has none");
    /* The architecture llama has no windows and ignores the key. */
    read_model("llama", ", \"llama.attention.sliding_window\": 7");
    expect_windows("------");
    close_model();
    /* Early files of Gemma 2 lack the keys whose values all its models share. */
    read_model("gemma2", "");
    expect_windows("w-w-w-");
    cr_expect(hparams.window == 4096 && hparams.attention_softcap == 50 &&
              hparams.final_softcap == 30);
    close_model();
}

Test(run_hparams, scales)
{
    read_model("gemma", "");
    cr_expect_eq(hparams.embedding_scale, 8);
    close_model();
    read_model("granite", ", \"granite.embedding_scale\": 12, \"granite.residual_scale\": 0.25, "
                          "\"granite.logit_scale\": 8, \"granite.attention.scale\": 0.5");
    cr_expect_eq(hparams.embedding_scale, 12);
    cr_expect_eq(hparams.residual_scale, 0.25f);
    cr_expect_eq(hparams.logit_scale, 0.125f);
    cr_expect_eq(hparams.attention_scale, 0.5f);
    close_model();
    read_model("granite", ", \"granite.embedding_scale\": 0, \"granite.attention.scale\": 0");
    cr_expect_eq(hparams.embedding_scale, 1);
    cr_expect_eq(hparams.attention_scale, 0.25f);
    close_model();
    read_model("command-r", ", \"command-r.logit_scale\": 0.0625");
    cr_expect_eq(hparams.logit_scale, 0.0625f);
    cr_expect(hparams.is_parallel);
    close_model();
    read_model("llama", ", \"llama.logit_scale\": 3, \"llama.embedding_scale\": 3");
    cr_expect(hparams.logit_scale == 1 && hparams.embedding_scale == 1);
    close_model();
}

/* llama.cpp identifies these models by their number of layers or experts. */
Test(run_hparams, variants)
{
    static const char experts[] = ", \"llama4.expert_count\": %u, \"llama4.expert_used_count\": 1";
    char keys[100];

    read_model("gemma2", ", \"gemma2.attention.key_length\": 64");
    cr_expect_eq(hparams.attention_scale, 0.125f);
    close_model();
    n_layer = 46;
    read_model("gemma2", ", \"gemma2.attention.key_length\": 64");
    cr_expect_eq(hparams.attention_scale, 0.25f, "from n_embd / n_head");
    close_model();
    read_model("gemma3", ", \"gemma3.attention.key_length\": 64");
    cr_expect_eq(hparams.attention_scale, 0.125f);
    close_model();
    n_layer = 62;
    read_model("gemma3", ", \"gemma3.attention.key_length\": 64");
    cr_expect_eq(hparams.attention_scale, 0.25f);
    close_model();
    n_layer = 32;
    read_model("baichuan", "");
    cr_expect_eq(hparams.max_alibi, 0);
    close_model();
    n_layer = 40;
    read_model("baichuan", "");
    cr_expect_eq(hparams.max_alibi, 8);
    close_model();
    for (unsigned n_expert = 16; n_expert <= 128; n_expert *= 8) {
        snprintf(keys, sizeof keys, experts, n_expert);
        read_model("llama4", keys);
        cr_expect_eq(hparams.qk_plain_norm, n_expert == 16);
        close_model();
    }
}

Test(run_hparams, parallel_residual_of_gptneox)
{
    read_model("gptneox", ", \"gptneox.use_parallel_residual\": true");
    cr_expect(hparams.is_parallel);
    close_model();
    read_model("gptneox", ", \"gptneox.use_parallel_residual\": false");
    cr_expect_not(hparams.is_parallel);
    close_model();
}

Test(run_hparams, latent_attention)
{
    read_model("deepseek2", ", \"deepseek2.attention.kv_lora_rank\": 32, "
                            "\"deepseek2.attention.key_length\": 48, "
                            "\"deepseek2.attention.value_length\": 32, "
                            "\"deepseek2.attention.key_length_mla\": 25, "
                            "\"deepseek2.attention.value_length_mla\": 20, "
                            "\"deepseek2.rope.dimension_count\": 8");
    cr_expect(hparams.latent_rank == 32 && hparams.latent_k == 25 && hparams.latent_v == 20);
    cr_expect_float_eq(hparams.latent_scale, 0.2f, 1e-7f);
    close_model();
    read_model("deepseek2", ", \"deepseek2.attention.kv_lora_rank\": 32, "
                            "\"deepseek2.attention.key_length\": 25, "
                            "\"deepseek2.rope.dimension_count\": 8, "
                            "\"deepseek2.attention.value_length\": 16, "
                            "\"deepseek2.rope.scaling.type\": \"yarn\", "
                            "\"deepseek2.rope.scaling.factor\": 40, "
                            "\"deepseek2.rope.scaling.yarn_log_multiplier\": 0.1");
    cr_expect(hparams.latent_k == 25 && hparams.latent_v == 16);
    cr_expect_float_eq(hparams.latent_scale, powf(1 + 0.1f * logf(40), 2) / 5, 1e-6f);
    close_model();
}

/* ---- rotary embedding ---- */

static struct run_rotary rotary;
static struct run_rotary_scaling scaling;

static void read_rotary(const char *architecture, const char *keys, bool is_windowed)
{
    read_model(architecture, keys);
    cr_assert_eq(
        run_hparams_rotary(&hparams, tree.metadata, is_windowed, &rotary, &scaling, &failure), 0,
        "%s", failure.text);
    close_model();
}

Test(run_hparams, default_rotation)
{
    read_rotary("llama", "", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NORMAL);
    cr_expect(rotary.n_rot == 16 && rotary.magnitude == 1);
    cr_expect(scaling.base == 10000 && scaling.factor == 1 && scaling.yarn_mix == 0);
    cr_expect_eq(scaling.n_original, 100u);
    read_rotary("qwen2", ", \"qwen2.rope.freq_base\": 1e6", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NEOX);
    cr_expect_eq(scaling.base, 1e6f);
    read_rotary("gpt2", "", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NONE);
}

Test(run_hparams, tensor_data_layout)
{
    read_rotary("llama", ", \"llama.tensor_data_layout\": \"reference\"", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NEOX);
    read_rotary("llama", ", \"llama.tensor_data_layout\": \"Meta AI original pth\"", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NORMAL);
    /* GPT-J's rows were never reordered, so the layout changes nothing. */
    read_rotary("gptj", ", \"gptj.tensor_data_layout\": \"reference\"", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NORMAL);
    read_model("falcon", ", \"falcon.tensor_data_layout\": \"reference\"");
    cr_expect(hparams.qkv_in_groups);
    close_model();
    read_model("falcon", ", \"falcon.tensor_data_layout\": \"jploski\"");
    cr_expect_not(hparams.qkv_in_groups);
    close_model();
    read_model("mpt", ", \"mpt.tensor_data_layout\": \"reference\"");
    cr_expect_not(hparams.qkv_in_groups);
    close_model();
}

Test(run_hparams, layers_without_rotation)
{
    read_model("llama4", "");
    expect_windows("www-ww");
    for (size_t i = 0; i < 6; i++)
        cr_expect_eq(hparams.layers[i].is_rotated, i != 3);
    close_model();
    read_model("llama4", ", \"llama4.attention.sliding_window\": 0");
    expect_windows("------");
    for (size_t i = 0; i < 6; i++)
        cr_expect(hparams.layers[i].is_rotated);
    close_model();
    read_model("smollm3", "");
    for (size_t i = 0; i < 6; i++)
        cr_expect_eq(hparams.layers[i].is_rotated, i != 3);
    close_model();
    read_rotary("granite", ", \"granite.rope.scaling.finetuned\": false", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NONE);
    read_rotary("granite", ", \"granite.rope.scaling.finetuned\": true", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NORMAL);
    read_rotary("baichuan", "", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NORMAL);
    n_layer = 40;
    read_rotary("baichuan", "", false);
    cr_expect_eq(rotary.kind, RUN_ROTARY_NONE, "the 13B has ALiBi");
}

Test(run_hparams, keys_of_rope_scaling)
{
    read_rotary("llama",
                ", \"llama.rope.scaling.type\": \"linear\", \"llama.rope.scaling.factor\": 4",
                false);
    cr_expect(scaling.factor == 4 && scaling.yarn_mix == 0 && rotary.magnitude == 1);
    read_rotary("llama", ", \"llama.rope.scale_linear\": 2.0", false);
    cr_expect_eq(scaling.factor, 2);
    read_rotary("llama",
                ", \"llama.rope.scale_linear\": 2.0, \"llama.rope.scaling.type\": \"none\"", false);
    cr_expect_eq(scaling.factor, 1);
    read_rotary("llama", ", \"llama.rope.scaling.factor\": 0", false);
    cr_expect_eq(scaling.factor, 1);
}

Test(run_hparams, yarn)
{
    read_rotary("qwen2",
                ", \"qwen2.rope.scaling.type\": \"yarn\", \"qwen2.rope.scaling.factor\": 4, "
                "\"qwen2.rope.scaling.original_context_length\": 32768, "
                "\"qwen2.rope.scaling.yarn_beta_fast\": 16",
                false);
    cr_expect(scaling.factor == 4 && scaling.yarn_mix == 1 && scaling.n_original == 32768);
    cr_expect(scaling.beta_fast == 16 && scaling.beta_slow == 1);
    cr_expect_float_eq(rotary.magnitude, 1 + 0.1f * logf(4), 1e-6f);
    read_rotary("qwen2",
                ", \"qwen2.rope.scaling.type\": \"yarn\", \"qwen2.rope.scaling.factor\": 4, "
                "\"qwen2.rope.scaling.yarn_ext_factor\": 0",
                false);
    cr_expect(scaling.yarn_mix == 0 && rotary.magnitude == 1);
    /* With a log multiplier, the factor is part of the attention scale. */
    read_rotary("deepseek2",
                ", \"deepseek2.rope.scaling.type\": \"yarn\", "
                "\"deepseek2.rope.scaling.factor\": 40, "
                "\"deepseek2.rope.scaling.yarn_log_multiplier\": 0.1",
                false);
    cr_expect_eq(rotary.magnitude, 1);
    read_rotary("mistral3",
                ", \"mistral3.rope.scaling.type\": \"yarn\", "
                "\"mistral3.rope.scaling.factor\": 4, "
                "\"mistral3.rope.scaling.yarn_log_multiplier\": 0.5",
                false);
    cr_expect_float_eq(rotary.magnitude, (1 + 0.1f * logf(4)) / (1 + 0.05f * logf(4)), 1e-6f);
    read_rotary("phi3", ", \"phi3.rope.scaling.attn_factor\": 1.25", false);
    cr_expect_eq(rotary.magnitude, 1.25f);
}

Test(run_hparams, rotation_of_windowed_layers)
{
    const char *const keys = ", \"gemma3.attention.sliding_window\": 7, "
                             "\"gemma3.rope.freq_base\": 1e6, "
                             "\"gemma3.rope.scaling.type\": \"linear\", "
                             "\"gemma3.rope.scaling.factor\": 8";

    read_rotary("gemma3", keys, false);
    cr_expect(scaling.base == 1e6f && scaling.factor == 8);
    read_rotary("gemma3", keys, true);
    cr_expect(scaling.base == 10000 && scaling.factor == 1);
    read_rotary("gemma3", ", \"gemma3.rope.freq_base_swa\": 500", true);
    cr_expect_eq(scaling.base, 500);
}

Test(run_hparams, invalid_rotations_are_refused)
{
    static const char *const bad[][2] = {
        {", \"llama.rope.freq_base\": 1", "rope.freq_base is not above 1"},
        {", \"llama.rope.freq_base\": -10000", "rope.freq_base is not above 1"},
        {", \"llama.rope.freq_base\": 1e60", "llama.rope.freq_base: "},
        {", \"llama.rope.scaling.factor\": -2", "rope.scaling.factor is negative"},
        {", \"llama.rope.scaling.original_context_length\": -1", "original_context_length"},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        read_model("llama", bad[i][0]);
        cr_expect_eq(
            run_hparams_rotary(&hparams, tree.metadata, false, &rotary, &scaling, &failure),
            -EINVAL, "%s", bad[i][0]);
        cr_expect_not_null(strstr(failure.text, bad[i][1]), "%s", failure.text);
        close_model();
    }
}
