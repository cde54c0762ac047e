"""``op.mm`` and other GEMMs in the interpreter: calls without ``device`` run there, and their kernels are recorded."""

from __future__ import annotations

from typing import Any

import pytest

from cute_dialect.op.execute import gemm as products
from cute_dialect.op.functions import gemm
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.torch.gradients import SlopeCall


def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the kernels that run from now on; ``any`` is the kernel for matrices that TMA cannot load."""
    names: list[str] = []
    runner, any_rows = products.runner, products.any_rows

    def noted_runner(choice: Choice, cpu: bool = False) -> Any:
        names.append(choice.name)
        return runner(choice, cpu)

    def noted_any_rows(*what: Any) -> Any:
        names.append("any")
        return any_rows(*what)

    monkeypatch.setattr(products, "runner", noted_runner)
    monkeypatch.setattr(products, "any_rows", noted_any_rows)
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
