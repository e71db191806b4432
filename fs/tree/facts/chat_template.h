/*
 * Chat templates, as the file has them: tokenizer.chat_template, and tokenizer.chat_template.NAME
 * for special uses, for example tool calls.
 */
#pragma once

#include "fs/tree/core/text.h"

#include <stdbool.h>

/* The key of the template without a name; others follow with a dot and a name. */
#define FS_TEMPLATE_KEY "tokenizer.chat_template"

/* Return true if the model has a template without a name. */
bool fs_chat_template_applies(const struct fs_tree *tree, const void *subject);

/* Return true if the subject, a key, is a template with a name. */
bool fs_named_template_applies(const struct fs_tree *tree, const void *subject);

/* Return NAME of a key tokenizer.chat_template.NAME, the empty string for any other key. */
struct gguf_string fs_chat_template_name(const void *key);

/* Write the template of the key `subject`; NULL: the template without a name. */
fs_text_writer fs_chat_template_write;
