"""Names outside of the language that CuTe DSL programs use: MLIR builders, the compiler, later chips."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.compat.run_program import run
from cute_dialect.lang.tracing.errors import KernelTypeError

torch = pytest.importorskip("torch")


def run_text(folder: Path, text: str, **files: str) -> dict[str, object]:
    """Run a program on the interpreter. ``files`` are modules in its folder, with ``__`` in place of a slash."""
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(content))
    (folder / "program.py").write_text(dedent(text))
    return run(folder / "program.py", cpu=True)


BUILDERS = """
    import torch
    import cutlass
    import cutlass.cute as cute
    from cutlass import Float32, Int32
    from cutlass.cutlass_dsl import T, dsl_user_op, if_generate, and_, or_, not_, select_
    from cutlass._mlir import ir
    from cutlass._mlir.dialects import arith, llvm, nvvm, vector

    @dsl_user_op
    def two_to_i64(a, b, *, loc=None, ip=None) -> cutlass.Int64:
        pair = vector.from_elements(T.vector(2, T.f32()), (a.ir_value(), b.ir_value()), loc=loc, ip=ip)
        one = vector.bitcast(T.vector(1, T.i64()), pair)
        return cutlass.Int64(vector.extract(one, dynamic_position=[], static_position=[0], loc=loc, ip=ip))

    @dsl_user_op
    def i64_to_two(c, *, loc=None, ip=None):
        pair = vector.bitcast(T.vector(2, T.f32()), vector.from_elements(T.vector(1, T.i64()), (c.ir_value(),)))
        return tuple(Float32(vector.extract(pair, dynamic_position=[], static_position=[i])) for i in range(2))

    @dsl_user_op
    def halves(a: Int32, *, loc=None, ip=None):
        both = llvm.inline_asm(
            llvm.StructType.get_literal([T.i16(), T.i16()]), [a.ir_value(loc=loc, ip=ip)], "mov.b32 {$0, $1}, $2;",
            "=h,=h,r", has_side_effects=False, is_align_stack=False, asm_dialect=llvm.AsmDialect.AD_ATT,
        )
        return llvm.extractvalue(T.i16(), both, [0]), llvm.extractvalue(T.i16(), both, [1])

    @dsl_user_op
    def element(x: cute.Tensor, coord, *, loc=None, ip=None) -> cute.Pointer:
        return x.iterator + cute.crd2idx(coord, x.layout, loc=loc, ip=ip)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor, sums: cute.Tensor):
        tid = Int32(nvvm.read_ptx_sreg_tid_x(T.i32()))
        block, _, _ = cute.arch.block_idx()
        a, b = i64_to_two(two_to_i64(x[tid], x[tid] * 2))
        out[tid, 0], out[tid, 1] = a, b
        low, high = halves(Int32(tid) + (Int32(7) << 16))
        out[tid, 2] = Float32(low) + Float32(high) * 100
        out[tid, 3] = Float32(nvvm.fmin(T.f32(), x[tid].ir_value(), Float32(3).ir_value()))
        big = arith.cmpi("slt", Int32(tid), arith.constant(T.i32(), 16))
        out[tid, 4] = Float32(arith.select(big, Float32(1), Float32(2)))
        out[tid, 5] = select_(and_(tid > 3, not_(or_(tid > 20, tid == 5))), Float32(1), Float32(0))
        if_generate(tid == 9, lambda: out.__setitem__((tid, 5), 9.0))
        words = llvm.mlir_undef(ir.VectorType.get([2], Int32))
        words = vector.insertelement(Int32(5), words, position=arith.constant(T.i32(), 1))
        out[tid, 6] = Float32(vector.extractelement(words, position=arith.constant(T.i32(), 1)))
        s, _ = cute.arch.mul_packed_f32x2((x[tid], 0.0), (3.0, 1.0), rnd=nvvm.RoundingModeKind.RN)
        d, _ = cute.arch.calc_packed_f32x2_op(
            (x[tid], 0.0), (1.0, 1.0), None, calc_func=nvvm.sub_packed_f32x2, rnd=nvvm.RoundingModeKind.RN)
        out[tid, 7] = cute.arch.fma_packed_f32x2((s, s), (1.0, 1.0), (d, d))[0]
        nvvm.atomicrmw(T.f32(), nvvm.AtomicOpKind.FADD, element(sums, (0,)).llvm_ptr, x[tid].ir_value())
        nvvm.atomicrmw(res=T.i32(), op=nvvm.AtomicOpKind.INC, ptr=element(sums, (1,)).llvm_ptr, a=Int32(40).ir_value())

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor, sums: cute.Tensor):
        kernel(x, out, sums).launch(grid=1, block=32, max_number_threads=[32, 1, 1], min_blocks_per_mp=1, use_pdl=False)

    x = torch.arange(32, device="cuda", dtype=torch.float32)
    out = torch.full((32, 8), -1.0, device="cuda")
    sums = torch.zeros(2, device="cuda")
    assert x.is_cuda and x.device.type == "cuda"
    launch(x, out, sums)
"""


def test_upstreams_builders(tmp_path: Path) -> None:
    names = run_text(tmp_path, BUILDERS)
    out, sums = np.asarray(names["out"]), np.asarray(names["sums"])
    x = np.arange(32, dtype=np.float32)
    fifth = np.where((x > 3) & ~((x > 20) | (x == 5)), 1, 0)
    fifth[9] = 9
    wanted = [x, 2 * x, x + 700, np.minimum(x, 3), np.where(x < 16, 1, 2), fifth, np.full(32, 5), 4 * x - 1]
    np.testing.assert_array_equal(out, np.stack(wanted, 1))
    assert sums[0] == x.sum() and sums[1:].view(np.int32)[0] == 32


CLUSTER = """
    import torch
    import cutlass
    import cutlass.cute as cute
    from cutlass import Float32, Int32
    from cutlass.cutlass_dsl import T, dsl_user_op
    from cutlass._mlir.dialects import llvm

    @dsl_user_op
    def at_peer(p: cute.Pointer, peer, *, loc=None, ip=None) -> Int32:
        return Int32(llvm.inline_asm(
            T.i32(), [p.toint(loc=loc, ip=ip).ir_value(), peer.ir_value()], "mapa.shared::cluster.u32 $0, $1, $2;",
            "=r,r,r", has_side_effects=False, is_align_stack=False, asm_dialect=llvm.AsmDialect.AD_ATT))

    @dsl_user_op
    def send(value: Float32, p: cute.Pointer, bar: cute.Pointer, peer, *, loc=None, ip=None) -> None:
        llvm.inline_asm(
            None, [at_peer(p, peer).ir_value(), value.ir_value(), at_peer(bar, peer).ir_value()],
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [$0], $1, [$2];", "r,f,r",
            has_side_effects=True, is_align_stack=False, asm_dialect=llvm.AsmDialect.AD_ATT)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        lane = cute.arch.lane_idx()
        rank = cute.arch.block_idx_in_cluster()
        smem = cutlass.utils.SmemAllocator()
        inbox = smem.allocate_tensor(Float32, cute.make_layout(4))
        bar = smem.allocate_array(cutlass.Int64, num_elems=1)
        if lane == 0:
            cute.arch.mbarrier_init_arrive_cnt(bar, 1)
        cute.arch.mbarrier_init_fence()
        if lane == 0:
            cute.arch.mbarrier_init_tx_bytes(bar, 16)
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
        if lane < 4:
            send(x[rank] + Float32(lane), inbox.iterator + rank, bar, Int32(lane))
        cute.arch.mbarrier_wait(bar, phase=0)
        if lane < 4:
            out[rank, lane] = inbox[lane]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=4, block=32, cluster=(4, 1, 1))

    x = torch.tensor([10.0, 20, 30, 40], device="cuda")
    out = torch.full((4, 4), -1.0, device="cuda")
    launch(x, out, checks=("race", "uninit", "sync", "oob"))
"""


def test_addresses_of_a_cluster_by_text(tmp_path: Path) -> None:
    out = np.asarray(run_text(tmp_path, CLUSTER)["out"])
    np.testing.assert_array_equal(out, np.arange(4)[:, None] + np.array([10.0, 20, 30, 40]))


LATER = """
    import cutlass
    import cutlass.cute as cute
    import cutlass.pipeline
    from cutlass.base_dsl import Arch, BaseDSL
    from cutlass.cute.nvgpu import tcgen05
    from cutlass.cute.nvgpu.tcgen05.mma import CtaGroup
    from cutlass.cute.nvgpu.warp import LdMatrix8x8x16bOp, LdMatrix16x16x8bOp
    from cutlass.pipeline import PipelineAsyncUmma, PipelineAsync
    import cutlass.utils.blackwell_helpers as sm100

    class Mine(tcgen05.SM103MmaMXF4NVF4Op):
        pass

    assert issubclass(PipelineAsyncUmma, PipelineAsync)

    assert cute.arch.WARP_SIZE == 32 and cutlass.Float.zero == 0.0 and cutlass.CUDA_VERSION.major >= 12
    with cute.target("sm_90a"):
        assert Arch.sm_80 < BaseDSL._get_dsl().get_arch_enum() and Arch.sm_90a.major == 9
    assert not isinstance(3, tcgen05.SM103MmaMXF4Op) and CtaGroup.ONE is tcgen05.CtaGroup.ONE

    def use(what):
        {"op": lambda: tcgen05.SM103MmaMXF4Op((128, 128, 96)), "mine": Mine, "helper": lambda: sm100.get_smem_layout_atom_ab(1)}[what]()
"""  # noqa: E501


def test_names_of_later_chips_raise(tmp_path: Path) -> None:
    use = run_text(tmp_path, LATER)["use"]
    assert callable(use)
    ultra = "is an MMA of sm_103 with K = 96, which is not supported"
    for what, name, why in (
        ("op", "cutlass.cute.nvgpu.tcgen05.SM103MmaMXF4Op", ultra),
        ("mine", "cutlass.cute.nvgpu.tcgen05.SM103MmaMXF4NVF4Op", ultra),
        (
            "helper",
            "cutlass.utils.blackwell_helpers.get_smem_layout_atom_ab",
            "is a helper for Blackwell that is not provided",
        ),
    ):
        with pytest.raises(KernelTypeError) as e:
            use(what)
        assert (e.value.code, e.value.message) == ("F280", f"{name} {why}")


DRIVER = """
    import cutlass
    import cutlass.cute as cute
    import cuda.bindings.driver as first
    from cuda.bindings import driver as second
    from cutlass.cute.nvgpu import tcgen05

    assert [int(d.cuInit(0)[0]) for d in (first, second)] == [0, 0] and second.cuDeviceGetCount()[1] == 1
    chip = cute.current_target()
    found = []

    @cute.jit
    def count(n: cutlass.Constexpr):
        found.append(n)

    for _ in range(2):
        count(1)
        count(2, no_cache=True)
"""


def test_programs_for_blackwell_need_no_driver(tmp_path: Path) -> None:
    """Without a cache, a call is traced again."""
    ran = run_text(tmp_path, DRIVER)
    assert ran["chip"] == "sm_100a" and ran["found"] == [1, 2, 2]


PACKAGE = """
    import torch
    from shop.ops import scaled

    x = torch.arange(5, device="cuda", dtype=torch.float32)
    y = scaled(x)
"""
OPS = """
    import torch
    import cutlass.cute as cute
    from shop.kernels import scale

    @torch.library.custom_op("test_answered::scaled_out", mutates_args={"out"}, device_types="cuda")
    def scaled_out(x: torch.Tensor, out: torch.Tensor) -> None:
        assert x.is_cuda and torch.cuda.current_stream(x.device).cuda_stream is not None
        scale(x, out)

    def scaled(x):
        out = torch.empty_like(x)
        scaled_out(x, out)
        return out
"""
KERNELS = """
    import cutlass.cute as cute

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        if i < cute.size(x):
            out[i] = x[i] * 3

    @cute.jit
    def scale(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=32)
"""


@pytest.mark.slow
def test_package_next_to_the_program_with_a_torch_operator(tmp_path: Path) -> None:
    names = run_text(tmp_path, PACKAGE, shop____init__="", shop__ops=OPS, shop__kernels=KERNELS)
    np.testing.assert_array_equal(np.asarray(names["y"]), np.arange(5) * 3.0)


TILES = """
    import torch
    import cutlass
    import cutlass.cute as cute
    import cutlass.utils as utils

    class Count:
        def __init__(self, shape, cluster, swizzle, along_m):
            self.shape, self.cluster, self.swizzle, self.along_m = shape, cluster, swizzle, along_m

        @cute.jit
        def __call__(self, out: cute.Tensor, order: cute.Tensor):
            params = utils.PersistentTileSchedulerParams(out.shape, (*self.cluster, 1), self.swizzle, self.along_m)
            grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, 3)
            self.kernel(params, out, order).launch(grid=grid, block=32, cluster=(*self.cluster, 1))

        @cute.kernel
        def kernel(self, params: utils.PersistentTileSchedulerParams, out: cute.Tensor, order: cute.Tensor):
            sched = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
            work = sched.initial_work_tile_info()
            while work.is_valid_tile:
                if cute.arch.thread_idx()[0] == 0 and cute.elem_less(work.tile_idx, out.shape):
                    out[work.tile_idx] += 1
                    order[work.tile_idx] = sched.num_tiles_executed * cute.arch.grid_dim()[2] + cute.arch.block_idx()[2]
                sched.advance_to_next_work()
                work = sched.get_current_work()

    found = []
    for shape, cluster, swizzle, along_m in CASES:
        out = torch.zeros(shape, dtype=torch.int32, device="cuda")
        order = torch.zeros(shape, dtype=torch.int32, device="cuda")
        Count(shape, cluster, swizzle, along_m)(out, order)
        found.append((out, order))
"""
CASES = [((5, 3, 2), (1, 1), 1, True), ((5, 7, 1), (2, 1), 2, True), ((5, 7, 2), (1, 2), 3, False), ((4, 4, 1), (1, 1), 1, False)]  # fmt: skip  # noqa: E501


def test_tiles_of_a_persistent_scheduler_are_taken_once_in_their_order(tmp_path: Path) -> None:
    found = run_text(tmp_path, TILES.replace("CASES", repr(CASES)))["found"]
    assert isinstance(found, list)
    for (shape, cluster, swizzle, along_m), (out, order) in zip(CASES, found):
        assert (np.asarray(out) == 1).all()
        wanted = np.zeros(shape, int)
        clusters_m, clusters_n = -(-shape[0] // cluster[0]), -(-shape[1] // cluster[1])
        along, across = (clusters_m, clusters_n) if along_m else (clusters_n, clusters_m)
        number = 0
        for matrix in range(shape[2]):
            for first in range(0, across, swizzle):
                for a in range(along):
                    for b in range(first, min(first + swizzle, across)):
                        m, n = (a, b) if along_m else (b, a)
                        wanted[m * cluster[0] : (m + 1) * cluster[0], n * cluster[1] : (n + 1) * cluster[1], matrix] = (
                            number
                        )
                        number += 1
        np.testing.assert_array_equal(np.asarray(order), wanted)


TYPES_BY_TEXT = """
    import torch
    import cutlass
    import cutlass.cute as cute
    from cutlass import Float32, Int32
    from cutlass.cute.arch.nvvm_wrappers import FULL_MASK, WARP_SIZE
    from cutlass._mlir import ir
    from cutlass._mlir._mlir_libs._cutlass_ir._mlir.ir import IntegerType
    from cutlass._mlir.dialects import arith, llvm, vector
    from cutlass._mlir.dialects import math as _math

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        v = x[i]
        out[i, 0] = llvm.inline_asm(
            Float32.mlir_type, [v.ir_value()], "tanh.approx.f32 $0, $1;", "=f,f", has_side_effects=False,
            is_align_stack=False, asm_dialect=llvm.AsmDialect.AD_ATT)
        both = llvm.inline_asm(
            llvm.StructType.get_literal([Int32.mlir_type, Float32.mlir_type]), [v],
            "{ mov.b32 $0, $2; mov.f32 $1, $2; }", "=r,=f,f")
        out[i, 1] = llvm.extractvalue(Float32.mlir_type, both, [1])
        pair = vector.from_elements(ir.VectorType.get([2], cutlass.Int16.mlir_type), [Int32(1), Int32(2)])
        out[i, 2] = Float32(vector.bitcast(IntegerType.get_signless(32), pair))
        out[i, 3] = Float32(llvm.bitcast(Int32.mlir_type, v))
        out[i, 4] = arith.constant(ir.F32Type.get(), 3) + llvm.mlir_undef(Float32.mlir_type) * 0
        out[i, 5] = _math.log(v, fastmath=None) + _math.roundeven(v) + _math.ctpop(Int32(7))
        out[i, 6] = cute.rsqrt(v) + cute.erf(v)
        flag = llvm.inline_asm(
            cutlass.Boolean.mlir_type, [(i < 7).ir_value(), cutlass.Int8(-3)], "xor.b32 $0, $1, $2;", "=r,r,r")
        out[i, 8] = Float32(1) if flag else Float32(0)
        out[i, 7] = cute.exp2(v) + cute.tanh(v) + cute.log2(v) + cute.atan2(v, v)

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=WARP_SIZE)

    assert FULL_MASK == 0xFFFFFFFF
    x = torch.linspace(0.25, 8, 32, device="cuda")
    out = torch.zeros(32, 9, device="cuda")
    launch(x, out)
"""


def test_types_by_their_text_and_functions_of_math(tmp_path: Path) -> None:
    names = run_text(tmp_path, TYPES_BY_TEXT)
    x, out = torch.as_tensor(names["x"]), np.asarray(names["out"])
    wanted = [
        x.tanh(), x, torch.full((32,), 0x20001), x.view(torch.int32), torch.full((32,), 3), x.log() + x.round() + 3,
        x.rsqrt() + x.erf(), x.exp2() + x.tanh() + x.log2() + np.pi / 4,
        torch.arange(32) >= 7,
    ]  # fmt: skip
    np.testing.assert_allclose(out, torch.stack([w.double() for w in wanted], 1), rtol=2e-3)


HELPERS = """
    import torch
    import cutlass.cute as cute
    import cutlass.utils as utils
    from cutlass import for_generate, yield_out
    from cutlass.cutlass_dsl import DSLCudaRuntimeError, while_generate
    from cutlass.utils.hardware_info import HardwareInfo

    row, column = (utils.LayoutEnum.from_tensor(cute.runtime.from_dlpack(t)) for t in (torch.zeros(4, 8), torch.zeros(8, 4).T))
    majors = row.mma_major_mode(), column.mma_major_mode()
    wanted = cute.nvgpu.OperandMajorMode.K, cute.nvgpu.OperandMajorMode.MN
    sms = HardwareInfo().get_device_multiprocessor_count()
    generate = for_generate

    @cute.jit
    def draw(tv: cute.Constexpr):
        if tv:
            tiler, layout = cute.make_layout_tv(cute.make_layout((4, 2)), cute.make_layout((1, 2)))
            utils.print_latex_tv(layout, tiler)
        else:
            utils.print_latex(cute.make_layout((2, 3)))
"""  # noqa: E501


def test_names_of_the_base_of_the_dsl(tmp_path: Path) -> None:
    from cute_dialect.runtime.driver import CudaError

    names = run_text(
        tmp_path,
        """
        import cutlass.cute as cute
        from cutlass._mlir.dialects import scf
        from cutlass.base_dsl.common import DSLRuntimeError
        from cutlass.base_dsl.dsl import extract_mlir_values, new_from_mlir_values
        from cutlass.base_dsl.runtime.cuda import checkCudaErrors

        pointer, draw = cute.runtime.Pointer, cute.print_latex_tv
        """,
    )
    assert issubclass(cute.KernelTypeError, names["DSLRuntimeError"])  # pyright: ignore
    assert names["pointer"] is cute.runtime.RuntimePointer and names["draw"] is cute.utils.print_latex_tv
    with pytest.raises(KernelTypeError, match=r"scf.* builds a loop explicitly, which is not supported; use 'for'"):
        names["scf"].ForOp(0, 4, 1)  # pyright: ignore
    check: Any = names["checkCudaErrors"]
    assert check((0,)) is None and check((0, 7)) == 7 and check((0, 7, 8)) == (7, 8)
    with pytest.raises(CudaError, match=r"failed with an error \(2\)"):
        check((2,))


def test_helpers_of_the_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cute_dialect.runtime.driver import CudaError

    names = run_text(tmp_path, HELPERS)
    assert names["majors"] == names["wanted"] and isinstance(names["sms"], int) and names["sms"] > 0
    assert names["DSLCudaRuntimeError"] is CudaError and CudaError("cuLaunchKernelEx", 720, "x").error_code == 720
    with pytest.raises(
        KernelTypeError, match=r"F280.*for_generate builds a loop explicitly, which is not supported; use 'for'"
    ):
        names["generate"](0, 4, 1)  # pyright: ignore
    for tv, holds in ((False, "5"), (True, "T7")):
        names["draw"](tv)  # pyright: ignore
        page = capsys.readouterr().out
        assert "\\documentclass" in page and page.rstrip().endswith("\\end{document}") and holds in page


WARP_TEXT = """
    import torch
    import cutlass
    import cutlass.cute as cute
    from cutlass import Boolean, Int32, Float32
    from cutlass.cutlass_dsl import T
    from cutlass._mlir.dialects import llvm

    def vote(pred, kind):
        return llvm.inline_asm(
            T.bool(), [Boolean(pred).ir_value(), Int32(-1).ir_value()],
            "{ .reg .pred ps; .reg .pred pd; setp.ne.b32 ps, $1, 0; vote.sync." + kind
            + ".pred pd, !ps, $2; selp.b32 $0, 1, 0, pd; }", "=r,r,i", has_side_effects=True)

    @cute.kernel
    def kernel(out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        few = i % 32 < 10
        out[i, 0] = cute.arch.vote_ballot_sync(few)
        out[i, 1] = llvm.inline_asm(
            T.i32(), [few, Int32(-1)], "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, $2; }",
            "=r,r,r", has_side_effects=True)
        out[i, 2] = Int32(vote(few, "any")) + 2 * Int32(vote(few, "all")) + 4 * Int32(vote(i < 0, "all")) + 8 * Int32(vote(few, "uni"))
        got = llvm.inline_asm(
            llvm.StructType.get_literal([T.i32(), T.i32()]), [i, Int32(-1)],
            "{ .reg .pred p; shfl.sync.down.b32 $0|p, $2, 4, 31, $3; selp.b32 $1, 1, 0, p; }", "=r,=r,r,r", has_side_effects=True)
        out[i, 3] = llvm.extractvalue(T.i32(), got, [0])
        out[i, 4] = llvm.extractvalue(T.i32(), got, [1])

    @cute.jit
    def launch(out: cute.Tensor):
        kernel(out).launch(grid=1, block=64)

    out = torch.zeros(64, 5, dtype=torch.int32, device="cuda")
    launch(out)
"""  # noqa: E501


def test_votes_and_shuffles_by_text(tmp_path: Path) -> None:
    out = np.asarray(run_text(tmp_path, WARP_TEXT)["out"])
    lane, i = np.arange(64) % 32, np.arange(64)
    inside = lane + 4 < 32
    wanted = [np.full(64, 0x3FF), np.full(64, 0x3FF), np.full(64, 1 + 4), np.where(inside, i + 4, i), inside]
    np.testing.assert_array_equal(out, np.stack([np.asarray(w, np.int32) for w in wanted], 1))


MOVED = """
    import cutlass
    from cutlass import utils
    from cutlass.cute.arch.smem import map_dsmem_ptr
    from cutlass.utils import create_cute_tensor_for_fp8, is_fp8_dtype
    import cutlass.cute as cute

    is_of_8_bits = is_fp8_dtype(cutlass.Float8E4M3FN), is_fp8_dtype(cutlass.Float16)
    makes = utils.sm100.make_trivial_tiled_mma
    bytes = cute.size_in_bytes(cutlass.Float16, None)
"""


def test_names_that_a_module_imports_from_another_one(tmp_path: Path) -> None:
    from cute_dialect.lang import blackwell

    names = run_text(tmp_path, MOVED)
    assert names["is_of_8_bits"] == (True, False) and names["makes"] is blackwell.make_trivial_tiled_mma
    assert names["map_dsmem_ptr"] is cute.arch.map_dsmem_ptr and names["bytes"] == 0
