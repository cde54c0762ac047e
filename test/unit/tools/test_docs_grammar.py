"""Editor grammars for ``.mlir``: the files are current, cute ops and types are highlighted, and typos are not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from xdsl.ir import TypeAttribute

from cute_dialect.dialect.registry import get_cute_dialect, get_cute_nvgpu_dialect
from cute_dialect.ir.context import make_context
from cute_dialect.tools.docs.grammar import EDITORS, files, main, textmate

ROOT = Path(__file__).parents[3]
DIALECTS = (get_cute_dialect(), get_cute_nvgpu_dialect())
OPS = sorted(op.name for d in DIALECTS for op in d.operations)
TYPES = sorted({a.name for d in DIALECTS for a in d.attributes if issubclass(a, TypeAttribute)})
LINES = {
    '%0 = "cute.size"(%l) <{mode = array<i32: 0>}> : (!L) -> !cute.int_tuple<"8"> // cute.size': [
        ("%0", "variable.other.mlir"), ("=", "keyword.operator.mlir"), ("cute.size", "support.function.cute.mlir"),
        ("%l", "variable.other.mlir"), ("=", "keyword.operator.mlir"), ("array", "keyword.other.mlir"),
        ("i32", "storage.type.mlir"), (":", "keyword.operator.mlir"), ("0", "constant.numeric.mlir"),
        (":", "keyword.operator.mlir"), ("!L", "entity.name.type.mlir"), ("->", "keyword.operator.mlir"),
        ("!cute.int_tuple", "support.type.cute.mlir"), ('"', "string.quoted.double.mlir"),
        ("8", "string.quoted.double.mlir"), ('"', "string.quoted.double.mlir"),
        ("//", "comment.line.double-slash.mlir"), (" cute.size", "comment.line.double-slash.mlir"),
    ],
    "// RUN: cute-opt %s --cute-to-base": [
        ("//", "comment.line.double-slash.mlir"), (" ", "comment.line.double-slash.mlir"),
        ("RUN:", "comment.line.double-slash.mlir keyword.other.test.mlir"),
        (" cute-opt %s ", "comment.line.double-slash.mlir"),
        ("--cute-to-base", "comment.line.double-slash.mlir variable.parameter.option.mlir"),
    ],
    "gpu.func @k(%a: memref<4x8xf32>) kernel {": [
        ("gpu.func", "entity.name.function.op.mlir"), ("@k", "entity.name.function.symbol.mlir"),
        ("%a", "variable.other.mlir"), (":", "keyword.operator.mlir"), ("memref", "storage.type.mlir"),
        ("4x8xf32", "storage.type.mlir"), ("kernel", "keyword.other.mlir"),
    ],
    "^bb1: %x = cute.sise %y#1 : !cute.layuot": [
        ("^bb1", "entity.name.label.mlir"), (":", "keyword.operator.mlir"), ("%x", "variable.other.mlir"),
        ("=", "keyword.operator.mlir"), ("%y#1", "variable.other.mlir"), (":", "keyword.operator.mlir"),
        ("!cute.layuot", "entity.name.type.mlir"),
    ],
}  # fmt: skip
"""Lines, and the pieces of them that have a scope."""


def test_the_files_are_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert main(["--check", "-o", str(tmp_path)]) == 1 and "is out of date" in capsys.readouterr().err
    assert main(["-o", str(tmp_path)]) == 0 and main(["--check", "-o", str(tmp_path)]) == 0
    for name, text in files().items():
        assert (tmp_path / name).read_text(encoding="utf-8") == text == (EDITORS / name).read_text(encoding="utf-8")


def first_scope(text: str) -> str:
    """Return the scope of the first pattern that matches, as VS Code does, if it matches the whole text."""
    grammar = json.loads(json.dumps(textmate()))
    for pattern in grammar["patterns"]:
        found = re.compile(pattern.get("match") or pattern["begin"]).match(text)
        if found is not None:
            inner = pattern.get("captures", {}).get("1", {}).get("name", "")
            return (pattern.get("name") or inner) if found.end() >= len(text.rstrip(" (<")) else ""
    return ""


def test_each_op_and_type_has_its_scope() -> None:
    assert [op for op in OPS if first_scope(f"{op} (") != "support.function.cute.mlir"] == []
    assert [op for op in OPS if first_scope(f'"{op}"(') != "support.function.cute.mlir"] == []
    assert [t for t in TYPES if first_scope(f"!{t}<") != "support.type.cute.mlir"] == []
    context = make_context()
    for name in context.registered_dialect_names:
        context.get_optional_op(f"{name}.none")
    others = [op.name for op in context.loaded_ops if not op.name.startswith(("cute.", "cute_nvgpu."))]
    assert [op for op in others if first_scope(f"{op} (") != "entity.name.function.op.mlir"] == []
    assert first_scope("cute.sise (") == first_scope("cute.size2 (") == "" != first_scope("!cute.layuot<")


def test_the_extension_is_whole() -> None:
    folder = EDITORS / "vscode"
    package = json.loads((folder / "package.json").read_text())
    contributed = package["contributes"]
    (language,), (grammar,) = contributed["languages"], contributed["grammars"]
    assert grammar["scopeName"] == textmate()["scopeName"] and grammar["language"] == language["id"] == "mlir"
    for name in (package["main"], language["configuration"], grammar["path"]):
        assert (folder / name).is_file()
    json.loads((folder / "language-configuration.json").read_text())
    assert contributed["configuration"]["properties"]["cute.server"]["default"] == ["cute-lsp"]
    script = (folder / "extension.js").read_text()
    assert 'getConfiguration("cute").get("server")' in script
    assert all(f'"{c["command"]}"' in script for c in contributed["commands"])
    assert re.findall(r'require\("([\w-]+)', script) == ["vscode", *package["dependencies"]]


def tokens(lines: list[str], folder: Path) -> list[list[tuple[str, str]]]:
    """Split lines into pieces with scopes, with the tokenizer of VS Code."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("VS Code's tokenizer needs node and npm")
    install = [npm, "install", "--silent", "--prefix", str(folder), "vscode-textmate@9", "vscode-oniguruma@2"]
    subprocess.run(install, check=True, capture_output=True)
    grammar = EDITORS / "vscode" / "syntaxes" / "mlir.tmLanguage.json"
    command = [node, str(ROOT / "test" / "support" / "tokenize.js"), str(folder / "node_modules"), str(grammar)]
    done = subprocess.run(command, input=json.dumps(lines), check=True, capture_output=True, text=True)
    return [[(text, scopes) for text, scopes in line] for line in json.loads(done.stdout)]


@pytest.mark.slow
def test_by_the_tokenizer_of_vs_code(tmp_path: Path) -> None:
    """VS Code's tokenizer highlights each name, complete lines, and the op in each line of an example."""
    example = (ROOT / "test" / "examples" / "sgemm_vector.mlir").read_text().splitlines()
    names = [*(f"{op} (" for op in OPS), *(f"!{t}<" for t in TYPES)]
    found = tokens([*LINES, *names, *example], tmp_path)
    for line, (text, wanted) in zip(found, LINES.items()):
        assert [(t, s) for t, s in line if s] == wanted, text
    of_names = found[len(LINES) :]
    for name, line in zip(names, of_names):
        kind = "support.type.cute.mlir" if name.startswith("!") else "support.function.cute.mlir"
        assert line[0] == (name.rstrip(" (<"), kind)
    ops = 0
    for text, line in zip(example, of_names[len(names) :]):
        op = re.match(r"\s*(?:%[\w:, %]+ = )?(cute(?:_nvgpu)?\.[\w.]+)", text)
        if op is not None:
            ops += 1
            assert (op[1], "support.function.cute.mlir") in line, text
    assert ops > 50
