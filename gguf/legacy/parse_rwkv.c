/*
 * Files of rwkv.cpp, versions 100 and 101. Source: docs/FILE_FORMAT.md of rwkv.cpp.
 *
 *   u32 magic ggmf, u32 version, n_vocab, n_embed, n_layer, data_type
 *   the tensors: gguf/legacy/old_reading.h, without padding
 *
 * Version 101 has today's blocks. Version 100 was used with block layouts of several eras and does
 * not record which. They have equal sizes but different values.
 */
#include "gguf/formats.h"
#include "gguf/legacy/old_reading.h"
#include "gguf/legacy/rwkv_tensors.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define OLDER_VERSION 100u
#define NEWER_VERSION 101u
#define MAX_PLAUSIBLE 0xffffffu

/* ---- the types ---- */

/* The type ids of rwkv.cpp and ggml, and GGUF's file type for "most tensors have this type". */
static const struct rwkv_type {
    uint32_t id, ggml_id, file_type;
} types[] = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {7, 6, 8}, {8, 7, 9}, {9, 8, 7}};

#define N_TYPES (sizeof types / sizeof *types)

struct header {
    uint32_t version;
    uint32_t n_vocab;
    uint32_t n_embed;
    uint32_t n_layer;
    uint32_t data_type;
    const struct dequant_type *types[N_TYPES];
};

static const struct dequant_type *type_of(const void *user, uint32_t id)
{
    const struct header *header = user;

    for (size_t i = 0; i < N_TYPES; i++) {
        if (types[i].id == id)
            return header->types[i];
    }
    return NULL;
}

/* Return true if blocks of eras 0 and 1 decode to the same values. */
static bool is_same_in_old_eras(uint32_t ggml_id)
{
    const struct dequant_type *first = dequant_type_of_era(ggml_id, 0);

    return first->decode[DEQUANT_SET_scalar] ==
           dequant_type_of_era(ggml_id, 1)->decode[DEQUANT_SET_scalar];
}

/* `era` is 1 + the era of a version 100 file; 0: unknown. */
static int choose_types(struct gguf_model *model, struct header *header, int era)
{
    struct dequant_type *blind = gguf_model_alloc(model, N_TYPES * sizeof *blind);

    if (!blind)
        return -ENOMEM;
    for (size_t i = 0; i < N_TYPES; i++) {
        const uint32_t id = types[i].ggml_id;

        if (header->version == NEWER_VERSION) {
            header->types[i] = dequant_type_by_id(id);
        } else if (era > 0) {
            header->types[i] = dequant_type_of_era(id, (uint32_t)era - 1);
        } else if (is_same_in_old_eras(id)) {
            header->types[i] = dequant_type_of_era(id, 0);
        } else {
            /* Serve the bytes but no values, because the layout is unknown. */
            blind[i] = *dequant_type_of_era(id, 0);
            memset(blind[i].decode, 0, sizeof blind[i].decode);
            blind[i].era = 0;
            header->types[i] = &blind[i];
        }
    }
    return 0;
}

/* ---- the architectures ---- */

/*
 * Only tensors with the same values and shape in GGUF files have a GGUF name; rwkv_tensors.h has
 * the others of 6 and 7. GGUF was never defined for 4 and 5, so they use the names of 6.
 */
#define EVERYWHERE                                                                                 \
    "blocks.% emb.>token_embd. head.>output. ln_out*>output_norm* "                                \
    "blocks.0.ln0*>token_embd_norm* .ln1*>attn_norm* .ln2*>attn_norm_2* "                          \
    ".att.key.>time_mix_key. .att.value.>time_mix_value. "                                         \
    ".att.receptance.>time_mix_receptance. .att.output.>time_mix_output. "                         \
    ".ffn.key.>channel_mix_key. .ffn.value.>channel_mix_value."
#define BEFORE_7 " .att.time_decay .ffn.receptance.>channel_mix_receptance."
#define BEFORE_6                                                                                   \
    " .att.time_mix_k .att.time_mix_v .att.time_mix_r .ffn.time_mix_k .ffn.time_mix_r" BEFORE_7
#define SINCE_5 " .att.ln_x*>time_mix_ln*"
#define GATE    " .att.gate.>time_mix_gate. .att.time_faaaa"

static const char names_4[] = EVERYWHERE BEFORE_6 " .att.time_first";
static const char names_5_1[] = EVERYWHERE BEFORE_6 SINCE_5 " .att.time_first";
static const char names_5_2[] = EVERYWHERE BEFORE_6 SINCE_5 GATE " .att.time_mix_g";
static const char names_6[] = EVERYWHERE BEFORE_7 SINCE_5 GATE
    " .att.time_maa_x>time_mix_lerp_x. .att.time_maa_w>time_mix_lerp_w. "
    ".att.time_maa_k>time_mix_lerp_k. .att.time_maa_v>time_mix_lerp_v. "
    ".att.time_maa_r>time_mix_lerp_r. .att.time_maa_g>time_mix_lerp_g. "
    ".att.time_maa_w1>time_mix_w1. .att.time_maa_w2>time_mix_w2. "
    ".att.time_decay_w1>time_mix_decay_w1. .att.time_decay_w2>time_mix_decay_w2. "
    ".ffn.time_maa_k>channel_mix_lerp_k. .ffn.time_maa_r>channel_mix_lerp_r.";
/* The first layer lacks v0 to v2: it computes the values that the others mix in. */
static const char names_7[] = EVERYWHERE SINCE_5
    " .att.x_rwkvag .att.w0>time_mix_w0. .att.w1>time_mix_w1. .att.w2>time_mix_w2. "
    ".att.a0>time_mix_a0. .att.a1>time_mix_a1. .att.a2>time_mix_a2. .att.g1>time_mix_g1. "
    ".att.g2>time_mix_g2. .att.k_k>time_mix_k_k. .att.k_a>time_mix_k_a. .att.r_k "
    ".ffn.x_k>channel_mix_lerp_k. .att.v0>time_mix_v0.? .att.v1>time_mix_v1.? "
    ".att.v2>time_mix_v2.?";

/* Keys whose value is a dimension of a tensor, and the versions with the key: 52 is 5.2. */
static const struct {
    const char *key; /* follows the architecture's name */
    const char *tensor;
    unsigned dim, first, last;
} shape_keys[] = {
    {".feed_forward_length", "blk.0.channel_mix_key.weight", 1, 40, 70},
    {".wkv.head_size", "blocks.0.att.time_decay", 1, 52, 60},
    {".time_mix_extra_dim", "blk.0.time_mix_w2.weight", 0, 60, 60},
    {".time_decay_extra_dim", "blk.0.time_mix_decay_w1.weight", 1, 60, 60},
    {".wkv.head_size", "blocks.0.att.r_k", 0, 70, 70},
    {".attention.decay_lora_rank", "blk.0.time_mix_w1.weight", 1, 70, 70},
    {".attention.iclr_lora_rank", "blk.0.time_mix_a1.weight", 1, 70, 70},
    {".attention.value_residual_mix_lora_rank", "blk.1.time_mix_v1.weight", 1, 70, 70},
    {".attention.gate_lora_rank", "blk.0.time_mix_g1.weight", 1, 70, 70},
};

/* The first row whose tensor exists applies. */
static const struct architecture {
    const char *tensor;
    const char *name; /* general.architecture and prefix of its keys */
    uint32_t version, minor_version;
    const char *names;                  /* see struct gguf_name_rule */
    const struct gguf_rwkv_rule *rules; /* NULL: llama.cpp does not run it */
} architectures[] = {
    {"blocks.0.att.r_k", "rwkv7", 7, 0, names_7, gguf_rwkv7_rules},
    {"blocks.0.att.time_maa_x", "rwkv6", 6, 0, names_6, gguf_rwkv6_rules},
    {"blocks.0.att.gate.weight", "rwkv", 5, 2, names_5_2, NULL},
    {"blocks.0.att.ln_x.weight", "rwkv", 5, 1, names_5_1, NULL},
    {"blocks.0.att.time_first", "rwkv", 4, 0, names_4, NULL},
};

static const char *const minor_versions[] = {"", ".1", ".2"};

static const char for_llama_cpp[] =
    "for llama.cpp, which loads it without a vocabulary, for token ids only: rwkv.cpp files hold "
    "none; set tokenizer.ggml.model to rwkv and tokenizer.ggml.tokens to add one";
static const char too_old[] = "for no program known: llama.cpp runs RWKV 6 and 7, none before";

static const struct architecture *find_architecture(const struct gguf_model *model,
                                                    struct gguf_report *report)
{
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        if (gguf_tensor_named(model, architectures[i].tensor))
            return &architectures[i];
    }
    gguf_error(report, GGUF_RULE_TENSORS_MISSING, -ENODATA, GGUF_NO_PLACE,
               "its %" PRIu64
               " tensors fit no known RWKV architecture (4, 5.1, 5.2, 6, 7) by their "
               "names (unfinished download?)",
               model->n_tensors);
    return NULL;
}

/* ---- the file ---- */

bool gguf_probe_rwkv(const struct gguf_start *start)
{
    struct gguf_cursor cursor = {.data = start->bytes, .size_bytes = start->n_bytes, .offset = 4};
    uint32_t version;

    return start->n_bytes >= 8 && memcmp(start->bytes, "fmgg", 4) == 0 &&
           gguf_cursor_u32(&cursor, &version) == 0 &&
           (version == OLDER_VERSION || version == NEWER_VERSION);
}

static int read_header(struct gguf_cursor *cursor, struct header *header)
{
    const struct {
        const char *name;
        uint32_t smallest, *number;
    } numbers[] = {{"version", 0, &header->version},
                   {"n_vocab", 1, &header->n_vocab},
                   {"n_embed", 1, &header->n_embed},
                   {"n_layer", 1, &header->n_layer},
                   {"data_type", 0, &header->data_type}};

    cursor->place = gguf_at_part("header", 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const uint32_t smallest = numbers[i].smallest, *number = numbers[i].number;
        const uint64_t offset = cursor->offset;

        if (gguf_cursor_u32(cursor, numbers[i].number) < 0)
            return gguf_cursor_fail(cursor, numbers[i].name);
        if (*number < smallest || *number > MAX_PLAUSIBLE)
            return gguf_cursor_refuse(cursor, GGUF_RULE_HYPERPARAMETER, -EINVAL, offset,
                                      "%s is %" PRIu32 ", it can be %" PRIu32 " to %" PRIu32,
                                      numbers[i].name, *number, smallest, MAX_PLAUSIBLE);
    }
    return 0;
}

/* ---- the keys ---- */

static void add_shapes(struct gguf_key_adder *adder, const struct header *header,
                       const struct architecture *architecture)
{
    const struct gguf_tensor *decay = gguf_tensor_named(adder->model, "blocks.0.att.time_decay");
    const uint32_t version = 10 * architecture->version + architecture->minor_version;

    for (size_t i = 0; i < sizeof shape_keys / sizeof *shape_keys; i++) {
        const struct gguf_tensor *tensor = gguf_tensor_named(adder->model, shape_keys[i].tensor);

        if (tensor && version >= shape_keys[i].first && version <= shape_keys[i].last)
            gguf_add_u32(adder, shape_keys[i].key, tensor->ne[shape_keys[i].dim]);
    }
    /* 5.1 has one decay per head. */
    if (architecture->minor_version == 1 && decay && decay->ne[2] > 0)
        gguf_add_u32(adder, ".wkv.head_size", header->n_embed / decay->ne[2]);
}

/* `era` is as in choose_types(). */
static int add_keys(struct gguf_model *model, const struct header *header,
                    const struct architecture *architecture, int era)
{
    const uint32_t version = header->version == NEWER_VERSION ? DEQUANT_ERA : (uint32_t)era - 1;
    struct gguf_key_adder adder = {.model = model, .architecture = architecture->name};

    gguf_add_text(&adder, "general.architecture", architecture->name);
    for (size_t i = 0; i < N_TYPES; i++) {
        if (types[i].id == header->data_type)
            gguf_add_u32(&adder, "general.file_type", types[i].file_type);
    }
    gguf_add_u32(&adder, ".architecture_version", architecture->version);
    if (architecture->minor_version > 0)
        gguf_add_u32(&adder, ".architecture_minor_version", architecture->minor_version);
    if (version <= DEQUANT_ERA) /* known */
        gguf_add_quantization_version(&adder, version);
    gguf_add_u32(&adder, ".vocab_size", header->n_vocab);
    gguf_add_u32(&adder, ".embedding_length", header->n_embed);
    gguf_add_u32(&adder, ".block_count", header->n_layer);
    add_shapes(&adder, header, architecture);
    /* RWKV has no attention; llama.cpp's converter writes 0 heads. */
    gguf_add_u32(&adder, ".attention.head_count", 0);
    /* The constant in rwkv.cpp. */
    gguf_add_f32(&adder, ".attention.layer_norm_epsilon", 1e-5f);
    /* llama.cpp wants these, with the values of its converter. */
    if (architecture->rules) {
        gguf_add_u32(&adder, ".context_length", 1048576); /* RWKV has no limit of the context */
        gguf_add_text(&adder, "tokenizer.ggml.model", "no_vocab");
    }
    return adder.result;
}

static void warn_of_era(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_tensor *first = NULL;
    uint64_t n_blind = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (!dequant_is_decodable(model->tensors[i].type) && n_blind++ == 0)
            first = &model->tensors[i];
    }
    if (first)
        gguf_warning(report, GGUF_RULE_ERA, gguf_tensor_place(first),
                     "its %s blocks have an unknown layout, as those of %" PRIu64 " of %" PRIu64
                     " tensors",
                     first->type->name, n_blind, model->n_tensors);
}

int gguf_parse_rwkv(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report)
{
    struct header header = {0};
    const struct gguf_old_layout layout = {1, type_of, &header};
    struct gguf_cursor cursor =
        gguf_cursor_begin(&model->files[0], (struct gguf_encoding){.length_bytes = 4}, report);
    const struct architecture *architecture;
    int result = gguf_cursor_skip(&cursor, 4);

    assert(result == 0); /* the probe has matched the magic */
    result = read_header(&cursor, &header);
    if (result < 0)
        return result;
    if (choose_types(model, &header, options->era) < 0)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    result = gguf_old_tensors_read(&cursor, &layout, model);
    if (result < 0)
        return result;
    gguf_header_finish(&model->files[0].header, cursor.offset);
    warn_of_era(model, report);
    architecture = find_architecture(model, report);
    if (!architecture)
        return -ENODATA;
    result = gguf_old_tensors_name(model, architecture->names, header.n_layer, 0, report);
    if (result < 0)
        return result;
    model->format =
        gguf_model_print(model, "rwkv.cpp v%" PRIu32 " RWKV %" PRIu32 "%s", header.version,
                         architecture->version, minor_versions[architecture->minor_version]);
    model->gguf_remark = architecture->rules ? for_llama_cpp : too_old;
    if (!model->format)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    model->rwkv_rules = architecture->rules;
    result = add_keys(model, &header, architecture, options->era);
    return result < 0 ? gguf_system_error(report, result, GGUF_NO_PLACE) : 0;
}
