#!/usr/bin/env python3
"""The model's disk fails: lost data gives EIO, all other data is right, and the daemon lives."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import mounting
from gguf_file import F32, Q8_0, STRING, GgufFile
from gguf_reader import Model

MARKS = ("sanitize",)

FAULTY = os.path.join(mounting.ROOT, "build", "faulty")
PAGE = os.sysconf("SC_PAGESIZE")
TENSOR_BYTES = 64 * PAGE

EX_OK, EX_IOERR, EX_SOFTWARE = 0, 74, 70


def setUpModule():
    mounting.require_fuse()
    if not os.path.exists(FAULTY):
        raise AssertionError(f"{FAULTY} is missing: run make build/faulty")


def faulty_model():
    """A long key and four tensors, each on pages of its own."""
    built = GgufFile(alignment=PAGE).key(b"short", STRING, b"s").key(b"long", STRING,
                                                                     b"x" * (16 * PAGE))
    for number in range(3):
        data = b"".join(b"%d%07d" % (number, i) for i in range(TENSOR_BYTES // 8))
        built.tensor(b"t%d" % number, [TENSOR_BYTES // 16, 4], F32, data)
    # Blocks of Q8_0 have 34 bytes, so some cross a page boundary.
    return built.tensor(b"q", [TENSOR_BYTES // 34 // 4 * 32, 4], Q8_0,
                        bytes(range(17)) * (TENSOR_BYTES // 34 // 4 * 4 * 2))


def read_direct(path, offset=0, length=None):
    """Read a file of the mount with O_DIRECT, so that every read reaches the daemon."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        end = os.fstat(descriptor).st_size if length is None else offset + length
        parts = []
        while offset < end:
            parts.append(os.pread(descriptor, end - offset, offset))
            if not parts[-1]:
                break
            offset += len(parts[-1])
        return b"".join(parts)
    finally:
        os.close(descriptor)


def forget(path):
    """Drop a file's pages from the kernel's cache, so that the next read reaches the daemon."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


# The log's one line, however many reads fail.
UNREADABLE = r"\Aggufs: /.*/source/model: its disk or file system reports an error \(noticed at "


class FaultTestCase(mounting.MountTestCase):
    """`source` is where the model's file system is mounted."""

    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)

    def mount_model(self, path, *options):
        self.mount(path, *options)
        self.whole = {name: read_direct(self.at(name)) for name in self.names()}
        for tensor in Model(path).tensors:
            self.assertEqual(Model(path).raw(tensor),
                             self.whole[f"tensors/{tensor.name.decode()}/raw"])

    def names(self):
        return [os.path.relpath(os.path.join(folder, name), self.mountpoint)
                for folder, _, names in os.walk(self.mountpoint) for name in names]

    def at(self, name):
        return os.path.join(self.mountpoint, name)

    def assert_right(self, *names):
        for name in names or self.whole:
            self.assertEqual(self.whole[name], read_direct(self.at(name)), name)

    def assert_lost(self, *names):
        for name in names:
            with self.assertRaises(OSError, msg=name) as caught:
                read_direct(self.at(name))
            self.assertEqual("EIO", errno.errorcode[caught.exception.errno], name)

    @staticmethod
    def waits_in_fuse(pid):
        """Return True if a process waits for the answer to a read, or for a page."""
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
            waits_in = file.read()
        return "request_wait" in waits_in or "fuse_direct" in waits_in or "folio" in waits_in

    UNMOUNT, LAZILY = ["fusermount3", "-u"], ["-z"]

    def unmount_source(self, *options):
        return subprocess.run([*self.UNMOUNT, *options, self.source], capture_output=True,
                              text=True)

    def check_unmounted(self):
        """A plain unmount fails, because the model is open. A lazy one hides it, and it stays
        readable."""
        result = self.unmount_source()
        self.assertNotEqual(0, result.returncode)
        self.assertIn("busy", result.stderr)
        self.assert_right()
        self.assertEqual(0, self.unmount_source(*self.LAZILY).returncode)
        self.assertIsNone(mounting.mount_entry(self.source))
        self.assertEqual([], os.listdir(self.source))
        self.assert_right()


class FaultySourceTestCase(FaultTestCase):
    """The model lies on a file system that fails reads on command (faulty.c)."""

    def setUp(self):
        super().setUp()
        backing = faulty_model().write(self.path("backing.gguf"))
        self.addCleanup(mounting.unmount, self.source)
        self.faulty = subprocess.Popen([FAULTY, backing, self.source], stdin=subprocess.DEVNULL)
        self.addCleanup(self.faulty.wait)
        self.addCleanup(self.faulty.kill)
        mounting.wait_until(lambda: mounting.mount_entry(self.source) or
                            self.faulty.poll() is not None, "no faulty file system")
        self.model = os.path.join(self.source, "model")
        self.tensors = {tensor.name: tensor for tensor in Model(backing).tensors}

    def fail_reads(self, first, end):
        with open(os.path.join(self.source, "control"), "wb", buffering=0) as control:
            control.write(b"%d %d" % (first, end))

    def heal(self):
        self.fail_reads(0, 0)


class TestFaulty(FaultySourceTestCase):
    def fail_tensor(self, name, offset, length):
        first = self.tensors[name].offset + offset
        self.fail_reads(first, first + length)

    def test_a_page_of_a_tensor(self):
        self.expect_log(UNREADABLE)
        self.mount_model(self.model)
        self.fail_tensor(b"t1", 8 * PAGE, PAGE)
        lost = {name for name in self.whole
                if name.startswith(("tensors/t1/", "model."))
                # Figures that were computed before are kept.
                and not name.endswith(("/info", "/stats.json"))}
        for _ in range(3):  # one fault must not harm the next
            self.assert_lost(*lost)
            self.assert_right(*set(self.whole) - lost)
            for name in ("tensors/t1/raw", "tensors/t1/f32"):
                for first, end in ((0, 8 * PAGE), (9 * PAGE, TENSOR_BYTES)):
                    self.assertEqual(self.whole[name][first:end],
                                     read_direct(self.at(name), first, end - first), name)
        self.heal()
        self.assert_right()

    def test_blocks_on_two_pages(self):
        self.expect_log(UNREADABLE)
        self.mount_model(self.model)
        self.fail_tensor(b"q", 8 * PAGE, PAGE)
        self.assert_lost("tensors/q/raw", "tensors/q/f32")
        self.assert_right("tensors/t0/raw", "tensors/t2/f32")
        name = "tensors/q/f32"
        for page in (8, 9):  # a block across the edge of the lost page is lost as a whole
            block = page * PAGE // 34
            for number, is_lost in ((block - 1, page == 9), (block, True), (block + 1, page == 8)):
                for first in (number * 128, number * 128 + 124):
                    if is_lost:
                        with self.assertRaises(OSError):
                            read_direct(self.at(name), first, 4)
                    else:
                        self.assertEqual(self.whole[name][first:first + 4],
                                         read_direct(self.at(name), first, 4))
        self.heal()
        self.assert_right()

    def test_metadata(self):
        """Metadata was copied when the file was opened; only model.gguf reads the page again."""
        self.expect_log(UNREADABLE)
        self.mount_model(self.model)
        self.fail_reads(4 * PAGE, 5 * PAGE)
        self.assert_lost("model.gguf")
        self.assert_right(*set(self.whole) - {"model.gguf"})
        self.heal()
        self.assert_right()

    def test_everything(self):
        self.expect_log(UNREADABLE)
        self.mount_model(self.model)
        self.fail_reads(0, 1 << 40)
        self.assert_lost(*[name for name in self.whole if name.endswith(("/raw", "/f32"))])
        self.assert_right(*[name for name in self.whole
                            if name.startswith("metadata") or name.endswith("/info")])
        self.assertEqual(sorted(self.whole), sorted(self.names()))
        self.heal()
        self.assert_right()

    def test_cached_and_mapped_readers(self):
        self.expect_log(UNREADABLE)
        self.mount_model(self.model)
        path = self.at("tensors/t1/raw")
        touch = "import mmap, sys; f = open(sys.argv[1], 'rb'); " \
            "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); len(m[:])"
        self.fail_tensor(b"t1", 0, TENSOR_BYTES)
        forget(path)
        done = subprocess.run(["cat", path], capture_output=True, text=True)
        self.assertNotEqual(0, done.returncode)
        self.assertIn(os.strerror(errno.EIO), done.stderr)
        done = subprocess.run([sys.executable, "-c", touch, path])
        self.assertEqual(-signal.SIGBUS, done.returncode)
        self.assert_right("tensors/t0/raw")
        self.heal()
        done = subprocess.run(["cat", path], capture_output=True)
        self.assertEqual(self.whole["tensors/t1/raw"], done.stdout)
        self.assertEqual(0, subprocess.run([sys.executable, "-c", touch, path]).returncode)

    def test_threads(self):
        """Each thread of the daemon catches the page faults of its own reads."""
        self.expect_log(UNREADABLE)
        self.mount_model(self.model)
        self.fail_tensor(b"t1", 0, TENSOR_BYTES)

        def read(number):
            for _ in range(10):
                name = f"tensors/t{number % 3}/{('raw', 'f32')[number % 2]}"
                if number % 3 == 1:
                    self.assert_lost(name)
                else:
                    self.assert_right(name)
            return True
        with ThreadPoolExecutor(8) as threads:
            self.assertEqual([True] * 24, list(threads.map(read, range(24))))
        self.heal()
        self.assert_right()

    def test_at_the_start(self):
        self.fail_reads(0, PAGE)
        for arguments in (("--check", self.model), (self.model, self.mountpoint)):
            result = self.run_ggufs(*mounting.MOUNT_OPTIONS, *arguments)
            self.assert_status(EX_IOERR, result)
            self.assertIn(self.model, result.out + result.err)
            self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_check_data(self):
        self.fail_tensor(b"q", PAGE, PAGE)
        result = self.run_ggufs("--check", "--data", self.model)
        self.assert_status(EX_IOERR, result)
        self.assertIn('"q"', result.out)
        self.heal()
        self.assert_status(EX_OK, self.run_ggufs("--check", "--data", self.model))

    def test_unmounted(self):
        self.mount_model(self.model)
        self.check_unmounted()
        mounting.unmount(self.mountpoint)
        # The unmounted source ends when its last open file is closed.
        self.assertEqual(0, self.faulty.wait(mounting.DEADLINE))

    def test_killed(self):
        self.expect_log(UNREADABLE)
        self.mount_model(self.model)
        self.faulty.kill()
        self.faulty.wait()
        for _ in range(2):
            self.assert_lost(*[name for name in self.whole if name.endswith(("/raw", "/f32"))])
            self.assertEqual(sorted(self.whole), sorted(self.names()))
        # The clean-up checks that the daemon exits with 0.

    def test_killed_and_unmounted(self):
        self.expect_log(UNREADABLE)
        self.mount_model(self.model)
        self.faulty.kill()
        self.faulty.wait()
        self.assertEqual(0, self.unmount_source(*self.LAZILY).returncode)
        self.assert_lost("tensors/t0/raw", "tensors/q/f32")

    def test_hanging(self):
        """If the source no longer answers, readers block, but the daemon can still be ended."""
        daemon = subprocess.Popen([mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS, self.model,
                                   self.mountpoint], stderr=subprocess.PIPE)
        self.addCleanup(daemon.communicate)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint) or
                            daemon.poll() is not None, "no mount")
        path = self.at("tensors/t0/raw")
        self.assertEqual(TENSOR_BYTES, os.stat(path).st_size)
        _, server = self.processes_of(self.mountpoint)
        self.heal()  # nothing of it is cached now
        self.faulty.send_signal(signal.SIGSTOP)
        # Even a killed server would wait for a request that the source has already taken.
        mounting.wait_until(lambda: self.is_stopped(self.faulty.pid), "the source goes on")
        reader = subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(self.faulty.send_signal, signal.SIGCONT)
        mounting.wait_until(lambda: self.waits_for_the_model(server), "the daemon reads nothing")
        daemon.terminate()
        self.assertEqual(EX_SOFTWARE, daemon.wait(mounting.DEADLINE))
        self.assertIn(b"signal 9", daemon.stderr.read())
        self.assertNotEqual(0, reader.wait(mounting.DEADLINE))
        self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def is_stopped(self, pid):
        states = set()
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", "rb") as file:
                states.add(file.read().rpartition(b")")[2].split()[0])
        return states == {b"T"}

    def waits_for_the_model(self, pid):
        """Return True if a thread of the process is in a system call on the model's descriptor."""
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/syscall", "rb") as file:
                fields = file.read().split()
            path = f"/proc/{pid}/fd/{int(fields[1], 16)}" if len(fields) > 3 else ""
            if os.path.islink(path) and os.readlink(path).startswith(self.source):
                return True
        return False


class TestTruncated(mounting.MountTestCase):
    """The model becomes shorter while it is mounted."""

    def check(self, original, *options):
        """Truncate a copy of a model and read every file: it gives EIO, or what it held before."""
        folder = tempfile.mkdtemp(dir=self.folder)
        path = shutil.copyfile(original, os.path.join(folder, os.path.basename(original)))
        whole = os.path.join(folder, "whole")
        mountpoint = self.new_mountpoint(os.path.join(folder, "mnt"))
        self.assert_status(EX_OK, self.run_ggufs("--extract", *options, whole, original, "*"))
        self.mount(path, *options, mountpoint=mountpoint)
        os.truncate(path, os.path.getsize(path) * 3 // 10)
        self.expect_log(r"\Aggufs: /.*: it is shorter than when it was mounted; the missing bytes ")
        names = [os.path.relpath(os.path.join(parent, name), mountpoint)
                 for parent, _, names in os.walk(mountpoint) for name in names]
        n_lost = 0
        for name in names:
            try:
                data = read_direct(os.path.join(mountpoint, name))
            except OSError as error:
                self.assertEqual("EIO", errno.errorcode[error.errno], name)
                n_lost += 1
            else:
                self.assertEqual(mounting.read_file(whole, name), data, name)
        self.assertTrue(20 < n_lost < len(names) - 20, (n_lost, len(names)))
        # The clean-up checks that the server has lived until then.

    def test_every_file(self):
        for export in ("stored", "f32", "bf16", "q8_0"):
            with self.subTest(export=export):
                self.check(mounting.sample(), "-o", f"export={export}")

    def test_every_file_of_a_checkpoint(self):
        for export in ("stored", "q4_0"):
            with self.subTest(export=export):
                self.check(mounting.fixture("archs/llama.gguf"), "-o", f"export={export}")

    def test_a_caller_that_blocks_the_signal(self):
        """Faults raise SIGBUS; a process that has it blocked would be killed."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGBUS])
        self.addCleanup(signal.pthread_sigmask, signal.SIG_UNBLOCK, [signal.SIGBUS])
        self.check(mounting.sample())


class TestTmpfs(FaultTestCase):
    """The model lies on a tmpfs of limited size."""

    UNMOUNT, LAZILY = ["umount"], ["-l"]

    def setUp(self):
        super().setUp()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", self.source],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"no tmpfs can be mounted: {done.stderr.strip()}")
        self.addCleanup(self.unmount_source, *self.LAZILY)

    def fill(self):
        with open(os.path.join(self.source, "filling"), "wb", buffering=0) as file:
            with self.assertRaises(OSError) as caught:
                while True:
                    file.write(bytes(PAGE))
            self.assertEqual(errno.ENOSPC, caught.exception.errno)

    def write_model(self, sparse):
        """Returns the path; if sparse, all of t0 is a hole."""
        data = faulty_model().to_bytes()
        path = os.path.join(self.source, "model.gguf")
        with open(path, "wb") as file:
            file.write(data)
            if sparse:
                first = Model(path).tensors[0].offset
                file.truncate(first)
                file.seek(first + TENSOR_BYTES)
                file.write(data[first + TENSOR_BYTES:])
        return path

    def test_full(self):
        path = self.write_model(sparse=False)
        self.mount_model(path)
        self.fill()
        self.assert_right()
        mounting.unmount(self.mountpoint)
        self.mount(path)
        self.assert_right()

    def test_holes_that_cannot_be_filled(self):
        """Mapping a page of a hole would take memory; reading it takes none."""
        path = self.write_model(sparse=True)
        self.fill()
        self.mount(path)
        data = faulty_model().to_bytes()
        first = Model(path).tensors[1].offset
        self.assertEqual(data[first:first + TENSOR_BYTES], read_direct(self.at("tensors/t1/raw")))
        for name in ("raw", "f32"):
            self.assertEqual(bytes(TENSOR_BYTES), read_direct(self.at(f"tensors/t0/{name}")))

    def test_unmounted(self):
        self.mount_model(self.write_model(sparse=False))
        self.check_unmounted()
