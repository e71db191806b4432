/* Where stores are, and which of them a name begins with. */
#include "gguf/stores/store_parts.h"
#include "gguf/support/model_paths.h"

#include <stdlib.h>
#include <string.h>

#define HUB                                                                                        \
    "$HF_HUB_CACHE\n$HUGGINGFACE_HUB_CACHE\n$HF_HOME/hub\n"                                        \
    "$XDG_CACHE_HOME/huggingface/hub\n$HOME/.cache/huggingface/hub"

/* llama.cpp's cache before March 2026, and since. */
#define FLAT_CACHE                                                                                 \
    "ORG/NAME[:TAG]", "$LLAMA_CACHE\n$XDG_CACHE_HOME/llama.cpp\n$HOME/.cache/llama.cpp",           \
        .is_confined = true, .has_tags = true, .index = gguf_flat_index, .load = gguf_flat_load
#define HUB_CACHE                                                                                  \
    .form = "ORG/NAME[/FILE][@REVISION][:TAG]", .is_confined = true, .key = gguf_repository_key,   \
    .index = gguf_hub_index, .load = gguf_hub_load

const struct gguf_store_kind gguf_store_kinds[GGUF_STORE_KINDS] = {
    {"ollama:", "[HOST/][NAMESPACE/]MODEL[:TAG]",
     "$OLLAMA_MODELS\n$HOME/.ollama/models\n/usr/share/ollama/.ollama/models", "models",
     .has_tags = true, .blob_depth = 1, .key = gguf_ollama_key, .index = gguf_ollama_index,
     .load = gguf_image_load},
    {"hf:", FLAT_CACHE},
    {"hf:", .places = HUB, .inside = "hub", .blob_depth = 2, HUB_CACHE},
    {"llamacpp:", FLAT_CACHE},
    {"llamacpp:", .places = "$LLAMA_CACHE\n" HUB, HUB_CACHE},
    {"lmstudio:", "PUBLISHER/REPOSITORY[/FILE][:TAG]", .inside = "models",
     .roots = gguf_lm_studio_roots, .key = gguf_lm_studio_key, .index = gguf_lm_studio_index,
     .load = gguf_lm_studio_load},
    {"docker:", "[ORG/]NAME[:TAG]", "$MODELS_PATH\n$HOME/.docker/models", "models",
     .has_tags = true, .blob_depth = 1, .key = gguf_docker_key, .index = gguf_docker_index,
     .load = gguf_image_load},
    {"ramalama:", "TRANSPORT/ORG/NAME[:TAG]",
     "$XDG_DATA_HOME/ramalama/store\n$HOME/.local/share/ramalama/store\n/var/lib/ramalama/store",
     "store", .has_tags = true, .index = gguf_ramalama_index, .load = gguf_ramalama_load},
    {"oci:", "DIR[:REFERENCE]", .blob_depth = 1, .index = gguf_oci_index, .load = gguf_image_load}};

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
    char *roots = kind->roots ? kind->roots() : strdup(kind->places), *rest = roots, *root;
    bool is_last = false;

    while (!is_last && (root = strsep(&rest, "\n")) != NULL) {
        const size_t length = root[0] == '$' ? strcspn(root, "/") : 0;
        char *variable = strndup(root + (length > 0), length > 0 ? length - 1 : 0);
        const char *value = length > 0 ? getenv(variable) : "";

        if (length == 0 || (value && value[0] != '\0')) {
            add_place(places, kind, gguf_text("%s%s", value, root + length));
            is_last = length > 0 && strcmp(variable, "HOME") != 0;
        }
        free(variable);
    }
    free(roots);
}

static bool is_folder(const struct gguf_store_access *access, const char *path)
{
    struct gguf_folder folder = {0};
    const bool is_there = path && access->list(access->argument, path, &folder) == 0;

    free(folder.entries);
    return is_there;
}

/* Cut DIR[:NAME] after the longest DIR that is a folder; else at the first colon. */
static size_t folder_bytes(const struct gguf_store_access *access, const char *text)
{
    size_t length = strlen(text);

    while (length > 0) {
        char *folder = strndup(text, length);
        const bool is_there = is_folder(access, folder);
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
        is_name |= is_of_kind(name, &gguf_store_kinds[i]);
    return is_name;
}

bool gguf_store_find_places(const struct gguf_store_access *access, const char *name,
                            struct gguf_store_places *places)
{
    *places = (struct gguf_store_places){.n = 0};
    for (size_t i = 0; i < GGUF_STORE_KINDS; i++) {
        const struct gguf_store_kind *kind = &gguf_store_kinds[i];
        const char *rest = name + strlen(kind->prefix);

        if (!is_of_kind(name, kind))
            continue;
        places->prefix = kind->prefix;
        places->name = rest;
        if ((!kind->places && !kind->roots) || rest[0] == '/' ||
            gguf_text_starts_with(rest, "./") || gguf_text_starts_with(rest, "../")) {
            const size_t length = folder_bytes(access, rest);
            char *root = strndup(rest, length);
            char *absolute = root && length > 0 ? gguf_absolute_path(root) : NULL;
            char *inside =
                absolute && kind->inside ? gguf_text("%s/%s", absolute, kind->inside) : NULL;
            const bool is_inside = is_folder(access, inside);

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
