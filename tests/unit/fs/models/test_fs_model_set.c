/* When a set of models lists its folders (fs/models/model_set.c). */
#include "fs/models/model_set.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/ggufs-set-XXXXXX";
static unsigned n_lists;
static struct fs_model_set *set;
static time_t changed_seconds = 1000;
static bool find_while_listing;
static int found_while_listing = -ENODATA;

static int find(uint32_t folder, const char *name)
{
    uint32_t id;

    return fs_model_set_find(set, folder, name, &id);
}

/* The folder, and a model of a store if there is a manifest. */
static int list_root(void *argument, const struct gguf_store_access *access,
                     struct gguf_model_list *list)
{
    char reason[GGUF_LIST_REASON_BYTES], place[100];
    struct gguf_file_status status;
    struct gguf_listed_model *model;

    n_lists++;
    if (find_while_listing)
        found_while_listing = find(FS_MODELS_ROOT, "stored");
    snprintf(place, sizeof place, "%s/manifest", root);
    if (access->status(access->argument, place, &status) == 0) {
        model = gguf_model_list_add(list, strdup("stored"), strdup(place));
        cr_assert(model);
        model->place = strdup(place);
        model->place_status = status;
    }
    return gguf_list_folder(access, root, GGUF_FOLDER, list, reason);
}

static int show(void *argument, struct fs_tree *tree, uint32_t id, uint32_t generation,
                struct timespec modified)
{
    return 0;
}

/* Changes are older than they are, so that no test waits. */
static int get_status(void *argument, const char *path, struct gguf_file_status *status)
{
    const int result = gguf_direct_access.status(argument, path, status);

    status->status_changed = (struct timespec){.tv_sec = changed_seconds};
    return result;
}

static void put(const char *name)
{
    char path[100];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", root, name);
    file = fopen(path, "w");
    cr_assert(file);
    fclose(file);
}

/* Make a folder look as if it had not been changed for long. */
static void age(const char *name)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char path[100];

    snprintf(path, sizeof path, "%s/%s", root, name);
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void begin(void)
{
    static const struct fs_models models = {.list = list_root};
    static struct gguf_store_access access;
    char path[100];

    cr_assert(mkdtemp(root));
    snprintf(path, sizeof path, "%s/sub", root);
    cr_assert_eq(mkdir(path, 0755), 0);
    put("a.gguf");
    put("sub/b.gguf");
    age("sub");
    age("");
    access = gguf_direct_access;
    access.status = get_status;
    cr_assert_eq(fs_model_set_make(
                     &(struct fs_set_calls){
                         .models = &models, .access = &access, .show = show, .mountpoint = "/mnt"},
                     &set),
                 0);
    n_lists = 0;
}

static void end(void)
{
    char command[100];

    fs_model_set_free(set);
    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(fs_model_set, .init = begin, .fini = end);

Test(fs_model_set, missing_names_list_nothing)
{
    uint32_t sub;

    cr_assert_eq(fs_model_set_find(set, FS_MODELS_ROOT, "sub", &sub), 0);
    for (int i = 0; i < 10; i++) {
        cr_expect_eq(find(FS_MODELS_ROOT, "nothing"), -ENOENT);
        cr_expect_eq(find(sub, "nothing"), -ENOENT);
    }
    cr_expect_eq(n_lists, 0u);
}

Test(fs_model_set, new_names_are_found)
{
    uint32_t sub;

    cr_assert_eq(fs_model_set_find(set, FS_MODELS_ROOT, "sub", &sub), 0);
    put("sub/new.gguf");
    cr_expect_eq(find(sub, "new"), 0);
    put("new.gguf");
    cr_expect_eq(find(FS_MODELS_ROOT, "new"), 0);
    cr_expect_eq(n_lists, 2u);
}

/* A model keeps its id, and what is said about it holds, until its file is another one. */
Test(fs_model_set, changed_models_have_new_ids)
{
    struct fs_set_entry entry;
    uint32_t before, after;

    cr_assert_eq(fs_model_set_find(set, FS_MODELS_ROOT, "a", &before), 0);
    cr_assert_eq(fs_model_set_describe(set, before, &entry), 0);
    cr_expect(entry.is_lasting);
    age("a.gguf");
    cr_assert_eq(fs_model_set_find(set, FS_MODELS_ROOT, "a", &after), 0);
    cr_expect_neq(before, after);
    cr_expect_eq(fs_model_set_describe(set, before, &entry), -ESTALE);
}

static void store(void)
{
    put("manifest");
    cr_assert_eq(fs_model_set_refresh(set), 0);
    n_lists = 0;
}

Test(fs_model_set, a_model_of_a_store_waits_for_no_listing, .timeout = 30)
{
    store();
    find_while_listing = true;
    cr_assert_eq(fs_model_set_refresh(set), 0);
    cr_expect_eq(found_while_listing, 0);
    cr_expect_eq(n_lists, 1u);
}

/* Times of another system may be to come. */
Test(fs_model_set, a_clock_ahead_lists_nothing)
{
    changed_seconds = time(NULL) + 1000000;
    store();
    for (int i = 0; i < 10; i++) {
        cr_expect_eq(find(FS_MODELS_ROOT, "stored"), 0);
        cr_expect_eq(find(FS_MODELS_ROOT, "nothing"), -ENOENT);
    }
    cr_expect_eq(n_lists, 0u);
}

Test(fs_model_set, a_changed_manifest_lists_once)
{
    store();
    age("manifest");
    for (int i = 0; i < 10; i++)
        cr_expect_eq(find(FS_MODELS_ROOT, "stored"), 0);
    cr_expect_eq(n_lists, 1u);
}
