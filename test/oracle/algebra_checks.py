"""Random checks of the layout algebra. Each ``check_*`` takes a random generator and checks one case.

There are three groups:

* *exact*: the library returns the same tree as the plain reference definition, or both reject the operands;
* *meaning*: the result has the defining property, element by element; expected values come from enumeration;
* *instances*: an algorithm runs on dynamic leaves that carry numbers. The divisors it derives must divide the results.
  Its types must equal those of a run on types alone, and its values those of a run on plain numbers.

The unit tests run a few hundred cases of each check. ``algebra_fuzz.py`` runs any number.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from math import gcd, prod
from random import Random

import algebra_reference as ref

from cute_dialect.algebra import (
    arithmetic,
    complements,
    compose,
    evaluation,
    inverses,
    layout,
    slicing,
    text,
    tiled_copy,
    tiling,
    trees,
    vectors,
    verify,
)
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.values import UNDERSCORE, Basis, ComposedLayout, Layout, Swizzle, raw_layout


class Skip(Exception):
    """Raised when the random case does not meet the preconditions of the check."""


class Numbers:
    """An emitter that computes: SSA values are Python integers, wrapped to their width."""

    def binary(self, op: str, a, b, width: int) -> int:
        x, y = number(a), number(b)
        if op in ("div", "mod", "ceil_div") and y == 0:
            raise Skip
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if op in ("div", "mod") else 0
        results: dict[str, Callable[[], int]] = {
            "add": lambda: x + y,
            "sub": lambda: x - y,
            "mul": lambda: x * y,
            "div": lambda: quotient,
            "mod": lambda: x - quotient * y,
            "ceil_div": lambda: -(-x // y),
            "min": lambda: min(x, y),
            "max": lambda: max(x, y),
            "and": lambda: x & y,
            "or": lambda: x | y,
            "xor": lambda: x ^ y,
            "shl": lambda: x << y,
            "shr": lambda: (x % (1 << width)) >> y,
        }
        return wrapped(results[op](), width)

    def unary(self, op: str, a, width: int) -> int:
        assert op == "abs"
        return wrapped(abs(number(a)), width)

    def same(self, a: object, b: object) -> bool:
        return a == b

    def compare(self, predicate: str, a, b, width: int) -> bool:
        x, y = number(a), number(b)
        tests = {"eq": x == y, "ne": x != y, "slt": x < y, "sle": x <= y, "sgt": x > y, "sge": x >= y}
        return tests[predicate]

    def select(self, condition: object, a, b, width: int) -> int:
        return number(a) if condition else number(b)


def wrapped(n: int, width: int) -> int:
    n %= 1 << width
    return n - (1 << width) if n >> (width - 1) else n


def number(leaf) -> int:
    return leaf.value if isinstance(leaf, Dyn) else leaf


NUMBERS = Numbers()

# -------------------------------------------------------------------------------------------------- generators


def pick_extent(rng: Random, powers: bool = False) -> int:
    if powers:
        return rng.choice([1, 2, 2, 4, 4, 8, 16])
    return rng.choice([1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 8, 12])


def random_tree(rng: Random, leaf: Callable[[], object], depth: int = 2, top: bool = True, width: int = 3) -> object:
    if depth == 0 or rng.random() < (0.2 if top else 0.6):
        return leaf()
    n = rng.choice([0, 1, 1, 2, 2, 2, 3, 3][: 5 + width]) if not top else rng.choice([1, 2, 2, 2, 3, 3])
    return tuple([random_tree(rng, leaf, depth - 1, False, width) for _ in range(n)])


def like(tree: object, values: Iterator[object]) -> object:
    if isinstance(tree, tuple):
        return tuple([like(t, values) for t in tree])
    return next(values)


def random_dyn(rng: Random, tracked: bool, powers: bool = True) -> Dyn:
    width = rng.choice([32, 32, 32, 64])
    if not tracked:
        return Dyn(width)
    return Dyn(width, rng.choice([1, 1, 2, 4, 8, 16, 64, 128] if powers else [1, 1, 2, 3, 4, 6, 8, 12]))


def compact_strides(rng: Random, extents: list[int], gaps: bool = False) -> list[int]:
    order = list(range(len(extents)))
    rng.shuffle(order)
    strides = [0] * len(extents)
    p = 1
    for i in order:
        if gaps and rng.random() < 0.4:
            p *= rng.choice([2, 2, 3, 4])
        strides[i] = p
        p *= extents[i]
    return strides


def static_layout(
    rng: Random, style: str | None = None, depth: int = 2, powers: bool = False, limit: int = 512
) -> Layout:
    """Return a random static layout. Styles: compact (a permutation), gaps (injective, nested strides), wild (any)."""
    while True:
        shape = random_tree(rng, lambda: pick_extent(rng, powers), depth)
        extents = ref.leaves(shape)
        if prod(extents) <= limit:
            break
    style = style or rng.choice(["compact", "compact", "gaps", "wild"])
    if style == "wild":
        strides = [rng.choice([0, 0, 1, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 48, -1, -2, 7]) for _ in extents]
    else:
        strides = compact_strides(rng, extents, style == "gaps")
        strides = [0 if e == 1 and rng.random() < 0.5 else d for e, d in zip(extents, strides)]
    return raw_layout(shape, like(shape, iter(strides)))


def basis_layout(rng: Random, modes: int = 2) -> Layout:
    shape = random_tree(rng, lambda: pick_extent(rng), 2)
    nested = rng.random() < 0.3
    paths = [(i, 0) if nested else (i,) for i in range(modes)]
    if nested and rng.random() < 0.5:
        paths[-1] = (modes - 1, 1)
    strides = [
        0 if rng.random() < 0.1 else Basis(rng.choice([1, 1, 2, 3, 4]), rng.choice(paths)) for _ in ref.leaves(shape)
    ]
    return raw_layout(shape, like(shape, iter(strides)))


def with_dynamic(rng: Random, value: object, tracked: bool, rate: float = 0.25, powers: bool = False) -> object:
    """Replace some integer leaves by dynamic leaves with the same value and a random divisor of it."""
    in_basis = any(isinstance(x, Basis) for x in trees.leaves(value))

    def leaf(n):
        # A zero in a tuple of basis elements must remain the static zero.
        if not isinstance(n, int) or rng.random() > rate or (in_basis and n == 0):
            return n
        d = random_dyn(rng, tracked, powers)
        return Dyn(d.width, gcd(d.div, abs(n)) if n else d.div, n, NUMBERS)

    return trees.map_leaves(leaf, value)


def anonymous(value: object) -> object:
    """Return the type of a value: its dynamic leaves without their numbers."""
    return trees.map_leaves(lambda n: Dyn(n.width, n.div) if isinstance(n, Dyn) else n, value)


def numbers(value: object) -> object:
    """Replace dynamic leaves by their numbers."""
    return trees.map_leaves(lambda n: n.value if isinstance(n, Dyn) else n, value)


def divisors_hold(value: object) -> None:
    for x in trees.leaves(value):
        n = x.value if isinstance(x, Basis) else x
        if isinstance(n, Dyn) and n.div:
            assert n.value % n.div == 0, f"{n} is {n.value}"


# ----------------------------------------------------------------------------------------------------- outcomes

REJECTED = "rejected"


def outcome(f: Callable[..., object], *operands: object) -> str:
    """Return the text of the result, or a fixed text if the operands are rejected."""
    try:
        value = f(*operands)
        if isinstance(value, Layout):
            verify.verify_layout(value)
    except (AlgebraError, ref.Rejected):
        return REJECTED
    return text.to_text(value)


def exact(library: Callable[..., object], definition: Callable[..., object], *operands: object) -> None:
    ours, theirs = outcome(library, *operands), outcome(definition, *operands)
    shown = ", ".join(text.to_text(x) if not isinstance(x, str | int) else str(x) for x in operands)
    assert ours == theirs, f"{getattr(library, '__name__', library)}({shown}): got {ours}, defined {theirs}"


def any_layout(rng: Random) -> Layout:
    value = basis_layout(rng) if rng.random() < 0.2 else static_layout(rng)
    r = rng.random()
    if r < 0.4:
        return value
    return anonymous(with_dynamic(rng, value, r < 0.7))


def any_tile(rng: Random, rank: int, depth: int = 2) -> object:
    def slot():
        r = rng.random()
        if r < 0.15:
            return UNDERSCORE
        if r < 0.75:
            return raw_layout(pick_extent(rng), rng.choice([1, 1, 1, 2, 3]))
        return static_layout(rng, "gaps", 1, limit=48)

    if rng.random() < 0.2:
        return slot()
    n = max(0, min(rank + rng.choice([0, 0, 0, -1, 1]), 4))
    return tuple([any_tile(rng, 2, depth - 1) if depth and rng.random() < 0.15 else slot() for _ in range(n)])


def fitting_rhs(rng: Random, a: Layout) -> Layout:
    """Return a random layout that is often valid as the right operand of a composition with ``a``."""
    n = 1
    for s in ref.leaves(a.shape):
        n *= s if isinstance(s, int) else 4
    modes, left, d = [], n, 1
    for _ in range(rng.choice([1, 2, 2, 3])):
        divisors = [k for k in range(1, left + 1) if left % k == 0]
        skip, s = rng.choice(divisors), 1
        divisors = [k for k in range(1, left // skip + 1) if (left // skip) % k == 0]
        s = rng.choice(divisors)
        modes.append((s, d * skip))
        d *= skip * s
        left //= skip * s
    rng.shuffle(modes)
    if rng.random() < 0.2:
        modes = [(s, rng.choice([0, st])) for s, st in modes]
    return ref.layout_of(modes)


# ---------------------------------------------------------------------------------------- exact: the very same tree


def check_exact_evaluate(rng: Random) -> None:
    value = any_layout(rng)
    coord = random_coord(rng, value.shape)
    exact(evaluation.evaluate, lambda c, x: ref.evaluate(c, x.shape, x.stride), coord, value)


def random_coord(rng: Random, shape: object) -> object:
    if isinstance(shape, tuple) and rng.random() < 0.75:
        return tuple([random_coord(rng, s) for s in shape])
    r = rng.random()
    if r < 0.08:
        return UNDERSCORE
    if r < 0.2:
        return random_dyn(rng, rng.random() < 0.5)
    return rng.choice([0, 0, 1, 2, 3, 5, 7, 11, 40])


def check_exact_coalesce(rng: Random) -> None:
    value = any_layout(rng)
    profile = rng.choice([0, 0, random_tree(rng, lambda: 0, 2)])
    exact(layout.coalesce, ref.coalesce, value, profile)
    exact(layout.coalesce_keeping, lambda x, p: ref.coalesce(x, p, False), value, profile)


def check_exact_composition(rng: Random) -> None:
    a = any_layout(rng)
    r = rng.random()
    if r < 0.2:
        b: object = raw_layout((rng.choice([2, 3, 4, 6]), 2), (rng.randrange(-8, 20), rng.randrange(1, 30)))
    elif r < 0.6:
        b = fitting_rhs(rng, a)
        if rng.random() < 0.3:
            b = anonymous(with_dynamic(rng, b, rng.random() < 0.5))
    elif r < 0.75:
        b = any_layout(rng)
    else:
        b = any_tile(rng, trees.rank(a))
    exact(compose.composition, ref.composition, a, b)


def check_exact_complement(rng: Random) -> None:
    value = any_layout(rng)
    exact(complements.complement, ref.complement1, value)
    target = random_tree(rng, lambda: rng.choice([1, 2, 6, 12, 30, 48, 96, random_dyn(rng, rng.random() < 0.5)]), 1)
    exact(complements.complement, ref.complement2, value, target)
    exact(complements.extended_complement, ref.complement_x, value, target)


def check_exact_inverse(rng: Random) -> None:
    value = any_layout(rng)
    exact(inverses.right_inverse, ref.right_inverse, value)
    exact(inverses.left_inverse, ref.left_inverse, value)


PRODUCT_PAIRS = [
    (tiling.logical_product, ref.logical_product),
    (tiling.zipped_product, ref.logical_product),
    (tiling.tiled_product, ref.tiled_product),
    (tiling.flat_product, ref.flat_product),
    (tiling.blocked_product, ref.blocked_product),
    (tiling.raked_product, ref.raked_product),
]


def check_exact_products(rng: Random) -> None:
    a = any_layout(rng) if rng.random() < 0.3 else static_layout(rng, "gaps", limit=64)
    b = any_layout(rng) if rng.random() < 0.3 else static_layout(rng, "compact", limit=32)
    for library, definition in PRODUCT_PAIRS:
        exact(library, definition, a, b)


def check_exact_divides(rng: Random) -> None:
    a = any_layout(rng)
    r = rng.random()
    if r < 0.3:
        tile: object = fitting_rhs(rng, a)
        if rng.random() < 0.2:
            tile = anonymous(with_dynamic(rng, tile, rng.random() < 0.5))
    elif r < 0.4:
        tile = any_layout(rng)
    elif r < 0.7:
        rank = trees.rank(a)
        tile = ref.shape_to_tile(tuple([pick_extent(rng) for _ in range(max(1, rank - rng.choice([0, 0, 1])))]))
    else:
        tile = any_tile(rng, trees.rank(a))
    exact(tiling.logical_divide, ref.logical_divide, a, tile)
    exact(tiling.zipped_divide, ref.zipped_divide, a, tile)
    exact(tiling.tiled_divide, lambda x, t: ref.spliced(x, t, False), a, tile)
    exact(tiling.flat_divide, lambda x, t: ref.spliced(x, t, True), a, tile)


def check_exact_sizes(rng: Random) -> None:
    value = any_layout(rng)
    exact(evaluation.cosize, ref.cosize, value)
    exact(evaluation.size, lambda x: ref.product(x.shape), value)
    exact(layout.make_layout_like, ref.layout_like, value)
    shape = value.shape
    coord = random_coord(rng, shape)
    exact(evaluation.crd2idx, ref.crd2idx, coord, shape)
    index = like(shape, iter([rng.choice([0, 1, 5, 13]) for _ in ref.leaves(shape)]))
    index = rng.choice([rng.choice([0, 7, 20, Dyn(), Dyn(64, 4)]), index])
    exact(evaluation.idx2crd, ref.idx2crd, index, shape)
    order = random_tree(rng, lambda: rng.choice([0, 1, 2, 2, 5]), 2)
    exact(layout.make_ordered_layout, ref.ordered, shape, order)
    crd = like(shape, iter([rng.choice([0, 0, 1, 2, Dyn(), Dyn(64, 8)]) for _ in ref.leaves(shape)]))
    exact(evaluation.increment_coord, ref.increment, crd, shape)


def check_exact_division(rng: Random) -> None:
    def leaf():
        return rng.choice([1, 2, 3, 4, 6, 8, 12, 24, -4, random_dyn(rng, rng.random() < 0.6)])

    a, b = random_tree(rng, leaf, 2), random_tree(rng, leaf, 2)
    if rng.random() < 0.5:
        a = like(b, iter([leaf() for _ in ref.leaves(b)]))
    exact(arithmetic.shape_div, ref.shape_div, a, b)
    exact(tiling.ceil_div, ref.ceil_div_tree, a, b)


def check_exact_recast(rng: Random) -> None:
    new, old = rng.choice([4, 8, 16, 24, 32, 48, 64, 128]), rng.choice([4, 8, 16, 24, 32, 48, 64])
    exact(layout.recast_layout, ref.recast, any_layout(rng), new, old)


def check_exact_slice(rng: Random) -> None:
    value = any_layout(rng)
    coord = random_coord(rng, value.shape)
    exact(lambda c, x: slicing.slice_(c, x), ref.slice_layout, coord, value)
    if trees.is_static(coord):
        exact(slicing.dice, lambda c, x: ref.slice_layout(c, x, False), coord, value)


def check_exact_tile_to_shape(rng: Random) -> None:
    block = any_layout(rng) if rng.random() < 0.5 else static_layout(rng, limit=64)
    shape = random_tree(rng, lambda: rng.choice([1, 4, 6, 12, 16, Dyn(), Dyn(32, 8)]), 2)
    order = list(range(trees.rank(shape)))
    rng.shuffle(order)
    exact(tiling.tile_to_shape, ref.tile_to_shape, block, shape, tuple(order))


# --------------------------------------------------------------------------- meaning: by enumeration, plain integers


def digits(shape: object) -> Iterator[tuple[int, ...]]:
    """Return all coordinates over the leaves, first leaf fastest."""
    extents = ref.leaves(shape)
    for c in itertools.product(*[range(s) for s in reversed(extents)]):
        yield tuple(reversed(c))


def values(value: Layout) -> list[object]:
    """Enumerate the values of a static layout: integers, or components by path for basis strides."""
    out: list[object] = []
    strides = ref.leaves(value.stride)
    if any(isinstance(d, Basis) for d in strides):
        for c in digits(value.shape):
            at: Counter = Counter()
            for n, d in zip(c, strides):
                if isinstance(d, Basis):
                    at[d.path] += n * d.value
            out.append(tuple(sorted((p, n) for p, n in at.items() if n)))
    else:
        for c in digits(value.shape):
            out.append(sum(n * d for n, d in zip(c, strides)))
    return out


def same(a: Layout, b: Layout) -> bool:
    """Return True if two static layouts are the same function. The index 0 equals the empty sum of components."""
    return [v or 0 for v in values(a)] == [v or 0 for v in values(b)]


def without_empty_modes(value: Layout) -> None:
    """Skip layouts with empty modes, which the enumeration does not model."""

    def empty(t):
        return isinstance(t, tuple) and (not t or any(map(empty, t)))

    if empty(value.shape):
        raise Skip


def components(index: object, path: tuple[int, ...] = ()) -> object:
    """Return an index as a sum of components, the form that :func:`values` uses for basis strides."""
    if not isinstance(index, tuple):
        return ((path, index),) if index else ()
    return tuple(sorted(x for i, e in enumerate(index) for x in components(e, (*path, i))))


def beyond(value: Layout, i: int) -> int:
    """Evaluate a layout at any index. The last leaf extends without limit."""
    extents, strides = ref.leaves(value.shape), ref.leaves(value.stride)
    total = 0
    for k, (s, d) in enumerate(zip(extents, strides)):
        n = i if k == len(extents) - 1 else i % s
        i //= s
        total += n * d
    return total


def check_evaluate(rng: Random) -> None:
    value = static_layout(rng)
    without_empty_modes(value)
    expected = values(value)
    assert [evaluation.evaluate(i, value) for i in range(len(expected))] == expected
    for i in (len(expected), 3 * len(expected) + 1):
        assert evaluation.evaluate(i, value) == beyond(value, i)
    for c, e in itertools.islice(zip(digits(value.shape), expected), 64):
        assert evaluation.evaluate(like(value.shape, iter(c)), value) == e
    in_basis = basis_layout(rng)
    without_empty_modes(in_basis)
    if evaluation.size(in_basis) < 200 and any(isinstance(d, Basis) for d in ref.leaves(in_basis.stride)):
        got = [components(evaluation.evaluate(i, in_basis)) for i in range(evaluation.size(in_basis))]
        assert got == values(in_basis)


def check_coalesce(rng: Random) -> None:
    value = static_layout(rng)
    simple = layout.coalesce(value)
    assert values(simple) == values(value)
    assert trees.depth(simple) <= 1
    modes = list(zip(*layout.flat_modes(simple)))
    assert all(a * b != c for (a, b), (_, c) in itertools.pairwise(modes))
    in_basis = basis_layout(rng)
    if evaluation.size(in_basis) < 500:
        assert same(layout.coalesce(in_basis), in_basis)


def divides_throughout(a: Layout, b: Layout) -> bool:
    """Return True if each stride of ``b`` fits the folded modes of ``a`` exactly; otherwise composition may round."""
    modes = ref.flat(ref.coalesce(a, 0, False))
    for s, d in ref.flat(b):
        if d == 0 or s == 1:
            continue
        if d < 0:
            return False
        for extent, _ in modes[:-1]:
            if d % extent and extent % d:
                return False
            d = max(1, d // extent)
    return True


def check_composition(rng: Random) -> None:
    a = static_layout(rng)
    if not ref.leaves(a.shape):
        raise Skip
    b = fitting_rhs(rng, a)
    try:
        c = compose.composition(a, b)
    except AlgebraError:
        raise Skip from None
    assert evaluation.size(c) == evaluation.size(b)
    # The result is compatible with b: every coordinate of b is a coordinate of the composition.
    assert trees.compatible(b.shape, c.shape)
    if divides_throughout(a, b):
        assert values(c) == [beyond(a, i) for i in values(b)]


def check_composition_by_modes(rng: Random) -> None:
    a = layout.make_layout(*[static_layout(rng, depth=1, limit=24) for _ in range(2)])
    size = [evaluation.size(m) for m in a]
    if any(not ref.leaves(m.shape) for m in a):
        raise Skip
    strides = [Basis(rng.choice([1, 1, 2]), (i,)) for i in rng.sample([0, 1], 2)]
    b = raw_layout(tuple([max(1, size[d.path[0]] // d.value) for d in strides]), tuple(strides))
    try:
        c = compose.composition(a, b)
    except AlgebraError:
        raise Skip from None
    for crd in digits(b.shape):
        at = [0, 0]
        for n, d in zip(crd, strides):
            at[d.path[0]] += n * d.value
        if all(
            divides_throughout(m, raw_layout(b.shape[k], strides[k].value))
            for k, m in enumerate([list(a)[d.path[0]] for d in strides])
        ):
            assert evaluation.evaluate(crd, c) == sum(beyond(m, i) for m, i in zip(a, at))


def check_complement(rng: Random) -> None:
    value = static_layout(rng, rng.choice(["compact", "gaps"]), limit=96)
    image = values(value)
    bound = max(image) + 1 + rng.choice([0, 5, 40])
    rest = complements.complement(value, bound)
    others = values(rest)
    assert others == sorted(set(others)), "strictly increasing"
    assert set(others) & set(image) <= {0}
    assert len(image) * len(others) >= bound
    sums = [x + y for y in others for x in image]
    if len(set(image)) == len(image):
        assert len(set(sums)) == len(sums), "layout and complement together are injective"
    minimal = complements.complement(value)
    assert set(values(minimal)) & set(image) <= {0}
    *_, last = layout.flat_modes(minimal)[1]
    assert last == max(a + b for a in image for b in values(minimal)) + 1 or len(set(image)) != len(image)


def check_right_inverse(rng: Random) -> None:
    value = static_layout(rng)
    inverse = inverses.right_inverse(value)
    image = values(value)
    got = values(inverse)
    assert [image[i] for i in got] == list(range(len(got)))
    if sorted(image) == list(range(len(image))):
        assert len(got) == len(image), "the inverse of a permutation is total"


def check_left_inverse(rng: Random) -> None:
    value = static_layout(rng, rng.choice(["compact", "gaps", "wild"]))
    image = values(value)
    if len(set(image)) != len(image) or not ref.leaves(value.shape):
        raise Skip
    try:
        inverse = inverses.left_inverse(value)
    except AlgebraError:
        raise Skip from None
    assert [beyond(inverse, x) for x in image] == list(range(len(image)))


def check_products(rng: Random) -> None:
    a = static_layout(rng, rng.choice(["compact", "gaps"]), limit=48)
    b = static_layout(rng, "compact", limit=24)
    try:
        r = tiling.logical_product(a, b)
    except AlgebraError:
        raise Skip from None
    rest = complements.complement(a)
    if not ref.leaves(a.shape) or not ref.leaves(b.shape) or not divides_throughout(rest, b):
        raise Skip
    expected = [x + beyond(rest, y) for y in values(b) for x in values(a)]
    assert values(r) == expected
    assert values(tiling.tiled_product(a, b)) == values(tiling.flat_product(a, b)) == expected
    if len(set(values(a))) == len(values(a)):
        assert len(set(expected)) == len(expected)
    for f in (tiling.blocked_product, tiling.raked_product):
        try:
            both = f(a, b)
        except AlgebraError:
            continue
        assert sorted(values(both)) == sorted(expected)


def check_divides(rng: Random) -> None:
    extents = [rng.choice([4, 6, 8, 12]) for _ in range(rng.choice([1, 2, 3]))]
    strides = compact_strides(rng, extents, rng.random() < 0.5)
    a = raw_layout(tuple(extents), tuple(strides))
    tile = tuple([rng.choice([k for k in range(1, n + 1) if n % k == 0]) for n in extents])
    r = tiling.logical_divide(a, tile)
    assert sorted(values(r)) == sorted(values(a))
    z = tiling.zipped_divide(a, tile)
    # The result is ((tile…), (rest…)): the first mode spans one tile, the second the origins of all tiles.
    at = lambda c: sum(n * d for n, d in zip(c, strides))  # noqa: E731
    tiles = [n // t for n, t in zip(extents, tile)]
    expected = [
        at([i + t * j for i, j, t in zip(inner, outer, tile)])
        for outer in digits(tuple(tiles))
        for inner in digits(tile)
    ]
    assert values(z) == expected
    assert values(tiling.tiled_divide(a, tile)) == expected
    assert values(tiling.flat_divide(a, tile)) == expected
    whole = static_layout(rng, "compact", limit=96)
    n = evaluation.size(whole)
    step = rng.choice([k for k in range(1, n + 1) if n % k == 0])
    count = rng.choice([k for k in range(1, n // step + 1) if (n // step) % k == 0])
    try:
        cut = tiling.logical_divide(whole, raw_layout(count, step))
    except AlgebraError:
        raise Skip from None
    rest = complements.extended_complement(raw_layout(count, step), whole.shape)
    # A tiler that does not divide each nested extent omits some elements.
    fits = evaluation.size(cut) == n and divides_throughout(whole, raw_layout(count, step))
    if fits and divides_throughout(whole, rest):
        assert sorted(values(cut)) == sorted(values(whole))


def check_slice(rng: Random) -> None:
    value = static_layout(rng)
    shape = value.shape

    def choose(s):
        if isinstance(s, tuple) and rng.random() < 0.7:
            return tuple([choose(x) for x in s])
        return UNDERSCORE if rng.random() < 0.5 else rng.randrange(ref.product(s))

    coord = choose(shape)
    part, offset = slicing.slice_and_offset(coord, value)

    def free(c, s):
        """Return all full coordinates that match c, in the order of the slice."""
        if c is UNDERSCORE:
            return [like(s, iter(d)) for d in digits(s)]
        if not isinstance(c, tuple):
            return [c]
        modes = [free(x, y) for x, y in zip(c, s)]
        return [tuple(reversed(e)) for e in itertools.product(*reversed(modes))]

    expected = [ref.evaluate(c, shape, value.stride) for c in free(coord, shape)]
    base = 0 if offset == () else offset
    assert [base + v for v in values(part)] == [0 if e == () else e for e in expected]


def check_coordinates(rng: Random) -> None:
    shape = random_tree(rng, lambda: pick_extent(rng), 2)
    without_empty_modes(raw_layout(shape, shape))
    n = prod(ref.leaves(shape))
    i = rng.randrange(n)
    coord = evaluation.idx2crd(i, shape)
    assert trees.congruent(coord, shape)
    assert all(0 <= c < s for c, s in zip(ref.leaves(coord), ref.leaves(shape)))
    assert evaluation.crd2idx(coord, shape) == i
    after = evaluation.increment_coord(coord, shape)
    if i + 1 < n and ref.leaves(shape)[-1] != 1:
        assert after == evaluation.idx2crd(i + 1, shape)


def check_recast(rng: Random) -> None:
    wide = rng.choice([2, 4, 8])
    extents = [wide * rng.choice([2, 3]), *[rng.choice([1, 2, 3, 4]) for _ in range(2)]]
    strides = [1]
    p = extents[0]
    for s in extents[1:]:
        p *= rng.choice([1, 2]) if p % wide == 0 else 1
        strides.append(p)
        p *= s
    order = [0, 1, 2]
    rng.shuffle(order)
    value = raw_layout(tuple([extents[i] for i in order]), tuple([strides[i] for i in order]))
    up = layout.recast_layout(value, 8 * wide, 8)
    touched = {8 * v + b for v in values(value) for b in range(8)}
    assert {8 * wide * v + b for v in values(up) for b in range(8 * wide)} == touched
    down = layout.recast_layout(up, 8, 8 * wide)
    assert {8 * v + b for v in values(down) for b in range(8)} == touched


def check_tile_to_shape(rng: Random) -> None:
    block = static_layout(rng, "compact", depth=1, limit=48)
    if not isinstance(block.shape, tuple) or not block.shape:
        raise Skip
    counts = [rng.choice([1, 2, 3]) for _ in block.shape]
    shape = tuple([ref.product(s) * c for s, c in zip(block.shape, counts)])
    order = list(range(len(shape)))
    rng.shuffle(order)
    r = tiling.tile_to_shape(block, shape, tuple(order))
    assert sorted(values(r)) == list(range(prod(shape)))
    size = evaluation.size(block)
    for c in digits(tuple([x for s, n in zip(block.shape, counts) for x in (ref.product(s), n)])):
        inner, outer = c[::2], c[1::2]
        base = sum(
            n * prod([counts[j] for j in range(len(counts)) if order[j] < order[i]]) for i, n in enumerate(outer)
        )
        expected = evaluation.evaluate(inner, block) + size * base
        assert evaluation.evaluate(tuple(zip(inner, outer)), r) == expected


def check_swizzled_slice(rng: Random) -> None:
    bits = [rng.choice([1, 2, 3]) for _ in range(rng.choice([2, 3, 4]))]
    order = list(range(len(bits)))
    rng.shuffle(order)
    strides, p = [0] * len(bits), 0
    for i in order:
        strides[i] = 1 << p
        p += bits[i]
    outer = raw_layout(tuple([1 << b for b in bits]), tuple(strides))
    b = rng.choice([0, 1, 2, 3])
    shift = rng.choice([1, -1]) * (b + rng.choice([0, 1, 2]))
    s = Swizzle(b, rng.choice([0, 1, 2]), shift)
    # The offset uses bits above those of the layout.
    offset = rng.choice([0, 0, 1 << p, 5 << p])
    value = ComposedLayout(s, offset, outer)
    if verify.is_trivial_wrap(s, offset):
        raise Skip
    coord = tuple([UNDERSCORE if rng.random() < 0.5 else rng.randrange(1 << x) for x in bits])
    if UNDERSCORE not in coord:
        raise Skip
    dynamic = rng.random() < 0.4
    given = with_dynamic(rng, coord, rng.random() < 0.5, 0.7) if dynamic else coord
    if dynamic and rng.random() < 0.3:
        value = ComposedLayout(s, Dyn(32, gcd(offset, 64) or 64, offset, NUMBERS), outer)
    part, moved = slicing.slice_swizzled(given, value)
    divisors_hold(part)
    divisors_hold(moved)
    part, moved = numbers(part), numbers(moved)
    free = [range(1 << x) if c is UNDERSCORE else [c] for c, x in zip(coord, bits)]
    for c in itertools.product(*free):
        x = offset + sum(n * d for n, d in zip(c, strides))
        ymask = ((1 << b) - 1) << (s.base + max(0, s.shift))
        expected = x ^ ((x & ymask) >> s.shift if s.shift >= 0 else (x & ymask) << -s.shift)
        kept = tuple([n for n, k in zip(c, coord) if k is UNDERSCORE])
        assert evaluation.evaluate(kept, part) + moved == expected


def check_partition(rng: Random) -> None:
    t = [rng.choice([1, 2, 4]) for _ in range(2)]
    v = [rng.choice([1, 2, 4]) for _ in range(2)]
    thr = raw_layout(tuple(t), tuple(compact_strides(rng, t)))
    val = raw_layout(tuple(v), tuple(compact_strides(rng, v)))
    tiler, tv = tiled_copy.make_layout_tv(thr, val)
    assert tiler == (t[0] * v[0], t[1] * v[1])
    # Thread (tm, tn) holds the values (vm, vn) of its block.
    for tm, tn, vm, vn in itertools.product(range(t[0]), range(t[1]), range(v[0]), range(v[1])):
        thread = evaluation.evaluate((tm, tn), thr)
        number_ = evaluation.evaluate((vm, vn), val)
        m, n = tm * v[0] + vm, tn * v[1] + vn
        assert evaluation.evaluate((thread, number_), tv) == m + tiler[0] * n
    rests = [rng.choice([1, 2, 3]) for _ in range(2)]
    extents = [a * r for a, r in zip(tiler, rests)]
    x = raw_layout(tuple(extents), tuple(compact_strides(rng, extents, True)))
    atom_values = rng.choice([k for k in (1, 2, 4) if prod(v) % k == 0])
    dynamic = with_dynamic(rng, x, True, 0.5) if rng.random() < 0.5 else x
    dynamic = raw_layout(x.shape, dynamic.stride)
    split = tiled_copy.tile_to_thread(dynamic, tiler, tv, (1, atom_values))
    for thread in range(prod(t)):
        part, offset = tiled_copy.thread_slice(split, Dyn(32, 1, thread, NUMBERS) if dynamic is not x else thread)
        divisors_hold(part)
        divisors_hold(offset)
        part, offset = numbers(part), numbers(offset)
        for i, (val_i, r0, r1) in enumerate(c for c in digits((prod(v), rests[0], rests[1]))):
            m, n = divmod(evaluation.evaluate((thread, val_i), tv), tiler[0])[::-1]
            expected = evaluation.evaluate((m + tiler[0] * r0, n + tiler[1] * r1), x)
            assert evaluation.evaluate(i, part) + offset == expected


def check_vectors(rng: Random) -> None:
    extents = [rng.choice([2, 4, 8]) for _ in range(2)]
    a = raw_layout(tuple(extents), tuple(compact_strides(rng, extents, rng.random() < 0.5)))
    b = raw_layout(tuple(extents), tuple(compact_strides(rng, extents, rng.random() < 0.3)))
    if rng.random() < 0.5:
        # Rows are padded, as in shared memory without bank conflicts.
        a = raw_layout(a.shape, (extents[1] + rng.choice([1, 2, 4, 8]), 1))
        b = raw_layout(b.shape, (extents[1], 1))
    ad, bd = (with_dynamic(rng, x, True, 0.4, True) for x in (a, b))
    ad, bd = raw_layout(a.shape, ad.stride), raw_layout(b.shape, bd.stride)
    align = rng.choice([16, 32, 64, 128])
    bits, vector = vectors.vector_bits(ad, bd, 16, align, 128)
    assert bits % 16 == 0 and 128 % bits == 0
    if vector is None:
        assert bits == 16
        return
    n = bits // 16
    assert evaluation.size(vector) == n
    cut_a, cut_b = tiling.logical_divide(a, vector), tiling.logical_divide(b, vector)
    assert sorted(values(cut_a)) == sorted(values(a)), "the vectors cover all elements"
    for cut, limit in ((cut_a, align), (cut_b, 128)):
        got = values(cut)
        for start in range(0, len(got), n):
            assert got[start : start + n] == list(range(got[start], got[start] + n)), "contiguous"
            assert got[start] * 16 % min(bits, limit) == 0, "aligned"
        assert bits <= limit
    common = vectors.max_common_vector(a, b)
    order = sorted(range(prod(extents)), key=lambda i: values(b)[i])
    run = [(values(a)[i], values(b)[i]) for i in order]
    assert all(p == (i, i) for i, p in enumerate(run[:common]))


def check_nullspace(rng: Random) -> None:
    value = static_layout(rng, "wild")
    still = vectors.nullspace(value)
    image = values(value)
    assert all(image[i] == 0 for i in values(still))
    assert len(set(values(still))) == evaluation.size(still)
    zeros = prod([s for s, d in ref.flat(value) if d == 0])
    assert evaluation.size(still) == zeros


# ------------------------------------------------------------------ instances: types, numbers and divisors agree


def instances(rng: Random, f: Callable[..., object], *operands: object, same_tree: bool = False) -> None:
    """Compare ``f`` on operands with numbered dynamic leaves, on their types, and on plain numbers."""
    plain = [numbers(x) for x in operands]
    try:
        concrete = f(*plain)
        valued = f(*operands)
    except AlgebraError:
        raise Skip from None
    divisors_hold(valued)
    typed = f(*[anonymous(x) for x in operands])
    assert trees.implies(anonymous(valued), typed), "values may know more divisors than types, no less"
    bound = numbers(valued)
    if isinstance(concrete, Layout) and not same_tree:
        assert values(bound) == values(concrete), f"{text.to_text(valued)}: {bound} is not {concrete}"
    else:
        assert bound == concrete
    forgotten = [trees.untracked(x) for x in operands]
    untracked = numbers(f(*forgotten))
    if isinstance(concrete, Layout) and not same_tree:
        assert values(untracked) == values(concrete)
    else:
        assert untracked == concrete


def powers_layout(rng: Random, style: str = "compact", limit: int = 256) -> Layout:
    while True:
        value = static_layout(rng, style, powers=True, limit=limit)
        if ref.leaves(value.shape):
            return value


def check_instances_composition(rng: Random) -> None:
    a = powers_layout(rng)
    tracked = rng.random() < 0.7
    b = fitting_rhs(rng, a)
    instances(
        rng, compose.composition, with_dynamic(rng, a, tracked, powers=True), with_dynamic(rng, b, tracked, 0.15, True)
    )


def check_instances_divide(rng: Random) -> None:
    a = powers_layout(rng)
    modes = a.shape if isinstance(a.shape, tuple) else (a.shape,)
    tile = tuple([rng.choice([1, 2, 4, 8]) for _ in modes])
    if any(ref.product(s) % t for s, t in zip(modes, tile)):
        raise Skip
    dynamic = with_dynamic(rng, a, rng.random() < 0.7, 0.4, True)
    for f in (tiling.logical_divide, tiling.zipped_divide, tiling.tiled_divide, tiling.flat_divide):
        instances(rng, lambda x, f=f: f(x, tile), dynamic)


def check_instances_complement(rng: Random) -> None:
    d = rng.choice([1, 2, 4, 8])
    s = rng.choice([1, 2, 4, 8])
    one = with_dynamic(rng, raw_layout(s, d), rng.random() < 0.7, 0.6, True)
    target = with_dynamic(rng, random_tree(rng, lambda: rng.choice([4, 8, 16]), 1), True, 0.4, True)
    if s * d > prod(ref.leaves(numbers(target))):
        raise Skip
    instances(rng, complements.complement, one, target)


def check_instances_evaluate(rng: Random) -> None:
    value = static_layout(rng)
    coord = evaluation.idx2crd(rng.randrange(evaluation.size(value)), value.shape)
    if rng.random() < 0.4:
        coord = rng.randrange(evaluation.size(value))
    tracked = rng.random() < 0.7
    dynamic = with_dynamic(rng, value, tracked)
    instances(rng, evaluation.evaluate, with_dynamic(rng, coord, tracked, 0.5), dynamic)
    instances(rng, evaluation.cosize, dynamic)
    instances(
        rng, evaluation.idx2crd, with_dynamic(rng, rng.randrange(40), tracked, 0.7), dynamic.shape, same_tree=True
    )
    crd = evaluation.idx2crd(rng.randrange(evaluation.size(value)), value.shape)
    instances(rng, evaluation.increment_coord, with_dynamic(rng, crd, tracked, 0.5), dynamic.shape, same_tree=True)


def check_instances_recast(rng: Random) -> None:
    value = powers_layout(rng)
    strides = [d * 8 if s > 1 else 8 for s, d in ref.flat(value)]
    value = raw_layout(value.shape, like(value.shape, iter(strides)))
    dynamic = raw_layout(value.shape, with_dynamic(rng, value, rng.random() < 0.7, 0.5, True).stride)
    new, old = rng.choice([(16, 8), (32, 8), (64, 8), (8, 16), (8, 64)])
    instances(rng, lambda x: layout.recast_layout(x, new, old), dynamic)


def check_instances_division(rng: Random) -> None:
    def leaf():
        return rng.choice([1, 2, 4, 8, 16, 32])

    a = random_tree(rng, leaf, 2)
    b = rng.choice([like(a, iter([leaf() for _ in ref.leaves(a)])), leaf()])
    tracked = rng.random() < 0.7
    x, y = with_dynamic(rng, a, tracked, 0.5, True), with_dynamic(rng, b, tracked, 0.3, True)
    for f in (arithmetic.shape_div, tiling.ceil_div):
        instances(rng, f, x, y, same_tree=True)
    for f in (arithmetic.tuple_add, arithmetic.tuple_sub):
        instances(rng, f, x, y, same_tree=True)


CHECKS: dict[str, Callable[[Random], None]] = {
    name[len("check_") :]: f for name, f in list(globals().items()) if name.startswith("check_")
}
"""Name -> check."""
