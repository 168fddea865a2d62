"""Answers written in other ways: a grammar of values, with renderings that are equal and perturbations that are not.

A value knows how it is written as a gold, how else people and models write it, and which answers are near it and wrong.
The label of each writing is right by construction, since the writing is made from the value and never read back.
``rewardkit check`` reads a row's gold as a value and scores its writings; tests draw values from a seed.

It does not know how any reward reads an answer, and it evaluates nothing: a text that it does not read is no value.
"""
