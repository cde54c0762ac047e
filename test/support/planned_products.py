"""Planned GEMMs for the GPU tests: their plans, their operands, and the kernels that they use on an H200."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cute_dialect import op
from cute_dialect.op.execute.kernels import Variant
from cute_dialect.runtime.arrays import numpy_dtype

WGMMA, HALF = (
    op.MathInstruction([64, 128, 16], "f16", "f16", "f32"),
    op.MathInstruction([16, 8, 16], *["f16"] * 2, "f32"),
)
PARTS = op.MathInstruction([16, 8, 8], *["f32"] * 3, "tensor_op", "multiply_add_fast_f32")


class Planned(NamedTuple):
    """A planned GEMM.

    ``plan`` holds arguments of ``op.Gemm`` and ``more`` properties of the plan. ``shape`` is (M, N, K), ``batch`` the
    number of matrices of A and of B. ``numbers`` are alpha and beta. ``bias`` adds a per-column bias.
    """

    name: str
    plan: dict[str, Any]
    shape: tuple[int, int, int] = (264, 400, 272)
    numbers: tuple[float, float] = (1.0, 0.0)
    bias: bool = False
    more: dict[str, Any] = {}
    batch: tuple[int, int] | None = None
    split: Any = None

    def planned(self) -> op.Gemm:
        """Return the plan."""
        plan = op.Gemm(**self.plan)
        for name, value in self.more.items():
            setattr(plan, name, value)
        return plan

    def operands(self) -> dict[str, Any]:
        """Return numpy arrays of small integers, for which all results are exact, and a poisoned D."""
        m, n, k = self.shape
        rng = np.random.default_rng(m + n + k)
        a, b, c, d = self.planned().kinds
        many = [(), ()] if self.batch is None else [(x,) if x else () for x in self.batch]
        of_d = () if self.batch is None else (max(self.batch),)

        def matrix(kind: Any, *shape: int) -> np.ndarray[Any, Any]:
            *more, rows, columns = shape
            order = (rows, columns) if kind.layout == "row" else (columns, rows)
            low = 0 if kind.element == "ui8" else -2
            made = rng.integers(low, 3, (*more, *order)).astype(numpy_dtype(kind.element))
            return made if kind.layout == "row" else made.swapaxes(-1, -2)

        made = {"A": matrix(a, *many[0], m, k), "B": matrix(b, *many[1], k, n), "D": matrix(d, *of_d, m, n)}
        made["D"][...] = 99 if d.element[0] in "iu" else np.nan
        if self.numbers[1]:
            made["C"] = matrix(c, *of_d, m, n)
        if self.bias:
            kind = np.float64 if d.element == "f64" else np.float32
            made["bias"] = rng.integers(-2, 3, n).astype(kind)
        return made

    def variants(self) -> list[Variant]:
        """Return the kernels of the plan."""
        given = self.operands()
        found = self.planned().arguments(
            **given, alpha=self.numbers[0], beta=self.numbers[1], split_k=self.split
        )  # fmt: skip
        return found.sources()


def _layouts() -> Iterator[Planned]:
    for of_a in ("row", "column"):
        for of_b in ("row", "column"):
            for of_d in ("row", "column"):
                plan = {"element": "f16", "layout_A": of_a, "layout_B": of_b, "layout_C": of_d}
                yield Planned(f"f16 {of_a}-{of_b}-{of_d}", plan, numbers=(0.5, 2.0))


F16: dict[str, Any] = {"element": "f16", "layout": "row"}
NK: dict[str, Any] = {"layout_A": "row", "layout_B": "column", "layout_C": "row"}


def _tile(shape: list[int], instruction: op.MathInstruction = WGMMA, **more: Any) -> dict[str, Any]:
    stages, warps = more.pop("stages", 0), more.pop("warp_count", None)
    return {"tile_description": op.TileDescription(shape, stages, warps, instruction, **more)}


def _sync(shape: list[int], element: str, sums: str = "f32") -> op.MathInstruction:
    return op.MathInstruction(shape, element, element, sums)


CASES = [
    *_layouts(),
    Planned("plain", F16, (1000, 1000, 1000)),
    Planned("f16 to f32 columns", {**F16, "element_C": "f32", "layout_C": "column"}, numbers=(1.0, 1.0), bias=True),
    Planned("no C", {**F16, "element_C": "void", "element_D": "f32"}, bias=True, more={"activation": "relu"}),
    Planned("bf16", {"element": "bf16", "layout": "row"}, numbers=(2.0, 0.0)),
    Planned("odd", F16, (333, 1001, 511), (0.5, 2.0), bias=True),
    Planned("odd columns", {**F16, "layout_C": "column"}, (333, 1001, 511), (0.5, 2.0), bias=True),
    Planned("sm_80", {**F16, "kernel_cc": 80}, numbers=(0.5, 2.0)),
    Planned("tf32", {"element": "tf32", **NK}, numbers=(0.5, 2.0)),
    Planned("tf32 odd", {"element": "tf32", **NK}, (333, 101, 511), (0.5, 2.0)),
    Planned("i8", {"element": "i8", "element_C": "i32", **NK}, (264, 400, 272)),
    Planned("i8 sm_80", {"element": "i8", "element_C": "i32", **NK, "kernel_cc": 80}, (264, 400, 272), (1.0, 1.0)),
    Planned("e4m3", {"element": "f8E4M3FN", "element_C": "bf16", **NK}, numbers=(0.5, 2.0)),
    Planned("f32", {"element": "f32", "layout": "row"}, numbers=(0.5, 2.0)),
    Planned("f32 columns", {"element": "f32", "layout": "column"}, (333, 101, 511), numbers=(0.5, 2.0)),
    Planned("f64", {"element": "f64", "layout": "row"}, (333, 101, 511), (0.5, 2.0)),
    Planned("batch", F16, (136, 200, 72), (0.5, 2.0), batch=(5, 5)),
    Planned("batch, one B", F16, (136, 200, 72), (0.5, 2.0), batch=(5, 0)),
    Planned("batch, one A", F16, (136, 200, 72), batch=(0, 5)),
    Planned("batch, odd", F16, (65, 67, 35), (0.5, 2.0), batch=(5, 5)),
    Planned("tile", F16, (1000, 1000, 1000), more=_tile([128, 128, 64], stages=4, warp_count=[8, 1, 1])),
    Planned("tile, cluster", F16, (1000, 1000, 1000), more=_tile([128, 128, 64], cluster_shape=[2, 1, 1])),
    Planned("tile, turns", F16, (1000, 1000, 1000), more=_tile([64, 128, 64], kernel_schedule="pingpong")),
    Planned("tile, stream_k", F16, (1000, 1000, 1000), (0.5, 2.0),
            more=_tile([128, 128, 64], tile_scheduler="stream_k")),
    Planned("tile, parts", F16, (256, 256, 4096), (0.5, 2.0),
            more=_tile([128, 128, 64], tile_scheduler="split_k", parts=4)),
    Planned("parts, serial", F16, (256, 256, 4096), (0.5, 2.0), split=("serial", 4)),
    Planned("parts, parallel", F16, (264, 400, 4104), (0.5, 2.0), bias=True, split=("parallel", 5)),
    Planned("parts, parallel columns", {**F16, "layout_C": "column"}, (264, 400, 4104), (0.5, 2.0),
            split=("parallel", 5)),
    Planned("parts, stream", F16, (1000, 1000, 1000), (0.5, 2.0), split="stream"),
    Planned("parts, serial, batch", F16, (136, 200, 4096), (0.5, 2.0), batch=(3, 3), split=("serial", 4)),
    Planned("parts, parallel, batch", F16, (136, 200, 1000), (0.5, 2.0), batch=(3, 3), split=("parallel", 4)),
    Planned("warps along K", F16, (264, 400, 272), (0.5, 2.0),
            more=_tile([64, 64, 64], HALF, stages=3, warp_count=[2, 1, 4])),
    Planned("warps along K, odd", F16, (65, 67, 35), more=_tile([64, 64, 64], HALF, stages=3, warp_count=[2, 1, 4])),
    Planned("warps along K, i8", {"element": "i8", "element_C": "i32", **NK, "kernel_cc": 80}, (264, 400, 272),
            more=_tile([64, 64, 128], _sync([16, 8, 32], "i8", "i32"), stages=3, warp_count=[2, 1, 2])),
    Planned("16x8x8", F16, (264, 400, 272), more=_tile([64, 64, 32], _sync([16, 8, 8], "f16"), stages=3)),
    Planned("sums of f16 by mma.sync", {**F16, "element_accumulator": "f16"}, (264, 400, 272),
            more=_tile([64, 64, 32], _sync([16, 8, 16], "f16", "f16"), stages=3)),
    Planned("64 bytes of K", F16, (264, 400, 272), more=_tile([128, 128, 32], stages=6)),
    Planned("64 bytes of K, columns", {"element": "f16", "layout": "column"}, (264, 400, 272),
            more=_tile([128, 128, 32], cluster_shape=[2, 1, 1])),
    Planned("cluster of 4 x 2", F16, (1000, 1000, 1000), more=_tile([128, 128, 64], cluster_shape=[4, 2, 1])),
    *[Planned(f"{n} columns of i8", {"element": "i8", "element_C": "i32", **NK}, (264, 72, 272),
              more=_tile([64, n, 128], op.MathInstruction([64, n, 32], "i8", "i8", "i32"))) for n in (8, 24)],
    Planned("f64 without tensor cores", {"element": "f64", "layout": "row"}, (333, 101, 511), (0.5, 2.0),
            more={"opclass": "simt"}),
    *[Planned(f"f32 {math}", {"element": "f32", "layout": "row"}, (333, 101, 511), (0.5, 2.0),
              more={"math_operation": f"multiply_add_{math}"}) for math in ("fast_f32", "fast_f16", "fast_bf16")],
    Planned("f32 in parts", {"element": "f32", "layout": "row"}, (264, 400, 271), (0.5, 2.0), bias=True,
            more={"math_operation": "multiply_add_fast_f32"}),
    Planned("f32 in parts, columns", {"element": "f32", "layout": "column"}, (264, 400, 271),
            more={"math_operation": "multiply_add_fast_f32"}),
    Planned("f32 in parts, batch", {"element": "f32", "layout": "row"}, (136, 200, 72), (0.5, 2.0), batch=(5, 5),
            more={"math_operation": "multiply_add_fast_f32"}),
    Planned("f32 in parts, split-K", {"element": "f32", "layout": "row"}, (264, 400, 1000), (0.5, 2.0),
            more={"math_operation": "multiply_add_fast_f32"}, split=("parallel", 3)),
    Planned("f32 in parts, mma.sync", {"element": "f32", "layout": "row"}, (333, 101, 511), (0.5, 2.0),
            more=_tile([64, 64, 32], PARTS, stages=3, warp_count=[2, 2, 1])),
    Planned("i8, sums saturate", {"element": "i8", "element_C": "i32", **NK}, (264, 400, 272),
            more={"math_operation": "multiply_add_saturate"}),
    Planned("no factor", F16, (264, 400, 272), (0.0, 2.0)),
    Planned("tile, mma.sync", F16, (1000, 1000, 1000), more=_tile([64, 128, 64], HALF, stages=3, warp_count=[2, 4, 1])),
    Planned("tile, no tensor cores", {"element": "f32", "layout": "row"}, (200, 136, 72),
            more=_tile([128, 128, 16], op.MathInstruction([1, 1, 1], *["f32"] * 3, "simt"), stages=3)),
]  # fmt: skip


def texts() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name and the text of each kernel."""
    found = [v for case in CASES for v in case.variants()]
    for array in ARRAYS.values():
        done = array.matrices()
        found.append(done.operation.variant_for(done.operands, array=True))
    found += [saturating(80).variant(), saturating(90).variant(), in_runs().variant(2.0)]
    for name, variant in {v.name: v for v in found}.items():
        yield name, variant.text


class Several(NamedTuple):
    """A pointer-array GEMM.

    ``kinds`` holds arguments of ``op.Gemm``, ``shape`` is (M, N, K), and ``count`` the number of matrices. Each matrix
    starts ``offset`` elements past a 16-byte boundary.
    """

    kinds: dict[str, Any]
    shape: tuple[int, int, int]
    count: int = 5
    offset: int = 0

    def operands(self) -> dict[str, list[np.ndarray[Any, Any]]]:
        """Return lists of numpy arrays; one matrix of B occurs twice."""
        m, n, k = self.shape
        rng = np.random.default_rng(m)
        kinds, found = op.Gemm(**self.kinds).kinds, {}
        for name, kind, size in (("A", kinds.a, (m, k)), ("B", kinds.b, (k, n)), ("C", kinds.d, (m, n))):
            order = size if kind.layout == "row" else size[::-1]
            memory = rng.integers(-2, 3, (self.count, order[0] * order[1] + 16)).astype(numpy_dtype(kind.element))
            first = self.offset
            each = [x[first : first + order[0] * order[1]].reshape(order) for x in memory.copy()]
            found[name] = [x if kind.layout == "row" else x.T for x in each]
        found["B"][-1] = found["B"][0]
        return found

    def matrices(self) -> Any:
        """Return the arguments of a call on the CPU, without running it."""
        return op.Gemm(**self.kinds).arguments(**self.operands(), alpha=2.0, beta=0.5, device="cpu")


ARRAYS = {
    "tma": Several(F16, (264, 400, 272)),
    "tma, columns": Several({"element": "f16", "layout": "column"}, (264, 400, 272)),
    "ldmatrix": Several(F16, (65, 67, 35), offset=1),
    "i8": Several({"element": "i8", "element_C": "i32", **NK}, (264, 400, 272)),
    "f32": Several({"element": "f32", "layout": "row"}, (264, 400, 272)),
    "f64": Several({"element": "f64", "layout": "row"}, (65, 67, 35)),
}


def saturating(chip: int) -> op.GemmOperationUniversal:
    """Return the int8 operation that saturates its i32 accumulator, with wgmma (``chip`` 90) or mma.sync."""
    shape, tile = ([64, 64, 32], [64, 64, 128]) if chip == 90 else ([16, 8, 32], [64, 64, 64])
    instruction = op.MathInstruction(shape, "i8", "i8", "i32", "tensor_op", "multiply_add_saturate")
    operands = [op.TensorDescription(e, layout, 16) for e, layout in (("i8", "row"), ("i8", "column"), ("i32", "row"))]
    functor = op.LinearCombination("i32", 4, "i32", "f32")
    return op.GemmOperationUniversal(chip, op.TileDescription(tile, 0, None, instruction), *operands, functor)


def in_runs() -> op.GemmOperationUniversal:
    """Return the int8 operation on interleaved layouts."""
    instruction = op.MathInstruction([16, 8, 32], "i8", "i8", "i32")
    column, row = op.ColumnMajorInterleaved32, op.RowMajorInterleaved32
    operands = [op.TensorDescription("i8", layout, 16) for layout in (column, row, column)]
    tile = op.TileDescription([128, 128, 64], 3, [2, 4, 1], instruction)
    return op.GemmOperationUniversal(80, tile, *operands, op.LinearCombinationClamp("i8", 16, "i32", "f32"))
