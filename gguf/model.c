#include "gguf/model.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gguf_close(struct gguf_model *model)
{
    if (!model)
        return;
    for (uint32_t i = model->n_borrowed_files; i < model->n_files; i++)
        gguf_file_close(&model->files[i]);
    gguf_close(model->owned);
    for (size_t i = 0; i < model->n_allocated; i++)
        free(model->allocated[i]);
    free(model->allocated);
    free(model->keys);
    free(model->tensors);
    free(model->files);
    free(model);
}

int gguf_model_check(const struct gguf_model *model)
{
    for (uint32_t i = 0; i < model->n_files; i++) {
        if (gguf_file_check(&model->files[i], 0) == -ESTALE)
            return -ESTALE;
    }
    return 0;
}

unsigned gguf_model_generation(const struct gguf_model *model)
{
    unsigned sum = 0;

    for (uint32_t i = 0; i < model->n_files; i++)
        sum += gguf_file_generation(&model->files[i]);
    return sum;
}

struct timespec gguf_model_modified(const struct gguf_model *model)
{
    struct timespec newest = {0};

    for (uint32_t i = 0; i < model->n_files; i++) {
        const struct timespec time = gguf_file_modified(&model->files[i]);

        if (gguf_is_later(time, newest))
            newest = time;
    }
    return newest;
}

void *gguf_model_keep(struct gguf_model *model, void *memory)
{
    if (memory &&
        gguf_reserve(&model->allocated, &model->room, model->n_allocated + 1, sizeof memory) == 0)
        return model->allocated[model->n_allocated++] = memory;
    free(memory);
    return NULL;
}

void *gguf_model_alloc(struct gguf_model *model, size_t n_bytes)
{
    return gguf_model_keep(model, calloc(n_bytes ? n_bytes : 1, 1));
}

char *gguf_model_vprint(struct gguf_model *model, const char *format, va_list arguments)
{
    char *text;

    return gguf_model_keep(model, vasprintf(&text, format, arguments) < 0 ? NULL : text);
}

char *gguf_model_print(struct gguf_model *model, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = gguf_model_vprint(model, format, arguments);
    va_end(arguments);
    return text;
}

struct gguf_key *gguf_set_key(struct gguf_model *model, const char *name, struct gguf_value value)
{
    struct gguf_key *key = (struct gguf_key *)(uintptr_t)gguf_find_key(model, name), *keys;
    const char *copy;

    if (!key) {
        keys = reallocarray(model->keys, model->n_keys + 1, sizeof *keys);
        if (!keys)
            return NULL;
        model->keys = keys;
        copy = gguf_model_print(model, "%s", name);
        if (!copy)
            return NULL;
        key = &keys[model->n_keys++];
        *key = (struct gguf_key){.name = gguf_string_of(copy)};
    }
    key->value = value;
    return key;
}

int gguf_add_name_bytes(struct gguf_model *model, uint64_t n_bytes, struct gguf_place place,
                        struct gguf_report *report)
{
    if (n_bytes > GGUF_MAX_NAMES_BYTES - model->before.names_bytes - model->names_bytes)
        return gguf_error(report, GGUF_RULE_METADATA_LIMIT, -E2BIG, place,
                          "with its name, of %" PRIu64
                          " bytes, the names of all keys and tensors take over %" PRIu64
                          " bytes, the limit for all files of a model",
                          n_bytes, GGUF_MAX_NAMES_BYTES);
    model->names_bytes += n_bytes;
    return 0;
}

void gguf_add_usage(struct gguf_usage *usage, const struct gguf_model *file)
{
    usage->header_bytes += file->files[0].header.n_bytes;
    usage->hole_bytes += file->files[0].header.hole_bytes;
    usage->names_bytes += file->names_bytes;
    usage->n_keys += file->n_keys;
    usage->n_tensors += file->n_tensors;
}

const struct gguf_key *gguf_find_key(const struct gguf_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (gguf_string_equals(model->keys[i].name, name))
            return &model->keys[i];
    }
    return NULL;
}

struct gguf_string gguf_architecture_of(const struct gguf_model *model)
{
    const struct gguf_key *key = gguf_find_key(model, "general.architecture");

    return key && key->value.type == GGUF_STRING ? key->value.string : (struct gguf_string){"", 0};
}

const struct gguf_key *gguf_find_arch_key(const struct gguf_model *model, const char *name)
{
    const struct gguf_string architecture = gguf_architecture_of(model);
    char full[256];

    snprintf(full, sizeof full, "%.*s.%s", (int)architecture.length_bytes, architecture.data, name);
    return gguf_find_key(model, full);
}

uint64_t gguf_arch_number(const struct gguf_model *model, const char *name, uint64_t layer)
{
    const struct gguf_key *key = gguf_find_arch_key(model, name);
    struct gguf_value value = {.type = GGUF_BOOL};

    if (key)
        value = gguf_value_of_layer(&key->value, layer);
    return gguf_value_is_integer(&value) ? value.u64 : 0;
}

void gguf_get_text(const struct gguf_model *model, const char *key, char *text, size_t room)
{
    const struct gguf_key *found = gguf_find_key(model, key);

    text[0] = '\0';
    if (found && found->value.type == GGUF_STRING && found->value.string.length_bytes < room)
        snprintf(text, room, "%.*s", (int)found->value.string.length_bytes,
                 found->value.string.data);
}

const struct gguf_key *gguf_find_key_group(const struct gguf_model *model, const char *prefix)
{
    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (gguf_string_starts_with(model->keys[i].name, prefix))
            return &model->keys[i];
    }
    return NULL;
}

const struct gguf_tensor *gguf_tensor_named(const struct gguf_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (gguf_string_equals(gguf_name_of(&model->tensors[i]), name))
            return &model->tensors[i];
    }
    return NULL;
}

/* ---- sorted tensors ---- */

/* Both begin with their name. */
_Static_assert(offsetof(struct gguf_key, name) == 0 && offsetof(struct gguf_tensor, name) == 0,
               "compare_names()");

static int compare_names(const void *a, const void *b)
{
    const struct gguf_string *first = *(const struct gguf_string *const *)a;
    const struct gguf_string *second = *(const struct gguf_string *const *)b;
    const int order = gguf_string_compare(*first, *second);

    return order != 0 ? order : (first > second) - (first < second);
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_tensor *first = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *second = *(const struct gguf_tensor *const *)b;

    if (first->file_index != second->file_index)
        return first->file_index < second->file_index ? -1 : 1;
    if (first->file_offset != second->file_offset)
        return first->file_offset < second->file_offset ? -1 : 1;
    if (!first->type != !second->type)
        return first->type ? -1 : 1;
    return (first > second) - (first < second);
}

static int compare_gguf_names(const void *a, const void *b)
{
    const struct gguf_tensor *first = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *second = *(const struct gguf_tensor *const *)b;
    const int order = gguf_string_compare(gguf_name_of(first), gguf_name_of(second));

    return order != 0 ? order : (first > second) - (first < second);
}

static int compare_to_gguf_name(const void *name, const void *tensor)
{
    return gguf_string_compare(*(const struct gguf_string *)name,
                               gguf_name_of(*(const struct gguf_tensor *const *)tensor));
}

static int compare_to_name(const void *name, const void *tensor)
{
    return gguf_string_compare(*(const struct gguf_string *)name,
                               (*(const struct gguf_tensor *const *)tensor)->name);
}

static const struct gguf_tensor **sorted(const struct gguf_model *model,
                                         int (*compare)(const void *, const void *))
{
    return (const struct gguf_tensor **)gguf_sorted(model->tensors, model->n_tensors,
                                                    sizeof *model->tensors, compare);
}

const struct gguf_tensor **gguf_tensors_by_name(const struct gguf_model *model)
{
    return sorted(model, compare_names);
}

const struct gguf_tensor **gguf_tensors_by_gguf_name(const struct gguf_model *model)
{
    return sorted(model, compare_gguf_names);
}

const struct gguf_key **gguf_keys_by_name(const struct gguf_model *model)
{
    return (const struct gguf_key **)gguf_sorted(model->keys, model->n_keys, sizeof *model->keys,
                                                 compare_names);
}

const struct gguf_tensor **gguf_tensors_by_offset(const struct gguf_model *model)
{
    return sorted(model, compare_offsets);
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf_tensor *const *by_name,
                                           uint64_t n_tensors, struct gguf_string name)
{
    const struct gguf_tensor *const *found =
        bsearch(&name, by_name, n_tensors, sizeof *by_name, compare_to_name);

    return found ? *found : NULL;
}

const struct gguf_tensor *gguf_find_gguf_tensor(const struct gguf_tensor *const *by_gguf_name,
                                                uint64_t n_tensors, struct gguf_string name)
{
    const struct gguf_tensor *const *found =
        bsearch(&name, by_gguf_name, n_tensors, sizeof *by_gguf_name, compare_to_gguf_name);

    return found ? *found : NULL;
}

const char *gguf_path_to_report(const struct gguf_model *model, uint32_t file_index)
{
    return file_index == model->named_file ? NULL : model->files[file_index].source.path;
}

uint64_t gguf_offset_to_report(const struct gguf_model *model, uint32_t file_index, uint64_t offset,
                               struct gguf_report *report)
{
    const struct gguf_source *file = &model->files[file_index].source;
    const struct gguf_pieces pieces = gguf_source_find_pieces(file, offset);

    report->path = !pieces.path || strcmp(pieces.path, file->path) == 0
                       ? gguf_path_to_report(model, file_index)
                       : pieces.path;
    return pieces.offset;
}

int gguf_remove_key(struct gguf_model *model, const char *name)
{
    const struct gguf_key *key = gguf_find_key(model, name);
    uint64_t index;

    if (!key)
        return -ENOENT;
    index = (uint64_t)(key - model->keys);
    model->n_keys--;
    memmove(&model->keys[index], &model->keys[index + 1],
            (model->n_keys - index) * sizeof *model->keys);
    return 0;
}
