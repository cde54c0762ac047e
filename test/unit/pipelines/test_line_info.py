"""``lineinfo``: PTX and cubin map each instruction to its source line, including inlined functions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, NameLoc, StringAttr

from cute_dialect.errors import CompileError
from cute_dialect.ir.diagnostics import Frame, Position, location_frames
from cute_dialect.pipelines import compile, compiler
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.pipelines.handoff import CallSites
from cute_dialect.pipelines.registry import PipelineError, named_pipeline, with_options
from cute_dialect.tools.cute_opt import main as cute_opt

EXAMPLES = Path(__file__).parents[2] / "examples"

KERNEL = """
gpu.module @kernels {
  gpu.func @k(%p: !llvm.ptr<1>, %n: i32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %a = llvm.load %p : !llvm.ptr<1> -> i32 loc("/u/x.py":40:5)
    %b = arith.addi %a, %n : i32 loc(callsite("f"("/u/h.py":3:5) at "/u/x.py":41:7))
    %c = arith.muli %b, %a : i32 loc(callsite("g"("/u/h.py":8:5) at callsite("f"("/u/h.py":4:5) at "/u/x.py":42:7)))
    %d = arith.xori %c, %n : i32 loc("value"("/u/y.py":99:3))
    llvm.store %d, %p : i32, !llvm.ptr<1> loc(fused["/u/x.py":43:5, "/u/x.py":44:5])
    gpu.return loc("/u/x.py":45:5)
  } loc("/u/x.py":38:1)
}
"""


def place(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def ptx_of(source: str, **keywords: object) -> str:
    (code,) = compile(source, emit="ptx", cache=False, **keywords).artifact.code  # pyright: ignore[reportArgumentType]
    return code.ptx


def places(ptx: str) -> list[str]:
    """Return the ``.loc`` directives with file names, and the opcodes of the instructions that follow them."""
    files = dict(re.findall(r'^\t\.file\t(\d+) "(.*)"$', ptx, re.M))
    names = {
        label: bytes(map(int, numbers.split(",")[:-1])).decode()
        for label, numbers in re.findall(r"^(\$L__function\d+):\n\t\.b8 ([\d,]+)$", ptx, re.M)
    }
    shown: list[str] = []
    for line in ptx.splitlines():
        if line.startswith("\t.loc\t"):
            line = re.sub(r"(?<=\.loc\t)(\d+)|(?<=inlined_at )(\d+)", lambda m: files[m[0]], line)
            shown.append(re.sub(r"\$L__function\d+", lambda m: names[m[0]], line.removeprefix("\t.loc\t")))
        elif re.match(r"\t(?:ld\.global|add|mul|xor|st|ret)", line):
            shown.append(re.split(r"[. ;]", line.strip())[0])
    return shown


def test_locations_and_call_sites() -> None:
    assert places(ptx_of(KERNEL, lineinfo=True)) == [
        "/u/x.py 38 0",
        "/u/x.py 40 5",
        "ld",
        "/u/x.py 41 7",
        "/u/h.py 3 5, function_name f, inlined_at /u/x.py 41 7",
        "add",
        "/u/x.py 42 7",
        "/u/h.py 4 5, function_name f, inlined_at /u/x.py 42 7",
        "/u/h.py 8 5, function_name g, inlined_at /u/h.py 4 5",
        "mul",
        "/u/y.py 99 3",
        "xor",
        "/u/x.py 43 5",
        "st",
        "/u/x.py 45 5",
        "ret",
    ]


def test_off_by_default() -> None:
    assert not re.search(r"\.loc|\.file|debug", ptx_of(KERNEL))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["elementwise_add.mlir", "gemm_sm90.mlir"])
def test_instructions_are_the_same(name: str) -> None:
    """Line info adds only directives and labels."""

    def instructions(ptx: str) -> list[str]:
        kept = [
            line for line in ptx.splitlines() if not re.match(r"\t\.(loc|file|section)|\$L__(tmp|func_)|\s*$", line)
        ]
        return kept

    text = (EXAMPLES / name).read_text()
    plain, lines = ptx_of(text), ptx_of(text, lineinfo=True, filename=name)
    assert instructions(plain) == instructions(lines)
    assert f'\t.file\t1 "{name}"' in lines
    if name.startswith("gemm"):  # A wgmma chain has the location of its first op.
        number = text.splitlines().index(next(line for line in text.splitlines() if "cute.gemm" in line)) + 1
        before = lines[: lines.index("wgmma.mma_async")]
        assert re.findall(r"\.loc\t1 (\d+) ", before)[-1] == str(number)


def test_cubin_has_the_lines() -> None:
    (plain,) = compile(KERNEL, emit="cubin", cache=False).artifact.code
    (code,) = compile(KERNEL, emit="cubin", cache=False, lineinfo=True).artifact.code
    assert plain.cubin is not None and b".debug_line" not in plain.cubin
    assert code.cubin is not None and b".debug_line\0" in code.cubin
    assert b"x.py\0" in code.cubin and b"h.py\0" in code.cubin and b"call site" not in code.cubin
    assert b"f\0g\0" in code.cubin  # .debug_str


def test_an_xdsl_module_keeps_its_locations() -> None:
    module = parse_module(KERNEL.replace("loc(", "// loc("))
    (add,) = (op for op in module.walk() if op.name == "arith.addi")
    add.location = CallSiteLoc(NameLoc(StringAttr("helper"), place("<ipython>", 3, 5)), place("/u/z.py", 9, 1))
    (code,) = compile(module, lineinfo=True, emit="ptx").artifact.code
    shown = places(code.ptx)
    assert shown[shown.index("add") - 2 : shown.index("add")] == [
        "/u/z.py 9 1",
        "<ipython> 3 5, function_name helper, inlined_at /u/z.py 9 1",
    ]
    assert add.location == CallSiteLoc(NameLoc(StringAttr("helper"), place("<ipython>", 3, 5)), place("/u/z.py", 9, 1))


def test_frames() -> None:
    f, g = NameLoc(StringAttr("f"), place("h.py", 4, 5)), NameLoc(StringAttr("g"), place("h.py", 8, 5))
    chain = CallSiteLoc(g, CallSiteLoc(f, place("x.py", 42, 7)))
    wanted = (
        Frame(Position("h.py", 8, 5), "g"), Frame(Position("h.py", 4, 5), "f"), Frame(Position("x.py", 42, 7)),
    )  # fmt: skip
    assert location_frames(chain) == wanted
    assert location_frames(NameLoc(StringAttr("value"), chain)) == wanted
    assert location_frames(NameLoc(StringAttr("value"), place("x.py", 1, 2))) == (Frame(Position("x.py", 1, 2)),)


def test_old_versions_of_ptx_have_no_chains() -> None:
    sites = CallSites()
    found = sites.place(CallSiteLoc(place("h.py", 3, 5), place("x.py", 41, 7)))
    assert found == ("h.py (call site 0)", 3, 5)
    body = ".version {}\n\t.loc\t2 3 5\n\tadd;\n\t.loc\t1 0 0\n\tret;\n"
    body += '\t.file\t1 "x.py"\n\t.file\t2 "h.py (call site 0)"\n'
    old, new = sites.restore(body.format("7.1")), sites.restore(body.format("7.2"))
    assert old == '.version 7.1\n\t.loc\t1 3 5\n\tadd;\n\t.loc\t2 0 0\n\tret;\n\t.file\t1 "h.py"\n\t.file\t2 "x.py"\n'
    assert "\t.loc\t1 41 7\n\t.loc\t2 3 5, function_name $L__function0, inlined_at 1 41 7\n\tadd;" in new


def test_a_file_that_is_named_like_a_call_site() -> None:
    """A file name that looks like a call-site marker is kept if no such call site was recorded."""
    sites = CallSites()
    ptx = '\t.loc\t1 3 5\n\t.file\t1 "h.py (call site 7)"\n'
    assert sites.restore(ptx) == ptx
    assert sites.plain("h.py (call site 7)") == "h.py (call site 7)"


def test_errors_of_upstream_are_reported_at_the_callee() -> None:
    bad = KERNEL.replace(
        'llvm.load %p : !llvm.ptr<1> -> i32 loc("/u/x.py":40:5)',
        'llvm.load %p atomic monotonic : !llvm.ptr<1> -> i32 loc(callsite("f"("/u/y.py":99:3) at "/u/x.py":1:1))',
    )
    with pytest.raises(CompileError, match=r"(?m)^/u/y.py:99:3: error: .*alignment"):
        ptx_of(bad, lineinfo=True)


def test_the_cache_knows_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "_MEMORY", {})
    text = KERNEL.replace("loc(", "// loc(")
    for name in ("a.mlir", "b.mlir", "a.mlir"):
        for pipeline, lineinfo in (("nvptx", True), ("nvptx=lineinfo=true", False)):
            (code,) = compile(text, filename=name, emit="ptx", lineinfo=lineinfo, pipeline=pipeline).artifact.code
            assert f'\t.file\t1 "{name}"' in code.ptx


def test_options() -> None:
    assert with_options("nvptx=O=2", {"lineinfo": "true"}) == "nvptx=lineinfo=true,O=2"
    assert with_options("", {"lineinfo": "true"}) == "nvptx=lineinfo=true"
    row, options = named_pipeline("nvptx=lineinfo=true,compilation-target=bin")
    with pytest.raises(PipelineError, match="'lineinfo' of pipeline 'nvptx': needs compilation-target=isa, got 'bin'"):
        row.text(options)
    with pytest.raises(CompileError, match="lineinfo: expected True or False, got 1"):
        compile(KERNEL, lineinfo=1)  # pyright: ignore[reportArgumentType]


def test_cute_opt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(KERNEL)
    assert cute_opt([str(file), "--lineinfo", "--emit=ptx"]) == 0
    assert "inlined_at" in capsys.readouterr().out
    assert cute_opt([str(file), "--lineinfo", "--emit=llvm"]) == 0
    out = capsys.readouterr().out
    assert 'filename: "h.py"' in out and "call site" not in out
    assert cute_opt([str(file), "--lineinfo", "--cse"]) == 1
    assert "option '--lineinfo' needs a named pipeline; add --pipeline" in capsys.readouterr().err


@pytest.mark.parametrize("inlined", [False, True])
def test_names_of_files_that_need_quoting(inlined: bool) -> None:
    """File names with special characters keep their locations."""
    module = parse_module(KERNEL.replace("loc(", "// loc("))
    ops = [op for op in module.walk() if op.name in ("arith.addi", "arith.muli", "arith.xori", "llvm.store")]
    for number, op in enumerate(ops):
        here = place(f'dir\\ "{number}"/ä.py', 10 + number, 1)
        op.location = CallSiteLoc(here, place("k.py", 1 + number, 1)) if inlined or not number else here
    (code,) = compile(module, lineinfo=True).artifact.code
    files = dict(re.findall(r'^\t\.file\t(\d+) "(.*)"$', code.ptx, re.M))
    found = [(files[index], line) for index, line in re.findall(r"\.loc\t(\d+) (\d\d) 1", code.ptx)]
    assert found == [(f"dir\\\\ '{number}'/\\303\\244.py", str(10 + number)) for number in range(4)]
