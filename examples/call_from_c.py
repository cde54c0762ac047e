"""A kernel for C programs: exported as a header and a source file, built with cc, and called from C.

python examples/call_from_c.py --folder out     # keeps axpy.h, axpy.c, main.c and, on a machine with a GPU, main

The C file contains the machine code and depends only on the CUDA driver. It checks arguments as a Python call does.
"""

# ruff: noqa: F821
# RUN: %python %s --folder %t | FileCheck %s
# CHECK: CUresult axpy_launch(const axpy_module *module, cute_tensor_1 x, cute_tensor_1 y, float a, CUstream stream);
# CHECK: {{all correct|no GPU}}

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import cute_dialect.lang as cute

MAIN = r"""
#include "axpy.h"
#include <stdio.h>
#include <stdlib.h>

static void ok(CUresult code) {
    if (code == CUDA_SUCCESS) return;
    fprintf(stderr, "error %d: %s\n", code, axpy_error());
    exit(1);
}

int main(void) {
    enum { N = 100003 };
    static float x[N], y[N], z[N];
    CUdevice device;
    CUcontext context;
    CUdeviceptr memory[2];
    axpy_module *module;
    for (int i = 0; i < N; i++) x[i] = (float)(i % 17), y[i] = (float)(i % 5);
    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSetCurrent(context));
    for (int i = 0; i < 2; i++) ok(cuMemAlloc(&memory[i], sizeof x));
    ok(cuMemcpyHtoD(memory[0], x, sizeof x));
    ok(cuMemcpyHtoD(memory[1], y, sizeof y));
    ok(axpy_load(&module));
    ok(axpy_launch(module, cute_row_major_1(memory[0], N), cute_row_major_1(memory[1], N), 2.0f, 0));
    ok(cuMemcpyDtoH(z, memory[1], sizeof z));
    for (int i = 0; i < N; i++)
        if (z[i] != 2 * x[i] + y[i]) return printf("y[%d] is %g\n", i, z[i]), 1;
    printf("%d numbers from C, all correct\n", N);
    if (axpy_launch(module, cute_row_major_1(memory[0], 7), cute_row_major_1(memory[1], 8), 2.0f, 0) == CUDA_SUCCESS)
        return 1;
    printf("refused: %s\n", axpy_error());
    ok(axpy_unload(module));
    return 0;
}
"""


@cute.kernel
def axpy_kernel(x: cute.Tensor, y: cute.Tensor, a: cute.Float32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < cute.size(y):
        y[i] = a * x[i] + y[i]


@cute.jit
def axpy(x: cute.Tensor["f32", "n"], y: cute.Tensor["f32", "n"], a: cute.Float32):
    axpy_kernel(x, y, a).launch(grid=cute.ceil_div(cute.size(y), 128), block=128)


def headers() -> Path:
    """Return the folder of cuda.h, from the CUDA toolkit or from the pip package that provides ptxas."""
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
    if (toolkit / "cuda.h").exists():
        return toolkit
    package = find_spec("nvidia")
    roots = list(package.submodule_search_locations or []) if package is not None else []
    found = [p.parent for root in roots for p in Path(root).glob("*/include/cuda.h")]
    if not found:
        raise SystemExit("call_from_c: cuda.h was not found; run pip install nvidia-cuda-runtime, or set CUDA_HOME")
    return found[0]


def build_and_run(folder: Path) -> None:
    """Export the kernel, write a C program next to it, build both, and run the program if there is a GPU."""
    x = np.zeros(8, np.float32)
    files = cute.compile(axpy, x, x, cute.Float32(1.0), chip="sm_90a").export(folder, ("c",), name="axpy")
    functions = [line for line in files["axpy.h"].read_text().splitlines() if line.startswith("CUresult")]
    print("\n".join(functions), flush=True)
    (folder / "main.c").write_text(MAIN)

    build = ["cc", "-std=c11", "-O2", "-Wall", f"-I{headers()}"]
    if shutil.which("nvidia-smi") is None:
        subprocess.run([*build, "-c", "axpy.c", "main.c"], cwd=folder, check=True)
        print("built; there is no GPU here to run it")
        return
    driver = re.search(r"libcuda\.so\.1 .*=> (\S+)", subprocess.check_output(["ldconfig", "-p"], text=True))
    library = driver[1] if driver else "-lcuda"
    subprocess.run([*build, "axpy.c", "main.c", library, "-lm", "-o", "main"], cwd=folder, check=True)
    subprocess.run(["./main"], cwd=folder, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep the files there")
    args = parser.parse_args()
    if args.folder is not None:
        build_and_run(args.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        build_and_run(Path(folder))


if __name__ == "__main__":
    main()
