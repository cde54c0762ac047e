"""Say how a grouped product would be computed: what :func:`cute_dialect.op.explain` gives of ``op.grouped_mm``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.epilogue import Epilogue
from cute_dialect.kernels.gemm.grouped_config import GroupedConfig
from cute_dialect.kernels.pointer_array_gemm import ListedConfig
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.grouped.call import Given, problem_of, readable
from cute_dialect.op.grouped.choosing import majors_of, ranked
from cute_dialect.op.grouped.kernels import name_of
from cute_dialect.op.grouped.mma_sync import base_of, is_of_warps, size_of
from cute_dialect.op.grouped.shapes import Shapes, shapes_of
from cute_dialect.op.operands import matrix
from cute_dialect.op.select.gemm_dispatch import here
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["GroupedExplanation", "explained_grouped"]

_CUT = {"m": "rows", "n": "columns", "k": "steps of K", "rows": "rows in use of matrices"}
NAME = "grouped_mm"


class GroupedExplanation(NamedTuple):
    """How a grouped product is computed; printed, it says all of this.

    ``shapes``: what is cut, how often, all extents; ``problem``: a group of average size; ``config``: the kernel, and
    ``kernel`` its name; ``microseconds``: predicted for groups of that size, 0 of kernels without wgmma, of which
    nothing is; ``others``: the next kernels with theirs; ``shared_memory``: bytes of a block; ``copies``: operands that
    are copied, and bytes; ``flops``: of all groups.
    """

    shapes: Shapes
    problem: Problem
    gpu: str
    config: GroupedConfig | ListedConfig
    microseconds: float
    others: tuple[tuple[float, GroupedConfig], ...]
    copies: tuple[tuple[str, int], ...]

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return name_of(self.config)

    @property
    def shared_memory(self) -> int:
        """Bytes of a block; 0 of kernels without wgmma, which compute one tile each."""
        return self.config.smem_bytes if isinstance(self.config, GroupedConfig) else 0

    @property
    def flops(self) -> int:
        """Of all groups, of matrices of which some rows are in use the half."""
        s = self.shapes
        return s.m * s.n * s.k * (s.groups if s.form == "rows" else 2)

    def __str__(self) -> str:
        s, p = self.shapes, self.problem
        lines = [
            f"{NAME} on {self.gpu}: {s.groups} groups of {_CUT[s.form]}, M {s.m}, N {s.n}, K {s.k}, "
            f"{p.element} to {p.output}, majors {p.major_a} and {p.major_b}",
        ]
        if isinstance(self.config, GroupedConfig):
            lines += [
                f"  kernel    {self.kernel}: predicted to be the fastest for {p.matrices} groups of {p.m}x{p.n}x{p.k}",
                f"  predicted {self.microseconds:.1f} us, {self.flops / self.microseconds / 1e6:.3g} TFLOP/s",
                f"  blocks    up to {self.config.base.at_once} of {self.shared_memory} bytes of shared memory",
            ]
        else:
            m, n = self.config.tile
            lines += [
                f"  kernel    {self.kernel}: {p.element} without wgmma, for {p.matrices} groups of {p.m}x{p.n}x{p.k}",
                f"  blocks    one for each tile of {m} x {n}; a kernel before makes the table of groups",
            ]
        lines += [f"  copied    {n}, {size / 1e6:.3g} MB" for n, size in self.copies]
        lines += [f"  else      {t:.1f} us  {name_of(c)}" for t, c in self.others]
        return "\n".join(lines)


def explained_grouped(
    views: Mapping[str, ArrayView], groups: Mapping[str, Any], dtype: object = None, math: str = "default",
    gpu: str = "", others: int = 4, of_torch: bool = False,
) -> GroupedExplanation:  # fmt: skip
    """Return how a grouped product of these operands is computed; ``groups``: offs, lengths or row_groups, arrays,
    lists or (tuples) their shapes.  Raises what the function does.
    """
    unknown = [n for n in groups if n not in ("offs", "lengths", "row_groups")]
    if unknown:
        raise UnsupportedError(f"explain: expected no {unknown[0]} of {NAME}")
    shapes = {n: _shape(x) for n, x in groups.items() if x is not None}
    out = views.get("out")
    a, b = views["a"], views["b"]
    s = shapes_of(NAME, a.shape, b.shape, shapes, None if out is None else out.shape)
    p = problem_of(NAME, s, views, Given(a, b, groups, dtype=dtype, math=math), of_torch)
    majors = "k" if matrix(a).along(1) else "m", "n" if matrix(b).along(1) else "k"
    if is_of_warps(p, None, s.form):
        p = p._replace(major_a=majors[0], major_b=majors[1])
        gpu, sms = (gpu, 132) if gpu else here()
        base = ListedConfig(base_of(p, s.form, Epilogue(), None, sms))
        rows = not matrix(out).along(1) if out is not None else False
        copies = (("out", _elements(out) * BITS[p.output] // 8),) if out is not None and rows else ()
        config = base._replace(size=size_of(base, s, a, b, out))
        return GroupedExplanation(s, p, gpu, config, 0.0, (), copies)
    majors = majors_of(s.form, p.element, *majors)
    p = p._replace(major_a=majors[0], major_b=majors[1])
    copied = [("a", a, majors[0] == "k"), ("b", b, majors[1] == "n")] + ([] if out is None else [("out", out, True)])
    sizes = {n: BITS[p.output if n == "out" else p.element] // 8 for n in ("a", "b", "out")}
    copies = [(n, _elements(x) * sizes[n]) for n, x, along in copied if not readable(x, along)]
    gpu, sms = (gpu, 132) if gpu else here()
    (t, config), *rest = ranked(p, s.form, "row_groups" in shapes, None, gpu, sms, others + 1)
    return GroupedExplanation(s, p, gpu, config, t, tuple(rest), tuple(copies))


def _shape(x: Any) -> tuple[int, ...]:
    """Return the shape of numbers: of an array, of a list, or as it is given."""
    if isinstance(x, tuple):
        return cast("tuple[int, ...]", x)
    return (len(cast("list[int]", x)),) if isinstance(x, list) else tuple(x.shape)


def _elements(x: ArrayView) -> int:
    found = 1
    for n in x.shape:
        found *= n
    return found
