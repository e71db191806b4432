#include "gguf/models/namings.h"

const struct gguf_rename *gguf_rename_at(const struct gguf_naming *naming, size_t index)
{
    for (size_t i = 0; i < GGUF_MAX_NAME_TABLES && naming->tables[i]; i++) {
        for (const struct gguf_rename *rename = naming->tables[i]; rename->name; rename++) {
            if (!rename->is_key && index-- == 0)
                return rename;
        }
    }
    return NULL;
}

size_t gguf_rename_count(const struct gguf_naming *naming)
{
    size_t n = 0;

    while (gguf_rename_at(naming, n))
        n++;
    return n;
}

const struct gguf_rename *gguf_rename_of(const struct gguf_naming *naming, struct gguf_string name,
                                         struct gguf_name_match *match, size_t *index)
{
    *index = 0;
    for (size_t i = 0; i < GGUF_MAX_NAME_TABLES && naming->tables[i]; i++) {
        for (const struct gguf_rename *rename = naming->tables[i]; rename->name; rename++) {
            if (rename->is_key)
                continue;
            if (gguf_tensor_name_matches(name, rename->name, match))
                return rename;
            ++*index;
        }
    }
    return NULL;
}
