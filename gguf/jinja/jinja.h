/*
 * Chat templates: an interpreter of the Jinja language as transformers sets it up (jinja2 3.1,
 * sandboxed and immutable, trim_blocks, lstrip_blocks, loop controls, {% generation %},
 * raise_exception, strftime_now, tojson without HTML escapes), and what transformers does around a
 * template. It knows nothing of models and calls nothing of the host: a template sees its
 * variables, and the time that the caller gives.
 *
 * A template comes from a file that nobody has checked, so that each rendering is bounded by the
 * limits below, and fails with a message that names the limit. Integers are 64 bits wide; larger
 * ones are an error. A construct or filter that is not implemented is an error, never ignored.
 *
 * Provenance: each byte of the rendered text is known to come from the template or from a message,
 * through all operations on strings. A tokenizer may thus read control tokens in the former and
 * must not in the latter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* Limits of a template, and of a rendering. */
#define JINJA_MAX_TEMPLATE_BYTES (4u << 20)
#define JINJA_MAX_PARSE_DEPTH    150u      /* nested statements and expressions */
#define JINJA_MAX_DEPTH          700u      /* nested operations and calls, and levels of a value */
#define JINJA_MAX_STEPS          20000000u /* operations, and items or some bytes that they treat */
#define JINJA_MAX_MEMORY_BYTES   (256u << 20)
#define JINJA_MAX_OUTPUT_BYTES   (32u << 20)

struct jinja_error {
    /* UTF-8, cut after some 1,000 bytes; may hold control characters of the template. */
    char text[1024];
    unsigned line;    /* of the template, from 1; 0 if the error is not about a line */
    bool is_argument; /* the error is in an argument, not in the template */
};

struct jinja_template;

/*
 * Parse a template. Returns 0 and a template, which jinja_template_free() frees, or -EINVAL with an
 * error, or -ENOMEM (with an error as well). `text` is not used afterwards. Threads may share the
 * template.
 */
int jinja_template_parse(const char *text, size_t n_bytes, struct jinja_template **parsed,
                         struct jinja_error *error);
void jinja_template_free(struct jinja_template *parsed);

/* A variable of the template, or an object whose members are variables. */
struct jinja_argument {
    const char *name; /* NULL: the JSON is an object of variables */
    const char *json; /* any JSON value; not NUL-terminated */
    size_t json_bytes;
};

/* Bytes [start, end) of a rendered text. */
struct jinja_span {
    size_t start, end;
};

struct jinja_rendering {
    char *text; /* UTF-8, followed by a NUL; may hold NULs */
    size_t text_bytes;
    struct jinja_span *spans; /* message text, in order */
    size_t n_spans;
};

/* Flags of a rendering. */
enum {
    /* The text ends where the content of the last message ends (continue_final_message). */
    JINJA_CONTINUE = 1,
    /*
     * Arguments of tool calls that are JSON in a string, as in OpenAI's API, become objects. A few
     * templates want strings: if the rendering fails, they are tried next.
     */
    JINJA_OBJECT_ARGUMENTS = 2,
    /*
     * Message text are all strings of all variables but roles and those named NAME_token. A role
     * may only have letters, digits, "_", "-" and "."; `messages` must be a list.
     */
    JINJA_MARK_ALL = 4,
};

/*
 * Render a chat as transformers does. Variables that transformers always defines are added if they
 * are missing: `tools` and `documents` (none) and `add_generation_prompt` (false). Of two arguments
 * with the same name, the later counts, but `messages` are appended to earlier ones. Of `messages`,
 * keys with null are left out, and the text of reasoning is copied among its names. Message text
 * are, in `messages`, content (a string, the `text` of parts, all strings in an object), reasoning,
 * and the arguments of tool calls.
 *
 * Returns 0 and a rendering, which jinja_rendering_free() frees, or -EINVAL with an error, or
 * -ENOMEM. `now` is for strftime_now().
 */
int jinja_render_chat(const struct jinja_template *parsed, const struct jinja_argument *arguments,
                      size_t n_arguments, unsigned flags, const struct tm *now,
                      struct jinja_rendering *rendering, struct jinja_error *error);
void jinja_rendering_free(struct jinja_rendering *rendering);

/* A place in a template. */
struct jinja_place {
    unsigned line;
    char text[64]; /* NUL-terminated, cut */
};

/*
 * Find the first condition on words in the text of a message, as in {% if "deploy" in
 * message.content %}: with it, a template acts on what is said. Conditions on marks like
 * </think> and on the types of parts are common and not meant.
 */
bool jinja_find_word_condition(const struct jinja_template *parsed, struct jinja_place *place);
