"""arith, cf, func, math, memref and scf: xDSL's dialects, completed with the ops of upstream that xDSL lacks.

xDSL's classes are kept where they are, so that `xdsl.dialects.arith.AddiOp` builds and matches what is parsed. Where xDSL's text
deviates from upstream's, a subclass in `respelled.py` takes its place in the parser.
"""

from importlib import import_module
from typing import cast

from xdsl.ir import Attribute, Dialect, Operation

from cute_dialect.upstream.attrs import attrs
from cute_dialect.upstream.op import make_ops
from cute_dialect.upstream.tables import has_table

_NAMES = {"ARITH": "Arith", "CF": "Cf", "FUNC": "Func", "MATH": "Math", "MEMREF": "MemRef", "SCF": "Scf"}


def _complete(name: str) -> Dialect:
    theirs = cast("Dialect", getattr(import_module(f"xdsl.dialects.{name}"), _NAMES[name.upper()]))
    ops: dict[str, type[Operation]] = {op.name.split(".", 1)[1]: op for op in theirs.operations}
    found: list[type[Attribute]] = list(theirs.attributes)
    if has_table(name):
        known = {a.name for a in found}
        ops = make_ops(name, without=ops) | ops
        found += [a for a in attrs(name).values() if a.name not in known]
    return Dialect(name, list(ops.values()), found)


def __getattr__(name: str) -> Dialect:
    """`ARITH`, `CF`, `FUNC`, `MATH`, `MEMREF` or `SCF`, made when asked for."""
    if name in _NAMES:
        globals()[name] = made = _complete(name.lower())
        return made
    raise AttributeError(f"module 'completed' has no '{name}'")
