"""Described convolutions: the kind, the iterator algorithm, the problem size, and the operation of one tile.

>>> problem = Conv2dProblemSize((8, 56, 56, 64), (128, 3, 3, 64), (1, 1, 1, 1), (2, 2), (1, 1))
>>> problem.P, problem.Q, problem.implicit_gemm_size("fprop")
(28, 28, GemmCoord(m=6272, n=128, k=576))
>>> Conv2dProblemSize(8, 56, 56, 64, 128, 3, 3, 64, (1, 1, 1, 1), (2, 2), (1, 1)) == problem
True

An operation is compiled and run with the arguments of :mod:`.conv_arguments`::

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
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, cast

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, ConvConfig
from cute_dialect.kernels.conv.unfold import UnfoldConfig
from cute_dialect.op.conv.choice import width_of
from cute_dialect.op.errors import AlignmentError, OpError, ShapeError, UnsupportedError
from cute_dialect.op.execute.kernels import Variant, chip_here, compiled
from cute_dialect.op.problems.conv import Geometry, geometry
from cute_dialect.op.problems.operands import Kinds, Type
from cute_dialect.op.pycutlass.functors import EpilogueFunctor
from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
from cute_dialect.op.select.descriptions import GemmCoord, Swizzle, TensorDescription, TileDescription, known
from cute_dialect.op.select.kernel_choice import Choice

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self

    from cute_dialect.kernels.epilogue.combination import Epilogue, Hook
    from cute_dialect.op.epilogue.tracing import Traced


class ConvKind(StrEnum):
    """Kind of a convolution: forward, gradient of the image, gradient of the filter.

    It defines A, B and the result:

    - ``fprop``: image, filter, result.
    - ``dgrad``: gradient of the result, filter, gradient of the image.
    - ``wgrad``: gradient of the result, image, gradient of the filter.
    """

    fprop = "fprop"
    dgrad = "dgrad"
    wgrad = "wgrad"


class ConvMode(StrEnum):
    """Orientation of the filter: as it is stored, or flipped."""

    cross_correlation = "cross_correlation"
    convolution = "convolution"


class IteratorAlgorithm(StrEnum):
    """Algorithms that read images.

    An *access* is the alignment of A's description, by default 16 bytes.

    - ``analytic``: any image; columns are written to memory and multiplied by a GEMM.
    - ``optimized``: im2col TMA, 128 bytes of channels at once; the channels are a multiple of an access.
    - ``fixed_channels``: forward only; the channels are one access.
    - ``few_channels``: forward only; the channels are a multiple of an access, and a step of K reads several taps.

    With instructions other than wgmma, or accesses of less than 16 bytes, all algorithms write columns.
    """

    analytic = "analytic"
    optimized = "optimized"
    fixed_channels = "fixed_channels"
    few_channels = "few_channels"


class StrideSupport(StrEnum):
    """Strides that an operation supports: any, or 1."""

    strided = "strided"
    unity = "unity"


class Tensor4DCoord(NamedTuple):
    """Four extents, of images (N, H, W, C) or filters (K, R, S, C / groups), or a padding: top, bottom, left, right."""

    n: int
    h: int
    w: int
    c: int


class MatrixCoord(NamedTuple):
    """Two numbers, for H and W."""

    row: int
    column: int


def _several(name: str, value: object, count: int) -> tuple[int, ...]:
    given = tuple(cast("Sequence[object]", value)) if isinstance(value, Sequence) else ()
    if len(given) != count or not all(isinstance(n, int) and not isinstance(n, bool) for n in given):
        raise ShapeError(f"Conv2dProblemSize: {name} is {value!r}; pass {count} integers")
    return tuple([int(cast(int, n)) for n in given])


@dataclass(frozen=True, init=False)
class Conv2dProblemSize:
    """Problem size of a convolution.

    Args:
        input: (N, H, W, C).
        filter: (K, R, S, C / groups); ``input`` and ``filter`` may also be passed as eight numbers.
        padding: top, bottom, left, right, or two numbers for H and W.
        stride, dilation: two numbers, for H and W.

    Raises ShapeError.
    """

    input: Tensor4DCoord
    filter: Tensor4DCoord
    padding: Tensor4DCoord
    stride: MatrixCoord
    dilation: MatrixCoord
    mode: ConvMode
    split_k_slices: int
    groups: int

    def __init__(
        self, *sizes: object, padding: object = (0, 0, 0, 0), stride: object = (1, 1), dilation: object = (1, 1),
        mode: str = ConvMode.cross_correlation, split_k_slices: int = 1, groups: int = 1,
    ):  # fmt: skip
        sizes = (sizes[:4], sizes[4:8], *sizes[8:]) if sizes and isinstance(sizes[0], int) else sizes
        names = ("input", "filter", "padding", "stride", "dilation", "mode", "split_k_slices", "groups")
        values: dict[str, object] = {
            "padding": padding, "stride": stride, "dilation": dilation, "mode": mode, "split_k_slices": split_k_slices,
            "groups": groups, **dict(zip(names, sizes)),
        }  # fmt: skip
        if not 2 <= len(sizes) <= len(names):
            raise ShapeError(f"Conv2dProblemSize: got {len(sizes)} arguments; pass {', '.join(names)}")
        pad = values["padding"]
        if isinstance(pad, Sequence) and len(cast("Sequence[object]", pad)) == 2:
            values["padding"] = [n for n in cast("Sequence[object]", pad) for _ in range(2)]
        put = object.__setattr__
        for name in names[:5]:
            kind = Tensor4DCoord if name in names[:3] else MatrixCoord
            put(self, name, kind(*_several(name, values[name], 4 if name in names[:3] else 2)))
        put(self, "mode", known(ConvMode, values["mode"], "mode"))
        put(self, "split_k_slices", values["split_k_slices"])
        put(self, "groups", values["groups"])
        self.geometry("fprop")

    def geometry(self, kind: str, call: str = "Conv2dProblemSize") -> Geometry:
        """Return the convolution, or a gradient of it.  Raises ShapeError."""
        top, bottom, left, right = self.padding
        how = (self.stride, ((top, bottom), (left, right)), self.dilation, self.groups, str(self.mode))
        return geometry(call, kind, tuple(self.input), tuple(self.filter), *how)

    @property
    def output(self) -> Tensor4DCoord:
        """Extents of the result: (N, P, Q, K)."""
        return Tensor4DCoord(*self.geometry("fprop").result)

    @property
    def P(self) -> int:
        """Height of the result."""
        return self.output.h

    @property
    def Q(self) -> int:
        """Width of the result."""
        return self.output.w

    @property
    def N(self) -> int:
        """Number of images."""
        return self.input.n

    @property
    def H(self) -> int:
        """Height of the images."""
        return self.input.h

    @property
    def W(self) -> int:
        """Width of the images."""
        return self.input.w

    @property
    def C(self) -> int:
        """Channels of the images."""
        return self.input.c

    @property
    def K(self) -> int:
        """Number of filters."""
        return self.filter.n

    @property
    def R(self) -> int:
        """Height of the filters."""
        return self.filter.h

    @property
    def S(self) -> int:
        """Width of the filters."""
        return self.filter.w

    def implicit_gemm_size(self, kind: str) -> GemmCoord:
        """Return the extents of the implicit GEMM of a kind of convolution; with groups, those of one group."""
        n, p, q, k = self.output
        per, taps, channels = k // self.groups, self.R * self.S, self.filter.c
        sizes = {
            "fprop": (n * p * q, per, taps * channels), "dgrad": (n * self.H * self.W, channels, taps * per),
            "wgrad": (per, taps * channels, n * p * q),
        }  # fmt: skip
        return GemmCoord(*sizes[known(ConvKind, kind, "conv_kind")])


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
        conv_kind: a :class:`~cute_dialect.op.pycutlass.conv.ConvKind`, which defines A, B and C.
        iterator_algorithm: an :class:`~cute_dialect.op.pycutlass.conv.IteratorAlgorithm`.
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
            super().__init__(chip, tile_description, a, b, c, epilogue_functor, swizzling_functor, visitor, D=d)
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
    def by_tma(self) -> str:
        """Empty: operands are images, not those of a plain GEMM."""
        return ""

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
