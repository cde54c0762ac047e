"""Routing of a mixture of experts: checks of the settings of ``op.route``.

>>> RouteSettings(8).config("bf16", 128).name
'route-bf16-128-8-softmax'
>>> RouteSettings(10, groups=8, top_groups=1).config("bf16", 64)
Traceback (most recent call last):
    ...
cute_dialect.op.errors.ArgumentError: route: k=10 exceeds the 8 experts of top_groups=1 of 8 groups; pass at most 8
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from cute_dialect.kernels.rows.route import MOST_CHOSEN, MOST_EXPERTS, RouteConfig
from cute_dialect.op.errors import ArgumentError, ShapeError, UnsupportedError

ROUTED = ("bf16", "f16", "f32")
"""Types of logits."""


class RouteSettings(NamedTuple):
    """The settings of a call of ``op.route``, as the user passed them."""

    k: int
    score: str = "softmax"
    groups: int | None = None
    top_groups: int | None = None
    normalise: bool = True
    scale: float = 1.0

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
        if type(self.scale) not in (int, float) or not isfinite(self.scale):
            raise ArgumentError(f"route: scale is {self.scale!r}; pass a finite number")
