#!/usr/bin/env python3
"""The life of a mount: mount points that are made, -o timeout and subdir."""

import os
import shlex
import shutil
import signal
import subprocess
import time
import unittest

import mounting
from gguf_file import F32, GgufFile

MARKS = ("sanitize",)

setUpModule = mounting.require_fuse

# sysexits.h
EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_CANTCREAT = 0, 64, 65, 66, 73
NOBODY = 65534  # a user with a name, which fusermount3 needs


class LifeTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        built = GgufFile()
        for name in (b"blk.0.attn_q.weight", b"output.weight"):
            built.tensor(name, [4], F32, b"0123456789abcdef")
        self.model = built.write(self.path("model.gguf"))
        self.missing = self.path("made")
        self.addCleanup(mounting.unmount, self.missing)

    def assert_serves(self, mountpoint):
        with open(os.path.join(mountpoint, "tensors/output.weight/raw"), "rb") as file:
            self.assertEqual(b"0123456789abcdef", file.read())


class TestMadeMountpoint(LifeTestCase):
    def assert_left_behind(self, path):
        """Unmounting leaves an empty directory."""
        mounting.unmount(path)
        self.assertEqual([], os.listdir(path))

    def test_made_and_left_behind(self):
        for name in ("made", "./made", "made/", "mnt/../made//"):
            for _ in range(2):
                with self.subTest(name=name):
                    self.mount_in_background("model.gguf", name, cwd=self.folder)
                    self.assert_serves(self.missing)
                    self.assert_left_behind(self.missing)
            os.rmdir(self.missing)

    def test_in_the_foreground(self):
        process = subprocess.Popen([mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS, self.model,
                                    self.missing])
        mounting.wait_until(lambda: mounting.mount_entry(self.missing), "no mount")
        self.assert_serves(self.missing)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
        self.assertEqual([], os.listdir(self.missing))

    def test_killed_server(self):
        self.mount_in_background(self.model, self.missing)
        keeper, server = self.processes_of(self.missing)
        os.kill(server, signal.SIGKILL)
        mounting.wait_until(lambda: not mounting.is_running(keeper), "the keeper stays")
        self.assertIsNone(mounting.mount_entry(self.missing))

    def test_not_made_for_a_broken_model(self):
        broken = self.write("broken.gguf", b"GGUF\3\0\0\0")
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, broken, self.missing)
        self.assert_status(EX_DATAERR, result)
        self.assertFalse(os.path.lexists(self.missing))

    def test_no_parents_are_made(self):
        inside = os.path.join(self.missing, "inside")
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, self.model, inside)
        self.assert_status(EX_CANTCREAT, result)
        self.assertIn(f"mkdir -p {shlex.quote(inside)}", result.err)
        self.assertFalse(os.path.lexists(self.missing))

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_parent_that_refuses(self):
        parent = self.path("parent")
        os.mkdir(parent, 0o755)
        os.chmod(self.folder, 0o755)
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, self.model, os.path.join(parent, "made"),
                                user=NOBODY)
        self.assert_status(EX_CANTCREAT, result)
        self.assertIn("cannot be made here: Permission denied", result.err)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_in_the_directory_of_a_user(self):
        """The keeper of root has lost most rights, but not the right to unmount."""
        home = self.path("home")
        os.mkdir(home, 0o700)
        os.chown(home, NOBODY, NOBODY)
        made = os.path.join(home, "made")
        self.addCleanup(mounting.unmount, made)
        self.mount_in_background(self.model, made)
        self.assert_serves(made)
        keeper, _ = self.processes_of(made)
        os.kill(keeper, signal.SIGTERM)
        mounting.wait_until(lambda: not mounting.is_running(keeper), "the keeper stays")
        self.assertIsNone(mounting.mount_entry(made))


class TestTimeout(LifeTestCase):
    def is_mounted(self):
        return bool(mounting.mount_entry(self.mountpoint))

    def wait_for_end(self):
        mounting.wait_until(lambda: not self.is_mounted(), "an idle tree stays mounted")

    def open_idle(self, *options):
        """Mount with timeout=1 and open a file, which keeps the mount."""
        def try_once():
            self.mount_in_background("-o", "timeout=1", *options, self.model, self.mountpoint)
            try:
                return open(os.path.join(self.mountpoint, "tensors.json"), "rb")
            except FileNotFoundError:  # this process got no time for a second
                return None
        return mounting.wait_until(try_once, "no mount stays for a second")

    def test_idle(self):
        with self.open_idle():
            self.assert_serves(self.mountpoint)
            processes = self.processes_of(self.mountpoint)
        self.wait_for_end()
        for pid in processes:
            mounting.wait_until(lambda pid=pid: not mounting.is_running(pid), "it does not end")

    def wait_for_attempts(self):
        """Wait until the keeper has slept three times: it tries to unmount an idle tree each second."""
        keeper, _ = self.processes_of(self.mountpoint)

        def n_sleeps():
            with open(f"/proc/{keeper}/status", encoding="ascii") as file:
                return int(dict(line.split(":", 1) for line in file)["voluntary_ctxt_switches"])
        before = n_sleeps()
        mounting.wait_until(lambda: n_sleeps() >= before + 3, "the keeper does not wake up")

    def test_in_use(self):
        """An open file and a working directory keep the mount."""
        with self.open_idle():
            self.wait_for_attempts()
            self.assertTrue(self.is_mounted())
            sleeper = subprocess.Popen(["sleep", "60"], cwd=os.path.join(self.mountpoint, "tensors"))
        try:
            self.wait_for_attempts()
            self.assertTrue(self.is_mounted())
        finally:
            sleeper.kill()
            sleeper.wait()
        self.wait_for_end()

    def test_not_too_early(self):
        """After a use, the tree stays for the whole time, although the clock begins a new second."""
        with self.open_idle():
            time.sleep((0.9 - time.clock_gettime(time.CLOCK_BOOTTIME)) % 1)
            used = time.monotonic()
        self.wait_for_end()
        self.assertGreater(time.monotonic() - used, 1)

    @unittest.skipIf(os.geteuid() != 0 or not shutil.which("setpriv"), "needs root and setpriv")
    def test_of_a_user(self):
        """fusermount3 unmounts for users other than root."""
        mounting.require_namespace()
        shutil.copy(mounting.BINARY, self.path("ggufs"))
        script = f"""set -e
            mknod -m 666 fuse c 10 229; mount --bind fuse /dev/fuse
            chmod 755 .; chown {NOBODY} mnt
            setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \\
                ./ggufs {" ".join(mounting.MOUNT_OPTIONS)} -o timeout=3 model.gguf mnt
            findmnt -n -o FSTYPE mnt
            while findmnt -n mnt >/dev/null; do sleep 0.1; done"""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=self.folder, text=True,
                              capture_output=True, timeout=mounting.DEADLINE, check=False)
        self.assertEqual((0, "fuse.ggufs\n", ""), (done.returncode, done.stdout, done.stderr))


class TestSubdir(LifeTestCase):
    def test_root(self):
        self.mount_in_background("-o", "subdir=tensors", self.model, self.mountpoint)
        self.assertEqual(["blk.0.attn_q.weight", "output.weight"], sorted(os.listdir(self.mountpoint)))
        self.assertEqual(1, os.stat(self.mountpoint).st_ino)
        self.assertTrue(os.path.samefile(self.mountpoint, os.path.join(self.mountpoint, "output.weight/..")))
        with open(os.path.join(self.mountpoint, "output.weight/raw"), "rb") as file:
            self.assertEqual(b"0123456789abcdef", file.read())

    def test_links_that_lead_out(self):
        self.mount_in_background("-o", "subdir=/layers/", self.model, self.mountpoint)
        path = os.path.join(self.mountpoint, "0/attn_q.weight")
        self.assertFalse(os.path.islink(path))
        with os.scandir(os.path.dirname(path)) as entries:
            self.assertEqual([("attn_q.weight", True)],
                             [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries])
        with open(os.path.join(path, "raw"), "rb") as file:
            self.assertEqual(b"0123456789abcdef", file.read())

    def test_through_a_link(self):
        self.mount_in_background("-o", "subdir=layers/0/attn_q.weight", self.model, self.mountpoint)
        self.assertIn("raw", os.listdir(self.mountpoint))

    def test_no_such_directory(self):
        for path in ("nothing", "tensors.json", "tensors/nothing"):
            result = self.run_ggufs(*mounting.MOUNT_OPTIONS, "-o", f"subdir={path}", self.model,
                                    self.mountpoint)
            self.assert_status(EX_NOINPUT, result)
            self.assertIn(f"ggufs: {path}: option -o subdir: ", result.err)
            self.assertIsNone(mounting.mount_entry(self.mountpoint))
