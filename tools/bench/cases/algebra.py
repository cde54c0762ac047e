"""CPU time of the eager layout algebra: ``cute-bench algebra``.

It gives microseconds per call, the best of several rounds over the same inputs.  Each call gets a new random layout, so
that nothing is memoized.  It is compared with ``pycute`` (``pip install --no-deps nvidia-cutlass``, BSD-3) and
``tensor-layouts`` if they are installed.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.algebra import complements, compose, evaluation, inverses, layout, tiling
from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.runner import Benchmark, Row, Say

if TYPE_CHECKING:  # pragma: no cover
    pass


PEERS = ("pycute", "tensor_layouts")
INPUTS = 1000


def random_nested(rng: Random) -> Layout:
    """Return a random compact layout of rank 2 and depth 2, similar to tiles and thread-value layouts."""
    extents = [rng.choice([2, 4, 8]) for _ in range(4)]
    order = list(range(4))
    rng.shuffle(order)
    strides, p = [0] * 4, 1
    for i in order:
        strides[i] = p
        p *= extents[i]
    a, b, c, d = strides
    return raw_layout(((extents[0], extents[1]), (extents[2], extents[3])), ((a, b), (c, d)))


def rearranged(rng: Random, a: Layout) -> Layout:
    """Return a random layout of the same size that can be composed with ``a``."""
    n = evaluation.size(a)
    assert type(n) is int
    extents = [2, 2, 4, n // 16]
    order = list(range(4))
    rng.shuffle(order)
    starts = [1, 2, 4, 16]
    s = [extents[i] for i in order]
    d = [starts[i] for i in order]
    return raw_layout(((s[0], s[1]), (s[2], s[3])), ((d[0], d[1]), (d[2], d[3])))


def cpu_us(f: Callable[..., object], inputs: list[tuple[object, ...]], rounds: int) -> float:
    """Return the CPU microseconds per call of the best round."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for operands in inputs:
            f(*operands)
        best = min(best, time.process_time() - start)
    return best / len(inputs) * 1e6


class Function(NamedTuple):
    """A function, the equivalents by package (a name, or a callable over the package), and the inputs."""

    name: str
    ours: Callable[..., object]
    peers: dict[str, str]
    inputs: list[tuple[object, ...]]


def functions() -> list[Function]:
    """Return the cases."""
    rng = Random(0)
    layouts = [random_nested(rng) for _ in range(INPUTS)]
    pairs: list[tuple[object, ...]] = [(a, rearranged(rng, a)) for a in layouts]
    tiles: list[tuple[object, ...]] = [
        (raw_layout((16, 32), rng.choice([(1, 16), (32, 1)])), (4, 8)) for _ in range(INPUTS)
    ]
    nested: list[tuple[object, ...]] = [(a, (rng.choice([2, 4]), rng.choice([2, 4]))) for a in layouts]
    gaps: list[tuple[object, ...]] = [
        (raw_layout((2, (2, 3)), (4 * k, (1, 24 * k))), 144 * k) for k in (rng.randrange(1, 50) for _ in range(INPUTS))
    ]
    indices: list[tuple[object, ...]] = [(rng.randrange(200), a) for a in layouts]
    singles: list[tuple[object, ...]] = [(a,) for a in layouts]
    same: dict[str, dict[str, str]] = {
        name: dict.fromkeys(PEERS, name) for name in ("zipped_divide", "complement", "right_inverse")
    }
    return [
        Function("composition", compose.composition, {"pycute": "composition", "tensor_layouts": "compose"}, pairs),
        Function("zipped_divide, flat modes", tiling.zipped_divide, same["zipped_divide"], tiles),
        Function("zipped_divide, nested modes", tiling.zipped_divide, same["zipped_divide"], nested),
        Function("complement", complements.complement, same["complement"], gaps),
        Function("right_inverse", inverses.right_inverse, same["right_inverse"], singles),
        Function("left_inverse", inverses.left_inverse, dict.fromkeys(PEERS, "left_inverse"), singles),
        Function("coalesce", layout.coalesce, dict.fromkeys(PEERS, "coalesce"), singles),
        Function("evaluate", evaluation.evaluate, dict.fromkeys(PEERS, "()"), indices),
        Function("cosize", evaluation.cosize, dict.fromkeys(PEERS, "cosize"), singles),
    ]


def _peer_call(peer: object, name: str) -> Callable[..., object]:
    if name == "()":
        return lambda c, a: a(c)
    return getattr(peer, name)


def run_algebra(*, runs: int, say: Say) -> dict[str, object]:
    """Measure all cases; return the rows and the installed packages."""
    peers: dict[str, object] = {}
    for name in PEERS:
        try:
            peers[name] = import_module(name)
        except ImportError:
            say(f"  {name} is not installed and not compared")
    rows: list[Row] = []
    for case in track(functions(), "measuring", "functions"):
        row: dict[str, object] = {"name": case.name, "ours": cpu_us(case.ours, case.inputs, runs)}
        for peer_name, peer in peers.items():
            make: Callable[..., object] = peer.Layout  # pyright: ignore[reportAttributeAccessIssue]
            theirs = [
                tuple([make(x.shape, x.stride) if isinstance(x, Layout) else x for x in operands])
                for operands in case.inputs
            ]
            row[peer_name] = cpu_us(_peer_call(peer, case.peers[peer_name]), theirs, runs)
        rows.append(row)
    return {"peers": list(peers), "unit": "us per call", "rows": rows}


def algebra_table(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the header and the rows of the table."""
    peers, rows = result["peers"], result["rows"]
    assert isinstance(peers, list) and isinstance(rows, list)
    head = ("us per call", "ours", *[x for p in peers for x in (str(p), "ratio")])
    out: list[tuple[str, ...]] = [head]
    for r in rows:
        cells = [str(r["name"]), f"{r['ours']:.2f}"]
        for p in peers:
            cells += [f"{r[p]:.2f}", f"{r[p] / r['ours']:.1f}"]
        out.append(tuple(cells))
    return out


BENCHMARKS = {
    "algebra": Benchmark(None, run_algebra, algebra_table),
}
