"""Single instructions: inline PTX, timers, byte permutes, arithmetic on pairs of Float32, approximations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.machine.operands import emit_machine, in_kernel, instruction, operand
from cute_dialect.lang.tracing.emission import fastmath
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import parse_type
from cute_dialect.lang.values.dtypes import Float32, Int64, Numeric, Uint32, Uint64
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.math import fma, over
from cute_dialect.lang.values.numeric import as_number

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.dtypes import Int32
    from cute_dialect.lang.values.signature_types import Int, Number, Value

__all__ = [
    "add_packed_f32x2", "clock64", "exp", "exp2", "fma_packed_f32x2", "fmax", "fmin", "globaltimer", "inline_ptx",
    "log2_approx", "mul_packed_f32x2", "nanosleep", "opaque", "prmt", "rcp_approx", "rsqrt_approx", "smid",
    "sqrt_approx", "tanh_approx",
]  # fmt: skip
"""The names of ``cute.arch``."""

# ----------------------------------------------------------------------------------------------------------- inline PTX


REGISTER_TYPES = ("i16", "i32", "i64", "f16", "bf16", "f32", "f64")
"""Types that a PTX register can hold."""


def emit_ptx(text: str, operands: Sequence[SSAValue], results: Sequence[type[Numeric]]) -> list[Any]:
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
        if not (isinstance(kind, type) and issubclass(kind, Numeric)) or kind.mlir_type not in REGISTER_TYPES:
            raise KernelTypeError("F251", f"cute.arch.inline_ptx: result must be a type of 16 to 64 bits, got {kind!r}")
    from cute_dialect.lang.values.pointers import Pointer  # late: start-up

    numbers = [x.toint() if isinstance(x, Pointer) else as_number(x) for x in operands]
    for i, number in enumerate(numbers):
        if type(number).mlir_type not in REGISTER_TYPES:
            raise KernelTypeError(
                "F251", f"cute.arch.inline_ptx: operand {i} must be a number of 16 to 64 bits, got {number.describe()}"
            )
    made = emit_ptx(text, [n.ssa for n in numbers], results)
    return tuple(made) if isinstance(result, tuple | list) else made[0] if made else None


def prmt(a: Int, b: Int, selector: Int) -> Uint32:
    """Return four of the eight bytes of ``a`` (bytes 0 to 3) and ``b`` (4 to 7) as a Uint32.

    Each nibble of ``selector`` selects one byte.
    """
    words = [operand("i32", x, f"'{n}' of cute.arch.prmt") for x, n in ((a, "a"), (b, "b"), (selector, "selector"))]
    return emit_ptx("prmt.b32 $0, $1, $2, $3;", words, [Uint32])[0]


def nanosleep(nanoseconds: Int) -> None:
    """Suspend the thread for about ``nanoseconds``, at most one millisecond."""
    emit_ptx("nanosleep.u32 $0;", [operand("i32", nanoseconds, "'nanoseconds' of cute.arch.nanosleep")], [])


def clock64() -> Int64:
    """Return the SM's cycle counter as an Int64."""
    return Int64.of(in_kernel("cute.arch.clock64").value("nvvm.read.ptx.sreg.clock64", (), [Int64.attribute]))


def globaltimer() -> Uint64:
    """Return the GPU's global timer in nanoseconds as a Uint64."""
    return Uint64.of(in_kernel("cute.arch.globaltimer").value("nvvm.read.ptx.sreg.globaltimer", (), [Uint64.attribute]))


def smid() -> Int32:
    """Return the index of the SM that runs the thread."""
    return Uint32.of(in_kernel("cute.arch.smid").value("nvvm.read.ptx.sreg.smid", (), [Uint32.attribute]))


# --------------------------------------------------------------------------------------- arithmetic on pairs of Float32


def _packed(name: str, compute: Callable[..., Any], pairs: tuple[Any, ...], rnd: Any, ftz: bool) -> tuple[Any, Any]:
    """Apply a function to the first elements of pairs, and to the second elements."""
    what = f"cute.arch.{name}_packed_f32x2"
    in_kernel(what)
    if str(getattr(rnd, "name", rnd or "rn")).lower() != "rn" or ftz:
        raise KernelTypeError(
            "F251", f"{what}: rnd must be 'rn' and ftz must be False, got {rnd} and {ftz}",
            hint="scalar instructions are used, which round to nearest and keep denormals",
        )  # fmt: skip
    columns: list[tuple[Any, Any]] = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise KernelTypeError("F236", f"{what}: the operands must be pairs of Float32, got {pair!r}")
        numbers = tuple(Float32(x) if isinstance(x, float) else as_number(x) for x in pair)
        for number in numbers:
            if type(number) is not Float32:
                raise KernelTypeError("F236", f"{what}: the operands must be pairs of Float32, got {number.describe()}")
        columns.append((numbers[0], numbers[1]))
    with fastmath("none"):  # Multiplication and addition are not fused.
        return compute(*[x for x, _ in columns]), compute(*[y for _, y in columns])


def add_packed_f32x2(
    src_a: tuple[Number, Number], src_b: tuple[Number, Number], *, rnd: str | None = None, ftz: bool = False
) -> tuple[Float32, Float32]:
    """Return the elementwise sum of two pairs of Float32.

    ``rnd`` and ``ftz`` are accepted for compatibility.  F251 is raised unless they select round-to-nearest without
    flushing. ``x, y = cute.arch.add_packed_f32x2((x, y), (1.0, 2.0))``
    """
    return _packed("add", lambda a, b: a + b, (src_a, src_b), rnd, ftz)


def mul_packed_f32x2(
    src_a: tuple[Number, Number], src_b: tuple[Number, Number], *, rnd: str | None = None, ftz: bool = False
) -> tuple[Float32, Float32]:
    """Return the elementwise product of two pairs of Float32; see :func:`add_packed_f32x2`."""
    return _packed("mul", lambda a, b: a * b, (src_a, src_b), rnd, ftz)


def fma_packed_f32x2(
    src_a: tuple[Number, Number],
    src_b: tuple[Number, Number],
    src_c: tuple[Number, Number],
    *,
    rnd: str | None = None,
    ftz: bool = False,
) -> tuple[Float32, Float32]:
    """Return ``a * b + c`` of three pairs of Float32 with a single rounding; see :func:`add_packed_f32x2`."""
    return _packed("fma", fma, (src_a, src_b, src_c), rnd, ftz)


# -------------------------------------------------------------------------------------------------- approximations


def _approximation(name: str, op: str, text: str) -> Any:
    return instruction(name, "x:f32", f"Return {text}, denormals flushed to zero.", op=op, result=Float32)


exp2 = _approximation("exp2", "exp2_approx", "``2^x`` to 2 ulp")


def exp(x: Number) -> Float32:
    """Return ``e^x`` as ``exp2(x * log2(e))``. The relative error grows with ``|x|``, up to about 2^-17."""
    return over(lambda n: exp2(n * _LOG2_E), x)


_LOG2_E = 1.4426950408889634
log2_approx = _approximation("log2_approx", "log2_approx", "``log2(x)`` with an absolute error of 2^-22")
rcp_approx = _approximation("rcp_approx", "rcp_approx", "``1 / x`` to 1 ulp")
sqrt_approx = _approximation("sqrt_approx", "sqrt_approx", "``sqrt(x)`` with a relative error of 2^-23")
rsqrt_approx = _approximation("rsqrt_approx", "rsqrt_approx", "``1 / sqrt(x)`` with a relative error of 2^-22.9")
tanh_approx = _approximation("tanh_approx", "tanh_approx", "``tanh(x)`` with a relative error of 2^-11")


def _chosen(op: str, a: Any, b: Any, what: str) -> Any:
    tracer = in_kernel(what)
    operands = [operand("f32", x, f"'{n}' of {what}") for x, n in ((a, "a"), (b, "b"))]
    return Float32.of(
        tracer.value(op, operands, [Float32.attribute], {"fastmath": parse_type("#arith.fastmath<none>")})
    )


def fmax(a: Number, b: Number) -> Float32:
    """Return the maximum of two Float32. If one is NaN, the other is returned."""
    return _chosen("arith.maxnumf", a, b, "cute.arch.fmax")


def fmin(a: Number, b: Number) -> Float32:
    """Return the minimum of two Float32. If one is NaN, the other is returned."""
    return _chosen("arith.minnumf", a, b, "cute.arch.fmin")


def opaque(x: Value) -> Value:
    """Return the same value, hidden from the optimizer."""
    form = form_of(x).widened()
    return form.make([emit_machine("opaque", [leaf]).results[0] for leaf in form.take(x)])
