/*
 * Rules for source files: allowed includes per folder, no large circles of includes, unique file
 * names, limited length. Runs from the root of the repository.
 */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const folders[] = {"dequant", "gguf", "fs", "contrib", "tests"};

enum { MAX_FILES = 2000, MAX_LINES = 500 };

static char *paths[MAX_FILES];
static size_t n_paths;

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static int collect(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    if (kind == FTW_F && (ends_with(path, ".c") || ends_with(path, ".h")) && n_paths < MAX_FILES)
        paths[n_paths++] = strdup(path);
    return 0;
}

static void collect_paths(void)
{
    for (size_t i = 0; i < COUNT(folders); i++)
        cr_assert_eq(nftw(folders[i], collect, 16, FTW_PHYS), 0,
                     "no folder %s: is this the root of the repository?", folders[i]);
    cr_assert_lt(n_paths, (size_t)MAX_FILES);
}

static void free_paths(void)
{
    for (size_t i = 0; i < n_paths; i++)
        free(paths[i]);
}

TestSuite(includes, .init = collect_paths, .fini = free_paths);

/*
 * The project's headers that a folder may include. All rules whose folder contains a file apply to
 * it. Every file outside tests/ needs at least one rule.
 */
static const struct {
    const char *folder;
    const char *allowed[8];
} rules[] = {
    {"dequant/", {"dequant/"}},
    {"gguf/support/", {"gguf/support/"}},
    {"gguf/models/", {"gguf/models/", "gguf/support/"}},
    {"gguf/jinja/", {"gguf/jinja/", "gguf/support/"}},
    {"gguf/stores/", {"gguf/stores/", "gguf/support/"}},
    {"gguf/", {"gguf/", "dequant/"}},
    {"fs/tree/", {"fs/tree/", "gguf/", "dequant/"}},
    /* The layers of fs/tree/, from the lowest to the highest. */
    {"fs/tree/output/", {"fs/tree/output/", "gguf/values.h", "gguf/support/"}},
    {"fs/tree/core/", {"fs/tree/core/", "fs/tree/output/", "gguf/model.h", "gguf/support/"}},
    {"fs/tree/data/",
     {"fs/tree/data/", "fs/tree/core/", "fs/tree/output/", "gguf/elements.h", "gguf/model.h",
      "gguf/support/", "dequant/"}},
    {"fs/tree/facts/",
     {"fs/tree/facts/", "fs/tree/data/", "fs/tree/core/", "fs/tree/output/", "gguf/", "dequant/"}},
    {"fs/tree/hf/",
     {"fs/tree/hf/", "fs/tree/facts/", "fs/tree/data/", "fs/tree/core/", "fs/tree/output/", "gguf/",
      "dequant/"}},
    {"fs/tree/views/",
     {"fs/tree/views/", "fs/tree/hf/", "fs/tree/facts/", "fs/tree/data/", "fs/tree/core/",
      "fs/tree/output/", "gguf/", "dequant/"}},
    {"fs/kernels/", {"fs/tree/data/statistics_kernels.h", "dequant/"}},
    {"fs/library/", {"fs/library/", "fs/tree/", "gguf/", "dequant/"}},
    {"fs/models/", {"fs/models/", "fs/tree/", "gguf/"}},
    {"fs/mount/", {"fs/mount/", "fs/models/", "fs/tree/", "gguf/", "dequant/"}},
    {"fs/command/", {"fs/", "gguf/", "dequant/"}},
    {"contrib/runner/",
     {"contrib/runner/", "gguf/jinja/", "gguf/models/", "gguf/support/", "dequant/"}},
    /* compute/ includes no other part, tree/ includes compute/, engine/ includes both. */
    {"contrib/runner/compute/", {"contrib/runner/compute/", "gguf/support/", "dequant/"}},
    {"contrib/runner/kernels/",
     {"contrib/runner/kernels/", "contrib/runner/compute/", "gguf/support/", "dequant/"}},
    {"contrib/runner/tree/",
     {"contrib/runner/tree/", "contrib/runner/compute/", "gguf/support/", "dequant/"}},
    {"contrib/runner/engine/",
     {"contrib/runner/engine/", "contrib/runner/compute/", "contrib/runner/tree/", "gguf/models/",
      "gguf/support/", "dequant/"}},
};

static void check_include(const char *path, const char *included)
{
    const bool is_there = access(included, F_OK) == 0;
    bool has_rule = starts_with(path, "tests/");

    cr_expect(is_there, "%s includes \"%s\": write the path from the root", path, included);
    for (size_t i = 0; i < COUNT(rules); i++) {
        bool is_allowed = false;

        if (!starts_with(path, rules[i].folder))
            continue;
        has_rule = true;
        for (size_t j = 0; j < COUNT(rules[i].allowed) && rules[i].allowed[j]; j++)
            is_allowed |= starts_with(included, rules[i].allowed[j]);
        cr_expect(is_allowed, "%s must not include \"%s\"", path, included);
    }
    cr_expect(has_rule, "%s: the table `rules` has no row for its folder", path);
}

/* System libraries that only some folders may include, by prefix of the header. */
static const struct {
    const char *header;
    const char *allowed[3];
} libraries[] = {
    {"fuse", {"fs/mount/", "fs/command/", "tests/"}},
    {"nettle/", {"fs/tree/", "tests/"}},
    {"omp.h", {"fs/", "tests/"}},
    {"pcre2", {"contrib/runner/tokenizer/", "tests/"}},
};

static void check_library(const char *path, const char *header)
{
    for (size_t i = 0; i < COUNT(libraries); i++) {
        bool is_allowed = false;

        if (!starts_with(header, libraries[i].header))
            continue;
        for (size_t j = 0; j < COUNT(libraries[i].allowed) && libraries[i].allowed[j]; j++)
            is_allowed |= starts_with(path, libraries[i].allowed[j]);
        cr_expect(is_allowed, "%s must not include <%s>", path, header);
    }
}

/* Call `use` for each header of the project that a file includes. */
static size_t each_include(const char *path, void (*use)(const char *path, const char *included))
{
    FILE *file = fopen(path, "r");
    char line[1000], included[1000];
    size_t n_includes = 0;

    cr_assert_not_null(file, "%s", path);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, " # include \"%999[^\"]", included) == 1) {
            use(path, included);
            n_includes++;
        }
    }
    fclose(file);
    return n_includes;
}

Test(includes, follow_the_rules)
{
    size_t n_includes = 0;

    for (size_t i = 0; i < n_paths; i++)
        n_includes += each_include(paths[i], check_include);
    cr_expect_gt(n_includes, 50u);
}

Test(includes, only_some_folders_use_a_library)
{
    for (size_t i = 0; i < n_paths; i++) {
        FILE *file = fopen(paths[i], "r");
        char line[1000], included[1000];

        cr_assert_not_null(file, "%s", paths[i]);
        while (fgets(line, sizeof line, file)) {
            if (sscanf(line, " # include <%999[^>]", included) == 1)
                check_library(paths[i], included);
        }
        fclose(file);
    }
}

/* ---- circles ---- */

enum { MAX_CIRCLE = 3, MAX_MODULES = 1000 };

/* A module is a source file and its header: their path without the suffix. */
static char *modules[MAX_MODULES];
static size_t n_modules;
/* Module i includes module j, or one that leads to it. */
static bool leads_to[MAX_MODULES][MAX_MODULES];

static size_t module_of(const char *path)
{
    const size_t length = strlen(path) - strlen(".c");
    size_t i = 0;

    while (i < n_modules &&
           (strlen(modules[i]) != length || strncmp(modules[i], path, length) != 0))
        i++;
    if (i == n_modules) {
        cr_assert_lt(n_modules, (size_t)MAX_MODULES);
        modules[n_modules++] = strndup(path, length);
    }
    return i;
}

static void connect(const char *path, const char *included)
{
    const size_t from = module_of(path), to = module_of(included);

    leads_to[from][to] |= from != to;
}

Test(includes, no_large_circles)
{
    for (size_t i = 0; i < n_paths; i++) {
        if (!starts_with(paths[i], "tests/"))
            each_include(paths[i], connect);
    }
    for (size_t k = 0; k < n_modules; k++) {
        for (size_t i = 0; i < n_modules; i++) {
            for (size_t j = 0; leads_to[i][k] && j < n_modules; j++)
                leads_to[i][j] |= leads_to[k][j];
        }
    }
    for (size_t i = 0; i < n_modules; i++) {
        size_t n_in_circle = 0;

        for (size_t j = 0; leads_to[i][i] && j < n_modules; j++)
            n_in_circle += leads_to[i][j] && leads_to[j][i];
        cr_expect_leq(n_in_circle, (size_t)MAX_CIRCLE,
                      "%s is in a circle of %zu modules that include each other", modules[i],
                      n_in_circle);
    }
    for (size_t i = 0; i < n_modules; i++)
        free(modules[i]);
}

static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

Test(includes, file_names_are_unique)
{
    for (size_t i = 0; i < n_paths; i++) {
        for (size_t j = 0; j < i; j++)
            cr_expect_str_neq(name_in(paths[i]), name_in(paths[j]), "%s and %s", paths[i],
                              paths[j]);
    }
}

Test(includes, files_are_short)
{
    static const char *const generated[] = {"dequant/iq_grids.c"};

    for (size_t i = 0; i < n_paths; i++) {
        FILE *file = fopen(paths[i], "r");
        bool is_generated = false;
        size_t n_lines = 0;
        int c;

        cr_assert_not_null(file, "%s", paths[i]);
        while ((c = getc(file)) != EOF)
            n_lines += c == '\n';
        fclose(file);
        for (size_t j = 0; j < COUNT(generated); j++)
            is_generated |= strcmp(paths[i], generated[j]) == 0;
        cr_expect(is_generated || n_lines <= MAX_LINES, "%s has %zu lines, the limit is %d",
                  paths[i], n_lines, MAX_LINES);
    }
}

/* Other code would start threads in which a fault on a mapped file kills the process. */
Test(includes, threads_are_started_in_one_place)
{
    static const char *const others[] = {
        "contrib/runner/compute/thread_pool.c", /* inherits the main thread's signals; other stack
                                                   size */
        "contrib/runner/cli/bandwidth.c",       /* touches no file */
    };
    char line[512];

    for (size_t i = 0; i < n_paths; i++) {
        FILE *file = fopen(paths[i], "r");
        bool may_start =
            starts_with(paths[i], "tests/") || strstr(paths[i], "/thread_start.") != NULL;

        cr_assert_not_null(file, "%s", paths[i]);
        for (size_t j = 0; j < COUNT(others); j++)
            may_start |= strcmp(paths[i], others[j]) == 0;
        while (!may_start && fgets(line, sizeof line, file))
            cr_expect_null(strstr(line, "pthread_create"), "%s: use gguf_thread_start()", paths[i]);
        fclose(file);
    }
}
