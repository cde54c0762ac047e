"""Shared-memory bytes on the interpreter: data accesses to mbarriers, and reads of unwritten bytes."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer
from cute_dialect.interp.memory.buffers import Buffer, Contents
from cute_dialect.runtime.call_options import SCHEDULES

PARAMS = "%a: !llvm.ptr<1>"
FIRST = "; execute mbarrier.init before its first use"
HEAD = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    %x = arith.constant 7 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %bar = llvm.getelementptr %d[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %other = llvm.getelementptr %d[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %is0 = arith.cmpi eq, %tid, %c0 : i32
"""
INIT = '"nvvm.mbarrier.init"(%bar, %c1) : (!llvm.ptr<3>, i32) -> ()\n'
INVAL = '"nvvm.mbarrier.inval"(%bar) : (!llvm.ptr<3>) -> ()\n'
GENERIC = "%g = llvm.addrspacecast %bar : !llvm.ptr<3> to !llvm.ptr\n"
MID = "%q = llvm.getelementptr %d[36] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
WIDE = (
    "%q = llvm.getelementptr %d[24] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
    "%q16 = llvm.getelementptr %d[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
)
ROW = "%row = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>\n"


def run(body: str, threads: int = 32, schedule: str = "round-robin", **options: object) -> str:
    """Return the report of a kernel with dynamic shared memory and one array of zeros, or ""."""
    a = np.zeros(4096, np.int32)
    module = kernel(HEAD + body + "\nllvm.return", PARAMS, DSMEM)
    try:
        run_kernel(
            module, "k", [Pointer(a)], block=(threads,), dynamic_smem=1024, schedule=schedule,
            **{"checks": ["uninit"], **options},  # type: ignore[arg-type]
        )  # fmt: skip
    except InterpError as e:
        assert e.op or e.kind == "internal"
        return f"{e.kind}: {e.message}"
    return ""


TOUCHES = {
    "store": ("llvm.store %x, %bar : i32, !llvm.ptr<3>", "store of 4 bytes", 32),
    "store to its second half": (MID + "llvm.store %x, %q : i32, !llvm.ptr<3>", "store of 4 bytes", 36),
    "load": ("%v = llvm.load %bar : !llvm.ptr<3> -> i32", "load of 4 bytes", 32),
    "load of a byte": (MID + "%v = llvm.load %q : !llvm.ptr<3> -> i8", "load of 1 bytes", 36),
    "generic store": (GENERIC + "llvm.store %x, %g : i32, !llvm.ptr", "store of 4 bytes", 32),
    "generic load": (GENERIC + "%v = llvm.load %g : !llvm.ptr -> i64", "load of 8 bytes", 32),
    "vector store that begins before it": (
        WIDE + "%v = arith.constant dense<1> : vector<4xi32>\n"
        "llvm.store %v, %q {alignment = 8 : i64} : vector<4xi32>, !llvm.ptr<3>",
        "store of 16 bytes",
        32,
    ),
    "vector load": (WIDE + "%v = llvm.load %q16 : !llvm.ptr<3> -> vector<4xi32>", "load of 16 bytes", 32),
    "stores of a warp": (
        "%q = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n"
        "llvm.store %x, %q : i32, !llvm.ptr<3>",
        "store of 4 bytes",
        32,
    ),
    "atomic": ("%v = llvm.atomicrmw add %bar, %x monotonic : !llvm.ptr<3>, i32", "atomic of 4 bytes", 32),
    "compare and exchange": (
        "%v = llvm.cmpxchg %bar, %x, %c1 monotonic monotonic : !llvm.ptr<3>, i32",
        "atomic of 4 bytes",
        32,
    ),
    "inline store": (
        'nvvm.inline_ptx "st.shared.b32 [$0], $1;" ro(%bar, %x : !llvm.ptr<3>, i32)',
        "store of 4 bytes",
        32,
    ),
    "inline load": (
        '%v = nvvm.inline_ptx "ld.shared.b32 $0, [$1];" ro(%bar : !llvm.ptr<3>) -> i32',
        "load of 4 bytes",
        32,
    ),
    "cp.async": (
        "%q = llvm.getelementptr %d[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
        '"nvvm.cp.async.shared.global"(%q, %a) <{modifier = #nvvm<load_cache_modifier ca>, size = 16 : i32}> '
        ": (!llvm.ptr<3>, !llvm.ptr<1>) -> ()\n"
        '"nvvm.cp.async.wait.all"() : () -> ()',
        "cp.async write of 16 bytes",
        32,
    ),
    "stmatrix": (
        ROW + "nvvm.stmatrix %row, %x {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
        "eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32",
        "stmatrix of 16 bytes",
        32,
    ),
    "memset": (
        '%n = arith.constant 64 : i64\n%b = arith.constant 0 : i8\n'
        '"llvm.intr.memset"(%d, %b, %n) <{isVolatile = false}> : (!llvm.ptr<3>, i8, i64) -> ()',
        "memset of 64 bytes",
        32,
    ),
    "bulk copy": (
        "scf.if %is0 {\n"
        '"nvvm.mbarrier.init"(%other, %c1) : (!llvm.ptr<3>, i32) -> ()\n'
        '"nvvm.mbarrier.arrive.expect_tx"(%other, %c32) : (!llvm.ptr<3>, i32) -> ()\n'
        '"nvvm.cp.async.bulk.shared.cluster.global"(%d16, %a, %other, %c32) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}> : (!llvm.ptr<7>, !llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()"
        "\n}\n"
        '"nvvm.mbarrier.try_wait.parity"(%other, %c0, %c0) : (!llvm.ptr<3>, i32, i32) -> ()',
        "bulk copy of 32 bytes",
        32,
    ),
    "bulk copy out of it": (
        '"nvvm.cp.async.bulk.global.shared.cta"(%a, %d, %c64) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()\n"
        "nvvm.cp.async.bulk.commit.group\nnvvm.cp.async.bulk.wait_group 0",
        "bulk copy of 64 bytes",
        32,
    ),
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", TOUCHES)
def test_memory_of_an_mbarrier_is_not_data(name: str, schedule: str) -> None:
    """A data access to the bytes of an mbarrier is an error until mbarrier.inval."""
    text, verb, at = TOUCHES[name]
    head = (
        "%c64 = arith.constant 64 : i32\n%p16 = llvm.getelementptr %d[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
        "%d16 = llvm.addrspacecast %p16 : !llvm.ptr<3> to !llvm.ptr<7>\n"
        "%fill = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n"
        "llvm.store %x, %fill : i32, !llvm.ptr<3>\n"
    )
    got = run(head + "scf.if %is0 {\n" + INIT + "}\n" + text, schedule=schedule)
    assert got == (
        f"sync: {verb} overlaps the valid mbarrier in shared memory at byte offset {at}; execute mbarrier.inval "
        "before reusing its memory"
    )
    dead = "scf.if %is0 {\n" + INIT + INVAL + "}\nllvm.store %x, %fill : i32, !llvm.ptr<3>\n"
    assert run(head + dead + text, schedule=schedule) == ""


def test_the_thread_that_touches_an_mbarrier_is_named() -> None:
    body = (
        "scf.if %is0 {\n" + INIT + "}\n"
        "%q = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n"
        "llvm.store %x, %q : i32, !llvm.ptr<3>\nllvm.return"
    )
    with pytest.raises(InterpError) as e:
        run_kernel(kernel(HEAD + body, PARAMS, DSMEM), "k", [Pointer(np.zeros(4))], block=(32,), dynamic_smem=1024)
    assert e.value.thread == (8, 0, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            INIT + INIT,
            "sync: mbarrier.init of the mbarrier at shared memory byte offset 32, which is already initialized; "
            "execute mbarrier.inval first",
        ),
        (INIT + INVAL + INIT, ""),
        (
            INIT + INVAL + '"nvvm.mbarrier.arrive"(%bar) : (!llvm.ptr<3>) -> ()',
            "sync: no mbarrier is initialized at shared memory byte offset 32" + FIRST,
        ),
        (
            INIT + INVAL + INVAL,
            "sync: no mbarrier is initialized at shared memory byte offset 32" + FIRST,
        ),
        (
            INIT + INVAL + "%v = llvm.load %bar : !llvm.ptr<3> -> i32",
            "uninit: load of 4 bytes of shared memory at byte offset 32: nothing has written them",
        ),
        (
            "llvm.store %x, %bar : i32, !llvm.ptr<3>\n" + INIT + "%v = llvm.load %bar : !llvm.ptr<3> -> i32",
            "sync: load of 4 bytes overlaps the valid mbarrier in shared memory at byte offset 32; execute "
            "mbarrier.inval before reusing its memory",
        ),
        (INIT + INVAL + "llvm.store %x, %bar : i32, !llvm.ptr<3>\n%v = llvm.load %bar : !llvm.ptr<3> -> i32", ""),
    ],
)
def test_the_life_of_an_mbarrier(text: str, message: str) -> None:
    assert run("scf.if %is0 {\n" + text + "\n}") == message


def test_an_mbarrier_is_not_invalidated_under_a_copy() -> None:
    body = (
        "%d16 = llvm.addrspacecast %d : !llvm.ptr<3> to !llvm.ptr<7>\nscf.if %is0 {\n" + INIT
        + '"nvvm.mbarrier.arrive.expect_tx"(%bar, %c16) : (!llvm.ptr<3>, i32) -> ()\n'
        '"nvvm.cp.async.bulk.shared.cluster.global"(%d16, %a, %bar, %c16) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}> : (!llvm.ptr<7>, !llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()"
        "\n" + INVAL + "}"
    )  # fmt: skip
    assert run(body) == (
        "sync: mbarrier.inval of the mbarrier at shared memory byte offset 32 while 16 bytes of copies that signal it "
        "are in flight; wait for the phase first"
    )


@pytest.mark.parametrize("width", ["auto", "warp"])
@pytest.mark.parametrize(
    ("stores", "load", "at", "missing"),
    [
        (["i16 0"], "i32", 2, "2 of them"),
        (["i16 2"], "i32", 0, "2 of them"),
        (["i32 0"], "i64", 4, "4 of them"),
        (["i8 0", "i8 1", "i8 3"], "i32", 2, "1 of them"),
        (["i64 0", "i32 8"], "vector<4xi32>", 12, "4 of them"),
        (["i32 16"], "vector<4xi32>", 0, "them"),
        (["i8 0", "i8 1", "i8 2", "i8 3"], "i32", -1, ""),
        (["i64 0", "i32 8", "i16 12", "i16 14"], "vector<4xi32>", -1, ""),
        (["i64 0"], "i8", -1, ""),
    ],
)  # fmt: skip
def test_uninit_by_byte(stores: list[str], load: str, at: int, missing: str, width: str) -> None:
    lines: list[str] = []
    for n, s in enumerate(stores):
        t, place = s.split()
        lines.append(f"%v{n} = arith.constant 1 : {t}")
        lines.append(f"%p{n} = llvm.getelementptr %d[{place}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8")
        lines.append(f"llvm.store %v{n}, %p{n} : {t}, !llvm.ptr<3>")
    lines.append(f"%got = llvm.load %d : !llvm.ptr<3> -> {load}")
    got = run("\n".join(lines), width=width)
    nbytes = {"i8": 1, "i32": 4, "i64": 8}.get(load, 16)
    want = f"uninit: load of {nbytes} bytes of shared memory at byte offset {at}: nothing has written {missing}"
    assert got == (want if missing else "")


@pytest.mark.parametrize("size", [16, 4, 0])
def test_cp_async_writes_its_zero_fill(size: int) -> None:
    body = (
        f"%n = arith.constant {size} : i32\n"
        '"nvvm.cp.async.shared.global"(%d, %a, %n) <{modifier = #nvvm<load_cache_modifier ca>, size = 16 : i32}> '
        ": (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()\n"
        '"nvvm.cp.async.wait.all"() : () -> ()\n%got = llvm.load %d : !llvm.ptr<3> -> vector<4xi32>'
    )
    assert run(body) == ""


def test_atomics_read_their_location() -> None:
    body = "%v = llvm.atomicrmw add %d, %x monotonic : !llvm.ptr<3>, i32"
    assert run(body) == "uninit: atomic of 4 bytes of shared memory at byte offset 0: nothing has written them"
    assert run("llvm.store %x, %d : i32, !llvm.ptr<3>\n" + body) == ""


def test_bulk_copy_of_written_bytes() -> None:
    copy = (
        '"nvvm.cp.async.bulk.global.shared.cta"(%a, %d, %c16) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()"
    )
    half = "%z = arith.constant 1 : i64\nllvm.store %z, %d : i64, !llvm.ptr<3>\n"
    assert run("scf.if %is0 {\n" + half + copy + "\n}") == (
        "uninit: bulk copy of 16 bytes of shared memory at byte offset 8: nothing has written 8 of them"
    )


def test_states_against_a_byte_by_byte_definition() -> None:
    """Random writes, reads, barriers and invalidations match a model that keeps a state per byte."""
    rng = np.random.default_rng(3)
    buf = Buffer(0, np.zeros(256, np.uint8), "s")
    held = Contents(buf)
    state = ["none"] * 256
    outcomes: set[str] = set()
    for _ in range(4000):
        align = int(rng.choice([1, 2, 4, 8, 16]))
        nbytes = align * int(rng.integers(1, 4))
        off = rng.integers(0, (256 - nbytes) // align + 1, 3) * align
        spans = [range(o, o + nbytes) for o in off.tolist()]
        touched = [next((b for b in s if state[b] == "bar"), -1) for s in spans]
        hit = next(((i, b) for i, b in enumerate(touched) if b >= 0), None)
        kind = str(rng.choice(["write", "read", "init", "inval"], p=[0.3, 0.5, 0.1, 0.1]))
        try:
            if kind == "write":
                held.write(off, nbytes, align, "store", np.arange(3) + 5)
                assert hit is None
                for s in spans:
                    for b in s:
                        state[b] = "data"
            elif kind == "read":
                got = held.read(off, nbytes, align, "load", np.arange(3) + 5)
                assert hit is None
                assert got == next((i for i, s in enumerate(spans) if any(state[b] != "data" for b in s)), -1)
            else:
                at = int(rng.integers(0, 32)) * 8
                mine = state[at : at + 8] == ["bar"] * 8
                if kind == "init" and not mine:
                    held.begin_barrier(at)
                    state[at : at + 8] = ["bar"] * 8
                elif kind == "inval" and mine:
                    held.end_barrier(at)
                    state[at : at + 8] = ["none"] * 8
            outcomes.add(kind)
        except Exception as e:
            assert hit is not None, e
            assert getattr(e, "lane", None) == hit[0] + 5
            assert f"s at byte offset {hit[1]};" in str(e)
            outcomes.add(f"{kind} of a barrier")
    assert outcomes == {"write", "read", "init", "inval", "write of a barrier", "read of a barrier"}


WARPS = "%late = arith.cmpi sge, %tid, %c32 : i32\n%tk = arith.constant 1000 : i32\n"
WAIT = "nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32\n"
INVAL_BY_0 = "scf.if %is0 {\n" + INVAL + "}\n"
INIT_AND_WAIT = "scf.if %is0 {\n" + INIT + "}\nnvvm.barrier0\nscf.if %late {\n" + WAIT + "}\n"
ARRIVE = '"nvvm.mbarrier.arrive"(%bar) : (!llvm.ptr<3>) -> ()\n'


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_mbarrier_is_not_invalidated_while_a_thread_waits(schedule: str) -> None:
    """mbarrier.inval follows the last arrival, but nothing orders it after the wait, so it is an error."""
    body = WARPS + INIT_AND_WAIT + "scf.if %is0 {\n" + ARRIVE + INVAL + "}"
    got = run(body, 64, schedule, checks=["race"])
    assert got in (
        "sync: mbarrier.inval of the mbarrier at shared memory byte offset 32 while a thread waits on it; put a "
        "barrier between the last wait and mbarrier.inval",
        "sync: no mbarrier is initialized at shared memory byte offset 32" + FIRST,  # The wait started after the inval.
        "race: mbarrier.inval of the mbarrier at shared memory byte offset 32 races with its last use by "
        "thread (32, 0, 0) of block (0, 0, 0): missing barrier between the two",
    )
    ordered = WARPS + INIT_AND_WAIT + "scf.if %is0 {\n" + ARRIVE + "}\nnvvm.barrier0\n" + INVAL_BY_0
    assert run(ordered, 64, schedule, checks=["race"]) == ""


def test_waiting_thread_is_named_at_an_inval() -> None:
    body = WARPS + INIT_AND_WAIT + INVAL_BY_0 + "llvm.return"
    with pytest.raises(InterpError) as e:
        run_kernel(
            kernel(HEAD + body, PARAMS, DSMEM), "k", [Pointer(np.zeros(4))], block=(64,), dynamic_smem=1024,
        )  # fmt: skip
    assert e.value.thread == (0, 0, 0)
    assert e.value.notes == (
        'thread (32, 0, 0) waits at "nvvm.mbarrier.try_wait.parity"(%bar, %c0, %tk) : (!llvm.ptr<3>, i32, i32) -> ()',
    )


def test_arrivals_unordered_with_an_inval() -> None:
    body = WARPS + "scf.if %is0 {\n" + INIT + "}\nnvvm.barrier0\n%l = arith.cmpi eq, %tid, %c32 : i32\n"
    body += "scf.if %l {\n" + ARRIVE + "}\n"
    said = (
        "race: mbarrier.inval of the mbarrier at shared memory byte offset 32 races with its last use by thread (32, "
        "0, 0) of block (0, 0, 0): missing barrier between the two"
    )
    assert run(body + INVAL_BY_0, 64, checks=["race"]) == said
    assert run(body + "nvvm.barrier0\n" + INVAL_BY_0, 64, checks=["race"]) == ""
    assert run(body + "scf.if %is0 {\n" + WAIT + INVAL + "}\n", 64, checks=["race"]) == ""
