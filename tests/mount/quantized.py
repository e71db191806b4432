"""Blocks as ggml quantizes them, in NumPy: quantize_row_q8_0_ref() and quantize_row_q4_0_ref()."""

import numpy as np


def round_away(x):
    """To the nearest integer, ties away from zero."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)


def inverse_of(scale):
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.float32(1) / scale
    return np.where(np.isfinite(inverse), inverse, np.float32(0))


def as_half(scale):
    with np.errstate(over="ignore"):
        return scale.astype("<f2").view(np.uint8)


def to_q8_0(values):
    blocks = values.astype(np.float32).reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    q = round_away(blocks * inverse_of(scale)).astype(np.int8)
    return np.concatenate([as_half(scale), q.view(np.uint8)], axis=1).tobytes()


def to_q4_0(values):
    blocks = values.astype(np.float32).reshape(-1, 32) + np.float32(0)  # -0 becomes 0
    first = np.abs(blocks).argmax(axis=1)[:, None]
    scale = np.take_along_axis(blocks, first, axis=1) / np.float32(-8)
    q = np.minimum(np.trunc(blocks * inverse_of(scale) + np.float32(8.5)), 15).astype(np.uint8)
    return np.concatenate([as_half(scale), q[:, :16] | q[:, 16:] << 4], axis=1).tobytes()


def to_bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


ENCODERS = {"f32": lambda values: values.astype("<f4").tobytes(),
            "f16": lambda values: values.astype("<f2").tobytes(),
            "bf16": to_bf16, "q8_0": to_q8_0, "q4_0": to_q4_0}
