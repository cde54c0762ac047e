"""The protocol of the Hopper GEMM: proved for all K tiles and tiles, and planted defects refuted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.prove.proof import prove
from cute_dialect.runtime.launch import CompiledModule

sys.path.insert(0, str(Path(__file__).parents[2] / "oracle"))

from mutations import Mutation, find, mutated, mutations

pytestmark = pytest.mark.slow
CONFIG = GemmConfig(tile=(64, 128, 64), stages=2, cluster_m=1, deferred=False, sms=2)
HOST = "launch"
DEFECTS: dict[str, tuple[str, str, int]] = {
    "a release in the loop is missing": ("drop", "nvvm.mbarrier.arrive", 0),
    "the producer waits for the wrong phase": ("weaken", "waits for the other phase", 0),
    "one arrival more is expected": ("weaken", "one arrival more expected", 0),
    "no bytes are expected": ("drop", "nvvm.mbarrier.arrive.expect_tx", 1),
    "16 bytes too few are expected": ("weaken", "16 bytes fewer expected", 1),
    "a stage is released one wgmma too early": ("weaken", "wait.group.sync.aligned leaves one more", 0),
    "the fence between the stores and the TMA store is missing": ("drop", "nvvm.fence.proxy", 0),
    "the wgmma.fence is missing": ("drop", "nvvm.wgmma.fence.aligned", 0),
}
"""Title -> kind of a mutation, a part of its description, and which of those with both."""


@cache
def compiled() -> tuple[CompiledModule, str]:
    module = compile_cute(gemm_text(CONFIG), emit="base", filename="gemm.mlir")
    return module, module.kernel(HOST).target.launches[0].kernel["name"]


def lowered() -> ModuleOp:
    module, kernel = compiled()
    return cast(ModuleOp, module.lowered(kernel))


def replays(module: ModuleOp) -> list[tuple[str, Callable[[str], object]]]:
    """Return runs of a module with 3 to 5 tiles of K."""

    def run(k: int, schedule: str) -> object:
        call = CompiledModule(compiled()[0].artifact, lambda _: module).kernel(HOST)
        a, b, c = (np.ones(s, np.float16) for s in ((64, k), (128, k), (64, 128)))
        return call(a, b, c, device="cpu", checks=("race", "uninit"), schedule=schedule, seed=1)

    return [(f"M, N, K = 64, 128, {k}", lambda schedule, k=k: run(k, schedule)) for k in (192, 256, 320)]


def defect(title: str) -> Mutation:
    kind, what, nth = DEFECTS[title]
    return [m for m in mutations(find(lowered(), compiled()[1])) if m.kind == kind and what in m.what][nth]


def test_the_gemm_is_proved():
    proof = prove(lowered(), compiled()[1], seconds=300)
    assert proof, str(proof)
    # Each block has a tile: it issues the first loads before it looks for one.
    tiles = "iterations of ((raster * raster) - ctaid.x) by nctaid.x >= 1"
    assert proof.assumed == ("k_tiles >= 1", tiles) and proof.states < 150


@pytest.mark.parametrize(
    "config",
    [
        CONFIG._replace(tile=(128, 128, 64)),
        CONFIG._replace(schedule="pingpong"),
        CONFIG._replace(schedule="pingpong", stages=3),
        CONFIG._replace(deferred=True),
        CONFIG._replace(cluster_m=2, sms=4),
    ],
    ids=["two consumers", "ping-pong", "ping-pong, three stages", "deferred stores", "cluster of two"],
)
def test_other_schedules_are_proved(config: GemmConfig):
    module = compile_cute(gemm_text(config), emit="base", filename="gemm.mlir")
    name = module.kernel(HOST).target.launches[0].kernel["name"]
    proof = prove(cast(ModuleOp, module.lowered(name)), name, seconds=300)
    assert proof, str(proof)
    assert "k_tiles >= 1" in proof.assumed


@pytest.mark.parametrize("title", DEFECTS)
def test_a_planted_defect_is_refuted(title: str):
    module = mutated(lowered(), compiled()[1], defect(title))
    proof = prove(module, compiled()[1], replays(module), seconds=300)
    assert proof.verdict == "refuted", str(proof)
    assert "gemm.mlir:" in proof.cure
