"""Attention: the function, torch's operator, what it would do."""
