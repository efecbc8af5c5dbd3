"""scikit-learn's own checks, with no expected failures."""

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from ckm import CompressiveGaussianMixture, CompressiveKMeans


# Some checks fit eight clusters to four distinct rows, which causes this warning.
@pytest.mark.filterwarnings("ignore::ckm.errors.ClustersWarning")
@parametrize_with_checks(
    [
        CompressiveKMeans(),
        CompressiveGaussianMixture(),
        CompressiveGaussianMixture(2, covariance_type="full"),
    ]
)
def test_scikit_learn_convention(estimator, check):
    if "on_sparse_data" in str(check) and not get_tags(estimator).input_tags.sparse:
        pytest.skip("scikit-learn 1.6 asks this of estimators that take no sparse rows, too")
    check(estimator)
