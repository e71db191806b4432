/* Writes the seeds of the fuzz targets as FOLDER/<target>/<name>: valid and broken inputs. */
#include "tests/writer/gguf_writer.h"
#include "dequant/types.h"
#include "tests/fuzz/layout_seeds.h"
#include "tests/fuzz/runner_seeds.h"
#include "tests/unit/gguf/old_file.h"
#include "tests/unit/gguf/zip_file.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

/* Enough for a value whose text is written in several parts. */
#define N_LONG 6000
/* More than one, so that reads begin and end in different blocks. */
#define MOST_BLOCKS 9
/* The largest group of one-block rows, over all types. */
#define MOST_GROUP_BYTES 8192

static const char *folder;

static void fail(const char *path, int error)
{
    fprintf(stderr, "make-seeds: %s: %s\n", path, strerror(error));
    exit(EX_CANTCREAT);
}

static void make_folder(const char *target)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, target);
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        fail(path, errno);
}

static void write_seed(const char *target, const char *name, const void *bytes, size_t n_bytes)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s/%s", folder, target, name);
    file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, n_bytes, file) != n_bytes || fclose(file) != 0)
        fail(path, errno);
}

/* ---- models ---- */

struct encoding {
    const char *name;
    uint32_t version;
    bool big_endian;
};

static const struct encoding encodings[] = {
    {"v1", 1, false}, {"v2", 2, false}, {"v3", 3, false}, {"v3-big-endian", 3, true}};
static const struct encoding usual = {"v3", 3, false};

static struct gguf_writer *begin(struct encoding encoding)
{
    struct gguf_writer *w = gguf_writer_open(encoding.version, encoding.big_endian);

    gguf_writer_add_string(w, "general.architecture", "llama");
    return w;
}

/* Finish the file and save it under that name without the last `n_missing` bytes. */
static void finish(struct gguf_writer *w, const char *name, const char *encoding, size_t n_missing)
{
    char file_name[128];
    unsigned char *bytes;
    size_t n_bytes;
    int error = gguf_writer_finish(w, &bytes, &n_bytes);

    snprintf(file_name, sizeof file_name, "%s-%s.gguf", name, encoding);
    if (error < 0)
        fail(file_name, -error);
    write_seed("tree", file_name, bytes, n_bytes - n_missing);
    free(bytes);
}

static void add_numbers(struct gguf_writer *w)
{
    gguf_writer_add_u8(w, "number.u8", UINT8_MAX);
    gguf_writer_add_i8(w, "number.i8", INT8_MIN);
    gguf_writer_add_u16(w, "number.u16", UINT16_MAX);
    gguf_writer_add_i16(w, "number.i16", INT16_MIN);
    gguf_writer_add_u32(w, "number.u32", UINT32_MAX);
    gguf_writer_add_i32(w, "number.i32", INT32_MIN);
    gguf_writer_add_u64(w, "number.u64", UINT64_MAX);
    gguf_writer_add_i64(w, "number.i64", INT64_MIN);
    gguf_writer_add_f32(w, "number.f32", 1e-5f);
    gguf_writer_add_f32(w, "number.f32.nan", (float)NAN);
    gguf_writer_add_f64(w, "number.f64", 0.1);
    gguf_writer_add_f64(w, "number.f64.infinity", -INFINITY);
    gguf_writer_add_bool(w, "number.bool", true);
}

static void add_arrays(struct gguf_writer *w)
{
    static const char *const words[] = {"", "a", "\"\\/\n\x01", "\xe2\x96\x81", "\xe2\x96", "\xff"};
    static const unsigned char zeros[16];

    gguf_writer_add_strings(w, "array.strings", words, sizeof words / sizeof *words);
    for (uint32_t type = GGUF_WRITER_U8; type <= GGUF_WRITER_F64; type++) {
        static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
        char key[32];

        snprintf(key, sizeof key, "array.%u", type);
        gguf_writer_add_array(w, key, type, bytes[type] > 0 ? 2 : 0);
        gguf_writer_raw(w, zeros, 2 * bytes[type]);
    }
    gguf_writer_add_array(w, "array.arrays", GGUF_WRITER_ARRAY, 2);
    gguf_writer_array(w, GGUF_WRITER_ARRAY, 1);
    gguf_writer_array(w, GGUF_WRITER_BOOL, 2);
    gguf_writer_bool(w, false);
    gguf_writer_bool(w, true);
    gguf_writer_array(w, GGUF_WRITER_STRING, 1);
    gguf_writer_string(w, "x\0y", 3);
}

static void add_nested(struct gguf_writer *w, int depth)
{
    gguf_writer_add_array(w, "array.nested", GGUF_WRITER_ARRAY, 1);
    for (int i = 2; i < depth; i++)
        gguf_writer_array(w, GGUF_WRITER_ARRAY, 1);
    gguf_writer_array(w, GGUF_WRITER_U8, 1);
    gguf_writer_u8(w, 7);
}

/* Make rows of one block: n_groups groups of the rows that the type stores together. */
static void add_blocks(struct gguf_writer *w, const struct dequant_type *type, uint64_t n_groups)
{
    const uint64_t n_rows = n_groups * type->interleave_rows;
    const uint64_t ne[] = {type->block_elements, n_rows};
    unsigned char blocks[MOST_BLOCKS * MOST_GROUP_BYTES];

    assert(n_groups <= MOST_BLOCKS &&
           dequant_stride_bytes(type) + dequant_headers_bytes(type) <= MOST_GROUP_BYTES);
    for (size_t i = 0; i < sizeof blocks; i++)
        blocks[i] = (unsigned char)(i * i * 37 + type->id);
    gguf_writer_add_tensor(
        w, type->name, strlen(type->name), n_rows > 1 ? 2 : 1, ne, type->id, blocks,
        (size_t)n_rows * (type->row_header_bytes + type->block_bytes) + type->tail_bytes);
}

static void add_f32(struct gguf_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne)
{
    size_t n_bytes = sizeof(float);

    for (uint32_t i = 0; i < n_dims; i++)
        n_bytes *= (size_t)ne[i];
    gguf_writer_add_tensor(w, name, strlen(name), n_dims, ne, 0, NULL, n_bytes);
}

static void add_names(struct gguf_writer *w)
{
    static const char *const names[] = {"",         ".",        "..",   "a/b",  "../../etc/passwd",
                                        "100%",     "%2E",      "a\nb", "\x7f", "\xff\xfe",
                                        "\xc3\xa9", "metadata", "%",    "a b"};
    static const uint64_t one = 1;
    char name[400];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gguf_writer_key(w, names[i], strlen(names[i]), GGUF_WRITER_U8);
        gguf_writer_u8(w, 0);
        add_f32(w, names[i], 1, &one);
    }
    for (size_t length = 254; length < sizeof name; length += 48) {
        memset(name, 'n', length);
        name[length - 1] = '/';
        gguf_writer_key(w, name, length, GGUF_WRITER_BOOL);
        gguf_writer_bool(w, true);
        gguf_writer_add_tensor(w, name, length, 1, &one, 24, NULL, 1);
    }
}

static void write_good_models(void)
{
    static const uint64_t shapes[][4] = {{2, 3, 2, 1}, {0, 5}, {1}};
    struct gguf_writer *w;

    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        const struct encoding encoding = encodings[i];

        w = begin(encoding);
        add_numbers(w);
        finish(w, "numbers", encoding.name, 0);

        w = begin(encoding);
        add_arrays(w);
        add_nested(w, 8);
        finish(w, "arrays", encoding.name, 0);

        w = begin(encoding);
        gguf_writer_set_alignment(w, 8);
        for (size_t j = 0; j < dequant_type_count(); j++)
            add_blocks(w, dequant_type_at(j), 1);
        finish(w, "types", encoding.name, 0);

        finish(gguf_writer_open(encoding.version, encoding.big_endian), "empty", encoding.name, 0);
    }
    for (size_t i = 0; i < dequant_row_count(); i++) {
        if (dequant_type_at(i)->era != DEQUANT_ERA)
            continue;
        add_blocks(w = begin(encodings[i % 4]), dequant_type_at(i), MOST_BLOCKS);
        finish(w, dequant_type_at(i)->name, encodings[i % 4].name, 0);
    }

    w = begin(usual);
    add_names(w);
    finish(w, "names", usual.name, 0);

    w = begin(usual);
    add_f32(w, "four", 4, shapes[0]);
    add_f32(w, "empty", 2, shapes[1]);
    add_f32(w, "scalar", 0, shapes[2]);
    finish(w, "shapes", usual.name, 0);

    /* Empty tensors may have any offset. */
    w = begin(usual);
    add_f32(w, "far", 2, shapes[1]);
    gguf_writer_override_offset(w, UINT64_MAX - 4095);
    finish(w, "empty-far", usual.name, 0);

    w = begin(usual);
    gguf_writer_add_tensor(w, "unknown", 7, 1, shapes[2], 4711, NULL, 64);
    finish(w, "unknown-type", usual.name, 0);

    w = begin(usual);
    gguf_writer_add_array(w, "long", GGUF_WRITER_U8, N_LONG);
    for (int i = 0; i < N_LONG; i++)
        gguf_writer_u8(w, (uint8_t)i);
    gguf_writer_add_array(w, "long.string", GGUF_WRITER_STRING, 1);
    gguf_writer_count(w, N_LONG);
    for (int i = 0; i < N_LONG; i++)
        gguf_writer_u8(w, (uint8_t)(i / 17));
    finish(w, "long", usual.name, 0);

    w = begin(usual);
    for (int i = 0; i < 2; i++) {
        gguf_writer_add_u8(w, "same.u8", 1);
        gguf_writer_add_bool(w, "same.bool", true);
        gguf_writer_add_f32(w, "same.f32", 0.5f);
        gguf_writer_add_string(w, "same.string", "same");
    }
    finish(w, "repeated-key", usual.name, 0);

    w = begin(usual); /* tensors that belong together */
    add_f32(w, "x.in_sum2", 2, shapes[0]);
    add_f32(w, "x.counts", 1, shapes[0] + 1);
    add_f32(w, "x.lora_a", 2, shapes[0]);
    add_f32(w, "x.lora_b", 2, shapes[0] + 1);
    add_f32(w, "direction.1", 1, shapes[0]);
    finish(w, "pairs", usual.name, 0);
}

static void write_broken_models(void)
{
    static const uint64_t one = 1, huge[] = {UINT64_C(1) << 32, UINT64_C(1) << 32}, odd = 31;
    struct gguf_writer *w;

    w = begin(usual);
    gguf_writer_override_key_count(w, UINT64_MAX);
    gguf_writer_override_tensor_count(w, UINT64_C(1) << 61);
    finish(w, "counts", usual.name, 0);

    w = begin(usual);
    gguf_writer_key(w, "string", 6, GGUF_WRITER_STRING);
    gguf_writer_count(w, UINT64_MAX - 8);
    finish(w, "string-length", usual.name, 0);

    w = begin(usual);
    gguf_writer_add_array(w, "array", GGUF_WRITER_U64, UINT64_C(1) << 61);
    finish(w, "array-length", usual.name, 0);

    w = begin(usual);
    add_nested(w, 9);
    finish(w, "nested-9", usual.name, 0);

    w = begin(usual);
    gguf_writer_key(w, "bool", 4, GGUF_WRITER_BOOL);
    gguf_writer_u8(w, 2);
    finish(w, "bool-2", usual.name, 0);

    w = begin(usual);
    gguf_writer_key(w, "type", 4, 13);
    finish(w, "value-type", usual.name, 0);

    w = begin(usual);
    gguf_writer_add_u32(w, "general.alignment", 3);
    finish(w, "alignment-3", usual.name, 0);

    w = begin(usual);
    gguf_writer_add_tensor(w, "huge", 4, 2, huge, 0, NULL, 8);
    gguf_writer_add_tensor(w, "row", 3, 1, &odd, 2, NULL, 18);
    finish(w, "dimensions", usual.name, 0);

    w = begin(usual);
    add_f32(w, "twice", 1, &one);
    add_f32(w, "twice", 1, &one);
    gguf_writer_override_offset(w, 0);
    finish(w, "tensor-twice", usual.name, 0);

    w = begin(usual);
    add_f32(w, "far", 1, &one);
    gguf_writer_override_offset(w, UINT64_MAX - 31);
    finish(w, "offset", usual.name, 0);

    w = begin(usual);
    add_f32(w, "short", 1, &one);
    finish(w, "short", usual.name, 30);
}

/* As small as possible, but complete: the runner refuses a model that lacks a tensor. */
/* Vocabularies of all kinds, with tokens and merges that are wrong. */
static void write_vocabularies(void)
{
    static const char *const kinds[] = {"llama", "gpt2", "gemma4", "bert", "t5", "rwkv"};
    static const char *const tokens[] = {
        "<unk>", "<s>",           "</s>",   "a",  "b",    "ab",    "",       "a",
        "\xff",  "\342\226\201a", "<0x41>", "\n", "\n\n", "[CLS]", "<mask>", "\xe2\x96"};
    static const char *const merges[] = {"a b", "ab a", "\n \n", "c d", "a", "", "\xff a"};
    static const signed char types[] = {2, 3, 3, 1, 1, 1, 0, 1, 1, 4, 6, 1, 1, 3, 5, -1};
    static const unsigned char map[] = {4, 0, 0, 0, 0, 0, 0, 0, 'x', 0};
    const size_t n_tokens = sizeof tokens / sizeof *tokens;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct gguf_writer *w = begin(usual);

        gguf_writer_add_string(w, "tokenizer.ggml.model", kinds[i]);
        gguf_writer_add_string(w, "tokenizer.ggml.pre", "llama-bpe");
        gguf_writer_add_strings(w, "tokenizer.ggml.tokens", tokens, n_tokens);
        gguf_writer_add_array(w, "tokenizer.ggml.token_type", GGUF_WRITER_I8, n_tokens);
        gguf_writer_raw(w, types, n_tokens);
        gguf_writer_add_array(w, "tokenizer.ggml.scores", GGUF_WRITER_F32, n_tokens);
        for (size_t j = 0; j < n_tokens; j++)
            gguf_writer_f32(w, j == 3 ? (float)NAN : -(float)j);
        gguf_writer_add_strings(w, "tokenizer.ggml.merges", merges, sizeof merges / sizeof *merges);
        gguf_writer_add_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_WRITER_U8, sizeof map);
        gguf_writer_raw(w, map, sizeof map);
        gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 8);
        gguf_writer_add_string(w, "tokenizer.chat_template", "{{ messages }}");
        gguf_writer_add_string(w, "tokenizer.chat_template.tool/use", "{{ tools }}");
        finish(w, "vocabulary", kinds[i], 0);
    }
}

static void finish_layout(struct gguf_writer *w, const char *architecture)
{
    finish(w, "layout", architecture, 0);
}

static void write_old_models(void)
{
    static const char *const architectures[] = {"4", "5.1", "5.2", "6", "7"};
    const struct old_file *file;
    struct model_bytes bytes, zip;
    char name[128];

    for (size_t i = 0; (file = old_file_at(i)); i++) {
        bytes = old_file_make(file);
        snprintf(name, sizeof name, "%s-%s-%u%s.bin", file->family, file->magic, file->version,
                 file->without_tensors ? "-vocabulary" : "");
        write_seed("tree", name, bytes.data, bytes.size_bytes);
        zip = zip_file_make(bytes, 5 * i, i % 2);
        strcat(name, ".zip");
        write_seed("tree", name, zip.data, zip.size_bytes);
        free(zip.data);
        free(bytes.data);
    }
    bytes = old_file_make_part(4, 1);
    write_seed("tree", "llama-in-4-parts.bin", bytes.data, bytes.size_bytes);
    free(bytes.data);
    for (size_t i = 0; i < COUNT(architectures); i++) {
        bytes = old_file_make_rwkv(100 + i % 2, architectures[i], 2, i % 2 ? 18 : 20);
        snprintf(name, sizeof name, "rwkv-%s.bin", architectures[i]);
        write_seed("tree", name, bytes.data, bytes.size_bytes);
        free(bytes.data);
    }
}

/* ---- the other targets ---- */

static void write_blocks(void)
{
    for (size_t i = 0; i < dequant_row_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        const size_t headers_bytes = dequant_headers_bytes(type);
        const size_t n_bytes = 1 + headers_bytes + 2 * dequant_stride_bytes(type);
        unsigned char input[1 + 2 * MOST_GROUP_BYTES];
        char name[32];

        assert(n_bytes <= sizeof input);
        for (size_t j = 1; j < n_bytes; j++)
            input[j] = (unsigned char)(j * j * 31 + j);
        input[0] = (unsigned char)i;
        snprintf(name, sizeof name, "%s-%u", type->name, type->era);
        write_seed("decode", name, input, n_bytes);
    }
}

static void write_strings(void)
{
    static const struct {
        const char *name, *bytes;
        size_t n_bytes;
    } strings[] = {
        {"plain", "plain text", 10},
        {"escapes", "\"\\/\b\f\n\r\t\0\x1f\x7f", 11},
        {"utf-8", "\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf", 13},
        {"cut", "\xf0\x9f\x98", 3},
        {"invalid", "\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\x80", 11},
        {"array", "\2\11\10\0\0\0\2\0\0\0\1\0\0\0x\0\0\0\0", 19},
        {"floats", "\0\0\0\0\0\0\xf0\x3f\x9a\x99\x99\x99\x99\x99\xb9\x3f\xcd\xcc\xcc\x3d", 20},
        {"subnormal", "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xef\x7f", 16},
    };

    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        write_seed("json", strings[i].name, strings[i].bytes, strings[i].n_bytes);
}

static void write_name_pairs(void)
{
    static const char *const pairs[][2] = {{"a", "b"},          {"", "%"},        {".", "%2E"},
                                           {"..", "..."},       {"a/b", "a%2Fb"}, {"\n", "\x7f"},
                                           {"\xff", "\xc3\xa9"}};
    unsigned char input[3 + 2 * 400];
    char name[16];

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const size_t first = strlen(pairs[i][0]), second = strlen(pairs[i][1]);

        input[0] = (unsigned char)i;
        input[1] = (unsigned char)first;
        input[2] = 0;
        memcpy(input + 3, pairs[i][0], first);
        memcpy(input + 3 + first, pairs[i][1], second);
        snprintf(name, sizeof name, "pair-%zu", i);
        write_seed("names", name, input, 3 + first + second);
    }
    for (size_t length = 230; length <= 400; length += 25) {
        for (size_t i = 0; i < 2 * length; i++)
            input[3 + i] = (unsigned char)"na/\xc3\xa9"[i % 6];
        input[0] = (unsigned char)length;
        input[1] = (unsigned char)length;
        input[2] = (unsigned char)(length >> 8);
        snprintf(name, sizeof name, "long-%zu", length);
        write_seed("names", name, input, 3 + 2 * length);
    }
}

static void write_trees(void)
{
    for (size_t i = 0; runner_seeds[i].name; i++)
        write_seed("runner", runner_seeds[i].name, runner_seeds[i].text,
                   strlen(runner_seeds[i].text));
    for (size_t i = 0; runner_more_seeds[i].name; i++)
        write_seed("runner", runner_more_seeds[i].name, runner_more_seeds[i].text,
                   strlen(runner_more_seeds[i].text));
}

int main(int argc, char **argv)
{
    static const char *const targets[] = {"",      "tree",   "decode",    "json",
                                          "names", "runner", "templates", "stores"};

    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: make-seeds FOLDER\n");
        return EX_USAGE;
    }
    folder = argv[1];
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        make_folder(targets[i]);
    write_good_models();
    write_broken_models();
    write_vocabularies();
    layout_seeds_make(finish_layout);
    write_old_models();
    write_blocks();
    write_strings();
    write_name_pairs();
    write_trees();
    return EX_OK;
}
