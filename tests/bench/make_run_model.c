/*
 * Writes a model for measuring the speed of a runner: the shape and the tensor types of a real
 * model, with random weights. It runs, but talks nonsense.
 *
 * The weights of a type are a few thousand random blocks, repeated. Their number is a prime, so the
 * rows of a matrix differ.
 */
#include "tests/writer/gguf_writer.h"
#include "tests/writer/random_weights.h"
#include "tests/bench/run_shapes.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    TILE_BLOCKS = 4093,
    MOST_BLOCK_BYTES = 256,
    ALIGNMENT_BYTES = 32, /* GGUF's default */
    TEXT_BYTES = 16,      /* room for any token */
};

/* ---- the vocabulary ---- */

enum token_type { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6 };
enum { N_SPECIAL = 3, N_BYTES = 256 };

/* The bytes, as SentencePiece has them, and then made-up words. */
static enum token_type make_token(uint32_t id, char text[TEXT_BYTES])
{
    static const char *const special[N_SPECIAL] = {"<unk>", "<s>", "</s>"};

    if (id < N_SPECIAL) {
        snprintf(text, TEXT_BYTES, "%s", special[id]);
        return id == 0 ? TOKEN_UNKNOWN : TOKEN_CONTROL;
    }
    if (id < N_SPECIAL + N_BYTES) {
        snprintf(text, TEXT_BYTES, "<0x%02X>", (id - N_SPECIAL) & 255);
        return TOKEN_BYTE;
    }
    size_t length = (size_t)snprintf(text, TEXT_BYTES, "▁");
    for (uint32_t rest = id - N_SPECIAL - N_BYTES; length < TEXT_BYTES - 1; rest = rest / 26 - 1) {
        text[length++] = (char)('a' + rest % 26);
        if (rest < 26)
            break;
    }
    text[length] = '\0';
    return TOKEN_NORMAL;
}

static void add_tokenizer_keys(struct gguf_writer *w, uint32_t n_tokens)
{
    char text[TEXT_BYTES];

    gguf_writer_add_string(w, "tokenizer.ggml.model", "llama");
    gguf_writer_add_string(w, "tokenizer.ggml.pre", "default");
    gguf_writer_add_array(w, "tokenizer.ggml.tokens", GGUF_WRITER_STRING, n_tokens);
    for (uint32_t i = 0; i < n_tokens; i++) {
        make_token(i, text);
        gguf_writer_string(w, text, strlen(text));
    }
    gguf_writer_add_array(w, "tokenizer.ggml.scores", GGUF_WRITER_F32, n_tokens);
    for (uint32_t i = 0; i < n_tokens; i++)
        gguf_writer_f32(w, i < N_SPECIAL + N_BYTES ? 0 : -(float)i);
    gguf_writer_add_array(w, "tokenizer.ggml.token_type", GGUF_WRITER_I32, n_tokens);
    for (uint32_t i = 0; i < n_tokens; i++)
        gguf_writer_i32(w, (int32_t)make_token(i, text));
    gguf_writer_add_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 2);
}

/* ---- the file ---- */

static uint64_t blocks_of(const struct sample_tensor *tensor)
{
    return tensor->ne[0] / tensor->type->block_elements * tensor->ne[1] * tensor->ne[2];
}

/* Bytes that fill up the data to the alignment. */
static uint64_t padding_of(uint64_t n_bytes)
{
    return (ALIGNMENT_BYTES - n_bytes % ALIGNMENT_BYTES) % ALIGNMENT_BYTES;
}

/* Make everything before the data, which would not fit into the writer's memory. */
static int make_header(const struct sample_model *model, unsigned char **header,
                       size_t *header_bytes)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    uint64_t offset = 0;

    sample_model_add_keys(w, model);
    add_tokenizer_keys(w, model->sizes.vocabulary);
    for (size_t i = 0; i < model->n_tensors; i++) {
        const struct sample_tensor *tensor = &model->tensors[i];
        const uint64_t n_bytes = blocks_of(tensor) * tensor->type->block_bytes;
        gguf_writer_add_tensor(w, tensor->name, strlen(tensor->name), tensor->n_dims, tensor->ne,
                               tensor->type->id, NULL, 0);
        gguf_writer_override_offset(w, offset);
        offset += n_bytes + padding_of(n_bytes);
    }
    return gguf_writer_finish(w, header, header_bytes);
}

static bool write_data(FILE *file, const struct sample_tensor *tensor, struct sample_random *random)
{
    static unsigned char tile[(size_t)TILE_BLOCKS * MOST_BLOCK_BYTES];
    static const unsigned char zeros[ALIGNMENT_BYTES];
    const size_t block_bytes = tensor->type->block_bytes;
    uint64_t left = blocks_of(tensor);
    const size_t n_padding = (size_t)padding_of(left * block_bytes);

    sample_fill_blocks(random, tensor->type, tile, left < TILE_BLOCKS ? (size_t)left : TILE_BLOCKS,
                       tensor->mean, tensor->std);
    while (left > 0) {
        const size_t n = left < TILE_BLOCKS ? (size_t)left : TILE_BLOCKS;
        if (fwrite(tile, block_bytes, n, file) != n)
            return false;
        left -= n;
    }
    return fwrite(zeros, 1, n_padding, file) == n_padding;
}

static bool write_model(const char *path, const struct sample_model *model)
{
    struct sample_random random = {.state = 2026};
    unsigned char *header;
    size_t header_bytes;
    int error = make_header(model, &header, &header_bytes);
    if (error) {
        errno = -error;
        return false;
    }
    FILE *file = fopen(path, "w");
    bool is_written = file && fwrite(header, 1, header_bytes, file) == header_bytes;
    free(header);
    for (size_t i = 0; is_written && i < model->n_tensors; i++)
        is_written = write_data(file, &model->tensors[i], &random);
    if (file && fclose(file) != 0)
        is_written = false;
    return is_written;
}

/* ---- the command line ---- */

#define SIZE(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct sample_sizes, member)                                             \
    }

static const struct {
    const char *name;
    size_t at;
} size_names[] = {
    SIZE(layers),     SIZE(width),   SIZE(inner),        SIZE(heads), SIZE(kv_heads),
    SIZE(head_width), SIZE(experts), SIZE(experts_used), SIZE(state), SIZE(vocabulary),
};

enum { N_SIZE_NAMES = sizeof size_names / sizeof size_names[0], MOST_SIZE = 1 << 24 };

/* Take NAME=NUMBER. */
static bool take_size(const char *argument, struct sample_sizes *sizes)
{
    for (size_t i = 0; i < N_SIZE_NAMES; i++) {
        const size_t length = strlen(size_names[i].name);
        if (strncmp(argument, size_names[i].name, length) != 0 || argument[length] != '=')
            continue;
        char *end;
        const unsigned long value = strtoul(argument + length + 1, &end, 10);
        if (*end != '\0' || value < 1 || value > MOST_SIZE)
            return false;
        *(uint32_t *)((char *)sizes + size_names[i].at) = (uint32_t)value;
        return true;
    }
    return false;
}

static int print_usage(void)
{
    const struct sample_shape *shape;
    const struct sample_mix *mix;

    fprintf(stderr, "usage: make-run-model OUT.gguf SHAPE [TYPE] [SIZE=NUMBER]...\n  SHAPE ");
    for (size_t i = 0; (shape = sample_shape_at(i)); i++)
        fprintf(stderr, " %s", shape->name);
    fprintf(stderr, "\n  TYPE  ");
    for (size_t i = 0; (mix = sample_mix_at(i)); i++)
        fprintf(stderr, " %s", mix->name);
    fprintf(stderr, "\n  SIZE  ");
    for (size_t i = 0; i < N_SIZE_NAMES; i++)
        fprintf(stderr, " %s", size_names[i].name);
    fprintf(stderr, "\n");
    return EX_USAGE;
}

static bool parse(int argc, char **argv, struct sample_model *model)
{
    int next = 3;

    model->shape = argc >= 3 && argv[1][0] != '-' ? sample_shape_by_name(argv[2]) : NULL;
    if (!model->shape)
        return false;
    model->sizes = model->shape->sizes;
    model->mix = argc > next ? sample_mix_by_name(argv[next]) : NULL;
    if (model->mix)
        next++;
    else
        model->mix = sample_mix_by_name(model->shape->mix);
    while (next < argc && take_size(argv[next], &model->sizes))
        next++;
    return next == argc && model->sizes.vocabulary >= N_SPECIAL + N_BYTES;
}

/* Rows must be whole blocks. */
static bool check_rows(const struct sample_model *model)
{
    for (size_t i = 0; i < model->n_tensors; i++) {
        const struct sample_tensor *tensor = &model->tensors[i];
        const uint32_t block_elements = tensor->type->block_elements;
        if (tensor->ne[0] % block_elements == 0)
            continue;
        fprintf(stderr,
                "make-run-model: %s: row length %llu is not a multiple of the %s block size, %u\n",
                tensor->name, (unsigned long long)tensor->ne[0], tensor->type->name,
                block_elements);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct sample_model model = {0};
    int status = EX_OK;

    if (!parse(argc, argv, &model))
        return print_usage();
    if (sample_model_list(&model) < 0) {
        fprintf(stderr, "make-run-model: out of memory\n");
        status = EX_OSERR;
    } else if (!check_rows(&model)) {
        status = EX_USAGE;
    } else if (!write_model(argv[1], &model)) {
        fprintf(stderr, "make-run-model: %s: %s\n", argv[1], strerror(errno));
        status = EX_IOERR;
    }
    free(model.tensors);
    return status;
}
