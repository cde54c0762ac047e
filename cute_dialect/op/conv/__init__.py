"""Convolutions: forward, and the gradients of image and filter."""
