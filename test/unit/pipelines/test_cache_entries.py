"""The compile cache under faults: damaged and foreign files, other users, full disks, interrupted writes, clocks."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cache_fuzz
import pytest

from cute_dialect.pipelines import cache as cache_module
from cute_dialect.pipelines.cache import Cache, CacheWarning
from cute_dialect.runtime.artifact import Artifact, CodeObject, artifact_files
from cute_dialect.runtime.manifest import FORMAT, Manifest
from cute_dialect.tools.cute_cache import main as cute_cache

KEY = "0123456789abcdef" * 4
OTHER = KEY[:2] + KEY[2:][::-1]


def artifact(ptx: str = "// ptx", cubin: bytes = b"\x7fELF code") -> Artifact:
    manifest: Manifest = {
        "format": FORMAT, "chip": "sm_90a", "features": "", "opt_level": 3, "modules": ["m"], "kernels": [],
        "hosts": [],
    }  # fmt: skip
    return Artifact(manifest, (CodeObject("m", ptx, cubin, None, "report\n"),))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(str(tmp_path / "cache"))
    assert made.put(KEY, artifact())
    return made


def at(cache: Cache, key: str = KEY) -> Path:
    return Path(cache.folder, key[:2], key)


def everything(folder: str | Path) -> list[str]:
    return sorted(os.path.relpath(os.path.join(base, n), folder) for base, d, f in os.walk(folder) for n in (*d, *f))


def said(cache: Cache, key: str = KEY) -> list[str]:
    """Look up a damaged entry and return the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert cache.get(key) is None
    assert all(w.category is CacheWarning for w in found)
    return [str(w.message) for w in found]


def test_stored_entries_are_found(cache: Cache) -> None:
    assert cache.get(KEY) == artifact()
    assert cache.get(OTHER) is None
    assert sorted(os.listdir(at(cache))) == [
        "cute-cache-entry", "kernel.cubin", "kernel.ptx", "manifest.json", "ptxas.txt",
    ]  # fmt: skip
    for path in (cache.folder, at(cache).parent, at(cache), *at(cache).iterdir()):
        assert os.stat(path).st_mode & 0o077 == 0


# ---------------------------------------------------------------------------------------------------------- damage


def link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "truncated": lambda p: p.write_bytes(p.read_bytes()[:-1]),
    "longer": lambda p: p.write_bytes(p.read_bytes() + b"\n"),
    "empty": lambda p: p.write_bytes(b""),
    "one bit": change,
    "other JSON": lambda p: p.write_text("{}"),
    "gone": lambda p: p.unlink(),
    "a link": link,
    "a pipe": fifo,
    "a folder": folder,
    "others may write": lambda p: p.chmod(0o666),
}
WHY = {
    "gone": "its file {} is missing",
    "a link": "{} is a link",
    "a pipe": "{} is not a file",
    "a folder": "{} is not a file",
    "others may write": "{} is writable by other users (mode 666)",
}


@pytest.mark.parametrize("name", ["cute-cache-entry", "manifest.json", "kernel.ptx", "kernel.cubin", "ptxas.txt"])
@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_entries_are_reported_once_and_replaced(cache: Cache, how: str, name: str) -> None:
    DAMAGE[how](at(cache) / name)
    why = WHY.get(how, "{} was changed after it was written").format(name)
    assert said(cache) == [f"compile cache: {at(cache)} is damaged: {why}; compiled again"]
    assert said(cache) == []
    assert cache.put(KEY, artifact("// again"))
    assert cache.get(KEY) == artifact("// again")


@pytest.mark.parametrize("how", ["a file", "a pipe", "a link", "a folder", "the entry of another key"])
def test_foreign_files_at_an_entry_are_moved_aside(cache: Cache, tmp_path: Path, how: str) -> None:
    place = at(cache, OTHER)
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter").write_text("one")
    if how == "a file":
        place.write_text("mine")
    elif how == "a pipe":
        os.mkfifo(place)
    elif how == "a link":
        place.symlink_to(thesis)
    elif how == "a folder":
        thesis.rename(place)
    else:
        at(cache).rename(place)
    why = {
        "a folder": "it is writable by other users" if place.stat().st_mode & 0o022 else "its file",
        "the entry of another key": "its marker has another key",
    }.get(how, "it is a link or not a folder")
    (told,) = said(cache, OTHER)
    assert told.startswith(f"compile cache: {place} is damaged: {why}")
    assert cache.put(OTHER, artifact("// other"))
    assert cache.get(OTHER) == artifact("// other")
    cache.clear()
    assert [p.read_text() for p in tmp_path.rglob("chapter") if not p.is_symlink()] == ["one"]
    assert os.path.exists(cache.folder) == (how != "the entry of another key")


def test_links_out_of_the_cache_are_not_followed(cache: Cache, tmp_path: Path) -> None:
    """The cache folder itself may be a symbolic link, but links inside it are not followed."""
    real = Path(cache.folder)
    moved = tmp_path / "moved"
    for place in (real, real / KEY[:2]):
        place.rename(moved)
        place.symlink_to(moved)
        (told,) = said(cache)
        assert told.endswith(
            "is not used: it is a link or not a folder; repair it, set CUTE_CACHE_DIR to another folder, or "
            "set CUTE_CACHE=0"
        )
        assert cache.entries() == cache.clear() == []
        with pytest.warns(CacheWarning, match="is not used"):
            assert not cache.put(KEY, artifact())
        place.unlink()
        moved.rename(place)
    whole = tmp_path / "link"
    whole.symlink_to(tmp_path / "cache")
    assert Cache(str(whole)).get(KEY) == artifact()


def test_markers_cannot_name_files_outside(cache: Cache, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    marker = at(cache) / "cute-cache-entry"
    lines = marker.read_text().split("\n")
    for name in ("../../../../victim", str(victim), "..", "."):
        marker.write_text("\n".join([*lines[:2], f"{'0' * 64} 8 {name}", *lines[2:]]))
        said(cache)
        cache.clear()
        assert victim.read_text() == "precious"
        cache.put(KEY, artifact())


# ------------------------------------------------------------------------------------------------------- other users


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run the block with an unprivileged user id if this process is root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_entries_of_other_users_are_ignored(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [Path(cache.folder), at(cache).parent, at(cache), *at(cache).iterdir()]
    me = os.geteuid()
    if me == 0:
        for path in folders[2:]:
            os.chown(path, 12345, -1)
            (told,) = said(cache)
            name = "it" if path == at(cache) else path.name
            assert told == (
                f"compile cache: {at(cache)} is damaged: {name} belongs to another user (uid 12345); compiled again"
            )
            assert cache.put(KEY, artifact())
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    (told,) = said(cache)
    assert f"is not used: it belongs to another user (uid {me})" in told
    assert cache.entries() == cache.clear() == []
    monkeypatch.undo()
    assert cache.get(KEY) == artifact()


def test_each_user_has_entries_of_their_own_in_a_shared_folder(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    shared = os.path.dirname(cache.folder)
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    theirs = Cache(shared)
    assert theirs.folder == os.path.join(shared, f"v2-{me + 1}") and theirs.get(KEY) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_not_used(cache: Cache, mode: int) -> None:
    for path in (Path(cache.folder), at(cache).parent):
        path.chmod(mode)
        (told,) = said(cache)
        assert f"it is writable by other users (mode {mode:o})" in told
        path.chmod(0o700)
    at(cache).chmod(mode)
    (told,) = said(cache)
    assert told.endswith(f"is damaged: it is writable by other users (mode {mode:o}); compiled again")


# ------------------------------------------------------------------------------------------------------------- deletion


def test_clear_deletes_only_cache_files(cache: Cache, tmp_path: Path) -> None:
    """clear() keeps files of the user in the cache folder, in the folders of entries, and inside an entry."""
    above = tmp_path / "cache"
    mine = [above / "thesis.txt", Path(cache.folder) / "notes", at(cache).parent / "list", at(cache) / "result.npy"]
    (above / "v2").mkdir()
    (above / "ab").mkdir()
    mine.append(at(cache).parent / ("f" * 64) / "manifest.json")
    mine[-1].parent.mkdir()
    for path in mine:
        path.write_text("mine")
    assert [e.key for e in cache.entries()] == [KEY]
    assert [e.key for e in cache.clear()] == [KEY]
    left = [p for p in above.rglob("*") if p.is_file()]
    assert len(left) == len(mine) and all(p.read_text() == "mine" for p in left)
    assert cache.get(KEY) is None and cache.clear() == []


def test_clear_removes_cache_folders(cache: Cache, tmp_path: Path) -> None:
    cache.clear()
    assert everything(tmp_path) == ["cache"]
    assert cache.put(KEY, artifact()) and cache.get(KEY) == artifact()


@pytest.mark.parametrize("what", ["HOME", "root", "file"])
def test_a_folder_that_is_not_for_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    monkeypatch.setenv("CUTE_CACHE", "1")
    home = tmp_path / "home"
    (home / "v1" / "ab" / KEY).mkdir(parents=True)
    (home / "v1" / "ab" / KEY / "manifest.json").write_text("{}")
    (home / "letter").write_text("dear")
    before = everything(tmp_path)
    monkeypatch.setenv("HOME", str(home))
    path = {"HOME": str(home), "root": "/", "file": str(home / "letter")}[what]
    monkeypatch.setenv("CUTE_CACHE_DIR", path)
    status = cute_cache(["clear"])
    out, err = capsys.readouterr()
    if what == "file":
        assert (status, err) == (
            1,
            f"cute-cache: error: CUTE_CACHE_DIR: expected a folder, got '{path}', which is not a folder\n",
        )
    else:
        assert (status, out) == (0, "0 entries removed, 0 B\n")
    assert everything(tmp_path) == before


# --------------------------------------------------------------------------------------- interrupted writes, full disks


CALLS = ("mkdir", "open", "write", "utime", "rename", "unlink", "rmdir")


class Killed(BaseException):
    """Raised from a system call to simulate that the process is killed."""


def fail_at(monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException, *, once: bool = False) -> list[str]:
    """Make system call ``number`` raise, and all later ones unless ``once``. Return the names of all calls."""
    calls: list[str] = []

    def wrapped(name: str) -> object:
        real = getattr(os, name)

        def call(*args: object, **options: object) -> object:
            calls.append(name)
            if len(calls) - 1 == number or (len(calls) > number and not once):
                raise error
            return real(*args, **options)

        return call

    for name in CALLS:
        monkeypatch.setattr(cache_module.os, name, wrapped(name))
    return calls


def test_killed_between_any_two_steps_of_a_write(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill the entry is complete, either old or new, and the next write removes leftover files."""
    number = 0
    while True:
        with monkeypatch.context() as m:
            calls = fail_at(m, number, Killed())
            try:
                cache.put(KEY, artifact("// new"))
                ended = False
            except Killed:
                ended = True
        found = cache.get(KEY)
        assert found in (artifact(), artifact("// new"), None), calls
        for e in cache.entries():
            assert cache.look(e) is not None
        cache.prune()
        names = os.listdir(at(cache).parent)
        assert names in ([KEY], []), (calls, names)
        cache.put(KEY, artifact())
        if not ended:
            break
        number += 1
    assert number > 15
    cache.clear()
    assert not os.path.exists(cache.folder)


@pytest.mark.parametrize("step", ["open", "stat"])
def test_prune_between_creating_and_locking_a_folder(cache: Cache, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Another process may remove the folder of a write before it is locked; the write starts again."""
    real, pruned = getattr(os, step), 0

    def prune_first(path: object, *args: object, **options: object) -> object:
        nonlocal pruned
        if isinstance(path, str) and path.startswith(".new-") and not pruned:
            pruned += 1
            [left] = [n for n in os.listdir(at(cache).parent) if n.startswith(".new-")]
            os.rmdir(at(cache).parent / left)
        return real(path, *args, **options)

    os.makedirs(at(cache).parent, 0o700, exist_ok=True)
    monkeypatch.setattr(cache_module.os, step, prune_first)
    assert cache.put(KEY, artifact("// new"))
    assert pruned == 1
    assert cache.get(KEY) == artifact("// new")


def test_killed_between_any_two_steps_of_a_clear(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 0
    while True:
        cache.put(KEY, artifact())
        with monkeypatch.context() as m:
            calls = fail_at(m, number, Killed())
            try:
                cache.clear()
                ended = False
            except Killed:
                ended = True
        assert cache.get(KEY) in (artifact(), None), calls
        cache.clear()
        assert not os.path.exists(cache.folder), calls
        if not ended:
            break
        number += 1
    assert number > 8


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_a_disk_that_is_full_or_read_only(cache: Cache, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A failure at any step gives a warning with the cure, no error, and no partial entry."""
    number = 0
    while True:
        with monkeypatch.context() as m, warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            calls = fail_at(m, number, OSError(code, os.strerror(code)), once=True)
            kept = cache.put(OTHER, artifact())
        if len(calls) <= number:
            break
        if not kept:
            assert [str(w.message) for w in found] == [
                f"compile cache: cannot write to {cache.folder}: {os.strerror(code)}; nothing is cached: free space "
                "there, set CUTE_CACHE_DIR to a writable folder, or set CUTE_CACHE=0"
            ], calls
        assert cache.get(OTHER) == (artifact() if kept else None)
        cache.prune(0)
        cache.put(KEY, artifact())
        assert os.listdir(at(cache).parent) == [KEY], calls
        number += 1
    assert number > 15


def test_a_file_system_with_no_room(tmp_path: Path) -> None:
    """The file size is limited to 4 KB, as with ``ulimit -f``, so the entry cannot be written."""
    program = (
        "import resource, signal, sys\n"
        "sys.path[:0] = sys.argv[2:]\n"
        "from test_cache_entries import KEY, artifact\n"
        "from cute_dialect.pipelines.cache import Cache\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "c = Cache(sys.argv[1])\n"
        "assert not c.put(KEY, artifact(cubin=bytes(100000)))\n"
        "assert c.get(KEY) is None and c.entries() == []\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "c"), *sys.path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "File too large; nothing is cached: free space there" in done.stderr
    assert everything(tmp_path / "c") == [f"v2-{os.geteuid()}", f"v2-{os.geteuid()}/{KEY[:2]}"]


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for above in (tmp_path, *tmp_path.parents):
        if os.geteuid() == 0 and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)
    with as_nobody():
        cache = Cache(str(closed / "c"))
        with pytest.warns(CacheWarning, match="Permission denied; nothing is cached: .* CUTE_CACHE_DIR"):
            assert not cache.put(KEY, artifact())
        assert cache.get(KEY) is None
    assert os.listdir(closed) == []


# ------------------------------------------------------------------------------------------------- concurrent processes


def test_entry_removed_while_read(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that is deleted during a read counts as a miss, not as damage."""
    real = os.open
    number, seen = 0, 99
    while number <= seen:
        seen = 0

        def open_then(*args: object, stop: int = number, **options: object) -> int:
            nonlocal seen
            seen += 1
            if seen - 1 == stop:
                monkeypatch.setattr(cache_module.os, "open", real)
                Cache(os.path.dirname(cache.folder)).clear()
            return real(*args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(cache_module.os, "open", open_then)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cache.get(KEY) in (None, artifact())
        monkeypatch.setattr(cache_module.os, "open", real)
        assert cache.put(KEY, artifact())
        number += 1
    assert number > 5


def test_a_writer_at_work_is_left_alone(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.rename
    pruned: list[object] = []

    def rename(*args: object, **options: object) -> None:
        if not pruned:
            pruned.append(Cache(os.path.dirname(cache.folder)).prune())
        real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cache_module.os, "rename", rename)
    assert cache.put(OTHER, artifact())
    assert pruned == [[]] and cache.get(OTHER) == artifact()


def test_timestamps_in_the_future(cache: Cache) -> None:
    """An entry dated far in the future is not kept forever. A clock that is minutes ahead does not matter."""
    assert cache.put(OTHER, artifact())
    marker = at(cache) / "cute-cache-entry"
    ahead = time.time() + 600
    os.utime(marker, (ahead, ahead))
    assert [e.key for e in cache.entries()] == [OTHER, KEY]
    os.utime(marker, (1e11, 1e11))
    assert [e.key for e in cache.entries()] == [KEY, OTHER]
    assert cache.get(KEY) == artifact()
    assert [e.key for e in cache.entries()] == [OTHER, KEY]
    assert abs(os.stat(marker).st_mtime - time.time()) < 3600


@pytest.mark.slow
def test_random_damage(cache: Cache) -> None:
    """After a change of one byte, a look-up returns the original entry or nothing."""
    rng = random.Random(7)
    files = [*artifact_files(artifact()), "cute-cache-entry"]
    for _ in range(300):
        path = at(cache) / rng.choice(files)
        data = bytearray(path.read_bytes())
        where, new = rng.randrange(len(data)), rng.randrange(256)
        same = data[where] == new
        data[where] = new
        path.write_bytes(data)
        if same:
            assert cache.get(KEY) == artifact()
        else:
            assert len(said(cache)) == 1
            assert cache.put(KEY, artifact())


@pytest.mark.slow
def test_random_faults() -> None:
    """A fast sample of ``test/oracle/cache_fuzz.py``."""
    cache_fuzz.run(30, seed=4)
