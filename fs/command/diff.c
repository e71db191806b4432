#include "fs/command/commands.h"

#include "fs/command/diff_result.h"
#include "fs/command/model_input.h"
#include "fs/command/tensor_choice.h"
#include "fs/command/terminal.h"
#include "gguf/elements.h"
#include "fs/tree/facts/tensor_pairs.h"
#include "fs/tree/views/importance.h"
#include "gguf/support/arrays.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/progress.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { DIFFERS = 1 };

struct job {
    const struct fs_options *options;
    struct gguf_model *imatrix; /* NULL: none */
    const struct gguf_tensor **imatrix_by_name;
    struct gguf_progress progress;
    struct fs_diff diff;
};

/* ---- pairs ---- */

static int compare_keys(const void *a, const void *b)
{
    const struct gguf_key *const *first = a, *const *second = b;

    return gguf_string_compare((*first)->name, (*second)->name);
}

static int compare_tensors(const void *a, const void *b)
{
    const struct gguf_tensor *const *first = a, *const *second = b;

    return gguf_string_compare(gguf_name_of(*first), gguf_name_of(*second));
}

/*
 * Call `each` for the things of two sorted lists, in order, with both if both lists have one of the
 * same name.
 */
static void merge(const void **lists[2], const uint64_t counts[2],
                  int (*compare)(const void *a, const void *b),
                  void (*each)(struct fs_diff *diff, const void *first, const void *second),
                  struct fs_diff *diff)
{
    uint64_t at[2] = {0};

    while (at[0] < counts[0] || at[1] < counts[1]) {
        int order;

        if (at[0] == counts[0])
            order = 1;
        else if (at[1] == counts[1])
            order = -1;
        else
            order = compare(&lists[0][at[0]], &lists[1][at[1]]);
        each(diff, order <= 0 ? lists[0][at[0]] : NULL, order >= 0 ? lists[1][at[1]] : NULL);
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
}

static void add_keys(struct fs_diff *diff, const void *first, const void *second)
{
    const struct gguf_key *a = first, *b = second;

    if (!a || !b || a->value.type != b->value.type || !gguf_value_equals(&a->value, &b->value))
        diff->keys[diff->n_keys++] = (struct fs_key_pair){{a, b}};
}

static void add_tensors(struct fs_diff *diff, const void *first, const void *second)
{
    diff->tensors[diff->n_tensors++] = (struct fs_tensor_pair){.tensors = {first, second}};
}

/* Find the keys that differ and the pairs of tensors. */
static int find_pairs(struct fs_diff *diff)
{
    const struct gguf_model *a = diff->trees[0]->model, *b = diff->trees[1]->model;
    const void **keys[2] = {gguf_sorted(a->keys, a->n_keys, sizeof *a->keys, compare_keys),
                            gguf_sorted(b->keys, b->n_keys, sizeof *b->keys, compare_keys)};
    const void **tensors[2] = {
        gguf_sorted(a->tensors, a->n_tensors, sizeof *a->tensors, compare_tensors),
        gguf_sorted(b->tensors, b->n_tensors, sizeof *b->tensors, compare_tensors)};
    int result = -ENOMEM;

    diff->keys = calloc(a->n_keys + b->n_keys + 1, sizeof *diff->keys);
    diff->tensors = calloc(a->n_tensors + b->n_tensors + 1, sizeof *diff->tensors);
    if (keys[0] && keys[1] && tensors[0] && tensors[1] && diff->keys && diff->tensors) {
        merge(keys, (uint64_t[]){a->n_keys, b->n_keys}, compare_keys, add_keys, diff);
        merge(tensors, (uint64_t[]){a->n_tensors, b->n_tensors}, compare_tensors, add_tensors,
              diff);
        result = 0;
    }
    for (int i = 0; i < 2; i++) {
        free(keys[i]);
        free(tensors[i]);
    }
    return result;
}

/* Keep the tensors that the patterns choose; with patterns, the keys do not matter. */
static void choose(struct job *job)
{
    const struct fs_options *options = job->options;
    struct fs_diff *diff = &job->diff;
    size_t n = 0;

    for (size_t i = 0; i < diff->n_tensors; i++)
        if (fs_is_tensor_chosen(options->paths, options->n_paths, fs_pair_name(&diff->tensors[i])))
            diff->tensors[n++] = diff->tensors[i];
    diff->n_tensors = n;
    if (options->n_paths > 0)
        diff->n_keys = 0;
}

/* ---- values ---- */

static bool has_same_shape(const struct fs_diff *diff, const struct gguf_tensor *const tensors[2])
{
    uint64_t shapes[2][GGUF_MAX_DIMS];
    uint32_t n_dims[2];

    for (int i = 0; i < 2; i++)
        n_dims[i] = fs_tensor_shape(diff->trees[i], tensors[i], shapes[i]);
    return n_dims[0] == n_dims[1] && memcmp(shapes[0], shapes[1], n_dims[0] * sizeof **shapes) == 0;
}

static bool is_comparable(const struct gguf_tensor *tensor)
{
    return tensor->type && dequant_is_decodable(tensor->type);
}

static enum fs_tensor_difference judge(const struct fs_tensor_pair *pair)
{
    const struct fs_comparison *comparison = &pair->comparison;

    if (comparison->products.largest > 0 || comparison->n_only_in_one > 0)
        return FS_OTHER_VALUES;
    return pair->tensors[0]->type == pair->tensors[1]->type ? FS_SAME_TENSOR : FS_OTHER_TYPE;
}

static const char *reason_of(int result)
{
    if (result == -EINVAL)
        return "the shape of its importance matrix does not fit";
    if (result == -EDOM)
        return "its importance matrix has a sum, count or mean that is NaN, infinite or negative; "
               "all must be finite and at least 0";
    return strerror(-result);
}

static int fail(const struct job *job, unsigned which, const struct gguf_tensor *tensor, int result)
{
    gguf_progress_erase(&job->progress);
    fs_print_error("%s: tensor %s: %s", which < 2 ? job->diff.paths[which] : job->options->imatrix,
                   gguf_quote(gguf_name_of(tensor)).text, reason_of(result));
    return gguf_exit_status(result);
}

/* Read numbers that must be finite and not negative. Returns 0, -EDOM, or the error of reading. */
static int read_floats(const struct gguf_model *model, const struct gguf_tensor *tensor, float *out)
{
    const int result = gguf_elements_read(
        &(struct gguf_elements){
            .model = model, .tensor = tensor, .type = dequant_type_by_id(DEQUANT_F32)},
        0, tensor->n_elements * sizeof *out, (char *)out);

    for (uint64_t i = 0; result == 0 && i < tensor->n_elements; i++)
        if (!isfinite(out[i]) || out[i] < 0)
            return -EDOM;
    return result;
}

/* Return the number of matrices of the tensor that have sums of their own; 0 if they do not fit. */
static uint64_t count_matrices(const struct gguf_tensor *tensor, const struct gguf_tensor *sums,
                               const struct gguf_tensor *counts)
{
    const uint64_t n_matrices = sums->n_elements / tensor->ne[0];

    return fs_importance_fits(sums, counts) && sums->n_elements % tensor->ne[0] == 0 &&
                   n_matrices > 0 && n_matrices % counts->n_elements == 0 &&
                   tensor->ne[2] * tensor->ne[3] % n_matrices == 0
               ? n_matrices
               : 0;
}

/*
 * Get the column weights of a tensor: means of squared inputs, 0 for a matrix without inputs.
 * `by_name` lists the importance matrix's tensors, from gguf_tensors_by_name(). Free
 * weights->values with free(); it is NULL if the importance matrix lacks the tensor. Returns 0,
 * -ENOMEM, -EINVAL if their shape does not fit the tensor, -EDOM unless all sums, counts and
 * weights are finite and not negative, or the error of reading them.
 */
static int get_weights(const struct gguf_model *imatrix, const struct gguf_tensor *const *by_name,
                       const struct gguf_tensor *tensor, struct fs_column_weights *weights)
{
    const struct gguf_string name = gguf_name_of(tensor);
    const struct gguf_tensor *sums =
        fs_find_half(by_name, imatrix->n_tensors, name, FS_SUMS_SUFFIX);
    const struct gguf_tensor *counts =
        fs_find_half(by_name, imatrix->n_tensors, name, FS_COUNTS_SUFFIX);
    uint64_t n_matrices, matrix_elements;
    float *values, *of_matrix;
    int result;

    *weights = (struct fs_column_weights){0};
    if (!sums || !counts || tensor->n_elements == 0)
        return 0;
    n_matrices = count_matrices(tensor, sums, counts);
    if (n_matrices == 0)
        return -EINVAL;
    values = calloc(sums->n_elements + counts->n_elements, sizeof *values);
    if (!values)
        return -ENOMEM;
    of_matrix = values + sums->n_elements;
    matrix_elements = sums->n_elements / counts->n_elements;
    assert(matrix_elements > 0); /* count_matrices() */
    result = read_floats(imatrix, sums, values);
    if (result == 0)
        result = read_floats(imatrix, counts, of_matrix);
    for (uint64_t i = 0; result == 0 && i < sums->n_elements; i++) {
        const uint64_t matrix = i / matrix_elements;

        values[i] = fs_importance(values[i], of_matrix[matrix], 0);
        if (!isfinite(values[i])) /* it overflows */
            result = -EDOM;
    }
    if (result < 0) {
        free(values);
        return result;
    }
    *weights = (struct fs_column_weights){values, tensor->ne[0], n_matrices, tensor->ne[1]};
    return 0;
}

/* Compare the values of a pair. Returns an exit status. */
static int compare_pair(struct job *job, struct fs_tensor_pair *pair)
{
    struct fs_diff *diff = &job->diff;
    const struct fs_tensor_of both[2] = {{diff->trees[0]->model, pair->tensors[0]},
                                         {diff->trees[1]->model, pair->tensors[1]}};
    struct fs_column_weights weights = {0};
    unsigned failed = 0;
    int result = 0;

    if (job->imatrix)
        result = get_weights(job->imatrix, job->imatrix_by_name, pair->tensors[0], &weights);
    if (result < 0)
        return fail(job, 2, pair->tensors[0], result);
    pair->is_weighted = weights.values != NULL;
    result = fs_compare_tensors(both, weights.values ? &weights : NULL, &pair->comparison, &failed);
    free((void *)(uintptr_t)weights.values);
    if (result < 0)
        return fail(job, failed, pair->tensors[failed], result);
    pair->is_compared = true;
    pair->difference = judge(pair);
    diff->n_compared++;
    diff->n_weighted += pair->is_weighted;
    return EX_OK;
}

/* Return how many bytes of a tensor's data can be compared as they are stored. */
static uint64_t stored_bytes(const struct gguf_tensor *tensor)
{
    return tensor->type ? tensor->size_bytes : tensor->extent_bytes;
}

/* Compare the stored bytes of a pair that cannot be decoded. Returns an exit status. */
static int compare_stored(struct job *job, struct fs_tensor_pair *pair)
{
    const struct gguf_tensor *const *tensors = pair->tensors;
    const uint64_t n_bytes = stored_bytes(tensors[0]);
    char bytes[2][16 << 10];

    pair->difference = FS_NOT_COMPARABLE;
    if (tensors[0]->type_id != tensors[1]->type_id || tensors[0]->type != tensors[1]->type ||
        n_bytes != stored_bytes(tensors[1]) || tensors[0]->big_endian != tensors[1]->big_endian)
        return EX_OK;
    for (uint64_t done = 0; done < n_bytes; done += sizeof *bytes) {
        const size_t n = n_bytes - done < sizeof *bytes ? (size_t)(n_bytes - done) : sizeof *bytes;

        for (unsigned i = 0; i < 2; i++) {
            const struct gguf_model *model = job->diff.trees[i]->model;
            const int result = gguf_file_read(&model->files[tensors[i]->file_index],
                                              tensors[i]->file_offset + done, n, bytes[i]);

            if (result < 0)
                return fail(job, i, tensors[i], result);
        }
        if (memcmp(bytes[0], bytes[1], n) != 0)
            return EX_OK;
    }
    pair->difference = FS_SAME_TENSOR;
    return EX_OK;
}

static int compare_pairs(struct job *job)
{
    struct fs_diff *diff = &job->diff;
    uint64_t total_bytes = 0, done_bytes = 0;
    int status = EX_OK;

    for (size_t i = 0; i < diff->n_tensors; i++) {
        struct fs_tensor_pair *pair = &diff->tensors[i];

        if (!pair->tensors[0] || !pair->tensors[1])
            pair->difference = FS_ONLY_IN_ONE;
        else if (!has_same_shape(diff, pair->tensors))
            pair->difference = FS_OTHER_SHAPE;
        else
            total_bytes += pair->tensors[0]->size_bytes + pair->tensors[1]->size_bytes;
    }
    gguf_progress_start(&job->progress, diff->paths[1]);
    for (size_t i = 0; status == EX_OK && i < diff->n_tensors; i++) {
        struct fs_tensor_pair *pair = &diff->tensors[i];

        if (pair->difference == FS_SAME_TENSOR) {
            gguf_progress_draw(&job->progress, done_bytes, total_bytes);
            if (is_comparable(pair->tensors[0]) && is_comparable(pair->tensors[1]))
                status = compare_pair(job, pair);
            else
                status = compare_stored(job, pair);
            done_bytes += pair->tensors[0]->size_bytes + pair->tensors[1]->size_bytes;
        }
        diff->n_different += pair->difference != FS_SAME_TENSOR;
    }
    gguf_progress_erase(&job->progress);
    for (size_t i = 0; i < diff->n_tensors; i++)
        if (diff->tensors[i].is_compared && (diff->n_weighted == 0 || diff->tensors[i].is_weighted))
            fs_comparison_add(&diff->total, &diff->tensors[i].comparison);
    return status;
}

/* NaN first, then the largest error, then by name as before. */
static int compare_errors(const void *a, const void *b)
{
    const struct fs_tensor_pair *first = a, *second = b;
    const double errors[2] = {fs_comparison_nmse(&first->comparison),
                              fs_comparison_nmse(&second->comparison)};

    if (isnan(errors[0]) != isnan(errors[1]))
        return isnan(errors[0]) ? -1 : 1;
    if (errors[0] < errors[1] || errors[0] > errors[1])
        return errors[0] > errors[1] ? -1 : 1;
    return gguf_string_compare(fs_pair_name(first), fs_pair_name(second));
}

/* ---- the command ---- */

static int compare_models(struct job *job)
{
    struct fs_diff *diff = &job->diff;
    int status = fs_check_patterns(
        job->options->paths, job->options->n_paths,
        (const struct gguf_model *[]){diff->trees[0]->model, diff->trees[1]->model, NULL},
        "either model");

    if (status != EX_OK)
        return status;
    if (find_pairs(diff) < 0)
        return fs_refuse_memory();
    choose(job);
    status = compare_pairs(job);
    if (status != EX_OK)
        return status;
    qsort(diff->tensors, diff->n_tensors, sizeof *diff->tensors, compare_errors);
    if (job->options->svg)
        fs_diff_draw(diff, stdout);
    else if (!job->options->json)
        fs_diff_print(diff);
    else if (fs_diff_print_json(diff) < 0)
        return fs_refuse_memory();
    return diff->n_keys > 0 || diff->n_different > 0 ? DIFFERS : EX_OK;
}

static int open_imatrix(struct job *job, struct fs_input *input)
{
    struct gguf_report report = {0};

    if (fs_parse_input(job->options, input, &job->imatrix, &report) < 0) {
        fs_print_error("%s: %s", input->path, report.first_error.message);
        return gguf_exit_status(report.first_error.code);
    }
    if (fs_is_imatrix(job->imatrix)) {
        job->imatrix_by_name = gguf_tensors_by_name(job->imatrix);
        return job->imatrix_by_name ? EX_OK : fs_refuse_memory();
    }
    fs_print_error("%s: not an importance matrix of llama-imatrix in GGUF: it has no tensors "
                   "NAME.in_sum2",
                   input->path);
    return EX_DATAERR;
}

static int run(struct job *job, struct fs_input *inputs)
{
    struct fs_diff *diff = &job->diff;
    int status = EX_OK;

    for (int i = 0; status == EX_OK && i < 2; i++)
        status = fs_make_tree(job->options, &inputs[i], &diff->trees[i]);
    if (status == EX_OK && job->options->imatrix)
        status = open_imatrix(job, &inputs[2]);
    if (status == EX_OK)
        status = compare_models(job);
    free(diff->keys);
    free(diff->tensors);
    free(job->imatrix_by_name);
    gguf_close(job->imatrix);
    for (int i = 0; i < 2; i++)
        if (diff->trees[i])
            fs_close_tree(diff->trees[i]);
    return status;
}

int fs_diff(const struct fs_options *options)
{
    const char *paths[3] = {options->models[0], options->models[1], options->imatrix};
    struct fs_options opened = *options;
    struct job job = {.options = options,
                      .diff = {.paths = {options->models[0], options->models[1]}}};
    struct fs_input *inputs;
    int status;

    opened.models = paths;
    opened.n_models = options->imatrix ? 3 : 2;
    status = fs_open_inputs(&opened, &inputs);
    if (status != EX_OK)
        return status;
    status = fs_confine(options, &(struct gguf_confinement){.threads = true});
    if (status == EX_OK)
        status = run(&job, inputs);
    fs_close_inputs(&opened, inputs);
    return status;
}
