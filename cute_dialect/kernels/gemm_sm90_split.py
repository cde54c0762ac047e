"""Hopper GEMM for few tiles and much K: blocks share the K of a tile and add up through global memory.

Block ``t * S + s`` multiplies part ``s`` of K of tile ``t``.  It writes its sums to a workspace, tells the other blocks
of the tile (one counter a tile), waits for them, adds what all wrote for the columns that it finishes in the order of
the parts (so that results do not depend on who came first), and stores those.  All blocks run at once:
there are at most as many as SMs.

The workspace belongs to one stream; ``counters`` must be zero before the first launch and is zero again after each.

>>> config = SplitConfig(parts=4)
>>> config.workspace(8192 // 256)           # f32 values for 32 tiles
4194304
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.gemm_sm90 import GemmEmitter
from cute_dialect.kernels.gemm_sm90_config import GemmConfig, head_of
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value

__all__ = ["SplitConfig", "gemm_sm90_split"]


class SplitConfig(NamedTuple):
    """``base``: tile, types and majors (no cluster, no batch, 16-bit output); ``parts``: blocks that share a tile."""

    base: GemmConfig = GemmConfig(cluster_m=1, cluster_n=2, deferred=False, serpentine=False)
    parts: int = 4

    def workspace(self, tiles: int) -> int:
        """Return floats that ``tiles`` tiles need."""
        return tiles * self.parts * self.base.tile[0] * self.base.tile[1]

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        base = self.base
        base.check()
        if base.cluster_m != 1 or base.batch or base.promote or base.deferred or base.output == "f32":
            raise ValueError(f"expected no cluster, batch, promotion or deferred store and 16-bit output, got {base}")
        chunks = base.tile[1] // base.chunk
        if self.parts < 2 or chunks % self.parts:
            raise ValueError(f"expected a number of parts that divides the {chunks} chunks of a tile, got {self.parts}")


def gemm_sm90_split(config: SplitConfig | None = None) -> str:
    """Return the file: kernel ``@gemm`` and host function ``@launch`` (A, B, C, workspace, counters).

    ``workspace``: at least :meth:`SplitConfig.workspace` f32; ``counters``: two i32 a tile.  Raises ValueError.
    """
    config = config or SplitConfig()
    config.check()
    b = Script()
    gemm = _SplitGemm(b, config)
    gemm.kernel()
    gemm.host()
    more = f"// {config.parts} blocks share the K of a tile and add up through a workspace."
    return b.script(f"{head_of(config.base)}\n//\n{more}")


class _SplitGemm(GemmEmitter):
    def __init__(self, b: Script, config: SplitConfig):
        super().__init__(b, config.base)
        self.parts = config.parts
        self.workspace_type = '!cute.memref<f32, gmem, align<16>, "?:1">'
        self.counters_type = '!cute.memref<i32, gmem, "?:1">'

    def more_arguments(self) -> dict[str, str]:
        return {"workspace": self.workspace_type, "counters": self.counters_type}

    def begin(self, parameters: tuple[Value, ...]) -> None:
        super().begin(parameters)
        self.workspace, self.counters = parameters[6:8]
        work = self.first_tile
        self.first_tile = work // self.parts
        self.part = work % self.parts
        self.tile = self.first_tile  # blocks that add up have the same number
        if self.rank is not None:
            self.tile = self.first_tile * self.c.cluster + self.rank
        # Part s takes the stages from s*K/S to (s+1)*K/S: none is empty if there are S of them.
        begin = self.part * self.k_tiles // self.parts
        self.k_begin = begin
        self.k_count = (self.part + 1) * self.k_tiles // self.parts - begin

    def produce(self) -> None:
        b, c = self.b, self.c
        zero = b.constant(0)
        done = self.early if c.early else zero
        if c.early:
            self.fetch_early_shared()
        place = self.place(self.first_tile)
        with b.for_(done, self.k_count, 1, [done % c.stages, (done // c.stages) & 1]) as loop:
            slot, phase = loop.args
            b.run("mbarrier_wait", self.empty(slot), phase ^ 1)
            b.run("mbarrier_arrive_expect_tx", self.full(slot), c.stage_bytes)
            self.fetch_a(slot, loop.iv + self.k_begin, place)
            self.fetch_b(slot, loop.iv + self.k_begin, place)
            loop.next(*self.next_slot(slot, phase))

    def consume(self) -> None:
        b, c = self.b, self.c
        zero = b.constant(0)
        place = self.place(self.first_tile)
        self.multiply(zero, zero)
        chunks = c.tile[1] // c.chunk
        own = chunks // self.parts
        thread = self.tid % 128
        # A chunk of one part: (4 values, vectors of a thread, threads, consumers, chunks, parts), 16 bytes a thread.
        vectors = c.chunk // 8
        size = 64 * c.chunk
        shape = f"(4,{vectors},128,{c.consumers},{chunks},{self.parts})"
        strides = f"(1,512,4,{size},{size * c.consumers},{size * c.consumers * chunks})"
        tile = self.tile * (size * c.consumers * chunks * self.parts)
        base = b.pointer(self.workspace, tile)
        base = b.op("cute.assume", base, type="!cute.ptr<f32, gmem, align<16>>")
        partials = b.view(base, f"{shape}:{strides}")
        copy = b.atom("!cute_nvgpu.atom.universal_copy<f32, 128 b>")
        registers = f"(4,{vectors}):(1,4)"
        for chunk in range(chunks):
            there = b.slice(partials, None, None, thread, self.consumer, chunk, self.part)
            b.copy(copy, b.view(b.pointer(self.accumulators, c.chunk // 2 * chunk), registers), there)
        self._meet()
        for mine in range(own):
            chunk_ = self.part * own + mine
            found = [b.registers(f'!cute.memref<f32, rmem, align<32>, "{registers}">') for _ in range(self.parts)]
            for part, values in enumerate(found):  # all loads before the first sum
                b.copy(copy, b.slice(partials, None, None, thread, self.consumer, chunk_, part), values)
            for values in found[1:]:
                self._add(found[0], values)
            if c.epilogue.active:
                self.fuse(found[0], c.chunk, (place[0], place[1] + chunk_ * c.chunk, place[2]))
            self._store(found[0], mine, chunk_, place)
        self.finish_stores()

    def _add(self, total: Value, more: Value) -> None:
        b = self.b
        with b.for_(0, self.c.chunk // 2) as each:  # register tensors: the loop is unrolled
            b.store(total, each.iv, b.load(total, each.iv) + b.load(more, each.iv))

    def _store(self, total: Value, buffer: int, chunk: Value, place: tuple[Value, Value, Value | None]) -> None:
        b, c = self.b, self.c
        out = b.registers(f'!cute.memref<{c.output}, rmem, "{self.values}">')
        with b.for_(0, c.chunk // 4) as loop:
            pair = loop.iv * 2
            narrow = b.op(
                "arith.truncf", b.load_vec(b.view(b.pointer(total, pair), "2:1")), type=f"vector<2x{c.output}>"
            )
            b.store_vec(narrow, b.view(b.pointer(out, pair), "2:1"))
        self.store_values(out, buffer % 2, chunk * c.chunk, place)

    def _meet(self) -> None:
        """Wait until all blocks of the tile have written what they had to."""
        b, c = self.b, self.c
        arrived, left = b.pointer(self.counters, self.tile * 2), b.pointer(self.counters, self.tile * 2 + 1)
        everyone = 128 * c.consumers
        b.run("named_barrier", 1, everyone)
        with b.if_(self.tid.eq(128)):
            b.run("fence_acq_rel", scope='"gpu"')  # after the barrier: it passes on what all have written
            b.arch("atomic_add", arrived, 1)
            with b.while_() as again:
                again(b.arch("load_acquire", arrived) < self.parts)
            # The last one to leave sets both back.
            with b.if_(b.arch("atomic_add", left, 1).eq(self.parts - 1)):
                b.arch("atomic_exch", arrived, 0)
                b.arch("atomic_exch", left, 0)
        b.run("named_barrier", 1, everyone)
        b.run("fence_acq_rel", scope='"gpu"')

    def launch(self, arguments: list[Value]) -> None:
        b, c = self.b, self.c
        blocks = arguments[3] * arguments[4] * (self.parts * c.cluster)
        b.do("cf.assert", blocks <= c.sms, msg=f'"more than {c.sms} blocks would have to run at once"')
        b.do("cf.assert", arguments[5] >= self.parts, msg=f'"K has fewer than {self.parts} stages"')
        b.launch("gemm", arguments, grid=blocks, threads=c.threads)
