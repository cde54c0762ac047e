"""Generator of ``docs/reference``: the signature and docstring of every public name of the language and of ``op``.

    python -m cute_dialect.tools.docs.reference            # writes docs/reference
    python -m cute_dialect.tools.docs.reference --check    # exit status 1 if a page is not current

``PAGES`` assigns the module that defines a name to a section of a page.  A name is described once, under the first
module in ``MODULES`` that has it; the other spellings are listed in its entry.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from cute_dialect.lang.values import signature_types
from cute_dialect.op import signature_types as op_signature_types
from cute_dialect.tools.docs.generated import generate
from cute_dialect.tools.docs.public_names import MODULES, public_modules
from cute_dialect.tools.docs.reference_text import anchor, constant_text, entry_text, markdown, summary

__all__ = ["PAGES", "Name", "document", "main", "names"]

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
            _lang("Decorators", "calls.decorators", "calls.generics", "calls.examples", "rewrite.user_code",
                  "control.builtins"),
            _lang("Compilation", "calls.compile", "calls.compiled", "calls.target"),
            _lang("Compiler options", "calls.options", intro="Pass them as `cute.compile[option, …](function, …)`."),
            _lang("Annotations of parameters", "values.annotations"),
            _lang("Loops", "control.loops"),
            _lang("Printing and assertions", "machine.printf"),
            _lang("Autotuning", "lib.autotune"),
        ),
    ),
    "layouts": Page(
        "Layouts",
        "Layouts, shapes and coordinates. [layouts.md](../layouts.md) explains the algebra with drawings.",
        (
            _lang("Classes and construction", "values.layouts", "cute_dialect.algebra.values"),
            _lang("Layout algebra", "values.layout_functions"),
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
        ),
    ),
    "numbers": Page(
        "Numbers",
        "Number types, and the functions of numbers and vectors in `cute.math`. Most of them exist in `cute` as well.",
        (
            _lang("Number types", "values.dtypes"),
            _lang("Integer division and promises", "values.division"),
            _lang("Functions", "values.math"),
            _lang("Fast math", "tracing.emission"),
        ),
    ),
    "arch": Page(
        "Threads and machine instructions",
        "`cute.arch`: indices, barriers, fences, atomics, warp functions and inline PTX.",
        (
            _lang("Indices and sizes", "machine.ids"),
            _lang("Warps", "machine.warps", "machine.elect"),
            _lang("Barriers, fences, asynchronous copies, other instructions", "machine.sync", "machine.operands",
                   "machine.instructions", "cute_dialect.lang.arch", alphabetical=True),
            _lang("Atomics and ordered accesses", "machine.atomics"),
            _lang("Constants", "cute.arch.FULL_MASK", "cute.arch.WARP_SIZE"),
        ),
    ),
    "copies_and_tma": Page(
        "Copies and TMA",
        "Copies of tensors, copy atoms, tiled copies, `cp.async` and TMA.",
        (
            _lang("Copies", "machine.copies"),
            _lang("Atoms", "machine.atoms"),
            _lang("Tiled copies", "machine.tiled_copy"),
            _lang("Descriptors of plain and bulk copies", "nvgpu.common"),
            _lang("cp.async and TMA descriptors", "nvgpu.cpasync"),
            _lang("TMA", "machine.tma"),
        ),
    ),
    "mma": Page(
        "Matrix multiply-accumulate",
        "Tiled MMAs, `cute.gemm`, the MMA descriptors of warps and warpgroups, and helpers for Hopper GEMMs.",
        (
            _lang("Tiled MMAs", "machine.tiled_mma"),
            _lang("Warp instructions", "nvgpu.warp", intro="`ldmatrix`, `stmatrix`, `movmatrix` and `mma.sync`."),
            _lang("Warpgroup instructions", "nvgpu.warpgroup", "cute_dialect.lang.machine.wgmma",
                  intro="`wgmma`, for sm_90a."),
            _lang("Helpers for Hopper GEMMs", "lib.hopper"),
        ),
    ),
    "pipelines_and_schedulers": Page(
        "Pipelines and tile schedulers",
        "Producer-consumer pipelines in shared memory, tile schedulers and properties of the GPU.",
        (
            _lang("Pipelines", "lib.pipeline"),
            _lang("Tile schedulers and properties of the GPU", "lib.schedulers"),
        ),
    ),
    "runtime": Page(
        "Arguments, testing and streams",
        "Array arguments of host functions, timing and checking of kernels, CUDA streams and torch tensors.",
        (
            _lang("Arguments", "calls.runtime_tensor"),
            _lang("Timing, tuning and checking", "cute_dialect.compat.testing"),
            _lang("CUDA streams", "cute_dialect.compat.cuda"),
            _lang("Torch", "cute_dialect.compat.torch", "cute_dialect.compat.torch_ops"),
        ),
    ),
    "interpreter": Page(
        "Interpreter",
        "`from cute_dialect import interp`. The guide is [interpreter.md](../interpreter.md).",
        (
            _lang("Reports", "cute_dialect.interp.reports.run_report"),
            _lang("Runs of lowered modules", "cute_dialect.interp.exec.launch", "cute_dialect.interp.options",
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
            _lang("Launches", "cute_dialect.runtime.binding", "cute_dialect.runtime.arrays",
                   "cute_dialect.runtime.call_options", "cute_dialect.runtime.settings", "cute_dialect.runtime.driver"),
            _lang("Runs on the interpreter", "cute_dialect.interp.errors"),
            _lang("Files and drawings", "cute_dialect.runtime.artifact", "cute_dialect.runtime.export.c_text",
                   "cute_dialect.viz.errors"),
        ),
    ),
    "op": Page(
        "Operations",
        "`from cute_dialect import op`. The guide is [operations.md](../operations.md).",
        (
            _op("Matrix multiplication", "functions.gemm", "functions.matmul", "functions.gemm_array",
                "functions.scaled"),
            _op("Grouped GEMM", "functions.grouped", "functions.scaled_grouped"),
            _op("Convolution", "functions.conv"),
            _op("Attention", "functions.attention"),
            _op("Row operations", "functions.rows"),
            _op("Elementwise operations", "functions.elementwise", "functions.element_functions"),
            _op("Selection and tuning of kernels", "functions.explain", "explanations.gemm", "select.kernel_choice",
                "select.gemm_dispatch", "tuning", "functions.tune", "kernel_prefetch"),
            _op("Plans", "plans.gemm", "plans.grouped", "plans.scaled", "plans.conv", "plans.attention",
                "execute.saved"),
            _op("Arguments of plans", "pycutlass.arguments", "pycutlass.grouped_arguments", "pycutlass.conv_arguments",
                "pycutlass.reduction"),
            _op("Operations of plans", "pycutlass.operation", "pycutlass.grouped_operation", "pycutlass.conv"),
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
