"""Machine-level ops: syntax, errors and generated instructions."""

from __future__ import annotations

import re

import pytest
from sync_kernels import kernel, module
from sync_support import around, example
from xdsl.dialects import test as made_up
from xdsl.dialects.builtin import i32

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.cute_nvgpu.sync import OPS, ROWS, ArchOp, make
from cute_dialect.cute_nvgpu.sync_lowering import LOWER
from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import assemble
from cute_dialect.tools.docs.dialect import read_example

ALL: list[type[ArchOp]] = [op for op in OPS if issubclass(op, ArchOp)]


def test_every_row_is_lowered() -> None:
    assert [row.name for row in ROWS] == list(LOWER) and len(ALL) == len(ROWS)


@pytest.mark.parametrize("op", ALL, ids=lambda op: op.ROW.name)
def test_text_survives_a_round_trip(op: type[ArchOp]) -> None:
    call = example(op)
    text = call.line([f"%v{i}" for i in range(len(call.operands))])
    first = str(next(o for o in read_example(text).walk() if isinstance(o, ArchOp)))
    parsed = next(o for o in read_example(first).walk() if isinstance(o, ArchOp))
    parsed.verify()
    assert str(parsed) == first and type(parsed) is op


ERRORS = [
    ("mbarrier_init(%b) : (!cute.ptr<i64, smem>) -> ()", "expected 2 operands, got 1"),
    ("mbarrier_init(%b, %n) : (!cute.ptr<i64, gmem>, i32) -> ()",
     r"operand #0 \(bar\) must be !cute.ptr<i64, smem>, an mbarrier, got !cute.ptr<i64, gmem>"),
    ("mbarrier_wait(%b, %n) : (!cute.ptr<i64, smem>, i1) -> ()", r"operand #1 \(parity\) must be i32, got i1"),
    ("mbarrier_try_wait(%b, %n) : (!cute.ptr<i64, smem>, i32) -> ()", "expected 1 result, got 0"),
    ("mbarrier_arrive_cluster(%b, %n, %p) : (!cute.ptr<i64, smem>, i32, i32) -> ()",
     r"operand #2 \(pred\) must be i1, got i32"),
    ('fence_proxy_async() {space = "shared"} : () -> ()',
     "property space is \"shared\"; use one of 'shared_cta', 'shared_cluster', 'global', 'all'"),
    ("setmaxnreg() {count = 241 : i32, action = \"increase\"} : () -> ()",
     "property count is 241 : i32"),
    ("setmaxnreg() {count = 240 : i32} : () -> ()", "property action is missing; use one of 'increase', 'decrease'"),
    ("cp_async_wait_group() : () -> ()", r"property n is missing; use a number of groups from 0 on \(i32\)"),
    ("cluster_arrive() {relaxed = 3 : i32} : () -> ()", "property relaxed is 3 : i32"),
    ("%r = cute_nvgpu.arch.shfl_sync(%v, %n) {width = 12 : i32} : (f32, i32) -> f32", "property width is 12 : i32"),
    ("%r = cute_nvgpu.arch.shfl_sync(%v, %n) : (vector<4xf32>, i32) -> vector<4xf32>",
     r"operand #0 \(value\) must be one of i8, i16"),
    ("%r = cute_nvgpu.arch.opaque(%v) : (vector<3xf16>) -> vector<3xf16>",
     r"operand #0 \(x\) must be one of f16, .* or a vector of them of whole 32-bit words, got vector<3xf16>"),
    ("%r = cute_nvgpu.arch.shfl_sync(%v, %n) : (f32, i32) -> i32", "result #0: expected f32, got i32"),
    ('%r = cute_nvgpu.arch.redux_sync(%v) {kind = "fmax"} : (i32) -> i32', "property kind is .fmax.; use one of 'add'"),
    ('%r = cute_nvgpu.arch.redux_sync(%v) {kind = "max"} : (f32) -> f32', r"operand #0 \(value\) must be i32, got f32"),
    ("%r = cute_nvgpu.arch.atomic_add(%p, %v) : (!cute.ptr<f32, gmem>, i32) -> f32",
     "operand #1 must be f32, the element type of operand #0, got i32"),
    ("%r = cute_nvgpu.arch.atomic_and(%p, %v) : (!cute.ptr<f32, gmem>, i32) -> i32",
     r"operand #0 \(ptr\) must be a pointer to i32 or i64 in gmem, smem or dsmem, got !cute.ptr<f32, gmem>"),
    ("%r = cute_nvgpu.arch.atomic_max(%p, %v) : (!cute.ptr<f16, gmem>, f16) -> f16",
     "the pointer is !cute.ptr<f16, gmem>; it must point to one of i32, i64, f32, f64"),
    ("%r = cute_nvgpu.arch.atomic_add(%p, %v) : (!cute.ptr<f32, rmem>, f32) -> f32", "in gmem, smem or dsmem|to gmem"),
    ("%r = cute_nvgpu.arch.map_cluster(%p, %n) : (!cute.ptr<f32, gmem>, i32) -> !cute.ptr<f32, gmem>",
     r"operand #0 \(ptr\) must be a pointer to smem, got !cute.ptr<f32, gmem>"),
    ("%r = cute_nvgpu.arch.map_cluster(%p, %n) : (!cute.ptr<f16, smem, align<1024>, S<3,4,3>>, i32) -> "
     "!cute.ptr<f16, dsmem>", "the pointer has a swizzle"),
    ("store_async(%p, %v, %b) : (!cute.ptr<f32, smem>, f32, !cute.ptr<i64, dsmem>) -> ()",
     r"operand #0 must be a pointer to dsmem, got !cute.ptr<f32, smem>"),
    ("store_async(%p, %v, %b) : (!cute.ptr<f16, dsmem>, f16, !cute.ptr<i64, dsmem>) -> ()",
     "the pointer is !cute.ptr<f16, dsmem>; it must point to one of i32, i64, f32, f64"),
    ("reduce_async_min(%p, %v, %b) : (!cute.ptr<i64, dsmem>, i64, !cute.ptr<i64, dsmem>) -> ()",
     "the pointer is !cute.ptr<i64, dsmem>; it must point to one of i32"),
    ("reduce_async_add(%p, %v, %b) : (!cute.ptr<i32, dsmem>, i32, !cute.ptr<i64, smem>) -> ()",
     r"operand #2 must be a pointer to dsmem, got !cute.ptr<i64, smem>"),
]  # fmt: skip


@pytest.mark.parametrize("text, message", ERRORS, ids=[e[0][:40] for e in ERRORS])
def test_misuse_is_reported(text: str, message: str) -> None:
    line = text if text.startswith("%") else "cute_nvgpu.arch." + text
    with pytest.raises(Exception, match=message):
        read_example(line).verify()


def test_an_unknown_property_is_an_error() -> None:
    text = '"cute_nvgpu.arch.barrier"() <{space = "all"}> : () -> ()'
    with pytest.raises(Exception, match="unknown property 'space'; the op has no properties"):
        read_example(text).verify()


def test_ops_are_built_with_inferred_results() -> None:
    n = made_up.TestOp(result_types=[i32]).results[0]
    op = make("redux_sync", n, kind="umax")
    assert op.result_types == (i32,) and op.word("kind") == "umax"
    assert make("bulk_wait_group", n=1, read=True).flag("read") and not make("bulk_wait_group", n=1).flag("read")
    assert make("fence_acq_rel").word("scope") == "gpu" and make("shfl_sync", n, n).number("width") == 32
    with pytest.raises(AlgebraError, match=r"property kind is .mean.; use one of 'add', 'and'"):
        make("redux_sync", n, kind="mean")
    with pytest.raises(AlgebraError, match="'sleep' is not the name of a machine-level op"):
        make("sleep")


INSTRUCTIONS = {
    "mbarrier_init": r"mbarrier\.init\.shared(::cta)?\.b64",
    "mbarrier_inval": r"mbarrier\.inval\.shared(::cta)?\.b64",
    "mbarrier_arrive": r"mbarrier\.arrive\.shared(::cta)?\.b64",
    "mbarrier_arrive_cluster": r"mapa\.shared::cluster\.u64[\s\S]*mbarrier\.arrive\.shared::cluster\.b64",
    "mbarrier_arrive_expect_tx": r"mbarrier\.arrive\.expect_tx\.shared(::cta)?\.b64",
    "mbarrier_expect_tx": r"mbarrier\.expect_tx\.relaxed\.cta\.shared(::cta)?\.b64",
    "mbarrier_wait": r"(?s)LAB_WAIT:.*mbarrier\.try_wait\.parity\.shared(::cta)?\.b64.*bra.uni\s+LAB_WAIT",
    "mbarrier_try_wait": r"mbarrier\.try_wait\.parity\.shared(::cta)?\.b64 \t?%p",
    "fence_mbarrier_init": r"fence\.mbarrier_init\.release\.cluster",
    "fence_proxy_async": r"fence\.proxy\.async\.shared::cta",
    "fence_acq_rel": r"fence\.acq_rel\.gpu",
    "barrier": r"bar(rier)?\.(cta\.)?sync\s+0",
    "named_barrier": r"bar(rier)?\.(cta\.)?sync\s+%r\d+, %r\d+",
    "named_barrier_arrive": r"bar(rier)?\.(cta\.)?arrive\s+%r\d+, %r\d+",
    "syncwarp": r"bar\.warp\.sync\s+-1",
    "cluster_arrive": r"barrier\.cluster\.arrive(\.release)?\.aligned",
    "cluster_wait": r"barrier\.cluster\.wait(\.acquire)?\.aligned",
    "cluster_rank": r"%cluster_ctarank",
    "cluster_size": r"%cluster_nctarank",
    "elect_one": r"elect\.sync",
    "warp_id": r"shfl\.sync\.idx\.b32\s+%r\d+, %r\d+, 0, 31, -1",
    "lane_id": r"%laneid",
    "map_cluster": r"(?s)mapa\.shared::cluster\.u64.*ld\.shared::cluster\.b32",
    "store_async": r"st\.async\.shared::cluster\.mbarrier::complete_tx::bytes\.f32",
    **{
        f"reduce_async_{name}": r"red\.async\.relaxed\.cluster\.shared::cluster\.mbarrier::complete_tx::bytes\." + ptx
        for name, ptx in (
            ("add", r"add\.u32"),
            ("min", r"min\.s32"),
            ("max", r"max\.s32"),
            ("umin", r"min\.u32"),
            ("umax", r"max\.u32"),
            ("and", r"and\.b32"),
            ("or", r"or\.b32"),
            ("xor", r"xor\.b32"),
            ("inc", r"inc\.u32"),
            ("dec", r"dec\.u32"),
        )
    },
    "setmaxnreg": r"setmaxnreg\.inc\.sync\.aligned\.u32\s+240",
    "griddepcontrol_wait": r"griddepcontrol\.wait",
    "griddepcontrol_launch_dependents": r"griddepcontrol\.launch_dependents",
    "cp_async_commit_group": r"cp\.async\.commit_group",
    "cp_async_wait_group": r"cp\.async\.wait_group\s+1",
    "cp_async_mbarrier_arrive": r"cp\.async\.mbarrier\.arrive\.shared",
    "bulk_commit_group": r"cp\.async\.bulk\.commit_group",
    "bulk_wait_group": r"cp\.async\.bulk\.wait_group\.read\s+0",
    "shfl_sync": r"shfl\.sync\.bfly\.b32",
    "vote_any": r"vote\.sync\.any\.pred",
    "vote_all": r"vote\.sync\.all\.pred",
    "ballot": r"vote\.sync\.ballot\.b32",
    "redux_sync": r"redux\.sync\.add\.s32",
    "clc_try_cancel": r"clusterlaunchcontrol\.try_cancel\.async\.shared::cta\.mbarrier::complete_tx::bytes\.b128",
    "clc_query": r"clusterlaunchcontrol\.query_cancel\.get_first_ctaid\.v4\.b32\.b128",
    "redux_sync_f32": r"redux\.sync\.max\.abs\.f32",
    "store_bulk_zero": r"st\.bulk\.weak\.shared::cta\s+\[%r\d+\], %rd\d+, 0",
    "atomic_add": r"atom\.global\.add\.f32",
    "atomic_min": r"(?s)min\.f32.*atom\.relaxed\.gpu\.global\.cas\.b32",
    "atomic_max": r"(?s)max\.f32.*atom\.relaxed\.gpu\.global\.cas\.b32",
    "atomic_umin": r"atom\.global\.min\.u32",
    "atomic_umax": r"atom\.global\.max\.u32",
    "atomic_and": r"atom\.global\.and\.b32",
    "atomic_or": r"atom\.global\.or\.b32",
    "atomic_xor": r"atom\.global\.xor\.b32",
    "atomic_exch": r"atom\.global\.exch\.b32",
    "atomic_cas": r"atom\.relaxed\.gpu\.global\.cas\.b32",
    "load_acquire": r"ld\.acquire\.gpu\.global\.b32",
    "store_release": r"st\.release\.gpu\.global\.b32",
    "opaque": r"// begin inline asm\s+// end inline asm",
    "exp2_approx": r"ex2\.approx\.ftz\.f32",
    "log2_approx": r"lg2\.approx\.ftz\.f32",
    "rcp_approx": r"rcp\.approx\.ftz\.f32",
    "sqrt_approx": r"sqrt\.approx\.ftz\.f32",
    "rsqrt_approx": r"rsqrt\.approx\.ftz\.f32",
    "tanh_approx": r"tanh\.approx\.f32",
}


@pytest.fixture(scope="module")
def ptx() -> dict[str, str]:
    """Compile one kernel per op with ptxas and return the PTX. Later ops than those of sm_90 are for sm_100a."""
    found: dict[str, str] = {}
    for chip in ("sm_90a", "sm_100a"):
        ops = [op for op in ALL if (op.ROW.sm > 90) == (chip == "sm_100a")]
        kernels = [around(example(op), op.ROW.name, 384 if op.ROW.name == "setmaxnreg" else 128) for op in ops]
        compiled = compile_cute(module(*kernels), chip=chip, emit="ptx", cache=False)
        assembled = assemble(compiled.ptx, chip)
        assert assembled.warnings == () and all(k.spills == 0 for k in assembled.kernels)
        parts = re.split(r"\.visible \.entry (\w+)", compiled.ptx)
        found.update(zip(parts[1::2], parts[2::2]))
    return found


@pytest.mark.parametrize("name", [op.ROW.name for op in ALL])
def test_ptx_has_the_instruction(ptx: dict[str, str], name: str) -> None:
    assert re.search(INSTRUCTIONS[name], ptx[name]), ptx[name]


FORMS = {
    'fence_proxy_async() {space = "shared_cluster"} : () -> ()': r"fence\.proxy\.async\.shared::cluster",
    'fence_proxy_async() {space = "global"} : () -> ()': r"fence\.proxy\.async\.global",
    'fence_proxy_async() {space = "all"} : () -> ()': r"fence\.proxy\.async;",
    'fence_acq_rel() {scope = "cta"} : () -> ()': r"fence\.acq_rel\.cta",
    'fence_acq_rel() {scope = "cluster"} : () -> ()': r"fence\.acq_rel\.cluster",
    'fence_acq_rel() {scope = "sys"} : () -> ()': r"fence\.acq_rel\.sys",
    "cluster_arrive() {relaxed} : () -> ()": r"barrier\.cluster\.arrive\.relaxed\.aligned",
    "bulk_wait_group() {n = 3 : i32} : () -> ()": r"cp\.async\.bulk\.wait_group\s+3",
    'setmaxnreg() {count = 24 : i32, action = "decrease"} : () -> ()': r"setmaxnreg\.dec\.sync\.aligned\.u32\s+24",
    "mbarrier_arrive_cluster(%b, %n, %p) : (!cute.ptr<i64, smem>, i32, i1) -> ()":
        r"@%p\d+ mbarrier\.arrive\.shared::cluster\.b64 _",
    "cp_async_mbarrier_arrive(%b) {noinc} : (!cute.ptr<i64, smem>) -> ()":
        r"cp\.async\.mbarrier\.arrive\.noinc\.shared",
    "%v = llvm.bitcast %n : i32 to vector<2xf16>\n%w = cute_nvgpu.arch.opaque(%v) : (vector<2xf16>) -> vector<2xf16>\n"
    "%r = llvm.bitcast %w : vector<2xf16> to i32": r"// begin inline asm\s+// end inline asm",
    '%r = cute_nvgpu.arch.shfl_sync(%n, %n) {mode = "up", width = 8 : i32} : (i32, i32) -> i32':
        r"shfl\.sync\.up\.b32\s+%r\d+, %r\d+, %r\d+, 6144, -1",
    '%r = cute_nvgpu.arch.shfl_sync(%n, %n) {mode = "down", width = 16 : i32} : (i32, i32) -> i32':
        r"shfl\.sync\.down\.b32\s+%r\d+, %r\d+, %r\d+, 4127, -1",
}  # fmt: skip


def test_properties_choose_the_form() -> None:
    kernels: list[str] = []
    for i, text in enumerate(FORMS):
        line = text if text.startswith("%") else "cute_nvgpu.arch." + text
        use = '\ncute.memref.store(%o, %z, %r) : (!cute.memref<i32, gmem, "4:1">, !cute.coord<"0">, i32) -> ()'
        kernels.append(
            f'gpu.func @k{i}(%n: i32, %p: i1, %o: !cute.memref<i32, gmem, "4:1">) kernel attributes '
            "{known_block_size = array<i32: 384, 1, 1>} {\n"
            '%s = cute.memref.alloc_smem() : !cute.memref<i64, smem, "1:1">\n'
            '%b = cute.get_iter(%s) : !cute.memref<i64, smem, "1:1">\n%z = cute.static : !cute.coord<"0">\n'
            f"{line}{use if text.startswith('%') else ''}\ngpu.return\n}}\n"
        )
    compiled = compile_cute(module(*kernels), emit="ptx", cache=False)
    assert assemble(compiled.ptx).warnings == ()
    parts = re.split(r"\.visible \.entry k\d+", compiled.ptx)[1:]
    missing = [text for (text, pattern), part in zip(FORMS.items(), parts, strict=True) if not re.search(pattern, part)]
    assert not missing, "\n".join(parts)


SETMAXNREG = 'cute_nvgpu.arch.setmaxnreg() {count = 240 : i32, action = "increase"} : () -> ()'


def test_setmaxnreg_needs_the_block_size_and_no_limit() -> None:
    text = kernel(SETMAXNREG, "", 384)
    with pytest.raises(CompileError, match="setmaxnreg requires a kernel with known_block_size"):
        compile_cute(text.replace("known_block_size", "other_size"), emit="base")
    limited = kernel(SETMAXNREG, "", 384, ", nvvm.maxnreg = 168 : i32")
    with pytest.raises(CompileError, match=r"setmaxnreg cannot be combined with nvvm\.maxnreg"):
        compile_cute(limited, emit="base")
