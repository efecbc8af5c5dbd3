"""The specified arithmetic of one row and one frequency: a fixed sequence of IEEE float32
operations.

    x = float32(float64(row) - origin)
    p = t_0 x_0,  then  p = fma(t_d, x_d, p)  for d = 1 .. n-1           the phase in turns
    r = p - rint(p),  q = r r                                            reduced to [-1/2, 1/2]
    c = 3 + cos(2 pi r) = Horner(q; COSINE, 4),   s = 3 + sin(2 pi r) = fma(Horner(q; SINE), r, 3)

Both results lie in [2, 4], where float32 numbers are 2**-22 apart: their bit patterns, minus that
of 3, are the cosine and sine as integers in units of 2**-22. Sums of integers do not depend on
order, so all exact kernels are bit-identical, on every machine.

For structured frequencies (`ckm._core.hadamard`) the phases of p = 2**k frequencies at a time, k >=
6, come from x by

    u = x_0 .. x_{n-1}, then p - n zeros
    three times, each with its own factors d:
        u_i = d_i u_i  for every i
            d_i is a sign times 2**-h, h = k/2 rounded up; in the first round it is also divided by
            the units, in float32
        for stride = p/2, p/4, .. 1:
            u_i, u_{i+stride} = u_i + u_{i+stride}, u_i - u_{i+stride}
            for every i in which the bit of the stride is not set
    p_j = t_j u_j

and go on as above. Each rounding errs by at most 2**-24 relative to what it rounds, and a sweep is
a rotation up to a factor, so the phases of one row err by about 2**-24 sqrt(3 k) of their root mean
square (for frequencies of one length): as little as those of the dense sum.
"""

import numpy as np

# Minimax over |r| <= 1/2 with float32 coefficients: maximal errors 1.3e-8 and 8.1e-9. They are part
# of the file format.
COSINE = tuple(
    map(
        np.float32,
        (
            -19.739206314086914,
            64.9391860961914,
            -85.451171875,
            60.1749267578125,
            -25.991901397705078,
            6.559455394744873,
        ),
    )
)
SINE = tuple(
    map(
        np.float32,
        (
            6.2831854820251465,
            -41.34172058105469,
            81.60576629638672,
            -76.71156311035156,
            42.081939697265625,
            -15.076336860656738,
            3.4523744583129883,
        ),
    )
)

THREE_BITS = int(np.float32(3).view(np.int32))
ONE = 2**22  # the cosine of a row at the origin, in units of 2**-22

MAX_TURNS = 2.0**23  # beyond this, float32 phases have no fractional part left
