"""Lowering by upstream MLIR: base passes, PTX, error positions, and execution of host functions."""

from __future__ import annotations

import re

import pytest
from pipelines_support import add_module, kernel, module

from cute_dialect.pipelines.ptxas import PtxasError, PtxasMissing, assemble, find_ptxas, parse_report
from cute_dialect.pipelines.upstream import UpstreamError, UpstreamModule
from cute_dialect.pipelines.worker import run_host
from cute_dialect.runtime.settings import SettingError

TARGET = {"chip": "sm_90a", "features": "+ptx83", "opt-level": "3"}


def lowered(text: str, target: dict[str, str] | None = None) -> UpstreamModule:
    m = UpstreamModule.from_text(text, "in.mlir")
    m.run("base-prepare")
    m.run("one-shot-convert-to-llvm")
    m.run("attach-nvvm-target", TARGET if target is None else target)
    return m


def test_text_to_ptx() -> None:
    m = lowered(add_module())
    assert m.ptx() == {}
    m.run("emit-gpu-binary")
    ptx = m.ptx()["kernels"]
    assert re.findall(r"\.visible \.entry (\w+)\(", ptx) == ["add", "add_v"]
    assert ".target sm_90a" in ptx and ".version 8.3" in ptx and ".reqntid 128" in ptx


def test_bodies_of_all_base_dialects() -> None:
    """One module uses scf, cf, arith, math, vector, ub, gpu, llvm and nvvm, in gpu.func and llvm.func kernels."""
    body = """\
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %c0 = arith.constant 0 : i32
      %c4 = arith.constant 4 : i32
      %c1 = arith.constant 1 : i32
      %z = arith.constant 0.0 : f32
      %s = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %z) -> (f32) : i32 {
        %q = llvm.getelementptr %a0[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %x = llvm.load %q : !llvm.ptr<1> -> f32
        %e = math.exp2 %x : f32
        %n = arith.addf %acc, %e : f32
        scf.yield %n : f32
      }
      %p = ub.poison : vector<4xf32>
      %v = vector.insert %s, %p [0] : f32 into vector<4xf32>
      %w = vector.broadcast %s : f32 to vector<4xf32>
      %d = arith.ceildivsi %t, %c4 : i32
      %m = arith.maximumf %s, %z : f32
      %f = vector.insert %m, %w [1] : f32 into vector<4xf32>
      gpu.barrier
      cf.br ^bb1(%d : i32)
    ^bb1(%k: i32):
      %o = llvm.getelementptr %a0[%k] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %f, %o {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
"""
    gpu = """\
    gpu.func @g(%p: !llvm.ptr<1>) kernel {
      %b = gpu.block_id x
      %i = arith.index_cast %b : index to i32
      llvm.store %i, %p : i32, !llvm.ptr<1>
      gpu.return
    }
"""
    m = lowered(module(kernel("k", ["opaque"], ["!llvm.ptr<1>"], body) + gpu))
    m.run("emit-gpu-binary")
    ptx = m.ptx()["kernels"]
    assert "st.global.v4.b32" in ptx and "ex2.approx" in ptx and "bar.sync" in ptx and "%ctaid.x" in ptx
    assert "max.NaN.f32" in ptx  # the instruction for arith.maximumf
    assert ".entry g(" in ptx


def test_kernel_printf() -> None:
    text = module(
        "    gpu.func @p() kernel {\n      %i = gpu.thread_id x\n"
        '      gpu.printf "%lld\\n", %i : index\n      gpu.return\n    }\n'
    )
    m = lowered(text)
    m.run("emit-gpu-binary")
    assert "vprintf" in m.ptx()["kernels"]


def test_host_half_keeps_the_launch_with_converted_operands() -> None:
    m = lowered(add_module())
    text = m.text()
    assert "llvm.func @launch(" in text and "gpu.launch_func" in text
    assert "unrealized_conversion_cast" not in text and "arith." not in text


def test_targets_add_up_and_repeat_is_idempotent() -> None:
    m = UpstreamModule.from_text(add_module())
    m.run("attach-nvvm-target")
    assert 'gpu.module @kernels [#nvvm.target<chip = "sm_80">]' in m.text()
    m.run("attach-nvvm-target")
    m.run("attach-nvvm-target", TARGET)
    assert '[#nvvm.target<chip = "sm_80">, #nvvm.target<O = 3, chip = "sm_90a", features = "+ptx83">]' in m.text()


def test_formats_of_the_binary() -> None:
    for name, magic in (("isa", b"//"), ("bin", b"\x7fELF"), ("llvm", b"BC\xc0\xde")):
        m = lowered(add_module())
        m.run("emit-gpu-binary", {"compilation-target": name})
        (obj,) = m.objects()
        assert (obj.module, obj.chip, obj.format) == ("kernels", "sm_90a", name)
        assert obj.data.startswith(magic)


def test_module_without_gpu_module_is_left_alone() -> None:
    text = "module {\n  llvm.func @f() {\n    llvm.return\n  }\n}\n"
    m = UpstreamModule.from_text(text)
    for name in ("attach-nvvm-target", "emit-gpu-binary"):
        m.run(name)
    assert m.text() == text and m.ptx() == {}


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("module {\n  %y = cute.foo %x : i32\n}", (2, 8), "Dialect `cute' not found"),
        ('module { func.func @f(%a: !cute.layout<"(1,2)">) { return } }', (1, 33), "unregistered dialect"),
        ('module {\n  %0 = "arith.constant"() {value = 1 : i32} : () -> i64\n}', (2, 8), "same type"),
        ("module {", (1, 9), "expected"),
    ],
)
def test_parse_errors_have_positions(text: str, where: tuple[int, int], what: str) -> None:
    with pytest.raises(UpstreamError) as e:
        UpstreamModule.from_text(text, "f.mlir")
    assert what in e.value.message and "\n" not in e.value.message
    assert (e.value.filename, e.value.line) == ("f.mlir", where[0])
    assert str(e.value).startswith(f"f.mlir:{where[0]}:")


def test_pass_errors() -> None:
    m = UpstreamModule.from_text(add_module())
    m.run("one-shot-convert-to-llvm")
    with pytest.raises(UpstreamError, match="no target attributes") as e:
        m.run("emit-gpu-binary")
    assert e.value.line == 2
    for name, options, said in (
        ("no-such-pass", {}, "unknown pass 'no-such-pass'"),
        ("base-prepare", {"level": "2"}, "base-prepare has no option 'level' \\(its options: none\\)"),
        ("attach-nvvm-target", {"chip": "sm90"}, "chip: expected one of sm_50, .*, sm_121f, got 'sm90'"),
        ("attach-nvvm-target", {"features": "+foo"}, "features: expected one of .ptx40, .*, .ptx90, got '.foo'"),
        ("attach-nvvm-target", {"opt-level": "4"}, "opt-level must be 0, 1, 2 or 3, got '4'"),
        ("attach-nvvm-target", {"features": "+ptx83}, evil{"}, "character that is not allowed"),
        (
            "emit-gpu-binary",
            {"compilation-target": "exe"},
            "compilation-target must be isa, bin, fatbin or llvm, got 'exe'",
        ),
        ("canonicalize", {"foo": "1"}, "no such option foo"),
        ("convert-gpu-to-nvvm", {}, "runs on gpu.module only"),
    ):
        with pytest.raises(UpstreamError, match=said):
            m.run(name, options)
    m.run("cse")  # The module is still usable.


def test_wgmma_at_o0_is_refused() -> None:
    body = "      nvvm.wgmma.fence.aligned\n"
    text = module(kernel("k", [], [], body))
    with pytest.raises(UpstreamError, match=r"contains wgmma.*O = 0.*opt-level to 1, 2 or 3"):
        lowered(text, {"chip": "sm_90a", "features": "+ptx83", "opt-level": "0"}).run("emit-gpu-binary")
    m = lowered(text)
    m.run("emit-gpu-binary")
    assert "wgmma.fence.sync.aligned" in m.ptx()["kernels"]


def test_ptxas_report_and_errors() -> None:
    m = lowered(add_module())
    m.run("emit-gpu-binary")
    done = assemble(m.ptx()["kernels"], "sm_90a")
    assert done.cubin[:4] == b"\x7fELF" and done.warnings == ()
    assert {k.name for k in done.kernels} == {"add", "add_v"}
    assert all(k.registers > 0 and k.spills == 0 and k.stack == 0 for k in done.kernels)
    with pytest.raises(PtxasError, match=r"line \d+; error\s+: .*\.foo"):
        assemble(m.ptx()["kernels"].replace("st.global", "st.foo"), "sm_90a")


def test_ptxas_report_of_a_spilling_kernel() -> None:
    said = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    96 bytes stack frame, 80 bytes spill stores, 76 bytes spill loads
ptxas info    : Used 168 registers, used 9 barriers, 96 bytes cumulative stack size, 1024 bytes smem, 560 bytes cmem[0]
ptxas info    : (C7517) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x in function 'k'
"""
    (k,), warnings = parse_report(said)
    assert (k.registers, k.spill_stores, k.spill_loads, k.stack, k.smem, k.constant, k.barriers) == (
        168, 80, 76, 96, 1024, 560, 9,
    )  # fmt: skip
    assert len(warnings) == 1 and "C7517" in warnings[0]


def test_missing_ptxas_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CUTE_PTXAS", raising=False)
    with pytest.raises(PtxasMissing, match=r"pip install nvidia-cuda-nvcc.*CUTE_PTXAS"):
        find_ptxas()
    monkeypatch.setenv("CUTE_PTXAS", "/nowhere/ptxas")
    with pytest.raises(
        SettingError, match="CUTE_PTXAS: expected a program, got '/nowhere/ptxas', which does not exist"
    ):
        find_ptxas()


HOST = """module {
  llvm.mlir.global internal constant @fmt("%d\\0A\\00") {addr_space = 0 : i32}
  llvm.func @printf(!llvm.ptr, ...) -> i32
  func.func @twice(%x: i32) -> i32 {
    %y = arith.addi %x, %x : i32
    return %y : i32
  }
  func.func @main() {
    %c = arith.constant 21 : i32
    %y = func.call @twice(%c) : (i32) -> i32
    %f = llvm.mlir.addressof @fmt : !llvm.ptr
    %x = llvm.call @printf(%f, %y) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32) -> i32
    return
  }
}"""


def test_run_host(capfd: pytest.CaptureFixture[str]) -> None:
    run_host(HOST)
    assert capfd.readouterr().out == "42\n"


def test_run_host_errors() -> None:
    with pytest.raises(UpstreamError, match=r"no host function @other to run \(defined here: main, twice\)"):
        run_host(HOST, "other")
    with pytest.raises(UpstreamError, match="@twice must have no arguments and no results"):
        run_host(HOST, "twice")


def test_the_quadratic_pattern_is_left_out() -> None:
    """base-prepare disables, by name, the pattern that merges equal loop-carried values. The name must stay valid."""
    text = """
      func.func @f(%n: i32, %x: f32, %p: !llvm.ptr) {
        %zero = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %r:2 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %x) -> (f32, f32) : i32 {
          %c = arith.mulf %a, %b : f32
          scf.yield %c, %c : f32, f32
        }
        %s = arith.addf %r#0, %r#1 : f32
        llvm.store %s, %p : f32, !llvm.ptr
        return
      }"""
    prepared, usual = UpstreamModule.from_text(text), UpstreamModule.from_text(text)
    prepared.run("base-prepare")
    usual.run("canonicalize")
    assert "-> (f32, f32)" in prepared.text()
    assert "-> (f32, f32)" not in usual.text()


@pytest.mark.parametrize(
    ("text", "before", "passes"),
    [
        ("func.func @f() { return }", "", False),
        ("func.func @f(%v: vector<2xf32>) { %0 = vector.extract %v[0] : f32 from vector<2xf32> return }", "", True),
        ("func.func @f() { return }", "canonicalize", True),
    ],
    ids=["none", "some", "who knows"],
)
def test_vector_passes_run_only_with_vectors(
    monkeypatch: pytest.MonkeyPatch, text: str, before: str, passes: bool
) -> None:
    m = UpstreamModule.from_text(text)
    if before:
        m.run(before)
    run: list[str] = []

    def note(pipeline: str, *, verify_each: bool) -> None:
        run.append(pipeline)

    monkeypatch.setattr(m, "_run", note)
    m.run("one-shot-convert-to-llvm")
    assert [p.count("convert-vector-to-") for p in run] == [4 if passes else 0]


def test_output_of_base_passes_is_verified() -> None:
    m = UpstreamModule.from_text("func.func private @f() attributes {test.keep}")
    (function,) = m._operations("func.func")  # pyright: ignore[reportPrivateUsage]
    del function.attributes["function_type"]
    with pytest.raises(UpstreamError, match="function_type"):
        m.run("base-prepare")
