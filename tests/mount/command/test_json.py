#!/usr/bin/env python3
"""What commands print with --json: it fits contrib/schema, says what the text says, and ggufs(5) names its members."""

import copy
import glob
import json
import os
import re
import struct
import subprocess
import unittest

import mounting
from gguf_file import ARRAY, BOOL, F32, FLOAT32, INT32, Q8_0, STRING, UINT32, UINT64, Array, Bits, GgufFile

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = os.path.join(mounting.ROOT, "contrib", "schema")
MAKE_HOSTILE = os.path.join(mounting.ROOT, "build", "make-hostile")
EX_OK, EX_DIFFERS, EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_IOERR = 0, 1, 64, 65, 66, 74
OF_ONE_MODEL = {"info": ["--layers"], "list": [], "stats": [], "check": ["--data"]}  # commands and their options


def schema_of(command):
    with open(os.path.join(SCHEMAS, f"{command}.schema.json"), encoding="utf-8") as file:
        return json.load(file)


def members_of(schema):
    """The names of all properties, of objects inside as well."""
    for name, value in schema.get("properties", {}).items():
        yield name
        yield from members_of(value)
    for inside in filter(None, [schema.get("items"), *schema.get("anyOf", [])]):
        yield from members_of(inside)


def object_of(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise AssertionError(f"a member is there twice: {names}")
    return dict(pairs)


def lines_of(out):
    """The objects of JSON Lines."""
    if out and not out.endswith("\n"):
        raise AssertionError("the last line is not whole")
    return [json.loads(line, object_pairs_hook=object_of) for line in out.splitlines()]


class JsonTestCase(mounting.MountTestCase):
    def run_json(self, status, command, *arguments):
        options = [] if command == "status" else mounting.MOUNT_OPTIONS
        result = self.run_ggufs(*options, f"--{command}", "--json", *arguments)
        self.assert_status(status, result)
        return lines_of(result.out)

    def llama(self, *more):
        built = GgufFile().key(b"general.architecture", STRING, b"llama").key(b"general.name", STRING, b"A \"\n\xff")
        for name, value_type, value in more:
            built.key(name, value_type, value)
        return built.tensor(b"token_embd.weight", [32, 3], Q8_0, bytes(102)) \
            .tensor(b"blk.0.a", [4], F32, struct.pack("<4f", 1, float("inf"), float("nan"), -2)) \
            .tensor(b"blk.10.b", [32], Q8_0, bytes(34)).tensor(b"blk.01.c", [2], F32, bytes(8))

    def odd_models(self):
        """Models that have what others lack."""
        yield "keys", self.llama(
            (b"llama.context_length", UINT64, (1 << 64) - 1), (b"llama.block_count", INT32, -1),
            (b"llama.rope.freq_base", FLOAT32, Bits(0x7fc00000)), (b"general.file_type", UINT32, 7),
            (b"llama.attention.head_count", ARRAY, Array(UINT32, [4, 8])), (b"llama.attention.head_count_kv", UINT32, 2),
            (b"llama.expert_count", UINT32, 8), (b"llama.expert_used_count", UINT32, 2),
            (b"tokenizer.ggml.tokens", ARRAY, Array(STRING, [b"a", b"b", b"c"])),
            (b"tokenizer.chat_template", STRING, b"{{ messages }}"),
            (b"general.base_model.count", UINT32, 6), (b"general.base_model.0.name", STRING, b"Base"),
            (b"general.base_model.1.version", STRING, b"v1"))
        yield "types", self.llama((b"llama.context_length", STRING, b"long"), (b"general.file_type", UINT32, 999),
                                  (b"llama.attention.head_count", BOOL, True)).tensor(b"x", [32], 9999, bytes(40))
        yield "lora", GgufFile().key(b"general.type", STRING, b"adapter").key(b"adapter.lora.alpha", FLOAT32, Bits(0x7f800000)) \
            .tensor(b"blk.0.x.lora_a", [4, 2], F32, bytes(32)).tensor(b"blk.0.x.lora_b", [2, 4], F32, bytes(32))
        yield "imatrix", GgufFile().key(b"general.type", STRING, b"imatrix") \
            .key(b"imatrix.datasets", ARRAY, Array(STRING, [b"wiki", b"code"])) \
            .tensor(b"x.in_sum2", [4], F32, bytes(16)).tensor(b"x.counts", [1], F32, bytes(4)) \
            .tensor(b"y.in_sum2", [4], F32, bytes(16))
        yield "kind", self.llama((b"general.type", STRING, b"adapter"))
        yield "pooling", self.llama((b"llama.block_count", UINT32, 1), (b"llama.pooling_type", UINT32, 1))
        yield "big", GgufFile(big_endian=True).tensor(b"t", [4], F32, bytes(16))
        yield "empty", GgufFile()

    def models(self):
        """Paths of models, good and damaged."""
        yield mounting.sample()
        yield from mounting.some_fixtures("archs", "golden", "gguf", "split", "quants", "ik", "tokenizers", "rwkv", "legacy")
        for name, built in self.odd_models():
            yield built.write(self.path(f"{name}.gguf"))
        yield self.path("missing.gguf")
        if not os.path.exists(MAKE_HOSTILE):
            raise AssertionError(f"{MAKE_HOSTILE} is missing: run make build/make-hostile")
        subprocess.run([MAKE_HOSTILE, self.path("hostile")], check=True)
        yield from sorted(glob.glob(self.path("hostile/*.gguf")))[::8]


@unittest.skipUnless(jsonschema, "needs python3-jsonschema")
class TestSchemas(JsonTestCase):
    def validator(self, command):
        schema = schema_of(command)
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    @mounting.mark("sanitize")
    def test_all_models(self):
        validators = {command: self.validator(command) for command in OF_ONE_MODEL}
        n_lines = dict.fromkeys(OF_ONE_MODEL, 0)
        seen = {command: set() for command in OF_ONE_MODEL}
        for path in self.models():
            for command, options in OF_ONE_MODEL.items():
                with self.subTest(command=command, path=path):
                    words = [*mounting.MOUNT_OPTIONS, f"--{command}", *options, path]
                    text, result = self.run_ggufs(*words), self.run_ggufs("--json", *words)
                    self.assertEqual((text.status, text.err), (result.status, result.err))
                    for line in lines_of(result.out):
                        validators[command].validate(line)
                        n_lines[command] += 1
                        seen[command].update(line)
        self.assertGreater(min(n_lines.values()), 10, n_lines)
        for command, names in seen.items():  # nothing in a schema that no model has
            rare = {"partial", "offset", "file_bytes", "architecture_by_tensors", "model_gguf", "store",
                    "stored_with"}
            self.assertEqual([], sorted(set(schema_of(command)["properties"]) - names - rare), command)

    def test_rare_members(self):
        model = self.llama().to_bytes()
        path = self.write("inside.bin", bytes(64) + model)
        line, = self.run_json(EX_OK, "info", "-o", "offset=64,partial", path)
        self.assertEqual((True, 64, 64 + len(model), len(model)),
                         tuple(line[name] for name in ("partial", "offset", "file_bytes", "n_bytes")))
        self.validator("info").validate(line)

    def test_diff(self):
        validator = self.validator("diff")
        built = dict(self.odd_models())
        other = self.llama((b"llama.context_length", UINT32, 1)).tensor(b"x", [32], 9999, bytes(39) + b"\1")
        other.tensors[0] = (b"token_embd.weight", [4, 3], F32, bytes(48))
        other.tensors[1] = (b"blk.0.a", [4], F32, struct.pack("<4f", 1, 2, 3, -2.5))
        first, second = built["types"].write(self.path("a.gguf")), other.write(self.path("b.gguf"))
        line, = self.run_json(EX_DIFFERS, "diff", first, second)
        validator.validate(line)
        self.assertEqual((first, second), (line["a_file"], line["b_file"]))
        self.assertEqual({"values", "unknown", "shape", "none"}, {one["difference"] for one in line["tensors"]})
        line, = self.run_json(EX_OK, "diff", first, first)
        validator.validate(line)
        self.assertEqual(([], 0), (line["metadata"], line["total"]["different"]))
        self.assertEqual([], self.run_json(EX_NOINPUT, "diff", first, self.path("missing")))

    def test_what_does_not_fit(self):
        """The schemas refuse an object without a member that is always there, and one of another type."""
        path = self.llama().write(self.path("a.gguf"))
        for command in [*OF_ONE_MODEL, "diff"]:
            line = self.run_json(EX_OK, command, *[path] * (1 + (command == "diff")))[0]
            validator = self.validator(command)
            for name in schema_of(command)["required"]:
                for change in (lambda one: one.pop(name), lambda one: one.update({name: {"other": 1}})):
                    changed = copy.deepcopy(line)
                    change(changed)
                    self.assertFalse(validator.is_valid(changed), f"{command}: {name}")
            self.assertFalse(validator.is_valid({**line, "other": {}}), command)


class TestJson(JsonTestCase):
    def test_commands(self):
        """Each command with --json has a schema, and ggufs(5) names what is in it."""
        result = self.run_ggufs("--json", "--cat", "x", "y")
        self.assert_status(EX_USAGE, result)
        commands = re.findall(r"--(\w+)", result.err.partition("only to")[2])
        self.assertEqual(sorted(f"{command}.schema.json" for command in commands), sorted(os.listdir(SCHEMAS)))
        with open(os.path.join(mounting.ROOT, "ggufs.5"), encoding="utf-8") as file:
            words = set(re.findall(r"[\w.]*\w", file.read()))
        for command in commands:
            self.assertEqual(set(), set(members_of(schema_of(command))) - words, command)

    def test_info_and_its_text(self):
        path = dict(self.odd_models())["keys"].write(self.path("a.gguf"))
        line, = self.run_json(EX_OK, "info", path)
        self.assertEqual({"file": path, "name": "A \"\n\udcff", "kind": "language model", "architecture": "llama",
                          "n_elements": 134, "n_tensors": 4, "general.file_type": 7, "quantization": "Q8_0"},
                         dict(list(line.items())[:8]))
        expected = {"byte_order": "little", "n_files": 1, "n_bytes": os.path.getsize(path), "block_count": -1,
                    "context_length": (1 << 64) - 1, "attention.head_count": [4, 8], "attention.head_count_kv": 2,
                    "expert_count": 8, "expert_used_count": 2, "n_tokens": 3, "has_chat_template": True,
                    "general.base_model.count": 6,
                    "base_models": [{"name": "Base"}, {"name": None, "version": "v1"}, {"name": None}, {"name": None}],
                    "types": [{"type": "Q8_0", "n_tensors": 2, "n_elements": 128, "n_bytes": 136},
                              {"type": "F32", "n_tensors": 2, "n_elements": 6, "n_bytes": 24}]}
        self.assertEqual(expected, {name: line[name] for name in expected})
        text = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--info", path).out
        for words in ("quantization    Q8_0\n", "parameters      134\n", "heads           4 to 8 (2 for keys and values)\n",
                      "experts         8 (2 used per token)\n", "chat template   yes\n",
                      "base            Base; a model without a name v1; a model without a name; "
                      "a model without a name; ... (6 in all)\n"):
            self.assertIn(words, text)
        self.assertIn("check           OK\n", text)
        self.assertEqual((0, False), (line["n_findings"], "first_finding" in line))
        path = dict(self.odd_models())["types"].write(self.path("b.gguf"))
        line, = self.run_json(EX_OK, "info", path)
        self.assertGreater(line["n_findings"], 0)
        self.assertIn(line["first_finding"], self.run_ggufs(*mounting.MOUNT_OPTIONS, "--info", path).out)
        self.assertEqual((999, None), (line["general.file_type"], line["quantization"]))
        self.assertIn(None, [share["type"] for share in line["types"]])

    def test_layers(self):
        path = self.llama().tensor(b"blk.%s.d" % (b"1" * 55), [1], F32, bytes(4)).write(self.path("a.gguf"))
        line, = self.run_json(EX_OK, "info", "--layers", path)
        self.assertEqual([{"layer": 0, "n_tensors": 1, "n_elements": 4, "n_bytes": 16, "types": ["F32"]},
                          {"layer": "01", "n_tensors": 1, "n_elements": 2, "n_bytes": 8, "types": ["F32"]},
                          {"layer": 10, "n_tensors": 1, "n_elements": 32, "n_bytes": 34, "types": ["Q8_0"]},
                          {"layer": "1" * 55, "n_tensors": 1, "n_elements": 1, "n_bytes": 4, "types": ["F32"]},
                          {"layer": None, "n_tensors": 1, "n_elements": 96, "n_bytes": 102, "types": ["Q8_0"]}],
                         line["layers"])
        text = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--info", "--layers", path).out
        self.assertIn("\n" + "1" * 55 + "        1               1               4            32.00  F32\n", text)

    def test_list_and_its_text(self):
        path = self.llama().write(self.path("a.gguf"))
        lines = self.run_json(EX_OK, "list", path)
        self.assertEqual({path}, {line["file"] for line in lines})
        text = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--list", path).out.splitlines()
        self.assertEqual(text, [f"{line['n_bytes']:14d}  {line['path']}" + (f" -> {line['target']}" if line["target"] else "")
                                for line in lines])
        line, = self.run_json(EX_OK, "list", path, "layers/10/b")
        self.assertEqual("../../tensors/blk.10.b", line["target"])
        self.assertEqual([], self.run_json(EX_NOINPUT, "list", path, "nothing"))

    def test_several_models(self):
        """A model that cannot be read has a message, and the others their lines."""
        good, bad = self.llama().write(self.path("a.gguf")), self.write("bad.gguf", b"GGUF\3\0\0\0")
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--info", "--json", good, bad, self.path("missing"), good)
        self.assert_status(EX_DATAERR, result)
        self.assertEqual([good, good], [line["file"] for line in lines_of(result.out)])
        self.assertIn(f"ggufs: {bad}: ", result.err)
        self.assertIn(f"ggufs: {self.path('missing')}: ", result.err)

    def test_output_that_cannot_be_written(self):
        path = self.llama().write(self.path("a.gguf"))
        for command in [*OF_ONE_MODEL, "diff"]:
            with open("/dev/full", "wb") as full:
                done = subprocess.run([mounting.BINARY, *mounting.MOUNT_OPTIONS, f"--{command}", "--json",
                                       *[path] * (1 + (command == "diff"))], stdout=full,
                                      stderr=subprocess.PIPE, timeout=mounting.DEADLINE)
            self.assertEqual(EX_IOERR, done.returncode, command)
            self.assertIn(b"cannot write to standard output: ", done.stderr, command)


@unittest.skipUnless(jsonschema, "needs python3-jsonschema")
class TestStatus(JsonTestCase):
    def setUp(self):
        mounting.require_fuse()
        super().setUp()

    def test_status(self):
        validator = jsonschema.Draft202012Validator(schema_of("status"))
        path = self.llama().write(self.path("a.gguf"))
        self.mount_in_background(path, self.mountpoint)
        line, = self.run_json(EX_OK, "status", self.mountpoint)
        validator.validate(line)
        self.assertEqual(set(schema_of("status")["properties"]), set(line))
        self.assertFalse(validator.is_valid({**line, "state": "other"}))


if __name__ == "__main__":
    unittest.main()
