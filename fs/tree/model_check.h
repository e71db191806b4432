/* Checks of an open model, beyond its parser. */
#pragma once

#include "gguf/model.h"

/*
 * Report as `ggufs --check` does: missing keys, chat templates that do not
 * compile, and what making the tree finds. Reads no tensor data.
 */
void fs_check_model(const struct gguf_model *model, struct gguf_report *report);
