"""Errors of atoms, tiled copies, tiled MMAs and TMA."""

import numpy as np

import cute_dialect.lang as cute

arch, nvgpu, Int32, Float32 = cute.arch, cute.nvgpu, cute.Int32, cute.Float32
X = np.zeros((8, 8), np.float32)


@cute.kernel
def call(f: cute.Constexpr, x: cute.Tensor):
    f(x)


def trace(f, x=X):
    """Launch a kernel that calls ``f(x)``; by default x is a matrix of f32."""
    call(f, x).launch(grid=1, block=32)


def MMA():
    """Return an MMA descriptor of one warp."""
    return nvgpu.warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8, 16))


def ATOM():
    """Return a copy atom for one element."""
    return cute.make_copy_atom(nvgpu.CopyUniversalOp(), Float32)


def WGMMA(source, major):
    """Return an MMA descriptor of one warpgroup."""
    return nvgpu.warpgroup.MmaF16BF16Op(cute.Float16, Float32, (64, 64, 16), source, major, nvgpu.OperandMajorMode.K)


def TILED():
    """Return a tiled copy of 32 threads."""
    return cute.make_tiled_copy_tv(ATOM(), cute.make_layout((4, 8)), cute.make_layout((2, 1)))


# The cases define the same names again, and call functions with wrong arguments.
# pyright: basic, reportRedeclaration=false, reportCallIssue=false, reportArgumentType=false

# ===== an MMA atom of a copy
trace(lambda x: cute.make_mma_atom(nvgpu.CopyUniversalOp()))
#: KernelTypeError
#: atoms.py:1:17: error F250: cute.make_mma_atom: op must be an MMA descriptor, got CopyUniversalOp()
#:     1 | trace(lambda x: cute.make_mma_atom(nvgpu.CopyUniversalOp()))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: such as cute.nvgpu.MmaUniversalOp(…), cute.nvgpu.warp.MmaF16BF16Op(…), cute.nvgpu.warpgroup.MmaF16BF16Op(…)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a copy atom that is a product
trace(lambda x: cute.make_tiled_copy_tv(nvgpu.warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8, 16)), cute.make_layout(32), cute.make_layout(4)))
#: KernelTypeError
#: atoms.py:1:17: error F250: cute.make_tiled_copy_tv: atom must be a copy atom, got MmaF16BF16Op(ab_dtype=Float16, acc_dtype=Float32, shape_mnk=(16, 8, 16), a_major_mode=<OperandMajorMode.K: 'k'>, b_major_mode=<OperandMajorMode.K: 'k'>)
#:     1 | trace(lambda x: cute.make_tiled_copy_tv(nvgpu.warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8, 16)), cute.make_layout(32), cute.make_layout(4)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use cute.make_copy_atom(op, dtype)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a permutation of two modes
trace(lambda x: cute.make_tiled_mma(MMA(), permutation_mnk=(16, 8)))
#: KernelTypeError
#: atoms.py:1:17: error F251: cute.make_tiled_mma: permutation_mnk needs an entry for each of M, N and K, got (16, 8)
#:     1 | trace(lambda x: cute.make_tiled_mma(MMA(), permutation_mnk=(16, 8)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tiled MMA of a descriptor
trace(lambda x: cute.gemm(MMA(), x, x, x, x))
#: KernelTypeError
#: atoms.py:1:17: error F250: cute.gemm: mma must be a tiled MMA or an MMA atom, got MmaF16BF16Op(ab_dtype=Float16, acc_dtype=Float32, shape_mnk=(16, 8, 16), a_major_mode=<OperandMajorMode.K: 'k'>, b_major_mode=<OperandMajorMode.K: 'k'>)
#:     1 | trace(lambda x: cute.gemm(MMA(), x, x, x, x))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use cute.make_tiled_mma
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tiled MMA of text
trace(lambda x: cute.gemm("mma", x, x, x, x))
#: KernelTypeError
#: atoms.py:1:17: error F250: cute.gemm: mma must be a tiled MMA or an MMA atom, got 'mma'
#:     1 | trace(lambda x: cute.gemm("mma", x, x, x, x))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a field that a product has not
def f(x):
    mma = cute.make_tiled_mma(MMA())
    mma.set("scale", 1)


trace(f)
#: KernelTypeError
#: atoms.py:3:5: error F254: a tiled MMA of mma_sync<16x8x16, (f32,f16,f16,f32)> has no field 'scale'
#:     3 |     mma.set("scale", 1)
#:       |     ^^^^^^^^^^^^^^^^^^^
#: hint: its fields: Field.ACCUMULATE
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== the size of a mode of a tiled copy
trace(lambda x: cute.size(TILED(), mode=[0]))
#: KernelTypeError
#: atoms.py:1:17: error F251: a tiled copy of CopyUniversalOp has no modes; cute.size returns its number of threads
#:     1 | trace(lambda x: cute.size(TILED(), mode=[0]))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a float for a thread
trace(lambda x: TILED().get_slice(1.5).partition_S(x))
#: KernelTypeError
#: atoms.py:1:17: error F254: the thread index must be an integer, got this Float32
#:     1 | trace(lambda x: TILED().get_slice(1.5).partition_S(x))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tiled copy of a copy atom and no product
trace(lambda x: cute.make_tiled_copy_A(cute.make_copy_atom(nvgpu.CopyUniversalOp(), Float32), TILED()))
#: KernelTypeError
#: atoms.py:1:17: error F251: cute.make_tiled_copy_A: tiled_mma must be a tiled MMA, got tiled copy of universal_copy<f32>, layout_copy_tv = (32,2):(2,1), tiler_mn = [8:1;8:1]
#:     1 | trace(lambda x: cute.make_tiled_copy_A(cute.make_copy_atom(nvgpu.CopyUniversalOp(), Float32), TILED()))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== operand E of a dense product
trace(lambda x: cute.make_tiled_mma(MMA()).tv_layout("E"))
#: KernelTypeError
#: atoms.py:1:17: error F251: a tiled MMA of mma_sync<16x8x16, (f32,f16,f16,f32)> is dense and has no operand E
#:     1 | trace(lambda x: cute.make_tiled_mma(MMA()).tv_layout("E"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== accumulate with another C
def f(x):
    mma = cute.make_tiled_mma(MMA())
    thr = mma.get_slice(arch.thread_idx().x)
    a, b = (cute.make_rmem_tensor(mma.partition_shape_A((16, 16)), cute.Float16) for _ in range(2))
    d, c = (cute.make_rmem_tensor(mma.partition_shape_C((16, 8)), Float32) for _ in range(2))
    cute.gemm(mma, d, a, b, c, accumulate=True)


trace(f)
#: KernelTypeError
#: atoms.py:6:5: error F254: cute.gemm: with accumulate=, C must be D itself
#:     6 |     cute.gemm(mma, d, a, b, c, accumulate=True)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a thread for a copy that is not tiled
trace(lambda x: cute.copy(ATOM(), x, x, thread=0))
#: KernelTypeError
#: atoms.py:1:17: error F254: cute.copy by CopyUniversalOp: 'thread' needs a tiled copy
#:     1 | trace(lambda x: cute.copy(ATOM(), x, x, thread=0))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: cute.make_tiled_copy_tv
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a copy of coordinates
trace(lambda x: cute.basic_copy(cute.make_identity_tensor((4,)), cute.make_identity_tensor((4,))))
#: KernelTypeError
#: atoms.py:1:17: error F254: cute.basic_copy: src and dst must be tensors in memory, got a coordinate tensor
#:     1 | trace(lambda x: cute.basic_copy(cute.make_identity_tensor((4,)), cute.make_identity_tensor((4,))))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: index it
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a prefetch of registers
trace(lambda x: cute.prefetch(ATOM(), cute.make_rmem_tensor(4, Float32)))
#: KernelTypeError
#: atoms.py:1:17: error F254: cute.prefetch by CopyUniversalOp: the tensor must be in global memory, got tensor<ptr<f32, rmem, align<16>> o 4:1>
#:     1 | trace(lambda x: cute.prefetch(ATOM(), cute.make_rmem_tensor(4, Float32)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a field that a copy atom has not
trace(lambda x: cute.copy(ATOM(), x, x, colour=1))
#: TypeError
#: atoms.py:1:17: error F162: TypeError: copy() got an unexpected keyword argument 'colour'
#:     1 | trace(lambda x: cute.copy(ATOM(), x, x, colour=1))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: parameters: atom, src, dst, pred, thread, tma_bar_ptr, mcast_mask, cache_policy, im2col_offsets, rows, tma_desc_ptr, partial, unroll_factor
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a TMA atom by make_copy_atom
trace(lambda x: cute.make_copy_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), Float32))
#: KernelTypeError
#: atoms.py:1:17: error F250: cute.make_copy_atom: a TMA atom needs a tensor map built by the host, got CopyBulkTensorTileG2SOp
#:     1 | trace(lambda x: cute.make_copy_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), Float32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use cute.nvgpu.cpasync.make_tiled_tma_atom(op, gmem, smem_layout, cta_tiler) on the host
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a TMA copy of another descriptor
@cute.jit
def run(x: cute.Tensor):
    nvgpu.cpasync.make_tiled_tma_atom(nvgpu.CopyUniversalOp(), x, cute.make_layout((8, 8)), (8, 8))


run(X)
#: KernelTypeError
#: atoms.py:3:5: error F250: cute.nvgpu.cpasync.make_tiled_tma_atom: op must be a TMA descriptor, got CopyUniversalOp()
#:     3 |     nvgpu.cpasync.make_tiled_tma_atom(nvgpu.CopyUniversalOp(), x, cute.make_layout((8, 8)), (8, 8))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from atoms.py:6:1  run(X)

# ===== a TMA copy with a tuple for a layout
@cute.jit
def run(x: cute.Tensor):
    nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout(x.shape), (8, 8))


run(X)
#: KernelTypeError
#: atoms.py:3:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): smem: expected a static layout in shared memory, got (?,?):(1,?)
#:     3 |     nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout(x.shape), (8, 8))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: the tensor is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>, smem_layout is (?,?):(1,?)
#: called from atoms.py:6:1  run(X)

# ===== a TMA copy of coordinates
@cute.jit
def run(x: cute.Tensor):
    nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), cute.make_identity_tensor((8, 8)), cute.make_layout((8, 8)), (8, 8))


run(X)
#: KernelTypeError
#: atoms.py:3:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): gmem_tensor must be in memory, got a coordinate tensor
#:     3 |     nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), cute.make_identity_tensor((8, 8)), cute.make_layout((8, 8)), (8, 8))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from atoms.py:6:1  run(X)

# ===== a TMA copy of another type
@cute.jit
def run(x: cute.Tensor):
    nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8), internal_type=Int32)


run(X)
#: KernelTypeError
#: atoms.py:3:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): internal_type must be the element type Float32, got Int32
#:     3 |     nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8), internal_type=Int32)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use cute.recast_tensor; Int8 unpacks a tensor of 4-bit or 6-bit floats
#: called from atoms.py:6:1  run(X)

# ===== a descriptor that is prefetched of no TMA atom
trace(lambda x: nvgpu.cpasync.prefetch_descriptor(ATOM()))
#: KernelTypeError
#: atoms.py:1:17: error F254: cute.nvgpu.cpasync.prefetch_descriptor: atom must be a TMA atom, got universal_copy<f32>
#:     1 | trace(lambda x: nvgpu.cpasync.prefetch_descriptor(ATOM()))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== tma_partition of memory
@cute.kernel
def k(atom: cute.CopyAtom, x: cute.Tensor):
    nvgpu.cpasync.tma_partition(atom, 0, cute.make_layout(1), x, x)


@cute.jit
def run(x: cute.Tensor):
    atom, c = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8))
    k(atom, x).launch(grid=1, block=32)


run(X)
#: KernelTypeError
#: atoms.py:3:5: error F254: cute.nvgpu.cpasync.tma_partition: needs a tensor in shared memory and a TMA coordinate tensor, got tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)> and tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>
#:     3 |     nvgpu.cpasync.tma_partition(atom, 0, cute.make_layout(1), x, x)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from atoms.py:9:5  k(atom, x).launch(grid=1, block=32)
#: called from atoms.py:12:1  run(X)

# ===== tma_partition of tiles of two sizes
@cute.kernel
def k(atom: cute.CopyAtom, c: cute.Tensor):
    s = cute.make_tensor(arch.alloc_smem(Float32, 64, 128), cute.make_layout((8, 8), stride=(8, 1)))
    nvgpu.cpasync.tma_partition(atom, 0, cute.make_layout(1), s, cute.group_modes(c, 0, 2))


@cute.jit
def run(x: cute.Tensor):
    atom, c = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8))
    k(atom, c).launch(grid=1, block=32)


run(X)
#: KernelTypeError
#: atoms.py:4:5: error F254: cute.nvgpu.cpasync.tma_partition: mode 0 of both tensors must be the tile, but the sizes are 8 and ?
#:     4 |     nvgpu.cpasync.tma_partition(atom, 0, cute.make_layout(1), s, cute.group_modes(c, 0, 2))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: merge modes with cute.group_modes(t, 0, 2)
#: the tensors are tensor<ptr<f32, smem, align<128>> o (8,8):(8,1)> and tensor<(0,0) o ((?,?)):((1@1,1@0))>
#: called from atoms.py:10:5  k(atom, c).launch(grid=1, block=32)
#: called from atoms.py:13:1  run(X)

# ===== a multicast mask of too few modes
cute.make_layout_image_mask(cute.make_layout((2, 2)), (0,), 0)
#: KernelTypeError
#: error F254: cute.make_layout_image_mask: coord must have 2 modes, got (0,)

# ===== a cluster of 32 blocks
cute.make_layout_image_mask(cute.make_layout((8, 4)), (0, 0), 0)
#: KernelTypeError
#: error F254: cute.make_layout_image_mask: the cluster can have at most 16 blocks, got (8,4):(1,8)

# ===== a shared layout of 64-bit elements
nvgpu.warpgroup.make_smem_layout_atom(nvgpu.warpgroup.SmemLayoutAtomKind.K_SW128, cute.Int64)
#: KernelTypeError
#: error F250: make_smem_layout_atom: the elements must have 4, 8, 16 or 32 bits, got Int64

# ===== a group of run time
trace(lambda x: nvgpu.warpgroup.wait_group(arch.thread_idx().x))
#: StaticError
#: atoms.py:1:17: error F144: the 'group' of cute.nvgpu.warpgroup.wait_group must be known at compile time
#:     1 | trace(lambda x: nvgpu.warpgroup.wait_group(arch.thread_idx().x))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a shape of two modes
trace(lambda x: cute.make_mma_atom(nvgpu.warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8))))
#: KernelTypeError
#: atoms.py:1:17: error F250: warp.MmaF16BF16Op: the shape must be three integers (M, N, K), got (16, 8)
#:     1 | trace(lambda x: cute.make_mma_atom(nvgpu.warp.MmaF16BF16Op(cute.Float16, Float32, (16, 8))))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an operand of no memory
trace(lambda x: cute.make_mma_atom(WGMMA("gmem", nvgpu.OperandMajorMode.K)))
#: KernelTypeError
#: atoms.py:1:17: error F250: a_src must be OperandSource.SMEM or OperandSource.RMEM, got 'gmem'
#:     1 | trace(lambda x: cute.make_mma_atom(WGMMA("gmem", nvgpu.OperandMajorMode.K)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a major mode that there is not
trace(lambda x: cute.make_mma_atom(WGMMA(nvgpu.warpgroup.OperandSource.SMEM, "row")))
#: KernelTypeError
#: atoms.py:1:17: error F250: the major mode must be OperandMajorMode.K or OperandMajorMode.MN, got 'row'
#:     1 | trace(lambda x: cute.make_mma_atom(WGMMA(nvgpu.warpgroup.OperandSource.SMEM, "row")))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a trivial product of two types
cute.hopper.make_trivial_tiled_mma(cute.Float16, cute.BFloat16, nvgpu.OperandMajorMode.K, nvgpu.OperandMajorMode.K, Float32, (1, 1, 1), (64, 64))
#: TypeError
#: make_trivial_tiled_mma: A and B must have the same 16-bit type, got Float16 and BFloat16

# ===== a trivial product of f64
cute.hopper.make_trivial_tiled_mma(cute.Float64, cute.Float64, nvgpu.OperandMajorMode.K, nvgpu.OperandMajorMode.K, cute.Float64, (1, 1, 1), (64, 64))
#: TypeError
#: make_trivial_tiled_mma: A must be f16, bf16, tf32, an 8-bit float or an 8-bit integer, got Float64

# ===== a group of no thread
cute.pipeline.CooperativeGroup(cute.pipeline.Agent.Thread, 0)
#: UsageError
#: CooperativeGroup: size must be at least 1, got 0

# ===== a named barrier of number 16
cute.pipeline.NamedBarrier(16, 32)
#: UsageError
#: NamedBarrier: barrier_id must be 0 to 15, got 16

# ===== a layout of no contiguous mode
cute.utils.LayoutEnum.from_tensor(cute.make_identity_tensor((4, 4)))
#: UsageError
#: the first or second mode of the tensor must have stride 1, got tensor<(0,0) o (4,4):(1@0,1@1)>

# ===== the memory of a chip that there is not
cute.utils.get_smem_capacity_in_bytes("sm_1")
#: UsageError
#: chip must be one of sm_50, sm_52, sm_53, sm_60, sm_61, sm_62, sm_70, sm_72, sm_75, sm_80, sm_86, sm_87, sm_88, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_100f, sm_103, sm_103a, sm_103f, sm_110, sm_110a, sm_110f, sm_120, sm_120a, sm_120f, sm_121, sm_121a, sm_121f, got 'sm_1'

# ===== clusters of no block
cute.utils.HardwareInfo().get_max_active_clusters(0)
#: UsageError
#: cluster_size must be at least 1, got 0

# ===== a cluster along K
cute.utils.PersistentTileSchedulerParams((4, 4, 1), (1, 1, 2))
#: UsageError
#: cluster_shape_mnk must be 1 along K, got (1, 1, 2)

# ===== a product of a warp that accumulates by a number of run time
def f(x):
    mma = cute.make_tiled_mma(MMA())
    a, b = (cute.make_rmem_tensor(mma.partition_shape_A((16, 16)), cute.Float16) for _ in range(2))
    d = cute.make_rmem_tensor(mma.partition_shape_C((16, 8)), Float32)
    cute.gemm(mma, d, a, b, d, accumulate=x[0, 0] > 0)


trace(f)
#: KernelTypeError
#: atoms.py:5:5: error F254: cute.gemm: accumulate must be known at compile time for mma_sync<16x8x16, (f32,f16,f16,f32)>; only wgmma allows run time
#:     5 |     cute.gemm(mma, d, a, b, d, accumulate=x[0, 0] > 0)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: clear the accumulators with acc.fill(0) and always accumulate
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a layout in shared memory that is none
@cute.jit
def run(x: cute.Tensor):
    swizzled = cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, cute.make_layout((8, 8)))
    composed = cute.make_composed_layout(cute.make_layout(8), 0, cute.make_layout((8, 8)))
    nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, composed, (8, 8))


run(X)
#: KernelTypeError
#: atoms.py:5:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): smem: expected a plain layout or a swizzled one at offset 0, got 8:1 o 0 o (8,8):(1,8)
#:     5 |     nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, composed, (8, 8))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: the tensor is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>, smem_layout is 8:1 o 0 o (8,8):(1,8)
#: called from atoms.py:8:1  run(X)

# ===== a multicast copy without a mask
@cute.kernel
def k(atom: cute.CopyAtom, c: cute.Tensor):
    s = cute.make_tensor(arch.alloc_smem(Float32, 64, 128), cute.make_layout((8, 8), stride=(8, 1)))
    bar = arch.alloc_smem(cute.Int64, 1)
    ts, tg = nvgpu.cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(cute.local_tile(c, (8, 8), (0, 0)), 0, 2)
    )
    cute.copy(atom, tg, ts, tma_bar_ptr=bar)


@cute.jit
def run(x: cute.Tensor):
    op = nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()
    atom, c = nvgpu.cpasync.make_tiled_tma_atom(op, x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8), 2)
    k(atom, c).launch(grid=2, block=32, cluster=2)


run(X)
#: KernelTypeError
#: atoms.py:8:5: error F254: cute.copy by CopyBulkTensorTileG2SMulticastOp: CopyBulkTensorTileG2SMulticastOp needs mcast_mask, with one bit per destination block of the cluster
#:     8 |     cute.copy(atom, tg, ts, tma_bar_ptr=bar)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from atoms.py:15:5  k(atom, c).launch(grid=2, block=32, cluster=2)
#: called from atoms.py:18:1  run(X)

# ===== a tile that three blocks cannot share
@cute.jit
def run(x: cute.Tensor):
    op = nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()
    nvgpu.cpasync.make_tiled_tma_atom(op, x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8), 3)


run(X)
#: KernelTypeError
#: atoms.py:4:5: error F254: make_tiled_tma_atom(CopyBulkTensorTileG2SMulticastOp): multicast: expected a number of CTAs that divides the box (8, 8) from its outermost dimension, got 3
#:     4 |     nvgpu.cpasync.make_tiled_tma_atom(op, x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8), 3)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: the tensor is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>, smem_layout is (8,8):(8,1)
#: called from atoms.py:7:1  run(X)

# ===== a swizzle of no cluster
cute.utils.PersistentTileSchedulerParams((4, 4, 1), (1, 1, 1), swizzle_size=0)
#: UsageError
#: swizzle_size must be at least 1, got 0

# ===== a copy past the end of a static tile
def f(x):
    tiled = cute.make_tiled_copy_tv(ATOM(), cute.make_layout((4, 8)), cute.make_layout((1, 1)))
    part = tiled.get_slice(arch.thread_idx().x)
    tile = cute.local_tile(x, (6, 8), (0, 0))
    cute.autovec_copy(part.partition_S(tile), part.partition_D(tile))


trace(f)
#: KernelTypeError
#: atoms.py:5:5: error F254: copy of a partition: the tile (4,8) of the tiled copy does not divide the source (6,8), so threads access elements past the end of mode 0
#:     5 |     cute.autovec_copy(part.partition_S(tile), part.partition_D(tile))
#:       |     ^
#: hint: add pred= to cute.copy, use a tile that divides the tensor, or add partial=True
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tiled MMA of more threads than the block
def f(x):
    mma = cute.make_tiled_mma(MMA(), (2, 2, 1))
    c = mma.get_slice(arch.thread_idx().x).partition_C(cute.local_tile(x, (32, 16), (0, 0)))
    acc = mma.make_fragment_C(c)
    acc.fill(0)
    cute.autovec_copy(acc, c)


trace(f)
#: KernelTypeError
#: atoms.py:3:9: error F254: partition_C: the tiled MMA needs 128 threads, and the block has 32: no thread takes slices 32 to 127
#:     3 |     c = mma.get_slice(arch.thread_idx().x).partition_C(cute.local_tile(x, (32, 16), (0, 0)))
#:       |         ^
#: hint: launch with block=128, distribute the tile over fewer threads, or take several slices in each thread
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== registers for a partition of dynamic shape
def f(x):
    mma = cute.make_tiled_mma(MMA())
    mma.make_fragment_A(mma.get_slice(0).partition_A(x))


trace(f)
#: KernelTypeError
#: atoms.py:3:5: error F254: make_fragment_A of a tiled MMA of mma_sync<16x8x16, (f32,f16,f16,f32)>: the partition has the shape ((2,2,2),?,?), but registers need a static shape
#:     3 |     mma.make_fragment_A(mma.get_slice(0).partition_A(x))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: partition a tile of static shape, such as cute.local_tile(…)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a copy between element types of different widths
def f(x):
    cute.autovec_copy(x, cute.make_rmem_tensor((8, 8), cute.Float16))


trace(f)
#: KernelTypeError
#: atoms.py:2:5: error F254: cute.autovec_copy: src has elements of Float32 and dst of Float16, which differ in width
#:     2 |     cute.autovec_copy(x, cute.make_rmem_tensor((8, 8), cute.Float16))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: convert the elements: dst.store(src.load().to(dst.element_type))
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a copy of a tensor of dynamic shape
def f(x):
    cute.autovec_copy(x, x)


trace(f)
#: KernelTypeError
#: atoms.py:2:5: error F254: cute.autovec_copy: src must have a static shape, got (?,?)
#:     2 |     cute.autovec_copy(x, x)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^
#: hint: src is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>, dst is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>; copy a tile of static shape, such as cute.local_tile(src, tiler, coord)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor in place of a layout
def f(x):
    cute.make_tensor(x.iterator, x)


trace(f)
#: LayoutError
#: atoms.py:2:5: error F240: make_tensor needs a layout or a shape, got tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>
#:     2 |     cute.make_tensor(x.iterator, x)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: pass its layout, x.layout
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)
