#include "tests/unit/fs/tiny_file.h"

#include "gguf/models/tensor_lists.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void add_number(struct gguf_writer *w, const char *key, const char *text)
{
    char *end;

    if (text[strspn(text, "0123456789")] == '\0')
        gguf_writer_add_u32(w, key, (uint32_t)strtoul(text, &end, 10));
    else
        gguf_writer_add_f32(w, key, strtof(text, &end));
}

/* Add a key with a value of JSON: a number, true, or an array of numbers. */
static void add_key(struct gguf_writer *w, const struct tiny_key *key)
{
    const char *at = key->value;
    const bool is_float = strpbrk(at, ".e") != NULL;
    uint64_t n = 1;

    if (strcmp(at, "true") == 0)
        gguf_writer_add_bool(w, key->name, true);
    else if (*at != '[')
        add_number(w, key->name, at);
    else {
        for (const char *c = at; *c != '\0'; c++)
            n += *c == ',';
        gguf_writer_add_array(w, key->name, is_float ? GGUF_WRITER_F32 : GGUF_WRITER_U32, n);
        for (char *end; n-- > 0; at = end) {
            if (is_float)
                gguf_writer_f32(w, strtof(at + 1, &end));
            else
                gguf_writer_u32(w, (uint32_t)strtoul(at + 1, &end, 10));
        }
    }
}

/* Keys that config.json needs. The runner takes these numbers from shapes. */
static const struct {
    const char *architecture, *part, *name, *value; /* of models with tensors of the part */
} more_keys[] = {
    {NULL, "_exps.", "expert_feed_forward_length", "48"},
    {NULL, "_shexp.", "expert_shared_count", "1"},
    {NULL, "_shexp.", "expert_shared_feed_forward_length", "48"},
    {NULL, "ssm_", "ssm.state_size", "8"},
    {"qwen3*", "ssm_", "ssm.inner_size", "32"},
    {NULL, "ssm_", "ssm.inner_size", "64"},
    {NULL, "ssm_", "ssm.time_step_rank", "4"},
    {NULL, "ssm_", "ssm.conv_kernel", "4"},
    {"kimi-linear", "ssm_", "kda.head_dim", "8"},
    {NULL, "shortconv.", "shortconv.l_cache", "3"},
    {"gemma3n", "altup_", "altup.num_inputs", "4"},
    {"gemma3n", "altup_", "altup.active_idx", "0"},
    {"gemma3n", "altup_", "embedding_length_per_layer_input", "256"},
    {"gemma4", "attn_", "attention.key_length", "8"},
    {"qwen3next", "attn_", "attention.key_length", "8"},
    {"qwen35*", "attn_", "attention.key_length", "8"},
};

static bool has_part(const struct tiny_model *tiny, const char *part)
{
    for (size_t i = 0; i < tiny->n_tensors; i++) {
        if (strstr(tiny->tensors[i].name, part))
            return true;
    }
    return false;
}

static void add_more_keys(struct gguf_writer *w, const struct tiny_model *tiny)
{
    const char *last = "";

    for (size_t i = 0; i < COUNT(more_keys); i++) {
        struct tiny_key key;

        if (!tiny_is_of(tiny->architecture, more_keys[i].architecture) ||
            !has_part(tiny, more_keys[i].part) || strcmp(last, more_keys[i].name) == 0)
            continue;
        last = more_keys[i].name;
        snprintf(key.name, sizeof key.name, "%s.%s", tiny->architecture, last);
        snprintf(key.value, sizeof key.value, "%s", more_keys[i].value);
        add_key(w, &key);
    }
}

void tiny_file_add(struct gguf_writer *w, const char *name, const uint64_t ne[4])
{
    uint64_t n_elements = 1;
    uint32_t n_dims = 0;

    for (; n_dims < 4 && ne[n_dims] > 0; n_dims++)
        n_elements *= ne[n_dims];
    gguf_writer_add_tensor(w, name, strlen(name), n_dims, ne, DEQUANT_F32, NULL,
                           (size_t)n_elements * sizeof(float));
}

/* ---- biases ---- */

static bool is_bias(const char *name)
{
    return strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".bias") == 0;
}

bool tiny_file_has(const struct tiny_model *tiny, const char *name)
{
    for (size_t i = 0; i < tiny->n_tensors; i++) {
        if (strcmp(tiny->tensors[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool has_tensor(const void *tiny, const char *name)
{
    return tiny_file_has(tiny, name);
}

void tiny_file_extend(struct tiny_model *tiny, const char *name)
{
    struct tiny_tensor *tensor = &tiny->tensors[tiny->n_tensors++];

    cr_assert_lt(tiny->n_tensors, (size_t)TINY_MAX_TENSORS);
    *tensor = (struct tiny_tensor){0};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    tiny_set_shape(tiny->architecture, tiny_kind(tensor), tensor->ne);
}

static bool find_missing(const struct tiny_model *tiny, struct gguf_missing_tensor *missing)
{
    bool is_complete = gguf_check_model_tensors(tiny->row, has_tensor, tiny, missing);

    for (unsigned i = 0; is_complete && i < tiny->n_layer; i++)
        is_complete = gguf_check_layer_tensors(tiny->row, has_tensor, tiny, i, missing);
    return !is_complete;
}

bool tiny_file_complete(struct tiny_model *tiny)
{
    const bool is_fused = tiny_is_in(tiny_fused, tiny->architecture);
    struct gguf_missing_tensor missing;

    while (find_missing(tiny, &missing)) {
        char *q = strstr(missing.name, "q.bias");

        if (!is_bias(missing.name))
            return false;
        if (q && is_fused) /* the lists name the separate form first */
            memcpy(q, "qkv.bias", sizeof "qkv.bias");
        tiny_file_extend(tiny, missing.name);
    }
    return true;
}

void tiny_file_model(const char *architecture, bool has_experts, bool has_biases,
                     struct tiny_model *tiny)
{
    size_t n = 0;

    tiny_model_make(architecture, has_experts, tiny);
    for (size_t i = 0; i < tiny->n_tensors; i++) {
        if (has_biases || !is_bias(tiny->tensors[i].name))
            tiny->tensors[n++] = tiny->tensors[i];
    }
    tiny->n_tensors = n;
    cr_assert(tiny_file_complete(tiny), "%s", architecture);
}

/* ---- the file ---- */

struct gguf_writer *tiny_file_begin(const struct tiny_model *tiny, const char *left_out)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", tiny->architecture);
    for (size_t i = 0; i < tiny->n_keys; i++)
        add_key(w, &tiny->keys[i]);
    add_more_keys(w, tiny);
    for (size_t i = 0; i < tiny->n_tensors; i++) {
        if (!left_out || !strstr(tiny->tensors[i].name, left_out))
            tiny_file_add(w, tiny->tensors[i].name, tiny->tensors[i].ne);
    }
    return w;
}
