"""A folder of code graded by a suite of tests, and the changed copies of that suite by which a forged pass shows."""
