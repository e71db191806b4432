#include "fs/command/templates.h"

#include "fs/tree/facts/chat_template.h"
#include "gguf/jinja/jinja.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <stdlib.h>

static void check_template(const struct gguf_key *key, struct gguf_report *report)
{
    const struct gguf_string text = key->value.string;
    struct jinja_template *parsed;
    struct jinja_error error;
    const int code = jinja_template_parse(text.data, text.length_bytes, &parsed, &error);
    char *message = code < 0 ? gguf_escaped(error.text) : NULL;

    if (code == 0)
        jinja_template_free(parsed);
    else if (code == -ENOMEM || !message)
        gguf_system_error(report, -ENOMEM, gguf_key_place(key));
    else
        gguf_warning(report, GGUF_RULE_CHAT_TEMPLATE, gguf_key_place(key), "line %u: %s",
                     error.line, message);
    free(message);
}

void fs_check_templates(const struct gguf_model *model, struct gguf_report *report)
{
    for (uint64_t i = 0; i < model->n_keys; i++) {
        const struct gguf_key *key = &model->keys[i];

        if (key->value.type == GGUF_STRING && (gguf_string_equals(key->name, FS_TEMPLATE_KEY) ||
                                               fs_chat_template_name(key).length_bytes > 0))
            check_template(key, report);
    }
}
