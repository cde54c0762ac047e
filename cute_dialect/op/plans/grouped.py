"""Plan of a grouped GEMM: types and layouts are fixed, calls pass lists of arrays, or one matrix and its groups.

    plan = op.GroupedGemm(element="f16", layout="row")
    plan.run([a0, a1], [b0, b1], D=[d0, d1])                # each of its own M, N, K and strides; one launch
    plan.run(a, experts, D=d, offs=offs)                    # groups of rows of a, each with its matrix of experts

Operands are never copied.  If a kernel cannot read an operand in place, the error names a remedy.

Groups of one matrix (:class:`CutArguments`) are rows, columns, steps of K, or the first rows of batch matrices.
"""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import GroupedConfig
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.tracing import Traced, current
from cute_dialect.op.errors import EpilogueError, ShapeError, UnsupportedError, named
from cute_dialect.op.execute.arguments import check_bound, in_order, on_the_cpu, wait_for
from cute_dialect.op.execute.grouped import planned
from cute_dialect.op.execute.kernels import GroupKernel, kernel_of, library, name_of, text_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.execute.saved import Fields, SavedKernels, Source, ir_of
from cute_dialect.op.explanations.gemm import explain_grouped
from cute_dialect.op.plans.base import Tiled, replayed
from cute_dialect.op.plans.gemm import Gemm, types_of
from cute_dialect.op.plans.reference import as_f64, reference
from cute_dialect.op.plans.report import explained_list
from cute_dialect.op.problems.grouped import GroupedArguments, shapes_of
from cute_dialect.op.problems.operands import Kinds, Operands, Type, as_planned, read
from cute_dialect.op.problems.pointer_arrays import extents_of, numbers_of, problems_of, tiles_of
from cute_dialect.op.pycutlass.arguments import is_of_sums
from cute_dialect.op.pycutlass.functors import EpilogueFunctor
from cute_dialect.op.pycutlass.grouped import GemmOperationGrouped, GroupArguments
from cute_dialect.op.select.backends import GROUPED_CCS, WGMMA, Backend, selected_cc, unmeasured
from cute_dialect.op.select.configurations import KernelRequest
from cute_dialect.op.select.descriptions import (
    MathOperation,
    OpcodeClass,
    SchedulerMode,
    Swizzle,
    TensorDescription,
    TileDescription,
    known,
)
from cute_dialect.op.select.gemm_dispatch import here
from cute_dialect.op.select.grouped import Sm100Groups
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.runtime.arrays import stream_of, view_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from numpy import float64
    from numpy.typing import NDArray

    from cute_dialect.interp import RunReport
    from cute_dialect.kernels.epilogue.combination import Hook
    from cute_dialect.op.execute.launcher import Ready
    from cute_dialect.op.explanations.gemm import Explanation
    from cute_dialect.op.signature_types import Array, Arrays, Factor
    from cute_dialect.runtime.launch import CallOptions, CompiledModule


class GroupedGemm(Tiled):
    """``D_g = activation(alpha * A_g B_g + beta * C_g + bias_g)`` for operands of planned elements and layouts.

    The arguments are those of :class:`~cute_dialect.op.plans.gemm.Gemm`.  ``A`` to ``D`` may be lists, whose first
    matrices determine the types.  Raises OpError.
    """

    call: ClassVar[str] = "GroupedGemm"

    def __init__(
        self, A: Arrays = None, B: Arrays = None, C: Arrays = None, D: Arrays = None, *, chip: int | None = None,
        kernel_cc: int | None = None, precompute_mode: str = SchedulerMode.Device, **types: object,
    ):  # fmt: skip
        super().__init__()
        self.A, self.B, self.C, self.D = A, B, C, D
        first = [x[0] if isinstance(x, list | tuple) and x else x for x in (A, B, C, D)]
        self.chip = selected_cc(self.call, chip, kernel_cc, GROUPED_CCS)
        with named(self.call, "GemmOperationGrouped", "Gemm"):
            # The sm_80 kernels compute lists, because they take arrays of pointers.
            self._one = Gemm(*first, **types, kernel_cc=self.chip if self._backend else 80)
        self._mode = SchedulerMode.Device
        self.precompute_mode = precompute_mode
        self._operations: dict[object, GemmOperationGrouped] = {}
        self._last: GroupArguments | CutArguments | None = None

    # ------------------------------------------------------------------------------------------------- properties

    @property
    def _backend(self) -> Backend | None:
        """The backend of a plan for a chip with tensor memory, whose kernels compute groups of one matrix only."""
        return unmeasured(self.chip)

    @property
    def kinds(self) -> Kinds:
        """Elements and layouts of the operands."""
        return self._one.kinds

    @property
    def asked(self) -> KernelRequest:
        """The requirements of its kernels."""
        return self._one.asked()

    @property
    def precompute_mode(self) -> str:
        """Scheduler of the tiles of a list: the kernel (``device``), or the host, which orders them by descending K."""
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
        """Default factor of the GEMMs."""
        return self._one.alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        self._one.alpha = value

    @property
    def beta(self) -> float:
        """Default factor of C; with 0, C is not read."""
        return self._one.beta

    @beta.setter
    def beta(self, value: float) -> None:
        self._one.beta = value

    def _change(self, name: str, value: object) -> None:
        """Change a property of the GEMMs, and discard the operations built with the old one."""
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
        """Arithmetic of the multiplication."""
        return self._one.math_operation

    @math_operation.setter
    def math_operation(self, value: str) -> None:
        self._change("math_operation", value)

    @property
    def activation(self) -> str:
        """Name of the activation, "" for none."""
        return self._one.activation

    @activation.setter
    def activation(self, value: object) -> None:
        self._change("activation", value)

    @property
    def swizzling_functor(self) -> Swizzle:
        """Order in which blocks take the tiles of a GEMM."""
        return self._one.swizzling_functor

    @swizzling_functor.setter
    def swizzling_functor(self, value: Swizzle) -> None:
        self._change("swizzling_functor", value)

    @property
    def epilogue_visitor(self) -> Traced | Hook | None:
        """Epilogue, or None.

        For lists it is a function of (value, row, column) in the kernel language.  For groups of one matrix it is a
        function of ``accum``, or the result of ``op.epilogue.trace``.
        """
        return self._one.epilogue_visitor

    @epilogue_visitor.setter
    def epilogue_visitor(self, value: Traced | Hook | None) -> None:
        self._change("epilogue_visitor", value)

    def _check_tile(self, td: TileDescription) -> None:
        if self._backend is not None:
            self._one.construct(td)
        elif td.kernel is None:
            self._make(td)

    def activations(self) -> list[str]:
        """Return the names of activations."""
        return self._one.activations()

    # ------------------------------------------------------------------------------------------------- operations

    def tile_descriptions(self) -> Sequence[TileDescription]:
        """Return the tiles of kernels for lists, the default first.  Nothing is compiled."""
        found = list(self._one.tile_descriptions())
        of_f32 = self.opclass == OpcodeClass.Simt and self.kinds.a.element == "f32"
        return found[:1] if of_f32 else found  # The other rungs support a single layout.

    def requested(self) -> Sm100Groups | TileDescription | None:
        """Return the kernel that calls with groups of one matrix request, or None for the fastest one."""
        backend, tile = self._backend, self._tile
        if backend is not None:
            m, n = (0, 0) if tile is None else tile.threadblock_shape[:2]
            return Sm100Groups(backend.target, None if tile is None else (m, n))
        return tile if tile is not None or WGMMA.is_allowed(self.chip) else self.tile_descriptions()[0]

    def _make(self, td: TileDescription, alignments: Sequence[int | None] = (None,) * 3) -> GemmOperationGrouped:
        """Return the operation of a tile.  Raises OpError."""
        if self._backend is not None:
            raise UnsupportedError(
                f"GroupedGemm: kernels of sm_{self.chip} do not read arrays of matrices; pass one matrix and its "
                "groups (offs, lengths or row_groups), or use kernel_cc=80"
            )
        a, b, c, d = self.kinds
        given = ((a, alignments[0]), (b, alignments[1]), (c or Type("void", d.layout), alignments[2]))
        A, B, C = (TensorDescription(t.element, t.layout, n or 0) for t, n in given)
        functor = EpilogueFunctor(d.element, 0, self.asked.accumulator, activation=self.activation)
        if is_of_sums(self.epilogue_visitor):
            raise EpilogueError(
                "GroupedGemm: epilogue_visitor is a function of accum, which lists do not support; use a function of "
                "(value, row, column)"
            )
        with named(self.call, "GemmOperationGrouped", "Gemm"):
            made = GemmOperationGrouped(
                self.chip, td, A, B, C, functor, self._one.swizzling_functor, current(self.epilogue_visitor),
                precompute_mode=self._mode, D=TensorDescription(d.element, d.layout),
            )  # fmt: skip
        made.saved = self.saved
        return made

    def operation_for(self, found: Sequence[Operands]) -> GemmOperationGrouped:
        """Return the operation for a list: of the plan's tile, or of the tile that is estimated to be the fastest.

        The time of a tile is estimated from its elements plus a constant latency.  The time of a list is that of all
        tiles divided by the multiprocessors, and at least that of its longest tile.
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
        """Return an operation of a tile, by default the plan's or the default one, without compiling it.  Raises
        OpError.

        ``alignment_A`` and so on are elements of which addresses and row strides are multiples, by default 16 bytes.
        """
        td = tile_description or self._tile or self.tile_descriptions()[0]
        return self._make(td, (alignment_A, alignment_B, alignment_C))

    def compile(
        self, tile_description: TileDescription | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None, *, print_module: bool = False,
    ) -> GemmOperationGrouped:  # fmt: skip
        """Compile the operation of :meth:`construct` for the plan's alpha and beta, and use it in :meth:`run`.

        ``print_module`` prints its source text.
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
        self, A: Arrays = None, B: Arrays = None, C: Arrays = None, D: Arrays = None, alpha: Factor = None,
        beta: float | None = None, *, offs: Array = None, lengths: Array = None, row_groups: Array = None,
        rest: str = "keep", bias: Arrays = None, visitor_args: Mapping[str, object] | None = None,
        stream: object = None, **options: Unpack[CallOptions],
    ) -> GroupArguments | CutArguments:  # fmt: skip
        """Return the checked arguments of :meth:`run` without launching anything."""
        groups = {"offs": offs, "lengths": lengths, "row_groups": row_groups}
        return self._call(
            "GroupedGemm.arguments", (A, B, C, D), alpha, beta, groups, rest, bias, visitor_args, stream, options
        )

    def _call(self, call: str, *given: Any) -> GroupArguments | CutArguments:
        """Return the checked arguments of a call; see :meth:`_arguments`."""
        return self._served(call, lambda plan: plan._arguments(call, *given))

    def _arguments(
        self, call: str, given: Sequence[Any], alpha: Factor, beta: float | None, groups: Mapping[str, Any], rest: str,
        bias: Arrays, visitor_args: Mapping[str, object] | None, stream: object, options: CallOptions,
    ) -> GroupArguments | CutArguments:  # fmt: skip
        a, b, c, d = self._given(call, given)
        alpha, beta = self.alpha if alpha is None else alpha, self.beta if beta is None else float(beta)
        groups = {n: x for n, x in groups.items() if x is not None}
        if groups:
            if isinstance(a, list | tuple):
                raise UnsupportedError(f"{call}: {next(iter(groups))} is not supported for lists; pass single arrays")
            return cut_arguments(call, self, a, b, c, d, alpha, beta, groups, rest, bias, visitor_args, stream, options)
        if visitor_args:
            raise EpilogueError(
                f"{call}: visitor_args ({', '.join(visitor_args)}) is not supported for lists; remove it"
            )
        on_cpu = on_the_cpu(options)
        found, results = problems_of(call, self.kinds, a, b, c, d, beta=beta, bias=bias, on_cpu=on_cpu)
        numbers = numbers_of(call, alpha, beta, len(found), on_cpu)
        return GroupArguments(self.operation_for(found), found, results, numbers, stream, options, call)

    def _arrays(self, given: Sequence[Any]) -> list[Any]:
        """Return the arrays of a call, with the plan's arrays as defaults."""
        return [own if x is None else x for own, x in zip((self.A, self.B, self.C, self.D), given)]

    def _given(self, call: str, given: Sequence[Any]) -> list[Any]:
        """Return the arrays of a call, with the plan's arrays as defaults.  Raises UnsupportedError."""
        found = self._arrays(given)
        for name, x in zip("AB", found):
            if x is None:
                raise UnsupportedError(f"{call}: {name} is missing; pass it to the call or to the plan")
        return found

    def run(
        self, A: Arrays = None, B: Arrays = None, C: Arrays = None, D: Arrays = None, alpha: Factor = None,
        beta: float | None = None, *, offs: Array = None, lengths: Array = None, row_groups: Array = None,
        rest: str = "keep", sync: bool = True, print_module: bool = False, bias: Arrays = None,
        visitor_args: Mapping[str, object] | None = None, stream: object = None, **options: Unpack[CallOptions],
    ) -> GroupArguments | CutArguments:  # fmt: skip
        """Compute ``D``, which is allocated if absent, and return the arguments with ``.D`` and ``.sync()``.

        Args:
            A, B, C, D: lists of arrays of any M, N, K and strides, computed by one launch; or single arrays, with
                groups.
            alpha: a number, a list, or an f32 array of (G,).
            beta: factor of C.
            offs, lengths, row_groups, rest: groups of single arrays, as in ``op.grouped_mm``.
            sync: True to wait for the result.
            print_module: True to print the source text of the kernel.
            bias: a list of (N,) or (M, 1), or one for all.
            visitor_args: arguments of the epilogue of single arrays.
            stream: stream of the launch.
            options: ``device="cpu"`` for the interpreter, and its options, such as ``checks``.

        Raises:
            OpError: before anything is written.
        """
        groups = {"offs": offs, "lengths": lengths, "row_groups": row_groups}
        a, b, c, d = self._arrays((A, B, C, D))
        alpha, beta = self.alpha if alpha is None else alpha, self.beta if beta is None else float(beta)

        def launch() -> GroupArguments | CutArguments:
            self._refuse_gradients("grouped_mm", (a, b, c, d, bias, *(visitor_args or {}).values()))
            given = (A, B, C, D), alpha, beta, groups, rest, bias, visitor_args, stream, options
            found = self._call("GroupedGemm.run", *given)
            if print_module:
                print(ir_of(found.shown(), "cute"))
            found.launch()
            self._record(found)
            return found

        def replay(done: Any) -> CutArguments:
            given = (a, b, c, done), alpha, beta, groups, rest, bias, None, None, {}
            return replayed(CutArguments, lambda: cast("CutArguments", self._call("GroupedGemm.run", *given)), done)

        # The kernels of lists read a table of addresses, which a replay would have to write again.
        usual = not (options or print_module or self.epilogue_visitor or visitor_args or isinstance(a, list | tuple))
        given = a, b, None if beta == 0.0 else c, d, alpha, beta, bias, *groups.values()
        how = (rest,) if usual and stream is None else None
        found = self._run(how, given, launch, replay)
        self._last = found
        if sync:
            found.sync()
        return found

    def bind(
        self, A: Arrays = None, B: Arrays = None, C: Arrays = None, D: Arrays = None, alpha: Factor = None,
        beta: float | None = None, *, offs: Array = None, lengths: Array = None, row_groups: Array = None,
        rest: str = "keep", bias: Arrays = None, visitor_args: Mapping[str, object] | None = None,
    ) -> Callable[..., None]:  # fmt: skip
        """Return a checked and prepared function: ``call()`` or ``call(stream)`` only launches.

        Arrays must be in GPU memory, where the table of a list stays.  Raises OpError.
        """
        groups = {"offs": offs, "lengths": lengths, "row_groups": row_groups}
        return self._call(
            "GroupedGemm.bind", (A, B, C, D), alpha, beta, groups, rest, bias, visitor_args, None, {}
        ).bind()

    # ------------------------------------------------------------------------------------------------------- saved

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan of :meth:`settings`."""
        names = ("kernel_cc", "precompute_mode")
        plan = cls(**types_of(settings["one"]), **{n: settings[n] for n in names})
        plan._one = Gemm.of_settings(settings["one"])
        plan._take({"tile": settings["tile_description"]})
        return plan

    def settings(self) -> Fields:
        """Return the settings of the plan as data."""
        tile = None if self._tile is None else self._tile.to_json()
        mode = str(self._mode)
        return {"one": self._one.settings(), "kernel_cc": self.chip, "precompute_mode": mode, "tile_description": tile}

    def _take(self, choice: Fields) -> None:
        tile = choice["tile"]
        self._tile, self._operations = None if tile is None else TileDescription.from_json(tile), {}

    def sync(self) -> None:
        """Wait for the last run; results in NumPy arrays are valid afterwards."""
        if self._last is not None:
            self._last.sync()

    def reference(
        self, A: Arrays = None, B: Arrays = None, C: Arrays = None, alpha: Factor = None, beta: float | None = None, *,
        offs: Array = None, lengths: Array = None, row_groups: Array = None, bias: Arrays = None,
    ) -> list[NDArray[float64]]:  # fmt: skip
        """Return the results of :meth:`run` computed by NumPy in f64, not rounded to D, one per GEMM or group.

        Raises UnsupportedError if the epilogue is a function of the accumulator.
        """
        call = "GroupedGemm.reference"
        a, b, c, _ = self._given(call, (A, B, C, None))
        alpha, beta = self.alpha if alpha is None else alpha, self.beta if beta is None else float(beta)
        if is_of_sums(self.epilogue_visitor):
            raise UnsupportedError(
                f"{call}: epilogue_visitor is a function of accum, which is not supported; use op.Gemm for a reference"
            )
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
        self, A: Arrays = None, B: Arrays = None, *, offs: Array = None, lengths: Array = None,
        row_groups: Array = None, others: int = 4,
    ) -> Explanation:  # fmt: skip
        """Explain which kernel computes these lists or groups."""
        a, b, _, _ = self._given("GroupedGemm.explain", (A, B, None, None))
        groups = {n: x for n, x in (("offs", offs), ("lengths", lengths), ("row_groups", row_groups)) if x is not None}
        if groups:
            backend, requested = self._backend, self.requested()
            gpu = requested if isinstance(requested, Sm100Groups) else ""
            found = explain_grouped(a, b, None, groups, gpu=gpu, others=others)
            if backend is None:
                return found
            return replace(found, operation=self.call, gpu=backend.target, status=backend.status)
        found, _ = problems_of("GroupedGemm.explain", self.kinds, a, b, None, None, on_cpu=None)
        return explained_list("GroupedGemm", self, found)

    def _shown(self) -> Source:
        """Return the kernel of the last run, or that of :meth:`construct`."""
        return self.construct().first() if self._last is None else self._last.shown()

    def __repr__(self) -> str:
        a, b, c, d = self.kinds
        return f"<GroupedGemm A {a}; B {b}; C {c or 'none'}; D {d}>"


_MATH = {
    MathOperation.multiply_add_fast_f32: "3xtf32",
    MathOperation.multiply_add_fast_f16: "fast_f16",
    MathOperation.multiply_add_fast_bf16: "fast_bf16",
}


class _Source(NamedTuple):
    """A kernel as a :class:`~cute_dialect.op.execute.saved.Source`."""

    config: GroupKernel
    chip: str = ""

    @property
    def name(self) -> str:
        return name_of(self.config)

    def text(self) -> str:
        return text_of(self.config)

    def compiled(self, *, cpu: bool = False) -> CompiledModule:
        return library(self.config, cpu=cpu)


class CutArguments:
    """Checked operands of groups of one matrix, with :meth:`launch`, :meth:`sync` and :meth:`bind`.

    ``D`` is the result, ``kernels`` the names of the kernels in launch order.
    """

    def __init__(
        self, call: str, D: Any, launches: Sequence[tuple[GroupKernel, tuple[Any, ...]]], stream: object,
        options: CallOptions, problem: str, tile: TileDescription | None, saved: SavedKernels | None,
    ):  # fmt: skip
        self.call = call
        self.D, self.stream, self.options, self.problem, self.saved = D, stream, options, problem, saved
        self._tile = tile
        self._launches = launches
        self._wait: Callable[[], None] | None = None

    def sources(self) -> list[Source]:
        """Return the kernels in launch order."""
        return [_Source(config) for config, _ in self._launches]

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels in launch order."""
        return [source.name for source in self.sources()]

    def _ready(self, on_cpu: bool = False) -> list[Ready]:
        """Return the kernels, ready to launch."""
        if self.saved is None:
            return [kernel_of(config, on_cpu) for config, _ in self._launches]
        return [self.saved.module(source.name).kernel("launch") for source in self.sources()]

    def launch(self) -> RunReport | None:
        """Launch without waiting, except for NumPy arrays.

        On the CPU, run the interpreter and return its last report.
        """
        on_cpu, report = on_the_cpu(self.options), None
        for kernel, (_, given) in zip(self._ready(on_cpu), self._launches):
            report = launched(kernel, *given, stream=self.stream, **self.options)
        view = view_of(self.D)
        if view.device >= 0:
            self._wait = wait_for(view.device, stream_of(self.stream, (view,)))
        return report

    def bind(self) -> Callable[..., None]:
        """Return a function that only launches the kernels on these operands, which must be in GPU memory."""
        check_bound(self.call, view_of(self.D).device)
        return in_order([kernel.bind(*given) for kernel, (_, given) in zip(self._ready(), self._launches)])

    def sync(self) -> None:
        """Wait for the launch."""
        wait, self._wait = self._wait, None
        if wait is not None:
            wait()

    @property
    def config(self) -> GroupKernel:
        """The kernel of the GEMM.  Raises UnsupportedError if the call has no launches."""
        if not self._launches:
            raise UnsupportedError("GroupedGemm: the call is empty and has no kernel; pass groups with elements")
        return next((c for c, _ in self._launches if hasattr(c, "base")), self._launches[0][0])

    def taken(self) -> Fields:
        """Return the tile of a wgmma kernel, or else the plan's, as data."""
        found, tile = self.config if self._launches else None, self._tile
        if isinstance(found, GroupedConfig):
            choice = Choice(found.base._replace(batch=True, epilogue=Epilogue()))
            tile = TileDescription(found.base.tile, kernel=choice)
        return {"tile": None if tile is None else tile.to_json()}

    def shown(self) -> Source:
        """Return the kernel of the GEMM."""
        return _Source(self.config)


def cut_arguments(
    call: str, plan: GroupedGemm, a: Any, b: Any, c: Any, d: Any, alpha: Any, beta: float, groups: Mapping[str, Any],
    rest: str, bias: Any, visitor_args: Mapping[str, object] | None, stream: object, options: CallOptions,
) -> CutArguments:  # fmt: skip
    """Return the checked arguments of a call.  Raises OpError."""
    on_cpu, kinds = on_the_cpu(options), plan.kinds
    for name, x, kind in (("A", a, kinds.a), ("B", b, kinds.b), ("C", c, kinds.c or kinds.d), ("D", d, kinds.d)):
        if x is not None and (name != "C" or beta != 0.0):
            as_planned(call, name, read(call, name, x, on_cpu), kind)
    if kinds.d.layout != "row":
        raise UnsupportedError(f"{call}: D is column-major; groups of one matrix need a row-major D")
    if beta != 0.0 and c is None:
        raise ShapeError(f"{call}: beta is {beta}, but C is missing; pass C or beta=0")
    visitor = plan.epilogue_visitor
    if visitor is not None and not is_of_sums(visitor):
        raise EpilogueError(f"{call}: groups of one matrix need an epilogue_visitor with a parameter accum")
    of_a, asked = kinds.a.element, plan.asked
    math = {"tf32": "tf32", "f32": _MATH.get(MathOperation(asked.math), "exact")}.get(of_a, "default")
    if of_a == "f32" and asked.element_a == "tf32":
        math = "tf32"
    tile = plan.requested()
    sums = "f16" if asked.accumulator == "f16" else None
    c = c if beta != 0.0 else None
    extras = LinearCombination(alpha, beta, c, bias, plan.activation, math=math, accumulator=sums)
    given = GroupedArguments(
        a, b, groups, d, extras, visitor, visitor_args if visitor is not None else None, rest,
        dtype=None if d is not None else kinds.d.element, kernel=tile,
    )  # fmt: skip
    found = planned(call, given, options.get("device"), stream)
    sizes = ["x".join(map(str, x.shape)) for x in (a, b)]
    problem = f"{' by '.join(sizes)} in {', '.join(groups)}"
    described = plan.tile_description if isinstance(tile, Sm100Groups) else tile
    return CutArguments(call, found.result, found.launches, stream, options, problem, described, plan.saved)


def cut_reference(
    call: str, a: Any, b: Any, c: Any, bias: Any, groups: Mapping[str, Any]
) -> tuple[list[Any], list[Any], list[Any] | None, list[Any]]:
    """Return the operands of each group in f64.  Raises ShapeError, UnsupportedError."""
    numbers = {n: [int(i) for i in (x if isinstance(x, list | tuple) else as_f64(x))] for n, x in groups.items()}
    s = shapes_of(call, a.shape, b.shape, {n: (len(x),) for n, x in numbers.items()})
    ((name, given),) = numbers.items()
    if name == "row_groups":
        rows = [[i for i, g in enumerate(given) if g == group] for group in range(s.groups)]
        parts: list[Any] = [slice(r[0], r[-1] + 1) if r else slice(0, 0) for r in rows]
    elif name == "lengths":
        parts = [slice(0, n) for n in given]
    else:
        ends = given[len(given) - s.groups :]
        parts = [slice(begin, end) for begin, end in zip([0, *ends], ends)]
    a, b = as_f64(a), as_f64(b)
    c = None if c is None else as_f64(c)
    each: list[tuple[Any, Any, Any]] = []
    for g, part in enumerate(parts):
        x = a[g, part] if s.form == "rows" else a[part] if s.form == "m" else a[g] if s.form == "n" else a[:, part]
        y = b[g] if s.form in ("m", "rows") else b[:, part] if s.form == "n" else b[part]
        z = c
        if c is not None and s.form != "k":
            z = c[g, part] if s.form == "rows" else c[part] if s.form == "m" else c[:, part]
        elif c is not None:
            z = c[g]
        each.append((x, y, z))
    biases: list[Any] = [bias] * s.groups
    if bias is not None:
        v = as_f64(bias)
        if (tuple(v.shape) == (s.groups, s.n) and s.form != "n") or len(v.shape) == 3:
            biases = list(v)
        elif tuple(v.shape) == (s.m, 1) and s.form == "m":
            biases = [v[part] for part in parts]
        elif s.form == "n" and v.shape[-1] == s.n:
            biases = [v.reshape(-1)[part] for part in parts]
    return [x for x, _, _ in each], [y for _, y, _ in each], None if c is None else [z for *_, z in each], biases
