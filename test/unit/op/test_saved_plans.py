"""Saved plans run in another process and do not import a compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.runtime import load

GENERATOR = np.random.default_rng(13)
F16: dict[str, Any] = {"element": "f16", "layout": "row"}


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
    return folder


@pytest.mark.slow
def test_loaded_plans_run_saved_kernels(saved: Path) -> None:
    plan = op.load(saved)
    document = json.loads((saved / "plan.json").read_text())
    assert isinstance(plan, op.Gemm) and plan.activation == "relu" and len(document["kernels"]) == 3
    assert sorted(document["kernels"]) == sorted(x.name for x in saved.iterdir() if x.is_dir())
    a, b, c = integers(40, 64), integers(64, 72), np.asfortranarray(integers(40, 72))
    product = a.astype(float) @ b
    done = plan.run(a, b, device="cpu")
    assert done.D.flags.f_contiguous and np.array_equal(done.D, product.clip(min=0))
    later = plan.run(a, b, c, alpha=-3.0, beta=0.25, device="cpu", sync=False)
    plan.sync()
    assert np.array_equal(later.D, (-3.0 * product + 0.25 * c).clip(min=0))
    assert plan.ptx.startswith("//") and plan.ptx == load(saved / document["kernels"][1]).ptx
    x, y, z = integers(5, 9), integers(9, 3), np.asfortranarray(integers(5, 3))
    assert np.array_equal(plan.run(x, y, z, beta=1.0, device="cpu").D, (x.astype(float) @ y + z).clip(min=0))


@pytest.mark.slow
def test_loaded_gemms_reject_unsaved_kernels(saved: Path) -> None:
    plan = op.load(saved)
    with pytest.raises(op.UnsupportedError, match="which the folder does not have"):
        plan.run(integers(40, 64), integers(64, 72), bias=np.zeros(72, np.float32), device="cpu")
    with pytest.raises(op.DtypeError, match="A has f32, row-major; the plan needs f16, row-major"):
        plan.run(integers(4, 4).astype(np.float32), integers(4, 4), device="cpu")


def test_refused_folders(tmp_path: Path) -> None:
    with pytest.raises(op.UnsupportedError, match="the plan was never run"):
        op.Gemm(**F16).save(tmp_path / "nothing")
    (tmp_path / "file").write_text("mine")
    fresh = op.Gemm(**F16)
    fresh.run(integers(8, 8), integers(8, 8), device="cpu")
    with pytest.raises(op.UnsupportedError, match="exists and does not contain a plan"):
        fresh.save(tmp_path)
    with pytest.raises(op.UnsupportedError, match=r"is not a plan .* Gemm.save\(\) writes one"):
        op.load(tmp_path)


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, list | tuple) else (x,)


class Kind(NamedTuple):
    """A plan, a saved call, a call of another size for the same kernels, an unsupported call, and a GPU call."""

    plan: Callable[[], Any]
    run: Callable[[Any], Any]
    other: Callable[[Any], Any]
    reference: Callable[[Any], Any]
    refused: Callable[[Any], Any]
    launch: str


def listed() -> op.GroupedGemm:
    return op.GroupedGemm(**F16, precompute_mode="host")


def cut() -> op.GroupedGemm:
    plan = op.GroupedGemm(**F16)
    plan.activation = "relu"
    return plan


def images() -> op.Conv2d:
    plan = op.Conv2d("wgrad", element="f16", alpha=2.0)
    plan.iterator_algorithm = "analytic"
    return plan


def attention() -> op.Attention:
    return op.Attention(element="f16", head_size=64, causal=True, lse=True)


GROUPS, MORE = (
    ([integers(17, 24), integers(5, 8)], [integers(24, 16), integers(8, 40)]),
    ([integers(9, 16)], [integers(16, 24)]),
)
ROWS, EXPERTS = integers(90, 24), integers(3, 24, 32)
IMAGES, GRADIENTS = integers(2, 6, 6, 8), integers(2, 6, 6, 16)
HEADS, LONGER = ([integers(1, 1, n, 64) / np.float16(4) for _ in range(3)] for n in (20, 70))
PACKED = dict.fromkeys(("cu_seqlens_q", "cu_seqlens_k"), np.array([0, 8, 20], np.int32))
KINDS = {
    "a list": Kind(
        listed,
        lambda plan: plan.run(*GROUPS, device="cpu").D,
        lambda plan: plan.run(*MORE, device="cpu").D,
        lambda plan: plan.reference(*MORE),
        lambda plan: plan.run(*MORE, alpha=2.0, device="cpu"),
        "plan.run([a[:, :16].copy()], [b[:16]])",
    ),
    "rows that are cut": Kind(
        cut,
        lambda plan: plan.run(ROWS[:40], EXPERTS, offs=np.array([7, 7, 40], np.int32), device="cpu").D,
        lambda plan: plan.run(ROWS, EXPERTS, offs=np.array([7, 20, 90], np.int32), device="cpu").D,
        lambda plan: np.concatenate(plan.reference(ROWS, EXPERTS, offs=[7, 20, 90])),
        lambda plan: plan.run(ROWS, EXPERTS, bias=np.ones(32, np.float16), offs=np.zeros(3, np.int32), device="cpu"),
        "plan.run(a[:, :24].copy(), np.ones((3, 24, 32), np.float16), offs=[7, 7, 40])",
    ),
    "images": Kind(
        images,
        lambda plan: plan.run(GRADIENTS, IMAGES, padding=1, size=(16, 3, 3, 8), device="cpu").D,
        lambda plan: plan.run(GRADIENTS[:1], IMAGES[:1], padding=2, size=(16, 5, 5, 8), device="cpu").D,
        lambda plan: plan.reference(GRADIENTS[:1], IMAGES[:1], padding=2, size=(16, 5, 5, 8)),
        lambda plan: plan.run(GRADIENTS, IMAGES, alpha=1.0, padding=1, size=(16, 3, 3, 8), device="cpu"),
        "plan.run(a.reshape(1, 8, 5, 64), a.reshape(1, 8, 5, 64), padding=1, size=(64, 3, 3, 64))",
    ),
    "attention": Kind(
        attention,
        lambda plan: (done := plan.run(*HEADS, device="cpu")) and (done.out, done.lse),
        lambda plan: (done := plan.run(*LONGER, device="cpu")) and (done.out, done.lse),
        lambda plan: plan.reference(*LONGER),
        lambda plan: plan.run(*[x[0, 0][:, None] for x in HEADS], **PACKED, device="cpu"),
        "plan.run(*[a.reshape(1, 1, 40, 64)] * 3)",
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Kind, Path, Any]:
    """Run and save a plan of each other class, and return its folder."""
    kind = KINDS[request.param]
    plan = kind.plan()
    done = kind.run(plan)
    return kind, Path(plan.save(tmp_path_factory.mktemp("kinds") / "plan")), done


@pytest.mark.slow
def test_saved_plan_classes(folder: tuple[Kind, Path, Any]) -> None:
    kind, path, done = folder
    plan = op.load(path)
    for found, want in zip(as_tuple(kind.run(plan)), as_tuple(done)):
        assert found.dtype == want.dtype and np.array_equal(found, want)
    for found, want in zip(as_tuple(kind.other(plan)), as_tuple(kind.reference(plan))):
        assert np.abs(found - want).max() <= (2e-3 if isinstance(plan, op.Attention) else 0)
    assert plan.ptx.startswith("//") and plan.settings() == kind.plan().settings()


@pytest.mark.sample("a list")
def test_loaded_plans_reject_unsaved_kernels(folder: tuple[Kind, Path, Any]) -> None:
    kind, path, _ = folder
    with pytest.raises(op.UnsupportedError, match="which the folder does not have"):
        kind.refused(op.load(path))


@pytest.mark.slow
def test_split_k_is_saved(tmp_path: Path) -> None:
    plan = op.Gemm(**F16)
    a, b = integers(40, 520), integers(520, 72)
    plan.run(a, b, split_k=("parallel", 3), device="cpu")
    loaded = op.load(plan.save(tmp_path / "plan"))
    assert np.array_equal(loaded.run(a, b, split_k=("parallel", 3), device="cpu").D, a.astype(float) @ b)


@pytest.mark.slow
def test_a_function_in_the_language(tmp_path: Path) -> None:
    """The kernels of a hook are saved, but not its source."""

    def halved(value: Any, row: Any, column: Any) -> Any:
        return value * 0.5

    plan = op.Gemm(**F16)
    plan.epilogue_visitor = halved
    a, b = integers(33, 16) * 2, integers(16, 24)
    plan.run(a, b, device="cpu")
    plan.save(tmp_path / "plan")
    loaded = op.load(plan.save(tmp_path / "plan"))  # Saving again replaces the folder.
    assert np.array_equal(loaded.run(a, b, device="cpu").D, a.astype(float) @ b / 2)
    with pytest.raises(Exception, match="the function halved was not saved"):
        loaded.ir()


@pytest.mark.slow
def test_loaded_plan_with_another_tile(tmp_path: Path) -> None:
    """The loaded plan uses the saved kernel, even if this machine would choose another tile."""
    plan = op.Gemm(**F16)
    plan.tile_description = {"threadblock_shape": [128, 64, 64]}
    a, b = integers(40, 64), integers(64, 72)
    plan.run(a, b, device="cpu")
    path = tmp_path / "plan"
    plan.save(path)
    document = json.loads((path / "plan.json").read_text())
    document["settings"]["tile_description"] = None
    (path / "plan.json").write_text(json.dumps(document))
    loaded = op.load(path)
    assert loaded.tile_description is None
    for rows in (40, 9):
        done = loaded.run(a[:rows], b, device="cpu")
        assert np.array_equal(done.D, a[:rows].astype(float) @ b)
        assert done.operation.tile_description.threadblock_shape == (128, 64, 64)


PROGRAM = """
import sys
import numpy as np
from cute_dialect import op
from cute_dialect.runtime import driver as cuda

class Gpu:
    launches = []
    def capability(self, device): return 9, 0
    def name(self, device): return "NVIDIA Test 300"
    def multiprocessors(self, device): return 132
    def enter(self, device): return 0
    def smem_limit(self, device): return 232448
    last = 4096
    def allocate(self, size):
        self.last += 1 << 20
        return self.last
    def get_function(self, module, name): return name
    def encode_map(self, *_): return bytes(128)
    def launcher(self, function, *_): return lambda: (self.launches.append(function), (0,))[1]
    def __getattr__(self, name): return lambda *_: 1

gpu = Gpu()
cuda.driver = lambda: gpu
plan = op.load({folder!r})
a, b = np.ones((40, 64), np.float16), np.ones((64, 72), np.float16)
{call}
print(gpu.launches, sorted(m for m in ("xdsl", "mlir", "torch") if m in sys.modules))
"""


@pytest.mark.slow
def test_launching_imports_no_compiler(saved: Path) -> None:
    assert launched(saved, "plan.run(a, b)") == "['gemm'] []\n"


def launched(folder: Path, call: str) -> str:
    program = PROGRAM.format(folder=str(folder), call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.sample("a list")
def test_launching_other_plans_imports_no_compiler(folder: tuple[Kind, Path, Any]) -> None:
    kind, path, _ = folder
    names, modules = launched(path, kind.launch).rsplit(" ", 1)
    assert names.startswith("['") and modules == "[]\n", names
