"""The arguments of one call of an operation: checked when they are made, launched, waited for.

Arrays on a GPU are used in place; numpy arrays are copied there, and results come back in :meth:`GemmArguments.sync`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.op.describe import GemmCoord, Mode, known
from cute_dialect.op.errors import DeviceError, EpilogueError, UnsupportedError
from cute_dialect.op.functors import OutputOp
from cute_dialect.op.memory import pool_of
from cute_dialect.op.planned import check
from cute_dialect.op.recipe import Operands
from cute_dialect.runtime.arrays import stream_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.interp import RunReport
    from cute_dialect.op.operation import GemmOperationUniversal
    from cute_dialect.runtime.device_memory import Staged
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["Arguments", "GemmArguments", "Transfer", "on_the_cpu"]


class Arguments:
    """Operands that were checked, of an operation: :meth:`launch` and :meth:`sync`."""

    def __init__(
        self, operation: GemmOperationUniversal, operands: Operands, D: Any, stream: object, options: CallOptions
    ):  # fmt: skip
        self.operation, self.operands, self.D = operation, operands, D
        self.stream, self.options = stream, options
        self.on_cpu = on_the_cpu(options)
        self._transfer: Transfer | None = None
        self._launched: Callable[[], None] | None = None

    @property
    def problem_size(self) -> GemmCoord:
        """The extents of a product."""
        m, n = self.operands.d.shape[-2:]
        return GemmCoord(m, n, self.operands.a.shape[-1])

    @property
    def batched(self) -> bool:
        """Tell whether there are several matrices."""
        return len(self.operands.d.shape) == 3

    def launch(self) -> RunReport | None:
        """Launch and wait for nothing; on the CPU, run and return the interpreter's report."""
        if 0 in self.operands.d.shape:
            return None
        launcher = self.operation.launcher_for(self.operands, self.on_cpu)
        if self.on_cpu:
            return launcher(self.operands, None, **self.options)
        x, raw = self.operands, 0
        if x.d.device < 0:
            self._transfer = Transfer(x, self.options.get("device"))
            x = self._transfer.operands
            raw = 0 if self.stream is None else stream_of(self.stream)
            launcher(x, raw, **_without_device(self.options))
        else:
            raw = stream_of(self.stream, (x.d,))
            launcher(x, raw, **self.options)
        self._waits_for(x.d.device, raw)
        return None

    def bind(self) -> Callable[..., None]:
        """Return what launches on these operands, which are on a GPU, and does no more."""
        if self.operands.d.device < 0:
            raise DeviceError("bind: expected arrays in GPU memory, got one in CPU memory")
        return self.operation.launcher_for(self.operands, False).bind(self.operands)

    def _waits_for(self, device: int, stream: int) -> None:
        from cute_dialect.runtime.driver import driver

        def wait() -> None:
            gpu = driver()
            previous = gpu.enter(device)
            try:
                gpu.synchronize(stream)
            finally:
                if previous:
                    gpu.set_context(previous)

        self._launched = wait

    def sync(self) -> None:
        """Wait for the launch; results in numpy arrays are then there."""
        wait, self._launched = self._launched, None
        if wait is not None:
            wait()
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.back()


class GemmArguments(Arguments):
    """The operands of a call.

    ``problem_size``: (M, N, K), where it is not what A and B say: flat arrays then have the described layouts; ``D``:
    is made if it is not given; ``output_op``: the numbers, of the operation's ``epilogue_type``; ``gemm_mode``:
    see :class:`~cute_dialect.op.describe.Mode`; ``split_k_slices``: parts of K; ``batch``: how many matrices;
    ``bias``: (N,) or (M, 1); ``stream``; ``options``: as of a kernel's call, ``device="cpu"`` and the interpreter's.
    Raises OpError.
    """

    def __init__(
        self, operation: GemmOperationUniversal, problem_size: Sequence[int] | None = None, A: object = None,
        B: object = None, C: object = None, D: object = None, output_op: OutputOp | None = None,
        gemm_mode: str = Mode.Gemm, split_k_slices: int = 1, batch: int = 1, *, bias: object = None,
        stream: object = None, **options: Unpack[CallOptions],
    ):  # fmt: skip
        call, output_op = "GemmArguments", output_op or OutputOp()
        mode = Mode(known(Mode, gemm_mode, "gemm_mode"))
        if output_op.arguments:
            raise EpilogueError(f"{call}: there is no activation with numbers yet, got {output_op.arguments}")
        if split_k_slices < 1:
            raise UnsupportedError(f"split_k: expected at least 1 part, got {split_k_slices}")
        if split_k_slices > 1 or mode in (Mode.GemmSplitKParallel, Mode.Array):
            raise UnsupportedError(f"{call}: there is no {mode} of {split_k_slices} parts yet")
        size = None if problem_size is None else GemmCoord(*problem_size)
        operands, d = check(
            call, operation.kinds, A, B, C, D, alpha=output_op.alpha, beta=output_op.beta, bias=bias,
            problem=size, batch=batch if mode is Mode.Batched else 0, on_cpu=on_the_cpu(options),
        )  # fmt: skip
        super().__init__(operation, operands, d, stream, options)


def on_the_cpu(options: CallOptions) -> bool:
    """Tell whether the interpreter is asked for."""
    return str(options.get("device")) == "cpu"


def _without_device(options: CallOptions) -> CallOptions:
    return cast("CallOptions", {k: v for k, v in options.items() if k != "device"})


class Transfer:
    """Copies of numpy arrays on a GPU, and back."""

    def __init__(self, x: Operands, device: object = None):
        from cute_dialect.runtime.call_options import device_number
        from cute_dialect.runtime.device_memory import Staged
        from cute_dialect.runtime.driver import NoGpuError, driver

        try:
            gpu = driver()
        except NoGpuError as e:
            raise DeviceError(f'no GPU here: device="cpu" runs it on the interpreter ({e})') from None
        number = 0 if device is None else device_number(cast(Any, device)) or 0
        names = [n for n in ("a", "b", "d", "c", "bias") if getattr(x, n) is not None]
        views = [getattr(x, n) for n in names]
        previous = gpu.enter(cast(int, number))
        try:
            self._copies: Staged = Staged(pool_of(cast(int, number)), views, names)  # type: ignore[arg-type]
        finally:
            if previous:
                gpu.set_context(previous)
        there = [v._replace(device=cast(int, number)) for v in self._copies.views]
        self.operands = x._replace(**dict(zip(names, there)))

    def back(self) -> None:
        """Copy results back, and free the copies."""
        try:
            self._copies.back()
        finally:
            self._copies.free()
