"""The record of a run: what each reward said of each completion. Owns the file; what is made of it is elsewhere."""
