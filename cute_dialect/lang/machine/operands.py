"""Emission of machine-level ops: operands from user values, and checks reported in the user's vocabulary.

The ops of ``cute_nvgpu.arch`` are rows of a table in :mod:`cute_dialect.cute_nvgpu.sync.ops`.  It lists their operands
and the first architecture that supports them.  :func:`instruction` creates the functions of ``cute.arch`` that emit one
op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.emission import require_chip
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import current, op_class
from cute_dialect.lang.values.dtypes import Boolean, Float32, Int32, Int64, Numeric
from cute_dialect.lang.values.dynamic import Dynamic
from cute_dialect.lang.values.numeric import as_number
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue


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
}
"""Converters for each kind of operand."""
_ANNOTATIONS = {
    "bar": "Pointer", "ptr": "Pointer", "smem": "Pointer", "i32": "Int", "i64": "Int", "i1": "Condition",
    "f32": "Number",
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
        require_chip(what, row.sm)
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
