#!/usr/bin/env python3
"""Mount points that are accepted or refused, the messages, and the users who can see a mount."""

import os
import resource
import shutil
import subprocess
import unittest

import mounting
from gguf_file import F32, GgufFile

MARKS = ("smoke",)

EX_OK, EX_UNAVAILABLE, EX_OSERR, EX_CANTCREAT = 0, 69, 71, 73
SOMEBODY = 12345  # a user that is neither root nor the one who runs the tests


def require_root(test):
    if os.geteuid() != 0:
        test.skipTest("only root can do this")


class MountpointTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = GgufFile().tensor(b"t", [4], F32, bytes(16)).write(self.path("model.gguf"))

    def run_mount(self, mountpoint, *options, **more):
        return self.run_ggufs(*mounting.MOUNT_OPTIONS, *options, self.model, mountpoint, **more)

    def assert_refused(self, result, status, *words):
        self.assert_status(status, result)
        for word in words:
            self.assertIn(word, result.err)
        self.assertIsNone(mounting.mount_entry(self.mountpoint))


class TestLinks(MountpointTestCase):
    def link(self, name, target, owner=None):
        path = self.path(name)
        os.symlink(target, path)
        if owner is not None:
            os.lchown(path, owner, owner)
        return path

    def assert_mounts(self, path):
        result = self.run_mount(path)
        self.assertEqual((EX_OK, ""), (result.status, result.err))
        self.assertTrue(mounting.mount_entry(self.mountpoint))
        mounting.unmount(self.mountpoint)

    def test_own_links(self):
        inside = self.path("inside")
        os.mkdir(inside)
        self.assert_mounts(self.link("relative", "mnt"))
        self.assert_mounts(self.link("absolute", self.mountpoint))
        self.assert_mounts(self.link("to a link", "relative"))
        self.assert_mounts(self.path("relative") + "/")
        self.assert_mounts(self.link("inside/up", "../mnt"))
        os.chdir(inside)
        self.addCleanup(os.chdir, "/")
        self.assert_mounts("up")

    def test_circle(self):
        self.link("a", "b")
        self.assert_refused(self.run_mount(self.link("b", "a")), EX_CANTCREAT,
                            "Too many levels of symbolic links")

    def test_dangling(self):
        self.assert_refused(self.run_mount(self.link("dangling", "nowhere")), EX_CANTCREAT,
                            "is a symbolic link to nothing")


class TestRights(MountpointTestCase):
    @unittest.skipIf(mounting.is_sanitized(), "sanitizers open files of their own")
    def test_few_open_files(self):
        """The message names the limit."""
        result = self.run_mount(self.mountpoint,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5)))
        self.assert_refused(result, EX_OSERR, "cannot be opened: Too many open files", "(ulimit -n)")

    def run_without(self, *setpriv):
        if not shutil.which("setpriv"):
            self.skipTest("no setpriv here")
        done = subprocess.run(["setpriv", *setpriv, mounting.BINARY, *mounting.MOUNT_OPTIONS,
                               self.model, self.mountpoint], capture_output=True, text=True)
        return mounting.Result(done.returncode, done.stdout, done.stderr)

    def test_container_without_the_capability(self):
        require_root(self)
        result = self.run_without("--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
        self.assert_refused(result, EX_OSERR, "CAP_SYS_ADMIN was taken away",
                            "docker run --device /dev/fuse --cap-add SYS_ADMIN", "ggufs --list")

    def test_no_new_privs(self):
        """no_new_privs keeps the setuid fusermount3 from becoming root."""
        require_root(self)
        for path in (self.folder, self.model, self.mountpoint):
            os.chmod(path, 0o755)
            os.chown(path, SOMEBODY, SOMEBODY)
        if not os.stat("/dev/fuse").st_mode & 0o006:
            self.skipTest("other users may not open /dev/fuse here")
        result = self.run_without(f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups",
                                  "--no-new-privs")
        self.assert_refused(result, EX_OSERR, "no_new_privs is set")


class TestSudo(MountpointTestCase):
    def test_hint(self):
        """A warning says that only root can read a mount made with sudo."""
        require_root(self)
        environment = {**os.environ, "SUDO_USER": "somebody", "SUDO_UID": str(SOMEBODY)}
        for options, is_hinted in (((), True), (("-o", "allow_other"), False),
                                   (("-o", "umask=022,allow_root"), False)):
            with self.subTest(options=options):
                result = self.run_mount(self.mountpoint, *options, env=environment)
                self.assert_status(EX_OK, result)
                self.assertEqual(is_hinted, "-o allow_other" in result.err, result.err)
                self.assertEqual(int(is_hinted), len(result.err.splitlines()))
                mounting.unmount(self.mountpoint)

    def test_root_itself(self):
        require_root(self)
        result = self.run_mount(self.mountpoint, env={**os.environ, "SUDO_USER": "root"})
        self.assertEqual((EX_OK, ""), (result.status, result.err))
