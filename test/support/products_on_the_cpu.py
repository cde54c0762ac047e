"""``op.mm`` and other GEMMs in the interpreter: calls without ``device`` run there, and their kernels are recorded."""

from __future__ import annotations

from typing import Any

import pytest

from cute_dialect.kernels.gemm.ampere import AmpereConfig
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.simt import ExactConfig
from cute_dialect.op.execute import gemm as products
from cute_dialect.op.execute.kernels import Variant
from cute_dialect.op.functions import gemm
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.torch.gradients import SlopeCall


def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the kernels that run from now on; ``any`` is the kernel for matrices that TMA cannot load."""
    names: list[str] = []
    launcher_of = products.launcher_of

    def noted_launcher(variant: Variant, cpu: bool = False) -> Any:
        if isinstance(variant.configured, Choice):
            names.append(variant.name)
        elif isinstance(variant.configured, AmpereConfig | WarpConfig | ExactConfig):
            names.append("any")
        return launcher_of(variant, cpu)

    monkeypatch.setattr(products, "launcher_of", noted_launcher)
    return names


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run calls without ``device`` in the interpreter, and record the names of their kernels."""
    product = gemm.product

    def on_the_cpu(*given: Any, **more: Any) -> Any:
        before, (device, *rest) = given[:7], given[7:]
        return product(*before, "cpu" if device is None else device, *rest, **more)

    computed = SlopeCall.computed

    def slope_on_the_cpu(self: SlopeCall, args: Any, device: object = None, *more: Any) -> Any:
        return computed(self, args, "cpu" if device is None else device, *more)

    monkeypatch.setattr(gemm, "product", on_the_cpu)
    monkeypatch.setattr(SlopeCall, "computed", slope_on_the_cpu)
    return noted(monkeypatch)
