"""Launch, schedule and compiled code: what runs, in which order, on which lanes."""
