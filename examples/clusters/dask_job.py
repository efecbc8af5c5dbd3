"""Cluster the Parquet files of a folder on a Dask cluster: python dask_job.py SCHEDULER_FILE DATA
CENTROIDS.csv (see dask.yaml).
"""

import sys

import dask.dataframe as dd
import numpy as np
from distributed import Client

from ckm import CompressiveKMeans

if __name__ == "__main__":
    scheduler_file, data, output = sys.argv[1:]
    with Client(scheduler_file=scheduler_file):
        model = CompressiveKMeans(n_clusters=10, random_state=0).fit(dd.read_parquet(data))
    np.savetxt(
        output,
        model.cluster_centers_,
        delimiter=",",
        header=",".join(model.feature_names_in_),
        comments="",
    )
