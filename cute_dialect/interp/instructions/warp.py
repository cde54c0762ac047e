"""Warp collectives: shuffle, vote, match, redux, elect.

A group holds whole warps, so each collective runs for all of them at once on arrays `(warps, 32)`. All threads in a
member mask must be active or have exited, otherwise it is an error. The device would hang or return garbage. Sources:
PTX ISA "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "bar.warp.sync".
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import Fault, InterpError, attr_of
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.types import Leaf, int_leaf
from cute_dialect.interp.values import Array, Regs, Value, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

LANE = np.arange(32)


def members(g: Group, mask: Value, name: str) -> Array:
    """Return a mask `(warps, 32, 32)` of the active lanes in each lane's member mask."""
    m = g.mask
    active = m.array.reshape(-1, 32)
    live = ~g.dead.reshape(-1, 32)
    if isinstance(mask, int):
        named = ((mask >> LANE) & 1).astype(np.bool_)[None, None, :]
    elif isinstance(mask, np.ndarray):
        named = ((mask.reshape(-1, 32, 1).astype(np.int64) >> LANE) & 1).astype(np.bool_)
    else:
        raise Fault("poison", f"{name}: the member mask is poison (undefined)")
    own = np.broadcast_to(named, (len(active), 32, 32))[:, LANE, LANE]
    if (active & ~own).any():
        lane = int(np.flatnonzero((active & ~own).ravel())[0])
        raise Fault("sync", f"{name}: the member mask does not contain the calling thread, lane {lane % 32}", lane)
    missing = active[:, :, None] & named & (live & ~active)[:, None, :]
    if missing.any():
        w, lane, other = (int(x[0]) for x in np.nonzero(missing))
        raise Fault(
            "sync",
            f"{name}: the member mask contains lane {other}, which is still running but did not arrive",
            w * 32 + lane,
        )
    return named & active[:, None, :]


def rows(v: Value, leaf: Leaf, g: Group) -> Array:
    """Return the value with shape `(warps, 32)`."""
    return to_lanes(v, leaf, g.lanes).reshape(-1, 32, *leaf.shape)


def shuffle(
    g: Group, mask: Value, value: Value, offset: Value, clamp: Value, kind: str, leaf: Leaf, name: str
) -> tuple[Array, Array]:
    """Execute shfl.sync: the source lane's value, and whether it was in range (PTX ISA, pseudo-code of shfl.sync)."""
    talk = members(g, mask, name)
    warps = talk.shape[0]

    def wide(v: Value) -> Array:
        _ = v + 0  # type: ignore[operator]  # raises for poison
        return np.broadcast_to(np.asarray(v).astype(np.int64), (g.lanes,)).reshape(warps, 32)

    b, k = wide(offset) & 31, wide(clamp)
    seg, cval = (k >> 8) & 31, k & 31
    top = (LANE & seg) | (cval & ~seg & 31)
    low = LANE & seg
    if kind == "up":
        j = LANE - b
        ok = j >= top
    elif kind == "down":
        j = LANE + b
        ok = j <= top
    elif kind == "bfly":
        j = LANE ^ b
        ok = j <= top
    else:
        j = low | (b & ~seg)
        ok = j <= top
    j = np.where(ok, j, LANE)
    active = g.mask.array.reshape(warps, 32)
    heard = np.take_along_axis(
        talk if len(talk) == warps else np.broadcast_to(talk, (warps, 32, 32)), j[:, :, None], axis=2
    )[:, :, 0]
    deaf = active & ok & ~heard
    if deaf.any():
        lane = int(np.flatnonzero(deaf.ravel())[0])
        raise Fault(
            "sync", f"{name}: lane {lane % 32} reads lane {int(j.ravel()[lane])}, which does not participate", lane
        )
    vals = rows(value, leaf, g)
    index = j.reshape(j.shape + (1,) * len(leaf.shape))
    got = np.take_along_axis(vals, np.broadcast_to(index, (*j.shape, *leaf.shape)), axis=1)
    return got.reshape(g.lanes, *leaf.shape), ok.reshape(g.lanes)


def _shfl(c: FnCompiler, op: Operation) -> None:
    mask, value, offset, clamp = (c.use(v) for v in op.operands)
    outs = c.defines(op.results[0])
    leaf = c.leaf_of(value)
    kind = enum_word(attr_of(op, "kind"))
    if kind not in ("bfly", "up", "down", "idx"):
        raise InterpError("unsupported", f"shuffle kind {kind} is not supported; use bfly, up, down or idx")
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        got, ok = shuffle(g, R[mask], R[value], R[offset], R[clamp], kind, leaf, "nvvm.shfl.sync")
        R[outs[0]] = got
        if len(outs) > 1:
            R[outs[1]] = ok

    c.emit(op, step, keep=True)


def _gpu_shuffle(c: FnCompiler, op: Operation) -> None:
    value, offset, width = (c.use(v) for v in op.operands)
    d, valid = c.define(op.results[0]), c.define(op.results[1])
    leaf = c.leaf_of(value)
    mode = enum_word(attr_of(op, "mode"))
    kind = {"xor": "bfly"}.get(mode, mode)
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        w = np.asarray(R[width]).astype(np.int64)
        seg = (32 - w) << 8
        clamp = seg | (0 if kind == "up" else 31)
        active = g.mask.array.reshape(-1, 32)
        bits = (active.astype(np.int64) << LANE).sum(axis=1)
        mask = np.repeat(bits, 32)
        R[d], R[valid] = shuffle(g, mask, R[value], R[offset], clamp, kind, leaf, "gpu.shuffle")

    c.emit(op, step, keep=True)


VOTES = ("all", "any", "uni", "ballot")


def vote(g: Group, mask: Value, pred: Value, leaf: Leaf, kind: str, name: str) -> Array:
    """Execute vote.sync: a predicate per lane, or the 32 bits of a ballot."""
    talk = members(g, mask, name)
    p = rows(pred, leaf, g)[:, None, :]
    if kind == "ballot":
        r = ((talk & p).astype(np.int64) << LANE).sum(axis=2).astype(np.uint32).view(np.int32)
    elif kind == "any":
        r = (talk & p).any(axis=2)
    elif kind == "all":
        r = (~talk | p).all(axis=2)
    else:
        r = (~talk | p).all(axis=2) | (~talk | ~p).all(axis=2)
    return np.broadcast_to(r, (g.lanes // 32, 32)).reshape(g.lanes)


def _vote(c: FnCompiler, op: Operation) -> None:
    mask, pred = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    leaf = c.leaf_of(pred)
    kind = enum_word(attr_of(op, "kind"))
    if kind not in VOTES:
        raise InterpError("unsupported", f"vote kind {kind} is not supported; use any, all, ballot or uni")
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        R[d] = vote(g, R[mask], R[pred], leaf, kind, "nvvm.vote.sync")

    c.emit(op, step, keep=True)


def _match(c: FnCompiler, op: Operation) -> None:
    mask, value = c.use(op.operands[0]), c.use(op.operands[1])
    outs = c.defines(op.results[0])
    leaf = c.leaf_of(value)
    kind = enum_word(attr_of(op, "kind"))
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        talk = members(g, R[mask], "nvvm.match.sync")
        v = rows(R[value], leaf, g)
        same = talk & (v[:, :, None] == v[:, None, :])
        bits = (same.astype(np.int64) << LANE).sum(axis=2)
        if kind == "any":
            R[outs[0]] = bits.astype(np.uint32).view(np.int32).reshape(g.lanes)
            return
        named = (np.broadcast_to(talk, same.shape).astype(np.int64) << LANE).sum(axis=2)
        ok = bits == named
        R[outs[0]] = np.where(ok, named, 0).astype(np.uint32).view(np.int32).reshape(g.lanes)
        if len(outs) > 1:
            R[outs[1]] = ok.reshape(g.lanes)

    c.emit(op, step, keep=True)


def redux_floats(talk: Array, v: Array, largest: bool, magnitude: bool, nan_wins: bool) -> Array:
    """Execute redux.sync on f32 values `(warps, 32)`: `.min` or `.max`, with `.abs` and `.NaN`.

    +0.0 is larger than -0.0. Without `.NaN`, NaN is the result only if all values are NaN.
    """
    x = np.abs(v) if magnitude else v
    nan, row = np.isnan(x)[:, None, :], x[:, None, :]
    worst = np.float32(-np.inf if largest else np.inf)
    row = np.where(talk & ~nan, row, worst)
    # Bit patterns of floats are ordered as sign and magnitude, so that -0.0 is below +0.0.
    keys = np.ascontiguousarray(row).view(np.int32).astype(np.int64)
    keys = np.where(keys < 0, -(keys & 0x7FFFFFFF) - 1, keys)
    chosen = keys.argmax(axis=2) if largest else keys.argmin(axis=2)
    r = np.take_along_axis(row, chosen[..., None], axis=2)[..., 0]
    invalid = (talk & nan).any(axis=2) if nan_wins else (~talk | nan).all(axis=2)
    r = np.where(invalid, np.uint32(0x7FFFFFFF).view(np.float32), r).astype(np.float32)
    return np.broadcast_to(r, v.shape)


def _redux(c: FnCompiler, op: Operation) -> None:
    value, mask = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    kind = enum_word(attr_of(op, "kind"))
    magnitude, nan_wins = ("true" in str(attr_of(op, name)) for name in ("abs", "nan"))
    c.fn.collective = True
    if kind not in ("add", "and", "or", "xor", "max", "min", "umax", "umin", "fmax", "fmin"):
        raise InterpError("unsupported", f"redux kind {kind} is not supported")

    def step(R: Regs, g: Group) -> None:
        talk = members(g, R[mask], "nvvm.redux.sync")
        v = rows(R[value], leaf, g)
        if kind in ("fmax", "fmin"):
            R[d] = redux_floats(talk, v, kind == "fmax", magnitude, nan_wins).reshape(g.lanes)
            return
        if kind in ("umax", "umin"):
            v = v.view(leaf.unsigned)
        row = v[:, None, :]
        if kind == "add":
            r = np.where(talk, row.astype(np.int64), 0).sum(axis=2).astype(leaf.dtype)
        elif kind == "and":
            r = np.bitwise_and.reduce(np.where(talk, row, np.asarray(-1, v.dtype)), axis=2)
        elif kind == "or":
            r = np.bitwise_or.reduce(np.where(talk, row, np.asarray(0, v.dtype)), axis=2)
        elif kind == "xor":
            r = np.bitwise_xor.reduce(np.where(talk, row, np.asarray(0, v.dtype)), axis=2)
        else:
            limits = np.iinfo(v.dtype)
            worst = np.asarray(limits.min if kind.endswith("max") else limits.max, v.dtype)
            f = np.maximum if kind.endswith("max") else np.minimum
            r = f.reduce(np.where(talk, row, worst), axis=2)
        r = np.ascontiguousarray(np.broadcast_to(r, (g.lanes // 32, 32)))
        R[d] = r.view(leaf.dtype).reshape(g.lanes)

    c.emit(op, step, keep=True)


def _elect(c: FnCompiler, op: Operation) -> None:
    """Compile elect.sync. The schedule chooses the elected lane."""
    mask = c.use(op.operands[0]) if op.operands else -1
    d = c.defines(op.results[0])[-1]
    c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        talk = members(g, R[mask] if mask >= 0 else -1, "nvvm.elect.sync")
        elected = g.machine.spurious.elect(np.broadcast_to(talk, (g.lanes // 32, 32, 32)))
        R[d] = (elected == LANE).reshape(g.lanes) & g.mask.array

    c.emit(op, step, keep=True)


def _warp_sync(c: FnCompiler, op: Operation) -> None:
    mask = c.use(op.operands[0])
    c.fn.collective = True
    c.fn.needs_clocks.append("bar.warp.sync")

    def step(R: Regs, g: Group) -> None:
        members(g, R[mask], "nvvm.bar.warp.sync")
        if g.machine.monitor is not None and g.mask.n:
            g.machine.monitor.warp_sync(g)

    c.emit(op, step, pure=False)


OPS: dict[str, Builder] = {
    "nvvm.shfl.sync": _shfl,
    "gpu.shuffle": _gpu_shuffle,
    "nvvm.vote.sync": _vote,
    "nvvm.vote.ballot.sync": _vote,
    "nvvm.match.sync": _match,
    "nvvm.redux.sync": _redux,
    "nvvm.elect.sync": _elect,
    "nvvm.bar.warp.sync": _warp_sync,
}


# -- inline PTX -------------------------------------------------------------------------------------------------------

BIT = int_leaf(1)


def _ptx_vote(text: Text, s: Statement) -> None:
    kind = s.opcode.split(".")[2]
    d, mask = text.slot(s.operands[0]), text.slot(s.operands[2])
    negated, name = s.operands[1].startswith("!"), s.operands[1].removeprefix("!")
    pred = text.slot(name)
    leaf = text.leaf(d)
    text.c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        p = to_lanes(R[pred], BIT, g.lanes).astype(np.bool_)
        found = vote(g, R[mask], ~p if negated else p, BIT, kind, s.opcode)
        R[d] = found.astype(leaf.dtype)

    text.emit(s, step)


def _shuffle(text: Text, s: Statement) -> None:
    kind = s.opcode.split(".")[2]
    written, _, flag = (part.strip() for part in s.operands[0].partition("|"))
    d, in_range = text.slot(written), text.slot(flag) if flag else -1
    value, offset, clamp, mask = map(text.slot, s.operands[1:])
    leaf, to = text.leaf(value), text.leaf(d)
    text.c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        found, inside = shuffle(g, R[mask], R[value], R[offset], R[clamp], kind, leaf, s.opcode)
        R[d] = found.view(to.dtype)
        if in_range >= 0:
            R[in_range] = inside

    text.emit(s, step)


def _ptx_redux(text: Text, s: Statement) -> None:
    """Compile redux.sync of f32; the integer forms have an op."""
    words = s.opcode.split(".")
    d, value, mask = map(text.slot, s.operands)
    leaf = text.leaf(value)
    text.c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        talk = members(g, R[mask], s.opcode)
        v = rows(R[value], leaf, g)
        R[d] = redux_floats(talk, v, words[2] == "max", "abs" in words, "NaN" in words).reshape(g.lanes)

    text.emit(s, step)


TABLE: Sequence[tuple[str, Handler]] = (
    (re.escape("redux.sync.") + r"(?:min|max)(?:\.abs)?(?:\.NaN)?\.f32", _ptx_redux),
    (re.escape("vote.sync.") + r"(?:(?:all|any|uni)\.pred|ballot\.b32)", _ptx_vote),
    (re.escape("shfl.sync.") + r"(?:up|down|bfly|idx)\.b32", _shuffle),
)
