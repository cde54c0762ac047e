"""Classes of upstream ops, attributes and types: each is created on first use, and none is missing."""

import subprocess
import sys

import pytest
from xdsl.context import Context
from xdsl.ir import TypeAttribute

from cute_dialect.ir.context import CuteContext, make_context
from cute_dialect.upstream import gpu, llvm, nvvm
from cute_dialect.upstream.attrs import attrs, make_attrs
from cute_dialect.upstream.op import TableOp, TableOps, class_name, make_ops
from cute_dialect.upstream.registry import BASE_DIALECTS, register
from cute_dialect.upstream.tables import OpRow, has_table, table

COUNT = """
from cute_dialect.ir.context import make_context
from cute_dialect.upstream.op import TableOp

def made(cls):
    return {cls}.union(*(made(c) for c in type.__subclasses__(cls)))

context = make_context()
assert context.get_optional_op("llvm.fadd").name == "llvm.fadd"
assert context.get_optional_op("nvvm.barrier0") is context.get_optional_op("nvvm.barrier0")
assert context.get_optional_attr("llvm.linkage").name == "llvm.linkage"
few = len(made(TableOp))
print(few, len(list(context.loaded_ops)), len(made(TableOp)))
"""


@pytest.mark.slow
def test_few_classes_are_created() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    few, loaded, every = map(int, done.stdout.split())
    assert few < 60 and loaded > 400 and every > 400


@pytest.mark.parametrize("dialect", [name for name in BASE_DIALECTS if has_table(name)])
def test_each_by_name(dialect: str) -> None:
    """A context finds each op, attribute and type of a dialect by name, and a plain xDSL context finds the same ops."""
    factory = BASE_DIALECTS[dialect]
    ops = list(factory().operations)
    assert {row[0] for row in table(dialect).ops} <= {op.name.partition(".")[2] for op in ops}
    assert len({op.name for op in ops}) == len(ops)
    context = CuteContext()
    register(context, [dialect])
    copy = context.clone()
    for op in ops:
        assert context.get_optional_op(op.name) is op
    for a in factory().attributes:
        found = copy.get_optional_type(a.name) if issubclass(a, TypeAttribute) else copy.get_optional_attr(a.name)
        assert found is a
    plain = Context()
    plain.load_dialect(factory())
    for op in ops:
        assert plain.get_optional_op(op.name) is op


def test_unknown_names() -> None:
    context = make_context()
    assert context.get_optional_op("llvm.no_such") is None and context.get_optional_op("no_such") is None
    assert context.get_optional_type("llvm.no_such") is None and context.get_optional_attr("nvvm.no_such") is None
    free = make_context(allow_unregistered=True)
    assert free.get_optional_op("llvm.no_such") is not None
    with pytest.raises(KeyError):
        llvm.OPS["no_such"]
    with pytest.raises(AttributeError, match="no_such"):
        nvvm.no_such  # noqa: B018


@pytest.mark.parametrize(("module", "ops"), [(m, m.OPS) for m in (gpu, llvm, nvvm)])
def test_by_class_name(module: object, ops: TableOps) -> None:
    for name, op in ops.items():
        assert getattr(module, op.__name__) is op
        assert op.name.partition(".")[2] == name and op.dialect and op.row[0] == name
    assert ops.by_class("NoSuchOp") is None


def test_custom_and_special_classes() -> None:
    class Mine(TableOp):
        name = "nvvm.barrier0"

    def special(row: OpRow) -> type[TableOp]:
        return type("Special", (TableOp,), {"name": "nvvm.breakpoint", "row": row, "dialect": "nvvm"})

    ops = make_ops("nvvm", [Mine], without=["fence.proxy"], special={"breakpoint": ("Special", special)})
    assert ops["barrier0"] is Mine and Mine.row[0] == "barrier0" and Mine.dialect == "nvvm"
    assert ops["breakpoint"].__name__ == "Special" and ops.by_class("Special") is ops["breakpoint"]
    assert "fence.proxy" not in ops and len(ops) == len(table("nvvm").ops) - 1
    assert ops["shfl.sync"].__name__ == class_name("shfl.sync") and ops["shfl.sync"] is not nvvm.OPS["shfl.sync"]


def test_attributes() -> None:
    assert attrs("nvvm")["shfl_kind"] is attrs("nvvm")["shfl_kind"]
    assert make_attrs("nvvm")["shfl_kind"] is not attrs("nvvm")["shfl_kind"]
    assert list(attrs("nvvm")) == [row[0] for row in table("nvvm").attrs]
