"""Random host programs must print the output of the eager algebra, for any order of the passes.

Upstream's execution engine compiles the output of our passes.
"""

from __future__ import annotations

import pytest
from host_programs import Program, program

from cute_dialect.algebra import text
from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine
from cute_dialect.passes.pipeline_text import parse_pipeline
from cute_dialect.pipelines.handoff import handoff_text
from cute_dialect.pipelines.runner import IR, Runner, resolve
from cute_dialect.pipelines.worker import run_host

pytestmark = pytest.mark.usefixtures("ir")

ORDERS = (
    "cute-fold-static,cute-expand-ops,cute-to-base",
    "cute-expand-ops,cute-to-base",
    "cute-expand-ops,cute-fold-static,canonicalize,cse,cute-to-base",
    "canonicalize,cse,cute-fold-static,cute-fold-static,cute-expand-ops,loop-invariant-code-motion,cse,cute-to-base",
    "cse,cute-expand-ops,canonicalize,cute-fold-static,convert-cute-algo-to-arch,cute-to-base,canonicalize",
)
PROGRAMS = 24


def run(p: Program, order: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Run the passes and the program, and return the lines that it prints."""
    engine = DiagnosticEngine()
    module = p.module.clone()
    assert Runner(make_context(), engine).run(IR(module), resolve(parse_pipeline(order))), engine.seen
    capfd.readouterr()
    run_host(handoff_text(module))
    return capfd.readouterr().out.splitlines()


@pytest.mark.sample("0")
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    p = program(seed)
    lines = run(p, ORDERS[0], capfd)
    assert lines == p.output, str(p.module)
    eager = [line if known is None else text.to_text(known.data, known.kind) for line, known in zip(lines, p.lines)]
    assert lines == eager, str(p.module)
    other = ORDERS[1 + seed % (len(ORDERS) - 1)]
    assert run(p, other, capfd) == lines, other


def test_every_order_prints_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    p = program(PROGRAMS)
    first, *others = [run(p, order, capfd) for order in ORDERS]
    assert len(first) == len(p.lines) and all(lines == first for lines in others)


@pytest.mark.slow
def test_the_programs_have_what_they_should() -> None:
    """Check that random programs cover most ops and mostly print known lines; empty ones would pass the other tests."""
    programs = [program(seed) for seed in range(PROGRAMS)]
    assert len({name for p in programs for name in p.ops}) >= 38
    known = [t for p in programs for t in p.lines if t is not None]
    assert len(known) >= 0.8 * sum(len(p.lines) for p in programs)
    kinds = {"int_tuple", "shape", "stride", "coord", "layout", "composed_layout", "tile", "swizzle"}
    assert {t.kind for t in known} == kinds
    assert {"func.call", "scf.for", "scf.if"} <= {op.name for p in programs for op in p.module.walk()}
