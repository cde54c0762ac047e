"""Arguments of one call of a GEMM, as in CUTLASS's Python interface, and the arrays of its traced epilogue."""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.gemm.sm100 import Sm100Config
from cute_dialect.op.epilogue.bind import Bound, bound, described, refuse_arranged, traced_of
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced
from cute_dialect.op.errors import AlignmentError, EpilogueError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.arguments import Arguments, PointerArrayArguments, on_the_cpu
from cute_dialect.op.execute.gemm import Step, Workspace, f32_like, partial_steps, split_steps
from cute_dialect.op.problems.gemm import planned_operands
from cute_dialect.op.problems.operands import Kinds, Operands, Type, new_like, read
from cute_dialect.op.problems.pointer_arrays import each_matrix
from cute_dialect.op.pycutlass.functors import OutputOp, VisitorOutputOp
from cute_dialect.op.select.descriptions import GemmCoord, Mode, Split, SplitKMode, known
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.runtime.arrays import ArrayView, view_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.interp import RunReport
    from cute_dialect.kernels.epilogue.graph import Graph
    from cute_dialect.op.execute.kernels import Variant
    from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
    from cute_dialect.runtime.launch import CallOptions


# ----------------------------------------------------------------------------------------------------- traced epilogues


class Visited(NamedTuple):
    """A call with a traced epilogue."""

    operands: Operands
    D: Any
    bound: Bound  # the epilogue with its arrays


def is_of_sums(function: object) -> bool:
    """Return True if a function is a traceable epilogue, with a parameter ``accum``.

    >>> is_of_sums(lambda accum, bias: accum + bias), is_of_sums(lambda x, row, column: x)
    (True, False)
    """
    if isinstance(function, Traced):
        return True
    try:
        return callable(function) and "accum" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def arguments_for(
    call: str, visitor: Any, args: Mapping[str, object] | None, others: Mapping[str, object]
) -> dict[str, Any]:
    """Return an epilogue's arguments by name.

    They are ``args``, and those of ``others`` (C, alpha, beta and bias of the call) that the epilogue has parameters
    for. Raises EpilogueError for other values that are passed, except C.
    """
    found: dict[str, Any] = dict(args or {})
    parameters = visitor.parameters if isinstance(visitor, Traced) else inspect.signature(visitor).parameters
    for name, value in others.items():
        if value is None:
            continue
        if name in parameters:
            found.setdefault(name, value)
        elif name != "C":
            raise EpilogueError(
                f"{call}: {name} cannot be combined with this epilogue_visitor, which has no parameter {name}"
            )
    return found


def visited(
    call: str, visitor: Any, kinds: Kinds, a: Any, b: Any, d: Any, args: Mapping[str, Any], *,
    problem: Sequence[int] | None = None, batch: int = 0, on_cpu: bool = False,
) -> Visited:  # fmt: skip
    """Return the operands of a call whose epilogue is traced, or is a function to trace now.

    ``args`` holds its arrays and numbers by name, and memory for results, D included.  Raises OpError before anything
    is compiled or written.
    """
    given = dict(args)
    also = given.pop("D", None)
    if d is not None and also is not None and also is not d and view_of(also)[:4] != view_of(d)[:4]:
        raise EpilogueError(f"{call}: D and visitor_args['D'] are different arrays; pass one of them")
    d = also if d is None else d
    known: list[tuple[Traced, tuple[int, ...]]] = []

    def shape_of(sums: tuple[int, ...]) -> tuple[int, ...]:
        if problem is not None:  # Flat arrays have the described extents.
            given.update({n: t.reshape(sums) for n, t in given.items() if _is_flat(t, sums)})
        traced = traced_of(call, visitor, given, sums)
        refuse_arranged(call, traced)
        known.append((traced, sums))
        return traced.shape_of(sums)

    x, d = planned_operands(call, kinds, a, b, None, d, problem=problem, batch=batch, on_cpu=on_cpu, shape_of=shape_of)
    traced, sums = known[0]
    if (traced.graph.paired or traced.graph.whole_rows) and kinds.d.layout == "column":
        raise LayoutError(f"{call}: D is column-major; pairs() and whole_rows=True need a row-major D")

    def another(shape: tuple[int, ...], element: str) -> Any:
        return new_like(a, shape, Type(element or kinds.d.element, "row"))

    found = bound(traced, given, d, sums, another)
    found.check_memory(call, x.d, {"A": x.a, "B": x.b})
    behind = tuple([view_of(t) if hasattr(t, "shape") else t for t in found.operands])
    x = x._replace(graph=found.graph, behind=behind, reduced=tuple(found.reduced))
    return Visited(x, d, found)


def _is_flat(t: Any, sums: Sequence[int]) -> bool:
    shape = getattr(t, "shape", ())
    return len(shape) == 1 and shape[0] == prod(sums) and shape[0] != sums[-1]


def example_graph(traced: Traced, kinds: Kinds) -> Graph:
    """Return the graph of a traced epilogue bound to arrays with the layouts of its examples."""
    sums = tuple(traced.examples["accum"].shape)
    given = {n: x if isinstance(x, bool | int | float) else described(x)
             for n, x in traced.examples.items() if n != "accum"}  # fmt: skip

    def another(shape: tuple[int, ...], element: str) -> Any:
        return described(FakeTensor(element or kinds.d.element, shape))

    d = described(FakeTensor(kinds.d.element, traced.shape_of(sums), kinds.d.layout))
    return bound(traced, given, d, sums, another).graph


def check_kernel(variant: Variant, columns: int = 0) -> None:
    """Raise EpilogueError if a kernel cannot evaluate its graph, for a GEMM with this number of columns."""
    graph, kernel = variant.epilogue.graph, variant.kernel
    if graph is None:
        return
    if isinstance(kernel, Choice):
        try:
            config = kernel.skinny or kernel.config
            config.check()
            if (graph.paired or graph.whole_rows) and (kernel.parts > 1 or kernel.swapped):
                raise ValueError("pairs() and whole_rows=True do not support split-K and transposed kernels")
            if graph.whole_rows and columns > kernel.config.tile[1]:
                raise ValueError(
                    f"whole_rows=True supports at most {kernel.config.tile[1]} columns here, got {columns}"
                )
        except ValueError as e:
            raise EpilogueError(f"Gemm: this tile does not support the epilogue: {e}") from None
    elif isinstance(kernel, Sm100Config):
        try:
            kernel.check()
            if graph.whole_rows and columns > kernel.tile[1]:
                raise ValueError(f"whole_rows=True supports at most {kernel.tile[1]} columns here, got {columns}")
        except ValueError as e:
            raise EpilogueError(f"Gemm: this tile does not support the epilogue: {e}") from None
    elif graph.paired or graph.reduces or graph.whole_rows:
        what = "pairs()" if graph.paired else "reductions"
        raise EpilogueError(
            f"Gemm: kernel {kernel.name} does not support {what} in an epilogue; use 16-bit, 8-bit or tf32 matrices "
            "whose addresses and row strides are multiples of 16 bytes"
        )


# --------------------------------------------------------------------------------------------------- arguments of GEMMs


class GemmArguments(Arguments):
    """The operands of a call.

    Args:
        operation: the operation.
        problem_size: (M, N, K) if A and B are flat arrays, which then have the described layouts.
        A, B, C, D: arrays; D is allocated if it is None.
        output_op: the numbers of the epilogue, from the operation's ``epilogue_type``.
        gemm_mode: see :class:`~cute_dialect.op.select.descriptions.Mode`.
        split_k_slices: number of split-K slices.
        batch: number of matrices.
        bias: (N,) or (M, 1).
        stream: stream of the launch.
        options: options of a kernel call, such as ``device="cpu"``, and those of the interpreter.

    Raises:
        OpError: if an operand does not fit.
    """

    def __init__(
        self, operation: GemmOperationUniversal, problem_size: Sequence[int] | None = None, A: object = None,
        B: object = None, C: object = None, D: object = None, output_op: OutputOp | VisitorOutputOp | None = None,
        gemm_mode: str = Mode.Gemm, split_k_slices: int = 1, batch: int = 1, *, bias: object = None,
        stream: object = None, **options: Unpack[CallOptions],
    ):  # fmt: skip
        call, mode = "GemmArguments", Mode(known(Mode, gemm_mode, "gemm_mode"))
        if operation.traced is not None or isinstance(output_op, VisitorOutputOp):
            others = {"C": C, "bias": bias}
            self._visit(
                operation, problem_size, A, B, D, others, output_op, mode, split_k_slices, batch, stream, options
            )
            return
        output_op = output_op or OutputOp()
        operation = operation.with_numbers(output_op.arguments)
        split = Split.of((SplitKMode.Serial, split_k_slices))
        self.mode, self.workspace = mode, None
        self.matrices: PointerArrayArguments | None = None  # all matrices in mode Array
        size = extents(call, problem_size, batch if mode in (Mode.Batched, Mode.Array) else 1)

        def checked(a: object, b: object, c: object, d: object) -> tuple[Operands, Any]:
            return planned_operands(
                call, operation.kinds, a, b, c, d, alpha=output_op.alpha, beta=output_op.beta, bias=bias,
                problem=size, batch=batch if mode is Mode.Batched else 0, on_cpu=on_the_cpu(options),
            )  # fmt: skip

        given: tuple[object, ...] = (A, B, C, D)
        if operation.interleaved:
            if mode is not Mode.Gemm or split.parts > 1 or output_op.alpha == 0.0:
                raise UnsupportedError(
                    f"{call}: interleaved matrices need gemm_mode=gemm, split_k_slices=1 and an alpha other than 0"
                )
            a, b, d = (flat_runs(call, n, x, size) for n, x in zip("ABD", (A, B, D)))
            given = (a, b, C, d)
        if mode is Mode.Array:
            lists = [each_matrix(call, n, x, batch, size, operation.kinds) for n, x in zip("ABCD", (A, B, C, D))]
            found = [checked(*x) for x in zip(*lists)]
            operands, d = found[0][0], [each for _, each in found]
            self.matrices = PointerArrayArguments(operation, [x for x, _ in found], d, stream, options, split)
        else:
            operands, d = checked(*given)
            d = D if operation.interleaved else d
        super().__init__(operation, operands, d, stream, options, split)

    def _visit(
        self, operation: GemmOperationUniversal, problem_size: Sequence[int] | None, A: object, B: object, D: object,
        others: Mapping[str, object], output_op: OutputOp | VisitorOutputOp | None, mode: Mode, slices: int, batch: int,
        stream: object, options: CallOptions,
    ) -> None:  # fmt: skip
        """Check a call with a traced epilogue."""
        call, traced = "GemmArguments", operation.traced
        if traced is None or not isinstance(output_op, VisitorOutputOp):
            raise EpilogueError(
                f"{call}: output_op does not match the epilogue; pass operation.epilogue_type(…) with its arguments by "
                "name"
            )
        if mode not in (Mode.Gemm, Mode.Batched):
            raise UnsupportedError(f"{call}: gemm_mode={mode} does not support a visitor; use gemm or batched")
        size = extents(call, problem_size, batch if mode is Mode.Batched else 1)
        if size is not None and output_op.problem_size not in (None, size[:2]):
            raise ShapeError(
                f"{call}: problem_size is {output_op.problem_size} in epilogue_type, but {size[:2]} in the call"
            )
        on_cpu, many = on_the_cpu(options), batch if mode is Mode.Batched else 0
        args = arguments_for(call, traced, output_op.arguments, others)
        x, d, found = visited(call, traced, operation.kinds, A, B, D, args, problem=size, batch=many, on_cpu=on_cpu)
        self.mode, self.workspace, self.matrices = mode, None, None
        split = Split.of((SplitKMode.Serial, slices))
        super().__init__(operation, x, d, stream, options, split, call, found.results)
        output_op.wait = self.sync

    @property
    def partitions(self) -> int:
        """Number of split-K slices in the workspace, at most the number of K steps."""
        return 0 if self.workspace is None else self.workspace.parts

    @property
    def ptr_D(self) -> Workspace | None:
        """The workspace whose slices a reduction adds up."""
        return self.workspace

    def launch(self) -> RunReport | None:
        """Launch the kernels of the mode without waiting."""
        return super().launch() if self.matrices is None else self.matrices.launch()

    def steps(self, x: Operands) -> list[Step]:
        """Return the launches; with ``GemmSplitKParallel`` those of the slices only."""
        if self.mode is not Mode.GemmSplitKParallel:
            return super().steps(x)
        plan = self.operation.sliced_plan(x, self.split.parts)
        x, before = split_steps(plan.splitters, x, f32_like(x.d), plan.chip)
        workspace, found = partial_steps(plan, x)
        self.workspace = workspace._replace(asked=self.split.parts)
        return [*before, *found]

    def bind(self) -> Callable[..., None]:
        """Return a function that only launches the kernels on these operands, which must be in GPU memory."""
        return super().bind() if self.matrices is None else self.matrices.bind()

    def sync(self) -> None:
        """Wait for the launches; results in NumPy arrays are valid afterwards."""
        if self.matrices is not None:
            self.matrices.sync()
        super().sync()


def extents(call: str, problem_size: Sequence[int] | None, batch: int) -> GemmCoord | None:
    """Return the extents that the call passes, or None.  Raises ShapeError."""
    if batch < 1:
        raise ShapeError(f"{call}: batch is {batch}; it must be at least 1")
    if problem_size is None:
        return None
    found = tuple(problem_size)
    if len(found) != 3 or min(found) < 0:
        raise ShapeError(f"{call}: problem_size is {found}; it must be (M, N, K), none of them negative")
    return GemmCoord(*found)


def flat_runs(call: str, name: str, array: object, size: GemmCoord | None) -> ArrayView:
    """Return an interleaved matrix as a flat array of its runs of 32.

    Raises ShapeError, LayoutError, AlignmentError.
    """
    if size is None or size.n % 32 or size.k % 32 or size.k == 0:
        raise ShapeError(
            f"{call}: problem_size is {size}; interleaved matrices need an N and a positive K that are multiples of 32"
        )
    if array is None:
        raise ShapeError(f"{call}: {name} is None; pass all interleaved matrices")
    view = read(call, name, array)
    dense, step = 1, 1
    for extent, stride in reversed(list(zip(view.shape, view.strides))):
        if extent > 1 and stride != step:
            raise LayoutError(f"{call}: {name} has strides {view.strides}; interleaved matrices must be contiguous")
        dense, step = dense * extent, step * extent
    if view.pointer % 16:
        raise AlignmentError(f"{call}: the address of {name} is {view.pointer % 16} mod 16; it must be 16-byte aligned")
    return view._replace(shape=(dense,), strides=(1,))
