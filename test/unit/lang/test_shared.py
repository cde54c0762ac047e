"""Shared memory: buffers, structures with the layout of C, and phases that reuse the same bytes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, trace_kernel

from cute_dialect import lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import Boolean, Float16, Float32, Int8, Int32, Int64, Uint8
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.shared_memory import (
    SmemAllocator,
    alloc_smem,
    get_dyn_smem,
    smem_tensor,
    struct,
    union_smem,
)
from cute_dialect.lang.values.tensors import Tensor

OUT = '!cute.memref<f32, gmem, "32:1">'


def run(body: Any, *arrays: Any) -> None:
    """Run a body with 32 threads on tensors of 32 f32 elements."""
    module = trace_kernel(body, {f"t{i}": OUT for i in range(len(arrays))}, Tensor.of)
    run_kernel_on_cpu(module, arrays)


def barrier() -> None:
    """Wait for all threads."""
    cute.arch.sync_threads()


def thread() -> Any:
    """Return the thread's index."""
    return cute.arch.thread_idx()[0]


def test_tensors_in_shared_memory() -> None:
    def body(x: Any, out: Any) -> None:
        s = smem_tensor(Float32, (8, 4))
        assert s.memspace == "smem" and s.shape == (8, 4) and s.iterator.alignment == 16
        swizzled = SmemAllocator().allocate_tensor(Float16, cute.make_layout((8, 64), stride=(64, 1)), 128,
                                                   cute.make_swizzle(3, 4, 3))  # fmt: skip
        assert swizzled.iterator.alignment == 1024 and str(swizzled.iterator.swizzle) == "S<3,4,3>"
        composed = smem_tensor(
            Float16, cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 64), (64, 1)))
        )
        t = thread()
        s[t % 8, t // 8] = x[t]
        swizzled[t % 8, t] = x[t].to(Float16)
        composed[t % 8, t] = x[t].to(Float16)
        barrier()
        u = 31 - t
        out[t] = s[u % 8, u // 8] + swizzled[u % 8, u].to(Float32) * 100 + composed[u % 8, u].to(Float32) * 10000

    x = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    run(body, x, out)
    assert (out == x[::-1] * 10101).all()


class InC(ctypes.Structure):
    """The fields of the struct in shared memory, as ctypes lays them out."""

    _fields_ = (
        ("flag", ctypes.c_bool),
        ("barriers", ctypes.c_int64 * 3),
        ("byte", ctypes.c_int8),
        ("words", ctypes.c_int32 * 5),
    )


def test_offsets_match_c() -> None:
    @struct
    class Storage:
        flag: Boolean
        barriers: struct.MemRange[Int64, 3]
        byte: Int8
        words: struct.MemRange[Int32, 5]

    assert Storage.size_in_bytes() == ctypes.sizeof(InC) and Storage.alignment == ctypes.alignment(InC)
    assert Storage.offsets == {name: getattr(InC, name).offset for name, _ in InC._fields_}
    assert Storage.describe() == (
        "Storage: 56 bytes, aligned to 8\n"
        "  offset    bytes  align  field\n"
        "       0        1      1  flag: Boolean\n"
        "       8       24      8  barriers: MemRange[Int64, 3]\n"
        "      32        1      1  byte: Int8\n"
        "      36       20      4  words: MemRange[Int32, 5]"
    )


def test_structures_in_a_kernel() -> None:
    n = 32

    @struct
    class Inner:
        count: Int32
        values: struct.MemRange[Float32, n]

    @struct
    class Storage:
        first: Int8
        inner: Inner
        tile: struct.Align[struct.MemRange[Float16, 8 * 64], 1024]
        matrix: struct.Tensor[Float32, cute.make_layout((4, 8), stride=(8, 1))]

    assert Storage.offsets["tile"] == 1024 and Storage.alignment == 1024

    def body(x: Any, out: Any) -> None:
        storage = SmemAllocator().allocate(Storage)
        t = thread()
        values = storage.inner.values
        assert values.data_ptr().dtype is Float32 and values.size == n and storage.tile.ptr.alignment == 1024
        values[t] = x[t]
        tile = storage.tile.get_tensor(cute.make_layout((8, 64), stride=(64, 1)), swizzle=cute.make_swizzle(3, 4, 3))
        tile[t % 8, t] = x[t].to(Float16) * 2
        words = storage.tile.get_tensor((256,), dtype=Float32)
        assert words.shape == (256,) and words.element_type is Float32
        storage.matrix[t % 4, t // 4] = x[t] * 3
        storage.inner.count.store(7)
        storage.first.store(1)
        barrier()
        u = 31 - t
        tensor = values.get_tensor(cute.make_layout((4, 8)))
        out[t] = tensor[u % 4, u // 4] + tile[u % 8, u].to(Float32) * 100 + storage.matrix[u % 4, u // 4] * 10000
        out[t] = out[t] + storage.inner.count.load() + storage.first.ptr.load()
        form = form_of(storage)
        again: Any = form.make(form.take(storage))
        assert again.inner.values.size == n and form == form_of(again)

    x = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    run(body, x, out)
    assert (out == x[::-1] * 30201 + 8).all()


def test_a_union_of_fields() -> None:
    @struct.union
    class Either:
        a: struct.MemRange[Float32, 8]
        b: struct.MemRange[Int64, 6]

    assert Either.offsets == {"a": 0, "b": 0} and Either.size_in_bytes() == 48 and Either.alignment == 8


def test_plain_buffers() -> None:
    def body(x: Any, out: Any) -> None:
        smem = SmemAllocator()
        a = smem.allocate_array(Float32, 32)
        b = smem.allocate(128, 64)
        c = alloc_smem(Int64, 2, 16)
        d = smem.allocate(Float32)
        assert b.dtype is Uint8 and b.alignment == 128 and c.alignment == 16 and d.dtype is Float32
        t = thread()
        a[t] = x[t]
        cute.recast_ptr(b, dtype=Float32)[t] = x[t] * 2
        barrier()
        out[t] = a[31 - t] + cute.recast_ptr(b, dtype=Float32)[31 - t] * 100

    x = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    run(body, x, out)
    assert (out == x[::-1] * 201).all()


def test_phases_share_bytes() -> None:
    def body(x: Any, out: Any) -> None:
        t = thread()
        with union_smem() as phases:
            a = smem_tensor(Float32, 32)
            more = alloc_smem(Float32, 32)
            a[t] = x[t]
            more[t] = x[t] * 10
            barrier()
            total = a[31 - t] + more[31 - t]
            barrier()
            phases.next()
            b = smem_tensor(Float16, 32)
            b[t] = total.to(Float16)
            barrier()
            out[t] = b[31 - t]

    module = trace_kernel(body, {"x": OUT, "out": OUT}, Tensor.of)
    buffers = [op for op in module.walk() if op.name == "cute.memref.alloc_smem"]
    assert [str(op.results[0].type) for op in buffers] == ['!cute.memref<i8, smem, align<1024>, "256:1">']
    x = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    run_kernel_on_cpu(module, [x, out])
    assert (out == x * 11).all()


def test_dynamic_shared_memory() -> None:
    def body(x: Any, out: Any) -> None:
        p = get_dyn_smem(Float32, alignment=128)
        assert p.memspace == "smem" and p.dtype is Float32 and p.alignment == 1024
        t = thread()
        p[t] = x[t]
        barrier()
        out[t] = p[31 - t]

    from cute_dialect.pipelines import compile

    module = trace_kernel(body, {"x": OUT, "out": OUT}, Tensor.of)
    x = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    compile(module, emit="base").kernel("k")(x, out, grid=(1,), block=(32,), smem=128, device="cpu")
    assert (out == x[::-1]).all()


def test_a_buffer_under_a_branch() -> None:
    from xdsl.ir import Block, Region

    def body(x: Any, out: Any) -> None:
        tracer = current()
        t = thread()
        block = Block()
        with tracer.into(block):
            s = smem_tensor(Float32, 32)
            s[t] = x[t]
            out[t] = s[t] * 2
            tracer.op("scf.yield")
        tracer.op("scf.if", [(t < 16).ssa], (), regions=[Region(block), Region()])

    x = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    run(body, x, out)
    assert (out == np.where(x < 16, x * 2, 0)).all()


def message(body: Any) -> str:
    """Trace a body that must fail and return its error message."""
    with pytest.raises(CuteError) as caught:
        trace_kernel(body, {"n": "i32"}, Int32.of)
    e = caught.value
    return f"{e.code}: {e.message}" + (f"\nhint: {e.hint}" if e.hint else "")


def test_errors() -> None:
    def too_much(n: Any) -> None:
        smem_tensor(Float32, (128, 256)).ssa.name_hint = "sA"
        smem_tensor(Float32, (128, 256))

    assert message(too_much) == (
        "F261: the kernel's shared memory buffers need 262144 bytes, but a block has 232448 on sm_90a:\n"
        "    131072 bytes  sA           tensor<ptr<f32, smem, align<16>> o (128,256):(1,128)>\n"
        "    131072 bytes  this one     tensor<ptr<f32, smem, align<16>> o (128,256):(1,128)>\n"
        "hint: use fewer stages or smaller tiles, or reuse bytes with cute.union_smem()"
    )
    assert (
        message(lambda n: smem_tensor(Float32, (n, 4)))
        == "F240: a shared memory buffer needs a static layout, got (?,4):(1,?)"
    )
    assert message(lambda n: smem_tensor(Float32, 4, 24)) == "F262: the alignment must be a power of two, got 24"
    assert message(lambda n: SmemAllocator().allocate("a")) == (
        "F263: allocate needs a number of bytes, a number type or a structure, got 'a'"
    )
    assert message(lambda n: get_dyn_smem(Float32, 2048)) == (
        "F262: get_dyn_smem: the alignment can be at most 1024 bytes, got 2048"
    )

    @struct
    class Small:
        a: struct.MemRange[Float16, 8]

    assert message(lambda n: SmemAllocator().allocate(Small).a.get_tensor((4, 4))) == (
        "F263: the layout (4,4):(1,4) of Float16 needs 32 bytes, but the field has 16"
    )

    @struct
    class Rows:
        short: struct.Align[struct.MemRange[Float16, 100], 128]

    swizzle = cute.make_swizzle(3, 4, 3)
    assert message(lambda n: cute.recast_ptr(SmemAllocator().allocate_array(Float16, 512, 64), swizzle)) == (
        "F262: S<3,4,3> permutes blocks of 128 bytes, but ptr<f16, smem, align<64>> is aligned to 64 bytes\n"
        "hint: allocate it aligned to 128 bytes or more with byte_alignment= or cute.struct.Align[…]"
    )
    assert message(lambda n: SmemAllocator().allocate(Rows).short.get_tensor((10, 10), swizzle=swizzle)) == (
        "F263: the layout (10,10):(1,10) of Float16 needs 256 bytes, but the field has 200\n"
        "hint: a swizzled layout needs whole swizzle blocks"
    )

    def nested(n: Any) -> None:
        with union_smem(), union_smem():
            pass

    assert message(nested) == "F263: union_smem() cannot be nested"
    with pytest.raises(AttributeError, match="structure Small has no field 'b'; fields: a"):
        trace_kernel(lambda n: SmemAllocator().allocate(Small).b, {"n": "i32"})


def test_errors_of_structures() -> None:
    def message(make: Any) -> str:
        with pytest.raises(CuteError) as caught:
            make()
        return f"{caught.value.code}: {caught.value.message}"

    def bad() -> None:
        @struct
        class _Bad:
            a: int

    def empty() -> None:
        @struct
        class _Empty:
            pass

    assert message(bad) == (
        "F263: a field must be a number type, MemRange[T, n], Tensor[T, layout], Align[field, bytes] or a "
        "structure, got <class 'int'>"
    )
    assert message(empty) == "F263: structure _Empty has no annotated fields"
    assert message(lambda: struct.MemRange[Float32]) == (
        "F263: MemRange takes a type and a number of elements, got MemRange[Float32]"
    )
    assert message(lambda: struct.Align[Float32, 3]) == "F262: Align: the alignment must be a power of two, got 3"
