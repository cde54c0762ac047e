"""Conversion between tile descriptions and kernel configurations.

The instruction shape selects the generator: ``[64, N, K]`` is wgmma, the Hopper kernels; ``[16, 8, 16]`` is mma.sync,
the sm_80 kernels; ``[1, 1, 1]`` are kernels without tensor cores. ``[128, N, K]``, ``[256, N, K]``, and any shape with
the kernel schedule ``1sm``, is tcgen05, the sm_100 kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.elements import BITS, FACTORS, factors, outputs_of, sums_of, swapped
from cute_dialect.kernels.conv.config import ConvConfig
from cute_dialect.kernels.conv.unfold import UnfoldConfig
from cute_dialect.kernels.epilogue.reductions import CombineConfig, ReduceConfig
from cute_dialect.kernels.gemm.ampere import AmpereConfig
from cute_dialect.kernels.gemm.config import GemmConfig, SkinnyConfig, SplitConfig, deepest
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.pointer_array import ListedConfig, ProblemsConfig
from cute_dialect.kernels.gemm.sgemm import RUNGS
from cute_dialect.kernels.gemm.simt import ExactConfig
from cute_dialect.kernels.gemm.sm100 import ELEMENTS, SCALED_TILES, TILES, Sm100Config
from cute_dialect.kernels.gemm.sm120 import Sm120Config
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.kernels.gemm.tcgen05_scales import FP4
from cute_dialect.op.errors import DtypeError, LayoutError, UnsupportedError
from cute_dialect.op.select.backends import SM100, SM120, Backend, unmeasured
from cute_dialect.op.select.descriptions import (
    ONE_SM,
    TWO_SM,
    MathInstruction,
    MathOperation,
    OpcodeClass,
    Swizzle,
    TileDescription,
    tcgen05_schedule,
)
from cute_dialect.op.select.kernel_choice import OF_BLOCKS, Choice, few_rows


class SgemmRung(NamedTuple):
    """A rung of the SGEMM ladder, by its name."""

    rung: str

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"sgemm-{self.rung}"


Configured: TypeAlias = (
    Choice
    | AmpereConfig
    | WarpConfig
    | ExactConfig
    | Sm100Config
    | Sm120Config
    | SgemmRung
    | ReduceConfig
    | CombineConfig
    | ListedConfig
    | ProblemsConfig
    | ConvConfig
    | UnfoldConfig
    | PartsConfig
)
"""Configuration of one generator:

* ``Choice``: Hopper GEMM with wgmma and TMA.
* ``AmpereConfig``, ``WarpConfig``: mma.sync GEMM for 16-bit and for other operands.
* ``Sm100Config``: GEMM of sm_100 with TMA and accumulators in tensor memory.
* ``Sm120Config``: GEMM of sm_120 with TMA and mma.sync.
* ``ExactConfig``, ``SgemmRung``: GEMM without tensor cores, and a rung of the SGEMM ladder.
* ``ReduceConfig``, ``CombineConfig``: reduction of split-K slices and of partial results.
* ``ListedConfig``, ``ProblemsConfig``: pointer-array GEMM, and the kernel that builds its table.
* ``ConvConfig``, ``UnfoldConfig``: Hopper convolution, and im2col for other convolutions.
* ``PartsConfig``: split of f32 into tf32 parts.
"""


SCALINGS = {"block1x32": "mx", "block1x16": "nv"}
"""Recipe of scales that an MMA applies -> its name in kernels."""


class KernelRequest(NamedTuple):
    """The requirements of a kernel."""

    element_a: str
    element_b: str
    accumulator: str
    output: str
    layout_a: str = "row"
    layout_b: str = "row"
    layout_d: str = "row"
    batch: bool = False
    array: bool = False  # matrices are at separate addresses
    math: str = MathOperation.multiply_add
    has_tma: bool = True  # kernels may use TMA
    # "two": two-level accumulation; "block", "columns": block scales per 128 columns or per column; or one of SCALINGS
    sums: str = ""
    scales: str = "f32"  # type of block scales, f32 or ui8 (exponents)
    chip: int = 90  # compute capability of the plan

    @property
    def element(self) -> str:
        """Name of the operands' types, such as ``f16`` or ``f8E4M3FN_f8E5M2``."""
        return self.element_a if self.element_a == self.element_b else f"{self.element_a}_{self.element_b}"

    @property
    def scaling(self) -> str:
        """The scaling of an MMA with block scales, "mx" or "nv"; empty for others."""
        return SCALINGS.get(self.sums, "")

    @property
    def packed(self) -> int:
        """Elements of A or B per element of its array: 2 of 4 bits per byte."""
        return 2 if self.scaling and self.element_a == "ui8" else 1

    @property
    def in_parts(self) -> bool:
        """True if A and B are f32, split into three tf32 parts."""
        return self.math == MathOperation.multiply_add_fast_f32 and self.element_a == "tf32"

    def of_parts(self) -> KernelRequest:
        """Return the requirements of the wgmma kernel for the tf32 parts, which are contiguous along K."""
        if self.math != MathOperation.multiply_add_fast_f32:
            return self
        return self._replace(element_a="tf32", element_b="tf32", layout_a="row", layout_b="column", sums="two")

    @property
    def flipped(self) -> bool:
        """True if D is column-major, so that kernels with row-major results compute ``D^T = B^T A^T``."""
        return self.layout_d == "column"

    @property
    def majors(self) -> tuple[str, str]:
        """The contiguous modes of A (``k``, ``m``) and B (``k``, ``n``), of the transposed problem if D is
        column-major.
        """
        return self.kernel_majors(self.flipped)

    def kernel_majors(self, transposed: bool) -> tuple[str, str]:
        """Return the contiguous modes for the problem, or for the transposed one, whose A is B^T."""
        a, b = self.layout_a == "row", self.layout_b == "row"
        return ("m" if b else "k", "k" if a else "n") if transposed else ("k" if a else "m", "n" if b else "k")


def configured(td: TileDescription, asked: KernelRequest, swizzle: Swizzle | None = None) -> Configured:
    """Return the kernel that a tile describes; for a column-major D that of the transposed problem.

    Raises UnsupportedError if there is none.
    """
    if td.kernel is not None and (swizzle is None or td.kernel.skinny is not None) and not (
        td.kernel.skinny is not None and asked.batch
    ):  # fmt: skip
        i = td.math_instruction
        saturate = i is not None and i.math_operation == MathOperation.multiply_add_saturate
        if saturate and td.kernel.skinny is not None:
            raise UnsupportedError(
                f"Gemm: the tile {td.name} has kernel_schedule few_rows, which does not support saturating "
                "accumulators; use another tile"
            )
        changes = {"batch": asked.batch, "array": asked.array, "saturate": saturate}
        choice = td.kernel._replace(config=td.kernel.config._replace(**changes))
        if choice.skinny is not None:
            _check(choice.skinny.check)
        else:
            _check(choice.config.check if choice.parts == 1 else SplitConfig(choice.config, choice.parts).check)
        return choice
    instruction = td.math_instruction
    if instruction is None:
        raise UnsupportedError(f"Gemm: the tile_description {td.name} has no math_instruction; add one")
    _check_instruction(instruction, asked)
    asked = asked._replace(math=instruction.math_operation).of_parts() if instruction.in_parts else asked
    m, _, _ = instruction.instruction_shape
    make = {256: _sm100, 128: _sm100, 64: _wgmma, 1: _simt}.get(
        m, _sm120 if td.kernel_schedule == "cooperative" else _mma_sync
    )
    make = _sm100 if td.kernel_schedule in (ONE_SM, TWO_SM) else make
    return make(td, instruction, asked, swizzle)


def wanted(td: TileDescription, asked: KernelRequest) -> Configured:
    """Return the kernel of the tile passed as ``kernel=``.  Raises UnsupportedError."""
    try:
        return configured(td, asked)
    except UnsupportedError as e:
        raise UnsupportedError(f"kernel: {str(e).removeprefix('Gemm: ')}") from None


def _shape(instruction: MathInstruction) -> str:
    return "x".join(map(str, instruction.instruction_shape))


def _elements(asked: KernelRequest) -> str:
    a, b = asked.element_a, asked.element_b
    return f"{a if a == b else f'{a} and {b}'} with {asked.accumulator} accumulation and {asked.output} results"


def _check_instruction(i: MathInstruction, asked: KernelRequest) -> None:
    """Raise UnsupportedError if the instruction does not suit the operands."""
    arrays = (asked.element_a, asked.element_b)
    for name, expected, given in zip("AB", (i.element_a, i.element_b), arrays):
        if expected != given and {expected, given} != {"tf32", "f32"}:
            raise UnsupportedError(
                f"Gemm: {name} has dtype {given}, but the math_instruction has {expected}; use equal ones"
            )
    simt = tuple(i.instruction_shape) == (1, 1, 1)
    if simt != (i.opcode_class == OpcodeClass.Simt):
        what = "[1, 1, 1] for simt, [64, N, K], [16, 8, K] or [8, 8, 4] for tensor_op"
        raise UnsupportedError(
            f"Gemm: instruction_shape {list(i.instruction_shape)} does not suit {i.opcode_class}; use {what}"
        )
    fast, saturates = i.math_operation in FAST, i.math_operation == MathOperation.multiply_add_saturate
    if (fast and (simt or set(arrays) != {"f32"})) or (saturates and i.element_accumulator != "i32"):
        of = "f32 on tensor cores" if fast else "8-bit integers"
        raise UnsupportedError(f"Gemm: {i.math_operation} supports {of} only, got {_elements(asked)}")
    if fast and not i.in_parts and tuple(i.instruction_shape) not in FAST[i.math_operation]:
        shapes = " or ".join(str(list(s)) for s in FAST[i.math_operation])
        shapes += " or [64, N, 8]" * (i.math_operation == MathOperation.multiply_add_fast_f32)
        raise UnsupportedError(
            f"Gemm: {i.math_operation} does not support instruction_shape {list(i.instruction_shape)}; use {shapes}"
        )


FAST: Mapping[str, tuple[tuple[int, int, int], ...]] = {
    MathOperation.multiply_add_fast_f32: ((16, 8, 8),),
    MathOperation.multiply_add_fast_f16: ((16, 8, 8), (16, 8, 16)),
    MathOperation.multiply_add_fast_bf16: ((16, 8, 8), (16, 8, 16)),
}
"""Operations that multiply f32 on tensor cores, other than as tf32, and their mma.sync instruction shapes."""


def _as_tf32(element: str) -> str:
    return "tf32" if element == "f32" else element


# ------------------------------------------------------------------------------------------------------------- Hopper


def _wgmma(td: TileDescription, i: MathInstruction, asked: KernelRequest, swizzle: Swizzle | None) -> Choice:
    a, b = _as_tf32(i.element_a), _as_tf32(i.element_b)
    element = a if a == b else f"{a}_{b}"
    if element not in FACTORS or asked.output not in outputs_of(element):
        raise UnsupportedError(f"Gemm: no wgmma kernel supports {_elements(asked)}")
    sums = i.element_accumulator
    if sums != sums_of(element) and (sums, element) != ("f16", "f16"):
        raise UnsupportedError(
            f"Gemm: accumulation in {sums} is not supported for {element}; use {sums_of(element)} "
            "(wgmma accumulates in f16 for f16 operands only)"
        )
    depth = 256 // BITS[element]
    m, n, k = td.threadblock_shape
    if i.instruction_shape[2] != depth or n % i.instruction_shape[1] or i.instruction_shape[1] % 8:
        raise UnsupportedError(
            f"Gemm: instruction_shape {list(i.instruction_shape)} is not supported for {element}; use "
            f"[64, {n}, {depth}]"
        )
    # Results that are not 16-bit are stored along rows only, so a column-major D is computed as the transposed tile.
    transposed = asked.flipped if BITS[asked.output] != 16 else td.transposed
    element = swapped(element) if transposed else element
    major_a, major_b = asked.kernel_majors(transposed)
    if td.kernel_schedule == "few_rows":
        if asked.batch:
            raise UnsupportedError("Gemm: kernel_schedule few_rows does not support a batch; use another schedule")
        return _few_rows(td, element, asked.output, (major_a, major_b, "n" if transposed == asked.flipped else "m"))
    config = GemmConfig(
        element, asked.output, major_a, major_b, "n" if transposed == asked.flipped else "m", (m, n, k), 4,
        td.cluster_shape[0], td.cluster_shape[1], batch=asked.batch, array=asked.array, deferred=False,
        schedule=td.kernel_schedule or "cooperative", stream_k=td.tile_scheduler == "stream_k",
        serpentine=td.parts == 1 and asked.sums not in OF_BLOCKS, accumulator="" if sums == sums_of(element) else sums,
        saturate=i.math_operation == MathOperation.multiply_add_saturate, promote=asked.sums != "",
        scaled=asked.sums in OF_BLOCKS, scales=asked.scales, scaled_columns=asked.sums == "columns",
    )  # fmt: skip
    config = _with_swizzle(config, swizzle)
    if td.cluster_shape[2] != 1:
        raise UnsupportedError(f"Gemm: cluster_shape is {td.cluster_shape}; it must be (M, N, 1)")
    if td.tile_scheduler not in (None, "persistent", "stream_k", "split_k") or (td.tile_scheduler == "split_k") != (
        td.parts > 1
    ):
        raise UnsupportedError(
            f"Gemm: tile_scheduler {td.tile_scheduler!r} with parts={td.parts} is not supported; use 'persistent' or "
            "'stream_k' with parts=1, or 'split_k' with more"
        )
    config = config._replace(stages=td.stages or most_stages(config))
    deferred = config._replace(deferred=True)
    if td.epilogue_schedule == "deferred" or (
        td.epilogue_schedule is None and td.parts == 1 and not config.stream_k and _holds(deferred)
    ):
        config = deferred
    elif td.epilogue_schedule not in (None, "immediate"):
        raise UnsupportedError(
            f"Gemm: epilogue_schedule {td.epilogue_schedule!r} is not supported; use 'deferred' or 'immediate'"
        )
    _check(config.check)
    if td.warp_count is not None and tuple(td.warp_count) != (4 * config.sharers, 1, 1):
        raise UnsupportedError(
            f"Gemm: warp_count is {list(td.warp_count)}; a tile of {m} x {n} needs [{4 * config.sharers}, 1, 1], "
            "4 warps per 64 rows"
        )
    if td.parts > 1:
        _check(SplitConfig(config, td.parts).check)
    return Choice(config, td.parts)


def _with_swizzle(config: GemmConfig, swizzle: Swizzle | None) -> GemmConfig:
    if swizzle is None:
        return config
    return config._replace(group=swizzle.group, stream_k=config.stream_k or swizzle.stream_k)


def _check(check: Callable[[], None]) -> None:
    try:
        check()
    except ValueError as e:
        raise UnsupportedError(f"Gemm: {e}") from None


def _holds(config: GemmConfig) -> bool:
    try:
        config.check()
    except ValueError:
        return False
    return True


def most_stages(config: GemmConfig) -> int:
    """Return the number of stages that fit in shared memory, at most 16."""
    rest = config._replace(stages=0).smem_bytes + 1024  # Alignment may take up to 1024 bytes.
    return max(1, min(16, (DEFAULT_TARGET.shared - rest) // (config.stage_bytes + 16)))


def _few_rows(td: TileDescription, element: str, output: str, majors: tuple[str, str, str]) -> Choice:
    m, n, _ = td.threadblock_shape
    major_a, major_b, major_c = majors
    made = SkinnyConfig(
        element, output, m, n, parts=td.parts, direct=BITS[output] == 32, major_a=major_a, major_b=major_b,
        major_c=major_c,
    )  # fmt: skip
    _check(made._replace(stages=2, stages_a=2).check)
    return few_rows(made._replace(stages=td.stages, stages_a=td.stages) if td.stages else deepest(made))


def described(choice: Choice, asked: KernelRequest) -> TileDescription:
    """Return the description of a kernel from the list of candidates."""
    if asked.sums in OF_BLOCKS:
        choice = choice._replace(config=choice.config._replace(scales=asked.scales))
    c, s = choice.config, choice.skinny
    transposed = asked.flipped != choice.swapped
    a, b = factors(swapped(c.element) if transposed else c.element)
    depth = 256 // BITS[a]
    a, b = ("f32", "f32") if asked.in_parts else (a, b)
    instruction = MathInstruction((64, c.tile[1], depth), a, b, c.sums, math_operation=asked.math)
    scheduler = "stream_k" if c.stream_k else "split_k" if choice.parts > 1 else "persistent"
    rows = s.consumers if s is not None else c.sharers
    return TileDescription(
        c.tile, c.stages, (4 * rows, 1, 1), instruction,
        (c.cluster_m, c.cluster_n, 1) if s is None else (s.cluster, 1, 1),
        "few_rows" if s is not None else c.schedule,
        scheduler if s is None else None, "deferred" if c.deferred else "immediate",
        choice.parts if s is None else s.parts, transposed, choice,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------- sm_80, no tensor cores


def _mma_sync(td: TileDescription, i: MathInstruction, asked: KernelRequest, swizzle: Swizzle | None) -> Configured:
    """Return the kernel of an ``mma.sync`` instruction; 16-bit operands support more tiles than others."""
    shape, a, b = tuple(i.instruction_shape), i.element_a, i.element_b
    _check_absent(td, "kernels with mma.sync", "cluster_shape", "kernel_schedule", "epilogue_schedule")
    missing = f"Gemm: no mma.sync {_shape(i)} kernel supports {_elements(asked)}"
    if td.tile_scheduler not in (None, "persistent") or td.parts > 1 or (swizzle is not None and swizzle.stream_k):
        raise UnsupportedError(
            "Gemm: mma.sync does not support split-K or stream-K, got "
            + (
                f"{swizzle.name}"
                if swizzle is not None and swizzle.stream_k
                else f"tile_scheduler {td.tile_scheduler or 'persistent'} with parts={td.parts}"
            )
            + "; use split_k= of the call"
        )
    if a == b and a in ("f16", "bf16"):
        sums = ("f32", "f16") if a == "f16" else ("f32",)
        shapes = ((16, 8, 16), (16, 8, 8))
        if shape not in shapes or i.element_accumulator not in sums or asked.output not in ("f16", "bf16", "f32"):
            raise UnsupportedError(
                f"{missing}; [16, 8, 16] and [16, 8, 8] accumulate in {' or '.join(sums)} and give f16, bf16 or f32"
            )
        return _ampere(td, i, asked, swizzle)
    fast = i.math_operation if i.math_operation in FAST else ""
    a, b = (a, b) if fast else (_as_tf32(a), _as_tf32(b))
    element = a if a == b else f"{a}_{b}"
    wanted = {"f64": (((16, 8, 8), (8, 8, 4)), "f64"), "tf32": (((16, 8, 8),), "f32")}.get(a)
    bytes_ = {"i": (((16, 8, 32),), "i32"), "f": (((16, 8, 16), (16, 8, 32)), "f32")}
    wanted = (FAST[fast], "f32") if fast else wanted or bytes_[a.lstrip("u")[0]]
    shapes, sums = wanted
    if shape not in shapes or i.element_accumulator != sums:
        raise UnsupportedError(f"{missing}; use {' or '.join(str(list(s)) for s in shapes)} with {sums} accumulation")
    majors = tuple(["k" if x == "k" else "mn" for x in asked.majors])
    element = swapped(element) if asked.flipped else element
    if element not in BITS or asked.output not in outputs_of(element):
        raise UnsupportedError(missing)
    usual = WarpConfig(
        element, asked.output, majors, asked.batch, array=asked.array,  # type: ignore[arg-type]
        math=fast.removeprefix("multiply_add_"), step=8 if len(FAST.get(fast, ())) > 1 and shape[2] == 8 else 0,
        saturate=i.math_operation == MathOperation.multiply_add_saturate,
    )  # fmt: skip
    return _of_warps(td, asked, usual, 16 if shape[0] == 8 else shape[0])  # The kernel pairs 8x8x4 as 16x8x8.


_BYTES = ("f8E4M3FN", "f8E5M2")


def _chip_of(asked: KernelRequest, family: Backend) -> int:
    """Return the compute capability of the plan if its kernels are of a family, and otherwise that of the family."""
    found = unmeasured(asked.chip)
    return found.chip if found is not None and found.name == family.name else family.chip


def check_sm120(asked: KernelRequest, call: str = "Gemm") -> None:
    """Raise OpError if the kernels for sm_120 lack the types or layouts of single matrices."""
    chip = _chip_of(asked, SM120)
    a, b = asked.element_a, asked.element_b
    of_bytes = {a, b} <= {*_BYTES}
    if not (of_bytes or (a == b and a in ("f16", "bf16"))):
        raise UnsupportedError(
            f"{call}: no kernel of sm_{chip} multiplies {a} and {b}; use f16 and f16, bf16 and bf16, or two of "
            f"{', '.join(_BYTES)}; or use kernel_cc=80"
        )
    if asked.output not in ("f16", "bf16", "f32"):
        raise UnsupportedError(f"{call}: D is {asked.output}; kernels of sm_{chip} support f16, bf16 or f32 for D")
    if asked.accumulator != "f32":
        raise UnsupportedError(f"{call}: accumulation in {asked.accumulator} is not supported on sm_{chip}; use f32")
    for name, layout, along_k in (("A", asked.layout_a, "row"), ("B", asked.layout_b, "column")):
        if of_bytes and layout != along_k:
            raise LayoutError(
                f"{call}: {name} is {layout}-major, but kernels of sm_{chip} read 8-bit operands along K only; make it "
                "contiguous along K, or use kernel_cc=80"
            )


def sm120_tiles(asked: KernelRequest) -> list[TileDescription]:
    """Return the tiles of the kernels for sm_120 with TMA, the default first; none for pointer arrays.

    Raises OpError for types and layouts that the kernels lack.
    """
    check_sm120(asked)
    if asked.array or asked.sums:
        return []
    a, b = asked.element_a, asked.element_b
    of_bytes = a in _BYTES
    instruction = MathInstruction((16, 8, 32 if of_bytes else 16), a, b, "f32")
    k = 128 if of_bytes else 64
    return [
        TileDescription((m, n, k), 3, warps, instruction, kernel_schedule="cooperative")
        for (m, n), warps in (((128, 128), (2, 2, 1)), ((128, 64), (2, 2, 1)), ((64, 64), (2, 2, 1)))
    ]


def _sm120(td: TileDescription, i: MathInstruction, asked: KernelRequest, swizzle: Swizzle | None) -> Sm120Config:
    """Return the kernel for sm_120 with TMA."""
    chip = _chip_of(asked, SM120)
    if not sm120_tiles(asked):
        raise UnsupportedError(
            f"Gemm: kernels of sm_{chip} do not support pointer arrays; use a batch or an mma.sync tile"
        )
    if td.parts > 1 or td.tile_scheduler is not None or (swizzle is not None and swizzle.stream_k):
        raise UnsupportedError(
            f"Gemm: kernels of sm_{chip} have no tile_scheduler, split-K or stream-K; use split_k= of the call"
        )
    _check_absent(td, f"kernels of sm_{chip}", "cluster_shape", "epilogue_schedule")
    m, n, k = td.threadblock_shape
    wm, wn, wk = td.warp_count or (2, 2, 1)
    a, b = (i.element_b, i.element_a) if asked.flipped else (i.element_a, i.element_b)
    config = Sm120Config(
        a if a == b else f"{a}_{b}",
        (m, n),
        (wm, wn),
        td.stages,
        _k_or_mn(asked.majors),
        8 if swizzle is None else swizzle.group,
        asked.batch,
        asked.output,
        chip=f"sm_{chip}a",
    )
    if k != config.depth:
        raise UnsupportedError(
            f"Gemm: kernel_schedule cooperative selects kernels of sm_{chip}, but the tile is {m} x {n} x {k}; use a K "
            f"of {config.depth} (128 bytes), or kernel_schedule=None for other mma.sync kernels"
        )
    if wk != 1:
        raise UnsupportedError(f"Gemm: warp_count is {[wm, wn, wk]}; kernels of sm_{chip} need 1 warp along K")
    config = config if td.stages else config._replace(stages=max(2, config.most_stages))
    _check(config.check)
    return config


def check_sm100(asked: KernelRequest, call: str = "Gemm") -> None:
    """Raise OpError if the kernels for sm_100 lack the types or layouts of single matrices."""
    chip = _chip_of(asked, SM100)
    a, b = asked.element_a, asked.element_b
    if asked.scaling:
        _check_scaled_sm100(asked, call, chip)
    elif not ({a, b} <= {*_BYTES} or (a == b and a in ELEMENTS)):
        raise UnsupportedError(
            f"{call}: no kernel of sm_{chip} multiplies {a} and {b}; use f16 and f16, bf16 and bf16, tf32 and tf32, or "
            f"two of {', '.join(_BYTES)}; or use kernel_cc=80"
        )
    if asked.output not in ("f16", "bf16", "f32"):
        raise UnsupportedError(f"{call}: D is {asked.output}; kernels of sm_{chip} support f16, bf16 or f32 for D")
    for name, layout, along_k in (("A", asked.layout_a, "row"), ("B", asked.layout_b, "column")):
        if a == "tf32" and layout != along_k:
            raise LayoutError(
                f"{call}: {name} is {layout}-major, but kernels of sm_{chip} read tf32 along K only; make it "
                "contiguous along K, or use kernel_cc=80"
            )


def _check_scaled_sm100(asked: KernelRequest, call: str, chip: int) -> None:
    """Raise OpError if the kernels for sm_100 with block scales lack the types or layouts of matrices."""
    a, b = asked.element_a, asked.element_b
    if not (a == b == "ui8" or (asked.scaling == "mx" and {a, b} <= {*_BYTES})):
        floats = f", or two of {', '.join(_BYTES)}" if asked.scaling == "mx" else ""
        raise DtypeError(
            f"{call}: A has dtype {_packed_name(a)} and B {_packed_name(b)}; kernels of sm_{chip} with {asked.sums} "
            f"scales support float4_e2m1fn_x2 (or ui8 of two elements) for both{floats}"
        )
    for name, layout, along_k in (("A", asked.layout_a, "row"), ("B", asked.layout_b, "column")):
        if layout != along_k:
            raise LayoutError(
                f"{call}: {name} is {layout}-major, but kernels of sm_{chip} read operands with {asked.sums} scales "
                "along K only; make it contiguous along K"
            )


def _packed_name(element: str) -> str:
    return "float4_e2m1fn_x2" if element == "ui8" else element


def sm100_tiles(asked: KernelRequest) -> list[TileDescription]:
    """Return the tiles of the kernels for sm_100, the largest first; none for pointer arrays.

    Raises OpError for types and layouts that the kernels lack.
    """
    check_sm100(asked)
    if asked.array or (asked.sums and not asked.scaling) or (asked.batch and asked.scaling):
        return []
    a, b = asked.element_a, asked.element_b
    k = 1024 // BITS[a] * asked.packed
    found = list[TileDescription]()
    for m, n in SCALED_TILES if asked.scaling else TILES:
        schedule, cluster = tcgen05_schedule(m)
        instruction = MathInstruction((m, n, k // 4), a, b, "f32", scaling=asked.sums if asked.scaling else "")
        found.append(TileDescription((m, n, k), 0, (4, 1, 1), instruction, cluster, kernel_schedule=schedule))
    return found


def _sm100(td: TileDescription, i: MathInstruction, asked: KernelRequest, swizzle: Swizzle | None) -> Sm100Config:
    """Return the kernel for sm_100 with accumulators in tensor memory."""
    chip = _chip_of(asked, SM100)
    if not sm100_tiles(asked):
        raise UnsupportedError(
            f"Gemm: kernels of sm_{chip} do not support pointer arrays; use a batch or an mma.sync tile"
        )
    if td.parts > 1 or td.tile_scheduler not in (None, "persistent") or (swizzle is not None and swizzle.stream_k):
        raise UnsupportedError(f"Gemm: kernels of sm_{chip} have no split-K or stream-K; use split_k= of the call")
    m, n, k = td.threadblock_shape
    schedule, cluster = tcgen05_schedule(m)
    for name, value, allowed in (
        ("kernel_schedule", td.kernel_schedule, (schedule, None)), ("cluster_shape", td.cluster_shape, (cluster,)),
    ):  # fmt: skip
        if value not in allowed:
            raise UnsupportedError(
                f"Gemm: {name} is {value!r}; kernels of sm_{chip} need {allowed[0]!r} for a tile of {m} rows"
            )
    if td.epilogue_schedule not in (None, "immediate", "direct"):
        raise UnsupportedError(
            f"Gemm: epilogue_schedule is {td.epilogue_schedule!r}; kernels of sm_{chip} have 'immediate' and 'direct'"
        )
    if td.warp_count not in (None, (4, 1, 1)):
        raise UnsupportedError(
            f"Gemm: warp_count is {list(td.warp_count)}; kernels of sm_{chip} need [4, 1, 1] or none"
        )
    a, b = (i.element_b, i.element_a) if asked.flipped else (i.element_a, i.element_b)
    a, b = (FP4, FP4) if asked.packed == 2 else (_as_tf32(a), _as_tf32(b))
    major_a, major_b = asked.majors
    config = Sm100Config(
        a if a == b else f"{a}_{b}",
        asked.output,
        major_a,
        major_b,
        (m, n),
        td.stages,
        group=8 if swizzle is None else swizzle.group,
        batch=asked.batch,
        direct=td.epilogue_schedule == "direct",
        chip=f"sm_{chip}a",
        scaling=asked.scaling,
    )
    wanted = (m, n, config.depth // 4)
    if k != config.depth or tuple(i.instruction_shape) != wanted:
        raise UnsupportedError(
            f"Gemm: the tile is {m} x {n} x {k} with instruction_shape {list(i.instruction_shape)}; kernels of "
            f"sm_{chip} need a K of {config.depth} (128 bytes) and an instruction_shape of {list(wanted)}"
        )
    config = config if td.stages else config._replace(stages=max(2, config.most_stages))
    _check(config.check)
    return config


def tiles_of_chip(chip: int, asked: KernelRequest) -> list[TileDescription]:
    """Return the tiles of the kernels for a chip without measured costs; none for pointer arrays.

    Raises OpError for types and layouts that the kernels lack.
    """
    return sm100_tiles(asked) if chip < 120 else sm120_tiles(asked)


def check_chip(chip: int, asked: KernelRequest, call: str) -> None:
    """Raise OpError if the kernels for a chip without measured costs lack the types or layouts of single matrices."""
    check = check_sm100 if chip < 120 else check_sm120
    check(asked, call)


_UNUSED: dict[str, tuple[object, ...]] = {
    "cluster_shape": ((1, 1, 1),),
    "kernel_schedule": (None,),
    "epilogue_schedule": (None, "immediate"),
    "tile_scheduler": (None, "persistent"),
}
"""Fields of a tile -> values that kernels without the field accept, the usual one first."""


def _check_absent(td: TileDescription, kernels: str, *names: str) -> None:
    """Raise UnsupportedError if a tile sets a field that some kernels do not have."""
    for name in names:
        value: object = getattr(td, name)
        if value not in _UNUSED[name]:
            raise UnsupportedError(
                f"Gemm: {name} is {value!r}, which {kernels} do not support; use {_UNUSED[name][0]!r}"
            )


def _k_or_mn(majors: tuple[str, str]) -> tuple[str, str]:
    a, b = ("k" if x == "k" else "mn" for x in majors)
    return a, b


_SHARED = 163 * 1024
"""Bytes of shared memory per block that the kernels of mma.sync use at most."""


def _of_warps(td: TileDescription, asked: KernelRequest, usual: WarpConfig, rows: int) -> WarpConfig:
    """Return an mma.sync or SIMT kernel with the description's tile; ``rows`` is the M of an instruction."""
    m, n, k = td.threadblock_shape
    wm, wn, wk = td.warp_count or (*usual.warps, 1)
    depths = [usual.depth // 4] * (usual.simt and usual.element == "f32") + [usual.depth // 2, usual.depth]
    line = (m + n) * (k * BITS[usual.element] // 8 + 32)
    stages = td.stages or max(2, min(usual.stages, _SHARED // line))
    config = usual._replace(tile=(m, n), warps=(wm, wn), stages=stages, k=0 if k == usual.depth else k, warps_k=wk)
    if k not in depths or m % (rows * wm) or n % (8 * wn) or config.stages < 2 or wm * wn * wk > 16:
        raise UnsupportedError(
            f"Gemm: a tile of {m} x {n} x {k} with {stages} stages and warps {[wm, wn, wk]} is not supported; M x N "
            f"must be multiples of {rows * wm} x {8 * wn}, K {' or '.join(map(str, depths))}, with at least two stages "
            "and at most 16 warps"
        )
    element = usual.element
    if line * stages > _SHARED:
        cure = "use fewer stages" if 2 * line <= _SHARED else "use a smaller tile"
        raise UnsupportedError(
            f"Gemm: the tile needs {line * stages} bytes of shared memory, but {_SHARED} are available; {cure}"
        )
    sums = m * n // (32 * wm * wn)
    most = 64 if element == "f64" else 128
    if sums > most:
        raise UnsupportedError(f"Gemm: the tile has {sums} accumulators per thread, more than {most}; use more warps")
    _check_copies((m, n), k, BITS[element], config.threads)
    _check(config.check)
    return config


def _ampere(td: TileDescription, i: MathInstruction, asked: KernelRequest, swizzle: Swizzle | None) -> AmpereConfig:
    m, n, k = td.threadblock_shape
    wm, wn, wk = td.warp_count or (2, 2, 1)
    if m % (16 * wm) or n % (16 * wn) or k % (16 * wk) or wm * wn * wk > 16:
        raise UnsupportedError(
            f"Gemm: a tile of {m} x {n} x {k} with {wm} x {wn} x {wk} warps is not supported; use multiples of "
            f"{16 * wm} x {16 * wn} x {16 * wk}, and at most 16 warps"
        )
    if k not in (32, 64) or m & (m - 1) or n & (n - 1):
        raise UnsupportedError(
            f"Gemm: a tile of {m} x {n} x {k} is not supported by mma.sync; M and N must be powers of two, K 32 or 64"
        )
    stages = td.stages or max(2, min(3, _SHARED // (2 * (m + n) * k)))
    size = max((m + n) * k * stages, m * n * (2 if wk > 1 else 1)) * 2
    if stages < 2 or size > _SHARED:
        raise UnsupportedError(
            f"Gemm: {stages} stages of {(m + n) * k * 2} bytes are not supported; use at least two stages, in at most "
            f"{_SHARED} bytes"
        )
    sums = m * n // (32 * wm * wn)
    if sums > 128:
        raise UnsupportedError(
            f"Gemm: the tile has {sums} accumulators per thread, more than 128; use more warps or a smaller tile"
        )
    _check_copies((m, n), k, 16, 32 * wm * wn * wk)
    majors = tuple(["k" if x == "k" else "mn" for x in asked.majors])
    group = 8 if swizzle is None else swizzle.group
    return AmpereConfig(
        i.element_a, (m, n, k), (wm, wn), stages, majors, group, batch=asked.batch, array=asked.array,  # type: ignore[arg-type]
        output="" if asked.output == i.element_a else asked.output, warps_k=wk, sums=i.element_accumulator,
        step=i.instruction_shape[2],
    )  # fmt: skip


def _check_copies(rows: tuple[int, int], k: int, bits: int, threads: int) -> None:
    """Raise UnsupportedError if a stage is not a multiple of 16 bytes per thread."""
    for size in rows:
        if size * k * bits % (128 * threads):
            raise UnsupportedError(
                f"Gemm: a stage of {size} x {k} elements is not a multiple of 16 bytes for each of {threads} threads; "
                "use fewer warps or a larger tile"
            )


_TILES = (
    ((128, 128, 32), 3, (2, 2, 1)), ((128, 256, 32), 3, (2, 4, 1)), ((256, 128, 32), 3, (4, 2, 1)),
    ((128, 128, 64), 3, (2, 2, 1)), ((64, 128, 64), 3, (2, 4, 1)), ((128, 64, 32), 4, (2, 2, 1)),
    ((64, 64, 32), 4, (2, 2, 1)), ((32, 32, 32), 4, (2, 2, 1)),
)  # fmt: skip


def ampere_tiles(asked: KernelRequest) -> list[TileDescription]:
    """Return the mma.sync tiles, the default first.  Raises UnsupportedError if there are none."""
    a, b = asked.element_a, asked.element_b
    if a == b and a in ("f16", "bf16"):
        instruction = MathInstruction((16, 8, 16), a, b, "f32")
        return [TileDescription(shape, stages, warps, instruction) for shape, stages, warps in _TILES]
    math = MathOperation(asked.math)
    if math in FAST and a == b == "f32":
        instruction = MathInstruction(FAST[math][-1], a, b, "f32", math_operation=math)
        return [TileDescription((m, n, 32), 3, w, instruction) for (m, n), w in _OTHERS]
    depths = {"f64": 8, "tf32": 8, "i8": 32, "ui8": 32, "f8E4M3FN": 16, "f8E5M2": 16}
    element = a if a == b else f"{a}_{b}"
    if a not in depths or element not in BITS:
        raise UnsupportedError(f"Gemm: no mma.sync kernel supports {_elements(asked)}")
    sums = sums_of(element) if a != "f64" else "f64"
    instruction = MathInstruction((16, 8, depths[a]), a, b, sums, math_operation=asked.math)
    usual = WarpConfig(element)
    return [TileDescription((*mn, usual.depth), 3, warps, instruction) for mn, warps in _OTHERS]


_OTHERS = (((128, 128), (4, 2, 1)), ((64, 64), (2, 2, 1)))


_WITHOUT = "kernels without tensor cores"
_RUNGS = ("pipelined", "warptile", "vector", "tile2d", "tile1d", "smem")


def simt_tiles(element: str = "f32") -> list[TileDescription]:
    """Return tiles without tensor cores, the fastest first; f64 has two."""
    if element == "f64":
        of_f64 = MathInstruction((1, 1, 1), "f64", "f64", "f64", OpcodeClass.Simt)
        return [TileDescription((*mn, 16), 3, warps, of_f64) for mn, warps in _OTHERS]
    instruction = MathInstruction((1, 1, 1), "f32", "f32", "f32", OpcodeClass.Simt)
    return [TileDescription(RUNGS[r].tile, RUNGS[r].stages, None, instruction) for r in _RUNGS if r != "tile2d"]


def _simt(td: TileDescription, i: MathInstruction, asked: KernelRequest, swizzle: Swizzle | None) -> Configured:
    """Return the kernel without tensor cores: a rung of the SGEMM ladder, or the kernel for any tile."""
    elements = {i.element_a, i.element_b, i.element_accumulator, asked.output}
    if elements not in ({"f32"}, {"f64"}):
        raise UnsupportedError(f"Gemm: no kernel without tensor cores supports {_elements(asked)}")
    _check_absent(td, _WITHOUT, "cluster_shape", "kernel_schedule", "epilogue_schedule", "tile_scheduler")
    if td.parts > 1 or (swizzle is not None and swizzle.stream_k):
        raise UnsupportedError(f"Gemm: {_WITHOUT} have no split-K or stream-K tiles; use split_k= of the call")
    element, shape, stages = asked.output, tuple(td.threadblock_shape), td.stages
    majors = tuple(["k" if x == "k" else "mn" for x in asked.majors])
    usual = WarpConfig(element, element, majors, asked.batch, array=asked.array, simt=True)  # type: ignore[arg-type]
    if element == "f64":
        return _of_warps(td, asked, usual, 8)
    first = RUNGS[_RUNGS[0]]
    if (shape, stages or first.stages) == (first.tile, first.stages) and asked.has_tma:
        return ExactConfig(*asked.majors, asked.batch, array=asked.array)
    if not asked.batch and asked.majors == ("k", "n"):
        for rung in _RUNGS[1:]:
            if RUNGS[rung].tile == shape and stages in (0, RUNGS[rung].stages):
                return SgemmRung(rung)
    if stages == 1:
        known = ", ".join(f"{list(RUNGS[r].tile)} with {RUNGS[r].stages}" for r in _RUNGS if r != "tile2d")
        layouts = f"A {asked.layout_a}, B {asked.layout_b}, D {asked.layout_d}{', batches' * asked.batch}"
        raise UnsupportedError(
            f"Gemm: a tile {list(shape)} with one stage is not supported for {layouts}; use at least two stages, "
            f"or for single row-major matrices a rung of the SGEMM ladder: {known} stages"
        )
    return _of_warps(td, asked, usual, 8)
