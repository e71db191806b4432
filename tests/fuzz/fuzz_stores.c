/*
 * Target: lists of stores. Each manifest, index, ref and list of files in the store is the input.
 * No path may lead out of the store, and no name may have bytes that terminals obey.
 *
 * The first byte of the input selects the store.
 */
#include "gguf/stores/stores.h"
#include "tests/fuzz/fuzz_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROOT "/store"

static const char *const stores[] = {"ollama:", "hf:", "lmstudio:", "docker:", "ramalama:", "oci:"};

struct input {
    const uint8_t *data;
    size_t size;
};

static int open_input(void *argument, const char *path)
{
    const struct input *input = argument;
    const int descriptor = memfd_create("input", MFD_CLOEXEC);

    FUZZ_CHECK(strncmp(path, ROOT "/", strlen(ROOT "/")) == 0 && !strstr(path, "/.."),
               "the path %s is outside", path);
    FUZZ_CHECK(descriptor >= 0 &&
                   write(descriptor, input->data, input->size) == (ssize_t)input->size,
               "no memory file");
    return descriptor;
}

/* Every folder has files, and until some depth folders, of all names that stores look for. */
static int list_folder(void *argument, const char *path, struct gguf_folder *folder)
{
    static const struct gguf_folder_entry all[] = {
        {.name = "0123456789012345678901234567890123456789012345678901234567890123.incomplete"},
        {.name = "a", .is_folder = true},
        {.name = "latest"},
        {.name = "manifest=o=n=latest.json"},
        {.name = "mmproj.gguf"},
        {.name = "models--o--n", .is_folder = true},
        {.name = "refs", .is_folder = true},
        {.name = "x-Q4_0.gguf"}};
    size_t depth = 0;

    for (const char *c = path; *c != '\0'; c++)
        depth += *c == '/';
    *folder = (struct gguf_folder){.entries = malloc(sizeof all)};
    if (!folder->entries)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!all[i].is_folder || depth == (all[i].name[0] == 'm' ? 1u : 2u) ||
            (all[i].name[0] == 'a' && depth < 6))
            folder->entries[folder->n_entries++] = all[i];
    return 0;
}

static int get_status(void *argument, const char *path, struct gguf_file_status *status)
{
    return -ENOENT;
}

static void check_path(const char *path)
{
    FUZZ_CHECK(!path || (strncmp(path, ROOT, strlen(ROOT)) == 0 && !strstr(path, "/..")),
               "the path %s leads out of the store", path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data + 1, size - 1};
    const struct gguf_store_access access = {open_input, get_status, list_folder, &input};
    struct gguf_model_list list = {0};
    char name[40], reason[GGUF_LIST_REASON_BYTES];

    if (size == 0)
        return 0;
    snprintf(name, sizeof name, "%s" ROOT, stores[data[0] % 16 % (sizeof stores / sizeof *stores)]);
    gguf_store_list(&access, name, &list, reason);
    for (size_t i = 0; i < list.n_models; i++) {
        const struct gguf_listed_model *model = &list.models[i];

        check_path(model->path);
        for (size_t j = 0; j < model->n_extras; j++)
            check_path(model->extras[j].path);
        for (size_t j = 0; j < model->n_shards; j++)
            check_path(model->shards[j]);
        for (const char *c = model->name; *c != '\0'; c++)
            FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f, "the name has a control byte");
    }
    gguf_model_list_free(&list);
    return 0;
}
