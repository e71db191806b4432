#include "fs/tree/hf/hf_rows.h"

static const struct fs_hf_row *const tables[] = {
    fs_hf_rows_dense,  fs_hf_rows_gemma,     fs_hf_rows_gpt,    fs_hf_rows_experts,
    fs_hf_rows_latent, fs_hf_rows_recurrent, fs_hf_rows_hybrid,
};

const struct fs_hf_row *fs_hf_row_at(size_t index)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        for (const struct fs_hf_row *row = tables[i]; row->architecture; row++) {
            if (index-- == 0)
                return row;
        }
    }
    return NULL;
}

const struct fs_hf_row *fs_hf_row_of(const struct fs_hf_model *hf)
{
    const struct fs_hf_row *row;

    for (size_t i = 0; (row = fs_hf_row_at(i)); i++) {
        if (gguf_string_equals(hf->architecture, row->architecture) &&
            (!row->applies || row->applies(hf)))
            return row;
    }
    return NULL;
}

const struct fs_hf_rule *fs_hf_rule_at(const struct fs_hf_row *row, size_t index)
{
    for (size_t i = 0; i < FS_HF_MAX_TABLES && row->rules[i]; i++) {
        for (const struct fs_hf_rule *rule = row->rules[i]; rule->gguf; rule++) {
            if (!rule->is_key && index-- == 0)
                return rule;
        }
    }
    return NULL;
}

size_t fs_hf_n_rules(const struct fs_hf_row *row)
{
    size_t n_rules = 0;

    while (fs_hf_rule_at(row, n_rules))
        n_rules++;
    return n_rules;
}

const struct fs_hf_rule *fs_hf_find_rule(const struct fs_hf_row *row, struct gguf_string name,
                                         struct fs_hf_match *match, size_t *index)
{
    *index = 0;
    for (size_t i = 0; i < FS_HF_MAX_TABLES && row->rules[i]; i++) {
        for (const struct fs_hf_rule *rule = row->rules[i]; rule->gguf; rule++) {
            if (rule->is_key)
                continue;
            if (fs_hf_matches(name, rule->gguf, match))
                return rule;
            ++*index;
        }
    }
    return NULL;
}
