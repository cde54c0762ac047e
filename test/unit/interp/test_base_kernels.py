"""Base-level kernels on the interpreter, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer

MEMREF = "!llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, i32)>)>"

ADD = f"""
    %m = llvm.extractvalue %A[1, 0, 0] : {MEMREF}
    %n = llvm.extractvalue %A[1, 0, 1] : {MEMREF}
    %pa = llvm.extractvalue %A[0] : {MEMREF}
    %pb = llvm.extractvalue %B[0] : {MEMREF}
    %pc = llvm.extractvalue %C[0] : {MEMREF}
    %lda = llvm.extractvalue %A[1, 1] : {MEMREF}
    %ldb = llvm.extractvalue %B[1, 1] : {MEMREF}
    %ldc = llvm.extractvalue %C[1, 1] : {MEMREF}
    %four = arith.constant 4 : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %row = "nvvm.read.ptx.sreg.ctaid.y"() : () -> i32
    %first = arith.muli %cta, %ntid : i32
    %t0 = arith.addi %first, %tid : i32
    %col0 = arith.muli %t0, %four : i32
    scf.for %i = %c0 to %four step %c1 : i32 {{
      %col = arith.addi %col0, %i : i32
      %in = arith.cmpi slt, %col, %n : i32
      scf.if %in {{
        %oa0 = arith.muli %row, %lda : i32
        %oa = arith.addi %oa0, %col : i32
        %ob0 = arith.muli %row, %ldb : i32
        %ob = arith.addi %ob0, %col : i32
        %oc0 = arith.muli %row, %ldc : i32
        %oc = arith.addi %oc0, %col : i32
        %qa = llvm.getelementptr %pa[%oa] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %qb = llvm.getelementptr %pb[%ob] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %qc = llvm.getelementptr %pc[%oc] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %x = llvm.load %qa {{alignment = 4 : i64}} : !llvm.ptr<1> -> f32
        %y = llvm.load %qb {{alignment = 4 : i64}} : !llvm.ptr<1> -> f32
        %z = arith.addf %x, %y : f32
        llvm.store %z, %qc {{alignment = 4 : i64}} : f32, !llvm.ptr<1>
      }}
    }}
    llvm.return
"""


def matrix(array: np.ndarray, name: str, rows: int, cols: int, ld: int) -> tuple[object, ...]:
    item = array.itemsize
    window = [(r * ld * item, cols * item) for r in range(rows)]
    return (Pointer(array, 0, name, window), ((rows, cols), ld))


@pytest.mark.parametrize("width", ["auto", "warp"])
@pytest.mark.parametrize(("m", "n", "pad"), [(1, 1, 0), (17, 129, 3), (5, 1024, 0)])
def test_masked_add_of_structs(m: int, n: int, pad: int, width: str) -> None:
    module = kernel(ADD, f"%A: {MEMREF}, %B: {MEMREF}, %C: {MEMREF}")
    rng = np.random.default_rng(0)
    ld = n + pad
    a, b = (rng.standard_normal((m, ld)).astype(np.float32) for _ in range(2))
    c = np.full((m, ld), -7, np.float32)
    args = [matrix(x, name, m, n, ld) for x, name in ((a, "a"), (b, "b"), (c, "c"))]
    report = run_kernel(module, "k", args, grid=(-(-n // 256), m), block=(64,), width=width)
    assert np.array_equal(c[:, :n], (a + b)[:, :n])
    assert (c[:, n:] == -7).all()
    assert report.loads == 2 * m * n
    assert report.stores == m * n
    assert report.blocks == m * -(-n // 256)


def test_store_into_padding_is_reported() -> None:
    module = kernel(ADD, f"%A: {MEMREF}, %B: {MEMREF}, %C: {MEMREF}")
    a = np.zeros((4, 100), np.float32)
    c = np.zeros((4, 100), np.float32)
    full = (Pointer(a, 0, "a"), ((4, 100), 100))
    padded = matrix(c, "c", 4, 90, 100)
    with pytest.raises(InterpError, match=r'argument 2 "c" at byte offset 368 is padding') as e:
        run_kernel(module, "k", [full, full, padded], grid=(1, 4), block=(32,))
    assert e.value.kind == "oob"


SCALE = """
    %o = llvm.mul %cta, %ntid : i32
    %i = llvm.add %o, %tid : i32
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
"""


def test_out_of_bounds_names_thread_buffer_and_offset() -> None:
    module = kernel(
        SCALE + "llvm.store %i, %p {alignment = 4 : i64} : i32, !llvm.ptr<1>\nllvm.return", "%a: !llvm.ptr<1>"
    )
    a = np.zeros(70, np.int32)
    with pytest.raises(InterpError) as e:
        run_kernel(module, "k", [Pointer(a, name="a")], grid=(3,), block=(32,))
    text = str(e.value)
    assert 'out-of-bounds store of 4 bytes: argument 0 "a" (280 bytes) at byte offset 280: 4 bytes past its end' in text
    assert "thread (6, 0, 0) of block (2, 0, 0)" in text
    assert "llvm.store" in text
    assert e.value.kind == "oob"
    assert e.value.thread == (6, 0, 0)
    assert e.value.block == (2, 0, 0)


def test_location_of_the_op_is_in_the_message() -> None:
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

    module = kernel("%x = llvm.load %a : !llvm.ptr<1> -> i32\nllvm.return", "%a: !llvm.ptr<1>")
    for op in module.walk():
        op.location = FileLineColLoc(StringAttr("add.mlir"), IntAttr(12), IntAttr(7))
    with pytest.raises(InterpError, match=r"^add\.mlir:12:7: error: out-of-bounds load"):
        run_kernel(module, "k", [Pointer(np.zeros(1, np.int16))])


def test_misaligned_vector_load() -> None:
    module = kernel(
        SCALE
        + """
        %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    with pytest.raises(
        InterpError, match=r"misaligned load of 16 bytes at 0x.*, which is .* bytes past a multiple of 16"
    ) as e:
        run_kernel(module, "k", [Pointer(np.zeros(64, np.int32))], block=(8,))
    assert e.value.kind == "misaligned"
    assert e.value.thread == (1, 0, 0)


def test_vector_loads_by_alignment() -> None:
    body = """
        %c4 = arith.constant 4 : i32
        %i = arith.muli %tid, %c4 : i32
        %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
        %q = llvm.getelementptr %o[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
        %v = llvm.load %p {alignment = ALIGN : i64} : !llvm.ptr<1> -> vector<4xf16>
        %w = arith.addf %v, %v : vector<4xf16>
        llvm.store %w, %q {alignment = ALIGN : i64} : vector<4xf16>, !llvm.ptr<1>
        llvm.return
    """
    for align in (1, 2, 8):
        a = np.arange(256, dtype=np.float16)
        o = np.zeros(256, np.float16)
        module = kernel(body.replace("ALIGN", str(align)), "%a: !llvm.ptr<1>, %o: !llvm.ptr<1>")
        run_kernel(module, "k", [Pointer(a), Pointer(o)], block=(64,))
        assert np.array_equal(o, a + a)


def test_readonly_array_is_not_written() -> None:
    module = kernel("llvm.store %tid, %a : i32, !llvm.ptr<1>\nllvm.return", "%a: !llvm.ptr<1>")
    a = np.zeros(4, np.int32)
    a.flags.writeable = False
    with pytest.raises(InterpError, match="read-only"):
        run_kernel(module, "k", [Pointer(a)], block=(4,))


@pytest.mark.parametrize("width", ["auto", "warp"])
def test_divergent_while_loop(width: str) -> None:
    """Each thread counts the Collatz steps of its own number, so lanes leave the loop in different iterations."""
    module = kernel(
        """
        %c1 = arith.constant 1 : i32
        %c2 = arith.constant 2 : i32
        %c3 = arith.constant 3 : i32
        %c0 = arith.constant 0 : i32
        %o = arith.muli %cta, %ntid : i32
        %i = arith.addi %o, %tid : i32
        %n0 = arith.addi %i, %c1 : i32
        %n, %steps = scf.while (%x = %n0, %s = %c0) : (i32, i32) -> (i32, i32) {
          %go = arith.cmpi ne, %x, %c1 : i32
          scf.condition(%go) %x, %s : i32, i32
        } do {
        ^bb0(%x: i32, %s: i32):
          %r = arith.remsi %x, %c2 : i32
          %even = arith.cmpi eq, %r, %c0 : i32
          %y = scf.if %even -> (i32) {
            %h = arith.divsi %x, %c2 : i32
            scf.yield %h : i32
          } else {
            %t = arith.muli %x, %c3 : i32
            %u = arith.addi %t, %c1 : i32
            scf.yield %u : i32
          }
          %s1 = arith.addi %s, %c1 : i32
          scf.yield %y, %s1 : i32, i32
        }
        %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %steps, %p : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )

    def collatz(n: int) -> int:
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    a = np.zeros(96, np.int32)
    run_kernel(module, "k", [Pointer(a)], grid=(2,), block=(48,), width=width)
    assert a.tolist() == [collatz(i + 1) for i in range(96)]


def test_divergent_for_bounds() -> None:
    module = kernel(
        """
        %c1 = arith.constant 1 : i32
        %c0 = arith.constant 0 : i32
        %c3 = arith.constant 3 : i32
        %sum = scf.for %j = %c0 to %tid step %c3 iter_args(%s = %c0) -> (i32) : i32 {
          %t = arith.addi %s, %j : i32
          scf.yield %t : i32
        }
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %sum, %p : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    a = np.zeros(40, np.int32)
    run_kernel(module, "k", [Pointer(a)], block=(40,))
    assert a.tolist() == [sum(range(0, t, 3)) for t in range(40)]


@pytest.mark.parametrize("width", ["auto", "warp"])
def test_divergent_cfg_keeps_values_of_exited_lanes(width: str) -> None:
    """%v is defined in a loop with two exits and used after it, by lanes that left in different iterations."""
    module = kernel(
        """
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c100 = arith.constant 100 : i32
        %c7 = arith.constant 7 : i32
        cf.br ^head(%c0 : i32)
      ^head(%i: i32):
        %v = arith.muli %i, %c100 : i32
        %done = arith.cmpi sge, %i, %tid : i32
        cf.cond_br %done, ^exit, ^body
      ^body:
        %j = arith.addi %i, %c1 : i32
        %early = arith.cmpi eq, %j, %c7 : i32
        cf.cond_br %early, ^other, ^head(%j : i32)
      ^other:
        %w = arith.subi %c0, %tid : i32
        cf.br ^store(%w : i32)
      ^exit:
        %x = arith.addi %v, %tid : i32
        cf.br ^store(%x : i32)
      ^store(%r: i32):
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %r, %p : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    a = np.zeros(32, np.int32)
    run_kernel(module, "k", [Pointer(a)], block=(32,), width=width)
    assert a.tolist() == [101 * t if t < 7 else -t for t in range(32)]


def test_cfg_reconverges_after_a_branch() -> None:
    """All 32 lanes reconverge after the branch, so a full-warp shuffle is legal there but not inside it."""
    body = """
        %c1 = arith.constant 1 : i32
        %full = arith.constant -1 : i32
        %c31 = arith.constant 31 : i32
        %b = arith.andi %tid, %c1 : i32
        %odd = arith.trunci %b : i32 to i1
        cf.cond_br %odd, ^l, ^r
      ^l:
        %x = arith.addi %tid, %tid : i32
        LEFT
        cf.br ^join(%x : i32)
      ^r:
        cf.br ^join(%tid : i32)
      ^join(%v: i32):
        %s = "nvvm.shfl.sync"(%full, %v, %c1, %c31) <{kind = #nvvm<shfl_kind bfly>}> : (i32, i32, i32, i32) -> i32
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %s, %p : i32, !llvm.ptr<1>
        llvm.return
    """
    a = np.zeros(32, np.int32)
    run_kernel(kernel(body.replace("LEFT", ""), "%a: !llvm.ptr<1>"), "k", [Pointer(a)], block=(32,))
    v = [2 * t if t % 2 else t for t in range(32)]
    assert a.tolist() == [v[t ^ 1] for t in range(32)]
    inside = '"nvvm.bar.warp.sync"(%full) : (i32) -> ()'
    with pytest.raises(InterpError, match="contains lane 0, which is still running but did not arrive") as e:
        run_kernel(kernel(body.replace("LEFT", inside), "%a: !llvm.ptr<1>"), "k", [Pointer(a)], block=(32,))
    assert e.value.kind == "sync"


def test_switch() -> None:
    module = kernel(
        """
        %c0 = arith.constant 0 : i32
        %c10 = arith.constant 10 : i32
        %c20 = arith.constant 20 : i32
        "cf.switch"(%tid, %c0, %c10)[^d, ^a, ^b] <{case_values = dense<[1, 5]> : vector<2xi32>,
            case_operand_segments = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 1, 1>}>
            : (i32, i32, i32) -> ()
      ^d(%x: i32):
        cf.br ^e(%x : i32)
      ^a(%y: i32):
        cf.br ^e(%y : i32)
      ^b:
        cf.br ^e(%c20 : i32)
      ^e(%r: i32):
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %r, %p : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    a = np.full(8, -1, np.int32)
    run_kernel(module, "k", [Pointer(a)], block=(8,))
    assert a.tolist() == [0, 10, 0, 0, 0, 20, 0, 0]


REVERSE = """
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %c1 = arith.constant 1 : i32
    %o = arith.muli %cta, %ntid : i32
    %i = arith.addi %o, %tid : i32
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %p : !llvm.ptr<1> -> i32
    %s = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %x, %s : i32, !llvm.ptr<3>
    BARRIER
    %last = arith.subi %ntid, %c1 : i32
    %j = arith.subi %last, %tid : i32
    %q = llvm.getelementptr %d[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %y = llvm.load %q : !llvm.ptr<3> -> i32
    llvm.store %y, %p : i32, !llvm.ptr<1>
    llvm.return
"""
BARRIER0 = '"nvvm.barrier0"() : () -> ()'


@pytest.mark.parametrize(
    ("width", "schedule", "seed"),
    [
        ("auto", "round-robin", 0),
        ("warp", "round-robin", 0),
        ("auto", "reverse", 0),
        ("auto", "random", 1),
        ("auto", "random", 2),
    ],
)
def test_shared_memory_reverse(width: str, schedule: str, seed: int) -> None:
    module = kernel(REVERSE.replace("BARRIER", BARRIER0), "%a: !llvm.ptr<1>", DSMEM)
    a = np.arange(5 * 96, dtype=np.int32)
    want = a.reshape(5, 96)[:, ::-1].ravel().copy()
    report = run_kernel(
        module, "k", [Pointer(a)], grid=(5,), block=(96,), dynamic_smem=384, width=width, schedule=schedule, seed=seed
    )
    assert np.array_equal(a, want)
    assert report.warnings == []
    assert report.lanes == (32 if width == "warp" or schedule != "round-robin" else 480)


def test_missing_barrier_reads_unwritten_shared_memory() -> None:
    module = kernel(REVERSE.replace("BARRIER", ""), "%a: !llvm.ptr<1>", DSMEM)
    a = np.arange(64, dtype=np.int32)
    report = run_kernel(module, "k", [Pointer(a)], block=(64,), dynamic_smem=256, width="warp")
    assert report.warnings == ["load of shared memory at byte offset 252, which nothing has written"]


def test_shared_memory_bounds() -> None:
    module = kernel(REVERSE.replace("BARRIER", BARRIER0), "%a: !llvm.ptr<1>", DSMEM)
    a = np.arange(64, dtype=np.int32)
    with pytest.raises(InterpError, match=r"store of 4 bytes in shared memory \(100 bytes\) at byte offset 100"):
        run_kernel(module, "k", [Pointer(a)], block=(64,), dynamic_smem=100)


def test_static_shared_memory_and_generic_pointers() -> None:
    """Static shared arrays are consecutive. A generic pointer that is stored and cast back is unchanged."""
    globals_ = """
      "llvm.mlir.global"() <{addr_space = 3 : i32, global_type = !llvm.array<3 x i8>,
          linkage = #llvm.linkage<"internal">,
          sym_name = "x"}> ({}) : () -> ()
      "llvm.mlir.global"() <{addr_space = 3 : i32, alignment = 8 : i64, global_type = !llvm.array<8 x i64>,
          linkage = #llvm.linkage<"internal">, sym_name = "y"}> ({}) : () -> ()
    """
    module = kernel(
        """
        %x = llvm.mlir.addressof @x : !llvm.ptr<3>
        %y = llvm.mlir.addressof @y : !llvm.ptr<3>
        %g = "llvm.addrspacecast"(%y) : (!llvm.ptr<3>) -> !llvm.ptr
        %e = llvm.getelementptr %g[0, %tid] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<8 x i64>
        %v = arith.extsi %tid : i32 to i64
        llvm.store %v, %e : i64, !llvm.ptr
        %back = "llvm.addrspacecast"(%e) : (!llvm.ptr) -> !llvm.ptr<3>
        %w = llvm.load %back : !llvm.ptr<3> -> i64
        %xi = llvm.ptrtoint %x : !llvm.ptr<3> to i64
        %yi = llvm.ptrtoint %y : !llvm.ptr<3> to i64
        %d = arith.subi %yi, %xi : i64
        %r = arith.addi %w, %d : i64
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
        llvm.store %r, %p : i64, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
        globals_,
    )
    for width in ("auto", "warp"):
        a = np.zeros(8, np.int64)
        run_kernel(module, "k", [Pointer(a)], grid=(2,), block=(8,), width=width)
        assert a.tolist() == [8 + t for t in range(8)]


def test_alloca_is_private_to_each_thread() -> None:
    module = kernel(
        """
        %c4 = arith.constant 4 : i32
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %f = llvm.alloca %c4 x i32 {alignment = 16 : i64} : (i32) -> !llvm.ptr
        scf.for %i = %c0 to %c4 step %c1 : i32 {
          %q = llvm.getelementptr %f[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %v = arith.addi %tid, %i : i32
          llvm.store %v, %q : i32, !llvm.ptr
        }
        %k = arith.andi %tid, %c1 : i32
        %one = llvm.getelementptr %f[%k] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        llvm.store %c0, %one : i32, !llvm.ptr
        %all = llvm.load %f {alignment = 16 : i64} : !llvm.ptr -> vector<4xi32>
        %o = arith.muli %tid, %c4 : i32
        %p = llvm.getelementptr %a[%o] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %all, %p {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    for width in ("auto", "warp"):
        a = np.zeros((40, 4), np.int32)
        run_kernel(module, "k", [Pointer(a)], block=(40,), width=width)
        want = np.arange(40)[:, None] + np.arange(4)
        want[np.arange(40), np.arange(40) & 1] = 0
        assert np.array_equal(a, want)


def test_alloca_bounds() -> None:
    module = kernel(
        """
        %c4 = arith.constant 4 : i32
        %f = llvm.alloca %c4 x i32 : (i32) -> !llvm.ptr
        %q = llvm.getelementptr %f[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        llvm.store %tid, %q : i32, !llvm.ptr
        llvm.return
        """
    )
    with pytest.raises(InterpError, match="in local memory"):
        run_kernel(module, "k", [], block=(64,))


def test_atomics() -> None:
    module = kernel(
        """
        %c1 = arith.constant 1 : i32
        %c4 = arith.constant 4 : i32
        %k = arith.remsi %tid, %c4 : i32
        %h = llvm.getelementptr %a[%k] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %u = "llvm.atomicrmw"(%h, %c1) <{bin_op = 1 : i64, ordering = 2 : i64}> : (!llvm.ptr<1>, i32) -> i32
        %t = "llvm.atomicrmw"(%n, %c1) <{bin_op = 1 : i64, ordering = 2 : i64}> : (!llvm.ptr<1>, i32) -> i32
        %x = arith.sitofp %tid : i32 to f32
        %m = "llvm.atomicrmw"(%f, %x) <{bin_op = 11 : i64, ordering = 2 : i64}> : (!llvm.ptr<1>, f32) -> f32
        %p = llvm.getelementptr %o[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %c1, %p : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>, %n: !llvm.ptr<1>, %f: !llvm.ptr<1>, %o: !llvm.ptr<1>",
    )
    for width in ("auto", "warp"):
        a, n, f, o = np.zeros(4, np.int32), np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros(192, np.int32)
        run_kernel(module, "k", [Pointer(v) for v in (a, n, f, o)], grid=(2,), block=(96,), width=width)
        assert a.tolist() == [48] * 4
        assert n.tolist() == [192]
        assert f.tolist() == [2 * sum(range(96))]
        assert (o == 1).all()  # Each thread got a distinct ticket.


def test_printf_by_gpu_dialect_and_vprintf() -> None:
    globals_ = """
      "llvm.mlir.global"() <{addr_space = 0 : i32, constant, global_type = !llvm.array<11 x i8>,
          linkage = #llvm.linkage<"internal">, sym_name = "fmt", value = "i=%d v=%.2f\\00"}> ({}) : () -> ()
      llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
    """
    module = kernel(
        """
        %one = arith.constant 1 : i32
        %d = arith.sitofp %tid : i32 to f64
        %buf = llvm.alloca %one x !llvm.struct<(i32, f64)> {alignment = 8 : i64} : (i32) -> !llvm.ptr
        llvm.store %tid, %buf : i32, !llvm.ptr
        %b1 = llvm.getelementptr %buf[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, f64)>
        llvm.store %d, %b1 : f64, !llvm.ptr
        %f = llvm.mlir.addressof @fmt : !llvm.ptr
        %r = "llvm.call"(%f, %buf) <{callee = @vprintf, op_bundle_sizes = array<i32>,
            operandSegmentSizes = array<i32: 2, 0>}> : (!llvm.ptr, !llvm.ptr) -> i32
        %c = arith.cmpi eq, %tid, %one : i32
        scf.if %c {
          "gpu.printf"(%tid, %d) <{format = "only %d: %5.1f|\\n"}> : (i32, f64) -> ()
        }
        llvm.return
        """,
        "",
        globals_,
    )
    report = run_kernel(module, "k", [], block=(3,))
    assert report.printf == ["i=0 v=0.00", "i=1 v=1.00", "i=2 v=2.00", "only 1:   1.0|\n"]


def test_device_function_call_in_divergent_code() -> None:
    globals_ = """
      llvm.func @square(%x: i32) -> i32 {
        %c0 = llvm.mlir.constant(0 : i32) : i32
        %one = llvm.mlir.constant(1 : i32) : i32
        %s = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
        llvm.store %x, %s : i32, !llvm.ptr
        %neg = llvm.icmp "slt" %x, %c0 : i32
        llvm.cond_br %neg, ^a, ^b
      ^a:
        llvm.return %c0 : i32
      ^b:
        %v = llvm.load %s : !llvm.ptr -> i32
        %y = llvm.mul %v, %x : i32
        llvm.return %y : i32
      }
    """
    module = kernel(
        """
        %one = arith.constant 1 : i32
        %c5 = arith.constant 5 : i32
        %keep = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
        llvm.store %tid, %keep : i32, !llvm.ptr
        %x = arith.subi %tid, %c5 : i32
        %c = arith.cmpi ne, %tid, %one : i32
        %r = scf.if %c -> (i32) {
          %s = "llvm.call"(%x) <{callee = @square, op_bundle_sizes = array<i32>,
              operandSegmentSizes = array<i32: 1, 0>}> : (i32) -> i32
          scf.yield %s : i32
        } else {
          scf.yield %x : i32
        }
        %t = llvm.load %keep : !llvm.ptr -> i32
        %p = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %r, %p : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
        globals_,
    )
    a = np.zeros(12, np.int32)
    run_kernel(module, "k", [Pointer(a)], block=(12,))
    assert a.tolist() == [-4 if t == 1 else max(t - 5, 0) ** 2 for t in range(12)]


def test_a_sample_of_blocks_and_progress() -> None:
    module = kernel(SCALE + "llvm.store %i, %p : i32, !llvm.ptr<1>\nllvm.return", "%a: !llvm.ptr<1>")
    a = np.full(40, -1, np.int32)
    seen: list[tuple[int, int]] = []
    run_kernel(module, "k", [Pointer(a)], 10, 4, blocks=[2, 7], progress=lambda p: seen.append((p.done, p.total)))
    assert a.tolist() == [i if i // 4 in (2, 7) else -1 for i in range(40)]
    assert seen == [(2, 2)]


def test_the_same_array_twice_is_one_buffer() -> None:
    module = kernel(
        """
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %x = llvm.load %p : !llvm.ptr<1> -> i32
        llvm.store %x, %q : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>",
    )
    a = np.arange(8, dtype=np.int32)
    run_kernel(module, "k", [Pointer(a), Pointer(a, byte_offset=16)], block=(4,))
    assert a.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("own", [True, False])
def test_ops_are_found_by_name(own: bool) -> None:
    """Ops of our upstream dialects and of xDSL's own dialects run the same way."""
    t = "!llvm.struct<(i8, struct<(i64, ptr<3>)>, array<2 x i16>)>"
    module = kernel(
        f"""
        %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
        %c31 = arith.constant 31 : i32
        %c1 = arith.constant 1 : i32
        %full = arith.constant -1 : i32
        %f = llvm.getelementptr %d[0, 2, 1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, {t}
        %h = arith.trunci %tid : i32 to i16
        %last = arith.cmpi eq, %tid, %c31 : i32
        scf.if %last {{
          llvm.store %h, %f : i16, !llvm.ptr<3>
        }}
        "nvvm.barrier0"() : () -> ()
        %s = llvm.load %d : !llvm.ptr<3> -> {t}
        %v = llvm.extractvalue %s[2, 1] : {t}
        %w = arith.extsi %v : i16 to i32
        %x = "nvvm.shfl.sync"(%full, %tid, %c1, %c31) <{{kind = #nvvm<shfl_kind bfly>}}> : (i32, i32, i32, i32) -> i32
        %y = arith.addi %w, %x : i32
        %z = "llvm.atomicrmw"(%a, %y) <{{bin_op = 1 : i64, ordering = 2 : i64}}> : (!llvm.ptr<1>, i32) -> i32
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
        DSMEM,
        own=own,
    )
    a = np.zeros(1, np.int32)
    run_kernel(module, "k", [Pointer(a)], block=(32,), dynamic_smem=32)
    assert a.tolist() == [32 * 31 + sum(range(32))]


def test_errors_in_a_called_function_show_the_call() -> None:
    globals_ = """
      llvm.func @get(%p: !llvm.ptr<1>) -> i32 {
        %x = llvm.load %p : !llvm.ptr<1> -> i32
        llvm.return %x : i32
      }
    """
    module = kernel(
        """
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %x = "llvm.call"(%p) <{callee = @get, op_bundle_sizes = array<i32>,
            operandSegmentSizes = array<i32: 1, 0>}> : (!llvm.ptr<1>) -> i32
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
        globals_,
    )
    with pytest.raises(InterpError, match="out-of-bounds load") as e:
        run_kernel(module, "k", [Pointer(np.zeros(3, np.int32))], block=(4,))
    assert any(n.startswith("called from") and "@get" in n for n in e.value.notes)


def test_storing_poison_is_a_warning() -> None:
    module = kernel("%p = ub.poison : i32\nllvm.store %p, %a : i32, !llvm.ptr<1>\nllvm.return", "%a: !llvm.ptr<1>")
    report = run_kernel(module, "k", [Pointer(np.ones(1, np.int32))])
    assert report.warnings == ["1 stores of a poison (undefined) value: 0 was written"]


def test_an_unused_index_may_overflow() -> None:
    """cute-to-base computes i64 offsets in i32 too. If the i32 value overflows and is unused, there is no error."""
    body = """
        %big = arith.constant 2147483647 : i32
        %x = arith.addi %big, %ntid overflow<nsw> : i32
        %s0 = "llvm.mlir.undef"() : () -> !llvm.struct<(i32, i32)>
        %s1 = llvm.insertvalue %x, %s0[0] : !llvm.struct<(i32, i32)>
        %s2 = llvm.insertvalue %tid, %s1[1] : !llvm.struct<(i32, i32)>
        %v = llvm.extractvalue %s2[FIELD] : !llvm.struct<(i32, i32)>
        llvm.store %v, %a : i32, !llvm.ptr<1>
        llvm.return
    """
    a = np.ones(1, np.int32)
    run_kernel(kernel(body.replace("FIELD", "1"), "%a: !llvm.ptr<1>"), "k", [Pointer(a)])
    assert a.tolist() == [0]
    with pytest.raises(InterpError, match="overflows i32"):
        run_kernel(kernel(body.replace("FIELD", "0"), "%a: !llvm.ptr<1>"), "k", [Pointer(a)])
