"""Base IR, fake arrays and a fake driver, shared by the tests of the pipelines."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.passes.base import PassContext, run_pass
from cute_dialect.passes.wgmma_registers import WgmmaRegistersPass
from cute_dialect.runtime.driver import Parameters
from cute_dialect.runtime.host_program import LaunchShape

M = "!llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, i32)>)>"
PLAIN = '!cute.memref<f32, gmem, "(?,?):(?,1)">'
VECTOR = '!cute.memref<f32, gmem, align<16>, "(?,?):(?{div=4},1)">'


def quoted(text: str) -> str:
    """Return the text of a cute type inside an attribute."""
    return '"' + text.replace('"', '\\"') + '"'


def kernel(name: str, args: list[str], lowered: list[str], body: str = "", attributes: str = "") -> str:
    """Return one kernel of base IR, whose ``body`` can use %a0, %a1 …"""
    params = ", ".join(f"%a{i}: {t}" for i, t in enumerate(lowered))
    types = ", ".join(quoted(a) for a in args)
    return (
        f"    llvm.func @{name}({params}) attributes {{gpu.kernel, nvvm.kernel, "
        f"nvvm.reqntid = array<i32: 128, 1, 1>, cute.args = [{types}]{attributes}}} {{\n"
        f"{body}      llvm.return\n    }}\n"
    )


def with_registers(module: ModuleOp) -> ModuleOp:
    """Run ``cute-wgmma-registers``, check that its result is valid and complete, and return the module."""
    after = module.clone()
    run_pass(WgmmaRegistersPass(), after, PassContext(Context()))
    after.verify()
    assert list(WgmmaRegistersPass().legal_after(after)) == []
    return after


ADD_BODY = f"""\
      %pc = llvm.extractvalue %a2[0] : {M}
      %ld = llvm.extractvalue %a2[1, 1] : {M}
      llvm.store %ld, %pc : i32, !llvm.ptr<1>
"""

HOST = f"""\
  func.func @launch(%a: {M}, %b: {M}, %c: {M}) attributes {{
      cute.args = [{quoted(PLAIN)}, {quoted(PLAIN)}, {quoted(PLAIN)}]}} {{
    %m = llvm.extractvalue %c[1, 0, 0] : {M}
    %n = llvm.extractvalue %c[1, 0, 1] : {M}
    %c16 = arith.constant 16 : i32
    %c128 = arith.constant 128 : i32
    %c1 = arith.constant 1 : i32
    %gm = arith.ceildivsi %m, %c16 : i32
    %gn = arith.ceildivsi %n, %c128 : i32
    %g = arith.muli %gm, %gn : i32
    %gi = arith.index_cast %g : i32 to index
    %one = arith.constant 1 : index
    %t = arith.constant 128 : index
    gpu.launch_func @kernels::@add blocks in (%gi, %one, %one) threads in (%t, %one, %one)
      args(%a : {M}, %b : {M}, %c : {M}) {{cute.variants = [@kernels::@add_v]}}
    return
  }}
"""


def module(kernels: str, host: str = "") -> str:
    """Return a module of base IR."""
    return f"module attributes {{gpu.container_module}} {{\n  gpu.module @kernels {{\n{kernels}  }}\n{host}}}\n"


def add_module() -> str:
    """Return a module with the kernel @add, its vectorized variant @add_v, and the host function that launches them."""
    return module(
        kernel("add", [PLAIN] * 3, [M] * 3, ADD_BODY) + kernel("add_v", [VECTOR] * 3, [M] * 3, ADD_BODY), HOST
    )


@dataclass
class FakeArray:
    """A GPU array that implements only the CUDA array interface."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    """Strides in elements."""
    typestr: str = "<f4"
    pointer: int = 0x7F0000000000
    device_id: int = 0

    @property
    def device(self) -> object:
        """Return an object with the device index as ``id``, like cupy."""
        return type("Device", (), {"id": self.device_id})()

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        size = int(self.typestr[2:])
        strides = None if self.strides is None else tuple(s * size for s in self.strides)
        return {
            "shape": self.shape,
            "strides": strides,
            "typestr": self.typestr,
            "data": (self.pointer, False),
            "version": 3,
        }


@dataclass
class FakeDriver:
    """A driver with host memory as device memory.

    Its kernels are Python functions that receive the parameters' bytes.
    """

    kernels: dict[str, object] = field(default_factory=dict)
    launches: list[dict[str, object]] = field(default_factory=list)
    smem_allowed: dict[int, int] = field(default_factory=dict)
    refuse_cubin: int = 0
    device_count: int = 1

    def __post_init__(self) -> None:
        self.memory: dict[int, object] = {}
        self.functions: list[str] = []
        self.loaded: list[bytes] = []
        self.context = 0

    def primary_context(self, device: int) -> int:
        return 1000 + device

    def current_context(self) -> int:
        return self.context

    def set_context(self, context: int) -> None:
        self.context = context

    def enter(self, device: int) -> int:
        wanted = self.primary_context(device)
        if self.context == wanted:
            return 0
        previous, self.context = self.context, wanted
        return previous

    def load_module(self, image: bytes) -> int:
        from cute_dialect.runtime.driver import CudaError

        self.loaded.append(image)
        if self.refuse_cubin and image[:4] == b"\x7fELF":
            raise CudaError("cuModuleLoadData", self.refuse_cubin, "CUDA_ERROR_TEST")
        return len(self.loaded)

    def get_function(self, module_handle: int, name: str) -> int:
        self.functions.append(name)
        return len(self.functions)

    def capability(self, device: int) -> tuple[int, int]:
        return (9, 0)

    def name(self, device: int) -> str:
        return "fake GPU"

    def smem_limit(self, device: int) -> int:
        return 232448

    def allow_smem(self, function: int, size: int) -> None:
        self.smem_allowed[function] = size

    def allow_large_cluster(self, function: int) -> None:
        self.smem_allowed[-function] = 1

    def launcher(
        self, function: int, shape: LaunchShape, parameters: Parameters, stream: int = 0
    ) -> Callable[[], tuple[int]]:
        def run() -> tuple[int]:
            # Functions belong to GPU 0. Without its context, launching fails.
            if self.context != self.primary_context(0):
                return (400 if self.context else 201,)
            self.launch(function, shape, parameters, stream)
            return (0,)

        return run

    def is_current(self, device: int) -> bool:
        return self.context == self.primary_context(device)

    def check(self, name: str, code: int) -> None:
        from cute_dialect.runtime.driver import CudaError

        if code:
            raise CudaError(name, code, "CUDA_ERROR_TEST")

    def launch(self, function: int, shape: LaunchShape, parameters: Parameters, stream: int = 0) -> None:
        name = self.functions[function - 1]
        record: dict[str, object] = {"kernel": name, "grid": tuple(shape.grid), "block": tuple(shape.block)}
        record |= {"stream": stream or None, "smem": shape.smem, "cluster": shape.cluster}
        record["parameters"] = list(parameters)
        self.launches.append(record)
        run = self.kernels.get(name)
        if callable(run):
            run(record)

    def allocate(self, size: int) -> int:
        buffer = (ctypes.c_uint8 * (size + 256))()
        address = -(-ctypes.addressof(buffer) // 256) * 256
        self.memory[address] = buffer
        return address

    def free(self, pointer: int) -> None:
        del self.memory[pointer]

    def to_device(self, pointer: int, host: int, size: int) -> None:
        ctypes.memmove(pointer, host, size)

    def to_host(self, host: int, pointer: int, size: int) -> None:
        ctypes.memmove(host, pointer, size)

    def synchronize(self, stream: int) -> None:
        return

    def pointer_device(self, pointer: int) -> int | None:
        return 0


def tensor_of(parameter: int, dtype: type[np.generic] = np.float32) -> np.ndarray:
    """Return the matrix in fake device memory that a 24-byte parameter of type M describes."""
    raw = bytes((ctypes.c_uint8 * 24).from_address(parameter))
    pointer = int.from_bytes(raw[:8], "little")
    rows, columns, ld = (int.from_bytes(raw[o : o + 4], "little", signed=True) for o in (8, 12, 16))
    size = np.dtype(dtype).itemsize
    memory = (ctypes.c_uint8 * max(1, ((rows - 1) * ld + columns) * size)).from_address(pointer)
    return np.ndarray((rows, columns), dtype, buffer=memory, strides=(ld * size, size))
