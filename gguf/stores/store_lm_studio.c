/* LM Studio's models: PUBLISHER/REPOSITORY/FILE. */
#include "gguf/stores/store_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Return the folders of models below LM Studio's homes: what "downloadsFolder" of the settings
 * names, or models/.
 */
static char *lm_studio_roots(void)
{
    const struct gguf_store_search search = {.access = &gguf_direct_access};
    const char *user = getenv("HOME");
    char *pointer = gguf_store_text("%s/.lmstudio-home-pointer", user ? user : "");
    char *homes[] = {gguf_store_read(&search, pointer),
                     gguf_store_text("%s/.lmstudio", user ? user : ""),
                     gguf_store_text("%s/.cache/lm-studio", user ? user : "")};
    char *roots = strdup("");

    for (size_t i = 0; i < sizeof homes / sizeof *homes && roots; i++) {
        char *path, *longer;
        const char *folder;
        cJSON *settings;

        if (!homes[i])
            continue;
        homes[i][strcspn(homes[i], "\r\n")] = '\0';
        path = gguf_store_text("%s/settings.json", homes[i]);
        settings = gguf_store_read_json(&search, path);
        folder = gguf_store_string(settings, "downloadsFolder");
        longer = folder[0] == '/' && access(folder, F_OK) == 0
                     ? gguf_store_text("%s%s\n", roots, folder)
                     : gguf_store_text("%s%s/models\n", roots, homes[i]);
        cJSON_Delete(settings);
        free(path);
        free(homes[i]);
        free(roots);
        roots = longer;
    }
    free(pointer);
    return roots;
}

static int lm_studio_index(struct gguf_store_search *search, struct gguf_model_list *index)
{
    struct gguf_folder publishers = {0};
    const int result = search->access->list(search->access->argument, search->root, &publishers);

    for (size_t i = 0; result == 0 && i < publishers.n_entries; i++) {
        const char *publisher = publishers.entries[i].name;
        char *path = gguf_store_text("%s/%s", search->root, publisher);
        const struct gguf_folder *folder = gguf_store_list_folder(search, path);

        for (size_t j = 0; j < folder->n_entries; j++)
            if (folder->entries[j].is_folder || folder->entries[j].is_link)
                gguf_store_add(index, gguf_store_text("%s/%s", publisher, folder->entries[j].name),
                               gguf_store_text("%s/%s", path, folder->entries[j].name));
        free(path);
    }
    gguf_folder_free(&publishers);
    return result;
}

static bool lm_studio_key(const char *name, char *out, size_t room)
{
    return gguf_store_repository_key(name, out, room) && (name[0] == '\0' || strchr(out, '/')) &&
           !strchr(name, '@');
}

static int lm_studio_load(struct gguf_store_search *search, const struct gguf_listed_model *entry,
                          const char *wanted)
{
    return gguf_store_load_folder(search, entry->path, entry->name, wanted, NULL);
}

const struct gguf_store_kind gguf_lm_studio_store = {
    .prefix = "lmstudio:",
    .form = "PUBLISHER/REPOSITORY[/FILE][:TAG]",
    .roots = lm_studio_roots,
    .inside = "models",
    .key = lm_studio_key,
    .index = lm_studio_index,
    .load = lm_studio_load,
};
