"""Python builders of the upstream ops that the passes create."""

import pytest
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.arith import SelectOp, TruncIOp
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr, VectorType, f16, f32, i1, i32, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from cute_dialect.upstream import gpu, llvm, nvvm
from cute_dialect.upstream.attrs import TextAttr, attr
from cute_dialect.upstream.llvm_types import LLVMFunctionType, LLVMPointerType, LLVMStructType
from cute_dialect.upstream.nvvm import nvvm_attr
from cute_dialect.upstream.registry import BASE_DIALECTS, register

P1 = LLVMPointerType(1)
P3 = LLVMPointerType(3)


def parse(text: str) -> ModuleOp:
    ctx = Context()
    register(ctx)
    module = Parser(ctx, text).parse_module()
    module.verify()
    return module


def test_special_registers() -> None:
    assert str(nvvm.ThreadIdXOp()) == "%0 = nvvm.read.ptx.sreg.tid.x : i32"
    assert str(nvvm.LaneIdOp(32)) == "%0 = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32"
    assert nvvm.ClusterRankOp().result.type == i32


def test_barriers_fill_operand_segments() -> None:
    n = create_ssa_value(i32)
    op = nvvm.BarrierOp(None, n)
    assert op.segments("operandSegmentSizes") == (0, 1, 0)
    assert op.barrierId is None and op.numberOfThreads is n
    assert str(nvvm.Barrier0Op()) == "nvvm.barrier0"


def test_shuffle_by_names() -> None:
    mask, value = create_ssa_value(i32), create_ssa_value(f32)
    op = nvvm.ShflSyncOp(mask, value, mask, mask, "bfly", f32)
    assert op.val is value
    assert op.kind == nvvm_attr("shfl_kind", "bfly")
    op.verify()


def test_words_and_numbers_become_attributes() -> None:
    p = create_ssa_value(P3)
    shape = nvvm_attr("ld_st_matrix_shape", "m = 8, n = 8")
    op = nvvm.LdmatrixOp(p, num=4, layout="row", eltType="b16", shape=shape, result_types=[LLVMStructType([i32] * 4)])
    op.verify()
    assert str(op.layout) == "#nvvm.mma_layout<row>"
    assert isinstance(op.shape, TextAttr) and op.shape.fields() == {"m": "8", "n": "8"}
    with pytest.raises(ValueError, match="expected one of row, col"):
        nvvm.LdmatrixOp(p, num=4, layout="diagonal", eltType="b16", shape=shape, result_types=[i32])
    with pytest.raises(TypeError, match="no attribute 'nums'"):
        nvvm.LdmatrixOp(p, nums=4, result_types=[i32])


def test_attributes_are_checked_by_name() -> None:
    assert str(attr("llvm.linkage", "internal")) == "#llvm.linkage<internal>"
    assert str(nvvm_attr("redux_kind", "add")) == "#nvvm<redux_kind add>"
    with pytest.raises(ValueError, match=r"#nvvm\.nothing"):
        nvvm_attr("nothing")


def test_memory_ops() -> None:
    p, i = create_ssa_value(P1), create_ssa_value(i64)
    gep = llvm.GEPOp(p, [i, 2], f32, inbounds=True)
    load = llvm.LoadOp(gep, VectorType(f32, [4]), alignment=16)
    store = llvm.StoreOp(load, p, alignment=16)
    block = Block([gep, load, store])
    block.verify()
    assert str(load).endswith("{alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>")
    assert "inbounds %" in str(gep)
    assert store.value is load.result


def test_structs() -> None:
    struct = LLVMStructType([i32, LLVMStructType([f32, P1])])
    empty = llvm.PoisonOp(struct)
    one = llvm.ConstantOp(1, i32)
    filled = llvm.InsertValueOp(empty, one, [0])
    inner = llvm.ExtractValueOp(filled, [1, 1])
    assert filled.result.type == struct
    assert inner.result.type == P1
    with pytest.raises(VerifyException, match=r"element \[0\]"):
        llvm.InsertValueOp(empty, llvm.ConstantOp(1, i64), [0]).verify()


def test_kernel_has_external_linkage_and_is_found() -> None:
    block = Block(arg_types=[P1])
    block.add_op(llvm.ReturnOp())
    kernel = llvm.FuncOp(
        "k",
        LLVMFunctionType([P1]),
        body=Region(block),
        attributes={"gpu.kernel": UnitAttr(), "nvvm.kernel": UnitAttr()},
    )
    smem = llvm.GlobalOp("smem", llvm.LLVMArrayType(0, f16), linkage="external", addr_space=3, alignment=128)
    module = gpu.ModuleOp("m", Region(Block([smem, kernel])), targets=[nvvm_attr("target", 'chip = "sm_90a"')])
    top = ModuleOp([module])
    top.verify()
    assert str(parse(str(top))) == str(top)
    assert "external @smem" in str(top) and "llvm.func @k(" in str(top)


def test_calls_and_assembly() -> None:
    x = create_ssa_value(f32)
    call = llvm.CallIntrinsicOp("llvm.nvvm.ex2.approx.ftz.f", [x], f32)
    asm = llvm.InlineAsmOp("bar.sync 0;", "~{memory}", has_side_effects=True)
    ptx = nvvm.InlinePtxOp("mov.b32 $0, $1;", ro=[x], results=(i32,))
    for op in (call, asm, ptx, llvm.CallOp("f", [x], i32)):
        op.verify()
    assert llvm.ICmpOp(create_ssa_value(i32), create_ssa_value(i32), "slt").predicate_word == "slt"


def test_result_types_are_inferred_or_required() -> None:
    a = create_ssa_value(i32)
    assert llvm.OPS["add"](a, a).results[0].type == i32
    assert llvm.ICmpOp(a, a, "eq").result.type == i1
    with pytest.raises(TypeError, match="needs result_types"):
        llvm.OPS["zext"](a)


def test_launch() -> None:
    one = create_ssa_value(i32)
    module = parse("gpu.module @m { gpu.func @k() kernel { gpu.return } }")
    op = gpu.LaunchFuncOp(gpu_symbol(), [one] * 3, [one] * 3, cluster=[one] * 3, smem=one)
    op.verify()
    assert "clusters in" in str(op) and "dynamic_shared_memory_size" in str(op)
    kernel = next(o for o in module.walk() if isinstance(o, gpu.GPUFuncOp))
    assert kernel.symbol == "k" and kernel.is_kernel


def gpu_symbol():
    from xdsl.dialects.builtin import SymbolRefAttr

    return SymbolRefAttr("m", ["k"])


def test_ops_parsed_are_those_that_passes_match() -> None:
    module = parse(
        "func.func @f(%a: i64, %p: i1) {\n%0 = arith.trunci %a overflow<nsw> : i64 to i32\n"
        "%1 = arith.select %p, %0, %0 : i32\nscf.while : () -> () { scf.condition(%p) } do { scf.yield }\nreturn }"
    )
    found = {type_ for op in module.walk() for type_ in (TruncIOp, SelectOp, scf.WhileOp) if isinstance(op, type_)}
    assert found == {TruncIOp, SelectOp, scf.WhileOp}


def test_clone_keeps_everything() -> None:
    module = parse('llvm.func @f(%p: !llvm.ptr) { llvm.inline_asm "nop", "" : () -> () llvm.return }')
    assert str(module.clone()) == str(module)


@pytest.mark.parametrize("name", sorted(BASE_DIALECTS))
def test_every_dialect_loads_and_names_its_ops(name: str) -> None:
    dialect = BASE_DIALECTS[name]()
    assert dialect.name == name
    names = [op.name for op in dialect.operations]
    assert len(names) == len(set(names)) and all(n.startswith(name + ".") for n in names)


def test_register_some() -> None:
    ctx = Context()
    register(ctx, ["func", "builtin"])
    assert set(ctx.registered_dialect_names) == {"func", "builtin"}


def test_values_keep_their_names() -> None:
    op = nvvm.OPS["vote.sync"](create_ssa_value(i32), create_ssa_value(i1), kind="ballot", result_types=[i32])
    assert isinstance(op.res, SSAValue)
    with pytest.raises(AttributeError, match="has no operand, result, attribute, region or successor 'nothing'"):
        _ = op.nothing
    assert StringAttr("x") != op.kind
