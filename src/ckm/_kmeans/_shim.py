"""Stands in for `ckm._kmeans.assign.Centroids` until that exists; then this file goes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._kmeans.assign import Labelling, assign, distances, label_rows
from ckm._kmeans.centroids import Clusters, open_for
from ckm._sources.adapters import in_units
from ckm._util.parallel import thread_count


@dataclass(frozen=True)
class Centroids:
    values: Any
    units: Any = None
    columns: tuple[str, ...] | None = None

    @property
    def _m(self) -> Any:
        return self.values if self.units is None else self.values / self.units

    def open(self, data: Any, made: str, where: str) -> Any:
        return open_for(data, self.columns, self.values.shape[1], made, where)

    def label(self, source: Any, n_jobs: Any = None) -> Any:
        return Clusters(self.values, self.units, n_jobs=n_jobs).label(source)

    def sse(self, source: Any, n_jobs: Any = None) -> Any:
        return Clusters(self.values, self.units, n_jobs=n_jobs).sse(source)

    def assign(self, source: Any, n_jobs: Any = None) -> Any:
        return assign(in_units(source, self.units), self._m, n_threads=thread_count(n_jobs))

    def distances(self, source: Any, n_jobs: Any = None, dtype: Any = np.float64) -> Any:
        return distances(in_units(source, self.units), self._m, thread_count(n_jobs), dtype)

    def summarise(
        self,
        source: Any,
        on_labels: Any = None,
        on_rows: Any = lambda *a: None,
        nan: Any = "error",
        n_jobs: Any = None,
    ) -> Labelling:
        return label_rows(
            in_units(source, self.units),
            self._m,
            n_threads=thread_count(n_jobs),
            on_labels=on_labels,
            on_rows=on_rows,
            nan=nan,
        )
