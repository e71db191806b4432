#include "contrib/runner/cli/session.h"
#include "contrib/runner/tree/tensor_list.h"
#include "gguf/models/kinds.h"

#include <errno.h>

static struct gguf_string find_text(const struct run_metadata *metadata, const char *key)
{
    const char *text = run_metadata_string(metadata, key);

    return gguf_string_of(text ? text : "");
}

/* Return the number that a key has, or 0. */
static uint32_t find_number(const struct run_metadata *metadata, const char *key)
{
    struct run_failure ignored;
    uint32_t number = 0;

    return run_metadata_u32(metadata, key, UINT32_MAX, &number, &ignored) < 0 ? 0 : number;
}

static int see_name(void *context, const struct run_listed_names *names,
                    const struct run_listed_tensor *listed, struct run_failure *failure)
{
    (void)listed;
    (void)failure;
    gguf_kind_see(context,
                  gguf_string_of(*names->gguf_name != '\0' ? names->gguf_name : names->name));
    return 0;
}

bool run_kind_explain(const struct run_tree *tree, int code, struct run_failure *failure)
{
    const uint32_t n_layers = find_number(tree->metadata, ".block_count");
    const struct gguf_kind_metadata metadata = {
        .type = find_text(tree->metadata, "general.type"),
        .architecture = find_text(tree->metadata, "general.architecture"),
        .has_vocabulary = run_metadata_has(tree->metadata, "tokenizer.ggml.tokens"),
        .has_layers = n_layers > 0,
        .has_only_nextn =
            n_layers > 0 && find_number(tree->metadata, ".nextn_predict_layers") == n_layers,
        .pooling_type = find_number(tree->metadata, ".pooling_type"),
    };
    struct gguf_kind_names names = {0};
    struct gguf_kind_found found;
    const struct gguf_kind *kind;
    struct run_failure ignored;

    if (failure->is_elsewhere || (code != -ENOENT && code != -EINVAL && code != -ENOTSUP) ||
        run_tensor_list_read(tree->fd, see_name, &names, &ignored) < 0)
        return false;
    found = gguf_kind_find(&metadata, &names);
    kind = gguf_kind_at(found.tensors);
    /* A kind that may have a language model's tensors may also fail for a reason of its own. */
    if (names.n_tensors == 0 || !kind->use || (kind->has_language_tensors && code != -ENOTSUP))
        return false;
    run_fail(failure, -ENOTSUP, "this is %s %s, not a language model: %s", gguf_kind_article(kind),
             kind->name, kind->use);
    return true;
}
