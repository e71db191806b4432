/* Finds what a user's word for a model stands for: a file, a folder with a model, a name in a
 * store. */
#include "gguf/stores/store_parts.h"
#include "gguf/support/model_paths.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool gguf_folder_has(const struct gguf_folder *folder, const char *pattern)
{
    bool is_there = false;

    for (size_t i = 0; i < folder->n_entries && !is_there; i++)
        is_there = fnmatch(pattern, folder->entries[i].name, FNM_CASEFOLD) == 0;
    return is_there;
}

const char *gguf_recognize(const struct gguf_store_access *access, const char *path)
{
    struct gguf_folder folder = {0};
    const char *what = "is a directory without a GGUF file";

    if (access->list(access->argument, path, &folder) < 0)
        return what;
    if (gguf_folder_has(&folder, "blobs") && gguf_folder_has(&folder, "snapshots"))
        what = "is a model in the cache of Hugging Face; name it as hf:ORG/NAME:TAG";
    else if (gguf_folder_has(&folder, "models--*"))
        what = "is the cache of Hugging Face; name a model in it as hf:ORG/NAME:TAG";
    else if ((gguf_folder_has(&folder, "blobs") && gguf_folder_has(&folder, "manifests")) ||
             gguf_folder_has(&folder, "sha256[-:]*"))
        what = "is a store of Ollama; name a model in it as ollama:NAME:TAG";
    else if (gguf_folder_has(&folder, "*.safetensors") ||
             (gguf_folder_has(&folder, "config.json") &&
              gguf_folder_has(&folder, "pytorch_model*.bin")))
        what = "is a checkpoint in safetensors, not GGUF; convert it with llama.cpp's "
               "convert_hf_to_gguf.py";
    free(folder.entries);
    return what;
}

/* Find the only model, or else the only projector, in a folder, or else in it and below it. */
static int find_in_folder(const char *folder, enum gguf_folder_kind kind, bool partial,
                          struct gguf_listed_model *model, char reason[GGUF_LIST_REASON_BYTES])
{
    enum { REFUSED_FOLDER, PROJECTOR, MODEL } best = REFUSED_FOLDER;
    struct gguf_model_list list = {0};
    struct gguf_listed_model *found = NULL;
    size_t n_found = 0;
    char names[GGUF_LIST_REASON_BYTES / 3] = "";
    int result = gguf_list_folder(&gguf_direct_access, folder, kind, &list, reason);

    for (size_t i = 0; i < list.n_models && result == 0; i++) {
        struct gguf_listed_model *one = &list.models[i];
        const char *name = one->path + strlen(folder);
        const unsigned rank = one->error && one->file.inode == 0           ? REFUSED_FOLDER
                              : strcasestr(gguf_base_name(name), "mmproj") ? PROJECTOR
                                                                           : MODEL;

        if (rank < best || (one->is_partial && !partial))
            continue;
        if (rank > best)
            n_found = 0;
        if (n_found++ == 0)
            names[0] = '\0';
        best = rank;
        found = one;
        gguf_append_name(names, sizeof names, name + strspn(name, "/"), "");
    }
    if (kind == GGUF_FOLDER_ALONE && result == 0 && (best < MODEL || n_found > 1)) {
        gguf_model_list_free(&list);
        return find_in_folder(folder, GGUF_FOLDER, partial, model, reason);
    }
    if (result == 0 && !found)
        result =
            gguf_set_reason(reason, -EISDIR, "%s", gguf_recognize(&gguf_direct_access, folder));
    else if (result == 0 && n_found > 1 && best > REFUSED_FOLDER)
        result =
            gguf_set_reason(reason, -EISDIR, "has %zu models; name one of: %s", n_found, names);
    else if (result == 0 && found->error)
        result = gguf_set_reason(reason, -EINVAL, "%s: %s", found->name, found->error);
    if (result == 0) {
        *model = *found;
        *found = (struct gguf_listed_model){0};
    }
    gguf_model_list_free(&list);
    return result;
}

int gguf_find_model(const char *name, bool partial, struct gguf_listed_model *model,
                    char reason[GGUF_LIST_REASON_BYTES])
{
    char remedy[GGUF_REMEDY_BYTES], *longer;
    struct stat status;
    int result, error = stat(name, &status) == 0 ? 0 : errno;
    bool is_there;

    *model = (struct gguf_listed_model){0};
    if (error == 0 && S_ISDIR(status.st_mode))
        return find_in_folder(name, GGUF_FOLDER_ALONE, partial, model, reason);
    result = error != 0 ? gguf_store_find(name, partial, model, reason) : 1;
    if (result <= 0)
        return result;
    if (error == ENOENT) {
        if (gguf_remote_remedy(name, remedy))
            return gguf_set_reason(reason, -ENOENT,
                                   "no such file; ggufs opens local files only; %s", remedy);
        longer = gguf_text("%s.gguf", name);
        is_there = longer && access(longer, F_OK) == 0;
        free(longer);
        if (is_there)
            return gguf_set_reason(reason, -ENOENT, "no such file; did you mean %s.gguf?", name);
    }
    if (error == ENOTCONN)
        return gguf_set_reason(reason, -ENOTCONN,
                               "ggufs, which served this mount, has ended: remove the mount with "
                               "fusermount3 -u, and mount the model again");
    model->path = strdup(name); /* opening it says what is wrong */
    return model->path ? 0 : gguf_set_reason(reason, -ENOMEM, "%s", strerror(ENOMEM));
}
