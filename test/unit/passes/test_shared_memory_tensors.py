"""Byte layout of tensors in shared memory: swizzles and composed layouts, for all kinds of reads and writes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.parser import Parser

from cute_dialect.algebra import text
from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.values import ComposedLayout, Layout, Swizzle
from cute_dialect.dialect.algebra import SliceOp
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.shared_memory import storage_bytes
from cute_dialect.dialect.tensor_lifting import infer_lifted
from cute_dialect.ir.context import make_context
from cute_dialect.pipelines import compile as compile_cute

DTYPES = {"f32": np.int32, "f16": np.int16, "bf16": np.int16, "i8": np.int8, "i64": np.int64, "f8E4M3FN": np.int8}
"""Numpy types as wide as the elements: bits are moved, never computed with."""

THREADS = 32
FILLER = 49 * 1024
"""Bytes that make the shared memory dynamic, so that ``smem_base`` lies behind the buffers."""


def kernel(element: str, smem: str, layout: str, n: int, body: str) -> str:
    """Build a kernel that stores ``x[i]`` to element ``i`` of ``%s``, then runs ``body``, which writes ``%out``."""
    return f"""
!s = !cute.memref<{element}, {smem}, "{layout}">
!x = !cute.memref<{element}, gmem, align<16>, "{n}:1">
!out = !cute.memref<{element}, gmem, align<16>, "?:1">
!raw = !cute.memref<i8, gmem, "?:1">
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @k(%x: !x, %out: !out, %raw: !raw) kernel attributes {{known_block_size = array<i32: {THREADS}, 1, 1>}} {{
      %s = cute.memref.alloc_smem() : !s
      %filler = cute.memref.alloc_smem() : !cute.memref<i8, smem, "{FILLER}:1">
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, {THREADS}> : i32
      %n = arith.constant {n} : i32
      %step = arith.constant {THREADS} : i32
      scf.for %i = %tid to %n step %step : i32 {{
        %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %v = cute.memref.load(%x, %c) : (!x, !cute.coord<"?">) -> {element}
        cute.memref.store(%s, %c, %v) : (!s, !cute.coord<"?">, {element}) -> ()
      }}
      gpu.barrier
{body}
      gpu.return
    }}
  }}
}}
"""


def raw_bytes(n_bytes: int, total: int) -> str:
    """Return ops that copy the first bytes of the shared-memory segment to ``%raw``."""
    return f"""
      %base = cute.smem_base() : !cute.ptr<i8, smem, align<1024>>
      %back = cute.static : !cute.int_tuple<"{-total}">
      %start = cute.add_offset(%base, %back) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"{-total}">) -> !cute.ptr<i8, smem, align<1024>>
      %all = cute.static : !cute.layout<"{n_bytes}:1">
      %bytes = cute.make_view(%start, %all) : !cute.memref<i8, smem, align<1024>, "{n_bytes}:1">
      %nb = arith.constant {n_bytes} : i32
      scf.for %i = %tid to %nb step %step : i32 {{
        %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %v = cute.memref.load(%bytes, %c) : (!cute.memref<i8, smem, align<1024>, "{n_bytes}:1">, !cute.coord<"?">) -> i8
        cute.memref.store(%raw, %c, %v) : (!raw, !cute.coord<"?">, i8) -> ()
      }}
"""  # noqa: E501


def where(layout: Layout | ComposedLayout, swizzle: Swizzle | None, itemsize: int) -> list[int]:
    """Return the byte offset of each element, computed from the definitions."""
    out: list[int] = []
    n = size(layout.outer if isinstance(layout, ComposedLayout) else layout)
    assert isinstance(n, int)
    for i in range(n):
        if isinstance(layout, ComposedLayout):
            plain = sum(c * d for c, d in zip(digits(i, layout.outer), flat(layout.outer.stride)))
            assert isinstance(layout.inner, Swizzle) and isinstance(layout.offset, int)
            at = xored(layout.inner, layout.offset + plain) * itemsize
        else:
            at = sum(c * d for c, d in zip(digits(i, layout), flat(layout.stride))) * itemsize
        out.append(at if swizzle is None else xored(swizzle, at))
    return out


def xored(s: Swizzle, x: int) -> int:
    for bit in range(s.bits):
        if x >> (s.base + s.shift + bit) & 1:
            x ^= 1 << (s.base + bit)
    return x


def flat(tree: object) -> list[int]:
    return [y for x in tree for y in flat(x)] if isinstance(tree, tuple) else [tree]  # type: ignore[list-item]


def digits(i: int, layout: Layout) -> list[int]:
    out: list[int] = []
    for extent in flat(layout.shape):
        out.append(i % extent)
        i //= extent
    return out


CASES = [
    ("f32", "smem", "(7,5):(1,9)"),
    ("f16", "smem, align<16>", "(8,(3,2)):(8,(1,4))"),
    ("i8", "smem", "(5,7):(11,1)"),
    ("i64", "smem, align<16>", "(4,6):(6,1)"),
    ("f8E4M3FN", "smem, align<16>", "(16,16):(16,1)"),
    *[(e, f"smem, align<{128 << b}>, S<{b},4,3>", "(16,64):(64,1)") for e in ("f16", "f32", "i8") for b in (1, 2, 3)],
    ("bf16", "smem, align<1024>, S<3,4,3>", "((8,2),(64,2)):((64,512),(1,1024))"),
    ("f16", "smem, align<1024>, S<3,4,3>", "(8,24):(24,1)"),
    ("f16", "smem, align<16>", "S<3,3,3> o 0 o (16,64):(64,1)"),
    ("f32", "smem, align<16>", "S<2,2,3> o 0 o (16,32):(1,16)"),
    ("f16", "smem, align<16>", "S<3,3,3> o 64 o (8,64):(64,1)"),
]


def parse(layout: str) -> Layout | ComposedLayout:
    value = text.parse_composed_layout(layout) if "o" in layout else text.parse_layout(layout)
    assert isinstance(value, Layout | ComposedLayout)
    return value


def swizzle_of(smem: str) -> Swizzle | None:
    return text.parse_swizzle(smem[smem.index("S<") :]) if "S<" in smem else None  # type: ignore[return-value]


def numbers(element: str, n: int) -> np.ndarray:
    dtype = np.dtype(DTYPES[element])
    return np.random.default_rng(n).integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(("element", "smem", "layout"), CASES)
def test_addresses_match_the_definition(element: str, smem: str, layout: str) -> None:
    value = parse(layout)
    n = size(value.outer if isinstance(value, ComposedLayout) else value)
    assert isinstance(n, int)
    x = numbers(element, n)
    at = where(value, swizzle_of(smem), x.itemsize)
    n_bytes = max(at) + x.itemsize
    t = Parser(make_context(), f'!cute.memref<{element}, {smem}, "{layout}">').parse_type()
    assert isinstance(t, MemRefType) and storage_bytes(t) >= n_bytes
    total = -(-(storage_bytes(t) + FILLER) // 1024) * 1024
    raw = np.zeros(n_bytes, np.int8)
    run(kernel(element, smem, layout, n, raw_bytes(n_bytes, total)), element, x, np.zeros(1, x.dtype), raw)
    expected = x.view(np.int8).reshape(n, -1)
    assert len(set(at)) == n, "the case itself is wrong"
    for i, a in enumerate(at):
        assert (raw[a : a + x.itemsize] == expected[i]).all(), f"element {i} at byte {a}"


def run(source: str, element: str, *arrays: np.ndarray) -> None:
    import ml_dtypes

    views = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f8E4M3FN": ml_dtypes.float8_e4m3fn}
    compiled = compile_cute(source, emit="base").kernel("k")
    typed = [a.view(views.get(element, a.dtype)) for a in arrays[:2]]
    compiled(*typed, *arrays[2:], grid=(1, 1, 1), device="cpu")


VECTORS = [
    ("f16", "smem, align<1024>, S<3,4,3>", "(16,64):(64,1)", 1),
    ("f16", "smem, align<1024>, S<3,4,3>", "((8,2),64):((64,512),1)", 1),
    ("f32", "smem, align<512>, S<2,4,3>", "(8,(16,2)):(16,(1,128))", 1),
    ("i8", "smem, align<256>, S<1,4,3>", "(8,32):(32,1)", 1),
    ("f16", "smem, align<16>", "S<3,3,3> o 0 o (16,64):(64,1)", 1),
    ("f16", "smem, align<16>", "(16,64):(72,1)", 1),
    ("f16", "smem", "(16,64):(65,1)", 1),
    ("f32", "smem, align<16>", "(8,12):(1,8)", 0),
    ("f8E4M3FN", "smem, align<16>", "(16,32):(32,1)", 1),
]


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("method", ["load_vec", "copy"])
@pytest.mark.parametrize(("element", "smem", "layout", "mode"), VECTORS)
def test_rows_are_read_as_vectors(element: str, smem: str, layout: str, mode: int, method: str) -> None:
    value = parse(layout)
    plain = value.outer if isinstance(value, ComposedLayout) else value
    rows, length = (size(plain.shape[1 - mode]), size(plain.shape[mode]))  # type: ignore[index]
    assert isinstance(rows, int) and isinstance(length, int)
    x = numbers(element, rows * length)
    coord = '"(?,_)"' if mode else '"(_,?)"'
    types = Parser(make_context(), f'(!cute.memref<{element}, {smem}, "{layout}">, !cute.coord<{coord}>)')
    operands = types.parse_comma_separated_list(types.Delimiter.PAREN, types.parse_type)
    (row,) = infer_lifted(SliceOp, operands, {})
    dst = f'!cute.memref<{element}, gmem, align<1>, "{length}:1">'.replace("align<1>, ", "")
    if method == "load_vec":
        move = f"%v = cute.memref.load_vec %row : {row}\n        cute.memref.store_vec %v, %d : {dst}"
    else:
        atom = f"!cute_nvgpu.atom.universal_copy<{element}>"
        move = f"%a = cute.atom() : {atom}\n        cute.copy(%a, %row, %d) : ({atom}, {row}, {dst}) -> ()"
    body = f"""
      %rows = arith.constant {rows} : i32
      %mine = arith.cmpi slt, %tid, %rows : i32
      scf.if %mine {{
        %c = cute.make_coord(%tid) : (i32) -> !cute.coord<{coord}>
        %row = cute.slice(%s, %c) : !s, !cute.coord<{coord}>
        %it = cute.get_iter(%out) : !out
        %gl = cute.static : !cute.layout<"({length},{rows}):(1,{length})">
        %g = cute.make_view(%it, %gl) : !cute.memref<{element}, gmem, align<16>, "({length},{rows}):(1,{length})">
        %gc = cute.make_coord(%tid) : (i32) -> !cute.coord<"(_,?)">
        %d0 = cute.slice(%g, %gc) : !cute.memref<{element}, gmem, align<16>, "({length},{rows}):(1,{length})">, !cute.coord<"(_,?)">
        %dit = cute.get_iter(%d0) : {gmem_row(element, length)}
        %dl = cute.static : !cute.layout<"{length}:1">
        %d = cute.make_view(%dit, %dl) : {dst}
        {move}
      }}
"""  # noqa: E501
    out = np.zeros_like(x)
    run(kernel(element, smem, layout, rows * length, body), element, x, out, np.zeros(1, np.int8))
    matrix = x.reshape(length, rows).T if mode else x.reshape(rows, length)
    assert np.array_equal(out.reshape(rows, length), matrix)


def gmem_row(element: str, length: int) -> str:
    itemsize = np.dtype(DTYPES[element]).itemsize
    step = length * itemsize
    align = min(16, step & -step)
    shown = "" if align == itemsize else f"align<{align}>, "
    return f'!cute.memref<{element}, gmem, {shown}"({length}):(1)">'


FILLS = [
    ("f32", "smem, align<1024>, S<3,4,3>", "(64,32):(32,1)"),
    ("f16", "smem, align<16>", "(16,24):(24,1)"),
    ("f16", "smem", "(5,7):(9,1)"),
    ("i8", "smem, align<16>", "S<3,4,3> o 0 o (16,16):(16,1)"),
    ("f8E4M3FN", "smem, align<16>", "(40,40):(40,1)"),
]


@pytest.mark.parametrize(("element", "smem", "layout"), FILLS)
def test_clear_writes_all_elements_and_no_others(element: str, smem: str, layout: str) -> None:
    value = parse(layout)
    plain = value.outer if isinstance(value, ComposedLayout) else value
    n = size(plain)
    assert isinstance(n, int)
    t = Parser(make_context(), f'!cute.memref<{element}, {smem}, "{layout}">').parse_type()
    assert isinstance(t, MemRefType)
    used = storage_bytes(t)
    total = -(-(used + FILLER) // 1024) * 1024
    x = numbers(element, n)
    poison = f"""
      %pbase = cute.smem_base() : !cute.ptr<i8, smem, align<1024>>
      %pback = cute.static : !cute.int_tuple<"{-total}">
      %pstart = cute.add_offset(%pbase, %pback) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"{-total}">) -> !cute.ptr<i8, smem, align<1024>>
      %pall = cute.static : !cute.layout<"{used}:1">
      %pbytes = cute.make_view(%pstart, %pall) : !cute.memref<i8, smem, align<1024>, "{used}:1">
      %p = arith.constant 90 : i8
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %tid, %zero : i32
      scf.if %first {{
        cute.fill(%pbytes, %p) : (!cute.memref<i8, smem, align<1024>, "{used}:1">, i8) -> ()
        cute.clear(%s) : (!s) -> ()
      }}
      gpu.barrier
"""  # noqa: E501
    raw = np.zeros(used, np.int8)
    body = poison + raw_bytes(used, total)
    run(kernel(element, smem, layout, n, body), element, x, np.zeros(1, x.dtype), raw)
    expected = np.full(used, 90, np.int8)
    for a in where(value, swizzle_of(smem), x.itemsize):
        expected[a : a + x.itemsize] = 0
    assert np.array_equal(raw, expected)


def test_evaluate_agrees_with_the_definition() -> None:
    value = parse("S<3,3,3> o 64 o (8,64):(64,1)")
    assert [2 * evaluate(i, value) for i in range(512)] == where(value, None, 2)  # type: ignore[operator]
