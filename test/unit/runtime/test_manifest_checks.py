"""Manifests of compiled folders: each field is validated, and fields that refer to each other must agree."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import artifact_fuzz
import pytest

from cute_dialect.runtime.artifact import ArtifactError, load_artifact
from cute_dialect.tools.cute_run import main as cute_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the compiled folder of tma_copy: two kernels, and two host functions of which one is the fallback."""
    for name, data in artifact_fuzz.files_of("tma_copy").items():
        (tmp_path / name).write_bytes(data)
    load_artifact(tmp_path)
    return tmp_path


def refused(folder: Path) -> str:
    with pytest.raises(ArtifactError) as e:
        load_artifact(folder)
    return str(e.value).removeprefix(f"{folder}/manifest.json: ")


def edit(folder: Path, change: Callable[[Any], object]) -> str:
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return refused(folder)


SHA = "0" * 64
COORD = '!cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">'
LOWERED = "!llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, i32)>)>"
MEMREF = '!cute.memref<f16, gmem, "(?,?):(?,1)">'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("chip"), "chip: expected this field, it is missing"),
        (lambda d: d.update(chip="hopper"), 'chip: expected sm_<number>, e.g. sm_90a, got "hopper"'),
        (lambda d: d.update(chip=90), "chip: expected sm_<number>, e.g. sm_90a, got 90"),
        (lambda d: d.update(features="+ptx83;rm"), 'features: expected features like +ptx83, got "+ptx83;rm"'),
        (lambda d: d.update(opt_level=True), "opt_level: expected an integer from 0 to 3, got true"),
        (lambda d: d.update(opt_level=3.0), "opt_level: expected an integer from 0 to 3, got 3.0"),
        (lambda d: d.update(modules="kernels"), 'modules: expected a list, got "kernels"'),
        (lambda d: d.update(modules=["a", "a"]), 'modules[1]: expected a unique name, got "a"'),
        (
            lambda d: d.update(speed=1),
            "speed: unknown field (known: format, chip, features, opt_level, modules, kernels, hosts, code, stages, "
            "files, remarks)",
        ),
        (lambda d: d.update(remarks=[1]), "remarks[0]: expected a text, got 1"),
        (lambda d: d.update(kernels={}), "kernels: expected a list, got {}"),
        (lambda d: d["kernels"][0].pop("names"), "kernels[0].names: expected this field, it is missing"),
        (
            lambda d: d["kernels"][0].update(names=["a"]),
            'kernels[0].names: expected a list of 4, the number of params, got ["a"]',
        ),
        (
            lambda d: d["kernels"][0].update(module="x"),
            'kernels[0].module: expected one of the modules (kernels), got "x"',
        ),
        (
            lambda d: d["kernels"][1].update(name="copy_tma"),
            'kernels[1].name: expected a unique name (it is already used by kernels[0].name), got "copy_tma"',
        ),
        (
            lambda d: d["kernels"][0].update(block=[32, 1]),
            "kernels[0].block: expected a list of 3, got [32, 1]",
        ),
        (
            lambda d: d["kernels"][0].update(block=[32, 1, 65]),
            "kernels[0].block[2]: expected an integer from 1 to 64, got 65",
        ),
        (
            lambda d: d["kernels"][0].update(block=[64, 1, 1]),
            "kernels[0].block: expected at most max_threads (32) threads, got [64, 1, 1]",
        ),
        (
            lambda d: d["kernels"][0].update(cluster=[1, 17, 1]),
            "kernels[0].cluster[1]: expected an integer from 1 to 16, got 17",
        ),
        (
            lambda d: d["kernels"][0].update(offset_bits=48),
            "kernels[0].offset_bits: expected one of 32, 64, got 48",
        ),
        (
            lambda d: d["kernels"][0].update(dynamic_smem=-1),
            "kernels[0].dynamic_smem: expected an integer from 0 to 2147483648, got -1",
        ),
        (
            lambda d: d["kernels"][0]["params"][0].update(kind="array"),
            'kernels[0].params[0].kind: expected one of "memref", "pointer", "scalar", "tuple", "layout", "tensormap", '
            '"opaque", got "array"',
        ),
        (
            lambda d: d["kernels"][0]["params"][1].update(kind="memref"),
            f"kernels[0].params[1].element: expected this field for {COORD}, it is missing",
        ),
        (
            lambda d: d["kernels"][1]["params"][0].update(size=32),
            f"kernels[1].params[0].size: expected 24 (by its type, {MEMREF}), got 32",
        ),
        (
            lambda d: d["kernels"][1]["params"][0].update(element="f"),
            'kernels[1].params[0].element: expected an element type, got "f"',
        ),
        (
            lambda d: d["kernels"][1]["params"][0]["shape"][0].update(offset=12),
            "kernels[1].params[0].type: expected a dynamic leaf at byte 8, got 12",
        ),
        (
            lambda d: d["kernels"][1]["params"][0].update(stride=[1]),
            f"kernels[1].params[0].type: {MEMREF} has the dynamic leaves (i32, i32), but its lowered type {LOWERED} "
            "holds (i32, i32, i32)",
        ),
        (
            lambda d: d["kernels"][1]["params"][0].pop("shape"),
            f"kernels[1].params[0].shape: expected this field for {MEMREF}, it is missing",
        ),
        (
            lambda d: d["kernels"][1]["params"][0]["shape"][0].update(width=33),
            "kernels[1].params[0].shape[0].width: expected one of 8, 16, 32, 64, got 33",
        ),
        (
            lambda d: d["kernels"][1]["params"][0].update(lowered="!llvm.struct<(i32)>"),
            f"kernels[1].params[0].type: {MEMREF} does not lower to !llvm.struct<(i32)>: no pointer at its start",
        ),
        (
            lambda d: d["hosts"][0].update(fallback="missing"),
            "host function @launch falls back to @missing, which is not a host function that launches kernels",
        ),
        (
            lambda d: d["hosts"][0]["program"].update(arguments=3),
            "hosts[0].program.arguments: expected 2, the number of params, got 3",
        ),
        (
            lambda d: d["hosts"][0]["program"]["launches"][0].update(kernel="x"),
            "host function @launch launches @x, which is not a kernel of this module",
        ),
        (
            lambda d: d["hosts"][0]["program"]["launches"][0].update(types=["a"]),
            'hosts[0].program.launches[0].types: expected a list of 4, the number of args, got ["a"]',
        ),
        (
            lambda d: d["hosts"][0]["program"]["launches"][0].update(grid=[1]),
            "hosts[0].program.launches[0].grid: expected a list of 3, got [1]",
        ),
        (
            lambda d: d["hosts"][0]["program"]["launches"][0].update(grid=[999, 75, 75]),
            "hosts[0].program.launches[0].grid[0]: expected a register that was set before, got 999",
        ),
        (
            lambda d: d["hosts"][0]["program"]["launches"][0].update(grid=[33, 75, 75]),
            "hosts[0].program.launches[0].grid[0]: expected a register with integer, 33 holds pointer",
        ),
        (
            lambda d: d["hosts"][0]["program"]["launches"][0].update(args=[48, 41, 59, 63]),
            "hosts[0].program.launches[0].args[0]: expected a register with map, 48 holds "
            "((), ((integer, integer), ()))",
        ),
        (
            lambda d: d["hosts"][0]["program"]["code"][0].__setitem__(0, "system"),
            "hosts[0].program.code[0][0]: expected one of ",
        ),
        (
            lambda d: d["hosts"][0]["program"]["code"][0].__setitem__(3, [1, 7]),
            "hosts[0].program.code[0][3]: expected a path into (pointer, ((integer, integer), integer)), got [1, 7]",
        ),
        (
            lambda d: d["hosts"][0]["program"]["code"][1].__setitem__(1, 2),
            "hosts[0].program.code[1][1]: expected a register that was not set before, got 2",
        ),
        (
            lambda d: d["hosts"][0]["program"]["code"][1].__setitem__(2, []),
            "hosts[0].program.code[1][2]: expected a list of 1 for 'get', got []",
        ),
        (
            lambda d: d["hosts"][0]["program"]["code"].insert(0, ["addi", 80, [0, 0], 32]),
            "hosts[0].program.code[0][2][0]: expected a register with integer, 0 holds "
            "(pointer, ((integer, integer), integer))",
        ),
        (
            lambda d: d["code"][0].update(ptx="../kernel.ptx"),
            'code[0].ptx: expected the name of a file in this folder, got "../kernel.ptx"',
        ),
        (
            lambda d: d["code"][0].update(ptx="other.ptx"),
            'code[0].ptx: expected one of the files (kernel.ptx, kernel.cubin, ptxas.txt), got "other.ptx"',
        ),
        (
            lambda d: d["code"][0].update(cubin="kernel.ptx"),
            "code[0].cubin: expected a file that nothing else names (kernel.ptx, kernel.cubin, ptxas.txt), got "
            '"kernel.ptx"',
        ),
        (
            lambda d: d["code"].append({"module": "kernels", "ptx": "a", "cubin": None, "ptxas": None})
            or d["files"].update(a=SHA),
            'code[1].module: expected one of the modules, once each (kernels), got "kernels"',
        ),
        (lambda d: d["code"][0].update(ptxas=[]), "code[0].ptxas: expected an object, got []"),
        (
            lambda d: d["files"].update({"kernel.ptx": "12"}),
            'files["kernel.ptx"]: expected a SHA-256, 64 hexadecimal digits, got "12"',
        ),
        (
            lambda d: d.update(stages=["input.mlir"]),
            'stages[0]: expected the name of a stage like 01-input.mlir, got "input.mlir"',
        ),
        (
            lambda d: d.update(stages=["01-input.mlir"]),
            'stages[0]: expected one of the files (kernel.ptx, kernel.cubin, ptxas.txt), got "01-input.mlir"',
        ),
    ],
)  # fmt: skip
def test_each_field(folder: Path, change: Callable[[Any], object], said: str) -> None:
    got = edit(folder, change)
    assert got.startswith(said) if said.endswith(" ") else got == said


def test_invalid_manifests_are_rejected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "manifest.json"
    whole = path.read_bytes()
    for data, said in (
        (b"", "is damaged: Expecting value: line 1 column 1 (char 0)"),
        (b"[]", "is damaged: expected a JSON object, got list"),
        (b"{}", "has format None, this version reads format 2: compile it again"),
        (b'{"format": 2, "format": 2}', "is damaged: the field 'format' occurs twice in one object"),
        (b"\xff", "is damaged: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[" * 100000, "is damaged: it is nested too deeply"),
        (whole[:-20], "is damaged: "),
        (b'{"format": ' + b"9" * 5000 + b"}", "is damaged: "),
    ):
        path.write_bytes(data)
        got = refused(folder).removeprefix(f"{path} ")
        assert got == said or (said.endswith(" ") and got.startswith(said))
        assert cute_run([str(folder), "--list"]) == 1
        assert capsys.readouterr().err == f"cute-run: error: {path} {got}\n"


def test_missing_files_are_reported(folder: Path) -> None:
    for name in ("kernel.ptx", "manifest.json"):
        path = folder / name
        data = path.read_bytes()
        for make in (os.mkfifo, os.mkdir):
            path.unlink()
            make(path)
            assert "it is not a regular file" in refused(folder) or "Is a directory" in refused(folder)
            path.rmdir() if path.is_dir() else path.unlink()
            path.write_bytes(data)
    (folder / "kernel.ptx").write_bytes(b"\xff")
    assert refused(folder) == f"{folder}: kernel.ptx was modified after the compilation (its SHA-256 differs)"
    with open(folder / "manifest.json", "wb") as f:
        f.truncate(1 << 40)
    assert "expected at most 67108864 bytes, got 1099511627776" in refused(folder)


@pytest.mark.slow
def test_random_changes() -> None:
    """Run a few cases of ``test/oracle/artifact_fuzz.py``."""
    counts = artifact_fuzz.run(400, seed=3)
    assert counts["refused"] > 300 and counts["taken"] > 3
