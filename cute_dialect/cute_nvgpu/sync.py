"""Synchronisation, warp, cluster and atomic ops ``cute_nvgpu.arch.*``, one for each row of :data:`ROWS`.

A row specifies the operands and result of an op, its properties with their defaults, and the section of the PTX ISA.
The parser, the verifier, the builder and the documentation use it. The ops are kept until ``cute-to-base``, which
lowers each to one instruction (:mod:`.sync_lowering`).

>>> from xdsl.dialects.test import TestOp
>>> from xdsl.dialects.builtin import f32, i32
>>> value, offset = TestOp(result_types=[f32, i32]).results
>>> print(make("shfl_sync", value, offset, mode="down").results[0].type)
f32
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, VectorType, i1, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.arch.targets import name_chips
from cute_dialect.dialect.machine import MachineOp
from cute_dialect.dialect.memory_types import ConstrainedIntType, PtrType, element_bits, is_barrier, ptr
from cute_dialect.dialect.typed_values import Properties
from cute_dialect.dialect.views import expect_operands
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.irdl import OpDef


class Words(NamedTuple):
    """String property with a fixed set of values. It is required unless there is a default."""

    name: str
    allowed: tuple[str, ...]
    default: str | None = None

    def check(self, value: Attribute | None) -> str | None:
        """Return the error message for an invalid attribute, or None."""
        if value is None and self.default is not None:
            return None
        if isinstance(value, StringAttr) and value.data in self.allowed:
            return None
        return f"property {self.name} is {shown(value)}; use one of {', '.join(repr(w) for w in self.allowed)}"


def i32_value(value: Attribute | None) -> int | None:
    """Return the value of an ``i32`` attribute, or None for any other attribute."""
    if not isinstance(value, IntegerAttr):
        return None
    number = cast("IntegerAttr", value)
    return number.value.data if number.type == i32 else None


class Number(NamedTuple):
    """``i32`` property. It is required unless there is a default.

    ``fits`` returns True for allowed values; ``what`` describes them in error messages.
    """

    name: str
    what: str
    fits: Callable[[int], bool]
    default: int | None = None

    def check(self, value: Attribute | None) -> str | None:
        """Return the error message for an invalid attribute, or None."""
        if value is None and self.default is not None:
            return None
        number = i32_value(value)
        if number is not None and self.fits(number):
            return None
        return f"property {self.name} is {shown(value)}; use {self.what} (i32)"


class Flag(NamedTuple):
    """Optional flag, written alone or as ``true`` or ``false``."""

    name: str

    def check(self, value: Attribute | None) -> str | None:
        """Return the error message for an invalid attribute, or None."""
        if value is None or isinstance(value, UnitAttr) or value in _TRUTH:
            return None
        return f"property {self.name} is {shown(value)}; write {self.name} alone, or {self.name} = true or false"


_TRUTH = (IntegerAttr(1, i1), IntegerAttr(0, i1), IntegerAttr(-1, i1))

PropertyRow: TypeAlias = Words | Number | Flag


def shown(value: Attribute | None) -> str:
    """Format an attribute for an error message."""
    return "missing" if value is None else str(value)


# ------------------------------------------------------------------------------------------------------------- operands


class Operand(NamedTuple):
    """Kind of an operand.

    ``accepts`` returns True for allowed types, ``what`` describes them in error messages, ``example`` is one of them.
    """

    what: str
    accepts: Callable[[Attribute], bool]
    example: str


def _is_i32(t: Attribute) -> bool:
    return t == i32 or (isinstance(t, ConstrainedIntType) and t.width == 32)


def _is_i1(t: Attribute) -> bool:
    return t == i1


def _is_plain_i32(t: Attribute) -> bool:
    return t == i32


def _is_slot(t: Attribute) -> bool:
    return isinstance(t, PtrType) and t.data.space == AddressSpace.smem and t.data.element == i32


_SCOPED = (AddressSpace.gmem, AddressSpace.smem, AddressSpace.dsmem)
"""Spaces of the pointers of atomics and of accesses with a memory scope."""


def _points_at_integers(t: Attribute) -> bool:
    return _points(*_SCOPED)(t) and isinstance(t, PtrType) and str(t.data.element) in INTEGERS


def register_count(n: int) -> bool:
    """Return True if ``setmaxnreg`` accepts this number of registers."""
    return 24 <= n <= 256 and n % 8 == 0


def shuffle_width(n: int) -> bool:
    """Return True if a shuffle accepts groups of this many lanes."""
    return n in (1, 2, 4, 8, 16, 32)


def _points(*spaces: AddressSpace) -> Callable[[Attribute], bool]:
    return lambda t: isinstance(t, PtrType) and t.data.space in spaces


def _named(*names: str) -> Callable[[Attribute], bool]:
    return lambda t: str(t) in names


INTEGERS = ("i32", "i64")
"""Element types of integer atomics."""

_SHUFFLED = ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")

REGISTERS: dict[str, str] = {"f16": "h", "bf16": "h", "i16": "h", "i32": "r", "f32": "f", "i64": "l", "f64": "d"}
"""Type of a PTX register -> constraint letter in inline assembly."""


def _held(t: Attribute) -> bool:
    if not isinstance(t, VectorType):
        return str(t) in REGISTERS
    v = cast("VectorType[Attribute]", t)
    return str(v.element_type) in REGISTERS and prod(v.get_shape()) * element_bits(v.element_type) % 32 == 0


KINDS: dict[str, Operand] = {
    "bar": Operand("!cute.ptr<i64, smem>, an mbarrier", is_barrier, "!cute.ptr<i64, smem>"),
    "i32": Operand("i32", _is_i32, "i32"),
    "i1": Operand("i1", _is_i1, "i1"),
    "mask": Operand("i16, a mask of the blocks of the cluster", _named("i16"), "i16"),
    "slot": Operand("!cute.ptr<i32, smem>, which receives an address", _is_slot, "!cute.ptr<i32, smem>"),
    "tmem": Operand("a pointer to tmem", _points(AddressSpace.tmem), "!cute.ptr<f32, tmem, align<128>>"),
    "f32": Operand("f32", _named("f32"), "f32"),
    "value": Operand(f"one of {', '.join(_SHUFFLED)}", _named(*_SHUFFLED), "f32"),
    "held": Operand(f"one of {', '.join(REGISTERS)} or a vector of them of whole 32-bit words", _held, "f32"),
    "word": Operand("i32", _is_plain_i32, "i32"),
    "smem": Operand("a pointer to smem", _points(AddressSpace.smem), "!cute.ptr<f32, smem>"),
    "ptr": Operand("a pointer to gmem, smem or dsmem", _points(*_SCOPED), "!cute.ptr<f32, gmem>"),
    "int_ptr": Operand("a pointer to i32 or i64 in gmem, smem or dsmem", _points_at_integers, "!cute.ptr<i32, gmem>"),
    "element": Operand("the element type of the pointer", _named(*_SHUFFLED), "f32"),
    "int_element": Operand("the element type of the pointer", _named("i32", "i64"), "i32"),
}
"""Word used in the rows -> kind of operand."""


Inference: TypeAlias = Callable[[Sequence[Attribute]], list[Attribute]]


class Row(NamedTuple):
    """Description of one op.

    Args:
        name: name without ``cute_nvgpu.arch.``.
        summary: first paragraph of the documentation.
        isa: section of the PTX ISA, in quotes.
        operands: ``name:kind``, or ``name:kind?`` for an optional operand.
        result: a type; ``=`` for the type of operand 0; ``*`` for the element type of the pointer operand 0; or a
            function.
        properties: the properties of the op.
        sm: first architecture that has the instruction.
        arch: rule of the architectures that have it, if later ones may lack it; see
            :func:`cute_dialect.arch.targets.has_arch`.
        pure: True if the op has no effect, so that it can be moved or removed.
        check: further check of the operand types.
        example: text after the op name in the example of the documentation.
    """

    name: str
    summary: str
    isa: str
    operands: tuple[str, ...] = ()
    result: str | Inference = ""
    properties: tuple[PropertyRow, ...] = ()
    sm: int = 50
    pure: bool = False
    check: Callable[[Sequence[Attribute]], None] | None = None
    example: str = ""
    arch: str = ""

    @property
    def rule(self) -> str:
        """Rule of the architectures that have the instruction."""
        return self.arch or f"sm_{self.sm}"

    @property
    def kinds(self) -> list[tuple[str, str, bool]]:
        """Name and kind of each operand, and whether it is optional."""
        parts = [o.rstrip("?").split(":") for o in self.operands]
        return [(n, k, o.endswith("?")) for (n, k), o in zip(parts, self.operands)]


PropertyArg: TypeAlias = Attribute | int | str | bool | None


def _natural(n: int) -> bool:
    return n >= 0


def _same_element(allowed: Sequence[str]) -> Callable[[Sequence[Attribute]], None]:
    def check(types: Sequence[Attribute]) -> None:
        p = types[0]
        assert isinstance(p, PtrType)
        if str(p.data.element) not in allowed:
            raise AlgebraError(f"the pointer is {p}; it must point to one of {', '.join(allowed)}")
        for i, t in enumerate(types[1:], 1):
            if t != p.data.element:
                raise AlgebraError(f"operand #{i} must be {p.data.element}, the element type of operand #0, got {t}")

    return check


def _mapped(types: Sequence[Attribute]) -> list[Attribute]:
    p = types[0]
    assert isinstance(p, PtrType)
    if p.data.swizzle is not None:
        raise AlgebraError(f"the pointer has a swizzle ({p}); use one without")
    return [PtrType(ptr(p.data.element, AddressSpace.dsmem, p.data.alignment))]


def _sent_to_cluster(allowed: Sequence[str]) -> Callable[[Sequence[Attribute]], None]:
    same_element = _same_element(allowed)

    def check(types: Sequence[Attribute]) -> None:
        same_element(types[:2])
        for i in (0, 2):
            p = types[i]
            assert isinstance(p, PtrType)
            if p.data.space != AddressSpace.dsmem:
                raise AlgebraError(f"operand #{i} must be a pointer to dsmem, got {p}")

    return check


def _has_room_for_response(types: Sequence[Attribute]) -> None:
    p = types[0]
    assert isinstance(p, PtrType)
    if p.data.alignment % 16 or p.data.swizzle is not None:
        raise AlgebraError(f"operand #0 (response) must be aligned to 16 bytes, without a swizzle, got {p}")


def _query_results(types: Sequence[Attribute]) -> list[Attribute]:
    return [i1, i32, i32, i32]


_GROUPS = Number("n", "a number of groups from 0 on", _natural)
_SCOPE = Words("scope", ("cta", "cluster", "gpu", "sys"), "gpu")
_ATOMIC = (_SCOPE, Words("order", ("relaxed", "acquire", "release", "acq_rel"), "relaxed"))


def _atomic(
    name: str, summary: str, allowed: Sequence[str], extra: tuple[str, ...] = (), element: str = "element"
) -> Row:
    ints = element == "int_element"
    example = "i32" if ints else "f32"
    p = f"!cute.ptr<{example}, gmem>"
    values = ("value", *extra)
    listed = ", ".join(f"%{v}" for v in values)
    return Row(
        f"atomic_{name}",
        summary,
        '"atom"',
        (f"ptr:{'int_ptr' if ints else 'ptr'}", *(f"{v}:{element}" for v in values)),
        "*",
        _ATOMIC,
        sm=60,  # ".scope" requires sm_60.
        check=_same_element(allowed),
        example=f"(%ptr, {listed}) : ({p}{f', {example}' * len(values)}) -> {example}",
    )


def _reduce_async(name: str, what: str, kind: str = "", allowed: Sequence[str] = ("i32",)) -> Row:
    return Row(
        f"reduce_async_{name}",
        f"Performs ``{what}``{kind and f' ({kind})'} asynchronously in the shared memory of a block of the cluster. "
        "The mbarrier ``bar`` of that block counts the bytes; the result is visible after a wait on it.",
        '"red.async"',
        ("ptr:int_ptr", "value:int_element", "bar:int_ptr"),
        sm=90,
        check=_sent_to_cluster(allowed),
        example="(%ptr, %value, %bar) : (!cute.ptr<i32, dsmem>, i32, !cute.ptr<i64, dsmem>) -> ()",
    )


_FLOATS = ("f16", "bf16", "f32", "f64")

ROWS: tuple[Row, ...] = (
    # Mbarriers.
    Row("mbarrier_init", "Initializes an mbarrier that expects ``count`` arrivals. One thread issues it, followed by "
        "``fence_mbarrier_init`` and a barrier.",
        '"mbarrier.init"', ("bar:bar", "count:i32"), sm=80),
    Row("mbarrier_inval", "Invalidates an mbarrier, so that its memory can be reused.",
        '"mbarrier.inval"', ("bar:bar",), sm=80),
    Row("mbarrier_arrive", "Arrives at an mbarrier.", '"mbarrier.arrive"', ("bar:bar",), sm=80),
    Row("mbarrier_arrive_cluster",
        "Arrives at the mbarrier at the same offset in block ``cta`` of the cluster, unless ``pred`` is false.",
        '"mbarrier.arrive", "mapa"', ("bar:bar", "cta:i32", "pred:i1?"), sm=90),
    Row("mbarrier_arrive_expect_tx",
        "Increases the transaction count of the phase by ``bytes``, and arrives. With ``cta`` it does so at the "
        "mbarrier at the same offset in that block of the cluster.",
        '"mbarrier.arrive", "mapa"', ("bar:bar", "bytes:i32", "cta:i32?"), sm=90),
    Row("mbarrier_expect_tx", "Increases the transaction count of the phase by ``bytes``.",
        '"mbarrier.expect_tx"', ("bar:bar", "bytes:i32"), sm=90),
    Row("mbarrier_wait", "Waits until the phase with this parity (0 for the first phase) is complete.",
        '"mbarrier.try_wait"', ("bar:bar", "parity:i32"), sm=90),
    Row("mbarrier_try_wait",
        "Returns true if the phase with this parity is complete. The thread may be suspended for a short time.",
        '"mbarrier.try_wait"', ("bar:bar", "parity:i32"), "i1", sm=90),
    # Fences.
    Row("fence_mbarrier_init", "Makes initialized mbarriers visible to the cluster and to asynchronous copies.",
        '"fence.mbarrier_init"', sm=90),
    Row("fence_proxy_async",
        "Orders earlier generic accesses before accesses of asynchronous copies and ``wgmma`` (the async proxy).",
        '"fence.proxy.async"',
        properties=(Words("space", ("shared_cta", "shared_cluster", "global", "all"), "shared_cta"),), sm=90),
    Row("fence_acq_rel", "Acquire-release fence for the threads of a scope.", '"fence.acq_rel"',
        properties=(_SCOPE,)),
    # Barriers.
    Row("barrier", "Waits for all threads of the block, and orders their memory accesses.",
        '"bar, barrier"'),
    Row("named_barrier", "Waits at barrier ``id`` (0 to 15) until ``threads`` threads (a multiple of 32) have arrived.",
        '"bar, barrier"', ("id:i32", "threads:i32")),
    Row("named_barrier_arrive", "Arrives at barrier ``id`` without waiting.",
        '"bar, barrier"', ("id:i32", "threads:i32")),
    Row("syncwarp", "Waits for all threads of the warp, and orders their memory accesses.",
        '"bar.warp.sync"'),
    Row("cluster_arrive",
        "Arrives at the barrier of the cluster, and releases earlier accesses unless ``relaxed`` is set.",
        '"barrier.cluster"', properties=(Flag("relaxed"),), sm=90),
    Row("cluster_wait", "Waits until all threads of the cluster have arrived.", '"barrier.cluster"', sm=90),
    # Ranks and indices.
    Row("cluster_rank", "Returns the rank of this block in its cluster.", '"%cluster_ctarank"', (), "i32", sm=90,
        pure=True),
    Row("cluster_size",
        "Returns the number of blocks in the cluster.",
        '"%cluster_nctarank"', (), "i32", sm=90, pure=True),
    Row("elect_one",
        "Returns true for one thread of the warp. All threads of the warp must execute it.",
        '"elect.sync"', (), "i1",
        sm=90),
    Row("warp_id", "Returns the index of the warp, ``tid.x / 32``, in a warp-uniform register.",
        '"shfl.sync"', (), "i32"),
    Row("lane_id", "Returns the index of the thread in its warp.", '"%laneid"', (), "i32", pure=True),
    Row("map_cluster", "Returns the address of the same offset in the shared memory of block ``cta`` of the cluster.",
        '"mapa"', ("ptr:smem", "cta:i32"), _mapped, sm=90, pure=True,
        example="(%ptr, %cta) : (!cute.ptr<f32, smem, align<16>>, i32) -> !cute.ptr<f32, dsmem, align<16>>"),
    Row("store_async",
        "Stores a value asynchronously to the shared memory of a block of the cluster. The mbarrier ``bar`` of that "
        "block counts the bytes; the value is visible after a wait on it.",
        '"st.async"', ("ptr:ptr", "value:element", "bar:int_ptr"), sm=90,
        check=_sent_to_cluster(("i32", "i64", "f32", "f64")),
        example="(%ptr, %value, %bar) : (!cute.ptr<f32, dsmem>, f32, !cute.ptr<i64, dsmem>) -> ()"),
    _reduce_async("add", "*ptr += value", allowed=INTEGERS),
    _reduce_async("min", "*ptr = min(*ptr, value)", "signed"),
    _reduce_async("max", "*ptr = max(*ptr, value)", "signed"),
    _reduce_async("umin", "*ptr = min(*ptr, value)", "unsigned"),
    _reduce_async("umax", "*ptr = max(*ptr, value)", "unsigned"),
    _reduce_async("and", "*ptr &= value"),
    _reduce_async("or", "*ptr |= value"),
    _reduce_async("xor", "*ptr ^= value"),
    _reduce_async("inc", "*ptr = *ptr >= value ? 0 : *ptr + 1", "unsigned"),
    _reduce_async("dec", "*ptr = *ptr == 0 || *ptr > value ? value : *ptr - 1", "unsigned"),
    # Register counts, dependent launches.
    Row("setmaxnreg",
        "Changes the number of registers per thread of a warpgroup. The kernel must have ``known_block_size``.",
        '"setmaxnreg"',
        properties=(
            Number("count", "a multiple of 8 from 24 to 256", register_count),
            Words("action", ("increase", "decrease")),
        ), sm=90, example='() {count = 240 : i32, action = "increase"} : () -> ()'),
    Row("griddepcontrol_wait", "Waits until the prerequisite grids have completed and their writes are visible.",
        '"griddepcontrol"', sm=90),
    Row("griddepcontrol_launch_dependents", "Allows the dependent grids to start.", '"griddepcontrol"', sm=90),
    # Cluster launch control.
    Row("clc_try_cancel",
        "Requests the work of a cluster that has not started. The response of 16 bytes is written asynchronously, and "
        "completes 16 bytes at the mbarrier. With ``multicast`` each block of the cluster gets it at the same offsets. "
        "One thread issues it. After an unsuccessful response no other request is allowed.",
        '"clusterlaunchcontrol.try_cancel"', ("response:smem", "bar:bar"), properties=(Flag("multicast"),), sm=100,
        check=_has_room_for_response,
        example="(%response, %bar) : (!cute.ptr<i64, smem, align<16>>, !cute.ptr<i64, smem>) -> ()"),
    Row("clc_query",
        "Reads a response after the wait on its mbarrier. Returns true and the coordinates x, y, z of the first block "
        "of the canceled cluster, or false and zeros.",
        '"clusterlaunchcontrol.query_cancel"', ("response:smem",), _query_results, sm=100,
        check=_has_room_for_response,
        example="(%response) : (!cute.ptr<i64, smem, align<16>>) -> (i1, i32, i32, i32)"),
    # Groups of asynchronous copies.
    Row("cp_async_commit_group", "Commits the thread's ``cp_async`` since the last commit to a group.",
        '"cp.async.commit_group"', sm=80),
    Row("cp_async_wait_group", "Waits until at most ``n`` of the thread's most recent groups are pending.",
        '"cp.async.wait_group"', properties=(_GROUPS,), sm=80, example="() {n = 1 : i32} : () -> ()"),
    Row("cp_async_mbarrier_arrive",
        "Arrives at an mbarrier when the thread's earlier ``cp_async`` are complete. With ``noinc`` the arrival is "
        "one of the expected arrivals; otherwise the op also increments the pending count.",
        '"cp.async.mbarrier.arrive"', ("bar:bar",), properties=(Flag("noinc"),), sm=80),
    Row("bulk_commit_group", "Commits the thread's bulk stores since the last commit to a group.",
        '"cp.async.bulk.commit_group"', sm=90),
    Row("bulk_wait_group",
        "Waits until at most ``n`` of the thread's most recent groups are pending. With ``read``, it waits only until "
        "the other groups have read their sources.",
        '"cp.async.bulk.wait_group"', properties=(_GROUPS, Flag("read")), sm=90,
        example="() {n = 0 : i32, read} : () -> ()"),
    # Warps.
    Row("shfl_sync",
        "Returns the value of another lane: ``lane ^ index`` (bfly), ``lane - index`` (up), ``lane + index`` (down) or "
        "``index`` (idx), within groups of ``width`` lanes. If that lane is out of range, returns the thread's own "
        "value.",
        '"shfl.sync"', ("value:value", "index:i32"), "=",
        (Words("mode", ("bfly", "up", "down", "idx"), "bfly"),
         Number("width", "1, 2, 4, 8, 16 or 32", shuffle_width, 32)),
        example='(%v, %i) {mode = "bfly"} : (f32, i32) -> f32'),
    Row("vote_any", "Returns true if the flag is true for any thread of the warp.", '"vote.sync"', ("flag:i1",), "i1"),
    Row("vote_all", "Returns true if the flag is true for all threads of the warp.", '"vote.sync"', ("flag:i1",), "i1"),
    Row("ballot",
        "Returns a mask with the flag of each thread of the warp, one bit per lane.",
        '"vote.sync"', ("flag:i1",), "i32"),
    Row("redux_sync", "Reduces an integer over the warp.", '"redux.sync"', ("value:word",), "i32",
        (Words("kind", ("add", "and", "or", "xor", "min", "max", "umin", "umax")),), sm=80,
        example='(%value) {kind = "add"} : (i32) -> i32'),
    Row("redux_sync_f32",
        "Returns the minimum or maximum of an f32 over the warp, with ``abs`` that of its absolute values. NaN is "
        "ignored unless all values are NaN; with ``nan`` it is the result if any value is NaN.",
        '"redux.sync"', ("value:f32",), "f32", (Words("kind", ("min", "max")), Flag("abs"), Flag("nan")), sm=100,
        example='(%value) {kind = "max", abs} : (f32) -> f32'),
    # Shared memory.
    Row("store_bulk_zero",
        "Sets ``bytes`` bytes of shared memory to zero: a multiple of 8, at most 16 MiB, at an address that is a "
        "multiple of 8. One thread writes them, as with ordinary stores.",
        '"st.bulk"', ("ptr:smem", "bytes:i32"), sm=100),
    # Atomics; each returns the old value.
    _atomic("add", "Atomically performs ``*ptr += value``, and returns the old value.", ("i32", "i64", *_FLOATS)),
    _atomic("min",
            "Atomically performs ``*ptr = min(*ptr, value)`` (signed), and returns the old value. "
            "Floats use a compare-and-swap loop.",
            ("i32", "i64", "f32", "f64")),
    _atomic("max",
            "Atomically performs ``*ptr = max(*ptr, value)`` (signed), and returns the old value. "
            "Floats use a compare-and-swap loop.",
            ("i32", "i64", "f32", "f64")),
    _atomic("umin",
            "Atomically performs ``*ptr = min(*ptr, value)`` (unsigned), and returns the old value.",
            INTEGERS, element="int_element"),
    _atomic("umax",
            "Atomically performs ``*ptr = max(*ptr, value)`` (unsigned), and returns the old value.",
            INTEGERS, element="int_element"),
    _atomic("and",
            "Atomically performs ``*ptr &= value``, and returns the old value.",
            INTEGERS, element="int_element"),
    _atomic("or", "Atomically performs ``*ptr |= value``, and returns the old value.", INTEGERS, element="int_element"),
    _atomic("xor",
            "Atomically performs ``*ptr ^= value``, and returns the old value.",
            INTEGERS, element="int_element"),
    _atomic("exch", "Atomically performs ``*ptr = value``, and returns the old value.", ("i32", "i64", "f32", "f64")),
    _atomic("cas",
            "Atomically performs ``*ptr = value`` if ``*ptr == expected``, and returns the old value.",
            INTEGERS, ("expected",),
            element="int_element"),
    Row("load_acquire",
        "Loads a flag with acquire semantics: later accesses see the writes before the matching release.",
        '"ld"', ("ptr:int_ptr",), "*", (_SCOPE,), sm=70,
        example="(%flag) : (!cute.ptr<i32, gmem>) -> i32"),
    Row("store_release", "Stores a flag with release semantics: earlier writes of the thread are visible before it.",
        '"st"', ("ptr:int_ptr", "value:int_element"), "", (_SCOPE,), sm=70,
        check=_same_element(INTEGERS),
        example="(%flag, %value) : (!cute.ptr<i32, gmem>, i32) -> ()"),
    Row("opaque",
        "Returns its operand, and hides its origin from the optimizer. Values derived from the result, such as the "
        "conversion of a 16-bit element, are then recomputed instead of kept in registers.",
        "", ("x:held",), "=", pure=True, example="(%x) : (f32) -> f32"),
    # Approximate functions that flush denormals to zero.
    Row("exp2_approx",
        "Returns ``2^x`` with an error of 2 ulp; flushes denormals to zero.",
        '"ex2"', ("x:f32",), "f32", pure=True),
    Row("log2_approx",
        "Returns ``log2(x)`` with an absolute error of 2^-22; flushes denormals to zero.",
        '"lg2"', ("x:f32",),
        "f32", pure=True),
    Row("rcp_approx",
        "Returns ``1 / x`` with an error of 1 ulp; flushes denormals to zero.",
        '"rcp"', ("x:f32",), "f32", pure=True),
    Row("sqrt_approx",
        "Returns ``sqrt(x)`` with a relative error of 2^-23; flushes denormals to zero.",
        '"sqrt"', ("x:f32",),
        "f32", pure=True),
    Row("rsqrt_approx",
        "Returns ``1 / sqrt(x)`` with a relative error of 2^-22.9; flushes denormals to zero.",
        '"rsqrt"',
        ("x:f32",), "f32", pure=True),
    Row("tanh_approx", "Returns ``tanh(x)`` with a relative error of 2^-11.", '"tanh"', ("x:f32",), "f32", sm=75,
        pure=True),
)  # fmt: skip
"""All ops of this module."""


# ------------------------------------------------------------------------------------------------------------- the ops


class ArchOp(MachineOp):
    """Op of the form ``%r = cute_nvgpu.arch.NAME(%a, …) {prop = …} : (T, …) -> R``, described by a :class:`Row`.

    An op without a result has the type ``-> ()``.
    """

    ROW: ClassVar[Row]

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        """Return the xDSL definition for tools that read it. The op itself uses its row."""
        return _definition(cls)

    def __post_init__(self) -> None:
        Operation.__post_init__(self)

    # ------------------------------------------------------------------------------------------------- properties

    def word(self, name: str) -> str:
        """Return a string property, or its default."""
        value = self.properties.get(name)
        if isinstance(value, StringAttr):
            return value.data
        row = next(p for p in self.ROW.properties if p.name == name)
        assert isinstance(row, Words) and row.default is not None
        return row.default

    def number(self, name: str) -> int:
        """Return an integer property, or its default."""
        value = self.properties.get(name)
        if isinstance(value, IntegerAttr):
            return value.value.data
        row = next(p for p in self.ROW.properties if p.name == name)
        assert isinstance(row, Number) and row.default is not None
        return row.default

    def flag(self, name: str) -> bool:
        """Return True if a flag is set."""
        value = self.properties.get(name)
        return bool(value.value.data) if isinstance(value, IntegerAttr) else value is not None

    # --------------------------------------------------------------------------------------- inference, verification

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        row = cls.ROW
        kinds = row.kinds
        expect_operands(operand_types, sum(not optional for *_, optional in kinds), len(kinds))
        for i, (t, (name, kind, _)) in enumerate(zip(operand_types, kinds)):
            if not KINDS[kind].accepts(t):
                raise AlgebraError(f"operand #{i} ({name}) must be {KINDS[kind].what}, got {t}")
        if row.check is not None:
            row.check(operand_types)
        if not isinstance(row.result, str):
            return row.result(operand_types)
        if row.result == "=":
            return [operand_types[0]]
        if row.result == "*":
            p = operand_types[0]
            assert isinstance(p, PtrType)
            return [p.data.element]
        return [_RESULTS[row.result]] if row.result else []

    def verify_(self) -> None:
        try:
            for p in self.ROW.properties:
                wrong = p.check(self.properties.get(p.name))
                if wrong is not None:
                    raise AlgebraError(wrong)
            known = [p.name for p in self.ROW.properties]
            for name in self.properties:
                if name not in known:
                    raise AlgebraError(f"unknown property '{name}'; {_list(known)}")
            self.check_entries(known, self.attributes)
            self.check_types()
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None

    # ------------------------------------------------------------------------------------------------------ assembly

    @classmethod
    def parse_entries(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse an attribute dictionary: strings in quotes, flags without a value."""
        return parser.parse_optional_attr_dict()

    def print_entries(self, printer: Printer) -> None:
        """Print the attribute dictionary unless it is empty."""
        if self.properties or self.attributes:
            printer.print_op_attributes({**self.properties, **self.attributes})


def _list(names: Sequence[str]) -> str:
    return f"allowed: {', '.join(names)}" if names else "the op has no properties"


def _results() -> dict[str, Attribute]:
    from xdsl.dialects.builtin import f32

    return {"i1": i1, "i32": i32, "f32": f32}


_RESULTS = _results()


def _documentation(row: Row) -> str:
    name = f"cute_nvgpu.arch.{row.name}"
    operands = ""
    for i, (n, _, optional) in enumerate(row.kinds):
        one = f"{', ' if i else ''}%{n}"
        operands += f" [{one}]" if optional else one
    given = ", ".join(_property_text(p) for p in row.properties)
    result = "" if row.result == "" else "%r = "
    example = row.example
    if not example:
        required = [(n, k) for n, k, optional in row.kinds if not optional]
        types = ", ".join(KINDS[k].example for _, k in required)
        shown_result = row.result if isinstance(row.result, str) and row.result else "()"
        example = f"({', '.join('%' + n for n, _ in required)}) : ({types}) -> {shown_result}"
    types = example.rpartition(" -> ")[2]
    if result and types.startswith("("):
        result = f"{', '.join(f'%r{i}' for i in range(types.count(',') + 1))} = "
    chips = f"{name_chips(row.arch)}" if row.arch else f"sm_{row.sm} or later"
    source = f"PTX ISA {row.isa}; {chips}." if row.isa else "No instruction; on any architecture."
    return (
        f"{row.summary}\n\n{source}\n\n"
        f"Syntax: ``{result}{name}({operands}){f' {{{given}}}' if given else ''} : (…) -> {'R' if result else '()'}``"
        f"\n\nExample:\n    {result}{name}{example}\n"
    )


def _property_text(p: PropertyRow) -> str:
    if isinstance(p, Words):
        words = [w + " (default)" if w == p.default else w for w in p.allowed]
        return f"{p.name} = {' | '.join(words)}"
    if isinstance(p, Number):
        return f"{p.name} = {p.what}" + ("" if p.default is None else f" (default {p.default})")
    return p.name


def op_class(row: Row, module: str) -> type[ArchOp]:
    """Return the op class of a row, defined in ``module``."""
    effects = traits_def(Pure()) if row.pure else traits_def(MemoryReadEffect(), MemoryWriteEffect())
    body = {"__module__": module, "__doc__": _documentation(row), "name": f"cute_nvgpu.arch.{row.name}"}
    words = "".join(w.capitalize() for w in row.name.split("_"))
    made = type(f"{words}Op", (ArchOp,), {**body, "traits": effects, "ROW": row})
    assert issubclass(made, ArchOp)
    return made


@cache
def _definition(cls: type[ArchOp]) -> OpDef:
    from xdsl.irdl import AnyAttr, OpDef, OperandDef, OptOperandDef, OptPropertyDef, PropertyDef, ResultDef

    row = cls.ROW
    return OpDef(
        cls.name,
        operands=[(n, (OptOperandDef if optional else OperandDef)(AnyAttr())) for n, _, optional in row.kinds],
        results=[("result", ResultDef(AnyAttr()))] if row.result != "" else [],
        properties={
            p.name: PropertyDef(AnyAttr())
            if not isinstance(p, Flag) and p.default is None
            else OptPropertyDef(AnyAttr())
            for p in row.properties
        },
        traits=cls.traits,
    )


OPS: list[type[Operation]] = [op_class(row, __name__) for row in ROWS]
"""Op classes, one for each row."""


def make(name: str, *operands: SSAValue, **properties: PropertyArg) -> ArchOp:
    """Build the op ``cute_nvgpu.arch.NAME`` and infer its result type.

    Properties are passed as str or int, flags as True. None omits a property. Raises AlgebraError if operands or
    properties are invalid.
    """
    return build(op_of(OPS, name), *operands, **properties)


def op_of(ops: Sequence[type[Operation]], name: str) -> type[ArchOp]:
    """Return the op ``cute_nvgpu.arch.NAME`` of a list. Raises AlgebraError if there is none."""
    found = next((cls for cls in ops if cls.name == f"cute_nvgpu.arch.{name}"), None)
    if found is None:
        raise AlgebraError(f"'{name}' is not the name of a machine-level op; write one of those in docs/nvgpu.md")
    assert issubclass(found, ArchOp)
    return found


def build(cls: type[ArchOp], *operands: SSAValue, **properties: PropertyArg) -> ArchOp:
    """Build an op of a row and infer its result type; see :func:`make`."""
    given = {k: _attribute(v) for k, v in properties.items() if v is not None and v is not False}
    op = cls.create(
        operands=operands, result_types=cls.infer_types([o.type for o in operands], given), properties=given
    )
    try:
        op.verify_()
    except VerifyException as e:
        raise AlgebraError(str(e)) from None
    return op


def _attribute(value: PropertyArg) -> Attribute:
    if isinstance(value, bool):
        return UnitAttr()
    if isinstance(value, int):
        return IntegerAttr(value, i32)
    if isinstance(value, str):
        return StringAttr(value)
    assert value is not None
    return value
