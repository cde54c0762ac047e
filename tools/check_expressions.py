"""The expressions of ``cute-run --check``: their language, and a parser.

Examples: ``c == a + b`` and ``allclose(c, a @ b.T, rtol=1e-3)``.  :func:`read_expression` validates an expression
before anything is compiled or run, without numpy; its tree contains only a small subset of numpy.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection, Mapping, Sequence

from cute_dialect.ir.diagnostics import did_you_mean

FUNCTIONS = (
    "abs", "sqrt", "exp", "log", "tanh", "maximum", "minimum", "where", "sum", "max", "min", "mean", "isnan",
    "transpose", "allclose", "array_equal", "f32", "f64", "like",
)  # fmt: skip
"""Functions of numpy, conversions, and ``like(x, y)``, which converts ``x`` to the type of ``y``."""
ELEMENTWISE = {"abs", "sqrt", "exp", "log", "tanh", "maximum", "minimum", "where", "isnan", "f32", "f64", "like"}
KEYWORDS = ("atol", "axis", "equal_nan", "rtol")
REFERENCES: Mapping[str, tuple[int, str]] = {
    "copy": (2, "{1} == {0}"),
    "add": (3, "{2} == {0} + {1}"),
    "sub": (3, "{2} == {0} - {1}"),
    "mul": (3, "{2} == {0} * {1}"),
    "gemm": (3, "allclose(f32({2}), f32({0}) @ transpose(f32({1})), rtol=1e-2, atol=1e-2)"),
}
"""Named checks over the tensors in order: the number of tensors and the expression."""

_OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.BitAnd, ast.BitOr, ast.BitXor,
)  # fmt: skip
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_LANGUAGE = {"and", "or", "not", "True", "False"}
"""Keywords of the expression language; a parameter with such a name is referred to by its letter."""
_MARK = "_parameter_{}_"


class CheckError(ValueError):
    """An expression that cannot be parsed or evaluated."""


def spelled(names: Collection[str]) -> dict[str, str]:
    """Map the parameter names that are not Python identifiers to their replacements in the tree.

    >>> spelled(["a", "in", "x-y"])
    {'in': '_parameter_0_', 'x-y': '_parameter_1_', 'in_x-y': '_parameter_2_'}
    """
    odd = [
        n for n in names if n not in _LANGUAGE and not n.isdigit() and (not n.isidentifier() or keyword.iskeyword(n))
    ]
    every = [spelling for n in odd for spelling in ([n, f"in_{n}"] if not n.isidentifier() else [n])]
    return {name: _MARK.format(i) for i, name in enumerate(dict.fromkeys(every))}


def read_expression(
    expression: str, names: Sequence[str] | None = None, tensors: Sequence[str] = (), letters: Collection[str] = ()
) -> ast.expr:
    """Parse an expression, or the name of one in :data:`REFERENCES`.

    Args:
        names: the parameters; None if they are not known yet, then names are not checked.
        tensors: the parameters that are arrays.
        letters: the aliases of the parameters.

    Raises:
        CheckError: the expression is invalid.
    """
    if expression in REFERENCES:
        count, template = REFERENCES[expression]
        if names is None:
            return ast.Constant(True)
        if len(tensors) < count:
            raise CheckError(f"reference {expression!r} needs {count} tensors, the kernel has {len(tensors)}")
        expression = template.format(*tensors)
    if len(expression) > 2000:
        raise CheckError("the expression is too long")
    marks = spelled(names or ())
    try:
        tree = ast.parse(_marked(expression, marks), mode="eval").body
        if names is None:
            for found in ast.walk(tree):
                if isinstance(found, ast.Call) and isinstance(found.func, ast.Name):
                    _check_call(found.func.id, found.keywords)
            return tree
        every = [*names, *letters]
        known = [*every, *marks.values(), *(f"in_{n}" for n in every)]
        _check(tree, known, names, {mark: name for name, mark in marks.items()})
    except CheckError:
        raise
    except RecursionError as e:
        raise CheckError("the expression is nested too deeply") from e
    except (SyntaxError, ValueError, MemoryError) as e:
        if names is None and any(w == "$" or keyword.iskeyword(w) for w in re.findall(r"\w+|\$", expression)):
            return ast.Constant(True)  # It may be the name of a parameter.
        raise CheckError(f"cannot read the expression {expression!r}: {getattr(e, 'msg', e)}") from e
    return tree


def _marked(expression: str, marks: Mapping[str, str]) -> str:
    """Replace the parameter names that are not Python identifiers, the longest first."""
    if not marks:
        return expression
    every = "|".join(re.escape(name) for name in sorted(marks, key=len, reverse=True))
    return re.sub(rf"(?<![\w.$])(?:{every})(?![\w$])", lambda m: marks[m.group()], expression)


def _check_call(name: str, keywords: Sequence[ast.keyword]) -> None:
    """Raise CheckError for an unknown function or keyword."""
    if name not in FUNCTIONS:
        raise CheckError(f"unknown function {name!r}{did_you_mean(name, FUNCTIONS)} (known: {', '.join(FUNCTIONS)})")
    for k in keywords:
        if k.arg not in KEYWORDS:
            raise CheckError(f"unknown keyword {k.arg!r} of {name} (known: {', '.join(KEYWORDS)})")


def _check(tree: ast.expr, known: Sequence[str], names: Sequence[str], spelling: Mapping[str, str]) -> None:
    """Raise CheckError for a node outside the expression language."""

    def check(*trees: ast.expr | None) -> None:
        for t in trees:
            if t is not None:
                _check(t, known, names, spelling)

    match tree:
        case ast.Name(id=name):
            if name not in known:
                there = ", ".join(names) or "none"
                raise CheckError(f"unknown argument {name!r}{did_you_mean(name, names)} (arguments: {there})")
        case ast.Constant(value=bool() | int() | float() as value) if abs(value) < 2**63:
            pass
        case ast.BoolOp(op=ast.And(), values=values):
            check(*values)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            check(left, right)
        case ast.UnaryOp(op=ast.USub() | ast.Invert() | ast.Not(), operand=operand):
            check(operand)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _COMPARISONS):
            check(left, right)
        case ast.Compare():
            raise CheckError(f"{ast.unparse(tree)!r} chains comparisons; write 'a < b and b < c'")
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            _check_call(name, keywords)
            check(*args, *(k.value for k in keywords))
        case ast.Attribute(value=value, attr="T"):
            check(value)
        case ast.Subscript(value=value, slice=index):
            check(value)
            for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                check(*([part.lower, part.upper, part.step] if isinstance(part, ast.Slice) else [part]))
        case _:
            text = ast.unparse(tree)
            for mark, name in spelling.items():
                text = text.replace(mark, name)
            raise CheckError(f"{text!r} is not allowed in an expression")
