"""A new process finds cached specializations by their dependencies, without tracing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HELPER = """
TWO = 20

def by():
    return 1          # the helper's digit

def unused():
    return 7
"""

PROGRAM = """
import dataclasses
import json
import sys
import helper
from helper import by

import numpy as np
import cute_dialect.lang as cute

FACTOR = 300

@dataclasses.dataclass(frozen=True)
class Config:
    n: int = 600000

CONFIG = Config()

class Table:
    n = 50000
    def of(self):
        return self.n

def closed(n):
    def of():
        return n
    return of

cell = closed(4000)

@cute.kernel
def add(x: cute.Tensor, y: cute.Tensor, more: cute.Constexpr[int] = 7000000):
    i = cute.arch.thread_idx()[0]
    y[i] = x[i] + (by() + helper.TWO + FACTOR + cell() + Table().of() + CONFIG.n + more)

@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    add(x, y).launch(grid=1, block=32)

"""

MAIN = """
def main(function=run):
    x = np.zeros(32, np.int32)
    k = cute.compile(function, x, x, chip="sm_90a")
    import re
    number = int(re.search(r"add.s32 .*, (\\d+);", k.ptx)[1])
    traced = "xdsl" in sys.modules or "mlir" in sys.modules
    print(json.dumps({"number": number, "traced": traced, "remarks": k.remarks}))
    return k

if __name__ == "__main__":
    main()
"""


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, *(arguments or ("program.py",))]
    known = {**os.environ, "CUTE_CACHE": "1", "CUTE_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    # Python reuses stale bytecode if a file of the same size is edited within one second.
    known["PYTHONDONTWRITEBYTECODE"] = "1"
    known.pop("CUTE_DEVICE", None)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder, env=known | environment)


def end(process: subprocess.Popen[str]) -> dict[str, Any]:
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return {**json.loads(said.splitlines()[0]), "errors": errors, "said": said}


def run(folder: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    return end(start(folder, *arguments, **environment))


def write(folder: Path, program: str = PROGRAM + MAIN, helper: str = HELPER) -> None:
    (folder / "program.py").write_text(program)
    (folder / "helper.py").write_text(helper)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the program and a cache of its compiled kernels."""
    folder = tmp_path_factory.mktemp("disk")
    write(folder)
    first = run(folder)
    assert (first["number"], first["traced"], first["remarks"]) == (7654321, True, [])
    return folder


@pytest.fixture
def folder(compiled: Path, tmp_path: Path) -> Path:
    """Return a copy of the compiled folder."""
    return Path(shutil.copytree(compiled, tmp_path / "copy"))


def test_next_process_does_not_trace(folder: Path) -> None:
    again = run(folder)
    assert (again["number"], again["traced"], again["errors"]) == (7654321, False, "")


CHANGES = {
    "a helper": ("helper", "return 1 ", "return 2 ", 7654322),
    "a global of a helper's module": ("helper", "TWO = 20", "TWO = 30", 7654331),
    "a global": ("program", "FACTOR = 300", "FACTOR = 400", 7654421),
    "a closure": ("program", "closed(4000)", "closed(5000)", 7655321),
    "a class attribute": ("program", "n = 50000", "n = 60000", 7664321),
    "a method": ("program", "return self.n", "return self.n + 1", 7654322),
    "a frozen dataclass": ("program", "CONFIG = Config()", "CONFIG = Config(700000)", 7754321),
    "a default of a dataclass": ("program", "n: int = 600000", "n: int = 700000", 7754321),
    "a default": ("program", "= 7000000", "= 8000000", 8654321),
    "what nothing names": ("helper", "return 7", "return 8", None),
    "a comment": ("helper", "# the helper's digit", "# it was never any other", None),
    "a comment in the kernel": ("program", "thread_idx()[0]", "thread_idx()[0]  # of this thread", None),
    "its place": ("program", "import dataclasses", "\n\nimport dataclasses\n\n\ndef other():\n    return 3\n", None),
}


@pytest.mark.sample("its place")
@pytest.mark.parametrize("what", CHANGES)
def test_changed_dependencies_are_retraced(folder: Path, what: str) -> None:
    file, old, new, number = CHANGES[what]
    path = folder / f"{file}.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    found = run(folder)
    assert (found["number"], found["traced"]) == (number or 7654321, number is not None)


@pytest.mark.slow
def test_variable_annotations_are_dependencies(folder: Path) -> None:
    """``n: cute.Int64 = …`` converts the value, but the annotation does not appear in Python's bytecode."""
    text = PROGRAM.replace("    y[i] = x[i] +", "    z: cute.{} = i\n    y[i] = x[i] +") + MAIN
    write(folder, text.replace("{}", "Int32"))
    assert run(folder)["traced"]
    assert not run(folder)["traced"]
    write(folder, text.replace("{}", "Int64"))
    assert run(folder)["traced"]


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample(every=6)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "KEY = object()\ndef key(): return KEY and 0\n",
            "'KEY' (a global of key) is an object(), which exists only in this process",
        ),
        (
            "import os\ndef key(): return int(os.environ.get('NOTHING', 0))\n",
            "key uses os.environ.get, which depends on the machine",
        ),
        ("import time\ndef key(): return 0 * int(time.time())\n", "key uses time.time, which depends on the machine"),
        ("def key(): return len(open(__file__).read()) * 0\n", "key calls open()"),
        ("def key():\n    import helper\n    return 0\n", "key imports 'helper' in its body"),
        (
            "def key(): return 0 * len(str(helper))\n",
            "'helper' (a global of key) is the module helper, used as a value",
        ),
    ],
)
def test_functions_without_a_digest_are_retraced_with_a_remark(folder: Path, change: str, said: str) -> None:
    text = (PROGRAM + MAIN).replace("FACTOR = 300\n", f"FACTOR = 300\n{change}").replace("by() +", "by() + key() +")
    write(folder, text)
    for _ in range(2):
        found = run(folder)
        line = 1 + text[: text.index("@cute.jit")].count("\n")
        remark = f"{folder}/program.py:{line}:1: remark R3: 'run' is retraced in every process: {said}"
        assert (found["traced"], found["remarks"]) == (True, [remark])


@pytest.mark.slow
def test_functions_not_reachable_by_name(folder: Path) -> None:
    """Functions found only while tracing are looked up by name when the cache entry is read."""
    text = (PROGRAM + MAIN).replace("by() +", 'sys.modules["helper"].hidden() +').replace("from helper import by", "")
    write(folder, text, HELPER + "\ndef hidden():\n    return 3\n")
    assert [(f["number"], f["traced"]) for f in (run(folder), run(folder))] == [(7654323, True), (7654323, False)]
    write(folder, text, HELPER + "\ndef hidden():\n    return 4\n")
    assert [(f["number"], f["traced"]) for f in (run(folder), run(folder))] == [(7654324, True), (7654324, False)]
    # An entry is not stored if it depends on a function that cannot be found by name.
    write(
        folder,
        text,
        HELPER + "\ndef make():\n    def hidden():\n        return 5\n    return hidden\nhidden = make()\n",
    )
    found = [run(folder) for _ in range(2)]
    assert [(f["number"], f["traced"]) for f in found] == [(7654325, True)] * 2
    assert "which cannot be found by that name" in found[0]["remarks"][0]


@pytest.mark.slow
def test_traces_that_modify_dependencies_are_not_cached(folder: Path) -> None:
    text = (PROGRAM + MAIN).replace("FACTOR = 300\n", "FACTOR = 300\nSEEN = []\n")
    write(folder, text.replace("    i = cute", "    SEEN.append(1)\n    i = cute"))
    found = [run(folder) for _ in range(2)]
    assert [f["traced"] for f in found] == [True, True]
    assert found[0]["remarks"][0].endswith("its trace changes what it reads")


@pytest.mark.slow
def test_the_entries_are_listed_and_pruned(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cute_dialect.tools.cute_cache import main

    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(folder / "cache"))
    assert main(["ls"]) == 0
    module, kind = sorted(capsys.readouterr().out.splitlines()[:2], key=lambda line: "run()" in line)
    assert "@add (sm_90a)" in module and f"run() -> {module.split()[-1]}" in kind
    assert main(["prune", "--size", "1"]) == 0
    assert capsys.readouterr().out.startswith("2 entries removed, ")
    found = [run(folder) for _ in range(2)]
    assert [f["traced"] for f in found] == [True, False]


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "cache").glob("v2-*/??/*"))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cut", "garbage", "gone", "another format", "no artifact"])
def test_damaged_entries_are_misses(folder: Path, how: str) -> None:
    from cute_dialect.pipelines.cache import Cache

    cache = Cache(str(folder / "cache"))
    (kind,) = [e for e in cache.entries() if Path(e.path, "kind.json").exists()]
    file = Path(kind.path, "kind.json")
    text = file.read_text()
    if how == "cut":
        file.write_text(text[: len(text) // 2])
    elif how == "garbage":
        file.write_bytes(os.urandom(len(text)))
    elif how == "gone":
        file.unlink()
    elif how == "another format":
        cache.put_files(kind.key, {"kind.json": re.sub(r'"format": \d+', '"format": 0', text).encode()})
    else:
        shutil.rmtree(Path(cache.entries()[0].path).parent.parent / json.loads(text)["artifact"][:2])
    found = [run(folder) for _ in range(2)]
    assert [(f["number"], f["traced"]) for f in found] == [(7654321, True), (7654321, False)]


@pytest.mark.slow
def test_two_processes_at_once(tmp_path: Path) -> None:
    write(tmp_path)
    both = [start(tmp_path) for _ in range(2)]
    assert [end(p)["number"] for p in both] == [7654321] * 2
    assert run(tmp_path)["traced"] is False
    assert not [p for p in entries(tmp_path) if p.name.startswith(".")]


WITHOUT = """
import sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("xdsl", "mlir"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nowhere())
from cute_dialect.pipelines import cache
cache._package = lambda name, distribution: f"no {name}"
cache._ptxas = lambda: "no ptxas"
import program
"""


@pytest.mark.slow
def test_a_machine_without_the_compiler(folder: Path) -> None:
    found = run(folder, "-c", WITHOUT + "program.main()")
    assert (found["number"], found["traced"]) == (7654321, False)
    miss = """
try:
    program.FACTOR = 500
    program.main()
except program.cute.NotCompiled as e:
    print(program.json.dumps({"error": str(e)}))
k = program.FACTOR = 300
k = program.main()
try:
    k.mlir()
except program.cute.NotCompiled as e:
    print(program.json.dumps({"error": str(e)}))
"""
    said = [json.loads(line) for line in run(folder, "-c", WITHOUT + miss)["said"].splitlines()]
    assert (
        "program.py:43:9: error F105: 'run' must be compiled because it is not in the compile cache for these "
        "arguments, but "
        "the compiler is not installed: xdsl is not installed: pip install 'xdsl==0.74.*'\n"
    ) in said[0]["error"]
    assert said[0]["error"].endswith(
        "\nhint: run cute.compile or cute.precompile for this chip on a machine with the compiler, with this "
        "CUTE_CACHE_DIR (or a copy of it); or use Compiled.save() and cute.load()"
    )
    assert "it came from the compile cache and has no trace" in said[2]["error"]


@pytest.mark.slow
def test_another_release_of_the_compiler_is_a_miss(folder: Path) -> None:
    other = "from cute_dialect.pipelines import cache\ncache._package = lambda *a: 'xdsl-0.dist-info'\n"
    assert run(folder, "-c", f"{other}import program\nprogram.main()")["traced"]


@pytest.mark.slow
def test_cached_specializations_are_traced_on_demand(folder: Path) -> None:
    ask = """
import program
k = program.main()
assert "xdsl" not in program.sys.modules
assert "func.func @run" in k.mlir() and "scf" not in k.explain()
assert k.program.outcome == k.outcome
x, y = program.np.arange(32, dtype="i4"), program.np.zeros(32, "i4")
k(x, y, device="cpu")
assert (y == x + 7654321).all()
again = program.cute.compile(program.run, x, x, chip="sm_90a")
assert again is k
"""
    assert not run(folder, "-c", ask)["traced"]
    changed = """
import program
k = program.main()
program.FACTOR = 500
try:
    k.mlir()
except program.cute.CompileError as e:
    assert e.code == "F104", e
else:
    raise AssertionError
assert program.main() is not k
"""
    said = run(folder, "-c", changed)["said"].splitlines()
    assert [json.loads(line)["number"] for line in said] == [7654321, 7654521]


@pytest.mark.slow
def test_sm_count_queried_by_a_trace_is_a_dependency(folder: Path) -> None:
    text = PROGRAM.replace("by() +", "(cute.utils.HardwareInfo().get_device_multiprocessor_count() - 131) +") + MAIN
    write(folder, text)
    gpu = """
from cute_dialect.runtime import driver
class Gpu:
    def capability(self, device): return (9, 0)
    def multiprocessors(self, device): return {}
driver.driver = Gpu
import program
program.main()
"""
    found = [run(folder, "-c", gpu.replace("{}", n)) for n in ("132", "132", "135", "135")]
    assert [f["number"] for f in found] == [7654321, 7654321, 7654324, 7654324]
    assert [f["traced"] for f in found] == [True, False, True, False]


@pytest.mark.slow
@pytest.mark.end_to_end
def test_methods_generics_and_launches_of_kernels(folder: Path) -> None:
    more = """
class Adder:
    def __init__(self, n):
        self.n = n
    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        self.later = self.n          # put back after the trace
        add(x, y, self.later).launch(grid=1, block=32)

@cute.generic("N")
@cute.kernel
def generic(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    y[i] = x[i] + N

def all_of_them(n):
    x = np.zeros(32, np.int32)
    made = [cute.compile(Adder(n), x, x, chip="sm_90a"),
            cute.compile(generic[n], x, x, grid=1, block=32, chip="sm_90a")]
    made[1].ptx
    print(json.dumps({"traced": "xdsl" in sys.modules, "ptx": [k.ptx for k in made], "remarks": made[0].remarks}))
"""
    write(folder, PROGRAM + more + MAIN)
    found = [run(folder, "-c", f"import program\nprogram.all_of_them({n})") for n in (5, 5, 6)]
    assert [f["traced"] for f in found] == [True, False, True] and found[0]["ptx"] == found[1]["ptx"]
    assert "654326;" in found[0]["ptx"][0] and ", 5;" in found[0]["ptx"][1] and "654327;" in found[2]["ptx"][0]
    assert ", 6;" in found[2]["ptx"][1]
