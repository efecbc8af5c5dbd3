"""Defaults that functions, the estimator, the command line and messages share.

Nothing is imported here, so that the command line shows its help at once.
"""

DEFAULT_DISTRIBUTION = "multiscale"
# Anchors per cluster: cells then take about as many bytes as m = 5 K n frequencies, and at most a
# quarter of their time. With 20 the median SSE was the same to 0.0001.
CELLS_PER_CLUSTER = 16
# Frequencies up to which there are m = 5 K n beside cells too. Beyond, where they would take most
# of the pass, cells carry the result: there are as many per coordinate of a centroid as certify the
# cells, and still decode (`Settings.min_frequencies_per_coordinate`) if the cells are stale.
MANY_FREQUENCIES = 4000
FREQUENCIES_BESIDE_CELLS = 2
# Rows that `fit` samples beside the sketch: enough to start from and to keep outliers, and at ten
# columns about as many bytes as the sketch.
DEFAULT_POOL = 1000
# Seconds between two checkpoints: at most this much work is lost, and writing one takes far less.
CHECKPOINT_INTERVAL = 10.0
