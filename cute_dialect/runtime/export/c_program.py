"""Host programs (:mod:`cute_dialect.runtime.host_program`) as C statements.

A register becomes one C variable per scalar; tuples are taken apart here.  An overflow, which raises ``HostOverflow``
in Python, returns ``CUTE_REFUSED`` so that a fallback may run.  Other errors return ``CUTE_FAILED``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from cute_dialect.runtime import abi, host_program
from cute_dialect.runtime.export.c_text import ExportError, Function, Scalar, Value, at, each, number, real, text

__all__ = ["write_program"]

_WIDE = {
    "addi": "(cute_wide){a} + {b}",
    "subi": "(cute_wide){a} - {b}",
    "muli": "(cute_wide){a} * {b}",
    "divsi": "(cute_wide){a} / {b}",
    "remsi": "(cute_wide){a} % {b}",
    "ceildivsi": "cute_ceiling_division({a}, {b})",
    "floordivsi": "cute_floor_division({a}, {b})",
    "maxsi": "{a} > {b} ? {a} : {b}",
    "minsi": "{a} < {b} ? {a} : {b}",
    "andi": "{a} & {b}",
    "ori": "{a} | {b}",
    "xori": "{a} ^ {b}",
    "shli": "cute_left_shift({a}, {b})",
    "shrsi": "(cute_wide){a} >> {b}",
}
"""Signed instructions with exact results; a range check follows."""
_UNSIGNED = {
    "divui": "{a} / {b}",
    "remui": "{a} % {b}",
    "ceildivui": "{a} / {b} + ({a} % {b} != 0)",
    "maxui": "{a} > {b} ? {a} : {b}",
    "minui": "{a} < {b} ? {a} : {b}",
    "shrui": "{b} > 63 ? 0 : {a} >> {b}",
}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLOATS = {"addf": "+", "subf": "-", "mulf": "*", "divf": "/"}


def write_program(f: Function, host: Mapping[str, object], arguments: Sequence[Value]) -> dict[int, Value]:
    """Write the code of a host function's program and return the values of its registers.

    Raises :class:`ExportError` for integers of more than 64 bits.
    """
    program = cast("dict[str, object]", host["program"])
    writer = _Writer(f, str(host["name"]), dict(enumerate(arguments)))
    writer.code(cast("Sequence[host_program.Instruction]", program["code"]))
    return writer.values


class _Writer:
    def __init__(self, f: Function, name: str, values: dict[int, Value]):
        self._f = f
        self._name = name
        self.values = values

    def code(self, code: Sequence[host_program.Instruction]) -> None:
        """Write instructions in order."""
        for name, result, operands, extra in code:
            given = [self.values[r] for r in cast("list[int]", operands)]
            if name == "if":
                self._if(cast("list[int]", result), given[0], cast("list[list[object]]", extra))
            elif name == "assert":
                self._fail(f"{self._scalar(given[0])} != 0", str(extra))
            else:
                self.values[cast(int, result)] = self._step(cast(str, name), given, extra)

    def _fail(self, condition: str, message: str, *arguments: str) -> None:
        shown = text(f"host function @{self._name}: {message}")
        self._f.say(condition, "CUTE_FAILED", shown.replace("{}", "%lld") if arguments else shown, *arguments)

    def _scalar(self, value: Value) -> str:
        if not isinstance(value, Scalar):
            raise ExportError(f"host function @{self._name} computes with an undefined value")
        return value.text

    def _if(self, results: list[int], condition: Value, parts: list[list[object]]) -> None:
        yields: list[list[Value]] = []
        made: list[Value] = []
        test = self._scalar(condition)
        for side, head in ((0, f"if ({test})"), (2, f"if (!({test}))")):
            with self._f.block(head):
                self.code(cast("Sequence[host_program.Instruction]", parts[side]))
                given = [self.values[r] for r in cast("list[int]", parts[side + 1])]
                yields.append(given)
                if side == 0:
                    made = [each(lambda s: self._f.variable(s[0].type, s[0].argument), v) for v in given]
                for target, source in zip(made, given):
                    self._assign(target, source)
        for register, one, other, value in zip(results, *yields, made):
            self.values[register] = each(_from_either, one, other, value)

    def _assign(self, target: Value, source: Value) -> None:
        if isinstance(target, tuple) and isinstance(source, tuple):
            for a, b in zip(target, source):
                self._assign(a, b)
        elif isinstance(target, Scalar) and isinstance(source, Scalar):
            self._f.line(f"{target.text} = {source.text};")

    def _step(self, name: str, given: list[Value], extra: object) -> Value:
        if name == "const":
            value, width = cast("tuple[int | float, int]", extra)
            if isinstance(value, float):
                return Scalar(real(value), "double")
            return Scalar(number(self._narrow(value, width)))
        if name == "same":
            return given[0]
        if name == "select":
            test = self._scalar(given[0])
            return each(lambda s: self._choose(test, s[0], s[1]), given[1], given[2])
        if name in ("poison", "zero"):
            return _fill(abi.parse_type(cast(str, extra)), name == "zero")
        if name == "get":
            return at(given[0], cast("list[int]", extra))
        if name == "set":
            return _set(given[0], given[1], cast("list[int]", extra))
        if name == "gep":
            return self._step_pointer(given, cast("list[int | None]", extra))
        if name in ("tensor_map", "im2col_map"):
            return self._map(name, given, cast(int, extra))
        if name in host_program.FLOAT_STEPS or name == "cmpf" or name in host_program.FROM_INTEGER:
            return self._float(name, [self._scalar(v) for v in given], extra)
        return self._integer(name, [self._scalar(v) for v in given], extra)

    def _narrow(self, value: int, width: int) -> int:
        if width > 64:
            raise ExportError(f"host function @{self._name}: integers of {width} bits cannot be exported to C")
        return value

    def _choose(self, test: str, a: Scalar, b: Scalar) -> Scalar:
        if a == b:
            return a
        argument = a.argument if a.argument == b.argument else None
        return self._f.let(a.type, f"{test} ? {a.text} : {b.text}", argument)

    def _step_pointer(self, given: list[Value], extra: list[int | None]) -> Value:
        size, static = extra
        pointer = given[0]
        if not isinstance(pointer, Scalar) or pointer.type != "uint64_t":
            raise ExportError(
                f"host function @{self._name}: cannot do pointer arithmetic on a value that is not a pointer"
            )
        step = number(static * cast(int, size)) if static is not None else f"{self._scalar(given[1])} * {size}"
        return self._f.let("uint64_t", f"{pointer.text} + (uint64_t)({step})", pointer.argument)

    def _map(self, name: str, given: list[Value], rank: int) -> Value:
        pointer = given[0]
        if not isinstance(pointer, Scalar) or pointer.type != "uint64_t":
            raise ExportError(
                f"host function @{self._name}: cannot encode a tensor map of a value that is not a pointer"
            )
        made = self._f.variable("struct cute_map", pointer.argument)
        f = self._f
        f.line(f"{made.text}.rank = {rank};")
        f.line(f"{made.text}.address = {pointer.text};")
        numbers = [self._scalar(v) for v in given[1:]]
        parts = ["extents", "strides", "box", "steps"]
        if name == "im2col_map":
            parts = ["extents", "strides", "box", "pixels", "wide", "lower", "upper", "steps"]
        for part, size in zip(parts, host_program.map_sizes(name, rank)):
            for i, n in enumerate(numbers[:size]):
                f.line(f"{made.text}.{part}{'' if part in ('pixels', 'wide') else f'[{i}]'} = {n};")
            del numbers[:size]
        for i, (code, (what, known)) in enumerate(zip(numbers, host_program.MAP_CODES)):
            if not code.isdecimal() or int(code) not in known:
                codes = ", ".join(map(str, known))
                held = " || ".join([f"{code} == {k}" for k in known])
                self._fail(held, f"expected a tensor map's {what} of {codes}")
            f.line(f"{made.text}.codes[{i}] = {code};")
        return made

    def _integer(self, name: str, given: list[str], extra: object) -> Value:
        f = self._f
        if name == "cmpi":
            predicate, width = cast("tuple[str, int]", extra)
            if predicate.startswith("u"):
                given = [f"cute_unsigned({v}, {self._narrow(width, width)})" for v in given]
            return f.let("int64_t", f"{given[0]} {_COMPARE[predicate[-2:]]} {given[1]}")
        if name in host_program.BINARY:
            width = self._narrow(cast(int, extra), cast(int, extra))
            a, b = given
            if name[:3] in ("div", "rem", "cei", "flo"):
                self._fail(f"{b} != 0", "division by zero")
            if name in ("shli", "shrsi", "shrui"):
                self._fail(f"0 <= {b} && {b} < 128", "a shift by {} bits", b)
            if name in _UNSIGNED:
                left, right = (f.let("uint64_t", f"cute_unsigned({v}, {width})").text for v in given)
                if name == "shrui":
                    right = b
                return f.let("int64_t", f"cute_signed({_UNSIGNED[name].format(a=left, b=right)}, {width})")
            return self._fit(_WIDE[name].format(a=a, b=b), width, name, a, b)
        if name == "absi":
            width = self._narrow(cast(int, extra), cast(int, extra))
            return self._fit(f"{given[0]} < 0 ? -(cute_wide){given[0]} : {given[0]}", width, name, given[0], "0")
        source, target = cast("tuple[int, int]", extra)
        self._narrow(0, max(source, target))
        if name in ("extui", "index_castui"):
            return f.let("int64_t", f"cute_signed(cute_unsigned({given[0]}, {source}), {target})")
        if name == "extsi" and source == 1:
            return f.let("int64_t", f"-{given[0]}")
        if target >= source:
            return Scalar(given[0])
        return self._fit(given[0], target, name, given[0], "0")

    def _fit(self, exact: str, width: int, name: str, a: str, b: str) -> Scalar:
        f = self._f
        if width == 1:
            return f.let("int64_t", f"({exact}) & 1")
        wide = f.let("cute_wide", exact)
        f.line(f"if (!cute_fits({wide.text}, {width})) return "
               f'cute_overflow({text(self._name)}, "{name}", {a}, {b}, {width});')  # fmt: skip
        return f.let("int64_t", f"(int64_t){wide.text}")

    def _float(self, name: str, given: list[str], extra: object) -> Value:
        f = self._f
        if name == "cmpf":
            predicate, type_ = cast("tuple[str, str]", extra)
            a, b = (f.let("double", _rounded(v, type_)).text for v in given)
            return f.let("int64_t", _compared(predicate, a, b))
        if name in host_program.FROM_INTEGER:
            width, type_ = cast("tuple[int, str]", extra)
            exact = given[0] if name == "sitofp" else f"cute_unsigned({given[0]}, {width})"
            return f.let("double", f"(float)({exact})" if type_ == "f32" else _rounded(f"(double)({exact})", type_))
        kind = cast(str, extra)
        a = f.let("double", _rounded(given[0], kind)).text
        if name in ("extf", "truncf"):
            return Scalar(a, "double")
        if name == "negf":
            return f.let("double", f"-{a}")
        b = f.let("double", _rounded(given[1], kind)).text
        return f.let("double", _rounded(f"{a} {_FLOATS[name]} {b}", kind))


def _from_either(given: Sequence[Scalar]) -> Scalar:
    """Return the variable that an ``if`` assigns; it points into an array if both values point into that array."""
    one, other, value = given
    return replace(value, argument=one.argument if one.argument == other.argument else None)


def _rounded(expression: str, kind: str) -> str:
    """Round a double to its type."""
    if kind == "f16":
        return f"cute_half_value(cute_half({expression}))"
    return f"(float)({expression})" if kind == "f32" else expression


def _compared(predicate: str, a: str, b: str) -> str:
    if predicate in ("false", "true"):
        return "1" if predicate == "true" else "0"
    nan = f"(isnan({a}) || isnan({b}))"
    if predicate in ("ord", "uno"):
        return nan if predicate == "uno" else f"!{nan}"
    compared = f"{a} {_COMPARE[predicate[1:]]} {b}"
    return f"{nan} || {compared}" if predicate[0] == "u" else f"!{nan} && {compared}"


def _fill(type_: abi.Type, zero: bool) -> Value:
    if isinstance(type_, abi.Struct):
        return tuple([_fill(m, zero) for m in type_.members])
    return Scalar("0") if zero else None


def _set(container: Value, value: Value, path: Sequence[int]) -> Value:
    if not path:
        return value
    assert isinstance(container, tuple)
    i = path[0]
    return (*container[:i], _set(container[i], value, path[1:]), *container[i + 1 :])
