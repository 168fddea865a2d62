"""What a completion says: its final answer, and how that is written. One place for all rewards; knows none of them."""
