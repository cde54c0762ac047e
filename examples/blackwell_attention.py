"""Blackwell attention: ``O = softmax(scale * Q K^T) V`` with TMA, tcgen05.mma and weights in tensor memory.

A block computes 128 queries of a head, in steps of 128 keys. The scores S, their weights P and the result O are in
tensor memory:

- Warp 0 loads Q, and tiles of K and V into a ring of slots, by TMA.
- Warp 1 issues the MMAs: S = Q K^T, and O += P V, whose A operand P is in tensor memory.
- Warps 4 to 7 compute the softmax, one row per thread. They load S, and store P = exp2(S - maximum) with 16 bits.
- Warps 8 to 11 multiply O by exp2(old maximum - new maximum) if a maximum has grown by much, and store the result.

S and P have two slots each, so the next MMAs run during the softmax. P could take the columns of S: public kernels do
so, and rely on MMAs that execute in order. The PTX ISA does not order an MMA after an earlier one that reads the
columns it writes, so P has its own.

The interpreter runs the kernel without a GPU, and checks the order of its tcgen05 instructions by the text of the PTX
ISA (``checks="strict"``). The result is compared with float64. ``--bug`` selects a mistake that is reported.

python examples/blackwell_attention.py
python examples/blackwell_attention.py --queries 200 --keys 300 --causal --schedule adversarial
python examples/blackwell_attention.py --head-size 128
python examples/blackwell_attention.py --bug no-store-wait
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @kernel
# CHECK: cute_nvgpu.arch.tmem_alloc
# CHECK: cute.gemm({{.*}}A = tmem
# CHECK: cute.copy({{.*}}tmem_store<bf16, 32x32b, x32>
# CHECK: cute_nvgpu.arch.tmem_dealloc

# pyright: basic, reportOptionalMemberAccess=false

import argparse
import math
from typing import Any, NamedTuple

import torch

import cute_dialect.lang as cute
from cute_dialect.lang import blackwell, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05

BUGS = (
    "no-scores-wait", "no-weights-wait", "no-rescale-wait", "no-store-wait", "wrong-phase", "early-factor",
    "early-values", "overlap", "shared-columns", "first-adds", "no-proxy-fence", "never-freed", "no-rescale",
)  # fmt: skip
"""Mistakes.

The softmax does not wait for S; the MMAs do not wait for P, or until O is rescaled; P is committed before its stores
are complete; O is loaded after a wait for the wrong phase; the slot of a factor is released before its load; a slot of
V is released before the MMAs that read it; P lies in the columns of O, or in those of S; the first MMA adds to O; the
TMA store does not follow a proxy fence; tensor memory is not freed; O is not rescaled.
"""

TILE, HALF = 128, 64
"""Queries of a block and keys of a step, and scores that a thread holds at once."""
GROUP = 128
"""Threads of a warpgroup."""
SLACK = 8.0
"""Largest power of two by which a weight may exceed 1. O is rescaled only if it would be exceeded."""
INFINITY = float("inf")


class TensorMemory(NamedTuple):
    """Tensors in the 512 columns of tensor memory.

    Args:
        memory: the first column.
        layouts: layouts of S, P and O, for the MMAs.
        element: the type of P, of 16 bits.
        columns: the first columns of the slots of P, and the distance of two slots.
    """

    memory: cute.Pointer
    layouts: tuple[cute.Layout, cute.Layout, cute.Layout]
    element: type[cute.Numeric]
    columns: tuple[int, int]

    def scores(self, slot: Any) -> cute.Tensor:
        """Return a slot of S, in columns 0 to 255."""
        return cute.make_tensor(self.memory + slot * TILE, self.layouts[0])

    def weights(self, slot: Any) -> cute.Tensor:
        """Return a slot of P, which holds two elements per column."""
        first, distance = self.columns
        return cute.make_tensor(
            cute.recast_ptr(self.memory + (first + slot * distance), dtype=self.element), self.layouts[1]
        )

    def result(self) -> cute.Tensor:
        """Return O, from column 256 on."""
        return cute.make_tensor(self.memory + 2 * TILE, self.layouts[2])


class BlackwellAttention:
    """Attention of one configuration.

    Args:
        head: elements of a head, 64 or 128.
        causal: query i sees the keys up to i + keys - queries, and all keys otherwise.
        slots: number of slots of K and V in shared memory.
        bug: one of ``BUGS``, or "" for the correct kernel.
    """

    def __init__(self, head: int = 64, *, causal: bool = False, slots: int = 4, bug: str = ""):
        self.head, self.causal, self.slots, self.bug = head, causal, slots, bug

    def without(self, bug: str) -> bool | None:
        """Return the argument of a wait: None, or True for the bug, which omits the wait."""
        return True if self.bug == bug else None

    @cute.jit
    def __call__(self, Q: cute.Tensor, K: cute.Tensor, V: cute.Tensor, out: cute.Tensor, scale: cute.Float32):
        """Compute attention of (heads, rows, D) tensors. Scores are multiplied by ``scale``, which is positive."""
        element, head = Q.element_type, self.head
        Q, K, out = (cute.select(x, [1, 2, 0]) for x in (Q, K, out))  # (rows, D, heads)
        V = cute.select(V, [2, 1, 0])  # (D, keys, heads), as B of O = P V
        k, mn, one = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN, tcgen05.CtaGroup.ONE
        make, tmem = blackwell.make_trivial_tiled_mma, tcgen05.OperandSource.TMEM
        mma_s = make(element, k, k, cute.Float32, one, (TILE, TILE))
        mma_o = make(element, k, mn, cute.Float32, one, (TILE, head), tmem)
        of_s, of_o = (TILE, TILE, head), (TILE, head, TILE)  # (M, N, K)
        layouts = (
            blackwell.make_smem_layout_a(mma_s, of_s, element, 1),
            blackwell.make_smem_layout_b(mma_s, of_s, element, self.slots),
            blackwell.make_smem_layout_b(mma_o, of_o, element, self.slots),
            blackwell.make_smem_layout_epi(element, utils.LayoutEnum.ROW_MAJOR, (TILE, head), 1),
        )
        load, stage = cpasync.G2S(one), [0, 1, 2]
        maps = (
            cute.nvgpu.make_tiled_tma_atom_A(load, Q, cute.select(layouts[0], stage), of_s, mma_s),
            cute.nvgpu.make_tiled_tma_atom_B(load, K, cute.select(layouts[1], stage), of_s, mma_s),
            cute.nvgpu.make_tiled_tma_atom_B(load, V, cute.select(layouts[2], stage), of_o, mma_o),
            cpasync.make_tiled_tma_atom(cpasync.S2G(), out, cute.select(layouts[3], [0, 1]), (TILE, head)),
        )
        grid = (cute.ceil_div(out.shape[0], TILE), out.shape[2], 1)
        factor = scale * math.log2(math.e)
        extents = Q.shape[0], K.shape[0]
        self.kernel(maps, (mma_s, mma_o), layouts, extents, factor).launch(grid=grid, block=3 * GROUP)

    @cute.kernel(min_blocks=1)
    def kernel(self, maps: Any, mmas: Any, layouts: Any, extents: Any, factor: cute.Float32):
        """Compute 128 rows of a head. Scores times ``factor`` are the arguments of ``exp2``."""
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tile, head, _ = cute.arch.block_idx()
        (mma_s, mma_o), (queries, keys) = mmas, extents
        element = maps[0][0].value_type
        sQ, sK = (cute.smem_tensor(element, x.outer, 1024, x.inner) for x in layouts[:2])
        # A slot holds keys or values. The result overwrites Q.
        sV = cute.make_tensor(cute.recast_ptr(sK.iterator, layouts[2].inner, element), layouts[2].outer)
        sO = cute.make_tensor(cute.recast_ptr(sQ.iterator, layouts[3].inner, element), layouts[3].outer)
        factors = cute.smem_tensor(cute.Float32, cute.make_layout((TILE, 2)), 16)
        slot = cute.arch.alloc_smem(cute.Int32, 1)

        bytes = TILE * self.head * element.width // 8
        loads = {"producer_group": 1, "consumer_group": 1, "tx_count": bytes, "defer_sync": True}
        of_mma = {"producer_group": 1, "consumer_group": GROUP, "defer_sync": True}
        of_group = {"producer_group": GROUP, "num_stages": 2, "defer_sync": True}
        q = pipeline.PipelineTmaUmma.create(num_stages=1, **loads)
        kv = pipeline.PipelineTmaUmma.create(num_stages=self.slots, **loads)
        s = pipeline.PipelineUmmaAsync.create(num_stages=2, **of_mma)
        o = pipeline.PipelineUmmaAsync.create(num_stages=1, **of_mma)
        p = pipeline.PipelineAsyncUmma.create(consumer_group=1, **of_group)
        f = pipeline.PipelineAsync.create(consumer_group=GROUP, **of_group)
        allocator = utils.TmemAllocator(slot, pipeline.NamedBarrier(0, 3 * GROUP), allocator_warp_id=1)
        allocator.allocate(512)
        allocator.relinquish_alloc_permit()
        allocator.wait_for_alloc()
        pointer = allocator.retrieve_ptr(cute.Float32)
        s_layout = mma_s.make_fragment_C(mma_s.partition_shape_C((TILE, TILE))).layout
        p_layout = mma_o.make_fragment_A(mma_o.partition_shape_A((TILE, TILE))).layout
        o_layout = mma_o.make_fragment_C(mma_o.partition_shape_C((TILE, self.head))).layout
        columns = {"overlap": (256, 64), "shared-columns": (0, TILE)}.get(self.bug, (384, 64))
        tensors = TensorMemory(pointer, (s_layout, p_layout, o_layout), element, columns)

        seen = cute.min((tile + 1) * TILE + keys - queries, keys) if self.causal else keys
        steps = cute.max(cute.ceil_div(seen, TILE), 1)
        if warp == 0 and cute.arch.elect_one():
            self.load(maps[:3], mmas, (sQ, sK, sV), (tile, head), steps, (q.make_producer(), kv.make_producer()))
        elif warp == 1 and cute.arch.elect_one():
            ends = kv.make_consumer(), s.make_producer(), p.make_consumer(), o.make_producer()
            q.make_consumer().wait()
            self.multiply(mmas, (sQ, sK, sV), tensors, steps, ends)
        elif warp >= 8:
            row = cute.arch.thread_idx().x - 2 * GROUP
            self.correct(tensors.result(), row, steps, factors, o.make_consumer(), f.make_consumer(), sO)
            if row == 0:
                atom, target = maps[3]
                rows = cute.group_modes(cute.local_tile(target[None, None, head], (TILE, self.head), (tile, 0)), 0, 2)
                source = cute.group_modes(sO[None, None, 0], 0, 2)
                cute.copy(atom, *cpasync.tma_partition(atom, 0, cute.make_layout(1), source, rows))
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0, read=True)
        elif warp >= 4:
            row = cute.arch.thread_idx().x - GROUP
            end = cute.min(tile * TILE + row + 1 + keys - queries, keys) if self.causal else keys
            ends = s.make_consumer(), p.make_producer(), f.make_producer()
            self.softmax(tensors, row, end, steps, factor, factors, ends)
        cute.arch.sync_threads()  # The releases of O and P include the fence before.
        if cute.const_expr(self.bug != "never-freed"):
            allocator.free(pointer)

    def load(self, maps: Any, mmas: Any, smem: Any, place: Any, steps: Any, ends: Any) -> None:
        """Load the block's tile of Q, and the tiles of K and V: K of a step before V of the step before it."""
        (tile, head), (q, kv), (mma_s, mma_o) = place, ends, mmas
        of_s, of_o = mma_s.get_slice(0), mma_o.get_slice(0)
        key_tile, value_tile = (TILE, self.head), (self.head, TILE)
        parts = []
        for (atom, x), stages, partition, shape in zip(
            maps, smem, (of_s.partition_A, of_s.partition_B, of_o.partition_B), (key_tile, key_tile, value_tile)
        ):
            tiles = cute.group_modes(partition(cute.local_tile(x[None, None, head], shape, (None, None))), 0, 3)
            stages = cute.group_modes(stages, 0, 3)
            parts.append((atom, *cpasync.tma_partition(atom, 0, cute.make_layout(1), stages, tiles)))
        (of_q, to_q, tQ), (of_k, to_k, tK), (of_v, to_v, tV) = parts
        cute.copy(of_q, tQ[None, tile, 0], to_q[None, 0], tma_bar_ptr=q.acquire().barrier)
        for step in range(steps + 1):
            if step < steps:
                slot = kv.acquire_and_advance()
                cute.copy(of_k, tK[None, step, 0], to_k[None, slot.index], tma_bar_ptr=slot.barrier)
            if step > 0:
                slot = kv.acquire_and_advance()
                cute.copy(of_v, tV[None, 0, step - 1], to_v[None, slot.index], tma_bar_ptr=slot.barrier)
        kv.tail()  # The MMA warp commits the last slots, too.

    def multiply(self, mmas: Any, smem: Any, tensors: TensorMemory, steps: Any, ends: Any) -> None:
        """Issue the MMAs: S of a step before O of the step before it, which needs the weights."""
        (mma_s, mma_o), (kv, s, p, o), (sQ, sK, sV) = mmas, ends, smem
        rQ, rK, rV = mma_s.make_fragment_A(sQ), mma_s.make_fragment_B(sK), mma_o.make_fragment_B(sV)
        for step in range(steps + 1):
            if step < steps:
                slot, scores = kv.wait_and_advance(), s.acquire_and_advance()
                keys = rK[None, None, None, slot.index]
                cute.gemm(mma_s, tensors.scores(scores.index), rQ[None, None, None, 0], keys, accumulate=False)
                scores.commit()
                slot.release()
            if step > 0:
                slot, weights = kv.wait_and_advance(), p.wait_and_advance(self.without("no-weights-wait"))
                result = o.acquire_and_advance(self.without("no-rescale-wait"))
                if cute.const_expr(self.bug == "early-values"):
                    slot.release()
                values = rV[None, None, None, slot.index]
                adds = True if self.bug == "first-adds" else step > 1
                cute.gemm(mma_o, tensors.result(), tensors.weights(weights.index), values, accumulate=adds)
                if cute.const_expr(self.bug != "early-values"):
                    slot.release()
                if step < steps - 1:  # The softmax does not wait for the last two slots.
                    weights.release()
                result.commit()

    def softmax(
        self, tensors: TensorMemory, row: Any, end: Any, steps: Any, factor: Any, factors: cute.Tensor, ends: Any
    ) -> None:
        """Compute the weights of a row, which sees keys up to ``end``, and send the factors of its result."""
        s, p, f = ends
        most, total = cute.Float32(-INFINITY), cute.Float32(0.0)
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), cute.Float32)
        store = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), tensors.element)
        for step in range(steps):
            scores, visible = s.wait_and_advance(self.without("no-scores-wait")), end - step * TILE
            matrix = tensors.scores(scores.index)[(None, None), 0, 0]
            load_s = tcgen05.make_tmem_copy(load, matrix).get_slice(row)
            source = load_s.partition_S(matrix)
            # S is loaded twice, for the maximum and for the weights, so that a thread holds half a row.
            found = most
            for i in cute.range_constexpr(TILE // HALF):
                half = self.half_row(load_s, source[None, None, i], visible - i * HALF)
                found = cute.arch.fmax(found, half.load().max())
            after = found if (found - most) * factor > SLACK else most
            offset = after * factor if after != -INFINITY else cute.Float32(0.0)
            by = cute.math.exp2(most * factor - offset, fastmath=True)
            most, total = after, total * by
            if step > 0:
                self.send(f, factors, row, by)
            weights = p.acquire_and_advance()
            first = tensors.weights(weights.index).iterator
            matrix = cute.make_tensor(first, cute.make_layout((TILE, TILE), stride=(1 << 17, 1)))
            store_p = tcgen05.make_tmem_copy(store, matrix).get_slice(row)
            target = store_p.partition_D(matrix)
            for i in cute.range_constexpr(TILE // HALF):
                half = self.half_row(load_s, source[None, None, i], visible - i * HALF)
                for j in cute.range_constexpr(HALF):
                    half[j] = cute.math.exp2(cute.math.fma(half[j], factor, -offset), fastmath=True)
                total += half.load().reduce(cute.ReductionOp.ADD, 0.0, 0)
                rounded = cute.make_rmem_tensor((HALF, 1), tensors.element)
                rounded.store(half.load().to(tensors.element))
                cute.copy(store_p, rounded, target[None, None, i])
            scores.release()
            if cute.const_expr(self.bug != "no-store-wait"):
                cute.arch.fence_view_async_tmem_store()
            weights.commit()
        self.send(f, factors, row, 1.0 / total if total > 0.0 else cute.Float32(0.0))

    def half_row(self, load: Any, source: cute.Tensor, visible: Any) -> cute.Tensor:
        """Load half a row of scores. Those from ``visible`` on become -inf."""
        scores = cute.make_rmem_tensor((HALF, 1), cute.Float32)
        cute.copy(load, source, scores)
        if visible < HALF:
            for i in cute.range_constexpr(HALF):
                score = scores[i]
                scores[i] = score if i < visible else cute.Float32(-INFINITY)
        return scores

    def send(self, f: Any, factors: cute.Tensor, row: Any, by: cute.Float32) -> None:
        """Send the factor of a row of O to the warps that multiply it."""
        slot = f.acquire_and_advance()
        factors[row, slot.index] = by
        slot.commit()

    def correct(self, acc: cute.Tensor, row: Any, steps: Any, factors: Any, o: Any, f: Any, sO: cute.Tensor) -> None:
        """Rescale O before each step but the first, and write the result to shared memory."""
        matrix = acc[(None, None), 0, 0]
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)
        store = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), cute.Float32)
        load, store = (tcgen05.make_tmem_copy(x, matrix).get_slice(row) for x in (load, store))
        source, target = load.partition_S(matrix), store.partition_D(matrix)
        if cute.const_expr(self.bug == "wrong-phase"):
            o.advance()
        for step in range(steps):
            slot = f.wait_and_advance()
            if cute.const_expr(self.bug == "early-factor"):
                slot.release()
            by = factors[row, slot.index]
            if cute.const_expr(self.bug != "early-factor"):
                slot.release()
            result = o.wait_and_advance()
            if step < steps - 1:
                if self.bug != "no-rescale" and cute.arch.vote_any_sync(by != 1.0):
                    for i in cute.range_constexpr(self.head // 32):
                        part = cute.make_rmem_tensor((32, 1), cute.Float32)
                        cute.copy(load, source[None, None, i], part)
                        part.store(part.load() * by)
                        cute.copy(store, part, target[None, None, i])
                    cute.arch.fence_view_async_tmem_store()
            else:
                for i in cute.range_constexpr(self.head // 32):
                    part = cute.make_rmem_tensor((32, 1), cute.Float32)
                    cute.copy(load, source[None, None, i], part)
                    rounded = cute.make_rmem_tensor(32, sO.element_type)
                    rounded.store((part.load() * by).to(sO.element_type))
                    cute.autovec_copy(rounded, cute.local_tile(sO[row, None, 0], (32,), (i,)))
            result.release()
        if cute.const_expr(self.bug != "no-proxy-fence"):
            cute.arch.fence_view_async_shared()
        pipeline.NamedBarrier(1, GROUP).arrive_and_wait()


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention in float64, and a bound of the error: each weight and each result are rounded to 8 bits."""
    q, k, v = (x.double() for x in (q, k, v))
    scores = q @ k.transpose(1, 2) * scale
    if causal:
        last = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1]
        scores = scores.masked_fill(torch.arange(k.shape[1]) > last, -INFINITY)
    weights = torch.nan_to_num(torch.softmax(scores, 2))  # a query that sees no key has the result 0
    return weights @ v, 2**-8 * (weights @ v.abs() + (weights @ v).abs())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, extent in (("--heads", 1), ("--queries", 128), ("--keys", 400)):
        parser.add_argument(name, type=int, default=extent)
    parser.add_argument("--head-size", type=int, default=64, choices=[64, 128])
    parser.add_argument("--causal", action="store_true", help="query i sees the keys up to i + keys - queries")
    parser.add_argument("--bug", default="", choices=["", *BUGS])
    parser.add_argument(
        "--schedule",
        choices=("round-robin", "reverse", "random", "adversarial"),
        default="round-robin",
        help="order in which the interpreter runs the warps",
    )
    parser.add_argument("--device", default="cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.heads, args.queries, args.keys) < 1:
        parser.error("--heads, --queries and --keys must be at least 1")

    torch.manual_seed(0)
    head, extents = args.head_size, (args.queries, args.keys, args.keys)
    q, k, v = (torch.randn((args.heads, x, head)).bfloat16().to(args.device) for x in extents)
    q *= 3  # scores of a row differ by more than 2^8, so that O is rescaled
    out, scale = torch.full_like(q, torch.nan), 1 / math.sqrt(head)
    kernel = BlackwellAttention(head, causal=args.causal, bug=args.bug)
    attention = cute.compile(kernel, q, k, v, out, scale, device=args.device, chip="sm_100a")
    if args.print_ir:
        print(attention.mlir("trace"))
        return
    interpreted = {"checks": ("race", "oob", "uninit", "sync", "strict"), "schedule": args.schedule}
    attention(q, k, v, out, scale, **interpreted if args.device == "cpu" else {})
    wanted, bound = reference(q.cpu(), k.cpu(), v.cpu(), scale, args.causal)
    ratio = ((out.cpu().double() - wanted).abs() / bound.clamp(min=1e-30)).max().item()
    if not ratio <= 1:
        raise SystemExit(f"wrong result: the largest error is {ratio:.3g} times its bound")
    kind = ", causal" if args.causal else ""
    print(f"{args.heads} x {args.queries} x {args.keys} x {head}{kind} on {args.device}: correct")


if __name__ == "__main__":
    main()
