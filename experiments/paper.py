"""The paper's numbers, read off its plots (so to two or three digits), in the units of our
summaries.
"""

# Figure 1: mean SSE over N for Range, Sample, K++.
FIGURE_1 = {
    ("gaussian", "lloyd"): (3.28e6 / 3e5, 3.36e6 / 3e5, 3.30e6 / 3e5),
    ("gaussian", "clompr"): (3.55e6 / 3e5, 3.45e6 / 3e5, 3.39e6 / 3e5),
    ("mnist", "lloyd"): (4.14e4 / 3e5, 3.36e4 / 3e5, 2.21e4 / 3e5),
    ("mnist", "clompr"): (3.24e4 / 3e5, 3.27e4 / 3e5, 3.12e4 / 3e5),
}

# Figure 2: where the relative SSE falls below two, "except for a deviation at low n".
FIGURE_2_RATIO = 5

# Figure 3: (method, replicates) -> (mean, deviation) for N = 70 000, 300 000 and 1 000 000.
SIZES = (70_000, 300_000, 1_000_000)
FIGURE_3_SSE = {
    ("lloyd", 1): ((0.141, 0.056), (0.126, 0.057), (0.102, 0.052)),
    ("lloyd", 5): ((0.074, 0.021), (0.063, 0.021), (0.045, 0.035)),
    ("clompr", 1): ((0.095, 0.026), (0.106, 0.053), (0.025, 0.000)),
    ("clompr", 5): ((0.093, 0.002), (0.094, 0.003), (0.025, 0.000)),
}
FIGURE_3_ARI = {
    ("lloyd", 1): ((0.795, 0.092), (0.792, 0.088), (0.864, 0.079)),
    ("lloyd", 5): ((0.904, 0.062), (0.869, 0.055), (0.940, 0.054)),
    ("clompr", 1): ((0.916, 0.018), (0.916, 0.041), (0.971, 0.001)),
    ("clompr", 5): ((0.918, 0.006), (0.923, 0.007), (0.971, 0.001)),
}

# Figure 4, relative to one run of Lloyd: (lowest, highest) of the curves.
# by m / (K n); 5 stands for 4.7
FIGURE_4_SSE = {1: (3.4, 4.1), 5: (1.4, 1.8), 10: (1.04, 1.12), 32: (0.93, 0.94)}
# by N, without sketching
FIGURE_4_TIME = {10**4: (23, 35), 10**5: (5.7, 8.7), 10**6: (0.34, 0.58), 10**7: (0.032, 0.053)}
SPEED_UP = 150  # at N = 10^7, one run of CKM given the sketch against five of Lloyd
