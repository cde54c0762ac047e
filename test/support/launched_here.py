"""CPU tensors that ``op`` treats as GPU tensors. Kernels run in the interpreter, also when calls are replayed."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from cute_dialect.op.arrays import library as arrays
from cute_dialect.op.conv import channel_padding, compute, depthwise, direct, few_channels, im2col_gemm
from cute_dialect.op.execute import gemm as products
from cute_dialect.op.execute import launcher, recording, tma_copies
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.launcher import Launcher, WorkspaceKernel
from cute_dialect.op.functions import conv as functions
from cute_dialect.op.functions import gemm, scaled
from cute_dialect.op.functions import gemm as layers
from cute_dialect.op.select.gemm_dispatch import Target
from cute_dialect.runtime.arrays import view_of

GPU = ("NVIDIA H200", 132)


class Here:
    """A runtime kernel that runs in the interpreter and counts its first launches and its replays in ``seen``."""

    alignment = 16

    def __init__(self, kernel: Any, seen: Seen):
        self.kernel, self.seen = kernel, seen

    def __call__(self, *given: Any, stream: object = None, **_: Any) -> None:
        self.seen.first += 1
        self.seen.run(self.kernel, given)

    def by_address(self, *given: Any) -> Callable[..., None]:
        views = [x if isinstance(x, int | float) else view_of(x) for x in given]

        def launch(stream: int, *addresses: int) -> None:
            assert stream == 7 and len(addresses) == len(views)
            self.seen.again += 1
            moved = [x if isinstance(x, int | float) else x._replace(pointer=p) for x, p in zip(views, addresses)]
            self.seen.run(self.kernel, moved)

        return launch


class Rows:
    """The module of a row kernel."""

    def __init__(self, kernel: Any, seen: Seen):
        self.compiled, self.seen = kernel.compiled(cpu=True), seen
        seen.names.append(kernel.name)

    def kernel(self, name: str) -> Here:
        return Here(self.compiled.kernel(name), self.seen)


class Seen:
    """Launch counters: ``first`` launches and replays (``again``), and names of kernels that are launched first.

    Kernels compute nothing if ``works`` is False. ``capability`` is that of the GPU.
    """

    def __init__(self, works: bool = True, capability: tuple[int, int] = (9, 0)) -> None:
        self.first = self.again = 0
        self.works, self.capability = works, capability
        self.names: list[str] = []

    @property
    def target(self) -> Target:
        """Return the target of GEMMs on the GPU."""
        major, minor = self.capability
        return Target(*GPU) if self.capability == (9, 0) else Target("a GPU", 148, chip=10 * major + minor)

    def run(self, kernel: Any, given: Any) -> None:
        if self.works:
            kernel(*given, device="cpu", checks=())


@contextmanager
def here(seen: Seen) -> Iterator[Seen]:
    """Let calls treat CPU tensors as GPU tensors."""

    def moved(kernel: Any) -> Any:
        """Return the kernel, with its workspace and calling convention, as one that runs in the interpreter."""
        if isinstance(kernel, Launcher):
            seen.names.append(kernel.recipe.name)
            return Launcher(moved(kernel.kernel), kernel.recipe)
        if isinstance(kernel, WorkspaceKernel):
            return WorkspaceKernel(moved(kernel.kernel), kernel.share)
        return Here(kernel, seen)

    def on_cpu(module: Any, name: str) -> Any:
        make = getattr(module, name)
        made: dict[Any, Any] = {}

        def found(what: Any, cpu: bool = False) -> Any:
            if what not in made:
                made[what] = moved(make(what, True))
            return made[what]

        return patch.object(module, name, found)

    with ExitStack() as stack:
        stack.enter_context(patch.object(arrays, "_check_place", lambda *_: None))
        stack.enter_context(patch.object(compute, "gpu_of", lambda _: GPU))
        stack.enter_context(patch.object(products, "target_of", lambda _: seen.target))
        stack.enter_context(patch.object(RowCall, "check_gpu", lambda self: None))
        stack.enter_context(patch.object(RowCall, "capability", lambda self: seen.capability))
        stack.enter_context(patch.object(RowCall, "module", lambda self, kernel: Rows(kernel, seen)))
        stack.enter_context(patch.object(recording, "current_stream_of_torch", lambda: lambda device: 7))
        stack.enter_context(patch.object(launcher, "current_stream_of_torch", lambda: lambda device: 7))
        stack.enter_context(on_cpu(products, "launcher_of"))
        stack.enter_context(on_cpu(tma_copies, "padder"))
        for module in (compute, depthwise, im2col_gemm, channel_padding, direct, few_channels):
            stack.enter_context(on_cpu(module, "kernel_of"))
        for table in (gemm.PLAIN, gemm.FUSED, gemm.GRAPHS):
            stack.enter_context(patch.dict(table, {2: KnownCalls(), 3: KnownCalls()}))
        stack.enter_context(patch.object(gemm, "_MM", gemm.PLAIN[2]))
        stack.enter_context(patch.object(gemm, "_BMM", gemm.PLAIN[3]))
        stack.enter_context(patch.object(scaled, "KNOWN", KnownCalls()))
        for name in ("KNOWN", "LAYERS"):
            stack.enter_context(patch.object(functions, name, KnownCalls()))
        for name in ("_LINEAR", "_MATMUL"):
            stack.enter_context(patch.object(layers, name, KnownCalls()))
        yield seen
