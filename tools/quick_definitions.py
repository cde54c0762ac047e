"""Definitions of ops, attributes and assembly formats, put off to their first use.

What ``@irdl_op_definition`` and ``@irdl_attr_definition`` do takes a fifth of a millisecond a class, and importing our
dialects with what they need of xDSL's brings some 230 classes, of which a file uses thirty.  Inside
:func:`definitions_made_later` a class is defined when it is first looked at:

* an op when an op of the class is made, or its definition, its traits or its parser are asked for;
* an attribute or type when its parameters are asked for;
* an ``assembly_format`` when an op is first parsed or printed by it.

A class behaves as if it had been defined at once, but an error in a definition is raised at the first use.
"""

# What is replaced is public in xDSL, but not meant to be replaced.
# pyright: reportAttributeAccessIssue=false, reportPrivateImportUsage=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from cute_dialect.tools.quick_modules import found_at_once, modules_met_later

if TYPE_CHECKING:
    from xdsl.ir import Attribute, OpTraits, ParametrizedAttribute
    from xdsl.irdl import AttrConstraint, BaseAttr, IRDLOperation, OpDef, ParamAttrDef
    from xdsl.irdl.declarative_assembly_format import FormatProgram
    from xdsl.parser import Parser

    Op = TypeVar("Op", bound=IRDLOperation)

__all__ = [
    "attributes_defined_later",
    "classes_compared_at_once",
    "definitions_made_later",
    "formats_read_later",
    "no_virtual_subclasses",
    "ops_defined_later",
]


@contextmanager
def definitions_made_later() -> Generator[None]:
    """Inside, the definitions of ops, attributes and assembly formats are put off to the first use.

    To be entered before anything of xDSL is imported.
    """
    with ExitStack() as stack:
        stack.enter_context(found_at_once("xdsl", "cute_dialect"))
        stack.enter_context(modules_met_later())
        stack.enter_context(no_virtual_subclasses())
        stack.enter_context(classes_compared_at_once())
        stack.enter_context(attributes_defined_later())
        stack.enter_context(ops_defined_later())
        stack.enter_context(formats_read_later())
        yield


@contextmanager
def no_virtual_subclasses() -> Generator[None]:
    """Inside, ``isinstance`` of a class of xDSL's IR looks at the bases of a class only, which is all there is to see.

    These classes are abstract ones, of which a class may be made a subclass by ``register`` too; to find out that a
    class is none, Python asks all subclasses of the abstract one, some hundred for ``TypeAttribute``, about each class.
    """
    from xdsl import ir, irdl

    roots: tuple[type, ...] = (ir.Attribute, ir.Operation, ir.IRWithUses, irdl.AttrConstraint, irdl.RangeConstraint)
    for root in roots:
        root.__subclasses__ = list
    try:
        yield
    finally:
        for root in roots:
            del root.__subclasses__


@contextmanager
def classes_compared_at_once() -> Generator[None]:
    """Inside, the union of constraints that each ask for a class compares the classes, not data classes of a field.

    xDSL compares each with each, and makes some fifty unions of up to twenty.
    """
    from xdsl.irdl import BaseAttr

    relax = BaseAttr.relax_constraint

    def relax_constraint(self: BaseAttr[Attribute], other: AttrConstraint) -> AttrConstraint | None:
        if type(other) is BaseAttr and type(self) is BaseAttr:
            return self if self.attr is other.attr else None
        return relax(self, other)

    BaseAttr.relax_constraint = relax_constraint
    try:
        yield
    finally:
        BaseAttr.relax_constraint = relax


# ------------------------------------------------------------------------------------------------------------------ ops


@contextmanager
def ops_defined_later() -> Generator[None]:
    """Inside, ``irdl_op_definition`` defines a class when it is first looked at."""
    from xdsl import irdl

    define = irdl.irdl_op_definition
    pending: dict[type[IRDLOperation], _LaterOp] = {}

    def later(cls: type[Op]) -> type[Op]:
        pending[cls] = _LaterOp(cls, define, pending)
        return cls

    irdl.irdl_op_definition = later
    try:
        yield
    finally:
        irdl.irdl_op_definition = define


class _LaterOp:
    """The definition of an op that is still to come; stands in for what asks for it.

    To make an op, xDSL asks its class for the definition; what can be asked of the class itself besides, and is not
    there as it stands in the source, are its traits and the parser that a format gives it.
    """

    def __init__(
        self,
        cls: type[IRDLOperation],
        define: Callable[[type[IRDLOperation]], object],
        pending: dict[type[IRDLOperation], _LaterOp],
    ):
        self._cls = cls
        self._define = define
        self._pending = pending
        self._source = dict(cls.__dict__)
        self._stubs: dict[str, object] = {
            "get_irdl_definition": classmethod(self._get_irdl_definition),
            "traits": _LaterTraits(self),
        }
        if cls.assembly_format is not None:
            self._stubs["parse"] = classmethod(self._parse)
        for name, stub in self._stubs.items():
            setattr(cls, name, stub)

    def complete(self) -> None:
        """Define the class, and the classes that it is made from before it."""
        cls = self._cls
        if self._pending.pop(cls, None) is None:
            return
        for parent in cls.__mro__[1:]:
            if parent in self._pending:
                self._pending[parent].complete()
        assigned = {
            name: value
            for name, value in cls.__dict__.items()
            if value is not self._source.get(name) and value is not self._stubs.get(name)
        }
        for name in (*self._stubs, *assigned):
            if name in self._source:
                setattr(cls, name, self._source[name])
            elif name in cls.__dict__:
                delattr(cls, name)
        self._define(cls)
        for name, value in assigned.items():  # after the decorator, so it is what holds
            setattr(cls, name, value)

    def _get_irdl_definition(self, cls: type[IRDLOperation]) -> OpDef:
        self.complete()
        return cls.get_irdl_definition()

    def _parse(self, cls: type[IRDLOperation], parser: Parser) -> IRDLOperation:
        self.complete()
        return cls.parse(parser)


class _LaterTraits:
    def __init__(self, later: _LaterOp):
        self._later = later

    def __get__(self, op: IRDLOperation | None, cls: type[IRDLOperation]) -> OpTraits:
        self._later.complete()
        return cls.traits


# ----------------------------------------------------------------------------------------------------------- attributes


@contextmanager
def attributes_defined_later() -> Generator[None]:
    """Inside, ``irdl_attr_definition`` finds the parameters of a class when they are first asked for."""
    from xdsl.irdl import ParamAttrDef, attributes

    find = ParamAttrDef.from_pyrdl
    annotations = attributes.get_annotations

    class Later(ParamAttrDef):
        """The definition of an attribute that is read when it is first looked at."""

        def __init__(self, cls: type[ParametrizedAttribute]):
            self._cls = cls

        def __getattr__(self, name: str) -> object:
            if name not in ("name", "parameters"):
                raise AttributeError(name)
            found = find(self._cls)
            self.name = found.name
            self.parameters = found.parameters
            return getattr(self, name)

    def later(pyrdl_def: type[ParametrizedAttribute]) -> ParamAttrDef:
        return Later(pyrdl_def)

    @cache
    def evaluated(cls: type) -> dict[str, object]:
        return annotations(cls, eval_str=True)

    def get_annotations(cls: type, *, eval_str: bool) -> dict[str, object]:
        return evaluated(cls) if eval_str else annotations(cls)

    ParamAttrDef.from_pyrdl = staticmethod(later)
    attributes.get_annotations = get_annotations
    try:
        yield
    finally:
        ParamAttrDef.from_pyrdl = staticmethod(find)
        attributes.get_annotations = annotations


# -------------------------------------------------------------------------------------------------------------- formats


@contextmanager
def formats_read_later() -> Generator[None]:
    """Inside, the ``assembly_format`` of an op that is defined is read when an op is first parsed or printed by it."""
    from xdsl.irdl.declarative_assembly_format import FormatProgram

    read = FormatProgram.from_str

    def later(input: str, op_def: OpDef) -> _Program:
        return _Program(read, input, op_def)

    FormatProgram.from_str = staticmethod(later)
    try:
        yield
    finally:
        FormatProgram.from_str = staticmethod(read)


class _Program:
    """Stands for the program of a format until it is needed."""

    def __init__(self, read: Callable[[str, OpDef], FormatProgram], text: str, op_def: OpDef):
        self._read = read
        self._text = text
        self._op_def = op_def

    def __getattr__(self, name: str) -> object:
        program = self._read(self._text, self._op_def)
        self.parse = program.parse
        self.print = program.print
        return getattr(program, name)
