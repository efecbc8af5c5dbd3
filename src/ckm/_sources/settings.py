"""How much is read at a time, and how much for a sample."""

from dataclasses import dataclass

# Rows of a block, as the kernels take them.
BLOCK_ROWS = 2**14
_MIN_CHUNK_ROWS = 256
# A float64 number and its column.
SPARSE_NUMBER_BYTES = 12


@dataclass(frozen=True)
class ReadSettings:
    """Sizes that sources read by. Results do not depend on them, samples do.

    Parameters
    ----------
    chunk_bytes : int
        Bytes of a chunk of float64 rows. Large enough that the cost per chunk vanishes, small
        enough that several chunks stay in memory.
    sampled_bytes : int
        Bytes of float64 rows that a sample may read before it reads only some parts of the data.
    head_bytes : int
        Bytes of float64 rows that a sample is drawn from if the data can be read only once.
    csv_block_bytes : int
        Bytes of CSV lines that are parsed at a time.
    csv_run_bytes : int
        Bytes of CSV lines, at least, in each of the runs that a sample is drawn from.
    max_line_bytes : int
        Bytes of the longest line of CSV that is read. It must be in memory as a whole.
    mapped_bytes : int
        Bytes of a record batch of an Arrow file above which the file is mapped to memory.
    max_batch_bytes : int
        Bytes of the largest record batch that is read from a pipe, where it must be in memory as a
        whole.

    Examples
    --------
    >>> ReadSettings().rows_per_chunk(n_features=10)
    98304
    """

    chunk_bytes: int = 8 * 2**20
    sampled_bytes: int = 32 * 2**20
    head_bytes: int = 32 * 2**20
    csv_block_bytes: int = 4 * 2**20
    csv_run_bytes: int = 2**15
    max_line_bytes: int = 64 * 2**20
    mapped_bytes: int = 64 * 2**20
    max_batch_bytes: int = 2**30

    def rows_per_chunk(self, n_features: int) -> int:
        """The rows of a chunk: a whole number of blocks if they are more than one block."""
        return max(_MIN_CHUNK_ROWS, self.whole_blocks(self.chunk_bytes // (8 * n_features)))

    def whole_blocks(self, rows: int) -> int:
        """So many rows or fewer: a whole number of blocks if they are more than one block."""
        return rows - rows % BLOCK_ROWS if rows > BLOCK_ROWS else rows

    @property
    def sparse_numbers(self) -> int:
        """The numbers of a chunk of sparse rows, each with its column."""
        return max(1, self.chunk_bytes // SPARSE_NUMBER_BYTES)

    def rows_to_sample(self, size: int, n_features: int) -> int:
        """The rows to read for a sample of `size` rows: several times as many."""
        return max(4 * size, self.sampled_bytes // (8 * n_features))


DEFAULT_SETTINGS = ReadSettings()
