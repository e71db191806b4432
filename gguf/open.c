#include "gguf/files.h"
#include "gguf/legacy/join_parts.h"
#include "gguf/locate.h"
#include "gguf/model.h"
#include "gguf/parse_file.h"
#include "gguf/shards.h"
#include "gguf/translate/translate.h"
#include "gguf/validate.h"

int gguf_parse_files(struct gguf_files *files, const struct gguf_open_options *options,
                     struct gguf_model **model, struct gguf_report *report)
{
    static const struct gguf_open_options none;
    struct gguf_model *made;
    int result;

    *model = NULL;
    if (!options)
        options = &none;
    result = gguf_parse_file(&files->list[files->named].file, options, &made, report);
    if (result == 0)
        result = gguf_shards_join(&made, files, options, report);
    if (result == 0)
        result = gguf_parts_join(&made, files, options, report);
    if (result == 0)
        result = gguf_finish_model(made, options, report);
    if (result == 0)
        result = gguf_take_part(options->part, &made, report);
    if (result < 0) {
        gguf_note_range(options, report);
        gguf_close(made);
    } else {
        *model = made;
    }
    return result;
}

int gguf_open_with(const char *path, const struct gguf_open_options *options,
                   struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_files files;
    int result = gguf_files_open(path, options, &files, report);

    *model = NULL;
    if (result < 0)
        return result;
    result = gguf_parse_files(&files, options, model, report);
    gguf_files_close(&files);
    return result;
}

int gguf_open(const char *path, struct gguf_model **model, struct gguf_report *report)
{
    return gguf_open_with(path, NULL, model, report);
}
