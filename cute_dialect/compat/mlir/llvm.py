"""The builders of the ``llvm`` and ``nvvm`` dialects that programs for CuTe DSL call.

``inline_asm`` is implemented with :func:`cute_dialect.lang.arch.inline_ptx`.  The builders of
``nvvm`` are atomics, special registers and a few instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.compat.mlir.ir import Pack, bits_as, element, number_type, with_element
from cute_dialect.lang.tracing.errors import KernelTypeError

__all__ = [
    "AsmDialect",
    "AtomicOpKind",
    "CpAsyncBulkTensorGlobalToSharedClusterOp",
    "CpAsyncBulkTensorLoadMode",
    "MemOrderKind",
    "MemScopeKind",
    "RoundingModeKind",
    "StructType",
    "add_packed_f32x2",
    "atomicrmw",
    "bitcast",
    "elect_sync",
    "extractelement",
    "extractvalue",
    "fma_packed_f32x2",
    "fmax",
    "fmin",
    "inline_asm",
    "insertelement",
    "insertvalue",
    "mbarrier_try_wait_parity_timelimit",
    "mlir_undef",
    "mul_packed_f32x2",
    "sub_packed_f32x2",
]


# ----------------------------------------------------------------------------------------------------------------- llvm


class AsmDialect(Enum):
    """The assembly syntax; ignored, because the text is always PTX."""

    AD_ATT = 0
    AD_Intel = 1


class StructType:
    """Structure types."""

    @staticmethod
    def get_literal(body: Sequence[Any], **_: Any) -> tuple[Any, ...]:
        """Return the type of a structure of numbers.

        >>> StructType.get_literal([cute.Float32, cute.Int32])
        (Float32, Int32)
        """
        return number_type(tuple(body))


_REGISTERS = {"h": cute.Int16, "r": cute.Int32, "l": cute.Int64}
"""Types of integer registers by constraint letter."""


def inline_asm(
    res: Any, operands_: Any, asm_string: str, constraints: str, *, has_side_effects: bool = False, **_: Any
) -> Any:
    """Emit inline PTX.

    The results are ``$0`` and following, and the operands follow them. A tuple of types as ``res`` gives that many
    results, as a :class:`~cute_dialect.compat.mlir.ir.Pack`. Numbers narrower than 16 bits (Boolean, Int8) are zero-
    or sign-extended to the register of the constraint, and results are truncated.

    Args:
        res: the type of the result; None if there is none.
        constraints: one per result and operand (``"=r,r,r"``). Clobbers (``~{…}``) are ignored.

    Raises:
        KernelTypeError: F251, if the constraints do not match the results and operands.
    """
    said = [c.strip() for c in constraints.split(",") if c.strip() and not c.strip().startswith("~")]
    results = sum(c.startswith("=") for c in said)
    operands = list(operands_)
    res = number_type(res)
    several = isinstance(res, tuple)
    kinds = list(res) if several else [] if res is None else [res]
    if results != len(kinds) or len(said) - results != len(operands):
        raise KernelTypeError(
            "F251", f"inline_asm: the constraints {constraints!r} do not match {len(kinds)} results and "
            f"{len(operands)} operands",
        )  # fmt: skip
    letters = [c.lstrip("=+&")[:1] for c in said]
    held = [_held(kind, letter) for kind, letter in zip(kinds, letters)]
    operands = [_in_register(x, letter) for x, letter in zip(operands, letters[results:])]
    made = cute.arch.inline_ptx(
        asm_string, *operands, result=tuple(held) if several else held[0] if held else None,
        side_effects=has_side_effects,
    )  # fmt: skip
    if not several:
        return _out_of_register(kinds[0], made) if kinds else None
    return Pack(_out_of_register(kind, x) for kind, x in zip(kinds, made))


def _held(kind: Any, letter: str) -> Any:
    """Return the type of the register that holds a result of type ``kind``."""
    return _REGISTERS.get(letter, cute.Int32) if getattr(kind, "width", 32) < 16 else kind


def _in_register(x: Any, letter: str) -> Any:
    narrow = isinstance(x, cute.Numeric | bool) and getattr(type(x), "width", 1) < 16
    return _REGISTERS.get(letter, cute.Int32)(x) if narrow else x


def _out_of_register(kind: Any, x: Any) -> Any:
    if getattr(kind, "width", 32) >= 16:
        return x
    return (x & 1) != 0 if kind is cute.Boolean else kind(x)


def extractvalue(res: Any, container: Any, position: Any, **_: Any) -> Any:
    """Return the element of a structure at a static index."""
    return element(container, position)


def insertvalue(container: Any, value: Any, position: Any, **_: Any) -> Pack:
    """Return a copy of a structure with the element at a static index replaced."""
    return with_element(container, position, value)


def extractelement(vector: Any, position: Any, **_: Any) -> Any:
    """Return the element of a vector at a static index."""
    return element(vector, position)


def insertelement(vector: Any, value: Any, position: Any, **_: Any) -> Pack:
    """Return a copy of a vector with the element at a static index replaced."""
    return with_element(vector, position, value)


def mlir_undef(res: Any, **_: Any) -> Any:
    """Return an undefined number or pack of a type; its values are zeros."""
    res = number_type(res)
    return Pack(kind(0) for kind in res) if isinstance(res, tuple) else res(0)


def bitcast(res: Any, arg: Any, **_: Any) -> Any:
    """Reinterpret the bits of a number or vector as another type."""
    return bits_as(res, arg)


# ----------------------------------------------------------------------------------------------------------------- nvvm


class AtomicOpKind(Enum):
    """Atomic operations."""

    ADD, AND, OR, XOR, MAX, MIN, UMAX, UMIN, EXCH, CAS, FADD, INC, DEC = range(13)


class RoundingModeKind(Enum):
    """Rounding modes."""

    RN, RM, RP, RZ = range(4)


class MemScopeKind(Enum):
    """Scopes of atomic operations."""

    CTA, CLUSTER, GPU, SYS = range(4)


class MemOrderKind(Enum):
    """Memory orders."""

    WEAK, RELAXED, ACQUIRE, RELEASE, ACQ_REL = range(5)


_ATOMICS = {
    "ADD": "atomic_add", "FADD": "atomic_add", "AND": "atomic_and", "OR": "atomic_or", "XOR": "atomic_xor",
    "MAX": "atomic_max", "MIN": "atomic_min", "UMAX": "atomic_max", "UMIN": "atomic_min", "EXCH": "atomic_exch",
}  # fmt: skip


def atomicrmw(
    res: Any = None, op: Any = None, ptr: Any = None, a: Any = None, *, b: Any = None, mem_order: Any = None,
    syncscope: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """Combine the number at ``ptr`` with ``a`` atomically and return its old value.

    ``CAS`` writes ``a`` if the old value equals ``b``. Raises F251 for INC and DEC of numbers that are not 32 bits
    wide.

    Args:
        res: the type of the result; by default that of the number in memory.
    """
    name = getattr(op, "name", str(op))
    more = {
        "sem": None if mem_order is None else mem_order.name.lower(),
        "scope": None if syncscope is None else syncscope.name.lower(),
    }
    if name == "CAS":
        found = cute.arch.atomic_cas(ptr, cmp=b, val=a, **more)
    elif name in ("INC", "DEC"):
        if type(a).width != 32:
            raise KernelTypeError("F251", f"nvvm.atomicrmw: {name} needs a 32-bit number, got {a.describe()}")
        ptx = f"atom{ptr.memspace.ptx}.{name.lower()}.u32 $0, [$1], $2;"
        found = cute.arch.inline_ptx(ptx, ptr, a, result=cute.Int32)
    else:
        found = getattr(cute.arch, _ATOMICS[name])(ptr, a, **more)
    return found if res is None else found.bitcast(number_type(res))


def _float(name: str) -> Callable[..., Any]:
    def f(res: Any, a: Any, b: Any, c: Any = None, **_: Any) -> Any:
        made = getattr(cute.arch, name)(a, b)
        return made if c is None else getattr(cute.arch, name)(made, c)

    f.__name__ = name
    f.__doc__ = f"Return the {'minimum' if name == 'fmin' else 'maximum'} of two or three f32 numbers, ignoring NaN."
    return f


fmin, fmax = _float("fmin"), _float("fmax")


def add_packed_f32x2(a: Any, b: Any, *, rnd: Any = None, ftz: bool = False, **_: Any) -> Any:
    """Return the elementwise sum of two Float32 pairs."""
    return cute.arch.add_packed_f32x2(a, b, rnd=rnd, ftz=ftz)


def sub_packed_f32x2(a: Any, b: Any, *, rnd: Any = None, ftz: bool = False, **_: Any) -> Any:
    """Return the elementwise difference of two Float32 pairs."""
    return cute.arch.sub_packed_f32x2(a, b, rnd=rnd, ftz=ftz)


def mul_packed_f32x2(a: Any, b: Any, *, rnd: Any = None, ftz: bool = False, **_: Any) -> Any:
    """Return the elementwise product of two Float32 pairs."""
    return cute.arch.mul_packed_f32x2(a, b, rnd=rnd, ftz=ftz)


def fma_packed_f32x2(a: Any, b: Any, c: Any, *, rnd: Any = None, ftz: bool = False, **_: Any) -> Any:
    """Return ``a * b + c`` elementwise for Float32 pairs."""
    return cute.arch.fma_packed_f32x2(a, b, c, rnd=rnd, ftz=ftz)


def mbarrier_try_wait_parity_timelimit(addr: Any, phase: Any, ticks: Any, **_: Any) -> Any:
    """Return True if the phase of this parity is complete.

    ``ticks`` is ignored: the hardware chooses how long the instruction waits.
    """
    return cute.arch.mbarrier_try_wait(addr, phase)


def elect_sync(*_: Any, **__: Any) -> Any:
    """Return True in one elected thread of the warp."""
    return cute.arch.elect_one()


class CpAsyncBulkTensorLoadMode(Enum):
    """The mode of a TMA load; only tiles are supported."""

    TILE = "tile"


def CpAsyncBulkTensorGlobalToSharedClusterOp(
    dstMem: Any, tmaDescriptor: Any, coordinates: Any, mbar: Any, im2colOffsets: Any, *, predicate: Any = None,
    loadMode: Any = CpAsyncBulkTensorLoadMode.TILE, **_: Any,
) -> None:  # fmt: skip
    """Load a tile of global memory to shared memory by TMA.

    Args:
        dstMem: the shared memory.
        tmaDescriptor: the address of the tensor map in global memory.
        coordinates: the coordinates of the tile, innermost first.
        mbar: the mbarrier that counts the bytes.
        im2colOffsets: must be empty.
        predicate: the threads that issue the load; by default all.
        loadMode: ``CpAsyncBulkTensorLoadMode.TILE``.
    """
    if im2colOffsets or loadMode is not CpAsyncBulkTensorLoadMode.TILE:
        raise KernelTypeError(
            "F251", "nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp: only loads of tiles are supported"
        )
    rank = len(coordinates)
    where = ", ".join(f"${3 + i}" for i in range(rank))
    opcode = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    ptx = f"{opcode} [$0], [$1, {{{where}}}], [$2];"
    operands = [dstMem, tmaDescriptor, mbar, *(cute.Int32(x) for x in coordinates)]
    if predicate is None or predicate:
        cute.arch.inline_ptx(ptx, *operands)


_ID_REGISTERS = {
    "tid": "thread_idx", "ntid": "block_dim", "ctaid": "block_idx", "nctaid": "grid_dim",
    "clusterid": "cluster_idx", "nclusterid": "cluster_dim", "cluster_ctaid": "block_in_cluster_idx",
    "cluster_nctaid": "block_in_cluster_dim",
}  # fmt: skip
_SCALARS = {
    "laneid": "lane_idx", "smid": "smid", "clock64": "clock64", "globaltimer": "globaltimer",
    "cluster_ctarank": "block_idx_in_cluster", "cluster_nctarank": "cluster_size",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    register = name.removeprefix("read_ptx_sreg_")
    base, _, axis = register.rpartition("_")
    if register != name and register in _SCALARS:
        return lambda *_, **__: getattr(cute.arch, _SCALARS[register])()
    if register != name and base in _ID_REGISTERS and axis in ("x", "y", "z"):
        return lambda *_, **__: getattr(getattr(cute.arch, _ID_REGISTERS[base])(), axis)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
