"""Exported C, compiled with the system compiler and launched on a fake driver that records calls (``fake_cuda.c``)."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cute_dialect.runtime.host_program import TensorMap
from cute_dialect.runtime.launch import Kernel
from cute_dialect.runtime.launch_plan import read_arguments

FLAGS = [
    "-std=c11", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-pedantic", "-Werror", "-O2", "-shared", "-fPIC",
    "-fsanitize=undefined", "-fno-sanitize-recover=all",
]  # fmt: skip


def compiler() -> str:
    """Return the path of the C compiler, or skip the test if there is none."""
    found = shutil.which("cc")
    if found is None:
        pytest.skip("there is no C compiler here")
    return found


def headers() -> Path:
    """Return the folder of ``cuda.h`` in the package that provides ptxas."""
    import nvidia

    return next(p for root in nvidia.__path__ for p in Path(root).glob("*/include") if (p / "cuda.h").exists())


def built(sources: Sequence[Path], to: Path) -> ctypes.CDLL:
    """Compile C to a shared library and load it."""
    command = [compiler(), *FLAGS, *map(str, sources), "-o", str(to), f"-isystem{headers()}", "-lm"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[:3000]
    return ctypes.CDLL(str(to))


class Exported:
    """A kernel that is exported to C and compiled. The fake driver records its launches and tensor maps."""

    def __init__(self, kernel: Kernel, folder: Path, name: str = "k"):
        self.kernel = kernel
        kernel.export(folder, ("c",), name=name)
        fake = Path(__file__).with_name("fake_cuda.c")
        self.library = built([folder / f"{name}.c", fake], folder / f"{name}.so")
        self._name = name
        self.heard: list[tuple[str, tuple[int, ...], tuple[bytes, ...]]] = []
        self.maps: list[tuple[int, ...]] = []
        numbers, addresses = ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p)
        words, data = ctypes.POINTER(ctypes.c_longlong), ctypes.POINTER(ctypes.c_ubyte)
        self._hooks = (
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, numbers, addresses)(self._launched),
            ctypes.CFUNCTYPE(ctypes.c_int, words, data)(self._encoded),
        )
        self.library.fake_listen(*self._hooks)
        self.module = ctypes.c_void_p()
        assert self._function("load")(ctypes.byref(self.module)) == 0, self.error

    def _function(self, name: str) -> Any:
        return getattr(self.library, f"{self._name}_{name}")

    @property
    def error(self) -> str:
        """Return the message of the last error."""
        text = self._function("error")
        text.restype = ctypes.c_char_p
        return text().decode()

    def _launched(self, name: bytes, numbers: Any, parameters: Any) -> int:
        entry = next(k for k in self.kernel.module.manifest["kernels"] if k["name"] == name.decode())
        data = [ctypes.string_at(parameters[i], p["size"]) for i, p in enumerate(entry["params"])]
        assert all(parameters[i] % p["align"] == 0 for i, p in enumerate(entry["params"]))
        self.heard.append((name.decode(), tuple(numbers[:15]), tuple(data)))
        return 0

    def _encoded(self, numbers: Any, made: Any) -> int:
        self.maps.append(tuple(numbers[:64]))
        made[0] = len(self.maps)
        return 0

    def __call__(self, *arguments: object) -> int:
        """Launch on stream 7 and return the driver's code."""
        self.heard.clear()
        self.maps.clear()
        return self._function("launch")(self.module, *arguments, ctypes.c_void_p(7))

    def planned(self, *args: object, **shape: Any) -> list[tuple[str, tuple[int, ...], tuple[bytes, ...]]]:
        """Return the launches that Python plans, in the format of the fake driver.

        The fake driver identifies tensor maps by number.  Each map must equal the map that the C code encodes.
        """
        out: list[tuple[str, tuple[int, ...], tuple[bytes, ...]]] = []
        views = self.kernel.plans(*args, **shape)
        arguments = read_arguments(self.kernel.target, args)
        addresses = [
            v.pointer if v else a if isinstance(a, int) else 0 for v, a in zip(arguments.views, arguments.values)
        ]
        seen = 0
        for plan in views:
            if plan.empty:
                continue
            buffers = [bytearray(b) for b in plan.packed.buffers]
            for parameter, offset, argument, more in plan.packed.patches:
                buffers[parameter][offset : offset + 8] = (addresses[argument] + more).to_bytes(8, "little")
            for parameter, map_ in plan.packed.maps:
                seen += 1
                assert self.maps[seen - 1] == told(map_, addresses[map_.address.argument] + map_.address.offset)
                buffers[parameter][:] = bytes([seen, *[0] * 127])
            s = plan.shape
            cluster = s.cluster or (0, 0, 0)
            larger = s.preferred_cluster or (0, 0, 0)
            numbers = (*s.grid, *s.block, s.smem, *cluster, int(s.cooperative), int(s.pdl), *larger)
            out.append((plan.kernel, numbers, tuple(map(bytes, buffers))))
        return out


def told(m: TensorMap, address: int) -> tuple[int, ...]:
    """Return a tensor map in the format of the fake driver."""
    own = (*m.box, *m.steps) if not m.pixels else (m.box[0], *m.lower, *m.upper, *m.steps)
    codes = (m.element, m.interleave, m.swizzle, m.l2, m.oob)
    numbers = (len(m.extents), address, *codes, m.pixels, *m.extents, *m.strides, *own)
    return (*numbers, *[0] * (64 - len(numbers)))


def tensor(array: Any) -> ctypes.Structure:
    """Convert an array of any supported library to the C struct ``cute_tensor_<rank>``."""
    from cute_dialect.runtime.arrays import view_of

    view = view_of(array, 0)
    rank = len(view.shape)

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_uint64), ("shape", ctypes.c_int64 * rank), ("stride", ctypes.c_int64 * rank)
        ]  # fmt: skip

    return Tensor(view.pointer, (ctypes.c_int64 * rank)(*view.shape), (ctypes.c_int64 * rank)(*view.strides))
