#include "fs/tree/hf/hf_config_file.h"

#include <string.h>

static void write_kinds(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++) {
        const char *const *kind = entry->kinds;

        while (kind[1] && !fs_hf_layer_has(config->hf, i, kind[0]))
            kind += 2;
        fs_hf_element_text(config, kind[1] ? kind[1] : kind[0]);
    }
    fs_hf_end_array(config);
}

static void write_entry(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct gguf_key *key = entry->key ? fs_hf_key(config->hf, entry->key) : NULL;

    if (entry->write)
        entry->write(config, entry);
    else if (entry->kinds)
        write_kinds(config, entry);
    else if (entry->has)
        fs_hf_member_bool(config, entry->name, fs_hf_any_tensor(config->hf, entry->has));
    else if (entry->lacks)
        fs_hf_member_bool(config, entry->name, !fs_hf_any_tensor(config->hf, entry->lacks));
    else if (key)
        fs_hf_member_key(config, entry->name, key);
    else if (!entry->json)
        fs_hf_problem(config, "its metadata has no key \"%.*s.%s\", which is \"%s\" of config.json",
                      (int)config->hf->architecture.length_bytes, config->hf->architecture.data,
                      entry->key, entry->name);
    else if (entry->json[0] != '\0')
        fs_hf_member_json(config, entry->name, entry->json);
}

static void write_entries(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    for (; entry->name; entry++) {
        if (entry->table)
            write_entries(config, entry->table);
        else
            write_entry(config, entry);
    }
}

void fs_hf_write_config(struct fs_hf_config *config, const struct fs_hf_row *row, const char *dtype)
{
    fs_hf_begin_object(config, NULL);
    fs_hf_member(config, "architectures");
    fs_sink_print(config->sink, "[\"%s\"]", row->class_name);
    fs_hf_member(config, "model_type");
    fs_sink_print(config->sink, "\"%s\"", row->model_type);
    fs_hf_member(config, "torch_dtype");
    fs_sink_print(config->sink, "\"%s\"", dtype);
    write_entries(config, row->config);
    fs_hf_write_vocab_size(config, NULL);
    fs_hf_write_token_ids(config, NULL);
    fs_hf_member_bool(config, "tie_word_embeddings",
                      !fs_hf_any_tensor(config->hf, "output.weight"));
    fs_hf_end_object(config);
    fs_sink_literal(config->sink, "\n");
}

static bool has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += length) {
        if ((at == words || at[-1] == ' ') && strchr(" ", at[length]))
            return true;
    }
    return false;
}

static const struct fs_hf_entry *find_switch(const struct fs_hf_entry *entry, const char *bias)
{
    const struct fs_hf_entry *found = NULL;

    for (; !found && entry->name; entry++) {
        if (entry->table)
            found = find_switch(entry->table, bias);
        else if (entry->biases && has_word(entry->biases, bias))
            found = entry;
    }
    return found;
}

const struct fs_hf_entry *fs_hf_switch_of(const struct fs_hf_row *row, const char *bias)
{
    return find_switch(row->config, bias);
}

static bool reads(const struct fs_hf_entry *entry, const char *key)
{
    bool is_read = false;

    for (; !is_read && entry->name; entry++)
        is_read =
            entry->table ? reads(entry->table, key) : entry->key && strcmp(entry->key, key) == 0;
    return is_read;
}

bool fs_hf_row_reads(const struct fs_hf_row *row, const char *key)
{
    return reads(row->config, key);
}

/* Write the ids of all tokens that end a text: one number, or an array. */
static void write_ends(struct fs_hf_config *config)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    uint64_t ids[sizeof keys / sizeof *keys] = {0};
    size_t n = 0;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const uint64_t id = fs_hf_number(config->hf, keys[i], UINT64_MAX);
        bool is_new = id <= UINT32_MAX;

        for (size_t j = 0; j < n; j++)
            is_new &= ids[j] != id;
        if (is_new)
            ids[n++] = id;
    }
    if (n == 0)
        return;
    fs_hf_member(config, "eos_token_id");
    for (size_t i = 0; i < n; i++) {
        fs_sink_literal(config->sink, i > 0 ? ", " : n > 1 ? "[" : "");
        fs_sink_unsigned(config->sink, ids[i]);
    }
    fs_sink_literal(config->sink, n > 1 ? "]" : "");
}

void fs_hf_write_generation_config(struct fs_hf_config *config)
{
    static const struct {
        const char *name, *key;
    } members[] = {
        {"bos_token_id", "tokenizer.ggml.bos_token_id"},
        {"pad_token_id", "tokenizer.ggml.padding_token_id"},
        {"temperature", "general.sampling.temp"},
        {"top_k", "general.sampling.top_k"},
        {"top_p", "general.sampling.top_p"},
        {"min_p", "general.sampling.min_p"},
    };

    fs_hf_begin_object(config, NULL);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const struct gguf_key *key = fs_hf_key(config->hf, members[i].key);

        if (key)
            fs_hf_member_key(config, members[i].name, key);
    }
    if (fs_hf_key(config->hf, "general.sampling.temp"))
        fs_hf_member_json(config, "do_sample", "true");
    write_ends(config);
    fs_hf_end_object(config);
    fs_sink_literal(config->sink, "\n");
}
