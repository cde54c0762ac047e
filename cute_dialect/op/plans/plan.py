"""A planned GEMM: types, layouts and what becomes of the sums are said once, then it is run, read, compiled, saved.

    plan = op.Gemm(element="f16", layout="row")
    arguments = plan.run(a, b, c, d)                     # D = alpha * A B + beta * C
    plan.run(a, b, c, d, sync=False).sync()
    print(plan.explain(a, b))

Operands are never copied: what a kernel cannot read where it lies is an error, which says what would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.op.elements import element_name, layout_name
from cute_dialect.op.errors import DtypeError, EpilogueError, LayoutError
from cute_dialect.op.plans.arguments import Arguments, on_the_cpu
from cute_dialect.op.plans.arrays_of import is_several, matrices_of
from cute_dialect.op.plans.describe import (
    GemmCoord,
    MathOperation,
    OpcodeClass,
    TensorDescription,
    TileDescription,
)
from cute_dialect.op.plans.functors import number
from cute_dialect.op.plans.generators import Variant
from cute_dialect.op.plans.known import again, remember
from cute_dialect.op.plans.operation import GemmOperationUniversal
from cute_dialect.op.plans.planned import Kinds, Type, check, folded, found_type, read
from cute_dialect.op.plans.recipe import Operands
from cute_dialect.op.plans.reference import reference, visited_reference
from cute_dialect.op.plans.saved import Fields
from cute_dialect.op.plans.settings import Settings
from cute_dialect.op.plans.steps import Split
from cute_dialect.op.plans.tiles import chosen, of_hopper, tiles_of
from cute_dialect.op.plans.together import Matrices
from cute_dialect.op.plans.visiting import Visited, arguments_for, is_of_sums, visited

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from cute_dialect.kernels.gemm.epilogue import Hook
    from cute_dialect.op.choosing.report import Explanation
    from cute_dialect.op.choosing.tuning import Tuned
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["Gemm", "types_of"]

_RESULTS = {"f8E4M3FN": "bf16", "f8E5M2": "bf16", "i8": "i32", "ui8": "i32", "tf32": "f32"}
_TYPICAL = GemmCoord(4096, 4096, 4096)


class Gemm(Settings):
    """``D = activation(alpha * A B + beta * C)`` for operands of planned elements and layouts.

    ``A``, ``B``, ``C``, ``D``: arrays, which say their own and are what :meth:`run` takes if it is given none;
    ``element``, ``layout``: of all others, ``element_A`` and such of one; ``element_C="void"``: there is none;
    ``element_accumulator``: of the sums; ``kernel_cc``: 80 for kernels of sm_80 (``chip`` is the same).  Elements are
    names, or types of torch or numpy; layouts ``row`` and ``column``.  f32 is multiplied exactly, ``tf32`` (of f32
    arrays) by tensor cores.  Raises OpError.
    """

    def __init__(
        self, A: object = None, B: object = None, C: object = None, D: object = None, *, element: object = None,
        layout: object = None, element_A: object = None, element_B: object = None, element_C: object = None,
        element_D: object = None, layout_A: object = None, layout_B: object = None, layout_C: object = None,
        layout_D: object = None, element_accumulator: object = None, element_compute: object = "f32",
        alpha: float = 1.0, beta: float = 0.0, chip: int | None = None, kernel_cc: int | None = None,
    ):  # fmt: skip
        a = _type("A", A, element_A, element, layout_A, layout)
        b = _type("B", B, element_B, element, layout_B, layout)
        void = element_C == "void"
        given = C is not None or element_C is not None or layout_C is not None
        c = None
        if not void and (given or (element is not None and layout is not None)):
            usual = element if element is not None else _RESULTS.get(a.element, a.element)
            c = _type("C", C, element_C, usual, layout_C, layout if layout is not None else "row")
        usual = c.element if c is not None else element if element is not None else _RESULTS.get(a.element, a.element)
        d = _type("D", D, element_D, usual, layout_D, c.layout if c is not None else layout or "row")
        d = d._replace(element="f32") if d.element == "tf32" else d
        c = c._replace(element="f32") if c is not None and c.element == "tf32" else c
        kinds = Kinds(a, b, None if void else c or d, d)
        super().__init__((A, B, C, D), kinds, element_accumulator, element_compute, alpha, beta, chip, kernel_cc)

    def _check(self) -> None:
        """Raise OpError for what there is no kernel for."""
        super()._check()
        if self._opclass is OpcodeClass.TensorOp and self.chip >= 90:
            of_hopper(self.asked())

    # --------------------------------------------------------------------------------------------------- operations

    def _check_tile(self, td: TileDescription) -> None:
        self._make(td)

    def _make(self, td: TileDescription, alignments: Sequence[int | None] = (None,) * 3) -> GemmOperationUniversal:
        """Return the operation of a tile.  Raises UnsupportedError."""
        a, b, c, d = self.kinds
        kinds = ((a, alignments[0]), (b, alignments[1]), (c or Type("void", d.layout), alignments[2]))
        A, B, C = (TensorDescription(t.element, t.layout, n or 0) for t, n in kinds)
        made = GemmOperationUniversal(
            self.chip, td, A, B, C, self._functor(), self._swizzle, self._known_visitor(),
            D=TensorDescription(d.element, d.layout),
        )  # fmt: skip
        made.saved = self.saved
        return made

    def operation_for(self, x: Operands) -> GemmOperationUniversal:
        """Return the operation that computes a call."""
        td = self._tile or chosen(x, self.asked(batch=len(x.d.shape) == 3), **self.where())
        return self.operation_of(td)

    def operation_of(self, td: TileDescription) -> GemmOperationUniversal:
        """Return the operation of a tile, made once."""
        key = (td.kernel or td, None if self._traced is None else self._traced.key)
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = self._make(td)
        return found

    def tile_descriptions(self, problem: Sequence[int] | None = None) -> Sequence[TileDescription]:
        """Return all tiles that there are kernels for, the best for a problem (M, N, K) first, or for 4096 each.

        Nothing is compiled.
        """
        return tiles_of(self.asked(), tuple(problem or _TYPICAL), **self.where())

    def construct(
        self, tile_description: TileDescription | Mapping[str, object] | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None,
    ) -> GemmOperationUniversal:  # fmt: skip
        """Return an operation of a tile, by default that of the plan, or the best for 4096 each; not compiled.  Of a
        dict it is the latter with these fields changed.

        ``alignment_A`` and so on: elements of which addresses and rows are multiples, at most 16 bytes, which is what
        they are by default; fewer take a kernel without TMA.  Raises UnsupportedError.
        """
        alignments = (alignment_A, alignment_B, alignment_C)
        usual = self._tile or self._usual(alignments)
        td = usual.replace(tile_description) if isinstance(tile_description, Mapping) else tile_description or usual
        return self._make(td, alignments)

    def _usual(self, alignments: Sequence[int | None]) -> TileDescription:
        from cute_dialect.op.elements import SIZES
        from cute_dialect.op.plans.configure import ampere_tiles

        a, b, c, d = self.kinds
        types = (a.element, b.element, (c or d).element)
        whole = all(n is None or n * SIZES[e] >= 16 for n, e in zip(alignments, types))
        if whole or self._opclass is OpcodeClass.Simt or self.chip < 90:
            return self.tile_descriptions()[0]
        return ampere_tiles(self.asked())[0]

    def compile(
        self, tile_description: TileDescription | Mapping[str, object] | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None, *, print_module: bool = False,
    ) -> GemmOperationUniversal:  # fmt: skip
        """Return the operation of :meth:`construct`, compiled for the plan's alpha and beta; :meth:`run` then takes it.

        ``print_module``: print its file.
        """
        operation = self.construct(tile_description, alignment_A, alignment_B, alignment_C)
        beta = 0.0 if self.kinds.c is None else self._beta
        if print_module:
            print(operation.ir())
        operation.compile(self._alpha, beta)
        self._tile = operation.tile_description
        key = self._tile.kernel or self._tile, None if self._traced is None else self._traced.key
        self._operations = {key: operation}
        self._known.clear()
        return operation

    # -------------------------------------------------------------------------------------------------------- calls

    def _given(
        self, call: str, A: object, B: object, C: object = None, D: object = None
    ) -> tuple[object, object, object, object]:  # fmt: skip
        """Return the arrays of a call, those of the plan where it has none.  Raises LayoutError without A or B."""
        found = self._arrays(A, B, C, D)
        for name, array in zip("AB", found):
            if array is None:
                raise LayoutError(f"{call}: expected {name}, as the plan has none")
        return found

    def _call(self, call: str, *given: Any) -> Arguments:
        """Return the arguments of a call, checked, with the operation that computes it; see :meth:`_arguments`."""
        return self._served(call, lambda plan: plan._arguments(call, *given))

    def _arguments(
        self, call: str, A: object, B: object, C: object, D: object, alpha: float | None, beta: float | None,
        bias: object, stream: object, options: CallOptions, split_k: object = None,
        visitor_args: Mapping[str, object] | None = None,
    ) -> Arguments:  # fmt: skip
        """Return the arguments of a call, checked, with the operation that computes it."""
        a, b, c, d = self._given(call, A, B, C, D)
        split = Split.of(split_k)
        if is_of_sums(self._visitor):
            if is_several(a):
                raise EpilogueError(f"{call}: expected single arrays with a traced epilogue, got lists of matrices")
            found = self._visit(
                call, a, b, d, {"C": c, "alpha": alpha, "beta": beta, "bias": bias}, visitor_args, options
            )
            x = folded(found.operands, by_row=found.bound.graph.by_row)
            return Arguments(self.operation_for(x), x, found.D, stream, options, split, call, found.bound.results)
        if visitor_args:
            raise EpilogueError(f"{call}: expected no visitor_args of a function, got {', '.join(visitor_args)}")
        alpha = self._alpha if alpha is None else number("alpha", alpha)
        beta = self._beta if beta is None else number("beta", beta)
        if is_several(a):
            return matrices_of(self, call, a, b, c, d, alpha, beta, bias, stream, options, split)
        x, d = check(
            call, self.kinds, a, b, c, d, alpha=alpha, beta=beta, bias=bias, on_cpu=on_the_cpu(options)
        )  # fmt: skip
        x = folded(x, by_row=self._visitor is not None)
        return Arguments(self.operation_for(x), x, d, stream, options, split, call)

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
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, bias: object = None, visitor_args: Mapping[str, object] | None = None,
        stream: object = None, split_k: object = None, **options: Unpack[CallOptions],
    ) -> Arguments:  # fmt: skip
        """Return the checked arguments of :meth:`run`, and the operation that computes them; nothing is compiled."""
        return self._call("Gemm.arguments", A, B, C, D, alpha, beta, bias, stream, options, split_k, visitor_args)

    def run(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, sync: bool = True, print_module: bool = False, bias: object = None,
        visitor_args: Mapping[str, object] | None = None, stream: object = None, split_k: object = None,
        **options: Unpack[CallOptions],
    ) -> Arguments:  # fmt: skip
        """Compute ``D``, made if it is not given, and return the arguments: ``.D``, ``.sync()``.

        ``C`` is read where ``beta`` is not 0; ``bias``: (N,), a value a column, or (M, 1), a value a row; ``sync``:
        wait for the result; ``visitor_args``: arrays and numbers of a traced ``epilogue_visitor`` by name, and memory
        for its results (C, alpha, beta and bias are those of the call where they are not there); ``split_k``: parts of
        K, a number or (mode, number), mode ``serial`` (blocks share a tile), ``parallel`` (a second kernel adds the
        parts up) or ``stream``; ``stream``; ``options``: ``device="cpu"`` for the interpreter, and its own
        (``checks``).
        Batches are arrays of rank 3; A or B may be one for all.  Lists of matrices are equal products, of one launch.
        Raises OpError before anything is written.
        """
        a, b, c, d = self._arrays(A, B, C, D)
        usual = not (options or print_module or self._visitor or visitor_args) and stream is None and split_k is None
        factors = self._alpha if alpha is None else alpha, self._beta if beta is None else beta
        found = again(self, self._known, a, b, c, d, *factors, bias) if usual else None
        if found is None:
            found = self._call("Gemm.run", A, B, C, D, alpha, beta, bias, stream, options, split_k, visitor_args)
            if print_module:
                print(found.operation.ir())
            found.launch()
            self._record(found)
            if usual and not isinstance(found, Matrices):
                remember(self._known, found, a, b, c, d, bias)
        self._last = found
        if sync:
            found.sync()
        return found

    # ------------------------------------------------------------------------------------------------------------ saved

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan of what :meth:`settings` told."""
        return cls(**types_of(settings), kernel_cc=settings["kernel_cc"]).restored(settings)

    @classmethod
    def of_operation(cls, operation: GemmOperationUniversal, alpha: float = 1.0, beta: float = 0.0) -> Self:
        """Return a plan whose calls an operation computes, with such numbers where a call gives none."""
        (a, b, c, d), functor, td = operation.kinds, operation.epilogue_functor, operation.tile_description
        sums, i = functor.element_accumulator, td.math_instruction
        plan = cls(
            element_A=a.element, element_B=b.element, element_C="void" if c is None else c.element,
            element_D=d.element, layout_A=a.layout, layout_B=b.layout, layout_C=None if c is None else c.layout,
            layout_D=d.layout, element_accumulator=sums, alpha=alpha, beta=beta,
            kernel_cc=operation.chip if operation.needs_hopper or sums == "f16" else 80,
        )  # fmt: skip
        if i is not None:
            plan._opclass, plan._math_operation = OpcodeClass(i.opcode_class), MathOperation(i.math_operation)
        plan._activation, plan._clamp, plan._swizzle = functor.activation, functor.clamp, operation.swizzling_functor
        visitor = operation.visitor
        plan._visitor, plan._traced = None if visitor is True else visitor, operation.traced
        plan._tile = td
        return plan

    def settings(self) -> Fields:
        """Return what makes the plan again, as data."""
        a, b, c, d = self.kinds
        return {**super().settings(), "layouts": [a.layout, b.layout, (c or d).layout, d.layout]}

    def bind(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, bias: object = None, split_k: object = None,
        visitor_args: Mapping[str, object] | None = None,
    ) -> Callable[..., None]:  # fmt: skip
        """Return ``call``, checked and prepared: ``call()`` or ``call(stream)`` does no more than the driver's launch.

        Arrays are on a GPU.  Raises OpError.
        """
        return self._call("Gemm.bind", A, B, C, D, alpha, beta, bias, None, {}, split_k, visitor_args).bind()

    def reference(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, bias: object = None, visitor_args: Mapping[str, object] | None = None,
    ) -> Any:  # fmt: skip
        """Return what :meth:`run` computes, in numpy and f64, not rounded to D; D is not needed.

        Of a traced epilogue it is what its function returns; ``visitor_args``: by default those of the last run.
        """
        a, b, c, _ = self._given("Gemm.reference", A, B, C, D)
        if is_of_sums(self._visitor):
            args = self._visited if visitor_args is None and self._visited is not None else visitor_args
            others = {"C": c, "alpha": alpha, "beta": beta, "bias": bias}
            return visited_reference(a, b, self._visitor, arguments_for("Gemm.reference", self._visitor, args, others))
        alpha, beta = self._alpha if alpha is None else alpha, self._beta if beta is None else beta
        hook = cast("Hook | None", self._visitor)
        return reference(a, b, c, alpha, beta, bias, self._activation, hook)

    # ------------------------------------------------------------------------------------------------------- reading

    def tune(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, bias: object = None, budget: float = 30.0, save: bool = True,
        say: Callable[[str], None] | None = None,
    ) -> Tuned:  # fmt: skip
        """Measure kernels on tensors of torch on a GPU, and let plans and calls like this one take the fastest from now
        on; nothing is written into ``D``.  ``budget``, ``save``, ``say``: as of :func:`cute_dialect.op.tune`.
        """
        from cute_dialect.op.choosing.tuning import check_place
        from cute_dialect.op.plans.tuning import tuned_plan

        a, b, _, _ = self._given("Gemm.tune", A, B)
        check_place(a, b)
        taken = self._arguments("Gemm.tune", A, B, C, D, alpha, beta, bias, None, {})
        found = tuned_plan(self, taken, budget, save, say)
        self._reset()
        return found

    def explain(
        self, A: object = None, B: object = None, *, others: int = 4, split_k: object = None
    ) -> Explanation:  # fmt: skip
        """Return which kernel computes a product of such matrices, or of such shapes, and why; see ``op.explain``.

        ``split_k``: as of :meth:`run`; it is told how many parts of K there are.
        """
        from cute_dialect.op.plans.report import explained

        a, b, _, _ = self._given("Gemm.explain", A, B)
        return explained(self, a, b, others, Split.of(split_k))

    def _shown(self) -> Variant:
        """Return the kernel of the last run, or of :meth:`construct`: of a traced epilogue its arrays say more."""
        last = self._last
        if last is None or (self.saved is None and last.operation not in self._operations.values()):
            return self.construct().first()
        return last.sources()[0] if self._traced is not None or self.saved is not None else last.operation.first()

    def __repr__(self) -> str:
        a, b, c, d = self.kinds
        return f"<Gemm A {a}; B {b}; C {c or 'none'}; D {d}>"


def types_of(settings: Fields) -> dict[str, Any]:
    """Return the arguments of a plan that say types and numbers, of its :meth:`Gemm.settings`."""
    names = ("element_accumulator", "alpha", "beta", *[f"element_{n}" for n in "ABCD"])
    layouts = {f"layout_{n}": layout for n, layout in zip("ABCD", settings["layouts"])}
    if settings["element_C"] == "void":
        layouts["layout_C"] = None
    return {n: settings[n] for n in names} | layouts


def _type(
    name: str, array: object, element: object, all_elements: object, layout: object, all_layouts: object
) -> Type:  # fmt: skip
    """Return the type of an operand: of its array, else what is said of it, else of all.  Raises DtypeError,
    LayoutError.
    """
    if array is not None:
        for what, value, error in (("element", element, DtypeError), ("layout", layout, LayoutError)):
            if value is not None:
                raise error(f"Gemm: expected {name} or {what}_{name}, got both")
        found = found_type("Gemm", name, read("Gemm", name, array))
        # f32 arrays are multiplied as tf32 where that is said.
        said = None if all_elements is None else element_name(all_elements)
        return found._replace(element="tf32") if (said, found.element) == ("tf32", "f32") else found
    element, layout = all_elements if element is None else element, all_layouts if layout is None else layout
    if element is None:
        raise DtypeError(f"Gemm: expected one of {name}, element_{name}, element")
    if layout is None:
        raise LayoutError(f"Gemm: expected one of {name}, layout_{name}, layout")
    return Type(element_name(element, f"Gemm: element_{name}"), layout_name(layout, f"Gemm: layout_{name}"))
