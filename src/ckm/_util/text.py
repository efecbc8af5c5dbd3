"""Text from files and other programs, as it may be shown at a terminal."""


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""Return `text` with control characters, and those that `encoding` lacks, escaped.

    The name of a column may contain codes that move the cursor, recolour the terminal, or reverse
    the direction of writing.

    >>> print(visible("\x1b[31mred"), visible("café"), visible("café", "ascii"))
    \x1b[31mred café caf\xe9
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else _escape(c) for c in text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def describe_seconds(seconds: float) -> str:
    """A time in words.

    >>> describe_seconds(40), describe_seconds(250), describe_seconds(9000)
    ('40 seconds', '4 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
