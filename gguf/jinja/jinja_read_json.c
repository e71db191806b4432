/* JSON as values, as Python's json module has them: integers and floats apart. Bytes that are not
 * UTF-8 become U+FFFD. */
#include "gguf/jinja/jinja_run.h"
#include "gguf/support/json_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct value read_text(struct run *r, struct gguf_string string)
{
    struct text *text = jinja_text(r, "", 0);

    jinja_add_clean(r, text, string.data, string.length_bytes);
    return jinja_string(text);
}

static struct value read_number(struct run *r, const struct gguf_json *json)
{
    const char *digits = json->text.data;
    const size_t n = json->text.length_bytes;
    struct value value = jinja_float(json->number);

    if (n == 0 || memchr(digits, '.', n) || memchr(digits, 'e', n) || memchr(digits, 'E', n))
        return value;
    errno = 0;
    value = jinja_int(strtoll(digits, NULL, 10));
    return errno == ERANGE ? (struct value){.type = JINJA_BIG, .text = jinja_text(r, digits, n)}
                           : value;
}

static struct value read_value(struct run *r, const struct gguf_json *json)
{
    struct value value = jinja_none;

    jinja_enter(r, JINJA_MAX_DEPTH);
    jinja_charge(r, 1);
    if (json->kind == GGUF_JSON_FALSE || json->kind == GGUF_JSON_TRUE) {
        value = jinja_bool(json->kind == GGUF_JSON_TRUE);
    } else if (json->kind == GGUF_JSON_NUMBER) {
        value = read_number(r, json);
    } else if (json->kind == GGUF_JSON_STRING) {
        value = read_text(r, json->text);
    } else if (json->kind == GGUF_JSON_ARRAY) {
        value = jinja_list(jinja_new_list(r, 0));
        for (const struct gguf_json *item = json->child; item; item = item->next)
            jinja_push(r, value.list, read_value(r, item));
    } else if (json->kind == GGUF_JSON_OBJECT) {
        value = jinja_dict(jinja_new_dict(r));
        for (const struct gguf_json *item = json->child; item; item = item->next)
            jinja_set(r, value.dict, read_text(r, item->key), read_value(r, item));
    }
    r->depth--;
    return value;
}

struct value jinja_read_json(struct run *r, const char *what, const char *bytes, size_t n_bytes)
{
    char *text = jinja_alloc(r, n_bytes + 1);
    struct gguf_json *values;
    const char *rule;
    size_t offset;

    if (n_bytes)
        memcpy(text, bytes, n_bytes);
    values = jinja_alloc(r, gguf_json_room(text, n_bytes) * sizeof *values);
    rule = gguf_json_parse(text, n_bytes, JINJA_MAX_DEPTH, values, &offset);
    if (rule)
        jinja_fail(r, "%s: byte %zu: not JSON: %s", what, offset, rule);
    return read_value(r, values);
}
