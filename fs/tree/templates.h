/* Checks of the chat templates of a model. */
#pragma once

#include "gguf/model.h"

/* The key of the template without a name; others follow with a dot and a name. */
#define FS_TEMPLATE_KEY "tokenizer.chat_template"

/*
 * Warn of chat templates that do not compile, read internals of Python, name websites, write tokens
 * twice or that the vocabulary lacks, or change earlier turns.
 */
void fs_check_templates(const struct gguf_model *model, struct gguf_report *report);
