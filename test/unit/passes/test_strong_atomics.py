"""Memory order and scope of atomics, loads, stores and fences: PTX has the same as base IR."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
from sync_kernels import module

from cute_dialect.arch.targets import default_features
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import assemble

SCOPES = {"cta": "block", "cluster": "cluster", "gpu": "device", "sys": ""}
ORDERS = ("monotonic", "acquire", "release", "acq_rel", "seq_cst")
SPACES = {"": 0, ".global": 1, ".shared": 3, ".shared::cluster": 7}
SIZES = {"i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "vector<2xf16>": 4, "i64": 8, "f64": 8}
INTEGER = ("xchg", "add", "sub", "_and", "nand", "_or", "_xor", "max", "min", "umax", "umin", "uinc_wrap", "udec_wrap")
FLOAT = ("xchg", "fadd", "fsub", "fmax", "fmin")
KINDS = {
    "i32": INTEGER, "i64": INTEGER, "i16": ("add",), "i8": ("xchg",), "vector<2xf16>": ("fadd",),
    "!llvm.ptr": ("xchg",),
}  # fmt: skip
MEMORY = re.compile(r"(?:atom|red|ld|st)\.(?!param)\S+|fence\.\S+|membar\.\S+")


def scoped(scope: str) -> str:
    """Return the syncscope of an op in LLVM syntax."""
    return f'syncscope("{SCOPES[scope]}") ' if SCOPES[scope] else ""


def atomics(space: str, t: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the kind, order, scope and text of each ``atomicrmw`` and ``cmpxchg`` on type ``t``."""
    p = f"!llvm.ptr<{SPACES[space]}>" if space else "!llvm.ptr"
    for order, scope in product(ORDERS, SCOPES):
        for kind in KINDS.get(t, FLOAT):
            yield kind, order, scope, f"%r = llvm.atomicrmw {kind} %p, %v {scoped(scope)}{order} : {p}, {t}"
        if t in ("i8", "i16", "i32", "i64"):
            failure = {"acquire": "acquire", "acq_rel": "acquire", "seq_cst": "seq_cst"}.get(order, "monotonic")
            text = f"%x = llvm.cmpxchg %p, %v, %v {scoped(scope)}{order} {failure} : {p}, {t}\n"
            yield "cas", order, scope, text + f"%r = llvm.extractvalue %x[0] : !llvm.struct<({t}, i1)>"


def kernel(name: str, space: str, t: str, text: str) -> str:
    """Build a kernel ``@name`` that runs ``text`` on ``%p`` and stores the result."""
    p = f"!llvm.ptr<{SPACES[space]}>" if space else "!llvm.ptr"
    stored = f"llvm.store %r, %o : {t}, !llvm.ptr<1>\n" if "%r =" in text else ""
    casts = ""
    parameters = {"%p": p, "%v": t, "%o": "!llvm.ptr<1>"}
    if t.startswith("vector"):  # Vectors and shared pointers cannot be parameters.
        parameters["%v"] = "i32"
        casts += f"%w = llvm.bitcast %v : i32 to {t}\n"
        text = text.replace("%v", "%w")
    if "shared" in space:
        parameters["%p"] = "i64"
        casts += f"%q = llvm.inttoptr %p : i64 to {p}\n"
        text = text.replace("%p", "%q")
    head = ", ".join(f"{name}: {kind}" for name, kind in parameters.items())
    return f"llvm.func @{name}({head}) attributes {{nvvm.kernel}} {{\n{casts}{text}\n{stored}llvm.return\n}}\n"


@cache
def instructions(texts: tuple[str, ...], chip: str = "sm_90a") -> tuple[tuple[str, ...], ...]:
    """Return the memory and ordering instructions in the PTX of each kernel, without the store of its result."""
    compiled = compile_cute(module(*texts), emit="ptx", cache=False, chip=chip, features=default_features(chip))
    assert assemble(compiled.ptx, chip).warnings == ()
    parts = re.split(r"\.visible \.entry \w+", compiled.ptx)[1:]
    return tuple(tuple(i.rstrip(";") for i in MEMORY.findall(re.sub(r"ld\.param\S+", "", part))) for part in parts)


def expected(order: str, scope: str) -> tuple[str, str]:
    """Return the fence before an atomic ("" for none), and the ordering and scope of its instruction."""
    words = {"monotonic": "relaxed", "seq_cst": "acquire"}
    return f"fence.sc.{scope}" if order == "seq_cst" else "", f"{words.get(order, order)}.{scope}"


def agrees(found: tuple[str, ...], order: str, scope: str, space: str, bits: int) -> bool:
    """Return True if the instructions, ending with the store of the result, are as strong as specified."""
    fence, words = expected(order, scope)
    atom = next(i for i in found if i.startswith("atom"))
    fences = [i for i in found if i.startswith("fence")]
    if bits < 32 and "cas" in atom:  # LLVM emits a 32-bit CAS loop with fences.
        before, after = order in ("release", "acq_rel", "seq_cst"), order in ("acquire", "acq_rel", "seq_cst")
        if f"relaxed.{scope}" in atom and len(fences) == before + after:
            return all(i.endswith(f".{scope}") for i in fences)
    if re.match(rf"atom\.{re.escape(words)}{re.escape(space)}\.", atom):
        return fences == ([fence] if fence else [])
    plain = re.match(rf"atom{re.escape(space)}\.[a-z]", atom) and not re.search(r"\.(relaxed|acq|rel|sys)", atom)
    return bool(plain) and order == "monotonic" and (scope != "sys" or "shared" in space) and not fences


@pytest.mark.slow
@pytest.mark.parametrize("t", [*SIZES, "!llvm.ptr"])
@pytest.mark.parametrize("space", SPACES)
def test_atomics_keep_their_order_and_scope(space: str, t: str) -> None:
    """The PTX ISA defines an ``atom`` without ``.sem`` as relaxed and one without ``.scope`` as gpu scope."""
    cases = list(atomics(space, t))
    found = instructions(tuple(kernel(f"k{i}", space, t, text) for i, (*_, text) in enumerate(cases)))
    bits = 8 * SIZES.get(t, 8)
    wrong = [
        (text, got)
        for (_, order, scope, text), got in zip(cases, found, strict=True)
        if not agrees(got, order, scope, space, bits)
    ]
    assert not wrong


@pytest.mark.sample("f16")
@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_sixteen_bit_floats_on_a_chip_without_the_instruction(t: str) -> None:
    cases = list(atomics(".global", t))
    texts = tuple(kernel(f"k{i}", ".global", t, text) for i, (_, _, s, text) in enumerate(cases) if s != "cluster")
    found = instructions(texts, "sm_80")
    kept = [(order, scope) for _, order, scope, _ in cases if scope != "cluster"]
    assert all(agrees(got, *case, ".global", 16) for got, case in zip(found, kept, strict=True))


def test_loads_stores_and_fences() -> None:
    """LLVM keeps the order and scope of these ops. The test detects a change in a later LLVM."""
    texts: list[str] = []
    wanted: list[tuple[str, ...]] = []
    for scope in SCOPES:
        for order in ("monotonic", "acquire", "seq_cst"):
            text = f"%r = llvm.load %p atomic {scoped(scope)}{order} {{alignment = 4 : i64}} : !llvm.ptr<1> -> i32"
            texts.append(text)
            fence, words = expected(order, scope)
            wanted.append((*([fence] if fence else []), f"ld.{words}.global.b32", "st.global.b32"))
        for order in ("monotonic", "release", "seq_cst"):
            text = f"llvm.store %v, %p atomic {scoped(scope)}{order} {{alignment = 4 : i64}} : i32, !llvm.ptr<1>"
            texts.append(text)
            word = {"monotonic": "relaxed"}.get(order, "release")
            fence = (f"fence.sc.{scope}",) if order == "seq_cst" else ()
            wanted.append((*fence, f"st.{word}.{scope}.global.b32"))
        for order in ORDERS[1:]:
            texts.append(f"llvm.fence {scoped(scope)}{order}")
            wanted.append((f"fence.{'sc' if order == 'seq_cst' else 'acq_rel'}.{scope}",))
    kernels = tuple(kernel(f"k{i}", ".global", "i32", text) for i, text in enumerate(texts))
    assert list(instructions(kernels)) == wanted
