"""Operations of GEMMs and of reductions: names and texts, compiled kernels, and launches.

::

    operation = op.GemmOperationUniversal(90, tile, A, B, C, functor)
    operation.run(arguments)                             # GemmArguments(…, gemm_mode=Mode.GemmSplitKParallel, …)
    reduction = ReductionOperation((4, 128), C, "f32", "f32", "f32", LinearCombination("f16", 8, "f32", "f32"))
    more = ReductionArguments(reduction, (m, n), slices, arguments.workspace, d, c, reduction.epilogue_type(1.0, 0.5))
    reduction.run(more)
    more.sync()
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Protocol

from cute_dialect.kernels.epilogue.reductions import ReduceConfig
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.sm100 import Sm100Config
from cute_dialect.kernels.gemm.sm120 import Sm120Config
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.op.arrays.dtypes import checked_element
from cute_dialect.op.arrays.memory import NOWHERE
from cute_dialect.op.arrays.operand_views import is_batch
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import DtypeError, EpilogueError, ShapeError, UnsupportedError
from cute_dialect.op.execute.arguments import Arguments, on_the_cpu
from cute_dialect.op.execute.gemm import Step, Workspace, f32_like, reduction, split_steps, with_slices
from cute_dialect.op.execute.kernels import Variant, chip_here, compiled, launcher_of, share_of, splitting
from cute_dialect.op.execute.launcher import Launcher, ready
from cute_dialect.op.execute.saved import SavedKernels, ir_of, module_of
from cute_dialect.op.problems.operands import (
    Kinds,
    Operands,
    Type,
    as_planned,
    check_overlap,
    fits_results,
    new_like,
    of_shape,
    read,
)
from cute_dialect.op.pycutlass.arguments import check_kernel, example_graph
from cute_dialect.op.pycutlass.functors import EpilogueFunctor, LinearCombination, OutputOp, VisitorOutputOp
from cute_dialect.op.select.backends import MMA_SYNC, SIMT, Backend, backend_of
from cute_dialect.op.select.configurations import Configured, KernelRequest, SgemmRung, configured
from cute_dialect.op.select.descriptions import (
    ALONE,
    MathOperation,
    Split,
    Swizzle,
    TensorDescription,
    TileDescription,
)
from cute_dialect.op.select.gemm_dispatch import Plan
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.select.plan_tiles import problem_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from cute_dialect.interp import RunReport
    from cute_dialect.kernels.epilogue.combination import Epilogue, Hook
    from cute_dialect.kernels.epilogue.graph import Graph
    from cute_dialect.runtime.arrays import ArrayView
    from cute_dialect.runtime.launch import CallOptions, CompiledModule


class Launchable(Protocol):
    """The arguments of a call."""

    def launch(self) -> RunReport | None:
        """Launch, or on the CPU run the interpreter and return its report."""
        ...


class DescribedOperation:
    """Base of operations, whose kernels are :meth:`variants`.

    ``saved`` holds compiled kernels of a saved plan; None to compile them.
    """

    saved: SavedKernels | None

    def __init__(self, saved: SavedKernels | None = None):
        self.saved = saved
        self._launchers: dict[Variant, Launcher] = {}  # of saved kernels

    def variants(self) -> list[Variant]:
        """Return the kernels for any numbers."""
        raise NotImplementedError

    def first(self) -> Variant:
        """Return the kernel that names and texts refer to."""
        return self.variants()[0]

    def module(self, variant: Variant, on_cpu: bool = False) -> CompiledModule:
        """Return a compiled kernel."""
        return module_of(variant, self.saved, cpu=on_cpu)

    def launcher(self, variant: Variant, on_cpu: bool) -> Launcher:
        """Return a compiled kernel with its calling convention."""
        if self.saved is None:
            return launcher_of(variant, on_cpu)
        found = self._launchers.get(variant)
        if found is None:
            kernel = ready(self.saved.module(variant.name), share_of(variant.configured))
            found = self._launchers[variant] = Launcher(kernel, variant.recipe())
        return found

    def compile(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Compile the kernels for the GPU, for these numbers."""
        for variant in self.variants():
            compiled(variant)

    def run(self, arguments: Launchable) -> RunReport | None:
        """Launch the arguments, or on the CPU run the interpreter and return its report."""
        return arguments.launch()

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.first().name

    def procedural_name(self) -> str:
        return self.name

    def ir(self, stage: str = "cute") -> str:
        """Return the text of the kernel after a stage: ``cute``, ``expanded``, ``arch``, ``base`` or ``llvm``.

        Raises UnsupportedError for other stages.
        """
        return ir_of(self.first(), stage)

    @property
    def ptx(self) -> str:
        """The PTX text."""
        return self.module(self.first()).ptx

    @property
    def report(self) -> str:
        """The report of ptxas: registers and spills."""
        return self.module(self.first()).report

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


# ---------------------------------------------------------------------------------------------------------------- GEMMs


class GemmOperationUniversal(DescribedOperation):
    """``D = f(A B, C)`` with one tile, for operands of given elements and layouts.  Nothing is compiled yet.

    Args:
        chip: compute capability, 80 (mma.sync) or 90.
        tile_description: the tile.
        A, B, C: descriptions of the operands.
        epilogue_functor: the epilogue, or a traced one.
        swizzling_functor: order of the tiles.
        visitor: a traced epilogue, which replaces the functor; True if the functor is one; or a function of (value,
            row, column) in the kernel language.
        D: description of D, by default that of C.

    Raises:
        UnsupportedError: if there is no such kernel.
    """

    def __init__(
        self, chip: int, tile_description: TileDescription, A: TensorDescription, B: TensorDescription,
        C: TensorDescription, epilogue_functor: EpilogueFunctor | Traced | None = None,
        swizzling_functor: Swizzle | None = None, visitor: Traced | Hook | bool | None = None, *,
        D: TensorDescription | None = None,
    ):  # fmt: skip
        super().__init__()
        self.chip = chip
        self.A, self.B, self.C = A, B, C
        self.D = D or C
        if self.D.element == "void":
            raise DtypeError("Gemm: C is void, so the element type of D is unknown; pass D")
        if C.element != "void" and (C.element, C.layout) != (self.D.element, self.D.layout):
            raise UnsupportedError(
                f"Gemm: C is {C.element}, {C.layout}-major; it must be {self.D.element}, {self.D.layout}-major, like D"
            )
        self.interleaved = _interleaved(A, B, C, self.D)
        if self.interleaved and (isinstance(epilogue_functor, Traced) or isinstance(visitor, Traced)):
            name = next(x.name for x in (epilogue_functor, visitor) if isinstance(x, Traced))
            raise UnsupportedError(f"Gemm: interleaved matrices do not support traced epilogues ({name})")
        accumulator = _accumulator(tile_description, A.element)
        if isinstance(epilogue_functor, Traced):
            epilogue_functor, visitor = None, epilogue_functor if visitor in (True, None) else visitor
        self.epilogue_functor = epilogue_functor or LinearCombination(self.D.element, self.D.alignment, accumulator)
        if self.epilogue_functor.element_output != self.D.element:
            raise EpilogueError(
                f"Gemm: epilogue_functor is {self.epilogue_functor!r}; its result must be {self.D.element}, like D"
            )
        self.swizzling_functor = swizzling_functor
        if visitor is True:
            raise EpilogueError("Gemm: visitor=True needs a traced epilogue_functor; pass op.epilogue.trace(…)")
        self.traced = visitor if isinstance(visitor, Traced) else None
        self.visitor = visitor or None
        self._hook = None if visitor is True or isinstance(visitor, Traced) else visitor or None
        self._graph: Graph | None = None
        self.tile_description = tile_description
        self._request = self._asked()
        self._configured = {(False, False): self._configure(False, False)}
        self._partial: GemmOperationUniversal | None = None
        self._sharing: dict[tuple[str, int], GemmOperationUniversal | None] = {}
        self._numbered: dict[tuple[float, ...], Self] = {}
        self.variants()  # Report unsupported combinations now.

    # ------------------------------------------------------------------------------------------------------ kernels

    def _asked(self) -> KernelRequest:
        """Return the requirements of the kernels for matrices.  Raises DtypeError."""
        i = self.tile_description.math_instruction
        accumulator = _accumulator(self.tile_description, self.A.element)
        layouts = self.A.plain, self.B.plain, self.D.plain
        element_a = self.A.element if i is None else i.element_a
        element_b = self.B.element if i is None else i.element_b
        floats = {self.A.element, self.B.element} <= {"f32", "tf32"} and element_a == element_b in ("f32", "tf32")
        if (element_a, element_b) != (self.A.element, self.B.element) and not floats:
            what = f"{self.A.element} and {self.B.element}"
            raise DtypeError(f"Gemm: the math_instruction is for {element_a} and {element_b}; A and B have {what}")
        scaling = "" if i is None else i.scaling
        asked = KernelRequest(element_a, element_b, accumulator, self.D.element, *layouts, sums=scaling)
        return asked._replace(has_tma=SIMT.is_allowed(self.chip), chip=self.chip)

    def _configure(self, batch: bool, array: bool) -> Configured:
        asked = self._request._replace(batch=batch, array=array)
        found = configured(self.tile_description, asked, self.swizzling_functor)
        if self.interleaved:
            if not isinstance(found, WarpConfig):
                raise UnsupportedError(
                    f"Gemm: kernel {found.name} does not support interleaved matrices; use mma.sync [16, 8, 32]"
                )
            found = found._replace(interleaved=True, vectors=(16,))
        if not backend_of(found).is_allowed(self.chip):
            name = backend_of(found).name
            raise UnsupportedError(f"Gemm: the tile uses {name}, which sm_{self.chip} lacks; use an mma.sync tile")
        return found

    @property
    def kinds(self) -> Kinds:
        """Elements and layouts of the operands."""
        a, b, c, d = (Type(x.element, x.plain) for x in (self.A, self.B, self.C, self.D))
        return Kinds(a, b, None if c.element == "void" else c, d)

    @property
    def saturates(self) -> bool:
        """True if i32 accumulators saturate, so that partial sums cannot be added up."""
        i = self.tile_description.math_instruction
        return i is not None and i.math_operation == MathOperation.multiply_add_saturate

    def variant(
        self, alpha: float = 1.0, beta: float = 0.0, bias: str = "", bias_type: str = "f32", *, batch: bool = False,
        array: bool = False, graph: Graph | None = None,
    ) -> Variant:  # fmt: skip
        """Return the kernel for such a call.

        Args:
            alpha, beta: values other than 1 and 0 become launch arguments.
            bias, bias_type: index of the bias ("n" or "m"), and its type.
            batch: True for a batch.
            array: True for pointer arrays.
            graph: graph of a traced epilogue with the call's arrays, by default with its examples.
        """
        if (batch, array) not in self._configured:
            self._configured[batch, array] = self._configure(batch, array)
        if self.interleaved and beta != 0.0:
            raise UnsupportedError(f"Gemm: beta={beta} is not supported for interleaved matrices; use beta=0")
        epilogue = self.epilogue_for(alpha, beta, bias, bias_type, graph)
        one = self._configured[batch, array]
        found = Variant(one, epilogue, self.D.layout == "column", backend_of(one).target or chip_here())
        if epilogue.graph is not None:
            check_kernel(found)
        return found

    def epilogue_for(
        self, alpha: float = 1.0, beta: float = 0.0, bias: str = "", bias_type: str = "f32", graph: Graph | None = None
    ) -> Epilogue:
        """Return the epilogue of a kernel; ``graph`` is that of a traced one, by default of its examples."""
        if self.traced is None:
            return self.epilogue_functor.epilogue(alpha, beta, bias, bias_type, self._hook)
        if graph is None:
            graph = self._graph = self._graph or example_graph(self.traced, self.kinds)
        return self.epilogue_functor.visited(graph)

    def variants(self) -> list[Variant]:
        """Return the kernels for any alpha, without and with C, and those that split single operands into tf32 parts.

        For a traced epilogue, return the kernel for its examples.
        """
        if self.traced is not None:
            return [self.variant(batch=len(self.traced.examples["accum"].shape) == 3), *self.splitters()]
        betas = (0.0,) if self.C.element == "void" or self.interleaved else (0.0, 0.5)
        of_any = (
            [] if isinstance(self._configured[False, False], SgemmRung) else [self.variant(0.5, beta) for beta in betas]
        )
        return [self.variant(), *of_any, *self.splitters()]

    @property
    def in_parts(self) -> bool:
        """True if the kernel multiplies f32 that other kernels split into tf32 parts first."""
        return self.tile_description.in_parts

    def splitters(self) -> list[Variant]:
        """Return the kernels that split A and B into tf32 parts; none if nothing is split."""
        if not self.in_parts:
            return []
        return [Variant(x, chip=chip_here()) for x in splitting(self.A.layout, self.B.layout, False, False)]

    def variant_for(self, x: Operands, *, array: bool = False) -> Variant:
        """Return the kernel for a call's operands.  ``array`` is True for pointer arrays."""
        bias_type = "f32" if x.bias is None else x.bias.dtype
        found = self.variant(
            x.alpha, x.beta, x.along, bias_type, batch=array or len(x.d.shape) == 3, array=array, graph=x.graph
        )
        if x.graph is not None:
            check_kernel(found, x.b.shape[-1])
        check_warps(found)
        return found

    @property
    def sums(self) -> str:
        """Type of accumulators in memory: f32, f64 or i32."""
        found = self.epilogue_functor.element_accumulator
        return "f32" if found == "f16" else found

    def reduction_variant(self, x: Operands) -> Variant:
        """Return the kernel that adds up split-K slices and computes the epilogue."""
        e = self.epilogue_for(x.alpha, x.beta, x.along, "f32" if x.bias is None else x.bias.dtype, x.graph)
        config = ReduceConfig(self.sums, self.D.element, len(x.d.shape) == 3)
        return Variant(config, e, self.D.layout == "column", chip_here())

    def plan_for(self, x: Operands, split: Split = ALONE) -> Plan:
        """Return the plan of a call with such operands, of which only shapes, strides and alignments matter.

        Raises UnsupportedError, EpilogueError.
        """
        if x.a.shape[-1] == 0:  # There are no slices to add up.
            return self._plan(x, self.reduction_variant(x))._replace(splitters=())
        # The accumulators of the tf32 parts can go to a workspace if the kernel cannot write D directly.
        writes = not self.in_parts or fits_results(x, flipped=self.D.layout == "column")
        if split.parts == 1 and writes:
            return self._plan(x, self.variant_for(x))
        if self.saturates:
            raise _no_slices()
        if split.parts > 1 and split.mode != "parallel":
            shared = self.sharing(split, self._after_splitters(x)) if writes else None
            if shared is not None:
                return self._plan(x, shared.variant_for(x))
            if split.mode == "stream":
                raise self._no_stream_k(x)
        if not x.by_element and split.parts == 1:
            raise EpilogueError(
                "Gemm: an epilogue with pairs() or reductions needs a D whose address and row stride are multiples of "
                "16 bytes"
            )
        if not x.by_element:
            raise EpilogueError(
                "split_k with mode 'parallel' does not support an epilogue with pairs() or reductions; use split_k=1"
            )
        return self.sliced_plan(x, split.parts)

    def _no_stream_k(self, x: Operands) -> UnsupportedError:
        """Return the error for stream-K of a tile that does not support it."""
        name = backend_of(self.first().configured).name
        if self.choice is None:
            what = f"needs wgmma kernels of sm_90, but the tile uses {name} (kernel_cc={self.chip})"
        elif len(x.d.shape) == 3:
            what = "does not support a batch"
        elif x.graph is not None and (x.graph.paired or x.graph.whole_rows):
            what = "does not support an epilogue with pairs() or row reductions"
        else:
            what = f"is not supported for the tile {self.tile_description.name}"
        return UnsupportedError(f"split_k='stream' {what}; pass a number of slices, such as split_k=2")

    def sliced_plan(self, x: Operands, parts: int) -> Plan:
        """Return the plan of a call with a workspace of split-K slices.  Raises UnsupportedError."""
        if self.saturates:
            raise _no_slices()
        sums = self.partial()

        def kernel_for(slices: Operands, array: bool) -> Configured:
            return sums.variant_for(slices, array=array).configured

        return with_slices(self._plan(x, self.reduction_variant(x)), self._after_splitters(x), parts, kernel_for)

    def _plan(self, x: Operands, variant: Variant) -> Plan:
        """Return the plan of a kernel."""
        m, n, k = x.a.shape[-2], x.b.shape[-1], x.a.shape[-1]
        asked = self._request
        if self.in_parts:
            asked = asked._replace(math=MathOperation.multiply_add_fast_f32).of_parts()
        problem = problem_of(asked, m, n, k, x.d.shape[0] if len(x.d.shape) == 3 else 1)
        splitters = self._splitters_for(x)
        return Plan(problem, variant.configured, variant.epilogue, variant.flipped, variant.chip, splitters)

    def _splitters_for(self, x: Operands) -> tuple[PartsConfig, ...]:
        """Return the kernels that split the operands of a call into tf32 parts."""
        return splitting(self.A.layout, self.B.layout, is_batch(x.a), is_batch(x.b)) if self.in_parts else ()

    def _after_splitters(self, x: Operands) -> Operands:
        """Return the operands as the kernel reads them, without memory for their tf32 parts."""
        return split_steps(self._splitters_for(x), x, f32_like(x.d._replace(library=NOWHERE)))[0]

    def alone(self) -> dict[str, object]:
        """Return the fields of the tile for a kernel without split-K and stream-K."""
        td = self.tile_description
        usual: dict[str, object] = {"epilogue_schedule": None, "tile_scheduler": None, "parts": 1}
        if td.kernel_schedule == "few_rows":
            usual |= {"kernel_schedule": None, "cluster_shape": (1, 1, 1), "stages": 0, "warp_count": None}
        return usual

    def partial(self) -> GemmOperationUniversal:
        """Return the operation of the same tile whose result is the accumulator."""
        if self._partial is None:
            td = self.tile_description.replace(self.alone())
            of = TensorDescription(self.sums, self.D.layout)
            functor = LinearCombination(self.sums, 0, self.epilogue_functor.element_accumulator)
            void = TensorDescription("void", self.D.layout)
            self._partial = GemmOperationUniversal(self.chip, td, self.A, self.B, void, functor, D=of)
        return self._partial

    def sharing(self, split: Split, x: Operands) -> GemmOperationUniversal | None:
        """Return the operation of the same tile with split-K or stream-K.

        Returns None if there is none, or if the blocks of this call would not all be resident at once.
        """
        paired = x.graph is not None and (x.graph.paired or x.graph.whole_rows)
        if self.choice is None or paired or (len(x.d.shape) == 3 and split.mode == "stream"):
            return None
        c = self.choice.config
        steps = -(-x.a.shape[-1] // c.tile[2])
        parts = min(split.parts, steps)
        stream = split.mode == "stream"
        if parts < 2:
            return self
        more = {"tile_scheduler": "stream_k"} if stream else {"tile_scheduler": "split_k", "parts": parts}
        if (split.mode, parts) not in self._sharing:
            td = self.tile_description.replace(self.alone() | more)
            try:
                made = GemmOperationUniversal(
                    self.chip, td, self.A, self.B, self.C, self.epilogue_functor, self.swizzling_functor, self.visitor,
                    D=self.D,
                )  # fmt: skip
            except (UnsupportedError, EpilogueError):
                made = None
            self._sharing[split.mode, parts] = made
        found = self._sharing[split.mode, parts]
        if found is None or found.choice is None or stream:
            return found
        c = found.choice.config
        transposed = found.variant().recipe().transposed
        *batch, m, n = x.d.shape
        m, n = (n, m) if transposed else (m, n)
        tiles = -(-m // (c.tile[0] * c.cluster_m)) * -(-n // (c.tile[1] * c.cluster_n)) * c.cluster
        tiles *= batch[0] if batch else 1
        return found if tiles * parts <= c.at_once else None

    def with_numbers(self, numbers: tuple[float, ...]) -> Self:
        """Return a copy whose activation has other parameters, which are constants of its kernels; without any, this
        operation.

        Raises EpilogueError.
        """
        if numbers and numbers not in self._numbered:
            found = copy(self)
            found.epilogue_functor = self.epilogue_functor.with_numbers(numbers)
            found._sharing, found._numbered = {}, {}
            self._numbered[numbers] = found
        return self._numbered[numbers] if numbers else self

    def compile(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Compile the kernel for the GPU, for these numbers."""
        for variant in (self.first() if self.traced is not None else self.variant(alpha, beta), *self.splitters()):
            compiled(variant)

    @property
    def backend(self) -> Backend:
        """The family of the kernel."""
        return backend_of(self._configured[False, False])

    @property
    def needs_hopper(self) -> bool:
        """True if the kernel runs on sm_90 only."""
        return self.backend.specific

    @property
    def by_tma(self) -> str:
        """The operands whose addresses and row strides must be multiples of 16 bytes, such as ``ABCD``."""
        match self._configured[False, False]:
            case Choice():
                return "" if self.in_parts else "ABCD"
            case Sm100Config() as config:
                return "AB" if config.direct else "ABCD"
            case Sm120Config():
                return "AB"
            case _:
                return ""

    @property
    def choice(self) -> Choice | None:
        """The Hopper kernel, or None for others."""
        found = self._configured[False, False]
        return found if isinstance(found, Choice) else None

    # ------------------------------------------------------------------------------------------------------- calls

    def epilogue_type(self, *numbers: float, **arguments: object) -> OutputOp | VisitorOutputOp:
        """Return the numbers of a call: ``alpha``, ``beta`` and the parameters of the activation.

        For a traced epilogue, pass its arguments and results by name, and ``problem_size``, (M, N), for flat arrays.
        """
        if self.traced is None:
            return self.epilogue_functor.epilogue_type(*numbers, **arguments)
        if numbers:
            raise EpilogueError(f"epilogue {self.traced.name}: arguments must be passed by name, got {numbers}")
        return VisitorOutputOp(arguments)


def _interleaved(A: TensorDescription, B: TensorDescription, C: TensorDescription, D: TensorDescription) -> bool:
    """Return True if the matrices are interleaved.  Raises UnsupportedError unless all are, with 8-bit integers."""
    given = [A, B, D] if C.element == "void" else [A, B, C, D]
    if not any([x.interleaved for x in given]):
        return False
    column, row = "column-interleaved-32", "row-interleaved-32"
    wanted = [column, row, *[column] * (len(given) - 2)]
    if [x.layout for x in given] != wanted or not {A.element, B.element, D.element} <= {"i8", "ui8"}:
        raise UnsupportedError(
            "Gemm: interleaved matrices must be 8-bit integers, A, C and D ColumnMajorInterleaved32, and B "
            "RowMajorInterleaved32; got " + ", ".join([f"{x.element} {x.layout}" for x in given])
        )
    return True


def _no_slices() -> UnsupportedError:
    """Return the error for slices of an operation whose accumulators saturate."""
    return UnsupportedError(
        "split_k cannot be combined with a saturating accumulator, because partial sums would not saturate; "
        "use split_k=1"
    )


def _accumulator(td: TileDescription, element: str) -> str:
    """Return the type of the accumulator."""
    i = td.math_instruction
    if i is not None:
        return i.element_accumulator
    return {"i8": "i32", "ui8": "i32", "f64": "f64"}.get(checked_element(element), "f32")


def check_warps(variant: Variant) -> None:
    """Raise EpilogueError if an mma.sync kernel does not support the epilogue; f64 kernels compute none in f32."""
    kernel = variant.kernel if isinstance(variant.configured, WarpConfig) else None
    if isinstance(kernel, WarpConfig):
        try:
            kernel.check()
        except ValueError as e:
            raise EpilogueError(f"Gemm: {e}") from None


# ----------------------------------------------------------------------------------------- reductions of split-K slices


class ReductionOperation(DescribedOperation):
    """``D = f(sum of slices, C)``.

    Args:
        shape, count: accepted for compatibility with PyCUTLASS; the kernel has its own tile.
        C: description of C and D.
        element_accumulator, element_workspace: type of the accumulators, f32, f64 or i32.
        epilogue_functor: the epilogue.

    Raises:
        UnsupportedError: if the types are not supported.
    """

    backend, by_tma = MMA_SYNC, ""

    def __init__(
        self, shape: Sequence[int], C: TensorDescription, element_accumulator: object = "f32",
        element_workspace: object = "f32", element_compute: object = "f32",
        epilogue_functor: EpilogueFunctor | None = None, count: int = 1,
    ):  # fmt: skip
        super().__init__()
        self.shape, self.count, self.C, self.D = tuple(shape), count, C, C
        self.element_workspace = checked_element(element_workspace, "element_workspace")
        accumulator = checked_element(element_accumulator, "element_accumulator")
        if self.element_workspace not in ("f32", "f64", "i32") or accumulator != self.element_workspace:
            raise UnsupportedError(
                f"ReductionOperation: the accumulator has type {accumulator} and the workspace "
                f"{self.element_workspace}; both must have the same type, f32, f64 or i32"
            )
        self.epilogue_functor = epilogue_functor or LinearCombination(C.element, 0, accumulator, element_compute)

    def epilogue_type(self, alpha: float = 1.0, beta: float = 0.0, *arguments: float) -> OutputOp:
        """Return the numbers of a call."""
        return self.epilogue_functor.epilogue_type(alpha, beta, *arguments)

    def with_numbers(self, numbers: tuple[float, ...]) -> ReductionOperation:
        """Return a copy whose activation has other parameters; without any, this operation.  Raises EpilogueError."""
        if not numbers:
            return self
        found = copy(self)
        found.epilogue_functor = self.epilogue_functor.with_numbers(numbers)
        return found

    def reduction_variant(self, x: Operands) -> Variant:
        """Return the kernel for a call's operands."""
        config = ReduceConfig(self.element_workspace, self.D.element, len(x.d.shape) == 3)
        e = self.epilogue_functor.epilogue(x.alpha, x.beta)
        return Variant(config, e, self.D.layout == "column")

    def variants(self) -> list[Variant]:
        """Return the kernels for any alpha, without and with C."""
        config = ReduceConfig(self.element_workspace, self.D.element)
        numbers = ((1.0, 0.0), (0.5, 0.0), (0.5, 0.5))
        flipped = self.D.layout == "column"
        return [Variant(config, self.epilogue_functor.epilogue(*pair), flipped) for pair in numbers]


class ReductionArguments(Arguments):
    """The operands of a reduction.

    Args:
        operation: the operation.
        problem_size: (M, N).
        partitions: number of slices that the GEMM was asked for.
        workspace: the GEMM's :attr:`~cute_dialect.op.pycutlass.arguments.GemmArguments.workspace`.
        destination: D, allocated if it is None.
        source: C.
        output_op: the numbers of the epilogue.
        like: an array whose library and device D gets, if there is no C.

    Raises:
        OpError: if an operand does not fit.
    """

    def __init__(
        self, operation: ReductionOperation, problem_size: Sequence[int], partitions: int, workspace: Workspace | None,
        destination: object = None, source: object = None, output_op: OutputOp | None = None, *, like: object = None,
        stream: object = None, **options: Unpack[CallOptions],
    ):  # fmt: skip
        call, output_op = "ReductionArguments", output_op or OutputOp()
        operation = operation.with_numbers(output_op.arguments)
        if workspace is None:
            raise ShapeError(f"{call}: workspace is None; pass that of GemmArguments after the GEMM has run")
        if workspace.asked != partitions:
            raise ShapeError(f"{call}: partitions is {partitions}, but the GEMM has {workspace.asked} split-K slices")
        if workspace.element != operation.element_workspace:
            raise UnsupportedError(
                f"{call}: the workspace has type {workspace.element}; it must have {operation.element_workspace}"
            )
        m, n = tuple(problem_size)[:2]
        wanted, on_cpu = Type(operation.D.element, operation.D.layout), on_the_cpu(options)
        rows = n if wanted.layout == "column" else m
        if workspace.memory.shape[0] != rows:
            raise ShapeError(f"{call}: the workspace has {workspace.memory.shape[0]} rows; problem_size needs {rows}")
        destination = (
            new_like(like if source is None else source, (m, n), wanted) if destination is None else destination
        )
        views: list[ArrayView | None] = []
        for name, array in (("destination", destination), ("source", source)):
            if array is None or (name == "source" and output_op.beta == 0.0):
                views.append(None)
                continue
            view = of_shape(call, name, read(call, name, array, on_cpu), (m, n), wanted.layout, "")
            views.append(as_planned(call, name, view, wanted))
        if output_op.beta != 0.0 and views[1] is None:
            raise ShapeError(f"{call}: beta is {output_op.beta}, but source is missing; pass source or beta=0")
        to = views[0]
        assert to is not None
        w = workspace.memory
        if views[1] is not None:
            check_overlap(call, {"destination": to, "source": views[1]}, "destination", "source")
        operands = Operands(w, w, to, views[1], None, output_op.alpha, output_op.beta)
        self.workspace = workspace
        super().__init__(operation, operands, destination, stream, options)  # type: ignore[arg-type]

    def steps(self, x: Operands) -> list[Step]:
        """Return the launch."""
        return [reduction(self.operation.reduction_variant(x), x, self.workspace)]
