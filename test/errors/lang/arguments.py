"""Errors of arguments, launches, arrays, generics and decorators."""

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

# ===== a symbol of 16 bits
cute.sym_int(width=16)
#: UsageError
#: SymInt: width must be 32 or 64, got 16

# ===== a dimension that a tensor has not
cute.from_dlpack(X).mark_layout_dynamic(leading_dim=5)
#: KernelTypeError
#: error F125: mark_layout_dynamic: leading_dim=5 is out of range for shape (8, 8)

# ===== an element type that there is not
cute.runtime.make_fake_compact_tensor("float33", (4,))
#: KernelTypeError
#: error F123: dtype: 'float33' is not an element type

# ===== an array that is none
cute.from_dlpack([1, 2, 3])
#: KernelTypeError
#: error F122: expected an array (torch, cupy, numpy, or anything with DLPack or the CUDA array interface), got list; numpy.asarray(…, dtype=…) makes one

# ===== a fake tensor of text
cute.runtime.make_fake_tensor(Float32, ("n",), stride=(1,))
#: KernelTypeError
#: error F125: extents of a fake tensor must be integers or symbols (cute.sym_int()), got 'n'

# ===== a fake tensor of too few strides
cute.runtime.make_fake_tensor(Float32, (4, 4), stride=(1,))
#: KernelTypeError
#: error F125: make_fake_tensor: shape has 2 extents but stride has 1

# ===== a stride order that names a dimension twice
cute.runtime.make_fake_compact_tensor(Float32, (4, 4), stride_order=(0, 0))
#: KernelTypeError
#: error F125: stride_order=(0, 0) must name each of the 2 dimensions once

# ===== a pointer to shared memory that is passed
cute.runtime.make_ptr(Float32, 0, "smem")
#: KernelTypeError
#: error F125: make_ptr: a pointer argument must point to global memory, got smem

# ===== a number of another type than the annotation
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    call(lambda x: None, x).launch(grid=n, block=1)


cute.compile(run, X, cute.Float32)
#: KernelTypeError
#: arguments.py:6:1: error F123: argument 'n' is annotated Int32 but compiled as Float32
#:     6 | cute.compile(run, X, cute.Float32)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

# ===== an address without a type of elements
@cute.jit
def run(p: cute.Pointer):
    pass


cute.compile(run, 4096)
#: KernelTypeError
#: arguments.py:6:1: error F128: argument 'p' is an address without an element type
#:     6 | cute.compile(run, 4096)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^
#: hint: annotate it cute.Pointer[cute.Float32], or pass cute.runtime.make_ptr(dtype, address)

# ===== a number for a tensor
@cute.jit
def run(x: cute.Tensor[Float32]):
    call(lambda x: None, x).launch(grid=1, block=1)


run(5)
#: KernelTypeError
#: arguments.py:6:1: error F122: argument 'x' must be an array for Tensor[Float32], got int 5
#:     6 | run(5)
#:       | ^^^^^^

# ===== an extent that the annotation says otherwise
@cute.jit
def run(x: cute.Tensor[Float32, 4, 8]):
    call(lambda x: None, x).launch(grid=1, block=1)


run(X)
#: KernelTypeError
#: arguments.py:6:1: error F129: argument 'x', mode 0: the extent must be 4, got 8
#:     6 | run(X)
#:       | ^^^^^^

# ===== an annotation that says no whole layout
@cute.jit
def run(x: cute.Tensor[Float32]):
    call(lambda x: None, x).launch(grid=1, block=1)


cute.compile(run)
#: KernelTypeError
#: arguments.py:6:1: error F116: 'run': missing a required argument: 'x'
#:     6 | cute.compile(run)
#:       | ^^^^^^^^^^^^^^^^^
#: hint: pass an array, or annotate the parameter with an element type and a layout

# ===== layouts and extents in one annotation
cute.Tensor[Float32, "(4,8):(8,1)", 4]
#: KernelTypeError
#: error F124: Tensor[…] takes either a layout or extents, got (Float32, '(4,8):(8,1)', 4)

# ===== an annotation that is called
cute.Tensor[Float32](4)
#: TypeError
#: Tensor[Float32] is an annotation and cannot be called

# ===== a constant annotation that is called
cute.Constexpr[int](4)
#: TypeError
#: Constexpr[int] is an annotation and cannot be called

# ===== a generic parameter that is no name
@cute.generic("1")
@cute.kernel
def k(x: cute.Tensor):
    pass
#: UsageError
#: generic: parameter names must be identifiers, got '1'

# ===== generic below the decorator
@cute.kernel
@cute.generic("N")
def k(x: cute.Tensor):
    pass
#: UsageError
#: @cute.generic must be placed above @cute.kernel or @cute.jit

# ===== an argument that an inlined host function has not
@cute.jit
def inner(x: cute.Tensor, scale: cute.Int32):
    pass


@cute.jit
def run(x: cute.Tensor):
    inner(x, scal=3)


run(X)
#: KernelTypeError
#: arguments.py:8:5: error F116: 'inner': there is no parameter 'scal'
#:     8 |     inner(x, scal=3)
#:       |     ^^^^^^^^^^^^^^^^
#: hint: did you mean 'scale'?
#: called from arguments.py:11:1  run(X)

# ===== an option that launch has not
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1, blck=3)


run(X)
#: KernelTypeError
#: arguments.py:3:5: error F115: launch() has no argument 'blck'
#:     3 |     call(lambda x: None, x).launch(grid=1, block=1, blck=3)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: did you mean 'block'?
#: called from arguments.py:6:1  run(X)

# ===== an option that launch has not, outside of a host function
call(lambda x: None, X).launch(grid=1, block=1, blck=3)
#: KernelTypeError
#: arguments.py:1:1: error F115: launch() has no argument 'blck'
#:     1 | call(lambda x: None, X).launch(grid=1, block=1, blck=3)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: did you mean 'block'?

# ===== a block of too many threads
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=(64, 32))


run(X)
#: KernelTypeError
#: arguments.py:3:5: error F115: the blocks have 2048 threads; at most 1024 are allowed
#:     3 |     call(lambda x: None, x).launch(grid=1, block=(64, 32))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: launch more blocks of fewer threads
#: called from arguments.py:6:1  run(X)

# ===== a block of too many threads, outside of a host function
call(lambda x: None, X).launch(grid=1, block=1025)
#: KernelTypeError
#: arguments.py:1:1: error F115: the blocks have 1025 threads; at most 1024 are allowed
#:     1 | call(lambda x: None, X).launch(grid=1, block=1025)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: launch more blocks of fewer threads

# ===== a block of too many threads along z
call(lambda x: None, X).launch(grid=1, block=(1, 4, 128))
#: KernelTypeError
#: arguments.py:1:1: error F115: the blocks have 128 threads along z; at most 64 are allowed
#:     1 | call(lambda x: None, X).launch(grid=1, block=(1, 4, 128))
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: put the longest side of the block along x

# ===== sizes of a launch without their names
call(lambda x: None, X).launch(1, 32)
#: KernelTypeError
#: arguments.py:1:1: error F115: launch() takes no positional arguments, got 1, 32
#:     1 | call(lambda x: None, X).launch(1, 32)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: name them: launch(grid=…, block=…)

# ===== a cluster of run time
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    call(lambda x: None, x).launch(grid=1, block=1, cluster=n)


run(X, 2)
#: KernelTypeError
#: arguments.py:3:5: error F115: cluster must be known at compile time
#:     3 |     call(lambda x: None, x).launch(grid=1, block=1, cluster=n)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:6:1  run(X, 2)

# ===== a fallback cluster that does not divide the cluster
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=4, block=1, cluster=(4, 1, 1), fallback_cluster=(3, 1, 1))


run(X)
#: KernelTypeError
#: arguments.py:3:5: error F115: launch: fallback_cluster is (3, 1, 1); it must divide cluster (4, 1, 1) along x and y, and equal z
#:     3 |     call(lambda x: None, x).launch(grid=4, block=1, cluster=(4, 1, 1), fallback_cluster=(3, 1, 1))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:6:1  run(X)

# ===== clusters of two sizes, one of which is 0
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=4, block=1, cluster=(4, 1, 1), fallback_cluster=(0, 1, 1))


run(X)
#: KernelTypeError
#: arguments.py:3:5: error F115: launch: fallback_cluster is (0, 1, 1); it must divide cluster (4, 1, 1) along x and y, and equal z
#:     3 |     call(lambda x: None, x).launch(grid=4, block=1, cluster=(4, 1, 1), fallback_cluster=(0, 1, 1))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:6:1  run(X)

# ===== a fallback cluster for Hopper
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=4, block=1, cluster=(4, 1, 1), fallback_cluster=(2, 1, 1))


run(X)
#: KernelTypeError
#: arguments.py:3:5: error F280: launch with fallback_cluster needs sm_100 or later, but the target is sm_90a
#:     3 |     call(lambda x: None, x).launch(grid=4, block=1, cluster=(4, 1, 1), fallback_cluster=(2, 1, 1))
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:6:1  run(X)

# ===== a launch of no grid
call(lambda x: None, X).launch(block=1)
#: KernelTypeError
#: arguments.py:1:1: error F115: the launch has no grid
#:     1 | call(lambda x: None, X).launch(block=1)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: grid=128, or grid=(x, y, z)

# ===== a grid of four entries
call(lambda x: None, X).launch(grid=(1, 1, 1, 1), block=1)
#: KernelTypeError
#: arguments.py:1:1: error F115: grid takes one to three integers, got 4
#:     1 | call(lambda x: None, X).launch(grid=(1, 1, 1, 1), block=1)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

# ===== a kernel that returns
@cute.kernel
def k(x: cute.Tensor):
    return 5


k(X).launch(grid=1, block=1)
#: CompileError
#: arguments.py:6:1: error F117: the kernel 'k' returns 5; a kernel cannot return a value
#:     6 | k(X).launch(grid=1, block=1)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

# ===== elements of another type than the kernel says
@cute.kernel
def k(x: cute.Tensor[cute.Float16]):
    pass


@cute.jit
def run(x: cute.Tensor):
    k(x).launch(grid=1, block=1)


run(X)
#: KernelTypeError
#: arguments.py:8:5: error F129: argument 'x' needs elements of Float16, got Float32
#:     8 |     k(x).launch(grid=1, block=1)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:11:1  run(X)

# ===== a tensor that a host function returns
@cute.jit
def run(x: cute.Tensor):
    return x


run(X)
#: CompileError
#: arguments.py:6:1: error F117: a host function can return numbers and compile-time values, not Tensor
#:     6 | run(X)
#:       | ^^^^^^

# ===== an argument that is missing
@cute.jit
def run(x: cute.Tensor, n):
    pass


cute.compile(run, X)
#: KernelTypeError
#: arguments.py:6:1: error F116: 'run': missing a required argument: 'n'
#:     6 | cute.compile(run, X)
#:       | ^^^^^^^^^^^^^^^^^^^^

# ===== an array that is missing
@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    pass


cute.compile(run, X)
#: KernelTypeError
#: arguments.py:6:1: error F116: 'run': missing a required argument: 'y'
#:     6 | cute.compile(run, X)
#:       | ^^^^^^^^^^^^^^^^^^^^
#: hint: pass an array, or annotate the parameter with an element type and a layout

# ===== an argument that is misspelt
@cute.jit
def run(x: cute.Tensor, scale: cute.Int32):
    pass


run(X, scael=3)
#: KernelTypeError
#: arguments.py:6:1: error F116: 'run': there is no parameter 'scael'
#:     6 | run(X, scael=3)
#:       | ^^^^^^^^^^^^^^^
#: hint: did you mean 'scale'?

# ===== an option of compile that is none
cute.compile["fast"]
#: KernelTypeError
#: error F103: cute.compile[…] takes options such as cute.OptLevel(3), got 'fast'

# ===== an optimisation level that is none
@cute.jit
def run(x: cute.Tensor):
    pass


cute.compile[cute.OptLevel(7)](run, X)
#: CompileError
#: arguments.py:6:1: error F103: OptLevel must be 0, 1, 2 or 3, got 7
#:     6 | cute.compile[cute.OptLevel(7)](run, X)
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

# ===== a decorated number
cute.kernel(5)
#: KernelTypeError
#: error F103: @cute.kernel decorates a function, got int; pass options by keyword

# ===== an option of the decorator that is none
@cute.kernel(threads=5)
def k():
    pass
#: KernelTypeError
#: error F103: @cute.kernel has no option 'threads'; options: max_threads, min_blocks, max_regs, cluster, name

# ===== a stage that there is not
@cute.jit
def run(x: cute.Tensor):
    pass


cute.compile(run, X).mlir("ptx2")
#: UsageError
#: mlir: unknown stage 'ptx2'; stages: trace, fold, expand, arch, base, llvm, input, cute-fold-static, cute-expand-ops, convert-cute-algo-to-arch, cute-check-target, cute-to-base, cute-strong-atomics, cute-wgmma-registers, base-prepare, one-shot-convert-to-llvm, attach-nvvm-target

# ===== a promise in a kernel
trace(lambda x: cute.promise(x, "(8,8):(8,1)"))
#: KernelTypeError
#: arguments.py:1:17: error F133: cute.promise can only be used in a host function
#:     1 | trace(lambda x: cute.promise(x, "(8,8):(8,1)"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a promise about a number
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    cute.promise(n, "(8,8):(8,1)")


run(X, 3)
#: KernelTypeError
#: arguments.py:3:5: error F133: cute.promise needs a tensor in memory, got Int32(?)
#:     3 |     cute.promise(n, "(8,8):(8,1)")
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:6:1  run(X, 3)

# ===== a promise that is no layout
@cute.jit
def run(x: cute.Tensor):
    cute.promise(x, "(8,8):(8,")


run(X)
#: LayoutError
#: arguments.py:3:5: error F240: cute.promise: '(8,8):(8,' is not a layout: expected an integer, '?', a basis element or '(', got the end at offset 9
#:     3 |     cute.promise(x, "(8,8):(8,")
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:6:1  run(X)

# ===== a promise of other modes
@cute.jit
def run(x: cute.Tensor):
    cute.promise(x, "8:1")


run(X)
#: KernelTypeError
#: arguments.py:3:5: error F133: the promised layout '8:1' is incompatible with the tensor's layout (?,?):(?{div=4},1); it must have the same modes and agree with every known leaf
#:     3 |     cute.promise(x, "8:1")
#:       |     ^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:6:1  run(X)

# ===== a promise without a fallback
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, cute.promise(x, "(?,?):(?,1)", 16)).launch(grid=1, block=1)


run(X)
#: KernelTypeError
#: arguments.py:3:26: error F133: the promised layout '(?,?):(?,1)' is incompatible with the tensor's layout (?,?):(?{div=4},1); it must have the same modes and agree with every known leaf
#:     3 |     call(lambda x: None, cute.promise(x, "(?,?):(?,1)", 16)).launch(grid=1, block=1)
#:       |                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from arguments.py:6:1  run(X)

# ===== a constant that a compiled kind was not made for
@cute.jit
def run(x: cute.Tensor, n: cute.Constexpr[int]):
    call(lambda x: None, x).launch(grid=n, block=1)


cute.compile(run, X, 3)(X, 4)
#: ShapeError
#: argument n was compiled as the constant 3, got 4
#: called from arguments.py:6:1

# ===== an argument that a compiled kind has not
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    call(lambda x: None, x).launch(grid=n, block=1)


cute.compile(run, X, 3)(X, m=4)
#: LaunchError
#: run() has no parameter 'm'
#: called from arguments.py:6:1

# ===== text for a number
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    call(lambda x: None, x).launch(grid=n, block=1)


cute.compile(run, X, 3)(X, "many")
#: DtypeError
#: argument n is Int32 and needs a number, got str
#: called from arguments.py:6:1

# ===== an array for a number
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    call(lambda x: None, x).launch(grid=n, block=1)


cute.compile(run, X, 3)(X, np.zeros(3))
#: DtypeError
#: argument n is Int32 and needs one number, got ndarray with several
#: called from arguments.py:6:1

# ===== a float for an integer
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    call(lambda x: None, x).launch(grid=n, block=1)


cute.compile(run, X, 3)(X, 2.5)
#: DtypeError
#: argument n is Int32 and needs an integer, got 2.5
#: called from arguments.py:6:1

# ===== a number that does not fit
@cute.jit
def run(x: cute.Tensor, n: cute.Uint8):
    call(lambda x: None, x).launch(grid=1, block=1)


cute.compile(run, X, 3)(X, 300)
#: RangeError
#: argument n: 300 is out of range for Uint8
#: called from arguments.py:6:1

# ===== a tuple of other parts
@cute.jit
def run(pair):
    call(lambda x: None, pair[0]).launch(grid=1, block=1)


cute.compile(run, (X, 1))((X, 1, 2))
#: ShapeError
#: argument pair must be tuple(tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>, Int32), got tuple of 3
#: called from arguments.py:6:1

# ===== too few arguments
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    call(lambda x: None, x).launch(grid=n, block=1)


cute.compile(run, X, 3)(X)
#: LaunchError
#: run() needs 2 arguments (x, n), got 1
#: called from arguments.py:6:1

# ===== another shape than the compiled one
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1)


cute.compile(run, cute.from_dlpack(X))(np.zeros((8, 4), np.float32))
#: ShapeError
#: argument x, mode 1: expected extent 8, got 4 (tensor<ptr<f32, gmem, align<16>> o (8,8):(8,1)>); it was compiled for shape (8, 8), but this array has shape (8, 4)
#: hint: compile for any shape with from_dlpack(x).mark_layout_dynamic()
#: called from arguments.py:6:1

# ===== another element type than the compiled one
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1)


cute.compile(run, X)(np.zeros((8, 8), np.float16))
#: DtypeError
#: argument x expects elements of f32, got f16 (tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>)
#: called from arguments.py:6:1

# ===== another rank than the compiled one
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1)


cute.compile(run, X)(np.zeros(8, np.float32))
#: ShapeError
#: argument x expects an array of rank 2, got shape (8) (tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>)
#: called from arguments.py:6:1

# ===== another stride than the compiled one
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1)


cute.compile(run, X)(np.zeros((8, 16), np.float32)[:, ::2])
#: StrideError
#: argument x, mode 1: expected stride 1, got 2 elements (tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)>)
#: called from arguments.py:6:1

# ===== an array that is not aligned as promised
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1)


flat = np.zeros(80, np.float32)
start = next(i for i in range(8) if flat[i:].ctypes.data % 32 == 0)
cute.compile(run, cute.from_dlpack(flat[start : start + 64], assumed_align=32))(flat[start + 1 : start + 65])
#: AlignmentError
#: argument x: expected an address that is a multiple of 32 bytes, got 0x…, which is 4 bytes past a multiple (tensor<ptr<f32, gmem, align<32>> o (64):(1)>)
#: called from arguments.py:8:1

# ===== an extent that breaks the promised divisor
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1)


cute.compile(run, cute.from_dlpack(X).mark_compact_shape_dynamic(mode=0, divisibility=8))(np.zeros((6, 8), np.float32))
#: DivisibilityError
#: argument x, mode 0: expected an extent that is a multiple of 8, got 6 (tensor<ptr<f32, gmem, align<16>> o (?{div=8},8):(8,1)>)
#: called from arguments.py:6:1

# ===== a list for a tensor
@cute.jit
def run(x: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1)


run([1.0, 2.0])
#: KernelTypeError
#: arguments.py:6:1: error F122: argument 'x' must be an array, got list [1.0, 2.0]
#:     6 | run([1.0, 2.0])
#:       | ^^^^^^^^^^^^^^^
#: hint: convert it with numpy.asarray(…, dtype=…)

# ===== two extents of one symbol
n = cute.sym_int()


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    call(lambda x: None, x).launch(grid=1, block=1)


fake = cute.runtime.make_fake_compact_tensor(Float32, (n,))
cute.compile(run, fake, fake)(np.zeros(3, np.float32), np.zeros(4, np.float32))
#: ShapeError
#: '?{div=1}' is 3 in argument x, mode 0, and 4 in argument y, mode 0
#: called from arguments.py:10:1

# ===== a device that there is not
call(lambda x: None, X).launch(grid=1, block=1, device="tpu")
#: OptionError
#: device: expected 'gpu', 'cuda:N', a number or 'cpu', got 'tpu'
#: called from arguments.py:1:1

# ===== an array that cannot be written
frozen = np.zeros(4, np.float32)
frozen.flags.writeable = False


@cute.kernel
def k(x: cute.Tensor):
    x[0] = 1


k(frozen).launch(grid=1, block=1)
#: InterpError
#: arguments.py:7:5: error: store to argument 0 "x" at byte offset 0, element (0), which is read-only
#:     x[0] = 1
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0)
#:   address 0x…

# ===== an annotation that says no whole layout, compiled without arguments
@cute.jit
def run(x: cute.Tensor["f32", "m"]):
    call(lambda x: None, x).launch(grid=1, block=1)


cute.compile(run)
#: KernelTypeError
#: arguments.py:6:1: error F116: 'run': missing a required argument: 'x'
#:     6 | cute.compile(run)
#:       | ^^^^^^^^^^^^^^^^^
#: hint: pass an array, or annotate the parameter with an element type and a layout

# ===== a promise on one side
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    y = cute.promise(x, "(?,?):(?{div=8},1)")
    if n > 0:
        y = x
    call(lambda x: None, y).launch(grid=1, block=1)


run(X, 1)
#: MergeError
#: arguments.py:6:26: error F205: 'y' differs after this branch: it is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)> or a tensor with a promise
#:     6 |     call(lambda x: None, y).launch(grid=1, block=1)
#:       |                          ^
#: arguments.py:4:8: note: the branch
#:     4 |     if n > 0:
#:       |        ^^^^^
#: called from arguments.py:9:1  run(X, 1)
