"""Loops that cannot become one run-time loop."""

import cute_dialect.lang as cute


@cute.kernel
def call(f: cute.Constexpr, a, b):
    f(a, b)


def trace(f, a=1, b=2):
    """Launch a kernel that calls ``f(a, b)``, where a and b are run-time numbers."""
    call(f, a, b).launch(grid=1, block=1)

# ===== a bound of range_constexpr
def f(a, b):
    for i in cute.range_constexpr(a):
        b += i
    return b


trace(f)
#: StaticError
#: loops.py:2:14: error F140: range_constexpr needs bounds known at compile time, got 'a' (Int32)
#:     2 |     for i in cute.range_constexpr(a):
#:       |              ^^^^^^^^^^^^^^^^^^^^^^^
#: hint: use 'range', or pass the bound as cute.Constexpr
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a hint without effect
def f(a, b):
    for i in cute.range(a, vectorize=4):
        b += i
    return b


trace(f)
#: StaticError
#: loops.py:2:14: error F142: range: vectorize=4 is not supported
#:     2 |     for i in cute.range(a, vectorize=4):
#:       |              ^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: remove vectorize=
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a name set in a loop of no turn
def f(a, b):
    for i in range(a):
        last = i * b
    return last


trace(f)
#: UnboundError
#: loops.py:4:12: error F210: 'last' is set only in a loop that may run zero times (line 2)
#:     4 |     return last
#:       |            ^^^^
#: loops.py:2:14: note: the loop
#:     2 |     for i in range(a):
#:       |              ^^^^^^^^
#: hint: assign 'last' before line 2
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a name set in a loop that may end
def f(a, b):
    s = 0
    for i in range(3):
        if i == a:
            break
        t = i
    return t


trace(f)
#: UnboundError
#: loops.py:7:12: error F210: 't' is set only in a loop that may run zero times (line 3)
#:     7 |     return t
#:       |            ^
#: loops.py:3:14: note: the loop
#:     3 |     for i in range(3):
#:       |              ^^^^^^^^
#: hint: assign 't' before line 3
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a name of another type in a branch of a loop
def f(a, b):
    m = 0
    for i in range(a):
        if i > m:
            m = cute.Float32(i)
    return m


trace(f)
#: MergeError
#: loops.py:4:16: error F203: 'm' differs after this branch: it is Float32 or Int32
#:     4 |         if i > m:
#:       |                ^
#: loops.py:4:12: note: the branch
#:     4 |         if i > m:
#:       |            ^^^^^
#: hint: convert one side, e.g. with cute.Float32(…)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a tuple that grows
def f(a, b):
    x = (a, b)
    for i in range(b):
        x = (x[0], x[1], i)
    return x


trace(f)
#: MergeError
#: loops.py:4:14: error F220: 'x' changes between iterations of this loop: it is a tuple of 2 elements or a tuple of 3 elements
#:     4 |         x = (x[0], x[1], i)
#:       |              ^
#: loops.py:3:14: note: the loop
#:     3 |     for i in range(b):
#:       |              ^^^^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an attribute that changes its type
class Box: pass
def f(a, b):
    s = Box()
    s.v = None
    for i in range(b):
        s.v = a
    return a


trace(f)
#: LoopError
#: loops.py:5:14: error F220: Box.v changes between iterations of this loop: it is Int32 or None
#:     5 |     for i in range(b):
#:       |              ^^^^^^^^
#: loops.py:5:14: note: the loop
#:     5 |     for i in range(b):
#:       |              ^^^^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a new list each iteration, and another name for the first one
def f(a, b):
    xs = ys = [a]
    for i in range(b):
        xs = [xs[0] + i]
    return xs[0] + ys[0]


trace(f)
#: MergeError
#: loops.py:4:15: error F220: 'xs' changes between iterations of this loop: it refers to two different list objects, and 'ys' also refers to one of them
#:     4 |         xs = [xs[0] + i]
#:       |               ^^
#: loops.py:3:14: note: the loop
#:     3 |     for i in range(b):
#:       |              ^^^^^^^^
#: hint: change it in place (xs[:] = …), or copy it first (xs = list(xs))
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a new list each iteration, and another name for it
def f(a, b):
    xs, ys = [a], [b]
    for i in range(b):
        xs = ys = [xs[0] + i]
    return xs[0] + ys[0]


trace(f)
#: MergeError
#: loops.py:5:20: error F220: 'ys' changes between iterations of this loop: it refers to two different list objects, and another variable, element or attribute also refers to one of them
#:     5 |     return xs[0] + ys[0]
#:       |                    ^^
#: loops.py:3:14: note: the loop
#:     3 |     for i in range(b):
#:       |              ^^^^^^^^
#: hint: change it in place (xs[:] = …), or copy it first (xs = list(xs))
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a list changed by another name, and replaced
class Box:
    pass


def f(a, b):
    box = Box()
    box.kept = xs = [a]
    for i in range(b):
        box.kept = [box.kept[0] + i]
        xs[0] += 1
    return xs[0]


trace(f)
#: LoopError
#: loops.py:8:14: error F220: element 0 of a list changes between iterations of this loop: it refers to two different list objects, and another variable, element or attribute also refers to one of them
#:     8 |     for i in range(b):
#:       |              ^^^^^^^^
#: loops.py:8:14: note: the loop
#:     8 |     for i in range(b):
#:       |              ^^^^^^^^
#: hint: change it in place (xs[:] = …), or copy it first (xs = list(xs))
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a list of another length each iteration
def f(a, b):
    xs = [a]
    for i in range(b):
        xs = [i, b]
    return xs[0]


trace(f)
#: MergeError
#: loops.py:5:12: error F220: 'xs' changes between iterations of this loop: it is a list of 1 or 2 elements
#:     5 |     return xs[0]
#:       |            ^^
#: loops.py:3:14: note: the loop
#:     3 |     for i in range(b):
#:       |              ^^^^^^^^
#: hint: its length must be the same in each iteration
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a dict with another key each iteration
def f(a, b):
    d = {"first": a}
    for i in range(b):
        d = {"next": i}
    return d


trace(f)
#: MergeError
#: loops.py:5:12: error F220: 'd' changes between iterations of this loop: it refers to two dict objects with different keys or attributes, or another order of keys
#:     5 |     return d
#:       |            ^
#: loops.py:3:14: note: the loop
#:     3 |     for i in range(b):
#:       |              ^^^^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a list with a list or a number
def f(a, b):
    xs = [[a], 1]
    for i in range(b):
        xs = [i, 1]
    return xs[0]


trace(f)
#: MergeError
#: loops.py:5:12: error F220: 'xs' changes between iterations of this loop: it is a list object or Int32
#:     5 |     return xs[0]
#:       |            ^^
#: loops.py:3:14: note: the loop
#:     3 |     for i in range(b):
#:       |              ^^^^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a list that grows in a loop
def f(a, b):
    xs = [a]
    for i in range(b):
        xs.append(i)
    return a


trace(f)
#: LoopError
#: loops.py:3:14: error F207: a list has 1 element at the start of an iteration and 2 at its end
#:     3 |     for i in range(b):
#:       |              ^^^^^^^^
#: loops.py:3:14: note: the loop
#:     3 |     for i in range(b):
#:       |              ^^^^^^^^
#: hint: its length must be known at compile time: append on both sides, or select the value to append
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== the variable of a loop after it
def f(a, b):
    for i in range(a):
        b += i
    return i


trace(f)
#: UnboundError
#: loops.py:4:12: error F222: 'i' is the variable of a run-time loop (line 2) and has no value after the loop
#:     4 |     return i
#:       |            ^
#: loops.py:2:14: note: the loop
#:     2 |     for i in range(a):
#:       |              ^^^^^^^^
#: hint: copy it to another name inside the loop
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a step of 0
def f(a, b):
    for i in range(a, b, 0):
        b += i
    return b


trace(f)
#: LoopError
#: loops.py:2:14: error F223: the step of range is 0
#:     2 |     for i in range(a, b, 0):
#:       |              ^^^^^^^^^^^^^^
#: loops.py:2:14: note: the loop
#:     2 |     for i in range(a, b, 0):
#:       |              ^^^^^^^^^^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a float bound
def f(a, b):
    for i in range(b):
        a += i
    return a


trace(f, 1, cute.Float32(2))
#: LoopError
#: loops.py:2:14: error F224: range bounds must be integers, got 'b' (Float32)
#:     2 |     for i in range(b):
#:       |              ^^^^^^^^
#: loops.py:2:14: note: the loop
#:     2 |     for i in range(b):
#:       |              ^^^^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== too many turns to walk
def f(a, b):
    xs = (1,) * 5000
    for i in range(5000):
        a += xs[i]
    return a


trace(f)
#: StaticError
#: loops.py:3:14: error F141: this loop of 5000 iterations cannot be a run-time loop: the value of 'i' (Int32) is known only at run time
#:     3 |     for i in range(5000):
#:       |              ^^^^^^^^^^^
#: loops.py:4:14: note: here
#:     4 |         a += xs[i]
#:       |              ^^^^^
#: hint: loops of at most 4096 iterations are unrolled at compile time
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)
