"""The dialect ``cute``: its types and ops, and the lookup of the dialects of this project."""
