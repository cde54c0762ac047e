"""Exported C makes the same launches as Python, byte for byte, and reports the same errors."""

from __future__ import annotations

import ctypes
import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import exported_c as fake_driver
import numpy as np
import pytest
from exported_c import Exported, built, compiler, headers, tensor
from pipelines_support import FakeArray
from several_launches import ALL

import cute_dialect.lang as cute
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compilation import LoweringError
from cute_dialect.runtime import host_program
from cute_dialect.runtime.export.c_program import write_program
from cute_dialect.runtime.export.c_text import ExportError, Function, Scalar
from cute_dialect.runtime.export.folder import compile_object
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.launch_plan import LaunchError

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(scope="module")
def add() -> CompiledModule:
    return compile_cute(str(EXAMPLES / "elementwise_add.mlir"))


def compare(exported: Exported, args: tuple[Any, ...], given: tuple[Any, ...], **shape: Any) -> str:
    """Compare a call from C with Python's plan. Return the error if both fail."""
    code = exported(*given)
    try:
        wanted = exported.planned(*args, **shape)
    except LaunchError as e:
        assert code == 1 and not exported.heard, (e, exported.heard)
        return f"{exported.error} | {e}"
    assert code == 0, exported.error
    assert exported.heard == wanted
    return ""


@pytest.mark.slow
def test_variants_shapes_and_refusals(add: CompiledModule, folder: Path) -> None:
    """C selects the vectorized variant if row strides and addresses allow it and launches nothing for empty arrays."""
    exported = Exported(add.kernel("add"), folder, "add")
    rng = random.Random(3)
    ended: list[str] = []
    for n in range(60):
        rows, columns = rng.choice([0, 1, 7, 33]), rng.choice([0, 1, 4, 129])
        arrays: list[FakeArray] = []
        for k in range(3):
            ld = columns + rng.choice([0, 0, 1, 3])
            address = 0x7F0000000000 + (k << 20) + rng.choice([0, 0, 0, 4])
            more = int(n > 50 and k == 1)
            arrays.append(FakeArray((rows + more, columns), (ld, 1), pointer=address))
        ended.append(compare(exported, tuple(arrays), tuple(map(tensor, arrays))))
        ended.append(exported.heard[0][0] if exported.heard else "none")
    assert {"add", "add_v", "none"} <= {*ended}
    refused = [e for e in ended if " | " in e]
    assert any("must have the same shape" in e.split(" | ")[0] for e in refused)
    wide = FakeArray((3, 4), (8, 2))
    assert "argument mA, stride 1: expected 1, got 2 " in compare(exported, (wide,) * 3, (tensor(wide),) * 3)
    far = FakeArray((2**31 - 5, 1), (1, 1))
    assert "extent 2147483643 does not fit" in compare(exported, (far,) * 3, (tensor(far),) * 3)


@pytest.mark.slow
def test_tensor_maps_and_the_fallback(folder: Path) -> None:
    """A Hopper GEMM launched from C encodes the same tensor maps as from Python. Unaligned rows use the fallback."""
    exported = Exported(compile_cute(str(EXAMPLES / "gemm_sm90.mlir")).kernel("launch"), folder, "gemm")
    ended: list[str] = []
    for m, n, k, ld, shift in ((256, 512, 192, 0, 0), (72, 264, 64, 8, 16), (72, 264, 63, 0, 0), (8, 8, 8, 0, 2),
                               (0, 8, 8, 0, 0), (1, 8, 16, 3, 0), (8, 16, 24, 1, 1)):  # fmt: skip
        rows = ((m, k), (n, k), (m, n))
        arrays = [FakeArray(s, (s[1] + ld, 1), "<f2", 0x7F0000000000 + (i << 24) + shift) for i, s in enumerate(rows)]
        error = compare(exported, tuple(arrays), tuple(map(tensor, arrays)))
        ended.append(error or (exported.heard[0][0] if exported.heard else "none"))
    assert ended[:3] == ["gemm", "gemm", "gemm_any"] and ended[4] == "none"
    assert "expected an address that is a multiple of 2 bytes" in ended[-1]


@pytest.mark.slow
def test_flags_of_several_launches(folder: Path) -> None:
    module = compile_cute(ALL)
    arrays = [FakeArray((150,), (1,), "<i4", 0x7F0000000000 + (i << 20)) for i in range(3)]
    exported = Exported(module.kernel("choose"), folder, "choose")
    for k in range(-1, 9):
        assert not compare(exported, (*arrays, k), (*map(tensor, arrays), ctypes.c_int32(k)))
    marked = Exported(module.kernel("marked"), folder, "marked")
    assert not compare(marked, (*arrays, 3), (*map(tensor, arrays), ctypes.c_int32(3)))
    assert [h[1][10:12] for h in marked.heard] == [(1, 0), (0, 1)]


@cute.kernel
def sizes_kernel(x: cute.Tensor):
    if cute.arch.thread_idx().x == 0:
        x[cute.arch.block_idx().x] = cute.arch.cluster_size()


@cute.jit
def sizes(x: cute.Tensor):
    sizes_kernel(x).launch(grid=x.shape[0], block=32, cluster=(4, 1, 1), fallback_cluster=(2, 1, 1))


@pytest.mark.slow
def test_clusters_of_two_sizes(folder: Path) -> None:
    array = FakeArray((8,), (1,), "<i4", 0x7F0000000000)
    made = cute.compile(sizes, cute.runtime.from_dlpack(np.zeros(8, "i4")).mark_layout_dynamic(), chip="sm_100a")
    exported = Exported(made.kernel(cpu=False), folder, "sizes")
    assert not compare(exported, (array,), (tensor(array),))
    assert exported.heard[0][1][7:] == (2, 1, 1, 0, 0, 4, 1, 1)


NUMBERS = """
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @all(%p: !cute.ptr<f32, gmem, align<8>>, %a: f16, %b: bf16, %c: f32, %d: f64, %e: i1, %f: i8, %g: i16,
                  %h: i64, %i: !cute.i32<divby 4>, %j: !cute.int_tuple<"(?,(3,?{i64 div=8}))">,
                  %k: !cute.layout<"(?,2):(?,1)">)
        kernel {
      gpu.return
    }
  }
}
"""


def test_numbers_of_each_type(folder: Path) -> None:
    """For a kernel without a host function, the caller passes the grid and the block."""
    exported = Exported(compile_cute(NUMBERS).kernel("all"), folder, "numbers")
    types = (ctypes.c_uint64, ctypes.c_float, ctypes.c_float, ctypes.c_float, ctypes.c_double, ctypes.c_bool,
             ctypes.c_int8, ctypes.c_int16, ctypes.c_int64, ctypes.c_int32)  # fmt: skip
    launch = ((ctypes.c_uint * 3)(4, 5, 6), (ctypes.c_uint * 3)(32, 2, 1), ctypes.c_uint(1000))
    shape = {"grid": (4, 5, 6), "block": (32, 2, 1), "smem": 1000}
    rng = random.Random(5)
    ended: list[str] = []
    for n in range(200):
        real = (
            struct.unpack("<f", struct.pack("<I", rng.getrandbits(32)))[0]
            if n % 2
            else rng.gauss(0, 1) * 2.0 ** rng.randint(-26, 15)
        )
        real = struct.unpack("<f", struct.pack("<f", real))[0]
        plain = (rng.randrange(1, 999) * rng.choice([8, 8, 8, 4]), *[real] * 3, rng.gauss(0, 1), bool(n & 1),
                 rng.randrange(-128, 128), rng.randrange(-(1 << 15), 1 << 15), rng.randrange(-(1 << 63), 1 << 63),
                 rng.choice([1, 4]) * rng.randrange(-(1 << 29), 1 << 29))  # fmt: skip
        j = (rng.randrange(-99, 99), (3, rng.randrange(-99, 99) * rng.choice([8, 8, 4])))
        k = ((rng.randrange(rng.choice([1 << 33, 1 << 20, 99, 99])), 2), (rng.randrange(99), 1))
        leaves = [ctypes.c_int64(v) for v in (j[0], j[1][1], k[0][0], k[1][0])]
        given = (*launch, *[t(v) for t, v in zip(types, plain)], *leaves)
        ended.append(compare(exported, (*plain, j, k), given, **shape))
    assert ended.count("") > 20
    words = " ".join(ended)
    for text in ("does not fit f16", "multiple of 8 bytes", "expected a multiple of 4", "does not fit 32 bits"):
        assert text in words, text


def programs() -> list[tuple[list[Any], int]]:
    """Return host programs that compute register 4 from registers 0 to 3 (two integers, two floats)."""
    made: list[tuple[list[Any], int]] = []
    for width in (8, 32, 64):
        made += [([[name, 4, [0, 1], width]], width) for name in host_program.BINARY]
        made += [([["cmpi", 4, [0, 1], [p, width]]], width) for p in host_program.PREDICATES]
        made += [([["absi", 4, [0], width]], width)]
        for other in (1, 8, 32, 64):
            names = ("extsi", "extui", "index_cast") if other > width else ("trunci",) if other < width else ()
            made += [([[name, 4, [0], [width, other]]], width) for name in names]
        made += [([[name, 5, [0], [width, kind]], ["addf", 4, [5, 2], kind]], width)
                 for name in ("sitofp", "uitofp") for kind in host_program.FLOATS]  # fmt: skip
    for kind in host_program.FLOATS:
        made += [([[name, 4, [2, 3], kind]], 64) for name in ("addf", "subf", "mulf", "divf")]
        made += [([[name, 4, [2], kind]], 64) for name in ("negf", "extf", "truncf")]
        made += [([["cmpf", 4, [2, 3], [p, kind]]], 64) for p in host_program.FLOAT_PREDICATES]
    made.append(([["const", 5, [], [-3, 64]], ["cmpi", 6, [0, 1], ["slt", 64]],
                  ["if", [7], [6], [[["addi", 8, [0, 5], 64]], [8], [["muli", 9, [1, 5], 64]], [9]]],
                  ["select", 4, [6, 7, 5], None]], 64))  # fmt: skip
    return made


EDGES = (0.0, -0.0, float("inf"), float("nan"), 65504.0, 65520.0, 1e-8, 2.0**-24, 3 * 2.0**-25)


@pytest.mark.slow
def test_every_instruction_computes_as_in_python(folder: Path) -> None:
    """Run each instruction as one function on random numbers and on the limits of its type."""
    parts = [f"#define CUTE_{n} 1" for n in ("LAUNCHES", "PARAMETERS")]
    parts += ["#define CUTE_PARAMETER_BYTES 64", "#include <cuda.h>", *[f"#include <{h}.h>" for h in
              ("math", "stdarg", "stdint", "stdio", "stdlib", "string")]]  # fmt: skip
    support = Path(sys.modules["cute_dialect.runtime.export.c_program"].__file__ or "").with_name("support.c")
    parts.append(support.read_text())
    cases = programs()
    for i, (code, _) in enumerate(cases):
        f = Function()
        arguments = [Scalar("a"), Scalar("b"), Scalar("x", "double"), Scalar("y", "double")]
        host = {"name": "h", "program": {"name": "h", "arguments": 4, "code": code, "launches": []}}
        result = write_program(f, host, arguments)[4]
        assert isinstance(result, Scalar)
        f.line(f"{'*real' if result.type == 'double' else '*whole'} = {result.text};")
        f.line("return CUTE_PLANNED;")
        body = "\n".join(f.body)
        parts.append(f"int f{i}(int64_t a, int64_t b, double x, double y, int64_t *whole, double *real) {{\n"
                     f"    (void)a, (void)b, (void)x, (void)y, (void)whole, (void)real;\n{body}\n}}")  # fmt: skip
    (folder / "all.c").write_text("\n".join(parts))
    library = built([folder / "all.c", Path(__file__).parents[2] / "support" / "fake_cuda.c"], folder / "all.so")
    rng = random.Random(7)
    refused = 0
    for i, (code, width) in enumerate(cases):
        edge = 1 << (width - 1)
        whole, real = ctypes.c_int64(), ctypes.c_double()
        for _ in range(40):
            a, b = (rng.choice([rng.randrange(-edge, edge), rng.randrange(-9, 10), -edge, edge - 1, 0]) for _ in "ab")
            x, y = (
                rng.choice([rng.gauss(0, 1), rng.gauss(0, 1) * 2.0 ** rng.randrange(-30, 20), *EDGES]) for _ in "xy"
            )
            given = (ctypes.c_int64(a), ctypes.c_int64(b), ctypes.c_double(x), ctypes.c_double(y))
            ended = getattr(library, f"f{i}")(*given, ctypes.byref(whole), ctypes.byref(real))
            run = host_program._Evaluator("h", {0: a, 1: b, 2: x, 3: y})  # pyright: ignore[reportPrivateUsage]
            try:
                run.run(code)
            except host_program.HostOverflow:
                assert ended == 1, (code, a, b)
                refused += 1
                continue
            except host_program.HostError:
                assert ended == 2, (code, a, b)
                refused += 1
                continue
            wanted = run.values[4]
            assert ended == 0, (code, a, b)
            if isinstance(wanted, float):
                assert repr(real.value) == repr(wanted), (code, a, b, x, y)
            else:
                assert whole.value == wanted, (code, a, b, x, y)
    assert refused > 100


@pytest.mark.slow
def test_the_python_module_runs(add: CompiledModule, tmp_path: Path) -> None:
    files = add.kernel("add").export(tmp_path / "out", name="my_add")
    assert [*files][:5] == ["my_add.ptx", "my_add.cubin", "my_add.h", "my_add.c", "my_add.py"]
    script = (
        "import numpy as np, my_add\n"
        "a, b, c = np.ones((5, 6), 'f4'), np.full((5, 6), 2, 'f4'), np.zeros((5, 6), 'f4')\n"
        "my_add.launch(a, b, mC=c, device='cpu')\nprint(c.sum(), my_add.launch.__doc__)\n"
    )
    again = compile_cute(str(EXAMPLES / "elementwise_add.mlir"), keep_stages=True)
    files = again.kernel("add").export(tmp_path / "out", ("py", "mlir"), name="my_add")
    assert files["my_add.mlir"].read_text().count("gpu.func") == 2
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "out", capture_output=True, text=True, check=False
    )
    assert ran.stdout.startswith("90.0 ") and "``mA``: ``!cute.memref<f32" in ran.stdout, ran.stderr
    assert not [p.name for p in (tmp_path / "out").rglob(".*")]


PROGRAM = """
#include "add.h"
#include "class.h"

#include <cstdio>

typedef int launched(const char *, const unsigned *, void **), encoded(const long long *, unsigned char *);
extern "C" void fake_listen(launched *, encoded *);

static int told(const char *kernel, const unsigned *numbers, void **) {
    return std::printf("%s %u\\n", kernel, numbers[0]) < 0;
}

int main() {
    fake_listen(told, nullptr);
    add_module *add;
    class_module *numbers;
    CUstream stream = reinterpret_cast<CUstream>(7);
    if (add_load(&add) || class_load(&numbers)) return 1;
    cute_tensor_2 a = cute_row_major_2(0x7f0000000000, 17, 129), b = cute_row_major_2(0x7f0000100000, 17, 128);
    if (add_launch(add, a, a, a, stream)) return 2;
    if (add_launch(add, a, b, a, stream) != CUDA_ERROR_INVALID_VALUE) return 3;
    std::puts(add_error());
    unsigned grid[3] = {5, 1, 1}, block[3] = {32, 1, 1};
    if (class_launch(numbers, grid, block, 0, 8, 1, 1, 1, 1, true, 1, 1, 1, 4, 1, 8, 1, 1, stream)) return 4;
    return add_unload(add) || class_unload(numbers) ? 5 : 0;
}
"""


@pytest.mark.slow
def test_several_kernels_in_a_program_of_cpp(add: CompiledModule, tmp_path: Path) -> None:
    """Headers are valid C++, also for names that are C++ keywords, and the sanitizers report nothing."""
    add.kernel("add").export(tmp_path, ("c",), name="add")
    compile_cute(NUMBERS).kernel("all").export(tmp_path, ("c",), name="class")
    (tmp_path / "main.cpp").write_text(PROGRAM)
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-isystem{headers()}", "-c"]
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", *sanitize]
    fake = Path(fake_driver.__file__).with_name("fake_cuda.c")
    for source in ("add.c", "class.c", str(fake), "main.cpp"):
        made = subprocess.run([compiler(), *flags, source], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr[:3000]
    objects = ["add.o", "class.o", "fake_cuda.o", "main.o"]
    subprocess.run([compiler(), *sanitize[:2], *objects, "-lm", "-lstdc++", "-o", "main"], cwd=tmp_path, check=True)
    ran = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr[:3000]
    first, refused, last = ran.stdout.splitlines()
    assert (first.split()[0], last) == ("add", "all 5")
    assert refused == "host function @launch: B and C must have the same shape"


@cute.kernel
def scale_kernel(x: cute.Tensor, by: cute.Float32) -> None:
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = x[i] * by


@cute.jit
def scale(x: cute.Tensor, by: cute.Float32) -> None:
    scale_kernel(x, by).launch(grid=cute.ceil_div(cute.size(x), 128), block=128)


@pytest.mark.slow
def test_a_function_of_the_language(folder: Path) -> None:
    made = cute.compile(scale, cute.runtime.from_dlpack(np.zeros(8, "f4")).mark_layout_dynamic(), cute.Float32(1.0))
    names = [*made.export(folder / "lang", ("ptx", "mlir", "c"), name="scale")]
    assert names == ["scale.ptx", "scale.mlir", "scale.h", "scale.c"]
    header = (folder / "lang" / "scale.h").read_text()
    assert "CUresult scale_launch(const scale_module *module, cute_tensor_1 x, float by, CUstream stream);" in header
    exported = Exported(made.kernel(cpu=False), folder, "scaled")
    x = FakeArray((300,), (1,))
    assert not compare(exported, (x, 2.5), (tensor(x), ctypes.c_float(2.5)))


def test_an_object_file_that_other_programs_link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cute.compile(scale, cute.runtime.from_dlpack(np.zeros(8, "f4")).mark_layout_dynamic(), cute.Float32(1.0))
    monkeypatch.setenv("CC", compiler())
    files = made.export_to_c(folder / "objects", "scale_object", function_prefix="scale")
    assert [*files] == ["scale_object.h", "scale_object.o"]
    assert sorted(p.name for p in (folder / "objects").iterdir()) == sorted(files)
    assert "CUresult scale_launch(const scale_module *module" in files["scale_object.h"].read_text()
    (folder / "user.c").write_text(
        '#include "objects/scale_object.h"\n'
        "void *launcher(void);\nvoid *launcher(void) { return (void *)&scale_launch; }\n"
    )
    fake = Path(__file__).parents[2] / "support" / "fake_cuda.c"
    library = folder / "user.so"
    command = [
        compiler(),
        "-shared",
        "-fPIC",
        f"-isystem{headers()}",
        str(folder / "user.c"),
        str(files["scale_object.o"]),
    ]
    subprocess.run([*command, str(fake), "-o", str(library), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.launcher.restype = ctypes.c_void_p
    assert loaded.launcher() == ctypes.cast(loaded.scale_launch, ctypes.c_void_p).value
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ExportError, match="export_to_c: there is no C compiler 'no-such-compiler'; install one"):
        made.export_to_c(folder / "objects", "scale_object")


def test_exported_file_compiles_as_cpp(folder: Path, add: CompiledModule) -> None:
    """The generated header is also valid C++."""
    add.kernel("add").export(folder, ("c",), name="plus")
    (folder / "user.cpp").write_text('#include "plus.h"\nauto f = &plus_launch;\nauto t = cute_row_major_2(0, 2, 3);\n')
    flags = ["-x", "c++", "-std=c++17", "-Wall", "-Werror", f"-I{headers()}", "-c", "-o", str(folder / "user.o")]
    command = [compiler(), *flags, str(folder / "user.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


ERRORS = [
    ("export: formats must be one or more of ptx, cubin, mlir, c, py, got 'exe'", {"formats": ("exe",)}),
    (
        "export: formats must be one or more of ptx, cubin, mlir, c, py, got 'Cubbin'; did you mean 'cubin'?",
        {"formats": ["c", "Cubbin"]},
    ),
    ("export: formats must be one or more of ptx, cubin, mlir, c, py, got None", {"formats": None}),
    ("export: formats must be one or more of ptx, cubin, mlir, c, py, got none", {"formats": ()}),
    ("export: Python cannot import a module whose name is the keyword 'class'; pass name=", {"name": "class"}),
    ("export: the name must consist of letters, digits and _, got 'a-b'; pass name=", {"name": "a-b"}),
    (
        "export: the name has 300 characters, a file name has at most 128; give a shorter name=",
        {"name": "x" * 300},
    ),
    ("export: @add was compiled without its stages; compile with keep_stages=True", {"formats": "mlir"}),
]


@pytest.mark.parametrize("message,given", ERRORS)
def test_invalid_exports_are_rejected(message: str, given: dict[str, Any], add: CompiledModule, tmp_path: Path) -> None:
    with pytest.raises(ExportError) as e:
        add.kernel("add").export(tmp_path / "x", **given)
    assert str(e.value) == message and not (tmp_path / "x").exists()


def test_kernels_without_machine_code_are_not_exported(tmp_path: Path) -> None:
    base = compile_cute(NUMBERS, emit="base").kernel("all")
    for form in ("c", "ptx"):
        with pytest.raises(ExportError, match=r"@all has no machine code: compile it with emit='auto'$"):
            base.export(tmp_path / "x", (form,))
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"^export: cannot write .*/file.*; choose another folder$"):
        compile_cute(NUMBERS).kernel("all").export(tmp_path / "file", ("ptx",))


@pytest.mark.parametrize("folder", ["\0", 3, None])
def test_folders_must_be_paths(folder: Any, add: CompiledModule) -> None:
    with pytest.raises(ExportError) as e:
        add.kernel("add").export(folder)
    assert str(e.value) == f"export: folder must be a path, got {folder!r}"
    with pytest.raises(ExportError) as e:
        compile_object({}, "add", folder, "add")
    assert str(e.value) == f"export_to_c: file_path must be a path, got {folder!r}"
    with pytest.raises(LoweringError, match="cannot read it: embedded null byte"):
        compile_cute("\0", emit="base")


def test_two_dynamic_leaves_in_a_mode(add: CompiledModule, tmp_path: Path) -> None:
    text = NUMBERS.replace('!cute.int_tuple<"(?,(3,?{i64 div=8}))">', '!cute.memref<f32, gmem, "((?,?),2):((1,?),?)">')
    with pytest.raises(
        ExportError, match="its extents cannot be derived from an array, it has more than one dynamic leaf"
    ):
        compile_cute(text).kernel("all").export(tmp_path, ("c",))
    assert json.dumps(add.manifest)
