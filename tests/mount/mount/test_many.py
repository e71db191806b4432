#!/usr/bin/env python3
"""Many models in one mount: folders, several files, and what happens to them while they are mounted."""

import concurrent.futures
import errno
import json
import os
import shutil
import socket
import subprocess
import threading

import mounting
from gguf_file import F32, STRING, UINT16, GgufFile

MARKS = ("sanitize",)

N_VALUES = 1024


def setUpModule():
    mounting.require_fuse()


def model(name="x", value=b"1234", tensor=b"t"):
    return GgufFile().key(b"general.name", STRING, name.encode()).tensor(
        tensor, [N_VALUES], F32, value * N_VALUES).to_bytes()


def shard(number, count):
    return GgufFile().key(b"split.no", UINT16, number).key(b"split.count", UINT16, count).key(
        b"split.tensors.count", UINT16, count).tensor(
        b"t%d" % number, [N_VALUES], F32, b"%04d" % number * N_VALUES).to_bytes()


class ManyTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.models = self.path("models")
        os.mkdir(self.models)

    def put(self, name, data):
        """Put a whole file in its place, as downloads end."""
        path = os.path.join(self.models, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        new = os.path.join(self.models, ".new")
        with open(new, "wb") as file:
            file.write(data)
        os.rename(new, path)
        return path

    def at(self, *names):
        return os.path.join(self.mountpoint, *names)

    def read(self, *names):
        with open(self.at(*names), "rb") as file:
            return file.read()

    def names(self, *folder):
        """The names in a folder; at the root without what is there for llama-server."""
        return sorted(set(os.listdir(self.at(*folder))) - {"llama-server", "presets.ini"})

    def status(self):
        text = self.run_ggufs("--status", "--json", self.mountpoint).out
        return json.loads(text)

    def assert_error(self, name, *words):
        self.assertEqual(["error.txt"], self.names(name))
        text = self.read(name, "error.txt").decode()
        for word in words:
            self.assertIn(word, text)

    def assert_opens(self, name, value=b"1234"):
        self.assertEqual(value * N_VALUES, self.read(name, "tensors", "t", "raw"))


class TestFolders(ManyTestCase):
    def test_names(self):
        """The folder's own subfolders, a directory per model, shards once."""
        for name in ("a.gguf", "b.GGUF", "org/repo/c.gguf"):
            self.put(name, model(name))
        for i in range(2):
            self.put(f"s-0000{i + 1}-of-00002.gguf", shard(i, 2))
        self.write("models/notes.txt", b"")
        self.mount(self.models)
        self.assertEqual(["a", "b", "models.json", "models.tsv", "org", "s"], self.names())
        self.assertEqual(["repo"], self.names("org"))
        self.assertEqual(["c"], self.names("org", "repo"))
        self.assertIn(b"org/repo/c.gguf", self.read("org/repo/c/metadata/general.name.json"))
        self.assertEqual([b"0000"[:4], b"0001"], [self.read("s/tensors", f"t{i}", "raw")[:4] for i in range(2)])
        with self.assertRaises(FileNotFoundError):
            os.stat(self.at("c"))

    def test_lists(self):
        """models.tsv and models.json come from the list alone."""
        self.put("a.gguf", model())
        self.put("b.gguf", b"GGUF is not all")
        self.put("c.gguf.part", model()[:100])
        self.put("mmproj-a-f16.gguf", model())
        self.mount(self.models)
        rows = [line.split("\t") for line in self.read("models.tsv").decode().splitlines()]
        self.assertEqual(["name", "bytes", "state", "modified", "path", "files", "error"], rows[0])
        self.assertEqual([["a", "complete", "mmproj.gguf"], ["b", "complete", ""], ["c", "partial", ""]],
                         [[row[0], row[2], row[5]] for row in rows[1:]])
        self.assertEqual(str(len(model())), rows[1][1])
        self.assertEqual(os.path.join(self.models, "a.gguf"), rows[1][4])
        objects = json.loads(self.read("models.json"))
        self.assertEqual(["a", "b", "c"], [one["name"] for one in objects])
        self.assertEqual([{"name": "mmproj.gguf", "path": os.path.join(self.models, "mmproj-a-f16.gguf")}],
                         objects[0]["files"])
        self.assertEqual(len(self.read("models.json")), os.stat(self.at("models.json")).st_size)
        self.assertEqual((3, 0), (self.status()["models"], self.status()["open_models"]))
        self.names("a")
        self.assertEqual(1, self.status()["open_models"])

    def test_projector(self):
        self.put("v-Q8_0.gguf", model())
        projector = self.put("mmproj-v-f16.gguf", model("projector"))
        self.mount(self.models)
        self.assertEqual(["models.json", "models.tsv", "v-Q8_0"], self.names())
        with open(projector, "rb") as file:
            self.assertEqual(file.read(), self.read("v-Q8_0", "mmproj.gguf"))

    def test_files(self):
        """Several files; of a model and its projector, the model's own tree."""
        a, b = self.put("a.gguf", model()), self.put("sub/b.gguf", model(value=b"5678"))
        self.mount_in_background(a, b, self.mountpoint)
        self.assertEqual(["a", "b", "models.json", "models.tsv"], self.names())
        self.assert_opens("b", b"5678")
        mounting.unmount(self.mountpoint)
        projector = self.put("mmproj.gguf", model("projector"))
        self.mount_in_background(a, projector, self.mountpoint)
        self.assertEqual(model("projector"), self.read("mmproj.gguf"))
        self.assertEqual(b"1234" * N_VALUES, self.read("tensors/t/raw"))

    def test_two_folders(self):
        self.put("a.gguf", model())
        other = self.path("other")
        os.mkdir(other)
        shutil.copy(os.path.join(self.models, "a.gguf"), other)
        self.mount_in_background(self.models, other, self.mountpoint)
        self.assertEqual(["models", "models.json", "models.tsv", "other"], self.names())
        self.assert_opens("models/a")
        self.assert_opens("other/a")

    def test_a_store(self):
        """A store named without a model has all of its models."""
        self.put("pub/repo/a.gguf", model())
        self.put("pub/other/b.gguf", b"no model")
        store = f"lmstudio:{self.models}"
        self.mount(store)
        rows = [line.split("\t") for line in self.read("models.tsv").decode().splitlines()[1:]]
        self.assertEqual(2, len(rows))
        self.assert_opens(next(row[0] for row in rows if row[4].endswith("a.gguf")))
        self.put("pub/repo/c-Q8_0.gguf", model(value=b"8888"))
        rows = [line.split("\t") for line in self.read("models.tsv").decode().splitlines()[1:]]
        self.assert_opens(next(row[0] for row in rows if row[4].endswith("c-Q8_0.gguf")), b"8888")

    def test_long_and_reserved_names(self):
        long = "x" * 249
        for name in (f"{long}.gguf", f"{long[:-1]}y.gguf", "\n" * 100 + ".gguf", "models.tsv.gguf",
                     "presets.ini.gguf"):
            self.put(name, model())
        self.mount(self.models)
        names = self.names()
        self.assertEqual(7, len(set(names)))
        self.assertIn("models.tsv~2", names)
        self.assertIn("presets.ini~2", names)
        for name in names:
            if name not in ("models.tsv", "models.json"):
                self.assertTrue(os.listdir(self.at(name)), name)
        self.assertEqual(6, len(self.read("models.tsv").splitlines()))

    def test_clashes(self):
        """Two models of one name are both there, and a folder keeps its name."""
        for name, value in (("a.gguf", b"1111"), ("a.GGUF", b"2222"), ("f.gguf", b"3333"), ("f/x.gguf", b"4444")):
            self.put(name, model(value=value))
        self.mount(self.models)
        self.assertEqual(["a", "a~2", "f", "f~2", "models.json", "models.tsv"], self.names())
        self.assertEqual({b"1111", b"2222"}, {self.read(name, "tensors/t/raw")[:4] for name in ("a", "a~2")})
        self.assert_opens("f~2", b"3333")
        self.assert_opens("f/x", b"4444")

    def test_mount_point_in_the_folder(self):
        """The mount is not listed in itself, and links into it do not stop it."""
        self.put("a.gguf", model())
        self.put("b.gguf", model())
        inside = self.new_mountpoint("models/inside")
        os.symlink(os.path.join("inside", "a", "model.gguf"), os.path.join(self.models, "link.gguf"))
        for options in ([], ["-s"]):
            self.mount_in_background(*options, self.models, inside)
            self.assertEqual(["a", "b", "link", "llama-server", "models.json", "models.tsv", "presets.ini"],
                             sorted(os.listdir(inside)))
            self.assertEqual(["error.txt"], os.listdir(os.path.join(inside, "link")))
            mounting.unmount(inside)

    def test_many_files(self):
        """A list opens no model."""
        for i in range(2000):
            os.close(os.open(os.path.join(self.models, f"m{i:04}.gguf"), os.O_CREAT | os.O_WRONLY))
        self.mount(self.models)
        self.assertEqual(2002, len(self.names()))
        self.assertEqual((2000, 0), (self.status()["models"], self.status()["open_models"]))

    def test_options_of_one_model(self):
        self.put("a.gguf", model())
        self.put("b.gguf", model())
        result = self.run_ggufs("-o", "subdir=tensors", self.models, self.mountpoint)
        self.assert_status(66, result)
        self.assertIn("has 2 models; name one of: a.gguf, b.gguf", result.err)


class TestChanges(ManyTestCase):
    def setUp(self):
        super().setUp()
        self.put("a.gguf", model())
        self.put("b.gguf", model())

    def test_new_and_removed(self):
        self.mount(self.models)
        self.assertEqual(["a", "b", "models.json", "models.tsv"], self.names())
        self.put("c.gguf", model(value=b"9999"))
        self.assert_opens("c", b"9999")
        self.put("sub/d.gguf", model())
        self.assertIn("sub", self.names())
        self.assert_opens("sub/d")
        os.remove(os.path.join(self.models, "a.gguf"))
        with self.assertRaises(FileNotFoundError):
            os.stat(self.at("a"))
        self.put("e.gguf", model())
        self.assertIn(b"e.gguf", self.read("models.tsv"))
        self.assertNotIn(b"a.gguf", self.read("models.tsv"))
        self.assertEqual(["b", "c", "e", "models.json", "models.tsv", "sub"], self.names())

    def test_changed(self):
        """Handles of the old model fail or read the old file; the directory shows the new one."""
        self.mount(self.models)
        with open(self.at("a", "tensors/t/raw"), "rb", buffering=0) as old:
            self.assertEqual(b"1234", old.read(4))
            folder = os.open(self.at("a"), os.O_RDONLY)
            self.addCleanup(os.close, folder)
            self.put("a.gguf", model(value=b"5678", tensor=b"new"))
            self.assertEqual(b"5678", self.read("a", "tensors/new/raw")[:4])
            self.assertEqual(["new"], self.names("a", "tensors"))
            self.assertEqual(b"1234", os.pread(old.fileno(), 4, 0))  # the old file, which is still open
            with self.assertRaises(OSError) as caught:
                os.stat("summary.txt", dir_fd=folder)
            self.assertEqual(errno.ESTALE, caught.exception.errno)

    def test_changed_in_place(self):
        self.mount(self.models)
        self.expect_log("a.gguf: its header or size has changed since it was mounted")
        with open(self.at("a", "tensors/t/raw"), "rb", buffering=0) as old:
            with open(os.path.join(self.models, "a.gguf"), "wb") as file:
                file.write(model("a longer name", value=b"5678"))
            with self.assertRaises(OSError) as caught:
                os.pread(old.fileno(), 4, 0)
            self.assertIn(caught.exception.errno, (errno.ESTALE, errno.EIO))
        self.assert_opens("a", b"5678")

    def test_deleted_while_read(self):
        self.mount(self.models)
        with open(self.at("a", "tensors/t/raw"), "rb", buffering=0) as old:
            os.remove(os.path.join(self.models, "a.gguf"))
            self.assertNotIn("a", self.names())
            self.assertEqual(b"1234" * N_VALUES, old.read())
        self.assert_opens("b")

    def test_repaired(self):
        """A damaged model opens once it is whole, also if it was only one of its shards."""
        self.put("half.gguf", model()[:-10])
        self.put("s-00001-of-00002.gguf", shard(0, 2))
        self.mount(self.models)
        self.assert_error("half", "[truncated-data]")
        self.assert_error("s", "00002-of-00002")
        self.put("half.gguf", model())
        self.put("s-00002-of-00002.gguf", shard(1, 2))
        self.assert_opens("half")
        self.assertEqual(b"0001", self.read("s/tensors/t1/raw")[:4])

    def test_another_shard_is_replaced_while_closed(self):
        for i in range(2):
            self.put(f"s-0000{i + 1}-of-00002.gguf", shard(i, 2))
        for i in range(20):
            self.put(f"m{i}.gguf", model())
        self.mount(self.models)
        self.assertEqual(b"0001", self.read("s/tensors/t1/raw")[:4])
        self.put("s-00002-of-00002.gguf", shard(1, 2).replace(b"0001", b"7777"))
        for i in range(20):  # more than stay open
            self.assert_opens(f"m{i}")
        self.assertEqual(b"7777", self.read("s/tensors/t1/raw")[:4])


class TestFaults(ManyTestCase):
    def setUp(self):
        super().setUp()
        self.put("good.gguf", model())

    def mount(self, *arguments):
        super().mount(*arguments)
        self.addCleanup(self.assert_opens, "good")

    def test_damaged(self):
        """error.txt has what --check prints."""
        damaged = self.put("bad.gguf", model()[:-10])
        self.put("empty.gguf", b"")
        self.put("text.gguf", b"no model at all\n" * 100)
        self.mount(self.models)
        self.assertEqual(self.run_ggufs("--check", damaged).out, self.read("bad", "error.txt").decode())
        self.assert_error("empty", "empty.gguf: is an empty file [empty-file]")
        self.assert_error("text", "text.gguf: ")

    def test_no_regular_files(self):
        os.mkfifo(os.path.join(self.models, "fifo.gguf"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.join(self.models, "socket.gguf"))
        os.symlink("/dev/zero", os.path.join(self.models, "device.gguf"))
        self.mount(self.models)
        self.assert_error("fifo", "is not a regular file")
        self.assert_error("socket", "socket.gguf: ")
        self.assert_error("device", "is a link out of the folder")

    def test_links(self):
        """Links inside the folder are followed to files, not to folders; none leads out."""
        outside = self.write("outside.gguf", model())
        self.put("blobs/x", model(value=b"5555"))
        for target, name in (("blobs/x", "in.gguf"), (outside, "out.gguf"), ("../outside.gguf", "up.gguf"),
                             ("loop.gguf", "loop.gguf"), ("nothing", "dangling.gguf"), (".", "cycle")):
            os.symlink(target, os.path.join(self.models, name))
        self.mount(self.models)
        self.assertEqual(["dangling", "good", "in", "loop", "models.json", "models.tsv", "out", "up"], self.names())
        self.assert_opens("in", b"5555")
        self.assert_error("out", "is a link out of the folder")
        self.assert_error("up", "is a link out of the folder")
        self.assert_error("loop", "loop.gguf")
        self.assert_error("dangling", "No such file")

    def test_a_folder_that_becomes_a_link(self):
        self.put("sub/a.gguf", model())
        self.mount(self.models)
        self.assert_opens("sub/a")
        shutil.rmtree(os.path.join(self.models, "sub"))
        os.symlink("/", os.path.join(self.models, "sub"))
        self.assertNotIn("sub", self.names())

    def test_control_characters(self):
        self.put("a\nb\x1b[31m.gguf", model())
        self.mount(self.models)
        name = "a\\x0ab\\x1b[31m"
        self.assertIn(name, self.names())
        self.assert_error(name, "control characters")
        self.assertEqual(3, len(self.read("models.tsv").splitlines()))

    def test_permissions(self):
        """Also for root, if it has not the right to read everything."""
        command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
        closed = self.put("closed.gguf", model())
        self.put("folder/x.gguf", model())
        os.chmod(closed, 0)
        os.chmod(os.path.join(self.models, "folder"), 0)
        self.addCleanup(os.chmod, os.path.join(self.models, "folder"), 0o755)
        subprocess.run([*command, mounting.BINARY, *mounting.MOUNT_OPTIONS, self.models, self.mountpoint],
                       check=True, timeout=mounting.DEADLINE)
        self.assert_error("closed", "Permission denied")
        self.assert_error("folder", "the folder cannot be listed: Permission denied")
        os.chmod(closed, 0o644)
        self.assert_opens("closed")


class TestUse(ManyTestCase):
    def test_fifty_at_once(self):
        for i in range(50):
            self.put(f"m{i:02}.gguf", model(value=b"%04d" % i))
        self.mount(self.models)
        barrier = threading.Barrier(50)

        def read(i):
            with open(self.at(f"m{i:02}", "tensors/t/raw"), "rb", buffering=0) as file:
                barrier.wait()
                return file.read()
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            found = list(pool.map(read, range(50)))
        self.assertEqual([b"%04d" % i * N_VALUES for i in range(50)], found)

    def test_idle_models_are_closed(self):
        """At most eight stay open, and one in use."""
        for i in range(20):
            self.put(f"m{i:02}.gguf", model(value=b"%04d" % i))
        self.mount(self.models)
        with open(self.at("m00", "tensors/t/raw"), "rb", buffering=0) as file:
            for i in range(1, 20):
                self.assert_opens(f"m{i:02}", b"%04d" % i)
            mounting.wait_until(lambda: self.status()["open_models"] <= 9, "models stay open")
            self.assertEqual(b"0000", file.read(4))

    def test_the_limit_of_open_models(self):
        """The 257th model in use is refused, the others go on."""
        for i in range(257):
            self.put(f"m{i:03}.gguf", model(value=b"%04d" % i))
        self.mount(self.models)
        files = []
        try:
            for i in range(256):
                files.append(os.open(self.at(f"m{i:03}", "tensors/t/raw"), os.O_RDONLY))
            with self.assertRaises(OSError) as caught:
                os.stat(self.at("m256", "summary.txt"))
            self.assertEqual(errno.EMFILE, caught.exception.errno)
            self.assertEqual([b"%04d" % i for i in range(256)], [os.pread(file, 4, 0) for file in files])
        finally:
            for file in files:
                os.close(file)
        mounting.wait_until(lambda: self.status()["open_models"] <= 8, "models stay open")
        self.assert_opens("m256", b"0256")

    def test_no_process_stays(self):
        """The process that opens files ends with the server."""
        self.put("a.gguf", model())
        self.put("b.gguf", model())
        self.mount(self.models)
        self.assert_opens("a")
        pids = mounting.processes_of(self.mountpoint)
        self.assertEqual(3, len(pids))
        self.kill_daemon(self.mountpoint)
        mounting.wait_until(lambda: not any(mounting.is_running(pid) for pid in pids), "a process stays")

    def end(self, process, mountpoint, errors):
        if self._testMethodName != "test_no_process_stays":
            return super().end(process, mountpoint, errors)
        mounting.unmount(mountpoint)
        return process.wait()
