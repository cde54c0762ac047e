"""Reference definitions of the layout algebra, written as plainly as possible.

There is no fast path for integers. The only code shared with the library is its scalar arithmetic and its value
classes. The library must return exactly the same trees, and reject the same operands.
"""

from __future__ import annotations

from cute_dialect.algebra.leaf import (
    AlgebraError,
    Dyn,
    absolute,
    add,
    ceil_div,
    compare,
    div,
    min_extent,
    mod,
    mul,
    select,
    sign,
    sub,
)
from cute_dialect.algebra.values import UNDERSCORE, Basis, Layout, raw_layout


class Rejected(Exception):
    """Raised when the definition does not apply to the operands."""


def require(condition: bool) -> None:
    if not condition:
        raise Rejected


def is_tuple(t) -> bool:
    return isinstance(t, tuple)


def leaves(t) -> list:
    return [x for e in t for x in leaves(e)] if is_tuple(t) else [t]


def rank(t) -> int:
    return len(t) if is_tuple(t) else 1


def product(t):
    p = 1
    for x in leaves(t):
        p = mul(p, x)
    return p


def static(x) -> bool:
    return isinstance(x, int)


def static_one(x) -> bool:
    return static(x) and x == 1


def static_zero(x) -> bool:
    return static(x) and x == 0


def times(n, d):
    return Basis(mul(n, d.value), d.path) if isinstance(d, Basis) else mul(n, d)


# ----------------------------------------------------------------------------------------------------- evaluation


def plus(a, b, inside=False):
    if a == () and is_tuple(a):
        return b
    if b == () and is_tuple(b):
        return a
    if is_tuple(a) and is_tuple(b):
        longer = a if len(a) > len(b) else b
        n = min(len(a), len(b))
        return tuple(plus(a[i], b[i], True) for i in range(n)) + longer[n:]
    if is_tuple(a):
        require(static_zero(b))
        return a
    if is_tuple(b):
        require(static_zero(a))
        return b
    if inside and static_zero(a):
        return b
    if inside and static_zero(b):
        return a
    return add(a, b)


def step(c, d):
    if not isinstance(d, Basis):
        return mul(c, d)
    value = mul(c, d.value)
    for i in reversed(d.path):
        value = (0,) * i + (value,)
    return value


def evaluate(c, s, d):
    if is_tuple(s) and s == ():
        return ()
    if c is UNDERSCORE:
        c = 0
    if not is_tuple(c):
        if not is_tuple(s):
            return step(c, d)
        total = ()
        for i in range(len(s) - 1):
            extent = product(s[i])
            q, r = div(c, extent), mod(c, extent)
            total = plus(total, evaluate(r, s[i], d[i]))
            c = q
        return plus(total, evaluate(c, s[-1], d[-1]))
    require(is_tuple(s) and len(c) == len(s))
    total = ()
    for ci, si, di in zip(c, s, d):
        total = plus(total, evaluate(ci, si, di))
    return total


def magnitude(d):
    if is_tuple(d):
        return tuple(magnitude(x) for x in d)
    return Basis(absolute(d.value), d.path) if isinstance(d, Basis) else absolute(d)


def plus_one(t):
    return tuple(plus_one(x) for x in t) if is_tuple(t) else add(t, 1)


def cosize(layout):
    return product(plus_one(evaluate(sub(product(layout.shape), 1), layout.shape, magnitude(layout.stride))))


def column_major(shape, start=1):
    def walk(s, p):
        if is_tuple(s):
            out = []
            for x in s:
                d, p = walk(x, p)
                out.append(d)
            return tuple(out), p
        return (0, p) if static_one(s) else (p, mul(p, s))

    return walk(shape, start)[0]


def crd2idx(coord, shape):
    require(weakly_congruent(coord, shape))
    index = evaluate(coord, shape, column_major(shape))
    return 0 if index == () else index


def identity_stride(shape, path=()):
    if is_tuple(shape):
        return tuple(identity_stride(s, (*path, i)) for i, s in enumerate(shape))
    return Basis(1, path) if path else 1


def idx2crd(index, shape):
    if is_tuple(index):
        require(is_tuple(shape) and len(index) == len(shape))
        return tuple(idx2crd(i, s) for i, s in zip(index, shape))
    return evaluate(index, shape, identity_stride(shape)) if is_tuple(shape) else index


def weakly_congruent(a, b) -> bool:
    if not is_tuple(a):
        return True
    return is_tuple(b) and len(a) == len(b) and all(weakly_congruent(x, y) for x, y in zip(a, b))


def increment(coord, shape):
    cs, ss = leaves(coord), leaves(shape)
    carry, out = 1, []
    for c, s in list(zip(cs, ss))[:-1]:
        if static_one(s):
            out.append(0)
            continue
        t = add(c, carry)
        below = compare("slt", t, s)
        out.append(select(below, t, 0))
        carry = select(below, 0, 1)
    if cs:
        out.append(add(cs[-1], carry))
    source = iter(out)

    def fill(t):
        return tuple(fill(x) for x in t) if is_tuple(t) else next(source)

    return fill(coord)


# ------------------------------------------------------------------------------------------------- coalesce


def fold(modes):
    acc = []
    for s, d in modes:
        while acc and static_one(acc[-1][0]):
            acc.pop()
        if acc and continues(acc[-1], s, d):
            acc[-1] = (acc[-1][0] * s, acc[-1][1])
        else:
            acc.append((s, d))
    return acc


def continues(before, s, d) -> bool:
    ps, pd = before
    value = d.value if isinstance(d, Basis) else d
    pvalue = pd.value if isinstance(pd, Basis) else pd
    if not all(static(x) for x in (s, value, ps, pvalue)):
        return False
    return times(ps, pd) == d


def flat(layout):
    return list(zip(leaves(layout.shape), leaves(layout.stride)))


def layout_of(modes) -> Layout:
    if len(modes) == 1:
        return raw_layout(modes[0][0], modes[0][1])
    return raw_layout(tuple(s for s, _ in modes), tuple(d for _, d in modes))


def modes_of(layout):
    if not is_tuple(layout.shape):
        return [layout]
    return [raw_layout(s, d) for s, d in zip(layout.shape, layout.stride)]


def tuple_of(layouts) -> Layout:
    return raw_layout(tuple(x.shape for x in layouts), tuple(x.stride for x in layouts))


def coalesce(layout, profile=0, drop=True):
    if is_tuple(profile):
        modes = modes_of(layout)
        require(len(profile) <= len(modes))
        return tuple_of([coalesce(m, p, drop) for m, p in zip(modes, profile)] + modes[len(profile) :])
    modes = fold(flat(layout))
    if drop and len(modes) > 1 and static_one(modes[-1][0]):
        modes.pop()
    return layout_of(modes)


# ---------------------------------------------------------------------------------------------- composition


def coprofile(layout):
    zeros = evaluate(0, layout.shape, layout.stride)
    return 0 if zeros == () else skeleton(zeros)


def skeleton(t):
    return tuple(skeleton(x) for x in t) if is_tuple(t) else 0


def compose(a, b):
    p = coprofile(b)
    require(not is_tuple(p) or rank(p) <= rank(a.shape))
    return comp(coalesce(a, p, drop=False), b.shape, b.stride)


def comp(a, s, d):
    if is_tuple(s):
        return tuple_of([comp(a, x, y) for x, y in zip(s, d)])
    if isinstance(d, Basis):
        require(static(s))
        for i in d.path:
            require(is_tuple(a.shape) and i < len(a.shape))
            a = modes_of(a)[i]
        return comp(a, s, d.value)
    if static_zero(d):
        return raw_layout(s, 0)
    if static(a.shape):
        return raw_layout(s, times(d, a.stride))
    modes = flat(a)
    require(len(modes) > 0)
    out = []
    for ai, ei in modes[:-1]:
        if static(ai) and static(d):
            require(not (mod(d, ai) != 0 and d >= ai))
        nshape = ceil_div(ai, absolute(d))
        nstride = mul(ceil_div(absolute(d), ai), sign(d))
        if static_one(nshape) or static_one(s):
            d = nstride
            continue
        k = min_extent(nshape, s)
        if static(k) and static(s):
            require(s % k == 0)
        out.append((k, times(d, ei)))
        s = div(s, k)
        d = nstride
    last = times(d, modes[-1][1])
    if not out:
        return raw_layout(s, last)
    if static_one(s):
        return layout_of(out)
    return coalesce(layout_of([*out, (s, last)]) if out else raw_layout(s, last))


def shape_to_tile(shape):
    if is_tuple(shape):
        return tuple(shape_to_tile(s) for s in shape)
    require(not (static(shape) and shape <= 0))
    return raw_layout(shape, 0 if static(shape) and shape == 1 else 1)


def concat(*layouts):
    return tuple_of([x for x in layouts if x.shape != ()])


def composition(a, rhs):
    if rhs is UNDERSCORE:
        return a
    if isinstance(rhs, Layout):
        return compose(a, rhs)
    require(len(rhs) <= rank(a.shape))
    return concat(*[composition(m, t) for m, t in zip(modes_of(a), rhs)])


# ---------------------------------------------------------------------------------------------- complements


def path_of(d):
    return d.path if isinstance(d, Basis) else ()


def value_of(d):
    return d.value if isinstance(d, Basis) else d


def profile_paths(p, path=()):
    if is_tuple(p):
        return [x for i, e in enumerate(p) for x in profile_paths(e, (*path, i))]
    return [path]


def by_stride(modes):
    return sorted(modes, key=lambda m: (path_of(m[1]), value_of(m[1])))


def gaps(layout):
    """Return path -> folded modes of the minimal complement, with plain strides."""
    modes = flat(layout)
    if any(isinstance(value_of(d), Dyn) for _, d in modes):
        require(len(modes) == 1)
    p = coprofile(layout)
    S = {q: [] for q in profile_paths(p)}
    D = {q: [1] for q in profile_paths(p)}
    for s, d in modes if len(modes) == 1 else by_stride(modes):
        q, v = path_of(d), value_of(d)
        if static_zero(v) or static_one(s):
            continue
        if static(v) and static(D[q][-1]):
            require(not v < D[q][-1])
        S[q].append(div(v, D[q][-1]))
        D[q].append(mul(v, s))
    return p, {q: fold(list(zip([*S[q], 1], D[q]))) for q in S}


def assemble(p, parts, path=()):
    if is_tuple(p):
        return tuple_of([assemble(x, parts, (*path, i)) for i, x in enumerate(p)])
    mode = layout_of(parts[path])
    if not path:
        return mode
    stride = mode.stride
    return raw_layout(mode.shape, tuple(Basis(d, path) for d in stride) if is_tuple(stride) else Basis(stride, path))


def complement1(layout):
    return assemble(*gaps(layout))


def complement_x(layout, shape):
    p, parts = gaps(layout)

    def walk(pi, xi, path):
        if is_tuple(pi):
            xs = xi if is_tuple(xi) else (xi,)
            require(len(pi) <= len(xs))
            out = [walk(a, b, (*path, i)) for i, (a, b) in enumerate(zip(pi, xs))]
            out += [raw_layout(xs[i], identity_stride(xs[i], (*path, i))) for i in range(len(pi), len(xs))]
            return tuple_of(out)
        *head, (_, z) = parts[path]
        r, strides = [], []
        e = z
        for x in leaves(xi):
            count = ceil_div(x, z)
            r.append(count)
            strides.append(e)
            z = ceil_div(z, x)
            e = mul(e, count)
        return (
            assemble(0, {(): fold_drop([*head, *zip(r, strides)])})
            if not path
            else assemble_at(path, fold_drop([*head, *zip(r, strides)]))
        )

    return walk(p, shape, ())


def assemble_at(path, modes):
    return assemble(0, {path: modes}, path)


def fold_drop(modes):
    modes = fold(modes)
    if len(modes) > 1 and static_one(modes[-1][0]):
        modes.pop()
    return modes


def coalesce_shape(shape):
    if not is_tuple(shape):
        return shape
    out = []
    for x in leaves(shape):
        if out and static(out[-1]) == static(x):
            out[-1] = mul(out[-1], x)
        else:
            out.append(x)
    return out[0] if len(out) == 1 else tuple(out)


def ceil_div_tree(a, b):
    if is_tuple(a):
        if is_tuple(b):
            require(len(a) >= len(b))
            return tuple(ceil_div_tree(x, y) for x, y in zip(a, b)) + a[len(b) :]
        out = []
        for x in a:
            out.append(ceil_div_tree(x, b))
            b = ceil_div_tree(b, x)
        return tuple(out)
    return ceil_div(a, product(b))


def shape_div(a, b):
    if is_tuple(a):
        if is_tuple(b):
            require(len(a) == len(b))
            return tuple(shape_div(x, y) for x, y in zip(a, b))
        out = []
        for x in a:
            out.append(shape_div(x, b))
            b = shape_div(b, product(x))
        return tuple(out)
    b = product(b)
    require(not static_zero(b))
    if static(a) and static(b):
        require(a % b == 0 or (a != 0 and b % a == 0))
        q = div(a, b)
        return q if q != 0 else sign(a) * sign(b)
    q = div(a, b)
    if static(q):
        return q
    if isinstance(a, Dyn) and static(b) and (b == 1 or (a.div and a.div % b == 0)):
        return q
    return select(compare("ne", q, 0), q, mul(sign(a), sign(b)))


def complement2(layout, target):
    for x in leaves(target):
        require(not (static(x) and x <= 0))
    for _, d in flat(layout):
        require(not isinstance(d, Basis))
    if rank(layout.shape) > 1:
        require(all(static(d) for _, d in flat(layout)))
    still = layout_of([(1 if static_zero(d) else s, d) for s, d in flat(layout)])
    small = coalesce(still)
    if static(product(small.shape)) and product(small.shape) == 1:
        small = raw_layout(1, 0)
    if small.shape == () or static_zero(small.stride):
        r = coalesce(raw_layout(target, column_major(target)))
        n = product(r.shape)
        return raw_layout(1, 1) if static(n) and n == 1 else r
    modes = flat(small)
    if len(modes) > 1:
        require(all(static(d) for _, d in modes))
        modes = by_stride(modes)
    shapes, strides = [], [1]
    for s, d in modes[:-1]:
        shapes.append(div(d, strides[-1]))
        strides.append(mul(s, d))
    s, d = modes[-1]
    shapes.append(div(d, strides[-1]))
    n = mul(s, d)
    require(all(not static(x) or x > 0 for x in shapes))
    rest = coalesce_shape(ceil_div_tree(target, n))
    size = product(rest)
    steps = n if static(size) and size == 1 else column_major(rest, n)
    return coalesce(layout_of([*zip(shapes, strides), *zip(leaves(rest), leaves(steps))]))


# -------------------------------------------------------------------------------------------------- inverses


def folded(layout, forget):
    modes = flat(layout)
    if forget:
        modes = [(s, 0 if isinstance(value_of(d), Dyn) else d) for s, d in modes]
    modes = fold(modes)
    q, out = 1, []
    for s, d in modes:
        out.append((s, d, q))
        q *= s
    return sorted(out, key=lambda m: (path_of(m[1]), value_of(m[1])))


def right_inverse(layout):
    require(all(static(s) for s, _ in flat(layout)))
    p = coprofile(layout)
    paths = profile_paths(p)
    S, D, cur = {q: [] for q in paths}, {q: [] for q in paths}, dict.fromkeys(paths, 1)
    for s, d, q in folded(layout, True):
        v, at = value_of(d), path_of(d)
        if v == 0 or s == 1 or v != cur[at]:
            continue
        S[at].append(s)
        D[at].append(q)
        cur[at] = s * v
    return inverse_tree(p, S, D, True)


def inverse_tree(p, S, D, drop, path=()):
    if is_tuple(p):
        return tuple_of([inverse_tree(x, S, D, drop, (*path, i)) for i, x in enumerate(p)])
    s, d = (S[path], D[path]) if S[path] else ([1], [0])
    return coalesce(raw_layout(tuple(s), tuple(d)), 0, drop)


def left_inverse(layout):
    for s, d in flat(layout):
        require(static(s) and static(value_of(d)))
    p = coprofile(layout)
    paths = profile_paths(p)
    S, D, cur = {q: [1] for q in paths}, {q: [0] for q in paths}, dict.fromkeys(paths, 1)
    for s, d, q in folded(layout, False):
        v, at = value_of(d), path_of(d)
        if v == 0 or s == 1:
            continue
        require(mod(v, cur[at]) == 0)
        S[at][-1] = div(v, cur[at])
        require(S[at][-1] > 0)
        cur[at] *= S[at][-1]
        S[at].append(s)
        D[at].append(q)
    return inverse_tree(p, S, D, False)


# ------------------------------------------------------------------------------------- products and divides


def all_static(layout) -> bool:
    return all(static(s) and static(value_of(d)) for s, d in flat(layout))


def has_basis(layout) -> bool:
    return any(isinstance(d, Basis) for _, d in flat(layout))


def repetition(a, b):
    require(all_static(a))
    return repeated(a, b)


def repeated(a, b):
    require(not has_basis(b))
    require(not has_basis(a) or all_static(b))
    return compose(complement1(a), b)


def logical_product(a, b):
    return concat(a, repetition(a, b))


def tiled_product(a, b):
    return tuple_of([a, *modes_of(repetition(a, b))])


def flat_product(a, b):
    return tuple_of([*modes_of(a), *modes_of(repetition(a, b))])


def padded(layout, n):
    modes = modes_of(layout)
    return layout if rank(layout.shape) >= n else tuple_of(modes + [raw_layout(1, 0)] * (n - len(modes)))


def zipped(x, y):
    if not is_tuple(x.shape):
        return tuple_of([tuple_of([x, y])])
    require(is_tuple(y.shape) and len(x.shape) == len(y.shape))
    return tuple_of([tuple_of([a, b]) for a, b in zip(modes_of(x), modes_of(y))])


def blocked_product(a, b):
    n = max(rank(a.shape), rank(b.shape))
    a, b = padded(a, n), padded(b, n)
    return zipped(a, repetition(a, b))


def raked_product(a, b):
    n = max(rank(a.shape), rank(b.shape))
    a, b = padded(a, n), padded(b, n)
    return coalesce(zipped(repetition(a, b), a), (1,) * n)


def divide(a, t):
    return compose(a, concat(t, complement_x(t, a.shape)))


def divide_checks(t, inside):
    require(not (inside and has_basis(t)))
    require(all(static(value_of(d)) for _, d in flat(t)) or rank(t.shape) == 1)


def logical_divide(a, tile, inside=False):
    if tile is UNDERSCORE:
        return a
    if isinstance(tile, Layout):
        divide_checks(tile, inside)
        return divide(a, tile)
    require(len(tile) <= rank(a.shape))
    modes = modes_of(a)
    return tuple_of([logical_divide(m, t, True) for m, t in zip(modes, tile)] + modes[len(tile) :])


def zipped_divide(a, tile, inside=False):
    if tile is UNDERSCORE:
        return a
    if isinstance(tile, Layout):
        divide_checks(tile, inside)
        return divide(a, tile)
    require(len(tile) <= rank(a.shape))
    modes = modes_of(a)
    parts = [zipped_divide(m, t, True) for m, t in zip(modes, tile)]
    for p in parts:
        require(is_tuple(p.shape) and len(p.shape) == 2)
    return tuple_of(
        [
            tuple_of([modes_of(p)[0] for p in parts]),
            tuple_of([modes_of(p)[1] for p in parts] + modes[len(tile) :]),
        ]
    )


def spliced(a, tile, both):
    z = zipped_divide(a, tile)
    require(is_tuple(z.shape) and len(z.shape) == 2)
    first, second = modes_of(z)
    return tuple_of([*(modes_of(first) if both else [first]), *modes_of(second)])


# ------------------------------------------------------------------------------------------ order and recast


def ordered(shape, order):
    require(weakly_congruent(order, shape))
    governed = []

    def collect(s, o):
        if is_tuple(o):
            for x, y in zip(s, o):
                collect(x, y)
        else:
            governed.append((o, s))

    collect(shape, order)

    def walk(s, o):
        if is_tuple(o):
            return tuple(walk(x, y) for x, y in zip(s, o))
        start = 1
        for v, sv in governed:
            if v < o:
                start = mul(start, product(sv))
        return column_major(s, start)

    return raw_layout(shape, walk(shape, order))


def layout_like(layout):
    require(not has_basis(layout))
    flat_d = leaves(layout.stride)
    top = max([d for d in flat_d if static(d)], default=-1)
    order = []
    for d in flat_d:
        if static(d):
            order.append(d)
        else:
            top += 1
            order.append(top)
    source = iter(order)

    def refill(t):
        return tuple(refill(x) for x in t) if is_tuple(t) else next(source)

    def ones(s, d):
        if is_tuple(s):
            return tuple(ones(x, y) for x, y in zip(s, d))
        return 1 if static_zero(d) else s

    return raw_layout(layout.shape, ordered(ones(layout.shape, layout.stride), refill(layout.stride)).stride)


def per_leaf(layout, f):
    def walk(s, d):
        if is_tuple(s):
            parts = [walk(x, y) for x, y in zip(s, d)]
            return tuple(p[0] for p in parts), tuple(p[1] for p in parts)
        return f(s, d)

    return raw_layout(*walk(layout.shape, layout.stride))


def upcast(layout, n):
    def leaf(s, d):
        if not static(d):
            return s, shape_div(d, n)
        if d == 0:
            return s, 0
        return ceil_div(s, ceil_div(n, abs(d))), sign(d) * ceil_div(abs(d), n)

    return per_leaf(layout, leaf)


def downcast(layout, n):
    return per_leaf(layout, lambda s, d: (mul(s, n), d) if static(d) and abs(d) == 1 else (s, mul(d, n)))


def recast(layout, new, old):
    require(new > 0 and old > 0)
    require(not has_basis(layout))
    if new == old:
        return layout
    if new % old == 0:
        return upcast(layout, new // old)
    if old % new == 0:
        return downcast(layout, old // new)
    from math import gcd

    g = gcd(new, old)
    return downcast(upcast(layout, new // g), old // g)


# ------------------------------------------------------------------------------------------------- slice, dice


def slice_tree(c, t, free):
    if not is_tuple(c):
        return t if (c is UNDERSCORE) == free else ()

    def lift(ci, ti):
        if not is_tuple(ci):
            return (ti,) if (ci is UNDERSCORE) == free else ()
        return tuple(x for a, b in zip(ci, ti) for x in lift(a, b))

    return tuple(x for a, b in zip(c, t) for x in lift(a, b))


def slice_layout(c, layout, free=True):
    require(weakly_congruent(c, layout.shape))
    return raw_layout(slice_tree(c, layout.shape, free), slice_tree(c, layout.stride, free))


def tile_to_shape(block, shape, order):
    n = rank(shape)
    require(rank(block.shape) <= n)
    block = padded(block, n)
    each = tuple(product(x) for x in shape) if is_tuple(shape) else (shape,)
    have = tuple(product(x) for x in block.shape) if is_tuple(block.shape) else (block.shape,)
    counts = ceil_div_tree(each, have)
    return zipped(block, repeated(block, ordered(counts, order)))


__all__ = ["AlgebraError", "Rejected"]
