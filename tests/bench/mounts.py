"""Mounts ggufs and the null file system, and runs bench-reader on their files."""

import contextlib
import json
import os
import subprocess
import tempfile
import time

BUILD = "build"
READER = os.path.join(BUILD, "bench-reader")
GGUFS = os.path.join(BUILD, "ggufs")
NULL = os.path.join(BUILD, "null-fs")


@contextlib.contextmanager
def mounted(program, model, options=()):
    """Mount `model` on a temporary folder, and give that folder."""
    with tempfile.TemporaryDirectory(prefix="ggufs-bench-") as folder:
        subprocess.run([program, *options, model, folder], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["fusermount3", "-u", folder], check=True)


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def server_of(mountpoint):
    """Return the pid of the process that serves a mount: it has the arguments of its parent."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if os.fsencode(mountpoint) in file.read().split(b"\0"):
                    found.append((int(pid), parent_of(pid)))
    pids = [pid for pid, _ in found]
    return next(pid for pid, parent in found if parent in pids)


def processor_seconds(pid):
    """The processor time of all threads of a process, by its clock; see clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def anonymous_bytes(pid):
    """Memory of the process's own; mapped pages of the model are the system's cache."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon:"))


def tensor_names(mountpoint):
    with open(os.path.join(mountpoint, "tensors.json"), encoding="utf-8") as file:
        return [tensor["name"] for tensor in json.load(file)]


class Tensor:
    """A tensor of a model, as its info file describes it."""

    def __init__(self, mountpoint, name):
        with open(os.path.join(mountpoint, "tensors", name, "info"), encoding="utf-8") as file:
            self.info = json.load(file)
        self.name = name
        self.folder = os.path.join("tensors", name)

    def bring_into_memory(self, model):
        """Read the tensor into the page cache, so that the disk is not timed."""
        buffer = bytearray(1 << 20)
        with open(model, "rb", buffering=0) as file:
            file.seek(self.info["offset"])
            left = self.info["n_bytes"]
            while left > 0:
                left -= file.readinto(memoryview(buffer)[:min(left, len(buffer))])


def read(access, readers, n_bytes, path):
    """Run bench-reader. Returns (GB/s,), or (GB/s, median us, p99 us) for `random`."""
    done = subprocess.run([READER, access, str(readers), str(n_bytes), path], check=True,
                          stdout=subprocess.PIPE)
    n_bytes, seconds, *latencies = map(float, done.stdout.split())
    return (n_bytes / seconds / 1e9, *latencies)


class WholeModel:
    """model.gguf, with the interface of a Tensor."""
    folder = ""

    def __init__(self, name):
        self.name = name

    def bring_into_memory(self, model):
        with open(model, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
