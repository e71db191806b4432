/* Checks of the chat templates of a model. */
#pragma once

#include "gguf/model.h"

/* The key of the template without a name; others follow with a dot and a name. */
#define FS_TEMPLATE_KEY "tokenizer.chat_template"

/* Warn of each chat template that does not compile. */
void fs_check_templates(const struct gguf_model *model, struct gguf_report *report);
