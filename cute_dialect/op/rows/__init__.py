"""Functions on rows: softmax, norms, sums and losses, forward and backward."""
