/* Where stores are, and which of them a name begins with. */
#include "gguf/stores/store_parts.h"
#include "gguf/support/model_paths.h"
#include "gguf/support/strings.h"

#include <stdlib.h>
#include <string.h>

/* Of two rows with one prefix, the first is asked first. */
const struct gguf_store_kind *const gguf_store_kinds[GGUF_STORE_KINDS] = {
    &gguf_ollama_store,     &gguf_flat_store,      &gguf_hub_store,
    &gguf_llama_flat_store, &gguf_llama_hub_store, &gguf_lm_studio_store,
    &gguf_docker_store,     &gguf_ramalama_store,  &gguf_oci_store};

void gguf_store_free_places(struct gguf_store_places *places)
{
    for (size_t i = 0; i < places->n; i++)
        free(places->list[i].root);
}

/* Add a place. Takes the path of its folder, which may be NULL. */
static void add_place(struct gguf_store_places *places, const struct gguf_store_kind *kind,
                      char *root)
{
    if (root && root[0] != '\0' && places->n < GGUF_STORE_MAX_PLACES)
        places->list[places->n++] = (struct gguf_store_spot){.kind = kind, .root = root};
    else
        free(root);
}

/* Add the usual places of a kind. A variable other than HOME that is set excludes the rest. */
static void add_usual_places(struct gguf_store_places *places, const struct gguf_store_kind *kind)
{
    char *roots = kind->roots ? kind->roots() : NULL, *rest = roots, *root;

    while ((root = gguf_store_next_name(&rest)) != NULL)
        add_place(places, kind, strdup(root));
    free(roots);
    for (const struct gguf_store_place *at = kind->places; at && at->end; at++) {
        const char *value = at->variable ? getenv(at->variable) : "";

        if (value && (value[0] != '\0' || !at->variable)) {
            add_place(places, kind, gguf_store_text("%s%s", value, at->end));
            if (at->variable && strcmp(at->variable, "HOME") != 0)
                break;
        }
    }
}

bool gguf_store_is_folder(const struct gguf_store_access *access, const char *path)
{
    struct gguf_folder folder = {0};
    const bool is_there = path && access->list(access->argument, path, &folder) == 0;

    gguf_folder_free(&folder);
    return is_there;
}

/* Cut DIR[:NAME] after the longest DIR that is a folder; else at the first colon. */
static size_t folder_bytes(const struct gguf_store_access *access, const char *text)
{
    size_t length = strlen(text);

    while (length > 0) {
        char *folder = strndup(text, length);
        const bool is_there = gguf_store_is_folder(access, folder);
        const char *colon = memrchr(text, ':', length);

        free(folder);
        if (is_there)
            return length;
        length = colon ? (size_t)(colon - text) : 0;
    }
    return strcspn(text, ":");
}

static bool is_of_kind(const char *name, const struct gguf_store_kind *kind)
{
    return gguf_text_starts_with(name, kind->prefix) &&
           !gguf_text_starts_with(name + strlen(kind->prefix), "//"); /* a URL */
}

bool gguf_store_is_name(const char *name)
{
    bool is_name = false;

    for (size_t i = 0; i < GGUF_STORE_KINDS; i++)
        is_name |= is_of_kind(name, gguf_store_kinds[i]);
    return is_name;
}

/* Find the places of a name. Returns false if it does not begin with the name of a store. */
bool gguf_store_find_places(const struct gguf_store_access *access, const char *name,
                            struct gguf_store_places *places)
{
    *places = (struct gguf_store_places){.n = 0};
    for (size_t i = 0; i < GGUF_STORE_KINDS; i++) {
        const struct gguf_store_kind *kind = gguf_store_kinds[i];
        const char *rest = name + strlen(kind->prefix);

        if (!is_of_kind(name, kind))
            continue;
        places->prefix = kind->prefix;
        places->name = rest;
        if (kind->needs_path || rest[0] == '/' || gguf_text_starts_with(rest, "./") ||
            gguf_text_starts_with(rest, "../")) {
            const size_t length = folder_bytes(access, rest);
            char *root = strndup(rest, length);
            char *absolute = root && length > 0 ? gguf_absolute_path(root) : NULL;
            char *inside = gguf_store_text("%s/%s", absolute ? absolute : "",
                                           kind->inside ? kind->inside : "");
            const bool is_inside = kind->inside && gguf_store_is_folder(access, inside);

            add_place(places, kind, is_inside ? inside : absolute);
            free(is_inside ? absolute : inside);
            free(root);
            places->name = rest + length + (rest[length] == ':');
        } else {
            add_usual_places(places, kind);
        }
    }
    return places->prefix != NULL;
}

char *gguf_store_roots(const char *name)
{
    struct gguf_store_places places;
    char *roots = gguf_store_find_places(&gguf_direct_access, name, &places) ? strdup("") : NULL;

    for (size_t i = 0; i < places.n && roots; i++) {
        char *longer = gguf_store_text("%s%s\n", roots, places.list[i].root);

        free(roots);
        roots = longer;
    }
    gguf_store_free_places(&places);
    return roots;
}
