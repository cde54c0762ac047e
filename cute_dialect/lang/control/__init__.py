"""Control flow over values known only at run time, called by rewritten code."""
