"""The CUDA driver through cuda-python, tested without a GPU: structures, handles and errors."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys

import numpy as np
import pytest
from pipelines_support import kernel, module

from cute_dialect.arch.tensor_map_codes import ELEMENTS, INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, SWIZZLES
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime.arrays import stream_of
from cute_dialect.runtime.host_program import LaunchShape
from cute_dialect.runtime.launch_plan import DtypeError

bindings = pytest.importorskip("cuda.bindings.driver", reason="NOT RUN: no cuda-python (pip install '.[test]')")


def memory(structure: object, size: int) -> bytes:
    return bytes((ctypes.c_uint8 * size).from_address(structure.getPtr()))  # type: ignore[attr-defined]


def test_launch_passes_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch fills the fields of ``CUlaunchConfig`` as ``cuda.h`` declares them."""
    gpu = cuda.Driver.__new__(cuda.Driver)
    gpu._cuda = bindings
    parameters = (ctypes.c_void_p * 2)(0x1000, 0x2000)
    shape = LaunchShape((3, 5, 7), (11, 13, 17), 4096, (2, 4, 1))
    config, function, where, extra = gpu.launcher(0xABC, shape, parameters, 0x1234567890).args
    raw = memory(config, 56)
    assert struct.unpack("7I4xQ", raw[:40]) == (3, 5, 7, 11, 13, 17, 4096, 0x1234567890)
    attributes, count = struct.unpack("QI", raw[40:52])
    assert count == 1 and struct.unpack("Q3I", ctypes.string_at(attributes, 20)) == (4, 2, 4, 1)
    assert (int(function), where, extra) == (0xABC, ctypes.addressof(parameters), 0)
    assert gpu.launcher(0xABC, LaunchShape((1, 1, 1), (32, 1, 1)), parameters).args[0].numAttrs == 0


def test_the_attributes_of_a_launch() -> None:
    """Each 72-byte ``CUlaunchAttribute`` has its code from ``cuda.h`` at byte 0 and its value at byte 8."""
    gpu = cuda.Driver.__new__(cuda.Driver)
    gpu._cuda = bindings
    parameters = (ctypes.c_void_p * 1)(0x1000)
    shape = LaunchShape((8, 2, 1), (32, 1, 1), 0, (2, 1, 1), True, True, (4, 2, 1))
    config = gpu.launcher(0xABC, shape, parameters).args[0]
    attributes, count = struct.unpack("QI", memory(config, 56)[40:52])
    codes = [struct.unpack("Q3I", ctypes.string_at(attributes + 72 * i, 20)) for i in range(count)]
    assert [c[0] & 0xFFFFFFFF for c in codes] == [4, 11, 2, 6]
    assert codes[0][1:] == (2, 1, 1) and codes[1][1:] == (4, 2, 1) and codes[2][1] == 1 and codes[3][1] == 1
    for one, code in ((LaunchShape(cooperative=True), 2), (LaunchShape(pdl=True), 6)):
        config = gpu.launcher(0xABC, one, parameters).args[0]
        attributes, count = struct.unpack("QI", memory(config, 56)[40:52])
        assert count == 1 and struct.unpack("QI", ctypes.string_at(attributes, 12)) == (code, 1)


def test_cuda_python_has_every_code_of_tensor_maps() -> None:
    for codes, enum in (
        (ELEMENTS, bindings.CUtensorMapDataType),
        (range(len(INTERLEAVES)), bindings.CUtensorMapInterleave),
        (range(len(SWIZZLES)), bindings.CUtensorMapSwizzle),
        (range(len(L2_PROMOTIONS)), bindings.CUtensorMapL2promotion),
        (range(len(OOB_FILLS)), bindings.CUtensorMapFloatOOBfill),
    ):
        assert [int(enum(code)) for code in codes] == list(codes)


def test_streams_and_pointers_of_cuda_python_are_taken() -> None:
    assert stream_of(bindings.CUstream(77)) == 77 and stream_of(bindings.CUstream(0)) == 0
    text = module(kernel("k", ["!cute.ptr<f32, gmem, align<16>>", "i32"], ["!llvm.ptr<1>", "i32"]))
    k = compile_cute(text, emit="base").kernel("k")
    plan = k.plan(bindings.CUdeviceptr(1 << 33), 3, grid=(1,))
    assert plan.packed.patches == ((0, 0, 0, 0),)
    with pytest.raises(DtypeError, match="expects an integer for i32, got CUdeviceptr"):
        k.plan(np.zeros(4, np.float32), bindings.CUdeviceptr(3), grid=(1,))


def test_errors_have_the_names_of_cuda_python() -> None:
    gpu = cuda.Driver.__new__(cuda.Driver)
    gpu._cuda = bindings
    gpu.check("cuInit", 0)
    for code, said in (
        (700, "f failed with CUDA_ERROR_ILLEGAL_ADDRESS (700): a kernel accessed memory that is not allocated"),
        (1, "f failed with CUDA_ERROR_INVALID_VALUE (1)"),
        (54321, "f failed with an unknown error (54321)"),
    ):
        with pytest.raises(cuda.CudaError) as e:
            gpu.check("f", code)
        assert (str(e.value), e.value.code) == (said, code)


def test_a_missing_package_is_named() -> None:
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == 'cuda':
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Block())
from cute_dialect.runtime.driver import NoGpuError, load_bindings
try:
    load_bindings()
except NoGpuError as e:
    print(e)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == (
        "no GPU can be used: cuda-python (cuda-bindings, extra 'cuda') is not installed: pip install "
        "'cuda-bindings>=12.8,<14'\n"
    ), done.stderr
