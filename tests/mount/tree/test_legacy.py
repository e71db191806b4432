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
from gguf_reader import Model
from mounting import read_file


def fixtures(pattern):
    return sorted(glob.glob(os.path.join(mounting.FIXTURES, pattern)))


def metadata(mountpoint):
    with open(os.path.join(mountpoint, "metadata.json"), encoding="utf-8",
              errors="surrogateescape") as file:
        return json.load(file)


def tensors(mountpoint):
    return json.loads(read_file(os.path.join(mountpoint, "tensors.json")))


def values(mountpoint, name):
    return numpy.frombuffer(read_file(os.path.join(mountpoint, "tensors", name, "f32")), "<f4")


def rwkv_tensors(path):
    """Name, type id, dimensions, offset and size of each tensor, read without ggufs."""
    data, found, at = read_file(path), {}, 24
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


def as_llama_cpp(tensors, version, n_vocab, n_embed, n_layer):
    """
    The tensors that llama.cpp loads for RWKV 6 and 7: name, dimensions, names in the file. Written
    after src/models/rwkv6.cpp and rwkv7.cpp; `tensors` gives the ranks of the low-rank products.
    """
    n_ff = tensors["blocks.0.ffn.key.weight"][1][1]
    expected = {
        "token_embd.weight": ([n_embed, n_vocab], ["emb.weight"]),
        "token_embd_norm.weight": ([n_embed], ["blocks.0.ln0.weight"]),
        "token_embd_norm.bias": ([n_embed], ["blocks.0.ln0.bias"]),
        "output_norm.weight": ([n_embed], ["ln_out.weight"]),
        "output_norm.bias": ([n_embed], ["ln_out.bias"]),
        "output.weight": ([n_embed, n_vocab], ["head.weight"])}
    for i in range(n_layer):
        def put(name, ne, *stored):
            expected[f"blk.{i}.{name}"] = (ne, [f"blocks.{i}.{s}" for s in stored])
        for today, old in (("attn_norm", "ln1"), ("attn_norm_2", "ln2"), ("time_mix_ln", "att.ln_x")):
            put(f"{today}.weight", [n_embed], f"{old}.weight")
            put(f"{today}.bias", [n_embed], f"{old}.bias")
        for name in ("key", "value", "receptance", "output"):
            put(f"time_mix_{name}.weight", [n_embed, n_embed], f"att.{name}.weight")
        put("channel_mix_key.weight", [n_embed, n_ff], "ffn.key.weight")
        put("channel_mix_value.weight", [n_ff, n_embed], "ffn.value.weight")
        if version == "6v0":
            rank = tensors["blocks.0.att.time_maa_w2"][1][0]
            decay_rank = tensors["blocks.0.att.time_decay_w1"][1][1]
            head = tensors["blocks.0.att.time_faaaa"][1][1]
            put("time_mix_w1.weight", [n_embed, 5 * rank], "att.time_maa_w1")
            put("time_mix_w2.weight", [rank, n_embed, 5], "att.time_maa_w2")
            put("time_mix_lerp_x.weight", [n_embed], "att.time_maa_x")
            put("time_mix_lerp_fused.weight", [n_embed, 1, 1, 5],
                *(f"att.time_maa_{letter}" for letter in "wkvrg"))
            put("time_mix_first.weight", [head, n_embed // head], "att.time_faaaa")
            put("time_mix_decay.weight", [n_embed], "att.time_decay")
            put("time_mix_decay_w1.weight", [n_embed, decay_rank], "att.time_decay_w1")
            put("time_mix_decay_w2.weight", [decay_rank, n_embed], "att.time_decay_w2")
            put("time_mix_gate.weight", [n_embed, n_embed], "att.gate.weight")
            put("channel_mix_lerp_k.weight", [n_embed], "ffn.time_maa_k")
            put("channel_mix_lerp_r.weight", [n_embed], "ffn.time_maa_r")
            put("channel_mix_receptance.weight", [n_embed, n_embed], "ffn.receptance.weight")
            continue
        for letter in "wavg":
            # llama.cpp wants tensors in the first layer that it does not use: those of a.
            old = "a" if (letter, i) == ("v", 0) else letter
            rank = tensors[f"blocks.{i}.att.{old}1"][1][1]
            if letter != "g":
                put(f"time_mix_{letter}0.weight", [n_embed], f"att.{old}0")
            put(f"time_mix_{letter}1.weight", [n_embed, rank], f"att.{old}1")
            put(f"time_mix_{letter}2.weight", [rank, n_embed], f"att.{old}2")
        for name in ("k_k", "k_a", "r_k"):
            put(f"time_mix_{name}.weight", [n_embed], f"att.{name}")
        put("time_mix_lerp_fused.weight", [n_embed, 1, 1, 6], "att.x_rwkvag")
        put("channel_mix_lerp_k.weight", [n_embed], "ffn.x_k")
    return expected


def without_ones(ne):
    """Dimensions without those of 1 at the end, which mean nothing to ggml."""
    ne = list(ne)
    while len(ne) > 1 and ne[-1] == 1:
        ne.pop()
    return ne


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
                hashes = json.loads(read_file(path.removesuffix(".bin") + ".sha256.json"))
                self.assertEqual(sorted(hashes), sorted(t["name"] for t in tensors(mountpoint)))
                for name, expected in hashes.items():
                    data = read_file(os.path.join(mountpoint, "tensors", name, "f32"))
                    self.assertEqual(expected, hashlib.sha256(data).hexdigest(), name)

    def test_model_gguf(self):
        """Written out as GGUF and mounted again, it is the same model under the names of GGUF."""
        for path in fixtures("legacy/llama-*.bin"):
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                copy = self.write("copy.gguf", read_file(os.path.join(mountpoint, "model.gguf")))
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
                            read_file(os.path.join(mountpoint, "tensors", info["name"], "f32")) ==
                            read_file(os.path.join(other, "tensors", name, "f32")), name)

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
            self.assertEqual(info["shape"], json.loads(read_file(path))["shape"])
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
                self.assertIn("\nmodel.gguf      for no program known: whisper.cpp reads no GGUF",
                              read_file(os.path.join(mountpoint, "summary.txt")).decode())

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
        _, _, n_vocab, n_embed, n_layer, _ = struct.unpack("<6I", read_file(path)[:24])
        self.assertEqual(architecture, found["general.architecture"])
        for key, value in (("architecture_version", major), ("vocab_size", n_vocab),
                           ("embedding_length", n_embed), ("block_count", n_layer)):
            self.assertEqual(value, found[f"{architecture}.{key}"], key)
        self.assertEqual(minor, found.get(f"{architecture}.architecture_minor_version"))
        expected = rwkv_tensors(path)
        self.assertEqual(list(expected), [info["name"] for info in tensors(mountpoint)])
        data = read_file(path)
        for info in tensors(mountpoint):
            type_id, ne, offset, size = expected[info["name"]]
            self.assertEqual((ne, offset, size), (info["ne"], info["offset"], info["n_bytes"]))
            self.assertEqual({0: "F32", 1: "F16", 7: "Q5_0", 8: "Q5_1"}[type_id], info["type"])
            raw = read_file(os.path.join(mountpoint, "tensors", info["name"], "raw"))
            self.assertEqual(data[offset:offset + size], raw)
            if type_id < 2:
                self.assertTrue(numpy.array_equal(
                    numpy.frombuffer(raw, ("<f4", "<f2")[type_id]).astype("<f4"),
                    values(mountpoint, info["name"]), equal_nan=True))

    def test_model_gguf(self):
        """Of RWKV 6 and 7, model.gguf has the tensors of llama.cpp, with the bytes of the file."""
        keys = ("context_length", "embedding_length", "block_count", "feed_forward_length",
                "attention.head_count", "attention.layer_norm_epsilon", "vocab_size", "wkv.head_size")
        more_keys = {"6v0": ("time_mix_extra_dim", "time_decay_extra_dim"),
                     "7v0": ("attention.decay_lora_rank", "attention.iclr_lora_rank",
                             "attention.value_residual_mix_lora_rank", "attention.gate_lora_rank")}
        for path in fixtures("rwkv/tiny-rwkv-[67]*.bin"):
            with self.subTest(path=path), self.mounted(path, "-o", "split=300K") as mountpoint:
                version = os.path.basename(path).split("-")[2]
                data, stored = read_file(path), rwkv_tensors(path)
                expected = as_llama_cpp(stored, version, *struct.unpack("<3I", data[8:20]))
                found = Model(self.write("copy.gguf", read_file(os.path.join(mountpoint, "model.gguf"))))
                self.assertEqual(set(expected), {t.name.decode() for t in found.tensors})
                self.assertEqual(len(expected), len(found.tensors))
                for tensor in found.tensors:
                    ne, names = expected[tensor.name.decode()]
                    self.assertEqual(without_ones(ne), without_ones(tensor.ne), tensor.name)
                    self.assertEqual(b"".join(data[o:o + n] for _, _, o, n in
                                              (stored[name] for name in names)),
                                     found.raw(tensor), tensor.name)
                architecture = self.VERSIONS[version][0]
                names = dict(found.keys)
                for key in keys + more_keys[version]:
                    self.assertIn(f"{architecture}.{key}".encode(), names)
                self.assertEqual(b"no_vocab", names[b"tokenizer.ggml.model"])
                self.check_split(mountpoint, found)
                summary = read_file(os.path.join(mountpoint, "summary.txt")).decode()
                self.assertIn("\nmodel.gguf      for llama.cpp", summary)
                self.assertIn("tokenizer.ggml.tokens", summary)

    def check_split(self, mountpoint, whole):
        """The shards have the tensors of model.gguf, in its order."""
        folder, found = os.path.join(mountpoint, "split"), []
        names = sorted(os.listdir(folder))
        self.assertGreater(len(names), 3)
        for name in names:
            shard = Model(self.write(name, read_file(os.path.join(folder, name))))
            self.assertEqual(len(whole.tensors), dict(shard.keys)[b"split.tensors.count"])
            found += [(t.name, t.ne, shard.raw(t)) for t in shard.tensors]
        self.assertEqual([(t.name, t.ne, whole.raw(t)) for t in whole.tensors], found)

    def test_model_gguf_of_older(self):
        """llama.cpp runs no RWKV 4 and 5; model.gguf has their tensors as they are."""
        for path in fixtures("rwkv/tiny-rwkv-[45]*.bin"):
            with self.subTest(path=path), self.mounted(path) as mountpoint:
                found = Model(self.write("copy.gguf", read_file(os.path.join(mountpoint, "model.gguf"))))
                self.assertEqual([(t.get("gguf_name", t["name"]).encode(), tuple(t["ne"]))
                                  for t in tensors(mountpoint)],
                                 [(t.name, t.ne) for t in found.tensors])
                self.assertNotIn(b"tokenizer.ggml.model", dict(found.keys))
                self.assertIn("llama.cpp runs RWKV 6 and 7, none before",
                              read_file(os.path.join(mountpoint, "summary.txt")).decode())

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
