"""Layout algebra without a kernel, a compiler or a GPU: thread-value layouts and division.

python examples/layouts.py
"""

# RUN: %python %s | FileCheck %s
# CHECK: layout: ((32,4),(4,4)):((64,4),(16,1))
# CHECK: tiler: (16, 128)
# CHECK: divided: ((3, (2, 4)), (3, (2, 2)))

import cute_dialect.lang as cute


@cute.jit
def threads_and_values():
    threads = cute.make_ordered_layout((4, 32), order=(1, 0))
    values = cute.make_layout((4, 4), order=(1, 0))
    tiler, tv = cute.make_layout_tv(threads, values)
    print(f"threads: {threads}, values: {values}")
    print(f"layout: {tv}")
    print(f"tiler: {tiler}")


@cute.jit
def division():
    matrix = cute.make_layout((9, (4, 8)), stride=(59, (13, 1)))
    tiler = (cute.make_layout(3, stride=3), cute.make_layout((2, 4), stride=(1, 8)))
    divided = cute.zipped_divide(matrix, tiler)
    print(f"divided: {divided.shape}")
    # Each element is in exactly one tile, so both layouts have the same offsets.
    assert sorted(divided(i) for i in range(cute.size(divided))) == sorted(matrix(i) for i in range(cute.size(matrix)))


threads_and_values()
division()
