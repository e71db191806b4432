/* Drafts on a small model: the logits are the same as without drafts. */
#include "contrib/runner/cli/generate.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/speculation.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>

enum { N_LAYER = 2, N_EMBD = 32, N_HEAD = 4, N_FF = 44, N_VOCAB = 37, N_CONTEXT = 300 };
enum { N_DRAFTS = 7 };

static struct run_files files;
static struct run_tree tree;
static struct run_engine *engine, *plain;
static struct run_options options;
static struct run_session session;
static struct run_speculation speculation;
static struct run_failure failure;
static float logits[(1 + N_DRAFTS) * N_VOCAB], expected[N_VOCAB];
static uint32_t random_state = 1;

struct shape {
    const char *name;
    uint64_t ne0, ne1;
    float scale;
};

static void make_tensors(int layer, const struct shape *shapes, size_t n)
{
    char name[64];

    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "blk.%d.%s.weight", layer, shapes[i].name);
        run_files_random(&files, name, shapes[i].ne0, shapes[i].ne1, 0, shapes[i].scale);
    }
}

static void make_layer(int layer)
{
    static const struct shape shapes[] = {
        {"attn_norm", N_EMBD, 0, 2},        {"attn_q", N_EMBD, N_EMBD, 0.3f},
        {"attn_k", N_EMBD, N_EMBD, 0.3f},   {"attn_v", N_EMBD, N_EMBD, 0.3f},
        {"attn_output", N_EMBD, N_EMBD, 1}, {"ffn_norm", N_EMBD, 0, 2},
        {"ffn_gate", N_EMBD, N_FF, 0.3f},   {"ffn_up", N_EMBD, N_FF, 0.3f},
        {"ffn_down", N_FF, N_EMBD, 0.3f},
    };

    make_tensors(layer, shapes, COUNT(shapes));
}

/* A gated delta net of 4 heads, with keys of 5 elements for 2 of them and values of 6. */
static void make_delta_net(int layer)
{
    static const struct shape shapes[] = {
        {"attn_norm", N_EMBD, 0, 2},
        {"attn_qkv", N_EMBD, 44, 0.3f},
        {"attn_gate", N_EMBD, 24, 0.3f},
        {"ssm_beta", N_EMBD, 4, 0.3f},
        {"ssm_alpha", N_EMBD, 4, 0.3f},
        {"ssm_conv1d", 4, 44, 1},
        {"ssm_norm", 6, 0, 2},
        {"ssm_out", 24, N_EMBD, 1},
        {"post_attention_norm", N_EMBD, 0, 2},
        {"ffn_gate", N_EMBD, N_FF, 0.3f},
        {"ffn_up", N_EMBD, N_FF, 0.3f},
        {"ffn_down", N_FF, N_EMBD, 0.3f},
    };
    static const float decays[] = {-0.05f, -0.1f, -0.2f, -0.5f}, biases[] = {0, 0.2f, -0.2f, 1};
    char name[64];

    make_tensors(layer, shapes, COUNT(shapes));
    snprintf(name, sizeof name, "blk.%d.ssm_a", layer);
    run_files_floats(&files, name, COUNT(decays), 0, 0, decays);
    snprintf(name, sizeof name, "blk.%d.ssm_dt.bias", layer);
    run_files_floats(&files, name, COUNT(biases), 0, 0, biases);
}

/* The attention beside delta nets, with gates. */
static void make_gated_attention(int layer)
{
    static const struct shape shapes[] = {
        {"attn_norm", N_EMBD, 0, 2},
        {"attn_q", N_EMBD, 2ULL * N_EMBD, 0.3f},
        {"attn_k", N_EMBD, N_EMBD, 0.3f},
        {"attn_v", N_EMBD, N_EMBD, 0.3f},
        {"attn_q_norm", N_EMBD / N_HEAD, 0, 2},
        {"attn_k_norm", N_EMBD / N_HEAD, 0, 2},
        {"attn_output", N_EMBD, N_EMBD, 1},
        {"post_attention_norm", N_EMBD, 0, 2},
        {"ffn_gate", N_EMBD, N_FF, 0.3f},
        {"ffn_up", N_EMBD, N_FF, 0.3f},
        {"ffn_down", N_FF, N_EMBD, 0.3f},
    };

    make_tensors(layer, shapes, COUNT(shapes));
}

static void make_nextn(void)
{
    static const struct shape shapes[] = {
        {"nextn.eh_proj", 2ULL * N_EMBD, N_EMBD, 1},
        {"nextn.enorm", N_EMBD, 0, 2},
        {"nextn.hnorm", N_EMBD, 0, 2},
    };

    make_tensors(N_LAYER, shapes, COUNT(shapes));
}

static bool engine_fails;

static bool on_layer(void *progress, size_t n_done)
{
    return !engine_fails && run_session_progress(progress, n_done);
}

static struct run_engine *open_engine(bool has_nextn)
{
    const struct run_engine_options engine_options = {
        .n_batch = 1 + N_DRAFTS,
        .cache_type = DEQUANT_F16,
        .can_rewind = has_nextn,
        .has_nextn = has_nextn,
        .on_layer = on_layer,
        .user = &session.progress,
    };
    struct run_engine *opened;

    cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &engine_options, &opened, &failure),
                 0, "%s", failure.text);
    return opened;
}

static void make_model(const char *name)
{
    char text[700];

    run_files_make(&files);
    snprintf(text, sizeof text,
             "{\"general.architecture\": \"%s\", \"%s.block_count\": %d, "
             "\"%s.nextn_predict_layers\": 1, \"%s.embedding_length\": %d, "
             "\"%s.attention.head_count\": %d, \"%s.context_length\": %d, "
             "\"%s.attention.layer_norm_rms_epsilon\": 1e-6, \"%s.ssm.group_count\": 2}",
             name, name, N_LAYER + 1, name, name, N_EMBD, name, N_HEAD, name, N_CONTEXT, name,
             name);
    run_files_metadata(&files, text);
    run_files_complete_keys(&files, name);
    run_files_random(&files, "token_embd.weight", N_EMBD, N_VOCAB, 0, 1);
    run_files_random(&files, "output_norm.weight", N_EMBD, 0, 0, 2);
    if (strcmp(name, "mimo2") == 0)
        run_files_random(&files, "output.weight", N_EMBD, N_VOCAB, 0, 1);
    make_nextn();
}

static void open_model(void)
{
    tree = run_files_open(&files);
    engine = open_engine(true);
    plain = open_engine(false);
    options = (struct run_options){.n_batch = 512};
    session = (struct run_session){.options = &options,
                                   .engine = engine,
                                   .n_vocab = N_VOCAB,
                                   .n_context = N_CONTEXT,
                                   .n_drafts = N_DRAFTS,
                                   .draft_sources = 1 << RUN_DRAFT_LOOKUP,
                                   .logits = logits};
    run_speculation_begin(&session, &speculation);
}

static void begin(void)
{
    make_model("mimo2");
    for (int i = 0; i <= N_LAYER; i++)
        make_layer(i);
    open_model();
}

static void begin_recurrent(void)
{
    make_model("qwen35");
    make_delta_net(0);
    for (int i = 1; i <= N_LAYER; i++)
        make_gated_attention(i);
    open_model();
}

static void end(void)
{
    run_speculation_free(&speculation);
    run_engine_close(engine);
    run_engine_close(plain);
    run_tree_close(&tree);
    run_files_remove(&files);
}

TestSuite(run_speculation, .init = begin, .fini = end);
TestSuite(run_speculation_recurrent, .init = begin_recurrent, .fini = end);

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 16) % n;
}

/* Compare the logits with the engine without drafts, after feeding it the token. */
static void expect_logits_after(int32_t token)
{
    cr_assert_eq(run_engine_feed(plain, &token, 1, RUN_LOGITS_LAST, expected, &failure), 0);
    cr_assert_eq(speculation.fed.n, run_engine_counts(plain).n_past);
    numbers_expect_same("logits", run_speculation_logits(&speculation), expected, N_VOCAB);
}

static void feed_prompt(const int32_t *tokens, size_t n)
{
    const size_t n_before = speculation.fed.n;
    struct run_ids text = {0};
    size_t n_kept;

    for (size_t i = 0; i < n_before + n; i++)
        run_ids_add(&text, i < n_before ? speculation.fed.list[i] : tokens[i - n_before]);
    cr_assert_not(text.is_short);
    cr_assert_eq(run_speculation_feed(&speculation, &text, &n_kept, &failure), 0);
    cr_expect_eq(n_kept, n_before);
    cr_expect_eq(session.progress.n_total, 0u, "the progress of the prompt goes on");
    run_ids_free(&text);
    cr_assert_eq(run_engine_feed(plain, tokens, n - 1, RUN_LOGITS_NONE, NULL, &failure), 0);
    expect_logits_after(tokens[n - 1]);
}

/* Draft up to `length` tokens from that source in the next pass, whatever passes cost. */
static void set_length_of(enum run_draft_source source, uint32_t length)
{
    struct run_draft_length *draft = &speculation.drafts[source].length;

    draft->length = length;
    draft->token_seconds = 1;
    draft->expected_cost = 0;
    draft->budget = 1;
}

static void set_length(uint32_t length)
{
    set_length_of(RUN_DRAFT_LOOKUP, length);
}

/* Return the draft's token, or RUN_NO_TOKEN after its last. */
static int32_t drafted(void)
{
    return speculation.row + 1 < speculation.n_tokens ? speculation.tokens[speculation.row + 1]
                                                      : RUN_NO_TOKEN;
}

static void check_drafts_by_lookup(void)
{
    static const int32_t prompt[] = {1, 2, 3, 4, 5, 1, 2, 3};
    size_t n_wrong = 0;

    feed_prompt(prompt, 8);
    for (uint32_t n = 8; n < N_CONTEXT; n++) {
        int32_t token = drafted();

        /* Few tokens, so that n-grams occur again. */
        if (token == RUN_NO_TOKEN || random_below(8) == 0)
            token = (int32_t)random_below(3);
        n_wrong += drafted() != RUN_NO_TOKEN && token != drafted();
        set_length(random_below(1 + N_DRAFTS));
        cr_assert_eq(run_speculation_next(&speculation, token, UINT64_MAX, &failure), 0, "%s",
                     failure.text);
        expect_logits_after(token);
    }
    cr_expect_gt(speculation.drafts[RUN_DRAFT_LOOKUP].n_accepted, 100u);
    cr_expect_gt(n_wrong, 10u);
    cr_expect_eq(run_engine_counts(engine).n_past, (uint32_t)N_CONTEXT);
}

Test(run_speculation, logits_are_those_without_drafts)
{
    check_drafts_by_lookup();
}

Test(run_speculation_recurrent, logits_are_those_without_drafts)
{
    cr_assert(run_engine_can_rewind(engine));
    cr_assert_not(run_engine_can_rewind(plain), "it was opened without");
    check_drafts_by_lookup();
}

Test(run_speculation, a_prompt_after_wrong_drafts)
{
    static const int32_t prompt[] = {7, 8, 9, 10, 11, 12, 7, 8};

    feed_prompt(prompt, 8);
    set_length(4);
    cr_assert_eq(run_speculation_next(&speculation, 9, UINT64_MAX, &failure), 0);
    expect_logits_after(9);
    cr_expect_eq(drafted(), 10);
    cr_expect_eq(run_engine_counts(engine).n_past, 13u, "9 and four drafts");
    cr_assert_eq(run_speculation_next(&speculation, 10, UINT64_MAX, &failure), 0);
    expect_logits_after(10);
    cr_expect_eq(run_engine_counts(engine).n_past, 13u, "no pass");
    feed_prompt(prompt, 5);
    cr_expect_eq(run_engine_counts(engine).n_past, 15u);
    cr_expect_eq(speculation.lookup.text.n, 15u, "drafts are not part of the text");
}

/* The token is fed again, with the same drafts. */
Test(run_speculation, a_pass_that_fails)
{
    static const int32_t prompt[] = {7, 8, 9, 10, 11, 12, 7, 8};

    feed_prompt(prompt, 8);
    engine_fails = true;
    set_length(4);
    cr_assert_eq(run_speculation_next(&speculation, 9, UINT64_MAX, &failure), -EINTR);
    engine_fails = false;
    cr_expect_eq(speculation.fed.n, 8u);
    cr_expect_eq(speculation.lookup.text.n, 8u, "the text is what the engine has seen");
    cr_assert_eq(run_speculation_next(&speculation, 9, UINT64_MAX, &failure), 0);
    expect_logits_after(9);
    cr_expect_eq(drafted(), 10);
}

Test(run_speculation, no_drafts_beyond_what_is_wanted)
{
    static const int32_t prompt[] = {1, 1, 1, 1};

    for (uint64_t n_left = 1; n_left <= 10; n_left++) {
        feed_prompt(prompt, 4);
        set_length(N_DRAFTS);
        cr_assert_eq(run_speculation_next(&speculation, 1, n_left, &failure), 0);
        cr_expect_eq(speculation.n_tokens, n_left < 1 + N_DRAFTS ? n_left : 1 + N_DRAFTS);
        expect_logits_after(1);
    }
}

Test(run_speculation, a_limit_of_zero)
{
    static const int32_t prompt[] = {1, 1, 1, 1};

    session.n_drafts = 0;
    run_speculation_begin(&session, &speculation);
    feed_prompt(prompt, 4);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(run_speculation_next(&speculation, 1, UINT64_MAX, &failure), 0);
        expect_logits_after(1);
    }
    cr_expect_eq(speculation.drafts[RUN_DRAFT_LOOKUP].n_drafted, 0u);
    cr_expect_eq(speculation.lookup.text.n, 0u, "no text is kept");
}

/* Begin with those sources of drafts. */
static void use(uint32_t sources)
{
    const char *problem;

    cr_assert(run_engine_can_draft(engine, &problem));
    cr_assert_null(problem);
    session.draft_sources = sources;
    run_speculation_begin(&session, &speculation);
}

static void check_drafts_by_nextn(void)
{
    static const int32_t prompt[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
    struct run_drafts *drafts = &speculation.drafts[RUN_DRAFT_NEXTN];
    size_t n_wrong = 0;

    use(1 << RUN_DRAFT_NEXTN);
    feed_prompt(prompt, COUNT(prompt));
    for (uint32_t n = COUNT(prompt); n < N_CONTEXT; n++) {
        int32_t token = drafted();

        if (token == RUN_NO_TOKEN || random_below(8) == 0)
            token = (int32_t)random_below(N_VOCAB);
        n_wrong += drafted() != RUN_NO_TOKEN && token != drafted();
        set_length_of(RUN_DRAFT_NEXTN, random_below(1 + N_DRAFTS));
        cr_assert_eq(run_speculation_next(&speculation, token, UINT64_MAX, &failure), 0, "%s",
                     failure.text);
        expect_logits_after(token);
    }
    cr_expect_gt(drafts->n_accepted, 100u);
    cr_expect_gt(drafts->n_drafted, drafts->n_accepted);
    cr_expect_gt(n_wrong, 10u);
    cr_expect_eq(speculation.drafts[RUN_DRAFT_LOOKUP].n_drafted, 0u);
    cr_expect_eq(speculation.lookup.text.n, 0u, "no text is kept");
    cr_expect_eq(run_engine_counts(engine).n_past, (uint32_t)N_CONTEXT);
}

Test(run_speculation, drafts_of_the_nextn_layer)
{
    check_drafts_by_nextn();
}

Test(run_speculation_recurrent, drafts_of_the_nextn_layer)
{
    check_drafts_by_nextn();
}

Test(run_speculation, lookup_goes_first)
{
    static const int32_t prompt[] = {7, 8, 9, 10, 11, 12, 7, 8};
    static const int32_t other[] = {20, 21};

    use(1 << RUN_DRAFT_LOOKUP | 1 << RUN_DRAFT_NEXTN);
    feed_prompt(prompt, COUNT(prompt));
    set_length(2);
    set_length_of(RUN_DRAFT_NEXTN, 3);
    cr_assert_eq(run_speculation_next(&speculation, 9, UINT64_MAX, &failure), 0);
    expect_logits_after(9);
    cr_expect_eq(speculation.source, RUN_DRAFT_LOOKUP);
    cr_expect_eq(speculation.n_tokens, 3u);
    feed_prompt(other, COUNT(other));
    set_length(2);
    set_length_of(RUN_DRAFT_NEXTN, 3);
    cr_assert_eq(run_speculation_next(&speculation, 30, UINT64_MAX, &failure), 0);
    expect_logits_after(30);
    cr_expect_eq(speculation.source, RUN_DRAFT_NEXTN, "the text has not occurred before");
    cr_expect_eq(speculation.n_tokens, 4u);
    cr_expect_eq(speculation.drafts[RUN_DRAFT_LOOKUP].n_drafted, 2u);
    cr_expect_eq(speculation.drafts[RUN_DRAFT_NEXTN].n_drafted, 3u);
}

Test(run_speculation, an_interrupt_ends_a_prompt)
{
    const struct run_ids prompt = {.list = (int32_t[]){7, 8, 9}, .n = 3};
    struct run_generation generation = {.session = &session, .ending = RUN_ENDING_LENGTH};

    run_speculation_begin(&session, &generation.speculation);
    signal(SIGINT, SIG_DFL); /* a shell ignores it in commands that it starts with & */
    run_signals_start();
    run_signals_defer_interrupt(true);
    raise(SIGINT);
    cr_expect_eq(run_generation_feed(&generation, &prompt, &failure), -EINTR);
    cr_expect_eq(generation.ending, RUN_ENDING_INTERRUPT);
    cr_expect_eq(run_engine_counts(engine).n_past, 0u);
    run_speculation_free(&generation.speculation);
}
