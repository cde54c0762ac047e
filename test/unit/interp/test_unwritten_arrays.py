"""Unwritten arrays under `uninit`: a read of an element that the kernel has not written is reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel
from test_tma_copies import COPY, MAP, PARAMS, REDUCE, STORE

from cute_dialect.interp import InterpError, Pointer, TensorMap
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.call_options import SCHEDULES, OptionError
from cute_dialect.tools.cute_run import main

ADD = Path(__file__).parents[2] / "examples" / "elementwise_add.mlir"
HEAD = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %x = arith.constant 7 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %bar = llvm.getelementptr %d[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %d7 = llvm.addrspacecast %d : !llvm.ptr<3> to !llvm.ptr<7>
    %is0 = arith.cmpi eq, %tid, %c0 : i32
    %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %s = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %x, %s : i32, !llvm.ptr<3>
"""
READS = {  # Accesses to the first 16 bytes of an array, and their names in the report.
    "load": ("%v = llvm.load %p : !llvm.ptr<1> -> i32", "load of 4 bytes"),
    "uniform load": ("%v = llvm.load %a : !llvm.ptr<1> -> i32", "load of 4 bytes"),
    "vector load": ("%v = llvm.load %a : !llvm.ptr<1> -> vector<4xi32>", "load of 16 bytes"),
    "inline load": ('%v = nvvm.inline_ptx "ld.global.b32 $0, [$1];" ro(%p : !llvm.ptr<1>) -> i32', "load of 4 bytes"),
    "generic load": (
        "%g = llvm.addrspacecast %p : !llvm.ptr<1> to !llvm.ptr\n%v = llvm.load %g : !llvm.ptr -> i32",
        "load of 4 bytes",
    ),
    "atomic": ("%v = llvm.atomicrmw add %p, %x monotonic : !llvm.ptr<1>, i32", "atomic of 4 bytes"),
    "reduction": ('nvvm.inline_ptx "red.global.add.u32 [$0], $1;" ro(%p, %x : !llvm.ptr<1>, i32)', "atomic of 4 bytes"),
    "cp.async": (
        '"nvvm.cp.async.shared.global"(%s, %p) <{modifier = #nvvm<load_cache_modifier ca>, size = 4 : i32}> '
        ": (!llvm.ptr<3>, !llvm.ptr<1>) -> ()\n"
        '"nvvm.cp.async.wait.all"() : () -> ()',
        "cp.async read of 4 bytes",
    ),
    "bulk copy": (
        'scf.if %is0 {\n"nvvm.mbarrier.init"(%bar, %c1) : (!llvm.ptr<3>, i32) -> ()\n'
        '"nvvm.mbarrier.arrive.expect_tx"(%bar, %c16) : (!llvm.ptr<3>, i32) -> ()\n'
        '"nvvm.cp.async.bulk.shared.cluster.global"(%d7, %a, %bar, %c16) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}> : (!llvm.ptr<7>, !llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()"
        '\n}\n"nvvm.mbarrier.try_wait.parity"(%bar, %c0, %c0) : (!llvm.ptr<3>, i32, i32) -> ()',
        "bulk copy of 16 bytes",
    ),
    "bulk reduction": (
        'scf.if %is0 {\nnvvm.inline_ptx "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [$0], [$1], $2;" '
        "ro(%a, %d, %c16 : !llvm.ptr<1>, !llvm.ptr<3>, i32)\n"
        "nvvm.cp.async.bulk.commit.group\nnvvm.cp.async.bulk.wait_group 0\n}",
        "bulk reduction of 16 bytes",
    ),
}
WRITES = {  # Writes of the same bytes.
    "store": "llvm.store %x, %p : i32, !llvm.ptr<1>\n",
    "vector store": (
        "%w = arith.constant dense<1> : vector<32xi32>\n"
        "llvm.store %w, %a {alignment = 4 : i64} : vector<32xi32>, !llvm.ptr<1>\n"
    ),
    "inline store": 'nvvm.inline_ptx "st.global.b32 [$0], $1;" ro(%p, %x : !llvm.ptr<1>, i32)\n',
    "bulk store": (
        '%n = arith.constant 128 : i32\nscf.if %is0 {\n"nvvm.cp.async.bulk.global.shared.cta"(%a, %d, %n) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()\n"
        "nvvm.cp.async.bulk.commit.group\nnvvm.cp.async.bulk.wait_group 0\n}\nnvvm.barrier0\n"
    ),
}


def run(body: str, schedule: str = "round-robin", unwritten: bool = True, **options: object) -> str:
    """Return the report of a kernel with one array of 32 numbers under `uninit`, or ""."""
    module = kernel(HEAD + body + "\nllvm.return", "%a: !llvm.ptr<1>", DSMEM)
    array = Pointer(np.zeros(32, np.int32), unwritten=unwritten)
    given: dict[str, object] = {"checks": ["uninit"], **options}
    try:
        run_kernel(module, "k", [array], 1, 32, dynamic_smem=1024, schedule=schedule, **given)  # type: ignore[arg-type]
    except InterpError as e:
        assert e.op
        return f"{e.kind}: {e.message} {e.thread}"
    return ""


@pytest.mark.sample(every=8)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", READS)
def test_reads_of_unwritten_arrays_are_reported(name: str, schedule: str) -> None:
    text, by = READS[name]
    assert run(text, schedule) == (
        f"uninit: {by} of argument 0 at byte offset 0, element (0): nothing has written them (0, 0, 0)"
    )
    for write in WRITES.values():
        assert run(write + text, schedule) == ""
    assert run(text, schedule, unwritten=False) == ""
    assert run(text, schedule, checks=[]) == ""
    assert run(text, schedule, blocks=[0]) == ""  # A block outside the sample might have written it.


def test_bytes_that_are_missing() -> None:
    half = "%h = arith.constant 1 : i16\nllvm.store %h, %p : i16, !llvm.ptr<1>\n"
    assert run(half + READS["load"][0]) == (
        "uninit: load of 4 bytes of argument 0 at byte offset 2, element (0): nothing has written 2 of them (0, 0, 0)"
    )


@pytest.mark.parametrize(("second", "message"), [(True, "uninit"), (False, "")])
def test_array_passed_twice_must_be_unwritten_in_both(second: bool, message: str) -> None:
    a = np.zeros(32, np.int32)
    module = kernel(HEAD + READS["load"][0] + "\nllvm.return", "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>", DSMEM)
    kind = ""
    try:
        pointers = [Pointer(a, unwritten=True), Pointer(a, unwritten=second)]
        run_kernel(module, "k", pointers, 1, 32, dynamic_smem=1024, checks=["uninit"])
    except InterpError as e:
        kind = e.kind
    assert kind == message


BOX = "of 2 bytes of argument {} at byte offset 1024, element (6, 32): nothing has written them"


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (STORE, ""),
        (REDUCE, f"TMA reduction {BOX.format(1)}"),
        (STORE + "\nnvvm.cp.async.bulk.commit.group\nnvvm.cp.async.bulk.wait_group 0\n" + REDUCE, ""),
    ],
)
def test_tensor_maps(store: str, message: str) -> None:
    text = COPY.replace("STORE", store).replace("CHANGE", "").replace("BYTES", "2048")
    for unwritten, want in ((1, message), (0, f"TMA load {BOX.format(0)}")):
        arrays = [Pointer(np.ones((10, 80), np.float16), unwritten=i == unwritten) for i in range(2)]
        maps = [TensorMap("f16", (80, 10), (160,), (64, 16), pointer=p) for p in arrays]
        got = ""
        try:
            run_kernel(
                kernel(text, PARAMS, DSMEM), "k", [*maps, Pointer(np.zeros(2048, np.uint8))], block=64,
                dynamic_smem=4104, checks=["uninit"],
            )  # fmt: skip
        except InterpError as e:
            assert e.kind == "uninit"
            got = e.message
        assert got == want
    assert MAP in PARAMS


def test_calls_name_unwritten_arrays() -> None:
    add = compile_cute(ADD, emit="base").kernel("add")
    a, b, c = (np.ones((12, 32), np.float32) for _ in range(3))
    add(a, b, c, device="cpu", checks=["uninit"], unwritten=["mC"])
    with pytest.raises(InterpError) as e:
        add(a, b, c, device="cpu", checks=["uninit"], unwritten=("mC", "mB"))
    assert e.value.message == (
        'load of 16 bytes of argument 1 "mB" at byte offset 0, element (0, 0): nothing has written them'
    )
    with pytest.raises(OptionError) as wrong:
        add(a, b, c, device="cpu", unwritten=["c"])
    assert str(wrong.value) == "unwritten: expected names of array arguments (mA, mB, mC), got 'c'"


def test_poison_arrays_are_unwritten(capsys: pytest.CaptureFixture[str]) -> None:
    words = (str(ADD), "--kernel", "add", "--device=cpu", "--check=uninit", "--in", "12x32")
    assert main((*words, "--in", "12x32", "--check", "c == a + b", "-q")) == 0
    capsys.readouterr()
    assert main((*words, "--in", "12x32=poison")) == 1
    got = capsys.readouterr().err
    assert got.startswith(f"cute-run: error: {ADD}:")
    assert got.split(": error: ")[2] == (
        'load of 16 bytes of argument 1 "mB" at byte offset 0, element (0, 0): nothing has written them\n'
        '  op: %0 = "llvm.load"(%1) <{alignment = 16 : i64}> : (!llvm.ptr<1>) -> vector<4xf32>\n'
        "  thread (0, 0, 0) of block (0, 0, 0)\n"
    )


def test_errors_name_the_source_of_their_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal texts share one entry of the compile cache, but each error names the file that was compiled."""
    for name in ("first.mlir", "second.mlir"):
        file = tmp_path / name
        file.write_text(ADD.read_text())
        words = (
            str(file),
            "--kernel",
            "add",
            "--device=cpu",
            "--check=uninit",
            "--in",
            "12x32",
            "--in",
            "12x32=poison",
        )
        assert main(words) == 1
        assert capsys.readouterr().err.startswith(f"cute-run: error: {file}:")
