"""Command line of the atom table: ``python -m cute_dialect.arch``.

python -m cute_dialect.arch                        list all atoms, two lines per atom
python -m cute_dialect.arch --family wgmma -k x64x  list selected atoms
python -m cute_dialect.arch --json                 print all fields as a JSON array
python -m cute_dialect.arch --show SM80_16x8x16_F32F16F16F32_TN
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.listing import as_json, as_text, show
from cute_dialect.arch.table import ATOMS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cute_dialect.arch", description="The table of copy and MMA atoms.")
    parser.add_argument("--json", action="store_true", help="print a JSON array with all fields")
    parser.add_argument(
        "--show", metavar="NAME", action="append", default=[], help="print the thread-value tables of an atom"
    )
    parser.add_argument("-k", metavar="TEXT", default="", help="only atoms whose name contains TEXT")
    parser.add_argument(
        "--family", metavar="NAME", help="only atoms of a family: mma_sync, wgmma, ldmatrix, tma_load …"
    )
    parser.add_argument("--arch", metavar="SM", help="only atoms that a GPU such as sm_80 supports")
    args = parser.parse_args(argv)
    try:
        if args.show:
            for i, name in enumerate(args.show):
                print(*([""] if i else []), *show(ATOMS[name]), sep="\n")
            return 0
        limit = _number(args.arch) if args.arch else None
    except ArchError as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    chosen = (ATOMS[name] for name in ATOMS if args.k in name)
    kept = (
        a
        for a in chosen
        if (args.family is None or a.family == args.family)
        and (limit is None or (a.arch == args.arch if a.arch.endswith("a") else _number(a.arch) <= limit))
    )
    for line in (as_json if args.json else as_text)(kept):
        print(line)
    return 0


def _number(arch: str) -> int:
    digits = arch.removeprefix("sm_").rstrip("af")
    if not digits.isdigit():
        raise ArchError(f"expected a GPU architecture such as sm_80 or sm_90a, got {arch!r}")
    return int(digits)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.exit(0)
