"""Suites of tests in other languages than Python: which tests a file has, and what can be changed in them.

Files are read with tree-sitter's grammars. A change is offered only where it is certain to be reached and certain to
fail, given that the test passes as written; a test without such a change is weak.
"""
