#!/usr/bin/env python3
"""Statistics of a model that outgrows one machine: cluster_statistics.py MOUNT [SCHEDULER]

Each Dask worker decodes its part of every tensor from the mount, and only sums travel. All machines
of a cluster need the mount at the same path: a mount of their own on a model in shared storage, or
one that is exported. Without the address of a scheduler, two workers are started on this machine.
"""
import json
import sys

import dask.distributed
import numpy

ROWS_AT_A_TIME = 4096


def sums_of(path, begin, end):
    """Return the number, the sum, the sum of squares and the largest magnitude of some rows."""
    values = numpy.load(path, mmap_mode="r")
    values = values.reshape(-1, values.shape[-1])[begin:end].astype(numpy.float64)
    return numpy.array([values.size, values.sum(), (values**2).sum(), numpy.abs(values).max()])


def main():
    mount = sys.argv[1]
    where = {"address": sys.argv[2]} if len(sys.argv) > 2 else \
        {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with open(f"{mount}/tensors.json", encoding="utf-8") as file:
        infos = json.load(file)
    with dask.distributed.Client(**where) as client:
        parts = []
        for info in infos:
            n_rows = info["n_elements"] // info["shape"][-1]
            parts += [(info["type"], client.submit(sums_of, f"{mount}/{info['path']}/f32.npy", begin,
                                                   begin + ROWS_AT_A_TIME))
                      for begin in range(0, n_rows, ROWS_AT_A_TIME)]
        totals = {}
        for type_name, part in parts:
            count, total, squares, most = part.result()
            old = totals.get(type_name, (0, 0, 0, 0))
            totals[type_name] = (old[0] + count, old[1] + total, old[2] + squares, max(old[3], most))
    print(f"{'type':6} {'elements':>10} {'std':>8} {'largest':>8}")
    for type_name, (count, total, squares, most) in sorted(totals.items()):
        std = (squares / count - (total / count)**2)**0.5
        print(f"{type_name:6} {count:10.0f} {std:8.4f} {most:8.4f}")


if __name__ == "__main__":  # workers import this file
    main()
