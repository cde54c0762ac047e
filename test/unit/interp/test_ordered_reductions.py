"""Race check of bulk reductions in an order that a flag in global memory fixes, as in the deterministic backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attention_backward
import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.kernels.attention.backward_config import default_backward_config
from cute_dialect.lang.nvgpu import cpasync
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule

ALL = frozenset({"wait", "complete", "fence before", "release", "acquire", "fence after"})
MISSING_WAIT = "cp.async.bulk.wait_group 0 (without .read) before the flag is set"
MISSING_FENCE = "a fence.proxy.async of global memory after its completion"


@cute.kernel
def add_kernel(total: cute.Tensor, turn: cute.Tensor, parts: cute.Constexpr):
    """Each block adds its number to 64 floats, after the block before it."""
    shared = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64), byte_alignment=128)
    i, block = cute.arch.thread_idx().x, cute.arch.block_idx().x
    shared[i] = cute.Float32(block + 1)
    shared[i + 32] = cute.Float32(block + 1)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_warp()
    if i == 0:
        if cute.const_expr("wait" in parts):
            sem = "acquire" if "acquire" in parts else "relaxed"
            while cute.arch.load(turn.iterator, sem=sem, scope="gpu") != block:
                pass
        if cute.const_expr("fence after" in parts):
            cute.arch.fence_proxy("async.global")
        add = cute.make_copy_atom(cpasync.CopyReduceBulkS2GOp("add"), cute.Float32)
        cute.copy(add, shared, cute.local_tile(total, (64,), (0,)))
        cute.arch.cp_async_bulk_commit_group()
        if cute.const_expr("complete" in parts):
            cute.arch.cp_async_bulk_wait_group(0)
        else:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
        if cute.const_expr("fence before" in parts):
            cute.arch.fence_proxy("async.global")
        if cute.const_expr("release" in parts):
            cute.arch.fence_acq_rel_gpu()
        cute.arch.red(turn.iterator, cute.Int32(1))
        cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def add_in_order(total: cute.Tensor, turn: cute.Tensor, parts: cute.Constexpr):
    add_kernel(total, turn, parts).launch(grid=3, block=32)


def run(parts: frozenset[str]) -> None:
    total, turn = np.zeros(64, np.float32), np.zeros(1, np.int32)
    add_in_order(total, turn, tuple(sorted(parts)), device="cpu", checks=("race",))
    assert (total == 6).all() and turn[0] == 3


def test_an_order_with_all_its_parts_has_no_race() -> None:
    run(ALL)


@pytest.mark.parametrize("fence", ["fence before", "fence after"])
def test_one_proxy_fence_on_the_way_orders_the_reductions(fence: str) -> None:
    """Two reductions are ordered if a proxy fence stands anywhere between the completion and the next reduction."""
    run(ALL - {fence})


@pytest.mark.parametrize(
    ("dropped", "missing"),
    [
        ({"complete"}, MISSING_WAIT),
        ({"fence before", "fence after"}, MISSING_FENCE),
        ({"complete", "fence before", "fence after"}, MISSING_WAIT),
    ],
    ids=lambda x: ", ".join(sorted(x)) if isinstance(x, set) else "",
)
def test_a_flag_that_does_not_cover_a_reduction_is_reported(dropped: set[str], missing: str) -> None:
    with pytest.raises(InterpError, match="is reduced twice in an order that a flag sets") as e:
        run(ALL - dropped)
    assert e.value.kind == "race" and missing in str(e.value) and "the earlier" in str(e.value)


@pytest.mark.parametrize(
    "parts",
    [
        ALL - {"wait"},  # no order
        ALL - {"wait", "complete", "fence before", "fence after"},
        ALL - {"acquire", "complete"},  # a relaxed wait orders nothing
        ALL - {"release", "complete"},
    ],
    ids=lambda x: ", ".join(sorted(ALL - x)),
)
def test_reductions_without_an_order_are_no_races(parts: frozenset[str]) -> None:
    run(parts)


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("mask", ["full", "right"])
def test_the_backward_of_attention_has_no_race(mask: str, ordered: bool) -> None:
    c = default_backward_config("bf16", 64, mask)._replace(deterministic=ordered, sms=3)
    attention_backward.dense_gradients(c, 1, 1, 1, 150, 400, 64, schedule="random", seed=1)


def _without_fences(text: str) -> str:
    return text.replace('cute_nvgpu.arch.fence_proxy_async() {space = "global"} : () -> ()', "")


def _waits_for_reads(text: str) -> str:
    return text.replace("bulk_wait_group() {n = 0 : i32}", "bulk_wait_group() {n = 0 : i32, read}", 1)


@pytest.mark.slow
@pytest.mark.parametrize(("edit", "missing"), [(_without_fences, MISSING_FENCE), (_waits_for_reads, MISSING_WAIT)])
def test_mutants_of_the_backward_of_attention_are_reported(
    edit: Callable[[str], str], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(text: object, **options: Any) -> CompiledModule:
        return compile_cute(edit(str(text)), **options)

    monkeypatch.setattr(attention_backward, "compile", compiled)
    c = default_backward_config("bf16", 64, "full")._replace(deterministic=True, sms=3)
    with pytest.raises(InterpError, match="is reduced twice in an order that a flag sets") as e:
        attention_backward.dense_gradients(c, 1, 1, 1, 150, 400, 64)
    assert missing in str(e.value)
