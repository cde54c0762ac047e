"""Operations on torch tensors: operators for ``torch.compile``, autograd nodes, and rules for ``torch.vmap``.

Modules of this package import torch, so other modules import them inside functions, for calls that pass torch tensors.
"""
