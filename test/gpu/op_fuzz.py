"""Random calls of every public function of ``op`` on a GPU or the interpreter, compared with float64.

    python test/gpu/op_fuzz.py --count 5000 --seed 1                  one process per CPU, all on the same GPU
    python test/gpu/op_fuzz.py --count 50 --device cpu                small calls on the interpreter
    python test/gpu/op_fuzz.py --seed 1 --call "mm f16" 17            repeat one call

Calls run forward only or with gradients, in every element type. Views are contiguous, padded, transposed, misaligned,
strided or empty; see ``test/support/random_calls.py``. Calls of one family share kernels, so one process makes them.

The program prints each wrong call with the command that repeats it, and the number of refused calls per error. All
calls are documented, so a refusal is also a failure. The exit status is 1 if a call was wrong or refused.
"""

# pyright: basic

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import torch
from random_calls import FAMILIES, draw, problem_of

from cute_dialect.op import OpError

MOST = 24
"""Number of calls per job. A process runs one job at a time."""


class Result(NamedTuple):
    """Result of a job: wrong calls (family, index, description), refusals by message, and the number of calls."""

    wrong: list[tuple[str, int, str]]
    refused: Counter[str]
    made: int
    dead: bool


def numbers(count: int, name: str = "") -> list[tuple[str, int, int]]:
    """Split ``count`` calls into jobs (family, first index, number of calls) by the weights of the families.

    Only families whose name contains ``name`` are called.
    """
    families = {family: weight for family, (_, weight) in FAMILIES.items() if name in family}
    total = sum(families.values())
    jobs: list[tuple[str, int, int]] = []
    left, share = count, total
    for family, weight in families.items():
        calls = round(left * weight / share)
        left, share = left - calls, share - weight
        jobs += [(family, begin, min(MOST, calls - begin)) for begin in range(0, calls, MOST)]
    return jobs


def one(family: str, seed: int, number: int, device: str) -> str:
    """Run one call and return a description of its error, empty if it is correct. Raises OpError if it is refused."""
    call = draw(family, random.Random(f"{seed} {family} {number}"), device, device == "cpu")
    try:
        said = problem_of(call)
    except OpError:
        raise
    except Exception as e:
        said = f"{type(e).__name__}: {str(e)[:400]}"
    return f"{said}\n    {call.describe()}" if said else ""


def job(family: str, first: int, count: int, seed: int, device: str) -> Result:
    """Run consecutive calls of one family."""
    torch.set_num_threads(1)
    wrong: list[tuple[str, int, str]] = []
    refused: Counter[str] = Counter()
    for number in range(first, first + count):
        try:
            said = one(family, seed, number, device)
        except OpError as e:
            text = re.sub(r"\d+", "#", str(e))
            refused[f"{family}: {type(e).__name__}: {text[:160]}"] += 1
            continue
        if said:
            wrong.append((family, number, said))
            if device != "cpu" and not _is_alive():
                return Result(wrong, refused, number - first + 1, True)
    return Result(wrong, refused, count, False)


def _is_alive() -> bool:
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def main() -> int:
    """Run the calls and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--family", help="only families whose name contains this")
    parser.add_argument("--processes", type=int, default=min(16, len(os.sched_getaffinity(0))))
    parser.add_argument("--call", nargs=2, metavar=("FAMILY", "NUMBER"), help="one call")
    options = parser.parse_args()
    device = "cpu" if options.device == "cpu" else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        print("op_fuzz: no GPU that torch can use; use --device cpu", file=sys.stderr)
        return 2
    if options.call:
        said = one(options.call[0], options.seed, int(options.call[1]), device)
        print(said or "right")
        return int(bool(said))
    jobs = numbers(options.count, options.family or "")
    return run(jobs, options.seed, device, options.processes)


def run(jobs: list[tuple[str, int, int]], seed: int, device: str, processes: int) -> int:
    """Run the jobs in several processes, print wrong calls and return the exit status."""
    begin, made, wrong = time.monotonic(), 0, 0
    refused: Counter[str] = Counter()
    # The first job of every family runs first, so that one process compiles the kernels of that family.
    ordered = sorted(jobs, key=lambda j: j[1])
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        futures = {pool.submit(job, *j, seed, device): j for j in ordered}
        for future in as_completed(futures):
            family, first, count = futures[future]
            try:
                result = future.result()
            except Exception as e:  # the worker process crashed
                wrong += 1
                print(f"WRONG {family} {first} to {first + count - 1}: {type(e).__name__}: {e}", flush=True)
                continue
            made += result.made
            refused += result.refused
            for name, number, said in result.wrong:
                wrong += 1
                where = " --device cpu" if device == "cpu" else ""
                print(
                    f"WRONG: python test/gpu/op_fuzz.py{where} --seed {seed} --call {name!r} {number}\n    {said}",
                    flush=True,
                )
            if result.dead:
                print(
                    f"the GPU context of a process is broken; left out: calls of {family} from {first} on", flush=True
                )
    for text, count in refused.most_common():
        print(f"refused {count} times: {text}")
    print(f"{made} calls, {wrong} wrong, {sum(refused.values())} refused, {time.monotonic() - begin:.0f} s")
    return int(wrong > 0 or refused.total() > 0 or made == 0)


if __name__ == "__main__":
    sys.exit(main())
