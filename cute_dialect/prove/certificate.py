"""Certificates: the inductive invariant of a proof as JSON, which `recheck` verifies without a search.

A file has one certificate per kernel:

| key | content |
|---|---|
| `kernel`, `claim`, `engine`, `tool` | the name of the kernel, the statement, the kind of search, and the version |
| `base_ir` | SHA-256 of the lowered kernel and of the globals that it uses, without locations |
| `preconditions`, `axioms`, `not_covered` | the assumptions, axioms with their sources, and what is left out |
| `nodes` | values of which the states consist, see `codec` |
| `hints`, `tokens` | what states distinguish: classes of lanes, bytes, numbers that iterations are compared with |
| `moves` | renumberings of loops and tiles, see `moves` |
| `start` | the first state, as an edge |
| `states` | the node of each state, the question that it asks, and an edge per answer (yes, no) |
| `digest` | SHA-256 of the rest, against accidental changes |

An edge is the number of a state and of a move, or -1 and 0 if the block ends. States have the order in which edges
first reach them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TypeAlias, TypedDict, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from cute_dialect.errors import UsageError
from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.exec.program import symbol_name
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.axioms import AXIOMS, NOT_COVERED
from cute_dialect.prove.codec import Child
from cute_dialect.prove.names import preconditions

Row: TypeAlias = "tuple[Child, Child, Sequence[Sequence[int]]]"
"""Nodes of a state and of its question, and the edges to its successors."""
FORMAT = "cute-prove certificate 1"
CLAIM = "no race, no deadlock and no misuse of barriers in shared memory, for all sizes that meet the preconditions"
FACTS, INTERLEAVINGS = "facts", "interleavings"
"""Engines: one schedule with happens-before, or all interleavings of visible steps."""
END = -1
LARGE = 1 << 20
"""Size of the text, in bytes, from which a certificate is compressed."""
HINTS: tuple[str, ...] = tuple(f.name for f in fields(Learned) if f.name not in ("skips", "excluded"))


class Content(TypedDict):
    """The certificate of one kernel."""

    kernel: str
    claim: str
    engine: str
    tool: str
    base_ir: str
    preconditions: list[str]
    axioms: list[dict[str, str]]
    not_covered: str
    nodes: list[list[Child]]
    hints: Child
    tokens: Child
    moves: list[Child]
    start: list[int]
    states: list[Row]
    digest: str


def claim_of(kernel: Operation, learned: Learned) -> dict[str, object]:
    """Return the statement of a certificate: claim, preconditions and axioms."""
    return {
        "kernel": symbol_name(kernel),
        "claim": CLAIM,
        "preconditions": list(preconditions(kernel, learned)),
        "axioms": [a._asdict() for a in AXIOMS],
        "not_covered": NOT_COVERED,
    }


def base_ir_hash(module: ModuleOp, kernel: Operation) -> str:
    """Return the hash of a lowered kernel and of the globals that it uses, which does not depend on locations."""
    used = {str(attr_of(op, "global_name")) for op in kernel.walk() if op.name == "llvm.mlir.addressof"}
    parts = [op for op in module.walk() if op.name == "llvm.mlir.global" and f"@{symbol_name(op)}" in used]
    return "sha256:" + hashlib.sha256("\n".join(map(str, [*parts, kernel])).encode()).hexdigest()


def digest_of(content: Mapping[str, object]) -> str:
    """Return the hash of a certificate without its digest."""
    rest = {k: v for k, v in content.items() if k != "digest"}
    return "sha256:" + hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def save_certificates(certificates: list[Content], path: Path) -> None:
    """Write certificates, compressed if they are large or if the name of the file ends in `.gz`."""
    text = json.dumps({"format": FORMAT, "kernels": certificates}, separators=(",", ":")).encode()
    is_compressed = len(text) >= LARGE or path.suffix == ".gz"
    path.write_bytes(gzip.compress(text, mtime=0) if is_compressed else text)


def load_certificates(path: Path) -> list[Content]:
    """Read certificates. Raises UsageError if the file has none."""
    data = path.read_bytes()
    try:
        got = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, EOFError, OSError, RecursionError) as e:
        raise UsageError(f"{path}: not a certificate ({type(e).__name__}: {e}); write one with --certificate") from None
    read = cast("dict[str, object]", got) if isinstance(got, dict) else {}
    form, kernels = read.get("format"), read.get("kernels")
    if form != FORMAT:
        raise UsageError(f"{path}: not a certificate of the format '{FORMAT}'; write one with --certificate")
    if not isinstance(kernels, list) or not all(isinstance(k, dict) for k in cast("list[object]", kernels)):
        raise UsageError(f"{path}: 'kernels' is not a list of certificates; write the file again with --certificate")
    return cast("list[Content]", kernels)
