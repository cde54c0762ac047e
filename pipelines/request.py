"""Compile requests: the source, the options and the last stage of a compilation, and its key in the compile cache.

>>> CompileRequest("module {}", chip="sm_90a", opt_level=2).options
{'chip': 'sm_90a', 'O': '2'}
>>> CompileRequest("module {}").given()
('module {}', '-')
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, get_args

from cute_dialect.pipelines.cache import key_of
from cute_dialect.pipelines.compilation import Emit, LoweringError, is_text

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["CompileRequest"]


class CompileRequest(NamedTuple):
    """A compilation; for the fields without a comment see :func:`cute_dialect.pipelines.compile`."""

    source: str | os.PathLike[str] | ModuleOp
    pipeline: str = "nvptx"
    chip: str | None = None
    features: str | None = None
    opt_level: int | None = None
    lineinfo: bool = False
    asserts: bool = True
    emit: Emit = "auto"
    filename: str | None = None
    keep_stages: bool = False
    save: str | os.PathLike[str] | None = None
    cache: bool = True
    text: str | None = None
    """A complete description of a module, for the cache key; without it, a module is not cached."""
    ptxas: Sequence[str] = ()
    """Further options of ptxas."""
    located: Collection[str] = ()
    """Names of the stages to keep in readable form, with the location of each op."""

    @property
    def options(self) -> dict[str, str]:
        """The options of the pipeline that are set, as strings."""
        given = {
            "chip": self.chip,
            "features": self.features,
            "O": None if self.opt_level is None else str(self.opt_level),
            "lineinfo": "true" if self.lineinfo else None,
            "asserts": None if self.asserts else "false",
        }
        return {k: v for k, v in given.items() if v is not None}

    @property
    def is_cached(self) -> bool:
        """True if the compile cache may have the module."""
        return self.cache and not self.keep_stages and self.save is None

    def given(self) -> tuple[str, str] | None:
        """Return the text and the name of the source; None for a module without ``text`` or an unreadable file."""
        source = self.source
        if self.text is not None:
            return self.text, self.filename or "-"
        if isinstance(source, str) and is_text(source):
            return source, self.filename or "-"
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            try:
                with open(path, encoding="utf-8") as f:
                    return f.read(), self.filename or path
            except (OSError, ValueError):  # unreadable, not UTF-8, or a NUL in the path
                return None
        return None

    def key_of(self, given: tuple[str, str]) -> str:
        """Return the key in the compile cache for the text and the name of the source.

        The name is part of it if line info or an assertion records it.
        """
        text, name = given
        options = repr(sorted(self.options.items()))
        parts = [self.pipeline, options, self.emit, *([repr(tuple(self.ptxas))] if self.ptxas else [])]
        is_named = "cf.assert" in text or any("lineinfo" in part for part in parts)
        return key_of([*parts, text, name] if is_named else [*parts, text])

    def key_of_text(self) -> str:
        """Return the key of a request whose source is a text."""
        given = self.given()
        assert given is not None
        return self.key_of(given)

    def check(self) -> None:
        """Check the types of the fields.  Raises :class:`LoweringError`, which names the field."""
        path = (str, os.PathLike)
        level, emit, source = self.opt_level, self.emit, self.source
        wanted: Sequence[tuple[str, bool, str]] = (
            ("source", isinstance(source, path) or hasattr(source, "walk"), "a text, a path or an xDSL module"),
            ("pipeline", _is_text(self.pipeline), "a text like 'nvptx=chip=sm_90a'"),
            ("chip", self.chip is None or _is_text(self.chip), "a text like 'sm_90a'"),
            ("features", self.features is None or _is_text(self.features), "a text like '+ptx83'"),
            ("opt_level", level is None or (type(level) is int and 0 <= level <= 3), "0, 1, 2 or 3"),
            ("lineinfo", _is_bool(self.lineinfo), "True or False"),
            ("asserts", _is_bool(self.asserts), "True or False"),
            ("emit", _is_text(emit) and emit in get_args(Emit), "one of 'auto', 'cubin', 'ptx', 'base'"),
            ("filename", self.filename is None or _is_text(self.filename), "a text"),
            ("keep_stages", _is_bool(self.keep_stages), "True or False"),
            ("save", self.save is None or isinstance(self.save, path), "the path of a folder"),  # pyright: ignore[reportUnnecessaryIsInstance]
            ("cache", _is_bool(self.cache), "True or False"),
        )
        for name, right, what in wanted:
            if not right:
                shown = repr(getattr(self, name))
                raise LoweringError(
                    f"error: {name}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}"
                )


def _is_text(x: object) -> bool:
    return isinstance(x, str)


def _is_bool(x: object) -> bool:
    return isinstance(x, bool)
