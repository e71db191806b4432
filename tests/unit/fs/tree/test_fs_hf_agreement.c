/*
 * hf/ and the runner agree: from each model, every kind of tensor and every key is removed in turn,
 * and then both refuse the model or both accept it, but for the reasons listed here. The models are
 * the fixtures, and a tiny model of each row, which needs no fixtures.
 */
#include "contrib/runner/compute/thread_pool.h"
#include "fs/tree/hf/hf_rows.h"
#include "tests/unit/fs/hf_verdict.h"
#include "tests/unit/fs/tiny_file.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/thread_pool_checks.h"
#include "tests/unit/runner/tiny_models.h"
#include "tests/unit/runner/tree_copy.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin(void)
{
    model_file_begin_test();
    thread_pool_begin_test();
}

TestSuite(fs_hf_agreement, .init = begin, .fini = run_thread_pool_end);

/* The model that is looked at, with its tree in files for the runner. */
static struct {
    const char *name;
    const struct gguf_model *model;
    struct tree_copy copy;
    char *list; /* tensors.json, one tensor per line */
    struct gguf_tensor *tensors;
    struct gguf_key *keys;
} subject;

/* Why hf/ needs a key or tensor that the runner does not, or the reverse. */
static struct {
    const char *key, *reason; /* the key without its architecture, or the tensor without "blk." */
    bool has_hf;
    size_t n; /* models without it that only one of them accepts */
} differences[] = {
    {"context_length", "config.json says how long texts may be", false, 0},
    {"feed_forward_length", "the runner takes the size from shapes", false, 0},
    {"expert_feed_forward_length", "the runner takes the size from shapes", false, 0},
    {"expert_shared_count", "the runner takes the size from shapes", false, 0},
    {"expert_shared_feed_forward_length", "the runner takes the size from shapes", false, 0},
    {"ssm.conv_kernel", "the runner takes the size from shapes", false, 0},
    {"ssm.inner_size", "the runner takes the size from shapes", false, 0},
    {"ssm.state_size", "the runner takes the size from shapes", false, 0},
    {"ssm.time_step_rank", "the runner takes the size from shapes", false, 0},
    {"kda.head_dim", "the runner takes the size from shapes", false, 0},
    {"shortconv.l_cache", "the runner takes the size from shapes", false, 0},
    {"altup.num_inputs", "the runner takes the size from shapes", false, 0},
    {"embedding_length_per_layer_input", "the runner takes the size from shapes", false, 0},
    {"altup.active_idx", "the runner knows the only number in use, 0", false, 0},
    {"attention.key_length", "its default is right in these models alone", false, 0},
    {"attention.key_length_mla", "the runner takes key_length", false, 0},
    {"expert_weights_norm", "the class always does it", false, 0},
    {"expert_gating_func", "the class has another one than the default", false, 0},
    {"%.exp_probs_b.bias", "without it, DeepSeek's class has another gating function", false, 0},
    {"attention.layer_norm_epsilon", "the runner takes the other epsilon", false, 0},
    {"attention.value_length_mla", "hf/ takes the size from a shape", true, 0},
    {"attention.head_count_kv", "StarCoder: hf/ does not use it, since converters write 1", true,
     0},
};

static size_t n_complete, n_removals, n_refused;

/* ---- removals ---- */

/* Write tensors.json without the tensors of a kind; NULL: with all. */
static void list_without(const char *kind)
{
    static const char start[] = "{\"name\":\"";
    const char *separator = "[\n";
    char path[300];
    FILE *file;

    snprintf(path, sizeof path, "%s/tensors.json", subject.copy.path);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    for (const char *line = strstr(subject.list, start); line; line = strstr(line + 1, start)) {
        const char *name = line + strlen(start);
        char of_line[HF_VERDICT_BYTES];

        hf_verdict_kind((struct gguf_string){name, strcspn(name, "\"")}, of_line);
        if (kind && strcmp(kind, of_line) == 0)
            continue;
        fprintf(file, "%s%.*s}", separator, (int)strcspn(line, "}"), line);
        separator = ",\n";
    }
    fprintf(file, "%s\n]\n", *separator == '[' ? separator : "");
    cr_assert_eq(fclose(file), 0);
}

static void move_key(struct gguf_string name, bool is_away)
{
    char in[400], out[400];

    snprintf(in, sizeof in, "%s/metadata/%.*s.json", subject.copy.path, (int)name.length_bytes,
             name.data);
    snprintf(out, sizeof out, "%s/away", subject.copy.path);
    cr_assert_eq(rename(is_away ? in : out, is_away ? out : in), 0, "%s", in);
}

static bool is_difference(const char *removed, bool has_hf)
{
    const char *key = strchr(removed, '.');

    for (size_t i = 0; key && i < COUNT(differences); i++) {
        if (strcmp(key + 1, differences[i].key) == 0 && differences[i].has_hf == has_hf) {
            differences[i].n++;
            return true;
        }
    }
    return false;
}

static void compare(const struct gguf_model *less, const char *removed)
{
    char of_hf[HF_VERDICT_BYTES], of_runner[HF_VERDICT_BYTES];
    const bool has_hf = hf_verdict(less, of_hf), is_run = runner_verdict(&subject.copy, of_runner);

    n_removals++;
    n_refused += !has_hf && !is_run;
    if (has_hf != is_run && !is_difference(removed, has_hf))
        cr_expect_fail("%s without %s: %s accepts it, the other says: %s%s", subject.name, removed,
                       has_hf ? "hf/" : "the runner", of_hf, of_runner);
}

static void remove_tensors(void)
{
    struct gguf_model less = *subject.model;
    char kind[HF_VERDICT_BYTES], other[HF_VERDICT_BYTES];

    less.tensors = subject.tensors;
    for (uint64_t i = 0; i < subject.model->n_tensors; i++) {
        bool is_first = true;

        less.n_tensors = 0;
        hf_verdict_kind(subject.model->tensors[i].name, kind);
        for (uint64_t j = 0; j < subject.model->n_tensors; j++) {
            hf_verdict_kind(subject.model->tensors[j].name, other);
            if (strcmp(kind, other) != 0)
                less.tensors[less.n_tensors++] = subject.model->tensors[j];
            else
                is_first &= j >= i;
        }
        if (!is_first)
            continue;
        list_without(kind);
        compare(&less, kind);
    }
    list_without(NULL);
}

static void remove_keys(void)
{
    struct gguf_model less = *subject.model;

    less.keys = subject.keys;
    less.n_keys--;
    for (uint64_t i = 0; i < subject.model->n_keys; i++) {
        const struct gguf_key *key = &subject.model->keys[i];
        char name[HF_VERDICT_BYTES];

        snprintf(name, sizeof name, "%.*s", (int)key->name.length_bytes, key->name.data);
        if (strncmp(name, "general.", 8) == 0 || strncmp(name, "tokenizer.", 10) == 0)
            continue;
        memcpy(less.keys, subject.model->keys, i * sizeof *less.keys);
        memcpy(less.keys + i, key + 1, (less.n_keys - i) * sizeof *less.keys);
        move_key(key->name, true);
        compare(&less, name);
        move_key(key->name, false);
    }
}

/* Models that are complete and have no hf/, with a part of the line that says why. */
static const struct {
    const char *model, *reason;
} without[] = {
    {"deepseek-moe", "no row"},
    /* with experts, which their classes do not have */
    {"minicpm", "no place for tensor \"blk.0.ffn_gate_inp.weight\""},
    {"mistral3", "no place for tensor \"blk.0.ffn_gate_inp.weight\""},
    {"granite", "no place for tensor \"blk.0.ffn_gate_inp.weight\""},
    {"granitemoe", "no place for tensor \"blk.0.ffn_"},             /* without experts */
    {"gemma4", "no place for tensor \"blk.0.ffn_up_exps.weight\""}, /* published files join it */
    {"nemotron_h_moe", "no place for tensor \"blk.2.ffn_latent_down.weight\""},
    {"mimo2", "windowed layers do not have twice as many heads of keys"},
    {NULL, NULL},
};

static void expect_without(const char *name, const char *reason)
{
    for (size_t i = 0; without[i].model; i++) {
        if (strcmp(without[i].model, name) == 0 && strstr(reason, without[i].reason))
            return;
    }
    cr_expect_fail("%s: %s", name, reason);
}

static void check_model(const char *name, const struct gguf_model *model)
{
    char of_hf[HF_VERDICT_BYTES], of_runner[HF_VERDICT_BYTES], path[300];
    long n_bytes;
    FILE *list;

    subject.name = name;
    subject.model = model;
    tree_copy_make(model, &subject.copy);
    snprintf(path, sizeof path, "%s/tensors.json", subject.copy.path);
    list = fopen(path, "r");
    cr_assert_not_null(list);
    fseek(list, 0, SEEK_END);
    n_bytes = ftell(list);
    rewind(list);
    subject.list = calloc((size_t)n_bytes + 1, 1);
    subject.tensors = calloc((size_t)model->n_tensors, sizeof *subject.tensors);
    subject.keys = calloc((size_t)model->n_keys, sizeof *subject.keys);
    cr_assert(subject.list && subject.tensors && subject.keys);
    cr_assert_eq(fread(subject.list, 1, (size_t)n_bytes, list), (size_t)n_bytes);
    fclose(list);
    n_complete++;
    if (!runner_verdict(&subject.copy, of_runner))
        cr_expect_fail("%s: %s", name, of_runner);
    else if (!hf_verdict(model, of_hf))
        expect_without(name, of_hf);
    else {
        remove_tensors();
        remove_keys();
    }
    free(subject.list);
    free(subject.tensors);
    free(subject.keys);
    tree_copy_remove(&subject.copy);
}

Test(fs_hf_agreement, models_of_the_fixtures)
{
    hf_verdict_fixtures(check_model);
    cr_expect_geq(n_complete, 40u);
    cr_expect_gt(n_refused, n_removals / 2, "%zu of %zu", n_refused, n_removals);
}

/* ---- tiny models ---- */

/* Make the model with all biases, or if hf/ has no place for one, with those that it must have. */
static struct gguf_model *make_tiny(const char *name, bool has_experts)
{
    static struct tiny_model tiny;
    struct gguf_model *model;
    char reason[HF_VERDICT_BYTES];

    tiny_file_model(name, has_experts, true, &tiny);
    model = model_file_make(tiny_file_begin(&tiny, NULL));
    if (hf_verdict(model, reason) || !strstr(reason, "for the bias"))
        return model;
    gguf_close(model);
    tiny_file_model(name, has_experts, false, &tiny);
    return model_file_make(tiny_file_begin(&tiny, NULL));
}

Test(fs_hf_agreement, tiny_models)
{
    const struct fs_hf_row *row;
    const char *previous = "";

    for (size_t i = 0; (row = fs_hf_row_at(i)); i++) {
        const char *name = row->architecture;
        struct gguf_model *model;

        if (strcmp(name, previous) == 0)
            continue;
        previous = name;
        for (int has_experts = 0;
             has_experts <= tiny_model_may_have_experts(gguf_architecture_find(name));
             has_experts++) {
            model = make_tiny(name, has_experts);
            check_model(name, model);
            gguf_close(model);
        }
    }
    cr_expect_geq(n_complete, 80u, "%zu", n_complete);
    cr_expect_gt(n_refused, n_removals / 2, "%zu of %zu", n_refused, n_removals);
    for (size_t i = 0; i + 1 < COUNT(differences); i++) /* the last one is of a fixture */
        cr_expect_gt(differences[i].n, 0u, "%s", differences[i].key);
}

/* Tensors beside the tensors of a tiny model, or instead of some. '%': in both layers. */
Test(fs_hf_agreement, tensors_without_a_place)
{
    static const struct {
        const char *architecture, *left_out, *name;
        uint64_t ne[4];
        const char *reason; /* of hf/; NULL: hf/ exists */
        bool is_run;
    } cases[] = {
        {"llama", ".attn_q.weight", "blk.%.attn_q.weight", {32, 32}, NULL, true},
        {"llama", NULL, "unheard_of.weight", {32}, NULL, true},
        /* other architectures have it */
        {"llama", NULL, "token_embd_norm.weight", {32}, "has no tensor", false},
        {"qwen2", NULL, "token_embd_norm.weight", {32}, "has no tensor", false},
        {"mamba", NULL, "token_embd_norm.weight", {32}, "has no tensor", false},
        {"mamba", NULL, "rope_freqs.weight", {4}, "has no tensor", false},
        /* the class does not use it, but config.json has its numbers */
        {"llama", "rope_freqs", "rope_freqs.weight", {8}, "8 factors", false},
        {"llama", "rope_freqs", "rope_freqs.weight", {4}, NULL, true},
        /* the runner warns that it does not use it */
        {"llama", NULL, "blk.0.unheard_of.weight", {32}, "has no tensor", true},
        {"llama", NULL, "blk.2.attn_norm.weight", {32}, "does not count", false},
        /* the runner multiplies by it */
        {"llama", NULL, "blk.0.attn_q.scale", {1}, "no place", true},
        {"llama", NULL, "token_embd.scale", {1}, "no place", true},
        {"llama", ".attn_q.weight", "blk.%.attn_qkv.weight", {32, 64}, "no place", false},
        {"llama", ".attn_q.weight", "blk.%.attn_q", {32, 32}, "neither", false},
        {"mamba", ".ssm_a", "blk.0.ssm_a.weight", {8, 64}, "either", false},
        {"llama", NULL, "blk.0.attn_q_norm.weight", {8}, "has no tensor", false},
        {"llama", NULL, "blk.0.attn_norm.bias", {32}, "has no tensor", false},
        {"llama", NULL, "blk.0.post_ffw_norm.weight", {32}, "has no tensor", false},
        {"llama", NULL, "blk.0.attn_sinks.weight", {4}, "has no tensor", false},
        {"llama", NULL, "output.bias", {24}, "has no tensor", false},
        {"qwen3", NULL, "rope_freqs.weight", {4}, "has no tensor", false},
        {"gemma2", NULL, "rope_freqs.weight", {4}, "has no tensor", false},
        {"phi3", NULL, "rope_freqs.weight", {4}, "has no tensor", false},
        {"granitehybrid", ".ffn_gate.", "blk.%.ffn_gate.weight", {32, 40}, "does not fit", false},
        {"mpt", NULL, "position_embd.weight", {32, 64}, "no place", true},
        {"mistral3", NULL, "blk.0.rope_freqs.weight", {4}, "no place", true},
        {"jamba", NULL, "blk.1.ffn_gate_up_exps.weight", {32, 96, 4}, "no place", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct tiny_model tiny;
        struct gguf_writer *w;
        char of_hf[HF_VERDICT_BYTES], of_runner[HF_VERDICT_BYTES], name[GGUF_NAME_BYTES];
        struct gguf_model *model;

        tiny_file_model(cases[i].architecture, false, false, &tiny);
        w = tiny_file_begin(&tiny, cases[i].left_out);
        for (uint32_t layer = strchr(cases[i].name, '%') ? TINY_N_LAYER : 1; layer-- > 0;) {
            const struct gguf_name_match match = {.layer = layer, .suffix = ""};

            cr_assert(gguf_tensor_name_expand(cases[i].name, &match, name));
            tiny_file_add(w, name, cases[i].ne);
        }
        model = model_file_make(w);
        tree_copy_make(model, &subject.copy);
        cr_expect_eq(hf_verdict(model, of_hf), !cases[i].reason, "%s: %s", name, of_hf);
        if (cases[i].reason)
            cr_expect(strstr(of_hf, strrchr(cases[i].name, '%') ? strchr(name + 4, '.') : name) &&
                          strstr(of_hf, cases[i].reason),
                      "%s: %s", name, of_hf);
        cr_expect_eq(runner_verdict(&subject.copy, of_runner), cases[i].is_run, "%s: %s",
                     cases[i].name, of_runner);
        tree_copy_remove(&subject.copy);
        gguf_close(model);
    }
}

/* Values of a key of a tiny model; NULL: the key is missing. */
Test(fs_hf_agreement, keys_of_other_types)
{
    static const struct {
        const char *architecture, *key, *value;
        const char *reason; /* of hf/; NULL: both accept the model */
    } cases[] = {
        {"llama", "block_count", NULL, "no key \"llama.block_count\""},
        {"llama", "block_count", "0", "no key \"llama.block_count\", or it is 0"},
        {"llama", "block_count", "true", "is bool, and must be uint32"},
        {"llama", "block_count", "[2, 2]", "is array, and must be uint32"},
        {"llama", "context_length", "[64, 64]", "is array, and must be uint32"},
        {"llama", "context_length", "64.5", "is float32, and must be uint32"},
        {"llama", "attention.head_count", "true", "is bool, and must be uint32"},
        {"llama", "attention.head_count", "[4, 4]", NULL},
        {"llama", "attention.layer_norm_rms_epsilon", "true", "is bool, and must be float32"},
        {"llama", "rope.freq_base", "[500.5, 500.5]", "is array, and must be float32"},
        {"llama", "rope.freq_base", "500", NULL},
        {"deepseek2", "expert_gating_func", "1", NULL},
        {"deepseek2", "expert_weights_norm", "1", "is uint32, and must be bool"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct tiny_model tiny;
        char of_hf[HF_VERDICT_BYTES], of_runner[HF_VERDICT_BYTES];
        struct gguf_model *model;
        size_t n = 0;

        tiny_file_model(cases[i].architecture, false, false, &tiny);
        for (size_t j = 0; j < tiny.n_keys; j++) {
            struct tiny_key *key = &tiny.keys[n];

            *key = tiny.keys[j];
            if (strcmp(key->listed, cases[i].key) != 0 || cases[i].value)
                n++;
            if (strcmp(key->listed, cases[i].key) == 0 && cases[i].value)
                snprintf(key->value, sizeof key->value, "%s", cases[i].value);
        }
        tiny.n_keys = n;
        model = model_file_make(tiny_file_begin(&tiny, NULL));
        tree_copy_make(model, &subject.copy);
        cr_expect_eq(hf_verdict(model, of_hf), !cases[i].reason, "%s: %s", cases[i].key, of_hf);
        cr_expect(!cases[i].reason || strstr(of_hf, cases[i].reason), "%s: %s", cases[i].key,
                  of_hf);
        cr_expect_eq(runner_verdict(&subject.copy, of_runner), !cases[i].reason, "%s %s: %s",
                     cases[i].key, cases[i].value, of_runner);
        tree_copy_remove(&subject.copy);
        gguf_close(model);
    }
}
