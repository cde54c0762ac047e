"""Register tensors carried by loops: small elements are packed in 32-bit registers if whole registers are written."""

from __future__ import annotations

import numpy as np
import pytest

from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compiler import lower_to_base

ONE = """
        %cv = cute.static : !cute.coord<"3">
        cute.memref.store(%f, %cv, %one) : (!cute.memref<{t}, rmem, align<16>, "8:1">, !cute.coord<"3">, {t}) -> ()"""


def kernel(t: str, width: int, before: str, inside: str = "", one: str = "1.0", stride: int = 1) -> str:
    """Build a kernel whose loop rotates the vectors of ``width`` elements in the register tensor ``%f`` ``n`` times."""
    f = f'!cute.memref<{t}, rmem, align<16>, "8:1">'
    part = f'!cute.memref<{t}, rmem, "{width}:{stride}">'
    g = f'!cute.memref<{t}, gmem, align<16>, "8:1">'
    piece = "\n".join(
        f"""
        %s{i} = cute.static : !cute.int_tuple<"{(i * width) if stride == 1 else i}">
        %p{i} = cute.add_offset(%it, %s{i}) : (!cute.ptr<{t}, rmem, align<16>>, !cute.int_tuple<"{
            (i * width) if stride == 1 else i
        }">) -> !cute.ptr<{t}, rmem>
        %l{i} = cute.static : !cute.layout<"{width}:{stride}">
        %w{i} = cute.make_view(%p{i}, %l{i}) : {part}
        %v{i} = cute.memref.load_vec %w{i} : {part}"""
        for i in range(8 // width)
    )
    many = 8 // width
    stores = "\n".join(
        f"        %a{i} = arith.addf %v{(i + 1) % many}, %v{(i + 1) % many} : vector<{width}x{t}>\n"
        f"        cute.memref.store_vec %a{i}, %w{i} : {part}"
        for i in range(many)
    )
    return f"""
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @k(%g: {g}, %n: i32) kernel attributes {{known_block_size = array<i32: 1, 1, 1>}} {{
      %f = cute.memref.alloca() : {f}
      %one = arith.constant {one} : {t}
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      {before.format(f=f, g=g, t=t)}
      scf.for %i = %c0 to %n step %c1 : i32 {{
        %it = cute.get_iter(%f) : {f}{piece}
{stores}{inside.format(t=t)}
      }}
      %r = cute.memref.load_vec %f : {f}
      cute.memref.store_vec %r, %g : {g}
      gpu.return
    }}
  }}
}}
"""


READ = """%x = cute.memref.load_vec %g : {g}
      cute.memref.store_vec %x, %f : {f}"""


def rotated(x: np.ndarray, width: int, rounds: int, single: bool, stride: int = 1) -> np.ndarray:
    x = x.copy()
    for _ in range(rounds):
        parts = x.reshape(-1, width) if stride == 1 else x.reshape(width, -1).T
        parts = 2 * np.roll(parts, -1, axis=0)
        x = parts.reshape(-1) if stride == 1 else parts.T.reshape(-1)
        if single:
            x[3] = 1
    return x


CASES = [
    ("f16", 2, "", 1, "!llvm.struct<(i32, i32, i32, i32)>"),
    ("f16", 4, "", 1, "!llvm.struct<(i32, i32, i32, i32)>"),
    ("f16", 8, "", 1, "!llvm.struct<(i32, i32, i32, i32)>"),
    ("f16", 1, "", 1, ", ".join(["f16"] * 8)),
    ("f16", 2, ONE, 1, ", ".join(["f16"] * 8)),
    ("f16", 2, "", 4, ", ".join(["f16"] * 8)),
    ("f32", 2, "", 1, ", ".join(["f32"] * 8)),
]


@pytest.mark.sample(every=7)
@pytest.mark.parametrize(("t", "width", "inside", "stride", "carried"), CASES)
@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_a_loop_carries_whole_registers(
    t: str, width: int, inside: str, stride: int, carried: str, rounds: int
) -> None:
    text = kernel(t, width, READ, inside, stride=stride)
    (loop,) = [line for line in lower_to_base(text, pipeline="base").splitlines() if "}) : (i32, i32, i32" in line]
    assert loop.split(") -> ")[-1].strip("()") == carried.strip("()")
    made = compile_cute(text, emit="base")
    x = np.arange(1, 9).astype({"f16": np.float16, "f32": np.float32}[t])
    got = x.copy()
    made.kernel("k")(got, rounds, grid=(1, 1, 1), device="cpu")
    assert np.array_equal(got, rotated(x, width, rounds, bool(inside), stride))
