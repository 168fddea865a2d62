"""How rewards are found, configured and given the packages that they need."""
