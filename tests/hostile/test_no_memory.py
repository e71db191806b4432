#!/usr/bin/env python3
"""ggufs and ggufs-run without enough memory: the Nth allocation of a process fails, N = 1, 2, …, until all succeed."""

import errno
import os
import stat
import subprocess
import tempfile

import numpy

import mounting
import tree_check
from gguf_file import ARRAY, F32, FLOAT32, I8, STRING, UINT32, Array, GgufFile

RUNNER = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")
FAIL_MALLOC = os.path.join(mounting.ROOT, "build", "fail-malloc.so")

# sysexits.h
EX_OK, EX_OSERR = 0, 71

setUpModule = mounting.require_binary


def memory_model():
    """Returns a small model with scalar and array keys, nested arrays, a long name and an empty tensor."""
    built = GgufFile().key(b"general.architecture", STRING, b"none").key(b"k", UINT32, 7)
    built.key(b"a/b", ARRAY, Array(STRING, [b"one", b"", b"\xff" * 40]))
    built.key(b"nested", ARRAY, Array(ARRAY, [Array(UINT32, [1, 2]), Array(STRING, [b"x"])]))
    built.tensor(b"n" * 300, [4], F32, bytes(range(16))).tensor(b"i8", [3, 2], I8, b"abcdef")
    return built.tensor(b"empty", [0], F32)


# Shapes of the tensors that the models below add to a layer, in ggml's order, and their keys.
EXPERTS = {"ffn_gate_inp.weight": [32, 4], "ffn_gate_exps.weight": [32, 16, 4],
           "ffn_up_exps.weight": [32, 16, 4], "ffn_down_exps.weight": [16, 32, 4],
           "attn_norm.weight": [32], "ffn_norm.weight": [32]}
FACTORS = {"attn_q_norm.weight": [1, 4], "layer_output_scale.weight": [1],
           "ffn_gate.weight": [32, 16], "ffn_up.weight": [32, 16], "ffn_down.weight": [16, 32]}
MODELS = {"llama": (EXPERTS, {"output_norm.weight": [32]},
                    {"expert_count": 4, "expert_used_count": 2}),
          "talkie": (FACTORS, {}, {"logit_scale": 0.5})}


def runnable_model(architecture):
    """Returns a model of a layer with experts, or with a factor for each head's queries."""
    layer, ends, keys = MODELS[architecture]
    built = GgufFile().key(b"general.architecture", STRING, architecture.encode())
    keys = {"block_count": 1, "embedding_length": 32, "attention.head_count": 4,
            "attention.layer_norm_rms_epsilon": 1e-5, **keys}
    for name, value in keys.items():
        kind = FLOAT32 if isinstance(value, float) else UINT32
        built.key(f"{architecture}.{name}".encode(), kind, value)
    shapes = {"token_embd.weight": [32, 12], "output.weight": [32, 12], **ends}
    layer = {**layer, **{f"attn_{name}.weight": [32, 32] for name in ("q", "k", "v", "output")}}
    shapes.update({f"blk.0.{name}": ne for name, ne in layer.items()})
    for name, ne in shapes.items():
        values = numpy.random.default_rng(len(name)).standard_normal(numpy.prod(ne)) / 4
        built.tensor(name.encode(), ne, F32, values.astype("<f4").tobytes())
    return built


def steps():
    """Yields 1, 2, 3 and so on, then numbers in growing steps."""
    number = 1
    while True:
        yield number
        number += max(1, number // 40)


class TestMemory(mounting.MountTestCase):
    """The Nth allocation of a process fails, or every Nth one, for every N up to the last."""

    def setUp(self):
        super().setUp()
        if mounting.is_sanitized():
            self.skipTest("sanitizers have allocators of their own")
        if not os.path.exists(FAIL_MALLOC):
            raise AssertionError(f"{FAIL_MALLOC} is missing: run make build/fail-malloc.so")
        self.model = memory_model().write(self.path("model.gguf"))
        self.failures = self.path("failures")

    def environment(self, number, every):
        self.write("failures", bytes(8))
        return {**os.environ, "LD_PRELOAD": FAIL_MALLOC, "FAIL_MALLOC_AT": str(number),
                "FAIL_MALLOC_EVERY": "1" if every else "", "FAIL_MALLOC_LOG": self.failures}

    def has_failed(self):
        return tree_check.read_file(self.failures) != bytes(8)

    def assert_clean_end(self, status, said):
        """Check that the command succeeded, or failed with EX_OSERR and a message. After a signal the
        status would be negative."""
        if status == EX_OK:
            return
        self.assertEqual(EX_OSERR, status, said)
        self.assertNotEqual("", said.strip(), "it ended without a word")

    def over_all(self, run):
        """Calls run(number, every) until no allocation is left to fail."""
        for every in (False, True):
            for number in steps():
                with self.subTest(number=number, every=every):
                    run(number, every)
                if not self.has_failed():
                    break
            self.assertGreater(number, 10, "hardly an allocation was seen")

    def test_check(self):
        self.check(self.model)

    def test_check_shards(self):
        for i in range(3):
            built = GgufFile().key(b"split.no", UINT32, i).key(b"split.count", UINT32, 3)
            model = built.tensor(b"t%d" % i, [4], F32, bytes(range(16))).write(
                self.path(f"m-{i + 1:05d}-of-00003.gguf"))
        self.check(model)

    def check(self, model):
        # libseccomp itself crashes when memory is too short.
        words = ["-o", "nosandbox", "--check", model]
        good = self.run_ggufs(*words)
        self.assert_status(EX_OK, good)

        def run(number, every):
            result = self.run_ggufs(*words, env=self.environment(number, every))
            self.assert_clean_end(result.status, result.out + result.err)
            if result.status == EX_OK:
                self.assertEqual(good.out, result.out)
        self.over_all(run)

    def test_run(self):
        """Rows of 3,000 tokens fill a block of scratch memory with each few arrays."""
        tokens = self.write("tokens.i32", (numpy.arange(3000, dtype="<i4") % 12).tobytes())
        for architecture in MODELS:
            model = runnable_model(architecture).write(self.path(f"{architecture}.gguf"))
            tree = self.path(architecture)
            self.assert_status(EX_OK, self.run_ggufs("-o", "nosandbox", "--extract", tree, model))
            command = [RUNNER, "--no-sandbox", "-t", "1", "-b", "4096", "-c", "4096", "--tokens",
                       tokens, "--logits", "-", tree]
            good = subprocess.run(command, capture_output=True, check=True).stdout

            def run(number, every):
                done = subprocess.run(command, capture_output=True, timeout=mounting.DEADLINE,
                                      env=self.environment(number, every))
                self.assert_clean_end(done.returncode, done.stderr.decode(errors="replace"))
                if done.returncode == EX_OK:
                    self.assertEqual(good, done.stdout)
            self.over_all(run)

    def read_tree(self, paths):
        """Check all files that can be read. Returns the errors of the others."""
        errors = set()
        for path, expected in paths.items():
            try:
                if expected is None:
                    os.listdir(path)
                else:
                    os.lstat(path)
                    self.assertEqual(expected, tree_check.read_file(path), path)
            except OSError as error:
                errors.add(error.errno)
        return errors

    def contents(self, mountpoint):
        """A dict from paths to contents, None for folders and links to them."""
        found = tree_check.listing(os.fsencode(mountpoint))
        paths = {os.path.join(os.fsencode(mountpoint), path): status
                 for path, status in found.items()}
        return {path: tree_check.read_file(path) if stat.S_ISREG(status.st_mode) else None
                for path, status in paths.items()}

    def test_mount(self):
        mounting.require_fuse()
        self.mount(self.model, "-o", "nosandbox", "-s")
        contents = self.contents(self.mountpoint)
        mounting.unmount(self.mountpoint)

        def run(number, every):
            with tempfile.TemporaryFile() as output:
                process = subprocess.Popen(
                    [mounting.BINARY, "-f", "-s", "-o", "nosandbox", self.model, self.mountpoint],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    env=self.environment(number, every))
                errors = set()
                try:
                    mounting.wait_until(lambda: process.poll() is not None or
                                        mounting.mount_entry(self.mountpoint), "no mount")
                    if mounting.mount_entry(self.mountpoint):
                        errors = self.read_tree(contents)
                finally:
                    mounting.unmount(self.mountpoint)
                    status = process.wait(mounting.DEADLINE)
                output.seek(0)
                said = output.read().decode(errors="replace")
            self.assert_clean_end(status, said)
            allowed = {errno.EIO, errno.ENOMEM}
            if "failed to allocate request" in said:  # the INIT request, so the kernel gives up
                allowed.add(errno.ECONNREFUSED)
            if status == EX_OSERR:  # the server has reported why and ended, and the mount is removed
                allowed |= {errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT}
            self.assertLessEqual(errors, allowed, said)
        self.over_all(run)
