#include "fs/command/edit_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fs_edit_file_read(const char *path, struct gguf_edits *edits, struct gguf_report *report)
{
    const struct gguf_string name = {path, strlen(path)};
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room_bytes = 0;
    ssize_t length_bytes = -1;
    int result;

    if (!file)
        return gguf_error(report, -errno, GGUF_NO_OFFSET, "edits file %s: %s",
                          gguf_quote(name).text, strerror(errno));
    /* JSON holds no NUL, so this is all of it, or as much as shows that it is none. */
    errno = 0;
    length_bytes = getdelim(&text, &room_bytes, '\0', file);
    if (length_bytes < 0 && errno != 0)
        result = gguf_error(report, -errno, GGUF_NO_OFFSET, "edits file %s: %s",
                            gguf_quote(name).text, strerror(errno));
    else if (length_bytes < 0)
        result = gguf_error(report, -EINVAL, GGUF_NO_OFFSET, "edits file %s: it is empty",
                            gguf_quote(name).text);
    else
        result = gguf_edits_add_json(edits, text, (size_t)length_bytes, report);
    free(text);
    fclose(file);
    return result;
}
