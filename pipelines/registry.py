"""Named pipelines: ``cute-opt --pipeline=NAME[=key=value,…]``.

Each is a template of a textual pipeline with named placeholders.  ``nvptx`` lowers cute to PTX and ``host`` to LLVM
for the CPU; ``base`` stops after the cute passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.targets import DEFAULT_CHIP, default_features, find_target
from cute_dialect.ir.diagnostics import did_you_mean
from cute_dialect.passes.pipeline_text import Element, parse_pipeline


class PipelineError(ValueError):
    """Unknown pipeline or pipeline option, or an invalid value."""


class PipelineOption(NamedTuple):
    """An option of a named pipeline: default value and help text."""

    default: str
    help: str
    choices: tuple[str, ...] = ()
    """allowed values; empty: any value"""


class NamedPipeline(NamedTuple):
    """A named pipeline.

    In ``template``, ``<option>`` is replaced by the value of an option, and ``<option=value?text>`` by the text if
    the option has that value.
    """

    name: str
    summary: str
    template: str
    options: Mapping[str, PipelineOption]

    def text(self, options: Mapping[str, str] | None = None) -> str:
        """Return the textual pipeline for these options.  Raises PipelineError.

        >>> PIPELINES["base"].text()
        'builtin.module(cute-fold-static,cute-expand-ops,convert-cute-algo-to-arch,cute-to-base)'
        """
        values = {key: option.default for key, option in self.options.items()}
        for key, value in (options or {}).items():
            if key not in values:
                known = ", ".join(values) or "none"
                raise PipelineError(
                    f"pipeline '{self.name}' has no option '{key}'{did_you_mean(key, values)} (its options: {known})"
                )
            if re.search(r"[\s{}()\"']", value):
                raise PipelineError(
                    f"option '{key}' of pipeline '{self.name}': '{value}' contains a space, brace, parenthesis or quote"
                )
            choices = self.options[key].choices
            if choices and value not in choices:
                raise PipelineError(
                    f"option '{key}' of pipeline '{self.name}': expected {' or '.join(choices)}, got '{value}'"
                )
            values[key] = value
        if values.get("lineinfo") == "true" and values["compilation-target"] != "isa":
            raise PipelineError(
                f"option 'lineinfo' of pipeline '{self.name}': needs compilation-target=isa, got "
                f"'{values['compilation-target']}' (--emit=cubin assembles a cubin from the PTX)"
            )
        if "chip" in values:
            _check_target(self.name, values, "features" in (options or {}))
        text = re.sub(r"<([\w-]+)=([\w-]+)\?([^<>]*)>", lambda m: m[3] if values[m[1]] == m[2] else "", self.template)
        return re.sub(r"<([\w-]+)>", lambda m: values[m.group(1)], text)

    def elements(self, options: Mapping[str, str] | None = None) -> tuple[Element, ...]:
        """Return the passes for these options.  Raises PipelineError."""
        return parse_pipeline(self.text(options))


def _check_target(name: str, values: dict[str, str], given: bool) -> None:
    """Check chip and features.  Unless features are ``given``, use those of the chip."""
    if not given:
        values["features"] = default_features(values["chip"])
    try:
        find_target(values["chip"], values["features"])
    except ArchError as e:
        option, _, message = str(e).partition(": ")
        raise PipelineError(f"option '{option}' of pipeline '{name}': {message}") from e


_ARCH = "cute-fold-static,cute-expand-ops,convert-cute-algo-to-arch"
_CUTE = f"{_ARCH},cute-to-base"
_ROWS = (
    NamedPipeline(
        "nvptx",
        "cute to PTX for a GPU (the default)",
        f"builtin.module({_ARCH},cute-check-target{{chip=<chip> features=<features>}},"
        "cute-to-base{chip=<chip><arch-dialect=nvgpu? arch-dialect=nvgpu>},<asserts=false?cute-drop-asserts,>"
        "cute-strong-atomics,cute-wgmma-registers,"
        "<arch-dialect=nvgpu?convert-nvgpu-to-nvvm,>base-prepare,one-shot-convert-to-llvm,"
        "<lineinfo=true?ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly},>"
        "attach-nvvm-target{chip=<chip> features=<features> opt-level=<O>},"
        "emit-gpu-binary{compilation-target=<compilation-target>})",
        {
            "chip": PipelineOption(DEFAULT_CHIP, "architecture"),
            "features": PipelineOption(
                default_features(DEFAULT_CHIP), "PTX version; the chip's first one where that is newer"
            ),
            "O": PipelineOption("3", "optimization level of LLVM, 0 to 3"),
            "arch-dialect": PipelineOption(
                "nvvm", "nvgpu: lower through upstream's nvgpu where it has the op", ("nvvm", "nvgpu")
            ),
            "compilation-target": PipelineOption("isa", "isa (PTX), bin (cubin), fatbin or llvm (bitcode)"),
            "lineinfo": PipelineOption(
                "false", "true: PTX and cubin record the source line of each instruction", ("false", "true")
            ),
            "asserts": PipelineOption("true", "false: GPU code has no asserts", ("true", "false")),
        },
    ),
    NamedPipeline(
        "host",
        "cute to LLVM for the CPU",
        "builtin.module(cute-fold-static,cute-expand-ops,cute-to-base,base-prepare,one-shot-convert-to-llvm)",
        {},
    ),
    NamedPipeline(
        "base",
        "cute to base ops, without upstream MLIR",
        f"builtin.module({_CUTE}<arch-dialect=nvgpu?{{arch-dialect=nvgpu}}>)",
        {"arch-dialect": PipelineOption("nvvm", "nvgpu: use upstream's nvgpu where it has the op", ("nvvm", "nvgpu"))},
    ),
)

PIPELINES: Mapping[str, NamedPipeline] = {row.name: row for row in _ROWS}
"""Pipelines by name."""

DEFAULT = "nvptx"
"""Pipeline selected by ``--pipeline`` without a name."""


def named_pipeline(text: str) -> tuple[NamedPipeline, dict[str, str]]:
    """Parse ``NAME``, ``NAME=key=value,…`` or an empty text into a pipeline and options.  Raises PipelineError.

    A comma separates options only before ``key=``, so ``features=+ptx83,+real`` is one option.

    >>> named_pipeline("nvptx=chip=sm_90a,features=+ptx86,O=2")[1]
    {'chip': 'sm_90a', 'features': '+ptx86', 'O': '2'}
    """
    name, _, rest = text.strip().partition("=")
    row = PIPELINES.get(name or DEFAULT)
    if row is None:
        known = ", ".join(PIPELINES)
        raise PipelineError(f"unknown pipeline '{name}'{did_you_mean(name, PIPELINES)} (known: {known})")
    options: dict[str, str] = {}
    for part in re.split(r",(?=[\w-]+=)", rest) if rest else ():
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise PipelineError(f"pipeline '{row.name}': expected key=value, got '{part}'")
        options[key] = value
    return row, options


def with_options(text: str, options: Mapping[str, str]) -> str:
    """Insert options before those in the text of a named pipeline.

    >>> with_options("nvptx=O=2", {"lineinfo": "true"})
    'nvptx=lineinfo=true,O=2'
    """
    if not options:
        return text
    name, _, rest = text.strip().partition("=")
    return f"{name or DEFAULT}=" + ",".join([*(f"{k}={v}" for k, v in options.items()), *([rest] if rest else [])])
