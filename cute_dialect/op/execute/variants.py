"""The kernels of a GEMM from all generators: a configuration with an epilogue.

>>> from cute_dialect.kernels.gemm.config import GemmConfig
>>> found = Variant(Choice(GemmConfig()), Epilogue(alpha="arg"))
>>> found.name, found.recipe().numbers
('f16-f16-kk-128x256-c2d-alpha', ('alpha',))
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.conv.config import WGRAD, ConvConfig
from cute_dialect.kernels.conv.hopper import conv_text
from cute_dialect.kernels.conv.unfold import UnfoldConfig, unfold_text
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.epilogue.finish_reduction import CombineConfig, combine_parts_text
from cute_dialect.kernels.epilogue.split_k_reduce import ReduceConfig, reduce_parts_text
from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.kernels.gemm.mma_sync import WarpConfig, warp_gemm_text
from cute_dialect.kernels.gemm.pointer_array import ListedConfig, listed_text
from cute_dialect.kernels.gemm.pointer_array_setup import ProblemsConfig, problems_text
from cute_dialect.kernels.gemm.sgemm import sgemm_text
from cute_dialect.kernels.gemm.simt import ExactConfig, exact_gemm_text
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig, split_text
from cute_dialect.op.conv.choice import choice_of
from cute_dialect.op.conv.compiled import kernel_library
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.calling_convention import Recipe, Share
from cute_dialect.op.execute.kernel_cache import compiled_kernel
from cute_dialect.op.execute.kernels import library, splitter_library, text_of
from cute_dialect.op.select.configurations import Configured, SgemmRung
from cute_dialect.op.select.gemm_dispatch import with_epilogue
from cute_dialect.op.select.kernel_choice import Choice

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["PartsConfig", "ReduceConfig", "Variant", "compiled", "splitting"]


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
            case AmpereConfig() | WarpConfig() | ExactConfig() | ReduceConfig() as config:
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
        match self.kernel:
            case Choice() as choice:
                return text_of(choice)
            case AmpereConfig() as config:
                return ampere_gemm_text(config)
            case WarpConfig() as config:
                return warp_gemm_text(config)
            case ExactConfig() as config:
                return exact_gemm_text(config)
            case ReduceConfig() as config:
                return reduce_parts_text(config)
            case CombineConfig() as config:
                return combine_parts_text(config)
            case ListedConfig() as config:
                return listed_text(config)
            case ProblemsConfig() as config:
                return problems_text(config)
            case SgemmRung(rung):
                return sgemm_text(rung)
            case ConvConfig() as config:
                return conv_text(config)
            case UnfoldConfig() as config:
                return unfold_text(config)
            case PartsConfig() as config:
                return split_text(config)

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
                    transposed=self.flipped != choice.swapped, batch=batch, share=_share(choice),
                    array=choice.config.array, scales=choice.config.scaled,
                    at_once=self.kernel.columns_at_once if e.reduces and isinstance(self.kernel, Choice) else 0,
                )  # fmt: skip
            case AmpereConfig() | WarpConfig() | ExactConfig() as config:
                runs = isinstance(config, WarpConfig) and config.interleaved
                return found._replace(batch=config.batch, tma=False, array=config.array, interleaved=runs)
            case ReduceConfig() | PartsConfig() as config:
                return found._replace(batch=config.batch, tma=False, sums=True)
            case CombineConfig() | ListedConfig() | ProblemsConfig():
                return found._replace(tma=False, sums=True)
            case ConvConfig() as config:
                return found._replace(
                    taken=True, chunk=64 if config.kind == WGRAD else 0, share=_share(choice_of(config)),
                    at_once=choice_of(config).columns_at_once if e.reduces else 0,
                )  # fmt: skip
            case UnfoldConfig():
                return found._replace(tma=False, sums=True, operands=("",) * 17)
            case SgemmRung():
                return found._replace(b_by_k=True, tma=False)


def splitting(layout_a: str, layout_b: str, batch_a: bool, batch_b: bool) -> tuple[PartsConfig, PartsConfig]:
    """Return the kernels that split A and B, or batches of them, into tf32 parts."""
    return PartsConfig("a", layout_a == "row", batch_a), PartsConfig("b", layout_b == "column", batch_b)


def _share(choice: Choice) -> Share | None:
    """Return the workspace that the blocks of a launch share."""
    c = choice.config
    tile = c.tile[0] * c.tile[1]
    if c.stream_k:
        return Share(0, 0, c.sms * tile, c.sms)
    if choice.parts == 1:
        return None
    return Share(
        c.tile[0] * c.cluster_m, c.tile[1] * c.cluster_n, choice.parts * tile * c.cluster, 2 * c.cluster
    )  # fmt: skip


def compiled(variant: Variant, *, cpu: bool = False, elsewhere: bool = False) -> CompiledModule:
    """Return a kernel compiled for the GPU or for the interpreter.  ``elsewhere`` compiles it in another process."""
    kernel, chip = variant.kernel, variant.chip or None
    if isinstance(kernel, Choice) and chip is None:
        return library(kernel, elsewhere=elsewhere, cpu=cpu)
    if isinstance(kernel, PartsConfig) and chip is None:
        return splitter_library(kernel, elsewhere=elsewhere, cpu=cpu)
    if isinstance(kernel, ConvConfig | UnfoldConfig) and chip is None:
        return kernel_library(kernel, elsewhere=elsewhere, cpu=cpu)
    text = partial(Variant.text, variant)
    return compiled_kernel(variant.name, text, key=(type(kernel), kernel), chip=chip, elsewhere=elsewhere, cpu=cpu)
