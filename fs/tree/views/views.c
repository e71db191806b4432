#include "fs/tree/views/view_files.h"

#include "fs/tree/facts/chat_template.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/hf/hf_checkpoint.h"
#include "fs/tree/hf/hf_tokenizer.h"
#include "fs/tree/views/placeholders.h"
#include "fs/tree/data/tensor_segments.h"
#include "gguf/models/tensor_names.h"

/* ---- the data as they are stored ---- */

static bool has_known_type(const struct fs_tree *tree, const void *subject)
{
    const struct gguf_tensor *tensor = subject;

    return tensor->type;
}

static int size_of_raw(const struct fs_tree *tree, const struct fs_node *node, uint64_t *size_bytes)
{
    *size_bytes = ((const struct gguf_tensor *)node->subject)->size_bytes;
    return 0;
}

static int build_raw(const struct fs_tree *tree, const struct fs_node *node,
                     const struct fs_interrupt *interrupt, struct fs_image *image)
{
    (void)tree, (void)interrupt;
    return fs_image_add_data(image, node->subject);
}

/* ---- the elements as numbers ---- */

static bool has_decoder(const struct fs_tree *tree, const void *subject)
{
    const struct gguf_tensor *tensor = subject;

    return tensor->type && dequant_is_decodable(tensor->type);
}

static int size_of_elements(const struct fs_tree *tree, const struct fs_node *node,
                            uint64_t *size_bytes)
{
    return gguf_elements_size(node->subject, dequant_type_by_id(node->view->element_type),
                              size_bytes);
}

static int build_elements(const struct fs_tree *tree, const struct fs_node *node,
                          const struct fs_interrupt *interrupt, struct fs_image *image)
{
    (void)tree, (void)interrupt;
    return fs_image_add_elements(image, node->subject,
                                 dequant_type_by_id(node->view->element_type));
}

/* ---- names that GGUF gives to tensors of old files ---- */

static bool has_gguf_name(const struct fs_tree *tree, const void *subject)
{
    const struct gguf_tensor *tensor = subject;

    return tensor->gguf_name.length_bytes > 0;
}

static bool has_layer(const struct fs_tree *tree, const void *subject)
{
    struct gguf_string layer, rest;

    return gguf_tensor_name_split(gguf_name_of(subject), &layer, &rest);
}

/* ---- files beside the model ---- */

static int size_of_extra(const struct fs_tree *tree, const struct fs_node *node,
                         uint64_t *size_bytes)
{
    *size_bytes = ((const struct fs_extra *)node->subject)->file.source.size_bytes;
    return 0;
}

static int build_extra(const struct fs_tree *tree, const struct fs_node *node,
                       const struct fs_interrupt *interrupt, struct fs_image *image)
{
    const struct fs_extra *extra = node->subject;

    (void)tree, (void)interrupt;
    return fs_image_add_source(image, &extra->file, 0, extra->file.source.size_bytes);
}

/* Path and condition, then the contents. */
static const struct fs_view views[] = {
    {"summary.txt", .write = fs_summary_write},
    {"metadata.json", .write = fs_metadata_json_write},
    {"tensors.json", .write = fs_tensor_infos_write},
    {"tensors.tsv", .write = fs_tensors_tsv_write},
    {"model.gguf", fs_model_gguf_applies, .build = fs_model_gguf_build, .is_summed = true},
    {"mmproj.gguf", fs_mmproj_gguf_applies, .build = fs_model_gguf_build, .part = FS_PART_PROJECTOR,
     .is_summed = true},
    {"original.gguf", fs_original_gguf_applies, .build = fs_model_gguf_build,
     .part = FS_PART_ORIGINAL, .is_summed = true},
    {"ollama.gguf", fs_ollama_gguf_applies, .build = fs_model_gguf_build, .part = FS_PART_OLLAMA,
     .is_summed = true},
    {"model.unsupported.txt", fs_model_unsupported_applies, .write = fs_model_unsupported_write},
    {"SHA256SUMS", .build = fs_checksums_build},
    {"model.safetensors", fs_safetensors_applies, .build = fs_safetensors_build},
    {"split/<shard>.gguf", .build = fs_model_gguf_build},
    {"<extra>", .build = build_extra, .size = size_of_extra},

    {"hf/config.json", fs_hf_is_supported, .write = fs_hf_config_write},
    {"hf/generation_config.json", fs_hf_is_supported, .write = fs_hf_generation_config_write},
    {"hf/<weights>", .build = fs_hf_weights_build},
    {"hf/model.safetensors.index.json", fs_hf_has_index, .write = fs_hf_index_write},
    {"hf/unused_tensors.txt", fs_hf_has_unused, .write = fs_hf_unused_write},
    {"hf.unsupported.txt", fs_hf_is_incomplete, .write = fs_hf_unsupported_write},

    {.path = "metadata"},
    {"metadata/<key>.json", .write = fs_value_json_write},

    {.path = "tensors"},
    {.path = FS_TENSOR_FOLDER},
    /* in the order of their names, so that they need no sorting */
    {FS_TENSOR_FOLDER "/bf16", has_decoder, .build = build_elements, .size = size_of_elements,
     .element_type = DEQUANT_BF16},
    {FS_TENSOR_FOLDER "/f16", has_decoder, .build = build_elements, .size = size_of_elements,
     .element_type = DEQUANT_F16},
    {FS_TENSOR_FOLDER "/f16.npy", has_decoder, .build = fs_npy_build, .size = fs_npy_size,
     .element_type = DEQUANT_F16},
    {FS_TENSOR_FOLDER "/f32", has_decoder, .build = build_elements, .size = size_of_elements,
     .element_type = DEQUANT_F32},
    {FS_TENSOR_FOLDER "/f32.npy", has_decoder, .build = fs_npy_build, .size = fs_npy_size,
     .element_type = DEQUANT_F32},
    {FS_TENSOR_FOLDER "/info", .write = fs_tensor_info_write},
    {FS_TENSOR_FOLDER "/raw", has_known_type, .build = build_raw, .size = size_of_raw,
     .is_summed = true},
    {FS_TENSOR_FOLDER "/stats.json", has_decoder, .build = fs_stats_json_build,
     .size = fs_stats_json_size},
    {"layers/<layer>/<rest>", has_layer, .target = "../../tensors/<tensor>"},
    {"tensors/<gguf_name>", has_gguf_name, .target = "<tensor>"},

    {"tokenizer/tokens.txt", fs_tokens_text_applies, .write = fs_tokens_text_write},
    {"tokenizer/scores.txt", fs_scores_text_applies, .write = fs_scores_text_write},
    {"tokenizer/types.txt", fs_types_text_applies, .write = fs_types_text_write},
    {"tokenizer/merges.txt", fs_merges_text_applies, .write = fs_merges_text_write},
    {"tokenizer/chat_template.jinja", fs_chat_template_applies, .write = fs_chat_template_write},
    {"tokenizer/<chat_template>.jinja", fs_named_template_applies, .write = fs_chat_template_write},

    {"hf/tokenizer.json", fs_tokenizer_applies, .write = fs_tokenizer_json_write},
    {"hf/tokenizer_config.json", fs_tokenizer_applies, .write = fs_tokenizer_config_write},
    {"hf/tokenizer.model", fs_sentencepiece_applies, .write = fs_sentencepiece_write},
    {"hf/special_tokens_map.json", fs_tokenizer_applies, .write = fs_special_tokens_map_write},
    {"hf/chat_template.jinja", fs_tokenizer_template_applies, .write = fs_chat_template_write},
    {"hf/additional_chat_templates/<template_name>.jinja", fs_tokenizer_template_applies,
     .write = fs_chat_template_write},
};

const struct fs_table fs_views = {
    .views = views,
    .n_views = sizeof views / sizeof *views,
    .placeholders = fs_placeholders,
    .n_placeholders = FS_N_PLACEHOLDERS,
    .subjects = fs_subjects,
};
