"""What was made for a task or a set, kept from one call to the next."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

T = TypeVar("T")


class Kept(Generic[T]):
    """One thing for each owner. It goes when its owner does, the oldest when all take too much.

    ``size`` tells the bytes of a thing.
    """

    def __init__(self, size: Callable[[T], int]) -> None:
        self.of: WeakKeyDictionary[nn.Module, T] = WeakKeyDictionary()
        self._size, self._lock = size, Lock()

    def get(self, owner: nn.Module) -> T | None:
        with self._lock:
            return self.of.get(owner)

    def put(self, owner: nn.Module, new: T, most: int) -> None:
        """Keep it, and no more than ``most`` bytes of all."""
        with self._lock:
            self.of.pop(owner, None)
            while self.of and self.taken() + self._size(new) > most:
                self.of.pop(next(iter(self.of)))
            self.of[owner] = new

    def taken(self) -> int:
        return sum(self._size(each) for each in self.of.values())


def same(one: Tensor, other: Tensor) -> bool:
    """Number by number, and in precision."""
    return one.dtype == other.dtype and torch.equal(one, other)


def bytes_of(t: Tensor) -> int:
    return t.numel() * t.element_size()
