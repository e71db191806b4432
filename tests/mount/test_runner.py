#!/usr/bin/env python3
"""ggufs-run: text, chat and machine interfaces, what it leaves behind, and its manual."""

import contextlib
import fcntl
import json
import math
import os
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import termios
import time
import unittest

import numpy

import gguf_file
import mounting

setUpModule = mounting.require_fuse

RUNNER = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")

# sysexits.h
EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_IOERR = 0, 64, 65, 66, 74
INTERRUPTED = 130

STORY = ("Once upon a time, there was a little girl named Lily. She loved to play outside in the "
         "park. One day, she saw a big, red ball. She wanted to play with it, but it was too high."
         "\nLily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to")


class RunnerTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = mounting.sample()
        self.runtime = self.path("run")
        os.mkdir(self.runtime)
        # On a busy machine, the threads of a team wait long for each other.
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime, "OMP_NUM_THREADS": "1"}
        self.addCleanup(self.assert_nothing_is_left)

    def options(self, model):
        """Returns the options of the private mount; none if the model is a tree."""
        return mounting.MOUNT_OPTIONS if os.path.isfile(model) else []

    def start(self, *arguments, model=None, stdin=subprocess.DEVNULL):
        model = model or self.model
        return subprocess.Popen([RUNNER, *self.options(model), *arguments], stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment)

    def run_bytes(self, *arguments, given=None, model=None):
        """Run to the end; returns (status, stdout, stderr)."""
        process = self.start(*arguments, model=model,
                             stdin=subprocess.DEVNULL if given is None else subprocess.PIPE)
        try:
            out, err = process.communicate(given, timeout=4 * mounting.DEADLINE)
        finally:
            process.kill()
            process.wait()
        return process.returncode, out, err.decode()

    def run_runner(self, *arguments, given=None, model=None, status=EX_OK):
        """Run with the model after the options; returns stdout as text."""
        result, out, err = self.run_bytes(*arguments, given=given, model=model)
        self.assertEqual(status, result, err)
        return out.decode(), err

    def generate(self, *options, prompt="the file", model=None, given=None):
        more = [] if prompt is None else [prompt]
        return self.run_runner("--temp", "0", "-n", "8", *options, model or self.model, *more,
                               given=given, model=model or self.model)[0]

    def describe(self, *options, prompt="the file", model=None, given=None):
        return json.loads(self.generate("--json", *options, prompt=prompt, model=model,
                                        given=given))

    def refused(self, status, *arguments, model=None, given=None):
        out, err = self.run_runner(*arguments, model=model, given=given, status=status)
        self.assertEqual("", out, "what is wrong goes to stderr")
        self.assertTrue(err.startswith("ggufs"), err)
        return err

    def processes(self):
        """Return the processes with our runtime directory on their command line."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if os.fsencode(self.runtime) in file.read():
                        found.append(int(pid))
            except OSError:
                continue
        return [pid for pid in found if mounting.is_running(pid)]

    def assert_nothing_is_left(self):
        self.assertEqual([], os.listdir(self.runtime))
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            self.assertNotIn(self.runtime, file.read())
        self.assertEqual([], self.processes())


class TestText(RunnerTestCase):
    def test_the_same_from_mount_copy_and_file(self):
        self.mount(self.model)
        copy = self.path("copy")
        shutil.copytree(self.mountpoint, copy)
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
        shutil.copytree(self.mountpoint, copy)
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
                               (["-np"], "unknown option -np; ggufs-run --help lists all"),
                               (["-prompt", "a"], "unknown option -prompt; did you mean --prompt?")):
            self.assertEqual(f"ggufs-run: {message}\n", self.refused(EX_USAGE, *words, self.model))
        self.assertIn("-ngl99: ggufs-run computes on the CPU",
                      self.refused(EX_USAGE, "-ngl99", self.model, "a"))

    def test_names_of_models_elsewhere(self):
        for name, remedy in (("hf.co/a/b:Q4_K_M", "huggingface-cli"), ("a/b-GGUF", "huggingface-cli"),
                             ("llama3:8b", "ollama show"), ("https://a.b/c.gguf", "curl")):
            err = self.refused(EX_NOINPUT, name, "a")
            self.assertIn("local files only", err)
            self.assertIn(remedy, err)

    def test_no_such_model(self):
        self.assertIn("ggufs MODEL", self.refused(EX_NOINPUT, self.path("nothing"), "a"))

    def test_no_tree(self):
        err = self.refused(EX_NOINPUT, self.mountpoint, "a", model=self.mountpoint)
        self.assertIn("no directory metadata", err)

    def test_no_model(self):
        path = self.write("text", b"this is no model at all")
        self.assertIn("not a GGUF file", self.refused(EX_DATAERR, path, "a"))

    def test_unknown_architecture(self):
        err = self.refused(EX_DATAERR, "-o", "set=general.architecture=str:frob", self.model, "a")
        self.assertIn("frob", err)
        self.assertRegex(err, r"supported architectures:.* llama\b")

    def test_missing_files(self):
        for name in ("tensors/blk.1.attn_q.weight/info", "tensors/blk.1.attn_q.weight/raw",
                     "tensors/blk.1.attn_q.weight", "tensors", "metadata/llama.block_count.json",
                     "metadata"):
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
        self.assertIn(b"tensors/output.weight/raw", err)

    def test_files_other_than_the_model(self):
        """Their errors do not name the model."""
        for options, given, message in (
                (["-f", self.folder, self.model], None, f"{self.folder}: Is a directory"),
                (["-f", "/dev/zero", self.model], None,
                 "/dev/zero: more than 64 MiB, the limit of a prompt"),
                (["--perplexity", "/dev/null", self.model], None, "/dev/null: the text is empty"),
                (["--detokenize", self.model], b"5 x\n8",
                 'stdin: "x" is not an id from 0 to 351')):
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
        tokens, text = self.write("tokens", bytes(4)), self.write("text", b"the file " * 20)
        for options, given in ((["--help"], b""), (["--version"], b""),
                               (["-n", "3", self.model, "a"], b""),
                               (["-n", "3", "--json", self.model, "a"], b""),
                               (["-n", "3", "-i", self.model], b"hello\n"),
                               (["--tokenize", self.model, "a"], b""),
                               (["--detokenize", self.model], b"5 6 7"),
                               (["--tokens", tokens, "--logits", "-", self.model], b""),
                               (["--perplexity", text, self.model], b""),
                               (["--perplexity", text, "--json", self.model], b""),
                               (["--bench", "2,1", self.model], b""),
                               (["--bench", "2,1", "--json", self.model], b"")):
            with self.subTest(options=options), open("/dev/full", "wb") as full:
                process = subprocess.run([RUNNER, *self.options(self.model), *options],
                                         input=given, stdout=full, stderr=subprocess.PIPE,
                                         env=self.environment)
                self.assertEqual(EX_IOERR, process.returncode, process.stderr)
                self.assertEqual(b"ggufs-run: cannot write to standard output: No space left on "
                                 b"device\n", process.stderr)

    def test_a_vocabulary_only(self):
        model = mounting.fixture("gguf/ggml-vocab-llama.v1.gguf")
        err = self.refused(EX_NOINPUT, model, "a", model=model)
        self.assertIn("a vocabulary only", err)
        out, _ = self.run_runner("--tokenize", model, "a", model=model)
        self.assertRegex(out, r"^\d+( \d+)*\n$")
        # The text may directly follow the option.
        self.assertEqual(out, self.run_runner("--tokenize", "a", model, model=model)[0])

    def test_options_of_other_runners(self):
        for option, word in (("-ngl", "CPU"), ("-no-cnv", "-i"), ("-fa", "attention"),
                             ("--mlock", "-o mlock"), ("-mg", "CPU"), ("--n-gpu-layers=99", "CPU"),
                             ("-hf", "local files"), ("--override-kv", "-o set=")):
            err = self.refused(EX_USAGE, option, self.model, "a")
            self.assertTrue(err.startswith("ggufs-run: " + option.split("=")[0] + ": "), err)
            self.assertIn(word, err)


class TestSignals(RunnerTestCase):
    def interrupt(self, number, status, *options):
        process = self.start("--ignore-eos", "-c", "50000", *options, self.model, "a")
        process.stdout.read(2)  # it generates
        self.assertEqual([], os.listdir(self.runtime), "the directory is gone by now")
        process.send_signal(number)
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(status, process.returncode, err)
        return err.decode()

    def test_interrupt(self):
        self.assertIn("tokens/s", self.interrupt(signal.SIGINT, INTERRUPTED))

    def test_interrupt_while_nobody_reads(self):
        """An interrupt is not reported as an output error, even while the output waits for its
        reader."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, bytes(size - 8))
        process = subprocess.Popen([RUNNER, *self.options(self.model), "--ignore-eos", "-c",
                                    "50000", self.model, "a"], stdin=subprocess.DEVNULL,
                                   stdout=writer, stderr=subprocess.PIPE, env=self.environment)
        os.close(writer)
        time.sleep(1)  # until it writes, or soon will
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(INTERRUPTED, process.returncode, err)

    def test_terminate(self):
        self.interrupt(signal.SIGTERM, 128 + signal.SIGTERM)
        self.interrupt(signal.SIGHUP, 128 + signal.SIGHUP)

    def test_kill(self):
        self.interrupt(signal.SIGKILL, -signal.SIGKILL)
        mounting.wait_until(lambda: not self.processes(), "ggufs survives")

    def test_pipe(self):
        process = self.start("--ignore-eos", "-c", "50000", self.model, "a")
        process.stdout.read(2)
        process.stdout.close()
        process.stderr.read()
        process.stderr.close()
        self.assertEqual(-signal.SIGPIPE, process.wait(mounting.DEADLINE))
        mounting.wait_until(lambda: not self.processes(), "ggufs survives")

    def test_while_it_mounts(self):
        for delay in range(10):
            process = self.start("-n", "1", self.model, "a")
            try:
                process.wait(delay / 500)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=mounting.DEADLINE)
            self.assertIn(process.returncode, (0, 128 + signal.SIGTERM, -signal.SIGTERM))
            mounting.wait_until(lambda: not self.processes(), "ggufs survives")
            self.assertEqual([], os.listdir(self.runtime))


class TestTerminal(RunnerTestCase):
    """Text of a model cannot command a terminal; a pipe gets the bytes as they are."""

    HOSTILE = b"a\x1b[31m\x07\x7f\r\xc2\x9b2J \xe2\x82\xac\n\tb"
    SHOWN = rb"a\x1b[31m\x07\x7f\x0d\xc2\x9b2J " + b"\xe2\x82\xac\n\tb"

    def on_terminal(self, *arguments, given=b""):
        """Returns the output on a terminal that is both stdout and stderr."""
        master, slave = os.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        process = subprocess.Popen([RUNNER, *self.options(self.model), *arguments],
                                   stdin=subprocess.PIPE, stdout=slave, stderr=slave,
                                   env=self.environment)
        os.close(slave)
        process.stdin.write(given)
        process.stdin.close()
        shown = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(master)
        process.wait(mounting.DEADLINE)
        return shown

    def test_progress_of_a_prompt(self):
        """It appears after a second. Ctrl-C ends the chat with a message, and the line is erased."""
        master, slave = self.open_terminal()
        self.addCleanup(os.close, master)
        process = subprocess.Popen([RUNNER, *self.options(self.model), "-c", "50000", "-b", "8", "-i",
                                    self.model], stdin=subprocess.PIPE, stdout=slave, stderr=slave,
                                   env=self.environment)
        os.close(slave)
        process.stdin.write(b"one two three " * 3000)
        process.stdin.close()
        shown = b""
        while b"prompt: " not in shown:
            shown += os.read(master, 65536)
        process.send_signal(signal.SIGINT)
        self.assertEqual(INTERRUPTED, process.wait(mounting.DEADLINE))
        shown += os.read(master, 65536)
        self.assertRegex(shown, rb"\r\x1b\[Kprompt: \d+ of \d\d\d\d\d tokens")
        self.assertRegex(shown, rb"tokens\r\x1b\[Kggufs-run: interrupted .* only a part of it.*\s$")

    def test_messages_start_a_line(self):
        options = ("--temp", "0", "-n", "5", self.model, "the file")
        self.assertIn(b"\nggufs-run: load", self.on_terminal(*options))
        process = subprocess.run([RUNNER, *self.options(self.model), *options],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, env=self.environment)
        self.assertIn(b"\nggufs-run: load", process.stdout)
        _, out, err = self.run_bytes(*options)
        self.assertFalse(out.endswith(b"\n"))
        self.assertTrue(err.startswith("ggufs-run: load"), err)

    def test_text(self):
        arguments = ("--temp", "0", "-n", "0", self.model, "-")
        self.assertIn(self.SHOWN, self.on_terminal(*arguments, given=self.HOSTILE))
        self.assertEqual(self.HOSTILE, self.run_bytes(*arguments, given=self.HOSTILE)[1])

    def test_detokenized_bytes(self):
        ids = self.run_bytes("--tokenize", self.model, given=self.HOSTILE + b"\xff")[1]
        self.assertEqual(self.SHOWN + rb"\xff",
                         self.on_terminal("--detokenize", self.model, given=ids))
        self.assertEqual(self.HOSTILE + b"\xff",
                         self.run_bytes("--detokenize", self.model, given=ids)[1])

    def test_tokens_of_the_prompt(self):
        shown = self.on_terminal("-n", "0", "--verbose-prompt", self.model, "-",
                                 given=b"\x1b]0;x\x07")
        self.assertNotIn(b"\x1b]", shown)
        self.assertNotIn(b"\x07", shown)

    def test_messages(self):
        name = self.path("model\x1b[31m\x9b")
        for arguments in ((name, "a"), ("--tokens", name, "--logits", "-", self.model),
                          ("-i", "--chat-template", "\x1b[31m", self.model),
                          ("-n", "\x1b[31m", self.model), ("--\x1b[31m", self.model)):
            shown = self.on_terminal(*arguments)
            self.assertNotIn(b"\x1b[31m", shown)
            self.assertIn(rb"\x1b[31m", shown)

    def test_names_in_the_model(self):
        hostile = ("-o", "set=general.architecture=str:\x1b[31mfrob")
        shown = self.on_terminal(*hostile, self.model, "a")
        self.assertIn(rb"\x1b[31mfrob", shown)
        self.assertNotIn(b"\x1b[31m", shown)

    def test_json_has_no_control_characters(self):
        arguments = ("--json", "--temp", "0", "-n", "0", self.model, "-")
        out = self.run_bytes(*arguments, given=self.HOSTILE)[1]
        self.assertEqual(self.HOSTILE.decode(), json.loads(out)["prompt"])
        self.assertNotRegex(out.decode(), "[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class TestConfinement(RunnerTestCase):
    def statuses(self, *options, model=None):
        """Returns lines of /proc/PID/task/*/status for all threads, read during generation."""
        environment = {**self.environment, "OMP_NUM_THREADS": "3"}
        model = model or self.model
        process = subprocess.Popen([RUNNER, *self.options(model), "--ignore-eos", "-c", "50000",
                                    *options, model, "a"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        process.stdout.read(2)
        found = []
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            # The thread that reads the weights ahead may end at any time.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                    open(f"/proc/{process.pid}/task/{thread}/status", encoding="ascii") as file:
                found.append(dict(re.findall(r"^(\w+):\s+(\S+)", file.read(), re.M)))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(128 + signal.SIGTERM, process.returncode)
        self.assertIn(len(found), (3, 4), "three threads compute, one may read")
        return found

    @unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers need what is given up")
    def test_all_threads_are_confined(self):
        self.mount(self.model)
        for model in (self.model, self.mountpoint):
            for status in self.statuses(model=model):
                self.assertEqual(("2", "1", 0), (status["Seccomp"], status["NoNewPrivs"],
                                                 int(status["CapEff"], 16)))

    def test_without(self):
        for status in self.statuses("--no-sandbox"):
            self.assertEqual(("0", "0"), (status["Seccomp"], status["NoNewPrivs"]))

    @unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers need what is given up")
    def test_results_are_the_same(self):
        expected = self.generate("--no-sandbox")
        self.assertEqual(expected, self.generate())
        for n_threads in ("2", "3"):
            self.environment["OMP_NUM_THREADS"] = n_threads
            self.assertEqual(expected, self.generate())


class TestKeeper(RunnerTestCase):
    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare") and shutil.which("setpriv"),
                         "needs root for a namespace without /etc/mtab")
    def test_a_mount_that_cannot_be_removed(self):
        """The runner exits with EX_OSERR and a message, and ggufs ends. The mount goes with its
        namespace."""
        etc, device = self.path("etc"), self.path("fuse")
        os.mkdir(etc)
        for name in ("passwd", "group", "ld.so.cache"):
            if os.path.exists(f"/etc/{name}"):
                shutil.copy(f"/etc/{name}", etc)
        os.mknod(device, 0o666 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
        for path in (device, self.runtime):
            os.chmod(path, 0o777)
        os.chmod(self.folder, 0o755)
        # Another user may not be able to enter the folder of the build.
        for path in (RUNNER, mounting.BINARY, self.model):
            shutil.copy(path, self.folder)
        runner, model = (self.path(os.path.basename(path)) for path in (RUNNER, self.model))
        script = ('mount --bind "$1" /etc && mount --bind "$2" /dev/fuse || exit 99; shift 2; '
                  'exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"')
        process = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", etc, device, runner,
                                  *self.options(model), "--temp", "0", "-n", "8", model,
                                  "the file"], stdin=subprocess.DEVNULL, capture_output=True,
                                 env=self.environment)
        err = process.stderr.decode()
        self.assertEqual(71, process.returncode, err)
        self.assertEqual(self.generate().encode(), process.stdout)
        left, = [name for name in os.listdir(self.runtime)]
        self.assertIn(f"{left}: cannot remove the private mount", err)
        self.assertIn("umount -l", err)
        self.assertEqual([], self.processes())
        os.rmdir(os.path.join(self.runtime, left))

    def test_a_file_that_is_not_complete_is_removed(self):
        tokens = self.write("tokens", bytes(4 * 2000))
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = self.start("--tokens", tokens, "--logits", self.path("out"), "-b", "1",
                                 self.model)
            mounting.wait_until(lambda: [n for n in os.listdir(self.folder)
                                         if n.startswith("out.")], "no file is made")
            process.send_signal(number)
            process.communicate(timeout=mounting.DEADLINE)
            mounting.wait_until(lambda: not self.processes(), "something survives")
            self.assertEqual([], [n for n in os.listdir(self.folder) if n.startswith("out")])

    def test_the_keeper_is_killed(self):
        """ggufs ends with it."""
        process = self.start("--ignore-eos", "-c", "50000", self.model, "a")
        process.stdout.read(2)
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            keeper, = map(int, file.read().split())
        os.kill(keeper, signal.SIGKILL)
        mounting.wait_until(lambda: not self.processes(), "ggufs survives")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(128 + signal.SIGTERM, process.returncode)


@unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers take memory of their own")
class TestMemory(RunnerTestCase):
    """Memory use does not depend on sizes that a file declares, nor on keys that are not needed."""

    def run_limited(self, limit_mib, *arguments, status=EX_OK):
        """Run on a mounted tree with a limit of anonymous memory; mapped files do not count."""
        limit = (limit_mib << 20, limit_mib << 20)
        process = subprocess.run([RUNNER, *arguments], stdin=subprocess.DEVNULL,
                                 capture_output=True, env=self.environment,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, limit))
        err = process.stderr.decode()
        self.assertEqual(status, process.returncode, err)
        return err

    @staticmethod
    def sparse(keys, tensors):
        """Returns a writer, the header and the data size of a model whose tensor data is a hole."""
        file = gguf_file.GgufFile()
        file.keys, file.n_keys = keys, len(keys)
        out, offset = [], 0
        for name, ne, type_id, size in tensors:
            out.append(file.string(name) + file.pack("I", len(ne)) +
                       b"".join(map(file.length, ne)) + file.pack("IQ", type_id, offset))
            offset = file.aligned(offset + size)
        return file, b"".join([b"GGUF", file.pack("I", 3), file.length(len(tensors)),
                               file.length(len(keys)), *keys, *out]), offset

    def test_an_embedding_of_many_rows(self):
        n = 64 << 20
        keys = gguf_file.GgufFile()
        keys.key(b"general.architecture", gguf_file.STRING, b"llama")
        for name, value in ((b"block_count", 1), (b"embedding_length", 1),
                            (b"context_length", 64), (b"attention.head_count", 1),
                            (b"rope.dimension_count", 0)):
            keys.key(b"llama." + name, gguf_file.UINT32, value)
        tensors = [(b"output_norm.weight", [1], gguf_file.F32, 4),
                   (b"token_embd.weight", [1, n], gguf_file.I8, n)]
        file, header, size = self.sparse(keys.keys, tensors)
        path = self.write("model", header)
        os.truncate(path, file.aligned(len(header)) + size)
        self.mount(path)
        err = self.run_limited(100, "--bench", "1,1", self.mountpoint, status=EX_DATAERR)
        self.assertIn("67108864 rows", err)

    def test_a_key_that_nobody_needs(self):
        with open(self.model, "rb") as source:
            data = bytearray(source.read())
        n, = struct.unpack_from("<Q", data, 16)
        struct.pack_into("<Q", data, 16, n + 1)
        name = b"some.array"
        key = struct.pack("<Q", len(name)) + name + struct.pack("<IIQ", gguf_file.ARRAY,
                                                               gguf_file.UINT8, 32 << 20)
        path = self.path("model")
        with open(path, "wb") as target:
            target.write(data[:24] + key + b"\1" * (32 << 20) + data[24:])
        # The tensor data is no longer at its offsets, so only the tokenizer can use this tree.
        self.mount(path)
        self.run_limited(50, "--tokenize", self.mountpoint, "the file")

    def test_a_large_vocabulary(self):
        """Tokens, scores and types take about as much memory as they have in the file."""
        n = 1 << 18
        file = gguf_file.GgufFile()
        file.key(b"general.architecture", gguf_file.STRING, b"llama")
        file.key(b"tokenizer.ggml.model", gguf_file.STRING, b"llama")
        array = gguf_file.Array
        file.key(b"tokenizer.ggml.tokens", gguf_file.ARRAY,
                 array(gguf_file.STRING, [b"%x" % i for i in range(n)]))
        file.key(b"tokenizer.ggml.scores", gguf_file.ARRAY,
                 array(gguf_file.FLOAT32, [-float(i) for i in range(n)]))
        file.key(b"tokenizer.ggml.token_type", gguf_file.ARRAY,
                 array(gguf_file.INT32, [1] * n))
        self.mount(file.write(self.path("model")))
        self.run_limited(50, "--tokenize", self.mountpoint, "abc")


class TestMachine(RunnerTestCase):
    def ids_of(self, text, *options):
        out, _ = self.run_runner("--tokenize", *options, self.model, given=text)
        self.assertTrue(out.endswith("\n") or not text)
        return [[int(word) for word in line.split(" ") if word] for line in out.split("\n")[:-1]]

    def test_tokenize(self):
        text = "the file, caf\u00e9\n".encode() + b"\xff"
        ids, = self.ids_of(text)
        self.assertNotIn(1, ids)
        back = self.run_bytes("--detokenize", self.model, given=" ".join(map(str, ids)).encode())
        self.assertEqual((EX_OK, text), back[:2])

    def test_a_text_as_an_argument(self):
        expected = self.ids_of(b"the file")[0]
        for arguments in ([self.model, "the file"], ["-m", self.model, "the file"],
                          ["-p", "the file", self.model]):
            out, _ = self.run_runner("--tokenize", *arguments)
            self.assertEqual(expected, [int(word) for word in out.split()])

    def test_many_texts(self):
        texts = [b"the file", b"", b"two\nlines", b"<s>"]
        many = self.ids_of(b"\0".join(texts) + b"\0", "-0")
        self.assertEqual([self.ids_of(text)[0] for text in texts], many)
        self.assertEqual([1], [i for i in self.ids_of(b"<s>", "--special")[0] if i < 3])

    def test_tokenize_vocabularies(self):
        for path in mounting.fixtures("tokenizers"):
            if not os.path.exists(path + ".out"):
                continue
            with self.subTest(path=path):
                with open(path + ".inp", "rb") as file:
                    texts = file.read().split(b"\n__ggml_vocab_test__\n")
                with open(path + ".out", encoding="ascii") as file:
                    expected = [line.split() for line in file.read().split("\n")]
                out, _ = self.run_runner("--tokenize", "-0", path, model=path,
                                         given=b"".join(text + b"\0" for text in texts))
                lines = [line.split() for line in out.split("\n")]
                self.assertEqual(expected[:len(texts)], lines[:len(texts)])

    def test_wrong_ids(self):
        for ids in (b"1 x", b"-1", b"99999999"):
            self.assertIn("not an id", self.refused(EX_DATAERR, "--detokenize", self.model, given=ids))

    def logits(self, ids, *options, model=None):
        model = model or self.model
        tokens = self.write("tokens", struct.pack(f"<{len(ids)}i", *ids))
        out = self.path("logits")
        self.run_runner("--tokens", tokens, "--logits", out, *options, model, model=model)
        self.assertEqual(["logits"], [n for n in os.listdir(self.folder) if n.startswith("logits")])
        values = numpy.fromfile(out, "<f4").reshape(len(ids), -1)
        status, piped, _ = self.run_bytes("--tokens", tokens, "--logits", "-", *options, model,
                                          model=model)
        self.assertEqual((EX_OK, values.tobytes()), (status, piped))
        return values

    def test_logits(self):
        ids = [1, *self.ids_of(b"the name of the file")[0]]
        values = self.logits(ids)
        numpy.testing.assert_allclose(values, self.logits(ids, "-b", "1"), atol=1e-4)
        described = self.describe("-n", "1", prompt="the name of the file")
        self.assertEqual(ids, described["prompt_ids"])
        self.assertEqual([int(values[-1].argmax())], described["ids"])

    def test_logits_of_fixtures(self):
        for name in ("qwen2", "gemma2", "gpt2"):
            with self.subTest(name=name):
                model = mounting.fixture(f"archs/{name}.gguf")
                ids = numpy.fromfile(mounting.fixture("archs/tokens.i32"), "<i4").tolist()
                expected = numpy.fromfile(mounting.fixture(f"archs/{name}.logits.f32"), "<f4")
                values = self.logits(ids, "-b", "7", model=model).ravel().astype(float)
                error = ((values - expected) ** 2).sum() / (expected.astype(float) ** 2).sum()
                self.assertLess(error, 1e-6)

    def test_where_logits_go(self):
        """A pipe is written to and a symbolic link is followed; neither is replaced."""
        tokens = self.write("tokens", struct.pack("<i", 1))
        arguments = ("--tokens", tokens, "--logits")
        _, expected, _ = self.run_bytes(*arguments, "-", self.model)
        pipe, link, file = self.path("pipe"), self.path("link"), self.write("file", b"old")
        os.mkfifo(pipe)
        os.symlink(file, link)
        process = self.start(*arguments, pipe, self.model)
        with open(pipe, "rb") as reader:
            self.assertEqual(expected, reader.read())
        process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(EX_OK, process.returncode)
        self.run_runner(*arguments, link, self.model)
        self.assertTrue(os.path.islink(link))
        with open(file, "rb") as reader:
            self.assertEqual(expected, reader.read())

    def test_wrong_tokens(self):
        out = self.path("out")
        for data, status, word in ((b"", EX_DATAERR, "ids"), (b"123", EX_DATAERR, "ids"),
                                   (b"\xff\xff\xff\x7f", EX_DATAERR, "2147483647")):
            path = self.write("tokens", data)
            self.assertIn(word, self.refused(status, "--tokens", path, "--logits", out, self.model))
        path = self.write("tokens", bytes(4 * 9))
        self.assertIn("9 tokens, more than the context of 8",
                      self.refused(EX_DATAERR, "-c", "8", "--tokens", path, "--logits", out,
                                   self.model))
        self.refused(EX_NOINPUT, "--tokens", path, "--logits", self.path("no/where"), self.model)
        self.assertNotIn("out", "".join(os.listdir(self.folder)))

    def test_perplexity(self):
        text = b"the name of the file is in the model " * 4
        path = self.write("text", text)
        ids = [1, *self.ids_of(text)[0]]
        window = 16
        surprises = []
        for start in range(0, len(ids) - window + 1, window):
            part = [1, *ids[start + 1:start + window]]
            values = self.logits(part).astype(float)
            for i in range(window // 2, window - 1):
                row = values[i] - values[i].max()
                surprises.append(math.log(numpy.exp(row).sum()) - row[part[i + 1]])
        expected = math.exp(sum(surprises) / len(surprises))
        out, _ = self.run_runner("--perplexity", path, "-c", str(window), "--json", self.model)
        described = json.loads(out)
        self.assertAlmostEqual(expected, described["perplexity"], delta=1e-3 * expected)
        self.assertEqual(len(surprises), described["counted_tokens"])
        out, _ = self.run_runner("--perplexity", path, "-c", str(window), self.model)
        self.assertAlmostEqual(expected, float(out.split()[1]), delta=1e-3 * expected)


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
        plain, _ = self.chat(b"<|im_end|>\n")
        special = self.describe("-n", "6", "--special", prompt="<|im_start|>user\n<|im_end|>"
                                "<|im_end|>\n<|im_start|>assistant\n")["text"]
        self.assertNotEqual(special, plain.removesuffix("\n"))

    def test_templates(self):
        unknown = ("-o", "set=tokenizer.chat_template=str:{{ messages }}")
        err = self.refused(EX_DATAERR, "-i", *unknown, self.model, given=b"a\n")
        self.assertIn("chat template not recognized", err)
        self.assertIn("--chat-template NAME", err)
        none = ("-o", "unset=tokenizer.chat_template")
        err = self.refused(EX_DATAERR, "-i", *none, self.model, given=b"a\n")
        self.assertIn("no chat template", err)
        err = self.refused(EX_USAGE, "-i", "--chat-template", "nothing", self.model, given=b"a\n")
        self.assertRegex(err, r"available:.* chatml .*llama3")
        self.chat(b"hello\n", *unknown, "--chat-template", "vicuna")

    def test_a_full_context_ends_it(self):
        _, err = self.chat(b"hello\n" * 50, "-c", "60")
        self.assertIn("context of 60 tokens is full", err)


class TestManual(RunnerTestCase):
    @staticmethod
    def read(name):
        with open(os.path.join(mounting.ROOT, name), encoding="utf-8") as file:
            return file.read()

    def options_of_help(self):
        out, _ = self.run_runner("--help")
        return {word for line in out.splitlines() if line.startswith("  -")
                for word in re.findall(r"(?:^  |, )(--?[a-z0-9V-]+)", line.split("   ")[0])}

    def test_options_are_everywhere(self):
        found = self.options_of_help()
        self.assertIn("--perplexity", found)
        self.assertIn("-0", found)
        lines = self.read("ggufs-run.1").splitlines()
        items = [line for line in lines if line.startswith(".It Fl")]
        manual = {"-" + word.rstrip(",") for item in items
                  for word in re.findall(r"Fl (-?[A-Za-z0-9][\w-]*)", item)}
        self.assertEqual(found, manual)
        bash = re.search(r"compgen -W '(-h [^']*)'", self.read("contrib/completion/ggufs-run.bash"))
        self.assertEqual(found, set(bash[1].split()))
        zsh = set(re.findall(r"(?<![\w(-])(--?[a-z0-9V][a-z0-9-]*)(?=[\[,}])",
                             self.read("contrib/completion/_ggufs-run")))
        self.assertEqual(found, zsh)

    def test_chat_formats_are_completed(self):
        err = self.refused(EX_USAGE, "-i", "--chat-template", "nothing", self.model, given=b"")
        names = err.split("available:")[1].split()
        for name in ("ggufs-run.bash", "_ggufs-run"):
            found = re.search(r"\(?(alpaca [^')]*)", self.read("contrib/completion/" + name))
            self.assertEqual(names, found[1].split())

    def test_version(self):
        out, _ = self.run_runner("-V")
        self.assertRegex(out, r"^ggufs-run \d+\.\d+\.\d+\nkernels \w+\n$")


if __name__ == "__main__":
    unittest.main()
