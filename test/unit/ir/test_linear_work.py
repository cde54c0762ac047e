"""Work grows linearly with the file size, counted in Python steps at n, 2n and 4n."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from steps_support import steps
from xdsl.ir import Block

from cute_dialect.interp import run_function
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.tools.cute_opt import main


def function(body: list[str], arguments: str = "", end: str = "\n") -> str:
    return end.join([f"func.func @f({arguments}) {{", *body, "return", "}", ""])


FILES: dict[str, Callable[[int], str]] = {
    "constants": lambda n: function([f"%c{i} = arith.constant {i} : i64" for i in range(n)]),
    "equal constants": lambda n: function([f"%c{i} = arith.constant 7 : i64" for i in range(n)]),
    "one line": lambda n: function([f"%c{i} = arith.constant {i} : i64" for i in range(n)], end=" "),
    "a chain": lambda n: function([f"%c{i + 1} = arith.addi %c{i}, %c0 : i32" for i in range(n)], "%c0: i32"),
    "arguments": lambda n: function([], ", ".join(f"%a{i}: i32" for i in range(n))),
    "used before defined": lambda n: function(
        ["cf.br ^b", "^a:", *[f"%u{i} = arith.addi %v{i}, %v{i} : i32" for i in range(n)], "return"]
        + ["^b:", *[f"%v{i} = arith.constant {i} : i32" for i in range(n)], "cf.br ^a", "^c:"]
    ),
    "functions": lambda n: "\n".join(f"func.func @f{i}() {{\nreturn\n}}" for i in range(n)),
}
OPTIONS = (
    [],
    ["--verify-roundtrip", "--mlir-print-op-generic"],
    ["--cute-fold-static", "--cute-expand-ops", "--convert-cute-algo-to-arch", "--cute-to-base"],
    ["--canonicalize", "--cse", "--loop-invariant-code-motion"],
)


@pytest.mark.sample(every=14)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "print")
@pytest.mark.parametrize("kind", FILES)
def test_steps_grow_linearly_with_the_file(
    kind: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.mlir"
    counts: list[int] = []
    for n in (4, 40, 80, 160):  # The first run imports modules and is not compared.
        path.write_text(FILES[kind](n))
        counts.append(steps(lambda: main([str(path), *options])))
    assert capsys.readouterr().err == ""
    _, once, twice, four_times = counts
    assert four_times - twice < 2.2 * (twice - once), counts


def test_function_arguments_are_created_in_one_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_more(*_: object) -> None:
        raise AssertionError("each argument more copies those before it")

    monkeypatch.setattr(Block, "insert_arg", one_more)
    path = tmp_path / "in.mlir"
    path.write_text(FILES["arguments"](50))
    assert main([str(path), "--cute-to-base"]) == 0
    assert capsys.readouterr().out.count("%arg49: i32") == 1


def test_running_a_function_does_not_look_into_others() -> None:
    def work(n: int) -> int:
        other = "\n".join(f"%c{i} = arith.constant {i} : i32" for i in range(n))
        text = f"func.func @g() {{\n{other}\nreturn\n}}\nfunc.func @f(%a: i32) -> i32 {{\nreturn %a : i32\n}}\n"
        module = parse_module(text)
        assert run_function(module, "f", [3]) == (3,)
        return steps(lambda: run_function(module, "f", [3]))

    few, many = work(10), work(1000)
    assert many < few + 100
