"""Values that differ after the two paths of a branch, by kind of value."""

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


def ATOM():
    """Return a copy atom for one element."""
    return cute.make_copy_atom(nvgpu.CopyUniversalOp(), Float32)

# ===== layouts of two profiles
def f(x):
    v = cute.make_layout(x.shape[0])
    if x[0, 0] > 0:
        v = cute.make_layout((x.shape[0], 2))
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F204: 'v' differs after this branch: it is the layout (?,2):(1,?) or ?:1
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a layout or None
def f(x):
    v = None
    if x[0, 0] > 0:
        v = cute.make_layout(x.shape[0])
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F208: 'v' differs after this branch: it is the layout ?:1 or None
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a layout or a shape
def f(x):
    v = cute.make_layout(x.shape[0])
    if x[0, 0] > 0:
        v = x.shape
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F204: 'v' differs after this branch: it is a tuple of 2 elements or the layout ?:1
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a number or a tensor
def f(x):
    v = x[0, 0]
    if x[0, 0] > 0:
        v = x
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F205: 'v' differs after this branch: it is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)> or Float32
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a number or another type's number
def f(x):
    v = x[0, 0]
    if x[0, 0] > 0:
        v = Int32(3)
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F203: 'v' differs after this branch: it is Float32 or Int32
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a truth or a number
def f(x):
    v = x[0, 0] > 1
    if x[0, 0] > 0:
        v = 3
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F202: 'v' differs after this branch: it is a Boolean or the number 3
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a number or a truth
def f(x):
    v = arch.thread_idx().x
    if x[0, 0] > 0:
        v = True
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F202: 'v' differs after this branch: it is Int32 or True
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a float or an integer that it cannot hold
def f(x):
    v = x[0, 0]
    if x[0, 0] > 0:
        v = (1 << 24) + 1
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F201: 'v' differs after this branch: it is Float32 or 16777217, which Float32 cannot represent exactly
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor of registers or of memory
def f(x):
    v = x
    if x[0, 0] > 0:
        v = cute.make_rmem_tensor((8, 8), Float32)
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F206: 'v' differs after this branch: it is a register tensor or another value
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: hint: register tensors cannot be selected at run time: create one before, and write to it on both sides
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor or None
def f(x):
    v = x
    if x[0, 0] > 0:
        v = None
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F208: 'v' differs after this branch: it is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)> or None
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor or text
def f(x):
    v = x
    if x[0, 0] > 0:
        v = "x"
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F209: 'v' differs after this branch: it is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)> or 'x'
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== coordinates of two profiles
def f(x):
    v = cute.make_identity_tensor((x.shape[0], 8))
    if x[0, 0] > 0:
        v = cute.make_identity_tensor((x.shape[0], (4, 2)))
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F205: 'v' differs after this branch: it is tensor<(0,(0,0)) o (?,(4,2)):(1@0,(1@0@1,1@1@1))> or tensor<(0,0) o (?,8):(1@0,1@1)>
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== pointers to two types
def f(x):
    v = x.iterator
    if x[0, 0] > 0:
        v = cute.recast_ptr(x.iterator, dtype=cute.Int64)
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F205: 'v' differs after this branch: it is ptr<i64, gmem, align<16>> or ptr<f32, gmem, align<16>>
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== pointers to two memories
def f(x):
    v = x.iterator
    if x[0, 0] > 0:
        v = arch.alloc_smem(Float32, 4)
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F205: 'v' differs after this branch: it is ptr<f32, smem> or ptr<f32, gmem, align<16>>
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a vector or a number
def f(x):
    v = cute.full((4,), x[0, 0])
    if x[0, 0] > 0:
        v = None
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F208: 'v' differs after this branch: it is a vector of Float32 or None
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== vectors of two types
def f(x):
    v = cute.full((4,), x[0, 0])
    if x[0, 0] > 0:
        v = cute.full((4,), Int32(1))
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F205: 'v' differs after this branch: it is a vector of Int32 with shape (4) or one of Float32 with shape (4)
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: hint: convert with v.to(…), or change the shape with v.reshape(…) or v.broadcast_to(…)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a vector or text
def f(x):
    v = cute.full((4,), x[0, 0])
    if x[0, 0] > 0:
        v = "v"
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F205: 'v' differs after this branch: it is a vector of Float32 or 'v'
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== two tiled copies
def f(x):
    v = cute.make_tiled_copy_tv(ATOM(), cute.make_layout((4, 8)), cute.make_layout((2, 1)))
    if x[0, 0] > 0:
        v = cute.make_tiled_copy_tv(ATOM(), cute.make_layout((8, 4)), cute.make_layout((2, 1)))
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F209: 'v' differs after this branch: it is a TiledCopy of universal_copy<f32>, layout_copy_tv = (32,2):(2,1), tiler_mn = [16:1;4:1] or a TiledCopy of universal_copy<f32>, layout_copy_tv = (32,2):(2,1), tiler_mn = [8:1;8:1]
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== two atoms
def f(x):
    v = ATOM()
    if x[0, 0] > 0:
        v = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16)
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F209: 'v' differs after this branch: it is a CopyAtom of universal_copy<f16> or a CopyAtom of universal_copy<f32>
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a set that grows on one side
def f(x):
    seen = {1}
    if x[0, 0] > 0:
        seen.add(2)
    return seen


trace(f)
#: MergeError
#: merges.py:3:8: error F207: a set has different elements on the two sides
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== two sets
def f(x):
    if x[0, 0] > 0:
        seen = {1}
    else:
        seen = {2}
    return seen


trace(f)
#: MergeError
#: merges.py:6:12: error F209: 'seen' differs after this branch: it is one of two sets
#:     6 |     return seen
#:       |            ^^^^
#: merges.py:2:8: note: the branch
#:     2 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: hint: use a list, or the same object on both sides
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a set that grows in a loop
def f(x):
    seen = {1}
    for i in range(x.shape[0]):
        seen.add(2)
        if x[i, 0] > 0:
            x[i, 0] = 0


trace(f)
#: LoopError
#: merges.py:3:14: error F207: the elements of a set change between iterations
#:     3 |     for i in range(x.shape[0]):
#:       |              ^^^^^^^^^^^^^^^^^
#: merges.py:3:14: note: the loop
#:     3 |     for i in range(x.shape[0]):
#:       |              ^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== two names of one list on one side
def f(x):
    if x[0, 0] > 0:
        a = [x[0, 0]]
        b = a
    else:
        a, b = [x[0, 1]], [x[0, 2]]
    a[0] = b[0]


trace(f)
#: MergeError
#: merges.py:7:12: error F209: 'b' differs after this branch: two names share one list object on one side and have different ones on the other
#:     7 |     a[0] = b[0]
#:       |            ^
#: merges.py:2:8: note: the branch
#:     2 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: hint: use a separate object for each name
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== the class of an object that a branch changes
class One:
    n = 1


class Two:
    n = 2


def f(x):
    v = One()
    if x[0, 0] > 0:
        v.__class__ = Two


trace(f)
#: MergeError
#: merges.py:11:8: error F209: the class of a 'One' object changed in a run-time branch or loop
#:    11 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: hint: keep the changing values in attributes of an object
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an iterator that is advanced in a branch by a function of Python's
def f(x):
    turns = iter([1, 2, 3])
    if x[0, 0] > 0:
        list(turns)


trace(f)
#: MergeError
#: merges.py:3:8: error F159: an iterator created before a run-time branch or loop is advanced inside it
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: hint: create it inside, or use an index
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== an iterator that is advanced in a loop
def f(x):
    turns = iter([1, 2, 3])
    for i in range(x.shape[0]):
        x[i, 0] = tuple(turns)[0]


trace(f)
#: MergeError
#: merges.py:3:14: error F159: an iterator created before a run-time branch or loop is advanced inside it
#:     3 |     for i in range(x.shape[0]):
#:       |              ^^^^^^^^^^^^^^^^^
#: hint: create it inside, or use an index
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== instances of two classes
class A:
    def __init__(self, n):
        self.n = n


class B(A):
    pass


def f(x):
    v = A(x[0, 0])
    if x[0, 0] > 0:
        v = B(x[0, 0])
    return v.n


trace(f)
#: MergeError
#: merges.py:14:12: error F209: 'v' differs after this branch: it is <merges.B object at 0x…> or <merges.A object at 0x…>
#:    14 |     return v.n
#:       |            ^
#: merges.py:12:8: note: the branch
#:    12 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== instances of other attributes
class A:
    def __init__(self, **more):
        self.__dict__.update(more)


def f(x):
    if x[0, 0] > 0:
        v = A(a=x[0, 0])
    else:
        v = A(b=x[0, 0])
    return v.b


trace(f)
#: MergeError
#: merges.py:11:12: error F207: 'v' differs after this branch: an A has different attributes on one side and on the other: a, b
#:    11 |     return v.b
#:       |            ^
#: merges.py:7:8: note: the branch
#:     7 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== another object after a turn
class A:
    def __init__(self, n):
        self.n = n


class Holder:
    pass


def f(x):
    h = Holder()
    h.a = first = A(x[0, 0])
    for i in range(x.shape[0]):
        h.a = A(x[i, 0])
    x[0, 0] = first.n


trace(f)
#: LoopError
#: merges.py:13:14: error F220: Holder.a changes between iterations of this loop: it refers to two different A objects, and 'first' also refers to one of them
#:    13 |     for i in range(x.shape[0]):
#:       |              ^^^^^^^^^^^^^^^^^
#: merges.py:13:14: note: the loop
#:    13 |     for i in range(x.shape[0]):
#:       |              ^^^^^^^^^^^^^^^^^
#: hint: change its attributes in place
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a static text that changes in a loop
def f(x):
    name = "first"
    for i in range(x.shape[0]):
        name = name + "x"
    print(name)


trace(f)
#: MergeError
#: merges.py:4:16: error F220: 'name' changes between iterations of this loop: it is 'first' or 'firstx'
#:     4 |         name = name + "x"
#:       |                ^^^^
#: merges.py:3:14: note: the loop
#:     3 |     for i in range(x.shape[0]):
#:       |              ^^^^^^^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor of registers that one path returns
def f(x):
    if x[0, 0] > 0:
        return x
    x[0, 0] = 2
    return 5


def g(x):
    f(x)


trace(g)
#: MergeError
#: merges.py:5:5: error F209: the returned value differs after this branch: it is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)> or 5
#:     5 |     return 5
#:       |     ^^^^^^^^
#: merges.py:2:8: note: the branch
#:     2 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from merges.py:9:5  f(x)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a value that leaves its branch by a module
import types

hidden = types.ModuleType("hidden")


def f(x):
    if x[0, 0] > 0:
        hidden.kept = x[0, 1] + 1
    x[0, 0] = hidden.kept


trace(f)
#: SyntaxErrorInKernel
#: merges.py:7:8: error F158: the global 'kept' of module 'hidden' is assigned in a run-time branch or loop, which would happen once, at compile time
#:     7 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: hint: return the value, or store it in an object passed as an argument
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a layout or a number
def f(x):
    v = cute.make_layout(x.shape[0])
    if x[0, 0] > 0:
        v = 5
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F204: 'v' differs after this branch: it is the layout ?:1 or 5
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a number or a layout
def f(x):
    v = cute.make_layout(x.shape[0])
    if x[0, 0] > 0:
        v = x[0, 0]
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F209: 'v' differs after this branch: it is Float32 or the layout ?:1
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== tensors of two memories
def f(x):
    v = x[0, None]
    if x[0, 0] > 0:
        v = cute.make_tensor(arch.alloc_smem(Float32, 8), v.layout)
    return v


trace(f)
#: MergeError
#: merges.py:5:12: error F205: 'v' differs after this branch: it is tensor<ptr<f32, smem> o (?):(1)> or tensor<ptr<f32, gmem, align<16>> o (?):(1)>
#:     5 |     return v
#:       |            ^
#: merges.py:3:8: note: the branch
#:     3 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== instances of two classes in a loop
class A:
    def __init__(self, n):
        self.n = n


class B(A):
    pass


def f(x):
    v = A(x[0, 0])
    for i in range(x.shape[0]):
        v = B(x[i, 0])
    return v.n


trace(f)
#: MergeError
#: merges.py:14:12: error F220: 'v' changes between iterations of this loop: it is a different A object after an iteration
#:    14 |     return v.n
#:       |            ^
#: merges.py:12:14: note: the loop
#:    12 |     for i in range(x.shape[0]):
#:       |              ^^^^^^^^^^^^^^^^^
#: hint: change it in place
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)

# ===== a tensor that one path returns and the other goes on without
def h(x):
    if x[0, 0] > 0:
        return x
    x[0, 0] = 2


def f(x):
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            return h(x)
    return x


trace(f)
#: MergeError
#: merges.py:4:15: error F208: the returned value differs after this branch: it is tensor<ptr<f32, gmem, align<16>> o (?,?):(?{div=4},1)> or None
#:     4 |     x[0, 0] = 2
#:       |               ^
#: merges.py:2:8: note: the branch
#:     2 |     if x[0, 0] > 0:
#:       |        ^^^^^^^^^^^
#: called from merges.py:10:20  h(x)
#: called from preamble.py:13:5  f(x)
#: called from preamble.py:18:5  call(f, x).launch(grid=1, block=32)
