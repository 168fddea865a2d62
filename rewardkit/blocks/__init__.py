"""What stands in a chat message besides plain text, in the forms of all providers: the one table of their shapes."""
