/* Conversations, rendered by templates, and the templates for models that have none. */
#include "contrib/runner/chat/conversation.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/runner/run_vocabularies.h"

#define VOCABULARY                                                                                 \
    "{\"tokenizer.ggml.model\":\"llama\",\"tokenizer.ggml.tokens\":[\"<unk>\",\"<s>\",\"</s>\","   \
    "\"a\"],\"tokenizer.ggml.token_type\":[2,3,3,1],\"tokenizer.ggml.scores\":[0,0,0,0]}"

static struct run_tokenizer *tokenizer;

static void open_tokenizer(void)
{
    tokenizer = vocabulary_accept(VOCABULARY);
}

static void close_tokenizer(void)
{
    run_tokenizer_close(tokenizer);
}

TestSuite(run_conversation, .init = open_tokenizer, .fini = close_tokenizer);

static struct run_conversation begin(const char *jinja)
{
    struct run_conversation conversation;
    struct run_failure failure;

    cr_assert_eq(run_conversation_open(jinja, tokenizer, &conversation, &failure), 0, "%s",
                 failure.text);
    return conversation;
}

static void say(struct run_conversation *conversation, const char *role, const char *text)
{
    struct run_failure failure;

    cr_assert_eq(run_conversation_say(conversation, role, text, strlen(text), &failure), 0);
}

static void expect(const struct run_conversation *conversation, const char *expected)
{
    struct jinja_rendering rendering;
    struct run_failure failure;

    cr_assert_eq(run_conversation_render(conversation, &rendering, &failure), 0, "%s",
                 failure.text);
    cr_expect_str_eq(rendering.text, expected);
    jinja_rendering_free(&rendering);
}

static void expect_end(struct run_conversation *conversation, const char *expected)
{
    struct gguf_buffer end = {0};
    struct run_failure failure;

    cr_assert_eq(run_conversation_find_end(conversation, &end, &failure), 0);
    cr_expect_str_eq(end.bytes ? end.bytes : "", expected);
    gguf_buffer_free(&end);
}

/* A conversation of all roles, and what ends an answer. */
static const struct {
    const char *name, *text, *end;
} forms[] = {
    {"alpaca",
     "S\n\n### Instruction:\nU\n\n### Response:\nA</s>\n\n### Instruction:\nV\n\n### Response:\n",
     "</s>\n\n### Instruction:\n"},
    {"chatml",
     "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
     "A<|im_end|>\n<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n",
     "<|im_end|>\n<|im_start|>user\n"},
    {"gemma",
     "<s><start_of_turn>user\nS\n\nU<end_of_turn>\n"
     "<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>user\nV<end_of_turn>\n"
     "<start_of_turn>model\n",
     "<end_of_turn>\n<start_of_turn>user\n"},
    {"llama2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s><s>[INST] V [/INST]",
     " </s><s>[INST] "},
    {"llama3",
     "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user"
     "<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA"
     "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|><|start_header_id|>"
     "assistant<|end_header_id|>\n\n",
     "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"},
    {"mistral", "<s>[INST] S\n\nU [/INST] A</s>[INST] V [/INST]", "</s>[INST] "},
    {"phi3",
     "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>\n"
     "<|assistant|>\n",
     "<|end|>\n<|user|>\n"},
    {"vicuna", "S USER: U ASSISTANT: A</s>USER: V ASSISTANT:", "</s>USER: "},
    {"zephyr",
     "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\nA</s>\n<|user|>\nV</s>\n<|assistant|>\n",
     "</s>\n<|user|>\n"},
};

Test(run_conversation, named_templates)
{
    size_t n = 0;

    while (run_chat_templates[n].name)
        n++;
    cr_assert_eq(n, sizeof forms / sizeof *forms);
    for (size_t i = 0; i < n; i++) {
        struct run_conversation conversation;

        cr_assert_str_eq(run_chat_templates[i].name, forms[i].name);
        conversation = begin(run_chat_template_find(forms[i].name));
        say(&conversation, "user", "U");
        say(&conversation, "assistant", "A");
        say(&conversation, "user", "V");
        say(&conversation, "system", "S");
        expect(&conversation, forms[i].text);
        expect_end(&conversation, forms[i].end);
        run_conversation_close(&conversation);
    }
    cr_expect_null(run_chat_template_find("other"));
}

#define LIST "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}"

Test(run_conversation, messages)
{
    static const char given[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"1\"}],\"x\":[2]}";
    struct run_conversation conversation = begin(LIST "{{ x }}{{ add_generation_prompt }}");
    struct run_failure failure;

    cr_assert_eq(run_conversation_set(&conversation, NULL, given, strlen(given), &failure), 0);
    say(&conversation, "user", "\"\\\n\x01");
    cr_assert_eq(
        run_conversation_add(&conversation, "assistant", &(struct run_answer){0}, &failure), 0);
    expect(&conversation, "u1u\"\\\n\x01"
                          "a[2]True");
    run_conversation_cut(&conversation, 1);
    say(&conversation, "system", "s");
    say(&conversation, "system", "t");
    expect(&conversation, "stu1u\"\\\n\x01[2]True");
    run_conversation_close(&conversation);
}

Test(run_conversation, arguments_of_calls)
{
    char call[] = "{\"type\":\"function\",\"function\":{\"name\":\"f\","
                  "\"arguments\":\"{\\\"k\\\":1}\"}}";
    const struct run_answer answer = {.calls = {.bytes = call}, .n_calls = 1};
    struct run_conversation object = begin("{{ messages[0].tool_calls[0].function.arguments.k }}");
    struct run_conversation text =
        begin("{{ 'x' + messages[0].tool_calls[0].function.arguments }}");
    struct run_failure failure;

    cr_assert_eq(run_conversation_add(&object, "assistant", &answer, &failure), 0);
    cr_assert_eq(run_conversation_add(&text, "assistant", &answer, &failure), 0);
    expect(&object, "1");
    expect(&text, "x{\"k\":1}");
    run_conversation_close(&object);
    run_conversation_close(&text);
}

Test(run_conversation, errors_name_the_line)
{
    struct run_conversation conversation;
    struct jinja_rendering rendering;
    struct run_failure failure;

    cr_expect_eq(run_conversation_open("a\n{% if %}", tokenizer, &conversation, &failure), -EINVAL);
    cr_expect(strstr(failure.text, "the chat template, line 2: ") != NULL, "%s", failure.text);
    run_conversation_close(&conversation);
    conversation = begin("a\n{{ raise_exception('no') }}");
    say(&conversation, "user", "U");
    cr_expect_eq(run_conversation_render(&conversation, &rendering, &failure), -EINVAL);
    cr_expect(strstr(failure.text, "line 2: no; --chat-template NAME") != NULL, "%s", failure.text);
    run_conversation_close(&conversation);
}

Test(run_conversation, end_of_an_answer)
{
    struct run_conversation conversation = begin("{{ messages[0].content }}");

    expect_end(&conversation, "");
    run_conversation_close(&conversation);
    conversation = begin("{{ raise_exception('no') }}");
    expect_end(&conversation, "");
    run_conversation_close(&conversation);
}
