"""X from features: numbers as they are, one column for each category, flags of missing values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from costscape.table.settings import Settings

OTHER = "other"


@dataclass(frozen=True)
class Encoding:
    """What the first file taught.

    Args:
        categories: the categories of each source column that have a column of X, in order.
        others: source columns whose other categories share the category "other".
        flagged: features with missing values in the first file.
    """

    categories: Mapping[str, tuple[str, ...]]
    others: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()

    def encode(
        self,
        numbers: Mapping[str, np.ndarray],
        texts: Mapping[str, np.ndarray],
        source: Mapping[str, str],
        index: Any,
    ) -> pd.DataFrame:
        """X: the numbers, then the categories.

        Args:
            numbers: columns that stay as they are.
            texts: columns of categories, by feature.
            source: the source column of each feature.
            index: labels of the rows.
        """
        X = pd.DataFrame(dict(numbers), index)
        if not texts:
            return X
        from sklearn.compose import ColumnTransformer
        from sklearn.preprocessing import OneHotEncoder

        words = {name: list(self.categories[source[name]]) for name in texts}
        hot = [
            (name, OneHotEncoder(categories=[some], sparse_output=False, dtype=np.uint8), [name])
            for name, some in words.items()
        ]
        encoder = ColumnTransformer(hot, verbose_feature_names_out=False)
        encoder.fit(pd.DataFrame({name: some[:1] for name, some in words.items()}, dtype=object))
        names = encoder.get_feature_names_out()
        known = {name: self._known(source[name], column) for name, column in texts.items()}
        made = np.zeros((0, len(names)), dtype=np.uint8)  # scikit-learn takes no empty frame
        if len(X):
            made = encoder.transform(pd.DataFrame(known, dtype=object))
        return pd.concat([X, pd.DataFrame(made, index, names)], axis=1)

    def _known(self, column: str, texts: np.ndarray) -> np.ndarray:
        bad = ~pd.Series(texts, dtype=object).isin(self.categories[column]).to_numpy()
        if not bad.any():
            return texts
        if column in self.others:
            return np.where(bad, OTHER, texts)
        value = texts[int(np.argmax(bad))]
        some = ", ".join(map(repr, self.categories[column][:12]))
        raise ValueError(
            f"Table needs categories that the first file had, but column {column!r} has "
            f"{value!r}, and the first file {some}. Correct it, make the table and "
            f"the model again with it, or let rare ones share a column with "
            f"encode=OneHot(most=20)."
        )


def learned(settings: Settings, texts: Mapping[str, np.ndarray]) -> Encoding:
    """The categories of the first file, without flags.

    Args:
        settings: has ``encode``.
        texts: all values of each source column of categories, NaN where missing.
    """
    categories, others = {}, []
    for column, values in texts.items():
        counts = {str(k): n for k, n in pd.Series(values).dropna().value_counts().items()}
        kept = settings.encode.kept(counts)
        if len(kept) < len(counts):
            others.append(column)
            kept = sorted({*kept, OTHER})
        categories[column] = tuple(kept)
    return Encoding(categories, tuple(others))
