"""Evaluation of the expressions of ``cute-run --check``, over numbers and over a field.

The tree is evaluated node by node, so that an expression cannot reach the rest of Python.  A name refers to an argument
after the run, ``in_NAME`` to its value before the run.  ``==`` compares bitwise and element by element in the type of
the arguments (NaN equals NaN).  A comparison of arrays must hold for every element.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportAssignmentType=false

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from cute_dialect.interp.field import FieldArray
from cute_dialect.interp.validation.equivalence import Side
from cute_dialect.tools.check_expressions import ELEMENTWISE, KEYWORDS, CheckError, read_expression, spelled

if TYPE_CHECKING:  # pragma: no cover
    from numpy.typing import NDArray


# The tables below hold overloaded numpy functions, whose types pyright cannot resolve.


Number: TypeAlias = "NDArray[np.generic] | np.generic | int | float | bool"


class CheckResult(NamedTuple):
    """The verdict of a check and a one-line explanation: the number of elements and the first difference."""

    ok: bool
    detail: str


_BINARY: Mapping[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[object, object], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "where": np.where,
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "isnan": np.isnan,
    "transpose": np.transpose,
    "allclose": np.allclose,
    "array_equal": np.array_equal,
    "f32": lambda x: np.asarray(x).astype(np.float32),
    "f64": lambda x: np.asarray(x).astype(np.float64),
    "like": lambda x, y: np.asarray(x).astype(np.asarray(y).dtype),
}


def check(
    expression: str,
    values: Mapping[str, object],
    tensors: Sequence[str],
    written: Mapping[str, NDArray[np.bool_]] | None = None,
) -> CheckResult:
    """Evaluate ``expression`` or a named reference over ``values``.

    Args:
        expression: the expression, or a name in ``REFERENCES``.
        values: the arguments by name.
        tensors: the names of the array arguments, in order.
        written: masks of the written elements after a run of some blocks, by argument name; other elements are not
            compared.  None compares all elements.

    Raises:
        CheckError: the expression is invalid.

    >>> check("c == a + 1", {"a": np.arange(3), "c": np.array([1, 2, 4])}, ["a", "c"])
    CheckResult(ok=False, detail='1 of 3 elements differ, the first at (2,): got 4, expected 3')
    """
    marks = spelled(values)
    tree = read_expression(expression, list(values), tensors)
    values = {**values, **{mark: values[name] for name, mark in marks.items() if name in values}}
    if written is not None:
        written = {**written, **{mark: written[name] for name, mark in marks.items() if name in written}}
    try:
        with np.errstate(all="ignore"):
            result = _verdict(tree, values, None if written is None else Written(written, values))
        detail = result.detail
        for name, mark in marks.items():
            detail = detail.replace(mark, name)
        return CheckResult(result.ok, detail)
    except CheckError:
        raise
    except RecursionError as e:
        raise CheckError("the expression is nested too deeply") from e
    except Exception as e:  # numpy rejects these shapes or types.
        raise CheckError(f"{expression}: {e}") from e


def _verdict(tree: ast.expr, values: Mapping[str, object], written: Written | None) -> CheckResult:
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        results = [_verdict(t, values, written) for t in tree.values]
        bad = [r for r in results if not r.ok]
        return bad[0] if bad else CheckResult(True, "; ".join(r.detail for r in results))
    if written is not None:
        return _partial(tree, values, written)
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq):
        got, want = np.asarray(_value(tree.left, values)), np.asarray(_value(tree.comparators[0], values))
        result = _equal(got, want)
        if not result.ok and got.shape == want.shape and "f" in (_kind(got), _kind(want)):
            left, right = (ast.unparse(t) for t in (tree.left, tree.comparators[0]))
            close = f"allclose({left}, {right}, rtol=1e-3)"
            detail = f"{result.detail}; == compares bitwise, to allow for rounding use {close}"
            return CheckResult(False, detail)
        return result
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "allclose":
        return _close(tree, values)
    value = np.asarray(_value(tree, values))
    if value.dtype != np.bool_:
        raise CheckError("the expression is not a comparison; write for example 'c == a + b'")
    bad_count = int(value.size - np.count_nonzero(value))
    if bad_count:
        first = tuple(int(i) for i in np.argwhere(~value)[0])
        return CheckResult(False, f"fails for {bad_count} of {value.size} elements, the first at {first}")
    return CheckResult(True, f"holds for {value.size} element{'s' if value.size != 1 else ''}")


def _kind(array: NDArray[np.generic]) -> str:
    """Return the kind of elements, with ``f`` also for the small float types that numpy lacks."""
    return "f" if array.dtype.kind == "V" else array.dtype.kind


def _close(tree: ast.Call, values: Mapping[str, object]) -> CheckResult:
    """Compare like ``allclose``, and report the number of close elements or the first that is not close."""
    _value(tree, values)  # This raises if the arguments of allclose are invalid.
    got, want, *rest = (np.asarray(_value(a, values)) for a in tree.args)
    keywords = {k.arg or "": _value(k.value, values) for k in tree.keywords}
    isclose = cast("Callable[..., NDArray[np.bool_]]", np.isclose)
    good = np.asarray(isclose(got, want, *rest, **keywords))
    count = good.size - int(np.count_nonzero(good))
    if not count:
        return CheckResult(True, f"{good.size} elements close")
    first = tuple(int(i) for i in np.argwhere(~good)[0])
    one, other = (np.broadcast_to(x, good.shape)[first] for x in (got, want))
    return CheckResult(
        False, f"{count} of {good.size} elements are not close, the first at {first}: got {one}, expected {other}"
    )


def _partial(tree: ast.expr, values: Mapping[str, object], written: Written) -> CheckResult:
    """Return the verdict over the written elements."""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in ("allclose", "array_equal"):
        known = written.both(*tree.args[:2])
        close = tree.func.id == "allclose"
        keywords = {k.arg or "": _value(k.value, values) for k in tree.keywords if k.arg in KEYWORDS}
        function = cast("Callable[..., NDArray[np.bool_]]", np.isclose if close else np.equal)
        good = function(*(np.asarray(_value(a, values)) for a in tree.args), **keywords)
    elif isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq):
        known = written.both(tree.left, tree.comparators[0])
        got, want = (np.asarray(_value(t, values)) for t in (tree.left, tree.comparators[0]))
        if got.shape != want.shape and want.shape != ():
            return CheckResult(False, f"shapes differ: {got.shape} and {want.shape}")
        good = np.equal(got, want)
        if got.dtype.kind in "fV" and want.dtype.kind in "fV":
            good = good | (np.not_equal(got, got) & np.not_equal(want, want))
    else:
        known = written.of(tree)
        good = np.asarray(_value(tree, values))
        if good.dtype != np.bool_:
            raise CheckError("the expression is not a comparison; write for example 'c == a + b'")
    if known is None or not known.any():
        raise CheckError("the blocks that ran wrote no element of the arrays in the expression")
    known = np.broadcast_to(known, good.shape)
    bad = ~good & known
    which = f"the {np.count_nonzero(known)} of {good.size} elements that were written"
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        return CheckResult(False, f"fails for {np.count_nonzero(bad)} of {which}, the first at {first}")
    return CheckResult(True, f"holds for {which}")


class Written:
    """Masks of the elements of an expression that depend on written elements only.

    The mask of an expression without partially written arrays is None.
    """

    def __init__(self, written: Mapping[str, NDArray[np.bool_]], values: Mapping[str, object]):
        self._written = written
        self._values = values

    def both(self, *trees: ast.expr) -> NDArray[np.bool_] | None:
        """Return the intersection of the masks of the operands."""
        out: NDArray[np.bool_] | None = None
        for t in trees:
            known = self.of(t)
            if known is not None:
                out = known if out is None else out & known
        return out

    def of(self, tree: ast.expr) -> NDArray[np.bool_] | None:
        """Return the mask of an expression.

        Raises:
            CheckError: the expression mixes written elements with others, for example in a sum.
        """
        if isinstance(tree, ast.Name):
            return self._written.get(tree.id)
        if isinstance(tree, ast.BinOp) and not isinstance(tree.op, ast.MatMult):
            return self.both(tree.left, tree.right)
        if isinstance(tree, ast.UnaryOp):
            return self.of(tree.operand)
        if isinstance(tree, ast.Compare):
            return self.both(tree.left, *tree.comparators)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in ELEMENTWISE:
            return self.both(*tree.args[: 1 if tree.func.id == "like" else None])
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "transpose":
            known = self.of(tree.args[0])
            return known if known is None else np.transpose(known)
        if isinstance(tree, ast.Attribute):
            known = self.of(tree.value)
            return known if known is None else known.T
        if isinstance(tree, ast.Subscript):
            known = self.of(tree.value)
            return known if known is None else known[cast("slice", _index(tree.slice, self._values))]
        mixed = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in self._written]
        if mixed:
            raise CheckError(
                f"{ast.unparse(tree)}: only some elements of {mixed[0]!r} were written; use elementwise comparisons"
            )
        return None


# ------------------------------------------------------------------------------------------------------- over a field


_FIELD_BINARY: Mapping[type[ast.operator], Callable[[object, object], object]] = {
    kind: _BINARY[kind] for kind in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult)
}


def compare_over_field(expression: str, values: Mapping[str, object], tensors: Sequence[str]) -> list[Side]:
    """Evaluate both sides of the comparisons of an expression over a field. ``allclose`` compares exactly.

    Args:
        expression: the expression, or a name in ``REFERENCES``.
        values: the arguments by name; arrays of floats are ``FieldArray``.
        tensors: the names of the array arguments, in order.

    Raises:
        CheckError: the expression has no value over a field.
    """
    marks = spelled(values)
    tree = read_expression(expression, list(values), tensors)
    values = {**values, **{mark: values[name] for name, mark in marks.items() if name in values}}
    try:
        return list(_sides(tree, values))
    except CheckError:
        raise
    except Exception as e:  # The shapes do not fit.
        raise CheckError(f"{expression}: {e}") from e


def _sides(tree: ast.expr, values: Mapping[str, object]) -> Iterator[Side]:
    match tree:
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in parts:
                yield from _sides(part, values)
            return
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            pass
        case ast.Call(func=ast.Name(id="allclose" | "array_equal"), args=[left, right, *_]):
            pass
        case _:
            raise CheckError(f"{ast.unparse(tree)!r}: over a field only == can be checked, because it has no order")
    names = [{n.id for n in ast.walk(t) if isinstance(n, ast.Name) and n.id in values} for t in (left, right)]
    if ast.dump(left) == ast.dump(right) or (names[0] == names[1] and len(names[0]) == 1):
        raise CheckError(
            f"{ast.unparse(tree)!r} compares a value with itself and cannot fail; one side must name another argument, "
            "or in_NAME for the value before the run"
        )
    got, want = (_field_value(t, values) for t in (left, right))
    if isinstance(got, FieldArray) and not isinstance(want, FieldArray):
        want = got * 0 + want
    first, second = (np.asarray(x.elements if isinstance(x, FieldArray) else x) for x in (got, want))
    if first.shape != second.shape:
        raise CheckError(f"{ast.unparse(tree)}: shapes differ: {first.shape} and {second.shape}")
    yield Side(ast.unparse(left), first, second)


def _field_value(tree: ast.expr, values: Mapping[str, object]) -> object:
    match tree:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=value):
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _FIELD_BINARY:
            return _FIELD_BINARY[type(op)](_field_value(left, values), _field_value(right, values))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return operator.neg(cast("FieldArray", _field_value(operand, values)))
        case ast.Call(func=ast.Name(id="f32" | "f64" | "like"), args=[value, *_]):
            return _field_value(value, values)
        case ast.Call(func=ast.Name(id="sum"), args=[value], keywords=keywords):
            axis = next((cast("int", _field_value(k.value, values)) for k in keywords if k.arg == "axis"), None)
            return cast("FieldArray", _field_value(value, values)).sum(axis)
        case ast.Call(func=ast.Name(id="transpose"), args=[value]) | ast.Attribute(value=value, attr="T"):
            return cast("FieldArray", _field_value(value, values)).T
        case ast.Subscript(value=value, slice=index):
            return cast("FieldArray", _field_value(value, values))[_index(index, values)]
        case _:
            raise CheckError(
                f"{ast.unparse(tree)!r} has no value over a field; use + - * @, sum, transpose, slices and numbers"
            )


def _equal(got: NDArray[np.generic], want: NDArray[np.generic]) -> CheckResult:
    if got.shape != want.shape and want.shape != ():
        return CheckResult(False, f"shapes differ: {got.shape} and {want.shape}")
    want = np.broadcast_to(want, got.shape)
    both_nan = np.zeros(got.shape, dtype=bool)
    if got.dtype.kind in "fV" and want.dtype.kind in "fV":
        both_nan = np.not_equal(got, got) & np.not_equal(want, want)
    differ = ~(np.equal(got, want) | both_nan)
    count = int(np.count_nonzero(differ))
    if count:
        first = tuple(int(i) for i in np.argwhere(differ)[0])
        return CheckResult(
            False,
            f"{count} of {got.size} elements differ, the first at {first}: got {got[first]}, expected {want[first]}",
        )
    return CheckResult(True, f"{got.size} elements equal")


def _value(tree: ast.expr, values: Mapping[str, object]) -> object:
    if isinstance(tree, ast.Name):
        return values[tree.id]
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.BinOp) and type(tree.op) in _BINARY:
        return _BINARY[type(tree.op)](_value(tree.left, values), _value(tree.right, values))
    if isinstance(tree, ast.UnaryOp):
        value = _value(tree.operand, values)
        if isinstance(tree.op, ast.USub):
            return operator.neg(cast("int", value))
        if isinstance(tree.op, (ast.Invert, ast.Not)):
            return np.logical_not(cast("NDArray[np.generic]", value))
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and type(tree.ops[0]) in _COMPARE:
        return _COMPARE[type(tree.ops[0])](_value(tree.left, values), _value(tree.comparators[0], values))
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        function = _FUNCTIONS[tree.func.id]
        keywords = {k.arg or "": _value(k.value, values) for k in tree.keywords}
        return function(*[_value(a, values) for a in tree.args], **keywords)
    if isinstance(tree, ast.Attribute) and tree.attr == "T":
        return np.transpose(cast("NDArray[np.generic]", _value(tree.value, values)))
    if isinstance(tree, ast.Subscript):
        return np.asarray(_value(tree.value, values))[cast("slice", _index(tree.slice, values))]
    raise CheckError(f"{ast.unparse(tree)!r} is not allowed in an expression")


def _index(tree: ast.expr, values: Mapping[str, object]) -> object:
    if isinstance(tree, ast.Tuple):
        return tuple(_index(e, values) for e in tree.elts)
    if isinstance(tree, ast.Slice):
        low, high, step = (None if e is None else _value(e, values) for e in (tree.lower, tree.upper, tree.step))
        return slice(low, high, step)
    return _value(tree, values)
