"""``op.mm`` and ``op.bmm`` with CPU tensors, and the interpreter in the GPU's place."""

from __future__ import annotations

from typing import Any

import pytest

from cute_dialect.kernels.ampere_gemm import AmpereConfig, ampere_gemm_text
from cute_dialect.op import compiled, gemm, ways
from cute_dialect.op.choice import Choice
from cute_dialect.pipelines import compile


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let products be computed on the CPU; returns the names of the kernels that ran."""
    names: list[str] = []

    def on_the_cpu(name: str, text: str) -> Any:
        kernel = compile(text, emit="base", filename=f"{name}.mlir").kernel("launch")

        def run(*args: object) -> None:
            names.append(name)
            kernel(*args, device="cpu")

        return run

    def runner(choice: Choice) -> Any:
        assert choice.parts == 1 and not choice.config.stream_k

        class Module:
            def kernel(self, name: str) -> Any:
                return on_the_cpu(choice.name, compiled.text_of(choice))

        return compiled.Runner(choice, Module())  # type: ignore[arg-type]

    def any_rows(element: str, major_a: str, major_b: str, batch: bool = False) -> Any:
        majors = tuple("k" if x == "k" else "mn" for x in (major_a, major_b))
        config = AmpereConfig(element, majors=majors, batch=batch, tile=(64, 64, 32))
        return on_the_cpu("any", ampere_gemm_text(config))

    def way(device: object, *matrices_and_types: Any) -> ways.Way:
        return ways.way_of(*matrices_and_types, "", 132)

    monkeypatch.setattr(gemm, "check_product", lambda *_: None)  # there the GPU is asked for
    monkeypatch.setattr(gemm, "_way", way)
    monkeypatch.setattr(ways, "runner", runner)
    monkeypatch.setattr(ways, "any_rows", any_rows)
    return names
