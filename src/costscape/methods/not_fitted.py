"""The error of a method that has not been fitted; a file of its own, since it needs sklearn."""

from sklearn.exceptions import NotFittedError


class NotFitted(NotFittedError, RuntimeError):  # type: ignore[misc]
    """A method was asked to decide before ``fit``. It is also scikit-learn's NotFittedError."""
