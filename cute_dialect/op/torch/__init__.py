"""Operations on torch tensors: registration of operators, calls through them, autograd nodes and gradients.

Modules of this package import torch, so other modules import them inside functions, for calls that pass torch tensors.
"""
