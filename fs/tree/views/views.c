#include "fs/tree/views/views.h"

#include "fs/tree/facts/chat_template.h"
#include "fs/tree/views/checksums.h"
#include "fs/tree/hf/hf_checkpoint.h"
#include "fs/tree/hf/sentencepiece_model.h"
#include "fs/tree/hf/tokenizer_json.h"
#include "fs/tree/views/histogram_svg.h"
#include "fs/tree/views/importance.h"
#include "fs/tree/views/metadata_json.h"
#include "fs/tree/views/model_gguf.h"
#include "fs/tree/views/npy.h"
#include "fs/tree/views/placeholders.h"
#include "fs/tree/views/safetensors.h"
#include "fs/tree/views/stats_json.h"
#include "fs/tree/views/summary.h"
#include "fs/tree/views/tensor_info.h"
#include "fs/tree/data/tensor_segments.h"
#include "fs/tree/views/tensors_tsv.h"
#include "fs/tree/views/tokenizer_text.h"
#include "gguf/models/tensor_names.h"

/* ---- the data as they are stored ---- */

static bool has_known_type(const struct fs_tree *tree, const void *subject)
{
    const struct gguf_tensor *tensor = subject;

    (void)tree;
    return tensor->type;
}

static int size_of_raw(const struct fs_tree *tree, const void *subject, uint64_t *size_bytes)
{
    const struct gguf_tensor *tensor = subject;

    (void)tree;
    *size_bytes = tensor->size_bytes;
    return 0;
}

static int build_raw(const struct fs_tree *tree, const void *subject,
                     const struct fs_interrupt *interrupt, struct fs_image *image)
{
    (void)tree;
    (void)interrupt;
    return fs_image_add_data(image, subject);
}

/* ---- the elements as numbers ---- */

static bool has_decoder(const struct fs_tree *tree, const void *subject)
{
    const struct gguf_tensor *tensor = subject;

    (void)tree;
    return tensor->type && dequant_is_decodable(tensor->type);
}

/* Define the size and the builder of a file with all elements in a type. */
#define DEFINE_ELEMENTS(name, type_id)                                                             \
    static int size_of_##name(const struct fs_tree *tree, const void *subject,                     \
                              uint64_t *size_bytes)                                                \
    {                                                                                              \
        (void)tree;                                                                                \
        return fs_elements_size(subject, dequant_type_by_id(type_id), size_bytes);                 \
    }                                                                                              \
    static int build_##name(const struct fs_tree *tree, const void *subject,                       \
                            const struct fs_interrupt *interrupt, struct fs_image *image)          \
    {                                                                                              \
        (void)tree;                                                                                \
        (void)interrupt;                                                                           \
        return fs_image_add_elements(image, subject, dequant_type_by_id(type_id));                 \
    }

DEFINE_ELEMENTS(f32, DEQUANT_F32)
DEFINE_ELEMENTS(f16, DEQUANT_F16)
DEFINE_ELEMENTS(bf16, DEQUANT_BF16)

/* ---- names that GGUF gives to tensors of old files ---- */

static bool has_gguf_name(const struct fs_tree *tree, const void *subject)
{
    const struct gguf_tensor *tensor = subject;

    (void)tree;
    return tensor->gguf_name.length_bytes > 0;
}

static bool has_layer(const struct fs_tree *tree, const void *subject)
{
    struct gguf_string layer, rest;

    (void)tree;
    return gguf_tensor_name_split(gguf_name_of(subject), &layer, &rest);
}

static const struct fs_view views[] = {
    {.path = "summary.txt", .kind = FS_FILE, .write = fs_summary_write},
    {.path = "metadata.json", .kind = FS_FILE, .write = fs_metadata_json_write},
    {.path = "tensors.json", .kind = FS_FILE, .write = fs_tensor_infos_write},
    {.path = "tensors.tsv", .kind = FS_FILE, .write = fs_tensors_tsv_write},
    {.path = "model.gguf",
     .kind = FS_FILE,
     .applies = fs_model_gguf_applies,
     .build = fs_model_gguf_build,
     .is_summed = true},
    {.path = "SHA256SUMS", .kind = FS_FILE, .build = fs_checksums_build, .size = fs_checksums_size},
    {.path = "model.safetensors",
     .kind = FS_FILE,
     .applies = fs_safetensors_applies,
     .build = fs_safetensors_build},
    {.path = "split/<shard>.gguf", .kind = FS_FILE, .build = fs_model_gguf_build},

    {.path = "hf/config.json",
     .kind = FS_FILE,
     .applies = fs_hf_is_supported,
     .write = fs_hf_config_write},
    {.path = "hf/generation_config.json",
     .kind = FS_FILE,
     .applies = fs_hf_is_supported,
     .write = fs_hf_generation_config_write},
    {.path = "hf/<weights>", .kind = FS_FILE, .build = fs_hf_weights_build},
    {.path = "hf/model.safetensors.index.json",
     .kind = FS_FILE,
     .applies = fs_hf_has_index,
     .write = fs_hf_index_write},
    {.path = "hf/unused_tensors.txt",
     .kind = FS_FILE,
     .applies = fs_hf_has_unused,
     .write = fs_hf_unused_write},
    {.path = "hf.unsupported.txt",
     .kind = FS_FILE,
     .applies = fs_hf_is_incomplete,
     .write = fs_hf_unsupported_write},

    {.path = "metadata", .kind = FS_DIRECTORY},
    {.path = "metadata/<key>.json", .kind = FS_FILE, .write = fs_value_json_write},

    {.path = "tensors", .kind = FS_DIRECTORY},
    {.path = FS_TENSOR_FOLDER, .kind = FS_DIRECTORY},
    /* in the order of their names, so that they need no sorting */
    {.path = FS_TENSOR_FOLDER "/bf16",
     .kind = FS_FILE,
     .applies = has_decoder,
     .build = build_bf16,
     .size = size_of_bf16},
    {.path = FS_TENSOR_FOLDER "/f16",
     .kind = FS_FILE,
     .applies = has_decoder,
     .build = build_f16,
     .size = size_of_f16},
    {.path = FS_TENSOR_FOLDER "/f16.npy",
     .kind = FS_FILE,
     .applies = has_decoder,
     .build = fs_npy_f16_build,
     .size = fs_npy_f16_size},
    {.path = FS_TENSOR_FOLDER "/f32",
     .kind = FS_FILE,
     .applies = has_decoder,
     .build = build_f32,
     .size = size_of_f32},
    {.path = FS_TENSOR_FOLDER "/f32.npy",
     .kind = FS_FILE,
     .applies = has_decoder,
     .build = fs_npy_f32_build,
     .size = fs_npy_f32_size},
    {.path = FS_TENSOR_FOLDER "/histogram.svg",
     .kind = FS_FILE,
     .applies = has_decoder,
     .build = fs_histogram_svg_build,
     .size = fs_histogram_svg_size,
     .is_slow = true},
    {.path = FS_TENSOR_FOLDER "/info", .kind = FS_FILE, .write = fs_tensor_info_write},
    {.path = FS_TENSOR_FOLDER "/raw",
     .kind = FS_FILE,
     .applies = has_known_type,
     .build = build_raw,
     .size = size_of_raw,
     .is_summed = true},
    {.path = FS_TENSOR_FOLDER "/stats.json",
     .kind = FS_FILE,
     .applies = has_decoder,
     .build = fs_stats_json_build,
     .size = fs_stats_json_size,
     .is_slow = true},
    {.path = "tensors/<weighed>/importance.npy",
     .kind = FS_FILE,
     .applies = fs_importance_applies,
     .build = fs_importance_npy_build,
     .size = fs_importance_npy_size},
    {.path = "layers/<layer>/<rest>",
     .kind = FS_LINK,
     .applies = has_layer,
     .target = "../../tensors/<tensor>"},
    {.path = "tensors/<gguf_name>",
     .kind = FS_LINK,
     .applies = has_gguf_name,
     .target = "<tensor>"},

    {.path = "tokenizer/tokens.txt",
     .kind = FS_FILE,
     .applies = fs_tokens_text_applies,
     .write = fs_tokens_text_write},
    {.path = "tokenizer/scores.txt",
     .kind = FS_FILE,
     .applies = fs_scores_text_applies,
     .write = fs_scores_text_write},
    {.path = "tokenizer/types.txt",
     .kind = FS_FILE,
     .applies = fs_types_text_applies,
     .write = fs_types_text_write},
    {.path = "tokenizer/merges.txt",
     .kind = FS_FILE,
     .applies = fs_merges_text_applies,
     .write = fs_merges_text_write},
    {.path = "tokenizer/chat_template.jinja",
     .kind = FS_FILE,
     .applies = fs_chat_template_applies,
     .write = fs_chat_template_write},
    {.path = "tokenizer/<chat_template>.jinja",
     .kind = FS_FILE,
     .applies = fs_named_template_applies,
     .write = fs_chat_template_write},

    {.path = "hf/tokenizer.json",
     .kind = FS_FILE,
     .applies = fs_tokenizer_applies,
     .write = fs_tokenizer_json_write},
    {.path = "hf/tokenizer_config.json",
     .kind = FS_FILE,
     .applies = fs_tokenizer_applies,
     .write = fs_tokenizer_config_write},
    {.path = "hf/tokenizer.model",
     .kind = FS_FILE,
     .applies = fs_sentencepiece_applies,
     .write = fs_sentencepiece_write},
    {.path = "hf/special_tokens_map.json",
     .kind = FS_FILE,
     .applies = fs_tokenizer_applies,
     .write = fs_special_tokens_map_write},
    {.path = "hf/chat_template.jinja",
     .kind = FS_FILE,
     .applies = fs_tokenizer_template_applies,
     .write = fs_chat_template_write},
    {.path = "hf/additional_chat_templates/<template_name>.jinja",
     .kind = FS_FILE,
     .applies = fs_tokenizer_template_applies,
     .write = fs_chat_template_write},
};

const struct fs_table fs_views = {
    .views = views,
    .n_views = sizeof views / sizeof *views,
    .placeholders = fs_placeholders,
    .n_placeholders = FS_N_PLACEHOLDERS,
    .subjects = fs_subjects,
};
