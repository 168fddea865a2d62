"""The views: what each tab of the page asks for, as functions of a run and a query that need no web framework."""
