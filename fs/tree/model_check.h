/* Checks of an open model, beyond its parser. */
#pragma once

#include "gguf/model.h"

/*
 * Report as `ggufs --check` does: missing keys, faults of chat templates, and what making the tree
 * finds. Reads no tensor data.
 */
void fs_check_model(const struct gguf_model *model, struct gguf_report *report);

/*
 * Warn of chat templates that do not compile, read internals of Python, name websites, write tokens
 * twice or that the vocabulary lacks, or change earlier turns. A part of fs_check_model().
 */
void fs_check_templates(const struct gguf_model *model, struct gguf_report *report);
