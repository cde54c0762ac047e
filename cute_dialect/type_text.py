"""Types of the dialect in the notation of the kernel language, for its error messages.

>>> language_terms('expected a source in gmem, got !cute.memref<f32, rmem, align<16>, "(4):(1)">')
'expected a source in gmem, got tensor<ptr<f32, rmem, align<16>> o (4):(1)>'
>>> language_terms("a tiled MMA of !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)> is dense")
'a tiled MMA of mma_sync<16x8x16, (f32,f16,f16,f32)> is dense'
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["language_terms"]

_TYPE = re.compile(r"!?cute(?:_nvgpu)?\.(atom\.)?(\w+)")
_NAMES = {
    "memref": "tensor", "coord_tensor": "coordinate tensor", "ptr": "pointer", "int_tuple": "tuple",
    "composed_layout": "layout", "tiled_mma": "tiled MMA", "tiled_copy": "tiled copy", "tile": "tiler",
}  # fmt: skip
_PLAIN = ("layout", "composed_layout", "shape", "stride", "coord", "int_tuple", "tile", "swizzle")


def language_terms(text: str) -> str:
    """Return a message with each type of the dialect written as the kernel language prints it."""
    if "!cute" not in text and "cute_nvgpu.atom." not in text:
        return text
    made: list[str] = []
    at = 0
    for match in _TYPE.finditer(text):
        is_type = match.group().startswith("!")
        if match.start() < at or not (is_type or match[1]):
            continue
        end = _end_of_arguments(text, match.end())
        made += [text[at : match.start()], _in_language(match[2], bool(match[1]), text[match.end() : end])]
        at = end
    return "".join([*made, text[at:]])


def _end_of_arguments(text: str, start: int) -> int:
    """Return the position after the ``<…>`` at ``start``; ``start`` if there is none."""
    if not text.startswith("<", start):
        return start
    depth, quoted = 0, False
    for i in range(start, len(text)):
        if text[i] == '"':
            quoted = not quoted
        elif not quoted and text[i] in "<>":
            depth += 1 if text[i] == "<" else -1
            if depth == 0:
                return i + 1
    return start


def _in_language(name: str, is_atom: bool, arguments: str) -> str:
    """Return one type; ``arguments`` is its ``<…>``, or "" if the message names only the kind of type."""
    if is_atom:
        return name + language_terms(arguments)
    write = _WRITERS.get(name)
    inner = arguments[1:-1]
    if write is not None and inner and "…" not in inner:
        return write(inner)
    return _NAMES.get(name, name) + language_terms(arguments)


def _tensor(inner: str) -> str:
    pointer, _, layout = inner.rpartition(', "')
    return f"tensor<ptr<{pointer}> o {layout[:-1]}>"


def _coordinates(inner: str) -> str:
    first, _, layout = inner.partition('", "')
    return f"tensor<{first[1:]} o {layout[:-1]}>"


def _tiled(kind: str) -> Callable[[str], str]:
    def write(inner: str) -> str:
        return f"{kind} of " + re.sub(r'<"([^"]*)">', r"\1", language_terms(inner))

    return write


_WRITERS: dict[str, Callable[[str], str]] = {
    "memref": _tensor,
    "coord_tensor": _coordinates,
    "ptr": lambda inner: f"ptr<{inner}>",
    "tiled_mma": _tiled("tiled MMA"),
    "tiled_copy": _tiled("tiled copy"),
    **dict.fromkeys(_PLAIN, lambda inner: inner.replace('"', "")),
}
