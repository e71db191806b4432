#include "gguf/support/template_options.h"

#include <string.h>

const char *gguf_template_options_given(const struct gguf_template_options *options,
                                        const char *otherwise)
{
    static const char *const names[] = {NULL,
                                        "--messages",
                                        "--tools",
                                        "--messages or --tools",
                                        "--template-arg",
                                        "--messages or --template-arg",
                                        "--tools or --template-arg",
                                        "--messages, --tools or --template-arg"};
    const unsigned given = (options->messages ? 1u : 0u) | (options->tools ? 2u : 0u) |
                           (options->arguments.n_texts > 0 ? 4u : 0u);

    return given > 0 ? names[given] : otherwise;
}

const char *gguf_messages_variable(const char *json)
{
    return json[strspn(json, " \t\r\n")] == '{' ? NULL : "messages";
}

const char *gguf_template_argument(const struct gguf_template_options *options, size_t index,
                                   const char **json)
{
    char *name = (char *)options->arguments.texts[index], *end = strchr(name, '=');

    *end = '\0';
    *json = end + 1;
    return name;
}
