"""How a broken contract is reported."""


def must(holds: bool, sentence: str) -> None:
    """An explicit raise, which unlike ``assert`` is still there under ``python -O``."""
    if not holds:
        raise AssertionError(sentence)
