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
        const struct gguf_naming *naming;
    } cases[] = {
        {"gpt-j", &gguf_naming_gptj},
        {"gpt-neox", &gguf_naming_gpt_neox},
        {"mpt", &gguf_naming_mpt},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gguf_name_rule *rule = gguf_family_by_name(cases[i].family)->names;

        for (; rule->old_name; rule++) {
            struct gguf_name_match match = {.layer = 0};
            char old_name[GGUF_NAME_BYTES], name[GGUF_NAME_BYTES], expected[GGUF_NAME_BYTES];
            const struct gguf_rename *rename;

            snprintf(old_name, sizeof old_name, "%s", rule->old_name);
            if (strchr(old_name, '%'))
                *strchr(old_name, '%') = '0';
            rename = way_back_rename(cases[i].naming,
                                     (struct gguf_string){old_name, strlen(old_name)}, &match);
            cr_assert(rename, "%s", old_name);
            /* A tensor in another order of elements has no name in GGUF. */
            cr_expect_eq(rename->order == GGUF_SAME_ORDER, rule->name != NULL, "%s", old_name);
            if (!rule->name)
                continue;
            snprintf(expected, sizeof expected, "%s", rule->name);
            if (strchr(expected, '%'))
                *strchr(expected, '%') = '0';
            cr_expect(gguf_tensor_name_expand(rename->name, &match, name));
            cr_expect_str_eq(name, expected);
        }
    }
}
