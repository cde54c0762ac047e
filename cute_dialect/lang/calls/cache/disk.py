"""Specializations on disk, found by their dependencies without tracing and without the compiler.

::

    H(digest of the function, specs of its arguments, constants, options, chip, this package's sources)
      ->  further conditions, the key of the compiled module, the function's return value

The further conditions are found by the trace: the digests of functions that were called but not named in the source,
the SM count of the GPU if it was queried, and the versions of xDSL, MLIR and ptxas if installed here.  A machine
without them accepts every entry whose sources agree.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.lang.calls.cache.digests import NoDigest, Walk, digest_of
from cute_dialect.lang.calls.traced import plain
from cute_dialect.lang.machine.printf import HostTexts
from cute_dialect.lang.rewrite.source import asked_for, is_installed
from cute_dialect.lang.tracing.tracer import Recorder, multiprocessors
from cute_dialect.pipelines.cache import Cache, default_cache, key_of_sources, same_tools, tools

if TYPE_CHECKING:
    from cute_dialect.lang.calls.compiled import Outcome
    from cute_dialect.lang.calls.options import Options
    from cute_dialect.lang.calls.specializations import Call
    from cute_dialect.lang.calls.traced import Traced
    from cute_dialect.runtime.artifact import Artifact

KIND = "kind.json"
"""The file name of an entry."""
_FORMAT = 2


class Found(NamedTuple):
    """A specialization from disk: the compiled module and its key, the host function's name, and its return value."""

    artifact: Artifact
    key: str
    name: str
    result: object
    texts: HostTexts
    remarks: list[str]


class Plan:
    """The location of a specialization on disk. ``why`` is the reason if it cannot be stored."""

    def __init__(self, cache: Cache, key: str | None, walk: Walk, why: str = ""):
        self.cache = cache
        self.key = key
        self.why = why
        self._walk: Walk | None = walk
        self._calls: dict[str, str] = {}
        self._answers: dict[str, int] = {}

    def find(self) -> Found | None:
        """Return the specialization from disk if all its dependencies are unchanged."""
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
            return None  # It is not an entry of this cache.

    def called_by_name(self) -> list[FunctionType]:
        """Return the functions that a specialization called and that its source does not name."""
        return [f for f in map(_function, self._calls) if f is not None]

    def note(self, recorder: Recorder, *, changed: bool, asserts: bool) -> None:
        """Record the functions and objects that the trace read.

        Args:
            recorder: the record of the trace.
            changed: the trace changed objects it depends on.
            asserts: a kernel has assertions.
        """
        walk, self._walk = self._walk, None  # The walk keeps all values alive.
        if self.key is None or walk is None:
            return
        try:
            if changed:
                raise NoDigest("its trace changes what it reads")
            if asserts:
                raise NoDigest("its kernels have asserts, which print their source lines")
            for f in recorder.functions.values():
                if f.__code__ in walk.codes or is_installed(f.__code__.co_filename):
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
        """Store the specialization. Its compiled module is stored under ``artifact``."""
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
    """Return the location of a specialization on disk, or None if it is not cached (interpreter, debug builds).

    Must be called before tracing.
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
    """Return True if everything an entry depends on is the same here."""
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
    """Return the function named ``module:qualified name`` in this process."""
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
    """Return True if a value is plain data that its repr reproduces."""
    if isinstance(value, float):
        return value - value == 0
    if value is None or type(value) in (bool, int, str, bytes):
        return True
    if type(value) is dict:
        return all(_is_literal(k) and _is_literal(x) for k, x in value.items())
    return type(value) in (tuple, list) and all(map(_is_literal, value))
