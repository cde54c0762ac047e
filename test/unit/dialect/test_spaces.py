"""Memory spaces: member names, and a new space added by one row of the table."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.dialects.builtin import f32

from cute_dialect import spaces
from cute_dialect.dialect.memory_types import ptr
from cute_dialect.spaces import AddressSpace

SUPPORT = Path(__file__).parents[2] / "support"
ROW = '    cmem = _Row("cmem", "constant memory", 4, ".const")\n'
INACCESSIBLE = '    cmem = _Row("cmem", "constant memory", 4, accessed_by="bound textures")\n'
WITH_ROW = """\
import sys, types
import cute_dialect
from pathlib import Path

path, row, *arguments = sys.argv[1:]
text = Path(path).read_text()
last = next(line for line in text.splitlines(True) if line.startswith('    dsmem = '))
module = types.ModuleType("cute_dialect.spaces")
sys.modules[module.__name__] = cute_dialect.spaces = module
exec(compile(text.replace(last, row + last), path, "exec"), module.__dict__)
"""
"""Start of a program: replaces the table of spaces with a copy that has one more row."""

OPS = """\
func.func @f(%t: !cute.memref<f32, cmem, align<16>, "(4,8):(8,1)">, %c: !cute.coord<"(?,?)">) -> f32 {
  %p = cute.get_iter(%t) : !cute.memref<f32, cmem, align<16>, "(4,8):(8,1)">
  %v = cute.memref.load(%t, %c) : (!cute.memref<f32, cmem, align<16>, "(4,8):(8,1)">, !cute.coord<"(?,?)">) -> f32
  return %v : f32
}
"""
OPT = "from cute_dialect.tools.cute_opt import main\nsys.exit(main(arguments))\n"
KERNEL = f"""
sys.path.insert(0, {str(SUPPORT)!r})
from tracing import text_of, trace_kernel
from cute_dialect import lang as cute

def body():
    p = cute.make_ptr(cute.Float32, 64, cute.AddressSpace.cmem)
    print(p.memspace, repr(p))
    p.load()

print(text_of(trace_kernel(body, {{}})))
"""


def run(program: str, *arguments: str, stdin: str = "", row: str = ROW) -> tuple[str, str]:
    """Run a program with an extra row in the table of spaces. Return its standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", WITH_ROW + program, spaces.__file__, row, *arguments],
        input=stdin, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_spaces_are_their_names() -> None:
    assert ", ".join(AddressSpace) == "generic, gmem, smem, rmem, tmem, dsmem"
    for space in AddressSpace:
        assert space == space.name == str(space) == f"{space}" and AddressSpace(space.name) is space
        assert repr(space) == f"AddressSpace.{space.name}" and json.dumps(space) == f'"{space.name}"'


def test_unknown_spaces_are_errors() -> None:
    with pytest.raises(ValueError, match="'kmem' is not a valid AddressSpace"):
        ptr(f32, "kmem")


def test_a_row_adds_a_space_to_types_and_ops() -> None:
    printed, errors = run(OPT, "-", "--verify-roundtrip", stdin=OPS)
    assert errors == ""
    assert 'cute.get_iter(%arg0) : !cute.memref<f32, cmem, align<16>, "(4,8):(8,1)">' in printed
    lowered, errors = run(OPT, "-", "--cute-expand-ops", "--cute-to-base", stdin=OPS)
    assert errors == "" and re.search(r"llvm.load %\w+ .*: !llvm.ptr<4> -> f32", lowered)


def test_a_row_adds_a_space_to_errors() -> None:
    _, errors = run(OPT, "-", stdin=OPS.replace("cmem", "kmem"))
    assert "expected a memory space (generic, gmem, smem, rmem, tmem, cmem, dsmem), got 'kmem'" in errors
    _, errors = run(OPT, "-", stdin=OPS, row=INACCESSIBLE)
    assert (
        "threads can load and store; only bound textures access constant memory, got !cute.memref<f32, cmem" in errors
    )


def test_a_row_adds_a_space_to_the_language() -> None:
    printed, errors = run(KERNEL)
    assert errors == "" and printed.startswith("cmem ptr<f32, cmem>\n")
    assert "llvm.inttoptr" in printed and "!llvm.ptr<4>" in printed and "!cute.ptr<f32, cmem>" in printed
