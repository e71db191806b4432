"""
Models whose checkpoint in hf/ has its tensors in another order than the file: rows are permuted
(llama), or matrices are transposed (gpt-2). Only their speed matters, so all weights are the same.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mount"))
from gguf_file import ARRAY, F32, FLOAT32, STRING, UINT32, Array, GgufFile  # noqa: E402
from gguf_reader import TYPES  # noqa: E402

N_EMBD = 2048
N_VOCAB = 64
FORMS = {"permuted": "llama", "transposed": "gpt2"}


def types_among(named, default):
    """The named types that a checkpoint can have, which are those of ggml; `default` if none is named."""
    known = {name for name, _, _ in TYPES.values()}
    return [name for name in named if name in known] if named else default


def type_id_of(name):
    return next(number for number, (known, _, _) in TYPES.items() if known == name)


def add_matrix(built, name, n_in, n_out, type_name):
    _, block_size, type_size = TYPES[type_id_of(type_name)]
    data = bytes([0x11]) * (n_in // block_size * type_size * n_out)
    built.tensor(name, [n_in, n_out], type_id_of(type_name), data)


def add_vector(built, name, n):
    built.tensor(name, [n], F32, bytes(4 * n))


def make(form, type_name, path):
    """Write a model with about 64 MB of float16."""
    architecture = FORMS[form]
    built = GgufFile()
    built.key(b"general.architecture", STRING, architecture.encode())
    is_llama = architecture == "llama"
    for key, value in {"embedding_length": N_EMBD, "block_count": 1, "context_length": 64,
                       "attention.head_count": 16, "feed_forward_length": 4 * N_EMBD if not is_llama else 256,
                       "attention.head_count_kv": 16}.items():
        built.key(f"{architecture}.{key}".encode(), UINT32, value)
    epsilon = "layer_norm_rms_epsilon" if is_llama else "layer_norm_epsilon"
    built.key(f"{architecture}.attention.{epsilon}".encode(), FLOAT32, 1e-5)
    built.key(b"tokenizer.ggml.model", STRING, b"llama" if is_llama else b"gpt2")
    built.key(b"tokenizer.ggml.tokens", ARRAY, Array(STRING, [b"t%d" % i for i in range(N_VOCAB)]))
    add_matrix(built, b"token_embd.weight", N_EMBD, N_VOCAB, "F16")
    add_vector(built, b"output_norm.weight", N_EMBD)
    add_vector(built, b"blk.0.attn_norm.weight", N_EMBD)
    add_vector(built, b"blk.0.ffn_norm.weight", N_EMBD)
    if is_llama:
        for name in "q", "k":
            add_matrix(built, b"blk.0.attn_%s.weight" % name.encode(), N_EMBD, N_EMBD, type_name)
        for name, n_in, n_out in (("attn_v", N_EMBD, N_EMBD), ("attn_output", N_EMBD, N_EMBD),
                                  ("ffn_gate", N_EMBD, 256), ("ffn_up", N_EMBD, 256),
                                  ("ffn_down", 256, N_EMBD)):
            add_matrix(built, b"blk.0.%s.weight" % name.encode(), n_in, n_out, type_name)
    else:
        add_matrix(built, b"position_embd.weight", N_EMBD, 64, "F16")
        add_vector(built, b"output_norm.bias", N_EMBD)
        add_vector(built, b"blk.0.attn_norm.bias", N_EMBD)
        add_vector(built, b"blk.0.ffn_norm.bias", N_EMBD)
        for name, n_in, n_out in (("attn_qkv", N_EMBD, 3 * N_EMBD), ("attn_output", N_EMBD, N_EMBD),
                                  ("ffn_up", N_EMBD, 4 * N_EMBD), ("ffn_down", 4 * N_EMBD, N_EMBD)):
            add_matrix(built, b"blk.0.%s.weight" % name.encode(), n_in, n_out, type_name)
            add_vector(built, b"blk.0.%s.bias" % name.encode(), n_out)
    built.write(path)
