/* The table of kinds of files. */
#include <criterion/criterion.h>
#include <string.h>

#include "gguf/models/kinds.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gguf_string text(const char *string)
{
    return (struct gguf_string){string, string ? strlen(string) : 0};
}

Test(gguf_kinds, patterns)
{
    static const struct {
        const char *name, *pattern;
        bool matches;
    } cases[] = {
        {"ab", "ab", true},     {"ab", "abc", false},   {"abc", "ab", false},
        {"abc", "ab*", true},   {"ab", "ab*", true},    {"xab", "ab*", false},
        {"xab", "*ab", true},   {"xabx", "*ab", false}, {"ab", "*ab", true},
        {"b", "*ab", false},    {"xabx", "*ab*", true}, {"ab", "*ab*", true},
        {"axb", "*ab*", false}, {"", "ab", false},      {"", "*ab*", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        cr_expect_eq(gguf_name_matches(text(cases[i].name), cases[i].pattern), cases[i].matches,
                     "%s %s", cases[i].name, cases[i].pattern);
}

struct example {
    const char *type, *architecture;
    const char *names[4];
    enum gguf_kind_id id, tensors;
    const char *of_tensors;
    bool has_layers, has_only_nextn, has_vocabulary;
    uint64_t pooling_type;
};

#define NAMES(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define LLAMA_NAMES NAMES("token_embd.weight", "blk.0.attn_q.weight")
#define LORA_NAMES  NAMES("blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b")
#define SAME(kind)  .id = GGUF_##kind, .tensors = GGUF_##kind

static const struct example examples[] = {
    /* by metadata, whatever the tensors are called */
    {"adapter", "llama", NAMES("x"), SAME(ADAPTER), .has_layers = true},
    {"imatrix", NULL, NAMES("x"), SAME(IMATRIX)},
    {"mmproj", "clip", NAMES("x"), SAME(PROJECTOR)},
    {"model", "clip", NAMES("x"), SAME(PROJECTOR)},
    {NULL, "controlvector", NAMES("x"), SAME(CONTROL_VECTOR)},
    {NULL, "flux", NAMES("x"), SAME(DIFFUSION)},
    {NULL, "qwen_image_edit", NAMES("x"), SAME(DIFFUSION)},
    {"model", "parler-tts", NAMES("x"), SAME(SPEECH_SYNTHESIS)},
    {"model", "qwen3tts", LLAMA_NAMES, SAME(SPEECH_SYNTHESIS), .has_layers = true},
    {NULL, "whisper", NAMES("x"), SAME(SPEECH_RECOGNITION)},
    {NULL, "silero-vad", NAMES("x"), SAME(VOICE_DETECTOR), .has_layers = true},
    {"model", "eagle3", LLAMA_NAMES, SAME(DRAFT), .has_layers = true},
    {"model", "glm4moe", NAMES("x"), SAME(DRAFT), .has_layers = true, .has_only_nextn = true},
    {"model", "nomic-bert-moe", LLAMA_NAMES, SAME(EMBEDDING), .has_layers = true},
    {"model", "qwen3", LLAMA_NAMES, SAME(EMBEDDING), .has_layers = true, .pooling_type = 3},
    {"model", "t5encoder", NAMES("enc.blk.0.x"), SAME(TEXT_ENCODER), .of_tensors = "t5encoder"},
    {"model", "llama", LLAMA_NAMES, SAME(LANGUAGE_MODEL), .has_layers = true},
    {"model", "unheard-of", NAMES("x"), SAME(LANGUAGE_MODEL), .has_layers = true},
    {NULL, "llama", NAMES(NULL), SAME(VOCABULARY), .has_layers = true, .has_vocabulary = true},
    {NULL, "bert", NAMES(NULL), SAME(VOCABULARY), .has_layers = true, .has_vocabulary = true},

    /* llama.cpp writes this value for a model without pooling type */
    {NULL, "llama", LLAMA_NAMES, SAME(LANGUAGE_MODEL), .has_layers = true,
     .pooling_type = UINT32_MAX},

    /* by tensors, where the metadata say nothing */
    {NULL, NULL, LORA_NAMES, SAME(ADAPTER)},
    {NULL, NULL, NAMES("a.lora_down.weight", "a.lora_up.weight"), SAME(ADAPTER)},
    {NULL, NULL, NAMES("a.in_sum2", "a.counts"), SAME(IMATRIX)},
    {NULL, NULL, NAMES("direction.1"), SAME(CONTROL_VECTOR)},
    {NULL, NULL, NAMES("v.blk.0.attn_q.weight", "mm.0.weight"), SAME(PROJECTOR),
     .of_tensors = "clip"},
    {NULL, NULL, NAMES("a.blk.0.attn_q.weight", "mm.a.mlp.1.weight"), SAME(PROJECTOR),
     .of_tensors = "clip"},
    {NULL, NULL, NAMES("double_blocks.0.img_attn.proj.weight"), SAME(DIFFUSION),
     .of_tensors = "flux"},
    {NULL, NULL, NAMES("double_blocks.0.img_attn.proj.weight", "distilled_guidance_layer.x"),
     SAME(DIFFUSION), .of_tensors = "chroma"},
    {NULL, NULL,
     NAMES("double_blocks.0.img_attn.proj.weight", "double_stream_modulation_img.lin.weight"),
     SAME(DIFFUSION), .of_tensors = "flux2"},
    {NULL, "pig", NAMES("model.diffusion_model.joint_blocks.0.x_block.attn.qkv.weight"),
     SAME(DIFFUSION), .of_tensors = "sd3"},
    {NULL, NULL, NAMES("model.diffusion_model.x", "first_stage_model.decoder.conv_in.weight"),
     SAME(DIFFUSION)},
    {NULL, NULL, NAMES("kokoro.decoder.x"), SAME(SPEECH_SYNTHESIS), .of_tensors = "kokoro"},
    {NULL, NULL, NAMES("encoder.conv1.weight", "decoder.token_embedding.weight"),
     SAME(SPEECH_RECOGNITION), .of_tensors = "whisper"},
    {NULL, NULL, NAMES("_model.stft.x", "_model.encoder.0.x"), SAME(VOICE_DETECTOR),
     .of_tensors = "silero-vad"},
    {NULL, NULL, NAMES("fc.weight", "blk.0.attn_q.weight", "token_embd.weight"), SAME(DRAFT)},
    {NULL, NULL, NAMES("token_types.weight", "token_embd.weight", "blk.0.x"), SAME(EMBEDDING)},
    {NULL, NULL, LLAMA_NAMES, SAME(LANGUAGE_MODEL)},
    {NULL, NULL, NAMES("token_embd.weight", "enc.blk.0.x", "dec.blk.0.x"), SAME(LANGUAGE_MODEL)},
    {NULL, NULL, NAMES("token_embd.weight", "enc.blk.0.x"), SAME(TEXT_ENCODER),
     .of_tensors = "t5encoder"},
    {NULL, NULL, NAMES("decoder.conv_in.weight", "decoder.up.0.x"), SAME(IMAGE_AUTOENCODER)},
    {NULL, NULL, NAMES("x", "y"), SAME(OTHER)},
    {NULL, NULL, NAMES(NULL), SAME(OTHER)},
    {"model", "mnist-cnn", NAMES("conv1.kernel"), SAME(OTHER)},

    /* one half, or one of two names, shows nothing */
    {NULL, NULL, NAMES("a.in_sum2", "a.lora_a", "fc.weight", "v.blk.0.x"), SAME(OTHER)},

    /* both, and they contradict each other */
    {"model", "llama", LORA_NAMES, .id = GGUF_LANGUAGE_MODEL, .tensors = GGUF_ADAPTER,
     .has_layers = true},
    {"adapter", "llama", LLAMA_NAMES, .id = GGUF_ADAPTER, .tensors = GGUF_LANGUAGE_MODEL,
     .has_layers = true},
    {"imatrix", NULL, LORA_NAMES, .id = GGUF_IMATRIX, .tensors = GGUF_ADAPTER},
    {NULL, "flux", NAMES("encoder.conv1.weight", "decoder.token_embedding.weight"),
     .id = GGUF_DIFFUSION, .tensors = GGUF_SPEECH_RECOGNITION, .of_tensors = "whisper"},
};

static struct gguf_kind_found find(const struct example *example)
{
    const struct gguf_kind_metadata metadata = {
        text(example->type), text(example->architecture), example->has_vocabulary,
        example->has_layers, example->has_only_nextn,     example->pooling_type};
    struct gguf_kind_names names = {0};

    for (size_t i = 0; i < COUNT(example->names) && example->names[i]; i++)
        gguf_kind_see(&names, text(example->names[i]));
    return gguf_kind_find(&metadata, &names);
}

Test(gguf_kinds, examples)
{
    bool is_seen[GGUF_N_KINDS] = {false};

    for (size_t i = 0; i < COUNT(examples); i++) {
        const struct gguf_kind_found found = find(&examples[i]);

        cr_expect_eq(found.id, examples[i].id, "%zu: %s", i, gguf_kind_at(found.id)->name);
        cr_expect_eq(found.tensors, examples[i].tensors, "%zu: %s", i,
                     gguf_kind_at(found.tensors)->name);
        if (examples[i].of_tensors)
            cr_expect_str_eq(found.architecture, examples[i].of_tensors, "%zu", i);
        else
            cr_expect_null(found.architecture, "%zu", i);
        is_seen[found.id] = true;
    }
    for (size_t i = 0; i < GGUF_N_KINDS; i++)
        cr_expect(is_seen[i], "no example of %s", gguf_kind_at((enum gguf_kind_id)i)->name);
}

/* Each architecture and each sign of a row leads to that row. */
Test(gguf_kinds, rows)
{
    for (size_t i = 0; i < GGUF_N_KINDS; i++) {
        const struct gguf_kind *kind = gguf_kind_at((enum gguf_kind_id)i);

        cr_assert_not_null(kind->name);
        for (size_t j = 0; kind->types && kind->types[j]; j++)
            cr_expect_eq(find(&(struct example){.type = kind->types[j], .names = {"x"}}).id, i);
        for (size_t j = 0; kind->architectures && kind->architectures[j]; j++) {
            const char *pattern = kind->architectures[j];
            char name[64] = "";

            for (size_t k = 0; k < strlen(pattern); k++)
                name[k] = pattern[k] == '*' ? '_' : pattern[k];
            cr_expect_eq(find(&(struct example){.architecture = name, .names = {"x"}}).id, i, "%s",
                         name);
        }
    }
}
