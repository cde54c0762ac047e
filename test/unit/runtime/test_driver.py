"""The driver by cuda-python, as far as it goes without a GPU: structures, handles, errors."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from pipelines_support import kernel, module

from cute_dialect.arch.tensor_map_codes import ELEMENTS, INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, SWIZZLES
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime.arrays import stream_of
from cute_dialect.runtime.binding import DtypeError

bindings = pytest.importorskip("cuda.bindings.driver", reason="NOT RUN: no cuda-python (pip install '.[test]')")


def memory(structure: object, size: int) -> bytes:
    return bytes((ctypes.c_uint8 * size).from_address(structure.getPtr()))  # type: ignore[attr-defined]


def test_the_configuration_of_a_launch_is_that_of_cuda_h() -> None:
    """Field by field where cuda-python, made from ``cuda.h``, has it."""
    config = cuda.LaunchConfig(grid=(3, 5, 7), block=(11, 13, 17), smem=4096, stream=0x1234567890)
    attribute = cuda.cluster_attribute((2, 4, 1))
    config.attributes, config.attribute_count = ctypes.pointer(attribute), 1
    own = cuda.config_of_bindings(bindings, config)
    size = ctypes.sizeof(cuda.LaunchConfig)
    got, wanted = bytearray(bytes(config)), bytearray(memory(own, size))
    at = cuda.LaunchConfig.attributes.offset
    pointer = int.from_bytes(wanted[at : at + 8], "little")
    assert bytes(attribute) == bytes((ctypes.c_uint8 * ctypes.sizeof(attribute)).from_address(pointer))
    got[at : at + 8] = wanted[at : at + 8]
    assert got == wanted


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
