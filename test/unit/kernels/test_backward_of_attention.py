"""Kernels of the backward of attention on the interpreter, compared with float64."""

from __future__ import annotations

from typing import Any

import pytest
from attention_backward import dense, dense_gradients, errors, packed

from cute_dialect.kernels.attention.backward import backward_launches, backward_text
from cute_dialect.kernels.attention.backward_config import (
    BACKWARD_HEADS,
    BackwardConfig,
    backward_config_named,
    default_backward_config,
)
from cute_dialect.pipelines import compile

LIMITS = {"bf16": 1e-2, "f16": 1.25e-3}
"""Largest error of a gradient relative to its largest value."""

CASES: list[tuple[str, tuple[int, ...], tuple[int, int], dict[str, Any]]] = [
    # configuration; batch, heads, key heads, queries, keys, head size; window; options of the interpreter
    ("attention-backward-bf16-64-right-64x64", (1, 2, 1, 70, 80, 64), (0, 0), {}),
    ("attention-backward-bf16-64-right-128x128", (1, 2, 1, 20, 30, 64), (0, 0), {}),
    ("attention-backward-bf16-128-full-64x128", (1, 1, 1, 70, 100, 128), (0, 0), {"schedule": "adversarial"}),
    ("attention-backward-bf16-128-right-64x128-sms1", (1, 2, 1, 130, 140, 128), (0, 0), {"schedule": "adversarial"}),
    ("attention-backward-bf16-128-right-64x128-l0-sms1", (2, 1, 1, 150, 140, 120), (0, 0), {"schedule": "random"}),
    ("attention-backward-bf16-128-right-64x128-a2-l0-sms1", (1, 1, 1, 150, 140, 128), (0, 0), {"schedule": "reverse"}),
    ("attention-backward-bf16-64-right-end-dlse-128x128-sms3", (2, 2, 2, 70, 200, 64), (0, 0), {"schedule": "random"}),
    ("attention-backward-f16-64-full-128x128", (1, 1, 1, 129, 300, 40), (0, 0), {}),
    ("attention-backward-bf16-128-both-64x128-x1-sms2", (1, 2, 2, 200, 190, 96), (30, 20), {"schedule": "random"}),
    ("attention-backward-bf16-128-left-64x128-sms2", (1, 1, 1, 200, 330, 128), (30, 20), {}),
    (
        "attention-backward-bf16-64-right-end-ordered-128x128-sms3",
        (2, 2, 2, 200, 900, 64),
        (0, 0),
        {"schedule": "random"},
    ),
    ("attention-backward-bf16-64-both-ordered-128x128-sms3", (1, 1, 1, 400, 500, 64), (100, 70), {}),
    (
        "attention-backward-bf16-64-left-ordered-128x128-sms2",
        (1, 1, 1, 400, 700, 64),
        (100, 70),
        {"schedule": "reverse"},
    ),
    ("attention-backward-bf16-256-full-64x64-sms3", (1, 1, 1, 70, 100, 256), (0, 0), {"schedule": "random"}),
    ("attention-backward-f16-256-right-64x64-sms1", (1, 2, 1, 70, 130, 192), (0, 0), {"schedule": "adversarial"}),
    ("attention-backward-bf16-128-right-end-64x128", (1, 1, 1, 200, 30, 128), (0, 0), {}),
    ("attention-backward-bf16-64-right-128x128-a1-sms1", (1, 2, 1, 330, 340, 64), (0, 0), {"schedule": "adversarial"}),
    ("attention-backward-bf16-64-full-split-128x128", (1, 3, 1, 140, 150, 64), (0, 0), {"parts": 4}),
    (
        "attention-backward-bf16-128-right-end-split-64x128-sms2",
        (1, 3, 1, 150, 200, 120),
        (0, 0),
        {"parts": 4, "schedule": "random"},
    ),
    (
        "attention-backward-f16-256-right-split-64x64-sms3",
        (1, 2, 1, 70, 130, 192),
        (0, 0),
        {"parts": 2, "schedule": "adversarial"},
    ),
    (
        "attention-backward-bf16-64-both-dlse-split-128x128-sms3",
        (2, 2, 2, 150, 140, 64),
        (30, 20),
        {"parts": 2, "schedule": "reverse"},
    ),
    ("attention-backward-bf16-96-full-64x128-sms3", (1, 1, 1, 70, 100, 96), (0, 0), {"schedule": "random"}),
    ("attention-backward-f16-192-right-64x64-sms1", (1, 2, 1, 70, 130, 192), (0, 0), {"schedule": "adversarial"}),
    (
        "attention-backward-bf16-96-right-end-split-64x128",
        (1, 2, 1, 70, 140, 80),
        (0, 0),
        {"parts": 2, "schedule": "reverse"},
    ),
    ("attention-backward-bf16-192-both-dlse-split-64x64-sms3", (1, 1, 1, 130, 70, 136), (30, 20), {"parts": 2}),
    ("attention-backward-f16-256-right-64x64-h0-sms1", (1, 2, 1, 70, 130, 192), (0, 0), {"schedule": "adversarial"}),
    ("attention-backward-f16-192-right-64x64-a2-sms1", (1, 2, 1, 130, 130, 192), (0, 0), {"schedule": "random"}),
    ("attention-backward-bf16-256-left-64x64-a1-sms1", (1, 2, 1, 130, 190, 256), (40, 0), {"schedule": "reverse"}),
    # V has a head of another size.
    ("attention-backward-bf16-192-right-64x64-sms1-v128", (1, 2, 1, 130, 140, 192), (0, 0), {"size_v": 128}),
    (
        "attention-backward-f16-192-full-split-64x64-sms3-v128",
        (1, 2, 1, 70, 100, 184),
        (0, 0),
        {"size_v": 120, "parts": 2, "schedule": "random"},
    ),
    (
        "attention-backward-bf16-256-both-dlse-split-64x64-v64",
        (1, 1, 1, 70, 130, 256),
        (30, 20),
        {"size_v": 64, "parts": 2, "schedule": "adversarial"},
    ),
    ("attention-backward-f16-192-right-64x64-h0-sms1-v64", (1, 1, 1, 70, 70, 192), (0, 0), {"size_v": 40}),
    ("attention-backward-f16-64-right-64x64-a0-h1-sms1", (1, 2, 1, 70, 130, 64), (0, 0), {"schedule": "adversarial"}),
    ("attention-backward-bf16-128-both-dlse-split-64x64-h1-l0-sms3", (1, 1, 1, 130, 70, 72), (30, 20), {"parts": 2}),
    ("attention-backward-f16-64-right-64x128-sms1", (1, 2, 1, 130, 130, 64), (0, 0), {"schedule": "random"}),
    # More slices than steps.
    ("attention-backward-bf16-64-left-split-128x128-sms2", (1, 2, 1, 200, 330, 64), (30, 20), {"parts": 5}),
]


@pytest.mark.end_to_end
@pytest.mark.sample(*[CASES[0][0]])
@pytest.mark.parametrize(("name", "shape", "window", "options"), CASES, ids=[case[0] for case in CASES])
def test_gradients(name: str, shape: Any, window: Any, options: Any) -> None:
    c = backward_config_named(name)
    found = dense(c, *shape, window=window, seed=1, **options)
    assert max(found) < LIMITS[c.element], found


@pytest.mark.slow
@pytest.mark.parametrize("mask", ["full", "right"])
def test_the_order_of_additions_is_fixed(mask: str) -> None:
    """Without an order, dq depends on the schedule."""
    for ordered in (False, True):
        c = default_backward_config("bf16", 64, mask)._replace(deterministic=ordered, sms=3)
        ways = [
            {"schedule": schedule, "seed": seed} for schedule, seed in (("random", 1), ("reverse", 0), ("random", 2))
        ]
        runs = [dense_gradients(c, 1, 2, 1, 270, 700, 64, **way) for way in ways]
        assert max(errors(*runs[0])) < LIMITS["bf16"]
        equal = all([found[0].tobytes() == runs[0][0][0].tobytes() for found, _ in runs])
        assert equal if ordered else mask == "right" or not equal  # A causal mask leaves few additions to reorder.


LENGTHS = [(70, 100), (0, 30), (150, 137), (5, 0), (3, 4)]

PACKED: list[tuple[str, list[tuple[int, int]], tuple[int, int, int], dict[str, Any]]] = [
    ("attention-backward-bf16-128-full-packed-64x128-sms2", LENGTHS, (2, 1, 128), {"schedule": "random"}),
    ("attention-backward-bf16-64-right-end-packed-dlse-128x128-sms2", LENGTHS, (1, 1, 64), {"schedule": "adversarial"}),
    ("attention-backward-bf16-64-full-packed-ordered-128x128-sms2", LENGTHS, (1, 1, 64), {}),
    ("attention-backward-bf16-96-full-packed-64x128-sms2", [(70, 100), (5, 4)], (1, 1, 96), {"schedule": "random"}),
    ("attention-backward-f16-192-right-packed-ordered-64x64-sms2", [(70, 130), (5, 4)], (1, 1, 192), {}),
    ("attention-backward-f16-64-both-packed-128x128", LENGTHS, (1, 1, 40), {}),
    (
        "attention-backward-bf16-64-right-end-packed-split-128x128-sms2",
        LENGTHS,
        (2, 1, 64),
        {"parts": 2, "schedule": "adversarial"},
    ),
    (
        "attention-backward-f16-128-full-packed-split-64x128-sms3",
        [(70, 100), (0, 30), (5, 0)],
        (3, 1, 96),
        {"parts": 4},
    ),
    ("attention-backward-f16-64-right-packed-128x128", [(20, 30), (0, 5), (3, 0)], (1, 1, 64), {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lengths", "heads", "options"), PACKED, ids=[case[0] for case in PACKED])
def test_gradients_of_packed_sequences(name: str, lengths: Any, heads: Any, options: Any) -> None:
    c = backward_config_named(name)
    found = packed(c, lengths, *heads, window=(20, 10) if c.mask == "both" else (0, 0), seed=3, **options)
    assert max(found) < LIMITS[c.element], found


@pytest.mark.slow
@pytest.mark.parametrize("head", BACKWARD_HEADS)
@pytest.mark.parametrize("mask", ["full", "right"])
def test_wgmma_is_not_serialized(head: int, mask: str) -> None:
    c = default_backward_config("bf16", head, mask)._replace(head_v=128 if head == 192 else 0)
    report = compile(backward_text(c), filename=f"{c.name}.mlir").report
    assert "C75" not in report, report


def test_names_of_configurations() -> None:
    default = BackwardConfig()
    others = [default._replace(**{field: other}) for field, other in (
        ("element", "f16"), ("head", 64), ("mask", "left"), ("from_end", True), ("packed", True), ("dlse", True),
        ("deterministic", True), ("split", True), ("tile_m", 128), ("q_stages", 3), ("grad_stages", 1),
        ("ds_stages", 1), ("dq_parts", 2), ("ahead", 1), ("halves", True), ("late", True), ("pairs", False), ("sms", 1),
        ("functions", "sv0123456789ab"), ("block_m", 128), ("block_n", 256), ("head_v", 64), ("dropout", True),
        ("lean", True), ("dynamic", True),
    )]  # fmt: skip
    assert {next(f for f in default._fields if getattr(default, f) != getattr(c, f)) for c in others} == {
        *default._fields
    } - {"tile_n"}
    assert len({c.name for c in (default, *others)}) == 1 + len(others)
    assert all([backward_config_named(c.name) == c for c in others])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"element": "f32"}, "use 'bf16' or 'f16'"), ({"mask": "no"}, "mask is 'no'"),
        ({"head": 80}, "head is 80; use one of 64, 96, 128, 192, 256"),
        ({"tile_n": 96}, "the tile is 64x96; use 64x64 or 64x128 for a head of 128"), ({"q_stages": 1}, "at least 2"),
        ({"grad_stages": 5}, "shared memory"),
        ({"split": True, "deterministic": True}, "needs split=False"),
        ({"dynamic": True, "deterministic": True}, "starts tiles in any order"), ({"dynamic": True}, "block mask"),
        ({"tile_m": 128}, "the tile is 128x128"), ({"head": 96, "tile_n": 64}, "the tile is 64x64"),
        ({"head": 192}, "the tile is 64x128; use 64x64 for a head of 192"), ({"halves": True}, "needs tile_n=64"),
        ({"head_v": 64}, "head_v is 64 and head is 128"),
    ],
)  # fmt: skip
def test_configurations_that_no_kernel_supports(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BackwardConfig()._replace(**fields).check()


def test_launches_name_their_operands() -> None:
    c = BackwardConfig(packed=True, dlse=True)
    first, main, last = (set(launch.operands) for launch in backward_launches(c))
    assert first & main == {"dout", "stats", "dq_sum", "of_queries", "queries"}
    assert main & last == {"dq_sum", "of_queries", "queries", "scale"}
    first, main, last = (set(launch.operands) for launch in backward_launches(c._replace(split=True)))
    assert first & main & last == {"dq_sum", "kv_sum", "of_queries", "queries"}
    assert {"dk", "dv"} <= last - main
