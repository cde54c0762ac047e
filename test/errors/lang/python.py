"""Python's own errors in traced code."""

import numpy as np

import cute_dialect.lang as cute

X = np.zeros(4, np.float32)


class OddSize(ValueError):
    """A library error with an attribute."""

    def __init__(self, size, why):
        super().__init__(size, why)
        self.size = size


@cute.kernel
def call(f: cute.Constexpr, x: cute.Tensor):
    f(x)


def trace(f):
    """Launch a kernel that calls ``f(x)``."""
    call(f, X).launch(grid=1, block=1)

# ===== a misspelt name of the language
def f(x):
    return cute.sise(x)


trace(f)
#: AttributeError
#: python.py:2:12: error F162: AttributeError: module 'cute_dialect.lang' has no attribute 'sise'
#:     2 |     return cute.sise(x)
#:       |            ^^^^^^^^^
#: hint: did you mean 'size'?
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a misspelt name
def f(x):
    threads = cute.arch.thread_idx().x
    x[thread] = 1


trace(f)
#: NameError
#: python.py:3:7: error F162: NameError: name 'thread' is not defined
#:     3 |     x[thread] = 1
#:       |       ^^^^^^
#: hint: did you mean 'threads'?
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a name that nothing is like
def f(x):
    return zzzzz


trace(f)
#: NameError
#: python.py:2:12: error F162: NameError: name 'zzzzz' is not defined
#:     2 |     return zzzzz
#:       |            ^^^^^
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a keyword that is misspelt
def f(x):
    return cute.local_tile(x, tilr=(2,), coord=(0,))


trace(f)
#: TypeError
#: python.py:2:12: error F162: TypeError: local_tile() got an unexpected keyword argument 'tilr'
#:     2 |     return cute.local_tile(x, tilr=(2,), coord=(0,))
#:       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: did you mean 'tiler'?
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a keyword that a function of the user's has not
def helper(x, *, scale=1):
    return x[0] * scale


def f(x):
    return helper(x, factor=2)


trace(f)
#: TypeError
#: python.py:6:12: error F162: TypeError: helper() got an unexpected keyword argument 'factor'
#:     6 |     return helper(x, factor=2)
#:       |            ^^^^^^^^^^^^^^^^^^^
#: hint: parameters: x, scale
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== an operator that two types have not
def f(x):
    return x + "one"


trace(f)
#: TypeError
#: python.py:2:12: error F162: TypeError: unsupported operand type(s) for +: 'Tensor' and 'str'
#:     2 |     return x + "one"
#:       |            ^^^^^^^^^
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== an error of a library, from a helper
def check(size):
    if size % 3:
        raise OddSize(size, "expected a multiple of 3")


def f(x):
    check(4)


try:
    trace(f)
except OddSize as e:
    assert e.size == 4 and e.args == (4, "expected a multiple of 3") and type(e.original) is OddSize
    raise
#: OddSize
#: python.py:3:9: error F162: OddSize: (4, 'expected a multiple of 3')
#:     3 |         raise OddSize(size, "expected a multiple of 3")
#:       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from python.py:7:5  check(4)
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== an assertion that fails while tracing
def f(x):
    assert len(x.shape) == 2, f"expected a matrix, got rank {len(x.shape)}"


trace(f)
#: AssertionError
#: python.py:2:5: error F162: AssertionError: expected a matrix, got rank 1
#:     2 |     assert len(x.shape) == 2, f"expected a matrix, got rank {len(x.shape)}"
#:       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== an attribute that a tensor has not
def f(x):
    return x.sape[0]


trace(f)
#: AttributeError
#: python.py:2:12: error F162: AttributeError: 'Tensor' object has no attribute 'sape'
#:     2 |     return x.sape[0]
#:       |            ^^^^^^
#: hint: did you mean 'shape'?
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a key that a dict has not
def f(x):
    return {"a": 1}["b"]


trace(f)
#: KeyError
#: python.py:2:12: error F162: KeyError: 'b'
#:     2 |     return {"a": 1}["b"]
#:       |            ^^^^^^^^^^^^^
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a function of numpy on an element
def f(x):
    return np.sqrt(x[0])


trace(f)
#: KernelTypeError
#: python.py:2:12: error F236: np.sqrt cannot be applied to run-time values, got this Float32
#:     2 |     return np.sqrt(x[0])
#:       |            ^^^^^^^^^^^^^
#: hint: use cute.math.sqrt
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a function of numpy that has another name here
def f(x):
    return np.maximum(x[0], 0.5)


trace(f)
#: KernelTypeError
#: python.py:2:12: error F236: np.maximum cannot be applied to run-time values, got this Float32
#:     2 |     return np.maximum(x[0], 0.5)
#:       |            ^^^^^^^^^^^^^^^^^^^^^
#: hint: use 'max'
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a function of numpy on a vector
def f(x):
    return np.convolve(x, x) if False else np.cbrt(x.load())


trace(f)
#: LayoutError
#: python.py:2:52: error F240: a vector needs a static shape, but tensor 'x' has shape (?)
#:     2 |     return np.convolve(x, x) if False else np.cbrt(x.load())
#:       |                                                    ^^^^^^^^
#: hint: use a tile or a slice of static shape
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== an array of numpy multiplied by an element
def f(x):
    return np.arange(3) * x[0]


trace(f)
#: KernelTypeError
#: python.py:2:12: error F236: np.multiply cannot be applied to run-time values, got this Float32
#:     2 |     return np.arange(3) * x[0]
#:       |            ^^^^^^^^^^^^^^^^^^^
#: hint: see cute.math for the functions available in kernels
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a walk over a tensor
def f(x):
    for v in x:
        cute.printf(v)


trace(f)
#: StaticError
#: python.py:2:14: error F145: tensor 'x' cannot be iterated
#:     2 |     for v in x:
#:       |              ^
#: hint: write 'for i in range(cute.size(t))' and use t[i]
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a kernel that yields
@cute.kernel
def counts(x: cute.Tensor):
    for i in range(4):
        yield x[i]


counts(X).launch(grid=1, block=1)
#: SyntaxErrorInKernel
#: python.py:4:9: error F150: 'counts' has a 'yield': a decorated function cannot be a generator
#:     4 |         yield x[i]
#:       |         ^^^^^^^^^^
#: hint: move the 'yield' into another function and loop over it with 'for'
#: called from python.py:7:1  counts(X).launch(grid=1, block=1)

# ===== a host function that yields
@cute.jit
def run(x: cute.Tensor):
    yield x


run(X)
#: SyntaxErrorInKernel
#: python.py:3:5: error F150: 'run' has a 'yield': a decorated function cannot be a generator
#:     3 |     yield x
#:       |     ^^^^^^^
#: hint: move the 'yield' into another function and loop over it with 'for'
#: called from python.py:6:1  run(X)

# ===== a value of an earlier trace
kept = []


def keep(x):
    kept.append(x[0] + 1)


def f(x):
    x[0] = kept[0]


trace(keep)
trace(f)
#: MergeError
#: python.py:9:5: error F212: a value of type f32 is used in a function other than the one that computes it
#:     9 |     x[0] = kept[0]
#:       |     ^
#: python.py:5:17: note: it is computed here
#:     5 |     kept.append(x[0] + 1)
#:       |                 ^
#: hint: pass it as an argument
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)

# ===== a value of the host function in a kernel that closes over it
@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    m = n + 1

    @cute.kernel
    def inner(x: cute.Tensor):
        x[0] = m

    inner(x).launch(grid=1, block=1)


run(X, 3)
#: MergeError
#: python.py:7:9: error F212: 'm' is used in a function other than the one that computes it
#:     7 |         x[0] = m
#:       |         ^
#: python.py:3:9: note: it is computed here
#:     3 |     m = n + 1
#:       |         ^
#: hint: pass it as an argument
#: called from python.py:12:1  run(X, 3)

# ===== a quotient of floats in a host function
@cute.jit
def run(x: cute.Tensor, s: cute.Float32):
    call(lambda x: None, x).launch(grid=cute.Int32(s // 0.5), block=1)


run(X, 3.0)
#: CompileError
#: python.py:3:52: error F113: a host function that launches kernels cannot compute '//' or '%' of run-time floats
#:     3 |     call(lambda x: None, x).launch(grid=cute.Int32(s // 0.5), block=1)
#:       |                                                    ^^^^^^^^
#: hint: compute it in the kernel
#: called from python.py:6:1  run(X, 3.0)

# ===== a breakpoint of the language
def f(x):
    cute.breakpoint()


trace(f)
#: StaticError
#: python.py:2:5: error F163: kernels cannot be stepped through
#:     2 |     cute.breakpoint()
#:       |     ^^^^^^^^^^^^^^^^^
#: hint: print with cute.printf, check with cute.assert_, or run with device='cpu', which reports races and uninitialized reads; Python's breakpoint() stops while the kernel is traced
#: called from preamble.py:20:5  f(x)
#: called from preamble.py:25:5  call(f, X).launch(grid=1, block=1)
