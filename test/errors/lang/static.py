"""Numbers that are needed while compiling."""

import cute_dialect.lang as cute


@cute.kernel
def call(f: cute.Constexpr, a, b):
    f(a, b)


def trace(f, a=1, b=2):
    """Trace ``f(a, b)`` in a kernel, where a and b are numbers of run time."""
    call(f, a, b).launch(grid=1, block=1)

# ===== a test in a function that Python calls
class Key:
    def __init__(self, a):
        self.a = a
    def __lt__(self, other):
        return True if self.a < other.a else False
def f(a, b):
    return Key(a) < Key(b)


trace(f)
#: StaticError
#: static.py:5:24: error F143: the truth of this Boolean is known only when the kernel runs
#:     5 |         return True if self.a < other.a else False
#:       |                        ^^^^^^^^^^^^^^^^
#: static.py:5:24: note: '__lt__' was not converted: it was called by an operator, a property or a function written in C
#:     5 |         return True if self.a < other.a else False
#:       |                        ^^^^^^^^^^^^^^^^
#: hint: this function was not converted: see cute.jit and cute.convert_package
#: called from static.py:7:12  Key(a) < Key(b)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a list indexed by a number of run time
def f(a, b):
    xs = [1, 2, 3]
    for i in range(b):
        a += xs[i]
    return a


trace(f)
#: StaticError
#: static.py:4:14: error F144: the value of 'i', an Int32 is known only when the kernel runs
#:     4 |         a += xs[i]
#:       |              ^^^^^
#: hint: a Python number is needed here: pass it as cute.Constexpr
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== sum of a range of run time
def f(a, b):
    return sum(range(a))


trace(f)
#: StaticError
#: static.py:2:12: error F145: how many turns this range has is known only when the kernel runs
#:     2 |     return sum(range(a))
#:       |            ^^^^^^^^^^^^^
#: hint: write a 'for' statement, in a function that is converted
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)
