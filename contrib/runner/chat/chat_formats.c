/*
 * The formats. Their strings are those of the models' own templates; which ones tell them apart is
 * also described by llama.cpp's list of supported templates
 * (https://github.com/ggml-org/llama.cpp/wiki/Templates-supported-by-llama_chat_apply_template).
 */
#include "contrib/runner/chat/chat_format.h"

#include <string.h>

#define BOS RUN_CHAT_BOS
#define EOS RUN_CHAT_EOS

/* {name, start, no_system, {system, user, assistant}, answer, oddities} */
/* clang-format off */
static const struct run_chat_format formats[] = {
    {"alpaca", "", "",
     {{"", "\n\n"}, {"### Instruction:\n", "\n\n"}, {"### Response:\n", EOS "\n\n"}},
     "### Response:\n", 0},
    {"apertus", BOS, "",
     {{"<|system_start|>", "<|system_end|>"}, {"<|user_start|>", "<|user_end|>"},
      {"<|assistant_start|>", "<|assistant_end|>"}},
     "<|assistant_start|>", 0},
    {"bailing", "", "",
     {{"<role>SYSTEM</role>", ""}, {"<role>HUMAN</role>", ""}, {"<role>ASSISTANT</role>", ""}},
     "<role>ASSISTANT</role>", 0},
    {"bailing-think", "", "",
     {{"<role>SYSTEM</role>", ""}, {"<role>HUMAN</role>", ""}, {"<role>ASSISTANT</role>", ""}},
     "<role>ASSISTANT</role><think>", 0},
    {"bailing2", "", "<role>SYSTEM</role>detailed thinking off<|role_end|>",
     {{"<role>SYSTEM</role>", "<|role_end|>"}, {"<role>HUMAN</role>", "<|role_end|>"},
      {"<role>ASSISTANT</role>", "<|role_end|>"}},
     "<role>ASSISTANT</role>", 0},
    {"chatglm3", "[gMASK]sop", "",
     {{"<|system|>\n ", ""}, {"<|user|>\n ", ""}, {"<|assistant|>\n ", ""}},
     "<|assistant|>", 0},
    {"chatglm4", "[gMASK]<sop>", "",
     {{"<|system|>\n", ""}, {"<|user|>\n", ""}, {"<|assistant|>\n", ""}},
     "<|assistant|>\n", 0},
    {"chatml", "", "",
     {{"<|im_start|>system\n", "<|im_end|>\n"}, {"<|im_start|>user\n", "<|im_end|>\n"},
      {"<|im_start|>assistant\n", "<|im_end|>\n"}},
     "<|im_start|>assistant\n", 0},
    {"command-r", "", "",
     {{"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
      {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
      {"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"}},
     "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", RUN_CHAT_TRIM},
    {"deepseek", "", "",
     {{"", ""}, {"### Instruction:\n", "\n"}, {"### Response:\n", "\n<|EOT|>\n"}},
     "### Response:\n", 0},
    {"deepseek2", "", "",
     {{"", "\n\n"}, {"User: ", "\n\n"}, {"Assistant: ", "<｜end▁of▁sentence｜>"}},
     "Assistant:", 0},
    {"deepseek3", "", "",
     {{"", "\n\n"}, {"<｜User｜>", ""}, {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"}},
     "<｜Assistant｜>", 0},
    {"dots1", "", "",
     {{"<|system|>", "<|endofsystem|>"}, {"<|userprompt|>", "<|endofuserprompt|>"},
      {"<|response|>", "<|endofresponse|>"}},
     "<|response|>", 0},
    {"ernie", "<|begin_of_sentence|>", "",
     {{"", "\n"}, {"User: ", "\n"}, {"Assistant: ", "<|end_of_sentence|>"}},
     "Assistant: ", 0},
    {"exaone-moe", "", "",
     {{"<|system|>\n", "<|endofturn|>\n"}, {"<|user|>\n", "<|endofturn|>\n"},
      {"<|assistant|>\n", "<|endofturn|>\n"}},
     "<|assistant|>\n", RUN_CHAT_TRIM},
    {"exaone3", "", "",
     {{"[|system|]", "[|endofturn|]\n"}, {"[|user|]", "\n"}, {"[|assistant|]", "[|endofturn|]\n"}},
     "[|assistant|]", RUN_CHAT_TRIM},
    {"exaone4", "", "",
     {{"[|system|]", "[|endofturn|]\n"}, {"[|user|]", "\n"}, {"[|assistant|]", "[|endofturn|]\n"}},
     "[|assistant|]", RUN_CHAT_TRIM},
    {"falcon3", "", "",
     {{"<|system|>\n", "\n"}, {"<|user|>\n", "\n"}, {"<|assistant|>\n", "\n"}},
     "<|assistant|>\n", 0},
    {"gemma", "", "",
     {{"", "\n\n"}, {"<start_of_turn>user\n", "<end_of_turn>\n"},
      {"<start_of_turn>model\n", "<end_of_turn>\n"}},
     "<start_of_turn>model\n", RUN_CHAT_TRIM | RUN_CHAT_SYSTEM_IN_USER},
    {"gigachat", BOS, "",
     {{"", "<|message_sep|>"},
      {"user<|role_sep|>",
       "<|message_sep|>available functions<|role_sep|>[]<|message_sep|>"},
      {"assistant<|role_sep|>", "<|message_sep|>"}},
     "assistant<|role_sep|>", 0},
    {"glmedge", "", "",
     {{"<|system|>\n", ""}, {"<|user|>\n", ""}, {"<|assistant|>\n", ""}},
     "<|assistant|>", 0},
    /* Answers of earlier turns are those of the last channel. */
    {"gpt-oss", "", "",
     {{"<|start|>system<|message|>", "<|end|>"}, {"<|start|>user<|message|>", "<|end|>"},
      {"<|start|>assistant<|channel|>final<|message|>", "<|end|>"}},
     "<|start|>assistant", 0},
    {"granite", "", "",
     {{"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
      {"<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
      {"<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>\n"}},
     "<|start_of_role|>assistant<|end_of_role|>", 0},
    {"grok-2", "", "",
     {{"System: ", "<|separator|>\n\n"}, {"Human: ", "<|separator|>\n\n"},
      {"Assistant: ", "<|separator|>\n\n"}},
     "Assistant:", RUN_CHAT_TRIM_SYSTEM | RUN_CHAT_TRIM_USER},
    {"hunyuan-dense", "", "",
     {{"", "<｜hy_place▁holder▁no▁3｜>"}, {"<｜hy_User｜>", ""},
      {"<｜hy_Assistant｜>", "<｜hy_place▁holder▁no▁2｜>"}},
     "<｜hy_Assistant｜>", 0},
    {"hunyuan-moe", "", "",
     {{"<|startoftext|>", "<|extra_4|>"}, {"<|startoftext|>", "<|extra_0|>"}, {"", "<|eos|>"}},
     "", 0},
    {"hunyuan-vl", "<｜hy_begin▁of▁sentence｜>", "",
     {{"", "<｜hy_place▁holder▁no▁3｜>"}, {"", "<｜hy_User｜>"}, {"", "<｜hy_Assistant｜>"}},
     "", 0},
    {"kimi-k2", "", "",
     {{"<|im_system|>system<|im_middle|>", "<|im_end|>"},
      {"<|im_user|>user<|im_middle|>", "<|im_end|>"},
      {"<|im_assistant|>assistant<|im_middle|>", "<|im_end|>"}},
     "<|im_assistant|>assistant<|im_middle|>", 0},
    {"llama2", "", "",
     {{"", "\n"}, {"[INST] ", " [/INST]"}, {"", EOS}},
     "", RUN_CHAT_SYSTEM_IN_USER},
    {"llama2-sys", "", "",
     {{"<<SYS>>\n", "\n<</SYS>>\n\n"}, {"[INST] ", " [/INST]"}, {"", EOS}},
     "", RUN_CHAT_SYSTEM_IN_USER},
    {"llama2-sys-bos", "", "",
     {{"<<SYS>>\n", "\n<</SYS>>\n\n"}, {BOS "[INST] ", " [/INST]"}, {"", EOS}},
     "", RUN_CHAT_SYSTEM_IN_USER},
    {"llama2-sys-strip", "", "",
     {{"<<SYS>>\n", "\n<</SYS>>\n\n"}, {"[INST] ", " [/INST]"}, {"", EOS}},
     "", RUN_CHAT_SYSTEM_IN_USER | RUN_CHAT_TRIM},
    {"llama3", "", "",
     {{"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
      {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
      {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"}},
     "<|start_header_id|>assistant<|end_header_id|>\n\n", RUN_CHAT_TRIM},
    {"llama4", "", "",
     {{"<|header_start|>system<|header_end|>\n\n", "<|eot|>"},
      {"<|header_start|>user<|header_end|>\n\n", "<|eot|>"},
      {"<|header_start|>assistant<|header_end|>\n\n", "<|eot|>"}},
     "<|header_start|>assistant<|header_end|>\n\n", RUN_CHAT_TRIM},
    {"megrez", "", "",
     {{"<|role_start|>system<|role_end|>", "<|turn_end|>"},
      {"<|role_start|>user<|role_end|>", "<|turn_end|>"},
      {"<|role_start|>assistant<|role_end|>", "<|turn_end|>"}},
     "<|role_start|>assistant<|role_end|>", 0},
    {"minicpm", "", "",
     {{"", ""}, {"<用户>", "<AI>"}, {"", ""}},
     "", RUN_CHAT_TRIM},
    {"mistral-v1", "", "",
     {{"", "\n\n"}, {" [INST] ", " [/INST]"}, {" ", EOS}},
     "", RUN_CHAT_SYSTEM_IN_USER},
    {"mistral-v3", "", "",
     {{"", "\n\n"}, {"[INST] ", "[/INST]"}, {" ", EOS}},
     "", RUN_CHAT_SYSTEM_IN_USER | RUN_CHAT_TRIM_ASSISTANT},
    {"mistral-v3-tekken", "", "",
     {{"", "\n\n"}, {"[INST]", "[/INST]"}, {"", EOS}},
     "", RUN_CHAT_SYSTEM_IN_USER},
    {"mistral-v7", "", "",
     {{"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"}, {"[INST] ", "[/INST]"}, {" ", EOS}},
     "", 0},
    {"mistral-v7-tekken", "", "",
     {{"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}, {"[INST]", "[/INST]"}, {"", EOS}},
     "", 0},
    {"monarch", "", "",
     {{BOS "system\n", EOS "\n"}, {BOS "user\n", EOS "\n"}, {BOS "assistant\n", EOS "\n"}},
     BOS "assistant\n", 0},
    {"nemotron", "", "",
     {{"<extra_id_0>System\n", "\n\n"}, {"<extra_id_1>User\n", "\n"},
      {"<extra_id_1>Assistant\n", "\n"}},
     "<extra_id_1>Assistant\n", RUN_CHAT_TRIM},
    {"openchat", "", "",
     {{"", "<|end_of_turn|>"}, {"GPT4 Correct User: ", "<|end_of_turn|>"},
      {"GPT4 Correct Assistant: ", "<|end_of_turn|>"}},
     "GPT4 Correct Assistant:", 0},
    {"orion", "", "",
     {{"", "\n\n"}, {"Human: ", "\n\nAssistant: " EOS}, {"", EOS}},
     "", RUN_CHAT_SYSTEM_IN_USER},
    {"pangu-embedded", "", "[unused9]系统：[unused10]",
     {{"[unused9]系统：", "[unused10]"}, {"[unused9]用户：", "[unused10]"},
      {"[unused9]助手：", "[unused10]"}},
     "[unused9]助手：", 0},
    {"phi3", "", "",
     {{"<|system|>\n", "<|end|>\n"}, {"<|user|>\n", "<|end|>\n"}, {"<|assistant|>\n", "<|end|>\n"}},
     "<|assistant|>\n", 0},
    {"phi4", "", "",
     {{"<|im_start|>system<|im_sep|>", "<|im_end|>"}, {"<|im_start|>user<|im_sep|>", "<|im_end|>"},
      {"<|im_start|>assistant<|im_sep|>", "<|im_end|>"}},
     "<|im_start|>assistant<|im_sep|>", 0},
    {"rwkv-world", "", "",
     {{"System: ", "\n\n"}, {"User: ", "\n\n"}, {"Assistant: ", "\n\n"}},
     "Assistant:", RUN_CHAT_TRIM},
    {"seed-oss", "", "",
     {{"<seed:bos>system\n", "<seed:eos>"}, {"<seed:bos>user\n", "<seed:eos>"},
      {"<seed:bos>assistant\n", "<seed:eos>"}},
     "<seed:bos>assistant\n", RUN_CHAT_TRIM_ASSISTANT},
    {"smolvlm", "<|im_start|>", "",
     {{"", "\n\n"}, {"User: ", "<end_of_utterance>\n"}, {"Assistant: ", "<end_of_utterance>\n"}},
     "Assistant:", 0},
    {"solar-open", "", "",
     {{"<|begin|>system<|content|>", "<|end|>"}, {"<|begin|>user<|content|>", "<|end|>"},
      {"<|begin|>assistant<|content|>", "<|end|>"}},
     "<|begin|>assistant", 0},
    {"tulu", BOS, "",
     {{"<|system|>\n", "\n"}, {"<|user|>\n", "\n"}, {"<|assistant|>\n", EOS "\n"}},
     "<|assistant|>\n", 0},
    {"vicuna", "", "",
     {{"", "\n\n"}, {"USER: ", "\n"}, {"ASSISTANT: ", EOS "\n"}},
     "ASSISTANT:", 0},
    {"vicuna-orca", "", "",
     {{"SYSTEM: ", "\n"}, {"USER: ", "\n"}, {"ASSISTANT: ", EOS "\n"}},
     "ASSISTANT:", 0},
    {"yandex", "", "",
     {{"", "\n\n"}, {" Пользователь: ", "\n\n"}, {" Ассистент: ", "\n\n"}},
     " Ассистент:[SEP]", RUN_CHAT_SYSTEM_IN_USER},
    {"zephyr", "", "",
     {{"<|system|>\n", EOS "\n"}, {"<|user|>\n", EOS "\n"}, {"<|assistant|>\n", EOS "\n"}},
     "<|assistant|>\n", 0},
};

/* The first one that fits: everything in `has` and nothing in `lacks` is in the template. */
static const struct {
    const char *name;
    const char *has[4];
    const char *lacks[2];
} signs[] = {
    {"phi4", {"<|im_start|>", "<|im_sep|>"}, {NULL}},
    {"smolvlm", {"<|im_start|>", "<end_of_utterance>"}, {NULL}},
    {"chatml", {"<|im_start|>"}, {NULL}},
    {"mistral-v7", {"[INST]", "[SYSTEM_PROMPT] "}, {NULL}},
    {"mistral-v7-tekken", {"[INST]", "[SYSTEM_PROMPT]"}, {NULL}},
    {"mistral-v1", {"' [INST] ' + system_message"}, {NULL}},
    {"mistral-v1", {"[AVAILABLE_TOOLS]", " [INST]"}, {NULL}},
    {"mistral-v3-tekken", {"[AVAILABLE_TOOLS]", "\"[INST]\""}, {NULL}},
    {"mistral-v3", {"[AVAILABLE_TOOLS]", "[INST]"}, {NULL}},
    {"llama2-sys-strip", {"[INST]", "content.strip()"}, {NULL}},
    {"llama2-sys-bos", {"bos_token + '[INST]"}, {NULL}},
    {"llama2-sys", {"[INST]", "<<SYS>>"}, {NULL}},
    {"llama2", {"[INST]"}, {NULL}},
    {"phi3", {"<|assistant|>", "<|end|>"}, {NULL}},
    {"chatglm4", {"[gMASK]<sop>"}, {NULL}},
    {"exaone-moe", {"<|assistant|>", "<|user|>", "<|tool_declare|>"}, {NULL}},
    /* What stands behind the user's message tells these apart; the newline is one, or its sign. */
    {"zephyr", {"<|user|>\n' + message['content'] + eos_token"}, {NULL}},
    {"zephyr", {"<|user|>\\n' + message['content'] + eos_token"}, {NULL}},
    {"tulu", {"<|user|>\n' + message['content'] + '\n'", "eos_token"}, {"</s>"}},
    {"tulu", {"<|user|>\\n' + message['content'] + '\\n'", "eos_token"}, {"</s>"}},
    {"falcon3", {"<|assistant|>", "<|user|>", "</s>"}, {NULL}},
    {"glmedge", {"<|assistant|>", "<|user|>"}, {NULL}},
    {"glmedge", {"<|{{ item['role'] }}|>", "<|begin_of_image|>"}, {NULL}},
    {"zephyr", {"<|user|>", "<|endoftext|>"}, {NULL}},
    {"monarch", {"bos_token + message['role']"}, {NULL}},
    {"gemma", {"<start_of_turn>"}, {NULL}},
    {"orion", {"'\\n\\nAssistant: ' + eos_token"}, {NULL}},
    {"openchat", {"GPT4 Correct "}, {NULL}},
    {"vicuna-orca", {"USER: ", "ASSISTANT: ", "SYSTEM: "}, {NULL}},
    {"vicuna", {"USER: ", "ASSISTANT: "}, {NULL}},
    {"deepseek", {"### Instruction:", "<|EOT|>"}, {NULL}},
    {"alpaca", {"### Instruction:"}, {NULL}},
    {"command-r", {"<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>"}, {NULL}},
    {"llama3", {"<|start_header_id|>", "<|end_header_id|>"}, {NULL}},
    {"chatglm3", {"[gMASK]sop"}, {NULL}},
    {"minicpm", {"<用户>"}, {NULL}},
    {"deepseek2", {"'Assistant: ' + message['content'] + eos_token"}, {NULL}},
    {"deepseek3", {"<｜Assistant｜>", "<｜User｜>", "<｜end▁of▁sentence｜>"}, {NULL}},
    {"exaone4", {"[|system|]", "[|assistant|]", "[|endofturn|]", "[|tool|]"}, {NULL}},
    {"exaone3", {"[|system|]", "[|assistant|]", "[|endofturn|]"}, {NULL}},
    {"rwkv-world", {"rwkv-world"}, {NULL}},
    {"rwkv-world", {"{{- 'User: ' + message['content']|trim + '\\n\\n' -}}"}, {NULL}},
    {"granite", {"<|start_of_role|>"}, {NULL}},
    {"gigachat", {"message['role'] + additional_special_tokens[0] + message['content'] + "
                  "additional_special_tokens[1]"}, {NULL}},
    {"megrez", {"<|role_start|>"}, {NULL}},
    {"yandex", {" Ассистент:"}, {NULL}},
    {"bailing", {"<role>ASSISTANT</role>", "'HUMAN'"}, {NULL}},
    {"bailing-think", {"<role>ASSISTANT</role>", "\"HUMAN\"", "<think>"}, {NULL}},
    {"bailing2", {"<role>ASSISTANT</role>", "<role>HUMAN</role>", "<|role_end|>"}, {NULL}},
    {"llama4", {"<|header_start|>", "<|header_end|>"}, {NULL}},
    {"dots1", {"<|endofuserprompt|>"}, {NULL}},
    {"hunyuan-moe", {"<|extra_0|>", "<|extra_4|>"}, {NULL}},
    {"gpt-oss", {"<|start|>", "<|channel|>"}, {NULL}},
    {"hunyuan-vl", {"<｜hy_Assistant｜>", "<｜hy_begin▁of▁sentence｜>"}, {NULL}},
    {"hunyuan-dense", {"<｜hy_Assistant｜>", "<｜hy_place▁holder▁no▁3｜>"}, {NULL}},
    {"kimi-k2", {"<|im_assistant|>assistant<|im_middle|>"}, {NULL}},
    {"seed-oss", {"<seed:bos>"}, {NULL}},
    {"grok-2", {"'Assistant: '  + message['content'] + '<|separator|>"}, {NULL}},
    {"pangu-embedded", {"[unused9]系统：[unused10]"}, {NULL}},
    {"solar-open", {"<|begin|>", "<|end|>", "<|content|>"}, {NULL}},
    {"apertus", {"<|assistant_start|>", "<|user_start|>"}, {NULL}},
    {"nemotron", {"<extra_id_1>User"}, {NULL}},
    {"ernie", {"<|end_of_sentence|>", "User: "}, {NULL}},
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct run_chat_format *run_chat_format_at(size_t index)
{
    return index < COUNT(formats) ? &formats[index] : NULL;
}

const struct run_chat_format *run_chat_format_find(const char *name)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

static bool has_all(const char *text, const char *const *parts, size_t n_parts)
{
    for (size_t i = 0; i < n_parts && parts[i]; i++)
        if (!strstr(text, parts[i]))
            return false;
    return true;
}

static bool has_any(const char *text, const char *const *parts, size_t n_parts)
{
    for (size_t i = 0; i < n_parts && parts[i]; i++)
        if (strstr(text, parts[i]))
            return true;
    return false;
}

const struct run_chat_format *run_chat_format_recognise(const char *jinja)
{
    for (size_t i = 0; i < COUNT(signs); i++)
        if (has_all(jinja, signs[i].has, COUNT(signs[i].has)) &&
            !has_any(jinja, signs[i].lacks, COUNT(signs[i].lacks)))
            return run_chat_format_find(signs[i].name);
    return NULL;
}
