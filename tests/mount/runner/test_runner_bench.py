#!/usr/bin/env python3
"""ggufs-run --bench, on the sample and on models of make-run-model."""

import json
import os
import re
import struct
import subprocess

import numpy

import mounting
import runner_case

setUpModule = mounting.require_fuse

MAKE_MODEL = os.path.join(mounting.ROOT, "build", "make-run-model")

TINY = {"layers": 2, "width": 256, "inner": 256, "heads": 4, "kv_heads": 2, "head_width": 64,
        "experts": 4, "experts_used": 2, "state": 16, "vocabulary": 300}


class BenchTestCase(runner_case.RunnerTestCase):
    def make_model(self, *shape, **sizes):
        if not os.access(MAKE_MODEL, os.X_OK):
            mounting.skip_loudly(f"{MAKE_MODEL} is missing: run make build/make-run-model")
        model = self.path("-".join(shape) + ".gguf")
        subprocess.run([MAKE_MODEL, model, *shape, *(f"{name}={size}"
                                                     for name, size in sizes.items())], check=True)
        return model


class TestBench(BenchTestCase):
    def test_speeds(self):
        out, _ = self.run_runner("--bench", "8,4", self.model)
        self.assertRegex(out, r"prompt +8 +[0-9.]+ .*\ntext +4 +[0-9.]+ ")
        described = json.loads(self.run_runner("--bench", "8,0", "--json", self.model)[0])
        self.assertGreater(described["prompt"]["tokens_per_second"], 0)
        self.assertEqual(0, described["text"]["tokens_per_second"])
        self.assertEqual(0, described["depth"])

    def test_depth(self):
        described = json.loads(self.run_runner("--bench", "2,3@40", "--json", self.model)[0])
        self.assertEqual((40, 2, 3), (described["depth"], described["prompt"]["tokens"],
                                      described["text"]["tokens"]))
        _, err = self.run_runner("--bench", "2,3@2044", self.model)
        self.assertIn("the model was trained for 2048 tokens", err)

    def test_memory(self):
        out, err = self.run_runner("--bench", "2,2", self.model)
        self.assertRegex(out, r"\nmemory +[0-9.]+ MB anonymous, [0-9.]+ MB in all, "
                              r"[0-9.]+ MB of the weights in huge pages\n"
                              r"cache +[0-9.]+ MB of keys and values, [0-9.]+ MB of states\n$")
        self.assertEqual("", err)
        described = json.loads(self.run_runner("--bench", "0,2", "--json", self.model)[0])
        memory = described["memory"]
        self.assertGreater(memory["anonymous_bytes"], 0)
        self.assertGreaterEqual(memory["total_bytes"], described["weights_bytes"])
        self.assertLessEqual(memory["huge_page_bytes"], memory["total_bytes"])

    def test_counts_the_weights_that_a_token_uses(self):
        """All tensors, but one row of the embeddings, and one eighth of the experts."""
        model = self.make_model("qwen3moe", "Q8_0", layers=2, width=64, inner=32, heads=2,
                                kv_heads=1, head_width=32, experts=8, experts_used=1,
                                vocabulary=300)
        described = json.loads(self.run_runner("--bench", "0,1", "--json", model)[0])
        row_bytes = 64 // 32 * 34
        experts_bytes = 2 * 3 * 8 * 32 * row_bytes
        self.assertEqual(described["weights_bytes"] - 299 * row_bytes - experts_bytes * 7 // 8,
                         described["token_bytes"])

    def test_warns_of_a_context_beyond_training(self):
        _, err = self.run_runner("--bench", "0,1", "-c", "3000", self.model)
        self.assertIn("the model was trained for 2048 tokens", err)
        model = self.make_model("mamba2", "Q8_0", layers=1, width=32, inner=32, heads=1, state=4,
                                vocabulary=260)
        _, err = self.run_runner("--bench", "4097,0", model)
        self.assertIn("the model was trained for 4096 tokens", err)
        _, err = self.run_runner("--bench", "4096,0", model)
        self.assertEqual("", err)

    def test_progress_on_a_terminal(self):
        ours, theirs = self.open_terminal()
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            try:
                done = subprocess.run([runner_case.RUNNER, *mounting.MOUNT_OPTIONS, "--bench", "2,1",
                                       self.model], stdout=subprocess.PIPE, stderr=theirs,
                                      env=self.environment, timeout=4 * mounting.DEADLINE)
            finally:
                os.close(theirs)
            shown = b""
            try:
                while more := terminal.read(4096):
                    shown += more
            except OSError:  # the other end is closed
                pass
        self.assertEqual(0, done.returncode, shown)
        for what in (b"prompt of 2 tokens, 1 of 3", b"text of 1 tokens, 3 of 3"):
            self.assertIn(b"\r\033[Kbench: " + what, shown)
        self.assertTrue(shown.endswith(b"\r\033[K"), shown)
        self.assertNotIn(b"\033", done.stdout)


class TestRandomModels(BenchTestCase):
    """The models of make-run-model run, and their weights are finite and of a sensible size."""

    def test_shapes(self):
        for shape in ("llama", "qwen3moe", "gpt-oss", "mamba2"):
            with self.subTest(shape=shape):
                model = self.make_model(shape, **TINY)
                out, err = self.run_runner("--bench", "3,2", model)
                self.assertTrue(out.startswith(shape + ", "), out)
                self.assertEqual("", err)

    def test_types(self):
        types = re.search("^  TYPE (.*)", subprocess.run([MAKE_MODEL], stderr=subprocess.PIPE, text=True,
                                                         check=False).stderr, re.M)[1].split()
        self.assertIn("Q4_K_M", types)
        for name in types:
            with self.subTest(type=name):
                model = self.make_model("qwen3moe", name, **TINY)
                os.mkdir(self.path(name))
                folder = self.mount(model, mountpoint=self.path(name))
                for tensor in ("token_embd", "output", "blk.0.attn_v", "blk.1.attn_q",
                               "blk.1.ffn_down_exps"):
                    values = numpy.fromfile(f"{folder}/tensors/{tensor}.weight/f32", "<f4")
                    self.assertLess(abs(values).max(), 0.12)
                    self.assertAlmostEqual(0.02, values.std(), delta=0.006)
                    self.assertAlmostEqual(0, values.mean(), delta=0.001)
                tokens = self.write("tokens", struct.pack("<3i", 1, 270, 299))
                _, out, _ = self.run_bytes("--tokens", tokens, "--logits", "-", folder,
                                           model=folder)
                logits = numpy.frombuffer(out, "<f4").reshape(3, -1)
                self.assertTrue(numpy.isfinite(logits).all())
                self.assertGreater(logits.std(axis=1).min(), 0.01)
