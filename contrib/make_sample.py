#!/usr/bin/python3
"""Write the sample model of contrib/demo and the tests: make_sample.py OUT.gguf

The shape of a real llama with four layers, with pseudo-random weights in eleven tensor types. It runs, but talks
nonsense. The file is the same on every machine, byte for byte.
"""
import struct
import sys

import numpy as np

N_EMBD, N_FF, N_LAYERS, N_HEADS, N_KV_HEADS = 256, 512, 4, 8, 2
HEAD_DIM = N_EMBD // N_HEADS
N_KV = N_KV_HEADS * HEAD_DIM  # the width of keys and values

# The ordinary tokens: merged ones, the earliest merge first, then the letters.
PIECES = """▁t ▁a in he re on er ▁the at ▁s ▁w ▁o ou nd it es en is or ▁c an ed ▁b ▁f ing ▁p ▁in ▁m ▁of ▁and ▁to al ar ▁h
as le el ▁is ▁it ▁y ▁you ▁for ion ▁be ▁was ile ▁file od odel ▁model ▁r ▁re ad ▁read ▁n am ame ▁name ▁ e t a o i n s h r
d l u c m f w y p v b g k q j x z . , ' ! ? -""".split()
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
TOKENS = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL),
          *((f"<0x{i:02X}>", 0, BYTE) for i in range(256)),
          *((piece, -i, NORMAL) for i, piece in enumerate(PIECES)),
          ("<|im_start|>", 0, CONTROL), ("<|im_end|>", 0, CONTROL)]

CHAT_TEMPLATE = r"""{%- for message in messages %}
{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
MOSTLY_Q4_K_M = 15

KEYS = [
    ("general.architecture", STRING, "llama"),
    ("general.type", STRING, "model"),
    ("general.name", STRING, "ggufs sample"),
    ("general.author", STRING, "the ggufs authors"),
    ("general.description", STRING, "A small llama with pseudo-random weights. It runs and talks nonsense."),
    ("general.license", STRING, "MIT"),
    ("general.size_label", STRING, "2.4M"),
    ("general.tags", ARRAY, (STRING, ["sample", "text-generation"])),
    ("general.languages", ARRAY, (STRING, ["en"])),
    ("general.file_type", U32, MOSTLY_Q4_K_M),
    ("general.quantization_version", U32, 2),
    ("llama.context_length", U32, 2048),
    ("llama.embedding_length", U32, N_EMBD),
    ("llama.block_count", U32, N_LAYERS),
    ("llama.feed_forward_length", U32, N_FF),
    ("llama.attention.head_count", U32, N_HEADS),
    ("llama.attention.head_count_kv", U32, N_KV_HEADS),
    ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
    ("llama.rope.dimension_count", U32, HEAD_DIM),
    ("llama.rope.freq_base", F32, 10000),
    ("llama.vocab_size", U32, len(TOKENS)),
    ("tokenizer.ggml.model", STRING, "llama"),
    ("tokenizer.ggml.pre", STRING, "default"),
    ("tokenizer.ggml.tokens", ARRAY, (STRING, [text for text, _, _ in TOKENS])),
    ("tokenizer.ggml.scores", ARRAY, (F32, [score for _, score, _ in TOKENS])),
    ("tokenizer.ggml.token_type", ARRAY, (I32, [kind for _, _, kind in TOKENS])),
    ("tokenizer.ggml.unknown_token_id", U32, 0),
    ("tokenizer.ggml.bos_token_id", U32, 1),
    ("tokenizer.ggml.eos_token_id", U32, 2),
    ("tokenizer.ggml.eot_token_id", U32, len(TOKENS) - 1),
    ("tokenizer.ggml.add_bos_token", BOOL, True),
    ("tokenizer.ggml.add_eos_token", BOOL, False),
    ("tokenizer.ggml.add_space_prefix", BOOL, True),
    ("tokenizer.chat_template", STRING, CHAT_TEMPLATE),
]

# A quantized type: its number, elements and bytes of a block, the standard deviation of the elements if the scale d is
# 1, the offset of d, and for types with a minimum its offset, the middle of the quants, and the offset of the scales.
TYPES = {
    "Q4_0": (2, 32, 18, 4.64, 0, None),
    "Q8_0": (8, 32, 34, 73.9, 0, None),
    "Q2_K": (10, 256, 84, 9.84, 80, (82, 1.5, 0)),
    "Q3_K": (11, 256, 110, 43.3, 108, None),
    "Q4_K": (12, 256, 144, 168.3, 0, (2, 7.5, 4)),
    "Q5_K": (13, 256, 176, 337.2, 0, (2, 15.5, 4)),
    "Q6_K": (14, 256, 210, 1365.0, 208, None),
    "IQ4_NL": (20, 32, 18, 67.4, 0, None),
}
FLOAT_TYPES = {"F32": (0, "<f4"), "F16": (1, "<f2"), "BF16": (30, None)}

# The tensors of a layer: name, elements of a row, rows, standard deviation, and a type for each layer.
PARTS = [
    ("attn_norm", N_EMBD, 1, 0.1, "F32 F32 F32 F32"),
    ("attn_q", N_EMBD, N_EMBD, 0.05, "Q4_K Q4_K Q4_0 Q3_K"),
    ("attn_k", N_EMBD, N_KV, 0.05, "BF16 Q8_0 Q5_K Q4_K"),
    ("attn_v", N_EMBD, N_KV, 0.05, "F16 Q6_K Q8_0 Q6_K"),
    ("attn_output", N_EMBD, N_EMBD, 0.03, "Q5_K IQ4_NL Q4_K Q3_K"),
    ("ffn_norm", N_EMBD, 1, 0.1, "F32 F32 F32 F32"),
    ("ffn_gate", N_EMBD, N_FF, 0.04, "Q4_K Q4_K Q3_K Q2_K"),
    ("ffn_up", N_EMBD, N_FF, 0.04, "Q4_K Q3_K Q3_K Q2_K"),
    ("ffn_down", N_FF, N_EMBD, 0.03, "Q4_K Q3_K Q3_K Q2_K"),
]
TENSORS = [
    ("token_embd.weight", N_EMBD, len(TOKENS), 0.06, "Q4_K"),
    *((f"blk.{layer}.{name}.weight", width, rows, std, types.split()[layer])
      for layer in range(N_LAYERS) for name, width, rows, std, types in PARTS),
    ("output_norm.weight", N_EMBD, 1, 0.1, "F32"),
    ("output.weight", N_EMBD, len(TOKENS), 0.06, "Q6_K"),
]


class Random:
    """splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014."""

    def __init__(self, seed):
        self.state = seed

    def numbers(self, n):
        x = np.uint64(self.state) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self.state = int(x[-1])
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def floats(random, kind, n, mean, std):
    """Bell-shaped numbers. The sum of four uniform 16-bit numbers has a deviation of 2^16 * sqrt(4 / 12)."""
    sums = random.numbers(n).view(np.int16).reshape(n, 4).sum(axis=1, dtype=np.int32)
    values = np.float32(mean) + sums.astype(np.float32) * (np.float32(std) / np.float32(37837))
    return (values.view(np.uint32) >> 16).astype("<u2") if kind == "BF16" else values.astype(FLOAT_TYPES[kind][1])


def blocks(random, kind, n_blocks, std):
    """Random bytes, and scales for the standard deviation `std`."""
    _, _, size, deviation, d_at, minimum = TYPES[kind]
    numbers = random.numbers(n_blocks * (size + (1 if minimum else 2))).reshape(n_blocks, -1)
    out = (numbers[:, :size] >> np.uint64(56)).astype(np.uint8)
    d = np.float32(std) / np.float32(deviation) * ((192 + numbers[:, size] % np.uint64(128)).astype(np.float32) / 256)

    def store(at, values):
        out[:, at:at + 2] = values.astype("<f2")[:, None].view(np.uint8)

    if minimum:
        # The minimum of each sub-block is its scale, so that m = d * (the middle of the quants) centres the values.
        m_at, middle, at = minimum
        if kind == "Q2_K":
            out[:, at:at + 16] = (out[:, at:at + 16] & 15) * 0x11
        else:
            out[:, at + 4:at + 8] = out[:, at:at + 4]
            out[:, at + 8:at + 12] = (out[:, at + 8:at + 12] & 15) * 0x11
        store(m_at, d * np.float32(middle))
    else:
        # Signed quants reach one step further down than up; random signs balance this.
        d = np.where(numbers[:, size + 1] % np.uint64(2) != 0, -d, d)
    store(d_at, d)
    return out


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def value(kind, content):
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        element, items = content
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, item) for item in items)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], content)


def padded(data):
    return data + bytes(-len(data) % 32)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: make_sample.py OUT.gguf")
    random, infos, data = Random(2026), b"", b""
    for name, width, rows, std, kind in TENSORS:
        number, shape = (FLOAT_TYPES.get(kind) or TYPES[kind])[0], (width, rows)[:1 if rows == 1 else 2]
        infos += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number, len(data))
        if kind in FLOAT_TYPES:
            # Vectors are norms: factors around one.
            content = floats(random, kind, width * rows, 1 if rows == 1 else 0, std)
        else:
            content = blocks(random, kind, width * rows // TYPES[kind][1], std)
        data += padded(content.tobytes())
    keys = b"".join(string(key) + struct.pack("<I", kind) + value(kind, content) for key, kind, content in KEYS)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(TENSORS), len(KEYS)) + keys + infos
    with open(sys.argv[1], "wb") as file:
        file.write(padded(header) + data)


main()
