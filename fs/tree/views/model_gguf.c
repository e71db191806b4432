#include "fs/tree/views/view_files.h"

#include "fs/tree/output/value_writer.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/data/tensor_segments.h"
#include "fs/tree/core/text.h"
#include "fs/tree/core/tree_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A file: a part of the model, or a shard of it. */
struct file {
    const struct fs_part *part;
    const struct fs_shard *shard; /* NULL: the whole part */
};

/* ---- the contents ---- */

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

#define N_SPLIT_KEYS 3u

/* Return one of the keys by which llama.cpp finds the other shards. */
static struct gguf_key split_key(const struct gguf_model *model, const struct fs_shard *shard,
                                 uint64_t i)
{
    static const char *const names[] = {"split.no", "split.count", "split.tensors.count"};
    const uint64_t numbers[] = {shard->index, shard->count, model->n_tensors};
    struct gguf_key key = {.name = {names[i], strlen(names[i])}};

    key.value.type = i < 2 ? GGUF_UINT16 : GGUF_INT32;
    key.value.u64 = numbers[i];
    return key;
}

/* Return the number of keys that the file has after the model's keys. */
static uint64_t n_added(const struct file *file)
{
    const uint64_t n = file->part->export.n_added;

    return file->shard ? N_SPLIT_KEYS + (file->shard->index == 0 ? n : 0) : n;
}

/* Return one of them: in a shard, the first three are about the split. */
static struct gguf_key added_key(const struct file *file, uint64_t i)
{
    if (file->shard && i < N_SPLIT_KEYS)
        return split_key(file->part->model, file->shard, i);
    return file->part->export.added[i - (file->shard ? N_SPLIT_KEYS : 0)];
}

static void write_counts(const struct file *file, struct fs_sink *sink)
{
    const struct gguf_model *model = file->part->model;
    const struct fs_shard *shard = file->shard;
    uint64_t n_keys = n_added(file);

    for (uint64_t i = 0; i < model->n_keys; i++)
        n_keys += is_written(model, shard, &model->keys[i]);
    fs_sink_literal(sink, "GGUF");
    fs_gguf_number(sink, 3, sizeof(uint32_t));
    fs_gguf_number(sink, shard ? shard->n_tensors : model->n_tensors, sizeof(uint64_t));
    fs_gguf_number(sink, n_keys, sizeof(uint64_t));
}

static void write_key(const struct file *file, const struct gguf_key *key, struct fs_sink *sink)
{
    const struct gguf_value value = fs_export_value(file->part->model, &file->part->export, key);

    fs_gguf_string(sink, key->name);
    fs_gguf_number(sink, value.type, sizeof(uint32_t));
    fs_gguf_value(sink, &value);
}

/* Write the info of a tensor whose data begin at *offset, and move that past them. */
static void write_info(const struct fs_part *part, uint64_t index, uint64_t *offset,
                       struct fs_sink *sink)
{
    const enum fs_export_choice choice = part->export.choice;
    const struct gguf_tensor *tensor = &part->model->tensors[index];
    const struct dequant_type *type = fs_export_type(choice, tensor);
    const uint32_t n_dims = fs_export_dims(choice, tensor);
    uint64_t n_bytes;

    fs_gguf_string(sink, gguf_name_of(tensor));
    fs_gguf_number(sink, n_dims, sizeof(uint32_t));
    for (uint32_t i = 0; i < n_dims; i++)
        fs_gguf_number(sink, tensor->ne[i], sizeof(uint64_t));
    fs_gguf_number(sink, type ? type->id : tensor->type_id, sizeof(uint32_t));
    fs_gguf_number(sink, *offset, sizeof(uint64_t));
    if (fs_export_bytes(choice, tensor, &n_bytes) < 0 ||
        __builtin_add_overflow(*offset, n_bytes, offset) ||
        __builtin_add_overflow(*offset, padding_at(part->model, *offset), offset))
        fs_sink_fail(sink, -EOVERFLOW);
}

/* Write the counts, the model's keys, added keys, and the infos of the tensors. */
static void write_header(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct file *file = subject;
    const struct gguf_model *model = file->part->model;
    const struct fs_shard *shard = file->shard;
    const uint64_t first = shard ? shard->first_tensor : 0;
    const uint64_t end = shard ? first + shard->n_tensors : model->n_tensors;
    uint64_t offset = 0;

    write_counts(file, sink);
    for (uint64_t i = 0; i < model->n_keys && sink->error == 0; i++) {
        if (is_written(model, shard, &model->keys[i]))
            write_key(file, &model->keys[i], sink);
    }
    for (uint64_t i = 0; i < n_added(file); i++) {
        const struct gguf_key key = added_key(file, i);

        write_key(file, &key, sink);
    }
    for (uint64_t i = first; i < end && sink->error == 0; i++)
        write_info(file->part, i, &offset, sink);
}

/* ---- the data ---- */

/* ggml expects padding after the last tensor, too. */
static int add_padding(struct fs_image *image)
{
    return fs_image_add_zeros(image, padding_at(image->model, image->size_bytes));
}

static int add_data(const struct fs_part *part, uint64_t index, struct fs_image *image)
{
    const struct gguf_tensor *tensor = &part->model->tensors[index];
    const struct dequant_type *type = fs_export_type(part->export.choice, tensor);
    const int result = type ? fs_image_add_elements(image, tensor, type)
                            : fs_image_add_source(image, &image->model->files[tensor->file_index],
                                                  tensor->file_offset, tensor->extent_bytes);

    return result < 0 ? result : add_padding(image);
}

const char *fs_model_gguf_obstacle(const struct gguf_model *model)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        if (!tensor->type && tensor->big_endian)
            return "it has big-endian tensors of unknown type";
        if (!tensor->type && model->files[tensor->file_index].source.is_growing)
            return "it is not complete, and has tensors of unknown type";
        /* The type has a decoder, but the file's block layout is unknown. */
        if (tensor->type && !dequant_is_decodable(tensor->type) && tensor->type->era != DEQUANT_ERA)
            return "its file does not say how its blocks are laid out; -o era=0, 1 or 2 does";
    }
    return NULL;
}

/* Define the condition of a part's file. */
#define DEFINE_APPLIES(name, id)                                                                   \
    bool fs_##name##_gguf_applies(const struct fs_tree *tree, const void *subject)                 \
    {                                                                                              \
        const struct gguf_model *model = tree->facts->parts[id].model;                             \
                                                                                                   \
        (void)subject;                                                                             \
        return model && !fs_model_gguf_obstacle(model);                                            \
    }

DEFINE_APPLIES(model, FS_PART_MODEL)
DEFINE_APPLIES(mmproj, FS_PART_PROJECTOR)
DEFINE_APPLIES(original, FS_PART_ORIGINAL)
DEFINE_APPLIES(ollama, FS_PART_OLLAMA)

int fs_model_gguf_build(const struct fs_tree *tree, const struct fs_node *node,
                        const struct fs_interrupt *interrupt, struct fs_image *image)
{
    const struct file made = {&tree->facts->parts[node->view->part], node->subject};
    const struct gguf_model *model = made.part->model;
    const struct gguf_file *file = &model->files[0];
    const struct fs_shard *shard = made.shard;
    const uint64_t first = shard ? shard->first_tensor : 0;
    const uint64_t end = shard ? first + shard->n_tensors : model->n_tensors;
    int result;

    image->model = model;
    /* The final size of a growing file is unknown, but the end of its last tensor is known. */
    if (!shard && model->n_files == 1 && model->is_current && !file->source.is_growing &&
        !made.part->export.is_changed)
        return fs_image_add_source(image, file, file->source.start_offset,
                                   file->source.end_offset - file->source.start_offset);
    result = fs_image_add_text(image, write_header, tree, &made, interrupt);
    if (result == 0)
        result = add_padding(image);
    for (uint64_t i = first; result == 0 && i < end; i++)
        result = add_data(made.part, i, image);
    return result;
}

bool fs_model_unsupported_applies(const struct fs_tree *tree, const void *subject)
{
    return tree->facts->translation.refusal;
}

void fs_model_unsupported_write(const struct fs_tree *tree, const void *subject,
                                struct fs_sink *sink)
{
    fs_sink_print(sink, "%s\n", tree->facts->translation.refusal);
}
