"""A system in a container, with a real systemd as its first process and ggufs installed."""

import os
import shutil
import signal
import subprocess

import mounting
from mounting import wait_until

SYSTEMD = "/lib/systemd/systemd"

# The root directory is that of the machine, with the installed files and a folder of the test in it.
# What is written goes to memory. Kernel settings are read-only.
SCRIPT = r"""
set -eu
root=$1 installed=$2 folder=$3
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
mkdir "$root/upper" "$root/work" "$root/new"
cp -r "$installed" "$root/installed" # layers must not overlap
mount -t overlay -o "lowerdir=$root/installed:/,upperdir=$root/upper,workdir=$root/work" overlay "$root/new"
new=$root/new
mkdir -p "$new$folder"
mount --bind "$folder" "$new$folder"
mount -t proc proc "$new/proc"
mount --bind "$new/proc/sys" "$new/proc/sys"
mount -o remount,bind,ro "$new/proc/sys"
mount -t sysfs -o ro sysfs "$new/sys"
mount -t cgroup2 cgroup2 "$new/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$new/run"
mount -t tmpfs -o mode=755 tmpfs "$new/dev"
for name in null zero full random urandom tty fuse autofs; do
    [ -e "/dev/$name" ] || continue
    touch "$new/dev/$name"
    mount --bind "/dev/$name" "$new/dev/$name"
done
mkdir "$new/dev/pts" "$new/dev/shm" "$new/run/old"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$new/dev/pts"
ln -s pts/ptmx "$new/dev/ptmx"
ln -s /proc/self/fd "$new/dev/fd"
mkdir -p "$new/run/systemd/system"
printf '[Unit]\nDefaultDependencies=no\nRequires=systemd-journald.service\n' >"$new/run/systemd/system/test.target"
cd "$new"
pivot_root . run/old
umount -l /run/old
exec env -i container=ggufs-test PATH=/usr/sbin:/usr/bin:/sbin:/bin "$4" --system --unit=test.target --show-status=no
"""


def _cgroup2():
    """Return the mount point of the unified hierarchy, or None."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split()
            if fields[2] == "cgroup2" and "rw" in fields[3].split(","):
                return fields[1]
    return None


class System:
    """Starts it; `why_not` is the reason if that is impossible here, else None."""

    def __init__(self, folder, installed):
        self.why_not = self.process = self.cgroup = None
        self.folder = folder
        self.root = os.path.join(folder, "root")
        self.output = os.path.join(folder, "systemd.log")
        os.mkdir(self.root)
        if os.geteuid() != 0:
            self.why_not = "only root can make a container"
        elif not os.access(SYSTEMD, os.X_OK):
            self.why_not = "systemd is missing (apt-get install systemd)"
        elif not _cgroup2():
            self.why_not = "there is no writable cgroup2"
        else:
            self._start(installed)

    def _start(self, installed):
        self.cgroup = os.path.join(_cgroup2(), f"ggufs-test-{os.getpid()}")
        try:
            os.mkdir(self.cgroup)
        except OSError as error:
            self.cgroup, self.why_not = None, f"no control group can be made: {error.strerror}"
            return
        enter = 'echo $$ >"$0/cgroup.procs" && exec unshare -m -p -u -i -n -C -f --kill-child sh -c "$@"'
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(["sh", "-c", enter, self.cgroup, SCRIPT, "sh", self.root, installed,
                                             self.folder, SYSTEMD], stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=output)
        wait_until(lambda: self.process.poll() is not None or self._has_started(), "systemd does not start")
        if self.process.poll() is not None:
            with open(self.output, encoding="utf-8", errors="replace") as file:
                self.why_not = f"no systemd in a container here: {file.read().strip()}"

    def _first_process(self):
        """Return the id of the container's first process, or None."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            children = file.read().split()
        return children[0] if children else None

    def _has_started(self):
        try:
            if not self._first_process():
                return False
            with open(f"/proc/{self._first_process()}/comm", encoding="ascii") as file:
                if file.read() != "systemd\n":
                    return False
            state = self.run("systemctl", "is-active", "test.target").stdout
        except OSError:
            return False
        return state == "active\n"

    def run(self, *command):
        """Run a command in the system."""
        return subprocess.run(["nsenter", "-t", self._first_process(), "-a", *command], capture_output=True,
                              text=True, errors="surrogateescape", timeout=mounting.DEADLINE, check=False)

    def path(self, path):
        """Return the path of a file of the system, from outside."""
        return f"/proc/{self._first_process()}/root{path}"

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)  # the container dies with it
        if self.process:
            self.process.wait()
        if self.cgroup:
            wait_until(self._remove_cgroups, f"{self.cgroup} stays in use")
        shutil.rmtree(self.root, ignore_errors=True)

    def _remove_cgroups(self):
        try:
            for folder, _, _ in os.walk(self.cgroup, topdown=False):
                os.rmdir(folder)
        except OSError:
            return False
        return True
