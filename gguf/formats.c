#include "gguf/formats.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct gguf_format formats[] = {
    {"GGUF", gguf_probe_gguf, gguf_parse_gguf},
    {"rwkv.cpp", gguf_probe_rwkv, gguf_parse_rwkv}, /* has a magic of ggml */
    {"ggml", gguf_probe_ggml, gguf_parse_ggml},
};

static bool starts_with(const struct gguf_file *file, const char *text)
{
    const size_t length = strlen(text);

    return file->size_bytes >= length && memcmp(file->data, text, length) == 0;
}

static bool probe_lfs_pointer(const struct gguf_file *file)
{
    return starts_with(file, "version https://git-lfs.github.com/spec/");
}

static bool probe_html(const struct gguf_file *file)
{
    static const char *const starts[] = {"<!doctype", "<html", "<head", "<?xml"};
    uint64_t at = 0;

    while (at < file->size_bytes && isspace(file->data[at]))
        at++;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const size_t length = strlen(starts[i]);

        if (file->size_bytes - at >= length &&
            strncasecmp((const char *)file->data + at, starts[i], length) == 0)
            return true;
    }
    return false;
}

/* A u64 with the length of a JSON object, and the object. */
static bool probe_safetensors(const struct gguf_file *file)
{
    struct gguf_cursor cursor = {.data = file->data, .size_bytes = file->size_bytes};
    uint64_t length;

    return gguf_cursor_u64(&cursor, &length) == 0 && length <= gguf_cursor_left(&cursor) &&
           length > 0 && file->data[cursor.offset] == '{';
}

static bool probe_zip(const struct gguf_file *file)
{
    return starts_with(file, "PK\x03\x04");
}

static bool probe_gzip(const struct gguf_file *file)
{
    return starts_with(file, "\x1f\x8b");
}

static bool probe_json(const struct gguf_file *file)
{
    return starts_with(file, "{");
}

static bool probe_zeros(const struct gguf_file *file)
{
    static const uint8_t zeros[64];

    return file->size_bytes >= sizeof zeros && memcmp(file->data, zeros, sizeof zeros) == 0;
}

/* Files that are often given for models, and what to tell about them. */
static const struct {
    bool (*probe)(const struct gguf_file *file);
    const char *advice;
} lookalikes[] = {
    {probe_lfs_pointer, "is a Git LFS pointer, not the model itself; run \"git lfs pull\" in its "
                        "repository, or download the file from the model's page"},
    {probe_html, "is a web page, not a model; the download saved the page instead of the file "
                 "(wrong link, or a login is needed)"},
    {probe_safetensors, "is a safetensors file, not GGUF; llama.cpp's convert_hf_to_gguf.py makes "
                        "a GGUF of it"},
    {probe_zip, "is a ZIP or PyTorch file, not GGUF; unpack or convert it first"},
    {probe_gzip, "is compressed with gzip; unpack it first"},
    {probe_json, "is a JSON file, not a model"},
    {probe_zeros, "starts with zeros: the download reserved the space, but the data never came"},
};

const struct gguf_format *gguf_format_of(const struct gguf_file *file, struct gguf_report *report)
{
    char magic[4 * 4 + 1] = "";

    if (file->size_bytes == 0) {
        gguf_error(report, -EINVAL, GGUF_NO_OFFSET, "is an empty file");
        return NULL;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].probe(file))
            return &formats[i];
    }
    for (size_t i = 0; i < sizeof lookalikes / sizeof *lookalikes; i++) {
        if (lookalikes[i].probe(file)) {
            gguf_error(report, -EINVAL, GGUF_NO_OFFSET, "%s", lookalikes[i].advice);
            return NULL;
        }
    }
    for (uint64_t i = 0; i < 4 && i < file->size_bytes; i++)
        sprintf(magic + 3 * i, " %02x", file->data[i]);
    gguf_error(report, -EINVAL, 0,
               "is not a GGUF file: it starts with%s instead of 47 47 55 46 (\"GGUF\")", magic);
    return NULL;
}
