#include "fs/tree/hf/hf_model.h"

#include "fs/tree/hf/vocabulary.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* ---- values of keys ---- */

static int compare_keys(const void *a, const void *b)
{
    return gguf_string_compare((*(const struct gguf_key *const *)a)->name,
                               (*(const struct gguf_key *const *)b)->name);
}

static const struct gguf_key *find_exactly(const struct fs_hf_model *hf, struct gguf_string name)
{
    const struct gguf_key key = {.name = name}, *wanted = &key;
    const struct gguf_key **found =
        bsearch(&wanted, hf->keys, (size_t)hf->model->n_keys, sizeof *hf->keys, compare_keys);

    return found ? *found : NULL;
}

const struct gguf_key *fs_hf_key(const struct fs_hf_model *hf, const char *name)
{
    const int n = (int)MIN(hf->architecture.length_bytes, 256);
    const struct gguf_key *key = NULL;
    char full[256];

    if (snprintf(full, sizeof full, "%.*s.%s", n, hf->architecture.data, name) < (int)sizeof full)
        key = find_exactly(hf, gguf_string_of(full));
    return key ? key : find_exactly(hf, gguf_string_of(name));
}

/*
 * Return the number of a key, which may be NULL; of an array, the largest of elements `first` to
 * `end` - 1.
 */
static double number_of(const struct gguf_key *key, uint64_t first, uint64_t end, double otherwise)
{
    bool has_largest = false;
    double number;

    if (!key || key->value.type != GGUF_ARRAY)
        return key && gguf_value_to_double(&key->value, &number) ? number : otherwise;
    if (key->value.array.n_elements > GGUF_MAX_LAYERS)
        return otherwise;
    for (uint64_t i = first; i < MIN(end, key->value.array.n_elements); i++) {
        const struct gguf_value value = fs_array_element(&key->value.array, i);

        if (!gguf_value_to_double(&value, &number))
            break;
        otherwise = has_largest ? MAX(otherwise, number) : number;
        has_largest = true;
    }
    return otherwise;
}

double fs_hf_float(const struct fs_hf_model *hf, const char *name, double otherwise)
{
    return number_of(fs_hf_key(hf, name), 0, UINT64_MAX, otherwise);
}

double fs_hf_float_at(const struct fs_hf_model *hf, const char *name, uint64_t layer,
                      double otherwise)
{
    return number_of(fs_hf_key(hf, name), layer, layer + 1, otherwise);
}

int fs_hf_model_make(const struct gguf_model *model, struct fs_hf_model *hf)
{
    char name[64];

    *hf = (struct fs_hf_model){.model = model, .architecture = gguf_architecture_of(model)};
    gguf_get_text(model, "general.architecture", name, sizeof name);
    hf->listed = gguf_architecture_find(name);
    hf->keys = gguf_keys_by_name(model);
    hf->by_name = gguf_tensors_by_gguf_name(model);
    if (!hf->keys || !hf->by_name)
        return -ENOMEM;
    hf->n_head = fs_hf_key(hf, "attention.head_count");
    hf->n_head_kv = fs_hf_key(hf, "attention.head_count_kv");
    return 0;
}

void fs_hf_model_free(struct fs_hf_model *hf)
{
    free((void *)hf->by_name);
    free((void *)hf->keys);
    hf->by_name = NULL;
    hf->keys = NULL;
}

/* ---- tensors ---- */

const struct gguf_tensor *fs_hf_tensor(const struct fs_hf_model *hf, const char *name)
{
    return gguf_find_gguf_tensor(hf->by_name, hf->model->n_tensors, gguf_string_of(name));
}

const struct gguf_tensor *fs_hf_any_tensor(const struct fs_hf_model *hf, const char *pattern)
{
    struct gguf_name_match match;

    for (uint64_t i = 0; i < hf->model->n_tensors; i++) {
        if (gguf_tensor_name_matches(gguf_name_of(&hf->model->tensors[i]), pattern, &match))
            return &hf->model->tensors[i];
    }
    return NULL;
}

/* ---- keys ---- */

static uint64_t whole(double number, uint64_t otherwise)
{
    return number >= 0 && number < 0x1p63 ? (uint64_t)number : otherwise;
}

uint64_t fs_hf_number_at(const struct fs_hf_model *hf, const char *name, uint64_t layer,
                         uint64_t otherwise)
{
    return whole(fs_hf_float_at(hf, name, layer, (double)otherwise), otherwise);
}

uint64_t fs_hf_number(const struct fs_hf_model *hf, const char *name, uint64_t otherwise)
{
    return whole(fs_hf_float(hf, name, (double)otherwise), otherwise);
}

bool fs_hf_bool(const struct fs_hf_model *hf, const char *name, bool otherwise)
{
    return fs_hf_float(hf, name, otherwise) != 0;
}

bool fs_hf_text_is(const struct fs_hf_model *hf, const char *name, const char *text)
{
    const struct gguf_key *key = fs_hf_key(hf, name);

    return key && key->value.type == GGUF_STRING && gguf_string_equals(key->value.string, text);
}

uint64_t fs_hf_n_head(const struct fs_hf_model *hf, uint64_t layer)
{
    return whole(number_of(hf->n_head, layer, layer + 1, 0), 0);
}

uint64_t fs_hf_n_head_kv(const struct fs_hf_model *hf, uint64_t layer)
{
    const uint64_t n_head = fs_hf_n_head(hf, layer);

    return whole(number_of(hf->n_head_kv, layer, layer + 1, (double)n_head), n_head);
}

uint64_t fs_hf_head_dim(const struct fs_hf_model *hf)
{
    const uint64_t n_head = fs_hf_number(hf, "attention.head_count", 0);
    const uint64_t n_embd = fs_hf_number(hf, "embedding_length", 0);

    return fs_hf_number(hf, "attention.key_length", n_head > 0 ? n_embd / n_head : 0);
}

uint64_t fs_hf_n_layer(const struct fs_hf_model *hf)
{
    const uint64_t n_layer = fs_hf_number(hf, "block_count", 0);
    const uint64_t n_nextn =
        hf->listed && hf->listed->tensors.nextn ? fs_hf_number(hf, "nextn_predict_layers", 0) : 0;

    return n_layer > n_nextn ? n_layer - n_nextn : n_layer;
}

const struct gguf_tensor *fs_hf_layer_tensor(const struct fs_hf_model *hf, uint64_t layer,
                                             const char *pattern, char name[GGUF_NAME_BYTES])
{
    const struct gguf_name_match match = {.layer = (uint32_t)layer, .suffix = ""};

    return gguf_tensor_name_expand(pattern, &match, name) ? fs_hf_tensor(hf, name) : NULL;
}

bool fs_hf_layer_has(const struct fs_hf_model *hf, uint64_t layer, const char *pattern)
{
    char name[GGUF_NAME_BYTES];

    return fs_hf_layer_tensor(hf, layer, pattern, name);
}

void fs_hf_add_line(struct fs_hf_lines *lines, const char *format, ...)
{
    char *line;
    int n;
    va_list args;

    if (lines->text.length > 65536)
        return;
    va_start(args, format);
    n = vasprintf(&line, format, args);
    va_end(args);
    if (n < 0 || gguf_buffer_add(&lines->text, line, (size_t)n) < 0)
        lines->error = -ENOMEM;
    if (n >= 0)
        free(line);
}
