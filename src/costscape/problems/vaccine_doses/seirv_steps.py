"""Steps of RK4 for SEIRV in a work space, and their adjoint by hand.

With z = (S, E, I, [R, V,] new, -u S, -u E) in each region, n the people there, h the step:

    k(x) = h x @ G + h W z(x),   new = beta S I / n,   u = doses / max(S + E, doses)

G is travel, W the turns that do not depend on x. n' = n @ G does not depend on who is ill, so n is
one row for all F simulations of a mobility, and R and V act on nothing: without them the infected
cost three fifths. The way back keeps the state at a step's start, makes the four z again and
applies the transposes: with g the adjoint of k, that of x is h g @ G' + h W' g and the terms of
new and u, and that of G is x' g.

Everything is written into buffers made once, without a word from the GPU to the CPU.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

AHEAD = (1 / 2, 1 / 2, 1.0)  # of slopes 1, 2, 3 to the next state at which a slope is taken
WEIGHT = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
FLOOR = 1e-6  # of S + E, against quotients of rounding errors


class Plan(NamedTuple):
    """What is simulated, besides tensors."""

    sigma: float
    gamma: float
    days: int
    dose_days: int
    steps: int
    kept: int  # bytes for the states kept; 0: no gradient is wanted

    def day(self, i: int, flow: Tensor) -> int:
        return i // self.steps % len(flow)

    def doses_at(self, i: int) -> bool:
        return i // self.steps < self.dose_days


class _Stage:
    """Where a slope is taken: rows n, then F of each compartment, then F of each product."""

    def __init__(self, like: Tensor, C: int) -> None:
        P, F, K = like.shape
        rows = like.new_empty(P, 1 + (C + 3) * F, K)
        self.x = rows[:, : 1 + C * F]  # what travels
        self.n = rows[:, :1]
        planes = rows[:, 1:].unflatten(1, (C + 3, F))
        self.compartments = planes[:, :C]
        self.S, self.E, self.I = planes[:, 0], planes[:, 1], planes[:, 2]
        self.new, self.to_S, self.to_E = planes[:, C], planes[:, C + 1], planes[:, C + 2]
        self.z = planes.flatten(2)
        self.undosed = self.z[:, : C + 1]
        self.most, self.u = torch.empty_like(like), torch.empty_like(like)  # u is minus the rate
        self.force = like.new_empty(P, 1, K)  # beta / n


class Space:
    """Buffers of one group, and its state."""

    STAGES: ClassVar[int] = 3  # the step's start, where slopes are taken, the step's end

    def __init__(self, like: Tensor, C: int, beta: Tensor, plan: Plan) -> None:
        self.beta, self.plan = beta, plan
        self.h = 1 / plan.steps
        self.stages = [_Stage(like, C) for _ in range(self.STAGES)]
        self.infected = torch.empty_like(like)
        self.k = torch.empty_like(self.first.x, memory_format=torch.contiguous_format)
        self.k_local = self.k[:, 1:].unflatten(1, (C, -1)).flatten(2)
        self.turns = _turns(C, plan, like).mul_(self.h).expand(len(like), -1, -1)
        self.turns_undosed = self.turns[..., : C + 1]

    def fits(self, doses: Tensor) -> bool:
        """The last group can be smaller."""
        return doses.shape == self.infected.shape

    @property
    def first(self) -> _Stage:
        return self.stages[0]

    def begin(self, doses: Tensor, start: Tensor, n: Tensor) -> None:
        self._dose(doses)
        self.infected.zero_()
        self.first.n.copy_(n)
        self.first.compartments.copy_(start.unsqueeze(1))

    def run(self, flow: Tensor, stride: int) -> Tensor:
        """All steps; the state before every ``stride``-th, where gradients are wanted."""
        N = self.plan.days * self.plan.steps
        kept = self.k.new_empty(len(range(0, N, stride)) if self.plan.kept else 0, *self.k.shape)
        for i in range(N):
            if self.plan.kept and i % stride == 0:
                kept[i // stride] = self.first.x
            self.step(flow[self.plan.day(i, flow)], self.plan.doses_at(i))
        return kept

    def _dose(self, doses: Tensor) -> None:
        self.less, self.floor = -doses, doses.clamp(min=FLOOR)

    def step(self, flow: Tensor, dosed: bool) -> None:
        now, then, end = self.stages[0], self.stages[1], self.stages[2]
        at = now
        for s in range(4):
            self._products(at, dosed)
            self._slope(at, flow, dosed)
            self.infected.add_(at.new, alpha=self.h * WEIGHT[s])
            torch.add(now.x if s == 0 else end.x, self.k, alpha=WEIGHT[s], out=end.x)
            if s < 3:
                torch.add(now.x, self.k, alpha=AHEAD[s], out=then.x)
                at = then
        self.stages[0], self.stages[2] = end, now

    def _slope(self, at: _Stage, flow: Tensor, dosed: bool) -> None:
        torch.bmm(at.x, flow, out=self.k)
        if dosed:
            self.k_local.baddbmm_(self.turns, at.z)
        else:
            self.k_local.baddbmm_(self.turns_undosed, at.undosed)

    def _products(self, at: _Stage, dosed: bool) -> None:
        torch.div(self.beta, at.n, out=at.force)
        torch.mul(at.S, at.I, out=at.new).mul_(at.force)
        if dosed:
            torch.add(at.S, at.E, out=at.most)
            torch.maximum(at.most, self.floor, out=at.most)
            torch.div(self.less, at.most, out=at.u)
            torch.mul(at.u, at.S, out=at.to_S)
            torch.mul(at.u, at.E, out=at.to_E)


class Adjoint(Space):
    """g is the adjoint of the state; a step back takes it from the step's end to its start."""

    STAGES = 4  # one for each slope

    def __init__(self, like: Tensor, C: int, beta: Tensor, plan: Plan) -> None:
        super().__init__(like, C, beta, plan)
        P, F, K = like.shape
        self.g = like.new_empty(P, 1 + C * F, K)
        self.g_sum, self.gk, self.gx = (torch.empty_like(self.g) for _ in range(3))
        planes = self.gx[:, 1:].unflatten(1, (C, F))
        self.gS, self.gE, self.gI = planes[:, 0], planes[:, 1], planes[:, 2]
        self.gx_local = planes.flatten(2)
        self.gk_local = self.gk[:, 1:].unflatten(1, (C, F)).flatten(2)
        self.gn = self.gx[:, :1]
        products = like.new_empty(P, 3, F, K)
        self.g_products = products.flatten(2)
        self.g_new, self.g_to_S, self.g_to_E = products.unbind(1)
        self.g_undosed = like.new_empty(P, 1, F * K)
        self.g_new_undosed = self.g_undosed.view(P, F, K)
        back = self.turns.mT
        self.back_x, self.back_products = back[:, :C], back[:, C:]
        self.back_undosed = back[:, C : C + 1]
        self.g_doses, self.part = torch.empty_like(like), torch.empty_like(like)
        self.g_force, self.g_beta = like.new_empty(P, 1, K), like.new_empty(P, 1, K)

    def begin_back(
        self, doses: Tensor, g_infected: Tensor, g_end: Tensor, people: bool, ill: bool
    ) -> None:
        self._dose(doses)
        self.people, self.ill = people, ill  # are slopes in n wanted, and in beta?
        self.g_infected = g_infected.contiguous()
        self.g_doses.zero_()
        self.g_beta.zero_()
        self.g[:, 0] = 0
        self.g[:, 1:].unflatten(1, g_end.shape[1:3]).copy_(g_end)

    def run_back(self, kept: Tensor, flow: Tensor, stride: int, g_flow: Tensor | None) -> None:
        plan = self.plan
        N = plan.days * plan.steps
        for first in reversed(range(0, N, stride)):
            span = range(first, min(first + stride, N))
            starts = [kept[first // stride]]
            if len(span) > 1:
                self.first.x.copy_(starts[0])
            for i in span[:-1]:
                self.step(flow[plan.day(i, flow)], plan.doses_at(i))
                starts.append(self.first.x.clone())
            for i in reversed(span):
                t = plan.day(i, flow)
                into = None if g_flow is None else g_flow[t]
                self.step_back(starts.pop(), flow[t], plan.doses_at(i), into)

    def sums(self, out: Tensor) -> None:
        """Adjoints of n, beta and the start, which all simulations share."""
        torch.sum(self.g[:, 0], 0, out=out[0])
        torch.sum(self.g_beta, (0, 1), out=out[1])
        C = len(out) - 2
        torch.sum(self.g[:, 1:].unflatten(1, (C, -1)), (0, 2), out=out[2:])

    def step_back(self, start: Tensor, flow: Tensor, dosed: bool, g_flow: Tensor | None) -> None:
        self.first.x.copy_(start)
        for s, at in enumerate(self.stages):
            self._products(at, dosed)
            if s < 3:
                self._slope(at, flow, dosed)
                torch.add(self.first.x, self.k, alpha=AHEAD[s], out=self.stages[s + 1].x)
        back = flow.mT
        self.gk.copy_(self.g)
        for s in (3, 2, 1, 0):
            # the adjoint of k is c times gk: one pass less
            c = AHEAD[s] if s < 3 else WEIGHT[s]
            if s < 3:
                torch.add(self.gx, self.g, alpha=WEIGHT[s] / c, out=self.gk)
            if g_flow is not None:
                g_flow.baddbmm_(self.stages[s].x.mT, self.gk, alpha=c)
            self.gx.baddbmm_(self.gk, back, beta=0, alpha=c)
            self._local_back(self.stages[s], c, self.h * WEIGHT[s], dosed)
            torch.add(self.g if s == 3 else self.g_sum, self.gx, out=self.g_sum)
        self.g, self.g_sum = self.g_sum, self.g

    def _local_back(self, at: _Stage, c: float, weight: float, dosed: bool) -> None:
        self.gx_local.baddbmm_(self.back_x, self.gk_local, alpha=c)
        if dosed:
            self.g_products.baddbmm_(self.back_products, self.gk_local, beta=0, alpha=c)
            self._doses_back(at)
            g_new = self.g_new
        else:
            self.g_undosed.baddbmm_(self.back_undosed, self.gk_local, beta=0, alpha=c)
            g_new = self.g_new_undosed
        g_new.add_(self.g_infected, alpha=weight)
        part = torch.mul(g_new, at.S, out=self.part)
        self.gI.addcmul_(part, at.force)
        if self.people:
            torch.sum(part.mul_(at.I), 1, keepdim=True, out=self.g_force)
            self.g_force.div_(at.n)
            if self.ill:
                self.g_beta.add_(self.g_force)
            self.gn.addcmul_(self.g_force, at.force, value=-1)
        self.gS.addcmul_(g_new.mul_(at.force), at.I)

    def _doses_back(self, at: _Stage) -> None:
        self.gS.addcmul_(at.u, self.g_to_S)
        self.gE.addcmul_(at.u, self.g_to_E)
        part = torch.mul(self.g_to_S, at.S, out=self.part).addcmul_(self.g_to_E, at.E)
        part.div_(at.most)
        # no slope where the doses of a day are more than the people, u = 1
        torch.ops.aten.threshold_backward.grad_input(part, at.u, -1.0, grad_input=part)
        self.g_doses.sub_(part)
        part.mul_(at.u)
        self.gS.sub_(part)
        self.gE.sub_(part)


def _turns(C: int, plan: Plan, like: Tensor) -> Tensor:
    """W, rows S, E, I, (R, V), columns the same and new, -u S, -u E."""
    # filled number by number: to copy a list to a GPU would make the CPU wait
    W = like.new_zeros(C, C + 3)
    W[1, 1], W[2, 1], W[2, 2] = -plan.sigma, plan.sigma, -plan.gamma
    W[0, C], W[1, C], W[0, C + 1], W[1, C + 2] = -1, 1, 1, 1
    if C == 5:
        W[3, 2], W[4, C + 1], W[4, C + 2] = plan.gamma, -1, -1
    return W
