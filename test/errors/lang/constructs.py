"""Python constructs that kernels do not support."""

import cute_dialect.lang as cute


@cute.kernel
def call(f: cute.Constexpr, a, b):
    f(a, b)


def trace(f, a=1, b=2):
    """Launch a kernel that calls ``f(a, b)``, where a and b are run-time numbers."""
    call(f, a, b).launch(grid=1, block=1)

# ===== an async function
async def f(a, b):
    return a


trace(f)
#: SyntaxErrorInKernel
#: constructs.py:1:1: error F150: 'async' functions are not supported in a kernel
#:     1 | async def f(a, b):
#:       | ^^^^^^^^^^^^^^^^^^
#: called from preamble.py:8:5  f
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== return in finally
def f(a, b):
    try:
        a += 1
    finally:
        return b


trace(f)
#: SyntaxErrorInKernel
#: constructs.py:5:9: error F150: 'return' in a 'finally' block is not supported in a kernel
#:     5 |         return b
#:       |         ^^^^^^^^
#: called from preamble.py:8:5  f
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== and of a truth and a number
def f(a, b):
    x = a < b and 5
    return x


trace(f)
#: StaticError
#: constructs.py:2:9: error F151: 'and' would give a bool or 5, depending on a run-time condition
#:     2 |     x = a < b and 5
#:       |         ^^^^^
#: hint: compare both sides, or write 'x if c else y'
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a walrus behind a condition
def f(a, b):
    if a < b and (n := a + b) > 3:
        return n
    return a


trace(f)
#: SyntaxErrorInKernel
#: constructs.py:2:8: error F153: an operand with ':=' or 'yield' follows a condition that is known only at run time
#:     2 |     if a < b and (n := a + b) > 3:
#:       |        ^^^^^
#: hint: assign the name in a statement before this one
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an exception that leaves a branch
def f(a, b):
    try:
        if a < b:
            x = [1][3]
    except IndexError:
        x = 5
    return x


trace(f)
#: SyntaxErrorInKernel
#: constructs.py:5:12: error F155: an exception raised in a run-time branch or loop is caught outside it
#:     5 |     except IndexError:
#:       |            ^^^^^^^^^^
#: hint: catch it inside, or make the condition known at compile time
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== raise under a condition
def f(a, b):
    if a < b:
        raise ValueError('a is too small')
    return a


trace(f)
#: CompileError
#: constructs.py:3:9: error F156: this raise would run at compile time, whatever the run-time condition: ValueError: a is too small
#:     3 |         raise ValueError('a is too small')
#:       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use 'assert' for a check at run time
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== the if of a comprehension
def f(a, b):
    return len([x for x in (a, b) if x > 0])


trace(f)
#: StaticError
#: constructs.py:2:38: error F157: the 'if' of a comprehension is known only at run time, so the length would be too
#:     2 |     return len([x for x in (a, b) if x > 0])
#:       |                                      ^^^^^
#: hint: keep all elements and select their values: [x if c else 0 for …]
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== sorted by numbers of run time
def f(a, b):
    return sorted([a, b])


trace(f)
#: StaticError
#: constructs.py:2:12: error F157: 'sorted' needs values known at compile time
#:     2 |     return sorted([a, b])
#:       |            ^^^^^^^^^^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a global that is assigned
def f(a, b):
    global count
    count = a
    return a


trace(f)
#: SyntaxErrorInKernel
#: constructs.py:3:5: error F158: the global 'count' is assigned in a kernel, which would happen once, at compile time
#:     3 |     count = a
#:       |     ^^^^^^^^^
#: hint: return the value, or store it in an object passed as an argument
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an iterator advanced in a branch
def f(a, b):
    values = iter([1, 2, 3])
    if a < b:
        x = next(values)
    else:
        x = 0
    return x


trace(f)
#: MergeError
#: constructs.py:4:13: error F159: an iterator created before a run-time branch or loop is advanced inside it
#:     4 |         x = next(values)
#:       |             ^^^^^^^^^^^^
#: hint: create it inside, or use an index
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an async for
def f(a, b):
    async def g():
        async for i in a:
            pass

    g()


trace(f)
#: SyntaxErrorInKernel
#: constructs.py:2:5: error F150: 'async' functions are not supported in a kernel
#:     2 |     async def g():
#:       |     ^^^^^^^^^^^^^^
#: called from preamble.py:8:5  f
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an async function in a kernel
def f(a, b):
    async def g():
        return a

    g()


trace(f)
#: SyntaxErrorInKernel
#: constructs.py:2:5: error F150: 'async' functions are not supported in a kernel
#:     2 |     async def g():
#:       |     ^^^^^^^^^^^^^^
#: called from preamble.py:8:5  f
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== break out of finally
def f(a, b):
    for i in range(a):
        try:
            b += 1
        finally:
            break


trace(f)
#: SyntaxErrorInKernel
#: constructs.py:6:13: error F150: 'break' out of a 'finally' block is not supported in a kernel
#:     6 |             break
#:       |             ^^^^^
#: called from preamble.py:8:5  f
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== yield from in a branch
def numbers(a):
    if a > 0:
        yield from [1, 2]


def f(a, b):
    for i in numbers(a):
        b += i


trace(f)
#: LoopError
#: constructs.py:3:9: error F160: 'yield from' cannot be used in a run-time branch or loop; write 'for x in …: yield x'
#:     3 |         yield from [1, 2]
#:       |         ^^^^^^^^^^^^^^^^^
#: called from constructs.py:7:14  numbers(a)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== too many blocks
from contextlib import nullcontext as none


def f(a, b):
    with none():
        with none():
            with none():
                with none():
                    with none():
                        with none():
                            with none():
                                with none():
                                    with none():
                                        with none():
                                            with none():
                                                with none():
                                                    a += 1


trace(f)
#: SyntaxErrorInKernel
#: preamble.py:8:5: error F150: 'f' nests too many blocks
#:     8 |     f(a, b)
#:       |     ^
#: hint: move inner blocks into other functions
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a while that never ends while compiling
def f(a, b):
    while True:
        pass


trace(f)
#: StaticError
#: constructs.py:2:11: error F141: this loop ran for 65536 iterations at compile time
#:     2 |     while True:
#:       |           ^^^^
#: constructs.py:2:11: note: the loop
#:     2 |     while True:
#:       |           ^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a generator whose loop becomes one of run time after a yield
def numbers(a):
    n = 0
    while n < 3:
        yield n
        n = a


def f(a, b):
    for i in numbers(a):
        b += i


trace(f)
#: LoopError
#: constructs.py:3:11: error F160: the condition of this loop becomes a run-time value after the loop has yielded
#:     3 |     while n < 3:
#:       |           ^^^^^
#: constructs.py:3:11: note: the loop
#:     3 |     while n < 3:
#:       |           ^^^^^
#: called from constructs.py:9:14  numbers(a)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)
