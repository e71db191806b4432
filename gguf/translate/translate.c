#include "gguf/translate/translate.h"

#include "gguf/translate/draft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256 };

/* ---- which row ---- */

/* Return true if a tensor's name begins or ends with a pattern "v.*" or "*.ssm_dt", or is "=v". */
static bool has_tensor(const struct gguf_draft *draft, const char *pattern)
{
    const size_t length = strlen(pattern);
    char part[NAME_BYTES];

    if (*pattern == '=')
        return gguf_draft_stored(draft, pattern + 1);
    snprintf(part, sizeof part, "%.*s", (int)(length - 1), pattern + (*pattern == '*'));
    for (uint64_t i = 0; i < draft->base->n_tensors; i++) {
        const struct gguf_string name = draft->base->tensors[i].name;

        if (*pattern == '*' ? gguf_string_ends_with(name, part)
                            : gguf_string_starts_with(name, part))
            return true;
    }
    return false;
}

static bool is_marked(const struct gguf_draft *draft, const struct gguf_layout *layout)
{
    const char *words = layout->markers;
    struct gguf_string word;
    char text[NAME_BYTES], *value;
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

/* ---- what the row says of tensors ---- */

/* Draft a tensor of the file, unless another row has. */
static void draft_tensor(struct gguf_draft *draft, const struct gguf_layout *layout,
                         struct gguf_drafted_tensor *tensor)
{
    if (gguf_words_begin(layout->drops, tensor->name)) {
        gguf_draft_drop(draft, tensor);
        return;
    }
    gguf_draft_names(draft, tensor, layout->names);
    if (gguf_words_begin(layout->f32, tensor->name))
        gguf_draft_set_type(draft, tensor, DEQUANT_F32);
}

static void apply(struct gguf_draft *draft, const struct gguf_layout *layout)
{
    if (layout->renamed)
        gguf_draft_rename_architecture(draft, layout->renamed);
    for (size_t i = 0; draft->result == 0 && i < draft->n_tensors; i++)
        if (draft->tensors[i].name.length_bytes > 0 &&
            (!layout->takes || gguf_words_begin(layout->takes, draft->tensors[i].stored->name)))
            draft_tensor(draft, layout, &draft->tensors[i]);
    gguf_draft_keys(draft, layout->keys);
    if (layout->rest && draft->result == 0)
        layout->rest(draft);
}

/* ---- the models ---- */

/* Return the first row of a table, or of the rest of one, for an architecture, or NULL. */
static const struct gguf_layout *find_layout(const struct gguf_layout *layouts, const char *name)
{
    while (layouts->architecture && !gguf_words_have(layouts->architecture, name))
        layouts++;
    return layouts->architecture ? layouts : NULL;
}

/* Make the model of a draft that differs from the file. Frees the draft. */
static int end(struct gguf_draft *draft, struct gguf_translation *translation,
               struct gguf_model **model)
{
    if (draft->refusal)
        translation->refusal = draft->refusal;
    return gguf_draft_end(draft, model);
}

/* Use the rows for text models. An earlier row may make the architecture that a later one is for.
 */
static int translate_text(const struct gguf_model *base, const char *architecture,
                          struct gguf_translation *translation, struct gguf_report *report)
{
    const struct gguf_layout *layout = gguf_text_layouts;
    char name[NAME_BYTES / 2], prefix[NAME_BYTES];
    struct gguf_draft draft;

    gguf_draft_begin(&draft, base, report);
    draft.source = draft.model;
    snprintf(name, sizeof name, "%s", architecture);
    for (uint64_t i = 0; draft.result == 0 && i < base->n_tensors; i++)
        gguf_draft_add(&draft, &base->tensors[i]);
    draft.n_of_base = draft.n_tensors;
    while (draft.result == 0 && !draft.refusal && (layout = find_layout(layout, name))) {
        snprintf(prefix, sizeof prefix, "%s.", name);
        draft.from = draft.to = prefix;
        if (is_marked(&draft, layout)) {
            draft.refusal = layout->refusal;
            apply(&draft, layout);
            gguf_get_text(draft.model, "general.architecture", name, sizeof name);
        }
        layout++;
    }
    return end(&draft, translation,
               strcmp(name, "clip") == 0 ? &translation->projector : &translation->text);
}

/* Use a row for an encoder. */
static void translate_tower(struct gguf_draft *draft, const struct gguf_layout *layout,
                            const char *architecture)
{
    char from[NAME_BYTES], to[NAME_BYTES], keys[NAME_BYTES];

    snprintf(from, sizeof from, "%s.%s.", architecture, layout->tower);
    snprintf(to, sizeof to, "clip.%s.", layout->tower);
    snprintf(keys, sizeof keys,
             "projection_dim</%s.embedding_length /clip.has_%s_encoder!bool:true", architecture,
             layout->tower);
    draft->from = from;
    draft->to = to;
    apply(draft, layout);
    gguf_draft_keys(draft, keys);
}

/* Use all rows for encoders that the file has. */
static int translate_projector(const struct gguf_model *base, const char *architecture,
                               struct gguf_translation *translation, struct gguf_report *report)
{
    const struct gguf_layout *layout = gguf_projector_layouts, *rows[2];
    struct gguf_draft draft;
    size_t n_rows = 0;

    gguf_draft_begin(&draft, base, report);
    draft.from = draft.to = "";
    for (; draft.result == 0 && (layout = find_layout(layout, architecture)); layout++)
        if (is_marked(&draft, layout) && n_rows < 2)
            rows[n_rows++] = layout;
    for (uint64_t i = 0; draft.result == 0 && i < base->n_tensors; i++)
        if ((n_rows > 0 && gguf_words_begin(rows[0]->takes, base->tensors[i].name)) ||
            (n_rows > 1 && gguf_words_begin(rows[1]->takes, base->tensors[i].name)))
            gguf_draft_add(&draft, &base->tensors[i]);
    draft.n_of_base = draft.n_tensors;
    if (n_rows > 0 && draft.result == 0) {
        draft.model->n_keys = 0;
        gguf_draft_keys(&draft, "general.architecture!str:clip general.type!str:mmproj "
                                "general.name general.file_type general.quantization_version");
    }
    for (size_t i = 0; draft.result == 0 && i < n_rows; i++)
        translate_tower(&draft, rows[i], architecture);
    return end(&draft, translation, &translation->projector);
}

int gguf_translate(const struct gguf_model *model, struct gguf_translation *translation,
                   struct gguf_report *report)
{
    char name[NAME_BYTES / 2];
    int result = 0;

    *translation = (struct gguf_translation){0};
    gguf_get_text(model, "general.architecture", name, sizeof name);
    if (find_layout(gguf_text_layouts, name))
        result = translate_text(model, name, translation, report);
    if (result == 0 && !translation->refusal && find_layout(gguf_projector_layouts, name))
        result = translate_projector(model, name, translation, report);
    if (result < 0 || translation->refusal) {
        const char *refusal = translation->refusal;

        gguf_translation_end(translation);
        translation->refusal = refusal;
    }
    return result;
}

void gguf_translation_end(struct gguf_translation *translation)
{
    gguf_close(translation->text);
    gguf_close(translation->projector);
    *translation = (struct gguf_translation){0};
}

int gguf_take_part(enum gguf_file_part part, struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_translation made;
    struct gguf_model **wanted = part == GGUF_TEXT_PART ? &made.text : &made.projector;
    int result = part == GGUF_WHOLE_FILE_PART ? 0 : gguf_translate(*model, &made, report);

    if (part == GGUF_WHOLE_FILE_PART || result < 0)
        return result;
    if (made.refusal)
        result = gguf_error(report, GGUF_RULE_FUSED, -EINVAL, GGUF_NO_PLACE, "it cannot be run: %s",
                            made.refusal);
    else if (part == GGUF_PROJECTOR_PART && !*wanted)
        result = gguf_error(report, GGUF_RULE_FUSED, -EINVAL, GGUF_NO_PLACE,
                            "it has no projector that part=mmproj could show");
    if (result == 0 && *wanted) {
        (*wanted)->owned = calloc(1, sizeof(struct gguf_model *));
        if (!(*wanted)->owned) {
            result = gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
        } else {
            (*wanted)->owned[(*wanted)->n_owned++] = *model;
            *model = *wanted;
            *wanted = NULL;
        }
    }
    gguf_translation_end(&made);
    return result;
}
