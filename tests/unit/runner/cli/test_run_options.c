#include "contrib/runner/cli/run_options.h"
#include "dequant/types.h"
#include "gguf/support/strings.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <string.h>

#define PARSE(options, ...)                                                                        \
    run_options_parse(sizeof((char *[]){"ggufs-run", __VA_ARGS__}) / sizeof(char *),               \
                      (char *[]){"ggufs-run", __VA_ARGS__}, options)

Test(run_options, values)
{
    struct run_options options;

    cr_assert_eq(PARSE(&options, "-n", "-1", "--temp=0", "-c4", "--stop", "a", "mnt", "-r", "b",
                       "--no-bos", "-s", "18446744073709551615", "--cache-type", "q8_0",
                       "a prompt"),
                 0);
    cr_expect_eq(options.task, RUN_TASK_GENERATE);
    cr_expect_eq(options.n_predict, -1);
    cr_expect_eq(options.n_context, 4);
    cr_expect_eq(options.sampling.temperature, 0);
    cr_expect_eq(options.sampling.seed, UINT64_MAX);
    cr_expect(options.has_seed);
    cr_expect_eq(options.cache_type, DEQUANT_Q8_0);
    cr_expect_not(options.adds_bos);
    cr_expect_str_eq(options.model, "mnt");
    cr_expect_str_eq(options.prompt, "a prompt");
    cr_assert_eq(options.stops.n_texts, 2);
    cr_expect_str_eq(options.stops.texts[1], "b");
    run_options_free(&options);
}

Test(run_options, all_shards_as_arguments)
{
    struct run_options options;

    cr_assert_eq(PARSE(&options, "m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                       "m-00003-of-00003.gguf", "a prompt"),
                 0);
    cr_expect_str_eq(options.model, "m-00001-of-00003.gguf");
    cr_expect_str_eq(options.prompt, "a prompt");
    run_options_free(&options);

    /* A file of another model is not a shard of this one, and a prompt may be a path. */
    cr_assert_eq(PARSE(&options, "m-00001-of-00003.gguf", "n-00002-of-00003.gguf"), 0);
    cr_expect_str_eq(options.prompt, "n-00002-of-00003.gguf");
    run_options_free(&options);
    cr_assert_eq(PARSE(&options, "lost.gguf", "/dev/null"), 0);
    cr_expect_str_eq(options.prompt, "/dev/null");
    run_options_free(&options);
}

Test(run_options, model_and_prompt)
{
    static char *const same[][6] = {
        {"ggufs-run", "m", "a prompt"},         {"ggufs-run", "-m", "m", "a prompt"},
        {"ggufs-run", "a prompt", "--model=m"}, {"ggufs-run", "-p", "a prompt", "m"},
        {"ggufs-run", "-pa prompt", "-mm"},     {"ggufs-run", "--tokenize", "-m", "m", "a prompt"},
    };

    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct run_options options;
        int argc = 0;

        while (argc < 6 && same[i][argc])
            argc++;
        cr_assert_eq(run_options_parse(argc, (char **)same[i], &options), 0, "case %zu", i);
        cr_expect_str_eq(options.model, "m", "case %zu", i);
        cr_expect_str_eq(options.prompt, "a prompt", "case %zu", i);
        run_options_free(&options);
    }
}

Test(run_options, no_sandbox_applies_to_both_processes)
{
    struct run_options options;

    cr_assert_eq(PARSE(&options, "m"), 0);
    cr_expect(options.is_confined);
    cr_expect_eq(options.mount_options.n_texts, 0);
    run_options_free(&options);
    cr_assert_eq(PARSE(&options, "--no-sandbox", "m"), 0);
    cr_expect_not(options.is_confined);
    cr_assert_eq(options.mount_options.n_texts, 1);
    cr_expect_str_eq(options.mount_options.texts[0], "nosandbox");
    run_options_free(&options);
}

/* Options of other runners are refused with a hint, or taken and left unused. */
Test(run_options, options_of_other_runners, .init = cr_redirect_stderr)
{
    size_t n = 0;

    for (size_t i = 0; i < run_command_line.n_rows; i++) {
        const struct gguf_option *row = &run_command_line.rows[i];
        const char *names = row->names;
        struct gguf_string word;

        while (!row->help && gguf_next_word(&names, &word)) {
            char name[40];
            struct run_options options;

            snprintf(name, sizeof name, "%.*s", (int)word.length_bytes, word.data);
            cr_expect_eq(gguf_option_find(&run_command_line, name, strlen(name)), row, "%s", name);
            cr_expect_eq(row->argument && !row->fits ? PARSE(&options, name, "v", "m")
                                                     : PARSE(&options, name, "m"),
                         row->without_value ? -EINVAL : 0, "%s", name);
            cr_expect(row->without_value || strcmp(options.model, "m") == 0, "%s", name);
            run_options_free(&options);
            n++;
        }
    }
    cr_expect_gt(n, 100);
}

/* `-ngl MODEL PROMPT`: the model is not taken as the value that was forgotten. */
Test(run_options, a_forgotten_value, .init = cr_redirect_stderr)
{
    struct run_options options;

    cr_assert_eq(PARSE(&options, "-ngl", "/proc/self/exe", "hi"), -EINVAL);
    fflush(stderr);
    cr_expect_stderr_eq_str(
        "ggufs-run: -ngl takes a value, but /proc/self/exe is a file or directory; leave -ngl out, "
        "it changes nothing here\n");
    run_options_free(&options);
}

/* A value in the word of the option was not forgotten. */
Test(run_options, a_value_that_is_a_file, .init = cr_redirect_stderr)
{
    struct run_options options;

    cr_assert_eq(PARSE(&options, "--flash-attn=/proc/self/exe", "-ngl=/proc/self/exe", "m"), 0);
    cr_expect_str_eq(options.model, "m");
    run_options_free(&options);
}

/* The values of llama.cpp's options, with and without them, and one warning for all. */
Test(run_options, options_without_effect, .init = cr_redirect_stderr)
{
    struct run_options options;

    cr_assert_eq(PARSE(&options, "-ngl", "99", "--n-gpu-layers=9", "-fa", "on", "--flash-attn",
                       "--color", "--jinja", "-no-cnv", "-fit", "off", "--no-mmap", "-co", "m",
                       "text"),
                 0);
    cr_expect_str_eq(options.model, "m");
    cr_expect_str_eq(options.prompt, "text");
    fflush(stderr);
    cr_expect_stderr_eq_str(
        "ggufs-run: warning: these options change nothing here: -ngl, --n-gpu-layers=9, "
        "-fa, --flash-attn, --color, --jinja, -no-cnv, -fit, --no-mmap, -co\n");
    run_options_free(&options);
}

Test(run_options, double_dash_ends_the_options)
{
    struct run_options options;

    cr_assert_eq(PARSE(&options, "mnt", "--", "--temp"), 0);
    cr_expect_str_eq(options.prompt, "--temp");
    run_options_free(&options);
    cr_assert_eq(PARSE(&options, "mnt", "-"), 0);
    cr_expect_str_eq(options.prompt, "-");
    run_options_free(&options);
}

Test(run_options, tasks)
{
    struct run_options options;

    cr_assert_eq(PARSE(&options, "--bench", "32,8", "mnt"), 0);
    cr_expect_eq(options.task, RUN_TASK_BENCH);
    cr_expect_eq(options.bench_prompt, 32);
    cr_expect_eq(options.bench_predict, 8);
    cr_expect_eq(options.bench_depth, 0);
    run_options_free(&options);
    cr_assert_eq(PARSE(&options, "--bench", "3,0@100", "mnt"), 0);
    cr_expect_eq(options.bench_prompt, 3);
    cr_expect_eq(options.bench_predict, 0);
    cr_expect_eq(options.bench_depth, 100);
    run_options_free(&options);
    cr_assert_eq(PARSE(&options, "--tokens", "a", "--logits", "b", "mnt"), 0);
    cr_expect_eq(options.task, RUN_TASK_LOGITS);
    run_options_free(&options);
    cr_assert_eq(PARSE(&options, "--tokenize", "--help"), 0);
    cr_expect_eq(options.task, RUN_TASK_HELP);
    run_options_free(&options);
}

Test(run_options, invalid_options_are_refused, .init = cr_redirect_stderr)
{
    static char *const wrong[][6] = {
        {"ggufs-run"},
        {"ggufs-run", "--frobnicate", "mnt"},
        {"ggufs-run", "-x", "mnt"},
        {"ggufs-run", "mnt", "prompt", "third"},
        {"ggufs-run", "a prompt", "/dev/null"},
        {"ggufs-run", "mnt", "-n"},
        {"ggufs-run", "mnt", "-n", "x"},
        {"ggufs-run", "mnt", "-n", "1.5"},
        {"ggufs-run", "mnt", "-n", "-2"},
        {"ggufs-run", "mnt", "-b", "0"},
        {"ggufs-run", "mnt", "--temp", "-1"},
        {"ggufs-run", "mnt", "--temp", "nan"},
        {"ggufs-run", "mnt", "--top-p", "1.1"},
        {"ggufs-run", "mnt", "--seed", "-2"},
        {"ggufs-run", "mnt", "--seed", "18446744073709551616"},
        {"ggufs-run", "mnt", "--stop", ""},
        {"ggufs-run", "mnt", "--cache-type", "q4_0"},
        {"ggufs-run", "mnt", "--json=1"},
        {"ggufs-run", "mnt", "--tokens", "a"},
        {"ggufs-run", "mnt", "-i", "--tokenize"},
        {"ggufs-run", "mnt", "-i", "--template-arg", "x"},
        {"ggufs-run", "mnt", "--messages", "x", "-p", "y"},
        {"ggufs-run", "mnt", "-i", "-f", "x"},
        {"ggufs-run", "mnt", "-i", "--chat-template", "none"},
        {"ggufs-run", "mnt", "-n", "0x10"},
        {"ggufs-run", "mnt", "--bench", "1,1", "prompt"},
        {"ggufs-run", "-m", "mnt", "prompt", "third"},
        {"ggufs-run", "-p", "prompt", "mnt", "third"},
        {"ggufs-run", "-p", "prompt", "mnt", "-f", "x"},
        {"ggufs-run", "-p", "prompt"},
        {"ggufs-run", "mnt", "-0", "--tokenize", "prompt"},
        {"ggufs-run", "mnt", "-0"},
        {"ggufs-run", "mnt", "--system", "x"},
        {"ggufs-run", "mnt", "prompt", "-f", "x"},
        {"ggufs-run", "mnt", "--bench", "1"},
        {"ggufs-run", "mnt", "--bench", "0,0"},
        {"ggufs-run", "mnt", "--bench", "1,2x"},
        {"ggufs-run", "mnt", "--bench", "1,2@"},
        {"ggufs-run", "mnt", "--bench", "1,2@3x"},
        {"ggufs-run", "mnt", "--bench", "0,0@3"},
        {"ggufs-run", "mnt", "--bench", "-1,2"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct run_options options;
        int argc = 0;

        while (argc < 6 && wrong[i][argc])
            argc++;
        cr_expect_eq(run_options_parse(argc, (char **)wrong[i], &options), -EINVAL, "case %zu", i);
        run_options_free(&options);
    }
}
