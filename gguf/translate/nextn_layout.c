/* The tensors of Qwen 3.5 that predict further tokens: mtp.* in files of Ollama. */
#include "gguf/translate/draft.h"

#include "gguf/models/tensor_names.h"
#include "gguf/support/arrays.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
static void add_one(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor)
{
    const struct gguf_string name = tensor->name;

    if (gguf_string_ends_with(name, ".ssm_norm.weight") ||
        !(gguf_string_ends_with(name, "_norm.weight") ||
          gguf_string_ends_with(name, ".nextn.enorm.weight") ||
          gguf_string_ends_with(name, ".nextn.hnorm.weight")))
        return;
    gguf_draft_begin_pieces(draft, tensor, dequant_type_by_id(DEQUANT_F32));
    gguf_draft_add_piece(draft, tensor, tensor->stored, 0, tensor->stored->n_elements);
    if (draft->result == 0) {
        draft->pieces[tensor->first_piece].of.map = GGUF_MAP_ADD;
        draft->pieces[tensor->first_piece].of.constant = 1;
    }
}

/* Join the matrices of all experts of further layer `layer`, which becomes block `block`. */
static void join_experts(struct gguf_draft *draft, uint64_t layer, uint64_t block, const char *kind)
{
    static const char format[] = "mtp.layers.%llu.mlp.experts.%llu.%s_proj.weight";
    struct gguf_drafted_tensor **experts = NULL, *expert;
    size_t n = 0, room = 0;

    while ((expert = gguf_draft_of(draft, format, (unsigned long long)layer, (unsigned long long)n,
                                   kind))) {
        struct gguf_drafted_tensor **grown = gguf_grow(experts, &room, n + 1, sizeof *grown);

        if (!grown) {
            draft->result = -ENOMEM;
            break;
        }
        experts = grown;
        experts[n++] = expert;
    }
    if (n > 0 && gguf_draft_join(draft, experts, n, 2, false))
        gguf_draft_rename(draft, experts[0], "blk.%llu.ffn_%s_exps.weight",
                          (unsigned long long)block, kind);
    free(experts);
}

static void rename_layer(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                         uint64_t n_blocks, uint64_t n_layers)
{
    char text[GGUF_NAME_BYTES];
    uint64_t layer;
    const char *rest = gguf_split_number(tensor->stored->name, "mtp.layers.", &layer, text);

    if (rest) {
        if (strncmp(rest, "mlp.experts.", strlen("mlp.experts.")) == 0)
            return; /* it is joined */
        gguf_draft_rename(draft, tensor, "blk.%llu.%s", (unsigned long long)(n_blocks + layer),
                          rest);
    } else {
        size_t i = 0;

        while (i < sizeof shared / sizeof *shared && strcmp(text, shared[i][0]) != 0)
            i++;
        if (i == sizeof shared / sizeof *shared || n_layers != 1) {
            gguf_draft_drop(draft, tensor);
            return;
        }
        gguf_draft_rename(draft, tensor, "blk.%llu.nextn.%s", (unsigned long long)n_blocks,
                          shared[i][1]);
    }
    add_one(draft, tensor);
}

void gguf_draft_nextn(struct gguf_draft *draft)
{
    uint64_t n_blocks = 0, n_layers = 0, number;
    char text[GGUF_NAME_BYTES];

    for (size_t i = 0; i < draft->n_tensors; i++) {
        const struct gguf_string name = draft->tensors[i].stored->name;

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
    for (uint64_t i = 0; i < n_layers; i++) {
        join_experts(draft, i, n_blocks + i, "gate");
        join_experts(draft, i, n_blocks + i, "up");
        join_experts(draft, i, n_blocks + i, "down");
    }
    for (size_t i = 0; draft->result == 0 && i < draft->n_tensors; i++)
        if (gguf_string_starts_with(draft->tensors[i].name, "mtp."))
            rename_layer(draft, &draft->tensors[i], n_blocks, n_layers);
    /* What is left, like experts with a gap, would be refused as unknown. */
    for (size_t i = 0; draft->result == 0 && i < draft->n_tensors; i++)
        if (gguf_string_starts_with(draft->tensors[i].name, "mtp."))
            gguf_draft_drop(draft, &draft->tensors[i]);
}
