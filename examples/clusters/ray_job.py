"""Cluster the Parquet files of a folder on a Ray cluster: python ray_job.py ADDRESS RUNTIME.yaml
DATA CENTROIDS.csv (see ray.yaml).
"""

import sys
from pathlib import Path

import numpy as np
import ray
import yaml

from ckm import CompressiveKMeans

if __name__ == "__main__":
    address, runtime, data, output = sys.argv[1:]
    ray.init(address=address, runtime_env=yaml.safe_load(Path(runtime).read_text()))
    model = CompressiveKMeans(n_clusters=10, random_state=0).fit(ray.data.read_parquet(data))
    np.savetxt(
        output,
        model.cluster_centers_,
        delimiter=",",
        header=",".join(model.feature_names_in_),
        comments="",
    )
    ray.shutdown()
