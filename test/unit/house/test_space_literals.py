"""Ceiling for comparisons with the name of a memory space. Lower it when the count falls.

``t.space == "rmem"`` should be ``t.space.per_thread``, a property from :mod:`cute_dialect.spaces`. Code for one memory
compares with the member: ``t.space == AddressSpace.smem``. ::

    python test/unit/house/test_space_literals.py  # the comparisons
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from import_graph import MODULES

from cute_dialect.spaces import AddressSpace

CEILING = 0
NAMES = {space.name for space in AddressSpace} - {"generic"}
"""``generic`` is also the name of a form of IR and of a group of passes."""


def literals(node: ast.expr) -> Iterator[ast.Constant]:
    """Yield the names of spaces among the operands of a comparison, also in tuples, lists and sets."""
    if isinstance(node, ast.Constant) and node.value in NAMES:
        yield node
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            yield from literals(element)


def comparisons(text: str) -> list[int]:
    """Return the lines of comparisons and match patterns with the name of a space."""
    found: list[int] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            found += [literal.lineno for operand in (node.left, *node.comparators) for literal in literals(operand)]
        elif isinstance(node, ast.MatchValue):
            found += [literal.lineno for literal in literals(node.value)]
    return found


def in_package() -> list[str]:
    """Return the comparisons in the package, each as ``module:line``."""
    texts = {module: path.read_text() for module, path in MODULES.items()}
    return [
        f"{module}:{line}"
        for module, text in texts.items()
        if any(f'"{name}"' in text for name in NAMES)
        for line in comparisons(text)
    ]


def test_comparisons_only_shrink() -> None:
    found = in_package()
    assert len(found) <= CEILING, f"test a property of the space, or compare with AddressSpace.smem: {', '.join(found)}"


def test_comparisons_of_a_text() -> None:
    text = 'a = t.space == "rmem"\nb = t.space in ("gmem", "smem")\nc = {"smem": 0}\nd = t.space == AddressSpace.smem\n'
    assert comparisons(text) == [1, 2, 2]


if __name__ == "__main__":
    print("\n".join(in_package()))
