#include "fs/command/commands.h"

#include "fs/command/model_input.h"
#include "fs/command/tensor_choice.h"
#include "fs/command/terminal.h"
#include "fs/tree/data/comparison.h"
#include "fs/tree/output/json.h"
#include "fs/tree/output/value_writer.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/progress.h"
#include "gguf/support/safe_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sysexits.h>

enum { DIFFERS = 1 };

/* Bytes of a value that are shown, before it is cut. */
#define VALUE_BYTES 60u

enum difference {
    SAME_TENSOR,
    ONLY_IN_ONE,
    OTHER_SHAPE,
    OTHER_TYPE, /* but equal values */
    OTHER_VALUES,
    NOT_COMPARABLE, /* a type cannot be decoded, and the stored bytes are not the same */
};

/* The keys or the tensors of one name; NULL for a model that lacks it. */
struct pair {
    struct gguf_string name;
    union {
        const void *things[2];
        const struct gguf_key *keys[2];
        const struct gguf_tensor *tensors[2];
    };
    enum difference difference; /* of tensors, as the next two */
    bool is_compared;           /* as numbers */
    struct fs_comparison comparison;
};

struct diff {
    const struct fs_options *options;
    struct gguf_progress progress;
    struct fs_tree *trees[2];
    struct pair *keys; /* keys that differ, sorted by name; owned */
    size_t n_keys;
    struct pair *tensors; /* chosen tensors, largest error first; owned */
    size_t n_tensors;
    size_t n_compared, n_different; /* tensors */
    struct fs_comparison total;
};

/* ---- pairs ---- */

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *first = a, *second = b;
    const int order = gguf_string_compare(first->name, second->name);

    return order != 0 ? order : !first->things[0] - !second->things[0];
}

/* Sort n pairs, each with one thing of one model, and join pairs of equal names. Returns their
 * number. */
static size_t join(struct pair *pairs, size_t n)
{
    size_t n_joined = 0;

    qsort(pairs, n, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < n; i++) {
        struct pair *last = n_joined > 0 ? &pairs[n_joined - 1] : NULL;

        if (last && !last->things[1] && !pairs[i].things[0] &&
            gguf_string_compare(last->name, pairs[i].name) == 0)
            last->things[1] = pairs[i].things[1];
        else
            pairs[n_joined++] = pairs[i];
    }
    return n_joined;
}

static void add(struct pair *pairs, size_t *n, int side, struct gguf_string name, const void *thing)
{
    pairs[*n].name = name;
    pairs[(*n)++].things[side] = thing;
}

/* Find the pairs of chosen tensors and, without patterns, the keys that differ. */
static bool find_pairs(struct diff *diff)
{
    const struct fs_options *options = diff->options;
    const struct gguf_model *const models[2] = {diff->trees[0]->model, diff->trees[1]->model};
    size_t n = 0;

    diff->keys = calloc(models[0]->n_keys + models[1]->n_keys + 1, sizeof *diff->keys);
    diff->tensors = calloc(models[0]->n_tensors + models[1]->n_tensors + 1, sizeof *diff->tensors);
    if (!diff->keys || !diff->tensors)
        return false;
    for (int side = 0; side < 2; side++) {
        const struct gguf_model *model = models[side];

        for (uint64_t i = 0; options->n_paths == 0 && i < model->n_keys; i++)
            add(diff->keys, &n, side, model->keys[i].name, &model->keys[i]);
        for (uint64_t i = 0; i < model->n_tensors; i++) {
            const struct gguf_string name = gguf_name_of(&model->tensors[i]);

            if (fs_is_tensor_chosen(options->paths, options->n_paths, name))
                add(diff->tensors, &diff->n_tensors, side, name, &model->tensors[i]);
        }
    }
    n = join(diff->keys, n);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_key *const *keys = diff->keys[i].keys;

        if (!keys[0] || !keys[1] || keys[0]->value.type != keys[1]->value.type ||
            !gguf_value_equals(&keys[0]->value, &keys[1]->value))
            diff->keys[diff->n_keys++] = diff->keys[i];
    }
    diff->n_tensors = join(diff->tensors, diff->n_tensors);
    return true;
}

/* ---- values ---- */

static bool has_same_shape(const struct diff *diff, const struct pair *pair)
{
    uint64_t shapes[2][GGUF_MAX_DIMS];
    uint32_t n_dims[2];

    for (int i = 0; i < 2; i++)
        n_dims[i] = fs_tensor_shape(diff->trees[i], pair->tensors[i], shapes[i]);
    return n_dims[0] == n_dims[1] && memcmp(shapes[0], shapes[1], n_dims[0] * sizeof **shapes) == 0;
}

static bool is_comparable(const struct gguf_tensor *tensor)
{
    return tensor->type && dequant_is_decodable(tensor->type);
}

static int compare_values(struct diff *diff, struct pair *pair, unsigned *failed)
{
    const struct fs_tensor_of both[2] = {{diff->trees[0]->model, pair->tensors[0]},
                                         {diff->trees[1]->model, pair->tensors[1]}};
    const int result = fs_compare_tensors(both, &pair->comparison, failed);

    if (result < 0)
        return result;
    pair->is_compared = true;
    diff->n_compared++;
    fs_comparison_add(&diff->total, &pair->comparison);
    if (pair->comparison.products.largest > 0 || pair->comparison.n_only_in_one > 0)
        pair->difference = OTHER_VALUES;
    else if (pair->tensors[0]->type != pair->tensors[1]->type)
        pair->difference = OTHER_TYPE;
    return 0;
}

/* Return how many bytes of a tensor's data can be compared as they are stored. */
static uint64_t stored_bytes(const struct gguf_tensor *tensor)
{
    return tensor->type ? tensor->size_bytes : tensor->extent_bytes;
}

/* Compare the stored bytes of a pair that cannot be decoded. */
static int compare_stored(struct diff *diff, struct pair *pair, unsigned *failed)
{
    const struct gguf_tensor *const *tensors = pair->tensors;
    const uint64_t n_bytes = stored_bytes(tensors[0]);
    char bytes[2][16 << 10];

    pair->difference = NOT_COMPARABLE;
    if (tensors[0]->type_id != tensors[1]->type_id || tensors[0]->type != tensors[1]->type ||
        n_bytes != stored_bytes(tensors[1]) || tensors[0]->big_endian != tensors[1]->big_endian)
        return 0;
    for (uint64_t done = 0; done < n_bytes; done += sizeof *bytes) {
        const size_t n = MIN(n_bytes - done, sizeof *bytes);

        for (*failed = 0; *failed < 2; ++*failed) {
            const struct gguf_tensor *tensor = tensors[*failed];
            const int result =
                gguf_file_read(&diff->trees[*failed]->model->files[tensor->file_index],
                               tensor->file_offset + done, n, bytes[*failed]);

            if (result < 0)
                return result;
        }
        if (memcmp(bytes[0], bytes[1], n) != 0)
            return 0;
    }
    pair->difference = SAME_TENSOR;
    return 0;
}

/* Returns an exit status. */
static int compare_tensors(struct diff *diff)
{
    uint64_t total_bytes = 0, done_bytes = 0;
    unsigned failed = 0;
    int result = 0;

    for (size_t i = 0; i < diff->n_tensors; i++) {
        struct pair *pair = &diff->tensors[i];

        if (!pair->tensors[0] || !pair->tensors[1])
            pair->difference = ONLY_IN_ONE;
        else if (!has_same_shape(diff, pair))
            pair->difference = OTHER_SHAPE;
        else
            total_bytes += pair->tensors[0]->size_bytes + pair->tensors[1]->size_bytes;
    }
    gguf_progress_start(&diff->progress, diff->options->models[1]);
    for (size_t i = 0; result == 0 && i < diff->n_tensors; i++) {
        struct pair *pair = &diff->tensors[i];

        if (pair->difference == SAME_TENSOR) {
            gguf_progress_draw(&diff->progress, done_bytes, total_bytes);
            if (is_comparable(pair->tensors[0]) && is_comparable(pair->tensors[1]))
                result = compare_values(diff, pair, &failed);
            else
                result = compare_stored(diff, pair, &failed);
            done_bytes += pair->tensors[0]->size_bytes + pair->tensors[1]->size_bytes;
        }
        diff->n_different += pair->difference != SAME_TENSOR;
        if (result < 0 || i + 1 == diff->n_tensors)
            gguf_progress_erase(&diff->progress);
        if (result < 0)
            fs_print_error("%s: tensor %s: %s", diff->options->models[failed],
                           gguf_quote(pair->name).text, strerror(-result));
    }
    return gguf_exit_status(result);
}

/* NaN first, then the largest error, then by name. */
static int compare_errors(const void *a, const void *b)
{
    const struct pair *first = a, *second = b;
    const double errors[2] = {fs_comparison_nmse(&first->comparison),
                              fs_comparison_nmse(&second->comparison)};

    if (isnan(errors[0]) != isnan(errors[1]))
        return isnan(errors[0]) ? -1 : 1;
    if (errors[0] < errors[1] || errors[0] > errors[1])
        return errors[0] > errors[1] ? -1 : 1;
    return gguf_string_compare(first->name, second->name);
}

/* ---- text ---- */

static const char *type_of(const struct gguf_tensor *tensor)
{
    return tensor->type ? tensor->type->name : "unknown";
}

static void print_key(const struct pair *pair)
{
    const bool has_other_type =
        pair->keys[0] && pair->keys[1] && pair->keys[0]->value.type != pair->keys[1]->value.type;

    for (int side = 0; side < 2; side++) {
        char text[VALUE_BYTES + 1];
        struct fs_sink sink = {.to = VALUE_BYTES, .out = text};

        if (!pair->keys[side])
            continue;
        printf("%c ", "<>"[side]);
        gguf_print_safe(stdout, pair->name.data, pair->name.length_bytes);
        fputs(": ", stdout);
        fs_json_value(&sink, &pair->keys[side]->value);
        gguf_print_safe(stdout, text, MIN(sink.position, VALUE_BYTES));
        fputs(sink.position > VALUE_BYTES ? "..." : "", stdout);
        if (has_other_type) /* a number may look the same in two types */
            printf(" (%s)", gguf_value_type_name(pair->keys[side]->value.type));
        putchar('\n');
    }
}

static void print_numbers(const uint64_t *numbers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        printf("%s%" PRIu64, i > 0 ? ", " : "[", numbers[i]);
    fputs(n > 0 ? "]" : "[]", stdout);
}

static void print_tensor(const struct diff *diff, const struct pair *pair)
{
    for (int side = 0; side < 2; side++) {
        const struct gguf_tensor *tensor = pair->tensors[side];
        uint64_t shape[GGUF_MAX_DIMS];

        if (!tensor)
            continue;
        printf("%c tensor ", "<>"[side]);
        gguf_print_safe(stdout, pair->name.data, pair->name.length_bytes);
        printf(": %s ", type_of(tensor));
        print_numbers(shape, fs_tensor_shape(diff->trees[side], tensor, shape));
        putchar('\n');
    }
    if (pair->difference == NOT_COMPARABLE)
        printf("  the stored bytes differ, and the values cannot be decoded to compare them\n");
}

/* Print the start of a line of the table of errors. */
static void print_errors(struct gguf_string name, int columns, const char *types[2],
                         const struct fs_comparison *comparison)
{
    fs_print_name(name, columns);
    printf("  %-*s %-*s %11.4g %12.9f %12.5g", DEQUANT_NAME_COLUMNS, types[0], DEQUANT_NAME_COLUMNS,
           types[1], fs_comparison_nmse(comparison), fs_comparison_cosine(comparison),
           comparison->products.largest);
}

static void print_comparison(const struct diff *diff, const struct pair *pair, int columns)
{
    const struct fs_comparison *comparison = &pair->comparison;
    uint64_t coordinates[GGUF_MAX_DIMS];

    print_errors(pair->name, columns,
                 (const char *[]){type_of(pair->tensors[0]), type_of(pair->tensors[1])},
                 comparison);
    if (comparison->products.largest > 0) {
        printf("  ");
        print_numbers(coordinates, fs_locate(diff->trees[0], pair->tensors[0],
                                             comparison->largest_at, coordinates));
    }
    if (comparison->n_not_finite > 0)
        printf("  %" PRIu64 " not finite, %" PRIu64 " of them unequal", comparison->n_not_finite,
               comparison->n_only_in_one);
    putchar('\n');
}

static bool has_errors(const struct pair *pair)
{
    return pair->difference == OTHER_VALUES || pair->difference == OTHER_TYPE;
}

static void print_text(const struct diff *diff)
{
    int columns = sizeof "tensor" - 1;
    size_t n_shown = 0;

    for (size_t i = 0; i < diff->n_keys; i++)
        print_key(&diff->keys[i]);
    for (size_t i = 0; i < diff->n_tensors; i++) {
        const struct pair *pair = &diff->tensors[i];

        columns = fs_name_columns(columns, pair->name);
        if (has_errors(pair))
            n_shown++;
        else if (pair->difference != SAME_TENSOR)
            print_tensor(diff, pair);
    }
    if (n_shown == 0)
        return;
    printf("%-*s  %-*s %-*s %11s %12s %12s  %s\n", columns, "tensor", DEQUANT_NAME_COLUMNS, "<",
           DEQUANT_NAME_COLUMNS, ">", "NMSE", "cosine", "largest", "at");
    for (size_t i = 0; i < diff->n_tensors; i++)
        if (has_errors(&diff->tensors[i]))
            print_comparison(diff, &diff->tensors[i], columns);
    print_errors((struct gguf_string){"all", 3}, columns, (const char *[]){"", ""}, &diff->total);
    printf("  %zu of %zu tensors differ\n", n_shown, diff->n_compared);
}

/* ---- JSON ---- */

static void write_key(const struct pair *pair, struct fs_sink *sink)
{
    fs_sink_literal(sink, "{\"key\":");
    fs_json_string(sink, pair->name);
    for (int side = 0; side < 2; side++) {
        if (!pair->keys[side])
            continue;
        fs_sink_print(sink, ",\"%c_type\":\"%s\",\"%c\":", 'a' + side,
                      gguf_value_type_name(pair->keys[side]->value.type), 'a' + side);
        fs_json_value(sink, &pair->keys[side]->value);
    }
    fs_sink_literal(sink, "}");
}

/* Write a float64, or null if it is not finite. */
static void write_number(const char *name, double number, struct fs_sink *sink)
{
    fs_json_member(sink, name, false);
    fs_json_scalar(sink, &(struct gguf_value){.type = GGUF_FLOAT64, .f64 = number});
}

static void write_errors(const struct fs_comparison *comparison, struct fs_sink *sink)
{
    write_number("nmse", fs_comparison_nmse(comparison), sink);
    write_number("cosine", fs_comparison_cosine(comparison), sink);
    write_number("largest_error", comparison->products.largest, sink);
    fs_json_count(sink, "not_finite", comparison->n_not_finite);
    fs_json_count(sink, "not_finite_unequal", comparison->n_only_in_one);
}

static void write_tensor(const struct diff *diff, const struct pair *pair, struct fs_sink *sink)
{
    static const char *const names[] = {
        [SAME_TENSOR] = "none", [ONLY_IN_ONE] = "missing", [OTHER_SHAPE] = "shape",
        [OTHER_TYPE] = "type",  [OTHER_VALUES] = "values", [NOT_COMPARABLE] = "unknown"};
    uint64_t dims[GGUF_MAX_DIMS];

    fs_sink_literal(sink, "{\"name\":");
    fs_json_string(sink, pair->name);
    fs_json_text_member(sink, "difference", names[pair->difference]);
    for (int side = 0; side < 2; side++) {
        const struct gguf_tensor *tensor = pair->tensors[side];

        if (!tensor)
            continue;
        fs_json_text_member(sink, side == 0 ? "a_type" : "b_type",
                            tensor->type ? tensor->type->name : NULL);
        fs_json_member(sink, side == 0 ? "a_shape" : "b_shape", false);
        fs_json_integers(sink, dims, fs_tensor_shape(diff->trees[side], tensor, dims));
    }
    if (pair->is_compared) {
        write_errors(&pair->comparison, sink);
        fs_json_member(sink, "largest_error_at", false);
        if (pair->comparison.products.largest > 0)
            fs_json_integers(
                sink, dims,
                fs_locate(diff->trees[0], pair->tensors[0], pair->comparison.largest_at, dims));
        else
            fs_sink_literal(sink, "null");
    }
    fs_sink_literal(sink, "}");
}

static void write_json(const void *subject, struct fs_sink *sink)
{
    const struct diff *diff = subject;

    fs_json_begin(sink, "a_file", diff->options->models[0]);
    fs_json_text_member(sink, "b_file", diff->options->models[1]);
    fs_sink_literal(sink, ",\"metadata\":[");
    for (size_t i = 0; i < diff->n_keys; i++) {
        fs_sink_literal(sink, i > 0 ? "," : "");
        write_key(&diff->keys[i], sink);
    }
    fs_sink_literal(sink, "],\"tensors\":[");
    for (size_t i = 0; i < diff->n_tensors; i++) {
        fs_sink_literal(sink, i > 0 ? "," : "");
        write_tensor(diff, &diff->tensors[i], sink);
    }
    fs_sink_print(sink, "],\"total\":{\"compared\":%zu,\"different\":%zu", diff->n_compared,
                  diff->n_different);
    write_errors(&diff->total, sink);
    fs_sink_literal(sink, "}}\n");
}

/* ---- the command ---- */

static int compare_models(struct diff *diff)
{
    const struct fs_options *options = diff->options;
    int status = fs_check_patterns(
        options->paths, options->n_paths,
        (const struct gguf_model *[]){diff->trees[0]->model, diff->trees[1]->model, NULL},
        "either model");

    if (status == EX_OK && !find_pairs(diff))
        status = fs_refuse_memory();
    if (status == EX_OK)
        status = compare_tensors(diff);
    if (status != EX_OK)
        return status;
    qsort(diff->tensors, diff->n_tensors, sizeof *diff->tensors, compare_errors);
    if (!options->json)
        print_text(diff);
    else if (fs_print_written(write_json, diff) < 0)
        return fs_refuse_memory();
    return diff->n_keys > 0 || diff->n_different > 0 ? DIFFERS : EX_OK;
}

int fs_diff(const struct fs_options *options)
{
    struct diff diff = {.options = options};
    struct fs_input *inputs;
    int status = fs_open_inputs(options, NULL, &inputs);

    if (status != EX_OK)
        return status;
    status = fs_confine(options, &(struct gguf_confinement){.threads = true});
    for (int i = 0; status == EX_OK && i < 2; i++)
        status = fs_make_tree(options, &inputs[i], &diff.trees[i]);
    if (status == EX_OK)
        status = compare_models(&diff);
    free(diff.keys);
    free(diff.tensors);
    for (int i = 0; i < 2; i++)
        if (diff.trees[i])
            fs_close_tree(diff.trees[i]);
    fs_close_inputs(options, inputs);
    return status;
}
