"""From a model file back to a fitted method."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from costscape.methods import store
from costscape.methods.base import Method
from costscape.methods.cme import CME
from costscape.methods.constant import Constant
from costscape.methods.df2 import DF2
from costscape.methods.dfl import DFL
from costscape.methods.direct import PlainNetwork
from costscape.methods.egl import EGL
from costscape.methods.forest import RandomForest
from costscape.methods.kernel import KernelSmoother
from costscape.methods.lancer import LANCER
from costscape.methods.lodl import LODL
from costscape.methods.nearest import NearestNeighbours
from costscape.methods.policy_net import PolicyNet
from costscape.methods.so_ebm import SOEBM
from costscape.methods.taskmet import TaskMet
from costscape.methods.two_stage import TwoStage
from costscape.tasks import Task

METHODS: dict[str, type[Method]] = {
    m.__name__: m
    for m in (
        CME,
        DF2,
        DFL,
        EGL,
        LANCER,
        LODL,
        SOEBM,
        Constant,
        KernelSmoother,
        NearestNeighbours,
        PlainNetwork,
        PolicyNet,
        RandomForest,
        TaskMet,
        TwoStage,
    )
}


def load(
    path: str | Path, task: Task, *, method: type[Method] | None = None, **settings: Any
) -> Any:
    """The method that ``save`` wrote; it decides bit for bit as before.

    The task is code and is not in the file: pass the one the model was fitted for. ``settings``
    replace stored ones, and supply those that are the user's own code, such as
    ``encoder=MyEncoder``; ``method`` is the class, where that is the user's own.
    """
    tensors, head = store.read(Path(path))
    cls = method or METHODS.get(head["method"])
    if cls is None or cls.__name__ != head["method"]:
        raise ValueError(
            f"{path} holds a {head['method']}, and costscape has no such method. Pass its class "
            f"as load(path, task, method={head['method']})."
        )
    kept = {name: value for name, value in head["settings"].items() if name not in settings}
    for name, value in kept.items():
        if isinstance(value, dict) and "custom" in value:
            raise ValueError(
                f"{path} was fitted with {name}={value['custom']}, which is your own code and not "
                f"in the file. Pass it again: load(path, task, {name}={value['custom']})."
            )
    if unknown := set(settings) - {f.name for f in fields(cls)}:  # type: ignore[arg-type]
        raise TypeError(f"{cls.__name__} has no setting named {', '.join(sorted(unknown))}.")
    build: Any = cls
    made: Method = build(task=task, **{k: store.from_json(v) for k, v in kept.items()}, **settings)
    made.restore(tensors, head["fitted"])
    return made
