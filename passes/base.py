"""The base of all passes.

A pass is a class with a ``name`` (its flag), a one-line ``summary``, a docstring (its help: what it does, with a
before/after), options, and ``run``::

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

``anchor`` names the ops that the pass runs on; None means that it runs on whatever it is given (the module).  A pass
says what it leaves behind: ``legal_after`` gives the ops that must not be there any more (``--verify-legality``).
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

OptionsT = TypeVar("OptionsT", bound="PassOptions")
_KIND = re.compile(r"((int|bool|float|str)|tuple\[(int|bool|float|str), \.\.\.\])( \| None)?")


class PassError(Exception):
    """A pass cannot go on because of the input: the message, the op it is about, and notes."""

    def __init__(self, message: str, op: Operation | None = None, notes: Iterable[Diagnostic] = ()):
        super().__init__(message)
        self.message = message
        self.op = op
        self.notes = tuple(notes)


class PassOptionError(ValueError):
    """A pass was given an option that it does not have, or a value that does not fit."""


@dataclass(frozen=True)
class PassOptions:
    """Options of a pass: a frozen dataclass whose fields are ``int``, ``bool``, ``float``, ``str``, a tuple of one of
    these (``tuple[int, ...]``, written ``1,2,3``), or one of these ``| None``; all have defaults.

    ``index_bits: int = 32`` is written ``index-bits=32``; a ``bool`` may be named without a value.
    """

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the options' names, as they are written."""
        return tuple(f.name.replace("_", "-") for f in fields(cls))

    @classmethod
    def from_text(cls: type[OptionsT], options: Mapping[str, str], pass_name: str = "") -> OptionsT:
        """Make options from text: ``{"index-bits": "32"}``.  Raises PassOptionError.

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
        """Write the options that differ from their defaults as text: the inverse of :meth:`from_text`."""
        out: dict[str, str] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if value != f.default:
                out[f.name.replace("_", "-")] = _text(value)
        return out


def _written(option: Field[object]) -> str:
    """Return the type of an option as it is written: ``int``, ``tuple[int, ...]``, ``str | None``."""
    kind: object = option.type
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def can_be_written(option: Field[object]) -> bool:
    """Tell whether the type of an option is one of those that a command line can hold."""
    return _KIND.fullmatch(_written(option)) is not None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(_text, cast("tuple[object, ...]", value)))
    return str(value)


def _convert(text: str, kind: str) -> object:
    """Read a value from its text, by the written type of the field.  Raises ValueError."""
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
    raise TypeError(f"a pass option has the type {kind}, which cannot be written on a command line")


@dataclass
class PassContext:
    """The context of a pass: xDSL's context, diagnostics, statistics."""

    context: Context
    diagnostics: DiagnosticEngine = field(default_factory=DiagnosticEngine)
    statistics: dict[str, int] = field(default_factory=dict[str, int])

    def remark(self, message: str, op: Operation | None = None) -> None:
        """Say something of interest about the input."""
        self.diagnostics.remark(message, op)

    def warning(self, message: str, op: Operation | None = None) -> None:
        """Warn that the result is right, but is likely not what was wanted."""
        self.diagnostics.warning(message, op)

    def error(self, message: str, op: Operation | None = None) -> None:
        """Report an error and go on, to find others; the pass counts as failed when it returns."""
        self.diagnostics.error(message, op)

    def note(self, message: str, op: Operation | None = None) -> Diagnostic:
        """Make a note to be attached to a PassError."""
        return self.diagnostics.note(message, op)

    def count(self, what: str, by: int = 1) -> None:
        """Add to a statistic (``--mlir-pass-statistics``)."""
        self.statistics[what] = self.statistics.get(what, 0) + by


class Pass:
    """One rewrite of the IR; see the module's docstring."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    description: ClassVar[str] = ""
    """The help text; without one, the docstring of the class is used."""
    anchor: ClassVar[tuple[str, ...] | None] = None
    Options: ClassVar[type[PassOptions]] = PassOptions
    counts_changes: ClassVar[bool] = False
    """True if every change is counted in a statistic: where none was, nothing needs to be verified again."""

    def __init__(self, options: PassOptions | None = None):
        self.options: PassOptions = self.Options() if options is None else options

    @classmethod
    def from_text(cls, options: Mapping[str, str]) -> Pass:
        """Make the pass with options given as text.  Raises PassOptionError."""
        return cls(cls.Options.from_text(options, cls.name))

    @classmethod
    def help_text(cls) -> str:
        """Return the description, or the docstring, without its indentation."""
        from textwrap import dedent

        first, _, rest = (cls.description or cls.__doc__ or cls.summary).strip().partition("\n")
        return first + "\n" + dedent(rest) if rest else first

    def options_as(self, kind: type[OptionsT]) -> OptionsT:
        """Return the options with their own type."""
        assert isinstance(self.options, kind)
        return self.options

    def run(self, op: Operation, ctx: PassContext) -> None:
        """Rewrite ``op`` in place.  Raises PassError."""
        raise NotImplementedError(self.name)

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Return the ops in ``op`` that must not be there after this pass: a check of the pass, not of its input."""
        return ()


def run_pass(instance: Pass, op: Operation, ctx: PassContext) -> None:
    """Run a pass on ``op``, or, if it is anchored elsewhere, on each op of that name in ``op``.  Raises PassError."""
    if instance.anchor is None or op.name in instance.anchor:
        instance.run(op, ctx)
        return
    for target in anchored(op, instance.anchor):
        instance.run(target, ctx)


def anchored(op: Operation, anchor: tuple[str, ...]) -> list[Operation]:
    """List the outermost ops below ``op`` with one of the names."""
    found: list[Operation] = []
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                found += [child] if child.name in anchor else anchored(child, anchor)
    return found


def as_module_pass(pass_class: type[Pass]) -> type[ModulePass]:
    """Wrap the pass as one of xDSL's, with the same name and options, for ``xdsl-opt`` and pipelines of xDSL.

    Of what a pass reports only errors survive, as ``PassFailedException``: xDSL has no warnings.
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
    """Return the type that an annotation of an option names."""
    kind = written.removesuffix("| None").strip()
    inner = kind.removeprefix("tuple[").split(",")[0].rstrip("]").strip()
    found = tuple[_TYPES[inner], ...] if kind.startswith("tuple[") else _TYPES[kind]
    return found | None if kind != written else found  # pyright: ignore[reportUnknownVariableType]
