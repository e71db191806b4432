/* How files of Ollama hold encoders of images and sound. All rows of an architecture are used. */
#include "gguf/translate/draft.h"

#include "gguf/fusions.h"
#include "gguf/legacy/old_reading.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits of a square of places that is made anew, and of a tower. */
enum { MAX_SIDE = 64, MAX_EMBEDDING = 4096, MAX_BLOCKS = 4096 };

/* ---- tensors ---- */

/* Make a tensor of each of the two frames of the patches, which alternate for each channel. */
static void split_patches(struct gguf_draft *draft)
{
    struct gguf_item *both = gguf_draft_item(draft, "v.patch_embd.weight"), frames[2];
    const uint64_t n_channels = gguf_draft_number(draft, "num_channels", 3);

    if (!both)
        return;
    if (both->like.ne[2] != 2 || n_channels == 0 || both->like.ne[3] % n_channels != 0) {
        draft->refusal = "its tensor v.patch_embed.weight has another shape than two frames";
        return;
    }
    for (uint64_t i = 0; i < 2; i++) {
        frames[i] = *both;
        gguf_take_rows(&draft->made, &frames[i], 2, i, 1);
        gguf_draft_set_type(draft, &frames[i], DEQUANT_F32);
        frames[i].like.n_dims = 4;
        frames[i].like.ne[2] = n_channels;
        frames[i].like.ne[3] /= n_channels;
    }
    frames[1].like.name = gguf_compose_name(&draft->made, "v.patch_embd.weight.1");
    *both = frames[0];
    gguf_insert_item(&draft->made, draft->made.n_items, frames[1]);
}

void gguf_draft_permute(struct gguf_draft *draft, bool is_back)
{
    const uint64_t n_heads = gguf_draft_number(draft, "attention.head_count", 0);
    struct gguf_composition *made = &draft->made;
    struct gguf_name_match match;

    for (size_t i = 0; n_heads > 0 && i < made->n_items; i++) {
        const struct gguf_item old = made->items[i];
        const uint64_t n_rows = old.like.ne[1], n = n_rows / n_heads;

        if ((!gguf_tensor_name_matches(old.like.name, "v.blk.%.attn_q", &match) &&
             !gguf_tensor_name_matches(old.like.name, "v.blk.%.attn_k", &match)) ||
            strcmp(match.suffix, ".weight") != 0 || n == 0 || n % 2 != 0 || n_rows % n_heads != 0)
            continue;
        made->items[i] = gguf_begin_rows(made, &old, 1, old.like.name);
        for (uint64_t row = 0; made->result == 0 && row < n_rows; row++) {
            const uint64_t at = row % n;
            const uint64_t from =
                is_back ? at % (n / 2) * 2 + at / (n / 2) : at % 2 * (n / 2) + at / 2;

            gguf_append_rows(made, &made->items[i], &old, 1, 0, row - at + from, 1);
        }
    }
}

static void finish_mistral3(struct gguf_draft *draft)
{
    const struct gguf_tensor *embeddings = gguf_tensor_named(draft->file, "token_embd.weight");
    const uint64_t token = gguf_draft_token(draft, "[IMG_BREAK]");
    struct gguf_item row;

    gguf_draft_permute(draft, false);
    if (!embeddings)
        return;
    row = gguf_whole_item(&draft->made, draft->file, embeddings,
                          gguf_compose_name(&draft->made, "v.token_embd.img_break"));
    gguf_draft_set_type(draft, &row, DEQUANT_F32);
    if (token < embeddings->ne[1])
        gguf_take_rows(&draft->made, &row, 1, token, 1);
    else
        gguf_draft_make_data(draft, &row, embeddings->ne[0]);
    row.like.n_dims = 1;
    gguf_insert_item(&draft->made, draft->made.n_items, row);
}

/* ---- keys ---- */

/* Say which blocks have a branch to the text model. */
static void mark_deep_blocks(struct gguf_draft *draft, const struct gguf_array *deep)
{
    const uint64_t n = gguf_draft_number(draft, "block_count", 0);
    bool is_deep[MAX_BLOCKS] = {0};

    if (n > MAX_BLOCKS) {
        draft->refusal = "its vision tower has over 4096 blocks";
        return;
    }
    for (uint64_t i = 0; i < deep->n_elements && i < 64; i++) {
        const uint64_t block = gguf_array_number(deep, i, n);

        if (block < n)
            is_deep[block] = true;
    }
    if (n > 0)
        gguf_draft_set_array(draft, "is_deepstack_layers", GGUF_BOOL, is_deep, n);
}

static void finish_qwen35(struct gguf_draft *draft)
{
    mark_deep_blocks(draft, &(struct gguf_array){0});
    gguf_fuse(&draft->made, GGUF_FUSION_VISION_QKV, GGUF_FUSE_ANY);
    split_patches(draft);
}

static void finish_qwen3vl(struct gguf_draft *draft)
{
    const struct gguf_array deep = gguf_draft_array(draft, "deepstack_visual_indexes");
    const struct gguf_item *places = gguf_draft_item(draft, "v.position_embd.weight");
    const uint64_t side = places ? (uint64_t)lround(sqrt((double)places->like.ne[1])) : 0;

    mark_deep_blocks(draft, &deep);
    if (side > 0 && !gguf_draft_key(draft, "image_size"))
        gguf_draft_set_u32(draft, "image_size", side * gguf_draft_number(draft, "patch_size", 16));
    for (size_t i = 0; draft->made.result == 0 && i < draft->made.n_items; i++) {
        struct gguf_item *item = &draft->made.items[i];
        char text[GGUF_NAME_BYTES];
        uint64_t index;
        const char *rest = gguf_split_number(item->like.name, "v.deepstack_merger.", &index, text);

        if (!rest)
            continue;
        if (gguf_text_starts_with(rest, "linear_"))
            rest += strlen("linear_");
        item->like.name = gguf_compose_name(&draft->made, "v.deepstack.%" PRIu64 ".%s",
                                            gguf_array_number(&deep, index, index), rest);
    }
    gguf_fuse(&draft->made, GGUF_FUSION_VISION_QKV, GGUF_FUSE_F32);
    split_patches(draft);
}

static void finish_qwen25vl(struct gguf_draft *draft)
{
    const struct gguf_array full = gguf_draft_array(draft, "fullatt_block_indexes");

    gguf_draft_set_u32(draft, "n_wa_pattern", gguf_array_number(&full, 0, 7) + 1);
}

static void finish_llama4(struct gguf_draft *draft)
{
    const struct gguf_key *key = gguf_find_key(draft->source, "llama4.vision.pixel_shuffle_ratio");
    double ratio = 0, scale = 2;

    if (key && gguf_value_to_double(&key->value, &ratio) && ratio > 0 && ratio < 2)
        scale = round(1 / ratio);
    gguf_draft_set_u32(draft, "projector.scale_factor", (uint64_t)scale);
}

static uint64_t square_root(uint64_t number)
{
    const uint64_t root = (uint64_t)lround(sqrt((double)number));

    return root * root == number ? root : 0;
}

/*
 * Make the embeddings of n x n places from the embeddings of the file's square, linearly between
 * the four nearest; corners lie on corners.
 */
static void resample(struct gguf_draft *draft, struct gguf_item *item, uint64_t n)
{
    const struct gguf_tensor *stored = gguf_origin_of(&draft->made, item)->tensor;
    const uint64_t n_embd = stored->ne[0], side = square_root(stored->ne[1]);
    float *out, *rows;

    if (side == n) {
        gguf_draft_set_type(draft, item, DEQUANT_F32);
        return;
    }
    if (side == 0 || n == 0 || n > MAX_SIDE || n_embd > MAX_EMBEDDING) {
        draft->refusal = "its tensor v.position_embd has no square of places";
        return;
    }
    out = gguf_draft_make_data(draft, item, n * n * n_embd);
    rows = gguf_model_alloc(draft->made.model, 4 * n_embd * sizeof *rows);
    if (!rows)
        draft->made.result = -ENOMEM;
    item->like.ne[1] = n * n;
    for (uint64_t i = 0; draft->made.result == 0 && i < n * n; i++) {
        const double scale = n > 1 ? (double)(side - 1) / (double)(n - 1) : 0;
        const double y = (double)(i / n) * scale, x = (double)(i % n) * scale;
        const uint64_t y0 = (uint64_t)y, x0 = (uint64_t)x;
        const uint64_t y1 = y0 + 1 < side ? y0 + 1 : y0, x1 = x0 + 1 < side ? x0 + 1 : x0;
        const uint64_t places[] = {y0 * side + x0, y0 * side + x1, y1 * side + x0, y1 * side + x1};
        const float wy = (float)(y - (double)y0), wx = (float)(x - (double)x0);

        for (size_t j = 0; draft->made.result == 0 && j < 4; j++)
            draft->made.result =
                gguf_elements_read(&(struct gguf_elements){.model = draft->file,
                                                           .tensor = stored,
                                                           .type = dequant_type_by_id(DEQUANT_F32)},
                                   places[j] * n_embd * sizeof *rows, n_embd * sizeof *rows,
                                   (char *)(rows + j * n_embd));
        for (uint64_t e = 0; e < n_embd; e++) {
            const float top = rows[e] * (1 - wx) + rows[n_embd + e] * wx;
            const float bottom = rows[2 * n_embd + e] * (1 - wx) + rows[3 * n_embd + e] * wx;

            out[i * n_embd + e] = top * (1 - wy) + bottom * wy;
        }
    }
}

static void finish_nemotron(struct gguf_draft *draft)
{
    struct gguf_item *places = gguf_draft_item(draft, "v.position_embd.weight");
    struct gguf_item *patches = gguf_draft_item(draft, "v.patch_embd.weight");
    const uint64_t patch = gguf_draft_number(draft, "patch_size", 16);
    const uint64_t n_channels = gguf_draft_number(draft, "num_channels", 3);

    if (!gguf_draft_key(draft, "feed_forward_length"))
        gguf_draft_set_u32(draft, "feed_forward_length",
                           4 * gguf_draft_number(draft, "embedding_length", 1280));
    if (places && patch > 0)
        resample(draft, places, gguf_draft_number(draft, "image_size", 512) / patch);
    if (patches && patches->like.n_dims == 2 && patch < 4096 && n_channels < 4096 &&
        patches->like.ne[0] == patch * patch * n_channels) {
        const uint64_t ne[GGUF_MAX_DIMS] = {patch, patch, n_channels, patches->like.ne[1]};

        memcpy(patches->like.ne, ne, sizeof ne);
        patches->like.n_dims = 4;
    }
}

/* ---- the table ---- */

#define LAYER        "block_count embedding_length attention.head_count patch_size "
#define FEED_FORWARD "feed_forward_length "
#define EPSILON      "attention.layer_norm_epsilon "
#define HALVES       "image_mean=arr[f32]:[0.5,0.5,0.5] image_std=arr[f32]:[0.5,0.5,0.5] "
#define GELU         "/clip.use_gelu!bool:true "
#define SILU         "/clip.use_silu!bool:true "
#define MERGER                                                                                     \
    "v.pos_embed>v.position_embd v.patch_embed>v.patch_embd v.merger.norm>v.post_ln "              \
    "v.merger.linear_fc1>mm.0 v.merger.linear_fc2>mm.2 .mlp.linear_fc1>.ffn_up "                   \
    ".mlp.linear_fc2>.ffn_down .norm1>.ln1 .norm2>.ln2"
#define TWO_FRAMES                                                                                 \
    "v.patch_embd_0.weight>v.patch_embd.weight v.patch_embd_1.weight>v.patch_embd.weight.1"

const struct gguf_layout gguf_projector_layouts[] = {
    {"gemma3", "v.*", .tower = "vision", .takes = "v. mm.",
     .names = "v.patch_embedding>v.patch_embd v.position_embedding>v.position_embd "
              "v.post_layernorm>v.post_ln .layer_norm1>.ln1 .layer_norm2>.ln2 "
              ".attn_output>.attn_out .mlp.fc1>.ffn_up .mlp.fc2>.ffn_down "
              "mm.mm_input_projection>mm.input_projection mm.mm_soft_emb_norm>mm.soft_emb_norm",
     .keys = LAYER FEED_FORWARD EPSILON HALVES GELU "image_size /clip.projector_type!str:gemma3",
     .f32 = "v.patch_embd.weight v.position_embd.weight"},
    {"qwen35 qwen35moe", "v.*", .tower = "vision", .takes = "v. mm.", .names = MERGER,
     .keys = LAYER HALVES GELU "spatial_merge_size num_channels feed_forward_length=u32:4304 "
                               "image_size=u32:768 attention.layer_norm_epsilon=f32:1e-6 "
                               "/clip.projector_type!str:qwen3vl_merger",
     .f32 = "v.position_embd.weight v.patch_embd.weight", .rest = finish_qwen35},
    {"qwen3vl qwen3vlmoe", "v.*", .tower = "vision", .takes = "v. mm.", .names = MERGER,
     .keys = LAYER EPSILON HALVES GELU
     "spatial_merge_size num_channels temporal_patch_size=u32:2 rope.freq_base=f32:10000 "
     "image_min_pixels<shortest_edge=u32:65536 image_max_pixels<longest_edge=u32:16777216 "
     "feed_forward_length=@v.blk.0.ffn_up.weight:1 /clip.projector_type!str:qwen3vl_merger",
     .f32 = "v.position_embd.weight v.patch_embd.weight", .rest = finish_qwen3vl},
    {"qwen25vl", "v.*", .tower = "vision", .takes = "v. mm.",
     .names = "v.merger.ln_q>v.post_ln v.merger.mlp.0>mm.0 v.merger.mlp.2>mm.2 " TWO_FRAMES,
     .keys = LAYER EPSILON SILU "num_channels spatial_merge_size window_size image_size=u32:560 "
                                "feed_forward_length=@v.blk.0.ffn_up.weight:1 "
                                "image_mean=arr[f32]:[0.48145466,0.4578275,0.40821073] "
                                "image_std=arr[f32]:[0.26862954,0.26130258,0.27577711] "
                                "/clip.projector_type!str:qwen2.5vl_merger",
     .f32 = "v.patch_embd.weight", .rest = finish_qwen25vl},
    {"mistral3", "v.*", .tower = "vision", .takes = "v. mm.",
     .names = "v.patch_conv>v.patch_embd v.encoder_norm>v.pre_ln .attn_output>.attn_out "
              ".attn_norm>.ln1 .ffn_norm>.ln2 mm.linear_1>mm.1 mm.linear_2>mm.2 "
              "mm.patch_merger.merging_layer>mm.patch_merger mm.norm>mm.input_norm",
     .keys = LAYER FEED_FORWARD SILU
     "image_size num_channels spatial_merge_size</mistral3.spatial_merge_size "
     "/clip.rope.freq_base</mistral3.vision.rope.freq_base "
     "attention.layer_norm_epsilon=f32:1e-5 "
     "image_mean=arr[f32]:[0.48145467,0.4578275,0.40821072] "
     "image_std=arr[f32]:[0.26862955,0.26130259,0.2757771] "
     "/clip.projector_type!str:pixtral",
     .f32 = "v.patch_embd.weight", .rest = finish_mistral3},
    {"llama4", "v.*", .tower = "vision", .takes = "v. mm.",
     .names = "v.positional_embedding_vlm$>v.position_embd.weight "
              "v.vision_adapter.mlp.fc1>mm.model.mlp.1 v.vision_adapter.mlp.fc2>mm.model.mlp.2 "
              "mm.linear_1>mm.model.fc v.class_embedding>v.class_embd v.layernorm_post>v.post_ln "
              "v.layernorm_pre>v.pre_ln v.patch_embedding>v.patch_embd .attn_output>.attn_out "
              ".attn_norm>.ln1 .ffn_norm>.ln2 .mlp.fc1>.ffn_up .mlp.fc2>.ffn_down",
     .keys = LAYER FEED_FORWARD HALVES GELU
     "image_size attention.layer_norm_epsilon<layer_norm_epsilon "
     "/clip.projector_type!str:llama4 projector_type!str:llama4",
     .rest = finish_llama4},
    {"gemma4", "a.*", .tower = "audio", .takes = "a. mm.a.",
     .names = "a.pre_encode.out.weight>a.input_projection.weight mm.a.fc>a.pre_encode.out "
              ".ln1>.attn_pre_norm .ln2>.attn_post_norm .layer_pre_norm>.ln2 "
              ".linear_pos>.attn_k_rel",
     .keys = "block_count embedding_length attention.head_count " FEED_FORWARD EPSILON
             "num_mel_bins=u32:128 projector_type!str:gemma4a"},
    {"gemma4", "v.*", .tower = "vision", .takes = "v. mm.",
     .keys = LAYER FEED_FORWARD EPSILON "image_size=u32:224 image_mean=arr[f32]:[0,0,0] "
                                        "image_std=arr[f32]:[1,1,1] projector_type!str:gemma4v",
     .f32 = "v.patch_embd.weight"},
    {"glmocr", "v.*", .tower = "vision", .takes = "v. mm.", .names = TWO_FRAMES,
     .keys = LAYER SILU
     "feed_forward_length<intermediate_size image_size spatial_merge_size image_mean "
     "image_std attention.layer_norm_epsilon<attention.layer_norm_rms_epsilon "
     "projection_dim<out_hidden_size /clip.projector_type!str:glm4v",
     .f32 = "v.patch_embd.weight"},
    {"deepseekocr", "v.*", .tower = "vision", .takes = "s. v. mm.",
     .names = "s.>v.sam. v.sam.position_embd$>v.sam.pos_embd.weight "
              ".self_attn.out_proj>.attn_out .self_attn.qkv_proj>.attn_qkv .layer_norm1>.ln1 "
              ".layer_norm2>.ln2 .mlp.fc1>.ffn_up .mlp.fc2>.ffn_down v.pre_layrnorm>v.pre_ln "
              ".attn.proj>.attn.out .attn.rel_pos_h$>.attn.pos_h.weight "
              ".attn.rel_pos_w$>.attn.pos_w.weight .norm1>.pre_ln .norm2>.post_ln "
              "mm.layers>mm.model.fc mm.image_newline>v.image_newline "
              "mm.view_seperator>v.view_seperator",
     .keys = "block_count embedding_length attention.head_count<head_count image_size patch_size "
             "sam.block_count</deepseekocr.sam.block_count "
             "sam.embedding_length</deepseekocr.sam.embedding_length "
             "sam.head_count</deepseekocr.sam.head_count feed_forward_length=u32:64 "
             "projection_dim=u32:1280 projector.scale_factor=u32:1 window_size=u32:14 "
             "attention.layer_norm_epsilon=f32:1e-6 " HALVES GELU
             "/clip.projector_type!str:deepseekocr",
     .f32 = "v.patch_embd.weight v.sam.patch_embd.weight v.position_embd.weight"},
    {"nemotron_h_omni", "v.*", .tower = "vision", .takes = "v. mm.", .drops = "mm.a.",
     .names = "v.cls_embd>v.class_embd v.position_embd$>v.position_embd.weight "
              "mm.norm>mm.model.mlp.0 mm.1>mm.model.mlp.1 mm.2>mm.model.mlp.3",
     .keys = "block_count=u32:32 embedding_length=u32:1280 feed_forward_length "
             "attention.head_count=u32:16 attention.layer_norm_epsilon=f32:1e-6 "
             "patch_size=u32:16 image_size=u32:512 num_channels=u32:3 "
             "projector.scale_factor=u32:2 "
             "image_mean=arr[f32]:[0.48145466,0.4578275,0.40821073] "
             "image_std=arr[f32]:[0.26862954,0.26130258,0.27577711] image_token_id "
             "image_start_token_id image_end_token_id max_tiles min_num_patches "
             "max_num_patches " GELU "/clip.has_audio_encoder!bool:false "
             "projector_type!str:nemotron_v2_vl",
     .f32 = "v.class_embd v.patch_embd.weight", .rest = finish_nemotron},
    {NULL},
};
