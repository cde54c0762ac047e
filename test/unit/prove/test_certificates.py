"""Certificates of protocol proofs: written, checked without a search, and rejected after any change."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from xdsl.dialects.builtin import ModuleOp

import cute_dialect.lang as cute
from cute_dialect.errors import UsageError
from cute_dialect.prove.certificate import Content, digest_of, load_certificates, save_certificates
from cute_dialect.prove.program import find_kernel
from cute_dialect.prove.proof import prove
from cute_dialect.prove.recheck import RejectedError, recheck
from cute_dialect.tools import cute_prove

sys.path.insert(0, str(Path(__file__).parent))

from rings import FAMILIES, arrays, ring


class Certified:
    """A proved kernel and its certificate, as it is read from a file."""

    def __init__(self, f: Any, arguments: tuple[Any, ...], engine: str = "auto") -> None:
        compiled = cute.compile(f, *arguments, device="cpu").kernel(cpu=True).module
        self.module, self.name = cast(ModuleOp, compiled.lowered()), compiled.names[0]
        proof = prove(self.module, self.name, engine=engine, certify=True)
        assert proof and proof.certificate is not None, str(proof)
        self.content: Content = json.loads(json.dumps(proof.certificate))

    def check(self, content: Content) -> int:
        """Check a certificate and return the number of states."""
        return recheck(self.module, find_kernel(self.module, self.name), content, 60)

    def reason(self, change: Callable[[Content], object], adapt_digest: bool = True) -> str:
        """Return the reason why a changed certificate is rejected."""
        content = copy.deepcopy(self.content)
        change(content)
        if adapt_digest:
            content["digest"] = digest_of(content)
        with pytest.raises(RejectedError) as error:
            self.check(content)
        return str(error.value)


def remove_state(content: Content, number: int) -> None:
    """Remove a state, and the edges' numbers of it: later states move up."""
    del content["states"][number]
    for _, _, edges in content["states"]:
        for edge in edges:
            edge[0] -= edge[0] > number


CHANGES: dict[str, tuple[Callable[[Content], object], str]] = {
    "state": (lambda c: remove_state(c, 4), "than state 4 of the certificate"),
    "last state": (lambda c: c["states"].pop(), "the edge leads to state 8 by move 0, which does not exist"),
    "edge": (lambda c: c["states"][3][2][0].__setitem__(0, 1), "state 3: the successor has other"),
    "end": (lambda c: c["states"][3][2].__setitem__(0, [-1, 0]), "the edge leads to state -1"),
    "missing edge": (lambda c: c["states"][3][2].pop(), "state 3 has 2 successors, but the certificate names 1"),
    "start": (lambda c: c["start"].__setitem__(0, 1), "the launch: the edge leads to state 1"),
    "axiom": (lambda c: c["axioms"].pop(2), "axioms: complete_tx of a copy is a release"),
    "more axioms": (lambda c: c["axioms"].append({"text": "P", "source": ""}), "axioms: P is not part of this proof"),
    "precondition": (lambda c: c["preconditions"].append("n >= 1"), "preconditions: 'n >= 1' is not part"),
    "kernel": (lambda c: c.update(base_ir="sha256:0"), "the certificate is for another program"),
    "engine": (lambda c: c.update(engine="none"), "the engine is 'none'"),
    "node": (lambda c: c["nodes"].pop(), "not understood"),
}


@pytest.fixture(scope="module")
def certified() -> Certified:
    return Certified(ring(2), arrays(2))


def test_a_certificate_is_accepted_unless_a_state_is_missing(certified: Certified):
    assert certified.check(certified.content) == len(certified.content["states"]) == 9
    assert "PTX ISA" in certified.content["axioms"][0]["source"]
    assert "than state 4 of the certificate" in certified.reason(lambda c: remove_state(c, 4))


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_rejected_by_name(certified: Certified, what: str):
    change, reason = CHANGES[what]
    assert reason in certified.reason(change)
    assert "does not match its digest" in certified.reason(change, adapt_digest=False)


@pytest.mark.slow
def test_the_program_writes_and_checks_certificates(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file, other, out = tmp_path / "ring.mlir", tmp_path / "other.mlir", tmp_path / "ring.cert"
    file.write_text(cute.compile(ring(2), *arrays(2), device="cpu").mlir("trace"))
    other.write_text(file.read_text().replace("32 : i32", "31 : i32", 1))
    assert cute_prove.main([str(file), "--certificate", str(out)]) == 0
    assert cute_prove.main([str(file), "--recheck", str(out)]) == 0
    assert "ring_kernel: certificate accepted: proved for all trip counts; 9 states" in capsys.readouterr().out
    assert cute_prove.main([str(other), "--recheck", str(out)]) == 1
    assert "certificate rejected: the certificate is for another program" in capsys.readouterr().out
    assert cute_prove.main([str(file), "--recheck", str(file)]) == 3
    assert "not a certificate" in capsys.readouterr().err
    save_certificates([], out)
    assert cute_prove.main([str(file), "--recheck", str(out)]) == 1
    assert "0 certificates of this kernel" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "cute-prove certificate 1", "kernels": 3}'])
def test_a_file_that_is_no_certificate_is_named(tmp_path: Path, text: str):
    file = tmp_path / "x.cert"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"x\.cert: "):
        load_certificates(file)


@pytest.mark.slow
def test_python_writes_compressed_certificates(tmp_path: Path):
    out = tmp_path / "ring.cert.gz"
    assert cute.testing.prove(ring(3), arrays(2), certificate=out)
    assert out.read_bytes()[:2] == b"\x1f\x8b"
    (line,) = cute.testing.recheck(ring(3), arrays(2), out)
    assert "certificate accepted" in line
    with pytest.raises(RejectedError, match="another program"):
        cute.testing.recheck(ring(2), arrays(2), out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "arguments", "engine", "count"),
    [*((f, a, "facts", 40) for f, _, a in FAMILIES), (*FAMILIES[0][::2], "exhaustive", 20)],
)
def test_no_random_change_of_states_is_accepted(
    build: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]], engine: str, count: int
):
    one = Certified(build(2), arguments(2), engine)
    assert one.check(one.content) == len(one.content["states"])
    draw = random.Random(build.__name__ + engine)
    reasons = {one.reason(lambda c: change_state(c, draw)).split(":")[0] for _ in range(count)}
    assert len(reasons) > 5, reasons


def change_state(content: Content, draw: random.Random) -> None:
    """Change a value of a state, an edge, or what is claimed. Hints steer the comparison, and are left alone."""
    hints = reachable(content, [content["hints"], content["tokens"]])
    nodes = [i for i in sorted(reachable(content, [s[0] for s in content["states"]])) if i not in hints]
    kind = draw.randrange(6)
    if kind < 3:
        node = content["nodes"][draw.choice([i for i in nodes if len(content["nodes"][i]) > 1])]
        at = draw.randrange(1, len(node))
        others = (node[at] - 1, node[at] + 1) if isinstance(node[at], int) else ("N", "'x", "0", 3)
        node[at] = draw.choice([x for x in others if x != node[at]])
    elif kind == 3:
        row = draw.choice([s for s in content["states"] if s[2]])
        edge = draw.choice(row[2])
        edge[0] = draw.choice([n for n in range(-1, len(content["states"])) if n != edge[0]])
    elif kind == 4:
        remove_state(content, draw.randrange(len(content["states"])))
    else:
        del content[draw.choice(sorted(set(content) - {"digest", "tool"}))]


def reachable(content: Content, roots: list[Any]) -> set[int]:
    """Return the numbers of the nodes of which some nodes consist."""
    work, found = list(roots), set[int]()
    while work:
        child = work.pop()
        if isinstance(child, str) and child.isdecimal() and int(child) not in found:
            found.add(int(child))
            work += content["nodes"][int(child)][1:]
    return found


@pytest.mark.slow
def test_no_random_change_of_a_file_is_accepted(tmp_path: Path, certified: Certified):
    draw, text = random.Random(3), json.dumps({"format": "cute-prove certificate 1", "kernels": [certified.content]})
    out = tmp_path / "ring.cert"
    for _ in range(200):
        at = draw.randrange(len(text))
        changed = text[:at] + draw.choice('0123456789abx," []') + text[at + draw.randrange(2) :]
        try:
            same = json.loads(changed) == json.loads(text)
        except ValueError:
            same = False
        if not same:
            out.write_text(changed)
            with pytest.raises((UsageError, RejectedError)):
                (content,) = load_certificates(out)
                certified.check(content)
