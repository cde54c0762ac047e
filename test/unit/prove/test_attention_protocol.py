"""The protocol of Hopper attention: proved for all sizes, and planted defects refuted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import cast

import pytest
from mutant_kernels import BYTES, PLAIN, Subject, attention_subject
from mutations import find, mutated, mutations
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.prove.certificate import load_certificates, save_certificates
from cute_dialect.prove.program import find_kernel
from cute_dialect.prove.proof import Proof, prove
from cute_dialect.prove.recheck import recheck
from cute_dialect.runtime.launch import CompiledModule

pytestmark = pytest.mark.slow
KERNEL = "attention"
SMALL = PLAIN._replace(tile_m=64, q_stages=1, pingpong=False)
"""One consumer warpgroup, one tile of Q, two stages of K and of V."""
DEFECTS: dict[str, tuple[str, str, int]] = {
    "the producer waits for the wrong phase": ("weaken", "waits for the other phase", 0),
    "a stage of K is not released": ("drop", "nvvm.mbarrier.arrive", 0),
    "one arrival more is expected": ("weaken", "one arrival more expected", 0),
    "16 bytes too few are expected": ("weaken", "16 bytes fewer expected", 1),
    "the wgmma.fence is missing": ("drop", "nvvm.wgmma.fence.aligned", 0),
    "the scores are read one wgmma too early": ("weaken", "leaves one more", 0),
}
"""Title -> kind of a mutation, a part of its description, and which of those with both."""


@cache
def compiled(config: AttentionConfig) -> CompiledModule:
    return compile_cute(attention_text(config), emit="base", filename="attention.mlir")


def proof_of(config: AttentionConfig, *, certify: bool = False) -> Proof:
    return prove(cast(ModuleOp, compiled(config).lowered(KERNEL)), KERNEL, seconds=300, certify=certify)


@pytest.mark.parametrize("mask", ["full", "right"])
def test_attention_is_proved(mask: str):
    proof = proof_of(SMALL._replace(mask=mask))
    assert proof, str(proof)
    assert proof.states < 500


def test_a_certificate_of_attention_is_accepted(tmp_path: Path):
    proof = proof_of(SMALL, certify=True)
    assert proof.certificate is not None, proof.uncertified
    save_certificates([proof.certificate], path := tmp_path / "attention.cert")
    module = cast(ModuleOp, compiled(SMALL).lowered(KERNEL))
    (content,) = load_certificates(path)
    assert recheck(module, find_kernel(module, KERNEL), content) >= proof.states


def test_attention_of_8_bit_floats_is_proved():
    proof = proof_of(BYTES._replace(tile_m=64, q_stages=1, pingpong=False))
    assert proof, str(proof)
    assert proof.states < 400


@cache
def subject() -> Subject:
    return attention_subject("attention", SMALL, 150, 200)


@pytest.mark.parametrize("title", DEFECTS)
def test_a_planted_defect_is_refuted(title: str):
    module = cast(ModuleOp, compiled(SMALL).lowered(KERNEL))
    kind, what, nth = DEFECTS[title]
    mutation = [m for m in mutations(find(module, KERNEL)) if m.kind == kind and what in m.what][nth]
    broken = mutated(module, KERNEL, mutation)

    def run(schedule: str) -> object:
        call = CompiledModule(compiled(SMALL).artifact, lambda _: broken).kernel(subject().kernel)
        return call(*subject().problems[0](), device="cpu", checks=("race", "uninit"), schedule=schedule, seed=1)

    replays: list[tuple[str, Callable[[str], object]]] = [("150 queries, 200 keys", run)]
    proof = prove(broken, KERNEL, replays, seconds=300)
    assert proof.verdict == "refuted", str(proof)
