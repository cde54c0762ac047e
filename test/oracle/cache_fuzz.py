"""Random faults in the compile cache: it returns only the artifacts stored in it and keeps files of other programs.

    python test/oracle/cache_fuzz.py --count 20000 --seed 1

Each case fills a cache with a few entries and adds files of other programs. It then damages the cache: bytes, lengths,
file types, links, permissions and names. Reads, writes, prunes and clears follow in random order.

Any entry found must have the content stored under its key, and files of other programs must keep their content. At the
end the cache must be empty and usable. In every tenth case a process that writes and clears is killed meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from cute_dialect.pipelines.cache import MARKER, Cache, CacheWarning
from cute_dialect.runtime.artifact import Artifact, CodeObject
from cute_dialect.runtime.manifest import FORMAT, Manifest

KEYS = [f"{i:02x}" * 32 for i in range(3)] + ["00" + "1f" * 31]


def artifact(key: str) -> Artifact:
    """Return the artifact stored under a key. Different keys have different artifacts."""
    manifest: Manifest = {
        "format": FORMAT, "chip": "sm_90a", "features": key[:8], "opt_level": 3, "modules": ["m"], "kernels": [],
        "hosts": [],
    }  # fmt: skip
    return Artifact(manifest, (CodeObject("m", f"// {key}", key.encode(), None, key),))


def damage(root: Path, rng: random.Random, elsewhere: Path) -> None:
    """Damage the cache in one random way."""
    paths = sorted(p for p in root.rglob("*"))
    if not paths:
        return
    path = rng.choice(paths)
    how = rng.randrange(9)
    if path.is_symlink() or path.is_dir():
        if how < 3:
            path.rename(path.with_name(rng.choice([*KEYS, "ab", ".new-0123456789abcdef", "x"])))
        elif how == 3 and not path.is_symlink():
            path.chmod(rng.choice((0o700, 0o777, 0o770)))
        elif how == 4:
            path.rename(elsewhere / f"moved-{rng.randrange(1 << 30)}")
            path.symlink_to(rng.choice([elsewhere, root]))
        return
    if not path.is_file():  # Opening a pipe would block.
        path.unlink()
        return
    data = bytearray(path.read_bytes())
    if how == 0 and data:
        data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
    elif how == 1:
        path.write_bytes(data[: rng.randrange(len(data) + 1)])
    elif how == 2:
        path.write_bytes(data + b"more")
    elif how == 3:
        path.unlink()
    elif how == 4:
        path.unlink()
        os.mkfifo(path)
    elif how == 5:
        path.unlink()
        path.symlink_to(elsewhere / "other")
    elif how == 6:
        path.chmod(rng.choice((0o600, 0o666, 0o644)))
    elif how == 7:
        path.rename(path.with_name(rng.choice((MARKER, "manifest.json", "kernel.ptx", "x"))))
    else:
        os.utime(path, (rng.choice((0, 1e9, 1e11)),) * 2)


def somebody_elses(root: Path, rng: random.Random, number: int) -> dict[str, bytes]:
    """Write files of other programs into the cache folders and return their contents by name."""
    out: dict[str, bytes] = {}
    for i in range(number):
        folders = [p for p in root.rglob("*") if p.is_dir() and not p.is_symlink()]
        name = f"theirs-{i}"
        (rng.choice(folders) / name).write_bytes(name.encode())
        out[name] = name.encode()
    return out


def kill_a_writer(folder: str, rng: random.Random) -> None:
    """Fork a process that writes and clears in a loop, and kill it after a random delay."""
    child = os.fork()
    if child == 0:
        try:
            warnings.simplefilter("ignore")
            cache = Cache(folder)
            while True:
                for key in KEYS:
                    cache.put(key, artifact(key))
                cache.clear()
        finally:
            os._exit(0)
    time.sleep(rng.random() / 100)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def one(seed: int, number: int) -> None:
    """Run one case. Raises AssertionError for a violation."""
    rng = random.Random(f"{seed} {number}")
    base = Path(tempfile.mkdtemp(prefix="cache-fuzz-"))
    try:
        elsewhere = base / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "other").write_bytes(b"elsewhere")
        root = base / "cache"
        cache = Cache(str(root))
        for key in KEYS:
            assert cache.put(key, artifact(key))
        theirs = somebody_elses(root, rng, rng.randrange(3))
        for _ in range(rng.randrange(1, 5)):
            if number % 10 == 0:
                kill_a_writer(str(root), rng)
            for _ in range(rng.randrange(3)):
                before = {p.name for p in base.rglob("theirs-*")}
                with contextlib.suppress(OSError):  # The name may be taken.
                    damage(root, rng, elsewhere)
                after = {p.name: p for p in base.rglob("theirs-*") if p.is_file() and not p.is_symlink()}
                # Files that this test has damaged or renamed are no longer compared.
                theirs = {n: after[n].read_bytes() for n in theirs if n in after and n in before}
            key = rng.choice(KEYS)
            step = rng.randrange(5)
            if step == 0:
                cache.prune(rng.randrange(5000))
            elif step == 1:
                cache.clear()
            elif step == 2:
                cache.put(key, artifact(key))
            for e in cache.entries():
                found = cache.look(e)
                assert found is None or found == artifact(e.key), e.key
            found = cache.get(key)
            assert found is None or found == artifact(key), key
        cache.clear()
        for key in KEYS:
            assert cache.get(key) is None and (not cache.put(key, artifact(key)) or cache.get(key) == artifact(key))
        kept = {p.name: p.read_bytes() for p in base.rglob("theirs-*") if p.is_file() and not p.is_symlink()}
        assert all(kept.get(n) == data for n, data in theirs.items()), (theirs, kept)
        assert (elsewhere / "other").exists()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def run(count: int, seed: int) -> None:
    """Run ``count`` cases. Raises AssertionError with the seed and the case number of a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        for number in range(count):
            try:
                one(seed, number)
            except Exception as e:
                raise AssertionError(f"seed {seed}, number {number}: {type(e).__name__}: {e}") from e


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    run(options.count, options.seed)
    print(f"{options.count} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
