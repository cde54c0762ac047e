"""Plans in folders: what was run is there, and runs in another process; no compiler is imported to launch it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cute_dialect import op

GENERATOR = np.random.default_rng(13)
F16 = {"element": "f16", "layout": "row"}


def integers(*shape: int) -> np.ndarray:
    return GENERATOR.integers(-2, 3, shape).astype(np.float16)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = op.Gemm(**F16, layout_C="column")
    plan.activation = "relu"
    a, b, c = integers(40, 64), integers(64, 72), np.asfortranarray(integers(40, 72))
    plan.run(a, b, device="cpu")
    plan.run(a, b, c, alpha=0.5, beta=2.0, device="cpu")
    plan.run(integers(33, 7), integers(7, 65), np.asfortranarray(integers(33, 65)), beta=1.0, device="cpu")
    folder = tmp_path_factory.mktemp("saved") / "plan"
    assert plan.save(folder) == str(folder)
    plan.save(folder)  # a plan's folder is replaced
    return folder


def test_what_was_run_is_run(saved: Path) -> None:
    plan = op.load(saved)
    assert len(plan.kernels) == 3 and plan.kernels[0].recipe.name in json.loads((saved / "plan.json").read_text())[
        "kernels"
    ][0]["folder"]  # fmt: skip
    a, b, c = integers(40, 64), integers(64, 72), np.asfortranarray(integers(40, 72))
    product = a.astype(float) @ b
    done = plan.run(a, b, device="cpu")
    assert done.D.flags.f_contiguous and np.array_equal(done.D, product.clip(min=0))
    later = plan.run(a, b, c, alpha=-3.0, beta=0.25, device="cpu", sync=False)
    plan.sync()
    assert np.array_equal(later.D, (-3.0 * product + 0.25 * c).clip(min=0))
    x, y, z = integers(5, 9), integers(9, 3), np.asfortranarray(integers(5, 3))
    assert np.array_equal(plan.run(x, y, z, beta=1.0, device="cpu").D, (x.astype(float) @ y + z).clip(min=0))


def test_what_was_not_run_is_refused(saved: Path, tmp_path: Path) -> None:
    plan = op.load(saved)
    with pytest.raises(op.UnsupportedError, match="expected a call that is saved"):
        plan.run(integers(40, 64), integers(64, 72), bias=np.zeros(72, np.float32), device="cpu")
    with pytest.raises(op.DtypeError, match="expected A of f16, row-major, as planned, got f32"):
        plan.run(integers(4, 4).astype(np.float32), integers(4, 4), device="cpu")
    with pytest.raises(op.UnsupportedError, match="expected a plan that was run"):
        op.Gemm(**F16).save(tmp_path / "nothing")
    (tmp_path / "file").write_text("mine")
    fresh = op.Gemm(**F16)
    fresh.run(integers(8, 8), integers(8, 8), device="cpu")
    with pytest.raises(op.UnsupportedError, match="exists and holds no plan; it is left alone"):
        fresh.save(tmp_path)
    with pytest.raises(op.UnsupportedError, match=r"expected a plan \(Gemm.save writes one\)"):
        op.load(tmp_path)


PROGRAM = """
import sys
import numpy as np
from cute_dialect import op
from cute_dialect.runtime import driver as cuda

class Gpu:
    launches = []
    def capability(self, device): return 9, 0
    def enter(self, device): return 0
    def smem_limit(self, device): return 232448
    last = 4096
    def allocate(self, size):
        self.last += 1 << 20
        return self.last
    def get_function(self, module, name): return name
    def encode_tiled(self, *_): return bytes(128)
    def launcher(self, function, *_): return lambda: (self.launches.append(function), (0,))[1]
    def __getattr__(self, name): return lambda *_: 1

gpu = Gpu()
cuda.driver = lambda: gpu
plan = op.load({folder!r})
a, b = np.ones((40, 64), np.float16), np.ones((64, 72), np.float16)
plan.run(a, b)
print(gpu.launches, sorted(m for m in ("xdsl", "mlir", "torch") if m in sys.modules))
"""


def test_launching_imports_no_compiler(saved: Path) -> None:
    program = PROGRAM.format(folder=str(saved))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "['gemm'] []\n", done.stdout + done.stderr
