#include "gguf/formats.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct gguf_format formats[] = {
    {"GGUF", gguf_probe_gguf, gguf_parse_gguf},
    {"rwkv.cpp", gguf_probe_rwkv, gguf_parse_rwkv}, /* has a magic of ggml */
    {"ggml", gguf_probe_ggml, gguf_parse_ggml},
};

static bool probe_html(const struct gguf_start *start)
{
    static const char *const tags[] = {"<!doctype", "<html", "<head", "<?xml"};
    size_t at = 0;

    while (at < start->n_bytes && isspace(start->bytes[at]))
        at++;
    for (size_t i = 0; i < COUNT(tags); i++) {
        const size_t length = strlen(tags[i]);

        if (start->n_bytes - at >= length &&
            strncasecmp((const char *)start->bytes + at, tags[i], length) == 0)
            return true;
    }
    return false;
}

/* A u64 with the length of a JSON object, and the object. */
static bool probe_safetensors(const struct gguf_start *start)
{
    struct gguf_cursor cursor = {.data = start->bytes, .size_bytes = start->n_bytes};
    uint64_t length;

    return gguf_cursor_u64(&cursor, &length) == 0 && length > 0 &&
           length <= start->file_bytes - cursor.offset && gguf_cursor_left(&cursor) > 0 &&
           start->bytes[cursor.offset] == '{';
}

/* The opcode PROTO and the number of a protocol. Source: CPython, Lib/pickle.py. */
static bool probe_pickle(const struct gguf_start *start)
{
    return start->n_bytes >= 2 && start->bytes[0] == 0x80 && start->bytes[1] >= 2 &&
           start->bytes[1] <= 5;
}

static bool probe_zeros(const struct gguf_start *start)
{
    static const uint8_t zeros[64];

    return start->n_bytes >= sizeof zeros && memcmp(start->bytes, zeros, sizeof zeros) == 0;
}

/* Files that are not models, recognized by a magic at `offset` or by a probe. */
static const struct lookalike {
    enum gguf_rule rule;
    const char *advice;
    const char *magic;
    size_t offset;
    bool (*probe)(const struct gguf_start *start);
} lookalikes[] = {
    {GGUF_RULE_NOT_DOWNLOADED,
     "is a Git LFS pointer, not the model itself; run \"git lfs pull\" in its repository, or "
     "download the file from the model's page",
     "version https://git-lfs.github.com/spec/", 0, NULL},
    {GGUF_RULE_NOT_DOWNLOADED,
     "is a web page, not a model; the download saved the page instead of the file (wrong link, or "
     "a login is needed)",
     NULL, 0, probe_html},
    {GGUF_RULE_NOT_CONVERTED,
     "is a safetensors file, not GGUF; llama.cpp's convert_hf_to_gguf.py makes a GGUF of it", NULL,
     0, probe_safetensors},
    {GGUF_RULE_NOT_CONVERTED,
     "is a Python pickle, the format of old PyTorch files, not GGUF; llama.cpp's "
     "convert_hf_to_gguf.py makes a GGUF of the checkpoint that it belongs to",
     NULL, 0, probe_pickle},
    {GGUF_RULE_ZIP,
     "is a ZIP or PyTorch file without its directory, which is at the end (unfinished download?)",
     "PK\x03\x04", 0, NULL},
    {GGUF_RULE_ZIP,
     "is a program without a model in it; a llamafile has a ZIP directory at its end (unfinished "
     "download?)",
     "MZ", 0, NULL},
    {GGUF_RULE_ZIP,
     "is a program without a model in it; a llamafile has a ZIP directory at its end (unfinished "
     "download?)",
     "\x7f"
     "ELF",
     0, NULL},
    {GGUF_RULE_PACKED, "is compressed with gzip; unpack it first (gunzip)", "\x1f\x8b", 0, NULL},
    {GGUF_RULE_PACKED, "is compressed with Zstandard; unpack it first (unzstd)", "\x28\xb5\x2f\xfd",
     0, NULL},
    {GGUF_RULE_PACKED, "is compressed with xz; unpack it first (unxz)",
     "\xfd"
     "7zXZ",
     0, NULL},
    {GGUF_RULE_PACKED, "is compressed with bzip2; unpack it first (bunzip2)", "BZh", 0, NULL},
    {GGUF_RULE_PACKED, "is a tar archive; unpack it first (tar -xf) and name the model in it",
     "ustar", 257, NULL},
    {GGUF_RULE_NOT_A_MODEL, "is a JSON file, not a model", "{", 0, NULL},
    {GGUF_RULE_NOT_DOWNLOADED,
     "starts with zeros: the download reserved the space, but the data never came", NULL, 0,
     probe_zeros},
};

static bool matches(const struct gguf_start *start, const struct lookalike *lookalike)
{
    size_t length;

    if (!lookalike->magic)
        return lookalike->probe(start);
    length = strlen(lookalike->magic);
    return start->n_bytes >= lookalike->offset + length &&
           memcmp(start->bytes + lookalike->offset, lookalike->magic, length) == 0;
}

const struct gguf_format *gguf_find_format(const struct gguf_start *start)
{
    for (size_t i = 0; i < COUNT(formats); i++) {
        if (formats[i].probe(start))
            return &formats[i];
    }
    return NULL;
}

int gguf_refuse_format(const struct gguf_start *start, struct gguf_report *report)
{
    char magic[4 * 4 + 1] = "";

    if (start->n_bytes == 0)
        return gguf_error(report, GGUF_RULE_EMPTY_FILE, -EINVAL, GGUF_NO_PLACE, "is an empty file");
    for (size_t i = 0; i < COUNT(lookalikes); i++) {
        if (matches(start, &lookalikes[i]))
            return gguf_error(report, lookalikes[i].rule, -EINVAL, GGUF_NO_PLACE, "%s",
                              lookalikes[i].advice);
    }
    for (size_t i = 0; i < 4 && i < start->n_bytes; i++)
        sprintf(magic + 3 * i, " %02x", start->bytes[i]);
    return gguf_error(report, GGUF_RULE_NOT_A_MODEL, -EINVAL, gguf_at(start->file_offset),
                      "not a GGUF file: it starts with%s instead of 47 47 55 46 (\"GGUF\")%s",
                      magic, start->n_bytes < 4 ? " and ends there (unfinished download?)" : "");
}
