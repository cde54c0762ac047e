"""Random quantized weights, their values in float64, and the words of GPTQ and AWQ checkpoints."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


class Weights(NamedTuple):
    """Weights (N, K) as unsigned integers or bits of e4m3, with scales and zero points (N, groups)."""

    q: Any
    scales: Any
    zeros: Any  # of the unsigned integers; None for the middle of the range
    group: int  # columns that share a scale; 0: a row
    bits: int
    is_float: bool = False

    @property
    def floats(self) -> Any:
        return self.q.astype(np.uint8).view(ml_dtypes.float8_e4m3fn)

    @property
    def middle(self) -> int:
        return 1 << self.bits - 1

    @property
    def signed(self) -> Any:
        return (self.q - self.middle).astype(np.int8)

    def exact(self) -> Any:
        """Return the weights in float64."""
        at = np.arange(self.q.shape[1]) // (self.group or self.q.shape[1])
        if self.is_float:
            return self.floats.astype(np.float64) * self.scales.astype(np.float64)[:, at]
        zeros = self.middle if self.zeros is None else self.zeros[:, at]
        return (self.q - zeros) * self.scales.astype(np.float64)[:, at]


def weights(
    n: int, k: int, bits: int, group: int, scale: str, *, zeros: bool, is_float: bool = False, seed: int = 0
) -> Weights:
    """Return random weights; each integer, or each finite float, occurs."""
    rng, groups = np.random.default_rng([n, k, bits, seed]), -(-k // group) if group else 1
    q = rng.integers(0, 1 << bits, (n, k))
    scales = (rng.random((n, groups)) * 0.2 + 0.01).astype(TYPES[scale])
    points = rng.integers(0, 1 << bits, (n, groups)) if zeros else None
    if is_float:
        q[q & 0x7F == 0x7F] ^= 0x40
    return Weights(q, scales, points, group, bits, is_float)


def along_columns(x: Any, bits: int, order: tuple[int, ...] | None = None) -> Any:
    """Return the words of a matrix of integers, packed along its rows."""
    per = 32 // bits
    words = np.zeros((x.shape[0], x.shape[1] // per), np.uint32)
    for place in range(per):
        column = place if order is None else order[place]
        words |= x[:, column::per].astype(np.uint32) << np.uint32(bits * place)
    return words.view(np.int32)


def gptq(w: Weights, offset: int = 1) -> tuple[Any, Any, Any]:
    """Return qweight, scales and qzeros of a GPTQ checkpoint."""
    qweight = np.ascontiguousarray(along_columns(w.q, w.bits).T)
    zeros = None if w.zeros is None else along_columns((w.zeros - offset).T & ((1 << w.bits) - 1), w.bits)
    return qweight, np.ascontiguousarray(w.scales.T), zeros


def awq(w: Weights) -> tuple[Any, Any, Any]:
    """Return qweight, scales and qzeros of an AWQ checkpoint."""
    zeros = None if w.zeros is None else along_columns(w.zeros.T, 4, AWQ_ORDER)
    return along_columns(w.q.T, 4, AWQ_ORDER), np.ascontiguousarray(w.scales.T), zeros


def packed(w: Weights, scale: str) -> Any:
    """Return the words that the kernel reads, by the definition of the format, element by element."""
    from cute_dialect.kernels.gemm.mixed_input import Chunk

    weight = "f8E4M3FN" if w.is_float else "ui4" if w.bits == 4 else "i8"
    chunk = Chunk(weight, w.group, scale, w.zeros is not None)
    n, k = w.q.shape
    assert n % 64 == 0 and k % 128 == 0
    data = np.zeros((n // 64, 4 * chunk.line(k)), np.uint8)
    words = data.view(np.uint32)
    for block, step, half, row, column in np.ndindex(n // 64, k // 128, 2, 64, 64):
        value = int(w.q[block * 64 + row, step * 128 + half * 64 + column])
        warp, high, lane = row // 16, row // 8 % 2, row % 8 * 4 + column % 8 // 2
        mma, right, pair = column // 16, column // 8 % 2, column % 2
        if w.bits == 4:
            at = (half * 4 + warp) * 128 + lane * 4 + mma
            bit = 4 * (high + 2 * right) + 16 * pair
        else:
            at = ((half * 2 + mma // 2) * 4 + warp) * 128 + lane * 4 + mma % 2 * 2 + right
            bit, value = 16 * high + 8 * pair, value if w.is_float else value ^ 128
        words[block, step * chunk.words + at] |= np.uint32(value << bit)
    order = np.array([r // 16 * 16 + r // 2 % 8 + r % 2 * 8 for r in range(64)])
    for block in range(n // 64):
        rows = block * 64 + order
        for g in range(w.scales.shape[1]):
            step, index = divmod(g, chunk.groups) if chunk.groups else (k // 128, 0)
            first = step * chunk.words + (chunk.weights if chunk.groups else 0)
            at = 4 * (first + index * chunk.scales)
            data[block, at : at + 4 * chunk.scales] = np.ascontiguousarray(w.scales[rows, g]).view(np.uint8)
            if w.zeros is not None:
                at = 4 * (first + max(1, chunk.groups) * chunk.scales + index * chunk.zero_points)
                data[block, at : at + 64] = w.zeros[rows, g]
    return words.view(np.int32)
