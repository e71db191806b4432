#include "gguf/support/model_paths.h"

#include "gguf/support/shard_names.h"
#include "gguf/support/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- folders ---- */

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
        return "is a model in the cache of Hugging Face; name it as hf:ORG/NAME:TAG";
    if (find(folder, "models--*"))
        return "is the cache of Hugging Face; name a model in it as hf:ORG/NAME:TAG";
    if ((find(folder, "blobs") && find(folder, "manifests")) || find(folder, "sha256[-:]*"))
        return "is a store of Ollama; name a model in it as ollama:NAME:TAG";
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
    unsigned n_models = 0, n_others = 0;
    int found = 0, result = -EISDIR;

    *model = NULL;
    folder.n_entries = scandir(folder_path, &folder.entries, NULL, alphasort);
    if (folder.n_entries < 0) {
        result = -errno;
        snprintf(reason, GGUF_FOLDER_REASON_BYTES, "%s", strerror(errno));
        return result;
    }
    for (int i = 0; i < folder.n_entries; i++) {
        const bool is_projector = strcasestr(folder.entries[i]->d_name, "mmproj") != NULL;

        if (is_model(&folder, i)) {
            n_models++;
            n_others += !is_projector;
            found = is_projector && n_others > 0 ? found : i;
        }
    }
    if (n_models == 1 || n_others == 1) {
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

/* ---- names that are not local ---- */

/* Return true for "llama3.2:3b" or "library/llama3.2:3b": a name and a tag, as ollama has them. */
static bool is_name_with_tag(const char *path)
{
    const char *colon = strchr(path, ':');

    return colon && colon > path && colon[1] != '\0' && !strchr(colon, '/') && path[0] != '/' &&
           path[0] != '.';
}

/* "TheBloke/Llama-2-7B-GGUF": a repository of GGUF files as Hugging Face has them; or with ":Q8_0".
 */
static bool is_repository(const char *path)
{
    const char *slash = strchr(path, '/');
    const size_t length = strcspn(path, ":");

    return slash && slash > path && !strchr(slash + 1, '/') && path[0] != '.' && length > 5 &&
           strncasecmp(path + length - 5, "-gguf", 5) == 0;
}

/* Return what follows the address of Hugging Face in a path, or NULL. */
static const char *after_hub(const char *path)
{
    static const char *const hubs[] = {"hf.co/", "huggingface.co/", "hf://",
                                       "hf:",    "https://hf.co/",  "https://huggingface.co/"};

    for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++)
        if (gguf_text_starts_with(path, hubs[i]))
            return path + strlen(hubs[i]);
    if (is_repository(path))
        return path;
    return NULL;
}

/* Return true if a shell takes these bytes as they are. */
static bool is_plain(const char *text, size_t length)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";

    return length > 0 && text[0] != '-' && strspn(text, plain) >= length;
}

/* USER/REPOSITORY; /FILE, /resolve/REVISION/FILE or :QUANTIZATION after it; and ?PARAMETERS. */
static void advise_hub(const char *name, char remedy[GGUF_REMEDY_BYTES])
{
    const size_t user = strcspn(name, "/");
    const size_t length =
        user + (name[user] == '/') + strcspn(name + user + (name[user] == '/'), "/:?");
    const char *rest = name + length, *file = "FILE.gguf";
    size_t file_length = strlen(file), n;

    if (name[user] != '/' || !is_plain(name, length) || length > 120) {
        snprintf(remedy, GGUF_REMEDY_BYTES,
                 "download it first: hf download USER/REPOSITORY FILE.gguf --local-dir .");
        return;
    }
    if (rest[0] == ':' && is_plain(rest + 1, strlen(rest + 1)) && strlen(rest) < 60) {
        snprintf(remedy, GGUF_REMEDY_BYTES,
                 "download it first: hf download %.*s --include '*%s*.gguf' --local-dir .",
                 (int)length, name, rest + 1);
        return;
    }
    if (gguf_text_starts_with(rest, "/resolve/") || gguf_text_starts_with(rest, "/blob/")) {
        const char *revision = strchr(rest + 1, '/') + 1;

        rest = revision + strcspn(revision, "/");
    } else if (!strstr(rest, ".gguf")) {
        rest = ""; /* a page: "/tree/main" */
    }
    n = rest[0] == '/' ? strcspn(rest + 1, "?") : 0;
    if (is_plain(rest + 1, n) && n < 120) {
        file = rest + 1;
        file_length = n;
    }
    snprintf(remedy, GGUF_REMEDY_BYTES, "download it first: hf download %.*s %.*s --local-dir .",
             (int)length, name, (int)file_length, file);
}

/* A URL of another site, quoted for a shell, or without the URL if it cannot be quoted. */
static void advise_url(const char *url, char remedy[GGUF_REMEDY_BYTES])
{
    bool is_quotable = strlen(url) < GGUF_REMEDY_BYTES - 50;

    for (const char *c = url; *c != '\0'; c++)
        is_quotable &= *c > ' ' && *c < 0x7f && *c != '\'' && *c != '\\';
    snprintf(remedy, GGUF_REMEDY_BYTES, "download the file first%s%s%s",
             is_quotable ? ": curl -L -O '" : "", is_quotable ? url : "", is_quotable ? "'" : "");
}

bool gguf_remote_remedy(const char *path, char remedy[GGUF_REMEDY_BYTES])
{
    const char *name = *path != '\0' ? after_hub(path) : NULL;

    if (name)
        advise_hub(name, remedy);
    else if (is_name_with_tag(path))
        snprintf(remedy, GGUF_REMEDY_BYTES, "a model of ollama is named ollama:%s",
                 is_plain(path, strcspn(path, ":")) && strncasecmp(path, "ollama:", 7) != 0
                     ? path
                     : "NAME:TAG");
    else if (strstr(path, "://"))
        advise_url(path, remedy);
    else
        return false;
    return true;
}

char *gguf_absolute_path(const char *path)
{
    char *folder, *absolute;

    if (path[0] == '/')
        return strdup(path);
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    folder = getcwd(NULL, 0);
    if (!folder)
        return NULL;
    if (asprintf(&absolute, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path) < 0)
        absolute = NULL;
    free(folder);
    return absolute;
}
