#!/usr/bin/env python3
"""llama.cpp's converter makes the model again from hf/ of its mount.

    GGUFS_CONVERTER=.../convert_hf_to_gguf.py test_converter.py [MODEL.gguf]...

Compares all tensors bit for bit (ssm_a to within rounding), and the keys that the model and the converted file both have. Without
GGUFS_CONVERTER all is skipped. Needs the packages that the converter needs, among them sentencepiece and
transformers. Models whose hf/ the converter cannot take back are in NOT_CONVERTED, with the reason.
"""

import contextlib
import importlib.util
import io
import logging
import os
import pathlib
import sys
import tempfile

import numpy as np

import test_checkpoints

CONVERTER = os.environ.get("GGUFS_CONVERTER")

NOT_CONVERTED = {
    "gptj": "the converter has no GPT-J",
    "deepseek-moe": "transformers has no class",
    "mpt": "the converter knows the class by its name in remote code, MPTForCausalLM",
    "mpt-clip": "the same",
    "phi3": "of a byte-level vocabulary it wants the class GPT2Tokenizer",
}

# Keys that describe the file, or that the converter takes from elsewhere.
OTHER_KEYS = ("general.", "GGUF.", "split.", "quantize.", "tokenizer.chat_template")


def load_converter():
    """Return the converter's module, with the gguf package beside it."""
    path = pathlib.Path(CONVERTER)
    sys.path[:0] = [str(path.parent), str(path.parent / "gguf-py")]
    spec = importlib.util.spec_from_file_location("convert_hf_to_gguf", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def name_pretokenizer(gguf, model):
    """Let the converter take the model's pre-tokenizer: it knows published vocabularies only."""
    field = gguf.GGUFReader(model).get_field("tokenizer.ggml.pre")
    if field:
        sys.modules["conversion.base"].TextModel.get_vocab_base_pre = lambda *_: field.contents()


def convert(module, hf, out):
    """Convert a folder. The converter ends the process if it does not know the model."""
    arguments, sys.argv = sys.argv, ["convert", str(hf), "--outfile", str(out), "--outtype", "f16"]
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            module.main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError("the converter gives up") from end
    finally:
        sys.argv = arguments


def differences(gguf, model, made):
    """Return what a converted file has otherwise."""
    original, other = gguf.GGUFReader(model), gguf.GGUFReader(made)
    found = []
    ours = {tensor.name: tensor for tensor in original.tensors}
    theirs = {tensor.name: tensor for tensor in other.tensors}
    for name in sorted(ours.keys() ^ theirs.keys()):
        found.append(f"{name} is only in the {'model' if name in ours else 'converted file'}")
    for name in sorted(ours.keys() & theirs.keys()):
        a, b = ours[name], theirs[name]
        if a.tensor_type != b.tensor_type or not np.array_equal(a.shape, b.shape):
            found.append(f"{name} is {a.tensor_type.name} {list(a.shape)}, {b.tensor_type.name} {list(b.shape)}")
        elif not np.array_equal(a.data.view(np.uint8), b.data.view(np.uint8)) and not (
                # -exp(log(-x)) rounds
                name.endswith(".ssm_a") and np.allclose(a.data, b.data, rtol=1e-6)):
            found.append(f"{name} has other data")
    for name, field in original.fields.items():
        same = other.fields.get(name)
        if same and not name.startswith(OTHER_KEYS) and field.contents() != same.contents():
            found.append(f"{name}: {str(field.contents())[:60]} is {str(same.contents())[:60]}")
    return found


def check(module, model):
    """Return whether a model comes back, and a text about it."""
    with test_checkpoints.Mount(model, []) as mount, tempfile.TemporaryDirectory() as folder:
        if not (mount / "hf").exists():
            return False, (mount / "hf.unsupported.txt").read_text()
        made = pathlib.Path(folder, "made.gguf")
        gguf = sys.modules["gguf"]
        try:
            name_pretokenizer(gguf, model)
            convert(module, mount / "hf", made)
            found = differences(gguf, model, made)
        except Exception as reason:  # the others are still to be tried
            return False, f"{type(reason).__name__}: {reason}"[:300]
    return not found, "; ".join(found[:6]) or "ok"


def main():
    if not CONVERTER:
        print("skipped: GGUFS_CONVERTER does not name llama.cpp's convert_hf_to_gguf.py")
        return 0
    logging.disable()
    module = load_converter()
    models = [pathlib.Path(path) for path in sys.argv[1:]]
    n_good = n_bad = 0
    for model in models or sorted((test_checkpoints.FIXTURES / "archs").glob("*.gguf")):
        if model.stem in NOT_CONVERTED:
            print(f"{model.stem:28} not converted: {NOT_CONVERTED[model.stem]}")
            continue
        is_good, text = check(module, model)
        n_good += is_good
        n_bad += not is_good
        print(f"{model.stem:28} {text}", flush=True)
    print(f"{n_good} come back, {n_bad} do not")
    return n_bad > 0


if __name__ == "__main__":
    sys.exit(main())
