"""Operation of a pointer-array GEMM, ``D_g = activation(alpha_g * A_g B_g + beta * C_g)``, of any sizes.

operation = op.GemmOperationGrouped(80, tile, A, B, C, functor, precompute_mode=op.SchedulerMode.Host) arguments =
op.GemmGroupedArguments(operation, [(64, 32, 128), (7, 9, 11)], As, Bs, Cs, Ds, functor.epilogue_type())
operation.run(arguments) arguments.sync()
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, cast

from cute_dialect.kernels.epilogue.combination import Hook
from cute_dialect.kernels.gemm.ampere import AmpereConfig
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.pointer_array import ListedConfig
from cute_dialect.kernels.gemm.pointer_array_setup import ProblemsConfig
from cute_dialect.kernels.gemm.simt import ExactConfig
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import EpilogueError, UnsupportedError, named
from cute_dialect.op.execute.kernels import Variant, chip_here, compiled
from cute_dialect.op.problems.plan_operands import Kinds
from cute_dialect.op.pycutlass.functors import EpilogueFunctor, OutputOp, VisitorOutputOp
from cute_dialect.op.pycutlass.operation import GemmOperationUniversal, check_warps
from cute_dialect.op.pycutlass.operation_base import DescribedOperation
from cute_dialect.op.select.backends import MMA_SYNC, SIMT
from cute_dialect.op.select.descriptions import (
    OpcodeClass,
    SchedulerMode,
    Swizzle,
    TensorDescription,
    TileDescription,
    known,
)

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import Kernel

__all__ = ["GemmOperationGrouped"]


class GemmOperationGrouped(DescribedOperation):
    """A pointer-array GEMM with one tile.

    Args:
        chip: compute capability.
        tile_description: a tile of mma.sync, or one without tensor cores.
        A, B, C, D: descriptions of the operands, as for
            :class:`~cute_dialect.op.pycutlass.operation.GemmOperationUniversal`.
        epilogue_functor, swizzling_functor: as for that class.
        visitor: a function of (value, row, column).
        precompute_mode: scheduler of tiles, the kernel or the host.

    Raises:
        OpError: if there is no such kernel.
    """

    def __init__(
        self, chip: int, tile_description: TileDescription, A: TensorDescription, B: TensorDescription,
        C: TensorDescription, epilogue_functor: EpilogueFunctor | None = None,
        swizzling_functor: Swizzle | None = None, visitor: object = None, *,
        precompute_mode: str = SchedulerMode.Device, D: TensorDescription | None = None,
    ):  # fmt: skip
        super().__init__()
        self._kernels: dict[tuple[Variant, bool], Kernel] = {}
        self.precompute_mode = SchedulerMode(known(SchedulerMode, precompute_mode, "precompute_mode"))
        if visitor is True or isinstance(visitor, Traced):
            raise EpilogueError(
                "GemmOperationGrouped: a traced epilogue is not supported; pass a function of (value, row, column)"
            )
        i = tile_description.math_instruction
        simt = i is not None and i.opcode_class == OpcodeClass.Simt
        with named("GemmOperationGrouped", "Gemm"):
            self.one = GemmOperationUniversal(
                SIMT.chip if simt else chip, tile_description, A, B, C, epilogue_functor, swizzling_functor,
                cast("Hook | None", visitor), D=D,
            )  # fmt: skip
        self.chip, self.A, self.B, self.C, self.D = chip, A, B, C, self.one.D
        self.tile_description, self.swizzling_functor = tile_description, swizzling_functor
        self.epilogue_functor = self.one.epilogue_functor
        found = self.one.variant().configured
        if not isinstance(found, AmpereConfig | WarpConfig | ExactConfig) or self.one.interleaved:
            what = "interleaved matrices" if self.one.interleaved else found.name
            raise UnsupportedError(
                f"GemmOperationGrouped: {what} cannot compute problems of any sizes; use an mma.sync tile, or the "
                "first tile without tensor cores"
            )
        # An f64 block has a multiprocessor to itself, so it loads fragments ahead to hide their latency.
        ahead = isinstance(found, WarpConfig) and found.element == "f64" and not found.simt and found.warps_k == 1
        self.base: AmpereConfig | WarpConfig | ExactConfig = found._replace(ahead=True) if ahead else found
        self.variants()  # Report unsupported combinations now.

    # Attributes that all operations have.
    by_tma, backend, traced = False, MMA_SYNC, None

    @property
    def kinds(self) -> Kinds:
        """Elements and layouts of the operands."""
        return self.one.kinds

    @property
    def flipped(self) -> bool:
        """True if kernels compute ``D^T = B^T A^T``."""
        return self.D.layout == "column"

    @property
    def at_once(self) -> int:
        """Maximum bytes per copy that the described alignments allow."""
        described = [(self.A, self.A.alignment), (self.B, self.B.alignment)]
        return min([16, *[max(1, n * SIZES[x.element]) for x, n in described if n]])

    def variant(
        self, alpha: float = 1.0, beta: float = 0.0, bias: str = "", bias_type: str = "f32", *, size: int = 16
    ) -> Variant:  # fmt: skip
        """Return the kernel for such calls.  Numbers other than 1 and 0 are arguments, one per GEMM.

        ``size`` is the number of bytes that one copy moves.
        """
        found = self.one.variant(alpha, beta, bias, bias_type)
        with named("GemmOperationGrouped", "Gemm"):
            check_warps(found)
        config = ListedConfig(self.base, size, self.precompute_mode is SchedulerMode.Host)
        size = size if config.takes(size) else 1
        return found._replace(configured=config._replace(size=size))

    def tiles_variant(self) -> Variant:
        """Return the kernel that computes the prefix sums of tiles."""
        return Variant(ProblemsConfig("list", self.listed.tile), chip=chip_here())

    @property
    def listed(self) -> ListedConfig:
        """The kernel for 16-byte vectors, without an epilogue."""
        found = self.variant().configured
        assert isinstance(found, ListedConfig)
        return found

    def variants(self) -> list[Variant]:
        """Return the kernels for any alpha, without and with C."""
        betas = (0.0,) if self.C.element == "void" else (0.0, 0.5)
        found = [self.variant(size=self.at_once), *[self.variant(0.5, beta, size=self.at_once) for beta in betas]]
        return found if self.precompute_mode is SchedulerMode.Host else [*found, self.tiles_variant()]

    def kernel(self, variant: Variant, on_cpu: bool) -> Kernel:
        """Return a compiled kernel, ready to launch."""
        found = self._kernels.get((variant, on_cpu))
        if found is None:
            found = self._kernels[variant, on_cpu] = self.module(variant, on_cpu).kernel("launch")
        return found

    def compile(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Compile the kernels for the GPU, for these numbers and for the described alignments."""
        compiled(self.variant(alpha, beta, size=self.at_once))
        if self.precompute_mode is SchedulerMode.Device:
            compiled(self.tiles_variant())

    def with_numbers(self, numbers: tuple[float, ...]) -> GemmOperationGrouped:
        """Return a copy whose activation has other parameters; without any, this operation.  Raises EpilogueError."""
        if not numbers:
            return self
        found = copy(self)
        found.one = self.one.with_numbers(numbers)
        found.epilogue_functor = found.one.epilogue_functor
        return found

    def epilogue_type(self, *numbers: float) -> OutputOp | VisitorOutputOp:
        """Return the numbers of a call: ``alpha``, ``beta``, and the parameters of the activation."""
        return self.epilogue_functor.epilogue_type(*numbers)
