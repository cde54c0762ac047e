"""Mutations of a lowered kernel for `mutants.py`: one op or bound dropped, weakened, moved or shifted.

A mutation stores the index of its op in a walk of the kernel, and is applied to the same index in a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from xdsl.dialects import arith, builtin, llvm, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from cute_dialect.interp.errors import location_text
from cute_dialect.ir.editing import make_op
from cute_dialect.upstream.llvm import ExtractValueOp
from cute_dialect.upstream.nvvm import nvvm_attr


class Mutation(NamedTuple):
    """One change of one op.

    `kind` is drop, weaken, move or bound, and `what` describes the change. `place` is the index of the op in a walk of
    the kernel. `apply` changes that op in a copy.
    """

    kind: str
    what: str
    place: int
    apply: Callable[[Operation], None]


BARRIERS = ("nvvm.barrier0", "nvvm.barrier", "nvvm.bar.warp.sync", "nvvm.cluster.arrive", "nvvm.cluster.wait")
ORDERING = (
    *BARRIERS, "nvvm.cluster.arrive.relaxed", "nvvm.fence.mbarrier.init", "nvvm.fence.proxy", "llvm.fence",
    "nvvm.mbarrier.init", "nvvm.mbarrier.arrive", "nvvm.mbarrier.arrive.expect_tx", "nvvm.mbarrier.try_wait.parity",
    "nvvm.cp.async.commit.group", "nvvm.cp.async.wait.group", "nvvm.cp.async.mbarrier.arrive",
    "nvvm.cp.async.bulk.commit.group", "nvvm.cp.async.bulk.wait_group", "nvvm.wgmma.fence.aligned",
    "nvvm.wgmma.commit.group.sync.aligned", "nvvm.wgmma.wait.group.sync.aligned", "nvvm.setmaxregister",
)  # fmt: skip
"""Ops whose only effect is to order other ops, and the same instructions as inline PTX."""
EFFECTS = (
    *ORDERING, "llvm.load", "llvm.store", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.call_intrinsic", "nvvm.inline_ptx",
    "llvm.inline_asm", "nvvm.cp.async.shared.global", "nvvm.cp.async.bulk.tensor.shared.cluster.global",
    "nvvm.cp.async.bulk.tensor.global.shared.cta", "nvvm.ldmatrix", "nvvm.stmatrix", "nvvm.wgmma.mma_async",
    "nvvm.shfl.sync", "nvvm.elect.sync",
)  # fmt: skip
"""Ops that an ordering op can be moved across."""
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
OFF_BY_ONE = {
    "slt": "sle",
    "sle": "slt",
    "sgt": "sge",
    "sge": "sgt",
    "ult": "ule",
    "ule": "ult",
    "ugt": "uge",
    "uge": "ugt",
}
COUNTS = {
    "nvvm.cp.async.wait.group": "n", "nvvm.cp.async.bulk.wait_group": "group",
    "nvvm.wgmma.wait.group.sync.aligned": "group",
}  # fmt: skip
"""Property of each wait op that holds the number of groups that may stay in flight."""


def mutations(kernel: Operation) -> list[Mutation]:
    """Return every mutation of a kernel in textual order.

    If unrolling has duplicated a bound, only its first and last copies are mutated.
    """
    found: list[Mutation] = []
    bounds: dict[tuple[str, str], list[int]] = {}
    for place, op in enumerate(kernel.walk()):
        for kind, what, apply in _of(op):
            if kind == "bound" and len(same := bounds.setdefault((what, location_text(op)), [])) == 2:
                found[same[1]] = Mutation(kind, what, place, apply)
                continue
            if kind == "bound":
                same.append(len(found))
            found.append(Mutation(kind, what, place, apply))
    return sorted(found, key=lambda m: m.place)


def mutated(module: ModuleOp, kernel: str, mutation: Mutation) -> ModuleOp:
    """Return a copy of the module with one mutation applied."""
    copy = module.clone()
    next(op for i, op in enumerate(find(copy, kernel).walk()) if i == mutation.place and not mutation.apply(op))
    return copy


def find(module: ModuleOp, kernel: str) -> Operation:
    """Return the function with this name that has a body."""
    return next(
        op
        for op in module.walk()
        if op.name.endswith("func") and op.regions and getattr(op.properties.get("sym_name"), "data", "") == kernel
    )


def value_mutations(kernel: Operation) -> list[Mutation]:
    """Return the mutations of a kernel that change values: wrong elements, terms, factors and bounds.

    If unrolling has duplicated an op, only its first and last copies are mutated.
    """
    found = [m for m in mutations(kernel) if m.kind == "bound"]
    copies: dict[tuple[str, str], list[Mutation]] = {}
    for place, op in enumerate(kernel.walk()):
        for kind, what, apply in _values_of(op):
            same = copies.setdefault((what, location_text(op)), [])
            same[1:] = [Mutation(kind, what, place, apply)] if same else []
            if not same:
                same.append(Mutation(kind, what, place, apply))
    return sorted([*found, *(m for same in copies.values() for m in same)], key=lambda m: m.place)


def _values_of(op: Operation) -> Iterator[_Edit]:
    """Yield the edits of an op that computes, copies or stores elements."""
    name = op.name
    if name in _PRODUCTS:
        acc = _PRODUCTS[name]
        yield "value", f"{name} is executed twice", partial(_twice, acc=acc)
        yield "value", f"{name} is dropped", lambda o: Rewriter.replace_op(o, [], [o.operands[acc]])
    if name == "llvm.intr.fma":
        yield "value", "the product of an fma is scaled twice", _scale
    if name == "nvvm.mma.sync":
        a, b, c = _segments(op)
        yield "value", f"{name} is executed twice", _mma_twice
        yield "value", f"{name} is dropped", _mma_dropped
        yield "value", "two registers of A are swapped", partial(_swap, first=a)
        yield "value", "two registers of B are swapped", partial(_swap, first=b)
        yield "value", "two registers of the accumulator are swapped", partial(_swap, first=c)
    if name == "nvvm.wgmma.mma_async":
        for side in "AB":
            yield "value", f"the sign of {side} is wrong", partial(_negate, side=side)
        for at, side in ((1, "A"), (2, "B")):
            if op.operands[at].type == builtin.i64:
                yield "value", f"the descriptor of {side} is off by 16 bytes", partial(_add, operand=at, step=None)
    if name == "arith.mulf":
        yield "value", "a factor is dropped", lambda o: Rewriter.replace_op(o, [], [o.operands[0]])
    if name == "llvm.call_intrinsic" and "ex2" in str(op.properties["intrin"]):
        yield "value", "an exponential is dropped", lambda o: Rewriter.replace_op(o, [], [o.operands[0]])
    if name == "arith.truncf":
        yield "value", "a result is scaled twice", _scale
    if name == "nvvm.cp.async.shared.global":
        for by in (16, -16):
            yield "value", f"a copy reads {by} bytes off", partial(_shift, operand=1, by=by, element=builtin.i8)
    if name in ("llvm.load", "llvm.store", "nvvm.ldmatrix", "nvvm.stmatrix"):
        pointer = int(name == "llvm.store")
        for by in (1, -1):
            yield "value", f"the address of {name} is off by {by} element", partial(_shift, operand=pointer, by=by)
    if name.startswith("nvvm.cp.async.bulk.tensor."):
        first = 2
        yield "value", "two coordinates of a copy are swapped", partial(_swap, first=first)
        for at in (first, first + 1):
            yield "value", f"coordinate {at - first} of a copy is off by 1", partial(_add, operand=at, step=None)


_PRODUCTS = {"llvm.intr.fma": 2, "nvvm.wgmma.mma_async": 0}
"""Ops that add products to an accumulator -> the operand that holds it."""


def _twice(op: Operation, acc: int) -> None:
    copy = op.clone()
    result, users = op.results[0], [(u.operation, u.index) for u in op.results[0].uses]
    Rewriter.insert_op(copy, InsertPoint.after(op))
    for user, index in users:
        user.operands[index] = copy.results[0]
    copy.operands[acc] = result
    if op.name == "nvvm.wgmma.mma_async":  # The first product of a chain ignores its accumulator.
        copy.properties["scaleD"] = nvvm_attr("wgmma_scale_out", "one")


def _segments(op: Operation) -> tuple[int, int, int]:
    """Return the first operands of A, B and C of an mma.sync."""
    sizes = op.properties["operandSegmentSizes"]
    assert isinstance(sizes, builtin.DenseArrayBase)
    a, b, _ = (int(n) for n in sizes.get_values())
    return 0, a, a + b


def _parts(op: Operation) -> list[tuple[Operation, int]]:
    """Return the extractvalue ops of a struct, with their positions."""
    found: list[tuple[Operation, int]] = []
    for use in list(op.results[0].uses):
        assert isinstance(use.operation, ExtractValueOp)
        found.append((use.operation, _position(use.operation)))
    return found


def _position(op: Operation) -> int:
    position = op.properties["position"]
    assert isinstance(position, builtin.DenseArrayBase)
    return int(position.get_values()[0])


def _mma_twice(op: Operation) -> None:
    parts, first, copy = _parts(op), _segments(op)[2], op.clone()
    taken = [
        make_op(
            ExtractValueOp, [op.results[0]], [v.type], {"position": builtin.DenseArrayBase.from_list(builtin.i64, [i])}
        )
        for i, v in enumerate(op.operands[first:])
    ]
    Rewriter.insert_op([*taken, copy], InsertPoint.after(op))
    for i, one in enumerate(taken):
        copy.operands[first + i] = one.results[0]
    for part, _ in parts:
        part.operands[0] = copy.results[0]


def _mma_dropped(op: Operation) -> None:
    first = _segments(op)[2]
    for part, i in _parts(op):
        part.results[0].replace_all_uses_with(op.operands[first + i])


def _negate(op: Operation, side: str) -> None:
    op.properties[f"scale{side}"] = nvvm_attr("wgmma_scale_in", "neg")


def _scale(op: Operation) -> None:
    made = arith.AddfOp(op.operands[0], op.operands[0])
    Rewriter.insert_op(made, InsertPoint.before(op))
    op.operands[0] = made.result


def _swap(op: Operation, first: int) -> None:
    one, other = op.operands[first], op.operands[first + 1]
    op.operands[first], op.operands[first + 1] = other, one


def _shift(op: Operation, operand: int, by: int, element: Attribute | None = None) -> None:
    if element is None:
        element = builtin.i16 if op.name.startswith("nvvm") else _element_of(op)
    pointer = op.operands[operand]
    made = llvm.GEPOp(pointer, [by], element, result_type=pointer.type)
    Rewriter.insert_op(made, InsertPoint.before(op))
    op.operands[operand] = made.results[0]


def _element_of(op: Operation) -> Attribute:
    """Return the element type of a load or store."""
    held = op.operands[0].type if op.name == "llvm.store" else op.results[0].type
    return held.element_type if isinstance(held, builtin.VectorType) else held


_Edit = tuple[str, str, Callable[[Operation], None]]


def _of(op: Operation) -> Iterator[_Edit]:
    name = op.name
    if name in ORDERING or (name == "nvvm.inline_ptx" and _orders(op)) or is_barrier_arrival(op):
        yield "drop", name, Rewriter.erase_op
        yield from _moves(op)
    yield from _weaker(op)
    if name == "arith.cmpi":
        yield from _compares(op)
    if name == "scf.for":
        yield "bound", "a loop ends one step later", lambda o: _add(o, 1, o.operands[2])
        yield "bound", "a loop ends one step earlier", lambda o: _add(o, 1, o.operands[2], minus=True)
        yield "bound", "a loop begins one step later", lambda o: _add(o, 0, o.operands[2])


def _orders(op: Operation) -> bool:
    code = op.properties["ptxCode"]
    assert isinstance(code, StringAttr)
    return code.data.lstrip("@$0123456789p ").startswith(
        ("mbarrier.", "fence", "membar", "barrier", "bar.", "cp.async.mbarrier")
    )


def _moves(op: Operation) -> Iterator[_Edit]:
    """Yield moves of the op after the next op with effects, and before the previous one."""
    if _next(op, lambda o: o.next_op) is not None:
        yield "move", f"{op.name} later", _later
    before = _next(op, lambda o: o.prev_op)
    if before is not None and not any(v.owner is before for o in _taken(op, before) for v in o.operands):
        yield "move", f"{op.name} earlier", _earlier


def has_effect(op: Operation) -> bool:
    """Return True if an op orders others or accesses memory.

    Empty inline assembly only pins registers, and most intrinsics compute.
    """
    if op.name == "llvm.inline_asm":
        return op.properties["asm_string"] != StringAttr("")
    return op.name in EFFECTS and (op.name != "llvm.call_intrinsic" or is_barrier_arrival(op))


def is_barrier_arrival(op: Operation) -> bool:
    """Return True if an op arrives at a named barrier without waiting."""
    return op.name == "llvm.call_intrinsic" and "llvm.nvvm.barrier.cta.arrive" in str(op.properties["intrin"])


def _next(op: Operation, step: Callable[[Operation], Operation | None]) -> Operation | None:
    """Return the nearest op in the block that has effects or contains an op with effects, or None."""
    at = step(op)
    while at is not None and not any(has_effect(o) for o in at.walk()):
        at = step(at)
    return at


def _later(op: Operation) -> None:
    after = _next(op, lambda o: o.next_op)
    assert after is not None
    op.detach()
    Rewriter.insert_op(op, InsertPoint.after(after))


def _earlier(op: Operation) -> None:
    before = _next(op, lambda o: o.prev_op)
    assert before is not None
    for o in _taken(op, before):
        o.detach()
        Rewriter.insert_op(o, InsertPoint.before(before))


def _taken(op: Operation, before: Operation) -> list[Operation]:
    """Return `op`, preceded by the ops between it and `before` that compute its operands."""
    found: list[Operation] = []
    _between(op, before, found)
    return [*found, op]


def _between(op: Operation, before: Operation, found: list[Operation]) -> None:
    block = before.parent
    assert block is not None
    first = block.get_operation_index(before)
    for v in op.operands:
        made = v.owner
        if isinstance(made, Operation) and made.parent is block and block.get_operation_index(made) > first:
            _between(made, before, found)
            if made not in found:
                found.append(made)


def _weaker(op: Operation) -> Iterator[_Edit]:
    name = op.name
    if (key := COUNTS.get(name)) is not None:
        yield "weaken", f"{name} leaves one more in flight", lambda o: _number(o, key, 1)
    if name == "llvm.inline_asm" and "wgmma.wait_group" in str(op.properties["asm_string"]):
        yield "weaken", "wgmma.wait_group leaves one more in flight", _wait_asm
    if name == "nvvm.cp.async.bulk.wait_group" and "read" not in op.properties:
        yield "weaken", f"{name} waits for reads only", lambda o: o.properties.__setitem__("read", UnitAttr())
    if name == "nvvm.barrier0":
        yield "weaken", "a barrier of the warp for one of the block", _warp_barrier
    if name == "nvvm.barrier":
        yield "weaken", "a barrier of the warp for a named one", _warp_barrier
        yield "weaken", "another named barrier", lambda o: _add(o, 0, None)
    if name == "nvvm.cluster.arrive":
        yield "weaken", "cluster.arrive is relaxed", _relaxed
    if name == "nvvm.mbarrier.init":
        yield "weaken", "one arrival more expected", lambda o: _add(o, 1, None)
        yield "weaken", "one arrival fewer expected", lambda o: _add(o, 1, None, minus=True)
    if name == "nvvm.mbarrier.arrive.expect_tx":
        yield "weaken", "16 bytes more expected", lambda o: _add(o, 1, None, by=16)
        yield "weaken", "16 bytes fewer expected", lambda o: _add(o, 1, None, by=16, minus=True)
    if name == "nvvm.mbarrier.try_wait.parity":
        yield "weaken", "waits for the other phase", lambda o: _add(o, 1, None, xor=True)
    if name == "nvvm.fence.proxy" and "space" in op.properties:
        yield "weaken", "the proxy fence of global memory", _global_proxy
    if name in ("llvm.fence", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.load", "llvm.store"):
        yield from _weaker_memory(op)


ORDERINGS = {2: "monotonic", 4: "acquire", 5: "release", 6: "acq_rel", 7: "seq_cst"}


def _weaker_memory(op: Operation) -> Iterator[_Edit]:
    ordering, scope = op.properties.get("ordering"), op.properties.get("syncscope")
    if isinstance(scope, StringAttr) and scope.data != "block":
        yield (
            "weaken",
            f"{op.name} of the block's scope",
            lambda o: o.properties.__setitem__("syncscope", StringAttr("block")),
        )
    if isinstance(ordering, IntegerAttr):
        now = int(ordering.value.data)
        for less in {6: (4, 5), 7: (4, 5, 6), 4: (2,), 5: (2,)}.get(now, ()):
            if op.name == "llvm.fence" and less == 2:
                continue
            yield "weaken", f"{op.name} {ORDERINGS[less]}", lambda o, n=less - now: _number(o, "ordering", n)


def _compares(op: Operation) -> Iterator[_Edit]:
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    name = PREDICATES[int(predicate.value.data)]
    if name in OFF_BY_ONE:
        other = OFF_BY_ONE[name]
        change = PREDICATES.index(other) - PREDICATES.index(name)
        yield "bound", f"{name} becomes {other}", lambda o: _number(o, "predicate", change)


def _number(op: Operation, key: str, change: int) -> None:
    old = op.properties[key]
    assert isinstance(old, IntegerAttr)
    op.properties[key] = IntegerAttr(int(old.value.data) + change, old.type)


def _wait_asm(op: Operation) -> None:
    asm = op.properties["asm_string"]
    assert isinstance(asm, StringAttr)
    head, count = asm.data.rstrip(";").rsplit(" ", 1)
    op.properties["asm_string"] = StringAttr(f"{head} {int(count) + 1};")


def _warp_barrier(op: Operation) -> None:
    full = arith.ConstantOp.from_int_and_width(-1, 32)
    new = type_of("BarWarpSyncOp", [full.result])
    Rewriter.replace_op(op, [full, new])


def type_of(name: str, operands: list[SSAValue]) -> Operation:
    """Return the class of an nvvm op without results and attributes."""
    from cute_dialect.upstream import nvvm

    return getattr(nvvm, name).create(operands=operands)


def _relaxed(op: Operation) -> None:
    new = type_of("ClusterArriveRelaxedOp", [])
    new.properties.update(op.properties)
    Rewriter.replace_op(op, [new])


def _global_proxy(op: Operation) -> None:
    op.properties["kind"] = nvvm_attr("proxy_kind", "async.global")
    del op.properties["space"]


def _add(
    op: Operation, operand: int, step: SSAValue | None, *, minus: bool = False, by: int = 1, xor: bool = False
) -> None:
    """Add, subtract or xor a constant with one operand."""
    old = op.operands[operand]
    new: list[Operation] = []
    if step is None:
        one = arith.ConstantOp(IntegerAttr(by, old.type))
        new.append(one)
        step = one.result
    made = (arith.XOrIOp if xor else arith.SubiOp if minus else arith.AddiOp)(old, step)
    Rewriter.insert_op([*new, made], InsertPoint.before(op))
    op.operands[operand] = made.results[0]


def crossed(op: Operation, *, earlier: bool) -> list[Operation]:
    """Return the ops that a moved op crosses."""
    step: Callable[[Operation], Operation | None] = (lambda o: o.prev_op) if earlier else (lambda o: o.next_op)
    last, found, at = _next(op, step), [], op
    while at is not last and (after := step(at)) is not None:
        at = after
        found.append(at)
    return found


def trapped(module: ModuleOp, kernel: str, place: int) -> ModuleOp:
    """Return a copy in which the comparison at `place` stores to address 0, and so faults, if its sides are equal."""
    copy = module.clone()
    op = next(op for i, op in enumerate(find(copy, kernel).walk()) if i == place)
    equal = arith.CmpiOp(op.operands[0], op.operands[1], "eq")
    zero = arith.ConstantOp.from_int_and_width(0, 64)
    null = llvm.IntToPtrOp(zero.result)
    store = llvm.StoreOp(zero.result, null.results[0])
    stop = scf.IfOp(equal.result, [], [zero, null, store, scf.YieldOp()])
    Rewriter.insert_op([equal, stop], InsertPoint.after(op))
    return copy
