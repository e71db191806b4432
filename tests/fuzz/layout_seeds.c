#include "tests/fuzz/layout_seeds.h"

#include <stdio.h>
#include <string.h>

void layout_seeds_make(void (*finish)(struct gguf_writer *w, const char *architecture))
{
    static const char *const architectures[] = {
        "gemma3",   "gemma3n", "gemma4",      "qwen35moe",       "qwen25vl", "qwen3vl",
        "mistral3", "llama4",  "deepseekocr", "nemotron_h_omni", "glmocr"};
    static const char *const keys[] = {"vision.block_count", "vision.attention.head_count",
                                       "vision.patch_size", "embedding_length"};
    static const char *const tensors[] = {"token_embd.weight",
                                          "blk.0.ffn_gate.weight",
                                          "blk.0.ffn_up.weight",
                                          "blk.0.ffn_gate_exps.weight",
                                          "blk.0.ffn_up_exps.weight",
                                          "blk.0.ssm_dt",
                                          "mtp.norm.weight",
                                          "mtp.layers.0.mlp.experts.0.up_proj.weight",
                                          "mtp.layers.0.mlp.experts.1.up_proj.weight",
                                          "v.blk.0.attn_q.weight",
                                          "v.blk.0.attn_k.weight",
                                          "v.blk.0.attn_v.weight",
                                          "v.patch_embed.weight",
                                          "v.deepstack_merger.0.norm.weight",
                                          "mm.linear_1.weight"};
    static const uint64_t ne[] = {2, 2, 2, 6};

    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        char name[64];

        gguf_writer_add_string(w, "general.architecture", architectures[i]);
        for (size_t j = 0; j < sizeof keys / sizeof *keys; j++) {
            snprintf(name, sizeof name, "%s.%s", architectures[i], keys[j]);
            gguf_writer_add_u32(w, name, 1);
        }
        for (size_t j = 0; j < sizeof tensors / sizeof *tensors; j++)
            gguf_writer_add_tensor(w, tensors[j], strlen(tensors[j]), 4, ne, 0, NULL, 4 * 48);
        finish(w, architectures[i]);
    }
}
