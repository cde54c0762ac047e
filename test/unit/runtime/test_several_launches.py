"""Host functions with several launches, some conditional, on the interpreter and on a fake driver."""

from __future__ import annotations

import ctypes
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from pipelines_support import FakeArray, FakeDriver
from several_launches import ALL, MARKED, host, launch, module

from cute_dialect.errors import CompileError
from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime import load
from cute_dialect.runtime.artifact import ArtifactError
from cute_dialect.runtime.call_options import OptionError
from cute_dialect.runtime.driver import CudaError
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.launch_plan import LaunchError
from cute_dialect.tools import cute_run


@lru_cache(maxsize=8)
def compiled(text: str = ALL, emit: str = "base") -> CompiledModule:
    return compile_cute(text, emit=emit)  # type: ignore[arg-type]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(cuda, "driver", lambda: fake)
    return fake


def arrays(n: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    x, y, z = (rng.integers(-1000, 1000, n, dtype=np.int32) for _ in range(3))
    return x, y, z


def chosen(k: int) -> list[str]:
    """Return the launches that @choose must make."""
    return ["scale" if k > 1 else "copy_16"] + ["add"] * ((k % 2) * (1 + (k > 4)))


def after(x: np.ndarray, z: np.ndarray, k: int, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return y and z after these launches, computed with numpy."""
    y = x
    for name in names:
        if name == "add":
            z = z + y
        else:
            y = k * x if name == "scale" else x
    return y, z


# -------------------------------------------------------------------------------------------------------- the CPU


def test_launches_run_in_order_on_the_same_memory() -> None:
    x, y, z = arrays()
    expected = after(x, z, 7, ["scale", "add"])
    report = compiled().kernel("both")(x, y, z, 7, device="cpu", checks=["race", "uninit"], unwritten=["mY"])
    assert np.array_equal(y, expected[0]) and np.array_equal(z, expected[1])
    assert report is not None and (report.blocks, report.stores, report.loads) == (6, 300, 450)


@pytest.mark.parametrize("k", range(-1, 9))
def test_conditions_are_computed_by_the_host(k: int) -> None:
    x, y, z = arrays()
    call = compiled().kernel("choose")
    assert [p.kernel for p in call.plans(x, y, z, k)] == chosen(k)
    expected = after(x, z, k, chosen(k))
    call(x, y, z, k, device="cpu")
    assert np.array_equal(y, expected[0]) and np.array_equal(z, expected[1])


def test_later_calls_on_the_interpreter_use_the_same_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with another number, shape or alignment is planned anew."""
    call = compiled().kernel("choose")
    plans: list[object] = []
    make = call._plans
    monkeypatch.setattr(call, "_plans", lambda *a: plans.append(a) or make(*a))
    for n, k, seen in ((64, 3, 1), (64, 3, 1), (64, 5, 2), (96, 3, 3), (64, 3, 3)):
        x, y, z = arrays(n)
        expected = after(x, z, k, chosen(k))
        call(x, y, z, k, device="cpu")
        assert np.array_equal(y, expected[0]) and np.array_equal(z, expected[1])
        assert len(plans) == seen
    memory = np.zeros((3, 65), np.int32)
    x, y, z = (row[1:] for row in memory)
    call(x, y, z, 0, device="cpu")
    assert len(plans) == 4


def test_plan_is_of_one_launch() -> None:
    x, y, z = arrays()
    call = compiled().kernel("choose")
    assert call.plan(x, y, z, 2).kernel == "scale"
    with pytest.raises(LaunchError, match=r"one launch, but this call launches @scale, @add; use Kernel\.plans"):
        call.plan(x, y, z, 3)


def test_options_of_one_launch_are_rejected() -> None:
    x, y, z = arrays()
    call = compiled().kernel("both")
    with pytest.raises(
        OptionError, match=r"blocks: expected a call with one launch, but this call launches @scale, @add"
    ):
        call(x, y, z, 1, device="cpu", blocks=[0])
    with pytest.raises(OptionError, match=r"reports: expected a call with one launch"):
        call(x, y, z, 1, device="cpu", reports=["banks"])
    with pytest.raises(LaunchError, match=r"grid, block and smem apply to one launch, but @both has 2"):
        call(x, y, z, 1, grid=(1,), device="cpu")


def test_no_condition_holds() -> None:
    text = host(
        "maybe", f"    %b = arith.cmpi sgt, %k, %one : i32\n    scf.if %b {{\n{launch('copy', '%mX, %mY')}\n    }}\n"
    )
    call = compiled(module(text)).kernel("maybe")
    x, y, z = arrays()
    before = y.copy()
    assert call.plans(x, y, z, 1) == () and call(x, y, z, 1, device="cpu") is None and np.array_equal(y, before)
    with pytest.raises(LaunchError, match="but this call launches no kernel"):
        call.plan(x, y, z, 1)
    call(x, y, z, 2, device="cpu")
    assert np.array_equal(y, x)


def test_kernel_selected_by_name() -> None:
    """A kernel selected by name is launched alone, so the caller must pass its grid."""
    x, y, _ = arrays()
    call = compiled().kernel("scale")
    with pytest.raises(LaunchError, match="no host function launches @scale: pass grid"):
        call(x, y, 3, device="cpu")
    call(x, y, 3, grid=(3,), device="cpu")
    assert np.array_equal(y, 3 * x)


# ------------------------------------------------------------------------------------------------------- fallbacks

EXAMPLE = Path(__file__).parents[2] / "examples" / "tma_copy.mlir"


@lru_cache(maxsize=1)
def fallback_text() -> str:
    """Return the TMA copy example with the fallback on the launch, not the host function, and a second launch."""
    text = EXAMPLE.read_text()
    begin = text.index("    %tiler = ", text.index("func.func @launch_any"))
    other = text[begin : text.rindex("    return")]
    for name in ("tiler", "gB", "tiles", "grid", "one", "block"):
        other = other.replace(f"%{name}", f"%{name}2")
    call = other[other.index("    gpu.launch_func") :]
    marked = other.replace("%mB : !matrix)\n", "%mB : !matrix) {cute.fallback}\n")
    text = text[: text.index("  // One block for 128 elements of a row.\n  func.func")].replace(
        " attributes {cute.fallback = @launch_any}", ""
    )
    at = text.rindex("    return")
    return f"{text[:at]}{marked}{call}{text[at:]}}}\n"


@pytest.mark.parametrize("shape", [(130, 104), (70, 33)])
def test_a_launch_falls_back_alone(shape: tuple[int, int]) -> None:
    call = compiled(fallback_text()).kernel("launch")
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float16)
    b = np.zeros_like(a)
    first, second = call.plans(a, b)
    possible = shape[1] % 8 == 0
    assert (first.kernel, second.kernel) == ("copy_tma" if possible else "copy_any", "copy_any")
    assert second.rejected == () and (first.rejected == ()) == possible
    if not possible:
        assert first.rejected[0].startswith(
            "@copy_tma: argument mA: TMA does not support this array: dimension 1: expected a"
        )
    call(a, b, device="cpu")
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (launch("copy", "%mX, %mY", " {cute.fallback}"), "@copy has cute.fallback, but no launch precedes it"),
        (
            f"{launch('add', '%mX, %mY')}\n    %b = arith.cmpi sgt, %k, %one : i32\n    scf.if %b {{\n"
            f"{launch('add', '%mX, %mZ')}\n    }}\n    {launch('copy', '%mX, %mY', ' {cute.fallback}')}",
            "@copy has cute.fallback, but no launch precedes it in its block",
        ),
        (
            f"%t = {launch('add', '%mX, %mY').replace('launch_func', 'launch_func async')}\n"
            f"    {launch('add', '%mX, %mY').replace('launch_func', 'launch_func [%t]')}",
            "the launch of @add waits for tokens",
        ),
    ],
)
def test_invalid_launches_are_rejected(body: str, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        compile_cute(module(host("run", f"    {body}\n")), emit="base")


# --------------------------------------------------------------------------------------------------------- the GPU


def run_on(gpu: FakeDriver, seen: list[tuple[str, list[int]]]) -> None:
    """Make the fake driver record each launched kernel and the addresses of its arrays."""

    def note(record: dict[str, object]) -> None:
        parameters = record["parameters"]
        assert isinstance(parameters, list)
        count = 2
        words = [int.from_bytes(bytes((ctypes.c_uint8 * 8).from_address(p)), "little") for p in parameters[:count]]
        seen.append((str(record["kernel"]), words))

    gpu.kernels = dict.fromkeys(("scale", "add", "copy", "copy_16"), note)


def test_the_driver_is_called_once_a_launch_in_order(gpu: FakeDriver) -> None:
    seen: list[tuple[str, list[int]]] = []
    run_on(gpu, seen)
    call = CompiledModule(compiled(emit="auto").artifact).kernel("choose")
    x, y, z = (FakeArray((130,), typestr="<i4", pointer=0x7F0000000000 + 4096 * i) for i in range(3))
    for stream in (5, 6, 5):
        seen.clear()
        call(x, y, z, 5, stream=stream)
        assert seen == [
            ("scale", [x.pointer, y.pointer]),
            ("add", [y.pointer, z.pointer]),
            ("add", [y.pointer, z.pointer]),
        ]
        assert [r["stream"] for r in gpu.launches[-3:]] == [stream] * 3
    call(x, y, z, 4)
    assert gpu.launches[-1]["kernel"] == "scale" and len(gpu.launches) == 10
    bound = call.bind(y, x, z, 3)
    seen.clear()
    bound(9)
    assert seen == [("scale", [y.pointer, x.pointer]), ("add", [x.pointer, z.pointer])]
    assert [p.kernel for p in bound.plans] == ["scale", "add"]
    with pytest.raises(LaunchError, match=r"use Kernel\.plans"):
        _ = bound.function


def test_no_kernel_is_launched_twice_under_another_context(gpu: FakeDriver) -> None:
    call = CompiledModule(compiled(emit="auto").artifact).kernel("both")
    bound = call.bind(*[FakeArray((130,), typestr="<i4", pointer=0x7F0000000000 + 4096 * i) for i in range(3)], 3)
    gpu.context = 77
    bound(0)
    assert [r["kernel"] for r in gpu.launches] == ["scale", "add"] and gpu.context == 77


def test_driver_failures_end_the_call(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    call = CompiledModule(compiled(emit="auto").artifact).kernel("choose")
    launcher = gpu.launcher
    monkeypatch.setattr(
        gpu,
        "launcher",
        lambda f, *rest: (lambda: (720,)) if gpu.functions[f - 1] == "add" else launcher(f, *rest),
    )
    arguments = [FakeArray((130,), typestr="<i4", pointer=0x7F0000000000 + 4096 * i) for i in range(3)]
    with pytest.raises(CudaError) as told:
        call(*arguments, 5)
    assert told.value.code == 720 and [r["kernel"] for r in gpu.launches] == ["scale"]


def test_numpy_arrays_are_copied_once(gpu: FakeDriver) -> None:
    """The fake driver's memory is host memory, so numpy can run the kernels."""

    def vector(address: int) -> np.ndarray:
        return np.frombuffer((ctypes.c_int32 * 150).from_address(address), np.int32)

    def word(record: dict[str, object], i: int, size: int = 8) -> int:
        return int.from_bytes(bytes((ctypes.c_uint8 * size).from_address(record["parameters"][i])), "little")  # type: ignore[index]

    def scale(record: dict[str, object]) -> None:
        vector(word(record, 1))[...] = word(record, 2, 4) * vector(word(record, 0))

    def add(record: dict[str, object]) -> None:
        vector(word(record, 1))[...] += vector(word(record, 0))

    gpu.kernels = {"scale": scale, "add": add}
    x, y, z = arrays()
    expected = after(x, z, 3, ["scale", "add"])
    CompiledModule(compiled(emit="auto").artifact).kernel("both")(x, y, z, 3)
    assert np.array_equal(y, expected[0]) and np.array_equal(z, expected[1])


def test_more_shared_memory_is_never_taken_back(gpu: FakeDriver) -> None:
    """A launch with 60 KB does not lower the shared-memory limit of a kernel launched with 100 KB before."""
    body = "".join(
        f"    %s{size} = arith.constant {size} : i32\n    "
        + launch("copy", "%mX, %mY").replace(": i32 args", f": i32 dynamic_shared_memory_size %s{size} args")
        + "\n"
        for size in (100_000, 60_000)
    )
    call = CompiledModule(compiled(module(host("run", body)), "auto").artifact).kernel("run")
    call(*[FakeArray((130,), typestr="<i4", pointer=0x7F0000000000 + 4096 * i) for i in range(3)], 5)
    assert [r["smem"] for r in gpu.launches] == [100_000, 60_000] and list(gpu.smem_allowed.values()) == [100_000]


def test_a_large_cluster_after_a_small_one(gpu: FakeDriver) -> None:
    """The first launch with more than eight blocks per cluster sets the function attribute once."""
    body = "    %wide = arith.muli %blocks, %c64 : i32\n" + "".join(
        f"    %x{size}{i} = arith.constant {size} : i32\n    "
        + launch("copy", "%mX, %mY", grid="%wide").replace(" blocks", f" clusters in (%x{size}{i}, %one, %one) blocks")
        + "\n"
        for i, size in enumerate((2, 16, 16))
    )
    call = CompiledModule(compiled(module(host("run", body)), "auto").artifact).kernel("run")
    arguments = [FakeArray((130,), typestr="<i4", pointer=0x7F0000000000 + 4096 * i) for i in range(3)]
    call(*arguments, 5)
    assert [r["cluster"] for r in gpu.launches] == [(2, 1, 1), (16, 1, 1), (16, 1, 1)]
    assert list(gpu.smem_allowed) == [-1]


# ---------------------------------------------------------------------------------- how they are launched, and kept


def test_cooperative_and_dependent_launches() -> None:
    x, y, z = arrays()
    expected = after(x, z, 3, ["scale", "add"])
    call = compiled().kernel("marked")
    assert [(p.shape.cooperative, p.shape.pdl) for p in call.plans(x, y, z, 3)] == [(True, False), (False, True)]
    call(x, y, z, 3, device="cpu", checks=["race"])
    assert np.array_equal(z, expected[1])


@pytest.mark.slow
def test_blocks_of_a_cooperative_launch_wait_for_each_other() -> None:
    x, y, _ = arrays(40)
    call = compiled().kernel("meeting")
    for schedule in ("round-robin", "reverse", "adversarial"):
        y[:] = 0
        call(x, y, np.zeros(1, np.int32), device="cpu", schedule=schedule, checks=["race"])
        assert np.array_equal(y, (np.arange(40) + 1) % 40)


def test_a_dependent_launch_must_wait() -> None:
    x, y, z = arrays()
    body = f"    {launch('scale', '%mX, %mY, %k')}\n    {launch('add', '%mY, %mZ', ' {cute.pdl}')}\n"
    call = compiled(module(host("run", body))).kernel("run")
    with pytest.raises(
        InterpError, match=r"load of .* before griddepcontrol.wait: a grid that this one depends on may"
    ):
        call(x, y, z, 3, device="cpu", checks=["race"])


def test_saved_modules_keep_all_launches(tmp_path: Path) -> None:
    text = module(MARKED + host("any", f"    {launch('copy', '%mX, %mY')}\n    {launch('copy', '%mX, %mZ')}\n"))
    made = compile_cute(text, emit="ptx", keep_stages=True)
    back = load(made.save(tmp_path / "run"))
    assert back.manifest == made.manifest
    x, y, z = arrays()
    assert [p.shape for p in back.kernel("marked").plans(x, y, z, 3)] == [
        p.shape for p in made.kernel("marked").plans(x, y, z, 3)
    ]
    back.kernel("any")(x, y, z, 3, device="cpu")
    assert np.array_equal(y, x) and np.array_equal(z, x)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda p: p["launches"][3].update(when=[[13, 1], [11, 1]]), "launches[3].when[1]: expected a condition and"),
        (lambda p: p["launches"][3].update(when=[[14, 1]]), "launches[3].when[0]: expected a condition and a branch"),
        (lambda p: p["launches"][2].update(when=[[13, 2]]), "launches[2].when[0][1]: expected one of 0, 1, got 2"),
        (lambda p: p["launches"][2].update(when=[]), "launches[2].grid[0]: expected a register that was set before"),
        (
            lambda p: p["launches"][3].update(fallback=True),
            "launches[3].when: expected the conditions of the previous launch",
        ),
        (
            lambda p: p["launches"][0].update(fallback=True),
            "launches[0].when: expected the conditions of the previous launch",
        ),
        (lambda p: p["launches"][0].update(pdl=1), "launches[0].pdl: expected one of false, true, got 1"),
        (lambda p: p["launches"][0].pop("cooperative"), "launches[0].cooperative: expected this field, it is missing"),
        (lambda p: p.update(launches={}), "launches: expected a list, got {}"),
    ],
)
def test_inconsistent_manifests_are_rejected(tmp_path: Path, edit: object, said: str) -> None:
    folder = Path(compiled(emit="ptx").save(tmp_path / "m"))
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    index = next(i for i, h in enumerate(document["hosts"]) if h["name"] == "choose")
    edit(document["hosts"][index]["program"])  # type: ignore[operator]
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError) as told:
        load(folder)
    assert f"hosts[{index}].program.{said}" in str(told.value)


# -------------------------------------------------------------------------------------------------------- cute-run


def test_cute_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "several.mlir"
    path.write_text(ALL)
    command = [str(path), "--kernel=both", "--device=cpu", "--in=100=randint", "--in=100", "--in=100=ones", "--in=3"]
    assert cute_run.main([*command, "--check=mY == 3 * mX", "--check=mZ == in_mZ + mY", "--check=race,uninit"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("on the CPU interpreter: 2 launches") and lines[0].startswith("@both of ")
    assert [line.split()[0] for line in lines if line.startswith("@")] == ["@both", "@scale", "@add"]
    assert cute_run.main([str(path), "--list"]) == 0
    listed = capsys.readouterr().out
    assert "@both  (launched by @both)\n    launches @scale\n    launches @add\n    mX: " in listed
