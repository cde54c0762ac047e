"""Kernels of one warp for the MMAs of sm_120, with arguments and expected results computed in f64 with ml_dtypes.

A kernel takes ``(A, B[, E][, SFA, SFB], C, D)`` and computes ``D = A * B + C`` with one instruction.  A and B are the
registers of each thread, ``(32, registers)`` of i32.  E is the matrix of the metadata.  SFA and SFB are those of the
factors, as bytes.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from mma_atoms_support import metadata_words, positions_of

import cute_dialect.lang as cute
from cute_dialect.arch import MmaAtom
from cute_dialect.arch.elements import bits_of
from cute_dialect.lang.nvgpu import warp

LANGUAGE = {
    "f32": cute.Float32, "f16": cute.Float16, "f8E4M3FN": cute.Float8E4M3FN, "f8E5M2": cute.Float8E5M2,
    "f6E2M3FN": cute.Float6E2M3FN, "f6E3M2FN": cute.Float6E3M2FN, "f4E2M1FN": cute.Float4E2M1FN,
    "f8E8M0FNU": cute.Float8E8M0FNU, "ue4m3": cute.Float8E4M3FN, "i16": cute.Int16, "i32": cute.Int32,
}  # fmt: skip
NUMPY = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn, "f4E2M1FN": ml_dtypes.float4_e2m1fn, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn, "f32": np.float32, "f16": np.float16,
}  # fmt: skip


def descriptor(atom: MmaAtom, selector: int = 0) -> Any:
    """Return the descriptor of an atom in the language."""
    a, b, d, kind = LANGUAGE[atom.a], LANGUAGE[atom.b], LANGUAGE[atom.d], str(atom.emit["kind"])
    if atom.metadata is not None:
        return warp.MmaSparseOp(a, d, atom.shape_mnk, selector, b_dtype=b, kind=kind)
    if kind == "f8f6f4":
        return warp.MmaF8F6F4Op(a, b, d)
    if kind == "mxf8f6f4":
        return warp.MmaMXF8Op(a) if atom.a == atom.b and bits_of(atom.a) == 8 else warp.MmaMXF8F6F4Op(a, b)
    return warp.MmaMXF4Op() if kind == "mxf4" else warp.MmaMXF4NVF4Op()


def held_type(atom: MmaAtom, operand: str) -> Any:
    """Return the type of the elements of a fragment in registers."""
    return cute.Int8 if atom.registers(operand).spare else LANGUAGE[atom.element(operand)]


def kernel(atom: MmaAtom, selector: int = 0, *, repeated: bool = False) -> Any:
    """Return the kernel of an atom as a function of arrays.

    With ``repeated`` mode V of the factors has the extent of K and repeats them by a stride of 0.
    """
    op, metadata, scales = descriptor(atom, selector), atom.metadata, atom.scales

    def loaded(mma: Any, operand: str, tensor: Any) -> Any:
        held = atom.registers(operand)
        words = cute.make_rmem_tensor(held.count, cute.Int32)
        cute.autovec_copy(tensor[cute.arch.thread_idx().x, None], words)
        n = held.count * held.values
        fragment = cute.make_rmem_tensor((n, 1, 1), held_type(atom, operand))
        fragment.store(words.load().bitcast(held_type(atom, operand)).reshape((n, 1, 1)))
        return fragment

    @cute.kernel
    def multiply(A: Any, B: Any, E: Any, SFA: Any, SFB: Any, C: Any, D: Any):
        mma = cute.make_tiled_mma(op)
        thread = mma.get_slice(cute.arch.thread_idx().x)
        a, b = loaded(mma, "A", A), loaded(mma, "B", B)
        acc = mma.make_fragment_C(thread.partition_C(C))
        cute.autovec_copy(thread.partition_C(C), acc)
        if scales is not None:
            SFA, SFB = (cute.recast_tensor(x, LANGUAGE[scales.element]) for x in (SFA, SFB))
            sfa = thread.make_fragment_SFA(thread.partition_SFA(SFA))
            sfb = thread.make_fragment_SFB(thread.partition_SFB(SFB))
            cute.autovec_copy(thread.partition_SFA(SFA), sfa)
            cute.autovec_copy(thread.partition_SFB(SFB), sfb)
            if repeated:
                blocks = cute.size(sfa)
                repeats = cute.make_layout(((scales.vector, blocks), 1, 1), stride=((0, 1), 0, 0))
                sfa, sfb = sfa.with_layout(repeats), sfb.with_layout(repeats)
            a, b = [a, sfa], [b, sfb]
        if metadata is None:
            cute.gemm(mma, acc, a, b, acc)
        else:
            e = thread.make_fragment_E(thread.partition_E(E))
            cute.autovec_copy(thread.partition_E(E), e)
            cute.sparse_gemm(mma, acc, a, b, e, acc)
        cute.autovec_copy(acc, thread.partition_C(D))

    @cute.jit(options="--gpu-arch sm_120a")
    def run(
        A: cute.Tensor, B: cute.Tensor, E: cute.Tensor, SFA: cute.Tensor, SFB: cute.Tensor, C: cute.Tensor,
        D: cute.Tensor,
    ):  # fmt: skip
        multiply(A, B, E, SFA, SFB, C, D).launch(grid=1, block=32)

    return run


def registers(atom: MmaAtom, operand: str, codes: np.ndarray) -> np.ndarray:
    """Return the registers of each thread, ``(32, registers)``, for a matrix of element codes."""
    bits, held = bits_of(atom.element(operand)), atom.registers(operand)
    if held.values == 4 and bits == 4:
        codes = codes << 2
    flat = codes.T.reshape(-1).astype(np.uint64)[positions_of(atom.layout(operand))]
    width = 32 // held.values
    parts = flat.reshape(32, held.count, held.values) << (np.arange(held.values, dtype=np.uint64) * np.uint64(width))
    return np.ascontiguousarray(parts.sum(-1).astype(np.uint32).view(np.int32))


def arrays(atom: MmaAtom, seed: int, *, wide: bool = False) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the arguments of a kernel and the expected D.

    All element codes occur, except for NaN and infinity.  With ``wide`` the factors span all exponents.
    """
    rng = np.random.default_rng(seed)
    m, n, k = atom.shape_mnk

    def draw(element: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        codes = rng.integers(0, 1 << bits_of(element), shape).astype(np.uint8)
        values = codes.view(NUMPY[element]).astype(np.float64)
        codes[~np.isfinite(values)] = 0
        return codes, codes.view(NUMPY[element]).astype(np.float64)

    a, values_a = draw(atom.a, atom.tile("A"))
    b, values_b = draw(atom.b, (n, k))
    e = np.zeros((1, 1), np.int32)
    if atom.metadata is not None:
        group, kept = atom.metadata.group, list(atom.metadata.kept)
        bits = rng.choice(np.array(kept, np.uint32), (m, k // group))
        dense = np.zeros((m, k))
        for r in range(m):
            for g in range(k // group):
                where = atom.metadata.kept[int(bits[r, g])]
                dense[r, [g * group + w for w in where]] = values_a[r, g * group // 2 : (g + 1) * group // 2]
        values_a, e = dense, metadata_words("i8", bits)
    factors = [np.zeros((1, 1), ml_dtypes.float8_e8m0fnu)] * 2
    if atom.scales is not None:
        element = atom.scales.element
        low, high = (0, 127) if element == "ue4m3" else (2, 253) if wide else (120, 135)
        sfa, sfb = (rng.integers(low, high, atom.tile(x)).astype(np.uint8) for x in ("SFA", "SFB"))
        if wide and element != "ue4m3":
            sfb = (254 - sfa[:1] + rng.integers(-3, 4, sfb.shape)).clip(1, 253).astype(np.uint8)
        factors = [f.view(NUMPY[element]) for f in (sfa, sfb)]
        values_a = values_a * np.repeat(factors[0].astype(np.float64), atom.scales.vector, 1)
        values_b = values_b * np.repeat(factors[1].astype(np.float64), atom.scales.vector, 1)
    c = rng.integers(-5, 6, (m, n)).astype(NUMPY[atom.c])
    with np.errstate(over="ignore"):
        wanted = (values_a @ values_b.T + c.astype(np.float64)).astype(NUMPY[atom.d])
    poison = np.full((m, n), 0xA5, np.uint8).repeat(c.itemsize, 1).view(c.dtype)
    bytes_ = [f.view(np.int8) for f in factors]
    return [registers(atom, "A", a), registers(atom, "B", b), e, *bytes_, c, poison], wanted
