#include "fs/tree/core/tree_core.h"
#include "fs/tree/facts/chat_template.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/hf/hf_tokenizer.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

const char *fs_tokenizer_obstacle(const struct fs_tree *tree)
{
    return tree->facts->vocabulary->obstacle;
}

bool fs_tokenizer_applies(const struct fs_tree *tree, const void *subject)
{
    return !tree->facts->vocabulary->obstacle;
}

bool fs_tokenizer_template_applies(const struct fs_tree *tree, const void *subject)
{
    return fs_tokenizer_applies(tree, NULL) && (subject ? fs_named_template_applies(tree, subject)
                                                        : fs_chat_template_applies(tree, NULL));
}

/* ---- tokenizer.json ---- */

/*
 * Byte-level vocabularies have no normalizer. Their added tokens are marked as published files mark
 * them, which makes llama.cpp's converter keep their texts.
 */
static bool has_no_normalizer(const struct fs_vocabulary *vocabulary)
{
    return vocabulary->kind == FS_BYTE_PAIR && !vocabulary->pretokenizer->is_raw;
}

/* Write the members of an added token, and the brace behind them. */
static void write_added_token(const struct fs_vocabulary *vocabulary, uint32_t id,
                              struct fs_sink *sink)
{
    const struct gguf_string text = fs_vocabulary_text(vocabulary, id);
    const unsigned strips = gguf_strips(vocabulary->strip_rule, text.data,
                                        (size_t)text.length_bytes, vocabulary->types[id]);
    const bool is_special = gguf_token_type_is_control(vocabulary->types[id]);

    fs_tokenizer_print(vocabulary, sink,
                       "'content':%t,'single_word':false,'lstrip':%b,'rstrip':%b,'normalized':%b,"
                       "'special':%b}",
                       (int32_t)id, (strips & GGUF_STRIP_LEFT) != 0,
                       (strips & GGUF_STRIP_RIGHT) != 0,
                       !is_special && has_no_normalizer(vocabulary), is_special);
}

/* Control tokens and user-defined tokens are matched in texts before all others. */
static void write_added_tokens(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    bool is_first = true;

    for (uint32_t id = 0; id < vocabulary->n_tokens && sink->error == 0; id++) {
        if (!gguf_token_type_is_control(vocabulary->types[id]) &&
            vocabulary->types[id] != GGUF_TOKEN_USER_DEFINED)
            continue;
        fs_sink_print(sink, "%s\n{\"id\":%u,", is_first ? "" : ",", id);
        write_added_token(vocabulary, id, sink);
        is_first = false;
    }
}

void fs_tokenizer_json_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct fs_vocabulary *vocabulary = fs_tokenizer_load(tree, sink);

    if (!vocabulary)
        return;
    fs_tokenizer_print(vocabulary, sink,
                       "{\n'version': '1.0',\n'truncation': null,\n'padding': null,\n"
                       "'added_tokens': [");
    write_added_tokens(vocabulary, sink);
    fs_sink_literal(sink, "\n],\n");
    fs_tokenizer_write_pipeline(vocabulary, sink);
    fs_sink_literal(sink, "\"model\": ");
    fs_tokenizer_write_model(vocabulary, sink);
    fs_sink_literal(sink, "\n}\n");
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
        fs_tokenizer_print(vocabulary, sink, is_first ? "\n%s: %t" : ",\n%s: %t", list[i].name,
                           list[i].id);
        is_first = false;
    }
}

/*
 * Write the tokens that SentencePiece's file does not hold as they are: tokens that users defined,
 * and control tokens with the score that converters give to added tokens.
 */
static void write_decoder_of_added(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    const double score_of_added = -1000;
    bool is_first = true;

    fs_sink_literal(sink, ",\n\"added_tokens_decoder\": {");
    for (uint32_t id = 0; id < vocabulary->n_tokens && sink->error == 0; id++) {
        if (vocabulary->types[id] != GGUF_TOKEN_USER_DEFINED &&
            (!gguf_token_type_is_control(vocabulary->types[id]) ||
             fs_array_number(vocabulary->scores, id) != score_of_added))
            continue;
        fs_sink_print(sink, "%s\n\"%u\": {", is_first ? "" : ",", id);
        write_added_token(vocabulary, id, sink);
        is_first = false;
    }
    fs_sink_literal(sink, "\n}");
}

void fs_tokenizer_config_write(const struct fs_tree *tree, const void *subject,
                               struct fs_sink *sink)
{
    const struct fs_vocabulary *vocabulary = fs_tokenizer_load(tree, sink);

    if (!vocabulary)
        return;
    /* The class that takes tokenizer.json as it is. */
    fs_sink_literal(sink, "{\n\"tokenizer_class\": \"PreTrainedTokenizerFast\"");
    write_special_tokens(vocabulary, false, sink);
    fs_tokenizer_print(vocabulary, sink,
                       ",\n'clean_up_tokenization_spaces': false,\n'model_input_names': "
                       "['input_ids', %j'attention_mask']",
                       vocabulary->kind == FS_WORDPIECE ? "\"token_type_ids\", " : "");
    if (fs_sentencepiece_applies(tree, NULL))
        write_decoder_of_added(vocabulary, sink);
    if (vocabulary->context_length > 0) {
        fs_sink_literal(sink, ",\n\"model_max_length\": ");
        fs_sink_unsigned(sink, vocabulary->context_length);
    }
    fs_sink_literal(sink, "\n}\n");
}

void fs_special_tokens_map_write(const struct fs_tree *tree, const void *subject,
                                 struct fs_sink *sink)
{
    const struct fs_vocabulary *vocabulary = fs_tokenizer_load(tree, sink);

    if (!vocabulary)
        return;
    fs_sink_literal(sink, "{");
    write_special_tokens(vocabulary, true, sink);
    fs_sink_literal(sink, "\n}\n");
}
