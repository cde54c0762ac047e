"""GEMM for sm_120: ``C[M,N] = A[M,K] * B[N,K]^T`` with TMA loads and ``mma.sync``.

A block computes one tile of C. One thread of a producer warp loads tiles of A and B to a ring of stages, 128 bytes of
K each, with a 128-byte swizzle. The other warps read fragments with ``ldmatrix`` and multiply them. Each stage has a
full and an empty mbarrier. The ring and the barriers fit in the 99 KiB of shared memory of a block. After the last
stage the ring holds the result, so that rows of C are stored in whole lines.

    element          MMA                             accumulator   majors of A and B
    f16, bf16        16x8x16                         f32           any
    f8E4M3FN …       16x8x32, kind f8f6f4            f32           k
    the same, mx     16x8x32, kind mxf8f6f4          f32           k
    f4E2M1FN, mx     16x8x64, kind mxf4              f32           k
    f4E2M1FN, nv     16x8x64, kind mxf4nvf4          f32           k

With ``scaling``, :func:`launch_scaled` takes two more matrices, ``scale_a`` (M, K/V) and ``scale_b`` (N, K/V).
They hold the factors of V elements along K: f8E8M0FNU and V = 32 for "mx", f8E4M3FN without sign and V = 16 for "nv".
Factors may also be passed as bytes (ui8).
Matrices of f4E2M1FN are bytes (M, K/2) and (N, K/2) of two elements each, the first in the low half.

TMA needs 16-byte aligned addresses and row strides. Extents are arbitrary. The kernel has been assembled and
interpreted, but never run on the chip.

>>> Sm120Config("f8E4M3FN", output="bf16").name
'f8E4M3FN-128x128x128-3-kk-sm120-bf16'
"""

# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable, Sequence
from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.arch.targets import TARGETS
from cute_dialect.kernels.common.elements import BITS, factors, number
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.cp_async_mainloop import TileStore, check_tile
from cute_dialect.kernels.gemm.mainloop import Operand
from cute_dialect.kernels.gemm.operands import check_extents, layouts_of, of_matrix
from cute_dialect.kernels.gemm.tcgen05_scales import FP4, VECTORS
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warp

CHIP = "sm_120a"
"""Default target for which the kernels are compiled. Those of sm_121 have the same code."""
_FP8 = ("f8E4M3FN", "f8E5M2")


class Sm120Config(NamedTuple):
    """Configuration of a GEMM for sm_120."""

    element: str = "bf16"  # type of A and B, two names joined by an underscore if they differ
    tile: tuple[int, int] = (128, 128)  # (M, N) of a block
    warps: tuple[int, int] = (2, 2)  # consumer warps along M and N
    stages: int = 3  # stages in shared memory
    majors: tuple[str, str] = ("k", "k")  # contiguous mode of A and of B, "k" or "mn"
    group: int = 8  # tile rows of a raster group, which share their B in the L2
    batch: bool = False  # A, B and C have a batch mode; its extent may be 1 for A or B (broadcast)
    output: str = ""  # type of C; empty for that of A and B
    epilogue: Epilogue = Epilogue()
    scaling: str = ""  # scale factors of A and B: "mx" or "nv"; empty for none
    chip: str = CHIP  # target for which the kernel is compiled

    @property
    def elements(self) -> tuple[str, str]:
        """Types of A and of B."""
        return factors(self.element)

    @property
    def result(self) -> str:
        """The type of C."""
        return self.output or self.elements[0]

    @property
    def packed(self) -> int:
        """Elements of A or B per element of its tensor: 2 of f4E2M1FN per byte."""
        return 2 if self.elements[0] == FP4 else 1

    @property
    def stored(self) -> tuple[str, str]:
        """Element types of the tensors A and B."""
        return ("ui8", "ui8") if self.packed == 2 else self.elements

    @property
    def line(self) -> int:
        """Elements of a tensor along K in a stage: 128 bytes."""
        return 1024 // BITS[self.stored[0]]

    @property
    def depth(self) -> int:
        """K of a stage."""
        return self.line * self.packed

    @property
    def consumers(self) -> int:
        """Number of warps that multiply."""
        return self.warps[0] * self.warps[1]

    @property
    def threads(self) -> int:
        return 32 * (self.consumers + 1)

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B in a stage."""
        return sum(self.tile) * 128

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block: the ring, and two mbarriers per stage."""
        return self.stages * (self.stage_bytes + 16)

    @property
    def most_stages(self) -> int:
        """Number of stages of this tile that fit in shared memory, at most 16."""
        return min(16, TARGETS[CHIP].shared // (self.stage_bytes + 16))

    @property
    def name(self) -> str:
        """Name of the kernel."""
        more = differing(self, {"batch": "-b", "scaling": "-{}"}) + f"-w{by(self.warps)}" * (self.warps != (2, 2))
        more += f"-{self.output}" * (self.result != self.elements[0])
        majors = "".join(x[0] for x in self.majors)
        tile = by((*self.tile, self.depth))
        return f"{self.element}-{tile}-{self.stages}-{majors}-sm{TARGETS[self.chip].number}{more}{self.epilogue.suffix}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        a, b = self.elements
        if not ((a == b and a in ("f16", "bf16", FP4)) or (a in _FP8 and b in _FP8)):
            raise ValueError(
                f"element {self.element!r} is not supported; use f16, bf16, {FP4}, or two of {', '.join(_FP8)}"
            )
        scalings = {"f16": ("",), "bf16": ("",), FP4: ("mx", "nv")}.get(a, ("", "mx"))
        graph = self.epilogue.graph
        elementwise = graph is not None and not (graph.paired or graph.reduces or graph.whole_rows)
        other = self.epilogue not in (Epilogue(), Epilogue(bias="n")) and not elementwise
        if self.scaling not in scalings or (self.scaling and (other or self.batch)):
            known = " or ".join(repr(x) for x in scalings)
            raise ValueError(
                f"scaling={self.scaling!r} of {a}: use {known}, without a batch or an epilogue other than a bias per "
                "column or an elementwise graph"
            )
        if BITS[self.stored[0]] == 8 and self.majors != ("k", "k"):
            raise ValueError(f"majors are {self.majors}; 8-bit and 4-bit operands must be contiguous along K")
        if self.result not in ("f16", "bf16", "f32"):
            raise ValueError(f"output {self.result!r} is not supported; use f16, bf16 or f32")
        m, n = self.tile
        check_tile(self.tile, self.warps, (16, 16), self.stages)
        accumulators = m * n // (32 * self.consumers)
        if self.scaling == "nv" and accumulators > 64:
            raise ValueError(f"a thread has {accumulators} accumulators; scaling='nv' allows 64: use a smaller tile")
        limit, staged = TARGETS[CHIP].shared, TileStore.size(number(self.result), 16 * self.warps[0], n)
        if self.shared_bytes > limit:
            most = limit // (self.stage_bytes + 16)
            cure = f"use at most {most} stages, or a smaller tile" if most >= 2 else "use a smaller tile"
            raise ValueError(
                f"{self.stages} stages need {self.shared_bytes} bytes of shared memory, but sm_120 has {limit} per "
                f"block; {cure}"
            )
        if staged > self.stages * self.stage_bytes:
            raise ValueError(
                f"the epilogue needs {staged} bytes of shared memory, but {self.stages} stages have "
                f"{self.stages * self.stage_bytes}; use more stages"
            )
        self.epilogue.check()


DEFAULT = Sm120Config()


@cute.jit(options=f"--gpu-arch {CHIP}")
def launch(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None,
    alpha: cute.Float32 | None = None,
    beta: cute.Float32 | None = None,
    operands: object = None,
    config: cute.Constexpr[Sm120Config] = DEFAULT,
):
    """Launch one block per tile of C. The arguments after C belong to the epilogue."""
    addends = Addends(source, bias, alpha, beta, operands)
    _check_scaling(config, are_given=False)
    operands = None if operands == () else operands
    given = {"source": source, "bias": bias, "alpha": alpha, "beta": beta, "operands": operands}
    read = config.epilogue.arguments(config.result, batch=config.batch, vectors=False)
    for name, x in given.items():
        if (x is not None) != (name in read):
            what = f"reads {name}; pass it" if x is None else f"does not read {name}; omit it, or change the epilogue"
            raise ValueError(f"launch: the epilogue of this configuration {what}")
    config.epilogue.check_shapes(C, addends, pairs=False)
    _launch(A, B, C, None, addends, config)


@cute.jit(name="launch", options=f"--gpu-arch {CHIP}")
def launch_scaled(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    scale_a: cute.Tensor,
    scale_b: cute.Tensor,
    config: cute.Constexpr[Sm120Config] = DEFAULT,
    bias: cute.Tensor | None = None,
    operands: object = None,
):
    """Launch one block per tile of C, with scale factors of A and B.

    Args:
        A, B, C: matrices (M, K), (N, K) and (M, N); f4E2M1FN matrices are bytes (M, K/2) and (N, K/2).
        scale_a, scale_b: factors (M, K/V) and (N, K/V), of type f8E8M0FNU ("mx") or f8E4M3FN ("nv"), or their bytes.
        config: the kernel; its ``scaling`` is "mx" (V = 32) or "nv" (V = 16).
        bias: vector (N), for a configuration whose epilogue has a bias.
        operands: operands of a configuration whose epilogue is a graph.
    """
    _check_scaling(config, are_given=True)
    factor = _FACTORS[config.scaling]
    for name, x, rows in (("scale_a", scale_a, A), ("scale_b", scale_b, B)):
        if cute.rank(x) != 2:
            raise ValueError(f"launch_scaled: {name} must be a matrix (rows, K/{VECTORS[config.scaling]}), got {x}")
        if x.element_type not in (factor, cute.Uint8):
            raise ValueError(
                f"launch_scaled: {name} must have elements {factor}, or their bytes as ui8, for "
                f"scaling={config.scaling!r}, got {x}"
            )
        assert x.shape[0] == rows.shape[0], f"{name} must have one row per row of the matrix"
        assert x.shape[1] == cute.ceil_div(A.shape[1] * config.packed, VECTORS[config.scaling]), (
            f"{name} must have one column per {VECTORS[config.scaling]} of K"
        )
    if (bias is not None) != bool(config.epilogue.bias):
        what = "omit bias" if bias is not None else "pass bias"
        raise ValueError(
            f"launch_scaled: the epilogue has bias={config.epilogue.bias!r}; {what}, or change the epilogue"
        )
    addends = Addends(None, bias, operands=operands)
    config.epilogue.check_shapes(C, addends, pairs=False)
    _launch(A, B, C, (scale_a, scale_b), addends, config)


def _check_scaling(c: Sm120Config, *, are_given: bool) -> None:
    """Raise ValueError if no kernel supports a configuration, or if it contradicts the scale factors of a call."""
    c.check()
    if bool(c.scaling) != are_given:
        call, other = ("launch_scaled", "launch") if are_given else ("launch", "launch_scaled")
        what = "has no scale factors" if are_given else "needs scale factors"
        raise ValueError(f"{call}: a configuration with scaling={c.scaling!r} {what}; use {other}")


def _launch(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    scales: tuple[cute.Tensor, cute.Tensor] | None,
    addends: Addends,
    c: Sm120Config,
) -> None:
    _check_scaling(c, are_given=scales is not None)
    for name, x, element in zip("ABC", (A, B, C), (*c.stored, c.result)):
        if x.element_type is not number(element):
            raise ValueError(f"launch: {name} must be of {element}, got {x}")
    if C.leading_dim == 0:
        raise ValueError(f"launch: C must have contiguous rows, got {C}")
    matrices = check_extents(A, B, C)
    (m, n), k = c.tile, c.line
    by_rows, by_columns = layouts_of(batch=c.batch, div=128 // BITS[c.stored[0]], whole=False)
    promised = [
        cute.promise(x, by_rows if major == "k" else by_columns, align=16).view for x, major in zip((A, B), c.majors)
    ]
    rings = [_ring(x, rows, c) for x, rows in zip(promised, (m, n))]
    loads = [_load_map(x, ring, (rows, k), c) for x, ring, rows in zip(promised, rings, (m, n))]
    raster = utils.GroupedRaster(cute.ceil_div(C.shape[:2], (m, n)), c.group, matrices=matrices)
    k_tiles = cute.ceil_div(A.shape[1], k)
    gemm(loads, rings, C, raster, k_tiles, scales, addends, c).launch(grid=raster.count(), block=c.threads)


def _ring(matrix: cute.Tensor, rows: int, c: Sm120Config) -> cute.Layout | cute.ComposedLayout:
    """Return the shared-memory layout (rows, K, stages) of an operand's stages: 128-byte lines, swizzled."""
    order = utils.LayoutEnum.from_tensor(matrix)
    return hopper.make_smem_layout_a(order, (rows, None, c.line), matrix.element_type, c.stages)


def _load_map(
    matrix: cute.Tensor, ring: cute.Layout | cute.ComposedLayout, tile: tuple[int, int], c: Sm120Config
) -> tuple[cute.CopyAtom, cute.Tensor]:
    """Return the TMA atom that loads tiles of a matrix, and its coordinate tensor."""
    tiler = (*tile, 1) if c.batch else tile
    assert isinstance(ring, cute.ComposedLayout)
    box = cute.append_ones(cute.slice_(ring.outer, (None, None, 0)), len(tiler))
    stage = cute.make_composed_layout(ring.inner, 0, box)
    found = cpasync.make_tiled_tma_atom(cpasync.G2S(), matrix, stage, tiler, l2_promotion=128)
    return found.atom, found.tma_tensor


@cute.kernel(min_blocks=1)
def gemm(
    loads: Sequence[object],
    rings: Sequence[cute.ComposedLayout],
    C: cute.Tensor,
    raster: utils.GroupedRaster,
    k_tiles: cute.Int32,
    scales: Sequence[cute.Tensor] | None,
    addends: Addends,
    config: cute.Constexpr[Sm120Config],
):
    """Compute a tile of C."""
    c, thread = config, cute.arch.thread_idx().x
    (m, n), k = c.tile, c.line
    row, column, *matrix = raster.place(cute.arch.block_idx().x)
    index = matrix[0] if matrix else None
    sA, sB = (cute.smem_tensor(number(element), ring.outer, 1024, ring.inner) for element, ring in zip(c.stored, rings))
    a = Operand(loads[0], sA, (m, k), 1, 0, k_major=c.majors[0] == "k", batch=c.batch)
    b = Operand(loads[1], sB, (n, k), 1, 0, k_major=c.majors[1] == "k", batch=c.batch)
    ring = pipeline.PipelineTmaAsync.create(
        num_stages=c.stages,
        producer_group=1,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, c.consumers),
        tx_count=c.stage_bytes,
    )
    producer, consumer = ring.make_participants()
    products = Products(c, sA, sB, thread, scales, (row, column))
    if cute.arch.warp_idx() == c.consumers:
        if cute.arch.elect_one():
            for i in range(k_tiles):
                slot = producer.acquire_and_advance()
                a.fetch(slot.index, slot.barrier, row, i, index)
                b.fetch(slot.index, slot.barrier, column, i, index)
    else:
        for i in range(k_tiles):
            slot = consumer.wait_and_advance()
            products.multiply(slot.index, i)
            slot.release()
    _, _, C, addends = of_matrix(None, None, C, addends, matrix)
    _store(c, products, C, addends, (row, column), sA.iterator, index)


class Products:
    """Main loop of the consumer warps: fragments that ``ldmatrix`` loads, and their accumulator."""

    def __init__(
        self,
        c: Sm120Config,
        sA: cute.Tensor,
        sB: cute.Tensor,
        thread: cute.Int32,
        scales: Sequence[cute.Tensor] | None,
        where: tuple[cute.Int32, cute.Int32],
    ):
        self.c, kinds = c, [number(x) for x in c.stored]
        narrow = kinds[0].width == 8
        self.step = 32 if narrow else 16
        wm, wn = c.warps
        # Two MMAs along N are adjacent in a warp, so that one ldmatrix serves both.
        cover = (16 * wm, 16 * wn, None)
        self.mma = cute.make_tiled_mma(_instruction(c), (wm, wn, 1), cover)
        # Two elements of 4 bits per byte: fragments are those of an MMA of bytes.
        loading = cute.make_tiled_mma(warp.MmaI8Op(*kinds), (wm, wn, 1), cover) if c.packed == 2 else self.mma
        # The producer warp takes the place of the first consumer warp, but computes nothing.
        self.mine = thread < 32 * c.consumers
        self.thread = thread % (32 * c.consumers)
        self.part = self.mma.get_slice(self.thread)
        self.acc = self.mma.make_fragment_C(self.mma.partition_shape_C(c.tile))
        self.acc.fill(0)
        part = loading.get_slice(self.thread)
        self.rA = loading.make_fragment_A(part.partition_A(sA[None, None, 0]))
        self.rB = loading.make_fragment_B(part.partition_B(sB[None, None, 0]))
        copies = []
        for kind, major, make, ring, fragment in (
            (kinds[0], c.majors[0], cute.make_tiled_copy_A, sA, self.rA),
            (kinds[1], c.majors[1], cute.make_tiled_copy_B, sB, self.rB),
        ):
            load = warp.LdMatrix8x16x8bOp if narrow else warp.LdMatrix8x8x16bOp
            copy = make(cute.make_copy_atom(load(major == "mn", 4), kind), loading)
            copies.append((copy, copy.get_slice(self.thread).partition_S(ring), copy.retile(fragment)))
        self.copies = copies
        self.factors: tuple[Factors, ...] = ()
        if scales is not None:
            (m, n), blocks = c.tile, c.depth // VECTORS[c.scaling]
            a, b = (cute.recast_tensor(x, _FACTORS[c.scaling]) for x in scales)
            self.factors = (
                Factors(a, (m, blocks), where[0], self.part.partition_SFA, self.mma.make_fragment_SFA),
                Factors(b, (n, blocks), where[1], self.part.partition_SFB, self.mma.make_fragment_SFB),
            )

    def multiply(self, stage: cute.Int32, tile: cute.Int32 | int) -> None:
        """Multiply a stage, which holds tile ``tile`` of K."""
        for one in self.factors:
            one.load(tile)
        for j in range(self.c.line // self.step):
            for copy, source, target in self.copies:
                cute.copy(copy, source[None, None, j, stage], target[None, None, j])
            at = (None, None, j)
            if self.c.scaling:
                sfa, sfb = (factors.held[at] for factors in self.factors)
                a, b = (_unpacked(x[at]) if self.c.packed == 2 else x[at] for x in (self.rA, self.rB))
                cute.gemm(self.mma, self.acc, [a, sfa], [b, sfb], accumulate=True)
            else:
                cute.gemm(self.mma, self.acc, self.rA[at], self.rB[at], accumulate=True)


def _unpacked(fragment: cute.Tensor) -> cute.Tensor:
    """Return a fragment of bytes as one of f4E2M1FN, with the same registers."""
    values, atoms = cute.size(fragment, mode=[0]) * 2, cute.size(fragment, mode=[1])
    found = cute.make_rmem_tensor((values, atoms), cute.Float4E2M1FN)
    found.store(fragment.load().bitcast(cute.Float4E2M1FN).reshape((values, atoms)))
    return found


_FACTORS = {"mx": cute.Float8E8M0FNU, "nv": cute.Float8E4M3FN}
"""Scaling -> type of the factors."""


def _instruction(
    c: Sm120Config,
) -> warp.MmaF16BF16Op | warp.MmaF8F6F4Op | warp.MmaMXF8F6F4Op | warp.MmaMXF4Op | warp.MmaMXF4NVF4Op:
    a, b = (number(x) for x in c.elements)
    if c.packed == 2:
        return warp.MmaMXF4Op() if c.scaling == "mx" else warp.MmaMXF4NVF4Op()
    if c.scaling:
        return warp.MmaMXF8F6F4Op(a, b)
    return warp.MmaF8F6F4Op(a, b) if a.width == 8 else warp.MmaF16BF16Op(a, cute.Float32)


class Factors:
    """Scale factors of one operand that a thread holds for a stage.

    Args:
        matrix: The factors (rows, K / V).
        tile: Rows and factors per row of a stage.
        row: Row of the tile, in tiles.
        partition, fragment: Functions of the tiled MMA for this operand.
    """

    def __init__(
        self,
        matrix: cute.Tensor,
        tile: tuple[int, int],
        row: cute.Int32,
        partition: Callable[[cute.Tensor], cute.Tensor],
        fragment: Callable[[cute.Tensor], cute.Tensor],
    ):
        self.matrix = matrix
        self.parts = partition(cute.local_tile(matrix, tile, (row, None)))
        self.ids = partition(cute.local_tile(cute.make_identity_tensor(matrix.shape), tile, (row, None)))
        self.held = fragment(self.parts[None, None, None, 0])

    def load(self, tile: cute.Int32 | int) -> None:
        """Load the factors of a tile of K. Those past the end are 1, since their elements of A or B are 0."""
        source, ids = self.parts[None, None, None, tile], self.ids[None, None, None, tile]
        for i in range(cute.size(self.held)):  # held in registers, so the passes unroll this loop
            self.held[i] = self.matrix.element_type(1.0)
            if cute.elem_less(ids[i], self.matrix.shape):
                self.held[i] = source[i]


def _store(
    c: Sm120Config,
    products: Products,
    C: cute.Tensor,
    addends: Addends,
    where: tuple[cute.Int32, cute.Int32],
    memory: cute.Pointer,
    matrix: cute.Int32 | None,
) -> None:
    """Apply the epilogue to the accumulator and store it through the ring, which all warps have read."""
    acc = products.acc
    if c.epilogue.active:
        ids = products.part.partition_C(cute.local_tile(cute.make_identity_tensor(C.shape), c.tile, where))
        fused = Fused(c.epilogue, addends)
        acc = fused.taken(acc)
        if products.mine:
            fused.apply_each(acc, ids, matrix)
    out = cute.make_rmem_tensor_like(acc, C.element_type)
    out.store(acc.load().to(C.element_type))
    memory = cute.recast_ptr(memory, cute.make_swizzle(0, 4, 3), cute.Uint8)
    store = TileStore(C, c.tile, where, products.part, 16 * c.warps[0], memory, cute.arch.thread_idx().x, c.threads)
    store.write(out, products.mine)


@printed
def sm120_gemm_text(config: Sm120Config | None = None) -> cute.Compiled:
    """Trace the kernel and the host function ``launch(A, B, C)``, followed by the arguments of the epilogue."""
    c = config or DEFAULT
    c.check()
    by_rows, by_columns = layouts_of(batch=c.batch, div=128 // BITS[c.stored[0]], whole=False)
    rows, _ = layouts_of(batch=c.batch)
    a, b = (
        cute.Tensor[number(element), by_rows if major == "k" else by_columns, "align<16>"]
        for element, major in zip(c.stored, c.majors)
    )
    target = cute.Tensor[number(c.result), rows]
    if c.scaling:
        factors_of_rows = cute.Tensor[cute.Uint8, "(?,?):(?,1)"]
        behind = c.epilogue.arguments(c.result, vectors=False)
        return cute.trace(
            launch_scaled, a, b, target, scale_a=factors_of_rows, scale_b=factors_of_rows, **behind, config=c
        )
    behind = c.epilogue.arguments(c.result, batch=c.batch, vectors=False)
    return cute.trace(launch, a, b, target, **behind, config=c)
