/* The result of `ggufs --diff` as text and as JSON. */
#include "fs/command/diff_result.h"

#include "fs/command/tensor_choice.h"
#include "fs/tree/json.h"
#include "fs/tree/metadata_json.h"
#include "fs/tree/tensor_info.h"
#include "gguf/support/safe_print.h"

#include <inttypes.h>
#include <string.h>

/* Bytes of a value that are shown, before it is cut. */
#define VALUE_BYTES      60u
#define MAX_NAME_COLUMNS 60

static const struct gguf_tensor *any_of(const struct fs_tensor_pair *pair)
{
    return pair->tensors[0] ? pair->tensors[0] : pair->tensors[1];
}

static const char *type_of(const struct gguf_tensor *tensor)
{
    return tensor->type ? tensor->type->name : "unknown";
}

/* Write the start of a value's JSON, without the line break at its end. Returns true if it is cut.
 */
static bool write_value(const struct fs_tree *tree, const struct gguf_key *key,
                        char text[VALUE_BYTES + 1])
{
    struct fs_sink sink = {.to = VALUE_BYTES, .out = text};
    struct fs_place place = {0};

    while (sink.position < VALUE_BYTES && fs_value_json_write(tree, key, &place, &sink) > 0)
        ;
    if (sink.position <= VALUE_BYTES && sink.position > 0) {
        text[sink.position - 1] = '\0';
        return false;
    }
    text[VALUE_BYTES] = '\0';
    return true;
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

static void print_value(const struct fs_diff *diff, int side, const struct gguf_key *key)
{
    char text[VALUE_BYTES + 1];
    const bool is_cut = write_value(diff->trees[side], key, text);

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
            print_value(diff, side, keys[side]);
            /* A number may look the same in two types. */
            if (keys[0] && keys[1] && keys[0]->value.type != keys[1]->value.type)
                printf(" (%s)", gguf_value_type_name(keys[side]->value.type));
            putchar('\n');
        }
    }
}

static void print_tensor(const struct fs_diff *diff, int side, const struct gguf_tensor *tensor)
{
    uint64_t shape[GGUF_MAX_DIMS];
    const struct gguf_string name = gguf_name_of(tensor);
    const uint32_t n_dims = fs_tensor_shape(diff->trees[side], tensor, shape);

    printf("%c tensor ", side == 0 ? '<' : '>');
    gguf_print_safe(stdout, name.data, name.length_bytes);
    printf(": %s [", type_of(tensor));
    for (uint32_t i = 0; i < n_dims; i++)
        printf("%s%" PRIu64, i > 0 ? ", " : "", shape[i]);
    printf("]\n");
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
        const size_t length = gguf_name_of(any_of(&diff->tensors[i])).length_bytes;

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
        printf("  [");
        for (uint32_t i = 0; i < n_dims; i++)
            printf("%s%" PRIu64, i > 0 ? ", " : "", coordinates[i]);
        printf("]");
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

static void print_string(struct gguf_string string)
{
    char part[1024];

    putchar('"');
    while (string.length_bytes > 0) {
        struct gguf_string some = {string.data, string.length_bytes};
        struct fs_sink sink = {.to = sizeof part, .out = part};
        size_t n;

        if (some.length_bytes > sizeof part / 8)
            some.length_bytes = sizeof part / 8;
        n = fs_json_string_part(&sink, some, some.length_bytes == string.length_bytes);
        fwrite(sink.out, 1, sink.position, stdout);
        string.data += n;
        string.length_bytes -= n;
    }
    putchar('"');
}

/* Print a whole value, however long it is. */
static void print_whole_value(const struct fs_tree *tree, const struct gguf_key *key)
{
    struct fs_place place = {0};
    uint64_t done;
    int result;

    do {
        char part[64 << 10]; /* a piece is some KiB */
        struct fs_sink sink = {.to = sizeof part, .out = part};

        result = fs_value_json_write(tree, key, &place, &sink);
        done = sink.position < sizeof part ? sink.position : sizeof part;
        if (result <= 0 && done > 0 && part[done - 1] == '\n')
            done--; /* the end of the file that shows the value */
        fwrite(sink.out, 1, done, stdout);
    } while (result > 0);
}

static void print_json_keys(const struct fs_diff *diff)
{
    printf("\"metadata\":[");
    for (size_t i = 0; i < diff->n_keys; i++) {
        const struct gguf_key *const *keys = diff->keys[i].keys;

        printf("%s\n{\"key\":", i > 0 ? "," : "");
        print_string(keys[0] ? keys[0]->name : keys[1]->name);
        for (int side = 0; side < 2; side++) {
            if (!keys[side])
                continue;
            printf(",\"%c_type\":\"%s\",\"%c\":", 'a' + side,
                   gguf_value_type_name(keys[side]->value.type), 'a' + side);
            print_whole_value(diff->trees[side], keys[side]);
        }
        putchar('}');
    }
    printf("],\n");
}

/* Print a float64, or null if it is not finite. */
static void print_number(const char *name, double number)
{
    struct gguf_value value = {.type = GGUF_FLOAT64, .f64 = number};
    char text[64];
    struct fs_sink sink = {.to = sizeof text, .out = text};

    fs_json_scalar(&sink, &value);
    printf(",\"%s\":%.*s", name, (int)sink.position, sink.out);
}

static void print_json_errors(const struct fs_comparison *comparison)
{
    print_number("nmse", fs_comparison_nmse(comparison));
    print_number("cosine", fs_comparison_cosine(comparison));
    print_number("largest_error", comparison->products.largest);
    printf(",\"not_finite\":%" PRIu64 ",\"not_finite_unequal\":%" PRIu64, comparison->n_not_finite,
           comparison->n_only_in_one);
}

static void print_json_tensor(const struct fs_diff *diff, const struct fs_tensor_pair *pair)
{
    static const char *const names[] = {
        [FS_SAME_TENSOR] = "none", [FS_ONLY_IN_ONE] = "missing", [FS_OTHER_SHAPE] = "shape",
        [FS_OTHER_TYPE] = "type",  [FS_OTHER_VALUES] = "values", [FS_NOT_COMPARABLE] = "unknown"};
    uint64_t dims[GGUF_MAX_DIMS];

    printf("{\"name\":");
    print_string(gguf_name_of(any_of(pair)));
    printf(",\"difference\":\"%s\"", names[pair->difference]);
    for (int side = 0; side < 2; side++) {
        const struct gguf_tensor *tensor = pair->tensors[side];
        uint32_t n_dims;

        if (!tensor)
            continue;
        n_dims = fs_tensor_shape(diff->trees[side], tensor, dims);
        printf(",\"%c_type\":", 'a' + side);
        printf(tensor->type ? "\"%s\"" : "null", type_of(tensor));
        printf(",\"%c_shape\":[", 'a' + side);
        for (uint32_t i = 0; i < n_dims; i++)
            printf("%s%" PRIu64, i > 0 ? "," : "", dims[i]);
        putchar(']');
    }
    if (pair->is_compared) {
        print_json_errors(&pair->comparison);
        printf(",\"weighted\":%s,\"largest_error_at\":", pair->is_weighted ? "true" : "false");
        if (pair->comparison.products.largest > 0) {
            const uint32_t n_dims = locate(diff, pair, dims);

            for (uint32_t i = 0; i < n_dims; i++)
                printf("%c%" PRIu64, i > 0 ? ',' : '[', dims[i]);
            printf("%s", n_dims > 0 ? "]" : "[]");
        } else {
            printf("null");
        }
    }
    putchar('}');
}

void fs_diff_print_json(const struct fs_diff *diff)
{
    printf("{");
    print_json_keys(diff);
    printf("\"tensors\":[");
    for (size_t i = 0; i < diff->n_tensors; i++) {
        printf("%s\n", i > 0 ? "," : "");
        print_json_tensor(diff, &diff->tensors[i]);
    }
    printf("],\n\"total\":{\"compared\":%zu,\"different\":%zu,\"weighted\":%zu", diff->n_compared,
           diff->n_different, diff->n_weighted);
    print_json_errors(&diff->total);
    printf("}}\n");
}
