"""Parameter layout: sizes, alignments and offsets, compared with the PTX that LLVM generates."""

from __future__ import annotations

import random
import re
import struct

import ml_dtypes
import numpy as np
import pytest
from pipelines_support import M, kernel, module

from cute_dialect.pipelines.upstream import UpstreamModule
from cute_dialect.runtime import abi

SCALARS = ["i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "ptr<1>", "ptr"]


def to_ptx(text: str) -> str:
    m = UpstreamModule.from_text(text)
    m.run("one-shot-convert-to-llvm")
    m.run("attach-nvvm-target", {"chip": "sm_90a", "features": "+ptx83", "opt-level": "3"})
    m.run("emit-gpu-binary")
    return m.ptx()["kernels"]


def random_type(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(SCALARS)
    return "struct<(" + ", ".join(random_type(rng, depth - 1) for _ in range(rng.randint(0, 3))) + ")>"


def test_sizes_and_alignments_are_those_of_the_ptx() -> None:
    rng = random.Random(7)
    types = [M, "!llvm.struct<(ptr<1>, struct<(struct<()>, struct<()>)>)>"]
    types += [f"!llvm.struct<({t}, {random_type(rng, 3)})>" for t in SCALARS for _ in range(4)]
    ptx = to_ptx(module("".join(kernel(f"k{i}", ["opaque"], [t]) for i, t in enumerate(types))))
    for i, text in enumerate(types):
        found = re.search(rf"\.param \.align (\d+) \.b8 k{i}_param_0\[(\d+)\]", ptx)
        assert found, text
        t = abi.parse_type(text)
        assert (t.align, t.size) == (int(found.group(1)), int(found.group(2))), text


def test_offsets_are_those_of_the_loads() -> None:
    """Each member is loaded from the computed offset. Each kernel stores a single scalar."""
    text = "!llvm.struct<(ptr<1>, struct<(i8, struct<()>, struct<(i64, i16)>)>, i32, f64)>"
    kernels, offsets = "", []
    for i, (slot, offset) in enumerate(abi.parse_type(text).scalars()):
        path = ", ".join(map(str, slot.path))
        kind = "!llvm.ptr<1>" if slot.name == "ptr" else slot.name
        body = (
            f"      %v = llvm.extractvalue %a0[{path}] : {text}\n"
            f"      llvm.store volatile %v, %a1 : {kind}, !llvm.ptr<1>\n"
        )
        kernels += kernel(f"k{i}_", ["opaque", "opaque"], [text, "!llvm.ptr<1>"], body)
        offsets.append(offset)
    ptx = to_ptx(module(kernels))
    for i, offset in enumerate(offsets):
        loads = re.findall(rf"ld\.param\.\w+ \t%\w+, \[k{i}__param_0(?:\+(\d+))?\]", ptx)
        assert [int(o or 0) for o in loads] == [offset]


@pytest.mark.parametrize(
    "text", ["vector<4xf32>", "!llvm.struct<(i32", "!llvm.ptr<3>", "!llvm.struct<(i32)> x", '!cute.shape<"?">', "i7"]
)
def test_invalid_parameter_types_are_rejected(text: str) -> None:
    with pytest.raises(abi.AbiError):
        abi.parse_type(text)


def test_pack_scalar_against_numpy() -> None:
    rng = np.random.default_rng(0)
    values = [float(v) for v in rng.standard_normal(500)] + [
        0.0,
        -0.0,
        float("inf"),
        float("-inf"),
        3.3895314e38,
        1e-40,
    ]
    for v in values:
        assert abi.pack_scalar("bf16", v) == np.asarray(v, np.float32).astype(ml_dtypes.bfloat16).tobytes()
        assert abi.pack_scalar("f32", v) == np.float32(v).tobytes()
        assert abi.pack_scalar("f64", v) == np.float64(v).tobytes()
        if abs(v) < 65504 or v in (float("inf"), float("-inf")):
            assert abi.pack_scalar("f16", v) == np.float64(v).astype(np.float16).tobytes()
    assert np.isnan(np.frombuffer(abi.pack_scalar("bf16", float("nan")), ml_dtypes.bfloat16)[0])
    assert abi.pack_scalar("i64", -5) == struct.pack("<q", -5)
    assert abi.pack_scalar("ptr", 2**64 - 1) == b"\xff" * 8
    with pytest.raises(abi.AbiError, match=r"2147483648 does not fit i8|does not fit"):
        abi.pack_scalar("i8", 2147483648)
