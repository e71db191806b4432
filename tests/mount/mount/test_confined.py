#!/usr/bin/env python3
"""The sandbox of a mount's processes while they parse and serve, and signals before the mount is
there."""

import ctypes
import os
import platform
import signal
import socket
import subprocess
import unittest

import mounting
from gguf_file import F32, STRING, GgufFile

FAULTY = os.path.join(mounting.ROOT, "build", "faulty")
EX_OK, EX_DATAERR, EX_SOFTWARE, EX_OSERR = 0, 65, 70, 71
CAP_SYS_ADMIN = 1 << 21
CAP_DAC_READ_SEARCH = 1 << 2


def setUpModule():
    mounting.require_fuse()
    if not os.path.exists(FAULTY):
        raise AssertionError(f"{FAULTY} is missing: run make build/faulty")


def a_model():
    return GgufFile().key(b"general.name", STRING, b"n").tensor(b"t", [4], F32, bytes(16))


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.split(":\t", 1) for line in file.read().splitlines())


def rights_of(pid):
    """(effective capabilities, no_new_privs, whether there is a seccomp filter)"""
    status = status_of(pid)
    return int(status["CapEff"], 16), status["NoNewPrivs"] == "1", status["Seccomp"] == "2"


CONFINED = (0, True, True)


class HeldTestCase(mounting.MountTestCase):
    """The model's file system holds reads until the test releases them, so the server stays in its
    parser."""

    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)
        self.backing = self.path("backing.gguf")
        self.write_model(a_model().to_bytes())
        self.addCleanup(mounting.unmount, self.source)
        self.faulty = subprocess.Popen([FAULTY, self.backing, self.source],
                                       stdin=subprocess.DEVNULL)
        self.addCleanup(self.faulty.wait)
        self.addCleanup(self.faulty.kill)
        mounting.wait_until(lambda: mounting.mount_entry(self.source) or
                            self.faulty.poll() is not None, "no faulty file system")
        self.model = os.path.join(self.source, "model")
        self.control("hold")

    def write_model(self, data):
        with open(self.backing, "wb") as file:
            file.write(data)

    def control(self, text):
        with open(os.path.join(self.source, "control"), "w", encoding="ascii") as file:
            file.write(text)

    def let_go(self):
        self.control("0 0")

    def start(self, *options, **more):
        process = subprocess.Popen([mounting.BINARY, *mounting.MOUNT_OPTIONS, *options, self.model,
                                    self.mountpoint], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.addCleanup(process.communicate)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        self.addCleanup(self.faulty.kill)  # its readers get an error and end
        return process

    def server_in_its_parser(self):
        """Return the process that waits for a read of the model: the youngest one."""
        def find():
            found = mounting.processes_of(self.mountpoint)
            parents = {int((mounting.stat_of(pid) or [0, 0])[1]) for pid in found}
            for pid in found[1:]:
                if pid in parents:
                    continue
                try:
                    with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
                        waits_in = file.read()
                except OSError:
                    continue
                if "request_wait" in waits_in or "folio" in waits_in:
                    return pid
            return None
        return mounting.wait_until(find, "no server parses")

    def assert_nothing_left(self):
        mounting.wait_until(lambda: not mounting.processes_of(self.mountpoint), "processes stay")
        self.assertIsNone(mounting.mount_entry(self.mountpoint))


class TestParser(HeldTestCase):
    @unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers run without the sandbox")
    def test_is_confined(self):
        for options in ((), ("-f",)):
            with self.subTest(options=options):
                process = self.start(*options)
                server = self.server_in_its_parser()
                self.assertEqual(CONFINED, rights_of(server))
                self.assertIsNone(mounting.mount_entry(self.mountpoint), "mounted too early")
                self.let_go()
                mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint), "no mount")
                if not options:
                    self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
                mounting.unmount(self.mountpoint)
                self.assertEqual(EX_OK, process.wait(mounting.DEADLINE))
                self.assert_nothing_left()
                self.control("hold")

    def test_refuses(self):
        self.write_model(b"GGUF" + bytes(100))
        for options in ((), ("-f",)):
            with self.subTest(options=options):
                process = self.start(*options)
                self.server_in_its_parser()
                self.let_go()
                _, err = process.communicate(timeout=mounting.DEADLINE)
                self.assertEqual(EX_DATAERR, process.returncode, err)
                self.assertTrue(err.startswith(b"ggufs: " + os.fsencode(self.model)), err)
                self.assert_nothing_left()
                self.control("hold")

    def test_crashes(self):
        for options in ((), ("-f",)):
            with self.subTest(options=options):
                process = self.start(*options)
                os.kill(self.server_in_its_parser(), signal.SIGKILL)
                self.let_go()  # the kernel ends the process only after its page fault
                _, err = process.communicate(timeout=mounting.DEADLINE)
                self.assertEqual((EX_SOFTWARE, b"ggufs: the server died of signal 9 (Killed)\n"),
                                 (process.returncode, err))
                self.assert_nothing_left()
                self.control("hold")

    def test_interrupted(self):
        """If the command is interrupted before the mount is there, nothing gets mounted."""
        for options in ((), ("-f",)):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(options=options, signal=number):
                    process = self.start(*options)
                    self.server_in_its_parser()
                    process.send_signal(number)
                    if not options:  # the keeper sees the end of the command
                        process.wait(mounting.DEADLINE)
                    self.let_go()
                    out, err = process.communicate(timeout=mounting.DEADLINE)
                    self.assertEqual((-number, b"", b""), (process.returncode, out, err))
                    self.assert_nothing_left()
                    self.control("hold")


class ServedTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = a_model().write(self.path("model.gguf"))

    def read(self, name):
        with open(os.path.join(self.mountpoint, name), "rb") as file:
            return file.read()

    def assert_serves(self):
        self.assertEqual(b'"n"\n', self.read("metadata/general.name.json"))


class TestKeeper(ServedTestCase):
    @unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers run without the sandbox")
    def test_of_root_is_confined(self):
        if os.geteuid() != 0:
            self.skipTest("a user's keeper needs the setuid fusermount3")
        self.mount_in_background(self.model, self.mountpoint)
        keeper, _ = self.processes_of(self.mountpoint)
        capabilities, *rest = rights_of(keeper)
        self.assertEqual([True, True], rest)
        self.assertEqual(0, capabilities & ~(CAP_SYS_ADMIN | CAP_DAC_READ_SEARCH))
        os.kill(keeper, signal.SIGTERM)
        mounting.wait_until(lambda: not mounting.is_running(keeper), "the keeper stays")
        self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def start(self, prepare):
        process = subprocess.Popen([mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS, self.model,
                                    self.mountpoint], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, preexec_fn=prepare)
        self.addCleanup(process.communicate)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint) or
                            process.poll() is not None, "no mount")
        self.assert_serves()
        return process

    def assert_ends_by(self, process, number):
        process.send_signal(number)
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual((EX_OK, b""), (process.returncode, err))
        self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_blocked_signals_do_not_end_it(self):
        """The parent may have blocked signals; resizing a window sends SIGWINCH."""
        numbers = {signal.SIGWINCH, signal.SIGUSR1, signal.SIGCONT}
        process = self.start(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, numbers))
        for number in numbers:
            process.send_signal(number)
        self.assert_serves()
        self.assertIsNone(process.poll())
        self.assert_ends_by(process, signal.SIGTERM)

    def test_ignored_signals_do_not_end_it(self):
        """nohup(1) ignores SIGHUP; a shell ignores SIGINT for background processes."""
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        process = self.start(ignore)
        for number in (signal.SIGHUP, signal.SIGINT):
            process.send_signal(number)
            for pid in self.processes_of(self.mountpoint):
                os.kill(pid, number)
        self.assert_serves()
        self.assertIsNone(process.poll())
        self.assert_ends_by(process, signal.SIGTERM)

    def test_blocked_end_signals_end_it(self):
        """Signals that the parent has blocked still end the daemon."""
        numbers = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
        process = self.start(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, numbers))
        self.assert_ends_by(process, signal.SIGTERM)


# ---- a kernel that refuses the confinement ----

class SockFilter(ctypes.Structure):
    """struct sock_filter of linux/filter.h"""
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8),
                ("k", ctypes.c_uint32)]


class SockProgram(ctypes.Structure):
    """struct sock_fprog"""
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(SockFilter))]


# prctl, seccomp
NUMBERS = {"x86_64": (157, 317), "aarch64": (167, 277)}.get(platform.machine())
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38


def refuse_prctl(option, refuse_seccomp):
    """Make prctl(option) and, with `refuse_seccomp`, seccomp() fail with EINVAL."""
    load, equal, give, allow = 0x20, 0x15, 0x06, 0x7fff0000
    prctl, seccomp = NUMBERS
    einval = 0x00050000 | 22
    program = [(load, 0, 0, 0),                                  # the call's number
               (equal, 3 if refuse_seccomp else 4, 0, seccomp),  # jump to refuse or allow
               (equal, 0, 3, prctl),
               (load, 0, 0, 16),                                 # the first argument
               (equal, 0, 1, option),
               (give, 0, 0, einval),
               (give, 0, 0, allow)]
    filters = (SockFilter * len(program))(*[SockFilter(*row) for row in program])
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0:
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    done = libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(SockProgram(len(program), filters)))
    if done != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


@unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers run without the sandbox")
class TestRefusedConfinement(ServedTestCase):
    def run_refusing(self, option, refuse_seccomp, *options):
        if not NUMBERS or os.geteuid() != 0:
            self.skipTest("needs root and a known architecture")
        return self.run_ggufs(*options, self.model, self.mountpoint,
                              preexec_fn=lambda: refuse_prctl(option, refuse_seccomp))

    def test_fails_closed(self):
        for option, refuse_seccomp, step in (
                (PR_SET_SECCOMP, True, "the seccomp filter: Invalid argument"),
                (PR_SET_NO_NEW_PRIVS, False, "no_new_privs: Invalid argument")):
            for foreground in ((), ("-f",)):
                with self.subTest(step, foreground=foreground):
                    result = self.run_refusing(option, refuse_seccomp, *foreground)
                    self.assert_status(EX_OSERR, result)
                    self.assertEqual(f"ggufs: cannot enter the sandbox: {step}; "
                                     "-o nosandbox mounts without it\n", result.err)
                    self.assertIsNone(mounting.mount_entry(self.mountpoint))

    def test_unless_asked_for(self):
        result = self.run_refusing(PR_SET_SECCOMP, True, "-o", "nosandbox")
        self.assertEqual((EX_OK, ""), (result.status, result.err))
        self.assert_serves()


# ---- errors while serving ----

class TestLog(ServedTestCase):
    def test_system_log(self):
        """In the background errors go to the system's log, one line for each cause."""
        mounting.require_namespace()
        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(log.close)
        log.bind(self.path("log"))
        log.settimeout(mounting.DEADLINE)
        script = '''set -e
            mount -t tmpfs none /dev
            mknod -m 666 /dev/fuse c 10 229
            mknod -m 666 /dev/null c 1 3
            touch /dev/log
            mount --bind "$1/log" /dev/log
            shift
            "$@"
            for i in 1 2 3; do cat "$MOUNTPOINT/tensors/t/raw" >/dev/null; done
            truncate -s 64 "$MODEL"
            dd if="$MOUNTPOINT/tensors/t/raw" iflag=direct bs=4096 2>&1 >/dev/null &&
                echo "not refused"
            dd if="$MOUNTPOINT/tensors/t/f32" iflag=direct bs=4096 2>&1 >/dev/null &&
                echo "not refused"
            umount "$MOUNTPOINT"
        '''
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", self.folder,
                               mounting.BINARY, *mounting.MOUNT_OPTIONS, self.model,
                               self.mountpoint], capture_output=True, text=True,
                              env={**os.environ, "MODEL": self.model,
                                   "MOUNTPOINT": self.mountpoint})
        self.assertEqual(0, done.returncode, done)
        self.assertNotIn("not refused", done.stdout)
        lines = []
        while not lines or not lines[-1].endswith(": unmounted"):
            lines.append(log.recv(4096).decode())
        self.assertRegex(lines[0], rf"\A<29>.*ggufs\[\d+\]: {self.mountpoint}: mounted {self.model}\Z")
        errors = [line for line in lines if line.startswith("<27>")]
        self.assertEqual(1, len(errors), lines)
        self.assertRegex(errors[0], rf"\A<27>.*ggufs\[\d+\]: {self.mountpoint}: {self.model}: it is shorter "
                         r"than when it was mounted; .* \(noticed at tensors/t/raw\)\Z")
