"""Runs ggufs, mounts and unmounts; helpers shared by all tests of this folder.

    GGUFS            the binary; build/ggufs unless set
    GGUFS_FIXTURES   model files to try; ../shared/fixtures unless set
    GGUFS_THOROUGH   all models where one of a kind is usual
    CI=true          a machine where nothing can be mounted is a failure, not a skip
"""

import ctypes
import errno
import functools
import os
import pty
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

# Reset signals that nohup(1) or a shell may have ignored or blocked: ggufs would inherit that.
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD, signal.SIGWINCH):
    signal.signal(_number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
os.umask(0o022)  # tests run ggufs as other users, too

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.abspath(os.environ.get("GGUFS", os.path.join(ROOT, "build", "ggufs")))
FIXTURES = os.path.abspath(os.environ.get("GGUFS_FIXTURES",
                                          os.path.join(ROOT, "..", "shared", "fixtures")))
SAMPLE = os.path.join(ROOT, "build", "sample.gguf")
MNT_DETACH = 2  # of umount2(2)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000  # of unshare(2) and mount(2)
# To install what is built. Tests that run beside this one must find the programs unchanged.
MAKE = ["env", "--unset=MAKEFLAGS", "make", "-s", "-C", ROOT, "-o", "all"]


def is_sanitized():
    """Return True if the binary was built with AddressSanitizer or ThreadSanitizer."""
    try:
        with open(BINARY, "rb") as file:
            data = file.read()
    except OSError:
        return False
    return b"__asan_init" in data or b"__tsan_init" in data


# A sanitizer writes its findings to files, which the sandbox does not allow.
IS_SANDBOXED = not is_sanitized()
MOUNT_OPTIONS = [] if IS_SANDBOXED else ["-o", "nosandbox"]

# Seconds after which a process counts as hung.
DEADLINE = 30


def skip_loudly(reason):
    raise unittest.SkipTest(reason)


def mark(*names):
    """
    Mark a test or a class of tests; `MARKS = (…)` in a module marks all of its tests. `smoke`: run by `make
    check-fast`. `sanitize`: run with sanitizers, too, because it reaches code of ours by another path than the
    others.
    """
    def add(target):
        target.marks = (*getattr(target, "marks", ()), *names)
        return target
    return add


def wait_until(condition, what):
    """Calls `condition` until it is true, and returns its result."""
    end = time.monotonic() + DEADLINE
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"waited {DEADLINE} seconds in vain: {what}")
        time.sleep(0.005)


# ---- abilities of the machine ----

def _mount_as_root(folder):
    """Mounts and unmounts without ggufs. Returns the error, or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"probe", os.fsencode(folder), b"fuse", 1, options) != 0:
            return f"mount(2): {os.strerror(ctypes.get_errno())}"
        libc.umount2(os.fsencode(folder), MNT_DETACH)
        return None
    finally:
        os.close(device)


def _mount_as_user(folder):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        result = subprocess.run(["fusermount3", "-o", "ro", "--", folder], capture_output=True,
                                pass_fds=[theirs.fileno()],
                                env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())})
        if result.returncode != 0:
            return result.stderr.decode(errors="replace").strip()
        _, devices, _, _ = socket.recv_fds(ours, 1, 1)
        os.close(devices[0])
    subprocess.run(["fusermount3", "-u", "-z", "--", folder], capture_output=True)
    return None


def _why_no_mount():
    if not shutil.which("fusermount3"):
        return "fusermount3 is missing (apt-get install fuse3)"
    folder = tempfile.mkdtemp(prefix="ggufs-probe-")
    try:
        return _mount_as_root(folder) if os.geteuid() == 0 else _mount_as_user(folder)
    except OSError as error:
        return f"/dev/fuse: {error.strerror}"
    finally:
        os.rmdir(folder)


def require_binary():
    """A setUpModule for tests that mount nothing."""
    if not os.access(BINARY, os.X_OK):
        raise AssertionError(f"{BINARY} is missing: run make")


def require_fuse():
    """A setUpModule for tests that mount."""
    require_binary()
    reason = _why_no_mount()
    if not reason:
        return
    reason = f"nothing can be mounted here: {reason}"
    if os.environ.get("CI") == "true":
        raise AssertionError(reason)
    skip_loudly(reason)


@functools.lru_cache(1)
def why_no_namespace():
    """Returns why `unshare -m` fails here, or None."""
    if not shutil.which("unshare"):
        return "unshare is missing (apt-get install util-linux)"
    done = subprocess.run(["unshare", "-m", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return f"no mount namespace can be made here: {done.stderr.strip()}" if done.returncode else None


def require_namespace():
    """
    Skip a test that needs a mount namespace of its own. An ordinary user has none, nor has root in a chroot whose / is
    not a mount point.
    """
    if why_no_namespace():
        skip_loudly(why_no_namespace())


def fixtures(*folders):
    """The GGUF files in folders of the fixtures; none if there are no fixtures."""
    found = []
    for folder in folders:
        path = os.path.join(FIXTURES, folder)
        if os.path.isdir(path):
            found += [os.path.join(path, name) for name in sorted(os.listdir(path))
                      if name.endswith(".gguf")]
    return found


def some_fixtures(*folders):
    """As fixtures(), but the smallest of each folder; all of them if GGUFS_THOROUGH is set."""
    if os.environ.get("GGUFS_THOROUGH"):
        return fixtures(*folders)
    return [min(found, key=os.path.getsize) for found in map(fixtures, folders) if found]


def fixture(name):
    path = os.path.join(FIXTURES, name)
    if not os.path.exists(path):
        skip_loudly(f"no fixture {path}")
    return path


def sample():
    if not os.path.exists(SAMPLE):
        skip_loudly(f"{SAMPLE} is missing: run make build/sample.gguf")
    return SAMPLE


# ---- the table of mounts ----

def unescape(field):
    """Undo the escapes of /proc/self/mountinfo, such as \\040."""
    parts = field.split(b"\\")
    return parts[0] + b"".join(bytes([int(p[:3], 8)]) + p[3:] for p in parts[1:])


def mount_entry(folder):
    """Returns (type, source, options) of the topmost mount on a folder, or None."""
    folder = os.fsencode(folder)
    with open("/proc/self/mountinfo", "rb") as file:
        lines = file.read().split(b"\n")
    for line in reversed(lines):
        if not line:
            continue
        left, right = line.split(b" - ", 1)
        left = left.split(b" ")
        if unescape(left[4]) == folder:
            fs_type, source, options = right.split(b" ", 2)
            return fs_type.decode(), unescape(source), left[5] + b"," + options
    return None


def leave_other_mounts():
    """
    For a process in a new mount namespace: unmount the FUSE mounts that it has copied. They would
    keep the servers of tests that run beside it alive.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/mountinfo", "rb") as file:
        lines = file.read().splitlines()
    for line in reversed(lines):
        left, right = line.split(b" - ", 1)
        if right.startswith(b"fuse"):
            libc.umount2(unescape(left.split(b" ")[4]), MNT_DETACH)


def unmount(folder):
    """Unmounts everything on a folder, by force if necessary."""
    def try_once():
        if mount_entry(folder):
            subprocess.run(["fusermount3", "-u", "--", folder], capture_output=True)
        return not mount_entry(folder)
    try:
        wait_until(try_once, f"{folder} stays busy")
    finally:
        while mount_entry(folder):
            if subprocess.run(["fusermount3", "-u", "-z", "--", folder]).returncode != 0:
                break


def read_file(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def enter_namespace():
    """As root, move this process to a mount namespace without the FUSE mounts of others, if that is possible."""
    if os.geteuid() == 0 and not why_no_namespace():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0:
            leave_other_mounts()


def copy_tree(mountpoint, target):
    """Copies a mounted tree, or a folder of one, with modes that let its owner change the copy."""
    subprocess.run(["cp", "-r", "--no-preserve=mode", "--", mountpoint, target], check=True)


# ---- processes ----

def stat_of(pid):
    """The fields of /proc/PID/stat from the state on; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def is_running(pid):
    fields = stat_of(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def processes_of(mountpoint):
    """Processes of ours that have `mountpoint` on their command line, parents first."""
    parents = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                arguments = file.read().split(b"\0")
            if os.fsencode(mountpoint) in arguments[1:] and \
                    os.path.samefile(f"/proc/{pid}/exe", BINARY):
                parents[pid] = int(stat_of(pid)[1])
        except (OSError, TypeError):  # it is gone, or not ours
            continue
    return sorted(parents, key=lambda pid: parents[pid] in parents)


def kill_all(mountpoint):
    """Kills the keeper before the server, so that nothing is cleaned up."""
    for pid in processes_of(mountpoint):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


# ---- tests ----

class Result:
    """The exit status and output of a command."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\nstdout: {self.out}\nstderr: {self.err}"


class MountTestCase(unittest.TestCase):
    """Gives each test a folder of its own and leaves neither mounts nor processes."""

    maxDiff = 2000

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="ggufs-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.mountpoint = self.new_mountpoint("mnt")
        self.expected_log = []

    def expect_log(self, *patterns):
        """Set the lines that stderr must have at the end: a regular expression for each."""
        self.expected_log = patterns

    def path(self, name):
        return os.path.join(self.folder, name)

    def new_mountpoint(self, name):
        path = self.path(name)
        os.mkdir(path)
        self.addCleanup(unmount, path)
        return path

    def write(self, name, data):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def run_ggufs(self, *arguments, **more):
        """Run ggufs to its end. If a daemon keeps stdout or stderr open, this times out."""
        done = subprocess.run([BINARY, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=DEADLINE, **more)
        return Result(done.returncode, done.stdout.decode("utf-8", "surrogateescape"),
                      done.stderr.decode("utf-8", "surrogateescape"))

    def assert_status(self, status, result):
        self.assertEqual(status, result.status, result)

    def open_terminal(self):
        """Return both ends of a terminal: the first reads what is written to the second."""
        try:
            return pty.openpty()
        except OSError as error:
            return self.skipTest(f"no terminals here: {error}")

    def mount_in_background(self, *arguments, **more):
        """Mounts and checks that the command succeeded and printed nothing."""
        result = self.run_ggufs(*MOUNT_OPTIONS, *arguments, **more)
        self.assertEqual((0, "", ""), (result.status, result.out, result.err))

    def mount(self, model, *options, mountpoint=None):
        """Mounts in the foreground. At the end of the test, checks that the process exits with 0,
        silently."""
        mountpoint = mountpoint or self.mountpoint
        errors = tempfile.TemporaryFile()
        self.addCleanup(errors.close)
        process = subprocess.Popen([BINARY, "-f", *MOUNT_OPTIONS, *options, model, mountpoint],
                                   stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        # A reader of a daemon that hangs can only be interrupted by ending the daemon. Tests of many
        # mounts on this mount point take minutes with sanitizers.
        watchdog = threading.Timer(20 * DEADLINE, kill_all, [mountpoint])
        watchdog.daemon = True
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        self.addCleanup(self.end, process, mountpoint, errors)
        wait_until(lambda: mount_entry(mountpoint) or process.poll() is not None, "no mount")
        if process.poll() is not None:
            errors.seek(0)
            said = errors.read().decode(errors="replace")
            self.fail(f"ggufs ended with {process.returncode}: {said}")
        return mountpoint

    def end(self, process, mountpoint, errors):
        try:
            unmount(mountpoint)
            status = process.wait(DEADLINE)
        finally:
            if process.poll() is None:
                kill_all(mountpoint)
                process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace")
        self.assertEqual(0, status, said)
        self.assertEqual(len(self.expected_log), len(said.splitlines()), said)
        for pattern, line in zip(self.expected_log, said.splitlines()):
            self.assertRegex(line, pattern)

    def check_random_slices(self, path, n_slices, n_bits):
        """Check the size of a file, and that slices of less than 1 << n_bits bytes are those of the whole."""
        source = random.Random(n_slices)
        size = os.stat(path).st_size
        with open(path, "rb", buffering=0) as file:
            whole = file.read()
            self.assertEqual(size, len(whole))
            for _ in range(n_slices):
                offset = source.randrange(size)
                length = source.randrange(1, 1 << source.randrange(1, n_bits))
                self.assertTrue(whole[offset:offset + length] == os.pread(file.fileno(), length, offset),
                                (offset, length))

    def processes_of(self, mountpoint):
        """(the keeper, the server) of what is mounted on `mountpoint`: a process and its child."""
        def find():
            found = processes_of(mountpoint)
            pairs = [(int(stat_of(pid)[1]), pid) for pid in found if stat_of(pid)]
            return [(keeper, server) for keeper, server in pairs if keeper in found]
        return wait_until(find, f"no daemon serves {mountpoint}")[0]

    def kill_daemon(self, mountpoint):
        """Kills keeper and server, and returns when the mount is dead or gone."""
        kill_all(mountpoint)

        def is_dead():
            try:
                os.listdir(mountpoint)
            except OSError as error:  # ECONNABORTED until the daemon's last thread has ended
                return error.errno == errno.ENOTCONN
            return not mount_entry(mountpoint)
        wait_until(is_dead, f"{mountpoint} survives its daemon")
