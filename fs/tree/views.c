#include "fs/tree/views.h"

#include "fs/tree/model_gguf.h"

#include <errno.h>
#include <stdlib.h>

/* JSON of values and infos, as texts that are made when they are read. */

static int write_tensor_info(const struct gguf_model *model, const void *subject,
                             struct fs_text *text)
{
    return fs_json_tensor_info(text, model, subject);
}

static int add_info(struct fs_image *image, const struct gguf_tensor *tensor)
{
    struct fs_text text = {.capacity = fs_json_tensor_info_bytes(image->model, tensor)};
    int result = -ENOMEM;

    /* Written once to know its length. */
    text.data = malloc(text.capacity);
    if (text.data)
        result = fs_json_tensor_info(&text, image->model, tensor);
    free(text.data);
    if (result < 0)
        return result;
    return fs_image_add_text(image, write_tensor_info, tensor, text.length, text.capacity);
}

static int build_metadata(struct fs_image *image, const void *subject,
                          struct fs_value_cache *values)
{
    const struct gguf_model *model = image->model;
    int result = fs_image_add_literal(image, "{\n");

    (void)subject;
    for (uint64_t i = 0; result == 0 && i < model->n_keys; i++) {
        result = fs_image_add_json_string(image, model->keys[i].name);
        if (result == 0)
            result = fs_image_add_literal(image, ": ");
        if (result == 0)
            result = fs_value_cache_add(values, &model->keys[i], FS_AS_JSON, image);
        if (result == 0)
            result = fs_image_add_literal(image, i + 1 < model->n_keys ? ",\n" : "\n");
    }
    return result < 0 ? result : fs_image_add_literal(image, "}\n");
}

static int build_key(struct fs_image *image, const void *subject, struct fs_value_cache *values)
{
    int result = fs_value_cache_add(values, subject, FS_AS_JSON, image);

    return result < 0 ? result : fs_image_add_literal(image, "\n");
}

static int build_tensors(struct fs_image *image, const void *subject, struct fs_value_cache *values)
{
    const struct gguf_model *model = image->model;
    int result = fs_image_add_literal(image, "[\n");

    (void)subject;
    (void)values;
    for (uint64_t i = 0; result == 0 && i < model->n_tensors; i++) {
        result = add_info(image, &model->tensors[i]);
        if (result == 0)
            result = fs_image_add_literal(image, i + 1 < model->n_tensors ? ",\n" : "\n");
    }
    return result < 0 ? result : fs_image_add_literal(image, "]\n");
}

static int build_info(struct fs_image *image, const void *subject, struct fs_value_cache *values)
{
    int result = add_info(image, subject);

    (void)values;
    return result < 0 ? result : fs_image_add_literal(image, "\n");
}

static bool has_known_size(const struct gguf_model *model, const void *subject)
{
    const struct gguf_tensor *tensor = subject;

    (void)model;
    return tensor->type;
}

static int build_raw(struct fs_image *image, const void *subject, struct fs_value_cache *values)
{
    (void)values;
    return fs_image_add_data(image, subject);
}

static bool has_decoder(const struct gguf_model *model, const void *subject)
{
    const struct gguf_tensor *tensor = subject;

    (void)model;
    return tensor->type && dequant_is_decodable(tensor->type);
}

static int build_f32(struct fs_image *image, const void *subject, struct fs_value_cache *values)
{
    (void)values;
    return fs_image_add_values(image, subject);
}

static const struct fs_view views[] = {
    {FS_PER_MODEL, "metadata.json", NULL, build_metadata},
    {FS_PER_MODEL, "tensors.json", NULL, build_tensors},
    {FS_PER_MODEL, "model.gguf", fs_model_gguf_applies, fs_model_gguf_build},
    {FS_PER_SHARD, ".gguf", NULL, fs_model_gguf_build},
    {FS_PER_KEY, ".json", NULL, build_key},
    {FS_PER_TENSOR, "info", NULL, build_info},
    {FS_PER_TENSOR, "raw", has_known_size, build_raw},
    {FS_PER_TENSOR, "f32", has_decoder, build_f32},
};

size_t fs_view_count(void)
{
    return sizeof views / sizeof *views;
}

const struct fs_view *fs_view_at(size_t index)
{
    return &views[index];
}
