"""The types of ik_llama.cpp without interleaved rows, in NumPy: blocks and decoders for expected.py.

A decoder gets the blocks, the numbers of the row header and the row of the group, always 0.
"""
import numpy as np

K2 = np.array([-31, -13, 1, 17], np.int32)
K3 = np.array([-63, -40, -23, -10, 1, 13, 28, 47], np.int32)
K4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int32)
K5 = np.array([-126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36, -30, -24, -18, -12, -6,
               -1, 5, 11, 17, 23, 29, 36, 43, 51, 59, 68, 77, 87, 97, 109, 121], np.int32)
K6 = np.array([-127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66, -62, -58, -54,
               -51, -47, -44, -40, -37, -34, -31, -28, -25, -22, -19, -16, -13, -11, -8, -5,
               -2, 0, 3, 6, 9, 12, 14, 17, 20, 23, 27, 30, 33, 36, 40, 44,
               47, 51, 55, 59, 63, 68, 72, 77, 82, 87, 92, 98, 103, 109, 115, 121], np.int32)
KL = np.array([(-63, -23), (-63, 13), (-40, -63), (-40, -10), (-40, 13), (-40, 47), (-23, -40),
               (-23, -23), (-23, 1), (-23, 13), (-23, 28), (-10, -63), (-10, 1), (-10, 13),
               (-10, 47), (1, -23), (1, -10), (1, 1), (1, 13), (1, 28), (13, -40), (13, -23),
               (13, -10), (13, 1), (13, 13), (28, -63), (28, -23), (28, 1), (28, 28), (28, 47),
               (47, -23), (47, 13)], np.int32)


def floats(numbers):
    return numbers.astype(np.float32)


def bits(numbers, n):
    """The lowest n bits of each number, along a new last axis."""
    return numbers[..., None].astype(np.int32) >> np.arange(n, dtype=np.int32) & 1


def crumbs(qs, width):
    """Codes of `width` bits in groups of 32 bytes: byte j of a group has elements j, 32 + j …"""
    places = np.arange(0, 8, width, dtype=np.int32)[:, None]
    return ((qs.reshape(len(qs), -1, 1, 32).astype(np.int32) >> places) &
            (1 << width) - 1).reshape(len(qs), -1)


def halves(qs):
    """Codes of 4 bits in groups of 16 bytes: byte j of a group has elements j and 16 + j."""
    q = qs.reshape(len(qs), -1, 16).astype(np.int32)
    return np.stack([q & 15, q >> 4], axis=2).reshape(len(qs), -1)


def pairs(scales):
    """Codes of 4 bits: byte i has 2i and 2i + 1."""
    return np.stack([scales & 15, scales >> 4], axis=-1).reshape(len(scales), -1).astype(np.int32)


def far(scales):
    """Codes of 4 bits: byte i of four has i and i + 4."""
    return np.concatenate([scales & 15, scales >> 4], axis=-1).astype(np.int32)


def scaled(d, scales, values):
    """d * scale, rounded, times the values; d is a number or one per block."""
    n = len(values)
    products = np.reshape(np.broadcast_to(floats(np.asarray(d)), n), (n, 1)) * floats(scales)
    return (products[..., None] * floats(values).reshape(n, scales.shape[1], -1)).reshape(n, -1)


def per_element(flags, n=256):
    return np.repeat(flags, n // flags.shape[1], axis=1)


IQ2_K = np.dtype([("d", "<f2"), ("flags", "<u2"), ("scales", "u1", 8), ("qs", "u1", 64)])


def decode_iq2_k(b, header, k):
    values = K2[crumbs(b["qs"], 2)] + 5 * per_element(bits(b["flags"], 16))
    return scaled(b["d"], pairs(b["scales"]) - 8, values)


IQ3_K = np.dtype([("d", "<f2"), ("flags", "<u2"), ("signs", "<u2"), ("scales", "u1", 8),
                  ("qs", "u1", 64), ("qh", "u1", 32)])


def k3(b, flags):
    return K3[crumbs(b["qs"], 2) | crumbs(b["qh"], 1) << 2] + 4 * per_element(flags)


def decode_iq3_k(b, header, k):
    scales = (2 * pairs(b["scales"]) + 1) * (1 - 2 * bits(b["signs"], 16))
    return scaled(b["d"], scales, k3(b, bits(b["flags"], 16)))


def six_bits(b):
    high = (b["high"][..., None].astype(np.int32) >> np.array([0, 2, 4, 6])) & 3
    return (pairs(b["low"]) | high.reshape(len(b), 16) << 4) - 32


IQ4_K = np.dtype([("d", "<f2"), ("flags", "<u2"), ("high", "u1", 4), ("low", "u1", 8),
                  ("qs", "u1", 128)])


def decode_iq4_k(b, header, k):
    values = K4[halves(b["qs"])] + 4 * per_element(bits(b["flags"], 16))
    return scaled(b["d"], six_bits(b), values)


IQ5_K = np.dtype([("d", "<f2"), ("flags", "<u2"), ("high", "u1", 4), ("low", "u1", 8),
                  ("qs", "u1", 128), ("qh", "u1", 32)])


def k5(b, flags):
    return K5[crumbs(b["qs"], 4) | crumbs(b["qh"], 1) << 4] + 2 * per_element(flags)


def decode_iq5_k(b, header, k):
    return scaled(b["d"], six_bits(b), k5(b, bits(b["flags"], 16)))


IQ6_K = np.dtype([("d", "<f2"), ("flags", "<u2"), ("scales", "i1", 16), ("qs", "u1", 128),
                  ("qh", "u1", 64)])


def decode_iq6_k(b, header, k):
    values = K6[crumbs(b["qs"], 4) | crumbs(b["qh"], 2) << 4] + per_element(bits(b["flags"], 16))
    return scaled(b["d"], b["scales"], values)


IQ2_KS = np.dtype([("extra", "<u2"), ("scales", "u1", 4), ("qs", "u1", 64)])


def decode_iq2_ks(b, header, k):
    extra = bits(b["extra"], 16)
    values = K2[crumbs(b["qs"], 2)] + 5 * per_element(extra[:, :8])
    return scaled(header[0], (pairs(b["scales"]) | extra[:, 8:] << 4) - 16, values)


IQ3_KS = np.dtype([("extra", "<u2"), ("scales", "u1", 4), ("qs", "u1", 64), ("qh", "u1", 32)])


def decode_iq3_ks(b, header, k):
    extra = bits(b["extra"], 16)
    return scaled(header[0], (far(b["scales"]) | extra[:, :8] << 4) - 16, k3(b, extra[:, 8:]))


def ks_scales(scales):
    return (scales.astype(np.int32) & 254) - 127


IQ4_KS = np.dtype([("scales", "u1", 8), ("qs", "u1", 128)])


def decode_iq4_ks(b, header, k):
    values = K4[halves(b["qs"])] + 4 * per_element(b["scales"].astype(np.int32) & 1)
    return scaled(header[0], ks_scales(b["scales"]), values)


IQ4_KSS = np.dtype([("words", "<u2", (8, 8))])


def decode_iq4_kss(b, header, k):
    scales = np.sum((b["words"].astype(np.int32) & 1) << np.arange(8), axis=2)
    w = b["words"] & np.uint16(0xfffe)
    qs = np.ascontiguousarray(w ^ w >> np.uint16(1)).astype("<u2").view("u1")
    values = K4[halves(qs.reshape(len(b), 128))] + 4 * per_element(scales & 1)
    return scaled(header[0], ks_scales(scales), values)


IQ5_KS = np.dtype([("scales", "u1", 8), ("qs", "u1", 128), ("qh", "u1", 32)])


def decode_iq5_ks(b, header, k):
    return scaled(header[0], ks_scales(b["scales"]), k5(b, b["scales"].astype(np.int32) & 1))


IQ2_KL = np.dtype([("high", "<u2"), ("low", "u1", 4), ("qs", "u1", 64), ("qh", "u1", 16)])


def decode_iq2_kl(b, header, k):
    high = (b["high"][:, None].astype(np.int32) >> np.arange(0, 16, 2)) & 3
    fifth = (b["qh"][:, None, :].astype(np.int32) >> np.arange(8)[:, None]) & 1
    q = halves(b["qs"]).reshape(-1, 8, 16) | fifth << 4
    return scaled(header[0], (far(b["low"]) | high << 4) - 32, KL[q])


IQ1_BN = np.dtype([("bytes", "u1", 13)])


def decode_iq1_bn(b, header, k):
    factors = np.array([81, 27, 9, 3, 1], np.int32)
    digits = (b["bytes"][..., None].astype(np.int32) * factors % 256) * 3 >> 8
    q = np.empty((len(b), 64), np.int32)
    for i in range(4):
        q[:, 16 * i:16 * i + 15] = digits[:, 3 * i:3 * i + 3].reshape(len(b), 15)
        q[:, 16 * i + 15] = digits[:, 12, i]
    return scaled(header[0], np.ones((len(b), 1)), q - 1)


IQ2_BN = np.dtype([("qs", "u1", 16)])


def decode_iq2_bn(b, header, k):
    q = (b["qs"][:, None, :].astype(np.int32) >> np.arange(0, 8, 2)[:, None]) & 3
    return scaled(header[0], np.ones((len(b), 1)), q.reshape(len(b), 64) - 1)


I2_S = np.dtype([("qs", "u1", 32)])


def decode_i2_s(b, header, k):
    q = (b["qs"][:, None, :].astype(np.int32) >> np.array([6, 4, 2, 0])[:, None]) & 3
    return scaled(header[0], np.ones((len(b), 1)), q.reshape(len(b), 128) - 1)


Q6_0 = np.dtype([("d", "<f2"), ("qh", "u1", 8), ("qs", "u1", 16)])


def decode_q6_0(b, header, k):
    high = (b["qh"][:, None, :].astype(np.int32) >> np.array([0, 4, 2, 6])[:, None]) & 3
    q = halves(b["qs"]) | high.reshape(len(b), 32) << 4
    return scaled(b["d"], np.ones((len(b), 1)), q - 32)


Q8_KV = np.dtype([("qs", "i1", 32)])


def decode_q8_kv(b, header, k):
    return scaled(header[0], np.ones((len(b), 1)), b["qs"])


def trellis(seeds, n):
    """The n values of each seed, along a new last axis."""
    x = seeds.astype(np.uint32) + np.uint32(4096)
    values = []
    for _ in range(n):
        x = x * np.uint32(0xcbac1fed)
        six = np.ascontiguousarray(x & np.uint32(0x3f3f3f3f)).astype("<u4").view("u1")
        values.append(six.reshape(x.shape + (4,)).astype(np.int32).sum(axis=-1) - 126)
    return np.stack(values, axis=-1)


IQ1_KT = np.dtype([("scales", "u1", 8), ("low", "u1", 32), ("high", "u1", 16)])


def decode_iq1_kt(b, header, k):
    seeds = (b["low"] | far(b["high"]) << 8 |
             bits(b["scales"] >> 4, 4).reshape(len(b), 32) << 12)
    return scaled(header[0], K4[b["scales"] & 15], trellis(seeds, 8))


IQ2_KT = np.dtype([("scales", "u1", 4), ("seeds", "<u2", 32)])


def decode_iq2_kt(b, header, k):
    return scaled(header[0] * np.float32(1.05), K4[far(b["scales"])], trellis(b["seeds"], 8))


IQ3_KT = np.dtype([("scales", "u1", 4), ("seeds", "<u2", 32), ("signs", "u1", 32)])


def decode_iq3_kt(b, header, k):
    values = np.abs(trellis(b["seeds"], 8)).reshape(len(b), 256)
    signs = floats(1 - 2 * crumbs(b["signs"], 1))  # apart from the values, for negative zeros
    return signs * scaled(header[0] * np.float32(1.01), far(b["scales"]), values)


IQ4_KT = np.dtype([("words", "<u4", 8), ("low", "u1", 64), ("high", "u1", 32)])


def decode_iq4_kt(b, header, k):
    words = b["words"].astype(np.int64)
    tops = (words[:, :, None] >> np.arange(8, 32, 3)) & 7
    seeds = (b["low"].astype(np.int64).reshape(-1, 8, 8) | tops << 12 |
             far(b["high"]).astype(np.int64).reshape(-1, 8, 8) << 8 | (words & 1)[:, :, None] << 15)
    return scaled(header[0], (words >> 1 & 127) - 64, trellis(seeds, 4))
