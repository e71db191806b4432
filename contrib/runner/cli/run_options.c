#include "contrib/runner/cli/run_options.h"

#include "contrib/runner/chat/conversation.h"
#include "contrib/runner/cli/messages.h"
#include "contrib/runner/compute/thread_pool.h"
#include "dequant/types.h"
#include "gguf/support/shard_names.h"
#include "gguf/support/strings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TOKENS 2147483647

#define BIT(task) (1u << (task))
#define HEADING(title)                                                                             \
    {                                                                                              \
        .help = (title), .kind = GGUF_OPTION_HEADING                                               \
    }
#define TASK(task)      .command = (task)
#define SET(kind, name) GGUF_OPTION_##kind, .offset = offsetof(struct run_options, name)
#define RANGE(from, to) .least = (from), .most = (to)
#define FOR(tasks)      .commands = (tasks)
#define CALL(handler)   GGUF_OPTION_HANDLER, .handle = (handler)
#define REFUSED         "VALUE", NULL, CALL(refuse_foreign), .fits = is_nothing, .without_value

static const struct gguf_choice cache_types[] = {
    {"f32", DEQUANT_F32}, {"f16", DEQUANT_F16}, {"q8_0", DEQUANT_Q8_0}, {0}};
static const struct gguf_choice draft_types[] = {{"lookup", 1u << RUN_DRAFT_LOOKUP},
                                                 {"nextn", 1u << RUN_DRAFT_NEXTN},
                                                 {"all", (1u << RUN_N_DRAFT_SOURCES) - 1},
                                                 {0}};

static int refuse_value(const struct gguf_option_use *use, const char *needs)
{
    run_message("option %s %s: needs %s", use->shown, use->value, needs);
    return -EINVAL;
}

static int take_seed(void *target, const struct gguf_option_use *use)
{
    struct run_options *options = target;
    char *end;

    options->has_seed = strcmp(use->value, "-1") != 0;
    if (!options->has_seed)
        return 0;
    errno = 0;
    options->sampling.seed = strtoull(use->value, &end, 10);
    if (errno != 0 || !isdigit((unsigned char)*use->value) || *end != '\0')
        return refuse_value(use, "a whole number from 0 to 18446744073709551615, or -1");
    return 0;
}

static int take_bench(void *target, const struct gguf_option_use *use)
{
    struct run_options *options = target;
    char digits[3][10] = {"", "", "0"};
    int ends[2] = {0, 0};
    const int n = sscanf(use->value, "%9[0-9],%9[0-9]%n@%9[0-9]%n", digits[0], digits[1], &ends[0],
                         digits[2], &ends[1]);

    if (n < 2 || use->value[ends[n - 2]] != '\0' || atoi(digits[0]) + atoi(digits[1]) == 0)
        return refuse_value(use, "numbers of tokens, as in 512,128 or 512,128@4096");
    options->bench_prompt = (uint32_t)atoi(digits[0]);
    options->bench_predict = (uint32_t)atoi(digits[1]);
    options->bench_depth = (uint32_t)atoi(digits[2]);
    return 0;
}

/* ---- options of other runners, mainly llama.cpp's llama-cli, that ggufs-run lacks ---- */

static bool is_nothing(const char *word)
{
    return false;
}

static bool is_switch(const char *word)
{
    return gguf_words_have("on off auto 1 0 true false enabled disabled", gguf_string_of(word));
}

static int refuse_foreign(void *target, const struct gguf_option_use *use)
{
    run_message("%s: %s", use->shown, use->option->without_value);
    return -EINVAL;
}

/* Take an option that changes nothing here. */
static int take_unused(void *target, const struct gguf_option_use *use)
{
    struct run_options *options = target;

    /* A word of its own may be MODEL, with the value forgotten. */
    if (use->value && strcmp(use->whole, use->shown) == 0 && access(use->value, F_OK) == 0) {
        run_message("%s takes a value, but %s is a file or directory; leave %s out, it changes "
                    "nothing here",
                    use->shown, use->value, use->shown);
        return -EINVAL;
    }
    return gguf_texts_add(&options->unused, use->whole);
}

/* ---- the table ---- */

/* clang-format would put each member on a line: */
/* clang-format off */
static const struct gguf_option rows[] = {
    HEADING("Text (defaults in parentheses)"),
    {"-i --interactive", NULL, "chat, with the model's template", SET(ON, is_interactive),
     TASK(RUN_TASK_CHAT)},
    {"--messages", "FILE", "answer a conversation: JSON, as in OpenAI's API; -: stdin",
     SET(TEXT, variables.messages), TASK(RUN_TASK_CHAT)},
    {"-n --predict --n-predict", "N", "generate at most N tokens; -1: no limit (-1)",
     SET(INT64, n_predict), RANGE(-1, MOST_TOKENS)},
    {"-p --prompt", "TEXT", "the prompt; instead of PROMPT", SET(TEXT, prompt),
     FOR(BIT(RUN_TASK_GENERATE) | BIT(RUN_TASK_CHAT) | BIT(RUN_TASK_TOKENIZE))},
    {"-f --file", "FILE", "read the prompt from FILE", SET(TEXT, prompt_file),
     FOR(BIT(RUN_TASK_GENERATE))},
    {"-r --stop --reverse-prompt", "TEXT", "end before TEXT; may be given several times",
     SET(TEXTS, stops)},
    {"--system", "TEXT", "with -i: the system message", SET(TEXT, system_text),
     FOR(BIT(RUN_TASK_CHAT))},
    {"--chat-template", "NAME", "with -i: another template, by name or in a file",
     SET(TEXT, chat_template), FOR(BIT(RUN_TASK_CHAT))},
    {"--template-arg", "KEY=JSON", "with -i: set a variable of the template",
     SET(PAIRS, variables.arguments), FOR(BIT(RUN_TASK_CHAT))},
    {"--tools", "FILE", "with -i: the tools that the model may call, a list in JSON",
     SET(TEXT, variables.tools), FOR(BIT(RUN_TASK_CHAT))},
    {"--no-think", NULL, "with -i: answer without thinking, if the template can",
     SET(OFF, thinks), FOR(BIT(RUN_TASK_CHAT))},
    {"--no-display-prompt", NULL, "print only the generated text", SET(OFF, shows_prompt)},
    {"--verbose-prompt", NULL, "print the tokens of the prompt to stderr",
     SET(ON, shows_prompt_tokens)},
    {"--special", NULL, "read special tokens in prompts, and write them", SET(ON, is_special)},
    {"--no-bos", NULL, "do not start with the model's BOS token", SET(OFF, adds_bos)},
    {"--ignore-eos", NULL, "never choose a token that ends the text", SET(ON, ignores_end)},

    HEADING("Sampling"),
    {"--temp", "X", "temperature; 0: always the most likely token (0.8)",
     SET(FLOAT, sampling.temperature), RANGE(0, 1e6)},
    {"-s --seed", "N", "the same seed gives the same text; -1: random (-1)", CALL(take_seed)},
    {"--top-k", "N", "keep the N most likely tokens; 0: all (40)", SET(UINT32, sampling.top_k),
     RANGE(0, MOST_TOKENS)},
    {"--top-p", "P", "keep the top tokens that add up to P; 1: all (0.95)",
     SET(FLOAT, sampling.top_p), RANGE(0, 1)},
    {"--min-p", "P", "drop tokens below P times the top probability (0.05)",
     SET(FLOAT, sampling.min_p), RANGE(0, 1)},
    {"--repeat-penalty", "X", "penalize repeated tokens by factor X; 1: off (1)",
     SET(FLOAT, sampling.repeat_penalty), RANGE(0.01, 100)},
    {"--repeat-last-n", "N", "penalize the last N tokens; -1: all (64)",
     SET(INT32, sampling.repeat_last_n), RANGE(-1, MOST_TOKENS)},

    HEADING("Model and speed"),
    {"-m --model", "MODEL", "the mounted tree or model file; instead of MODEL", SET(TEXT, model)},
    {"-c --ctx-size", "N", "tokens of context; 0: as trained (so, but at most 4096)",
     SET(INT64, n_context), RANGE(0, MOST_TOKENS)},
    {"-t --threads", "N", "compute with N threads (one per core)", SET(UINT32, n_threads),
     RANGE(1, RUN_MAX_THREADS)},
    {"-b --batch-size", "N", "compute N tokens of a prompt at once (512)", SET(UINT32, n_batch),
     RANGE(1, 1 << 20)},
    {"--cache-type", "TYPE", "store keys and values as f32, f16 or q8_0 (f16)",
     SET(CHOICE, cache_type), .choices = cache_types},
    {"--draft --draft-max", "N", "draft up to N tokens for a pass; 0: none (15)",
     SET(INT32, n_drafts), RANGE(0, RUN_MOST_DRAFTS)},
    {"--draft-type", "TYPE", "draft by lookup (prompt lookup), nextn (layers) or all (all)",
     SET(CHOICE, draft_sources), .choices = draft_types},
    {"--exact", NULL, "multiply in floats; the default is 8-bit activations", SET(ON, is_exact)},
    {"--no-warmup", NULL, "do not read weights before they are needed", SET(OFF, is_warmed_up)},
    {"-o --mount-option", "OPTION", "pass -o OPTION to ggufs when it mounts a model file",
     SET(TEXTS, mount_options)},
    {"--no-sandbox", NULL, "run without the sandbox, ggufs as well", SET(OFF, is_confined)},

    HEADING("Other tasks"),
    {"--tokenize", NULL, "print the ids of PROMPT, or of the text on stdin", GGUF_OPTION_NOTHING,
     TASK(RUN_TASK_TOKENIZE)},
    {"-0 --null", NULL, "with --tokenize: NUL-terminated texts, a line each",
     SET(ON, is_null_separated), FOR(BIT(RUN_TASK_TOKENIZE))},
    {"--tokens", "FILE", "compute logits of these ids, 32-bit little-endian",
     SET(TEXT, tokens_file), TASK(RUN_TASK_LOGITS)},
    {"--logits", "FILE", "write the logits here, 32-bit floats; -: stdout",
     SET(TEXT, logits_file), TASK(RUN_TASK_LOGITS)},
    {"--bench", "P,N[@D]", "measure P prompt tokens and N generated ones, after D", CALL(take_bench),
     TASK(RUN_TASK_BENCH)},
    {"--json", NULL, "print one JSON object", SET(ON, is_json),
     FOR(BIT(RUN_TASK_GENERATE) | BIT(RUN_TASK_CHAT) | BIT(RUN_TASK_BENCH))},
    {"-h --help", NULL, "print this help and exit", GGUF_OPTION_NOTHING, TASK(RUN_TASK_HELP)},
    {"-V --version", NULL, "print the version and exit", GGUF_OPTION_NOTHING,
     TASK(RUN_TASK_VERSION)},

    /* Options of other runners; names from llama.cpp's common/arg.cpp. */
    /* Devices and memory: the CPU is the only device, and weights are always mapped. */
    {"-ngl --gpu-layers --n-gpu-layers -mg --main-gpu -sm --split-mode -ts --tensor-split -dev "
     "--device -ncmoe --n-cpu-moe -ot --override-tensor -fitt --fit-target -fitc --fit-ctx "
     "-ub --ubatch-size -tb --threads-batch --prio --poll --numa",
     "N", NULL, CALL(take_unused)},
    {"-cmoe --cpu-moe -nkvo --no-kv-offload -kvo --kv-offload -nr --no-repack --mlock --mmap "
     "--no-mmap --no-host",
     NULL, NULL, CALL(take_unused)},
    {"-fa --flash-attn -fit --fit", "on|off", NULL, CALL(take_unused), .fits = is_switch},
    /* The default: the prompt is continued, the text goes to stdout, all else to stderr. */
    {"-no-cnv --no-conversation --jinja --no-jinja --no-escape --simple-io --perf --no-perf "
     "--log-disable",
     NULL, NULL, CALL(take_unused)},
    {"-co --color", "on|off", NULL, CALL(take_unused), .fits = is_switch},

    {"-cnv --conversation -if --interactive-first", REFUSED = "use -i to chat"},
    {"-st --single-turn", REFUSED = "use -i with PROMPT and stdin from /dev/null"},
    {"-sys --system-prompt", REFUSED = "use --system TEXT"},
    {"-sysf --system-prompt-file", REFUSED = "use --system \"$(cat FILE)\""},
    {"--chat-template-file", REFUSED = "use --chat-template FILE"},
    {"--chat-template-kwargs --reasoning-effort", REFUSED = "use --template-arg KEY=JSON"},
    {"--reasoning-budget", REFUSED = "use --no-think"},
    {"-ctk --cache-type-k -ctv --cache-type-v", REFUSED = "use --cache-type TYPE, for keys and values"},
    {"--list-devices", REFUSED = "ggufs-run computes on the CPU only"},
    {"-C --cpu-mask -Cr --cpu-range --cpu-strict", REFUSED = "use taskset(1)"},
    {"-hf -hfr --hf-repo -hff --hf-file -hft --hf-token -mu --model-url -dr --docker-repo", REFUSED = "local files only; download the model first and give its path"},
    {"--override-kv", REFUSED = "use -o set=KEY=TYPE:VALUE, which edits the metadata of a model file"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx "
     "--yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast -gan -gaw", REFUSED = "the model's metadata decide; edit them with -o set=KEY=TYPE:VALUE"},
    {"--keep --context-shift --no-context-shift", REFUSED = "generation ends when the context is full; -c N makes it larger"},
    {"--samplers --sampling-seq --typical --mirostat --mirostat-lr --mirostat-ent "
     "--presence-penalty --frequency-penalty --dry-multiplier --xtc-probability "
     "--dynatemp-range --top-nsigma -l --logit-bias", REFUSED = "ggufs-run samples by --temp, --top-k, --top-p, --min-p and --repeat-penalty alone"},
    {"--grammar --grammar-file -j --json-schema -jf --json-schema-file", REFUSED = "ggufs-run does not constrain the text; llama-server does, with model.gguf of a mount"},
    {"--lora --lora-scaled --control-vector", REFUSED = "ggufs-run applies no adapters; merge them first"},
    {"--mmproj --image --audio", REFUSED = "ggufs-run reads text only"},
    {"-md --model-draft", REFUSED = "drafts are made by prompt lookup and nextn layers, not by a second model: --draft N, "
     "--draft-type TYPE"},
    {"--draft-n --draft-min --draft-n-min --draft-p-min --spec-type", REFUSED = "drafts adapt to the text; --draft N limits them, and --draft-type TYPE chooses how they are "
     "made"},
    {"--prompt-cache --prompt-cache-all --prompt-cache-ro", REFUSED = "prompts are not cached"},
    {"-e --escape", REFUSED = "texts are taken as they are; in a shell, write $'a\\nb'"},
    {"--log-file -v --verbose", REFUSED = "the text goes to stdout and everything else to stderr; leave this option out"},
};
/* clang-format on */

const struct gguf_option_table run_command_line = {
    .program = "ggufs-run",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .usage = "usage: ggufs-run [options] MODEL [PROMPT]\n"
             "       ggufs-run -i [options] MODEL [PROMPT]\n",
    .about = "Runs MODEL: the directory of a mounted model, or a model file. If PROMPT is -, it is "
             "read from stdin.",
    .end = "The manual, ggufs-run(1), describes them in full, and exit statuses.\n",
    .no_command = "generation",
    .command_offset = offsetof(struct run_options, task),
    .final_commands = BIT(RUN_TASK_HELP) | BIT(RUN_TASK_VERSION),
    .print_error = run_message,
};

static int refuse(const char *what)
{
    run_message("%s", what);
    return -EINVAL;
}

static int refuse_with_usage(const char *what, const char *word)
{
    run_message("%s%s", what, word);
    fputs(run_command_line.usage, stderr);
    return -EINVAL;
}

/* Assign the arguments that are not options: MODEL, unless -m named it, and PROMPT. */
static int assign_words(struct run_options *options)
{
    const char **words = options->line.words;
    const bool is_named = options->model;
    int n = options->line.n_words;

    if (n > 0 && !options->model) {
        int n_shards = 1; /* a shell pattern may have named all shards of a model */

        if (n == 2 && access(words[0], F_OK) != 0 && !gguf_has_model_ending(words[0]) &&
            access(words[1], F_OK) == 0)
            return refuse_with_usage("the model comes first, then the prompt: ", words[1]);
        options->model = words[0];
        while (n_shards < n && gguf_are_shards_of_one_model(words[0], words[n_shards]))
            n_shards++;
        words += n_shards;
        n -= n_shards;
    }
    if (n > 0 && options->prompt)
        return refuse("two prompts: -p and PROMPT");
    if (n > 1 && is_named)
        return refuse("two models: -m and MODEL (put a prompt in quotes)");
    if (n > 1)
        return refuse_with_usage(
            "one argument too many (put a prompt of several words in quotes): ", words[1]);
    if (n > 0)
        options->prompt = words[0];
    return 0;
}

void run_options_list_templates(char *names, size_t capacity)
{
    names[0] = '\0';
    for (const struct run_chat_template *row = run_chat_templates; row->name; row++)
        run_list_add(names, capacity, ", ", row->name);
}

static int check_template(const char *template)
{
    char names[400];

    if (!template || run_chat_template_find(template) || access(template, F_OK) == 0)
        return 0;
    run_options_list_templates(names, sizeof names);
    run_message("--chat-template %s: needs a file, or one of: %s", template, names);
    return -EINVAL;
}

static int check(const struct run_options *options)
{
    const bool takes_prompt = options->task == RUN_TASK_GENERATE ||
                              options->task == RUN_TASK_CHAT || options->task == RUN_TASK_TOKENIZE;

    if (!options->model)
        return refuse_with_usage(
            "MODEL is missing: a model file, or the directory of a mounted model", "");
    if (options->task == RUN_TASK_LOGITS && (!options->tokens_file || !options->logits_file))
        return refuse("--tokens and --logits need each other");
    if (options->prompt && !takes_prompt)
        return refuse("a prompt is for generation, -i and --tokenize");
    if (options->prompt && options->variables.messages)
        return refuse("two conversations: PROMPT and --messages");
    if (options->prompt && options->prompt_file)
        return refuse("two prompts: PROMPT and -f");
    if (options->is_null_separated && options->prompt)
        return refuse("-0 reads texts from stdin, and takes no PROMPT");
    return check_template(options->chat_template);
}

static void warn_of_unused(const struct gguf_texts *unused)
{
    char names[400] = "";

    for (size_t i = 0; i < unused->n_texts; i++)
        run_list_add(names, sizeof names, ", ", unused->texts[i]);
    if (unused->n_texts > 0)
        run_message("warning: these options change nothing here: %s", names);
}

int run_options_parse(int argc, char **argv, struct run_options *options)
{
    int result;

    *options = (struct run_options){
        .n_predict = -1,
        .n_context = -1,
        .n_batch = 512,
        .cache_type = DEQUANT_F16,
        .n_drafts = -1,
        .is_warmed_up = true,
        .adds_bos = true,
        .shows_prompt = true,
        .is_confined = true,
        .thinks = true,
        .sampling = {.repeat_penalty = NAN,
                     .repeat_last_n = INT32_MIN,
                     .top_k = UINT32_MAX,
                     .top_p = NAN,
                     .min_p = NAN,
                     .temperature = NAN},
    };
    result = gguf_options_parse(&run_command_line, argc, argv, options, &options->line);
    if (result < 0 || options->task == RUN_TASK_HELP || options->task == RUN_TASK_VERSION)
        return result;
    result = assign_words(options);
    if (result == 0)
        result = check(options);
    if (result == 0 && !options->is_confined)
        result = gguf_texts_add(&options->mount_options, "nosandbox");
    if (result == 0)
        warn_of_unused(&options->unused);
    if (result == -ENOMEM)
        run_message("%s", strerror(ENOMEM));
    return result;
}

void run_options_free(struct run_options *options)
{
    free((void *)options->stops.texts);
    free((void *)options->mount_options.texts);
    free((void *)options->variables.arguments.texts);
    free((void *)options->unused.texts);
    gguf_command_line_free(&options->line);
}
