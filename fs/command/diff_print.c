/* The result of `ggufs --diff` as text and as JSON. */
#include "fs/command/diff_result.h"

#include "fs/command/terminal.h"
#include "fs/tree/output/json.h"
#include "fs/tree/output/value_writer.h"
#include "gguf/support/safe_print.h"

#include <inttypes.h>

/* Bytes of a value that are shown, before it is cut. */
#define VALUE_BYTES      60u
#define MAX_NAME_COLUMNS 60

static const char *type_of(const struct gguf_tensor *tensor)
{
    return tensor->type ? tensor->type->name : "unknown";
}

/* Write the start of a value's JSON. Returns true if it is cut. */
static bool write_value(const struct gguf_key *key, char text[VALUE_BYTES + 1])
{
    struct fs_sink sink = {.to = VALUE_BYTES, .out = text};

    fs_json_value(&sink, &key->value);
    text[sink.position < VALUE_BYTES ? sink.position : VALUE_BYTES] = '\0';
    return sink.position > VALUE_BYTES;
}

/* Get the coordinates of an element. Returns the number of dimensions. */
static uint32_t locate(const struct fs_diff *diff, const struct fs_tensor_pair *pair,
                       uint64_t coordinates[GGUF_MAX_DIMS])
{
    uint64_t rest = pair->comparison.largest_at;
    const uint32_t n_dims = fs_tensor_shape(diff->trees[0], pair->tensors[0], coordinates);

    for (uint32_t i = n_dims; i-- > 0;) {
        const uint64_t size = coordinates[i];

        coordinates[i] = size > 0 ? rest % size : 0;
        rest /= size > 0 ? size : 1;
    }
    return n_dims;
}

/* ---- text ---- */

static void print_value(const struct gguf_key *key)
{
    char text[VALUE_BYTES + 1];
    const bool is_cut = write_value(key, text);

    gguf_print_safe_string(stdout, text);
    printf("%s", is_cut ? "..." : "");
}

static void print_keys(const struct fs_diff *diff)
{
    for (size_t i = 0; i < diff->n_keys; i++) {
        const struct gguf_key *const *keys = diff->keys[i].keys;
        const struct gguf_string name = keys[0] ? keys[0]->name : keys[1]->name;

        for (int side = 0; side < 2; side++) {
            if (!keys[side])
                continue;
            printf("%c ", side == 0 ? '<' : '>');
            gguf_print_safe(stdout, name.data, name.length_bytes);
            printf(": ");
            print_value(keys[side]);
            /* A number may look the same in two types. */
            if (keys[0] && keys[1] && keys[0]->value.type != keys[1]->value.type)
                printf(" (%s)", gguf_value_type_name(keys[side]->value.type));
            putchar('\n');
        }
    }
}

static void print_numbers(const uint64_t *numbers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        printf("%s%" PRIu64, i > 0 ? ", " : "[", numbers[i]);
    fputs(n > 0 ? "]" : "[]", stdout);
}

static void print_tensor(const struct fs_diff *diff, int side, const struct gguf_tensor *tensor)
{
    uint64_t shape[GGUF_MAX_DIMS];
    const struct gguf_string name = gguf_name_of(tensor);
    const uint32_t n_dims = fs_tensor_shape(diff->trees[side], tensor, shape);

    printf("%c tensor ", side == 0 ? '<' : '>');
    gguf_print_safe(stdout, name.data, name.length_bytes);
    printf(": %s ", type_of(tensor));
    print_numbers(shape, n_dims);
    putchar('\n');
}

static void print_tensors(const struct fs_diff *diff)
{
    for (size_t i = 0; i < diff->n_tensors; i++) {
        const struct fs_tensor_pair *pair = &diff->tensors[i];

        if (pair->difference != FS_ONLY_IN_ONE && pair->difference != FS_OTHER_SHAPE &&
            pair->difference != FS_NOT_COMPARABLE)
            continue;
        for (int side = 0; side < 2; side++)
            if (pair->tensors[side])
                print_tensor(diff, side, pair->tensors[side]);
        if (pair->difference == FS_NOT_COMPARABLE)
            printf("  the stored bytes differ, and the values cannot be decoded to compare them\n");
    }
}

static int name_columns(const struct fs_diff *diff)
{
    size_t columns = 6;

    for (size_t i = 0; i < diff->n_tensors; i++) {
        const size_t length = fs_pair_name(&diff->tensors[i]).length_bytes;

        columns = length > columns ? length : columns;
    }
    return columns < MAX_NAME_COLUMNS ? (int)columns : MAX_NAME_COLUMNS;
}

static void print_errors(const struct fs_comparison *comparison)
{
    printf(" %11.4g %12.9f %12.5g", fs_comparison_nmse(comparison),
           fs_comparison_cosine(comparison), comparison->products.largest);
}

static void print_comparison(const struct fs_diff *diff, const struct fs_tensor_pair *pair,
                             int columns)
{
    const struct gguf_string name = gguf_name_of(pair->tensors[0]);
    uint64_t coordinates[GGUF_MAX_DIMS];
    const uint32_t n_dims = locate(diff, pair, coordinates);

    gguf_print_safe(stdout, name.data, name.length_bytes);
    for (int i = (int)name.length_bytes; i < columns; i++)
        putchar(' ');
    printf("  %-*s %-*s", DEQUANT_NAME_COLUMNS, type_of(pair->tensors[0]), DEQUANT_NAME_COLUMNS,
           type_of(pair->tensors[1]));
    print_errors(&pair->comparison);
    if (pair->comparison.products.largest > 0) {
        printf("  ");
        print_numbers(coordinates, n_dims);
    }
    if (pair->comparison.n_not_finite > 0)
        printf("  %" PRIu64 " not finite, %" PRIu64 " of them unequal",
               pair->comparison.n_not_finite, pair->comparison.n_only_in_one);
    putchar('\n');
}

static bool is_shown(const struct fs_tensor_pair *pair)
{
    return pair->difference == FS_OTHER_VALUES || pair->difference == FS_OTHER_TYPE;
}

static void print_comparisons(const struct fs_diff *diff)
{
    const int columns = name_columns(diff);
    size_t n_shown = 0;

    for (size_t i = 0; i < diff->n_tensors; i++)
        n_shown += is_shown(&diff->tensors[i]);
    if (n_shown > 0)
        printf("%-*s  %-*s %-*s %11s %12s %12s  %s\n", columns, "tensor", DEQUANT_NAME_COLUMNS, "<",
               DEQUANT_NAME_COLUMNS, ">", "NMSE", "cosine", "largest", "at");
    for (size_t i = 0; i < diff->n_tensors; i++)
        if (is_shown(&diff->tensors[i]))
            print_comparison(diff, &diff->tensors[i], columns);
    if (n_shown == 0)
        return;
    printf("%-*s  %-*s %-*s", columns, "all", DEQUANT_NAME_COLUMNS, "", DEQUANT_NAME_COLUMNS, "");
    print_errors(&diff->total);
    printf("  %zu of %zu tensors differ", n_shown, diff->n_compared);
    if (diff->n_weighted > 0)
        printf("; the errors here are those of the %zu weighted ones", diff->n_weighted);
    putchar('\n');
}

void fs_diff_print(const struct fs_diff *diff)
{
    print_keys(diff);
    print_tensors(diff);
    print_comparisons(diff);
}

/* ---- JSON ---- */

static void write_keys(const struct fs_diff *diff, struct fs_sink *sink)
{
    fs_sink_literal(sink, ",\"metadata\":[");
    for (size_t i = 0; i < diff->n_keys; i++) {
        const struct gguf_key *const *keys = diff->keys[i].keys;

        fs_sink_literal(sink, i > 0 ? ",{\"key\":" : "{\"key\":");
        fs_json_string(sink, keys[0] ? keys[0]->name : keys[1]->name);
        for (int side = 0; side < 2; side++) {
            if (!keys[side])
                continue;
            fs_sink_print(sink, ",\"%c_type\":\"%s\",\"%c\":", 'a' + side,
                          gguf_value_type_name(keys[side]->value.type), 'a' + side);
            fs_json_value(sink, &keys[side]->value);
        }
        fs_sink_literal(sink, "}");
    }
    fs_sink_literal(sink, "]");
}

/* Write a float64, or null if it is not finite. */
static void write_number(const char *name, double number, struct fs_sink *sink)
{
    const struct gguf_value value = {.type = GGUF_FLOAT64, .f64 = number};

    fs_json_member(sink, name, false);
    fs_json_scalar(sink, &value);
}

static void write_errors(const struct fs_comparison *comparison, struct fs_sink *sink)
{
    write_number("nmse", fs_comparison_nmse(comparison), sink);
    write_number("cosine", fs_comparison_cosine(comparison), sink);
    write_number("largest_error", comparison->products.largest, sink);
    fs_json_count(sink, "not_finite", comparison->n_not_finite);
    fs_json_count(sink, "not_finite_unequal", comparison->n_only_in_one);
}

static void write_tensor(const struct fs_diff *diff, const struct fs_tensor_pair *pair,
                         struct fs_sink *sink)
{
    static const char *const names[] = {
        [FS_SAME_TENSOR] = "none", [FS_ONLY_IN_ONE] = "missing", [FS_OTHER_SHAPE] = "shape",
        [FS_OTHER_TYPE] = "type",  [FS_OTHER_VALUES] = "values", [FS_NOT_COMPARABLE] = "unknown"};
    uint64_t dims[GGUF_MAX_DIMS];

    fs_sink_literal(sink, "{\"name\":");
    fs_json_string(sink, fs_pair_name(pair));
    fs_sink_print(sink, ",\"difference\":\"%s\"", names[pair->difference]);
    for (int side = 0; side < 2; side++) {
        const struct gguf_tensor *tensor = pair->tensors[side];
        uint32_t n_dims;

        if (!tensor)
            continue;
        n_dims = fs_tensor_shape(diff->trees[side], tensor, dims);
        fs_sink_print(sink, ",\"%c_type\":", 'a' + side);
        fs_sink_print(sink, tensor->type ? "\"%s\"" : "null", type_of(tensor));
        fs_sink_print(sink, ",\"%c_shape\":", 'a' + side);
        fs_json_integers(sink, dims, n_dims);
    }
    if (pair->is_compared) {
        write_errors(&pair->comparison, sink);
        fs_sink_print(
            sink, ",\"weighted\":%s,\"largest_error_at\":", pair->is_weighted ? "true" : "false");
        if (pair->comparison.products.largest > 0)
            fs_json_integers(sink, dims, locate(diff, pair, dims));
        else
            fs_sink_literal(sink, "null");
    }
    fs_sink_literal(sink, "}");
}

static void write_json(const void *subject, struct fs_sink *sink)
{
    const struct fs_diff *diff = subject;

    fs_json_begin(sink, "a_file", diff->paths[0]);
    fs_json_text_member(sink, "b_file", diff->paths[1]);
    write_keys(diff, sink);
    fs_sink_literal(sink, ",\"tensors\":[");
    for (size_t i = 0; i < diff->n_tensors; i++) {
        fs_sink_literal(sink, i > 0 ? "," : "");
        write_tensor(diff, &diff->tensors[i], sink);
    }
    fs_sink_print(sink, "],\"total\":{\"compared\":%zu,\"different\":%zu,\"weighted\":%zu",
                  diff->n_compared, diff->n_different, diff->n_weighted);
    write_errors(&diff->total, sink);
    fs_sink_literal(sink, "}}\n");
}

int fs_diff_print_json(const struct fs_diff *diff)
{
    return fs_print_written(write_json, diff);
}
