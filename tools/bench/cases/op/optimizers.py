"""Steps of AdamW for ``cute-bench op``: group ``optimizers``, compared with ``torch.optim.AdamW(fused=True)``.

TB/s counts parameters, gradients and moments: all are read, and all but the gradients are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.elementwise.adamw import AdamwConfig, adamw_text
from cute_dialect.tools.bench.runner import Text, Trial, check_close, dtype

if TYPE_CHECKING:  # pragma: no cover
    import torch

_LR, _EPS, _DECAY = 1e-3, 1e-8, 1e-2
_BETAS = (0.9, 0.999)
_STEP = 7


class Adamw(NamedTuple):
    """A step for parameters of ``shapes``, ``repeated`` times, with moments of type f32 or of the parameters' type."""

    element: str
    state: str
    shapes: tuple[tuple[int, ...], ...]
    repeated: int = 1

    @property
    def operation(self) -> str:
        return "adamw"

    @property
    def name(self) -> str:
        shapes = " ".join("x".join(map(str, s)) for s in self.shapes)
        return f"adamw {self.element} moments {self.state} {self.repeated} of {shapes}"

    @property
    def elements(self) -> int:
        """Number of elements of the parameters."""
        return self.repeated * sum(prod(s) for s in self.shapes)

    @property
    def traffic(self) -> int:
        """The minimum number of bytes to move."""
        element, state = (4 if x == "f32" else 2 for x in (self.element, self.state))
        return self.elements * (3 * element + 4 * state)

    def kernels(self) -> Mapping[str, Text]:
        vector = 4 if "f32" in (self.element, self.state) else 8
        c = AdamwConfig(self.element, self.state, vector)
        return {c.name: partial(adamw_text, c)}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.repeated)
        shapes = [s for _ in range(self.repeated) for s in self.shapes]

        def made(element: str, scale: float) -> list[torch.Tensor]:
            return [(torch.rand(s, device=device) * scale).to(dtype(element)) for s in shapes]

        lists = [made(self.element, 1.0), made(self.element, 1.0), made(self.state, 0.1), made(self.state, 0.1)]
        theirs = [torch.nn.Parameter(t.clone()) for t in lists[0]]
        peer = torch.optim.AdamW(theirs, betas=_BETAS, fused=device == "cuda", lr=_LR, eps=_EPS, weight_decay=_DECAY)
        for p, g in zip(theirs, lists[1]):
            p.grad = g

        def ours() -> None:
            p, g, m, v = lists
            how = {"beta1": _BETAS[0], "beta2": _BETAS[1], "lr": _LR, "eps": _EPS, "weight_decay": _DECAY}
            op.adamw_(p, g, m, v, _STEP, device=None if device == "cuda" else device, **how)  # type: ignore[arg-type]

        def check() -> float:
            """Compare a step with float64."""
            before = [[t.double() for t in x] for x in lists]
            ours()
            worst = 0.0
            for i, (p, g, m, v) in enumerate(zip(*before)):
                m, v = m + (1 - _BETAS[0]) * (g - m), _BETAS[1] * v + (1 - _BETAS[1]) * g * g
                root = (v / (1 - _BETAS[1] ** _STEP)).sqrt() + _EPS
                p = p * (1 - _LR * _DECAY) - _LR / (1 - _BETAS[0] ** _STEP) * m / root
                for found, wanted in ((lists[0][i], p), (lists[2][i], m), (lists[3][i], v)):
                    limit = 4e-6 if found.dtype == torch.float32 else 9e-3
                    worst = max(worst, check_close(self.name, found, wanted, limit))
            return worst

        return Trial(check, ours, {"torch fused": peer.step}, self.traffic, float(self.traffic), "TB/s")


_SMALL = ((128, 512), (512,), (128,))

CASES = (
    *(Adamw(e, s, ((4096, 4096),), 12) for e, s in (("f32", "f32"), ("bf16", "bf16"), ("bf16", "f32"))),
    Adamw("f32", "f32", ((1024, 1024), (1024,)), 40),
    Adamw("f32", "f32", _SMALL, 60),
    Adamw("bf16", "bf16", _SMALL, 60),
)

GROUPS = {"optimizers": CASES}
