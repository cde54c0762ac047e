"""Kernels around one machine-level op each, generated from the table of ops."""

from __future__ import annotations

import re
from typing import NamedTuple

from cute_dialect.cute_nvgpu import sync as arch_sync
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.tools.docs.dialect import sections

POINTER = re.compile(r"!cute\.ptr<(\w+), (\w+)(, align<\d+>)?>")


class Call(NamedTuple):
    """An op, as parsed from the example in its documentation."""

    name: str
    properties: str
    operands: list[str]
    result: str

    def line(self, values: list[str]) -> str:
        """Return the op on these values."""
        given = f"({', '.join(values)}){' ' + self.properties if self.properties else ''}"
        types = ", ".join(self.operands)
        several = ", ".join(["%r", *(f"%r{i}" for i in range(1, self.result.count(",") + 1))])
        names = f"{several if self.result.startswith('(') else '%r'} = " if self.result else ""
        return f"{names}cute_nvgpu.arch.{self.name}{given} : ({types}) -> {self.result or '()'}"


def example(op: type[arch_sync.ArchOp]) -> Call:
    """Parse the example of an op."""
    text = sections(op.__doc__).example
    m = re.fullmatch(r"(?:%r[\w, %]* = )?cute_nvgpu\.arch\.(\w+)\([^)]*\)(?: (\{.*\}))? : \((.*)\) -> (.*)", text)
    assert m is not None, text
    operands = re.findall(r"!cute\.\w+<(?:[^<>]|<[^<>]*>)*>|\w+", m[3])
    return Call(m[1], m[2] or "", operands, "" if m[4] == "()" else m[4])


def around(call: Call, name: str, threads: int = 128) -> str:
    """Return ``gpu.func @name``, which runs ``call`` and stores its result, if any, at ``o[tid]``."""
    parameters: list[str] = []
    body: list[str] = []
    values: list[str] = []
    for i, t in enumerate(call.operands):
        m = POINTER.fullmatch(t)
        values.append(f"%a{i}")
        if m is None:
            parameters.append(f"%a{i}: {t}")
            continue
        tensor = f'!cute.memref<{m[1]}, {m[2]}{m[3] or ""}, "8:1">'
        if m[2] == "dsmem":
            near = tensor.replace("dsmem", "smem")
            body += [
                f"%t{i} = cute.memref.alloc_smem() : {near}",
                f"%n{i} = cute.get_iter(%t{i}) : {near}",
                f"%c{i} = arith.constant 0 : i32",
                f"%a{i} = cute_nvgpu.arch.map_cluster(%n{i}, %c{i}) : ({t.replace('dsmem', 'smem')}, i32) -> {t}",
            ]
            continue
        if m[2] == "smem":
            body.append(f"%t{i} = cute.memref.alloc_smem() : {tensor}")
        else:
            parameters.append(f"%t{i}: {tensor}")
        body.append(f"%a{i} = cute.get_iter(%t{i}) : {tensor}")
    body.append(call.line(values))
    if call.result:
        result, value = call.result.removeprefix("(").partition(", ")[0], "%r"  # the first one of several
        m = POINTER.fullmatch(call.result)
        if m is not None:
            result, value = m[1], "%e"
            body += [
                '%l = cute.static : !cute.layout<"8:1">',
                f'%v = cute.make_view(%r, %l) : !cute.memref<{m[1]}, {m[2]}{m[3] or ""}, "8:1">',
                '%z = cute.static : !cute.coord<"0">',
                f'%e = cute.memref.load(%v, %z) : (!cute.memref<{m[1]}, {m[2]}{m[3] or ""}, "8:1">, '
                f'!cute.coord<"0">) -> {m[1]}',
            ]
        parameters.append(f'%o: !cute.memref<{result}, gmem, "?:1">')
        body += [
            "%tid = nvvm.read.ptx.sreg.tid.x : i32",
            '%c = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">',
            f'cute.memref.store(%o, %c, {value}) : (!cute.memref<{result}, gmem, "?:1">, !cute.coord<"?">, {result}) '
            "-> ()",
        ]
    lines = "\n    ".join(body)
    head = f"gpu.func @{name}({', '.join(parameters)}) kernel"
    size = f"attributes {{known_block_size = array<i32: {threads}, 1, 1>}}"
    return f"  {head} {size} {{\n    {lines}\n    gpu.return\n  }}\n"


def run(text: str, *arguments: object, grid: int = 1, threads: int = 32) -> None:
    """Run ``@k`` on the CPU."""
    compile_cute(text, emit="base").kernel("k")(*arguments, grid=(grid, 1, 1), block=(threads, 1, 1), device="cpu")
