"""Lightweight classes for ops of the upstream dialects: `TableOp` parses its table row on first use.

    tid = nvvm.ThreadIdXOp()                                  # The result type is always i32.
    sum = nvvm.ShflSyncOp(mask, v, off, clamp, kind="bfly", result_types=[f32])
    ld = llvm.LoadOp(p, result_types=[vec], alignment=16)
    op.mask, op.kind, op.res                                  # Operands, attributes and results by upstream's names.

Building a class takes 50 microseconds and there are 800 ops, so that each class is built on first use.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, OpTrait, OpTraits, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    ConstantLike,
    IsolatedFromAbove,
    IsTerminator,
    NoMemoryEffect,
    NoTerminator,
    Pure,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException

from cute_dialect.ir.editing import fill_op
from cute_dialect.ir.xdsl_compat import stored_operands
from cute_dialect.upstream.attrs import attrs, opaque_types
from cute_dialect.upstream.constraints import accepts
from cute_dialect.upstream.lazy import MadeLater, TableDialect
from cute_dialect.upstream.spec import SEGMENTS, ArgSpec, OpSpec, Types, infer_results
from cute_dialect.upstream.tables import OpRow, table

Operand = SSAValue | Operation | Sequence[SSAValue | Operation] | None
"""Operand argument of a `TableOp`: a value, an op with one result, a sequence of them, or None."""

PropertyValue = Attribute | int | str | bool | Sequence[int] | Sequence[Attribute] | None
"""Attribute argument of a `TableOp`: an attribute or a Python value; see `AttrSpec.convert`."""

_I32 = IntegerType(32)
SizesOf = Callable[[int, Sequence[int] | None], list[int]]


class _Traits:
    """Cache of trait sets by the letters of a table row."""

    one: ClassVar[Mapping[str, OpTrait]] = {
        "P": Pure(),
        "E": NoMemoryEffect(),
        "T": IsTerminator(),
        "I": IsolatedFromAbove(),
        "N": NoTerminator(),
        "B": SymbolTable(),
        "S": SymbolOpInterface(),
        "C": ConstantLike(),
    }
    sets: ClassVar[dict[str, OpTraits]] = {}

    @classmethod
    def of(cls, letters: str) -> OpTraits:
        letters = "".join(c for c in letters if c in cls.one)
        if letters not in cls.sets:
            cls.sets[letters] = OpTraits(lambda: tuple(cls.one[c] for c in letters))
        return cls.sets[letters]


def row_traits(other: str) -> OpTraits:
    """Return the traits listed in the fifth column of a table row."""
    start = other.find("traits=")
    return _Traits.of(other[start + 7 :].split(" ", 1)[0] if start >= 0 else "")


class TableOp(Operation):
    """Op declared by a row of a table. It is printed in generic form unless a subclass defines a custom form."""

    dialect: ClassVar[str]
    row: ClassVar[OpRow]
    DEFAULT_PROPERTIES: ClassVar[Mapping[str, Attribute]] = {}
    """Properties that upstream writes in generic form even if they are not set."""
    _spec: ClassVar[OpSpec | None] = None

    def __init__(
        self,
        *operands: Operand,
        result_types: Sequence[Attribute] | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
        attributes: Mapping[str, Attribute] | None = None,
        **properties: PropertyValue,
    ) -> None:
        """Build an op from its operands, its attributes by name, and its result types.

        There is one positional argument for each operand in upstream's declaration. `result_types` is optional if
        upstream's type rules determine them. `attributes` are discardable attributes. Raises TypeError for an unknown
        attribute or missing result types.
        """
        spec = self.spec()
        groups: list[list[SSAValue]] = []
        for group in operands:
            if isinstance(group, OpResult | BlockArgument):
                groups.append([group])
            elif group is None:
                groups.append([])
            elif isinstance(group, SSAValue | Operation):
                groups.append([SSAValue.get(group)])
            else:
                groups.append([SSAValue.get(value) for value in group])
        groups += [[] for _ in range(len(spec.operands) - len(groups))]
        if len(groups) > len(spec.operands):
            raise TypeError(f"'{self.name}' takes {len(spec.operands)} operands, got {len(groups)}")
        props: dict[str, Attribute] = {}
        for name, value in properties.items():
            if name not in spec.attrs:
                raise TypeError(f"'{self.name}' has no attribute '{name}'; its attributes are {', '.join(spec.attrs)}")
            if (value is not None and value is not False) or (
                spec.attrs[name].kind in ("bool", "i1") and value is not None
            ):
                props[name] = spec.attrs[name].convert(value)
        if result_types is None:
            types: Types = {}
            for arg, group in zip(spec.operands, groups):
                types[arg.name] = tuple(v.type for v in group)
            result_types = infer_results(spec, types, props)
        if "o" in spec.traits:
            props[SEGMENTS[0]] = _segments(tuple([len(g) for g in groups]))
        values = [value for group in groups for value in group]
        if not (attributes or successors or regions or spec.regions):
            fill_op(self, values, result_types, props)
            return
        Operation.__init__(
            self,
            operands=values,
            result_types=result_types,
            properties=props,
            attributes=attributes or {},
            successors=successors,
            regions=regions or [Region() for r in spec.regions if not r.endswith("*")],
        )

    @classmethod
    def create(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        **others: object,
    ) -> Self:
        """Create the op like `Operation.create`. Inherent attributes in `attributes` become properties.

        Properties with their default value are left out.
        """
        props, attrs = dict(properties or {}), dict(attributes or {})
        for name, default in cls.DEFAULT_PROPERTIES.items():
            if props.get(name) == default:
                del props[name]
        if attrs:
            spec = cls.spec()
            for name in list(attrs):
                declared = name in spec.attrs or any(name == s and key in spec.traits for s, key in zip(SEGMENTS, "or"))
                if declared and name not in props:
                    props[name] = attrs.pop(name)
        op = cls.__new__(cls)
        Operation.__init__(
            op,
            operands=operands,
            result_types=result_types,
            properties=props,
            attributes=attrs,
            **others,  # pyright: ignore
        )
        return op

    @classmethod
    def spec(cls) -> OpSpec:
        """Return the declaration, parsed on first use."""
        found = cls.__dict__.get("_spec")
        if found is None:
            found = cls._spec = OpSpec(cls.dialect, cls.row)
        return cast("OpSpec", found)

    @property
    def result(self) -> OpResult:
        """The only result."""
        if len(self.results) != 1:
            raise ValueError(f"'{self.name}' has {len(self.results)} results, not one; use 'results'")
        return self.results[0]

    def segments(self, which: str) -> Sequence[int] | None:
        """Return the segment sizes `which` (`operandSegmentSizes` or `resultSegmentSizes`).

        Returns None if they are absent, or if the op does not declare them.
        """
        if "or"[SEGMENTS.index(which)] not in self.spec().traits:
            return None
        sizes = self.properties.get(which)
        return cast("Sequence[int]", sizes.get_values()) if isinstance(sizes, DenseArrayBase) else None

    def group(self, name: str) -> list[SSAValue]:
        """Return the values of the operand or result `name`: one, none or several."""
        spec = self.spec()
        for args, values, sizes in (
            (
                spec.operands,
                stored_operands(self),
                lambda: spec.operand_sizes(len(stored_operands(self)), self.segments(SEGMENTS[0])),
            ),
            (spec.results, self.results, lambda: spec.result_sizes(len(self.results), self.segments(SEGMENTS[1]))),
        ):
            start = 0
            if any(arg.name == name for arg in args):
                for arg, size in zip(args, sizes()):
                    if arg.name == name:
                        return list(values[start : start + size])
                    start += size
        raise AttributeError(f"'{self.name}' has no operand or result '{name}'")

    def __getattr__(
        self, name: str
    ) -> "Attribute | SSAValue | Sequence[SSAValue] | Region | Block | Sequence[Region] | Sequence[Block] | None":
        """Return the operand, result, attribute, region or successor with upstream's name; None if an optional one is
        absent.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        spec = self.spec()
        if name in spec.attrs:
            return self.properties.get(name)
        for arg in (*spec.operands, *spec.results):
            if arg.name == name:
                values = self.group(name)
                return _one_or_all(arg, values)
        for names, values in ((spec.regions, self.regions), (spec.successors, self.successors)):
            for i, item in enumerate(names):
                if item.rstrip("*") == name:
                    return values[i:] if item.endswith("*") else values[i]
        raise AttributeError(f"'{self.name}' has no operand, result, attribute, region or successor '{name}'")

    def verify_(self) -> None:
        self.verify_itself()

    def verify_itself(self) -> None:
        """Check the declared structure of the op: numbers of values, regions and successors, types, kinds of
        attributes.

        The contents of the regions are not checked.
        """
        spec = self.spec()
        try:
            self._verify_values(spec.operands, stored_operands(self), spec.operand_sizes, SEGMENTS[0], "o")
            self._verify_values(spec.results, self.results, spec.result_sizes, SEGMENTS[1], "r")
        except ValueError as err:
            raise VerifyException(str(err)) from err
        if spec.rules and (wrong := spec.mismatch(self.types_by_name())) is not None:
            raise VerifyException(f"'{self.name}': {wrong}")
        for attr in spec.attrs.values():
            value = self.properties.get(attr.name)
            if value is None:
                if not attr.optional:
                    raise VerifyException(f"'{self.name}' requires attribute '{attr.name}'")
            elif (wrong := attr.wrong(value)) is not None:
                raise VerifyException(f"attribute '{attr.name}' of '{self.name}': {wrong}")
        least = sum(not r.endswith("*") for r in spec.regions)
        if len(self.regions) < least or (least == len(spec.regions) and len(self.regions) > least):
            raise VerifyException(f"'{self.name}' expects {least} regions, got {len(self.regions)}")
        fewest = sum(not s.endswith("*") for s in spec.successors)
        if len(self.successors) < fewest or (fewest == len(spec.successors) and len(self.successors) > fewest):
            raise VerifyException(f"'{self.name}' expects {fewest} successors, got {len(self.successors)}")

    def types_by_name(self) -> Types:
        """Return the types of all operands and results by upstream's names."""
        spec = self.spec()
        return {arg.name: tuple(v.type for v in self.group(arg.name)) for arg in (*spec.operands, *spec.results)}

    def _verify_values(
        self, args: list[ArgSpec], values: Sequence[SSAValue], sizes: SizesOf, which: str, key: str
    ) -> None:
        given = self.segments(which)
        if key in self.spec().traits and given is None:
            raise VerifyException(f"'{self.name}' requires attribute '{which}'")
        start = 0
        for arg, size in zip(args, sizes(len(values), given)):
            only = arg.type
            for value in values[start : start + size]:
                if only is not None and value.type != only:
                    raise VerifyException(f"'{arg.name}' of '{self.name}': expected type {only}, got {value.type}")
                if arg.constraint and not accepts(arg.constraint, value.type):
                    raise VerifyException(f"'{arg.name}' of '{self.name}': expected {arg.constraint}, got {value.type}")
            start += size


@lru_cache(maxsize=256)
def _segments(sizes: tuple[int, ...]) -> DenseArrayBase:
    return DenseArrayBase.from_list(_I32, sizes)


def _one_or_all(arg: ArgSpec, values: list[SSAValue]) -> SSAValue | Sequence[SSAValue] | None:
    if arg.arity == "":
        return values[0]
    if arg.arity == "?":
        return values[0] if values else None
    return values


class FormatOp(TableOp):
    """`TableOp` with upstream's declarative assembly format."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        from cute_dialect.upstream.format_parser import parse_op  # late: start-up

        return parse_op(cls, parser)

    def print(self, printer: Printer) -> None:
        from cute_dialect.upstream.format_printer import print_op  # late: start-up

        print_op(self, printer)


class CustomOp(TableOp):
    """`TableOp` whose custom form is written in C++ upstream and is not supported; only its generic form is."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        parser.raise_error(
            f"the custom form of '{cls.name}' is not supported, write it in generic form: \"{cls.name}\"(…) …"
        )


def class_name(mnemonic: str) -> str:
    """Return the class name of an op: `shfl.sync` → `ShflSyncOp`, `mlir.poison` → `PoisonOp`."""
    words = mnemonic.removeprefix("mlir.").replace(".", "_").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Op"


class TableOps(MadeLater[TableOp]):
    """Ops of a dialect by name without dialect; see `make_ops`."""

    def __init__(
        self, names: Iterable[str], make: Callable[[str], type[TableOp]], class_names: Mapping[str, str]
    ) -> None:
        super().__init__(names, make)
        self._class_names = class_names
        self._by_class: dict[str, str] | None = None

    def by_class(self, name: str) -> type[TableOp] | None:
        """Return the op whose class has this name, or None."""
        if self._by_class is None:
            self._by_class = {self._class_names.get(op) or class_name(op): op for op in self}
        return self[self._by_class[name]] if name in self._by_class else None


Special = Mapping[str, tuple[str, Callable[[OpRow], type[Operation]]]]
"""Op name without dialect -> name of its class, and function that builds the class from the row."""


def _defaults(row: OpRow) -> Mapping[str, Attribute]:
    """Return the flags of an op that upstream stores as an integer, 0 by default."""
    return {a.partition("?")[0]: IntegerAttr(0, _I32) for a in row[3].split() if ":prop." in a}


def make_ops(
    dialect: str, own: Iterable[type[Operation]] = (), without: Container[str] = (), special: Special | None = None
) -> TableOps:
    """Return the op classes of `dialect` by name without dialect. Classes are built on first use.

    The classes of `own` and `special` replace those of the table; ops in `without` are skipped. A class of `own` only
    needs a `name`: its row and traits come from the table.
    """
    special = special or {}
    mine = {cls.name.split(".", 1)[1]: cls for cls in own}
    rows = {row[0]: row for row in table(dialect).ops if row[0] not in without}
    for name, cls in mine.items():
        if name in rows and issubclass(cls, TableOp):
            cls.row, cls.dialect, cls.traits = rows[name], dialect, row_traits(rows[name][4])
            cls.DEFAULT_PROPERTIES = _defaults(rows[name])

    def make(name: str) -> type[TableOp]:
        if name in mine:
            made = mine[name]
        elif name in special:
            made = special[name][1](rows[name])
        else:
            row = rows[name]
            base = FormatOp if row[5] not in (None, "custom") else CustomOp
            body: dict[str, object] = {
                "name": f"{dialect}.{name}", "row": row, "dialect": dialect, "traits": row_traits(row[4]),
                "DEFAULT_PROPERTIES": _defaults(row),
            }  # fmt: skip
            made = type(class_name(name), (base,), body)
        return cast("type[TableOp]", made)

    names = {name: cls.__name__ for name, cls in mine.items()} | {name: cls for name, (cls, _) in special.items()}
    return TableOps((*rows, *(name for name in mine if name not in rows)), make, names)


@cache
def table_dialect(name: str) -> TableDialect:
    """Build a dialect entirely from its table: dlti, index, memref or nvgpu."""
    return TableDialect(name, make_ops(name), attrs(name), opaque_types(name))
