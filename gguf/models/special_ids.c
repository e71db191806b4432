#include "gguf/models/special_ids.h"

#include <string.h>

#define KEY   "tokenizer.ggml."
#define ID(n) offsetof(struct gguf_special_ids, n)

const struct gguf_special_key gguf_special_keys[GGUF_N_SPECIAL_KEYS] = {
    {KEY "cls_token_id", ID(bos)},       {KEY "bos_token_id", ID(bos)},
    {KEY "eos_token_id", ID(eos)},       {KEY "eot_token_id", ID(eot)},
    {KEY "eom_token_id", ID(eom)},       {KEY "unknown_token_id", ID(unk)},
    {KEY "seperator_token_id", ID(sep)}, /* GGUF's spelling */
    {KEY "padding_token_id", ID(pad)},   {KEY "mask_token_id", ID(mask)},
};

#define NONE GGUF_NO_TOKEN
/* No kind has a default for eot and eom. */
#define IDS(bos_, eos_, unk_, sep_, pad_, mask_)                                                   \
    .bos = (bos_), .eos = (eos_), .eot = NONE, .eom = NONE, .unk = (unk_), .sep = (sep_),          \
    .pad = (pad_), .mask = (mask_)

/* The first model of each kind has these ids, as in llama.cpp. */
static const struct gguf_tokenizer_defaults defaults[] = {
    {.model = "llama",
     .ids = {IDS(1, 2, 0, NONE, NONE, NONE), .is_bos_added = true},
     .is_space_added = true},
    {.model = "bert", .ids = {IDS(101, NONE, 100, 102, 0, 103)}},
    {.model = "t5", .ids = {IDS(NONE, 1, 2, NONE, 0, NONE), .is_eos_added = true}},
    {.model = "plamo2", .ids = {IDS(1, 2, 0, NONE, 3, NONE)}},
    {.model = NULL, .ids = {IDS(NONE, NONE, NONE, NONE, NONE, NONE)}}, /* any other */
};

const struct gguf_tokenizer_defaults *gguf_tokenizer_defaults_find(const char *model)
{
    const struct gguf_tokenizer_defaults *row = defaults;

    while (row->model && strcmp(row->model, model) != 0)
        row++;
    return row;
}

void gguf_special_ids_complete(struct gguf_special_ids *ids, const char *model,
                               const struct gguf_pretokenizer *pretokenizer, bool has_add_bos_key,
                               int32_t end_of_text)
{
    /* Put every text between CLS and SEP. */
    if (strcmp(model, "bert") == 0) {
        ids->is_bos_added = ids->is_eos_added = true;
        if (ids->sep >= 0)
            ids->eos = ids->sep;
    }
    if (!pretokenizer)
        return;
    if (pretokenizer->is_always_bos || (pretokenizer->is_bos_added && !has_add_bos_key))
        ids->is_bos_added = true;
    /* Files without these ids are GPT-2's or Falcon's, which use one token at both ends. */
    if (!pretokenizer->is_raw && ids->bos < 0)
        ids->bos = end_of_text;
    if (!pretokenizer->is_raw && ids->eos < 0)
        ids->eos = end_of_text;
}
