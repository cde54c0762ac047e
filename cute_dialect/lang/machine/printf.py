"""Run-time printing from kernels: formatted text, tensors, and assertions.

``cute.printf("x = {}, at {}", x, (i, j))`` prints values.  C formats (``"%d"``) and f-strings
(``cute.printf(f"{x=}")``) work too.  Static values become part of the text; run-time numbers become arguments of
``gpu.printf``.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.algebra.evaluation import idx2crd, size
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError, LimitError, StaticError
from cute_dialect.lang.tracing.source_location import place_of_location
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import Boolean, Float64, Int32, Numeric, Uint32
from cute_dialect.lang.values.int_tuples import dynamic_leaves_of, leaves, tree_text
from cute_dialect.lang.values.tensors import Tensor

if TYPE_CHECKING:
    from cute_dialect.lang.tracing.tracer import Tracer
    from cute_dialect.lang.values.signature_types import Condition, Value
    from cute_dialect.lang.values.vectors import TensorSSA

MAX_ARGUMENTS = 32
"""Maximum number of arguments of device printf (CUDA C++ Programming Guide, "Formatted Output")."""

_LEAF = re.compile(r"\?(\{[^}]*\})?")
_C_SPEC = re.compile(r"%([-+ #0]*)(\d+)?(?:\.(\d+))?(?:hh|h|ll|l)?([diouxXeEfFgGcs%])")
_FORMAT_SPEC = re.compile(r"(0?)(\d+)?(?:\.(\d+))?([dxXobeEfFgG]?)$")


class HostTexts(NamedTuple):
    """Constant texts that a host function prints in each call, before and after its first launch."""

    before: str = ""
    after: str = ""


class _Line:
    """A C format string under construction, with its arguments."""

    def __init__(self) -> None:
        self.text = ""
        self.arguments: list[Numeric] = []

    def static(self, text: str) -> None:
        """Add literal text."""
        self.text += text.replace("%", "%%")

    def number(self, x: Numeric, spec: str = "", flags: str = "") -> None:
        """Add a number. ``spec`` is C's conversion (``d``, ``x``, ``f``, …); by default that of its type."""
        kind = type(x)
        if kind.is_float:
            if spec and spec not in "eEfFgG":
                raise KernelTypeError(
                    "F239", f"printf: '%{spec}' needs an integer, got {x.describe()}", hint="cute.Int32(x)"
                )
            self.text += f"%{flags}{spec or 'f'}"
            self.arguments.append(Float64(x))
            return
        if spec and spec in "eEfFgG":
            raise KernelTypeError(
                "F239", f"printf: '%{spec}' needs a float, got {x.describe()}", hint="cute.Float32(x)"
            )
        wide = kind.width == 64
        spec = spec or ("d" if kind.signed or kind is Boolean else "u")
        self.text += f"%{flags}{'ll' if wide else ''}{spec}"
        signed = kind.signed or kind is Boolean
        self.arguments.append(x if kind.width in (32, 64) else (Int32 if signed else Uint32)(x))

    def value(self, x: Any, spec: str = "") -> None:
        """Add any value, formatted as ``{}`` does."""
        from cute_dialect.lang.values.layouts import AnyLayout  # late: start-up
        from cute_dialect.lang.values.vectors import TensorSSA  # late: start-up

        pieces = getattr(x, "pieces", None)
        if isinstance(x, str) and pieces is not None:
            self.pieces(pieces)
        elif isinstance(x, Numeric) and not x.is_static:
            self._formatted(x, spec)
        elif isinstance(x, tuple | list):
            self.static("(")
            for i, part in enumerate(x):
                self.static("," if i else "")
                self.value(part, spec)
            self.static(")")
        elif isinstance(x, AnyLayout):
            self.layout(x)
        elif isinstance(x, Tensor):
            head, _, _ = repr(x).rpartition(str(x.payload))
            self.static(head)
            self.layout(x.layout)
            self.static(">")
        elif isinstance(x, TensorSSA):
            self.static("[")
            for i, part in enumerate(x):
                self.static(", " if i else "")
                self.value(part, spec)
            self.static("]")
        elif x is None:
            self.static("_")
        else:
            self.static(format(x, spec))

    def _formatted(self, x: Numeric, spec: str) -> None:
        found = _FORMAT_SPEC.match(spec)
        if found is None:
            raise KernelTypeError(
                "F239",
                f"printf: device printf does not support the format '{spec}'",
                hint="use formats such as {:8.3f}, {:04d}",
            )
        zero, width, digits, kind = found.groups()
        flags = f"{zero}{width or ''}" + (f".{digits}" if digits is not None else "")
        if kind == "b":
            raise KernelTypeError(
                "F239", "printf: device printf cannot print binary numbers", hint="use {:x} for hexadecimal"
            )
        self.number(x, kind, flags)

    def layout(self, x: Any) -> None:
        """Add a layout with its numbers."""
        numbers = list(x.numbers)
        if isinstance(x.payload, ComposedLayout):  # In the text the inner part comes first.
            outer = len(dynamic_leaves_of(x.payload.outer))
            offset = len(dynamic_leaves_of(x.payload.offset))
            numbers = numbers[outer + offset :] + numbers[outer : outer + offset] + numbers[:outer]
        at = 0
        text = str(x)
        for found, number in zip(_LEAF.finditer(text), numbers, strict=True):
            self.static(text[at : found.start()])
            self.number(number)
            at = found.end()
        self.static(text[at:])

    def pieces(self, pieces: Sequence[Any]) -> None:
        """Add the pieces of an f-string."""
        for piece in pieces:
            if isinstance(piece, str):
                self.static(piece)
            else:
                self.value(*piece)

    def emit(self, end: str) -> None:
        """Append the op.  Raises F172 for too many arguments."""
        from xdsl.dialects.builtin import StringAttr

        t = current()
        if len(self.arguments) > MAX_ARGUMENTS:
            raise LimitError(
                "F172", f"a printf can print at most {MAX_ARGUMENTS} numbers, this one has {len(self.arguments)}",
                hint="use cute.print_tensor for tensors and vectors",
            )  # fmt: skip
        text = self.text + end
        t.op("gpu.printf", [x.ssa for x in self.arguments], (), {"format": StringAttr(text)})


def take_host_texts(tracer: Tracer) -> HostTexts:
    """Remove the printf ops of a host function that launches kernels, and return their texts.

    Raises F260 for a text with run-time values, or under a run-time condition.
    """
    from xdsl.dialects.builtin import StringAttr

    before: list[str] = []
    after: list[str] = []
    launched = False
    for op in list(tracer.function.walk()):
        launched |= op.name == "gpu.launch_func"
        if op.name != "gpu.printf":
            continue
        if op.operands or op.parent is not tracer.entry:
            why = "prints run-time values" if op.operands else "prints under a run-time condition"
            raise KernelTypeError(
                "F260", f"a host function that launches kernels {why}; only constant text is supported",
                place=place_of_location(op.location),
                hint="use print(…) to print at compile time, or cute.printf in the kernel",
            )  # fmt: skip
        text = op.properties["format"]
        assert isinstance(text, StringAttr)
        (after if launched else before).append(text.data.replace("%%", "%"))
        op.detach()
        op.erase()
    return HostTexts("".join(before), "".join(after))


def printf(fmt: str | Value, *args: Value, end: str | None = None) -> None:
    """Print at run time. ``{}`` (or C's ``%d``, ``%f``, …) are replaced by the arguments.

    Args:
        fmt: the format; an f-string, or a single value, works too.
        args: the values.
        end: text to append; by default a newline, unless the text ends with one.
    """
    line = _Line()
    pieces = getattr(fmt, "pieces", None)
    if pieces is not None and isinstance(fmt, str) and not args:
        line.pieces(pieces)
    elif not isinstance(fmt, str):
        for i, x in enumerate((fmt, *args)):
            line.static(" " if i else "")
            line.value(x)
    elif args and "{" not in fmt and _C_SPEC.search(fmt):
        _c_format(line, fmt, args)
    else:
        _brace_format(line, fmt, args)
    line.emit(end if end is not None else "" if line.text.endswith("\n") else "\n")


def _brace_format(line: _Line, fmt: str, args: Sequence[Any]) -> None:
    taken = 0
    try:
        parts = list(string.Formatter().parse(fmt)) if args else [(fmt, None, None, None)]
    except ValueError as e:
        raise KernelTypeError("F239", f"printf: invalid format '{fmt}': {e}") from None
    for text, field, spec, _ in parts:
        line.static(text)
        if field is None:
            continue
        if field and not field.isdigit():
            raise KernelTypeError(
                "F239", f"printf: named fields such as '{{{field}}}' are not supported", hint="use an f-string"
            )
        index = int(field) if field else taken
        if index >= len(args):
            raise KernelTypeError("F239", f"printf: '{fmt}' needs more arguments than the {len(args)} given")
        taken = index + 1
        line.value(args[index], spec or "")
    if taken < len(args) and not any(field for _, field, _, _ in parts):
        raise KernelTypeError("F239", f"printf: '{fmt}' needs {taken} arguments, got {len(args)}")


def _c_format(line: _Line, fmt: str, args: Sequence[Any]) -> None:
    from cute_dialect.lang.values.numeric import as_number, is_number  # late: start-up

    given = iter(args)
    wanted = sum(m[4] != "%" for m in _C_SPEC.finditer(fmt))
    if wanted != len(args):
        raise KernelTypeError("F239", f"printf: '{fmt}' needs {wanted} arguments, got {len(args)}")
    at = 0
    for found in _C_SPEC.finditer(fmt):
        line.text += fmt[at : found.start()].replace("%", "%%")
        at = found.end()
        flags, width, digits, kind = found.groups()
        if kind == "%":
            line.text += "%%"
            continue
        x = next(given)
        if kind == "s" or not is_number(x):
            line.value(x)
            continue
        number = as_number(x)
        both = (flags or "") + (width or "") + (f".{digits}" if digits is not None else "")
        line.number(number, "d" if kind == "i" else kind, both)
    line.text += fmt[at:].replace("%", "%%")


# -------------------------------------------------------------------------------------------------------------- tensors


def print_tensor(tensor: Tensor | TensorSSA, verbose: bool = False) -> None:
    """Print a tensor or vector of static shape at run time: its type, then one row of elements per index of mode 0.

    ``verbose`` prints one element per line, with its coordinate.  The header of a register tensor names the thread.
    """
    from cute_dialect.lang.values.vectors import TensorSSA  # late: start-up

    shape = _printable_shape(tensor)
    head = _Line()
    if isinstance(tensor, TensorSSA):
        head.static(repr(tensor))
    else:
        head.value(tensor)
    if current().kind == "kernel" and (isinstance(tensor, TensorSSA) or tensor.is_per_thread):
        head.static(" of thread ")
        head.value(_ids("tid"))
        head.static(" in block ")
        head.value(_ids("ctaid"))
    head.static(":")
    head.emit("\n")
    if verbose:
        _print_each(tensor, shape)
    else:
        _print_rows(tensor, shape)


def _printable_shape(tensor: Any) -> Any:
    from cute_dialect.lang.values.vectors import MAX_ELEMENTS, TensorSSA  # late: start-up

    if not isinstance(tensor, Tensor | TensorSSA):
        raise KernelTypeError(
            "F239", f"print_tensor needs a tensor or a vector, got {tensor!r}", hint="use cute.printf(x)"
        )
    shape = tensor.shape_payload if isinstance(tensor, Tensor) else tensor.shape
    if not is_static(shape):
        raise LayoutError(
            "F240", f"print_tensor needs a static shape, but {tensor.describe()} has shape {tree_text(tensor.shape)}",
            hint="print a tile or a slice of it",
        )  # fmt: skip
    count = size(shape)
    if isinstance(count, int) and count > MAX_ELEMENTS:
        raise LimitError(
            "F171", f"print_tensor prints at most {MAX_ELEMENTS} elements, but {tree_text(shape)} has {count}"
        )
    return shape


def _ids(register: str) -> tuple[Any, ...]:
    t = current()
    return tuple(Int32.of(t.value(f"nvvm.read.ptx.sreg.{register}.{axis}", (), [Int32.attribute])) for axis in "xyz")


def _print_rows(tensor: Any, shape: Any) -> None:
    """Print ``[[…],\\n […]]`` with one row per index of mode 0."""
    modes = shape if isinstance(shape, tuple) else (shape,)
    rows: Any = size(modes[0]) if len(modes) > 1 else 1
    total: Any = size(shape)
    columns = total // rows
    for row in range(rows):
        line = _Line()
        line.static(("[[" if row == 0 else " [") if len(modes) > 1 else "[")
        for column in range(columns):
            if len(line.arguments) + _width(tensor) > MAX_ARGUMENTS:
                line.emit("")
                line = _Line()
            line.value(tensor[row + column * rows])
            line.static(", " if column < columns - 1 else "]")
        if len(modes) > 1:
            line.static("]" if row == rows - 1 else ",")
        line.emit("\n")


def _width(tensor: Any) -> int:
    """Return the maximum count of numbers that one element prints."""
    return 1 if tensor.element_type is not None else len(leaves(tensor.iterator))


def _print_each(tensor: Any, shape: Any) -> None:
    total: Any = size(shape)
    for i in range(total):
        line = _Line()
        line.static(f"{tree_text(idx2crd(i, shape))}: ")
        line.value(tensor[i])
        line.emit("\n")


def pretty_str(x: Any) -> str:
    """Return the text that ``print`` shows for a value at compile time, with ``?`` for run-time values.

    >>> pretty_str((4, (None, 8)))
    '(4,(_,8))'
    """
    return tree_text(x) if isinstance(x, tuple | list) or x is None else str(x)


# ----------------------------------------------------------------------------------------------------------- assertions


def assert_(condition: Condition, message: str = "") -> None:
    """Stop the kernel with a message if a condition is false, in every build. Static conditions are checked at once.

    Unlike this function, ``assert`` statements can be disabled: ``python -O``, ``CUTE_ASSERT=0``,
    ``--enable-assertions=false``.
    """
    from xdsl.dialects.builtin import StringAttr

    if isinstance(condition, bool) or (isinstance(condition, Numeric) and condition.is_static):
        if not condition:
            raise AssertionError(message)
        return
    if not isinstance(condition, Numeric) or type(condition) is not Boolean:
        raise KernelTypeError(
            "F151", f"assert_: the condition must be a Boolean, got {condition!r}", hint="compare it: x != 0"
        )
    current().op("cf.assert", [condition.ssa], (), {"msg": StringAttr(str(message) or "assertion failed")})


def breakpoint() -> None:
    """Raise F163: kernels cannot be stepped through.

    Python's own ``breakpoint()`` stops while the kernel is traced.
    """
    raise StaticError(
        "F163", "kernels cannot be stepped through",
        hint="print with cute.printf, check with cute.assert_, or run with device='cpu', which reports races and "
        "uninitialized reads; Python's breakpoint() stops while the kernel is traced",
    )  # fmt: skip


def trap() -> None:
    """Stop the kernel with an error."""
    current().op("llvm.intr.trap")
