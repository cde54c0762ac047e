"""Values of the language: numbers, vectors, shapes, layouts, pointers and tensors."""
