"""Random configurations of the Hopper GEMMs: ``check`` refuses each, or it is correct on the interpreter.

    python test/oracle/gemm_parts_fuzz.py --count 200 --seed 3
    python test/oracle/gemm_parts_fuzz.py --seed 3 --case 17       # repeat one case

All options of ``GemmConfig`` (except pointer arrays and the fallback), split-K, and all options of ``SkinnyConfig`` are
random: types, majors, tiles, clusters, schedules, epilogues. The program prints wrong results, the number of refusals,
and the number of pairs of options covered. The exit status is 1 if a result was wrong.
"""

# pyright: basic

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import numpy as np
from gemm_parts import accepted, pairs, wrong


def main() -> int:
    """Run random configurations and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one only")
    options = parser.parse_args()
    failed, refusals, met = 0, 0, set()
    for i in range(options.count) if options.case is None else [options.case]:
        rng = np.random.default_rng([options.seed, i])
        taken, config, refused = accepted(rng)
        refusals += refused
        try:
            found = wrong(rng, config)
        except Exception as e:
            if options.case is not None:
                raise
            found = f"{type(e).__name__}: {str(e)[:400]}"
        if found:
            failed += 1
            print(f"seed {options.seed}, case {i}: {config}: {found}", flush=True)
        else:
            met |= set(pairs(taken))
    print(f"{options.count} configurations, {failed} wrong; {refusals} were refused, {len(met)} pairs of options met")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
