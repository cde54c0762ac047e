"""Errors of tensors and signals of several GPUs."""

import numpy as np

import cute_dialect.lang as cute

OUT = np.zeros(32, np.float32)


@cute.kernel
def call_kernel(f: cute.Constexpr, x: cute.Symmetric, s: cute.Signals, out: cute.Tensor):
    f(x, s)


@cute.jit
def call(f: cute.Constexpr, x: cute.Symmetric, s: cute.Signals, out: cute.Tensor):
    call_kernel(f, x, s, out).launch(grid=1, block=32)


def run(f, ranks=2, **options):
    """Run a kernel that calls ``f(x, s)`` on each rank."""
    with cute.testing.ranks(ranks) as world:
        x, s = world.symmetric(32, cute.Float32, name="x"), world.signals()
        world.run(lambda rank: call(f, x.on(rank), s.on(rank), OUT, **options))

# ===== the peer of an ordinary tensor
run(lambda x, s: cute.peer(x.local, 1))
#: KernelTypeError
#: ranks.py:1:18: error F122: cute.peer needs a symmetric tensor, got Tensor
#:     1 | run(lambda x, s: cute.peer(x.local, 1))
#:       |                  ^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== a rank that does not exist
run(lambda x, s: x.peer(2))
#: KernelTypeError
#: ranks.py:1:18: error F122: cute.peer: there is no rank 2; the tensor has 2 ranks
#:     1 | run(lambda x, s: x.peer(2))
#:       |                  ^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== an element of a symmetric tensor
run(lambda x, s: x[0])
#: KernelTypeError
#: ranks.py:1:18: error F122: a cute.Symmetric has no elements; index its tensor x.local or x.peer(rank)
#:     1 | run(lambda x, s: x[0])
#:       |                  ^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== the size of a symmetric tensor
run(lambda x, s: cute.size(x))
#: LayoutError
#: ranks.py:1:18: error F240: cute.size needs a shape, layout, tensor or tiled operation, got Symmetric
#:     1 | run(lambda x, s: cute.size(x))
#:       |                  ^^^^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== a wait for a rank that does not exist
run(lambda x, s: s.wait(0, 2, 1))
#: KernelTypeError
#: ranks.py:1:18: error F122: Signals.wait: there is no rank 2; the signals have 2 ranks
#:     1 | run(lambda x, s: s.wait(0, 2, 1))
#:       |                  ^^^^^^^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== a rank that does not exist, at run time
run(lambda x, s: x.peer(x.rank + 1)[0])
#: InterpError
#: cute_dialect/lang/ranks.py:98:42: error: out-of-bounds read of tensor 'x': index 2 is outside [0, 2); access it under an 'if' that tests the index
#:     there = cute.make_ptr(pointer.dtype, x.table[rank], "gmem", assumed_align=pointer.alignment)
#:                                          ^~~~~~~
#: cute_dialect/lang/ranks.py:77:16: note: in 'peer', called from here
#:         return peer(self, rank)
#:                ^~~~
#: ranks.py:1:18: note: in 'Symmetric.peer', called from here
#: run(lambda x, s: x.peer(x.rank + 1)[0])
#:                  ^~~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0) of rank 1

# ===== a signal after something unknown
run(lambda x, s: s.set(0, 0, 1, after="tma"))
#: KernelTypeError
#: ranks.py:1:18: error F122: Signals.set: after must be None or 'bulk', got 'tma'
#:     1 | run(lambda x, s: s.set(0, 0, 1, after="tma"))
#:       |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== a wait before something unknown
run(lambda x, s: s.wait(0, 0, 1, then="bulk"))
#: KernelTypeError
#: ranks.py:1:18: error F122: Signals.wait: then must be None or 'tma', got 'bulk'
#:     1 | run(lambda x, s: s.wait(0, 0, 1, then="bulk"))
#:       |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== a world without ranks
run(lambda x, s: None, ranks=0)
#: UsageError
#: ranks: count must be an integer of at least 1, got 0

# ===== signals without slots
with cute.testing.ranks(2) as world:
    world.signals(0)
#: UsageError
#: signals: slots must be an integer of at least 1, got 0

# ===== an option of one call
run(lambda x, s: None, reports=["banks"])
#: OptionError
#: reports: ranks run together, so this is no option of one call
#: called from preamble.py:24:32

# ===== a call outside of world.run
with cute.testing.ranks(2) as world:
    x, s = world.symmetric(32, cute.Float32, name="x"), world.signals()
    call(lambda x, s: s.set(0, 0, 1), x.on(1), s.on(1), OUT, device="cpu")
#: InterpError
#: cute_dialect/lang/ranks.py:128:9: error: out-of-bounds store of 8 bytes: an address of rank 1 in cute.testing.ranks, but this call runs on its own; make the call in the function that is passed to world.run
#:         cute.arch.store(self._word(rank, slot, self.words.rank), cute.Int64(value), sem="release", scope="sys")
#:         ^~~~~~~~~~~~~~~
#: ranks.py:3:23: note: in 'Signals.set', called from here
#:     call(lambda x, s: s.set(0, 0, 1), x.on(1), s.on(1), OUT, device="cpu")
#:                       ^~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0)
#:   address 0x…

# ===== an array of the wrong kind
call(lambda x, s: None, OUT, OUT, OUT, device="cpu")
#: KernelTypeError
#: ranks.py:1:1: error F122: argument 'x' must be a cute.Symmetric, got ndarray array([0., 0., 0., 0., 0., 0., 0., 0.…
#:     1 | call(lambda x, s: None, OUT, OUT, OUT, device="cpu")
#:       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#: hint: pass world.symmetric(shape, dtype).on(rank)
