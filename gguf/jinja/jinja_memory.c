/* Memory, limits and errors of a run. */
#include "gguf/jinja/jinja_values.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

#define CHUNK_BYTES 65536

struct chunk {
    struct chunk *next;
    size_t used, room;
    _Alignas(16) char bytes[];
};

void jinja_fail(struct run *run, const char *format, ...)
{
    struct jinja_error *error = run->error;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    /* The cut may have left a part of a character. */
    for (const uint8_t *bad; (bad = u8_check((uint8_t *)error->text, strlen(error->text)));)
        error->text[bad - (uint8_t *)error->text] = '\0';
    error->line = run->line;
    longjmp(run->failed, 1);
}

void *jinja_alloc(struct run *run, size_t n_bytes)
{
    struct chunk *chunk = run->chunks;
    void *bytes;

    if (n_bytes > JINJA_MAX_MEMORY_BYTES)
        jinja_fail(run, "text or list too long: it needs more than %u MiB of memory",
                   JINJA_MAX_MEMORY_BYTES >> 20);
    n_bytes = (n_bytes + 15) / 16 * 16;
    if (!chunk || chunk->room - chunk->used < n_bytes) {
        const size_t room = n_bytes > CHUNK_BYTES ? n_bytes : CHUNK_BYTES;

        if (room > JINJA_MAX_MEMORY_BYTES - run->memory_bytes)
            jinja_fail(run, "texts and lists need more than %u MiB of memory",
                       JINJA_MAX_MEMORY_BYTES >> 20);
        chunk = calloc(1, sizeof *chunk + room);
        if (!chunk)
            jinja_fail(run, "out of memory");
        run->memory_bytes += room;
        chunk->room = room;
        /* A large block must not hide the free part of the first chunk. */
        if (run->chunks && n_bytes > CHUNK_BYTES / 2) {
            chunk->next = run->chunks->next;
            run->chunks->next = chunk;
        } else {
            chunk->next = run->chunks;
            run->chunks = chunk;
        }
    }
    bytes = chunk->bytes + chunk->used;
    chunk->used += n_bytes;
    return bytes;
}

void jinja_free_chunks(struct chunk *chunks)
{
    while (chunks) {
        struct chunk *next = chunks->next;

        free(chunks);
        chunks = next;
    }
}

void jinja_charge(struct run *run, uint64_t n)
{
    run->steps += n;
    if (run->steps > JINJA_MAX_STEPS)
        jinja_fail(run, "more than %u steps", JINJA_MAX_STEPS);
}

void jinja_enter(struct run *run, unsigned limit)
{
    if (++run->depth > limit)
        jinja_fail(run, "nesting or recursion deeper than %u levels", limit);
}

void jinja_leave(struct run *run)
{
    run->depth--;
}
