/*
 * Renders chat templates: reads a JSON object per line and answers each with a line.
 *
 * A request has "template_text", "messages", "tools", "add_generation_prompt", "bos_token",
 * "eos_token" and "args" (an object), which are variables of the template,
 * "continue_final_message", and "now" as YYYY-MM-DDTHH:MM:SS. The answer is {"text", "spans"} or
 * {"error", "line"}.
 */
#include "gguf/jinja/jinja_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 100

/* A member of an object as it stands in a line. */
struct member {
    char name[64];
    const char *json, *end;
};

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Return the end of the string at `at`. */
static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        at += *at == '\\' && at[1];
    return at + (*at == '"');
}

/* Find the members of the object at `at`; returns their number. */
static size_t split_object(const char *at, struct member *members, size_t room)
{
    size_t n = 0;

    at = skip_space(at);
    while (*at == '{' || *at == ',') {
        const char *name = skip_space(at + 1);
        int depth = 0;

        if (*name != '"')
            break;
        at = skip_string(name);
        if (n == room) {
            fprintf(stderr, "render-templates: more than %zu members\n", room);
            exit(1);
        }
        snprintf(members[n].name, sizeof members[n].name, "%.*s", (int)(at - name - 2), name + 1);
        at = skip_space(at);
        members[n].json = at = skip_space(at + (*at == ':'));
        for (; *at && (depth > 0 || (*at != ',' && *at != '}')); at++) {
            depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
            if (*at == '"')
                at = skip_string(at) - 1;
        }
        members[n++].end = at;
    }
    return n;
}

static void print_json(const char *text, size_t n_bytes)
{
    putchar('"');
    for (size_t i = 0; i < n_bytes; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\')
            printf("\\u%04x", (unsigned)text[i]);
        else
            putchar(text[i]);
    }
    putchar('"');
}

static void print_error(const struct jinja_error *error)
{
    printf("{\"error\": ");
    print_json(error->text, strlen(error->text));
    printf(", \"line\": %u}\n", error->line);
}

/* Return the string in a JSON text, for the caller to free. */
static char *read_string(const char *json, const char *end, size_t *n_bytes)
{
    struct jinja_error error = {0};
    struct run run = {.error = &error};
    struct value value;
    char *copy;

    if (setjmp(run.failed)) {
        fprintf(stderr, "render-templates: %s\n", error.text);
        exit(1);
    }
    value = jinja_read_json(&run, "template_text", json, (size_t)(end - json));
    copy = malloc(value.text->n + 1);
    if (!copy)
        abort();
    memcpy(copy, value.text->bytes, value.text->n);
    *n_bytes = value.text->n;
    jinja_free_chunks(run.chunks);
    return copy;
}

static void answer(const char *line)
{
    static struct jinja_template *parsed;
    static struct jinja_error error;
    static char *last_text;
    static size_t last_bytes;
    struct member members[MAX_ARGUMENTS], more[MAX_ARGUMENTS];
    struct jinja_argument arguments[MAX_ARGUMENTS];
    const size_t n_members = split_object(line, members, MAX_ARGUMENTS / 2);
    size_t n = 0, n_bytes = 0;
    struct jinja_rendering rendering;
    bool continues = false;
    struct tm now = {0};
    char *text = NULL;

    for (size_t i = 0; i < n_members; i++) {
        const struct member *member = &members[i];
        size_t n_more = 0;

        if (strcmp(member->name, "template_text") == 0) {
            text = read_string(member->json, member->end, &n_bytes);
        } else if (strcmp(member->name, "continue_final_message") == 0) {
            continues = *member->json == 't';
        } else if (strcmp(member->name, "now") == 0) {
            if (!strptime(member->json + 1, "%Y-%m-%dT%H:%M:%S", &now))
                memset(&now, 0, sizeof now);
        } else if (strcmp(member->name, "args") == 0) {
            n_more = split_object(member->json, more, MAX_ARGUMENTS / 2);
        } else {
            arguments[n++] = (struct jinja_argument){member->name, member->json,
                                                     (size_t)(member->end - member->json)};
        }
        for (size_t j = 0; j < n_more; j++)
            arguments[n++] = (struct jinja_argument){more[j].name, more[j].json,
                                                     (size_t)(more[j].end - more[j].json)};
    }
    if (!last_text || n_bytes != last_bytes || memcmp(text, last_text, n_bytes) != 0) {
        jinja_template_free(parsed);
        jinja_template_parse(text, n_bytes, &parsed, &error);
    }
    free(last_text);
    last_text = text;
    last_bytes = n_bytes;
    if (!parsed) {
        print_error(&error);
        return;
    }
    if (jinja_render_chat(parsed, arguments, n, continues, &now, &rendering, &error) < 0) {
        print_error(&error);
        return;
    }
    printf("{\"text\": ");
    print_json(rendering.text, rendering.text_bytes);
    printf(", \"spans\": [");
    for (size_t i = 0; i < rendering.n_spans; i++)
        printf("%s[%zu,%zu]", i ? "," : "", rendering.spans[i].start, rendering.spans[i].end);
    printf("]}\n");
    jinja_rendering_free(&rendering);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, stdin) > 0) {
        answer(line);
        fflush(stdout);
    }
    free(line);
    return 0;
}
