#include "contrib/runner/cli/run_options.h"

#include "contrib/runner/cli/run_option_table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The most tokens of a part of --bench. */
#define MAX_BENCH 1000000000

static int complain(const char *name, const char *value, const char *needs)
{
    fprintf(stderr, "ggufs-run: %s %s: needs %s\n", name, value, needs);
    return -EINVAL;
}

static bool parse_number(const char *text, double *number)
{
    char *end;

    errno = 0;
    *number = strtod(text, &end);
    return errno == 0 && !isspace((unsigned char)*text) && *text != '\0' && *end == '\0' &&
           isfinite(*number);
}

static int set_number(const struct run_option *option, const char *name, const char *value,
                      void *member)
{
    const bool is_whole = option->kind != RUN_KIND_FRACTION;
    char needs[80];
    double number;

    if (!parse_number(value, &number) || number < option->low || number > option->high ||
        (is_whole && number != floor(number))) {
        snprintf(needs, sizeof needs, "a %snumber from %.10g to %.10g", is_whole ? "whole " : "",
                 option->low, option->high);
        return complain(name, value, needs);
    }
    switch (option->kind) {
    case RUN_KIND_UNSIGNED:
        *(uint32_t *)member = (uint32_t)number;
        break;
    case RUN_KIND_SIGNED:
        *(int32_t *)member = (int32_t)number;
        break;
    case RUN_KIND_LARGE:
        *(int64_t *)member = (int64_t)number;
        break;
    default:
        *(float *)member = (float)number;
    }
    return 0;
}

static int set_seed(struct run_options *options, const char *name, const char *value)
{
    char *end;

    options->has_seed = strcmp(value, "-1") != 0;
    if (!options->has_seed)
        return 0;
    errno = 0;
    options->sampling.seed = strtoull(value, &end, 10);
    if (errno != 0 || !isdigit((unsigned char)*value) || *end != '\0')
        return complain(name, value, "a whole number from 0 to 18446744073709551615, or -1");
    return 0;
}

static int set_cache(struct run_options *options, const char *name, const char *value)
{
    options->is_cache_f16 = strcmp(value, "f16") == 0;
    if (!options->is_cache_f16 && strcmp(value, "f32") != 0)
        return complain(name, value, "f32 or f16");
    return 0;
}

static int set_bench(struct run_options *options, const char *name, const char *value)
{
    const char *comma = strchr(value, ',');
    char *end = NULL;
    unsigned long prompt = 0, predict = 0;

    if (comma && isdigit((unsigned char)value[0]) && isdigit((unsigned char)comma[1])) {
        prompt = strtoul(value, &end, 10);
        if (end == comma)
            predict = strtoul(comma + 1, &end, 10);
    }
    if (!end || *end != '\0' || prompt > MAX_BENCH || predict > MAX_BENCH || prompt + predict == 0)
        return complain(name, value, "two numbers of tokens, as in 512,128");
    options->bench_prompt = (uint32_t)prompt;
    options->bench_predict = (uint32_t)predict;
    return 0;
}

static int add_text(struct run_texts *texts, const char *value)
{
    const char **larger =
        realloc((void *)texts->texts, (texts->n_texts + 1) * sizeof *texts->texts);

    if (!larger) {
        fprintf(stderr, "ggufs-run: %s\n", strerror(ENOMEM));
        return -ENOMEM;
    }
    texts->texts = larger;
    texts->texts[texts->n_texts++] = value;
    return 0;
}

static const char *name_of_task(enum run_task task)
{
    for (size_t i = 0; i < run_option_count; i++) {
        const struct run_option *option = &run_option_table[i];

        if (option->task == task)
            return option->names[option->names[1] ? 1 : 0];
    }
    return "";
}

static int set_task(struct run_options *options, enum run_task task)
{
    const enum run_task before = options->task;

    /* Who asks for help or the version gets it, whatever else they ask. */
    if (before == RUN_TASK_HELP || before == RUN_TASK_VERSION)
        return 0;
    if (before != RUN_TASK_GENERATE && before != task && task != RUN_TASK_HELP &&
        task != RUN_TASK_VERSION) {
        fprintf(stderr, "ggufs-run: %s does not go with %s\n", name_of_task(task),
                name_of_task(before));
        return -EINVAL;
    }
    options->task = task;
    return 0;
}

static int set_option(struct run_options *options, const struct run_option *option,
                      const char *name, const char *value)
{
    void *member = (char *)options + option->at;

    if (option->task != RUN_TASK_GENERATE && set_task(options, option->task) < 0)
        return -EINVAL;
    switch (option->kind) {
    case RUN_KIND_TASK:
        return 0;
    case RUN_KIND_TEXT:
        *(const char **)member = value;
        return 0;
    case RUN_KIND_TEXTS:
        if (*value == '\0')
            return complain(name, "''", "a text");
        return add_text(member, value);
    case RUN_KIND_ON:
    case RUN_KIND_OFF:
        *(bool *)member = option->kind == RUN_KIND_ON;
        return 0;
    case RUN_KIND_SEED:
        return set_seed(options, name, value);
    case RUN_KIND_CACHE:
        return set_cache(options, name, value);
    case RUN_KIND_BENCH:
        return set_bench(options, name, value);
    default:
        return set_number(option, name, value, member);
    }
}

/* The option that a word begins with; `*value` is what the word itself says behind its name. */
static const struct run_option *find_option(const char *word, const char **name, const char **value)
{
    for (size_t i = 0; i < run_option_count; i++) {
        for (size_t j = 0; j < RUN_OPTION_NAMES && run_option_table[i].names[j]; j++) {
            const size_t length = strlen(run_option_table[i].names[j]);
            const bool is_long = run_option_table[i].names[j][1] == '-';

            if (strncmp(word, run_option_table[i].names[j], length) != 0)
                continue;
            *name = run_option_table[i].names[j];
            *value = NULL;
            if (word[length] == '\0')
                return &run_option_table[i];
            *value = word + length + is_long;
            if (is_long ? word[length] == '=' : run_option_table[i].argument != NULL)
                return &run_option_table[i];
        }
    }
    return NULL;
}

static int add_word(struct run_options *options, const char *word)
{
    if (!options->model) {
        options->model = word;
    } else if (!options->prompt) {
        options->prompt = word;
    } else {
        fprintf(stderr,
                "ggufs-run: one argument too many: %s (a prompt of several words goes into "
                "quotes)\n",
                word);
        return -EINVAL;
    }
    return 0;
}

static int refuse(const char *what)
{
    fprintf(stderr, "ggufs-run: %s\n", what);
    return -EINVAL;
}

static int check(const struct run_options *options)
{
    const bool is_text_task = options->task == RUN_TASK_GENERATE || options->task == RUN_TASK_CHAT;

    if (options->task == RUN_TASK_HELP || options->task == RUN_TASK_VERSION)
        return 0;
    if (!options->model)
        return refuse("MOUNT is missing: the directory of a mounted model, or a model file");
    if (options->task == RUN_TASK_LOGITS && (!options->tokens_file || !options->logits_file))
        return refuse("--tokens and --logits go together");
    if (options->prompt && !is_text_task)
        return refuse("a PROMPT goes with generation and -i only");
    if (options->prompt_file && options->task != RUN_TASK_GENERATE)
        return refuse("-f goes with generation only");
    if (options->prompt && options->prompt_file)
        return refuse("there are two prompts: PROMPT and -f");
    if (options->task != RUN_TASK_CHAT && (options->system_text || options->chat_template))
        return refuse("--system and --chat-template go with -i");
    if (options->is_null_separated && options->task != RUN_TASK_TOKENIZE)
        return refuse("-0 goes with --tokenize");
    if (options->is_json &&
        (options->task == RUN_TASK_CHAT || options->task == RUN_TASK_LOGITS ||
         options->task == RUN_TASK_TOKENIZE || options->task == RUN_TASK_DETOKENIZE))
        return refuse("--json goes with generation, --perplexity and --bench");
    return 0;
}

int run_options_parse(int argc, char **argv, struct run_options *options)
{
    bool is_over = false;

    *options = (struct run_options){
        .n_predict = -1,
        .n_context = -1,
        .n_batch = 512,
        .is_warmed_up = true,
        .adds_bos = true,
        .shows_prompt = true,
        .sampling = {.repeat_penalty = 1,
                     .repeat_last_n = 64,
                     .top_k = 40,
                     .top_p = 0.95F,
                     .min_p = 0.05F,
                     .temperature = 0.8F},
    };
    for (int i = 1; i < argc; i++) {
        const struct run_option *option;
        const char *name, *value;
        int code;

        if (is_over || argv[i][0] != '-' || argv[i][1] == '\0') {
            code = add_word(options, argv[i]);
        } else if (strcmp(argv[i], "--") == 0) {
            is_over = true;
            continue;
        } else if (!(option = find_option(argv[i], &name, &value))) {
            fprintf(stderr, "ggufs-run: unknown option %s\n", argv[i]);
            return -EINVAL;
        } else if (!option->argument && value) {
            fprintf(stderr, "ggufs-run: %s takes no value\n", name);
            return -EINVAL;
        } else if (option->argument && !value && i + 1 == argc) {
            fprintf(stderr, "ggufs-run: %s needs %s\n", name, option->argument);
            return -EINVAL;
        } else {
            if (option->argument && !value)
                value = argv[++i];
            code = set_option(options, option, name, value ? value : "");
        }
        if (code < 0)
            return code;
    }
    return check(options);
}

void run_options_free(struct run_options *options)
{
    free((void *)options->stops.texts);
    free((void *)options->mount_options.texts);
}

void run_options_print_usage(FILE *stream)
{
    fprintf(stream, "usage: ggufs-run [options] MOUNT [PROMPT]\n"
                    "       ggufs-run -i [options] MOUNT [PROMPT]\n");
}

void run_options_print_help(FILE *stream)
{
    run_options_print_usage(stream);
    fprintf(stream, "\nRuns the model whose tree is MOUNT, or a model file. A PROMPT of - is read "
                    "from stdin.\n\noptions (in parentheses: what is without them):\n");
    for (size_t i = 0; i < run_option_count; i++) {
        const struct run_option *option = &run_option_table[i];
        char left[80] = "";

        for (size_t j = 0; j < RUN_OPTION_NAMES && option->names[j]; j++) {
            const size_t length = strlen(left);

            snprintf(left + length, sizeof left - length, "%s%s", j > 0 ? ", " : "",
                     option->names[j]);
        }
        if (option->argument) {
            const size_t length = strlen(left);

            snprintf(left + length, sizeof left - length, " %s", option->argument);
        }
        if (strlen(left) > 24)
            fprintf(stream, "  %s\n  %-24s %s\n", left, "", option->help);
        else
            fprintf(stream, "  %-24s %s\n", left, option->help);
    }
    fprintf(stream, "\nggufs-run(1) has more, also on exit statuses.\n");
}
