"""A run as one file: the dashboard's own page with the answers of its views inside, which needs no server."""
