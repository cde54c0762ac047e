"""tcgen05 and tensor memory: the Blackwell kernels are proved, and mutants that the interpreter catches are not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import cast

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.prove.certificate import load_certificates, save_certificates
from cute_dialect.prove.program import find_kernel
from cute_dialect.prove.proof import SCHEDULES, Proof, prove
from cute_dialect.prove.recheck import recheck
from cute_dialect.prove.tensor_form import check_loads, name_of
from cute_dialect.prove.verdict import NotProved
from cute_dialect.runtime.launch import CompiledModule

sys.path.insert(0, str(Path(__file__).parents[2] / "oracle"))

from mutations import mutated, mutations

EXAMPLES = Path(__file__).parents[2] / "examples"
TILE, GEMM, SCALED = "tile_sm100.mlir", "gemm_sm100.mlir", "tile_sm100_mxf8.mlir"
KERNELS = {TILE: "tile", GEMM: "gemm", SCALED: "tile"}
Edit = tuple[str, Callable[[ModuleOp], ModuleOp]]


@cache
def compiled(file: str) -> CompiledModule:
    return compile_cute(EXAMPLES / file, emit="base")


def lowered(file: str) -> ModuleOp:
    return cast(ModuleOp, compiled(file).lowered(KERNELS[file]))


def arguments(file: str, k: int) -> tuple[object, ...]:
    """Return operands of ones, and a result to fill."""
    if file == TILE:
        return np.ones((128, k), np.float16), np.ones((32, k), np.float16), np.zeros((128, 32), np.float32)
    bf16 = ml_dtypes.bfloat16
    return np.ones((128, k), bf16), np.ones((256, k), bf16), np.zeros((128, 256), bf16)


def replays(file: str, module: ModuleOp) -> list[tuple[str, Callable[[str], object]]]:
    """Return runs of a module with few and many steps of K."""

    def run(k: int, schedule: str) -> object:
        call = CompiledModule(compiled(file).artifact, lambda _: module).kernel("launch")
        return call(*arguments(file, k), device="cpu", checks=("race", "uninit"), schedule=schedule, seed=1)

    return [(f"K = {k}", lambda schedule, k=k: run(k, schedule)) for k in (64, 192, 448)]


def without(file: str, part: str, nth: int) -> ModuleOp:
    """Return the module of a kernel without the n-th tcgen05 instruction of a name."""
    module = lowered(file).clone()
    found = [op for op in find_kernel(module, KERNELS[file]).walk() if name_of(op).startswith(part)]
    found[nth].detach()
    found[nth].erase()
    return module


@pytest.mark.parametrize("file", KERNELS)
def test_a_blackwell_kernel_is_proved(file: str, tmp_path: Path):
    module, name = lowered(file), KERNELS[file]
    proof = prove(module, name, certify=True)
    assert proof, str(proof)
    assert proof.assumed == ("k_tiles >= 1",) and "tcgen05 operations" in proof.checked and proof.states < 30
    assert proof.certificate is not None, proof.uncertified
    save_certificates([proof.certificate], path := tmp_path / "kernel.cert")
    (content,) = load_certificates(path)
    assert recheck(module, find_kernel(module, name), content) >= proof.states


REFUTED = {
    "the commit of a stage": ("commit", 0),
    "the commit of the accumulator": ("commit", 1),
    "the deallocation": ("dealloc", 0),
}
LEFT_OUT = {
    **REFUTED,
    "the fence after the wait for a stage": ("fence.after", 0),
    "the fence after the wait for the accumulator": ("fence.after", -1),
    "the wait for loads": ("wait.ld", 0),
}


@pytest.mark.parametrize("title", LEFT_OUT)
def test_a_missing_instruction_is_not_proved(title: str):
    part, nth = LEFT_OUT[title]
    module = without(TILE, part, nth)
    proof = prove(module, "tile", replays(TILE, module) if title in REFUTED else ())
    assert proof.verdict == ("refuted" if title in REFUTED else "not proved"), str(proof)


def test_registers_that_are_used_before_the_wait_are_named():
    with pytest.raises(NotProved, match=r"before a tcgen05\.wait::ld"):
        check_loads(find_kernel(without(TILE, "wait.ld", 0), "tile").regions[0])


def edits(file: str) -> Iterator[Edit]:
    """Yield mutants: each tcgen05 instruction without results dropped or moved, and those of `mutations`."""
    name = KERNELS[file]
    kernel = find_kernel(lowered(file), name)

    def moved(place: int, step: int) -> Callable[[ModuleOp], ModuleOp]:
        def edit(module: ModuleOp) -> ModuleOp:
            out = module.clone()
            op = list(find_kernel(out, name).walk())[place]
            block = op.parent
            assert block is not None
            ops = [o for o in block.ops if o is op or name_of(o) or o.name.startswith(("nvvm.", "scf.", "llvm.load"))]
            at = ops.index(op) + step
            op.detach()
            if step and 0 <= at < len(ops):
                other = ops[at]
                (block.insert_op_after if step > 0 else block.insert_op_before)(op, other)
                found = list(block.ops)
                defined = [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner.parent is block]
                if any(found.index(o) > found.index(op) for o in defined):
                    raise ValueError("an operand is defined after its use")
            return out

        return edit

    for place, op in enumerate(kernel.walk()):
        if name_of(op) and not op.results:
            for step in (-1, 0, 1):
                yield f"{name_of(op)} (op {place}) {('earlier', 'dropped', 'later')[step + 1]}", moved(place, step)
    for m in mutations(kernel):
        if m.kind in ("drop", "move", "weaken"):
            yield f"{m.kind} {m.what} (op {m.place})", lambda module, m=m: mutated(module, name, m)


def report(file: str, module: ModuleOp) -> str:
    """Return the first report of the interpreter about a module, empty if there is none."""
    for name, run in replays(file, module):
        for schedule in SCHEDULES:
            try:
                run(schedule)
            except InterpError as e:
                return f"{name}, {schedule}: {str(e).splitlines()[0]}"
    return ""


@pytest.mark.slow
def test_no_mutant_that_the_interpreter_catches_is_proved():
    file = TILE
    verdicts, wrong = dict[str, list[str]](), list[str]()
    for title, edit in edits(file):
        try:
            module = edit(lowered(file))
            module.verify()
        except (ValueError, VerifyException):
            continue  # The move breaks the module.
        proof: Proof = prove(module, KERNELS[file], seconds=3)
        verdicts.setdefault(proof.verdict, []).append(title)
        if proof:
            wrong += [f"{title}: {said}"] if (said := report(file, module)) else []
    assert not wrong, "\n".join(wrong)
    assert len(verdicts["not proved"]) > 15 and len(verdicts["proved"]) > 2, verdicts
