#include "fs/tree/views/summary_values.h"

#include "fs/tree/output/json.h"
#include "fs/tree/output/value_writer.h"
#include "gguf/support/safe_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Limit in bytes of a string from the model. */
#define SHOWN_BYTES 200u
/* Limit of the elements of an array. */
#define SHOWN_ELEMENTS 8u

void fs_summary_part(const struct fs_summary *summary, const char *text, const char *member)
{
    if (!summary->is_json)
        fs_sink_literal(summary->sink, text);
    else if (member)
        fs_json_member(summary->sink, member, false);
}

unsigned fs_summary_scale(double *number, double base)
{
    unsigned n = 0;

    for (; *number >= base && n < 4; n++)
        *number /= base;
    return n;
}

void fs_summary_bytes(const struct fs_summary *summary, uint64_t n_bytes, bool is_exact)
{
    double shown = (double)n_bytes;
    const unsigned unit = fs_summary_scale(&shown, 1024);

    if (summary->is_json)
        fs_sink_unsigned(summary->sink, n_bytes);
    else if (unit == 0)
        fs_sink_print(summary->sink, "%" PRIu64 " bytes", n_bytes);
    else
        fs_sink_print(summary->sink, "%.2f %ciB", shown, " KMGT"[unit]);
    if (!summary->is_json && unit > 0 && is_exact)
        fs_sink_print(summary->sink, " (%" PRIu64 " bytes)", n_bytes);
}

void fs_summary_label(const struct fs_summary *summary, const char *label, const char *member)
{
    char padded[32];

    snprintf(padded, sizeof padded, "%-16s", label);
    fs_summary_part(summary, padded, member);
}

void fs_summary_text(const struct fs_summary *summary, const char *text)
{
    if (summary->is_json)
        fs_json_text(summary->sink, text);
    else
        fs_sink_literal(summary->sink, text);
}

void fs_summary_line(const struct fs_summary *summary, const char *label, const char *before,
                     const char *member, const char *text)
{
    if (!text)
        return;
    fs_summary_label(summary, label, member);
    fs_summary_part(summary, before, NULL);
    fs_summary_text(summary, text);
    fs_summary_part(summary, "\n", NULL);
}

static void write_string(struct fs_sink *sink, struct gguf_string string)
{
    const bool is_cut = string.length_bytes > SHOWN_BYTES;
    char text[GGUF_ESCAPED_BYTES * SHOWN_BYTES];

    if (is_cut)
        string.length_bytes = SHOWN_BYTES;
    fs_sink_write(sink, text, gguf_escape(string.data, (size_t)string.length_bytes, text));
    if (is_cut)
        fs_sink_literal(sink, "...");
}

void fs_summary_string(const struct fs_summary *summary, struct gguf_string string)
{
    if (summary->is_json)
        fs_json_string(summary->sink, string);
    else
        write_string(summary->sink, string);
}

const struct gguf_value *fs_summary_find_string(const struct gguf_model *model, const char *key)
{
    const struct gguf_value *value = fs_summary_find(model, key);

    return value && value->type == GGUF_STRING ? value : NULL;
}

const struct gguf_value *fs_summary_find(const struct gguf_model *model, const char *key)
{
    const struct gguf_key *found =
        key[0] == '.' ? gguf_find_arch_key(model, key + 1) : gguf_find_key(model, key);

    return found ? &found->value : NULL;
}

bool fs_summary_has_integers(const struct gguf_value *value)
{
    const enum gguf_value_type type =
        value->type == GGUF_ARRAY ? value->array.element_type : value->type;

    return gguf_value_type_is_integer(type) &&
           (value->type != GGUF_ARRAY ||
            (value->array.n_elements > 0 && value->array.n_elements <= 65536));
}

void fs_summary_range(const struct fs_summary *summary, const struct gguf_value *value)
{
    uint64_t least = UINT64_MAX, greatest = 0;
    struct gguf_value element;
    struct gguf_cursor cursor;

    if (summary->is_json || gguf_value_is_integer(value)) {
        fs_summary_value(summary, value);
        return;
    }
    cursor = gguf_array_begin(&value->array);
    for (uint64_t i = 0; i < value->array.n_elements; i++) {
        gguf_array_next(&cursor, value->array.element_type, &element);
        least = element.u64 < least ? element.u64 : least;
        greatest = element.u64 > greatest ? element.u64 : greatest;
    }
    fs_sink_print(summary->sink, least == greatest ? "%" PRIu64 : "%" PRIu64 " to %" PRIu64, least,
                  greatest);
}

bool fs_summary_shows(const struct gguf_value *value)
{
    if (value->type == GGUF_ARRAY)
        return value->array.n_elements > 0 && value->array.element_type != GGUF_ARRAY;
    if (value->type == GGUF_STRING)
        return value->string.length_bytes > 0;
    return !gguf_value_is_integer(value) || value->u64 != 0;
}

static void write_scalar(struct fs_sink *sink, const struct gguf_value *value)
{
    switch (value->type) {
    case GGUF_STRING:
        write_string(sink, value->string);
        break;
    case GGUF_BOOL:
        fs_sink_literal(sink, value->boolean ? "yes" : "no");
        break;
    case GGUF_FLOAT32:
        fs_sink_print(sink, "%g", (double)value->f32);
        break;
    case GGUF_FLOAT64:
        fs_sink_print(sink, "%g", value->f64);
        break;
    default:
        fs_json_scalar(sink, value);
    }
}

void fs_summary_value(const struct fs_summary *summary, const struct gguf_value *value)
{
    struct fs_sink *sink = summary->sink;
    struct gguf_cursor cursor;
    struct gguf_value element;

    if (summary->is_json) {
        fs_json_value(sink, value);
        return;
    }
    if (value->type != GGUF_ARRAY) {
        write_scalar(sink, value);
        return;
    }
    cursor = gguf_array_begin(&value->array);
    for (uint64_t i = 0; i < value->array.n_elements && i < SHOWN_ELEMENTS; i++) {
        gguf_array_next(&cursor, value->array.element_type, &element);
        fs_sink_literal(sink, i > 0 ? ", " : "");
        write_scalar(sink, &element);
    }
    if (value->array.n_elements > SHOWN_ELEMENTS)
        fs_sink_print(sink, ", ... (%" PRIu64 " in all)", value->array.n_elements);
}

/* ---- tensors by type ---- */

void fs_shares_add(struct fs_share *shares, size_t *n_shares, const struct gguf_tensor *tensor)
{
    size_t i = 0;

    while (i < *n_shares && shares[i].type != tensor->type)
        i++;
    if (i == *n_shares)
        shares[(*n_shares)++] = (struct fs_share){.type = tensor->type};
    shares[i].n_tensors++;
    shares[i].n_elements += tensor->n_elements;
    shares[i].n_bytes += tensor->type ? tensor->size_bytes : tensor->extent_bytes;
}

static int compare_shares(const void *a, const void *b)
{
    const struct fs_share *first = a, *second = b;

    if (first->n_bytes != second->n_bytes)
        return first->n_bytes > second->n_bytes ? -1 : 1;
    return (first->n_tensors < second->n_tensors) - (first->n_tensors > second->n_tensors);
}

void fs_shares_sort(struct fs_share *shares, size_t n_shares)
{
    qsort(shares, n_shares, sizeof *shares, compare_shares);
}

struct fs_share fs_shares_sum(const struct fs_share *shares, size_t n_shares)
{
    struct fs_share sum = {0};

    for (size_t i = 0; i < n_shares; i++) {
        sum.n_tensors += shares[i].n_tensors;
        sum.n_elements += shares[i].n_elements;
        sum.n_bytes += shares[i].n_bytes;
    }
    return sum;
}
