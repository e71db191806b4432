#include "fs/terminal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sysexits.h>

int fs_exit_status(int code)
{
    switch (-code) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return EX_NOINPUT;
    case EACCES:
    case EPERM:
        return EX_NOPERM;
    case EIO:
        return EX_IOERR;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return EX_OSERR;
    default:
        return EX_DATAERR;
    }
}

void fs_print_path(FILE *stream, const char *path)
{
    for (; *path != '\0'; path++) {
        if ((unsigned char)*path < 0x20 || *path == 0x7f)
            fprintf(stream, "\\x%02x", *path);
        else
            fputc(*path, stream);
    }
}

void fs_print_finding(FILE *stream, const char *prefix, const char *path,
                      const struct gguf_finding *finding)
{
    fputs(prefix, stream);
    fs_print_path(stream, finding->path ? finding->path : path);
    fprintf(stream, ": %s", finding->severity == GGUF_NOTE ? "note: " : "");
    if (finding->file_offset != GGUF_NO_OFFSET)
        fprintf(stream, "byte %" PRIu64 ": ", finding->file_offset);
    fprintf(stream, "%s\n", finding->message);
}

/* Prints a word as a shell takes it back: plain if it can be, else in single quotes. */
static void print_word(FILE *stream, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";

    if (*word != '\0' && word[strspn(word, plain)] == '\0') {
        fputs(word, stream);
        return;
    }
    fputc('\'', stream);
    for (; *word != '\0'; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, stream);
    fputc('\'', stream);
}

void fs_complain(const char *path, const char *command, const char *format, ...)
{
    va_list args;

    fputs("ggufs: ", stderr);
    fs_print_path(stderr, path);
    fputs(": ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    if (command) {
        fprintf(stderr, ": %s ", command);
        print_word(stderr, path);
    }
    fputc('\n', stderr);
}
