"""All tuned constants of the decoder in one frozen value, each with its unit and its reason.

A `Problem` carries its settings, so that a test or an ablation passes other ones:
`Problem.of(sketch, settings=replace(DEFAULT, max_members=4))`.
"""

from dataclasses import dataclass, replace

from ckm._core.defaults import MANY_CLUSTERS


@dataclass(frozen=True)
class Settings:
    """The decoder's tuned constants.

    Lengths are in units of sigma and variances in units of sigma^2, the scale of the frequencies: a
    cluster has a variance of about one. A value whose comment names no measurement was chosen by
    trial.
    """

    # --- The problem: which moments to trust, and stages from coarse to fine ---------------------

    # Standard deviations of the pilot sample. A sample that hardly contains the outliers gives the
    # box of all other rows; ten standard deviations hold even heavy-tailed columns.
    bulk_reach: float = 10.0
    # Share of the largest variance. A column all of whose squared deviations are below it adds so
    # little to the SSE that its outliers do not matter.
    negligible_variance: float = 1e-3
    # Standard deviations of the sampling noise. An atom whose weight stands out by this much is
    # hardly missed by a search; one standard deviation is the detection limit itself.
    clear_detection: float = 4.0
    # Share of the mean variance of a column. From here on a column has so much of the SSE that
    # its outliers should stand out clearly (`clear_detection`) for its moments to be trusted.
    large_variance: float = 0.5
    # |omega|^2 times the data's largest variance, where the paper's radii end: higher frequencies
    # cannot see the whole data at once. The first stage ends here.
    first_stage_reach: float = 7.0
    # Factor of |omega|^2 from one stage to the next: atoms placed at one stage should lie in the
    # right valley of the next.
    stage_factor: float = 8.0
    # Frequencies per column that a stage has at least: fewer hardly determine where atoms are.
    min_stage_frequencies_per_column: int = 2

    # --- Products with Omega ---------------------------------------------------------------------

    # Columns from which the fast Hadamard transform is faster than a BLAS matrix product.
    min_transform_columns: int = 64
    # Phases per block: with their cosines and sines they stay in the cache.
    block_phases: int = 2**14
    # Frequencies per block at least, so that a product is worth its call.
    min_block_frequencies: int = 256

    # Largest phase, in turns, for which float32 will do: it errs by 2^-24 of it, so that waves are
    # good to 2e-4, a tenth of the residual that ends a descent (`target_residual`).
    max_single_turns: float = 512.0
    # Entries of Omega that are copied to float32: 64 MB.
    max_single_entries: int = 2**24

    # --- Decoding on a GPU -----------------------------------------------------------------------

    # K m. Below it a GPU, asked for one evaluation at a time, is no faster than the CPU
    # (benchmarks/gpu_decode.py).
    min_gpu_pairs: int = 200_000
    # Threads that launch work on the GPU: two keep it busy.
    gpu_threads: int = 2
    # Atoms times frequencies per block: 64 MB for each float64 array of that size.
    gpu_block_pairs: int = 2**23
    # Pairs of points and centroids from which k-means on a GPU takes less time than on the CPU.
    min_gpu_placing_pairs: int = 2**22

    # --- L-BFGS ----------------------------------------------------------------------------------

    # Steps that the approximation of the Hessian remembers (SciPy's default is 10): remembering
    # costs little beside an evaluation.
    lbfgs_memory: int = 12
    # Gain, as a share of the cost (of one, where the cost is below), that ends a descent after two
    # such steps in a row: rounding is far below it.
    descent_gain: float = 1e-9
    # Gradient that ends a descent.
    descent_slope: float = 1e-8
    # Steps after which `Limits.abort_above` is compared with the cost.
    abort_check_step: int = 10
    # Evaluations along one direction before it is given up.
    max_line_evaluations: int = 20
    # Share of the first slope that a step gains at least (Armijo; the textbook's value).
    sufficient_decrease: float = 1e-4
    # Share of the first slope that a step leaves at most (Wolfe; the textbook's value).
    max_slope_left: float = 0.9
    # Factor of the step length where the cost still falls as steeply as at first.
    step_growth: float = 4.0
    # Factors of the step length, at least and at most, where the cost rose: the minimum of a
    # parabola is a guess, and should not end up at either of its ends.
    min_step_shrinkage: float = 0.1
    max_step_shrinkage: float = 0.5

    # --- CLOMPR (Algorithm 1) --------------------------------------------------------------------

    # L-BFGS steps of step 1, one centroid, and the gradient that ends them.
    ascent_steps: int = 100
    ascent_slope: float = 1e-5
    # L-BFGS steps of step 5, all centroids, and the gradient that ends them.
    clompr_steps: int = 200
    clompr_slope: float = 1e-7

    # --- Mixtures of blurred atoms ---------------------------------------------------------------

    # Share of the average weight: a lighter atom is moved as if it had this weight. In units of its
    # own weight it would jump, also to where no rows are: with 0.1, outliers cost up to 1.38 times
    # the SSE of k-means where one leaves 1.16.
    light_atom: float = 1.0
    # Factor of the unit of weights. All atoms add up in the weights, more than in their centres, so
    # that the cost is more curved there than its diagonal says.
    weight_unit: float = 0.5
    # Largest weight of an atom: far above one, which all have together; its square is a float32.
    max_weight: float = 1e6
    # Variance. Frequencies of the scale sigma see nothing of a wider Gaussian.
    max_width: float = 50.0
    # Widths of the first atoms, estimated by k-means on particles, are kept within these variances.
    min_start_width: float = 0.05
    max_start_width: float = 10.0
    # Particles per atom of the first measure: enough for k-means to place the atoms on. With 4, ten
    # clusters of unequal widths among scattered rows had 1.5 and 4.5 times the SSE of k-means for
    # one data set of 20; more take longer on most sets (8: a tenth).
    particles_per_atom: int = 6
    # Runs of that k-means: a descent follows, so two are enough; and one for many atoms, whose
    # seeds, drawn one after another, took a third of the time of decoding on a GPU.
    particle_runs: int = 2
    many_atoms: int = 2000
    # Gradient, per particle, that ends the descent of particles.
    particle_slope: float = 1e-5
    # Points scored against the residual for a replacement, drawn from the prior, and how many more
    # for each atom that is replaced; half as many are drawn near the atoms.
    replacement_candidates: int = 300
    candidates_per_atom: int = 10
    # Neighbours of an atom that came or went which are descended first. A wave of one cluster fades
    # within a few clusters.
    near_atoms: int = 6
    # Share of all atoms up to which those near a change are descended before all are.
    max_near_share: float = 0.3
    # Multiple of the cost before, above which a change that was descended nearby is given up;
    # and of the noise floor, above which a search has failed and its last descent is left out.
    hopeless_factor: float = 2.0
    # Variance added to an atom's own where candidates are drawn near it, and where two candidates
    # count as one: so that candidates near a Dirac differ too.
    candidate_variance: float = 0.5
    # L-BFGS steps of step 1 for a candidate: a joint descent follows.
    candidate_steps: int = 20
    # L-BFGS steps after the particles are drawn; at each stage of a start of the ensemble;
    # after a replacement; between replacements and stages of a search; and at the end.
    particle_steps: int = 15
    start_steps: int = 40
    replacement_steps: int = 60
    stage_steps: int = 150
    final_steps: int = 300
    # Gain, as a share of the cost, that ends the last descent of a search; the others end at
    # `descent_gain`.
    final_gain: float = 1e-12
    # A mixture counts as converged if further steps leave more than this share of its cost.
    converged_ratio: float = 0.5
    # Rounds of replacement at most, and how many more per atom: each atom may be replaced a few
    # times.
    max_rounds: int = 100
    max_rounds_per_atom: int = 4
    # Failures in a row that end the search while the residual is above the noise floor. On 81 data
    # sets no search that ended at the floor had three before the next gain, and more take a tenth
    # of the time of decoding where atoms of one width are no use.
    patience: int = 3
    # The same at the floor, where one more per so many atoms is allowed: atoms fit some of the
    # noise, so that a cost at the floor may still hide a missing one.
    floor_patience: int = 2
    atoms_per_floor_patience: int = 5
    # Share of the cost that a replacement must gain above the floor; a smaller one is rounding.
    min_gain: float = 1e-3
    # The same at the floor: more than a few further steps of descent bring.
    floor_gain: float = 0.05
    # The same at the floor, where those further steps have been made: more than noise brings.
    converged_gain: float = 0.01
    # At the floor, a replacement whose cost is above this many times the cost before after a few
    # steps is aborted. Those that came to gain were below twice the cost by then.
    abort_factor: float = 10.0
    # One atom in so many is replaced at once in a search for several missing ones.
    atoms_per_replacement: int = 20
    # The same where the start is far from the sketch.
    atoms_per_repair: int = 5

    # --- Separate clusters: when K atoms are the answer ------------------------------------------

    # Share of the atoms' variance that is left when points go to their nearest centre. Below the
    # first the atoms overlap so much that no search separates them; above the second the atoms'
    # centres are the centroids.
    min_own_variance: float = 0.85
    separate_own_variance: float = 0.95
    # Points drawn to find these shares.
    overlap_points: int = 4000
    # Ratio of the loss of merging two atoms to the gain of splitting the heaviest, above which
    # k-means would not do so, and is not run.
    clear_split_ratio: float = 2.0
    # Points drawn from the mixture, at least, and at least per cluster.
    mixture_points: int = 30_000
    mixture_points_per_cluster: int = 400
    # One point in so many shows whether centroids belong elsewhere; all of them then refine these.
    point_thinning: int = 4

    # Searches for K atoms in a private release, of which the best is kept. On the paper's data with
    # much noise one search found the best atoms in half of the tries.
    noised_searches: int = 8

    # --- Tight groups, more than clusters --------------------------------------------------------

    # Share of the frequencies in each of the two outermost bands whose |z|^2 are compared, and how
    # many there are at least and at most: the wider a band, the more it sees of what is wider.
    outer_share: float = 0.125
    min_outer_frequencies: int = 8
    max_outer_frequencies: int = 64
    # Ratio of the outer to the inner mean from which on tight groups are seen, but for chance: that
    # of 30 to 100 groups was 0.7 to 1.3, that of smooth data 0.1 to 0.5. In one image of ten it is
    # above, and the search fails, in a third of the time of decoding.
    min_level: float = 0.8
    # Multiple of the noise that the outer mean has at least.
    min_outer_noise: float = 10.0
    # Groups per cluster from which on they are searched for, and atoms per group: groups of unequal
    # shares are more than they seem.
    tight_groups_per_cluster: float = 1.5
    atoms_per_tight_group: float = 1.5
    # Share of the atoms that a sketch determines, up to which as many groups are searched for.
    max_tight_share: float = 0.9
    # Share of the noise floor that their atoms may leave: rows are what was sketched, not what they
    # were drawn from. Atoms for all groups left 1e-5 to 5e-4, those along a curve 0.01 and more.
    max_tight_cost: float = 2e-3

    # --- The ensemble ----------------------------------------------------------------------------

    # Members. Each has errors of its own that the others average out.
    max_members: int = 10
    min_members: int = 3
    # Multiply-adds in one evaluation of all members: beyond it there are fewer of them.
    max_ensemble_work: float = 5e7
    # Both for dozens to hundreds of clusters (from `several_clusters` to `many_clusters`), and
    # points per cluster that are drawn from all members: where many centroids share borders,
    # errors of a few members do not average out. On maps of 300 towns (seeds 20 and 21), centroids
    # of 3, 10 and 20 members had 1.049, 1.034 and 1.028 times the SSE of `fit`.
    several_members: int = 20
    several_ensemble_work: float = 1.6e9
    several_points_per_cluster: int = 800
    # Multiply-adds in one evaluation of one member, below which members are matched one after
    # another: threads would wait for the interpreter more than they gain.
    min_threaded_work: float = 4e6
    # Multiply-adds that the cosine, the sine and the blur of one atom at one frequency take, beside
    # n for its phase.
    atom_work: int = 20
    # Multiple of the members' median cost, above which one is left out: it missed a cluster. Most
    # members differ by less than twice.
    poor_member: float = 4.0
    # Atoms per cluster: enough to follow clusters that are no Gaussians.
    atoms_per_cluster: int = 4
    # Atoms per cluster that are tried first: the fewest that explain the sketch up to noise are
    # enough. Only for all numbers of clusters at once is that less (`of_every_number`).
    fewest_atoms_per_cluster: int = 4
    # L-BFGS steps of one member.
    member_steps: int = 120
    # Gradient that ends the descent of a member.
    member_slope: float = 1e-9
    # Multiple of the noise floor above which atoms of a member are replaced, and the rounds of
    # replacement at most.
    repair_above: float = 2.0
    repair_rounds: int = 8
    # Mean squared residual per frequency that ends a descent, and the same as a share of the noise
    # floor. Below them widths fit the noise.
    target_residual: float = 2e-6
    target_noise: float = 0.5
    # L-BFGS steps of the sampled rows towards the sketch: they should move as little as it asks.
    row_steps: int = 60
    # Sampled rows per cluster that weigh as much as all members. The weight of fewer falls with the
    # square of their number (on a map of 50 towns, 20 rows per cluster at a fifth of the weight
    # cost 4 % of SSE), that of more grows with it: 20 000 of two million customers (K = 6) with the
    # weight of all members cost 2 to 4 %.
    trusted_rows_per_cluster: int = 100

    # --- Sampled rows and outliers ---------------------------------------------------------------

    # Sampled rows per cluster below which the moments are a better place to start from.
    start_rows_per_cluster: int = 10
    # Share of the weight in rows that the pool holds once, above which it surely lacks others: that
    # its distinct rows are all there are is then not tried.
    max_unseen_weight: float = 0.01
    # RMS residual per frequency, up to which these rows, with the shares that fit best, are all:
    # what one row makes, 1/N, or this, which rounding is below (it left 3e-8).
    exact_residual: float = 1e-6
    # Probability of being in the pool, above which most rows like it are there too: such rows are
    # the known outliers.
    known_probability: float = 0.5
    # Share of the weight. Above it known rows are no outliers but much of the data.
    max_known_share: float = 0.1
    # Largest exponent of a tail: its second row is then at 2^-20 of the bound, within the bulk.
    max_tail_exponent: float = 20.0
    # Multiple of the distance up to which the sketch sees rows of the bulk, beyond which points of
    # its measure are left out. Two outliers beside 30 000 rows in five clusters: 1.12 times the SSE
    # of these clusters or more in four of eight tries without, in one with 1.5 to 2.5. With 1.5 one
    # of four sketches of Shuttle lost 2 %.
    sight_factor: float = 2.0
    # Distance of a group of outliers from the mean, in units of that of its farthest row.
    group_mean: float = 0.9
    # Multiple of the distance up to which the sketch sees rows, beyond which outliers on one side
    # are a group: tails (lognormal, Pareto, Student's t) reach to 5 to 15 times that distance,
    # codes for missing values to a hundred times.
    group_gap: float = 30.0
    # Other outliers lie evenly in log distance, from this share of the bound on: so did Shuttle's.
    # In groups, a curve's centroids were up to 1.2 times the SSE of k-means, now 1.1.
    spread_start: float = 0.1
    spread_points: int = 12

    # --- Cells -----------------------------------------------------------------------------------

    # RMS residual per frequency, above what noise explains, up to which the sketch certifies the
    # cells. Anchors that suited the rows left 0.001 to 0.036 with 20 cells per cluster and up to
    # 0.07 with 3, those of the first fifth of sorted rows 0.02 to 0.17.
    certified_residual: float = 0.1
    # From this residual on, cells must not be much wider than those of the rows that chose the
    # anchors: rows that have moved are far from all anchors (the first fifth of sorted rows: 1.4
    # times as wide where it did no harm, 2 to 300 times where it did).
    suspect_residual: float = 0.008
    max_widening: float = 1.2
    # The same where the sketch is too small to be decoded alone: its centroids would be worse than
    # those of cells that are moderately wide.
    max_widening_small: float = 8.0
    # Multiple of the noise floor that is no part of the residual.
    cell_noise_ratio: float = 1.5
    # Points per cluster of all draws together, whose means the centroids are. With K = 1000 and
    # 200 points each, the SSE was 0.4 % higher.
    drawn_points_per_cluster: int = 1600
    # The same for all clusters together, at least: columns that hardly matter for distances are
    # then known to half a percent of their standard deviation, in a tenth of a second.
    drawn_points: int = 200_000
    # Up to so many clusters k-means converges on these points, in a tenth of a second. On 16 000
    # points it may end in a minimum that only these points have: 4 of 136 designs with 96 cells for
    # a table of customers (K = 6) were 0.2 to 0.5 % above k-means, and two with one large draw.
    few_clusters: int = 12
    # Draws at most that share these points, each with as many as centroids are placed on: half as
    # many cost 0.02 % of the SSE on MNIST's principal components. Each is made where the one before
    # shows that borders are: for two million customers (K = 6, 14 tables) the largest distance of a
    # centroid from the mean of its rows was 0.0083 standard deviations with points for all cells,
    # 0.0074 with one such draw of half as many points, 0.0057 with two.
    few_draws: int = 2
    # But at most so many per row: decoding should not take as long as k-means on the rows.
    max_points_per_row: float = 0.25
    # The part of them that is shared evenly among cells, so that borders may move to others.
    even_points: float = 0.3
    # Squared movement of all centroids, relative to the mean variance of the points, that ends
    # their k-means. On the same tables (rows in memory, five seeds) the largest of these distances
    # was 0.0098 with 1e-5, and 0.0050 with this or less, in 0.02 s more.
    few_tolerance: float = 1e-7
    # From so many clusters on, k-means converges slowly, and to the drawn points rather than to the
    # cells. So many points per cluster are drawn at first...
    many_clusters: int = MANY_CLUSTERS
    many_points_per_cluster: int = 200
    # ... and then so many on one draw, of at most so many numbers (128 MB), on which there are so
    # many steps, with this share of a step made again before the next (`lloyd`).
    many_drawn_points_per_cluster: int = 4000
    max_drawn_numbers: int = 2**24
    many_steps: int = 90
    many_momentum: float = 0.95
    # Whether points that refine are drawn within the borders of their cells. With K = 500 in five
    # columns and 16 cells per cluster that takes 0.2 % off the SSE; on nine sets with 7 to 20
    # clusters 0.01 % on average, and 0.05 % where clusters are unbalanced.
    draws_within_borders: bool = True
    # Multiple of the variance within cells, above which a cell holds outliers...
    wide_cell: float = 30.0
    # ... and the share of the SSE in such cells that is reported.
    max_wide_share: float = 0.05

    # Phase, in radians, that a standard deviation of a column makes at the longest frequency, below
    # which frequencies do not tell where in the column an atom lies.
    min_resolved_phase: float = 0.5
    # Standard deviations from the mean up to which the coordinates of centroids in such columns are
    # extrapolated from the others.
    max_regression_distance: float = 2.0

    # --- Placing centroids on a measure ----------------------------------------------------------

    # Points drawn from an ensemble or from cells, at least in all and per cluster.
    placing_points: int = 16_000
    placing_points_per_cluster: int = 200
    # Runs of breathing k-means on the means of atoms or cells. With few clusters, of which some may
    # be outliers, there are fewer ways out of a local minimum, and runs are fast:
    # `few_clusters_times_runs` is their number times K, up to a maximum. With many clusters runs
    # differ little, and are slow: `many_clusters_times_runs`. Between the two there are five, and
    # ten where runs often end in different local minima, from `several_clusters` on: on maps of 50
    # towns ten instead of five took 0.11 % off the mean SSE, and 0.06 s more. If most of the five
    # have an error this close to the best, as a share of it, they are enough: so they had on three
    # of four sets of 50 Gaussian clusters in ten columns, where ten take 0.14 s more for nothing.
    usual_placing_runs: int = 5
    max_placing_runs: int = 20
    few_clusters_times_runs: int = 60
    many_clusters_times_runs: int = 500
    several_clusters: int = 30
    several_placing_runs: int = 10
    agreeing_error: float = 4e-4
    # Iterations of a run of k-means: as many as scikit-learn's.
    placing_iterations: int = 300
    # Share of the SSE by which a search must be better than k-means from given centroids to replace
    # them: as much as SSEs on drawn points differ by chance, so that clusters stay from day to day.
    start_preference: float = 1e-3
    # How many of these runs, the best ones, many points refine and compare.
    refined_runs: int = 3
    # Means of atoms or cells per cluster, below which they hardly show which runs are the best, so
    # that all runs are refined: with five cells per cluster of china.jpg this lowered the mean SSE
    # by 0.1 %.
    few_means_per_cluster: int = 12

    # --- Diagnosis -------------------------------------------------------------------------------

    # Share of the total variance below which an SSE is rounding: equal rows leave about 1e-10.
    rounding_share: float = 1e-8
    # Steps of Lloyd's algorithm that show what centroids may gain: the first few gain most.
    regret_steps: int = 10
    # Points drawn from other measures with the same cells, in all and per cluster. With 40 per
    # cluster, centroids of many clusters follow single points: a regret of 0.031 for 0.021.
    regret_points: int = 2000
    regret_points_per_cluster: int = 200
    # Share of the SSE that the centroids of one plausible measure gain, above which a result is in
    # doubt. Centroids of all measures together are better than those of one, so that it may be
    # larger than the SSE that is lost. Good results had up to 0.053; most of those above 1.05 times
    # the SSE of k-means had 0.06 to 0.8, some up to 1.11 had 0.01 to 0.04 (benchmarks/statuses.py).
    max_regret: float = 0.06
    # The same for other measures with the same cells: good results had up to 0.011, cells that are
    # too few or too wide 0.04 to 0.8.
    max_cell_regret: float = 0.03
    # The same for the standard deviation of the SSE over measures: good results had up to 0.06,
    # light clusters far away 0.08, narrow clusters beside wide ones 0.12 and more. Both together
    # count as the root of the sum of their squares, each as a share of its limit.
    max_disagreement: float = 0.09
    # Centroids per row from which on k-means gains from fitting chance what frequencies cannot: ten
    # clusters of 200 rows were decoded to up to 1.06 times the SSE of k-means.
    max_fitted_share: float = 0.03
    # Ratio of variances, either way, above which frequencies were chosen for other rows, and the
    # factor of both limits there: rows that have moved are described less well than members say.
    # Designs of the first twentieth of sorted rows with a regret of 0.03 to 0.05 gave 1.03 to 1.09.
    moved_variance_ratio: float = 4.0
    moved_limit: float = 0.5
    # The same factor where there may be more tight groups than clusters, and this many times those
    # that the frequencies determine: members are too smooth. With a hundred groups (40 sketches),
    # 20 results for ten clusters were more than 1.05 times the SSE of k-means with 0.43 to 0.66 of
    # the limits; the level of the outermost frequencies (`min_level`) was 0.6 to 1.4.
    tight_limit: float = 0.42
    min_hidden_share: float = 1.25
    min_hidden_level: float = 0.55
    # Share of the SSE that the noise of a private release may be expected to add without a finding.
    max_noise_excess: float = 0.05
    # Squared distance by which this noise may be expected to move a centroid without a finding, as
    # a share of the mean squared distance of rows to theirs. Of 10^4 rows of the paper's data at
    # epsilon = 0.3, four of five runs that lost over 4 % had a centroid of weight 0.014 to 0.021,
    # which is about 1.2 to 0.5; all others had 0.075 or more, about 0.04 or less (seeds 0 to 29).
    max_noise_displacement: float = 0.2
    # Share of the SSE by which the variance of the data may differ from that of separate clusters,
    # and share of the total variance, which the weights of clusters far apart do not give exactly.
    # Beyond it an ensemble is recovered instead.
    max_variance_error: float = 0.05
    max_total_variance_error: float = 0.002

    # Variance across the axes that rows were projected to, as a multiple of that in the sample that
    # chose them, and as a share of that along them, above which axes do not fit the rows. Axes fit
    # the sample better than other rows: made embeddings had up to 1.2 times as much.
    max_unseen_ratio: float = 1.5
    max_unseen_share: float = 0.05

    # Share of the average weight of a centroid, below which one counts as starved.
    starved_share: float = 0.01
    # Share of a centroid's weight in known outliers, above which it is not starved: it is where
    # rows are known to be.
    max_starved_known_share: float = 0.5
    # RMS difference per frequency of the sketches of two centroids that pass for one.
    merged_difference: float = 0.1
    # Ratio of variances above which frequencies miss what separates clusters.
    max_scale_ratio: float = 25.0
    # Variance of separate clusters below which frequencies of the scale one hardly resolve those
    # that are close. On the paper's data 0.06 gave up to 1.06 times the SSE of k-means, 0.03 up to
    # 1.2, and 0.24 1.001.
    min_resolved_variance: float = 0.1
    # RMS residual per frequency that is left unexplained without a finding.
    max_residual: float = 0.03
    # Multiple of the noise floor that a cost may have without a finding: the floor is only the
    # expected cost of the best atoms.
    max_noise_ratio: float = 2.0
    # Frequencies per coordinate of a centroid below which centroids are in doubt (the paper's
    # Section 4.3 finds about 5 to be enough).
    min_frequencies_per_coordinate: int = 2

    def of_wide_rows(self) -> "Settings":
        """Those for rows that were projected: fewer points, since each takes so much longer in many
        dimensions, and the cells keep the means of their rows; and fewer runs for many clusters, so
        that time grows no faster than K. With twice as many points and four times as many runs,
        made embeddings of K = 50 to 200 had 0.999 to 1.003 times the explained share of these,
        and took 1.1 to 2 times as long.
        """
        return replace(
            self,
            placing_points=4000,
            drawn_points=40_000,
            placing_points_per_cluster=20,
            several_points_per_cluster=20,
            several_members=self.max_members,
            several_ensemble_work=self.max_ensemble_work,
            many_points_per_cluster=40,
            drawn_points_per_cluster=200,
            many_drawn_points_per_cluster=200,
            regret_points_per_cluster=60,
            many_clusters_times_runs=250,
            many_steps=10,
            many_momentum=0.0,
            # Of a Gaussian in many dimensions hardly anything is within its cell.
            draws_within_borders=False,
            # Four cells per cluster leave more open: descriptors of 128 columns (K = 100) had a
            # regret of 0.06 at 1.02 times the SSE of k-means.
            max_cell_regret=0.08,
        )

    def of_every_number(self) -> "Settings":
        """Those for a measure on which all numbers of clusters up to K are placed. Fewer clusters
        have more atoms each, and atoms that the sketch does not ask for spread: with four per
        cluster, the SSE for K = 20 was 6 % too large on digits and 5 % on long Gaussian clusters,
        with as few as explain the sketch 2 % each (`python -m benchmarks.curve --sections sse`).
        MNIST's spectral features need five: with four, centroids were up to 10 % above k-means.
        """
        points = max(self.placing_points, DEFAULT.placing_points)
        return replace(self, fewest_atoms_per_cluster=2, atoms_per_cluster=6, placing_points=points)

    def points_on_cells(self, K: int) -> int:
        """The number of points drawn from cells that centroids are placed on."""
        is_many = self.many_clusters <= K
        each = self.many_points_per_cluster if is_many else self.placing_points_per_cluster
        return max(self.placing_points, each * K)

    def points_on_atoms(self, K: int, n: int) -> int:
        """The number of points drawn from the members of an ensemble."""
        each = self.several_points_per_cluster if self._are_several(K) else 0
        most = self.max_drawn_numbers // n
        return max(self.placing_points, self.placing_points_per_cluster * K, min(each * K, most))

    def members(self, K: int, work: float) -> int:
        """The number of members of an ensemble, of which one evaluation of each takes this many
        multiply-adds.
        """
        most, total = self.max_members, self.max_ensemble_work
        if self._are_several(K):
            most, total = self.several_members, self.several_ensemble_work
        return max(self.min_members, min(most, int(total / work)))

    def _are_several(self, K: int) -> bool:
        return self.several_clusters <= K < self.many_clusters

    def placing_runs(self, K: int) -> int:
        """The number of runs of breathing k-means on the means of atoms or cells."""
        most = max(1, min(self.max_placing_runs, self.many_clusters_times_runs // K))
        is_several = self.several_clusters <= K
        usual = self.several_placing_runs if is_several else self.usual_placing_runs
        return min(most, max(usual, self.few_clusters_times_runs // K))

    def runs_on_rows(self, K: int) -> int:
        """The same on few distinct rows, which take a millisecond: 30 of them with K = 12 ended up
        to 6 % above the best of a hundred runs with three, up to 4 % with twenty.
        """
        most = self.many_clusters_times_runs // K
        return max(self.usual_placing_runs, min(self.max_placing_runs, most))

    def refinements(self, K: int, means: int) -> int:
        """How many of these runs on so many means are refined on points."""
        is_few = means < self.few_means_per_cluster * K
        return self.placing_runs(K) if is_few else self.refined_runs


DEFAULT = Settings()
