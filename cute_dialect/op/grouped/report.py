"""Explanation of a grouped GEMM, which :func:`cute_dialect.op.explain` returns for ``op.grouped_mm``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.grouped_config import GroupedConfig
from cute_dialect.kernels.gemm.pointer_array import ListedConfig
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.explanation import Explanation, Line, example_view, is_of_torch
from cute_dialect.op.grouped.call import is_storable, problem_of, readable
from cute_dialect.op.grouped.choosing import majors_of, ranked
from cute_dialect.op.grouped.kernels import name_of
from cute_dialect.op.grouped.mma_sync import base_of, is_of_warps, size_of
from cute_dialect.op.problems.grouped import GROUPS, GroupedArguments, Shapes, shapes_of
from cute_dialect.op.problems.operands import matrix
from cute_dialect.op.select.gemm_dispatch import here
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["GroupedExplanation", "explained_grouped"]

_CUT = {"m": "rows", "n": "columns", "k": "steps of K", "rows": "rows in use of matrices"}
NAME = "grouped_mm"


@dataclass(frozen=True, kw_only=True)
class GroupedExplanation(Explanation):
    """The kernel of a grouped GEMM, with its time for groups of average size; kernels without wgmma have no model."""

    shapes: Shapes
    problem: Problem  # GEMM of a group of average size
    config: GroupedConfig | ListedConfig  # the kernel

    @property
    def shared_memory(self) -> int:
        """Shared memory of a block in bytes; 0 for kernels without wgmma."""
        return self.config.smem_bytes if isinstance(self.config, GroupedConfig) else 0

    def _title(self) -> str:
        s, p = self.shapes, self.problem
        return (
            f"{self.operation} on {self.gpu}: {s.groups} groups of {_CUT[s.form]}, M {s.m}, N {s.n}, K {s.k}, "
            f"{p.element} to {p.output}, majors {p.major_a} and {p.major_b}"
        )

    def _occupancy(self) -> Iterator[Line]:
        if isinstance(self.config, GroupedConfig):
            yield "blocks", f"up to {self.config.base.at_once} of {self.shared_memory} bytes of shared memory"
        else:
            m, n = self.config.tile
            yield "blocks", f"one for each tile of {m} x {n}; another kernel builds the table of groups first"

    def _name_of(self, candidate: GroupedConfig) -> str:
        return name_of(candidate)


def _explanation(
    s: Shapes, p: Problem, gpu: str, config: GroupedConfig | ListedConfig, microseconds: float,
    others: Sequence[tuple[float, GroupedConfig]], copies: Sequence[tuple[str, int]],
) -> GroupedExplanation:  # fmt: skip
    wgmma = isinstance(config, GroupedConfig)
    why = "predicted to be the fastest" if wgmma else f"{p.element} without wgmma,"
    return GroupedExplanation(
        operation=NAME, gpu=gpu, kernel=name_of(config), why=f"{why} for {p.matrices} groups of {p.m}x{p.n}x{p.k}",
        microseconds=microseconds, others=tuple(others), copies=tuple(copies), kernels=(config,), shapes=s,
        problem=p, config=config,
        flops=s.m * s.n * s.k * (s.groups if s.form == "rows" else 2),  # with lengths, of half of the rows
    )  # fmt: skip


def explained_grouped(
    a: Any, b: Any, out: Any, groups: Mapping[str, Any], dtype: object = None, math: str = "default", gpu: str = "",
    others: int = 4, element: str = "f16",
) -> GroupedExplanation:  # fmt: skip
    """Explain how a grouped GEMM is computed.

    Args:
        a, b, out: arrays, or shapes for contiguous arrays of type ``element``; ``out`` may be None.
        groups: offs, lengths or row_groups: arrays, lists, or their shapes as tuples.

    Raises the errors of the function.
    """
    views = {n: example_view(NAME, n, x, element) for n, x in (("a", a), ("b", b), ("out", out)) if x is not None}
    of_torch = is_of_torch(a)
    unknown = [n for n in groups if n not in GROUPS]
    if unknown:
        raise UnsupportedError(f"explain: {NAME} has no argument {unknown[0]!r}; use offs, lengths or row_groups")
    shapes = {n: _shape(x) for n, x in groups.items() if x is not None}
    out = views.get("out")
    a, b = views["a"], views["b"]
    s = shapes_of(NAME, a.shape, b.shape, shapes, None if out is None else out.shape)
    given = GroupedArguments(a, b, groups, extras=LinearCombination(math=math), dtype=dtype)
    p = problem_of(NAME, s, views, given, of_torch)
    majors = "k" if matrix(a).along(1) else "m", "n" if matrix(b).along(1) else "k"
    if is_of_warps(p, None, s.form):
        p = p._replace(major_a=majors[0], major_b=majors[1])
        gpu, sms = (gpu, 132) if gpu else here()
        base = ListedConfig(base_of(p, s.form, Epilogue(), None, sms))
        rows = not matrix(out).along(1) if out is not None else False
        copies = (("out", _elements(out) * BITS[p.output] // 8),) if out is not None and rows else ()
        config = base._replace(size=size_of(base, s, a, b, out))
        return _explanation(s, p, gpu, config, 0.0, (), copies)
    majors = majors_of(s.form, p.element, *majors)
    p = p._replace(major_a=majors[0], major_b=majors[1])
    copied = [
        (n, x) for n, x, along in (("a", a, majors[0] == "k"), ("b", b, majors[1] == "n")) if not readable(x, along)
    ]
    if out is not None and not is_storable(out):
        copied.append(("out", out))
    sizes = {n: BITS[p.output if n == "out" else p.element] // 8 for n in ("a", "b", "out")}
    copies = [(n, _elements(x) * sizes[n]) for n, x in copied]
    gpu, sms = (gpu, 132) if gpu else here()
    (t, config), *rest = ranked(p, s.form, "row_groups" in shapes, None, gpu, sms, others + 1)
    return _explanation(s, p, gpu, config, t, rest, copies)


def _shape(x: Any) -> tuple[int, ...]:
    """Return the shape of an array or a list, or a tuple as it is."""
    if isinstance(x, tuple):
        return cast("tuple[int, ...]", x)
    return (len(cast("list[int]", x)),) if isinstance(x, list) else tuple(x.shape)


def _elements(x: ArrayView) -> int:
    found = 1
    for n in x.shape:
        found *= n
    return found
