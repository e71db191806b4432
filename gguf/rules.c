#include "gguf/rules.h"

#include <assert.h>

#define TEXT(id, name, refused_by, explanation, remedy)                                            \
    {name, explanation, remedy, GGUF_RULE_##id == GGUF_RULE_NOT_A_FILE, refused_by},

static const struct gguf_rule_text texts[GGUF_N_RULES] = {GGUF_RULES(TEXT)};

const struct gguf_rule_text *gguf_rule_text(enum gguf_rule rule)
{
    assert(rule < GGUF_N_RULES);
    return &texts[rule];
}
