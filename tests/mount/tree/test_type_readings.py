#!/usr/bin/env python3
"""Type ids that several programs took: a file of each type decodes to that type's values."""

import json
import os
import subprocess
import sys

import numpy

import mounting
from gguf_file import F32, GgufFile

sys.path.insert(0, os.path.join(mounting.ROOT, "tests", "unit", "dequant"))
import expected  # noqa: E402  pylint: disable=wrong-import-position

setUpModule = mounting.require_fuse

COLUMNS, N_ROWS = 1024, 32

# The types whose sizes another type of the id has, too; -o ik=old reads them.
HIDDEN = {(137, "IQ2_K_OLD"), (153, "IQ2_KT_OLD"), (154, "IQ3_KT_OLD"), (202, "Q4_0_R4"),
          (208, "Q8_0_R4"), (223, "IQ4_XS_R4")}

# The types that model.gguf has for those whose values they hold exactly; others become Q8_0 or F16.
PLAIN = {"PQ2_0": "Q2_0", "PTQ1_0": "Q2_0", "IQ1_BN_OLD": "Q2_0", "IQ2_BN_OLD": "Q2_0",
         "IQ4_NL_4_4": "IQ4_NL", "Q1_0_G32": "Q4_0", "Q4_0_R4": "Q4_0", "Q8_0_R4": "Q8_0",
         "IQ4_XS_R4": "IQ4_XS"}


def make_tensor(t):
    """The bytes of a tensor of the type, and its values."""
    per_row = COLUMNS // t.elements
    blocks, header = expected.make_blocks(t), expected.make_headers(t)
    data, values = [], []
    for group in range(N_ROWS // t.rows):
        part = blocks[group * per_row % 64:][:per_row]
        data += [header.tobytes(), part.tobytes()]
        values += [t.decode(part, header[k], k).reshape(-1) for k in range(t.rows)]
    return b"".join(data), numpy.concatenate(values)


def shared_ids():
    types = [t for t in expected.TYPES if t.name != "I2_S"]
    forks = {(row[0], row[1]) for row in expected.expected_forks.ROWS}
    return [t for t in types if (t.id, t.name) in forks]


class TestTypeReadings(mounting.MountTestCase):
    def mount_type(self, t, data, *options):
        file = GgufFile().tensor(b"t", [COLUMNS, N_ROWS], t.id, data)
        file.tensor(b"u", [COLUMNS, N_ROWS], t.id, data).tensor(b"v", [1], F32, bytes(4))
        path = file.write(self.path(f"{t.id}-{t.name}.gguf"))
        return self.mount(path, *options, mountpoint=self.new_mountpoint(f"{t.id}{t.name}"))

    def test_values(self):
        types = shared_ids()
        self.assertGreater(len(types), 20)
        for t in types:
            with self.subTest(id=t.id, name=t.name):
                data, values = make_tensor(t)
                options = ["-o", "ik=old"] if (t.id, t.name) in HIDDEN else []
                folder = self.mount_type(t, data, *options)
                with open(f"{folder}/tensors/u/info", encoding="utf-8") as file:
                    info = json.load(file)
                self.assertEqual([t.name, t.id, len(data)],
                                 [info["type"], info["ggml_type"], info["n_bytes"]])
                read = numpy.fromfile(f"{folder}/tensors/u/f32", "<f4")
                numpy.testing.assert_array_equal(values, read)
                part = numpy.fromfile(f"{folder}/tensors/u/f32", "<f4", count=77, offset=4 * 5000)
                numpy.testing.assert_array_equal(values[5000:5077], part)

    def cat(self, path, name, *options):
        return subprocess.run([mounting.BINARY, *options, "--cat", name, path], check=True,
                              stdout=subprocess.PIPE).stdout

    def test_model_gguf(self):
        for t in shared_ids():
            with self.subTest(id=t.id, name=t.name):
                data, values = make_tensor(t)
                file = GgufFile().tensor(b"t", [COLUMNS, N_ROWS], t.id, data)
                path = file.write(self.path(f"{t.id}-{t.name}.gguf"))
                copy = self.write("copy.gguf", self.cat(path, "model.gguf", "-o",
                                                        f"type={t.id}:{t.name}"))
                found = json.loads(self.cat(copy, "tensors/t/info"))["type"]
                read = numpy.frombuffer(self.cat(copy, "tensors/t/f32"), "<f4")
                # IQ2_TN had two layouts, of which the older one is that of TQ2_0.
                plain = PLAIN.get(t.name) or ("TQ2_0" if (t.id, t.name) == (42, "IQ2_TN") else None)
                if plain:
                    self.assertEqual(plain, found)
                    numpy.testing.assert_array_equal(values, read)
                    continue
                self.assertEqual("F16" if t.name == "IQ6_K" else "Q8_0", found)
                # Random scales leave the range of F16.
                is_small = abs(values) < 60000
                error = numpy.mean((values - read)[is_small] ** 2) / numpy.mean(values[is_small] ** 2)
                self.assertLess(error, 1e-4)

    def test_a_type_that_no_tensor_has(self):
        path = GgufFile().tensor(b"v", [1], F32, bytes(4)).write(self.path("model.gguf"))
        result = self.run_ggufs("-o", "type=42:PQ2_0", "--list", path)
        self.assert_status(0, result)
        self.assertEqual(f"ggufs: {path}: warning: -o type=42:PQ2_0 has no effect: no tensor has type "
                         "42\n", result.err)
