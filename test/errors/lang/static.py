"""Run-time numbers where a compile-time value is needed."""

import cute_dialect.lang as cute


@cute.kernel
def call(f: cute.Constexpr, a, b):
    f(a, b)


def trace(f, a=1, b=2):
    """Launch a kernel that calls ``f(a, b)``, where a and b are run-time numbers."""
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
#: static.py:5:24: error F143: the truth value of this Boolean is known only at run time
#:     5 |         return True if self.a < other.a else False
#:       |                        ^^^^^^^^^^^^^^^^
#: static.py:5:24: note: '__lt__' was not compiled as kernel code: an operator, a property or a C function called it
#:     5 |         return True if self.a < other.a else False
#:       |                        ^^^^^^^^^^^^^^^^
#: hint: this function is not compiled as kernel code; see cute.jit and cute.convert_package
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
#: static.py:4:14: error F144: the value of 'i' (Int32) is known only at run time
#:     4 |         a += xs[i]
#:       |              ^^^^^
#: hint: `xs` is a Python object, which is indexed at compile time: make it a tensor (an array argument or cute.make_rmem_tensor), use 'x if c else y', or pass the index as cute.Constexpr
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== sum of a range of run time
def f(a, b):
    return sum(range(a))


trace(f)
#: StaticError
#: static.py:2:12: error F145: the number of iterations of this range is known only at run time
#:     2 |     return sum(range(a))
#:       |            ^^^^^^^^^^^^^
#: hint: use a 'for' statement in kernel code
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== count of a list of numbers
def f(a, b):
    return [a, b].count(a)


trace(f)
#: StaticError
#: static.py:2:12: error F143: the truth value of this Boolean is known only at run time
#:     2 |     return [a, b].count(a)
#:       |            ^^^^^^^^^^^^^^^
#: hint: Python's `[a, b].count` needs the values at compile time: compare them in a loop
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== tuples of numbers in order
def f(a, b):
    return (a, b) < (b, a)


trace(f)
#: StaticError
#: static.py:2:12: error F143: the truth value of this Boolean is known only at run time
#:     2 |     return (a, b) < (b, a)
#:       |            ^^^^^^^^^^^^^^^
#: hint: Python compares these objects at compile time: compare their numbers instead
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== alternatives that capture a name
def f(a, b):
    match (a, b):
        case (0, y) | (y, 0):
            return y
    return a


trace(f)
#: StaticError
#: static.py:3:15: error F143: the truth value of this Boolean is known only at run time
#:     3 |         case (0, y) | (y, 0):
#:       |               ^
#: hint: write each alternative that captures a name as a separate case
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a walk over a number
def f(a, b):
    return list(a)


trace(f)
#: StaticError
#: static.py:2:12: error F145: 'a' (Int32) is a number and cannot be iterated
#:     2 |     return list(a)
#:       |            ^^^^^^^
#: hint: use range(n)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== two numbers under is
def f(a, b):
    return a is b


trace(f)
#: StaticError
#: static.py:2:12: error F152: 'is' compares two numbers as Python objects, not by value
#:     2 |     return a is b
#:       |            ^^^^^^
#: hint: write '=='
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a number under is not
def f(a, b):
    n = 5
    return n is not a


trace(f)
#: StaticError
#: static.py:3:12: error F152: 'is not' compares two numbers as Python objects, not by value
#:     3 |     return n is not a
#:       |            ^^^^^^^^^^
#: hint: write '!='
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a number that Python needs
def f(a, b):
    return "abc"[a:]


trace(f)
#: StaticError
#: static.py:2:12: error F144: the value of 'a' (Int32) is known only at run time
#:     2 |     return "abc"[a:]
#:       |            ^^^^^^^^^
#: hint: `'abc'` is a Python object, which is indexed at compile time: make it a tensor (an array argument or cute.make_rmem_tensor), use 'x if c else y', or pass the index as cute.Constexpr
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== the length of a number
def f(a, b):
    return len(a)


trace(f)
#: StaticError
#: static.py:2:12: error F146: 'a' (Int32) is a number and has no length
#:     2 |     return len(a)
#:       |            ^^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a key that is known when the kernel runs
def f(a, b):
    return {a: 1}[b]


trace(f)
#: StaticError
#: static.py:2:12: error F147: the value of 'a' (Int32) is known only at run time
#:     2 |     return {a: 1}[b]
#:       |            ^^^^^^
#: hint: it cannot be in a set or a key of a dict: use a list
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== int of a number by a function of Python's
def f(a, b):
    import math

    return math.factorial(a)


trace(f)
#: StaticError
#: static.py:4:12: error F144: the value of 'a' (Int32) is known only at run time
#:     4 |     return math.factorial(a)
#:       |            ^^^^^^^^^^^^^^^^^
#: hint: Python needs the number here at compile time: pass it as cute.Constexpr
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)
