#include "fs/tree/model_gguf.h"

#include "fs/tree/gguf_bytes.h"
#include "fs/tree/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the contents ---- */

/* Return the tensor's name in GGUF files. */
static struct gguf_string name_of(const struct gguf_tensor *tensor)
{
    return tensor->gguf_name.length_bytes > 0 ? tensor->gguf_name : tensor->name;
}

/* Return true for old blocks that no current type can hold: the file has floats instead. */
static bool is_decoded(const struct gguf_tensor *tensor)
{
    return tensor->type && tensor->type != dequant_modern(tensor->type) &&
           dequant_modern(tensor->type)->id == DEQUANT_F32;
}

/* Return true for interleaved rows that a type of ggml can hold. */
static bool is_put_back(const struct gguf_tensor *tensor)
{
    return tensor->type && tensor->type->plain;
}

static uint32_t type_id_of(const struct gguf_tensor *tensor)
{
    return tensor->type ? dequant_modern(tensor->type)->id : tensor->type_id;
}

/* Get the size of a stored tensor's data in the file. */
static int stored_bytes(const struct gguf_tensor *tensor, uint64_t *n_bytes)
{
    if (!tensor->type) {
        *n_bytes = tensor->extent_bytes;
        return 0;
    }
    return is_decoded(tensor) ? fs_elements_size(tensor, FS_F32, n_bytes)
                              : fs_modern_size(tensor, n_bytes);
}

uint64_t fs_model_gguf_count(const struct gguf_model *model)
{
    return model->converted ? model->n_converted : model->n_tensors;
}

/* Return a tensor of the file. */
static struct gguf_converted_tensor tensor_at(const struct gguf_model *model, uint64_t index)
{
    const struct gguf_tensor *tensor = &model->tensors[index];
    struct gguf_converted_tensor same = {.n_stored = 1, .stored = {index}};

    if (model->converted)
        return model->converted[index];
    same.name = name_of(tensor);
    same.n_dims = tensor->n_dims;
    memcpy(same.ne, tensor->ne, sizeof same.ne);
    return same;
}

int fs_model_gguf_bytes(const struct gguf_model *model, uint64_t index, uint64_t *n_bytes)
{
    const struct gguf_converted_tensor tensor = tensor_at(model, index);
    uint64_t more;

    *n_bytes = 0;
    for (uint32_t i = 0; i < tensor.n_stored; i++) {
        if (stored_bytes(&model->tensors[tensor.stored[i]], &more) < 0 ||
            __builtin_add_overflow(*n_bytes, more, n_bytes))
            return -EOVERFLOW;
    }
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

/* Return true if the file, which is the whole model or a shard of it, has the key. */
static bool is_written(const struct gguf_model *model, const struct fs_shard *shard,
                       const struct gguf_key *key)
{
    /* One shard opened alone keeps the keys of a shard. */
    if (is_about_split(key))
        return !shard && model->n_files == 1;
    return !shard || shard->index == 0 || gguf_string_equals(key->name, "general.alignment");
}

/* ---- the header ---- */

static bool has_tensor(const struct gguf_model *model,
                       bool (*is_wanted)(const struct gguf_tensor *))
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (is_wanted(&model->tensors[i]))
            return true;
    }
    return false;
}

/*
 * The file type of a model whose interleaved rows are put back. ik_llama.cpp adds 200 to the number
 * of the plain type's, also for IQ1_S_R4 and IQ1_M_R4, which have no plain type; 33 to 35 were
 * Q4_0_4_4, Q4_0_4_8 and Q4_0_8_8. Source: enum llama_ftype in llama.h of llama.cpp and
 * ik_llama.cpp.
 */
static uint64_t plain_file_type(uint64_t file_type)
{
    enum {
        Q4_0 = 2,
        Q8_0 = 7,
        BF16 = 32,
        Q4_0_4_4 = 33,
        Q4_0_8_8 = 35,
        IQ1_S_R4 = 224,
        IQ1_M_R4 = 231,
        Q8_K_R8 = 399
    };

    if (file_type == IQ1_S_R4 || file_type == IQ1_M_R4)
        return file_type;
    if (file_type >= Q4_0_4_4 && file_type <= Q4_0_8_8)
        return Q4_0;
    if (file_type == Q8_K_R8)
        return Q8_0;
    return file_type >= 200 + Q4_0 && file_type <= 200 + BF16 ? file_type - 200 : file_type;
}

/*
 * Return the key's value in the file. Two keys describe blocks: those that were made for an old
 * file, whose blocks become current ones or floats, and the type of a file with interleaved rows.
 * Values from the user are unchanged.
 */
static struct gguf_value value_of(const struct gguf_model *model, const struct gguf_key *key)
{
    struct gguf_value value = key->value;

    if (key->file_offset == GGUF_NO_OFFSET)
        return value;
    if (value.type == GGUF_UINT32 && gguf_string_equals(key->name, "general.file_type") &&
        has_tensor(model, is_put_back))
        value.u64 = plain_file_type(value.u64);
    if (!model->has_entries_between)
        return value;
    if (gguf_string_equals(key->name, "general.quantization_version"))
        value.u64 = DEQUANT_ERA;
    if (gguf_string_equals(key->name, "general.file_type") && has_tensor(model, is_decoded))
        value.u64 = DEQUANT_F32; /* both keys have the same number for all F32 */
    return value;
}

#define N_SPLIT_KEYS 3u

/* Return one of the keys by which llama.cpp finds the other shards. */
static struct gguf_key split_key(const struct gguf_model *model, const struct fs_shard *shard,
                                 uint64_t i)
{
    static const char *const names[] = {"split.no", "split.count", "split.tensors.count"};
    const uint64_t numbers[] = {shard->index, shard->count, fs_model_gguf_count(model)};
    struct gguf_key key = {.name = {names[i], strlen(names[i])}};

    key.value.type = i < 2 ? GGUF_UINT16 : GGUF_INT32;
    key.value.u64 = numbers[i];
    return key;
}

static void write_counts(const struct gguf_model *model, const struct fs_shard *shard,
                         struct fs_sink *sink)
{
    uint64_t n_keys = shard ? N_SPLIT_KEYS : 0;

    for (uint64_t i = 0; i < model->n_keys; i++)
        n_keys += is_written(model, shard, &model->keys[i]);
    fs_sink_literal(sink, "GGUF");
    fs_gguf_number(sink, 3, sizeof(uint32_t));
    fs_gguf_number(sink, shard ? shard->n_tensors : fs_model_gguf_count(model), sizeof(uint64_t));
    fs_gguf_number(sink, n_keys, sizeof(uint64_t));
}

/* Write a piece of a key; after the last piece, go on to the next key. */
static void write_key(const struct gguf_model *model, const struct gguf_key *key,
                      struct fs_place *place, struct fs_sink *sink)
{
    const struct gguf_value value = value_of(model, key);

    if (place->in_value) {
        place->in_value = fs_value_continue(&place->value, sink);
        place->item += !place->in_value;
        return;
    }
    fs_gguf_string(sink, key->name);
    fs_gguf_number(sink, value.type, sizeof(uint32_t));
    fs_value_begin(&place->value, FS_AS_GGUF, &value, sink);
    place->in_value = true;
}

/* Write the info of a tensor whose data begin at place->offset, and move that past them. */
static int write_info(const struct gguf_model *model, uint64_t index, struct fs_place *place,
                      struct fs_sink *sink)
{
    const struct gguf_converted_tensor tensor = tensor_at(model, index);
    uint64_t n_bytes;

    fs_gguf_string(sink, tensor.name);
    fs_gguf_number(sink, tensor.n_dims, sizeof(uint32_t));
    for (uint32_t i = 0; i < tensor.n_dims; i++)
        fs_gguf_number(sink, tensor.ne[i], sizeof(uint64_t));
    fs_gguf_number(sink, type_id_of(&model->tensors[tensor.stored[0]]), sizeof(uint32_t));
    fs_gguf_number(sink, place->offset, sizeof(uint64_t));
    if (fs_model_gguf_bytes(model, index, &n_bytes) < 0 ||
        __builtin_add_overflow(place->offset, n_bytes, &place->offset) ||
        __builtin_add_overflow(place->offset, padding_at(model, place->offset), &place->offset))
        return -EOVERFLOW;
    place->item++;
    return 1;
}

/*
 * Write the header of a file. The items are the counts, the model's keys, those of a shard, and the
 * infos of the tensors.
 */
static int write_header(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                        struct fs_sink *sink)
{
    const struct gguf_model *model = tree->model;
    const struct fs_shard *shard = subject;
    const uint64_t n_split_keys = shard ? N_SPLIT_KEYS : 0;
    const uint64_t n_tensors = shard ? shard->n_tensors : fs_model_gguf_count(model);
    uint64_t i = place->item;

    if (i == 0) {
        write_counts(model, shard, sink);
        place->item = 1;
        return 1;
    }
    i--;
    if (i < model->n_keys) {
        if (is_written(model, shard, &model->keys[i]))
            write_key(model, &model->keys[i], place, sink);
        else
            place->item++;
        return 1;
    }
    i -= model->n_keys;
    if (i < n_split_keys) {
        const struct gguf_key key = split_key(model, shard, i);

        write_key(model, &key, place, sink);
        return 1;
    }
    i -= n_split_keys;
    if (i == n_tensors)
        return 0;
    return write_info(model, (shard ? shard->first_tensor : 0) + i, place, sink);
}

/* ---- the data ---- */

/* ggml expects padding after the last tensor, too. */
static int add_padding(struct fs_image *image)
{
    return fs_image_add_zeros(image, padding_at(image->model, image->size_bytes));
}

static int add_stored(struct fs_image *image, const struct gguf_tensor *tensor)
{
    if (!tensor->type)
        return fs_image_add_source(image, &image->model->files[tensor->file_index],
                                   tensor->file_offset, tensor->extent_bytes);
    if (is_decoded(tensor))
        return fs_image_add_elements(image, tensor, FS_F32);
    return fs_image_add_modern_data(image, tensor);
}

static int add_data(struct fs_image *image, uint64_t index)
{
    const struct gguf_converted_tensor tensor = tensor_at(image->model, index);
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < tensor.n_stored; i++)
        result = add_stored(image, &image->model->tensors[tensor.stored[i]]);
    return result < 0 ? result : add_padding(image);
}

const char *fs_model_gguf_obstacle(const struct gguf_model *model)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        if (!tensor->type && tensor->big_endian)
            return "it has big-endian tensors of unknown type";
        if (!tensor->type && model->files[tensor->file_index].is_growing)
            return "it is not complete, and has tensors of unknown type";
        /* The type has a decoder, but the file's block layout is unknown. */
        if (tensor->type && !dequant_is_decodable(tensor->type) &&
            dequant_is_decodable(dequant_type_by_id(tensor->type->id)))
            return "its file does not say how its blocks are laid out; -o era=0, 1 or 2 does";
    }
    return NULL;
}

bool fs_model_gguf_applies(const struct fs_tree *tree, const void *subject)
{
    (void)subject;
    return !fs_model_gguf_obstacle(tree->model);
}

int fs_model_gguf_build(const struct fs_tree *tree, const void *subject,
                        const struct fs_interrupt *interrupt, struct fs_image *image)
{
    const struct gguf_model *model = tree->model;
    const struct gguf_source *file = &model->files[0];
    const struct fs_shard *shard = subject;
    const uint64_t first = shard ? shard->first_tensor : 0;
    const uint64_t end = shard ? first + shard->n_tensors : fs_model_gguf_count(model);
    int result;

    /* The final size of a growing file is unknown, but the end of its last tensor is known. */
    if (!shard && model->n_files == 1 && model->is_current && !file->is_growing &&
        !has_tensor(model, is_put_back))
        return fs_image_add_source(image, file, file->start_offset,
                                   file->end_offset - file->start_offset);
    result = fs_image_add_text(image, write_header, tree, subject, interrupt);
    if (result == 0)
        result = add_padding(image);
    for (uint64_t i = first; result == 0 && i < end; i++)
        result = add_data(image, i);
    return result;
}
