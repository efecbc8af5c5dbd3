"""Topics of text: made documents as TF-IDF, clustered as the sparse rows that they are and, after a
truncated SVD, as dense embeddings.

Documents are compared by their directions (metric="cosine"). Clusters are named by their terms and
by their nearest documents.
"""

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from ckm import CompressiveKMeans

TOPICS = {
    "space": "orbit launch moon rocket shuttle satellite lunar mission solar probe",
    "hockey": "goal puck team season playoff coach league goalie period score",
    "medicine": "patient doctor disease treatment symptom dose vaccine clinic blood pain",
    "graphics": "image pixel polygon render colour texture shading format screen vector",
    "cars": "engine brake dealer wheel tyre mileage clutch diesel motor driver",
    "baking": "dough flour oven yeast butter sugar crust recipe knead loaf",
    "law": "court judge appeal statute verdict counsel plaintiff contract evidence ruling",
    "music": "chord guitar melody rhythm album concert drummer singer tempo studio",
    "garden": "soil seed prune compost blossom harvest weed mulch shrub rain",
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
        documents.append(" ".join(rng.permutation(words)))
    return documents, main


documents, topics = make_documents()
vectorizer = TfidfVectorizer(sublinear_tf=True, max_df=0.5, min_df=3)
tfidf = vectorizer.fit_transform(documents)
count, n_terms = tfidf.shape
print(f"{count} documents, {n_terms} terms, {tfidf.nnz / count:.0f} of them in a document")

embeddings = TruncatedSVD(100, random_state=0).fit_transform(tfidf)

print("\nAdjusted Rand index to the made topics:")
fitted = {}
for name, rows in (("sparse TF-IDF", tfidf), ("embeddings", embeddings)):
    unit_rows = normalize(rows)  # for k-means, which knows no directions
    for model, data in (
        (CompressiveKMeans(K, metric="cosine", random_state=0), rows),
        (KMeans(K, n_init=1, random_state=0), unit_rows),
        (MiniBatchKMeans(K, random_state=0), unit_rows),
    ):
        fitted[name, type(model)] = model.fit(data)
        index = adjusted_rand_score(topics, model.labels_)
        print(f"  {name:13}  {type(model).__name__:17}  {index:.3f}")

print("\nClusters of the sparse rows: share, main terms, nearest document")
model = fitted["sparse TF-IDF", CompressiveKMeans]
terms = vectorizer.get_feature_names_out()
nearest = model.transform(tfidf).argmin(axis=0)
for k in np.argsort(-model.weights_):
    main = terms[np.argsort(-model.cluster_centers_[k])[:5]]
    about = list(TOPICS)[topics[nearest[k]]]
    print(f"  {model.weights_[k]:4.0%}  {' '.join(main):45}  no. {nearest[k]}, about {about}")
