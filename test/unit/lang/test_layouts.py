"""Static layouts and int tuples equal those of the layout algebra; dynamic ones have the same run-time values."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.lang.tracing.errors import LayoutError, MergeError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.int_tuples import Tree, from_ssa, leaves, to_ssa

# ------------------------------------------------------------------------------------------------------- a harness


def load(x: Any, i: int) -> Any:
    return cute.Int32.of(current().value("cute.memref.load", [x, to_ssa(i)]))


def store(x: Any, i: int, v: Any) -> None:
    current().op("cute.memref.store", [x, to_ssa(i), cute.Int32(v).ssa])


class Dynamizer:
    """Replaces numbers with values loaded in the kernel. Outside of a kernel it keeps them."""

    def __init__(self, memory: Any = None):
        self.memory = memory
        self.values: list[int] = []

    def __call__(self, n: int) -> Any:
        self.values.append(n)
        return n if self.memory is None else load(self.memory, len(self.values) - 1)


def on_both(case: Callable[[Dynamizer], Any]) -> tuple[list[Any], list[Any], str]:
    """Run a case with static and with dynamic numbers, and return the leaves of both results and the IR."""
    still = Dynamizer()
    expected = leaves_of(case(still))
    found: list[Any] = []
    moving = Dynamizer()

    def body(x: Any, out: Any) -> None:
        moving.memory = x
        for i, leaf in enumerate(leaves_of(case(moving))):
            found.append(leaf)
            store(out, i, leaf)

    n = max(1, len(still.values))
    types = {"x": f'!cute.memref<i32, gmem, "{n}:1">', "out": f'!cute.memref<i32, gmem, "{len(expected) + 32}:1">'}
    module = trace_kernel(body, types, threads=1)
    out = np.full(len(expected) + 32, -77, np.int32)
    run_kernel_on_cpu(module, [np.array(still.values or [0], np.int32), out], threads=1)
    return expected, [int(v) for v in out[: len(found)]], text_of(module)


def leaves_of(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves_of(part)]
    if isinstance(result, cute.ComposedLayout):
        return [*leaves_of(result.outer), *leaves_of(result.offset)]
    if isinstance(result, cute.Layout):
        return [*leaves_of(result.shape), *leaves_of(result.stride)]
    if result is None:
        return []
    return [result.value if isinstance(result, type(cute.E(0))) else result]


# -------------------------------------------------------------------------------------------------------- fixed cases


def test_the_layout_of_a_tiled_copy() -> None:
    tiler, tv = cute.make_layout_tv(cute.layout("(4,32):(32,1)"), cute.layout("(4,4):(4,1)"))
    assert tiler == (16, 128) and str(tv) == "((32,4),(4,4)):((64,4),(16,1))"


def test_static_layout_functions_emit_no_ops() -> None:
    def body(x: Any) -> None:
        a = cute.make_layout((12, 10), stride=(10, 1))
        assert str(cute.zipped_divide(a, (4, 5))) == "((4,5),(3,2)):((10,1),(40,5))"
        assert cute.size(a) == 120 and a(5, 1) == 51 and cute.elem_less((1, 2), (3, 4)) is True
        assert cute.composition(a, cute.make_layout(3)).payload == cute.layout("3:10").payload

    assert "cute." not in text_of(trace_kernel(body, {"x": "i32"}))


def test_dynamic_layouts_keep_static_parts() -> None:
    def body(n: Any) -> None:
        m = cute.Int32.of(n)
        a = cute.make_layout((m, 8), stride=(8, 1))
        assert str(a) == "(?,8):(8,1)" and a.shape[1] == 8 and a.shape[0] is m and a.stride == (8, 1)
        assert cute.rank(a) == 2 and not cute.is_static(a) and cute.size(a, mode=[1]) == 8
        assert str(cute.make_layout((8, m * 4), stride=(1, m * 4))) == "(8,?{div=4}):(1,?{div=4})"
        assert str(cute.zipped_divide(a, (4, 8))) == "((4,8),(?,1)):((8,1),(32,8))"

    trace_kernel(body, {"n": "i32"})


def test_equal_layouts() -> None:
    a, b = cute.layout("(4,8):(1,4)"), cute.layout("(4,8):(8,1)")
    assert a == cute.make_layout((4, 8)) and a != b and hash(a) == hash(cute.make_layout((4, 8)))
    assert a != cute.layout("32:1") and {a: 1}[cute.make_layout((4, 8))] == 1


def test_texts() -> None:
    assert str(cute.layout("S<2,3,3> o 0 o (8,8):(8,1)").inner) == "S<2,3,3>"
    assert repr(4 * cute.E(1, 0)) == "4@0@1"
    assert str(cute.make_identity_layout((4, (2, 3)))) == "(4,(2,3)):(1@0,(1@0@1,1@1@1))"
    assert cute.make_identity_layout((4, (2, 3)))(1, (1, 2)) == (1, (1, 2))
    assert f"{cute.layout('(8,4):(4,1)')}" == "(8,4):(4,1)"

    def body(n: Any) -> None:
        m = cute.Int32.of(n)
        a = cute.layout("(8,?):(?,1)", m, m)
        assert str(a) == "(8,?):(?,1)" and a.shape == (8, m) and a.stride == (m, 1)

    trace_kernel(body, {"n": "i32"})


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: cute.composition(cute.layout("(6,10):(10,1)"), cute.layout("5:3")),
     "F240: composition((6,10):(10,1), 5:3): expected an extent divisible by 2, got 5: a step of 3 covers 2 elements "
     "of mode 0 of (6,10):(10,1)"),
    (lambda: cute.make_layout((4, 8), stride=(1, (2, 3))),
     "F240: make_layout((4,8), (1,(2,3))): expected congruent shape and stride, got (4,8) and (1,(2,3))"),
    (lambda: cute.make_layout((0, 4)),
     "F240: make_layout((0,4)): invalid layout '(0,4):(1,0)': expected extents >= 1, got 0 in (0,4):(1,0)"),
    (lambda: cute.make_layout((4, 8), order=(0,)),
     "F240: make_layout((4,8), order=(0)): expected an order that fits the shape (4,8), got (0)"),
    (lambda: cute.layout("(4,8):(1"), "F240: layout: '(4,8):(1' is not a layout: expected ',' or ')', got the "
     "end at offset 8"),
    (lambda: cute.layout("(4,?):(1,4)"), "F240: layout: '(4,?):(1,4)' needs 1 numbers, one for each '?', got 0"),
    (lambda: cute.get((4, 8), [2]), "F240: get: the mode at depth 0 of (4,8) must be in [0, 2), got 2"),
    (lambda: cute.make_layout(8)[3], "F240: get(8:1): expected mode index in [0, 1) at depth 0, got 3"),
    (lambda: cute.group_modes((1, 2), 1, 4), "F240: group_modes((1,2)): needs 0 <= begin < end <= 2, got 1 and 4"),
    (lambda: cute.make_swizzle(4, 3, 3), "F240: expected |shift| >= bits in a swizzle, got S<4,3,3>"),
    (lambda: cute.zipped_divide(cute.layout("(4,8):(1,4)"), (2, 2, 2)),
     "F240: zipped_divide((4,8):(1,4), (2,2,2)): expected a tiler of rank at most 2 for (4,8):(1,4), got rank 3"),
    (lambda: cute.complement(cute.layout("(4,4):(1,1)")),
     "F240: complement((4,4):(1,1)): expected an injective layout, got (4,4):(1,1): stride 1 is less than 4, "
     "the range that smaller strides cover"),
    (lambda: cute.crd2idx((1, 2, 3), (4, 8)),
     "F240: crd2idx((1,2,3), (4,8)): expected a coordinate that fits the shape (4,8), got (1,2,3)"),
    (lambda: cute.shape_div(7, 2), "F240: shape_div(7, 2): expected one of 7 and 2 to be a multiple of the other"),
    (lambda: cute.elem_less((1, 2), (3, (4, 5))),
     "F240: elem_less((1,2), (3,(4,5))): expected congruent operands, got (1,2) and (3,(4,5))"),
    (lambda: cute.make_layout_tv("(4,8):(16,1)", "4:1"),
     "F240: make_layout_tv((4,8):(16,1), 4:1): expected a thread layout that numbers its elements without gaps, got "
     "(4,8):(16,1)"),
    (lambda: cute.local_tile(cute.layout("8:1"), (4,), (0,)),
     "F240: local_tile needs a tensor, got the layout 8:1\nhint: for a layout, use zipped_divide and slice the result"),
    (lambda: cute.size((4, 1.5)), "F241: a shape, stride or coordinate consists of integers, None and tuples, got 1.5"),
    (lambda: cute.make_layout((4, cute.Float32(2))),
     "F241: a shape, stride or coordinate needs integers, got this Float32\nhint: convert with cute.Int32(x)"),
    (lambda: cute.slice_((4, 8), (1, (None, 2))), "F241: the coordinate (1,(_,2)) does not match the profile of (4,8)"),
    (lambda: cute.elem_add((1, 2), (1, (2, 3))), "F241: the trees 2 and (2,3) have different profiles"),
    (lambda: cute.unflatten((1, 2), (1, (2, 3))), "F241: unflatten: (1,(2,3)) needs 3 elements, got 2"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_invalid_arguments_are_rejected(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(LayoutError) as caught:
        call()
    assert str(caught.value) == "error " + text


def test_trees_round_trip() -> None:
    def body(n: Any) -> None:
        m = cute.Int32.of(n)
        for tree, kind in (((m, (4, None)), "coord"), ((4, m), "shape"), ((cute.E(0), m * cute.E(1)), "stride")):
            again = from_ssa(Tree(tree, kind).ssa)
            assert [x if isinstance(x, int) else str(x) for x in leaves(again)] == [
                x if isinstance(x, int) else str(x) for x in leaves(tree)
            ]

    trace_kernel(body, {"n": "i32"})


# ---------------------------------------------------------------------------------------------------------- forms


def test_layouts_of_two_paths_join() -> None:
    def body(n: Any) -> None:
        m = cute.Int32.of(n)
        a, b = cute.layout("(8,16):(16,1)"), cute.layout("(8,24):(24,1)")
        form = form_of(a).join(form_of(b))
        joined: Any = form.make([m.ssa] * len(form.types))
        assert str(joined) == "(8,?{div=8}):(?{div=8},1)" and len(form.take(b)) == len(form.types) == 2
        assert form_of(a).join(form_of(cute.layout("(8,16):(16,1)"))) == form_of(a) and form_of(a).types == ()
        c = cute.make_layout((8, m), stride=(m, 1))
        assert str(form_of(c).join(form_of(a)).make([m.ssa, m.ssa])) == "(8,?):(?,1)"
        with pytest.raises(MergeError) as caught:
            form_of(a).join(form_of(cute.layout("128:1")))
        assert str(caught.value) == "error F204: it is the layout (8,16):(16,1) or 128:1"

    trace_kernel(body, {"n": "i32"})


def test_joined_layouts_keep_their_numbers() -> None:
    def case(d: Dynamizer) -> Any:
        a, b = cute.layout("(8,16):(16,1)"), cute.make_layout((8, d(24)), stride=(d(24), 1))
        if d.memory is None:
            return b, a
        form = form_of(a).join(form_of(b))
        return form.make(form.take(b)), form.make(form.take(a))

    expected, found, _ = on_both(case)
    assert found == expected


# ------------------------------------------------------------------------------------------------------------ fuzz


def random_layout(rng: random.Random, d: Dynamizer, plain: bool = False) -> Any:
    """Return a layout of two modes with some dynamic numbers, either compact in a random order or with gaps."""

    def maybe(n: int) -> Any:
        return d(n) if not plain and rng.random() < 0.4 else n

    shape = [rng.choice([2, 4, 6, 8, 12]) for _ in range(2)]
    gap = rng.choice([1, 1, 2])
    stride = [gap, gap * shape[0]] if rng.random() < 0.5 else [gap * shape[1], gap]
    made = [maybe(n) for n in shape]
    return cute.make_layout(tuple(made), stride=tuple(maybe(n) for n in stride))


def coordinate(rng: random.Random, d: Dynamizer, shape: Any) -> Any:
    return tuple(d(rng.randrange(4)) if rng.random() < 0.6 else rng.randrange(2) for _ in leaves(shape))


CASES: dict[str, Callable[[random.Random, Dynamizer], Any]] = {
    "call": lambda r, d: random_layout(r, d)(coordinate(r, d, (1, 1))),
    "linear": lambda r, d: cute.make_layout((4, 6), stride=(d(7), 1))(d(r.randrange(24))),
    "get": lambda r, d: random_layout(r, d)[r.randrange(2)],
    "size": lambda r, d: cute.size(random_layout(r, d)),
    "cosize": lambda r, d: cute.cosize(random_layout(r, d)),
    "ordered": lambda r, d: cute.make_ordered_layout((d(4), 6, d(2)), r.sample(range(3), 3)),
    "compact": lambda r, d: cute.make_layout((d(r.randrange(2, 9)), (3, d(5)))),
    "like": lambda r, d: cute.make_layout_like(random_layout(r, d)),
    "zipped": lambda r, d: cute.zipped_divide(random_layout(r, d), (2, 2)),
    "logical": lambda r, d: cute.logical_divide(random_layout(r, d), (2, None)),
    "flat": lambda r, d: cute.flat_divide(random_layout(r, d), (2, 2)),
    "tiled": lambda r, d: cute.tiled_divide(random_layout(r, d), (2, cute.make_layout(2, stride=1))),
    "composition": lambda r, d: cute.composition(cute.make_layout((8, d(9)), stride=(d(9), 1)), (4, 3)),
    "select": lambda r, d: cute.select(random_layout(r, d), [1]),
    "group": lambda r, d: cute.group_modes(random_layout(r, d), 0, 2),
    "flatten": lambda r, d: cute.flatten(cute.make_layout((d(4), (2, d(3))))),
    "append": lambda r, d: cute.append(random_layout(r, d), cute.make_layout(1, stride=0)),
    "slice": lambda r, d: cute.slice_(random_layout(r, d), (None, d(1))),
    "dice": lambda r, d: cute.dice(random_layout(r, d), (None, d(1))),
    "recast": lambda r, d: cute.recast_layout(8, 16, cute.make_layout((d(4), 6), stride=(d(6), 1))),
    "product": lambda r, d: cute.product((d(3), (4, d(5)))),
    "product_each": lambda r, d: cute.product_each((d(3), (4, d(5)), ())),
    "ceil_div": lambda r, d: cute.ceil_div((d(r.randrange(1, 40)), 7), (r.randrange(1, 9), d(r.randrange(1, 9)))),
    "round_up": lambda r, d: cute.round_up(d(r.randrange(1, 40)), r.randrange(1, 9)),
    "shape_div": lambda r, d: cute.shape_div((d(24), 12), (6, d(4))),
    "crd2idx": lambda r, d: cute.crd2idx(coordinate(r, d, (1, 1, 1)), (d(4), 5, d(6))),
    "idx2crd": lambda r, d: cute.idx2crd(d(r.randrange(100)), (d(4), (3, d(5)))),
    "hier": lambda r, d: cute.make_layout((d(4), (3, d(5)))).get_hier_coord(d(r.randrange(60))),
    "increment": lambda r, d: cute.increment_coord((d(r.randrange(4)), (d(r.randrange(3)), 1)), (4, (3, 5))),
    "elem_less": lambda r, d: cute.elem_less((d(r.randrange(3)), 1), (d(r.randrange(3)), d(r.randrange(4)))),
    "equal": lambda r, d: cute.make_layout((d(4), 8)) == cute.make_layout((4, r.choice([8, d(8)]))),
    "lex_less": lambda r, d: cute.lex_less((d(r.randrange(2)), r.randrange(2)), (d(r.randrange(2)), d(1))),
    "colex_less": lambda r, d: cute.colex_less((r.randrange(2), d(r.randrange(2))), (d(r.randrange(2)), d(1))),
    "composed": lambda r, d: cute.make_composed_layout(cute.make_swizzle(2, 3, 3), d(8), random_layout(r, d))(1, d(1)),
    "tuple_max": lambda r, d: (cute.tuple_max((d(3), 7, d(9))), cute.min_dim((d(3), 7, d(9)))),
    "identity": lambda r, d: cute.make_identity_layout((d(4), 8))(d(2), 3),
    "filter_zeros": lambda r, d: cute.filter_zeros(cute.make_layout((d(4), 8), stride=(0, d(3)))),
    "blocked": lambda r, d: cute.blocked_product(cute.layout("(2,5):(5,1)"), cute.make_layout((d(3), 4))),
    "raked": lambda r, d: cute.raked_product(cute.layout("(2,5):(5,1)"), cute.make_layout((d(3), 4))),
    "tile_to_shape": lambda r, d: cute.tile_to_shape(cute.layout("(2,3):(3,1)"), (d(8), 6), (1, 0)),
    "complement": lambda r, d: cute.complement(cute.layout("(2,3):(4,12)"), d(48)),
}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("first", range(4))
def test_dynamic_as_static(first: int) -> None:
    names = [name for name in list(CASES)[first::4] for _ in range(3)]

    def case(d: Dynamizer) -> Any:
        return [CASES[name](random.Random(i), d) for i, name in enumerate(names)]

    expected, found, text = on_both(case)
    lengths = [len(leaves_of(CASES[name](random.Random(i), Dynamizer()))) for i, name in enumerate(names)]
    starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    for name, start, end in zip(names, starts, starts[1:]):
        assert found[start:end] == [int(n) for n in expected[start:end]], f"{name}\n{text}"


def random_tree(rng: random.Random, depth: int = 2) -> Any:
    if depth == 0 or rng.random() < 0.4:
        return rng.choice([1, 2, 3, 4, 8])
    return tuple(random_tree(rng, depth - 1) for _ in range(rng.randrange(1, 4)))


def test_static_layouts_match_brute_force() -> None:
    rng = random.Random(5)
    for _ in range(40):
        shape = (random_tree(rng), random_tree(rng))
        flat = leaves(shape)
        if np.prod(flat) > 200:
            continue
        strides = iter(rng.choice([0, 1, 3, 16]) for _ in flat)
        layout = cute.make_layout(shape, stride=cute.transform_leaf(lambda _: next(strides), shape))  # noqa: B023
        ds = leaves(layout.stride)
        offsets = [
            sum(c * d for c, d in zip(reversed(where), ds))
            for where in itertools.product(*[range(n) for n in reversed(flat)])
        ]
        assert [layout(i) for i in range(cute.size(layout))] == offsets
        assert cute.cosize(layout) == max(offsets) + 1
        order = iter(rng.sample(range(len(flat)), len(flat)))
        compact = cute.make_ordered_layout(shape, order=cute.transform_leaf(lambda _: next(order), shape))  # noqa: B023
        for i in (0, len(offsets) - 1, len(offsets) // 2):
            assert compact(compact.get_hier_coord(i)) == compact(*compact.get_flat_coord(i)) == i
            assert compact(compact.get_1d_coord(i)) == i
        assert sorted(offsets) == sorted(leaf for leaf in map(cute.flatten(layout), range(len(offsets))))


# ----------------------------------------------------------------------------------------------------- in a program


@cute.kernel
def describe(x: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
    m = n * 4
    by_text = cute.layout(f"(8,({m},2)):({m},(1,{n}))")
    layout = cute.make_layout((8, 4), stride=(4, 1))
    if n > 3:
        layout = cute.make_layout((16, 2), stride=(2, 1))
    size = 0
    for i in range(n):
        size += cute.size(layout) + i
    out[0] = by_text(1, (2, 1))
    out[1] = layout(3, 1)
    out[2] = size
    out[3] = cute.ceil_div(n, 3)


@cute.jit
def run_describe(x: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
    describe(x, out, n).launch(grid=1, block=1)


@pytest.mark.parametrize("n", [2, 5])
def test_layouts_cross_branches_and_texts_hold_numbers(n: int) -> None:
    out = np.zeros(4, np.int32)
    run_describe(np.zeros(4, np.int32), out, n, device="cpu")
    assert list(out) == [4 * n + 2 + n, 7 if n > 3 else 13, 32 * n + n * (n - 1) // 2, -(-n // 3)]


def test_a_function_is_the_inner_part_of_a_composed_layout() -> None:
    moved = cute.make_composed_layout(lambda c: (c[0], c[1] + 1), (1, 0), cute.make_identity_layout((8, 4)))
    assert moved(0) == (1, 1) and moved((2, 3)) == (3, 4)
    assert cute.size(moved) == 32 and cute.size(moved, mode=[1]) == 4 and moved.shape == (8, 4)
    assert "<lambda> o (1, 0) o (8,4)" in repr(moved)

    @cute.kernel
    def kernel(table: cute.Tensor, out: cute.Tensor):
        gather = cute.make_composed_layout(lambda i: table[i], 2, cute.make_layout(6))
        for i in range(cute.size(gather)):
            out[i] = gather(i)

    @cute.jit
    def run(table: cute.Tensor, out: cute.Tensor):
        kernel(table, out).launch(grid=1, block=1)

    table, out = np.array([5, 3, 8, 1, 9, 2, 7, 4], np.int32), np.zeros(6, np.int32)
    run(table, out, device="cpu")
    assert out.tolist() == table[2:].tolist()
