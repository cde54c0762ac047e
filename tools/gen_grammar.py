"""Writes what editors colour ``.mlir`` by, from the tables of the dialects: a TextMate grammar, a syntax file of Vim.

    python -m cute_dialect.tools.gen_grammar            # writes editors/vscode/syntaxes and editors/vim/syntax
    python -m cute_dialect.tools.gen_grammar --check    # exit status 1 if a file is not what would be written

The ops and types of ``cute`` and ``cute_nvgpu`` are named one by one, so that a misspelt one keeps no colour; of other
dialects any op is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from xdsl.ir import TypeAttribute

from cute_dialect.dialect import get_cute_dialect, get_cute_nvgpu_dialect
from cute_dialect.ir.context import make_context

__all__ = ["files", "main", "textmate"]

EDITORS = Path(__file__).resolve().parents[1] / "editors"

Pattern: TypeAlias = "dict[str, str | dict[str, dict[str, str]] | list[Pattern]]"

_BARE = ("module", "return", "func", "call")
"""Ops that may stand without their dialect."""

_WORDS = (
    "attributes", "kernel", "private", "public", "loc", "to", "step", "iter_args", "else", "do", "in", "into",
    "workgroup", "dense", "array", "affine_map", "blocks", "threads", "clusters", "args", "reduce",
    "dynamic_shared_memory_size",
)  # fmt: skip
_TYPES = (
    r"[su]?i[0-9]+", "bf16", "tf32", "f16", "f32", "f64", "f80", "f128", r"f[468]E[0-9]M[0-9][A-Z0-9]*", "index",
    "none", "vector", "tensor", "memref", "tuple", "complex",
)  # fmt: skip
_END = r"(?![\w$.])"


def _own_names() -> tuple[list[str], list[str]]:
    """Return the ops and the types of our dialects."""
    dialects = (get_cute_dialect(), get_cute_nvgpu_dialect())
    ops = sorted(op.name for d in dialects for op in d.operations)
    types = sorted({a.name for d in dialects for a in d.attributes if issubclass(a, TypeAttribute)})
    return ops, types


def _one_of(names: Iterable[str]) -> str:
    """Return a pattern of names with dots; one that begins with another comes first."""
    return "(?:" + "|".join(n.replace(".", r"\.") for n in sorted(names, key=lambda n: (-len(n), n))) + ")"


def textmate() -> Mapping[str, object]:
    """Return the TextMate grammar of MLIR with cute ops."""
    ops, types = _own_names()
    dialects = sorted(set(make_context().registered_dialect_names) - {"cute", "cute_nvgpu"})
    own, other = _one_of(ops), rf"{_one_of(dialects)}(?:\.[\w$]+)+"

    def match(name: str, pattern: str) -> Pattern:
        return {"name": f"{name}.mlir", "match": pattern}

    check = r"[A-Z][A-Z0-9_]*(?:-(?:NEXT|SAME|NOT|LABEL|DAG|EMPTY))?"
    comment: Pattern = {
        "name": "comment.line.double-slash.mlir",
        "begin": "//",
        "end": "$",
        "patterns": [
            match(
                "keyword.other.test",
                rf"\b{check}:",
            ),
            match("variable.parameter.option", r"(?<=\s)--?[a-z][\w-]*"),
        ],
    }
    string: Pattern = {
        "name": "string.quoted.double.mlir",
        "begin": '"',
        "end": '"|$',
        "patterns": [match("constant.character.escape", r"\\.")],
    }
    patterns: list[Pattern] = [
        comment,
        {"match": rf'"({own})"(?=\s*\()', "captures": {"1": {"name": "support.function.cute.mlir"}}},
        {"match": rf'"({other})"(?=\s*\()', "captures": {"1": {"name": "entity.name.function.op.mlir"}}},
        string,
        match("support.type.cute", f"!{_one_of(types)}{_END}"),
        match("entity.name.type", r"![a-zA-Z_][\w$.]*"),
        match("constant.other.attribute", r"#[a-zA-Z_][\w$.]*"),
        match("variable.other", r"%(?:[0-9]+|[a-zA-Z$._-][\w$.-]*)(?:#[0-9]+)?"),
        match("entity.name.function.symbol", r'@(?:[a-zA-Z_][\w$.]*|"[^"\n]*")'),
        match("entity.name.label", r"\^[\w$.-]+"),
        match("support.function.cute", rf"(?<![\w$.]){own}{_END}"),
        match("entity.name.function.op", rf"(?<![\w$.]){other}"),
        match("keyword.control", rf"(?<![\w$.]){_one_of(_BARE)}{_END}"),
        match("storage.type", rf"(?<![\w$.])(?:[0-9?]+x)*(?:{'|'.join(_TYPES)}){_END}"),
        match("constant.language", rf"\b(?:true|false|unit){_END}"),
        match("keyword.other", rf"(?<![\w$.])(?:{'|'.join(_WORDS)}){_END}"),
        match("constant.numeric", r"(?<![\w$.])-?(?:0x[0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\b"),
        match("keyword.operator", r"->|[=:]"),
    ]
    return {
        "name": "MLIR with cute ops",
        "scopeName": "source.mlir",
        "fileTypes": ["mlir"],
        "patterns": patterns,
    }


def vim() -> str:
    """Return the syntax file of Vim and Neovim."""
    ops, types = _own_names()
    dialects = sorted(set(make_context().registered_dialect_names) - {"cute", "cute_nvgpu"})
    words = [
        '" MLIR with cute ops; made by python -m cute_dialect.tools.gen_grammar',
        'if exists("b:current_syntax") | finish | endif',
        "syntax iskeyword @,48-57,_,.,$",
        f"syntax keyword mlirWord {' '.join(_WORDS)}",
        f"syntax keyword mlirBare {' '.join(_BARE)}",
        "syntax keyword mlirConstant true false unit",
        *(f"syntax keyword cuteOp {name}" for name in ops),
        rf"syntax match mlirOp /\<\%({'|'.join(dialects)}\)\.[A-Za-z0-9_.$]\+/".replace("|", r"\|"),
        r"syntax match mlirType /![A-Za-z_][A-Za-z0-9_.$]*/",
        *(rf"syntax match cuteType /!{name.replace('.', chr(92) + '.')}[A-Za-z0-9_.$]\@!/" for name in types),
        r"syntax match mlirBuiltin /\<\%([0-9?]\+x\)*\%([su]\?i\d\+\|b\?f16\|t\?f32\|f64\|index\|none\)\>/",
        r"syntax match mlirBuiltin /\<\%([0-9?]\+x\)*f[468]E\dM\d[A-Z0-9]*\>/",
        r"syntax match mlirBuiltin /\<\%(vector\|tensor\|memref\|tuple\|complex\)\ze</",
        r"syntax match mlirAttribute /#[A-Za-z_][A-Za-z0-9_.$]*/",
        r"syntax match mlirValue /%[A-Za-z0-9_.$-]\+\%(#\d\+\)\?/",
        r'syntax match mlirSymbol /@\%([A-Za-z_][A-Za-z0-9_.$]*\|"[^"]*"\)/',
        r"syntax match mlirLabel /\^[A-Za-z0-9_.$-]\+/",
        r"syntax match mlirNumber /\<-\?\d\+\%(\.\d*\)\?\%([eE][-+]\?\d\+\)\?\>/",
        r'syntax region mlirString start=/"/ skip=/\\./ end=/"/ oneline',
        r"syntax match mlirRun /\<\%(RUN\|CHECK[A-Z0-9_-]*\|XFAIL\|REQUIRES\):/ contained",
        r"syntax match mlirOption /\s\zs--\?[a-z][A-Za-z0-9-]*/ contained",
        r"syntax match mlirComment /\/\/.*/ contains=mlirRun,mlirOption",
    ]
    links = {
        "cuteOp": "Function", "cuteType": "Type", "mlirOp": "Identifier", "mlirBare": "Statement",
        "mlirWord": "Keyword",
        "mlirConstant": "Boolean", "mlirType": "Type", "mlirBuiltin": "Type", "mlirAttribute": "Constant",
        "mlirValue": "Special", "mlirSymbol": "Label", "mlirLabel": "Label", "mlirNumber": "Number",
        "mlirString": "String", "mlirRun": "Todo", "mlirOption": "PreProc", "mlirComment": "Comment",
    }  # fmt: skip
    words += [f"highlight default link {group} {to}" for group, to in links.items()]
    return "\n".join([*words, 'let b:current_syntax = "mlir"', ""])


def files() -> dict[Path, str]:
    """Return the files that are written, below ``editors``, and their texts."""
    grammar = json.dumps(textmate(), indent=2, ensure_ascii=False) + "\n"
    return {Path("vscode/syntaxes/mlir.tmLanguage.json"): grammar, Path("vim/syntax/mlir.vim"): vim()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return the exit status."""
    parser = argparse.ArgumentParser(prog="gen_grammar", description="Write the grammars of .mlir for editors.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a file is out of date")
    parser.add_argument("-o", "--output", type=Path, default=EDITORS, help="the folder (default: editors)")
    options = parser.parse_args(arguments)
    for name, text in files().items():
        path: Path = options.output / name
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path} is out of date: run python -m cute_dialect.tools.gen_grammar", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
