/*
 * GGUF, versions 1 to 3. Source: the specification, ggml/docs/gguf.md.
 *
 *   "GGUF", u32 version, n_tensors, n_keys
 *   n_keys    × { string key, u32 value type, value }
 *   n_tensors × { string name, u32 n_dims, ne[n_dims], u32 ggml_type, u64 offset }
 *   padding to the alignment, then the tensors' data, to whose start the offsets count
 *
 * Version 1 has u32 for counts, lengths and dimensions, later ones u64. Version 3 may be big-endian
 * as a whole, which shows only in the version's own bytes.
 */
#include "gguf/formats.h"
#include "gguf/validate.h"

#include <byteswap.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_VERSION 3u

static const char magic[4] = {'G', 'G', 'U', 'F'};

bool gguf_probe_gguf(const struct gguf_start *start)
{
    return start->n_bytes >= sizeof magic && memcmp(start->bytes, magic, sizeof magic) == 0;
}

struct header {
    uint32_t version;
    uint64_t n_tensors;
    uint64_t n_keys;
};

/*
 * Refuse a count of more entries than the file can hold, or than the limit after those `before` in
 * other files of the model, before anything is allocated.
 */
static int check_count(const struct gguf_cursor *cursor, uint64_t count, uint64_t before,
                       uint64_t limit, uint64_t smallest_bytes, const char *what)
{
    const uint64_t most = gguf_cursor_left(cursor) / smallest_bytes;
    char in_others[64] = "";

    if (before > 0)
        snprintf(in_others, sizeof in_others, " after %" PRIu64 " in other files of the model",
                 before);
    if (count > limit - before && count <= most)
        return gguf_error(cursor->report, GGUF_RULE_METADATA_LIMIT, -E2BIG, gguf_at(cursor->offset),
                          "the header says that there are %" PRIu64 " %s%s, the limit is %" PRIu64,
                          count, what, in_others, limit);
    if (count <= most)
        return 0;
    return gguf_error(cursor->report, GGUF_RULE_TRUNCATED_METADATA, -ENODATA,
                      gguf_at(cursor->offset),
                      "the header says that there are %" PRIu64 " %s, but the %" PRIu64
                      " bytes after it hold at most %" PRIu64 " (unfinished download?)",
                      count, what, gguf_cursor_left(cursor), most);
}

static int parse_header(struct gguf_cursor *cursor, const struct gguf_usage *before,
                        struct header *header)
{
    uint64_t length_bytes;
    int result;

    cursor->place = gguf_at_part("header", 0);
    gguf_cursor_skip(cursor, sizeof magic); /* by the probe */
    if (gguf_cursor_u32(cursor, &header->version) < 0)
        return gguf_cursor_fail(cursor, "the version");
    if (bswap_32(header->version) == LAST_VERSION) {
        header->version = LAST_VERSION;
        cursor->encoding.big_endian = true;
    }
    if (header->version < 1 || header->version > LAST_VERSION)
        return gguf_error(cursor->report, GGUF_RULE_VERSION, -EINVAL, gguf_at(sizeof magic),
                          "GGUF version %" PRIu32
                          " is unknown (known are 1 to %u, big-endian only %u)",
                          header->version, LAST_VERSION, LAST_VERSION);

    length_bytes = header->version == 1 ? sizeof(uint32_t) : sizeof(uint64_t);
    cursor->encoding.length_bytes = (uint8_t)length_bytes;
    if (gguf_cursor_length(cursor, &header->n_tensors) < 0 ||
        gguf_cursor_length(cursor, &header->n_keys) < 0)
        return gguf_cursor_fail(cursor, "the counts of tensors and keys");

    /* A key of no bytes with a value of one; a tensor with neither name nor dimensions. */
    result = check_count(cursor, header->n_keys, before->n_keys, GGUF_MAX_KEYS,
                         length_bytes + 4 + 1, "keys");
    if (result < 0)
        return result;
    return check_count(cursor, header->n_tensors, before->n_tensors, GGUF_MAX_TENSORS,
                       length_bytes + 4 + 4 + 8, "tensors");
}

/* Read the name of an entry. It stays in the header. */
static int parse_name(struct gguf_cursor *cursor, struct gguf_model *model, uint64_t limit_bytes,
                      struct gguf_string *name)
{
    const uint64_t offset = cursor->offset;

    if (gguf_cursor_string(cursor, name) < 0)
        return gguf_cursor_fail(cursor, "its name");
    if (name->length_bytes > limit_bytes)
        return gguf_cursor_refuse(cursor, GGUF_RULE_NAME_LENGTH, -EINVAL, offset,
                                  "its name %s has %" PRIu64 " bytes, the limit is %" PRIu64,
                                  gguf_quote(*name).text, name->length_bytes, limit_bytes);
    return gguf_add_name_bytes(model, name->length_bytes, gguf_moved(cursor->place, offset),
                               cursor->report);
}

static int parse_key(struct gguf_cursor *cursor, struct gguf_model *model)
{
    struct gguf_key *key = &model->keys[model->n_keys];
    uint64_t offset;
    uint32_t type;
    int result;

    key->file_offset = cursor->offset;
    result = parse_name(cursor, model, GGUF_MAX_KEY_BYTES, &key->name);
    if (result < 0)
        return result;
    model->n_keys++;

    cursor->place = gguf_key_place(key);
    offset = cursor->offset;
    if (gguf_cursor_u32(cursor, &type) < 0)
        return gguf_cursor_fail(cursor, "its value type");
    if (!gguf_value_type_name(type))
        return gguf_cursor_refuse(cursor, GGUF_RULE_VALUE_TYPE, -EINVAL, offset,
                                  "value type %" PRIu32 " is unknown (the last known is %d)", type,
                                  GGUF_N_VALUE_TYPES - 1);
    return gguf_value_read(cursor, type, &key->value);
}

static int parse_tensor(struct gguf_cursor *cursor, struct gguf_model *model)
{
    struct gguf_tensor *tensor = &model->tensors[model->n_tensors];
    uint64_t offset;
    int result;

    tensor->info_offset = cursor->offset;
    tensor->big_endian = cursor->encoding.big_endian;
    result = parse_name(cursor, model, GGUF_MAX_TENSOR_NAME_BYTES, &tensor->name);
    if (result < 0)
        return result;
    model->n_tensors++;

    cursor->place = gguf_tensor_place(tensor);
    offset = cursor->offset;
    if (gguf_cursor_u32(cursor, &tensor->n_dims) < 0)
        return gguf_cursor_fail(cursor, "its number of dimensions");
    if (tensor->n_dims > GGUF_MAX_DIMS)
        return gguf_cursor_refuse(cursor, GGUF_RULE_DIMENSIONS, -EINVAL, offset,
                                  "it has %" PRIu32 " dimensions, the limit "
                                  "is %d",
                                  tensor->n_dims, GGUF_MAX_DIMS);
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        tensor->ne[i] = 1;
        if (i < tensor->n_dims && gguf_cursor_length(cursor, &tensor->ne[i]) < 0)
            return gguf_cursor_fail(cursor, "its dimensions");
    }
    if (gguf_cursor_u32(cursor, &tensor->type_id) < 0 ||
        gguf_cursor_u64(cursor, &tensor->file_offset) < 0)
        return gguf_cursor_fail(cursor, "its type and offset");
    tensor->type = dequant_type_by_id(tensor->type_id);
    return 0;
}

typedef int entry_parser(struct gguf_cursor *cursor, struct gguf_model *model);

/* Parse all keys or tensors. */
static int parse_entries(struct gguf_cursor *cursor, struct gguf_model *model, uint64_t n,
                         const char *what, entry_parser *parse)
{
    int result = 0;
    char place[64];

    for (uint64_t i = 0; result == 0 && i < n; i++) {
        snprintf(place, sizeof place, "%s %" PRIu64 " of %" PRIu64, what, i + 1, n);
        cursor->place = gguf_at_part(place, 0);
        result = parse(cursor, model);
    }
    return result;
}

/*
 * Convert offsets, stored from the start of the data, to offsets from the start of the file. The
 * data are aligned within the model, which may start anywhere in its file.
 */
static int place_tensors(uint64_t header_bytes, struct gguf_model *model,
                         struct gguf_report *report)
{
    const uint64_t start_offset = model->files[0].source.start_offset;
    const uint64_t mask = model->alignment_bytes - 1;
    uint64_t data_offset;

    if (__builtin_add_overflow(header_bytes, mask, &data_offset))
        return gguf_error(report, GGUF_RULE_TENSOR_OFFSET, -EOVERFLOW,
                          gguf_at(start_offset + header_bytes),
                          "the header's %" PRIu64 " bytes, rounded up to the alignment %" PRIu64
                          ", are over 2^64",
                          header_bytes, model->alignment_bytes);
    data_offset = start_offset + (data_offset & ~mask);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_tensor *tensor = &model->tensors[i];
        const uint64_t offset = tensor->file_offset;

        if (offset & mask)
            return gguf_error(report, GGUF_RULE_TENSOR_OFFSET, -EINVAL, gguf_tensor_place(tensor),
                              "its offset %" PRIu64 " is not a multiple of the alignment %" PRIu64,
                              offset, model->alignment_bytes);
        if (__builtin_add_overflow(offset, data_offset, &tensor->file_offset))
            return gguf_error(report, GGUF_RULE_TENSOR_OFFSET, -EOVERFLOW,
                              gguf_tensor_place(tensor),
                              "its offset %" PRIu64 " and the start of the data at byte %" PRIu64
                              " add up to over 2^64",
                              offset, data_offset);
    }
    return 0;
}

int gguf_parse_gguf(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report)
{
    static const char *const names[LAST_VERSION + 1] = {"", "GGUF v1", "GGUF v2", "GGUF v3"};
    struct gguf_cursor cursor =
        gguf_cursor_begin(&model->files[0], (struct gguf_encoding){.length_bytes = 8}, report);
    struct header header;
    int result;

    result = parse_header(&cursor, &model->before, &header);
    if (result < 0)
        return result;
    model->format = names[header.version];
    model->big_endian = cursor.encoding.big_endian;
    model->is_current = header.version == LAST_VERSION && !model->big_endian;
    model->keys = calloc(header.n_keys + 1, sizeof *model->keys);
    model->tensors = calloc(header.n_tensors + 1, sizeof *model->tensors);
    if (!model->keys || !model->tensors)
        return gguf_system_error(report, -ENOMEM, gguf_at(cursor.offset));
    result = parse_entries(&cursor, model, header.n_keys, "key", parse_key);
    if (result == 0)
        result = gguf_validate_alignment(model, report);
    if (result == 0)
        result = parse_entries(&cursor, model, header.n_tensors, "tensor", parse_tensor);
    if (result < 0)
        return result;
    gguf_header_finish(&model->files[0].header, cursor.offset);
    return place_tensors(cursor.offset - model->files[0].source.start_offset, model, report);
}
