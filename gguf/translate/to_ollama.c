/* The other way: a text model and its projector as one file of Ollama, by the same rows. */
#include "gguf/translate/translate.h"

#include "gguf/surgery_parts.h"
#include "gguf/translate/draft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256 };

/* ---- the row ---- */

/* Return the projector's kind, "gemma3", or "". */
static void get_kind(const struct gguf_model *projector, char kind[NAME_BYTES])
{
    static const char *const names[] = {"clip.projector_type", "clip.vision.projector_type"};

    kind[0] = '\0';
    for (size_t i = 0; kind[0] == '\0' && i < 2; i++)
        gguf_get_text(projector, names[i], kind, NAME_BYTES);
}

/*
 * Find the rows of a file with that kind of projector and a text model of the architecture. Returns
 * false if there are none.
 */
static bool find_rows(const char *kind, const char *architecture, const struct gguf_layout **text,
                      const struct gguf_layout **projector)
{
    char word[NAME_BYTES + 32];

    snprintf(word, sizeof word, "projector_type!str:%s", kind);
    for (*projector = gguf_projector_layouts; (*projector)->architecture; ++*projector)
        for (*text = gguf_text_layouts; (*text)->architecture; ++*text)
            if ((*projector)->undo && (*text)->drops &&
                strcmp((*text)->architecture, (*projector)->architecture) == 0 &&
                strcmp((*text)->renamed ? (*text)->renamed : (*text)->architecture, architecture) ==
                    0 &&
                gguf_words_end_with((*projector)->keys, word))
                return true;
    return false;
}

/* ---- tensors ---- */

/* Add the projector's tensors under Ollama's names. */
static void add_projector(struct gguf_draft *draft, const struct gguf_layout *row)
{
    draft->of_base = draft->n_tensors;
    for (uint64_t i = 0; draft->result == 0 && i < draft->base->n_tensors; i++)
        gguf_draft_add(draft, &draft->base->tensors[i]);
    draft->n_of_base = draft->n_tensors - draft->of_base;
    for (size_t i = draft->of_base; draft->result == 0 && i < draft->n_tensors; i++) {
        struct gguf_drafted_tensor *tensor = &draft->tensors[i];

        /* Ollama's converter rounds all matrices to F16. */
        if (tensor->type == dequant_type_by_id(DEQUANT_F32) && tensor->n_dims >= 2 &&
            gguf_words_begin(row->f32, tensor->name))
            gguf_draft_set_type(draft, tensor, DEQUANT_F16);
        gguf_draft_undo_names(draft, tensor, row->names);
    }
}

static int compare_tensors(const void *a, const void *b)
{
    const struct gguf_string first = ((const struct gguf_drafted_tensor *)a)->name;
    const struct gguf_string second = ((const struct gguf_drafted_tensor *)b)->name;
    struct gguf_string rest;
    const uint64_t i = gguf_block_of(first, &rest), j = gguf_block_of(second, &rest);

    return i != j ? (i > j) - (i < j) : gguf_string_compare(first, second);
}

static int compare_keys(const void *a, const void *b)
{
    return gguf_string_compare(((const struct gguf_key *)a)->name,
                               ((const struct gguf_key *)b)->name);
}

/* ---- keys ---- */

/* The scores of Ollama's files without scores of tokens are the ids. */
static void add_scores(struct gguf_draft *draft)
{
    const uint64_t n = gguf_draft_array(draft, "/tokenizer.ggml.tokens").n_elements;
    uint32_t *bits = calloc(n + 1, sizeof *bits);

    if (!bits)
        draft->result = -ENOMEM;
    for (uint64_t i = 0; bits && i < n; i++) {
        const float score = (float)i;

        memcpy(&bits[i], &score, sizeof score);
    }
    if (bits && n > 0 && !gguf_draft_key(draft, "/tokenizer.ggml.scores"))
        gguf_draft_set_numbers(draft, "/tokenizer.ggml.scores", GGUF_FLOAT32, bits, n);
    free(bits);
}

int gguf_join_for_ollama(const struct gguf_model *text, const struct gguf_model *projector,
                         struct gguf_model **model, struct gguf_report *report)
{
    char kind[NAME_BYTES], name[NAME_BYTES], prefix[NAME_BYTES + 32];
    const struct gguf_layout *layout, *row;
    struct gguf_draft draft;

    *model = NULL;
    get_kind(projector, kind);
    gguf_get_text(text, "general.architecture", name, sizeof name);
    if (!find_rows(kind, name, &layout, &row))
        return 0;
    gguf_draft_begin(&draft, text, report);
    snprintf(prefix, sizeof prefix, "%s.", name);
    draft.from = draft.to = prefix;
    draft.source = draft.model;
    for (uint64_t i = 0; draft.result == 0 && i < text->n_tensors; i++)
        gguf_draft_add(&draft, &text->tensors[i]);
    if (draft.result == 0 && layout->renamed)
        gguf_draft_rename_architecture(&draft, row->architecture);
    if (draft.result == 0) {
        gguf_draft_undo_keys(&draft, layout->keys);
        add_scores(&draft);
    }
    snprintf(prefix, sizeof prefix, "%s.vision.", row->architecture);
    draft.from = "clip.vision.";
    draft.to = prefix;
    gguf_draft_change_base(&draft, projector);
    if (draft.result == 0) {
        add_projector(&draft, row);
        gguf_draft_undo_keys(&draft, row->keys);
        row->undo(&draft);
    }
    gguf_draft_keys(&draft, "-/general.type -/general.name -/general.size_label");
    qsort(draft.tensors, draft.n_tensors, sizeof *draft.tensors, compare_tensors);
    qsort(draft.model->keys, draft.model->n_keys, sizeof *draft.model->keys, compare_keys);
    return gguf_draft_end(&draft, model);
}
