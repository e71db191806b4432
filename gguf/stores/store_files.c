/* Stores of plain files: the cache of Hugging Face's hub, llama.cpp's, and LM Studio's. */
#include "gguf/stores/store_parts.h"
#include "gguf/support/model_paths.h"
#include "gguf/support/shard_names.h"
#include "gguf/support/strings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No repository has more files or deeper folders. */
enum { MAX_FILES = 20000, MAX_DEPTH = 6, MAX_NAME_BYTES = 300 };

/* A name, ORG/NAME[/FILE][@REVISION][:TAG], cut into its parts. Empty: not given. */
struct repository {
    char text[MAX_NAME_BYTES];
    const char *name, *file, *revision, *tag;
};

/* Return true unless the path has "..", a hidden name or a byte that names of files do not have. */
static bool is_safe(const char *path)
{
    bool is_start = true;

    for (const char *c = path; *c != '\0'; c++) {
        if ((!isalnum((unsigned char)*c) && !strchr("_-./+ ", *c)) ||
            (is_start && (*c == '.' || *c == '/')))
            return false;
        is_start = *c == '/';
    }
    return !is_start;
}

static bool split(const char *name, struct repository *parts)
{
    char *at, *colon, *slash;

    parts->file = parts->revision = parts->tag = "";
    if (strlen(name) >= sizeof parts->text)
        return false;
    parts->name = strcpy(parts->text, name);
    colon = strrchr(parts->text, ':');
    if (colon) {
        *colon = '\0';
        parts->tag = colon + 1;
    }
    at = strchr(parts->text, '@');
    if (at) {
        *at = '\0';
        parts->revision = at + 1;
    }
    slash = strchr(parts->text, '/');
    slash = slash ? strchr(slash + 1, '/') : NULL;
    if (slash) {
        *slash = '\0';
        parts->file = slash + 1;
    }
    return is_safe(parts->name) && (!slash || is_safe(parts->file)) &&
           (!at || is_safe(parts->revision)) && (!colon || is_safe(parts->tag));
}

static int refuse_form(const struct gguf_store_search *search, const char *form)
{
    return gguf_store_fail(search, -ENOENT, "is not a name of the form %s", form);
}

/* ---- the files of a folder ---- */

struct files {
    char **paths; /* below the folder, sorted */
    size_t n, room;
};

static bool add_file(struct files *files, const char *path)
{
    if (files->n == MAX_FILES)
        return false;
    if (files->n == files->room) {
        const size_t room = 2 * files->room + 64;
        char **grown = realloc(files->paths, room * sizeof *grown);

        if (!grown)
            return false;
        files->paths = grown;
        files->room = room;
    }
    files->paths[files->n] = strdup(path);
    files->n += files->paths[files->n] != NULL;
    return true;
}

/* Add all GGUF files below root/path. */
static void collect(struct files *files, const char *root, const char *path, int depth)
{
    struct dirent **entries;
    char *folder = gguf_store_path("%s/%s", root, path);
    const int n_entries = folder ? scandir(folder, &entries, NULL, alphasort) : -1;
    bool goes_on = true;

    for (int i = 0; i < n_entries; i++) {
        const char *name = entries[i]->d_name;
        const size_t length = strlen(name);
        char *below = gguf_store_path("%s%s%s", path, path[0] != '\0' ? "/" : "", name);

        if (goes_on && below && name[0] != '.') {
            if (entries[i]->d_type == DT_DIR && depth < MAX_DEPTH)
                collect(files, root, below, depth + 1);
            else if (length > 5 && strcasecmp(name + length - 5, ".gguf") == 0)
                goes_on = add_file(files, below);
        }
        free(below);
        free(entries[i]);
    }
    if (n_entries >= 0)
        free(entries);
    free(folder);
}

static void free_files(struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->paths[i]);
    free(files->paths);
}

/* Return true for a model's first or only file, and not a projector, a draft or a matrix. */
static bool is_model(const char *path)
{
    static const char *const others[] = {"mmproj",  "imatrix", "mtp-",
                                         "eagle3-", "dflash-", "dspark-"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    uint32_t shard, n_shards;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcasestr(name, others[i]))
            return false;
    return !gguf_read_shard_numbers(name, &shard, &n_shards) || shard == 1;
}

/* Return true if the path has the tag, followed by '.' or '-', as llama.cpp's -hf compares. */
static bool has_tag(const char *path, const char *tag)
{
    for (const char *at = path; (at = strcasestr(at, tag)) != NULL; at++)
        if (at[strlen(tag)] == '.' || at[strlen(tag)] == '-')
            return true;
    return false;
}

static const char *find_tag(const struct files *files, const char *tag)
{
    for (size_t i = 0; i < files->n; i++)
        if (is_model(files->paths[i]) && has_tag(files->paths[i], tag))
            return files->paths[i];
    return NULL;
}

/* Set the reason to a text and the names of the models. */
static int refuse_choice(const struct gguf_store_search *search, const struct files *files,
                         const char *text)
{
    char *list = NULL;
    size_t size;
    FILE *out = open_memstream(&list, &size);
    int result;

    for (size_t i = 0; out && i < files->n; i++)
        if (is_model(files->paths[i]))
            fprintf(out, "%s\n", files->paths[i]);
    if (out)
        fclose(out);
    result = gguf_store_list(search, -ENOENT, text, list);
    free(list);
    return result;
}

/* Choose the file of a repository in `folder`. Without a tag, `defaults` are tried in order. */
static int choose(const struct gguf_store_search *search, const char *folder,
                  const struct repository *parts, const char *const *defaults)
{
    struct files files = {0};
    const char *found = NULL, *first = NULL;
    size_t n_models = 0;
    int result = 0;

    collect(&files, folder, "", 0);
    for (size_t i = files.n; i-- > 0;) {
        if (is_model(files.paths[i])) {
            first = files.paths[i];
            n_models++;
        }
        if (strcmp(files.paths[i], parts->file) == 0) /* any file, also a projector or a shard */
            found = files.paths[i];
    }
    if (files.n == MAX_FILES) {
        free_files(&files);
        return gguf_store_fail(search, -E2BIG, "%s has %d files or more; name one by its path",
                               folder, MAX_FILES);
    }
    if (parts->file[0] == '\0' && parts->tag[0] != '\0')
        found = find_tag(&files, parts->tag);
    else if (parts->file[0] == '\0')
        for (found = NULL; defaults && *defaults && !found; defaults++)
            found = find_tag(&files, *defaults);
    if (!found && parts->file[0] == '\0' && parts->tag[0] == '\0' && (defaults || n_models == 1))
        found = first;
    if (found)
        *search->path = gguf_store_path("%s/%s", folder, found);
    else if (n_models == 0)
        result = gguf_store_fail(search, -ENOENT, "there is no GGUF file in %s", folder);
    else if (parts->tag[0] == '\0' && parts->file[0] == '\0')
        result = refuse_choice(search, &files, "has several models; add :TAG or /FILE: ");
    else
        result = refuse_choice(search, &files, "no file has this name or tag; there are: ");
    free_files(&files);
    if (result == 0 && !*search->path)
        result = gguf_store_fail(search, -ENOMEM, "%s", strerror(ENOMEM));
    return result;
}

/* ---- Hugging Face's hub: models--ORG--NAME/snapshots/COMMIT/FILE ---- */

static bool is_commit(const char *text)
{
    return strlen(text) == 40 && strspn(text, "0123456789abcdef") == 40;
}

/* Return the folder of a revision, or NULL. */
static char *find_snapshot(const char *repository, const char *revision)
{
    char *path = gguf_store_path("%s/refs/%s", repository, revision[0] ? revision : "main");
    char *commit = is_commit(revision) ? strdup(revision) : path ? gguf_store_read(path) : NULL;
    char *snapshot = NULL;

    if (!commit && revision[0] == '\0') { /* any other ref, as llama.cpp does */
        char *folder = gguf_store_path("%s/refs", repository);
        char *names = folder ? gguf_store_names(folder, NULL) : NULL;

        if (names && names[0] != '\0') {
            free(path);
            path = gguf_store_path("%s/%.*s", folder, (int)strcspn(names, "\n"), names);
            commit = path ? gguf_store_read(path) : NULL;
        }
        free(names);
        free(folder);
    }
    if (commit)
        commit[strcspn(commit, "\r\n ")] = '\0';
    if (commit && is_commit(commit))
        snapshot = gguf_store_path("%s/snapshots/%s", repository, commit);
    free(commit);
    free(path);
    return snapshot;
}

static int check_inside(const struct gguf_store_search *search, const char *root, const char *path)
{
    char *real_root = realpath(root, NULL), *real = realpath(path, NULL);
    const bool is_inside = real_root && real && gguf_text_starts_with(real, real_root) &&
                           real[strlen(real_root)] == '/';
    int result = 0;

    if (!real)
        result = gguf_store_fail(search, -ENOENT,
                                 "its file %s is missing, or its download has not finished", path);
    else if (!is_inside)
        result = gguf_store_fail(search, -EXDEV,
                                 "its file %s is a link to %s, out of the cache; name that file "
                                 "itself if you trust it",
                                 path, real);
    free(real_root);
    free(real);
    return result;
}

/* Check the links of a model's files: in a snapshot they lead to blobs of the cache. */
static int check_links(const struct gguf_store_search *search, const char *root)
{
    uint32_t number, count;
    int result = check_inside(search, root, *search->path);

    if (!gguf_read_shard_numbers(*search->path, &number, &count))
        return result;
    for (number = 1; result == 0 && number <= count; number++) {
        char *shard = gguf_shard_path(*search->path, number);

        if (!shard)
            return gguf_store_fail(search, -ENOMEM, "%s", strerror(ENOMEM));
        if (access(shard, F_OK) == 0)
            result = check_inside(search, root, shard);
        free(shard);
    }
    return result;
}

static bool is_partial(const char *name)
{
    return strstr(name, ".incomplete") || strstr(name, ".downloadInProgress");
}

static int refuse_repository(const struct gguf_store_search *search, const char *root,
                             const struct repository *parts)
{
    char name[MAX_NAME_BYTES + 8], remedy[GGUF_REMEDY_BYTES] = "";

    snprintf(name, sizeof name, "hf:%s%s%s", parts->name, parts->tag[0] != '\0' ? ":" : "",
             parts->tag);
    gguf_remote_remedy(name, remedy);
    return gguf_store_fail(search, -ENOENT, "is not in the cache %s; %s", root, remedy);
}

static int find_in_hub(const struct gguf_store_search *search, const char *root,
                       const struct repository *parts)
{
    static const char *const defaults[] = {"Q4_K_M", "Q8_0", NULL};
    const size_t user = strcspn(parts->name, "/");
    const bool has_user = parts->name[user] == '/';
    char *repository =
        gguf_store_path("%s/models--%.*s%s%s", root, (int)user, parts->name, has_user ? "--" : "",
                        has_user ? parts->name + user + 1 : "");
    char *snapshot = repository ? find_snapshot(repository, parts->revision) : NULL;
    char *blobs = gguf_store_path("%s/blobs", repository ? repository : "");
    char *partial = blobs ? gguf_store_names(blobs, is_partial) : NULL;
    const bool has_partial = partial && partial[0] != '\0';
    int result = snapshot ? choose(search, snapshot, parts, defaults) : -ENOENT;

    free(partial);
    free(blobs);
    if (result == 0)
        result = check_links(search, root);
    else if (has_partial)
        result = gguf_store_fail(search, -ENOENT,
                                 "its download into %s has not finished: run hf download again",
                                 repository);
    else if (repository && (!snapshot || access(snapshot, F_OK) < 0))
        result = refuse_repository(search, root, parts);
    free(snapshot);
    free(repository);
    return result;
}

/* ---- llama.cpp's cache before March 2026: ORG_NAME_FILE, and manifest=ORG=NAME=TAG.json ---- */

static int find_in_flat_cache(const struct gguf_store_search *search, const char *root,
                              const struct repository *parts)
{
    const size_t user = strcspn(parts->name, "/");
    char *path = gguf_store_path("%s/manifest=%.*s=%s=%s.json", root, (int)user, parts->name,
                                 parts->name + user + (parts->name[user] == '/'),
                                 parts->tag[0] != '\0' ? parts->tag : "latest");
    char *text = path ? gguf_store_read(path) : NULL;
    cJSON *manifest = text ? cJSON_Parse(text) : NULL;
    const char *file =
        gguf_store_string(cJSON_GetObjectItemCaseSensitive(manifest, "ggufFile"), "rfilename");
    int result = -ENOENT;

    if (file[0] != '\0') {
        char *found = gguf_store_path("%s_%s", parts->name, file);

        for (char *c = found; c && *c != '\0'; c++)
            if (*c == '/')
                *c = '_';
        *search->path = found ? gguf_store_path("%s/%s", root, found) : NULL;
        free(found);
        result = *search->path && access(*search->path, F_OK) == 0
                     ? 0
                     : gguf_store_fail(search, -ENOENT,
                                       "its file %s has not been downloaded "
                                       "completely",
                                       *search->path ? *search->path : "");
    }
    cJSON_Delete(manifest);
    free(text);
    free(path);
    return result;
}

static int find_cached(const struct gguf_store_search *search, const char *name,
                       const struct gguf_store_place *places)
{
    static const struct gguf_store_place flat[] = {{"LLAMA_CACHE", ""},
                                                   {"XDG_CACHE_HOME", "/llama.cpp"},
                                                   {"HOME", "/.cache/llama.cpp"},
                                                   {NULL, NULL}};
    struct repository parts;
    char *root, *old;
    int result;

    if (!split(name, &parts))
        return refuse_form(search, "ORG/NAME[/FILE][@REVISION][:TAG]");
    root = gguf_store_root(places);
    old = gguf_store_root(flat);
    result = gguf_store_fail(search, -ENOENT, "is in no cache: set HOME or HF_HOME");
    /* A manifest names the file of a tag. */
    if (old && parts.file[0] == '\0' && parts.revision[0] == '\0')
        result = find_in_flat_cache(search, old, &parts);
    if (result < 0 && root && *search->path == NULL)
        result = find_in_hub(search, root, &parts);
    free(old);
    free(root);
    return result;
}

#define HUB_PLACES                                                                                 \
    {"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", "/hub"},                      \
        {"XDG_CACHE_HOME", "/huggingface/hub"}, {"HOME", "/.cache/huggingface/hub"},               \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }

int gguf_hub_find(const struct gguf_store_search *search, const char *name)
{
    static const struct gguf_store_place places[] = {HUB_PLACES};

    return find_cached(search, name, places);
}

int gguf_llama_cache_find(const struct gguf_store_search *search, const char *name)
{
    static const struct gguf_store_place places[] = {{"LLAMA_CACHE", ""}, HUB_PLACES};

    return find_cached(search, name, places);
}

/* ---- LM Studio: PUBLISHER/REPOSITORY/FILE ---- */

/*
 * Return the folder of a repository below LM Studio's home: in "downloadsFolder" of its settings,
 * or in models/. NULL if it is in neither.
 */
static char *find_below(const char *home, const char *name)
{
    char *path = gguf_store_path("%s/settings.json", home);
    char *text = path ? gguf_store_read(path) : NULL;
    cJSON *settings = text ? cJSON_Parse(text) : NULL;
    char *folder = gguf_store_path("%s/%s", gguf_store_string(settings, "downloadsFolder"), name);

    if (folder && (folder[0] != '/' || access(folder, F_OK) < 0)) {
        free(folder);
        folder = gguf_store_path("%s/models/%s", home, name);
    }
    if (folder && access(folder, F_OK) < 0) {
        free(folder);
        folder = NULL;
    }
    cJSON_Delete(settings);
    free(text);
    free(path);
    return folder;
}

int gguf_lm_studio_find(const struct gguf_store_search *search, const char *name)
{
    static const struct gguf_store_place pointer[] = {{"HOME", "/.lmstudio-home-pointer"}, {0}};
    static const struct gguf_store_place today[] = {{"HOME", "/.lmstudio"}, {0}};
    static const struct gguf_store_place older[] = {{"HOME", "/.cache/lm-studio"}, {0}};
    struct repository parts;
    char *path, *folder = NULL;
    int result;

    if (!split(name, &parts) || !strchr(parts.name, '/') || parts.revision[0] != '\0')
        return refuse_form(search, "PUBLISHER/REPOSITORY[/FILE][:TAG]");
    path = gguf_store_root(pointer);
    for (int i = 0; i < 3 && !folder; i++) {
        char *home = i == 0   ? (path ? gguf_store_read(path) : NULL)
                     : i == 1 ? gguf_store_root(today)
                              : gguf_store_root(older);

        if (home) {
            home[strcspn(home, "\r\n")] = '\0';
            folder = find_below(home, parts.name);
        }
        free(home);
    }
    result = folder
                 ? choose(search, folder, &parts, NULL)
                 : gguf_store_fail(search, -ENOENT,
                                   "there is no such repository in LM Studio's ~/.lmstudio/models, "
                                   "nor where its settings keep models");
    free(folder);
    free(path);
    return result;
}
