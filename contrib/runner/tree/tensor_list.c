#include "contrib/runner/tree/tensor_list.h"

#include "contrib/runner/tree/json_reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "tensors.json"

#define LIMIT_BYTES ((uint64_t)1 << 30)

static bool is_whole(double number, double min, double max)
{
    return number >= min && number <= max && number == floor(number);
}

/* Return the text of a member that is a string, or "". */
static const char *text_of(const struct gguf_json *object, const char *key)
{
    const struct gguf_json *member = gguf_json_member(object, key);

    return member && member->kind == GGUF_JSON_STRING ? member->text.data : "";
}

/* Return the number of a member; NaN for other values, and `if_missing` without it. */
static double number_of(const struct gguf_json *object, const char *key, double if_missing)
{
    const struct gguf_json *member = gguf_json_member(object, key);

    return !member ? if_missing : member->kind == GGUF_JSON_NUMBER ? member->number : NAN;
}

static int read_tensor(const struct gguf_json *object, size_t index, run_tensor_listed *on_tensor,
                       void *context, struct run_failure *failure)
{
    const struct gguf_json *ne = gguf_json_member(object, "ne");
    struct run_listed_tensor tensor = {.type = number_of(object, "ggml_type", NAN),
                                       .era = number_of(object, "era", DEQUANT_ERA),
                                       .offset = number_of(object, "offset", NAN),
                                       .has_shape = ne && ne->kind == GGUF_JSON_ARRAY};
    const char *path = text_of(object, "path"), *slash = strrchr(path, '/');
    struct run_listed_names names;

    if (object->kind != GGUF_JSON_OBJECT)
        return run_fail(failure, -EINVAL, FILE_NAME ": element %zu is not an object", index);
    for (const struct gguf_json *item = ne ? ne->child : NULL; item; item = item->next) {
        if (tensor.n_dims < RUN_MAX_DIMS)
            tensor.ne[tensor.n_dims] = item->kind == GGUF_JSON_NUMBER ? item->number : 0;
        tensor.n_dims += tensor.n_dims <= RUN_MAX_DIMS;
    }
    /* The directory's name may differ from the tensor's. */
    snprintf(names.name, sizeof names.name, "%s",
             slash   ? slash + 1
             : *path ? path
                     : text_of(object, "name"));
    snprintf(names.gguf_name, sizeof names.gguf_name, "%s", text_of(object, "gguf_name"));
    snprintf(names.file, sizeof names.file, "%s", text_of(object, "file"));
    snprintf(tensor.type_name, sizeof tensor.type_name, "%s", text_of(object, "type"));
    tensor.is_big_endian = strcmp(text_of(object, "byte_order"), "big") == 0;
    if (names.name[0] == '\0')
        return run_fail(failure, -EINVAL, FILE_NAME ": tensor %zu has no name", index);
    return on_tensor(context, &names, &tensor, failure);
}

int run_tensor_list_read(int tree_fd, run_tensor_listed *on_tensor, void *context,
                         struct run_failure *failure)
{
    struct run_json json;
    size_t index = 0;
    int code = run_json_read(tree_fd, FILE_NAME, LIMIT_BYTES, &json, failure);

    if (code < 0)
        return code;
    if (json.values->kind != GGUF_JSON_ARRAY)
        code = run_fail(failure, -EINVAL, FILE_NAME ": not a JSON array");
    for (const struct gguf_json *item = json.values->child; code == 0 && item; item = item->next)
        code = read_tensor(item, index++, on_tensor, context, failure);
    run_json_free(&json);
    return code;
}

static int take_type(const struct run_listed_tensor *info, struct run_tensor *tensor,
                     struct run_failure *failure)
{
    if (!is_whole(info->type, 0, UINT32_MAX))
        return run_fail(failure, -EINVAL, "tensors.json: %s: no ggml_type", tensor->name);
    if (info->is_big_endian)
        return run_fail(failure, -ENOTSUP,
                        "tensors.json: %s: the tensor is big-endian, but ggufs-run needs "
                        "little-endian weights; mount the model and use model.gguf of the tree",
                        tensor->name);
    if (isnan(info->era))
        return run_fail(failure, -ENOTSUP,
                        "tensors.json: %s: the file does not say which layout (era) its quantized "
                        "blocks have; mount the model with -o era=N, N from 0 to 2",
                        tensor->name);
    /* Several programs gave types of their own the same id. */
    if (info->era == DEQUANT_ERA && info->type_name[0] != '\0')
        tensor->type = dequant_candidate_by_name((uint32_t)info->type, info->type_name);
    else
        tensor->type = is_whole(info->era, 0, UINT32_MAX)
                           ? dequant_type_of_era((uint32_t)info->type, (uint32_t)info->era)
                           : NULL;
    if (!tensor->type || !dequant_is_decodable(tensor->type))
        return run_fail(failure, -ENOTSUP, "tensors.json: %s: type %.0f cannot be decoded",
                        tensor->name, info->type);
    return 0;
}

static int take_shape(const struct run_listed_tensor *info, struct run_tensor *tensor,
                      struct run_failure *failure)
{
    if (!info->has_shape || info->n_dims > RUN_MAX_DIMS)
        return run_fail(failure, -EINVAL, "tensors.json: %s: no ne of at most %d dimensions",
                        tensor->name, RUN_MAX_DIMS);
    for (size_t i = 0; i < RUN_MAX_DIMS; i++) {
        if (i < info->n_dims && !is_whole(info->ne[i], 1, INT32_MAX))
            return run_fail(failure, -EINVAL, "tensors.json: %s: ne[%zu] is not from 1 to %d",
                            tensor->name, i, INT32_MAX);
        tensor->ne[i] = i < info->n_dims ? (uint64_t)info->ne[i] : 1;
    }
    if (tensor->ne[0] % tensor->type->block_elements != 0)
        return run_fail(failure, -EINVAL,
                        "tensors.json: %s: row length %llu is not a multiple of the %s block size, "
                        "%u",
                        tensor->name, (unsigned long long)tensor->ne[0], tensor->type->name,
                        tensor->type->block_elements);
    if (tensor->ne[1] % tensor->type->interleave_rows != 0)
        return run_fail(failure, -EINVAL,
                        "tensors.json: %s: %llu rows are not a multiple of the %u that %s stores "
                        "together",
                        tensor->name, (unsigned long long)tensor->ne[1],
                        tensor->type->interleave_rows, tensor->type->name);
    return 0;
}

int run_listed_tensor_take(const struct run_listed_tensor *listed, struct run_tensor *tensor,
                           struct run_failure *failure)
{
    const int code = take_type(listed, tensor, failure);

    return code < 0 ? code : take_shape(listed, tensor, failure);
}
