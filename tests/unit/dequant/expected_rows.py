"""The interleaved types of expected.py: where each element of row k lies in a stored block."""
import os
import re

import numpy as np

import expected_ik_plain as plain

DEQUANT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../dequant")
IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10,
                       1, 13, 25, 38, 53, 69, 89, 113], np.int16)
E2M1_DOUBLED = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int16)


def floats(numbers):
    return numbers.astype(np.float32)


def put(blocks, columns, pieces):
    """Elements in natural order, from pairs of their columns and their codes."""
    q = np.zeros((len(blocks), columns), np.int16)
    seen = np.zeros(columns, int)
    for places, codes in pieces:
        q[:, places] |= codes.astype(np.int16)
        seen[places] += 1
    assert (seen == seen[0]).all()
    return q


# ---- 32 columns ----

def runs(blocks, k, run_bytes):
    """Nibbles of Q4_0 bytes in runs of a row."""
    rows = blocks["qs"].shape[-1] // 16
    i = np.arange(16)
    places = i // run_bytes * run_bytes * rows + run_bytes * k + i % run_bytes
    data = blocks["qs"][:, places]
    return put(blocks, 32, [(i, data & 15), (i + 16, data >> 4)])


def row_scale(blocks, k):
    return floats(blocks["d"][:, k])[:, None]


def q4_0_x(run_bytes):
    def decode(blocks, header, k):
        q = runs(blocks, k, run_bytes)
        return row_scale(blocks, k) * floats(np.where(q > 7, q - 16, q))
    return decode


def decode_q4_0_r8(blocks, header, k):
    return row_scale(blocks, k) * floats(runs(blocks, k, 4) - 8)


def decode_mxfp4_r8(blocks, header, k):
    scale = np.ldexp(np.float32(1), blocks["e"][:, k].astype(int) - 128).astype(np.float32)
    return scale[:, None] * floats(E2M1_DOUBLED[runs(blocks, k, 4)])


def r4_nibbles(qs, k):
    """Pairs for put(): 64 bytes per 32 columns; byte 16l+4k+i."""
    pieces = []
    for block in range(qs.shape[-1] // 64):
        for run, first in enumerate((0, 16, 4, 20)):
            at = 64 * block + 16 * run + 4 * k
            c = 32 * block + first + np.arange(4)
            pieces += [(c, qs[:, at:at + 4] & 15), (c + 8, qs[:, at:at + 4] >> 4)]
    return pieces


def decode_q5_0_r4(blocks, header, k):
    pieces = r4_nibbles(blocks["qs"], k)
    high = blocks["qh"][:, 4 * k:4 * k + 4]
    for run, first in enumerate((0, 16, 4, 20)):
        c = first + np.arange(4)
        pieces += [(c, (high >> run & 1) << 4), (c + 8, (high >> (4 + run) & 1) << 4)]
    d = row_scale(blocks, k)
    return d * floats(put(blocks, 32, pieces)) + np.float32(-16) * d


def bytes_in_fours(qs, rows, columns, k):
    c = np.arange(columns)
    return qs[:, 4 * rows * (c // 4) + 4 * k + c % 4]


def decode_q8_0_r8(blocks, header, k):
    return row_scale(blocks, k) * floats(bytes_in_fours(blocks["qs"].view("i1"), 8, 32, k))


def decode_q8_k_r8(blocks, header, k):
    return row_scale(blocks, k) * floats(bytes_in_fours(blocks["qs"].view("i1"), 8, 256, k))


def decode_q8_k_r16(blocks, header, k):
    q = bytes_in_fours(blocks["qs"], 16, 256, k).astype(np.int16)
    return row_scale(blocks, k) * floats(q - 128)


def decode_bf16_r16(blocks, header, k):
    return (blocks["bits"][:, 2 * k:2 * k + 2].astype("<u4") << 16).view("<f4")


# ---- K types ----

def pairs(qs, k):
    """Pairs for put(): 32 bytes per 32 columns; byte 16h+4k+i, bits 2t = column 16h+4t+i."""
    return [(16 * s + 4 * t + np.arange(4),
             qs[:, 16 * s + 4 * k:16 * s + 4 * k + 4] >> (2 * t) & 3)
            for s in range(16) for t in range(4)]


def bit_pieces(qh, k, columns, shift):
    """Pairs for put(): 16 bytes per 32 columns; bit n of byte 4k+i = column columns[n]+i."""
    return [(32 * b + first + np.arange(4),
             (qh[:, 16 * b + 4 * k:16 * b + 4 * k + 4] >> n & 1) << shift)
            for b in range(8) for n, first in enumerate(columns)]


def spread(per_block, n):
    return np.repeat(per_block, n, axis=1)


def decode_q2_k_r4(blocks, header, k):
    both = blocks["scales"][:, 4 * np.arange(16) + k]
    scales = row_scale(blocks, k) * floats(both & 15)
    mins = floats(blocks["m"][:, k])[:, None] * floats(both >> 4)
    q = put(blocks, 256, pairs(blocks["qs"], k))
    return spread(scales, 16) * floats(q) - spread(mins, 16)


def six_bit_scales(blocks, n):
    high = blocks["high"][:, n % 16] >> (2 * (n // 16)).astype("u1") & 3
    low = blocks["low"][:, n % 32] >> (4 * (n // 32)).astype("u1") & 15
    return high.astype(np.int16) << 4 | low


def decode_q3_k_r4(blocks, header, k):
    scales = six_bit_scales(blocks, 4 * np.arange(16) + k) - 32
    q = put(blocks, 256, pairs(blocks["qs"], k)) + put(
        blocks, 256, bit_pieces(blocks["qh"], k, range(0, 32, 4), 2))
    return spread(row_scale(blocks, k) * floats(scales), 16) * floats(q - 4)


def k_scales(blocks, k):
    n = 4 * np.arange(8) + k
    high = blocks["high"][:, n % 16] >> (4 * (n // 16)).astype("u1")
    low = blocks["low"][:, n]
    scales = row_scale(blocks, k) * floats((high & 3) << 4 | low & 15)
    mins = floats(blocks["m"][:, k])[:, None] * floats((high >> 2 & 3) << 4 | low >> 4)
    return spread(scales, 32), spread(mins, 32)


def decode_q4_k_r4(blocks, header, k):
    scales, mins = k_scales(blocks, k)
    return scales * floats(put(blocks, 256, r4_nibbles(blocks["qs"], k))) - mins


def decode_q5_k_r4(blocks, header, k):
    scales, mins = k_scales(blocks, k)
    q = put(blocks, 256, r4_nibbles(blocks["qs"], k) +
            bit_pieces(blocks["qh"], k, (0, 8, 4, 12, 16, 24, 20, 28), 4))
    return scales * floats(q) - mins


def decode_q6_k_r4(blocks, header, k):
    pieces = r4_nibbles(blocks["qs"], k)
    for s in range(16):
        high = blocks["qh"][:, 16 * s + 4 * k:16 * s + 4 * k + 4]
        for n, first in enumerate((0, 8, 4, 12)):
            pieces.append((16 * s + first + np.arange(4), (high >> (2 * n) & 3) << 4))
    scales = row_scale(blocks, k) * floats(blocks["scales"].view("i1")[:, 4 * np.arange(16) + k])
    return spread(scales, 16) * floats(put(blocks, 256, pieces) - 32)


# ---- IQ types ----

LEVELS = {"iq1_grid": (-1, 0, 1), "iq3_xxs_grid": (4, 12, 20, 28, 36, 44, 52, 62),
          "iq3_s_grid": (1, 3, 5, 7, 9, 11, 13, 15)}


def read_grid(name, wide):
    """A grid of dequant/iq_grids.c, which golden files confirm: runs of bytes, from their codes."""
    with open(os.path.join(DEQUANT, "iq_grids.c"), encoding="ascii") as file:
        text = file.read().split(f" dequant_{name}[", 1)[1].split("{", 1)[1].split("}", 1)[0]
    codes = np.array([int(word[i:i + 4], 16) for word in re.findall("0x([0-9a-f]{16})", text)
                      for i in range(0, 16, 4)])
    bits = 16 // wide
    levels = np.array(LEVELS.get(name, (8, 25, 43)), "i1")
    return levels[codes[:, None] >> bits * np.arange(wide) & (1 << bits) - 1]


def apply_signs(values, signs):
    """`values`: (blocks, runs, 8); `signs`: (blocks, runs), a bit each."""
    bits = signs[..., None].astype(np.int16) >> np.arange(8) & 1
    return np.where(bits == 1, -values.astype(np.int16), values).reshape(len(values), -1)


def r4_signs(blocks, k):
    """Scales of the 8 blocks of 32, signs of the 32 runs."""
    at = (16 * np.arange(8)[:, None] + 4 * k + np.arange(4)).reshape(-1)
    data = blocks["signs"][:, at]
    scales = ((data & 1).reshape(-1, 8, 4) << np.arange(4)).sum(axis=2)
    s = data & 254
    return scales, s ^ s >> 1


def iq_scales(blocks, k, scales, divisor):
    return row_scale(blocks, k) / np.float32(divisor) * floats(2 * scales + 1)


def in_fours(numbers, k):
    return numbers[:, (16 * np.arange(8)[:, None] + 4 * k + np.arange(4)).reshape(-1)]


def decode_iq2_xxs_r4(blocks, header, k):
    scales, signs = r4_signs(blocks, k)
    values = apply_signs(read_grid("iq2_xxs_grid", 8)[in_fours(blocks["qs"], k)], signs)
    return spread(iq_scales(blocks, k, scales, 8), 32) * floats(values)


def half_scales(blocks, k):
    both = blocks["scales"][:, 4 * np.arange(8) + k]
    return np.stack([both & 15, both >> 4], axis=2).reshape(-1, 16).astype(np.int16)


def decode_iq2_xs_r4(blocks, header, k):
    words = in_fours(blocks["qs"], k)
    s = words >> 9
    signs = (s ^ s << 1) & 255
    values = apply_signs(read_grid("iq2_xs_grid", 8)[words & 511], signs)
    return spread(iq_scales(blocks, k, half_scales(blocks, k), 8), 16) * floats(values)


def decode_iq2_s_r4(blocks, header, k):
    high = blocks["qh"][:, 4 * np.arange(8) + k]
    high = (high[:, :, None] >> (2 * np.arange(4)).astype("u1") & 3).reshape(-1, 32)
    index = in_fours(blocks["qs"], k).astype(int) | high.astype(int) << 8
    values = apply_signs(read_grid("iq2_s_grid", 8)[index], in_fours(blocks["signs"], k))
    return spread(iq_scales(blocks, k, half_scales(blocks, k), 8), 16) * floats(values)


def decode_iq3_xxs_r4(blocks, header, k):
    scales, signs = r4_signs(blocks, k)
    at = (32 * np.arange(8)[:, None] + 8 * k + np.arange(8)).reshape(-1)
    values = read_grid("iq3_xxs_grid", 4)[blocks["qs"][:, at]].reshape(-1, 32, 8)
    return spread(iq_scales(blocks, k, scales, 4), 32) * floats(apply_signs(values, signs))


def decode_iq3_s_r4(blocks, header, k):
    i = np.arange(4)
    at = np.concatenate([8 * i + k, 8 * i + 4 + k])  # columns 4i, then 16+4i
    at = (32 * np.arange(8)[:, None] + at).reshape(-1)
    high = blocks["qh"][:, 4 * np.arange(8) + k][:, :, None] >> np.arange(8).astype("u1") & 1
    index = blocks["qs"][:, at].astype(int) | high.reshape(-1, 64).astype(int) << 8
    values = read_grid("iq3_s_grid", 4)[index].reshape(-1, 8, 8, 4)
    signs = in_fours(blocks["signs"], k).reshape(-1, 8, 1, 4) >> np.arange(8).astype("u1")[:, None]
    values = np.where(signs & 1 == 1, -values.astype(np.int16), values).reshape(-1, 256)
    n = 4 * np.arange(8) + k
    scales = blocks["scales"][:, n % 16] >> (4 * (n // 16)).astype("u1") & 15
    return spread(iq_scales(blocks, k, scales.astype(np.int16), 1), 32) * floats(values)


def decode_iq4_xs_r8(blocks, header, k):
    pieces = []
    for run in range(32):
        data = blocks["qs"][:, 32 * run + 4 * k:32 * run + 4 * k + 4]
        c = 8 * run + np.arange(4)
        pieces += [(c, data & 15), (c + 4, data >> 4)]
    scales = six_bit_scales(blocks, 8 * np.arange(8) + k) - 32
    values = IQ4_VALUES[put(blocks, 256, pieces)]
    return spread(row_scale(blocks, k) * floats(scales), 32) * floats(values)


def iq1_values(low, high, minus):
    grid = floats(read_grid("iq1_grid", 8)[low.astype(int) | (high.astype(int) & 7) << 8])
    return grid + np.where(minus, np.float32(-0.125), np.float32(0.125))[..., None]


def decode_iq1_s_r4(blocks, header, k):
    word = blocks["qh"][:, k, None]
    values = iq1_values(blocks["qs"][:, 4 * np.arange(4) + k], word >> 3 * np.arange(4),
                        np.repeat(word >> 15 == 1, 4, axis=1))
    scales = floats(header[0]) * floats(2 * (word >> 12 & 7) + 1)
    return scales * values.reshape(-1, 32)


def decode_iq1_m_r4(blocks, header, k):
    high = blocks["qh"][:, [k, k, 4 + k, 4 + k]] >> np.array([0, 4, 0, 4], "u1")
    values = iq1_values(blocks["qs"][:, 4 * np.arange(4) + k], high, high & 8 != 0)
    both = blocks["scales"][:, k, None]
    scales = floats(header[0]) * floats(np.concatenate([both & 15, both >> 4], axis=1))
    return spread(scales, 16) * values.reshape(-1, 32)


# ---- Types whose plain type is ik_llama.cpp's ----

def decode_q6_0_r4(blocks, header, k):
    pieces = r4_nibbles(blocks["qs"], k)
    for run, first in enumerate((0, 16, 4, 20)):
        at = 16 * (run % 2) + 4 * k
        high = blocks["qh"][:, at:at + 4] >> (2 * (run // 2))
        c = first + np.arange(4)
        pieces += [(c, (high & 3) << 4), (c + 8, (high >> 4 & 3) << 4)]
    d = row_scale(blocks, k)
    return d * floats(put(blocks, 32, pieces)) + np.float32(-32) * d


def decode_q8_kv_r8(blocks, header, k):
    return header[0] * floats(bytes_in_fours(blocks["qs"].view("i1"), 8, 32, k))


def decode_iq2_bn_r4(blocks, header, k):
    pieces = [(16 * run + 4 * t + np.arange(4),
               blocks["qs"][:, 16 * run + 4 * k:16 * run + 4 * k + 4] >> (2 * t) & 3)
              for run in range(4) for t in range(4)]
    return header[0] * floats(put(blocks, 64, pieces) - 1)


def sub_block_bits(data, k):
    """Bit s of sub-block s: byte k has those of even s, byte 4+k those of odd s."""
    s = np.arange(16)
    return data[:, 4 * (s % 2) + k] >> (s // 2).astype("u1") & 1


def nibble_scales(blocks, k):
    n = 4 * np.arange(16) + k
    return (blocks["scales"][:, n % 32] >> (4 * (n // 32)).astype("u1") & 15).astype(np.int16)


def k_values(blocks, k, scales, values, step):
    shifts = step * sub_block_bits(blocks["flags"], k).astype(np.int16)
    return spread(row_scale(blocks, k) * floats(scales), 16) * floats(values + spread(shifts, 16))


def decode_iq2_k_r4(blocks, header, k):
    values = plain.K2[put(blocks, 256, pairs(blocks["qs"], k))]
    return k_values(blocks, k, nibble_scales(blocks, k) - 8, values, 5)


def decode_iq3_k_r4(blocks, header, k):
    n = 4 * np.arange(16) + k
    signs = blocks["signs"][:, n % 8] >> (n // 8).astype("u1") & 1
    q = put(blocks, 256, pairs(blocks["qs"], k)) + put(
        blocks, 256, bit_pieces(blocks["qh"], k, range(0, 32, 4), 2))
    scales = (2 * nibble_scales(blocks, k) + 1) * (1 - 2 * signs.astype(np.int16))
    return k_values(blocks, k, scales, plain.K3[q], 4)


def ik_scales(blocks, k):
    return six_bit_scales(blocks, 4 * np.arange(16) + k) - 32


def decode_iq4_k_r4(blocks, header, k):
    values = plain.K4[put(blocks, 256, r4_nibbles(blocks["qs"], k))]
    return k_values(blocks, k, ik_scales(blocks, k), values, 4)


def k5(blocks, k):
    return plain.K5[put(blocks, 256, r4_nibbles(blocks["qs"], k) +
                        bit_pieces(blocks["qh"], k, (0, 8, 16, 24, 4, 12, 20, 28), 4))]


def decode_iq5_k_r4(blocks, header, k):
    return k_values(blocks, k, ik_scales(blocks, k), k5(blocks, k), 2)


def decode_iq5_ks_r4(blocks, header, k):
    scales = blocks["scales"][:, 4 * np.arange(8) + k].astype(np.int16)
    values = k5(blocks, k) + 2 * spread(scales & 1, 32)
    return spread(header[0] * floats((scales & 254) - 127), 32) * floats(values)


def dtype(*fields):
    return np.dtype([(name, kind, count) for name, kind, count in fields])


def one_scale(rows, *others):
    return dtype(("d", "<f2", rows), *others)


SIX_BITS = (("high", "u1", 16), ("low", "u1", 32))

IK_FLAGS = ("flags", "u1", 8)

# id, name, elements, rows, stored block, decoder, fields with f16 scales, row headers
ROWS = [
    (31, "Q4_0_4_4", 32, 4, one_scale(4, ("qs", "u1", 64)), q4_0_x(4), ("d",), None),
    (32, "Q4_0_4_8", 32, 4, one_scale(4, ("qs", "u1", 64)), q4_0_x(8), ("d",), None),
    (33, "Q4_0_8_8", 32, 8, one_scale(8, ("qs", "u1", 128)), q4_0_x(8), ("d",), None),
    (202, "Q4_0_R8", 32, 8, one_scale(8, ("qs", "u1", 128)), decode_q4_0_r8, ("d",), None),
    (206, "Q5_0_R4", 32, 4, one_scale(4, ("qh", "u1", 16), ("qs", "u1", 64)), decode_q5_0_r4,
     ("d",), None),
    (208, "Q8_0_R8", 32, 8, one_scale(8, ("qs", "u1", 256)), decode_q8_0_r8, ("d",), None),
    (210, "Q2_K_R4", 256, 4,
     one_scale(4, ("m", "<f2", 4), ("scales", "u1", 64), ("qs", "u1", 256)), decode_q2_k_r4,
     ("d", "m"), None),
    (211, "Q3_K_R4", 256, 4, one_scale(4, *SIX_BITS, ("qh", "u1", 128), ("qs", "u1", 256)),
     decode_q3_k_r4, ("d",), None),
    (212, "Q4_K_R4", 256, 4, one_scale(4, ("m", "<f2", 4), *SIX_BITS, ("qs", "u1", 512)),
     decode_q4_k_r4, ("d", "m"), None),
    (213, "Q5_K_R4", 256, 4,
     one_scale(4, ("m", "<f2", 4), *SIX_BITS, ("qh", "u1", 128), ("qs", "u1", 512)),
     decode_q5_k_r4, ("d", "m"), None),
    (214, "Q6_K_R4", 256, 4, one_scale(4, ("scales", "u1", 64), ("qh", "u1", 256),
                                       ("qs", "u1", 512)), decode_q6_k_r4, ("d",), None),
    (216, "IQ2_XXS_R4", 256, 4, one_scale(4, ("signs", "u1", 128), ("qs", "u1", 128)),
     decode_iq2_xxs_r4, ("d",), None),
    (217, "IQ2_XS_R4", 256, 4, one_scale(4, ("qs", "<u2", 128), ("scales", "u1", 32)),
     decode_iq2_xs_r4, ("d",), None),
    (218, "IQ3_XXS_R4", 256, 4, one_scale(4, ("signs", "u1", 128), ("qs", "u1", 256)),
     decode_iq3_xxs_r4, ("d",), None),
    (219, "IQ1_S_R4", 32, 4, dtype(("qs", "u1", 16), ("qh", "<u2", 4)), decode_iq1_s_r4, (), "<f2"),
    (221, "IQ3_S_R4", 256, 4,
     one_scale(4, ("qs", "u1", 256), ("qh", "u1", 32), ("signs", "u1", 128),
               ("scales", "u1", 16)), decode_iq3_s_r4, ("d",), None),
    (222, "IQ2_S_R4", 256, 4,
     one_scale(4, ("qs", "u1", 128), ("qh", "u1", 32), ("signs", "u1", 128),
               ("scales", "u1", 32)), decode_iq2_s_r4, ("d",), None),
    (223, "IQ4_XS_R8", 256, 8, one_scale(8, *SIX_BITS, ("qs", "u1", 1024)), decode_iq4_xs_r8,
     ("d",), None),
    (229, "IQ1_M_R4", 32, 4, dtype(("qs", "u1", 16), ("qh", "u1", 8), ("scales", "u1", 4)),
     decode_iq1_m_r4, (), "<f2"),
    (230, "BF16_R16", 2, 16, dtype(("bits", "<u2", 32)), decode_bf16_r16, (), None),
    (353, "MXFP4_R8", 32, 8, dtype(("e", "u1", 8), ("qs", "u1", 128)), decode_mxfp4_r8, (), None),
    (397, "Q8_K_R16", 256, 16, one_scale(16, ("qs", "u1", 4096)), decode_q8_k_r16, ("d",), None),
    (399, "Q8_K_R8", 256, 8, one_scale(8, ("qs", "u1", 2048)), decode_q8_k_r8, ("d",), None),
    (233, "Q6_0_R4", 32, 4, one_scale(4, ("qh", "u1", 32), ("qs", "u1", 64)), decode_q6_0_r4,
     ("d",), None),
    (335, "IQ2_BN_R4", 64, 4, dtype(("qs", "u1", 64)), decode_iq2_bn_r4, (), "<f4"),
    (337, "IQ2_K_R4", 256, 4, one_scale(4, IK_FLAGS, ("scales", "u1", 32), ("qs", "u1", 256)),
     decode_iq2_k_r4, ("d",), None),
    (338, "IQ3_K_R4", 256, 4,
     one_scale(4, IK_FLAGS, ("signs", "u1", 8), ("scales", "u1", 32), ("qs", "u1", 256),
               ("qh", "u1", 128)), decode_iq3_k_r4, ("d",), None),
    (339, "IQ4_K_R4", 256, 4, one_scale(4, IK_FLAGS, *SIX_BITS, ("qs", "u1", 512)),
     decode_iq4_k_r4, ("d",), None),
    (340, "IQ5_K_R4", 256, 4,
     one_scale(4, IK_FLAGS, *SIX_BITS, ("qs", "u1", 512), ("qh", "u1", 128)),
     decode_iq5_k_r4, ("d",), None),
    (352, "IQ5_KS_R4", 256, 4,
     dtype(("scales", "u1", 32), ("qs", "u1", 512), ("qh", "u1", 128)), decode_iq5_ks_r4, (),
     "<f4"),
    (398, "Q8_KV_R8", 32, 8, dtype(("qs", "u1", 256)), decode_q8_kv_r8, (), "<f4"),
]
