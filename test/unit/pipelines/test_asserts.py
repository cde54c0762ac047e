"""Assertions in kernels: the message of GPU code, disabled assertions, and locations of failures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, ModuleOp, NameLoc, StringAttr

from cute_dialect.errors import CompileError
from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.runtime.driver import CudaError

MEMREF = '!cute.memref<i32, gmem, "8:1">'
KERNEL = f"""module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{
    gpu.func @k(%p: {MEMREF}, %n: i32) kernel attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
      %c0 = arith.constant 0 : i32
      %c = arith.cmpi sgt, %n, %c0 : i32
      cf.assert %c, "n is \\22positive\\22"
      %i = cute.make_coord() : () -> !cute.coord<"3">
      cute.memref.store(%p, %i, %n) : ({MEMREF}, !cute.coord<"3">, i32) -> ()
      gpu.return
    }}
  }}
  func.func @launch(%p: {MEMREF}, %n: i32) {{
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c100 = arith.constant 100 : i32
    %less = arith.cmpi slt, %n, %c100 : i32
    cf.assert %less, "n is small"
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%p : {MEMREF}, %n : i32)
    return
  }}
}}
"""

SOURCE = """\
def check(n):
    cute.assert_(n > 0, 'n is "positive"')

@cute.kernel
def k(p, n):
    check(n)
    p[3] = n
"""


def with_places(file: str) -> ModuleOp:
    """Return the kernel's module with locations that refer to ``SOURCE``."""

    def place(line: int, column: int) -> FileLineColLoc:
        return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))

    module = parse_module(KERNEL, "k.mlir")
    for op in module.walk():
        if op.name == "cf.assert" and "positive" in str(op):
            op.location = CallSiteLoc(NameLoc(StringAttr("check"), place(2, 5)), place(6, 5))
        elif op.name == "cute.memref.store":
            op.location = place(7, 5)
    return module


def ptx_of(source: str | ModuleOp, **keywords: bool) -> str:
    (code,) = compile(source, emit="ptx", cache=False, filename="k.mlir", **keywords).artifact.code  # pyright: ignore[reportArgumentType]
    return code.ptx


def told(ptx: str) -> dict[str, str]:
    """Return the strings and the line number that the kernel passes to ``__assertfail``."""
    found = {
        name: bytes(map(int, numbers.split(","))).decode().rstrip("\0")
        for name, numbers in re.findall(r"assert_(\w+)_0\[\d+\] = \{([\d, ]+)\}", ptx)
    }
    (line,) = re.findall(r"st\.param\.b32 \t?\[param2\], (\d+);", ptx)
    return {**found, "line": line}


def test_file_line_and_kernel() -> None:
    number = KERNEL.splitlines().index('      cf.assert %c, "n is \\22positive\\22"') + 1
    wanted = {"file": "k.mlir", "line": str(number), "func": "k", "message": 'n is "positive"'}
    assert told(ptx_of(KERNEL)) == wanted


@pytest.mark.parametrize("lineinfo", [False, True])
def test_an_inlined_function_and_its_caller(lineinfo: bool) -> None:
    wanted = {"file": "/u/x.py", "line": "2", "func": "check, called from /u/x.py:6:5", "message": 'n is "positive"'}
    assert told(ptx_of(with_places("/u/x.py"), lineinfo=lineinfo)) == wanted


@pytest.mark.parametrize("source", [KERNEL, "base"])
def test_disabled_assertions_leave_no_code(source: str) -> None:
    """Disabling assertions also removes the comparison, in cute IR and in base IR."""
    from cute_dialect.pipelines.compiler import lower_to_base

    text = KERNEL if source == KERNEL else lower_to_base(KERNEL, pipeline="base")
    ptx = ptx_of(text, asserts=False)
    assert "st.global" in ptx and not re.search(r"assert|setp|bra|trap", ptx)
    assert "__assertfail" in ptx_of(text)


def test_host_and_interpreter_assertions_stay() -> None:
    module = compile(KERNEL, emit="ptx", asserts=False, cache=False)
    array = np.zeros(8, np.int32)
    module.kernel("launch")(array, 7, device="cpu")
    assert array[3] == 7
    with pytest.raises(Exception, match="n is small"):
        module.kernel("launch")(array, 100, device="cpu")
    with pytest.raises(InterpError, match='assertion failed: n is "positive"; here -1 > 0 is false'):
        module.kernel("launch")(array, -1, device="cpu")


def test_the_interpreter_shows_the_source(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(SOURCE)
    module = compile(with_places(str(file)), emit="base")
    with pytest.raises(InterpError) as e:
        module.kernel("launch")(np.zeros(8, np.int32), -1, device="cpu")
    assert str(e.value).splitlines()[:6] == [
        f'{file}:2:5: error: assertion failed: n is "positive"; here -1 > 0 is false',
        "    cute.assert_(n > 0, 'n is \"positive\"')",
        "    ^~~~~~~~~~~~",
        f"{file}:6:5: note: in 'check', called from here",
        "    check(n)",
        "    ^~~~~",
    ]


def test_a_cell_of_a_notebook() -> None:
    import linecache

    name = "<ipython-input-7-cell>"
    linecache.cache[name] = (len(SOURCE), None, [*SOURCE.splitlines(keepends=True)], name)  # pyright: ignore[reportArgumentType]
    try:
        with pytest.raises(InterpError, match=r"(?m)^    cute.assert_\(n > 0.*\n    \^~~~~~~~~~~~$"):
            compile(with_places(name), emit="base").kernel("launch")(np.zeros(8, np.int32), -1, device="cpu")
    finally:
        del linecache.cache[name]


def test_passes_show_the_source(tmp_path: Path) -> None:
    """An error in an inlined function shows the source lines of the callee and of the call."""
    file = tmp_path / "x.py"
    file.write_text(SOURCE)
    module = with_places(str(file))
    (store,) = (op for op in module.walk() if op.name == "cute.memref.store")
    (check,) = (op for op in module.walk() if op.name == "cf.assert" and "positive" in str(op))
    text = "gpu.module @m { gpu.func @f() kernel { cute_nvgpu.arch.wgmma_fence() : () -> () gpu.return } }"
    (fence,) = (op for op in parse_module(text).walk() if op.name == "cute_nvgpu.arch.wgmma_fence")
    fence.detach()
    fence.location = check.location
    assert store.parent is not None
    store.parent.insert_op_before(fence, store)
    with pytest.raises(CompileError) as e:
        compile(module, chip="sm_80", emit="ptx")
    lines = str(e.value).splitlines()
    assert re.match(re.escape(f"{file}:2:5: error: ") + ".*wgmma", lines[0]), lines
    assert lines[1:3] == ["    cute.assert_(n > 0, 'n is \"positive\"')", "    ^~~~~~~~~~~~"]
    assert lines[3:6] == [f"{file}:6:5: note: in 'check', called from here", "    check(n)", "    ^~~~~"]


def test_message_of_a_failed_assertion() -> None:
    assert str(CudaError("cuCtxSynchronize", 710, "CUDA_ERROR_ASSERT")) == (
        "cuCtxSynchronize failed with CUDA_ERROR_ASSERT (710): an assertion in a kernel failed; standard error shows "
        "its file and line"
    )


def test_equal_files_print_their_own_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compile cache has one entry per file name, because the PTX contains the name."""
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("first.mlir", "second.mlir"):
        file = tmp_path / name
        file.write_text(KERNEL)
        strings = re.findall(r"\.b8 \S+ = \{([^}]*)\}", compile(file, emit="ptx").ptx)
        found = [bytes(int(n) for n in string.split(",")).decode().rstrip("\0") for string in strings]
        assert str(file) in found
