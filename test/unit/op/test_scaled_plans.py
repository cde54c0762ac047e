"""``op.ScaledGemm`` on the interpreter, bitwise equal to float64, and saved plans, printing and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from cute_dialect import op

E4, E5, E8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
FP8: dict[str, Any] = {"element": "f8E4M3FN"}
GENERATOR = np.random.default_rng(17)
CHECKS: dict[str, Any] = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync")}


def factors(m: int, n: int, k: int, of_b: Any = E4) -> tuple[np.ndarray, np.ndarray]:
    """Return small integers, contiguous along K."""
    return GENERATOR.integers(-3, 4, (m, k)).astype(E4), GENERATOR.integers(-3, 4, (n, k)).astype(of_b).T


def powers(*shape: int) -> np.ndarray:
    """Return powers of two, which keep accumulators exact."""
    return np.exp2(GENERATOR.integers(-3, 4, shape)).astype(np.float32)


def exact(a: np.ndarray, b: np.ndarray, of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
    """Return the scaled GEMM in float64, with a loop over K blocks for block scales."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    if of_a.shape[-1:] in ((), (1,)) and a.shape[1] > 128:
        return x @ y * of_a * of_b
    found = np.zeros((a.shape[0], b.shape[1]))
    for i in range(of_a.shape[1]):
        part = slice(128 * i, 128 * i + 128)
        of_columns = of_b[:, i].astype(np.float64)
        of_columns = of_columns if len(of_columns) == b.shape[1] else np.repeat(of_columns, 128)[: b.shape[1]]
        found += x[:, part] @ y[part] * of_a[:, i : i + 1].astype(np.float64) * of_columns
    return found


RECIPES = {
    "tensor": ("tensor", (1,), ()),
    "row": ("row", (40, 1), (1, 96)),
    "of both kinds": (("row", "tensor"), (40, 1), (1,)),
}


@pytest.mark.sample("row-False")
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", RECIPES)
def test_scales_of_rows_and_of_all(name: str, fast: bool) -> None:
    recipe, of_a, of_b = RECIPES[name]
    a, b = factors(40, 96, 272, E5)
    sa, sb = powers(*of_a), powers(*of_b)
    plan = op.ScaledGemm(element_A="f8E4M3FN", element_B="f8E5M2", element_D="f32", recipe=recipe, fast=fast)
    done = plan.run(a, b, sa, sb, **CHECKS)
    wanted = exact(a, b, sa, sb)
    assert np.array_equal(done.D, wanted) and np.array_equal(plan.reference(a, b, sa, sb), wanted)
    promotes = plan.explain(a, b).choice
    assert promotes is not None and promotes.config.promote != fast and not promotes.config.scaled


@pytest.mark.slow
def test_epilogues() -> None:
    a, b = factors(40, 96, 272)
    sa, sb, c = powers(40, 1), powers(1, 96), GENERATOR.integers(-9, 9, (40, 96)).astype(np.float32)
    bias = np.arange(96).astype(np.float32)
    plan = op.ScaledGemm(**FP8, element_D="f32", recipe="row")
    plan.activation = "relu"
    numbers: dict[str, Any] = {"alpha": 0.5, "beta": 2.0, "bias": bias}
    wanted = (0.5 * exact(a, b, sa, sb) + 2.0 * c + bias).clip(min=0)
    for scale in (0.25, np.full(1, 0.25, np.float32)):
        done = plan.run(a, b, sa, sb, c, scale_out=scale, device="cpu", **numbers)
        assert np.array_equal(done.D, wanted * 0.25)
    assert np.array_equal(plan.reference(a, b, sa, sb, c, scale_out=0.25, **numbers), wanted * 0.25)
    a[...] = np.nan  # A and B are not read because alpha is 0.
    assert np.array_equal(plan.run(a, b, sa, sb, c, alpha=0.0, beta=1.0, device="cpu").D, c.clip(min=0))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 272, 400), (200, 144, 128), (5, 8, 16)])
@pytest.mark.parametrize("recipe", ["block", "block1x128"])
def test_scales_of_blocks(shape: tuple[int, int, int], recipe: str) -> None:
    m, n, k = shape
    a, b = factors(m, n, k)
    blocks = -(-k // 128)
    sa, sb = np.asfortranarray(powers(m, blocks)), powers(-(-n // 128) if recipe == "block" else n, blocks)
    out, bias = np.full((m, n), np.nan, np.float32), np.arange(n).astype(np.float32)
    plan = op.ScaledGemm(**FP8, element_D="f32", recipe=recipe)
    done = plan.run(a, b, sa, sb, D=out, bias=bias, **CHECKS)
    wanted = exact(a, b, sa, sb) + bias
    assert done.D is out and np.array_equal(out, wanted)
    assert np.array_equal(plan.reference(a, b, sa, sb, bias=bias), wanted)


@pytest.mark.slow
def test_e8m0_scales() -> None:
    a, b = factors(40, 144, 272)
    sa, sb = (GENERATOR.integers(124, 131, s).astype(np.uint8).view(E8) for s in ((40, 3), (2, 3)))
    plan = op.ScaledGemm(**FP8, element_D="f32", recipe="block", element_scale="float8_e8m0fnu")
    assert np.array_equal(plan.run(a, b, sa, sb, device="cpu").D, exact(a, b, sa, sb))
    assert np.array_equal(plan.reference(a, b, sa, sb), exact(a, b, sa, sb))


@pytest.mark.slow
def test_tiles_and_texts() -> None:
    a, b = factors(40, 160, 272)
    sa, sb = powers(40, 3), powers(2, 3)
    plan = op.ScaledGemm(**FP8, recipe="block")
    assert len(plan.tile_descriptions((4096, 2112, 7168))) > 20
    plan.tile_description = {"threadblock_shape": [64, 64, 128], "stages": 4, "cluster_shape": [1, 1, 1]}
    plan.swizzling_functor = op.IdentitySwizzle4
    done = plan.run(a, b, sa, sb, device="cpu")
    assert np.array_equal(done.D, exact(a, b, sa, sb).astype(done.D.dtype)) and "64x64" in done.operation.name
    assert "scale_a" in plan.ir() and plan.construct().name == done.operation.name
    rows = op.ScaledGemm(**FP8, recipe="row")
    assert "64x64" in rows.construct({"threadblock_shape": [64, 64, 128]}).name
    assert str(rows) == "<ScaledGemm row; A f8E4M3FN, row-major; B f8E4M3FN, column-major; D bf16, row-major>"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["row", "block1x128"])
def test_a_plan_in_a_folder(recipe: str, tmp_path: Path) -> None:
    a, b = factors(40, 160, 272)
    sa, sb = (powers(40, 3), powers(160, 3)) if recipe == "block1x128" else (powers(40, 1), powers(1, 160))
    plan = op.ScaledGemm(**FP8, recipe=recipe)
    wanted = plan.run(a, b, sa, sb, device="cpu").D
    again = op.load(plan.save(tmp_path / "plan"))
    assert isinstance(again, op.ScaledGemm) and str(again) == str(plan)
    assert np.array_equal(again.run(a, b, sa, sb, device="cpu").D, wanted) and again.ptx.startswith("//")
    with pytest.raises(op.UnsupportedError, match=r"ScaledGemm.run: .* which the folder does not have"):
        again.run(a, b, sa, sb, bias=np.zeros(160, np.float32), device="cpu")


def row(**types: Any) -> op.ScaledGemm:
    given: dict[str, Any] = {**FP8, "recipe": "row", **types}
    return op.ScaledGemm(**given)


def run(**change: Any) -> Callable[[], object]:
    """Return a call of a plan with per-row scales, with ``change`` applied to its arguments."""
    a, b = factors(40, 96, 272)
    given: dict[str, Any] = {"A": a, "B": b, "scale_a": powers(40, 1), "scale_b": powers(1, 96), "device": "cpu"}
    return lambda: row().run(**{**given, **change})


def of_blocks(**change: Any) -> Callable[[], object]:
    """Return a call of a plan with block scales, with ``change`` applied to its arguments."""
    a, b = factors(40, 96, 272)
    given: dict[str, Any] = {"A": a, "B": b, "scale_a": powers(40, 3), "scale_b": powers(1, 3), "device": "cpu"}
    return lambda: op.ScaledGemm(**FP8, recipe="block").run(**{**given, **change})


REFUSED: list[tuple[type[op.OpError], str, Callable[[], object]]] = [
    (op.UnsupportedError, "ScaledGemm: recipe 'mx' is not supported; use one of tensor, row, block, block1x128, "
     "block1x32, block1x16", lambda: row(recipe="mx")),
    (op.UnsupportedError, (
        "ScaledGemm: the recipes row and block cannot be combined; either both or neither must be per block"
    ),
     lambda: row(recipe=("row", "block"))),
    (op.UnsupportedError, "ScaledGemm: fast=True is not supported with block scales; use fast=False",
     lambda: row(recipe="block", fast=True)),
    (op.DtypeError, "ScaledGemm: element_scale float8_e8m0fnu is not supported for recipe row; use f32",
     lambda: row(element_scale="float8_e8m0fnu")),
    (op.DtypeError, "ScaledGemm: A has dtype f16; it must have f8E4M3FN or f8E5M2", lambda: row(element="f16")),
    (op.DtypeError, "ScaledGemm: D has dtype f64; it must have f16, bf16, f32, f8E4M3FN or f8E5M2",
     lambda: row(element_D="f64")),
    (op.DtypeError, (
        "ScaledGemm: the element type of A is unknown; pass A, element_A or element"
    ), lambda: op.ScaledGemm(recipe="row")),
    (op.UnsupportedError, (
        "ScaledGemm: kernel_cc=80 is not supported; row scales need wgmma on sm_90, those of blocks of 32 or 16 along "
        "K (block1x32 and block1x16) sm_100, sm_103 or sm_110"
    ), lambda: row(kernel_cc=80)),
    (op.UnsupportedError, (
        "ScaledGemm: opclass simt supports f32 and f64 only, but A and B have f8E4M3FN; use opclass tensor_op"
    ),
     lambda: setattr(row(), "opclass", "simt")),
    (op.LayoutError, (
        "ScaledGemm: B is row-major, but wgmma reads 8-bit operands along K only (f8E4M3FN); make it contiguous "
        "along K, or use mm()"
    ), lambda: row(layout_B="row")),
    (op.LayoutError, "ScaledGemm: D is column-major; block scales need a row-major D",
     lambda: row(recipe="block", layout_D="column")),
    (op.EpilogueError, "ScaledGemm: epilogue_visitor is not supported with scales; use op.Gemm",
     lambda: setattr(row(), "epilogue_visitor", None)),
    (op.UnsupportedError, "ScaledGemm: a tile of 96 x 64 is not supported; M must be 64, 128, 192 or 256 "
     "and N a multiple of 8 up to 256",
     lambda: setattr(row(), "tile_description", {"threadblock_shape": [96, 64, 128]})),
    (op.UnsupportedError, (
        "ScaledGemm: tile 128x128x128_3_1x1x1 does not support row scales; use one of tile_descriptions(), and "
        "operands that are aligned to 16 bytes"
    ), lambda: row().construct(alignment_A=1)),
    (op.LayoutError, "ScaledGemm.run: A is missing; pass it to the call or to the plan", run(A=None)),
    (op.DtypeError, (
        "ScaledGemm.run: a has dtype f16; pass an array of f8E4M3FN or f8E5M2"
    ), run(A=np.ones((40, 272), np.float16))),
    (op.DtypeError, "ScaledGemm.run: A has f8E5M2, row-major; the plan needs f8E4M3FN, row-major",
     run(A=np.ones((40, 272), E5))),
    (op.DtypeError, "ScaledGemm.run: scale_a is of type NoneType; pass an array", run(scale_a=None)),
    (op.ShapeError, (
        "ScaledGemm.run: scale_a has shape (1,), but a has shape (40, 272); pass scale_a of (40, 1)"
    ), run(scale_a=powers(1))),
    (op.ShapeError, "ScaledGemm.run: B has shape (256, 96), but A has shape (40, 272); pass B of (272, N)",
     run(B=np.ones((96, 256), E4).T)),
    (op.ShapeError, "ScaledGemm.run: beta is 2.0, but C is missing; pass C or beta=0", run(beta=2.0)),
    (op.ShapeError, "ScaledGemm.run: D has shape (40, 80); it must have (40, 96)",
     run(D=np.zeros((40, 80), ml_dtypes.bfloat16))),
    (op.DeviceError, (
        'ScaledGemm.run: no GPU was found; pass device="cpu" to run on the interpreter'
    ), run(device="gpu")),
    (op.DtypeError, "ScaledGemm.run: scale_a has dtype float8_e8m0fnu; the plan needs f32",
     of_blocks(scale_a=powers(40, 3).astype(E8), scale_b=powers(1, 3).astype(E8))),
    (op.ShapeError, "ScaledGemm.run: scale_b has shape (96, 3), which does not suit the planned recipe block",
     of_blocks(scale_b=powers(96, 3))),
    (op.UnsupportedError, "ScaledGemm.run: scale_out is not supported with block scales", of_blocks(scale_out=2.0)),
    (op.AlignmentError, (
        "ScaledGemm.run: A, B has an address or row stride that is not a multiple of 16 bytes, which TMA does "
        "not support for f8E4M3FN; use mm()"
    ),
     of_blocks(A=np.ones((40, 271), E4), B=np.ones((96, 271), E4).T)),
]  # fmt: skip


@pytest.mark.sample(every=14)
@pytest.mark.parametrize(("kind", "message", "do"), REFUSED, ids=[m[:60] for _, m, _ in REFUSED])
def test_refused(
    kind: type[op.OpError], message: str, do: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cute_dialect.runtime import driver as cuda

    def none() -> None:
        raise cuda.NoGpuError("no driver")

    monkeypatch.setattr(cuda, "driver", none)
    with pytest.raises(op.OpError) as told:
        do()
    assert (type(told.value), str(told.value)) == (kind, message)


@pytest.mark.slow
def test_memory_that_is_shared() -> None:
    a, b = factors(8, 16, 128)
    memory = np.zeros(8 * 16, np.float32)
    with pytest.raises(
        op.LayoutError, match=r"ScaledGemm.run: D shares memory with scale_a; pass a separate D \(only C may be D\)"
    ):
        op.ScaledGemm(**FP8, element_D="f32", recipe="block").run(
            a, b, memory[:8].reshape(8, 1), powers(1, 1), D=memory.reshape(8, 16), device="cpu"
        )


@pytest.mark.slow
def test_scales_of_another_library() -> None:
    a, b = factors(8, 16, 128)
    with pytest.raises(op.DeviceError, match="run: scale_a is a torch array on the CPU, but A is a numpy"):
        op.ScaledGemm(**FP8, recipe="block").run(a, b, torch.ones(8, 1), powers(1, 1), device="cpu")


@pytest.mark.slow
def test_empty_problems() -> None:
    a, b = factors(0, 96, 272)
    assert row().run(a, b, powers(0, 1), powers(1, 96), device="cpu").D.shape == (0, 96)
    assert op.ScaledGemm(**FP8, recipe="block").run(a, b, powers(0, 3), powers(1, 3), device="cpu").D.shape == (0, 96)
