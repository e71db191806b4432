#!/usr/bin/env python3
"""
Measures the mount and prints a table. `make bench` builds the programs and runs it.

Reads are compared with the null file system (tests/bench/null_fs.c), mounted with the same options.
The two take turns: ggufs, null, null, ggufs. A row shows the medians of both, and the median and
range of their ratios; a row below its target also what its reads cost. Several
readers are compared once more with what is possible if no processor ever waits ("busy"), with the
processor time that the server took. The whole table takes minutes; these variables shorten it:

    BENCH_TYPES=Q4_K,F16     only these types
    BENCH_VIEWS=f32          only this file of a tensor
    BENCH_ACCESS=cold,mmap   only these of cold, direct, hot, mmap, random; no start-up rows
    BENCH_ROUNDS=5           rounds
    BENCH_MIB=64             the size of a tensor as float32
    BENCH_OPTIONS="-o ..."   options of both mounts
    BENCH_PYTHON=v/bin/python  a Python that has the package gguf
    BENCH_BUSY=yes           measure although the processors work for others
    BENCH_REALTIME=no        keep the normal scheduling, see become_realtime()
"""
import os
import platform
import subprocess
import sys

import mounts
from environment import listed, processor, refuse_load
from reads import measure_checkpoints, measure_exports, measure_memory, measure_model, measure_reads
from startup import measure_startup
from table import Table

MEMORY_BYTES = 4 * 10**9


def become_realtime():
    """
    Give this process and its children real-time priority. Without it, waking up the file system or
    the reader on a busy machine may take longer than the read itself.
    """
    if os.environ.get("BENCH_REALTIME") == "no":
        return "shares the processors (BENCH_REALTIME=no)"
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return "shares the processors (real-time priority needs root)"
    return "with real-time priority"


def measure_packages(table, types):
    """Print the rows of bench_python.py, by the first Python that has the gguf package."""
    contrib = os.path.join(os.path.dirname(mounts.BUILD), "contrib", "python")
    environment = {**os.environ, "GGUFS_LIBRARY": os.path.join(mounts.BUILD, "libggufs.so.0"),
                   "PYTHONPATH": contrib}
    script = os.path.join(os.path.dirname(__file__), "bench_python.py")
    reasons = []
    for python in pythons():
        table.progress(f"the gguf package, by {python}")
        done = subprocess.run([python, script, *types], capture_output=True, text=True, check=False,
                              env=environment)
        if done.returncode == 0:
            table.line(done.stdout)
            return
        reasons.append(f"{python}: {done.stderr.strip().splitlines()[-1]}")
    table.line("no rows of the packages: " + "; ".join(reasons))


def pythons():
    """Returns the Python interpreters that may have the gguf package."""
    found = dict.fromkeys([os.environ.get("BENCH_PYTHON"), sys.executable, "/usr/bin/python3"])
    return [python for python in found if python and os.access(python, os.X_OK)]


def measure_numpy(table, model, cold):
    """Add rows against the gguf package. Uses the first Python that has it."""
    speeds, reasons = None, []
    with mounts.mounted(mounts.GGUFS, model) as folder:
        for python in pythons():
            table.progress(f"NumPy, by {python}")
            script = os.path.join(os.path.dirname(__file__), "numpy_speed.py")
            done = subprocess.run([python, script, model, folder, str(table.rounds), *cold],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0:
                speeds = {name: list(map(float, figures)) for name, *figures
                          in map(str.split, done.stdout.splitlines())}
                break
            reasons.append(f"{python}: {done.stderr.strip().splitlines()[-1]}")
    if not speeds:
        table.line("no rows against NumPy and the gguf package: " + "; ".join(reasons))
        return
    for name, theirs in speeds.items():
        table.row(f"{name} f32 cold", cold[name], theirs, "GB/s")


def main():
    mib = os.environ.get("BENCH_MIB", "64")
    model = os.path.join(mounts.BUILD, f"bench-{mib}.gguf")
    types, access = listed("BENCH_TYPES"), listed("BENCH_ACCESS")
    views = listed("BENCH_VIEWS") or ["f32", "raw", "bf16"]
    options = os.environ.get("BENCH_OPTIONS", "").split()
    table = Table(int(os.environ.get("BENCH_ROUNDS", "5")))

    refuse_load()
    scheduling = become_realtime()
    table.line(f"{processor()}, {len(os.sched_getaffinity(0))} processors, Linux "
               f"{platform.release()}; {scheduling}")
    table.line(f"{mib} MiB of float32 per tensor, {table.rounds} rounds {' '.join(options)}")
    if not access:
        table.section("start, 150,000 tokens and 1,000 tensors", base="other")
        measure_startup(table, os.path.join(mounts.BUILD, "big.gguf"), options)
        measure_memory(table, model, types, options, MEMORY_BYTES)
    table.section("reading a tensor (against the null file system)")
    cold = measure_reads(table, model, types, views, access, options)
    table.section("reading the model (against the null file system)")
    measure_model(table, model, access, options)
    table.section("reading the model in another type (against the null file system)")
    measure_exports(table, types, access, options)
    table.section("reading a checkpoint (against the null file system)")
    measure_checkpoints(table, types, access, options)
    if cold and not access:
        table.section("reading a tensor (against NumPy)", base="NumPy")
        measure_numpy(table, model, cold)
        table.line("\ndecoding in memory (against the gguf package)")
        measure_packages(table, types)
    table.summary()


main()
