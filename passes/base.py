"""Base class of all passes.

A pass is a class with a ``name`` (its flag), a one-line ``summary``, a docstring (its help text, with an example before
and after), options, and ``run``::

    class CountPass(Pass):
        \"\"\"Count the ops of each function.\"\"\"

        name = "count-ops"
        summary = "remark how many ops each function has"
        anchor = ("func.func",)

        @dataclass(frozen=True)
        class Options(PassOptions):
            min_count: int = 0                                    # --count-ops=min-count=3

        def run(self, op: Operation, ctx: PassContext) -> None:
            count = sum(1 for _ in op.walk())
            if count < self.options_as(self.Options).min_count:
                raise PassError("too few ops", op)
            ctx.remark(f"{count} ops", op)

``anchor`` names the ops that the pass runs on; with None it runs on the given op, usually the module.  ``legal_after``
returns the ops that the pass should have removed (``--verify-legality``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, make_dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast, get_args

from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, did_you_mean

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.ir import Operation
    from xdsl.passes import ModulePass

    from cute_dialect.passes.registry import Scope

OptionsT = TypeVar("OptionsT", bound="PassOptions")
_KIND = re.compile(r"((int|bool|float|str)|tuple\[(int|bool|float|str), \.\.\.\])( \| None)?")


class PassError(Exception):
    """The input prevents a pass from continuing; holds the message, the op and notes."""

    def __init__(self, message: str, op: Operation | None = None, notes: Iterable[Diagnostic] = ()):
        super().__init__(message)
        self.message = message
        self.op = op
        self.notes = tuple(notes)


class PassOptionError(ValueError):
    """A pass has no such option, or its value is invalid."""


@dataclass(frozen=True)
class PassOptions:
    """Options of a pass: a frozen dataclass with defaults for all fields.

    Field types are ``int``, ``bool``, ``float``, ``str``, a tuple of one of these (``tuple[int, ...]``, on the command
    line ``1,2,3``), and each of them with ``| None``.  ``index_bits: int = 32`` is spelled ``index-bits=32``; a
    ``bool`` may be given without a value.
    """

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the option names as spelled on the command line."""
        return tuple(f.name.replace("_", "-") for f in fields(cls))

    @classmethod
    def from_text(cls: type[OptionsT], options: Mapping[str, str], pass_name: str = "") -> OptionsT:
        """Parse options: ``{"index-bits": "32"}``.  Raises PassOptionError.

        >>> PassOptions.from_text({})
        PassOptions()
        """
        known = {f.name.replace("_", "-"): f for f in fields(cls)}
        values: dict[str, object] = {}
        for key, text in options.items():
            f = known.get(key.replace("_", "-"))
            if f is None:
                names = ", ".join(known) or "none"
                raise PassOptionError(
                    f"pass '{pass_name}' has no option '{key}'{did_you_mean(key, known)} (its options: {names})"
                )
            try:
                values[f.name] = _convert(text, _written(f))
            except ValueError:
                raise PassOptionError(
                    f"option '{key}' of pass '{pass_name}': expected {_written(f)}, got '{text}'"
                ) from None
        return cls(**values)  # pyright: ignore[reportArgumentType]

    def to_text(self) -> dict[str, str]:
        """Return the options that differ from their defaults as text: the inverse of :meth:`from_text`."""
        out: dict[str, str] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if value != f.default:
                out[f.name.replace("_", "-")] = _text(value)
        return out


def _written(option: Field[object]) -> str:
    """Return the type annotation of an option as text: ``int``, ``tuple[int, ...]``, ``str | None``."""
    kind: object = option.type
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def can_be_written(option: Field[object]) -> bool:
    """Return True if the type of an option has a command line syntax."""
    return _KIND.fullmatch(_written(option)) is not None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(_text, cast("tuple[object, ...]", value)))
    return str(value)


def _convert(text: str, kind: str) -> object:
    """Parse a value by the type annotation of its field.  Raises ValueError."""
    kind = kind.removesuffix("| None").strip()
    if kind.startswith("tuple["):
        inner = kind[len("tuple[") :].split(",")[0].rstrip("]").strip()
        return tuple(_convert(part.strip(), inner) for part in text.split(",") if part.strip())
    if kind == "int":
        return int(text, 0)
    if kind == "float":
        return float(text)
    if kind == "bool":
        if text in ("", "true", "1"):
            return True
        if text in ("false", "0"):
            return False
        raise ValueError(text)
    if kind == "str":
        return text
    raise TypeError(f"a pass option of type {kind} has no command line syntax")


@dataclass
class PassContext:
    """The context of a pass: xDSL's context, diagnostics and statistics."""

    context: Context
    diagnostics: DiagnosticEngine = field(default_factory=DiagnosticEngine)
    statistics: dict[str, int] = field(default_factory=dict[str, int])

    def remark(self, message: str, op: Operation | None = None) -> None:
        """Report a remark about the input."""
        self.diagnostics.remark(message, op)

    def warning(self, message: str, op: Operation | None = None) -> None:
        """Report a warning: the result is correct, but probably not intended."""
        self.diagnostics.warning(message, op)

    def error(self, message: str, op: Operation | None = None) -> None:
        """Report an error and continue, to find further errors; the pass fails when it returns."""
        self.diagnostics.error(message, op)

    def note(self, message: str, op: Operation | None = None) -> Diagnostic:
        """Create a note for a PassError."""
        return self.diagnostics.note(message, op)

    def count(self, what: str, by: int = 1) -> None:
        """Increase a statistic (``--mlir-pass-statistics``)."""
        self.statistics[what] = self.statistics.get(what, 0) + by


class Pass:
    """One rewrite of the IR; see the module's docstring."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    """One-line help.  :mod:`.registry` reads name, summary and scope from the text of the class, so write literals."""
    scope: ClassVar[Scope] = "generic"
    """The dialects that the pass works on."""
    in_upstream: ClassVar[bool] = False
    """True if upstream MLIR has a pass of this name, which runs if upstream holds the IR."""
    description: ClassVar[str] = ""
    """The help text; default: the docstring of the class."""
    anchor: ClassVar[tuple[str, ...] | None] = None
    Options: ClassVar[type[PassOptions]] = PassOptions
    counts_changes: ClassVar[bool] = False
    """True if statistics count every change.  If the counts stay equal, the module is not verified again."""

    def __init__(self, options: PassOptions | None = None):
        self.options: PassOptions = self.Options() if options is None else options

    @classmethod
    def from_text(cls, options: Mapping[str, str]) -> Pass:
        """Create the pass with options given as text.  Raises PassOptionError."""
        return cls(cls.Options.from_text(options, cls.name))

    @classmethod
    def help_text(cls) -> str:
        """Return the description or the docstring, dedented."""
        from textwrap import dedent

        first, _, rest = (cls.description or cls.__doc__ or cls.summary).strip().partition("\n")
        return first + "\n" + dedent(rest) if rest else first

    def options_as(self, kind: type[OptionsT]) -> OptionsT:
        """Return the options as an instance of ``kind``."""
        assert isinstance(self.options, kind)
        return self.options

    def run(self, op: Operation, ctx: PassContext) -> None:
        """Rewrite ``op`` in place.  Raises PassError."""
        raise NotImplementedError(self.name)

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Return the ops in ``op`` that the pass should have removed: a check of the pass, not of its input."""
        return ()


def run_pass(instance: Pass, op: Operation, ctx: PassContext) -> None:
    """Run a pass on ``op``, or on each op in it that matches the anchor.  Raises PassError."""
    if instance.anchor is None or op.name in instance.anchor:
        instance.run(op, ctx)
        return
    for target in anchored(op, instance.anchor):
        instance.run(target, ctx)


def anchored(op: Operation, anchor: tuple[str, ...]) -> list[Operation]:
    """Return the outermost ops below ``op`` with one of the names."""
    found: list[Operation] = []
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                found += [child] if child.name in anchor else anchored(child, anchor)
    return found


def as_module_pass(pass_class: type[Pass]) -> type[ModulePass]:
    """Wrap the pass as an xDSL pass with the same name and options, for ``xdsl-opt`` and xDSL pipelines.

    Errors become ``PassFailedException``; warnings and remarks are lost, because xDSL has none.
    """
    from dataclasses import field as new_field

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass
    from xdsl.utils.exceptions import PassFailedException

    def apply(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        options = pass_class.Options(**{f.name: getattr(self, f.name) for f in fields(pass_class.Options)})
        context = PassContext(ctx)
        try:
            run_pass(pass_class(options), op, context)
        except PassError as e:
            raise PassFailedException(e.message) from e
        if context.diagnostics.errors:
            raise PassFailedException("; ".join(d.message for d in context.diagnostics.seen if d.severity == "error"))

    members = [(f.name, _type(_written(f)), new_field(default=f.default)) for f in fields(pass_class.Options)]
    namespace = {"name": pass_class.name, "apply": apply, "__doc__": pass_class.__doc__}
    return make_dataclass(pass_class.__name__, members, bases=(ModulePass,), namespace=namespace, frozen=True)


_TYPES: Mapping[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


def _type(written: str) -> object:
    """Return the type named by the annotation of an option."""
    kind = written.removesuffix("| None").strip()
    inner = kind.removeprefix("tuple[").split(",")[0].rstrip("]").strip()
    found = tuple[_TYPES[inner], ...] if kind.startswith("tuple[") else _TYPES[kind]
    return found | None if kind != written else found  # pyright: ignore[reportUnknownVariableType]
