"""Defaults that functions, the estimator, the command line and messages share.

Nothing is imported here, so that the command line shows its help at once.
"""

DEFAULT_DISTRIBUTION = "multiscale"
# Anchors per cluster: cells then take about as many bytes as m = 5 K n frequencies.
CELLS_PER_CLUSTER = 20
# Rows that `fit` samples beside the sketch: enough to start from and to keep outliers, and at ten
# columns about as many bytes as the sketch.
DEFAULT_POOL = 1000
# Seconds between two checkpoints: at most this much work is lost, and writing one takes far less.
CHECKPOINT_INTERVAL = 10.0
