#!/usr/bin/env python3
"""A model whose rows ik_llama.cpp stores interleaved: its values, its logits, and its way back."""

import os
import struct
import subprocess

import numpy

import mounting
from gguf_file import GgufFile
from gguf_reader import Model

setUpModule = mounting.require_fuse

RUNNER = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")

Q4_0, Q8_0, Q8_KV, Q4_0_R8, Q8_0_R8, MXFP4_R8 = 2, 8, 151, 202, 208, 353
ROWS = 8


def interleave_runs(blocks):
    """Blocks of eight rows, (groups, rows, blocks, f16 and bytes): scales, then runs of 4 bytes."""
    n_groups, _, n_blocks, n_bytes = blocks.shape
    scales = blocks[..., :2].transpose(0, 2, 1, 3).reshape(n_groups, n_blocks, -1)
    runs = blocks[..., 2:].reshape(n_groups, ROWS, n_blocks, (n_bytes - 2) // 4, 4)
    runs = runs.transpose(0, 2, 3, 1, 4).reshape(n_groups, n_blocks, -1)
    return numpy.concatenate([scales, runs], axis=2).tobytes()


def interleaved(path):
    """The model of a file with all Q4_0 and Q8_0 tensors as Q4_0_R8 and Q8_0_R8; their names."""
    model = Model(path)
    data = bytearray(model.data)
    names = []
    for tensor in model.tensors:
        if tensor.type_id not in (Q4_0, Q8_0):
            continue
        info = (struct.pack("<Q", len(tensor.name)) + tensor.name +
                struct.pack(f"<I{len(tensor.ne)}Q", len(tensor.ne), *tensor.ne))
        at = model.data.index(info) + len(info)
        struct.pack_into("<I", data, at, Q4_0_R8 if tensor.type_id == Q4_0 else Q8_0_R8)
        blocks = numpy.frombuffer(model.raw(tensor), dtype=numpy.uint8)
        data[tensor.offset:tensor.offset + tensor.n_bytes] = interleave_runs(
            blocks.reshape(-1, ROWS, tensor.ne[0] // 32, tensor.type_size))
        names.append(tensor.name.decode())
    return bytes(data), names


class TestInterleaved(mounting.MountTestCase):
    def logits(self, model):
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "XDG_RUNTIME_DIR": self.path("")}
        done = subprocess.run([RUNNER, *mounting.MOUNT_OPTIONS, "--exact", "--tokens",
                               mounting.fixture("archs/tokens.i32"), "--logits", "-", model],
                              capture_output=True, env=environment, timeout=10 * mounting.DEADLINE)
        self.assertEqual(0, done.returncode, done.stderr.decode(errors="replace"))
        return done.stdout

    def check(self, plain, type_name):
        data, names = interleaved(plain)
        path = self.write(f"{type_name}.gguf", data)
        original = self.mount(plain)
        folder = self.mount(path, mountpoint=self.new_mountpoint(type_name))
        self.assertGreater(len(names), 10)
        self.assertIn(f'"type":"{type_name}"', numpy.fromfile(
            f"{folder}/tensors/{names[0]}/info", dtype=numpy.uint8).tobytes().decode())
        for name in names:
            expected = numpy.fromfile(f"{original}/tensors/{name}/f32", dtype="<u4")
            values = numpy.fromfile(f"{folder}/tensors/{name}/f32", dtype="<u4")
            self.assertEqual(expected.tobytes(), values.tobytes(), name)
            # Part of a row in the middle of a group.
            offset = 4 * expected.size // 2 + 12 * 4
            part = numpy.fromfile(f"{folder}/tensors/{name}/f32", dtype="<u4", count=77,
                                  offset=offset)
            self.assertEqual(expected[offset // 4:offset // 4 + 77].tobytes(), part.tobytes(), name)
        # The rows go back to where they were, so the file is the original again.
        with open(f"{folder}/model.gguf", "rb") as copy, open(plain, "rb") as file:
            self.assertEqual(file.read(), copy.read())
        self.assertEqual(self.logits(plain), self.logits(path))

    def test_q4_0_r8(self):
        self.check(mounting.fixture("quants/llama-Q4_0.gguf"), "Q4_0_R8")

    def test_q8_0_r8(self):
        self.check(mounting.fixture("quants/llama-Q8_0.gguf"), "Q8_0_R8")

    def test_zeros_with_a_scale(self):
        """The header of a row is data, too: a row of zeros with a scale was not reserved space."""
        for header, n in ((struct.pack("<fi", 1, 0), 0), (bytes(8), 1)):
            model = GgufFile().tensor(b"t", (32, 2), Q8_KV, 2 * (header + bytes(32)))
            result = self.run_ggufs("--check", "--data", self.write("zeros.gguf", model.to_bytes()))
            self.assert_status(0, result)
            self.assertEqual(n, (result.out + result.err).count("only zeros"), result)

    def test_a_scale_that_is_nan(self):
        """All codes are zero, so no value shows it."""
        good = b"\x7f" * ROWS + bytes(16 * ROWS)
        bad = b"\x7f" * 3 + b"\xff" + good[4:]
        for data, status in ((good + bad, 65), (2 * good, 0)):
            model = GgufFile().tensor(b"t", (32, 2 * ROWS), MXFP4_R8, data)
            result = self.run_ggufs("--check", "--data", self.write("nan.gguf", model.to_bytes()))
            self.assert_status(status, result)
            self.assertEqual(status == 65, "block 11 (row 11) is NaN" in result.out + result.err)
