"""Random functions with branches and loops: traced programs compared with plain Python.

    python test/oracle/flow_fuzz.py --count 20000 --seed 0

Each function runs as Python. It is also traced with a random part of its parameters dynamic, and ``evaluate_ops.py``
runs the trace on the same numbers. Both results must agree, unless the front end refuses the function.

Refusals are counted by error code and may be at most 20 %. Functions that read a name left unbound on some path do not
count. F211 (a value used outside its branch or loop) is a bug of the front end.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from random_functions import tally

CHUNK = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000, help="functions")
    parser.add_argument("--seed", type=int, default=0, help="number of the first function")
    args = parser.parse_args()
    kinds, codes = Counter[str](), Counter[str]()
    starts = range(args.seed, args.seed + args.count, CHUNK)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # The front end keeps what it converted, about 4 MB per function here, so processes are replaced.
    with ProcessPoolExecutor(cores, get_context("spawn"), max_tasks_per_child=4) as pool:
        for found, by_code in pool.map(tally, starts, [min(CHUNK, args.seed + args.count - s) for s in starts]):
            kinds += found
            codes += by_code
    refused = kinds["refused"] / (args.count - kinds["unbound"])
    print(f"{dict(kinds)}; refused {refused:.1%}: {dict(codes.most_common())}")
    return 0 if refused <= 0.2 and not codes["F211"] else 1


if __name__ == "__main__":
    sys.exit(main())
