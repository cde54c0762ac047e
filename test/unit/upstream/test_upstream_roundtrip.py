"""Every snippet of test/upstream/corpus, against upstream MLIR itself: what it prints we read, what we print it
reads, same meaning.

For each snippet (files are split at `// -----`):
    upstream's custom form → ours → our generic and our custom form → upstream's generic form = upstream's own generic
    form upstream's generic form → ours → the same the text of the corpus as written → ours → the same
"""

from pathlib import Path
from types import ModuleType

import pytest
from ops_support import printed
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from cute_dialect.upstream.registry import register

CORPUS = Path(__file__).parents[2] / "upstream" / "corpus"


def snippets() -> list[object]:
    return [
        pytest.param(text, id=f"{path.stem}-{i}")
        for path in sorted(CORPUS.glob("*.mlir"))
        for i, text in enumerate(path.read_text().split("// -----"))
    ]


def upstream(ir: ModuleType, text: str, generic: bool) -> str:
    """`text` as upstream prints it after parsing and verifying."""
    with ir.Context():
        return ir.Module.parse(text).operation.get_asm(print_generic_op_form=generic)


def ours(text: str) -> ModuleOp:
    """`text` parsed and verified by our dialects; no unregistered op or attribute is allowed."""
    ctx = Context()
    register(ctx)
    module = Parser(ctx, text, "corpus").parse_module()
    module.verify()
    return module


@pytest.mark.sample(every=24)
@pytest.mark.parametrize("text", snippets())
def test_round_trip(ir: ModuleType, text: str) -> None:
    wanted = upstream(ir, text, generic=True)
    custom = upstream(ir, text, generic=False)
    for source in (custom, wanted, text):
        module = ours(source)
        assert upstream(ir, printed(module, generic=True), generic=True) == wanted
        assert upstream(ir, printed(module, generic=False), generic=True) == wanted


@pytest.mark.parametrize("text", snippets())
def test_our_custom_form_reads_back(text: str) -> None:
    once = printed(ours(text), generic=False)
    assert printed(ours(once), generic=False) == once
