"""scikit-learn's own checks, with no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from ckm import CompressiveKMeans


@parametrize_with_checks([CompressiveKMeans()])
def test_scikit_learn_convention(estimator, check):
    check(estimator)
