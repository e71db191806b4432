/* The table of architectures, and the checks of tensors and keys against its lists. */
#include "gguf/models/key_lists.h"
#include "gguf/models/tensor_lists.h"

#include <criterion/criterion.h>
#include <string.h>

/* The names of a model's tensors or keys, each followed by a space. */
static bool has(const void *user, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = user; (at = strstr(at, name)); at += length)
        if ((at == (const char *)user || at[-1] == ' ') && at[length] == ' ')
            return true;
    return false;
}

static const struct gguf_architecture example = {
    .name = "example",
    .tensors = {.model = "embd out? norm",
                .layer = "norm",
                .attention = "attn qkv|q qkv|k (q.bias k.bias)?",
                .recurrence = "ssm attn?",
                .dense = "up",
                .experts = "router exps|exp"},
    .keys = "top_k a|b width=0.5 scale:2 clamp? rope.freq_base",
};

static void expect_layer(const char *tensors, const char *missing, const char *others,
                         const char *because)
{
    struct gguf_missing_tensor found = {0};
    const bool is_met = gguf_check_layer_tensors(&example, has, tensors, 7, &found);

    cr_expect_eq(is_met, missing == NULL, "%s: %s", tensors, found.name);
    cr_expect_str_eq(found.name, missing ? missing : "", "%s", tensors);
    cr_expect_str_eq(found.others, others, "%s", tensors);
    cr_expect_str_eq(found.because, because, "%s", tensors);
}

Test(gguf_models, tensors_of_a_layer)
{
    expect_layer("blk.7.norm.weight blk.7.attn blk.7.qkv.weight blk.7.up.weight ", NULL, "", "");
    expect_layer("blk.7.norm blk.7.attn blk.7.q blk.7.k blk.7.up ", NULL, "", "");
    expect_layer("blk.7.norm blk.7.ssm blk.7.router blk.7.exp.weight ", NULL, "", "");
    expect_layer("blk.7.norm blk.7.ssm blk.7.attn blk.7.up ", NULL, "", "");
    expect_layer("blk.7.attn blk.7.qkv blk.7.up ", "blk.7.norm.weight", "", "");
    expect_layer("blk.7.norm blk.7.attn blk.7.q blk.7.up ", "blk.7.qkv.weight", "k", "");
    expect_layer("blk.7.norm blk.7.k blk.7.q blk.7.up ", "blk.7.attn.weight", "", "");
    expect_layer("blk.7.norm blk.7.attn blk.7.qkv blk.7.up blk.7.q.bias ", "blk.7.k.bias", "",
                 "blk.7.q.bias");
    expect_layer("blk.7.norm blk.7.ssm blk.7.exps ", "blk.7.router.weight", "", "");
    expect_layer("blk.7.norm blk.7.ssm ", "blk.7.*", "", "");
    expect_layer("blk.7.norm blk.7.up ", "blk.7.*", "", "");
    expect_layer("blk.70.norm blk.7.up ", "blk.7.norm.weight", "", "");
}

Test(gguf_models, parts_of_a_layer)
{
    cr_expect_eq(gguf_layer_parts(&example, has, "blk.0.qkv.weight blk.0.up ", 0),
                 (unsigned)(GGUF_PART_ATTENTION | GGUF_PART_DENSE));
    cr_expect_eq(gguf_layer_parts(&example, has, "blk.0.attn.weight blk.1.up ", 0), 0u,
                 "two lists name attn, so that it is no sign of either");
}

Test(gguf_models, tensors_outside_of_layers)
{
    struct gguf_missing_tensor missing;

    cr_expect(gguf_check_model_tensors(&example, has, "embd.weight norm ", &missing));
    cr_expect_not(gguf_check_model_tensors(&example, has, "embd.weight out ", &missing));
    cr_expect_str_eq(missing.name, "norm.weight");
}

Test(gguf_models, names_of_lists)
{
    static const char *const named[] = {"embd",
                                        "out.weight",
                                        "blk.0.attn.weight",
                                        "blk.12.q.bias",
                                        "blk.0.exp.weight",
                                        "blk.0.up.scale",
                                        "blk.0.up.input_scale"};
    static const char *const others[] = {"blk.0.embd",
                                         "attn.weight",
                                         "blk.0.attn.bias",
                                         "blk.0.exp.0.weight",
                                         "blk.up",
                                         "blk.0.q.bias.weight",
                                         "emb",
                                         "embdd",
                                         ""};

    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        cr_expect(gguf_lists_have(&example, named[i]), "%s", named[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_not(gguf_lists_have(&example, others[i]), "%s", others[i]);
}

Test(gguf_models, biases_that_weights_require)
{
    static const struct {
        const char *architecture, *name;
        bool is_required;
    } cases[] = {
        {"qwen2", "blk.0.attn_q.bias", true},       {"qwen2", "output.bias", false},
        {"llama", "blk.0.attn_q.bias", false},      {"stablelm", "blk.0.ffn_norm.bias", true},
        {"mpt", "blk.0.attn_qkv.bias", false},      {"falcon", "output_norm.bias", true},
        {"qwen2", "blk.0.attn_output.bias", false}, {"qwen2", "blk.0.attn_q.weight", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(
            gguf_lists_require_bias(gguf_architecture_find(cases[i].architecture), cases[i].name),
            cases[i].is_required, "%s: %s", cases[i].architecture, cases[i].name);
    cr_expect(gguf_any_lists_have("token_embd_norm.weight"));
    cr_expect(gguf_any_lists_have("blk.3.altup_router.weight"));
    cr_expect_not(gguf_any_lists_have("v.patch_embd.weight"));
}

Test(gguf_models, keys)
{
    struct gguf_string missing;
    double value = 7;

    cr_expect_eq(gguf_key_rule(&example, "top_k", &value), GGUF_KEY_REQUIRED);
    cr_expect_eq(gguf_key_rule(&example, "b", &value), GGUF_KEY_REQUIRED);
    cr_expect_eq(gguf_key_rule(&example, "clamp", &value), GGUF_KEY_OPTIONAL);
    cr_expect_eq(gguf_key_rule(&example, "top", &value), GGUF_KEY_UNUSED);
    cr_expect_eq(value, 7);
    cr_expect_eq(gguf_key_rule(&example, "width", &value), GGUF_KEY_HAS_DEFAULT);
    cr_expect_eq(value, 0.5);
    cr_expect_eq(gguf_key_rule(&example, "scale", &value), GGUF_KEY_FIXED);
    cr_expect_eq(value, 2);
    cr_expect_eq(gguf_key_rule(&example, "rope.scaling.yarn_beta_fast", &value),
                 GGUF_KEY_HAS_DEFAULT, "one of the keys of all rows");
    cr_expect_eq(gguf_key_rule(&example, "rope.freq_base", NULL), GGUF_KEY_REQUIRED,
                 "the row's own rule counts");
    cr_expect(gguf_check_keys(&example, has, "block_count embedding_length top_k b rope.freq_base ",
                              &missing));
    cr_expect_not(
        gguf_check_keys(&example, has, "block_count embedding_length b rope.freq_base ", &missing));
    cr_expect(gguf_string_equals(missing, "top_k"));
    cr_expect_not(gguf_check_keys(&example, has,
                                  "block_count embedding_length top_k rope.freq_base ", &missing));
    cr_expect(gguf_string_equals(missing, "a|b"));
}

Test(gguf_models, windows_and_sizes)
{
    static const struct gguf_architecture first = {.window = {.is_first_full = true}};
    const struct gguf_architecture *gemma2 = gguf_architecture_find("gemma2");

    cr_expect(gguf_is_windowed(&example, 3, 0));
    cr_expect(gguf_is_windowed(&example, 2, 4));
    cr_expect_not(gguf_is_windowed(&example, 3, 4));
    cr_expect_not(gguf_is_windowed(&first, 4, 4));
    cr_expect(gguf_is_windowed(&first, 3, 4));
    cr_expect(gguf_architecture_is_big(gemma2, 46, 0));
    cr_expect_not(gguf_architecture_is_big(gemma2, 42, 0));
    cr_expect_not(gguf_architecture_is_big(&example, 0, 0));
}

/* ---- the rows ---- */

static int check_name(void *user, const char *name, size_t length, bool is_required)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";

    cr_expect(length > 1 && strspn(name, letters) >= length, "%s: \"%.*s\"", (const char *)user,
              (int)length, name);
    return 0;
}

static void check_keys(const char *row, const char *keys)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";

    for (const char *at = keys; *at != '\0'; at += *at == ' ') {
        size_t n;

        at += *at == '/';
        n = strspn(at, letters);
        cr_expect(n > 2 && n < GGUF_KEY_NAME_BYTES, "%s: \"%s\"", row, at);
        at += n;
        if (*at == '=' || *at == ':')
            at += 1 + strspn(at + 1, "0123456789.");
        else if (*at == '?')
            at++;
        cr_expect(*at == ' ' || *at == '|' || *at == '\0', "%s: \"%s\"", row, at);
        if (*at == '|')
            at++;
        else if (*at != ' ' && *at != '\0')
            return;
    }
}

Test(gguf_models, every_row)
{
    const struct gguf_architecture *row;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++) {
        const struct gguf_architecture *found = gguf_architecture_find(row->name);
        const struct gguf_tensor_lists *tensors = &found->tensors;
        const char *const lists[] = {tensors->model,      tensors->layer, tensors->attention,
                                     tensors->recurrence, tensors->dense, tensors->experts,
                                     tensors->nextn};

        cr_assert_not_null(found, "%s: no row %s", row->name, row->same_as);
        cr_assert_null(found->same_as, "%s", row->name);
        cr_assert(tensors->model && found->keys && (tensors->layer || tensors->attention), "%s",
                  row->name);
        cr_expect_eq(tensors->nextn != NULL,
                     gguf_key_rule(found, "nextn_predict_layers", NULL) != GGUF_KEY_UNUSED, "%s",
                     row->name);
        check_keys(row->name, found->keys);
        for (size_t j = 0; j < sizeof lists / sizeof *lists; j++)
            gguf_list_walk(lists[j], check_name, (void *)row->name);
    }
}
