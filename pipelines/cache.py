"""The compile cache: what was compiled before is not compiled again, in this process or in another.

An entry is a compiled module (the folder that :func:`~cute_dialect.pipelines.artifact.save_artifact` writes: JSON, PTX,
cubin, a SHA-256 for each file; no pickle) under the hash of all that it depends on: the text, the pipeline and its
options, this package's sources, xDSL, MLIR, ptxas.  Entries are written under a temporary name and renamed, so any
number of processes may use one cache; an entry that is damaged is taken away and made again; when the cache outgrows
its size the entries used longest ago go first.

    CUTE_CACHE=0             neither reads nor writes (or compile(cache=False), cute-run --no-cache)
    CUTE_CACHE_DIR=PATH      where it lies (default: $XDG_CACHE_HOME/cute-dialect, ~/.cache/cute-dialect)
    CUTE_CACHE_SIZE=500M     its size in bytes, with K, M or G (default: 1G)

A cache that cannot be written is no error: the module is compiled as without one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from cute_dialect.pipelines.artifact import Artifact, ArtifactError, load_artifact, save_artifact

__all__ = ["Cache", "Entry", "default_cache", "key_of"]

_LAYOUT = "v1"
_DEFAULT_SIZE = 1 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Entry(NamedTuple):
    """One compiled module in the cache.  ``used``: seconds since the epoch; ``size``: bytes."""

    key: str
    path: str
    size: int
    used: float


class Cache:
    """A cache in ``folder`` of at most ``limit`` bytes."""

    def __init__(self, folder: str, limit: int = _DEFAULT_SIZE):
        self.folder = os.path.join(folder, _LAYOUT)
        self.limit = limit

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key)

    def get(self, key: str) -> Artifact | None:
        """The module under ``key``; ``None`` if there is none, or only a damaged one, which is taken away."""
        path = self._path(key)
        manifest = os.path.join(path, "manifest.json")
        if not os.path.exists(manifest):
            return None
        try:
            found = load_artifact(path)
        except (ArtifactError, KeyError, TypeError, ValueError):
            _remove(path)
            return None
        with contextlib.suppress(OSError):  # read-only: it keeps its age
            os.utime(manifest)
        return found

    def put(self, key: str, artifact: Artifact) -> bool:
        """Keep a module; gives whether that was possible."""
        try:
            save_artifact(artifact, self._path(key))
        except (ArtifactError, OSError):
            return False
        self.prune()
        return True

    def entries(self) -> list[Entry]:
        """All entries, the one used longest ago first."""
        return sorted(self._entries(), key=lambda e: (e.used, e.key))

    def _entries(self) -> Iterator[Entry]:
        for shard in _scan(self.folder):
            for entry in _scan(shard.path):
                if entry.name.startswith("."):
                    continue
                files = list(_scan(entry.path))
                stats = [(f.name, s) for f in files if (s := _stat(f)) is not None]
                used = next((s.st_mtime for name, s in stats if name == "manifest.json"), 0.0)
                yield Entry(entry.name, entry.path, sum(s.st_size for _, s in stats), used)

    def prune(self, limit: int | None = None) -> list[Entry]:
        """Take entries away, longest unused first, until at most ``limit`` bytes are left; gives those taken."""
        limit = self.limit if limit is None else limit
        entries = self.entries()
        size = sum(e.size for e in entries)
        gone: list[Entry] = []
        for e in entries:
            if size <= limit:
                break
            _remove(e.path)
            size -= e.size
            gone.append(e)
        return gone

    def clear(self) -> list[Entry]:
        """Take all entries away, and what broken writers left; gives the entries."""
        gone = self.entries()
        for shard in _scan(self.folder):
            _remove(shard.path)
        return gone


def default_cache() -> Cache | None:
    """The cache that the environment asks for; ``None`` when it is off.  Raises ValueError for a bad size."""
    if os.environ.get("CUTE_CACHE", "1") in ("0", "off", "false", "no"):
        return None
    folder = os.environ.get("CUTE_CACHE_DIR")
    if not folder:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.path.join(base, "cute-dialect")
    return Cache(folder, parse_size(os.environ.get("CUTE_CACHE_SIZE", "")))


def parse_size(text: str) -> int:
    """Bytes from ``500M``; the empty text is the default.

    >>> parse_size("2K"), parse_size("")
    (2048, 1073741824)
    """
    if not text:
        return _DEFAULT_SIZE
    number, unit = (text[:-1], text[-1].upper()) if text[-1].isalpha() else (text, "")
    if not number.isdigit() or unit not in _UNITS:
        raise ValueError(f"CUTE_CACHE_SIZE: expected a number of bytes, with K, M or G, got '{text}'")
    return int(number) * _UNITS[unit]


def key_of(parts: Sequence[str]) -> str:
    """The key of a compilation: a hash of ``parts`` and of the versions of all programs that take part."""
    import hashlib

    h = hashlib.sha256()
    for part in (*_versions(), *parts):
        data = part.encode()
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


@cache
def _versions() -> tuple[str, ...]:
    """What the compiler consists of: file by file its size and time of change."""
    import cute_dialect

    root = os.path.dirname(os.path.abspath(cute_dialect.__file__))
    lines = [f"{path} {size} {changed}" for path, size, changed in sorted(_sources(root))]
    return ("\n".join(lines), _package("xdsl"), _package("mlir"), _ptxas())


def _sources(folder: str) -> Iterator[tuple[str, int, int]]:
    for entry in _scan(folder):
        if entry.name.endswith(".py"):
            s = entry.stat()
            yield entry.path, s.st_size, s.st_mtime_ns
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry.path)


def _package(name: str) -> str:
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(name)
    if spec is None:
        return f"no {name}"
    places = list(spec.submodule_search_locations or ())
    return " ".join(f"{p} {_changed(p)}" for p in places)


def _ptxas() -> str:
    from cute_dialect.pipelines.ptxas import PtxasError, find_ptxas

    try:
        path = find_ptxas()
    except PtxasError:
        return "no ptxas"
    return f"{path} {_changed(path)}"


def _changed(path: str) -> str:
    try:
        s = os.stat(path)
    except OSError:
        return "?"
    return f"{s.st_size} {s.st_mtime_ns}"


def _scan(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:
        return


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except OSError:
        return None


def _remove(path: str) -> None:
    """Take a folder away: out of sight at once, then its files."""
    import shutil
    import tempfile

    try:
        aside = tempfile.mkdtemp(prefix=".gone-", dir=os.path.dirname(path))
        os.rename(path, os.path.join(aside, "x"))
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        return
    shutil.rmtree(aside, ignore_errors=True)
