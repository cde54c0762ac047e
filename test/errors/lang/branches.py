"""Branches whose two paths leave values that cannot be merged."""

import cute_dialect.lang as cute


@cute.kernel
def call(f: cute.Constexpr, a, b):
    f(a, b)


def trace(f, a=1, b=2):
    """Launch a kernel that calls ``f(a, b)``, where a and b are run-time numbers."""
    call(f, a, b).launch(grid=1, block=1)

# ===== a number that does not fit the other side
def f(a, b):
    x = a
    if a < b:
        x = 1 << 40
    return x


trace(f)
#: MergeError
#: branches.py:5:12: error F201: 'x' differs after this branch: it is Int32 or 1099511627776, which Int32 cannot represent
#:     5 |     return x
#:       |            ^
#: branches.py:3:8: note: the branch
#:     3 |     if a < b:
#:       |        ^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an int or a float
def f(a, b):
    if a < b:
        x = 1
    else:
        x = 2.5
    return x


trace(f)
#: MergeError
#: branches.py:6:12: error F202: 'x' differs after this branch: it is 1 or 2.5: Int32 or Float32
#:     6 |     return x
#:       |            ^
#: branches.py:2:8: note: the branch
#:     2 |     if a < b:
#:       |        ^^^^^
#: hint: use the same type for both
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== two types of numbers
def f(a, b):
    if a < 3:
        x = a
    else:
        x = b
    return x


trace(f, 1, cute.Float32(2))
#: MergeError
#: branches.py:6:12: error F203: 'x' differs after this branch: it is Int32 or Float32
#:     6 |     return x
#:       |            ^
#: branches.py:2:8: note: the branch
#:     2 |     if a < 3:
#:       |        ^^^^^
#: hint: convert one side, e.g. with cute.Int32(…)
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== tuples of other profiles
def f(a, b):
    if a < b:
        x = (a, b)
    else:
        x = (a, b, 1)
    return x


trace(f)
#: MergeError
#: branches.py:6:12: error F204: 'x' differs after this branch: it is a tuple of 2 or 3 elements
#:     6 |     return x
#:       |            ^
#: branches.py:2:8: note: the branch
#:     2 |     if a < b:
#:       |        ^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== lists of other lengths
def f(a, b):
    acc = []
    if a < b:
        acc.append(a)
    return len(acc)


trace(f)
#: MergeError
#: branches.py:3:8: error F207: a list has 1 element on one side and 0 on the other
#:     3 |     if a < b:
#:       |        ^^^^^
#: branches.py:3:8: note: the branch
#:     3 |     if a < b:
#:       |        ^^^^^
#: hint: its length must be known at compile time: append on both sides, or select the value to append
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an attribute on one side
class Box: pass
def f(a, b):
    s = Box()
    if a < b:
        s.v = a
    return a


trace(f)
#: MergeError
#: branches.py:4:8: error F207: a Box has different attributes on one side and on the other: v
#:     4 |     if a < b:
#:       |        ^^^^^
#: branches.py:4:8: note: the branch
#:     4 |     if a < b:
#:       |        ^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== None or a number
def f(a, b):
    x = None
    if a < b:
        x = a
    return x


trace(f)
#: MergeError
#: branches.py:5:12: error F208: 'x' differs after this branch: it is Int32 or None
#:     5 |     return x
#:       |            ^
#: branches.py:3:8: note: the branch
#:     3 |     if a < b:
#:       |        ^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a path without return
def f(a, b):
    if a < b:
        return a


trace(f)
#: MergeError
#: branches.py:3:16: error F208: the returned value differs after this branch: it is Int32 or None
#:     3 |         return a
#:       |                ^
#: branches.py:2:8: note: the branch
#:     2 |     if a < b:
#:       |        ^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== two static values
def f(a, b):
    if a < b:
        x = 'left'
    else:
        x = 'right'
    return x


trace(f)
#: MergeError
#: branches.py:6:12: error F209: 'x' differs after this branch: it is 'left' or 'right'
#:     6 |     return x
#:       |            ^
#: branches.py:2:8: note: the branch
#:     2 |     if a < b:
#:       |        ^^^^^
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== two lists
def f(a, b):
    xs, ys = [a], [b]
    zs = xs if a < b else ys
    zs[0] += 1
    return xs[0]


trace(f)
#: MergeError
#: branches.py:3:10: error F209: it refers to two different list objects, and 'xs' also refers to one of them
#:     3 |     zs = xs if a < b else ys
#:       |          ^^^^^^^^^^^^^^^^^^^
#: hint: change it in place (xs[:] = …), or copy it first (xs = list(xs))
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a new list on one side, and another name for the old one
def f(a, b):
    xs = [a]
    ys = xs
    if a < b:
        xs = [b]
    xs[0] += 1
    return ys[0]


trace(f)
#: MergeError
#: branches.py:6:5: error F209: 'xs' differs after this branch: it refers to two different list objects, and 'ys' also refers to one of them
#:     6 |     xs[0] += 1
#:       |     ^^
#: branches.py:4:8: note: the branch
#:     4 |     if a < b:
#:       |        ^^^^^
#: hint: change it in place (xs[:] = …), or copy it first (xs = list(xs))
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a new dict on one side, which an object also holds
class Box:
    pass


def f(a, b):
    box = Box()
    box.kept = d = {"n": a}
    if a < b:
        d = {"n": b}
    return d["n"] + box.kept["n"]


trace(f)
#: MergeError
#: branches.py:10:12: error F209: 'd' differs after this branch: it refers to two different dict objects, and another variable, element or attribute also refers to one of them
#:    10 |     return d["n"] + box.kept["n"]
#:       |            ^
#: branches.py:8:8: note: the branch
#:     8 |     if a < b:
#:       |        ^^^^^
#: hint: change it in place (d.update(…)), or copy it first (d = dict(d))
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a new object on one side, while a loop goes over a list with the old one
class Box:
    def __init__(self, n):
        self.n = n


def f(a, b):
    x = Box(a)
    total = 0
    for box in [Box(1), x]:
        if a < b:
            x = Box(b)
        total += box.n
    return x.n + total


trace(f)
#: MergeError
#: branches.py:13:12: error F209: 'x' differs after this branch: it refers to two different Box objects, and another variable, element or attribute also refers to one of them
#:    13 |     return x.n + total
#:       |            ^
#: branches.py:10:12: note: the branch
#:    10 |         if a < b:
#:       |            ^^^^^
#: hint: change its attributes in place
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a list that both sides put into another one
def f(a, b):
    xs = [a]
    if a < b:
        held = [xs]
        xs = [b]
    else:
        held = [xs]
    return xs[0] + held[0][0]


trace(f)
#: MergeError
#: branches.py:3:8: error F209: a container or object differs after this branch: it refers to two different list objects, and another variable, element or attribute also refers to one of them
#:     3 |     if a < b:
#:       |        ^^^^^
#: branches.py:3:8: note: the branch
#:     3 |     if a < b:
#:       |        ^^^^^
#: hint: change it in place (xs[:] = …), or copy it first (xs = list(xs))
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== dicts with their keys in another order
def f(a, b):
    if a < b:
        d = {"x": a, "y": b}
    else:
        d = {"y": a, "x": b}
    return list(d.values())


trace(f)
#: MergeError
#: branches.py:6:17: error F207: 'd' differs after this branch: a dict has its keys in another order on one side than on the other
#:     6 |     return list(d.values())
#:       |                 ^
#: branches.py:2:8: note: the branch
#:     2 |     if a < b:
#:       |        ^^^^^
#: hint: insert the keys in the same order
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a name set on one side
def f(a, b):
    if a == 0:
        only = b
    return only


trace(f)
#: UnboundError
#: branches.py:4:12: error F210: 'only' is set only if `a == 0` is true (line 2)
#:     4 |     return only
#:       |            ^^^^
#: branches.py:2:8: note: the branch
#:     2 |     if a == 0:
#:       |        ^^^^^^
#: hint: assign 'only' before line 2
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an attribute of a module is assigned in a branch
def f(a, b):
    import types
    settings = types.ModuleType("settings")
    settings.limit = 0
    if a < b:
        settings.limit = 7
    return settings.limit


trace(f)
#: SyntaxErrorInKernel
#: branches.py:5:8: error F158: the global 'limit' of module 'settings' is assigned in a run-time branch or loop, which would happen once, at compile time
#:     5 |     if a < b:
#:       |        ^^^^^
#: hint: return the value, or store it in an object passed as an argument
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== an array of Python's is changed in a branch
def f(a, b):
    import array
    found = array.array("i", [0])
    if a < b:
        found[0] = 7
    return found[0]


trace(f)
#: MergeError
#: branches.py:4:8: error F209: an object of type 'array' is changed in a run-time branch or loop
#:     4 |     if a < b:
#:       |        ^^^^^
#: hint: keep the changing values in a list or in a register tensor
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a counter is advanced on the right of 'and'
def f(a, b):
    import itertools
    numbers = itertools.count()
    if a < b and numbers.__next__() == 0:
        return 1
    return 2


trace(f)
#: MergeError
#: branches.py:4:8: error F159: an iterator created before a run-time branch or loop is advanced inside it
#:     4 |     if a < b and numbers.__next__() == 0:
#:       |        ^^^^^
#: hint: create it inside, or use an index
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)

# ===== a loop changes a variable that its generator reads
def f(a, b):
    total = 0

    def numbers():
        for i in range(a):
            yield i + total

    for x in numbers():
        total += x
    return total


trace(f)
#: LoopError
#: branches.py:6:13: error F160: the body of this 'for' changes 'total', which the generator's run-time loop may also use
#:     6 |             yield i + total
#:       |             ^^^^^^^^^^^^^^^
#: branches.py:8:14: note: the loop
#:     8 |     for x in numbers():
#:       |              ^^^^^^^^^
#: hint: keep it in a list or an object
#: called from branches.py:8:14  numbers()
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)
