/* Lists of the models in a folder (gguf/stores/list_folder.c). */
#include "gguf/stores/model_list.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/ggufs-list-XXXXXX";

static void begin(void)
{
    cr_assert(mkdtemp(root));
}

static void end(void)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(gguf_model_list, .init = begin, .fini = end);

/* Make files of one byte; what ends in '/' is a folder. */
static void make(const char *const *names)
{
    for (; *names; names++) {
        char path[200];

        snprintf(path, sizeof path, "%s/%s", root, *names);
        if (path[strlen(path) - 1] == '/') {
            cr_assert_eq(mkdir(path, 0755), 0);
        } else {
            FILE *file = fopen(path, "w");

            cr_assert(file);
            fputc('x', file);
            fclose(file);
        }
    }
}

static struct gguf_model_list list(void)
{
    struct gguf_model_list models = {0};
    char reason[GGUF_LIST_REASON_BYTES];

    cr_assert_eq(gguf_list_folder(&gguf_direct_access, root, GGUF_FOLDER, &models, reason), 0, "%s",
                 reason);
    return models;
}

/* Write the list as text: NAME[ (partial)][ +EXTRA=FILE]…; each with ';'. */
static const char *describe(void)
{
    static char text[2000];
    struct gguf_model_list models = list();
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < models.n_models; i++) {
        const struct gguf_listed_model *model = &models.models[i];

        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", model->name,
                               model->is_partial ? " (partial)" : "");
        for (size_t j = 0; j < model->n_extras; j++)
            at += (size_t)snprintf(text + at, sizeof text - at, " +%s=%s", model->extras[j].name,
                                   strrchr(model->extras[j].path, '/') + 1);
        at += (size_t)snprintf(text + at, sizeof text - at, ";");
    }
    gguf_model_list_free(&models);
    return text;
}

Test(gguf_model_list, names_have_folders_and_no_ending)
{
    make((const char *const[]){"b.gguf", "a.GGUF", "notes.txt", ".hidden.gguf", "sub/", "sub/deep/",
                               "sub/deep/c.gguf", "d.gguf.part", NULL});
    cr_assert_str_eq(describe(), "a;b;d (partial);sub/deep/c;");
}

Test(gguf_model_list, shards_are_one_model)
{
    struct gguf_model_list models;

    make((const char *const[]){"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                               "m-00003-of-00003.gguf", "m-00002-of-00002.gguf", NULL});
    models = list();
    cr_assert_eq(models.n_models, 2);
    cr_assert_str_eq(models.models[0].name, "m");
    cr_assert(strstr(models.models[0].path, "/m-00001-of-00003.gguf"));
    cr_assert_eq(models.models[0].size_bytes, 3);
    cr_assert(strstr(models.models[1].path, "/m-00002-of-00002.gguf"));
    gguf_model_list_free(&models);
}

Test(gguf_model_list, projectors_go_with_the_types_of_one_model)
{
    make((const char *const[]){"g-4b-Q4_K_M.gguf", "g-4b-Q8_0.gguf", "mmproj-BF16.gguf",
                               "mmproj-F16.gguf", NULL});
    cr_assert_str_eq(describe(), "g-4b-Q4_K_M +mmproj.gguf=mmproj-F16.gguf "
                                 "+mmproj-BF16.gguf=mmproj-BF16.gguf;"
                                 "g-4b-Q8_0 +mmproj.gguf=mmproj-F16.gguf "
                                 "+mmproj-BF16.gguf=mmproj-BF16.gguf;");
}

Test(gguf_model_list, projectors_go_with_the_model_that_they_name)
{
    make((const char *const[]){"g-4b-Q4_K_M.gguf", "other.gguf", "mmproj-g-4b-f16.gguf",
                               "l-7b.gguf", "l-7b.mmproj-Q8_0.gguf", "mmproj-model-f16.gguf",
                               "repo/", "repo/mmproj-r-f16.gguf", "repo/q4/", "repo/q4/r-q4.gguf",
                               NULL});
    cr_assert_str_eq(describe(), "g-4b-Q4_K_M +mmproj.gguf=mmproj-g-4b-f16.gguf;"
                                 "l-7b +mmproj.gguf=l-7b.mmproj-Q8_0.gguf;mmproj-model-f16;other;"
                                 "repo/q4/r-q4 +mmproj.gguf=mmproj-r-f16.gguf;");
}

Test(gguf_model_list, links_to_folders_are_not_followed)
{
    char path[200];

    make((const char *const[]){"sub/", "sub/a.gguf", NULL});
    snprintf(path, sizeof path, "%s/sub/loop", root);
    cr_assert_eq(symlink("..", path), 0);
    cr_assert_str_eq(describe(), "sub/a;");
}

Test(gguf_model_list, control_characters_are_an_error_of_the_model)
{
    struct gguf_model_list models;

    make((const char *const[]){"a\nb.gguf", "c.gguf", NULL});
    models = list();
    cr_assert_eq(models.n_models, 2);
    cr_assert_str_eq(models.models[0].name, "a\\x0ab");
    cr_assert(strstr(models.models[0].error, "control characters"));
    cr_assert_null(models.models[1].error);
    gguf_model_list_free(&models);
}

Test(gguf_model_list, missing_folder_is_an_error)
{
    struct gguf_model_list models = {0};
    char reason[GGUF_LIST_REASON_BYTES];

    cr_assert_eq(
        gguf_list_folder(&gguf_direct_access, "/nonexistent", GGUF_FOLDER, &models, reason),
        -ENOENT);
    cr_assert_str_eq(reason, "No such file or directory");
}
