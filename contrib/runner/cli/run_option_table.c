#include "contrib/runner/cli/run_option_table.h"

#include "contrib/runner/compute/team.h"

#include <stddef.h>

#define MAX_TOKENS 2147483647

#define MEMBER(name) .at = offsetof(struct run_options, name)

#define TASK(name)            .kind = RUN_KIND_TASK, .task = (name)
#define TEXT(member)          .kind = RUN_KIND_TEXT, MEMBER(member)
#define TEXT_OF(name, member) .kind = RUN_KIND_TEXT, MEMBER(member), .task = (name)
#define TEXTS(member)         .kind = RUN_KIND_TEXTS, MEMBER(member)
#define ON(member)            .kind = RUN_KIND_ON, MEMBER(member)
#define OFF(member)           .kind = RUN_KIND_OFF, MEMBER(member)
#define UNSIGNED(member, min, max)                                                                 \
    .kind = RUN_KIND_UNSIGNED, MEMBER(member), .low = (min), .high = (max)
#define SIGNED(member, min, max)                                                                   \
    .kind = RUN_KIND_SIGNED, MEMBER(member), .low = (min), .high = (max)
#define LARGE(member, min, max) .kind = RUN_KIND_LARGE, MEMBER(member), .low = (min), .high = (max)
#define FRACTION(member, min, max)                                                                 \
    .kind = RUN_KIND_FRACTION, MEMBER(member), .low = (min), .high = (max)

/* clang-format would put each member on a line: */
/* clang-format off */
const struct run_option run_option_table[] = {
    {{"-h", "--help"}, NULL, "print this help and exit", TASK(RUN_TASK_HELP)},
    {{"-V", "--version"}, NULL, "print the version and exit", TASK(RUN_TASK_VERSION)},

    {{"-m", "--model"}, "MODEL", "the mounted tree or model file; instead of MODEL", TEXT(model)},
    {{"-p", "--prompt"}, "TEXT", "the prompt; instead of PROMPT", TEXT(prompt)},
    {{"-f", "--file"}, "FILE", "read the prompt from FILE", TEXT(prompt_file)},
    {{"-n", "--predict", "--n-predict"}, "N", "generate at most N tokens; -1: no limit (-1)",
     LARGE(n_predict, -1, MAX_TOKENS)},
    {{"-c", "--ctx-size"}, "N", "context of N tokens; 0: as in training (at most 4096)",
     LARGE(n_context, 0, MAX_TOKENS)},
    {{"-b", "--batch-size"}, "N", "compute N tokens of a prompt at once (512)",
     UNSIGNED(n_batch, 1, 1 << 20)},
    {{"--draft", "--draft-max"}, "N", "draft up to N tokens for a pass; 0: none (15)",
     SIGNED(n_drafts, 0, RUN_MOST_DRAFTS)},
    {{"--draft-type"}, "TYPE", "draft by lookup (prompt lookup), nextn (layers) or all (all)",
     .kind = RUN_KIND_DRAFTS},
    {{"-t", "--threads"}, "N", "compute with N threads (one per core)",
     UNSIGNED(n_threads, 1, RUN_MAX_THREADS)},
    {{"--cache-type"}, "TYPE", "store keys and values as f32, f16 or q8_0 (f32)", .kind = RUN_KIND_CACHE},
    {{"--no-warmup"}, NULL, "do not read weights before they are needed", OFF(is_warmed_up)},
    {{"--exact"}, NULL, "multiply in floats; the default is 8-bit activations", ON(is_exact)},
    {{"-o", "--mount-option"}, "OPTION", "pass -o OPTION to ggufs when it mounts a model file",
     TEXTS(mount_options)},
    {{"--no-sandbox"}, NULL, "run without the sandbox, ggufs as well", OFF(is_confined)},

    {{"--temp"}, "X", "temperature; 0: always the most likely token (0.8)",
     FRACTION(sampling.temperature, 0, 1e6)},
    {{"--top-k"}, "N", "keep the N most likely tokens; 0: all (40)",
     UNSIGNED(sampling.top_k, 0, MAX_TOKENS)},
    {{"--top-p"}, "P", "keep the top tokens that add up to P; 1: all (0.95)",
     FRACTION(sampling.top_p, 0, 1)},
    {{"--min-p"}, "P", "drop tokens below P times the top probability (0.05)",
     FRACTION(sampling.min_p, 0, 1)},
    {{"--repeat-penalty"}, "X", "penalize repeated tokens by factor X; 1: off (1)",
     FRACTION(sampling.repeat_penalty, 0.01, 100)},
    {{"--repeat-last-n"}, "N", "penalize the last N tokens; -1: all (64)",
     SIGNED(sampling.repeat_last_n, -1, MAX_TOKENS)},
    {{"-s", "--seed"}, "N", "the same seed gives the same text; -1: random (-1)",
     .kind = RUN_KIND_SEED},
    {{"-r", "--stop", "--reverse-prompt"}, "TEXT", "end before TEXT; may be given several times",
     TEXTS(stops)},
    {{"--ignore-eos"}, NULL, "never choose a token that ends the text", ON(ignores_end)},

    {{"--no-bos"}, NULL, "do not start with the model's BOS token", OFF(adds_bos)},
    {{"--special"}, NULL, "read special tokens in prompts, and write them", ON(is_special)},
    {{"--no-display-prompt"}, NULL, "print only the generated text", OFF(shows_prompt)},
    {{"--verbose-prompt"}, NULL, "print the tokens of the prompt to stderr",
     ON(shows_prompt_tokens)},

    {{"-i", "--interactive"}, NULL, "chat, with the model's template", TASK(RUN_TASK_CHAT)},
    {{"--system"}, "TEXT", "with -i: the system message", TEXT(system_text)},
    {{"--chat-template"}, "NAME", "with -i: another template; an unknown NAME lists them",
     TEXT(chat_template)},

    {{"--tokenize"}, NULL, "print the ids of PROMPT, or of the text on stdin", TASK(RUN_TASK_TOKENIZE)},
    {{"--detokenize"}, NULL, "print the text of the ids on stdin", TASK(RUN_TASK_DETOKENIZE)},
    {{"-0", "--null"}, NULL, "with --tokenize: NUL-terminated texts, a line each",
     ON(is_null_separated)},
    {{"--tokens"}, "FILE", "compute logits of these ids, 32-bit little-endian",
     TEXT_OF(RUN_TASK_LOGITS, tokens_file)},
    {{"--logits"}, "FILE", "write the logits here, 32-bit floats; -: stdout",
     TEXT_OF(RUN_TASK_LOGITS, logits_file)},
    {{"--perplexity"}, "FILE", "print the perplexity of the text in FILE",
     TEXT_OF(RUN_TASK_PERPLEXITY, perplexity_file)},
    {{"--bench"}, "P,N", "measure P prompt tokens and N generated tokens",
     .kind = RUN_KIND_BENCH, .task = RUN_TASK_BENCH},
    {{"--json"}, NULL, "print one JSON object", ON(is_json)},
};
/* clang-format on */

const size_t run_option_count = sizeof run_option_table / sizeof *run_option_table;
