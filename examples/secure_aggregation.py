"""Parties that trust nobody with their rows, nor with their sums: only a noisy total is learned.

Each party is a process of its own. It sketches its rows, adds its share of the noise, and masks the
integers modulo 2**64 with one mask per pair of parties: one of the two adds it, the other subtracts
it, so that masks cancel in the total and hide everything else. One party is killed in the middle;
those that stay reveal the masks that they shared with it.

This protects against a server and parties that follow the protocol and look at all they see. The
server throws away, unread, what comes from a party after it was said to be gone. Against a server
that lies about who is gone, or changes keys on their way, use a protocol with signatures and two
layers of masks (Bonawitz and others, 2017).
"""

import hashlib
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import ckm

PARTIES = 4
MISSING = 2  # one may drop out, and another tell everyone its noise
KILLED = 2

# The 2048-bit group of RFC 3526, for keys that pairs of parties agree on.
PRIME = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74"
    "020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F1437"
    "4FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF05"
    "98DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB"
    "9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B"
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF695581718"
    "3995497CEA956AE515D2261898FA051015728E5A8AACAA68FFFFFFFFFFFFFFFF",
    16,
)
GENERATOR = 2


def agreed_seed(own_secret: int, key: int, pair: tuple[int, int]) -> bytes:
    """The seed that two parties know, and nobody else."""
    assert 1 < key < PRIME - 1
    shared = pow(key, own_secret, PRIME).to_bytes(256, "big")
    return hashlib.sha256(b"ckm example, round 1, %d and %d:" % pair + shared).digest()


def mask(seed: bytes, size: int) -> np.ndarray:
    """Uniform integers modulo 2**64 from a seed."""
    return np.frombuffer(hashlib.shake_256(seed).digest(8 * size), np.uint64)


def signed_mask(seed: bytes, size: int, party: int, other: int) -> np.ndarray:
    """What `party` adds for its pair with `other`: the negative of what the other adds."""
    return mask(seed, size) if party < other else -mask(seed, size)


def rows_of(party: int) -> np.ndarray:
    """The rows of a party, which it shows nobody."""
    mixture = ckm.datasets.gaussian_mixture(
        20_000 * PARTIES, n_clusters=4, n_features=3, separation=12, random_state=1
    )
    return mixture.rows[party::PARTIES]


def agreement(design: str | Path) -> ckm.SharedRelease:
    """What all parties and the server know."""
    return ckm.SharedRelease(ckm.load(design), 1.0, 1e-6, n_parties=PARTIES, n_missing=MISSING)


def take_part(party: int, design: str) -> None:
    """One party, which talks to the server in lines of text."""
    secret = secrets.randbits(512)
    print(f"{pow(GENERATOR, secret, PRIME):x}", flush=True)
    keys = [int(key, 16) for key in input().split()]
    seeds = {
        other: agreed_seed(secret, key, (min(party, other), max(party, other)))
        for other, key in enumerate(keys)
        if other != party
    }

    own = ckm.sketch(rows_of(party), like=design)
    masked = agreement(design).noised(own).view(np.uint64)
    for other, seed in seeds.items():
        masked += signed_mask(seed, masked.size, party, other)
    print(masked.tobytes().hex(), flush=True)

    gone = [int(other) for other in input().split()]
    assert len(gone) <= MISSING, "the total of so few would have too little noise"
    print(" ".join(seeds[other].hex() for other in gone), flush=True)


class Party:
    """The server's end of the conversation with a party."""

    def __init__(self, number: int, design: Path) -> None:
        self.number = number
        command = [sys.executable, __file__, str(number), str(design)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def hear(self) -> str:
        """The next line of the party; empty if it has gone."""
        return self.process.stdout.readline().strip()

    def tell(self, line: str) -> None:
        """Send a line to the party."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """Wait for the end of its process."""
        self.process.communicate()


def aggregate(design: Path) -> tuple[np.ndarray, list[int]]:
    """The total of the parties that stay, and their numbers."""
    parties = [Party(number, design) for number in range(PARTIES)]
    keys = [party.hear() for party in parties]
    parties[KILLED].process.kill()
    for party in parties:
        if party.number != KILLED:
            party.tell(" ".join(keys))

    answers = {party.number: party.hear() for party in parties}
    gone = [number for number, answer in answers.items() if not answer]
    staying = [party for party in parties if party.number not in gone]
    # Sums of unsigned integers wrap around: modulo 2**64.
    total = sum(np.frombuffer(bytes.fromhex(answers[p.number]), np.uint64) for p in staying)
    for party in staying:
        party.tell(" ".join(map(str, gone)))
        for other, seed in zip(gone, party.hear().split(), strict=True):
            total -= signed_mask(bytes.fromhex(seed), len(total), party.number, other)
    for party in parties:
        party.end()
    return total, [party.number for party in staying]


def main() -> None:
    """The server, and a check that a real server could not make."""
    with tempfile.TemporaryDirectory() as folder:
        design = Path(folder, "design.ckm")
        bounds = ([-40, -40, -40], [40, 40, 40])
        ckm.public_frequencies(bounds, n_clusters=4, sketch_size=200).save(design)
        total, staying = aggregate(design)
        private = agreement(design).result(total, len(staying))
        exact = ckm.sketch(np.vstack([rows_of(party) for party in staying]), like=design)

    print(f"Parties {staying} of {PARTIES} stayed: about {private.count:,} rows,")
    print(f"epsilon = {private.release.budget.epsilon}, and these centroids:")
    print(ckm.decode(private, 4, random_state=0).centroids.round(1))

    noise = private.release.sums - exact.tally.sums
    share = noise.std() / private.release.variance**0.5
    print(f"The noise on the sums is {share:.2f} times what it should be.")
    assert 0.85 < share < 1.15


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        take_part(int(sys.argv[1]), sys.argv[2])
    else:
        main()
