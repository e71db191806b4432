/*
 * Repositories: folders with files of models. The cache of Hugging Face's hub, which is llama.cpp's
 * as well, models--ORG--NAME/snapshots/COMMIT/FILE, and LM Studio's PUBLISHER/REPOSITORY/FILE.
 */
#include "gguf/stores/store_parts.h"
#include "gguf/support/shard_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NAME_BYTES = 300 };

/* A name, ORG/NAME[/FILE][@REVISION][:TAG], cut into its parts. Empty: not given. */
struct repository {
    char text[MAX_NAME_BYTES];
    const char *name, *file, *revision, *tag;
};

/* Cut a text at a place, if it is there. Returns what follows, or "". */
static const char *cut(char *at)
{
    if (!at)
        return "";
    *at = '\0';
    return at + 1;
}

static bool split(const char *name, struct repository *parts)
{
    const bool has_tag = strchr(name, ':'), has_revision = strchr(name, '@');
    char *slash;

    if (strlen(name) >= sizeof parts->text)
        return false;
    parts->name = strcpy(parts->text, name);
    parts->tag = cut(strrchr(parts->text, ':'));
    parts->revision = cut(strchr(parts->text, '@'));
    slash = strchr(parts->text, '/');
    slash = slash ? strchr(slash + 1, '/') : NULL;
    parts->file = cut(slash);
    return gguf_is_safe(parts->name) && (!slash || gguf_is_safe(parts->file)) &&
           (!has_revision || gguf_is_safe(parts->revision)) &&
           (!has_tag || gguf_is_safe(parts->tag));
}

char *gguf_repository_key(const char *name)
{
    struct repository parts;

    return name[0] == '\0' ? strdup("") : split(name, &parts) ? strdup(parts.name) : NULL;
}

/* ---- the files of a repository ---- */

/* Return true for a model's first or only file, and not a projector, a draft or a matrix. */
static bool is_model(const char *path)
{
    static const char *const others[] = {"mmproj",  "imatrix", "mtp-",
                                         "eagle3-", "dflash-", "dspark-"};
    const char *name = gguf_base_name(path);
    uint32_t shard, n_shards;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcasestr(name, others[i]))
            return false;
    return gguf_partial_bytes(name) == 0 &&
           (!gguf_read_shard_numbers(name, &shard, &n_shards) || shard == 1);
}

/* Return true if the path has the tag, followed by '.' or '-', as llama.cpp's -hf compares. */
static bool has_tag(const char *path, const char *tag)
{
    for (const char *at = path; (at = strcasestr(at, tag)) != NULL; at++)
        if (at[strlen(tag)] == '.' || at[strlen(tag)] == '-')
            return true;
    return false;
}

char *gguf_tag_of(const struct gguf_model_list *list, size_t i)
{
    const char *path = list->models[i].path, *name = path ? gguf_base_name(path) : "";
    const size_t length = gguf_stem_bytes(name), before = gguf_family_bytes(name, length);
    char *tag =
        before < length && is_model(path) ? strndup(name + before + 1, length - before - 1) : NULL;

    for (size_t j = 0; j < i && tag; j++)
        if (list->models[j].path && has_tag(gguf_base_name(list->models[j].path), tag)) {
            free(tag);
            tag = NULL;
        }
    return tag;
}

/* Return how well a model fits what the user names, by its path in the repository; 0: not. */
static int score_of(const struct gguf_listed_model *model, const char *path,
                    const struct repository *parts)
{
    if (parts->file[0] != '\0')
        return strcmp(path, parts->file) == 0 || strcmp(model->name, parts->file) == 0;
    if (!is_model(path))
        return 0;
    if (parts->tag[0] != '\0')
        return has_tag(path, parts->tag);
    return has_tag(path, "Q4_K_M") ? 3 : has_tag(path, "Q8_0") ? 2 : 1;
}

/* Say which files a repository has. */
static void refuse_choice(const struct gguf_store_access *access, const char *folder,
                          const struct gguf_model_list *all, bool is_named,
                          struct gguf_listed_model *model)
{
    char list[GGUF_LIST_REASON_BYTES - 200] = "";

    for (size_t i = 0; i < all->n_models; i++)
        if (is_model(all->models[i].path))
            gguf_append_name(list, sizeof list, all->models[i].path + strlen(folder) + 1, "");
    if (list[0] != '\0')
        gguf_listed_model_refuse(model, "%s%s",
                                 is_named ? "no file has this name or tag; there are: "
                                          : "has several models; add :TAG or /FILE: ",
                                 list);
    else
        gguf_listed_model_refuse(model, "%s", gguf_recognize(access, folder));
}

/*
 * Add the models in a repository's folder: all, or the wanted one. If its name has neither tag nor
 * file, one is chosen as llama.cpp's -hf does, unless `is_strict`.
 */
static void load_folder(struct gguf_store_search *search, const char *folder,
                        const char *repository, bool is_strict)
{
    const struct gguf_store_access *access = search->access;
    struct gguf_model_list all = {0};
    char reason[GGUF_LIST_REASON_BYTES], *path;
    struct gguf_listed_model *added = NULL, *best = NULL;
    struct gguf_file_status status;
    struct repository parts;
    const bool has_parts = search->wanted && split(search->wanted, &parts);
    const bool has_file = has_parts && parts.file[0] != '\0';
    const bool is_named = has_file || (has_parts && parts.tag[0] != '\0');
    const int result = gguf_list_folder(access, folder, GGUF_REPOSITORY, &all, reason);
    int best_score = 0;

    path = has_file ? gguf_text("%s/%s", folder, parts.file) : NULL;
    if (path && access->status(access->argument, path, &status) == 0)
        gguf_model_list_add(&all, strdup(parts.file), path); /* a projector or a shard, too */
    else
        free(path);
    for (size_t i = 0; i < all.n_models && has_parts; i++) {
        const int score = score_of(&all.models[i], all.models[i].path + strlen(folder) + 1, &parts);

        if (best && is_strict && !is_named && score > 0) {
            best = NULL;
            break;
        }
        if (score > best_score) {
            best = &all.models[i];
            best_score = score;
        }
    }
    for (size_t i = 0; i < all.n_models && result == 0; i++) {
        struct gguf_listed_model *model = &all.models[i];

        if (has_parts ? model != best : !is_model(model->path) && !model->error)
            continue;
        added =
            gguf_model_list_add(search->found, gguf_text("%s/%s", repository, model->name), NULL);
        if (!added)
            continue;
        free(model->name);
        model->name = added->name;
        *added = *model;
        *model = (struct gguf_listed_model){.path = strdup("")};
    }
    if (!added) {
        added = gguf_model_list_add(search->found, strdup(repository), strdup(folder));
        if (result < 0)
            gguf_listed_model_refuse(added, "%s: %s", folder, reason);
        else
            refuse_choice(access, folder, &all, is_named, added);
    }
    if (all.error < 0)
        search->found->error = all.error;
    gguf_model_list_free(&all);
}

/* ---- Hugging Face's hub ---- */

#define REPOSITORY "models--"

static bool visit_repository(void *user, const struct gguf_thing *thing)
{
    struct gguf_store_search *search = user;
    char *name, *dashes;

    if (!thing->entry || !gguf_text_starts_with(thing->below, REPOSITORY) ||
        !gguf_is_safe(thing->below))
        return false;
    name = thing->below + strlen(REPOSITORY);
    dashes = strstr(name, "--");
    if (dashes) {
        dashes[0] = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    }
    gguf_model_list_add(&search->index, strdup(name), strdup(thing->path));
    return false;
}

int gguf_hub_index(struct gguf_store_search *search)
{
    return gguf_walk(search->access, &search->index, search->root, visit_repository, search);
}

static bool is_commit(const char *text)
{
    return strlen(text) == 40 && strspn(text, "0123456789abcdef") == 40;
}

/* Return the commit in the file of a ref, or NULL. */
static char *read_ref(const struct gguf_store_search *search, const char *repository,
                      const char *ref)
{
    char *commit = gguf_store_read(search->access, gguf_text("%s/refs/%s", repository, ref));

    if (commit)
        commit[strcspn(commit, "\r\n ")] = '\0';
    if (commit && is_commit(commit))
        return commit;
    free(commit);
    return NULL;
}

/* Return the commit of a revision; of main, or any other ref, if it is "". NULL: not found. */
static char *find_commit(struct gguf_store_search *search, const char *repository,
                         const char *revision)
{
    const struct gguf_store_access *access = search->access;
    struct gguf_folder folder = {0};
    char *path, *commit;

    if (is_commit(revision))
        return strdup(revision);
    commit = read_ref(search, repository, revision[0] != '\0' ? revision : "main");
    if (commit || revision[0] != '\0')
        return commit;
    path = gguf_text("%s/refs", repository);
    if (path && access->list(access->argument, path, &folder) == 0)
        for (size_t i = 0; i < folder.n_entries && !commit; i++)
            commit = read_ref(search, repository, folder.entries[i].name);
    free(folder.entries);
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
    char *blobs = gguf_text("%s/blobs", entry->path);
    cJSON *tree = gguf_store_read_json(
        search->access, gguf_text("%s/trees/%s.json", entry->path, commit ? commit : ""));
    struct gguf_folder folder = {0};
    size_t n = 0;

    if (!blobs || search->access->list(search->access->argument, blobs, &folder) < 0)
        folder.n_entries = 0;
    for (size_t i = 0; i < folder.n_entries; i++) {
        const char *name = folder.entries[i].name;
        char *hash = gguf_partial_bytes(name) > 0 ? strndup(name, strcspn(name, ".")) : NULL;
        const char *file = hash ? name_of_blob(tree, hash) : NULL;
        struct gguf_listed_model *model;

        if (hash && (!file || (gguf_string_ends_with(gguf_string_of(file), ".gguf") &&
                               gguf_is_safe(file) && is_model(file)))) {
            model = gguf_model_list_add(
                search->found,
                gguf_text("%s/%.*s", entry->name,
                          (int)(file ? gguf_stem_bytes(file) : strlen(name)), file ? file : name),
                gguf_text("%s/%s", blobs, name));
            if (model) {
                model->is_partial = true;
                model->file = folder.entries[i].status;
                model->size_bytes = model->file.size_bytes;
            }
            n++;
        }
        free(hash);
    }
    cJSON_Delete(tree);
    free(folder.entries);
    free(blobs);
    return n;
}

void gguf_hub_load(struct gguf_store_search *search, const struct gguf_listed_model *entry)
{
    struct gguf_model_list *found = search->found;
    const size_t n_before = found->n_models;
    struct repository parts;
    char *commit = find_commit(
        search, entry->path, search->wanted && split(search->wanted, &parts) ? parts.revision : "");
    char *snapshot = commit ? gguf_text("%s/snapshots/%s", entry->path, commit) : NULL;
    bool has_failed;

    if (snapshot)
        load_folder(search, snapshot, entry->name, false);
    else
        gguf_listed_model_refuse(
            gguf_model_list_add(found, strdup(entry->name), strdup(entry->path)),
            "the cache %s has no such revision of it", search->root);
    has_failed = found->n_models == n_before + 1 && found->models[n_before].error;
    /* A model that is missing may be on its way. */
    if ((has_failed || !search->wanted) && add_partial(search, entry, commit) > 0 && has_failed) {
        gguf_listed_model_free(&found->models[n_before]);
        memmove(&found->models[n_before], &found->models[n_before + 1],
                (--found->n_models - n_before) * sizeof *found->models);
    }
    free(snapshot);
    free(commit);
}

/* ---- LM Studio ---- */

/*
 * Return the folders of models below LM Studio's homes: what "downloadsFolder" of the settings
 * names, or models/.
 */
char *gguf_lm_studio_roots(void)
{
    const char *user = getenv("HOME") ? getenv("HOME") : "";
    char *homes[] = {
        gguf_store_read(&gguf_direct_access, gguf_text("%s/.lmstudio-home-pointer", user)),
        gguf_text("%s/.lmstudio", user), gguf_text("%s/.cache/lm-studio", user)};
    char *roots = strdup("");

    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        char *longer;
        const char *folder;
        cJSON *settings;

        if (!homes[i])
            continue;
        homes[i][strcspn(homes[i], "\r\n")] = '\0';
        settings =
            gguf_store_read_json(&gguf_direct_access, gguf_text("%s/settings.json", homes[i]));
        folder = gguf_store_string(settings, "downloadsFolder");
        longer = folder[0] == '/' && access(folder, F_OK) == 0
                     ? gguf_text("%s%s\n", roots ? roots : "", folder)
                     : gguf_text("%s%s/models\n", roots ? roots : "", homes[i]);
        cJSON_Delete(settings);
        free(homes[i]);
        free(roots);
        roots = longer;
    }
    return roots;
}

/* A repository is a folder, or a link to one, in the folder of a publisher. */
static bool visit_publisher(void *user, const struct gguf_thing *thing)
{
    struct gguf_store_search *search = user;

    if (!thing->entry || !strchr(thing->below, '/'))
        return thing->entry && thing->entry->is_folder;
    if (thing->entry->is_folder || thing->entry->is_link)
        gguf_model_list_add(&search->index, strdup(thing->below), strdup(thing->path));
    return false;
}

int gguf_lm_studio_index(struct gguf_store_search *search)
{
    return gguf_walk(search->access, &search->index, search->root, visit_publisher, search);
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

void gguf_lm_studio_load(struct gguf_store_search *search, const struct gguf_listed_model *entry)
{
    load_folder(search, entry->path, entry->name, true);
}
