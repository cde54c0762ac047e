"""One-warp kernels that run each copy atom once, to compare what it moves with its table.

The kernels of one module: ``ldsm_x4_n`` … ``stsm_x2_t`` … ``cp_async_always_16`` … ``cp_async_always_16_zfill`` ….  All
take ``(input, output)``, one-dimensional tensors of f16:

* ``ldsm``: the input is the matrices, element ``e`` of row ``r`` of matrix ``j`` at ``e + 8r + 64j``; the output
  is what the threads got, value ``v`` of thread ``t`` at ``v + V*t``.
* ``stsm``: the other way round.
* ``cp_async``: thread ``t`` moves its run of values from the input through shared memory to the output.  With ``zfill``
  threads whose number is a multiple of three do not read, and their run becomes zero.

* ``movm``: input and output are what the threads hold, value ``v`` of thread ``t`` at ``v + V*t``.
* ``shuffle``: the same, of f32.
* ``bulk``: 4 KB of f32 through shared memory by bulk copies; ``bulk_rows``: a row each of 16 threads; ``bulk_tile``: a
  tile of rows that lie apart in global memory; ``bulk_reduce_OP_TYPE``: the input combined with the output.

``python -m cute_dialect.kernels.copy_atoms FOLDER`` compiles them for the GPU tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from cute_dialect.arch.async_copy import BULK_REDUCTIONS
from cute_dialect.arch.targets import DEFAULT_CHIP, DEFAULT_TARGET
from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.values import Value

__all__ = ["CopyCase", "build", "cases", "copy_atom_kernels"]

WARP = DEFAULT_TARGET.warp
_ELEMENTS = {"s32": "i32", "u32": "ui32", "s64": "i64", "u64": "ui64", "b32": "i32", "b64": "i64"}
"""Type of PTX -> ours, where they differ."""


class CopyCase(NamedTuple):
    """One kernel: its name, the row of the table it runs, the atom's type."""

    name: str
    row: str
    atom: str

    @property
    def store(self) -> bool:
        """Tell whether it is a ``stmatrix``."""
        return self.name.startswith("stsm")

    @property
    def zfill(self) -> bool:
        """Tell whether some threads fill with zeros."""
        return self.name.endswith("zfill")


def cases() -> Iterator[CopyCase]:
    """Return all kernels of the module."""
    for order in "nt":
        for matrices in (1, 2, 4):
            what = f"val_type = f16, num_matrices = {matrices}, {order}"
            row = f"{'U16x' if order == 't' else 'U32x'}{matrices * 2 if order == 't' else matrices}"
            letter = order.upper()
            yield CopyCase(f"ldsm_x{matrices}_{order}", f"SM75_{row}_LDSM_{letter}", f"!cute_nvgpu.atom.ldsm<{what}>")
            yield CopyCase(f"stsm_x{matrices}_{order}", f"SM90_{row}_STSM_{letter}", f"!cute_nvgpu.atom.stsm<{what}>")
    for cache, sizes in (("always", (4, 8, 16)), ("global", (16,))):
        for size in sizes:
            for zfill in ("", "_zfill"):
                yield CopyCase(
                    f"cp_async_{cache}_{size}{zfill}",
                    f"SM80_CP_ASYNC_CACHE{cache.upper()}_{size}B{zfill.upper()}",
                    f"!cute_nvgpu.atom.simt_async_copy<f16, cache = {cache}, {8 * size} b>",
                )
    yield CopyCase("movm", "SM75_U32x1_MOVM_T", "!cute_nvgpu.atom.movm<val_type = f16>")
    for n in (1, 4):
        atom = f"!cute_nvgpu.atom.shuffle<val_type = f32, transpose = {n}>"
        yield CopyCase(f"shuffle_{n}", f"SM50_Shuffle_U32_2x2Trans_XOR{n}", atom)
    yield CopyCase(
        "shuffle_broadcast", "SM30_SHFL_IDX_U32_BROADCAST", "!cute_nvgpu.atom.shuffle<val_type = f32, broadcast>"
    )
    yield CopyCase("bulk", "SM90_BULK_COPY_G2S", "")
    yield CopyCase("bulk_rows", "SM90_BULK_COPY_G2S", "!cute_nvgpu.atom.bulk_copy<f32, 1024 b>")
    yield CopyCase("bulk_tile", "SM90_BULK_COPY_G2S", "!cute_nvgpu.atom.bulk_copy<f32>")
    for operation, types in BULK_REDUCTIONS.items():
        for ptx_type in types:
            name = f"bulk_reduce_{operation}_{ptx_type}"
            atom = f"!cute_nvgpu.atom.bulk_reduce<{_ELEMENTS.get(ptx_type, ptx_type)}, {operation}>"
            yield CopyCase(name, f"SM90_{name.upper().replace(operation.upper(), operation.upper() + '_S2G')}", atom)


def copy_atom_kernels() -> str:
    """Return the text of the module."""
    b = Builder()
    for case in cases():
        maker = _MAKERS.get(case.name) or _MAKERS[case.name.split("_")[0]]
        maker(b, case)
    return b.text()


def _matrix(b: Builder, case: CopyCase) -> None:
    from cute_dialect.algebra.evaluation import size
    from cute_dialect.algebra.text import to_text
    from cute_dialect.algebra.values import layout_modes
    from cute_dialect.arch import copy_atom

    atom = copy_atom(case.row)
    ref = atom.in_elements("ref", 16)
    n, values = cast("int", size(ref)), cast("int", size(layout_modes(ref)[1]))
    tiled = f'!cute.tiled_copy<{case.atom}, layout_copy_tv = <"{to_text(ref)}">, tiler_mn = <"[{n}:1]">>'
    memory = f'!cute.memref<f16, gmem, align<16>, "{n}:1">'
    held = f'!cute.memref<f16, gmem, align<{values * 2}>, "({WARP},{values}):({values},1)">'
    with b.kernel(
        case.name, {"input": held if case.store else memory, "output": memory if case.store else held}, threads=WARP
    ) as (source, target):
        tid = b.thread_id()
        tc = b.tiled_copy(tiled)
        smem = b.alloc_smem(f'!cute.memref<f16, smem, align<16>, "{n}:1">')
        side = "D" if case.store else "S"
        part = b.partition(side, tc, smem, tid)
        registers = b.registers(f'!cute.memref<f16, rmem, "(({values},1),1):((1,0),0)">')
        if case.store:
            for v in range(values):
                b.store(registers, v, b.load(source, (tid, v)))
            b.copy(tc, registers, part)
            b.run("barrier")
            _spread(b, smem, target, n, tid)
        else:
            _spread(b, source, smem, n, tid)
            b.run("barrier")
            b.copy(tc, part, registers)
            for v in range(values):
                b.store(target, (tid, v), b.load(registers, v))


def _spread(b: Builder, source: Value, target: Value, n: int, tid: Value) -> None:
    for start in range(0, n, WARP):
        b.store(target, tid + start, b.load(source, tid + start))


def _cp_async(b: Builder, case: CopyCase) -> None:
    size = int(case.name.split("_")[3])
    values = size // 2
    n = WARP * values
    tv = f"({WARP},{values}):({values},1)"
    tiled = f'!cute.tiled_copy<{case.atom}, layout_copy_tv = <"{tv}">, tiler_mn = <"[{n}:1]">>'
    memory = f'!cute.memref<f16, gmem, align<{size}>, "{n}:1">'
    with b.kernel(case.name, {"input": memory, "output": memory}, threads=WARP) as (source, target):
        tid = b.thread_id()
        tc = b.tiled_copy(tiled)
        smem = b.alloc_smem(f'!cute.memref<f16, smem, align<{size}>, "{n}:1">')
        minus = b.constant(-7.0, "f16")
        for start in range(0, n, WARP):
            b.store(smem, tid + start, minus)
        b.run("barrier")
        from_, to = b.partition("S", tc, source, tid), b.partition("D", tc, smem, tid)
        flags: Value | None = None
        if case.zfill:
            flags = b.registers('!cute.memref<i1, rmem, "(1,1):(0,0)">')
            b.store(flags, 0, (tid % 3).ne(0))
        b.copy(tc, from_, to, pred=flags)
        b.run("cp_async_commit_group")
        b.run("cp_async_wait_group", n=0)
        b.run("barrier")
        _spread(b, smem, target, n, tid)


def _registers(b: Builder, case: CopyCase) -> None:
    values = 1 if case.name.endswith("broadcast") else 2
    element = "f16" if case.name == "movm" else "f32"
    memory = f'!cute.memref<{element}, gmem, "({WARP},{values}):({values},1)">'
    with b.kernel(case.name, {"input": memory, "output": memory}, threads=WARP) as (source, target):
        tid = b.thread_id()
        atom = b.atom(case.atom)
        before, after = (b.registers(f'!cute.memref<{element}, rmem, "{values}:1">') for _ in range(2))
        for v in range(values):
            b.store(before, v, b.load(source, (tid, v)))
        b.copy(atom, before, after)
        for v in range(values):
            b.store(target, (tid, v), b.load(after, v))


def _bulk(b: Builder, case: CopyCase) -> None:
    memory = '!cute.memref<f32, gmem, align<16>, "1024:1">'
    with b.kernel(case.name, {"input": memory, "output": memory}, threads=WARP) as (source, target):
        first = b.thread_id().eq(0)
        smem = b.alloc_smem('!cute.memref<f32, smem, align<128>, "1024:1">')
        bar = b.iterator(b.alloc_smem('!cute.memref<i64, smem, "1:0">'))
        with b.if_(first):
            b.run("bulk_prefetch", source)
            b.run("prefetch", source, level='"L2"')
            b.run("mbarrier_init", bar, 1)
            b.run("fence_mbarrier_init")
        b.run("barrier")
        with b.if_(first):
            b.run("mbarrier_arrive_expect_tx", bar, 4096)
            b.run("bulk_copy", source, smem, bar)
        b.run("mbarrier_wait", bar, 0)
        with b.if_(first):
            b.run("bulk_copy", smem, target)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)


def _bulk_by_atom(b: Builder, case: CopyCase) -> None:
    """Move rows of 32 values through shared memory, by ``cute.copy`` or by ``cute.tiled_copy`` of 16 threads.

    The rows of a tile lie 48 apart in global memory, and 36 in shared memory.
    """
    pitch = 32 if case.name == "bulk_rows" else 48
    memory = f'!cute.memref<f32, gmem, align<16>, "(16,32):({pitch},1)">'
    with b.kernel(case.name, {"input": memory, "output": memory}, threads=WARP) as (source, target):
        tid = b.thread_id()
        smem = b.alloc_smem('!cute.memref<f32, smem, align<128>, "(16,32):(36,1)">')
        bar = b.iterator(b.alloc_smem('!cute.memref<i64, smem, "1:0">'))
        with b.if_(tid.eq(0)):
            b.run("mbarrier_init", bar, 1)
            b.run("fence_mbarrier_init")
            b.run("mbarrier_arrive_expect_tx", bar, 16 * 32 * 4)
        b.run("barrier")
        atom = b.atom(case.atom)
        load = b.op("cute.atom.set_value", atom, bar, field='"tma_bar"')
        rows = case.name == "bulk_rows"
        with b.if_(tid < 16 if rows else tid.eq(0)):
            if rows:
                tv = 'layout_copy_tv = <"(16,32):(1,16)">, tiler_mn = <"[16:1;32:1]">'
                tc = b.op("cute.make_tiled_copy", load, type=f"!cute.tiled_copy<{case.atom}, {tv}>")
                b.do("cute.tiled_copy", tc, source, smem, b.coord(tid))
            else:
                b.copy(load, source, smem)
        b.run("mbarrier_wait", bar, 0)
        with b.if_(tid.eq(0)):
            b.copy(atom, smem, target)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)


def _bulk_reduce(b: Builder, case: CopyCase) -> None:
    element = case.atom.partition("<")[2].partition(",")[0]
    memory = f'!cute.memref<{element}, gmem, align<16>, "64:1">'
    with b.kernel(case.name, {"input": memory, "output": memory}, threads=WARP) as (source, target):
        tid = b.thread_id()
        smem = b.alloc_smem(f'!cute.memref<{element}, smem, align<128>, "64:1">')
        _spread(b, source, smem, 64, tid)
        b.run("fence_proxy_async")
        b.run("barrier")
        with b.if_(tid.eq(0)):
            b.copy(b.atom(case.atom), smem, target)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)


_MAKERS = {
    "bulk_rows": _bulk_by_atom,
    "bulk_tile": _bulk_by_atom,
    **{f"bulk_reduce_{op}_{t}": _bulk_reduce for op, types in BULK_REDUCTIONS.items() for t in types},
    "ldsm": _matrix,
    "stsm": _matrix,
    "cp": _cp_async,
    "movm": _registers,
    "shuffle": _registers,
    "bulk": _bulk,
}


def build(folder: str, chip: str = DEFAULT_CHIP) -> str:
    """Compile the module into ``folder/copy_atoms``; gives what ptxas says."""
    import os

    from cute_dialect.pipelines import compile as compile_cute

    module = compile_cute(
        copy_atom_kernels(), chip=chip, filename="copy_atoms.mlir", save=os.path.join(folder, "copy_atoms")
    )
    return module.report.strip()


if __name__ == "__main__":
    import sys

    print(build(sys.argv[1]))
