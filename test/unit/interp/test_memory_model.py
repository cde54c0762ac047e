"""Race detection under the PTX memory model: scopes, access sizes, several readers and invariant loads."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer, TensorMap

P = "!llvm.ptr<1>"
HEAD = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %w1 = arith.constant 1 : i64
    %lead = arith.cmpi eq, %tid, %c0 : i32
    %first = arith.cmpi eq, %cta, %c0 : i32
    %mine = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
"""


def run(body: str, blocks: int = 2, width: str = "auto", threads: int = 32) -> str:
    """Run a kernel and return the first line of its report, or ""."""
    module = kernel(f"{HEAD}{body}\nllvm.return", f"%a: {P}, %b: {P}", DSMEM)
    arrays = [Pointer(np.zeros(64, np.int64)) for _ in range(2)]
    try:
        run_kernel(module, "k", arrays, blocks, threads, dynamic_smem=64, checks=["race"], width=width)
    except InterpError as e:
        assert e.kind == "race", e
        return e.message
    return ""


def red(scope: str, kind: str = "i32") -> str:
    value = "%c1" if kind == "i32" else "%w1"
    return f'%r = llvm.atomicrmw add %a, {value} syncscope("{scope}") monotonic : {P}, {kind}'


BOTH = pytest.mark.parametrize("width", ["auto", "warp"])


@BOTH
def test_atomics_of_two_blocks_need_a_common_scope(width: str) -> None:
    assert run(red("device"), width=width) == ""
    assert run(red("block"), blocks=1, width=width, threads=64) == ""
    assert run(red("block"), width=width) == (
        "write-after-write race on argument 0 at byte offset 0, element (0): both accesses are strong, but their "
        "scopes .cta and .cta do not include both threads; use a wider scope, or order the accesses"
    )


@BOTH
def test_atomics_of_two_widths(width: str) -> None:
    mixed = f"scf.if %first {{ {red('device')} }} else {{ {red('device', 'i64').replace('%r', '%s')} }}"
    assert ("access the same bytes, or order the accesses") in run(mixed, width=width)
    apart = "%h = llvm.getelementptr %a[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n" + mixed.replace(
        "add %a, %w1", "add %h, %w1"
    )
    assert run(apart, width=width) == ""


@BOTH
def test_sum_of_several_blocks_is_read_after_all_of_them(width: str) -> None:
    """A barrier orders the reader after its own block's atomic add, but nothing orders it after the other block's."""
    read = f"{red('device')}\nnvvm.barrier0\n%other = arith.cmpi ne, %cta, %c0 : i32\nscf.if %other {{ READ }}"
    assert "nothing orders this access after the one in another block" in run(
        read.replace("READ", f"%v = llvm.load %a : {P} -> i32"), width=width
    )
    assert run(read.replace("READ", f"%v = llvm.load %b : {P} -> i32"), width=width) == ""


READERS = """
    %v = llvm.load %a : !llvm.ptr<1> -> i32
    BARRIER
    %second = arith.cmpi eq, %tid, %c1 : i32
    scf.if %second {
      llvm.store %c1, %a : i32, !llvm.ptr<1>
    }
"""


@BOTH
def test_a_write_is_ordered_after_every_reader(width: str) -> None:
    assert "write-after-read" in run(READERS.replace("BARRIER", ""), 1, width)
    assert "write-after-read" in run(READERS.replace("BARRIER", ""), 1, width, 64)
    assert run(READERS.replace("BARRIER", "nvvm.barrier0"), 1, width, 64) == ""


def test_one_of_several_readers_races() -> None:
    """Several warps read the word. The writer waits at a barrier that excludes one of them, so that read races."""
    body = """
        %v = llvm.load %a : !llvm.ptr<1> -> i32
        %n64 = arith.constant 64 : i32
        %few = arith.cmpi ult, %tid, %n64 : i32
        scf.if %few {
          "nvvm.barrier"(%c1, %n64) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> ()
          scf.if %lead {
            llvm.store %c1, %a : i32, !llvm.ptr<1>
          }
        }
    """
    assert "write-after-read" in run(body, 1, threads=96)
    assert run(body, 1, threads=64) == ""


@pytest.mark.parametrize("read", ["llvm.load volatile %a", "strong"])
def test_a_weak_write_after_a_strong_read(read: str) -> None:
    load = f"%v = {read} : {P} -> i32"
    if read == "strong":
        load = f'%v = nvvm.inline_ptx "ld.relaxed.gpu.global.b32 $0, [$1];" ro(%a : {P}) -> i32'
    body = f"scf.if %first {{ {load} }} else {{ scf.if %lead {{ llvm.store %c1, %a : i32, {P} }} }}"
    assert run(body, threads=1) != ""
    assert run(body.replace("llvm.store %c1", "llvm.store volatile %c1"), threads=1) == ""


def test_acquire_of_one_lane_does_not_order_the_others() -> None:
    """Only lane 0 acquires the flag, so reads of the protected word by the other lanes race."""
    body = f"""
        %flag = llvm.getelementptr %b[8] : ({P}) -> {P}, i32
        scf.if %first {{
          scf.if %lead {{
            llvm.store %c1, %a : i32, {P}
            nvvm.inline_ptx "st.release.gpu.global.b32 [$0], $1;" ro(%flag, %c1 : {P}, i32)
          }}
        }} else {{
          scf.if %lead {{
            scf.while : () -> () {{
              %f = nvvm.inline_ptx "ld.acquire.gpu.global.b32 $0, [$1];" ro(%flag : {P}) -> i32
              %wait = arith.cmpi eq, %f, %c0 : i32
              scf.condition(%wait)
            }} do {{ scf.yield }}
          }}
          SYNC
          %v = llvm.load %a : {P} -> i32
        }}
    """
    assert "read-after-write" in run(body.replace("SYNC", ""))
    full = "%full = arith.constant -1 : i32\nnvvm.bar.warp.sync %full : i32"
    assert run(body.replace("SYNC", full)) == ""


NC = {
    "ld.global.nc": f'%v = nvvm.inline_ptx "ld.global.nc.b32 $0, [$1];" ro(%mine : {P}) -> i32',
    "ld.global.nc with hints": f'%v = nvvm.inline_ptx "ld.global.nc.L1::no_allocate.b32 $0, [$1];" ro(%mine : {P})'
    " -> i32",
    "llvm.load invariant": f"%v = llvm.load %mine invariant : {P} -> i32",
}
STORE = f"llvm.store %tid, %mine : i32, {P}"


@BOTH
@pytest.mark.parametrize("name", NC)
def test_invariant_loads_of_written_memory(name: str, width: str) -> None:
    load = NC[name]
    assert run(load, 1, width) == ""
    assert run(f"{load}\nllvm.store %v, %b : i32, {P}".replace("%v, %b", "%c0, %b"), 1, width) == ""
    after = run(f"{STORE}\nnvvm.barrier0\n{load}", 1, width)
    assert after == (
        "invariant load of argument 0 at byte offset 0, which the kernel writes; invariant loads "
        "(ld.global.nc, llvm.load invariant) need memory that stays constant while the kernel runs"
    ).replace("offset 0,", "offset 0, element (0),")
    before = run(f"{load}\nnvvm.barrier0\n{STORE}", 1, width)
    assert before == (
        "write to argument 0 at byte offset 0, element (0), which an invariant load has read; invariant "
        "loads (ld.global.nc, llvm.load invariant) need memory that stays constant while the kernel runs"
    )
    added = run(f"{load}\n{red('device')}", 1, width)
    assert added.startswith("write to argument 0 at byte offset 0, element (0), which an invariant load has read")


def promised(body: str, first: str, second: str, *, same: bool = False, width: str = "auto") -> tuple[str, str]:
    """Run a kernel with attributes on its two arguments, one array or two. Return the error's kind and text."""
    module = kernel(f"{HEAD}{body}\nllvm.return", f"%a: {P} {first}, %b: {P} {second}")
    one, two = np.zeros(64, np.int32), np.zeros(64, np.int32)
    try:
        args = [Pointer(one), Pointer(one if same else two)]
        run_kernel(module, "k", args, 1, 32, checks=["race"], width=width)
    except InterpError as e:
        return e.kind, e.message
    return "", ""


LOAD = f"%x = llvm.load %mine : {P} -> i32"
RED = f"%r = llvm.atomicrmw add %mine, %c1 monotonic : {P}, i32"
PTX_LOAD = f'%x = nvvm.inline_ptx "ld.global.b32 $0, [$1];" ro(%mine : {P}) -> i32'
PTX_STORE = f'nvvm.inline_ptx "st.global.b32 [$0], $1;" ro(%mine, %c1 : {P}, i32)'


@BOTH
@pytest.mark.parametrize(
    ("attribute", "body", "verb"),
    [
        ("llvm.readonly", STORE, "store"),
        ("llvm.readonly", PTX_STORE, "store"),
        ("llvm.readonly", RED, "atomic"),
        ("llvm.readonly", LOAD, ""),
        ("llvm.writeonly", LOAD, "load"),
        ("llvm.writeonly", PTX_LOAD, "load"),
        ("llvm.writeonly", RED, "atomic"),
        ("llvm.writeonly", STORE, ""),
        ("llvm.readnone", LOAD, "load"),
        ("llvm.readnone", STORE, "store"),
        ("llvm.noalias", STORE, ""),
    ],
)
def test_attributes_of_arguments_are_kept(attribute: str, body: str, verb: str, width: str) -> None:
    want = ("promise", f"{verb} through argument 0, which is declared {attribute}") if verb else ("", "")
    assert promised(body, f"{{{attribute}}}", "", width=width) == want


@BOTH
def test_noalias_arguments_have_memory_of_their_own(width: str) -> None:
    copy = (
        f"%far = llvm.getelementptr %b[%tid] : ({P}, i32) -> {P}, i32\n"
        f"%x = llvm.load %mine : {P} -> i32\nllvm.store %x, %far : i32, {P}"
    )
    want = (
        "promise",
        "store of argument 0 at byte offset 0, element (0) through argument 1 aliases an access through "
        "argument 0, and the kernel modifies this memory; an llvm.noalias argument must not overlap other memory that "
        "the kernel accesses",
    )
    assert promised(copy, "{llvm.noalias}", "", same=True, width=width) == want
    assert promised(copy, "{llvm.noalias}", "{llvm.noalias}", same=True, width=width) == want
    assert promised(copy, "{llvm.noalias}", "{llvm.noalias}", width=width) == ("", "")
    assert promised(copy, "", "", same=True, width=width) == ("", "")
    reads = copy.replace("llvm.store %x, %far : i32", "%y = llvm.load %far").replace(f"%far, {P}", f"%far : {P} -> i32")
    assert promised(reads, "{llvm.noalias}", "{llvm.noalias}", same=True, width=width) == ("", "")


HAND_OVER = """
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %f = llvm.getelementptr %d[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %t32 = arith.constant 32 : i32
    %second = arith.cmpi eq, %tid, %t32 : i32
    scf.if %lead {
      nvvm.inline_ptx "st.relaxed.cta.shared.b32 [$0], $1;" ro(%f, %c0 : !llvm.ptr<3>, i32)
    }
    nvvm.barrier0
    scf.if %lead {
      nvvm.cp.async.shared.global %d, %a, 16, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
      WAIT
      SET
    }
    scf.if %second {
      scf.while : () -> () {
        %v = nvvm.inline_ptx "ld.acquire.cta.shared.b32 $0, [$1];" ro(%f : !llvm.ptr<3>) -> i32
        %c = arith.cmpi ne, %v, %c1 : i32
        scf.condition(%c)
      } do {
        scf.yield
      }
      %r = llvm.load %d : !llvm.ptr<3> -> i32
    }
"""
SET = 'nvvm.inline_ptx "st.{}.cta.shared.b32 [$0], $1;" ro(%f, %c1 : !llvm.ptr<3>, i32)'


@pytest.mark.parametrize(
    "release", [SET.format("release"), 'nvvm.inline_ptx "fence.acq_rel.cta;"\n' + SET.format("relaxed")]
)
@pytest.mark.parametrize("wait", ["cp.async.wait_all;", ""])
def test_a_release_passes_on_the_copies_that_the_thread_has_waited_for(wait: str, release: str) -> None:
    waits = f'nvvm.inline_ptx "{wait}"' if wait else ""
    found = run(HAND_OVER.replace("WAIT", waits).replace("SET", release), blocks=1, threads=64)
    assert found == (
        ""
        if wait
        else "read-after-write race on shared memory at byte offset 0: missing cp.async.wait_group by the thread that "
        "issued it, then a barrier"
    )


BULK = """
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %n = arith.constant 16 : i32
    %bar = llvm.getelementptr %d[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %at = llvm.getelementptr %a[BYTE] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %small = arith.trunci %c1 : i32 to i8
    %t32 = arith.constant 32 : i32
    %second = arith.cmpi eq, %tid, %t32 : i32
    %apart = llvm.getelementptr %a[41] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    scf.if %lead {
      llvm.store %small, %apart : i8, !llvm.ptr<1>
      nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      COPY
    }
    scf.if %second {
      llvm.store %small, %at : i8, !llvm.ptr<1>
    }
    nvvm.barrier0
    scf.if %lead {
      LAST
    }
"""
COPIES = {
    "read": (
        "nvvm.mbarrier.arrive.expect_tx %bar, %n : !llvm.ptr<3>, i32\n"
        "nvvm.cp.async.bulk.shared.cluster.global %d, %a, %bar, %n : !llvm.ptr<3>, !llvm.ptr<1>",
        "nvvm.mbarrier.try_wait.parity %bar, %c0, %c0 : !llvm.ptr<3>, i32, i32",
    ),
    "write": (
        "nvvm.cp.async.bulk.global.shared.cta %a, %d, %n : !llvm.ptr<1>, !llvm.ptr<3>\nnvvm.cp.async.bulk.commit.group",
        "nvvm.cp.async.bulk.wait_group 0",
    ),
}


@pytest.mark.parametrize("way", COPIES)
def test_each_byte_of_a_bulk_copy(way: str) -> None:
    for byte in (0, 1, 7, 15, 16, 17):
        copy, last = COPIES[way]
        found = run(BULK.replace("BYTE", str(byte)).replace("COPY", copy).replace("LAST", last), 1, threads=64)
        assert (f"race on argument 0 at byte offset {byte}" in found) == (byte < 16), (byte, found)


COPY = """
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %n = arith.constant 128 : i32
    %bar = llvm.getelementptr %d[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    scf.if %lead {
      nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      COPY
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
      nvvm.inline_ptx "cp.async.wait_all;"
      REST
    }
    llvm.return
"""
LOADED = "nvvm.mbarrier.arrive.expect_tx %bar, %n : !llvm.ptr<3>, i32\n{}\n" + COPIES["read"][1]
WAYS = {
    "cp.async read": "nvvm.cp.async.shared.global %d, %a, 16, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>",
    "bulk copy out": LOADED.format(
        "nvvm.cp.async.bulk.shared.cluster.global %d, %a, %bar, %n : !llvm.ptr<3>, !llvm.ptr<1>"
    ),
    "bulk copy": "nvvm.cp.async.bulk.global.shared.cta %a, %d, %n : !llvm.ptr<1>, !llvm.ptr<3>",
    "bulk reduction": (
        'nvvm.inline_ptx "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [$0], [$1], $2;" '
        "ro(%a, %d, %n : !llvm.ptr<1>, !llvm.ptr<3>, i32)"
    ),
    "TMA load": LOADED.format(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global %d, %m, %bar, box[%c0] : !llvm.ptr<3>, !llvm.ptr"
    ),
    "TMA store": "nvvm.cp.async.bulk.tensor.global.shared.cta %m, %d, box[%c0] : !llvm.ptr, !llvm.ptr<3>",
}
MAP = "!llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"


def copied(way: str, attribute: str, rest: str = "") -> str:
    """Copy the array `%a`, to which `%b` and the tensor map `%m` also refer, and return the report."""
    text = HEAD + COPY.replace("COPY", WAYS[way]).replace("REST", rest)
    module = kernel(text, f"%a: {P} {attribute}, %b: {P}, %m: {MAP}", DSMEM)
    array = np.zeros(64, np.float32)
    tm = TensorMap("f32", (32,), (), (32,), pointer=Pointer(array))
    try:
        run_kernel(module, "k", [Pointer(array), Pointer(array), tm], 1, 32, dynamic_smem=1024, checks=["race"])
    except InterpError as e:
        assert e.kind == "promise", e
        return e.message
    return ""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("attribute", ["llvm.readonly", "llvm.writeonly", "llvm.readnone"])
def test_copies_keep_the_attributes_of_arguments(way: str, attribute: str) -> None:
    reads, writes = way in ("cp.async read", "bulk copy out", "bulk reduction"), way in ("bulk copy", "bulk reduction")
    broken = {"llvm.readonly": writes, "llvm.writeonly": reads, "llvm.readnone": reads or writes}[attribute]
    assert copied(way, f"{{{attribute}}}") == (
        f"{way} through argument 0, which is declared {attribute}" if broken else ""
    )


@pytest.mark.parametrize("way", WAYS)
def test_copies_and_noalias(way: str) -> None:
    """A copy is followed by a store to the same memory through another argument or to the memory of a tensor map."""
    tma = way.startswith("TMA")
    rest = f"llvm.store %c1, {'%a' if tma else '%b'} : i32, !llvm.ptr<1>"
    assert copied(way, "{llvm.noalias}", rest) == (
        f"store of argument 0 at byte offset 0, element (0) through argument {0 if tma else 1} aliases an "
        f"access through {'another pointer' if tma else 'argument 0'}, and the kernel modifies this memory; an "
        "llvm.noalias argument must not overlap other memory that the kernel accesses"
    )
    assert copied(way, "{llvm.noalias}") == copied(way, "", rest) == ""
