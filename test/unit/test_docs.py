"""The reference of the dialect: every example verifies, every core op is described in full, the file is current."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

from cute_dialect.dialect import core_ops, get_cute_dialect, get_cute_nvgpu_dialect
from cute_dialect.tools.gen_docs import DOCS, annotated, op_text, read_example, sections

ALL = [*get_cute_dialect().operations, *get_cute_nvgpu_dialect().operations]
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
    assert op.name in doc.syntax
    assert doc.inference and doc.example


def test_document_has_the_core_ops_as_they_are() -> None:
    document = DOCS.read_text()
    stale = [op.name for op in core_ops() if op_text(op).rstrip() not in document]  # pyright: ignore
    assert not stale, f"run python -m cute_dialect.tools.gen_docs: {stale}"


def test_inferred_results_are_shown() -> None:
    line = '%r = cute.slice(%l, %c) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(_,2)">'
    assert annotated(line) == line + '\n// -> !cute.layout<"(6):(5)">'
