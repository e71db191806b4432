/* The model that a folder stands for, and the remedies for names of models elsewhere. */
#include "gguf/stores/model_list.h"
#include "gguf/support/model_paths.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/ggufs-folder-XXXXXX";

static void make(const char *name)
{
    char path[200];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fclose(file);
}

static void clear(void)
{
    char command[100];

    snprintf(command, sizeof command, "rm -rf %s/*  %s/.[!.]*", folder, folder);
    cr_assert_eq(system(command), 0);
}

static void begin(void)
{
    cr_assert_not_null(mkdtemp(folder));
}

static void end(void)
{
    clear();
    rmdir(folder);
}

TestSuite(gguf_folders, .init = begin, .fini = end);

/* Names of files, and the model or the reason. */
static const struct {
    const char *names[4];
    const char *model, *reason;
} cases[] = {
    {{0}, NULL, "is a directory without a GGUF file"},
    {{"a.gguf", "b.txt"}, "a.gguf", NULL},
    {{"A.GGUF"}, "A.GGUF", NULL},
    {{".a.gguf", "b.gguf"}, "b.gguf", NULL},
    {{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}, "m-00001-of-00002.gguf", NULL},
    {{"m-00001-of-00002.gguf", "m.gguf"},
     NULL,
     "has 2 models; name one of: m-00001-of-00002.gguf, m.gguf"},
    {{"a.gguf", "mmproj-a.gguf"}, "a.gguf", NULL},
    {{"MMPROJ.gguf", "x.gguf"}, "x.gguf", NULL},
    {{"mmproj.gguf"}, "mmproj.gguf", NULL},
    {{"a.gguf", "mmproj-a.gguf", "z.gguf"}, NULL, "has 2 models; name one of: a.gguf, z.gguf"},
    {{"a.gguf", "b.gguf", "config.json"}, NULL, "has 2 models; name one of: a.gguf, b.gguf"},
    {{"config.json"}, NULL, "is a directory without a GGUF file"},
    {{"config.json", "model-00001-of-00002.safetensors"},
     NULL,
     "is a checkpoint in safetensors, not GGUF"},
    {{"blobs", "snapshots", "refs"}, NULL, "is a model in the cache of Hugging Face"},
    {{"models--a--b"}, NULL, "is the cache of Hugging Face"},
    {{"blobs", "manifests"}, NULL, "is a store of Ollama"},
    {{"sha256-0123"}, NULL, "is a store of Ollama"},
};

Test(gguf_folders, models)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char reason[GGUF_LIST_REASON_BYTES];
        struct gguf_listed_model model;
        int result;

        for (size_t j = 0; j < 4 && cases[i].names[j]; j++)
            make(cases[i].names[j]);
        result = gguf_find_model(folder, false, &model, reason);
        cr_expect_eq(result, cases[i].model ? 0 : -EISDIR, "case %zu", i);
        if (cases[i].model)
            cr_expect_str_eq(strrchr(model.path, '/') + 1, cases[i].model, "case %zu", i);
        else
            cr_expect_eq(strncmp(reason, cases[i].reason, strlen(cases[i].reason)), 0,
                         "case %zu: %s", i, reason);
        gguf_listed_model_free(&model);
        clear();
    }
}

/* Nothing in a remedy may mean more to a shell than a word. */
Test(gguf_folders, remedies)
{
    static const struct {
        const char *path, *remedy; /* NULL: none */
    } names[] = {
        {"hf.co/a/b", "hf download a/b FILE.gguf --local-dir ."},
        {"a/b-GGUF", "hf download a/b-GGUF FILE.gguf --local-dir ."},
        {"hf.co/a/b:Q4_K_M", "hf download a/b --include '*Q4_K_M*.gguf' --local-dir ."},
        {"https://huggingface.co/a/b/blob/main/c/d.gguf?x=1",
         "hf download a/b c/d.gguf --local-dir ."},
        {"hf:a/b:Q8_0", "hf download a/b --include '*Q8_0*.gguf' --local-dir ."},
        {"hf:a/b/c.gguf", "hf download a/b c.gguf --local-dir ."},
        {"hf://a/b/c/d.gguf", "hf download a/b c/d.gguf --local-dir ."},
        {"hf:a/b;reboot.gguf", "hf download USER/REPOSITORY FILE.gguf --local-dir ."},
        {"hf:a/b/c;reboot.gguf", "hf download a/b FILE.gguf --local-dir ."},
        {"a/b-gguf:Q8_0", "hf download a/b-gguf --include '*Q8_0*.gguf' --local-dir ."},
        {"https://huggingface.co/a/b/tree/main", "hf download a/b FILE.gguf --local-dir ."},
        {"https://huggingface.co/a/b/resolve/main", "hf download a/b FILE.gguf --local-dir ."},
        {"hf.co/a/b:$(reboot)", "hf download a/b FILE.gguf --local-dir ."},
        {"hf.co/a/b/resolve/main/x;reboot", "hf download a/b FILE.gguf --local-dir ."},
        {"hf.co/`reboot`/b", "hf download USER/REPOSITORY FILE.gguf --local-dir ."},
        {"hf.co/-x/b", "hf download USER/REPOSITORY FILE.gguf --local-dir ."},
        {"hf.co/", "hf download USER/REPOSITORY FILE.gguf --local-dir ."},
        {"ollama://llama3.2", "ollama:NAME:TAG"},
        {"https://example.org/x.gguf?a=1&b", "curl -L -O 'https://example.org/x.gguf?a=1&b'"},
        {"https://example.org/x';reboot'", "download the file first"},
        {"llama3:8b", "ollama:llama3:8b"},
        {"folder/model.gguf", NULL},
        {"./a:b", NULL},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char remedy[GGUF_REMEDY_BYTES];

        cr_assert_eq(gguf_remote_remedy(names[i].path, remedy), names[i].remedy != NULL, "%s",
                     names[i].path);
        if (names[i].remedy)
            cr_expect_not_null(strstr(remedy, names[i].remedy), "%s: %s", names[i].path, remedy);
        if (names[i].remedy)
            cr_expect_null(strstr(remedy, "reboot"), "%s: %s", names[i].path, remedy);
    }
}
