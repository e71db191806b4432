#!/usr/bin/env python3
"""Starting, serving and ending: the entry in the table of mounts, and the daemon's behaviour."""

import contextlib
import errno
import glob
import os
import shlex
import shutil
import signal
import stat
import subprocess
import unittest

import mounting
from gguf_file import F32, STRING, GgufFile

MARKS = ("sanitize", "smoke")

setUpModule = mounting.require_fuse

# sysexits.h
EX_OK, EX_USAGE, EX_UNAVAILABLE, EX_OSERR, EX_CANTCREAT = 0, 64, 69, 71, 73

PAGE = os.sysconf("SC_PAGESIZE")


class DaemonTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        built = GgufFile().key(b"general.name", STRING, b"a name")
        self.model = built.tensor(b"t", [4], F32,
                                  b"0123456789abcdef").write(self.path("model.gguf"))

    def read(self, name, mountpoint=None):
        with open(os.path.join(mountpoint or self.mountpoint, name), "rb") as file:
            return file.read()

    def assert_serves(self, mountpoint=None):
        self.assertEqual(b"0123456789abcdef", self.read("tensors/t/raw", mountpoint))
        self.assertEqual(b'"a name"\n', self.read("metadata/general.name.json", mountpoint))

    def wait_for_end(self, pid):
        mounting.wait_until(lambda: not mounting.is_running(pid), f"process {pid} does not end")


class TestStart(DaemonTestCase):
    def test_readable_when_the_command_returns(self):
        for _ in range(20):
            self.mount_in_background(self.model, self.mountpoint)
            self.assert_serves()
            self.assertLessEqual({"hf.unsupported.txt", "metadata", "metadata.json", "model.gguf",
                                  "model.safetensors", "summary.txt", "tensors", "tensors.json"},
                                 set(os.listdir(self.mountpoint)))
            mounting.unmount(self.mountpoint)

    def test_unmounted_daemon_ends(self):
        self.mount_in_background(self.model, self.mountpoint)
        processes = self.processes_of(self.mountpoint)
        mounting.unmount(self.mountpoint)
        for pid in processes:
            self.wait_for_end(pid)

    def test_relative_paths(self):
        inside = self.path("inside")
        os.mkdir(inside)
        for i, (folder, model, mountpoint) in enumerate((
                (self.folder, "model.gguf", "m0"), (self.folder, "./model.gguf", "./m1"),
                (inside, "../model.gguf", "../m2"),
                (self.folder, "inside/.././model.gguf", ".//m3/"))):
            with self.subTest(model=model):
                absolute = self.new_mountpoint(f"m{i}")
                self.mount_in_background(model, mountpoint, cwd=folder)
                self.assert_serves(absolute)
                self.assertTrue(mounting.mount_entry(absolute)[1].startswith(b"/"))

    def test_no_path_in_info(self):
        """Trees of equal models are equal, and do not show where the files are."""
        self.mount_in_background(self.model, self.mountpoint, cwd=self.folder)
        for name in ("tensors/t/info", "tensors.json", "summary.txt"):
            self.assertNotIn(os.fsencode(self.folder), self.read(name), name)
        self.assertIn(b'"file":"model.gguf"', self.read("tensors/t/info"))
        self.assertIn(b'"path":"tensors/t"', self.read("tensors/t/info"))

    def test_links(self):
        os.symlink(self.model, self.path("model-link"))
        os.symlink("mnt", self.path("mnt-link"))
        self.mount_in_background("model-link", "mnt-link", cwd=self.folder)
        self.assert_serves()

    def test_options_last(self):
        self.mount_in_background(self.model, self.mountpoint, "-o", "umask=077")
        self.assertEqual(0o500, stat.S_IMODE(os.stat(self.mountpoint).st_mode))

    def test_over_files(self):
        with open(os.path.join(self.mountpoint, "hidden"), "wb"):
            pass
        self.mount_in_background("-o", "nonempty", self.model, self.mountpoint)
        self.assert_serves()
        self.assertNotIn("hidden", os.listdir(self.mountpoint))

    def test_unknown_option_of_libfuse(self):
        for option in ("frobnicate", "frobnicate=1", "ro,frobnicate"):
            result = self.run_ggufs("-o", option, self.model, self.mountpoint)
            self.assert_status(EX_USAGE, result)
            self.assertIn("frobnicate", result.err)
            self.assertEqual(1, result.err.count("ggufs:"), f"the prefix must appear once: {result.err}")
            self.assertIsNone(mounting.mount_entry(self.mountpoint))


class TestTable(DaemonTestCase):
    """The output of mount(8), df(1) and stat(1)."""

    def assert_entry(self, fs_type, source):
        entry = mounting.mount_entry(self.mountpoint)
        self.assertEqual((fs_type, os.fsencode(source)), entry[:2])

    def test_line_of_mount(self):
        self.mount_in_background(self.model, self.mountpoint)
        done = subprocess.run(["mount"], capture_output=True, check=True)
        lines = done.stdout.decode(errors="replace")
        self.assertIn(f"{self.model} on {self.mountpoint} type fuse.ggufs (", lines)

    def test_strange_paths(self):
        for name in ("a b", "com,ma", "back\\slash", "new\nline", "tab\t", "#hash", "-dash", "ü",
                     "\udcff", ",ro=\\,"):
            with self.subTest(name=name):
                folder = self.path(name)
                os.mkdir(folder)
                model = shutil.copy(self.model, os.path.join(folder, f"{name}.gguf"))
                self.mountpoint = self.new_mountpoint(f"{name}.mnt")
                self.mount_in_background(model, self.mountpoint)
                self.assert_entry("fuse.ggufs", model)
                self.assert_serves()

    def test_fsname_and_subtype(self):
        self.mount_in_background("-o", "fsname=my name,subtype=mine", self.model, self.mountpoint)
        self.assert_entry("fuse.mine", "my name")

    def test_read_only(self):
        self.mount_in_background(self.model, self.mountpoint)
        options = mounting.mount_entry(self.mountpoint)[2].split(b",")
        self.assertIn(b"ro", options)
        self.assertIn(b"default_permissions", options)

    def test_umask(self):
        self.mount_in_background("-oumask=027", self.model, self.mountpoint)
        self.assertEqual(0o550, stat.S_IMODE(os.stat(self.mountpoint).st_mode))
        for name, mode in (("tensors", 0o550), ("tensors/t", 0o550), ("tensors/t/raw", 0o440),
                           ("tensors.json", 0o440)):
            status = os.stat(os.path.join(self.mountpoint, name))
            self.assertEqual(mode, stat.S_IMODE(status.st_mode), name)

    def test_uid_and_gid(self):
        self.mount_in_background("-o", "uid=1234,gid=2345", self.model, self.mountpoint)
        for name in ("", "tensors", "tensors/t/raw", "metadata.json"):
            status = os.stat(os.path.join(self.mountpoint, name))
            self.assertEqual((1234, 2345), (status.st_uid, status.st_gid), name)
        self.assert_serves()

    def test_allow_other(self):
        if os.geteuid() != 0:
            self.skipTest("root only, unless /etc/fuse.conf allows it")
        for option in ("allow_other", "allow_root"):
            with self.subTest(option=option):
                self.mount_in_background("-o", option, self.model, self.mountpoint)
                self.assertIn(b"allow_other", mounting.mount_entry(self.mountpoint)[2])
                mounting.unmount(self.mountpoint)


class TestProcess(DaemonTestCase):
    def start(self, *options, **more):
        """In the foreground; ends with the test."""
        process = subprocess.Popen([mounting.BINARY, *mounting.MOUNT_OPTIONS, *options, self.model,
                                    self.mountpoint], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.addCleanup(process.communicate)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint) or
                            process.poll() is not None, "no mount")
        self.assert_serves()
        return process

    def test_signals_in_the_foreground(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                process = self.start("-f")
                process.send_signal(number)
                out, err = process.communicate(timeout=mounting.DEADLINE)
                self.assertEqual((EX_OK, b"", b""), (process.returncode, out, err))
                self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_signal_while_in_use(self):
        # The kernel never releases files that are open at the end; a sanitizer would report a leak.
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        process = self.start("-f", env={**os.environ, "ASAN_OPTIONS": options})
        with open(os.path.join(self.mountpoint, "tensors/t/raw"), "rb"):
            process.terminate()
            self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
            self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_signal_in_the_background(self):
        for target in (0, 1):  # the keeper, the server
            with self.subTest(target=target):
                self.mount_in_background(self.model, self.mountpoint)
                processes = self.processes_of(self.mountpoint)
                os.kill(processes[target], signal.SIGTERM)
                for pid in processes:
                    self.wait_for_end(pid)
                self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def stop_when_mounted(self):
        """Mount, and stop the command before it ends. Returns its process, or None if it has ended."""
        process = subprocess.Popen([mounting.BINARY, *mounting.MOUNT_OPTIONS, self.model, self.mountpoint])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as children:
            while process.poll() is None and not children.read():  # the keeper
                children.seek(0)
        process.send_signal(signal.SIGSTOP)
        mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint), "it does not mount")

        def state():
            return (mounting.stat_of(process.pid) or [b"X"])[0]

        mounting.wait_until(lambda: state() in (b"T", b"Z", b"X"), "it neither stops nor ends")
        if state() == b"T":
            return process
        process.wait()
        mounting.unmount(self.mountpoint)
        return None

    @unittest.skipUnless(os.path.exists(f"/proc/self/task/{os.getpid()}/children"),
                         "the kernel does not list children")
    def test_signal_to_the_command_when_the_tree_is_mounted(self):
        """A command that dies by a signal leaves no mount."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(signal=number.name):
                process = mounting.wait_until(self.stop_when_mounted, "the command always ends first")
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
                self.assertEqual(-number, process.wait(mounting.DEADLINE))
                mounting.wait_until(lambda: not mounting.mount_entry(self.mountpoint), "the mount stays")

    def test_killed_server_leaves_no_mount(self):
        self.mount_in_background(self.model, self.mountpoint)
        keeper, server = self.processes_of(self.mountpoint)
        with open(os.path.join(self.mountpoint, "tensors/t/raw"), "rb"):
            os.kill(server, signal.SIGKILL)
            self.wait_for_end(keeper)
        self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_killed_keeper_leaves_the_tree(self):
        self.mount_in_background(self.model, self.mountpoint)
        keeper, server = self.processes_of(self.mountpoint)
        os.kill(keeper, signal.SIGKILL)
        self.wait_for_end(keeper)
        self.assert_serves()
        mounting.unmount(self.mountpoint)
        self.wait_for_end(server)

    def test_killed_in_the_foreground(self):
        process = self.start("-f")
        _, server = self.processes_of(self.mountpoint)
        process.kill()
        process.wait()
        self.wait_for_end(server)

    @unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers run without the sandbox")
    def test_sandbox(self):
        def is_confined(pid):
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                status = dict(line.split(":\t", 1) for line in file.read().splitlines())
            return (int(status["CapEff"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, "1", "2")
        for options, expected in ((), True), (("-o", "nosandbox"), False):
            self.mount_in_background(*options, self.model, self.mountpoint)
            processes = self.processes_of(self.mountpoint)
            self.assertEqual(expected, is_confined(processes[1]))
            self.assert_serves()
            mounting.unmount(self.mountpoint)
            for pid in processes:
                self.wait_for_end(pid)

    def test_debug(self):
        process = self.start("-d")
        mounting.unmount(self.mountpoint)
        out, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual((EX_OK, b""), (process.returncode, out))
        for word in (b"LOOKUP", b"READ"):
            self.assertIn(word, err)

    def test_few_threads(self):
        self.start("-f", "-s")
        self.assert_serves()
        _, server = self.processes_of(self.mountpoint)
        # One is kept, one more takes requests, and the main thread waits for them.
        mounting.wait_until(lambda: len(os.listdir(f"/proc/{server}/task")) <= 3, "threads stay")

    def test_thread_options(self):
        self.mount_in_background("-o", "max_threads=2", self.model,
                                 self.mountpoint)
        self.assert_serves()

    def test_daemon_lets_go(self):
        """The daemon keeps no terminal, pipe, working directory or session of the caller."""
        self.mount_in_background("model.gguf", self.mountpoint, cwd=self.folder)
        keeper, server = self.processes_of(self.mountpoint)
        # The command returns when the daemon has done all this.
        for pid in (keeper, server):
            self.assertEqual("/", os.readlink(f"/proc/{pid}/cwd"))
            self.assertEqual(keeper, os.getsid(pid))
            links = [os.readlink(f"/proc/{pid}/fd/{fd}")
                     for fd in sorted(os.listdir(f"/proc/{pid}/fd"), key=int)]
            self.assertEqual(["/dev/null"] * 3, links[:3])
            self.assertEqual(pid == server, "/dev/fuse" in links)
            # The keeper waits with a signalfd; both hold the log's socket if there is a log.
            allowed = {"anon_inode:[signalfd]"} if pid == keeper else set()
            if os.path.exists("/dev/log"):
                allowed |= {link for link in links if link.startswith("socket:")}
            self.assertLessEqual(set(links), {"/dev/null", "/dev/fuse", self.model} | allowed)

    def test_auto_unmount(self):
        """The option is accepted: the keeper unmounts in any case."""
        self.mount_in_background("-o", "auto_unmount", self.model, self.mountpoint)
        self.assert_serves()


class TestOccupied(DaemonTestCase):
    def test_mounted_already(self):
        self.mount_in_background(self.model, self.mountpoint)
        result = self.run_ggufs(self.model, self.mountpoint)
        self.assert_status(EX_CANTCREAT, result)
        self.assertEqual("", result.out)
        for word in (self.mountpoint, "is already mounted here", "fuse.ggufs", "fusermount3 -u"):
            self.assertIn(word, result.err)
        self.assert_serves()

    def test_dead_mount(self):
        self.mount_in_background(self.model, self.mountpoint)
        self.kill_daemon(self.mountpoint)
        for more in ([], ["-o", "nonempty"]):
            result = self.run_ggufs(*more, self.model, self.mountpoint)
            self.assert_status(EX_CANTCREAT, result)
            self.assertEqual("", result.out)
            self.assertIn(os.strerror(errno.ENOTCONN), result.err)
            self.assertIn(f"fusermount3 -u {shlex.quote(self.mountpoint)}", result.err)
        advice = result.err.strip().partition("fusermount3 ")[2]
        subprocess.run(["fusermount3", *shlex.split(advice)], check=True)
        self.mount_in_background(self.model, self.mountpoint)
        self.assert_serves()

    def test_model_on_a_dead_mount(self):
        other = self.new_mountpoint("other")
        self.mount_in_background(self.model, other)
        self.kill_daemon(other)
        result = self.run_ggufs(os.path.join(other, "model.gguf"), self.mountpoint)
        self.assertNotEqual(EX_OK, result.status)
        self.assertIn("has ended: remove the mount with fusermount3 -u", result.err)
        result = self.run_ggufs("--info", other)
        self.assertEqual(f"ggufs: {other}: ggufs, which served this mount, has ended: remove the mount "
                         "with fusermount3 -u, and mount the model again [not-a-file]\n", result.err)

    def test_without_the_device(self):
        self.check_in_namespace("mount -t tmpfs none /dev", [], "modprobe fuse",
                                "ggufs --extract tree MODEL && ggufs-run tree")

    @unittest.skipIf(os.geteuid() != 0 or os.path.exists("/sys/fs/selinux/enforce"),
                     "needs root, and a kernel that refuses fscontext")
    def test_an_invalid_argument_is_no_matter_of_rights(self):
        result = self.run_ggufs("-o", "fscontext=x", self.model, self.mountpoint)
        self.assert_status(EX_OSERR, result)
        self.assertIn("the mount was refused", result.err)
        self.assertNotIn("docker", result.err)

    def test_without_fusermount(self):
        program = shutil.which("fusermount3")
        if not program or os.path.realpath(program) != "/usr/bin/fusermount3":
            self.skipTest("fusermount3 is not where libfuse looks for it")
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("only root can make a device that another user may open")
        for path in (self.folder, self.model, self.mountpoint):
            os.chmod(path, 0o755)
        device = self.path("fuse")
        self.check_in_namespace(f"mount --bind /dev/null {program} && mknod -m 666 {device} c 10 229 &&"
                                f" mount --bind {device} /dev/fuse; rm {device}", [],
                                "fusermount3 is missing", "apt-get install fuse3",
                                user=["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"])

    def check_in_namespace(self, command, options, *words, user=()):
        """Run ggufs in a mount namespace in which `command` has hidden a file."""
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        if not shutil.which("unshare") or \
                subprocess.run([*unshare, "sh", "-c", command],
                               capture_output=True).returncode != 0:
            self.skipTest("no namespace to hide things in")
        done = subprocess.run([*unshare, "sh", "-c", command + ' && exec "$@"', "sh",
                               *user, mounting.BINARY, *options,
                               self.model, self.mountpoint], capture_output=True, text=True)
        self.assertEqual((EX_UNAVAILABLE, ""), (done.returncode, done.stdout), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
