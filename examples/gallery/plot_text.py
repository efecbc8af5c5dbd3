"""
Topics of texts
===============

Documents are counted as TF-IDF: rows of some thousand columns, nearly all of them zero. They are
clustered as the sparse rows that they are, by their directions (``metric="cosine"``), and clusters
are named by the terms with the largest values in their centroids.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from ckm import CompressiveKMeans

TOPICS = {
    "space": "orbit launch moon rocket shuttle satellite lunar mission solar probe",
    "hockey": "goal puck team season playoff coach league goalie period score",
    "medicine": "patient doctor disease treatment symptom dose vaccine clinic blood pain",
    "baking": "dough flour oven yeast butter sugar crust recipe knead loaf",
    "music": "chord guitar melody rhythm album concert drummer singer tempo studio",
    "chess": "pawn bishop knight opening endgame castle rook gambit mate blunder",
}
DOCUMENTS = 3000
WORDS = 5000  # beside those of the topics
K = len(TOPICS)
rng = np.random.default_rng(0)


def zipf(count: int) -> np.ndarray:
    """Return the shares of words whose frequency falls with their rank."""
    shares = 1 / np.arange(3, count + 3)
    return shares / shares.sum()


def make_documents() -> tuple[list[str], np.ndarray]:
    """Return documents and their main topics: half of the words are common ones, the others are of
    the main topic and a little of the rest.
    """
    vocabulary = np.array([f"word{i}" for i in range(WORDS)])
    own = [np.array(words.split()) for words in TOPICS.values()]
    # A topic also prefers some of the common words.
    usual = [np.concatenate([words, rng.permutation(vocabulary)[:490]]) for words in own]
    main = rng.choice(K, DOCUMENTS, p=rng.dirichlet(np.full(K, 5.0)))
    documents = []
    for topic in main:
        mixture = 0.3 * rng.dirichlet(np.full(K, 0.2)) + 0.7 * (np.arange(K) == topic)
        length = int(rng.lognormal(4.3, 0.5)) + 10
        topics = rng.choice(K, length // 2, p=mixture)
        ranks = rng.choice(500, length // 2, p=zipf(500))
        words = [usual[t][rank] for t, rank in zip(topics, ranks, strict=True)]
        words += list(vocabulary[rng.choice(WORDS, length - len(words), p=zipf(WORDS))])
        documents.append(" ".join(words))
    return documents, main


documents, topics = make_documents()
vectorizer = TfidfVectorizer(sublinear_tf=True, max_df=0.5, min_df=3)
tfidf = vectorizer.fit_transform(documents)
count, n_terms = tfidf.shape
print(f"{count} documents, {n_terms} terms, {tfidf.nnz / count:.0f} of them in a document")

# %%
# The estimator takes sparse rows as it takes arrays. The made topics are known, so that the labels
# can be compared with them.

model = CompressiveKMeans(K, metric="cosine", random_state=0).fit(tfidf)
print(f"adjusted Rand index to the topics: {adjusted_rand_score(topics, model.labels_):.3f}")

# %%
# The main terms of a cluster are the largest numbers of its centroid, and the document nearest to
# the centroid is an example of it.

terms = vectorizer.get_feature_names_out()
nearest = model.transform(tfidf).argmin(axis=0)
figure, axes = plt.subplots(2, 3, figsize=(9, 5), sharex=True, layout="constrained")
for k, axis in enumerate(axes.flat):
    main = np.argsort(-model.cluster_centers_[k])[:7][::-1]
    axis.barh(terms[main], model.cluster_centers_[k, main], color="#2a6f97")
    about = list(TOPICS)[topics[nearest[k]]]
    axis.set_title(f"{model.weights_[k]:.0%}, nearest text: {about}", fontsize=10)
figure.supxlabel("value in the centroid (mean TF-IDF of unit rows)")
figure.suptitle("The main terms of six clusters of documents")
plt.show()
