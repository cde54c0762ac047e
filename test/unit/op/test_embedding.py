"""``op.embedding`` and ``op.nn.Embedding`` on the interpreter: rows, gradients in float64, and invalid indices."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.functions.embedding import embedding_backward

BF16: Any = ml_dtypes.bfloat16


@pytest.mark.parametrize(("dtype", "index", "columns"), [(BF16, np.int64, 40), (np.float32, np.int32, 7)])
def test_rows(dtype: Any, index: Any, columns: int) -> None:
    """Rows are copied; an index outside of the table gives NaN."""
    rng = np.random.default_rng(columns)
    table = rng.standard_normal((9, columns)).astype(dtype)
    indices = rng.integers(0, 9, (3, 5)).astype(index)
    found = op.embedding(indices, table, device="cpu", checks="all")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, table[indices])
    indices[1, 2:4] = -1, 9
    found = op.embedding(indices, table, device="cpu", checks="all").astype(np.float32)
    assert np.isnan(found[1, 2:4]).all() and not np.isnan(np.delete(found.reshape(15, -1), (7, 8), 0)).any()


@pytest.mark.end_to_end
@pytest.mark.sample("bfloat16-int64-300-40-2")
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize(("tokens", "columns"), [(300, 40), (1, 9), (513, 7), (0, 8)])
@pytest.mark.parametrize("index", [np.int64, np.int32])
@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_gradient(dtype: Any, index: Any, tokens: int, columns: int, padding: int) -> None:
    """Sums in the order of the tokens, compared bit by bit; invalid indices and the padding have none."""
    rng = np.random.default_rng([tokens, columns])
    dout = rng.standard_normal((tokens, columns)).astype(dtype)
    indices = rng.integers(-1, 8, tokens).astype(index)
    found = embedding_backward(dout, indices, 6, padding, "cpu")
    exact = np.zeros((6, columns), np.float32)
    for t, i in enumerate(indices):
        if 0 <= i < 6 and i != padding:
            exact[i] += dout[t].astype(np.float32)
    np.testing.assert_array_equal(found, exact.astype(dtype))


@pytest.mark.slow
@pytest.mark.end_to_end
def test_module() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = op.nn.Embedding(7, 12, 2, run_on="cpu")
    peer = torch.nn.Embedding(7, 12, 2)
    peer.load_state_dict(layer.state_dict())
    indices = torch.randint(0, 7, (4, 6))
    weights = torch.randn(4, 6, 12)
    for module in (layer, peer):
        (module(indices) * weights).sum().backward()
    assert torch.equal(layer(indices), peer(indices))
    assert torch.allclose(layer.weight.grad, peer.weight.grad, rtol=1e-6, atol=1e-6)
    assert not layer.weight.grad[2].any()

    def looked_up(indices: Any, weight: Any) -> Any:
        return op.embedding(indices, weight, device="cpu")

    compiled = torch.compile(looked_up, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(indices, layer.weight), layer(indices))
    torch.library.opcheck(torch.ops.cute.embedding.default, (layer.weight.detach(), indices, -1))


@pytest.mark.end_to_end
def test_from_pretrained() -> None:
    torch = pytest.importorskip("torch")
    table, indices = torch.randn(5, 8), torch.tensor([[4, 0], [1, 1]])
    layer = op.nn.Embedding.from_pretrained(table, padding_idx=-4, run_on="cpu")
    assert type(layer) is op.nn.Embedding and layer.weight.data_ptr() == table.data_ptr()
    assert not layer.weight.requires_grad and layer.padding_idx == 1
    assert torch.equal(layer(indices), table[indices])
    trained = op.nn.Embedding.from_pretrained(table, False, run_on="cpu")
    trained(indices).sum().backward()
    assert trained.weight.grad[:, 0].tolist() == [1, 2, 0, 0, 1]


@pytest.mark.end_to_end
def test_errors_of_the_layer() -> None:
    torch = pytest.importorskip("torch")
    layer: Any = op.nn.Embedding
    for refused in ({"max_norm": 1.0}, {"sparse": True}, {"scale_grad_by_freq": True}):
        for make in (lambda how: layer(5, 8, **how), lambda how: layer.from_pretrained(torch.ones(5, 8), **how)):
            with pytest.raises(op.UnsupportedError, match=f"{next(iter(refused))}=.* is not supported"):
                make(refused)
    with pytest.raises(op.ArgumentError, match="padding_idx is 5; pass None, or an index of the 5 rows"):
        layer(5, 8, 5)
    with pytest.raises(op.ArgumentError, match=r"embeddings is \(5,\); pass a tensor"):
        layer.from_pretrained(torch.ones(5))
    with pytest.raises(op.ArgumentError, match="padding_idx is 'a'; pass"):
        layer.from_pretrained(torch.ones(5, 8), padding_idx="a")
    with pytest.raises(
        op.ArgumentError, match=r"Embedding.from_pretrained\(\) needs an argument 'embeddings'; .*: embeddings"
    ):
        layer.from_pretrained()
    with pytest.raises(
        op.ArgumentError, match=r"Embedding.from_pretrained\(\) has no .* 'freeze'\? Arguments: embeddings,"
    ):
        layer.from_pretrained(torch.ones(5, 8), freez=True)
    with pytest.raises(op.ArgumentError, match=r"at most 7 positional arguments \(embeddings, .* passes 9;"):
        layer.from_pretrained(*range(9))
    with pytest.raises(op.ArgumentError, match="embeddings is list; pass a tensor"):
        layer.from_pretrained([1.0])


TABLE = np.zeros((4, 8), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: op.embedding(np.zeros(3, np.float32), TABLE, device="cpu"), op.DtypeError, "it must have i32 or i64"),
        (lambda: op.embedding(np.zeros(3, np.int64), TABLE[0], device="cpu"), op.ShapeError, "must have rank 2"),
        (lambda: op.embedding(np.zeros(3, np.int64), TABLE, 4, device="cpu"), op.ArgumentError, "padding_idx is 4"),
        (lambda: op.embedding(np.zeros(3, "i8"), TABLE.astype("f8"), device="cpu"), op.DtypeError, "weight has dtype"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
