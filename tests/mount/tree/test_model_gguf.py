#!/usr/bin/env python3
"""model.gguf and split/ are the same model when they are copied and mounted again; edits of keys."""

import json
import os
import random
import shutil
import tempfile

import mounting
from gguf_file import ARRAY, F16, F32, Q8_0, STRING, UINT32, Array, GgufFile
from gguf_reader import Model
from mounting import read_file

try:
    from gguf import GGMLQuantizationType, GGUFReader
except ImportError:
    GGUFReader = None

setUpModule = mounting.require_fuse

EX_USAGE, EX_DATAERR, EX_NOINPUT = 64, 65, 66


class ModelTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.n_mounts = 0

    def copy_out(self, *parts):
        """A copy of a file of the mount."""
        self.n_mounts += 1
        target = self.path(f"copy{self.n_mounts}.gguf")
        shutil.copyfile(os.path.join(self.mountpoint, *parts), target)
        return target

    def mount_copy(self, path):
        self.n_mounts += 1
        return self.mount(path, mountpoint=self.new_mountpoint(f"mnt{self.n_mounts}"))

    def assert_same_values(self, folder, other, names=None):
        tensors = os.path.join(folder, "tensors")
        for name in sorted(names or os.listdir(tensors)):
            path = os.path.join("tensors", name, "f32")
            self.assertEqual(os.path.exists(os.path.join(folder, path)),
                             os.path.exists(os.path.join(other, path)), path)
            if os.path.exists(os.path.join(folder, path)):
                self.assertTrue(read_file(folder, path) == read_file(other, path), path)

    def check_with_gguf_package(self, path, model):
        """Check with llama.cpp's Python reader, if it is installed and knows the types."""
        if not GGUFReader or {t.type_id for t in model.tensors} - set(GGMLQuantizationType):
            return
        reader = GGUFReader(path)
        self.assertEqual([t.name.decode() for t in model.tensors],
                         [t.name for t in reader.tensors])
        for tensor, theirs in zip(model.tensors, reader.tensors):
            self.assertTrue(model.raw(tensor) == theirs.data.tobytes(), theirs.name)

    def check_model(self, path):
        self.mount(path)
        source = Model(path)
        copy_path = self.copy_out("model.gguf")
        if source.version == 3 and not source.big_endian:
            self.assertTrue(read_file(path) == read_file(copy_path), "the file as it is")
        copy = Model(copy_path)
        self.assertEqual((3, False), (copy.version, copy.big_endian))
        self.assertEqual([name for name, _ in source.keys], [name for name, _ in copy.keys])
        self.assertEqual([(t.name, t.ne, t.type_id) for t in source.tensors],
                         [(t.name, t.ne, t.type_id) for t in copy.tensors])
        if all(tensor.type_name for tensor in copy.tensors):
            self.check_with_gguf_package(copy_path, copy)
        other = self.mount_copy(copy_path)
        self.assertEqual(read_file(self.mountpoint, "metadata.json"),
                         read_file(other, "metadata.json"))
        self.assert_same_values(self.mountpoint, other)
        return copy


def test_of_fixture(path):
    def test(self):
        self.check_model(path)
    return test


class TestFixtures(ModelTestCase):
    """One test for every GGUF file of the fixtures; they are added below."""

    def test_sample(self):
        self.check_model(mounting.sample())


for fixture_path in mounting.fixtures("gguf", "golden", "quants", "tokenizers"):
    words = os.path.splitext(os.path.relpath(fixture_path, mounting.FIXTURES))[0]
    words = "".join(c if c.isalnum() else "_" for c in words)
    setattr(TestFixtures, f"test_{words}", test_of_fixture(fixture_path))


def large_model(version=3, big_endian=False, alignment=32):
    """Returns a model whose metadata takes several text chunks and kernel requests."""
    source = random.Random(1)
    built = GgufFile(version, big_endian, alignment)
    tokens = [b"%d" % i * source.randrange(6) for i in range(150000)]
    built.key(b"general.architecture", STRING, b"llama")
    built.key(b"tokens", ARRAY, Array(STRING, tokens))
    built.key(b"types", ARRAY, Array(UINT32, list(range(100000))))
    built.key(b"nested", ARRAY, Array(ARRAY, [Array(STRING, [b"x" * 5000]), Array(UINT32, [])]))
    built.key(b"template", STRING, source.randbytes(300000))
    built.tensor(b"f32", [100, 7], F32, bytes(2800))
    built.tensor(b"f16", [3], F16, b"abcdef")
    built.tensor(b"empty", [0], F32)
    built.tensor(b"q8", [32, 5000], Q8_0, source.randbytes(5000 * 34))
    return built


class TestConversions(ModelTestCase):
    def test_every_encoding(self):
        for version, big_endian in ((1, False), (2, False), (3, True), (3, False)):
            for alignment in (32, 4096):
                with self.subTest(version=version, big_endian=big_endian, alignment=alignment):
                    path = large_model(version, big_endian, alignment).write(self.path("model"))
                    copy = self.check_model(path)
                    self.assertEqual(dict(Model(path).keys), dict(copy.keys))
                    mounting.unmount(self.mountpoint)

    def test_size_at_once_and_slices(self):
        path = large_model(3, True).write(self.path("model"))
        self.check_random_slices(os.path.join(self.mount(path), "model.gguf"), 300, 20)


class TestEdits(ModelTestCase):
    def setUp(self):
        super().setUp()
        self.model = large_model().write(self.path("model.gguf"))

    def edited(self, *options):
        self.mount(self.model, *options)
        return json.loads(read_file(self.mountpoint, "metadata.json"))

    def test_set_and_unset(self):
        metadata = self.edited(
            "-o", r"set=general.name=str:one\, two\\three: {{ x }}", "-o",
            "unset=types,set=n=u64:18446744073709551615,ro", "-o", r"set=a=arr[i8]:[-1\,2]",
            "-o", "set=template=str:short")
        self.assertEqual("one, two\\three: {{ x }}", metadata["general.name"])
        self.assertEqual(18446744073709551615, metadata["n"])
        self.assertEqual([-1, 2], metadata["a"])
        self.assertNotIn("types", metadata)
        self.assertEqual(b'"short"\n', read_file(self.mountpoint, "metadata/template.json"))
        self.assertFalse(os.path.exists(os.path.join(self.mountpoint, "metadata/types.json")))
        copy = self.copy_out("model.gguf")
        keys = dict(Model(copy).keys)
        self.assertEqual(b"one, two\\three: {{ x }}", keys[b"general.name"])
        self.assertEqual((2**64 - 1, [-1, 2], b"short"),
                         (keys[b"n"], keys[b"a"], keys[b"template"]))
        self.assertEqual(dict(Model(self.model).keys)[b"tokens"], keys[b"tokens"])
        self.assert_same_values(self.mountpoint, self.mount_copy(copy))

    def test_file(self):
        edits = self.write("edits.json", json.dumps({
            "general.name": "né\n\"w\"", "types": None, "b": True,
            "f": {"type": "f32", "value": 0.1}, "l": ["a", "b"]}).encode())
        for options in (["--edits", edits], ["--edits=" + edits]):
            metadata = self.edited(*options)
            self.assertEqual(("né\n\"w\"", True, 0.1, ["a", "b"]),
                             tuple(metadata[k] for k in ("general.name", "b", "f", "l")))
            self.assertNotIn("types", metadata)
            mounting.unmount(self.mountpoint)

    def test_alignment(self):
        self.edited("-o", "set=general.alignment=u32:1024")
        copy = Model(self.copy_out("model.gguf"))
        self.assertEqual(1024, copy.alignment)
        for tensor, same in zip(copy.tensors, Model(self.model).tensors):
            self.assertEqual(0, tensor.offset % 1024)
            self.assertEqual(Model(self.model).raw(same), copy.raw(tensor))

    def assert_refused(self, status, options, *words):
        result = self.run_ggufs(*options, self.model, self.mountpoint)
        was_mounted = mounting.mount_entry(self.mountpoint)
        mounting.unmount(self.mountpoint)
        self.assertIsNone(was_mounted, options)
        self.assert_status(status, result)
        self.assertEqual("", result.out)
        for word in words:
            self.assertIn(word, result.err)

    def test_refusals(self):
        cases = [("set=a=u8:256", EX_USAGE, '"a"', '"256"', "0 to 255"),
                 ("set=a=x:1", EX_DATAERR, '"a"', "KEY=u32:VALUE"),
                 ("set=a", EX_USAGE, "KEY=TYPE:VALUE"),
                 ("set==u8:1", EX_USAGE, "no key"),
                 ("set=a=arr:[1", EX_USAGE, "not JSON"),
                 ("set=a\x1b=u8:256", EX_USAGE, "\\x1b"),
                 ("unset=split.no", EX_USAGE, "split.no"),
                 ("set=" + 65536 * "k" + "=u8:1", EX_USAGE, "65535"),
                 ("unset=nothing", EX_DATAERR, '"nothing"', "no such key"),
                 ("set=general.alignment=u32:48", EX_DATAERR, "48 is not a power of two"),
                 ("set=general.alignment=u64:32", EX_DATAERR, "uint64", "uint32"),
                 ("set=general.architecture=u32:1", EX_DATAERR, "str", "u32")]
        for option, status, *words in cases:
            with self.subTest(option=option[:40]):
                self.assert_refused(status, ["-o", option], "ggufs: ", *words)

    def test_refused_files(self):
        for text, word in ((b"", "is empty"), (b"[]", "not an object"), (b"{", "not JSON"),
                           (b'{"a": true}\0', "NUL"), (b'{"a": {"type": "x"}}', "type")):
            with self.subTest(text=text):
                path = self.write("bad.json", text)
                self.assert_refused(EX_USAGE, ["--edits", path], "ggufs: --edits: ", word)
        self.assert_refused(EX_NOINPUT, ["--edits", self.path("none")], "No such file")
        self.assert_refused(EX_NOINPUT, ["--edits", self.folder], "directory")

    def test_check_of_edits(self):
        """--check with edits checks the model that they make."""
        self.assert_status(0, self.run_ggufs("-o", "unset=types", "--check", self.model))
        self.assert_status(EX_DATAERR, self.run_ggufs("-o", "unset=nothing", "--check", self.model))


class TestSplit(ModelTestCase):
    def copy_shards(self):
        """Copy the shards of split/ to a folder; returns their paths."""
        folder = tempfile.mkdtemp(dir=self.folder)
        split = os.path.join(self.mountpoint, "split")
        return [shutil.copy(os.path.join(split, name), folder) for name in sorted(os.listdir(split))]

    def check_split(self, path, size, n_shards, *options):
        self.mount(path, "-o", f"split={size}", *options)
        stem = os.path.basename(path).removesuffix(".gguf")
        copies = self.copy_shards()
        self.assertEqual([f"{stem}-{i + 1:05}-of-{n_shards:05}.gguf" for i in range(n_shards)],
                         list(map(os.path.basename, copies)))
        tensors = []
        for i, copy in enumerate(copies):
            shard = Model(copy)
            keys = dict(shard.keys)
            self.assertEqual((i, n_shards, len(Model(path).tensors)),
                             tuple(keys[k] for k in (b"split.no", b"split.count",
                                                     b"split.tensors.count")))
            self.assertEqual(i == 0, b"general.architecture" in keys)
            self.check_with_gguf_package(copy, shard)
            tensors += [(t.name, t.ne, t.type_id) for t in shard.tensors]
        self.assertEqual([(t.name, t.ne, t.type_id) for t in Model(path).tensors], tensors)
        self.assert_same_values(self.mountpoint, self.mount_copy(copies[-1]),
                                [name.decode() for name, _, _ in tensors])

    def test_sizes(self):
        for size, n_shards in (("1", 4), ("3K", 2), ("2816", 3), ("170001", 2), ("1G", 1)):
            with self.subTest(size=size):
                self.check_split(large_model(3, True).write(self.path("a model.gguf"))
                                 if size == "3K" else large_model().write(self.path("m.gguf")),
                                 size, n_shards)
                mounting.unmount(self.mountpoint)

    def test_fixture(self):
        self.check_split(mounting.fixture("gguf/stories260K.gguf"), "300K", 5,
                         "-o", "set=general.name=str:edited")
        self.assertIn(b"edited", read_file(self.mountpoint, "split",
                                           "stories260K-00001-of-00005.gguf")[:20000])

    def test_of_shards(self):
        """A split of shards: names have one pair of numbers, and the old split keys are
        replaced."""
        self.mount(mounting.sample(), "-o", "split=1M")
        first = self.copy_shards()[0]
        other = self.mount(first, "-o", "split=1", mountpoint=self.new_mountpoint("other"))
        self.assertTrue(all(name.startswith("sample-0") and name.count("-of-") == 1
                            for name in os.listdir(os.path.join(other, "split"))))

    def test_refusals(self):
        for size in ("", "0", "x", "1T", "-1", "1MB", "99999999999999999999", "99999999999G"):
            result = self.run_ggufs("-o", "split=" + size, mounting.sample(), self.mountpoint)
            self.assert_status(EX_USAGE, result)
            self.assertIn("needs a size in bytes, like", result.err)
