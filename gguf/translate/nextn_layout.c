/* The tensors of Qwen 3.5 that predict further tokens: mtp.* in files of Ollama. */
#include "gguf/translate/draft.h"

#include "gguf/fusions.h"

#include <inttypes.h>
#include <string.h>

/* Names of the tensors that all further layers share, if there is one. */
static const char *const shared[][2] = {
    {"mtp.fc.weight", "eh_proj.weight"},
    {"mtp.pre_fc_norm_embedding.weight", "enorm.weight"},
    {"mtp.pre_fc_norm_hidden.weight", "hnorm.weight"},
    {"mtp.embed_tokens.weight", "embed_tokens.weight"},
    {"mtp.shared_head.head.weight", "shared_head_head.weight"},
    {"mtp.shared_head.norm.weight", "shared_head_norm.weight"},
    {"mtp.norm.weight", "shared_head_norm.weight"},
};

/* These norms lack the 1 that those of other layers have. */
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

    while (i < sizeof shared / sizeof *shared && strcmp(text, shared[i][0]) != 0)
        i++;
    if (rest && !gguf_text_starts_with(rest, "mlp.experts.")) {
        item->like.name =
            gguf_compose_name(&draft->made, "blk.%" PRIu64 ".%s", n_blocks + layer, rest);
    } else if (!rest && i < sizeof shared / sizeof *shared && n_layers == 1) {
        item->like.name =
            gguf_compose_name(&draft->made, "blk.%" PRIu64 ".nextn.%s", n_blocks, shared[i][1]);
    } else { /* like experts with a gap, which would be refused as unknown */
        gguf_draft_drop(draft, item);
        return;
    }
    add_one(draft, item);
}

void gguf_draft_nextn(struct gguf_draft *draft)
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
