"""cute-opt: command line, textual and named pipelines, pass options and the table of passes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.ir import Operation

from cute_dialect.passes.base import Pass, PassContext, PassOptionError, PassOptions
from cute_dialect.passes.outside import PassTable
from cute_dialect.passes.pipeline_text import (
    NestElement,
    PassElement,
    PipelineTextError,
    parse_options,
    parse_pipeline,
    pipeline_text,
)
from cute_dialect.passes.registry import PASSES, in_scope
from cute_dialect.pipelines.registry import PIPELINES, PipelineError, named_pipeline
from cute_dialect.pipelines.runner import ResolveError, resolve, steps_text
from cute_dialect.tools.opt_options import (
    CommandLineError,
    PassFlag,
    PipelineFlag,
    help_text,
    parse_arguments,
    pass_help,
)


class TestCommandLine:
    def test_passes_keep_their_order_and_dashes_are_alike(self):
        o = parse_arguments(["-cse", "in.mlir", "--canonicalize", "-split-input-file", "--cse"])
        assert o.run == [PassFlag("cse", ""), PassFlag("canonicalize", ""), PassFlag("cse", "")]
        assert o.input == "in.mlir"
        assert o.flag("split-input-file")

    @pytest.mark.parametrize(
        "words",
        [["--attach-nvvm-target=chip=sm_90 opt-level=3"], ["--attach-nvvm-target=chip=sm_90", "opt-level=3"]],
    )
    def test_options_of_a_pass_quoted_or_not(self, words: list[str]):
        o = parse_arguments([*words, "k.mlir"])
        assert o.run == [PassFlag("attach-nvvm-target", "chip=sm_90 opt-level=3")]
        assert o.input == "k.mlir"

    def test_a_word_that_is_no_option_of_the_pass_is_a_file(self):
        assert parse_arguments(["--attach-nvvm-target=chip=sm_90", "x=3"]).input == "x=3"
        assert parse_arguments(["--cse", "chip=3"]).input == "chip=3"

    @pytest.mark.parametrize("words", [["-o", "f"], ["-o=f"], ["--o", "f"]])
    def test_values_follow_or_are_joined(self, words: list[str]):
        assert parse_arguments(words).value("o") == "f"

    def test_flags_can_be_switched_off(self):
        assert parse_arguments(["--verify-each=false"]).flag("verify-each", True) is False
        assert parse_arguments(["--verify-each"]).flag("verify-each", False) is True
        assert parse_arguments([]).flag("verify-each", True) is True

    def test_div_off_is_core_only(self):
        assert parse_arguments(["--div=off"]).flag("core-only")
        assert not parse_arguments(["--div=on"]).flag("core-only")

    def test_pipelines_are_steps_like_passes(self):
        o = parse_arguments(["--pipeline=nvptx=chip=sm_90a,O=2", "--cse", "--pipeline"])
        assert o.run == [PipelineFlag(True, "nvptx=chip=sm_90a,O=2"), PassFlag("cse", ""), PipelineFlag(True, "")]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--cannonicalize"], "did you mean 'canonicalize'"),
            (["--split-inputfile"], "did you mean 'split-input-file'"),
            (["--emit=sass"], "expected one of mlir, llvm, ptx, cubin, got 'sass'"),
            (["-o"], "needs a value"),
            (["--verify-each=maybe"], "expected true or false"),
            (["a.mlir", "b.mlir"], "at most one input file"),
            (["--pass-pipeline=builtin.module(cse)", "--cse"], "cannot be combined"),
        ],
    )
    def test_errors(self, words: list[str], message: str):
        with pytest.raises(CommandLineError, match=message.replace("(", r"\(")):
            parse_arguments(words)

    def test_two_dashes_end_the_options(self):
        assert parse_arguments(["--cse", "--", "-odd.mlir"]).input == "-odd.mlir"

    def test_help_names_every_pass_and_pass_help_every_option(self):
        text = help_text(PassTable())
        assert all(f"--{name}" in text for name in PASSES)
        assert "chip, features, opt-level" in pass_help("attach-nvvm-target", PassTable())
        with pytest.raises(CommandLineError, match="did you mean 'cse'"):
            pass_help("csee", PassTable())


class TestPipelineText:
    def test_nesting_and_options(self):
        elements = parse_pipeline(
            'builtin.module( cse, attach-nvvm-target{chip=sm_90a features="+ptx83,+x" v}, gpu.module(func.func(a,b)) )'
        )
        assert elements[0] == PassElement("cse", {}, 16)
        assert isinstance(elements[1], PassElement)
        assert elements[1].options == {"chip": "sm_90a", "features": "+ptx83,+x", "v": ""}
        assert isinstance(elements[2], NestElement)
        inner = elements[2].elements[0]
        assert isinstance(inner, NestElement) and inner.op_name == "func.func" and len(inner.elements) == 2

    def test_a_list_needs_no_module_around_it(self):
        assert [str(e) for e in parse_pipeline("a,b{x=1},c.d(e)")] == ["a", "b{x=1}", "c.d(e)"]

    @pytest.mark.parametrize(
        "text",
        ["builtin.module(a,b{x=1 y=2},c.d(e,f.g(h)))", 'builtin.module(a{x="1 2" z={u=1,v={w}}})', "builtin.module()"],
    )
    def test_text_round_trips(self, text: str):
        elements = parse_pipeline(text)
        assert pipeline_text(elements) == text
        assert [str(e) for e in parse_pipeline(pipeline_text(elements))] == [str(e) for e in elements]

    @pytest.mark.parametrize(
        ("text", "offset", "message"),
        [
            ("builtin.module(cse", 14, "to close this list"),
            ("a,,b", 2, "expected the name of a pass"),
            ("a{x=1", 1, "to close these options"),
            ("a{x=1 x=2}", 6, "given twice"),
            ("a)", 1, r"unexpected '\)'"),
            ("func.func", 0, r"expected '\(' after the op name"),
            ("a{=1}", 2, "expected the name of an option"),
            ('a{x="1}', 1, "to close these options"),
        ],
    )
    def test_errors_have_a_place(self, text: str, offset: int, message: str):
        with pytest.raises(PipelineTextError, match=message) as e:
            parse_pipeline(text)
        assert e.value.offset == offset

    def test_options_alone(self):
        assert parse_options("a=1 b='x y' c d={1 2}") == {"a": "1", "b": "x y", "c": "", "d": "{1 2}"}


class TestNamedPipelines:
    @pytest.mark.parametrize("name", PIPELINES)
    def test_every_pipeline_consists_of_known_passes(self, name: str):
        for element in PIPELINES[name].elements():
            assert isinstance(element, PassElement)
            assert element.name in PASSES

    def test_the_default_is_nvptx_for_hopper(self):
        row, options = named_pipeline("")
        assert (row.name, options) == ("nvptx", {})
        assert "attach-nvvm-target{chip=sm_90a features=+ptx83 opt-level=3}" in row.text()

    def test_a_comma_in_a_value(self):
        row, options = named_pipeline("nvptx=features=+ptx83,+ptx86,chip=sm_90")
        assert options == {"features": "+ptx83,+ptx86", "chip": "sm_90"}
        attach = next(e for e in row.elements(options) if isinstance(e, PassElement) and e.name == "attach-nvvm-target")
        assert attach.options == {"chip": "sm_90", "features": "+ptx83,+ptx86", "opt-level": "3"}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("nvptix", "did you mean 'nvptx'"),
            ("nvptx=chop=1", "did you mean 'chip'"),
            ("nvptx=chip", "expected key=value"),
            ("host=chip=sm_90", "no option 'chip' "),
            ("nvptx=chip=a b", "contains a space"),
        ],
    )
    def test_errors(self, text: str, message: str):
        with pytest.raises(PipelineError, match=message):
            row, options = named_pipeline(text)
            row.text(options)


class TestResolve:
    def test_generic_passes_may_stand_on_either_side(self):
        steps = resolve(parse_pipeline("cse,base-prepare,cse,canonicalize"))
        assert [s.name for s in steps] == ["cse", "base-prepare", "cse", "canonicalize"]

    def test_a_pass_of_xdsl_cannot_follow_one_of_upstream(self):
        with pytest.raises(ResolveError, match="hands the IR over to upstream MLIR"):
            resolve(parse_pipeline("base-prepare,cute-fold-static"))

    def test_a_module_pass_cannot_be_nested(self):
        with pytest.raises(ResolveError, match=r"runs on builtin\.module, not on gpu\.module"):
            resolve(parse_pipeline("gpu.module(base-prepare)"))

    def test_scopes(self):
        base = {row.name for row in in_scope("base")}
        cute = {row.name for row in in_scope("cute")}
        assert "cute-to-base" in cute - base
        assert "base-prepare" in base - cute
        assert "cse" in base & cute
        assert {row.name for row in in_scope("all")} == base | cute == set(PASSES)

    def test_steps_as_a_command(self):
        steps = resolve(parse_pipeline("cse,attach-nvvm-target{chip=sm_90 opt-level=3}"))
        assert steps_text(steps) == "--cse '--attach-nvvm-target=chip=sm_90 opt-level=3'"
        nested = resolve(parse_pipeline("cse,gpu.module(cse)"))
        assert steps_text(nested) == "--pass-pipeline='builtin.module(cse,gpu.module(cse))'"


class _SamplePass(Pass):
    """A sample."""

    name = "sample"

    @dataclass(frozen=True)
    class Options(PassOptions):
        index_bits: int = 32
        fast: bool = False
        sizes: tuple[int, ...] = ()
        chip: str | None = None

    def run(self, op: Operation, ctx: PassContext) -> None:
        ctx.remark(str(self.options_as(self.Options).index_bits), op)


class TestPassOptions:
    def test_values_have_the_types_of_the_fields(self):
        text = {"index-bits": "0x40", "fast": "", "sizes": "1,2,3", "chip": "sm_90"}
        options = _SamplePass.Options.from_text(text)
        assert options == _SamplePass.Options(64, True, (1, 2, 3), "sm_90")
        assert _SamplePass.Options.from_text(options.to_text()) == options

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"index-bit": "1"}, "has no option 'index-bit'; did you mean 'index-bits'"),
            ({"index-bits": "many"}, "expected int, got 'many'"),
            ({"fast": "perhaps"}, "expected bool"),
        ],
    )
    def test_errors(self, options: dict[str, str], message: str):
        with pytest.raises(PassOptionError, match=message):
            _SamplePass.from_text(options)
