"""The launches of a call.

Usually there is one.  If f32 is split into tf32 parts, kernels that split A and B come first.  If split-K slices are
computed separately, a reduction follows.  Slices are multiples of 128 bytes of K, all equal except the last one, and
are added in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cute_dialect.kernels.gemm.split_tf32 import padded
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.memory import new_memory
from cute_dialect.op.arrays.operand_views import kernel_order, turn
from cute_dialect.op.epilogue.bind import combining, memory_of
from cute_dialect.op.errors import EpilogueError, UnsupportedError
from cute_dialect.op.execute.kernels import Variant, chip_here
from cute_dialect.op.execute.pointer_arrays import joined, one_view
from cute_dialect.op.problems.operands import Operands, fits_results
from cute_dialect.op.select.descriptions import Split
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.epilogue.bind import Reduced
    from cute_dialect.op.pycutlass.operation import GemmOperationUniversal

Memory: TypeAlias = Callable[[int], ArrayView]
"""Allocates a number of f32 elements."""


class Step(NamedTuple):
    """A launch: the kernel and its operands."""

    variant: Variant
    operands: Operands


class Workspace(NamedTuple):
    """Accumulators of split-K slices in memory."""

    memory: ArrayView  # (M, N, slices) of D, or of D^T if kernels compute that; a batch has a last mode
    element: str
    asked: int = 0  # number of slices that was requested

    @property
    def parts(self) -> int:
        """Number of slices."""
        return self.memory.shape[2]


def steps_of(operation: GemmOperationUniversal, x: Operands, split: Split) -> list[Step]:
    """Return the launches of a call.  Raises UnsupportedError."""
    if 0 in x.d.shape:
        return _of_nothing(x)
    if x.a.shape[-1] == 0 or x.alpha == 0.0:  # A and B do not affect the result, even if they hold NaN.
        if x.by_element:
            return [reduction(operation, x._replace(alpha=1.0), _workspace(operation, x, 0))]
        x, split = _zeros(x), Split()
    x, before = split_steps(operation, x)
    # The accumulators of the tf32 parts can go to a workspace if the kernel cannot write D directly.
    writes = not operation.in_parts or fits_results(x, flipped=operation.D.layout == "column")
    if split.parts == 1 and writes:
        return [*before, *combined_steps(operation.variant_for(x), x)]
    if operation.saturates:
        raise UnsupportedError(
            "split_k cannot be combined with a saturating accumulator, because partial sums would not saturate; "
            "use split_k=1"
        )
    if split.parts > 1 and split.mode != "parallel":
        shared = operation.sharing(split, x) if writes else None
        if shared is not None:
            return [*before, *combined_steps(shared.variant_for(x), x)]
        if split.mode == "stream":
            raise UnsupportedError("split_k='stream' is not supported for this tile; use another tile or mode")
    if not x.by_element and split.parts == 1:
        raise EpilogueError(
            "Gemm: an epilogue with pairs() or reductions needs a D whose address and row stride are multiples of 16 "
            "bytes"
        )
    if not x.by_element:
        raise EpilogueError(
            "split_k with mode 'parallel' does not support an epilogue with pairs() or reductions; use split_k=1"
        )
    workspace, found = partial_steps(operation, x, split.parts)
    return [*before, *found, reduction(operation, x, workspace)]


def split_steps(operation: GemmOperationUniversal, x: Operands) -> tuple[Operands, list[Step]]:
    """Return operands as the kernel of the GEMM reads them, and the launches before it.

    These split A and B into tf32 parts if the kernel multiplies such parts.
    """
    if not operation.in_parts:
        return x, []
    a, b = _one(x.a), turn(_one(x.b))
    splitters = operation.splitters(len(a.shape) == 3, len(b.shape) == 3)
    found = [split_step(variant, view, _f32_like(x.d)) for variant, view in zip(splitters, (a, b))]
    of_a, of_b = (step.operands.d for step in found)
    return x._replace(a=of_a, b=turn(of_b)), found


def split_step(variant: Variant, x: ArrayView, memory: Memory) -> Step:
    """Return the launch that writes the three tf32 parts of an f32 operand (…, rows, K) side by side along K."""
    *matrices, rows, k = x.shape
    columns = 3 * padded(k)
    parts = memory(prod(matrices) * rows * columns)._replace(
        shape=(*matrices, rows, columns), strides=(*[rows * columns for _ in matrices], columns, 1)
    )
    return Step(variant, Operands(kernel_order(x), x, parts))


def _f32_like(view: ArrayView) -> Memory:
    return lambda n: new_memory(view, n, "f32")


def _one(view: ArrayView) -> ArrayView:
    """Return the matrix of a batch of one or of a broadcast batch; other arrays unchanged."""
    if len(view.shape) == 3 and (view.shape[0] == 1 or view.strides[0] == 0):
        return view._replace(shape=view.shape[1:], strides=view.strides[1:])
    return view


def combined_steps(
    variant: Variant, x: Operands, memory: Memory | None = None, *, turned: bool = False, dependent: bool = False
) -> list[Step]:
    """Return a launch, and the launches that combine its partial reductions.

    Args:
        memory: allocates f32 elements; default: like D.
        turned: the operands are those of the transposed problem, but not the results of reductions.
        dependent: the launches that combine use programmatic dependent launch.
    """
    if not x.reduced:
        return [Step(variant, x)]
    memory = memory or _f32_like(x.d)
    recipe, (m, n) = variant.recipe(), x.d.shape[-2:]
    n = n * 2 if x.graph is not None and x.graph.half else n  # N of the accumulator
    rows, columns = (n, m) if recipe.transposed else (m, n)
    matrices = x.d.shape[0] if len(x.d.shape) == 3 else 1
    matrices = matrices if x.places is None else x.places.shape[1]
    behind, more = list(x.behind), list[Step]()
    for each in x.reduced:
        extents = each.extents(rows, columns, recipe.at_once, recipe.transposed != turned)
        made = memory(extents[0] * extents[1] * matrices)
        behind[each.place] = parts = memory_of(made, extents, matrices)
        more += _combining(variant.chip, each, parts, memory, dependent=dependent)
    return [Step(variant, x._replace(behind=tuple(behind))), *more]


def _combining(chip: str, each: Reduced, parts: ArrayView, memory: Memory, *, dependent: bool = False) -> list[Step]:
    """Return the launches that combine the partial values of a reduced result."""
    steps: list[Step] = []
    for c in combining(each, parts, memory):
        config = c.config._replace(dependent=True) if dependent else c.config
        steps.append(Step(Variant(config, chip=chip), Operands(c.parts, c.parts, c.results)))
    return steps


def _of_nothing(x: Operands) -> list[Step]:
    """Return the launches that fill reduced results with their identity when D is empty."""
    found: list[Step] = []
    for each in x.reduced:
        if 0 not in each.result.shape:
            *matrices, m, n = each.result.shape
            many = matrices[0] if matrices else 1
            none = x.d._replace(dtype="f32", pointer=x.d.pointer & -16, shape=(0, m * n, many), strides=(1, 1, 1))
            found += _combining(chip_here(), each._replace(axes="m" if m == 1 else "n"), none, _f32_like(x.d))
    return found


def _zeros(x: Operands) -> Operands:
    """Return operands of zeros with a small K, so that the accumulator is 0."""
    k = 16

    def zeros(view: ArrayView, mode: int, rows: int) -> ArrayView:
        lines = -(-rows // 16) * 16
        memory = new_memory(x.d, lines * k, view.dtype, zero=True)
        along = view.strides[-2:][mode] == 1  # contiguous along K
        shape, strides = (rows, k), ((k, 1) if along else (1, lines))
        return memory._replace(shape=shape[:: 1 if mode else -1], strides=strides[:: 1 if mode else -1])

    return x._replace(a=zeros(x.a, 1, x.a.shape[-2]), b=zeros(x.b, 0, x.b.shape[-1]))


def _workspace(operation: GemmOperationUniversal, x: Operands, parts: int) -> Workspace:
    """Allocate the workspace of split-K slices."""
    *batch, m, n = x.d.shape
    m, n = (n, m) if operation.D.layout == "column" else (m, n)
    wide = -(-n // 4) * 4
    sums = operation.sums
    # Without slices it is never read.
    memory = (
        new_memory(x.d, prod(batch) * parts * m * wide, sums)
        if parts
        else x.d._replace(dtype=sums, pointer=x.d.pointer & -16)
    )
    shape, strides = (m, wide, parts, *batch), (wide, 1, m * wide, *[parts * m * wide for _ in batch])
    return Workspace(memory._replace(shape=shape, strides=strides), sums, parts)


def reduction(operation: GemmOperationUniversal, x: Operands, workspace: Workspace) -> Step:
    """Return the launch that adds up slices and computes the epilogue."""
    variant = operation.reduction_variant(x, workspace.element)
    return Step(variant, x._replace(a=workspace.memory, b=workspace.memory))


def partial_steps(operation: GemmOperationUniversal, x: Operands, parts: int) -> tuple[Workspace, list[Step]]:
    """Return the workspace, and the launches that compute its split-K slices.  Raises UnsupportedError."""
    if operation.saturates:
        raise UnsupportedError(
            "split_k cannot be combined with a saturating accumulator, because partial sums would not saturate; "
            "use split_k=1"
        )
    each, whole, rest = _division(x, parts)
    workspace = _workspace(operation, x, whole + (rest > 0))._replace(asked=parts)
    sums = operation.partial()
    found: list[Step] = []
    turned = operation.D.layout == "column"

    def part_of(first: int, many: int, length: int) -> Operands:
        return Operands(
            _along_k(x.a, -1, first * each, many, length), _along_k(x.b, -2, first * each, many, length),
            _part(workspace.memory, x.d, first, many, turned=turned),
        )  # fmt: skip

    pieces = [(0, whole, each), (whole, 1 if rest else 0, rest)]
    if len(x.d.shape) == 3:  # Each slice is a batch.
        together = _joined([y for i in range(whole) for y in _each_matrix(part_of(i, 1, each))]) if whole > 1 else None
        if together is not None:
            found.append(Step(sums.variant_for(together, array=True), together))
        pieces = [*[(i, 1, each) for i in range(whole) if together is None], *pieces[1:]]
    for first, many, length in pieces:
        if many:
            part = part_of(first, many, length)
            found.append(Step(sums.variant_for(part), part))
    return workspace, found


def _each_matrix(x: Operands) -> list[Operands]:
    """Return the GEMMs of a batch."""

    def matrix(view: ArrayView, i: int) -> ArrayView:
        if len(view.shape) == 2:
            return view
        at = i * view.strides[0] * SIZES.get(view.dtype, 1) if view.shape[0] > 1 else 0
        return view._replace(pointer=view.pointer + at, shape=view.shape[1:], strides=view.strides[1:])

    return [Operands(matrix(x.a, i), matrix(x.b, i), matrix(x.d, i)) for i in range(x.d.shape[0])]


def _joined(found: Sequence[Operands]) -> Operands | None:
    """Return GEMMs as a pointer array of one launch, or None if their matrices are too far apart or unaligned."""
    for name in ("a", "b", "d"):
        one = one_view([getattr(x, name) for x in found])
        if one is None or (len(found) > 1 and one[0].strides[0] * SIZES.get(one[0].dtype, 1) % 16):
            return None
    return joined(found)


def _division(x: Operands, parts: int) -> tuple[int, int, int]:
    """Return the K of a slice, the number of such slices, and the K of the remaining one (0 for none)."""
    unit = 128 // SIZES.get(x.a.dtype, 1)
    k = x.a.shape[-1]
    steps = -(-k // unit)
    each = -(-steps // min(parts, steps)) * unit
    return each, *divmod(k, each)


def parts_of(x: Operands, split: Split) -> tuple[int, str]:
    """Return the number of split-K slices, and the reason if they are fewer than requested."""
    unit = 128 // SIZES.get(x.a.dtype, 1)
    steps = max(1, -(-x.a.shape[-1] // unit))
    if split.mode == "stream" or split.parts == 1:
        return split.parts, ""
    found = min(split.parts, steps)
    if split.mode == "parallel" and x.a.shape[-1]:
        _, whole, rest = _division(x, split.parts)
        found = whole + (rest > 0)
    if found == split.parts:
        return found, ""
    why = f"K {x.a.shape[-1]} has {steps} steps of {unit}"
    return found, why if split.parts > steps else f"{why}, split evenly over the slices"


def _along_k(view: ArrayView, mode: int, begin: int, many: int, length: int) -> ArrayView:
    """Return slices of a matrix along K as a batch; one slice as a matrix."""
    step = view.strides[mode]
    shape = [length if i == mode % len(view.shape) else n for i, n in enumerate(view.shape)]
    at = view._replace(pointer=view.pointer + begin * step * SIZES.get(view.dtype, 1), shape=tuple(shape))
    if many == 1:
        return at
    return at._replace(shape=(many, *at.shape), strides=(length * step, *at.strides))


def _part(memory: ArrayView, d: ArrayView, first: int, many: int, *, turned: bool) -> ArrayView:
    """Return the workspace of some slices of D as a matrix, or a batch (slices, M, N)."""
    row, column, step, *matrix = memory.strides
    at = memory._replace(pointer=memory.pointer + first * step * SIZES[memory.dtype])
    strides = (*matrix, column, row) if turned else (*matrix, row, column)
    if many == 1:
        return at._replace(shape=d.shape, strides=strides)
    return at._replace(shape=(many, *d.shape), strides=(step, *strides))
