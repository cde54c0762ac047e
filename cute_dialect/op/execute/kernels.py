"""Compiled GEMM kernels, cached by their configuration, and the objects that launch them."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.epilogue.graph import parts_of
from cute_dialect.kernels.gemm.config import SplitConfig
from cute_dialect.op.arrays.memory import pool_of
from cute_dialect.op.execute.kernel_cache import compiled_kernel
from cute_dialect.op.execute.recording import Launch, unrecorded
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.runtime.arrays import ArrayView, current_stream_of_torch, stream_of, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.epilogue.finish_reduction import CombineConfig
    from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
    from cute_dialect.op.select.gemm_dispatch import AnyConfig
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = [
    "RunKernel", "Runner", "any_rows", "any_rows_library", "any_text",
    "combiner", "library", "padder", "run_any", "runner", "splitter", "splitter_library", "text_of",
    "transposed", "turned_extras",
]  # fmt: skip


def text_of(choice: Choice) -> str:
    """Return the kernel's MLIR text.

    The kernel uses programmatic dependent launch.  It starts while the previous kernel in its stream ends, and waits
    for that kernel before it reads or writes.  In a chain of small GEMMs this saves 0.6 us per GEMM.
    """
    from cute_dialect.kernels.gemm import gemm_text  # late: start-up
    from cute_dialect.kernels.gemm.few_rows import few_rows_text  # late: start-up

    if choice.skinny is not None:
        return few_rows_text(choice.skinny._replace(dependent=True))
    config = choice.config._replace(dependent=True)
    return gemm_text(SplitConfig(config, choice.parts) if choice.parts > 1 else config)


def library(choice: Choice, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel, from the compile cache if it is there.

    Args:
        ``elsewhere``: compile in another process.
        cpu: compile for the interpreter.
    """
    return compiled_kernel(choice.name, partial(text_of, choice), elsewhere=elsewhere, cpu=cpu)


class RunKernel:
    """A kernel with the workspace that its blocks share.

    Call it with A (M, K), B (N, K) and C (M, N), arrays of any library or views.  Batches have a third mode.

    Args:
        workspace: returns the numbers of floats and of counters for the shape of C; None if blocks share no memory.
        epilogue: the epilogue of the problem.
        swapped: the kernel computes ``C^T = B A^T``.
    """

    def __init__(
        self, module: CompiledModule, workspace: Callable[..., tuple[int, int]] | None, epilogue: Epilogue,
        swapped: bool = False,
    ):  # fmt: skip
        self._kernel: Kernel = module.kernel("launch")
        self._workspace, self._epilogue, self._swapped = workspace, epilogue, swapped
        self._shared: dict[tuple[int, int, int], tuple[Any, Any]] = {}

    def __call__(self, a: Any, b: Any, c: Any, *more: object, stream: object = None, **options: Any) -> Any:
        """Compute ``c = a b^T`` and return the kernel's result, the interpreter's report.

        Args:
            more: arguments of the epilogue.
            stream: default: the current stream.
            options: call options of a kernel.
        """
        given, more = self._given(a, b, c), self._extras(more)
        if self._workspace is not None:
            view = view_of(c)
            raw = stream_of(stream, (view,))
            given = (*given, *self._memory(raw, view.device, view.shape, view.library == "torch"))
        return self._kernel(*given, *more, stream=stream, **options)

    def _given(self, a: Any, b: Any, c: Any) -> tuple[Any, ...]:
        """Return the kernel's operands: for the transposed problem those of ``c^T = b a^T``."""
        return (b, a, transposed(c)) if self._swapped else (a, b, c)

    def _extras(self, given: tuple[object, ...]) -> tuple[object, ...]:
        """Return the epilogue's arguments, transposed if the kernel computes the transposed problem."""
        return turned_extras(self._epilogue, given) if self._swapped else given

    def _memory(self, stream: int, device: int, shape: Sequence[int], of_torch: bool) -> tuple[Any, Any]:
        """Return the workspace and the counters for a launch on a stream.

        They are cached per stream.  A launch that a CUDA graph captures has its own, because its counters are reset
        only when the graph is replayed.  On the CPU (``device`` -1) they are new for each launch.
        """
        assert self._workspace is not None
        size, counters = self._workspace(*shape)
        if device < 0:
            import numpy as np

            return np.full(size, np.nan, np.float32), np.zeros(counters, np.int32)
        torch = sys.modules["torch"] if of_torch else None
        key, captured = (stream, device, counters), torch is not None and torch.cuda.is_current_stream_capturing()
        found = None if captured else self._shared.get(key)
        if found is None:
            if torch is not None:
                with unrecorded():
                    found = (
                        torch.empty(size, device=f"cuda:{device}", dtype=torch.float32),
                        torch.zeros(counters, device=f"cuda:{device}", dtype=torch.int32),
                    )
            else:
                pool = pool_of(device)
                found = pool.array(size, "f32"), pool.array(counters, "i32", zero=True)
            if not captured:
                self._shared[key] = found
        return found

    def repeated(self, a: Any, b: Any, c: Any, *extras: object) -> Launch | None:
        """Return a prepared launch for torch tensors like these at other addresses, or None.

        Args:
            extras: arguments of the epilogue.
        """
        given, extras = self._given(a, b, c), self._extras(extras)
        memory: tuple[Any, ...] = ()
        more: Callable[[int], tuple[int, ...]] | None = None
        if self._workspace is not None:
            _, shape, _, _, device, _, _ = view_of(c)

            def addresses(stream: int) -> tuple[int, ...]:
                workspace, counters = self._memory(stream, device, shape, True)
                return workspace.data_ptr(), counters.data_ptr()

            memory = self._memory(current_stream_of_torch()(device), device, shape, True)
            more = addresses
        launch = self._kernel.by_address(*given, *memory, *extras)
        if launch is None:
            return None
        return Launch(launch, (*given, *extras), self._kernel.alignment - 1, more, len(given))


class Runner(RunKernel):
    """A TMA kernel, ready to launch."""

    def __init__(self, choice: Choice, module: CompiledModule):
        self.choice = choice
        alone = choice.parts == 1 and not choice.config.stream_k
        super().__init__(
            module, None if alone else choice.workspace, choice.config.epilogue.transposed(), choice.swapped
        )


def transposed(x: Any, split: str = "") -> Any:
    """Return a matrix, or a batch (rows, columns, L), with rows and columns exchanged.

    Args:
        split: how rows and columns are split into several modes, as in an epilogue graph; empty if they are not.
    """
    if split:
        view = view_of(x)
        first = len(parts_of(split)[0])
        both = first + len(parts_of(split)[1])
        order = [*range(first, both), *range(first), *range(both, len(view.shape))]
        return view._replace(
            shape=tuple([view.shape[i] for i in order]), strides=tuple([view.strides[i] for i in order])
        )
    if not isinstance(x, ArrayView):
        return x.transpose(0, 1)
    (m, n, *more), (row, column, *step) = x.shape, x.strides
    return x._replace(shape=(n, m, *more), strides=(column, row, *step))


def turned_extras(epilogue: Epilogue, given: tuple[object, ...]) -> tuple[object, ...]:
    """Return the arguments of an epilogue for the transposed result."""
    if epilogue.graph is not None:
        inputs, outputs = epilogue.graph.inputs, epilogue.graph.outputs[1:]
        kinds = [x.kind for x in inputs] + ["" if x.reduce else "aux" for x in outputs]
        splits = [x.split for x in (*inputs, *outputs)]
        return tuple([transposed(t, s) if kind == "aux" else t for kind, t, s in zip(kinds, given, splits)])
    if epilogue.beta == 0.0:
        return given
    source, *others = given
    return transposed(source), *others


@cache
def runner(choice: Choice, cpu: bool = False) -> Runner:
    """Return the compiled kernel, ready to launch; ``cpu``: on the interpreter."""
    return Runner(choice, library(choice, cpu=cpu))


def any_text(config: AnyConfig) -> str:
    """Return the kernel's MLIR text."""
    from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text  # late: start-up
    from cute_dialect.kernels.gemm.mma_sync import warp_gemm_text  # late: start-up
    from cute_dialect.kernels.gemm.simt import ExactConfig, exact_gemm_text  # late: start-up

    if isinstance(config, ExactConfig):
        return exact_gemm_text(config)
    return ampere_gemm_text(config) if isinstance(config, AmpereConfig) else warp_gemm_text(config)


@cache
def any_rows(config: AnyConfig, cpu: bool = False) -> Kernel | RunKernel:
    """Return the kernel for rows that TMA cannot read; ``cpu``: on the interpreter.

    It copies with ``cp.async`` where the alignment allows it, otherwise element by element.
    """
    return run_any(config, any_rows_library(config, cpu=cpu))


def run_any(config: AnyConfig, module: CompiledModule) -> Kernel | RunKernel:
    """Return a compiled kernel without TMA, with a workspace if it uses split-K."""
    from cute_dialect.kernels.gemm.ampere import AmpereConfig  # late: start-up

    if not isinstance(config, AmpereConfig) and config.parts > 1:
        return RunKernel(module, config.workspace, config.epilogue)
    return module.kernel("launch")


def any_rows_library(config: AnyConfig, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel of :func:`any_rows`; ``elsewhere`` and ``cpu`` as in :func:`library`."""
    return compiled_kernel(config.name, partial(any_text, config), elsewhere=elsewhere, cpu=cpu)


@cache
def splitter(config: PartsConfig, cpu: bool = False) -> Kernel:
    """Return the kernel that splits f32 into three tf32 parts; ``cpu``: for the interpreter."""
    return splitter_library(config, cpu=cpu).kernel("launch")


def splitter_library(config: PartsConfig, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel of :func:`splitter`; ``elsewhere`` and ``cpu`` as in :func:`library`."""
    from cute_dialect.kernels.gemm.split_tf32 import split_text  # late: start-up

    return compiled_kernel(config.name, partial(split_text, config), elsewhere=elsewhere, cpu=cpu)


@cache
def combiner(config: CombineConfig, cpu: bool = False) -> Kernel:
    """Return the kernel that combines partial reductions of rows or columns; ``cpu``: for the interpreter."""
    from cute_dialect.kernels.epilogue.finish_reduction import combine_parts_text  # late: start-up

    return compiled_kernel(config.name, partial(combine_parts_text, config), cpu=cpu).kernel("launch")


@cache
def padder(matrices: int, cpu: bool = False) -> Kernel:
    """Return the kernel that copies one or two matrices to 16-byte aligned lines.

    See :mod:`cute_dialect.kernels.common.repack_rows`.
    """
    from cute_dialect.kernels.common.repack_rows import pad_text  # late: start-up

    return compiled_kernel(f"pad-{matrices}", partial(pad_text, matrices), cpu=cpu).kernel("launch")
