"""Plan of a GEMM: types, layouts and the epilogue are fixed, then it is run, explained, compiled and saved.

    plan = op.Gemm(element="f16", layout="row")
    arguments = plan.run(a, b, c, d)                     # D = alpha * A B + beta * C
    plan.run(a, b, c, d, sync=False).sync()
    print(plan.explain(a, b))

Operands are never copied, except that f32 may be split into tf32 parts.  If a kernel cannot read an operand in place,
the error names a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.op.epilogue.combination import combined, is_per_matrix
from cute_dialect.op.errors import EpilogueError, ShapeError
from cute_dialect.op.execute.arguments import Arguments, PointerArrayArguments, on_the_cpu
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.saved import Fields
from cute_dialect.op.plans.base import replayed
from cute_dialect.op.plans.matrix_plan import MatrixPlan, types_of
from cute_dialect.op.plans.reference import as_f64, reference, visited_reference
from cute_dialect.op.plans.report import explained
from cute_dialect.op.problems.gemm import planned_operands
from cute_dialect.op.problems.operands import folded
from cute_dialect.op.problems.pointer_arrays import as_batch, is_several, products_of
from cute_dialect.op.pycutlass.arguments import Visited, arguments_for, is_of_sums, visited
from cute_dialect.op.pycutlass.functors import number
from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
from cute_dialect.op.select.descriptions import MathOperation, OpcodeClass, Split
from cute_dialect.op.tuning import check_place, tuned_plan

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from cute_dialect.kernels.epilogue.combination import Hook
    from cute_dialect.op.explanations.gemm import Explanation
    from cute_dialect.op.signature_types import Factor
    from cute_dialect.op.tuning import Tuned
    from cute_dialect.runtime.launch import CallOptions


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
        kernel_cc: 80 for sm_80 kernels; ``chip`` is the same.

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
            found = self._call("Gemm.run", A, B, C, D, alpha, beta, bias, stream, options, split_k, visitor_args)
            if print_module:
                print(found.operation.ir())
            return self._ran(found)

        def replay(done: Any) -> Arguments:
            return replayed(Arguments, lambda: self.arguments(a, b, c, done, *factors, bias=bias), done)

        given = {"A": a, "B": b, "C": c, "D": d, "bias": bias}
        found = self._cached_run(() if usual else None, factors, given, launch, replay)
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
