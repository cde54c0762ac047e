"""Dialect reference: every example verifies, core ops have full descriptions, and the file and the
performance tables are current.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from xdsl.ir import Operation

import cute_dialect
from cute_dialect.dialect.registry import core_ops, get_cute_dialect, get_cute_nvgpu_dialect
from cute_dialect.tools.docs.dialect import DOCS, annotated, op_text, read_example, sections, syntax_of

ALL = [*get_cute_dialect().operations, *get_cute_nvgpu_dialect().operations]
ROOT = Path(__file__).parents[3]
IMAGES = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
WITH_EXAMPLE = [op for op in ALL if sections(op.__doc__).example]


@pytest.mark.parametrize("op", WITH_EXAMPLE, ids=lambda op: op.name)
def test_example_verifies_and_shows_the_op(op: type[Operation]) -> None:
    module = read_example(sections(op.__doc__).example)
    module.verify()
    assert any(type(o) is op for o in module.walk())


@pytest.mark.parametrize("op", core_ops(), ids=lambda op: op.name)
def test_core_op_is_described(op: type[Operation]) -> None:
    doc = sections(op.__doc__)
    assert doc.summary.count("\n") == 0 and doc.summary.endswith((".", "``")) and len(doc.summary) > 10
    assert op.name in (doc.syntax or syntax_of(op))  # pyright: ignore
    assert doc.inference and doc.example


def test_document_of_core_ops_is_current() -> None:
    document = DOCS.read_text()
    stale = [op.name for op in core_ops() if op_text(op).rstrip() not in document]  # pyright: ignore
    assert not stale, f"run python -m cute_dialect.tools.docs.dialect: {stale}"


def test_inferred_results_are_shown() -> None:
    line = '%r = cute.slice(%l, %c) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(_,2)">'
    assert annotated(line) == line + '\n// -> !cute.layout<"(6):(5)">'


def test_performance_tables_and_charts_are_current(tmp_path: Path) -> None:
    from cute_dialect.tools.docs import performance as gen_performance

    assert gen_performance.main(["--check", "--root", str(ROOT)]) == 0
    for folder in ("docs/performance", "docs/pictures/performance"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "docs" / "performance.md", tmp_path / "docs")
    (tmp_path / "test" / "bench").mkdir(parents=True)
    (tmp_path / "test" / "bench" / "results").symlink_to(ROOT / "test" / "bench" / "results")
    page, picture = tmp_path / "docs/performance/gemm.md", tmp_path / "docs/pictures/performance/named.svg"
    text, chart = page.read_text(encoding="utf-8"), picture.read_text(encoding="utf-8")
    for file, wrong in (
        (page, text.replace("| geometric mean of the six large | **", "| geometric mean of the six large | **9")),
        (picture, chart.replace("<circle", "<square", 1)),
    ):
        file.write_text(wrong, encoding="utf-8")
        assert gen_performance.main(["--check", "--root", str(tmp_path)]) == 1
        assert gen_performance.main(["--root", str(tmp_path)]) == 0
    assert (page.read_text(encoding="utf-8"), picture.read_text(encoding="utf-8")) == (text, chart)


def test_charts_show_every_problem_with_a_peer() -> None:
    from cute_dialect.tools.docs.performance import draw, named

    results = ROOT / "test" / "bench" / "results"
    charts = draw(results)
    assert charts["named"].count("<circle") == sum(len(row.ratios) for row in named(results)) > 500
    shown = {
        p.stem for page in (ROOT / "docs").rglob("*.md") for p in map(Path, IMAGES.findall(page.read_text("utf-8")))
    }
    assert set(charts) <= shown


ORDINARY = {
    "make_tensor", "make_swizzle", "grid_dim", "shuffle_sync", "shuffle_sync_bfly", "vote_ballot_sync",
    "warp_reduction_max", "make_warp_uniform", "map_dsmem_ptr", "block_idx_in_cluster", "tma_partition",
    "CopyBulkTensorTileG2SOp", "make_smem_layout_a", "make_smem_layout_b", "make_trivial_tiled_mma",
    "OperandMajorMode", "Field", "LayoutEnum", "Agent", "CooperativeGroup", "make_pipeline_state",
    "PipelineUserType", "StaticPersistentTileScheduler", "PersistentTileSchedulerParams", "MemRange", "Align",
    "Int64", "Float8E4M3FN",
}  # fmt: skip
"""Names that ordinary kernels use."""


def test_the_reference_is_current_and_has_every_public_name() -> None:
    from cute_dialect.tools.docs import reference as gen_reference
    from cute_dialect.tools.docs.reference import MODULES, public_modules

    pages = gen_reference.document()
    present = {p.name: p.read_text(encoding="utf-8") for p in gen_reference.DOCS.glob("*.md")}
    stale = sorted(name for name in {*pages, *present} if pages.get(name) != present.get(name))
    assert not stale, f"run python -m cute_dialect.tools.docs.reference: {stale}"
    entries = "\n".join(text for name, text in pages.items() if name != "index.md")
    for module, name in public_modules():
        assert f"`{MODULES[module]}.{name}`" in entries, (module, name)
    headings = {h.rpartition(".")[2] for h in re.findall(r"^### (?:class )?`([\w.]+)`$", entries, re.MULTILINE)}
    assert headings >= ORDINARY and len(headings) > 600


@pytest.mark.parametrize("page", ["arch", "copies_and_tma", "layouts", "mma", "tensors_and_memory"])
def test_signatures_name_the_types_of_operands(page: str) -> None:
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    vague = re.findall(r"(?<![*\w])(?!x\b|field\b|result\b)\w+: Any\b", text)
    assert vague == []


def test_public_modules_list_only_public_names() -> None:
    from cute_dialect.tools.docs.reference import MODULES, public_names

    for module in MODULES:
        if not module.startswith("cute_dialect.op."):
            assert set(dir(import_module(module))) == set(public_names(module)), module


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:cute_dialect|passes|pipelines|tools|test|docs)/[\w./-]+)`", text)
    missing = [path for path in named if path != "passes/foo_bar.py" and not (ROOT / path).exists()]
    assert len(named) > 30 and missing == []


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cute_dialect.__version__ == project["version"]


def test_design_names_modules_and_functions_that_exist() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    paths = {path: ROOT / path for path in re.findall(r"`([a-z0-9_/]+\.py)`", text)}
    paths = {name: path if path.exists() else ROOT / "cute_dialect" / name for name, path in paths.items()}
    assert not [name for name, path in paths.items() if not path.exists()]
    named = re.findall(r"`(\w+)` of `([a-z0-9_/]+\.py)`", text)
    assert len(named) > 10
    for name, path in named:
        assert re.search(rf"^(def |class )?{name}\b", paths[path].read_text(encoding="utf-8"), re.MULTILINE), name
