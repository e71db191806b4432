#!/usr/bin/env python3
"""The notify protocol of service managers, sd_notify(3): a socket that plays the manager."""

import os
import re
import signal
import subprocess

import log_sockets
import mounting
from gguf_file import F32, GgufFile

setUpModule = mounting.require_fuse

EX_OK, EX_DATAERR = 0, 65


class TestNotify(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = GgufFile().tensor(b"t", [4], F32, b"0123456789abcdef").write(self.path("model.gguf"))
        self.manager = self.listen(self.path("notify"))

    def listen(self, path):
        receiver = log_sockets.Receiver(path)
        self.addCleanup(receiver.close)
        return receiver

    def start(self, *options, address=None, **more):
        process = subprocess.Popen([mounting.BINARY, *mounting.MOUNT_OPTIONS, *options, self.model,
                                    self.mountpoint], stdin=subprocess.DEVNULL, start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env={**os.environ, "NOTIFY_SOCKET": address or self.path("notify")},
                                   **more)
        self.addCleanup(process.communicate)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        return process

    def receive(self, process):
        """Return the next assignments. systemd accepts them from the main process alone."""
        data, sender = self.manager.receive()
        self.assertEqual(process.pid, sender)
        lines = data.decode().split("\n")
        assignments = dict(line.split("=", 1) for line in lines)
        self.assertEqual(len(lines), len(assignments), data)
        return assignments

    def assert_ready(self, process):
        self.assertEqual({"READY": "1"}, self.receive(process))
        # The file is there at this very moment.
        with open(os.path.join(self.mountpoint, "tensors/t/raw"), "rb") as file:
            self.assertEqual(b"0123456789abcdef", file.read())

    def assert_ends(self, process):
        process.terminate()
        self.assertEqual({"STOPPING": "1"}, self.receive(process))
        self.assertEqual((b"", None), process.communicate(timeout=mounting.DEADLINE))
        self.assertEqual(EX_OK, process.returncode)
        self.assertTrue(self.manager.is_empty())

    def test_life(self):
        process = self.start("-f")
        self.assert_ready(process)
        self.assert_ends(process)

    def test_abstract_socket(self):
        name = f"ggufs-test-{os.getpid()}"
        self.manager = self.listen("\0" + name)
        process = self.start("-f", address="@" + name)
        self.assert_ready(process)
        self.assert_ends(process)

    def test_unmounted_by_somebody_else(self):
        process = self.start("-f")
        self.assert_ready(process)
        mounting.unmount(self.mountpoint)
        self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))

    def test_bad_model(self):
        """No READY=1."""
        os.truncate(self.model, 20)
        process = self.start("-f")
        process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(EX_DATAERR, process.returncode)
        self.assertTrue(self.manager.is_empty())

    def test_other_addresses(self):
        """A warning; the mount works."""
        for address, words in (("vsock:2:1234", b"vsock:2:1234: NOTIFY_SOCKET must be an absolute path"),
                               (self.path("nowhere"), b"No such file or directory"),
                               ("/" + "x" * 200, b"File name too long")):
            with self.subTest(address=address):
                process = self.start("-f", address=address)
                mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint), "no mount")
                os.listdir(self.mountpoint)
                mounting.unmount(self.mountpoint)
                said, _ = process.communicate(timeout=mounting.DEADLINE)
                self.assertEqual(EX_OK, process.returncode)
                self.assertRegex(said, b"^ggufs: [^\n]*" + re.escape(words) + b"[^\n]*\n$")

    def test_background(self):
        """The main process of the service is another one."""
        process = self.start()
        self.assertEqual((b"", None), process.communicate(timeout=mounting.DEADLINE))
        self.assertEqual(EX_OK, process.returncode)
        self.assertTrue(self.manager.is_empty())

    def test_hangup(self):
        """In the foreground, SIGHUP ends the mount."""
        process = self.start("-f")
        self.assert_ready(process)
        process.send_signal(signal.SIGHUP)
        self.assertEqual({"STOPPING": "1"}, self.receive(process))
        self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
