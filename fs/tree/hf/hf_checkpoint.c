#include "fs/tree/hf/hf_checkpoint.h"

#include "fs/tree/gguf_bytes.h"
#include "fs/tree/hf/tokenizer_json.h"
#include "fs/tree/json.h"
#include "fs/tree/safetensors.h"
#include "fs/tree/tree.h"
#include "gguf/support/grow.h"
#include "gguf/support/rotation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtype_names[] = {
    [FS_F32] = "float32", [FS_F16] = "float16", [FS_BF16] = "bfloat16"};

/* Return the format of most elements. */
static enum fs_format main_format(const struct fs_tree *tree)
{
    const struct gguf_model *model = tree->model;
    double n_elements[] = {[FS_F32] = 0, [FS_F16] = 0, [FS_BF16] = 0};
    enum fs_format most = FS_F32;

    for (uint64_t i = 0; i < model->n_tensors; i++)
        n_elements[fs_dtype_of(tree, &model->tensors[i])] += (double)model->tensors[i].n_elements;
    for (enum fs_format format = FS_F32; format <= FS_BF16; format++) {
        if (n_elements[format] > n_elements[most])
            most = format;
    }
    return most;
}

static enum fs_format format_of(const struct fs_tree *tree, const struct fs_hf_tensor *tensor)
{
    return tensor->tensor ? fs_dtype_of(tree, tensor->tensor) : FS_F32;
}

static void write_config(const struct fs_tree *tree, struct fs_sink *sink, char problem[256])
{
    struct fs_hf_config config = {.hf = &tree->hf->hf, .factors = &tree->hf->factors, .sink = sink};

    fs_hf_write_config(&config, tree->hf->row, dtype_names[main_format(tree)]);
    if (problem)
        memcpy(problem, config.problem, sizeof config.problem);
}

/* ---- the plan ---- */

/* Get the size of a tensor of the checkpoint, which has been checked. */
static int get_bytes(const struct fs_tree *tree, const struct fs_hf_tensor *tensor,
                     struct fs_hf_arranged *arranged, uint64_t *n_bytes)
{
    *n_bytes = fs_format_bytes(format_of(tree, tensor));
    if (fs_hf_tensor_arrange(&tree->hf->hf, tensor, 0, arranged) < 0)
        return -EINVAL;
    for (unsigned i = 0; i < arranged->n_dims; i++) {
        if (__builtin_mul_overflow(*n_bytes, arranged->shape[i], n_bytes))
            return -EOVERFLOW;
    }
    return 0;
}

/*
 * Move tensors of wider numbers to the front, so that all lie at multiples of their numbers' size
 * without gaps. Returns 0 or -ENOMEM.
 */
static int sort_by_width(const struct fs_tree *tree)
{
    struct fs_hf_tensors *tensors = &tree->hf->tensors;
    struct fs_hf_tensor *sorted = malloc((tensors->count + 1) * sizeof *sorted);
    size_t n = 0;

    if (!sorted)
        return -ENOMEM;
    for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
        for (size_t i = 0; i < tensors->count; i++) {
            if ((format_of(tree, &tensors->list[i]) != FS_F32) == is_narrow)
                sorted[n++] = tensors->list[i];
        }
    }
    free(tensors->list);
    tensors->list = sorted;
    return 0;
}

static int plan_shards(const struct fs_tree *tree, uint64_t shard_bytes)
{
    struct fs_hf_checkpoint *checkpoint = tree->hf;
    size_t room = 0;

    for (size_t i = 0; i < checkpoint->tensors.count; i++) {
        struct fs_hf_shard *shard =
            checkpoint->n_shards > 0 ? &checkpoint->shards[checkpoint->n_shards - 1] : NULL;
        struct fs_hf_arranged arranged;
        uint64_t n_bytes, sum;
        const int result = get_bytes(tree, &checkpoint->tensors.list[i], &arranged, &n_bytes);

        if (result < 0)
            return result;
        if (!shard || __builtin_add_overflow(shard->data_bytes, n_bytes, &sum) ||
            sum > shard_bytes) {
            struct fs_hf_shard *grown = gguf_grow(checkpoint->shards, &room,
                                                  (size_t)checkpoint->n_shards + 1, sizeof *grown);

            if (!grown)
                return -ENOMEM;
            checkpoint->shards = grown;
            shard = &grown[checkpoint->n_shards];
            *shard = (struct fs_hf_shard){.index = checkpoint->n_shards++, .first = i};
        }
        shard->data_bytes += n_bytes;
        shard->end = i + 1;
        if (__builtin_add_overflow(checkpoint->data_bytes, n_bytes, &checkpoint->data_bytes))
            return -EOVERFLOW;
    }
    return 0;
}

static int add_obstacle(struct fs_hf_checkpoint *checkpoint, const char *text)
{
    const int result = gguf_buffer_add_string(&checkpoint->obstacles, text);

    return result < 0 ? result : gguf_buffer_add_string(&checkpoint->obstacles, "\n");
}

static int plan(const struct fs_tree *tree, uint64_t shard_bytes)
{
    struct fs_hf_checkpoint *checkpoint = tree->hf;
    struct fs_sink sink = fs_sink_that_counts(0);
    char text[512], problem[256];
    int result = fs_hf_model_make(tree->model, &checkpoint->hf);

    if (result < 0)
        return result;
    fs_hf_factors_find(&checkpoint->hf, &checkpoint->factors);
    checkpoint->row = fs_hf_row_of(&checkpoint->hf);
    if (!checkpoint->row) {
        snprintf(text, sizeof text, "The architecture %s of this model is not supported.",
                 gguf_quote(checkpoint->hf.architecture).text);
        return add_obstacle(checkpoint, checkpoint->hf.architecture.length_bytes > 0
                                            ? text
                                            : "The model has no key \"general.architecture\".");
    }
    if (gguf_find_key_group(tree->model, GGUF_ROTATION_KEYS))
        return add_obstacle(checkpoint, "The weights are stored rotated (" GGUF_ROTATION_KEYS
                                        "* in the metadata), which transformers does not undo.");
    result = fs_hf_tensors_find(&checkpoint->hf, checkpoint->row, &checkpoint->tensors,
                                &checkpoint->unused, &checkpoint->obstacles);
    if (result == 0)
        result = sort_by_width(tree);
    if (result == 0)
        result = plan_shards(tree, shard_bytes);
    if (result < 0)
        return result;
    if (checkpoint->obstacles.length > 0)
        return 0;
    result = fs_hf_factors_read(&checkpoint->hf, &checkpoint->factors);
    write_config(tree, &sink, problem);
    /* Tensor data may be missing still: config.json has its size now, and its text later. */
    if (result < 0)
        checkpoint->config_bytes = sink.position + fs_hf_factors_text_bytes(&checkpoint->factors);
    if (problem[0] == '\0')
        return 0;
    snprintf(text, sizeof text, "The model does not fit: %s.", problem);
    return add_obstacle(checkpoint, text);
}

int fs_hf_make(struct fs_tree *tree, uint64_t shard_bytes)
{
    tree->hf = calloc(1, sizeof *tree->hf);
    if (!tree->hf)
        return -ENOMEM;
    fs_hf_factors_begin(&tree->hf->factors);
    return plan(tree, shard_bytes > 0 ? shard_bytes : FS_HF_SHARD_BYTES);
}

void fs_hf_free(struct fs_hf_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    fs_hf_factors_end(&checkpoint->factors);
    fs_hf_model_free(&checkpoint->hf);
    fs_hf_tensors_free(&checkpoint->tensors);
    gguf_buffer_free(&checkpoint->unused);
    gguf_buffer_free(&checkpoint->obstacles);
    free(checkpoint->shards);
    free(checkpoint);
}

/* ---- the files ---- */

void fs_hf_shard_name(const struct fs_hf_checkpoint *checkpoint, const struct fs_hf_shard *shard,
                      const char *suffix, char name[FS_NAME_BYTES])
{
    if (checkpoint->n_shards == 1)
        snprintf(name, FS_NAME_BYTES, "model.safetensors%s", suffix);
    else
        snprintf(name, FS_NAME_BYTES, "model-%05u-of-%05u.safetensors%s", shard->index + 1,
                 checkpoint->n_shards, suffix);
}

bool fs_hf_is_supported(const struct fs_tree *tree, const void *subject)
{
    (void)subject;
    return tree->hf->obstacles.length == 0;
}

bool fs_hf_is_incomplete(const struct fs_tree *tree, const void *subject)
{
    return !fs_hf_is_supported(tree, subject) || fs_tokenizer_obstacle(tree);
}

bool fs_hf_has_unused(const struct fs_tree *tree, const void *subject)
{
    return fs_hf_is_supported(tree, subject) && tree->hf->unused.length > 0;
}

bool fs_hf_has_index(const struct fs_tree *tree, const void *subject)
{
    return fs_hf_is_supported(tree, subject) && tree->hf->n_shards > 1;
}

int fs_hf_config_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                       struct fs_sink *sink)
{
    const int result = fs_hf_factors_read(&tree->hf->hf, &tree->hf->factors);

    (void)subject;
    (void)place;
    if (result == 0)
        write_config(tree, sink, NULL);
    else if (sink->out)
        return result;
    else
        sink->position = tree->hf->config_bytes; /* only the size is wanted */
    while (sink->position < tree->hf->config_bytes)
        fs_sink_literal(sink, " ");
    return 0;
}

int fs_hf_generation_config_write(const struct fs_tree *tree, const void *subject,
                                  struct fs_place *place, struct fs_sink *sink)
{
    (void)subject;
    (void)place;
    fs_hf_write_generation_config(&(struct fs_hf_config){.hf = &tree->hf->hf, .sink = sink});
    return 0;
}

int fs_hf_unused_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                       struct fs_sink *sink)
{
    (void)subject;
    (void)place;
    fs_sink_literal(sink, "The checkpoint does not have these tensors of the model, because ");
    fs_sink_literal(sink, tree->hf->row->class_name);
    fs_sink_literal(sink, " of transformers has no place for them:\n");
    fs_sink_literal(sink, tree->hf->unused.bytes);
    return 0;
}

int fs_hf_unsupported_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                            struct fs_sink *sink)
{
    (void)subject;
    (void)place;
    if (!fs_hf_is_supported(tree, NULL)) {
        fs_sink_literal(sink, "hf/ is no checkpoint for Hugging Face's transformers:\n");
        fs_sink_literal(sink, tree->hf->obstacles.bytes);
    }
    if (fs_tokenizer_obstacle(tree)) {
        fs_sink_literal(sink, "hf/ has no tokenizer for Hugging Face's tokenizers:\n");
        fs_sink_literal(sink, fs_tokenizer_obstacle(tree));
        fs_sink_literal(sink, "\n");
    }
    return 0;
}

int fs_hf_index_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                      struct fs_sink *sink)
{
    const struct fs_hf_checkpoint *checkpoint = tree->hf;
    const struct fs_hf_shard *shard = &checkpoint->shards[place->offset];
    char tensor_name[FS_HF_NAME_BYTES], shard_name[FS_NAME_BYTES];

    (void)subject;
    if (place->item == 0)
        fs_sink_print(sink, "{\n\"metadata\": {\"total_size\": %" PRIu64 "},\n\"weight_map\": {\n",
                      checkpoint->data_bytes);
    fs_hf_tensor_write_name(&checkpoint->tensors.list[place->item], tensor_name);
    fs_hf_shard_name(checkpoint, shard, "", shard_name);
    place->item++;
    if (place->item == shard->end)
        place->offset++;
    fs_sink_print(sink, "\"%s\": \"%s\"%s", tensor_name, shard_name,
                  place->item < checkpoint->tensors.count ? ",\n" : "\n}\n}\n");
    return place->item < checkpoint->tensors.count;
}

/* An fs_safetensors_list of a shard. */
static int get_entry(const struct fs_tree *tree, const void *subject, uint64_t index,
                     struct fs_safetensor *entry)
{
    const struct fs_hf_shard *shard = subject;
    const struct fs_hf_tensor *tensor = &tree->hf->tensors.list[shard->first + index];
    struct fs_hf_arranged arranged;
    int result;

    if (index == shard->end - shard->first)
        return 0;
    result = get_bytes(tree, tensor, &arranged, &entry->size_bytes);
    if (result < 0)
        return result;
    fs_hf_tensor_write_name(tensor, entry->made_name);
    entry->name = (struct gguf_string){entry->made_name, strlen(entry->made_name)};
    entry->dtype = fs_format_name(format_of(tree, tensor));
    entry->n_dims = arranged.n_dims;
    memcpy(entry->shape, arranged.shape, sizeof arranged.shape);
    return 1;
}

static int write_header(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                        struct fs_sink *sink)
{
    return fs_safetensors_write(get_entry, tree, subject, place, sink);
}

/* Write the number from a key that is a tensor of the checkpoint, as a little-endian float32. */
static int write_number(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                        struct fs_sink *sink)
{
    const struct fs_hf_tensor *tensor = subject;
    const float number =
        (float)fs_hf_float_at(&tree->hf->hf, tensor->rule->gguf, tensor->match.layer, 0);
    uint32_t bits;

    (void)place;
    memcpy(&bits, &number, sizeof bits);
    fs_gguf_number(sink, bits, sizeof bits);
    return 0;
}

int fs_hf_weights_build(const struct fs_tree *tree, const void *subject,
                        const struct fs_interrupt *interrupt, struct fs_image *image)
{
    const struct fs_hf_shard *shard = subject;
    int result = fs_safetensors_add_header(image, write_header, tree, subject, interrupt);

    for (size_t i = shard->first; result == 0 && i < shard->end; i++) {
        const struct fs_hf_tensor *tensor = &tree->hf->tensors.list[i];
        const enum fs_format format = format_of(tree, tensor);
        struct fs_hf_arranged arranged = {.n_pieces = 1};

        if (!tensor->tensor) {
            result = fs_image_add_text(image, write_number, tree, tensor, interrupt);
            continue;
        }
        for (uint64_t piece = 0; result == 0 && piece < arranged.n_pieces; piece++) {
            result = fs_hf_tensor_arrange(&tree->hf->hf, tensor, piece, &arranged);
            if (result == 0)
                result = fs_image_add_arranged(image, &arranged.piece, format);
        }
    }
    return result;
}
