/* The table of checkpoints: patterns of names, and rules that hold for every row. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "fs/tree/hf/hf_rows.h"
#include "fs/tree/hf/hf_tensors.h"
#include "tests/unit/gguf/model_file.h"

static bool matches(const char *name, const char *pattern, struct fs_hf_match *match)
{
    return fs_hf_matches((struct gguf_string){name, strlen(name)}, pattern, match);
}

Test(fs_hf, patterns_match_whole_names)
{
    struct fs_hf_match match;

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

Test(fs_hf, names_are_made_from_matches)
{
    const struct fs_hf_match match = {.layer = 31, .expert = 255, .suffix = ".bias"};
    char name[FS_HF_NAME_BYTES], pattern[FS_HF_NAME_BYTES];

    cr_expect(fs_hf_expand("layers.%.experts.#.w1", &match, name));
    cr_expect_str_eq(name, "layers.31.experts.255.w1.bias");
    memset(pattern, 'a', sizeof pattern);
    pattern[sizeof pattern - 1] = '\0';
    cr_expect_not(fs_hf_expand(pattern, &match, name));
}

static void check_rules(const struct fs_hf_row *row, const struct fs_hf_rule *rules)
{
    for (; rules->gguf; rules++) {
        const char *hf = rules->hf;
        const bool has_layer = strchr(rules->gguf, '%') || rules->is_key;

        if (!hf)
            continue;
        cr_expect_eq(has_layer, strchr(hf, '%') != NULL, "%s: %s", row->class_name, rules->gguf);
        cr_expect(!strchr(rules->gguf, '#') || strchr(hf, '#'), "%s: %s", row->class_name,
                  rules->gguf);
        if (strstr(rules->gguf, ".bias"))
            cr_expect(strstr(hf, "bias"), "%s: %s", row->class_name, hf);
        if (rules->with) {
            cr_expect_not_null(rules->arrange);
            cr_expect(strchr(rules->with, '%'));
        }
    }
}

Test(fs_hf, rows_are_complete)
{
    const struct fs_hf_row *row;
    size_t n_rows = 0;

    for (; (row = fs_hf_row_at(n_rows)); n_rows++) {
        cr_assert(row->class_name && row->model_type && row->rules[0] && row->config[0], "%s",
                  row->architecture);
        for (size_t i = 0; i < COUNT(row->rules) && row->rules[i]; i++)
            check_rules(row, row->rules[i]);
        /* A row that fits all models of its architecture is the last one of it. */
        for (size_t i = 0; i < n_rows; i++) {
            if (!fs_hf_row_at(i)->applies)
                cr_expect_str_neq(fs_hf_row_at(i)->architecture, row->architecture);
        }
    }
    cr_expect_gt(n_rows, 60u);
}

Test(fs_hf, members_are_complete)
{
    const struct fs_hf_row *row;

    for (size_t n = 0; (row = fs_hf_row_at(n)); n++) {
        for (size_t i = 0; i < COUNT(row->config) && row->config[i]; i++) {
            for (const struct fs_hf_entry *entry = row->config[i]; entry->name; entry++)
                cr_expect(entry->key || entry->json || entry->has || entry->lacks || entry->write,
                          "%s: %s", row->class_name, entry->name);
        }
    }
}
