#include "gguf/models/kinds.h"

#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* In the order in which tensors decide: what contains another kind's tensors comes first. */
static const struct gguf_kind kinds[GGUF_N_KINDS] = {
    [GGUF_VOCABULARY] = {.name = "vocabulary without a model",
                         .use = "ggufs-run can only tokenize with it",
                         .is_no_network = true,
                         .has_language_tensors = true},
    /* convert_lora_to_gguf.py of llama.cpp; those for images are named as in their checkpoints */
    [GGUF_ADAPTER] = {.name = "low-rank adapter (LoRA)",
                      .use = "it changes its base model: llama-cli -m BASE --lora FILE",
                      .types = LIST("adapter"),
                      .signs = {{{"*.lora_a", "*.lora_b"}, NULL},
                                {{"*.lora_A.weight", "*.lora_B.weight"}, NULL},
                                {{"*.lora_down.weight", "*.lora_up.weight"}, NULL}}},
    [GGUF_IMATRIX] = {.name = "importance matrix",
                      .use = "it weighs errors of quantization: llama-quantize --imatrix FILE",
                      .types = LIST("imatrix"),
                      .is_no_network = true,
                      .signs = {{{"*.in_sum2", "*.counts"}, NULL}}},
    [GGUF_CONTROL_VECTOR] = {.name = "control vector",
                             .use = "it steers a model: llama-cli -m MODEL --control-vector FILE",
                             .architectures = LIST("controlvector"),
                             .is_no_network = true,
                             .signs = {{{"direction.*"}, NULL}}},
    [GGUF_PROJECTOR] = {.name = "multimodal projector (mmproj)",
                        .use = "it gives a model images or sound: llama-mtmd-cli -m MODEL --mmproj "
                               "FILE",
                        .types = LIST("mmproj", "clip-vision"),
                        .architectures = LIST("clip"),
                        .signs = {{{"v.blk.*", "mm.*"}, "clip"},
                                  {{"a.blk.*", "mm.*"}, "clip"},
                                  {{"v.patch_embd.*"}, "clip"}}},
    /*
     * Architectures and names: tools/convert.py and loader.py of ComfyUI-GGUF, and
     * src/model_loader.cpp of stable-diffusion.cpp, whose files have no metadata.
     */
    [GGUF_DIFFUSION] =
        {.name = "diffusion model",
         .use = "it makes images or video: sd --diffusion-model FILE, or ComfyUI",
         .types = LIST("diffusion"),
         .architectures = LIST("flux*", "sd1", "sd2", "sd3*", "sdxl", "aura", "hidream*", "cosmos*",
                               "ltxv*", "hyvid", "wan", "wan2*", "lumina2", "qwen_image*",
                               "z_image*", "chroma*", "krea2", "minimax_h3"),
         .signs = {{{"*double_stream_modulation_img.lin.weight"}, "flux2"},
                   {{"*double_blocks.0.img_attn.proj.weight", "*distilled_guidance_layer.*"},
                    "chroma"},
                   {{"*double_blocks.0.img_attn.proj.weight"}, "flux"},
                   {{"*joint_blocks.0.x_block.attn.qkv.weight"}, "sd3"},
                   {{"*double_layers.3.modX.1.weight"}, "aura"},
                   {{"*double_stream_blocks.0.block.*"}, "hidream"},
                   {{"*blocks.0.adaln_modulation_cross_attn.1.weight"}, "cosmos"},
                   {{"*double_blocks.0.img_attn_proj.weight"}, "hyvid"},
                   {{"*blocks.0.self_attn.norm_q.weight", "*head.modulation"}, "wan"},
                   {{"*adaln_single.emb.timestep_embedder.*"}, "ltxv"},
                   {{"*cap_embedder.1.weight", "*context_refiner.0.*"}, "lumina2"},
                   {{"*transformer_blocks.0.img_mod.1.weight"}, "qwen_image"},
                   {{"*label_emb.0.0.weight", "*input_blocks.*"}, "sdxl"},
                   {{"*add_embedding.linear_1.weight", "*down_blocks.*"}, "sdxl"},
                   {{"*input_blocks.11.0.in_layers.*"}, "sd1 or sd2"},
                   {{"*down_blocks.0.downsamplers.0.conv.weight", "*mid_block.*"}, "sd1 or sd2"},
                   {{"model.diffusion_model.*"}, NULL}}},
    /* Architectures: src/models of TTS.cpp, and llama.cpp's decoder of audio tokens */
    [GGUF_SPEECH_SYNTHESIS] = {.name = "speech synthesizer (TTS)",
                               .use = "it speaks text: llama-tts, or the program that made it",
                               .architectures = LIST("*tts*", "kokoro*", "dia", "orpheus", "bark",
                                                     "wavtokenizer-dec", "snac", "vocos",
                                                     "cosyvoice*", "chatterbox*"),
                               .has_language_tensors = true,
                               .signs = {{{"kokoro.*"}, "kokoro"},
                                         {{"dia.*"}, "dia"},
                                         {{"orpheus.*", "snac.*"}, "orpheus"},
                                         {{"posnet.*", "convnext.*"}, "wavtokenizer-dec"}}},
    [GGUF_SPEECH_RECOGNITION] =
        {.name = "speech recognizer",
         .use = "it writes down speech: whisper-cli -m FILE, or the "
                "program that made it",
         .architectures = LIST("whisper*", "*asr*", "parakeet*", "canary*",
                               "moonshine*", "sensevoice*", "paraformer*", "wav2vec2*", "voxtral*"),
         .has_language_tensors = true,
         .signs = {{{"encoder.conv1.weight", "decoder.token_embedding.weight"}, "whisper"},
                   {{"model.encoder.conv1.weight", "model.decoder.embed_tokens.weight"},
                    "whisper"}}},
    [GGUF_VOICE_DETECTOR] = {.name = "voice detector (VAD)",
                             .use = "it finds speech for whisper-cli --vad --vad-model FILE",
                             .architectures = LIST("silero-vad*", "*-vad"),
                             .signs = {{{"_model.stft.*", "_model.encoder.*"}, "silero-vad"}}},
    /* Architectures: src/llama-arch.cpp of llama.cpp */
    [GGUF_DRAFT] = {.name = "draft model",
                    .use = "it drafts tokens for its base model: llama-cli -m BASE -md FILE",
                    .architectures = LIST("eagle*", "dflash", "medusa*", "gemma4-assistant"),
                    .has_language_tensors = true,
                    .signs = {{{"fc.weight", "blk.*"}, NULL}, {{"d2t", "blk.*"}, NULL}}},
    [GGUF_EMBEDDING] = {.name = "embedding model",
                        .use = "it makes vectors of texts: llama-embedding -m FILE",
                        .architectures = LIST("*bert*", "*-embed*"),
                        .has_language_tensors = true,
                        .signs = {{{"token_types.weight", "blk.*"}, NULL}}},
    [GGUF_LANGUAGE_MODEL] = {.name = "language model",
                             .has_language_tensors = true,
                             .signs = {{{"token_embd.weight", "blk.*"}, NULL},
                                       {{"token_embd.weight", "dec.blk.*"}, NULL}}},
    [GGUF_TEXT_ENCODER] = {.name = "text encoder",
                           .use = "it prepares prompts for a diffusion model: sd --t5xxl FILE, or "
                                  "ComfyUI",
                           .architectures = LIST("t5encoder"),
                           .has_language_tensors = true,
                           .signs = {{{"enc.blk.*"}, "t5encoder"},
                                     {{"*text_model.encoder.layers.*"}, NULL}}},
    [GGUF_IMAGE_AUTOENCODER] = {.name = "image autoencoder (VAE)",
                                .use = "it turns what a diffusion model makes into images: sd "
                                       "--vae FILE, or ComfyUI",
                                .signs = {{{"*decoder.conv_in.weight", "*decoder.up.*"}, NULL},
                                          {{"*decoder.conv_in.weight", "*decoder.up_blocks.*"},
                                           NULL}}},
    [GGUF_OTHER] = {.name = "not recognized"},
};

const struct gguf_kind *gguf_kind_at(enum gguf_kind_id id)
{
    return &kinds[id];
}

bool gguf_name_matches(struct gguf_string name, const char *pattern)
{
    const bool is_open_start = pattern[0] == '*';
    const char *text = pattern + is_open_start;
    const size_t length = strcspn(text, "*");
    const bool is_open_end = text[length] == '*';

    if (name.length_bytes < length)
        return false;
    if (is_open_start && is_open_end)
        return memmem(name.data, name.length_bytes, text, length);
    if (is_open_start)
        return memcmp(name.data + name.length_bytes - length, text, length) == 0;
    return (is_open_end || name.length_bytes == length) && memcmp(name.data, text, length) == 0;
}

void gguf_kind_see(struct gguf_kind_names *names, struct gguf_string name)
{
    names->n_tensors++;
    for (size_t i = 0; i < GGUF_N_KINDS; i++) {
        const struct gguf_kind_sign *signs = kinds[i].signs;

        for (size_t j = 0; j < GGUF_MAX_KIND_SIGNS && signs[j].patterns[0]; j++)
            for (size_t k = 0; k < 2 && signs[j].patterns[k]; k++)
                if (gguf_name_matches(name, signs[j].patterns[k]))
                    names->seen[i] |= UINT64_C(1) << (2 * j + k);
    }
}

/* Return the first sign of a kind that was seen, or NULL. */
static const struct gguf_kind_sign *sign_of(size_t kind, const struct gguf_kind_names *names)
{
    const struct gguf_kind_sign *signs = kinds[kind].signs;

    for (size_t j = 0; j < GGUF_MAX_KIND_SIGNS && signs[j].patterns[0]; j++) {
        const uint64_t wanted = signs[j].patterns[1] ? 3 : 1;

        if ((names->seen[kind] >> (2 * j) & wanted) == wanted)
            return &signs[j];
    }
    return NULL;
}

static bool is_in(struct gguf_string name, const char *const *patterns)
{
    for (size_t i = 0; patterns && patterns[i]; i++)
        if (name.length_bytes > 0 && gguf_name_matches(name, patterns[i]))
            return true;
    return false;
}

static enum gguf_kind_id find_by_metadata(const struct gguf_kind_metadata *metadata)
{
    for (size_t i = 0; i < GGUF_N_KINDS; i++)
        if (is_in(metadata->type, kinds[i].types))
            return (enum gguf_kind_id)i;
    for (size_t i = 0; i < GGUF_N_KINDS; i++)
        if (is_in(metadata->architecture, kinds[i].architectures))
            return (enum gguf_kind_id)i;
    if (metadata->has_only_nextn)
        return GGUF_DRAFT;
    if (metadata->pooling_type > 0 && gguf_pooling_name(metadata->pooling_type))
        return GGUF_EMBEDDING;
    return metadata->has_layers ? GGUF_LANGUAGE_MODEL : GGUF_OTHER;
}

struct gguf_kind_found gguf_kind_find(const struct gguf_kind_metadata *metadata,
                                      const struct gguf_kind_names *names)
{
    struct gguf_kind_found found = {.id = find_by_metadata(metadata)};
    const struct gguf_kind_sign *sign = sign_of(found.id, names);

    if (names->n_tensors == 0 && metadata->has_vocabulary)
        found.id = GGUF_VOCABULARY;
    found.tensors = found.id;
    for (size_t i = 0; !sign && i < GGUF_N_KINDS; i++) {
        sign = sign_of(i, names);
        if (sign)
            found.tensors = (enum gguf_kind_id)i;
    }
    found.architecture = sign ? sign->architecture : NULL;
    if (found.id == GGUF_OTHER) {
        found.id = found.tensors;
        found.is_by_tensors = true;
    } else if (kinds[found.id].has_language_tensors && kinds[found.tensors].has_language_tensors) {
        found.tensors = found.id;
    }
    return found;
}

const char *gguf_pooling_name(uint64_t type)
{
    /* enum llama_pooling_type in include/llama.h of llama.cpp */
    static const char *const names[] = {"none", "mean", "CLS token", "last token",
                                        "rank: the model is a reranker"};

    return type < sizeof names / sizeof *names ? names[type] : NULL;
}
