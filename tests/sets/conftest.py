"""The exact answers the sets are held against."""

from itertools import combinations

import numpy as np
import pytest
import torch


def enumerate_faces(q, A, b, G, h):
    """The points of {A a = b, G a <= h} nearest to the rows of q, by trying every face.

    The nearest point is the projection of q onto the plane of k independent rows that hold there
    with equality and have multipliers >= 0; a projection onto a plane that lies in the set and
    has such multipliers is the nearest point. So whatever ties there are, one face gives the
    answer. For a handful of rows.
    """
    n, d = q.shape
    best, least = np.full((n, d), np.nan), np.full(n, np.inf)
    slack = 1e-11 * max(1.0, np.abs(h).max(initial=0.0))
    for k in range(d - np.linalg.matrix_rank(A) + 1 if len(A) else d + 1):
        faces = list(combinations(range(len(G)), k))
        if not faces:
            break
        held = np.array(faces, dtype=int).reshape(len(faces), k)
        rows = np.concatenate([np.broadcast_to(A, (len(held), *A.shape)), G[held]], 1)
        right = np.concatenate([np.broadcast_to(b, (len(held), len(b))), h[held]], 1)
        inverse = np.linalg.pinv(rows, rcond=1e-13)
        for i in range(n):
            p = q[i] - np.einsum("fdr,fr->fd", inverse, rows @ q[i] - right)
            inside = (p @ G.T <= h + slack).all(1) & (np.abs(p @ A.T - b) <= slack).all(1)
            away = np.linalg.norm(p - q[i], axis=1)
            multipliers = np.einsum("fdr,fd->fr", inverse, q[i] - p)[:, len(A) :]
            right_way = (multipliers >= -1e-11 * (1 + away[:, None])).all(1)
            away = np.where(inside & right_way, away, np.inf)
            if away.min() < least[i]:
                best[i], least[i] = p[away.argmin()], away.min()
    return best


@pytest.fixture(scope="session")
def qp():
    """qp(a, A, b, G, h): the rows of a projected, in double precision."""

    def solve(a, A, b, G, h):
        d = a.shape[-1]
        A, G = np.reshape(A, (-1, d)), np.reshape(G, (-1, d))
        return torch.tensor(enumerate_faces(a.double().numpy(), A, np.array(b), G, np.array(h)))

    return solve


@pytest.fixture(scope="session")
def rng():
    """rng(seed): a generator of its own."""
    return lambda seed=0: torch.Generator().manual_seed(seed)
