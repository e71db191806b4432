#!/usr/bin/env python3
"""The units for systemd: checked by its tools, and run by a real systemd in a container."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import mounting
import systemd_system
from gguf_file import F32, GgufFile
from mounting import wait_until

UNITS = os.path.join(mounting.ROOT, "contrib", "systemd")
UNIT = os.path.join(UNITS, "ggufs@.service")
EXAMPLES = os.path.join(UNITS, "examples")

setUpModule = mounting.require_fuse


def install(root):
    """Install the program and the unit below a directory, as `make install PREFIX=/usr` does."""
    for folder in ("usr/bin", "usr/lib/systemd/system"):
        os.makedirs(os.path.join(root, folder))
    shutil.copy(mounting.BINARY, os.path.join(root, "usr/bin/ggufs"))
    shutil.copy(UNIT, os.path.join(root, "usr/lib/systemd/system"))


class TestTools(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        if not shutil.which("systemd-analyze"):
            mounting.skip_loudly("systemd-analyze is missing (apt-get install systemd)")

    def analyze(self, *arguments):
        return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"})

    def copy_unit(self, name):
        """Copy a unit, with the path of a program that exists."""
        source = UNIT if name.endswith("service") else os.path.join(EXAMPLES, name)
        with open(source, encoding="utf-8") as file:
            text = file.read()
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text.replace("/usr/bin/ggufs", mounting.BINARY))
        return self.path(name)

    def test_verify(self):
        """No unknown setting, no missing program."""
        for name in ("ggufs@llama.service", "srv-llama.mount", "srv-llama.automount"):
            with self.subTest(unit=name):
                self.copy_unit("srv-llama.mount")  # which the .automount needs
                done = self.analyze("verify", "--man=no", self.copy_unit(name))
                ours = [line for line in done.stderr.splitlines() if "ggufs" in line or "llama" in line]
                self.assertEqual((0, []), (done.returncode, ours), done)

    def test_security(self):
        """The rating: 0 is best, 10 worst. A mount that others see cannot have a file system of its own."""
        done = self.analyze("security", "--no-pager", "--offline=true", "--threshold=45",
                            self.copy_unit("ggufs@llama.service"))
        self.assertEqual(0, done.returncode, done)
        self.assertRegex(done.stdout, r"Overall exposure level for ggufs@llama.service: [0-4]\.\d")

    def test_examples_fit_the_unit(self):
        """The mount point in the name of a unit is that in its text, as systemd demands."""
        for name in ("srv-llama.mount", "srv-llama.automount"):
            with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
                where = re.search(r"^Where=(.*)$", file.read(), re.MULTILINE)[1]
            suffix = name.rpartition(".")[2]
            done = subprocess.run(["systemd-escape", "--path", f"--suffix={suffix}", where],
                                  capture_output=True, text=True, check=True)
            self.assertEqual(name, done.stdout.strip())


class TestInstall(mounting.MountTestCase):
    def make(self, *arguments):
        subprocess.run([*mounting.MAKE, *arguments], check=True, capture_output=True)

    def test_places(self):
        for name in ("ggufs", "ggufs-run"):
            if not os.path.exists(os.path.join(mounting.ROOT, "build", name)):
                mounting.skip_loudly(f"build/{name} is missing: run make")
        for prefix, program in (("/usr", "/usr/bin/ggufs"), ("/usr/local", "/usr/local/bin/ggufs")):
            with self.subTest(prefix=prefix):
                target = self.path("target")
                self.make("install", f"DESTDIR={target}", f"PREFIX={prefix}")
                with open(f"{target}{prefix}/lib/systemd/system/ggufs@.service", encoding="utf-8") as file:
                    self.assertIn(f"\nExecStart={program} -f ", file.read())
                self.assertEqual(sorted(os.listdir(EXAMPLES)),
                                 sorted(os.listdir(f"{target}{prefix}/share/doc/ggufs/systemd")))
                self.make("uninstall", f"DESTDIR={target}", f"PREFIX={prefix}")
                self.assertEqual([], [name for _, _, names in os.walk(target) for name in names])


@unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers need rights that the unit takes away")
class TestSystem(unittest.TestCase):
    """A real systemd starts, reloads, restarts and stops the units."""

    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.realpath(tempfile.mkdtemp(prefix="ggufs-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        installed = os.path.join(cls.folder, "installed")
        install(installed)
        cls.system = systemd_system.System(cls.folder, installed)
        cls.addClassCleanup(cls.system.stop)
        if cls.system.why_not:
            mounting.skip_loudly(cls.system.why_not)

    def setUp(self):
        self.addCleanup(self.clean)
        os.makedirs(self.system.path("/srv/models"), exist_ok=True)
        os.makedirs(self.system.path("/etc/ggufs"), exist_ok=True)
        self.model = self.system.path("/srv/models/llama.gguf")
        GgufFile().tensor(b"t", [1 << 16], F32, bytes(range(256)) * 1024).write(self.model)
        shutil.copy(os.path.join(EXAMPLES, "llama.conf"), self.system.path("/etc/ggufs"))

    def clean(self):
        self.systemctl("stop", "ggufs@llama.service", "srv-llama.automount", "srv-llama.mount", check=False)
        self.systemctl("reset-failed", check=False)

    def configure(self, text):
        with open(self.system.path("/etc/ggufs/llama.conf"), "w", encoding="utf-8") as file:
            file.write(text)

    def systemctl(self, *arguments, check=True):
        done = self.system.run("systemctl", *arguments)
        if check and done.returncode != 0:
            log = self.system.run("journalctl", "--no-pager", "-n", "30").stdout
            self.fail(f"{done}\n{log}")
        return done

    def show(self, name, unit="ggufs@llama.service"):
        return self.systemctl("show", "--value", "-p", name, unit).stdout.strip()

    def journal(self, *matches):
        done = self.system.run("journalctl", "-o", "json", "-q", "--no-pager", *matches)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_tree(self, mountpoint, user="nobody"):
        """Another user, too, reads the tree at once."""
        done = self.system.run("setpriv", f"--reuid={user}", "--clear-groups", "cat",
                               f"{mountpoint}/tensors/t/info")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual("t", json.loads(done.stdout)["name"])

    def assert_no_mount(self, mountpoint):
        self.assertNotIn(f" {mountpoint} ", self.system.run("cat", "/proc/self/mounts").stdout)

    def test_service(self):
        self.systemctl("start", "ggufs@llama")
        self.assert_tree("/run/ggufs/llama")
        self.systemctl("stop", "ggufs@llama")
        self.assertEqual(("inactive", "success"), (self.show("ActiveState"), self.show("Result")))
        self.assert_no_mount("/run/ggufs/llama")

    def test_options_and_errors(self):
        self.configure("MODEL=/srv/models/llama.gguf\nMOUNTPOINT=/media/a/b\nOPTIONS=-o allow_other,direct_io -q\n")
        self.systemctl("start", "ggufs@llama")
        self.assert_tree("/media/a/b")
        os.truncate(self.model, 4096)
        done = self.system.run("cat", "/media/a/b/tensors/t/raw")
        self.assertIn("Input/output error", done.stderr)
        wait_until(lambda: [record for record in self.journal("-u", "ggufs@llama")
                            if "llama.gguf: it is shorter than when it was mounted" in record["MESSAGE"]], "not logged")

    def test_wrong_model(self):
        """The start fails, with the reason in the journal, and is not tried again."""
        self.configure("MODEL=/srv/models/missing.gguf\n")
        self.assertNotEqual(0, self.systemctl("start", "ggufs@llama", check=False).returncode)
        self.assertEqual(("failed", "66", "0"), (self.show("ActiveState"), self.show("ExecMainStatus"),
                                                 self.show("NRestarts")))
        wait_until(lambda: [record for record in self.journal("-u", "ggufs@llama")
                            if record["MESSAGE"].startswith("ggufs: /srv/models/missing.gguf: ")], "no reason")

    def test_mount_point_of_others(self):
        """What was mounted there before stays, when the service cannot start and when it is stopped."""
        self.system.run("mkdir", "-p", "/media/taken")
        self.configure("MODEL=/srv/models/llama.gguf\nMOUNTPOINT=/media/taken\n")
        for command in (("mount", "-t", "tmpfs", "none"), ("ggufs", "-o", "allow_other", "/srv/models/llama.gguf")):
            with self.subTest(command=command):
                self.assertEqual(0, self.system.run(*command, "/media/taken").returncode)
                self.system.run("mkdir", "/media/taken/folder")
                self.assertNotEqual(0, self.systemctl("start", "ggufs@llama", check=False).returncode)
                self.systemctl("stop", "ggufs@llama")
                self.assertIn(" /media/taken ", self.system.run("cat", "/proc/self/mounts").stdout)
                self.assertEqual(0, self.system.run("umount", "/media/taken").returncode)
                self.systemctl("reset-failed", check=False)

    def test_crashes(self):
        """The service is started again when its server dies, and when all its processes are killed."""
        self.systemctl("start", "ggufs@llama")
        for n, whom in ((1, "server"), (2, "all")):
            with self.subTest(killed=whom):
                process = self.show("MainPID")
                if whom == "all":
                    self.systemctl("kill", "-s", "KILL", "ggufs@llama")
                else:
                    self.assertEqual(0, self.system.run("pkill", "-KILL", "-P", process).returncode)
                wait_until(lambda: (self.show("NRestarts"), self.show("ActiveState")) == (str(n), "active"),
                           "not started again")
                self.assertNotEqual(process, self.show("MainPID"))
                self.assert_tree("/run/ggufs/llama")

    def test_mount_unit(self):
        shutil.copy(os.path.join(EXAMPLES, "srv-llama.mount"), self.system.path("/run/systemd/system"))
        self.systemctl("daemon-reload")
        self.systemctl("start", "srv-llama.mount")
        self.assert_tree("/srv/llama")
        self.systemctl("stop", "srv-llama.mount")
        self.assert_no_mount("/srv/llama")

    def test_automount_unit(self):
        if not os.path.exists("/dev/autofs"):
            mounting.skip_loudly("the kernel has no autofs")
        for name in ("srv-llama.mount", "srv-llama.automount"):
            shutil.copy(os.path.join(EXAMPLES, name), self.system.path("/run/systemd/system"))
        self.systemctl("daemon-reload")
        self.systemctl("start", "srv-llama.automount")
        self.assertEqual("inactive", self.show("ActiveState", "srv-llama.mount"))
        self.assert_tree("/srv/llama")
        self.assertEqual("active", self.show("ActiveState", "srv-llama.mount"))
