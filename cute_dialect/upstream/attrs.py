"""Attributes of the upstream dialects: enums and structures in upstream's spelling.

Each attribute class is built on first use from a row `(mnemonic, style, cases)` of `tables/<dialect>.py`. Its value is
the text between the brackets with normalised spaces, so that it is printed as upstream prints it:

    #nvvm.mma_layout<row>            style `<>`     MmaLayout("row")
    #nvvm<shfl_kind bfly>            style `bare`   (a format without brackets is spelled in the opaque form)
    #llvm.overflow<nsw, nuw>         style `<>,`    a bit enum, cases joined by the separator
    #nvvm.shape<m = 16, n = 8>       style `text`   any text, `.fields()` gives {"m": "16", "n": "8"}
    #nvvm.target, #nvvm.target<...>  style `maybe`

An opaque type is the text between its brackets, too.
"""

import re
from collections.abc import Mapping
from typing import ClassVar, cast

from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.ir.xdsl_compat import parse_symbol_body, scan_balanced
from cute_dialect.upstream.lazy import MadeLater
from cute_dialect.upstream.tables import table

_ALIAS = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.])[#!][A-Za-z_]\w*(?![\w.<])')
_BLANKS = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')


def normalise(text: str) -> str:
    """Replace each run of spaces outside string literals by one space, and strip both ends."""
    return _BLANKS.sub(lambda m: m.group(1) or " ", text).strip()


def raw_body(parser: AttrParser) -> str:
    """Consume a `<` (the current token) and its matching `>`, and return the text between them. Aliases are
    expanded.
    """
    text = parse_symbol_body(parser)
    aliases = parser.attribute_aliases
    if aliases and ("#" in text or "!" in text):
        text = _ALIAS.sub(lambda m: str(aliases[m[0]]) if m[0] in aliases else m[0], text)
    return normalise(text)


def peek_body(parser: AttrParser) -> tuple[str, int]:
    """Return the text between a `<` (the current token) and its matching `>`, and the position after it. Consumes
    nothing.
    """
    start = parser.pos + 1
    end = scan_balanced(parser, start)
    return parser.lexer.input.content[start:end], end + 1


def at_punctuation(parser: AttrParser, text: str) -> bool:
    """Return True if the current token starts with `text`. Consumes nothing."""
    return parser.lexer.input.content.startswith(text, parser.pos)


class TextAttr(Data[str]):
    """Attribute whose parameters are stored as text."""

    style: ClassVar[str] = "text"
    cases: ClassVar[tuple[str, ...]] = ()

    @property
    def text(self) -> str:
        """Parameters without the brackets: `row` in `#nvvm.mma_layout<row>`."""
        return self.data

    def fields(self) -> dict[str, str]:
        """Split `<m = 16, n = 8>` into `{"m": "16", "n": "8"}`. A value is not split further, even if it contains a
        comma at the top level.
        """
        found: dict[str, str] = {}
        depth, start, quoted = 0, 0, False
        for i, char in enumerate(self.data + ","):
            if char == '"':
                quoted = not quoted
            elif quoted:
                continue
            elif char in "<([{":
                depth += 1
            elif char in ">)]}":
                depth -= 1
            elif char == "," and depth == 0:
                key, _, value = self.data[start:i].partition("=")
                found[key.strip()] = value.strip()
                start = i + 1
        return found

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Parse the parameters as text, in the style of the attribute."""
        match cls.style:
            case "text":
                if not at_punctuation(parser, "<"):
                    parser.raise_error(f"expected '<' after '#{cls.name}'")
                return raw_body(parser)
            case "maybe":
                return raw_body(parser) if at_punctuation(parser, "<") else ""
            case "bare" | "raw":
                return cls.parse_case(parser)
            case _:
                parser.parse_punctuation("<", f" after '#{cls.name}'")
                text = cls.parse_case(parser)
                parser.parse_punctuation(">", f" after the value of '#{cls.name}'")
                return text

    @classmethod
    def parse_case(cls, parser: AttrParser) -> str:
        """Parse a case of an enum, or the cases of a bit enum, joined by its separator."""
        separator = cls.style[-1] if cls.style[-1] in ",|" else ""
        found = [cls._one_case(parser)]
        while separator and parser.parse_optional_punctuation(cast("str", separator)) is not None:  # pyright: ignore
            found.append(cls._one_case(parser))
        return (", " if separator == "," else separator).join(found)

    @classmethod
    def _one_case(cls, parser: AttrParser) -> str:
        pos = parser.pos
        word = (
            parser.parse_optional_keyword_in(cls.cases)
            if cls.cases
            else parser.parse_optional_identifier_or_str_literal()
        )
        if word is None and cls.cases:
            word = parser.parse_optional_str_literal()
        if word is None or (cls.cases and word not in cls.cases):
            parser.raise_error(f"expected one of {', '.join(cls.cases)} for '#{cls.name}'", pos)
        return word

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters, in brackets unless the style is `bare`."""
        if self.style in ("bare", "raw"):
            printer.print_string(self.data)
        elif self.data or self.style != "maybe":
            printer.print_string(f"<{self.data}>")


class OpaqueTextAttr(TextAttr, SpacedOpaqueSyntaxAttribute):
    """`TextAttr` that upstream spells in the opaque form: `#nvvm<shfl_kind bfly>`."""


def make_attrs(dialect: str) -> Mapping[str, type[TextAttr]]:
    """Return newly built attribute classes of `dialect` by mnemonic. `attrs` returns the shared ones."""
    rows = {mnemonic: (style, cases) for mnemonic, style, cases in table(dialect).attrs}

    def make(mnemonic: str) -> type[TextAttr]:
        style, cases = rows[mnemonic]
        base = OpaqueTextAttr if style.startswith(("bare", "raw")) else TextAttr
        camel = "".join(part.capitalize() for part in mnemonic.replace(".", "_").split("_"))
        body = {"name": f"{dialect}.{mnemonic}", "style": style, "cases": tuple(cases.split()), "__module__": __name__}
        return cast("type[TextAttr]", type(camel + "Attr", (base,), body))

    return MadeLater(rows, make)


class _Cache:
    """Attribute classes by dialect."""

    by_dialect: ClassVar[dict[str, Mapping[str, type[TextAttr]]]] = {}


def attrs(dialect: str) -> Mapping[str, type[TextAttr]]:
    """Return the attribute classes of `dialect` by mnemonic, as in `attrs("nvvm")["shfl_kind"]`.

    The result is empty for arith, whose attributes are xDSL's.
    """
    if dialect == "arith":
        return {}
    if dialect not in _Cache.by_dialect:
        _Cache.by_dialect[dialect] = make_attrs(dialect)
    return _Cache.by_dialect[dialect]


def attr(name: str, text: str = "") -> Attribute:
    """Build the attribute `#name<text>`: `attr("nvvm.mma_layout", "row")`, `attr("llvm.linkage", "internal")`.

    Raises ValueError if upstream has no such attribute, or the enum no such case.
    """
    dialect, _, mnemonic = name.partition(".")
    cls = attrs(dialect).get(mnemonic)
    if cls is None:
        raise ValueError(f"expected an attribute of the {dialect} dialect, got '#{name}'")
    if cls.cases and any(part.strip() not in cls.cases for part in re.split(r"[,|]", text)):
        raise ValueError(f"expected one of {', '.join(cls.cases)} for '#{name}', got '{text}'")
    return cls(normalise(text))


# --------------------------------------------------------------------------------------------------------- opaque types


class OpaqueType(Data[str], TypeAttribute):
    """Type whose parameters are stored as text. A `plain` type has no parameters."""

    plain: ClassVar[bool] = True

    def __init__(self, text: str = "") -> None:
        super().__init__(text)

    @property
    def text(self) -> str:
        """Parameters without the brackets."""
        return self.data

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        if cls.plain:
            return ""
        if not at_punctuation(parser, "<"):
            parser.raise_error(f"expected '<' after '!{cls.name}'")
        return raw_body(parser)

    def print_parameter(self, printer: Printer) -> None:
        if not self.plain:
            printer.print_string(f"<{self.data}>")


class AsyncTokenType(OpaqueType):
    """`!gpu.async.token`"""

    name = "gpu.async.token"


_NAMES = {
    "gpu.sparse.dntensor_handle": True,
    "gpu.sparse.spmat_handle": True,
    "gpu.sparse.spgemmop_handle": True,
    "gpu.mma_matrix": False,  # !gpu.mma_matrix<16x16xf16, "AOp">
    "nvgpu.device.async.token": True,
    "nvgpu.mbarrier.token": True,
    "nvgpu.mbarrier.group": False,  # <memorySpace = …, num_barriers = 4>
    "nvgpu.tensormap.descriptor": False,  # <tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, …>
    "nvgpu.warpgroup.accumulator": False,  # <fragmented = vector<64x64xf32>>
    "nvgpu.warpgroup.descriptor": False,  # <tensor = memref<64x64xf16, 3>>
}
"""Name of a type -> whether it is plain."""


def _class_of(name: str, plain: bool) -> type[OpaqueType]:
    class_name = "".join(word.capitalize() for word in re.split(r"[._]", name)) + "Type"
    return type(class_name, (OpaqueType,), {"name": name, "plain": plain, "__doc__": f"`!{name}`"})


_OPAQUE = {t.name: t for t in (AsyncTokenType, *(_class_of(*row) for row in _NAMES.items()))}


def opaque_class(name: str) -> type[OpaqueType] | None:
    """Return the class of the type `!name`, or None if it is not stored as text."""
    return _OPAQUE.get(name)


def opaque_type(name: str) -> Attribute:
    """Build the type `!name` without parameters."""
    return _OPAQUE[name]()


def opaque_types(dialect: str) -> list[type[OpaqueType]]:
    """Return the types of `dialect` that are stored as text."""
    return [t for n, t in _OPAQUE.items() if n.startswith(dialect + ".")]
