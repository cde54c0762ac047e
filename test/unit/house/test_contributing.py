"""CONTRIBUTING.md names the source files of each kind of addition, and a pass and a chip need only those."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cute_dialect.arch import targets
from cute_dialect.arch.targets import KIB, Needs, Target, find_target, lacking
from cute_dialect.lang.utils import get_smem_capacity_in_bytes
from cute_dialect.op import Problem, choose
from cute_dialect.op.select.cost_model import COSTS, costs_of, costs_path, predict, write_costs
from cute_dialect.passes.base import Pass
from cute_dialect.passes.registry import PASSES, records
from cute_dialect.pipelines.registry import PIPELINES

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ADDITIONS = TEXT[TEXT.index("## How to add") : TEXT.index("## What a commit must pass")]
NOT_SOURCES = ("test/", "docs/", "examples/", "tools/")


def sources(recipe: str) -> set[str]:
    """Return the source files that a numbered list names.

    A name without a folder is in the folder of the file before it.
    """
    found: set[str] = set()
    folder = ""
    items = "".join(re.findall(r"^(?:\d\.|  ).*\n", recipe, flags=re.MULTILINE))
    for name in re.findall(r"`([\w./-]+\.(?:pyi?|json))`", items):
        path = name if "/" in name else f"{folder}/{name}"
        folder = path.rpartition("/")[0]
        if not path.startswith(NOT_SOURCES):
            assert (ROOT / path).is_file(), path
            found.add(path)
    return found


RECIPES = {
    heading: body for heading, body in re.findall(r"^### (.+)\n((?:(?!### ).*\n)*)", ADDITIONS, flags=re.MULTILINE)
}
TABLE = {
    heading: int(number)
    for heading, number in re.findall(r"^\| \[([^\]]+)\]\(#[\w-]+\) \| (\d+) \|", ADDITIONS, flags=re.MULTILINE)
}


def test_the_table_counts_the_source_files_of_each_recipe() -> None:
    assert len(TABLE) == 9 and set(TABLE) <= set(RECIPES)
    assert {heading: len(sources(RECIPES[heading])) for heading in TABLE} == TABLE


@pytest.mark.parametrize(
    ("kinds", "most"),
    [
        (("An MMA family, as `wgmma`", "A memory space, as tensor memory", "A kernel, as the transpose"), 22),
        (("An operation of `op`, as `op.softmax`",), 7),
        (("A pass, as `cute-fold-static`",), 2),
        (("A chip of a known family",), 2),
    ],
)
def test_an_addition_touches_few_files(kinds: tuple[str, ...], most: int) -> None:
    assert len(set().union(*(sources(RECIPES[kind]) for kind in kinds))) <= most


def test_records_match_the_classes_of_passes() -> None:
    for row in PASSES.values():
        if not row.upstream:
            cls = row.load()
            assert issubclass(cls, Pass) and cls.__name__ == row.class_name
            assert (cls.name, cls.summary, cls.scope, cls.in_upstream) == (row.name, row.summary, row.scope, row.both)
    classes = [
        (f".{file.stem}", name)
        for file in sorted((ROOT / "passes").glob("*.py"))
        for name in re.findall(r"^class (\w+)\(Pass\):", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]
    assert [(row.module, row.class_name) for row in records(str(ROOT / "passes"))] == classes


PASS = '''
from xdsl.ir import Operation

from cute_dialect.passes.base import Pass, PassContext


class CountOpsPass(Pass):
    """Count ops."""

    name = "cute-count-ops"
    summary = "remark how many ops a function has"
    scope = "base"
    anchor = ("func.func",)

    def run(self, op: Operation, ctx: PassContext) -> None:
        ctx.remark(f"{sum(1 for _ in op.walk())} ops", op)
'''
OPT = """
import sys
import cute_dialect.passes
cute_dialect.passes.__path__.append(sys.argv[1])
from cute_dialect.pipelines.registry import PIPELINES, NamedPipeline
PIPELINES["count"] = NamedPipeline("count", "", "builtin.module(func.func(cute-count-ops))", {})
from cute_dialect.tools.cute_opt import main
del sys.argv[1]
main()
"""


@pytest.mark.slow
@pytest.mark.end_to_end  # The test runs programs.
def test_a_pass_is_a_file_and_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "count_ops.py").write_text(PASS)
    (row,) = records(str(tmp_path))
    assert (row.name, row.scope, row.module, row.class_name) == ("cute-count-ops", "base", ".count_ops", "CountOpsPass")
    source = tmp_path / "f.mlir"
    source.write_text("func.func @f() {\n  return\n}\n")
    for flag in ("--pipeline=count", "--cute-count-ops"):
        run = [sys.executable, "-c", OPT, str(tmp_path), str(source), flag]
        done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
        assert "remark: 2 ops" in done.stderr and done.returncode == 0, done.stderr
    listed = subprocess.run(
        [sys.executable, "-c", OPT, str(tmp_path), "--list-passes"], capture_output=True, text=True, cwd=ROOT
    )
    assert re.search(r"cute-count-ops +remark how many ops a function has", listed.stdout)


def test_a_chip_is_a_target_and_a_cost_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chip, gpu = "sm_91", "NVIDIA X91"
    row = Target(chip, 86, 228 * KIB, 200 * KIB, 2048, 32, 96)
    monkeypatch.setitem(targets.TARGETS, chip, row)  # type: ignore[arg-type]
    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path))
    assert find_target(chip) == row and lacking(row, "elect", Needs("sm_90", "8.0")) is None
    assert "chip=sm_91 features=+ptx86" in PIPELINES["nvptx"].text({"chip": chip})
    assert get_smem_capacity_in_bytes(chip) == 200 * KIB
    problem = Problem(4096, 4096, 4096)
    write_costs(costs_path(gpu), gpu, COSTS._replace(sms=96, ghz=0.5))
    costs = costs_of(gpu, 96)
    assert (costs.sms, costs.ghz) == (96, 0.5)
    chosen = choose(problem, gpu=gpu)
    assert predict(chosen, problem, costs) > predict(choose(problem, gpu="NVIDIA H200"), problem)
