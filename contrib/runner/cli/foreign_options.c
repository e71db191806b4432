#include "contrib/runner/cli/foreign_options.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Names from llama.cpp's common/arg.cpp. */
const struct run_foreign_option run_foreign_options[] = {
    /* Devices and memory: the CPU is the only device, and weights are always mapped. */
    {"-ngl --gpu-layers --n-gpu-layers -mg --main-gpu -sm --split-mode -ts --tensor-split -dev "
     "--device -ncmoe --n-cpu-moe -ot --override-tensor -fitt --fit-target -fitc --fit-ctx "
     "-ub --ubatch-size -tb --threads-batch --prio --poll --numa",
     RUN_FOREIGN_VALUE, NULL},
    {"-cmoe --cpu-moe -nkvo --no-kv-offload -kvo --kv-offload -nr --no-repack --mlock --mmap "
     "--no-mmap --no-host",
     RUN_FOREIGN_ALONE, NULL},
    {"-fa --flash-attn -fit --fit", RUN_FOREIGN_ON_OFF, NULL},
    /* The default: the prompt is continued, the text goes to stdout, all else to stderr. */
    {"-no-cnv --no-conversation --jinja --no-jinja --no-escape --simple-io --perf --no-perf "
     "--log-disable",
     RUN_FOREIGN_ALONE, NULL},
    {"-co --color", RUN_FOREIGN_ON_OFF, NULL},

#define REFUSED RUN_FOREIGN_REFUSED
    {"-cnv --conversation -if --interactive-first", REFUSED, "use -i to chat"},
    {"-st --single-turn", REFUSED, "use -i with PROMPT and stdin from /dev/null"},
    {"-sys --system-prompt", REFUSED, "use --system TEXT"},
    {"-sysf --system-prompt-file", REFUSED, "use --system \"$(cat FILE)\""},
    {"--chat-template-file", REFUSED, "use --chat-template FILE"},
    {"--chat-template-kwargs --reasoning-effort", REFUSED, "use --template-arg KEY=JSON"},
    {"--reasoning-budget", REFUSED, "use --no-think"},
    {"-ctk --cache-type-k -ctv --cache-type-v", REFUSED,
     "use --cache-type TYPE, for keys and values"},
    {"--list-devices", REFUSED, "ggufs-run computes on the CPU only"},
    {"-C --cpu-mask -Cr --cpu-range --cpu-strict", REFUSED, "use taskset(1)"},
    {"-hf -hfr --hf-repo -hff --hf-file -hft --hf-token -mu --model-url -dr --docker-repo", REFUSED,
     "local files only; download the model first and give its path"},
    {"--override-kv", REFUSED,
     "use -o set=KEY=TYPE:VALUE, which edits the metadata of a model file"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx "
     "--yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast -gan -gaw",
     REFUSED, "the model's metadata decide; edit them with -o set=KEY=TYPE:VALUE"},
    {"--keep --context-shift --no-context-shift", REFUSED,
     "generation ends when the context is full; -c N makes it larger"},
    {"--samplers --sampling-seq --typical --mirostat --mirostat-lr --mirostat-ent "
     "--presence-penalty --frequency-penalty --dry-multiplier --xtc-probability "
     "--dynatemp-range --top-nsigma -l --logit-bias",
     REFUSED, "ggufs-run samples by --temp, --top-k, --top-p, --min-p and --repeat-penalty alone"},
    {"--grammar --grammar-file -j --json-schema -jf --json-schema-file", REFUSED,
     "ggufs-run does not constrain the text; llama-server does, with model.gguf of a mount"},
    {"--lora --lora-scaled --control-vector", REFUSED,
     "ggufs-run applies no adapters; merge them first"},
    {"--mmproj --image --audio", REFUSED, "ggufs-run reads text only"},
    {"-md --model-draft", REFUSED,
     "drafts are made by prompt lookup and nextn layers, not by a second model: --draft N, "
     "--draft-type TYPE"},
    {"--draft-n --draft-min --draft-n-min --draft-p-min --spec-type", REFUSED,
     "drafts adapt to the text; --draft N limits them, and --draft-type TYPE chooses how they are "
     "made"},
    {"--prompt-cache --prompt-cache-all --prompt-cache-ro", REFUSED, "prompts are not cached"},
    {"--log-file -v --verbose", REFUSED,
     "the text goes to stdout and everything else to stderr; leave this option out"},
};

const size_t run_foreign_option_count = sizeof run_foreign_options / sizeof *run_foreign_options;

static bool is_among(const char *names, const char *name, size_t length)
{
    while (*names != '\0') {
        const size_t n = strcspn(names, " ");

        if (n == length && strncmp(names, name, n) == 0)
            return true;
        names += n;
        names += *names == ' ';
    }
    return false;
}

/* -ngl99 is -ngl with its value. */
static size_t name_length(const char *word)
{
    return strcspn(word, word[0] == '-' && word[1] == '-' ? "=" : "=0123456789");
}

const struct run_foreign_option *run_foreign_option_find(const char *word)
{
    for (size_t i = 0; i < run_foreign_option_count; i++)
        if (is_among(run_foreign_options[i].names, word, name_length(word)))
            return &run_foreign_options[i];
    return NULL;
}

int run_foreign_option_take(void *target, int argc, char **argv, int i)
{
    static const char switches[] = "on off auto 1 0 true false enabled disabled";
    struct run_options *options = target;
    const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
    const struct run_foreign_option *foreign = run_foreign_option_find(word);
    bool has_value;

    if (!foreign)
        return 0;
    if (foreign->value == RUN_FOREIGN_REFUSED) {
        run_message("%.*s: %s", (int)strcspn(word, "="), word, foreign->hint);
        return -EINVAL;
    }
    has_value = next && word[name_length(word)] == '\0' &&
                (foreign->value == RUN_FOREIGN_VALUE ||
                 (foreign->value == RUN_FOREIGN_ON_OFF && is_among(switches, next, strlen(next))));
    if (has_value && access(next, F_OK) == 0) { /* would be MODEL, with the value forgotten */
        run_message("%s takes a value, but %s is a file or directory; leave %s out, it changes "
                    "nothing here",
                    word, next, word);
        return -EINVAL;
    }
    if (gguf_texts_add(&options->unused, word) < 0)
        return -ENOMEM;
    return has_value ? 2 : 1;
}
