#!/usr/bin/env python3
"""Load hf/ of models with transformers and compare the logits with expected ones.

    test_checkpoints.py [FOLDER | MODEL.gguf]...

Each MODEL.gguf of a folder that has a MODEL.logits.f32 beside it is mounted, and its hf/ loaded in
float32 by AutoModelForCausalLM. No weight may be missing, unexpected or of another shape, and the
logits of the tokens in tokens.i32 must equal the expected ones. A MODEL.config.json beside it must
have the same effective values as hf/config.json. Prints a row per model.

One process loads all models. Needs torch and transformers, version 5 or 4. With version 4, which reads
rope_scaling instead of rope_parameters, configurations are not compared: it does not understand those
that version 5 has written.
"""

import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
GGUFS = os.environ.get("GGUFS", str(ROOT / "build/ggufs"))
FIXTURES = pathlib.Path(os.environ.get("GGUFS_FIXTURES", ROOT.parent / "shared/fixtures"))

# What a GGUF file does not hold, or holds in another form that means the same, or what the class
# does not use (expansion_ratio) or not for the result (chunk_size).
UNKNOWN = {"chunk_size", "expansion_ratio",
           "architectures", "bos_token_id", "dtype", "eos_token_id", "initializer_range",
           "max_position_embeddings", "model_type", "pad_token_id", "torch_dtype",
           "transformers_version", "use_cache", "vocab_size", "sep_token_id", "decoder_start_token_id"}

IS_OLD = int(transformers.__version__.split(".")[0]) < 5

# Models that transformers 4 loads and computes otherwise than 5, or lacks, and why.
WRONG_IN_4 = {
    "mamba2": "its norm of all groups together is not that of the published models",
}


class Mount:
    """A model mounted in a temporary directory."""

    def __init__(self, model, options):
        self.directory = tempfile.mkdtemp(prefix="ggufs-")
        subprocess.run([GGUFS, *options, str(model), self.directory], check=True)

    def __enter__(self):
        return pathlib.Path(self.directory)

    def __exit__(self, *_):
        for _ in range(50):
            if subprocess.run(["fusermount3", "-u", self.directory], check=False).returncode == 0:
                break
            time.sleep(0.1)
        os.rmdir(self.directory)


def differences(original, made):
    """Return the members of a configuration that another one does not have with equal values."""
    found = []
    for name, value in original.items():
        if name in UNKNOWN or name.startswith("_") or name not in made:
            continue
        other = made[name]
        if isinstance(value, float) and isinstance(other, (int, float)):
            same = abs(value - other) <= 1e-6 * max(abs(value), abs(other))
        elif isinstance(value, dict) and isinstance(other, dict):
            same = not differences(value, other)
        else:
            same = value == other
        if not same:
            found.append(f"{name}: {value} is {other}")
    return found


def effective(path):
    """Return the values that transformers reads from a configuration."""
    return json.loads(transformers.AutoConfig.from_pretrained(path).to_json_string(use_diff=False))


def compare_configs(model, hf):
    """Return differences of the effective values of two configurations."""
    original = model.with_suffix(".config.json")
    if not original.exists():
        return []
    return differences(effective(original), effective(hf / "config.json"))


def load(hf):
    """Return the model, and what did not fit."""
    network, info = transformers.AutoModelForCausalLM.from_pretrained(
        hf, dtype=torch.float32, output_loading_info=True,
        # sdpa of version 4 leaves out the softcap of scores
        **({"attn_implementation": "eager"} if IS_OLD else {}))
    return network.eval(), [f"{kind}: {sorted(map(str, names))[:3]}" for kind, names in info.items() if names]


def nmse(model, network):
    """Return the error of the logits, relative to the expected ones."""
    tokens = model.with_name("tokens.i32")
    tokens = tokens if tokens.exists() else FIXTURES / "archs/tokens.i32"
    expected = np.fromfile(model.with_suffix(".logits.f32"), np.float32).astype(np.float64)
    ids = torch.from_numpy(np.fromfile(tokens, np.int32).astype(np.int64))[None]
    with torch.no_grad():
        logits = network(ids, use_cache=False).logits[0].double().numpy().ravel()
    if logits.size != expected.size:
        raise ValueError(f"{logits.size} logits, expected {expected.size}")
    return float(((logits - expected) ** 2).sum() / (expected**2).sum())


def check_mounted(model, mount, limit):
    """Return the error of the logits of a mounted model, and what is wrong."""
    if not (mount / "hf").exists():
        reason = (mount / "hf.unsupported.txt").read_text().replace("\n", " ")
        if model.with_suffix(".config.json").exists():
            raise ValueError(reason)
        print(reason)
        return float("nan"), []
    if IS_OLD and model.stem in WRONG_IN_4:
        print(f"{model.stem}: not with transformers {transformers.__version__}: {WRONG_IN_4[model.stem]}")
        return float("nan"), []
    faults = [] if IS_OLD else compare_configs(model, mount / "hf")
    network, misfits = load(mount / "hf")
    error = nmse(model, network)
    if not error <= limit:
        faults.insert(0, f"above {limit:g}")
    if (mount / "hf/unused_tensors.txt").exists():
        faults.append((mount / "hf/unused_tensors.txt").read_text().replace("\n", " "))
    return error, misfits + faults


def check(model, options, limit):
    """Return a row of the table about a model, and whether all is well."""
    with Mount(model, options) as mount:
        try:
            error, faults = check_mounted(model, mount, limit)
        except Exception as reason:  # the others are still to be tried
            error, faults = float("nan"), [f"{type(reason).__name__}: {reason}"[:600]]
        gc.collect()  # the weights are mapped from the mount
    verdict = "; ".join(faults) or ("skipped" if np.isnan(error) else "ok")
    return f"{model.stem:28} {error:9.2e}  {verdict}", not faults


def plan(paths):
    """Yield models, mount options and limits."""
    for path in paths:
        files = sorted(path.glob("*.gguf")) if path.is_dir() else [path]
        for model in files:
            if not model.with_suffix(".logits.f32").exists():
                continue
            if model.parent.name == "quants":
                yield model, ["-o", "dtype=f32"], 1e-10
                yield model, [], 1e-4
            else:
                yield model, [], 1e-8


def main():
    paths = [pathlib.Path(path) for path in sys.argv[1:]]
    if not paths:
        paths = [FIXTURES / "archs", FIXTURES / "quants"]
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    n_bad = 0
    for model, options, limit in plan(paths):
        row, is_good = check(model, options, limit)
        n_bad += not is_good
        print(row, flush=True)
    print("all agree" if n_bad == 0 else f"{n_bad} do not agree")
    return n_bad > 0


if __name__ == "__main__":
    sys.exit(main())
