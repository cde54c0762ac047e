"""Plans of grouped GEMMs for sm_100: random problems equal exact results, explanations, and refused requests."""

# Arrays and plans accept values of many types.
# pyright: basic

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_dialect.op as op

CHECKS = ["race", "uninit", "strict"]
KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "f32": np.float32}


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def problem(seed: int) -> tuple[Any, dict[str, Any], np.ndarray, Any]:
    """Return a plan, the arguments of a call, its D and the expected D, of a random grouped GEMM.

    The numbers are small integers, so results are exact.
    """
    rng = np.random.default_rng(seed)
    element = str(rng.choice(["f16", "bf16", "e4m3", "f32"]))
    kind, form = KINDS[element], str(rng.choice(["m", "n", "rows"]))
    groups, k, n = int(rng.integers(1, 5)), 16 * int(rng.integers(1, 6)), 16 * int(rng.integers(1, 6))
    sizes = rng.integers(0, 70, groups)
    sizes[rng.integers(groups)] += 1
    total = int(sizes.sum()) + int(rng.integers(0, 3))
    total += -total % 16 if form == "n" else 0
    a = rng.integers(-2, 3, {"m": (total, k), "n": (groups, n, k), "rows": (groups, max(sizes), k)}[form]).astype(kind)
    b_shape = {"m": (groups, k, n), "n": (k, total), "rows": (groups, k, n)}[form]
    columns = form == "n" or element in ("e4m3", "f32") or rng.integers(2)  # B is contiguous along K
    b = rng.integers(-2, 3, b_shape).astype(kind)
    b = np.ascontiguousarray(np.swapaxes(b, -1, -2)).swapaxes(-1, -2) if columns else b
    out = np.float32 if element in ("e4m3", "f32") else kind
    d = np.full({"m": (total, n), "n": (n, total), "rows": (groups, max(sizes), n)}[form], 7, out)
    want, ends = wide(d), np.cumsum(sizes)
    alpha = float(rng.choice([1.0, -2.0]))
    for g, end in enumerate(ends):
        part = slice(end - sizes[g], end)
        if form == "m":
            want[part] = alpha * wide(a[part]) @ wide(b[g])
        elif form == "n":
            want[:, part] = alpha * wide(a[g]) @ wide(b[:, part])
        else:
            want[g, : sizes[g]] = alpha * wide(a[g, : sizes[g]]) @ wide(b[g])
    relu = bool(rng.integers(2))
    want = np.maximum(want, 0) if relu else want
    names = ["tf32" if element == "f32" else a.dtype] * 2
    types = {"element_A": names[0], "element_B": names[1], "element_C": "void", "element_D": d.dtype}
    layouts = {"layout_A": "row", "layout_B": "column" if columns else "row", "layout_C": "row", "layout_D": "row"}
    plan = op.GroupedGemm(**types, **layouts, kernel_cc=int(rng.choice([100, 103, 110])))
    if relu:
        plan.activation = "relu"
    plan.tile_description = {"threadblock_shape": [64, 64, 64 * 2 // a.itemsize]}
    how = {"rows": "lengths"}.get(form, "offs")
    return (
        plan,
        {"A": a, "B": b, "D": d, how: (sizes if form == "rows" else ends).astype(np.int32), "alpha": alpha},
        d,
        want,
    )


@pytest.mark.sample(every=40)
@pytest.mark.end_to_end
@pytest.mark.parametrize("seed", range(40))
def test_random_groups(seed: int) -> None:
    plan, given, d, want = problem(seed)
    done = plan.run(**given, device="cpu", checks=CHECKS)
    assert np.array_equal(wide(d), want)
    assert len(done.kernels) == 1 and f"-sm{plan.chip}-" in done.kernels[0] and "-grouped-" in done.kernels[0]


def test_explanation() -> None:
    plan = op.GroupedGemm(element="bf16", layout="row", kernel_cc=103)
    a, b = np.zeros((4096, 4096), ml_dtypes.bfloat16), np.zeros((8, 4096, 4096), ml_dtypes.bfloat16)
    found = plan.explain(a, b, offs=np.zeros(8, np.int32))
    assert found.status == "assembled and interpreted, never run on the chip"
    assert found.kernel.endswith("-sm103-grouped-m") and "GroupedGemm on sm_103a: 8 groups of rows" in str(found)
    assert "512 of 512 columns of tensor memory" in str(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda plan, a, b: plan.run([a], [b[0]]),
            "kernels of sm_100 do not read arrays of matrices; pass one matrix and its groups (offs, lengths or "
            "row_groups), or use kernel_cc=80",
        ),
        (
            lambda plan, a, b: plan.run(a, a, offs=[16, 64], device="cpu"),
            "groups of steps of K are not supported on sm_100; use kernel_cc=90, or one call for each group",
        ),
        (
            lambda plan, a, b: plan.requested().check_gpu((9, 0), "GroupedGemm.run"),
            "GroupedGemm.run: tcgen05 kernels need sm_100, but the GPU is sm_90; use kernel_cc=90",
        ),
        (
            lambda plan, a, b: plan.requested().check_gpu((10, 3), "GroupedGemm.run"),
            "the GPU is sm_103; use kernel_cc=103",
        ),
    ],
    ids=["lists", "groups along K", "on sm_90", "on sm_103"],
)
def test_refused(call: Any, message: str) -> None:
    plan = op.GroupedGemm(element="f16", layout="row", kernel_cc=100, element_C="void")
    a, b = np.zeros((64, 64), np.float16), np.zeros((3, 64, 64), np.float16)
    with pytest.raises(op.UnsupportedError) as caught:
        call(plan, a, b)
    assert message in str(caught.value)


def test_saved_settings() -> None:
    plan = op.GroupedGemm(element="f16", layout="row", kernel_cc=110)
    plan.tile_description = {"threadblock_shape": [128, 128, 64]}
    again = op.GroupedGemm.of_settings(plan.settings())
    assert again.chip == 110 and again.tile_description == plan.tile_description
