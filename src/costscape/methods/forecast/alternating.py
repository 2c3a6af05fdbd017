"""Methods in which a point forecast and a learned loss take turns."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch

from costscape.data import Dataset
from costscape.methods.forecast.forecast_method import ForecastMethod, Network
from costscape.models import Point
from costscape.task import Refusal, Task
from costscape.training import History, Training
from costscape.training.checkpoint import Checkpoint
from costscape.training.fit_state import copy_of
from costscape.training.progress import progress


class PointRounds(ForecastMethod):
    """A point forecast by least squares, then rounds in which it and a learned loss take turns."""

    takes_context: ClassVar[bool] = False
    takes_row_sets: ClassVar[bool] = False

    rounds: int

    draws = None  # a point has none

    def __post_init__(self) -> None:
        if not isinstance(self.forecast, Point):
            raise Refusal(
                f"{type(self).__name__} needs forecast=Point(), since its learned loss compares "
                f"one forecast with one outcome, but got {self.forecast!r}. TwoStage takes every "
                f"forecast."
            )

    def _within(self, training: Training, epochs: int | None = None) -> Training:
        """How one part is fitted in one round; a loss made anew each round is not compiled."""
        epochs = epochs or training.epochs
        return replace(training, epochs=epochs, checkpoint=None, compile=False, progress=False)

    def _take_turns(
        self,
        task: Task,
        model: Network,
        parts: Mapping[str, Any],
        turn: Callable[[int], float],
        train: Dataset,
        val: Dataset,
    ) -> History:
        """``turn(t)`` changes the model and gives a loss; leave it at its cheapest decisions.

        The start counts as round 0. ``parts`` have a state_dict, which a checkpoint keeps. What a
        turn draws must depend on t and the seed only, so that a broken fit can go on.
        """
        name = type(self).__name__
        path = self.training.checkpoint
        own = replace(self.training, checkpoint=None, device=None, compile=False, progress=False)
        recipe = repr((name, self.seed, own)) + self._recipe(model, train, val, "rounds")
        file = None if path is None else Checkpoint(f"{path}.rounds", recipe, train, model)
        score = self._score(task, val)
        history, best = History(), copy_of(model)

        def look(loss: float | None) -> None:
            model.eval()
            with torch.no_grad():
                history.scores.append(score(model))
            if loss is not None:
                history.losses.append(loss)
            if history.improved(len(history.scores) - 1, self.rounds + 1, 1):
                best.update(copy_of(model))

        with progress(f"{name} rounds", self.rounds, self.training.progress) as show:
            if file and (saved := file.load()):
                with file.reading():
                    model.load_state_dict(saved["model"])
                    for key, part in parts.items():
                        part.load_state_dict(saved["parts"][key])
                    history, best = History(**saved["history"]), saved["best"]
            else:
                look(None)
            for t in range(len(history.losses), self.rounds):
                look(turn(t))
                if file:
                    states = {key: part.state_dict() for key, part in parts.items()}
                    file.save(
                        model=model.state_dict(), parts=states, history=vars(history), best=best
                    )
                show(t + 1, f"validation cost {history.scores[-1]:.5g}")
        model.load_state_dict(best)
        model.eval()
        history.best_epoch -= 1  # as elsewhere: -1 is the start, 0 the first round
        return history
