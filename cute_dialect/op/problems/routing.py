"""Mixtures of experts: checks of the settings of ``op.route``, and of the shapes of ``op.dispatch`` and ``op.combine``.

>>> RouteSettings(8).config("bf16", 128).name
'route-bf16-128-8-softmax'
>>> RouteSettings(10, groups=8, top_groups=1).config("bf16", 64)
Traceback (most recent call last):
    ...
cute_dialect.op.errors.ArgumentError: route: k=10 exceeds the 8 experts of top_groups=1 of 8 groups; pass at most 8
"""

from __future__ import annotations

from math import isfinite, prod
from numbers import Real
from typing import Any, NamedTuple

from cute_dialect.kernels.rows.dispatch import CombineConfig, SortConfig
from cute_dialect.kernels.rows.route import MOST_CHOSEN, MOST_EXPERTS, RouteConfig
from cute_dialect.op.errors import ArgumentError, ShapeError, UnsupportedError
from cute_dialect.runtime.call_options import index_of

ROUTED = ("bf16", "f16", "f32")
"""Types of logits, and of rows that are combined."""

DISPATCHED = (*ROUTED, "f8E4M3FN", "f8E5M2", "i8")
"""Types of rows that are dispatched."""

SPELLINGS = {
    "topk": "pass k", "top_k": "pass k", "scoring_func": "pass score", "e_score_correction_bias": "pass bias",
    "num_expert_group": "pass groups", "n_group": "pass groups", "topk_group": "pass top_groups",
    "renormalize": "pass normalise", "norm_topk_prob": "pass normalise", "routed_scaling_factor": "pass scale",
}  # fmt: skip
"""Arguments of vLLM's and DeepSeek's routers."""

NUMBERS = ("i32", "i64")
"""Types of the indices of experts."""

_LIMIT = 1 << 31
"""Vectors of all tokens, and pairs, are counted in 32 bits."""


class RouteSettings(NamedTuple):
    """The settings of a call of ``op.route``, as the user passed them."""

    k: int
    score: str = "softmax"
    groups: int | None = None
    top_groups: int | None = None
    normalise: bool = True
    scale: float = 1.0

    @staticmethod
    def of(k: object, score: str, groups: object, top_groups: object, normalise: bool, scale: object) -> RouteSettings:
        """Return the settings, with NumPy's numbers as those of Python."""
        sizes: list[Any] = [_whole(x) for x in (k, groups, top_groups)]
        factor: Any = scale if type(scale) in (int, float, bool) or not isinstance(scale, Real) else float(scale)
        return RouteSettings(sizes[0], score, sizes[1], sizes[2], normalise, factor)

    def config(self, element: str, experts: int, has_bias: bool = False) -> RouteConfig:
        """Return the configuration of the kernel.  Raises ArgumentError, ShapeError, UnsupportedError."""
        self._check_numbers()
        if not 1 <= experts <= MOST_EXPERTS:
            raise ShapeError(f"route: rows of logits have {experts} experts; 1 to {MOST_EXPERTS} are supported")
        groups = self.groups or 1
        top = self.top_groups or groups
        if experts % groups:
            raise ArgumentError(f"route: groups={groups} does not divide the {experts} experts; pass a divisor")
        if top > groups:
            raise ArgumentError(f"route: top_groups={top} exceeds groups={groups}; pass at most {groups}")
        most = min(experts // groups * top, MOST_CHOSEN)
        if self.k > most:
            limit = f"the limit of {MOST_CHOSEN}" if most == MOST_CHOSEN else f"the {most} experts"
            among = f" of top_groups={top} of {groups} groups" if groups > 1 and most < MOST_CHOSEN else ""
            raise ArgumentError(f"route: k={self.k} exceeds {limit}{among}; pass at most {most}")
        if top == groups:
            groups = top = 1
        return RouteConfig(element, experts, self.k, self.score, has_bias, groups, top, bool(self.normalise))

    def _check_numbers(self) -> None:
        if self.score not in ("softmax", "sigmoid"):
            raise UnsupportedError(f"route: score={self.score!r} is not supported; use 'softmax' or 'sigmoid'")
        if self.top_groups is not None and self.groups is None:
            raise ArgumentError(
                f"route: top_groups={self.top_groups!r} needs groups; pass the number of groups as well"
            )
        for name in ("k", "groups", "top_groups"):
            value = getattr(self, name)
            if value is None and name != "k":
                continue
            if type(value) is not int or value < 1 or (name != "k" and value > MOST_CHOSEN):
                allowed = "a positive number" if name == "k" else f"1 to {MOST_CHOSEN}, or None"
                raise ArgumentError(f"route: {name} is {value!r}; pass {allowed}")
        if self.groups is not None and self.top_groups is None:
            raise ArgumentError(
                f"route: groups={self.groups} needs top_groups; pass the number of groups to choose, or omit groups"
            )
        if type(self.normalise) is not bool:
            raise ArgumentError(f"route: normalise is {self.normalise!r}; pass True or False")
        if type(self.scale) not in (int, float) or not isfinite(self.scale):
            raise ArgumentError(f"route: scale is {self.scale!r}; pass a finite number")


def check_experts(num_experts: object) -> int:
    """Return the number of experts of ``op.dispatch``.  Raises ArgumentError."""
    found = _whole(num_experts)
    if type(found) is not int or not 1 <= found <= MOST_EXPERTS:
        raise ArgumentError(f"dispatch: num_experts is {found!r}; pass 1 to {MOST_EXPERTS}")
    return found


def _whole(value: object) -> object:
    """Return an integer of NumPy as one of Python, and any other value unchanged."""
    found = None if value is None or type(value) is int else index_of(value)
    return value if found is None else found


def sort_config(element: str, num_experts: int, is_alone: bool) -> SortConfig:
    """Return the configuration of the sort.

    Args:
        is_alone: one block has all pairs.
    """
    return SortConfig(element, num_experts, is_alone)


def rows_config(call: str, element: str, columns: int, pairs: tuple[int, ...], has_weights: bool) -> CombineConfig:
    """Return the configuration of the copies and sums of rows.  Raises ShapeError, UnsupportedError.

    Args:
        columns: elements of a row.
        pairs: shape (…, k) of the indices of experts or rows.
    """
    k = pairs[-1]
    if not 1 <= k <= MOST_CHOSEN:
        raise ShapeError(f"{call}: {k} rows per token; 1 to {MOST_CHOSEN} are supported")
    c = CombineConfig(element, k, has_weights)
    vectors = -(-columns // c.vector)
    if prod(pairs) >= _LIMIT or prod(pairs[:-1]) * vectors >= _LIMIT:
        raise UnsupportedError(
            f"{call}: {prod(pairs[:-1])} tokens of {columns} elements exceed 2^31 vectors; split them"
        )
    threads = 32
    while threads < c.threads and threads < vectors:
        threads *= 2
    return c._replace(threads=threads)
