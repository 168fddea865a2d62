"""How the rewards of a run spread: over groups of the data, over steps, and over the prompts."""
