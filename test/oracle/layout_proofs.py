"""Random questions about symbolic layouts: verdicts compared with enumeration of integer layouts.

    python test/oracle/layout_proofs.py --count 10000 --seed 0

A proved question must hold for every drawn assignment of integers; a refuted one must fail at the sizes it names.  Both
verdicts must occur in at least a fifth of the questions.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from layout_questions import check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="questions")
    parser.add_argument("--seed", type=int, default=0, help="number of the first question")
    args = parser.parse_args()
    found = Counter(check(seed) for seed in range(args.seed, args.seed + args.count))
    print(dict(found))
    rare = [k for k in ("proved", "refuted") if found[k] < args.count / 5]
    if rare:
        print(f"fewer than a fifth of the questions are {' or '.join(rare)}")
    return 1 if rare else 0


if __name__ == "__main__":
    sys.exit(main())
