"""Whether a cost jumps or is flat in parts, which solvers that follow slopes cannot see.

On segments between actions of C the largest difference of f between neighbouring points is halved
again and again. A steep slope halves with its cell; a jump stays.
"""

from warnings import warn

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.task import Task

SEGMENTS, OUTCOMES, POINTS = 4, 2, 33  # few, since some costs are simulations
HALVINGS = 10  # cells are then 1 / 32,768 of a segment, which single precision resolves
JUMP = 0.01  # of the spread of f along its segment: less is put down to rounding
ACTIONS = 16
FLAT = 0.25  # share of actions without slope

LOCAL = (
    "The solver follows slopes, so its decisions may be far from the best. Raise starts, as in "
    "solver=costscape.ProjectedAdam(starts=16); or list the actions in a Finite set, count whole "
    "units with Whole, or write a sum over coordinates as a SeparableTask, which are searched."
)


def probe_slopes(task: Task, y: Float[Tensor, "n ..."], seed: int) -> None:
    """Warn where f(y, .) jumps, or where the mean over y is flat at many actions of C."""
    rng = Generator(task.feasible.bounds[0].device).manual_seed(seed)
    if jumps(task, y[:: max(1, len(y) // OUTCOMES)][:OUTCOMES], rng):
        warn(f"The cost jumps inside the feasible set. {LOCAL}", stacklevel=4)
    elif (share := flat_share(task, y, rng)) > FLAT:
        warn(
            f"The cost has no slope at {share:.0%} of the actions, though it differs between "
            f"them. {LOCAL}",
            stacklevel=4,
        )


def jumps(task: Task, y: Float[Tensor, "n ..."], rng: Generator) -> bool:
    """Whether some difference along a segment does not fall as its cell is halved."""
    ends = task.feasible.sample(2 * SEGMENTS, rng)
    start, move = ends[:SEGMENTS], ends[SEGMENTS:] - ends[:SEGMENTS]

    def cost(t: Tensor) -> Tensor:  # shares (n, segments, J) -> costs
        at = start[None, :, None] + t[..., None] * move[None, :, None]
        return task.cost(y[:, None, None], at)

    with torch.no_grad():
        t = torch.linspace(0, 1, POINTS).to(start).expand(len(y), SEGMENTS, -1)
        f = cost(t)
        spread = f.amax(-1) - f.amin(-1)
        k = f.diff(dim=-1).abs().argmax(-1, keepdim=True)
        low, high = t.gather(-1, k), t.gather(-1, k + 1)
        f_low, f_high = f.gather(-1, k), f.gather(-1, k + 1)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            f_middle = cost(middle)
            left = (f_middle - f_low).abs() > (f_high - f_middle).abs()
            low, f_low = torch.where(left, low, middle), torch.where(left, f_low, f_middle)
            high, f_high = torch.where(left, middle, high), torch.where(left, f_middle, f_high)
    # rounding of large costs is no jump
    noise = 64 * torch.finfo(f.dtype).eps * f.abs().amax(-1)
    return bool(((f_high - f_low).abs()[..., 0] > torch.maximum(JUMP * spread, noise)).any())


def flat_share(task: Task, y: Float[Tensor, "n ..."], rng: Generator) -> float:
    """The share of actions where the mean of f has no slope; 0 where f has no differences."""
    a = task.feasible.sample(ACTIONS, rng).requires_grad_()
    with torch.enable_grad():
        mean = task.cost(y.unsqueeze(1), a).mean(0)
        if not mean.requires_grad or bool((mean == mean[0]).all()):
            return 0.0  # the solver refuses a cost without slope
        (slope,) = torch.autograd.grad(mean.sum(), a)
    return float((slope == 0).all(-1).double().mean())
