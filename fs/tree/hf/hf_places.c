#include "fs/tree/hf/hf_places.h"

#include "fs/tree/hf/hf_config_file.h"
#include "gguf/models/tensor_lists.h"

#include <inttypes.h>
#include <string.h>
#include <sys/param.h>

bool fs_hf_is_in_layer(struct gguf_string name, uint64_t *layer)
{
    struct gguf_string digits, rest;

    if (!gguf_tensor_name_split(name, &digits, &rest))
        return false;
    *layer = 0;
    for (uint64_t i = 0; i < digits.length_bytes && *layer < UINT32_MAX; i++)
        *layer = *layer * 10 + (uint64_t)(digits.data[i] - '0');
    return true;
}

/* Copy a name, or what fits of it. */
static const char *text_of(struct gguf_string name, char text[GGUF_NAME_BYTES])
{
    const size_t n = (size_t)MIN(name.length_bytes, GGUF_NAME_BYTES - 1);

    memcpy(text, name.data, n);
    text[n] = '\0';
    return text;
}

static bool any_lists_have(struct gguf_string name)
{
    char text[GGUF_NAME_BYTES];

    return gguf_any_lists_have(text_of(name, text));
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

/* Return true if a tensor that matches a rule ends in ".weight" or ".bias" exactly if it must. */
static bool has_right_suffix(const struct fs_hf_place *place)
{
    static const char *const bare[] = {".ssm_a", ".ssm_d", ".exp_probs_b"};
    bool is_bare = false;

    if (!place->rule->other || ends_with(place->rule->name, ".weight") ||
        ends_with(place->rule->name, ".bias") || ends_with(place->rule->name, ".scale") ||
        ends_with(place->rule->other, ".weight"))
        return true; /* the rule has it */
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        is_bare |= ends_with(place->rule->name, bare[i]);
    return is_bare == (place->match.suffix[0] == '\0');
}

/*
 * Return true if the class has a tensor that is not a bias, or has this bias. Otherwise, *result is
 * the result of adding a line. transformers ignores other biases without an error.
 */
static bool class_has_bias(const struct fs_hf_presence *presence, const struct fs_hf_place *place,
                           struct gguf_buffer *obstacles, int *result)
{
    static const char in_layer[] = "blk.%.";
    const char *class_name = presence->row->class_name, *name = place->rule->name;
    const struct gguf_name_match *match = &place->match;
    const struct fs_hf_entry *entry;
    char full[GGUF_NAME_BYTES], needed[GGUF_NAME_BYTES] = "";

    if (strcmp(match->suffix, ".bias") != 0 || !gguf_tensor_name_expand(name, match, full) ||
        gguf_lists_require_bias(presence->hf->listed, full))
        return true;
    if (gguf_text_starts_with(name, in_layer))
        name += sizeof in_layer - 1;
    entry = fs_hf_switch_of(presence->row, name);
    if (entry && fs_hf_layer_has(presence->hf, match->layer, entry->has))
        return true;
    if (entry)
        gguf_tensor_name_expand(entry->has, &(struct gguf_name_match){match->layer, 0, ""}, needed);
    *result =
        fs_hf_add_line(obstacles,
                       "Class %s has no place for the bias \"%s\"%s%s%s: transformers would "
                       "ignore it, and ggufs-run does not.\n",
                       class_name, full, entry ? " without \"" : "", needed, entry ? "\"" : "");
    return false;
}

bool fs_hf_has_place(const struct fs_hf_presence *presence, const struct gguf_tensor *tensor,
                     const struct fs_hf_place *place, struct gguf_buffer *unused,
                     struct gguf_buffer *obstacles, int *result)
{
    const struct fs_hf_model *hf = presence->hf;
    const struct gguf_string string = gguf_name_of(tensor);
    uint64_t layer = 0;
    const bool is_layer = fs_hf_is_in_layer(string, &layer);

    *result = 0;
    if (is_layer && layer >= presence->n_all)
        *result = fs_hf_add_line(obstacles,
                                 "Tensor %s is in a layer that the key block_count, %" PRIu64
                                 ", does not count.\n",
                                 gguf_quote(string).text, presence->n_all);
    else if ((is_layer && layer >= presence->n_layer) ||
             (!place->is_listed && !is_layer && !any_lists_have(string)))
        *result = fs_hf_add_line(unused, "%s\n", gguf_quote(string).text);
    else if (!place->is_listed)
        *result = fs_hf_add_line(obstacles, "The architecture %s has no tensor %s.\n",
                                 gguf_quote(hf->architecture).text, gguf_quote(string).text);
    else if (!place->rule)
        *result = fs_hf_add_line(obstacles, "A checkpoint of %s has no place for tensor %s.\n",
                                 presence->row->class_name, gguf_quote(string).text);
    else if (!has_right_suffix(place))
        *result =
            fs_hf_add_line(obstacles,
                           "The name of tensor %s ends in %s \".weight\" %s "
                           "\".bias\".\n",
                           gguf_quote(string).text, place->match.suffix[0] ? "either" : "neither",
                           place->match.suffix[0] ? "or" : "nor");
    else
        return class_has_bias(presence, place, obstacles, result);
    return false;
}

struct fs_hf_place fs_hf_find_place(const struct fs_hf_presence *presence, struct gguf_string name)
{
    struct fs_hf_place place = {.counts_experts = fs_hf_counts_experts(name)};
    char text[GGUF_NAME_BYTES];

    place.rule = gguf_rename_of(presence->row->naming, name, &place.match, &place.index);
    place.is_listed = gguf_lists_have(presence->hf->listed, text_of(name, text));
    return place;
}
