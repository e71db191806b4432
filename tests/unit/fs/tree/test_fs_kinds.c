/* summary.txt and info of files other than language models. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_kinds, .init = model_file_begin_test);

enum { F32 };

static void add(struct gguf_writer *w, const char *name, uint64_t n_columns, uint64_t n_rows,
                const void *data)
{
    gguf_writer_add_tensor(w, name, strlen(name), n_rows > 0 ? 2 : 1,
                           (uint64_t[]){n_columns, n_rows}, F32, data,
                           n_columns * (n_rows > 0 ? n_rows : 1) * sizeof(float));
}

/* Check that a file has a part. */
static void expect_part(struct fs_tree *tree, const char *path, const char *part)
{
    struct tree_file file = tree_file_read(tree, path);

    cr_expect_not_null(strstr(file.bytes, part), "%s", file.bytes);
    free(file.bytes);
}

/* Check that the summary of the file has these lines, between the size and the check. */
static void expect_lines(struct gguf_writer *w, const char *kind, const char *lines)
{
    struct gguf_model *model = model_file_make(w);
    struct fs_tree *tree = tree_file_make_tree(model);
    struct tree_file file = tree_file_read(tree, "summary.txt");
    char *start = strstr(file.bytes, "\nsize "), *end = strstr(file.bytes, "\ncheck ");
    char expected[256];

    snprintf(expected, sizeof expected, "kind            %s\n", kind);
    cr_expect_not_null(strstr(file.bytes, expected), "%s", file.bytes);
    cr_assert(start && end, "%s", file.bytes);
    start = strchr(start + 1, '\n');
    end[1] = '\0';
    cr_expect_str_eq(start + 1, lines);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_kinds, an_adapter)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "llama");
    gguf_writer_add_string(w, "general.type", "adapter");
    gguf_writer_add_u32(w, "general.base_model.count", 2);
    gguf_writer_add_string(w, "general.base_model.0.name", "Base \x1b One");
    gguf_writer_add_string(w, "general.base_model.0.organization", "Some People");
    gguf_writer_add_string(w, "general.base_model.0.repo_url", "https://example.org/base");
    gguf_writer_add_string(w, "adapter.type", "lora");
    gguf_writer_add_f32(w, "adapter.lora.alpha", 12);
    gguf_writer_add_array(w, "adapter.alora.invocation_tokens", GGUF_WRITER_U32, 2);
    gguf_writer_u32(w, 7);
    gguf_writer_u32(w, 9);
    add(w, "blk.0.attn_q.weight.lora_a", 32, 8, NULL);
    add(w, "blk.0.attn_q.weight.lora_b", 8, 16, NULL);
    add(w, "blk.12.attn_q.weight.lora_a", 32, 8, NULL);
    add(w, "blk.12.attn_q.weight.lora_b", 8, 16, NULL);
    add(w, "output.weight.lora_b", 8, 16, NULL);
    add(w, "output.weight.lora_a", 32, 8, NULL);
    add(w, "token_embd.weight.lora_a", 8, 32, NULL); /* transposed */
    add(w, "token_embd.weight.lora_b", 8, 32, NULL);
    add(w, "blk.0.attn_norm.weight", 32, 0, NULL);
    expect_lines(w, "low-rank adapter (LoRA)",
                 "base            Base \\x1b One by Some People, https://example.org/base; a model "
                 "without a name\n"
                 "method          lora\n"
                 "rank            8\n"
                 "alpha           12\n"
                 "invoked by      7, 9\n");
}

/* Factors whose other one is missing or has another rank, several ranks, no alpha. */
Test(fs_kinds, an_odd_adapter)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_f32(w, "adapter.lora.alpha", 0);
    add(w, "blk.0.a.lora_a", 32, 4, NULL);
    add(w, "blk.0.a.lora_b", 4, 16, NULL);
    add(w, "blk.0.b.lora_a", 32, 16, NULL);
    add(w, "blk.0.b.lora_b", 16, 16, NULL);
    add(w, "blk.0.c.lora_a", 32, 16, NULL);
    add(w, "blk.0.d.lora_b", 16, 32, NULL);
    add(w, "blk.0.e.lora_a", 32, 16, NULL);
    add(w, "blk.0.e.lora_b", 5, 32, NULL);
    add(w, ".lora_a", 32, 16, NULL);
    expect_lines(w, "low-rank adapter (LoRA)",
                 "rank            4 to 16\n"
                 "alpha           0\n");
}

Test(fs_kinds, a_control_vector)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "controlvector");
    gguf_writer_add_string(w, "controlvector.model_hint", "gemma3");
    gguf_writer_add_i32(w, "controlvector.layer_count", 2);
    add(w, "direction.3", 16, 0, NULL);
    add(w, "direction.20", 16, 0, NULL);
    add(w, "direction.x", 16, 0, NULL);
    add(w, "direction.", 16, 0, NULL);
    expect_lines(w, "control vector",
                 "model hint      gemma3\n"
                 "layers          2\n");
}

Test(fs_kinds, a_projector)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "clip");
    gguf_writer_add_string(w, "general.type", "mmproj");
    gguf_writer_add_bool(w, "clip.has_vision_encoder", true);
    gguf_writer_add_bool(w, "clip.has_audio_encoder", false);
    gguf_writer_add_string(w, "clip.vision.projector_type", "qwen2.5vl_merger");
    gguf_writer_add_string(w, "clip.audio.projector_type", "qwen2a");
    gguf_writer_add_u32(w, "clip.vision.image_size", 560);
    gguf_writer_add_u32(w, "clip.vision.patch_size", 14);
    gguf_writer_add_u32(w, "clip.vision.block_count", 32);
    gguf_writer_add_u32(w, "clip.vision.projection_dim", 3584);
    gguf_writer_add_u32(w, "clip.audio.num_mel_bins", 128);
    add(w, "v.blk.0.attn_q.weight", 4, 4, NULL);
    expect_lines(w, "multimodal projector (mmproj)",
                 "images          yes\n"
                 "sound           no\n"
                 "image projector qwen2.5vl_merger\n"
                 "image size      560\n"
                 "patch size      14\n"
                 "image layers    32\n"
                 "image output    3584\n"
                 "audio projector qwen2a\n"
                 "mel bands       128\n");
}

Test(fs_kinds, a_diffusion_model)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_u32(w, "general.base_model.count", 1);
    gguf_writer_add_string(w, "general.base_model.0.name", "Base");
    add(w, "model.diffusion_model.double_blocks.0.img_attn.proj.weight", 4, 4, NULL);
    add(w, "first_stage_model.decoder.up_blocks.3.weight", 4, 4, NULL);
    expect_lines(w, "diffusion model", "base            Base\n");
}

Test(fs_kinds, architecture_by_tensors)
{
    for (int i = 0; i < 2; i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct gguf_model *model;
        struct fs_tree *tree;

        if (i > 0)
            gguf_writer_add_string(w, "general.architecture", "pig");
        add(w, "joint_blocks.0.x_block.attn.qkv.weight", 4, 4, NULL);
        model = model_file_make(w);
        tree = tree_file_make_tree(model);
        expect_part(tree, "summary.txt",
                    i ? "\narchitecture    pig (sd3 by its tensors)\n"
                      : "\narchitecture    sd3 (by its tensors)\n");
        fs_tree_free(tree);
        gguf_close(model);
    }
}

Test(fs_kinds, speech)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "whisper");
    gguf_writer_add_u32(w, "whisper.encoder.mels_count", 80);
    gguf_writer_add_u32(w, "whisper.encoder.block_count", 4);
    gguf_writer_add_u32(w, "whisper.decoder.block_count", 4);
    gguf_writer_add_u32(w, "whisper.vocab_size", 51865);
    add(w, "encoder.conv1.weight", 4, 4, NULL);
    expect_lines(w, "speech recognizer",
                 "mel bands       80\n"
                 "audio layers    4\n"
                 "text layers     4\n");
}

Test(fs_kinds, draft_and_embedding_models)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "eagle3");
    gguf_writer_add_u32(w, "general.base_model.count", 1);
    gguf_writer_add_string(w, "general.base_model.0.name", "Target");
    gguf_writer_add_u32(w, "eagle3.block_count", 1);
    gguf_writer_add_array(w, "eagle3.target_layers", GGUF_WRITER_I32, 3);
    gguf_writer_i32(w, 2);
    gguf_writer_i32(w, -1);
    gguf_writer_i32(w, 29);
    gguf_writer_add_u32(w, "eagle3.target_hidden_size", 4096);
    add(w, "d2t", 100, 0, NULL);
    add(w, "blk.0.attn_q.weight", 4, 4, NULL);
    expect_lines(w, "draft model",
                 "layers          1\n"
                 "target layers   2, -1, 29\n"
                 "target width    4096\n"
                 "base            Target\n");

    w = gguf_writer_open(3, false);
    gguf_writer_add_string(w, "general.architecture", "bert");
    gguf_writer_add_u32(w, "bert.block_count", 2);
    gguf_writer_add_u32(w, "bert.pooling_type", 2);
    add(w, "token_embd.weight", 4, 4, NULL);
    add(w, "blk.0.attn_q.weight", 4, 4, NULL);
    expect_lines(w, "embedding model",
                 "layers          2\n"
                 "pooling         CLS token\n"
                 "vocabulary      none\n"
                 "chat template   no\n");
}

Test(fs_kinds, a_contradiction)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.type", "adapter");
    add(w, "a.in_sum2", 4, 4, NULL);
    add(w, "a.counts", 1, 4, NULL);
    expect_lines(w,
                 "low-rank adapter (LoRA) by its metadata, but the tensors are those of an "
                 "importance matrix",
                 "covers          1 tensor\n");
}

/* ---- importance matrices ---- */

static const float sums[12] = {2, 4, 6, 8, 1, 1, 1, 1, 9, INFINITY, NAN, -3};

static struct gguf_writer *begin_imatrix(bool big_endian)
{
    struct gguf_writer *w = gguf_writer_open(3, big_endian);

    gguf_writer_add_string(w, "general.type", "imatrix");
    gguf_writer_add_strings(w, "imatrix.datasets", (const char *const[]){"a.txt", "b.txt"}, 2);
    gguf_writer_add_u32(w, "imatrix.chunk_count", 100);
    gguf_writer_add_u32(w, "imatrix.chunk_size", 512);
    return w;
}

Test(fs_kinds, an_importance_matrix)
{
    struct gguf_writer *w = begin_imatrix(false);

    add(w, "blk.0.x.weight.in_sum2", 4, 3, sums);
    add(w, "blk.0.x.weight.counts", 1, 3, (float[]){2, 0, 3});
    add(w, "y.counts", 1, 0, (float[]){2});
    add(w, "y.in_sum2", 4, 0, sums);
    add(w, "y.in_sum", 4, 0, sums);
    add(w, "alone.in_sum2", 4, 0, sums);
    add(w, "lonely.counts", 1, 0, sums);
    add(w, "odd.in_sum2", 4, 0, sums);
    add(w, "odd.counts", 3, 0, sums);
    expect_lines(w, "importance matrix",
                 "datasets        a.txt, b.txt\n"
                 "chunks          100\n"
                 "chunk size      512\n"
                 "covers          4 tensors\n");
}
