"""Parse errors of upstream ops: the message names the expected syntax and points at the token, marked « »."""

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from cute_dialect.upstream.registry import register

CASES = [
    ("nvvm.shfl.sync «sideways» %a, %f, %a, %a : f32 -> f32", "expected one of bfly, up, down, idx"),
    ("nvvm.shfl.sync bfly %a «%f», %a, %a : f32 -> f32", "expected ','"),
    ("nvvm.cp.async.wait.group «%a»", "expected i32 for attribute 'n'"),
    ("nvvm.wgmma.wait.group.sync.aligned «row»", "expected i64"),
    ("%0 = llvm.load %p «->» f32", "expected ':'"),
    ("%0 = llvm.load %p : !llvm.ptr<1> «f32»", "expected '->'"),
    ('%0 = llvm.icmp «"less"» %a, %a : i32', "expected one of eq, ne"),
    ("%0 = llvm.extractvalue «%s[2]» : !llvm.struct<(i32, f32)>", "has no element at [2]"),
    ("%0 = llvm.getelementptr %p[«f32»] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", "expected an integer or an operand"),
    ("%0 = llvm.add «%f», %a : i32", "operand is used with type i32"),
    ("llvm.call @f(%a) : «i32» -> ()", "expected '('"),
    ("%0 = arith.select %b, %a, %a : «i1, i32, i32»", "at most two types"),
    ("gpu.launch_func @m::@k blocks in (%a, %a«)» threads in (%a, %a, %a) : i32", "expected ','"),
    ("%0 = gpu.thread_id «w»", "expected one of x, y, z"),
    ("%0 = vector.transfer_read %m[], %f : «i32», f32", "expected a vector type"),
    ("nvvm.mma.block_scale «A»[%a]", "write it in generic form"),
    ('"nvvm.fence.proxy"() <{kind = #nvvm.proxy_kind<«quantum»>}> : () -> ()', "expected one of"),
    ("nvvm.cp.async.bulk.tensor.prefetch %p, box[%a «»: !llvm.ptr<1>", "expected ']'"),
]


def program(line: str) -> str:
    args = "%a: i32, %f: f32, %p: !llvm.ptr<1>, %s: !llvm.struct<(i32, f32)>, %b: i1, %m: memref<f32>"
    return f"llvm.func @t({args}) {{\n{line}\nllvm.return\n}}\n"


@pytest.mark.parametrize(("line", "message"), CASES)
def test_error_points_at_the_token(line: str, message: str) -> None:
    start, end = line.index("«"), line.index("»") - 1
    text = line.replace("«", "").replace("»", "")
    ctx = Context()
    register(ctx)
    with pytest.raises(ParseError) as err:
        Parser(ctx, program(text), "t").parse_module()
    assert message in err.value.msg
    offset = err.value.span.start - program(text).index("\n") - 1
    assert start <= offset <= max(end, start + 1)


WRONG = [
    ('"nvvm.shfl.sync"(%a, %f, %a, %a) : (i32, f32, i32, i32) -> f32', "requires attribute 'kind'"),
    ('"nvvm.vote.sync"(%a, %a) <{kind = #nvvm<vote_sync_kind any>}> : (i32, i32) -> i1', "expected type i1, got i32"),
    ('"llvm.load"(%a) : (i32) -> f32', "expected LLVM pointer type, got i32"),
    ('%0 = "arith.extsi"(%f) : (f32) -> i64', "expected signless-fixed-width-integer-like, got f32"),
    ('%0 = "llvm.add"(%a, %a) : (i32, i32) -> i64', "expected one type for lhs, rhs, res"),
    ('"nvvm.barrier"(%a) : (i32) -> ()', "requires attribute 'operandSegmentSizes'"),
    ('"nvvm.barrier0"(%a) : (i32) -> ()', "expects 0 operands, got 1"),
    ('"nvvm.cp.async.wait.group"() <{n = 2 : i64}> : () -> ()', "expected an attribute of type i32"),
    ("%0 = arith.trunci %a : i32 to f32", "got f32"),
    ("%0 = arith.cmpf olt, %a, %a : i32", "expected floating-point-like, got i32"),
]


@pytest.mark.parametrize(("line", "message"), WRONG)
def test_verifier_messages(line: str, message: str) -> None:
    ctx = Context()
    register(ctx)
    module = Parser(ctx, program(line), "t").parse_module()
    with pytest.raises(VerifyException) as err:
        module.verify()
    assert message in str(err.value)
