#!/usr/bin/env python3
"""Models put together at the level of tensors: --layers, --experts, --drop, --add, --rename, --fuse, --shards."""

import csv
import errno
import glob
import hashlib
import json
import os
import shlex
import struct
import unittest

import mounting
from gguf_file import ARRAY, BOOL, F16, F32, FLOAT32, STRING, UINT32, Array, GgufFile
from gguf_reader import Model

MARKS = ("sanitize",)

SURGERY = os.path.join(mounting.FIXTURES, "stores", "surgery")
EX_OK, EX_USAGE, EX_DATAERR = 0, 64, 65
WIDTH, N_EXPERTS, N_BLOCKS = 8, 4, 3
DATA = {F32: "f", F16: "e"}


def values(seed, count, type_id=F32):
    return struct.pack(f"<{count}{DATA[type_id]}", *[(seed * 37 + i) % 512 for i in range(count)])


def rows_of(seed, rows):
    return values(seed, WIDTH * rows)


class Built(GgufFile):
    """A model with three blocks of every kind of tensor that an option is about."""

    def __init__(self, seed=0, blocks=range(N_BLOCKS), heads=Array(UINT32, [4, 2, 1]), keys=(), mtp=()):
        super().__init__()
        self.seed = seed
        self.contents = {}
        self.key(b"general.architecture", STRING, b"made")
        self.key(b"made.block_count", UINT32, len(list(blocks)) if min(blocks, default=0) == 0 else max(blocks) + 1)
        self.key(b"made.embedding_length", UINT32, WIDTH)
        self.key(b"made.attention.head_count", UINT32, 2)
        self.key(b"made.expert_count", UINT32, N_EXPERTS)
        self.key(b"made.expert_used_count", UINT32, 3)
        if heads is not None:
            kind = ARRAY if isinstance(heads, Array) else UINT32
            self.key(b"made.attention.head_count_kv", kind, heads)
        for key in keys:
            self.key(*key)
        self.add("token_embd.weight", [WIDTH, 3])
        for block in blocks:
            for name, ne in (("attn_q.weight", [WIDTH, WIDTH]), ("attn_k.weight", [WIDTH, 4]),
                             ("attn_v.weight", [WIDTH, 4]), ("attn_q.bias", [WIDTH]), ("attn_k.bias", [4]),
                             ("attn_v.bias", [4]), ("ffn_gate_inp.weight", [WIDTH, N_EXPERTS]),
                             ("exp_probs_b.bias", [N_EXPERTS]), ("ffn_gate_exps.weight", [WIDTH, 2, N_EXPERTS]),
                             ("ffn_up_exps.weight", [WIDTH, 2, N_EXPERTS]), ("ffn_gate_exps.bias", [2, N_EXPERTS]),
                             ("ffn_up_exps.bias", [2, N_EXPERTS])):
                self.add(f"blk.{block}.{name}", ne)
            if block in mtp:
                self.add(f"blk.{block}.nextn.eh_proj.weight", [WIDTH, WIDTH])
        self.add("output_norm.weight", [WIDTH])

    def add(self, name, ne):
        count = 1
        for n in ne:
            count *= n
        self.contents[name] = values(self.seed + len(self.contents), count)
        self.tensor(name.encode(), ne, F32, self.contents[name])


class SurgeryTestCase(mounting.MountTestCase):
    def make(self, name, **arguments):
        built = Built(**arguments)
        built.write(self.path(name))
        return built

    def edit(self, *words, model="a.gguf"):
        """The model that `ggufs WORD... --cat model.gguf MODEL` writes, and what it says."""
        out = self.path("out.gguf")
        with open(out, "wb") as file:
            result = mounting.subprocess.run([mounting.BINARY, *words, "--cat", "model.gguf", model], stdout=file,
                                             stderr=mounting.subprocess.PIPE, cwd=self.folder, check=False)
        self.assertEqual(EX_OK, result.returncode, result.stderr)
        return Model(out), result.stderr.decode()

    def refuse(self, text, *words, model="a.gguf"):
        result = self.run_ggufs(*words, "--cat", "model.gguf", model, cwd=self.folder)
        self.assertIn(text, result.err)
        self.assertEqual("", result.out)
        self.assertNotEqual(EX_OK, result.status)

    def tensors(self, model):
        return {t.name.decode(): (list(t.ne), model.raw(t)) for t in model.tensors}

    def keys(self, model):
        return {name.decode(): value for name, value in model.keys}


class TestFixtures(SurgeryTestCase):
    """The worked examples, whose results other programs have read."""

    def expect(self, expected, model, tensors):
        with open(tensors, encoding="utf-8") as file:
            rows = [(r["name"], r["type"], r["ne"], r["sha256"]) for r in csv.DictReader(file, delimiter="\t")]
        self.assertEqual(sorted(rows), sorted(
            (t.name.decode(), t.type_name, ",".join(map(str, t.ne)), hashlib.sha256(model.raw(t)).hexdigest())
            for t in model.tensors))
        base = self.keys(Model(os.path.join(SURGERY, expected["base"])))
        base.update({name: row["value"] for name, row in expected["keys_changed"].items()})
        self.assertEqual({name: value for name, value in base.items() if name not in expected["keys_removed"]},
                         self.keys(model))

    @unittest.skipUnless(os.path.isdir(SURGERY), "no fixtures")
    def test_worked_examples(self):
        # The fixtures have only the tensor that is taken from this file.
        os.symlink(os.path.join(SURGERY, "qmoe-Q8_0-output-only.gguf"), self.path("qmoe-Q8_0.gguf"))
        names = sorted(glob.glob(os.path.join(SURGERY, "*.json")))
        self.assertGreater(len(names), 6)
        for path in names:
            with self.subTest(name=os.path.basename(path)), open(path, encoding="utf-8") as file:
                expected = json.load(file)
                words = shlex.split(expected["command"])
                model, _ = self.edit(*words, model=os.path.join(SURGERY, expected["base"]))
                self.expect(expected, model, path.replace(".json", ".tensors.tsv"))

    @unittest.skipUnless(os.path.isdir(SURGERY), "no fixtures")
    def test_fused_models_say_the_same(self):
        # llama.cpp refuses the fused experts of this architecture.
        texts = set()
        for words, status in (((), EX_OK), (("--fuse", "qkv"), EX_OK), (("--fuse", "gate_up_exps"), EX_DATAERR)):
            self.edit(*words, model=os.path.join(SURGERY, "qmoe-split.gguf"))
            result = self.run_ggufs("--check", "--for", "llama.cpp", self.path("out.gguf"))
            self.assertEqual(status, result.status, result.out + result.err)
            self.assertEqual(status != EX_OK, "--unfuse gate_up_exps" in result.out)
            done = mounting.subprocess.run([mounting.BINARY + "-run", "--temp", "0.8", "-s", "7", "-n", "30",
                                            self.path("out.gguf"), "The cat"], stdin=mounting.subprocess.DEVNULL,
                                           capture_output=True, check=False)
            self.assertEqual(EX_OK, done.returncode, done.stderr)
            texts.add(done.stdout)
        self.assertEqual(1, len(texts), texts)

    @unittest.skipUnless(os.path.isdir(SURGERY), "no fixtures")
    def test_mounted(self):
        base = os.path.join(SURGERY, "qmoe-split.gguf")
        mounting.require_fuse()
        self.mount_in_background(base, self.mountpoint, "-q", "--fuse", "qkv", "--add",
                                 os.path.join(SURGERY, "qmoe-Q8_0-output-only.gguf") + ":output.weight")
        model = Model(os.path.join(self.mountpoint, "model.gguf"))
        for tensor in model.tensors:
            raw = mounting.read_file(self.mountpoint, "tensors", tensor.name.decode(), "raw")
            self.assertEqual(model.raw(tensor), raw, tensor.name)
        with open(os.path.join(self.mountpoint, "tensors", "output.weight", "info"), encoding="utf-8") as file:
            info = json.load(file)
        self.assertEqual(("qmoe-Q8_0-output-only.gguf", "Q8_0"), (info["file"], info["type"]))
        with open(os.path.join(self.mountpoint, "tensors", "blk.0.attn_qkv.weight", "info"), encoding="utf-8") as file:
            info = json.load(file)
        self.assertEqual((None, None), (info["file"], info["offset"]))
        mounting.unmount(self.mountpoint)


class TestLayers(SurgeryTestCase):
    def test_chosen_and_repeated(self):
        built = self.make("a.gguf")
        model, said = self.edit("--layers", "2,0-1,1")
        found = self.tensors(model)
        self.assertEqual(4, self.keys(model)["made.block_count"])
        self.assertEqual([1, 4, 2, 2], self.keys(model)["made.attention.head_count_kv"])
        self.assertIn('"made.block_count": set to 4; it was 3', said)
        for new, old in enumerate((2, 0, 1, 1)):
            self.assertEqual(built.contents[f"blk.{old}.attn_q.weight"], found[f"blk.{new}.attn_q.weight"][1])
        self.assertEqual(len(built.contents) + 12, len(found))

    def test_two_files(self):
        first = self.make("a.gguf")
        second = self.make("b.gguf", seed=5, heads=2)
        model, _ = self.edit("--layers", "0,b.gguf:1-2")
        found = self.tensors(model)
        self.assertEqual([4, 2, 2], self.keys(model)["made.attention.head_count_kv"])
        self.assertEqual(first.contents["blk.0.attn_k.bias"], found["blk.0.attn_k.bias"][1])
        self.assertEqual(second.contents["blk.2.attn_k.bias"], found["blk.2.attn_k.bias"][1])
        self.assertEqual(first.contents["token_embd.weight"], found["token_embd.weight"][1])

    def test_blocks_of_another_kind(self):
        self.make("a.gguf")
        self.make("b.gguf", seed=5)
        self.make("c.gguf", seed=5, mtp=[1])
        _, said = self.edit("--layers", "0,b.gguf:1-2")
        self.assertNotIn("other tensors", said)
        _, said = self.edit("--layers", "0,c.gguf:1-2")
        self.assertEqual(1, said.count("have other tensors than every block of the base"))
        self.assertIn("1 of 3 blocks, the first is block 1", said)
        _, said = self.edit("--drop", "blk.2.attn_k.bias")
        self.assertIn("1 of 3 blocks, the first is block 2", said)
        _, said = self.edit("--drop", "blk.*.attn_k.bias")
        self.assertNotIn("other tensors", said)
        os.rename(self.path("out.gguf"), self.path("all.gguf"))
        _, said = self.edit("--layers", "a.gguf:0-2", model="all.gguf")
        self.assertIn("3 of 3 blocks, the first is block 0", said)
        # new names are meant, here in some blocks only
        _, said = self.edit("--rename", "blk.1.attn_k.bias=blk.1.other")
        self.assertNotIn("other tensors", said)
        self.edit("--drop", "blk.0.*exp*")
        os.rename(self.path("out.gguf"), self.path("mixed.gguf"))
        _, said = self.edit("--fuse", "gate_up_exps", model="mixed.gguf")
        self.assertNotIn("other tensors", said)

    def test_errors(self):
        self.make("a.gguf")
        self.refuse("--layers: there is no 3", "--layers", "0-3")
        self.refuse('"2-1" is not a list', "--layers", "2-1")
        self.refuse("No such file", "--layers", "0,missing.gguf:1")
        self.refuse("needs a value", "--layers", "--drop", "x")
        self.refuse('--layers: "x" is not a list of numbers', "--layers", "x")
        self.refuse("ollama:no:1b", "--layers", "0,ollama:no:1b:0-1")
        self.refuse("ollama:no:1b", "--layers", "ollama:no:1b:0-1")
        self.refuse('"0,", has not the form 0-9,FILE:12', "--layers", "0,")
        GgufFile().key(b"general.architecture", STRING, b"other").tensor(b"blk.0.x", [1], F32, bytes(4)).write(
            self.path("b.gguf"))
        self.refuse('its architecture is "other"', "--layers", "0,b.gguf:0")

    def test_leading_dense_blocks(self):
        self.make("a.gguf", keys=[(b"made.leading_dense_block_count", UINT32, 0)])
        model, _ = self.edit("--drop", "blk.0.ffn_*", "--drop", "blk.0.exp_*", "--layers", "1-2")
        self.assertEqual(1, self.keys(model)["made.leading_dense_block_count"])


class TestExperts(SurgeryTestCase):
    def expect_experts(self, built, model, lists):
        found = self.tensors(model)
        for block, experts in enumerate(lists):
            for name, n_bytes in (("ffn_gate_exps.weight", WIDTH * 2 * 4), ("exp_probs_b.bias", 4),
                                  ("ffn_gate_inp.weight", WIDTH * 4), ("ffn_up_exps.bias", 8)):
                old = built.contents[f"blk.{block}.{name}"]
                self.assertEqual(b"".join(old[n_bytes * e:n_bytes * (e + 1)] for e in experts),
                                 found[f"blk.{block}.{name}"][1], name)

    def test_lists(self):
        built = self.make("a.gguf")
        model, _ = self.edit("--experts", "3,1")
        self.expect_experts(built, model, [[3, 1]] * 3)
        self.assertEqual((2, 2), (self.keys(model)["made.expert_count"], self.keys(model)["made.expert_used_count"]))
        self.write("experts", b"0: 1-3\n2: 0,2,3\n1: 0-1,3\n")
        model, _ = self.edit("--experts", "@experts")
        self.expect_experts(built, model, [[1, 2, 3], [0, 1, 3], [0, 2, 3]])
        self.assertEqual((3, 3), (self.keys(model)["made.expert_count"], self.keys(model)["made.expert_used_count"]))

    def test_errors(self):
        self.make("a.gguf", keys=[(b"made.expert_group_count", UINT32, 2)])
        self.refuse("--experts: there is no 4", "--experts", "0,4")
        self.write("experts", b"0: 1-3\n1: 2\n2: 1-3\n")
        self.refuse("all must keep the same number", "--experts", "@experts")
        self.write("experts", b"0: 1-3\n2: 1-3\n")
        self.refuse("no line has the experts of block 1", "--experts", "@experts")
        self.write("experts", b"1\n2\n")
        self.refuse("no line has the experts of block 0", "--experts", "@experts")
        for option in ("--experts", "--layers"):
            self.refuse('"0 1 2" is not a list of', option, "0 1 2")
        _, said = self.edit("--experts", "0-2")
        self.assertIn('"made.expert_group_count": 2 groups do not divide 3 experts', said)


class TestNames(SurgeryTestCase):
    def test_drop_add_rename(self):
        built, other = self.make("a.gguf"), self.make("b.gguf", seed=9)
        model, _ = self.edit("--rename", "blk.*.attn_q.bias=blk.*.b", "--add", "b.gguf:blk.1.attn_k.*=extra.*",
                             "--add", "b.gguf:token_embd.weight", "--drop", "blk.2.*.bias")
        found = self.tensors(model)
        self.assertEqual(built.contents["blk.0.attn_q.bias"], found["blk.0.b"][1])
        self.assertEqual(other.contents["blk.1.attn_k.bias"], found["extra.bias"][1])
        self.assertEqual(other.contents["token_embd.weight"], found["token_embd.weight"][1])
        self.assertNotIn("blk.2.attn_k.bias", found)

    def test_errors(self):
        self.make("a.gguf")
        self.make("b.gguf", blocks=[0])
        GgufFile().tensor(b"token_embd.weight", [4], F32, bytes(16)).write(self.path("c.gguf"))
        self.refuse("no tensor has a name like", "--drop", "nothing*")
        self.refuse("no tensor has a name like", "--add", "b.gguf:nothing*")
        self.refuse("no tensor has a name like", "--rename", "nothing=x")
        self.refuse("its shape is 8,3,1,1, in the other model 4,1,1,1", "--add", "c.gguf:token_embd.weight")
        self.refuse("two tensors would have this name", "--rename", "output_norm.weight=token_embd.weight")
        GgufFile().tensor(64 * b"y", [4], F32, bytes(16)).write(self.path("d.gguf"))
        self.refuse("the name has 64 bytes", "--add", "d.gguf:y*")
        self.refuse("the name has 64 bytes", "--rename", "output_norm.weight=" + 64 * "x")
        self.refuse("FILE:PATTERN", "--add", "token_embd.weight")
        self.refuse("one * in both", "--rename", "blk.*=x")
        self.refuse("FROM=TO", "--rename", "blk.0")

    def test_mtp(self):
        self.make("trunk.gguf", blocks=range(2), heads=2)
        full = self.make("a.gguf", blocks=range(3), heads=2, mtp=[2], keys=[(b"made.nextn_predict_layers", UINT32, 1)])
        model, said = self.edit("--add", "a.gguf:blk.2.*", model="trunk.gguf")
        self.assertEqual((3, 1), (self.keys(model)["made.block_count"], self.keys(model)["made.nextn_predict_layers"]))
        self.assertIn('"made.nextn_predict_layers": set to 1', said)
        self.assertEqual(full.contents["blk.2.nextn.eh_proj.weight"],
                         self.tensors(model)["blk.2.nextn.eh_proj.weight"][1])
        model, _ = self.edit("--drop", "mtp")
        self.assertEqual(2, self.keys(model)["made.block_count"])
        self.assertNotIn("made.nextn_predict_layers", self.keys(model))
        model, _ = self.edit("--drop", "*", "--add", "a.gguf:blk.2.*", "--add", "a.gguf:token_embd.weight")
        self.assertEqual((3, 1), (self.keys(model)["made.block_count"], self.keys(model)["made.nextn_predict_layers"]))
        self.assertEqual(14, len(model.tensors))
        # blocks of another model are of its MTP part, not of the base's
        self.make("long.gguf", seed=9, blocks=range(6), heads=2)
        model, _ = self.edit("--layers", "0,long.gguf:3-5,2", "--drop", "mtp")
        self.assertEqual(4, self.keys(model)["made.block_count"])


class TestFuse(SurgeryTestCase):
    def test_there_and_back(self):
        built = self.make("a.gguf", heads=1)
        model, said = self.edit("--fuse", "qkv", "--fuse", "gate_up_exps")
        found = self.tensors(model)
        self.assertIn("is not one of them", said)
        for suffix in ("weight", "bias"):
            self.assertEqual(b"".join(built.contents[f"blk.1.attn_{x}.{suffix}"] for x in "qkv"),
                             found[f"blk.1.attn_qkv.{suffix}"][1])
        gate, up = (built.contents[f"blk.2.ffn_{x}_exps.weight"] for x in ("gate", "up"))
        step = WIDTH * 2 * 4
        self.assertEqual(([WIDTH, 4, N_EXPERTS], b"".join(
            gate[i:i + step] + up[i:i + step] for i in range(0, len(gate), step))), found["blk.2.ffn_gate_up_exps.weight"])
        os.rename(self.path("out.gguf"), self.path("fused.gguf"))
        model, _ = self.edit("--unfuse", "qkv", "--unfuse", "gate_up_exps", model="fused.gguf")
        self.assertEqual(built.contents, {name: data for name, (_, data) in self.tensors(model).items()})

    def test_errors(self):
        self.make("a.gguf", heads=3)
        self.refuse("needs one of: gate_up_exps, qkv, ffn_gate_up", "--fuse", "everything")
        for option in ("--fuse", "--unfuse"):
            self.assertEqual(["gate_up_exps", "qkv", "ffn_gate_up"], self.run_ggufs("--complete", "2", option, "").out.split())
        self.refuse("the model has no such tensors", "--fuse", "ffn_gate_up")
        self.refuse("the model has no blk.1.attn_v.weight", "--fuse", "qkv", "--drop", "blk.1.attn_v.weight")
        GgufFile().tensor(b"x", [WIDTH, 4], F16, bytes(WIDTH * 8)).write(self.path("b.gguf"))
        self.refuse("its type is F16", "--fuse", "qkv", "--add", "b.gguf:x=blk.0.attn_k.weight")
        self.edit("--fuse", "qkv")
        self.refuse("do not divide", "--unfuse", "qkv", model="out.gguf")


class TestDamage(SurgeryTestCase):
    def test_added_file_is_cut(self):
        mounting.require_fuse()
        built = self.make("a.gguf")
        self.make("b.gguf", seed=9)
        self.mount_in_background(self.path("a.gguf"), self.mountpoint, "-q", "--fuse", "qkv", "--add",
                                 self.path("b.gguf") + ":blk.1.attn_[kv].weight", "--add",
                                 self.path("b.gguf") + ":output_norm.weight")
        os.truncate(self.path("b.gguf"), 4096)
        for name in ("blk.1.attn_qkv.weight", "output_norm.weight"):
            with self.assertRaises(OSError) as caught:
                mounting.read_file(self.mountpoint, "tensors", name, "raw")
            self.assertIn(caught.exception.errno, (errno.EIO, errno.ESTALE), name)
        self.assertEqual(b"".join(built.contents[f"blk.0.attn_{x}.weight"] for x in "qkv"),
                         mounting.read_file(self.mountpoint, "tensors", "blk.0.attn_qkv.weight", "raw"))
        mounting.unmount(self.mountpoint)


class TestOutput(SurgeryTestCase):
    def test_recipe(self):
        self.make("a.gguf")
        self.write("recipe.json", json.dumps({"--layers": "0,2", "--drop": ["blk.0.*.bias", "output_norm.weight"],
                                              "general.name": "short"}).encode())
        model, _ = self.edit("--edits", "recipe.json")
        self.assertEqual((2, b"short"), (self.keys(model)["made.block_count"], self.keys(model)["general.name"]))
        self.assertNotIn("output_norm.weight", self.tensors(model))
        self.write("bad.json", b'{"--nothing": "x"}')
        self.refuse("no option with a text", "--edits", "bad.json")

    def test_set_comes_last(self):
        self.make("a.gguf")
        model, _ = self.edit("--set", "made.block_count=7", "--layers", "0")
        self.assertEqual(7, self.keys(model)["made.block_count"])

    def test_dry_run(self):
        self.make("a.gguf")
        result = self.run_ggufs("--dry-run", "--layers", "1", self.path("a.gguf"))
        self.assertEqual(EX_OK, result.status, result.err)
        self.assertIn("blk.0.attn_q.weight\tF32\t8x8", result.out)
        self.assertNotIn("blk.1.", result.out)
        self.assertIn("set to 1", result.err)

    def shards(self, *words):
        target = self.path("shards")
        result = self.run_ggufs(*words, "--extract", target, self.path("a.gguf"), "split/*")
        self.assertEqual(EX_OK, result.status, result.err)
        return [Model(path) for path in sorted(glob.glob(os.path.join(target, "split", "*.gguf")))]

    def test_shards_by_number(self):
        built = self.make("a.gguf")
        shards = self.shards("--shards", "5")
        self.assertEqual(5, len(shards))
        self.assertEqual(len(built.contents), sum(len(shard.tensors) for shard in shards))
        self.assertEqual([(i, 5) for i in range(5)],
                         [(self.keys(s)["split.no"], self.keys(s)["split.count"]) for s in shards])

    def test_small_tensors_first(self):
        built = self.make("a.gguf")
        shards = self.shards("--shards", "tensor", "--small-first", "65")
        small = {name for name, data in built.contents.items() if len(data) < 65}
        self.assertEqual(small, {t.name.decode() for t in shards[0].tensors})
        self.assertEqual({1}, {len(shard.tensors) for shard in shards[1:]})
        found = {}
        for shard in shards:
            found.update(self.tensors(shard))
        self.assertEqual(built.contents, {name: data for name, (_, data) in found.items()})

    def test_output_is_no_input(self):
        self.make("a.gguf")
        built = self.make("b.gguf")
        with open(self.path("b.gguf"), "ab") as file:
            result = mounting.subprocess.run([mounting.BINARY, "--add", "b.gguf:token_embd.weight", "--cat", "model.gguf",
                                              "a.gguf"], stdout=file, stderr=mounting.subprocess.PIPE, cwd=self.folder,
                                             check=False)
        self.assertEqual(EX_USAGE, result.returncode)
        self.assertEqual(built.to_bytes(), mounting.read_file(self.path("b.gguf")))


if __name__ == "__main__":
    unittest.main()
