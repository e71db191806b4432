#include "tests/unit/runner/run_tree_files.h"

#include "gguf/models/key_lists.h"

#include "contrib/runner/compute/thread_pool.h"
#include "tests/unit/runner/metadata_files.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void run_files_make(struct run_files *files)
{
    const char *folder = getenv("TMPDIR");
    char tensors[80];

    *files = (struct run_files){.random = 1};
    snprintf(files->path, sizeof files->path, "%s/ggufs-run-XXXXXX",
             folder && strlen(folder) < 40 ? folder : "/tmp");
    cr_assert_not_null(mkdtemp(files->path), "%s", files->path);
    snprintf(tensors, sizeof tensors, "%s/tensors", files->path);
    cr_assert_eq(mkdir(tensors, 0755), 0);
    files->fd = open(files->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(files->fd, 0);
    run_files_write_text(files, "tensors.json", "[]\n");
    thread_pool_begin_test();
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

void run_files_remove(struct run_files *files)
{
    run_thread_pool_end();
    for (size_t i = 0; i < files->n_tensors; i++)
        free(files->tensors[i].values);
    files->n_tensors = 0;
    close(files->fd);
    cr_assert_eq(nftw(files->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0, "%s", files->path);
}

void run_files_write(const struct run_files *files, const char *name, const void *bytes,
                     size_t n_bytes)
{
    char path[400];
    int fd;

    snprintf(path, sizeof path, "%s/%s", files->path, name);
    for (char *slash = path + strlen(files->path) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        cr_assert(mkdir(path, 0755) == 0 || errno == EEXIST, "%s", path);
        *slash = '/';
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    cr_assert_geq(fd, 0, "%s", path);
    cr_assert_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
    close(fd);
}

void run_files_write_text(const struct run_files *files, const char *name, const char *text)
{
    run_files_write(files, name, text, strlen(text));
}

void run_files_metadata(const struct run_files *files, const char *text)
{
    const int root = open(files->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    cr_assert_geq(root, 0);
    cr_assert_eq(metadata_files_write(root, text, strlen(text)), 0);
    close(root);
}

struct keys {
    const struct run_files *files;
    const char *architecture;
};

static void key_path(const struct keys *keys, int length, const char *key, char path[200])
{
    if (key[0] == '/') /* of no architecture */
        snprintf(path, 200, "metadata/%.*s.json", length - 1, key + 1);
    else
        snprintf(path, 200, "metadata/%s.%.*s.json", keys->architecture, length, key);
}

static bool has_key(const void *user, const char *key)
{
    const struct keys *keys = user;
    char path[200], whole[300];

    key_path(keys, (int)strlen(key), key, path);
    snprintf(whole, sizeof whole, "%s/%s", keys->files->path, path);
    return access(whole, F_OK) == 0;
}

void run_files_complete_keys(const struct run_files *files, const char *architecture)
{
    const struct gguf_architecture *row = gguf_architecture_find(architecture);
    const struct keys keys = {files, architecture};
    struct gguf_string missing;

    while (row && !gguf_check_keys(row, has_key, &keys, &missing)) {
        const bool is_epsilon = gguf_string_contains(missing, "epsilon");
        char path[200];

        key_path(&keys, (int)strcspn(missing.data, "| "), missing.data, path);
        run_files_write_text(files, path, is_epsilon ? "1e-05" : "2");
    }
}

/* Write info and raw of a tensor. Unused dimensions are 0. */
static void write_tensor(const struct run_files *files, const char *name, uint32_t type,
                         const uint64_t ne[RUN_MAX_DIMS], const void *raw, size_t n_bytes)
{
    char path[200], info[200];
    int length = snprintf(info, sizeof info, "{\"ggml_type\": %u, \"ne\": [", type);

    for (size_t i = 0; i < RUN_MAX_DIMS && ne[i] > 0; i++)
        length += snprintf(info + length, sizeof info - (size_t)length, "%s%llu", i ? ", " : "",
                           (unsigned long long)ne[i]);
    snprintf(info + length, sizeof info - (size_t)length, "]}\n");
    snprintf(path, sizeof path, "tensors/%s/info", name);
    run_files_write_text(files, path, info);
    snprintf(path, sizeof path, "tensors/%s/raw", name);
    run_files_write(files, path, raw, n_bytes);
}

void run_files_floats(const struct run_files *files, const char *name, uint64_t ne0, uint64_t ne1,
                      uint64_t ne2, const float *values)
{
    write_tensor(files, name, DEQUANT_F32, (const uint64_t[]){ne0, ne1, ne2, 0}, values,
                 ne0 * (ne1 ? ne1 : 1) * (ne2 ? ne2 : 1) * sizeof *values);
}

const float *run_files_random(struct run_files *files, const char *name, uint64_t ne0, uint64_t ne1,
                              uint64_t ne2, float scale)
{
    float *values = numbers_make(&files->random, scale, ne0 * (ne1 ? ne1 : 1) * (ne2 ? ne2 : 1));

    cr_assert_lt(files->n_tensors, (size_t)RUN_FILES_MAX_TENSORS);
    snprintf(files->tensors[files->n_tensors].name, sizeof files->tensors->name, "%s", name);
    files->tensors[files->n_tensors++].values = values;
    run_files_floats(files, name, ne0, ne1, ne2, values);
    return values;
}

const float *run_files_values(const struct run_files *files, const char *name)
{
    for (size_t i = 0; i < files->n_tensors; i++)
        if (strcmp(files->tensors[i].name, name) == 0)
            return files->tensors[i].values;
    return NULL;
}

void run_files_list(const char *root)
{
    char path[400], info[1000];
    const char *separator = "[\n";
    const struct dirent *entry;
    FILE *list;
    DIR *tensors;

    snprintf(path, sizeof path, "%s/tensors", root);
    tensors = opendir(path);
    snprintf(path, sizeof path, "%s/tensors.json", root);
    list = fopen(path, "w");
    cr_assert(list && tensors, "%s", root);
    while ((entry = readdir(tensors)) != NULL) {
        static const char *const hidden[] = {"\"path\"", "\"gguf_name\""};
        const char *members;
        FILE *file;
        size_t n;

        snprintf(path, sizeof path, "%s/tensors/%s/info", root, entry->d_name);
        file = fopen(path, "r");
        if (!file)
            continue;
        n = fread(info, 1, sizeof info - 1, file);
        fclose(file);
        info[n] = '\0';
        members = strchr(info, '{');
        /* Links count as tensors of their own. */
        for (size_t i = 0; i < 2; i++) {
            char *key = strstr(info, hidden[i]);

            if (key)
                key[1] = '-';
        }
        fprintf(list, "%s{\"name\":\"%s\",%s", separator, entry->d_name,
                members ? members + 1 : info);
        separator = ",\n";
    }
    fprintf(list, "%s]\n", *separator == '[' ? separator : "");
    closedir(tensors);
    cr_assert_eq(fclose(list), 0);
}

struct run_metadata *run_files_open_metadata(const struct run_files *files)
{
    struct run_metadata *metadata;
    struct run_failure failure;

    cr_assert_eq(run_metadata_open(files->fd, &metadata, &failure), 0, "%s", failure.text);
    return metadata;
}

struct run_tree run_files_open(const struct run_files *files)
{
    struct run_failure failure;
    struct run_tree tree;

    run_files_list(files->path);

    cr_assert_eq(run_tree_open(files->path, &tree, &failure), 0, "%s", failure.text);
    return tree;
}

void run_part_open(const struct run_files *files, struct run_part *part)
{
    *part = (struct run_part){.tree = run_files_open(files)};
    part->loader = (struct run_loader){
        .weights = part->tree.weights, .arena = &part->arena, .failure = &part->failure};
}

void run_part_close(struct run_part *part)
{
    run_tree_close(&part->tree);
    run_arena_free(&part->arena);
    run_scratch_free(&part->scratch);
}
