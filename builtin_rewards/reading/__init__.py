"""What a completion says: its final answer, and how that is written. All rewards read completions through here."""
