"""Lookup of earlier compilations by key, in memory and in the compile cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from cute_dialect.pipelines.compilation import Emit, Timing, is_text
from cute_dialect.pipelines.lowered_again import cloning, lowered_again, reading, remarks_again
from cute_dialect.runtime.launch import CompiledModule

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.pipelines.cache import Cache

__all__ = ["cached", "compiled_before", "given_options", "key_parts", "text_key", "with_source"]


def compiled_before(
    source: str | os.PathLike[str], *, pipeline: str = "nvptx", chip: str | None = None, emit: Emit = "auto"
) -> CompiledModule | None:
    """Look up a compiled module in the compile cache, without importing the compiler; None if it is not there."""
    from cute_dialect.pipelines.cache import default_cache, key_of

    disk = default_cache()
    given = _given_text(source, None) if disk is not None else None
    if disk is None or given is None:
        return None
    parts = key_parts(pipeline, {} if chip is None else {"chip": chip}, emit)
    return _found(disk, key_of(with_source(parts, given)), given, pipeline)


def text_key(text: str, *, emit: Emit, chip: str | None, opt_level: int | None, ptxas: Sequence[str] = ()) -> str:
    """Return the cache key of a module that ``text`` describes completely."""
    from cute_dialect.pipelines.cache import key_of

    return key_of(with_source(key_parts("nvptx", given_options(chip, opt_level), emit, ptxas), (text, "-")))


def given_options(chip: str | None, opt_level: int | None, features: str | None = None) -> dict[str, str]:
    """Return the options that are set, as strings."""
    given = {"chip": chip, "features": features, "O": None if opt_level is None else str(opt_level)}
    return {k: v for k, v in given.items() if v is not None}


def key_parts(pipeline: str, options: dict[str, str], emit: Emit, ptxas: Sequence[str] = ()) -> list[str]:
    """Return all parts of a cache key except the source."""
    return [pipeline, repr(sorted(options.items())), emit, *([repr(tuple(ptxas))] if ptxas else [])]


def with_source(parts: Sequence[str], given: tuple[str, str]) -> list[str]:
    """Append the source text to the parts of a key, and its name if line info or an assertion records it."""
    text, name = given
    is_named = "cf.assert" in text or any("lineinfo" in part for part in parts)
    return [*parts, text, name] if is_named else [*parts, text]


_MEMORY: dict[tuple[str, str], CompiledModule] = {}
"""Modules by cache key and name of the source, which the messages of the interpreter show."""
_MEMORY_LIMIT = 128


def cached(
    source: str | os.PathLike[str] | ModuleOp,
    filename: str | None,
    options: Sequence[str],
    fresh: Callable[[list[Timing] | None], CompiledModule],
    timings: list[Timing] | None,
    text: str | None = None,
) -> CompiledModule:
    """Return the compiled module from memory or disk, or compile it."""
    from cute_dialect.pipelines.cache import default_cache, key_of

    start = perf_counter()
    disk = default_cache()
    given: tuple[str, str] | None = None
    if disk is not None:
        given = (text, filename or "-") if text is not None else _given_text(source, filename)
    if disk is None or given is None:
        return fresh(timings)
    key = key_of(with_source(options, given))
    found = _found(disk, key, given, options[0])
    if found is None:
        with disk.locked(key):  # only one of the processes that need the module compiles it
            found = _found(disk, key, given, options[0])
            if found is None:
                found = fresh(timings)
                disk.put(key, found.artifact)
                _remember((key, given[1]), found)
                return found
    elif timings is not None:
        timings.append(Timing("cache", perf_counter() - start))
    if isinstance(source, (str, os.PathLike)) or "remarks" not in found.manifest:
        return found
    # The text of a traced module has no locations, so the entry may be that of another file.
    again = cloning(source)
    return CompiledModule(found.artifact, lowered_again(again, options[0]), remarks_again(again, options[0]))


def _found(disk: Cache, key: str, given: tuple[str, str], pipeline: str) -> CompiledModule | None:
    found = _MEMORY.get((key, given[1]))
    if found is None:
        artifact = disk.get(key)
        if artifact is None:
            return None
        again = reading(*given)
        found = CompiledModule(artifact, lowered_again(again, pipeline), remarks_again(again, pipeline))
    _remember((key, given[1]), found)
    return found


def _remember(key: tuple[str, str], module: CompiledModule) -> None:
    while len(_MEMORY) >= _MEMORY_LIMIT:
        del _MEMORY[next(iter(_MEMORY))]
    _MEMORY[key] = module


def _given_text(source: str | os.PathLike[str] | ModuleOp, filename: str | None) -> tuple[str, str] | None:
    """Return the text and name of a source; ``None`` for a module or an unreadable file."""
    if isinstance(source, str) and is_text(source):
        return source, filename or "-"
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            with open(path, encoding="utf-8") as f:
                return f.read(), filename or path
        except (OSError, ValueError):  # unreadable, not UTF-8, or a NUL in the path
            return None
    return None
