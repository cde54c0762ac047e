"""Cached calls replayed on the GPU with other values at other addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from repeated_calls import CALLS, near, of_scales, scaled  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.functions import conv as functions  # noqa: E402
from cute_dialect.op.functions import gemm  # noqa: E402
from cute_dialect.op.functions import scaled as of_scaled  # noqa: E402


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("repeated")


def count() -> int:
    tables: list[Any] = [*gemm.PLAIN.values(), *gemm.FUSED.values(), *gemm.GRAPHS.values()]
    return sum(map(len, [*tables, of_scaled.KNOWN, functions.KNOWN, functions.LAYERS]))


@pytest.mark.parametrize("name", CALLS)
def test_kinds_of_calls(name: str) -> None:
    torch.manual_seed(len(name))
    call, make, wanted, tolerance = CALLS[name]
    before, kept = count(), list[Any]()
    with torch.device("cuda"):
        for _ in range(4):
            arguments = make()
            near(call(*arguments), wanted(*arguments), tolerance)
            kept.append(arguments)
    assert count() > before


def test_a_graph_of_repeated_calls() -> None:
    with torch.device("cuda"):
        a, b, x, y = of_scales("row")()
        op.scaled_mm(a, b, x, y)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = op.scaled_mm(a, b, x, y)
        x.mul_(2.0)
        graph.replay()
        near(found, scaled(a, b, x, y), 1e-2)


def test_other_streams() -> None:
    """A cached call runs on the current stream, after the work that the stream waits for."""
    with torch.device("cuda"):
        call, make, wanted, tolerance = CALLS["squares"]
        call(*make())
        side = torch.cuda.Stream()
        for _ in range(4):
            arguments = make()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                found = call(*arguments)
            torch.cuda.current_stream().wait_stream(side)
            near(found, wanted(*arguments), tolerance)
