/* Lists of models as text: models.tsv and models.json of a mount, and the output of commands. */
#pragma once

#include "fs/tree/output/sink.h"
#include "gguf/stores/model_list.h"

/* The columns of models.tsv, as ggufs(5) describes them. */
#define FS_MODELS_TSV_HEADER "name\tbytes\tstate\tmodified\tpath\tfiles\terror\n"

/* Write a line of models.tsv about a struct gguf_listed_model, or an object of JSON. */
void fs_models_tsv_line(const void *model, struct fs_sink *sink);
void fs_models_json_object(const struct gguf_listed_model *model, struct fs_sink *sink);
