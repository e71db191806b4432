#include "contrib/runner/tree/info_file.h"

#include "contrib/runner/tree/json_reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_BYTES 65536

/* 2^53: a double holds all integers up to it. */
#define MAX_EXACT 9007199254740992.0

/* "tensors/", a name, "/info". */
#define PATH_BYTES 320

/* The members of an info that the runner uses. */
struct info {
    bool has_type, has_shape;
    bool is_big_endian;
    double type, era; /* era: DEQUANT_ERA if the info has none, NaN if it is not known */
    char type_name[32];
    double ne[RUN_MAX_DIMS];
    size_t n_dims;           /* RUN_MAX_DIMS + 1: more than that */
    double offset;           /* NaN if there is none */
    struct run_place *place; /* its file is filled in */
};

static bool is_whole(double number, double min, double max)
{
    return number >= min && number <= max && number == floor(number);
}

static int read_dims(struct run_json *json, struct info *info, struct run_failure *failure)
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

/* Read a member of the object. If a key is repeated, the first member counts. */
static int read_member(struct run_json *json, const char *key, struct info *info,
                       struct run_failure *failure)
{
    const bool is_type = strcmp(key, "ggml_type") == 0 && !info->has_type;
    const bool is_type_name = strcmp(key, "type") == 0;
    const bool is_era = strcmp(key, "era") == 0;
    const bool is_byte_order = strcmp(key, "byte_order") == 0;
    const bool is_shape = strcmp(key, "ne") == 0 && !info->has_shape;
    const bool is_offset = strcmp(key, "offset") == 0;
    const bool is_file = strcmp(key, "file") == 0;
    struct run_json_token value;
    int code = run_json_next(json, &value, failure); /* `key` is gone then */

    if (code < 0)
        return code;
    if (is_shape && value.kind == RUN_JSON_ARRAY)
        return read_dims(json, info, failure);
    if (is_type && value.kind == RUN_JSON_NUMBER) {
        info->has_type = true;
        info->type = value.number;
    }
    if (is_type_name && value.kind == RUN_JSON_STRING && value.length < sizeof info->type_name)
        memcpy(info->type_name, value.text, value.length + 1);
    if (is_offset && value.kind == RUN_JSON_NUMBER)
        info->offset = value.number;
    if (is_file && value.kind == RUN_JSON_STRING && value.length < sizeof info->place->file)
        memcpy(info->place->file, value.text, value.length + 1);
    if (is_byte_order && value.kind == RUN_JSON_STRING)
        info->is_big_endian = strcmp(value.text, "big") == 0;
    if (is_era)
        info->era = value.kind == RUN_JSON_NUMBER ? value.number : NAN;
    if (value.kind == RUN_JSON_ARRAY || value.kind == RUN_JSON_OBJECT)
        return run_json_skip(json, failure);
    return 0;
}

static int read_info(int tree_fd, const char *path, struct info *info, struct run_failure *failure)
{
    struct run_json_token token;
    struct run_json *json;
    int code;

    code = run_json_open(tree_fd, path, LIMIT_BYTES, &json, failure);
    if (code < 0)
        return code;
    code = run_json_next(json, &token, failure);
    if (code > 0 && token.kind != RUN_JSON_OBJECT)
        code = run_fail(failure, -EINVAL, "%s: not a JSON object", path);
    while (code >= 0 && (code = run_json_next(json, &token, failure)) > 0 &&
           token.kind == RUN_JSON_KEY)
        code = read_member(json, token.text, info, failure);
    if (code > 0) /* past the object's end */
        code = run_json_next(json, &token, failure);
    run_json_close(json);
    return code;
}

static int take_type(const struct info *info, struct run_tensor *tensor,
                     struct run_failure *failure)
{
    if (!info->has_type || !is_whole(info->type, 0, UINT32_MAX))
        return run_fail(failure, -EINVAL, "tensors/%s/info: no ggml_type", tensor->name);
    if (info->is_big_endian)
        return run_fail(failure, -ENOTSUP,
                        "tensors/%s/info: the tensor is big-endian, but ggufs-run needs "
                        "little-endian weights; mount the model and use model.gguf of the tree",
                        tensor->name);
    if (isnan(info->era))
        return run_fail(failure, -ENOTSUP,
                        "tensors/%s/info: the file does not say which layout (era) its quantized "
                        "blocks have; mount the model with -o era=N, N from 0 to 2",
                        tensor->name);
    /* Several programs gave types of their own the same id. */
    if (info->era == DEQUANT_ERA && info->type_name[0] != '\0')
        tensor->type = dequant_reading_by_name((uint32_t)info->type, info->type_name);
    else
        tensor->type = is_whole(info->era, 0, UINT32_MAX)
                           ? dequant_type_of_era((uint32_t)info->type, (uint32_t)info->era)
                           : NULL;
    if (!tensor->type || !dequant_is_decodable(tensor->type))
        return run_fail(failure, -ENOTSUP, "tensors/%s/info: type %.0f cannot be decoded",
                        tensor->name, info->type);
    return 0;
}

static int take_shape(const struct info *info, struct run_tensor *tensor,
                      struct run_failure *failure)
{
    if (!info->has_shape || info->n_dims > RUN_MAX_DIMS)
        return run_fail(failure, -EINVAL, "tensors/%s/info: no ne of at most %d dimensions",
                        tensor->name, RUN_MAX_DIMS);
    for (size_t i = 0; i < RUN_MAX_DIMS; i++) {
        if (i < info->n_dims && !is_whole(info->ne[i], 1, INT32_MAX))
            return run_fail(failure, -EINVAL, "tensors/%s/info: ne[%zu] is not from 1 to %d",
                            tensor->name, i, INT32_MAX);
        tensor->ne[i] = i < info->n_dims ? (uint64_t)info->ne[i] : 1;
    }
    if (tensor->ne[0] % tensor->type->block_elements != 0)
        return run_fail(failure, -EINVAL,
                        "tensors/%s/info: row length %llu is not a multiple of the %s block size, "
                        "%u",
                        tensor->name, (unsigned long long)tensor->ne[0], tensor->type->name,
                        tensor->type->block_elements);
    if (tensor->ne[1] % tensor->type->interleave_rows != 0)
        return run_fail(failure, -EINVAL,
                        "tensors/%s/info: %llu rows are not a multiple of the %u that %s stores "
                        "together",
                        tensor->name, (unsigned long long)tensor->ne[1],
                        tensor->type->interleave_rows, tensor->type->name);
    return 0;
}

/* Offsets that a double cannot hold exactly count as unknown. */
static void take_place(const struct info *info, struct run_place *place)
{
    if (is_whole(info->offset, 0, MAX_EXACT))
        place->offset = (uint64_t)info->offset;
    else
        place->file[0] = '\0';
}

int run_info_file_read(int tree_fd, struct run_tensor *tensor, struct run_place *place,
                       struct run_failure *failure)
{
    struct info info = {.era = DEQUANT_ERA, .offset = NAN, .place = place};
    char path[PATH_BYTES];
    int code;

    place->file[0] = '\0';
    snprintf(path, sizeof path, "tensors/%s/info", tensor->name);
    code = read_info(tree_fd, path, &info, failure);
    if (code == 0)
        code = take_type(&info, tensor, failure);
    if (code == 0)
        code = take_shape(&info, tensor, failure);
    take_place(&info, place);
    return code;
}
