"""Measures reads of tensors through the mount, against the null file system."""

import itertools
import os
import tempfile

import checkpoints
import mounts

# (access, readers, label of the row, target of f32 as a share of the null file system's speed)
ACCESSES = [
    ("cold", 1, "cold", 0.90),
    ("direct", 1, "O_DIRECT", 0.70),
    ("hot", 1, "hot", 0.95),
    ("mmap", 1, "mmap", 0.90),
    ("cold", 2, "2 readers", 0.90),
    ("cold", 4, "4 readers", 0.90),
    ("random", 1, "4 KiB random", None),
]
RAW_TARGET = 0.95
# Of files that are decoded and rounded, and of those in another order as well.
TARGETS = {"f16": 0.85, "bf16": 0.85, "model.safetensors": 0.85, "hf/model.safetensors": 0.6}
# Of model.gguf in another type.
EXPORT_TARGET = 0.6
RANDOM_TARGET = 1.3  # times the null file system's time
RANDOM_READS = 4000
# Small files are read several times, to this sum.
LEAST_BYTES = 32 << 20
HOT_BYTES = 128 << 20


def measure_rounds(table, tensor, view, access, readers, model, folders):
    """Return the figures of (ggufs, null): for each a list with a tuple per round."""
    figures = ([], [])
    for round_number in range(table.rounds):
        # Alternate which one is first.
        for folder, results in list(zip(folders, figures))[::-1 if round_number % 2 else 1]:
            table.progress(f"{tensor.name} {view} {access} {readers}: round {round_number + 1}")
            tensor.bring_into_memory(model)
            path = os.path.join(folder, tensor.folder, view)
            n_bytes = RANDOM_READS * 4096 if access == "random" else \
                max(HOT_BYTES if access == "hot" else LEAST_BYTES, os.path.getsize(path))
            results.append(mounts.read(access, readers, n_bytes, path))
    return figures


def measure_view(table, tensor, view, wanted, model, folders, targets=TARGETS):
    """Measure all accesses to one file. Returns the speeds of cold reads of ggufs, or None."""
    cold = None
    for access, readers, label, f32_target in ACCESSES:
        if wanted and access not in wanted:
            continue
        ours, null = measure_rounds(table, tensor, view, access, readers, model, folders)
        what = f"{tensor.name} {view} {label}"
        if access == "random":
            table.row(f"{what} p50", [f[1] for f in ours], [f[1] for f in null], "us",
                      ("ratio", "<=", RANDOM_TARGET), f"{view} {label} p50")
            table.row(f"{what} p99", [f[2] for f in ours], [f[2] for f in null], "us")
            continue
        target = f32_target if view == "f32" else targets.get(view, RAW_TARGET)
        table.row(what, [f[0] for f in ours], [f[0] for f in null], "GB/s",
                  ("ratio", ">=", target), f"{view} {label}")
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
        for type_name, export in itertools.product(checkpoints.types_among(types, ["BF16", "Q4_K"]),
                                                   ["q8_0", "q4_0"]):
            model = os.path.join(folder, "model.gguf")
            checkpoints.make("permuted", type_name, model)
            exporting = ["-o", f"export={export}"]
            with mounts.mounted(mounts.GGUFS, model, [*options, *exporting]) as ours, \
                    mounts.mounted(mounts.NULL, model, [*options, *exporting]) as null:
                measure_view(table, mounts.WholeModel(f"{type_name} as {export}"), "model.gguf",
                             wanted or ["cold", "mmap"], model, (ours, null),
                             {"model.gguf": EXPORT_TARGET})


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
                             wanted or ["cold", "mmap"], model, (ours, null))


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
