/*
 * Writes all hostile files to a folder, and their expected results to expected.tsv there. Columns:
 * file, class, exit status of `ggufs --check`, number of errors, offset of the first error or "-",
 * then the words of the row.
 */
#include "tests/hostile/hostile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    /* No two rows may have the same file name. */
    file = fopen(path, "wxe");
    if (!file) {
        perror(path);
        exit(EX_CANTCREAT);
    }
    return file;
}

static void finish(FILE *file, const char *name)
{
    const int failed = ferror(file);

    if (fclose(file) != 0 || failed) {
        perror(name);
        exit(EX_IOERR);
    }
}

static void write_file(const char *folder, const char *name, const struct hostile_row *row)
{
    struct model_bytes bytes = row->build(row->argument);
    FILE *file = create(folder, name);

    fwrite(bytes.data, 1, bytes.size_bytes, file);
    if (fflush(file) != 0 ||
        ftruncate(fileno(file), (off_t)(bytes.size_bytes + bytes.hole_bytes)) != 0) {
        perror(name);
        exit(EX_IOERR);
    }
    finish(file, name);
    free(bytes.data);
}

static void write_line(FILE *file, const char *name, const struct hostile_row *row, size_t n_errors)
{
    fprintf(file, "%s\t%u\t%d\t%zu\t", name, row->class_number, row->code ? EX_DATAERR : EX_OK,
            n_errors);
    if (row->code && row->file_offset != GGUF_NO_OFFSET)
        fprintf(file, "%" PRIu64, row->file_offset);
    else
        fputc('-', file);
    for (size_t i = 0; i < COUNT(row->words) && row->words[i]; i++)
        fprintf(file, "\t%s", row->words[i]);
    fputc('\n', file);
}

int main(int argc, char **argv)
{
    const struct hostile_row *row;
    FILE *expected;
    size_t n_errors;

    if (argc != 2) {
        fprintf(stderr, "usage: make-hostile FOLDER\n");
        return EX_USAGE;
    }
    mkdir(argv[1], 0777);
    expected = create(argv[1], "expected.tsv");
    for (size_t i = 0; (row = hostile_row_at(i, &n_errors)); i++) {
        char name[HOSTILE_NAME_BYTES];

        hostile_file_name(row, name);
        write_file(argv[1], name, row);
        write_line(expected, name, row, n_errors);
    }
    finish(expected, "expected.tsv");
    return EX_OK;
}
