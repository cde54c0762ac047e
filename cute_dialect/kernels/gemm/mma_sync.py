"""GEMM with ``mma.sync`` for types that are not 16-bit: ``C[M,N] = A[M,K] * B[N,K]^T`` of f64, tf32 and 8-bit types.

f32 and f64 are also supported without tensor cores. The structure is that of the sm_80 kernel
(:mod:`cute_dialect.kernels.gemm.ampere`), built from :mod:`cute_dialect.kernels.gemm.cp_async_mainloop`. Kernels
``gemm_16`` to ``gemm`` copy 16, 8 or 4 bytes, or single elements. The launch picks the first one whose alignment
requirements are met, so it accepts any stride, major and extent. ``ldmatrix`` transposes 16-bit elements only, so
fragments are read by plain shared-memory loads. Padding the rows of a stage avoids bank conflicts.

    element      MMA                              accum.  results
    f64          16x8x8 of f64                    f64     f64
    tf32         16x8x8 of f32, rounded           f32     f32, f16, bf16
    i8, ui8      16x8x32, mixed signedness        i32     i32, i8, ui8, f16, bf16, f32
    8-bit float  16x8x16 of f16, exactly          f32     f16, bf16, f32, e4m3, e5m2
    f32          an FMA (``simt``), or ``math``   f32     f32, f16, bf16

    launch(a, b, c)                                              # arrays; the first call of a specialization compiles

>>> WarpConfig("i8_ui8", "i32", ("k", "mn")).name
'i8_ui8-i32-km-warps'
"""

# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import BITS, factors, number, outputs_of, rounded, sums_of
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused, is_exact
from cute_dialect.kernels.gemm.cp_async_mainloop import (
    BlocksOfK,
    Staged,
    TileStore,
    WarpsOfK,
    check_tile,
    contiguous_mode,
    over_k,
    over_k_ahead,
    plain_shape,
)
from cute_dialect.kernels.gemm.mainloop import Shared
from cute_dialect.kernels.gemm.operands import PLACES, check_extents, count_of, layouts_of, of_matrix
from cute_dialect.kernels.gemm.split_tf32 import parts_of
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import warp


class WarpConfig(NamedTuple):
    """Configuration of a GEMM with ``mma.sync``, or without tensor cores (``simt``)."""

    element: str = "f64"  # type of A and B, two names joined by an underscore if they differ
    output: str = "f64"  # type of C
    majors: tuple[str, str] = ("k", "k")  # contiguous mode of A and of B, "k" or "mn"
    batch: bool = False  # A, B and C have a batch mode; its extent may be 1 for A or B (broadcast)
    tile: tuple[int, int] = (128, 128)  # (M, N) of a block
    warps: tuple[int, int] = (4, 2)  # along M and N
    stages: int = 3  # stages in shared memory
    vectors: tuple[int, ...] = (16, 8, 4, 1)  # bytes per copy, one kernel each; 1 for single elements
    epilogue: Epilogue = Epilogue()
    k: int = 0  # K of a stage; 0 for 128 bytes
    array: bool = False  # pointer-array batch (see gemm/operands.py, places_of)
    warps_k: int = 1  # warps along K
    math: str = ""  # f32 on tensor cores: "fast_f32" (three tf32 MMAs), "fast_f16" or "fast_bf16"
    saturate: bool = False  # integer accumulators saturate to i32
    simt: bool = False  # f32 or f64 without tensor cores
    step: int = 0  # K of an MMA; 0 for the default
    ahead: bool = False  # load fragments to registers one step ahead
    # 8-bit integers in interleaved columns: A, B (N, K) and C are (rows, 32, columns / 32) with strides (32, 1, any).
    interleaved: bool = False
    parts: int = 1  # split-K slices of a tile; the launch takes a workspace after C (see ``workspace``)

    def workspace(self, m: int, n: int, matrices: int = 1) -> tuple[int, int]:
        """Return the f32 elements and the counters that split-K needs for a problem; both 0 without split-K."""
        if self.parts == 1:
            return 0, 0
        tiles = -(-m // self.tile[0]) * -(-n // self.tile[1]) * matrices
        words = BITS[sums_of(self.element)] // 32 if self.element != "f64" else 2
        return tiles * self.parts * self.tile[0] * self.tile[1] * words, tiles

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1] * self.warps_k

    @property
    def depth(self) -> int:
        """K of a stage, by default 128 bytes."""
        return self.k or 1024 // BITS[self.element]

    @property
    def store_rows(self) -> int:
        """Rows of C in shared memory at a time during the epilogue: those of one MMA of all warps."""
        return self.warps[0] * (8 if self.simt else 16)

    @property
    def name(self) -> str:
        """Name of the kernel."""
        majors = "".join(x[0] for x in self.majors)
        more = ""
        if differing(self, dict.fromkeys(("tile", "warps", "warps_k", "stages", "k"), "*")):
            warps = (*self.warps, self.warps_k)[: 2 + (self.warps_k > 1)]
            more = f"-{by((*self.tile, self.depth))}-{by(warps)}-q{self.stages}"
        more += differing(self, {"ahead": "-a", "batch": "-b", "array": "-v"}) + self.epilogue.suffix
        words = {"math": "-{}", "saturate": "-s", "simt": "-simt", "step": "-k{}", "interleaved": "-i", "parts": "-p{}"}
        return f"{self.element}-{self.output}-{majors}-warps{more}{differing(self, words)}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if (self.element == "f32" and not self.simt) != bool(self.math) or self.math not in ("", *_MATHS):
            raise ValueError(
                f"math is {self.math!r}; f32 on tensor cores needs one of {', '.join(_MATHS)}, other types none"
            )
        if self.element not in BITS or BITS[self.element] == 16 or self.element == "i32":
            raise ValueError(f"element {self.element!r} is not supported; use f64, tf32 or an 8-bit type")
        if self.output not in outputs_of(self.element):
            raise ValueError(
                f"output {self.output!r} is not supported for element {self.element!r}; use one of "
                f"{', '.join(outputs_of(self.element))}"
            )
        if not self.simt:
            check_tile(self.tile, self.warps, (16, 8), self.stages)
        if self.depth * BITS[self.element] not in (*([256] if self.simt else []), 512, 1024):
            few = "32, " if self.simt else ""
            raise ValueError(
                f"K of a stage is {self.depth} elements of {self.element}; it must be {few}64 or 128 bytes"
            )
        if self.saturate and (sums_of(self.element) != "i32" or self.warps_k > 1):
            raise ValueError("saturate needs 8-bit integers and warps_k=1")
        if self.ahead and (self.math or self.warps_k > 1):
            raise ValueError("ahead=True cannot be combined with math or warps_k > 1")
        if self.interleaved and (
            BITS[self.output] != 8 or sums_of(self.element) != "i32" or self.batch or self.majors != ("k", "k")
            or self.vectors != (16,) or self.epilogue.beta != 0.0 or self.epilogue.graph is not None
        ):  # fmt: skip
            raise ValueError(
                "interleaved matrices need 8-bit integers, K-major operands, vectors=(16,), beta=0 and no batch or "
                "graph"
            )
        if self.simt and self.element not in ("f32", "f64"):
            raise ValueError(f"simt needs f32 or f64, got {self.element}")
        steps = self.depth // _instruction(self).depth
        if self.warps_k < 1 or steps % self.warps_k:
            raise ValueError(f"warps_k is {self.warps_k}; it must divide the {steps} MMA steps of a stage")
        if self.parts < 1 or (self.parts > 1 and (self.warps_k > 1 or self.saturate or self.interleaved)):
            raise ValueError(
                f"parts={self.parts}: split-K needs at least 1 part and cannot be combined with warps_k > 1, saturate "
                "or interleaved"
            )
        self.epilogue.check()
        e = self.epilogue
        if self.array and not self.batch:
            raise ValueError("array=True needs batch=True")
        plain = e.hook is None and e.activation in ("", "relu") and (not e.bias or e.bias_type == "f64")
        if self.element == "f64" and not (plain if e.graph is None else is_exact(e.graph)):
            of_bias = f"a bias of {e.bias_type}" if e.bias and e.bias_type != "f64" else e.activation
            got = of_bias if e.graph is None and e.hook is None else "a function that computes in f32"
            raise ValueError(f"an f64 epilogue supports alpha, beta, an f64 bias and relu, got {got}")


DEFAULT = WarpConfig()


@cute.jit
def launch(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, workspace: cute.Tensor | None = None,
    counters: cute.Tensor | None = None, source: cute.Tensor | None = None, bias: cute.Tensor | None = None,
    alpha: Any = None, beta: Any = None, operands: Any = None, places: cute.Tensor | None = None,
    config: cute.Constexpr[Any] = DEFAULT,
):  # fmt: skip
    """Launch one block per tile of C, or per split-K slice of it.

    The arguments after C are the split-K workspace, then those of the epilogue.
    """
    c, addends = config, Addends(source, bias, alpha, beta, operands)
    shared = Shared(workspace, counters)
    if c.interleaved:
        A, B, C = (cute.group_modes(x, 1, 3) for x in (A, B, C))
        assert cute.size(A, mode=[1]) == cute.size(B, mode=[1]), "A and B must have the same K"
        assert A.shape[0] == C.shape[0], "A and C must have the same M"
        assert B.shape[0] == cute.size(C, mode=[1]), "B and C must have the same N"
        tiles = utils.GroupedRaster(cute.ceil_div(plain_shape(C), c.tile))
        gemm_16(A, B, C, tiles, addends, places, shared, c).launch(grid=tiles.count(), block=c.threads)
        return
    c.epilogue.check_shapes(C, addends, pairs=False, array=c.array, groups=count_of(places))
    if C.leading_dim == 0:
        raise ValueError(f"launch: C must have contiguous rows, got {C}")
    matrices = check_extents(A, B, C, places=places)
    tiles = utils.GroupedRaster(cute.ceil_div(C.shape[:2], c.tile), matrices=matrices)
    kernels = {16: gemm_16, 8: gemm_8, 4: gemm_4, 1: gemm}
    launches = []
    for size in sorted(c.vectors, reverse=True):
        vector = max(1, size * 8 // A.element_type.width)
        promised = [cute.promise_vectors(x, vector) for x in (A, B)]
        if all(x is not None for x in promised):
            launches.append(kernels[size](*promised, C, tiles, addends, places, shared, c))
            if all(x is y for x, y in zip(promised, (A, B))):
                break  # this kernel accepts all matrices
    launches[0].launch(grid=tiles.count() * c.parts, block=c.threads, fallback=launches[1:])


@cute.kernel
def gemm_16(
    A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any, shared: Shared,
    config: cute.Constexpr[WarpConfig],
):  # fmt: skip
    """Multiply matrices whose rows are multiples of 16 bytes."""
    _multiply(config, A, B, C, tiles, addends, places, shared, 16)


@cute.kernel
def gemm_8(
    A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any, shared: Shared,
    config: cute.Constexpr[WarpConfig],
):  # fmt: skip
    """Multiply matrices whose rows are multiples of 8 bytes."""
    _multiply(config, A, B, C, tiles, addends, places, shared, 8)


@cute.kernel
def gemm_4(
    A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any, shared: Shared,
    config: cute.Constexpr[WarpConfig],
):  # fmt: skip
    """Multiply matrices whose rows are multiples of 4 bytes."""
    _multiply(config, A, B, C, tiles, addends, places, shared, 4)


@cute.kernel
def gemm(
    A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any, shared: Shared,
    config: cute.Constexpr[WarpConfig],
):  # fmt: skip
    """Multiply matrices of any alignment."""
    _multiply(config, A, B, C, tiles, addends, places, shared, 1)


class _Instruction(NamedTuple):
    """An ``mma.sync``: its op, its K, and the types of A and B in registers."""

    op: Any
    depth: int
    kinds: tuple[Any, Any]


_MATHS = {"fast_f32": cute.TFloat32, "fast_f16": cute.Float16, "fast_bf16": cute.BFloat16}
"""Ways to multiply f32 on tensor cores -> the type in registers."""


def _instruction(c: WarpConfig) -> _Instruction:
    element = c.element
    a, b = (number(x) for x in factors(element))
    if c.simt:
        return _Instruction(cute.nvgpu.MmaUniversalOp(a), 1, (a, b))
    if element == "f64":
        return _Instruction(warp.MmaF64Op((16, 8, 8)), 8, (a, b))
    if c.math in ("fast_f16", "fast_bf16"):
        kind, step = _MATHS[c.math], c.step or 16
        return _Instruction(warp.MmaF16BF16Op(kind, cute.Float32, (16, 8, step)), step, (kind, kind))
    if element in ("tf32", "f32"):
        return _Instruction(warp.MmaTF32Op((16, 8, 8)), 8, (cute.TFloat32,) * 2)
    if a.is_integer:
        return _Instruction(warp.MmaI8Op(a, b, (16, 8, 32), c.saturate), 32, (a, b))
    return _Instruction(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), 16, (cute.Float16,) * 2)


class _Ring(Staged):
    """Ring of stages of A or B, with padded rows."""

    @staticmethod
    def fragments(kind: Any, contiguous: int) -> Any:
        """Return the copy atom that loads fragments to registers."""
        # Elements adjacent along K share a register: four 8-bit integers, or two 8-bit floats, which become f16.
        neighbours = 1 if contiguous == 0 or kind.width > 8 else 4 if kind.is_integer else 2
        bits = kind.width * neighbours
        return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=bits)

    @staticmethod
    def pad(width: int, contiguous: int) -> int:
        """Return the row padding, in elements, that avoids bank conflicts when a warp reads 8 rows of 16 bytes or 4
        rows of 32.
        """
        return (32 if width == 64 or (contiguous == 0 and width == 32) else 16) * 8 // width

    @classmethod
    def layout(cls, kind: Any, rows: int, depth: int, contiguous: int, stages: int) -> Any:
        """Return the layout of the ring, (rows, K, stages)."""
        line = (depth if contiguous == 1 else rows) + cls.pad(kind.width, contiguous)
        strides = (line, 1, rows * line) if contiguous == 1 else (1, line, depth * line)
        return cute.make_layout((rows, depth, stages), stride=strides)

    def __init__(
        self, matrix: Any, shape: tuple[int, int], tile: Any, buffer: Any, stages: int, vector: int, thread: Any,
        threads: int,
    ):  # fmt: skip
        self.kind = matrix.element_type
        super().__init__(matrix, shape, tile, cute.recast_ptr(buffer, dtype=self.kind), stages, vector, thread, threads)

    def fragment(self, part: Any, registers: Any, kind: Any) -> None:
        """Load a part of a stage to registers, converted to the type of the MMA."""
        if self.kind is kind:
            cute.copy(self.matrices, part, registers)
            return
        registers.store(self.held_of(part, registers).load().to(kind))

    def held_of(self, part: Any, registers: Any) -> Any:
        """Load a part of a stage to registers, in its own type."""
        held = cute.make_rmem_tensor_like(registers, self.kind)
        cute.copy(self.matrices, part, held)
        return held

    def split(self, part: Any, registers: Any) -> tuple[Any, Any]:
        """Load a part of a stage as two tf32 numbers per element whose sum is the element."""
        held = self.held_of(part, registers)
        both = cute.make_rmem_tensor_like(registers), cute.make_rmem_tensor_like(registers)
        for i in range(cute.size(held)):  # held in registers, so the passes unroll this loop
            for x, to in zip(parts_of(held[i]), both):
                to[i] = x.to(to.element_type)
        return both


class _Narrowed(_Ring):
    """Ring of A or B of f32 that is multiplied as f16 or bf16, with two elements adjacent along K in a register."""

    @staticmethod
    def fragments(kind: Any, contiguous: int) -> Any:
        """Return the copy atom that loads fragments to registers."""
        bits = kind.width * (2 if contiguous == 1 else 1)
        return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=bits)

    @staticmethod
    def pad(width: int, contiguous: int) -> int:
        """Return the row padding, in elements: half a warp reads 4 rows of 32 bytes, or two lines of K 32 bytes
        apart.
        """
        return (32 if contiguous == 1 else 16) * 8 // width


def _multiply(
    c: WarpConfig, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any, shared: Shared,
    size: int,
) -> None:  # fmt: skip
    """Compute a tile, or a split-K slice of it. ``size`` is the number of bytes per copy, or 1 for single elements."""
    tile, blocks = cute.arch.block_idx().x, None
    if c.parts > 1:
        tile, mine = tile // c.parts, tile % c.parts
        thread = cute.arch.thread_idx().x
        blocks = BlocksOfK(shared.workspace, shared.flags, c.parts, tile, mine, thread, c.threads)
    row, column, *matrix = tiles.place(tile)
    A, B, C, addends = of_matrix(A, B, C, addends, matrix, places)
    compute_tile(c, A, B, C, addends, (row, column), size, matrix[0] if matrix else None, blocks=blocks)


def compute_tile(
    c: WarpConfig, A: Any, B: Any, C: Any, addends: Addends, where: tuple[Any, Any], size: int, matrix: Any = None,
    seen: Callable[[Any], Any] | None = None, blocks: BlocksOfK | None = None,
) -> None:  # fmt: skip
    """Compute a tile, or a split-K slice of it.

    Args:
        c: The configuration.
        A, B, C, addends: The operands of one matrix.
        where: Row and column of the tile.
        size: Bytes per copy, or 1 for single elements.
        matrix: Index in a batch, for the epilogue.
        seen: Maps coordinates in C to those that the epilogue uses, if they differ.
        blocks: The blocks that share the tile (split-K).
    """
    (m, n), thread, instruction = c.tile, cute.arch.thread_idx().x, _instruction(c)
    vector = max(1, size * 8 // A.element_type.width)
    # Single elements in flight are held in registers, which limits their number.
    depth = min(c.depth, 32 * c.warps_k) if size == 1 else c.depth
    row, column = where
    of_k = WarpsOfK(c.warps_k, 32 * c.warps[0] * c.warps[1], thread)
    # Without tensor cores, the threads of a warp form 8 rows and 4 columns.
    atoms = (c.warps[0] * 8, c.warps[1] * 4, 1) if c.simt else (*c.warps, 1)
    mma = cute.make_tiled_mma(instruction.op, atoms)
    given, ring = ((A, m, row), (B, n, column)), _Narrowed if c.math in ("fast_f16", "fast_bf16") else _Ring
    sizes = [
        cute.cosize(ring.layout(x.element_type, rows, depth, contiguous_mode(x), c.stages)) * x.element_type.width // 8
        for x, rows, _ in given
    ]
    first = -(-sizes[0] // 128) * 128
    acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
    sums = m * n * acc.element_type.width // 8 if c.warps_k > 1 else 0
    stored = TileStore.size(number(c.output), c.store_rows, n)
    memory = cute.smem_tensor(cute.Uint8, max(first + sizes[1], sums, stored), 128).iterator
    a, b = (
        ring(x, (rows, depth), tile, memory + at, c.stages, vector, thread, c.threads)
        for (x, rows, tile), at in zip(given, (0, first))
    )
    extent = plain_shape(A)[1]
    if blocks is not None:
        begins, extent = blocks.begin(extent, depth)
        a.begins = b.begins = begins
    part = mma.get_slice(of_k.lane)
    from_a, from_b = part.partition_A(a.ring), part.partition_B(b.ring)
    acc.fill(0)

    # Prefetched fragments stay in their stored type, so that only the loads depend on whether there is a next tile.
    k = instruction.depth
    of_a, of_b = mma.partition_shape_A((m, k)), mma.partition_shape_B((n, k))

    def fetch(stage: Any, step: int, i: int) -> None:
        for x, part, to in zip((a, b), (from_a, from_b), held[i]):
            cute.copy(x.matrices, part[None, None, step, stage], to[None, None, 0])

    def multiply_held(i: int) -> None:
        factors = mma.make_fragment_A(of_a), mma.make_fragment_B(of_b)
        for x, to, kind in zip(held[i], factors, instruction.kinds):
            to.store(x.load().to(kind))
        rA, rB = factors
        cute.gemm(mma, acc, rA[None, None, 0], rB[None, None, 0], accumulate=True)

    def multiply(read: Any) -> None:
        rA = mma.make_fragment_A(mma.partition_shape_A((m, depth)))
        rB = mma.make_fragment_B(mma.partition_shape_B((n, depth)))
        for i in range(depth // instruction.depth // c.warps_k):
            source = [x[None, None, of_k.step(i), read] for x in (from_a, from_b)]
            if c.math == "fast_f32":
                big_a, small_a = a.split(source[0], rA[None, None, i])
                big_b, small_b = b.split(source[1], rB[None, None, i])
                for x, y in ((small_a, big_b), (big_a, small_b), (big_a, big_b)):  # small terms first
                    cute.gemm(mma, acc, x, y, accumulate=True)
            else:
                a.fragment(source[0], rA[None, None, i], instruction.kinds[0])
                b.fragment(source[1], rB[None, None, i], instruction.kinds[1])
                cute.gemm(mma, acc, rA[None, None, i], rB[None, None, i], accumulate=True)

    steps = depth // instruction.depth
    if c.ahead and steps % 2 == 0:
        like = mma.make_fragment_A(of_a), mma.make_fragment_B(of_b)
        held = [[cute.make_rmem_tensor_like(x, y.kind) for x, y in zip(like, (a, b))] for _ in range(2)]
        over_k_ahead(a, b, extent, depth, c.stages, steps, fetch, multiply_held)
    else:
        over_k(a, b, extent, depth, c.stages, multiply)
    of_k.add_up(acc, memory)
    leads = of_k.leads if blocks is None else blocks.add_up(acc)
    kind = number(c.output)
    ids = part.partition_C(cute.local_tile(cute.make_identity_tensor(plain_shape(C)), (m, n), (row, column)))
    if c.epilogue.active:
        whole = acc.element_type.is_integer and kind.is_integer
        fused = Fused(c.epilogue, addends, pairs=False, whole=whole, wide=c.element == "f64")
        acc = fused.taken(acc)
        if leads:
            fused.apply_each(acc, ids if seen is None else seen(ids), matrix)
    out = cute.make_rmem_tensor_like(acc, kind)
    out.store(rounded(acc, kind))
    store = TileStore(C, c.tile, (row, column), part, c.store_rows, memory, thread, c.threads)
    if blocks is None:
        store.write(out, of_k.leads)
    elif leads:
        store.write(out)


@printed
def warp_gemm_text(config: WarpConfig | None = None) -> cute.Compiled:
    """Trace the kernels and the host function ``launch(A, B, C, …)``, for any shape and alignment with these majors."""
    c = config or DEFAULT
    c.check()
    if c.interleaved:
        a, b, d = (
            cute.Tensor[number(e), "(?,32,?):(32,1,?{div=16})", "align<16>"] for e in (*factors(c.element), c.output)
        )
        behind = c.epilogue.arguments(c.output, vectors=False)
        return cute.trace(launch, a, b, d, **behind, config=c)
    rows, columns = layouts_of(batch=c.batch, array=c.array)
    a, b = (
        cute.Tensor[number("f32" if e == "tf32" else e), rows if major == "k" else columns]
        for e, major in zip(factors(c.element), c.majors)
    )
    behind: dict[str, Any] = {}
    if c.parts > 1:
        behind["workspace"] = cute.Tensor[cute.Float32, "?:1", "align<16>"]
        behind["counters"] = cute.Tensor[cute.Int32, "?:1"]
    behind |= c.epilogue.arguments(c.output, batch=c.batch, vectors=False, array=c.array)
    behind |= {"places": PLACES} if c.array else {}
    return cute.trace(launch, a, b, cute.Tensor[number(c.output), rows], **behind, config=c)
