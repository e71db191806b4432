/* The table of files that users mistake for models. */
#include "gguf/formats.h"
#include "gguf/support/safe_print.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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

/* Printable text; `start` may end within a character of it. */
static bool probe_text(const struct gguf_start *start)
{
    const char *text = (const char *)start->bytes;
    const size_t cut_bytes = start->n_bytes < start->file_bytes ? 3 : 0;
    size_t at = 0;

    while (at < start->n_bytes) {
        const size_t n = gguf_printable_length(text + at, start->n_bytes - at);

        if (n == 0 && !isspace(start->bytes[at]))
            break;
        at += n > 0 ? n : 1;
    }
    return start->n_bytes >= 4 && at + cut_bytes >= start->n_bytes;
}

/* A server's message, which a download stored as the file: a few lines. */
static bool probe_message(const struct gguf_start *start)
{
    return probe_text(start) && start->n_bytes == start->file_bytes;
}

/* A message in JSON, as servers' interfaces give it. */
static bool probe_json_message(const struct gguf_start *start)
{
    return probe_message(start) && start->bytes[0] == '{' &&
           (memmem(start->bytes, start->n_bytes, "\"error\"", 7) ||
            memmem(start->bytes, start->n_bytes, "\"message\"", 9));
}

/* The file that lists the parts of a checkpoint. */
static bool probe_index(const struct gguf_start *start)
{
    return start->bytes[0] == '{' && (memmem(start->bytes, start->n_bytes, "\"weight_map\"", 12) ||
                                      memmem(start->bytes, start->n_bytes, "\"total_size\"", 12));
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

#define CONVERT "llama.cpp's convert_hf_to_gguf.py makes a GGUF file of "
#define NO_PROGRAM                                                                                 \
    "is a program without a model in it; a llamafile has a ZIP directory at its end (unfinished "  \
    "download?)"
#define WRONG_LINK "; the download saved it instead of the file (wrong link, or a login is needed)"

#define MAGIC(id, text, ...)     .rule = GGUF_RULE_##id, .magic = text, .advice = __VA_ARGS__
#define PROBE(id, function, ...) .rule = GGUF_RULE_##id, .probe = function, .advice = __VA_ARGS__

/*
 * Kinds of files, recognized by a magic at `offset` or, if that is NULL, by a probe of at least one
 * byte; the first row that fits is used. A packed file is a tar archive if its name says so.
 */
static const struct lookalike {
    enum gguf_rule rule;
    const char *magic;
    bool (*probe)(const struct gguf_start *start);
    const char *advice;
    const char *unpacker; /* of a packed file: the advice is a format's name */
    size_t offset;
    bool shows_start; /* the message quotes the text before the advice */
} lookalikes[] = {
    {MAGIC(NOT_DOWNLOADED, "version https://git-lfs.github.com/spec/",
           "is a Git LFS pointer, not the model itself; run \"git lfs pull\" in its repository, or "
           "download the file from the model's page")},
    {PROBE(NOT_DOWNLOADED, probe_html, "is a web page, not a model" WRONG_LINK)},
    {PROBE(NOT_DOWNLOADED, probe_json_message,
           "which is a server's message, not a model" WRONG_LINK, .shows_start = true)},
    {PROBE(NOT_CONVERTED, probe_index,
           "is the index of a checkpoint in several files; " CONVERT "their folder")},
    {MAGIC(NOT_A_MODEL, "{",
           "is a JSON file, not a model; the model's file in GGUF ends in .gguf")},

    {PROBE(NOT_CONVERTED, probe_safetensors,
           "is a safetensors file, not GGUF; " CONVERT "the folder of its checkpoint")},
    {PROBE(NOT_CONVERTED, probe_pickle,
           "is a Python pickle, the format of old PyTorch files, not GGUF; " CONVERT
           "the folder of its checkpoint")},
    {MAGIC(NOT_CONVERTED, "algg",
           "is a LoRA adapter of llama.cpp before 2024-07; convert the original adapter with "
           "llama.cpp's convert_lora_to_gguf.py")},

    {MAGIC(ZIP, "PK\x03\x04",
           "is a ZIP or PyTorch file without its directory, which is at the end (unfinished "
           "download?)")},
    {MAGIC(ZIP, "MZ", NO_PROGRAM)},
    {MAGIC(ZIP, "\177ELF", NO_PROGRAM)},
    {MAGIC(PACKED, "\x1f\x8b", "gzip", "gunzip")},
    {MAGIC(PACKED, "\x28\xb5\x2f\xfd", "Zstandard", "unzstd")},
    {MAGIC(PACKED, "\3757zXZ", "xz", "unxz")},
    {MAGIC(PACKED, "BZh", "bzip2", "bunzip2")},
    {MAGIC(PACKED, "\x04\x22\x4d\x18", "LZ4", "unlz4")},
    {MAGIC(PACKED, "7z\xbc\xaf", "7-Zip", "7z x")},
    {MAGIC(PACKED, "Rar!", "RAR", "unrar x")},
    {MAGIC(PACKED, "ustar", "is a tar archive without a model in it", .offset = 257)},
    {PROBE(NOT_DOWNLOADED, probe_message,
           "which is text, not GGUF; a failed download may have stored the server's message (wrong "
           "link, or a login is needed)",
           .shows_start = true)},
    {PROBE(NOT_A_MODEL, probe_text,
           "is a text file, not a model; the model's file in GGUF ends in .gguf")},
    {PROBE(NOT_DOWNLOADED, probe_zeros,
           "starts with zeros: the download reserved the space, but the data never came")},
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

/* Return true for the name of a packed tar archive, like model.tar.gz or model.tgz. */
static bool is_named_tar(const char *path)
{
    static const char *const endings[] = {".tgz", ".txz", ".tzst", ".tbz2", ".tbz"};
    const char *name = path && strrchr(path, '/') ? strrchr(path, '/') + 1 : "";

    for (size_t i = 0; i < COUNT(endings); i++) {
        if (gguf_string_ends_with((struct gguf_string){name, strlen(name)}, endings[i]))
            return true;
    }
    return strstr(name, ".tar.");
}

static int refuse_as(const struct lookalike *lookalike, const struct gguf_start *start,
                     struct gguf_report *report)
{
    const struct gguf_string text = {(const char *)start->bytes, start->n_bytes};

    if (lookalike->unpacker && is_named_tar(start->path))
        return gguf_error(report, lookalike->rule, -EINVAL, GGUF_NO_PLACE,
                          "is a tar archive compressed with %s; unpack it first (tar -xf) and name "
                          "the model in it",
                          lookalike->advice);
    if (lookalike->unpacker)
        return gguf_error(report, lookalike->rule, -EINVAL, GGUF_NO_PLACE,
                          "is compressed with %s; unpack it first (%s)", lookalike->advice,
                          lookalike->unpacker);
    if (lookalike->shows_start)
        return gguf_error(report, lookalike->rule, -EINVAL, GGUF_NO_PLACE, "contains only %s, %s",
                          gguf_quote(text).text, lookalike->advice);
    return gguf_error(report, lookalike->rule, -EINVAL, GGUF_NO_PLACE, "%s", lookalike->advice);
}

int gguf_refuse_format(const struct gguf_start *start, struct gguf_report *report)
{
    char magic[4 * 4 + 1] = "";

    if (start->n_bytes == 0)
        return gguf_error(report, GGUF_RULE_EMPTY_FILE, -EINVAL, GGUF_NO_PLACE, "is an empty file");
    for (size_t i = 0; i < COUNT(lookalikes); i++) {
        if (matches(start, &lookalikes[i]))
            return refuse_as(&lookalikes[i], start, report);
    }
    for (size_t i = 0; i < 4 && i < start->n_bytes; i++)
        sprintf(magic + 3 * i, " %02x", start->bytes[i]);
    return gguf_error(report, GGUF_RULE_NOT_A_MODEL, -EINVAL, gguf_at(start->file_offset),
                      "not a GGUF file: it starts with%s instead of 47 47 55 46 (\"GGUF\")%s",
                      magic, start->n_bytes < 4 ? " and ends there (unfinished download?)" : "");
}
