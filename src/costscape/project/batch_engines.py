"""Where the files of a batch are decided for: one after the other here, or by Ray Data."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from costscape.project.batch_files import Done
from costscape.project.batch_scoring import Failed, Scorer


class BatchEngine(ABC):
    """Decides for files with a Scorer, in any order."""

    @abstractmethod
    def map(
        self, folder: Path, out: Path, model: str, paths: Sequence[Path]
    ) -> Iterator[Done | Failed]:
        """What became of each file, as they end.

        Args:
            folder: of the project.
            out: of the outputs.
            model: the fingerprint of the model.
            paths: the inputs.
        """


@dataclass(frozen=True)
class OneByOne(BatchEngine):
    """In this process, in the order of the files."""

    def map(
        self, folder: Path, out: Path, model: str, paths: Sequence[Path]
    ) -> Iterator[Done | Failed]:
        scorer = Scorer(folder, out, model)
        for path in paths:
            yield scorer.score(path)


@dataclass(frozen=True)
class RayData(BatchEngine):
    """With actors of Ray Data, one for each processor, which load the model once.

    Args:
        address: of a cluster whose nodes share the file system; None starts one here, on loopback.
    """

    address: str | None = None

    def map(
        self, folder: Path, out: Path, model: str, paths: Sequence[Path]
    ) -> Iterator[Done | Failed]:
        import ray
        import ray.data

        begun = not ray.is_initialized()
        if begun:
            here: dict[str, Any] = {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
            ray.init(
                address=self.address,
                log_to_driver=False,
                logging_level=logging.WARNING,
                **(here if self.address is None else {}),
            )
        context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
        shown, level = context.enable_progress_bars, logger.level
        context.enable_progress_bars = False
        logger.setLevel(logging.ERROR)  # it reports every step of every plan
        try:
            most = max(1, int(ray.cluster_resources().get("CPU", 1)))
            files = [{"path": str(path.resolve()), "at": i} for i, path in enumerate(paths)]
            # a block for each file: actors take blocks, and a slow file holds up no other
            actor: Any = _Actor  # Ray's types name functions only
            rows = ray.data.from_items(files, override_num_blocks=len(files)).map(
                actor,
                fn_constructor_args=(folder.resolve(), out.resolve(), model),
                compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(most, len(files))),
                num_cpus=1,
            )
            for row in rows.iter_rows():
                yield (
                    Failed(str(paths[row["at"]]), row["why"])
                    if row["why"]
                    else Done.from_json(row["done"])
                )
        finally:
            context.enable_progress_bars = shown
            logger.setLevel(level)
            if begun:
                ray.shutdown()


class _Actor:
    """Ray's name for an object that stays in its process; rows in and out are plain texts."""

    def __init__(self, folder: Path, out: Path, model: str) -> None:
        self.scorer = Scorer(folder, out, model)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        found = self.scorer.score(Path(row["path"]))
        if isinstance(found, Failed):
            return {"at": row["at"], "done": "", "why": found.why}
        return {"at": row["at"], "done": found.to_json(), "why": ""}
