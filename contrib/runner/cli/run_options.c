#include "contrib/runner/cli/run_options.h"

#include "contrib/runner/cli/foreign_options.h"
#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_option_table.h"
#include "dequant/types.h"
#include "gguf/support/shard_names.h"
#include "gguf/support/similar_names.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of both numbers of --bench. */
#define MAX_BENCH 1000000000

static int complain(const char *name, const char *value, const char *needs)
{
    run_message("%s %s: needs %s", name, value, needs);
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

struct choice {
    const char *name;
    uint32_t value;
};

static int set_choice(const struct choice choices[3], const char *name, const char *value,
                      uint32_t *member)
{
    char needs[80];

    for (size_t i = 0; i < 3; i++) {
        if (strcmp(value, choices[i].name) == 0) {
            *member = choices[i].value;
            return 0;
        }
    }
    snprintf(needs, sizeof needs, "%s, %s or %s", choices[0].name, choices[1].name,
             choices[2].name);
    return complain(name, value, needs);
}

static int set_cache(struct run_options *options, const char *name, const char *value)
{
    static const struct choice types[] = {
        {"f32", DEQUANT_F32}, {"f16", DEQUANT_F16}, {"q8_0", DEQUANT_Q8_0}};

    return set_choice(types, name, value, &options->cache_type);
}

static int set_drafts(struct run_options *options, const char *name, const char *value)
{
    static const struct choice types[] = {
        {"lookup", 1 << RUN_DRAFT_LOOKUP},
        {"nextn", 1 << RUN_DRAFT_NEXTN},
        {"all", (1 << RUN_N_DRAFT_SOURCES) - 1},
    };

    return set_choice(types, name, value, &options->draft_sources);
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
        run_message("%s", strerror(ENOMEM));
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

    /* --help and --version override everything else. */
    if (before == RUN_TASK_HELP || before == RUN_TASK_VERSION)
        return 0;
    if (before != RUN_TASK_GENERATE && before != task && task != RUN_TASK_HELP &&
        task != RUN_TASK_VERSION) {
        run_message("%s cannot be combined with %s", name_of_task(task), name_of_task(before));
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
    case RUN_KIND_DRAFTS:
        return set_drafts(options, name, value);
    case RUN_KIND_BENCH:
        return set_bench(options, name, value);
    default:
        return set_number(option, name, value, member);
    }
}

/* Return the row of the long option with the name name[0..length-1], without dashes, or NULL. */
static const struct run_option *find_long(const char *name, size_t length)
{
    for (size_t i = 0; i < run_option_count; i++)
        for (size_t j = 0; j < RUN_OPTION_NAMES && run_option_table[i].names[j]; j++) {
            const char *known = run_option_table[i].names[j];

            if (known[1] == '-' && strncmp(known + 2, name, length) == 0 &&
                known[2 + length] == '\0')
                return &run_option_table[i];
        }
    return NULL;
}

/* Return true if a short option can have this value in the same word; -temp is not -t emp. */
static bool can_follow(const struct run_option *option, const char *word, const char *value)
{
    if (!option->argument || find_long(word + 1, strcspn(word + 1, "=")))
        return false;
    return option->kind == RUN_KIND_TEXT || option->kind == RUN_KIND_TEXTS ||
           isdigit((unsigned char)*value) || *value == '-';
}

/*
 * Find the option at the start of a word. Stores in `*value` the value that follows in the same
 * word, or NULL.
 */
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
            if (is_long ? word[length] == '=' : can_follow(&run_option_table[i], word, *value))
                return &run_option_table[i];
        }
    }
    return NULL;
}

static int refuse_unknown(const char *word)
{
    const char *start = word + strspn(word, "-");
    char name[GGUF_LONGEST_NAME + 1] = "";
    const char *closest = NULL;
    size_t least = 0;

    if (strcspn(start, "=") < sizeof name)
        memcpy(name, start, strcspn(start, "="));
    for (size_t i = 0; i < run_option_count && strlen(name) > 1; i++)
        for (size_t j = 0; j < RUN_OPTION_NAMES && run_option_table[i].names[j]; j++)
            if (run_option_table[i].names[j][1] == '-' &&
                gguf_is_closer(name, run_option_table[i].names[j] + 2, &least))
                closest = run_option_table[i].names[j];
    if (closest)
        run_message("unknown option %s; did you mean %s?", word, closest);
    else
        run_message("unknown option %s; ggufs-run --help lists all", word);
    return -EINVAL;
}

/* The arguments that are not options: MODEL, unless -m named it, and PROMPT. */
struct words {
    const char *list[2];
    size_t n;
};

static int add_word(struct words *words, const char *word)
{
    /*
     * Skip the other shards of a split model, which a shell pattern may have named; one is enough.
     */
    if (words->n == 1 && gguf_are_shards_of_one_model(words->list[0], word))
        return 0;
    if (words->n < sizeof words->list / sizeof *words->list) {
        words->list[words->n++] = word;
        return 0;
    }
    run_message("one argument too many: %s (put a prompt of several words in quotes)", word);
    run_options_print_usage(stderr);
    return -EINVAL;
}

static int refuse(const char *what)
{
    run_message("%s", what);
    return -EINVAL;
}

/* Accept `--tokenize TEXT MODEL`, with the text right after the option. */
static bool is_model_last(const struct run_options *options, const struct words *words)
{
    return options->task == RUN_TASK_TOKENIZE && !options->model && words->n == 2 &&
           access(words->list[0], F_OK) != 0 && access(words->list[1], F_OK) == 0;
}

static int take_words(struct run_options *options, const struct words *words)
{
    size_t n = 0;

    if (is_model_last(options, words)) {
        options->prompt = words->list[0];
        options->model = words->list[1];
        return 0;
    }
    if (!options->model && n < words->n)
        options->model = words->list[n++];
    if (options->prompt && n < words->n)
        return refuse("two prompts: -p and PROMPT");
    if (n < words->n)
        options->prompt = words->list[n++];
    return n < words->n ? refuse("two models: -m and MODEL (put a prompt in quotes)") : 0;
}

static int check(const struct run_options *options)
{
    const bool takes_prompt = options->task == RUN_TASK_GENERATE ||
                              options->task == RUN_TASK_CHAT || options->task == RUN_TASK_TOKENIZE;

    if (options->task == RUN_TASK_HELP || options->task == RUN_TASK_VERSION)
        return 0;
    if (!options->model) {
        run_message("MODEL is missing: a model file, or the directory of a mounted model");
        run_options_print_usage(stderr);
        return -EINVAL;
    }
    if (options->task == RUN_TASK_LOGITS && (!options->tokens_file || !options->logits_file))
        return refuse("--tokens and --logits need each other");
    if (options->prompt && !takes_prompt)
        return refuse("a prompt is for generation, -i and --tokenize");
    if (options->prompt_file && options->task != RUN_TASK_GENERATE)
        return refuse("-f is for generation only");
    if (options->prompt && options->prompt_file)
        return refuse("two prompts: PROMPT and -f");
    if (options->task != RUN_TASK_CHAT && (options->system_text || options->chat_template))
        return refuse("--system and --chat-template need -i");
    if (options->is_null_separated && (options->task != RUN_TASK_TOKENIZE || options->prompt))
        return refuse("-0 needs --tokenize and texts on stdin");
    if (options->is_json &&
        (options->task == RUN_TASK_CHAT || options->task == RUN_TASK_LOGITS ||
         options->task == RUN_TASK_TOKENIZE || options->task == RUN_TASK_DETOKENIZE))
        return refuse("--json is for generation, --perplexity and --bench");
    return 0;
}

int run_options_parse(int argc, char **argv, struct run_options *options)
{
    struct words words = {0};
    bool is_over = false;

    *options = (struct run_options){
        .n_predict = -1,
        .n_context = -1,
        .n_batch = 512,
        .n_drafts = -1,
        .is_warmed_up = true,
        .adds_bos = true,
        .shows_prompt = true,
        .is_confined = true,
        .sampling = {.repeat_penalty = 1,
                     .repeat_last_n = 64,
                     .top_k = 40,
                     .top_p = 0.95F,
                     .min_p = 0.05F,
                     .temperature = 0.8F},
    };
    for (int i = 1; i < argc; i++) {
        const struct run_option *option;
        const char *name, *value, *hint;
        int code;

        if (is_over || argv[i][0] != '-' || argv[i][1] == '\0') {
            code = add_word(&words, argv[i]);
        } else if (strcmp(argv[i], "--") == 0) {
            is_over = true;
            continue;
        } else if ((hint = run_foreign_option_hint(argv[i]))) {
            run_message("%.*s: %s", (int)strcspn(argv[i], "="), argv[i], hint);
            return -EINVAL;
        } else if (!(option = find_option(argv[i], &name, &value))) {
            return refuse_unknown(argv[i]);
        } else if (!option->argument && value) {
            run_message("%s takes no value", name);
            return -EINVAL;
        } else if (option->argument && !value && i + 1 == argc) {
            run_message("%s needs %s", name, option->argument);
            return -EINVAL;
        } else {
            if (option->argument && !value)
                value = argv[++i];
            code = set_option(options, option, name, value ? value : "");
        }
        if (code < 0)
            return code;
    }
    if (options->task != RUN_TASK_HELP && options->task != RUN_TASK_VERSION &&
        take_words(options, &words) < 0)
        return -EINVAL;
    if (!options->is_confined && add_text(&options->mount_options, "nosandbox") < 0)
        return -ENOMEM;
    return check(options);
}

void run_options_free(struct run_options *options)
{
    free((void *)options->stops.texts);
    free((void *)options->mount_options.texts);
}

void run_options_print_usage(FILE *stream)
{
    fprintf(stream, "usage: ggufs-run [options] MODEL [PROMPT]\n"
                    "       ggufs-run -i [options] MODEL [PROMPT]\n");
}

void run_options_print_help(FILE *stream)
{
    run_options_print_usage(stream);
    fprintf(stream,
            "\nRuns MODEL: the directory of a mounted model, or a model file. If PROMPT is -, "
            "it is read from stdin.\n\noptions (defaults in parentheses):\n");
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
    fprintf(stream, "\nThe manual, ggufs-run(1), describes them in full, and exit statuses.\n");
}
