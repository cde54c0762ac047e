"""A compiled specialization of a function, with its IR, PTX, cubin and reports; compilation of traced modules.

The cache key of a traced module is its text without locations, with the pipeline and its options.  Code that only moved
hits the cache, unless its kernels have assertions, which print their source lines.
"""

from __future__ import annotations

import copy
import inspect
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.arch.targets import default_features, find_target
from cute_dialect.errors import CompileError, UsageError
from cute_dialect.lang.calls.arguments import ArraySpec, Spec, StaticSpec, StreamSpec, unpack
from cute_dialect.lang.calls.cache.dependencies import Watched
from cute_dialect.lang.calls.options import default_checks, default_device
from cute_dialect.lang.machine.printf import HostTexts
from cute_dialect.lang.tracing.errors import KernelTypeError, NotCompiled
from cute_dialect.lang.tracing.source_location import user_frames
from cute_dialect.lang.tracing.tracer import finishes_errors, recorded
from cute_dialect.pipelines.ptxas import PtxasError
from cute_dialect.runtime import abi
from cute_dialect.runtime import load as read
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.launch_plan import ArgumentError, LaunchError, ShapeError
from cute_dialect.runtime.settings import missing_package
from cute_dialect.type_text import language_terms

if TYPE_CHECKING:
    from pathlib import Path

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from cute_dialect.interp import RunReport
    from cute_dialect.lang.calls.cache.disk import Found, Plan
    from cute_dialect.lang.calls.host import Outputs, Program
    from cute_dialect.lang.calls.options import Options
    from cute_dialect.pipelines.compilation import CompileRequest, Emit
    from cute_dialect.runtime.bound_call import BoundCall
    from cute_dialect.runtime.launch import CompiledModule, Kernel

# ---------------------------------------------------------------------------------------- compilation of traced modules


class CompileResult(NamedTuple):
    """A compiled module, and its cache key; None if it is not cached."""

    module: CompiledModule
    key: str | None


def artifact_key(module: ModuleOp, options: Options, emit: Emit) -> str:
    """Return the cache key of a traced module."""
    return _request(_text(module), options, emit).key_of_text()


def _request(source: str | ModuleOp, options: Options, emit: Emit) -> CompileRequest:
    """Return the request for a traced module, or for its text."""
    from cute_dialect.pipelines.compilation import CompileRequest  # late: start-up

    if emit == "base":
        return CompileRequest(source, emit=emit, cache=options.cache, ptxas=options.ptxas)
    return CompileRequest(
        source, chip=options.chip, opt_level=options.opt_level, lineinfo=options.lineinfo, emit=emit,
        cache=options.cache, ptxas=options.ptxas,
    )  # fmt: skip


def _text(module: ModuleOp) -> str:
    """Return the text of a module, with the source lines of its kernels' assertions, which GPU code prints."""
    from cute_dialect.ir.printing import ir_text  # late: start-up

    text = ir_text(module, source_names=True)
    places = [place for op in kernel_assertions(module) for place in _places(op)] if "cf.assert" in text else []
    return "".join([text, *places])


def kernel_assertions(module: ModuleOp) -> list[Operation]:
    """Return the assertions in a module's kernels."""
    from cute_dialect.ir.editing import all_ops  # late: start-up

    kernels = [op for op in module.ops if op.name == "gpu.module"]
    return [op for kernel in kernels for op in all_ops(kernel) if op.name == "cf.assert"]


def _places(op: Operation) -> list[str]:
    from cute_dialect.ir.diagnostics import location_frames  # late: start-up

    return [f"// {f.function} {f.position.file}:{f.position.line}\n" for f in location_frames(op.location)]


def compile_traced(
    module: ModuleOp, options: Options, emit: Emit, *, keep_stages: bool = False, elsewhere: bool = False
) -> CompileResult:
    """Compile a traced module, or load it from the compile cache.

    ``elsewhere``: compile in another process.  Raises :class:`cute_dialect.errors.CompileError`.
    """
    from cute_dialect.pipelines.compiler import compile_in_worker, compile_module  # late: start-up

    text = _text(module) if options.cache and emit != "base" and not keep_stages and not options.lineinfo else None
    request = _request(module, options, emit)._replace(text=text, keep_stages=keep_stages)
    made = compile_in_worker(request) if elsewhere else compile_module(request)
    return CompileResult(made, None if text is None else request.key_of_text())


STAGES = {
    "trace": "input", "fold": "cute-fold-static", "expand": "cute-expand-ops", "arch": "convert-cute-algo-to-arch",
    "base": "cute-to-base", "llvm": "gpu-module-to-binary",
}  # fmt: skip
"""Maps the name of a stage to the pass after which its IR is taken."""


def parameter_bytes(chip: str) -> int:
    """Return the maximum size of a kernel's parameters, in bytes. CUDA 12.1 raised it for sm_70 and later.

    >>> parameter_bytes("sm_90a"), parameter_bytes("sm_61")
    (32764, 4096)
    """
    return 32764 if find_target(chip, default_features(chip)).number >= 70 else 4096


class Outcome(NamedTuple):
    """The part of a trace that is kept after the module is discarded.

    Attributes:
        name: the name of the host function.
        result: the value that the function returned.
        outputs: the results of a function without launches, or None.
        texts: constant texts that a function with launches prints in each call.
    """

    name: str
    result: object
    outputs: Outputs | None = None
    texts: HostTexts = HostTexts()


class Compiled:
    """A compiled specialization: ``k(a, b, c)`` launches it and never compiles.

    ``cute.compile(f, a, b, c)`` returns one; calls of ``f`` create and cache them.
    """

    # __call__ is an instance attribute, so that Python calls generated code directly.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]

    def __init__(
        self, name: str, signature: inspect.Signature | None, specs: Mapping[str, Spec], options: Options,
        trace: Callable[[], Program], found: Found | None = None, receiver: str = "",
    ):  # fmt: skip
        """Create a specialization. If it was found in the cache on disk (``found``), it is traced only on demand."""
        self.name = name
        self.signature = signature
        self.specs = dict(specs)
        self.options = options
        self.plan: Plan | None = None
        """The pending entry in the cache on disk."""
        self.notes: list[str] = []
        """Remarks of the tracer."""
        self._trace = trace
        self._found = found
        self._program: Program | None = None
        self.outcome = (
            Outcome(found.name, found.result, texts=found.texts) if found is not None else self.program.outcome
        )
        self.device: str | int | None = None
        """The device of its calls; None is the process's default."""
        self.watched = Watched()
        self._kernels: dict[bool, Kernel] = {}
        self._last_on_cpu = False
        self._lock = threading.RLock()
        self._given = [n for n, s in self.specs.items() if not isinstance(s, StaticSpec)]
        self._all = [n for n in self.specs if n != receiver]
        self._in_order = list(self.specs)[: len(self._given)] == self._given
        """True if the run-time parameters precede the constant ones."""
        self.__call__ = self._called
        if found is not None:
            module = CompiledModule(found.artifact, self._lowered, self._pass_remarks)
            self.notes = list(found.remarks)
            self._kernels[False] = module.kernel(found.name)

    @property
    def program(self) -> Program:
        """The traced program. A specialization loaded from disk is traced on first access.

        Raises:
            CompileError: F104, if a dependency has changed since the specialization was cached.
            NotCompiled: F105, if the compiler is not installed.
        """
        if self._program is None:
            why = "it is not in the compile cache for these arguments"
            if self._found is not None:
                why = "it came from the compile cache and has no trace"
            with needs_compiler(self.name, why):
                made = self._trace()
            if self._found is not None and artifact_key(made.module, self.options, "auto") != self._found.key:
                raise CompileError(
                    "F104", f"'{self.name}' depends on code or values that changed since it was found in the compile "
                    "cache, so its trace differs", hint="compile it again",
                )  # fmt: skip
            self._program = made
        return self._program

    def _lowered(self, kernel: str | None) -> object:
        from cute_dialect.pipelines.compiler import lowered_when_asked  # late: start-up

        return lowered_when_asked(lambda: self.program.module)(kernel)

    def _pass_remarks(self) -> list[str]:
        from cute_dialect.pipelines.compiler import cloning, remarks_again  # late: start-up

        return remarks_again(cloning(self.program.module), "nvptx")()

    def __repr__(self) -> str:
        takes = language_terms(", ".join(f"{n}: {s!r}" for n, s in self.specs.items()))
        return f"<compiled {self.name}({takes}) for {self.options.chip}>"

    def on(self, device: str | int) -> Compiled:
        """Return a copy whose calls run on ``device`` by default."""
        found = copy.copy(self)
        found.device = device
        found.__dict__.pop("_recent", None)
        found.__call__ = found._called  # copy.copy copied the bound method of the original.
        return found

    # ------------------------------------------------------------------------------------------------------ calling

    @finishes_errors
    def _called(self, *args: Any, **kwargs: Any) -> Any:
        """Launch. Arguments that are compile-time constants may be omitted."""
        options = {k: kwargs.pop(k) for k in list(kwargs) if k in CALL_OPTIONS and k not in self.specs}
        learns = not kwargs and options.keys() <= {"stream"} and self._in_order and len(args) == len(self._given)
        result = self.run(self.arguments(args, kwargs), options)
        if learns and self.is_on_gpu:
            from cute_dialect.lang.calls.cache.fast_path import learn  # late: start-up

            learn(self, self, args, watch=False)
        return result

    @finishes_errors
    def other(self, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> Any:
        """Run a call that the generated fast path did not recognize."""
        from cute_dialect.lang.calls.cache.fast_path import other_call  # late: start-up

        left = other_call(self, args, stream, options)
        if left is None:
            return None
        return self._called(*left, **(options if stream is None else {**options, "stream": stream}))

    @property
    def is_on_gpu(self) -> bool:
        """True if the last launch ran on a GPU."""
        return False in self._kernels and not self._last_on_cpu

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name.  Raises LaunchError if one is missing, unknown or given twice."""
        names = self._names(args, len(kwargs))
        found = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in self.specs or name in found:
                what = "got two values for parameter" if name in self.specs else "has no parameter"
                raise LaunchError(f"{self.name}() {what} '{name}'")
            found[name] = value
        # Without a stream argument the call uses the current stream.
        defaults = {} if self.signature is None else self.signature.parameters
        for name in self._given:
            if name not in found and name in defaults and defaults[name].default is not inspect.Parameter.empty:
                found[name] = defaults[name].default
        missing = [n for n in self._given if n not in found and not isinstance(self.specs[n], StreamSpec)]
        if missing or len(args) > len(names):
            takes = ", ".join(self._given)
            raise LaunchError(
                f"{self.name}() needs {len(self._given)} arguments ({takes}), got {len(args) + len(kwargs)}"
            )
        return {n: found.get(n, s.value if isinstance(s, StaticSpec) else None) for n, s in self.specs.items()}

    def _names(self, args: tuple[Any, ...], more: int) -> list[str]:
        """Return the parameter names for positional arguments: all parameters if constants are passed too, else the
        run-time parameters only.
        """
        if len(args) + more > len(self._given):
            return self._all
        constant = [(v, self.specs[n]) for n, v in zip(self._all, args) if isinstance(self.specs[n], StaticSpec)]
        try:
            given = constant and all(s.is_the(v) for v, s in constant if isinstance(s, StaticSpec))
        except CompileError:
            return self._given
        return self._all if given else self._given

    def run(self, values: Mapping[str, Any], options: dict[str, Any]) -> Any:
        """Launch with arguments by name and the options of a call."""
        device = options.pop("device", None) or self.device or default_device()
        stream = options.get("stream")
        for name, spec in self.specs.items():
            if isinstance(spec, StreamSpec) and stream is None:
                stream = getattr(values[name], "handle", values[name])
        options["stream"] = stream
        if device == "cpu" and options.get("checks") is None:
            options["checks"] = default_checks()
        if device == "cpu" and _recordings:
            given = {**options, "device": device}
            _recordings[-1].append(lambda: self.run(values, dict(given)))
            return None
        try:
            leaves = unpack(self.specs, values)
            for observe in _observers:
                observe(self, leaves)
            if self.outcome.outputs is not None:
                kernel = None if self.outcome.outputs.empty else self.kernel(cpu=True)
                return self.outcome.outputs.run(kernel, leaves, options)
            kernel, texts = self.kernel(cpu=device == "cpu"), self.outcome.texts
            if texts.before:
                print(texts.before, end="")
            report = kernel(*leaves, device=device, **options)
            if texts.after:
                print(texts.after, end="")
            if device != "cpu":
                return self.outcome.result
            _warn_of_unchecked(report)
            return report
        except LaunchError as e:
            self.explain_error(e, values)
            raise

    def explain_error(self, error: LaunchError, values: Mapping[str, Any]) -> None:
        """Extend a launch error with the user's argument, a hint and the position of the call."""
        text = str(error.args[0]) if error.args else ""
        for name in sorted(self.specs, key=len, reverse=True):
            spec = self.specs[name]
            if isinstance(spec, ArraySpec) and text.startswith(f"argument {name}") and isinstance(error, ArgumentError):
                got = getattr(values[name], "shape", None)
                if got is not None and isinstance(error, ShapeError) and "?" not in spec.type:
                    text += (
                        f"; it was compiled for shape {_shape_of(spec.type)}, but this array has shape {tuple(got)}\n"
                        f"hint: compile for any shape with from_dlpack({name}).mark_layout_dynamic()"
                    )
                break
        error.args = (language_terms(text), *error.args[1:])

    @finishes_errors
    def bind(self, *args: Any, **kwargs: Any) -> BoundCall:
        """Prepare a launch on these arrays: ``call = k.bind(a, b); call()`` does only the driver's launch.

        Raises LaunchError for a host function that prints, because a bound call would skip its texts.
        """
        if any(self.outcome.texts):
            raise LaunchError(
                f"{self.name}: bind cannot be used with a host function that calls cute.printf; call the function, or "
                "remove the printf"
            )
        return self.kernel(cpu=False).bind(*unpack(self.specs, self.arguments(args, kwargs)))

    def kernel(self, *, cpu: bool, elsewhere: bool = False) -> Kernel:
        """Return the compiled host function. For the CPU no machine code is generated.

        ``elsewhere``: compile in another process.
        """
        found = self._kernels.get(cpu)
        if found is None:
            with self._lock:
                found = self._kernels.get(cpu)
                if found is None:
                    if cpu and False in self._kernels:
                        module = self._kernels[False].module
                    else:
                        module = self._compile("base" if cpu else "auto", elsewhere=elsewhere)
                    _check_parameters(module, parameter_bytes(self.options.chip))
                    found = self._kernels[cpu] = module.kernel(self.outcome.name)
        return found

    def _compile(self, emit: Emit, *, keep_stages: bool = False, elsewhere: bool = False) -> CompiledModule:
        with needs_compiler(self.name, "it is not in the compile cache for these arguments"):
            made, key = compile_traced(
                self.program.module, self.options, emit, keep_stages=keep_stages, elsewhere=elsewhere
            )
        if self.plan is not None and key is not None and emit == "auto":
            self.plan.keep(key, self.outcome, self.notes)
            self.plan = None
        return made

    # ---------------------------------------------------------------------------------------------------- looking in

    @property
    def compiled_module(self) -> CompiledModule:
        """The output of :func:`cute_dialect.pipelines.compile`, with machine code."""
        return self.kernel(cpu=False).module

    @property
    def ptx(self) -> str:
        return self.compiled_module.ptx

    @property
    def cubin(self) -> bytes:
        """The machine code.  Raises LaunchError if ptxas is not installed."""
        code = self.compiled_module.artifact.code
        if not code or code[0].cubin is None:
            raise LaunchError(f"{self.name} has no cubin because ptxas is not installed; pip install nvidia-cuda-nvcc")
        return code[0].cubin

    def sass(self) -> str:
        """Return the SASS listing from nvdisasm.  Raises LaunchError if there is no cubin or no nvdisasm."""
        from cute_dialect.pipelines.ptxas import disassemble  # late: start-up

        try:
            return disassemble(self.cubin)
        except PtxasError as e:
            raise LaunchError(f"{self.name}: {e}") from e

    @property
    def report(self) -> str:
        """The resource report of ptxas: registers, spills and shared memory."""
        return self.compiled_module.report

    @property
    def remarks(self) -> list[str]:
        """Remarks of the tracer and the passes."""
        module = (next(iter(list(self._kernels.values())), None) or self.kernel(cpu=True)).module
        if self._found is not None and self._found.remarks:
            # The entry of the cache names lines of the program that was traced, which may have moved.
            with recorded() as recorder:
                self._trace()
            self.notes[: len(self._found.remarks)] = recorder.remarks
            self._found.remarks.clear()
        return [*self.notes, *module.remarks]

    @property
    def stages(self) -> dict[str, str]:
        """The IR after each pass, by the pass's name; ``input`` is the trace."""
        found = self.__dict__.get("_stages")
        if found is None:
            made = self._compile("ptx", keep_stages=True).artifact
            found = self.__dict__["_stages"] = {s.name: s.text for s in made.stages}
        return found

    def mlir(self, stage: str = "trace", *, aliases: bool = False, comments: bool = False) -> str:
        """Return the IR after a stage.

        Args:
            stage: ``trace``, ``fold``, ``expand``, ``arch``, ``base``, ``llvm``, or the name of a pass.
            aliases: define names for long types at the top (trace only).
            comments: add the source's comments and docstrings (trace only).
        """
        if stage in ("trace", "input"):
            module = self.module()
            from cute_dialect.ir.printing import ir_text  # late: start-up
            from cute_dialect.lang.rewrite.trace_text import (
                comments_of,  # late: start-up
                type_names,  # late: start-up
            )

            return ir_text(
                module, source_names=True, aliases=type_names(module) if aliases else None,
                comments=comments_of(module, host="grid.x" not in self.specs) if comments else None,
            )  # fmt: skip
        name = STAGES.get(stage, stage)
        found = self.stages
        if stage == "llvm" and name not in found:
            name = list(found)[-1]
        if name not in found:
            raise UsageError(f"mlir: unknown stage '{stage}'; stages: {', '.join([*STAGES, *found])}")
        return found[name]

    def module(self) -> ModuleOp:
        """Return a copy of the traced module."""
        return self.program.module.clone()

    def as_upstream(self, context: Any, stage: str = "trace") -> Any:
        """Return the IR of a stage as an ``mlir.ir.Module`` in ``context``, with cute ops in generic form."""
        import mlir.ir as ir  # pyright: ignore[reportMissingImports]

        from cute_dialect.pipelines.embed import load_dialects  # late: start-up

        load_dialects(context)
        context.allow_unregistered_dialects = True
        if stage == "trace":
            from cute_dialect.ir.printing import ir_text  # late: start-up

            return ir.Module.parse(ir_text(self.module(), generic=True), context)
        if stage != "base":
            return ir.Module.parse(self.mlir(stage), context)
        from cute_dialect.pipelines.compiler import lower_to_base  # late: start-up

        return ir.Module.parse(lower_to_base(self.module()), context)

    @property
    def key(self) -> str:
        """The hash of all inputs of the compilation. Equal keys mean equal machine code."""
        return self._found.key if self._found is not None else artifact_key(self.program.module, self.options, "auto")

    def explain(self) -> str:
        """Return a report of the static parts of the arguments and the ops that each source line emitted."""
        return explained(self)

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Write the specialization to a folder, from which :func:`load` can launch it without the compiler."""
        return self.compiled_module.save(folder)

    def export(
        self,
        folder: str | os.PathLike[str],
        formats: Sequence[str] = ("ptx", "cubin", "c", "py"),
        *,
        name: str | None = None,
    ) -> dict[str, Path]:
        """Write the specialization to a folder for use by other programs, and return the files by name.

        Args:
            folder: the output folder.
            formats: ``"ptx"``, ``"cubin"``, ``"mlir"`` (the trace), ``"c"`` (a header and a C file that call the CUDA
                driver), ``"py"`` (a module with a function ``launch``).
            name: the name of files and functions; by default the function's own.
        """
        stages = "mlir" in ((formats,) if isinstance(formats, str) else formats)
        module = self._compile("auto", keep_stages=True) if stages else self.compiled_module
        return module.kernel(self.outcome.name).export(folder, formats, name=name or self.name)

    def export_to_c(
        self, file_path: str | os.PathLike[str], file_name: str, function_prefix: str = ""
    ) -> dict[str, Path]:
        """Write an object file that contains the machine code, and its header; return both files by name.

        The functions are those of :meth:`export` and use the CUDA driver; they differ from the ones CuTe DSL writes.

        Args:
            file_path: the folder.
            file_name: the name of both files, without ``.o`` and ``.h``.
            function_prefix: prefix of the functions' names; by default ``file_name``.
        """
        from tempfile import TemporaryDirectory

        from cute_dialect.runtime.export.folder import compile_object  # late: start-up

        name = function_prefix or file_name
        with TemporaryDirectory() as folder:
            sources = {file: path.read_bytes() for file, path in self.export(folder, ("c",), name=name).items()}
        return compile_object(sources, name, file_path, file_name)


_observers: list[Callable[[Compiled, Sequence[Any]], None]] = []
"""Callbacks that see each call before its launch."""


@contextmanager
def observed(observe: Callable[[Compiled, Sequence[Any]], None]) -> Generator[None]:
    """Call ``observe(specialization, leaves)`` before each launch inside the ``with`` block.

    On a GPU, launches through the generated fast path are not observed.
    """
    _observers.append(observe)
    try:
        yield
    finally:
        _observers.remove(observe)


_recordings: list[list[Callable[[], object]]] = []
"""Lists that receive the calls on the interpreter; the last one is in use."""


@contextmanager
def recorded_calls() -> Generator[list[Callable[[], object]]]:
    """Append calls on the interpreter inside the ``with`` block to a list, and do not run them."""
    _recordings.append([])
    try:
        yield _recordings[-1]
    finally:
        _recordings.pop()


def is_recording() -> bool:
    """Return True in the ``with`` block of :func:`recorded_calls`."""
    return bool(_recordings)


@contextmanager
def needs_compiler(name: str, why: str) -> Generator[None]:
    """Raise NotCompiled (F105) if the ``with`` block needs the compiler and it is not installed."""
    from cute_dialect.pipelines.compilation import LoweringError  # late: start-up
    from cute_dialect.pipelines.upstream import UpstreamMissing  # late: start-up

    try:
        yield
    except (ModuleNotFoundError, LoweringError) as e:
        missing = missing_package(e) or (UpstreamMissing.HINT if UpstreamMissing.HINT in str(e) else None)
        if missing is None or (isinstance(e, ModuleNotFoundError) and e.name == "numpy"):
            raise
        raise NotCompiled(
            "F105", f"'{name}' must be compiled because {why}, but the compiler is not installed: {missing}",
            hint="run cute.compile or cute.precompile for this chip on a machine with the compiler, with this "
            "CUTE_CACHE_DIR (or a copy of it); or use Compiled.save() and cute.load()",
        ) from e  # fmt: skip


_warned_of_unchecked: list[bool] = []


def _warn_of_unchecked(report: RunReport | None) -> None:
    """Warn, once a process, that a run was too large for the default checks."""
    if report is None or not report.unchecked or _warned_of_unchecked:
        return
    _warned_of_unchecked.append(True)
    text = next((w for w in report.warnings if w.startswith("the checks race and uninit")), "")
    frame = next(user_frames(), None)
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("?", 0)
    warnings.warn_explicit(f"{text}; checks='none' silences this warning", RuntimeWarning, file, line)


def _check_parameters(module: CompiledModule, most: int) -> None:
    """Raise F112 if a kernel's parameters exceed the size limit of a launch."""
    for kernel in module.manifest["kernels"]:
        sizes = [abi.parse_type(p["lowered"]).size if not p["lowered"].startswith("!llvm.ptr") else 128
                 for p in kernel["params"]]  # fmt: skip
        if sum(sizes) > most:
            name, size = max(zip(kernel["names"], sizes), key=lambda pair: pair[1])
            raise KernelTypeError(
                "F112", f"the parameters of kernel '{kernel['name']}' have {sum(sizes)} bytes, more than the limit of "
                f"{most}; the largest is '{name}' ({size} bytes)", hint="pass it as an array",
            )  # fmt: skip


def load(folder: str | os.PathLike[str]) -> Kernel:
    """Load a folder written by :meth:`Compiled.save` as a function of the run-time arguments."""
    module = read(folder)
    hosts = [h["name"] for h in module.manifest["hosts"]]
    return module.kernel(hosts[0] if hosts else module.names[0])


def _shape_of(type: str) -> str:
    return type.partition('"')[2].partition(":")[0].replace(",", ", ")


CALL_OPTIONS = (
    "stream", "device", "checks", "reports", "schedule", "seed", "max_steps", "resident", "blocks", "progress",
    "unwritten", "field",
)  # fmt: skip
"""Options of a call, besides the function's arguments. A parameter of the same name takes precedence."""


# ---------------------------------------------------------------------------------------------------- report of a trace


def explained(kind: Compiled) -> str:
    """Return the report of a specialization: arguments, kernels, and the ops of each line."""
    module = kind.program.module
    from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc

    lines = [f"{kind.name} for {kind.options.chip}"]
    lines += [f"  {name:16} {_said(spec)}" for name, spec in kind.specs.items()]
    found: dict[tuple[str, int], Counter[str]] = {}
    for op in module.walk():
        at: Any = getattr(op, "location", None)
        while isinstance(at, CallSiteLoc):
            at = at.callee
        if isinstance(at, FileLineColLoc):
            found.setdefault((at.filename.data, at.line.data), Counter())[op.name] += 1
    import linecache

    file = ""
    for (name, line), ops in sorted(found.items()):
        if name != file:
            file = name
            lines.append(file)
        text = linecache.getline(name, line).strip()
        made = ", ".join(f"{op} × {n}" if n > 1 else op for op, n in ops.items())
        lines.append(f"  {line:5}  {text}\n         -> {made}")
    return "\n".join(lines)


def _said(spec: Any) -> str:
    return f"static   {spec!r}" if isinstance(spec, StaticSpec) else f"passed   {spec!r}"
