#include "gguf/translate/draft.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256, MAX_PIECES = 1 << 20 };

const struct gguf_tensor *gguf_draft_stored(const struct gguf_draft *draft, const char *name)
{
    return gguf_find_tensor(draft->by_name, draft->base->n_tensors,
                            (struct gguf_string){name, strlen(name)});
}

static int compare_stored(const void *stored, const void *tensor)
{
    const struct gguf_tensor *other = ((const struct gguf_drafted_tensor *)tensor)->stored;

    return ((const struct gguf_tensor *)stored > other) -
           ((const struct gguf_tensor *)stored < other);
}

struct gguf_drafted_tensor *gguf_draft_of(const struct gguf_draft *draft, const char *format, ...)
{
    const struct gguf_tensor *stored;
    char name[NAME_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    stored = gguf_draft_stored(draft, name);
    return stored ? bsearch(stored, draft->tensors + draft->of_base, draft->n_of_base,
                            sizeof *draft->tensors, compare_stored)
                  : NULL;
}

struct gguf_drafted_tensor *gguf_draft_tensor(const struct gguf_draft *draft, const char *name)
{
    for (size_t i = 0; i < draft->n_tensors; i++)
        if (gguf_string_equals(draft->tensors[i].name, name))
            return &draft->tensors[i];
    return NULL;
}

void gguf_draft_add(struct gguf_draft *draft, const struct gguf_tensor *stored)
{
    struct gguf_drafted_tensor *grown =
        gguf_grow(draft->tensors, &draft->tensors_room, draft->n_tensors + 1, sizeof *grown);

    if (!grown) {
        draft->result = -ENOMEM;
        return;
    }
    draft->tensors = grown;
    grown += draft->n_tensors++;
    *grown = (struct gguf_drafted_tensor){
        .name = gguf_name_of(stored), .stored = stored, .n_dims = stored->n_dims};
    memcpy(grown->ne, stored->ne, sizeof grown->ne);
    gguf_draft_begin_pieces(draft, grown, stored->type);
    gguf_draft_add_piece(draft, grown, stored, 0, stored->n_elements);
}

void gguf_draft_rename(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                       const char *format, ...)
{
    char name[NAME_BYTES], *copy;
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    copy = gguf_model_print(draft->model, "%s", name);
    if (copy)
        tensor->name = (struct gguf_string){copy, strlen(copy)};
    else
        draft->result = -ENOMEM;
    draft->is_changed = true;
}

void gguf_draft_drop(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor)
{
    tensor->name.length_bytes = 0;
    draft->is_changed = true;
}

void gguf_draft_begin_pieces(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                             const struct dequant_type *type)
{
    tensor->first_piece = draft->n_pieces;
    tensor->n_pieces = 0;
    tensor->type = type;
}

void gguf_draft_add_piece(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                          const struct gguf_tensor *stored, uint64_t first, uint64_t n_elements)
{
    struct gguf_piece *grown;

    if (draft->n_pieces == MAX_PIECES) {
        draft->result =
            gguf_error(draft->report, GGUF_RULE_METADATA_LIMIT, -E2BIG, gguf_tensor_place(stored),
                       "the translation for llama.cpp has over %d pieces", MAX_PIECES);
        return;
    }
    grown = gguf_grow(draft->pieces, &draft->pieces_room, draft->n_pieces + 1, sizeof *grown);
    if (!grown) {
        draft->result = -ENOMEM;
        return;
    }
    draft->pieces = grown;
    grown[draft->n_pieces++] = (struct gguf_piece){
        .of = {draft->base, stored, tensor->type}, .first = first, .n_elements = n_elements};
    tensor->n_pieces++;
}

void gguf_draft_set_type(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                         uint32_t type_id)
{
    const struct dequant_type *type = dequant_type_by_id(type_id);

    if (tensor->type == type)
        return;
    gguf_draft_begin_pieces(draft, tensor, type);
    gguf_draft_add_piece(draft, tensor, tensor->stored, 0, tensor->stored->n_elements);
    draft->is_changed = true;
}

/* Return true if the tensors can be joined: all are there and differ at most in dimension `dim`. */
static bool fit(struct gguf_drafted_tensor *const *tensors, size_t n, uint32_t dim)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t d = 0; d < GGUF_MAX_DIMS; d++)
            if (!tensors[i] || (d != dim && tensors[i]->ne[d] != tensors[0]->ne[d]))
                return false;
    return true;
}

bool gguf_draft_join(struct gguf_draft *draft, struct gguf_drafted_tensor **tensors, size_t n,
                     uint32_t dim, bool is_f32)
{
    const struct dequant_type *type = n > 0 && tensors[0] ? tensors[0]->stored->type : NULL;
    uint64_t n_outer = 1, sum = 0;

    if (draft->result < 0 || n == 0 || !fit(tensors, n, dim))
        return false;
    for (uint32_t d = dim + 1; d < GGUF_MAX_DIMS; d++)
        n_outer *= tensors[0]->ne[d];
    for (size_t i = 0; i < n; i++) {
        sum += tensors[i]->ne[dim];
        is_f32 |= tensors[i]->stored->type != type;
    }
    gguf_draft_begin_pieces(draft, tensors[0], is_f32 ? dequant_type_by_id(DEQUANT_F32) : type);
    for (uint64_t outer = 0; draft->result == 0 && outer < n_outer; outer++)
        for (size_t i = 0; draft->result == 0 && i < n; i++) {
            const uint64_t n_elements = tensors[i]->stored->n_elements / n_outer;

            gguf_draft_add_piece(draft, tensors[0], tensors[i]->stored, outer * n_elements,
                                 n_elements);
        }
    for (size_t i = 1; i < n; i++)
        gguf_draft_drop(draft, tensors[i]);
    tensors[0]->ne[dim] = sum;
    if (tensors[0]->n_dims <= dim)
        tensors[0]->n_dims = dim + 1;
    return true;
}

float *gguf_draft_add_made(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                           uint64_t n_elements)
{
    float *numbers = gguf_model_alloc(draft->model, n_elements * sizeof *numbers);

    gguf_draft_begin_pieces(draft, tensor, dequant_type_by_id(DEQUANT_F32));
    gguf_draft_add_piece(draft, tensor, tensor->stored, 0, n_elements);
    if (!numbers)
        draft->result = -ENOMEM;
    if (draft->result == 0)
        draft->pieces[tensor->first_piece] =
            (struct gguf_piece){.n_elements = n_elements, .bytes = numbers};
    return draft->result == 0 ? numbers : NULL;
}
