"""Errors of synchronisation, atomic operations, shuffles and inline PTX."""

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

# ===== cluster_arrive that is not aligned
trace(lambda x: arch.cluster_arrive(aligned=False))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.cluster_arrive: aligned=False is not supported; all threads of the warp must arrive
#:     1 | trace(lambda x: arch.cluster_arrive(aligned=False))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== cluster_wait that is not aligned
trace(lambda x: arch.cluster_wait(aligned=False))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.cluster_wait: aligned=False is not supported; all threads of the warp must wait
#:     1 | trace(lambda x: arch.cluster_wait(aligned=False))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a predicate of an mbarrier of its own block
trace(lambda x: arch.mbarrier_arrive(arch.alloc_smem(cute.Int64, 1), pred=x[0, 0] > 0))
#: TypeError
#: machine.py:1:17: error F162: TypeError: cute.arch.mbarrier_arrive: 'pred' needs 'peer_cta_rank_in_cluster'; use an if statement
#:     1 | trace(lambda x: arch.mbarrier_arrive(arch.alloc_smem(cute.Int64, 1), pred=x[0, 0] > 0))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a number of groups of run time
trace(lambda x: arch.cp_async_wait_group(arch.thread_idx().x))
#: StaticError
#: machine.py:1:17: error F144: the 'n' of cute.arch.cp_async_wait_group must be known at compile time, got this Int32
#:     1 | trace(lambda x: arch.cp_async_wait_group(arch.thread_idx().x))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an atomic sum of another type
trace(lambda x: arch.atomic_add(x.iterator, arch.thread_idx().x))
#: KernelTypeError
#: machine.py:1:17: error F234: cute.arch.atomic_add: the pointer has element type Float32, got this Int32
#:     1 | trace(lambda x: arch.atomic_add(x.iterator, arch.thread_idx().x))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: convert with .to(Float32)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an atomic sum of text
trace(lambda x: arch.atomic_add(x.iterator, "one"))
#: KernelTypeError
#: machine.py:1:17: error F234: cute.arch.atomic_add: the pointer has element type Float32, got 'one'
#:     1 | trace(lambda x: arch.atomic_add(x.iterator, "one"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an order of memory that there is not
trace(lambda x: arch.atomic_add(x.iterator, 1.0, sem="strict"))
#: KernelTypeError
#: machine.py:1:17: error F251: cute.arch.atomic_add: sem must be relaxed, acquire, release or acq_rel, got 'strict'
#:     1 | trace(lambda x: arch.atomic_add(x.iterator, 1.0, sem="strict"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a scope that there is not
trace(lambda x: arch.atomic_add(x.iterator, 1.0, scope="warp"))
#: KernelTypeError
#: machine.py:1:17: error F251: cute.arch.atomic_add: scope must be cta, cluster, gpu or sys, got 'warp'
#:     1 | trace(lambda x: arch.atomic_add(x.iterator, 1.0, scope="warp"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== bits of floats under an atomic and
trace(lambda x: arch.atomic_and(x.iterator, 1))
#: KernelTypeError
#: machine.py:1:17: error F252: cute.arch.atomic_and: the element type must be one of i32, i64, got f32
#:     1 | trace(lambda x: arch.atomic_and(x.iterator, 1))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== atomic_fmax of integers
trace(lambda x: arch.atomic_fmax(x.iterator, 1), np.zeros((8, 8), np.int32))
#: KernelTypeError
#: machine.py:1:17: error F252: cute.arch.atomic_fmax: the element type must be f32 or f64, got i32
#:     1 | trace(lambda x: arch.atomic_fmax(x.iterator, 1), np.zeros((8, 8), np.int32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a reduction that there is not
trace(lambda x: arch.red(x.iterator, 1.0, op="mean"))
#: KernelTypeError
#: machine.py:1:17: error F251: cute.arch.red: op must be add, min, max, and, or, or xor, got 'mean'
#:     1 | trace(lambda x: arch.red(x.iterator, 1.0, op="mean"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a load of another type
trace(lambda x: arch.load(x.iterator, cute.Int32))
#: KernelTypeError
#: machine.py:1:17: error F252: cute.arch.load: the pointer has element type Float32, but dtype is Int32
#:     1 | trace(lambda x: arch.load(x.iterator, cute.Int32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use cute.recast_ptr
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an acquire of floats
trace(lambda x: arch.load(x.iterator, cute.Float32, sem="acquire"))
#: KernelTypeError
#: machine.py:1:17: error F252: cute.arch.load: sem='acquire' needs an i32 or i64 pointer, got f32
#:     1 | trace(lambda x: arch.load(x.iterator, cute.Float32, sem="acquire"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a load that releases
trace(lambda x: arch.load(x.iterator, cute.Float32, sem="release"))
#: KernelTypeError
#: machine.py:1:17: error F251: cute.arch.load: sem must be relaxed or acquire, got 'release'
#:     1 | trace(lambda x: arch.load(x.iterator, cute.Float32, sem="release"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a release of floats
trace(lambda x: arch.store(x.iterator, 1.0, sem="release"))
#: KernelTypeError
#: machine.py:1:17: error F252: cute.arch.store: sem='release' needs an i32 or i64 pointer, got f32
#:     1 | trace(lambda x: arch.store(x.iterator, 1.0, sem="release"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a store that acquires
trace(lambda x: arch.store(x.iterator, 1.0, sem="acquire"))
#: KernelTypeError
#: machine.py:1:17: error F251: cute.arch.store: sem must be relaxed or release, got 'acquire'
#:     1 | trace(lambda x: arch.store(x.iterator, 1.0, sem="acquire"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a cache operator that there is not
trace(lambda x: arch.load(x.iterator, cute.Float32, cop="zz"))
#: KernelTypeError
#: machine.py:1:17: error F251: cute.arch.load: cop must be one of ca, cg, cs, lu, cv, got 'zz'
#:     1 | trace(lambda x: arch.load(x.iterator, cute.Float32, cop="zz"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a qualified load of bytes
trace(lambda x: arch.load(x.iterator, cute.Int8, sem="relaxed"), np.zeros((8, 8), np.int8))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.load: sem and cop need elements of 16 to 64 bits, got Int8
#:     1 | trace(lambda x: arch.load(x.iterator, cute.Int8, sem="relaxed"), np.zeros((8, 8), np.int8))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a shuffle mask of no width
trace(lambda x: arch.shuffle_sync_bfly(x[0, 0], 1, mask_and_clamp=0x1234))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.shuffle_sync_bfly: mask_and_clamp must be 31 | (32 - width) << 8 with a width of 1, 2, 4, 8, 16 or 32, got 0x1234
#:     1 | trace(lambda x: arch.shuffle_sync_bfly(x[0, 0], 1, mask_and_clamp=0x1234))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a shuffle of text
trace(lambda x: arch.shuffle_sync("a", 0))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.shuffle_sync: value must be a number, a vector or an object of these, got 'a'
#:     1 | trace(lambda x: arch.shuffle_sync("a", 0))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a shuffle of a pointer
trace(lambda x: arch.shuffle_sync(x.iterator, 0))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.shuffle_sync: values must be i8, i16, i32, i64, f16, bf16, f32, f64, got ptr<f32, gmem, align<16>>
#:     1 | trace(lambda x: arch.shuffle_sync(x.iterator, 0))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== match_any of half a word
trace(lambda x: arch.match_any(x[0, 0].to(cute.Float16)))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.match_any: value must have 32 or 64 bits, got this Float16
#:     1 | trace(lambda x: arch.match_any(x[0, 0].to(cute.Float16)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a reduction of 5 threads
trace(lambda x: arch.warp_reduction(x[0, 0], lambda a, b: a + b, threads_in_group=5))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.warp_reduction: threads_in_group must be 1, 2, 4, 8, 16 or 32, got 5
#:     1 | trace(lambda x: arch.warp_reduction(x[0, 0], lambda a, b: a + b, threads_in_group=5))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== the greatest of a vector over a warp
trace(lambda x: arch.warp_reduction_max(cute.make_rmem_tensor(4, Float32).load()))
#: KernelTypeError
#: machine.py:1:17: error F253: cute.arch.warp_reduction_max: val must be a number, got a TensorSSA
#:     1 | trace(lambda x: arch.warp_reduction_max(cute.make_rmem_tensor(4, Float32).load()))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use cute.arch.warp_reduction(v, op)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an operand of inline PTX that is a byte
trace(lambda x: arch.inline_ptx("mov.b32 $0, $1;", x[0, 0].to(cute.Int8), result=Int32))
#: KernelTypeError
#: machine.py:1:17: error F251: cute.arch.inline_ptx: operand 0 must be a number of 16 to 64 bits, got this Int8
#:     1 | trace(lambda x: arch.inline_ptx("mov.b32 $0, $1;", x[0, 0].to(cute.Int8), result=Int32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== rounding of packed floats that there is not
trace(lambda x: arch.fma_packed_f32x2((1.0, 2.0), (1.0, 2.0), (x[0, 0], 2.0), rnd="up"))
#: KernelTypeError
#: machine.py:1:17: error F251: cute.arch.fma_packed_f32x2: rnd is 'up'; use one of 'rn', 'rz', 'rm', 'rp'
#:     1 | trace(lambda x: arch.fma_packed_f32x2((1.0, 2.0), (1.0, 2.0), (x[0, 0], 2.0), rnd="up"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== barrier without a number of threads
@cute.kernel
def waits(n: cute.Int32):
    arch.barrier(barrier_id=1)


@cute.jit
def run(n: cute.Int32):
    waits(n).launch(grid=1, block=n)


run(32)
#: KernelTypeError
#: machine.py:3:5: error F251: cute.arch.barrier: number_of_threads is required, because the block size is not a constant of the launch
#:     3 |     arch.barrier(barrier_id=1)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from machine.py:8:5  waits(n).launch(grid=1, block=n)
#: called from machine.py:11:1  run(32)

# ===== a pointer of another type for a barrier
trace(lambda x: arch.mbarrier_arrive(x.iterator))
#: KernelTypeError
#: machine.py:1:17: error F262: 'ptr' of cute.arch.mbarrier_arrive must be a pointer to i64 in smem, got a pointer to f32 in gmem
#:     1 | trace(lambda x: arch.mbarrier_arrive(x.iterator))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a float as a number of a register
trace(lambda x: arch.mbarrier_wait(arch.alloc_smem(cute.Int64, 1), x[0, 0]))
#: KernelTypeError
#: machine.py:1:17: error F234: 'phase' of cute.arch.mbarrier_wait must be Int32, got this Float32
#:     1 | trace(lambda x: arch.mbarrier_wait(arch.alloc_smem(cute.Int64, 1), x[0, 0]))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: convert it
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)
