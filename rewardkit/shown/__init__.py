"""How text, tables and curves are shown to a person."""
