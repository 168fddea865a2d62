"""How code is run in isolation. Knows nothing of rewards."""
