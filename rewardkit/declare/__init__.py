"""How a reward is declared: decorators, options, compositions, and rewards given as text."""
