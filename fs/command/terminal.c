#include "fs/command/terminal.h"

#include "gguf/support/safe_print.h"

#include <inttypes.h>

void fs_print_finding(FILE *stream, const char *prefix, const char *path,
                      const struct gguf_finding *finding)
{
    fputs(prefix, stream);
    gguf_print_safe_string(stream, finding->path ? finding->path : path);
    fprintf(stream, ": %s", finding->severity == GGUF_NOTE ? "note: " : "");
    if (finding->file_offset != GGUF_NO_OFFSET)
        fprintf(stream, "byte %" PRIu64 ": ", finding->file_offset);
    fprintf(stream, "%s\n", finding->message);
}
