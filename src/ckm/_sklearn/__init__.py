"""The part of the estimator that is scikit-learn's interface, not the method itself."""
