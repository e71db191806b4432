#include "fs/tree/model_gguf.h"

#include "fs/tree/gguf_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The header is written when the file is opened, but for strings and arrays, which are made when
 * they are read. What was written since the last of those waits in `head`.
 */
struct writer {
    struct fs_image *image;
    struct fs_value_cache *values;
    const struct fs_shard *shard; /* NULL: the whole model */
    struct fs_text head;
};

/* ---- what goes where ---- */

/* The name under which programs look for the tensor. */
static struct gguf_string name_of(const struct gguf_tensor *tensor)
{
    return tensor->gguf_name.length_bytes > 0 ? tensor->gguf_name : tensor->name;
}

/* Old blocks that no type of today can hold are floats in the file. */
static bool is_decoded(const struct gguf_tensor *tensor)
{
    return tensor->type && tensor->type != dequant_modern(tensor->type) &&
           dequant_modern(tensor->type)->id == DEQUANT_F32;
}

static uint32_t type_id_of(const struct gguf_tensor *tensor)
{
    return tensor->type ? dequant_modern(tensor->type)->id : tensor->type_id;
}

int fs_model_gguf_bytes(const struct gguf_tensor *tensor, uint64_t *n_bytes)
{
    *n_bytes = tensor->type ? tensor->size_bytes : tensor->extent_bytes;
    if (is_decoded(tensor) &&
        __builtin_mul_overflow(tensor->n_elements, (uint64_t)sizeof(float), n_bytes))
        return -EOVERFLOW;
    return 0;
}

static uint64_t padding_at(const struct gguf_model *model, uint64_t offset)
{
    return -offset & (model->alignment_bytes - 1);
}

static bool is_about_split(const struct gguf_key *key)
{
    return gguf_string_equals(key->name, "split.no") ||
           gguf_string_equals(key->name, "split.count") ||
           gguf_string_equals(key->name, "split.tensors.count");
}

/* Whether the key belongs into the file. */
static bool is_written(const struct writer *writer, const struct gguf_key *key)
{
    /* A shard that was opened alone stays one. */
    if (is_about_split(key))
        return !writer->shard && writer->image->model->n_files == 1;
    return !writer->shard || writer->shard->index == 0 ||
           gguf_string_equals(key->name, "general.alignment");
}

/* ---- the header ---- */

/* Makes room for another `n_bytes` bytes behind the head. */
static int reserve(struct writer *writer, uint64_t n_bytes)
{
    struct fs_text *head = &writer->head;
    size_t capacity;
    char *grown;

    if (n_bytes <= head->capacity - head->length)
        return 0;
    capacity = 2 * head->capacity + n_bytes + 256;
    grown = realloc(head->data, capacity);
    if (!grown)
        return -ENOMEM;
    head->data = grown;
    head->capacity = capacity;
    return 0;
}

/* Puts what was written into the image. */
static int flush(struct writer *writer)
{
    struct fs_text head = writer->head;
    char *shrunk;

    writer->head = (struct fs_text){0};
    if (head.length == 0) {
        free(head.data);
        return 0;
    }
    shrunk = realloc(head.data, head.length);
    if (shrunk)
        head.data = shrunk;
    return fs_image_add_owned(writer->image, head.data, head.length);
}

static bool has_decoded(const struct gguf_model *model)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (is_decoded(&model->tensors[i]))
            return true;
    }
    return false;
}

/*
 * The value as it is in the file. What was made of an old file tells of its blocks, which become
 * today's, or floats; what the user or the file said stays.
 */
static struct gguf_value value_of(const struct gguf_model *model, const struct gguf_key *key)
{
    struct gguf_value value = key->value;

    if (!model->has_entries_between || key->file_offset == GGUF_NO_OFFSET)
        return value;
    if (gguf_string_equals(key->name, "general.quantization_version"))
        value.u64 = DEQUANT_ERA;
    if (gguf_string_equals(key->name, "general.file_type") && has_decoded(model))
        value.u64 = DEQUANT_F32; /* the numbers of the two are the same here: all F32 */
    return value;
}

static int write_key(struct writer *writer, const struct gguf_key *key)
{
    const struct gguf_value made = value_of(writer->image->model, key), *value = &made;
    int result = reserve(writer, sizeof(uint64_t) + key->name.length_bytes + sizeof(uint32_t) +
                                     FS_GGUF_NUMBER_BYTES);

    if (result < 0)
        return result;
    fs_gguf_string(&writer->head, key->name);
    fs_gguf_number(&writer->head, value->type, sizeof(uint32_t));
    if (value->type != GGUF_STRING && value->type != GGUF_ARRAY) {
        fs_gguf_scalar(&writer->head, value);
        return 0;
    }
    result = flush(writer);
    if (result < 0)
        return result;
    return fs_value_cache_add(writer->values, key, FS_AS_GGUF, writer->image);
}

/* The keys by which llama.cpp finds the other files. */
static void make_split_keys(const struct writer *writer, struct gguf_key keys[3])
{
    const uint64_t numbers[] = {writer->shard->index, writer->shard->count,
                                writer->image->model->n_tensors};
    static const char *const names[] = {"split.no", "split.count", "split.tensors.count"};

    for (size_t i = 0; i < 3; i++) {
        keys[i] = (struct gguf_key){.name = {names[i], strlen(names[i])}};
        keys[i].value.type = i < 2 ? GGUF_UINT16 : GGUF_INT32;
        keys[i].value.u64 = numbers[i];
    }
}

static int write_keys(struct writer *writer)
{
    const struct gguf_model *model = writer->image->model;
    struct gguf_key split[3];
    int result = 0;

    for (uint64_t i = 0; result == 0 && i < model->n_keys; i++) {
        if (is_written(writer, &model->keys[i]))
            result = write_key(writer, &model->keys[i]);
    }
    if (!writer->shard)
        return result;
    make_split_keys(writer, split);
    for (size_t i = 0; result == 0 && i < 3; i++)
        result = write_key(writer, &split[i]);
    return result;
}

static int write_counts(struct writer *writer, uint64_t n_tensors)
{
    static const struct gguf_string magic = {"GGUF", 4};
    const struct gguf_model *model = writer->image->model;
    uint64_t n_keys = writer->shard ? 3 : 0;
    int result = reserve(writer, magic.length_bytes + 3 * sizeof(uint64_t));

    if (result < 0)
        return result;
    for (uint64_t i = 0; i < model->n_keys; i++)
        n_keys += is_written(writer, &model->keys[i]);
    fs_gguf_bytes(&writer->head, magic.data, magic.length_bytes);
    fs_gguf_number(&writer->head, 3, sizeof(uint32_t));
    fs_gguf_number(&writer->head, n_tensors, sizeof(uint64_t));
    fs_gguf_number(&writer->head, n_keys, sizeof(uint64_t));
    return 0;
}

/* Writes the info of a tensor whose data are at *offset, and moves that behind them. */
static int write_info(struct writer *writer, const struct gguf_tensor *tensor, uint64_t *offset)
{
    const struct gguf_string name = name_of(tensor);
    uint64_t n_bytes;
    int result = reserve(writer, sizeof(uint64_t) + name.length_bytes + 2 * sizeof(uint32_t) +
                                     (GGUF_MAX_DIMS + 1) * sizeof(uint64_t));

    if (result == 0)
        result = fs_model_gguf_bytes(tensor, &n_bytes);
    if (result < 0)
        return result;
    fs_gguf_string(&writer->head, name);
    fs_gguf_number(&writer->head, tensor->n_dims, sizeof(uint32_t));
    for (uint32_t i = 0; i < tensor->n_dims; i++)
        fs_gguf_number(&writer->head, tensor->ne[i], sizeof(uint64_t));
    fs_gguf_number(&writer->head, type_id_of(tensor), sizeof(uint32_t));
    fs_gguf_number(&writer->head, *offset, sizeof(uint64_t));
    if (__builtin_add_overflow(*offset, n_bytes, offset) ||
        __builtin_add_overflow(*offset, padding_at(writer->image->model, *offset), offset))
        return -EOVERFLOW;
    return 0;
}

/* ---- the data ---- */

/* ggml wants the last tensor padded as well. */
static int add_padding(struct fs_image *image)
{
    return fs_image_add_zeros(image, padding_at(image->model, image->size_bytes));
}

static int add_data(struct fs_image *image, const struct gguf_tensor *tensor)
{
    int result;

    if (!tensor->type)
        result = fs_image_add_source(image, &image->model->files[tensor->file_index],
                                     tensor->file_offset, tensor->extent_bytes);
    else if (is_decoded(tensor))
        result = fs_image_add_values(image, tensor);
    else
        result = fs_image_add_modern_data(image, tensor);
    return result < 0 ? result : add_padding(image);
}

static int write_file(struct writer *writer)
{
    const struct gguf_model *model = writer->image->model;
    const uint64_t first = writer->shard ? writer->shard->first_tensor : 0;
    const uint64_t end = writer->shard ? first + writer->shard->n_tensors : model->n_tensors;
    uint64_t offset = 0;
    int result = write_counts(writer, end - first);

    if (result == 0)
        result = write_keys(writer);
    for (uint64_t i = first; result == 0 && i < end; i++)
        result = write_info(writer, &model->tensors[i], &offset);
    if (result == 0)
        result = flush(writer);
    if (result == 0)
        result = add_padding(writer->image);
    for (uint64_t i = first; result == 0 && i < end; i++)
        result = add_data(writer->image, &model->tensors[i]);
    return result;
}

const char *fs_model_gguf_obstacle(const struct gguf_model *model)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        if (!tensor->type && tensor->big_endian)
            return "it has big-endian tensors of unknown type";
        if (!tensor->type && gguf_source_is_growing(&model->files[tensor->file_index]))
            return "it is not complete, and has tensors of unknown type";
        /* The type has a decoder, but not here. */
        if (tensor->type && !dequant_is_decodable(tensor->type) &&
            dequant_is_decodable(dequant_type_by_id(tensor->type->id)))
            return "its file does not tell how its blocks are laid out; -o era=0, 1 or 2 does";
    }
    return NULL;
}

bool fs_model_gguf_applies(const struct gguf_model *model, const void *subject)
{
    (void)subject;
    return !fs_model_gguf_obstacle(model);
}

int fs_model_gguf_build(struct fs_image *image, const void *subject, struct fs_value_cache *values)
{
    const struct gguf_model *model = image->model;
    struct writer writer = {.image = image, .values = values, .shard = subject};
    int result;

    /* Of a file that is growing it is not known how long it will be, but where its tensors end. */
    if (!writer.shard && model->n_files == 1 && model->is_current &&
        !gguf_source_is_growing(&model->files[0]))
        return fs_image_add_source(image, &model->files[0], 0, model->files[0].size_bytes);
    result = write_file(&writer);
    free(writer.head.data);
    return result;
}
