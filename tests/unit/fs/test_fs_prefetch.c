/* fs/mount/prefetch: the messages of the parent for any state that the server reports. */
#include "fs/mount/prefetch.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two files of 100 bytes. */
static struct gguf_opened_file list[2] = {
    {.file = {.path = "/models/first", .size_bytes = 100, .descriptor = -1}},
    {.file = {.path = "/models/second", .size_bytes = 100, .descriptor = -1}},
};
static const struct gguf_files files = {.list = list, .count = 2};

static struct fs_prefetch prefetch;

/* Fork a server that reports this state and exits. */
static void run_server(uint64_t done_bytes, int result)
{
    const pid_t server = fork();

    if (server == 0) {
        prefetch.state->done_bytes = done_bytes;
        prefetch.state->result = result;
        prefetch.state->is_done = true;
        _exit(0);
    }
    cr_assert_gt(server, 0);
    cr_assert_eq(waitpid(server, NULL, 0), server);
}

/* Return what fs_prefetch_watch() prints for this state. The caller frees it. */
static char *watch(uint64_t done_bytes, int result)
{
    char *text = NULL;
    size_t length = 0;
    FILE *const saved = stderr;
    FILE *const stream = open_memstream(&text, &length);

    cr_assert_not_null(stream);
    fs_prefetch_prepare(&prefetch, &files);
    cr_assert_not_null(prefetch.state);
    prefetch.progress.is_shown = true; /* as on a terminal */
    run_server(done_bytes, result);
    stderr = stream;
    fs_prefetch_watch(&prefetch);
    stderr = saved;
    fclose(stream);
    fs_prefetch_end(&prefetch);
    return text;
}

static void expect(uint64_t done_bytes, int result, const char *words)
{
    char *text = watch(done_bytes, result);

    if (words)
        cr_expect_not_null(strstr(text, words), "%llu, %d: no \"%s\" in: %s",
                           (unsigned long long)done_bytes, result, words, text);
    else
        cr_expect_null(strstr(text, "ggufs:"), "%llu, %d: %s", (unsigned long long)done_bytes,
                       result, text);
    free(text);
}

Test(fs_prefetch, messages_name_file_and_byte)
{
    expect(200, 0, NULL);
    expect(50, -ECANCELED, NULL);
    expect(42, -EIO, "/models/first: byte 42: not read into memory: Input/output error");
    expect(100, -EIO, "/models/second: byte 0: not read into memory");
    expect(142, -EIO, "/models/second: byte 42: not read into memory");
}

Test(fs_prefetch, invalid_states_are_bounded)
{
    static const uint64_t places[] = {200, 201, 1u << 30, UINT64_MAX};
    static const int results[] = {-EIO, -1, -INT_MAX, INT_MIN};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (size_t j = 0; j < sizeof results / sizeof *results; j++)
            expect(places[i], results[j], "/models/first: not read into memory");
        expect(places[i], INT_MAX, NULL);
    }
}
