#!/usr/bin/env python3
"""Decodes types with the packages ggufs and gguf: bench_python.py [TYPE…]

Both packages must be installed: python3 -m venv v && v/bin/pip install build/dist/ggufs-*.whl gguf, then
v/bin/python tests/bench/bench_python.py. Each row is one type that both decode, of the same random blocks, with the same
result: milliseconds of CPU time of one thread (the best of some runs) for 4096 × 4096 values, and how much of the work of
two calls one after the other two threads do in the same time; 2 is the most. The program fails if a value differs.
"""
import sys
import threading
import time

import ggufs
import gguf
import numpy
from gguf import quants

ROWS, COLUMNS = 4096, 4096


def blocks(kind, random):
    """Random bytes as quantized values, and true scales: a tensor of small values, quantized, where the package can."""
    values = random.standard_normal((64, COLUMNS), dtype="f4")
    try:
        data = quants.quantize(values, kind)
    except NotImplementedError:
        block, size = gguf.GGML_QUANT_SIZES[kind]
        data = random.integers(0, 256, (64, COLUMNS // block * size), dtype="u1")
    return numpy.ascontiguousarray(numpy.tile(data.view("u1"), (ROWS // 64, 1)))


def best(call, n, clock):
    times = []
    for _ in range(n):
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times)


def together(calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(names):
    random = numpy.random.default_rng(1)
    slowest = None
    print("type     ggufs ms  gguf ms  times  2 threads")
    for kind in gguf.GGMLQuantizationType:
        if names and kind.name not in names:
            continue
        try:
            data = blocks(kind, random)
            with numpy.errstate(all="ignore"):
                theirs = quants.dequantize(data, kind)
                out = ggufs.dequantize(data, kind.name, (ROWS, COLUMNS))
        except NotImplementedError:
            continue
        if numpy.shares_memory(theirs, data):
            continue  # F32: nothing is decoded
        theirs = theirs.astype("f4", copy=False)
        if not numpy.array_equal(out, theirs, equal_nan=True):
            sys.exit(f"bench_python.py: {kind.name}: the packages decode different values")
        other = out.copy()

        def decode(array=out, data=data, kind=kind):
            ggufs.dequantize(data, kind.name, (ROWS, COLUMNS), out=array)

        with numpy.errstate(all="ignore"):
            theirs_s = best(lambda data=data, kind=kind: quants.dequantize(data, kind), 3, time.thread_time)
        ours_s = best(decode, 20, time.thread_time)
        calls = [decode, lambda: decode(other)]
        one = best(lambda: [call() for call in calls], 10, time.perf_counter)
        two = best(lambda: together(calls), 10, time.perf_counter)
        times = theirs_s / ours_s
        print(f"{kind.name:8} {ours_s * 1e3:8.1f} {theirs_s * 1e3:8.0f} {times:6.0f} {one / two:10.2f}", flush=True)
        slowest = min(slowest or (times, kind.name), (times, kind.name))
    if slowest:
        print(f"the least: {slowest[0]:.0f} times, {slowest[1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
