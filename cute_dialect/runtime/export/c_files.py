"""Header and C source of an exported kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from cute_dialect.runtime.artifact import CodeObject
from cute_dialect.runtime.export.c_launch_plan import Parameter, Shape, bind, declared, places, write_launch
from cute_dialect.runtime.export.c_program import write_program
from cute_dialect.runtime.export.c_text import ExportError, Function, Scalar, Value, text
from cute_dialect.runtime.host_program import launch_records
from cute_dialect.runtime.launch_plan import Target
from cute_dialect.runtime.manifest import EqualNumbers, KernelEntry, Manifest

__all__ = ["c_files"]

_CLUSTER = 8
"""Number of blocks in the largest cluster that needs no opt-in."""

_TENSOR = """#ifndef CUTE_TENSOR_{rank}
#define CUTE_TENSOR_{rank}
/* A tensor in GPU memory: address of the first element; extents and strides in elements. */
typedef struct {{
    CUdeviceptr data;
    int64_t shape[{rank}], stride[{rank}];
}} cute_tensor_{rank};

/* A row-major tensor without padding. */
static inline cute_tensor_{rank} cute_row_major_{rank}(CUdeviceptr data, {parameters}) {{
    cute_tensor_{rank} made = {{data, {{{names}}}, {{{strides}}}}};
    return made;
}}
#endif
"""


class _Sources:
    """Inputs of the header and the source."""

    def __init__(self, name: str, target: Target, manifest: Manifest, code: Sequence[CodeObject]):
        self.name = name
        self.target = target
        self.manifest = manifest
        self.kernels = list({k["name"]: k for k in target.kernels}.values())
        modules = list(dict.fromkeys([k["module"] for k in self.kernels]))
        self.code = [next(c for c in code if c.module == m) for m in modules]
        self.numbers = {k["name"]: i for i, k in enumerate(self.kernels)}
        self.parameters = declared(target.params, target.names)

    @property
    def shape_parameters(self) -> str:
        """Launch shape parameters of a kernel without a host function."""
        if self.target.host is not None:
            return ""
        block = "" if self.target.launches[0].kernel["block"] else "const unsigned launch_block[3], "
        return f"const unsigned launch_grid[3], {block}unsigned launch_smem, "

    def signature(self, first: str) -> str:
        """Return the C parameter list of a function that starts with ``first``."""
        return f"{first}, {self.shape_parameters}{', '.join([p.text for p in self.parameters if p.pieces])}".rstrip(
            ", "
        )

    @property
    def passed(self) -> str:
        """Arguments of a call inside the source."""
        shape = [part.split()[-1].removesuffix("[3]") for part in self.shape_parameters.split(", ") if part]
        return ", ".join(["module", *shape, *[piece for p in self.parameters for _, piece in p.pieces]])


def c_files(name: str, target: Target, manifest: Manifest, code: Sequence[CodeObject]) -> dict[str, bytes]:
    """Return ``NAME.h`` and ``NAME.c``: C11 (GCC or Clang) that needs only ``cuda.h`` and contains the machine code.

    Raises :class:`ExportError` if C cannot pass a parameter or there is no machine code.
    """
    if not code:
        raise ExportError(f"@{target.name} has no machine code: compile it with emit='auto'")
    sources = _Sources(name, target, manifest, code)
    return {f"{name}.h": _header(sources).encode(), f"{name}.c": _source(sources).encode()}


def _header(s: _Sources) -> str:
    guard = f"CUTE_{s.name.upper()}_H"
    tensors = [_tensor(rank) for rank in sorted({p.rank for p in s.parameters if p.rank})]
    docs = "\n".join([f" *   {p.label}: {_comment(p.param['type'])}" for p in s.parameters])
    shape = "" if s.target.host else (
        "No host function launches this kernel, so the caller passes grid and block; launch_smem adds dynamic shared "
        "memory in bytes.\n"
    )  # fmt: skip
    return f"""/* {s.name}: @{s.target.name} for {s.manifest["chip"]}, by cute-dialect; needs only the CUDA driver.
 *
 *   cc -c {s.name}.c -I$CUDA/include        and link with -lcuda
 */
#ifndef {guard}
#define {guard}

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{"".join(tensors)}
typedef struct {s.name}_module {s.name}_module;

/* Load the machine code into the current context.  Several threads may use a module at once. */
CUresult {s.name}_load({s.name}_module **module);

/* Launch on a stream and return without waiting.  Arguments:
{docs or " *   no arguments"}
 * {shape}Return CUDA_ERROR_INVALID_VALUE, and launch nothing, if an argument does not match its type.
 */
CUresult {s.name}_launch({s.signature(f"const {s.name}_module *module")}, CUstream stream);

/* Return the message of the last error in this thread. */
const char *{s.name}_error(void);

/* Unload the machine code.  No launch of it may still be running. */
CUresult {s.name}_unload({s.name}_module *module);

#ifdef __cplusplus
}}
#endif
#endif
"""


def _comment(text: str) -> str:
    return text.replace("*/", "* /")


def _tensor(rank: int) -> str:
    names = [f"n{i}" for i in range(rank)]
    strides = [" * ".join(names[i + 1 :]) or "1" for i in range(rank)]
    return _TENSOR.format(
        rank=rank, parameters=", ".join([f"int64_t {n}" for n in names]), names=", ".join(names),
        strides=", ".join(strides),
    )  # fmt: skip


def _source(s: _Sources) -> str:
    support = Path(__file__).with_name("support.c").read_text()
    most = max([places(k)[1] for k in s.kernels], default=1)
    count = max([len(k["params"]) for k in s.kernels], default=1)
    launches = max([len(t.launches) for t in _targets(s.target)], default=1)
    # The driver has the function for maps along W from 12.8 on, so that other programs must not refer to it.
    wide = any(re.search(r"im2col<.*mode = w", p["type"]) for k in s.kernels for p in k["params"])
    parts = [
        f"""#include "{s.name}.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUTE_LAUNCHES {launches}
#define CUTE_IM2COL_WIDE {int(wide)}
#define CUTE_PARAMETERS {max(1, count)}
#define CUTE_PARAMETER_BYTES {max(64, -(-most // 64) * 64)}

{support}""",
        *[_image(i, code) for i, code in enumerate(s.code)],
        _loading(s),
        *[_planning(s, t, i) for i, t in enumerate(_targets(s.target))],
        _launching(s),
    ]
    return "\n".join(parts)


def _targets(target: Target) -> Iterator[Target]:
    """Yield a target and its fallbacks."""
    yield target
    if target.fallback is not None:
        yield from _targets(target.fallback)


def _image(number: int, code: CodeObject) -> str:
    data = code.cubin if code.cubin is not None else code.ptx.encode() + b"\0"
    kind = "cubin" if code.cubin is not None else "PTX"
    rows = [",".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32)]
    body = ",\n    ".join(rows)
    return (f"/* {kind} of {_comment(code.module)} */\n"
            f"_Alignas(16) static const unsigned char image_{number}[] = {{\n    {body}}};\n")  # fmt: skip


def _loading(s: _Sources) -> str:
    of = {c.module: i for i, c in enumerate(s.code)}
    images = ", ".join([f"image_{i}" for i in range(len(s.code))])
    names = ", ".join([text(k["name"]) for k in s.kernels])
    owners = ", ".join([str(of[k["module"]]) for k in s.kernels])
    large = ", ".join([str(int(_is_large(k, s))) for k in s.kernels])
    return f"""struct {s.name}_module {{
    CUmodule modules[{len(s.code)}];
    CUfunction kernels[{len(s.kernels)}];
}};

CUresult {s.name}_load({s.name}_module **module) {{
    static const void *const images[] = {{{images}}};
    static const char *const names[] = {{{names}}};
    static const int owners[] = {{{owners}}}, large[] = {{{large}}};
    {s.name}_module *made = calloc(1, sizeof *made);
    CUresult code = made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    *module = NULL;
    for (int i = 0; i < {len(s.code)} && code == CUDA_SUCCESS; i++)
        code = cute_driver_error(cuModuleLoadData(&made->modules[i], images[i]), "{s.name}_load");
    for (int i = 0; i < {len(s.kernels)} && code == CUDA_SUCCESS; i++)
        code = cute_function(&made->kernels[i], made->modules[owners[i]], names[i], large[i]);
    if (code == CUDA_SUCCESS) *module = made;
    else if (made) {s.name}_unload(made);
    return code;
}}

CUresult {s.name}_unload({s.name}_module *module) {{
    CUresult code = CUDA_SUCCESS;
    for (int i = 0; module && i < {len(s.code)}; i++) {{
        CUresult found = module->modules[i] ? cuModuleUnload(module->modules[i]) : CUDA_SUCCESS;
        if (code == CUDA_SUCCESS) code = cute_driver_error(found, "{s.name}_unload");
    }}
    free(module);
    return code;
}}

const char *{s.name}_error(void) {{ return cute_text; }}
"""


def _is_large(kernel: KernelEntry, s: _Sources) -> bool:
    """Return True if a kernel may run in clusters of more than eight blocks."""
    if kernel["cluster"]:
        x, y, z = kernel["cluster"]
        return x * y * z > _CLUSTER
    hosts = [t.host for t in _targets(s.target) if t.host is not None]
    return any(r["cluster"] is not None for h in hosts for r in launch_records(h["program"]))


def _planning(s: _Sources, target: Target, number: int) -> str:
    f = Function()
    parameters = declared(target.params, s.target.names)
    if [p.pieces for p in parameters] != [p.pieces for p in s.parameters]:
        raise ExportError(
            f"@{s.target.name} falls back to @{target.name}, whose arguments have other C types; export one of "
            "the two kernels"
        )
    empty = [f"{p.pieces[0][1]}.shape[{i}] == 0" for p in parameters for i in range(p.rank)]
    values = [bind(f, p, i) for i, p in enumerate(parameters)]
    for symbol in target.host.get("symbols", ()) if target.host is not None else ():
        _write_symbol(f, symbol, parameters)
    f.line(f"const int nothing = {' || '.join(empty) or '0'};")
    f.line("(void)nothing;")
    if target.host is None:
        _write_alone(f, s, target, values)
    else:
        _write_host(f, s, target, values)
    f.line("return CUTE_PLANNED;")
    body = "\n".join(f.body)
    head = s.signature("struct cute_plan *plan")
    return f"/* Plan the launches of @{target.name}. */\nstatic int plan_{number}({head}) {{\n{body}\n}}\n"


def _write_symbol(f: Function, symbol: EqualNumbers, parameters: Sequence[Parameter]) -> None:
    """Write the check that all extents and strides of one symbol are equal."""
    places = [(parameters[int(at)], part, mode) for at, part, mode in symbol["places"]]
    (first, part, mode), *others = places
    one = f"{first.pieces[0][1]}.{part}[{mode}]"
    for other, part_, mode_ in others:
        two = f"{other.pieces[0][1]}.{part_}[{mode_}]"
        message = text(f"'{symbol['name']}' is <> in argument {first.label}, mode {mode}, and <> in argument "
                       f"{other.label}, mode {mode_}").replace("<>", "%lld")  # fmt: skip
        f.say(f"{one} == {two}", "CUTE_REFUSED", message, one, two)


def _write_alone(f: Function, s: _Sources, target: Target, values: Sequence[Value]) -> None:
    """Write the launch of a kernel without a host function; the caller passes its shape."""
    choice = target.launches[0]
    block = None if choice.kernel["block"] else [f"launch_block[{i}]" for i in range(3)]
    shape = Shape([f"launch_grid[{i}]" for i in range(3)], block, "(int64_t)launch_smem")
    with f.block(""):
        write_launch(f, choice.kernel, [*choice.variants, choice.kernel], s.numbers, target.names, values, shape)
        f.line("if (found != CUTE_PLANNED) return found;")


def _write_host(f: Function, s: _Sources, target: Target, arguments: Sequence[Value]) -> None:
    assert target.host is not None
    values = write_program(f, cast("dict[str, object]", target.host), arguments)
    kernels = {k["name"]: k for k in s.manifest["kernels"]}

    def scalar(register: object) -> str:
        value = values[cast(int, register)]
        if not isinstance(value, Scalar):
            raise ExportError(f"host function @{target.name} launches with an undefined number")
        return value.text

    def three(record: dict[str, object], key: str) -> list[str] | None:
        given = cast("list[int] | None", record[key])
        return None if given is None else [scalar(r) for r in given]

    records = launch_records(target.host["program"])
    for i, (record, choice) in enumerate(zip(records, target.launches)):
        base = kernels[str(record["kernel"])]
        registers = cast("list[int]", record["args"])
        shape = Shape(
            three(record, "grid") or [], three(record, "block"),
            scalar(record["smem"]) if record["smem"] is not None else "0", three(record, "cluster"),
            bool(record["cooperative"]), bool(record["pdl"]), cast("list[int]", record.get("preferred_cluster", [])),
        )  # fmt: skip
        group = max(j for j in range(i + 1) if not records[j]["fallback"])
        last = i + 1 == len(records) or not records[i + 1]["fallback"]
        when = [f"({scalar(r)}) {'!=' if side else '=='} 0" for r, side in cast("list[list[int]]", record["when"])]
        if record["fallback"]:
            when.append(f"refused_{group}")
        elif not last:
            f.line(f"int refused_{group} = 0;")
        with f.block(f"if ({' && '.join(when)})" if when else ""):
            labels = [_label(target, base, n, r, values[r]) for n, r in enumerate(registers)]
            given = [values[r] for r in registers]
            write_launch(f, base, [*choice.variants, choice.kernel], s.numbers, labels, given, shape)
            f.line("if (found != CUTE_PLANNED) return found;" if last else f"refused_{group} = found != CUTE_PLANNED;")


def _label(target: Target, base: KernelEntry, place: int, register: int, value: Value) -> str:
    """Name an operand of a launch after the host function's parameter that it is, or whose array it points to."""
    source = register if register < len(target.names) else _argument(value)
    return base["names"][place] if source is None else target.names[source]


def _argument(value: Value) -> int | None:
    if isinstance(value, tuple):
        return next((found for v in value if (found := _argument(v)) is not None), None)
    return value.argument if value is not None else None


def _launching(s: _Sources) -> str:
    plans = list(_targets(s.target))
    given = s.passed.replace("module", "&plan", 1)
    tries = [f"    int found = plan_0({given});"]
    tries += [
        f"    if (found == CUTE_REFUSED) plan.count = 0, found = plan_{i}({given});" for i in range(1, len(plans))
    ]
    body = "\n".join(tries)
    return f"""CUresult {s.name}_launch({s.signature(f"const {s.name}_module *module")}, CUstream stream) {{
    struct cute_plan plan;
    plan.count = 0;
{body}
    if (found != CUTE_PLANNED) return CUDA_ERROR_INVALID_VALUE;
    return cute_launch_all(module->kernels, &plan, stream);
}}
"""
