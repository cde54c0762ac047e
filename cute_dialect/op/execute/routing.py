"""Kernels of mixtures of experts.

>>> route_kernel(RouteConfig()).name, combine_kernel(CombineConfig(k=2, weights=True)).name
('route-bf16-128-8-softmax', 'dispatch-bf16-2-weights-combine')
"""

from __future__ import annotations

from cute_dialect.kernels.rows.dispatch import (
    CombineConfig,
    SortConfig,
    combine_gradient_text,
    combine_text,
    copy_text,
    count_text,
    sort_text,
)
from cute_dialect.kernels.rows.route import RouteConfig, gradient_text, route_text
from cute_dialect.op.execute.array_call import RowKernel


def route_kernel(c: RouteConfig) -> RowKernel:
    """Return the kernel of a configuration."""
    return RowKernel(c.name, route_text, (c,))


def gradient_kernel(c: RouteConfig) -> RowKernel:
    """Return the kernel of the gradient."""
    return RowKernel(f"{c.name}-gradient", gradient_text, (c,), "launch_gradient")


def count_kernel(c: SortConfig) -> RowKernel:
    """Return the kernel that counts the pairs of each block and expert."""
    return RowKernel(c.name.replace("sort", "count"), count_text, (c,), "launch_count")


def sort_kernel(c: SortConfig) -> RowKernel:
    """Return the kernel that sorts the pairs."""
    return RowKernel(c.name, sort_text, (c,), "launch_sort")


def copy_kernel(c: CombineConfig) -> RowKernel:
    """Return the kernel that copies rows in the order of experts."""
    c = c._replace(threads=CombineConfig().threads)
    return RowKernel(f"{c.name}-copy", copy_text, (c,), "launch_copy")


def combine_kernel(c: CombineConfig) -> RowKernel:
    """Return the kernel that sums the rows of each token."""
    c = c._replace(threads=CombineConfig().threads)
    return RowKernel(f"{c.name}-combine", combine_text, (c,), "launch_combine")


def combine_gradient_kernel(c: CombineConfig) -> RowKernel:
    """Return the kernel of the gradient of the combined rows."""
    return RowKernel(f"{c.name}-combine-gradient", combine_gradient_text, (c,), "launch_combine_gradient")
