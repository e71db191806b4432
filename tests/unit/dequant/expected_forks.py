"""The types that share their id with others, in NumPy: blocks, decoders and rows for expected.py."""
import numpy as np

import expected_ik_plain as plain
from expected_ik_plain import K2, K4, bits, crumbs, far, floats, per_element, pairs, scaled

F16 = {"header": "<f2", "header_numbers": 1}
F32 = {"header": "<f4", "header_numbers": 1}


def times_d(b, q):
    return floats(q) * floats(b["d"])[:, None]


# ---- PrismML ----

Q1_0_G32 = np.dtype([("d", "<f2"), ("qs", "u1", 4)])


def decode_q1_0_g32(b, header, k):
    return times_d(b, 2 * np.unpackbits(b["qs"], axis=1, bitorder="little").astype(int) - 1)


PQ2_0 = np.dtype([("d", "<f2"), ("qs", "u1", 32)])


def decode_pq2_0(b, header, k):
    q = (b["qs"][:, :, None].astype(int) >> np.array([0, 2, 4, 6])) & 3
    return times_d(b, q.reshape(len(b), 128) - 1)


PTQ1_0 = np.dtype([("qs", "u1", 24), ("qh", "u1", 2), ("d", "<f2")])


def trits(data, n):
    """n base-3 digits of each byte: all first digits, then all second ones and so on."""
    powers = 3 ** np.arange(n)
    digits = (data[:, None, :].astype(int) * powers[:, None] % 256) * 3 >> 8
    return digits.reshape(len(data), -1)


def decode_ptq1_0(b, header, k):
    q = np.concatenate([trits(b["qs"][:, :16], 5), trits(b["qs"][:, 16:], 5), trits(b["qh"], 4)],
                       axis=1)
    return times_d(b, q - 1)


# ---- llama-turboquant ----

TQ3_0 = np.dtype([("qs", "u1", 8), ("residuals", "u1", 4), ("d", "<f2")])
TQ3_SIGNS = np.array([1, -1, 1, 1, -1, -1, 1, -1, 1, 1, -1, 1, -1, 1, -1, -1,
                      1, -1, -1, 1, 1, -1, 1, -1, -1, 1, 1, 1, -1, -1, 1, -1], np.float32)


def decode_tq3_0(b, header, k):
    centroids = np.array([-1.510, -0.4528, 0.4528, 1.510], np.float32)
    q = (b["qs"][:, :, None].astype(int) >> np.array([0, 2, 4, 6])) & 3
    x = floats(b["d"])[:, None] * centroids[q.reshape(len(b), 32)]
    for step in (1, 2, 4, 8, 16):
        x = x.reshape(len(b), -1, 2, step)
        x = np.stack([x[:, :, 0] + x[:, :, 1], x[:, :, 0] - x[:, :, 1]], axis=2)
    return x.reshape(len(b), 32) * (np.float32(0.17677669529663688) * TQ3_SIGNS)


# ---- ik_llama.cpp of 2024 and 2025 ----

IQ2_TN = np.dtype([("d", "<f2"), ("qs", "u1", 64)])
ROW_IQ2_TN = np.dtype([("qs", "u1", 64)])


def decode_iq2_tn(b, header, k):
    return times_d(b, crumbs(b["qs"], 2) - 1)


def decode_row_iq2_tn(b, header, k):
    return header[0] * floats(crumbs(b["qs"], 2) - 1)


def decode_bare_iq1_bn(b, header, k):
    return plain.decode_iq1_bn(b, [np.float32(1)], k)


def decode_bare_iq2_bn(b, header, k):
    return plain.decode_iq2_bn(b, [np.float32(1)], k)


def decode_old_iq2_k(b, header, k):
    values = K2[crumbs(b["qs"], 2)] + 5 * per_element(bits(b["flags"], 16))
    return scaled(b["d"], 2 * pairs(b["scales"]) - 15, values)


def old_trellis(seeds, n):
    x = seeds.astype(np.uint32) + np.uint32(4096)
    values = []
    for _ in range(n):
        x = x * np.uint32(89226354) + np.uint32(64248484)
        two = np.ascontiguousarray((x & np.uint32(0x8fff8fff)) ^ np.uint32(0x3b603b60))
        two = floats(two.astype("<u4").view("<f2").reshape(x.shape + (2,)))
        values.append(two[..., 0] + two[..., 1])
    return np.stack(values, axis=-1)


def old_scaled(d, scales, values):
    n = len(values)
    products = np.float32(d) * np.float32(31.75) * floats(scales)
    return (products[..., None] * values.reshape(n, scales.shape[1], -1)).reshape(n, -1)


def decode_old_iq2_kt(b, header, k):
    return old_scaled(header[0], K4[far(b["scales"])], old_trellis(b["seeds"], 8))


def decode_old_iq3_kt(b, header, k):
    values = np.abs(old_trellis(b["seeds"], 8))
    signs = floats(1 - 2 * crumbs(b["signs"], 1))
    return signs * old_scaled(header[0], far(b["scales"]), values)


def decode_old_iq4_kt(b, header, k):
    words = b["words"].astype(np.int64)
    tops = (words[:, :, None] >> np.arange(8, 32, 3)) & 7
    seeds = (b["low"].astype(np.int64).reshape(-1, 8, 8) | tops << 12 |
             far(b["high"]).astype(np.int64).reshape(-1, 8, 8) << 8 | (words & 1)[:, :, None] << 15)
    return old_scaled(header[0], (words >> 1 & 127) - 64, old_trellis(seeds, 4)) + header[1]


# ---- Four rows together ----

IQ4_NL_4_4 = np.dtype([("d", "<f2", 4), ("qs", "u1", (4, 4, 4))])


def row_d(b, k):
    return floats(b["d"])[:, k, None]


def decode_iq4_nl_4_4(b, header, k):
    q = b["qs"][:, :, k].reshape(len(b), 16)
    return row_d(b, k) * floats(K4[np.concatenate([q & 15, q >> 4], axis=1)])


def r4_nibbles(qs, k):
    """32 nibbles of row k of qs[..., run, row, byte]."""
    q = np.empty(qs.shape[:-3] + (32,), np.uint8)
    for run in range(4):
        first = 16 * (run % 2) + 4 * (run // 2)
        q[..., first:first + 4] = qs[..., run, k, :] & 15
        q[..., first + 8:first + 12] = qs[..., run, k, :] >> 4
    return q


def decode_q4_0_r4(b, header, k):
    return floats(r4_nibbles(b["qs"], k).astype(int) - 8) * row_d(b, k)


Q8_0_R4 = np.dtype([("d", "<f2", 4), ("qs", "i1", (4, 2, 4, 4))])


def decode_q8_0_r4(b, header, k):
    return floats(b["qs"][:, :, :, k].transpose(0, 2, 1, 3).reshape(len(b), 32)) * row_d(b, k)


IQ4_XS_R4 = np.dtype([("d", "<f2", 4), ("high", "u1", 8), ("low", "u1", 16),
                      ("qs", "u1", (8, 4, 4, 4))])


def decode_iq4_xs_r4(b, header, k):
    n = 4 * np.arange(8) + k
    low = b["low"][:, n % 16].astype(int) >> 4 * (n // 16) & 15
    high = b["high"][:, n % 8].astype(int) >> 2 * (n // 8) & 3
    return scaled(b["d"][:, k], (low | high << 4) - 32, K4[r4_nibbles(b["qs"], k)])


# id, name, elements of a block, rows together, stored block, decoder, scales, header
ROWS = [
    (142, "PQ2_0", 128, 1, PQ2_0, decode_pq2_0, ("d",), {}),
    (143, "PTQ1_0", 128, 1, PTQ1_0, decode_ptq1_0, ("d",), {}),
    (34, "IQ1_BN_OLD", 64, 1, plain.IQ1_BN, decode_bare_iq1_bn, (), {}),
    (35, "IQ2_BN_OLD", 64, 1, plain.IQ2_BN, decode_bare_iq2_bn, (), {}),
    (36, "IQ4_NL_4_4", 32, 4, IQ4_NL_4_4, decode_iq4_nl_4_4, ("d",), {}),
    (37, "IQ2_K_OLD", 256, 1, plain.IQ2_K, decode_old_iq2_k, ("d",), {}),
    (38, "IQ3_K", 256, 1, plain.IQ3_K, plain.decode_iq3_k, ("d",), {}),
    (39, "IQ4_K", 256, 1, plain.IQ4_K, plain.decode_iq4_k, ("d",), {}),
    (40, "Q1_0_G32", 32, 1, Q1_0_G32, decode_q1_0_g32, ("d",), {}),
    (40, "IQ5_K", 256, 1, plain.IQ5_K, plain.decode_iq5_k, ("d",), {}),
    (41, "TQ3_0", 32, 1, TQ3_0, decode_tq3_0, ("d",), {}),
    (41, "IQ6_K", 256, 1, plain.IQ6_K, plain.decode_iq6_k, ("d",), {}),
    (42, "PQ2_0", 128, 1, PQ2_0, decode_pq2_0, ("d",), {}),
    (42, "IQ2_TN", 256, 1, IQ2_TN, decode_iq2_tn, ("d",), {}),
    (134, "IQ1_BN_OLD", 64, 1, plain.IQ1_BN, decode_bare_iq1_bn, (), {}),
    (135, "IQ2_BN_OLD", 64, 1, plain.IQ2_BN, decode_bare_iq2_bn, (), {}),
    (137, "IQ2_K_OLD", 256, 1, plain.IQ2_K, decode_old_iq2_k, ("d",), {}),
    (142, "IQ2_TN", 256, 1, ROW_IQ2_TN, decode_row_iq2_tn, (), F32),
    (143, "IQ1_TN", 64, 1, plain.IQ1_BN, plain.decode_iq1_bn, (), F16),
    (153, "IQ2_KT_OLD", 256, 1, plain.IQ2_KT, decode_old_iq2_kt, (), F32),
    (154, "IQ3_KT_OLD", 256, 1, plain.IQ3_KT, decode_old_iq3_kt, (), F32),
    (155, "IQ4_KT_OLD", 256, 1, plain.IQ4_KT, decode_old_iq4_kt, (), {"header_numbers": 2}),
    (202, "Q4_0_R4", 32, 4, IQ4_NL_4_4, decode_q4_0_r4, ("d",), {}),
    (208, "Q8_0_R4", 32, 4, Q8_0_R4, decode_q8_0_r4, ("d",), {}),
    (223, "IQ4_XS_R4", 256, 4, IQ4_XS_R4, decode_iq4_xs_r4, ("d",), {}),
]
