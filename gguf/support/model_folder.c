#include "gguf/support/model_folder.h"

#include "gguf/support/shard_names.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Models that the message names. */
#define NAMES_SHOWN 8u

struct folder {
    struct dirent **entries; /* sorted by name */
    int n_entries;
};

/* Return the first entry that fits a pattern, in any case, or NULL. */
static const char *find(const struct folder *folder, const char *pattern)
{
    for (int i = 0; i < folder->n_entries; i++) {
        if (fnmatch(pattern, folder->entries[i]->d_name, FNM_PERIOD | FNM_CASEFOLD) == 0)
            return folder->entries[i]->d_name;
    }
    return NULL;
}

/* Return true if the entry is a model's first or only file. */
static bool is_model(const struct folder *folder, int i)
{
    const char *name = folder->entries[i]->d_name;

    return fnmatch("*.gguf", name, FNM_PERIOD | FNM_CASEFOLD) == 0 &&
           (i == 0 || !gguf_are_shards_of_one_model(folder->entries[i - 1]->d_name, name));
}

/* Return what a folder without GGUF files is, with the remedy. */
static const char *recognize(const struct folder *folder)
{
    if (find(folder, "blobs") && find(folder, "snapshots"))
        return "is a model in the cache of Hugging Face; name a file in its snapshots/*/";
    if (find(folder, "models--*"))
        return "is the cache of Hugging Face; name a file in models--*/snapshots/*/";
    if ((find(folder, "blobs") && find(folder, "manifests")) || find(folder, "sha256[-:]*"))
        return "is a store of Ollama; the FROM line of \"ollama show --modelfile NAME\" has the "
               "path of a model's file";
    if (find(folder, "config.json") &&
        (find(folder, "*.safetensors") || find(folder, "pytorch_model*.bin")))
        return "is a checkpoint, not a GGUF model; convert it with llama.cpp's "
               "convert_hf_to_gguf.py";
    return "is a directory without a GGUF file";
}

static void list(const struct folder *folder, unsigned n_models,
                 char reason[GGUF_FOLDER_REASON_BYTES])
{
    unsigned n_listed = 0;
    int length =
        snprintf(reason, GGUF_FOLDER_REASON_BYTES, "has %u models; name one of:", n_models);

    for (int i = 0; i < folder->n_entries && n_listed < NAMES_SHOWN; i++) {
        if (!is_model(folder, i) || length >= GGUF_FOLDER_REASON_BYTES)
            continue;
        length += snprintf(reason + length, (size_t)(GGUF_FOLDER_REASON_BYTES - length), "%s%s",
                           n_listed++ > 0 ? ", " : " ", folder->entries[i]->d_name);
    }
    if (n_listed < n_models && length < GGUF_FOLDER_REASON_BYTES)
        snprintf(reason + length, (size_t)(GGUF_FOLDER_REASON_BYTES - length), ", ...");
}

int gguf_model_folder_find(const char *folder_path, char **model,
                           char reason[GGUF_FOLDER_REASON_BYTES])
{
    struct folder folder = {0};
    const char *separator =
        strlen(folder_path) > 0 && folder_path[strlen(folder_path) - 1] == '/' ? "" : "/";
    unsigned n_models = 0;
    int found = 0, result = -EISDIR;

    *model = NULL;
    folder.n_entries = scandir(folder_path, &folder.entries, NULL, alphasort);
    if (folder.n_entries < 0) {
        result = -errno;
        snprintf(reason, GGUF_FOLDER_REASON_BYTES, "%s", strerror(errno));
        return result;
    }
    for (int i = 0; i < folder.n_entries; i++) {
        if (is_model(&folder, i)) {
            n_models++;
            found = i;
        }
    }
    if (n_models == 1) {
        result = asprintf(model, "%s%s%s", folder_path, separator, folder.entries[found]->d_name);
        result = result < 0 ? -ENOMEM : 0;
        snprintf(reason, GGUF_FOLDER_REASON_BYTES, "%s", strerror(-result));
    } else if (n_models > 1) {
        list(&folder, n_models, reason);
    } else {
        snprintf(reason, GGUF_FOLDER_REASON_BYTES, "%s", recognize(&folder));
    }
    for (int i = 0; i < folder.n_entries; i++)
        free(folder.entries[i]);
    free(folder.entries);
    return result;
}
