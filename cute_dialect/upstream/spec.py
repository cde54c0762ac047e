"""Declaration of an upstream op: operands, results, attributes, traits and type rules.

`OpSpec` parses one row of `tables/<dialect>.py`, on first use of the op.

    NVVM row   ('vote.sync', 'mask:i32 pred:i1', 'res', 'kind:@nvvm.vote_sync_kind', '', '$kind $mask `,` …')
    spec       operands mask (always i32), pred (always i1); result res; attribute kind, an enum of the dialect
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    Float16Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    f32,
    i1,
)
from xdsl.ir import Attribute, Data, TypeAttribute

from cute_dialect.upstream.attrs import TextAttr, attr, attrs, opaque_type
from cute_dialect.upstream.constraints import element_type, is_vector, numbers, vector
from cute_dialect.upstream.llvm_types import LLVMArrayType, LLVMPointerType, LLVMStructType, LLVMTokenType
from cute_dialect.upstream.tables import OpRow, table

SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")
"""Properties with the numbers of values of variadic operands and results."""

Types = dict[str, tuple[Attribute, ...]]
"""Known types by operand or result name. A variadic one has several types, an absent optional one none."""


class ArgSpec:
    """One operand or result of an op.

    Args:
        name: the name in upstream's declaration.
        arity: "" (one), "?" (optional), "*" (variadic) or "**" (variadic of variadics).
        type_text: the only possible type, or empty.
        constraint: upstream's summary of the type constraint.
        stripped: True if the declarative format prints the type without `!dialect.mnemonic`.
    """

    __slots__ = ("arity", "constraint", "name", "stripped", "type_text")

    def __init__(self, item: str, constraints: Sequence[str]) -> None:
        item, _, number = item.partition("%")
        self.constraint = constraints[int(number)] if number else ""
        item, _, code = item.partition(":")
        if not code and item.endswith("^"):
            item, code = item[:-1], "^"
        self.name = item.rstrip("*?")
        self.arity = item[len(self.name) :]
        self.stripped = code[:-1] if code.endswith("^") else ""
        code = code.removesuffix("^")
        is_type = code.startswith(("!", "i", "f32", "vector"))
        self.type_text = code if is_type else ""
        if code.startswith("!llvm.ptr"):
            self.stripped = "llvm.ptr"

    @property
    def type(self) -> Attribute | None:
        """The only possible type of this operand or result, or None."""
        return buildable_type(self.type_text) if self.type_text else None


class AttrSpec:
    """One inherent attribute (a property) of an op.

    `kind` is one of:

    * `unit`, `bool`, `str`, `type`, `array`, `map`, `any`;
    * `i1` … `i64`, `index`, `f64`: typed numbers;
    * `sym` (`@name`), `ref` (`@a::@b`);
    * `dense.i32`, `dense.i64`;
    * `@dialect.mnemonic`: a `TextAttr`;
    * `enum.i64.NAME`: an integer spelled as a word;
    * `prop.MNEMONIC.NAME`: LLVM flags.
    """

    __slots__ = ("default", "dialect", "kind", "name", "nullable", "optional")

    def __init__(self, item: str, dialect: str) -> None:
        item, _, self.default = item.partition("=")
        item, _, self.kind = item.partition(":")
        self.nullable = item.endswith("?")
        self.optional = self.nullable or bool(self.default)
        self.name = item.rstrip("?")
        self.dialect = dialect

    @property
    def attr_class(self) -> type[Data[Any]] | None:
        """Class of an attribute `@dialect.mnemonic`: a `TextAttr`, or xDSL's class for the flags of arith."""
        if self.kind.startswith("@"):
            if self.kind in ("@arith.fastmath", "@arith.overflow"):
                from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr

                return FastMathFlagsAttr if self.kind == "@arith.fastmath" else IntegerOverflowAttr
            dialect, _, mnemonic = self.kind[1:].partition(".")
            return attrs(dialect).get(mnemonic)
        if self.kind.startswith("prop.") and not self.kind.startswith("prop.-"):
            return attrs(self.dialect)[self.kind.split(".")[1]]
        return None

    @property
    def cases(self) -> dict[str, int]:
        """Words of an integer-valued enum, with their values."""
        return enum_cases(self.dialect, self.kind.rpartition(".")[2])

    @property
    def default_attr(self) -> Attribute | None:
        """Default value of the attribute in upstream."""
        if not self.default:
            return None
        return self.convert(int(self.default) if self.default.isdigit() else _BOOLS.get(self.default, self.default))

    def convert(self, value: "Attribute | int | str | bool | Sequence[int] | Sequence[Attribute]") -> Attribute:
        """Return the attribute for a Python value: `"bfly"` for an enum, 16 for a number, True for a unit, [0, 1] for a
        list.

        Raises TypeError if the kind of the attribute does not accept the value.
        """
        if isinstance(value, Attribute):
            return value
        if isinstance(value, int | str):
            return _converted(self, value.__class__, value)
        return self.make(value)

    def make(self, value: "int | str | bool | Sequence[int] | Sequence[Attribute]") -> Attribute:
        """Build the attribute for :meth:`convert`, which caches those of numbers and words. Raises TypeError."""
        kind = self.kind
        if (cls := self.attr_class) is not None and isinstance(value, str):
            return attr(cls.name, value) if issubclass(cls, TextAttr) else cls(value)
        if isinstance(value, bool):
            return UnitAttr() if kind == "unit" else IntegerAttr(int(value), i1)
        if isinstance(value, int):
            if kind in NUMBER_TYPES:
                return IntegerAttr(value, cast("IntegerType | IndexType", NUMBER_TYPES[kind]))
            if kind.startswith(("prop.-", "enum.i32")):
                return IntegerAttr(value, IntegerType(32))
            if kind.startswith("enum.i64"):
                return IntegerAttr(value, IntegerType(64))
        elif isinstance(value, str):
            if kind.startswith("enum."):
                return IntegerAttr(self.cases[value], NUMBER_TYPES[kind.split(".")[1]])  # pyright: ignore
            if kind == "ref":
                return SymbolRefAttr(value)
            return StringAttr(value)
        elif kind.startswith("dense."):
            return _dense(kind.removeprefix("dense."), tuple(cast("Sequence[int]", value)))
        elif kind == "array":
            return ArrayAttr(cast("Sequence[Attribute]", value))
        raise TypeError(f"attribute '{self.name}' of kind {kind} does not accept {value!r}")

    def wrong(self, value: Attribute) -> str | None:
        """Return the error message for an invalid attribute ("expected …"), or None."""
        kind = self.kind
        if (cls := self.attr_class) is not None:
            flags = kind.startswith("prop.") and isinstance(value, IntegerAttr)
            fits, wanted = isinstance(value, cls) or flags, f"#{cls.name}"
        elif kind.startswith(("enum.", "prop.")):
            fits, wanted = isinstance(value, IntegerAttr), "an integer attribute"
        elif kind in NUMBER_TYPES and kind != "f64":
            fits = isinstance(value, IntegerAttr) and cast("IntegerAttr[IntegerType]", value).type == NUMBER_TYPES[kind]
            wanted = f"an attribute of type {kind}"
        elif kind in _CLASSES:
            wanted_class, wanted = _CLASSES[kind]
            fits = isinstance(value, wanted_class)
        else:
            return None
        return None if fits else f"expected {wanted}, got {value}"


@lru_cache(maxsize=4096)
def _converted(spec: AttrSpec, kind: type, value: int | str) -> Attribute:
    """Return `AttrSpec.convert` of a number or word. `kind` distinguishes True from 1 in the cache."""
    return spec.make(value)


@lru_cache(maxsize=4096)
def _dense(element: str, values: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(cast("IntegerType", NUMBER_TYPES[element]), values)


_BOOLS = {"true": True, "false": False}
NUMBER_TYPES: Mapping[str, Attribute] = {
    "bool": i1,
    "i1": i1,
    "i8": IntegerType(8),
    "i16": IntegerType(16),
    "i32": IntegerType(32),
    "i64": IntegerType(64),
    "index": IndexType(),
    "f64": Float64Type(),
}
_CLASSES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "unit": (UnitAttr, "a unit attribute"),
    "f64": (FloatAttr, "a 64-bit float attribute"),
    "sym": (StringAttr, "a string"),
    "ref": (SymbolRefAttr, "a symbol reference"),
    "str": (StringAttr, "a string"),
    "type": (TypeAttribute, "a type"),
    "array": (ArrayAttr, "an array attribute"),
    "dense.i32": (DenseArrayBase, "an i32 dense array"),
    "dense.i64": (DenseArrayBase, "an i64 dense array"),
    "map": (AffineMapAttr, "an affine map"),
}


class Rule:
    """Type rule `name(arg, …)`, for example `all(lhs,rhs)` or `element(memref,result)`."""

    __slots__ = ("args", "name")

    def __init__(self, text: str) -> None:
        self.name, _, args = text.partition("(")
        self.args = tuple(a for a in args.removesuffix(")").split(",") if a)


class OpSpec:
    """Declaration of one op, parsed from its table row."""

    __slots__ = (
        "attrs", "dialect", "format", "name", "one_block", "operands", "regions", "results", "rules",
        "successors", "traits",
    )  # fmt: skip

    def __init__(self, dialect: str, row: OpRow) -> None:
        name, operands, results, attributes, other, self.format = row
        self.dialect = dialect
        self.name = f"{dialect}.{name}"
        constraints = table(dialect).constraints
        self.operands = [ArgSpec(item, constraints) for item in operands.split()]
        self.results = [ArgSpec(item, constraints) for item in results.split()]
        specs = [AttrSpec(item, dialect) for item in attributes.split()]
        self.attrs = {spec.name: spec for spec in specs}
        fields = dict(item.split("=", 1) for item in other.split())
        regions = [r for r in fields.get("regions", "").split(",") if r]
        self.regions = [r.removesuffix("1") for r in regions]
        self.one_block = {r[:-1] for r in regions if r.endswith("1")}
        self.successors = [s for s in fields.get("succ", "").split(",") if s]
        self.traits = fields.get("traits", "")
        self.rules = [Rule(text) for text in fields.get("same", "").split(";") if text]

    def operand_sizes(self, count: int, given: Sequence[int] | None) -> list[int]:
        """Return the number of values of each operand, for `count` values in total. `given` are the segment sizes, if
        present.

        Raises ValueError if the numbers are inconsistent.
        """
        return _sizes(self.operands, count, given, f"'{self.name}' expects {{}} operands, got {{}}")

    def result_sizes(self, count: int, given: Sequence[int] | None) -> list[int]:
        """Return the number of values of each result, for `count` values in total."""
        return _sizes(self.results, count, given, f"'{self.name}' expects {{}} results, got {{}}")

    def infer(self, types: Types, counts: Mapping[str, int]) -> None:
        """Add the inferred types to `types`. `counts` are the numbers of operands by name."""
        everything = [arg.name for arg in self.operands] + [arg.name for arg in self.results]
        for arg in (*self.operands, *self.results):
            if arg.name not in types and (only := arg.type) is not None:
                if arg.name in counts:
                    types[arg.name] = (only,) * counts[arg.name]
                elif arg.arity == "":
                    types[arg.name] = (only,)
        for _ in range(2):
            for rule in self.rules:
                args = rule.args
                if rule.name == "everything":
                    args = everything
                elif rule.name == "operands":
                    args = everything[: len(self.operands)]
                if rule.name in ("everything", "operands", "all"):
                    known = next((types[a][0] for a in args if types.get(a)), None)
                    if known is not None:
                        for a in args:
                            if a not in types:
                                types[a] = (known,) * counts.get(a, 1)
                elif rule.args[0] in types and rule.args[1] not in types and types[rule.args[0]]:
                    source = types[rule.args[0]][0]
                    types[rule.args[1]] = _RULES[rule.name](source)
        for arg in self.operands:
            if arg.name not in types and counts.get(arg.name) == 0:
                types[arg.name] = ()

    def mismatch(self, types: Types) -> str | None:
        """Return the error message of the first type rule that `types` violate, or None."""
        for rule in self.rules:
            args = rule.args
            if rule.name in ("everything", "operands"):
                args = [a.name for a in self.operands]
                args += [a.name for a in self.results] if rule.name == "everything" else []
            if rule.name in ("everything", "operands", "all"):
                found = {t for a in args for t in types.get(a, ())}
                if len(found) > 1:
                    return f"expected one type for {', '.join(args)}, got {', '.join(sorted(map(str, found)))}"
            elif types.get(args[0]) and types.get(args[1]):
                wanted = _RULES[rule.name](types[args[0]][0])
                if wanted and types[args[1]] != wanted:
                    return f"expected {_words(wanted)} for '{args[1]}', got {_words(types[args[1]])}"
        return None


def _words(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


def _sizes(args: Sequence[ArgSpec], count: int, given: Sequence[int] | None, message: str) -> list[int]:
    if given is not None:
        if len(given) != len(args) or sum(given) != count or min(given, default=0) < 0:
            raise ValueError(message.format(f"{len(args)} segment sizes with sum {count} for its", list(given)))
        for arg, size in zip(args, given):
            if (arg.arity == "" and size != 1) or (arg.arity == "?" and size > 1):
                # unreachable: no format in tables/ reaches this; tables of another MLIR release could
                raise ValueError(message.format(f"one value for '{arg.name}'", size))
        return list(given)
    loose = [arg for arg in args if arg.arity]
    spare = count - (len(args) - len(loose))
    if spare < 0 or (not loose and spare) or (len(loose) == 1 and loose[0].arity == "?" and spare > 1):
        raise ValueError(message.format(f"{'at least ' if loose else ''}{len(args) - len(loose)}", count))
    if len(loose) <= 1:
        return [spare if arg.arity else 1 for arg in args]
    each, rest = divmod(spare, len(loose))
    if rest:
        # unreachable: no format in tables/ reaches this; tables of another MLIR release could
        raise ValueError(message.format("a multiple of " + str(len(loose)), count))
    return [each if arg.arity else 1 for arg in args]


def _element(t: Attribute) -> tuple[Attribute, ...]:
    element = element_type(t)
    return () if element is None else (element,)


def _i1_shape(t: Attribute) -> tuple[Attribute, ...]:
    return (vector(i1, t.get_shape(), t),) if is_vector(t) else (i1,)


def _last_dim(num: int, den: int) -> Callable[[Attribute], tuple[Attribute, ...]]:
    def scaled(t: Attribute) -> tuple[Attribute, ...]:
        if not is_vector(t):
            return ()
        shape = t.get_shape() or (1,)
        return (vector(t.element_type, (*shape[:-1], shape[-1] * num // den)),)

    return scaled


def _elements(t: Attribute) -> tuple[Attribute, ...]:
    return (t.element_type,) * math.prod(t.get_shape()) if is_vector(t) else ()


def _mma_element(t: Attribute) -> tuple[Attribute, ...]:
    """Return the element type of `!gpu.mma_matrix<16x16xf16, "AOp">`, which is stored as text."""
    text = getattr(t, "data", "")
    name = text.partition(",")[0].rpartition("x")[2] if isinstance(text, str) else ""
    floats: dict[str, Attribute] = {"f16": Float16Type(), "f32": f32, "f64": Float64Type()}
    if name in floats:
        return (floats[name],)
    sign = {"s": Signedness.SIGNED, "u": Signedness.UNSIGNED}.get(name[:1], Signedness.SIGNLESS)
    bits = name.lstrip("sui")
    return (IntegerType(int(bits), sign),) if bits.isdigit() else ()


_RULES: Mapping[str, Callable[[Attribute], tuple[Attribute, ...]]] = {
    "same": lambda t: (t,),
    "element": _element,
    "i1_shape": _i1_shape,
    "val_bool_struct": lambda t: (LLVMStructType([t, i1]),),
    "half_last": _last_dim(1, 2),
    "twice_last": _last_dim(2, 1),
    "elements": _elements,
    "inputs": lambda t: t.inputs.data if isinstance(t, FunctionType) else (),
    "outputs": lambda t: t.outputs.data if isinstance(t, FunctionType) else (),
    "mma_element": _mma_element,
}


# -------------------------------------------------------------------------------------------------- result types


def infer_results(spec: OpSpec, types: Types, props: Mapping[str, Attribute]) -> list[Attribute]:
    """Infer the result types from operand `types` and `props`. Raises TypeError if upstream's rules do not determine
    them.
    """
    known = {name: group for name, group in types.items() if group}
    spec.infer(known, {name: len(group) for name, group in types.items()})
    special = _special_results(spec.name, known, props)
    if special is not None:
        return special
    found: list[Attribute] = []
    for res in spec.results:
        if res.name not in known and res.arity == "":
            raise TypeError(f"'{spec.name}' needs result_types: the type of '{res.name}' cannot be inferred")
        found.extend(known.get(res.name, ()))
    return found


def _special_results(name: str, types: Types, props: Mapping[str, Attribute]) -> list[Attribute] | None:
    """Return the result types that upstream infers in C++ (`inferReturnTypes`), or None if there is no such rule."""
    match name:
        case "vector.shuffle":
            v1 = types["v1"][0]
            if is_vector(v1):
                return [vector(v1.element_type, (len(numbers(props.get("mask"))), *v1.get_shape()[1:]))]
        case "llvm.extractvalue":
            if "container" in types:
                inner = container_element(types["container"][0], numbers(props.get("position")))
                return None if inner is None else [inner]
        case "llvm.shufflevector":
            v1 = types["v1"][0]
            if is_vector(v1):
                return [vector(v1.element_type, [len(numbers(props.get("mask")))], v1)]
        case "memref.distinct_objects":
            return list(types.get("operands", ()))
        case _:
            pass
    return None


def container_element(container: Attribute, position: tuple[int, ...]) -> Attribute | None:
    """Return the type at `position` in nested structs and arrays, or None if there is none."""
    for index in position:
        if isinstance(container, LLVMStructType) and 0 <= index < len(container.types):
            container = container.types[index]
        elif isinstance(container, LLVMArrayType) and 0 <= index < container.size:
            container = container.element_type
        else:
            return None
    return container


class _Cache:
    """Cache of parsed table text."""

    types: ClassVar[dict[str, Attribute]] = {}
    enums: ClassVar[dict[str, dict[str, int]]] = {}


def buildable_type(text: str) -> Attribute:
    """Build a type from its text in a table: `i32`, `index`, `!llvm.ptr<3>`, `!gpu.async.token` …"""
    if text not in _Cache.types:
        _Cache.types[text] = _make_type(text)
    return _Cache.types[text]


def _make_type(text: str) -> Attribute:
    if text in NUMBER_TYPES:
        return NUMBER_TYPES[text]
    if text == "f32":
        return f32
    if text.startswith("i"):
        return IntegerType(int(text[1:]))
    if text.startswith("!llvm.ptr"):
        return LLVMPointerType(int(text[10:-1] or 0))
    if text == "!llvm.token":
        return LLVMTokenType()
    if text == "vector<2xi16>":
        return VectorType(IntegerType(16), [2])
    return opaque_type(text[1:])


def enum_cases(dialect: str, name: str) -> dict[str, int]:
    """Return the cases of an integer-valued enum of `dialect`."""
    if name not in _Cache.enums:
        pairs = (item.rpartition("=") for item in table(dialect).enums[name].split())
        _Cache.enums[name] = {word: int(value) for word, _, value in pairs}
    return _Cache.enums[name]
