/*
 * Target: chat templates. The input is a template, and after the first byte 1 the JSON of its
 * messages; without it, the messages below.
 */
#include "gguf/jinja/jinja.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A character that stands in message text only. */
#define MARKER "\xe2\x98\x83"

static const char own_messages[] =
    "[{\"role\": \"system\", \"content\": \" " MARKER
    " \"}, {\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a" MARKER "\\n\"}]},"
    "{\"role\": \"assistant\", \"content\": \"" MARKER "<|x|>\", \"thinking\": \"" MARKER
    "b\", \"tool_calls\": [{\"function\": {\"name\": \"f\", "
    "\"arguments\": {\"x\": \"'" MARKER
    "\\\"\", \"n\": [1, 2.5, null, true]}}}]}, {\"role\": \"tool\", \"content\": \"" MARKER "\"}]";

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"a\": 1}}}]";

/* Check that all markers in the text are message text. */
static void check_markers(const struct jinja_rendering *rendering)
{
    const char *at = rendering->text, *end = at + rendering->text_bytes;
    size_t span = 0;

    while ((at = memmem(at, (size_t)(end - at), MARKER, strlen(MARKER)))) {
        const size_t offset = (size_t)(at - rendering->text);

        while (span < rendering->n_spans && rendering->spans[span].end <= offset)
            span++;
        FUZZ_CHECK(span < rendering->n_spans && rendering->spans[span].start <= offset,
                   "message text at byte %zu is not marked", offset);
        at += strlen(MARKER);
    }
}

static void check_rendering(const struct jinja_rendering *rendering)
{
    size_t done = 0;

    FUZZ_CHECK(fuzz_is_utf8(rendering->text, rendering->text_bytes), "the text is not UTF-8");
    for (size_t i = 0; i < rendering->n_spans; i++) {
        const struct jinja_span span = rendering->spans[i];

        FUZZ_CHECK(span.start >= done && span.start < span.end && span.end <= rendering->text_bytes,
                   "wrong span %zu", i);
        done = span.end;
    }
}

static void check_error(const struct jinja_error *error)
{
    FUZZ_CHECK(fuzz_is_utf8(error->text, strlen(error->text)), "the message is not UTF-8");
    FUZZ_CHECK(strlen(error->text) < sizeof error->text, "the message is too long");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *separator = size ? memchr(data, 1, size) : NULL;
    const size_t n_template = separator ? (size_t)(separator - data) : size;
    const struct jinja_argument arguments[] = {
        {"messages", separator ? (const char *)separator + 1 : own_messages,
         separator ? size - n_template - 1 : sizeof own_messages - 1},
        {"tools", tools, sizeof tools - 1},
        {"add_generation_prompt", "true", 4},
        {"bos_token", "\"<s>\"", 5},
    };
    const struct tm now = {.tm_year = 126, .tm_mday = 1};
    struct jinja_template *parsed;
    struct jinja_rendering rendering;
    struct jinja_error error;

    if (jinja_template_parse((const char *)data, n_template, &parsed, &error) < 0) {
        check_error(&error);
        return 0;
    }
    for (int continues = 0; continues < 2; continues++) {
        if (jinja_render_chat(parsed, arguments, 4, (unsigned)continues, &now, &rendering, &error) <
            0) {
            check_error(&error);
            continue;
        }
        check_rendering(&rendering);
        /* A template could write the marker itself, in UTF-8 or by an escape or a format. */
        if (!separator && !memchr(data, '\\', size) && !memmem(data, size, "%c", 2) &&
            !memmem(data, size, MARKER, strlen(MARKER)))
            check_markers(&rendering);
        jinja_rendering_free(&rendering);
    }
    jinja_template_free(parsed);
    return 0;
}
