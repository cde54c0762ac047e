"""Kinds on disk: found by what they depend on, without tracing, and without the compiler.

    H(digest of the function, specs of its arguments, constants, options, chip, this package's sources)
        ->  what else must hold, the key of the compiled module, what the function returns

What else must hold is found while tracing: functions that were called and that no name leads to (each with its digest),
the multiprocessors of the GPU where they were asked for, and the releases of xDSL, MLIR and ptxas, where this machine
has them.  A machine without them takes every entry whose sources agree.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.front.convert import asked_for
from cute_dialect.front.digests import NoDigest, Walk, digest_of
from cute_dialect.front.printing import HostTexts
from cute_dialect.front.trace_dependencies import Recorder, multiprocessors
from cute_dialect.front.watched import is_library
from cute_dialect.pipelines.cache import Cache, default_cache, key_of_sources, same_tools, tools

if TYPE_CHECKING:
    from cute_dialect.front.compiled import Outcome
    from cute_dialect.front.jit import Traced
    from cute_dialect.front.options import Options
    from cute_dialect.front.specializations import Call
    from cute_dialect.runtime.artifact import Artifact

__all__ = ["Found", "Plan", "plan_of"]

KIND = "kind.json"
"""The file of an entry."""
_FORMAT = 2


class Found(NamedTuple):
    """A kind from the disk: the compiled module and its key, the name of the host function, what it returns."""

    artifact: Artifact
    key: str
    name: str
    result: object
    texts: HostTexts
    remarks: list[str]


class Plan:
    """Where a kind is, or would be, on disk; ``why`` says why it is not kept, if it is not."""

    def __init__(self, cache: Cache, key: str | None, walk: Walk, why: str = ""):
        self.cache = cache
        self.key = key
        self.why = why
        self._walk: Walk | None = walk
        self._calls: dict[str, str] = {}
        self._answers: dict[str, int] = {}

    def find(self) -> Found | None:
        """Return the kind from the disk, if all holds that it depends on."""
        if self.key is None:
            return None
        files = self.cache.files(self.key)
        if files is None or KIND not in files:
            return None
        try:
            entry = json.loads(files[KIND])
            if entry["format"] != _FORMAT or not _holds(entry):
                return None
            artifact = self.cache.get(entry["artifact"])
            if artifact is None:
                return None
            result = _read(entry["result"])
            self._calls = dict(entry["calls"])
            texts = HostTexts(*entry["texts"])
            return Found(artifact, entry["artifact"], str(entry["name"]), result, texts, list(entry["remarks"]))
        except (ValueError, KeyError, TypeError, SyntaxError, AttributeError):
            return None  # no entry of ours

    def called_by_name(self) -> list[FunctionType]:
        """Return the functions that a kind from the disk called and that no name in its source leads to."""
        return [f for f in map(_function, self._calls) if f is not None]

    def note(self, recorder: Recorder, *, changed: bool, asserts: bool) -> None:
        """Record the functions and objects that the trace read.

        ``changed``: whether it changed what it depends on; ``asserts``: whether a kernel has assertions."""
        walk, self._walk = self._walk, None  # which holds all values
        if self.key is None or walk is None:
            return
        try:
            if changed:
                raise NoDigest("its trace changes what it reads")
            if asserts:
                raise NoDigest("its kernels have asserts, which print the lines that they are at")
            for f in recorder.functions.values():
                if f.__code__ in walk.codes or is_library(f.__code__.co_filename):
                    continue
                name = f"{f.__module__}:{f.__qualname__}"
                again = _function(name)
                if again is None or again.__code__ is not f.__code__:
                    raise NoDigest(f"it calls {f.__qualname__} of {f.__module__}, which cannot be found by that name")
                self._calls[name] = digest_of(again, f.__qualname__)
        except NoDigest as e:
            self.key, self.why = None, str(e)
        self._answers = {str(device): n for device, n in recorder.multiprocessors.items()}

    def keep(self, artifact: str, outcome: Outcome, remarks: list[str]) -> None:
        """Keep the kind, whose compiled module is kept under ``artifact``."""
        if self.key is None:
            return
        text = repr(outcome.result)
        if not _is_literal(outcome.result):
            self.key, self.why = None, f"it returns {text}"
            return
        entry = {
            "format": _FORMAT, "name": outcome.name, "artifact": artifact, "tools": tools(), "calls": self._calls,
            "multiprocessors": self._answers, "result": text, "texts": outcome.texts,
            "remarks": remarks,
        }  # fmt: skip
        self.cache.put_files(self.key, {KIND: (json.dumps(entry, indent=1) + "\n").encode()})


def plan_of(traced: Traced, call: Call, config: object, options: Options) -> Plan | None:
    """Return where a kind is on disk; None where it is not looked for: on the interpreter, in debug builds.

    Called before anything is traced.
    """
    if not options.cache or options.interpreted or options.lineinfo or options.assertions:
        return None
    cache = default_cache()
    if cache is None:
        return None
    walk = Walk()
    try:
        walk.say("kind", traced.kind, traced.name, options.chip, options.opt_level, options.ptxas, options.asserts)
        walk.say(*sys.version_info[:2])
        walk.say(repr(getattr(config, "items", None)), repr(sorted(asked_for())))
        walk.add(traced, f"'{traced.name}'")
        walk.add(call.function, f"'{traced.name}'")
        walk.specs(call.specs)
        return Plan(cache, key_of_sources(["kind", walk.digest()]), walk)
    except NoDigest as e:
        return Plan(cache, None, walk, str(e))
    except RecursionError:
        return Plan(cache, None, walk, "what it depends on is nested too deeply")


def _holds(entry: Mapping[str, Any]) -> bool:
    """Tell whether all that an entry depends on is here as it was there."""
    if not same_tools(entry["tools"]):
        return False
    for name, digest in entry["calls"].items():
        f = _function(name)
        try:
            if f is None or digest_of(f) != digest:
                return False
        except NoDigest:
            return False
    return all(multiprocessors(int(device)) == n for device, n in entry["multiprocessors"].items())


def _function(name: str) -> FunctionType | None:
    """Return the function that is called ``module:qualified name`` here."""
    from cute_dialect.front.jit import plain

    module, _, path = name.partition(":")
    at: Any = sys.modules.get(module)
    for part in path.split("."):
        at = getattr(at, "__dict__", {}).get(part)
    at = plain(at.fget if isinstance(at, property) else at)
    return at if isinstance(at, FunctionType) else None


def _read(text: str) -> object:
    if text == "None":
        return None
    from ast import literal_eval

    return literal_eval(text)


def _is_literal(value: object) -> bool:
    """Tell whether a value is told by its text: plain data."""
    if isinstance(value, float):
        return value - value == 0
    if value is None or type(value) in (bool, int, str, bytes):
        return True
    if type(value) is dict:
        return all(_is_literal(k) and _is_literal(x) for k, x in value.items())
    return type(value) in (tuple, list) and all(map(_is_literal, value))
