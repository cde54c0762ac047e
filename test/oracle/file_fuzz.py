"""Damaged and extreme ``.mlir`` files for ``cute-opt`` and ``cute-run``.

    python test/oracle/file_fuzz.py --count 1000000 --seed 0

Every file and option list must soon produce output or a diagnostic.

Three of four cases damage one of the project's own test files, one in five of them in generic form. Bytes are changed,
removed or duplicated, lines moved, tokens swapped with those of other files, numbers made huge, and brackets nested
deep. The parts of a file between ``// -----`` are separate cases. The remaining cases are shapes of
:mod:`file_shapes`. One file in ten has an unusual encoding: invalid UTF-8, a byte order mark, other line endings, or
all on one line.

Cases run one after another in a process with the memory limit ``--memory``, so state left by one case can affect the
next. A failure is an exception that is not a diagnostic, a timeout or a crash. Failures are written to a folder with
the seed that reproduces them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
SECONDS = 20
SILENCE = 300
"""Seconds that a process may be silent. A process that waits for upstream MLIR uses no CPU time itself."""
MEMORY = 6 << 30
TOKEN = re.compile(r'"[^"\n]*"|[%@!#^]?[A-Za-z_][\w.$]*|\d+|->|\S')

RUNS = (
    *[[]] * 6,
    ["--cute-fold-static"],
    ["--cute-expand-ops"],
    ["--cute-fold-static", "--cute-expand-ops", "--convert-cute-algo-to-arch", "--cute-to-base"],
    ["--cute-fold-static", "--cute-expand-ops", "--convert-cute-algo-to-arch", "--cute-to-base=arch-dialect=nvgpu"],
    ["--convert-cute-algo-to-arch"],
    ["--cute-to-base"],
    ["--canonicalize", "--cse"],
    ["--loop-invariant-code-motion", "--reconcile-unrealized-casts"],
    ["--strip-debuginfo"],
    ["--pass-pipeline=builtin.module(gpu.module(canonicalize,cse),func.func(cute-expand-ops))"],
    ["--pipeline=base"],
    ["--pipeline=base=arch-dialect=nvgpu"],
    ["--pipeline=host"],
    ["--pipeline=host", "--emit=llvm"],
    ["--pipeline=nvptx", "--emit=ptx"],
    ["--pipeline=nvptx=chip=sm_80,O=1", "--emit=ptx"],
    ["--pipeline=nvptx", "--emit=llvm"],
    ["--base-prepare"],
    ["--one-shot-convert-to-llvm"],
    ["--base-prepare", "--one-shot-convert-to-llvm", "--attach-nvvm-target=chip=sm_90a", "--emit-gpu-binary"],
    ["--convert-nvgpu-to-nvvm"],
    ["--inline", "--sccp", "--symbol-dce"],
    ["--mem2reg", "--sroa", "--remove-dead-values", "--control-flow-sink"],
)
"""Option lists to run; most files are run with none."""

FLAGS = (
    "--split-input-file",
    "--mlir-print-op-generic",
    "--mlir-print-debuginfo",
    "--mlir-print-local-scope",
    "--mlir-use-nameloc-as-prefix",
    "--allow-unregistered-dialect",
    "--core-only",
    "--dialects=cute",
    "--dialects=base",
    "--verify-diagnostics",
    "--verify-each=false",
    "--verify-legality",
    "--verify-roundtrip",
    "--validate=samples=2",
    "--mlir-print-ir-after-all",
    "--mlir-print-ir-before-all",
    "--mlir-print-ir-after-failure",
    "--mlir-print-ir-tree-dir={folder}",
    "--mlir-timing",
    "--mlir-pass-statistics",
    "--code-size",
    "-o={folder}/out",
)
"""Options for parsing, checking and printing. Each case uses up to three."""

INPUTS = ("16:randn", "8x16:randn", "4x128:bf16:randn", "7", "1.5", "128:i32:arange", "")


def _import(name: str):
    """Import a module from this folder."""
    found = sys.modules.get(name)
    if found is None:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None and spec.loader is not None
        found = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    return found


class TooSlow(BaseException):
    """Raised when the time limit is reached."""


def corpus() -> list[str]:
    """Return the parts of the project's test files."""
    pieces: list[str] = []
    for folder in ("errors", "filecheck", "examples"):
        for path in sorted((ROOT / folder).rglob("*.mlir")):
            pieces += [p for p in path.read_text().split("// -----") if p.strip()]
    return pieces


@cache
def generic(text: str) -> str:
    """Return a part in generic form, in which only the verifier checks ops. If it does not parse, return it as is."""
    from cute_dialect.ir.context import make_context
    from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
    from cute_dialect.ir.parsing import parse_module
    from cute_dialect.ir.printing import ir_text

    module = parse_module(make_context("all"), Source("piece", text), DiagnosticEngine())
    return text if module is None else ir_text(module, generic=True)


def damaged(rng: Random, pieces: list[str]) -> str:
    """Damage a part in one to four ways."""
    text = rng.choice(pieces)
    if rng.random() < 0.2:
        text = generic(text)
    if len(text) > 6000:
        start = rng.randrange(len(text) - 6000)
        text = text[start : start + 6000]
    for _ in range(rng.choice([1, 1, 1, 2, 3, 4])):
        text = rng.choice(DAMAGES)(rng, text, pieces)
    return text


def _byte(rng: Random, text: str, pieces: list[str]) -> str:
    if not text:
        return text
    i = rng.randrange(len(text))
    return (
        text[:i] + rng.choice(["", chr(rng.randrange(256)), text[i] * 2, "\0", "٣", '"', "?", "{", "}"]) + text[i + 1 :]
    )


def _tokens(rng: Random, text: str, pieces: list[str]) -> str:
    """Replace a token by one of another file, remove it, or duplicate it."""
    found = list(TOKEN.finditer(text))
    if not found:
        return text
    m = rng.choice(found)
    others = TOKEN.findall(rng.choice(pieces))
    new = rng.choice(["", m.group() + " " + m.group(), rng.choice(others) if others else ""])
    return text[: m.start()] + new + text[m.end() :]


def _swap(rng: Random, text: str, pieces: list[str]) -> str:
    """Swap two tokens."""
    found = list(TOKEN.finditer(text))
    if len(found) < 2:
        return text
    a, b = sorted(rng.sample(found, 2), key=lambda m: m.start())
    return text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group() + text[b.end() :]


def _line(rng: Random, text: str, pieces: list[str]) -> str:
    """Remove, duplicate or move a line."""
    lines = text.split("\n")
    i = rng.randrange(len(lines))
    line = lines.pop(i)
    for _ in range(rng.choice([0, 1, 2])):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def _number(rng: Random, text: str, pieces: list[str]) -> str:
    """Replace a number by zero, a negative number, a huge number or ``?``."""
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    m = rng.choice(found)
    new = rng.choice(["0", "-1", "?", "?{i64}", "?{div=4}", "2147483648", "9223372036854775808", "9" * 400, "1000000"])
    return text[: m.start()] + new + text[m.end() :]


def _nest(rng: Random, text: str, pieces: list[str]) -> str:
    """Nest brackets deeply."""
    if not text:
        return text
    i = rng.randrange(len(text))
    opening, closing = rng.choice(["()", "[]", "{}", "<>"])
    n = rng.choice([1, 2, 30, 300, 3000])
    return text[:i] + opening * n + text[i : i + 1] + closing * rng.choice([n, n, 0]) + text[i + 1 :]


def _cut(rng: Random, text: str, pieces: list[str]) -> str:
    """Cut off the end."""
    return text[: rng.randrange(len(text) + 1)]


DAMAGES = (_byte, _byte, _tokens, _tokens, _swap, _line, _number, _number, _nest, _cut)


def _spoilt(rng: Random, text: str) -> bytes:
    """Return the bytes of a file, usually those of the text."""
    data = text.encode("utf-8", errors="replace")
    if rng.random() < 0.9:
        return data
    at = rng.randrange(len(data) + 1)
    return rng.choice(
        [
            data[:at] + bytes([rng.randrange(128, 256)]) + data[at:],
            data[:at] + b"\0" * rng.choice([1, 1000]) + data[at:],
            b"\xef\xbb\xbf" + data,
            text.encode("utf-16"),
            data.replace(b"\n", b"\r\n"),
            data.replace(b"\n", b"\r"),
            data.replace(b"\n", b" "),
            data.rstrip(b"\n"),
            data.replace(b"\n", b"\n// -----\n"),
            data + b"// ----- \n" * 50,
            b"",
        ]
    )


def case(seed: int, pieces: list[str]) -> tuple[str, bytes, list[str]]:
    """Return the program, file and options of a seed. ``{folder}`` in an option is a writable folder."""
    rng = Random(seed)
    text = _import("file_shapes").shape(rng) if rng.random() < 0.25 else damaged(rng, pieces)
    data = _spoilt(rng, text)
    if rng.random() < 0.05:
        inputs = [f"--in={rng.choice(INPUTS)}" for _ in range(rng.randrange(5))]
        pick = rng.choice([["--list"], [], [], ["--grid=1,1,1", "--block=32,1,1"], ["--check=race,oob,uninit,sync"]])
        return "cute-run", data, ["--device=cpu", "--no-cache", *pick, *inputs]
    flags = rng.sample(FLAGS, rng.choice([0, 0, 1, 1, 2, 3]))
    run = rng.choice(RUNS)
    if not run:
        flags = [flag for flag in flags if not flag.startswith("--validate")]  # requires a pass
    return "cute-opt", data, [*run, *flags]


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise :class:`TooSlow` after ``seconds`` of this process's CPU time."""

    def ring(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def failure(program: str, data: bytes, options: Sequence[str]) -> str | None:
    """Run ``cute-opt`` or ``cute-run`` on a file in this process. Return the failure, or None."""
    from cute_dialect.tools import cute_opt, cute_run

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mlir")
        path.write_bytes(data)
        arguments = [str(path), *(option.replace("{folder}", folder) for option in options)]
        out, err = io.StringIO(), io.StringIO()
        try:
            with time_limit(SECONDS), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = (cute_run if program == "cute-run" else cute_opt).main(arguments)
        except TooSlow:
            return f"no end after {SECONDS} s"
        except BaseException as e:
            return f"{type(e).__name__}: {str(e)[:300]}"
    said = err.getvalue()
    if "internal error" in said or "Traceback" in said:
        return said.strip()[:400]
    if (status != 0) != ("error:" in said) and "--verify-diagnostics" not in options and program == "cute-opt":
        return f"exit status {status}, said: {said.strip()[:300]!r}"
    return None


def check(seed: int, pieces: list[str]) -> str | None:
    """Run the case of a seed in this process. Return the failure, or None."""
    return failure(*case(seed, pieces))


# ------------------------------------------------------------------------------------------------------- many cases


def _work(seeds: range, pieces: list[str], sink: int, memory: int) -> None:
    """Run cases in this process, which may crash. Write one line to ``sink`` before each case and one per failure."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 2)
    for seed in seeds:
        os.write(sink, b"%d\n" % seed)
        wrong = check(seed, pieces)
        if wrong is not None:
            os.write(sink, json.dumps([seed, wrong]).encode() + b"\n")


def run(seeds: range, pieces: list[str], memory: int = MEMORY) -> Iterator[tuple[int, str]]:
    """Return the seeds of failing cases with their failures."""
    at, batch = seeds.start, 1000
    while at < seeds.stop:
        source, sink = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(source)
                _work(range(at, min(at + batch, seeds.stop)), pieces, sink, memory)
                code = 0
            finally:
                os._exit(code)
        os.close(sink)
        done = min(at + batch, seeds.stop)
        waiting = b""
        reason = ""
        while True:
            ready, _, _ = select.select([source], [], [], SILENCE)
            data = os.read(source, 1 << 16) if ready else b""
            if not ready:
                os.kill(pid, signal.SIGKILL)
                reason = f"no end after {SILENCE} s"
            if not data:
                break
            *lines, waiting = (waiting + data).split(b"\n")
            for line in lines:
                told = json.loads(line)
                if isinstance(told, int):
                    at = told
                else:
                    yield told[0], told[1]
        os.close(source)
        _, status = os.waitpid(pid, 0)
        if status:
            yield at, reason or f"the process ended with {os.waitstatus_to_exitcode(status)}"
            at += 1
        else:
            at = done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case; each case has its own")
    parser.add_argument("--memory", type=int, default=MEMORY >> 20, metavar="MiB", help="what a process may have")
    parser.add_argument("--out", default="out/fuzz", help="folder for the cases that fail")
    options = parser.parse_args()
    os.environ["CUTE_CACHE"] = "0"
    pieces = corpus()
    failures = 0
    for seed, wrong in run(range(options.seed, options.seed + options.count), pieces, options.memory << 20):
        failures += 1
        program, data, words = case(seed, pieces)
        path = Path(options.out, f"case{seed}.mlir")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"seed {seed}: {wrong}\n  {program} {path} {' '.join(words)}", flush=True)
    print(f"{options.count} files from {len(pieces)} pieces: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
