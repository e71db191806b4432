"""Measures reads of tensors through the mount, against the null file system."""

import itertools
import math
import os
import statistics
import tempfile

import checkpoints
import mounts

# (access, readers, label of the row, the most to ask for, as a share of the null file system's speed)
ACCESSES = [
    ("cold", 1, "cold", 0.90),
    ("direct", 1, "O_DIRECT", 0.70),
    ("hot", 1, "hot", 0.95),
    ("mmap", 1, "mmap", 0.90),
    ("cold", 2, "2 readers", 0.90),
    ("cold", 4, "4 readers", 0.90),
    ("random", 1, "4 KiB random", None),
]
# Of all that is decoded or copied.
TARGET = 0.90
# Of model.gguf in a type that needs an encoder, and of tensors whose rows are columns in the file.
EXPORT_TARGET = 0.75
FORM_TARGETS = {"permuted": TARGET, "transposed": 0.5}
RANDOM_TARGET = 1.3  # times the null file system's time
RANDOM_READS = 4000
EXPORTED = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K", "IQ3_S"]
# Small files are read several times, to this sum.
LEAST_BYTES = 32 << 20
HOT_BYTES = 128 << 20


def measure_rounds(table, tensor, view, access, readers, model, folders):
    """
    Return the figures of (ggufs, null), for each a list with a tuple per round, and the microseconds
    of processor time that their servers take for a MiB.
    """
    figures, costs = ([], []), ([], [])
    servers = [mounts.server_of(folder) for folder in folders]
    for round_number in range(table.rounds):
        # Alternate which one is first.
        for i in (0, 1) if round_number % 2 == 0 else (1, 0):
            table.progress(f"{tensor.name} {view} {access} {readers}: round {round_number + 1}")
            tensor.bring_into_memory(model)
            path = os.path.join(folders[i], tensor.folder, view)
            size = os.path.getsize(path)
            n_bytes = RANDOM_READS * 4096 if access == "random" else \
                max(HOT_BYTES if access == "hot" else LEAST_BYTES, size)
            before = mounts.processor_seconds(servers[i])
            figures[i].append(mounts.read(access, readers, n_bytes, path))
            spent = mounts.processor_seconds(servers[i]) - before
            costs[i].append(spent * 1e6 * (1 << 20) / (math.ceil(n_bytes / size) * size))
    return figures, [statistics.median(cost) for cost in costs]


def allowed(null, costs):
    """
    The speeds that the processors allow: those of the null file system, and what the server's work
    takes longer, divided among them.
    """
    more = (costs[0] - costs[1]) / len(os.sched_getaffinity(0))
    return [(1 << 20) / 1e3 / ((1 << 20) / 1e3 / f[0] + more) for f in null]


def explain(ours, null, costs):
    """Say what a row that misses its target spends: the servers' processor time, and the time in all."""
    times = [(1 << 20) / 1e3 / statistics.median(f[0] for f in figures) for figures in (ours, null)]
    return (f"    a MiB takes {times[0]:.0f} us (null {times[1]:.0f}), of the server's processors "
            f"{costs[0]:.0f} us (null {costs[1]:.0f})")


def measure_view(table, tensor, view, wanted, model, folders, target=TARGET):
    """Measure all accesses to one file. Returns the speeds of cold reads of ggufs, or None."""
    cold = None
    for access, readers, label, most in ACCESSES:
        if wanted and access not in wanted:
            continue
        (ours, null), costs = measure_rounds(table, tensor, view, access, readers, model, folders)
        what = f"{tensor.name} {view} {label}"
        if access == "random":
            table.row(f"{what} p50", [f[1] for f in ours], [f[1] for f in null], "us",
                      ("ratio", "<=", RANDOM_TARGET), f"{view} {label} p50")
            table.row(f"{what} p99", [f[2] for f in ours], [f[2] for f in null], "us")
            continue
        if readers > 1:
            table.row(what, [f[0] for f in ours], [f[0] for f in null], "GB/s")
            table.row(f"{what}, busy", [f[0] for f in ours], allowed(null, costs), "GB/s",
                      ("ratio", ">=", most), f"{view} {label}, busy")
            continue
        is_met = table.row(what, [f[0] for f in ours], [f[0] for f in null], "GB/s",
                           ("ratio", ">=", min(most, target)), f"{view} {label} {min(most, target):.2f}")
        if not is_met and access != "hot":
            table.line(explain(ours, null, costs))
        if (access, readers) == ("cold", 1):
            cold = [f[0] for f in ours]
    return cold


def measure_reads(table, model, types, views, wanted, options):
    """Measure the tensors. Returns the speeds of cold reads of f32, by type."""
    cold = {}
    with mounts.mounted(mounts.GGUFS, model, options) as ours, \
            mounts.mounted(mounts.NULL, model, options) as null:
        for name in types or mounts.tensor_names(ours):
            tensor = mounts.Tensor(ours, name)
            for view in views:
                result = measure_view(table, tensor, view, wanted, model, (ours, null))
                if view == "f32" and result:
                    cold[name] = result
    return cold


def measure_model(table, model, wanted, options):
    """Measure model.gguf: the stored file, and with an edit, for which ggufs writes the header."""
    stored = ["-o", "export=stored"]  # some types of the model are not llama.cpp's
    edit = ["-o", "set=general.name=str:edited"]
    for name, more in (("plain", stored), ("edited", [*stored, *edit])):
        with mounts.mounted(mounts.GGUFS, model, [*options, *more]) as ours, \
                mounts.mounted(mounts.NULL, model, [*options, *more]) as null:
            measure_view(table, mounts.WholeModel(name), "model.gguf", wanted, model, (ours, null))


def measure_exports(table, types, wanted, options):
    """Measure model.gguf in another type: nearly all tensors are decoded and encoded."""
    with tempfile.TemporaryDirectory(prefix="ggufs-bench-") as folder:
        for type_name, export in itertools.product(checkpoints.types_among(types, EXPORTED),
                                                   ["q8_0", "q4_0"]):
            model = os.path.join(folder, "model.gguf")
            checkpoints.make("permuted", type_name, model)
            exporting = ["-o", f"export={export}"]
            with mounts.mounted(mounts.GGUFS, model, [*options, *exporting]) as ours, \
                    mounts.mounted(mounts.NULL, model, [*options, *exporting]) as null:
                measure_view(table, mounts.WholeModel(f"{type_name} as {export}"), "model.gguf",
                             wanted or ["cold", "mmap"], model, (ours, null),
                             TARGET if export == type_name.lower() else EXPORT_TARGET)


def measure_checkpoints(table, types, wanted, options):
    """Measure the weights in hf/, of which nearly all are in another order than in the file."""
    with tempfile.TemporaryDirectory(prefix="ggufs-bench-") as folder:
        for form, type_name in itertools.product(
                checkpoints.FORMS, checkpoints.types_among(types, ["F16", "Q4_K", "Q8_0"])):
            model = os.path.join(folder, "model.gguf")
            checkpoints.make(form, type_name, model)
            with mounts.mounted(mounts.GGUFS, model, options) as ours, \
                    mounts.mounted(mounts.NULL, model, options) as null:
                measure_view(table, mounts.WholeModel(f"{type_name} {form}"), "hf/model.safetensors",
                             wanted or ["cold", "mmap"], model, (ours, null), FORM_TARGETS[form])


def measure_memory(table, model, types, options, n_bytes):
    """Measure the anonymous memory of the server while four readers read each file."""
    with mounts.mounted(mounts.GGUFS, model, options) as folder:
        names = types or mounts.tensor_names(folder)
        server = mounts.server_of(folder)
        done = peak = 0
        for name in itertools.cycle(names):
            if done >= n_bytes:
                break
            table.progress(f"memory: {done >> 20} MiB")
            path = os.path.join(folder, "tensors", name, "f32")
            size = os.path.getsize(path)
            mounts.read("cold", 4, size, path)
            done += size
            peak = max(peak, mounts.anonymous_bytes(server))
    table.row(f"anonymous memory, {n_bytes // 10**9} GB of f32 read", [peak / (1 << 20)], None, "MiB",
              ("ours", "<=", 64))
