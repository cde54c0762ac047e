"""Errors of calls and generators."""

import cute_dialect.lang as cute


@cute.kernel
def call(f: cute.Constexpr, a, b):
    f(a, b)


def trace(f, a=1, b=2):
    """Launch a kernel that calls ``f(a, b)``, where a and b are run-time numbers."""
    call(f, a, b).launch(grid=1, block=1)

# ===== a generator that list takes
def numbers(n):
    i = 0
    while i < n:
        yield i
        i += 1
def f(a, b):
    return sum(list(numbers(a)))


trace(f)
#: LoopError
#: calls.py:4:9: error F160: a generator yields in a run-time branch or loop, but no 'for' statement consumes it
#:     4 |         yield i
#:       |         ^^^^^^^
#: hint: loop over it with a 'for' statement in kernel code
#: called from calls.py:7:16  list(numbers(a))
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== break out of a loop over a generator
def numbers(n):
    i = 0
    while i < n:
        yield i
        i += 1
def f(a, b):
    for i in numbers(a):
        if i > b:
            break
    return a


trace(f)
#: LoopError
#: calls.py:3:11: error F160: 'break' or 'return' cannot leave a 'for' over a generator with a run-time loop
#:     3 |     while i < n:
#:       |           ^^^^^
#: calls.py:7:14: note: the loop
#:     7 |     for i in numbers(a):
#:       |              ^^^^^^^^^^
#: hint: write the generator's loop in place of the 'for'
#: called from calls.py:7:14  numbers(a)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a generator in a loop of run time
def numbers(n):
    i = 0
    while i < n:
        if i > 2:
            yield i
        i += 1
def f(a, b):
    for i in numbers(a):
        b += i
    return b


trace(f)
#: LoopError
#: calls.py:5:13: error F160: a generator yields inside nested run-time branches or loops
#:     5 |             yield i
#:       |             ^^^^^^^
#: calls.py:8:14: note: the loop
#:     8 |     for i in numbers(a):
#:       |              ^^^^^^^^^^
#: called from calls.py:8:14  numbers(a)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== recursion without end
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
def f(a, b):
    return fact(a)


trace(f)
#: CompileError
#: calls.py:2:12: error F161: 'fact' recurses without end at compile time: the condition that ends it is known only at run time
#:     2 |     return 1 if n < 2 else n * fact(n - 1)
#:       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: write a loop
#: called from calls.py:4:12  fact(a)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an example whose arguments are not returned by a function
cute.example((1, 2))
#: KernelTypeError
#: error F112: cute.example needs a function that returns the arguments, got (1, 2)
#: hint: cute.example(lambda: (x, y))

# ===== an example on what is not decorated
@cute.example(lambda: (1,))
def f(x):
    pass
#: CompileError
#: error F102: cute.example must decorate a function under @cute.jit or @cute.kernel, got <function f at 0x…>
#: hint: place it above the other decorator
