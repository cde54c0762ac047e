"""Digests of functions and values: everything that a trace of them depends on, equal in every process.

The digest of a function covers its code and source (without comments and positions), defaults and closure.  It also
covers everything that the function names, including the functions that it calls.  A class contributes its methods and
attributes, an instance its class and fields.  Paths, addresses and times are not included.  Installed packages
contribute their version.  This package is left out, because the key that contains a digest covers its sources.

A value without a stable digest (an ``object()``, an array on a GPU, the environment) raises :class:`NoDigest`.

>>> def f(x):
...     return x + 1
>>> digest_of(f) == digest_of(f), digest_of((1, 2.0)) == digest_of((1, 2))
(True, False)
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import re
import sys
import types
from collections.abc import Mapping
from enum import Enum, EnumMeta
from functools import lru_cache
from typing import Any

from cute_dialect.lang.calls.arguments import ArraySpec, NumberSpec, PointerSpec, Spec, StaticSpec, StreamSpec, TreeSpec
from cute_dialect.lang.calls.cache.keys import fields_of
from cute_dialect.lang.calls.runtime_tensor import SymInt
from cute_dialect.lang.calls.traced import BoundMethod, Traced
from cute_dialect.lang.rewrite.source import Read, codes_in, content_of, is_installed, reads_of, text_of
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.dynamic import Dynamic
from cute_dialect.pipelines.cache import contents

_MOST = 50_000
"""Maximum number of parts of a value."""
_SMALL = 4096
"""Maximum size of a NumPy array whose contents are digested, in elements."""


class NoDigest(Exception):
    """A value that differs between processes. ``args[0]`` names it and the reason."""


_BUILTINS = {"open", "input", "eval", "exec", "globals", "compile", "breakpoint", "__import__"}
_OUTSIDE = (
    "os.environ", "os.getenv", "os.environb", "os.listdir", "os.stat", "os.urandom", "os.getpid", "time", "random",
    "secrets", "uuid", "socket", "subprocess", "tempfile", "numpy.random", "torch.cuda", "torch.backends",
    "torch.rand", "torch.randn", "torch.randint", "torch.get_default_dtype",
)  # fmt: skip
"""Library functions and modules whose results depend on the machine or the time."""
_ATTRIBUTES_OF_ALL = {
    "__module__", "__dict__", "__weakref__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__abstractmethods__", "__annotate_func__",
    "__annotations_cache__", "__annotate__",
}  # fmt: skip


def digest_of(value: object, name: str = "the value") -> str:
    """Return the digest of a value.  Raises NoDigest, which names the part without a digest."""
    walk = Walk()
    walk.add(value, name)
    return walk.digest()


# ---------------------------------------------------------------------------------------------------------- libraries


def _file_of(module: types.ModuleType | None) -> str | None:
    return getattr(module, "__file__", None)


def _is_library_module(name: str) -> bool:
    """Return True if a module is part of Python, an installed package, or this package."""
    top = name.partition(".")[0]
    if top in sys.builtin_module_names or top in sys.stdlib_module_names or top == "cute_dialect":
        return True
    file = _file_of(sys.modules.get(name))
    return file is not None and is_installed(file)


@lru_cache(maxsize=1024)
def _release(module: str) -> str:
    """Return the version of the package that contains a library module."""
    top = module.partition(".")[0]
    if top == "cute_dialect" or top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return top
    version = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(version, str):
        return f"{top} {version}"
    file = _file_of(sys.modules.get(top))
    return f"{top} {contents(file)}" if file is not None else top


def _found_again(value: Any) -> bool:
    """Return True if a class or function can be found in its module by its name."""
    at: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in getattr(value, "__qualname__", "?").split("."):
        at = getattr(at, part, None)
    return at is value


# ------------------------------------------------------------------------------------------------------------ the walk


class Walk:
    """A digest under construction. ``codes`` are the code objects of the functions covered."""

    def __init__(self) -> None:
        self.codes: set[types.CodeType] = set()
        self._said: list[object] = []
        self._seen: dict[int, tuple[int, object]] = {}
        self._symbols: dict[int, int] = {}

    def digest(self) -> str:
        return hashlib.sha256(repr(self._said).encode("utf-8", "surrogatepass")).hexdigest()

    def say(self, *parts: str | int | bytes | tuple[object, ...] | None) -> None:
        """Add plain text and numbers."""
        self._said.append(parts)
        if len(self._said) > _MOST:
            raise NoDigest(f"it refers to more than {_MOST} values")

    def add(self, value: Any, name: str) -> None:
        """Add a value. ``name`` describes it in messages."""
        kind = type(value)
        if value is None or value is Ellipsis or value is NotImplemented or kind in (bool, int, str, bytes, complex):
            self.say(kind.__name__, repr(value))
        elif kind is float:
            self.say("float", value.hex())
        elif kind is tuple:
            self._items("tuple", value, name)
        elif kind in (range, slice):
            self.say(repr(value))
        elif kind in (set, frozenset):
            self.say(kind.__name__, tuple(sorted(digest_of(x, f"an element of {name}") for x in value)))
        elif id(value) in self._seen:
            self.say("again", self._seen[id(value)][0])
        else:
            self._seen[id(value)] = (len(self._seen), value)
            self._object(value, name)

    def _items(self, kind: str, values: Any, name: str) -> None:
        self.say(kind, len(values))
        for i, x in enumerate(values):
            self.add(x, f"{name}[{i}]")

    def _fields(self, kind: str, fields: Mapping[str, Any], name: str) -> None:
        self.say(kind, len(fields))
        for key, x in fields.items():
            self.say(key)
            self.add(x, f"{name}.{key}")

    def _object(self, value: Any, name: str) -> None:
        kind = type(value)
        if kind is list:
            self._items("list", value, name)
        elif kind is dict or kind is types.MappingProxyType:
            self.say("dict", len(value))
            for key, x in value.items():
                self.add(key, f"a key of {name}")
                self.add(x, f"{name}[{key!r}]" if isinstance(key, str | int) else f"an entry of {name}")
        elif isinstance(value, type):
            self._class(value, name)
        elif isinstance(value, types.FunctionType):
            self._function(value, name)
        elif isinstance(value, types.ModuleType):
            self._module(value, name)
        elif isinstance(value, Enum):
            self.say("member", value.name)
            self.add(kind, f"the class of {name}")
        elif isinstance(value, types.BuiltinFunctionType | types.MethodType):
            self._method(value, name)
        elif not self._known_object(value, name):
            self._instance(value, name)

    def _known_object(self, value: Any, name: str) -> bool:
        """Add a value of a specially handled type. Return False for other values."""
        kind = type(value)
        if isinstance(value, Traced):
            given = value.__dict__.get("given")
            self._items(f"@cute.{value.kind}", (value.options, given, value.__dict__.get("generics")), name)
            self.add(value.function, name)
        elif isinstance(value, BoundMethod):
            self._items("bound", (value.function, value.__self__), name)
        elif isinstance(value, staticmethod | classmethod):
            self.say(kind.__name__)
            self.add(value.__func__, name)
        elif isinstance(value, property):
            self._items("property", (value.fget, value.fset, value.fdel), name)
        elif isinstance(value, functools.partial):
            self._items("partial", (value.func, value.args, value.keywords), name)
        elif isinstance(value, Numeric) and value.is_static:
            self.say(kind.__name__)
            self.add(value.value, name)
        elif isinstance(value, Dynamic):
            self._static_form(value, name)
        elif isinstance(value, SymInt):
            number = self._symbols.setdefault(id(value), len(self._symbols))
            self.say("symbol", number, value.divisibility, value.width)
        elif kind.__module__ == "typing" or isinstance(value, types.GenericAlias | types.UnionType):
            self._typing(value, name)
        elif kind.__module__.partition(".")[0] in ("numpy", "torch", "cupy", "jax", "ml_dtypes"):
            self._of_arrays(value, name)
        elif kind in (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType):
            self.say(kind.__name__, value.__name__)
        elif isinstance(value, types.CellType):
            self._cell(value, name)
        elif isinstance(value, re.Pattern):
            self.say("pattern", value.pattern, value.flags)
        elif hasattr(value, "__wrapped__") and callable(value):
            self.say(kind.__qualname__)
            self.add(getattr(value, "__wrapped__"), name)  # noqa: B009 (the type has no such attribute)
        else:
            return False
        return True

    def _static_form(self, value: Dynamic, name: str) -> None:
        from cute_dialect.lang.values.forms import form_of  # late: start-up

        form = form_of(value)
        text = repr(form)
        if form.types or " at 0x" in text:
            raise NoDigest(f"{name} is {value.describe()}")
        self.say(type(value).__name__, text)

    def _typing(self, value: Any, name: str) -> None:
        self.say(type(value).__name__, getattr(value, "__name__", None), getattr(value, "__forward_arg__", None))
        self.add(getattr(value, "__origin__", None), name)
        self.add(getattr(value, "__args__", ()), name)
        self.add(getattr(value, "__bound__", None), name)

    def _of_arrays(self, value: Any, name: str) -> None:
        """Add a value of an array library: element types and scalars as text, CPU arrays by content."""
        kind = type(value)
        if kind.__name__ == "ndarray":
            if value.size > _SMALL or value.dtype.hasobject:
                raise NoDigest(f"{name} is an array of {value.size} elements")
            self.say("array", repr(value.shape), str(value.dtype), value.tobytes())
        elif hasattr(value, "__dlpack__") or hasattr(value, "parameters"):
            raise NoDigest(f"{name} is a live {kind.__module__}.{kind.__qualname__}")
        elif " at 0x" in (text := repr(value)):
            raise NoDigest(f"{name} is {text}")
        else:
            self.say(_release(kind.__module__), kind.__qualname__, text)

    # ------------------------------------------------------------------------------------------------------- functions

    def _method(self, value: Any, name: str) -> None:
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            self._library(value, name)
            return
        self.say("method", value.__name__)
        if isinstance(value, types.MethodType):
            self.add(value.__func__, name)
        self.add(owner, f"the object of {name}")

    def _library(self, value: Any, name: str) -> None:
        module = value.__module__ or "builtins"
        path = f"{module}.{value.__qualname__}"
        if any(path == p or path.startswith(f"{p}.") for p in _OUTSIDE):
            raise NoDigest(f"{name} is {path}, which depends on the machine")
        self.say("library", path, _release(module))

    def _function(self, f: types.FunctionType, name: str) -> None:
        code = f.__code__
        if is_installed(code.co_filename) and not f.__closure__:
            self._library(f, name)
            return
        self.codes.update(codes_in(code))
        self.say("function", f.__qualname__, content_of(code), text_of(code))
        self.add(f.__defaults__, f"a default of {name}")
        self.add(f.__kwdefaults__, f"a default of {name}")
        own = f.__qualname__.rpartition(".")[2]
        for free, cell in zip(code.co_freevars, f.__closure__ or ()):
            self.say("cell", free)
            self._cell(cell, f"'{free}' of {own}")
        attributes = {n: x for n, x in f.__dict__.items() if n != "__wrapped__"}
        self._fields("attributes", attributes, name)
        self._annotations(f, getattr(f, "__annotations__", {}), name)
        for read in reads_of(code):
            self.say("read", read.name, read.attributes)
            if read.level >= 0:
                self._import(read, own)
            else:
                self._read(read, f.__globals__, own)

    def _cell(self, cell: types.CellType, name: str) -> None:
        try:
            value: object = cell.cell_contents
        except ValueError:
            self.say("unset")
            return
        self.add(value, name)

    def _annotations(self, f: types.FunctionType, notes: Mapping[str, Any], name: str) -> None:
        self.say("annotations", len(notes))
        for key, note in notes.items():
            self.say(key)
            if isinstance(note, str):
                self.say(note)
                for word in dict.fromkeys(re.findall(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", note)):
                    first, *rest = word.split(".")
                    if first in f.__globals__:
                        self._read(Read(first, tuple(rest)), f.__globals__, name)
            else:
                self.add(note, f"the annotation of '{key}' of {name}")

    def _read(self, read: Read, space: Mapping[str, Any], reader: str) -> None:
        """Add the value of a global that a function reads."""
        if read.name not in space:
            if read.name in _BUILTINS:
                raise NoDigest(f"{reader} calls {read.name}()")
            self.say("builtin" if hasattr(builtins, read.name) else "absent")
            return
        value, name = space[read.name], f"'{read.name}' (a global of {reader})"
        attributes = list(read.attributes)
        while isinstance(value, types.ModuleType) and attributes and not _is_library_module(value.__name__):
            if attributes[0] not in vars(value):
                self.say("absent")
                return
            name = f"'{attributes[0]}' of {value.__name__}"
            value = vars(value)[attributes.pop(0)]
        if isinstance(value, types.ModuleType) and _is_library_module(value.__name__):
            path = ".".join([value.__name__, *attributes])
            if any(path == p or path.startswith(f"{p}.") for p in _OUTSIDE):
                raise NoDigest(f"{reader} uses {path}, which depends on the machine")
        self.add(value, name)

    def _import(self, read: Read, reader: str) -> None:
        """Add a module that a function imports in its body."""
        from importlib.util import find_spec

        top = read.name.partition(".")[0]
        spec = None
        if read.level == 0 and top not in sys.modules:
            spec = find_spec(top)
        if read.level > 0 or not (
            _is_library_module(top) or (spec is not None and spec.origin is not None and is_installed(spec.origin))
        ):
            raise NoDigest(f"{reader} imports '{read.name}' in its body")
        if read.name in _OUTSIDE or read.name == "os":
            raise NoDigest(f"{reader} imports {read.name} in its body, which depends on the machine")
        self.say("imports", _release(top) if top in sys.modules else top)

    # --------------------------------------------------------------------------------------------- modules and classes

    def _module(self, module: types.ModuleType, name: str) -> None:
        if not _is_library_module(module.__name__):
            raise NoDigest(f"{name} is the module {module.__name__}, used as a value")
        self.say("module", module.__name__, _release(module.__name__))

    def _class(self, kind: type, name: str) -> None:
        if _is_library_module(kind.__module__) and _found_again(kind):
            self._library(kind, name)
            return
        self.say("class", kind.__qualname__)
        self._items("bases", kind.__bases__, f"a base of {kind.__name__}")
        self.add(type(kind), f"the class of {kind.__name__}")
        self.add(dict(getattr(kind, "__annotations__", {})), f"the annotations of {kind.__name__}")
        if isinstance(kind, EnumMeta):
            self._fields("members", {n: m.value for n, m in kind.__members__.items()}, kind.__name__)
            held = {n: x for n, x in vars(kind).items() if isinstance(x, types.FunctionType | property | classmethod)}
        else:
            held = {n: x for n, x in vars(kind).items() if n not in _ATTRIBUTES_OF_ALL and not n.startswith("_abc_")}
        fields = vars(kind).get("__dataclass_fields__")
        if fields is not None:
            self.say("dataclass", repr(vars(kind)["__dataclass_params__"]))
            for n, f in fields.items():
                self.say(n, *[getattr(f, a).__repr__() for a in ("init", "repr", "hash", "compare", "kw_only")])
                for a in ("default", "default_factory"):
                    x = getattr(f, a)
                    self.add("missing" if type(x).__name__ == "_MISSING_TYPE" else x, f"{a} of {kind.__name__}.{n}")
        for n, x in held.items():
            # Methods generated by dataclass and NamedTuple follow from the fields, which are covered above.
            if isinstance(x, types.FunctionType) and x.__code__.co_filename.startswith("<string>"):
                continue
            if type(x).__name__ == "_tuplegetter" or (n == "__new__" and hasattr(kind, "_field_defaults")):
                continue
            self.say(n)
            self.add(x, f"'{n}' of {kind.__name__}")

    def _instance(self, value: Any, name: str) -> None:
        kind = type(value)
        fields = fields_of(value)
        if not fields and _is_library_module(kind.__module__) and not kind.__module__.startswith("cute_dialect."):
            raise NoDigest(f"{name} is {_shown(value)}, which exists only in this process")
        self.say("instance")
        self.add(kind, f"the class of {name}")
        if isinstance(value, tuple | list):
            self._items("items", list(value), name)
        elif isinstance(value, dict):
            self._items("entries", list(value.items()), name)
        elif isinstance(value, int | float | str | bytes):
            self.say(repr(value))
        self._fields("fields", fields or {}, name)

    # ------------------------------------------------------------------------------------------------------- arguments

    def specs(self, specs: Mapping[str, Spec]) -> None:
        """Add the specs of arguments."""
        self.say("specs", len(specs))
        for name, spec in specs.items():
            self.say(name)
            self._spec(spec, f"the argument '{name}'")

    def _spec(self, spec: Spec, name: str) -> None:
        match spec:
            case StaticSpec():
                self.say("static")
                self.add(spec.value, name)
            case NumberSpec():
                self.say("number", repr(spec.kind))
            case ArraySpec():
                self.say("array", spec.type, repr(spec.dtype), int(spec.wrapped))
                self._items("symbols", spec.symbols, name)
            case PointerSpec():
                self.say("pointer", spec.type, repr(spec.dtype))
            case StreamSpec():
                self.say("stream")
            case TreeSpec():
                self.say("tree", repr(spec.names))
                self.add(spec.kind.type, f"the class of {name}")
                self.add(getattr(spec.kind.static, "value", None), name)
                for n, part in zip(spec.names, spec.parts, strict=True):
                    self._spec(part, f"{name}.{n}")
            case _:
                raise NoDigest(f"{name} is of an unknown kind")


def _shown(value: object) -> str:
    kind = type(value)
    where = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{'an' if kind.__qualname__[:1] in 'aeiou' else 'a'} {where}{kind.__qualname__}()"
