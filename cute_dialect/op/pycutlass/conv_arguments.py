"""Arguments of a call of a convolution plan: checked, launched and waited for.

The arrays of a traced epilogue are matrices with a row per pixel.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.op.epilogue.bind import Bound, bound, refuse_arranged, traced_of
from cute_dialect.op.errors import EpilogueError
from cute_dialect.op.execute.arguments import Arguments, on_the_cpu
from cute_dialect.op.execute.launch_sequence import ALONE, Split, Step
from cute_dialect.op.plans.conv_steps import parts_of, steps
from cute_dialect.op.problems.conv import Checked, ConvOptions, as_image, as_matrix, check, check_in_place
from cute_dialect.op.problems.plan_operands import Kinds, Operands, Type, new_like
from cute_dialect.op.pycutlass.conv import Conv2dOperation, Conv2dProblemSize
from cute_dialect.op.pycutlass.functors import OutputOp, VisitorOutputOp
from cute_dialect.op.pycutlass.visitor_args import arguments_for
from cute_dialect.op.select.descriptions import GemmCoord, SplitKMode, known
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.execute.saved import Fields
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["Conv2dArguments", "ConvArguments", "visited"]


def visited(
    call: str, kind: str, kinds: Kinds, a: Any, b: Any, d: Any, visitor: Any, args: Mapping[str, Any], how: ConvOptions,
    on_cpu: bool,
) -> tuple[Checked, Bound]:  # fmt: skip
    """Return a checked call and its epilogue with arrays; a plain function is traced first.

    Args:
        args: arrays and numbers by name, and arrays for results.

    Raises OpError.
    """
    if "D" in args:
        raise EpilogueError(f"{call}: visitor_args has D; pass the array for the result as D")
    found = check(call, kind, kinds, (a, b, None, d), how, on_cpu=on_cpu)
    g, x = found.geometry, found.operands
    given = {n: as_matrix(call, n, t, g, found.turn) for n, t in args.items()}
    traced = traced_of(call, visitor, given, g.matrix)
    refuse_arranged(call, traced)
    if traced.shape_of(g.matrix) != g.matrix or traced.graph.whole_rows:
        raise EpilogueError(f"{call}: the epilogue has pairs() or whole_rows, which only op.mm and op.bmm support")

    def another(shape: tuple[int, ...], element: str) -> Any:
        return new_like(a, shape, Type(element or kinds.d.element, "row"))

    matrix = as_matrix(call, "D", found.D, g, found.turn)
    made = bound(traced, given, matrix, g.matrix, another)
    made.check_memory(call, view_of(matrix), {"A": x.a, "B": x.b})
    behind = tuple([view_of(t) if hasattr(t, "shape") else t for t in made.operands])
    x = x._replace(graph=made.graph, behind=behind, reduced=tuple(made.reduced))
    results = {n: t if n in traced.views else as_image(t, g, found.turn) for n, t in made.results.items() if n != "D"}
    return found._replace(operands=x), made._replace(results=results)


class ConvArguments(Arguments):
    """Checked operands of an operation: :meth:`launch` and :meth:`sync`."""

    def __init__(
        self, operation: Conv2dOperation, found: Checked, stream: object, options: CallOptions, split: Split = ALONE,
        call: str = "Conv2dArguments", results: Mapping[str, Any] | None = None,
    ):  # fmt: skip
        self.convolution, self.geometry = operation, found.geometry
        operation.check_problem(call, found.geometry)
        if operation.im2col:
            operation.config(found.geometry)
            check_in_place(call, found.geometry, found.operands)
        super().__init__(operation, found.operands, found.D, stream, options, split, call, results)

    @property
    def problem_size(self) -> GemmCoord:
        """Extents of the implicit GEMM; with groups, those of one group."""
        g = self.geometry
        window = g.window
        pads = (window.before[0], window.after[0], window.before[1], window.after[1])
        problem = Conv2dProblemSize(
            g.image, g.filter, pads, window.strides, window.dilations, groups=g.groups
        )  # fmt: skip
        return problem.implicit_gemm_size(g.kind)

    @property
    def problem(self) -> str:
        """The problem as text: kind, images, filters and window."""
        g, w = self.geometry, self.geometry.window
        image, filters = ("x".join(map(str, shape)) for shape in (g.image, g.filter))
        window = f"strides {w.strides}, padding {w.before} {w.after}, dilation {w.dilations}"
        return f"{g.kind} of {image} by {filters}, {window}, groups {g.groups}"

    def taken(self) -> Fields:
        """Return the chosen tile and the iterator algorithm as data."""
        return {**super().taken(), "algorithm": str(self.convolution.algorithm)}

    @property
    def parts(self) -> int:
        """Number of split-K slices, which may be smaller than the requested number."""
        return parts_of(self.convolution, self.geometry, self.split)

    def steps(self, x: Operands) -> list[Step]:
        """Return the launches for these operands."""
        return steps(self.convolution, self.geometry, x, self.split)


class Conv2dArguments(ConvArguments):
    """The operands of a call.

    Args:
        problem_size: a :class:`~cute_dialect.op.pycutlass.conv.Conv2dProblemSize`; arrays may be flat.
        A, B, C, D: as the operation's kind defines them.  ``D`` is allocated if it is None; ``C`` may have one value
            per channel.
        output_op: numbers of the epilogue, an instance of the operation's ``epilogue_type``.
        split_k_mode, split_k_slices: split-K; default: the slices of ``problem_size``.
        bias: (K,).
        options: call options of a kernel: ``device="cpu"`` and those of the interpreter.

    Raises OpError.
    """

    def __init__(
        self, operation: Conv2dOperation, problem_size: Conv2dProblemSize | Sequence[object], A: object, B: object,
        C: object = None, D: object = None, output_op: OutputOp | VisitorOutputOp | None = None,
        split_k_mode: str = SplitKMode.Serial, split_k_slices: int | None = None, *, bias: object = None,
        stream: object = None, **options: Unpack[CallOptions],
    ):  # fmt: skip
        call = "Conv2dArguments"
        problem = problem_size if isinstance(problem_size, Conv2dProblemSize) else Conv2dProblemSize(*problem_size)
        mode = known(SplitKMode, split_k_mode, "split_k_mode")
        slices = problem.split_k_slices if split_k_slices is None else split_k_slices
        split = Split.of((str(mode), slices))
        how, on_cpu = ConvOptions(data_format="NHWC", problem=problem), on_the_cpu(options)
        kinds, arrays = operation.kinds, (A, B, C, D)
        if operation.traced is not None or isinstance(output_op, VisitorOutputOp):
            if operation.traced is None or not isinstance(output_op, VisitorOutputOp):
                raise EpilogueError(
                    f"{call}: output_op does not match the operation's epilogue; pass operation.epilogue_type(…) with "
                    "the epilogue's arguments by name"
                )
            args = arguments_for(call, operation.traced, output_op.arguments, {"C": C, "bias": bias})
            found, results = visited(call, operation.kind, kinds, A, B, D, operation.traced, args, how, on_cpu)
            super().__init__(operation, found, stream, options, split, call, results.results)
            output_op.wait = self.sync
            return
        output_op = output_op or OutputOp()
        operation = operation.with_numbers(output_op.arguments)
        found = check(
            call, operation.kind, kinds, arrays, how, alpha=output_op.alpha, beta=output_op.beta, bias=bias,
            on_cpu=on_cpu,
        )  # fmt: skip
        super().__init__(operation, found, stream, options, split, call)
