/* Lists of whole stores, with models that are broken or hostile (gguf/stores/stores.c). */
#include "gguf/stores/stores.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLLAMA "\"application/vnd.ollama.image."
#define DIGIT64(digit)                                                                             \
    digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit      \
        digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit  \
            digit digit digit digit digit digit digit digit digit digit digit digit digit digit    \
                digit digit digit digit digit digit digit digit digit digit digit digit digit      \
                    digit digit digit digit digit digit digit
#define A DIGIT64("a")
#define B DIGIT64("b")

static char root[] = "/tmp/ggufs-stores-XXXXXX";
static struct gguf_model_list models;
static char reason[GGUF_LIST_REASON_BYTES];

static void begin(void)
{
    cr_assert(mkdtemp(root));
}

static void end(void)
{
    char command[64];

    gguf_model_list_free(&models);
    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(gguf_stores, .init = begin, .fini = end);

/* Return the path of a file, and make its folders. */
static const char *path_of(const char *name)
{
    static char path[1000];

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        cr_assert(mkdir(path, 0755) == 0 || errno == EEXIST, "%s", path);
        *slash = '/';
    }
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    cr_assert(file);
    fputs(text, file);
    fclose(file);
}

/* Put a manifest of a model of Ollama with one layer. */
static void put_image(const char *model, const char *digest)
{
    char name[300], text[1000];

    snprintf(name, sizeof name, "manifests/registry.ollama.ai/library/%s/latest", model);
    snprintf(text, sizeof text,
             "{\"layers\": [{\"mediaType\": " OLLAMA "model\", \"digest\": \"%s\"}]}", digest);
    put(name, text);
}

static unsigned n_opened;

/* No file of a model may be opened by a listing. */
static int open_manifest(void *argument, const char *path)
{
    n_opened++;
    cr_expect_null(strstr(path, "/blobs/sha256-"), "%s", path);
    cr_expect_null(strstr(path, ".gguf"), "%s", path);
    return gguf_direct_access.open(argument, path);
}

/* List the store of a kind at the root. */
static void list(const char *prefix)
{
    struct gguf_store_access access = gguf_direct_access;
    char name[100];

    access.open = open_manifest;
    snprintf(name, sizeof name, "%s%s", prefix, root);
    gguf_model_list_free(&models);
    cr_assert_eq(gguf_store_list(&access, name, &models, reason), 0, "%s", reason);
}

static const struct gguf_listed_model *find(const char *name)
{
    for (size_t i = 0; i < models.n_models; i++)
        if (strcmp(models.models[i].name, name) == 0)
            return &models.models[i];
    cr_assert(false, "no model %s of %zu", name, models.n_models);
    return NULL;
}

static void expect_error(const char *name, const char *text)
{
    const char *error = find(name)->error;

    cr_expect(error && strstr(error, text), "%s: %s", name, error ? error : "no error");
}

Test(gguf_stores, other_models_go_on)
{
    char *large = malloc(200001);

    put("blobs/sha256-" A, "x");
    put("blobs/sha256-" B "-partial", "12345");
    put_image("good", "sha256:" A);
    put_image("dash", "sha256-" A);
    put_image("climbs", "sha256:../../../etc/passwd");
    put_image("short", "sha256:aa");
    put_image("letters", "sha256:g" A);
    put_image("unfinished", "sha256:" B);
    put_image("missing", "sha256:" DIGIT64("c"));
    put("manifests/registry.ollama.ai/library/text/latest", "no JSON");
    put("manifests/registry.ollama.ai/library/empty/latest", "");
    put("manifests/registry.ollama.ai/library/list/latest", "[{}]");
    put("manifests/registry.ollama.ai/library/\x1b[31mred/latest", "{}");
    put("manifests/registry.ollama.ai/library/.DS_Store", "{}");
    put("manifests/registry.ollama.ai/library/deep/latest/more", "{}");
    cr_assert(large);
    memset(large, '[', 200000);
    large[200000] = '\0';
    put("manifests/registry.ollama.ai/library/nested/latest", large);
    free(large);
    put("manifests/registry.ollama.ai/library/large/latest", "{}");
    cr_assert_eq(truncate(path_of("manifests/registry.ollama.ai/library/large/latest"), 100 << 20),
                 0);
    cr_assert_eq(mkfifo(path_of("manifests/registry.ollama.ai/library/fifo/latest"), 0600), 0);
    cr_assert_eq(symlink("latest", path_of("manifests/registry.ollama.ai/library/cycle/latest")),
                 0);
    cr_assert_eq(symlink("..", path_of("manifests/registry.ollama.ai/library/parent")), 0);

    list("ollama:");
    cr_expect_eq(models.n_models, (size_t)14, "%zu", models.n_models);
    cr_expect_null(find("good/latest")->error);
    cr_expect_eq(find("good/latest")->size_bytes, (uint64_t)1);
    cr_expect_null(find("dash/latest")->error);
    expect_error("climbs/latest", "\"sha256:../../../etc/passwd\", which is not");
    expect_error("short/latest", "64 hexadecimal digits");
    expect_error("letters/latest", "64 hexadecimal digits");
    cr_expect(find("unfinished/latest")->is_partial);
    cr_expect_eq(find("unfinished/latest")->size_bytes, (uint64_t)5);
    expect_error("missing/latest", "is missing");
    expect_error("text/latest", "is not JSON");
    expect_error("empty/latest", "is not JSON");
    expect_error("list/latest", "no model file");
    expect_error("nested/latest", "is not JSON");
    expect_error("large/latest", "too large");
    expect_error("fifo/latest", "not a regular file");
    expect_error("cycle/latest", "symbolic links");
    cr_expect_eq(n_opened, 14u);
}

Test(gguf_stores, thousands_of_layers)
{
    enum { LAYERS = 5000 };
    char *text = malloc(200 * (LAYERS + 1)), *at = text;

    cr_assert(text);
    put("blobs/sha256-" A, "x");
    for (int pass = 0; pass < 2; pass++) { /* tensors, then licenses beside a model */
        at = text + sprintf(text, "{\"layers\": [");
        for (int i = 0; i < LAYERS; i++)
            at += sprintf(at, "{\"mediaType\": " OLLAMA "%s\", \"digest\": \"sha256:" A "\"},",
                          pass == 0 ? "tensor"
                          : i == 0  ? "model"
                                    : "license");
        strcpy(at - 1, "]}");
        put(pass == 0 ? "manifests/h/n/tensors/1" : "manifests/h/n/licenses/1", text);
    }
    list("ollama:");
    expect_error("h/n/tensors/1", "5000 files, not GGUF");
    expect_error("h/n/licenses/1", "more than");
    free(text);
}

Test(gguf_stores, a_hub_with_hostile_refs_and_names)
{
    const char *const commit = "0123456789012345678901234567890123456789";
    char name[300];

    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"n-Q4_0.gguf", "mmproj-F16.gguf",
                                            "sub/n-00001-of-00002.gguf",
                                            "sub/n-00002-of-00002.gguf"};

        snprintf(name, sizeof name, "models--o--n/snapshots/%s/%s", commit, names[i]);
        put(name, "x");
    }
    put("models--o--n/refs/main", commit);
    put("models--o--climbs/refs/main", "../../models--o--n/snapshots/");
    put("models--o--empty/blobs/x", "x");
    put("models--o--partial/refs/main", commit);
    put("models--o--partial/blobs/" A ".12345678.incomplete", "12345");
    snprintf(name, sizeof name, "models--o--partial/trees/%s.json", commit);
    put(name, "{\"files\": {\"p-Q8_0.gguf\": {\"lfs_sha256\": \"" A "\"}}}");
    put("models--o--\x1b[31m/refs/main", commit);
    put("datasets--o--d/refs/main", commit);
    put("token", "secret");

    list("hf:");
    cr_expect_eq(models.n_models, (size_t)5, "%zu", models.n_models);
    cr_expect_null(find("o/n/n-Q4_0")->error);
    cr_expect_eq(find("o/n/n-Q4_0")->n_extras, (size_t)1);
    cr_expect_str_eq(find("o/n/n-Q4_0")->extras[0].name, "mmproj.gguf");
    cr_expect_eq(find("o/n/sub/n")->size_bytes, (uint64_t)2);
    expect_error("o/climbs", "no such revision");
    expect_error("o/empty", "no such revision");
    cr_expect(find("o/partial/p-Q8_0")->is_partial);
}

static int list_but_sub(void *argument, const char *path, struct gguf_folder *folder)
{
    return strstr(path, "/sub") ? -ENOMEM : gguf_direct_access.list(argument, path, folder);
}

/* A part of a repository that cannot be listed is an error, not left out. */
Test(gguf_stores, a_folder_that_memory_is_too_short_for)
{
    struct gguf_store_access access = gguf_direct_access;
    char name[100];

    access.list = list_but_sub;
    put("models--o--n/snapshots/0123456789012345678901234567890123456789/a.gguf", "x");
    put("models--o--n/snapshots/0123456789012345678901234567890123456789/sub/b.gguf", "x");
    put("models--o--n/refs/main", "0123456789012345678901234567890123456789");
    snprintf(name, sizeof name, "hf:%s", root);
    cr_assert_eq(gguf_store_list(&access, name, &models, reason), 0, "%s", reason);
    cr_expect_null(find("o/n/a")->error);
    expect_error("o/n/sub", "cannot be listed: Cannot allocate memory");
}

Test(gguf_stores, a_store_that_is_not_there)
{
    char name[100];

    snprintf(name, sizeof name, "ollama:%s", root);
    cr_expect_eq(gguf_store_list(&gguf_direct_access, name, &models, reason), -ENOENT);
    cr_expect(strstr(reason, "there is no store in "), "%s", reason);
    cr_expect_eq(gguf_store_list(&gguf_direct_access, "file.gguf", &models, reason), 1);
    cr_expect_eq(gguf_store_list(&gguf_direct_access, "hf://o/n", &models, reason), 1);
}

Test(gguf_stores, roots_are_absolute)
{
    struct gguf_store_places places;

    setenv("HOME", "/home/u", 1);
    setenv("OLLAMA_MODELS", "", 1);
    cr_assert(gguf_store_find_places(&gguf_direct_access, "ollama:", &places));
    cr_assert_eq(places.n, 2);
    cr_expect_str_eq(places.list[0].root, "/home/u/.ollama/models");
    cr_expect_str_eq(places.list[1].root, "/usr/share/ollama/.ollama/models");
    gguf_store_free_places(&places);
    setenv("OLLAMA_MODELS", "/m", 1);
    cr_assert(gguf_store_find_places(&gguf_direct_access, "ollama:tiny", &places));
    cr_assert_eq(places.n, 1);
    cr_expect_str_eq(places.list[0].root, "/m");
    cr_expect_str_eq(places.name, "tiny");
    gguf_store_free_places(&places);
    cr_expect_not(gguf_store_find_places(&gguf_direct_access, "tiny", &places));
}
