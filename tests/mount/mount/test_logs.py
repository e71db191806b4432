#!/usr/bin/env python3
"""The log of a mount: stderr and syslog, and what is written there."""

import contextlib
import fcntl
import os
import re
import signal
import subprocess

import log_sockets
import mounting
from gguf_file import F32, GgufFile
from mounting import wait_until

EX_OK, EX_USAGE, EX_UNAVAILABLE, EX_SOFTWARE = 0, 64, 69, 70
LOG_ERR, LOG_NOTICE, LOG_DAEMON = 3, 5, 3 << 3
SHORTER = "it is shorter than when it was mounted; the missing bytes cannot be read"

why_not_private = None


def setUpModule():
    global why_not_private
    mounting.require_fuse()
    why_not_private = log_sockets.enter_private_system()


class LogTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = self.make_model("model.gguf")

    def make_model(self, name):
        return GgufFile().tensor(b"t", [1 << 16], F32, bytes(1 << 18)).write(self.path(name))

    def fail_reads(self, n):
        """Cut the model and read lost bytes, n times. Needs -o direct_io, so that each read is a request."""
        os.truncate(self.model, 1 << 16)
        with open(os.path.join(self.mountpoint, "tensors/t/raw"), "rb", buffering=0) as file:
            for _ in range(n):
                with self.assertRaises(OSError):
                    os.pread(file.fileno(), 4096, 1 << 17)


class TestStderr(LogTestCase):
    def start(self, stderr, *options):
        process = subprocess.Popen([mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS, *options, self.model,
                                    self.mountpoint], stderr=stderr)
        self.addCleanup(process.wait)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        wait_until(lambda: mounting.mount_entry(self.mountpoint), "no mount")
        os.listdir(self.mountpoint)  # it is served
        return process

    def test_first_failure(self):
        """Neither start nor end, and one line however many reads fail."""
        self.expect_log(r"^ggufs: /.*/model.gguf: it is shorter .* \(noticed at tensors/t/raw\)$")
        self.mount(self.model, "-o", "direct_io,log=stderr")
        self.fail_reads(12)

    def test_quiet(self):
        self.expect_log(r"^ggufs: /.*/model.gguf: it is shorter ")
        self.mount(self.model, "-q", "-o", "direct_io")
        self.fail_reads(2)

    def test_secrets(self):
        """Values of edits are not logged."""
        self.mount(self.model, "--set", "general.name=str:hunter2")
        os.listdir(self.mountpoint)

    def test_without_a_reader(self):
        """The record of the server's death has no reader; the mount is cleared away nevertheless."""
        reader, writer = os.pipe()
        process = self.start(writer)
        os.close(writer)
        os.close(reader)
        _, server = self.processes_of(self.mountpoint)
        os.kill(server, signal.SIGKILL)
        self.assertEqual(EX_SOFTWARE, process.wait(mounting.DEADLINE))
        self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_with_a_reader_that_stalls(self):
        """A full pipe keeps nobody waiting. What it does not take is lost."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = self.start(writer, "-o", "direct_io")
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        os.close(writer)
        self.fail_reads(1)
        process.terminate()
        self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
        self.assertEqual({ord("x")}, set(os.read(reader, 1 << 16)))


class TestTargets(LogTestCase):
    def test_bad_targets(self):
        for target, status, words in (("./log", EX_USAGE, "needs one of: stderr, syslog"),
                                      ("journal", EX_USAGE, "needs one of: stderr, syslog"),
                                      ("", EX_USAGE, "needs one of: stderr, syslog"),
                                      ("stderr", EX_USAGE, "-o log=stderr needs -f")):
            with self.subTest(target=target):
                result = self.run_ggufs("-o", f"log={target}", self.model, self.mountpoint)
                self.assert_status(status, result)
                self.assertIn(words, result.err)
                self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_hangups_in_the_background(self):
        """In the background, nobody's terminal can end a mount."""
        self.mount_in_background(self.model, self.mountpoint)
        processes = self.processes_of(self.mountpoint)
        for _ in range(20):
            for pid in reversed(processes):
                os.kill(pid, signal.SIGHUP)
        os.listdir(self.mountpoint)
        self.assertTrue(all(map(mounting.is_running, processes)))


class TestSyslog(LogTestCase):
    def setUp(self):
        super().setUp()
        if why_not_private:
            mounting.skip_loudly(why_not_private)

    def listen(self):
        receiver = log_sockets.Receiver(log_sockets.SYSLOG)
        self.addCleanup(receiver.close)
        return receiver

    def receive(self, receiver):
        """Return the priority, the process and the text of the next message."""
        data, sender = receiver.receive()
        match = re.fullmatch(rb"<(\d+)>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ggufs\[(\d+)\]: (.*)", data)
        self.assertTrue(match, data)
        self.assertEqual(sender, int(match[2]))
        self.assertEqual(LOG_DAEMON, int(match[1]) & ~7)
        return int(match[1]) & 7, sender, match[3].decode()

    def end_of(self, *options, end):
        """Mount, call end(keeper, server), and return (priority, text) of the last record."""
        receiver = self.listen()
        self.mount_in_background(*options, self.model, self.mountpoint)
        processes = self.processes_of(self.mountpoint)
        if "-q" not in options:
            self.assertEqual((LOG_NOTICE, processes[0], f"{self.mountpoint}: mounted {self.model}"),
                             self.receive(receiver))
        end(*processes)
        priority, sender, text = self.receive(receiver)
        self.assertEqual(processes[0], sender)
        for pid in processes:
            wait_until(lambda pid=pid: not mounting.is_running(pid), f"process {pid} does not end")
        self.assertTrue(receiver.is_empty())
        return priority, text.removeprefix(f"{self.mountpoint}: ")

    def test_unmounted(self):
        self.assertEqual((LOG_NOTICE, "unmounted"),
                         self.end_of(end=lambda *_: mounting.unmount(self.mountpoint)))

    def test_end_by_signal(self):
        self.assertEqual((LOG_NOTICE, "ended by signal 15 (Terminated)"),
                         self.end_of("-o", "log=syslog", end=lambda keeper, _: os.kill(keeper, signal.SIGTERM)))

    def test_timeout(self):
        self.assertEqual((LOG_NOTICE, "unmounted: not used for 1 seconds (-o timeout)"),
                         self.end_of("-o", "timeout=1", end=lambda *_: None))

    def test_death_of_the_server(self):
        self.assertEqual((LOG_ERR, "the server died of signal 9 (Killed)"),
                         self.end_of("-q", end=lambda _, server: os.kill(server, signal.SIGKILL)))

    def test_failures(self):
        """By the server, once for the file."""
        receiver = self.listen()
        self.mount_in_background("-q", "-o", "direct_io", self.model, self.mountpoint)
        _, server = self.processes_of(self.mountpoint)
        self.fail_reads(12)
        self.assertEqual((LOG_ERR, server, f"{self.mountpoint}: {self.model}: {SHORTER} (noticed at tensors/t/raw)"),
                         self.receive(receiver))
        mounting.unmount(self.mountpoint)
        wait_until(lambda: not mounting.is_running(server), "the server does not end")
        self.assertTrue(receiver.is_empty())

    def test_hostile_names(self):
        """A name cannot add a line, or commands for a terminal."""
        receiver = self.listen()
        self.model = self.make_model("a\nb\x1b[31m\u202e\udcff.gguf")
        self.mount_in_background(self.model, self.mountpoint)
        self.assertTrue(self.receive(receiver)[2].endswith("/a\\x0ab\\x1b[31m\\xe2\\x80\\xae\\xff.gguf"))

    def test_none(self):
        result = self.run_ggufs("-o", "log=syslog", self.model, self.mountpoint)
        self.assert_status(EX_UNAVAILABLE, result)
        self.assertIn("/dev/log: option -o log: cannot log there: No such file or directory", result.err)
        self.mount_in_background(self.model, self.mountpoint)  # logs nothing
        os.listdir(self.mountpoint)
