"""Catalogue of names: every op, type, pass and public name has an entry, and drawings fit into a message."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

import cute_dialect.lang as cute
from cute_dialect.passes.registry import PASSES
from cute_dialect.tools.lsp.analysis_results import Catalogue
from cute_dialect.tools.lsp.catalogue import describe, make_catalogue
from cute_dialect.tools.lsp.pictures import MOST_BYTES, picture_of, small
from cute_dialect.viz.layouts import draw_layout

ATOM = "!cute_nvgpu.atom.universal_copy<f32>"
TILED = 'layout_copy_tv = <"((4,8),2):((16,1),8)">, tiler_mn = <"[16:1;4:1]">'


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return make_catalogue()


def test_all_is_listed_and_described(catalogue: Catalogue) -> None:
    assert set(catalogue.flags) >= set(PASSES) | {"pipeline", "emit"}
    assert {name.removeprefix("cute.") for name in catalogue.python if name.count(".") == 1} == set(dir(cute))
    ours = [e for e in catalogue.ops.values() if e.name.startswith("cute")]
    assert len(ours) > 200 and [e.name for e in ours if not e.summary] == []
    for kind, entries in (
        ("op", list(catalogue.ops.values())[::25]),
        ("type", list(catalogue.types.values())),
        ("attribute", list(catalogue.attributes.values())[::10]),
        ("flag", list(catalogue.flags.values())[::8]),
        ("python", list(catalogue.python.values())),
    ):
        for entry in entries:
            text = describe(kind, entry.name)
            assert entry.name in text and text.count("```") % 2 == 0, (kind, entry.name)
            assert "\n" not in entry.summary, (kind, entry.name)
        assert describe(kind, "no.such_thing") == ""


def test_upstream_ops_match_their_declarations(catalogue: Catalogue) -> None:
    said = describe("op", "nvvm.mbarrier.init")
    assert "$addr `,` $count" in said and "`count`: `i32`" in said and "`predicate` (optional): `i1`" in said
    assert dict(catalogue.ops["gpu.thread_id"].properties)["dimension"] == "gpu.dim"


@pytest.mark.parametrize(
    ("drawn", "title"),
    [
        ("(4,2):(2,1)", "(4,2):(2,1)"),
        ('!cute.memref<f16, smem, "(8,8):(8,1)">', "(8,8):(8,1)"),
        ("S<2,0,3> o 0 o (8,8):(8,1)", "S<2,0,3> o 0 o (8,8):(8,1)"),
        (f'!cute.tiled_copy<{ATOM}, {TILED}>', "over 16 x 4"),
        ("!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>", "SM80_16x8x16_F32F16F16F32_TN"),
    ],
)  # fmt: skip
def test_drawings(drawn: str, title: str) -> None:
    svg = picture_of(drawn).svg
    assert title in ElementTree.fromstring(svg).attrib["aria-label"] and len(svg.encode()) <= MOST_BYTES


def test_undrawable_objects_are_rejected() -> None:
    for drawn in ("(?,8):(8,1)", "!cute.nothing<x>", "!cute.layout<", "4:", "", "i32", '!cute.int_tuple<"4">'):
        picture = picture_of(drawn)
        assert not picture.table and (not picture.svg or "?" in drawn), drawn


def test_a_drawing_of_too_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cute_dialect.tools.lsp.pictures.MOST_BYTES", 1000)
    large = picture_of('!cute.layout<"(8,8):(8,1)">')
    assert not large.svg and large.table
    assert large.note == "Too large to draw here; use `cute-viz '(8,8):(8,1)' -o x.svg`."


def test_a_part_of_a_large_layout() -> None:
    for drawn in ('!cute.layout<"(64,32):(32,1)">', "(64,32):(32,1)"):
        picture = picture_of(drawn)
        assert len(picture.svg) <= MOST_BYTES
        assert picture.note == (
            "The first 1024 of 2048 elements are drawn; use `cute-viz '(64,32):(32,1)' -o x.svg` to draw all."
        )


def test_a_small_drawing_has_the_same_cells() -> None:
    """The compact drawing joins cells of one colour into one path and keeps every cell and all text."""
    whole = draw_layout("(16,8):(8,1)").svg
    short = small(whole)
    assert len(short) < 0.6 * len(whole)

    def squares(svg: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for fill, where in re.findall(r'<path (?:data-k="[^"]*" )?class="(s\d+)" d="([^"]*)"', svg):
            found.setdefault(fill, []).extend(re.findall(r"M[^M]*", where))
        return found

    assert squares(short) == squares(whole) and sum(map(len, squares(whole).values())) == 128
    texts = [re.findall(r"<text[^>]*>([^<]*)", svg) for svg in (short, whole)]
    assert texts[0] == texts[1]
