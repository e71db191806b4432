/*
 * Target: names as file names. File names must be safe and unique, and unescaping one must give the
 * name back unless it was cut.
 *
 * The first byte of the input selects the suffix, the next two split the rest into two names.
 */
#include "fs/tree/core/names.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

#define CUT_BYTES (2 + 16) /* "%~" and the hash */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    FUZZ_CHECK(c >= 'A' && c <= 'F', "an escape has no hex digits");
    return c - 'A' + 10;
}

/* Return true if the file name marks a truncated name. */
static bool is_cut(const char *file_name, size_t length)
{
    return length >= CUT_BYTES && memcmp(file_name + length - CUT_BYTES, "%~", 2) == 0;
}

static void check_unescapes(struct gguf_string name, const char *file_name, size_t length)
{
    size_t n = 0;

    if (name.length_bytes == 0) {
        FUZZ_CHECK(length == 1 && file_name[0] == '%', "the file name of an empty name is not %%");
        return;
    }
    for (size_t i = 0; i < length; i++, n++) {
        int c = (unsigned char)file_name[i];

        if (c == '%') {
            FUZZ_CHECK(i + 2 < length, "the file name ends inside an escape");
            c = digit(file_name[i + 1]) * 16 + digit(file_name[i + 2]);
            i += 2;
        }
        FUZZ_CHECK(n < name.length_bytes && c == (unsigned char)name.data[n],
                   "byte %zu of the name is escaped wrongly", n);
    }
    FUZZ_CHECK(n == name.length_bytes, "the file name lacks the end of the name");
}

static void check_name(struct gguf_string name, const char *suffix, char *file_name)
{
    size_t length;

    memset(file_name, 'x', FS_NAME_BYTES);
    fs_name_escape(name, suffix, file_name);
    FUZZ_CHECK(memchr(file_name, '\0', FS_NAME_BYTES), "the file name has no NUL");
    fuzz_check_file_name(file_name);
    length = strlen(file_name) - strlen(suffix);
    FUZZ_CHECK(strcmp(file_name + length, suffix) == 0, "the file name lacks the suffix");
    if (is_cut(file_name, length))
        FUZZ_CHECK(name.length_bytes > (255 - strlen(suffix)) / 3, "a short name is cut");
    else
        check_unescapes(name, file_name, length);
    if (fuzz_is_utf8(name.data, name.length_bytes))
        FUZZ_CHECK(fuzz_is_utf8(file_name, length), "a UTF-8 character is cut");
}

static struct gguf_string copy_of(const void *bytes, size_t n_bytes)
{
    struct gguf_string copy = {n_bytes > 0 ? fuzz_alloc(n_bytes) : NULL, n_bytes};

    if (n_bytes > 0)
        memcpy((char *)(uintptr_t)copy.data, bytes, n_bytes);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char file_names[3][FS_NAME_BYTES];
    struct gguf_string names[3];
    const char *suffix;
    size_t first;

    if (size < 3)
        return 0;
    suffix = (const char *const[]){"", ".json", ".sixteen-letters"}[data[0] % 3];
    first = (data[1] | (size_t)data[2] << 8) % (size - 3 + 1);
    names[0] = copy_of(data + 3, first);
    names[1] = copy_of(data + 3 + first, size - 3 - first);
    check_name(names[0], suffix, file_names[0]);
    check_name(names[1], suffix, file_names[1]);
    /* The name most likely to collide: the escaped form of another one. */
    names[2] = copy_of(file_names[0], strlen(file_names[0]) - strlen(suffix));
    check_name(names[2], suffix, file_names[2]);

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < i; j++)
            FUZZ_CHECK((strcmp(file_names[i], file_names[j]) == 0) ==
                           (names[i].length_bytes == names[j].length_bytes &&
                            (names[i].length_bytes == 0 ||
                             memcmp(names[i].data, names[j].data, names[i].length_bytes) == 0)),
                       "names %d and %d have the file names %s and %s", i, j, file_names[i],
                       file_names[j]);
    }
    for (int i = 0; i < 3; i++)
        free((char *)(uintptr_t)names[i].data);
    return 0;
}
