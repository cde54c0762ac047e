"""Errors of tensor memory, ``tcgen05`` and the MMAs with scale factors."""

import cute_dialect.lang as cute
from cute_dialect.lang import blackwell, pipeline, utils

arch, warp, tcgen05, Float32 = cute.arch, cute.nvgpu.warp, cute.nvgpu.tcgen05, cute.Float32
K = tcgen05.OperandMajorMode.K


def trace(f, chip="sm_100a", block=128):
    """Trace a kernel that calls ``f()``."""

    @cute.kernel
    def kernel():
        f()

    cute.trace(kernel, grid=1, block=block, chip=chip)


def scaled():
    """Return an MMA with scale factors, and its operands D, A, B, SFA and SFB for one instruction."""
    mma = cute.make_tiled_mma(warp.MmaMXF4NVF4Op())
    a, b = mma.make_fragment_A(mma.partition_shape_A((16, 64))), mma.make_fragment_B(mma.partition_shape_B((8, 64)))
    d = mma.make_fragment_C(mma.partition_shape_C((16, 8)))
    factors = [cute.make_rmem_tensor(cute.make_layout((4, 1, 1)), cute.Float8E4M3FN) for _ in range(2)]
    return mma, d, a, b, *factors

# ===== operands of f64
trace(
    lambda: blackwell.make_trivial_tiled_mma(
        cute.Float64, K, K, Float32, tcgen05.CtaGroup.ONE, (128, 64)
    )
)
#: TypeError
#: blackwell.py:2:13: error F162: TypeError: make_trivial_tiled_mma: the operands must be f16, bf16, tf32, an 8-bit float or an 8-bit integer, got Float64
#:     2 |     lambda: blackwell.make_trivial_tiled_mma(
#:       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a source of A that is no memory
trace(lambda: cute.make_mma_atom(tcgen05.MmaTF32Op((64, 32, 8), a_src="rmem")))
#: KernelTypeError
#: blackwell.py:1:15: error F250: tcgen05.MmaTF32Op: a_src must be OperandSource.SMEM or OperandSource.TMEM, got 'rmem'
#:     1 | trace(lambda: cute.make_mma_atom(tcgen05.MmaTF32Op((64, 32, 8), a_src="rmem")))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a number as the repetition of a load
trace(lambda: cute.make_copy_atom(tcgen05.Ld32x32bOp(8), Float32))
#: KernelTypeError
#: blackwell.py:1:15: error F250: tcgen05.Ld32x32bOp: repeat must be a tcgen05.Repetition, got 8
#:     1 | trace(lambda: cute.make_copy_atom(tcgen05.Ld32x32bOp(8), Float32))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== the columns of a tensor in registers
trace(lambda: utils.get_num_tmem_alloc_cols(cute.make_rmem_tensor((4,), Float32)))
#: KernelTypeError
#: blackwell.py:1:15: error F251: find_tmem_tensor_col_offset: the tensor must be in tensor memory, as the result of make_fragment_C; got tensor<ptr<f32, rmem, align<16>> o (4):(1)>
#:     1 | trace(lambda: utils.get_num_tmem_alloc_cols(cute.make_rmem_tensor((4,), Float32)))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== the columns of a layout that is known only at run time
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaTF32Op((128, 32, 8)))
    acc = mma.make_fragment_C(mma.partition_shape_C((128, 32)))
    n = arch.block_idx().x
    utils.get_num_tmem_alloc_cols(cute.make_tensor(acc.iterator, cute.make_layout((128, n), stride=(65536, 1))))


trace(f)
#: KernelTypeError
#: blackwell.py:5:5: error F251: find_tmem_tensor_col_offset: the layout must be static, got tensor<ptr<f32, tmem> o (128,?):(65536,1)>
#:     5 |     utils.get_num_tmem_alloc_cols(cute.make_tensor(acc.iterator, cute.make_layout((128, n), stride=(65536, 1))))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== more columns than there are
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaTF32Op((128, 256, 8)))
    acc = mma.make_fragment_C(mma.partition_shape_C((128, 256)))
    utils.get_num_tmem_alloc_cols([acc, acc, acc])


trace(f)
#: UsageError
#: blackwell.py:4:5: error F162: get_num_tmem_alloc_cols: the tensors need 768 columns, but a block has 512
#:     4 |     utils.get_num_tmem_alloc_cols([acc, acc, acc])
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a tile without the modes of an instruction
def f():
    atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, cute.Float16)
    tcgen05.tile_to_mma_shape(atom, (128, 1, 4))


trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F251: cute.nvgpu.tcgen05.tile_to_mma_shape: mode 0 of the shape must be (X, K), got (128, 1, 4)
#:     3 |     tcgen05.tile_to_mma_shape(atom, (128, 1, 4))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a cluster along K
utils.ClcDynamicPersistentTileSchedulerParams((4, 4, 1), (1, 1, 2))
#: UsageError
#: ClcDynamicPersistentTileSchedulerParams: cluster_shape_mnk must be 1 along K, got (1, 1, 2)

# ===== bytes of a slot
trace(lambda: pipeline.PipelineTmaUmma.create(num_stages=1, producer_group=1, consumer_group=1, tx_count=0))
#: UsageError
#: blackwell.py:1:15: error F162: PipelineTmaUmma: tx_count must be 1 to 1048575 bytes, got 0
#:     1 | trace(lambda: pipeline.PipelineTmaUmma.create(num_stages=1, producer_group=1, consumer_group=1, tx_count=0))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== consumers that are warp groups
trace(
    lambda: pipeline.PipelineAsync.create(
        num_stages=1, producer_group=1, consumer_group=pipeline.CooperativeGroup(pipeline.Agent.WarpGroup, 1)
    )
)
#: UsageError
#: blackwell.py:2:13: error F162: PipelineAsync: the consumer group must have Agent.Thread, got Agent.WarpGroup
#:     2 |     lambda: pipeline.PipelineAsync.create(
#:       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== groups of consumers in several blocks
trace(
    lambda: pipeline.PipelineTmaMultiConsumersAsync.create(
        num_stages=1, producer_group=1, consumer_group_async=32, tx_count=16, cta_layout_vmnk=cute.make_layout((1, 2, 1, 1))
    ),
    "sm_90a",
)
#: UsageError
#: blackwell.py:2:13: error F162: PipelineTmaMultiConsumersAsync supports one block, got a cluster of 2
#:     2 |     lambda: pipeline.PipelineTmaMultiConsumersAsync.create(
#:       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== absolute values of integers
trace(lambda: arch.warp_redux_sync(arch.lane_idx(), "max", abs=True))
#: KernelTypeError
#: blackwell.py:1:15: error F253: cute.arch.warp_redux_sync: abs and nan need a Float32, got this Int32
#:     1 | trace(lambda: arch.warp_redux_sync(arch.lane_idx(), "max", abs=True))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== unpacking 5 bits
trace(lambda: cute.make_copy_atom(warp.LdMatrix16x16x8bOp(2, unpack_bits=5), cute.Int8))
#: KernelTypeError
#: blackwell.py:1:15: error F251: warp.LdMatrix16x16x8bOp: unpack_bits is 5; use 4, 6 or None
#:     1 | trace(lambda: cute.make_copy_atom(warp.LdMatrix16x16x8bOp(2, unpack_bits=5), cute.Int8))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== the shape of another MMA
trace(lambda: cute.make_mma_atom(warp.MmaMXF4Op(shape_mnk=(16, 8, 32))), "sm_120a", 32)
#: KernelTypeError
#: blackwell.py:1:15: error F251: warp.MmaMXF4Op: shape_mnk is (16, 8, 32); use (16, 8, 64) or omit it
#:     1 | trace(lambda: cute.make_mma_atom(warp.MmaMXF4Op(shape_mnk=(16, 8, 32))), "sm_120a", 32)
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== A without scale factors
def f():
    mma, d, a, b, sfa, sfb = scaled()
    cute.gemm(mma, d, a, [b, sfb], d)


trace(f, "sm_120a", 32)
#: KernelTypeError
#: blackwell.py:3:5: error F254: cute.gemm: a must be [A, SFA] for mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16>, got tensor<ptr<f4E2M1FN, rmem, align<16>> o ((8,2,2),1,1):((1,8,16),0,0)>
#:     3 |     cute.gemm(mma, d, a, [b, sfb], d)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== scale factors before the elements
def f():
    mma, d, a, b, sfa, sfb = scaled()
    cute.gemm(mma, d, [a, sfa], [sfb, b], d)


trace(f, "sm_120a", 32)
#: KernelTypeError
#: blackwell.py:3:5: error F254: cute.gemm: b is [SFB, B]; pass [B, SFB]
#:     3 |     cute.gemm(mma, d, [a, sfa], [sfb, b], d)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== whole tiles by an atom
def f():
    mma, d, a, b, sfa, sfb = scaled()
    cute.gemm(cute.make_mma_atom(warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8, 16))), d, a, b, thread=0)


trace(f, "sm_120a", 32)
#: KernelTypeError
#: blackwell.py:3:5: error F254: cute.gemm of whole tiles: mma must be a tiled MMA, got mma_sync<16x8x16, (f32,f16,f16,f32)>
#:     3 |     cute.gemm(cute.make_mma_atom(warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8, 16))), d, a, b, thread=0)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== whole tiles that accumulate if a number is positive
def f():
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8, 16)))
    a, b, d = (
        cute.make_tensor(arch.alloc_smem(t, m * n), cute.make_layout((m, n)))
        for t, m, n in ((cute.Float16, 16, 16), (cute.Float16, 8, 16), (Float32, 16, 8))
    )
    cute.gemm(mma, d, a, b, accumulate=arch.block_idx().x > 0, thread=arch.lane_idx())


trace(f, "sm_90a", 32)
#: KernelTypeError
#: blackwell.py:7:5: error F254: cute.gemm of whole tiles: accumulate must be known at compile time
#:     7 |     cute.gemm(mma, d, a, b, accumulate=arch.block_idx().x > 0, thread=arch.lane_idx())
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: clear D and always accumulate
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)
