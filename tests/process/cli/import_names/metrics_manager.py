"""How many legs."""


def legs(kind):
    return len(kind)
