"""Mutations of the Hopper GEMM in cute IR: errors are detected after lowering and name the line of the cute text.

Each mutation removes or edits the n-th line of the generated file that matches a pattern.  The kernel computes four
tiles on one cluster of two blocks, so that it reuses the pipeline stages and the staging buffers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pytest

from cute_dialect.interp import InterpError
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.pipelines import compile as compile_cute

ARCH = r"cute_nvgpu\.arch\."


class Broken(NamedTuple):
    """A mutation of match `nth` of the pattern `line`. `new` is (old text, new text), or None to delete the line."""

    name: str
    line: str
    nth: int
    new: tuple[str, str] | None
    kind: str
    message: str


CORPUS = [
    Broken("no mbarrier fence", ARCH + "fence_mbarrier_init", 0, None, "race", "initialization is not visible"),
    Broken(
        "producer does not wait",
        ARCH + "mbarrier_wait",
        0,
        None,
        "race|sync",
        "write-after-|arrivals with only|not ordered after",
    ),
    Broken(
        "consumer does not wait", ARCH + "mbarrier_wait", 2, None, "race|deadlock", "race on shared|arrivals missing"
    ),
    Broken("no wgmma fence", ARCH + "wgmma_fence", 0, None, "wgmma", "missing wgmma.fence"),
    Broken("no commit", ARCH + "wgmma_commit_group", 1, None, "race|wgmma", "wgmma"),
    Broken("no wait in the loop", ARCH + "wgmma_wait_group", 0, None, "race", "missing wgmma.wait_group"),
    Broken(
        "waits for too little", ARCH + "wgmma_wait_group.*n = 0", 0, ("n = 0", "n = 1"), "wgmma", "before its wgmma"
    ),
    Broken("stage not released", ARCH + "mbarrier_arrive_cluster", 0, None, "deadlock", "arrivals missing"),
    Broken(
        "too few releases expected", ARCH + "mbarrier_init.*c2_i32", 0, ("%c2_i32", "%c1_i32"), "race|sync|deadlock", ""
    ),
    Broken(
        "too many releases expected",
        ARCH + "mbarrier_init.*c2_i32",
        0,
        ("%c2_i32", "%c3_i32"),
        "deadlock",
        "of 3 arrivals",
    ),
    Broken("too few bytes expected", "arith.constant 24576", 0, (" 24576", " 16384"), "sync", "raise expect_tx from"),
    Broken(
        "too many bytes expected", "arith.constant 24576", 0, (" 24576", " 32768"), "deadlock", "8192 bytes missing"
    ),
    Broken("staging overwritten", ARCH + "bulk_wait_group.*n = 1", 0, None, "race", "bulk.wait_group"),
    Broken("one thread knows of the free buffer", ARCH + "syncwarp", 0, None, "race", "race on shared memory"),
    Broken("no proxy fence", ARCH + "fence_proxy_async", 0, None, "race", "missing fence.proxy.async"),
    Broken("store before the warp has written", ARCH + "syncwarp", 1, None, "race", "read-after-write race"),
    Broken("stores not committed", ARCH + "bulk_commit_group", 0, None, "race", "bulk"),
    Broken("stores not waited for", ARCH + "bulk_wait_group.*n = 0", 0, None, "race", "may still read shared memory"),
]


@lru_cache(maxsize=1)
def original() -> str:
    return gemm_text(GemmConfig(tile=(64, 128, 64), stages=2, cluster_m=2, deferred=False, sms=2))


def run(text: str, schedule: str = "round-robin") -> bool:
    """Return True if the result is right."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (256, 320)).astype(np.float16) for _ in range(2))
    c = np.full((256, 256), np.nan, np.float16)
    module = compile_cute(text, emit="base")
    report = module.kernel("launch")(a, b, c, device="cpu", checks=["race", "oob", "uninit", "sync"], schedule=schedule)
    assert report is not None and report.blocks == 2
    return np.array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).T)


def edited(text: str, b: Broken) -> str:
    """Return the text with the mutation applied."""
    lines = text.split("\n")
    found = [i for i, line in enumerate(lines) if re.search(b.line, line)]
    assert found, f"the kernel has changed: no line matches {b.line}"
    at = found[b.nth]
    if b.new is None:
        lines[at] = ""
    else:
        assert b.new[0] in lines[at]
        lines[at] = lines[at].replace(*b.new)
    return "\n".join(lines)


@pytest.mark.end_to_end
@pytest.mark.sample(every=9)
@pytest.mark.parametrize("b", CORPUS, ids=lambda b: b.name)
def test_broken(b: Broken) -> None:
    text = edited(original(), b)
    with pytest.raises(InterpError) as e:
        run(text)
    error = e.value
    assert re.fullmatch(b.kind, error.kind), error
    assert re.search(b.message, str(error)), error
    place = re.search(r":(\d+):\d+$", error.location)
    assert place and int(place[1]) <= text.count("\n") + 1, error


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
def test_correct_kernels_pass(schedule: str) -> None:
    assert run(original(), schedule)


# -- split-K blocks that synchronize through a counter in global memory ------------------------------------------------

SPLIT = [
    Broken("no release fence", ARCH + "fence_acq_rel", 0, None, "race", "in another block"),
    Broken("fence of the block", ARCH + "fence_acq_rel", 0, ('"gpu"', '"cta"'), "race", "in another block"),
    Broken("not all have written", ARCH + r"named_barrier\(%c1_i32", 0, None, "race|sync", "in another block"),
    Broken("one thread has waited", ARCH + r"named_barrier\(%c1_i32", 1, None, "race|sync", "in another block"),
]


@lru_cache(maxsize=1)
def split() -> str:
    base = SplitConfig().base._replace(cluster_n=1, tile=(64, 128, 64), stages=2)
    return gemm_text(SplitConfig(base, 2))


def run_split(text: str, schedule: str = "round-robin") -> bool:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (n, 128)).astype(np.float16) for n in (64, 128))
    c = np.full((64, 128), np.nan, np.float16)
    partial, counts = np.full(2 * 64 * 128, np.nan, np.float32), np.zeros(2, np.int32)
    launch = compile_cute(text, emit="base").kernel("launch")
    launch(a, b, c, partial, counts, device="cpu", checks=["race", "uninit"], schedule=schedule)
    return np.array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.slow
@pytest.mark.parametrize("b", SPLIT, ids=lambda b: b.name)
def test_broken_split(b: Broken) -> None:
    with pytest.raises(InterpError) as e:
        run_split(edited(split(), b))
    assert re.fullmatch(b.kind, e.value.kind) and re.search(b.message, str(e.value)), e.value


@pytest.mark.sample("round-robin")
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
def test_correct_split_passes(schedule: str) -> None:
    assert run_split(split(), schedule)
