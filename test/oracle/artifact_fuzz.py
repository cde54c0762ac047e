"""Damaged artifacts: ``load`` reads a manifest correctly or names the wrong field.

    python test/oracle/artifact_fuzz.py --count 200000 --seed 1

The manifests of compiled examples are changed at one or two places. A value gets another type or range, a field is
added or removed, or an entry is duplicated or replaced. If ``load`` accepts the manifest, a launch is planned without
a GPU. The planning must succeed or raise ``LaunchError``. Any other exception is reported with its seed and case.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import random
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, numpy_dtype
from cute_dialect.runtime.artifact import ArtifactError, CodeObject, artifact_files, read_artifact
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.launch_plan import LaunchError

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SUPPORT = EXAMPLES.parent / "support"
NAMES = ("elementwise_add", "gemm_sm90", "tma_copy", "row_sum", "several")
VALUES = (
    None, True, False, 0, 1, -1, 2, 3, 31, 1024, 1025, 1 << 31, 1 << 63, 1 << 70, 0.5, 1.0, float("nan"), "", "x", "..",
    "f32", "sm_90a", "!llvm.ptr", "!llvm.struct<()>", [], [0], [1, 1, 1], {}, {"width": 32, "div": 1, "offset": 8},
)  # fmt: skip


@lru_cache(maxsize=8)
def files_of(name: str) -> dict[str, bytes]:
    """Return the files of a compiled example, with placeholder machine code that no driver loads."""
    source: str | Path = EXAMPLES / f"{name}.mlir"
    if name == "several":
        sys.path.insert(0, str(SUPPORT))
        from several_launches import ALL

        source = ALL
    artifact = compile_cute(source, emit="base", cache=False).artifact
    code = tuple(CodeObject(m, "// ptx", b"\x7fELF", None, "report") for m in artifact.manifest["modules"])
    return artifact_files(artifact._replace(code=code))


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the paths of all nested values."""
    inner = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    return [path] * bool(path) + [p for k, v in inner for p in places(v, (*path, k))]


def mutate(document: dict[str, object], rng: random.Random) -> dict[str, object]:
    """Change the document at one place."""
    out = copy.deepcopy(document)
    every = places(out)
    *above, last = rng.choice(every)
    parent: object = out
    for key in above:
        parent = parent[key]  # type: ignore[index]
    how = rng.randrange(6)
    if how == 0:
        del parent[last]  # type: ignore[attr-defined]
    elif how == 1 and isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(parent[last]))  # type: ignore[call-overload]
    elif how == 1:
        parent[rng.choice(("x", "shape", "fallback", "remarks", "types"))] = rng.choice(VALUES)  # type: ignore[index]
    elif how == 2:
        source: object = document
        for key in rng.choice(every):
            source = source[key]  # type: ignore[index]
        parent[last] = copy.deepcopy(source)  # type: ignore[index]
    elif how == 3 and type(parent[last]) is int:  # type: ignore[index]
        parent[last] += rng.choice((-1, 1, 2, 8, -8, 64))  # type: ignore[index]
    else:
        parent[last] = copy.deepcopy(rng.choice(VALUES))  # type: ignore[index]
    return out


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Truncate the text of a manifest or change a few of its bytes."""
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data))]
    out = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        out[rng.randrange(len(out))] = rng.choice(b'0123456789{}[]",:-tfn\x00\xff ')
    return bytes(out)


def case(seed: int, number: int) -> tuple[str, dict[str, bytes]]:
    """Return the name of an example and its changed files."""
    rng = random.Random(f"{seed} {number}")
    name = rng.choice(NAMES)
    files = dict(files_of(name))
    if rng.random() < 0.2:
        files["manifest.json"] = mutate_bytes(files["manifest.json"], rng)
    else:
        document = json.loads(files["manifest.json"])
        for _ in range(rng.choice((1, 1, 2))):
            document = mutate(document, rng)
        files["manifest.json"] = json.dumps(document).encode()
    return name, files


def arguments(module: CompiledModule, name: str) -> list[object]:
    """Return arguments that match the parameters."""
    out: list[object] = []
    for param in module.kernel(name).params:
        if param["kind"] in ("memref", "pointer"):
            rank = len(param["shape"]) if isinstance(param.get("shape"), list) else 1  # type: ignore[typeddict-item, arg-type]
            try:
                dtype = numpy_dtype(param.get("element", "i8"))
            except NotAnArray:  # a type without a numpy dtype, such as i39
                dtype = np.dtype(np.int8)
            array = np.zeros((128,) * rank, dtype)
            strides = tuple(s // array.itemsize for s in array.strides)
            out.append(ArrayView(1 << 30, array.shape, strides, param.get("element", "i8"), 0, "numpy", array))
        else:
            out.append(1)
    return out


def try_one(files: dict[str, bytes]) -> str:
    """Return ``refused`` or ``taken``. Exceptions other than the documented ones propagate."""

    def get(name: str) -> bytes:
        if name not in files:
            raise ArtifactError(f"cannot read {name}")
        return files[name]

    try:
        module = CompiledModule(read_artifact("folder", get, check=True))
    except ArtifactError as e:
        assert str(e).startswith(("folder", "cannot read")) and "\n" not in str(e), e
        return "refused"
    for name in [*module.names, *(h["name"] for h in module.manifest["hosts"])]:
        try:
            kernel = module.kernel(name)
            grid = (1, 1, 1) if len(kernel.target.launches) == 1 else None
            for plan in kernel.plans(*arguments(module, name), grid=grid, block=None):
                assert all(len(b) == p["size"] for b, p in zip(plan.packed.buffers, plan.params, strict=True))
        except LaunchError:
            pass
    return "taken"


def run(count: int, seed: int) -> dict[str, int]:
    """Try ``count`` cases and return the numbers of refused and accepted ones. Raises AssertionError for a failure."""
    counts = {"refused": 0, "taken": 0}
    for number in range(count):
        _, files = case(seed, number)
        try:
            counts[try_one(files)] += 1
        except Exception as e:
            text = files["manifest.json"].decode(errors="replace")
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            raise AssertionError(f"seed {seed}, number {number} ({digest}): {type(e).__name__}: {e}") from e
    return counts


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    counts = run(options.count, options.seed)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
