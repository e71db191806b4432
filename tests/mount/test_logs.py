#!/usr/bin/env python3
"""The log of a mount: files, syslog and the journal, and what is written there."""

import contextlib
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import unittest

import log_sockets
import mounting
from gguf_file import F32, GgufFile
from mounting import wait_until

EX_OK, EX_USAGE, EX_UNAVAILABLE, EX_SOFTWARE, EX_CANTCREAT = 0, 64, 69, 70, 73

MOUNTED = "ab79ceffacb7420e8d15661b6586055c"
ENDED = "acf0c7646b37429a973008ce4f646bfe"
DIED = "97fc8e6dcba847f082a515dcc876eb9a"
READ_FAILED = "8e8b1557affd4a68987943cc8b6ae2b3"
READ_FAILURES = "00927413a5cd43a197462663939c0ef6"
REOPENED = "d6012463952f4e67b54661a4fd1182b0"
LOST = "396bc98baff143a4867f7d97048be8d7"

JOURNALD = "/lib/systemd/systemd-journald"

why_not_private = None


def setUpModule():
    global why_not_private
    mounting.require_fuse()
    why_not_private = log_sockets.enter_private_system()


class LogTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = self.make_model("model.gguf")
        self.log = self.path("log")

    def make_model(self, name):
        return GgufFile().tensor(b"t", [1 << 16], F32, bytes(1 << 18)).write(self.path(name))

    def read_log(self, path=None):
        with open(path or self.log, encoding="utf-8") as file:
            return file.read().splitlines()

    def wait_for_end(self, processes):
        for pid in processes:
            wait_until(lambda: not mounting.is_running(pid), f"process {pid} does not end")

    def end_mount(self):
        processes = self.processes_of(self.mountpoint)
        mounting.unmount(self.mountpoint)
        self.wait_for_end(processes)

    def fail_reads(self, n):
        """Cut the model and read lost bytes, n times. Needs -o direct_io, so that each read is a request."""
        os.truncate(self.model, 1 << 16)
        with open(os.path.join(self.mountpoint, "tensors/t/raw"), "rb", buffering=0) as file:
            for _ in range(n):
                with self.assertRaises(OSError):
                    os.pread(file.fileno(), 4096, 1 << 17)

    def reopen(self):
        keeper, _ = self.processes_of(self.mountpoint)
        os.kill(keeper, signal.SIGHUP)


class TestFile(LogTestCase):
    def assert_log(self, expected, path=None):
        """Compare the log with (level, text) for each line, MOUNTPOINT and MODEL standing for the paths."""
        lines = self.read_log(path)
        found = []
        for line in lines:
            match = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ggufs\[\d+\] (\w+): (.*)", line)
            self.assertTrue(match, line)
            found.append((match[1], match[2].replace(self.mountpoint, "MOUNTPOINT")
                          .replace(self.model, "MODEL")))
        self.assertEqual(expected, found)

    def test_start_and_end(self):
        self.mount_in_background("-o", f"log={self.log}", self.model, self.mountpoint)
        # The command returns after the record, which comes before those of what is served.
        self.assert_log([("notice", "MOUNTPOINT: mounted MODEL")])
        keeper, _ = self.processes_of(self.mountpoint)
        self.end_mount()
        self.assert_log([("notice", "MOUNTPOINT: mounted MODEL"), ("notice", "MOUNTPOINT: unmounted")])
        self.assertIn(f" ggufs[{keeper}] ", self.read_log()[0])
        self.assertEqual(0, os.stat(self.log).st_mode & 0o027)

    def test_end_by_signal(self):
        self.mount_in_background("-o", f"log={self.log}", self.model, self.mountpoint)
        processes = self.processes_of(self.mountpoint)
        os.kill(processes[0], signal.SIGTERM)
        self.wait_for_end(processes)
        self.assert_log([("notice", "MOUNTPOINT: mounted MODEL"),
                         ("notice", "MOUNTPOINT: ended by signal 15 (Terminated)")])

    def test_death_of_the_server(self):
        self.mount_in_background("-q", "-o", f"log={self.log}", self.model, self.mountpoint)
        processes = self.processes_of(self.mountpoint)
        os.kill(processes[1], signal.SIGKILL)
        self.wait_for_end(processes)
        self.assert_log([("error", "MOUNTPOINT: the server died of signal 9 (Killed)")])

    def test_failures_are_counted(self):
        cause = "it is shorter than when it was mounted; the missing bytes cannot be read"
        self.mount_in_background("-o", f"direct_io,log={self.log}", self.model, self.mountpoint)
        self.fail_reads(12)
        self.end_mount()
        self.assert_log([
            ("notice", "MOUNTPOINT: mounted MODEL"),
            ("error", f"MOUNTPOINT: MODEL: {cause} (noticed at tensors/t/raw)"),
            ("notice", f"MOUNTPOINT: MODEL: 10 requests have failed: {cause}"),
            ("notice", f"MOUNTPOINT: MODEL: 12 requests have failed: {cause}"),
            ("notice", "MOUNTPOINT: unmounted")])

    def test_quiet(self):
        self.mount_in_background("-q", "-o", f"direct_io,log={self.log}", self.model, self.mountpoint)
        self.fail_reads(12)
        self.end_mount()
        lines = self.read_log()
        self.assertEqual(1, len(lines), lines)
        self.assertIn("(noticed at tensors/t/raw)", lines[0])

    def test_verbose(self):
        self.mount_in_background("-v", "-o", f"log={self.log}", self.model, self.mountpoint)
        with open(os.path.join(self.mountpoint, "tensors/t/raw"), "rb") as file:
            file.read()
        self.end_mount()
        self.assert_log([("notice", "MOUNTPOINT: mounted MODEL"),
                         ("info", f"MOUNTPOINT: process {os.getpid()} opened tensors/t/raw"),
                         ("notice", "MOUNTPOINT: unmounted")])

    def test_too_fast(self):
        """The first 200 openings are logged; the others are counted."""
        self.mount_in_background("-v", "-o", f"log={self.log}", self.model, self.mountpoint)
        for _ in range(450):
            with open(os.path.join(self.mountpoint, "metadata.json"), "rb"):
                pass
        self.end_mount()
        lines = self.read_log()
        opened = [line for line in lines if "opened metadata.json" in line]
        lost = [int(match[1]) for line in lines
                if (match := re.search(r" warning: .*: (\d+) records of the log were lost$", line))]
        self.assertLessEqual(200, len(opened))
        self.assertTrue(lost)
        self.assertEqual(450, len(opened) + sum(lost))

    def test_relative_path(self):
        os.mkdir(self.path("folder"))
        self.mount_in_background("-o", "log=folder/log", self.model, self.mountpoint, cwd=self.folder)
        self.reopen()
        wait_until(lambda: len(self.read_log(self.path("folder/log"))) == 2, "not opened again")
        self.end_mount()
        self.assertEqual(3, len(self.read_log(self.path("folder/log"))))

    def test_mounts_share_a_file(self):
        other = self.new_mountpoint("other")
        for mountpoint in (self.mountpoint, other):
            self.mount_in_background("-o", f"log={self.log}", self.model, mountpoint)
        self.end_mount()
        self.mountpoint = other
        self.end_mount()
        lines = self.read_log()
        self.assertEqual(4, len(lines))
        self.assertEqual(2, sum(f": {other}: " in line for line in lines))

    def test_reopened(self):
        """The keeper and the server write to the new file after SIGHUP, as logrotate(8) sends it."""
        self.mount_in_background("-o", f"direct_io,log={self.log}", self.model, self.mountpoint)
        for number in (1, 2):
            wait_until(lambda: os.path.exists(self.log) and self.read_log(), "nothing is logged")
            os.rename(self.log, self.path(f"log.{number}"))
            self.reopen()
        wait_until(lambda: os.path.exists(self.log) and self.read_log(), "no new file")
        self.fail_reads(1)
        self.end_mount()
        self.assert_log([("notice", "MOUNTPOINT: mounted MODEL")], self.path("log.1"))
        self.assert_log([("notice", "MOUNTPOINT: opened the log again")], self.path("log.2"))
        lines = self.read_log()
        self.assertEqual(3, len(lines), lines)
        self.assertIn("opened the log again", lines[0])
        self.assertIn("it is shorter", lines[1])
        self.assertIn("unmounted", lines[2])

    def test_reopening_fails(self):
        """The old log stays in use."""
        os.mkdir(self.path("folder"))
        self.mount_in_background("-o", f"log={self.path('folder/log')}", self.model, self.mountpoint)
        os.rename(self.path("folder"), self.path("moved"))
        self.reopen()
        wait_until(lambda: len(self.read_log(self.path("moved/log"))) == 2, "no error")
        self.end_mount()
        lines = self.read_log(self.path("moved/log"))
        self.assertIn("the log cannot be opened again: No such file or directory", lines[1])
        self.assertIn("unmounted", lines[2])

    def test_hangups_of_every_process(self):
        """pkill -HUP reaches the server as well, which serves on."""
        self.mount_in_background("-o", f"log={self.log}", self.model, self.mountpoint)
        processes = self.processes_of(self.mountpoint)
        for _ in range(20):
            for pid in reversed(processes):
                os.kill(pid, signal.SIGHUP)
        os.listdir(self.mountpoint)
        self.assertTrue(all(map(mounting.is_running, processes)))
        self.end_mount()  # until then, the keeper may make the log anew

    def test_hangups_without_options(self):
        """In the background, nobody's terminal can end a mount."""
        self.mount_in_background(self.model, self.mountpoint)
        processes = self.processes_of(self.mountpoint)
        for pid in processes:
            os.kill(pid, signal.SIGHUP)
        os.listdir(self.mountpoint)
        self.assertTrue(all(map(mounting.is_running, processes)))

    def test_in_the_foreground(self):
        """Nothing goes to stderr; and without a terminal, SIGHUP opens the log again."""
        process = subprocess.Popen([mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS, "-o", f"log={self.log}",
                                    self.model, self.mountpoint], start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.communicate)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        wait_until(lambda: os.path.exists(self.log) and self.read_log(), "no mount")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(self.read_log()) == 2, "not opened again")
        process.terminate()
        self.assertEqual(b"", process.communicate(timeout=mounting.DEADLINE)[0])
        self.assertEqual(EX_OK, process.returncode)
        self.assertEqual(3, len(self.read_log()))

    def test_copied_and_truncated(self):
        """logrotate(8) with copytruncate: later records start at the beginning of the file."""
        self.mount_in_background("-o", f"direct_io,log={self.log}", self.model, self.mountpoint)
        os.truncate(self.log, 0)
        self.fail_reads(1)
        self.end_mount()
        lines = self.read_log()
        self.assertEqual(2, len(lines), lines)
        self.assertIn("it is shorter", lines[0])
        self.assertIn("unmounted", lines[1])

    def test_hostile_names(self):
        """A name cannot add a line, or commands for a terminal."""
        self.model = self.make_model("a\nb\x1b[31m\u202e\udcff.gguf")
        self.mount_in_background("-o", f"direct_io,log={self.log}", self.model, self.mountpoint)
        self.fail_reads(1)
        self.end_mount()
        lines = self.read_log()
        self.assertEqual(3, len(lines), lines)
        for line in lines[:2]:
            self.assertIn("/a\\x0ab\\x1b[31m\\xe2\\x80\\xae\\xff.gguf", line)

    def test_secrets(self):
        """Values of edits are not logged."""
        self.mount_in_background("-v", "-o", f"log={self.log}", "--set", "general.name=str:hunter2",
                                 self.model, self.mountpoint)
        self.end_mount()
        with open(self.log, encoding="utf-8") as file:
            self.assertNotIn("hunter2", file.read())

    def test_full_disk(self):
        self.mount_in_background("-o", "log=/dev/full", self.model, self.mountpoint)
        self.assertEqual(1 << 18, os.stat(os.path.join(self.mountpoint, "tensors/t/raw")).st_size)

    def test_limit_of_file_size(self):
        """At the limit, records are lost, and the mount stays."""
        limit = 1024
        self.mount_in_background("-v", "-o", f"log={self.log}", self.model, self.mountpoint,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        for _ in range(limit // 16):
            with open(os.path.join(self.mountpoint, "metadata.json"), "rb") as file:
                self.assertEqual(b"{\n}\n", file.read())
        self.assertEqual(limit, os.path.getsize(self.log))
        self.end_mount()
        self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_bad_targets(self):
        os.mkfifo(self.path("fifo"))
        missing = self.path("missing/log")
        for target, status, words in (
                (missing, EX_CANTCREAT, f"{missing}: option -o log: cannot log there: No such file"),
                (self.folder, EX_CANTCREAT, "Is a directory"),
                (self.path("fifo"), EX_CANTCREAT, "No such device or address; a pipe needs a reader"),
                ("joural", EX_USAGE, "needs stderr, syslog, journal, or the path of a file"),
                ("", EX_USAGE, "needs stderr"),
                ("stderr", EX_USAGE, "-o log=stderr needs -f")):
            with self.subTest(target=target):
                result = self.run_ggufs("-o", f"log={target}", self.model, self.mountpoint)
                self.assert_status(status, result)
                self.assertIn(words, result.err)
                self.assertEqual(1, len(result.err.splitlines()), result)
                self.assertIsNone(mounting.mount_entry(self.mountpoint))


class TestStderr(LogTestCase):
    def test_quiet_and_verbose(self):
        """Start and end appear only with -v."""
        self.expect_log(r"^ggufs: /.*/model.gguf: it is shorter .* \(noticed at tensors/t/raw\)$")
        self.mount(self.model, "-o", "direct_io")
        self.fail_reads(12)

    def test_verbose(self):
        self.expect_log(r"^ggufs: mounted /.*/model.gguf$", r"^ggufs: unmounted$")
        self.mount(self.model, "-v", "-o", "log=stderr")
        os.listdir(self.mountpoint)  # it is served

    def test_without_a_reader(self):
        """The record of the server's death has no reader; the mount is cleared away nevertheless."""
        reader, writer = os.pipe()
        process = subprocess.Popen([mounting.BINARY, "-f", "-v", *mounting.MOUNT_OPTIONS, self.model, self.mountpoint],
                                   stderr=writer)
        os.close(writer)
        self.addCleanup(process.wait)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        self.assertIn(b"mounted", os.read(reader, 4096))
        os.close(reader)
        _, server = self.processes_of(self.mountpoint)
        os.kill(server, signal.SIGKILL)
        self.assertEqual(EX_SOFTWARE, process.wait(mounting.DEADLINE))
        self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_with_a_reader_that_stalls(self):
        """A full pipe keeps nobody waiting. What it does not take is counted."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen([mounting.BINARY, "-f", "-v", *mounting.MOUNT_OPTIONS, self.model, self.mountpoint],
                                   stderr=writer)
        os.close(writer)
        self.addCleanup(process.wait)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        wait_until(lambda: mounting.mount_entry(self.mountpoint), "no mount")
        opener = subprocess.Popen(["sh", "-c", 'for i in $(seq 150); do : <"$1" || exit; done', "sh",
                                   os.path.join(self.mountpoint, "metadata.json")])
        self.addCleanup(opener.wait)
        self.addCleanup(opener.kill)
        self.addCleanup(mounting.kill_all, self.mountpoint)  # first, or the opener would wait for ever
        self.assertEqual(0, opener.wait(mounting.DEADLINE))
        process.terminate()
        self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
        with open(reader, "rb", closefd=False) as log:
            self.assertGreater(150, len(log.readlines()))


class SocketTestCase(LogTestCase):
    def setUp(self):
        super().setUp()
        if why_not_private:
            mounting.skip_loudly(why_not_private)

    def listen(self, path):
        receiver = log_sockets.Receiver(path)
        self.addCleanup(receiver.close)
        return receiver


class TestSyslog(SocketTestCase):
    def receive(self, receiver):
        """Return the priority, the process and the text of the next message."""
        data, sender = receiver.receive()
        match = re.fullmatch(rb"<(\d+)>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ggufs\[(\d+)\]: (.*)", data)
        self.assertTrue(match, data)
        self.assertEqual(sender, int(match[2]))
        return int(match[1]), sender, match[3].decode()

    def test_messages(self):
        """Without a journal, the background logs to syslog: facility daemon, by keeper and server."""
        receiver = self.listen(log_sockets.SYSLOG)
        self.mount_in_background("-o", "direct_io", self.model, self.mountpoint)
        keeper, server = self.processes_of(self.mountpoint)
        self.assertEqual((29, keeper, f"{self.mountpoint}: mounted {self.model}"), self.receive(receiver))
        self.fail_reads(1)
        priority, sender, text = self.receive(receiver)
        self.assertEqual((27, server), (priority, sender))
        self.assertTrue(text.startswith(f"{self.mountpoint}: {self.model}: it is shorter"), text)
        self.end_mount()
        self.assertEqual((29, keeper, f"{self.mountpoint}: unmounted"), self.receive(receiver))

    def test_restarted_daemon(self):
        """After SIGHUP, messages reach a daemon that has made its socket again."""
        receiver = self.listen(log_sockets.SYSLOG)
        self.mount_in_background("-o", "log=syslog,direct_io", self.model, self.mountpoint)
        self.receive(receiver)
        receiver.close()
        receiver = self.listen(log_sockets.SYSLOG)
        self.reopen()
        self.assertIn("opened the log again", self.receive(receiver)[2])
        self.fail_reads(1)
        self.assertIn("it is shorter", self.receive(receiver)[2])

    def test_none(self):
        result = self.run_ggufs("-o", "log=syslog", self.model, self.mountpoint)
        self.assert_status(EX_UNAVAILABLE, result)
        self.assertIn("/dev/log: option -o log: cannot log there: No such file or directory", result.err)
        self.mount_in_background(self.model, self.mountpoint)  # logs nothing
        os.listdir(self.mountpoint)


class TestJournal(SocketTestCase):
    def receive(self, receiver):
        data, sender = receiver.receive()
        return {**log_sockets.parse_journal(data), "sender": sender}

    def test_messages(self):
        syslog = self.listen(log_sockets.SYSLOG)
        receiver = self.listen(log_sockets.JOURNAL)
        self.mount_in_background("-o", "direct_io", self.model, self.mountpoint)
        keeper, server = self.processes_of(self.mountpoint)
        common = {"SYSLOG_FACILITY": b"3", "SYSLOG_IDENTIFIER": b"ggufs",
                  "GGUFS_MODEL": os.fsencode(self.model), "GGUFS_MOUNTPOINT": os.fsencode(self.mountpoint)}
        self.assertEqual({**common, "PRIORITY": b"5", "MESSAGE_ID": MOUNTED.encode(), "sender": keeper,
                          "MESSAGE": os.fsencode(f"{self.mountpoint}: mounted {self.model}")},
                         self.receive(receiver))
        self.fail_reads(11)
        found = self.receive(receiver)
        self.assertIn(b"it is shorter", found.pop("MESSAGE"))
        self.assertEqual({**common, "PRIORITY": b"3", "MESSAGE_ID": READ_FAILED.encode(), "ERRNO": b"5",
                          "GGUFS_FILE": b"tensors/t/raw", "sender": server}, found)
        found = self.receive(receiver)
        found.pop("MESSAGE")
        self.assertEqual({**common, "PRIORITY": b"5", "MESSAGE_ID": READ_FAILURES.encode(), "ERRNO": b"5",
                          "GGUFS_COUNT": b"10", "sender": server}, found)
        self.end_mount()
        self.assertEqual(b"11", self.receive(receiver)["GGUFS_COUNT"])
        self.assertEqual(ENDED.encode(), self.receive(receiver)["MESSAGE_ID"])
        self.assertTrue(receiver.is_empty())
        self.assertTrue(syslog.is_empty())

    def test_hostile_names(self):
        """A line break in a name does not end the field."""
        receiver = self.listen(log_sockets.JOURNAL)
        self.model = self.make_model("a\n_UID=0\nMESSAGE=b\x1b.gguf")
        self.mount_in_background(self.model, self.mountpoint)
        found = self.receive(receiver)
        self.assertEqual(os.fsencode(self.model), found["GGUFS_MODEL"])
        self.assertTrue(found["MESSAGE"].endswith(b"/a\\x0a_UID=0\\x0aMESSAGE=b\\x1b.gguf"), found)
        self.assertNotIn("_UID", found)

    def test_journal_stream(self):
        """In the foreground, systemd's $JOURNAL_STREAM says that stderr is the journal."""
        receiver = self.listen(log_sockets.JOURNAL)
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        status = os.fstat(theirs.fileno())
        for stream, leads_to_journal in ((f"{status.st_dev}:{status.st_ino}", True),
                                         (f"{status.st_dev}:{status.st_ino + 1}", False), ("x", False)):
            with self.subTest(stream=stream):
                process = subprocess.Popen([mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS, self.model,
                                            self.mountpoint], stdin=subprocess.DEVNULL, stderr=theirs,
                                           env={**os.environ, "JOURNAL_STREAM": stream})
                self.addCleanup(process.wait)
                self.addCleanup(mounting.kill_all, self.mountpoint)
                if leads_to_journal:
                    self.assertEqual(MOUNTED.encode(), self.receive(receiver)["MESSAGE_ID"])
                wait_until(lambda: mounting.mount_entry(self.mountpoint), "no mount")
                os.listdir(self.mountpoint)
                mounting.unmount(self.mountpoint)
                self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
                if leads_to_journal:
                    self.assertEqual(ENDED.encode(), self.receive(receiver)["MESSAGE_ID"])
                self.assertTrue(receiver.is_empty())
        theirs.close()

    def test_slow_journal(self):
        """A journal that reads nothing stops nobody. The lost records are counted."""
        receiver = self.listen(log_sockets.JOURNAL)
        filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(filler.close)
        filler.connect(log_sockets.JOURNAL)
        filler.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                filler.send(b"MESSAGE=filler\n")
        self.mount_in_background(self.model, self.mountpoint)
        os.listdir(self.mountpoint)
        while not receiver.is_empty():
            self.assertEqual(b"filler", self.receive(receiver)["MESSAGE"])
        self.reopen()
        found = self.receive(receiver)
        self.assertEqual((LOST.encode(), b"1", b"4"),
                         (found["MESSAGE_ID"], found["GGUFS_COUNT"], found["PRIORITY"]))
        self.assertEqual(REOPENED.encode(), self.receive(receiver)["MESSAGE_ID"])

    def test_none(self):
        result = self.run_ggufs("-o", "log=journal", self.model, self.mountpoint)
        self.assert_status(EX_UNAVAILABLE, result)
        self.assertIn("/run/systemd/journal/socket: option -o log: cannot log there", result.err)


class TestJournald(SocketTestCase):
    """The real journal of systemd, and what journalctl finds in it."""

    def setUp(self):
        super().setUp()
        if not os.access(JOURNALD, os.X_OK) or not shutil.which("journalctl"):
            mounting.skip_loudly("systemd-journald is missing (apt-get install systemd)")
        os.makedirs("/run/systemd/journald.conf.d", exist_ok=True)
        os.makedirs("/run/log/journal", exist_ok=True)
        with open("/run/systemd/journald.conf.d/test.conf", "w", encoding="ascii") as file:
            file.write("[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nForwardToSyslog=no\n")
        journald = subprocess.Popen([JOURNALD], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(self.remove_journal)
        self.addCleanup(journald.wait)
        self.addCleanup(journald.kill)
        wait_until(lambda: os.path.exists(log_sockets.JOURNAL) or journald.poll() is not None,
                   "no journal")
        if journald.poll() is not None:
            mounting.skip_loudly("systemd-journald does not start here")

    @staticmethod
    def remove_journal():
        shutil.rmtree("/run/log", ignore_errors=True)
        shutil.rmtree("/run/systemd", ignore_errors=True)

    @staticmethod
    def find(*matches):
        done = subprocess.run(["journalctl", "-D", "/run/log/journal", "-o", "json", "--no-pager", "-q",
                               *matches], capture_output=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_filters(self):
        other = self.new_mountpoint("other")
        self.mount_in_background("-o", "direct_io", self.model, self.mountpoint)
        self.mount_in_background(self.make_model("other.gguf"), other)
        _, server = self.processes_of(self.mountpoint)
        self.fail_reads(2)
        self.end_mount()
        ours = wait_until(lambda: len(records := self.find(f"GGUFS_MOUNTPOINT={self.mountpoint}")) == 4 and
                          records, "records are missing")
        self.assertEqual([MOUNTED, READ_FAILED, READ_FAILURES, ENDED],
                         [record["MESSAGE_ID"] for record in ours])
        failure, = self.find("ERRNO=5", f"GGUFS_MODEL={self.model}", f"MESSAGE_ID={READ_FAILED}")
        self.assertEqual(("3", "tensors/t/raw", "ggufs", str(server)),
                         (failure["PRIORITY"], failure["GGUFS_FILE"], failure["SYSLOG_IDENTIFIER"],
                          failure["_PID"]))
        wait_until(lambda: len(self.find("-t", "ggufs")) == 5, "records are missing, or too many")
        self.assertEqual(1, len(self.find(f"GGUFS_MOUNTPOINT={other}")))


if __name__ == "__main__":
    unittest.main()
