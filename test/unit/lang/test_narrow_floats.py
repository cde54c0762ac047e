"""Functions of narrow-float and Boolean vectors compute in Float32 and Int32, as numpy does."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_dialect.lang as cute

KINDS = {"e4m3fn": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}

CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum": (lambda v: v.sum(), lambda x: x.sum()),
    "max": (lambda v: v.max(), lambda x: x.max()),
    "min": (lambda v: v.min(), lambda x: x.min()),
    "mul": (lambda v: v.reduce("mul"), lambda x: x.prod()),
    "serial": (lambda v: v.reduce("add", order="serial"), lambda x: x.sum()),
    "init": (lambda v: v.reduce("max", 100.0), lambda x: max(100.0, x.max())),
    "function": (lambda v: v.reduce(lambda a, b: a + b), lambda x: x.sum()),
    "rows": (lambda v: v.reshape((2, 3)).reduce("add", 0.0, (None, 1))[1], lambda x: x[1] + x[3] + x[5]),
    "columns": (lambda v: v.reshape((2, 3)).reduce("max", -9.0, (1, None))[2], lambda x: x[4:].max()),
    "arithmetic": (lambda v: ((v + 1) * v - v / 2).sum(), lambda x: ((x + 1) * x - x / 2).sum()),
    "unary": (lambda v: (abs(v) - v).sum(), lambda x: (abs(x) - x).sum()),
    "rounded": (lambda v: (v // 2 + v % 2).sum(), lambda x: (x // 2 + x % 2).sum()),
    "compared": (lambda v: (v > 1).any() & (v == v).all() & (v != 0).any(), lambda x: 1.0),
    "where": (lambda v: cute.where(v > 1, v, 0).sum(), lambda x: np.where(x > 1, x, 0).sum()),
    "math": (lambda v: cute.math.exp(v).sum(), lambda x: np.exp(x).sum()),
    "fma": (lambda v: cute.math.fma(v, v, v).sum(), lambda x: (x * x + x).sum()),
    "casts": (lambda v: v.to(cute.Float16).to(v.dtype).sum() + v.to(cute.Int32).sum(), lambda x: 2 * x.sum()),
    "full_like": (lambda v: cute.full_like(v, 2).sum() + cute.zeros_like(v).max(), lambda x: 2.0 * len(x)),
    "one": (lambda v: v.reshape((6, 1)).reduce("add", 0.0, (None, 1))[3], lambda x: x[3]),
}


def value(array: Any, function: Callable[[Any], Any]) -> float:
    """Load the array as a vector in a kernel, apply the function, and return the result."""

    @cute.kernel
    def kernel(x: cute.Tensor, o: cute.Tensor):
        o[0] = cute.Float32(function(x.load()))

    @cute.jit
    def run(x: cute.Tensor, o: cute.Tensor):
        kernel(x, o).launch(grid=1, block=1)

    o = np.full(1, np.nan, np.float32)
    run(cute.from_dlpack(array), o, device="cpu")
    return float(o[0])


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_vectors_of_8_bit_floats(kind: str, case: str):
    function, wanted = CASES[case]
    x = np.array([1, -2, 2, 3, -4, 6], KINDS[kind])
    assert value(x, function) == pytest.approx(float(wanted(x.astype(np.float32))), rel=1e-6)


FEWER_BITS = {
    cute.Float4E2M1FN: ml_dtypes.float4_e2m1fn, cute.Float6E2M3FN: ml_dtypes.float6_e2m3fn,
    cute.Float6E3M2FN: ml_dtypes.float6_e3m2fn,
}  # fmt: skip


@pytest.mark.sample(every=11)
@pytest.mark.parametrize("kind", FEWER_BITS, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_vectors_of_4_and_6_bit_floats(kind: Any, case: str):
    function, wanted = CASES[case]
    x = np.array([1, -2, 2, 3, -4, 6], np.float32)
    found = value(x, lambda v: function(v.to(kind)))
    assert found == pytest.approx(float(wanted(x)), rel=1e-6)


def converted(array: np.ndarray, results: Any, function: Callable[[Any], Any]) -> np.ndarray:
    """Load the array as a vector in a kernel, convert it with the function, and return the result."""

    @cute.kernel
    def kernel(x: cute.Tensor, o: cute.Tensor):
        o.store(function(x.load()))

    @cute.jit
    def run(x: cute.Tensor, o: cute.Tensor):
        kernel(x, o).launch(grid=1, block=1)

    o = np.zeros(array.shape, results)
    run(cute.from_dlpack(array), cute.from_dlpack(o), device="cpu")
    return o


@pytest.mark.parametrize("kind", FEWER_BITS, ids=str)
def test_4_and_6_bit_floats_round_to_nearest_even(kind: Any):
    """Convert numbers of the type, midpoints between them, neighbours of both, large numbers and NaN."""
    peer = FEWER_BITS[kind]
    codes = np.arange(1 << kind.width, dtype=np.uint8).view(peer).astype(np.float32)
    numbers = np.unique(codes)
    middles = (numbers[1:] + numbers[:-1]) / 2
    near = np.concatenate([np.nextafter(middles, x).astype(np.float32) for x in np.float32([-100, 100])])
    rng = np.random.default_rng(0)
    more = rng.standard_normal(256 - len(codes) - len(middles) - len(near) - 5) * kind.max / 2
    x = np.concatenate([codes, middles, near, more, [1e30, -1e30, np.inf, -np.inf, 1e-30]]).astype(np.float32)
    wanted = np.clip(x, -kind.max, kind.max).astype(peer).astype(np.float32)
    found = converted(x, np.float32, lambda v: v.to(kind).to(cute.Float32))
    assert np.array_equal(found, wanted) and np.array_equal(np.signbit(found), np.signbit(x))
    nan = np.full(2, np.nan, np.float32)
    assert np.array_equal(np.abs(converted(nan, np.float32, lambda v: v.to(kind).to(cute.Float32))), [kind.max] * 2)
    half = np.clip(x, -60000, 60000).astype(np.float16)
    halves = converted(half, np.float16, lambda v: v.to(kind).to(cute.Float16))
    assert np.array_equal(halves, np.clip(half, -kind.max, kind.max).astype(peer).astype(np.float16))


@pytest.mark.parametrize("kind", FEWER_BITS, ids=str)
def test_numbers_of_4_and_6_bits(kind: Any):
    """Scalars convert as vectors do, and constants convert as run-time scalars do."""
    x = np.array([1.3, -2.8, 1e9], np.float32)
    wanted = np.clip(x, -kind.max, kind.max).astype(FEWER_BITS[kind]).astype(np.float32)
    for i in range(3):
        assert value(x, lambda v, i=i: v[i].to(kind)) == wanted[i]
        assert value(x, lambda v, i=i: (v[i].to(kind) + kind(1)) * 2) == 2 * wanted[i] + 2


def test_bits_of_4_bit_floats():
    x = np.arange(-8, 8, dtype=np.float32)
    found = converted(x, np.float32, lambda v: v.to(cute.Int4).bitcast(cute.Float4E2M1FN).to(cute.Float32))
    assert np.array_equal(
        found, (np.arange(-8, 8) & 15).astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    )
    back = converted(found, np.int32, lambda v: v.to(cute.Float4E2M1FN).bitcast(cute.Int4).to(cute.Int32))
    assert np.array_equal(back, np.arange(-8, 8))


@pytest.mark.parametrize("kind", [cute.Int4, cute.Float4E2M1FN])
def test_packed_4_bit_floats(kind: type[cute.Numeric]):
    """Each byte packs two numbers, which are loaded as Int4 or as floats."""

    @cute.kernel
    def kernel(x: cute.Tensor, o: cute.Tensor):
        o.store(cute.recast_tensor(x, kind).load().bitcast(cute.Float4E2M1FN).to(cute.Float32))

    @cute.jit
    def run(x: cute.Tensor, o: cute.Tensor):
        kernel(x, o).launch(grid=1, block=1)

    o = np.full(16, np.nan, np.float32)
    u = np.arange(16, dtype=np.uint8)
    packed = u[::2] | u[1::2] << 4
    run(cute.from_dlpack(packed), cute.from_dlpack(o), device="cpu")
    assert np.array_equal(o, np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32))


@pytest.mark.parametrize("case", ["sum", "max", "min", "where"])
def test_vectors_of_scales(case: str):
    """Scales compute in Float32. The array is passed as ``float8_e8m0fnu``, and results round up."""
    function, wanted = CASES[case]
    x = np.array([127, 128, 130, 126], np.uint8).view(ml_dtypes.float8_e8m0fnu)
    assert value(x, function) == float(wanted(x.astype(np.float32)))


CHIPS = ("sm_90a", "sm_100a", "sm_120a")


def run_for(chip: str, array: np.ndarray, results: Any, function: Callable[[Any], Any]) -> tuple[np.ndarray, str]:
    """Compile a conversion for a chip, interpret it, and return the results and the PTX."""

    @cute.kernel
    def kernel(x: cute.Tensor, o: cute.Tensor):
        o.store(function(x.load()))

    @cute.jit
    def run(x: cute.Tensor, o: cute.Tensor):
        kernel(x, o).launch(grid=1, block=1)

    o = np.zeros(array.shape, results)
    compiled = cute.compile(run, cute.from_dlpack(array), cute.from_dlpack(o), chip=chip, device="cpu")
    compiled(array, o)
    return o, compiled.ptx


SCALES = {**FEWER_BITS, cute.Float8E8M0FNU: ml_dtypes.float8_e8m0fnu}
INSTRUCTIONS = {
    cute.Float4E2M1FN: ("cvt.rn.satfinite.e2m1x2.f32", "cvt.rn.f16x2.e2m1x2"),
    cute.Float6E2M3FN: ("cvt.rn.satfinite.e2m3x2.f32", "cvt.rn.f16x2.e2m3x2"),
    cute.Float6E3M2FN: ("cvt.rn.satfinite.e3m2x2.f32", "cvt.rn.f16x2.e3m2x2"),
    cute.Float8E8M0FNU: ("cvt.rp.satfinite.ue8m0x2.f32", "cvt.rn.bf16x2.ue8m0x2"),
}


@pytest.mark.parametrize("kind", SCALES, ids=str)
def test_narrow_floats_use_instructions_of_sm_100(kind: Any):
    """Results are the same on all chips, and from sm_100a on each pair takes one instruction."""
    x = np.array([1.3, -2.7, 1e9, 0.0, -1e-3, 2.0**-127, 3e-39, 7.0, np.inf, 2.5, 0.25], np.float32)
    x = np.abs(x) if kind is cute.Float8E8M0FNU else x
    found = {chip: run_for(chip, x, np.float32, lambda v: v.to(kind).to(cute.Float32)) for chip in CHIPS}
    if kind is cute.Float8E8M0FNU:
        wanted = np.exp2(np.clip(np.ceil(np.log2(np.maximum(x, 1e-45).astype(np.float64))), -127, 127))
    else:
        wanted = np.clip(x, -kind.max, kind.max).astype(FEWER_BITS[kind]).astype(np.float32)
    for chip, (values, ptx) in found.items():
        assert np.array_equal(values, wanted.astype(np.float32)), chip
        counts = [sum(line.split()[:1] == [name] for line in ptx.splitlines()) for name in INSTRUCTIONS[kind]]
        assert counts == ([0, 0] if chip == "sm_90a" else [6, 6]), chip


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCALES, ids=str)
def test_narrow_floats_convert_alike_on_all_chips(kind: Any):
    """All bf16 bit patterns, in vectors of 16, converted to the type and back."""
    x = np.arange(1 << 16, dtype=np.uint32) << 16
    bits = x.view(np.float32)

    @cute.kernel
    def kernel(x: cute.Tensor, o: cute.Tensor):
        i = cute.arch.block_idx().x * 128 + cute.arch.thread_idx().x
        o[i, None].store(x[i, None].load().to(kind).to(cute.Float32))

    @cute.jit
    def run(x: cute.Tensor, o: cute.Tensor):
        kernel(x, o).launch(grid=32, block=128)

    outs: list[np.ndarray] = []
    for chip in CHIPS:
        given, o = bits.reshape(4096, 16), np.zeros((4096, 16), np.float32)
        cute.compile(run, *map(cute.from_dlpack, (given, o)), chip=chip, device="cpu")(given, o)
        outs.append(o.reshape(-1))
    nan = np.isnan(bits)
    for o in outs:
        assert np.array_equal(o[~nan], outs[0][~nan])
    if kind is cute.Float8E8M0FNU:
        assert all(np.isnan(o[nan]).all() for o in outs)
    else:
        assert all((np.abs(o[nan]) == kind.max).all() for o in outs)
        wanted = np.clip(bits[~nan], -kind.max, kind.max).astype(FEWER_BITS[kind]).astype(np.float32)
        assert np.array_equal(outs[0][~nan], wanted)


def test_tensors_of_4_bit_floats():
    """A tensor of packed numbers is a recast view of its bytes."""

    @cute.kernel
    def kernel(x: cute.Tensor, o: cute.Tensor, back: cute.Tensor):
        v = cute.recast_tensor(x, cute.Float4E2M1FN).load()
        o.store(v.to(cute.Float32))
        cute.recast_tensor(back, cute.Float4E2M1FN).store(v)

    @cute.jit
    def run(x: cute.Tensor, o: cute.Tensor, back: cute.Tensor):
        kernel(x, o, back).launch(grid=1, block=1)

    o = np.full(16, np.nan, np.float32)
    packed = np.arange(8, dtype=np.uint8) * 0x22 + 0x10
    back = np.zeros_like(packed)
    run(*map(cute.from_dlpack, (packed, o, back)), device="cpu")
    assert np.array_equal(o, np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32))
    assert np.array_equal(back, packed)


def test_the_sum_of_booleans_counts():
    x = np.array([1, -2, 2, 3, -4, 6], np.float32)
    assert value(x, lambda v: (v > 0).reduce("add")) == 4
    assert value(x, lambda v: (v > 0).sum()) == 4
    assert value(x, lambda v: (v > 9).max()) == 0
