"""Errors of numbers, vectors, tensors and layouts."""

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

# ===== an abstract type of numbers
cute.Numeric(3)
#: TypeError
#: Numeric is abstract: use one of its subclasses

# ===== a float where Python needs an integer
[1, 2, 3][Float32(1.0)]
#: TypeError
#: Float32(1.0) is not an integer

# ===== an integer of more than 64 bits
trace(lambda x: cute.where(x[0, 0] > 0, 1 << 70, 2))
#: KernelTypeError
#: values.py:1:17: error F230: 1180591620717411303424 does not fit in 64 bits
#:     1 | trace(lambda x: cute.where(x[0, 0] > 0, 1 << 70, 2))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a division by 0
trace(lambda x: arch.thread_idx().x // 0)
#: KernelTypeError
#: values.py:1:17: error F232: division by zero: this Int32 / 0
#:     1 | trace(lambda x: arch.thread_idx().x // 0)
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a quick divisor of a long integer
trace(lambda x: cute.FastDivmodDivisor(3).__rdivmod__(cute.Int64(arch.thread_idx().x)))
#: KernelTypeError
#: values.py:1:17: error F239: the dividend must be Int32 or Uint32, got this Int64
#:     1 | trace(lambda x: cute.FastDivmodDivisor(3).__rdivmod__(cute.Int64(arch.thread_idx().x)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a quick division of a negative number
trace(lambda x: divmod(Int32(-3), cute.FastDivmodDivisor(arch.thread_idx().x)))
#: KernelTypeError
#: values.py:1:17: error F239: the dividend must not be negative, got -3
#:     1 | trace(lambda x: divmod(Int32(-3), cute.FastDivmodDivisor(arch.thread_idx().x)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a vector of no element
trace(lambda x: cute.arange(3, 3))
#: LayoutError
#: values.py:1:17: error F243: arange: a vector cannot be empty, got range(3, 3)
#:     1 | trace(lambda x: cute.arange(3, 3))
#:       |                 ^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a condition that is no truth
trace(lambda x: cute.where(arch.thread_idx().x, 1, 2))
#: KernelTypeError
#: values.py:1:17: error F151: where: the condition must be Boolean, got this Int32
#:     1 | trace(lambda x: cute.where(arch.thread_idx().x, 1, 2))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: compare it: x != 0
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== vectors of two types in a row
trace(lambda x: cute.concat(cute.full((2,), 1, Int32), cute.full((2,), 1.0, Float32)))
#: KernelTypeError
#: values.py:1:17: error F203: concat: the vectors must have one element type, got Int32 and Float32
#:     1 | trace(lambda x: cute.concat(cute.full((2,), 1, Int32), cute.full((2,), 1.0, Float32)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: convert with .to(…)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== truths under bitcast
trace(lambda x: (cute.full((2,), 1, Int32) > 0).bitcast(cute.Int8))
#: KernelTypeError
#: values.py:1:17: error F236: Boolean elements cannot be reinterpreted as Int8
#:     1 | trace(lambda x: (cute.full((2,), 1, Int32) > 0).bitcast(cute.Int8))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a bitcast that does not fit
trace(lambda x: cute.full((3,), 1, Int32).bitcast(cute.Int64))
#: KernelTypeError
#: values.py:1:17: error F243: the first mode of (3) is not a whole number of Int64 elements (32 to 64 bits)
#:     1 | trace(lambda x: cute.full((3,), 1, Int32).bitcast(cute.Int64))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a reshape of other elements
trace(lambda x: cute.full((4,), 1, Int32).reshape((3,)))
#: LayoutError
#: values.py:1:17: error F243: reshape: (3) has 3 elements, but the vector of shape (4) has 4
#:     1 | trace(lambda x: cute.full((4,), 1, Int32).reshape((3,)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a shape that a vector does not spread to
trace(lambda x: cute.full((4,), 1, Int32).broadcast_to((3,)))
#: LayoutError
#: values.py:1:17: error F243: vectors of shapes (4) and (3) cannot be broadcast: the extents of a mode must be equal, or one of them 1
#:     1 | trace(lambda x: cute.full((4,), 1, Int32).broadcast_to((3,)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an element of a vector that is written
def f(x):
    v = cute.full((4,), 1, Int32)
    v[0] = 2


trace(f)
#: KernelTypeError
#: values.py:3:5: error F237: a vector is a value, and its elements cannot be assigned
#:     3 |     v[0] = 2
#:       |     ^^^^
#: hint: assign to the register tensor that it came from, or to one created with cute.make_rmem_tensor
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a vector of two types
trace(lambda x: cute.full((4,), 1, Int32).reduce(lambda a, b: a, [0], reduction_profile=(None,)))
#: KernelTypeError
#: values.py:1:17: error F230: [0] is not a number
#:     1 | trace(lambda x: cute.full((4,), 1, Int32).reduce(lambda a, b: a, [0], reduction_profile=(None,)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a shape of a vector that is known when the kernel runs
trace(lambda x: cute.full((x.shape[0],), 1, Int32))
#: LayoutError
#: values.py:1:17: error F240: a vector needs a static shape, but an extent is known only at run time
#:     1 | trace(lambda x: cute.full((x.shape[0],), 1, Int32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== vectors that do not meet
trace(lambda x: cute.full((4,), 1, Int32) + cute.full((3,), 1, Int32))
#: LayoutError
#: values.py:1:17: error F243: vectors of shapes (4) and (3) cannot be broadcast: the extents of a mode must be equal, or one of them 1
#:     1 | trace(lambda x: cute.full((4,), 1, Int32) + cute.full((3,), 1, Int32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a vector that is too long
trace(lambda x: cute.full((4096,), 1, Int32))
#: LimitError
#: values.py:1:17: error F171: a vector can have at most 1024 elements, but (4096) has 4096
#:     1 | trace(lambda x: cute.full((4096,), 1, Int32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a load of coordinates
trace(lambda x: cute.make_identity_tensor((4,)).load())
#: KernelTypeError
#: values.py:1:17: error F260: a coordinate tensor has no memory and cannot be loaded; index it to get integers
#:     1 | trace(lambda x: cute.make_identity_tensor((4,)).load())
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor that stores a number
trace(lambda x: cute.make_rmem_tensor(4, Int32).store(5))
#: KernelTypeError
#: values.py:1:17: error F235: store needs a vector, got 5
#:     1 | trace(lambda x: cute.make_rmem_tensor(4, Int32).store(5))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use t.fill(x) to set all elements to a number
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a vector that coordinates store
trace(lambda x: cute.make_identity_tensor((4,)).store(cute.full((4,), 1, Int32)))
#: KernelTypeError
#: values.py:1:17: error F260: a coordinate tensor has no memory and cannot be written
#:     1 | trace(lambda x: cute.make_identity_tensor((4,)).store(cute.full((4,), 1, Int32)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a vector of another type that is stored
trace(lambda x: cute.make_rmem_tensor(4, Int32).store(cute.full((4,), 1.0, Float32)))
#: KernelTypeError
#: values.py:1:17: error F235: a vector of Float32 cannot be stored in a tensor of Int32
#:     1 | trace(lambda x: cute.make_rmem_tensor(4, Int32).store(cute.full((4,), 1.0, Float32)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: convert it with v.to(cute.Int32)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a vector of another shape that is stored
trace(lambda x: cute.make_rmem_tensor(4, Int32).store(cute.full((3,), 1, Int32)))
#: LayoutError
#: values.py:1:17: error F243: a vector of shape (3) cannot be stored in a tensor of shape 4
#:     1 | trace(lambda x: cute.make_rmem_tensor(4, Int32).store(cute.full((3,), 1, Int32)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use v.reshape(…) for a different shape of equal size
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== the width of coordinates
trace(lambda x: cute.make_identity_tensor((4,)).width)
#: KernelTypeError
#: values.py:1:17: error F260: a coordinate tensor has no element width
#:     1 | trace(lambda x: cute.make_identity_tensor((4,)).width)
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== the length of a matrix
trace(lambda x: len(x))
#: StaticError
#: values.py:1:17: error F146: tensor 'x' of rank 2 has no length
#:     1 | trace(lambda x: len(x))
#:       |                 ^^^^^^
#: hint: use cute.size
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor of text
trace(lambda x: cute.make_tensor("here", cute.make_layout(4)))
#: KernelTypeError
#: values.py:1:17: error F262: make_tensor needs a pointer or an int tuple, got 'here'
#:     1 | trace(lambda x: cute.make_tensor("here", cute.make_layout(4)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor whose pointer and layout do not fit
trace(lambda x: cute.make_tensor(x.iterator, cute.make_identity_layout((4, 4))))
#: LayoutError
#: values.py:1:17: error F240: make_tensor(ptr<f32, gmem, align<16>>, (4,4):(1@0,1@1)): expected integer strides in a memref (basis strides make a cute.coord_tensor), got (4,4):(1@0,1@1)
#:     1 | trace(lambda x: cute.make_tensor(x.iterator, cute.make_identity_layout((4, 4))))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== coordinates that are recast
trace(lambda x: cute.recast_tensor(cute.make_identity_tensor((4,)), Int32))
#: KernelTypeError
#: values.py:1:17: error F260: recast_tensor: a coordinate tensor has no memory and cannot be recast
#:     1 | trace(lambda x: cute.recast_tensor(cute.make_identity_tensor((4,)), Int32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== elements that are recast to a type that does not fit
trace(lambda x: cute.recast_tensor(cute.make_rmem_tensor(3, cute.Float16), Float32))
#: LayoutError
#: values.py:1:17: error F240: recast_tensor(tensor<ptr<f16, rmem, align<8>> o 3:1>, Float32): expected modes divisible into elements of f32 (32 bits), each 2 elements of the tensor, got 3:1 in 3:1
#:     1 | trace(lambda x: cute.recast_tensor(cute.make_rmem_tensor(3, cute.Float16), Float32))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== registers like coordinates
trace(lambda x: cute.make_rmem_tensor_like(cute.make_identity_tensor((4,))))
#: KernelTypeError
#: values.py:1:17: error F260: make_rmem_tensor_like: a coordinate tensor has no element type
#:     1 | trace(lambda x: cute.make_rmem_tensor_like(cute.make_identity_tensor((4,))))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: pass dtype=
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== registers like a layout
trace(lambda x: cute.make_rmem_tensor_like(cute.make_layout(4)))
#: KernelTypeError
#: values.py:1:17: error F260: make_rmem_tensor_like: a layout has no element type
#:     1 | trace(lambda x: cute.make_rmem_tensor_like(cute.make_layout(4)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: pass dtype=
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== coordinates that are cleared
trace(lambda x: cute.clear(cute.make_identity_tensor((4,))))
#: KernelTypeError
#: values.py:1:17: error F260: a coordinate tensor has no memory and cannot be written
#:     1 | trace(lambda x: cute.clear(cute.make_identity_tensor((4,))))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== coordinates that are written
def f(x):
    c = cute.make_identity_tensor((4,))
    c[0] = 1


trace(f)
#: KernelTypeError
#: values.py:3:5: error F260: a coordinate tensor has no memory and cannot be written
#:     3 |     c[0] = 1
#:       |     ^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== half a byte that is written
def f(x):
    t = cute.make_tensor(arch.alloc_smem(cute.Int4, 16), cute.make_layout(16))
    t[3] = 1


trace(f)
#: KernelTypeError
#: values.py:3:5: error F264: a single element of Int4 is part of a byte and cannot be written alone
#:     3 |     t[3] = 1
#:       |     ^^^^
#: hint: use t.load() and t.store(v) for vectors, or cute.recast_tensor(t, cute.Uint8) for the bytes
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a part of a swizzled layout
trace(lambda x: cute.make_tensor(arch.alloc_smem(Float32, 64), cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, cute.make_layout((8, 8))))[0:4, 0])
#: LayoutError
#: values.py:1:17: error F240: 'a:b' is not supported on a swizzled or composed layout, got S<2,0,3> o 0 o (8,8):(1,8)
#:     1 | trace(lambda x: cute.make_tensor(arch.alloc_smem(Float32, 64), cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, cute.make_layout((8, 8))))[0:4, 0])
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use cute.local_tile for a tile
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tree of another profile
cute.product_like(((2, 3), 4), (0, (0, 0)))
#: LayoutError
#: error F241: product_like: 4 does not have the profile (0,0)

# ===== trees of two profiles in order
cute.lex_less((1, 2), (1, (2, 3)))
#: LayoutError
#: error F241: lex_less needs trees of the same profile, got (1,2) and (1,(2,3))

# ===== a plain layout that is wanted
cute.max_alignment(cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, cute.make_layout((8, 8))))
#: LayoutError
#: error F240: max_alignment needs a plain layout, got S<2,0,3> o 0 o (8,8):(1,8)

# ===== a static layout of values that is wanted
trace(lambda x: cute.make_layout_tv(x.layout, (2, 2)))
#: LayoutError
#: values.py:1:17: error F240: make_layout_tv needs a static layout, got (?,?):(?{div=4},1)
#:     1 | trace(lambda x: cute.make_layout_tv(x.layout, (2, 2)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a composed layout with a number of run time
trace(lambda x: cute.layout("S<2,0,3> o 0 o (8,?):(8,1)", x.shape[0]))
#: LayoutError
#: values.py:1:17: error F240: layout: a composed layout must be static, got 'S<2,0,3> o 0 o (8,?):(8,1)'
#:     1 | trace(lambda x: cute.layout("S<2,0,3> o 0 o (8,?):(8,1)", x.shape[0]))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use make_composed_layout
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a stride that does not fit the shape
trace(lambda x: cute.make_layout((x.shape[0], 4), stride=(1, (2, 3))))
#: LayoutError
#: values.py:1:17: error F240: make_layout((?,4), (1,(2,3))): expected congruent shape and stride, got (?,4) and (1,(2,3))
#:     1 | trace(lambda x: cute.make_layout((x.shape[0], 4), stride=(1, (2, 3))))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a function as the outer part of a layout
trace(lambda x: cute.make_composed_layout(lambda c: c, 0, lambda c: c))
#: LayoutError
#: values.py:1:17: error F240: make_composed_layout: outer must be a layout, got <function factory.<locals>.<lambda>.<locals>.<lambda> at 0x…>
#:     1 | trace(lambda x: cute.make_composed_layout(lambda c: c, 0, lambda c: c))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a static layout that is wanted
trace(lambda x: cute.make_tiled_copy(cute.make_copy_atom(nvgpu.CopyUniversalOp(), Float32), x.layout, (8, 8)))
#: KernelTypeError
#: values.py:1:17: error F251: cute.make_tiled_copy: layout_tv must be a static layout, got (?,?):(?{div=4},1)
#:     1 | trace(lambda x: cute.make_tiled_copy(cute.make_copy_atom(nvgpu.CopyUniversalOp(), Float32), x.layout, (8, 8)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a range of four arguments
trace(lambda x: [i for i in cute.range(1, 2, 3, 4)])
#: TypeError
#: values.py:1:29: error F162: TypeError: range takes 1 to 3 arguments, got 4
#:     1 | trace(lambda x: [i for i in cute.range(1, 2, 3, 4)])
#:       |                             ^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a reduction in an order that there is not
trace(lambda x: cute.full((4,), 1, Int32).reduce("add", order="random"))
#: KernelTypeError
#: values.py:1:17: error F238: reduce: order must be 'tree' or 'serial', got 'random'
#:     1 | trace(lambda x: cute.full((4,), 1, Int32).reduce("add", order="random"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a reduction by what is none
trace(lambda x: cute.full((4,), 1, Int32).reduce("mean"))
#: KernelTypeError
#: values.py:1:17: error F238: reduce: op must be one of ReductionOp.ADD, ReductionOp.MUL, ReductionOp.MAX, ReductionOp.MIN, ReductionOp.AND, ReductionOp.OR, ReductionOp.XOR, or a function of two numbers, got 'mean'
#:     1 | trace(lambda x: cute.full((4,), 1, Int32).reduce("mean"))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a profile of a reduction that does not fit
trace(lambda x: cute.full((4,), 1, Int32).reduce("add", reduction_profile=(None, 1)))
#: LayoutError
#: values.py:1:17: error F241: reduce: the reduction profile (_,1) does not match the shape (4)
#:     1 | trace(lambda x: cute.full((4,), 1, Int32).reduce("add", reduction_profile=(None, 1)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== max with a key
trace(lambda x: max(x[0, 0], x[0, 1], key=lambda v: -v))
#: StaticError
#: values.py:1:17: error F157: 'max' with key= needs values known at compile time
#:     1 | trace(lambda x: max(x[0, 0], x[0, 1], key=lambda v: -v))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== elements of a vector that a function makes of two types
turns = iter([Int32(1), Float32(1.0)])
trace(lambda x: cute.full((2, 2), 1, Int32).reduce(lambda a, b: next(turns), reduction_profile=(None, 1)))
#: KernelTypeError
#: values.py:2:17: error F203: the elements of a vector must have one type, got Int32 and Float32
#:     2 | trace(lambda x: cute.full((2, 2), 1, Int32).reduce(lambda a, b: next(turns), reduction_profile=(None, 1)))
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: convert with .to(…)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== layouts that are equal only if a tile divides the rows
def f(x):
    n = arch.block_idx().x + 1
    rows = cute.make_layout((n, 4))
    cute.static_assert_equal(cute.logical_divide(rows, (8, None)), rows)

trace(f)
#: LayoutError
#: values.py:4:5: error F247: static_assert_equal: ((8,?),4):((1,8),?) and (?,4):(1,?) are not proved equal: they differ if block_idx().x = 1: the sizes are 32 and 8; the values that block_idx().x can have at run time are not known
#:     4 |     cute.static_assert_equal(cute.logical_divide(rows, (8, None)), rows)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: state what is known of the numbers with cute.assume(n, divby=…, range=…), or compare smaller steps
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a layout compared with another one of static sizes
cute.static_assert_equal(cute.make_layout((4, 8)), cute.make_layout((4, 8), stride=(8, 1)))
#: LayoutError
#: error F247: static_assert_equal: (4,8):(1,4) and (4,8):(8,1) differ: index 1 maps to 1 and to 8

# ===== a comparison of layouts and numbers
cute.static_assert_equal(cute.make_layout(4), 4.0)
#: LayoutError
#: error F247: static_assert_equal needs layouts or tensors, got 4.0

# ===== a text with symbols compared with a layout
cute.static_assert_equal(cute.make_layout(4), "M:1")
#: LayoutError
#: error F247: static_assert_equal: the text 'M:1' has the symbol M, but the other layout is not a text
#: hint: build the layout from numbers, as cute.make_layout((m, n), stride=(1, m))

# ===== conditions of layouts that are no texts
cute.static_assert_equal(cute.make_layout(4), cute.make_layout(4), where=["M % 8 == 0"])
#: LayoutError
#: error F247: static_assert_equal: where= is for layouts given as text
#: hint: use cute.assume for numbers

# ===== a layout in text without its end
cute.static_assert_equal("(M,N):(1,M", "M*N:1")
#: LayoutError
#: error F247: static_assert_equal: '(M,N):(1,M': expected ',' or ')', found the end at offset 10
