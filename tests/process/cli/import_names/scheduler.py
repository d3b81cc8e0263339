"""Whose turn it is."""


def turns(kinds):
    return iter(kinds)
