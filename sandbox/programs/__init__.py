"""Programs in languages other than Python: compiled and run in jails of their own, called by values, tested."""
