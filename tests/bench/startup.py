"""Measures mounting and the first reads, against plain commands that do similar work."""

import os
import shutil
import subprocess
import tempfile
import time

import mounts


def milliseconds(*command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def unmount(folder):
    subprocess.run(["fusermount3", "-u", folder], check=True)


def measure_startup(table, model, options):
    times = {}

    def note(name, value):
        times.setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory(prefix="ggufs-bench-") as folder:
        mnt = os.path.join(folder, "mnt")
        copy = os.path.join(folder, "copy")
        os.mkdir(mnt)
        for round_number in range(table.rounds):
            table.progress(f"start-up: round {round_number + 1}")
            note("true", milliseconds("true"))
            note("cat model", milliseconds("cat", model))
            note("mount", milliseconds(mounts.GGUFS, *options, model, mnt))
            try:
                note("ls", milliseconds("ls", "-lR", mnt))
                note("ls again", milliseconds("ls", "-lR", mnt))
                if not os.path.exists(copy):
                    # Empty files with the same names, on the disk.
                    shutil.copytree(mnt, copy, copy_function=lambda _, to: open(to, "w").close())
                note("ls copy", milliseconds("ls", "-lR", copy))
            finally:
                unmount(mnt)
            # A new mount, which has not computed any file sizes yet.
            subprocess.run([mounts.GGUFS, *options, model, mnt], check=True)
            try:
                note("metadata", milliseconds("cat", os.path.join(mnt, "metadata.json")))
                note("tensors", milliseconds("cat", os.path.join(mnt, "tensors.json")))
            finally:
                unmount(mnt)

    for what, ours, base, target in [
            ("exec to mounted (true)", "mount", "true", ("ours", "<=", 20)),
            ("ls -lR (a copy on the disk)", "ls", "ls copy", None),
            ("ls -lR again (a copy on the disk)", "ls again", "ls copy", None),
            ("cat metadata.json (cat the model)", "metadata", "cat model", ("ours", "<=", 100)),
            ("cat tensors.json (cat the model)", "tensors", "cat model", None)]:
        table.row(what, times[ours], times[base], "ms", target)
