"""Mutations of kernels that synchronize through global memory: fences, flags, waits, scopes and barriers."""

from __future__ import annotations

import re

import pytest
from interp_corpus_flags import FLAG_KERNELS
from test_broken_kernels import Broken

from cute_dialect.interp import InterpError

RELEASE = 'llvm.fence syncscope("device") acq_rel // release'
ACQUIRE = 'llvm.fence syncscope("device") acq_rel // acquire'
FAR = "nothing orders this access after the one in another block"
UNFENCED = "missing fence .* between the read of the flag .* and this access"
EITHER = f"{FAR}|{UNFENCED}"
ORDER = {"message: does not wait": "reverse", "turns: out of turn": "random", "lock: no lock": "random"}
"""Cases that are right when blocks run one after the other, and the schedule that shows the error."""

CORPUS = [
    Broken("message", "no release fence", ((RELEASE, ""),), "race", f"read-after-write .* {FAR}"),
    Broken("message", "no acquire fence", ((ACQUIRE, ""),), "race", "read-after-write"),
    Broken("message", "release fence of the block", ((RELEASE, RELEASE.replace("device", "block")),), "race", FAR),
    Broken("message", "acquire fence of the block", ((ACQUIRE, ACQUIRE.replace("device", "block")),), "race", EITHER),
    Broken(
        "message", "acquire fence that releases", ((ACQUIRE, ACQUIRE.replace("acq_rel", "release")),), "race", EITHER
    ),
    Broken("message", "acquires where it releases", ((RELEASE, RELEASE.replace("acq_rel", "acquire")),), "race", FAR),
    Broken(
        "message", "polls the wrong flag", (("llvm.load volatile %done", "llvm.load volatile %started"),), "race", FAR
    ),
    Broken(
        "message", "does not wait", (("%wait = arith.cmpi eq, %f, %c0", "%wait = arith.cmpi ugt, %f, %c1"),), "race", ""
    ),
    Broken("message", "does not look", (("llvm.load volatile %done", "llvm.load volatile %a"),), "race|deadlock", ""),
    Broken("message", "not all have written", (("nvvm.barrier0 // written", ""),), "race", FAR),
    Broken("message", "one thread has waited", (("nvvm.barrier0 // arrived", ""),), "race", FAR),
    Broken(
        "message",
        "plain flag",
        (("llvm.store volatile %c1, %done", "llvm.store %c1, %done"),),
        "race",
        "read-after-write .*element .129.",
    ),
    Broken(
        "message",
        "flag before the data",
        (
            ("llvm.store volatile %c1, %started", f"{RELEASE}\nllvm.store volatile %c1, %done"),
            (
                f"{RELEASE}\n        llvm.store volatile %c1, %done : i32, !llvm.ptr<1>\n      }}\n    }} else",
                "}\n    } else",
            ),
        ),
        "race",
        FAR,
    ),
    Broken("counter", "no release fence", ((RELEASE, ""),), "race", FAR),
    Broken("counter", "no acquire fence", ((ACQUIRE, ""),), "race", EITHER),
    Broken("counter", "not all have written", (("nvvm.barrier0 // written", ""),), "race", FAR),
    Broken("counter", "count off by one", (("%last = arith.constant 3", "%last = arith.constant 2"),), "race", FAR),
    Broken(
        "counter",
        "fence before the barrier",
        ((RELEASE, ""), ("nvvm.barrier0 // written", f"{RELEASE}\nnvvm.barrier0")),
        "race",
        FAR,
    ),
    Broken(
        "counter",
        "counter that is no atomic",
        (
            (
                '%old = llvm.atomicrmw add %count, %c1 syncscope("device") monotonic : !llvm.ptr<1>, i32',
                "%old = llvm.load %count : !llvm.ptr<1> -> i32\n%n = arith.addi %old, %c1 : i32\n"
                "llvm.store %n, %count : i32, !llvm.ptr<1>",
            ),
        ),
        "race",
        "element .320.",
    ),
    Broken(
        "counter",
        "atomic of the block",
        (('%c1 syncscope("device")', '%c1 syncscope("block")'),),
        "race",
        "both accesses are strong, but their scopes .cta and .cta do not include both threads",
    ),
    Broken(
        "counter",
        "every block adds up",
        (("arith.cmpi eq, %arrived, %last", "arith.cmpi ule, %arrived, %last"),),
        "race",
        FAR,
    ),
    Broken("turns", "relaxed read", (("ld.acquire", "ld.relaxed"),), "race", EITHER),
    Broken("turns", "relaxed write", (("st.release", "st.relaxed"),), "race", FAR),
    Broken(
        "turns",
        "release of the block",
        (("st.release.gpu", "st.release.cta"),),
        "race",
        "both accesses are strong, but their scopes .cta and .gpu do not include both threads",
    ),
    Broken("turns", "one thread has waited", (("nvvm.barrier0 // my turn", ""),), "race", FAR),
    Broken("turns", "not all have added", (("nvvm.barrier0 // added", ""),), "race", FAR),
    Broken("turns", "out of turn", (("arith.cmpi ne, %f, %cta", "arith.cmpi ugt, %c0, %cta"),), "race", FAR),
    Broken("turns", "plain flag", (("st.release.gpu.global", "st.global"),), "race", "element .64."),
    Broken("lock", "no lock", (("arith.cmpi ne, %held, %c0", "arith.cmpi ugt, %c0, %c1"),), "race", FAR),
    Broken("lock", "relaxed lock", (("acquire monotonic", "monotonic monotonic"),), "race", EITHER),
    Broken("lock", "relaxed unlock", (("%c0 release", "%c0 monotonic"),), "race", FAR),
    Broken(
        "lock",
        "plain unlock",
        (
            (
                "%z = llvm.atomicrmw xchg %lock, %c0 release : !llvm.ptr<1>, i32",
                "llvm.store %c0, %lock : i32, !llvm.ptr<1>",
            ),
        ),
        "race",
        "element .1.",
    ),
    Broken(
        "warps", "no release fence", (('llvm.fence syncscope("block") acq_rel // release', ""),), "race", "read-after"
    ),
    Broken(
        "warps", "no acquire fence", (('llvm.fence syncscope("block") acq_rel // acquire', ""),), "race", "read-after"
    ),
    Broken("warps", "not all have written", (("nvvm.bar.warp.sync %full : i32", ""),), "race", "read-after-write"),
]


def mutate(b: Broken) -> str:
    text = FLAG_KERNELS[b.kernel].body
    for old, new in b.edits:
        assert text.count(old) >= 1, f"the corpus has changed: {old!r} is not in {b.kernel}"
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("b", CORPUS, ids=lambda b: f"{b.kernel}: {b.name}")
def test_broken(b: Broken) -> None:
    with pytest.raises(InterpError) as e:
        FLAG_KERNELS[b.kernel].run(mutate(b), ORDER.get(f"{b.kernel}: {b.name}", "round-robin"))
    error = e.value
    assert re.fullmatch(b.kind, error.kind), error
    assert re.search(b.message, str(error)), error


@pytest.mark.parametrize("name", FLAG_KERNELS)
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
def test_correct_kernels_pass(name: str, schedule: str) -> None:
    report, right = FLAG_KERNELS[name].run(schedule=schedule)
    assert right
    assert report.warnings == []


def test_error_names_the_writer() -> None:
    """The report names the thread, the block and the source location of the access by the other block."""
    with pytest.raises(InterpError) as e:
        FLAG_KERNELS["message"].run(mutate(CORPUS[0]))
    text = str(e.value)
    assert re.search(r"of block \(1, 0, 0\)", text), text
    assert re.search(r"the earlier store is by thread \(\d+, 0, 0\) of block \(0, 0, 0\)", text), text


def test_the_missing_fence_is_named() -> None:
    """A thread that reads the data after the flag without a fence gets a report that names the missing fence."""
    b = Broken("message", "", ((ACQUIRE, ACQUIRE.replace("acquire", "x")),), "", "")
    text = mutate(b).replace('llvm.fence syncscope("device") acq_rel // x', "%v0 = llvm.load %b : !llvm.ptr<1> -> i32")
    with pytest.raises(InterpError, match=UNFENCED):
        FLAG_KERNELS["message"].run(text)
