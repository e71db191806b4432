/* Repositories: folders with files of models. The cache of Hugging Face's hub, and llama.cpp's. */
#include "gguf/stores/store_parts.h"
#include "gguf/support/model_paths.h"
#include "gguf/support/shard_names.h"
#include "gguf/support/strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* No repository has more. */
enum { MAX_FILES = 5000, MAX_FOLDERS = 2000, MAX_DEPTH = 6, MAX_NAME_BYTES = 300 };

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

char *gguf_repository_key(const char *name)
{
    struct repository parts;

    return name[0] == '\0' || split(name, &parts) ? strdup(name[0] == '\0' ? name : parts.name)
                                                  : NULL;
}

/* ---- the files of a folder ---- */

struct files {
    struct gguf_store_search *search;
    struct gguf_listed_model all; /* as extras: the paths below the folder, as names */
    struct gguf_listed_file *list;
    size_t n, n_folders;
    bool has_checkpoint; /* a safetensors file */
};

static bool has_ending(const char *name, const char *ending)
{
    const size_t length = strlen(name), n = strlen(ending);

    return length > n && strcasecmp(name + length - n, ending) == 0;
}

/* Collect all GGUF files. */
static bool visit_file(struct gguf_store_search *search, const struct gguf_store_thing *thing)
{
    struct files *files = search->user;
    const bool is_folder = thing->entry->is_folder;

    files->has_checkpoint |= has_ending(thing->below, ".safetensors");
    if (!is_folder && has_ending(thing->below, ".gguf") && files->n < MAX_FILES &&
        gguf_listed_model_add(&files->all, thing->below, thing->path) == 0) {
        files->list = files->all.extras;
        files->n = files->all.n_extras;
    }
    return is_folder && files->n_folders++ < MAX_FOLDERS;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Return true for a model's first or only file, and not a projector, a draft or a matrix. */
static bool is_model(const char *path)
{
    static const char *const others[] = {"mmproj",  "imatrix", "mtp-",
                                         "eagle3-", "dflash-", "dspark-"};
    const char *name = base_name(path);
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

static const struct gguf_listed_file *find_tag(const struct files *files, const char *tag)
{
    for (size_t i = 0; i < files->n; i++)
        if (is_model(files->list[i].name) && has_tag(files->list[i].name, tag))
            return &files->list[i];
    return NULL;
}

/* Return the bits of a type in a name: 8 for "-Q8_0", 16 for "-BF16"; 0 if there is none. */
static int bits_of(const char *name)
{
    int bits = 0;

    for (const char *c = name; *c != '\0'; c++)
        if (strchr("QqFf", *c) && isdigit((unsigned char)c[1]))
            bits = atoi(c + 1);
    return bits;
}

/*
 * Return the projector of a model, as llama.cpp's -hf chooses it: in the deepest folder that
 * encloses the model's, and there with the closest number of bits. NULL if there is none.
 */
static const struct gguf_listed_file *find_projector(const struct files *files, const char *model)
{
    const struct gguf_listed_file *best = NULL;
    size_t best_depth = 0;
    int best_distance = 0;

    for (size_t i = 0; i < files->n; i++) {
        const char *path = files->list[i].name;
        const size_t depth = (size_t)(base_name(path) - path);
        const int distance = abs(bits_of(base_name(path)) - bits_of(base_name(model)));

        if (strcasestr(path, "mmproj") && strncmp(path, model, depth) == 0 &&
            (!best || depth > best_depth || (depth == best_depth && distance < best_distance))) {
            best = &files->list[i];
            best_depth = depth;
            best_distance = distance;
        }
    }
    return best;
}

/* Add a file of a repository as a model. */
static int add_file(const struct files *files, const struct gguf_listed_file *file,
                    const char *repository)
{
    const struct gguf_listed_file *projector =
        is_model(file->name) ? find_projector(files, file->name) : NULL;
    struct gguf_listed_model *model = gguf_store_add(
        files->search->found,
        gguf_store_text("%s/%.*s", repository, (int)gguf_stem_bytes(file->name), file->name),
        strdup(file->path));

    uint32_t number, count;

    if (!model)
        return -ENOMEM;
    gguf_store_check_file(files->search, model, &model->path);
    for (size_t i = 0; i < files->n && gguf_read_shard_numbers(file->name, &number, &count); i++)
        if (gguf_are_shards_of_one_model(files->list[i].name, file->name) &&
            &files->list[i] != file)
            gguf_store_check_file(files->search, model, &files->list[i].path);
    return projector ? gguf_store_add_extra(model, "mmproj.gguf", strdup(projector->path)) : 0;
}

/* Return the file that the user named, with or without ".gguf": a projector or a shard too. */
static const struct gguf_listed_file *find_file(const struct files *files, const char *name)
{
    const struct gguf_listed_file *found = NULL;

    for (size_t i = files->n; i-- > 0;) {
        const char *path = files->list[i].name;

        if (strcmp(path, name) == 0)
            return &files->list[i];
        if (strncmp(path, name, strlen(name)) == 0 && strlen(name) == gguf_stem_bytes(path))
            found = &files->list[i];
    }
    return found;
}

/* Choose the file of a repository. Without a tag, `defaults` are tried in order. */
static const struct gguf_listed_file *choose(const struct files *files,
                                             const struct repository *parts,
                                             const char *const *defaults)
{
    const struct gguf_listed_file *found = NULL, *first = NULL;
    size_t n_models = 0;

    if (parts->file[0] != '\0')
        return find_file(files, parts->file);
    if (parts->tag[0] != '\0')
        return find_tag(files, parts->tag);
    for (; defaults && *defaults && !found; defaults++)
        found = find_tag(files, *defaults);
    for (size_t i = files->n; i-- > 0;) {
        if (is_model(files->list[i].name)) {
            first = &files->list[i];
            n_models++;
        }
    }
    return !found && (defaults || n_models == 1) ? first : found;
}

/* Say which files a repository has. */
static void refuse_choice(struct gguf_listed_model *model, const struct files *files,
                          const struct repository *parts)
{
    const bool is_named = parts && (parts->tag[0] != '\0' || parts->file[0] != '\0');
    char list[GGUF_STORE_REASON_BYTES - 200] = "";
    size_t length = 0;

    for (size_t i = 0; i < files->n && length < sizeof list; i++)
        if (is_model(files->list[i].name))
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
                                       length > 0 ? ", " : "", files->list[i].name);
    if (length > 0)
        gguf_store_refuse(model, "%s%s%s",
                          is_named ? "no file has this name or tag; there are: "
                                   : "has several models; add :TAG or /FILE: ",
                          list, length >= sizeof list ? "..." : "");
    else if (files->has_checkpoint)
        gguf_store_refuse(model, "is a checkpoint in safetensors, not GGUF; convert it with "
                                 "llama.cpp's convert_hf_to_gguf.py");
    else
        gguf_store_refuse(model, "has no GGUF file");
}

int gguf_store_load_folder(struct gguf_store_search *search, const char *folder,
                           const char *repository, const char *const *defaults)
{
    struct files files = {.search = search};
    const struct gguf_listed_file *found = NULL;
    struct repository parts;
    const bool has_parts = search->wanted && split(search->wanted, &parts);
    size_t n_added = 0;
    int result = 0;

    search->user = &files;
    gguf_store_walk(search, folder, visit_file);
    if (files.n == MAX_FILES || files.n_folders > MAX_FOLDERS) {
        gguf_store_refuse(gguf_store_add(search->found, strdup(repository), strdup(folder)),
                          "%s has %d files or more; name one by its path", folder, MAX_FILES);
        gguf_listed_model_free(&files.all);
        return 0;
    }
    if (has_parts)
        found = choose(&files, &parts, defaults);
    for (size_t i = 0; i < files.n && result == 0; i++)
        if (has_parts ? &files.list[i] == found : is_model(files.list[i].name)) {
            result = add_file(&files, &files.list[i], repository);
            n_added++;
        }
    if (n_added == 0)
        refuse_choice(gguf_store_add(search->found, strdup(repository), strdup(folder)), &files,
                      has_parts ? &parts : NULL);
    gguf_listed_model_free(&files.all);
    return result;
}

/* ---- Hugging Face's hub: models--ORG--NAME/snapshots/COMMIT/FILE ---- */

#define REPOSITORY "models--"

static bool visit_repository(struct gguf_store_search *search, const struct gguf_store_thing *thing)
{
    char *name = thing->below + strlen(REPOSITORY), *dashes;

    if (!gguf_text_starts_with(thing->below, REPOSITORY) || !is_safe(thing->below))
        return false;
    dashes = strstr(name, "--");
    if (dashes) {
        dashes[0] = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    }
    gguf_store_add(&search->index, strdup(name), strdup(thing->path));
    return false;
}

int gguf_hub_index(struct gguf_store_search *search)
{
    return gguf_store_walk(search, search->root, visit_repository);
}

/* Return the commit in the file of a ref, or NULL. */
static char *read_ref(const struct gguf_store_search *search, const char *repository,
                      const char *ref)
{
    char *path = gguf_store_text("%s/refs/%s", repository, ref);
    char *commit = gguf_store_read(search, path);

    free(path);
    if (commit)
        commit[strcspn(commit, "\r\n ")] = '\0';
    if (commit && (strlen(commit) != 40 || strspn(commit, "0123456789abcdef") != 40)) {
        free(commit);
        commit = NULL;
    }
    return commit;
}

/* Return the commit of a revision; of main, or any other ref, if it is "". NULL: there is none. */
static char *find_commit(struct gguf_store_search *search, const char *repository,
                         const char *revision)
{
    const struct gguf_folder *folder;
    char *path, *commit;

    if (strlen(revision) == 40 && strspn(revision, "0123456789abcdef") == 40)
        return strdup(revision);
    commit = read_ref(search, repository, revision[0] != '\0' ? revision : "main");
    if (commit || revision[0] != '\0')
        return commit;
    path = gguf_store_text("%s/refs", repository);
    folder = gguf_store_list_folder(search, path);
    for (size_t i = 0; i < folder->n_entries && !commit; i++)
        commit = read_ref(search, repository, folder->entries[i].name);
    free(path);
    return commit;
}

/* Return the name of the file whose blob has this hash, from the list of all files, or NULL. */
static const char *name_of_blob(const cJSON *tree, const char *hash)
{
    const cJSON *file;

    cJSON_ArrayForEach(file, cJSON_GetObjectItemCaseSensitive(tree, "files"))
    {
        if (strcmp(gguf_store_string(file, "lfs_sha256"), hash) == 0 ||
            strcmp(gguf_store_string(file, "blob_id"), hash) == 0)
            return file->string;
    }
    return NULL;
}

/* Add the unfinished downloads of a repository as models. Returns how many. */
static size_t add_partial(struct gguf_store_search *search, const struct gguf_listed_model *entry,
                          const char *commit)
{
    char *blobs = gguf_store_text("%s/blobs", entry->path);
    cJSON *tree = gguf_store_read_json(
        search, gguf_store_text("%s/trees/%s.json", entry->path, commit ? commit : ""));
    const struct gguf_folder *folder = gguf_store_list_folder(search, blobs);
    size_t n = 0;

    for (size_t i = 0; i < folder->n_entries; i++) {
        const char *name = folder->entries[i].name;
        char *hash = gguf_store_is_partial(name) ? strndup(name, strcspn(name, ".")) : NULL;
        const char *file = hash ? name_of_blob(tree, hash) : NULL;

        if (hash && (!file || (has_ending(file, ".gguf") && is_safe(file) && is_model(file)))) {
            struct gguf_listed_model *model =
                gguf_store_add(search->found,
                               gguf_store_text("%s/%.*s", entry->name,
                                               (int)(file ? gguf_stem_bytes(file) : strlen(name)),
                                               file ? file : name),
                               gguf_store_text("%s/%s", blobs, name));

            if (model) {
                model->is_partial = true;
                gguf_store_check_file(search, model, &model->path);
            }
            n++;
        }
        free(hash);
    }
    cJSON_Delete(tree);
    free(blobs);
    return n;
}

int gguf_hub_load(struct gguf_store_search *search, const struct gguf_listed_model *entry)
{
    static const char *const defaults[] = {"Q4_K_M", "Q8_0", NULL};
    struct gguf_model_list *found = search->found;
    const size_t n_before = found->n_models;
    struct repository parts;
    char *commit = find_commit(
        search, entry->path, search->wanted && split(search->wanted, &parts) ? parts.revision : "");
    char *snapshot = commit ? gguf_store_text("%s/snapshots/%s", entry->path, commit) : NULL;
    bool has_failed;
    int result = 0;

    if (snapshot)
        result = gguf_store_load_folder(search, snapshot, entry->name, defaults);
    else
        gguf_store_refuse(gguf_store_add(found, strdup(entry->name), strdup(entry->path)),
                          "the cache %s has no such revision of it", search->root);
    has_failed = found->n_models == n_before + 1 && found->models[n_before].error;
    /* What is not there may be on its way. */
    if ((has_failed || !search->wanted) && add_partial(search, entry, commit) > 0 && has_failed) {
        gguf_listed_model_free(&found->models[n_before]);
        memmove(&found->models[n_before], &found->models[n_before + 1],
                (--found->n_models - n_before) * sizeof *found->models);
    }
    free(snapshot);
    free(commit);
    return result;
}
