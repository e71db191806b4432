#include "fs/tree/prompts.h"

#include "fs/tree/output/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Longer tokens are not matched as a whole. */
#define MAX_TOKEN_BYTES 512u

static struct gguf_string text_of(const struct fs_prompts *prompts, int32_t id)
{
    return fs_vocabulary_text(prompts->vocabulary, (uint32_t)id);
}

/* ---- the model's tokens ---- */

/* Index the tokens. What hinders tokenizer.json does not matter here. */
static int load(struct fs_vocabulary *vocabulary)
{
    const struct gguf_array *tokens = vocabulary->tokens, **types = &vocabulary->token_types,
                            **scores = &vocabulary->scores;

    vocabulary->n_tokens = 0;
    if (!tokens || tokens->n_elements == 0 || tokens->n_elements > GGUF_MAX_TOKENS ||
        tokens->size_bytes > GGUF_MAX_TOKENS_BYTES)
        return 0;
    vocabulary->n_tokens = (uint32_t)tokens->n_elements;
    if (!vocabulary->name)
        vocabulary->name = "";
    if (*types && (*types)->n_elements < tokens->n_elements)
        *types = NULL;
    if (*scores && (*scores)->n_elements < tokens->n_elements)
        *scores = NULL;
    return fs_vocabulary_load(vocabulary);
}

static void write_special(struct fs_prompts *prompts, const char *name, int32_t id)
{
    if (id == GGUF_NO_TOKEN)
        return;
    fs_json_member(&prompts->special, name, prompts->special.position == 1);
    fs_json_string(&prompts->special, text_of(prompts, id));
}

int fs_prompts_open(const struct gguf_model *model, struct fs_prompts *prompts)
{
    const time_t now = time(NULL);
    int code;

    *prompts = (struct fs_prompts){.special = fs_sink_that_grows(UINT64_MAX)};
    localtime_r(&now, &prompts->now);
    code = fs_vocabulary_make(model, &prompts->vocabulary);
    if (code == 0)
        code = load(prompts->vocabulary);
    if (code < 0)
        return code;
    fs_sink_literal(&prompts->special, "{");
    if (prompts->vocabulary->n_tokens > 0) {
        const struct gguf_special_ids *ids = &prompts->vocabulary->ids;

        write_special(prompts, "bos_token", ids->bos);
        write_special(prompts, "eos_token", ids->eos);
        write_special(prompts, "unk_token", ids->unk);
        write_special(prompts, "pad_token", ids->pad);
    }
    fs_sink_literal(&prompts->special, "}");
    return prompts->special.error;
}

void fs_prompts_close(struct fs_prompts *prompts)
{
    fs_vocabulary_free(prompts->vocabulary);
    free(prompts->special.out);
}

/* ---- the parts of a prompt ---- */

struct parts {
    const struct fs_prompts *prompts;
    struct fs_sink *sink;
    bool begins[256]; /* bytes with which tokens begin that are matched as a whole */
    size_t longest;
};

static bool is_whole(const struct fs_vocabulary *vocabulary, uint32_t id, bool is_message)
{
    const uint8_t type = vocabulary->types[id];

    return type == GGUF_TOKEN_USER_DEFINED || (!is_message && gguf_token_type_is_control(type));
}

static void find_longest(struct parts *parts)
{
    const struct fs_vocabulary *vocabulary = parts->prompts->vocabulary;

    for (uint32_t id = 0; id < vocabulary->n_tokens; id++) {
        const struct gguf_string text = fs_vocabulary_text(vocabulary, id);

        if (text.length_bytes == 0 || text.length_bytes > MAX_TOKEN_BYTES ||
            !is_whole(vocabulary, id, false))
            continue;
        parts->begins[(unsigned char)text.data[0]] = true;
        if (text.length_bytes > parts->longest)
            parts->longest = text.length_bytes;
    }
}

/* Return the longest token at the start of a text that is matched as a whole, or GGUF_NO_TOKEN. */
static int32_t find_token(const struct parts *parts, struct gguf_string text, bool is_message)
{
    const struct fs_vocabulary *vocabulary = parts->prompts->vocabulary;

    if (text.length_bytes > parts->longest)
        text.length_bytes = parts->longest;
    if (!parts->begins[(unsigned char)text.data[0]])
        return GGUF_NO_TOKEN;
    for (; text.length_bytes > 0; text.length_bytes--) {
        const int32_t id = fs_vocabulary_find(vocabulary, text);

        if (id != GGUF_NO_TOKEN && is_whole(vocabulary, (uint32_t)id, is_message))
            return id;
    }
    return GGUF_NO_TOKEN;
}

static void write_part(const struct parts *parts, const char *from, int32_t id,
                       struct gguf_string text)
{
    fs_sink_literal(parts->sink, from);
    if (id == GGUF_NO_TOKEN)
        fs_sink_literal(parts->sink, "\t-\t");
    else
        fs_sink_print(parts->sink, "\t%d\t", id);
    fs_json_string(parts->sink, text);
    fs_sink_literal(parts->sink, "\n");
}

/* Write the parts of a text that is either the template's or a message's. */
static void write_text(const struct parts *parts, struct gguf_string text, bool is_message)
{
    const char *from = is_message ? "message" : "template";
    struct gguf_string plain = {text.data, 0};

    while (text.length_bytes > 0) {
        const int32_t id = find_token(parts, text, is_message);
        uint64_t n_bytes = 1;

        if (id == GGUF_NO_TOKEN) {
            plain.length_bytes++;
        } else {
            n_bytes = text_of(parts->prompts, id).length_bytes;
            if (plain.length_bytes > 0)
                write_part(parts, from, GGUF_NO_TOKEN, plain);
            write_part(parts, from, id, text_of(parts->prompts, id));
            plain = (struct gguf_string){text.data + n_bytes, 0};
        }
        text.data += n_bytes;
        text.length_bytes -= n_bytes;
    }
    if (plain.length_bytes > 0)
        write_part(parts, from, GGUF_NO_TOKEN, plain);
}

bool fs_prompts_add_bos(const struct fs_prompts *prompts)
{
    const struct fs_vocabulary *vocabulary = prompts->vocabulary;

    return vocabulary->n_tokens > 0 && vocabulary->ids.is_bos_added &&
           vocabulary->ids.bos != GGUF_NO_TOKEN;
}

bool fs_prompts_begin_with_bos(const struct fs_prompts *prompts,
                               const struct jinja_rendering *rendering)
{
    struct gguf_string bos;

    if (prompts->vocabulary->n_tokens == 0 || prompts->vocabulary->ids.bos == GGUF_NO_TOKEN)
        return false;
    bos = text_of(prompts, prompts->vocabulary->ids.bos);
    return bos.length_bytes > 0 && rendering->text_bytes >= bos.length_bytes &&
           memcmp(rendering->text, bos.data, bos.length_bytes) == 0 &&
           (rendering->n_spans == 0 || rendering->spans[0].start >= bos.length_bytes);
}

void fs_prompts_write_parts(const struct fs_prompts *prompts,
                            const struct jinja_rendering *rendering, struct fs_sink *sink)
{
    struct parts parts = {.prompts = prompts, .sink = sink};
    size_t at = 0;

    find_longest(&parts);
    if (fs_prompts_add_bos(prompts) && !fs_prompts_begin_with_bos(prompts, rendering))
        write_part(&parts, "tokenizer", prompts->vocabulary->ids.bos,
                   text_of(prompts, prompts->vocabulary->ids.bos));
    for (size_t i = 0; i <= rendering->n_spans; i++) {
        const bool is_last = i == rendering->n_spans;
        const size_t start = is_last ? rendering->text_bytes : rendering->spans[i].start;

        write_text(&parts, (struct gguf_string){rendering->text + at, start - at}, false);
        if (is_last)
            break;
        at = rendering->spans[i].end;
        write_text(&parts, (struct gguf_string){rendering->text + start, at - start}, true);
    }
}
