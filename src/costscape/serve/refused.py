"""A request that is not answered: a status of HTTP and one sentence."""


class Refused(Exception):
    """Raised anywhere in a request; the service answers with its status and its sentence.

    Args:
        status: int. Status of HTTP, 400 or above.
        sentence: str. What is needed, what was given, and what to do.
        retry_after: int, default None. Seconds after which the client may try again.

    >>> str(Refused(429, "The queue is full. Try again in 1 s.", 1))
    'The queue is full. Try again in 1 s.'
    """

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after = status, sentence, retry_after
