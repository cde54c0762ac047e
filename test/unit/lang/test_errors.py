"""The error hierarchy: CuteError is the root, and ``cute`` or ``op`` exports each class."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect import op

MATRIX = np.ones((16, 16), np.float16)
PAGE = Path(__file__).resolve().parents[3] / "docs/language.md"


def error_classes(package: object) -> dict[str, type[Exception]]:
    found = {name: getattr(package, name) for name in dir(package)}
    return {n: c for n, c in found.items() if inspect.isclass(c) and issubclass(c, Exception)}


@pytest.mark.parametrize("package", [cute, op], ids=["cute", "op"])
def test_every_public_error_is_a_cute_error(package: object) -> None:
    classes = error_classes(package)
    assert classes and all(issubclass(c, cute.CuteError) for c in classes.values())
    assert all(c.__name__ == name for name, c in classes.items())


def test_errors_of_op() -> None:
    assert op.OpError is cute.OpError
    for name, found in error_classes(op).items():
        assert issubclass(found, op.OpError)
        own = getattr(cute, name, None)
        if own is not None and issubclass(own, cute.LaunchError):
            assert issubclass(found, own), name
    assert issubclass(op.ArgumentError, TypeError)


def test_the_page_names_every_class() -> None:
    section = PAGE.read_text().partition("\n## Errors\n")[2].partition("\n| codes |")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert set(error_classes(cute)) - {"CuteError", "NotAnArray"} <= named
    classes = [n for n in named if n.endswith("Error") and n not in ("TypeError", "ValueError", "UnboundLocalError")]
    assert all(hasattr(cute, n) for n in classes)


def test_lowering_errors_are_compile_errors() -> None:
    from cute_dialect.pipelines import compile

    with pytest.raises(cute.CompileError, match="nothing") as caught:
        compile("module { cute.nothing }")
    assert isinstance(caught.value, cute.LoweringError) and caught.value.diagnostics


@pytest.mark.parametrize(
    "call",
    [
        lambda: op.mm(MATRIX, MATRIX, devise="cpu"),  # pyright: ignore[reportCallIssue]
        lambda: op.softmax(MATRIX, axis=1),  # pyright: ignore[reportCallIssue]
        lambda: op.relu(MATRIX, inplace=True),  # pyright: ignore[reportCallIssue]
        lambda: op.explain(op.mm, MATRIX, MATRIX, devise=0),
        lambda: op.prefetch([], threads=2),  # pyright: ignore[reportCallIssue]
        lambda: op.choose(None, gpus=""),  # pyright: ignore[reportCallIssue, reportArgumentType]
        lambda: op.Gemm(elements="f16"),  # pyright: ignore[reportCallIssue]
        lambda: op.Attention(element="f16", head_sizes=64),  # pyright: ignore[reportCallIssue]
    ],
)
def test_unknown_keywords_of_op(call: Callable[[], object]) -> None:
    with pytest.raises(op.ArgumentError, match=r"has no argument '?(devise|axis|inplace|threads|gpus|elements|head_s)"):
        call()


@pytest.mark.parametrize("options", [{"device": "tpu"}, {"device": 1.5}, {"device": "cpu", "checks": 3}])
def test_wrong_options_of_op(options: dict[str, object]) -> None:
    with pytest.raises(op.OptionError, match=f"^mm: {list(options)[-1]}: ") as caught:
        op.mm(MATRIX, MATRIX, **options)  # pyright: ignore[reportArgumentType]
    assert isinstance(caught.value, cute.OptionError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cute.sym_int(width=3), "width must be 32 or 64"),
        (lambda: cute.utils.get_smem_capacity_in_bytes("sm_1"), "chip must be one of"),
        (lambda: cute.pipeline.CooperativeGroup(cute.pipeline.Agent.Thread, 0), "size must be at least 1"),
        (lambda: cute.generic("a b"), "parameter names must be identifiers"),
    ],
)
def test_helpers_raise_usage_errors(call: Callable[[], object], message: str) -> None:
    with pytest.raises(cute.UsageError, match=message) as caught:
        call()
    assert isinstance(caught.value, cute.CuteError | ValueError | TypeError)


def test_usage_errors_in_a_trace_are_located() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor):
        cute.pipeline.CooperativeGroup(cute.pipeline.Agent.Thread, 0)

    with pytest.raises(cute.CompileError, match="size must be at least 1") as caught:
        kernel(MATRIX).launch(grid=1, block=1, device="cpu")
    assert isinstance(caught.value, ValueError) and "test_errors.py" in str(caught.value)
