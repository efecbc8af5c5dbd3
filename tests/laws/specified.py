"""The specified arithmetic (`ckm._kernels.spec`) in exact rational numbers, rounded to float32
where the specification rounds.

No floating-point operation happens here, so nothing depends on a machine, a compiler or NumPy. It
imports nothing from `ckm`; the coefficients are written out again, because they belong to the
format."""

from collections.abc import Sequence
from fractions import Fraction

COSINE = (
    -19.739206314086914,
    64.9391860961914,
    -85.451171875,
    60.1749267578125,
    -25.991901397705078,
    6.559455394744873,
)
SINE = (
    6.2831854820251465,
    -41.34172058105469,
    81.60576629638672,
    -76.71156311035156,
    42.081939697265625,
    -15.076336860656738,
    3.4523744583129883,
)
UNIT = Fraction(1, 2**22)


def float32(value: Fraction) -> Fraction:
    """The nearest float32, ties to even; subnormal numbers included, overflow not."""
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    spacing = Fraction(2) ** max(exponent - 23, -149)
    return round(value / spacing) * spacing


def float64(value: Fraction) -> Fraction:
    """The nearest float64: Python rounds a fraction once."""
    return Fraction(float(value))


def fma(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    """a b + c, rounded once."""
    return float32(a * b + c)


def pair(turns: Sequence[float], row: Sequence[float], origin: Sequence[float]) -> tuple[int, int]:
    """What one row adds to one frequency's cosine and sine sums, in units of 2**-22."""
    t, x = [Fraction(float(value)) for value in turns], centred(row, origin)
    p = float32(t[0] * x[0])
    for d in range(1, len(t)):
        p = fma(t[d], x[d], p)
    return wave(p)


def centred(row: Sequence[float], origin: Sequence[float]) -> list[Fraction]:
    """The row less the origin, in float32."""
    return [
        float32(float64(Fraction(float(a)) - Fraction(float(b))))
        for a, b in zip(row, origin, strict=True)
    ]


def wave(p: Fraction) -> tuple[int, int]:
    """The cosine and sine of p turns, in units of 2**-22."""
    r = float32(p - round(p))
    q = float32(r * r)
    cosine = Fraction(COSINE[-1])
    for coefficient in (*COSINE[-2::-1], 4.0):
        cosine = fma(cosine, q, Fraction(coefficient))
    sine = Fraction(SINE[-1])
    for coefficient in SINE[-2::-1]:
        sine = fma(sine, q, Fraction(coefficient))
    sine = fma(sine, r, Fraction(3))
    integers = (cosine - 3) / UNIT, (sine - 3) / UNIT
    assert all(value.denominator == 1 for value in integers)
    return int(integers[0]), int(integers[1])


def structured_pairs(
    turns: Sequence[float],
    signs: Sequence[Sequence[int]],
    row: Sequence[float],
    origin: Sequence[float],
    units: Sequence[float] | None = None,
) -> list[tuple[int, int]]:
    """What one row adds to the sums of each structured frequency."""
    p = len(signs[0])
    k = p.bit_length() - 1
    factors = [[int(d) * Fraction(1, 2 ** ((k + 1) // 2)) for d in of_round] for of_round in signs]
    for i, unit in enumerate(units if units is not None else ()):
        factors[0][i] = float32(float64(factors[0][i] / Fraction(float(unit))))
    pairs = []
    for j, t in enumerate(turns):
        if j % p == 0:
            block = j // p
            u = [*centred(row, origin), *[Fraction(0)] * (p - len(origin))]
            for d in (factors[0], factors[1 + 2 * block], factors[2 + 2 * block]):
                u = [float32(d[i] * u[i]) for i in range(p)]
                stride = p // 2
                while stride:
                    for i in range(p):
                        if not i & stride:
                            u[i], u[i + stride] = (
                                float32(u[i] + u[i + stride]),
                                float32(u[i] - u[i + stride]),
                            )
                    stride //= 2
        pairs.append(wave(float32(Fraction(float(t)) * u[j % p])))
    return pairs


def sums(
    turns: Sequence[Sequence[float]], rows: Sequence[Sequence[float]], origin: Sequence[float]
) -> list[list[int]]:
    """Cosine and sine sums of all rows: (2, m) integers."""
    pairs = [[pair(t, row, origin) for row in rows] for t in turns]
    return [[sum(p[part] for p in of_frequency) for of_frequency in pairs] for part in (0, 1)]
