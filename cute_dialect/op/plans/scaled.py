"""Plan of a GEMM of 8-bit floats with scales: types and recipe are fixed, then it is run, explained, compiled and
saved.

    plan = op.ScaledGemm(element="f8E4M3FN", recipe="block", element_D="bf16")
    arguments = plan.run(a, b, scale_a, scale_b)         # D = (scale_a * A) (scale_b * B)
    call = plan.bind(a, b, scale_a, scale_b, d=d)        # call(): the driver's launch and nothing else
    print(plan.explain(a, b))

Scales of a whole matrix or per row multiply the accumulator in the epilogue.  Block scales multiply the partial
accumulator of each 128 steps of K in the main loop.  Operands are never copied: an operand that a kernel cannot read
in place is an error.
"""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

from cute_dialect.kernels.common.elements import outputs_of
from cute_dialect.kernels.gemm.tcgen05_scales import FP4
from cute_dialect.op.arrays.dtypes import element_name, listed
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced
from cute_dialect.op.errors import (
    AlignmentError,
    DtypeError,
    EpilogueError,
    LayoutError,
    ShapeError,
    UnsupportedError,
    named,
)
from cute_dialect.op.execute.arguments import Arguments, on_the_cpu
from cute_dialect.op.execute.saved import Fields
from cute_dialect.op.keywords import checks_keywords
from cute_dialect.op.plans.base import replayed
from cute_dialect.op.plans.gemm import MatrixPlan, types_of
from cute_dialect.op.plans.reference import as_f64, reference
from cute_dialect.op.plans.report import explained
from cute_dialect.op.problems.block_scaled import (
    PACKED,
    WIDTHS,
    as_matrix,
    bytes_of,
    check_block_scaled,
    check_signs,
    levels_of,
    scaled_values,
)
from cute_dialect.op.problems.gemm import planned_operands
from cute_dialect.op.problems.operands import Operands, Type, check_one_device, check_overlap, read
from cute_dialect.op.problems.scaled import EXPONENTS, RECIPES, as_bytes, check_scaled, scales_epilogue
from cute_dialect.op.pycutlass.arguments import visited
from cute_dialect.op.pycutlass.functors import EpilogueFunctor, number
from cute_dialect.op.select.backends import WGMMA, unmeasured
from cute_dialect.op.select.configurations import KernelRequest, configured, described
from cute_dialect.op.select.descriptions import ALONE, OpcodeClass, Swizzle, TileDescription
from cute_dialect.op.select.kernel_choice import OF_BLOCKS, Choice
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from numpy import float64
    from numpy.typing import NDArray

    from cute_dialect.kernels.epilogue.combination import Hook
    from cute_dialect.op.explanations.gemm import Explanation
    from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
    from cute_dialect.op.signature_types import Array, Factor
    from cute_dialect.runtime.launch import CallOptions

_BLOCK = 128


def _as_bytes(element: object) -> object:
    """Return the element type of arrays of 4-bit floats, bytes of two; other types are returned unchanged."""
    return "ui8" if element_name(element) in (*PACKED, FP4) else element


class _PackedType(Type):
    """The layout of 4-bit floats, of which a byte holds two."""

    def __str__(self) -> str:
        return f"{FP4}, {self.layout}-major"


class ScaledGemm(MatrixPlan):
    """``D = activation(alpha * (scale_a * A) (scale_b * B) + beta * C + bias) * scale_out`` of 8-bit and 4-bit floats.

    A and B are contiguous along K, D along rows unless ``layout_D`` is ``column``. The MMAs of sm_100 apply the scales
    of ``block1x32`` (8-bit floats, and float4_e2m1fn_x2) and of ``block1x16`` (float4_e2m1fn_x2).

    Args:
        A, B, C, D: arrays, which determine their types, and are the defaults of :meth:`run`.
        recipe: ``tensor``, ``row``, ``block`` or ``block1x128``, or a pair for A and B, as in
            :func:`cute_dialect.op.scaled_mm`; with ``kernel_cc`` 100, 103 or 110 ``block1x32`` or ``block1x16``.
        fast: True to accumulate all of K in tensor cores, which keep 14 bits; not with block scales.
        element_scale: by default ``f32``; also ``float8_e8m0fnu`` with scales of blocks of 128. ``block1x32`` and
            ``block1x16`` have one type each, ``float8_e8m0fnu`` and ``f8E4M3FN``.
        element: element of A and B.
        element_A, …, layout_D: element and layout of one operand; D is bf16 by default.
        alpha, beta, chip, kernel_cc: as in :class:`~cute_dialect.op.plans.gemm.Gemm`.

    Raises:
        OpError: if there is no such kernel.

    >>> plan = ScaledGemm(element="f8E4M3FN", recipe="block")
    >>> plan, plan.explain((4096, 7168), (7168, 2112)).choice.config.scaled
    (<ScaledGemm block; A f8E4M3FN, row-major; B f8E4M3FN, column-major; D bf16, row-major>, True)
    """

    call: ClassVar[str] = "ScaledGemm"

    @checks_keywords
    def __init__(
        self, A: object = None, B: object = None, C: object = None, D: object = None, *,
        recipe: str | Sequence[str], fast: bool = False, element_scale: object = None, element: object = None,
        element_A: object = None, element_B: object = None, element_C: object = None, element_D: object = None,
        layout_A: object = None, layout_B: object = None, layout_C: object = None, layout_D: object = None,
        alpha: float = 1.0, beta: float = 0.0, chip: int | None = None, kernel_cc: int | None = None,
    ):  # fmt: skip
        of_a, of_b = (recipe, recipe) if isinstance(recipe, str) else recipe
        for one in (of_a, of_b):
            if one not in (*RECIPES, *WIDTHS):
                known = ", ".join((*RECIPES, *WIDTHS))
                raise UnsupportedError(f"{self.call}: recipe {one!r} is not supported; use one of {known}")
        if of_a != of_b and (of_a in WIDTHS or of_b in WIDTHS):
            raise UnsupportedError(
                f"{self.call}: the recipes {of_a} and {of_b} cannot be combined; use the same one for A and B"
            )
        if of_a.startswith("block") != of_b.startswith("block"):
            raise UnsupportedError(
                f"{self.call}: the recipes {of_a} and {of_b} cannot be combined; either both or neither must be per "
                "block"
            )
        of_a = of_b if of_a.startswith("block") else of_a  # Both block recipes scale A per 1 x 128 block.
        self.recipe, self.fast, self.element_scale = (of_a, of_b), fast, "f32"
        kinds = ("f32", EXPONENTS) if self._of_blocks else ("f32",)
        if of_a in WIDTHS:
            kinds = (EXPONENTS if WIDTHS[of_a] == 32 else "f8E4M3FN",)
            element, element_A, element_B = (_as_bytes(x) for x in (element, element_A, element_B))
        self.element_scale = kinds[0] if element_scale is None else element_name(element_scale)
        if self.element_scale not in kinds:
            wanted = listed(kinds)
            raise DtypeError(
                f"{self.call}: element_scale {self.element_scale} is not supported for recipe {of_a}; use {wanted}"
            )
        if fast and self._of_blocks:
            raise UnsupportedError(f"{self.call}: fast=True is not supported with block scales; use fast=False")
        if A is None:
            element_A, layout_A = element if element_A is None else element_A, layout_A or "row"
        if B is None:
            element_B, layout_B = element if element_B is None else element_B, layout_B or "column"
        first, second = (
            bytes_of(x) if of_a in WIDTHS and element_name(getattr(x, "dtype", "")) in PACKED else x for x in (A, B)
        )
        super().__init__(
            first, second, C, D, element_A=element_A, element_B=element_B, element_C=element_C, element_D=element_D,
            layout_A=layout_A, layout_B=layout_B, layout_C=layout_C, layout_D=layout_D, alpha=alpha, beta=beta,
            chip=chip, kernel_cc=kernel_cc,
        )  # fmt: skip
        if self.asked().packed == 2:
            self.kinds = self.kinds._replace(a=_PackedType(*self.kinds.a), b=_PackedType(*self.kinds.b))

    def _result(self, element: str) -> str:
        return "bf16"

    @property
    def _of_blocks(self) -> bool:
        return self.recipe[0].startswith("block")

    @property
    def _by_mma(self) -> bool:
        """True if the MMA applies the scales, those of blocks of 32 or 16 along K."""
        return self.recipe[0] in WIDTHS

    def _sums(self) -> str:
        return "f32" if self._by_mma else super()._sums()

    def _check(self) -> None:
        if self._by_mma:
            self._check_by_mma()
            return
        a, b, _, d = self.kinds
        for name, kind in (("A", a), ("B", b)):
            if kind.element not in ("f8E4M3FN", "f8E5M2"):
                raise DtypeError(f"{self.call}: {name} has dtype {kind.element}; it must have f8E4M3FN or f8E5M2")
        if d.element not in outputs_of(a.element):
            raise DtypeError(f"{self.call}: D has dtype {d.element}; it must have {listed(outputs_of(a.element))}")
        if not WGMMA.is_allowed(self.chip) or self._opclass is not OpcodeClass.TensorOp:
            what = f"opclass {self._opclass}" if WGMMA.is_allowed(self.chip) else f"kernel_cc={self.chip}"
            by_mma = f", those of blocks of 32 or 16 along K ({' and '.join(WIDTHS)}) sm_100, sm_103 or sm_110"
            raise UnsupportedError(
                f"{self.call}: {what} is not supported; {self.recipe[0]} scales need wgmma on sm_90{by_mma}"
            )
        if self._of_blocks and d.layout == "column":
            raise LayoutError(f"{self.call}: D is column-major; block scales need a row-major D")
        super()._check()

    def _check_by_mma(self) -> None:
        """Raise OpError if there is no kernel for the plan, whose scales the MMA applies."""
        backend = unmeasured(self.chip)
        if backend is None or not backend.has_tensor_memory or self._opclass is not OpcodeClass.TensorOp:
            what = f"kernel_cc={self.chip}" if self._opclass is OpcodeClass.TensorOp else f"opclass {self._opclass}"
            raise UnsupportedError(
                f"{self.call}: {what} is not supported for {self.recipe[0]} scales; use kernel_cc=100, 103 or 110, or "
                "op.scaled_mm on sm_120 and sm_121"
            )
        super()._check()

    def asked(self, *, batch: bool = False) -> KernelRequest:
        """Return the requirements of its kernels."""
        if self._by_mma:
            return super().asked(batch=batch)._replace(sums=self.recipe[0])
        of_blocks = "columns" if self.recipe[1] == "block1x128" else "block"
        sums = of_blocks if self._of_blocks else "" if self.fast else "two"
        return (
            super().asked(batch=batch)._replace(sums=sums, scales="ui8" if self.element_scale == EXPONENTS else "f32")
        )

    # --------------------------------------------------------------------------------------------------- operations

    @property
    def epilogue_visitor(self) -> Traced | Hook | None:
        """None, because scales, C, bias and activation are the epilogue."""
        return None

    @epilogue_visitor.setter
    def epilogue_visitor(self, value: Traced | Hook | None) -> None:
        raise EpilogueError(f"{self.call}: epilogue_visitor is not supported with scales; use op.Gemm")

    def _make(self, td: TileDescription, alignments: Sequence[int | None] = (None,) * 3) -> GemmOperationUniversal:
        with named(self.call, "Gemm"):
            return super()._make(td, alignments)

    def _described(self, td: TileDescription) -> tuple[TileDescription, Swizzle | None]:
        """Return the tile of a kernel with the plan's accumulation.  Raises UnsupportedError."""
        asked = self.asked()
        if self._by_mma:
            return super()._described(td)
        found = configured(td, asked, self._swizzle)
        wanted = (asked.sums != "", asked.sums in OF_BLOCKS)
        if not isinstance(found, Choice) or (found.config.promote, found.config.scaled) != wanted:
            raise UnsupportedError(
                f"{self.call}: tile {td.name} does not support {' and '.join(dict.fromkeys(self.recipe))} scales; use "
                "one of tile_descriptions(), and operands that are aligned to 16 bytes"
            )
        return described(found, asked), None

    def _functor(self) -> EpilogueFunctor:
        found = super()._functor()
        is_traced = not self._of_blocks or self._traced is not None
        return found if not is_traced else EpilogueFunctor(found.element_output, 0, self._accumulator)

    def _known_visitor(self) -> Traced | None:
        """Return the epilogue of the last call, or one without C and bias; None with block scales only."""
        if self._of_blocks or self._traced is not None:
            return self._traced
        shapes = {"tensor": ((1,), (1,)), "row": ((_BLOCK, 1), (1, _BLOCK))}
        args = {"scale_a": FakeTensor("f32", shapes[self.recipe[0]][0])}
        args["scale_b"] = FakeTensor("f32", shapes[self.recipe[1]][1])
        return scales_epilogue((_BLOCK, _BLOCK), args, self._activation)[0]

    # -------------------------------------------------------------------------------------------------------- calls

    def _call(self, call: str, *given: Any) -> Arguments:
        """Return the checked arguments of a call, with the operation that computes it; see :meth:`_arguments`."""
        return self._served(call, lambda plan: plan._arguments(call, *given))

    def _arguments(
        self, call: str, given: Sequence[Any], scale_a: Array, scale_b: Array, alpha: float | None, beta: float | None,
        bias: Array, scale_out: Factor, stream: object, options: CallOptions,
    ) -> Arguments:  # fmt: skip
        if "split_k" in options:
            raise UnsupportedError(f"{call}: split_k is not supported with scales; omit it")
        a, b, c, d = (cast("Any", x) for x in self._given(call, *given))
        alpha = self._alpha if alpha is None else number("alpha", alpha)
        beta = self._beta if beta is None else number("beta", beta)
        if self._by_mma:
            args = {"alpha": None if alpha == 1.0 else alpha, "bias": bias, "scale_out": scale_out}
            args |= {"beta": beta, "C": c} if beta != 0.0 else {}
            return self._arguments_by_mma(call, (a, b, c, d), (scale_a, scale_b), args, stream, options)
        found = check_scaled(call, a, b, scale_a, scale_b, self.recipe)
        if found != self.recipe:
            raise ShapeError(
                f"{call}: scale_b has shape {tuple(scale_b.shape)}, which does not suit the planned recipe "
                f"{self.recipe[1]}"
            )
        for name, x in (("scale_a", scale_a), ("scale_b", scale_b)):
            if element_name(x.dtype) != self.element_scale:
                raise DtypeError(
                    f"{call}: {name} has dtype {element_name(x.dtype)}; the plan needs {self.element_scale}"
                )
        if beta != 0.0 and c is None:
            raise ShapeError(f"{call}: beta is {beta}, but C is missing; pass C or beta=0")
        on_cpu = on_the_cpu(options)
        if not self._of_blocks:
            args = {"scale_a": scale_a, "scale_b": scale_b, "alpha": None if alpha == 1.0 else alpha}
            args |= {"beta": beta, "C": c} if beta != 0.0 else {}
            args |= {"bias": bias, "scale_out": scale_out}
            traced, args = scales_epilogue((a.shape[0], b.shape[1]), args, self._activation)
            seen = visited(call, traced, self.kinds, a, b, d, args, on_cpu=on_cpu)
            self._traced = traced
            x = seen.operands._replace(alpha=alpha)  # With alpha=0, A and B are not read.
            return Arguments(self.operation_for(x), x, seen.D, stream, options, ALONE, call)
        if scale_out is not None:
            raise UnsupportedError(f"{call}: scale_out is not supported with block scales")
        x, d = planned_operands(call, self.kinds, a, b, c, d, alpha=alpha, beta=beta, bias=bias, on_cpu=on_cpu)
        scales = tuple([_read(call, name, s, x, on_cpu) for name, s in (("scale_a", scale_a), ("scale_b", scale_b))])
        x = x._replace(scales=scales)
        return Arguments(self.operation_for(x), x, d, stream, options, ALONE, call)

    def _arguments_by_mma(
        self, call: str, given: tuple[Array, Array, Array, Array], scales: tuple[Array, Array],
        args: dict[str, Array | Factor],
        stream: object, options: CallOptions,
    ) -> Arguments:  # fmt: skip
        """Return the checked arguments of a call whose scales the MMA applies.

        Factors of whole matrices and ``scale_out`` are in the epilogue.
        """
        a, b, c, d = given
        alpha, beta, bias = (args.get(name) for name in ("alpha", "beta", "bias"))
        alpha, beta = 1.0 if alpha is None else alpha, beta or 0.0
        if beta != 0.0 and c is None:
            raise ShapeError(f"{call}: beta is {beta}, but C is missing; pass C or beta=0")
        levels = [levels_of(call, name, x) for name, x in zip(("scale_a", "scale_b"), scales)]
        (scale_a, whole_a), (scale_b, whole_b) = levels
        if (element_name(a.dtype) in PACKED) != (self.asked().packed == 2):
            wanted = FP4 if self.asked().packed == 2 else self.kinds.a.element
            raise DtypeError(f"{call}: a has dtype {element_name(a.dtype)}; the plan needs {wanted}")
        scaling = check_block_scaled(call, (a, b, scale_a, scale_b), self.recipe, planned=True)
        on_cpu = on_the_cpu(options)
        a, b = (bytes_of(x) if scaling.packed == 2 else x for x in (a, b))
        blocks = self._blocks_of(call, a.shape[1] * scaling.packed)
        views = []
        for name, scale, rows in (("scale_a", scale_a, a.shape[0]), ("scale_b", scale_b, b.shape[1])):
            if len(scale.shape) != 1:
                raise ShapeError(
                    f"{call}: {name} has shape {tuple(scale.shape)}; a plan copies nothing, so pass "
                    f"{name} in blocks of 128 x 4 (op.scale_blocks), or use op.scaled_mm"
                )
            if on_cpu and self.element_scale == "f8E4M3FN":
                check_signs(call, name, as_matrix(bytes_of(scale), rows, blocks))
            views.append((name, bytes_of(scale)))
        if (whole_a, whole_b, args["scale_out"]) == (None, None, None):
            self._traced = None
            x, d = planned_operands(call, self.kinds, a, b, c, d, alpha=alpha, beta=beta, bias=bias, on_cpu=on_cpu)
        else:
            of_all = {"scale_a": whole_a, "scale_b": whole_b} | args
            traced, of_all = scales_epilogue((a.shape[0], b.shape[1]), of_all, self._activation)
            seen = visited(call, traced, self.kinds, a, b, d, of_all, on_cpu=on_cpu)
            self._traced, x, d = traced, seen.operands._replace(alpha=alpha), seen.D
        x = x._replace(scales=tuple([_read(call, name, scale, x, on_cpu) for name, scale in views]))
        for (name, _), view in zip(views, x.scales):
            if view.strides != (1,) and view.shape[0] > 1:
                raise LayoutError(
                    f"{call}: {name} has strides {view.strides}; a plan copies nothing, so pass a contiguous vector"
                )
            if view.pointer % 16:
                raise AlignmentError(
                    f"{call}: {name} has an address of {view.pointer % 16} mod 16, but TMA needs 0; a plan copies "
                    "nothing, so pass an aligned vector"
                )
        return Arguments(self.operation_for(x), x, d, stream, options, ALONE, call)

    def _blocks_of(self, call: str, k: int) -> int:
        """Return the scales per row that the MMA applies.  Raises ShapeError for blocks with padding along K."""
        width = WIDTHS[self.recipe[0]]
        blocks = -(-k // width)
        if blocks % 4 == 0:
            return blocks
        raise ShapeError(
            f"{call}: K is {k}, so the blocks of 128 x 4 scales have padding along K; a plan does not clear it, so use "
            f"a K that is a multiple of {4 * width}, or op.scaled_mm"
        )

    def run(
        self, A: Array = None, B: Array = None, scale_a: Array = None, scale_b: Array = None, C: Array = None,
        D: Array = None, alpha: float | None = None, beta: float | None = None, *, bias: Array = None,
        scale_out: Factor = None, sync: bool = True, print_module: bool = False, stream: object = None,
        **options: Unpack[CallOptions],
    ) -> Arguments:  # fmt: skip
        """Compute ``D``, which is allocated if absent, and return the arguments with ``.D`` and ``.sync()``.

        Args:
            A, B, C, D: arrays; C is read if ``beta`` is not 0.
            scale_a, scale_b: scales of the planned recipe. Scales of blocks of 128 may have any strides. Those of
                ``block1x32`` and ``block1x16`` are vectors in blocks of 128 x 4 (:func:`cute_dialect.op.scale_blocks`),
                without padding along K, or pairs: such a vector, and an f32 factor of the whole matrix.
            bias: per column (N,), or per row (M, 1).
            scale_out: a number, or an array of one; not with scales of blocks of 128.
            alpha, beta, sync, print_module, stream, options: as in :meth:`cute_dialect.op.plans.gemm.Gemm.run`.

        Raises:
            OpError: before anything is written.
        """
        a, b, c, d = self._arrays(A, B, C, D)
        factors = self._factors(alpha, beta)

        def launch() -> Arguments:
            self._refuse_gradients("", (a, b, c, d, bias, scale_a, scale_b))
            given = (A, B, C, D), scale_a, scale_b, alpha, beta, bias, scale_out, stream, options
            found = self._call(f"{self.call}.run", *given)
            if print_module:
                print(found.operation.ir())
            return self._ran(found)

        def replay(done: Any) -> Arguments:
            more = scale_a, scale_b, *factors, bias, scale_out, None, {}
            return replayed(Arguments, lambda: self._call(f"{self.call}.run", (a, b, c, done), *more), done)

        usual = not (options or print_module) and stream is None
        how = (self.recipe, self.fast, self.element_scale) if usual else None
        levels = [x if isinstance(x, tuple | list) and len(x) == 2 else (x, None) for x in (scale_a, scale_b)]
        given = a, b, d, bias, *levels[0], *levels[1], scale_out
        found = self._cached_run(how, factors, c, given, launch, replay)
        self._last = found
        if sync:
            found.sync()
        return found

    def bind(
        self, A: Array = None, B: Array = None, scale_a: Array = None, scale_b: Array = None, C: Array = None,
        D: Array = None, alpha: float | None = None, beta: float | None = None, *, bias: Array = None,
        scale_out: Factor = None,
    ) -> Callable[..., None]:  # fmt: skip
        """Return a checked and prepared function: ``call()`` or ``call(stream)`` only calls the driver's launch.

        Arrays must be in GPU memory.  Raises OpError.
        """
        call = f"{self.call}.bind"
        return self._call(call, (A, B, C, D), scale_a, scale_b, alpha, beta, bias, scale_out, None, {}).bind()

    def reference(
        self, A: Array = None, B: Array = None, scale_a: Array = None, scale_b: Array = None, C: Array = None,
        alpha: float | None = None, beta: float | None = None, *, bias: Array = None, scale_out: Factor = None,
    ) -> NDArray[float64]:  # fmt: skip
        """Return the result of :meth:`run` computed by NumPy in f64, not rounded to D."""
        call = f"{self.call}.reference"
        a, b, c, _ = self._given(call, A, B, C, None)
        alpha, beta = self._alpha if alpha is None else alpha, self._beta if beta is None else beta
        if self._by_mma:
            x, y = scaled_values(call, (a, b, scale_a, scale_b), self.recipe)
            found = reference(x, y, c, alpha, beta, bias, self._activation)
            return found if scale_out is None else found * as_f64(scale_out)
        check_scaled(call, a, b, scale_a, scale_b, self.recipe)
        x, y, of_a, of_b = (as_f64(t) for t in (a, b, scale_a, scale_b))
        if self._of_blocks:
            k, n = y.shape
            of_a = of_a.repeat(_BLOCK, 1)[:, :k]
            of_b = of_b if self.recipe[1] == "block1x128" else of_b.repeat(_BLOCK, 0)[:n]
            of_b = of_b.repeat(_BLOCK, 1)[:, :k].T
        found = reference(x * of_a, y * of_b, c, alpha, beta, bias, self._activation)
        return found if scale_out is None else found * as_f64(scale_out)

    def tune(self, *given: object, **options: object) -> NoReturn:
        """Raise UnsupportedError, because kernels with scales are not measured."""
        raise UnsupportedError(
            f"{self.call}.tune: scaled GEMMs are not tuned; set tile_description to one of tile_descriptions() and "
            "time run()"
        )

    # --------------------------------------------------------------------------------------------------------- saved

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan of :meth:`settings`."""
        types = {n: x for n, x in types_of(settings).items() if n != "element_accumulator"}
        own = {n: settings[n] for n in ("recipe", "fast", "element_scale", "kernel_cc")}
        return cls(**types, **own).restored(settings)

    def settings(self) -> Fields:
        """Return the settings of the plan as data."""
        own = {"recipe": list(self.recipe), "fast": self.fast, "element_scale": self.element_scale}
        return {**super().settings(), **own}

    # ------------------------------------------------------------------------------------------------------- reading

    def explain(self, A: object = None, B: object = None, *, others: int = 4) -> Explanation:
        """Explain which kernel computes matrices of such layouts, or of such shapes, and why; see ``op.explain``.

        Shapes are those of arrays, of 4-bit floats (M, K / 2) and (K / 2, N).  Raises the errors of :meth:`run`.
        """
        call = f"{self.call}.explain"
        a, b, _, _ = self._given(call, A, B)
        for name, x in (("A", a), ("B", b)):
            shape = tuple(x if isinstance(x, tuple | list) else getattr(x, "shape", (0, 0)))
            if len(shape) != 2:
                raise ShapeError(f"{call}: {name} has shape {shape}; pass a matrix (rank 2)")
            if self._by_mma and name == "A":
                self._blocks_of(call, shape[1] * self.asked().packed)
        a, b = (bytes_of(x) if element_name(getattr(x, "dtype", "")) == PACKED[0] else x for x in (a, b))
        return explained(self, a, b, others)

    def __repr__(self) -> str:
        a, b, _, d = self.kinds
        return f"<{self.call} {' and '.join(dict.fromkeys(self.recipe))}; A {a}; B {b}; D {d}>"


def _read(call: str, name: str, scales: Any, x: Operands, on_cpu: bool) -> ArrayView:
    """Return the view of block scales; exponents are read as bytes.  Raises DeviceError, LayoutError."""
    found = read(call, name, as_bytes(scales) if element_name(scales.dtype) == EXPONENTS else scales, on_cpu)
    check_one_device(call, {"A": x.a, name: found})
    check_overlap(call, {"D": x.d, name: found}, "D", "C")
    return found
