"""Cubins of compiled kernels launched by cuda-python and by CuPy, as docs/abi.md describes.

Each launch runs in its own process, which checks that it imports no module of this project. It packs the arguments as
the document describes and compares the results with numpy. The test passes it the cubin, the kernel's name and the
launch shape.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from cute_dialect.runtime import load
from cute_dialect.runtime.arrays import ArrayView

ROWS, COLUMNS, LD = 300, 520, 528

START = """
import json, sys
import numpy as np

given = json.loads(sys.argv[1])
rows, columns, ld = given["rows"], given["columns"], given["ld"]
rng = np.random.default_rng(0)

def matrix(pointer):  # pointer, extents, the one dynamic stride: 20 bytes, padded to the alignment of 8
    fields = [("pointer", "<u8"), ("rows", "<i4"), ("columns", "<i4"), ("ld", "<i4"), ("padding", "<i4")]
    return np.array([(pointer, rows, columns, ld, 0)], fields)

def host(dtype):
    return rng.standard_normal((rows, ld)).astype(dtype)

def check(got, wanted, before):
    assert np.array_equal(got[:, :columns], wanted[:, :columns]), "the result differs"
    assert np.array_equal(got[:, columns:], before[:, columns:]), "the padding was written"
    ours = [m for m in sys.modules if m.split(".")[0] in ("cute_dialect", "xdsl", "mlir", "torch")]
    assert not ours, ours
    print("as in numpy")
"""

DRIVER = """
from cuda.bindings import driver as cuda

def ok(result):
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) > 1 else None

ok(cuda.cuInit(0))
ok(cuda.cuCtxSetCurrent(ok(cuda.cuDevicePrimaryCtxRetain(0))))

def to_gpu(array):
    pointer = ok(cuda.cuMemAlloc(array.nbytes))
    ok(cuda.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    return int(pointer)

def to_cpu(pointer, like):
    ok(cuda.cuCtxSynchronize())
    array = np.empty_like(like)
    ok(cuda.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))
    return array

def tensor_map(pointer):  # f16, box 64 x 128, rows of 128 bytes swizzled: what the parameter's type says
    c = cuda
    return np.array([int(word) for word in ok(c.cuTensorMapEncodeTiled(
        c.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, pointer,
        [c.cuuint64_t(columns), c.cuuint64_t(rows)], [c.cuuint64_t(2 * ld)],
        [c.cuuint32_t(64), c.cuuint32_t(128)], [c.cuuint32_t(1), c.cuuint32_t(1)],
        c.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE, c.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        c.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        c.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)).opaque], np.uint64).view("V128")
"""

BY_DRIVER = """
def launch(arguments):
    with open(given["cubin"], "rb") as f:
        module = ok(cuda.cuModuleLoadData(f.read()))
    kernel = ok(cuda.cuModuleGetFunction(module, given["kernel"].encode()))
    if given["smem"] > 48 << 10:
        attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        ok(cuda.cuFuncSetAttribute(kernel, attribute, given["smem"]))
    pointers = np.array([a.ctypes.data for a in arguments], np.uint64)
    ok(cuda.cuLaunchKernel(kernel, *given["grid"], *given["block"], given["smem"], 0, pointers.ctypes.data, 0))
"""

BY_CUPY = """
import cupy

def launch(arguments):
    kernel = cupy.RawModule(path=given["cubin"]).get_function(given["kernel"])
    if given["smem"] > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = given["smem"]
    # CuPy passes numpy arrays of one element by value.
    kernel(tuple(given["grid"]), tuple(given["block"]), tuple(arguments), shared_mem=given["smem"])
    cupy.cuda.runtime.deviceSynchronize()
"""

ADD = """
a, b, c = (host(np.float32) for _ in range(3))
on_gpu = [to_gpu(x) for x in (a, b, c)]
launch([matrix(p) for p in on_gpu])
check(to_cpu(on_gpu[2], c), a + b, c)
"""

TMA = """
a, b = (host(np.float16) for _ in range(2))
on_gpu = [to_gpu(x) for x in (a, b)]
extents = np.array([(rows, columns)], [("rows", "<i4"), ("columns", "<i4")])
launch([tensor_map(on_gpu[0]), extents, tensor_map(on_gpu[1]), extents])
check(to_cpu(on_gpu[1], b), a, b)
"""

KERNELS = {
    "add": ("elementwise_add", "f32-stream", "add", ["f32"] * 3, ADD),
    "tma": ("tma", "tma_copy", "launch", ["f16"] * 2, TMA),
}


@pytest.mark.parametrize("by", ["cuda-python", "cupy"])
@pytest.mark.parametrize("which", KERNELS)
def test_nothing_of_ours_is_needed(built: Callable[[str], Path], which: str, by: str) -> None:
    if by == "cupy" and find_spec("cupy") is None:
        pytest.skip("NOT RUN: CuPy is not installed here (pip install cupy-cuda12x or cupy-cuda13x)")
    part, kernel, name, dtypes, body = KERNELS[which]
    compiled = built(part) / kernel
    views = [ArrayView(1 << 32, (ROWS, COLUMNS), (LD, 1), dtype, 0, "cuda", None) for dtype in dtypes]
    plan = load(compiled).kernel(name).plan(*views)
    assert plan.shape.cluster is None and len(plan.packed.buffers) == len(plan.params)
    given = {
        "cubin": str(compiled / "kernel.cubin"),
        "kernel": plan.kernel,
        "grid": plan.shape.grid,
        "block": plan.shape.block,
        "smem": plan.shape.smem,
        "rows": ROWS,
        "columns": COLUMNS,
        "ld": LD,
    }
    code = START + DRIVER + (BY_DRIVER if by == "cuda-python" else BY_CUPY) + body
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(given)], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "as in numpy\n"), done.stderr
