#!/usr/bin/env python3
"""ggufs-run: confinement, memory, and the interface for programs."""

import contextlib
import json
import os
import re
import resource
import signal
import struct
import subprocess
import unittest

import numpy

import gguf_file
import mounting
from runner_case import EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT, RUNNER, RunnerTestCase

setUpModule = mounting.require_fuse


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
        self.assertIn(len(found), range(3, 7), "three threads compute, up to three read")
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
        return process.stdout, err

    def tokenized(self, model, text):
        """The ids of a text, with 50 MiB of memory."""
        out, _ = self.run_limited(50, "--tokenize", model, text)
        return [int(word) for word in out.split()]

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
        keys.key(b"llama.attention.layer_norm_rms_epsilon", gguf_file.FLOAT32, 1e-5)
        tensors = [(b"output_norm.weight", [1], gguf_file.F32, 4),
                   (b"token_embd.weight", [1, n], gguf_file.I8, n)]
        file, header, size = self.sparse(keys.keys, tensors)
        path = self.write("model", header)
        os.truncate(path, file.aligned(len(header)) + size)
        self.mount(path)
        _, err = self.run_limited(100, "--bench", "1,1", self.mountpoint, status=EX_DATAERR)
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
        self.assertEqual(self.tokenized(self.model, "the file"), self.tokenized(self.mountpoint, "the file"))

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
        self.assertEqual([0xabc], self.tokenized(self.mountpoint, "abc")[-1:])


class TestMachine(RunnerTestCase):
    def ids_of(self, text, *options):
        out, _ = self.run_runner("--tokenize", *options, self.model, given=text)
        self.assertTrue(out.endswith("\n") or not text)
        return [[int(word) for word in line.split(" ") if word] for line in out.split("\n")[:-1]]

    def test_tokenize(self):
        text = "the file, caf\u00e9\n".encode() + b"\xff"
        ids, = self.ids_of(text)
        self.assertNotIn(1, ids)
        self.assertGreater(len(ids), 5)

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
        os.remove(link)
        os.symlink(tokens, link)
        self.assertIn("--logits would overwrite the ids",
                      self.refused(EX_USAGE, *arguments, link, self.model))
        self.assertEqual(4, os.path.getsize(tokens))

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
        self.assertEqual(0, os.path.getsize(out), "nothing is written before the ids are checked")
