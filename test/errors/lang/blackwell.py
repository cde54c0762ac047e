"""Errors of tensor memory, ``tcgen05`` and the MMAs with scale factors."""

import cute_dialect.lang as cute
from cute_dialect.lang import blackwell, blockscaled, pipeline, utils

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

# ===== a field of scale factors of a dense MMA
def f():
    cute.make_tiled_mma(tcgen05.MmaTF32Op((128, 32, 8))).set(tcgen05.Field.SFA, None)

trace(f)
#: KernelTypeError
#: blackwell.py:2:5: error F254: a tiled MMA of tcgen05_mma<128x32x8, (f32,tf32,tf32,f32), A = smem, major = (k, k)> has no field <Field.SFA: 'sfa'>
#:     2 |     cute.make_tiled_mma(tcgen05.MmaTF32Op((128, 32, 8))).set(tcgen05.Field.SFA, None)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: its fields: Field.ACCUMULATE
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== scale factors that are no pointer to tensor memory
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    mma.set(tcgen05.Field.SFB, arch.alloc_smem(cute.Float8E8M0FNU, 4))

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F254: Field.SFB of a tiled MMA of tcgen05_mma<128x32x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32> must be a pointer to Float8E8M0FNU in tensor memory, got ptr<f8E8M0FNU, smem>
#:     3 |     mma.set(tcgen05.Field.SFB, arch.alloc_smem(cute.Float8E8M0FNU, 4))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: cute.recast_ptr(pointer, dtype=Float8E8M0FNU)
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== scale factors that are not set
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    acc = mma.make_fragment_C(mma.partition_shape_C((128, 32)))
    a = cute.smem_tensor(cute.Float8E4M3FN, cute.make_layout(((128, 32), 1, 1), stride=((128, 1), 0, 0)), 1024)
    cute.gemm(mma, acc, a, a, acc)

trace(f)
#: KernelTypeError
#: blackwell.py:5:5: error F254: cute.gemm by tcgen05_mma<128x32x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32>: Field.SFA is not set here, and A is given alone
#:     5 |     cute.gemm(mma, acc, a, a, acc)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: mma.set(Field.SFA, pointer), or pass [A, SFA]
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== factors of a type that the MMA does not have
trace(lambda: cute.make_mma_atom(tcgen05.MmaMXF4NVF4Op(cute.Float16, (128, 32, 64))))
#: KernelTypeError
#: blackwell.py:1:15: error F250: tcgen05.MmaMXF4NVF4Op: sf_dtype must be one of Float8E4M3FN, Float8E8M0FNU, got Float16
#:     1 | trace(lambda: cute.make_mma_atom(tcgen05.MmaMXF4NVF4Op(cute.Float16, (128, 32, 64))))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== block scales of a type that no MMA has
def f():
    blackwell.make_blockscaled_trivial_tiled_mma(
        cute.Float8E4M3FN, K, K, cute.Float8E4M3FN, 16, tcgen05.CtaGroup.ONE, (128, 64)
    )

trace(f)
#: TypeError
#: blackwell.py:2:5: error F162: TypeError: make_blockscaled_trivial_tiled_mma: there is no MMA of Float8E4M3FN and Float8E4M3FN with Float8E4M3FN for 16 elements; use Float8E8M0FNU for 32 elements, or for Float4E2M1FN also Float8E4M3FN or Float8E8M0FNU for 16
#:     2 |     blackwell.make_blockscaled_trivial_tiled_mma(
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== packed operands that are not K-major
def f():
    MN = tcgen05.OperandMajorMode.MN
    blackwell.make_blockscaled_trivial_tiled_mma(
        cute.Float4E2M1FN, cute.Float4E2M1FN, K, MN, cute.Float8E8M0FNU, 32, tcgen05.CtaGroup.ONE, (128, 64)
    )

trace(f)
#: TypeError
#: blackwell.py:3:5: error F162: TypeError: make_blockscaled_trivial_tiled_mma: Float4E2M1FN operands must be K-major
#:     3 |     blackwell.make_blockscaled_trivial_tiled_mma(
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== layouts of factors of a dense MMA
def f():
    blockscaled.make_smem_layout_sfa(cute.make_tiled_mma(tcgen05.MmaTF32Op((128, 32, 8))), (128, 32, 32), 32, 1)

trace(f)
#: KernelTypeError
#: blackwell.py:2:5: error F251: the layout of SFA needs an MMA with block scales, got tiled MMA of tcgen05_mma<128x32x8, (f32,tf32,tf32,f32), A = smem, major = (k, k)>, atom_layout_MNK = (1,1,1):(0,0,0)
#:     2 |     blockscaled.make_smem_layout_sfa(cute.make_tiled_mma(tcgen05.MmaTF32Op((128, 32, 8))), (128, 32, 32), 32, 1)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== layouts of factors for another number of elements
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    blockscaled.make_smem_layout_sfa(mma, (128, 32, 128), 16, 1)

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F251: the layout of SFA: sf_vec_size is 16; tiled MMA of tcgen05_mma<128x32x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32>, atom_layout_MNK = (1,1,1):(0,0,0) needs 32
#:     3 |     blockscaled.make_smem_layout_sfa(mma, (128, 32, 128), 16, 1)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== factors in tensor memory for another layout of a stage
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    blockscaled.make_tmem_layout_sfa(mma, (128, 32, 128), 32, cute.make_layout(128))

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F251: make_tmem_layout_sfa: the layout of a stage in shared memory must have the shape (((32, 4, 1), (32, 1)), 1, (4, 1)), got 128:1
#:     3 |     blockscaled.make_tmem_layout_sfa(mma, (128, 32, 128), 32, cute.make_layout(128))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: pass a stage of make_smem_layout_sfa
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a copy to tensor memory with a load
def f():
    atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), Float32)
    tcgen05.make_s2t_copy(atom, cute.make_rmem_tensor((4,), Float32))

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F251: cute.nvgpu.tcgen05.make_s2t_copy: atom must be a copy from shared to tensor memory, got tmem_load<f32, 32x32b, x32>
#:     3 |     tcgen05.make_s2t_copy(atom, cute.make_rmem_tensor((4,), Float32))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: cute.make_copy_atom(tcgen05.Cp4x32x128bOp(), cute.Float8E8M0FNU)
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a partition of shared memory that is in registers
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    one = blockscaled.make_smem_layout_sfa(mma, (128, 32, 128), 32, 1)[None, None, None, 0]
    slot = arch.alloc_smem(cute.Int32, 1)
    columns = arch.retrieve_tmem_ptr(cute.Float8E8M0FNU, 16, slot)
    factors = cute.filter_zeros(cute.make_tensor(columns, blockscaled.make_tmem_layout_sfa(mma, (128, 32, 128), 32, one)))
    copy = tcgen05.make_s2t_copy(cute.make_copy_atom(tcgen05.Cp4x32x128bOp(), cute.Float8E8M0FNU), factors)
    tcgen05.get_s2t_smem_desc_tensor(copy, cute.make_rmem_tensor((4,), Float32))

trace(f)
#: KernelTypeError
#: blackwell.py:8:5: error F251: cute.nvgpu.tcgen05.get_s2t_smem_desc_tensor: the tensor must be in shared memory, got tensor<ptr<f32, rmem, align<16>> o (4):(1)>
#:     8 |     tcgen05.get_s2t_smem_desc_tensor(copy, cute.make_rmem_tensor((4,), Float32))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== factors in global memory in another layout
import numpy as np

@cute.jit
def host(x: cute.Tensor):
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    one = blockscaled.make_smem_layout_sfa(mma, (128, 32, 128), 32, 1)[None, None, None, 0]
    factors = cute.make_tensor(x.iterator, cute.make_layout((128, (32, 4)), stride=(4, (0, 1))))
    cute.nvgpu.make_tiled_tma_atom_A(cute.nvgpu.cpasync.G2S(), factors, one, (128, 32, 128), mma)

cute.compile(host, np.zeros(512, np.uint8), chip="sm_100a", device="cpu")
#: KernelTypeError
#: blackwell.py:8:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): scale factors must have the layouts of cute.blockscaled; the tensor is tensor<ptr<ui8, gmem, align<16>> o (128,(32,4)):(4,(0,1))>
#:     8 |     cute.nvgpu.make_tiled_tma_atom_A(cute.nvgpu.cpasync.G2S(), factors, one, (128, 32, 128), mma)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: tile_atom_to_shape_SF for global memory; for a stage make_smem_layout_sfa or make_smem_layout_sfb, or those of sm_120
#: called from blackwell.py:10:1  cute.compile(host, np.zeros(512, np.uint8), chip="sm_100a", device="cpu")

# ===== a tile with half a block of factors
import numpy as np

@cute.jit
def host(x: cute.Tensor):
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    one = blockscaled.make_smem_layout_sfa(mma, (128, 32, 128), 32, 1)[None, None, None, 0]
    factors = cute.make_tensor(x.iterator, blockscaled.tile_atom_to_shape_SF((128, 128), 32))
    cute.nvgpu.make_tiled_tma_atom_A(cute.nvgpu.cpasync.G2S(), factors, one, (64, 32, 128), mma)

cute.compile(host, np.zeros(512, np.uint8), chip="sm_100a", device="cpu")
#: KernelTypeError
#: blackwell.py:8:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): the tile of scale factors is 64 x 128; it must be a multiple of 128 x 128
#:     8 |     cute.nvgpu.make_tiled_tma_atom_A(cute.nvgpu.cpasync.G2S(), factors, one, (64, 32, 128), mma)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use an MMA and a tile whose M (for SFA) or N (for SFB) is a multiple of 128, or load the factors without TMA
#: called from blackwell.py:10:1  cute.compile(host, np.zeros(512, np.uint8), chip="sm_100a", device="cpu")

# ===== a stage of factors in another layout
import numpy as np

@cute.jit
def host(x: cute.Tensor):
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    factors = cute.make_tensor(x.iterator, blockscaled.tile_atom_to_shape_SF((128, 128), 32))
    cute.nvgpu.make_tiled_tma_atom_A(cute.nvgpu.cpasync.G2S(), factors, cute.make_layout((128, 4)), (128, 32, 128), mma)

cute.compile(host, np.zeros(512, np.uint8), chip="sm_100a", device="cpu")
#: KernelTypeError
#: blackwell.py:7:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): scale factors must have the layouts of cute.blockscaled; smem_layout is (128,4):(1,128)
#:     7 |     cute.nvgpu.make_tiled_tma_atom_A(cute.nvgpu.cpasync.G2S(), factors, cute.make_layout((128, 4)), (128, 32, 128), mma)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: tile_atom_to_shape_SF for global memory; for a stage make_smem_layout_sfa or make_smem_layout_sfb, or those of sm_120
#: called from blackwell.py:9:1  cute.compile(host, np.zeros(512, np.uint8), chip="sm_100a", device="cpu")

# ===== a vector of another size
def f():
    v = cute.make_rmem_tensor((4,), Float32).load()
    type(v)(v, (8,), Float32)

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F238: TensorSSA: the value must be a vector of 8 elements of Float32, got vector<4xf32> o (4)
#:     3 |     type(v)(v, (8,), Float32)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== elements of half a byte in an array without contiguous bytes
import numpy as np

cute.runtime.from_dlpack(np.zeros((4, 4), np.uint8)[:, ::2], dtype=cute.Float4E2M1FN)
#: KernelTypeError
#: error F123: elements of f4E2M1FN need an array of bytes with a dimension of stride 1, got ui8 with strides (4, 2)

# ===== factors of another number of elements, for MMAs of warps
trace(
    lambda: blockscaled.sm120_make_smem_layout_sfa(
        cute.make_tiled_mma(warp.MmaMXF4Op()), (128, 128, 128), 16, 2
    ),
    "sm_120a",
)
#: KernelTypeError
#: blackwell.py:2:13: error F251: the layout of SFA: sf_vec_size is 16; tiled MMA of mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4, sf = f8E8M0FNU, vec = 32>, atom_layout_MNK = (1,1,1):(0,0,0) needs 32
#:     2 |     lambda: blockscaled.sm120_make_smem_layout_sfa(
#:       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== factors of an MMA of tensor memory, for MMAs of warps
trace(
    lambda: blockscaled.sm120_make_smem_layout_sfb(
        cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32))), (128, 128, 128), 32, 2
    )
)
#: KernelTypeError
#: blackwell.py:2:13: error F251: the layout of SFB needs an MMA of warps with block scales, got tiled MMA of tcgen05_mma<128x32x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32>, atom_layout_MNK = (1,1,1):(0,0,0)
#:     2 |     lambda: blockscaled.sm120_make_smem_layout_sfb(
#:       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a tile with half a block of factors, for MMAs of warps
trace(
    lambda: blockscaled.sm120_make_smem_layout_sfa(cute.make_tiled_mma(warp.MmaMXF4Op()), (64, 128, 128), 32, 2),
    "sm_120a",
)
#: KernelTypeError
#: blackwell.py:2:13: error F251: the layout of SFA: the tile is 64 x 128 x 128; M must be a multiple of 128, K of 128
#:     2 |     lambda: blockscaled.sm120_make_smem_layout_sfa(cute.make_tiled_mma(warp.MmaMXF4Op()), (64, 128, 128), 32, 2),
#:       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== factors of 8 elements
blackwell.get_permutation_mnk((128, 128, 128), 8, False)
#: KernelTypeError
#: error F251: get_permutation_mnk: sf_vec_size is 8; use 16 or 32

# ===== TMA of factors with a tile of layouts
import numpy as np

@cute.jit
def host(x: cute.Tensor):
    mma = cute.make_tiled_mma(warp.MmaMXF8Op(cute.Float8E4M3FN))
    one = blockscaled.sm120_make_smem_layout_sfa(mma, (128, 32, 128), 32, 1)
    factors = cute.make_tensor(x.iterator, blockscaled.tile_atom_to_shape_SF((128, 128), 32))
    cute.nvgpu.cpasync.make_tiled_tma_atom(cute.nvgpu.cpasync.G2S(), factors, one, (128, cute.make_layout(128)))

cute.compile(host, np.zeros(512, np.uint8), chip="sm_120a", device="cpu")
#: KernelTypeError
#: blackwell.py:8:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): the tile of scale factors must be two integers (X, K), got (128, 128:1)
#:     8 |     cute.nvgpu.cpasync.make_tiled_tma_atom(cute.nvgpu.cpasync.G2S(), factors, one, (128, cute.make_layout(128)))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from blackwell.py:10:1  cute.compile(host, np.zeros(512, np.uint8), chip="sm_120a", device="cpu")

# ===== row-major factors as the source of TMA
import numpy as np

@cute.jit
def host(x: cute.Tensor):
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 128, 32)))
    one = blockscaled.make_smem_layout_sfb(mma, (128, 128, 128), 32, 1)[None, None, None, 0]
    cute.nvgpu.make_tiled_tma_atom_B(cute.nvgpu.cpasync.G2S(), x, one, (128, 128, 128), mma)

cute.compile(host, np.zeros((256, 16), np.uint8), chip="sm_100a", device="cpu")
#: KernelTypeError
#: blackwell.py:7:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): smem_layout is that of scale factors for 32 elements along K, but gmem_tensor is tensor<ptr<ui8, gmem, align<16>> o (?,?):(?{div=16},1)>; scale factors in global memory must be in blocks of 128 rows x 4 factors
#:     7 |     cute.nvgpu.make_tiled_tma_atom_B(cute.nvgpu.cpasync.G2S(), x, one, (128, 128, 128), mma)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: store the factors in these blocks, and pass cute.make_tensor(pointer, blockscaled.tile_atom_to_shape_SF(A.shape, 32)), with the shape of A or B in elements
#: called from blackwell.py:9:1  cute.compile(host, np.zeros((256, 16), np.uint8), chip="sm_100a", device="cpu")

# ===== a tile of factors that TMA cannot load because of its N
import numpy as np

@cute.jit
def host(x: cute.Tensor):
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 192, 32)))
    one = blockscaled.make_smem_layout_sfb(mma, (128, 192, 128), 32, 1)[None, None, None, 0]
    factors = cute.make_tensor(x.iterator, blockscaled.tile_atom_to_shape_SF((384, 128), 32))
    cute.nvgpu.make_tiled_tma_atom_B(cute.nvgpu.cpasync.G2S(), factors, one, (128, 192, 128), mma)

cute.compile(host, np.zeros(1536, np.uint8), chip="sm_100a", device="cpu")
#: KernelTypeError
#: blackwell.py:8:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): the tile of scale factors is 192 x 128; it must be a multiple of 128 x 128
#:     8 |     cute.nvgpu.make_tiled_tma_atom_B(cute.nvgpu.cpasync.G2S(), factors, one, (128, 192, 128), mma)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use an MMA and a tile whose M (for SFA) or N (for SFB) is a multiple of 128, or load the factors without TMA
#: called from blackwell.py:10:1  cute.compile(host, np.zeros(1536, np.uint8), chip="sm_100a", device="cpu")

# ===== a tile of factors with a part of a block along K
import numpy as np

@cute.jit
def host(x: cute.Tensor):
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 128, 32)))
    one = blockscaled.make_smem_layout_sfb(mma, (128, 128, 128), 32, 1)[None, None, None, 0]
    factors = cute.make_tensor(x.iterator, blockscaled.tile_atom_to_shape_SF((128, 128), 32))
    cute.nvgpu.make_tiled_tma_atom_B(cute.nvgpu.cpasync.G2S(), factors, one, (128, 128, 96), mma)

cute.compile(host, np.zeros(512, np.uint8), chip="sm_100a", device="cpu")
#: KernelTypeError
#: blackwell.py:8:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): the tile of scale factors is 128 x 96; it must be a multiple of 128 x 128
#:     8 |     cute.nvgpu.make_tiled_tma_atom_B(cute.nvgpu.cpasync.G2S(), factors, one, (128, 128, 96), mma)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use a tile with K = 128
#: called from blackwell.py:10:1  cute.compile(host, np.zeros(512, np.uint8), chip="sm_100a", device="cpu")

# ===== an instruction with K as the tile of a block-scaled MMA
E4M3, E8M0, ONE = cute.Float8E4M3FN, cute.Float8E8M0FNU, tcgen05.CtaGroup.ONE

trace(lambda: blackwell.make_blockscaled_trivial_tiled_mma(E4M3, K, K, E8M0, 32, ONE, (128, 128, 64)))
#: TypeError
#: blackwell.py:3:15: error F162: TypeError: make_blockscaled_trivial_tiled_mma: mma_tiler_mn must be (M, N) of the instruction, got (128, 128, 64); its K follows from the types
#:     3 | trace(lambda: blackwell.make_blockscaled_trivial_tiled_mma(E4M3, K, K, E8M0, 32, ONE, (128, 128, 64)))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a block-scaled MMA without the group of blocks
trace(lambda: blackwell.make_blockscaled_trivial_tiled_mma(cute.Float8E4M3FN, K, K, cute.Float8E8M0FNU, 32, (128, 64)))
#: TypeError
#: blackwell.py:1:15: error F162: TypeError: make_blockscaled_trivial_tiled_mma: the arguments are a_dtype, [b_dtype,] a_major, b_major, sf_dtype, sf_vec_size, cta_group, mma_tiler_mn [, a_source]; got 6 arguments
#:     1 | trace(lambda: blackwell.make_blockscaled_trivial_tiled_mma(cute.Float8E4M3FN, K, K, cute.Float8E8M0FNU, 32, (128, 64)))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== A of a block-scaled MMA in tensor memory
trace(lambda: cute.make_mma_atom(tcgen05.MmaMXF4Op((128, 64, 64), a_src=tcgen05.OperandSource.TMEM)))
#: KernelTypeError
#: blackwell.py:1:15: error F250: tcgen05.MmaMXF4Op: a_src must be OperandSource.SMEM; an MMA with block scales reads A from there
#:     1 | trace(lambda: cute.make_mma_atom(tcgen05.MmaMXF4Op((128, 64, 64), a_src=tcgen05.OperandSource.TMEM)))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== B of a block-scaled MMA that is not K-major
MN = tcgen05.OperandMajorMode.MN

trace(lambda: cute.make_mma_atom(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 64, 32), b_major_mode=MN)))
#: KernelTypeError
#: blackwell.py:3:15: error F250: tcgen05.MmaMXF8Op: b_major_mode must be OperandMajorMode.K for an MMA with block scales
#:     3 | trace(lambda: cute.make_mma_atom(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 64, 32), b_major_mode=MN)))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== the shape of scale factors instead of that of the matrix
trace(lambda: blockscaled.tile_atom_to_shape_SF(512, 32))
#: KernelTypeError
#: blackwell.py:1:15: error F251: tile_atom_to_shape_SF: Tensor_shape must be (M, K) or (M, K, L) of the tensor in elements, got 512
#:     1 | trace(lambda: blockscaled.tile_atom_to_shape_SF(512, 32))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a number of elements that no factor scales
trace(lambda: blockscaled.tile_atom_to_shape_SF((128, 128), 24))
#: KernelTypeError
#: blackwell.py:1:15: error F251: tile_atom_to_shape_SF: sf_vec_size must be 16, 32 or 64, got 24
#:     1 | trace(lambda: blockscaled.tile_atom_to_shape_SF((128, 128), 24))
#:       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a tile of factors without K
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    blockscaled.make_smem_layout_sfa(mma, (128, 32), 32, 1)

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F251: the layout of SFA: mma_tiler_mnk must be (M, N, K) in elements, got (128, 32)
#:     3 |     blockscaled.make_smem_layout_sfa(mma, (128, 32), 32, 1)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a second thread of a copy to tensor memory
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 32, 32)))
    one = blockscaled.make_smem_layout_sfa(mma, (128, 32, 128), 32, 1)[None, None, None, 0]
    columns = arch.retrieve_tmem_ptr(cute.Float8E8M0FNU, 16, arch.alloc_smem(cute.Int32, 1))
    factors = cute.filter_zeros(cute.make_tensor(columns, blockscaled.make_tmem_layout_sfa(mma, (128, 32, 128), 32, one)))
    copy = tcgen05.make_s2t_copy(cute.make_copy_atom(tcgen05.Cp4x32x128bOp(), cute.Float8E8M0FNU), factors)
    copy.get_slice(1).partition_D(factors)

trace(f)
#: LayoutError
#: blackwell.py:7:5: error F242: get_slice(1): a tiled copy of Cp4x32x128bOp has 1 thread; use get_slice(0)
#:     7 |     copy.get_slice(1).partition_D(factors)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a thread past those of a tiled copy
def f():
    copy = cute.make_tiled_copy_tv(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32), (32, 4), (1, 4))
    copy.get_slice(128).partition_S(cute.smem_tensor(Float32, (32, 16)))

trace(f)
#: LayoutError
#: blackwell.py:3:5: error F242: get_slice(128): a tiled copy of CopyUniversalOp has 128 threads; use 0 to 127
#:     3 |     copy.get_slice(128).partition_S(cute.smem_tensor(Float32, (32, 16)))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== swapped scale factors
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 128, 32)))
    tile = (128, 128, 128)
    a, b = (
        make(cute.smem_tensor(cute.Float8E4M3FN, x.outer, 1024, x.inner))
        for make, x in (
            (mma.make_fragment_A, blackwell.make_smem_layout_a(mma, tile, cute.Float8E4M3FN, 1)[None, None, None, 0]),
            (mma.make_fragment_B, blackwell.make_smem_layout_b(mma, tile, cute.Float8E4M3FN, 1)[None, None, None, 0]),
        )
    )
    pointer = arch.retrieve_tmem_ptr(Float32, 16, arch.alloc_smem(cute.Int32, 1))
    acc = cute.make_tensor(pointer, mma.make_fragment_C(mma.partition_shape_C((128, 128))).layout)
    one = blockscaled.make_smem_layout_sfa(mma, tile, 32, 1)[None, None, None, 0]
    columns = cute.recast_ptr(pointer + 128, dtype=cute.Float8E8M0FNU)
    sfa = cute.make_tensor(columns, blockscaled.make_tmem_layout_sfa(mma, tile, 32, one))
    sfb = cute.make_tensor(columns, blockscaled.make_tmem_layout_sfb(mma, tile, 32, one))
    cute.gemm(mma, acc, [a, sfb[None, None, None]], [b, sfa])

trace(f)
#: KernelTypeError
#: blackwell.py:17:5: error F254: cute.gemm: a is [A, SFB] and b is [B, SFA]; pass [A, SFA] and [B, SFB]
#:    17 |     cute.gemm(mma, acc, [a, sfb[None, None, None]], [b, sfa])
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== metadata of a dense MMA
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaTF32Op((128, 32, 8)))
    blackwell.make_tmem_layout_e(mma, (128, 32, 64))

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F251: make_tmem_layout_e needs a tcgen05 MMA with a sparse A, got tiled MMA of tcgen05_mma<128x32x8, (f32,tf32,tf32,f32), A = smem, major = (k, k)>, atom_layout_MNK = (1,1,1):(0,0,0)
#:     3 |     blackwell.make_tmem_layout_e(mma, (128, 32, 64))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a tile of metadata without K
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaSparseOp(cute.Float16, cute.Float16, Float32, (128, 32, 32)))
    blackwell.make_smem_layout_e(mma, (128, 32), 2)

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F251: make_smem_layout_e: mma_tiler_mnk must be (M, N, K) in elements, got (128, 32)
#:     3 |     blackwell.make_smem_layout_e(mma, (128, 32), 2)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)

# ===== a tile of metadata with a part of four columns
def f():
    mma = cute.make_tiled_mma(tcgen05.MmaSparseOp(cute.Float16, cute.Float16, Float32, (128, 32, 32)))
    blackwell.make_smem_layout_e(mma, (128, 32, 64), 2)

trace(f)
#: KernelTypeError
#: blackwell.py:3:5: error F251: make_smem_layout_e: the tile is 128 x 32 x 64; M must be 128, and K a multiple of 128
#:     3 |     blackwell.make_smem_layout_e(mma, (128, 32, 64), 2)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:15:9  f()
#: called from preamble.py:17:5  cute.trace(kernel, grid=1, block=block, chip=chip)
