"""Builders of ops over an algebra (see `field`), for runs that compare values exactly.

Ops that only move bits keep their builder. Sums, products, conversions between floats and constants have a builder
here. Every other op on floats is refused by its name, so no result is approximated. Rounding and saturation of
conversions are not modelled: they become the identity, and `Algebra.notes` counts them for the report.

Example: `arith.mulf` of residues a and b gives a * b modulo the prime, in the bits of the result's float type.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import InterpError, attr_of, location_text, op_name
from cute_dialect.interp.field import (
    LOG2_E,
    Algebra,
    Choice,
    FunctionDegrees,
    Functions,
    check_width,
    elements_of,
    functions_of,
    held,
)
from cute_dialect.interp.instructions import moves, vectors
from cute_dialect.interp.instructions.float_ops import PREDICATES
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.instructions.ptx_text import FLOATS, KINDS, Row, Statement, Words, number
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.types import Leaf, type_of
from cute_dialect.interp.values import Array, Regs, Value, unsigned

if TYPE_CHECKING:
    from xdsl.ir import SSAValue


def algebra_of(c: FnCompiler, *leaves: Leaf) -> Algebra:
    """Return the algebra of a run, whose elements fit in these types."""
    algebra = c.program.algebra
    assert algebra is not None
    for leaf in leaves:
        check_width(algebra, leaf)
    return algebra


def note(algebra: Algebra, text: str) -> None:
    """Count an effect that the algebra does not model."""
    algebra.notes[text] = algebra.notes.get(text, 0) + 1


def refusal(name: str) -> InterpError:
    """Return the error for an op without a meaning over a field."""
    return InterpError(
        "field",
        f"{name} has no value over a field; supported are sums, products, fma, matrix products and conversions between "
        "f16, bf16, tf32, f32 and f64; without a given prime also division, comparisons, minima, maxima, exp, exp2, "
        "log2, sqrt, rsqrt and tanh",
    )


def _binary(method: str) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)
        f: Callable[[Array, Array], Array] = getattr(algebra_of(c, leaf), method)

        def step(R: Regs, g: Group) -> None:
            R[d] = held(f(elements_of(R[a]), elements_of(R[b])), leaf.dtype)

        c.emit(op, step)

    return build


def _negate(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    algebra = algebra_of(c, leaf)

    def step(R: Regs, g: Group) -> None:
        R[d] = held(algebra.negate(elements_of(R[a])), leaf.dtype)

    c.emit(op, step)


def _fma(c: FnCompiler, op: Operation) -> None:
    x, y, z = (c.use(v) for v in op.operands)
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    algebra = algebra_of(c, leaf)

    def step(R: Regs, g: Group) -> None:
        product = algebra.multiply(elements_of(R[x]), elements_of(R[y]))
        R[d] = held(algebra.add(product, elements_of(R[z])), leaf.dtype)

    c.emit(op, step)


def _convert(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    leaf, source = c.leaf_of(d), c.leaf_of(a)
    algebra = algebra_of(c, leaf, source)
    if leaf.width < source.width:
        note(algebra, f"rounding from {source.name} to {leaf.name}")

    def step(R: Regs, g: Group) -> None:
        R[d] = held(elements_of(R[a]), leaf.dtype)

    c.emit(op, step)


def _from_int(is_signed: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf, source = c.leaf_of(d), c.leaf_of(a)
        algebra = algebra_of(c, leaf)

        def step(R: Regs, g: Group) -> None:
            v = R[a] if is_signed and source.width != 1 else unsigned(R[a], source)
            x = np.asarray(v)
            if x.dtype == np.bool_:
                x = -x.astype(np.int64) if is_signed else x.astype(np.int64)
            R[d] = held(algebra.integers(x), leaf.dtype)

        c.emit(op, step)

    return build


def _constant(c: FnCompiler, op: Operation) -> None:
    attr = attr_of(op, "value")
    t = type_of(op.results[0].type)
    if attr is None:
        raise InterpError("unsupported", "the constant has no value")
    values: list[Value] = []
    for v, leaf in zip(moves.literal(attr, t), t.leaves):
        if leaf.kind != "f":
            values.append(v)
            continue
        algebra = algebra_of(c, leaf)
        numbers = np.asarray(v).astype(np.float64)
        values.append(held(np.vectorize(algebra.constant, otypes=[np.int64])(numbers), leaf.dtype))
    c.constant(op.results[0], values)


def _choice(algebra: Functions | FunctionDegrees, op: Operation, name: str) -> Choice:
    return algebra.choices.setdefault(op, Choice(name, location_text(op)))


def _extremum(is_max: bool, is_number: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)
        algebra = functions_of(algebra_of(c, leaf), op_name(op))
        choose = algebra.maximum if is_max else algebra.minimum
        choice = _choice(algebra, op, "the maximum" if is_max else "the minimum")

        def step(R: Regs, g: Group) -> None:
            x, y = elements_of(R[a]), elements_of(R[b])
            choice.see(algebra, x, y)
            R[d] = held(choose(x, y, number=is_number), leaf.dtype)

        c.emit(op, step)

    return build


def _compare(c: FnCompiler, op: Operation) -> None:
    a, b = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    algebra = functions_of(algebra_of(c, c.leaf_of(a)), op_name(op))
    word = PREDICATES[attr_of(op, "predicate").value.data]  # type: ignore[union-attr]
    if word in ("true", "false"):
        raise refusal(op_name(op))

    choice = _choice(algebra, op, "the equality" if word.removesuffix("u") in ("eq", "ne") else "the comparison")

    def step(R: Regs, g: Group) -> None:
        x, y = elements_of(R[a]), elements_of(R[b])
        if word not in ("num", "nan"):
            choice.see(algebra, x, y)
        r = np.asarray(algebra.compare(word, x, y))
        R[d] = r if r.ndim else bool(r)

    c.emit(op, step)


def _divide(c: FnCompiler, op: Operation) -> None:
    a, b = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    algebra = functions_of(algebra_of(c, leaf), op_name(op))

    def step(R: Regs, g: Group) -> None:
        inverse = algebra.inverse(elements_of(R[b]))
        R[d] = held(algebra.multiply(elements_of(R[a]), inverse), leaf.dtype)

    c.emit(op, step)


def _function(name: str) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)
        f = _function_of(algebra_of(c, leaf), name, op_name(op))

        def step(R: Regs, g: Group) -> None:
            R[d] = held(f(elements_of(R[a])), leaf.dtype)

        c.emit(op, step)

    return build


def _function_of(algebra: Algebra, name: str, shown: str) -> Callable[[Array], Array]:
    """Return a function of one number over an algebra. Raises InterpError if the algebra has no functions."""
    found = functions_of(algebra, shown)
    if name == "exp2":
        return found.exp2
    if name == "exp":
        factor = np.asarray(found.constant(LOG2_E))
        return lambda x: found.exp2(found.multiply(x, factor))
    if name == "rcp":
        return found.inverse
    return lambda x: found.function(name, x)


def _reduction(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    kind = enum_word(attr_of(op, "kind"))
    if kind not in ("add", "mul"):
        raise refusal(f"vector.reduction <{kind}>")
    start = c.use(op.operands[1]) if len(op.operands) > 1 else -1
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    algebra = algebra_of(c, leaf)
    f = algebra.add if kind == "add" else algebra.multiply

    def step(R: Regs, g: Group) -> None:
        x = elements_of(R[a])
        r = x[..., 0] if start < 0 else f(elements_of(R[start]), x[..., 0])
        for i in range(1, x.shape[-1]):
            r = f(r, x[..., i])
        R[d] = held(np.asarray(r), leaf.dtype)

    c.emit(op, step)


OPS: dict[str, Builder] = {
    **{name: _binary("add") for name in ("arith.addf", "llvm.fadd")},
    **{name: _binary("subtract") for name in ("arith.subf", "llvm.fsub")},
    **{name: _binary("multiply") for name in ("arith.mulf", "llvm.fmul")},
    **{name: _negate for name in ("arith.negf", "llvm.fneg")},
    **{name: _fma for name in ("math.fma", "llvm.intr.fma", "llvm.intr.fmuladd", "vector.fma")},
    **{name: _convert for name in ("arith.extf", "arith.truncf", "llvm.fpext", "llvm.fptrunc")},
    **{name: _from_int(True) for name in ("arith.sitofp", "llvm.sitofp")},
    **{name: _from_int(False) for name in ("arith.uitofp", "llvm.uitofp")},
    **{name: _constant for name in ("arith.constant", "llvm.mlir.constant")},
    "vector.reduction": _reduction,
    **{name: _extremum(True, False) for name in ("arith.maximumf", "llvm.intr.maximum")},
    **{name: _extremum(False, False) for name in ("arith.minimumf", "llvm.intr.minimum")},
    **{name: _extremum(True, True) for name in ("arith.maxnumf", "llvm.intr.maxnum")},
    **{name: _extremum(False, True) for name in ("arith.minnumf", "llvm.intr.minnum")},
    **{name: _compare for name in ("arith.cmpf", "llvm.fcmp")},
    **{name: _divide for name in ("arith.divf", "llvm.fdiv")},
    **{f"math.{name}": _function(name) for name in ("exp", "exp2", "rsqrt", "sqrt", "tanh")},
    "math.log2": _function("lg2"),
    "nvvm.rcp.approx.ftz.f": _function("rcp"),
}
"""The builders of ops that compute with floats."""

MOVES: frozenset[str] = frozenset(
    {
        *moves.OPS,
        *vectors.OPS,
        *("scf.if", "scf.for", "scf.while", "scf.execute_region", "scf.index_switch"),
        *("llvm.load", "llvm.store", "llvm.atomicrmw", "nvvm.shfl.sync", "gpu.shuffle", "nvvm.mma.sync"),
        *("nvvm.wgmma.mma_async", "llvm.call", "func.call", "llvm.call_intrinsic", "nvvm.inline_ptx"),
        "llvm.inline_asm",
    }
)
"""Ops whose builder moves floats, or consults the algebra itself."""
_REFUSED = ("nvvm.mma.sp.sync", "nvvm.tcgen05.", "gpu.printf")
_BIT_TRICKS = ("and", "xor", "add", "sub", "mul", "icmp", "andi", "xori", "addi", "subi", "muli", "cmpi")
_BITCASTS = ("arith.bitcast", "llvm.bitcast", "vector.bitcast")


def _is_float(value: SSAValue) -> bool:
    return any(leaf.kind == "f" for leaf in type_of(value.type).leaves)


def over_algebra(name: str, builder: Builder | None) -> Builder:
    """Return the builder of an op in a run over an algebra, given the builder of other runs."""

    def build(c: FnCompiler, op: Operation) -> None:
        if name.startswith(_REFUSED):
            raise refusal(name)
        ring = OPS.get(name)
        if any(_is_float(v) for v in (*op.operands, *op.results)):
            if ring is not None:
                ring(c, op)
                return
            if name not in MOVES:
                raise refusal(name)
        elif name.partition(".")[2] in _BIT_TRICKS:
            for v in op.operands:
                owner = v.owner
                if isinstance(owner, Operation) and op_name(owner) in _BITCASTS and _is_float(owner.operands[0]):
                    raise refusal(f"{name} on the bits of a float")
        if builder is None:
            raise InterpError("unsupported", f"{name} is not supported")
        builder(c, op)

    return build


# -- instructions of PTX ----------------------------------------------------------------------------------------------


def over_row(algebra: Algebra, row: Row, opcode: str, op: Operation) -> Row:
    """Return the row of an instruction with its arithmetic over an algebra. Raises InterpError if it has none."""
    words = Words(opcode)
    floats = [t for t in words.types if t in FLOATS]
    if not floats:
        return row
    for t in floats:
        size = KINDS[t].dtype.itemsize
        check_width(algebra, Leaf("f", 8 * size, KINDS[t].dtype, t))
    stem = words.all[0]
    method = _RING.get(stem)
    if "relu" in words or "rs" in words or "ue8m0x2" in words.types or ("sat" in words and stem != "cvt"):
        raise refusal(opcode)
    if method is not None:
        f: Callable[..., Array] = getattr(algebra, method)

        def compute(m: Words, *given: Array) -> Array:
            x = [elements_of(v) for v in given]
            r = algebra.add(algebra.multiply(x[0], x[1]), x[2]) if stem == "fma" else f(*x)
            return np.asarray(held(r, given[0].dtype))

        return replace(row, compute=compute, undefined=None)
    if stem in _FUNCTIONS or stem in ("max", "min", "div"):
        return replace(row, compute=_real(algebra, words, opcode, op), undefined=None)
    if stem != "cvt" or words.types[0] not in FLOATS:
        raise refusal(opcode)
    target = KINDS[words.types[0]].dtype
    if words.types[-1] not in FLOATS:

        def from_int(m: Words, given: Array) -> Array:
            return np.asarray(held(algebra.integers(given), target))

        return replace(row, compute=from_int, undefined=None)
    if any(re.fullmatch(r"r[nzmp]i", w) for w in words.all):
        raise refusal(opcode)
    if target.itemsize < KINDS[words.types[-1]].dtype.itemsize or "satfinite" in words:
        note(algebra, f"rounding{' and saturation' if 'satfinite' in words else ''} of {opcode}")

    def convert(m: Words, *given: Array) -> Array:
        pair = given[0] if len(given) == 1 else np.stack([given[1], given[0]], axis=-1)
        return np.asarray(held(elements_of(pair), target))

    return replace(row, compute=convert, undefined=None)


def _real(algebra: Algebra, words: Words, opcode: str, op: Operation) -> Callable[..., Array]:
    """Return the computation of an instruction with a function of real numbers."""
    found, stem = functions_of(algebra, opcode), words.all[0]
    if "xorsign" in words or "abs" in words:
        raise refusal(opcode)
    choice = _choice(found, op, {"max": "the maximum", "min": "the minimum"}[stem]) if stem in ("max", "min") else None

    def compute(m: Words, *given: Array) -> Array:
        x = [elements_of(v) for v in given]
        if stem in _FUNCTIONS:
            r = _function_of(algebra, _FUNCTIONS[stem], opcode)(x[0])
        elif stem == "div":
            r = algebra.multiply(x[0], found.inverse(x[1]))
        else:
            choose = found.maximum if stem == "max" else found.minimum
            r = x[0]
            for y in x[1:]:
                if choice is not None:
                    choice.see(found, r, y)
                r = choose(r, y, number="NaN" not in words)
        return np.asarray(held(r, given[0].dtype))

    return compute


_FUNCTIONS = {"ex2": "exp2", "rcp": "rcp", "rsqrt": "rsqrt", "sqrt": "sqrt", "lg2": "lg2", "tanh": "tanh"}
_RING = {"add": "add", "sub": "subtract", "mul": "multiply", "fma": "add", "neg": "negate"}
_FLOAT_WORD = re.compile(r"(?:b?f16|f32|f64)(?:x2)?")


def check_statement(s: Statement) -> None:
    """Raise InterpError for an instruction that computes with floats and has no value over an algebra."""
    is_float_redux = s.opcode.startswith("redux.sync") and s.opcode.endswith(".f32")
    if s.opcode.startswith(("mma.sp", "tcgen05")) or ".kind::" in s.opcode or is_float_redux:
        raise refusal(s.opcode)
    if any(_FLOAT_WORD.fullmatch(w) for w in s.opcode.split(".")[1:]):
        for name in s.sources:
            literal = number(name)
            if isinstance(literal, float) and literal:
                raise refusal(f"{s.opcode} with the constant {name}")
