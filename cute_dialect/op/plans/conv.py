"""Convolution plan: kind, types and epilogue are set once, for many runs.

::

    plan = op.Conv2d(kind="fprop", element="f16")
    arguments = plan.run(x, f, padding=1)                # x (N, H, W, C), f (K, R, S, C / group)
    plan.run(x, f, c, d, 1.0, 0.5, stride=2, padding=1, sync=False).sync()
    print(plan.explain(x, f, padding=1))

Operands are never copied.  A plan raises an error for arrays that the kernel cannot read in place.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from cute_dialect.kernels.common.elements import BITS, FACTORS
from cute_dialect.kernels.conv.unfold import UnfoldConfig
from cute_dialect.kernels.epilogue.reductions import CombineConfig, ReduceConfig
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.op.arrays.dtypes import checked_element
from cute_dialect.op.arrays.operand_views import lines_suit
from cute_dialect.op.conv.choice import ConvRequest as ConvAsked
from cute_dialect.op.conv.choice import chosen_with_time, kernels_for, served
from cute_dialect.op.errors import AlignmentError, DtypeError, EpilogueError, LayoutError, UnsupportedError
from cute_dialect.op.execute.arguments import on_the_cpu
from cute_dialect.op.execute.kernels import Variant
from cute_dialect.op.execute.saved import Fields
from cute_dialect.op.keywords import checks_keywords
from cute_dialect.op.plans.base import Settings, replayed
from cute_dialect.op.plans.reference import conv_reference
from cute_dialect.op.plans.report import explained_conv
from cute_dialect.op.problems.conv import ConvOptions, Geometry, check, geometry
from cute_dialect.op.problems.operands import Kinds, Operands, Type, read
from cute_dialect.op.pycutlass.arguments import arguments_for, is_of_sums
from cute_dialect.op.pycutlass.conv import (
    LAYOUTS,
    Conv2dOperation,
    Conv2dProblemSize,
    ConvKind,
    IteratorAlgorithm,
    StrideSupport,
    called,
)
from cute_dialect.op.pycutlass.conv_arguments import ConvArguments, matrices_of, visited
from cute_dialect.op.pycutlass.functors import number
from cute_dialect.op.select.backends import WGMMA
from cute_dialect.op.select.configurations import FAST, ampere_tiles, described
from cute_dialect.op.select.cost_model import costs_of
from cute_dialect.op.select.descriptions import OpcodeClass, Split, TensorDescription, TileDescription, known
from cute_dialect.op.select.kernel_choice import choice_of
from cute_dialect.op.select.plan_tiles import chosen as chosen_product
from cute_dialect.op.select.plan_tiles import tiles_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from cute_dialect.op.explanations.conv import ConvExplanation
    from cute_dialect.runtime.launch import CallOptions

_RESULTS = {"f8E4M3FN": "bf16", "f8E5M2": "bf16", "i8": "i32", "ui8": "i32", "tf32": "f32"}
_TYPICAL = (32, 56, 56, 64), (64, 3, 3, 64)


class Conv2d(Settings):
    """A plan of ``D = activation(alpha * conv(A, B) + beta * C)``, or of a gradient of a convolution.

    Args:
        kind: ``fprop``, ``dgrad`` or ``wgrad``, which defines A, B and D
            (:class:`~cute_dialect.op.pycutlass.conv.ConvKind`).
        A, B, C, D: arrays that define element types, and are the defaults of :meth:`run`.
        element: type of the operands without an array; ``element_A`` and others set that of one operand.
        element_C: ``"void"`` for no C.
        group: number of groups of channels and filters.
        mode: ``cross_correlation`` or ``convolution``.
        data_format: ``NHWC``, or ``NCHW`` for shapes with channels first; memory is channels-last with both.

    Other arguments are those of :class:`~cute_dialect.op.plans.gemm.Gemm`.  Raises OpError.
    """

    call: ClassVar[str] = "Conv2d"

    @checks_keywords
    def __init__(
        self, kind: str = "fprop", A: object = None, B: object = None, C: object = None, D: object = None, *,
        element: object = None, element_A: object = None, element_B: object = None, element_C: object = None,
        element_D: object = None, element_accumulator: object = None, element_compute: object = "f32",
        alpha: float = 1.0, beta: float = 0.0, group: int = 1, mode: str = "cross_correlation",
        data_format: str = "NHWC", chip: int | None = None, kernel_cc: int | None = None,
    ):  # fmt: skip
        self.kind = str(known(ConvKind, kind, "kind"))
        self.group, self.mode, self.data_format = group, mode, data_format
        a = _element("A", A, element_A, element)
        b = _element("B", B, element_B, element)
        usual = element if element is not None else _RESULTS.get(a, a)
        void = element_C == "void"
        c = None if void else _element("C", C, element_C, usual)
        d = _element("D", D, element_D, usual if c is None else c)
        c, d = ("f32" if x == "tf32" else x for x in (c, d))
        of_a, of_b = LAYOUTS[self.kind]
        result = Type(cast(str, d), "row")
        kinds = Kinds(Type(a, of_a), Type(b, of_b), None if c is None else Type(c, "row"), result)
        self._algorithm: IteratorAlgorithm | None = None
        super().__init__((A, B, C, D), kinds, element_accumulator, element_compute, alpha, beta, chip, kernel_cc)

    @property
    def iterator_algorithm(self) -> str | None:
        """The :class:`~cute_dialect.op.pycutlass.conv.IteratorAlgorithm`; None selects the best one."""
        return self._algorithm

    @iterator_algorithm.setter
    def iterator_algorithm(self, value: str | None) -> None:
        found = None if value is None else IteratorAlgorithm(known(IteratorAlgorithm, value, "iterator_algorithm"))
        if found in ("fixed_channels", "few_channels") and self.kind != "fprop":
            raise UnsupportedError(f"Conv2d: {found} does not support {self.kind}; use optimized or analytic")
        self._algorithm = found
        self._reset()

    def _check_tile(self, td: TileDescription) -> None:
        self._make(td, self._algorithm or IteratorAlgorithm.analytic)

    @staticmethod
    def output_size(
        input_size: Sequence[int], weight_size: Sequence[int], padding: object = 0, stride: object = 1,
        dilation: object = 1,
    ) -> tuple[int, ...]:  # fmt: skip
        """Return the shape of the result, (N, P, Q, K), for images (N, H, W, C) and filters (K, R, S, C / groups).

        >>> Conv2d.output_size((8, 56, 56, 64), (128, 3, 3, 64), 1, 2)
        (8, 28, 28, 128)
        """
        image, filters = tuple(input_size), tuple(weight_size)
        groups = image[-1] // max(1, filters[-1])
        return geometry("output_size", "fprop", image, filters, stride, padding, dilation, groups).result

    # ---------------------------------------------------------------------------------------------------- operations

    def _make(self, td: TileDescription, algorithm: str, problems: Sequence[Conv2dProblemSize] = ()) -> Conv2dOperation:
        """Return the operation of a tile.  Raises UnsupportedError."""
        a, b, c, d = self.kinds
        A, B = (TensorDescription(t.element, t.layout) for t in (a, b))
        C = TensorDescription("void" if c is None else c.element, "row")
        made = Conv2dOperation(
            self.kind, algorithm, self.chip, td, A, B, C, StrideSupport.strided, self._functor(), self._swizzle,
            self._known_visitor(), D=TensorDescription(d.element, "row"), problems=problems,
        )  # fmt: skip
        made.saved = self.saved
        return made

    def asked_of(self, g: Geometry, algorithm: str | None = None) -> ConvAsked | None:
        """Return the problem of a kernel with im2col loads; None if the plan's types and instructions have none."""
        asked = self.asked()
        element = asked.element
        if self._opclass is not OpcodeClass.TensorOp or not WGMMA.is_allowed(self.chip) or element not in FACTORS:
            return None
        if asked.math in FAST:
            return None
        width = 0
        if algorithm is not None and g.groups == 1:
            width = 1024 // BITS[element]
            while algorithm != IteratorAlgorithm.optimized and g.filter[-1] % width:
                width //= 2
        sums = asked.accumulator if asked.accumulator == "f16" else ""
        return ConvAsked(g, element, self.kinds.d.element, sums, width=width)

    def best_algorithm(self, g: Geometry, x: Operands | None = None) -> IteratorAlgorithm:
        """Return the default iterator algorithm: im2col loads if they support the call; ``x``: the operands."""
        asked, i = self.asked_of(g), None if self._tile is None else self._tile.math_instruction
        channels = (g.result if g.kind == "dgrad" else g.filter)[-1]
        if (
            asked is None
            or g.is_product
            or (i is not None and i.instruction_shape[0] != 64)
            or (x is not None and not all(lines_suit(v) for v in (x.a, x.b, x.d)))
            or any(n * BITS[e] % 128 for n, e in ((channels, asked.element), (g.output[-1], asked.output)))
            or (g.kind == "dgrad" and BITS[asked.element] != 16)  # that kernel needs a transposed filter
            or self._best(asked) is None
        ):
            return IteratorAlgorithm.analytic
        if g.groups > 1 or asked.channels * BITS[asked.element] == 1024:
            return IteratorAlgorithm.optimized
        return (
            IteratorAlgorithm.fixed_channels
            if channels == 128 // BITS[asked.element]
            else IteratorAlgorithm.few_channels
        )

    def way_of(self, g: Geometry, x: Operands) -> tuple[TileDescription, IteratorAlgorithm]:
        """Return the tile and the iterator algorithm for a call.  Raises UnsupportedError."""
        algorithm = self._algorithm or self.best_algorithm(g, x)
        if self._tile is not None:
            return self._tile, algorithm
        asked = None if algorithm == IteratorAlgorithm.analytic else self.asked_of(g, algorithm)
        if asked is None or asked.channels * BITS[asked.element] < 128:
            return self._of_columns(g, x), algorithm
        found = self._best(asked)
        if found is None:
            raise UnsupportedError(
                f"Conv2d: there is no kernel for {algorithm} of {asked.element} to {asked.output}, {g.kind}"
                + f" in {g.groups} groups" * (g.groups > 1)
                + "; use analytic"
            )
        return found, algorithm

    def _best(self, asked: ConvAsked) -> TileDescription | None:
        """Return the tile with im2col loads that is predicted to be the fastest."""
        where = self.where()
        found = chosen_with_time(asked, where["gpu"], where["sms"])
        return None if found is None else described(choice_of(found[1]), self.asked())

    def _of_columns(self, g: Geometry, x: Operands) -> TileDescription:
        """Return the tile for the GEMM of columns."""
        of, asked = matrices_of(g, x), self.asked(batch=g.groups > 1)
        try:
            with called("Conv2d"):
                return chosen_product(of, asked, **self.where(), call="Conv2d.run")
        except (LayoutError, AlignmentError):  # not contiguous along K, or misaligned: mma.sync kernels
            return ampere_tiles(asked)[0]

    def _operation(self, g: Geometry, x: Operands) -> Conv2dOperation:
        """Return the operation that computes a call."""
        return self.operation_of(*self.way_of(g, x))

    def operation_of(self, td: TileDescription, algorithm: IteratorAlgorithm) -> Conv2dOperation:
        """Return the operation of a tile, cached."""
        key = (td.kernel or td, algorithm, None if self._traced is None else self._traced.key)
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = self._make(td, algorithm)
        return found

    def tile_descriptions(self, problem: Conv2dProblemSize | None = None) -> Sequence[TileDescription]:
        """Return the tiles of all kernels, the fastest for a problem first.

        The kernels have im2col loads.  If there are none, or with the analytic algorithm, they are those of the GEMM
        of columns.  Nothing is compiled.
        """
        g = (problem or Conv2dProblemSize(*_TYPICAL, (1, 1, 1, 1))).geometry(self.kind, "Conv2d")
        asked, where = self.asked_of(g, self._algorithm), self.where()
        if asked is not None and self._algorithm != IteratorAlgorithm.analytic and served(asked):
            found = kernels_for(asked, costs_of(where["gpu"], where["sms"]))
            tiles = [described(choice_of(config), self.asked()) for _, config in found]
            if tiles:
                return tiles
        m, n, k = (problem or Conv2dProblemSize(*_TYPICAL, (1, 1, 1, 1))).implicit_gemm_size(self.kind)
        try:
            with called("Conv2d"):
                return tiles_of(self.asked(), (m, n, k), **where)
        except LayoutError:
            return ampere_tiles(self.asked())

    def construct(
        self, tile_description: TileDescription | None = None, *, problem_size: Conv2dProblemSize | None = None
    ) -> Conv2dOperation:
        """Return an operation, which is not compiled.

        Args:
            tile_description: default: the tile of the plan, or the fastest one for the problem.
            problem_size: default: a typical problem.

        Raises UnsupportedError.
        """
        problem = problem_size or Conv2dProblemSize(*_TYPICAL, (1, 1, 1, 1), groups=1)
        algorithm = self._algorithm or self.best_algorithm(problem.geometry(self.kind, "Conv2d"))
        td = tile_description or self._tile or self.tile_descriptions(problem)[0]
        i = td.math_instruction
        if i is not None and i.instruction_shape[0] != 64 and self._algorithm is None:
            algorithm = IteratorAlgorithm.analytic
        return self._make(td, algorithm, [problem_size] if problem_size is not None else [])

    def compile(
        self, tile_description: TileDescription | None = None, *, problem_size: Conv2dProblemSize | None = None,
        print_module: bool = False,
    ) -> Conv2dOperation:  # fmt: skip
        """Return the operation of :meth:`construct`, compiled; :meth:`run` then uses its tile.

        Args:
            problem_size: kernels with im2col loads are compiled for its padding, strides, dilation and taps; default:
                they are compiled at the first call.
            print_module: print the kernel's file.
        """
        operation = self.construct(tile_description, problem_size=problem_size)
        if print_module:
            print(operation.ir())
        operation.compile()
        self._tile, self._algorithm = operation.tile_description, operation.algorithm
        self._operations.clear()
        return operation

    # --------------------------------------------------------------------------------------------------------- calls

    def _how(self, stride: object, padding: object, dilation: object, size: object) -> ConvOptions:
        return ConvOptions(stride, padding, dilation, self.group, size, self.mode, self.data_format)

    def arguments(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, stride: object = 1, padding: object = 0, dilation: object = 1,
        size: object = None, bias: object = None, visitor_args: Mapping[str, object] | None = None,
        stream: object = None, split_k: object = None, **options: Unpack[CallOptions],
    ) -> ConvArguments:  # fmt: skip
        """Return the checked arguments of :meth:`run` with their operation; nothing is compiled."""
        how = self._how(stride, padding, dilation, size)
        numbers = alpha, beta
        return self._call("Conv2d.arguments", (A, B, C, D), numbers, how, bias, visitor_args, stream, split_k, options)

    def _call(self, call: str, *given: Any) -> ConvArguments:
        """Return the checked arguments of a call; see :meth:`_arguments`."""
        return self._served(call, lambda plan: plan._arguments(call, *given))

    def _arguments(
        self, call: str, arrays: tuple[object, object, object, object], numbers: tuple[float | None, float | None],
        how: ConvOptions, bias: object, visitor_args: Mapping[str, object] | None, stream: object, split_k: object,
        options: CallOptions,
    ) -> ConvArguments:  # fmt: skip
        a, b, c, d = self._arrays(*arrays)
        split, on_cpu = Split.of(split_k), on_the_cpu(options)
        alpha, beta = numbers
        if is_of_sums(self._visitor):
            args = arguments_for(
                call, self._visitor, visitor_args, {"C": c, "alpha": alpha, "beta": beta, "bias": bias}
            )
            found, made = visited(call, self.kind, self.kinds, a, b, d, self._visitor, args, how, on_cpu)
            self._traced, self._visited = made.traced, args
            operation = self._operation(found.geometry, found.operands)
            return ConvArguments(operation, found, stream, options, split, call, made.results)
        if visitor_args:
            raise EpilogueError(
                f"{call}: visitor_args has {', '.join(visitor_args)}, but the plan has no traced epilogue; omit it"
            )
        alpha = self._alpha if alpha is None else number("alpha", alpha)
        beta = self._beta if beta is None else number("beta", beta)
        found = check(call, self.kind, self.kinds, (a, b, c, d), how, alpha=alpha, beta=beta, bias=bias, on_cpu=on_cpu)
        return ConvArguments(self._operation(found.geometry, found.operands), found, stream, options, split, call)

    def run(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, stride: object = 1, padding: object = 0, dilation: object = 1,
        size: object = None, sync: bool = True, print_module: bool = False, bias: object = None,
        visitor_args: Mapping[str, object] | None = None, stream: object = None, split_k: object = None,
        **options: Unpack[CallOptions],
    ) -> ConvArguments:  # fmt: skip
        """Compute ``D`` and return the arguments: ``.D``, ``.sync()``.

        Args:
            C: read if ``beta`` is not 0; like D, or one value per channel.
            D: array for the result; default: a new array.
            stride, padding, dilation: as in :func:`cute_dialect.op.conv2d`.
            size: shape of D if it is a gradient and no array; with stride 1 the shape of an image follows from the
                operands.
            bias: (K,), or (C,) for dgrad.
            split_k: number of split-K slices, or (mode, number).  With ``serial`` blocks accumulate one tile, with
                ``parallel`` a second kernel adds the slices; columns also support ``stream``.

        Other arguments are those of :meth:`cute_dialect.op.plans.gemm.Gemm.run`.  Raises OpError before anything is
        written.
        """
        how = self._how(stride, padding, dilation, size)
        numbers = alpha, beta

        def launch() -> ConvArguments:
            function = {"fprop": "conv2d", "dgrad": "conv2d_input", "wgrad": "conv2d_weight"}[self.kind]
            self._refuse_gradients(function, (a, b, c, d, bias, *(visitor_args or {}).values()))
            found = self._call("Conv2d.run", (A, B, C, D), numbers, how, bias, visitor_args, stream, split_k, options)
            found.launch()
            self._record(found)
            return found

        def replay(done: Any) -> ConvArguments:
            more = factors, how, bias, None, None, None, {}
            return replayed(ConvArguments, lambda: self._call("Conv2d.run", (a, b, c, done), *more), done)

        a, b, c, d = self._arrays(A, B, C, D)
        factors = self._factors(alpha, beta)
        usual = not (options or self._visitor or visitor_args) and stream is None and split_k is None
        given, key = (a, b, d, bias), (self.kind, how) if usual else None
        found = self._cached_run(key, factors, c, given, launch, replay)
        self._last = found
        if print_module:
            print(self.ir())
        if sync:
            found.sync()
        return found

    def bind(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, stride: object = 1, padding: object = 0, dilation: object = 1,
        size: object = None, bias: object = None, visitor_args: Mapping[str, object] | None = None,
        split_k: object = None,
    ) -> Callable[..., None]:  # fmt: skip
        """Return a checked and prepared call: ``call()`` or ``call(stream)`` only launches.

        Arrays must be on a GPU.  Raises OpError.
        """
        how, numbers = self._how(stride, padding, dilation, size), (alpha, beta)
        return self._call("Conv2d.bind", (A, B, C, D), numbers, how, bias, visitor_args, None, split_k, {}).bind()

    def reference(
        self, A: object = None, B: object = None, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, stride: object = 1, padding: object = 0, dilation: object = 1,
        size: object = None, bias: object = None, visitor_args: Mapping[str, object] | None = None,
    ) -> Any:  # fmt: skip
        """Return the result of :meth:`run`, computed with numpy in f64 and not rounded; only the shape of D is used."""
        a, b, c, d = self._arrays(A, B, C, D)
        visitor = self._visitor if is_of_sums(self._visitor) else None
        args: Mapping[str, Any] = {}
        if visitor is not None:
            said = self._visited if visitor_args is None and self._visited is not None else visitor_args
            others = {"C": c, "alpha": alpha, "beta": beta, "bias": bias}
            args = arguments_for("Conv2d.reference", visitor, said, others)
        elif self._visitor is not None:
            raise UnsupportedError(
                "Conv2d.reference: numpy cannot compute an epilogue in the kernel language; use a traced epilogue"
            )
        numbers = self._alpha if alpha is None else alpha, self._beta if beta is None else beta
        how = self._how(stride, padding, dilation, size)
        return conv_reference(self.kind, (a, b, c, d), numbers, how, bias, self._activation, visitor, args)

    # --------------------------------------------------------------------------------------------------------- saved

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan with these settings, as returned by :meth:`settings`."""
        names = ("element_accumulator", "alpha", "beta", "kernel_cc", "kind", "group", "mode", "data_format")
        elements = {name: settings[name] for name in [f"element_{n}" for n in "ABCD"]}
        return cls(**elements, **{n: settings[n] for n in names}).restored(settings)

    def settings(self) -> Fields:
        """Return the settings of the plan as data."""
        algorithm = None if self._algorithm is None else str(self._algorithm)
        more = {"kind": self.kind, "group": self.group, "mode": str(self.mode), "data_format": self.data_format}
        return {**super().settings(), **more, "iterator_algorithm": algorithm}

    def _take(self, choice: Fields) -> None:
        super()._take(choice)
        algorithm = choice["algorithm"]
        self._algorithm = None if algorithm is None else IteratorAlgorithm(algorithm)

    # ------------------------------------------------------------------------------------------------------- reading

    def explain(
        self, A: object = None, B: object = None, *, stride: object = 1, padding: object = 0, dilation: object = 1,
        size: object = None, split_k: object = None,
    ) -> ConvExplanation:  # fmt: skip
        """Return the kernel for a convolution of these arrays or shapes, and the reason; see ``op.explain``."""
        a, b, _, d = self._arrays(A, B, None, None)
        return explained_conv(self, a, b, d, self._how(stride, padding, dilation, size), Split.of(split_k))

    def _shown(self) -> Variant:
        """Return the GEMM kernel of the last run.  Raises UnsupportedError if nothing was run."""
        launched = [] if self._last is None else self._last.sources()
        others = UnfoldConfig | PartsConfig | CombineConfig | ReduceConfig
        found = [v for v in launched if not isinstance(v.configured, others)]
        if not found:
            raise UnsupportedError("Conv2d: the kernel depends on the arrays; call run first")
        return found[0]

    def __repr__(self) -> str:
        a, b, c, d = (None if x is None else x.element for x in self.kinds)
        return f"<{type(self).__name__} {self.kind} A {a}; B {b}; C {c or 'none'}; D {d}>"


class Conv2dFprop(Conv2d):
    """A plan of convolutions: A (N, H, W, C), B (K, R, S, C / group), D (N, P, Q, K)."""

    def __init__(self, *arrays: object, **more: object):
        super().__init__("fprop", *arrays, **more)


class Conv2dDgrad(Conv2d):
    """A plan of gradients of images: A (N, P, Q, K), B (K, R, S, C / group), D (N, H, W, C)."""

    def __init__(self, *arrays: object, **more: object):
        super().__init__("dgrad", *arrays, **more)


class Conv2dWgrad(Conv2d):
    """A plan of gradients of filters: A (N, P, Q, K), B (N, H, W, C), D (K, R, S, C / group)."""

    def __init__(self, *arrays: object, **more: object):
        super().__init__("wgrad", *arrays, **more)


def _element(name: str, array: object, element: object, all_elements: object) -> str:
    """Return the type of an operand: of its array, its own setting, or the common setting.  Raises DtypeError."""
    if array is not None:
        if element is not None:
            raise DtypeError(f"Conv2d: {name} and element_{name} are both given; pass one of them")
        found = read("Conv2d", name, array).dtype
        said = None if all_elements is None else checked_element(all_elements)
        return "tf32" if (said, found) == ("tf32", "f32") else found
    element = all_elements if element is None else element
    if element is None:
        raise DtypeError(f"Conv2d: the type of {name} is unknown; pass {name}, element_{name} or element")
    return checked_element(element, f"Conv2d: element_{name}")
