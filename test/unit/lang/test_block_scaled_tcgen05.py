"""Block-scaled ``tcgen05`` MMAs in the language: atoms, layouts of factors, and copies to tensor memory."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang import blackwell, blockscaled, utils
from cute_dialect.lang.nvgpu import tcgen05

K, ONE, TWO = tcgen05.OperandMajorMode.K, tcgen05.CtaGroup.ONE, tcgen05.CtaGroup.TWO
E4M3, E5M2, E2M1, E8M0 = cute.Float8E4M3FN, cute.Float8E5M2, cute.Float4E2M1FN, cute.Float8E8M0FNU


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (
            tcgen05.MmaMXF8F6F4Op(E4M3, cute.Float6E3M2FN, (256, 64, 32), TWO),
            "256x64x32, (f32,f8E4M3FN,f6E3M2FN,f32), A = smem, major = (k, k), cta_group = 2, kind = mxf8f6f4, "
            "sf = f8E8M0FNU, vec = 32",
        ),
        (
            tcgen05.MmaMXF8Op(E5M2, (128, 8, 32)),
            "128x8x32, (f32,f8E5M2,f8E5M2,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32",
        ),
        (
            tcgen05.MmaMXF4Op((128, 256, 64)),
            "128x256x64, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), kind = mxf4, sf = f8E8M0FNU, vec = 32",
        ),
        (
            tcgen05.MmaMXF4NVF4Op(E4M3, (128, 64, 64)),
            "128x64x64, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), kind = mxf4nvf4, sf = ue4m3, vec = 16",
        ),
        (
            tcgen05.MmaMXF4NVF4Op(E8M0, (128, 64, 64)),
            "128x64x64, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), kind = mxf4nvf4, sf = f8E8M0FNU, "
            "vec = 16",
        ),
    ],
)  # fmt: skip
def test_atoms(op: Any, text: str) -> None:
    assert str(cute.make_mma_atom(op).type) == f"!cute_nvgpu.atom.tcgen05_mma<{text}>"


def test_both_orders_of_arguments_create_the_same_mma() -> None:
    """The type of B may be left out."""
    made = [
        blackwell.make_blockscaled_trivial_tiled_mma(E2M1, *more, K, K, E8M0, 32, ONE, (128, 64))
        for more in ((), (E2M1,))
    ]
    assert made[0].type == made[1].type and "kind = mxf4," in str(made[0])


def byte_of(row: int, factor: int, blocks: int) -> int:
    """Return the position of a factor in blocks of 128 x 4, of which ``blocks`` are along K."""
    return 512 * (row // 128 * blocks + factor // 4) + 16 * (row % 32) + 4 * (row % 128 // 32) + factor % 4


@pytest.mark.slow
@pytest.mark.parametrize(("m", "k", "vec"), [(128, 64, 16), (200, 512, 32), (384, 160, 16)])
def test_factors_in_global_memory(m: int, k: int, vec: int) -> None:
    layout = blockscaled.tile_atom_to_shape_SF((m, k, 3), vec)
    blocks = -(-k // vec // 4)
    for row, column in itertools.product(range(0, m, 7), range(0, k, 5)):
        at = layout((row, column, 0))
        assert at == byte_of(row, column // vec, blocks)
        assert layout((row, column, 2)) == at + 2 * 512 * blocks * -(-m // 128)


MMAS = {
    "mxf8": (tcgen05.MmaMXF8Op, (E4M3,), 32, 32),
    "mxf4": (tcgen05.MmaMXF4Op, (), 64, 32),
    "nvf4": (tcgen05.MmaMXF4NVF4Op, (E4M3,), 64, 16),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n", "group"), [("mxf8", 192, ONE), ("mxf4", 64, TWO), ("nvf4", 256, ONE), ("nvf4", 128, TWO)]
)
def test_factors_in_shared_and_tensor_memory(kind: str, n: int, group: tcgen05.CtaGroup) -> None:
    """In shared memory blocks are ordered along rows first; in tensor memory a block is four columns."""
    op, types, depth, vec = MMAS[kind]
    mma = cute.make_tiled_mma(op(*types, (128 * group.value, n, depth), group))
    tile = (128 * group.value, n, 8 * depth)
    for rows, make_smem, make_tmem in (
        (128, blockscaled.make_smem_layout_sfa, blockscaled.make_tmem_layout_sfa),
        (-(-n // 128) * 128, blockscaled.make_smem_layout_sfb, blockscaled.make_tmem_layout_sfb),
    ):
        smem = make_smem(mma, tile, vec, 2)
        tmem = make_tmem(mma, tile, vec, smem[None, None, None, 0])
        steps, blocks = 8 * depth // vec // 4, rows // 128
        assert cute.cosize(smem) == 2 * 512 * steps * blocks
        for row, step, column in itertools.product(range(0, rows, 13), range(8), range(0, depth, 8)):
            factor = (step * depth + column) // vec
            place = (row + rows * column, 0, step)
            at = 512 * (factor // 4 * blocks + row // 128) + byte_of(row % 128, factor % 4, 1)
            assert smem((*place, 1)) == at + 512 * steps * blocks
            columns = 4 * (factor // 4 * blocks + row // 128) + row % 128 // 32
            assert tmem(place) == (row % 32) * 2**18 + 4 * columns + factor % 4


COPIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Cp128x256bOp": lambda x: np.concatenate(np.split(x.reshape(256, 4), 2), 1),
    "Cp128x128bOp": lambda x: x.reshape(128, 4),
    "Cp2x64x128b0213Op": lambda x: np.tile(x.reshape(64, 4), (2, 1)),
    "Cp2x64x128b0123Op": lambda x: x.reshape(2, 1, 32, 4).repeat(2, 1).reshape(128, 4),
    "Cp4x32x128bOp": lambda x: np.tile(x.reshape(32, 4), (4, 1)),
}
"""Descriptor of a copy -> function from the words of shared memory to those of 128 lanes."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COPIES)
def test_copies_to_tensor_memory(name: str) -> None:
    """Two copies of random words, loaded by four warps."""
    op = getattr(tcgen05, name)
    rows = int(np.prod([int(x) for x in re.findall(r"\d+", name)[:-1] if x not in ("2", "4")][-1:]))
    rows = {"Cp4x32x128bOp": 32}.get(name, 64 if "64" in name else rows)
    words = 8 if "256b" in name else 4

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        thread = cute.arch.thread_idx().x
        slot, bar = cute.arch.alloc_smem(cute.Int32, 1), cute.arch.alloc_smem(cute.Int64, 1)
        words_of_shared = cute.make_layout((4, rows, words // 4, 2))
        shared = cute.smem_tensor(cute.Int32, words_of_shared, 128)
        cute.cooperative_copy(x, cute.make_tensor(shared.iterator, cute.make_layout(2 * rows * words)), thread, 128)
        tmem = utils.TmemAllocator(slot, cute.pipeline.NamedBarrier(1, 128))
        tmem.allocate(32)
        if thread == 0:
            cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.fence_proxy("async.shared", space="cta")
        tmem.wait_for_alloc()
        pointer = tmem.retrieve_ptr(cute.Int32)
        lanes = (32, 2) if name == "Cp2x64x128b0123Op" else rows
        steps = (65536, 64 * 65536) if name == "Cp2x64x128b0123Op" else 65536
        layout = cute.make_layout((4, lanes, words // 4, 2), stride=(1, steps, 4, words))
        target = cute.make_tensor(pointer, layout)
        copy = tcgen05.make_s2t_copy(cute.make_copy_atom(op(), cute.Int32), target)
        part = copy.get_slice(0)
        if cute.arch.warp_idx() == 0:
            cute.copy(copy, tcgen05.get_s2t_smem_desc_tensor(copy, part.partition_S(shared)), part.partition_D(target))
            tcgen05.commit(bar)
        cute.arch.mbarrier_wait(bar, 0)
        tcgen05.fence_after_thread_sync()
        whole = cute.make_tensor(pointer, cute.make_layout((128, 2 * words), stride=(65536, 1)))
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(2 * words)), cute.Int32)
        load = tcgen05.make_tmem_copy(atom, whole).get_slice(thread)
        values = cute.make_rmem_tensor(load.partition_D(out).shape, cute.Int32)
        cute.copy(load, load.partition_S(whole), values)
        cute.autovec_copy(values, load.partition_D(out))
        tcgen05.fence_before_thread_sync()
        cute.arch.sync_threads()
        tmem.relinquish_alloc_permit()
        tmem.free(pointer)

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=128)

    rng = np.random.default_rng(0)
    x = rng.integers(-(2**31), 2**31, 2 * rows * words).astype(np.int32)
    out = np.zeros((128, 2 * words), np.int32)
    checks = ("race", "uninit", "sync", "oob", "strict")
    compiled = cute.compile(
        run, cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(out), chip="sm_100a", device="cpu"
    )
    compiled(x, out, checks=checks)
    np.testing.assert_array_equal(out, np.concatenate([COPIES[name](part) for part in np.split(x, 2)], 1))


def scaled_gemms(program: Callable[..., None]) -> list[tuple[int, int, int, int]]:
    """Return the columns and the bytes of SFA and SFB of each MMA of ``program(mma, acc, a, b, sfa, sfb)``."""

    @cute.kernel
    def kernel() -> None:
        mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(E4M3, (128, 64, 32)))
        tile = (128, 64, 256)
        a, b = (
            mma_fragment(cute.smem_tensor(E4M3, layout.outer, 1024, layout.inner))
            for mma_fragment, layout in (
                (mma.make_fragment_A, blackwell.make_smem_layout_a(mma, tile, E4M3, 1)[None, None, None, 0]),
                (mma.make_fragment_B, blackwell.make_smem_layout_b(mma, tile, E4M3, 1)[None, None, None, 0]),
            )
        )
        pointer = cute.arch.retrieve_tmem_ptr(cute.Float32, 16, cute.arch.alloc_smem(cute.Int32, 1))
        acc = cute.make_tensor(pointer, mma.make_fragment_C(mma.partition_shape_C((128, 64))).layout)
        factors = [
            cute.make_tensor(
                cute.recast_ptr(pointer + start, dtype=E8M0),
                make_tmem(mma, tile, 32, make_smem(mma, tile, 32, 1)[None, None, None, 0]),
            )
            for start, make_smem, make_tmem in (
                (64, blockscaled.make_smem_layout_sfa, blockscaled.make_tmem_layout_sfa),
                (72, blockscaled.make_smem_layout_sfb, blockscaled.make_tmem_layout_sfb),
            )
        ]
        program(mma, acc, a, b, *factors)

    @cute.jit
    def run():
        kernel().launch(grid=1, block=32)

    text = cute.compile(run, chip="sm_100a", device="cpu").mlir("arch")
    found: list[tuple[int, int, int, int]] = []
    offsets: dict[str, int] = {}
    columns: dict[str, int] = {}
    for line in text.splitlines():  # Names are used again in other blocks.
        if m := re.search(r'(%\w+) = cute.static : !cute.int_tuple<"(\d+)">', line):
            offsets[m[1]] = int(m[2])
        elif m := re.search(r"(%\w+) = cute.add_offset\((%\w+), (%\w+)\) : \(!cute.ptr<(f8|f32)\w*, tmem", line):
            columns[m[1]] = columns[m[2]] + offsets[m[3]] // (4 if m[4] == "f8" else 1)
        elif m := re.search(r"(%\w+) = cute(?:_nvgpu.arch)?\.\w+\((%\w+).*tmem", line):
            columns[m[1]] = columns.get(m[2], 0)
        elif m := re.search(
            r"scaled_mma\(%\w+, %\w+, %\w+, (%\w+), (%\w+).*sf_a = (\d) : i32, sf_b = (\d) : i32", line
        ):
            found.append((columns[m[1]], columns[m[2]], int(m[3]), int(m[4])))
    return found


@pytest.mark.slow
def test_fields_and_pairs_of_operands_are_equal() -> None:
    """Pointers of single steps along K give the same bytes of factors as whole tensors."""

    def pairs(mma: Any, acc: Any, a: Any, b: Any, sfa: Any, sfb: Any) -> None:
        cute.gemm(mma, acc, [a, sfa], [b, sfb], acc)

    def fields(mma: Any, acc: Any, a: Any, b: Any, sfa: Any, sfb: Any) -> None:
        for k in cute.range_constexpr(8):
            mma.set(tcgen05.Field.SFA, sfa[None, None, k].iterator)
            mma.set(tcgen05.Field.SFB, sfb[None, None, k].iterator)
            cute.gemm(mma, acc, a[None, None, k], b[None, None, k], acc)
            mma.set(tcgen05.Field.ACCUMULATE, True)

    found = scaled_gemms(pairs)
    assert found == scaled_gemms(fields)
    assert found == [(64 + k // 4 * 4, 72 + k // 4 * 4, k % 4, k % 4) for k in range(8)]


@pytest.mark.slow
def test_a_loop_over_k_must_be_unrolled() -> None:
    def loop(mma: Any, acc: Any, a: Any, b: Any, sfa: Any, sfb: Any) -> None:
        for k in range(cute.arch.thread_idx().x + 1):
            mma.set(tcgen05.Field.SFA, sfa[None, None, k].iterator)
            mma.set(tcgen05.Field.SFB, sfb[None, None, k].iterator)
            cute.gemm(mma, acc, a[None, None, 0], b[None, None, 0], acc)

    with pytest.raises(cute.CompileError, match=r"the position of SFA in its column .* unroll the loop over K"):
        scaled_gemms(loop)
