"""Lowering inside upstream's own Python: results, locations, errors, and the pass."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from canonical_ops import CANONICAL
from ops_support import CONTEXT, parse
from xdsl.parser import Parser

from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines.embed import EmbedError, as_upstream_pass, lower

pytestmark = pytest.mark.usefixtures("ir")

F = """
module attributes {note.of = 3 : i32} {
  func.func @f(%l: !cute.layout<"(?,8):(8,1)">, %t: tensor<4xf32>) -> !cute.int_tuple<"?"> {
    %n = "cute.size"(%l) : (!cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?"> loc(callsite("a.mlir":3:4 at "b"))
    "cute.print"(%n) : (!cute.int_tuple<"?">) -> () loc(fused["c", "d"("e.mlir":5:6)])
    %e = linalg.fill ins(%c : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32> loc("g.mlir":7:8)
    "my.op"(%n, %e) {a = #my.attr<x>} : (!cute.int_tuple<"?">, tensor<4xf32>) -> () loc("h.mlir":9:10)
    func.return %n : !cute.int_tuple<"?">
  }
}
""".replace("    %e =", "    %c = arith.constant 1.0 : f32\n    %e =")

SMALL = """
func.func @main(%l: !cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?"> {
  %n = "cute.size"(%l) : (!cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?">
  "cute.print"(%n) : (!cute.int_tuple<"?">) -> ()
  func.return %n : !cute.int_tuple<"?">
}
"""


@pytest.fixture
def context(ir):
    """Return an upstream context that allows unregistered ops, such as those of cute."""
    made = ir.Context()
    made.allow_unregistered_dialects = True
    return made


def ops(module) -> list:
    """Return all ops, outer ops first."""
    from mlir import ir

    found = []

    def note(op):
        found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(note, ir.WalkOrder.PRE_ORDER)
    return found


def pass_manager(root: str, context):
    """Return upstream's pass manager."""
    from mlir.passmanager import PassManager

    return PassManager(root, context)


def test_a_module_comes_back_lowered_and_the_given_one_stays(ir, context) -> None:
    module = ir.Module.parse(F, context)
    before = str(module)
    lowered = lower(module)
    assert str(module) == before and lowered.context == context
    assert lowered.operation.verify()
    text = str(lowered)
    assert "cute" not in text and "note.of = 3" in text
    names = [op.name for op in ops(lowered)]
    assert names.count("arith.muli") == 1 and "llvm.call" in names
    assert "linalg.fill" in names and "my.op" in names


def test_locations_survive(ir, context) -> None:
    lowered = lower(ir.Module.parse(F, context))
    where = {op.name: str(op.location) for op in ops(lowered)}
    assert where["arith.muli"] == 'loc(callsite("a.mlir":3:4 at "b"))'
    assert where["llvm.call"] == 'loc(fused["c", "d"("e.mlir":5:6)])'
    assert where["linalg.fill"] == 'loc("g.mlir":7:8)'
    assert where["my.op"] == 'loc("h.mlir":9:10)'
    assert where["func.return"] == 'loc("-":9:5)'


@pytest.mark.parametrize("line", CANONICAL)
def test_every_op_crosses_and_comes_back(ir, context, line: str) -> None:
    """Check that opaque types and attributes survive: parsing the ops that upstream prints must give the same ops."""
    module = parse(line)
    carried = ir.Module.parse(ir_text(module, generic=True), context)
    text = str(carried.operation.get_asm(print_generic_op_form=True, use_local_scope=True))
    back = Parser(CONTEXT, text).parse_module()
    back.verify()
    assert back.is_structurally_equivalent(module)


def test_attributes_given_from_python_are_taken_as_properties(ir, context) -> None:
    with context, ir.Location.file("p.py", 3, 1):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            shape = ir.Operation.create("cute.static", results=[ir.Type.parse('!cute.shape<"(4,8)">')])
            ir.Operation.create(
                "cute.size",
                results=[ir.Type.parse('!cute.int_tuple<"8">')],
                operands=[shape.result],
                attributes={"mode": ir.DenseI32ArrayAttr.get([1])},
            )
    lowered = lower(module, ["cute-expand-ops"])
    assert [str(op.results[0].type) for op in lowered.body.operations][-1] == '!cute.int_tuple<"8">'


@pytest.mark.parametrize(
    ("pipeline", "there", "gone"),
    [
        ("base", "llvm.call", "cute"),
        ("host", "llvm.func @main", "func.func"),
        ("cute-expand-ops", "cute.get_scalars", '"cute.size"'),
        (["cute-expand-ops", "cute-to-base", "canonicalize"], "arith.muli", "cute"),
        ("builtin.module(cute-expand-ops,cute-to-base)", "arith.muli", "cute"),
        (["cse"], '"cute.size"', "llvm"),
    ],
)
def test_pipelines(ir, context, pipeline, there: str, gone: str) -> None:
    done = str(lower(ir.Module.parse(SMALL, context), pipeline))
    assert there in done and gone not in done


KERNEL = """
gpu.module @m {
  gpu.func @k(%n: i32) kernel {
    %s = "cute.make_shape"(%n) : (i32) -> !cute.shape<"(?,6)">
    "cute.print"(%s) : (!cute.shape<"(?,6)">) -> ()
    gpu.return
  }
}
"""


def test_down_to_ptx(ir, context) -> None:
    lowered = lower(ir.Module.parse(KERNEL, context), "nvptx=chip=sm_90a")
    (binary,) = lowered.body.operations
    assert binary.name == "gpu.binary" and ".entry k(" in str(binary).replace("\\0A", "\n")


# --------------------------------------------------------------------------------------------------------------- errors

WRONG = [
    ('%s = "cute.static"() : () -> !cute.shape<"(4,8"> loc("k.mlir":7:9)', "invalid shape '(4,8'"),
    ('"cute.statik"() : () -> () loc("k.mlir":7:9)', "unregistered operation 'cute.statik'"),
    ('"cute.static"() : () -> i32 loc("k.mlir":7:9)', "expected a cute value, got i32"),
    (
        'func.func @f(%l: !cute.shape<"(?,8)">) {\n'
        '  %n = "cute.size"(%l) : (!cute.shape<"(?,8)">) -> !cute.int_tuple<"8"> loc("k.mlir":7:9)\n  func.return }',
        'expected !cute.int_tuple<"?">, got !cute.int_tuple<"8">',
    ),
    (
        'func.func @f(%l: !cute.shape<"(?,8)">) {\n  %n = "cute.size"(%l) : (!cute.shape<"(?,8)">) '
        '-> !cute.int_tuple<"?"> loc(fused["x", "k.mlir":7:9])\n  func.return }',
        "'cute.size' cannot be lowered here; run the earlier cute passes first",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_errors_have_the_position_of_their_op(ir, context, text: str, message: str) -> None:
    module = ir.Module.parse(text, context)
    with pytest.raises(EmbedError) as caught:
        lower(module, "cute-to-base")
    assert message in caught.value.message
    assert (caught.value.filename, caught.value.line, caught.value.col) == ("k.mlir", 7, 9)
    assert str(caught.value).startswith("k.mlir:7:9: error: ")


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_the_pass_fails_with_the_same_errors(ir, context, text: str, message: str) -> None:
    module = ir.Module.parse(text, context)
    before = str(module)
    passes = pass_manager("builtin.module", context)
    passes.add(as_upstream_pass("cute-to-base", context), name="cute")
    with pytest.raises(ir.MLIRError) as caught:
        passes.run(module.operation)
    (diagnostic,) = caught.value.error_diagnostics
    assert message in diagnostic.message and str(diagnostic.location) == 'loc("k.mlir":7:9)'
    assert str(module) == before


def test_what_is_left_for_upstream_is_told(ir, context) -> None:
    with pytest.raises(EmbedError, match=r"which does not know 'func\.func' with cute types: lower it first"):
        lower(ir.Module.parse(F, context), ["cute-expand-ops", "base-prepare"])


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("bass", "unknown pipeline 'bass'; did you mean 'base'?"),
        (["cute-expand-op"], "did you mean 'cute-expand-ops'"),
        ("builtin.module(cute-expand-ops", "expected ')'"),
        (["base-prepare", "cute-to-base"], "cannot run after 'base-prepare'"),
    ],
)
def test_pipelines_that_cannot_be(ir, context, pipeline, message: str) -> None:
    module = ir.Module.parse(F, context)
    with pytest.raises(EmbedError) as caught:
        lower(module, pipeline)
    assert message in str(caught.value)
    with pytest.raises(EmbedError):
        as_upstream_pass(pipeline, context)


# ------------------------------------------------------------------------------------------------------------- the pass


def test_as_a_step_of_an_upstream_pipeline(ir, context) -> None:
    module = ir.Module.parse(F, context)
    passes = pass_manager("builtin.module", context)
    passes.add("canonicalize")
    passes.add(as_upstream_pass("base", context), name="cute")
    passes.add("cse,func.func(canonicalize)")
    passes.run(module.operation)
    assert module.operation.verify()
    names = [op.name for op in ops(module)]
    assert names.count("arith.muli") == 1 and "llvm.insertvalue" not in names
    assert "note.of = 3" in str(module) and "cute" not in str(module)


def test_values_at_the_top_of_a_module(ir, context) -> None:
    module = ir.Module.parse(
        '%s = "cute.static"() : () -> !cute.shape<"(4,8)">\n'
        '%n = "cute.size"(%s) : (!cute.shape<"(4,8)">) -> !cute.int_tuple<"32">\n'
        '"my.use"(%n) : (!cute.int_tuple<"32">) -> ()',
        context,
    )
    passes = pass_manager("builtin.module", context)
    passes.add(as_upstream_pass("cute-fold-static", context), name="fold")
    passes.run(module.operation)
    assert [op.name for op in module.body.operations] == ["cute.static", "cute.static", "my.use"]


def test_atomics_go_back_as_strong_as_they_are(ir, context) -> None:
    kernel = """"gpu.module"() <{sym_name = "m"}> ({
      "llvm.func"() <{sym_name = "k", function_type = !llvm.func<void (ptr<1>, i32)>, linkage = #llvm.linkage<external>,
          CConv = #llvm.cconv<ccc>, visibility_ = 0 : i64}> ({
      ^bb0(%p: !llvm.ptr<1>, %v: i32):
        %r = "llvm.atomicrmw"(%p, %v) <{bin_op = 1 : i64, ordering = 4 : i64}> : (!llvm.ptr<1>, i32) -> i32
        "llvm.return"() : () -> ()
      }) : () -> ()
    }) : () -> ()"""
    lowered = str(lower(ir.Module.parse(kernel, context), "base"))
    assert "atom.acquire.sys.global.add.u32" in lowered and "atomicrmw" not in lowered


def test_the_pass_wants_a_module(ir, context) -> None:
    module = ir.Module.parse(F, context)
    passes = pass_manager("any", context)
    passes.add(as_upstream_pass("base", context), name="cute")
    (function,) = module.body.operations
    with pytest.raises(ir.MLIRError, match=r"this pass runs on builtin\.module, got 'func\.func'"):
        passes.run(function.operation)


def test_the_context_may_be_the_current_one(context) -> None:
    with pytest.raises(ValueError, match="context"):
        as_upstream_pass("base")
    with context:
        assert callable(as_upstream_pass("base"))


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[1] / "examples" / "embed_upstream.py"
    spec = importlib.util.spec_from_file_location("embed_upstream", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main()
    out = capsys.readouterr().out
    assert out.count("func.func @offset(") == 1 and out.count("llvm.func @offset(") == 1
    assert '"cute.' not in out and "!cute." not in out
    assert out.endswith("// line 10, column 11: 'cute.size' op expected mode index in [0, 2) at depth 0, got 5\n")
