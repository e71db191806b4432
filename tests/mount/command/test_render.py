#!/usr/bin/env python3
"""ggufs --render, and the templates that ggufs --check warns of."""

import json
import os
import subprocess

import mounting
from gguf_file import ARRAY, INT32, STRING, UINT32, Array, GgufFile

EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT = 0, 64, 65, 66

TEMPLATE = (b"{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
            b"{% if tools %}[{{ tools[0].name }}]{% endif %}{{ mood }}"
            b"{% if pad_token is defined %}PAD{% endif %}"
            b"{% if add_generation_prompt %}<bot>{% endif %}")


class TestRender(mounting.MountTestCase):
    def model(self, template=TEMPLATE):
        built = GgufFile().key(b"general.architecture", STRING, b"llama")
        built.key(b"tokenizer.ggml.model", STRING, b"llama")
        built.key(b"tokenizer.ggml.tokens", ARRAY, Array(STRING, [b"<unk>", b"<s>", b"</s>"]))
        built.key(b"tokenizer.ggml.bos_token_id", UINT32, 2)
        if template is not None:
            built.key(b"tokenizer.chat_template", STRING, template)
        built.key(b"tokenizer.chat_template.short", STRING, b"{{ messages[-1].content }}")
        return built.write(self.path("model.gguf"))

    def file(self, name, value):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(value, file)
        return file.name

    def rendered(self, *arguments, **more):
        done = subprocess.run([mounting.BINARY, "--render", *arguments], capture_output=True,
                              timeout=mounting.DEADLINE, **more)
        self.assertEqual(EX_OK, done.returncode, done.stderr)
        return done.stdout.decode()

    def test_text(self):
        model = self.model()
        messages = [{"role": "user", "content": "a\x1b"}]
        file = self.file("messages.json", messages)
        self.assertEqual("</s><user>Hello<bot>", self.rendered(model))
        self.assertEqual("</s><user>a\x1b<bot>", self.rendered(model, "--messages", file))
        self.assertEqual("a\x1b", self.rendered(model, "--messages", file, "--template", "short"))
        variables = json.dumps({"messages": messages, "mood": "calm"}).encode()
        tools = self.file("tools.json", [{"name": "weather"}])
        self.assertEqual("</s><user>a\x1b[weather]calm<bot>",
                         self.rendered(model, "--messages", "-", "--tools", tools, input=variables))
        self.assertEqual("</s><user>a\x1bsad", self.rendered(
            model, "--messages", "-", "--template-arg", 'mood="sad"', "--template-arg",
            "add_generation_prompt=false", input=variables))

    def assert_fails(self, status, words, *arguments):
        result = self.run_ggufs("--render", *arguments)
        self.assert_status(status, result)
        self.assertEqual("", result.out)
        self.assertEqual(1, len(result.err.splitlines()), result.err)
        for word in words:
            self.assertIn(word, result.err)

    def test_errors(self):
        model = self.model(None)
        self.assert_fails(EX_DATAERR, [model, "tokenizer.chat_template", "--set"], model)
        set_to = "tokenizer.chat_template=str:"
        self.assert_fails(EX_DATAERR, [model, "line 2", "--set"], model,
                          "--set", set_to + "a\n{{ 1 + }}")
        self.assert_fails(EX_DATAERR, [model, "no system; change --messages, or "], model,
                          "--set", set_to + "{{ raise_exception('no system') }}")
        missing = self.path("missing.json")
        self.assert_fails(EX_NOINPUT, ["--messages", missing], model, "--messages", missing)
        self.assert_fails(EX_DATAERR, ["--tools", "empty"], model, "--tools", os.devnull)
        self.assert_fails(EX_DATAERR, ["mood", "JSON", "; correct --template-arg\n"], self.model(), "--template-arg", "mood={")
        self.assert_fails(EX_USAGE, ["KEY=JSON"], model, "--template-arg", "mood")
        self.assert_fails(EX_USAGE, ["one argument too many"], model, self.path("other.gguf"))

    def test_a_remedy_names_what_is_wrong(self):
        model = self.model()
        spaced = self.file("spaced.json", [{"role": "us er", "content": ""}])
        for words, others, arguments in (
                (["--messages"], ["--set"], ["--messages", spaced]),
                (["--set"], ["--messages"], ["--set", "tokenizer.chat_template=str:{% if %}"])):
            self.assert_fails(EX_DATAERR, words, model, *arguments)
            for other in others:
                self.assertNotIn(other, self.run_ggufs("--render", model, *arguments).err)

    def test_tokens(self):
        tokens = [b"<unk>", b"<s>", b"</s>", b"<x>", b"<x>y", b"user", b"\xc3\xa9"]
        types = [2, 3, 3, 3, 4, 1, 1]
        built = GgufFile().key(b"general.architecture", STRING, b"llama")
        built.key(b"tokenizer.ggml.model", STRING, b"llama")
        built.key(b"tokenizer.ggml.tokens", ARRAY, Array(STRING, tokens))
        built.key(b"tokenizer.ggml.token_type", ARRAY, Array(INT32, types))
        built.key(b"tokenizer.chat_template", STRING,
                  b"{{ start }}<x>user{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}<x>y\n")
        model = built.write(self.path("tokens.gguf"))
        messages = self.file("messages.json", [{"role": "user", "content": "</s>\u00e9<x>y<x>\x1b"}])
        parts = ["template\t3\t\"<x>\"", "template\t-\t\"user\"", "message\t-\t\"</s>\u00e9\"",
                 "message\t4\t\"<x>y\"", "message\t-\t\"<x>\\u001b\"", "template\t2\t\"</s>\"",
                 "template\t4\t\"<x>y\""]
        arguments = [model, "--tokens", "--messages", messages]
        self.assertEqual(["tokenizer\t1\t\"<s>\"", *parts], self.rendered(*arguments).splitlines())
        self.assertEqual(parts, self.rendered(
            *arguments, "--set", "tokenizer.ggml.add_bos_token=bool:false").splitlines())
        roles = "tokenizer.chat_template=str:{{ '<' + messages[0].role + '>' }}"
        spoken = self.file("roles.json", [{"role": "x", "content": ""}])
        self.assertEqual('template\t3\t"<x>"', self.rendered(
            model, "--tokens", "--messages", spoken, "--set", roles).splitlines()[1])
        template = "tokenizer.chat_template=str:{{ bos_token }}{{ messages[0].content }}"
        self.assertEqual(["template\t1\t\"<s>\"", *parts[2:5]],
                         self.rendered(*arguments, "--set", template).splitlines())
        self.assert_fails(EX_DATAERR, [model, "no vocabulary", "without --tokens"], "--tokens", model,
                          "--unset", "tokenizer.ggml.tokens")

    def findings(self, template, *more):
        """Return {rule: severity and text} of the template of a model with a few control tokens."""
        tokens = [b"<unk>", b"<s>", b"</s>", b"<|a|>", b"user"]
        built = GgufFile().key(b"general.architecture", STRING, b"llama")
        built.key(b"tokenizer.ggml.model", STRING, b"llama")
        built.key(b"tokenizer.ggml.tokens", ARRAY, Array(STRING, tokens))
        built.key(b"tokenizer.ggml.token_type", ARRAY, Array(INT32, [2, 3, 3, 3, 1]))
        built.key(b"tokenizer.chat_template", STRING, template.encode())
        result = self.run_ggufs("--check", "--json", *more, built.write(self.path("checked.gguf")))
        self.assert_status(EX_OK, result)
        lines = [json.loads(line) for line in result.out.splitlines()]
        found = [one for one in lines if "template" in str(one["rule"])]
        self.assertEqual([], [one for one in found if one["key"] != "tokenizer.chat_template"])
        return {one["rule"]: f"{one['severity']}: {one['text']}" for one in found}

    def test_check(self):
        good, bad = self.model(), "tokenizer.chat_template.short=a\n{% if %}"
        self.assertNotIn("-template]", self.run_ggufs("--check", good).out)
        result = self.run_ggufs("--check", "--set", bad, good)
        self.assert_status(EX_OK, result)
        for word in ("[chat-template]", "tokenizer.chat_template.short", "line 2: ",
                     "--chat-template"):
            self.assertIn(word, result.out)

    def test_check_finds(self):
        each = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
        swapped = "{{ messages[-1].content }}{{ messages[0].content }}"
        for template, rule, words in (
                ("{{ ''.__class__ }}", "template-internals", 'warning: .*line 1: "__class__"'),
                (each + "{{ x['__globals__'] }}", "template-internals", 'line 2: "__globals__"'),
                (each + "\n{% if 'deploy it' in m.content|lower %}{% endif %}", "template-words", 'line 3: "deploy it"'),
                (each + "{{ 'x' if messages[0]['content'].strip() != 'word' }}", "template-words", 'line 2: "word"'),
                ("{% set content = 'a' %}{{ content.startswith('word') }}", "template-words", 'line 1: "word"'),
                ("{# #}\n\nsee https://x.org/a." + each, "template-url", 'line 3: "https://x.org/a."'),
                ("<s>" + each, "template-bos", "note: .*begins with the BOS token"),
                (each + "<|im_end|>", "template-tokens", 'no "<|im_end|>", which ends a turn'),
                (swapped, "template-turns", "changes the prompt from byte 10, "),
                ("{% if tools %}" + swapped + "{% endif %}" + each, "template-turns", "question, with tools, changes")):
            with self.subTest(template=template):
                found = self.findings(template)
                self.assertEqual([rule], list(found))
                self.assertRegex(found[rule], words.replace("|", "\\|"))

    def test_check_finds_nothing(self):
        each = "{% for m in messages %}{{ m.content }}</s>{% endfor %}{{ 'answer' if add_generation_prompt }}"
        for words in ("'</think>' in messages[0].content", "'word' in messages[0].role", "messages[0].content is string",
                      "messages[0].content[0].type == 'words'", "messages[0].content == ''",
                      "'parts' in messages[0].content and messages[0].content.parts",
                      "'parts' in messages[0].content and messages[0].content['parts']"):
            with self.subTest(words=words):
                self.assertEqual({}, self.findings(each + "{% if " + words + " %}{% endif %}"))
        for template in ("{# __class__ https://x.org #}" + each, each + "<|a|><|other|>", each + "{{ __name__ }}",
                         "{{ '__CLASS__' }}" + each, "a<s>" + each, each.replace("m.content", "'<|im_end|>' in m.content")):
            with self.subTest(template=template):
                self.assertEqual({}, self.findings(template))
        self.assertEqual({}, self.findings("<s>" + each, "--set", "tokenizer.ggml.add_bos_token=bool:false"))
        self.assertEqual({}, self.findings("<|im_end|>" + each, "--unset", "tokenizer.ggml.tokens"))


if __name__ == "__main__":
    mounting.main()
