/* Prompts: the variables of a chat template that come from the model, and the parts of a prompt. */
#pragma once

#include "fs/tree/hf/vocabulary.h"
#include "fs/tree/output/sink.h"
#include "gguf/jinja/jinja.h"

struct fs_prompts {
    struct fs_vocabulary *vocabulary; /* n_tokens is 0 if the model has none */
    struct fs_sink special;           /* a JSON object: bos_token and others that the model has */
    struct tm now;
};

/* Returns 0 or -ENOMEM. Close it in any case. */
int fs_prompts_open(const struct gguf_model *model, struct fs_prompts *prompts);
void fs_prompts_close(struct fs_prompts *prompts);

/* Return true if encoding adds the BOS token. */
bool fs_prompts_add_bos(const struct fs_prompts *prompts);

/* Return true if the template wrote the BOS token at the start. */
bool fs_prompts_begin_with_bos(const struct fs_prompts *prompts,
                               const struct jinja_rendering *rendering);

/*
 * Write the parts of a prompt, a line for each: where it is from (tokenizer, template or message),
 * the id of a token that is matched as a whole, or "-", and its text as JSON. Control tokens are
 * matched in the template's text only. A BOS token that encoding adds is a part.
 */
void fs_prompts_write_parts(const struct fs_prompts *prompts,
                            const struct jinja_rendering *rendering, struct fs_sink *sink);
