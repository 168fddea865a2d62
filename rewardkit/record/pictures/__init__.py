"""Pictures in a record: where they are in a row, how they are scaled, and how each is stored once."""
