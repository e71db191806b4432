#include "fs/tree/hf/hf_config.h"

#include "fs/tree/output/json.h"

#include <stdarg.h>
#include <stdio.h>
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

void fs_hf_member(struct fs_hf_config *config, const char *name)
{
    fs_sink_literal(config->sink, config->has_members ? ",\n" : "\n");
    for (unsigned i = 0; i < config->depth; i++)
        fs_sink_literal(config->sink, "  ");
    fs_json_string(config->sink, (struct gguf_string){name, strlen(name)});
    fs_sink_literal(config->sink, ": ");
    config->has_members = true;
}

void fs_hf_member_json(struct fs_hf_config *config, const char *name, const char *json)
{
    fs_hf_member(config, name);
    fs_sink_literal(config->sink, json);
}

void fs_hf_member_unsigned(struct fs_hf_config *config, const char *name, uint64_t number)
{
    fs_hf_member(config, name);
    fs_sink_unsigned(config->sink, number);
}

void fs_hf_member_float(struct fs_hf_config *config, const char *name, double number)
{
    fs_hf_member(config, name);
    fs_json_scalar(config->sink, &(struct gguf_value){.type = GGUF_FLOAT32, .f32 = (float)number});
}

void fs_hf_member_ratio(struct fs_hf_config *config, const char *name, double number)
{
    fs_hf_member(config, name);
    fs_json_scalar(config->sink, &(struct gguf_value){.type = GGUF_FLOAT64, .f64 = number});
}

void fs_hf_member_bool(struct fs_hf_config *config, const char *name, bool is_true)
{
    fs_hf_member_json(config, name, is_true ? "true" : "false");
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
    fs_sink_literal(config->sink, "\n");
    for (unsigned i = 0; i < config->depth; i++)
        fs_sink_literal(config->sink, "  ");
    fs_sink_literal(config->sink, "}");
    config->has_members = true;
}

void fs_hf_begin_array(struct fs_hf_config *config, const char *name)
{
    fs_hf_member(config, name);
    fs_sink_literal(config->sink, "[");
    config->has_members = false;
}

static void separate(struct fs_hf_config *config)
{
    fs_sink_literal(config->sink, config->has_members ? ", " : "");
    config->has_members = true;
}

void fs_hf_element_text(struct fs_hf_config *config, const char *text)
{
    separate(config);
    fs_json_string(config->sink, (struct gguf_string){text, strlen(text)});
}

void fs_hf_element_float(struct fs_hf_config *config, double number)
{
    separate(config);
    fs_json_scalar(config->sink, &(struct gguf_value){.type = GGUF_FLOAT64, .f64 = number});
}

void fs_hf_element_unsigned(struct fs_hf_config *config, uint64_t number)
{
    separate(config);
    fs_sink_unsigned(config->sink, number);
}

void fs_hf_end_array(struct fs_hf_config *config)
{
    fs_sink_literal(config->sink, "]");
    config->has_members = true;
}

static void write_value(struct fs_hf_config *config, const struct gguf_value *value)
{
    if (value->type == GGUF_STRING)
        fs_json_string(config->sink, value->string);
    else
        fs_json_scalar(config->sink, value);
}

/* Longer arrays belong to no configuration. */
#define MAX_ELEMENTS 4096

static void write_array(struct fs_hf_config *config, const struct gguf_key *key)
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
        write_value(config, &first);
        return;
    }
    cursor = gguf_array_begin(array);
    fs_sink_literal(config->sink, "[");
    for (uint64_t i = 0; i < array->n_elements; i++) {
        gguf_array_next(&cursor, array->element_type, &value);
        if (i > 0)
            fs_sink_literal(config->sink, ", ");
        write_value(config, &value);
    }
    fs_sink_literal(config->sink, "]");
}

void fs_hf_member_key(struct fs_hf_config *config, const char *name, const struct gguf_key *key)
{
    fs_hf_member(config, name);
    if (key->value.type == GGUF_ARRAY)
        write_array(config, key);
    else
        write_value(config, &key->value);
}

/* ---- the files ---- */
