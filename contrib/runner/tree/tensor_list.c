#include "contrib/runner/tree/tensor_list.h"

#include "contrib/runner/tree/json_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "tensors.json"

#define LIMIT_BYTES ((uint64_t)1 << 30)

/* Length limit of the names that the runner uses, plus a byte to detect longer names. */
enum { NAME_BYTES = 257 };

struct listed {
    char name[NAME_BYTES], gguf_name[NAME_BYTES];
};

/* The value of one member of a tensor's object. */
static int read_member(struct run_json *json, const char *key, struct listed *listed,
                       struct run_failure *failure)
{
    char *to = strcmp(key, "name") == 0        ? listed->name
               : strcmp(key, "gguf_name") == 0 ? listed->gguf_name
                                               : NULL;
    struct run_json_token value;
    int code = run_json_next(json, &value, failure);

    if (code <= 0)
        return code;
    if (value.kind == RUN_JSON_ARRAY || value.kind == RUN_JSON_OBJECT)
        return run_json_skip(json, failure);
    if (to && value.kind == RUN_JSON_STRING)
        snprintf(to, NAME_BYTES, "%s", value.text);
    return 0;
}

static int read_tensor(struct run_json *json, size_t index, run_tensor_listed *on_tensor,
                       void *context, struct run_failure *failure)
{
    struct listed listed = {"", ""};
    struct run_json_token token;
    int code;

    while ((code = run_json_next(json, &token, failure)) > 0 && token.kind == RUN_JSON_KEY) {
        code = read_member(json, token.text, &listed, failure);
        if (code < 0)
            return code;
    }
    if (code < 0)
        return code;
    if (listed.name[0] == '\0')
        return run_fail(failure, -EINVAL, FILE_NAME ": tensor %zu has no name", index);
    return on_tensor(context, listed.name, listed.gguf_name, failure);
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
