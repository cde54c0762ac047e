"""Single instructions: inline PTX, timers, byte permutes, arithmetic on pairs of Float32, approximations.

Many are rows of a table in :mod:`cute_dialect.cute_nvgpu.sync`, which lists their operands and the first
architecture that supports them.  :func:`instruction` creates the function of ``cute.arch`` that emits one row.
Operands are converted from user values, and errors use the names of the user's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import (
    current,
    emit,
    extract,
    fastmath,
    float_flags,
    has_instruction,
    op_class,
    parse_type,
    require_chip,
)
from cute_dialect.lang.values.dtypes import Boolean, Float32, Int16, Int32, Int64, Numeric, Uint32, Uint64
from cute_dialect.lang.values.dynamic import Dynamic
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.math import fma, over
from cute_dialect.lang.values.numeric import as_number
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

    from cute_dialect.lang.values.signature_types import Int, Number, Value

__all__ = [
    "add_packed_f32x2", "clock64", "exp", "exp2", "fma_packed_f32x2", "fmax", "fmin", "globaltimer", "inline_ptx",
    "log2_approx", "mul_packed_f32x2", "nanosleep", "opaque", "prmt", "rcp_approx", "rsqrt_approx", "smid",
    "sqrt_approx", "store_bulk_zero", "sub_packed_f32x2", "tanh_approx",
]  # fmt: skip
"""The names of ``cute.arch``."""


def in_kernel(what: str) -> Any:
    """Return the tracer of the kernel being traced.  Raises F119 in a host function, which has no threads."""
    tracer = current()
    if tracer.kind != "kernel":
        raise KernelTypeError(
            "F119", f"{what} can only be used in a kernel, not in a host function", hint="call it in the kernel"
        )
    return tracer


def pointer(x: object, what: str, element: str = "", spaces: Sequence[AddressSpace] = ()) -> SSAValue:
    """Return the SSA value of a pointer, or of a tensor's iterator.  Raises F262 for anything else.

    ``element`` is the required element type, ``spaces`` the allowed memory spaces.
    """
    from cute_dialect.dialect.memory_types import PtrType  # late: start-up

    given: Any = x if hasattr(x, "type") and hasattr(x, "name_hint") else getattr(x, "ssa", None)
    if given is not None and not isinstance(given.type, PtrType):
        given = getattr(getattr(x, "iterator", None), "ssa", given)
    wanted = f"a pointer to {element or 'numbers'}{' in ' + ' or '.join(spaces) if spaces else ''}"
    if given is None or not isinstance(given.type, PtrType):
        raise KernelTypeError("F262", f"{what} must be {wanted}, got {_shown(x)}")
    data = given.type.data
    if (element and str(data.element) != element) or (spaces and data.space not in spaces):
        raise KernelTypeError("F262", f"{what} must be {wanted}, got a pointer to {data.element} in {data.space}")
    return given


def _shown(x: object) -> str:
    text = repr(x)
    return text if len(text) < 60 else f"a {type(x).__name__}"


def tensor_operand(x: Any, what: str, role: str) -> Any:
    """Return ``x`` if it is a tensor.  Raises F254 otherwise."""
    from cute_dialect.lang.values.tensors import Tensor  # late: start-up

    if not isinstance(x, Tensor):
        shown = x.describe() if isinstance(x, Dynamic) else repr(x)
        hint = "store it in a register tensor first with r.store(v)" if hasattr(type(x), "__cute_store__") else ""
        raise KernelTypeError("F254", f"{what}: the {role} must be a tensor, got {shown}", hint=hint)
    return x


def barrier_pointer(x: object, what: str) -> SSAValue:
    """Return the SSA value of an mbarrier pointer. Its element type may be Int64 or Uint64."""
    return pointer(x, what, "i64", (AddressSpace.smem,))


def _number(kind: type[Numeric]) -> Callable[[object, str], SSAValue]:
    def convert(x: object, what: str) -> SSAValue:
        number = as_number(x)
        if number.is_static or type(number) is kind:
            return kind(number).ssa
        if type(number).is_integer != kind.is_integer or type(number).width > kind.width:
            raise KernelTypeError("F234", f"{what} must be {kind!r}, got {number.describe()}", hint="convert it")
        return kind(number).ssa

    return convert


OPERANDS: Mapping[str, Callable[[object, str], SSAValue]] = {
    "bar": barrier_pointer,
    "ptr": pointer,
    "smem": lambda x, what: pointer(x, what, "", (AddressSpace.smem,)),
    "i32": _number(Int32),
    "i64": _number(Int64),
    "i1": _number(Boolean),
    "f32": _number(Float32),
    "mask": _number(Int16),
}
"""Converters for each kind of operand."""
_ANNOTATIONS = {
    "bar": "Pointer", "ptr": "Pointer", "smem": "Pointer", "i32": "Int", "i64": "Int", "i1": "Condition",
    "f32": "Number", "mask": "Int",
}  # fmt: skip
"""Annotations of each kind of operand, in signatures."""


def operand(kind: str, x: object, what: str) -> SSAValue:
    """Return the SSA value of an operand. ``kind`` is a key of :data:`OPERANDS`, ``what`` names it in messages."""
    return OPERANDS[kind](x, what)


def as_attribute(value: object) -> Attribute:
    """Return an attribute for a Python bool, int or str."""
    from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i32

    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(value, i32)
    if isinstance(value, str):
        return StringAttr(value)
    return value  # pyright: ignore[reportReturnType]


def emit_machine(op: str, operands: Sequence[SSAValue] = (), *, what: str = "", **properties: object) -> Operation:
    """Append the op ``cute_nvgpu.arch.OP``. Properties that are None are omitted; ``what`` is the user's name for it.

    Raises F280 if the target lacks the instruction, F251 for an invalid property.
    """
    name = f"cute_nvgpu.arch.{op}"
    what = what or f"cute.arch.{op}"
    tracer = in_kernel(what)
    row = getattr(op_class(name), "ROW", None)
    attributes = {k: as_attribute(v) for k, v in properties.items() if v is not None and v is not False}
    if row is not None:
        require_chip(what, row.rule)
        for known in row.properties:
            wrong = known.check(attributes.get(known.name))
            if wrong is not None:
                raise KernelTypeError("F251", f"{what}: {wrong}")
    return tracer.op(name, operands, None, attributes)


def instruction(
    name: str, operands: str, doc: str, *, op: str = "", result: type[Numeric] | None = None, **properties: object
) -> Callable[..., Any]:
    """Return a function of ``cute.arch`` that emits one op.

    Args:
        name: the function's name.
        operands: names and kinds of its operands, ``"ptr:bar, count:i32"``.
        doc: its docstring.
        op: the op's name if it differs.
        result: the type of the result, or None.
        properties: properties of the op.

    >>> instruction("popular", "x:f32", "Return x.").__name__
    'popular'
    """
    from inspect import Parameter, Signature

    kinds = [(n, k) for n, _, k in (o.strip().partition(":") for o in operands.split(",") if o.strip())]
    signature = Signature(
        [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, annotation=_ANNOTATIONS[kind]) for n, kind in kinds],
        return_annotation=result.__name__ if result is not None else "None",
    )
    what = f"cute.arch.{name}"

    def emitted(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        values = [operand(kind, given[n], f"'{n}' of {what}") for n, kind in kinds]
        made = emit_machine(op or name, values, what=what, **properties)
        return result.of(made.results[0]) if result is not None else None

    emitted.__name__ = emitted.__qualname__ = name
    emitted.__doc__ = doc
    emitted.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return emitted


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


store_bulk_zero = instruction(
    "store_bulk_zero",
    "ptr:smem, bytes:i32",
    "Set ``bytes`` bytes of shared memory to zero, a multiple of 8, with one instruction of one thread (sm_100).",
)


# --------------------------------------------------------------------------------------- arithmetic on pairs of Float32


_ROUNDINGS = ("rn", "rz", "rm", "rp")


def _packed(name: str, pairs: Sequence[object], rnd: object, ftz: bool) -> tuple[Float32, Float32]:
    """Apply an operation to the first elements of pairs, and to the second elements."""
    what = f"cute.arch.{name}_packed_f32x2"
    in_kernel(what)
    mode = str(getattr(rnd, "name", rnd or "rn")).lower()
    if mode not in _ROUNDINGS:
        raise KernelTypeError("F251", f"{what}: rnd is {rnd!r}; use one of {', '.join(map(repr, _ROUNDINGS))}")
    columns: list[tuple[Float32, Float32]] = []
    for pair, operand_name in zip(pairs, ("src_a", "src_b", "src_c")):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise KernelTypeError("F236", f"{what}: {operand_name} is {_shown(pair)}; pass a pair of Float32")
        one, other = (_float_of_pair(f"{what}: {operand_name}[{i}]", x) for i, x in enumerate(pair))
        columns.append((one, other))
    if has_instruction("sm_100"):
        return _pair_instruction(name, columns, "" if mode == "rn" and not ftz else f".{mode}{'.ftz' * bool(ftz)}")
    first, second = zip(*columns)
    if mode != "rn" or ftz:
        text = f"{name}.{mode}{'.ftz' * bool(ftz)}.f32 $0, {', '.join(f'${i + 1}' for i in range(len(columns)))};"
        one, other = (emit_ptx(text, [x.ssa for x in row], [Float32])[0] for row in (first, second))
        return one, other
    with fastmath("none"):  # Multiplication and addition are not fused.
        return _SCALAR[name](*first), _SCALAR[name](*second)


def _float_of_pair(where: str, x: object) -> Float32:
    if isinstance(x, float):
        return Float32(x)
    try:
        number = as_number(x)
    except KernelTypeError:
        raise KernelTypeError("F236", f"{where} is {_shown(x)}; pass a Float32") from None
    if type(number) is not Float32:
        found = f"{_shown(x)}, of type {type(number).__name__}"
        raise KernelTypeError("F236", f"{where} is {found}; pass a Float32, such as cute.Float32(x)")
    return number


_SCALAR: Mapping[str, Callable[..., Float32]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "fma": fma,
}  # fmt: skip
_VECTOR = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "fma": "math.fma"}


def _pair_instruction(name: str, columns: Sequence[tuple[Float32, Float32]], modifiers: str) -> tuple[Float32, Float32]:
    """Emit one instruction on pairs: an op on vectors if it rounds to nearest, else PTX with its modifiers."""
    pair = parse_type("vector<2xf32>")
    operands = [emit("vector.from_elements", [x.ssa, y.ssa], pair) for x, y in columns]
    if not modifiers:
        made = emit(_VECTOR[name], operands, pair, **float_flags("none"))
    else:
        words = parse_type("vector<1xi64>")
        held = [extract(emit("vector.bitcast", [x], words), 0) for x in operands]
        text = f"{name}{modifiers}.f32x2 $0, {', '.join(f'${i + 1}' for i in range(len(held)))};"
        bits = emit("vector.from_elements", [emit_ptx(text, held, [Int64])[0].ssa], words)
        made = emit("vector.bitcast", [bits], pair)
    return Float32.of(extract(made, 0)), Float32.of(extract(made, 1))


def add_packed_f32x2(
    src_a: tuple[Number, Number], src_b: tuple[Number, Number], *, rnd: str | None = None, ftz: bool = False
) -> tuple[Float32, Float32]:
    """Return the sums of two pairs of Float32: one instruction from sm_100 on for ``ftz`` or a ``rnd`` other than "rn".

    Args:
        src_a: the first pair.
        src_b: the second pair.
        rnd: the rounding mode: ``"rn"`` (default, to nearest), ``"rz"`` (to zero), ``"rm"`` (down) or ``"rp"`` (up).
        ftz: True to flush denormals to zero.

    ``x, y = cute.arch.add_packed_f32x2((x, y), (1.0, 2.0))``
    """
    return _packed("add", (src_a, src_b), rnd, ftz)


def sub_packed_f32x2(
    src_a: tuple[Number, Number], src_b: tuple[Number, Number], *, rnd: str | None = None, ftz: bool = False
) -> tuple[Float32, Float32]:
    """Return the elementwise difference of two pairs of Float32; see :func:`add_packed_f32x2`."""
    return _packed("sub", (src_a, src_b), rnd, ftz)


def mul_packed_f32x2(
    src_a: tuple[Number, Number], src_b: tuple[Number, Number], *, rnd: str | None = None, ftz: bool = False
) -> tuple[Float32, Float32]:
    """Return the elementwise product of two pairs of Float32; see :func:`add_packed_f32x2`."""
    return _packed("mul", (src_a, src_b), rnd, ftz)


def fma_packed_f32x2(
    src_a: tuple[Number, Number],
    src_b: tuple[Number, Number],
    src_c: tuple[Number, Number],
    *,
    rnd: str | None = None,
    ftz: bool = False,
) -> tuple[Float32, Float32]:
    """Return ``a * b + c`` of three pairs of Float32 with a single rounding; see :func:`add_packed_f32x2`."""
    return _packed("fma", (src_a, src_b, src_c), rnd, ftz)


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


def _chosen(op: str, numbers: Sequence[object], what: str) -> Float32:
    tracer = in_kernel(what)
    chosen, *others = [operand("f32", x, f"'{n}' of {what}") for x, n in zip(numbers, "abc")]
    for other in others:
        flags = {"fastmath": parse_type("#arith.fastmath<none>")}
        chosen = tracer.value(op, [chosen, other], [Float32.attribute], flags)
    return Float32.of(chosen)


def fmax(a: Number, b: Number, c: Number | None = None) -> Float32:
    """Return the maximum of two or three Float32, except NaN: one instruction from sm_100 on."""
    return _chosen("arith.maxnumf", (a, b) if c is None else (a, b, c), "cute.arch.fmax")


def fmin(a: Number, b: Number, c: Number | None = None) -> Float32:
    """Return the minimum of two or three Float32, except NaN: one instruction from sm_100 on."""
    return _chosen("arith.minnumf", (a, b) if c is None else (a, b, c), "cute.arch.fmin")


def opaque(x: Value) -> Value:
    """Return the same value, hidden from the optimizer."""
    form = form_of(x).widened()
    return form.make([emit_machine("opaque", [leaf]).results[0] for leaf in form.take(x)])
