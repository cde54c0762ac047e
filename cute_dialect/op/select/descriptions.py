"""Descriptions of a GEMM: instruction, tile, operands, and the order of tiles.

>>> half = MathInstruction([16, 8, 16], "f16", "f16", "f32")
>>> tile = TileDescription([128, 128, 32], 3, [2, 2, 1], half)
>>> tile.replace({"stages": 4}).stages, TensorDescription("float16", "t", 8)
(4, TensorDescription(element='f16', layout='row', alignment=8))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, cast

from cute_dialect.op.arrays.dtypes import checked_element, layout_name
from cute_dialect.op.errors import ShapeError, UnsupportedError
from cute_dialect.op.select.kernel_choice import decode, encode

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.select.kernel_choice import Choice


class OpcodeClass(StrEnum):
    """Class of the multiply instruction: tensor core or SIMT."""

    TensorOp = "tensor_op"
    Simt = "simt"


class MathOperation(StrEnum):
    """Arithmetic of the multiplication."""

    multiply_add = "multiply_add"
    multiply_add_saturate = "multiply_add_saturate"
    multiply_add_fast_f16 = "multiply_add_fast_f16"
    multiply_add_fast_bf16 = "multiply_add_fast_bf16"
    multiply_add_fast_f32 = "multiply_add_fast_f32"


class Mode(StrEnum):
    """Kind of a call: one GEMM, split-K slices that a second kernel reduces, a batch, or an array of pointers."""

    Gemm = "gemm"
    GemmSplitKParallel = "gemm_split_k_parallel"
    Batched = "batched"
    Array = "array"


class SplitKMode(StrEnum):
    """Kind of K split: slices reduced in the same kernel, slices reduced by a second kernel, or stream-K."""

    Serial = "serial"
    Parallel = "parallel"
    Stream = "stream"


class Split(NamedTuple):
    """The split of K over blocks."""

    mode: str = "serial"  # "serial", "parallel" or "stream": a SplitKMode
    parts: int = 1

    @classmethod
    def of(cls, value: object) -> Split:
        """Return the split for None, a number of slices, or (mode, slices).  Raises UnsupportedError."""
        mode: object = "stream" if value == "stream" else "serial"
        parts: object = 2 if value == "stream" else 1 if value is None else value
        if isinstance(value, tuple | list) and len(cast("tuple[object, ...]", value)) == 2:
            mode, parts = cast("tuple[object, object]", value)
        if mode not in ("serial", "parallel", "stream") or not isinstance(parts, int):
            raise UnsupportedError(
                f"split_k={value!r} is not supported; pass a number of slices, or (mode, slices) with mode 'serial', "
                "'parallel' or 'stream'"
            )
        if parts < 1:
            raise UnsupportedError(f"split_k={parts} is not supported; pass at least 1 slice")
        return cls(str(mode), parts)


ALONE = Split()
"""No split of K."""


class SchedulerMode(StrEnum):
    """Tile scheduler of a grouped GEMM: the kernel, or the host, which assigns a tile to each block."""

    Device = "device"
    Host = "host"


class GemmCoord(NamedTuple):
    """The extents of a GEMM: (M, K) (K, N) -> (M, N)."""

    m: int
    n: int
    k: int


class Swizzle(NamedTuple):
    """Mapping of blocks to tiles."""

    name: str
    group: int  # rows of tiles that are traversed together
    stream_k: bool = False  # True if blocks share the tiles of the last wave


IdentitySwizzle1 = Swizzle("IdentitySwizzle1", 1)
IdentitySwizzle2 = Swizzle("IdentitySwizzle2", 2)
IdentitySwizzle4 = Swizzle("IdentitySwizzle4", 4)
IdentitySwizzle8 = Swizzle("IdentitySwizzle8", 8)
HorizontalSwizzle = Swizzle("HorizontalSwizzle", 1)
StridedDgradIdentitySwizzle1 = Swizzle("StridedDgradIdentitySwizzle1", 8)
StridedDgradIdentitySwizzle4 = Swizzle("StridedDgradIdentitySwizzle4", 8)
"""The strided-dgrad swizzles equal the default one, because residue classes of pixels are matrices of a batch here."""
BatchedIdentitySwizzle = Swizzle("BatchedIdentitySwizzle", 8)
ThreadblockSwizzleStreamK = Swizzle("ThreadblockSwizzleStreamK", 8, stream_k=True)


class TensorDescription:
    """The description of an operand.

    Args:
        element: element type, "void" for no operand.
        layout: layout, such as "row".
        alignment: elements of which the address and row strides are multiples; 0 for 16 bytes.
    """

    __slots__ = ("alignment", "element", "layout")

    def __init__(self, element: object, layout: object = "row", alignment: int = 0):
        self.element = "void" if element == "void" else checked_element(element)
        self.layout = layout_name(layout, interleaved=True)
        self.alignment = alignment

    def __repr__(self) -> str:
        return f"TensorDescription(element={self.element!r}, layout={self.layout!r}, alignment={self.alignment})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorDescription) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def interleaved(self) -> bool:
        """True if columns (rows, of ``RowMajorInterleaved32``) are in runs of 32."""
        return self.layout.endswith("interleaved-32")

    @property
    def plain(self) -> str:
        """The contiguous index, ``row`` or ``column``; for interleaved layouts within a run."""
        return {"column-interleaved-32": "row", "row-interleaved-32": "column"}.get(self.layout, self.layout)

    def _key(self) -> tuple[str, str, int]:
        return self.element, self.layout, self.alignment


def _three(value: Sequence[int], what: str) -> tuple[int, int, int]:
    found = [_integer(x) for x in value] if isinstance(value, Iterable) else []  # pyright: ignore
    if len(found) != 3 or min(found) < 1:
        shown = list(value) if isinstance(value, tuple) else value
        raise ShapeError(f"{what} is {shown!r}; it must be three positive integers")
    m, n, k = found
    return m, n, k


def _integer(value: object) -> int:
    """Return an integer, -1 for any other value."""
    return int(value) if isinstance(value, SupportsIndex) and not isinstance(value, bool) else -1


def _count(value: object, what: str, least: int) -> int:
    """Return a field as a number.  Raises UnsupportedError unless it is an integer of at least ``least``."""
    found = _integer(value)
    if found < least:
        raise UnsupportedError(f"{what} is {value!r}; it must be an integer of at least {least}")
    return found


@dataclass(frozen=True)
class MathInstruction:
    """An instruction: its shape (M, N, K), and the elements of A, B and the accumulator.

    ``[64, N, 16]`` is wgmma (K of 32 bytes), ``[128, N, 16]`` and ``[256, N, 16]`` are tcgen05, ``[16, 8, 16]`` and
    similar shapes are mma.sync, and ``[1, 1, 1]`` is a scalar FMA.
    """

    instruction_shape: Sequence[int]
    element_a: str
    element_b: str
    element_accumulator: str
    opcode_class: str = OpcodeClass.TensorOp
    math_operation: str = MathOperation.multiply_add
    scaling: str = ""  # scales of A and B, "block1x32" or "block1x16"; elements of ui8 are then two floats of 4 bits

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "instruction_shape", _three(self.instruction_shape, "instruction_shape"))
        for name in ("element_a", "element_b", "element_accumulator"):
            put(self, name, checked_element(getattr(self, name), name))
        put(self, "opcode_class", known(OpcodeClass, self.opcode_class, "opclass"))
        put(self, "math_operation", known(MathOperation, self.math_operation, "math_operation"))
        if self.scaling not in ("", "block1x32", "block1x16"):
            raise UnsupportedError(f"scaling={self.scaling!r} is not supported; use 'block1x32', 'block1x16' or ''")

    @property
    def in_parts(self) -> bool:
        """True if memory holds three tf32 parts of f32, which wgmma multiplies."""
        return self.instruction_shape[0] == 64 and self.math_operation == MathOperation.multiply_add_fast_f32


def known(kind: type[StrEnum], value: object, what: str) -> StrEnum:
    """Return the enumeration member that a value names.  Raises UnsupportedError."""
    try:
        return kind(str(value))
    except ValueError:
        raise UnsupportedError(f"{what}={value!r} is not supported; use one of {', '.join(kind)}") from None


ONE_SM, TWO_SM = "1sm", "2sm"
"""The kernel schedules of tcgen05 kernels, whose tiles are of one block, or of a pair of blocks with 256 rows."""


def tcgen05_schedule(rows: int) -> tuple[str, tuple[int, int, int]]:
    """Return the kernel schedule and the cluster of tcgen05 kernels for the rows of a tile."""
    return (TWO_SM, (2, 1, 1)) if rows == 256 else (ONE_SM, (1, 1, 1))


@dataclass(frozen=True)
class TileDescription:
    """The tile of a block, and the distribution of work over blocks and warps."""

    threadblock_shape: Sequence[int]  # (M, N, K)
    # Stages of the shared memory pipeline. 0 is the default: as many as fit with TMA, 3 or 4 with cp.async.
    stages: int = 0
    warp_count: Sequence[int] | None = None  # along M, N and K; None for the default
    math_instruction: MathInstruction | None = None
    cluster_shape: Sequence[int] = (1, 1, 1)  # blocks that share operands
    kernel_schedule: str | None = None  # "cooperative", "pingpong", "few_rows", "1sm" or "2sm"
    tile_scheduler: str | None = None  # "persistent", "stream_k" or "split_k"
    epilogue_schedule: str | None = None  # "immediate", "deferred" (with the next main loop), "direct" (not by TMA)
    parts: int = 1  # split-K slices
    transposed: bool = False  # True for a tile of D^T = B^T A^T
    # The kernel that is described. It has more details, such as the tile order; changing a field removes it.
    kernel: Choice | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "threadblock_shape", _three(self.threadblock_shape, "threadblock_shape"))
        put(self, "cluster_shape", _three(self.cluster_shape, "cluster_shape"))
        put(self, "stages", _count(self.stages, "stages", 0))
        put(self, "parts", _count(self.parts, "parts", 1))
        if self.warp_count is not None:
            put(self, "warp_count", _three(self.warp_count, "warp_count"))

    def replace(self, changes: Mapping[str, object]) -> TileDescription:
        """Return a description with other fields.

        A new ``threadblock_shape`` resets the fields that depend on it, unless they are given as well.  Raises
        UnsupportedError for an unknown field.
        """
        names = [f.name for f in fields(self) if f.name != "kernel"]
        for name in changes:
            if name not in names:
                raise UnsupportedError(f"tile_description has no field {name!r}; use one of {', '.join(names)}")
        usual: dict[str, object] = {"kernel": None}
        i = self.math_instruction
        if "threadblock_shape" in changes:
            usual |= {"warp_count": None, "epilogue_schedule": None, "transposed": False}
            if i is not None and i.instruction_shape[0] in (1, 8, 16):  # SIMT and mma.sync, whose kernels use what fits
                usual["stages"] = 0
            if i is not None and i.instruction_shape[0] in (
                64,
                128,
                256,
            ):  # N, and M of tcgen05, are those of the tile.
                m, n, _ = _three(changes["threadblock_shape"], "threadblock_shape")  # type: ignore[arg-type]
                if self.kernel_schedule in (ONE_SM, TWO_SM):
                    usual["kernel_schedule"], usual["cluster_shape"] = tcgen05_schedule(m)
                else:
                    m = 64
                usual["math_instruction"] = replace(i, instruction_shape=(m, n, i.instruction_shape[2]))
        return replace(self, **{**usual, **changes})  # type: ignore[arg-type]

    @property
    def in_parts(self) -> bool:
        """True if the kernel multiplies f32 that is split into tf32 parts first."""
        return self.math_instruction is not None and self.math_instruction.in_parts

    @property
    def name(self) -> str:
        """Short name, such as ``128x256x64_4_2x1x1``."""
        text = "x".join(map(str, self.threadblock_shape)) + f"_{self.stages}_" + "x".join(map(str, self.cluster_shape))
        more = (self.kernel_schedule, self.tile_scheduler, self.epilogue_schedule)
        return text + "".join(f"_{x}" for x in more if x) + f"_{self.parts}" * (self.parts > 1)

    def to_json(self) -> dict[str, object]:
        """Return the description as data."""
        found: dict[str, object] = asdict(replace(self, kernel=None))
        found["kernel"] = None if self.kernel is None else encode(self.kernel)
        return found

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> TileDescription:
        """Return the description of :meth:`to_json`.  Raises ValueError, TypeError for other data."""
        values, i, kernel = dict(given), given["math_instruction"], given["kernel"]
        values["math_instruction"] = None if i is None else MathInstruction(**i)
        values["kernel"] = None if kernel is None else decode(kernel)
        return cls(**values)
