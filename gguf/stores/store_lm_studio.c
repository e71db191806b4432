/* LM Studio's models: PUBLISHER/REPOSITORY/FILE. */
#include "gguf/stores/store_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Return the folders of models below LM Studio's homes: what "downloadsFolder" of the settings
 * names, or models/.
 */
char *gguf_lm_studio_roots(void)
{
    const struct gguf_store_search search = {.access = &gguf_direct_access};
    const char *user = getenv("HOME");
    char *pointer = gguf_store_text("%s/.lmstudio-home-pointer", user ? user : "");
    char *homes[] = {gguf_store_read(&search, pointer),
                     gguf_store_text("%s/.lmstudio", user ? user : ""),
                     gguf_store_text("%s/.cache/lm-studio", user ? user : "")};
    char *roots = strdup("");

    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        char *longer;
        const char *folder;
        cJSON *settings;

        if (!homes[i])
            continue;
        homes[i][strcspn(homes[i], "\r\n")] = '\0';
        settings = gguf_store_read_json(&search, gguf_store_text("%s/settings.json", homes[i]));
        folder = gguf_store_string(settings, "downloadsFolder");
        longer = folder[0] == '/' && access(folder, F_OK) == 0
                     ? gguf_store_text("%s%s\n", roots ? roots : "", folder)
                     : gguf_store_text("%s%s/models\n", roots ? roots : "", homes[i]);
        cJSON_Delete(settings);
        free(homes[i]);
        free(roots);
        roots = longer;
    }
    free(pointer);
    return roots;
}

/* A repository is a folder, or a link to one, in the folder of a publisher. */
static bool visit(struct gguf_store_search *search, const struct gguf_store_thing *thing)
{
    if (!strchr(thing->below, '/'))
        return true;
    if (thing->entry->is_folder || thing->entry->is_link)
        gguf_store_add(&search->index, strdup(thing->below), strdup(thing->path));
    return false;
}

int gguf_lm_studio_index(struct gguf_store_search *search)
{
    return gguf_store_walk(search, search->root, visit);
}

char *gguf_lm_studio_key(const char *name)
{
    char *key = strchr(name, '@') ? NULL : gguf_repository_key(name);

    if (key && key[0] != '\0' && !strchr(key, '/')) {
        free(key);
        return NULL;
    }
    return key;
}

int gguf_lm_studio_load(struct gguf_store_search *search, const struct gguf_listed_model *entry)
{
    return gguf_store_load_folder(search, entry->path, entry->name, NULL);
}
