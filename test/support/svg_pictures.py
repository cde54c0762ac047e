"""A reader of SVG drawings: the cells of each panel, with their tooltips and texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

__all__ = ["Shown", "cells", "shown"]

NAMES = {"svg": "http://www.w3.org/2000/svg"}
PLACE = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v")


class Shown(NamedTuple):
    """Contents of a drawing: cell size, origin of each panel, all words, and cells by (panel, row, column)."""

    side: float
    origin: list[tuple[float, float]]
    words: list[str]
    cells: dict[tuple[int, int, int], tuple[str, list[str]]]


def shown(drawing: object) -> Shown:
    """Parse a drawing. A word belongs to the cell that contains it."""
    root = ET.fromstring(str(drawing))
    boxes: list[list[tuple[float, float, str]]] = []
    side = 0.0
    for group in root.findall("svg:g[@class='cells']", NAMES):
        panel: list[tuple[float, float, str]] = []
        for path in group.findall("svg:path", NAMES):
            title, place = path.find("svg:title", NAMES), PLACE.match(path.attrib["d"])
            assert title is not None and title.text is not None and place is not None
            side = float(place[3])
            panel.append((float(place[1]), float(place[2]), title.text))
        boxes.append(panel)
    origin = [(min(x for x, _, _ in p), min(y for _, y, _ in p)) for p in boxes]
    texts = [
        (float(t.attrib["x"]), float(t.attrib["y"]), t.text or "")
        for g in root.findall("svg:g[@class='n']", NAMES)
        for t in g.findall("svg:text", NAMES)
    ]
    found: dict[tuple[int, int, int], tuple[str, list[str]]] = {}
    for n, (panel, (x0, y0)) in enumerate(zip(boxes, origin)):
        for x, y, title in panel:
            found[n, round((y - y0) / side), round((x - x0) / side)] = title, []
    for x, y, word in texts:
        for n, (x0, y0) in enumerate(origin):
            at = (n, int((y - y0) // side), int((x - x0) // side))
            if at in found and x >= x0 and y >= y0:
                found[at][1].append(word)
    return Shown(side, origin, [w for _, _, w in texts], found)


def cells(drawing: object) -> dict[tuple[int, int, int], tuple[str, list[str]]]:
    """Return the hover text and the words of each cell, by panel, row and column."""
    return shown(drawing).cells
