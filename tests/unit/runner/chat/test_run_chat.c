/*
 * A conversation in every chat format. The expected texts were compared with the models' own
 * templates, run in Jinja, where these were available, otherwise with llama.cpp's
 * llama_chat_apply_template().
 */
#include "contrib/runner/chat/chat_format.h"
#include "gguf/support/arrays.h"

#include <criterion/criterion.h>
#include <string.h>

static int add(void *user, const char *bytes, size_t length, bool is_message)
{
    (void)is_message;
    return gguf_buffer_add(user, bytes, length);
}

static const struct run_chat_model model = {"<s>", "</s>", true};

/* clang-format off */
/* Messages: system " S\n", user "U", assistant " A", user "V ". */
static const struct {
    const char *name, *text;
} rows[] = {
    {"alpaca",
     " S\n\n\n### Instruction:\nU\n\n### Response:\n A</s>\n\n### Instruction:\nV \n\n"
     "### Response:\n"},
    {"apertus",
     "<|system_start|> S\n<|system_end|><|user_start|>U<|user_end|><|assistant_start|>"
     " A<|assistant_end|><|user_start|>V <|user_end|><|assistant_start|>"},
    {"bailing",
     "<role>SYSTEM</role> S\n<role>HUMAN</role>U<role>ASSISTANT</role> A<role>HUMAN</r"
     "ole>V <role>ASSISTANT</role>"},
    {"bailing-think",
     "<role>SYSTEM</role> S\n<role>HUMAN</role>U<role>ASSISTANT</role> A<role>HUMAN</r"
     "ole>V <role>ASSISTANT</role><think>"},
    {"bailing2",
     "<role>SYSTEM</role> S\n<|role_end|><role>HUMAN</role>U<|role_end|><role>ASSISTAN"
     "T</role> A<|role_end|><role>HUMAN</role>V <|role_end|><role>ASSISTANT</role>"},
    {"chatglm3",
     "[gMASK]sop<|system|>\n  S\n<|user|>\n U<|assistant|>\n  A<|user|>\n V <|assistant|>"},
    {"chatglm4",
     "[gMASK]<sop><|system|>\n S\n<|user|>\nU<|assistant|>\n A<|user|>\nV <|assistant|>"},
    {"chatml",
     "<|im_start|>system\n S\n<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>a"
     "ssistant\n A<|im_end|>\n<|im_start|>user\nV <|im_end|>\n<|im_start|>assistant\n"},
    {"command-r",
     "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOK"
     "EN|><|USER_TOKEN|>U<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
     "A<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>V<|END_OF_TURN_TOKEN|"
     "><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
    {"command-r7b",
     "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|> S\n<|END_OF_TURN_TOKEN|><|START_OF_TURN_"
     "TOKEN|><|USER_TOKEN|>U<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKE"
     "N|><|START_RESPONSE|> A<|END_RESPONSE|><|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKE"
     "N|><|USER_TOKEN|>V <|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
     "<|START_RESPONSE|>"},
    {"deepseek",
     " S\n### Instruction:\nU\n### Response:\n A\n<|EOT|>\n### Instruction:\nV \n### Response:\n"},
    {"deepseek-r1",
     " S\n<｜User｜>U<｜Assistant｜> A<｜end▁of▁sentence｜><｜User｜>V <｜Assistant｜><think>\n"},
    {"deepseek2",
     " S\n\n\nUser: U\n\nAssistant:  A</s>User: V \n\nAssistant:"},
    {"deepseek3",
     " S\n<｜User｜>U<｜Assistant｜> A<｜end▁of▁sentence｜><｜User｜>V <｜Assistant｜>"},
    {"dots1",
     "<|system|> S\n<|endofsystem|><|userprompt|>U<|endofuserprompt|><|response|> A<|e"
     "ndofresponse|><|userprompt|>V <|endofuserprompt|><|response|>"},
    {"ernie",
     "<|begin_of_sentence|> S\n\nUser: U\nAssistant:  A<|end_of_sentence|>User: V \nAssistant: "},
    {"exaone-deep",
     "[|system|]S[|endofturn|]\n[|user|]U\n[|assistant|]A[|endofturn|]\n[|user|]V\n[|a"
     "ssistant|]<thought>\n"},
    {"exaone-moe",
     "<|system|>\nS<|endofturn|>\n<|user|>\nU<|endofturn|>\n<|assistant|>\nA<|endoftur"
     "n|>\n<|user|>\nV<|endofturn|>\n<|assistant|>\n"},
    {"exaone3",
     "[|system|]S[|endofturn|]\n[|user|]U\n[|assistant|]A[|endofturn|]\n[|user|]V\n[|assistant|]"},
    {"exaone4",
     "[|system|]S[|endofturn|]\n[|user|]U\n[|assistant|]A[|endofturn|]\n[|user|]V\n[|assistant|]"},
    {"falcon3",
     "<|system|>\n S\n\n<|user|>\nU\n<|assistant|>\n A\n<|user|>\nV \n<|assistant|>\n"},
    {"gemma",
     "<start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
     "<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\n"},
    {"gigachat",
     " S\n<|message_sep|>user<|role_sep|>U<|message_sep|>available functions<|role_sep"
     "|>[]<|message_sep|>assistant<|role_sep|> A<|message_sep|>user<|role_sep|>V <|mes"
     "sage_sep|>available functions<|role_sep|>[]<|message_sep|>assistant<|role_sep|>"},
    {"glmedge",
     "<|system|>\n S\n<|user|>\nU<|assistant|>\n A<|user|>\nV <|assistant|>"},
    {"gpt-oss",
     "<|start|>system<|message|> S\n<|end|><|start|>user<|message|>U<|end|><|start|>as"
     "sistant<|channel|>final<|message|> A<|end|><|start|>user<|message|>V <|end|><|st"
     "art|>assistant"},
    {"granite",
     "<|start_of_role|>system<|end_of_role|> S\n<|end_of_text|>\n<|start_of_role|>user"
     "<|end_of_role|>U<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|> A<|en"
     "d_of_text|>\n<|start_of_role|>user<|end_of_role|>V <|end_of_text|>\n<|start_of_r"
     "ole|>assistant<|end_of_role|>"},
    {"granite-code",
     "System:\n S\n\n\nQuestion:\nU\n\nAnswer:\n A\n\nQuestion:\nV \n\nAnswer:\n"},
    {"grok-2",
     "System: S<|separator|>\n\nHuman: U<|separator|>\n\nAssistant:  A<|separator|>\n\n"
     "Human: V<|separator|>\n\nAssistant:"},
    {"hunyuan-dense",
     " S\n<｜hy_place▁holder▁no▁3｜><｜hy_User｜>U<｜hy_Assistant｜> A<｜hy_place▁holder▁no▁2"
     "｜><｜hy_User｜>V <｜hy_Assistant｜>"},
    {"hunyuan-moe",
     "<|startoftext|> S\n<|extra_4|><|startoftext|>U<|extra_0|> A<|eos|><|startoftext|"
     ">V <|extra_0|>"},
    {"hunyuan-vl",
     "<｜hy_begin▁of▁sentence｜> S\n<｜hy_place▁holder▁no▁3｜>U<｜hy_User｜> A<｜hy_Assistant"
     "｜>V <｜hy_User｜>"},
    {"kimi-k2",
     "<|im_system|>system<|im_middle|> S\n<|im_end|><|im_user|>user<|im_middle|>U<|im_"
     "end|><|im_assistant|>assistant<|im_middle|> A<|im_end|><|im_user|>user<|im_middl"
     "e|>V <|im_end|><|im_assistant|>assistant<|im_middle|>"},
    {"llama2",
     "[INST]  S\n\nU [/INST] A</s>[INST] V  [/INST]"},
    {"llama2-sys",
     "[INST] <<SYS>>\n S\n\n<</SYS>>\n\nU [/INST] A</s>[INST] V  [/INST]"},
    {"llama2-sys-bos",
     "[INST] <<SYS>>\n S\n\n<</SYS>>\n\nU [/INST] A</s><s>[INST] V  [/INST]"},
    {"llama2-sys-strip",
     "[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s><s>[INST] V [/INST]"},
    {"llama3",
     "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user"
     "<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
     "A<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|><|start_header"
     "_id|>assistant<|end_header_id|>\n\n"},
    {"llama4",
     "<|header_start|>system<|header_end|>\n\nS<|eot|><|header_start|>user<|header_end"
     "|>\n\nU<|eot|><|header_start|>assistant<|header_end|>\n\nA<|eot|><|header_start|"
     ">user<|header_end|>\n\nV<|eot|><|header_start|>assistant<|header_end|>\n\n"},
    {"megrez",
     "<|role_start|>system<|role_end|> S\n<|turn_end|><|role_start|>user<|role_end|>U<"
     "|turn_end|><|role_start|>assistant<|role_end|> A<|turn_end|><|role_start|>user<|"
     "role_end|>V <|turn_end|><|role_start|>assistant<|role_end|>"},
    {"minicpm",
     "S<用户>U<AI>A<用户>V<AI>"},
    {"mistral-v1",
     " [INST]  S\n\n\nU [/INST]  A</s> [INST] V  [/INST]"},
    {"mistral-v3",
     "[INST]  S\n\n\nU[/INST] A</s>[INST] V [/INST]"},
    {"mistral-v3-tekken",
     "[INST] S\n\n\nU[/INST] A</s>[INST]V [/INST]"},
    {"mistral-v7",
     "[SYSTEM_PROMPT]  S\n[/SYSTEM_PROMPT][INST] U[/INST]  A</s>[INST] V [/INST]"},
    {"mistral-v7-tekken",
     "[SYSTEM_PROMPT] S\n[/SYSTEM_PROMPT][INST]U[/INST] A</s>[INST]V [/INST]"},
    {"monarch",
     "system\n S\n</s>\n<s>user\nU</s>\n<s>assistant\n A</s>\n<s>user\nV </s>\n<s>assistant\n"},
    {"nemotron",
     "<extra_id_0>System\nS\n\n<extra_id_1>User\nU\n<extra_id_1>Assistant\nA\n<extra_i"
     "d_1>User\nV\n<extra_id_1>Assistant\n"},
    {"openchat",
     "GPT4 Correct System:  S\n<|end_of_turn|>GPT4 Correct User: U<|end_of_turn|>GPT4 "
     "Correct Assistant:  A<|end_of_turn|>GPT4 Correct User: V <|end_of_turn|>GPT4 Cor"
     "rect Assistant:"},
    {"orion",
     "Human:  S\n\n\nU\n\nAssistant: </s> A</s>Human: V \n\nAssistant: </s>"},
    {"pangu-embedded",
     "[unused9]系统： S\n[unused10][unused9]用户：U[unused10][unused9]助手： A[unused10][unused"
     "9]用户：V [unused10][unused9]助手："},
    {"phi3",
     "<|system|>\n S\n<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\n A<|end|>\n<|user|>\n"
     "V <|end|>\n<|assistant|>\n"},
    {"phi4",
     "<|im_start|>system<|im_sep|> S\n<|im_end|><|im_start|>user<|im_sep|>U<|im_end|><"
     "|im_start|>assistant<|im_sep|> A<|im_end|><|im_start|>user<|im_sep|>V <|im_end|>"
     "<|im_start|>assistant<|im_sep|>"},
    {"phi4-mini",
     "<|system|> S\n<|end|><|user|>U<|end|><|assistant|> A<|end|><|user|>V <|end|><|assistant|>"},
    {"rwkv-world",
     "System: S\n\nUser: U\n\nAssistant: A\n\nUser: V\n\nAssistant:"},
    {"seed-oss",
     "<seed:bos>system\n S\n<seed:eos><seed:bos>user\nU<seed:eos><seed:bos>assistant\n"
     "A<seed:eos><seed:bos>user\nV <seed:eos><seed:bos>assistant\n"},
    {"smolvlm",
     "<|im_start|> S\n\n\nUser: U<end_of_utterance>\nAssistant:  A<end_of_utterance>\n"
     "User: V <end_of_utterance>\nAssistant:"},
    {"solar-open",
     "<|begin|>system<|content|> S\n<|end|><|begin|>user<|content|>U<|end|><|begin|>as"
     "sistant<|content|> A<|end|><|begin|>user<|content|>V <|end|><|begin|>assistant"},
    {"tulu",
     "<|system|>\n S\n\n<|user|>\nU\n<|assistant|>\n A</s>\n<|user|>\nV \n<|assistant|>\n"},
    {"vicuna",
     " S\n\n\nUSER: U\nASSISTANT:  A</s>\nUSER: V \nASSISTANT:"},
    {"vicuna-orca",
     "SYSTEM:  S\n\nUSER: U\nASSISTANT:  A</s>\nUSER: V \nASSISTANT:"},
    {"yandex",
     " Пользователь:  S\n\n\nU\n\n Ассистент:  A\n\n Пользователь: V \n\n Ассистент:[SEP]"},
    {"zephyr",
     "<|system|>\n S\n</s>\n<|user|>\nU</s>\n<|assistant|>\n A</s>\n<|user|>\nV </s>\n"
     "<|assistant|>\n"},
};

/* Parts of templates that identify the formats. */
static const struct {
    const char *jinja, *name;
} templates[] = {
    {"{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}", "chatml"},
    {"{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}", "phi4"},
    {"<|im_start|>{{ message['role'] | capitalize }}: {{ line }}<end_of_utterance>", "smolvlm"},
    {"{{ '[INST] ' + message['content'] + ' [/INST]' }}", "llama2"},
    {"{{ '[INST] ' }}{{ '<<SYS>>\\n' + system_message + '\\n<</SYS>>' }}", "llama2-sys"},
    {"{{ bos_token + '[INST] ' + '<<SYS>>' + content + ' [/INST]' }}", "llama2-sys-bos"},
    {"{{ bos_token + '[INST] ' + '<<SYS>>' + content.strip() + ' [/INST]' }}", "llama2-sys-strip"},
    {"{{ ' [INST] ' + system_message }}", "mistral-v1"},
    {"{{ '[AVAILABLE_TOOLS] ' }}{{ '[INST] ' + message['content'] + '[/INST]' }}", "mistral-v3"},
    {"{{ \"[AVAILABLE_TOOLS]\" }}{{ \"[INST]\" + content + \"[/INST]\" }}", "mistral-v3-tekken"},
    {"{{ '[SYSTEM_PROMPT] ' + system }}{{ '[INST] ' + content + '[/INST]' }}", "mistral-v7"},
    {"{{ '[SYSTEM_PROMPT]' + system }}{{ '[INST]' + content + '[/INST]' }}", "mistral-v7-tekken"},
    {"{{ '<|user|>\\n' + content + '<|end|>\\n<|assistant|>\\n' }}", "phi3"},
    {"[gMASK]<sop>{% for item in messages %}<|user|>\n{{ item['content'] }}", "chatglm4"},
    {"{{ '[gMASK]sop' }}<|{{ message['role'] }}|>", "chatglm3"},
    {"{{ '<|user|>\n' + message['content'] + eos_token }}{{ '<|assistant|>' }}", "zephyr"},
    {"{{ '<|user|>\\n' + message['content'] + '\\n' }}<|assistant|>{{ eos_token }}", "tulu"},
    {"{{ '<|user|>' }}{{ '<|assistant|>' }}{{ '</s>' }}", "falcon3"},
    {"{{ '<|user|>' }}{{ '<|assistant|>' }}", "glmedge"},
    {"{{ bos_token + message['role'] + '\\n' + message['content'] }}", "monarch"},
    {"{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim }}", "gemma"},
    {"{{ 'Human: ' + content + '\\n\\nAssistant: ' + eos_token }}", "orion"},
    {"{{ 'GPT4 Correct ' + message['role'].title() + ': ' }}", "openchat"},
    {"{{ 'USER: ' + content }}{{ ' ASSISTANT: ' }}", "vicuna"},
    {"{{ 'SYSTEM: ' }}{{ 'USER: ' + content }}{{ ' ASSISTANT: ' }}", "vicuna-orca"},
    {"{{ '### Instruction:\\n' }}{{ '\\n<|EOT|>\\n' }}", "deepseek"},
    {"{{ '### Instruction:\\n' }}{{ '### Response:\\n' }}", "alpaca"},
    {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "command-r"},
    {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|><|START_RESPONSE|>", "command-r7b"},
    {"{{ '<｜Assistant｜><think>\\n' }}", "deepseek-r1"},
    {"{{ '[|assistant|]<thought>\\n' }}", "exaone-deep"},
    {"{{ 'Question:\\n' + message['content'] }}{{ 'Answer:\\n' }}", "granite-code"},
    {"{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}<|assistant|>",
     "phi4-mini"},
    {"{{ '[INST] ' + message['content'] + '[/INST]' }}", "mistral-v3"},
    {"{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>' }}", "llama3"},
    {"{{ '<用户>' + message['content'].strip() + '<AI>' }}", "minicpm"},
    {"{{ 'Assistant: ' + message['content'] + eos_token }}", "deepseek2"},
    {"{{ '<｜User｜>' }}{{ '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>' }}", "deepseek3"},
    {"[|system|][|assistant|][|endofturn|]", "exaone3"},
    {"[|system|][|assistant|][|endofturn|][|tool|]", "exaone4"},
    {"<|user|><|assistant|><|tool_declare|>", "exaone-moe"},
    {"rwkv-world", "rwkv-world"},
    {"{{ '<|start_of_role|>' + role + '<|end_of_role|>' }}", "granite"},
    {"{{ message['role'] + additional_special_tokens[0] + message['content'] + "
     "additional_special_tokens[1] }}", "gigachat"},
    {"{{ '<|role_start|>' + role + '<|role_end|>' }}", "megrez"},
    {"{{ ' Ассистент:[SEP]' }}", "yandex"},
    {"{% set role = 'HUMAN' %}<role>ASSISTANT</role>", "bailing"},
    {"{% set role = \"HUMAN\" %}<role>ASSISTANT</role><think>", "bailing-think"},
    {"<role>HUMAN</role><|role_end|><role>ASSISTANT</role>", "bailing2"},
    {"<|header_start|>user<|header_end|>", "llama4"},
    {"<|userprompt|><|endofuserprompt|>", "dots1"},
    {"<|extra_0|><|extra_4|>", "hunyuan-moe"},
    {"<|start|>assistant<|channel|>final", "gpt-oss"},
    {"<｜hy_begin▁of▁sentence｜><｜hy_Assistant｜>", "hunyuan-vl"},
    {"<｜hy_Assistant｜><｜hy_place▁holder▁no▁3｜>", "hunyuan-dense"},
    {"<|im_assistant|>assistant<|im_middle|>", "kimi-k2"},
    {"{{ '<seed:bos>' + role }}", "seed-oss"},
    {"{{ 'Assistant: '  + message['content'] + '<|separator|>\\n\\n' }}", "grok-2"},
    {"[unused9]系统：[unused10]", "pangu-embedded"},
    {"<|begin|>user<|content|><|end|>", "solar-open"},
    {"<|user_start|><|user_end|><|assistant_start|>", "apertus"},
    {"<extra_id_0>System\n<extra_id_1>User\n", "nemotron"},
    {"{% set sep_token = '<|end_of_sentence|>' %}{{ 'User: ' + content }}", "ernie"},
    {"{{ message['content'] }}", NULL},
    {"", NULL},
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(run_chat, every_format_is_written_as_expected)
{
    static const struct run_chat_message messages[] = {{RUN_CHAT_SYSTEM, " S\n", 3},
                                                       {RUN_CHAT_USER, "U", 1},
                                                       {RUN_CHAT_ASSISTANT, " A", 2},
                                                       {RUN_CHAT_USER, "V ", 2}};
    const struct run_chat_format *format;

    for (size_t i = 0; (format = run_chat_format_at(i)); i++) {
        struct gguf_buffer text = {0};

        cr_assert_lt(i, COUNT(rows), "%s has no row in this test", format->name);
        cr_expect_str_eq(format->name, rows[i].name);
        cr_expect_eq(run_chat_write(format, &model, messages, 4, add, &text), 0);
        cr_expect_str_eq(text.bytes, rows[i].text);
        gguf_buffer_free(&text);
    }
}

/*
 * If the answer matches the format, formatting turn by turn gives the text of the whole
 * conversation.
 */
Test(run_chat, turns_continue_the_text)
{
    static const struct run_chat_message messages[] = {
        {RUN_CHAT_USER, "U", 1}, {RUN_CHAT_ASSISTANT, "A", 1}, {RUN_CHAT_USER, "V", 1}};
    const struct run_chat_format *format;

    for (size_t i = 0; (format = run_chat_format_at(i)); i++) {
        struct gguf_buffer whole = {0}, turns = {0}, end = {0};
        size_t n_same = 0;

        run_chat_write(format, &model, messages, 3, add, &whole);
        run_chat_write(format, &model, messages, 1, add, &turns);
        run_chat_write_next(format, &model, &messages[2], add, &end);
        while (n_same < turns.length && whole.bytes[n_same] == turns.bytes[n_same])
            n_same++;
        cr_expect_geq(n_same + strlen(format->answer), turns.length, "%s", format->name);
        cr_assert_lt(end.length, whole.length);
        cr_expect_str_eq(whole.bytes + whole.length - end.length, end.bytes, "%s", format->name);
        gguf_buffer_free(&whole);
        gguf_buffer_free(&turns);
        gguf_buffer_free(&end);
    }
}

Test(run_chat, templates_are_recognised)
{
    for (size_t i = 0; i < COUNT(templates); i++) {
        const struct run_chat_format *format = run_chat_format_recognise(templates[i].jinja);

        cr_expect_str_eq(format ? format->name : "none",
                         templates[i].name ? templates[i].name : "none", "%s", templates[i].jinja);
    }
}

Test(run_chat, every_format_has_a_test_template)
{
    const struct run_chat_format *format;

    for (size_t i = 0; (format = run_chat_format_at(i)); i++) {
        bool is_there = false;

        for (size_t j = 0; j < COUNT(templates); j++)
            is_there |= templates[j].name && strcmp(templates[j].name, format->name) == 0;
        cr_expect(is_there, "%s", format->name);
        cr_expect_eq(run_chat_format_find(format->name), format);
    }
    cr_expect_null(run_chat_format_find("nothing"));
}

/* BOS is written only if the tokenizer does not add it. */
Test(run_chat, bos_is_not_doubled)
{
    static const struct run_chat_message message = {RUN_CHAT_USER, "U", 1};
    const struct run_chat_format *format = run_chat_format_find("gigachat");
    const struct run_chat_model without = {"<s>", "</s>", false};
    struct gguf_buffer text = {0};

    run_chat_write(format, &model, &message, 1, add, &text);
    cr_expect_neq(strncmp(text.bytes, "<s>", 3), 0);
    gguf_buffer_drop(&text, text.length);
    run_chat_write(format, &without, &message, 1, add, &text);
    cr_expect_eq(strncmp(text.bytes, "<s>", 3), 0);
    gguf_buffer_free(&text);
}
