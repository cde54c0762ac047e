"""Convolution plans and descriptions: ``op.Conv2d``, ``op.Conv2dOperation`` and its arguments."""
