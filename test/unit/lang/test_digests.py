# ruff: noqa: E501  (the rows of a table)
"""Digests of functions cover all their dependencies and are equal for equal sources."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from cute_dialect.lang.calls.cache.digests import NoDigest, digest_of

HEAD = """
import dataclasses, enum, functools, threading, types, typing
import numpy as np
import cute_dialect.lang as cute
"""

KERNEL = """
@cute.kernel
def kernel(x):
    x[0] = {}
"""

CASES = {
    "a partial": ("def f(a, b): return a\np = functools.partial(f, 3)", "p(4)", "partial(f, 3)", "partial(f, 5)"),
    "a memo": ("@functools.lru_cache\ndef f(a): return a + 1", "f(4)", "a + 1", "a + 2"),
    "an enumeration": ("class E(enum.Enum):\n    A = 3", "E.A.value", "A = 3", "A = 4"),
    "a property": ("class E(enum.Enum):\n    A = 3\n    @property\n    def v(self): return 1", "E.A.v", "return 1", "return 2"),
    "a NamedTuple": ("class N(typing.NamedTuple):\n    a: int = 3", "N().a", "= 3", "= 4"),
    "a static method": ("class C:\n    @staticmethod\n    def f(): return 3", "C.f()", "return 3", "return 4"),
    "what is inherited": ("class B:\n    def f(self): return 3\nclass C(B): pass", "C().f()", "return 3", "return 4"),
    "a base": ("class B: n = 1\nclass A: n = 1\nclass C(B): pass", "C().n", "C(B)", "C(A)"),
    "a table of functions": ("R = {'a': lambda: 3}", "R['a']()", "lambda: 3", "lambda: 4"),
    "a key of a table": ("R = {'a': 3}", "R['a']", "'a'", "'b'"),
    "a function in a function": ("def f():\n    def g(): return 3\n    return g\ni = f()", "i()", "return 3", "return 4"),
    "an array": ("T = np.array([1, 2, 3])", "int(T[2])", "3]", "4]"),
    "a type of elements": ("T = np.dtype('i4')", "T.itemsize", "i4", "i8"),
    "a namespace": ("M = types.SimpleNamespace(a=3)", "M.a", "a=3", "a=4"),
    "a decorator": (
        "def by(n):\n    def d(f):\n        @functools.wraps(f)\n        def w(*a): return f(*a) + n\n"
        "        return w\n    return d\n@by(1)\ndef f(): return 2", "f()", "@by(1)", "@by(2)",
    ),
    "__getattr__": ("class C:\n    def __getattr__(self, n): return 3", "C().zz", "return 3", "return 4"),
    "a metaclass": ("class M(type):\n    def __call__(cls): return 3\nclass C(metaclass=M): pass", "C()", "return 3", "return 4"),
    "an operator": ("class V:\n    def __add__(self, o): return 3", "V() + 1", "return 3", "return 4"),
    "another function of a library": ("from math import floor as g", "g(3.5)", "floor", "ceil"),
    "a keyword's default": ("def f(*, a=3): return a", "f()", "a=3", "a=4"),
    "the type of a number": ("F = True", "3 if F is True else 4", "True", "1"),
    "the sign of zero": ("Z = 0.0", "3 if str(Z) == '0.0' else 4", "0.0", "-0.0"),
    "a set": ("S = {'a', 'b'}", "len(S)", "'b'", "'c'"),
    "an annotation": ("def f(a: 'A'): return 1", "len(f.__annotations__['a'])", "'A'", "'B'"),
    "what an annotation names": ("A = 3\ndef f(a: 'A'): return 1", "f(1)", "A = 3", "A = 4"),
    "a text of a function": ("def f():\n    'three'", "len(f.__doc__)", "three", "four"),
    "an attribute of a function": ("def f(): return f.n\nf.n = 3", "f()", "n = 3", "n = 4"),
    "a dataclass's default": ("@dataclasses.dataclass\nclass D:\n    n: int = 3", "D().n", "= 3", "= 4"),
    "how a dataclass is made": ("@dataclasses.dataclass(frozen=True)\nclass D:\n    n: int = 3", "D().n", "frozen=True", "order=True"),
    "a field of a structure": ("@cute.struct\nclass S:\n    a: cute.Int32", "S.size_in_bytes()", "Int32", "Int64"),
    "a static number": ("N = cute.Int32(3)", "N", "Int32", "Int64"),
    "a generic parameter": ("@cute.generic('N')\n@cute.kernel\ndef g(x): x[0] = N\nh = g[3]", "h", "g[3]", "g[4]"),
    "an option of a decorator": ("@cute.kernel(max_regs=64)\ndef g(x): x[0] = 1", "g", "64", "32"),
}  # fmt: skip


def module(folder: Path, text: str) -> Any:
    """Write the text to a file and import it as a module."""
    name = f"digested_{len([n for n in sys.modules if n.startswith('digested_')])}"
    path = folder / f"{name}.py"
    path.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("what", CASES)
def test_digest_depends_on_everything_reachable(tmp_path: Path, what: str) -> None:
    text, expression, old, new = CASES[what]
    assert text.count(old) >= 1
    whole = text + KERNEL.format(expression)
    moved = "\n\n# another place\nOTHER = 3\n" + whole.replace("    x[0]", "    # said here\n    x[0]")
    first, again, elsewhere, changed = (
        digest_of(module(tmp_path, t).kernel) for t in (whole, whole, moved, whole.replace(old, new))
    )
    assert first == again == elsewhere != changed


@pytest.mark.parametrize(
    ("text", "expression", "said"),
    [
        (
            "T = threading.Lock()",
            "T and 1",
            "'T' (a global of kernel) is a _thread.lock(), which exists only in this process",
        ),
        ("T = np.zeros(5000)", "T[0]", "'T' (a global of kernel) is an array of 5000 elements"),
        ("T = [1, object()]", "T[0]", "'T' (a global of kernel)[1] is an object(), which exists only in this process"),
        ("import os as T", "T.getenv('A')", "kernel uses os.getenv, which depends on the machine"),
        ("from os import getenv as T", "T('A')", "'T' (a global of kernel) is os.getenv, which depends on the machine"),
        ("import random as T", "T.random()", "kernel uses random.random, which depends on the machine"),
    ],
)
def test_objects_without_a_digest(tmp_path: Path, text: str, expression: str, said: str) -> None:
    with pytest.raises(NoDigest) as error:
        digest_of(module(tmp_path, text + KERNEL.format(expression)).kernel)
    assert str(error.value) == said


def test_cyclic_references_have_a_digest(tmp_path: Path) -> None:
    text = (
        "L = [1]\nL.append(L)\nclass C: pass\nc = C()\nc.c = c\ndef f(n): return kernel and g(n)\ndef g(n): return f(n)"
    )
    one, two = (digest_of(module(tmp_path, text + KERNEL.format("f(L[0]) if c else 0")).kernel) for _ in range(2))
    assert one == two
