"""Grouped products that the GPU tests call, and the kernels that they need, found out on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from cute_dialect import op
from cute_dialect.op.grouped import call, kernels

ENDS = {
    "even": [64, 128, 192, 256],
    "skewed": [0, 3, 250, 250, 251, 300, 300],
    "none": [0, 0, 0],
    "many": list(range(3, 3 * 300 + 1, 3)),
}
REST = 12
"""Rows behind the last group."""


class Case(NamedTuple):
    """A call: what is cut, where groups end, extents, the element, options."""

    form: str
    ends: str
    m: int = 136
    n: int = 264
    k: int = 200
    element: str = "float16"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Names it."""
        more = "".join(f"-{key}{value}" for key, value in self.options)
        return f"{self.form}-{self.ends}-{self.m}x{self.n}x{self.k}-{self.element}{more}"

    @property
    def rows(self) -> int:
        """The extent that is cut, as long as TMA wants columns to be."""
        return -(-(ENDS[self.ends][-1] + REST) // 16) * 16

    def operands(self, device: str) -> tuple[Any, Any]:
        """Make operands of small integers; NaN in what is no group's."""
        generator = torch.Generator().manual_seed(len(self.name))

        def made(*shape: int) -> Any:
            return torch.randint(-2, 3, shape, generator=generator).to(getattr(torch, self.element)).to(device)

        groups, last = len(ENDS[self.ends]), ENDS[self.ends][-1]
        if self.form == "k":
            a, b = made(self.rows, self.m), made(self.rows, self.n)
            a[last:], b[last:] = float("nan"), float("inf")
            return a.t(), b
        rows, matrices = made(self.rows, self.k), made(groups, self.k, self.n)
        if self.element == "float8_e4m3fn":
            matrices = matrices.mT.contiguous().mT
        else:
            rows[last:] = float("nan")
        return (rows, matrices) if self.form == "m" else (matrices.mT, rows.t())

    def call(self, a: Any, b: Any, device: str | None = None) -> Any:
        """Call it."""
        offs = torch.tensor(ENDS[self.ends], dtype=torch.int32, device=a.device)
        options = dict(self.options)
        if options.pop("bias", False):
            options["bias"] = torch.arange(len(offs) * b.shape[-1], device=a.device).reshape(len(offs), -1).half() % 8
        return op.grouped_mm(a, b, offs, rest="zero", device=device, **options)


CASES = [
    *(Case("m", ends, element=element) for ends in ENDS for element in ("float16", "bfloat16")),
    *(Case("k", ends) for ends in ENDS),
    *(Case("n", ends) for ends in ("even", "skewed")),
    Case("m", "skewed", element="float8_e4m3fn", n=256, k=208),
    Case("m", "skewed", options=(("activation", "relu"), ("bias", True))),
    *(Case("m", "skewed", n=528, options=(("kernel", f"f16-f16-kn-{name}"),))
      for name in ("128x256-n2bd", "128x256-c2bd", "256x128-n2bd", "128x128-n2bt-q6", "192x128-c1b")),
    *(Case("k", "skewed", m=264, options=(("kernel", f"f16-f16-mn-{name}"),))
      for name in ("128x256-c1b", "128x128-n2bt-q6", "256x128-c1b")),
    Case("m", "even", n=2048, k=1024), Case("k", "even", m=1024, n=1024), Case("m", "skewed", n=33, k=45),
]  # fmt: skip


@contextmanager
def recorded() -> Iterator[dict[str, Any]]:
    """Give the configurations of kernels that calls need, by name; nothing is computed."""
    found: dict[str, Any] = {}

    def kernel_of(config: Any, cpu: bool = False) -> Any:
        found[kernels.name_of(config)] = config
        return lambda *_, **__: None

    before, call.kernel_of = call.kernel_of, kernel_of
    try:
        yield found
    finally:
        call.kernel_of = before


def texts() -> Mapping[str, str]:
    """Return the kernels of all cases by their names."""
    with recorded() as found:
        for case in CASES:
            case.call(*case.operands("cpu"), device="cpu")
    return {name: kernels.text_of(config) for name, config in found.items()}
