"""Convolution operation: a convolution or a gradient with one tile, as it is described, compiled and run.

::

    functor = LinearCombination("f16", 8, "f32", "f32")
    operation = Conv2dOperation("fprop", "optimized", 90, tile, A, B, C, "strided", functor)
    problem = Conv2dProblemSize((n, h, w, c), (k, r, s, c), (1, 1, 1, 1), (1, 1), (1, 1))
    arguments = Conv2dArguments(operation, problem, a, b, c, d, operation.epilogue_type(1.0, 0.0))
    operation.run(arguments)
    arguments.sync()
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, ConvConfig
from cute_dialect.kernels.conv.unfold import UnfoldConfig
from cute_dialect.kernels.gemm.elements import BITS
from cute_dialect.op.conv.choice import width_of
from cute_dialect.op.conv.geometry import Geometry
from cute_dialect.op.conv_plans.describe import Conv2dProblemSize, ConvKind, IteratorAlgorithm, StrideSupport
from cute_dialect.op.errors import AlignmentError, OpError, UnsupportedError
from cute_dialect.op.execute.variants import Variant, compiled
from cute_dialect.op.problems.plan_operands import Kinds, Type
from cute_dialect.op.pycutlass.functors import EpilogueFunctor
from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
from cute_dialect.op.pycutlass.operation_base import chip_here
from cute_dialect.op.select.descriptions import Swizzle, TensorDescription, TileDescription, known
from cute_dialect.op.select.kernel_choice import Choice

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self

    from cute_dialect.kernels.gemm.epilogue import Epilogue, Hook
    from cute_dialect.op.epilogue.tracing import Traced

__all__ = ["LAYOUTS", "Conv2dOperation", "called"]

LAYOUTS = {FPROP: ("row", "column"), DGRAD: ("row", "row"), WGRAD: ("column", "row")}
"""Kind -> layouts of A and B of the implicit GEMM."""


@contextmanager
def called(name: str) -> Generator[None]:
    """Report errors of the implicit GEMM under the name of the convolution."""
    try:
        yield
    except OpError as e:
        if not str(e).startswith("Gemm"):
            raise
        raise type(e)(name + str(e).removeprefix("Gemm")) from None


class Conv2dOperation(GemmOperationUniversal):
    """A convolution with one tile, for operands of given types with channels last.

    Padding, strides, dilation and taps are compiled into kernels with im2col loads.  These kernels are compiled per
    problem, at the first call or in advance for ``problems``.

    Args:
        conv_kind: a :class:`~cute_dialect.op.conv_plans.describe.ConvKind`, which defines A, B and C.
        iterator_algorithm: an :class:`~cute_dialect.op.conv_plans.describe.IteratorAlgorithm`.
        chip, tile_description: as in :class:`~cute_dialect.op.pycutlass.operation.GemmOperationUniversal`, for the
            implicit GEMM (pixels by channels, or filters by taps and channels).
        stride_support: ``unity`` supports only stride 1.
        epilogue_functor, swizzling_functor, visitor: as in the same class.
        problems: those that :func:`cute_dialect.op.compiler.add_module` compiles for.

    Raises UnsupportedError if there is no such kernel.
    """

    def __init__(
        self, conv_kind: str, iterator_algorithm: str, chip: int, tile_description: TileDescription,
        A: TensorDescription, B: TensorDescription, C: TensorDescription, stride_support: str = StrideSupport.strided,
        epilogue_functor: EpilogueFunctor | Traced | None = None, swizzling_functor: Swizzle | None = None,
        visitor: Traced | Hook | bool | None = None, *, D: TensorDescription | None = None,
        problems: Sequence[Conv2dProblemSize] = (),
    ):  # fmt: skip
        self.kind = str(known(ConvKind, conv_kind, "conv_kind"))
        self.algorithm = IteratorAlgorithm(known(IteratorAlgorithm, iterator_algorithm, "iterator_algorithm"))
        self.stride_support = StrideSupport(known(StrideSupport, stride_support, "stride_support"))
        self.problems = tuple(problems)
        if self.algorithm in ("fixed_channels", "few_channels") and self.kind != FPROP:
            raise UnsupportedError(f"Conv2d: {self.algorithm} does not support {self.kind}; use optimized or analytic")
        self._configs: dict[Geometry, ConvConfig] = {}
        self._product: GemmOperationUniversal | None = None
        of_a, of_b = LAYOUTS[self.kind]
        a, b, c = (
            TensorDescription(x.element, layout, x.alignment) for x, layout in ((A, of_a), (B, of_b), (C, "row"))
        )
        d = None if D is None else TensorDescription(D.element, "row", D.alignment)
        with called("Conv2d"):
            super().__init__(
                chip, tile_description, a, b, c, epilogue_functor, swizzling_functor, visitor, D=d
            )  # fmt: skip
        if self.im2col:
            choice = self.choice
            assert choice is not None
            if choice.skinny is not None or choice.swapped or choice.config.stream_k:
                raise UnsupportedError(
                    f"Conv2d: {self.algorithm} does not support the swapped, skinny or stream-K tile "
                    f"{tile_description.name}; use another tile, or analytic"
                )

    # ------------------------------------------------------------------------------------------------------- kernels

    @property
    def access(self) -> int:
        """Elements of A that are read at once: its alignment, or 16 bytes."""
        return self.A.alignment or 128 // BITS[self.A.element]

    @property
    def im2col(self) -> bool:
        """True if images are read by im2col TMA, which needs wgmma and accesses of at least 16 bytes."""
        whole = self.access * BITS[self.A.element] >= 128
        by_wgmma = self.choice is not None and not self.in_parts
        return self.algorithm != IteratorAlgorithm.analytic and by_wgmma and whole

    @property
    def by_tma(self) -> bool:
        """False: operands are images, not those of a plain GEMM."""
        return False

    def check_problem(self, call: str, g: Geometry) -> None:
        """Raise UnsupportedError or AlignmentError for a problem that the operation does not support."""
        if self.stride_support == StrideSupport.unity and set(g.window.strides) != {1}:
            raise UnsupportedError(
                f"{call}: strides are {tuple(g.window.strides)}, but the operation has stride_support unity; "
                "use stride 1, or strided"
            )
        name, channels = ("K", g.result[-1]) if g.kind == DGRAD else ("C", g.filter[-1])
        access, element = self.access, self.A.element
        if self.algorithm == IteratorAlgorithm.fixed_channels and channels != access:
            raise AlignmentError(
                f"{call}: fixed_channels needs C = {access} of {element}, got C = {channels}; "
                "use few_channels or analytic"
            )
        if self.algorithm != IteratorAlgorithm.analytic and channels % access:
            whole = f"a multiple of {access} ({access * BITS[element] // 8} bytes of {element})"
            raise AlignmentError(
                f"{call}: {self.algorithm} needs {name} to be {whole}, got {name} = {channels}; pad, or use analytic"
            )

    def config(self, g: Geometry) -> ConvConfig:
        """Return the kernel with im2col loads for a problem.  Raises UnsupportedError."""
        found = self._configs.get(g)
        if found is None:
            found = self._configs[g] = self._config(g)
        return found

    def _config(self, g: Geometry) -> ConvConfig:
        strided = g.kind == DGRAD and set(g.window.strides) != {1}
        choice = self.plain_choice(g.groups > 1 or strided)
        c, few = choice.config, self.algorithm != IteratorAlgorithm.optimized
        if strided:  # a tile is stored when it is done, 16 bytes at a time
            c = c._replace(deferred=False, serpentine=False)
        most = 1024 // c.bits
        width = min(width_of(g, c.bits), most) if g.groups > 1 and g.kind == FPROP else most
        width = _few(g.filter[-1], most) if few else width
        config = ConvConfig(c, g.window, g.kind, width, g.groups > 1, choice.parts)
        try:
            config.check()
        except ValueError as e:
            raise UnsupportedError(f"Conv2d: {e}; use analytic") from None
        return config

    def plain_choice(self, batch: bool) -> Choice:
        """Return the GEMM kernel, without its epilogue."""
        if (batch, False) not in self._configured:
            self._configured[batch, False] = self._configure(batch, False)
        found = self._configured[batch, False]
        assert isinstance(found, Choice)
        return found

    def conv_variant(self, g: Geometry, epilogue: Epilogue) -> Variant:
        """Return the kernel with im2col loads and its epilogue.  Raises UnsupportedError."""
        found = Variant(self.config(g), epilogue, chip=chip_here())
        kernel = found.kernel
        assert isinstance(kernel, ConvConfig)
        try:
            kernel.check()
        except ValueError as e:
            raise UnsupportedError(f"Conv2d: {e}") from None
        return found

    def with_numbers(self, numbers: tuple[float, ...]) -> Self:
        """Return the operation with these numbers of its activation; see the base class."""
        found = super().with_numbers(numbers)
        if found is not self and found._product is self._product:  # its GEMM has the numbers of this operation
            found._product = None
        return found

    def with_tile(self, tile_description: TileDescription) -> Conv2dOperation:
        """Return the operation with another tile."""
        return Conv2dOperation(
            self.kind, self.algorithm, self.chip, tile_description, self.A, self.B, self.C, self.stride_support,
            self.epilogue_functor, self.swizzling_functor, self.visitor, D=self.D,
        )  # fmt: skip

    def partial(self) -> Conv2dOperation:
        """Return the operation of the same tile that returns the accumulator."""
        found = self._partial
        if found is None:
            td = self.tile_description.replace(self.alone())
            of, void = TensorDescription(self.sums, "row"), TensorDescription("void", "row")
            found = self._partial = Conv2dOperation(
                self.kind, self.algorithm, self.chip, td, self.A, self.B, void, self.stride_support, None,
                self.swizzling_functor, D=of,
            )  # fmt: skip
        assert isinstance(found, Conv2dOperation)
        return found

    def product(self) -> GemmOperationUniversal:
        """Return the operation of the implicit GEMM."""
        if self._product is None:
            with called("Conv2d"):
                self._product = GemmOperationUniversal(
                    self.chip, self.tile_description, self.A, self.B, self.C, self.epilogue_functor,
                    self.swizzling_functor, self.visitor, D=self.D,
                )  # fmt: skip
        return self._product

    @property
    def kinds(self) -> Kinds:
        """Element types of the operands."""
        a, b, c, d = (Type(x.element, "row") for x in (self.A, self.B, self.C, self.D))
        return Kinds(a, b, None if c.element == "void" else c, d)

    def variants(self) -> list[Variant]:
        """Return the kernels for any alpha, without and with C; those with im2col loads are for ``problems``."""
        if not self.im2col:
            return [*super().variants(), Variant(UnfoldConfig(64, self.kind == DGRAD), chip=chip_here())]
        if not self.problems:
            return []
        plain = [v.epilogue for v in super().variants()]
        found: list[Variant] = []
        for problem in self.problems:
            g = problem.geometry(self.kind, "Conv2d")
            self.check_problem("Conv2d", g)
            found += [self.conv_variant(g, e) for e in plain]
        return found

    # --------------------------------------------------------------------------------------------------------- texts

    @property
    def name(self) -> str:
        """Name of the operation: kind, iterator algorithm and GEMM kernel."""
        return f"{self.kind}-{self.algorithm}-{super().variants()[0].name}"

    def compile(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Compile the kernels for a GPU; those with im2col loads for ``problems``."""
        for variant in self.variants():
            compiled(variant)

    def first(self) -> Variant:
        """Return the kernel of the first problem.  Raises UnsupportedError if there are no problems."""
        found = self.variants()
        if not found:
            raise UnsupportedError("Conv2d: kernels with im2col loads are compiled per problem; pass problems=[…]")
        return found[0]


def _few(channels: int, most: int) -> int:
    """Return the channels per load for few channels: a divisor of their number, of 16 to 128 bytes."""
    width = most
    while channels % width:
        width //= 2
    return width
