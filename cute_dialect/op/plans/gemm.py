"""Plan of a GEMM: types, layouts and the epilogue are fixed, then it is run, explained, compiled and saved.

    plan = op.Gemm(element="f16", layout="row")
    arguments = plan.run(a, b, c, d)                     # D = alpha * A B + beta * C
    plan.run(a, b, c, d, sync=False).sync()
    print(plan.explain(a, b))

Operands are never copied, except that f32 may be split into tf32 parts.  If a kernel cannot read an operand in place,
the error names a remedy.

:class:`MatrixPlan` is the base of ``op.Gemm`` and ``op.ScaledGemm``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, cast

from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.op.arrays.dtypes import SIZES, checked_element, layout_name
from cute_dialect.op.epilogue.combination import combined, is_per_matrix
from cute_dialect.op.epilogue.tracing import current
from cute_dialect.op.errors import DtypeError, EpilogueError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.arguments import Arguments, PointerArrayArguments, on_the_cpu
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.kernels import Variant
from cute_dialect.op.execute.saved import Fields
from cute_dialect.op.keywords import checks_keywords
from cute_dialect.op.plans.base import Settings, replayed
from cute_dialect.op.plans.reference import as_f64, reference, visited_reference
from cute_dialect.op.plans.report import explained
from cute_dialect.op.problems.gemm import planned_operands
from cute_dialect.op.problems.operands import Kinds, Operands, Type, folded, found_type, read
from cute_dialect.op.problems.pointer_arrays import as_batch, is_several, products_of
from cute_dialect.op.pycutlass.arguments import Visited, arguments_for, is_of_sums, visited
from cute_dialect.op.pycutlass.functors import number
from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
from cute_dialect.op.select.backends import GEMM_CCS, WGMMA, unmeasured
from cute_dialect.op.select.configurations import ampere_tiles, check_chip
from cute_dialect.op.select.descriptions import (
    ALONE,
    GemmCoord,
    MathOperation,
    OpcodeClass,
    Split,
    Swizzle,
    TensorDescription,
    TileDescription,
)
from cute_dialect.op.select.plan_tiles import chosen, tiles_of
from cute_dialect.op.tuning import check_place, tuned_plan

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from cute_dialect.kernels.epilogue.combination import Hook
    from cute_dialect.op.explanations.gemm import Explanation
    from cute_dialect.op.signature_types import Factor
    from cute_dialect.op.tuning import Tuned
    from cute_dialect.runtime.launch import CallOptions


_RESULTS = {"f8E4M3FN": "bf16", "f8E5M2": "bf16", "i8": "i32", "ui8": "i32", "tf32": "f32"}
_TYPICAL = GemmCoord(4096, 4096, 4096)


class MatrixPlan(Settings):
    """A plan of GEMMs with fixed elements and layouts.  For the arguments see
    :class:`~cute_dialect.op.plans.gemm.Gemm`.

    Raises OpError.
    """

    kernel_ccs: ClassVar[Sequence[int]] = GEMM_CCS

    @checks_keywords
    def __init__(
        self, A: object = None, B: object = None, C: object = None, D: object = None, *, element: object = None,
        layout: object = None, element_A: object = None, element_B: object = None, element_C: object = None,
        element_D: object = None, layout_A: object = None, layout_B: object = None, layout_C: object = None,
        layout_D: object = None, element_accumulator: object = None, element_compute: object = "f32",
        alpha: float = 1.0, beta: float = 0.0, chip: int | None = None, kernel_cc: int | None = None,
    ):  # fmt: skip
        a = _type(self.call, "A", A, element_A, element, layout_A, layout)
        b = _type(self.call, "B", B, element_B, element, layout_B, layout)
        void = element_C == "void"
        given = C is not None or element_C is not None or layout_C is not None
        c = None
        if not void and (given or (element is not None and layout is not None)):
            result = self._result(a.element) if element_D is None else element_D
            usual = element if element is not None else result
            c = _type(self.call, "C", C, element_C, usual, layout_C, layout if layout is not None else "row")
        usual = c.element if c is not None else element if element is not None else self._result(a.element)
        d = _type(self.call, "D", D, element_D, usual, layout_D, c.layout if c is not None else layout or "row")
        d = d._replace(element="f32") if d.element == "tf32" else d
        c = c._replace(element="f32") if c is not None and c.element == "tf32" else c
        kinds = Kinds(a, b, None if void else c or d, d)
        super().__init__((A, B, C, D), kinds, element_accumulator, element_compute, alpha, beta, chip, kernel_cc)

    def _result(self, element: str) -> str:
        """Return the default type of D for a type of A."""
        return _RESULTS.get(element, element)

    def _check(self) -> None:
        """Raise OpError if there is no kernel for the plan."""
        super()._check()
        if self._opclass is OpcodeClass.TensorOp and WGMMA.is_allowed(self.chip):
            WGMMA.supports(self.asked(), self.call)
        if unmeasured(self.chip):
            check_chip(self.chip, self.asked(), self.call)

    # --------------------------------------------------------------------------------------------------- operations

    def _check_tile(self, td: TileDescription) -> None:
        self._make(td)

    def _described(self, td: TileDescription) -> tuple[TileDescription, Swizzle | None]:
        """Return the tile and the swizzle that describe an operation.

        Raises UnsupportedError for a tile whose MMA applies other scales than those of the plan, or none.
        """
        wanted, i = self.asked(), td.math_instruction
        if (wanted.sums if wanted.scaling else "") != ("" if i is None else i.scaling):
            scales = f"{wanted.sums} scales" if wanted.scaling else "operands without scales"
            cure = "use one of tile_descriptions()" if wanted.scaling else "use op.ScaledGemm"
            raise UnsupportedError(f"{self.call}: tile {td.name} does not support {scales}; {cure}")
        return td, self._swizzle

    def _make(self, td: TileDescription, alignments: Sequence[int | None] = (None,) * 3) -> GemmOperationUniversal:
        """Return the operation of a tile.  Raises UnsupportedError."""
        a, b, c, d = self.kinds
        kinds = ((a, alignments[0]), (b, alignments[1]), (c or Type("void", d.layout), alignments[2]))
        A, B, C = (TensorDescription(t.element, t.layout, n or 0) for t, n in kinds)
        td, swizzle = self._described(td)
        made = GemmOperationUniversal(
            self.chip, td, A, B, C, self._functor(), swizzle, self._known_visitor(),
            D=TensorDescription(d.element, d.layout),
        )  # fmt: skip
        made.saved = self.saved
        return made

    def operation_for(self, x: Operands, split: Split = ALONE, *, array: bool = False) -> GemmOperationUniversal:
        """Return the operation that computes a call.  ``array`` is True for pointer arrays."""
        asked = self.asked(batch=len(x.d.shape) == 3)
        td = self._tile or chosen(x, asked, **self.where(), call=f"{self.call}.run", array=array, split=split)
        return self.operation_of(td)

    def _key(self, td: TileDescription) -> tuple[object, object]:
        """Return the key of the operation of a tile."""
        return td.kernel or td, current(self._visitor) if self._traced is None else self._traced.key

    def operation_of(self, td: TileDescription) -> GemmOperationUniversal:
        """Return the cached operation of a tile."""
        key = self._key(td)
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = self._make(td)
        return found

    def tile_descriptions(self, problem: Sequence[int] | None = None) -> Sequence[TileDescription]:
        """Return all tiles with a kernel, the best first for a problem (M, N, K), by default 4096 each.

        Nothing is compiled.
        """
        return tiles_of(self.asked(), tuple(problem or _TYPICAL), **self.where())

    def construct(
        self, tile_description: TileDescription | Mapping[str, object] | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None,
    ) -> GemmOperationUniversal:  # fmt: skip
        """Return an operation without compiling it.

        Args:
            tile_description: the tile, by default that of the plan, or else the best for 4096 x 4096 x 4096. A dict
                changes fields of the default.
            alignment_A, alignment_B, alignment_C: elements of which addresses and row strides are multiples, by
                default 16 bytes; less needs a kernel without TMA.

        Raises:
            UnsupportedError: if there is no such kernel.
        """
        alignments = (alignment_A, alignment_B, alignment_C)
        usual = self._tile or self._usual(alignments)
        td = usual.replace(tile_description) if isinstance(tile_description, Mapping) else tile_description or usual
        return self._make(td, alignments)

    def _usual(self, alignments: Sequence[int | None]) -> TileDescription:
        a, b, c, d = self.kinds
        types = (a.element, b.element, (c or d).element)
        whole = [n is None or n * SIZES[e] >= 16 for n, e in zip(alignments, types)]
        usual, backend = self.tile_descriptions()[0], unmeasured(self.chip)
        by_tma = WGMMA.is_allowed(self.chip) or backend is not None
        # Kernels that split f32 into parts allocate aligned memory for them.
        if all(whole) or self._opclass is OpcodeClass.Simt or not by_tma or usual.in_parts:
            return usual
        if backend is not None and backend.has_tensor_memory and whole[0] and whole[1]:
            return usual.replace({"epilogue_schedule": "direct"})  # Only D needs stores without TMA.
        if self.asked().scaling:
            raise UnsupportedError(
                f"{self.call}: kernels with scales of blocks of 32 or 16 read A and B by TMA, which needs 16 bytes; "
                "omit alignment_A and alignment_B, or use op.scaled_mm, which copies operands"
            )
        return ampere_tiles(self.asked())[0]

    def compile(
        self, tile_description: TileDescription | Mapping[str, object] | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None, *, print_module: bool = False,
    ) -> GemmOperationUniversal:  # fmt: skip
        """Compile the operation of :meth:`construct` for the plan's alpha and beta, and use it in ``run``.

        ``print_module`` prints its source text.
        """
        operation = self.construct(tile_description, alignment_A, alignment_B, alignment_C)
        beta = 0.0 if self.kinds.c is None else self._beta
        if print_module:
            print(operation.ir())
        operation.compile(self._alpha, beta)
        self._tile = operation.tile_description
        self._operations = {self._key(self._tile): operation}
        self._known.clear()
        return operation

    def _ran(self, found: Arguments) -> Arguments:
        """Launch a call, and record its kernels."""
        found.launch()
        self._record(found)
        return found

    def _given(
        self, call: str, A: object, B: object, C: object = None, D: object = None
    ) -> tuple[object, object, object, object]:
        """Return the arrays of a call, with the plan's arrays as defaults.  Raises LayoutError without A or B."""
        found = self._arrays(A, B, C, D)
        for name, array in zip("AB", found):
            if array is None:
                raise LayoutError(f"{call}: {name} is missing; pass it to the call or to the plan")
        return found

    def settings(self) -> Fields:
        """Return the settings of the plan as data."""
        a, b, c, d = self.kinds
        return {**super().settings(), "layouts": [a.layout, b.layout, (c or d).layout, d.layout]}

    def _shown(self) -> Variant:
        """Return the kernel of the last run, or of :meth:`construct`."""
        last = self._last
        if last is None or (self.saved is None and last.operation not in self._operations.values()):
            return self.construct().first()
        if self._traced is None and self.saved is None:
            return last.operation.first()
        return next(v for v in last.sources() if not isinstance(v.configured, PartsConfig))

    def __repr__(self) -> str:
        a, b, c, d = self.kinds
        return f"<{self.call} A {a}; B {b}; C {c or 'none'}; D {d}>"


def types_of(settings: Fields) -> dict[str, Any]:
    """Return the constructor arguments for types and numbers from :meth:`MatrixPlan.settings`."""
    names = ("element_accumulator", "alpha", "beta", *[f"element_{n}" for n in "ABCD"])
    layouts = {f"layout_{n}": layout for n, layout in zip("ABCD", settings["layouts"])}
    if settings["element_C"] == "void":
        layouts["layout_C"] = None
    return {n: settings[n] for n in names} | layouts


def _type(
    call: str, name: str, array: object, element: object, all_elements: object, layout: object, all_layouts: object
) -> Type:
    """Return the type of an operand: of its array, of its own arguments, or of those for all operands.

    Raises DtypeError, LayoutError.
    """
    if array is not None:
        for what, value, error in (("element", element, DtypeError), ("layout", layout, LayoutError)):
            if value is not None:
                raise error(f"{call}: {name} and {what}_{name} are both given; pass one of them")
        found = found_type(call, name, read(call, name, array))
        # With element="tf32", f32 arrays are multiplied as tf32.
        common = None if all_elements is None else checked_element(all_elements)
        return found._replace(element="tf32") if (common, found.element) == ("tf32", "f32") else found
    element, layout = all_elements if element is None else element, all_layouts if layout is None else layout
    if element is None:
        raise DtypeError(f"{call}: the element type of {name} is unknown; pass {name}, element_{name} or element")
    if layout is None:
        raise LayoutError(f"{call}: the layout of {name} is unknown; pass {name}, layout_{name} or layout")
    return Type(checked_element(element, f"{call}: element_{name}"), layout_name(layout, f"{call}: layout_{name}"))


class Gemm(MatrixPlan):
    """``D = activation(alpha * A B + beta * C)`` for operands of planned elements and layouts.

    Elements are names, or types of torch or NumPy.  Layouts are ``row`` and ``column``.  f32 is multiplied exactly;
    ``tf32`` (of f32 arrays) uses tensor cores.

    Args:
        A, B, C, D: arrays, which determine their types, and are the defaults of :meth:`run`.
        element, layout: element and layout of all other operands.
        element_A, …, layout_D: element and layout of one operand; ``element_C="void"`` for no C.
        element_accumulator: type of the accumulator.
        element_compute: type of the epilogue's computation.
        alpha, beta: default factors.
        kernel_cc: 80, 86, 87, 88 or 89 for sm_80 kernels, 90 (the default) for those of sm_90, 100, 103 or 110 for
            those with tensor memory (f16, bf16, tf32, 8-bit floats), 120 or 121 for those of sm_120 (f16, bf16, 8-bit
            floats); ``chip`` is the same.

    Raises:
        OpError: if there is no such kernel.
    """

    # -------------------------------------------------------------------------------------------------------- calls

    def _call(self, call: str, *given: Any) -> Arguments:
        """Return the checked arguments of a call, with the operation that computes it; see :meth:`_arguments`."""
        return self._served(call, lambda plan: plan._arguments(call, *given))

    def _arguments(
        self, call: str, A: object, B: object, C: object, D: object, alpha: Factor | None, beta: Factor | None,
        bias: object, stream: object, options: CallOptions, split_k: object = None,
        visitor_args: Mapping[str, object] | None = None,
    ) -> Arguments:  # fmt: skip
        """Return the checked arguments of a call, with the operation that computes it."""
        a, b, c, d = self._given(call, A, B, C, D)
        split = Split.of(split_k)
        if is_of_sums(self._visitor):
            if is_several(a):
                raise EpilogueError(
                    f"{call}: A is a list, which a traced epilogue does not support; pass single arrays"
                )
            found = self._visit(
                call, a, b, d, {"C": c, "alpha": alpha, "beta": beta, "bias": bias}, visitor_args, options
            )
            x = folded(found.operands, by_row=found.bound.graph.by_row)
            operation, results = self.operation_for(x, split), found.bound.results
            return Arguments(operation, x, found.D, stream, options, split, call, results)
        if visitor_args:
            raise EpilogueError(
                f"{call}: visitor_args ({', '.join(visitor_args)}) needs an epilogue_visitor with a parameter accum"
            )
        alpha = self._alpha if alpha is None else alpha
        beta = self._beta if beta is None else beta
        if is_per_matrix(alpha) or is_per_matrix(beta):
            return self._with_factors(call, a, b, c, d, alpha, beta, bias, stream, options, split_k)
        alpha, beta = number("alpha", alpha), number("beta", beta)
        if is_several(a):
            found, results = products_of(
                call, self.kinds, a, b, c, d, alpha=alpha, beta=beta, bias=bias, on_cpu=on_the_cpu(options)
            )
            several = len(found) > 1
            operation = self.operation_for(as_batch(found) if several else found[0], array=several)
            return PointerArrayArguments(operation, found, results, stream, options, split, call)
        x, d = planned_operands(
            call, self.kinds, a, b, c, d, alpha=alpha, beta=beta, bias=bias, on_cpu=on_the_cpu(options)
        )
        x = folded(x, by_row=self._visitor is not None)
        return Arguments(self.operation_for(x, split), x, d, stream, options, split, call)

    def _with_factors(
        self, call: str, a: Any, b: Any, c: object, d: object, alpha: Any, beta: Any, bias: object, stream: object,
        options: CallOptions, split_k: object,
    ) -> Arguments:  # fmt: skip
        """Return the arguments of a batch with one ``alpha`` or ``beta`` per matrix, which an epilogue multiplies."""
        count = max(x.shape[0] if len(getattr(x, "shape", ())) == 3 else 1 for x in (a, b))
        factors: dict[str, Any] = {}
        for name, x in (("alpha", alpha), ("beta", beta)):
            if not is_per_matrix(x):
                factors[name] = number(name, x)
            elif is_several(a):
                raise ShapeError(
                    f"{call}: {name} has shape {tuple(x.shape)}, but A is a list; pass a number, or use op.GroupedGemm"
                )
            elif x.shape[0] != count:
                more = f", or {count} factors, one per matrix" if count > 1 else ""
                raise ShapeError(f"{call}: {name} has shape {tuple(x.shape)}; pass a number{more}")
            else:
                factors[name] = x.reshape(count, 1, 1)
        if self._visitor is not None or self._clamp:
            raise EpilogueError(
                f"{call}: one alpha or beta per matrix cannot be combined with this epilogue; multiply in an "
                "epilogue_visitor, with the factors as visitor_args of shape (L, 1, 1)"
            )
        reads = c is not None and not (isinstance(factors["beta"], float) and factors["beta"] == 0.0)
        given = {n: x for n, x in (("C", c if reads else None), ("bias", bias)) if x is not None}
        key = (self._activation, *given)
        plan = self._scaled.get(key)
        if plan is None:
            plan = self._scaled[key] = copy(self)
            plan._operations, plan._known, plan._activation = {}, KnownCalls(), ""
            plan._visitor = combined(self._activation, "alpha", *["beta"] * reads, *given)
        return plan._arguments(
            call, a, b, None, d, None, None, None, stream, options, split_k,
            {n: x for n, x in (*factors.items(), *given.items()) if n != "beta" or reads},
        )  # fmt: skip

    def _visit(
        self, call: str, a: object, b: object, d: object, others: dict[str, object],
        visitor_args: Mapping[str, object] | None, options: CallOptions,
    ) -> Visited:  # fmt: skip
        """Return the operands of a call whose epilogue is traced."""
        args = arguments_for(call, self._visitor, visitor_args, others)
        found = visited(call, self._visitor, self.kinds, a, b, d, args, on_cpu=on_the_cpu(options))
        self._traced, self._visited = found.bound.traced, args
        return found

    def arguments(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: Factor | None = None,
        beta: Factor | None = None, *, bias: object = None, visitor_args: Mapping[str, object] | None = None,
        stream: object = None, split_k: object = None, **options: Unpack[CallOptions],
    ) -> Arguments:  # fmt: skip
        """Return the checked arguments of :meth:`run`, and the operation that computes them, without compiling
        anything.
        """
        return self._call("Gemm.arguments", A, B, C, D, alpha, beta, bias, stream, options, split_k, visitor_args)

    def run(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: Factor | None = None,
        beta: Factor | None = None, *, sync: bool = True, print_module: bool = False, bias: object = None,
        visitor_args: Mapping[str, object] | None = None, stream: object = None, split_k: object = None,
        **options: Unpack[CallOptions],
    ) -> Arguments:  # fmt: skip
        """Compute ``D``, which is allocated if absent, and return the arguments with ``.D`` and ``.sync()``.

        Batches are arrays of rank 3, and A or B may be a single matrix for all.  Lists are GEMMs of equal shapes,
        computed by one launch.

        Args:
            A, B, C, D: arrays or lists of arrays; C is read if ``beta`` is not 0.
            alpha, beta: factors of A B and C: numbers, or arrays with one factor per matrix of a batch.
            sync: True to wait for the result.
            print_module: True to print the source text of the kernel.
            bias: per column (N,), or per row (M, 1).
            visitor_args: arrays and numbers of a traced ``epilogue_visitor`` by name, and memory for its results; C,
                alpha, beta and bias of the call are defaults.
            stream: stream of the launch.
            split_k: split-K slices, a number or (mode, number). Mode ``serial`` reduces them in the same kernel,
                ``parallel`` in a second one; ``stream`` is stream-K.
            options: ``device="cpu"`` for the interpreter, and its options, such as ``checks``.

        Raises:
            OpError: before anything is written.
        """
        a, b, c, d = self._arrays(A, B, C, D)
        factors = self._factors(alpha, beta)
        usual = not (options or print_module or self._visitor or visitor_args) and stream is None and split_k is None

        def launch() -> Arguments:
            self._refuse_gradients("mm", (a, b, c, d, bias, *(visitor_args or {}).values()))
            found = self._call("Gemm.run", A, B, C, D, alpha, beta, bias, stream, options, split_k, visitor_args)
            if print_module:
                print(found.operation.ir())
            return self._ran(found)

        def replay(done: Any) -> Arguments:
            return replayed(Arguments, lambda: self.arguments(a, b, c, done, *factors, bias=bias), done)

        found = self._cached_run(() if usual else None, factors, c, (a, b, d, bias), launch, replay)
        self._last = found
        if sync:
            found.sync()
        return found

    # ------------------------------------------------------------------------------------------------------------ saved

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan of :meth:`settings`."""
        return cls(**types_of(settings), kernel_cc=settings["kernel_cc"]).restored(settings)

    @classmethod
    def of_operation(cls, operation: GemmOperationUniversal, alpha: float = 1.0, beta: float = 0.0) -> Self:
        """Return a plan whose calls use an operation, with default factors."""
        (a, b, c, d), functor, td = operation.kinds, operation.epilogue_functor, operation.tile_description
        sums, i = functor.element_accumulator, td.math_instruction
        plan = cls(
            element_A=a.element, element_B=b.element, element_C="void" if c is None else c.element,
            element_D=d.element, layout_A=a.layout, layout_B=b.layout, layout_C=None if c is None else c.layout,
            layout_D=d.layout, element_accumulator=sums, alpha=alpha, beta=beta,
            kernel_cc=operation.chip if operation.backend.specific or sums == "f16" else 80,
        )  # fmt: skip
        if i is not None:
            plan._opclass, plan._math_operation = OpcodeClass(i.opcode_class), MathOperation(i.math_operation)
        plan._activation, plan._clamp, plan._swizzle = functor.activation, functor.clamp, operation.swizzling_functor
        visitor = operation.visitor
        plan._visitor, plan._traced = None if visitor is True else visitor, operation.traced
        plan._tile = td
        return plan

    def bind(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: Factor | None = None,
        beta: Factor | None = None, *, bias: object = None, split_k: object = None,
        visitor_args: Mapping[str, object] | None = None,
    ) -> Callable[..., None]:  # fmt: skip
        """Return a checked and prepared function: ``call()`` or ``call(stream)`` only calls the driver's launch.

        Arrays must be in GPU memory.  Raises OpError.
        """
        return self._call("Gemm.bind", A, B, C, D, alpha, beta, bias, None, {}, split_k, visitor_args).bind()

    def reference(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: Factor | None = None,
        beta: Factor | None = None, *, bias: object = None, visitor_args: Mapping[str, object] | None = None,
    ) -> Any:  # fmt: skip
        """Return the result of :meth:`run` computed by NumPy in f64, not rounded to D, which is not needed.

        With a traced epilogue it is the result of its function; ``visitor_args`` are by default those of the last
        run.
        """
        a, b, c, _ = self._given("Gemm.reference", A, B, C, D)
        if is_of_sums(self._visitor):
            args = self._visited if visitor_args is None and self._visited is not None else visitor_args
            others = {"C": c, "alpha": alpha, "beta": beta, "bias": bias}
            return visited_reference(a, b, self._visitor, arguments_for("Gemm.reference", self._visitor, args, others))
        alpha, beta = self._alpha if alpha is None else alpha, self._beta if beta is None else beta
        alpha, beta = (as_f64(x).reshape(-1, 1, 1) if is_per_matrix(x) else number("alpha", x) for x in (alpha, beta))
        hook = cast("Hook | None", self._visitor)
        return reference(a, b, c, alpha, beta, bias, self._activation, hook)

    # ------------------------------------------------------------------------------------------------------- reading

    def tune(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: Factor | None = None,
        beta: Factor | None = None, *, bias: object = None, budget: float = 30.0, save: bool = True,
        say: Callable[[str], None] | None = None,
    ) -> Tuned:  # fmt: skip
        """Measure kernels on torch tensors on a GPU; plans and calls like this one use the fastest from now on.

        Nothing is written to ``D``.  For ``budget``, ``save`` and ``say`` see :func:`cute_dialect.op.tune`.
        """
        a, b, _, _ = self._given("Gemm.tune", A, B)
        check_place(a, b)
        taken = self._arguments("Gemm.tune", A, B, C, D, alpha, beta, bias, None, {})
        found = tuned_plan(self, taken, budget, save, say)
        self._reset()
        return found

    def explain(self, A: object = None, B: object = None, *, others: int = 4, split_k: object = None) -> Explanation:
        """Explain which kernel computes matrices of such layouts, or of such shapes, and why; see ``op.explain``.

        With ``split_k``, as in :meth:`run`, the explanation contains the number of slices.
        """
        a, b, _, _ = self._given("Gemm.explain", A, B)
        return explained(self, a, b, others, Split.of(split_k))
