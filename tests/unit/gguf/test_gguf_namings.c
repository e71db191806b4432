/* Patterns of names, and tables that must agree. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gguf/legacy/families.h"
#include "gguf/models/namings.h"
#include "tests/unit/gguf/way_back.h"

static bool matches(const char *name, const char *pattern, struct gguf_name_match *match)
{
    return gguf_tensor_name_matches((struct gguf_string){name, strlen(name)}, pattern, match);
}

Test(gguf_namings, patterns_match_whole_names)
{
    struct gguf_name_match match;

    cr_expect(matches("blk.12.attn_q.weight", "blk.%.attn_q", &match));
    cr_expect_eq(match.layer, 12u);
    cr_expect_str_eq(match.suffix, ".weight");
    cr_expect(matches("blk.0.ssm_a", "blk.%.ssm_a", &match));
    cr_expect_str_eq(match.suffix, "");
    cr_expect(matches("blk.3.ffn_up.7.weight", "blk.%.ffn_up.#", &match));
    cr_expect_eq(match.expert, 7u);
    cr_expect(matches("output.bias", "output.bias", &match));
    cr_expect_str_eq(match.suffix, "");
    cr_expect_not(matches("blk.1.attn_q_norm.weight", "blk.%.attn_q", &match));
    cr_expect_not(matches("blk..attn_q.weight", "blk.%.attn_q", &match));
    cr_expect_not(matches("blk.01.attn_q.weight", "blk.%.attn_q", &match));
    cr_expect_not(matches("blk.1234567890.attn_q.weight", "blk.%.attn_q", &match));
    cr_expect_not(matches("output", "output.weight", &match));
    cr_expect_not(matches("output.weights", "output", &match));
}

Test(gguf_namings, names_are_made_from_matches)
{
    const struct gguf_name_match match = {.layer = 31, .expert = 255, .suffix = ".bias"};
    char name[GGUF_NAME_BYTES], pattern[GGUF_NAME_BYTES];

    cr_expect(gguf_tensor_name_expand("layers.%.experts.#.w1", &match, name));
    cr_expect_str_eq(name, "layers.31.experts.255.w1.bias");
    memset(pattern, 'a', sizeof pattern);
    pattern[sizeof pattern - 1] = '\0';
    cr_expect_not(gguf_tensor_name_expand(pattern, &match, name));
}

/* Files of 2023 call the tensors of these families as checkpoints do: both tables say the same. */
Test(gguf_namings, families_of_old_files_are_called_like_checkpoints)
{
    static const struct {
        const char *family;
        const char *naming;
    } cases[] = {
        {"gpt-j", gguf_naming_gptj},
        {"gpt-neox", gguf_naming_gpt_neox},
        {"mpt", gguf_naming_mpt},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_name_rule rules[GGUF_MAX_NAME_RULES];
        const size_t n_rules =
            gguf_name_rules_read(gguf_family_by_name(cases[i].family)->names, rules);
        struct gguf_names names;

        cr_assert_eq(gguf_names_read(cases[i].naming, &names), 0);
        for (size_t k = 0; k < n_rules; k++) {
            const struct gguf_name_rule *rule = &rules[k];
            struct gguf_name_match match = {.layer = 0};
            char old_name[GGUF_NAME_BYTES], name[GGUF_NAME_BYTES], expected[GGUF_NAME_BYTES];
            const struct gguf_rename *rename;

            snprintf(old_name, sizeof old_name, "%.200s", rule->old_name);
            if (strchr(old_name, '%'))
                *strchr(old_name, '%') = '0';
            rename = way_back_rename(&names, gguf_string_of(old_name), &match);
            cr_assert(rename, "%s", old_name);
            /* A tensor in another order of elements has no name in GGUF. */
            cr_expect_eq(rename->order == GGUF_SAME_ORDER, *rule->name != '\0', "%s", old_name);
            if (*rule->name == '\0')
                continue;
            snprintf(expected, sizeof expected, "%s", rule->name);
            if (strchr(expected, '%'))
                *strchr(expected, '%') = '0';
            cr_expect(gguf_tensor_name_expand(rename->name, &match, name));
            cr_expect_str_eq(name, expected);
        }
        gguf_names_free(&names);
    }
}

/* Every form that a word of a naming can have. */
Test(gguf_namings, words)
{
    static const struct gguf_rename expected[] = {
        {.name = "output", .other = "lm_head"},
        {.name = "rope_freqs"},
        {.name = "blk.%.attn_q", .other = "layers.%.q_proj", .order = GGUF_PAIRS_Q},
        {.name = "blk.%.attn_norm", .other = "layers.%.norm", .change = GGUF_PLUS_ONE},
        {.name = "blk.%.ssm_a",
         .other = "layers.%.A_log",
         .order = GGUF_FLAT,
         .change = GGUF_MINUS_EXP},
        {.name = "blk.%.k_b",
         .other = "layers.%.kv_b.#",
         .order = GGUF_LATENT_KV,
         .with = "blk.%.v_b",
         .unless = "blk.%.kv_b"},
        {.name = "xielu.eps", .other = "layers.%.eps", .is_key = true},
    };
    struct gguf_names names;

    cr_assert_eq(gguf_names_read("layers.% output=lm_head rope_freqs .attn_q=.q_proj:pairs_q "
                                 ".attn_norm=.norm:plus_one .ssm_a=.A_log:minus_exp:flat "
                                 ".k_b&.v_b!.kv_b=.kv_b.#:latent_kv /xielu.eps=.eps",
                                 &names),
                 0);
    cr_assert_eq(names.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < names.count; i++) {
        const struct gguf_rename *read = &names.list[i], *want = &expected[i];

        cr_expect_str_eq(read->name, want->name);
        cr_expect_str_eq(read->other ? read->other : "", want->other ? want->other : "");
        cr_expect_str_eq(read->with ? read->with : "", want->with ? want->with : "");
        cr_expect_str_eq(read->unless ? read->unless : "", want->unless ? want->unless : "");
        cr_expect_eq(read->order, want->order, "%s", want->name);
        cr_expect_eq(read->change, want->change, "%s", want->name);
        cr_expect_eq(read->is_key, want->is_key, "%s", want->name);
    }
    gguf_names_free(&names);
}
