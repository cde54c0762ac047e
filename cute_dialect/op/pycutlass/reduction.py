"""Reduction of the split-K slices of a GEMM, as an operation of its own.

operation.run(arguments)                             # GemmArguments(…, gemm_mode=Mode.GemmSplitKParallel, …)
reduction = ReductionOperation((4, 128), C, "f32", "f32", "f32", LinearCombination("f16", 8, "f32", "f32")) more =
ReductionArguments(reduction, (m, n), slices, arguments.workspace, d, c, reduction.epilogue_type(1.0, 0.5))
reduction.run(more) more.sync()
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from cute_dialect.kernels.epilogue.split_k_reduce import ReduceConfig
from cute_dialect.op.arrays.dtypes import checked_element
from cute_dialect.op.arrays.operand_views import overlap, same_matrix
from cute_dialect.op.errors import LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.arguments import Arguments, on_the_cpu
from cute_dialect.op.execute.kernels import Variant
from cute_dialect.op.execute.launch_sequence import Step, Workspace, reduction
from cute_dialect.op.problems.plan_operands import Operands, Type, as_planned, new_like, of_shape, read
from cute_dialect.op.pycutlass.functors import EpilogueFunctor, LinearCombination, OutputOp
from cute_dialect.op.pycutlass.operation_base import DescribedOperation
from cute_dialect.op.select.backends import MMA_SYNC
from cute_dialect.op.select.descriptions import TensorDescription

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.runtime.arrays import ArrayView
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["ReductionArguments", "ReductionOperation"]


class ReductionOperation(DescribedOperation):
    """``D = f(sum of slices, C)``.

    Args:
        shape, count: accepted for compatibility with PyCUTLASS; the kernel has its own tile.
        C: description of C and D.
        element_accumulator, element_workspace: type of the accumulators, f32, f64 or i32.
        epilogue_functor: the epilogue.

    Raises:
        UnsupportedError: if the types are not supported.
    """

    backend, by_tma = MMA_SYNC, False

    def __init__(
        self, shape: Sequence[int], C: TensorDescription, element_accumulator: object = "f32",
        element_workspace: object = "f32", element_compute: object = "f32",
        epilogue_functor: EpilogueFunctor | None = None, count: int = 1,
    ):  # fmt: skip
        super().__init__()
        self.shape, self.count, self.C, self.D = tuple(shape), count, C, C
        self.element_workspace = checked_element(element_workspace, "element_workspace")
        accumulator = checked_element(element_accumulator, "element_accumulator")
        if self.element_workspace not in ("f32", "f64", "i32") or accumulator != self.element_workspace:
            raise UnsupportedError(
                f"ReductionOperation: the accumulator has type {accumulator} and the workspace "
                f"{self.element_workspace}; both must have the same type, f32, f64 or i32"
            )
        self.epilogue_functor = epilogue_functor or LinearCombination(C.element, 0, accumulator, element_compute)

    def epilogue_type(self, alpha: float = 1.0, beta: float = 0.0, *arguments: float) -> OutputOp:
        """Return the numbers of a call."""
        return self.epilogue_functor.epilogue_type(alpha, beta, *arguments)

    def with_numbers(self, numbers: tuple[float, ...]) -> ReductionOperation:
        """Return a copy whose activation has other parameters; without any, this operation.  Raises EpilogueError."""
        if not numbers:
            return self
        found = copy(self)
        found.epilogue_functor = self.epilogue_functor.with_numbers(numbers)
        return found

    def reduction_variant(self, x: Operands, sums: str) -> Variant:
        """Return the kernel for a call's operands."""
        config = ReduceConfig(sums, self.D.element, len(x.d.shape) == 3)
        e = self.epilogue_functor.epilogue(x.alpha, x.beta)
        return Variant(config, e, self.D.layout == "column")

    def variants(self) -> list[Variant]:
        """Return the kernels for any alpha, without and with C."""
        config = ReduceConfig(self.element_workspace, self.D.element)
        numbers = ((1.0, 0.0), (0.5, 0.0), (0.5, 0.5))
        flipped = self.D.layout == "column"
        return [Variant(config, self.epilogue_functor.epilogue(*pair), flipped) for pair in numbers]


class ReductionArguments(Arguments):
    """The operands of a reduction.

    Args:
        operation: the operation.
        problem_size: (M, N).
        partitions: number of slices that the GEMM was asked for.
        workspace: the GEMM's :attr:`~cute_dialect.op.pycutlass.arguments.GemmArguments.workspace`.
        destination: D, allocated if it is None.
        source: C.
        output_op: the numbers of the epilogue.
        like: an array whose library and device D gets, if there is no C.

    Raises:
        OpError: if an operand does not fit.
    """

    def __init__(
        self, operation: ReductionOperation, problem_size: Sequence[int], partitions: int, workspace: Workspace | None,
        destination: object = None, source: object = None, output_op: OutputOp | None = None, *, like: object = None,
        stream: object = None, **options: Unpack[CallOptions],
    ):  # fmt: skip
        call, output_op = "ReductionArguments", output_op or OutputOp()
        operation = operation.with_numbers(output_op.arguments)
        if workspace is None:
            raise ShapeError(f"{call}: workspace is None; pass that of GemmArguments after the GEMM has run")
        if workspace.asked != partitions:
            raise ShapeError(f"{call}: partitions is {partitions}, but the GEMM has {workspace.asked} split-K slices")
        if workspace.element != operation.element_workspace:
            raise UnsupportedError(
                f"{call}: the workspace has type {workspace.element}; it must have {operation.element_workspace}"
            )
        m, n = tuple(problem_size)[:2]
        wanted, on_cpu = Type(operation.D.element, operation.D.layout), on_the_cpu(options)
        rows = n if wanted.layout == "column" else m
        if workspace.memory.shape[0] != rows:
            raise ShapeError(f"{call}: the workspace has {workspace.memory.shape[0]} rows; problem_size needs {rows}")
        destination = (
            new_like(like if source is None else source, (m, n), wanted) if destination is None else destination
        )
        views: list[ArrayView | None] = []
        for name, array in (("destination", destination), ("source", source)):
            if array is None or (name == "source" and output_op.beta == 0.0):
                views.append(None)
                continue
            view = of_shape(call, name, read(call, name, array, on_cpu), (m, n), wanted.layout, "")
            views.append(as_planned(call, name, view, wanted))
        if output_op.beta != 0.0 and views[1] is None:
            raise ShapeError(f"{call}: beta is {output_op.beta}, but source is missing; pass source or beta=0")
        to = views[0]
        assert to is not None
        w = workspace.memory
        if views[1] is not None and not same_matrix(views[1], to) and overlap(views[1], to):
            raise LayoutError(
                f"{call}: destination shares memory with source; only a source that is exactly the same matrix may be "
                "overwritten"
            )
        operands = Operands(w, w, to, views[1], None, output_op.alpha, output_op.beta)
        self.workspace = workspace
        super().__init__(operation, operands, destination, stream, options)  # type: ignore[arg-type]

    def steps(self, x: Operands) -> list[Step]:
        """Return the launch."""
        return [reduction(self.operation, x, self.workspace)]
