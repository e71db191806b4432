#include "fs/tree/facts/export.h"

#include "dequant/types.h"
#include "gguf/elements.h"

#include <string.h>

#define FILE_TYPE_KEY            "general.file_type"
#define QUANTIZATION_VERSION_KEY "general.quantization_version"

/* The numbers of general.file_type. Source: enum llama_ftype in llama.cpp's llama.h. */
enum {
    FILE_TYPE_F32 = 0,
    FILE_TYPE_F16 = 1,
    FILE_TYPE_Q4_0 = 2,
    FILE_TYPE_Q8_0 = 7,
    FILE_TYPE_BF16 = 32
};

static const struct {
    const char *name;
    uint32_t type_id, file_type; /* of choices from FS_EXPORT_F32 on */
} choices[FS_N_EXPORTS] = {
    [FS_EXPORT_STORED] = {"stored", 0, 0},
    [FS_EXPORT_F32] = {"f32", DEQUANT_F32, FILE_TYPE_F32},
    [FS_EXPORT_F16] = {"f16", DEQUANT_F16, FILE_TYPE_F16},
    [FS_EXPORT_BF16] = {"bf16", DEQUANT_BF16, FILE_TYPE_BF16},
    [FS_EXPORT_Q8_0] = {"q8_0", DEQUANT_Q8_0, FILE_TYPE_Q8_0},
    [FS_EXPORT_Q4_0] = {"q4_0", DEQUANT_Q4_0, FILE_TYPE_Q4_0},
};

const char *fs_export_choice_at(size_t index)
{
    return index < FS_N_EXPORTS - FS_EXPORT_STORED ? choices[FS_EXPORT_STORED + index].name : NULL;
}

static bool names_a_type(enum fs_export_choice choice)
{
    return choice >= FS_EXPORT_F32;
}

/* ---- types ---- */

/*
 * Parts of the names of weights that llama-quantize leaves in their type: they are small, and
 * results depend much on them. Source: tensor_allows_quantization() of llama.cpp.
 */
/* clang-format would put each on a line: */
/* clang-format off */
static const char *const kept_parts[] = {
    /* norms; gates and routes of experts */
    "_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight",
    /* Gemma 3n */
    "altup", "laurel", "per_layer_model_proj",
    /* convolutions of Mamba and LFM2, the indexer of MiniMax */
    "ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight",
    /* RWKV */
    "time_mix_first.weight", "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight",
    "time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight", "time_mix_a0.weight",
    "time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight", "time_mix_g2.weight",
    "time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight",
    /* T5 */
    "attn_rel_b.weight",
    /* images and sound */
    ".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd",
    ".patch_merger", "a.rvq.codebook", "mm.a.code_embd",
};
/* clang-format on */

/* Whole names of these weights. */
static const char *const kept_names[] = {"position_embd.weight", "token_types.weight"};

static bool is_kept_by_name(struct gguf_string name)
{
    if (!gguf_string_ends_with(name, "weight"))
        return true;
    for (size_t i = 0; i < sizeof kept_names / sizeof *kept_names; i++) {
        if (gguf_string_equals(name, kept_names[i]))
            return true;
    }
    for (size_t i = 0; i < sizeof kept_parts / sizeof *kept_parts; i++) {
        if (gguf_string_contains(name, kept_parts[i]))
            return true;
    }
    return false;
}

/* Return true for tensors that llama-quantize quantizes: matrices of weights. */
static bool is_quantized(const struct gguf_tensor *tensor)
{
    const uint32_t id = tensor->type->id;
    bool is_matrix = false;

    for (uint32_t i = 1; i < tensor->n_dims; i++)
        is_matrix |= tensor->ne[i] > 1;
    return is_matrix && !(id >= DEQUANT_I8 && id <= DEQUANT_I64) &&
           !is_kept_by_name(gguf_name_of(tensor));
}

/*
 * The type for values of a type that llama.cpp lacks. No quantization of b bits per weight has a
 * relative mean square error below 4^-b (for normally distributed weights), which is 2.4e-4 for 6
 * bits. That of Q8_0 is 2.3e-5, so it adds little to types below; others become F16.
 */
static const struct dequant_type *loadable_type(const struct dequant_type *type)
{
    const bool is_below_6_bits = 8 * type->block_bytes < 6 * type->block_elements;

    return dequant_type_by_id(is_below_6_bits ? DEQUANT_Q8_0 : DEQUANT_F16);
}

/* Return the type, or F16 if the rows are no whole blocks of it. */
static const struct dequant_type *fitting_type(const struct dequant_type *type,
                                               const struct gguf_tensor *tensor)
{
    return tensor->ne[0] % type->block_elements == 0 ? type : dequant_type_by_id(DEQUANT_F16);
}

const struct dequant_type *fs_export_type(enum fs_export_choice choice,
                                          const struct gguf_tensor *tensor)
{
    const struct dequant_type *type = tensor->type, *modern = type ? dequant_modern(type) : NULL;

    if (!type || !dequant_is_decodable(type) ||
        (choice == FS_EXPORT_STORED && type->era == DEQUANT_ERA))
        return type;
    if (names_a_type(choice) && (is_quantized(tensor) || !modern->is_in_ggml))
        return fitting_type(dequant_type_by_id(choices[choice].type_id), tensor);
    return modern->is_in_ggml ? modern : fitting_type(loadable_type(type), tensor);
}

uint32_t fs_export_dims(enum fs_export_choice choice, const struct gguf_tensor *tensor)
{
    uint32_t n_dims = tensor->n_dims;

    /* As llama-quantize writes them: ggml_n_dims() in ggml.c does not count them. */
    while (names_a_type(choice) && n_dims > 1 && tensor->ne[n_dims - 1] == 1)
        n_dims--;
    return n_dims;
}

int fs_export_bytes(enum fs_export_choice choice, const struct gguf_tensor *tensor,
                    uint64_t *n_bytes)
{
    *n_bytes = tensor->extent_bytes;
    return tensor->type ? gguf_elements_size(tensor, fs_export_type(choice, tensor), n_bytes) : 0;
}

/* ---- metadata ---- */

/*
 * The file type of a model whose interleaved rows are put back. ik_llama.cpp adds 200 to the number
 * of the plain type's, also for IQ1_S_R4 and IQ1_M_R4, which have no plain type; 33 to 35 were
 * Q4_0_4_4, Q4_0_4_8 and Q4_0_8_8. Source: enum llama_ftype in llama.h of llama.cpp and
 * ik_llama.cpp.
 */
static uint64_t plain_file_type(uint64_t file_type)
{
    enum { Q4_0_4_4 = 33, Q4_0_8_8 = 35, IQ1_S_R4 = 224, IQ1_M_R4 = 231, Q8_K_R8 = 399 };

    if (file_type == IQ1_S_R4 || file_type == IQ1_M_R4)
        return file_type;
    if (file_type >= Q4_0_4_4 && file_type <= Q4_0_8_8)
        return FILE_TYPE_Q4_0;
    if (file_type == Q8_K_R8)
        return FILE_TYPE_Q8_0;
    return file_type >= 200 + FILE_TYPE_Q4_0 && file_type <= 200 + FILE_TYPE_BF16 ? file_type - 200
                                                                                  : file_type;
}

static void set_file_type(struct fs_export *export, uint32_t file_type)
{
    export->has_file_type = true;
    export->file_type = file_type;
}

/* Add a key to export->added unless the model has it. */
static void add_key(const struct gguf_model *model, const char *name, uint32_t number,
                    struct fs_export *export)
{
    if (gguf_find_key(model, name))
        return;
    export->added[export->n_added++] = (struct gguf_key){
        .name = {name, strlen(name)}, .value = {.type = GGUF_UINT32, .u64 = number}};
}

void fs_export_plan(const struct gguf_model *model, enum fs_export_choice choice,
                    struct fs_export *export)
{
    double n_elements = 0, n_q8_0 = 0, n_f16 = 0; /* all; made Q8_0; made another type */

    *export = (struct fs_export){.choice = choice, .is_changed = names_a_type(choice)};
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *stored = &model->tensors[i];
        const struct dequant_type *type = fs_export_type(choice, stored);

        n_elements += (double)stored->n_elements;
        if (type == stored->type)
            continue;
        export->is_changed = true;
        export->is_put_back |= stored->type->plain != NULL;
        if (stored->type->era != DEQUANT_ERA && type->id == DEQUANT_F32)
            set_file_type(export, FILE_TYPE_F32);
        if (!dequant_modern(stored->type)->is_in_ggml)
            *(type->id == DEQUANT_Q8_0 ? &n_q8_0 : &n_f16) += (double)stored->n_elements;
    }
    if (names_a_type(choice)) {
        set_file_type(export, choices[choice].file_type);
        add_key(model, QUANTIZATION_VERSION_KEY, DEQUANT_ERA, export);
        add_key(model, FILE_TYPE_KEY, export->file_type, export);
    } else if (n_q8_0 + n_f16 > n_elements / 2) {
        set_file_type(export, n_q8_0 > n_f16 ? FILE_TYPE_Q8_0 : FILE_TYPE_F16);
    }
}

struct gguf_value fs_export_value(const struct gguf_model *model, const struct fs_export *export,
                                  const struct gguf_key *key)
{
    struct gguf_value value = key->value;

    if (key->file_offset == GGUF_NO_OFFSET || !gguf_value_is_integer(&value))
        return value;
    if (gguf_string_equals(key->name, FILE_TYPE_KEY)) {
        if (export->has_file_type)
            value.u64 = export->file_type;
        else if (export->is_put_back)
            value.u64 = plain_file_type(value.u64);
    } else if (gguf_string_equals(key->name, QUANTIZATION_VERSION_KEY) &&
               (names_a_type(export->choice) || model->has_entries_between)) {
        value.u64 = DEQUANT_ERA;
    }
    return value;
}
