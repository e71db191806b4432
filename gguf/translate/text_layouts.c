/* How files of Ollama hold text models. The rows are tried in this order, each once. */
#include "gguf/translate/draft.h"

#include "gguf/fusions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gemma's turns, for files without a template. */
#define GEMMA_TEMPLATE                                                                             \
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}"          \
    "{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}"                \
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}"      \
    "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"

/* ---- values that are computed ---- */

/* Cut the lists of the vocabulary to so many tokens. */
static void cut_vocabulary(struct gguf_draft *draft, uint64_t n_tokens)
{
    static const char *const names[] = {"/tokenizer.ggml.tokens", "/tokenizer.ggml.scores",
                                        "/tokenizer.ggml.token_type"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct gguf_array cut = gguf_draft_array(draft, names[i]);
        struct gguf_cursor cursor = gguf_array_begin(&cut);
        struct gguf_value element;

        if (cut.n_elements <= n_tokens)
            continue;
        for (uint64_t j = 0; j < n_tokens; j++)
            gguf_array_next(&cursor, cut.element_type, &element);
        cut.n_elements = n_tokens;
        cut.size_bytes = cursor.offset;
        gguf_draft_set(draft, names[i], (struct gguf_value){.type = GGUF_ARRAY, .array = cut});
    }
}

static void finish_gemma3(struct gguf_draft *draft)
{
    const struct gguf_item *embeddings = gguf_draft_item(draft, "token_embd.weight");

    if (!gguf_draft_key(draft, "/tokenizer.chat_template"))
        gguf_draft_set_text(draft, "/tokenizer.chat_template", GEMMA_TEMPLATE);
    if (gguf_draft_number(draft, "context_length", 0) >= 131072)
        gguf_draft_keys(draft, "rope.scaling.type=str:linear rope.scaling.factor=f32:8");
    if (embeddings)
        cut_vocabulary(draft, embeddings->like.ne[1]);
}

static bool has_letters(const struct gguf_draft *draft)
{
    const struct gguf_key *model = gguf_draft_key(draft, "/tokenizer.ggml.model");
    const struct gguf_array map = gguf_draft_array(draft, "/tokenizer.ggml.precompiled_charsmap");

    return model && model->value.type == GGUF_STRING &&
           gguf_string_equals(model->value.string, "t5") && map.element_type == GGUF_STRING;
}

/* The map is in base64, one letter per string. */
static void join_letters(struct gguf_draft *draft)
{
    static const char name[] = "/tokenizer.ggml.precompiled_charsmap";
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const struct gguf_array letters = gguf_draft_array(draft, name);
    struct gguf_cursor cursor = gguf_array_begin(&letters);
    uint8_t *bytes = gguf_model_alloc(draft->made.model, letters.n_elements);
    uint32_t bits = 0, n_bits = 0;
    uint64_t n_bytes = 0;

    if (!bytes)
        draft->made.result = -ENOMEM;
    for (uint64_t i = 0; bytes && i < letters.n_elements; i++) {
        struct gguf_value letter;
        const char *at;

        gguf_array_next(&cursor, GGUF_STRING, &letter);
        if (letter.string.length_bytes == 1 && *letter.string.data == '=')
            break;
        at = letter.string.length_bytes == 1 ? memchr(base64, *letter.string.data, 64) : NULL;
        if (!at) {
            draft->refusal = "its precompiled_charsmap is not in base64";
            return;
        }
        bits = bits << 6 | (uint32_t)(at - base64);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            bytes[n_bytes++] = (uint8_t)(bits >> n_bits);
        }
    }
    if (bytes)
        gguf_draft_set(draft, name, gguf_value_of_numbers(GGUF_UINT8, bytes, n_bytes));
}

static bool has_more_embeddings(const struct gguf_draft *draft)
{
    const struct gguf_item *all = gguf_draft_item(draft, "token_embd.weight");
    const struct gguf_item *text = gguf_draft_item(draft, "per_layer_token_embd.weight");

    return all && text && all->like.ne[1] > text->like.ne[1];
}

/* Give tokens of bytes and unused tokens their types. */
static void correct_types(struct gguf_draft *draft)
{
    static const char name[] = "/tokenizer.ggml.token_type";
    const struct gguf_array tokens = gguf_draft_array(draft, "/tokenizer.ggml.tokens");
    const struct gguf_array types = gguf_draft_array(draft, name);
    struct gguf_cursor text = gguf_array_begin(&tokens), type = gguf_array_begin(&types);
    uint32_t *made;

    if (tokens.element_type != GGUF_STRING || types.element_type != GGUF_INT32 ||
        tokens.n_elements != types.n_elements)
        return;
    made = gguf_model_alloc(draft->made.model, types.n_elements * sizeof *made);
    for (uint64_t i = 0; made && i < types.n_elements; i++) {
        struct gguf_value token, number;

        gguf_array_next(&text, GGUF_STRING, &token);
        gguf_array_next(&type, GGUF_INT32, &number);
        made[i] = (uint32_t)number.u64;
        if (token.string.length_bytes == 6 && gguf_string_starts_with(token.string, "<0x") &&
            token.string.data[5] == '>')
            made[i] = 6; /* a byte */
        else if (gguf_string_starts_with(token.string, "<unused"))
            made[i] = 1; /* normal */
    }
    if (made)
        gguf_draft_set(draft, name, gguf_value_of_numbers(GGUF_INT32, made, types.n_elements));
    else
        draft->made.result = -ENOMEM;
}

static void cut_gemma3n(struct gguf_draft *draft)
{
    enum { END_OF_TURN_OF_GEMMA = 106 };
    static const char ids[] = "/tokenizer.ggml.eos_token_ids";
    const uint64_t n = gguf_draft_item(draft, "per_layer_token_embd.weight")->like.ne[1];
    const struct gguf_array old = gguf_draft_array(draft, ids);
    const uint64_t n_old = gguf_value_type_is_integer(old.element_type) ? old.n_elements : 0;
    uint32_t numbers[64] = {1}, n_ids = 0;
    bool is_there = false;

    cut_vocabulary(draft, n);
    correct_types(draft);
    for (; n_ids < n_old && n_ids < 63; n_ids++) {
        numbers[n_ids] = (uint32_t)gguf_array_number(&old, n_ids, 1);
        is_there |= numbers[n_ids] == END_OF_TURN_OF_GEMMA;
    }
    n_ids += n_ids == 0;
    numbers[n_ids] = END_OF_TURN_OF_GEMMA;
    gguf_draft_set_array(draft, ids, GGUF_INT32, numbers, n_ids + !is_there);
    gguf_take_rows(&draft->made, gguf_draft_item(draft, "token_embd.weight"), 1, 0, n);
}

/* Replace an array by its maximum, or by `zero` if all are 0. */
static void take_maximum(struct gguf_draft *draft, const char *name, uint64_t zero)
{
    const struct gguf_array array = gguf_draft_array(draft, name);
    uint64_t maximum = 0;

    for (uint64_t i = 0; i < array.n_elements && i < 512; i++) {
        const uint64_t number = gguf_array_number(&array, i, 0);

        maximum = number > maximum ? number : maximum;
    }
    maximum = maximum > 0 ? maximum : zero;
    if (array.n_elements > 0 && maximum > 0)
        gguf_draft_set_u32(draft, name, maximum);
}

static void finish_qwen3vl(struct gguf_draft *draft)
{
    const struct gguf_array deep = gguf_draft_array(draft, "vision.deepstack_visual_indexes");

    if (!gguf_draft_key(draft, "n_deepstack_layers"))
        gguf_draft_set_u32(draft, "n_deepstack_layers", deep.n_elements);
}

/* ---- tensors that predict further tokens ---- */

/* Names of the tensors that all further layers share, if there is one. */
static const char *const shared_names[][2] = {
    {"mtp.fc.weight", "eh_proj.weight"},
    {"mtp.pre_fc_norm_embedding.weight", "enorm.weight"},
    {"mtp.pre_fc_norm_hidden.weight", "hnorm.weight"},
    {"mtp.embed_tokens.weight", "embed_tokens.weight"},
    {"mtp.shared_head.head.weight", "shared_head_head.weight"},
    {"mtp.shared_head.norm.weight", "shared_head_norm.weight"},
    {"mtp.norm.weight", "shared_head_norm.weight"},
};

/* Add 1 to the norms of this layer: the file stores them without it, unlike its other norms. */
static void add_one(struct gguf_draft *draft, struct gguf_item *item)
{
    const struct gguf_string name = item->like.name;

    if (draft->made.result < 0 || gguf_string_ends_with(name, ".ssm_norm.weight") ||
        !(gguf_string_ends_with(name, "_norm.weight") ||
          gguf_string_ends_with(name, ".nextn.enorm.weight") ||
          gguf_string_ends_with(name, ".nextn.hnorm.weight")))
        return;
    gguf_draft_set_type(draft, item, DEQUANT_F32);
    draft->made.pieces[item->first_piece].of.map = GGUF_MAP_ADD;
    draft->made.pieces[item->first_piece].of.constant = 1;
}

/* Give a tensor its name in block n_blocks + its layer, or drop it. */
static void rename_layer(struct gguf_draft *draft, struct gguf_item *item, uint64_t n_blocks,
                         uint64_t n_layers)
{
    char text[GGUF_NAME_BYTES];
    uint64_t layer;
    const char *rest = gguf_split_number(item->like.name, "mtp.layers.", &layer, text);
    size_t i = 0;

    while (i < sizeof shared_names / sizeof *shared_names && strcmp(text, shared_names[i][0]) != 0)
        i++;
    if (rest && !gguf_text_starts_with(rest, "mlp.experts.")) {
        item->like.name =
            gguf_compose_name(&draft->made, "blk.%" PRIu64 ".%s", n_blocks + layer, rest);
    } else if (!rest && i < sizeof shared_names / sizeof *shared_names && n_layers == 1) {
        item->like.name = gguf_compose_name(&draft->made, "blk.%" PRIu64 ".nextn.%s", n_blocks,
                                            shared_names[i][1]);
    } else { /* like experts with a gap, which would be refused as unknown */
        gguf_draft_drop(draft, item);
        return;
    }
    add_one(draft, item);
}

/* Translate the tensors mtp.* of Qwen 3.5, which predict further tokens. */
static void finish_nextn(struct gguf_draft *draft)
{
    struct gguf_composition *made = &draft->made;
    uint64_t n_blocks = 0, n_layers = 0, number;
    char text[GGUF_NAME_BYTES];

    for (size_t i = 0; i < made->n_items; i++) {
        const struct gguf_string name = made->items[i].like.name;

        if (gguf_split_number(name, "blk.", &number, text) && number >= n_blocks)
            n_blocks = number + 1;
        if (gguf_string_starts_with(name, "blk.") && gguf_string_contains(name, ".nextn."))
            return;
        if (gguf_split_number(name, "mtp.layers.", &number, text) && number >= n_layers)
            n_layers = number + 1;
        else if (gguf_string_starts_with(name, "mtp.") && n_layers == 0)
            n_layers = 1;
    }
    if (n_layers == 0 || n_blocks == 0)
        return;
    if (n_layers > 64) {
        draft->refusal = "it has over 64 layers that predict further tokens";
        return;
    }
    gguf_draft_set_u32(draft, "nextn_predict_layers", n_layers);
    gguf_draft_set_u32(draft, "block_count", n_blocks + n_layers);
    for (enum gguf_fusion_id id = GGUF_FUSION_MTP_GATE; id <= GGUF_FUSION_MTP_DOWN; id++)
        gguf_fuse(made, id, GGUF_FUSE_ANY);
    for (size_t i = 0; made->result == 0 && i < made->n_items; i++)
        if (!made->items[i].is_dropped && gguf_string_starts_with(made->items[i].like.name, "mtp."))
            rename_layer(draft, &made->items[i], n_blocks, n_layers);
}

static void finish_qwen35(struct gguf_draft *draft)
{
    take_maximum(draft, "attention.head_count_kv", 2);
    finish_nextn(draft);
}

static void finish_qwen3next(struct gguf_draft *draft)
{
    take_maximum(draft, "attention.head_count_kv", 0);
}

/* ---- tensors that are joined ---- */

/* Scales of the experts' tensors, which some files have, hold for gates and ups alone. */
static void finish_gemma4(struct gguf_draft *draft)
{
    for (uint64_t i = 0; i < draft->file->n_tensors; i++) {
        const struct gguf_string name = draft->file->tensors[i].name;

        if (gguf_string_contains(name, ".ffn_gate_up_exps.") ||
            gguf_string_contains(name, ".ffn_gate_exps.scale") ||
            gguf_string_contains(name, ".ffn_gate_exps.input_scale") ||
            gguf_string_contains(name, ".ffn_up_exps.scale") ||
            gguf_string_contains(name, ".ffn_up_exps.input_scale"))
            return;
    }
    gguf_fuse(&draft->made, GGUF_FUSION_GATE_UP_EXPS, GGUF_FUSE_EQUAL);
}

static bool lacks_embedding_norm(const struct gguf_draft *draft)
{
    return gguf_draft_item(draft, "output_norm.weight") &&
           !gguf_draft_item(draft, "token_embd_norm.weight");
}

static void finish_glmocr(struct gguf_draft *draft)
{
    gguf_fuse(&draft->made, GGUF_FUSION_FFN_GATE_UP, GGUF_FUSE_EQUAL);
}

/* ---- keys of latent attention, experts and Llama 3 ---- */

static void finish_glm4moelite(struct gguf_draft *draft)
{
    const uint64_t rank = gguf_draft_number(draft, "attention.kv_lora_rank", 0);
    const uint64_t rotated = gguf_draft_number(draft, "rope.dimension_count", 0);
    const uint64_t key = gguf_draft_number(draft, "attention.key_length", 0);
    const uint64_t value = gguf_draft_number(draft, "attention.value_length", key);
    const struct gguf_array ids = gguf_draft_array(draft, "/tokenizer.ggml.eos_token_ids");
    static const char *const names[] = {"/tokenizer.ggml.eot_token_id",
                                        "/tokenizer.ggml.eom_token_id"};

    if (key > 0) {
        gguf_draft_set_u32(draft, "attention.key_length_mla", key);
        gguf_draft_set_u32(draft, "attention.value_length_mla", value);
    }
    if (rank > 0 && rotated > 0) {
        gguf_draft_set_u32(draft, "attention.key_length", rank + rotated);
        gguf_draft_set_u32(draft, "attention.value_length", rank);
    }
    for (uint64_t i = 0; i < 2; i++)
        if (!gguf_draft_key(draft, names[i]) && i + 1 < ids.n_elements)
            gguf_draft_set_u32(draft, names[i], gguf_array_number(&ids, i + 1, 0));
}

static void finish_deepseekocr(struct gguf_draft *draft)
{
    const struct gguf_item *shared = gguf_draft_item(draft, "blk.1.ffn_down_shexp.weight");
    const uint64_t one = gguf_draft_number(draft, "expert_feed_forward_length", 0);

    if (shared && one > 0 && !gguf_draft_key(draft, "expert_shared_count"))
        gguf_draft_set_u32(draft, "expert_shared_count", shared->like.ne[0] / one);
}

static void finish_nemotron(struct gguf_draft *draft)
{
    const bool has_experts = gguf_draft_number(draft, "expert_count", 0) > 0 ||
                             gguf_draft_number(draft, "expert_used_count", 0) > 0;

    gguf_draft_rename_architecture(draft, has_experts ? "nemotron_h_moe" : "nemotron_h");
}

/* The ids of Llama 3: the end of the text, of a turn, and the start of a header. */
enum { END_OF_TEXT = 128001, START_HEADER = 128006, END_OF_TURN = 128009 };

static bool lacks_end_of_turn(const struct gguf_draft *draft)
{
    const struct gguf_key *chat = gguf_draft_key(draft, "/tokenizer.chat_template");

    if (!gguf_draft_lacks_text(draft, "/tokenizer.ggml.pre") &&
        gguf_draft_number(draft, "/tokenizer.ggml.eos_token_id", 0) != END_OF_TEXT)
        return false;
    return gguf_draft_token(draft, "<|eot_id|>") == END_OF_TURN &&
           (gguf_draft_token(draft, "<|start_header_id|>") == START_HEADER ||
            (chat && chat->value.type == GGUF_STRING &&
             (gguf_string_contains(chat->value.string, "<|start_header_id|>") ||
              gguf_string_contains(chat->value.string, "<|eot_id|>"))));
}

static void end_turns(struct gguf_draft *draft)
{
    static const char *const names[] = {"/tokenizer.ggml.eos_token_id",
                                        "/tokenizer.ggml.eot_token_id"};

    for (size_t i = 0; i < 2; i++)
        if (gguf_draft_number(draft, names[i], END_OF_TEXT) == END_OF_TEXT)
            gguf_draft_set_u32(draft, names[i], END_OF_TURN);
    gguf_draft_set_array(draft, "/tokenizer.ggml.eos_token_ids", GGUF_INT32,
                         (uint32_t[]){END_OF_TURN}, 1);
}

static bool lacks_projector_type(const struct gguf_draft *draft)
{
    const struct gguf_key *vision = gguf_draft_key(draft, "/clip.has_vision_encoder");

    return vision && vision->value.type == GGUF_BOOL && vision->value.boolean &&
           !gguf_draft_key(draft, "/clip.projector_type") &&
           !gguf_draft_key(draft, "/clip.vision.projector_type");
}

/* ---- the table ---- */

#define ENCODERS "v. mm."

const struct gguf_layout gguf_text_layouts[] = {
    {"gemma3", "=dense.0.weight", .renamed = "gemma-embedding",
     .names = "dense.0>dense_2 dense.1>dense_3 norm>output_norm",
     .keys = "-attention.causal -attention.sliding_window_pattern rope.freq_base_swa=f32:10000 "
             "/tokenizer.ggml.add_space_prefix=bool:false "
             "dense_2_feat_in!@dense_2.weight:0 dense_2_feat_out!@dense_2.weight:1 "
             "dense_3_feat_in!@dense_3.weight:0 dense_3_feat_out!@dense_3.weight:1"},
    {"gemma3",
     "mm.tokens_per_image v.* mm.* rope.global.freq_base rope.local.freq_base "
     "/tokenizer.ggml.add_padding_token /tokenizer.ggml.add_unknown_token "
     "!attention.layer_norm_rms_epsilon",
     .drops = ENCODERS,
     .keys = "rope.freq_base<rope.global.freq_base=f32:1000000 "
             "rope.freq_base_swa<rope.local.freq_base=f32:10000 "
             "attention.layer_norm_rms_epsilon=f32:1e-6 "
             "/tokenizer.ggml.add_space_prefix=bool:false",
     .rest = finish_gemma3},
    {"bert", .is = has_letters, .rest = join_letters},
    {"gemma3n", .is = has_more_embeddings, .keys = "/tokenizer.ggml.model!str:llama",
     .rest = cut_gemma3n},
    {"gemma4", "a.* v.* mm.* model.vision_tower.* /tokenizer.ggml.model=llama",
     .drops = "a. v. mm. model.vision_tower.",
     .names = ".ffn_gate_inp.per_expert_scale$>.ffn_down_exps.scale",
     .keys = "/tokenizer.ggml.model!str:gemma4", .rest = finish_gemma4},
    {"qwen35 qwen35moe",
     "vision.block_count image_token_id ssm.v_head_reordered rope.mrope_interleaved "
     "/qwen35moe.feed_forward_length mtp.* v.*",
     .drops = ENCODERS, .names = ".ssm_dt$>.ssm_dt.bias",
     .keys = "rope.dimension_sections^rope.dimension_sections", .rest = finish_qwen35},
    {"qwen3next", "*.ssm_dt", .names = ".ssm_dt$>.ssm_dt.bias", .rest = finish_qwen3next},
    {"laguna", "rope.swa.dimension_count rope.swa.freq_base =blk.0.attn_g.weight",
     .names = ".attn_g>.attn_gate",
     .keys = "rope.dimension_count_swa<rope.swa.dimension_count "
             "rope.freq_base_swa<rope.swa.freq_base"},
    {"gptoss", "*.attn_qkv.weight *.ffn_gate_up_exps.weight",
     .refusal = "it is of Ollama's first converter for gpt-oss, of August 2025, whose layout no "
                "program reads today; pull the model again"},
    {"gptoss", .renamed = "gpt-oss",
     .names = ".attn_out>.attn_output .attn_sinks$>.attn_sinks.weight "
              ".ffn_norm>.post_attention_norm",
     .keys = "expert_feed_forward_length=@blk.0.ffn_gate_exps.weight:1 "
             "rope.scaling.type=str:yarn /tokenizer.ggml.pre!str:gpt-4o"},
    {"lfm2", .is = lacks_embedding_norm, .names = "output_norm>token_embd_norm",
     .keys = "/tokenizer.ggml.pre!str:lfm2 feed_forward_length!@blk.0.ffn_gate.weight:1"},
    {"olmo3", .renamed = "olmo2"},
    {"mistral3", "v.* mm.* rope.scaling.beta_fast rope.scaling.mscale_all_dim rope.scaling_beta",
     .drops = ENCODERS,
     .keys = "rope.scaling.yarn_beta_fast<rope.scaling.beta_fast "
             "rope.scaling.yarn_beta_slow<rope.scaling.beta_slow "
             "rope.scaling.yarn_log_multiplier<rope.scaling.mscale_all_dim "
             "attention.temperature_scale<rope.scaling_beta /tokenizer.ggml.pre~tekken"},
    {"qwen25vl", .renamed = "qwen2vl", .drops = ENCODERS,
     .keys = "rope.dimension_sections^rope.mrope_section"},
    {"qwen3vl qwen3vlmoe", "!rope.dimension_sections v.*", .drops = ENCODERS,
     .keys = "rope.dimension_sections^rope.mrope_section "
             "rope.dimension_sections=arr[i32]:[24,20,20,0]",
     .rest = finish_qwen3vl},
    {"glm4moelite", .renamed = "deepseek2",
     .keys = "attention.head_count_kv!u32:1 expert_group_count=u32:1 "
             "expert_group_used_count=u32:1 /tokenizer.ggml.pre!str:glm4",
     .rest = finish_glm4moelite},
    {"deepseekocr", .renamed = "deepseek2-ocr", .drops = "s. " ENCODERS,
     .keys = "attention.layer_norm_rms_epsilon=f32:1e-6 "
             "expert_feed_forward_length=@blk.1.ffn_down_exps.weight:0",
     .rest = finish_deepseekocr},
    {"nemotron_h_omni", "v.* a.* mm.*", .drops = "a. " ENCODERS, .rest = finish_nemotron},
    {"nemotron_h_moe", "blk.0.ffn_latent_in* blk.1.ffn_latent_in* mtp.*", .drops = "mtp.",
     .names = ".ffn_latent_in>.ffn_latent_down .ffn_latent_out>.ffn_latent_up",
     .keys = "moe_latent_size=@*.ffn_latent_down.weight:1"},
    {"llama", .is = lacks_end_of_turn, .keys = "/tokenizer.ggml.pre~llama-bpe", .rest = end_turns},
    {"llama4", "v.* mm.*", .drops = ENCODERS},
    {"clip", .is = lacks_projector_type, .keys = "/clip.projector_type!str:mlp"},
    {"glmocr", .renamed = "glm4", .drops = ENCODERS,
     .names = ".attn_out>.attn_output .post_attn_norm>.post_attention_norm "
              ".post_ffn_norm>.post_ffw_norm",
     .keys = "rope.dimension_count<attention.key_length /tokenizer.ggml.pre!str:chatglm-bpe "
             "rope.dimension_sections^rope.mrope_section",
     .rest = finish_glmocr},
    {"mllama", .refusal = "llama.cpp has no architecture mllama, Llama 3.2 Vision"},
    {NULL},
};
