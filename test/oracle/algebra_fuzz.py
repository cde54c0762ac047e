"""Long runs of the random checks of the layout algebra, outside the ordinary tests.

    python test/oracle/algebra_fuzz.py                            10,000 cases of every check
    python test/oracle/algebra_fuzz.py --count 100000 exact_divides
    python test/oracle/algebra_fuzz.py --count 1000000 text_grammar text_damage
    python test/oracle/algebra_fuzz.py --seed 1234 --count 1 composition    repeat one case

Each failure is printed with the seed that repeats it. The exit status is 1 if a case failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

import algebra_checks
import algebra_peer
import algebra_text_fuzz

CHECKS = {**algebra_checks.CHECKS, **algebra_text_fuzz.CHECKS, **algebra_peer.CHECKS}


def run(name: str, count: int, seed: int) -> int:
    """Run one check and return the number of failures."""
    check = CHECKS[name]
    failures = skipped = 0
    start = time.perf_counter()
    for i in range(seed, seed + count):
        try:
            check(Random(i))
        except algebra_checks.Skip:
            skipped += 1
        except Exception as e:
            failures += 1
            if failures <= 5:
                print(f"  {name} --seed {i}: {type(e).__name__}: {e}")
    seconds = time.perf_counter() - start
    print(f"{name}: {count} cases, {skipped} not applicable, {failures} failures, {seconds:.1f} s", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"of: {', '.join(CHECKS)}; default all")
    parser.add_argument("--count", type=int, default=10_000, help="cases of each check")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case; each case has its own")
    options = parser.parse_args()
    unknown = [name for name in options.checks if name not in CHECKS]
    if unknown:
        parser.error(f"no such check: {', '.join(unknown)}")
    return 1 if sum([run(name, options.count, options.seed) for name in options.checks or CHECKS]) else 0


if __name__ == "__main__":
    sys.exit(main())
