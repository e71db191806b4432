#include "fs/tree/hf/tokenizer_json.h"

#include "fs/tree/chat_template.h"
#include "fs/tree/hf/tokenizer_parts.h"
#include "fs/tree/json.h"
#include "fs/tree/tree.h"

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* A step writes pieces until they have so many bytes, or looks at so many tokens. */
#define STEP_BYTES  1024u
#define STEP_TOKENS 4096u

const char *fs_tokenizer_obstacle(const struct fs_tree *tree)
{
    return tree->vocabulary->obstacle;
}

bool fs_tokenizer_applies(const struct fs_tree *tree, const void *subject)
{
    (void)subject;
    return !tree->vocabulary->obstacle;
}

bool fs_tokenizer_template_applies(const struct fs_tree *tree, const void *subject)
{
    return fs_tokenizer_applies(tree, NULL) && (subject ? fs_named_template_applies(tree, subject)
                                                        : fs_chat_template_applies(tree, NULL));
}

/* ---- tokenizer.json ---- */

static int write_head(const struct fs_vocabulary *vocabulary, struct fs_place *place,
                      struct fs_sink *sink)
{
    (void)vocabulary;
    (void)place;
    fs_sink_literal(sink, "{\n\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n"
                          "\"added_tokens\": [");
    return 0;
}

static void write_added_token(const struct fs_vocabulary *vocabulary, uint32_t id,
                              struct fs_sink *sink)
{
    const struct gguf_string text = fs_vocabulary_text(vocabulary, id);
    const unsigned strips = gguf_strips(vocabulary->strip_rule, text.data,
                                        (size_t)text.length_bytes, vocabulary->types[id]);

    fs_sink_literal(sink, "{\"id\":");
    fs_sink_unsigned(sink, id);
    fs_sink_literal(sink, ",\"content\":");
    fs_tokenizer_token(vocabulary, id, sink);
    fs_sink_literal(sink, ",\"single_word\":false,\"lstrip\":");
    fs_sink_literal(sink, strips & GGUF_STRIP_LEFT ? "true" : "false");
    fs_sink_literal(sink, ",\"rstrip\":");
    fs_sink_literal(sink, strips & GGUF_STRIP_RIGHT ? "true" : "false");
    fs_sink_literal(sink, ",\"normalized\":false,\"special\":");
    fs_sink_literal(sink, gguf_token_type_is_control(vocabulary->types[id]) ? "true}" : "false}");
}

/* Control tokens and those that users defined are matched in texts before all others. */
static int write_added_tokens(const struct fs_vocabulary *vocabulary, struct fs_place *place,
                              struct fs_sink *sink)
{
    const uint64_t start = sink->position;

    for (unsigned i = 0; i < STEP_TOKENS && sink->position - start < STEP_BYTES; i++) {
        const uint32_t id = (uint32_t)place->item;

        if (id == vocabulary->n_tokens) {
            fs_sink_literal(sink, "\n],\n");
            return 0;
        }
        place->item++;
        if (!gguf_token_type_is_control(vocabulary->types[id]) &&
            vocabulary->types[id] != GGUF_TOKEN_USER_DEFINED)
            continue;
        fs_sink_literal(sink, place->in_value ? ",\n" : "\n");
        place->in_value = true;
        write_added_token(vocabulary, id, sink);
    }
    return 1;
}

static int write_end(const struct fs_vocabulary *vocabulary, struct fs_place *place,
                     struct fs_sink *sink)
{
    (void)vocabulary;
    (void)place;
    fs_sink_literal(sink, "}\n}\n");
    return 0;
}

int fs_tokenizer_json_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                            struct fs_sink *sink)
{
    static fs_tokenizer_part *const parts[] = {
        write_head,
        write_added_tokens,
        fs_tokenizer_write_pipeline,
        fs_tokenizer_write_model_head,
        fs_tokenizer_write_tokens,
        fs_tokenizer_write_merges,
        write_end,
    };
    int result = fs_vocabulary_load(tree->vocabulary);

    (void)subject;
    if (result < 0)
        return result;
    result = parts[place->offset](tree->vocabulary, place, sink);
    if (result != 0)
        return result;
    *place = (struct fs_place){.offset = place->offset + 1};
    return place->offset < COUNT(parts);
}

/* ---- tokenizer_config.json and special_tokens_map.json ---- */

/* Write the texts of the special tokens, as members of an object. */
static void write_special_tokens(const struct fs_vocabulary *vocabulary, bool is_first,
                                 struct fs_sink *sink)
{
    const struct gguf_special_ids *ids = &vocabulary->ids;
    const bool is_bert = vocabulary->kind == FS_WORDPIECE;
    const struct {
        const char *name;
        int32_t id;
    } list[] = {
        {"bos_token", is_bert ? GGUF_NO_TOKEN : ids->bos},
        {"eos_token", is_bert ? GGUF_NO_TOKEN : ids->eos},
        {"unk_token", ids->unk},
        {"sep_token", ids->sep},
        {"pad_token", ids->pad},
        {"cls_token", is_bert ? ids->bos : GGUF_NO_TOKEN},
        {"mask_token", ids->mask},
    };

    for (size_t i = 0; i < COUNT(list); i++) {
        if (list[i].id < 0)
            continue;
        fs_sink_literal(sink, is_first ? "\n" : ",\n");
        fs_tokenizer_string(sink, list[i].name);
        fs_sink_literal(sink, ": ");
        fs_tokenizer_token(vocabulary, (uint32_t)list[i].id, sink);
        is_first = false;
    }
}

int fs_tokenizer_config_write(const struct fs_tree *tree, const void *subject,
                              struct fs_place *place, struct fs_sink *sink)
{
    const struct fs_vocabulary *vocabulary = tree->vocabulary;
    const int result = fs_vocabulary_load(tree->vocabulary);

    (void)subject;
    (void)place;
    if (result < 0)
        return result;
    /* The class that takes tokenizer.json as it is. */
    fs_sink_literal(sink, "{\n\"tokenizer_class\": \"PreTrainedTokenizerFast\"");
    write_special_tokens(vocabulary, false, sink);
    fs_sink_literal(sink, ",\n\"clean_up_tokenization_spaces\": false,\n\"model_input_names\": ");
    fs_sink_literal(sink, vocabulary->kind == FS_WORDPIECE
                              ? "[\"input_ids\", \"token_type_ids\", \"attention_mask\"]"
                              : "[\"input_ids\", \"attention_mask\"]");
    if (vocabulary->context_length > 0) {
        fs_sink_literal(sink, ",\n\"model_max_length\": ");
        fs_sink_unsigned(sink, vocabulary->context_length);
    }
    fs_sink_literal(sink, "\n}\n");
    return 0;
}

int fs_special_tokens_map_write(const struct fs_tree *tree, const void *subject,
                                struct fs_place *place, struct fs_sink *sink)
{
    const int result = fs_vocabulary_load(tree->vocabulary);

    (void)subject;
    (void)place;
    if (result < 0)
        return result;
    fs_sink_literal(sink, "{");
    write_special_tokens(tree->vocabulary, true, sink);
    fs_sink_literal(sink, "\n}\n");
    return 0;
}
