"""Compile the kernels of the GPU tests for a machine that has a GPU but no compiler.

python test/gpu/build.py DIR [--chip sm_90a]        on the machine with the compiler
CUTE_GPU_ARTIFACTS=DIR pytest test/gpu              on the machine with the GPU
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.execute.array_call import RowKernel

TEST = Path(__file__).parents[1]


def build_tma(folder: str, chip: str) -> list[str]:
    """Build the TMA copies into ``tma/NAME`` and ``tma/tma_copy`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from tma_support import build_all

    from cute_dialect.pipelines import compile as compile_cute

    said = build_all(folder, chip)
    module = compile_cute(TEST / "examples" / "tma_copy.mlir", chip=chip, save=Path(folder) / "tma" / "tma_copy")
    return [*said, f"tma/tma_copy: {module.report.strip()}"]


def build_im2col(folder: str, chip: str) -> list[str]:
    """Build im2col copies into ``im2col/NAME``, ``NAME_copy`` and ``NAME_tiled_copy``. Return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from im2col_support import CASES, copy_text, text

    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for case in CASES:
        texts = {"": text(case), "_copy": copy_text(case, False), "_tiled_copy": copy_text(case, True)}
        for suffix, kernel in texts.items():
            name = case.name + suffix
            module = compile_cute(kernel, chip=chip, filename=f"{name}.mlir")
            module.save(Path(folder) / "im2col" / name)
            said.append(f"im2col/{name}: {module.report.strip()}")
    return said


def build_negate(folder: str, chip: str) -> list[str]:
    """Build ``wgmma`` kernels with negated operands into ``negate/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from negate_support import CASES, text

    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for name, case in CASES.items():
        module = compile_cute(text(*case), chip=chip, save=Path(folder) / "negate" / name)
        said.append(f"negate/{name}: {module.report.strip()}")
    return said


def build_gemm_fallback(folder: str, chip: str) -> list[str]:
    """Build the fallback kernels of the Hopper GEMM into ``gemm_fallback/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from gemm_fallback_support import CASES

    from cute_dialect.kernels.gemm import gemm_text
    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for name, (config, _) in CASES.items():
        to = name.replace(" ", "_")
        module = compile_cute(gemm_text(config), chip=chip, filename=f"{to}.mlir", keep_stages=False)
        module.save(Path(folder) / "gemm_fallback" / to)
        said.append(f"gemm_fallback/{to}: {module.report.strip()}")
    return said


def build_copy_atoms(folder: str, chip: str) -> list[str]:
    """Build one kernel per copy atom into ``copy_atoms`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    import copy_atom_kernels

    return [copy_atom_kernels.build(folder, chip)]


def build_mma_atoms(folder: str, chip: str) -> list[str]:
    """Build one kernel per MMA atom into ``mma_atoms/KIND`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    import mma_atom_kernels

    return mma_atom_kernels.build(str(Path(folder) / "mma_atoms"), chip)


def build_sync(folder: str, chip: str) -> list[str]:
    """Build a kernel for each machine-level op into ``sync/NAME`` and return their names."""
    sys.path.insert(0, str(TEST / "support"))
    from sync_kernels import CASES

    from cute_dialect.pipelines import compile as compile_cute

    for name, case in CASES.items():
        compile_cute(case.text, chip=chip).save(str(Path(folder) / "sync" / name))
    return [f"sync: {len(CASES)} kernels"]


def build_gemm(folder: str, chip: str) -> list[str]:
    """Build the kernels of ``cute_dialect.op.functions.gemm`` into ``gemm/NAME`` and return the output of ptxas."""
    from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
    from cute_dialect.tools.bench.cases.gemm import build

    sys.path.insert(0, str(TEST / "support"))
    from batched_products import texts

    said = build(str(Path(folder) / "gemm"), chip)
    configs = [AmpereConfig(e, majors=("k", b)) for e in ("f16", "bf16") for b in ("k", "mn")]
    return said + _compiled_all("gemm", [*((c.name, ampere_gemm_text(c)) for c in configs), *texts()], folder, chip)


def _compiled_all(group: str, texts: Iterable[tuple[str, str]], folder: str, chip: str) -> list[str]:
    """Compile kernels in parallel into one subfolder and return the output of ptxas."""
    jobs = [(group, name, text, folder, chip) for name, text in texts]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(_compiled, jobs))


def build_fused(folder: str, chip: str) -> list[str]:
    """Build the GEMMs with function epilogues into ``fused/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from fused_products import texts

    return _compiled_all("fused", texts(), folder, chip)


def _compiled(job: tuple[str, str, str, str, str]) -> str:
    """Compile a kernel into a folder and return the output of ptxas."""
    from cute_dialect.pipelines import compile as compile_cute

    group, name, text, folder, chip = job
    module = compile_cute(text, chip=chip, filename=f"{name}.mlir", keep_stages=False)
    module.save(Path(folder) / group / name)
    return f"{group}/{name}: {module.report.strip()}"


def build_torch(folder: str, chip: str) -> list[str]:
    """Build the GEMMs of the PyTorch gradient tests into ``torch/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from torch_calls import texts

    return _compiled_all("torch", texts(), folder, chip)


def build_repeated(folder: str, chip: str) -> list[str]:
    """Build the kernels of replayed calls into ``repeated/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from repeated_calls import texts

    return _compiled_all("repeated", texts(), folder, chip)


def build_types(folder: str, chip: str) -> list[str]:
    """Build a GEMM for every element type into ``types/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from typed_products import texts

    return _compiled_all("types", ((name, text()) for name, text in texts()), folder, chip)


def build_type_kernels(folder: str, chip: str) -> list[str]:
    """Build the kernels that serve a single element type into ``type_kernels/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from type_kernels import KERNELS

    return _compiled_all("type_kernels", ((name, text()) for name, text in KERNELS.items()), folder, chip)


def build_grouped(folder: str, chip: str) -> list[str]:
    """Build the grouped GEMM kernels into ``grouped/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from grouped_calls import texts

    return _compiled_all("grouped", texts().items(), folder, chip)


def build_conv(folder: str, chip: str) -> list[str]:
    """Build the convolution kernels into ``conv/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from conv_calls import texts

    return _compiled_all("conv", texts().items(), folder, chip)


def build_plans(folder: str, chip: str) -> list[str]:
    """Build the kernels of planned GEMMs into ``plans/NAME``, in parallel, and return the output of ptxas."""
    import os
    from concurrent.futures import ThreadPoolExecutor

    sys.path.insert(0, str(TEST / "support"))
    from planned_products import texts
    from visited_products import texts as visited_texts

    from cute_dialect.pipelines import compile as compile_cute
    from cute_dialect.pipelines.compilation import CompileRequest
    from cute_dialect.pipelines.compiler import compile_in_worker

    def made(kernel: tuple[str, Callable[[], str]]) -> str:
        name, text = kernel[0], kernel[1]()
        if chip == "sm_90a":
            module = compile_in_worker(CompileRequest(text, filename=f"{name}.mlir"))
        else:
            module = compile_cute(text, chip=chip)
        module.save(Path(folder) / "plans" / name)
        return f"plans/{name}: {module.report.strip()}"

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(made, dict((*texts(), *visited_texts())).items()))


def build_several(folder: str, chip: str) -> list[str]:
    """Build the host functions with several launches into ``several`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from several_launches import ALL

    from cute_dialect.pipelines import compile as compile_cute

    module = compile_cute(ALL, chip=chip, filename="several.mlir", save=Path(folder) / "several")
    return [f"several: {module.report.strip()}"]


def build_export(folder: str, chip: str) -> list[str]:
    """Export the Hopper GEMM as C into ``export/gemm.c`` and return the output of ptxas."""
    from cute_dialect.pipelines import compile as compile_cute

    module = compile_cute(TEST / "examples" / "gemm_sm90.mlir", chip=chip)
    module.kernel("launch").export(Path(folder) / "export", ("c",), name="gemm")
    return [f"export/gemm.c: {module.report.strip()}"]


def build_autotune(folder: str, chip: str) -> list[str]:
    """Build the candidates of examples/autotune.py into the compile cache ``autotune``."""
    import subprocess

    what = f"{TEST.parent / 'examples' / 'autotune.py'}:row_sum"
    command = [sys.executable, "-m", "cute_dialect.tools.cute_bench", "tune", what, "--chip", chip]
    done = subprocess.run([*command, "--build", str(Path(folder) / "autotune")], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [f"autotune: {done.stdout.strip()}"]


def build_sweep(folder: str, chip: str) -> list[str]:
    """Build a small sweep, five kernels for each of twelve problems, into ``sweep/NAME``. Return its messages."""
    from cute_dialect.op.select.cost_model import COSTS
    from cute_dialect.tools.bench.sweep import build, plan

    said: list[str] = []
    build(str(Path(folder) / "sweep"), chip, plan(12, 3, COSTS, 4), deadline=float("inf"), say=said.append)
    return said


def build_op_rows(folder: str, chip: str) -> list[str]:
    """Build the kernels of the row functions into ``op_rows/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from row_calls import kernels

    jobs = [(kernel, folder, chip, "op_rows") for kernel in kernels().values()]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(_compiled_rows, jobs))


def build_elementwise(folder: str, chip: str) -> list[str]:
    """Build the kernels of the elementwise functions into ``elementwise/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from elementwise_calls import kernels

    jobs = [(kernel, folder, chip, "elementwise") for kernel in kernels().values()]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(_compiled_rows, jobs))


def _compiled_rows(job: tuple[RowKernel, str, str, str]) -> str:
    """Compile one row or attention kernel and return the output of ptxas."""
    from cute_dialect.pipelines import compile as compile_cute

    kernel, folder, chip, part = job
    module = compile_cute(kernel.text(), chip=chip, filename=f"{kernel.name}.mlir", keep_stages=False)
    module.save(Path(folder) / part / kernel.name)
    return f"{part}/{kernel.name}: {module.report.strip()}"


def build_attention(folder: str, chip: str) -> list[str]:
    """Build the attention kernels into ``attention/NAME`` and return the output of ptxas."""
    sys.path.insert(0, str(TEST / "support"))
    from attention_calls import kernels

    jobs = [(kernel, folder, chip, "attention") for kernel in kernels()]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(_compiled_rows, jobs))


def build_shipped(folder: str, chip: str, *, name: str) -> list[str]:
    """Build the kernels of ``cute-bench NAME`` into ``NAME`` and return the output of ptxas."""
    from cute_dialect.tools.bench.cases.all import PARTS as SHIPPED

    build = SHIPPED[name].build
    assert build is not None
    return build(str(Path(folder) / name), chip)


PARTS: dict[str, Callable[[str, str], list[str]]] = {
    "gemm": build_gemm, "plans": build_plans, "sweep": build_sweep, "types": build_types, "sync": build_sync,
    "attention": build_attention, "copy_atoms": build_copy_atoms, "mma_atoms": build_mma_atoms,
    "type_kernels": build_type_kernels, "op_rows": build_op_rows, "grouped": build_grouped, "fused": build_fused,
    "torch": build_torch, "repeated": build_repeated, "several": build_several, "gemm_fallback": build_gemm_fallback,
    "tma": build_tma, "im2col": build_im2col, "negate": build_negate, "elementwise": build_elementwise,
    "conv": build_conv, "export": build_export, "autotune": build_autotune,
    **{n: partial(build_shipped, name=n) for n in ("elementwise_add", "transpose", "rows", "sgemm", "gemm_sm80")},
}  # fmt: skip
"""Folder below DIR -> function that builds it.  The longest come first; each runs in its own process."""


def main() -> int:
    """Build every group of kernels. Return exit status 1 if a build failed, otherwise 0."""
    parser = argparse.ArgumentParser(description="Compile what the GPU tests run.")
    parser.add_argument("folder", help="where to")
    parser.add_argument("--chip", default="sm_90a")
    options = parser.parse_args()
    failed = 0
    with ProcessPoolExecutor(min(len(PARTS), os.cpu_count() or 1), get_context("spawn")) as pool:
        running = {pool.submit(build, options.folder, options.chip): part for part, build in PARTS.items()}
        for done in as_completed(running):
            try:
                print("\n".join(done.result()), flush=True)
            except Exception as e:
                failed = 1
                print(f"{running[done]}: {type(e).__name__}: {e}", file=sys.stderr, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
