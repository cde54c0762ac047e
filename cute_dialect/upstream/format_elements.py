"""Compiler of upstream's declarative assembly formats (ODS `assemblyFormat`) to trees of elements.

$kind $mask `,` $pred attr-dict `->` type($res)
→ Var("kind"), Var("mask"), Lit(","), Var("pred"), Dict(), Lit("->"), TypeOf(Var("res"))
"""

import re
from collections.abc import Sequence

_TOKEN = re.compile(r"`[^`]*`|custom<\w+>|\$\w+|[A-Za-z][\w-]*|[()?:^,|]")


class Lit:
    """Literal: a keyword or punctuation."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Space:
    """Explicit space, line break, or absence of a space."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Var:
    """Operand, result, attribute, region or successor; the names `operands` and `results` stand for all of them."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class TypeOf:
    """`type(…)`. A qualified type is printed with the dialect prefix."""

    __slots__ = ("name", "qualified")

    def __init__(self, name: str, qualified: bool = False) -> None:
        self.name = name
        self.qualified = qualified


class Qualified:
    """`qualified($attr)`: prints the attribute with `#dialect.mnemonic`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class FunctionalType:
    """`functional-type(inputs, outputs)`."""

    __slots__ = ("inputs", "outputs")

    def __init__(self, inputs: str, outputs: str) -> None:
        self.inputs = inputs
        self.outputs = outputs


class Dict:
    """`attr-dict`, `attr-dict-with-keyword` or `prop-dict`."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Group:
    """`(then)?` or `(then) : (otherwise)?`; printed if its anchor is present."""

    __slots__ = ("anchor", "otherwise", "then")

    def __init__(self, then: "list[Element]", otherwise: "list[Element]", anchor: "Element") -> None:
        self.then = then
        self.otherwise = otherwise
        self.anchor = anchor


class Custom:
    """`custom<Name>(args)`; each arg is ("$", name), ("type", name) or ("ref", name)."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: Sequence[tuple[str, str]]) -> None:
        self.name = name
        self.args = args


class OiList:
    """`oilist(`a` $a | `b` $b)`: clauses in any order, each at most once."""

    __slots__ = ("clauses",)

    def __init__(self, clauses: "list[list[Element]]") -> None:
        self.clauses = clauses


Element = Lit | Space | Var | TypeOf | Qualified | FunctionalType | Dict | Group | Custom | OiList


def compile_format(text: str) -> "list[Element]":
    """Compile a declarative assembly format to its elements."""
    return _Compiler(_TOKEN.findall(text)).elements(())


class _Compiler:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.anchor: Element | None = None

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def elements(self, stop: Sequence[str]) -> "list[Element]":
        found: list[Element] = []
        while self.peek() and self.peek() not in stop:
            element = self.element()
            if self.peek() == "^":
                self.next()
                self.anchor = element
            found.append(element)
        return found

    def element(self) -> Element:
        token = self.next()
        if token.startswith("`"):
            word = token[1:-1]
            return Space(word.replace("\\n", "\n")) if not word.strip() or word == "\\n" else Lit(word)
        if token.startswith("$"):
            return Var(token[1:])
        if token.startswith("custom<"):
            return Custom(token[7:-1], self.custom_args())
        match token:
            case "(":
                outer, self.anchor = self.anchor, None
                then = self.elements((")",))
                self.next()
                otherwise: list[Element] = []
                if self.peek() == ":":
                    self.next()
                    self.next()
                    otherwise = self.elements((")",))
                    self.next()
                mark = self.next()  # Not in the assert, which `python -O` removes.
                assert mark == "?" and self.anchor is not None
                group = Group(then, otherwise, self.anchor)
                self.anchor = outer
                return group
            case "type":
                return TypeOf(self.argument())
            case "qualified":
                self.next()
                inner = self.element()
                self.next()
                return TypeOf(inner.name, True) if isinstance(inner, TypeOf) else Qualified(_name(inner))
            case "functional-type":
                self.next()
                inputs = self.next().lstrip("$")
                self.next()
                outputs = self.next().lstrip("$")
                self.next()
                return FunctionalType(inputs, outputs)
            case "oilist":
                self.next()
                clauses = [self.elements(("|", ")"))]
                while self.next() == "|":
                    clauses.append(self.elements(("|", ")")))
                return OiList(clauses)
            case "attr-dict" | "attr-dict-with-keyword" | "prop-dict":
                return Dict(token)
            case _:
                return Var(token)

    def argument(self) -> str:
        self.next()
        name = self.next().lstrip("$")
        self.next()
        return name

    def custom_args(self) -> list[tuple[str, str]]:
        args: list[tuple[str, str]] = []
        self.next()
        while True:
            token = self.next()
            if token in ("ref", "type"):
                self.next()
                inner = self.next()
                kind = token
                if inner == "type":
                    self.next()
                    inner = self.next()
                    self.next()
                    kind = "type"
                self.next()
                args.append((kind, inner.lstrip("$")))
            else:
                args.append(("$", token.lstrip("$")))
            if self.next() == ")":
                return args


def _name(element: Element) -> str:
    assert isinstance(element, Var)
    return element.name


class _Formats:
    by_op: dict[str, list[Element]] = {}


def format_of(name: str, text: str) -> list[Element]:
    """Return the compiled format `text` of op `name`, compiled on first use."""
    if name not in _Formats.by_op:
        _Formats.by_op[name] = compile_format(text)
    return _Formats.by_op[name]
