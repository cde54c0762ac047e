"""One-warp kernels that execute each copy atom once, so that tests can compare its data movement with its table.

The kernels of the module are ``ldsm_x4_n`` … ``stsm_x2_t`` … ``cp_async_always_16`` … ``cp_async_always_16_zfill`` ….
All take ``(input, output)``, one-dimensional tensors of f16:

* ``ldsm``: the input holds the matrices, element ``e`` of row ``r`` of matrix ``j`` at ``e + 8r + 64j``.  The output
  holds the registers of the threads, value ``v`` of thread ``t`` at ``v + V*t``.
* ``stsm``: the reverse of ``ldsm``.
* ``cp_async``: thread ``t`` moves its run of values from the input through shared memory to the output.
  With ``zfill``, threads whose index is a multiple of three do not read, and their run becomes zero.
* ``movm``: input and output hold the registers of the threads, value ``v`` of thread ``t`` at ``v + V*t``.
* ``shuffle``: the same as ``movm``, for f32.
* ``bulk``: bulk copies move 4 KB of f32 through shared memory.  In ``bulk_rows``, 16 threads copy one row each;
  ``bulk_tile`` copies a tile whose rows have gaps in global memory.
* ``bulk_reduce_OP_TYPE``: the input is reduced into the output.

``python test/support/copy_atom_kernels.py FOLDER`` compiles them for the GPU tests.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kernel_modules import Use, module_text

import cute_dialect.lang as cute
from cute_dialect.arch.copies import BULK_REDUCTIONS
from cute_dialect.lang.nvgpu import BulkCopyOp, BulkReduceOp, LoadCacheMode, cpasync, warp

WARP = 32
TYPES = {
    "f16": cute.Float16, "bf16": cute.BFloat16, "f32": cute.Float32, "f64": cute.Float64, "s32": cute.Int32,
    "u32": cute.Uint32, "s64": cute.Int64, "u64": cute.Uint64, "b32": cute.Int32, "b64": cute.Int64,
}  # fmt: skip
"""PTX type -> type of the language."""


class CopyCase(NamedTuple):
    """One kernel: its name, the row of the table that it tests, and the atom."""

    name: str
    row: str
    op: Any
    dtype: Any = cute.Float16
    bits: int | None = None

    @property
    def store(self) -> bool:
        """True for ``stmatrix``."""
        return self.name.startswith("stsm")

    @property
    def zfill(self) -> bool:
        """True if some threads fill with zeros."""
        return self.name.endswith("zfill")

    @property
    def atom(self) -> Any:
        return cute.make_copy_atom(self.op, self.dtype, num_bits_per_copy=self.bits)


def cases() -> Iterator[CopyCase]:
    """Return all kernels of the module."""
    for order in "nt":
        for n in (1, 2, 4):
            row = f"{'U16x' if order == 't' else 'U32x'}{n * 2 if order == 't' else n}"
            letter = order.upper()
            load, store = warp.LdMatrix8x8x16bOp(order == "t", n), warp.StMatrix8x8x16bOp(order == "t", n)
            yield CopyCase(f"ldsm_x{n}_{order}", f"SM75_{row}_LDSM_{letter}", load)
            yield CopyCase(f"stsm_x{n}_{order}", f"SM90_{row}_STSM_{letter}", store)
    for cache, sizes in (("always", (4, 8, 16)), ("global", (16,))):
        for size in sizes:
            for zfill in ("", "_zfill"):
                yield CopyCase(
                    f"cp_async_{cache}_{size}{zfill}", f"SM80_CP_ASYNC_CACHE{cache.upper()}_{size}B{zfill.upper()}",
                    cpasync.CopyG2SOp(LoadCacheMode(cache)), bits=8 * size,
                )  # fmt: skip
    yield CopyCase("movm", "SM75_U32x1_MOVM_T", warp.MovMatrixOp())
    for n in (1, 4):
        yield CopyCase(f"shuffle_{n}", f"SM50_Shuffle_U32_2x2Trans_XOR{n}", warp.ShuffleOp(n), cute.Float32)
    yield CopyCase("shuffle_broadcast", "SM30_SHFL_IDX_U32_BROADCAST", warp.ShuffleOp(), cute.Float32)
    for name, bits in (("bulk", None), ("bulk_rows", 1024), ("bulk_tile", None)):
        yield CopyCase(name, "SM90_BULK_COPY_G2S", BulkCopyOp(), cute.Float32, bits)
    for operation, types in BULK_REDUCTIONS.items():
        for ptx_type in types:
            row = f"SM90_BULK_REDUCE_{operation.upper()}_S2G_{ptx_type.upper()}"
            yield CopyCase(f"bulk_reduce_{operation}_{ptx_type}", row, BulkReduceOp(operation), TYPES[ptx_type])


def copy_atom_kernels() -> str:
    """Return the text of the module."""
    return module_text([(MAKERS.get(case.name) or MAKERS[case.name.split("_")[0]])(case) for case in cases()])


def spread(source: Any, target: Any) -> None:
    """Copy element by element with all threads of the warp."""
    tid = cute.arch.thread_idx().x
    for start in cute.range_constexpr(0, cute.size(source), WARP):
        target[tid + start] = source[tid + start]


def matrices(case: CopyCase) -> Use:
    """Return the kernel of an ``ldmatrix`` or ``stmatrix`` atom."""
    held_tv = case.atom.layout_src_tv if case.store else case.atom.layout_dst_tv
    values, n = cute.size(held_tv, mode=[1]), cute.size(held_tv)
    memory = cute.Tensor[cute.Float16, f"{n}:1", "align<16>"]
    held = cute.Tensor[cute.Float16, f"({WARP},{values}):({values},1)", f"align<{values * 2}>"]

    @cute.kernel(name=case.name)
    def move(input: Any, output: Any):
        tid = cute.arch.thread_idx().x
        thread = cute.make_tiled_copy(case.atom, held_tv, (n,)).get_slice(tid)
        matrix = cute.smem_tensor(cute.Float16, cute.make_layout(n), 16)
        registers = cute.make_rmem_tensor(((values, 1), 1), cute.Float16)
        if case.store:
            for v in cute.range_constexpr(values):
                registers[v] = input[tid, v]
            cute.copy(case.atom, registers, thread.partition_D(matrix))
            cute.arch.sync_threads()
            spread(matrix, output)
        else:
            spread(input, matrix)
            cute.arch.sync_threads()
            cute.copy(case.atom, thread.partition_S(matrix), registers)
            for v in cute.range_constexpr(values):
                output[tid, v] = registers[v]

    return Use(move, (held, memory) if case.store else (memory, held))


def cp_async(case: CopyCase) -> Use:
    """Return the kernel of a ``cp.async`` atom, which moves runs of values through shared memory."""
    assert case.bits is not None
    values = case.bits // 16
    n = WARP * values
    memory = cute.Tensor[cute.Float16, f"{n}:1", f"align<{case.bits // 8}>"]

    @cute.kernel(name=case.name)
    def move(input: Any, output: Any):
        tid = cute.arch.thread_idx().x
        runs = cute.make_layout((WARP, values), stride=(values, 1))
        copy = cute.make_tiled_copy(case.atom, runs, (n,))
        thread = copy.get_slice(tid)
        through = cute.smem_tensor(cute.Float16, cute.make_layout(n), case.bits // 8)
        for start in cute.range_constexpr(0, n, WARP):
            through[tid + start] = cute.Float16(-7.0)
        cute.arch.sync_threads()
        flags = None
        if case.zfill:
            flags = cute.make_rmem_tensor((1, 1), cute.Boolean)
            flags[0] = tid % 3 != 0
        cute.copy(copy, thread.partition_S(input), thread.partition_D(through), pred=flags)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        spread(through, output)

    return Use(move, (memory, memory))


def registers(case: CopyCase) -> Use:
    """Return the kernel of an atom that moves data between registers."""
    values = 1 if case.name.endswith("broadcast") else 2
    memory = cute.Tensor[case.dtype, f"({WARP},{values}):({values},1)"]

    @cute.kernel(name=case.name)
    def move(input: Any, output: Any):
        tid = cute.arch.thread_idx().x
        before, after = (cute.make_rmem_tensor(values, case.dtype) for _ in range(2))
        for v in cute.range_constexpr(values):
            before[v] = input[tid, v]
        cute.copy(case.atom, before, after)
        for v in cute.range_constexpr(values):
            output[tid, v] = after[v]

    return Use(move, (memory, memory))


def bulk(case: CopyCase) -> Use:
    """Return a kernel that moves 4 KB through shared memory."""
    memory = cute.Tensor[cute.Float32, "1024:1", "align<16>"]

    @cute.kernel(name=case.name)
    def move(input: Any, output: Any):
        tid = cute.arch.thread_idx().x
        through = cute.smem_tensor(cute.Float32, cute.make_layout(1024), 128)
        bar = cute.arch.alloc_smem(cute.Int64, 1)
        if tid == 0:
            cute.prefetch(case.atom, input)
            cute.prefetch(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32), input)
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if tid == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 4096)
            cute.copy(case.atom, input, through, tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, 0)
        if tid == 0:
            cute.copy(case.atom, through, output)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)

    return Use(move, (memory, memory))


def bulk_by_parts(case: CopyCase) -> Use:
    """Return a kernel that moves rows of 32 values through shared memory.

    One thread or a tiled copy of 16 threads issues the copies.
    Tile rows start 48 elements apart in global memory and 36 apart in shared memory.
    """
    rows = case.name == "bulk_rows"
    memory = cute.Tensor[cute.Float32, f"(16,32):({32 if rows else 48},1)", "align<16>"]

    @cute.kernel(name=case.name)
    def move(input: Any, output: Any):
        tid = cute.arch.thread_idx().x
        through = cute.smem_tensor(cute.Float32, cute.make_layout((16, 32), stride=(36, 1)), 128)
        bar = cute.arch.alloc_smem(cute.Int64, 1)
        if tid == 0:
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 16 * 32 * 4)
        cute.arch.sync_threads()
        if rows:
            if tid < 16:
                row_each = cute.make_tiled_copy(case.atom, cute.make_layout((16, 32)), (16, 32))
                cute.copy(row_each, input, through, thread=tid, tma_bar_ptr=bar)
        elif tid == 0:
            cute.copy(case.atom, input, through, tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, 0)
        if tid == 0:
            cute.copy(case.atom, through, output)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)

    return Use(move, (memory, memory))


def bulk_reduce(case: CopyCase) -> Use:
    """Return a kernel that reduces 64 values from shared memory into global memory."""
    memory = cute.Tensor[case.dtype, "64:1", "align<16>"]

    @cute.kernel(name=case.name)
    def combine(input: Any, output: Any):
        through = cute.smem_tensor(case.dtype, cute.make_layout(64), 128)
        spread(input, through)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if cute.arch.thread_idx().x == 0:
            cute.copy(case.atom, through, output)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)

    return Use(combine, (memory, memory))


MAKERS = {
    "bulk_rows": bulk_by_parts,
    "bulk_tile": bulk_by_parts,
    **{f"bulk_reduce_{op}_{t}": bulk_reduce for op, types in BULK_REDUCTIONS.items() for t in types},
    "ldsm": matrices,
    "stsm": matrices,
    "cp": cp_async,
    "movm": registers,
    "shuffle": registers,
    "bulk": bulk,
}


def build(folder: str, chip: str = "sm_90a") -> str:
    """Compile the module into ``folder/copy_atoms`` and return the output of ptxas."""
    import os

    from cute_dialect.pipelines import compile as compile_cute

    module = compile_cute(
        copy_atom_kernels(), chip=chip, filename="copy_atoms.mlir", save=os.path.join(folder, "copy_atoms")
    )
    return module.report.strip()


if __name__ == "__main__":
    import sys

    print(build(sys.argv[1]))
