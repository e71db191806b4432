#!/usr/bin/env python3
"""ggufs-run on the models of the fixtures: logits compared with those of other programs.

Without fixtures there is nothing to compare with, and everything is skipped.
"""

import glob
import os
import subprocess

import numpy

import mounting

setUpModule = mounting.require_fuse

RUNNER = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")

# The whole text at once, batches that do not divide it evenly, token by token.
BATCHES = [512, 7, 1]

# llama.cpp's own error on these models, with its 8-bit activations.
LLAMA_CPP_NMSE = {
    "llama-BF16": 1.7e-5, "llama-Q4_0": 2.3e-4, "llama-Q5_1": 2.6e-4, "llama-Q8_0": 2.1e-4,
    "llama-Q2_K": 4.5e-4, "llama-Q4_K_M": 4.7e-4, "llama-Q6_K": 4.2e-4, "llama-IQ4_XS": 3.9e-4,
    "mixtral-Q4_K_M": 8.7e-4, "gpt-oss-MXFP4": 3.4e-4,
}


def models(folder):
    """Returns the models in a folder of the fixtures, with their expected logits."""
    found = []
    for model in mounting.fixtures(folder):
        expected = model.removesuffix(".gguf") + ".logits.f32"
        if os.path.exists(expected):
            found.append((os.path.basename(model), model, expected))
    return found


class TestLogits(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        # On a busy machine, the threads of a team wait long for each other.
        self.environment = {"OMP_NUM_THREADS": "1", **os.environ, "XDG_RUNTIME_DIR": self.path("run")}
        os.mkdir(self.path("run"))

    def logits(self, model, tokens, *options):
        done = subprocess.run([RUNNER, *mounting.MOUNT_OPTIONS, "--tokens", tokens, "--logits", "-",
                               *options, model], capture_output=True, env=self.environment,
                              timeout=10 * mounting.DEADLINE)
        self.assertEqual(0, done.returncode, done.stderr.decode(errors="replace"))
        return numpy.frombuffer(done.stdout, dtype="<f4")

    def check(self, folder, limit_of, *options):
        tokens = mounting.fixture("archs/tokens.i32")
        found = models(folder)
        if not found:
            mounting.skip_loudly(f"no models in the fixtures' {folder}")
        for name, model, path in found:
            expected = numpy.fromfile(path, dtype="<f4").astype(float)
            first = None
            for batch in BATCHES:
                with self.subTest(model=name, batch=batch):
                    logits = self.logits(model, tokens, "-b", str(batch), *options)
                    self.assertEqual(expected.size, logits.size)
                    error = ((logits - expected) ** 2).sum() / (expected ** 2).sum()
                    self.assertLessEqual(error, limit_of(name))
                    # The batch size does not change a bit of the logits.
                    first = logits if first is None else first
                    self.assertEqual(first.tobytes(), logits.tobytes())

    def test_architectures(self):
        self.check("archs", lambda _: 1e-6)

    def test_quants(self):
        self.check("quants", lambda _: 1e-5, "--exact")

    def test_quants_in_integers(self):
        """With activations of 8 bits, the error is no greater than llama.cpp's.

        Most of it is rounding, which anything before it changes by some percent: 10 are allowed.
        """
        self.check("quants", lambda name: 1.1 * LLAMA_CPP_NMSE[name.removesuffix(".gguf")])

    def test_rwkv(self):
        """After three bytes the differences cancel out, see the README of the fixtures."""
        folder = os.path.dirname(mounting.fixture("rwkv/expected-logits-4v0-660K.bin"))
        tokens = self.path("tokens.i32")
        numpy.frombuffer(b'"in', dtype=numpy.uint8).astype("<i4").tofile(tokens)
        for name in sorted(os.listdir(folder)):
            if not name.endswith("-FP32.bin"):
                continue
            version = name.removeprefix("tiny-rwkv-").removesuffix("-FP32.bin")
            expected = numpy.fromfile(f"{folder}/expected-logits-{version}.bin", dtype="<f4")
            with self.subTest(model=name):
                logits = self.logits(os.path.join(folder, name), tokens)[-expected.size:]
                self.assertLess(abs((logits.astype(float) - expected).sum()), 1e-3)

    def test_rwkv_as_gguf(self):
        """model.gguf of an rwkv.cpp file, in llama.cpp's names and shapes, is the same model."""
        tokens = self.path("tokens.i32")
        numpy.frombuffer(b'"in', dtype=numpy.uint8).astype("<i4").tofile(tokens)
        folder = os.path.dirname(mounting.fixture("rwkv/tiny-rwkv-6v0-3m-Q5_1.bin"))
        for model in sorted(glob.glob(os.path.join(folder, "tiny-rwkv-[67]*.bin"))):
            with self.subTest(model=model):
                with open(self.path("model.gguf"), "wb") as file:
                    subprocess.run([mounting.BINARY, "--cat", model, "model.gguf"], stdout=file,
                                   check=True)
                self.assertEqual(self.logits(model, tokens).tobytes(),
                                 self.logits(self.path("model.gguf"), tokens).tobytes())
