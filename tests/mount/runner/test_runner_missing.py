#!/usr/bin/env python3
"""ggufs-run on trees and files from which a tensor is missing, which have one too many, or whose
data have another layout or byte order."""

import json
import os
import shutil
import struct
import subprocess
import tempfile

import numpy

import gguf_file
import mounting

setUpModule = mounting.require_fuse

RUNNER = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")

EX_OK, EX_DATAERR, EX_NOINPUT = 0, 65, 66

N_EMBD, N_VOCAB, N_FF, N_HEAD, N_LAYER = 32, 12, 48, 2, 2
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]

# The tensors of a llama layer, with their shapes in ggml's order, and those that other
# architectures add.
LLAMA = {
    "attn_norm.weight": [N_EMBD], "attn_q.weight": [N_EMBD, N_EMBD],
    "attn_k.weight": [N_EMBD, N_EMBD], "attn_v.weight": [N_EMBD, N_EMBD],
    "attn_output.weight": [N_EMBD, N_EMBD], "ffn_norm.weight": [N_EMBD],
    "ffn_gate.weight": [N_EMBD, N_FF], "ffn_up.weight": [N_EMBD, N_FF],
    "ffn_down.weight": [N_FF, N_EMBD],
}
MORE = {
    "llama": {},
    "qwen2": {"attn_q.bias": [N_EMBD], "attn_k.bias": [N_EMBD], "attn_v.bias": [N_EMBD]},
    "qwen3": {"attn_q_norm.weight": [N_EMBD // N_HEAD], "attn_k_norm.weight": [N_EMBD // N_HEAD]},
}
ENDS = {"token_embd.weight": [N_EMBD, N_VOCAB], "output_norm.weight": [N_EMBD],
        "output.weight": [N_EMBD, N_VOCAB]}


def tensors_of(architecture):
    """Return all tensors of a complete model: name to shape."""
    layer = {**LLAMA, **MORE[architecture]}
    layers = {f"blk.{i}.{name}": ne for i in range(N_LAYER) for name, ne in layer.items()}
    return {**ENDS, **layers}


def model_file(architecture, tensors, big_endian=False):
    """A GgufFile with random weights, the same for a name in every file."""
    file = gguf_file.GgufFile(big_endian=big_endian)
    file.key(b"general.architecture", gguf_file.STRING, architecture.encode())
    for key, number in {"block_count": N_LAYER, "embedding_length": N_EMBD, "context_length": 64,
                        "attention.head_count": N_HEAD, "feed_forward_length": N_FF}.items():
        file.key(f"{architecture}.{key}".encode(), gguf_file.UINT32, number)
    file.key(f"{architecture}.attention.layer_norm_rms_epsilon".encode(), gguf_file.FLOAT32, 1e-5)
    for name, ne in tensors.items():
        random = numpy.random.default_rng(sum(name.encode()))
        values = random.standard_normal(numpy.prod(ne)).astype("f4") / 4
        data = values.astype(f"{file.order}f4").tobytes()
        file.tensor(name.encode(), ne, gguf_file.F32, data)
    return file


def model_bytes(architecture, tensors, big_endian=False):
    return model_file(architecture, tensors, big_endian).to_bytes()


class MissingTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("run"))
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.path("run"),
                            "OMP_NUM_THREADS": "1"}
        self.tokens = self.write("tokens.i32", numpy.array(TOKENS, dtype="<i4").tobytes())

    def logits(self, model):
        """(status, logits, stderr)"""
        options = mounting.MOUNT_OPTIONS if os.path.isfile(model) else []
        done = subprocess.run([RUNNER, *options, "--tokens", self.tokens, "--logits", "-", model],
                              capture_output=True, env=self.environment,
                              timeout=4 * mounting.DEADLINE)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def write_model(self, name, architecture, tensors):
        return self.write(name, model_bytes(architecture, tensors))

    def copy_tree(self, model):
        """Copy the mounted tree with cp -r."""
        copy = tempfile.mkdtemp(dir=self.folder)
        self.mount(model)
        subprocess.run(["cp", "-r", f"{self.mountpoint}/.", copy], check=True)
        subprocess.run(["chmod", "-R", "u+w", copy], check=True)
        mounting.unmount(self.mountpoint)
        return copy

    def assert_refused(self, model, *texts, status=EX_NOINPUT):
        result, out, err = self.logits(model)
        self.assertEqual(status, result, err)
        self.assertEqual(b"", out)
        for text in texts:
            self.assertIn(text, err)
        self.assertEqual(1, err.count("\n"), err)


class TestVocabulary(MissingTestCase):
    """Tasks that use ids alone load no tokenizer, but rows must be there for every token."""

    def write_tokens(self, n_tokens):
        file = model_file("llama", tensors_of("llama"))
        file.key(b"tokenizer.ggml.tokens", gguf_file.ARRAY,
                 gguf_file.Array(gguf_file.STRING, [f"t{i}".encode() for i in range(n_tokens)]))
        return self.write("model.gguf", file.to_bytes())

    def test_fewer_rows_than_tokens(self):
        self.assertEqual(EX_OK, self.logits(self.write_tokens(N_VOCAB))[0])
        model = self.write_tokens(N_VOCAB + 1)
        text = f"rows for {N_VOCAB} tokens, but the vocabulary has {N_VOCAB + 1}"
        self.assert_refused(model, text, status=EX_DATAERR)
        done = subprocess.run([RUNNER, *mounting.MOUNT_OPTIONS, "--bench", "4,4", model],
                              capture_output=True, env=self.environment, text=True,
                              timeout=4 * mounting.DEADLINE)
        self.assertEqual((EX_DATAERR, ""), (done.returncode, done.stdout), done.stderr)
        self.assertIn(text, done.stderr)

    def test_ids_beyond_the_rows(self):
        for token in (N_VOCAB, -1, 2**31 - 1):
            self.write("tokens.i32", numpy.array([1, token], dtype="<i4").tobytes())
            self.assert_refused(self.write_model("model.gguf", "llama", tensors_of("llama")),
                                f"id {token} is not in the vocabulary of {N_VOCAB}",
                                status=EX_DATAERR)


class TestMissing(MissingTestCase):
    def test_every_tensor_of_a_copied_tree(self):
        """A missing tensor directory is named, because tensors.json lists it."""
        for architecture in MORE:
            copy = self.copy_tree(self.write_model(f"{architecture}.gguf", architecture,
                                                   tensors_of(architecture)))
            status, expected, err = self.logits(copy)
            self.assertEqual((EX_OK, ""), (status, err))
            for name in tensors_of(architecture):
                with self.subTest(architecture=architecture, name=name):
                    os.rename(f"{copy}/tensors/{name}", self.path("aside"))
                    self.assert_refused(copy, f"tensors/{name}/raw: missing", "tensors.json")
                    os.rename(self.path("aside"), f"{copy}/tensors/{name}")
            self.assertEqual((EX_OK, expected, ""), self.logits(copy))

    def test_fixtures(self):
        """The same with models that converters made; rwkv.cpp's have links in tensors/."""
        found = 0
        for model, name in (("archs/qwen3.gguf", "blk.1.attn_q_norm.weight"),
                            ("archs/qwen2.gguf", "blk.0.attn_k.bias"),
                            ("archs/llama.gguf", "output.weight"),
                            ("rwkv/tiny-rwkv-7v0-834K-FP32.bin", "blk.3.attn_norm_2.weight"),
                            ("rwkv/tiny-rwkv-7v0-834K-FP32.bin", "blocks.3.att.x_rwkvag")):
            for path in [path for path in mounting.fixtures(os.path.dirname(model))
                         if path.endswith(os.path.basename(model))]:
                found += 1
                copy = self.copy_tree(path)
                self.assertEqual(EX_OK, self.logits(copy)[0])
                folder = f"{copy}/tensors/{name}"
                os.remove(folder) if os.path.islink(folder) else shutil.rmtree(folder)
                self.assert_refused(copy, f"tensors/{name}/raw: missing")
        if not found:
            mounting.skip_loudly("no such models in the fixtures")

    def test_tied_embeddings_need_no_output(self):
        tensors = tensors_of("llama")
        del tensors["output.weight"]
        model = self.write_model("tied.gguf", "llama", tensors)
        status, logits, err = self.logits(model)
        self.assertEqual((EX_OK, ""), (status, err))
        self.assertEqual(4 * N_VOCAB * len(TOKENS), len(logits))

    def test_what_the_architecture_requires(self):
        """A tensor that the file lacks in every layer is named."""
        for architecture, name in (("llama", "attn_norm.weight"), ("llama", "ffn_norm.weight"),
                                   ("llama", "ffn_gate.weight"), ("qwen2", "attn_k.bias"),
                                   ("qwen3", "attn_q_norm.weight")):
            with self.subTest(architecture=architecture, name=name):
                tensors = {full: ne for full, ne in tensors_of(architecture).items()
                           if not full.endswith(f".{name}")}
                self.assert_refused(self.write_model("lacks.gguf", architecture, tensors),
                                    "tensors/blk.0.", name, ": missing",
                                    f"the architecture {architecture} requires it")

    def test_layers_of_a_kind_have_the_same_tensors(self):
        """A llama may have biases or norms of queries, but not in some of its layers."""
        for name in ("attn_output.bias",):
            for layer in range(N_LAYER):
                with self.subTest(name=name, layer=layer):
                    tensors = {**tensors_of("llama"),
                               f"blk.{layer}.{name}": [N_EMBD]}
                    self.assert_refused(self.write_model("mixed.gguf", "llama", tensors),
                                        f"tensors/blk.{layer}.{name}: layer {1 - layer}",
                                        f"same kind as layer {layer}")
            tensors = {**tensors_of("llama"),
                       **{f"blk.{i}.{name}": [N_EMBD] for i in range(N_LAYER)}}
            self.assertEqual(EX_OK,
                             self.logits(self.write_model("all.gguf", "llama", tensors))[0])

    def test_tensors_of_a_group(self):
        """A bias of queries needs those of keys and values."""
        tensors = {**tensors_of("llama"),
                   **{f"blk.{i}.attn_q.bias": [N_EMBD] for i in range(N_LAYER)}}
        self.assert_refused(self.write_model("group.gguf", "llama", tensors),
                            "tensors/blk.0.attn_k.bias: missing; blk.0.attn_q.bias requires it")

    def test_tensors_of_another_architecture(self):
        tensors = {**tensors_of("llama"),
                   **{f"blk.{i}.attn_q_norm.weight": [N_EMBD // N_HEAD] for i in range(N_LAYER)}}
        self.assert_refused(self.write_model("other.gguf", "llama", tensors),
                            "tensors/blk.0.attn_q_norm.weight: the architecture has no such tensor",
                            status=EX_DATAERR)

    def test_layers_need_both_parts(self):
        for part, message in (("attn", "attn_output.weight"), ("ffn", "no feed-forward")):
            tensors = {name: ne for name, ne in tensors_of("llama").items()
                       if not name.startswith(f"blk.1.{part}") or name.endswith("norm.weight")}
            status, out, err = self.logits(self.write_model("half.gguf", "llama", tensors))
            self.assertIn(status, (EX_NOINPUT, EX_DATAERR))
            self.assertEqual(b"", out)
            self.assertIn("blk.1.", err)

    def test_unused_tensors_are_reported_in_one_line(self):
        expected = self.logits(self.write_model("plain.gguf", "llama", tensors_of("llama")))[1]
        tensors = {**tensors_of("llama"), "blk.0.attn_kind.weight": [4]}
        self.assertEqual(
            (EX_OK, expected, "ggufs-run: 1 tensor is not used: blk.0.attn_kind.weight\n"),
            self.logits(self.write_model("one.gguf", "llama", tensors)))
        tensors = {**tensors, "blk.1.attn_kind.weight": [4], "mm.0.weight": [4],
                   "v.patch_embd.weight": [4], "z": [1]}
        status, logits, err = self.logits(self.write_model("more.gguf", "llama", tensors))
        self.assertEqual((EX_OK, expected), (status, logits))
        self.assertEqual("ggufs-run: 5 tensors are not used: blk.0.attn_kind.weight, "
                         "blk.1.attn_kind.weight, mm.0.weight, ...\n", err)

    def test_more_layers_than_the_metadata_say(self):
        tensors = {**tensors_of("llama"), "blk.2.attn_norm.weight": [N_EMBD]}
        model = self.write_model("more.gguf", "llama", tensors)
        self.assertEqual(
            (EX_DATAERR, b"", f"ggufs-run: {model}: tensors/blk.2.attn_norm.weight: llama.block_count is 2, so there "
             "is no such layer; the key or the file is wrong: get it again, or set the key with ggufs --set\n"),
            self.logits(model))

    def test_a_list_that_is_no_list(self):
        copy = self.copy_tree(self.write_model("model.gguf", "llama", tensors_of("llama")))
        path = f"{copy}/tensors.json"
        with open(path, "rb") as file:
            entries = json.load(file)
        for text, status in ((b"{}", EX_DATAERR), (b"[1]", EX_DATAERR), (b"[{}]", EX_DATAERR),
                             (b'[{"name": "z"', EX_DATAERR), (b"[] 1", EX_DATAERR),
                             (b'[{"name": 7}]', EX_DATAERR), (b'[{"name": "x"}]', EX_NOINPUT)):
            with self.subTest(text=text):
                with open(path, "wb") as file:
                    file.write(text)
                self.assert_refused(copy, "tensors", status=status)
        # Architectures use no names that need escaping, so the runner skips such tensors.
        with open(path, "wb") as file:
            file.write(json.dumps([{**entries[0], "name": name} for name in ("a/b", "..")] + entries).encode())
        self.assertEqual(EX_OK, self.logits(copy)[0])
        os.remove(path)
        self.assert_refused(copy, "tensors.json")


class TestEra(MissingTestCase):
    def old(self, name):
        """Return the file as version 100 of its format, which does not record the block layout."""
        with open(mounting.fixture(f"rwkv/{name}"), "rb") as file:
            data = bytearray(file.read())
        self.assertEqual(101, struct.unpack_from("<I", data, 4)[0])
        struct.pack_into("<I", data, 4, 100)
        return self.write(name, bytes(data))

    def test_quantized_tensors_of_version_100_need_an_era(self):
        name = "tiny-rwkv-5v2-730K-Q5_1.bin"
        old = self.old(name)
        expected = self.logits(mounting.fixture(f"rwkv/{name}"))
        self.assertEqual(EX_OK, expected[0])
        self.assert_refused(old, "-o era=N", "tensors.json: ", status=EX_DATAERR)
        self.mount(old)
        self.assert_refused(self.mountpoint, "-o era=N", status=EX_DATAERR)
        mounting.unmount(self.mountpoint)
        self.mount(old, "-o", "era=2")
        self.assertEqual(expected, self.logits(self.mountpoint))

    def test_floats_of_version_100_need_none(self):
        name = "tiny-rwkv-5v2-730K-FP32.bin"
        self.assertEqual(self.logits(mounting.fixture(f"rwkv/{name}")),
                         self.logits(self.old(name)))


class TestByteOrder(MissingTestCase):
    def test_big_endian_models_are_refused(self):
        """Their model.gguf is little-endian and works, in the tree and as a copy."""
        tensors = tensors_of("llama")
        expected = self.logits(self.write_model("little.gguf", "llama", tensors))
        self.assertEqual(EX_OK, expected[0], expected[2])
        big = self.write("big.gguf", model_bytes("llama", tensors, big_endian=True))
        for model in (big, self.copy_tree(big)):
            self.assert_refused(model, "the tensor is big-endian",
                                "use model.gguf of the tree", status=EX_DATAERR)
        self.mount(big)
        self.assert_refused(self.mountpoint, "big-endian", status=EX_DATAERR)
        model_gguf = os.path.join(self.mountpoint, "model.gguf")
        self.assertEqual(expected, self.logits(model_gguf))
        self.assertEqual(expected, self.logits(shutil.copy(model_gguf, self.path("copy.gguf"))))
