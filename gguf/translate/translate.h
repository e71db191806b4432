/*
 * Files of Ollama as llama.cpp wants them. Ollama's converters wrote text model, encoders and
 * projector into one file ("fused"), or used names and keys of their own ("old layout"). The rows
 * of text_layouts.c and projector_layouts.c say how these files are recognised and translated.
 * Sources: Ollama's llama/compat and convert/ of August 2026, llama.cpp's conversion/ and
 * tools/mtmd/.
 */
#pragma once

#include "gguf/model.h"

/* The models that a file is for llama.cpp. All zero: the file is what llama.cpp loads. */
struct gguf_translation {
    struct gguf_model *text;      /* the text model; NULL: the file itself, or no model */
    struct gguf_model *projector; /* the encoders of images and sound; NULL if there are none */
    bool is_of_old;               /* `text` is made of a file of rwkv.cpp */
    char *refusal;                /* why there is neither; or NULL; owned */
};

/*
 * Find out whether the model must be translated for llama.cpp, and make the translated models,
 * which borrow the model and its data. Free them with gguf_translation_end() before the model is
 * closed. Returns 0, also if the translation is refused or fails, or -ENOMEM, which is reported.
 */
int gguf_translate(const struct gguf_model *model, struct gguf_translation *translation,
                   struct gguf_report *report);

void gguf_translation_end(struct gguf_translation *translation);

/*
 * Replace *model by a part of it, which then closes it, too, unless the part is all of it. Returns
 * 0 or a negative errno with the reason in `report`; *model is then unchanged.
 */
int gguf_take_part(enum gguf_file_part part, struct gguf_model **model, struct gguf_report *report);

/*
 * The other way: make one file for Ollama of a text model and its projector, which it borrows.
 * Without one, *model is NULL and *refusal, for the caller to free, says why. Returns 0 or -ENOMEM,
 * which is reported.
 */
int gguf_join_for_ollama(const struct gguf_model *text, const struct gguf_model *projector,
                         struct gguf_model **model, char **refusal, struct gguf_report *report);

/* Return true if the model is of Ollama, or refused. */
static inline bool gguf_is_translated(const struct gguf_translation *translation)
{
    return (translation->text && !translation->is_of_old) || translation->projector ||
           translation->refusal;
}
