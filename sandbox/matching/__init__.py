"""What counts as the same output of a program: rules that compare texts, and checkers that run in a jail."""
