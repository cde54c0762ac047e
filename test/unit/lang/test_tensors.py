"""Tensors are built from iterators and layouts and cross branches and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, trace_kernel

from cute_dialect import lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import Float32, Int4, Int32, Uint8
from cute_dialect.lang.values.tensors import Tensor


def wrap(ssa: Any) -> Any:
    """Return the language's value for a kernel parameter."""
    return Tensor.of(ssa) if "memref" in str(ssa.type) else Int32.of(ssa)


def run(body: Any, parameters: dict[str, str], *args: object) -> None:
    """Trace a body and run it with one thread."""
    run_kernel_on_cpu(trace_kernel(body, parameters, wrap, threads=1), args, threads=1)


def test_make_tensor_from_pointer_and_layout() -> None:
    def body(x: Any, out: Any, n: Any) -> None:
        t = cute.make_tensor(x.iterator, cute.make_layout((3, 4), stride=(n, 1)))
        assert repr(t.layout) == "(3,4):(?,1)" and t.shape == (3, 4) and t.stride[1] == 1 and t.size == 12
        assert t.leading_dim == 1 and t.element_type is Float32
        out[0] = t[2, 3]
        out[1] = t.stride[0]
        out[2] = cute.make_tensor(x.iterator + 2, (2, n))[1, 3]
        out[3] = t.layout((2, 3))
        part = t[1:3, 1:3]
        assert part.shape == (2, 2)
        out[4] = part[1, 1] + part[0, 0] * 100
        u = cute.local_tile(x, (4, 4), (1, None))
        out[5] = u[1, 2, 1]

    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    out = np.zeros(8, np.float32)
    run(body, {"x": '!cute.memref<f32, gmem, "(8,8):(8,1)">', "out": '!cute.memref<f32, gmem, "8:1">', "n": "i32"},
        x, out, 8)  # fmt: skip
    flat = x.ravel()
    assert out.tolist() == [19, 8, flat[2 + 1 + 2 * 3], 19, 2 * 8 + 2 + 100 * 9, x[5, 6], 0, 0]


def test_range_slices_of_dynamic_tensors() -> None:
    def body(x: Any, out: Any, i: Any) -> None:
        part = x[i, 2:5]
        assert part.shape == (3,)
        out[0] = part[0]
        out[1] = part[2]
        part.fill(0)

    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    expected = x.copy()
    expected[4, 2:5] = 0
    out = np.zeros(2, np.float32)
    run(body, {"x": '!cute.memref<f32, gmem, "(?,8):(?,1)">', "out": '!cute.memref<f32, gmem, "2:1">', "i": "i32"},
        x, out, 4)  # fmt: skip
    assert out.tolist() == [34, 36] and (x == expected).all()


def test_identity_tensors() -> None:
    t = cute.make_identity_tensor((4, (2, 3)))
    assert (
        t[3, (1, 2)] == (3, (1, 2))
        and t[5] == (1, (1, 0))
        and repr(t) == "tensor<(0,(0,0)) o (4,(2,3)):(1@0,(1@0@1,1@1@1))>"
    )

    def body(out: Any, n: Any) -> None:
        c = cute.make_identity_tensor((n, 8))
        tile = cute.local_tile(c, (4, 4), (n // 8, 1))
        i, j = tile[1, 2]
        out[0] = i
        out[1] = j
        static = cute.zipped_divide(cute.make_identity_tensor((16, 8)), (4, 4))
        assert static[(1, 2), (3, 1)] == (13, 6)
        moved = cute.make_tensor((n, 2), cute.make_identity_layout((4, 4)))
        assert moved[1, 1][1] == 3
        out[2] = moved[1, 1][0]

    out = np.zeros(3, np.int32)
    run(body, {"out": '!cute.memref<i32, gmem, "3:1">', "n": "i32"}, out, 16)
    assert out.tolist() == [9, 6, 17]


def test_recast_tensor() -> None:
    def body(x: Any, out: Any) -> None:
        words = cute.recast_tensor(x, Int32)
        assert words.shape == (4, 4) and words.stride == (4, 1) and words.element_type is Int32
        out[0] = words[2, 1]

    x = np.arange(32, dtype=np.float16).reshape(4, 8)
    out = np.zeros(1, np.int32)
    run(
        body,
        {"x": '!cute.memref<f16, gmem, align<16>, "(4,8):(8,1)">', "out": '!cute.memref<i32, gmem, "1:1">'},
        x,
        out,
    )
    assert out[0] == x.view(np.int32)[2, 1]


def test_views_keep_an_unsigned_element_type() -> None:
    def body(ssa: Any) -> None:
        t = Tensor.of(ssa, Uint8)
        views = [cute.local_tile(t, (2, 4), (0, 0)), t[None, 1], t[1:3, None], cute.domain_offset((1, 1), t),
                 cute.make_tensor(t.iterator, t.layout), cute.make_rmem_tensor_like(t)]  # fmt: skip
        assert [v.element_type for v in views] == [Uint8] * len(views)
        assert repr(t) == "tensor<ptr<ui8, gmem> o (4,8):(8,1)>" and repr(t.iterator) == "ptr<ui8, gmem>"

    trace_kernel(body, {"x": '!cute.memref<i8, gmem, "(4,8):(8,1)">'})


def test_joined_tensors_keep_common_facts() -> None:
    """When a loop or branch joins two tensors, extents and strides that differ become dynamic."""
    from cute_dialect.lang.values.forms import form_of

    def body(x: Any, out: Any, n: Any) -> None:
        a = cute.make_tensor(x.iterator, cute.make_layout((4, 8), stride=(8, 1)))
        b = cute.make_tensor(x.iterator + n, cute.make_layout((n, 8), stride=(16, 1)))
        both = form_of(a).join(form_of(b))
        assert both == form_of(b).join(form_of(a)) and hash(both) == hash(form_of(b).join(form_of(a)))
        kinds = [str(t) for t in both.types]
        assert kinds == ['!cute.memref<f32, gmem, "(?,8):(?{div=8},1)">'], kinds
        for at, t in ((0, a), (1, b)):
            (leaf,) = both.take(t)
            made: Any = both.make([leaf])
            out[at * 2] = made[1, 1]
            out[at * 2 + 1] = made.shape[0]
        p, q = x.iterator, x.iterator + 2
        pointers = form_of(p).join(form_of(q))
        assert [str(t) for t in pointers.types] == ["!cute.ptr<f32, gmem, align<8>>"]
        made_p: Any = pointers.make(pointers.take(p))
        out[4] = made_p[5]

    x = np.arange(64, dtype=np.float32)
    out = np.zeros(5, np.float32)
    run(body, {"x": '!cute.memref<f32, gmem, align<16>, "64:1">', "out": '!cute.memref<f32, gmem, "5:1">', "n": "i32"},
        x, out, 4)  # fmt: skip
    assert out.tolist() == [9, 4, 4 + 17, 4, 5]


def test_a_tensor_crosses_a_branch() -> None:
    """The pointer and the dynamic extents and strides are results of an ``scf.if``."""
    from xdsl.ir import Block, Region

    from cute_dialect.lang.values.forms import form_of

    def body(x: Any, out: Any, n: Any) -> None:
        t = current()
        a = cute.make_tensor(x.iterator, cute.make_layout((4, 8), stride=(8, 1)))
        b = cute.make_tensor(x.iterator + 1, cute.make_layout((4, 8), stride=(1, n)))
        form = form_of(a).join(form_of(b))
        blocks = [Block(), Block()]
        for block, value in zip(blocks, (a, b)):
            with t.into(block):
                t.op("scf.yield", form.take(value))
        made = t.op("scf.if", [(n > 5).ssa], list(form.types), regions=[Region(block) for block in blocks])
        chosen: Any = form.make(made.results)
        out[0] = chosen[2, 3]

    for n, expected in ((4, 1 + 2 + 12), (8, 19)):
        x = np.arange(64, dtype=np.float32)
        out = np.zeros(1, np.float32)
        run(body, {"x": '!cute.memref<f32, gmem, "64:1">', "out": '!cute.memref<f32, gmem, "1:1">', "n": "i32"},
            x, out, n)  # fmt: skip
        assert out[0] == expected


def test_coordinate_tensors_are_joined() -> None:
    from cute_dialect.lang.values.forms import form_of

    def body(out: Any, n: Any) -> None:
        a = cute.make_identity_tensor((4, 8))
        b = cute.make_tensor((n, 2), cute.make_identity_layout((4, 8)))
        both = form_of(a).join(form_of(b))
        assert [str(t) for t in both.types] == ['!cute.coord_tensor<"(?,?{div=2})", "(4,8):(1@0,1@1)">']
        for at, t in ((0, a), (1, b)):
            made: Any = both.make(both.take(t))
            out[at] = made[1, 1][0] * 100 + made[1, 1][1]
        assert form_of(a).join(form_of(a)).types == ()

    out = np.zeros(2, np.int32)
    run(body, {"out": '!cute.memref<i32, gmem, "2:1">', "n": "i32"}, out, 16)
    assert out.tolist() == [101, 1703]


def test_errors() -> None:
    from cute_dialect.lang.values.forms import form_of

    def message(body: Any) -> str:
        with pytest.raises(CuteError) as caught:
            trace_kernel(
                body, {"x": '!cute.memref<f32, gmem, "(4,8):(8,1)">', "h": '!cute.memref<f16, gmem, "4:1">'}, wrap
            )
        e = caught.value
        return f"{e.code}: {e.message}" + (f"\nhint: {e.hint}" if e.hint else "")

    assert message(lambda x, h: form_of(x).join(form_of(h))) == (
        "F205: it is tensor<ptr<f32, gmem> o (4,8):(8,1)> or tensor<ptr<f16, gmem> o 4:1>"
    )
    assert message(lambda x, h: form_of(x).join(form_of(x[None, 0]))) == (
        "F205: it is tensor<ptr<f32, gmem> o (4,8):(8,1)> or tensor<ptr<f32, gmem> o (4):(8)>"
    )
    assert (
        message(lambda x, h: form_of(x).join(form_of(None)))
        == "F208: it is tensor<ptr<f32, gmem> o (4,8):(8,1)> or None"
    )
    assert message(lambda x, h: form_of(x.iterator).join(form_of(h.iterator))) == (
        "F205: it is ptr<f32, gmem> or ptr<f16, gmem>"
    )
    assert message(lambda x, h: form_of(cute.make_fragment_like(x)).join(form_of(cute.make_fragment_like(x)))) == (
        "F206: it is one of two register tensors\n"
        "hint: register tensors cannot be selected at run time: create one before, and write to it on both sides"
    )
    assert message(lambda x, h: cute.make_tensor("p", (4, 8))) == (
        "F262: make_tensor needs a pointer or an int tuple, got 'p'"
    )
    assert message(lambda x, h: cute.make_tensor(x.iterator, cute.make_identity_layout((4, 8)))) == (
        "F240: make_tensor(ptr<f32, gmem>, (4,8):(1@0,1@1)): expected integer strides in a memref (basis strides make "
        "a cute.coord_tensor), got (4,8):(1@0,1@1)"
    )
    assert message(lambda x, h: cute.recast_tensor(h[1:4], Float32)).startswith("F240: recast_tensor(")
    assert message(lambda x, h: cute.clear(cute.make_identity_tensor((4, 8)))) == (
        "F260: a coordinate tensor has no memory and cannot be written"
    )


def test_static_parts_emit_no_op() -> None:
    def body(x: Any) -> None:
        before = len(list(current().block.ops))
        assert x.shape == (4, 8) and x.stride == (8, 1) and repr(x.layout) == "(4,8):(8,1)" and x.leading_dim == 1
        assert len(x[None, 0]) == 4 and len(list(current().block.ops)) == before + 2

    trace_kernel(body, {"x": '!cute.memref<f32, gmem, "(4,8):(8,1)">'}, wrap)


def test_elements_of_less_than_a_byte() -> None:
    """Vectors move packed nibbles, lower nibble first. Storing one nibble would overwrite its neighbour."""

    def body(x: Any, out: Any) -> None:
        nibbles = cute.recast_tensor(x, Int4)
        assert nibbles.shape == (8,) and nibbles.element_type is Int4
        out.store(nibbles.load().to(Int32).reshape(8))
        held = cute.make_rmem_tensor(8, Int4)
        held.store(nibbles.load())
        held[1] = held[0]
        nibbles.store(held.load())
        for access in (lambda: nibbles[2], lambda: nibbles.__setitem__(2, 1), lambda: nibbles.iterator.load()):
            with pytest.raises(CuteError, match="F264: a single element of Int4 is part of a byte"):
                access()

    x = np.array([0x21, 0x83, 0x54, 0xF7], np.uint8).view(np.int8)
    out = np.zeros(8, np.int32)
    run(body, {"x": '!cute.memref<i8, gmem, align<4>, "(4):(1)">', "out": '!cute.memref<i32, gmem, "8:1">'}, x, out)
    assert out.tolist() == [1, 2, 3, -8, 4, 5, 7, -1]
    assert x.view(np.uint8).tolist() == [0x11, 0x83, 0x54, 0xF7]


def test_elements_of_eight_bit_floats() -> None:
    import ml_dtypes

    def body(x: Any, out: Any) -> None:
        assert x.element_type is cute.Float8E4M3FN
        out.store(x.load().to(Float32) * 2)
        x[3] = out[0]

    x = np.array([1, 1.125, -448, 0.5], np.float32).astype(ml_dtypes.float8_e4m3fn)
    out = np.zeros(4, np.float32)
    run(body, {"x": '!cute.memref<f8E4M3FN, gmem, "4:1">', "out": '!cute.memref<f32, gmem, "4:1">'}, x, out)
    assert out.tolist() == [2, 2.25, -896, 1] and x.astype(np.float32).tolist() == [1, 1.125, -448, 2]


def test_a_build_with_assertions_checks_coordinates() -> None:
    def body(x: Any, out: Any, i: Any) -> None:
        current().state["asserts"] = True
        out[0] = x[i, 1]
        out[0] = x[None, i - 2][0]

    types = {"x": '!cute.memref<f32, gmem, "(?,4):(8,1)">', "out": '!cute.memref<f32, gmem, "1:1">', "i": "i32"}
    memory = np.zeros((3, 8), np.float32)
    run(body, types, memory[:, :4], np.zeros(1, np.float32), 2)
    read = r"out-of-bounds read of tensor 'x' in mode 0: index 3 is outside \[0, 3\); access it under an 'if'"
    with pytest.raises(Exception, match=read):
        run(body, types, memory[:, :4], np.zeros(1, np.float32), 3)
    sliced = r"out-of-bounds slice of tensor 'x' in mode 1: index -1 is outside \[0, 4\)"
    with pytest.raises(Exception, match=sliced):
        run(body, types, memory[:, :4], np.zeros(1, np.float32), 1)


def test_coordinates_of_a_coordinate_tensor_are_not_checked() -> None:
    def body(out: Any, i: Any) -> None:
        current().state["asserts"] = True
        places = cute.make_identity_tensor((8, 1))
        out[0], out[1] = places[None, i][3]

    types = {"out": '!cute.memref<i32, gmem, "2:1">', "i": "i32"}
    out = np.zeros(2, np.int32)
    run(body, types, out, 2)
    assert out.tolist() == [3, 2]


def test_a_build_without_assertions_emits_none() -> None:
    module = trace_kernel(lambda x, i: x[i, 1], {"x": '!cute.memref<f32, gmem, "(?,4):(8,1)">', "i": "i32"}, wrap)
    assert not [op for op in module.walk() if op.name == "cf.assert"]


def test_functions_of_layouts_take_tensors() -> None:
    def body(x: Any, i: Any) -> None:
        assert cute.size(x, mode=[1]) == 8 and cute.rank(x) == 2 and cute.depth(x) == 1 and cute.cosize(x[1, None]) == 8
        assert repr(cute.get(x, [1])) == "tensor<ptr<f32, gmem> o 8:1>" == repr(cute.back(x))
        assert repr(cute.append_ones(x, up_to_rank=3)) == "tensor<ptr<f32, gmem> o (?,8,1):(8,1,0)>"
        assert repr(cute.prepend_ones(x[0, None], up_to_rank=2)) == "tensor<ptr<f32, gmem> o (1,8):(0,1)>"
        assert repr(cute.make_layout_like(x[None, i])) == "(?):(1)" and cute.size_in_bytes(Float32, x[1, None]) == 32
        assert repr(cute.group_modes(x, 0, 2)) == "tensor<ptr<f32, gmem> o ((?,8)):((8,1))>"
        v = x[0, None].load()
        assert cute.size(v) == cute.size(v, mode=[0]) == 8 and cute.rank(v) == 1 and cute.shape(v) == (8,)

    trace_kernel(body, {"x": '!cute.memref<f32, gmem, "(?,8):(8,1)">', "i": "i32"}, wrap)
