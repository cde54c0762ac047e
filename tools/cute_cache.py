"""The ``cute-cache`` program: list, prune or clear the compile cache.

cute-cache ls                  list the entries, least recently used first
cute-cache clear               remove all entries
cute-cache prune [--size 100M] remove the least recently used entries until the cache fits the size
cute-cache dir                 print the folder of the cache
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence

from cute_dialect.pipelines.cache import Cache, Entry, default_cache
from cute_dialect.runtime.settings import SettingError, parse_size
from cute_dialect.tools.command_line import Once


def build_parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="cute-cache",
        description="Manage the compile cache, which stores compiled kernels by the hash of all their inputs.",
        epilog="CUTE_CACHE=0 disables the cache; CUTE_CACHE_DIR sets its folder, CUTE_CACHE_SIZE its limit (1G).",
    )
    sub = p.add_subparsers(dest="command", required=True, metavar="ls|clear|prune|dir")
    sub.add_parser("ls", help="list the entries: last use, size, kernels, key")
    sub.add_parser("clear", help="remove all entries")
    prune = sub.add_parser("prune", help="remove entries, least recently used first")
    prune.register("action", None, Once)
    prune.add_argument(
        "--size", metavar="BYTES", default="", help="maximum size in bytes; suffixes K, M, G (default: CUTE_CACHE_SIZE)"
    )
    sub.add_parser("dir", help="print the folder")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    try:
        cache = default_cache()
        limit = parse_size(options.size, "--size") if options.command == "prune" and options.size else None
    except SettingError as e:
        print(f"cute-cache: error: {e}", file=sys.stderr)
        return 1
    if cache is None:
        print("cute-cache: error: the cache is disabled (CUTE_CACHE=0)", file=sys.stderr)
        return 1
    if options.command == "dir":
        print(cache.folder)
    elif options.command == "ls":
        _list(cache)
    else:
        gone = cache.clear() if options.command == "clear" else cache.prune(limit)
        print(f"{len(gone)} {'entry' if len(gone) == 1 else 'entries'} removed, {_size(sum(e.size for e in gone))}")
    return 0


def _list(cache: Cache) -> None:
    entries = cache.entries()
    for e in entries:
        print(f"{_time(e.used)}  {_size(e.size):>9}  {_kernels(cache, e):<30} {e.key[:16]}")
    total = sum(e.size for e in entries)
    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    print(f"{count}, {_size(total)} of {_size(cache.limit)} in {cache.folder}")


def _time(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):
        return "?"


def _kernels(cache: Cache, entry: Entry) -> str:
    artifact = cache.look(entry)
    if artifact is None:
        return "(damaged)"
    if isinstance(artifact, dict):
        return _kind(artifact)
    return ", ".join(f"@{k['name']}" for k in artifact.manifest["kernels"]) + f" ({artifact.manifest['chip']})"


def _kind(files: Mapping[str, bytes]) -> str:
    """Describe an entry that maps a traced function and its argument types to a compiled module."""
    try:
        entry = json.loads(files["kind.json"])
        return f"{entry['name']}() -> {entry['artifact'][:16]}"
    except (KeyError, ValueError, TypeError):
        return "(damaged)"


def _size(n: int) -> str:
    size = float(n)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


if __name__ == "__main__":
    sys.exit(main())
