#!/usr/bin/env python3
"""Readers, daemons, mounts and terminals that end while files are open."""

import errno
import fcntl
import mmap
import os
import re
import signal
import subprocess
import tempfile
import termios

import mounting
from gguf_file import F32, GgufFile

READERS = os.path.join(mounting.ROOT, "build", "readers")
EX_OK = 0

setUpModule = mounting.require_fuse


class EndTestCase(mounting.MountTestCase):
    """`raw` is a file of the mount, larger than one read request."""

    def setUp(self):
        super().setUp()
        self.data = b"".join(b"%08d" % i for i in range(1 << 19))
        self.model = GgufFile().tensor(b"t", [1 << 20], F32, self.data).write(
            self.path("model.gguf"))
        self.raw = os.path.join(self.mountpoint, "tensors/t/raw")

    def popen(self, *arguments, **more):
        """Start a process that is killed at the end of the test."""
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start(self, *options, **more):
        """Start a daemon in the foreground; returns it and the file with its output."""
        log = tempfile.TemporaryFile()
        self.addCleanup(log.close)
        process = subprocess.Popen([mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS, *options,
                                    self.model, self.mountpoint], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, **more)
        self.addCleanup(process.wait)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint) or
                            process.poll() is not None, "no mount")
        return process, log

    def assert_serves(self):
        with open(self.raw, "rb") as file:
            self.assertEqual(self.data, file.read())

    def assert_gone(self, *processes):
        """Check that the processes have ended and left no zombie."""
        for pid in processes:
            mounting.wait_until(lambda: not mounting.is_running(pid), f"{pid} does not end")
        self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def unmount_with(self, *options):
        return subprocess.run(["fusermount3", *options, "--", self.mountpoint],
                              capture_output=True, text=True)

    def open_raw(self):
        """Open `raw` with O_DIRECT, so that every read reaches the daemon."""
        descriptor = os.open(self.raw, os.O_RDONLY | os.O_DIRECT)
        self.addCleanup(self.close, descriptor)
        self.assertEqual(self.data[:4096], os.pread(descriptor, 4096, 0))
        return descriptor

    @staticmethod
    def close(descriptor):
        try:
            os.close(descriptor)
        except OSError as error:  # the test has closed it
            assert error.errno == errno.EBADF


class TestKilledReaders(EndTestCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists(READERS):
            raise AssertionError(f"{READERS} is missing: run make build/readers")

    def test_killed(self):
        """Readers killed during reads and opens; the daemon closes their files."""
        _, log = self.start("-d")
        copy = self.path("copy")
        mounting.copy_tree(self.mountpoint, copy)

        def count(opcode):
            return os.pread(log.fileno(), 1 << 30, 0).count(b"opcode: " + opcode + b" (")

        def count_open_files():
            """An open that the killed reader interrupted failed, and has no release."""
            requests = os.pread(log.fileno(), 1 << 30, 0)
            opens = set(re.findall(rb"unique: (\d+), opcode: OPEN \(", requests))
            failed = set(re.findall(rb"unique: (\d+), error: ", requests))
            return len(opens - failed) - requests.count(b"opcode: RELEASE (")

        for round_number in range(10):
            n_before = count(b"READ")
            readers = [self.popen(READERS, "-s", f"{round_number}{i}", *["-m"] * (i % 2),
                                  self.mountpoint, copy, "4", "1000000000")
                       for i in range(4)]
            mounting.wait_until(lambda: count(b"READ") > n_before + 20, "nobody reads")
            for reader in readers:
                self.assertIsNone(reader.poll())
                reader.kill()
            for reader in readers:
                reader.wait(mounting.DEADLINE)
        self.assertGreater(count(b"OPEN"), 100)
        mounting.wait_until(lambda: count_open_files() == 0, "files stay open")
        self.assert_serves()
        done = subprocess.run([READERS, self.mountpoint, copy, "8", "20"], capture_output=True,
                              text=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        # Nothing keeps the mount busy.
        mounting.unmount(self.mountpoint)


class TestSignals(EndTestCase):
    def test_open_files(self):
        """Readers that have files open get an error, and the mount is gone."""
        for number in (signal.SIGTERM, signal.SIGINT):
            for in_background in (False, True):
                with self.subTest(signal=number, in_background=in_background):
                    self.check_signal(number, in_background)

    def check_signal(self, number, in_background):
        # The kernel never releases files that are open at the end; a sanitizer would report a leak.
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        environment = {**os.environ, "ASAN_OPTIONS": options}
        process = None
        if in_background:
            self.mount_in_background(self.model, self.mountpoint, env=environment)
        else:
            process, _ = self.start(env=environment)
        descriptor = self.open_raw()
        folder = os.open(self.mountpoint, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(self.close, folder)
        with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as mapped:
            self.assertEqual(self.data[:8], mapped[:8])
            processes = self.processes_of(self.mountpoint)
            os.kill(processes[0], number)
            if process:
                self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
            self.assert_gone(*processes)
            with self.assertRaises(OSError) as caught:
                os.pread(descriptor, 4096, 4096)
            self.assertIn(caught.exception.errno, (errno.ENOTCONN, errno.ECONNABORTED))
        os.close(descriptor)
        os.close(folder)


class TestBusy(EndTestCase):
    def test_unmount(self):
        """Refused with a message, and nothing is lost."""
        self.mount(self.model)
        descriptor = self.open_raw()
        for _ in range(2):
            result = self.unmount_with("-u")
            self.assertNotEqual(0, result.returncode)
            self.assertIn("busy", result.stderr)
            self.assertEqual("fuse.ggufs", mounting.mount_entry(self.mountpoint)[0])
            self.assertEqual(self.data[4096:8192], os.pread(descriptor, 4096, 4096))
            self.assert_serves()
        os.close(descriptor)
        mounting.unmount(self.mountpoint)

    def test_unmount_lazily(self):
        """The mount disappears at once; open files stay readable, and the daemon ends with the last
        of them."""
        for in_background in (False, True):
            with self.subTest(in_background=in_background):
                process = None
                if in_background:
                    self.mount_in_background(self.model, self.mountpoint)
                else:
                    process, log = self.start()
                descriptor = self.open_raw()
                keeper, server = self.processes_of(self.mountpoint)
                result = self.unmount_with("-u", "-z")
                self.assertEqual((0, ""), (result.returncode, result.stderr))
                self.assertIsNone(mounting.mount_entry(self.mountpoint))
                self.assertEqual([], os.listdir(self.mountpoint))
                self.assertEqual(self.data[4096:8192], os.pread(descriptor, 4096, 4096))
                self.assertEqual(self.data[-4096:], os.pread(descriptor, 1 << 20,
                                                             len(self.data) - 4096))
                self.assertTrue(mounting.is_running(server))
                os.close(descriptor)
                if process:
                    self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
                    self.assertEqual(b"", os.pread(log.fileno(), 1000, 0))
                self.assert_gone(keeper, server)
                self.assertIsNone(mounting.stat_of(server), "nobody has waited for the server")

    def test_lazily_and_again(self):
        """The mount point can be used again while files of the first mount are still read."""
        self.mount_in_background(self.model, self.mountpoint)
        descriptor = self.open_raw()
        processes = self.processes_of(self.mountpoint)
        self.assertEqual(0, self.unmount_with("-u", "-z").returncode)
        self.mount_in_background(self.model, self.mountpoint)
        self.assert_serves()
        os.close(descriptor)
        for pid in processes:
            mounting.wait_until(lambda: not mounting.is_running(pid), f"{pid} does not end")
        self.assert_serves()


class TestTerminal(EndTestCase):
    """A terminal that hangs up sends SIGHUP to its processes."""

    def start_in_terminal(self, *arguments):
        """Start a process on a terminal of its own; returns the process and the terminal's other end."""
        ours, theirs = self.open_terminal()
        self.addCleanup(self.close, ours)

        def take_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        try:
            process = subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=theirs,
                                       start_new_session=True, preexec_fn=take_terminal)
        finally:
            os.close(theirs)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint) or
                            process.poll() is not None, "no mount")
        return process, ours

    def test_foreground(self):
        process, terminal = self.start_in_terminal(mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS,
                                                   self.model, self.mountpoint)
        self.assert_serves()
        processes = self.processes_of(self.mountpoint)
        os.close(terminal)
        self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
        self.assert_gone(*processes)

    def test_foreground_in_use(self):
        process, terminal = self.start_in_terminal(mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS,
                                                   self.model, self.mountpoint)
        self.open_raw()
        processes = self.processes_of(self.mountpoint)
        os.close(terminal)
        process.wait(mounting.DEADLINE)
        self.assert_gone(*processes)

    def test_background(self):
        """The daemon outlives the shell that started it."""
        shell, terminal = self.start_in_terminal(
            "/bin/sh", "-c", '"$@" && echo mounted && exec cat', "sh", mounting.BINARY,
            *mounting.MOUNT_OPTIONS, self.model, self.mountpoint)
        self.assertEqual(b"mounted\r\n", os.read(terminal, 100))
        processes = self.processes_of(self.mountpoint)
        os.close(terminal)
        self.assertEqual(-signal.SIGHUP, shell.wait(mounting.DEADLINE))
        self.assert_serves()
        for pid in processes:
            self.assertTrue(mounting.is_running(pid))
        mounting.unmount(self.mountpoint)
        self.assert_gone(*processes)
