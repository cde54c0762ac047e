"""Entries of the compile cache on disk: a folder of files with a marker that lists them.

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
import os
import re
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple, cast

__all__ = [
    "MARKER",
    "Damaged",
    "is_key",
    "is_leftover",
    "open_folder",
    "read_entry",
    "remove_entry",
    "remove_leftover",
    "size_of",
    "write_entry",
]

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
    if len(data) != said.size or sha256(data).hexdigest() != said.digest:
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
    if check != sha256(f"{body}\n".encode()).hexdigest() or not body.startswith(f"{_HEAD}\n"):
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
    lines += [f"{sha256(data).hexdigest()} {len(data)} {name}" for name, data in files.items()]
    body = "\n".join(lines) + "\n"
    return (body + sha256(body.encode()).hexdigest()).encode()


def write_entry(above: int, key: str, files: Mapping[str, bytes]) -> None:
    """Store files as an entry, which replaces an existing one.  Anything else of that name is renamed.

    Raises ``OSError``; then no temporary files are left.
    """
    fresh = _unused("new")
    os.mkdir(fresh, 0o700, dir_fd=above)
    try:
        with open_folder(fresh, above) as entry:
            with contextlib.suppress(OSError):  # The file system has no locks.
                fcntl.flock(entry, fcntl.LOCK_EX)
            for name, data in ((MARKER, _marker(key, files)), *files.items()):
                _write_file(entry, name, data)
            try:
                os.rename(fresh, key, src_dir_fd=above, dst_dir_fd=above)
            except OSError:
                with contextlib.suppress(FileNotFoundError):
                    remove_entry(above, key)
                os.rename(fresh, key, src_dir_fd=above, dst_dir_fd=above)
    except BaseException as e:
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
