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
#: ranks.py:1:18: error F122: cute.peer: there is no rank 2; ranks are 0 to 1
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
#: ranks.py:1:18: error F122: Signals.wait: there is no rank 2; ranks are 0 to 1
#:     1 | run(lambda x, s: s.wait(0, 2, 1))
#:       |                  ^^^^^^^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== a rank that does not exist, at run time
run(lambda x, s: x.peer(x.rank + 1)[0])
#: InterpError
#: ranks.py:1:18: error: cute.peer: there is no rank 2; ranks are 0 to 1
#: run(lambda x, s: x.peer(x.rank + 1)[0])
#:                  ^~~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0) of rank 1

# ===== the tensor of a rank that does not exist, at run time
run(lambda x, s: x.peer(x.rank - 1)[0])
#: InterpError
#: ranks.py:1:18: error: cute.peer: there is no rank -1; ranks are 0 to 1
#: run(lambda x, s: x.peer(x.rank - 1)[0])
#:                  ^~~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0) of rank 0

# ===== a wait for a rank that does not exist, at run time
run(lambda x, s: s.wait(0, x.rank + 1, 0))
#: InterpError
#: ranks.py:1:18: error: Signals.wait: there is no rank 2; ranks are 0 to 1
#: run(lambda x, s: s.wait(0, x.rank + 1, 0))
#:                  ^~~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0) of rank 1

# ===== a wait for a slot that does not exist
run(lambda x, s: s.wait(7, 0, 1))
#: InterpError
#: ranks.py:1:18: error: Signals.wait: there is no slot 7; the only slot is 0
#: run(lambda x, s: s.wait(7, 0, 1))
#:                  ^~~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0) of rank 0

# ===== a signal of a slot that does not exist, at run time
run(lambda x, s: s.set(0, x.rank + 1, 1), ranks=1)
#: InterpError
#: ranks.py:1:18: error: Signals.set: there is no slot 1; the only slot is 0
#: run(lambda x, s: s.set(0, x.rank + 1, 1), ranks=1)
#:                  ^~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0)

# ===== a negative slot
run(lambda x, s: s.add(0, -1))
#: KernelTypeError
#: ranks.py:1:18: error F122: Signals.add: there is no slot -1; slots start at 0
#:     1 | run(lambda x, s: s.add(0, -1))
#:       |                  ^^^^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== a signal to a rank that does not exist, at run time
run(lambda x, s: s.add(x.rank + 1, 0))
#: InterpError
#: ranks.py:1:18: error: Signals.add: there is no rank 2; ranks are 0 to 1
#: run(lambda x, s: s.add(x.rank + 1, 0))
#:                  ^~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0) of rank 1

# ===== a count that falls
run(lambda x, s: s.add(0, 0, -1))
#: KernelTypeError
#: ranks.py:1:18: error F122: Signals.add: signals only rise, so value must be at least 0, got -1
#:     1 | run(lambda x, s: s.add(0, 0, -1))
#:       |                  ^^^^^^^^^^^^^^^
#: called from preamble.py:12:5  f(x, s)
#: called from preamble.py:17:5  call_kernel(f, x, s, out).launch(grid=1, block=32)
#: called from preamble.py:24:32  call(f, x.on(rank), s.on(rank), OUT, **options)

# ===== a count that falls at run time
run(lambda x, s: s.add(0, 0, x.rank - 1))
#: InterpError
#: ranks.py:1:18: error: assertion failed: Signals.add: signals only rise, so value must be at least 0; here -1 >= 0 is false
#: run(lambda x, s: s.add(0, 0, x.rank - 1))
#:                  ^~~~~
#: preamble.py:12:5: note: in '<lambda>', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0) of rank 0

# ===== a signal that falls
def falls(x, s):
    if cute.arch.thread_idx().x == 0:
        after = (x.rank + 1) % x.ranks
        s.set(after, 0, 5)
        s.set(after, 0, 1)
        s.wait(0, after, 1)

run(falls)
#: InterpError
#: ranks.py:5:9: error: the signal in 'signals 1' of rank 1 at byte offset 0, element (0, 0, 0) falls from 5 to 1, so a wait for 5 may miss it; signals only rise, so set a greater value, such as the number of the call
#:         s.set(after, 0, 1)
#:         ^~~~~
#: preamble.py:12:5: note: in 'falls', called from here
#:     f(x, s)
#:     ^
#:   thread (0, 0, 0) of block (0, 0, 0) of rank 0

# ===== an array that two ranks write
def writes(x, out):
    out[cute.arch.thread_idx().x] = x.rank

@cute.kernel
def write_kernel(x: cute.Symmetric, out: cute.Tensor):
    writes(x, out)

@cute.jit
def write(x: cute.Symmetric, out: cute.Tensor):
    write_kernel(x, out).launch(grid=1, block=32)

with cute.testing.ranks(2) as world:
    x, out = world.symmetric(1, cute.Int32), np.zeros(32, np.int32)
    world.run(lambda rank: write(x.on(rank), out))
#: InterpError
#: ranks.py:2:5: error: argument 3 "out" is written by rank 1, but rank 0 writes the same array: each rank has memory of its own; pass each rank an array of its own, or use world.symmetric
#:     out[cute.arch.thread_idx().x] = x.rank
#:     ^~~
#: ranks.py:6:5: note: in 'writes', called from here
#:     writes(x, out)
#:     ^~~~~~
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

# ===== a symmetric tensor of a negative size
with cute.testing.ranks(2) as world:
    world.symmetric(-1, cute.Float32)
#: UsageError
#: symmetric: shape must consist of integers of at least 0, got -1

# ===== a symmetric tensor of an element type that there is not
with cute.testing.ranks(2) as world:
    world.symmetric(32, "foo")
#: UsageError
#: symmetric: dtype must be a type such as cute.BFloat16 or a dtype of numpy, got 'foo'

# ===== the symmetric tensor of a rank that does not exist
with cute.testing.ranks(2) as world:
    world.symmetric(32, cute.Float32).on(2)
#: UsageError
#: on: there is no rank 2; the tensor has 2 ranks

# ===== the symmetric tensor of another rank
with cute.testing.ranks(2) as world:
    x = world.symmetric(32, cute.Float32)
    world.run(lambda rank: x.on(1 - rank))
#: UsageError
#: on: got rank 1 in the call of rank 0; pass the number that world.run passes

# ===== the symmetric tensor of another world
with cute.testing.ranks(2) as world, cute.testing.ranks(2) as other:
    x = other.symmetric(32, cute.Float32)
    world.run(lambda rank: x.on(rank))
#: UsageError
#: on: the tensor belongs to another world; allocate it by symmetric or signals of this one

# ===== a run in the function of a run
with cute.testing.ranks(2) as world:
    world.run(lambda rank: world.run(lambda rank: None))
#: UsageError
#: run: called in the function of another run; call it after that one has returned

# ===== a barrier in the function of a run
with cute.testing.ranks(2) as world:
    world.run(lambda rank: world.barrier())
#: UsageError
#: barrier: no launch has ended in the function of run; call it between two calls of run

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
#: ranks.py:3:23: error: out-of-bounds store of 8 bytes: an address of rank 1 in cute.testing.ranks, but this call runs on its own; make the call in the function that is passed to world.run
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
