#include "fs/tree/hf/hf_config.h"

#include "fs/tree/output/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fs_hf_problem(struct fs_hf_config *config, const char *format, ...)
{
    va_list args;

    if (config->problem[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(config->problem, sizeof config->problem, format, args);
    va_end(args);
}

/* ---- members ---- */

static void begin_line(struct fs_hf_config *config)
{
    fs_sink_literal(config->sink, "\n");
    for (unsigned i = 0; i < config->depth; i++)
        fs_sink_literal(config->sink, "  ");
}

void fs_hf_member(struct fs_hf_config *config, const char *name)
{
    fs_sink_literal(config->sink, config->has_members ? "," : "");
    begin_line(config);
    fs_json_text(config->sink, name);
    fs_sink_literal(config->sink, ": ");
    config->has_members = true;
}

void fs_hf_member_json(struct fs_hf_config *config, const char *name, const char *json)
{
    fs_hf_member(config, name);
    for (; *json != '\0'; json++)
        fs_sink_literal(config->sink, *json == '\''  ? "\""
                                      : *json == ',' ? ", "
                                                     : (char[]){*json, '\0'});
}

static void write_value(struct fs_hf_config *config, const struct gguf_value *value)
{
    if (value->type == GGUF_STRING)
        fs_json_string(config->sink, value->string);
    else
        fs_json_scalar(config->sink, value);
}

void fs_hf_member_unsigned(struct fs_hf_config *config, const char *name, uint64_t number)
{
    fs_hf_member(config, name);
    fs_sink_unsigned(config->sink, number);
}

void fs_hf_member_float(struct fs_hf_config *config, const char *name, double number)
{
    fs_hf_member(config, name);
    write_value(config, &(struct gguf_value){.type = GGUF_FLOAT32, .f32 = (float)number});
}

void fs_hf_member_ratio(struct fs_hf_config *config, const char *name, double number)
{
    fs_hf_member(config, name);
    write_value(config, &(struct gguf_value){.type = GGUF_FLOAT64, .f64 = number});
}

void fs_hf_member_bool(struct fs_hf_config *config, const char *name, bool is_true)
{
    fs_hf_member_json(config, name, is_true ? "true" : "false");
}

void fs_hf_member_text(struct fs_hf_config *config, const char *name, const char *text)
{
    fs_hf_member(config, name);
    fs_json_text(config->sink, text);
}

void fs_hf_begin_object(struct fs_hf_config *config, const char *name)
{
    if (name)
        fs_hf_member(config, name);
    fs_sink_literal(config->sink, "{");
    config->depth++;
    config->has_members = false;
}

void fs_hf_end_object(struct fs_hf_config *config)
{
    config->depth--;
    begin_line(config);
    fs_sink_literal(config->sink, "}");
    config->has_members = true;
}

void fs_hf_begin_array(struct fs_hf_config *config, const char *name)
{
    fs_hf_member(config, name);
    fs_sink_literal(config->sink, "[");
    config->has_members = false;
}

void fs_hf_element(struct fs_hf_config *config, const struct gguf_value *value)
{
    fs_sink_literal(config->sink, config->has_members ? ", " : "");
    write_value(config, value);
    config->has_members = true;
}

void fs_hf_element_text(struct fs_hf_config *config, const char *text)
{
    fs_hf_element(config,
                  &(struct gguf_value){.type = GGUF_STRING, .string = gguf_string_of(text)});
}

void fs_hf_element_unsigned(struct fs_hf_config *config, uint64_t number)
{
    fs_hf_element(config, &(struct gguf_value){.type = GGUF_UINT64, .u64 = number});
}

void fs_hf_end_array(struct fs_hf_config *config)
{
    fs_sink_literal(config->sink, "]");
    config->has_members = true;
}

/* Longer arrays belong to no configuration. */
#define MAX_ELEMENTS 4096

static void write_array(struct fs_hf_config *config, const char *name, const struct gguf_key *key)
{
    const struct gguf_array *array = &key->value.array;
    struct gguf_cursor cursor = gguf_array_begin(array);
    struct gguf_value first, value;
    bool is_same = array->n_elements > 0;

    if (array->n_elements > MAX_ELEMENTS || array->element_type == GGUF_ARRAY) {
        fs_hf_problem(config, "the array of key %s is not a list of values per layer",
                      gguf_quote(key->name).text);
        return;
    }
    for (uint64_t i = 0; i < array->n_elements; i++) {
        gguf_array_next(&cursor, array->element_type, &value);
        if (i == 0)
            first = value;
        is_same &= gguf_value_equals(&first, &value);
    }
    if (is_same) {
        fs_hf_member(config, name);
        write_value(config, &first);
        return;
    }
    cursor = gguf_array_begin(array);
    fs_hf_begin_array(config, name);
    for (uint64_t i = 0; i < array->n_elements; i++) {
        gguf_array_next(&cursor, array->element_type, &value);
        fs_hf_element(config, &value);
    }
    fs_hf_end_array(config);
}

bool fs_hf_member_key(struct fs_hf_config *config, const char *name, const char *key)
{
    const struct gguf_key *found = fs_hf_key(config->hf, key);

    if (found && found->value.type == GGUF_ARRAY) {
        write_array(config, name, found);
    } else if (found) {
        fs_hf_member(config, name);
        write_value(config, &found->value);
    }
    return found;
}

/* ---- words ---- */

/* End the part at *at before the first of `ends`. Returns that character, and steps over it. */
static char end_part(char **at, const char *ends)
{
    char end;

    *at += strcspn(*at, ends);
    end = **at;
    if (end != '\0')
        *(*at)++ = '\0';
    return end;
}

bool fs_hf_next_member(const char **at, struct fs_hf_member *member)
{
    const char *word = *at + strspn(*at, " ");
    const size_t length = strcspn(word, " ");
    char *part = member->text, *next = part;
    size_t n = 0;
    char kind;

    *at = word + length;
    *member = (struct fs_hf_member){.name = part};
    snprintf(part, sizeof member->text, "%.*s", (int)length, word);
    kind = end_part(&next, "=:@");
    part = next;
    if (kind == '=') {
        member->key = part;
        kind = end_part(&next, "?:");
        part = next;
        if (kind == '?')
            member->json = "";
    } else if (kind == '@') {
        member->writer = part;
        while (end_part(&next, "/") == '/')
            member->arguments[n++] = next;
    }
    if (kind == ':')
        member->json = part;
    return length > 0;
}

uint64_t fs_hf_argument(const struct fs_hf_member *member, size_t index)
{
    return member->arguments[index] ? strtoull(member->arguments[index], NULL, 10) : 0;
}

#define NAMED(name)                                                                                \
    {                                                                                              \
#name, fs_hf_write_##name                                                                  \
    }
static const struct {
    const char *name;
    fs_hf_writer *write;
} writers[] = {FS_HF_WRITERS(NAMED)};

static void write_member(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    for (size_t i = 0; member->writer && i < sizeof writers / sizeof *writers; i++) {
        if (strcmp(writers[i].name, member->writer) == 0)
            writers[i].write(config, member);
    }
    if (member->writer || (member->key && fs_hf_member_key(config, member->name, member->key)))
        return;
    if (!member->json)
        fs_hf_problem(config, "its metadata has no key \"%.*s.%s\", which is \"%s\" of config.json",
                      (int)config->hf->architecture.length_bytes, config->hf->architecture.data,
                      member->key, member->name);
    else if (member->json[0] != '\0')
        fs_hf_member_json(config, member->name, member->json);
}

bool fs_hf_find_switch(const struct fs_hf_row *row, const char *bias, struct fs_hf_member *member)
{
    for (const char *at = row->config; fs_hf_next_member(&at, member);) {
        if (!member->writer || strcmp(member->writer, "has") != 0)
            continue;
        for (size_t i = 1; member->arguments[i]; i++) {
            if (strcmp(member->arguments[i], bias) == 0)
                return true;
        }
    }
    return false;
}

bool fs_hf_row_reads(const struct fs_hf_row *row, const char *key)
{
    struct fs_hf_member member;

    for (const char *at = row->config; fs_hf_next_member(&at, &member);) {
        const char *read = member.key ? member.key : member.arguments[0];

        if (read && strcmp(read, key) == 0)
            return true;
    }
    return false;
}

/* ---- the files ---- */

static void write_members(struct fs_hf_config *config, const char *words)
{
    struct fs_hf_member member;

    while (fs_hf_next_member(&words, &member))
        write_member(config, &member);
}

void fs_hf_write_config(struct fs_hf_config *config, const struct fs_hf_row *row, const char *dtype)
{
    fs_hf_begin_object(config, NULL);
    fs_hf_begin_array(config, "architectures");
    fs_hf_element_text(config, row->class_name);
    fs_hf_end_array(config);
    fs_hf_member_text(config, "model_type", row->model_type);
    fs_hf_member_text(config, "torch_dtype", dtype);
    write_members(config, row->config);
    write_members(config,
                  "vocab_size@vocab_size bos_token_id@token_id/bos eos_token_id@token_id/eos "
                  "pad_token_id@token_id/padding tie_word_embeddings@lacks/output.weight");
    fs_hf_end_object(config);
    fs_sink_literal(config->sink, "\n");
}

void fs_hf_write_generation_config(struct fs_hf_config *config)
{
    fs_hf_begin_object(config, NULL);
    write_members(config, "bos_token_id=tokenizer.ggml.bos_token_id? "
                          "pad_token_id=tokenizer.ggml.padding_token_id? "
                          "temperature=general.sampling.temp? top_k=general.sampling.top_k? "
                          "top_p=general.sampling.top_p? min_p=general.sampling.min_p?");
    if (fs_hf_key(config->hf, "general.sampling.temp"))
        fs_hf_member_json(config, "do_sample", "true");
    write_members(config, "eos_token_id@ends");
    fs_hf_end_object(config);
    fs_sink_literal(config->sink, "\n");
}
