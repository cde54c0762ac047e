"""Entries of the compile cache on disk: folders of files with a marker, which says what belongs to them.

    <folder of the cache>/v2-<user>/<first two digits of the key>/<key>/cute-cache-entry     the marker
                                                                       /manifest.json, kernel.ptx, …

The marker holds the key and the SHA-256, size and name of each file; nothing is believed that differs from it, and
nothing is deleted that no marker lists.  Each user has a folder of their own, which nobody else may write.  All is done
below the descriptors of the folders and no link is followed, so nothing outside of the cache is reached, whoever
changes what meanwhile.

An entry is written under a name that begins with a dot, its marker first, and renamed; it is renamed to such a name
before it is deleted, its marker last.  So whoever is killed in between leaves what the next one can clear away, and
who writes holds a lock, by which that one sees that the writer is alive.
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
"""Bytes of the largest marker that is read."""


class Damaged(Exception):
    """An entry, or what stands in its place, is not what was written; the message says why."""


class _Listed(NamedTuple):
    """A file as a marker lists it."""

    digest: str
    size: int


def is_key(name: str) -> bool:
    """Tell whether a name is that of an entry."""
    return re.fullmatch("[0-9a-f]{64}", name) is not None


def is_leftover(name: str) -> bool:
    """Tell whether a name is that of an entry on its way in or out."""
    return re.fullmatch(r"\.(new|old)-[0-9a-f]{16}", name) is not None


@contextmanager
def open_folder(name: str, above: int | None = None, *, make: bool = False) -> Generator[int]:
    """Open a folder in another one (by its descriptor), or at a path; made if it is not there.

    Raises :class:`Damaged` for a link, for what is no folder, for one of another user and for one that others may
    write; ``OSError`` if there is none.
    """
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above)
    try:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except NotADirectoryError:
        raise Damaged("it is no folder, or a link") from None
    except PermissionError:
        raise Damaged("it may not be read") from None
    try:
        _check_owner(os.fstat(opened), "it")
        yield opened
    finally:
        os.close(opened)


def _check_owner(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid():
        raise Damaged(f"{what} belongs to another user (number {found.st_uid})")
    if found.st_mode & 0o022:
        raise Damaged(f"{what} may be written by other users (mode {stat.S_IMODE(found.st_mode):o})")


def read_entry(above: int, key: str, *, used: bool = True) -> dict[str, bytes]:
    """Return the files of an entry, which is ``used`` now or only looked at.

    Raises :class:`Damaged`; ``FileNotFoundError`` if there is none, also when another process takes it away meanwhile.
    """
    with open_folder(key, above) as entry:
        try:
            listed, marker = _read_marker(entry, key)
            try:
                files = {name: _read_file(entry, name, said) for name, said in listed.items()}
                if used:
                    with contextlib.suppress(OSError):  # a file system that cannot be written: it keeps its age
                        os.utime(marker)
            finally:
                os.close(marker)
        except (Damaged, FileNotFoundError) as e:
            if not _is_there(above, key, entry):
                raise FileNotFoundError(key) from None
            if isinstance(e, Damaged):
                raise
            raise Damaged(f"it has no file {cast(str, e.filename)}") from None
        return files


def _is_there(above: int, name: str, opened: int) -> bool:
    """Tell whether a name still stands for the folder that was opened by it."""
    try:
        return os.path.samestat(os.stat(name, dir_fd=above, follow_symlinks=False), os.fstat(opened))
    except OSError:
        return False


def _open_file(entry: int, name: str) -> int:
    """Open a file of ours and give its descriptor; nothing waits for a pipe, no link is followed."""
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
            raise Damaged(f"{name} is no file")
        _check_owner(found, name)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _read(opened: int, most: int) -> bytes:
    """Read all bytes of a file, one more than ``most`` at most."""
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
        raise Damaged(f"{name} is not what was written")
    return data


def _read_marker(entry: int, key: str) -> tuple[dict[str, _Listed], int]:
    """Read the marker of an entry; gives what it lists, and its descriptor."""
    opened = _open_file(entry, MARKER)
    try:
        return _listed(_read(opened, _MOST), key), opened
    except BaseException:
        os.close(opened)
        raise


def _listed(data: bytes, key: str) -> dict[str, _Listed]:
    """Parse what a marker lists.  Raises :class:`Damaged` unless it is as it was written, for this key."""
    body, _, check = data.decode(errors="replace").rpartition("\n")
    if check != sha256(f"{body}\n".encode()).hexdigest() or not body.startswith(f"{_HEAD}\n"):
        raise Damaged(f"{MARKER} is not what was written")
    _, its_key, *lines = body.split("\n")
    if its_key != f"key {key}":
        raise Damaged("it is the entry of another key")
    found = [line.split(" ", 2) for line in lines]
    return {name: _Listed(digest, int(size)) for digest, size, name in found}


def _names(data: bytes) -> list[str]:
    """List the names of files in a marker that may be damaged, but is one."""
    head, *lines = data.decode(errors="replace").split("\n")
    if head != _HEAD and (lines or not _HEAD.startswith(head)):  # whose writer was ended has less
        raise Damaged(f"{MARKER} is not what was written")
    names = [line.split(" ", 2)[-1] for line in lines if line.count(" ") >= 2]
    return [n for n in names if os.path.basename(n) == n and n not in ("", ".", "..", MARKER) and "\0" not in n]


def _marker(key: str, files: Mapping[str, bytes]) -> bytes:
    lines = [_HEAD, f"key {key}"]
    lines += [f"{sha256(data).hexdigest()} {len(data)} {name}" for name, data in files.items()]
    body = "\n".join(lines) + "\n"
    return (body + sha256(body.encode()).hexdigest()).encode()


def write_entry(above: int, key: str, files: Mapping[str, bytes]) -> None:
    """Keep files as an entry.  Another one, damaged or not, goes; what is in its place and is none is put aside.

    Raises ``OSError``; then nothing of it is left.
    """
    fresh = _unused("new")
    os.mkdir(fresh, 0o700, dir_fd=above)
    try:
        with open_folder(fresh, above) as entry:
            with contextlib.suppress(OSError):  # a file system without locks
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
        if isinstance(e, Damaged):  # a file system without owners and modes
            raise OSError(errno.EPERM, f"{fresh}: {e}") from None
        raise


def _write_file(entry: int, name: str, data: bytes) -> None:
    opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=entry)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(opened, rest) :]
        os.utime(opened)  # by the clock of this machine, not by that of a file server
    finally:
        os.close(opened)


def _unused(why: str) -> str:
    return f".{why}-{os.urandom(8).hex()}"


def remove_entry(above: int, name: str) -> bool:
    """Take away what has this name: out of sight at once; then the files that its marker lists are deleted, the rest
    stays under the new name.  Gives whether it was an entry.  Raises ``OSError``.
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
    with contextlib.suppress(OSError):  # not empty: something of others is in it
        os.rmdir(aside, dir_fd=above)
    return ours


def remove_leftover(above: int, name: str) -> None:
    """Take away what a process left that was ended while it wrote or deleted, unless it is at work yet."""
    with contextlib.suppress(OSError, Damaged), open_folder(name, above) as left:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.scandir(left) as found:
            empty = not any(found)
        if empty:
            os.rmdir(name, dir_fd=above)
        elif size_of(above, name) is not None:
            remove_entry(above, name)


def size_of(above: int, name: str) -> tuple[int, float] | None:
    """Return the bytes of an entry and when it was used last, in seconds since the epoch; ``None``: there is none."""
    try:
        with open_folder(name, above) as entry:
            marker = os.stat(MARKER, dir_fd=entry, follow_symlinks=False)
            with os.scandir(entry) as found:
                size = sum(f.stat(follow_symlinks=False).st_size for f in found)
    except (OSError, Damaged):
        return None
    return (size, marker.st_mtime) if stat.S_ISREG(marker.st_mode) else None
