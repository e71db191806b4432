#include "tests/unit/gguf/old_file.h"

#include "gguf/legacy/families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct old_file files[] = {
    {"lmgg", 0, "llama", 2, 2, 20, false, 0, 0},
    {"fmgg", 1, "llama", 3, 3, 24, false, 0, 0},
    {"tjgg", 1, "llama", 8, 6, 22, false, 0, 0},
    {"tjgg", 2, "llama", 7, 8, 36, false, 0, 0},
    {"tjgg", 3, "llama", 2, 2, 18, false, 0, 0},
    {"tjgg", 1, "llama", 1, 1, 64, true, 0, 0},
    {"lmgg", 0, "whisper", 1, 1, 64, false, 0, 0},
    {"lmgg", 0, "whisper", 1, 1, 64, true, 0, 0},
    {"lmgg", 0, "gpt-2", 2002, 2, 18, false, 0, 0},
    {"lmgg", 0, "gpt-j", 1002, 2, 20, false, 0, 0},
    {"lmgg", 0, "gpt-neox", 2008, 6, 22, false, 0, 0},
    {"lmgg", 0, "mpt", 2003, 3, 20, false, 0, 0},
    {"lmgg", 0, "bloom", 2, 2, 20, false, 0, 0},
    {"tjgg", 3, "bloom", 2, 2, 18, false, 0, 0},
    {"lmgg", 0, "silero-vad", 0, 0, 128, false, 0, 0},
};

const struct old_file *old_file_at(size_t index)
{
    return index < COUNT(files) ? &files[index] : NULL;
}

/* ---- writing ---- */

static void put(struct model_bytes *out, const void *bytes, size_t n_bytes)
{
    out->data = realloc(out->data, out->size_bytes + n_bytes + 1);
    if (!out->data)
        abort();
    if (n_bytes > 0)
        memcpy(out->data + out->size_bytes, bytes, n_bytes);
    out->size_bytes += n_bytes;
}

static void put_u32(struct model_bytes *out, uint32_t number)
{
    const unsigned char bytes[] = {(unsigned char)number, (unsigned char)(number >> 8),
                                   (unsigned char)(number >> 16), (unsigned char)(number >> 24)};

    put(out, bytes, sizeof bytes);
}

static void put_f32(struct model_bytes *out, float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    put_u32(out, bits);
}

static void put_text(struct model_bytes *out, const char *text)
{
    put_u32(out, (uint32_t)strlen(text));
    put(out, text, strlen(text));
}

/* Write data that decode to finite numbers. */
static void put_data(struct model_bytes *out, uint32_t part, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        const unsigned char byte = (unsigned char)((i * 7 + (size_t)part * 11) % 0x3b);

        put(out, &byte, 1);
    }
}

static void put_tensor(struct model_bytes *out, const struct old_file *file, const char *name,
                       uint32_t n_rows)
{
    const bool is_vector = file->n_parts > 0 && strstr(name, "norm");

    put_u32(out, is_vector ? 1 : 2);
    put_u32(out, (uint32_t)strlen(name));
    put_u32(out, file->type);
    put_u32(out, is_vector ? file->n_parts * OLD_FILE_WIDTH : OLD_FILE_WIDTH);
    if (!is_vector)
        put_u32(out, n_rows);
    put(out, name, strlen(name));
    while (strcmp(file->magic, "tjgg") == 0 && out->size_bytes % 32 != 0)
        put(out, "", 1);
    put_data(out, file->part, (size_t)(is_vector ? file->n_parts : n_rows) * file->block_bytes);
}

/* ---- headers ---- */

static const char *const tokens[] = {"", "<s>", "</s>", "\x01", " a", "\xff b"};
#define N_TOKENS ((uint32_t)COUNT(tokens))

static void put_tokens(struct model_bytes *out, bool is_counted, bool has_scores)
{
    if (is_counted)
        put_u32(out, N_TOKENS);
    for (uint32_t i = 0; i < N_TOKENS; i++) {
        put_text(out, tokens[i]);
        if (has_scores)
            put_f32(out, -0.5f * (float)i);
    }
}

static void put_numbers(struct model_bytes *out, const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_u32(out, numbers[i]);
}

#define PUT_NUMBERS(out, ...)                                                                      \
    put_numbers(out, (const uint32_t[]){__VA_ARGS__},                                              \
                sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

enum { CONTEXT = 16, N_MULT = 8, N_ROT = 6, WIDTH = OLD_FILE_WIDTH, HEADS = OLD_FILE_HEADS };
enum { LAYERS = OLD_FILE_LAYERS };

static void put_whisper(struct model_bytes *out, uint32_t file_type)
{
    PUT_NUMBERS(out, N_TOKENS + 2, 1500, WIDTH, HEADS, LAYERS, 448, WIDTH, HEADS, LAYERS, 3,
                file_type);
    PUT_NUMBERS(out, 3, 2); /* mel filters */
    for (int i = 0; i < 6; i++)
        put_f32(out, 0.25f * (float)i);
    put_tokens(out, true, false);
}

static void put_vad(struct model_bytes *out)
{
    put_text(out, "silero-16k");
    PUT_NUMBERS(out, 5, 1, 2, 512, 64, LAYERS);
    PUT_NUMBERS(out, 129, 128, 3, 128, 64, 3, 128, 128, 128, 1);
}

static void put_mpt(struct model_bytes *out, uint32_t file_type)
{
    PUT_NUMBERS(out, WIDTH, CONTEXT, HEADS, LAYERS, N_TOKENS);
    put_f32(out, 8.0f);
    put_f32(out, 0.0f);
    put_u32(out, file_type);
    put_tokens(out, false, false);
}

static void put_header(struct model_bytes *out, const struct old_file *file)
{
    const uint32_t type = file->file_type;
    const uint32_t width = file->n_parts > 0 ? file->n_parts * WIDTH : WIDTH;

    put(out, file->magic, 4);
    if (file->version > 0)
        put_u32(out, file->version);
    if (strcmp(file->family, "llama") == 0) {
        PUT_NUMBERS(out, N_TOKENS, width, N_MULT, HEADS, LAYERS, width / HEADS, type);
        put_tokens(out, false, file->version > 0);
    } else if (strcmp(file->family, "whisper") == 0) {
        put_whisper(out, type);
    } else if (strcmp(file->family, "gpt-2") == 0) {
        PUT_NUMBERS(out, N_TOKENS, CONTEXT, WIDTH, HEADS, LAYERS, type);
        put_tokens(out, true, false);
    } else if (strcmp(file->family, "gpt-j") == 0) {
        PUT_NUMBERS(out, N_TOKENS, CONTEXT, WIDTH, HEADS, LAYERS, N_ROT, type);
        put_tokens(out, true, false);
    } else if (strcmp(file->family, "gpt-neox") == 0) {
        PUT_NUMBERS(out, N_TOKENS, CONTEXT, WIDTH, HEADS, LAYERS, N_ROT, 1, type);
        put_tokens(out, false, false);
    } else if (strcmp(file->family, "mpt") == 0) {
        put_mpt(out, type);
    } else if (strcmp(file->family, "bloom") == 0) {
        PUT_NUMBERS(out, N_TOKENS, WIDTH, N_MULT, HEADS, LAYERS, type);
        put_tokens(out, false, false);
    } else {
        put_vad(out);
    }
}

size_t old_file_tensors_offset(const struct old_file *file)
{
    struct model_bytes out = {0};

    put_header(&out, file);
    free(out.data);
    return out.size_bytes;
}

/* ---- tensors ---- */

static uint32_t rows_of(const char *name)
{
    if (strstr(name, ".wk.") || strstr(name, ".k_proj."))
        return OLD_FILE_KV_ROWS;
    if (strstr(name, "feed_forward.w") || strstr(name, "mlp.fc_in") || strstr(name, "ffn.key"))
        return OLD_FILE_FORWARD_ROWS;
    return 1;
}

static void put_tensors_of(struct model_bytes *out, const struct old_file *file,
                           const char *pattern)
{
    const char *mark = strpbrk(pattern, "%#");
    char name[256];

    for (unsigned layer = 0; layer < (mark ? OLD_FILE_LAYERS : 1); layer++) {
        if (mark)
            snprintf(name, sizeof name, "%.*s%u%s", (int)(mark - pattern), pattern, layer,
                     mark + 1);
        else
            snprintf(name, sizeof name, "%.200s", pattern);
        put_tensor(out, file, name, rows_of(name));
    }
}

struct model_bytes old_file_make(const struct old_file *file)
{
    struct gguf_name_rule rules[GGUF_MAX_NAME_RULES];
    const size_t n_rules = gguf_name_rules_read(gguf_family_by_name(file->family)->names, rules);
    struct model_bytes out = {0};

    put_header(&out, file);
    for (size_t i = 0; i < n_rules && !file->without_tensors; i++) {
        if (!rules[i].is_optional)
            put_tensors_of(&out, file, rules[i].old_name);
    }
    return out;
}

struct model_bytes old_file_make_part(uint32_t n_parts, uint32_t part)
{
    struct old_file file = files[1];

    file.n_parts = n_parts;
    file.part = part;
    return old_file_make(&file);
}

/* ---- rwkv.cpp ---- */

/* Tensors of a layer, with the first and last architecture that has them, times ten. */
static const struct {
    const char *name;
    unsigned first, last;
} of_layers[] = {
    {"ln1.weight", 40, 70},
    {"ln1.bias", 40, 70},
    {"ln2.weight", 40, 70},
    {"ln2.bias", 40, 70},
    {"att.key.weight", 40, 70},
    {"att.value.weight", 40, 70},
    {"att.receptance.weight", 40, 70},
    {"att.output.weight", 40, 70},
    {"ffn.key.weight", 40, 70},
    {"ffn.value.weight", 40, 70},
    {"att.time_mix_k", 40, 52},
    {"att.time_mix_v", 40, 52},
    {"att.time_mix_r", 40, 52},
    {"ffn.time_mix_k", 40, 52},
    {"ffn.time_mix_r", 40, 52},
    {"att.time_decay", 40, 60},
    {"ffn.receptance.weight", 40, 60},
    {"att.time_first", 40, 51},
    {"att.ln_x.weight", 51, 70},
    {"att.ln_x.bias", 51, 70},
    {"att.time_faaaa", 52, 60},
    {"att.gate.weight", 52, 60},
    {"att.time_mix_g", 52, 52},
    {"att.time_maa_x", 60, 60},
    {"att.time_maa_w", 60, 60},
    {"att.time_maa_k", 60, 60},
    {"att.time_maa_v", 60, 60},
    {"att.time_maa_r", 60, 60},
    {"att.time_maa_g", 60, 60},
    {"att.time_maa_w1", 60, 60},
    {"att.time_maa_w2", 60, 60},
    {"att.time_decay_w1", 60, 60},
    {"att.time_decay_w2", 60, 60},
    {"ffn.time_maa_k", 60, 60},
    {"ffn.time_maa_r", 60, 60},
    {"att.x_rwkvag", 70, 70},
    {"att.w0", 70, 70},
    {"att.w1", 70, 70},
    {"att.w2", 70, 70},
    {"att.a0", 70, 70},
    {"att.a1", 70, 70},
    {"att.a2", 70, 70},
    {"att.g1", 70, 70},
    {"att.g2", 70, 70},
    {"att.k_k", 70, 70},
    {"att.k_a", 70, 70},
    {"att.r_k", 70, 70},
    {"ffn.x_k", 70, 70},
};

static void put_layer_tensor(struct model_bytes *out, const struct old_file *file, const char *name,
                             unsigned layer)
{
    char whole[64];

    snprintf(whole, sizeof whole, "blocks.%u.%s", layer, name);
    put_tensor(out, file, whole, rows_of(whole));
}

struct model_bytes old_file_make_rwkv(uint32_t version, const char *architecture, uint32_t type,
                                      uint32_t block_bytes)
{
    const struct old_file file = {.magic = "fmgg", .type = type, .block_bytes = block_bytes};
    const unsigned tenfold = (unsigned)(10.0 * atof(architecture) + 0.5);
    struct model_bytes out = {0};

    put(&out, file.magic, 4);
    PUT_NUMBERS(&out, version, 256, WIDTH, LAYERS, type);
    put_tensor(&out, &file, "emb.weight", 1);
    put_tensor(&out, &file, "blocks.0.ln0.weight", 1);
    put_tensor(&out, &file, "blocks.0.ln0.bias", 1);
    for (unsigned layer = 0; layer < OLD_FILE_LAYERS; layer++) {
        for (size_t i = 0; i < COUNT(of_layers); i++) {
            if (tenfold >= of_layers[i].first && tenfold <= of_layers[i].last)
                put_layer_tensor(&out, &file, of_layers[i].name, layer);
        }
    }
    put_tensor(&out, &file, "ln_out.weight", 1);
    put_tensor(&out, &file, "ln_out.bias", 1);
    put_tensor(&out, &file, "head.weight", 1);
    return out;
}
