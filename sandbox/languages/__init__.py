"""Programming languages: which the jail runs, how data sets and fences name them, and what their source looks like."""
