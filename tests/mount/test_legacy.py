"""Files from before GGUF in a mount, compared with the readers below. Needs the fixtures."""

import contextlib
import glob
import hashlib
import itertools
import json
import os
import struct
import unittest

import numpy

import mounting


def fixtures(pattern):
    return sorted(glob.glob(os.path.join(mounting.FIXTURES, pattern)))


def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read()


def metadata(mountpoint):
    with open(os.path.join(mountpoint, "metadata.json"), encoding="utf-8",
              errors="surrogateescape") as file:
        return json.load(file)


def tensors(mountpoint):
    return json.loads(read(os.path.join(mountpoint, "tensors.json")))


def values(mountpoint, name):
    return numpy.frombuffer(read(os.path.join(mountpoint, "tensors", name, "f32")), "<f4")


def rwkv_tensors(path):
    """Name, type id, dimensions, offset and size of each tensor, read without ggufs."""
    data, found, at = read(path), {}, 24
    block_bytes = {0: (1, 4), 1: (1, 2), 7: (32, 22), 8: (32, 24)}
    while at < len(data):
        n_dims, name_bytes, type_id = struct.unpack_from("<3I", data, at)
        ne = struct.unpack_from(f"<{n_dims}I", data, at + 12)
        start = at + 12 + 4 * n_dims + name_bytes
        elements, n_bytes = block_bytes[type_id]
        size = int(numpy.prod(ne, dtype=int)) // elements * n_bytes
        found[data[start - name_bytes:start].decode()] = (type_id, list(ne), start, size)
        at = start + size
    return found


class MountedTestCase(mounting.MountTestCase):
    numbers = itertools.count()

    @contextlib.contextmanager
    def mounted(self, model, *options):
        """Mount for the duration of the block, in addition to other mounts."""
        mountpoint = self.new_mountpoint(f"mnt-{next(self.numbers)}")
        self.mount_in_background(*options, model, mountpoint)
        try:
            yield mountpoint
        finally:
            mounting.unmount(mountpoint)


@unittest.skipUnless(fixtures("legacy/*.bin"), "no fixtures")
class TestLegacy(MountedTestCase):
    def test_values(self):
        """Every tensor's f32 has the values of the ggml of its time."""
        paths = fixtures("legacy/llama-*.bin")
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                hashes = json.loads(read(path.removesuffix(".bin") + ".sha256.json"))
                self.assertEqual(sorted(hashes), sorted(t["name"] for t in tensors(mountpoint)))
                for name, expected in hashes.items():
                    data = read(os.path.join(mountpoint, "tensors", name, "f32"))
                    self.assertEqual(expected, hashlib.sha256(data).hexdigest(), name)

    def test_model_gguf(self):
        """Written out as GGUF and mounted again, it is the same model under the names of GGUF."""
        for path in fixtures("legacy/llama-*.bin"):
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                copy = self.write("copy.gguf", read(os.path.join(mountpoint, "model.gguf")))
                expected = metadata(mountpoint)
                if "general.quantization_version" in expected:
                    expected["general.quantization_version"] = 2
                types = {(info["type"], info.get("era")) for info in tensors(mountpoint)}
                if "general.file_type" in expected and any(
                        era is not None and type[:2] != "Q5" for type, era in types):
                    expected["general.file_type"] = 0
                with self.mounted(copy) as other:
                    self.assertEqual(expected, metadata(other))
                    for info in tensors(mountpoint):
                        name = info.get("gguf_name", info["name"])
                        self.assertTrue(
                            read(os.path.join(mountpoint, "tensors", info["name"], "f32")) ==
                            read(os.path.join(other, "tensors", name, "f32")), name)

    def test_as_gguf(self):
        """The same model as GGUF has the same metadata, under the same names."""
        (original,) = fixtures("gguf/stories260K.gguf")
        with self.mounted(original) as mountpoint:
            expected, expected_tensors = metadata(mountpoint), tensors(mountpoint)
        keys = [f"llama.{key}" for key in (
            "embedding_length", "block_count", "feed_forward_length", "attention.head_count",
            "attention.head_count_kv", "rope.dimension_count")]
        for path in fixtures("legacy/llama-*.bin"):
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                found = metadata(mountpoint)
                self.assertEqual("llama", found["general.architecture"])
                for key in keys + ["tokenizer.ggml.model", "tokenizer.ggml.tokens",
                                   "tokenizer.ggml.token_type"]:
                    self.assertEqual(expected[key], found[key], key)
                if "llama-ggml-" not in path:
                    self.assertEqual(len(expected["tokenizer.ggml.tokens"]),
                                     len(found["tokenizer.ggml.scores"]))
                self.check_names(mountpoint, expected_tensors)

    def check_names(self, mountpoint, expected):
        """Check that each tensor has a link with its GGUF name, and that there are no others."""
        folder = os.path.join(mountpoint, "tensors")
        infos = {info.get("gguf_name", info["name"]): info for info in tensors(mountpoint)}
        links = {name for name in os.listdir(folder) if os.path.islink(os.path.join(folder, name))}
        self.assertEqual({info["name"] for info in expected}, set(infos))
        self.assertEqual({name for name, info in infos.items() if info["name"] != name}, links)
        for info in expected:
            path = os.path.join(folder, info["name"], "info")
            self.assertEqual(info["shape"], json.loads(read(path))["shape"])
            self.assertTrue(os.path.samefile(path, os.path.join(
                folder, infos[info["name"]]["name"], "info")))
        for name in links:
            self.assertEqual(infos[name]["name"], os.readlink(os.path.join(folder, name)))
            self.assertEqual(len(infos[name]["name"]), os.lstat(os.path.join(folder, name)).st_size)

    def test_vocabularies(self):
        paths = fixtures("legacy/ggml-vocab.*.bin")
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                found = metadata(mountpoint)
                self.assertEqual([], tensors(mountpoint))
                self.assertEqual(["<unk>", "<s>", "</s>", "<0x00>", "<0x01>"],
                                 found["tokenizer.ggml.tokens"][:5])
                self.assertEqual(["\u2581\u2581", "\u2581t"], found["tokenizer.ggml.tokens"][259:261])
                self.assertEqual([-1e9, -1.0], found["tokenizer.ggml.scores"][259:261])
                self.assertEqual(32000, found["llama.vocab_size"])
                self.assertEqual(32000, len(found["tokenizer.ggml.tokens"]))

    def test_whisper(self):
        for path, n_tokens in zip(fixtures("legacy/for-tests-ggml-*.bin"), (51864, 51865)):
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                found = metadata(mountpoint)
                self.assertEqual("whisper", found["general.architecture"])
                self.assertEqual(n_tokens, found["whisper.vocab_size"])
                self.assertEqual(80 * 201, len(found["whisper.mel_filters.values"]))
                self.assertEqual(["!", '"', "#"], found["tokenizer.ggml.tokens"][:3])
                self.assertIn("\u0120the", found["tokenizer.ggml.tokens"])

    def test_voice_detector(self):
        for path in fixtures("legacy/for-tests-silero-*.bin"):
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                found = metadata(mountpoint)
                self.assertEqual("silero-16k", found["silero-vad.model_type"])
                self.assertEqual([129, 128, 64, 64], found["silero-vad.encoder.in_channels"])
                self.assertEqual(15, len(tensors(mountpoint)))
                data = values(mountpoint, "_model.stft.forward_basis_buffer")
                self.assertTrue(numpy.isfinite(data).all())


@unittest.skipUnless(fixtures("rwkv/*.bin"), "no fixtures")
class TestRwkv(MountedTestCase):
    VERSIONS = {"4v0": ("rwkv", 4, None), "5v1": ("rwkv", 5, 1), "5v2": ("rwkv", 5, 2),
                "6v0": ("rwkv6", 6, None), "7v0": ("rwkv7", 7, None)}

    def test_all(self):
        paths = fixtures("rwkv/tiny-rwkv-*.bin")
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                self.check(mountpoint, path)

    def check(self, mountpoint, path):
        found = metadata(mountpoint)
        version = os.path.basename(path).split("-")[2]
        architecture, major, minor = self.VERSIONS[version]
        _, _, n_vocab, n_embed, n_layer, _ = struct.unpack("<6I", read(path)[:24])
        self.assertEqual(architecture, found["general.architecture"])
        for key, value in (("architecture_version", major), ("vocab_size", n_vocab),
                           ("embedding_length", n_embed), ("block_count", n_layer)):
            self.assertEqual(value, found[f"{architecture}.{key}"], key)
        self.assertEqual(minor, found.get(f"{architecture}.architecture_minor_version"))
        expected = rwkv_tensors(path)
        self.assertEqual(list(expected), [info["name"] for info in tensors(mountpoint)])
        data = read(path)
        for info in tensors(mountpoint):
            type_id, ne, offset, size = expected[info["name"]]
            self.assertEqual((ne, offset, size), (info["ne"], info["offset"], info["n_bytes"]))
            self.assertEqual({0: "F32", 1: "F16", 7: "Q5_0", 8: "Q5_1"}[type_id], info["type"])
            raw = read(os.path.join(mountpoint, "tensors", info["name"], "raw"))
            self.assertEqual(data[offset:offset + size], raw)
            if type_id < 2:
                self.assertTrue(numpy.array_equal(
                    numpy.frombuffer(raw, ("<f4", "<f2")[type_id]).astype("<f4"),
                    values(mountpoint, info["name"]), equal_nan=True))

    def test_siblings(self):
        """Quantized values are within a step of the block's scale of the original ones."""
        n_compared = 0
        for version, steps in (("4v0", 32), ("5v2", 32), ("7v0", 32)):
            (exact,) = fixtures(f"rwkv/tiny-rwkv-{version}-*-FP32.bin")
            (coarse,) = fixtures(f"rwkv/tiny-rwkv-{version}-*-Q5_*.bin")
            with self.mounted(exact) as first, self.mounted(coarse) as second:
                for info in tensors(second):
                    a, b = (values(m, info["name"]) for m in (first, second))
                    if info["block_size"] == 1:
                        self.assertTrue(numpy.array_equal(a, b), info["name"])
                        continue
                    a, b = a.reshape(-1, 32), b.reshape(-1, 32)
                    # Q5_0 has 32 steps, from -16 to 15 times the scale; Q5_1 has 32 from minimum to maximum.
                    span = 2 * abs(a).max(axis=1) if "Q5_0" in coarse else numpy.ptp(a, axis=1)
                    limit = 1.02 * span / (steps - 1) + 1e-6
                    self.assertTrue((abs(a - b).max(axis=1) <= limit).all(), info["name"])
                    n_compared += 1
        self.assertGreater(n_compared, 100)


if __name__ == "__main__":
    unittest.main()
