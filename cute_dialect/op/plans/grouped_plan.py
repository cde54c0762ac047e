"""A planned grouped GEMM: types and layouts are said once; its calls are lists of products of any sizes, or groups that
one matrix is cut into.

    plan = op.GroupedGemm(element="f16", layout="row")
    plan.run([a0, a1], [b0, b1], D=[d0, d1])                # each of its own M, N, K and strides; one launch
    plan.run(a, experts, D=d, offs=offs)                    # rows of a, each stretch with its matrix of experts

Operands are never copied: what a kernel cannot read where it lies is an error, which says what would do.
"""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import EpilogueError, UnsupportedError, named
from cute_dialect.op.function_versions import current
from cute_dialect.op.plans.arguments import on_the_cpu
from cute_dialect.op.plans.calling_convention import Operands
from cute_dialect.op.plans.configure import Asked
from cute_dialect.op.plans.describe import (
    OpcodeClass,
    SchedulerMode,
    Swizzle,
    TensorDescription,
    TileDescription,
    known,
)
from cute_dialect.op.plans.functors import EpilogueFunctor
from cute_dialect.op.plans.grouped_arguments import GroupArguments, numbers_of, problems_of
from cute_dialect.op.plans.grouped_operation import GemmOperationGrouped
from cute_dialect.op.plans.grouped_report import explained_list
from cute_dialect.op.plans.jagged_groups import CutArguments, cut_arguments, cut_reference
from cute_dialect.op.plans.kernel_source import Source, ir_of
from cute_dialect.op.plans.matrix_plan import types_of
from cute_dialect.op.plans.operands import Kinds, Type
from cute_dialect.op.plans.plan import Gemm
from cute_dialect.op.plans.problems import extents_of, tiles_of
from cute_dialect.op.plans.reference import reference
from cute_dialect.op.plans.saved import Fields
from cute_dialect.op.plans.settings import Tiled
from cute_dialect.op.plans.visitor_args import is_of_sums
from cute_dialect.op.select.gemm_dispatch import here

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from numpy import float64
    from numpy.typing import NDArray

    from cute_dialect.kernels.gemm.epilogue import Hook
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["GroupedGemm"]


class GroupedGemm(Tiled):
    """``D_g = activation(alpha * A_g B_g + beta * C_g + bias_g)`` for operands of planned elements and layouts.

    The arguments are those of :class:`~cute_dialect.op.plans.plan.Gemm`; ``A`` to ``D`` may be lists, whose first
    matrices say the types.  Raises OpError.
    """

    call: ClassVar[str] = "GroupedGemm"

    def __init__(
        self, A: Any = None, B: Any = None, C: Any = None, D: Any = None, *, chip: int | None = None,
        kernel_cc: int | None = None, precompute_mode: str = SchedulerMode.Device, **types: Any,
    ):  # fmt: skip
        super().__init__()
        self.A, self.B, self.C, self.D = A, B, C, D
        first = [x[0] if isinstance(x, list | tuple) and x else x for x in (A, B, C, D)]
        wanted = chip if kernel_cc is None else kernel_cc
        if wanted is not None and wanted not in (80, 86, 87, 89, 90):
            raise UnsupportedError(f"GroupedGemm: expected kernel_cc of 80 or 90, got {wanted}")
        self.chip = 90 if wanted is None else wanted
        with named(self.call, "GemmOperationGrouped", "Gemm"):
            # Lists are computed by kernels of sm_80, which take matrices anywhere.
            self._one = Gemm(*first, **types, kernel_cc=80)
        self._mode = SchedulerMode.Device
        self.precompute_mode = precompute_mode
        self._operations: dict[object, GemmOperationGrouped] = {}
        self._last: GroupArguments | CutArguments | None = None

    # ------------------------------------------------------------------------------------------------- properties

    @property
    def kinds(self) -> Kinds:
        """Elements and layouts of the operands."""
        return self._one.kinds

    @property
    def asked(self) -> Asked:
        """What its kernels are for."""
        return self._one.asked()

    @property
    def precompute_mode(self) -> str:
        """Who finds the tiles of a list: the kernel (``device``), or the host, longest K first."""
        return self._mode

    @precompute_mode.setter
    def precompute_mode(self, value: str) -> None:
        self._mode = SchedulerMode(known(SchedulerMode, value, "precompute_mode"))
        self._reset()

    def _reset(self) -> None:
        self._operations = {}
        self._forget()

    @property
    def alpha(self) -> float:
        """The factor of the products, where a call gives none."""
        return self._one.alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        self._one.alpha = value

    @property
    def beta(self) -> float:
        """The factor of C, where a call gives none; 0: C is not read."""
        return self._one.beta

    @beta.setter
    def beta(self, value: float) -> None:
        self._one.beta = value

    def _change(self, name: str, value: object) -> None:
        """Change a property of the products, and forget what was compiled for the other one."""
        with named(self.call, "GemmOperationGrouped", "Gemm"):
            setattr(self._one, name, value)
        self._reset()
        if name in ("opclass", "math_operation"):
            self._tile = None

    @property
    def opclass(self) -> str:
        """``tensor_op`` or ``simt``; tensor cores multiply f32 as tf32."""
        return self._one.opclass

    @opclass.setter
    def opclass(self, value: str) -> None:
        self._change("opclass", value)

    @property
    def math_operation(self) -> str:
        """How elements are multiplied."""
        return self._one.math_operation

    @math_operation.setter
    def math_operation(self, value: str) -> None:
        self._change("math_operation", value)

    @property
    def activation(self) -> str:
        """What is applied last, by its name; "" for nothing."""
        return self._one.activation

    @activation.setter
    def activation(self, value: object) -> None:
        self._change("activation", value)

    @property
    def swizzling_functor(self) -> Swizzle:
        """The order in which blocks take the tiles of a product."""
        return self._one.swizzling_functor

    @swizzling_functor.setter
    def swizzling_functor(self, value: Swizzle) -> None:
        self._change("swizzling_functor", value)

    @property
    def epilogue_visitor(self) -> Traced | Hook | None:
        """What becomes of the sums: of lists a function of (value, row, column) in the language; of groups that one
        matrix is cut into a function of ``accum``, or what ``op.epilogue.trace`` returns; None for none.
        """
        return self._one.epilogue_visitor

    @epilogue_visitor.setter
    def epilogue_visitor(self, value: Traced | Hook | None) -> None:
        self._change("epilogue_visitor", value)

    def _check_tile(self, td: TileDescription) -> None:
        if td.kernel is None:
            self._make(td)

    def activations(self) -> list[str]:
        """Return the names of activations."""
        return self._one.activations()

    # ------------------------------------------------------------------------------------------------- operations

    def tile_descriptions(self) -> Sequence[TileDescription]:
        """Return the tiles of kernels for lists of products, the usual one first; nothing is compiled."""
        found = list(self._one.tile_descriptions())
        of_f32 = self.opclass == OpcodeClass.Simt and self.kinds.a.element == "f32"
        return found[:1] if of_f32 else found  # the other rungs take one layout

    def _make(self, td: TileDescription, alignments: Sequence[int | None] = (None,) * 3) -> GemmOperationGrouped:
        """Return the operation of a tile.  Raises OpError."""
        a, b, c, d = self.kinds
        given = ((a, alignments[0]), (b, alignments[1]), (c or Type("void", d.layout), alignments[2]))
        A, B, C = (TensorDescription(t.element, t.layout, n or 0) for t, n in given)
        functor = EpilogueFunctor(d.element, 0, self.asked.accumulator, activation=self.activation)
        if is_of_sums(self.epilogue_visitor):
            raise EpilogueError(
                "GroupedGemm: expected an epilogue_visitor of (value, row, column) for lists of products, got one of "
                "the sums"
            )
        with named(self.call, "GemmOperationGrouped", "Gemm"):
            made = GemmOperationGrouped(
                self.chip, td, A, B, C, functor, self._one.swizzling_functor, current(self.epilogue_visitor),
                precompute_mode=self._mode, D=TensorDescription(d.element, d.layout),
            )  # fmt: skip
        made.saved = self.saved
        return made

    def operation_for(self, found: Sequence[Operands]) -> GemmOperationGrouped:
        """Return the operation that computes a list: of the plan's tile, or of the one that is taken to be the fastest.

        A tile takes as long as its elements and a guess of what it waits for; a list as long as all tiles on all
        multiprocessors, and no less than its longest tile.
        """
        td = self._tile
        if td is None:
            extents = [extents_of(x, flipped=self.kinds.d.layout == "column") for x in found]
            _, sms = here()

            def time(td: TileDescription) -> float:
                m, n = td.threadblock_shape[:2]
                each = [(m * n + 2048) * (k + 64) for _, _, k in extents]
                tiles = tiles_of(extents, (m, n)).tolist()
                work = sum([x * y for x, y in zip(each, tiles)])
                return max(work / sms, max([x for x, count in zip(each, tiles) if count], default=0))

            td = min(self.tile_descriptions(), key=time)
        return self._operation(td)

    def _operation(self, td: TileDescription) -> GemmOperationGrouped:
        key = (td, current(self.epilogue_visitor))
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = self._make(td)
        return found

    def construct(
        self, tile_description: TileDescription | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None,
    ) -> GemmOperationGrouped:  # fmt: skip
        """Return an operation of a tile, by default the plan's or the usual one; not compiled.  Raises OpError.

        ``alignment_A`` and so on: elements of which addresses and rows are multiples, by default whole 16 bytes.
        """
        td = tile_description or self._tile or self.tile_descriptions()[0]
        return self._make(td, (alignment_A, alignment_B, alignment_C))

    def compile(
        self, tile_description: TileDescription | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None, *, print_module: bool = False,
    ) -> GemmOperationGrouped:  # fmt: skip
        """Return the operation of :meth:`construct`, compiled for the plan's alpha and beta; :meth:`run` then takes it.

        ``print_module``: print its file.
        """
        operation = self.construct(tile_description, alignment_A, alignment_B, alignment_C)
        if print_module:
            print(operation.ir())
        operation.compile(self.alpha, 0.0 if self.kinds.c is None else self.beta)
        self._tile = operation.tile_description
        self._operations = {(self._tile, current(self.epilogue_visitor)): operation}
        return operation

    # ------------------------------------------------------------------------------------------------------- calls

    def arguments(
        self, A: Any = None, B: Any = None, C: Any = None, D: Any = None, alpha: Any = None, beta: float | None = None,
        *, offs: Any = None, lengths: Any = None, row_groups: Any = None, rest: str = "keep", bias: Any = None,
        visitor_args: Mapping[str, object] | None = None, stream: object = None, **options: Unpack[CallOptions],
    ) -> GroupArguments | CutArguments:  # fmt: skip
        """Return the checked arguments of :meth:`run`, and what computes them; nothing is launched."""
        groups = {"offs": offs, "lengths": lengths, "row_groups": row_groups}
        return self._call(
            "GroupedGemm.arguments", (A, B, C, D), alpha, beta, groups, rest, bias, visitor_args, stream, options
        )

    def _call(self, call: str, *given: Any) -> GroupArguments | CutArguments:
        """Return the checked arguments of a call; see :meth:`_arguments`."""
        return self._served(call, lambda plan: plan._arguments(call, *given))

    def _arguments(
        self, call: str, given: Sequence[Any], alpha: Any, beta: float | None, groups: Mapping[str, Any], rest: str,
        bias: Any, visitor_args: Mapping[str, object] | None, stream: object, options: CallOptions,
    ) -> GroupArguments | CutArguments:  # fmt: skip
        a, b, c, d = self._given(call, given)
        alpha, beta = self.alpha if alpha is None else alpha, self.beta if beta is None else float(beta)
        groups = {n: x for n, x in groups.items() if x is not None}
        if groups:
            if isinstance(a, list | tuple):
                raise UnsupportedError(f"{call}: expected no {next(iter(groups))} with a list of products")
            return cut_arguments(call, self, a, b, c, d, alpha, beta, groups, rest, bias, visitor_args, stream, options)
        if visitor_args:
            raise EpilogueError(
                f"{call}: expected no visitor_args of a list of products, got {', '.join(visitor_args)}"
            )
        on_cpu = on_the_cpu(options)
        found, results = problems_of(call, self.kinds, a, b, c, d, beta=beta, bias=bias, on_cpu=on_cpu)
        numbers = numbers_of(call, alpha, beta, len(found), on_cpu)
        return GroupArguments(self.operation_for(found), found, results, numbers, stream, options, call)

    def _given(self, call: str, given: Sequence[Any]) -> list[Any]:
        """Return the arrays of a call, those of the plan where it has none.  Raises UnsupportedError."""
        found = [own if x is None else x for own, x in zip((self.A, self.B, self.C, self.D), given)]
        for name, x in zip("AB", found):
            if x is None:
                raise UnsupportedError(f"{call}: expected {name}, as the plan has none")
        return found

    def run(
        self, A: Any = None, B: Any = None, C: Any = None, D: Any = None, alpha: Any = None, beta: float | None = None,
        *, offs: Any = None, lengths: Any = None, row_groups: Any = None, rest: str = "keep", sync: bool = True,
        print_module: bool = False, bias: Any = None, visitor_args: Mapping[str, object] | None = None,
        stream: object = None, **options: Unpack[CallOptions],
    ) -> GroupArguments | CutArguments:  # fmt: skip
        """Compute ``D``, made if it is not given, and return the arguments: ``.D``, ``.sync()``.

        Lists have a product in each place, of any M, N, K and strides, and are computed by one launch; ``alpha`` is a
        number, a list, or an array of f32 of (G,), ``bias`` a list of (N,) or (M, 1), or one for all.  With ``offs``,
        ``lengths`` or ``row_groups`` operands are arrays, cut into groups as by ``op.grouped_mm``; ``rest`` as there.
        ``sync``: wait for the result; ``options``: ``device="cpu"`` for the interpreter, and its own (``checks``).
        Raises OpError before anything is written.
        """
        groups = {"offs": offs, "lengths": lengths, "row_groups": row_groups}
        found = self._call(
            "GroupedGemm.run", (A, B, C, D), alpha, beta, groups, rest, bias, visitor_args, stream, options
        )
        if print_module:
            print(ir_of(found.shown(), "cute"))
        found.launch()
        self._last = found
        self._record(found)
        if sync:
            found.sync()
        return found

    def bind(
        self, A: Any = None, B: Any = None, C: Any = None, D: Any = None, alpha: Any = None, beta: float | None = None,
        *, offs: Any = None, lengths: Any = None, row_groups: Any = None, rest: str = "keep", bias: Any = None,
        visitor_args: Mapping[str, object] | None = None,
    ) -> Callable[..., None]:  # fmt: skip
        """Return ``call``, checked and prepared: ``call()`` or ``call(stream)`` does no more than launch.

        Arrays are on a GPU, where a list's table stays.  Raises OpError.
        """
        groups = {"offs": offs, "lengths": lengths, "row_groups": row_groups}
        return self._call(
            "GroupedGemm.bind", (A, B, C, D), alpha, beta, groups, rest, bias, visitor_args, None, {}
        ).bind()

    # ------------------------------------------------------------------------------------------------------- saved

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan of what :meth:`settings` told."""
        names = ("kernel_cc", "precompute_mode")
        plan = cls(**types_of(settings["one"]), **{n: settings[n] for n in names})
        plan._one = Gemm.of_settings(settings["one"])
        plan._take({"tile": settings["tile_description"]})
        return plan

    def settings(self) -> Fields:
        """Return what makes the plan again, as data."""
        tile = None if self._tile is None else self._tile.to_json()
        mode = str(self._mode)
        return {
            "one": self._one.settings(), "kernel_cc": self.chip, "precompute_mode": mode, "tile_description": tile,
        }  # fmt: skip

    def _take(self, choice: Fields) -> None:
        tile = choice["tile"]
        self._tile, self._operations = None if tile is None else TileDescription.from_json(tile), {}

    def sync(self) -> None:
        """Wait for the last run; results in numpy arrays are then there."""
        if self._last is not None:
            self._last.sync()

    def reference(
        self, A: Any = None, B: Any = None, C: Any = None, alpha: Any = None, beta: float | None = None, *,
        offs: Any = None, lengths: Any = None, row_groups: Any = None, bias: Any = None,
    ) -> list[NDArray[float64]]:  # fmt: skip
        """Return what :meth:`run` computes of each product, in numpy and f64, not rounded to D.

        Of rows or columns that are cut into groups it is the result of each group.  Raises UnsupportedError for an
        epilogue of the sums.
        """
        call = "GroupedGemm.reference"
        a, b, c, _ = self._given(call, (A, B, C, None))
        alpha, beta = self.alpha if alpha is None else alpha, self.beta if beta is None else float(beta)
        if is_of_sums(self.epilogue_visitor):
            raise UnsupportedError(f"{call}: expected no epilogue of the sums: op.Gemm has its reference")
        groups = {n: x for n, x in (("offs", offs), ("lengths", lengths), ("row_groups", row_groups)) if x is not None}
        if groups:
            a, b, c, bias = cut_reference(call, a, b, c, bias, groups)
        count = len(a)
        alphas = alpha.tolist() if hasattr(alpha, "tolist") else alpha
        alphas = alphas if isinstance(alphas, list | tuple) else [alphas] * count
        biases = bias if isinstance(bias, list | tuple) else [bias] * count
        hook = cast("Hook | None", self.epilogue_visitor)
        given = zip(a, b, [None] * count if c is None else c, cast("list[float]", alphas), biases)
        return [reference(x, y, z, alpha, beta, w, self.activation, hook) for x, y, z, alpha, w in given]

    # ----------------------------------------------------------------------------------------------------- reading

    def explain(
        self, A: Any = None, B: Any = None, *, offs: Any = None, lengths: Any = None, row_groups: Any = None,
        others: int = 4,
    ) -> Any:  # fmt: skip
        """Return which kernel computes a list of such matrices, or groups, and how: a
        :class:`~cute_dialect.op.plans.grouped_report.ListExplanation`, or what ``op.explain`` gives of groups.
        """
        a, b, _, _ = self._given("GroupedGemm.explain", (A, B, None, None))
        groups = {n: x for n, x in (("offs", offs), ("lengths", lengths), ("row_groups", row_groups)) if x is not None}
        if groups:
            from cute_dialect.op.grouped.functions import grouped_mm
            from cute_dialect.op.select.report import explain

            return explain(grouped_mm, a, b, others=others, **groups)
        found, _ = problems_of("GroupedGemm.explain", self.kinds, a, b, None, None, on_cpu=None)
        return explained_list("GroupedGemm", self, found)

    def _shown(self) -> Source:
        """Return the last run's kernel, or that of :meth:`construct`."""
        return self.construct().first() if self._last is None else self._last.shown()

    def __repr__(self) -> str:
        a, b, c, d = self.kinds
        return f"<GroupedGemm A {a}; B {b}; C {c or 'none'}; D {d}>"
