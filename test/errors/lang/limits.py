"""Programs that exceed a limit of the compiler."""

import cute_dialect.lang as cute


@cute.kernel
def call(f: cute.Constexpr, a, b):
    f(a, b)


def trace(f, a=1, b=2):
    """Launch a kernel that calls ``f(a, b)``, where a and b are run-time numbers."""
    call(f, a, b).launch(grid=1, block=1)

# ===== too many objects
def f(a, b):
    table = [[k] for k in range(20_000)]
    if a < b:
        x = table[0][0]
    else:
        x = 1
    return x


trace(f)
#: LimitError
#: limits.py:3:8: error F170: more than 20,000 Python objects are reachable from the names in this branch or loop
#:     3 |     if a < b:
#:       |        ^^^^^
#: hint: keep large Python data in NumPy arrays, or away from functions that kernels call
#: called from preamble.py:8:5  f(a, b)
#: called from preamble.py:13:5  call(f, a, b).launch(grid=1, block=1)
