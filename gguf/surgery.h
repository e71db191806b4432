/*
 * Edits of a model's tensors: layers, experts and tensors that are left out, repeated or taken from
 * other models, new names, tensors that are joined or divided. No tensor data are copied; see
 * gguf/compose.h. The steps are parsed before a model is opened, and done in a fixed order.
 *
 * The functions return 0 or a negative errno with the reason in `report`.
 */
#pragma once

#include "gguf/files.h"
#include "gguf/model.h"

#include <stddef.h>

/* A model that tensors are taken from. Its files must be opened before the steps are done. */
struct gguf_other {
    struct gguf_other *next;
    struct gguf_files files;
    int error;                /* of the opening */
    struct gguf_finding why;  /* the reason, if error is set */
    struct gguf_model *model; /* parsed at the first use; owned */
    char path[];              /* as the user gives it */
};

struct gguf_step {
    unsigned kind;
    char *value;              /* owned, cut at ':' and '=' */
    struct gguf_other *other; /* FILE in the value, or NULL */
    const char *text, *to;    /* the rest of the value, and what follows its '=', or NULL */
};

/* All zero: none. */
struct gguf_surgery {
    struct gguf_step *steps;
    size_t n_steps;
    struct gguf_other *others; /* a list */
};

/*
 * Add the step of an option, "--drop", with its value. The value of --experts is a list, or a line
 * "BLOCK: LIST" for each block. -ENOENT, without a report, if the option is unknown.
 */
int gguf_surgery_add(struct gguf_surgery *surgery, const char *option, const char *value,
                     struct gguf_report *report);

/*
 * Do the steps. *model is replaced by the new model, which owns it; on failure it stays. Notes say
 * which keys change, warnings what the new model may lack. The new model must be closed before
 * gguf_surgery_free().
 */
int gguf_surgery_apply(const struct gguf_surgery *surgery, struct gguf_model **model,
                       struct gguf_report *report);

void gguf_surgery_free(struct gguf_surgery *surgery);
