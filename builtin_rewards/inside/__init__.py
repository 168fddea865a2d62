"""What runs inside the jail: it is read as text and sent there, and imports nothing but the standard library."""
