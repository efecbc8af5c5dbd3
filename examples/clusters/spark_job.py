"""Cluster the Parquet files of a folder on a Spark cluster: spark-submit spark_job.py DATA
CENTROIDS.csv (see spark.conf).
"""

import sys

import numpy as np
from pyspark.sql import SparkSession

from ckm import CompressiveKMeans

if __name__ == "__main__":
    data, output = sys.argv[1:]
    spark = SparkSession.builder.appName("ckm").getOrCreate()
    model = CompressiveKMeans(n_clusters=10, random_state=0).fit(spark.read.parquet(data))
    np.savetxt(
        output,
        model.cluster_centers_,
        delimiter=",",
        header=",".join(model.feature_names_in_),
        comments="",
    )
    spark.stop()
