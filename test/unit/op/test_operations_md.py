"""The code of ``docs/operations.md`` runs, block after block, with the interpreter in the GPU's place, and prints what
the page says; ``...`` there stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from products_on_the_cpu import put_in_place  # noqa: E402

from cute_dialect import op  # noqa: E402

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def half(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(0)).half()


def test_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    launched = put_in_place(monkeypatch)
    names: dict[str, Any] = {
        "op": op, "a": half(64, 72), "b": half(72, 96), "out": torch.zeros(64, 96).half(), "s": half(64, 96),
        "v": half(96), "p": half(64, 72).to(torch.int8), "q": half(72, 96).to(torch.int8), "torch": torch,
        "a8": half(64, 72).to(torch.float8_e4m3fn), "b8": half(96, 72).to(torch.float8_e4m3fn).t(),
        "sa": torch.full((64, 1), 0.5), "sb": torch.full((1, 96), 2.0),
        "x": half(3, 64, 72), "y": half(3, 72, 96),
    }  # fmt: skip
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds.count("python") >= 2 and set(kinds) == {"python", ""}
    for number, (kind, block) in enumerate(BLOCKS):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, f"block {number}", "exec"), names)
        following = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else ("python", "")
        wanted = following[1] if following[0] == "" else ""
        matches = doctest.OutputChecker().check_output(wanted, printed.getvalue(), doctest.ELLIPSIS)
        assert matches or wanted == printed.getvalue(), printed.getvalue()
    a, b, x, y, s, v = (names[n].double() for n in ("a", "b", "x", "y", "s", "v"))
    assert torch.equal(names["out"].double(), a @ b)
    assert torch.equal(names["c"].double(), x @ y[:1])
    exact = torch.nn.functional.gelu(0.5 * a @ b + 2 * s + v)
    assert float((names["d"].double() - exact).abs().max()) < 0.05
    exact = names["p"].double() @ names["q"].double()
    assert torch.equal(names["i"].double(), exact) and names["i"].dtype == torch.int32
    assert torch.equal(names["j"].double(), torch.round(0.25 * exact + v).clamp(-128, 127))
    assert torch.equal(names["f"].float(), (a @ b).float().to(torch.float8_e4m3fn).float())
    assert torch.equal(names["t"].double(), a @ b) and torch.equal(names["u"].double(), a @ b)
    assert torch.equal(names["w"].double(), a @ b)
    assert torch.equal(names["g"].double(), names["a8"].double() @ names["b8"].double())
    assert len(launched) > 17
