#!/usr/bin/env python3
"""ggufs-run: text, chat, errors, version and manual."""

import json
import os
import re
import shutil
import subprocess


import mounting
from runner_case import EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_IOERR, RUNNER, STORY, RunnerTestCase

MARKS = ("sanitize",)

setUpModule = mounting.require_fuse


class TestText(RunnerTestCase):
    def test_the_same_from_mount_copy_and_file(self):
        self.mount(self.model)
        copy = self.path("copy")
        mounting.copy_tree(self.mountpoint, copy)
        texts = [self.generate(model=model) for model in (self.mountpoint, copy, self.model)]
        self.assertTrue(texts[0].startswith("the file"))
        self.assertGreater(len(texts[0]), len("the file"))
        self.assertEqual([texts[0]] * 3, texts)

    def test_a_story(self):
        model = mounting.fixture("gguf/stories260K.gguf")
        text = self.generate("-n", "64", model=model, prompt="Once upon a time")
        self.assertTrue(STORY.startswith(text), text)
        self.assertGreater(len(text), 180)
        self.assertEqual(STORY, self.generate("-n", "200", "-r", " do", model=model,
                                              prompt="Once upon a time"))

    def test_the_story_of_old_files(self):
        for name in ("llama-ggml-f16.bin", "llama-ggmf1-f32.bin"):
            with self.subTest(name=name):
                model = mounting.fixture(f"legacy/{name}")
                self.assertTrue(STORY.startswith(
                    self.generate("-n", "40", model=model, prompt="Once upon a time")))

    def test_where_the_prompt_comes_from(self):
        expected = self.generate()
        self.assertEqual(expected, self.generate(prompt="-", given=b"the file\n"))
        self.assertEqual(expected, self.generate(prompt=None, given=b"the file"))
        path = self.write("prompt", b"the file\n")
        self.assertEqual(expected, self.generate("-f", path, prompt=None))
        self.assertEqual(expected[len("the file"):], self.generate("--no-display-prompt"))

    def test_model_and_prompt_as_options(self):
        expected = self.generate()
        for arguments in (["-m", self.model, "-p", "the file"], ["-m", self.model, "the file"],
                          ["--prompt", "the file", self.model],
                          ["the file", "--model", self.model]):
            with self.subTest(arguments=arguments):
                self.assertEqual(expected, self.run_runner("--temp", "0", "-n", "8",
                                                           *arguments)[0])
        for arguments in (["-m", self.model, self.model, "the file"],
                          ["-p", "a", self.model, "b"]):
            self.assertIn("two ", self.refused(EX_USAGE, *arguments))

    def test_output_is_utf8(self):
        text = self.generate("-n", "60", "--ignore-eos", prompt="-", given=b"caf\xe9 \xff")
        self.assertTrue(text.startswith("caf\ufffd \ufffd"), text)

    def test_length(self):
        self.assertEqual("the file", self.generate("-n", "0"))
        self.assertEqual([], self.describe("-n", "0")["ids"])
        self.assertEqual(5, len(self.describe("-n", "5", "--ignore-eos")["ids"]))

    def test_stop_texts(self):
        whole = self.describe("-n", "40", "--ignore-eos")["text"]
        piece = max(whole.split("\0"), key=len)  # an argument can't have NUL bytes
        self.assertGreater(len(piece), 10)
        for stop in (piece[5:6], piece[5:9], piece[7:]):
            described = self.describe("-n", "40", "--ignore-eos", "-r", "not there", "--stop", stop)
            self.assertEqual(whole[:whole.index(stop)], described["text"])
            self.assertEqual("stop", described["stop"])
        # Text that was held back is printed when it does not become a stop text.
        self.assertEqual(whole, self.describe("-n", "40", "--ignore-eos", "-r",
                                              piece[-3:] + "x")["text"])

    def test_seeds(self):
        def text(*options):
            return self.describe("--temp", "1.5", "-n", "20", "--ignore-eos", *options)["text"]
        self.assertEqual(text("-s", "5"), text("-s", "5"))
        self.assertNotEqual(text("-s", "5"), text("-s", "6"))

    def test_repetition_is_avoided(self):
        options = ("-n", "30", "--ignore-eos", "--repeat-penalty", "100", "--repeat-last-n", "-1")
        ids = self.describe(*options)["ids"]
        self.assertEqual(len(set(ids)), len(ids))

    def test_context_limit(self):
        described = self.describe("-c", "20", "-n", "-1", "--ignore-eos")
        n = len(described["prompt_ids"]) + len(described["ids"])
        self.assertEqual(("context", 21), (described["stop"], n), "the last one is not fed")
        _, err = self.run_runner("--temp", "0", "--ignore-eos", "-c", "20", self.model, "a")
        self.assertIn("context of 20 tokens is full", err)
        self.assertIn("-c", err)

    def test_a_prompt_that_is_too_long(self):
        err = self.refused(EX_DATAERR, "-c", "9", self.model, "too long " * 5)
        self.assertRegex(err, r"prompt has \d+ tokens, more than the context of 9; -c")

    def test_batches_make_no_difference(self):
        expected = self.generate(prompt="the name of the file is read")
        for size in ("1", "3"):
            self.assertEqual(expected, self.generate("-b", size,
                                                     prompt="the name of the file is read"))

    def test_bos_and_special_tokens(self):
        plain = self.describe(prompt="<s>a")["prompt_ids"]
        special = self.describe("--special", prompt="<s>a")["prompt_ids"]
        self.assertEqual(1, plain[0])
        self.assertEqual([1, 1], special[:2])
        self.assertNotIn(1, plain[1:])
        self.assertNotIn(1, self.describe("--no-bos", prompt="a")["prompt_ids"])
        err = self.refused(EX_DATAERR, "--no-bos", self.model, "")
        self.assertIn("prompt is empty", err)

    def test_json(self):
        described = self.describe(prompt='quotes " and \\ and\nlines')
        self.assertEqual('quotes " and \\ and\nlines', described["prompt"])
        self.assertEqual(len(described["ids"]), described["timings"]["text"]["tokens"])
        self.assertEqual(len(described["prompt_ids"]), described["timings"]["prompt"]["tokens"])
        self.assertIn(described["stop"], ("end", "length"))
        if shutil.which("jq"):
            text = subprocess.run(["jq", "-j", ".text"], capture_output=True, check=True,
                                  input=json.dumps(described).encode()).stdout
            self.assertEqual(described["text"], text.decode())

    def test_json_with_nul_bytes(self):
        described = self.describe(prompt="-", given=b"a\0b\x01")
        self.assertEqual("a\0b\x01", described["prompt"])

    def test_a_context_beyond_the_training(self):
        _, err = self.run_runner("-n", "1", "-c", "100000", self.model, "a")
        self.assertRegex(err, r"trained for \d+ tokens")

    def test_timings(self):
        _, err = self.run_runner("-n", "2", self.model, "a")
        self.assertEqual(4, len(err.splitlines()), err)
        for word in ("load", "prompt", "text", "total", "tokens/s"):
            self.assertIn(word, err)


class TestErrors(RunnerTestCase):
    def copy(self):
        self.mount(self.model)
        copy = self.path("copy")
        mounting.copy_tree(self.mountpoint, copy)
        return copy

    def test_usage(self):
        for arguments in ([], [self.model, "a", "b"]):
            self.assertIn("usage: ggufs-run", self.refused(EX_USAGE, *arguments))
        for arguments in (["--frobnicate", "x"], ["--temp", "x", self.model]):
            err = self.refused(EX_USAGE, *arguments)
            self.assertIn(arguments[0], err)
            self.assertEqual(1, len(err.splitlines()), err)

    def test_unknown_options(self):
        for words, message in ((["-temp", "0"], "unknown option -temp; did you mean --temp?"),
                               (["--tmep", "0"], "unknown option --tmep; did you mean --temp?"),
                               (["-np"], "unknown option -np; for a list: ggufs-run --help"),
                               (["-prompt", "a"], "unknown option -prompt; did you mean --prompt?")):
            self.assertEqual(f"ggufs-run: {message}\n", self.refused(EX_USAGE, *words, self.model))
        self.assertIn("-md: drafts are made by prompt lookup",
                      self.refused(EX_USAGE, "-md", "x", self.model, "a"))

    def test_names_of_models_elsewhere(self):
        for name, remedy in (("hf.co/a/b:Q4_K_M", "hf download a/b --include"),
                             ("a/b-GGUF", "hf download a/b-GGUF FILE.gguf"),
                             ("llama3:8b", "ollama:llama3:8b"), ("https://a.b/c.gguf", "curl -L -O 'https://a.b/c.gguf'")):
            err = self.refused(EX_NOINPUT, name, "a")
            self.assertIn("local files only", err)
            self.assertIn(remedy, err)

        self.assertIn("there is no such model in", self.refused(EX_NOINPUT, "hf:a/b:Q8_0", "a"))

    def test_no_such_model(self):
        self.assertIn("nothing: No such file", self.refused(EX_NOINPUT, self.path("nothing"), "a"))

    def test_no_tree(self):
        err = self.refused(EX_NOINPUT, self.mountpoint, "a", model=self.mountpoint)
        self.assertIn("is a directory without a GGUF file", err)

    def test_a_folder_with_a_model(self):
        folder = self.path("folder")
        os.mkdir(folder)
        for name in ("a.gguf", "b.gguf"):
            shutil.copy(self.model, os.path.join(folder, name))
        self.assertIn("has 2 models; name one of: a.gguf, b.gguf",
                      self.refused(EX_NOINPUT, folder, "a"))
        os.remove(os.path.join(folder, "b.gguf"))
        words = ("-n", "4", "--temp", "0")
        self.assertEqual(self.run_runner(*words, self.model, "a")[0],
                         self.run_runner(*words, folder, "a")[0])

    def test_no_model(self):
        path = self.write("noise", b"\1\2\3\4 is no model at all")
        self.assertIn("not a GGUF file", self.refused(EX_DATAERR, path, "a"))

    def test_unknown_architecture(self):
        err = self.refused(EX_DATAERR, "-o", "set=general.architecture=str:frob", self.model, "a")
        self.assertIn("frob", err)
        self.assertRegex(err, r"supported architectures:.* llama\b")

    def test_missing_files(self):
        for name in ("tensors/blk.1.attn_q.weight/raw", "tensors/blk.1.attn_q.weight", "tensors",
                     "tensors.json", "metadata.json"):
            with self.subTest(name=name):
                copy = self.path("copy")
                if not os.path.exists(copy):
                    self.copy()
                os.rename(os.path.join(copy, name), self.path("kept"))
                err = self.refused(EX_NOINPUT, copy, "a", model=copy)
                os.rename(self.path("kept"), os.path.join(copy, name))
                self.assertIn(name.split("/")[-1].removesuffix(".json"), err)

    def test_wrong_files(self):
        copy = self.copy()
        raw = os.path.join(copy, "tensors/blk.1.attn_q.weight/raw")
        os.chmod(raw, 0o644)
        os.truncate(raw, 100)
        self.assertIn("blk.1.attn_q.weight/raw",
                      self.refused(EX_DATAERR, copy, "a", model=copy))

    def test_no_vocabulary(self):
        options = ("-o", "unset=tokenizer.ggml.tokens")
        err = self.refused(EX_NOINPUT, *options, self.model, "a")
        self.assertIn("tokenizer.ggml", err)

    def test_weights_that_vanish(self):
        copy = self.copy()
        raw = os.path.join(copy, "tensors/output.weight/raw")
        os.chmod(raw, 0o644)
        process = self.start("--ignore-eos", "-c", "50000", copy, "a", model=copy)
        process.stdout.read(1)
        os.truncate(raw, 0)
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(EX_IOERR, process.returncode, err)
        self.assertIn(f"ggufs-run: {copy}: tensors/output.weight/raw: cannot be read".encode(), err)

    def test_files_other_than_the_model(self):
        """Their errors do not name the model."""
        for options, given, message in (
                (["-f", self.folder, self.model], None, f"{self.folder}: Is a directory"),
                (["-f", "/dev/zero", self.model], None,
                 "/dev/zero: more than 64 MiB, the limit of a prompt")):
            _, out, err = self.run_bytes(*options, given=given)
            self.assertEqual(f"ggufs-run: {message}\n", err)

    def test_a_model_that_is_being_downloaded(self):
        with open(self.model, "rb") as file:
            half = self.write("half.gguf", file.read(700000))
        check = self.run_ggufs("--check", "-o", "partial", *mounting.MOUNT_OPTIONS, half)
        expected, = re.findall(r"(\d+ of \d+ tensors) are not complete yet", check.out)
        self.mount(half, "-o", "partial")
        for model, options in ((half, ["-o", "partial"]), (self.mountpoint, [])):
            err = self.refused(EX_IOERR, *options, model, "a", model=model)
            self.assertIn(f": {expected} cannot be read, among them tensors/", err)
            self.assertEqual(1, len(err.splitlines()), err)

    def test_every_command_checks_its_output(self):
        tokens = self.write("tokens", bytes(4))
        for options, given in ((["--help"], b""), (["--version"], b""),
                               (["-n", "3", self.model, "a"], b""),
                               (["-n", "3", "--json", self.model, "a"], b""),
                               (["-n", "3", "-i", self.model], b"hello\n"),
                               (["--tokenize", self.model, "a"], b""),
                               (["--tokens", tokens, "--logits", "-", self.model], b""),
                               (["--bench", "2,1", self.model], b""),
                               (["--bench", "2,1", "--json", self.model], b"")):
            with self.subTest(options=options), open("/dev/full", "wb") as full:
                process = subprocess.run([RUNNER, *self.options(self.model), *options],
                                         input=given, stdout=full, stderr=subprocess.PIPE,
                                         env=self.environment)
                self.assertEqual(EX_IOERR, process.returncode, process.stderr)
                self.assertEqual(b"ggufs-run: cannot write to standard output: No space left on "
                                 b"device\n", process.stderr)

    def run_into(self, output, *options, model):
        """Run with standard output appended to a file; returns (status, stderr)."""
        with open(output, "ab") as file:
            done = subprocess.run([RUNNER, *self.options(model), *options, model, "a"],
                                  stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE,
                                  env=self.environment, text=True)
        return done.returncode, done.stderr

    def assert_models_are_kept(self, model, files, tasks):
        """A file of the model, by any of its names, is no place for output."""
        tokens, link = self.write("tokens", bytes(4)), self.path("link")
        for path in files:
            os.link(path, link)
            with open(path, "rb") as file:
                before = file.read()
            for output in (path, link):
                status, _, err = self.run_bytes("--tokens", tokens, "--logits", output, model,
                                                model=model)
                self.assertEqual((EX_USAGE, f"ggufs-run: {output}: --logits would overwrite a "
                                  "model file; write to another file\n"), (status, err))
                for options in tasks:
                    self.assertEqual(
                        (EX_USAGE, "ggufs-run: standard output is a model file, which would be "
                         "damaged; write to another file\n"),
                        self.run_into(output, *options, model=model))
            with open(path, "rb") as file:
                self.assertEqual(before, file.read())
            os.remove(link)

    def test_a_model_is_not_overwritten(self):
        copy = self.path("copy.gguf")
        shutil.copyfile(self.model, copy)
        tasks = (["-n", "3"], ["--json", "-n", "3"], ["--tokenize"])
        self.assert_models_are_kept(copy, [copy], tasks)
        other = self.write("other", b"")
        self.assertEqual(EX_OK, self.run_into(other, "-n", "3", model=copy)[0])
        self.assertGreater(os.path.getsize(other), 0)
        self.mount(copy)
        self.assert_models_are_kept(self.mountpoint, [copy], tasks)
        self.assertEqual(EX_OK, self.run_into(other, "--tokenize", model=self.mountpoint)[0])

    def test_shards_are_not_overwritten(self):
        shards = []
        for path in mounting.fixtures("split"):
            shards.append(self.path(os.path.basename(path)))
            shutil.copyfile(path, shards[-1])  # its mode may forbid writing
        if not shards:
            mounting.skip_loudly("no split model in the fixtures")
        self.assert_models_are_kept(shards[0], shards, (["-n", "3"], ["--tokenize"]))

    def test_a_vocabulary_only(self):
        model = mounting.fixture("gguf/ggml-vocab-llama.v1.gguf")
        err = self.refused(EX_NOINPUT, model, "a", model=model)
        self.assertIn("a vocabulary only", err)
        out, _ = self.run_runner("--tokenize", model, "a", model=model)
        self.assertRegex(out, r"^\d+( \d+)*\n$")

    def test_options_of_other_runners(self):
        for option, word in (("-cnv", "-i"), ("-md", "--draft"), ("--list-devices", "CPU"),
                             ("-hf", "local files"), ("--override-kv=x", "-o set=")):
            err = self.refused(EX_USAGE, option, self.model, "a")
            self.assertTrue(err.startswith("ggufs-run: " + option.split("=")[0] + ": "), err)
            self.assertIn(word, err)

    def test_options_without_effect(self):
        """Options of llama.cpp that change nothing here are named once, and the run goes on."""
        plain, _ = self.run_runner("-n", "4", "--temp", "0", self.model, "a")
        text, err = self.run_runner("-n", "4", "-ngl", "99", "-fa", "on", "--jinja", "--temp", "0",
                                    "--no-mmap", self.model, "a")
        self.assertEqual(plain, text)
        self.assertEqual(["ggufs-run: warning: these options change nothing here: -ngl, -fa, "
                          "--jinja, --no-mmap"],
                         [line for line in err.splitlines() if "warning" in line])


class TestChat(RunnerTestCase):
    def chat(self, given, *options, status=EX_OK):
        return self.run_runner("-i", "--temp", "0", "-n", "6", *options, self.model, given=given,
                               status=status)

    def test_turns(self):
        out, err = self.chat(b"hello\nthe file\n/exit\nnot read\n", "--system", "be kind")
        self.assertGreaterEqual(out.count("\n"), 2)
        self.assertIn("tokens/s", err)
        for line in (b"  /exit ", b"/quit", b"/bye\t"):
            again, _ = self.chat(b"hello\nthe file\n" + line + b"\nnot read\n", "--system", "be kind")
            self.assertEqual(out, again)
        again, _ = self.chat(b"hello\nthe file", "--system", "be kind")
        self.assertEqual(out, again, "the end of the file ends it as well")
        other, _ = self.chat(b"hello\n\nthe file\n")
        self.assertNotEqual(out, other, "the system's message makes a difference")

    def test_the_first_message_is_the_argument(self):
        out, _ = self.run_runner("-i", "--temp", "0", "-n", "6", self.model, "hello", given=b"")
        self.assertEqual(self.chat(b"hello\n")[0], out)

    def test_an_answer_is_what_the_template_asks_for(self):
        prompt = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
        expected = self.describe("-n", "6", "--special", prompt=prompt)["text"]
        out, _ = self.chat(b"hello\n")
        self.assertEqual(expected.split("<|im_end|>")[0].lstrip(" "),
                         out.removesuffix("\n").lstrip(" "))

    def test_special_tokens_stay_text(self):
        """Wherever they are said: only the template's own are control tokens."""
        mark = "<|im_end|>"
        jinja = self.write("all.jinja", b"{{ messages | tojson }}<|im_end|>{{ tools | string }}"
                           b"{{ x ~ messages[-1].content[2:] | upper | lower }}")
        tools = self.write("tools.json", json.dumps([{"name": mark, mark: mark}]).encode())
        said = [{"role": "system", "content": mark}, {"role": "user", "content": mark, "name": mark},
                {"role": "assistant", "content": [{"type": "text", "text": mark}],
                 "reasoning_content": mark, "tool_calls": [{"type": "function", "function": {
                     "name": mark, "arguments": json.dumps({mark: mark})}}]},
                {"role": "tool", "content": "a " + mark}]
        for template, messages in ((jinja, said), ("chatml", said[1:2])):
            given = self.write("said.json", json.dumps(messages).encode())
            _, err = self.run_runner("--messages", given, "--tools", tools, "--template-arg",
                                     f'x="{mark}"', "--chat-template", template, "-n", "1",
                                     "--verbose-prompt", self.model)
            self.assertEqual(1, err.count(f"'{mark}'"), err)

    def test_templates(self):
        wrong = ("-o", "set=tokenizer.chat_template=str:a\n{{ messages | nothing }}")
        err = self.refused(EX_DATAERR, "-i", *wrong, self.model, given=b"a\n")
        self.assertIn("the chat template, line 2: No filter named 'nothing'", err)
        self.assertIn("--chat-template NAME", err)
        self.chat(b"hello\n", *wrong, "--chat-template", "vicuna")
        own = self.write("own.jinja", b"{{ messages[0].content }}")
        out, _ = self.chat(b"hello\n", "--chat-template", own)
        self.assertEqual(self.chat(b"hello\n", "-o", "set=tokenizer.chat_template=str:"
                                   "{{ messages[0].content }}")[0], out)
        none = ("-o", "unset=tokenizer.chat_template")
        err = self.refused(EX_DATAERR, "-i", *none, self.model, given=b"a\n")
        self.assertRegex(err, "no chat template; give --chat-template .* chatml, .* continues text")
        err = self.refused(EX_USAGE, "-i", "--chat-template", "nothing", self.model, given=b"a\n")
        self.assertRegex(err, r"needs a file, or one of:.* chatml, .*llama3")

    def test_a_mark_that_is_an_ordinary_token(self):
        """A mark of the format may be spelled out in other tokens than the one that it is."""
        found = json.loads(self.run_ggufs("--cat", "metadata.json", self.model).out)
        tokens, types = (found["tokenizer.ggml." + name] for name in ("tokens", "token_type"))
        eos = found["tokenizer.ggml.eos_token_id"]
        # With all logits equal, the model repeats token 0: "qqqq...".
        tokens[0], tokens[eos], types[0], types[eos] = "q", "qqq", 1, 1
        model = self.edited("repeat.gguf", {"tokenizer.ggml.tokens": tokens,
                                            "tokenizer.ggml.token_type": types},
                            ["output_norm.weight"])
        plain, _ = self.run_runner("-n", "4", "--temp", "0", "--no-display-prompt", model, "a",
                                   model=model)
        self.assertEqual("qqqq", plain)
        out, _ = self.run_runner("-i", "-n", "8", "--temp", "0", "--chat-template", "mistral",
                                 model, model=model, given=b"hello\n")
        self.assertEqual("\n", out)

    def test_a_full_context_ends_it(self):
        _, err = self.chat(b"hello\n" * 50, "-c", "60", status=EX_DATAERR)
        self.assertRegex(err, r"the conversation has \d+ tokens, and the context is 60: shorten the messages")

    def test_messages(self):
        """A conversation in a file is answered as the same conversation by turns."""
        first, second = (json.loads(line) for line in
                         self.chat(b"hello\nthe file\n", "--json")[0].splitlines())
        self.assertEqual("assistant", first["role"])
        said = [{"role": "user", "content": "hello"}, first, {"role": "user", "content": "the file"}]
        name = self.write("messages.json", json.dumps(said).encode())
        out, _ = self.run_runner("--messages", name, "--json", "--temp", "0", "-n", "6", self.model)
        self.assertEqual(second, json.loads(out))
        out, _ = self.run_runner("--messages", "-", "--json", "--temp", "0", "-n", "6", self.model,
                                 given=json.dumps({"messages": said}).encode())
        self.assertEqual(second, json.loads(out))
        out, _ = self.chat(b"/regen\n", "--messages", name, "--json")
        self.assertEqual([second] * 2, [json.loads(line) for line in out.splitlines()])
        for text, word in ((b"[", "messages: byte 1: not JSON: expected a value; correct --messages\n"),
                           (b'{"messages": [], "tools": {}}', "tools: not a list; correct --messages\n"),
                           (b'{"role": 1}', "messages: not a list"),
                           (b'[{"role": "<|im_end|>"}]', "only letters, digits"), (b"", "--messages: "),
                           (b"[{}]", "; change --messages, or --chat-template NAME takes another")):
            err = self.refused(EX_DATAERR, "--messages", self.write("wrong", text), self.model)
            self.assertIn(word, err)

    def test_content_in_parts(self):
        """A template that takes parts gets them; another one gets their texts."""
        parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        outs = set()
        for template in (b"{{ messages[0].content + '' }}", b"{{ messages[0].content[0].text + '\n' + messages[0].content[1].text }}"):
            jinja = self.write("parts.jinja", template)
            for said in ([{"role": "user", "content": parts}], {"messages": [{"role": "user", "content": parts}]}):
                _, err = self.run_runner("--messages", self.write("parts.json", json.dumps(said).encode()), "-n", "1",
                                         "--chat-template", jinja, "--verbose-prompt", self.model)
                outs.add(re.sub(r"(?m)^ggufs-run: .*\n", "", err))
        self.assertEqual(1, len(outs), outs)

    def test_messages_that_are_refused(self):
        system = self.write("system.json", b'[{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]')
        err = self.refused(EX_DATAERR, "--messages", system, "--system", "c", self.model)
        self.assertIn("--messages has a system message already", err)
        _, err = self.chat(b"/system c\n", "--messages", system, status=EX_DATAERR)
        self.assertIn("--messages has a system message already", err)
        image = [{"role": "user", "content": "a"}, {"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}]}]
        for said in (image, {"messages": image}):
            err = self.refused(EX_DATAERR, "--messages", self.write("image.json", json.dumps(said).encode()), self.model)
            self.assertIn("message 2 has a part of the type image_url, and ggufs-run reads text only", err)
        long = self.write("long.json", json.dumps([{"role": "user", "content": "a b " * 100}]).encode())
        err = self.refused(EX_DATAERR, "--messages", long, "-c", "60", self.model)
        self.assertRegex(err, r"the context is 60: shorten the messages, or -c N")

    def test_variables_of_the_template(self):
        jinja = ("-o", "set=tokenizer.chat_template=str:{{ tools }}{{ enable_thinking }}{{ x }}"
                 "{{ messages[0].content }}")
        tools = self.write("tools.json", b'[{"name": "f"}]')
        outs = [self.chat(b"a\n", *jinja, *options)[0] for options in (
            (), ("--no-think",), ("--template-arg", 'x={"y": "z"}'), ("--tools", tools))]
        self.assertEqual(4, len(set(outs)), outs)
        err = self.refused(EX_USAGE, "-i", "--template-arg", "x", self.model)
        self.assertIn("KEY=JSON", err)
        err = self.refused(EX_DATAERR, "-i", "--template-arg", "x=y", self.model, given=b"a\n")
        self.assertIn("x: byte 0: not JSON: expected a value; correct --template-arg\n", err)
        none = ("--messages", "-", "--tools", "-", self.model)
        self.assertIn("--tools: stdin is empty", self.refused(EX_DATAERR, *none, given=b"[]"))
        no_system = self.write("no.jinja", b"{{ raise_exception('no') if messages[0].role == 'system' }}a")
        err = self.refused(EX_DATAERR, "-i", "--chat-template", no_system, "--system", "a", self.model, given=b"a\n")
        self.assertIn("the chat template, line 1: no; change --system, or --chat-template", err)
        err = self.refused(EX_DATAERR, "-i", "--no-think", self.model, given=b"a\n")
        self.assertIn("no switch for thinking", err)
        word = self.write("word.jinja", b"{# enable_thinking #}{{ messages[0].thinking }}{{ messages[0].content }}")
        for said in (("-i",), ("--messages", self.write("said.json", b'[{"role": "user", "content": "a"}]'))):
            err = self.refused(EX_DATAERR, *said, "--no-think", "--chat-template", word, self.model, given=b"a\n")
            self.assertIn("no switch for thinking", err)

    def test_sampling_of_the_model(self):
        """The model's recommendation is the default; options win."""
        plain = self.chat(b"hello\n")[0]
        hot = ("-o", "set=general.sampling.temp=f32:0", "-i", "-n", "6", self.model)
        self.assertEqual(plain, self.run_runner(*hot, given=b"hello\n")[0])
        self.assertIn("general.sampling.mirostat: 2: ggufs-run has no such sampler",
                      self.run_runner("-o", "set=general.sampling.mirostat=u32:2", "-n", "1", self.model, "a")[1])
        self.assertIn("general.sampling.sequence: top_p;top_k: this is not followed; the order is penalties, top_k",
                      self.run_runner("-o", "set=general.sampling.sequence=str:top_p;top_k", "-n", "1", self.model, "a")[1])
        err = self.refused(EX_DATAERR, "-o", "set=general.sampling.top_p=f32:2", self.model, "a")
        self.assertIn("general.sampling.top_p: 2 is not from 0 to 1", err)


class TestVersion(RunnerTestCase):
    def test_version(self):
        out, _ = self.run_runner("-V")
        self.assertRegex(out, r"^ggufs-run \d+\.\d+\.\d+\nkernels \w+\n$")
