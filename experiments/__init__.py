"""The experiments of the paper, one module per figure, run from the repository root
(`python -m experiments.figure1`). docs/reproduction.md has the results.
"""
