#!/usr/bin/env python3
"""ggufs --render, and the templates that ggufs --check warns of."""

import json
import os
import subprocess

import mounting
from gguf_file import ARRAY, STRING, UINT32, Array, GgufFile

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
        self.assert_fails(EX_DATAERR, [model, "no system", "--messages"], model,
                          "--set", set_to + "{{ raise_exception('no system') }}")
        missing = self.path("missing.json")
        self.assert_fails(EX_NOINPUT, ["--messages", missing], model, "--messages", missing)
        self.assert_fails(EX_DATAERR, ["--tools", "empty"], model, "--tools", os.devnull)
        self.assert_fails(EX_DATAERR, [model, "JSON"], self.model(), "--template-arg", "mood={")
        self.assert_fails(EX_USAGE, ["KEY=JSON"], model, "--template-arg", "mood")
        self.assert_fails(EX_USAGE, ["one argument too many"], model, self.path("other.gguf"))

    def test_check(self):
        good, bad = self.model(), "tokenizer.chat_template.short=a\n{% if %}"
        self.assertNotIn("[chat-template]", self.run_ggufs("--check", good).out)
        result = self.run_ggufs("--check", "--set", bad, good)
        self.assert_status(EX_OK, result)
        for word in ("[chat-template]", "tokenizer.chat_template.short", "line 2: ",
                     "--chat-template"):
            self.assertIn(word, result.out)


if __name__ == "__main__":
    mounting.main()
