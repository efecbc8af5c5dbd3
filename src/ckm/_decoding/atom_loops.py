"""The innermost loops over the frequencies of one atom, or of the residual: one-dimensional arrays,
which is the shape that LLVM vectorises.
"""

from ckm._decoding.waves import decay, wave
from ckm._util.jit import summing


@summing
def add_atom(a, phases, cosine, sine, real, imag):  # type: ignore[no-untyped-def]
    for j in range(len(phases)):
        c, s = wave(phases[j])
        cosine[j] = c
        sine[j] = s
        real[j] += a * c
        imag[j] -= a * s


@summing
def subtract_gaussian(  # type: ignore[no-untyped-def]
    a, phases, exponents, cosine, sine, real, imag
):
    for j in range(len(phases)):
        c, s = wave(phases[j])
        e = decay(exponents[j])
        c *= e
        s *= e
        cosine[j] = c
        sine[j] = s
        real[j] -= a * c
        imag[j] += a * s


@summing
def blur_residual(z_real, z_imag, blur, squares, real, imag):  # type: ignore[no-untyped-def]
    """Replace a model without blur by the residual times the blur; return the squared residual and
    its derivative in the width.
    """
    total = 0.0
    slope = 0.0
    for j in range(len(real)):
        u = real[j] * blur[j]
        v = imag[j] * blur[j]
        a = z_real[j] - u
        b = z_imag[j] - v
        total += a * a + b * b
        slope += squares[j] * (a * u + b * v)
        real[j] = a * blur[j]
        imag[j] = b * blur[j]
    return total, slope


@summing
def differentiate_atom(real, imag, cosine, sine, by_phase):  # type: ignore[no-untyped-def]
    """Replace an atom's phases by the derivative in them; return the one in its weight."""
    total = real.dtype.type(0)
    for j in range(len(by_phase)):
        by_phase[j] = sine[j] * real[j] + cosine[j] * imag[j]
        total += cosine[j] * real[j] - sine[j] * imag[j]
    return total


@summing
def differentiate_gaussian(  # type: ignore[no-untyped-def]
    real, imag, cosine, sine, by_phase, by_exponent
):
    """Replace an atom's phases and exponents by the derivatives in them; return the one in its
    weight.
    """
    total = real.dtype.type(0)
    for j in range(len(by_phase)):
        along = cosine[j] * real[j] - sine[j] * imag[j]
        by_phase[j] = sine[j] * real[j] + cosine[j] * imag[j]
        by_exponent[j] = along
        total += along
    return total


@summing
def square(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(x)):
        total += x[j] * x[j]
    return total
