/* Answers of models, taken apart. */
#include "contrib/runner/chat/answer.h"

#include <criterion/criterion.h>
#include <string.h>

#define ROLE "{\"role\":\"assistant\",\"content\":"
#define CALL(n, name, arguments)                                                                   \
    "{\"id\":\"call0000" n "\",\"type\":\"function\",\"function\":{\"name\":\"" name               \
    "\",\"arguments\":\"" arguments "\"}}"
#define Q "\\\""

/* Compare the message of an answer. `prompt` is the end of the rendered chat. */
static void expect(const char *jinja, const char *prompt, const char *text, const char *expected)
{
    bool is_begun;
    const struct run_thought_marks *marks =
        run_thought_marks_find(jinja, prompt, strlen(prompt), &is_begun);
    struct run_answer answer;
    struct gguf_buffer json = {0};

    cr_assert_eq(run_answer_parse(jinja, text, strlen(text), marks, is_begun, true, &answer), 0);
    cr_assert_eq(run_answer_add_json(&answer, "assistant", &json), 0);
    cr_expect_str_eq(json.bytes, expected, "%s: %s", text, json.bytes);
    gguf_buffer_free(&json);
    run_answer_free(&answer);
}

Test(run_answer, content)
{
    expect("x", "", "Hi\n", ROLE "\"Hi\\n\"}");
    expect("x", "", "\x1b\x7f\xc2\x9b\xc3\xa9", ROLE "\"\\u001b\\u007f\\u009b\xc3\xa9\"}");
    /* Marks that the template does not have are text. */
    expect("x", "", "<think>a</think>b", ROLE "\"<think>a</think>b\"}");
    expect("x", "", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
           ROLE "\"<tool_call>{" Q "name" Q ":" Q "f" Q "," Q "arguments" Q ":{}}</tool_call>\"}");
    expect("<|START_RESPONSE|><|END_RESPONSE|>", "", "<|START_RESPONSE|>a<|END_RESPONSE|>",
           ROLE "\"a\"}");
}

Test(run_answer, thoughts)
{
    expect("</think>", "", "<think>\na\n</think>\n\nb", ROLE "\"b\",\"reasoning_content\":\"a\"}");
    expect("</think>", "<|im_start|>assistant\n<think>\n", "a</think>b",
           ROLE "\"b\",\"reasoning_content\":\"a\"}");
    expect("</think>", "<think>\n\n</think>\n\n", "b", ROLE "\"b\"}");
    /* The answer was cut. */
    expect("</think>", "<think>", "a", ROLE "\"\",\"reasoning_content\":\"a\"}");
    expect("[/THINK]", "", "[THINK]a[/THINK]b", ROLE "\"b\",\"reasoning_content\":\"a\"}");
    /* Only thoughts at the start are thoughts. */
    expect("</think>", "", "a<think>b</think>", ROLE "\"a<think>b</think>\"}");
}

Test(run_answer, harmony)
{
    static const char jinja[] = "<|channel|>analysis";

    expect(jinja, "<|start|>assistant",
           "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b"
           "<|return|>",
           ROLE "\"b\",\"reasoning_content\":\"a\"}");
    expect(jinja, "<|start|>assistant",
           "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect(jinja, "", "<|channel|>fin", ROLE "\"\"}");
}

Test(run_answer, calls)
{
    static const char hermes[] = "<tool_call>", deepseek[] = "<｜tool▁call▁begin｜>";

    expect(hermes, "",
           "a\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": "
           "-12345678901234567}}\n</tool_call>\n"
           "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
           ROLE "\"a\",\"tool_calls\":[" CALL(
               "0", "f", "{" Q "x" Q ":-12345678901234567}") "," CALL("1", "g", "{}") "]}");
    /* Text that is not a call stays text, also behind one. */
    expect(hermes, "", "<tool_call>{\"name\": \"f\"",
           ROLE "\"<tool_call>{" Q "name" Q ": " Q "f" Q "\"}");
    /* cJSON reads these, JSON forbids them: they are written as JSON. */
    expect(hermes, "",
           "<tool_call>{\"name\": \"a1\", \"arguments\": {\"1\\\"2\": [\"3\n4\", "
           "0123456789012345678, 1234567890123456.0, 12345678901234567890, 2.]}}</tool_call>",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "a1",
                                             "{" Q "1\\\\\\\"2" Q ":[" Q "3\\\\n4" Q
                                             ",1.2345678901234568e+17,"
                                             "1234567890123456,12345678901234567890,2]}") "]}");
    expect("\"parameters\"", "", "{\"name\": \"f\", \"parameters\": {}, :1}",
           ROLE "\"{" Q "name" Q ": " Q "f" Q ", " Q "parameters" Q ": {}, :1}\"}");
    expect(hermes, "", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> b",
           ROLE "\"b\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect("<tool_call><function=", "",
           "<tool_call>\n<function=f>\n<parameter=x>\n12345678901234567\n</"
           "parameter>\n<parameter=y>\na\nb\n"
           "</parameter>\n</function>\n</tool_call>",
           ROLE "\"\",\"tool_calls\":[" CALL(
               "0", "f", "{" Q "x" Q ":12345678901234567," Q "y" Q ":" Q "a\\\\nb" Q "}") "]}");
    expect("<tool_call><arg_key>", "",
           "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{" Q "x" Q ":" Q "a" Q "}") "]}");
    expect("\"parameters\"", "", "{\"name\": \"f\", \"parameters\": {}}",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect("\"parameters\"", "", "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect("[TOOL_CALLS]", "", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect("[TOOL_CALLS]", "", "a[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{}[TOOL_CALLS]g[ARGS]{}",
           ROLE "\"a\",\"tool_calls\":[" CALL("0", "f", "{}") "," CALL("1", "g", "{}") "]}");
    expect(deepseek, "",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```"
           "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect(deepseek, "",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
           "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "," CALL("1", "g", "{}") "]}");
    expect("<|tool_call_begin|>", "",
           "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
           "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect("<|tool_call|>", "", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect(
        "<|START_ACTION|>", "",
        "<|START_ACTION|>[\n{\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {}}\n]"
        "<|END_ACTION|>",
        ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
    expect("Action:", "", "Action: ```json\n[{\"tool_name\": \"f\", \"parameters\": {}}]```",
           ROLE "\"\",\"tool_calls\":[" CALL("0", "f", "{}") "]}");
}
