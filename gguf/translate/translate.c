#include "gguf/translate/translate.h"

#include "gguf/legacy/rwkv_tensors.h"
#include "gguf/translate/draft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which row ---- */

/* Return true if a tensor's name begins or ends with a pattern "v.*" or "*.ssm_dt", or is "=v". */
static bool has_tensor(const struct gguf_draft *draft, const char *pattern)
{
    const size_t length = strlen(pattern);
    char part[GGUF_NAME_BYTES];

    snprintf(part, sizeof part, "%.*s", (int)(length - 1), pattern + (pattern[length - 1] != '*'));
    for (uint64_t i = 0; i < draft->file->n_tensors; i++) {
        const struct gguf_string name = draft->file->tensors[i].name;

        if (*pattern == '*'   ? gguf_string_ends_with(name, part)
            : *pattern == '=' ? gguf_string_equals(name, part)
                              : gguf_string_starts_with(name, part))
            return true;
    }
    return false;
}

static bool is_marked(const struct gguf_draft *draft, const struct gguf_layout *layout)
{
    const char *words = layout->markers;
    struct gguf_string word;
    char text[GGUF_NAME_BYTES], *value;
    const struct gguf_key *key;

    if (layout->is)
        return layout->is(draft);
    while (gguf_next_word(&words, &word)) {
        snprintf(text, sizeof text, "%.*s", (int)word.length_bytes, word.data);
        if (*text == '=' || *text == '*' || text[word.length_bytes - 1] == '*') {
            if (has_tensor(draft, text))
                return true;
            continue;
        }
        value = strchr(text, '=');
        if (value)
            *value++ = '\0';
        key = gguf_draft_key(draft, text + (*text == '!'));
        if (value ? key && key->value.type == GGUF_STRING &&
                        gguf_string_equals(key->value.string, value)
                  : !key == (*text == '!'))
            return true;
    }
    return !layout->markers;
}

/* ---- what the row says ---- */

static void apply(struct gguf_draft *draft, const struct gguf_layout *layout)
{
    if (layout->renamed)
        gguf_draft_rename_architecture(draft, layout->renamed);
    for (size_t i = 0; draft->made.result == 0 && i < draft->made.n_items; i++) {
        struct gguf_item *item = &draft->made.items[i];

        if (item->is_dropped ||
            (layout->takes &&
             !gguf_words_begin(layout->takes, gguf_origin_of(&draft->made, item)->tensor->name)))
            continue;
        if (gguf_words_begin(layout->drops, item->like.name)) {
            gguf_draft_drop(draft, item);
            continue;
        }
        gguf_draft_names(draft, item, layout->names, false);
        if (gguf_words_begin(layout->f32, item->like.name))
            gguf_draft_set_type(draft, item, DEQUANT_F32);
    }
    gguf_draft_keys(draft, layout->keys);
    if (layout->rest && draft->made.result == 0)
        layout->rest(draft);
}

/* ---- the models ---- */

/* Return the first row of a table, or of the rest of one, for an architecture, or NULL. */
static const struct gguf_layout *find_layout(const struct gguf_layout *layouts,
                                             struct gguf_string name)
{
    while (layouts->architecture && !gguf_words_have(layouts->architecture, name))
        layouts++;
    return layouts->architecture ? layouts : NULL;
}

void gguf_draft_begin(struct gguf_draft *draft, const struct gguf_model *file,
                      struct gguf_report *report)
{
    *draft = (struct gguf_draft){.file = file, .source = file, .from = "", .to = ""};
    gguf_compose_begin(&draft->made, file, report);
}

/* Make the model of a draft that differs from the file and is not refused. */
static int end(struct gguf_draft *draft, struct gguf_model **model)
{
    if (draft->made.result < 0 || (draft->made.is_changed && !draft->refusal))
        return gguf_compose_end(&draft->made, model);
    gguf_compose_drop(&draft->made);
    return 0;
}

/* Use the rows for text models. An earlier row may make the architecture that a later one is for.
 */
static int translate_text(const struct gguf_model *file, struct gguf_translation *translation,
                          const char **refusal, struct gguf_report *report)
{
    const struct gguf_layout *layout = gguf_text_layouts;
    struct gguf_string name = gguf_architecture_of(file);
    char prefix[GGUF_NAME_BYTES];
    struct gguf_draft draft;
    int result;

    gguf_draft_begin(&draft, file, report);
    draft.source = draft.made.model;
    gguf_append_items(&draft.made, file);
    while (draft.made.result == 0 && !draft.refusal && (layout = find_layout(layout, name))) {
        snprintf(prefix, sizeof prefix, "%.*s.", (int)name.length_bytes, name.data);
        draft.from = draft.to = prefix;
        if (is_marked(&draft, layout)) {
            draft.refusal = layout->refusal;
            apply(&draft, layout);
            name = gguf_architecture_of(draft.made.model);
        }
        layout++;
    }
    *refusal = draft.refusal;
    result = end(&draft, &translation->text);
    if (gguf_string_equals(gguf_architecture_of(file), "clip")) {
        translation->projector = translation->text;
        translation->text = NULL;
    }
    return result;
}

/* Use a row for an encoder. */
static void translate_tower(struct gguf_draft *draft, const struct gguf_layout *layout,
                            struct gguf_string architecture)
{
    char from[GGUF_NAME_BYTES], to[GGUF_NAME_BYTES], keys[GGUF_NAME_BYTES];
    const int n = (int)architecture.length_bytes;

    snprintf(from, sizeof from, "%.*s.%s.", n, architecture.data, layout->tower);
    snprintf(to, sizeof to, "clip.%s.", layout->tower);
    snprintf(keys, sizeof keys,
             "projection_dim</%.*s.embedding_length /clip.has_%s_encoder!bool:true", n,
             architecture.data, layout->tower);
    draft->from = from;
    draft->to = to;
    apply(draft, layout);
    gguf_draft_keys(draft, keys);
}

/* Use all rows for encoders that the file has. */
static int translate_projector(const struct gguf_model *file, struct gguf_translation *translation,
                               const char **refusal, struct gguf_report *report)
{
    const struct gguf_string name = gguf_architecture_of(file);
    const struct gguf_layout *layout = gguf_projector_layouts, *rows[2];
    struct gguf_draft draft;
    size_t n_rows = 0;

    gguf_draft_begin(&draft, file, report);
    for (; draft.made.result == 0 && (layout = find_layout(layout, name)); layout++)
        if (is_marked(&draft, layout) && n_rows < 2)
            rows[n_rows++] = layout;
    gguf_append_items(&draft.made, n_rows > 0 ? file : &(struct gguf_model){0});
    for (size_t i = 0; i < draft.made.n_items; i++)
        draft.made.items[i].is_dropped =
            !gguf_words_begin(rows[0]->takes, file->tensors[i].name) &&
            (n_rows == 1 || !gguf_words_begin(rows[1]->takes, file->tensors[i].name));
    gguf_remove_dropped(&draft.made);
    if (n_rows > 0 && draft.made.result == 0) {
        draft.made.model->n_keys = 0;
        gguf_draft_keys(&draft, "general.architecture!str:clip general.type!str:mmproj "
                                "general.name general.file_type general.quantization_version");
    }
    for (size_t i = 0; draft.made.result == 0 && i < n_rows; i++)
        translate_tower(&draft, rows[i], name);
    *refusal = draft.refusal;
    return end(&draft, &translation->projector);
}

int gguf_draft_refuse(int result, const char *refusal, const char *what,
                      const struct gguf_report *why, char **text, struct gguf_report *report)
{
    if (result != -ENOMEM &&
        (refusal ? asprintf(text, "%s", refusal)
                 : asprintf(text, "%s: %s", what, why->first_error.message)) >= 0)
        return 0;
    *text = NULL;
    return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
}

int gguf_translate(const struct gguf_model *model, struct gguf_translation *translation,
                   struct gguf_report *report)
{
    const struct gguf_string name = gguf_architecture_of(model);
    struct gguf_report own = {0};
    const char *refusal = NULL;
    int result = 0;

    *translation = (struct gguf_translation){0};
    translation->is_of_old = model->rwkv_rules;
    if (model->rwkv_rules)
        result = gguf_rwkv_convert(model, &translation->text, &own);
    else if (find_layout(gguf_text_layouts, name))
        result = translate_text(model, translation, &refusal, &own);
    if (result == 0 && !refusal && find_layout(gguf_projector_layouts, name))
        result = translate_projector(model, translation, &refusal, &own);
    if (result == 0 && !refusal)
        return 0;
    gguf_translation_end(translation);
    return gguf_draft_refuse(result, refusal, "it cannot be translated for llama.cpp", &own,
                             &translation->refusal, report);
}

void gguf_translation_end(struct gguf_translation *translation)
{
    gguf_close(translation->text);
    gguf_close(translation->projector);
    free(translation->refusal);
    *translation = (struct gguf_translation){0};
}

int gguf_take_part(enum gguf_file_part part, struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_translation made;
    struct gguf_model **wanted = part == GGUF_TEXT_PART ? &made.text : &made.projector;
    int result;

    if (part == GGUF_WHOLE_FILE_PART || (*model)->rwkv_rules)
        return 0;
    result = gguf_translate(*model, &made, report);
    if (result < 0)
        return result;
    if (made.refusal)
        result = gguf_error(report, GGUF_RULE_FUSED, -EINVAL, GGUF_NO_PLACE, "it cannot be run: %s",
                            made.refusal);
    else if (part == GGUF_PROJECTOR_PART && !*wanted)
        result = gguf_error(report, GGUF_RULE_COMPOSITION, -EINVAL, GGUF_NO_PLACE,
                            "-o part=mmproj: the model has no projector");
    else if (*wanted) {
        (*wanted)->owned = *model;
        *model = *wanted;
        *wanted = NULL;
    }
    gguf_translation_end(&made);
    return result;
}
