"""Kernels of operations: their texts, their compiled modules, and a GEMM kernel with its epilogue (:class:`Variant`).

A kernel is a configuration.  Each class of configurations has a generator, which :data:`GENERATORS` names.

>>> from cute_dialect.kernels.gemm.config import GemmConfig
>>> found = Variant(Choice(GemmConfig()), Epilogue(alpha="arg"))
>>> found.name, found.recipe().numbers
('f16-f16-kk-128x256-c2d-alpha', ('alpha',))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cute_dialect.kernels.common.elements import BITS, sums_of
from cute_dialect.kernels.conv.config import WGRAD, ConvConfig
from cute_dialect.kernels.conv.unfold import UnfoldConfig
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.epilogue.reductions import CombineConfig, ReduceConfig
from cute_dialect.kernels.gemm.ampere import AmpereConfig
from cute_dialect.kernels.gemm.config import GroupedConfig, SplitConfig
from cute_dialect.kernels.gemm.grouped_sm100 import GroupedSm100Config
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.pointer_array import ListedConfig, ProblemsConfig
from cute_dialect.kernels.gemm.simt import ExactConfig
from cute_dialect.kernels.gemm.sm100 import Sm100Config
from cute_dialect.kernels.gemm.sm120 import Sm120Config
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.kernel_cache import compiled_kernel
from cute_dialect.op.execute.launcher import Launcher, Ready, Recipe, Share, ready
from cute_dialect.op.select.backends import chip_of
from cute_dialect.op.select.configurations import Configured, SgemmRung
from cute_dialect.op.select.gemm_dispatch import with_epilogue
from cute_dialect.op.select.kernel_choice import Choice, choice_of
from cute_dialect.runtime import driver as cuda

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
    from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig
    from cute_dialect.kernels.conv.direct import DirectConfig
    from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig
    from cute_dialect.kernels.conv.few_results import FewResultsConfig
    from cute_dialect.kernels.gemm.moe_permute import BoundsConfig, GatherConfig, ZeroConfig
    from cute_dialect.runtime.launch import CompiledModule, Kernel

PlainKernel: TypeAlias = (
    "DepthwiseConfig | DepthwiseWeightsConfig | DirectConfig | DirectWeightsConfig | FewResultsConfig | UnfoldConfig"
)
"""A convolution without a GEMM: depthwise or direct, its gradient of the filters, or unfolding."""

GroupKernel: TypeAlias = (
    "GroupedConfig | GroupedSm100Config | ListedConfig | ProblemsConfig | ZeroConfig | BoundsConfig | GatherConfig"
)
"""A kernel of grouped GEMMs."""

Config: TypeAlias = "Configured | PlainKernel | GroupKernel"
"""Configuration of a kernel."""

GENERATORS: Mapping[str, str] = {
    "AmpereConfig": "gemm.ampere:ampere_gemm_text",
    "WarpConfig": "gemm.mma_sync:warp_gemm_text",
    "ExactConfig": "gemm.simt:exact_gemm_text",
    "Sm100Config": "gemm.sm100:sm100_gemm_text",
    "Sm120Config": "gemm.sm120:sm120_gemm_text",
    "SgemmRung": "gemm.sgemm:sgemm_text",
    "PartsConfig": "gemm.split_tf32:split_text",
    "ReduceConfig": "epilogue.reductions:reduce_parts_text",
    "CombineConfig": "epilogue.reductions:combine_parts_text",
    "ConvConfig": "conv.hopper:conv_text",
    "UnfoldConfig": "conv.unfold:unfold_text",
    "DepthwiseConfig": "conv.depthwise:depthwise_text",
    "DepthwiseWeightsConfig": "conv.depthwise_weights:depthwise_weights_text",
    "DirectConfig": "conv.direct:direct_text",
    "DirectWeightsConfig": "conv.direct_weights:direct_weights_text",
    "FewResultsConfig": "conv.few_results:few_results_text",
    "GroupedConfig": "gemm.grouped:grouped_text",
    "GroupedSm100Config": "gemm.grouped_sm100:grouped_sm100_text",
    "ListedConfig": "gemm.pointer_array:listed_text",
    "ProblemsConfig": "gemm.pointer_array:problems_text",
    "ZeroConfig": "gemm.moe_permute:zero_text",
    "BoundsConfig": "gemm.moe_permute:bounds_text",
    "GatherConfig": "gemm.moe_permute:gather_text",
}
"""Class of configurations -> the module of ``cute_dialect.kernels`` and the function that generates the text.

A :class:`~cute_dialect.op.select.kernel_choice.Choice` has several generators.
"""


def text_of(kernel: Config) -> str:
    """Return the source text of a kernel, a module with the host function ``launch``."""
    if isinstance(kernel, Choice):
        return _gemm_text(kernel)
    module, function = GENERATORS[type(kernel).__name__].split(":")
    generate = getattr(import_module(f"cute_dialect.kernels.{module}"), function)
    return generate(kernel.rung if isinstance(kernel, SgemmRung) else kernel)


def _gemm_text(choice: Choice) -> str:
    """Return the text of a GEMM with TMA, which uses programmatic dependent launch.

    The kernel starts while the previous kernel in its stream ends, and waits for that kernel before it reads or writes.
    In a chain of small GEMMs this saves 0.6 us per GEMM.
    """
    from cute_dialect.kernels.gemm import gemm_text  # late: start-up
    from cute_dialect.kernels.gemm.few_rows import few_rows_text  # late: start-up

    if choice.skinny is not None:
        return few_rows_text(choice.skinny._replace(dependent=True))
    config = choice.config._replace(dependent=True)
    return gemm_text(SplitConfig(config, choice.parts) if choice.parts > 1 else config)


def name_of(kernel: Config) -> str:
    """Return the name of a kernel.

    >>> name_of(GroupedConfig(form="k"))
    'f16-f16-kk-128x256-c2d-ragged-k'
    """
    if isinstance(kernel, GroupedConfig):
        return f"{Choice(kernel.base).name}-ragged-{kernel.form}{'-begins' * kernel.begins}"
    return kernel.name


def library(kernel: Config, *, chip: str = "", elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel, from the compile cache if it is there.

    Args:
        chip: default: the default chip.
        ``elsewhere``: compile in another process.
        cpu: compile for the interpreter.
    """
    name, text = name_of(kernel) + f"-{chip}" * bool(chip), partial(text_of, kernel)
    return compiled_kernel(name, text, chip=chip or None, elsewhere=elsewhere, cpu=cpu)


def share_of(kernel: Config) -> Share | None:
    """Return the workspace that the blocks of a launch share, for split-K and stream-K."""
    match kernel:
        case Choice(c, parts):
            tile = c.tile[0] * c.tile[1]
            if c.stream_k:
                return Share(0, 0, c.sms * tile, c.sms)
            if parts == 1:
                return None
            return Share(c.tile[0] * c.cluster_m, c.tile[1] * c.cluster_n, parts * tile * c.cluster, 2 * c.cluster)
        case ConvConfig():
            share = share_of(choice_of(kernel))
            return share if share is None or kernel.kind != WGRAD else share._replace(chunk=64)
        case WarpConfig() | ExactConfig() if kernel.parts > 1:
            (m, n), words = kernel.tile[:2], 1
            if isinstance(kernel, WarpConfig):
                words = 2 if kernel.element == "f64" else BITS[sums_of(kernel.element)] // 32
            return Share(m, n, kernel.parts * m * n * words, 1)
        case _:
            return None


@lru_cache(maxsize=None, typed=True)  # Configurations of two classes are equal if their fields are.
def kernel_of(kernel: Config, cpu: bool = False, chip: str = "") -> Ready:
    """Return the compiled kernel, ready to launch; ``cpu``: on the interpreter."""
    return ready(library(kernel, chip=chip, cpu=cpu), share_of(kernel))


@cache
def gap_remover(cpu: bool = False) -> Kernel:
    """Return the kernel that copies 16-byte aligned rows of 16-bit elements to rows without gaps."""
    from cute_dialect.kernels.copies.repack_rows import dense_text  # late: start-up

    return compiled_kernel("dense", partial(dense_text), cpu=cpu).kernel("launch_dense")


@cache
def padder(matrices: int, cpu: bool = False) -> Kernel:
    """Return the kernel that copies one or two matrices to 16-byte aligned lines.

    See :mod:`cute_dialect.kernels.copies.repack_rows`.
    """
    from cute_dialect.kernels.copies.repack_rows import pad_text  # late: start-up

    return compiled_kernel(f"pad-{matrices}", partial(pad_text, matrices), cpu=cpu).kernel("launch")


# ------------------------------------------------------------------------------------------------------ with epilogues


class Variant(NamedTuple):
    """A kernel with its epilogue."""

    configured: Configured
    epilogue: Epilogue = Epilogue()  # in terms of the caller's D
    flipped: bool = False  # True if the configuration is that of D^T = B^T A^T
    chip: str = ""  # target, "" for the default

    @property
    def kernel(self) -> Configured:
        """The configuration with the epilogue in terms of the kernel's D."""
        e = self.epilogue.transposed() if self.flipped else self.epilogue
        match self.configured:
            case Choice() as choice:
                return with_epilogue(choice, e) if e.active else choice
            case (
                AmpereConfig() | WarpConfig() | ExactConfig() | Sm100Config() | Sm120Config() | ReduceConfig() as config
            ):
                return config._replace(epilogue=e)
            case SgemmRung():
                if e.active:
                    raise UnsupportedError(
                        f"Gemm: {self.configured.name}, a rung of the SGEMM ladder, has no epilogue; use alpha=1 and "
                        "beta=0, or another tile"
                    )
                return self.configured
            case ConvConfig() | ListedConfig() as config:
                return config._replace(base=config.base._replace(epilogue=e))
            case CombineConfig() | ProblemsConfig() | UnfoldConfig() | PartsConfig() as config:
                return config

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.kernel.name + f"-{self.chip}" * bool(self.chip)

    def text(self) -> str:
        """Return the source text of the kernel."""
        return text_of(self.kernel)

    def compiled(self, *, cpu: bool = False) -> CompiledModule:
        """Return the kernel compiled for the GPU or for the interpreter."""
        return compiled(self, cpu=cpu)

    def recipe(self) -> Recipe:
        """Return the calling convention."""
        e = self.epilogue
        numbers = tuple([n for n in ("alpha", "beta") if getattr(e, n) == "arg"])
        found = Recipe(self.name, self.flipped, source=e.beta != 0.0, bias=e.bias, numbers=numbers)
        if e.graph is not None:
            more = ["" if x.reduce else "aux" for x in e.graph.outputs[1:]]
            found = found._replace(operands=(*[x.kind for x in e.graph.inputs], *more))
        match self.configured:
            case Choice() as choice:
                batch = choice.skinny is None and choice.config.batch
                return found._replace(
                    transposed=self.flipped != choice.swapped, batch=batch, array=choice.config.array,
                    scales=choice.config.scaled,
                    at_once=self.kernel.columns_at_once if e.reduces and isinstance(self.kernel, Choice) else 0,
                )  # fmt: skip
            case AmpereConfig() | WarpConfig() | ExactConfig() as config:
                runs = isinstance(config, WarpConfig) and config.interleaved
                return found._replace(batch=config.batch, tma=False, array=config.array, interleaved=runs)
            case Sm100Config() as config:
                at_once = config.columns_at_once if e.reduces else 0
                return found._replace(
                    batch=config.batch, transposed=self.flipped, at_once=at_once, scales=config.scaling != ""
                )
            case Sm120Config() as config:
                return found._replace(batch=config.batch, transposed=self.flipped)
            case ReduceConfig() | PartsConfig() as config:
                return found._replace(batch=config.batch, tma=False, sums=True)
            case CombineConfig() | ListedConfig() | ProblemsConfig():
                return found._replace(tma=False, sums=True)
            case ConvConfig() as config:
                return found._replace(taken=True, at_once=choice_of(config).columns_at_once if e.reduces else 0)
            case UnfoldConfig():
                return found._replace(tma=False, sums=True, operands=("",) * 17)
            case SgemmRung():
                return found._replace(b_by_k=True, tma=False)


@cache
def chip_here() -> str:
    """Return the target of kernels for the GPU, or "" for the default target or without a GPU."""
    try:
        return chip_of(cuda.driver().capability(0))
    except cuda.NoGpuError:
        return ""


def splitting(layout_a: str, layout_b: str, batch_a: bool, batch_b: bool) -> tuple[PartsConfig, PartsConfig]:
    """Return the kernels that split A and B, or batches of them, into tf32 parts."""
    return PartsConfig("a", layout_a == "row", batch_a), PartsConfig("b", layout_b == "column", batch_b)


def compiled(variant: Variant, *, cpu: bool = False, elsewhere: bool = False) -> CompiledModule:
    """Return a kernel compiled for the GPU or for the interpreter.  ``elsewhere`` compiles it in another process."""
    return library(variant.kernel, chip=variant.chip, elsewhere=elsewhere, cpu=cpu)


@lru_cache(maxsize=4096)
def launcher_of(variant: Variant, cpu: bool = False) -> Launcher:
    """Return a kernel with its calling convention; ``cpu``: on the interpreter."""
    return Launcher(kernel_of(variant.kernel, cpu, variant.chip), variant.recipe())
