#include "contrib/runner/cli/session.h"
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
    static const struct run_range range = {0, UINT32_MAX, true};
    struct run_failure ignored;
    double number = 0;

    run_metadata_number(metadata, key, RUN_SCALAR, &range, &number, &ignored);
    return (uint32_t)number;
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
    struct run_weights *weights;
    const char *name;
    const struct gguf_kind *kind;
    struct run_failure ignored;

    if (failure->is_elsewhere || (code != -ENOENT && code != -EINVAL && code != -ENOTSUP) ||
        run_weights_open(tree->fd, false, &weights, &ignored) < 0)
        return false;
    for (size_t i = 0; (name = run_weights_name(weights, i)); i++)
        gguf_kind_see(&names, gguf_string_of(name));
    run_weights_close(weights);
    found = gguf_kind_find(&metadata, &names);
    kind = gguf_kind_at(found.tensors);
    /* A kind that may have a language model's tensors may also fail for a reason of its own. */
    if (names.n_tensors == 0 || !kind->use || (kind->has_language_tensors && code != -ENOTSUP))
        return false;
    run_fail(failure, -ENOTSUP, "this is %s %s, not a language model: %s", gguf_kind_article(kind),
             kind->name, kind->use);
    return true;
}
