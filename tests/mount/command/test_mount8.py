#!/usr/bin/env python3
"""mount(8), fstab(5) and automounters: mount -t fuse.ggufs, the options they pass, autofs triggers."""

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import threading
import unittest

import mounting
from gguf_file import F32, GgufFile

setUpModule = mounting.require_fuse

# sysexits.h
EX_OK = 0
NOBODY = 65534


class Mount8TestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        built = GgufFile().tensor(b"t", [4], F32, b"0123456789abcdef")
        self.model = built.write(self.path("model.gguf"))
        self.o = ",".join(["ro", *mounting.MOUNT_OPTIONS[1:]])

    def assert_serves(self, mountpoint=None):
        with open(os.path.join(mountpoint or self.mountpoint, "tensors/t/raw"), "rb") as file:
            self.assertEqual(b"0123456789abcdef", file.read())


class TestOptions(Mount8TestCase):
    """What mount(8) passes to a helper is accepted after -o by ggufs as well."""

    def test_accepted(self):
        for options in ("defaults", "nofail,_netdev,noauto,user", "users,group,owner",
                        "auto,nouser,nousers,nogroup,noowner", "x-systemd.automount,X-mount.mkdir",
                        "x-systemd.idle-timeout=60,comment=a text", "relatime,nosuid,nodev,noexec",
                        "noatime,nodiratime,strictatime,lazytime", "ro,suid,dev,exec,async",
                        "sloppy,frobnicate"):
            with self.subTest(options=options):
                self.mount_in_background("-o", options, self.model, self.mountpoint)
                self.assert_serves()
                mounting.unmount(self.mountpoint)

    def test_rw(self):
        """mount(8) always passes rw or ro. ggufs says that nothing can be written."""
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, "-o", "rw", self.model, self.mountpoint)
        self.assert_status(EX_OK, result)
        self.assertEqual("ggufs: warning: option -o rw: the tree cannot be written to; mounted read-only\n",
                         result.err)
        self.assertIn(b"ro", mounting.mount_entry(self.mountpoint)[2].split(b","))

    def test_remount(self):
        result = self.run_ggufs(self.model, self.mountpoint, "-o", "remount,ro")
        self.assertNotEqual(EX_OK, result.status)
        for words in ("cannot change an existing mount", "fusermount3 -u MOUNTPOINT",
                      "mount -i -o remount,noexec MOUNTPOINT"):
            self.assertIn(words, result.err)

    @unittest.skipIf(os.geteuid() != 0, "only root can remount")
    def test_the_remedy_for_remount(self):
        self.mount_in_background(self.model, self.mountpoint)
        self.assertNotIn(b"noexec", mounting.mount_entry(self.mountpoint)[2])
        subprocess.run(["mount", "-i", "-o", "remount,noexec", self.mountpoint], check=True)
        self.assertIn(b"noexec", mounting.mount_entry(self.mountpoint)[2])
        self.assert_serves()


# Makes a copy of /sbin that has ggufs, an fstab, and a /dev/fuse that all may open.
NAMESPACE = """set -e
mkdir sbin sbin.before
mount --bind /sbin sbin.before
mount -t tmpfs none sbin
for file in sbin.before/*; do ln -s "$PWD/$file" sbin/; done
ln -s "$PWD/ggufs" sbin/ggufs
mount --bind sbin /sbin
test ! -e /etc/fstab || mount --bind fstab /etc/fstab
mknod -m 666 fuse c 10 229
mount --bind fuse /dev/fuse
"""


@unittest.skipIf(os.geteuid() != 0, "needs root, for a namespace with a /sbin of its own")
class TestMount(Mount8TestCase):
    """mount(8) itself, in a mount namespace in which ggufs is installed: it runs mount.fuse3(8)."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        if not os.path.exists("/sbin/mount.fuse"):
            self.skipTest("no mount.fuse here")
        shutil.copy(mounting.BINARY, self.path("ggufs"))  # users may not be able to read the build
        model, mountpoint = (path.replace(" ", "\\040") for path in (self.model, self.mountpoint))
        self.write("fstab", f"{model} {mountpoint} fuse.ggufs noauto,user,nofail,_netdev,"
                            f"x-systemd.automount,{self.o} 0 0\n".encode())

    def run_script(self, script):
        mounting.require_namespace()
        done = subprocess.run(["unshare", "-m", "sh", "-c", NAMESPACE + script], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=mounting.DEADLINE, check=False)
        return mounting.Result(done.returncode, done.stdout, done.stderr)

    def assert_script(self, out, script):
        result = self.run_script(script)
        self.assertEqual((EX_OK, out, ""), (result.status, result.out, result.err))

    def test_type(self):
        self.assert_script("0123456789abcdef", f"""
            mount -t fuse.ggufs -o {self.o} model.gguf mnt
            test "$(findmnt -n -o FSTYPE,SOURCE mnt)" = "fuse.ggufs {self.model}"
            cat mnt/tensors/t/raw
            umount mnt
            test -z "$(ls mnt)"
            """)

    def test_fstab(self):
        self.assert_script("0123456789abcdef", """
            mount mnt
            cat mnt/tensors/t/raw
            umount mnt
            """)

    @unittest.skipUnless(shutil.which("setpriv"), "no setpriv here")
    def test_fstab_for_a_user(self):
        """With the option user, a line of fstab can be mounted and unmounted without root."""
        os.chown(self.mountpoint, NOBODY, NOBODY)
        as_user = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
        self.assert_script(f"user_id={NOBODY}\n0123456789abcdef", f"""
            {as_user} mount mnt
            findmnt -n -o OPTIONS mnt | grep -o user_id=[0-9]*
            {as_user} cat mnt/tensors/t/raw
            {as_user} umount mnt
            test -z "$(ls mnt)"
            """)

    def test_failure(self):
        """The status of mount(8) is that of ggufs."""
        result = self.run_script(f"mount -t fuse.ggufs -o {self.o} /etc/passwd mnt || echo status $?")
        self.assertEqual("status 65\n", result.out, result)
        self.assertIn("ggufs: /etc/passwd: ", result.err)


class Automounter:
    """A direct mount of the kernel's autofs: it runs a command when a process enters a directory."""

    READY, FAIL = 0x9360, 0x9361  # AUTOFS_IOC_READY, AUTOFS_IOC_FAIL of linux/auto_fs.h

    def __init__(self, trigger, command):
        self.command, self.statuses = command, []
        self.pipe, write_end = os.pipe()
        libc = ctypes.CDLL(None, use_errno=True)
        # Processes of this group pass the trigger.
        options = f"fd={write_end},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
        result = libc.mount(b"test", os.fsencode(trigger), b"autofs", 0, options.encode())
        error = ctypes.get_errno()
        os.close(write_end)
        if result != 0:
            os.close(self.pipe)
            raise OSError(error, os.strerror(error))
        self.root = os.open(trigger, os.O_RDONLY | os.O_DIRECTORY)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while packet := os.read(self.pipe, 4096):  # struct autofs_v5_packet
            _, _, token = struct.unpack_from("iiI", packet)
            status = subprocess.run(self.command, stdin=subprocess.DEVNULL, check=False).returncode
            self.statuses.append(status)
            fcntl.ioctl(self.root, self.READY if status == 0 else self.FAIL, token)

    def end(self):
        """Call it once the trigger has been unmounted."""
        os.close(self.root)
        self.thread.join(mounting.DEADLINE)
        os.close(self.pipe)


@unittest.skipIf(os.geteuid() != 0, "only root can mount autofs")
class TestAutomount(Mount8TestCase):
    def start(self, *command):
        try:
            automounter = Automounter(self.mountpoint, command)
        except OSError as error:
            self.skipTest(f"no autofs in this kernel: {error}")
        self.addCleanup(automounter.end)
        self.addCleanup(subprocess.run, ["umount", "-l", self.mountpoint], check=False)
        return automounter

    def enter(self):
        """Read from another process group, which the trigger does not let pass."""
        done = subprocess.run(["cat", os.path.join(self.mountpoint, "tensors/t/raw")],
                              start_new_session=True, capture_output=True, check=False,
                              timeout=mounting.DEADLINE)
        return done.stdout

    def test_trigger(self):
        """The mount must not wait at the trigger that it is made for, and the daemon, after an
        automounter has unmounted the idle tree, must not trigger the next mount."""
        automounter = self.start(mounting.BINARY, *mounting.MOUNT_OPTIONS, self.model, self.mountpoint)
        for count in (1, 2):
            self.assertEqual(b"0123456789abcdef", self.enter())
            self.assertEqual([EX_OK] * count, automounter.statuses)
            processes = self.processes_of(self.mountpoint)
            subprocess.run(["umount", self.mountpoint], check=True)
            for pid in processes:
                mounting.wait_until(lambda pid=pid: not mounting.is_running(pid), "it does not end")
            self.assertEqual([EX_OK] * count, automounter.statuses)
            self.assertEqual("autofs", mounting.mount_entry(self.mountpoint)[0])

    def test_failure(self):
        """If the model cannot be mounted, whoever enters gets an error at once."""
        missing = self.path("missing.gguf")
        automounter = self.start("sh", "-c", 'exec "$@" 2>/dev/null', "sh", mounting.BINARY, missing,
                                 self.mountpoint)
        self.assertEqual(b"", self.enter())
        self.assertEqual([66], automounter.statuses)
