"""Record of generated code and public texts, to show that a refactoring changed neither.

``python tools/baseline.py --write FILE`` records, and ``--check FILE`` compares and lists the differences:

    kernels   SHA-256 of the PTX of every kernel that ``op`` selects for random problems of each kind, of the shipped
              kernels of ``cute-bench all --build`` and of the examples of test/examples; comments and line tables do
              not count.  With ``--cubins``, of the machine code as well.
    explain   the text of ``op.explain`` for these problems.
    names     ``dir()`` of each public package.
    help      ``--list-passes``, ``--list-pipelines`` and ``--help`` of each program.

The problems are the same on every machine and in every version (``--problems N`` of each kind, 40 by default).  Records
compare only with the same version of MLIR.  ``--only kernels,names`` restricts what is recorded or compared.

    git worktree add ../before HEAD~20 && cp tools/baseline.py ../before/tools/
    (cd ../before && python tools/baseline.py --write /tmp/before.json)
    python tools/baseline.py --check /tmp/before.json
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PARTS = ("kernels", "explain", "names", "help")
PACKAGES = (
    "algebra", "arch", "interp", "viz", "lang", "lang.nvgpu", "op", "op.epilogue", "kernels", "kernels.gemm",
    "runtime", "pipelines", "pipelines.embed",
)  # fmt: skip
PROGRAMS = ("opt", "run", "bench", "cache", "check", "lsp", "viz", "explore")
GPU = "NVIDIA H200"

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""The name of a function of ``op``, its arguments and its options, as ``op.explain`` takes them."""


def extent(rng: random.Random, low: int, high: int) -> int:
    """Return a log-uniform extent, a multiple of 8 three times out of four."""
    value = round(low * (high / low) ** rng.random())
    return max(8, value // 8 * 8) if rng.random() < 0.75 else value


def draw_gemm(rng: random.Random) -> Call:
    m, n, k = (extent(rng, 1, 9000) for _ in range(3))
    options: dict[str, Any] = {"element": rng.choice(["f16", "bf16", "bf16", "e4m3", "f32", "f64", "i8"])}
    if options["element"] == "bf16":
        options |= rng.choice([{}, {"activation": "gelu"}, {"beta": 0.5, "c": (m, n)}])
    return "mm", ((m, k), (k, n)), options


def draw_batched(rng: random.Random) -> Call:
    count, m, n, k = rng.randrange(1, 40), *(extent(rng, 8, 2000) for _ in range(3))
    return "bmm", ((count, m, k), (count, k, n)), {"element": rng.choice(["f16", "bf16", "f32"])}


def draw_grouped(rng: random.Random) -> Call:
    groups, m, n, k = rng.randrange(2, 40), *(extent(rng, 64, 4000) for _ in range(3))
    return "grouped_mm", ((m, k), (groups, k, n)), {"offs": (groups,), "element": "bf16"}


def draw_convolution(rng: random.Random) -> Call:
    channels, filters = extent(rng, 3, 500), extent(rng, 3, 500)
    size, taps, images = rng.randrange(7, 64), rng.choice([1, 3, 3, 5]), rng.randrange(1, 32)
    options = {"stride": rng.choice([1, 1, 2]), "padding": taps // 2, "element": "bf16"}
    return "conv2d", ((images, channels, size, size), (filters, channels, taps, taps)), options


def draw_attention(rng: random.Random) -> Call:
    batch, heads, keys = rng.randrange(1, 8), rng.choice([8, 16, 32]), rng.choice([1, 2, 8])
    queries, length, dim = extent(rng, 1, 4000), extent(rng, 16, 8000), rng.choice([64, 128])
    shapes = (batch, heads, queries, dim), (batch, keys, length, dim), (batch, keys, length, dim)
    return "attention", shapes, {"causal": rng.random() < 0.5, "element": "bf16"}


def draw_rows(rng: random.Random) -> Call:
    name = rng.choice(["softmax", "log_softmax", "rms_norm", "layer_norm", "sum", "mean", "max"])
    return name, ((extent(rng, 1, 20000), extent(rng, 2, 40000)),), {"element": rng.choice(["f16", "bf16", "f32"])}


KINDS: dict[str, Callable[[random.Random], Call]] = {
    "gemm": draw_gemm,
    "batched": draw_batched,
    "grouped": draw_grouped,
    "convolution": draw_convolution,
    "attention": draw_attention,
    "rows": draw_rows,
}


def problems(count: int) -> Iterator[tuple[str, Call]]:
    """Yield the first ``count`` problems of each kind, which are always the same."""
    for kind, draw in KINDS.items():
        rng = random.Random(f"baseline {kind}")
        for number in range(count):
            yield f"{kind} {number}", draw(rng)


def code_digest(ptx: str) -> str:
    """Return the SHA-256 of PTX without comments, file names and line numbers."""
    kept = [line for line in ptx.splitlines() if not re.match(r"\s*(//|\.loc\b|\.file\b|$)", line)]
    return digest("\n".join(re.sub(r"\s*//.*", "", line) for line in kept).encode())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def record_problems(count: int, cubins: bool, kernels: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Return the digests of the kernels selected for the problems, and the texts of ``op.explain``."""
    from cute_dialect import op  # late: start-up
    from cute_dialect.runtime.progress import track  # late: start-up

    found, texts = dict[str, str](), dict[str, str]()
    for name, (function, arguments, options) in track(list(problems(count)), "compiling", "problems"):
        explained: Any = None
        try:
            explained = op.explain(getattr(op, function), *arguments, **options)
        except Exception as error:  # an error is a result like any other
            texts[name] = f"{function}{arguments} {options}: {type(error).__name__}: {error}"
            continue
        texts[name] = f"{function}{arguments} {options}\n{explained}"
        if kernels:
            for number, module in enumerate(modules_of(explained)):
                add_module(found, f"{name} kernel {number}", module, cubins)
    return found, texts


def modules_of(explained: Any) -> list[Any]:
    """Return the compiled modules of the kernels that ``op.explain`` names."""
    from cute_dialect import op  # late: start-up

    return op.prefetch([explained], workers=1).modules()


def add_module(found: dict[str, str], name: str, module: Any, cubins: bool) -> None:
    found[name] = code_digest(module.ptx)
    if cubins:
        found[f"{name} cubin"] = digest(module.cubin)


def record_shipped(cubins: bool) -> dict[str, str]:
    """Return the digests of the kernels that ``cute-bench all --build`` compiles and of test/examples."""
    from cute_dialect.pipelines import compile  # late: start-up
    from cute_dialect.tools.bench.cases.all import build  # late: start-up

    found = dict[str, str]()
    with tempfile.TemporaryDirectory() as folder:
        build(folder, "sm_90a")
        for path in sorted(Path(folder).rglob("*.ptx")):
            found[str(path.relative_to(folder))] = code_digest(path.read_text())
        for path in sorted(Path(folder).rglob("*.cubin")) if cubins else ():
            found[str(path.relative_to(folder))] = digest(path.read_bytes())
    for path in sorted((ROOT / "test" / "examples").glob("*.mlir")):
        try:
            found[path.name] = code_digest(
                compile(path.read_text(), filename=path.name, chip="sm_90a", emit="ptx").ptx or ""
            )
        except Exception as error:  # a host program, or an example of an error
            found[path.name] = type(error).__name__
    return found


def record_names() -> dict[str, str]:
    names = dict[str, str]()
    for package in PACKAGES:
        module = import_module(f"cute_dialect.{package}")
        public = (x for x in dir(module) if not x.startswith("_"))
        names[package] = " ".join(sorted(x for x in public if not isinstance(getattr(module, x), ModuleType)))
    return names


def record_help() -> dict[str, str]:
    texts = dict[str, str]()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "NO_COLOR": "1"}
    commands = [(program, "--help") for program in PROGRAMS] + [("opt", "--list-passes"), ("opt", "--list-pipelines")]
    for program, flag in commands:
        command = [sys.executable, "-m", f"cute_dialect.tools.cute_{program}", flag]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
        texts[f"cute-{program} {flag}"] = done.stdout
    return texts


def record(only: set[str], count: int, cubins: bool) -> dict[str, dict[str, str]]:
    """Return the record: a digest or text per entry, by part."""
    result = dict[str, dict[str, str]]()
    with tempfile.TemporaryDirectory() as cache, environment(CUTE_CACHE_DIR=cache, CUTE_CONFIG_DIR=cache):
        if only & {"kernels", "explain"}:
            kernels, texts = record_problems(count, cubins, "kernels" in only)
            if "kernels" in only:
                result["kernels"] = kernels | record_shipped(cubins)
            if "explain" in only:
                result["explain"] = texts
    if "names" in only:
        result["names"] = record_names()
    if "help" in only:
        result["help"] = record_help()
    return result


@contextlib.contextmanager
def environment(**values: str) -> Generator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def differences(part: str, old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    """Yield a line per kernel that differs, and a diff per text that differs."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None or after is None:
            yield f"{part}: {name}: only in the {'new' if before is None else 'old'} version"
        elif part == "kernels":
            yield f"{part}: {name}: the code differs"
        else:
            split: Callable[[str], list[str]] = str.split if part == "names" else str.splitlines
            diff = difflib.unified_diff(split(before), split(after), "old", "new", lineterm="", n=0)
            yield f"{part}: {name}:\n" + "\n".join(f"    {line}" for line in list(diff)[2:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", metavar="FILE", help="record into FILE")
    what.add_argument("--check", metavar="FILE", help="compare with FILE; exit status 1 if anything differs")
    parser.add_argument("--problems", type=int, default=40, metavar="N", help="problems of each kind (default 40)")
    parser.add_argument("--cubins", action="store_true", help="record machine code, too (needs ptxas)")
    parser.add_argument(
        "--only", default=",".join(PARTS), metavar="PART,…", help=f"of {', '.join(PARTS)} (default all)"
    )
    options = parser.parse_args()
    only = set(options.only.split(","))
    if unknown := only - set(PARTS):
        parser.error(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(PARTS)}")
    versions = {name: metadata.version(name) for name in ("xdsl", "xtc-mlir-python-bindings") if _installed(name)}
    head = {"problems": options.problems, "cubins": options.cubins, "versions": versions}
    if options.write:
        made = {"head": head, **record(only, options.problems, options.cubins)}
        Path(options.write).write_text(json.dumps(made, indent=1) + "\n")
        print(", ".join(f"{len(v)} {k}" for k, v in made.items() if k != "head"), f"recorded in {options.write}")
        return 0
    old = json.loads(Path(options.check).read_text())
    if old["head"]["versions"] != versions:
        parser.error(f"{options.check} was recorded with {old['head']['versions']}, but here is {versions}")
    new = record(only & old.keys(), old["head"]["problems"], old["head"]["cubins"])
    found = [text for part in new for text in differences(part, old[part], new[part])]
    out = io.StringIO()
    for text in found:
        print(text, file=out)
    compared = ", ".join(f"{len(v)} {k}" for k, v in new.items())
    print(f"{out.getvalue()}{len(found)} of {compared} differ" if found else f"equal: {compared}")
    return int(bool(found))


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
