"""A worker process ends when the process that started it is gone, be it by kill -9.

A system call could do this (PR_SET_PDEATHSIG), but it watches the thread that started the worker,
and joblib starts workers from threads that end before them.
"""

import os
import threading
import time

EVERY = 1.0  # seconds from one look to the next

_watched: set[int] = set()  # by this process, at most one


def end_with_parent(parent: int) -> None:
    """Call this in a worker: it ends when process ``parent`` is no longer its parent.

    In ``parent`` itself, and on other machines, nothing happens.
    """
    if os.getppid() != parent or parent in _watched:
        return
    _watched.add(parent)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(EVERY)
    os._exit(1)  # nobody is left to hear of an error
