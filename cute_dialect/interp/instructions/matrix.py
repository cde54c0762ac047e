"""ldmatrix, stmatrix, movmatrix, mma.sync and mma.sp with their fragment layouts.  The MMAs of sm_120 (``kind::…``)
have elements of 8, 6 and 4 bits, and scale factors per block along K.

Fragments (PTX ISA "Matrix fragments for mma.m16n8k…"): with g = lane / 4, t = lane mod 4 and E elements per 32-bit
register, element e of register r is at

- A: row g + 8·(r mod 2), column t·E + e + 4E·(r div 2)
- B: k t·E + e + 4E·r, column n = g
- C, D: element i at row g + 8·(i div 2), column 2t + i mod 2

This covers all `row.col` shapes m16n8k* and m8n8k*, except the Volta shape (m8n8k4 on f16, see `emit_quad_pairs`).
`mma.sp::ordered_metadata` is the MMA with a sparse A.  Its fragment layouts come from the table of atoms (PTX ISA 9.0,
9.7.14.6).  A is expanded to its full K by the metadata of the threads that the selector picks; invalid metadata bits
are a fault.

Products and their sum over k are formed in f64, which is exact for f16, bf16, tf32 and fp8. Then C is added, and the
result is rounded once. The device's summation order and truncation inside one instruction are undocumented, so f32
results may differ in the last bits. Integers are exact.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import ml_dtypes
import numpy as np

from cute_dialect.arch.elements import bits_of as bits_of_element
from cute_dialect.interp.compiler.control_flow import segments
from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler, Step
from cute_dialect.interp.compiler.undefined import origin_of, some, whole
from cute_dialect.interp.errors import Fault, InterpError, attr_of
from cute_dialect.interp.field import Algebra, elements_of, held
from cute_dialect.interp.instructions.field_ops import algebra_of, refusal
from cute_dialect.interp.instructions.moves import bits_of, enum_word
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text, number
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.machine.wgmma import expand, positions, words_of
from cute_dialect.interp.memory.accesses import Site, load, store
from cute_dialect.interp.types import Leaf, float_leaf, int_leaf
from cute_dialect.interp.values import Array, Mask, Regs, Undefined, Value, active_uniform, to_lanes

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation

    from cute_dialect.algebra.values import Layout
    from cute_dialect.arch.atom import MmaAtom


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


LANE = np.arange(32)
GID, TIG = LANE // 4, LANE % 4

_ELEMENTS: dict[str, str] = {
    "f16": "f16",
    "bf16": "bf16",
    "tf32": "f32",
    "f32": "f32",
    "f64": "f64",
    "e4m3": "f8E4M3FN",
    "e5m2": "f8E5M2",
}


def shape_of(op: Operation, name: str = "shape") -> dict[str, int]:
    """Return `#nvvm.shape<m = 16, n = 8, k = 16>` as a dict, in any representation of the attribute."""
    return {k: int(v) for k, v in re.findall(r"(\w+)\s*=\s*(\d+)", str(attr_of(op, name)))}


def whole_warps(g: Group, name: str) -> None:
    """Raise Fault if only some lanes of a warp execute `name`, a warp-wide instruction."""
    active = g.mask.array.reshape(-1, 32)
    some, all_ = active.any(axis=1), active.all(axis=1)
    if (some & ~all_).any():
        w = int(np.flatnonzero(some & ~all_)[0])
        raise Fault(
            "sync",
            f"{name}: all 32 threads of the warp must be active, got {int(active[w].sum())}",
            w * 32 + int(active[w].argmax()),
        )


def _ldmatrix(c: FnCompiler, op: Operation) -> None:
    p = c.use(op.operands[0])
    outs = c.defines(op.results[0])
    num = int(attr_of(op, "num").value.data)  # type: ignore[union-attr]
    trans = enum_word(attr_of(op, "layout")) == "col"
    shape = shape_of(op)
    if (shape.get("m", 8), shape.get("n", 8)) != (8, 8):
        _load_bytes(c, op, p, outs, 8 * num * (2 if shape["m"] == 16 else 1), trans)
        return
    row = Leaf("i", 16, np.dtype(np.int16), "i16", (8,))
    site = Site(row, 16, c.leaf_of(p).space, False, "ldmatrix", op)
    c.pieces.bound(site, p)
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        m = g.mask
        if m.n == 0:
            for d in outs:
                R[d] = np.zeros(g.lanes, np.int32)
            return
        whole_warps(g, "nvvm.ldmatrix")
        g.mask = Mask.of(m.array & (np.tile(LANE, g.lanes // 32) < 8 * num))
        got = to_lanes(load(site, g, R[p]), row, g.lanes).reshape(-1, 32, 8)
        g.mask = m
        for i, d in enumerate(outs):
            mat = got[:, 8 * i : 8 * i + 8]  # (warps, row, column)
            if trans:
                mat = mat.transpose(0, 2, 1)
            pair = np.stack([mat[:, GID, 2 * TIG], mat[:, GID, 2 * TIG + 1]], axis=-1)
            R[d] = np.ascontiguousarray(pair).view(np.int32).reshape(g.lanes)

    c.emit(op, step, pure=False)


_BYTE_ROW = Leaf("i", 8, np.dtype(np.int8), "i8", (16,))


def _unpacked_row(raw: Array, bits: int) -> Array:
    """Return 16 packed numbers of 4 or 6 bits, first lowest, as bytes. The last axis of `raw` has 16 bytes.

    [?] The ISA shows the order of the numbers and of the padding in a figure, which was not available.
    """
    flags = np.unpackbits(raw.view(np.uint8), axis=-1, bitorder="little")[..., : 16 * bits]
    weights = (1 << np.arange(bits)).astype(np.uint8)
    return (flags.reshape(*raw.shape[:-1], 16, bits) * weights).sum(axis=-1).astype(np.uint8).view(np.int8)


def _load_bytes(c: FnCompiler, op: Operation, p: int, outs: list[int], threads: int, trans: bool) -> None:
    """Compile ldmatrix of bytes. Thread `t` passes the address of row `t` of the first `threads` rows.

    With `trans`, register `2j` holds rows `4(t mod 4)` to `4(t mod 4) + 3` of column `t div 4` of matrix `j` (16x16),
    and register `2j + 1` those of column `t div 4 + 8`. Otherwise a register holds four columns of row `t div 4`.
    """
    kind = re.search(r"b(\d)x16_p", str(attr_of(op, "eltType")))
    bits = int(kind[1]) if kind is not None else 8
    site = Site(_BYTE_ROW, 16, c.leaf_of(p).space, False, "ldmatrix", op)
    c.pieces.bound(site, p)
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        m = g.mask
        if m.n == 0:
            for d in outs:
                R[d] = np.zeros(g.lanes, np.int32)
            return
        whole_warps(g, "nvvm.ldmatrix")
        g.mask = Mask.of(m.array & (np.tile(LANE, g.lanes // 32) < threads))
        got = to_lanes(load(site, g, R[p]), _BYTE_ROW, g.lanes).reshape(-1, 32, 16)
        g.mask = m
        got = _unpacked_row(np.ascontiguousarray(got), bits) if bits < 8 else got
        quad = 4 * TIG[:, None] + np.arange(4)
        for i, d in enumerate(outs):
            if trans:
                part = got[:, 16 * (i // 2) + quad, GID[:, None] + 8 * (i % 2)]
            else:
                part = got[:, 8 * i + GID[:, None], quad]
            R[d] = np.ascontiguousarray(part).view(np.int32).reshape(g.lanes)

    c.emit(op, step, pure=False)


_HALF_ROW = Leaf("i", 16, np.dtype(np.int16), "i16", (8,))


def _stmatrix(c: FnCompiler, op: Operation) -> None:
    """Compile stmatrix of 8x8 matrices of 16 bits, or of 16x8 matrices of bytes, transposed.

    In a matrix of bytes, column `2(t mod 4) + i` is a row of 16 bytes.  A register holds bytes 0 and 1 of row
    `t div 4`, and bytes 2 and 3 of row `t div 4 + 8`.
    """
    p = c.use(op.operands[0])
    vals = [c.use(v) for v in op.operands[1:]]
    is_transposed = enum_word(attr_of(op, "layout")) == "col"
    has_bytes = shape_of(op).get("m", 8) == 16
    row = _BYTE_ROW if has_bytes else _HALF_ROW
    width, dtype = row.shape[0], row.dtype
    site = Site(row, 16, c.leaf_of(p).space, True, "stmatrix", op)
    c.pieces.bound(site, p)
    i32 = int_leaf(32)
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        m = g.mask
        if m.n == 0:
            return
        whole_warps(g, "nvvm.stmatrix")
        warps = g.lanes // 32
        data = np.zeros((warps, 32, width), dtype)
        for i, s in enumerate(vals):
            held = np.ascontiguousarray(to_lanes(R[s], i32, g.lanes)).view(dtype).reshape(warps, 32, -1)
            rows = data[:, 8 * i : 8 * i + 8]
            for e in range(held.shape[2]):
                if has_bytes:
                    rows[:, 2 * TIG + e % 2, GID + 8 * (e // 2)] = held[:, :, e]
                elif is_transposed:
                    rows[:, 2 * TIG + e, GID] = held[:, :, e]
                else:
                    rows[:, GID, 2 * TIG + e] = held[:, :, e]
        g.mask = Mask.of(m.array & (np.tile(LANE, warps) < 8 * len(vals)))
        store(site, g, R[p], data.reshape(g.lanes, width))
        g.mask = m
        g.count.progress += 1

    c.emit(op, step, pure=False)


_ELEMENT_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "e4m3": 8, "e5m2": 8}


class Mma:
    """One mma.sync shape with element types by PTX name."""

    def __init__(self, m: int, n: int, k: int, a: str, b: str, integer_saturate: bool, bit_op: str = "") -> None:
        self.m, self.n, self.k = m, n, k
        self.a, self.b = a, b
        self.saturate = integer_saturate
        self.bit_op = bit_op
        self.algebra: Algebra | None = None

    def gather(self, regs: list[Array], kind: str, is_a: bool) -> Array:
        """Gather register fragments `(warps, 32, E)` into a matrix `(warps, m, k)` or `(warps, k, n)`.

        Elements are f64 or int64.
        """
        warps = regs[0].shape[0]
        per = regs[0].shape[2]
        exact = np.float64 if kind in _ELEMENTS else np.int64
        out = np.zeros((warps, self.m, self.k) if is_a else (warps, self.k, self.n), exact)
        e = np.arange(per)
        for r, reg in enumerate(regs):
            if is_a:
                rows = GID[:, None] + 8 * (r % 2) if self.m == 16 else GID[:, None]
                cols = TIG[:, None] * per + e + 4 * per * (r // 2 if self.m == 16 else r)
                out[:, np.broadcast_to(rows, cols.shape), cols] = reg
            else:
                ks = TIG[:, None] * per + e + 4 * per * r
                out[:, ks, np.broadcast_to(GID[:, None], ks.shape)] = reg
        return out


def decode(v: Value, leaf: Leaf, kind: str, g: Group) -> Array:
    """Split a register into its elements, `(warps, 32, E)`."""
    raw = bits_of(to_lanes(v, leaf, g.lanes), leaf, g.lanes)
    if kind in ("s8", "u8"):
        got = raw.view(np.int8 if kind == "s8" else np.uint8)
    elif kind in ("s4", "u4"):
        low, high = raw & 15, raw >> 4
        got = np.stack([low, high], axis=-1).reshape(len(raw), -1).astype(np.int8)
        if kind == "s4":
            got = np.where(got > 7, got - 16, got)
    elif kind == "b1":
        got = np.unpackbits(np.ascontiguousarray(raw).view(np.uint8), axis=-1, bitorder="little").astype(np.int64)
    elif kind == "tf32":
        got = (raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    elif kind in _ELEMENTS:
        got = raw.view(float_leaf(_ELEMENTS[kind]).dtype)
    else:
        raise Fault("unsupported", f"mma element type {kind} is not supported")
    return got.reshape(g.lanes // 32, 32, -1)


def run_mma(
    mma: Mma,
    g: Group,
    a: list[Value],
    b: list[Value],
    c: list[Value],
    leaves: tuple[list[Leaf], list[Leaf], list[Leaf]],
    out: list[Leaf],
) -> list[Value]:
    """Compute D = A·B + C on the fragments of each warp, and return the result registers."""
    if any(isinstance(v, Undefined) for v in (*a, *b, *c)):
        return _undefined_mma(mma, g, (a, b, c), leaves, out)
    la, lb, lc = leaves
    A = mma.gather([_elements(mma, v, leaf, mma.a, g) for v, leaf in zip(a, la)], mma.a, True)
    B = mma.gather([_elements(mma, v, leaf, mma.b, g) for v, leaf in zip(b, lb)], mma.b, False)
    warps = g.lanes // 32
    acc = [to_lanes(v, leaf, g.lanes).reshape(warps, 32, -1) for v, leaf in zip(c, lc)]
    flat = np.concatenate(acc, axis=2)  # (warps, 32, elements)
    n = flat.shape[2]
    rows, cols = _places(n)
    if mma.algebra is not None:
        product = mma.algebra.matmul(A, B)[:, rows, cols]
        return _pieces(held(mma.algebra.add(product, elements_of(flat)), out[0].dtype), g, out)
    exact = A @ B
    if mma.bit_op == "xor_popc":
        exact = A.sum(2)[:, :, None] + B.sum(1)[:, None, :] - 2 * exact
    total = exact[:, rows, cols] + flat.astype(exact.dtype)
    if exact.dtype == np.int64:
        if mma.saturate:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        result = total.astype(np.int32)
    else:
        result = total.astype(out[0].dtype)
    return _pieces(result, g, out)


def _elements(mma: Mma, v: Value, leaf: Leaf, kind: str, g: Group) -> Array:
    """Split a register into its elements, or into those of the algebra."""
    if mma.algebra is None:
        return decode(v, leaf, kind, g)
    return elements_of(decode(v, leaf, "f32" if kind == "tf32" else kind, g))


def _pieces(result: Value, g: Group, out: list[Leaf]) -> list[Value]:
    """Divide the elements of D, `(warps, 32, n)`, among the result registers."""
    assert isinstance(result, np.ndarray)
    per = result.shape[2] // len(out)
    return [
        np.ascontiguousarray(result[:, :, k * per : (k + 1) * per]).reshape(g.lanes, *leaf.shape)
        for k, leaf in enumerate(out)
    ]


def _places(n: int) -> tuple[Array, Array]:
    """Return the row and column, each `(32, n)`, of the `n` elements of D that each thread holds."""
    i = np.arange(n)
    return GID[:, None] + 8 * (i // 2), TIG[:, None] * 2 + i % 2


def _undefined_mma(
    mma: Mma,
    g: Group,
    values: tuple[list[Value], list[Value], list[Value]],
    leaves: tuple[list[Leaf], list[Leaf], list[Leaf]],
    out: list[Leaf],
) -> list[Value]:
    """Compute an MMA with undefined registers.

    D is undefined in rows of undefined A, columns of undefined B, and undefined elements of C.
    """
    first = origin_of(v for part in values for v in part if isinstance(v, Undefined))
    plain = [[v.value if isinstance(v, Undefined) else v for v in part] for part in values]
    got = run_mma(mma, g, plain[0], plain[1], plain[2], leaves, out)
    bits = [
        [
            some(v, leaf, g.lanes) if isinstance(v, Undefined) else np.zeros((g.lanes, *leaf.shape), np.bool_)
            for v, leaf in zip(part, held)
        ]
        for part, held in zip(values, leaves)
    ]
    warps = g.lanes // 32
    sides: list[Array] = []
    for k, kind in ((0, mma.a), (1, mma.b)):
        full = [np.where(v, leaf.dtype.type(-1), leaf.dtype.type(0)) for v, leaf in zip(bits[k], leaves[k])]
        regs = [decode(v, leaf, kind, g) for v, leaf in zip(full, leaves[k])]
        # A register of several elements is undefined as a whole if one of them is.
        regs = [np.broadcast_to((r != 0).any(axis=2, keepdims=True), r.shape).astype(np.float64) for r in regs]
        sides.append(mma.gather(regs, kind, k == 0).any(axis=2 if k == 0 else 1))
    acc = np.concatenate([v.reshape(warps, 32, -1) for v in bits[2]], axis=2)
    rows, cols = _places(acc.shape[2])
    bad = acc | (sides[0][:, :, None] | sides[1][:, None, :])[:, rows, cols]
    per = acc.shape[2] // len(out)
    return [
        whole(v, bad[:, :, k * per : (k + 1) * per].reshape(g.lanes, *leaf.shape), leaf, g, first)
        for k, (v, leaf) in enumerate(zip(got, out))
    ]


def emit_mma(c: FnCompiler, op: Operation, mma: Mma, counts: tuple[int, int, int]) -> None:
    """Compile an MMA whose operands are the registers of A, B and C, in this order."""
    values = [c.use(v) for v in op.operands]
    na, nb, _ = counts
    outs = c.defines(op.results[0])
    if c.program.algebra is not None and mma.a in _ELEMENTS:
        mma.algebra = algebra_of(c, float_leaf(_ELEMENTS[mma.a]), float_leaf(_ELEMENTS[mma.b]), c.leaf_of(outs[0]))
    if mma.m not in (8, 16) or mma.n != 8:
        raise InterpError("unsupported", f"mma m{mma.m}n{mma.n}k{mma.k} is not supported; use m8n8 or m16n8")
    step = _mma_step(c, mma, values[:na], values[na : na + nb], values[na + nb :], outs)
    c.emit(op, step, keep=True, track=False)


def _mma_step(
    c: FnCompiler, mma: Mma, a: Sequence[int], b: Sequence[int], acc: Sequence[int], outs: Sequence[int]
) -> Step:
    """Return the step of an MMA on the registers of A, B and C."""
    leaves = ([c.leaf_of(s) for s in a], [c.leaf_of(s) for s in b], [c.leaf_of(s) for s in acc])
    out_leaves = [c.leaf_of(s) for s in outs]
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        if g.mask.n:
            whole_warps(g, "mma.sync")
        got = run_mma(mma, g, [R[s] for s in a], [R[s] for s in b], [R[s] for s in acc], leaves, out_leaves)
        for d, v in zip(outs, got):
            R[d] = v

    return step


def _mma_sync(c: FnCompiler, op: Operation) -> None:
    shape = shape_of(op)
    sizes = segments(op, 3)
    first = c.leaf_of(c.use(op.operands[0]))
    inferred = first.name if first.kind == "f" else ""
    a = enum_word(attr_of(op, "multiplicandAPtxType")) or inferred
    b = enum_word(attr_of(op, "multiplicandBPtxType")) or a
    wrapped = enum_word(attr_of(op, "intOverflowBehavior")) == "wrapped"
    bit_op = enum_word(attr_of(op, "b1Op"))
    counts = (sizes[0], sizes[1], sizes[2])
    if (shape["m"], a) == (8, "f16"):
        majors = (
            "k" if enum_word(attr_of(op, "layoutA")) == "row" else "mn",
            "k" if enum_word(attr_of(op, "layoutB")) == "col" else "mn",
        )
        emit_quad_pairs(c, op, majors, counts)
        return
    emit_mma(c, op, Mma(shape["m"], shape["n"], shape["k"], a, b, not wrapped, bit_op), counts)


def mma_by_name(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    """Compile an intrinsic such as `llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32`.

    The name lists the types of D, A, B and C, or one type for all.
    """
    names = [n for n in m[4].split(".") if n not in ("satfinite",)]
    a, b = (names[1], names[2]) if len(names) == 4 else (names[0], names[-1])
    mma = Mma(int(m[1]), int(m[2]), int(m[3]), a, b, "satfinite" in m[4])
    bits = _ELEMENT_BITS.get(a, 0)
    if not bits:
        raise InterpError("unsupported", f"mma element type {a} is not supported")
    per = 1 if bits == 64 else 32 // bits
    na, nb = mma.m * mma.k // (32 * per), mma.n * mma.k // (32 * per)
    emit_mma(c, op, mma, (na, nb, len(op.operands) - na - nb))


# -- mma.sync.m8n8k4 --------------------------------------------------------------------------------------------------

QUAD_PAIR_LANES = np.array([[t + 4 * g if t < 4 else t + 12 + 4 * g for t in range(8)] for g in range(4)])
"""Maps quad-pair g and logical thread t to a lane."""


def _positions(layout: Layout) -> Array:
    from cute_dialect.algebra.evaluation import evaluate  # late: start-up
    from cute_dialect.algebra.values import layout_modes  # late: start-up

    threads, values = layout_modes(layout)
    first = np.array([evaluate(t, threads) for t in range(8)])
    n = int(np.prod(values.shape))  # pyright: ignore[reportCallIssue, reportArgumentType]
    return first[:, None] + np.array([evaluate(v, values) for v in range(n)])[None, :]


def emit_quad_pairs(c: FnCompiler, op: Operation, majors: tuple[str, str], counts: tuple[int, int, int]) -> None:
    """Compile one MMA. `majors` are those of A and B, `counts` the register counts of A, B and C."""
    from cute_dialect.arch.table import find_mma_sync  # late: start-up

    if c.program.algebra is not None:
        raise refusal("mma.sync.m8n8k4")
    slots = [c.use(v) for v in op.operands]
    outs = c.defines(op.results[0])
    leaves = [c.leaf_of(s) for s in slots]
    out_leaves = [c.leaf_of(s) for s in outs]
    accumulator = "f32" if leaves[-1].name == "f32" else "f16"
    row = find_mma_sync((8, 8, 4), (accumulator, "f16", "f16", accumulator), majors)
    a_at, b_at, c_at = (_positions(row.layout(x)) for x in "ABC")
    c.fn.collective = True

    def values(R: Regs, g: Group, first: int, count: int) -> Array:
        parts = [to_lanes(R[s], x, g.lanes).reshape(g.lanes // 32, 32, -1) for s, x in zip(slots, leaves)]
        held = np.concatenate(parts[first : first + count], axis=2).astype(np.float64)
        return held[:, QUAD_PAIR_LANES]  # (warps, quad-pair, thread, value)

    def step(R: Regs, g: Group) -> None:
        warps = g.lanes // 32
        tiles: list[Array] = []
        start = 0
        for at, count, shape in ((a_at, counts[0], (4, 8)), (b_at, counts[1], (4, 8)), (c_at, counts[2], (8, 8))):
            flat = np.zeros((warps, 4, shape[0] * shape[1]))
            flat[:, :, at] = values(R, g, start, count)
            tiles.append(flat.reshape(warps, 4, *shape))  # column-major: (second, first)
            start += count
        product = np.einsum("wqkm,wqkn->wqnm", tiles[0], tiles[1]) + tiles[2]
        found = product.reshape(warps, 4, 64)[:, :, c_at]
        lanes = np.zeros((warps, 32, found.shape[-1]))
        lanes[:, QUAD_PAIR_LANES] = found
        per = found.shape[-1] // len(outs)
        for i, (s, leaf) in enumerate(zip(outs, out_leaves)):
            part = np.ascontiguousarray(lanes[:, :, i * per : (i + 1) * per]).astype(leaf.dtype)
            R[s] = part.reshape(g.lanes, *leaf.shape)

    c.emit(op, step, keep=True)


# -- inline PTX -------------------------------------------------------------------------------------------------------


def _mma(text: Text, s: Statement) -> None:
    if ".kind::" in s.opcode:
        _narrow_mma(text, s)
        return
    m = re.fullmatch(
        r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)",
        s.opcode,
    )
    if m is None or m[6] not in _ELEMENT_BITS:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    mma = Mma(int(m[1]), int(m[2]), int(m[3]), m[6], m[7], m[4] is not None)
    if text.c.program.algebra is not None and mma.a in _ELEMENTS:
        mma.algebra = algebra_of(text.c, float_leaf(_ELEMENTS[mma.a]), float_leaf(_ELEMENTS[mma.b]))
        if m[5] == "f16":
            raise refusal(s.opcode)
    d, a, b, acc = ([text.slot(p) for p in s.parts(i)] for i in range(4))
    text.emit(s, _mma_step(text.c, mma, a, b, acc, d))


def _movmatrix(text: Text, s: Statement) -> None:
    """Transpose a matrix.

    Lane ``t`` holds elements ``2(t mod 4)`` and the next of row ``t div 4``, before and after the transposition.
    """
    if text.guard(s)[0] >= 0:
        raise InterpError("unsupported", "movmatrix cannot have a predicate, because the whole warp executes it")
    d, a = (text.slot(o) for o in s.operands)
    leaf = int_leaf(32)
    text.c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        if g.mask.n == 0:
            R[d] = np.zeros(g.lanes, np.int32)
            return
        whole_warps(g, "movmatrix")
        warps = g.lanes // 32
        pair = np.ascontiguousarray(to_lanes(R[a], leaf, g.lanes)).view(np.int16).reshape(warps, 32, 2)
        matrix = np.zeros((warps, 8, 8), np.int16)
        matrix[:, GID, 2 * TIG] = pair[:, :, 0]
        matrix[:, GID, 2 * TIG + 1] = pair[:, :, 1]
        out = np.stack([matrix[:, 2 * TIG, GID], matrix[:, 2 * TIG + 1, GID]], axis=-1)
        R[d] = np.ascontiguousarray(out).view(np.int32).reshape(g.lanes)

    text.emit(s, step)


# ----------------------------------------------------------------------------------------------------------- sparse MMA


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


_I32 = int_leaf(32)


class Registers(NamedTuple):
    """Slots of the operands and results; `selector` is a slot too."""

    a: list[int]
    b: list[int]
    c: list[int]
    e: int
    selector: int
    outs: list[int]


def _tile(row: MmaAtom, operand: str, values: Array) -> Array:
    """Convert fragments `(warps, 32, values)` to a matrix `(warps, rows, columns)`."""
    rows, columns = row.tile(operand)
    flat = np.zeros((values.shape[0], rows * columns), values.dtype)
    flat[:, positions(row.layout(operand))] = values
    return flat.reshape(-1, columns, rows).transpose(0, 2, 1)


def compile_mma(c: FnCompiler, row: MmaAtom, used: Registers) -> Step:
    held = row.metadata
    assert held is not None
    m, _, _ = row.shape_mnk
    kinds = (str(row.emit["type_a"]), str(row.emit["type_b"]))
    exact = np.int64 if row.d == "i32" else np.float64
    leaves: list[list[Leaf]] = [[c.leaf_of(s) for s in part] for part in (used.a, used.b, used.c, used.outs)]
    c.fn.collective = True

    def operand(R: Regs, g: Group, name: str, slots: list[int], kind: str, own: list[Leaf]) -> Array:
        parts = [decode(R[s], leaf, kind, g) for s, leaf in zip(slots, own)]
        return _tile(row, name, np.concatenate(parts, axis=2).astype(exact))

    def step(R: Regs, g: Group) -> None:
        warps = g.lanes // 32
        if g.mask.n:
            whole_warps(g, "mma.sp")
        selector = int(active_uniform(R[used.selector], g.mask, "the sparsity selector")) if g.mask.n else 0
        if not 0 <= selector < held.selectors:
            raise Fault("argument", f"mma.sp: the sparsity selector must be 0 to {held.selectors - 1}, got {selector}")
        a = operand(R, g, "A", used.a, kinds[0], leaves[0])
        b = operand(R, g, "B", used.b, kinds[1], leaves[1])
        e = to_lanes(R[used.e], _I32, g.lanes).reshape(warps, 32).view(np.uint32)
        words = words_of(held, m, row.tile("E")[1], e, selector)
        ask = np.asarray(g.mask.array.reshape(warps, 32).any(axis=1))
        product = expand(held, a, words, ask, selector, "mma.sp") @ b.transpose(0, 2, 1)
        parts = [to_lanes(R[s], leaf, g.lanes).reshape(warps, 32, -1) for s, leaf in zip(used.c, leaves[2])]
        total = product + _tile(row, "C", np.concatenate(parts, axis=2).astype(exact))
        if row.emit["saturate"]:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        flat = total.transpose(0, 2, 1).reshape(warps, -1)
        result = flat[:, positions(row.layout_c)].astype(leaves[3][0].dtype)
        per = result.shape[2] // len(used.outs)
        for i, (s, leaf) in enumerate(zip(used.outs, leaves[3])):
            R[s] = np.ascontiguousarray(result[:, :, i * per : (i + 1) * per]).reshape(g.lanes, *leaf.shape)

    return step


def row_of(shape: tuple[int, int, int], a: str, b: str, saturate: bool, d: str) -> MmaAtom:
    """Return the table row for PTX types of A, B and D.  Raises InterpError if there is none."""
    from cute_dialect.arch.elements import by_ptx  # late: start-up
    from cute_dialect.arch.errors import AtomError  # late: start-up
    from cute_dialect.arch.table import find_mma_sp  # late: start-up

    try:
        return find_mma_sp(shape, (by_ptx(d), by_ptx(a), by_ptx(b), by_ptx(d)), saturate)
    except AtomError as e:
        raise InterpError("unsupported", str(e)) from None


def _accumulator(leaf: Leaf) -> str:
    return "f16" if leaf.name.endswith("f16") else "s32" if leaf.kind == "i" else "f32"


def _emit(c: FnCompiler, op: Operation, row: MmaAtom) -> None:
    values = [c.use(v) for v in op.operands]
    na, nb, nc = (row.registers(x).count for x in "ABC")
    if len(values) != na + nb + nc + 2:
        raise InterpError("unsupported", f"mma.sp takes {na + nb + nc + 2} operands, got {len(values)}")
    a, b, acc = values[:na], values[na : na + nb], values[na + nb : -2]
    used = Registers(a, b, acc, values[-2], values[-1], list(c.defines(op.results[0])))
    c.emit(op, compile_mma(c, row, used), keep=True)


def _mma_sp_sync(c: FnCompiler, op: Operation) -> None:
    if attr_of(op, "orderedMetadata") is None:
        raise InterpError("unsupported", "nvvm.mma.sp.sync is only supported with ordered metadata")
    shape = shape_of(op)
    sizes = segments(op, 5)
    a, b = (enum_word(attr_of(op, f"multiplicand{x}PtxType")) for x in "AB")
    saturate = enum_word(attr_of(op, "intOverflowBehavior")) == "satfinite"
    acc = c.leaf_of(c.use(op.operands[sizes[0] + sizes[1]]))
    _emit(c, op, row_of((shape["m"], shape["n"], shape["k"]), a, b, saturate, _accumulator(acc)))


def mma_sp_by_name(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    """Compile `llvm.nvvm.mma.sp.ordered.metadata.m16n8k64.row.col.f32.e4m3.e4m3.f32`; see `matrix.mma_by_name`."""
    names = [n for n in m[4].split(".") if n != "satfinite"]
    a, b = (names[1], names[2]) if len(names) == 4 else (names[0], names[-1])
    acc = c.leaf_of(c.use(op.operands[-3]))
    if a in ("f16", "f32") and b == a:  # The name lists only D and C.
        a = b = "f16"
    _emit(c, op, row_of((int(m[1]), int(m[2]), int(m[3])), a, b, "satfinite" in m[4], _accumulator(acc)))


# -- inline PTX -------------------------------------------------------------------------------------------------------

_MMA_SP = re.compile(
    r"mma\.sp::ordered_metadata\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)"
)


def _mma_sp(text: Text, s: Statement) -> None:
    if ".kind::" in s.opcode:
        _narrow_mma(text, s)
        return
    m = _MMA_SP.fullmatch(s.opcode)
    if m is None or len(s.operands) != 6:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    d, a, b, c = ([text.slot(p) for p in s.parts(i)] for i in range(4))
    shape = (int(m[1]), int(m[2]), int(m[3]))
    row = row_of(shape, m[6], m[7], m[4] is not None, m[5])
    used = Registers(a, b, c, text.slot(s.operands[4]), text.slot(s.operands[5]), d)
    text.emit(s, compile_mma(text.c, row, used))


# ------------------------------------------------------------------------------------------------------- MMAs of sm_120


_NARROW = re.compile(
    r"mma\.(sync|sp::ordered_metadata\.sync)\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.kind::(\w+)"
    r"(?:\.block_scale\.scale_vec::(\d)X)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)(?:\.(\w+))?"
)


class Factors(NamedTuple):
    """A scale operand: its slot, the byte of the first factor, and the lanes of four that hold it (thread id)."""

    slot: int
    byte: int
    thread: int


@lru_cache(maxsize=16)
def _values(element: str, packed: bool) -> Array:
    """Return the number of each byte, or of each half of a byte, as f64.  A 4-bit element is in bits 5 to 2."""
    codes = np.arange(16 if packed else 256, dtype=np.uint8)
    if element == "ue4m3":
        return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    bits = bits_of_element(element)
    if not packed and bits < 8:
        codes = codes >> 2 & 15 if bits == 4 else codes & 63
    return codes.view(float_leaf(element).dtype).astype(np.float64)


def _narrow_operand(row: MmaAtom, operand: str, registers: list[Array]) -> Array:
    """Return the matrix `(warps, rows, K)` of the registers of A or B, `(warps, 32)` each."""
    words = np.ascontiguousarray(np.stack(registers, axis=-1)).view(np.uint8)
    packed = row.registers(operand).values == 8
    if packed:
        words = np.stack([words & 15, words >> 4], axis=-1).reshape(*words.shape[:-1], -1)
    return _tile(row, operand, _values(row.element(operand), packed)[words])


def _factors(row: MmaAtom, operand: str, word: Array, used: Factors, ask: Array) -> Array:
    """Return the scale factors `(warps, rows, blocks)` of a register, `(warps, 32)`."""
    held = row.scales
    assert held is not None
    count = held.registers.values
    codes = np.stack(
        [word.view(np.uint32) >> np.uint32(8 * (used.byte + i)) & np.uint32(255) for i in range(count)], -1
    )
    lanes = LANE % 4 // (2 if operand == "SFA" else 1) == used.thread
    if held.element == "ue4m3":
        negative = (codes >= 128).any(-1) & lanes & ask[:, None]
        if negative.any():
            warp, lane = (int(x[0]) for x in np.nonzero(negative))
            raise Fault("argument", f"mma: a ue4m3 factor of {operand} has its highest bit set", warp * 32 + lane)
    rows, columns = row.tile(operand)
    flat = np.zeros((word.shape[0], rows * columns))
    flat[:, positions(row.layout(operand))[lanes]] = _values(held.element, False)[codes][:, lanes]
    return np.repeat(flat.reshape(-1, columns, rows).transpose(0, 2, 1), held.vector, axis=2)


def compile_narrow_mma(c: FnCompiler, row: MmaAtom, used: Registers, scales: Sequence[Factors]) -> Step:
    """Return the step of an MMA of sm_120.  ``used.e`` and ``used.selector`` are -1 for a dense A."""
    leaves = {s: c.leaf_of(s) for s in (*used.a, *used.b, *used.c, *used.outs, *(f.slot for f in scales))}
    accumulator = np.dtype(np.float16 if row.d == "f16" else np.float32)
    c.fn.collective = True

    def words(R: Regs, g: Group, slot: int) -> Array:
        return bits_of(to_lanes(R[slot], leaves[slot], g.lanes), leaves[slot], g.lanes).view(np.int32).reshape(-1, 32)

    def step(R: Regs, g: Group) -> None:
        warps = g.lanes // 32
        if g.mask.n:
            whole_warps(g, "mma")
        ask = np.asarray(g.mask.array.reshape(warps, 32).any(axis=1))
        a = _narrow_operand(row, "A", [words(R, g, s) for s in used.a])
        b = _narrow_operand(row, "B", [words(R, g, s) for s in used.b])
        if row.metadata is not None:
            selector = int(active_uniform(R[used.selector], g.mask, "the sparsity selector")) if g.mask.n else 0
            if not 0 <= selector < row.metadata.selectors:
                last = row.metadata.selectors - 1
                raise Fault("argument", f"mma.sp: the sparsity selector must be 0 to {last}, got {selector}")
            e = to_lanes(R[used.e], _I32, g.lanes).reshape(warps, 32).view(np.uint32)
            held = words_of(row.metadata, row.shape_mnk[0], row.tile("E")[1], e, selector)
            a = expand(row.metadata, a, held, ask, selector, "mma.sp")
        for operand, side, factors in zip(("SFA", "SFB"), (a, b), scales):
            side *= _factors(row, operand, words(R, g, factors.slot), factors, ask)
        parts = np.stack([words(R, g, s) for s in used.c], axis=-1)
        with np.errstate(invalid="ignore", over="ignore"):
            total = a @ b.transpose(0, 2, 1) + _tile(
                row, "C", np.ascontiguousarray(parts).view(accumulator).astype(np.float64)
            )
            flat = total.transpose(0, 2, 1).reshape(warps, -1)
            result = np.ascontiguousarray(flat[:, positions(row.layout_c)].astype(accumulator))
        registers = result.view(np.int32).reshape(g.lanes, -1)
        for i, s in enumerate(used.outs):
            own = np.ascontiguousarray(registers[:, i])
            R[s] = own.view(leaves[s].dtype).reshape(g.lanes, *leaves[s].shape)

    return step


def _narrow_mma(text: Text, s: Statement) -> None:
    from cute_dialect.arch.elements import by_ptx  # late: start-up
    from cute_dialect.arch.errors import AtomError  # late: start-up
    from cute_dialect.arch.table import find_narrow_mma  # late: start-up

    m = _NARROW.fullmatch(s.opcode)
    if m is None or m[7] != m[10]:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    sparse = m[1] != "sync"
    shape = (int(m[2]), int(m[3]), int(m[4]))
    d, a, b = (by_ptx(name) for name in m.group(7, 8, 9))
    blocks = int(m[6] or 0)
    try:
        factor = by_ptx(m[11]) if m[11] else ""
        vector = shape[2] // (2 * blocks if sparse else blocks) if blocks else 0
        row = find_narrow_mma(shape, (d, a, b, d), m[5], factor, vector, sparse)
    except AtomError as e:
        raise InterpError("unsupported", str(e)) from None
    wanted = 4 + (2 if sparse else 0) + (4 if row.scales is not None else 0)
    if len(s.operands) != wanted:
        raise InterpError("unsupported", f"{s.opcode} takes {wanted} operands, got {len(s.operands)}")
    outs, *inputs = ([text.slot(p) for p in s.parts(i)] for i in range(4))
    e, selector = (text.slot(s.operands[4]), text.slot(s.operands[5])) if sparse else (-1, -1)
    first = 6 if sparse else 4
    scales = (
        [_scale(text, s, first + 2 * i, operand, blocks) for i, operand in enumerate(("SFA", "SFB"))] if blocks else []
    )
    used = Registers(*inputs, e, selector, outs)
    if len(text.statements) == 1:
        for factors in scales:
            if not any(factors.slot in slots for slots in (*inputs, (e, selector))):
                mask = (1 << 8 * blocks) - 1 << 8 * factors.byte
                text.read_bits[factors.slot] = text.read_bits.get(factors.slot, 0) | mask
    text.emit(s, compile_narrow_mma(text.c, row, used, scales))


def _scale(text: Text, s: Statement, at: int, operand: str, blocks: int) -> Factors:
    ids = [number(part) for part in s.parts(at + 1)]
    bytes_, threads = range(0, 4, blocks), range(2 if operand == "SFA" else 4)
    if len(ids) != 2 or ids[0] not in bytes_ or ids[1] not in threads:
        known = f"a byte of {', '.join(map(str, bytes_))} and a thread of {', '.join(map(str, threads))}"
        raise InterpError(
            "unsupported", f"{s.opcode}: {operand} has {s.operands[at + 1]}; write {{byte, thread}}, {known}"
        )
    return Factors(text.slot(s.operands[at]), int(ids[0]), int(ids[1]))


OPS: dict[str, Builder] = {
    "nvvm.ldmatrix": _ldmatrix,
    "nvvm.stmatrix": _stmatrix,
    "nvvm.mma.sync": _mma_sync,
    "nvvm.mma.sp.sync": _mma_sp_sync,
}
TABLE: Sequence[tuple[str, Handler]] = (
    (r"mma\.sp.*", _mma_sp),
    (r"mma\.sync.*", _mma),
    (r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16", _movmatrix),
)
