#include "contrib/runner/tree/tensor_list.h"

#include "contrib/runner/tree/json_reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "tensors.json"

#define LIMIT_BYTES ((uint64_t)1 << 30)

/* A tensor that is being read. */
struct listed {
    struct run_listed_names names;
    struct run_listed_tensor tensor;
};

static bool is_whole(double number, double min, double max)
{
    return number >= min && number <= max && number == floor(number);
}

static int read_dims(struct run_json *json, struct run_listed_tensor *info,
                     struct run_failure *failure)
{
    struct run_json_token element;
    int code;

    info->has_shape = true;
    while ((code = run_json_element(json, &element, failure)) > 0) {
        if (info->n_dims < RUN_MAX_DIMS)
            info->ne[info->n_dims] = element.kind == RUN_JSON_NUMBER ? element.number : 0;
        info->n_dims += info->n_dims <= RUN_MAX_DIMS;
    }
    return code;
}

/* Copy the name of a tensor's directory from its path, "tensors/NAME". */
static void take_path(const char *path, struct run_listed_names *names)
{
    const char *slash = strrchr(path, '/');

    snprintf(names->name, sizeof names->name, "%s", slash ? slash + 1 : path);
}

/* Read the value of a string that the runner uses. */
static void take_string(const char *key, const char *text, struct listed *listed)
{
    struct run_listed_names *names = &listed->names;

    if (strcmp(key, "name") == 0 && names->name[0] == '\0')
        snprintf(names->name, sizeof names->name, "%s", text);
    else if (strcmp(key, "path") == 0)
        take_path(text, names);
    else if (strcmp(key, "gguf_name") == 0)
        snprintf(names->gguf_name, sizeof names->gguf_name, "%s", text);
    else if (strcmp(key, "file") == 0)
        snprintf(names->file, sizeof names->file, "%s", text);
    else if (strcmp(key, "type") == 0)
        snprintf(listed->tensor.type_name, sizeof listed->tensor.type_name, "%s", text);
    else if (strcmp(key, "byte_order") == 0)
        listed->tensor.is_big_endian = strcmp(text, "big") == 0;
}

/* Read a member of a tensor's object. If a key is repeated, the first type and shape count. */
static int read_member(struct run_json *json, const char *text, struct listed *listed,
                       struct run_failure *failure)
{
    struct run_listed_tensor *tensor = &listed->tensor;
    struct run_json_token value;
    char key[16];
    int code;

    snprintf(key, sizeof key, "%s", text); /* `text` is gone after the next token */
    code = run_json_next(json, &value, failure);
    if (code < 0)
        return code;
    if (value.kind == RUN_JSON_ARRAY && strcmp(key, "ne") == 0 && !tensor->has_shape)
        return read_dims(json, tensor, failure);
    if (value.kind == RUN_JSON_ARRAY || value.kind == RUN_JSON_OBJECT)
        return run_json_skip(json, failure);
    if (value.kind == RUN_JSON_STRING)
        take_string(key, value.text, listed);
    if (strcmp(key, "era") == 0)
        tensor->era = value.kind == RUN_JSON_NUMBER ? value.number : NAN;
    if (value.kind != RUN_JSON_NUMBER)
        return 0;
    if (strcmp(key, "offset") == 0)
        tensor->offset = value.number;
    if (strcmp(key, "ggml_type") == 0 && !tensor->has_type) {
        tensor->has_type = true;
        tensor->type = value.number;
    }
    return 0;
}

static int read_tensor(struct run_json *json, size_t index, run_tensor_listed *on_tensor,
                       void *context, struct run_failure *failure)
{
    struct listed listed = {.tensor = {.era = DEQUANT_ERA, .offset = NAN}};
    struct run_json_token token;
    int code;

    while ((code = run_json_next(json, &token, failure)) > 0 && token.kind == RUN_JSON_KEY) {
        code = read_member(json, token.text, &listed, failure);
        if (code < 0)
            return code;
    }
    if (code < 0)
        return code;
    if (listed.names.name[0] == '\0')
        return run_fail(failure, -EINVAL, FILE_NAME ": tensor %zu has no name", index);
    return on_tensor(context, &listed.names, &listed.tensor, failure);
}

int run_tensor_list_read(int tree_fd, run_tensor_listed *on_tensor, void *context,
                         struct run_failure *failure)
{
    struct run_json_token token;
    struct run_json *json;
    int code = run_json_open(tree_fd, FILE_NAME, LIMIT_BYTES, &json, failure);

    if (code < 0)
        return code;
    code = run_json_next(json, &token, failure);
    if (code > 0 && token.kind != RUN_JSON_ARRAY)
        code = run_fail(failure, -EINVAL, FILE_NAME ": not a JSON array");
    for (size_t i = 0; code >= 0 && (code = run_json_next(json, &token, failure)) > 0 &&
                       token.kind != RUN_JSON_END;
         i++) {
        if (token.kind == RUN_JSON_OBJECT)
            code = read_tensor(json, i, on_tensor, context, failure);
        else
            code = run_fail(failure, -EINVAL, FILE_NAME ": element %zu is not an object", i);
    }
    if (code > 0) /* past the array's end */
        code = run_json_next(json, &token, failure);
    run_json_close(json);
    return code;
}

static int take_type(const struct run_listed_tensor *info, struct run_tensor *tensor,
                     struct run_failure *failure)
{
    if (!info->has_type || !is_whole(info->type, 0, UINT32_MAX))
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
