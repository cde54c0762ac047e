"""Compiled kernels of grouped GEMMs, cached in the process."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from cute_dialect.kernels.gemm.grouped import grouped_text
from cute_dialect.kernels.gemm.grouped_config import GroupedConfig
from cute_dialect.kernels.gemm.moe_permute import (
    BoundsConfig,
    GatherConfig,
    ZeroConfig,
    bounds_text,
    gather_text,
    zero_text,
)
from cute_dialect.kernels.gemm.pointer_array import ListedConfig, listed_text
from cute_dialect.kernels.gemm.pointer_array_setup import ProblemsConfig, problems_text
from cute_dialect.op.execute.kernel_cache import compiled_kernel
from cute_dialect.op.select.kernel_choice import Choice

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["Config", "kernel_of", "library_of", "name_of", "text_of"]

Config: TypeAlias = "GroupedConfig | ListedConfig | ProblemsConfig | ZeroConfig | BoundsConfig | GatherConfig"


def name_of(config: Config) -> str:
    """Return the name of a kernel.

    >>> name_of(GroupedConfig(form="k"))
    'f16-f16-kk-128x256-c2d-ragged-k'
    """
    if isinstance(config, GroupedConfig):
        return f"{Choice(config.base).name}-ragged-{config.form}{'-begins' * config.begins}"
    return config.name


def text_of(config: Config) -> str:
    """Return the source text of a kernel."""
    if isinstance(config, GroupedConfig):
        return grouped_text(config)
    if isinstance(config, ListedConfig):
        return listed_text(config)
    if isinstance(config, ProblemsConfig):
        return problems_text(config)
    if isinstance(config, GatherConfig):
        return gather_text(config)
    return zero_text(config) if isinstance(config, ZeroConfig) else bounds_text(config)


def library_of(config: Config, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel.

    ``elsewhere`` compiles it in another process, ``cpu`` for the interpreter.
    """
    return compiled_kernel(name_of(config), partial(text_of, config), elsewhere=elsewhere, cpu=cpu)


@cache
def kernel_of(config: Config, cpu: bool = False) -> Kernel:
    """Return the kernel, ready to launch."""
    return library_of(config, cpu=cpu).kernel("launch")
