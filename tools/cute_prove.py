"""The ``cute-prove`` program: proofs for all sizes.

cute-prove gemm.mlir --kernel gemm
cute-prove gemm.mlir --certificate gemm.cert
cute-prove gemm.mlir --recheck gemm.cert
cute-prove layout '(M,N):(1,M) == M*N:1'
cute-prove layout 'injective (M,N):(1,S)' --where 'S >= M'
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cute_dialect.algebra import AlgebraError
from cute_dialect.errors import CuteError, UsageError
from cute_dialect.files import not_mlir
from cute_dialect.symbolic.layouts import (
    Verdict,
    parse_condition,
    prove_covers,
    prove_disjoint,
    prove_equal,
    prove_injective,
    symbols_of,
)
from cute_dialect.tools.command_line import new_parser

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.prove.proof import Proof, Run
    from cute_dialect.runtime.launch import CompiledModule

EPILOG = """\
cute-prove layout QUESTION decides a question about layouts whose extents and strides are symbols:

    'A == B'           equal sizes, and equal indices at every coordinate
    'injective A'      no two coordinates have one index
    'A covers N'       the indices are exactly 0 to N-1
    'A disjoint B'     no index belongs to both; a layout with an offset is 'M*8:1 o offset o layout'

A and B are layouts such as '((8,m),N):((1,8),S)' or 'S<3,4,3> o 0 o (8,m):(128,1024)', or operations on them:
coalesce(A), composition(A, B), logical_divide(A, [8:1;_]), complement(A, n), blocked_product(A, B), and so on.
Symbols are integers >= 1.  --where adds a condition: 'M % 8 == 0', 'S >= M', 'M <= 64', 'S == 2*M'; < and > are
allowed, and the option may be repeated.  'S >= 0' or an equation replaces the bound of 1.

    cute-prove layout 'logical_divide((M,N):(1,S), [8:1;_]) == (M,N):(1,S)' --where 'M % 8 == 0'

The proof covers the code of the layout operations as the passes run it on dynamic extents.  Integers do not overflow
in it.  A refutation names sizes that layouts of integers have confirmed.

Exit status: 0 proved, 1 refuted, 2 not proved, 3 the question is not understood.
"""

PROVED, REFUTED, NOT_PROVED, USAGE = range(4)

KERNEL_EPILOG = """\
cute-prove FILE asks whether the mbarriers, barriers, asynchronous copies and wgmma of a kernel are synchronized for
every trip count of its loops.  It compiles FILE to base IR and visits all states of one block.

    cute-prove gemm.mlir                             every kernel of the file
    cute-prove gemm.mlir --kernel launch --in 64xKxf16 --in 128xKxf16 --in 64x128xf16
    cute-prove gemm.mlir --certificate gemm.cert     write the states that were visited, if all kernels are proved
    cute-prove gemm.mlir --recheck gemm.cert         check them without a search

proved       No race, deadlock or misuse of a barrier in shared memory, for all trip counts, or for those that the first
             line names ('for all k_tiles >= 1').
refuted      A violation that the interpreter reproduces on the arguments of --in; the sizes, the line, and a command of
             cute-run that replays the schedule follow.
not proved   The op or pattern in the way, or a violation that the interpreter does not reproduce.

--in describes the arguments as for cute-run.  A capital letter in a shape is a size that the replay varies.
--engine facts searches one schedule and checks that the others have the same order of events.  --engine exhaustive
tries all interleavings, which is possible for small kernels.  auto tries the second where the first does not decide.

Exit status: 0 proved, or certificates accepted; 1 refuted, or rejected; 2 not proved; 3 the command is not understood.
'cute-prove layout --help' explains questions about layouts.
"""
SIZES = (16, 32, 64, 128, 192, 256, 320, 384, 512)
"""Values of the letters in the shapes of --in."""
MOST_PROBLEMS = 16


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: error: {message}\n")


def build_kernel_parser() -> argparse.ArgumentParser:
    """Return the parser of ``cute-prove FILE``."""
    parser = new_parser("cute-prove", "Prove the synchronization of kernels for all trip counts.", KERNEL_EPILOG)
    parser.__class__ = _Parser
    parser.add_argument("file", metavar="FILE", help="a file of MLIR")
    parser.add_argument(
        "--kernel", metavar="NAME", help="a kernel, or the host function that launches it (default: all)"
    )
    parser.add_argument(
        "--in", dest="inputs", action="append", default=[], metavar="SHAPE", help="an argument for the replay: 64xKxf16"
    )
    parser.add_argument(
        "--limit", type=float, default=60, metavar="SECONDS", help="CPU time of the search (default: %(default)s)"
    )
    parser.add_argument(
        "--engine", choices=("auto", "facts", "exhaustive"), default="auto", help="the search (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list with one verdict per kernel")
    certificates = parser.add_mutually_exclusive_group()
    certificates.add_argument("--certificate", metavar="OUT", help="write the certificates of the kernels to OUT")
    certificates.add_argument("--recheck", metavar="CERT", help="check certificates instead of searching")
    return parser


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``cute-prove layout``."""
    parser = new_parser("cute-prove", "Prove properties of layouts for all extents.", EPILOG)
    parser.__class__ = _Parser
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    layout = commands.add_parser(
        "layout",
        help="decide a question about layouts of symbolic extents",
        description="Decide a question about layouts of symbolic extents.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    layout.add_argument("questions", nargs="+", metavar="QUESTION", help="such as 'coalesce((M,N):(1,M)) == M*N:1'")
    layout.add_argument("--where", action="append", default=[], metavar="CONDITION", help="such as 'M %% 8 == 0'")
    layout.add_argument("--json", action="store_true", help="print a JSON list with one verdict per question")
    return parser


def ask(question: str, where: Sequence[str] = ()) -> Verdict:
    """Return the answer to a question in the notation of the command line.

    Raises:
        AlgebraError: the question, a layout or a condition is not understood.

    >>> str(ask("(M,N):(1,M) covers M*N"))
    'proved for all M, N >= 1'
    """
    sides = re.split(r"\s*(==|\bcovers\b|\bdisjoint\b)\s*", question.strip())
    if len(sides) == 3:
        a, relation, b = sides
        return {"==": prove_equal, "covers": prove_covers, "disjoint": prove_disjoint}[relation](a, b, where)
    found = re.fullmatch(r"\s*injective\s+(.*)", question)
    if found and len(sides) == 1:
        return prove_injective(found[1], where)
    raise AlgebraError(
        f"the question {question!r} is not understood; write 'A == B', 'injective A', 'A covers N' or 'A disjoint B'"
    )


def conditions_for(question: str, questions: Sequence[str], where: Sequence[str]) -> list[str]:
    """Return the conditions of a question: those of its symbols, and those of no symbol of any question, an error."""

    def is_about(condition: str, question: str) -> bool:
        return parse_condition(condition)[0] in symbols_of([question.removeprefix("injective ")], where)

    return [w for w in where if is_about(w, question) or not any(is_about(w, q) for q in questions)]


def problems_of(shapes: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the arguments of --in with numbers for the letters, small problems first.

    >>> next(problems_of(["64xKxf16"]))
    ('64x16xf16', ['64x16xf16'])
    """
    letters = sorted({part for shape in shapes for part in shape.split("x") if re.fullmatch("[A-Z]", part)})
    every = sorted(itertools.product(SIZES, repeat=len(letters)), key=prod)
    for values in every[:MOST_PROBLEMS]:
        sizes = dict(zip(letters, map(str, values)))
        made = ["x".join(sizes.get(part, part) for part in shape.split("x")) for shape in shapes]
        yield ", ".join(made), made


def _prove_kernels(options: argparse.Namespace) -> int:
    """Run ``cute-prove FILE`` and return the exit status."""
    from cute_dialect.pipelines import compile as compile_cute  # late: start-up
    from cute_dialect.prove.proof import prove  # late: start-up

    if options.file.endswith(".py"):
        cure = "call cute.testing.prove(f, arguments) in the program, where f is the @cute.jit function"
        raise UsageError(not_mlir("cute-prove", options.file, cure))
    compiled = compile_cute(Path(options.file), emit="base")
    kernels = _kernels_of(compiled, options.kernel)
    if not kernels:
        return USAGE
    modules = {name: cast("ModuleOp", compiled.lowered(name)) for name in kernels}
    if options.recheck:
        return _recheck(modules, options)

    def command(problem: str, schedule: str) -> str:
        return _replay_command(options, problem, schedule)

    proofs: list[Proof] = []
    for name, module in modules.items():
        found = prove(
            module,
            name,
            _candidates(compiled, options),
            seconds=options.limit,
            engine=options.engine,
            certify=options.certificate is not None,
            command=command,
        )
        proofs.append(found)
    if options.json:
        print(json.dumps([{k: v for k, v in asdict(p).items() if k != "certificate"} for p in proofs], indent=2))
    else:
        print("\n".join(map(str, proofs)))
    if options.certificate and not _write_certificates(proofs, Path(options.certificate)):
        return NOT_PROVED if all(proofs) else _status(proofs)
    return _status(proofs)


def _status(proofs: Sequence[Proof]) -> int:
    verdicts = {p.verdict for p in proofs}
    return REFUTED if "refuted" in verdicts else NOT_PROVED if "not proved" in verdicts else PROVED


def _write_certificates(proofs: Sequence[Proof], path: Path) -> bool:
    """Write the certificates of all kernels. Print the reason and return False if one has none."""
    from cute_dialect.prove.certificate import save_certificates  # late: start-up

    for p in proofs:
        if p.certificate is None:
            reason = p.uncertified or f"{p.kernel} is {p.verdict}"
            print(f"cute-prove: {path} was not written: {reason}", file=sys.stderr)
            return False
    save_certificates([p.certificate for p in proofs if p.certificate is not None], path)
    print(f"{path}: {path.stat().st_size} bytes, {len(proofs)} certificate{'s'[: len(proofs) != 1]}", file=sys.stderr)
    return True


def _recheck(modules: Mapping[str, ModuleOp], options: argparse.Namespace) -> int:
    """Run ``cute-prove FILE --recheck CERT`` and return the exit status."""
    from cute_dialect.prove.certificate import load_certificates  # late: start-up
    from cute_dialect.prove.recheck import RejectedError, recheck_all  # late: start-up

    certificates = load_certificates(Path(options.recheck))
    try:
        print("\n".join(recheck_all(modules, certificates, options.limit)))
    except RejectedError as e:
        print(e)
        return REFUTED
    return PROVED


def _replay_command(options: argparse.Namespace, problem: str, schedule: str) -> str:
    """Return the command that replays a counterexample.

    >>> _replay_command(argparse.Namespace(file="ring.mlir", kernel=None), "32x16xf32, 4xf32", "replay:0*3,1")
    "cute-run ring.mlir --in 32x16xf32 --in 4xf32 --device cpu --check race,uninit --schedule 'replay:0*3,1'"
    """
    kernel = ["--kernel", options.kernel] if options.kernel else []
    inputs = [word for shape in problem.split(", ") for word in ("--in", shape)]
    checks = ["--device", "cpu", "--check", "race,uninit", "--schedule", schedule]
    return shlex.join(["cute-run", options.file, *kernel, *inputs, *checks])


def _kernels_of(compiled: CompiledModule, name: str | None) -> list[str]:
    """Return the kernels that a name selects: itself, or those that a host function launches."""
    hosts = [h["name"] for h in compiled.manifest["hosts"]]
    if name is None:
        return list(compiled.names)
    if name not in (*compiled.names, *hosts):
        print(
            f"cute-prove: --kernel {name}: no such kernel; the file has {', '.join([*compiled.names, *hosts])}",
            file=sys.stderr,
        )
        return []
    return list(dict.fromkeys(choice.kernel["name"] for choice in compiled.kernel(name).target.launches))


def _candidates(compiled: CompiledModule, options: argparse.Namespace) -> Iterator[tuple[str, Run]]:
    """Yield the runs on which a counterexample is replayed."""
    if not options.inputs:
        return
    from cute_dialect.tools import cute_run  # late: start-up
    from cute_dialect.tools.run_call import make_call, read_request, values_of  # late: start-up

    kernel = ["--kernel", options.kernel] if options.kernel else []
    for text, shapes in problems_of(options.inputs):
        given = [word for shape in shapes for word in ("--in", shape)]
        request = cute_run.build_parser().parse_args([options.file, "--device", "cpu", *kernel, *given])

        def run(schedule: str, request: argparse.Namespace = request) -> object:
            call = make_call(compiled, read_request(request), request)
            return call.kernel(*values_of(call.arguments), device="cpu", checks=["race", "uninit"], schedule=schedule)

        yield text, run


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-prove`` and return the exit status, the worst of all questions."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] != ["layout"]:
        try:
            return _prove_kernels(build_kernel_parser().parse_args(given))
        except (CuteError, OSError) as e:
            print(f"cute-prove: {e}", file=sys.stderr)
            return USAGE
    options = build_parser().parse_args(given)
    verdicts: list[Verdict] = []
    for question in options.questions:
        try:
            verdicts.append(ask(question, conditions_for(question, options.questions, options.where)))
        except AlgebraError as e:
            print(f"cute-prove: {question}: {e}", file=sys.stderr)
            return USAGE
        except (RecursionError, MemoryError, OverflowError) as e:
            print(f"cute-prove: {question[:80]}: the question is too large ({type(e).__name__})", file=sys.stderr)
            return USAGE
    if options.json:
        rows = [{"question": q, **asdict(v)} for q, v in zip(options.questions, verdicts)]
        print(json.dumps(rows, indent=2))
    else:
        for question, verdict in zip(options.questions, verdicts):
            print(f"{question}: {verdict}")
    status = {v.status for v in verdicts}
    return REFUTED if "refuted" in status else NOT_PROVED if "not proved" in status else PROVED


if __name__ == "__main__":
    sys.exit(main())
