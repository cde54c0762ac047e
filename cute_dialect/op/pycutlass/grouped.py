"""Pointer-array GEMMs, ``D_g = activation(alpha_g * A_g B_g + beta * C_g)``, of any sizes: operation and arguments.

::

    operation = op.GemmOperationGrouped(80, tile, A, B, C, functor, precompute_mode=op.SchedulerMode.Host)
    sizes = [(64, 32, 128), (7, 9, 11)]
    arguments = op.GemmGroupedArguments(operation, sizes, As, Bs, Cs, Ds, functor.epilogue_type())
    operation.run(arguments)
    arguments.sync()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.kernels.epilogue.combination import Hook
from cute_dialect.kernels.gemm.ampere import AmpereConfig
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.pointer_array import COLUMNS, ListedConfig, ProblemsConfig
from cute_dialect.kernels.gemm.simt import ExactConfig
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.memory import new_memory
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import EpilogueError, UnsupportedError, named
from cute_dialect.op.execute.arguments import Arguments, Transfer, check_gpu, on_the_cpu
from cute_dialect.op.execute.kernels import Variant, chip_here, compiled
from cute_dialect.op.execute.launcher import Launch
from cute_dialect.op.execute.pointer_arrays import Copies, TableLaunch, check_results, table_launch, table_like
from cute_dialect.op.problems.operands import Kinds, Operands
from cute_dialect.op.problems.pointer_arrays import (
    Laid,
    Numbers,
    check_places,
    extents_of,
    laid_flat,
    numbers_of,
    problems_of,
    sizes_of,
    tiles_of,
    turns_of,
)
from cute_dialect.op.pycutlass.functors import EpilogueFunctor, OutputOp, VisitorOutputOp
from cute_dialect.op.pycutlass.operation import DescribedOperation, GemmOperationUniversal, check_warps
from cute_dialect.op.select.backends import MMA_SYNC, SIMT
from cute_dialect.op.select.descriptions import (
    GemmCoord,
    OpcodeClass,
    SchedulerMode,
    Swizzle,
    TensorDescription,
    TileDescription,
    known,
)
from cute_dialect.runtime.arrays import ArrayView, stream_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.interp import RunReport
    from cute_dialect.runtime.launch import CallOptions, Kernel


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
    by_tma, backend, traced = "", MMA_SYNC, None

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
    ) -> Variant:
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


# ------------------------------------------------------------------------------------------------------------ arguments


class GroupArguments(Arguments):
    """Checked operands of GEMMs of any sizes, with :meth:`launch`, :meth:`sync` and :meth:`bind`.

    ``D`` holds the results, ``kernels`` the names of the kernels of the last launch.
    """

    def __init__(
        self, operation: GemmOperationGrouped, found: Sequence[Operands], D: Sequence[Any], numbers: Numbers,
        stream: object = None, options: CallOptions | None = None, call: str = "GemmGroupedArguments",
    ):  # fmt: skip
        super().__init__(cast(Any, operation), found[0], list(D), stream, options or {}, call=call)
        self.grouped = operation
        self.found = [x._replace(alpha=alpha) for x, alpha in zip(found, numbers.host)]
        self.numbers = numbers
        check_results(call, found)
        check_places(call, found)
        flipped = operation.flipped
        self.extents = [extents_of(x, flipped=flipped) for x in self.found]
        # Bytes that one copy moves, for each GEMM; 0 for empty ones.
        self.sizes = sizes_of(call, operation.listed, self.found, flipped=flipped, most=operation.at_once)
        first = found[0]
        self._of_bias = first.along, "f32" if first.bias is None else first.bias.dtype
        with named(call, "GemmOperationGrouped"):
            self._variant(operation.at_once)  # Report unsupported combinations before the launch.
        self.kernels: list[str] = []
        self._copies: Copies | None = None

    @property
    def variants(self) -> list[Variant]:
        """The kernels of the GEMMs, one per copy size, the largest first."""
        return [self._variant(size) for size in sorted({*self.sizes} - {0}, reverse=True)]

    def _variant(self, size: int) -> Variant:
        alpha = 1.0 if self.numbers.plain else 0.5
        return self.grouped.variant(alpha, self.numbers.beta, *self._of_bias, size=size)

    @property
    def problem(self) -> str:
        """The extents of all GEMMs as text."""
        return "+".join(["x".join(map(str, size)) for size in self.problem_sizes])

    def sources(self) -> list[Variant]:
        """Return the kernels to launch: those of the GEMMs, and the one that schedules tiles."""
        found = self.variants
        return found if self.grouped.listed.host or not found else [*found, self.grouped.tiles_variant()]

    @property
    def problem_sizes(self) -> list[GemmCoord]:
        """The extents of each GEMM."""
        return [GemmCoord(x.d.shape[0], x.d.shape[1], x.a.shape[1]) for x in self.found]

    def launch(self) -> RunReport | None:
        """Launch without waiting.  On the CPU, run the interpreter and return its report."""
        first = self.found[0].d
        if not self.on_cpu:
            check_gpu(self.call, self.operation, self.found[0])
        self.kernels = []
        if not any(self.sizes):
            return None
        if first.device >= 0:
            raw = stream_of(self.stream, (first,))
            self._run(self._laid(self.found), raw, self.options)
            self._waits_for(first.device, raw)
            return None
        copies = Copies(self.found, bias=True)
        laid = self._laid(copies.there)
        if self.on_cpu:
            report = self._run(laid, None, self.options)
            copies.back()
            return report
        self._copies = copies
        flat = Operands(laid.a, laid.b, laid.d, laid.c, laid.bias)
        self._transfer = Transfer(flat, self.options.get("device"))
        x = self._transfer.operands
        options = cast("CallOptions", {n: v for n, v in self.options.items() if n != "device"})
        raw = 0 if self.stream is None else stream_of(self.stream, (x.d,))
        self._run(laid._replace(a=x.a, b=x.b, d=x.d, c=x.c, bias=x.bias), raw, options)
        self._waits_for(x.d.device, raw)
        return None

    def _laid(self, found: Sequence[Operands]) -> Laid:
        return laid_flat(self.grouped.listed, found, flipped=self.grouped.flipped)

    def _calls(self, laid: Laid) -> list[tuple[Kernel, Variant, tuple[object, ...]]]:
        """Return the kernels and their arguments.  One kernel computes all GEMMs of the same copy size."""
        import numpy as np

        like, on_cpu = laid.d, self.on_cpu
        tile, host = self.grouped.listed.tile, self.grouped.listed.host
        found: list[tuple[Kernel, Variant, tuple[object, ...]]] = []
        for variant in self.variants:
            config = variant.configured
            assert isinstance(config, ListedConfig)
            mine = [size == config.size for size in self.sizes]
            extents = [x if here else (0, *x[1:]) for x, here in zip(self.extents, mine)]
            table = laid.table.copy()
            table[[not here for here in mine], 0] = 0
            problems = table_like(table, like)
            if host:
                turns = table_like(turns_of(extents, tile), like)
            else:
                turns = new_memory(like, len(extents), "i32")
                tiles = self.grouped.tiles_variant()
                found.append((self.grouped.kernel(tiles, on_cpu), tiles, (problems, turns)))
            given: list[object] = [x for x in (laid.c, laid.bias) if x is not None]
            kind = np.float64 if config.elements[2] == "f64" else np.float32
            if variant.epilogue.alpha == "arg":
                given.append(self.numbers.device or table_like(np.array(self.numbers.host, kind), like))
            if variant.epilogue.beta == "arg":
                given.append(table_like(np.full(len(extents), self.numbers.beta, kind), like))
            blocks = int(tiles_of(extents, tile).sum())
            operands = (laid.a, laid.b, laid.d, problems, turns, blocks, *given)
            found.append((self.grouped.kernel(variant, on_cpu), variant, operands))
        return found

    def _run(self, laid: Laid, stream: object, options: CallOptions) -> RunReport | None:
        report = None
        for kernel, variant, given in self._calls(laid):
            report = kernel(*given, stream=stream, **options)
            self.kernels.append(variant.name)
        return report

    def prepared(self) -> Launch | None:
        """Return a launch of the call on torch tensors at other addresses, or None if there is none.

        A call can be replayed if the host schedules tiles and the kernels read A and B only.
        """
        if not self.grouped.listed.host or not any(self.sizes):
            return None
        laid = self._laid(self.found)
        if laid.c is not None or laid.bias is not None or self.numbers.device is not None or self.grouped.flipped:
            return None
        import numpy as np

        parts: list[TableLaunch] = []
        for kernel, variant, given in self._calls(laid):
            launch = kernel.by_address(*given)
            config = variant.configured
            if launch is None or not isinstance(config, ListedConfig):
                return None
            turns, *more = (cast(ArrayView, x) for x in (given[4], *given[6:]))
            here = np.array([size == config.size for size in self.sizes])
            parts.append(TableLaunch(launch, here, turns.pointer, tuple([x.pointer for x in more]), given[4:]))
        of_d = (laid.table[:, 0] > 0) & (laid.table[:, 1] > 0)
        lives = [np.flatnonzero(x) for x in (of_d & (laid.table[:, 2] > 0), of_d & (laid.table[:, 2] > 0), of_d)]
        operands = [
            (COLUMNS.index(column), live, SIZES[getattr(self.found[0], name).dtype])
            for name, column, live in zip("abd", "abc", lives)
        ]
        arrays = [getattr(self.found[i], name) for name, live in zip("abd", lives) for i in live]
        run = table_launch(laid.table.copy(), operands, parts, laid.d._replace(keep=None))
        return Launch(run, tuple(arrays), 15)

    def _bound(self) -> Sequence[Callable[..., None]]:
        calls = self._calls(self._laid(self.found)) if any(self.sizes) else []
        return [kernel.bind(*given) for kernel, _, given in calls]

    def shown(self) -> Variant:
        """Return the first kernel of the GEMMs."""
        return (self.variants or [self._variant(16)])[0]

    def sync(self) -> None:
        """Wait for the launch; results in NumPy arrays are valid afterwards."""
        super().sync()
        copies, self._copies = self._copies, None
        if copies is not None:
            copies.back()


class GemmGroupedArguments(GroupArguments):
    """The operands of a call of :class:`~cute_dialect.op.pycutlass.grouped.GemmOperationGrouped`.

    Args:
        operation: the operation.
        problem_sizes: (M, N, K) of each GEMM if A and B are flat arrays, which then have the described layouts.
        A, B, C, D: lists of arrays, or of addresses; D is allocated if it is None.
        output_op: the numbers of the epilogue, from the operation's ``epilogue_type``.
        bias: a list of (N,) or (M, 1), or one for all.
        stream: stream of the launch.
        options: options of a kernel call, such as ``device="cpu"``, and those of the interpreter.

    Raises:
        OpError: if an operand does not fit.
    """

    def __init__(
        self, operation: GemmOperationGrouped, problem_sizes: Sequence[Sequence[int]] | None, A: object, B: object,
        C: object = None, D: object = None, output_op: OutputOp | None = None, *, bias: object = None,
        stream: object = None, **options: Unpack[CallOptions],
    ):  # fmt: skip
        call, output_op = "GemmGroupedArguments", output_op or OutputOp()
        if not isinstance(output_op, OutputOp):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise EpilogueError(
                f"{call}: output_op is {output_op}; it must come from operation.epilogue_type(alpha, beta)"
            )
        operation = operation.with_numbers(output_op.arguments)
        on_cpu = on_the_cpu(options)
        found, results = problems_of(
            call, operation.kinds, A, B, C, D, beta=output_op.beta, bias=bias, sizes=problem_sizes, on_cpu=on_cpu
        )
        numbers = numbers_of(call, output_op.alpha, output_op.beta, len(found), on_cpu)
        super().__init__(operation, found, results, numbers, stream, options, call)
