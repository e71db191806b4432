#!/usr/bin/env python3
"""Times a mount from its start to its end: startup.py GGUFS MODEL

Every figure is the median of five runs with the spread, and its ratio to a command of the system
that does the same amount of plain work, taken in the same run.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 5


def seconds(*command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: startup.py GGUFS MODEL")
    ggufs, model = sys.argv[1:]
    times = {}

    def note(name, value):
        times.setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory() as folder:
        mnt = os.path.join(folder, "mnt")
        copy = os.path.join(folder, "copy")
        os.mkdir(mnt)
        for _ in range(RUNS):
            note("true", seconds("true"))
            note("cat model", seconds("cat", model))
            note("mount", seconds(ggufs, model, mnt))
            try:
                note("ls -lR", seconds("ls", "-lR", mnt))
                note("ls -lR again", seconds("ls", "-lR", mnt))
                if not os.path.exists(copy):
                    # The same names on the disk, for a comparison.
                    shutil.copytree(mnt, copy, copy_function=lambda _, to: open(to, "w").close())
                note("ls -lR of a copy", seconds("ls", "-lR", copy))
            finally:
                subprocess.run(["fusermount3", "-u", mnt], check=True)
            subprocess.run([ggufs, model, mnt], check=True)
            try:
                note("cat metadata.json", seconds("cat", os.path.join(mnt, "metadata.json")))
                note("cat tensors.json", seconds("cat", os.path.join(mnt, "tensors.json")))
            finally:
                subprocess.run(["fusermount3", "-u", mnt], check=True)

    def row(name, base):
        median = statistics.median(times[name])
        ratio = f"{median / statistics.median(times[base]):7.2f} x {base}" if base else ""
        print(f"{name:20} {median * 1000:8.1f} ms  ({min(times[name]) * 1000:.1f} to "
              f"{max(times[name]) * 1000:.1f}) {ratio}")

    print(f"{model}: {os.path.getsize(model)} bytes, median of {RUNS} runs")
    row("true", None)
    row("cat model", None)
    row("mount", "true")
    row("ls -lR of a copy", None)
    row("ls -lR", "ls -lR of a copy")
    row("ls -lR again", "ls -lR of a copy")
    row("cat metadata.json", "cat model")
    row("cat tensors.json", "cat model")


main()
