"""Attention: the function, the torch operator, plans and explanations."""
