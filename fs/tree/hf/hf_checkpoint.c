#include "fs/tree/hf/hf_checkpoint.h"

#include "fs/tree/hf/hf_config.h"
#include "fs/tree/hf/hf_tokenizer.h"
#include "fs/tree/output/value_writer.h"
#include "fs/tree/output/json.h"
#include "fs/tree/data/safetensors_header.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/data/tensor_segments.h"
#include "fs/tree/core/tree_core.h"
#include "gguf/models/key_lists.h"
#include "gguf/support/arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the name in config.json of the type that most elements have. */
static const char *main_dtype(const struct fs_tree *tree)
{
    static const struct {
        uint32_t id;
        const char *name;
    } dtypes[] = {{DEQUANT_F32, "float32"}, {DEQUANT_F16, "float16"}, {DEQUANT_BF16, "bfloat16"}};
    double n_elements[sizeof dtypes / sizeof *dtypes] = {0};
    size_t most = 0;

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        for (uint64_t j = 0; j < tree->model->n_tensors; j++) {
            if (fs_dtype_of(tree, &tree->model->tensors[j])->id == dtypes[i].id)
                n_elements[i] += (double)tree->model->tensors[j].n_elements;
        }
        if (n_elements[i] > n_elements[most])
            most = i;
    }
    return dtypes[most].name;
}

static const struct dequant_type *dtype_of(const struct fs_tree *tree,
                                           const struct fs_hf_tensor *tensor)
{
    return tensor->tensor ? fs_dtype_of(tree, tensor->tensor) : dequant_type_by_id(DEQUANT_F32);
}

/* Write config.json, and return the writer's state, for its problem. */
static struct fs_hf_config write_config(const struct fs_tree *tree, struct fs_sink *sink)
{
    struct fs_hf_config config = {
        .hf = &tree->facts->hf->hf, .factors = &tree->facts->hf->factors, .sink = sink};

    fs_hf_write_config(&config, tree->facts->hf->row, main_dtype(tree));
    return config;
}

/* ---- the plan ---- */

/* Get the size of a tensor of the checkpoint, which has been checked. */
static int get_bytes(const struct fs_tree *tree, const struct fs_hf_tensor *tensor,
                     struct fs_hf_arranged *arranged, uint64_t *n_bytes)
{
    *n_bytes = dtype_of(tree, tensor)->block_bytes;
    if (fs_hf_tensor_arrange(&tree->facts->hf->hf, tensor, 0, arranged) < 0)
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
    struct fs_hf_tensors *tensors = &tree->facts->hf->tensors;
    struct fs_hf_tensor *sorted = malloc((tensors->count + 1) * sizeof *sorted);
    size_t n = 0;

    if (!sorted)
        return -ENOMEM;
    for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
        for (size_t i = 0; i < tensors->count; i++) {
            if ((dtype_of(tree, &tensors->list[i])->id != DEQUANT_F32) == is_narrow)
                sorted[n++] = tensors->list[i];
        }
    }
    free(tensors->list);
    tensors->list = sorted;
    return 0;
}

static int plan_shards(const struct fs_tree *tree, uint64_t shard_bytes)
{
    struct fs_hf_checkpoint *checkpoint = tree->facts->hf;
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
            if (gguf_reserve(&checkpoint->shards, &room, (size_t)checkpoint->n_shards + 1,
                             sizeof *shard) < 0)
                return -ENOMEM;
            shard = &checkpoint->shards[checkpoint->n_shards];
            *shard = (struct fs_hf_shard){.index = checkpoint->n_shards++, .first = i};
        }
        shard->data_bytes += n_bytes;
        shard->end = i + 1;
        if (__builtin_add_overflow(checkpoint->data_bytes, n_bytes, &checkpoint->data_bytes))
            return -EOVERFLOW;
    }
    return 0;
}

static int plan(const struct fs_tree *tree, uint64_t shard_bytes)
{
    struct fs_hf_checkpoint *checkpoint = tree->facts->hf;
    struct fs_hf_lines *obstacles = &checkpoint->obstacles;
    struct fs_sink sink = fs_sink_that_counts();
    struct fs_hf_config config;
    int result = fs_hf_model_make(tree->model, &checkpoint->hf);

    if (result < 0)
        return result;
    fs_hf_factors_find(&checkpoint->hf, &checkpoint->factors);
    checkpoint->row = fs_hf_row_of(&checkpoint->hf);
    if (checkpoint->hf.architecture.length_bytes == 0)
        fs_hf_add_line(obstacles, "The model has no key \"general.architecture\".\n");
    else if (!checkpoint->row)
        fs_hf_add_line(obstacles, "The architecture %s of this model is not supported.\n",
                       gguf_quote(checkpoint->hf.architecture).text);
    else if (gguf_find_key_group(tree->model, GGUF_ROTATION_KEYS))
        fs_hf_add_line(obstacles, "The weights are stored rotated (" GGUF_ROTATION_KEYS
                                  "* in the metadata), which transformers does not undo.\n");
    if (obstacles->text.length > 0 || obstacles->error < 0)
        return obstacles->error;
    checkpoint->hf.is_reference = checkpoint->row->has_layout &&
                                  fs_hf_text_is(&checkpoint->hf, "tensor_data_layout", "reference");
    result = fs_hf_tensors_find(&checkpoint->hf, checkpoint->row, &checkpoint->tensors,
                                &checkpoint->unused, obstacles);
    if (result < 0 || obstacles->text.length > 0)
        return result;
    result = sort_by_width(tree);
    if (result == 0)
        result = plan_shards(tree, shard_bytes);
    if (result < 0)
        return result;
    result = fs_hf_factors_read(&checkpoint->hf, &checkpoint->factors);
    config = write_config(tree, &sink);
    /* Tensor data may be missing still: config.json has its size now, and its text later. */
    if (result < 0)
        checkpoint->config_bytes = sink.position + fs_hf_factors_text_bytes(&checkpoint->factors);
    if (config.problem[0] != '\0')
        fs_hf_add_line(obstacles, "The model does not fit: %s.\n", config.problem);
    return obstacles->error;
}

int fs_hf_make(const struct fs_tree *tree, uint64_t shard_bytes, struct fs_hf_checkpoint **made)
{
    *made = calloc(1, sizeof **made);
    if (!*made)
        return -ENOMEM;
    pthread_mutex_init(&(*made)->factors.lock, NULL);
    return plan(tree, shard_bytes > 0 ? shard_bytes : FS_HF_SHARD_BYTES);
}

void fs_hf_free(struct fs_hf_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    pthread_mutex_destroy(&checkpoint->factors.lock);
    fs_hf_model_free(&checkpoint->hf);
    fs_hf_tensors_free(&checkpoint->tensors);
    gguf_buffer_free(&checkpoint->unused.text);
    gguf_buffer_free(&checkpoint->obstacles.text);
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
    return tree->facts->hf->obstacles.text.length == 0;
}

bool fs_hf_is_incomplete(const struct fs_tree *tree, const void *subject)
{
    return !fs_hf_is_supported(tree, subject) || fs_tokenizer_obstacle(tree);
}

bool fs_hf_has_unused(const struct fs_tree *tree, const void *subject)
{
    return fs_hf_is_supported(tree, subject) && tree->facts->hf->unused.text.length > 0;
}

bool fs_hf_has_index(const struct fs_tree *tree, const void *subject)
{
    return fs_hf_is_supported(tree, subject) && tree->facts->hf->n_shards > 1;
}

void fs_hf_config_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const int result = fs_hf_factors_read(&tree->facts->hf->hf, &tree->facts->hf->factors);

    if (result == 0)
        write_config(tree, sink);
    else if (!fs_sink_only_counts(sink))
        fs_sink_fail(sink, result);
    while (sink->position < tree->facts->hf->config_bytes)
        fs_sink_literal(sink, " ");
}

void fs_hf_generation_config_write(const struct fs_tree *tree, const void *subject,
                                   struct fs_sink *sink)
{
    fs_hf_write_generation_config(&(struct fs_hf_config){.hf = &tree->facts->hf->hf, .sink = sink});
}

void fs_hf_unused_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    fs_sink_literal(sink, "The checkpoint does not have these tensors of the model, because ");
    fs_sink_literal(sink, tree->facts->hf->row->class_name);
    fs_sink_literal(sink, " of transformers has no place for them:\n");
    fs_sink_literal(sink, tree->facts->hf->unused.text.bytes);
}

void fs_hf_unsupported_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    if (!fs_hf_is_supported(tree, NULL)) {
        fs_sink_literal(sink, "hf/ is not a checkpoint for Hugging Face's transformers:\n");
        fs_sink_literal(sink, tree->facts->hf->obstacles.text.bytes);
    }
    if (fs_tokenizer_obstacle(tree)) {
        fs_sink_literal(sink, "hf/ has no tokenizer for Hugging Face's tokenizers:\n");
        fs_sink_literal(sink, fs_tokenizer_obstacle(tree));
        fs_sink_literal(sink, "\n");
    }
}

void fs_hf_index_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct fs_hf_checkpoint *checkpoint = tree->facts->hf;
    char tensor_name[GGUF_NAME_BYTES], shard_name[FS_NAME_BYTES];

    fs_sink_print(sink, "{\n\"metadata\": {\"total_size\": %" PRIu64 "},\n\"weight_map\": {\n",
                  checkpoint->data_bytes);
    for (uint32_t i = 0; i < checkpoint->n_shards; i++) {
        const struct fs_hf_shard *shard = &checkpoint->shards[i];

        fs_hf_shard_name(checkpoint, shard, "", shard_name);
        for (size_t j = shard->first; j < shard->end; j++) {
            fs_hf_tensor_write_name(&checkpoint->tensors.list[j], tensor_name);
            fs_sink_print(sink, "\"%s\": \"%s\"%s", tensor_name, shard_name,
                          j + 1 < checkpoint->tensors.count ? ",\n" : "\n}\n}\n");
        }
    }
}

/* An fs_safetensors_list of a shard. */
static int get_entry(const struct fs_tree *tree, const void *subject, uint64_t index,
                     struct fs_safetensor *entry)
{
    const struct fs_hf_shard *shard = subject;
    const struct fs_hf_tensor *tensor = &tree->facts->hf->tensors.list[shard->first + index];
    struct fs_hf_arranged arranged;
    int result;

    if (index == shard->end - shard->first)
        return 0;
    result = get_bytes(tree, tensor, &arranged, &entry->size_bytes);
    if (result < 0)
        return result;
    fs_hf_tensor_write_name(tensor, entry->made_name);
    entry->name = (struct gguf_string){entry->made_name, strlen(entry->made_name)};
    entry->dtype = dtype_of(tree, tensor)->name;
    entry->n_dims = arranged.n_dims;
    memcpy(entry->shape, arranged.shape, sizeof arranged.shape);
    return 1;
}

static void write_header(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    fs_safetensors_write(get_entry, tree, subject, sink);
}

/* Write the number from a key that is a tensor of the checkpoint, as a little-endian float32. */
static void write_number(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct fs_hf_tensor *tensor = subject;
    const float number =
        (float)fs_hf_float_at(&tree->facts->hf->hf, tensor->rule->name, tensor->match.layer, 0);
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    fs_gguf_number(sink, bits, sizeof bits);
}

int fs_hf_weights_build(const struct fs_tree *tree, const struct fs_node *node,
                        const struct fs_interrupt *interrupt, struct fs_image *image)
{
    const struct fs_hf_shard *shard = node->subject;
    int result = fs_safetensors_add_header(image, write_header, tree, shard, interrupt);

    for (size_t i = shard->first; result == 0 && i < shard->end; i++) {
        const struct fs_hf_tensor *tensor = &tree->facts->hf->tensors.list[i];
        const struct dequant_type *dtype = dtype_of(tree, tensor);
        struct fs_hf_arranged arranged = {.n_pieces = 1};

        if (!tensor->tensor) {
            result = fs_image_add_text(image, write_number, tree, tensor, interrupt);
            continue;
        }
        for (uint64_t piece = 0; result == 0 && piece < arranged.n_pieces; piece++) {
            result = fs_hf_tensor_arrange(&tree->facts->hf->hf, tensor, piece, &arranged);
            if (result == 0)
                result = fs_image_add_arranged(image, &arranged.piece, dtype);
        }
    }
    return result;
}
