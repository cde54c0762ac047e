"""Generator of ``docs/reference``: the signature and docstring of every public name of the language and of ``op``.

    python -m cute_dialect.tools.docs.reference            # writes docs/reference
    python -m cute_dialect.tools.docs.reference --check    # exit status 1 if a page is not current

``PAGES`` assigns the module that defines a name to a section of a page.  A name is described once, under the first
module in ``MODULES`` that has it; the other spellings are listed in its entry.
"""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.lang.values import signature_types
from cute_dialect.op import signature_types as op_signature_types
from cute_dialect.tools.docs import generate

# --------------------------------------------------------------------------------------------------------- public names


ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "cute_dialect.lang",
    "cute_dialect.lang.nvgpu",
    "cute_dialect.op",
    "cute_dialect.op.epilogue",
    "cute_dialect.op.distributed",
    "cute_dialect.algebra",
    "cute_dialect.arch",
    "cute_dialect.interp",
    "cute_dialect.viz",
    "cute_dialect.kernels.gemm",
    "cute_dialect.pipelines",
    "cute_dialect.pipelines.embed",
    "cute_dialect.runtime",
    "cute_dialect.runtime.progress",
)
"""Packages and modules with public names, listed in a stub ``__init__.pyi`` or in ``__all__``."""

MODULES: Mapping[str, str] = {
    "cute_dialect.lang": "cute",
    "cute_dialect.lang.arch": "cute.arch",
    "cute_dialect.lang.nvgpu": "cute.nvgpu",
    "cute_dialect.lang.nvgpu.cpasync": "cute.nvgpu.cpasync",
    "cute_dialect.lang.nvgpu.warp": "cute.nvgpu.warp",
    "cute_dialect.lang.nvgpu.warpgroup": "cute.nvgpu.warpgroup",
    "cute_dialect.lang.nvgpu.tcgen05": "cute.nvgpu.tcgen05",
    "cute_dialect.lang.hopper": "cute.hopper",
    "cute_dialect.lang.blackwell": "cute.blackwell",
    "cute_dialect.lang.pipeline": "cute.pipeline",
    "cute_dialect.lang.utils": "cute.utils",
    "cute_dialect.lang.math": "cute.math",
    "cute_dialect.lang.runtime": "cute.runtime",
    "cute_dialect.compat.testing": "cute.testing",
    "cute_dialect.compat.cuda": "cute.cuda",
    "cute_dialect.compat.torch": "cute.torch",
    "cute_dialect.interp": "interp",
    "cute_dialect.op": "op",
    "cute_dialect.op.emit": "op.emit",
    "cute_dialect.op.compiler": "op.compiler",
    "cute_dialect.op.nn": "op.nn",
    "cute_dialect.op.distributed": "op.distributed",
    "cute_dialect.op.epilogue": "op.epilogue",
    "cute_dialect.op.epilogue.library": "op.epilogue.library",
}
"""Public modules -> their names in programs."""


def public_names(package: str) -> list[str]:
    """Return the public names of a package in the order of its stub, or else of ``__all__``."""
    stub = ROOT.joinpath(*package.split("."), "__init__.pyi")
    if not stub.exists():
        return list(import_module(package).__all__)
    names: dict[str, None] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names.update((alias.asname or alias.name, None) for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update((target.id, None) for target in node.targets if isinstance(target, ast.Name))
    return list(names)


def public_modules() -> Iterator[tuple[str, str]]:
    """Yield each public name that is not a module, as (module, name)."""
    for module in MODULES:
        for name in sorted(public_names(module), key=str.lower):
            # A submodule is not imported: op.nn needs torch.
            is_package = hasattr(import_module(module), "__path__")
            if not (is_package and find_spec(f"{module}.{name}")) and name != "viz":
                yield module, name


# ------------------------------------------------------------------------------------------------------------- one name


_WIDTH = 100
_HIDDEN_MEMBERS = frozenset((
    "as_upstream", "atom_text", "bind", "computed", "describe", "exactly", "facts", "fixed", "inner", "is_on_gpu",
    "kind", "learned", "making", "mlir_type", "number", "numbers", "of", "on", "other", "outer", "parts", "payload",
    "refuse_hash", "remade", "shape_payload", "ssa", "static", "type",
))  # fmt: skip
"""Members that only the compiler uses."""
_HIDDEN_OF = {
    "Compiled": ("arguments", "compiled_module", "explain_error", "kernel", "module", "program", "run"),
    "CuteError": ("repeats",),
    "RuntimeTensor": ("held", "symbols"),
    "Pointer": ("ptr", "data_ptr", "llvm_ptr"),
}
"""Further members that only the compiler uses, by class."""
_COMPILERS_BASES = frozenset(("AtomOp", "CopyOp", "Dynamic", "Im2colOp", "MmaOp", "Record", "TmaOp"))
"""Base classes whose members only the compiler uses."""
_MADE_BY_FUNCTIONS = frozenset((
    "Autotuned", "Compiled", "ComposedLayout", "CopyAtom", "Layout", "MmaAtom", "PipelineAsync", "PipelineConsumer",
    "PipelineCpAsync", "PipelineOrder", "PipelineProducer", "PipelineState", "PipelineTmaAsync",
    "PipelineTmaMultiConsumersAsync", "PipelineTmaStore", "Prefetch", "RuntimePointer", "RuntimeTensor",
    "StaticPersistentTileScheduler", "ThrCopy", "ThrMma", "TiledCopy", "TiledMma", "Traced",
))  # fmt: skip
"""Classes whose constructors programs do not call."""
_HEADINGS = {"Raises": "Raises:", "Returns": "Returns:", "Example": "Example:", "Yields": "Yields:"}


def constant_text(value: Any) -> str | None:
    """Return the text of a constant, or None if the value has a docstring of its own."""
    kind = type(value).__name__
    if kind not in ("int", "str", "float", "dict", "tuple"):
        return None
    return ", ".join(f"`{key}`" for key in value) if kind == "dict" else _default(value)


def _doc(value: object) -> str:
    """Return the docstring of a value; that of a function behind an instance comes first."""
    behind = getattr(value, "function", None)
    if not inspect.isclass(value) and inspect.isfunction(behind) and behind.__doc__:
        return inspect.cleandoc(behind.__doc__)
    doc = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    if not callable(value) or inspect.isclass(value) or inspect.isroutine(value):
        return doc
    called = inspect.cleandoc(type(value).__call__.__doc__ or "")  # the arguments of an instance that is called
    return doc if "Args:" in doc or "Args:" not in called else f"{doc}\n\n{called[called.index('Args:') :]}"


def summary(value: object) -> str:
    """Return the first sentence of a docstring, or the text of a constant."""
    constant = constant_text(value)
    if constant is not None:
        return constant if isinstance(value, dict) else f"`{constant}`"
    first = _doc(value).split("\n\n")[0]
    text = markdown(re.sub(r"\s*\n\s*", " ", first))
    return re.split(r"(?<=[a-z0-9`)\]…])\. +(?=[A-Z`])", text)[0].removesuffix("::").rstrip(".:") + "."


def markdown(text: str) -> str:
    """Return a docstring as Markdown: double backquotes as code, ``Args:`` as a list, literal blocks fenced."""
    out: list[str] = []
    lines = inspect.cleandoc(text).splitlines()
    i = 0
    while i < len(lines):
        line = lines[i]
        section = re.fullmatch(r"(Args|Attributes|Raises|Returns|Yields|Example|Examples):\s*(.*)", line)
        if section is not None and not section[2] and i + 1 < len(lines) and lines[i + 1].startswith("    "):
            end = _block_end(lines, i + 1)
            block = inspect.cleandoc("\n".join(["", *lines[i + 1 : end]])).splitlines()
            if section[1].startswith("Example"):
                out += ["", "```python", *_without_imports(block), "```", ""]
            elif section[1] in ("Returns", "Yields"):
                out += ["", f"{section[1]}: {_inline(' '.join(b.strip() for b in block))}", ""]
            else:
                out += ["", *([_HEADINGS["Raises"], ""] if section[1] == "Raises" else []), *_items(block), ""]
            i = end
        elif line.startswith(">>>") or (
            line.startswith("    ") and (not out or not out[-1].strip() or out[-1] == "```")
        ):
            end = _block_end(lines, i) if line.startswith("    ") else _doctest_end(lines, i)
            block = inspect.cleandoc("\n".join(["", *lines[i:end]])).splitlines()
            out += ["```python", *_without_imports(block), "```", ""]
            i = end
        else:
            if line.strip() == "::":
                line = ""
            out.append(re.sub(r"::$", ":", _inline(line)))
            i += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")


def _without_imports(block: list[str]) -> list[str]:
    """Return an example without imports from the module that defines a public name."""
    return [line for line in block if not line.startswith(">>> from cute_dialect.")]


def _block_end(lines: list[str], start: int) -> int:
    """Return the end of an indented block, without its trailing empty lines."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith("    ")):
        end += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end


def _doctest_end(lines: list[str], start: int) -> int:
    end = start
    while end < len(lines) and lines[end].strip():
        end += 1
    return end


def _items(block: list[str]) -> Iterator[str]:
    """Yield the items of an argument list, one line each."""
    items: list[str] = []
    for line in block:
        if line.startswith(" ") and items:
            items[-1] += " " + line.strip()
        elif line.strip():
            items.append(line.strip())
    for item in items:
        name, mark, text = item.partition(": ")
        if mark and re.fullmatch(r"[\w*, ]+", name):
            yield f"- {', '.join(f'`{n.strip()}`' for n in name.split(','))}: {_inline(text)}"
        else:
            yield f"- {_inline(item)}"


def _inline(text: str) -> str:
    role = r":(?:\w+:)?(?:func|class|meth|mod|data|attr|doc):"
    text = re.sub(role + r"`~?([^`<>]+) <[\w.]+>`", r"`\1`", text)
    text = re.sub(role + r"`~?([\w.]+)`", _short, text)
    return re.sub(r"(?<=[^\s|])  (?=[A-Z`])", " ", text.replace("``", "`"))


_PRIVATE = "tracing|values|rewrite|control|machine|calls|lib"
"""Folders of the language that are not part of public names."""


def _short(found: re.Match[str]) -> str:
    name = found[1]
    name = re.sub(rf"^cute_dialect\.lang\b(?!\.(?:{_PRIVATE})\.)", "cute", name)
    name = re.sub(r"^cute_dialect\.op\.epilogue\b", "op.epilogue", name)
    if name.startswith(("cute_dialect.", ".")):
        name = name.rpartition(".")[2]
    return f"`{name}`"


# ---------------------------------------------------------------------------------------------------------- signatures


def _default(value: object) -> str:
    if value == 0xFFFFFFFF and isinstance(value, int):
        return "0xFFFFFFFF"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if inspect.isclass(value) or inspect.isfunction(value):
        return value.__name__
    text = repr(value)
    return "…" if " object at 0x" in text else text


def _annotation(annotation: object) -> str:
    if annotation is None or annotation is type(None):
        return "None"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", None)
    if text is None:
        text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    text = re.sub(
        r"\b(?:builtins|typing|collections\.abc|concurrent\.futures|cute|autotuning)\.", "", text.strip("'\"")
    )
    return text


def _parameters(signature: inspect.Signature, skip_self: bool) -> list[str]:
    out: list[str] = []
    star = positional = False
    for parameter in list(signature.parameters.values())[int(skip_self) :]:
        kind, name = parameter.kind, parameter.name
        annotation = "" if parameter.annotation is parameter.empty else _annotation(parameter.annotation)
        if kind is parameter.VAR_KEYWORD and (name.startswith("_") or annotation == "Never"):
            continue
        if out and kind is not parameter.POSITIONAL_ONLY and positional:
            out.append("/")
        positional = kind is parameter.POSITIONAL_ONLY
        if kind is parameter.KEYWORD_ONLY and not star:
            out.append("*")
            star = True
        star = star or kind is parameter.VAR_POSITIONAL
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "") + name
        text += f": {annotation}" if annotation else ""
        if parameter.default is not parameter.empty:
            text += (" = " if annotation else "=") + _default(parameter.default)
        out.append(text)
    return out


def signature_text(name: str, value: Any, *, method: bool = False) -> str | None:
    """Return the signature of a function, class or method, wrapped to 100 columns; None if there is none."""
    kind = type(value).__name__
    skip = method and kind != "staticmethod"
    try:
        signature = inspect.signature(value.__func__ if kind in ("staticmethod", "classmethod") else value)
    except (TypeError, ValueError):
        return None
    parts = _parameters(signature, skip)
    result = ""
    if not inspect.isclass(value) and signature.return_annotation is not signature.empty:
        result = f" -> {_annotation(signature.return_annotation)}"
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


# -------------------------------------------------------------------------------------------------------------- entries


def heading(spelled: str, value: object) -> str:
    return f"class `{spelled}`" if inspect.isclass(value) else f"`{spelled}`"


def anchor(spelled: str, value: object) -> str:
    """Return the anchor of an entry, as the hosts of repositories make it from its heading."""
    return re.sub(r"[^\w\- ]", "", heading(spelled, value).lower()).replace(" ", "-")


def entry_text(spelled: str, value: object, others: list[str]) -> str:
    """Return the entry of a public name: heading, signature, description and members."""
    out = [f"### {heading(spelled, value)}", ""]
    constant = constant_text(value)
    if constant is not None:
        shown = f"One of {constant}." if isinstance(value, dict) else f"`{spelled} = {constant}`"
        return "\n".join([*out, shown, ""])
    plain = inspect.isclass(value) and issubclass(value, BaseException | enum.Enum)
    text = None if plain else signature_text(spelled, value)
    if inspect.isclass(value) and (value.__name__ in _MADE_BY_FUNCTIONS or text == f"{spelled}()"):
        text = None
    if not inspect.isclass(value) and isinstance(value, str):
        text = f"{spelled} = {str(value)!r}"
    elif not inspect.isclass(value) and hasattr(value, "_fields"):
        text = f"{spelled} = {value!r}"
    if text is not None:
        out += ["```python", text, "```", ""]
    out += [_spelled_out(markdown(_doc(value)), spelled), ""]
    if others:
        out += [f"Also named {', '.join(f'`{o}`' for o in others)}.", ""]
    if inspect.isclass(value):
        if issubclass(value, enum.Enum):
            members = [f"`{m.name}`" for m in value]
            out += [f"Members: {', '.join(members)}.", ""] if members else []
        bases = [b for b in value.__mro__[1:] if b.__module__.startswith("cute_dialect.")]
        base = next((b for b in bases if b.__name__ in _shown()), None)
        if base is not None:
            out += [f"Base class: `{base.__name__}`.", ""]
        members = [text for text in _members(value) if text]
        if members:
            out += ["Methods and properties:", "", *members, ""]
    return "\n".join(out)


def _spelled_out(text: str, spelled: str) -> str:
    """Return a description whose doctests call public names as programs do: ``cute.size(…)``."""
    module, _, own = spelled.rpartition(".")
    names = {own: spelled}
    if module.startswith("cute"):
        names = {**_in_cute(), **names}

    def call(found: re.Match[str]) -> str:
        return names.get(found[0], found[0])

    def lines(block: re.Match[str]) -> str:
        out = [
            re.sub(r"(?<![\w.\"'])[A-Za-z_]\w*(?=[(\[.,)\n]|$)", call, line)
            if line.startswith((">>>", "..."))
            else line
            for line in block[0].splitlines()
        ]
        return "\n".join(out)

    return re.sub(r"```python\n>>>.*?```", lines, text, flags=re.DOTALL)


@cache
def _in_cute() -> Mapping[str, str]:
    return {name: f"cute.{name}" for name in dir(cute) if not hasattr(builtins, name)}


@cache
def _shown() -> frozenset[str]:
    """Return the names of the classes that have an entry."""
    return frozenset(name for _, name in public_modules())


def _members(owner: type) -> Iterator[str]:
    """Yield a list item for each documented method and property of a class."""
    seen: set[str] = set()
    member: Any
    for cls in owner.__mro__:
        if cls is not owner and (cls.__name__ in _shown() or not cls.__module__.startswith("cute_dialect.")):
            break
        if cls.__name__ in _COMPILERS_BASES:
            continue
        hidden = _HIDDEN_MEMBERS.union(_HIDDEN_OF.get(cls.__name__, ()))
        for name, member in vars(cls).items():
            if name.startswith("_") or name in seen or name in hidden:
                continue
            seen.add(name)
            if isinstance(member, property):
                shown, doc = name, member.__doc__
            elif inspect.isfunction(member) or isinstance(member, staticmethod | classmethod):
                shown, doc = signature_text(name, member, method=True), member.__doc__
            else:
                continue
            if shown is None or not doc:
                continue
            lines = markdown(doc).splitlines()
            shown = re.sub(r",? \)", ")", " ".join(shown.split())).replace("( ", "(")
            yield "\n".join([f"- `{shown}`: {lines[0]}", *(f"  {x}".rstrip() for x in lines[1:])])


# ---------------------------------------------------------------------------------------------------------------- pages


DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"

PREFERRED = ("cute.range",)
"""Second names under which an object is described."""


class Section(NamedTuple):
    """A heading of a page and the names below it."""

    title: str
    homes: tuple[str, ...]  # modules that define the names, or single names such as "cute.op.load"
    intro: str = ""
    alphabetical: bool = False  # over all modules, instead of module by module


class Page(NamedTuple):
    """A page of the reference."""

    title: str
    intro: str
    sections: tuple[Section, ...]


_LANG, _OP = "cute_dialect.lang.", "cute_dialect.op."


def _lang(title: str, *homes: str, intro: str = "", alphabetical: bool = False) -> Section:
    return Section(
        title, tuple(h if h.startswith(("cute.", "cute_dialect.")) else _LANG + h for h in homes), intro, alphabetical
    )


def _op(title: str, *homes: str, intro: str = "") -> Section:
    return Section(title, tuple(h if h.startswith("op.") else _OP + h for h in homes), intro)


PAGES: Mapping[str, Page] = {
    "kernels_and_launch": Page(
        "Kernels and launches",
        "Decorators, compilation, control flow and printing. The guide is [language.md](../language.md).",
        (
            _lang("Decorators", "calls.decorators", "calls.traced", "rewrite.source", "control.runtime"),
            _lang("Compilation", "calls.compile", "calls.compiled"),
            _lang("Compiler options", "calls.options", intro="Pass them as `cute.compile[option, …](function, …)`."),
            _lang("Annotations of parameters", "values.annotations"),
            _lang("Loops", "control.loops"),
            _lang("Printing and assertions", "machine.printf"),
            _lang("Autotuning", "calls.autotune"),
        ),
    ),
    "layouts": Page(
        "Layouts",
        "Layouts, shapes and coordinates. [layouts.md](../layouts.md) explains the algebra with drawings.",
        (
            _lang("Classes and construction", "values.layouts", "cute_dialect.algebra.values"),
            _lang("Layout algebra", "values.layout_functions", "values.layout_proofs"),
            _lang("Trees of integers", "values.tuple_functions", "values.int_tuples"),
            _lang("Integer arithmetic on trees", "values.tuple_arithmetic"),
            _lang("Drawing", "cute_dialect.viz.dispatch"),
        ),
    ),
    "tensors_and_memory": Page(
        "Tensors and memory",
        "Tensors, pointers, shared memory and register vectors.",
        (
            _lang("Tensors", "values.tensors", "calls.promises"),
            _lang("Pointers", "cute_dialect.spaces", "values.pointers", "calls.arguments"),
            _lang("Shared memory and structures", "values.shared_memory"),
            _lang("Vectors in registers", "values.vectors"),
            _lang("Tensors of several GPUs", "ranks", intro="The guide is [several-gpus.md](../several-gpus.md)."),
        ),
    ),
    "numbers": Page(
        "Numbers",
        "Number types, and the functions of numbers and vectors in `cute.math`. Most of them exist in `cute` as well.",
        (
            _lang("Number types", "values.dtypes"),
            _lang("Integer division and promises", "values.division"),
            _lang("Functions", "values.math"),
            _lang("Fast math", "tracing.tracer"),
        ),
    ),
    "arch": Page(
        "Threads and machine instructions",
        "`cute.arch`: indices, barriers, fences, atomics, warp functions and inline PTX.",
        (
            _lang("Indices and sizes", "machine.threads"),
            _lang("Warps", "machine.warps"),
            _lang("Barriers, fences, asynchronous copies, other instructions", "machine.sync", "machine.instructions",
                   alphabetical=True),
            _lang("Atomics and ordered accesses", "machine.atomics"),
            _lang("Constants", "cute.arch.FULL_MASK", "cute.arch.WARP_SIZE"),
        ),
    ),
    "copies_and_tma": Page(
        "Copies and TMA",
        "Copies of tensors, copy atoms, tiled copies, `cp.async` and TMA.",
        (
            _lang("Copies and tiled copies", "machine.copies"),
            _lang("Atoms", "machine.atoms"),
            _lang("Descriptors of plain and bulk copies", "nvgpu.common"),
            _lang("cp.async and TMA descriptors", "nvgpu.cpasync"),
            _lang("TMA", "machine.tma"),
        ),
    ),
    "mma": Page(
        "Matrix multiply-accumulate",
        "Tiled MMAs, `cute.gemm`, the MMA descriptors of warps, warpgroups and tensor memory, and helpers for GEMMs.",
        (
            _lang("Tiled MMAs", "machine.tiled_mma"),
            _lang("Warp instructions", "nvgpu.warp", intro="`ldmatrix`, `stmatrix`, `movmatrix` and `mma.sync`."),
            _lang("Warpgroup instructions", "nvgpu.warpgroup", "cute_dialect.lang.machine.wgmma",
                  intro="`wgmma`, for sm_90a."),
            _lang("Helpers for Hopper GEMMs", "hopper"),
            _lang("Instructions of tensor memory", "nvgpu.tcgen05", "cute_dialect.lang.machine.tensor_memory",
                  intro="`tcgen05`, for sm_100 and sm_110. [blackwell.md](../blackwell.md) shows a kernel."),
            _lang("Helpers for Blackwell GEMMs", "blackwell"),
        ),
    ),
    "pipelines_and_schedulers": Page(
        "Pipelines and tile schedulers",
        "Producer-consumer pipelines in shared memory, tile schedulers and properties of the GPU.",
        (
            _lang("Pipelines", "pipeline"),
            _lang("Tile schedulers and properties of the GPU", "utils"),
        ),
    ),
    "runtime": Page(
        "Arguments, testing and streams",
        "Array arguments of host functions, timing and checking of kernels, CUDA streams and torch tensors.",
        (
            _lang("Arguments", "calls.runtime_tensor"),
            _lang("Timing, tuning and checking", "cute_dialect.compat.testing"),
            _lang("CUDA streams", "cute_dialect.compat.cuda"),
            _lang("Torch", "cute_dialect.compat.torch"),
        ),
    ),
    "interpreter": Page(
        "Interpreter",
        "`from cute_dialect import interp`. The guide is [interpreter.md](../interpreter.md).",
        (
            _lang("Reports", "cute_dialect.interp.reports.run_report"),
            _lang("Runs of lowered modules", "cute_dialect.interp.exec.launch",
                   "cute_dialect.interp.memory.arguments", "cute_dialect.interp.memory.tensor_map"),
        ),
    ),
    "errors": Page(
        "Errors",
        "Every error for a mistake in a program is a `cute.CuteError`.",
        (
            _lang("Base classes", "cute_dialect.errors"),
            _lang("Compilation", "tracing.errors", "cute_dialect.algebra.leaf", "cute_dialect.arch.errors",
                   "cute_dialect.pipelines.compilation"),
            _lang("Launches", "cute_dialect.runtime.launch_plan", "cute_dialect.runtime.arrays",
                   "cute_dialect.runtime.call_options", "cute_dialect.runtime.settings", "cute_dialect.runtime.driver"),
            _lang("Runs on the interpreter", "cute_dialect.interp.errors"),
            _lang("Files and drawings", "cute_dialect.runtime.artifact", "cute_dialect.runtime.export.c_text",
                   "cute_dialect.viz.cells"),
        ),
    ),
    "op": Page(
        "Operations",
        "`from cute_dialect import op`. The guide is [operations.md](../operations.md).",
        (
            _op("Matrix multiplication", "functions.gemm", "functions.gemm_array", "functions.scaled",
                "functions.block_scaled"),
            _op("GEMM with packed and sparse weights", "functions.packed_weights", "functions.sparse_weights",
                "problems.compressed_weights"),
            _op("Grouped GEMM", "functions.grouped"),
            _op("Convolution", "functions.conv"),
            _op("Attention", "functions.attention", "functions.cascade_attention", "functions.flex_attention",
                "functions.mla", "functions.rope"),
            _op("Row operations", "functions.rows", "functions.linear_cross_entropy", "functions.quantize"),
            _op("Mixtures of experts and sampling", "functions.routing", "functions.sampling"),
            _op("Embedding and optimizers", "functions.embedding", "functions.optimizers"),
            _op("Several GPUs", "functions.all_reduce", "functions.rank_gemm", "functions.symm_mem",
                "execute.local_group"),
            _op("Elementwise operations", "functions.elementwise", "functions.element_functions", "functions.gated"),
            _op("Selection and tuning of kernels", "functions.explain", "explanations.gemm", "select.kernel_choice",
                "select.gemm_dispatch", "tuning", "functions.tune", "kernel_prefetch"),
            _op("Plans", "plans.gemm", "plans.grouped", "plans.scaled", "plans.conv", "plans.attention",
                "execute.saved"),
            _op("Arguments of plans", "pycutlass.arguments", "pycutlass.conv_arguments"),
            _op("Operations of plans", "pycutlass.operation", "pycutlass.grouped", "pycutlass.conv"),
            _op("Descriptions", "select.descriptions", "pycutlass.functors", "arrays.dtypes"),
            _op("Element types", "op.bfloat16", "op.e4m3", "op.e5m2", "op.float16", "op.float32", "op.float64",
                "op.int32", "op.int8", "op.tfloat32", "op.uint8", "op.void"),
            _op("Memory", "arrays.memory"),
            _op("Torch modules", "nn"),
            _op("Compilation and export", "compiler", "emit"),
            _op("Errors", "errors"),
        ),
    ),
    "op_epilogue": Page(
        "Epilogues",
        "Functions that epilogues call, and predefined epilogues. The guide is [operations.md](../operations.md).",
        (
            _op("Tracing", "epilogue.tracing", "op.epilogue.ACTIVATIONS"),
            _op("Functions of an epilogue", "epilogue.functions"),
            _op("Predefined epilogues", "epilogue.library"),
        ),
    ),
}  # fmt: skip
"""Pages by file name."""

INTRO = """# Reference

These pages have the signature and description of every public name of the kernel language
(`import cute_dialect.lang as cute`) and of the operations (`from cute_dialect import op`).
`python -m cute_dialect.tools.docs.reference` generates them from the source.

Keywords that exist only for compatibility with CuTe DSL are left out of signatures. Operands have these types:

| type | operand |
|---|---|
@TYPES@
| `type[Numeric]` | a number type of the language, such as `cute.Float16` |
"""


class Name(NamedTuple):
    """A public name."""

    spelled: str  # "cute.arch.thread_idx"
    value: object
    home: str  # the module that defines it
    others: list[str]  # other spellings of the same object


def names() -> list[Name]:
    """Return the public names; each object once."""
    found: dict[object, Name] = {}
    for module, name in public_modules():
        value = getattr(import_module(module), name)
        spelled = f"{MODULES[module]}.{name}"
        constant = constant_text(value) is not None
        key = spelled if constant else id(value)
        if key in found:
            found[key].others.append(spelled)
            continue
        home = spelled if constant else str(getattr(value, "__module__", module))
        home = module if home not in _homes() and module in _homes() else home
        found[key] = Name(spelled, value, home, [])
        if spelled == "cute.struct":
            for field in ("MemRange", "Align", "Tensor", "union"):
                found[f"struct.{field}"] = Name(f"cute.struct.{field}", getattr(value, field), home, [])
    return [_preferred(name) for name in found.values()]


def _preferred(name: Name) -> Name:
    """Return a name under the spelling that programs use: that of its definition, or one in ``PREFERRED``."""
    own = getattr(name.value, "__name__", "")
    spelled = [name.spelled, *name.others]
    best = next((s for s in spelled if s.rpartition(".")[2] == own), name.spelled)
    best = next((s for s in spelled if s in PREFERRED), best)
    return name._replace(spelled=best, others=[s for s in spelled if s != best])


@cache
def _homes() -> frozenset[str]:
    return frozenset(home for page in PAGES.values() for section in page.sections for home in section.homes)


def document() -> dict[str, str]:
    """Return the pages by file name.

    Raises LookupError if a name has no section.
    """
    everything = names()
    lost = [name.spelled for name in everything if name.home not in _homes()]
    if lost:
        raise LookupError(f"docs.reference: no section of PAGES has the modules of {', '.join(lost)}")
    pages: dict[str, str] = {}
    index = [INTRO.replace("@TYPES@", "\n".join(_operand_types()))]
    for file, page in PAGES.items():
        out = [f"# {page.title}", "", page.intro, "", "[All names](index.md)", ""]
        index += [f"## [{page.title}]({file}.md)", "", page.intro, ""]
        index += ["| name | description |", "|---|---|"]
        for section in page.sections:
            own = [name for home in section.homes for name in everything if name.home == home]
            assert own, (file, section.title)
            if section.alphabetical:
                own.sort(key=lambda name: name.spelled.lower())
            out += [f"## {section.title}", "", *([section.intro, ""] if section.intro else [])]
            for name in own:
                out += [entry_text(name.spelled, name.value, name.others)]
                text = summary(name.value).replace("|", "\\|")
                index.append(f"| [`{name.spelled}`]({file}.md#{anchor(name.spelled, name.value)}) | {text} |")
        index.append("")
        pages[f"{file}.md"] = "\n".join(out).rstrip() + "\n"
    pages["index.md"] = "\n".join(index).rstrip() + "\n"
    return pages


def _operand_types() -> Iterator[str]:
    """Yield a table row for each alias of ``signature_types``, from the string below its definition."""
    modules = (signature_types, op_signature_types)
    body = [node for m in modules for node in ast.parse(Path(m.__file__ or "").read_text(encoding="utf-8")).body]
    for node, doc in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(doc, ast.Expr):
            assert isinstance(doc.value, ast.Constant), node.target.id
            text = markdown(str(doc.value.value))
            yield f"| `{node.target.id}` | {text[0].lower()}{text[1:].rstrip('.')} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""

    def texts(output: Path) -> dict[Path, str | None]:
        gone: dict[Path, str | None] = dict.fromkeys(output.glob("*.md"))
        return gone | {output / file: text for file, text in document().items()}

    return generate("reference", (__doc__ or "").splitlines()[0], DOCS, texts, arguments)


if __name__ == "__main__":
    sys.exit(main())
