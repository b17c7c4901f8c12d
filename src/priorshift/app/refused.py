"""What the app does not do, said in a sentence with a status of HTTP."""

from __future__ import annotations


class RefusedError(Exception):
    """A request that is not granted.

    Attributes
    ----------
    status : int
        Of the answer.
    sentence : str
        For the user.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
