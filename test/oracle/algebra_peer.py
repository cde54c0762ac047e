"""Comparison of the algebra with another implementation, the PyPI package ``tensor-layouts``.

If both libraries accept the operands, and both define the operation for them, the results are the same function and
mostly the same tree. In the remaining cases the definitions differ. Each row of :data:`DISAGREEMENTS` is an example
with its reason. The unit tests check that both libraries still return the results in the row.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import algebra_reference as ref
import tensor_layouts as peer
from algebra_checks import Skip, compact_strides, fitting_rhs, static_layout, without_empty_modes

from cute_dialect.algebra import complements, compose, evaluation, inverses, layout, tiling, vectors
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import Layout, raw_layout


def theirs(value: object) -> object:
    return peer.Layout(value.shape, value.stride) if isinstance(value, Layout) else value


def results(ours: Callable[..., object], other: Callable[..., object], *operands: object) -> tuple[object, object]:
    """Return both results. Skip the case if either library rejects the operands."""
    try:
        return ours(*operands), other(*[theirs(x) for x in operands])
    except (AlgebraError, ValueError, TypeError, AssertionError, NotImplementedError):
        raise Skip from None


def same_function(ours: Callable[..., Layout], other: Callable[..., object], *operands: object) -> None:
    a, b = results(ours, other, *operands)
    assert isinstance(a, Layout)
    n = evaluation.size(a)
    assert n == peer.size(b), f"{[str(x) for x in operands]}: {a} and {b} differ in size"
    assert [evaluation.evaluate(i, a) for i in range(n)] == [b(i) for i in range(n)], f"{[str(x) for x in operands]}"


def same_tree(ours: Callable[..., Layout], other: Callable[..., object], *operands: object) -> None:
    a, b = results(ours, other, *operands)
    assert (a.shape, a.stride) == (b.shape, b.stride), f"{[str(x) for x in operands]}: {a} and {b}"


def some(rng: Random, style: str | None = None, depth: int = 2, limit: int = 256) -> Layout:
    value = static_layout(rng, style, depth, limit=limit)
    without_empty_modes(value)
    return value


def dense(rng: Random, limit: int = 256) -> Layout:
    """Return a random layout without extents of 1, whose strides divide one another."""
    value = some(rng, rng.choice(["compact", "gaps"]), limit=limit)
    if 1 in ref.leaves(value.shape):
        raise Skip
    return value


def check_coalesce(rng: Random) -> None:
    value = some(rng)
    (same_tree if evaluation.size(value) > 1 else same_function)(layout.coalesce, peer.coalesce, value)


def check_compose(rng: Random) -> None:
    a = some(rng)
    same_function(compose.composition, peer.compose, a, fitting_rhs(rng, a))


def check_complement(rng: Random) -> None:
    value = dense(rng)
    same_function(complements.complement, peer.complement, value, evaluation.cosize(value) + rng.choice([0, 5, 40]))


def check_inverses(rng: Random) -> None:
    value = dense(rng)
    same_tree(inverses.right_inverse, peer.right_inverse, value)
    same_tree(inverses.left_inverse, peer.left_inverse, value)


def check_leafwise(rng: Random) -> None:
    value = some(rng)
    n = rng.choice([2, 3, 4, 8])
    same_tree(layout.upcast, peer.upcast, value, n)
    same_tree(layout.downcast, peer.downcast, value, n)
    same_tree(vectors.nullspace, peer.nullspace, value)
    assert evaluation.cosize(value) == peer.cosize(theirs(value))


def check_common_vector(rng: Random) -> None:
    extents = [rng.choice([2, 4, 8]) for _ in range(3)]
    a, b = (raw_layout(tuple(extents), tuple(compact_strides(rng, extents))) for _ in range(2))
    assert vectors.max_common_vector(a, b) == peer.max_common_vector(theirs(a), theirs(b))


def check_divides(rng: Random) -> None:
    extents = [rng.choice([4, 6, 8, 12]) for _ in range(rng.choice([2, 3]))]
    a = raw_layout(tuple(extents), tuple(compact_strides(rng, extents, rng.random() < 0.5)))
    tile = tuple([rng.choice([k for k in range(1, n + 1) if n % k == 0]) for n in extents])
    for name in ("logical", "zipped", "tiled", "flat"):
        same_function(getattr(tiling, f"{name}_divide"), getattr(peer, f"{name}_divide"), a, tile)


def check_products(rng: Random) -> None:
    a = dense(rng, 64)
    b = some(rng, "compact", limit=32)
    for name in ("logical", "zipped", "tiled", "flat"):
        same_function(getattr(tiling, f"{name}_product"), getattr(peer, f"{name}_product"), a, b)


def check_block_products(rng: Random) -> None:
    n = rng.choice([2, 3])
    extents = [rng.choice([2, 3, 4]) for _ in range(n)]
    counts = [rng.choice([2, 3, 4]) for _ in range(n)]
    a = raw_layout(tuple(extents), tuple(compact_strides(rng, extents)))
    b = raw_layout(tuple(counts), tuple(compact_strides(rng, counts)))
    for name in ("blocked", "raked"):
        same_function(getattr(tiling, f"{name}_product"), getattr(peer, f"{name}_product"), a, b)


DISAGREEMENTS: list[tuple[str, tuple[object, ...], str | None, str | None, str]] = [
    ("coalesce", ("(1,1):(3,7)",), "1:7", "1:0", "a layout of size 1 keeps its last stride"),
    ("compose", ("1:2", "1:1"), "1:2", "1:0", "modes of extent 1 keep their stride; nothing reads it"),
    ("complement", ("2:1", 2), "1:2", "1:0", "the same for the last mode of a complement"),
    ("compose", ("(5,3):(3,1)", "10:3"), "(2,5):(9,1)", None, "a step of 3 in an extent of 5 counts as 2 of the 5"),
    ("complement", ("(5,5,1):(6,5,4)", 85), None, "(5,3):(1,30)", "overlapping strides are not injective: rejected"),
    ("right_inverse", ("(2,(4),(2,3)):(24,(1),(1,48))",), "4:2", "2:8", "of two modes of one stride the first counts"),
    ("left_inverse", ("(5,5,1):(6,5,4)",), None, "(5,5):(0,1)", "a stride that is no multiple of the last is rejected"),
    ("left_inverse", ("(2):(0)",), "1:0", "2:0", "modes of stride 0 do not count"),
    ("blocked_product", ("(4):(1)", "2:1"), None, "((4,2)):((1,4))", "tuple and scalar do not pair"),
    (
        "blocked_product",
        ("(2,2):(4,2)", "(6,1):(1,0)"),
        "((2,(2,3)),(2,1)):((4,(1,8)),(2,0))",
        "((2,6),(2,1)):((4,7),(2,0))",
        "copies fill the gaps of the block first, instead of starting behind it",
    ),
    (
        "logical_product",
        ("2:3", "(2,2,1):(1,2,2)"),
        "(2,(2,2,1)):(3,(1,2,6))",
        None,
        "a gap that the block does not tile is truncated, not rejected",
    ),
]


def disagreement(name: str, operands: tuple[object, ...]) -> tuple[str | None, str | None]:
    """Return the text of our result and of the other library's, None for a rejection."""
    homes = (compose, complements, inverses, layout, tiling)
    function = next(getattr(home, name) for home in homes if hasattr(home, name))
    values = [Layout(x) if isinstance(x, str) else x for x in operands]
    try:
        ours = str(function(*values))
    except AlgebraError:
        ours = None
    try:
        other = getattr(peer, name)(*[theirs(x) for x in values])
        shown = f"{other.shape}:{other.stride}".replace(" ", "").replace(",)", ")")
    except ValueError:
        shown = None
    return ours, shown


CHECKS: dict[str, Callable[[Random], None]] = {
    "peer_" + name[len("check_") :]: f for name, f in list(globals().items()) if name.startswith("check_")
}
"""Name -> check function."""
