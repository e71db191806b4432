/* The other way: a text model and its projector as one file of Ollama, by the same rows. */
#include "gguf/translate/translate.h"

#include "dequant/kernels.h"
#include "gguf/fusions.h"
#include "gguf/translate/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what rows do not say ---- */

static void undo_gemma3(struct gguf_draft *draft)
{
    const uint64_t patch = gguf_draft_number(draft, "patch_size", 0);
    const uint64_t side = patch > 0 ? gguf_draft_number(draft, "image_size", 0) / patch : 0;
    const uint64_t scale = gguf_draft_number(draft, "projector.scale_factor", 4);
    const uint64_t n_embd = gguf_draft_number(draft, "embedding_length", 0);
    bool is_swapped = false;

    if (scale > 0 && side < 1 << 16)
        gguf_draft_set_u32(draft, "/gemma3.mm.tokens_per_image", side / scale * (side / scale));
    /* Old projectors have the names of the two matrices exchanged. */
    for (size_t i = 0; i < draft->made.n_items; i++) {
        struct gguf_item *item = &draft->made.items[i];
        const struct gguf_string name = item->like.name;
        const bool is_first = gguf_string_ends_with(name, ".mlp.fc1.weight");

        if ((is_first || gguf_string_ends_with(name, ".mlp.fc2.weight")) &&
            (item->like.ne[0] == n_embd) != is_first && item->like.ne[0] != item->like.ne[1])
            is_swapped = true;
    }
    for (size_t i = 0; is_swapped && i < draft->made.n_items; i++)
        gguf_draft_names(draft, &draft->made.items[i],
                         ".mlp.fc1>.mlp.fc0 .mlp.fc2>.mlp.fc1 .mlp.fc0>.mlp.fc2", false);
}

static void undo_mistral3(struct gguf_draft *draft)
{
    struct gguf_item *row = gguf_draft_item(draft, "v.token_embd.img_break");
    const uint64_t n_heads = gguf_draft_number(draft, "attention.head_count", 0);
    const bool has_bias = gguf_draft_item(draft, "mm.linear_1.bias");
    uint64_t token;

    gguf_draft_permute(draft, true);
    if (row)
        gguf_draft_drop(draft, row);
    if (n_heads > 0)
        gguf_draft_set_u32(draft, "attention.key_length",
                           gguf_draft_number(draft, "embedding_length", 0) / n_heads);
    gguf_draft_keys(draft, has_bias ? "/mistral3.mm.projector_bias=bool:true"
                                    : "/mistral3.mm.projector_bias=bool:false");
    draft->source = draft->made.model; /* the vocabulary is the text model's */
    token = gguf_draft_token(draft, "[IMG]");
    if (token < UINT32_MAX)
        gguf_draft_set_u32(draft, "/mistral3.image_token_index", token);
}

static void undo_qwen25vl(struct gguf_draft *draft)
{
    const uint64_t step = gguf_draft_number(draft, "n_wa_pattern", 8);
    const uint64_t n_blocks = gguf_draft_number(draft, "block_count", 0);
    uint32_t full[64];
    uint64_t n = 0;

    for (uint64_t i = step; step > 0 && i <= n_blocks && n < 64; i += step)
        full[n++] = (uint32_t)i - 1;
    gguf_draft_set_array(draft, "fullatt_block_indexes", GGUF_INT32, full, n);
    gguf_draft_set_u32(draft, "spatial_patch_size", gguf_draft_number(draft, "patch_size", 14));
}

/* Join the two frames of the patches and divide queries, keys and values. */
static void undo_qwen35(struct gguf_draft *draft)
{
    struct gguf_composition *made = &draft->made;
    struct gguf_item *frames[] = {gguf_draft_item(draft, "v.patch_embed.weight"),
                                  gguf_draft_item(draft, "v.patch_embed.weight.1")};
    struct gguf_item both;

    if (frames[0] && frames[1]) {
        for (size_t i = 0; i < 2; i++) {
            frames[i]->like.ne[3] *= frames[i]->like.ne[2];
            frames[i]->like.ne[2] = 1;
        }
        both = gguf_begin_rows(made, frames[0], 2, frames[0]->like.name);
        for (uint64_t i = 0; made->result == 0 && i < 2 * frames[0]->like.ne[3]; i++)
            gguf_append_rows(made, &both, frames[i % 2], 2, i / 2, 0, 1);
        both.like.ne[2] = 2;
        *frames[0] = both;
        gguf_draft_drop(draft, frames[1]);
    }
    gguf_unfuse(made, GGUF_FUSION_VISION_QKV);
}

static void undo_qwen3vl(struct gguf_draft *draft)
{
    const struct gguf_array is_deep = gguf_draft_array(draft, "is_deepstack_layers");
    struct gguf_cursor cursor = gguf_array_begin(&is_deep);
    struct gguf_value value;
    uint32_t deep[64], n = 0;

    for (uint32_t i = 0; is_deep.element_type == GGUF_BOOL && i < is_deep.n_elements; i++) {
        gguf_array_next(&cursor, GGUF_BOOL, &value);
        if (value.boolean && n < 64)
            deep[n++] = i;
    }
    gguf_draft_set_array(draft, "deepstack_visual_indexes", GGUF_INT32, deep, n);
    for (size_t i = 0; draft->made.result == 0 && i < draft->made.n_items; i++) {
        struct gguf_item *item = &draft->made.items[i];
        char text[GGUF_NAME_BYTES];
        uint64_t block;
        const char *rest = gguf_split_number(item->like.name, "v.deepstack.", &block, text);

        for (uint32_t j = 0; rest && j < n; j++)
            if (deep[j] == block)
                item->like.name =
                    gguf_compose_name(&draft->made, "v.deepstack_merger.%" PRIu32 ".%s%s", j,
                                      gguf_text_starts_with(rest, "fc") ? "linear_" : "", rest);
    }
    undo_qwen35(draft);
}

static void undo_llama4(struct gguf_draft *draft)
{
    const uint64_t scale = gguf_draft_number(draft, "projector.scale_factor", 2);

    gguf_draft_set(
        draft, "pixel_shuffle_ratio",
        (struct gguf_value){.type = GGUF_FLOAT32, .f32 = 1.0f / (float)(scale > 0 ? scale : 2)});
}

static void undo_gemma4(struct gguf_draft *draft)
{
    gguf_unfuse(&draft->made, GGUF_FUSION_GATE_UP_EXPS);
}

static void undo_glmocr(struct gguf_draft *draft)
{
    gguf_unfuse(&draft->made, GGUF_FUSION_FFN_GATE_UP);
}

#define CHANNELS "num_channels=u32:3 "

/* Projectors that have a way back. */
static const struct way_back {
    const char *architecture; /* as in the row */
    void (*undo)(struct gguf_draft *draft);
    const char *keys; /* that the file has in addition */
} ways_back[] = {
    {"gemma3", undo_gemma3, CHANNELS},
    {"qwen35 qwen35moe", undo_qwen35, CHANNELS},
    {"mistral3", undo_mistral3,
     CHANNELS "rope.freq_base=f32:10000 /mistral3.mm.projector_hidden_act=str:gelu"},
    {"qwen3vl qwen3vlmoe", undo_qwen3vl, CHANNELS},
    {"llama4", undo_llama4, CHANNELS},
    {"qwen25vl", undo_qwen25vl,
     CHANNELS "temporal_patch_size=u32:2 rope.freq_base=f32:10000 spatial_merge_size=u32:2 "
              "window_size=u32:112"},
    {"gemma4", undo_gemma4, CHANNELS "projector.scale_factor=u32:3"},
    {"glmocr", undo_glmocr, NULL},
};

/* ---- which rows ---- */

/* Return the projector's kind, "gemma3", or "". */
static struct gguf_string kind_of(const struct gguf_model *projector)
{
    const struct gguf_key *key = gguf_find_key(projector, "clip.projector_type");

    if (!key)
        key = gguf_find_key(projector, "clip.vision.projector_type");
    return key && key->value.type == GGUF_STRING ? key->value.string : gguf_string_of("");
}

/* Return the row of a table for these architectures and both parts, else the last. */
static const struct gguf_layout *find_row(const struct gguf_layout *row, const char *architecture)
{
    while (row->architecture &&
           (strcmp(row->architecture, architecture) != 0 ||
            (!row->drops && strcmp(row->tower ? row->tower : "", "vision") != 0)))
        row++;
    return row;
}

/*
 * Find the rows of a file with that kind of projector and a text model of the architecture. Returns
 * NULL if there are none.
 */
static const struct way_back *find_rows(struct gguf_string kind, struct gguf_string architecture,
                                        const struct gguf_layout **text,
                                        const struct gguf_layout **projector)
{
    char word[GGUF_NAME_BYTES];

    snprintf(word, sizeof word, "projector_type!str:%.*s", (int)kind.length_bytes, kind.data);
    for (size_t i = 0; i < sizeof ways_back / sizeof *ways_back; i++) {
        *projector = find_row(gguf_projector_layouts, ways_back[i].architecture);
        *text = find_row(gguf_text_layouts, ways_back[i].architecture);
        if (gguf_words_have((*text)->renamed ? (*text)->renamed : (*text)->architecture,
                            architecture) &&
            gguf_words_end_with((*projector)->keys, word))
            return &ways_back[i];
    }
    return NULL;
}

/* Return true if F16 holds the numbers of a tensor of F32; false if they cannot be read. */
static bool fits_f16(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    const struct dequant_type *type = dequant_type_by_id(DEQUANT_F16);
    const struct gguf_elements of = {model, tensor, tensor->type, GGUF_MAP_NONE, 0};
    float numbers[1024], back[1024];
    uint8_t halves[sizeof numbers / 2];

    for (uint64_t i = 0, n; i < tensor->n_elements; i += n) {
        n = tensor->n_elements - i < 1024 ? tensor->n_elements - i : 1024;
        if (gguf_elements_read(&of, i * sizeof *numbers, n * sizeof *numbers, (char *)numbers) < 0)
            return false;
        dequant_encode(type, numbers, halves, n);
        dequant_decode_row(type, (struct dequant_row){0}, halves, back, n);
        if (memcmp(numbers, back, n * sizeof *numbers) != 0)
            return false;
    }
    return true;
}

/* Add the projector's tensors under Ollama's names. */
static void add_projector(struct gguf_draft *draft, const struct gguf_layout *row)
{
    size_t i = draft->made.n_items;

    gguf_append_items(&draft->made, draft->file);
    for (; draft->made.result == 0 && i < draft->made.n_items; i++) {
        struct gguf_item *item = &draft->made.items[i];

        if (!gguf_words_begin(row->takes, item->like.name))
            gguf_compose_fail(&draft->made, gguf_place_of(item),
                              "ggufs does not know its name in files of Ollama");
        /* Ollama's converter makes all matrices F16. */
        if (item->like.type == dequant_type_by_id(DEQUANT_F32) && item->like.n_dims >= 2 &&
            (gguf_words_begin(row->f32, item->like.name) ||
             gguf_string_ends_with(item->like.name, ".attn_qkv.weight")) &&
            fits_f16(draft->file, &item->like))
            gguf_draft_set_type(draft, item, DEQUANT_F16);
        gguf_draft_names(draft, item, row->names, true);
    }
}

static int compare_items(const void *a, const void *b)
{
    const struct gguf_string first = ((const struct gguf_item *)a)->like.name;
    const struct gguf_string second = ((const struct gguf_item *)b)->like.name;
    struct gguf_string rest;
    const uint32_t i = gguf_block_of(first, &rest), j = gguf_block_of(second, &rest);

    return i != j ? (i > j) - (i < j) : gguf_string_compare(first, second);
}

/* The scores of Ollama's files without scores of tokens are the ids. */
static void add_scores(struct gguf_draft *draft)
{
    const uint64_t n = gguf_draft_array(draft, "/tokenizer.ggml.tokens").n_elements;
    float *scores = gguf_model_alloc(draft->made.model, n * sizeof *scores);

    for (uint64_t i = 0; scores && i < n; i++)
        scores[i] = (float)i;
    if (!scores)
        draft->made.result = -ENOMEM;
    else if (n > 0 && !gguf_draft_key(draft, "/tokenizer.ggml.scores"))
        gguf_draft_set(draft, "/tokenizer.ggml.scores",
                       gguf_value_of_numbers(GGUF_FLOAT32, scores, n));
}

int gguf_join_for_ollama(const struct gguf_model *text, const struct gguf_model *projector,
                         struct gguf_model **model, char **refusal, struct gguf_report *report)
{
    struct gguf_string name = gguf_architecture_of(text);
    static const char none[] =
        "ggufs knows no file of Ollama that holds this model and this projector";
    const struct gguf_layout *layout, *row;
    const struct way_back *way;
    char prefix[GGUF_NAME_BYTES];
    struct gguf_report own = {0};
    struct gguf_draft draft;
    int result;

    *model = NULL;
    *refusal = NULL;
    way = find_rows(kind_of(projector), name, &layout, &row);
    if (!way)
        return gguf_draft_refuse(0, none, NULL, NULL, refusal, report);
    gguf_draft_begin(&draft, text, &own);
    snprintf(prefix, sizeof prefix, "%.*s.", (int)name.length_bytes, name.data);
    draft.from = draft.to = prefix;
    draft.source = draft.made.model;
    gguf_append_items(&draft.made, text);
    if (draft.made.result == 0 && layout->renamed)
        gguf_draft_rename_architecture(&draft, row->architecture);
    for (size_t i = 0; i < draft.made.n_items; i++)
        gguf_draft_names(&draft, &draft.made.items[i], layout->names, true);
    gguf_draft_undo_keys(&draft, layout->keys);
    if (draft.made.result == 0)
        add_scores(&draft);
    name = layout->renamed ? gguf_string_of(row->architecture) : name;
    snprintf(prefix, sizeof prefix, "%.*s.vision.", (int)name.length_bytes, name.data);
    draft.from = "clip.vision.";
    draft.to = prefix;
    draft.file = draft.source = projector;
    if (draft.made.result == 0) {
        add_projector(&draft, row);
        gguf_draft_undo_keys(&draft, row->keys);
        gguf_draft_keys(&draft, way->keys);
        way->undo(&draft);
    }
    gguf_draft_keys(&draft, "-/general.type -/general.name -/general.size_label");
    if (draft.made.n_items > 0)
        qsort(draft.made.items, draft.made.n_items, sizeof *draft.made.items, compare_items);
    if (draft.made.result == 0)
        qsort(draft.made.model->keys, draft.made.model->n_keys, sizeof *draft.made.model->keys,
              gguf_string_order);
    result = gguf_compose_end(&draft.made, model);
    return result == 0
               ? 0
               : gguf_draft_refuse(result, NULL, "it cannot be made", &own, refusal, report);
}
