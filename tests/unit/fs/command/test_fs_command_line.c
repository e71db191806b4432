/* The command line of ggufs: which words are models, paths and directories, and the options. */
#include "fs/command/command_line.h"
#include "fs/command/tensor_choice.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/ggufs-words-XXXXXX";

/* The words name files in a folder of their own: m.gguf and n.gguf exist. */
static void begin(void)
{
    static const char *const files[] = {"m.gguf", "n.gguf", "s-00001-of-00002.gguf",
                                        "s-00002-of-00002.gguf"};

    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        close(open(files[i], O_CREAT | O_WRONLY, 0600));
    cr_redirect_stderr();
}

static void end(void)
{
    static const char *const files[] = {"m.gguf", "n.gguf", "s-00001-of-00002.gguf",
                                        "s-00002-of-00002.gguf"};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(files[i]);
    cr_assert_eq(chdir("/"), 0);
    rmdir(folder);
}

TestSuite(fs_command_line, .init = begin, .fini = end);

static int parse(char *const *words, struct fs_options *options)
{
    char *argv[20] = {"ggufs"};
    int argc = 1;

    for (; *words; words++)
        argv[argc++] = *words;
    return fs_options_parse(argc, argv, options);
}

#define PARSE(options, ...) parse((char *[]){__VA_ARGS__, NULL}, options)

Test(fs_command_line, words)
{
    static const struct {
        char *words[8];
        enum fs_command command;
        const char *models[2], *directory, *paths[2];
    } cases[] = {
        {{"m.gguf", "mnt"}, FS_MOUNT, {"m.gguf"}, "mnt", {0}},
        {{"--", "m.gguf", "-x"}, FS_MOUNT, {"m.gguf"}, "-x", {0}},
        {{"s-00001-of-00002.gguf", "s-00002-of-00002.gguf", "mnt"},
         FS_MOUNT,
         {"s-00001-of-00002.gguf"},
         "mnt",
         {0}},
        {{"--info", "m.gguf", "n.gguf"}, FS_INFO, {"m.gguf", "n.gguf"}, NULL, {0}},
        {{"--info", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"},
         FS_INFO,
         {"s-00001-of-00002.gguf"},
         NULL,
         {0}},
        {{"--cat", "a", "b", "m.gguf"}, FS_CAT, {"m.gguf"}, NULL, {"a", "b"}},
        {{"--cat", "m.gguf", "a", "b"}, FS_CAT, {"m.gguf"}, NULL, {"a", "b"}},
        {{"--cat", "a", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"},
         FS_CAT,
         {"s-00001-of-00002.gguf"},
         NULL,
         {"a"}},
        {{"--cat", "a", "lost.gguf"}, FS_CAT, {"lost.gguf"}, NULL, {"a"}},
        {{"--cat", "lost.gguf", "a"}, FS_CAT, {"lost.gguf"}, NULL, {"a"}},
        {{"--list", "tensors", "m.gguf"}, FS_LIST, {"m.gguf"}, NULL, {"tensors"}},
        {{"m.gguf", "--list"}, FS_LIST, {"m.gguf"}, NULL, {0}},
        {{"--extract", "out", "m.gguf", "a"}, FS_EXTRACT, {"m.gguf"}, "out", {"a"}},
        {{"--extract", "m.gguf", "out", "a"}, FS_EXTRACT, {"m.gguf"}, "out", {"a"}},
        {{"--diff", "m.gguf", "n.gguf", "a*"}, FS_DIFF, {"m.gguf", "n.gguf"}, NULL, {"a*"}},
        {{"--diff", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"},
         FS_DIFF,
         {"s-00001-of-00002.gguf", "s-00002-of-00002.gguf"},
         NULL,
         {0}},
        {{"--status", "mnt"}, FS_STATUS, {0}, NULL, {"mnt"}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fs_options options;

        cr_assert_eq(parse(cases[i].words, &options), 0, "case %zu", i);
        cr_expect_eq(options.command, cases[i].command, "case %zu", i);
        for (int j = 0; j < 2; j++) {
            const char *model = j < options.n_models ? options.models[j] : NULL;
            const char *path = j < options.n_paths ? options.paths[j] : NULL;

            cr_expect(cases[i].models[j] ? model && strcmp(model, cases[i].models[j]) == 0 : !model,
                      "case %zu, model %d: %s", i, j, model ? model : "none");
            cr_expect(cases[i].paths[j] ? path && strcmp(path, cases[i].paths[j]) == 0 : !path,
                      "case %zu, path %d: %s", i, j, path ? path : "none");
        }
        cr_expect(cases[i].directory
                      ? options.directory && strcmp(options.directory, cases[i].directory) == 0
                      : !options.directory,
                  "case %zu", i);
        fs_options_free(&options);
    }
}

Test(fs_command_line, refusals)
{
    static char *const cases[][5] = {
        {NULL},
        {"m.gguf"},
        {"mnt", "m.gguf"},
        {"mnt", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"},
        {"info"},
        {"--info"},
        {"--cat", "m.gguf"},
        {"--extract", "m.gguf"},
        {"--diff", "m.gguf"},
        {"--list", "--cat", "m.gguf"},
        {"--json", "--cat", "a", "m.gguf"},
        {"-o", "split=1M", "--check", "m.gguf"},
        {"-o", "uid=4294967295", "m.gguf", "mnt"},
        {"-o", "type=x", "m.gguf", "mnt"},
        {"-o", "subdir=", "m.gguf", "mnt"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fs_options options;

        cr_expect_eq(parse(cases[i], &options), -EINVAL, "case %zu", i);
        fs_options_free(&options);
    }
}

Test(fs_command_line, options)
{
    struct fs_options options;

    cr_assert_eq(PARSE(&options, "m.gguf", "mnt", "-o", "export=Q8_0,dtype=f16,ik=old,era=1,ro",
                       "-ouid=7,umask=22,split=2G,nodev,defaults", "-f", "-o",
                       "family=bloom,size=10,offset=3,partial"),
                 0);
    cr_expect_eq(options.export, FS_EXPORT_Q8_0);
    cr_expect_eq(options.dtype, FS_DTYPE_F16);
    cr_expect(options.open.old_ik);
    cr_expect_eq(options.open.era, 2);
    cr_expect_eq(options.mount.uid, 7);
    cr_expect_eq(options.mount.umask, 022);
    cr_expect_eq(options.split.limit_bytes, 2000000000);
    cr_expect(options.mount.foreground);
    cr_expect_str_eq(options.open.family, "bloom");
    cr_expect_eq(options.open.size_bytes, 10);
    cr_expect_eq(options.open.offset, 3);
    cr_expect(options.open.partial);
    cr_expect_not(options.mount.keep_cache);
    cr_assert_eq(options.mount.fuse.n_texts, 2);
    cr_expect_str_eq(options.mount.fuse.texts[0], "ro");
    cr_expect_str_eq(options.mount.fuse.texts[1], "nodev");
    fs_options_free(&options);
}

/* Only options that may change the tree change the number that stands for them. */
Test(fs_command_line, options_of_the_contents)
{
    static char *const cases[][4] = {{"m.gguf", "mnt", "-oro"},
                                     {"m.gguf", "mnt", "-ouid=1"},
                                     {"m.gguf", "mnt", "-oexport=f16"},
                                     {"m.gguf", "mnt", "-oexport=f32"}};
    uint64_t numbers[4];

    for (size_t i = 0; i < 4; i++) {
        struct fs_options options;

        cr_assert_eq(parse(cases[i], &options), 0, "case %zu", i);
        numbers[i] = options.content_options;
        fs_options_free(&options);
    }
    cr_expect_eq(numbers[0], 0);
    cr_expect_eq(numbers[1], 0);
    cr_expect_neq(numbers[2], 0);
    cr_expect_neq(numbers[2], numbers[3]);
}

Test(fs_command_line, patterns_of_tensors)
{
    static const char *const patterns[] = {"tensors/blk.*", "a%2fb", "token_embd.weight"};
    static const struct {
        const char *name;
        bool is_chosen;
    } names[] = {{"blk.0.x", true}, {"token_embd.weight", true}, {"output.weight", false}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_eq(fs_is_tensor_chosen(
                         patterns, 3, (struct gguf_string){names[i].name, strlen(names[i].name)}),
                     names[i].is_chosen, "%s", names[i].name);
    cr_expect(fs_is_tensor_chosen(patterns, 0, (struct gguf_string){"x", 1}));
}
