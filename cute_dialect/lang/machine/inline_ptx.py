"""Inline PTX and thin wrappers of single instructions: cache operators, timers, byte permutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.machine.operands import in_kernel, operand
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import Int64, Numeric, Uint32, Uint64
from cute_dialect.lang.values.numeric import as_number
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.dtypes import Int32
    from cute_dialect.lang.values.signature_types import Int, Number

__all__ = ["access", "clock64", "globaltimer", "inline_ptx", "nanosleep", "prmt", "smid"]

_HELD = ("i16", "i32", "i64", "f16", "bf16", "f32", "f64")
"""Types that a PTX register can hold."""


def _ptx(text: str, operands: Sequence[SSAValue], results: Sequence[type[Numeric]]) -> list[Any]:
    from xdsl.dialects.builtin import StringAttr

    made = in_kernel("cute.arch.inline_ptx").op(
        "nvvm.inline_ptx", operands, [r.attribute for r in results], {"ptxCode": StringAttr(text)},
        segments=[len(operands), 0, 0],
    )  # fmt: skip
    return [kind.of(value) for kind, value in zip(results, made.results)]


def inline_ptx(text: str, *operands: Number, result: Any = None, side_effects: bool = True) -> Any:
    """Emit PTX. In the text, ``$0``, ``$1``, … are the results, followed by the operands.

    Args:
        text: the PTX instructions.
        operands: numbers of 16 to 64 bits, or pointers.
        result: the type of the result, a tuple of types for several, or None.
        side_effects: False permits the compiler to drop or move the code; currently it always stays in place.

    ``inline_ptx("add.s32 $0, $1, $2;", a, b, result=cute.Int32)`` adds two integers.
    """
    results = () if result is None else tuple(result) if isinstance(result, tuple | list) else (result,)
    for kind in results:
        if not (isinstance(kind, type) and issubclass(kind, Numeric)) or kind.mlir_type not in _HELD:
            raise KernelTypeError("F251", f"cute.arch.inline_ptx: result must be a type of 16 to 64 bits, got {kind!r}")
    from cute_dialect.lang.values.tensors import Pointer  # late: start-up

    numbers = [x.toint() if isinstance(x, Pointer) else as_number(x) for x in operands]
    for i, number in enumerate(numbers):
        if type(number).mlir_type not in _HELD:
            raise KernelTypeError(
                "F251",
                f"cute.arch.inline_ptx: operand {i} must be a number of 16 to 64 bits, got {number.describe()}",
            )
    made = _ptx(text, [n.ssa for n in numbers], results)
    return tuple(made) if isinstance(result, tuple | list) else made[0] if made else None


def access(
    at: SSAValue, kind: type[Numeric], value: SSAValue | None, sem: str | None, scope: str | None, cache: str, what: str
) -> Any:
    """Load ``*at``, or store ``value`` there: as a plain access, a strong access, or with a cache operator."""
    t = in_kernel(what)
    if sem is None and not cache:
        view = t.value("cute.make_view", [at, t.static('!cute.layout<"1:0">')])
        where = t.static('!cute.coord<"0">')
        if value is not None:
            t.op("cute.memref.store", [view, where, value])
            return None
        return kind.of(t.value("cute.memref.load", [view, where]))
    from cute_dialect.lang.values.tensors import Pointer  # late: start-up

    if kind.mlir_type not in _HELD:
        raise KernelTypeError("F253", f"{what}: sem and cop need elements of 16 to 64 bits, got {kind!r}")
    address = Pointer.of(at).toint().ssa
    order = f".relaxed.{scope or 'gpu'}" if sem else ""
    space: AddressSpace = at.type.data.space  # pyright: ignore[reportAttributeAccessIssue]
    letters = f"b{kind.width}"
    if value is not None:
        _ptx(f"st{order}{space.ptx}{cache}.{letters} [$0], $1;", [address, value], [])
        return None
    return _ptx(f"ld{order}{space.ptx}{cache}.{letters} $0, [$1];", [address], [kind])[0]


def prmt(a: Int, b: Int, selector: Int) -> Uint32:
    """Return four of the eight bytes of ``a`` (bytes 0 to 3) and ``b`` (4 to 7) as a Uint32.

    Each nibble of ``selector`` selects one byte.
    """
    words = [operand("i32", x, f"'{n}' of cute.arch.prmt") for x, n in ((a, "a"), (b, "b"), (selector, "selector"))]
    return _ptx("prmt.b32 $0, $1, $2, $3;", words, [Uint32])[0]


def nanosleep(nanoseconds: Int) -> None:
    """Suspend the thread for about ``nanoseconds``, at most one millisecond."""
    _ptx("nanosleep.u32 $0;", [operand("i32", nanoseconds, "'nanoseconds' of cute.arch.nanosleep")], [])


def clock64() -> Int64:
    """Return the SM's cycle counter as an Int64."""
    return Int64.of(in_kernel("cute.arch.clock64").value("nvvm.read.ptx.sreg.clock64", (), [Int64.attribute]))


def globaltimer() -> Uint64:
    """Return the GPU's global timer in nanoseconds as a Uint64."""
    return Uint64.of(in_kernel("cute.arch.globaltimer").value("nvvm.read.ptx.sreg.globaltimer", (), [Uint64.attribute]))


def smid() -> Int32:
    """Return the index of the SM that runs the thread."""
    return Uint32.of(in_kernel("cute.arch.smid").value("nvvm.read.ptx.sreg.smid", (), [Uint32.attribute]))
