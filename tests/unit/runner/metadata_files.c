#include "tests/unit/runner/metadata_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 256

static void remove_files(int root)
{
    const int fd = openat(root, "metadata", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (directory && (entry = readdir(directory)))
        unlinkat(fd, entry->d_name, 0);
    if (directory)
        closedir(directory);
    unlinkat(root, "metadata", AT_REMOVEDIR);
    unlinkat(root, "metadata.json", 0);
}

/* Return a pointer past the string whose opening quote is at `at`. */
static const char *end_of_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

/* Return a pointer to the comma or brace that ends the value. */
static const char *end_of_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        if (*at == '"') {
            at = end_of_string(at, end);
            continue;
        }
        if (depth == 0 && (*at == ',' || *at == '}'))
            return at;
        depth += *at == '[' || *at == '{';
        depth -= depth > 0 && (*at == ']' || *at == '}');
        at++;
    }
    return end;
}

static int write_value(int directory, const char *name, const char *value, size_t length)
{
    const int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n;

    if (fd < 0)
        return errno == EEXIST || errno == ENAMETOOLONG ? 0 : -errno;
    n = write(fd, value, length);
    close(fd);
    return n == (ssize_t)length ? 0 : -EIO;
}

/* Escape the key as fs/ does. Returns false if it makes no valid file name. */
static bool name_file(const char *key, size_t length, char name[NAME_BYTES])
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)key[i];
        const bool is_unsafe = c < 0x20 || c == 0x7f || c == '/' || c == '%';

        if (used + 3 + strlen(".json") >= NAME_BYTES)
            return false;
        used += (size_t)sprintf(name + used, is_unsafe ? "%%%02X" : "%c", c);
    }
    memcpy(name + used, ".json", sizeof ".json");
    return true;
}

/* Copy a file of the directory to metadata.json as a member. */
static void join_one(int directory, const char *name, bool is_first, FILE *joined)
{
    FILE *file = fdopen(openat(directory, name, O_RDONLY | O_CLOEXEC), "r");
    int c;

    fprintf(joined, "%s\"%.*s\": ", is_first ? "{\n" : ",\n", (int)(strlen(name) - strlen(".json")),
            name);
    while (file && (c = getc(file)) != EOF)
        if (c != '\n')
            putc(c, joined);
    if (file)
        fclose(file);
}

/* Write metadata.json from the files in metadata/. */
static void join_files(int root)
{
    const int fd = openat(root, "metadata", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool is_first = true;
    FILE *joined;

    if (!directory)
        return;
    joined =
        fdopen(openat(root, "metadata.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), "w");
    while (joined && (entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        join_one(fd, entry->d_name, is_first, joined);
        is_first = false;
    }
    closedir(directory);
    if (joined) {
        fputs(is_first ? "{\n}\n" : "\n}\n", joined);
        fclose(joined);
    }
}

int metadata_files_write(int root, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    int directory, code = 0;

    remove_files(root);
    if (mkdirat(root, "metadata", 0700) < 0)
        return -errno;
    directory = openat(root, "metadata", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    while (code == 0 && (at = memchr(at, '"', (size_t)(end - at)))) {
        const char *key = at + 1, *key_end = end_of_string(at, end), *value;
        char name[NAME_BYTES];

        value = memchr(key_end, ':', (size_t)(end - key_end));
        if (!value)
            break;
        at = end_of_value(++value, end);
        if (name_file(key, (size_t)(key_end - 1 - key), name))
            code = write_value(directory, name, value, (size_t)(at - value));
    }
    close(directory);
    join_files(root);
    return code;
}

void metadata_file_write(int root, const char *text, size_t length)
{
    const char *at = text, *end = text + length, *between = "\n";
    const int fd = openat(root, "metadata.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *file = fdopen(fd, "w");

    if (!file)
        return;
    fputc('{', file);
    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        const char *key_end = end_of_string(at, end);
        const char *value = memchr(key_end, ':', (size_t)(end - key_end));
        const char *value_end = value ? end_of_value(value + 1, end) : end;

        if (!value)
            break;
        fprintf(file, "%s%.*s: ", between, (int)(key_end - at), at);
        fwrite(value + 1, 1, (size_t)(value_end - value - 1), file);
        between = ",\n";
        at = value_end;
    }
    fputs("\n}\n", file);
    fclose(file);
}

int run_tree_open(const char *path, struct run_tree *tree, struct run_failure *failure)
{
    int code;

    *tree = (struct run_tree){.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (tree->fd < 0)
        return run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    join_files(tree->fd);
    code = run_metadata_open(tree->fd, &tree->metadata, failure);
    if (code == 0)
        code = run_weights_open(tree->fd, false, &tree->weights, failure);
    if (code < 0)
        run_tree_close(tree);
    return code;
}
