#include "contrib/runner/cli/foreign_options.h"

#include <stdbool.h>
#include <string.h>

#define CPU_ONLY "ggufs-run computes on the CPU only; leave this option out"

/* Names from llama.cpp's common/arg.cpp. */
const struct run_foreign_option run_foreign_options[] = {
    {"-ngl --gpu-layers --n-gpu-layers -mg --main-gpu -sm --split-mode -ts --tensor-split -dev "
     "--device --list-devices -ncmoe --n-cpu-moe -cmoe --cpu-moe -ot --override-tensor -nkvo "
     "--no-kv-offload",
     CPU_ONLY},
    {"-fa --flash-attn", "there is one kind of attention, which needs no option; leave it out"},
    {"-no-cnv --no-conversation",
     "ggufs-run continues the prompt unless -i is given; leave this option out"},
    {"-cnv --conversation -if --interactive-first", "use -i to chat"},
    {"-st --single-turn", "use -i with PROMPT and stdin from /dev/null"},
    {"-sys --system-prompt", "use --system TEXT"},
    {"-sysf --system-prompt-file", "use --system \"$(cat FILE)\""},
    {"--jinja --no-jinja --chat-template-file",
     "templates are recognized, not executed; choose one with --chat-template NAME"},
    {"--mlock", "use -o mlock, which has ggufs keep a model file in memory"},
    {"--mmap --no-mmap", "weights are always mapped; leave this option out"},
    {"-ctk --cache-type-k -ctv --cache-type-v", "use --cache-type TYPE, for keys and values"},
    {"-tb --threads-batch", "use -t N, for prompts and generated tokens"},
    {"-ub --ubatch-size", "use -b N"},
    {"--numa", "use numactl(8)"},
    {"-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll", "use taskset(1)"},
    {"-hf -hfr --hf-repo -hff --hf-file -hft --hf-token -mu --model-url -dr --docker-repo",
     "local files only; download the model first and give its path"},
    {"--override-kv", "use -o set=KEY=TYPE:VALUE, which edits the metadata of a model file"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx "
     "--yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast -gan -gaw",
     "the model's metadata decide; edit them with -o set=KEY=TYPE:VALUE"},
    {"-e --escape --no-escape",
     "escapes in prompts are never interpreted; the shell does that in $'...'"},
    {"--keep --context-shift --no-context-shift",
     "generation ends when the context is full; -c N makes it larger"},
    {"--samplers --sampling-seq --typical --mirostat --mirostat-lr --mirostat-ent "
     "--presence-penalty --frequency-penalty --dry-multiplier --xtc-probability "
     "--dynatemp-range --top-nsigma -l --logit-bias",
     "not implemented; there are --temp, --top-k, --top-p, --min-p and --repeat-penalty"},
    {"--grammar --grammar-file -j --json-schema -jf --json-schema-file",
     "constrained generation is not implemented"},
    {"--lora --lora-scaled --control-vector", "adapters are not implemented; merge them first"},
    {"--mmproj --image --audio", "ggufs-run reads text only"},
    {"-md --model-draft", "drafts by a second model are not implemented; there are those by prompt "
                          "lookup and nextn layers: --draft N, --draft-type TYPE"},
    {"--draft-n --draft-min --draft-n-min --draft-p-min --spec-type",
     "drafts adapt to the text; --draft N limits them, and --draft-type TYPE chooses how they are "
     "made"},
    {"--prompt-cache --prompt-cache-all --prompt-cache-ro", "prompts are not cached"},
    {"-co --color --simple-io --no-perf --log-disable --log-file -v --verbose",
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

const char *run_foreign_option_hint(const char *word)
{
    /* -ngl99 is -ngl with its value. */
    const size_t length = strcspn(word, word[0] == '-' && word[1] == '-' ? "=" : "=0123456789");

    for (size_t i = 0; i < run_foreign_option_count; i++)
        if (is_among(run_foreign_options[i].names, word, length))
            return run_foreign_options[i].hint;
    return NULL;
}
