"""Planned and described convolutions: ``op.Conv2d``, ``op.Conv2dOperation`` and its arguments."""
