#include "fs/models/list_texts.h"

#include "fs/tree/output/escaped_text.h"
#include "fs/tree/output/json.h"

#include <string.h>
#include <time.h>

static const char *state_of(const struct gguf_listed_model *model)
{
    return model->error ? "error" : model->is_partial ? "partial" : "complete";
}

/* Get the time in UTC. Returns NULL if it is not known. */
static const char *get_time(const struct gguf_listed_model *model, char text[32])
{
    struct tm parts;

    if (model->file.inode == 0 || !gmtime_r(&model->file.modified.tv_sec, &parts) ||
        strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        return NULL;
    return text;
}

static void write_column(struct fs_sink *sink, const char *text)
{
    if (text)
        fs_escaped_write(sink, text, strlen(text), true);
    fs_sink_literal(sink, "\t");
}

void fs_models_tsv_line(const void *subject, struct fs_sink *sink)
{
    const struct gguf_listed_model *model = subject;
    char time[32];

    write_column(sink, model->name);
    fs_sink_unsigned(sink, model->size_bytes);
    fs_sink_literal(sink, "\t");
    write_column(sink, state_of(model));
    write_column(sink, get_time(model, time));
    write_column(sink, model->path);
    for (size_t i = 0; i < model->n_extras; i++) {
        if (i > 0)
            fs_sink_literal(sink, " ");
        fs_escaped_write(sink, model->extras[i].name, strlen(model->extras[i].name), true);
    }
    fs_sink_literal(sink, "\t");
    if (model->error)
        fs_escaped_write(sink, model->error, strlen(model->error), true);
    fs_sink_literal(sink, "\n");
}

void fs_models_json_object(const struct gguf_listed_model *model, struct fs_sink *sink)
{
    char time[32];

    fs_json_begin(sink, "name", model->name);
    fs_json_count(sink, "bytes", model->size_bytes);
    fs_json_text_member(sink, "state", state_of(model));
    fs_json_text_member(sink, "modified", get_time(model, time));
    fs_json_text_member(sink, "path", model->path);
    fs_json_member(sink, "files", false);
    fs_sink_literal(sink, "[");
    for (size_t i = 0; i < model->n_extras; i++) {
        fs_sink_literal(sink, i > 0 ? ",{" : "{");
        fs_json_member(sink, "name", true);
        fs_json_text(sink, model->extras[i].name);
        fs_json_text_member(sink, "path", model->extras[i].path);
        fs_sink_literal(sink, "}");
    }
    fs_sink_literal(sink, "]");
    fs_json_text_member(sink, "error", model->error);
    fs_sink_literal(sink, "}");
}
