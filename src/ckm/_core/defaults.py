"""Defaults that functions, the estimator, the command line and messages share.

Nothing is imported here, so that the command line shows its help at once.
"""

DEFAULT_DISTRIBUTION = "multiscale"
# Anchors per cluster: cells then take about as many bytes as m = 5 K n frequencies, and at most a
# quarter of their time. With 20 the median SSE was the same to 0.0001.
CELLS_PER_CLUSTER = 16
# From so many clusters on, as many: placing takes most of the time there, whatever the number of
# cells. K = 1000 in five columns had 1.0016 times the SSE of KMeans(n_init=1) with 16, 0.9997 with
# 32 and 0.9990 with 48.
MANY_CLUSTERS = 500
CELLS_PER_CLUSTER_OF_MANY = 48
# Anchors at least, unless rows are projected: what ten clusters have, so that fewer clusters take
# no more work than ten. Of 136 designs for a table of customers (K = 6), 2 with 96 anchors had over
# 1.001 times the SSE of k-means (1.005), none with 160 (1.0006).
MIN_CELLS = 160
# Beside cells, which carry the result, there may be fewer frequencies than 5 K n: so many that they
# take at most this many multiply-adds per row and coordinate of a centroid (8 times what cells do;
# n + 16 for each frequency, so this concerns more than 10 columns), and at most so many in all.
MAX_WORK_BESIDE_CELLS = 130
MAX_FREQUENCIES_BESIDE_CELLS = 4000
# But as many, per coordinate, as certify the cells, and still decode if the cells are stale
# (`Settings.min_frequencies_per_coordinate`).
MIN_FREQUENCIES_BESIDE_CELLS = 2
# Where the design serves only the rows that it is chosen on, as in `fit`, the cells suit them, and
# there are no more than these; but so many for any K and n, which cost next to nothing.
MIN_FREQUENCIES_OF_FIT = 100
# Cells per cluster from which on fewer frequencies than unknowns will do: centroids are placed on
# the cells, which frequencies only judge. Two gave a median SSE of 1.006 times that of k-means.
MIN_CELLS_PER_CLUSTER = 2
# Frequencies that judge at least: their RMS residual is off by a fifth, and told sorted rows from
# others on every set tried.
MIN_JUDGES = 16
# Rows of so many columns and more are projected to a few numbers; sums of cells in all columns are
# kept up to so many numbers.
MIN_WIDE_COLUMNS = 64
MAX_WIDE_SUMS = 20_000_000
# Anchors of projected rows: as many per cluster as of others up to the first number in all, half as
# many up to the second, a quarter beyond. With twice as many, made embeddings had 0.9985 to 1.01
# times the SSE, and less of that of texts was explained.
USUAL_WIDE_CELLS = 160
HALF_WIDE_CELLS = 400
# Anchors per cluster, at least, that are worth sums in all columns.
MIN_WIDE_CELLS_PER_CLUSTER = 4
# Beside cells of projected rows there are at most so many frequencies, since they cost more of a
# row's time than all else; and where these are too few to decode without cells, so many, which
# judge the cells. Made embeddings had the same SSE with these and with five for each coordinate.
MAX_FREQUENCIES_OF_PROJECTED = 500
JUDGES_OF_PROJECTED = 200
# The number of columns that wide rows are projected to, where it is not known yet.
USUAL_AXES = 24
# Rows that `fit` samples beside the sketch: enough to start from and to keep outliers, and at ten
# columns about as many bytes as the sketch.
DEFAULT_POOL = 1000
# Seconds between two checkpoints: at most this much work is lost, and writing one takes far less.
CHECKPOINT_INTERVAL = 10.0
# Of a monitor: frequencies, rows of the reference, and rows to a false alarm.
DEFAULT_MONITOR_SIZE = 500
DEFAULT_REFERENCE = 5000
DEFAULT_RUN_LENGTH = 1_000_000.0
# The largest number of clusters that a curve shows, and that "auto" chooses from.
DEFAULT_MAX_CLUSTERS = 20


def usual_cells(n_clusters: int) -> int:
    """The number of anchors for so many clusters, unless rows are projected."""
    is_many = n_clusters >= MANY_CLUSTERS
    each = CELLS_PER_CLUSTER_OF_MANY if is_many else CELLS_PER_CLUSTER
    return max(MIN_CELLS, each * n_clusters)
