#include "gguf/models/kinds.h"

#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* clang-format off */
#define VALUE(label, key)     {label, key, GGUF_FACT_VALUE}
#define COMPUTED(label, fact) {label, NULL, GGUF_FACT_##fact}
/* clang-format on */

/* Lines for the keys of a transformer, under the architecture's name. */
#define BASE COMPUTED("base", BASE)
#define SIZES                                                                                      \
    VALUE("context length", ".context_length"), VALUE("layers", ".block_count"),                   \
        VALUE("embedding width", ".embedding_length"), COMPUTED("heads", HEADS),                   \
        COMPUTED("experts", EXPERTS)
#define VOCABULARY COMPUTED("vocabulary", VOCABULARY_IF_ANY)

/* Keys: tools/quantize/quantize.cpp of llama.cpp. */
#define QUANTIZED_WITH                                                                             \
    VALUE("imatrix", "quantize.imatrix.file"), VALUE("imatrix text", "quantize.imatrix.dataset")

static const struct gguf_kind_line language_model_lines[] = {
    SIZES,
    VALUE("MTP layers", ".nextn_predict_layers"),
    BASE,
    QUANTIZED_WITH,
    COMPUTED("vocabulary", VOCABULARY),
    COMPUTED("chat template", CHAT_TEMPLATE),
    {0},
};

static const struct gguf_kind_line embedding_lines[] = {
    SIZES,
    COMPUTED("pooling", POOLING),
    BASE,
    QUANTIZED_WITH,
    COMPUTED("vocabulary", VOCABULARY),
    COMPUTED("chat template", CHAT_TEMPLATE),
    {0},
};

static const struct gguf_kind_line speech_synthesis_lines[] = {
    SIZES, VALUE("voices", ".voices"), BASE, VOCABULARY, {0}};

static const struct gguf_kind_line transformer_lines[] = {SIZES, BASE, VOCABULARY, {0}};

static const struct gguf_kind_line vocabulary_lines[] = {
    SIZES,
    COMPUTED("vocabulary", VOCABULARY),
    COMPUTED("chat template", CHAT_TEMPLATE),
    {0},
};

static const struct gguf_kind_line draft_lines[] = {
    BASE,
    VALUE("target layers", ".target_layers"),
    VALUE("target width", ".target_hidden_size"),
    SIZES,
    VALUE("MTP layers", ".nextn_predict_layers"),
    VALUE("block size", ".block_size"),
    VOCABULARY,
    {0},
};

/* Keys: Keys.Adapter in gguf-py/gguf/constants.py of llama.cpp. */
static const struct gguf_kind_line adapter_lines[] = {
    BASE,
    VALUE("method", "adapter.type"),
    VALUE("task", "adapter.lora.task_name"),
    VALUE("prompt prefix", "adapter.lora.prompt_prefix"),
    COMPUTED("rank", RANK),
    VALUE("alpha", "adapter.lora.alpha"),
    VALUE("invoked by", "adapter.alora.invocation_tokens"),
    {0},
};

/* Keys: Keys.IMatrix there. */
static const struct gguf_kind_line imatrix_lines[] = {
    VALUE("datasets", "imatrix.datasets"),
    VALUE("chunks", "imatrix.chunk_count"),
    VALUE("chunk size", "imatrix.chunk_size"),
    COMPUTED("covers", IMPORTANCE),
    {0},
};

/* Keys: export_gguf() in tools/cvector-generator/cvector-generator.cpp there. */
static const struct gguf_kind_line control_vector_lines[] = {
    VALUE("model hint", "controlvector.model_hint"),
    VALUE("layers", "controlvector.layer_count"),
    {0},
};

/* Keys: tools/mtmd/clip-impl.h there. */
static const struct gguf_kind_line projector_lines[] = {
    BASE,
    VALUE("images", "clip.has_vision_encoder"),
    VALUE("sound", "clip.has_audio_encoder"),
    VALUE("projector", "clip.projector_type"),
    VALUE("image projector", "clip.vision.projector_type"),
    VALUE("image size", "clip.vision.image_size"),
    VALUE("patch size", "clip.vision.patch_size"),
    VALUE("image layers", "clip.vision.block_count"),
    VALUE("image width", "clip.vision.embedding_length"),
    VALUE("image output", "clip.vision.projection_dim"),
    VALUE("audio projector", "clip.audio.projector_type"),
    VALUE("mel bands", "clip.audio.num_mel_bins"),
    VALUE("audio layers", "clip.audio.block_count"),
    VALUE("audio width", "clip.audio.embedding_length"),
    VALUE("audio output", "clip.audio.projection_dim"),
    {0},
};

static const struct gguf_kind_line diffusion_lines[] = {BASE, {0}};

/* Keys: docs/gguf.md of ggml, and the converters of CrispASR (models/). */
static const struct gguf_kind_line speech_recognition_lines[] = {
    VALUE("sample rate", ".sample_rate"),
    VALUE("mel bands", ".n_mels"),
    VALUE("mel bands", ".encoder.mels_count"),
    VALUE("audio context", ".encoder.context_length"),
    VALUE("audio layers", ".encoder.block_count"),
    VALUE("audio width", ".encoder.embedding_length"),
    VALUE("text context", ".decoder.context_length"),
    VALUE("text layers", ".decoder.block_count"),
    VALUE("text width", ".decoder.embedding_length"),
    VALUE("layers", ".n_layers"),
    VALUE("width", ".d_model"),
    SIZES,
    VOCABULARY,
    {0},
};

static const struct gguf_kind_line no_lines[] = {{0}};

/* In the order in which tensors decide: what contains another kind's tensors comes first. */
static const struct gguf_kind kinds[GGUF_N_KINDS] = {
    [GGUF_VOCABULARY] = {.name = "vocabulary without a model",
                         .article = "a",
                         .use = "ggufs-run can only tokenize with it",
                         .is_no_network = true,
                         .has_language_tensors = true,
                         .lines = vocabulary_lines},
    /* convert_lora_to_gguf.py of llama.cpp; those for images are named as in their checkpoints */
    [GGUF_ADAPTER] = {.name = "low-rank adapter (LoRA)",
                      .article = "a",
                      .use = "it changes its base model: llama-cli -m BASE --lora FILE",
                      .types = LIST("adapter"),
                      .signs = {{{"*.lora_a", "*.lora_b"}, NULL},
                                {{"*.lora_A.weight", "*.lora_B.weight"}, NULL},
                                {{"*.lora_down.weight", "*.lora_up.weight"}, NULL}},
                      .lines = adapter_lines},
    [GGUF_IMATRIX] = {.name = "importance matrix",
                      .article = "an",
                      .use = "it weighs errors of quantization: llama-quantize --imatrix FILE",
                      .types = LIST("imatrix"),
                      .is_no_network = true,
                      .signs = {{{"*.in_sum2", "*.counts"}, NULL}},
                      .lines = imatrix_lines},
    [GGUF_CONTROL_VECTOR] = {.name = "control vector",
                             .article = "a",
                             .use = "it steers a model: llama-cli -m MODEL --control-vector FILE",
                             .architectures = LIST("controlvector"),
                             .is_no_network = true,
                             .signs = {{{"direction.*"}, NULL}},
                             .lines = control_vector_lines},
    [GGUF_PROJECTOR] = {.name = "multimodal projector (mmproj)",
                        .article = "a",
                        .use = "it gives a model images or sound: llama-mtmd-cli -m MODEL --mmproj "
                               "FILE",
                        .types = LIST("mmproj", "clip-vision"),
                        .architectures = LIST("clip"),
                        .signs = {{{"v.blk.*", "mm.*"}, "clip"},
                                  {{"a.blk.*", "mm.*"}, "clip"},
                                  {{"v.patch_embd.*"}, "clip"}},
                        .lines = projector_lines},
    /*
     * Architectures and names: tools/convert.py and loader.py of ComfyUI-GGUF, and
     * src/model_loader.cpp of stable-diffusion.cpp, whose files have no metadata.
     */
    [GGUF_DIFFUSION] =
        {.name = "diffusion model",
         .article = "a",
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
                   {{"model.diffusion_model.*"}, NULL}},
         .lines = diffusion_lines},
    /* Architectures: src/models of TTS.cpp, and llama.cpp's decoder of audio tokens */
    [GGUF_SPEECH_SYNTHESIS] = {.name = "speech synthesizer (TTS)",
                               .article = "a",
                               .use = "it speaks text: llama-tts, or the program that made it",
                               .architectures = LIST("*tts*", "kokoro*", "dia", "orpheus", "bark",
                                                     "wavtokenizer-dec", "snac", "vocos",
                                                     "cosyvoice*", "chatterbox*"),
                               .has_language_tensors = true,
                               .signs = {{{"kokoro.*"}, "kokoro"},
                                         {{"dia.*"}, "dia"},
                                         {{"orpheus.*", "snac.*"}, "orpheus"},
                                         {{"posnet.*", "convnext.*"}, "wavtokenizer-dec"}},
                               .lines = speech_synthesis_lines},
    [GGUF_SPEECH_RECOGNITION] =
        {.name = "speech recognizer",
         .article = "a",
         .use = "it writes down speech: whisper-cli -m FILE, or the "
                "program that made it",
         .architectures = LIST("whisper*", "*asr*", "parakeet*", "canary*",
                               "moonshine*", "sensevoice*", "paraformer*", "wav2vec2*", "voxtral*"),
         .has_language_tensors = true,
         .signs = {{{"encoder.conv1.weight", "decoder.token_embedding.weight"}, "whisper"},
                   {{"model.encoder.conv1.weight", "model.decoder.embed_tokens.weight"},
                    "whisper"}},
         .lines = speech_recognition_lines},
    [GGUF_VOICE_DETECTOR] = {.name = "voice detector (VAD)",
                             .article = "a",
                             .use = "it finds speech for whisper-cli --vad --vad-model FILE",
                             .architectures = LIST("silero-vad*", "*-vad"),
                             .signs = {{{"_model.stft.*", "_model.encoder.*"}, "silero-vad"}},
                             .lines = transformer_lines},
    /* Architectures: src/llama-arch.cpp of llama.cpp */
    [GGUF_DRAFT] = {.name = "draft model",
                    .article = "a",
                    .use = "it drafts tokens for its base model: llama-cli -m BASE -md FILE",
                    .architectures = LIST("eagle*", "dflash", "medusa*", "gemma4-assistant"),
                    .has_language_tensors = true,
                    .signs = {{{"fc.weight", "blk.*"}, NULL}, {{"d2t", "blk.*"}, NULL}},
                    .lines = draft_lines},
    [GGUF_EMBEDDING] = {.name = "embedding model",
                        .article = "an",
                        .use = "it makes vectors of texts: llama-embedding -m FILE",
                        .architectures = LIST("*bert*", "*-embed*"),
                        .has_language_tensors = true,
                        .signs = {{{"token_types.weight", "blk.*"}, NULL}},
                        .lines = embedding_lines},
    [GGUF_LANGUAGE_MODEL] = {.name = "language model",
                             .article = "a",
                             .has_language_tensors = true,
                             .signs = {{{"token_embd.weight", "blk.*"}, NULL},
                                       {{"token_embd.weight", "dec.blk.*"}, NULL}},
                             .lines = language_model_lines},
    [GGUF_TEXT_ENCODER] = {.name = "text encoder",
                           .article = "a",
                           .use = "it prepares prompts for a diffusion model: sd --t5xxl FILE, or "
                                  "ComfyUI",
                           .architectures = LIST("t5encoder"),
                           .has_language_tensors = true,
                           .signs = {{{"enc.blk.*"}, "t5encoder"},
                                     {{"*text_model.encoder.layers.*"}, NULL}},
                           .lines = transformer_lines},
    [GGUF_IMAGE_AUTOENCODER] = {.name = "image autoencoder (VAE)",
                                .article = "an",
                                .use = "it turns what a diffusion model makes into images: sd "
                                       "--vae FILE, or ComfyUI",
                                .signs = {{{"*decoder.conv_in.weight", "*decoder.up.*"}, NULL},
                                          {{"*decoder.conv_in.weight", "*decoder.up_blocks.*"},
                                           NULL}},
                                .lines = no_lines},
    [GGUF_OTHER] = {.name = "not recognized", .lines = transformer_lines},
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
