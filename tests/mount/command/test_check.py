#!/usr/bin/env python3
"""ggufs --check: the rules of findings and their remedies, as text and as JSON."""

import json
import os
import re
import shutil
import struct
import subprocess

import mounting
import test_command
from gguf_file import BOOL, F32, Q4_0, STRING, UINT32, GgufFile

MAKE_HOSTILE = os.path.join(mounting.ROOT, "build", "make-hostile")
MEMBERS = ["file", "severity", "rule", "offset", "tensor", "key", "text", "explanation", "remedy"]
EX_OK, EX_DATAERR, EX_NOINPUT = 0, 65, 66


def rules_of_manual():
    with open(os.path.join(mounting.ROOT, "ggufs.5"), encoding="utf-8") as manual:
        section = manual.read().partition(".Sh FINDINGS\n")[2].partition("\n.Sh ")[0]
    return re.findall(r"^\.It Li (\S+)$", section, re.MULTILINE)


class CheckTestCase(mounting.MountTestCase):
    def check_json(self, status, *words):
        """The objects of --check --json, whose members are checked."""
        result = self.run_ggufs("--check", "--json", *words)
        self.assert_status(status, result)
        self.assertEqual("", result.err)
        found = []
        for line in result.out.splitlines():
            one = json.loads(line)
            self.assertEqual(MEMBERS, list(one))
            self.assertIn(one["severity"], ("error", "warning", "note", "ok"))
            self.assertTrue(one["text"] and one["text"].isprintable(), one)
            if one["severity"] != "ok":
                self.assertIn(one["rule"], rules_of_manual())
                self.assertTrue(one["explanation"].endswith(".") and one["remedy"].endswith("."), one)
            found.append(one)
        self.assertEqual(status != EX_OK, any(one["severity"] == "error" for one in found))
        return found

    def check_text(self, status, *words):
        result = self.run_ggufs("--check", *words)
        self.assert_status(status, result)
        self.assertEqual("", result.err)
        return result.out.splitlines()


class TestHostile(CheckTestCase):
    """All hostile files: each finding has a rule and a remedy, and both outputs agree."""

    def text_of(self, one):
        if one["severity"] == "ok":
            return f"{one['file']}: OK: {one['text']}"
        words = "" if one["severity"] == "error" else one["severity"] + ": "
        if one["offset"] is not None:
            words += f"byte {one['offset']}: "
        return f"{one['file']}: {words}{one['text']} [{one['rule']}]"

    def expected_text(self, found):
        explained = set()
        for one in found:
            yield self.text_of(one)
            if one["rule"] and one["rule"] not in explained:
                yield f"{one['file']}: help: {one['rule']}: {one['explanation']} {one['remedy']}"
            explained.add(one["rule"])

    def test_text_and_json(self):
        if not os.path.exists(MAKE_HOSTILE):
            raise AssertionError(f"{MAKE_HOSTILE} is missing: run make build/make-hostile")
        folder = self.path("hostile")
        subprocess.run([MAKE_HOSTILE, folder], check=True)
        with open(os.path.join(folder, "expected.tsv"), encoding="utf-8",
                  errors="surrogateescape") as file:
            cases = [line.split("\t")[:3] for line in file]
        self.assertGreater(len(cases), 200)
        for name, _, status in cases:
            with self.subTest(name=name):
                path = os.path.join(folder, name)
                found = self.check_json(int(status), path)
                self.assertEqual({path}, {one["file"] for one in found})
                self.assertEqual(list(self.expected_text(found)), self.check_text(int(status), path))


class TestJson(CheckTestCase):
    def test_good(self):
        path = GgufFile().tensor(b"t", [4], F32, bytes(range(16))).write(self.path("good.gguf"))
        self.assertEqual([{"file": path, "severity": "ok", "rule": None, "offset": None, "tensor": None,
                           "key": None, "text": "GGUF v3, little-endian, 0 keys, 1 tensors",
                           "explanation": None, "remedy": None}], self.check_json(EX_OK, path))

    def test_places(self):
        built = GgufFile().key(b"k", UINT32, 1).key(b"k", UINT32, 2)
        built.tensor(b"t", [4], F32, bytes(16)).tensor(b"t", [4], F32, bytes(16))
        path = built.write(self.path("twins.gguf"))
        key, tensor = self.check_json(EX_DATAERR, path)
        whole = built.to_bytes()
        self.assertEqual(("duplicate-key", "k", None, whole.rindex(b"\1" + bytes(7) + b"k")),
                         (key["rule"], key["key"], key["tensor"], key["offset"]))
        self.assertEqual(("duplicate-tensor", None, "t"),
                         (tensor["rule"], tensor["key"], tensor["tensor"]))

    def test_whole_names(self):
        """Messages cut long names. JSON has them whole, and bytes that are not UTF-8."""
        name = b"\x1b[31m\n\r\xff\"" + b"n" * 1000
        path = GgufFile().key(name, BOOL, 2).write(self.path("name.gguf"))
        one, = self.check_json(EX_DATAERR, path)
        self.assertEqual(("value", name), (one["rule"], one["key"].encode(errors="surrogateescape")))

    def test_names_of_files(self):
        path = self.write("new\nline\".gguf", b"\1\2\3\4\xff\xfe\xfd\xfc")
        one, = self.check_json(EX_DATAERR, path)
        self.assertEqual((path, "not-a-model"), (one["file"], one["rule"]))

    def test_several_and_unreadable(self):
        good = GgufFile().write(self.path("good.gguf"))
        missing, empty = self.path("missing"), self.write("empty", b"")
        found = self.check_json(EX_NOINPUT, good, missing, self.mountpoint, empty)
        self.assertEqual([(good, "ok", None), (missing, "error", "cannot-open"),
                          (self.mountpoint, "error", "not-a-file"), (empty, "error", "empty-file")],
                         [(one["file"], one["severity"], one["rule"]) for one in found])

    def test_data(self):
        values = struct.pack("<4f", 1, float("nan"), float("inf"), 3)
        built = GgufFile().tensor(b"bad", [4], F32, values).tensor(b"zero", [4], F32, bytes(16))
        bad, zeros = self.check_json(EX_DATAERR, "--data", built.write(self.path("nan.gguf")))
        self.assertEqual(("error", "not-finite", "bad"), (bad["severity"], bad["rule"], bad["tensor"]))
        self.assertIn("2 of 4 values are NaN or infinite as float32, from value 1 (row 0) to 2 (row 0)", bad["text"])
        self.assertEqual(("warning", "zeros"), (zeros["severity"], zeros["rule"]))

    def test_unknown_types(self):
        built = GgufFile().tensor(b"known", [4], F32, bytes(range(16)))
        built.tensor(b"x", [4], 1000, bytes(range(16))).tensor(b"y", [4], 1001, bytes(range(16)))
        one, whole = self.check_json(EX_OK, built.write(self.path("unknown.gguf")))
        self.assertEqual(("warning", "unknown-type", "x"), (one["severity"], one["rule"], one["tensor"]))
        self.assertIn("type 1000 is unknown; 2 of 3 tensors", one["text"])
        self.assertEqual("ok", whole["severity"])

    def test_shards_name_their_files(self):
        for i in range(2):
            built = GgufFile().key(b"split.no", UINT32, i).key(b"split.count", UINT32, 3)
            path = built.tensor(b"t%d" % i, [4], F32, bytes(16)).write(
                self.path(f"m-{i + 1:05d}-of-00003.gguf"))
        one, = self.check_json(EX_NOINPUT, path)
        self.assertEqual((self.path("m-00003-of-00003.gguf"), "shard-missing"),
                         (one["file"], one["rule"]))


class TestText(CheckTestCase):
    def test_a_rule_is_explained_once_per_model(self):
        built = GgufFile().key(b"general.name", STRING, b"x")
        for i in range(1000):
            built.tensor(b"t%d" % i, [4], F32, bytes(range(16)))
        path = built.write(self.path("cut.gguf"))
        os.truncate(path, os.path.getsize(path) - 32 * 1000)
        lines = self.check_text(EX_DATAERR, path, path)
        self.assertEqual(2, sum(": help: truncated-data: " in line for line in lines))
        self.assertEqual(2 * (1000 + 1 + 1), len(lines))
        self.assertIn(": help: ", lines[1])

    def test_refusals_name_the_remedy(self):
        path = self.write("page", b"<!DOCTYPE html>\n<html>")
        for words in (["--info", path], [path, self.mountpoint], [self.path("missing"), self.mountpoint]):
            with self.subTest(words=words):
                result = self.run_ggufs(*words)
                first, remedy = result.err.splitlines()
                rule = re.search(r" \[([a-z-]+)\]$", first).group(1)
                self.assertRegex(remedy, f"^ggufs: .*: help: {rule}: .*\\.$")


class TestFindings(test_command.CommandTestCase):
    """--check prints a line per finding to stdout, explains each rule once, and mounts nothing."""

    def check(self, status, *paths):
        """The lines without the explanations, which are checked here."""
        result = self.run_ggufs("--check", *paths)
        self.assert_status(status, result)
        self.assertEqual("", result.err)
        self.assertTrue(result.out.endswith("\n"), result)
        helps, lines = [], []
        for line in result.out.splitlines():
            (helps if ": help: " in line else lines).append(line)
        rules = {re.search(r" \[([a-z-]+)\]$", line).group(1) for line in lines if ": OK: " not in line}
        explained = [re.search(r": help: ([a-z-]+): \w", line).group(1) for line in helps]
        self.assertEqual(rules, set(explained))
        if len(paths) == 1:
            self.assertEqual(len(rules), len(explained))
        return lines

    def bad(self):
        built = GgufFile().key(b"k", UINT32, 1).key(b"k", UINT32, 2)
        built.tensor(b"twin", [4], F32, bytes(16)).tensor(b"twin", [4], F32, bytes(16))
        return built.tensor(b"row", [33], Q4_0, bytes(36)).write(self.path("bad.gguf"))

    def test_good(self):
        lines = self.check(EX_OK, self.model)
        self.assertEqual([f"{self.model}: OK: GGUF v3, little-endian, 0 keys, 1 tensors"], lines)

    def test_every_finding_has_a_line(self):
        path = self.bad()
        lines = self.check(EX_DATAERR, path)
        self.assertEqual(3, len(lines), lines)
        for line, words in zip(lines, ((path, '"k"', "duplicate"), (path, '"twin"', "duplicate"),
                                       (path, '"row"', "33"))):
            for word in words:
                self.assertIn(word, line)
            self.assertRegex(line, r": byte \d+: ")

    def test_mounting_counts_the_other_errors(self):
        path = self.bad()
        result = self.assert_refused(EX_DATAERR, [path, self.mountpoint], '"k"', "2 more errors",
                                     "--check")
        first, remedy, more = result.err.splitlines()
        self.assertIn("[duplicate-key]", first)
        self.assertIn(": help: duplicate-key: ", remedy)
        self.assertIn("2 more errors", more)

    def test_missing_file(self):
        self.check(EX_NOINPUT, self.path("missing"))

    def test_several(self):
        bad, missing = self.bad(), self.path("missing")
        for status, paths in ((EX_OK, [self.model] * 3),
                              (EX_DATAERR, [self.model, bad, self.model]),
                              (EX_DATAERR, [bad, missing]),
                              (EX_NOINPUT, [missing, bad, self.model])):
            lines = self.check(status, *paths)
            self.assertEqual(sum(p == self.model for p in paths),
                             sum(": OK: " in line for line in lines))
            for path in paths:
                self.assertTrue(any(line.startswith(f"{path}: ") for line in lines), lines)

    def test_names_stay_on_their_line(self):
        """Text from a file never reaches the terminal unescaped."""
        name = b"\x1b[31m\n\r\xff\"" + b"n" * 1000
        path = GgufFile().key(name, BOOL, 2).write(self.path("names.gguf"))
        line, = self.check(EX_DATAERR, path)
        self.assertTrue(line.isprintable(), line)
        self.assertIn("\\x1b", line)

    def test_a_path_stays_on_its_line(self):
        path = self.write("new\nline.gguf", b"nothing")
        self.assertEqual(1, len(self.check(EX_DATAERR, path)))

    def test_double_dash(self):
        GgufFile().write(self.path("-model.gguf"))
        result = self.run_ggufs("--check", "--", "-model.gguf", cwd=self.folder)
        self.assert_status(EX_OK, result)

    def test_equal_twins_are_a_note(self):
        path = GgufFile().key(b"k", UINT32, 1).key(b"k", UINT32, 1).write(self.path("twins.gguf"))
        lines = self.check(EX_OK, path)
        self.assertEqual(2, len(lines), lines)
        self.assertIn("note: ", lines[0])

    def test_fixtures(self):
        paths = mounting.fixtures("gguf", "golden", "archs", "quants", "split", "tokenizers")
        if not paths:
            mounting.skip_loudly(f"no fixtures in {mounting.FIXTURES}")
        models = {re.sub(r"-\d{5}-of-(\d{5}\.gguf)$", r"-of-\1", path) for path in paths}
        lines = self.check(EX_OK, *paths)
        self.assertEqual(len(models), sum(": OK: " in line for line in lines))

    def test_edits_are_checked(self):
        model = GgufFile().tensor(b"t", [4], F32, bytes(16)).write(self.path("edited.gguf"))
        lists = ["--set", 'tokenizer.ggml.tokens=arr:["a","b"]', "--set",
                 "tokenizer.ggml.scores=arr[f32]:[1]"]
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--check", *lists, model)
        self.assertEqual((EX_OK, f"{model}: warning: key \"tokenizer.ggml.scores\": it has 1 elements, "
                                 "but \"tokenizer.ggml.tokens\" has 2 [vocabulary]"),
                         (result.status, result.out.splitlines()[0]))
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--check", *lists, "--set",
                                "tokenizer.ggml.scores=arr[f32]:[1,2]", model)
        self.assertEqual((EX_OK, 1), (result.status, len(result.out.splitlines())), result)
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--check", "--unset", "nothing", model)
        self.assertEqual(EX_DATAERR, result.status)
        self.assertIn("nothing", result.out)

    def test_shards_are_one_model(self):
        paths = mounting.fixtures("split")
        if not paths:
            mounting.skip_loudly(f"no fixtures in {mounting.FIXTURES}")
        lines = self.check(EX_OK, *reversed(paths))
        self.assertEqual(1, len(lines), lines)
        self.assertIn("48 tensors", lines[0])
        copies = [shutil.copyfile(path, self.path(os.path.basename(path))) for path in paths]
        os.truncate(copies[2], os.path.getsize(copies[2]) - 100)
        once = self.check(EX_DATAERR, copies[0])
        self.assertEqual(once, self.check(EX_DATAERR, *copies))
        self.assertEqual(len(once), len(set(once)), once)

    def test_a_model_given_twice(self):
        self.assertEqual(2, len(self.check(EX_OK, self.model, self.model)))
