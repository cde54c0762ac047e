"""Numeric functions of the language on the GPU: equal to the interpreter bitwise or within a few ulps."""

from __future__ import annotations

from typing import Any

import numpy as np

import cute_dialect.lang as cute

THREADS = 128


@cute.kernel
def exact(x: cute.Tensor, n: cute.Tensor, floats: cute.Tensor, integers: cute.Tensor) -> None:
    i, _, _ = cute.arch.thread_idx()
    a, b = x[i], n[i]
    floats[i, 0] = cute.Float32(cute.Float8E4M3FN(a))
    floats[i, 1] = cute.Float32(cute.Float8E5M2(a))
    floats[i, 2] = cute.Float32(cute.TFloat32(a))
    floats[i, 3] = cute.Float32(cute.BFloat16(a)) + cute.Float32(cute.Float16(a))
    floats[i, 4] = cute.math.fma(a, a, -1.0) + cute.math.round(a) + cute.math.floor(a) + cute.clamp(a, -1.0, 1.0)
    integers[i, 0] = b // 16 + b % 16
    integers[i, 1] = b // 7 + b % 7
    integers[i, 2] = cute.math.popc(b) + cute.math.clz(b) ^ cute.math.brev(b)
    q, r = divmod(abs(b), cute.fast_divmod_create_divisor(i + 1))
    integers[i, 3] = q * 3 + r
    integers[i, 4] = cute.Int32(cute.Int8(b)) + cute.Int32(cute.Uint16(b)) + a.bitcast(cute.Int32)


@cute.kernel
def near(x: cute.Tensor, out: cute.Tensor) -> None:
    i, _, _ = cute.arch.thread_idx()
    a = abs(x[i]) + 0.25
    out[i, 0] = cute.math.exp(a, fastmath=True) + cute.math.log(a, fastmath=True)
    out[i, 1] = cute.math.exp2(a, fastmath=True) + cute.math.rsqrt(a, fastmath=True)
    out[i, 2] = cute.math.tanh(a) + cute.math.erf(a) + cute.math.sin(a) + cute.math.sqrt(a)
    out[i, 3] = cute.math.powf(a, 1.5) + cute.math.rcp(a, fastmath=True) + cute.math.log10(a)


@cute.jit
def run(x: cute.Tensor, n: cute.Tensor, floats: cute.Tensor, integers: cute.Tensor, out: cute.Tensor) -> None:
    exact(x, n, floats, integers).launch(grid=1, block=THREADS)
    near(x, out).launch(grid=1, block=THREADS)


def arrays() -> list[Any]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-6, 6, THREADS).astype(np.float32)
    n = rng.integers(-(1 << 30), 1 << 30, THREADS, dtype=np.int32)
    shapes: list[tuple[type[Any], int]] = [(np.float32, 5), (np.int32, 5), (np.float32, 4)]
    return [x, n, *[np.zeros((THREADS, columns), t) for t, columns in shapes]]


def test_numbers() -> None:
    import torch

    expected = arrays()
    run(*expected, device="cpu")
    given = [torch.from_numpy(a).cuda() for a in arrays()]
    run(*given)
    torch.cuda.synchronize()
    _, _, floats, integers, close = (t.cpu().numpy() for t in given)
    assert (integers == expected[3]).all()
    assert (floats == expected[2]).all()
    assert np.allclose(close, expected[4], rtol=2e-5, atol=1e-5)
