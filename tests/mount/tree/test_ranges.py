#!/usr/bin/env python3
"""Models inside larger files: llamafiles and other ZIP files, and places given by the user."""

import io
import json
import os
import shutil
import subprocess
import zipfile

import mounting
from gguf_file import F32, INT32, UINT16, GgufFile

setUpModule = mounting.require_fuse

RUNNER = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")

# sysexits.h
EX_OK, EX_DATAERR = 0, 65

# How a llamafile starts.
PROGRAM = b"MZqFpD='\n" + bytes(range(256)) * 77 + b"\n#!/bin/sh\n"


def zip_of(*members, packing=zipfile.ZIP_STORED, zip64=False):
    """Return the bytes of a ZIP file with these (name, data)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, data in members:
            with archive.open(name, "w", force_zip64=zip64) as member:
                member.write(data)
    return out.getvalue()


def appended(program, *members):
    """Return the bytes of a program to which zip(1) has added members."""
    out = io.BytesIO(program)
    with zipfile.ZipFile(out, "a") as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


class RangeTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        with open(mounting.sample(), "rb") as file:
            self.sample = file.read()
        self.members = ((".args", b"-m\nmodel.gguf\n"), ("model.gguf", self.sample),
                        ("doc/readme.txt", b"text"))

    def ggufs(self, *arguments):
        return subprocess.run([mounting.BINARY, *mounting.MOUNT_OPTIONS, *arguments],
                              capture_output=True)

    def place_of(self, path):
        """Return where the sample starts in a file."""
        with open(path, "rb") as file:
            return file.read().index(self.sample)

    def expect_sample(self, path, *options):
        """Check every file of the tree that does not name the place of the model."""
        checked = self.ggufs("--check", *options, path)
        self.assertEqual((EX_OK, b""), (checked.returncode, checked.stderr), checked.stdout)
        trees = []
        for source, more in (mounting.sample(), ()), (path, options):
            tree = self.path("tree-%d" % len(trees))
            shutil.rmtree(tree, ignore_errors=True)
            result = self.ggufs("--extract", *more, tree, source, "tensors/*/raw", "tensors/*/f32",
                                "metadata.json", "model.gguf", "tensors.tsv", "hf")
            self.assertEqual(EX_OK, result.returncode, result.stderr)
            trees.append(tree)
        subprocess.run(["diff", "-r", *trees], check=True)
        info = json.loads(self.ggufs("--cat", "tensors/output.weight/info", *options, path).stdout)
        plain = json.loads(self.ggufs("--cat", "tensors/output.weight/info",
                                      mounting.sample()).stdout)
        self.assertEqual(plain["offset"] + self.place_of(path), info["offset"])
        self.assertEqual(os.path.basename(path), info["file"])
        plain.update(offset=info["offset"], file=info["file"])
        self.assertEqual(plain, info)


class TestZip(RangeTestCase):
    def test_stored(self):
        self.expect_sample(self.write("model.zip", zip_of(*self.members)))

    def test_zip64(self):
        self.expect_sample(self.write("model.zip", zip_of(*self.members, zip64=True)))

    def test_program_with_offsets_of_the_file(self):
        self.expect_sample(self.write("model.llamafile", appended(PROGRAM, *self.members)))

    def test_program_with_offsets_of_the_zip_file(self):
        for zip64 in False, True:
            self.expect_sample(self.write("x", PROGRAM + zip_of(*self.members, zip64=zip64)))

    def test_comment(self):
        data = zip_of(*self.members)[:-2] + b"\x05\0PK\5\6\0"
        self.expect_sample(self.write("model.zip", data))

    def refused(self, path, *lines):
        result = self.ggufs("--check", path)
        self.assertEqual(EX_DATAERR, result.returncode, result.stdout)
        printed = result.stdout.decode().splitlines()
        self.assertIn(": help: ", printed.pop(1))
        self.assertEqual(len(lines), len(printed), printed)
        for words, line in zip(lines, printed):
            self.assertIn(words, line)

    def test_packed(self):
        path = self.write("model.zip", zip_of(*self.members, packing=zipfile.ZIP_DEFLATED))
        self.refused(path, 'ZIP member "model.gguf" is compressed, so it cannot be read in place; '
                           'unpack it first (unzip)')

    def test_no_model(self):
        path = self.write("pytorch_model.bin", zip_of(("archive/data.pkl", b"\x80\2}q\0.")))
        self.refused(path, "is a PyTorch file, not GGUF; llama.cpp's convert_hf_to_gguf.py")
        path = self.write("model.zip", zip_of(("readme.txt", b"Hello")))
        self.refused(path, 'a ZIP file of 1 member without a model; the first is "readme.txt"')

    def test_cut(self):
        for data in zip_of(*self.members), appended(PROGRAM, *self.members):
            self.refused(self.write("cut", data[:-1]), "unfinished download?")

    def test_several(self):
        members = (("a.gguf", self.sample), ("dir/b.bin", self.sample))
        data = bytearray(appended(PROGRAM, *members))
        path = self.write("two.llamafile", data)
        first = data.index(self.sample)
        second = data.index(self.sample, first + 1)
        places = [f"offset={place},size={len(self.sample)}" for place in (first, second)]
        self.refused(path, "holds 2 models in a ZIP file; choose one with -o offset=BYTES,size=BYTES",
                     f'"a.gguf": -o {places[0]}', f'"dir/b.bin": -o {places[1]}')
        for place in places:
            self.mount(path, "-o", place)
            with open(os.path.join(self.mountpoint, "model.gguf"), "rb") as file:
                self.assertEqual(self.sample, file.read())
            mounting.unmount(self.mountpoint)
        self.assertEqual(EX_DATAERR, self.ggufs("--info", path).returncode)

    def test_shard(self):
        model = (GgufFile().key(b"split.count", UINT16, 2).key(b"split.no", UINT16, 0)
                 .key(b"split.tensors.count", INT32, 2).tensor(b"a", [1], F32, bytes(4))).to_bytes()
        self.refused(self.write("model.zip", zip_of(("m-00001-of-00002.gguf", model))),
                     "holds shard 1 of 2 (keys split.no and split.count) inside a larger file; "
                     "unpack all shards")

    def test_shards_in_zip_files(self):
        names = "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"
        for number, name in enumerate(names):
            model = (GgufFile().key(b"split.count", UINT16, 2).key(b"split.no", UINT16, number)
                     .key(b"split.tensors.count", INT32, 2)
                     .tensor(b"t%d" % number, [2], F32, b"%d" % number * 8))
            self.write(name, zip_of((name, model.to_bytes())))
        self.mount(self.path(names[0]))
        for number in 0, 1:
            with open(os.path.join(self.mountpoint, "tensors", f"t{number}", "raw"), "rb") as file:
                self.assertEqual(b"%d" % number * 8, file.read())


class TestMounted(RangeTestCase):
    def setUp(self):
        super().setUp()
        self.model = self.write("model.llamafile", appended(PROGRAM, *self.members))

    def test_place(self):
        self.mount(self.model)
        folder = os.path.join(self.mountpoint, "tensors", "output.weight")
        with open(os.path.join(folder, "raw"), "rb") as file:
            raw = file.read()
        with open(os.path.join(folder, "info"), "rb") as file:
            info = json.load(file)
        self.assertEqual("model.llamafile", info["file"])
        with open(self.model, "rb") as file:
            file.seek(info["offset"])
            self.assertEqual(raw, file.read(len(raw)))

    def test_summary(self):
        result = self.ggufs("--info", self.model).stdout.decode()
        self.assertIn(f"({len(self.sample)} bytes)\n", result)
        self.assertIn(f"place           from byte {self.place_of(self.model)} of a file of "
                      f"{os.path.getsize(self.model)} bytes\n", result)
        self.assertNotIn("place  ", self.ggufs("--info", mounting.sample()).stdout.decode())

    def test_runner(self):
        """It maps the file itself, at a place that is aligned to nothing."""
        self.assertEqual(1, self.place_of(self.model) % 2)
        texts = []
        for model in mounting.sample(), self.model:
            self.mount(model)
            result = subprocess.run([RUNNER, "--temp", "0", "-n", "8", self.mountpoint, "a b"],
                                    capture_output=True)
            self.assertEqual(EX_OK, result.returncode, result.stderr)
            texts.append(result.stdout)
            mounting.unmount(self.mountpoint)
        self.assertEqual(*texts)

    def test_edits(self):
        edit = "--set", "general.name=str:new"
        plain = self.ggufs(*edit, "--cat", "model.gguf", mounting.sample())
        inside = self.ggufs(*edit, "--cat", "model.gguf", self.model)
        self.assertEqual((EX_OK, plain.stdout), (inside.returncode, inside.stdout))

    def test_diff(self):
        result = self.ggufs("--diff", "--json", self.model, mounting.sample())
        self.assertEqual(EX_OK, result.returncode, result.stderr)

    def test_changed_program(self):
        """What precedes the model may change."""
        self.mount(self.model)
        with open(self.model, "r+b") as file:
            file.seek(20)
            file.write(b"other")
        with open(os.path.join(self.mountpoint, "model.gguf"), "rb") as file:
            self.assertEqual(self.sample, file.read())


class TestOffset(RangeTestCase):
    def test_any_file(self):
        data = b"x" * 12345 + self.sample
        path = self.write("data.bin", data)
        self.expect_sample(path, "-o", "offset=12345")
        path = self.write("data.bin", data + b"more")
        self.expect_sample(path, "-o", f"offset=12345,size={len(self.sample)}")

    def test_bytes_behind_it(self):
        path = self.write("data.bin", b"x" + self.sample + b"y" * 77)
        result = self.ggufs("--check", "-o", "offset=1", path)
        self.assertEqual(EX_OK, result.returncode)
        self.assertIn(b"77 bytes after the last tensor", result.stdout)

    def test_outside(self):
        path = self.write("data.bin", b"x" + self.sample)
        end = len(self.sample) + 1
        for option, words in ((f"offset={end}", f"-o offset={end}: the file ends at byte {end}"),
                              (f"offset=1,size={end}", f"-o size={end}: only {end - 1} bytes are left")):
            result = self.ggufs("--info", "-o", option, path)
            self.assertEqual(EX_DATAERR, result.returncode)
            self.assertIn(words, result.stderr.decode())

    def test_partial(self):
        path = self.write("data.bin", (b"x" * 99 + self.sample)[:-1])
        self.mount(path, "-o", "partial,offset=99")
        with open(path, "ab") as file:
            file.write(self.sample[-1:])
        with open(os.path.join(self.mountpoint, "model.gguf"), "rb") as file:
            self.assertEqual(self.sample, file.read())
