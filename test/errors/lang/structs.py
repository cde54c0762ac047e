"""Errors of shared memory and its structures."""

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

# ===== shared memory of a host function
@cute.jit
def run(x: cute.Tensor):
    arch.alloc_smem(Float32, 4)


run(X)
#: KernelTypeError
#: structs.py:3:5: error F260: shared memory can only be allocated in a kernel
#:     3 |     arch.alloc_smem(Float32, 4)
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from structs.py:6:1  run(X)

# ===== half a byte in a structure
@cute.struct
class S:
    a: cute.struct.MemRange[cute.Int4, 3]
#: KernelTypeError
#: error F263: 3 elements of Int4 are not a whole number of bytes

# ===== a range of no type
@cute.struct
class S:
    a: cute.struct.MemRange["f32", 3]
#: KernelTypeError
#: error F263: MemRange takes a type and a number of elements, got MemRange[('f32', 3)]

# ===== a range of fewer than no elements
@cute.struct
class S:
    a: cute.struct.MemRange[Float32, -1]
#: KernelTypeError
#: error F263: MemRange: the number of elements is negative (-1)

# ===== a tensor field without a layout
@cute.struct
class S:
    a: cute.struct.Tensor[Float32]
#: KernelTypeError
#: error F263: Tensor takes a type and a layout, got Tensor[Float32]

# ===== a tensor field of a layout of run time
trace(lambda x: cute.struct.Tensor[Float32, x.layout])
#: KernelTypeError
#: structs.py:1:17: error F263: a tensor field needs a static layout, got (?,?):(?{div=4},1)
#:     1 | trace(lambda x: cute.struct.Tensor[Float32, x.layout])
#:       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an alignment that is no power of two
@cute.struct
class S:
    a: cute.struct.Align[Int32, 3]
#: KernelTypeError
#: error F262: Align: the alignment must be a power of two, got 3

# ===== an alignment of nothing
@cute.struct
class S:
    a: cute.struct.Align[Int32]
#: KernelTypeError
#: error F263: Align takes a field and a number of bytes, got Align[Int32]

# ===== a field of a class of Python
@cute.struct
class S:
    a: int
#: KernelTypeError
#: error F263: a field must be a number type, MemRange[T, n], Tensor[T, layout], Align[field, bytes] or a structure, got <class 'int'>

# ===== a structure without a field
@cute.struct
class S:
    pass
#: KernelTypeError
#: error F263: structure S has no annotated fields

# ===== two views of shared memory
@cute.struct
class S:
    a: cute.struct.MemRange[Float32, 4]
    b: cute.struct.MemRange[Float32, 8]


def f(x):
    s = cute.utils.SmemAllocator().allocate(S)
    v = s.a
    if x[0, 0] > 0:
        v = s.b
    v.data_ptr()


trace(f)
#: MergeError
#: structs.py:12:5: error F205: 'v' differs after this branch: it is MemRange[Float32, 8] at ptr<f32, smem> or MemRange[Float32, 4] at ptr<f32, smem>
#:    12 |     v.data_ptr()
#:       |     ^
#: structs.py:10:8: note: the branch
#:    10 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)
