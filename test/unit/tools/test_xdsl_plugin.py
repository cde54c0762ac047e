"""The xDSL plug-in: registered dialects, and the project's passes as passes of xDSL."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.exceptions import PassFailedException

from cute_dialect.ir.printing import ir_text
from cute_dialect.passes.base import Pass, PassContext, PassError, PassOptions, as_module_pass
from cute_dialect.passes.registry import PASSES
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.universe import CUTE_UNIVERSE

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = """
func.func @f(%s: !cute.shape<"(?,6)">) -> !cute.int_tuple<"?"> {
  %n = cute.size (%s) : (!cute.shape<"(?,6)">) -> !cute.int_tuple<"?">
  return %n : !cute.int_tuple<"?">
}
func.func @g(%s: !cute.shape<"(?,6)">) -> !cute.shape<"(?,6)"> {
  return %s : !cute.shape<"(?,6)">
}
"""


class CountOps(Pass):
    """Reports functions with too few or too many ops."""

    name = "count-ops"
    anchor = ("func.func",)

    @dataclass(frozen=True)
    class Options(PassOptions):
        least: int = 0
        most: tuple[int, ...] = ()
        who: str | None = None

    def run(self, op: Operation, ctx: PassContext) -> None:
        options = self.options_as(self.Options)
        count = sum(1 for _ in op.walk()) - 1
        if count < options.least:
            raise PassError(f"{count} ops are too few for {options.who}", op)
        for most in options.most:
            if count > most:
                ctx.error(f"{count} ops are more than {most}", op)
        ctx.warning("counted", op)


def context() -> Context:
    """Return the context of xdsl-opt with the plug-in installed."""
    made = Context()
    universe = Universe.get_multiverse()
    for name, factory in universe.all_dialects.items():
        made.register_dialect(name, factory)
    return made


def run(text: str, pipeline: str, passes: dict[str, type[Pass]] | None = None) -> ModuleOp:
    """Run a pipeline in xDSL's syntax and return the resulting module."""
    ctx = context()
    module = Parser(ctx, text).parse_module()
    known = {name: lambda p=p: as_module_pass(p) for name, p in (passes or {}).items()}
    PassPipeline.parse_spec(dict(Universe.get_multiverse().all_passes) | known, pipeline).apply(ctx, module)
    module.verify()
    return module


def test_plug_in_is_found_without_clashes() -> None:
    found = Universe.get_multiverse()  # This raises ValueError if names clash.
    for name in ("cute", "cute_nvgpu", "nvvm", "nvgpu", "index"):
        assert found.all_dialects[name] is CUTE_UNIVERSE.all_dialects[name]
        assert found.all_dialects[name]().name == name
    ours = ("cute-fold-static", "cute-expand-ops", "convert-cute-algo-to-arch", "cute-to-base")
    assert set(ours) <= set(CUTE_UNIVERSE.all_passes)
    assert not set(CUTE_UNIVERSE.all_dialects) & set(XDSL_UNIVERSE.all_dialects)
    assert not set(CUTE_UNIVERSE.all_passes) & set(XDSL_UNIVERSE.all_passes)
    for name in ours:
        made = CUTE_UNIVERSE.all_passes[name]()
        assert made.name == made().name == name


def test_every_cute_pass_is_registered() -> None:
    assert set(CUTE_UNIVERSE.all_passes) == {row.name for row in PASSES.values() if row.scope == "cute"}


def test_importing_the_plug_in_imports_no_dialect() -> None:
    code = (
        "import sys, cute_dialect.universe\n"
        "print([m for m in sys.modules if m.startswith(('cute_dialect.dialect', 'mlir'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pipeline_of_both() -> None:
    module = run(TEXT, "cute-expand-ops,canonicalize,cute-to-base,canonicalize,cse,dce")
    names = {op.name for op in module.walk()}
    assert "arith.muli" in names and not any(name.startswith("cute") for name in names)


def test_attributes_of_llvm_that_nvvm_takes() -> None:
    """nvvm ops accept ``#llvm.constant_range``, which xDSL's ``llvm`` dialect lacks."""
    module = run(
        '"func.func"() <{function_type = () -> i32, sym_name = "f"}> ({\n'
        '  %0 = "nvvm.read.ptx.sreg.tid.x"() <{range = #llvm.constant_range<i32, 0, 128>}> : () -> i32\n'
        '  "func.return"(%0) : (i32) -> ()\n}) : () -> ()\n',
        "canonicalize",
    )
    assert "nvvm.read.ptx.sreg.tid.x range <i32, 0, 128>" in str(module)


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.sample("elementwise_add")
@pytest.mark.parametrize("example", sorted(p.stem for p in EXAMPLES.glob("*.mlir") if "gpu.func" in p.read_text()))
def test_kernels_are_read_in_generic_form(example: str) -> None:
    """Kernels are read as docs/embedding.md shows. Attributes keep the sizes that xDSL's ``gpu.func`` lacks."""
    module = parse_module((EXAMPLES / f"{example}.mlir").read_text())
    for op in module.walk():
        for name in ("known_block_size", "known_cluster_size"):
            if op.name == "gpu.func" and name in op.properties:
                op.attributes[name] = op.properties.pop(name)
    lowered = run(
        ir_text(module, generic=True), "cute-fold-static,cute-expand-ops,convert-cute-algo-to-arch,cute-to-base"
    )
    names = {op.name for op in lowered.walk()}
    assert "gpu.launch_func" in names and not [name for name in names if name.startswith("cute")]


def test_options_cross() -> None:
    run(TEXT, "count-ops", {"count-ops": CountOps})
    run(TEXT, "count-ops{least=1 most=2,3}", {"count-ops": CountOps})
    with pytest.raises(PassFailedException, match=r"^1 ops are too few for me$"):
        run(TEXT, 'count-ops{least=2 who="me"}', {"count-ops": CountOps})


def test_all_errors_are_reported() -> None:
    with pytest.raises(
        PassFailedException, match=r"^2 ops are more than 1; 2 ops are more than 0; 1 ops are more than 0$"
    ):
        run(TEXT, "count-ops{most=1,0}", {"count-ops": CountOps})


def test_a_pass_that_cannot_go_on() -> None:
    with pytest.raises(PassFailedException, match=r"'cute\.size' cannot be lowered here; run the earlier"):
        run(TEXT, "cute-to-base")


SMALL = """
func.func @f(%v: vector<4xf32>, %w: vector<4xf32>, %p: !llvm.ptr<3>, %q: !llvm.ptr<1>, %i: i32, %x: f32) {
  %0 = llvm.extractelement %v[%i : i32] : vector<4xf32>
  %1 = llvm.insertelement %x, %v[%i : i32] : vector<4xf32>
  %2 = llvm.shufflevector %v, %w [0, 1, 4, 5] : vector<4xf32>
  %3 = llvm.getelementptr %q[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %4 = llvm.mul %i, %i overflow<nsw> : i32
  %5 = llvm.atomicrmw fadd %q, %x monotonic : !llvm.ptr<1>, f32
  %6 = llvm.addrspacecast %q : !llvm.ptr<1> to !llvm.ptr
  nvvm.mbarrier.init %p, %i : !llvm.ptr<3>, i32
  return
}
"""


def test_xdsl_reads_llvm_and_nvvm_ops() -> None:
    """The generic form of ops that xDSL's ``llvm`` lacks, or stores as upstream does, is read, verified and printed."""
    text = ir_text(parse_module(SMALL), generic=True)
    module = Parser(context(), text).parse_module()
    module.verify()
    assert ir_text(parse_module(str(module)), generic=True) == text


def pieces(op: Operation) -> str:
    """Return an op without regions as a module in generic form, whose operands are results of another op."""
    types = [operand.type for operand in op.operands]
    made = test.TestOp.create(result_types=types)
    copy = op.clone(dict(zip(op.operands, made.results)))
    return ir_text(ModuleOp([made, copy]), generic=True)


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.mlir")), ids=lambda path: path.stem)
def test_xdsl_reads_every_stage(file: Path) -> None:
    """xDSL reads each kind of op that a stage of the pipeline prints, alone, because its parser is slow."""
    texts: dict[object, str] = {}
    chip = "sm_100a" if "sm100" in file.stem else None
    for stage in compile_cute(file, emit="ptx", keep_stages=True, chip=chip).artifact.stages:
        for op in parse_module(stage.text).walk():
            kind = (op.name, tuple([v.type for v in op.operands]), tuple(sorted(op.properties)))
            if kind not in texts and not op.regions and not op.successors and op.name != "builtin.unregistered":
                texts[kind] = pieces(op)
    xdsl = context()
    for text in texts.values():
        Parser(xdsl, text).parse_module()
    assert len(texts) > 30
