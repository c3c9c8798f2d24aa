"""Exact noise against numpy's inexact Gaussian and against OpenDP's exact samplers, in one run.

    pip install "opendp>=0.12"          # or: pip install -e ".[bench]"
    python benchmarks/noise.py          # times and ratios, about 20 s
    python benchmarks/noise.py --guard 1000000      # the error guard at 60 digits, about 10 minutes

Bars: at most 8 times numpy.random.Generator.normal, at least 50 times faster than OpenDP on an int
vector. The guard must be at least 1000 times the largest error that is found.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
from mpmath import mp, mpf

from geodp.mechanisms import noise

SCALES = (1e-3, 0.3, 1.0, 4.5, 100.0, 2.0**20, 2.0**30, 2.0**50)
DRAWS = 1_000_000
OPENDP_DRAWS = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--guard", type=int, metavar="POINTS", help="measure the error guard instead")
    points = parser.parse_args().guard
    if points:
        print_guard(points)
    else:
        print_times()


def print_times() -> None:
    generator = np.random.default_rng()
    normal = seconds(lambda: generator.normal(0, 4.5, DRAWS)) / DRAWS
    print(f"numpy Generator.normal        {normal * 1e9:8.1f} ns per draw (inexact)")
    for name, ours in (("gaussian", noise.rounded_gaussian), ("laplace", noise.discrete_laplace)):
        mine = seconds(lambda ours=ours: ours(4.5, DRAWS)) / DRAWS
        print(f"geodp {name:22s}  {mine * 1e9:8.1f} ns per draw, {mine / normal:.1f} times numpy (bar 8)")
        theirs = opendp_seconds(name)
        if theirs is not None:
            ratio = f"{theirs / mine:.0f} times geodp (bar 50)"
            print(f"OpenDP make_{name:16s}  {theirs * 1e9:8.1f} ns per draw, {ratio}")


def seconds(call: Callable[[], object], rounds: int = 5) -> float:
    """Fastest of a few rounds, after one to warm up."""
    call()
    best = math.inf
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def opendp_seconds(name: str) -> float | None:
    """Seconds per draw of OpenDP's mechanism on an int vector; None if it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        print("OpenDP is not installed: pip install opendp")
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if name == "laplace":
        measure = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=4.5)
    else:
        measure = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=4.5)
    values = [0] * OPENDP_DRAWS
    return seconds(lambda: measure(values), rounds=2) / OPENDP_DRAWS


def print_guard(points: int) -> None:
    each = max(1, points // (len(SCALES) * 3))
    worst = 0.0
    for scale in SCALES:
        threshold = max(1, int(5 * scale))
        laws = {
            "laplace": noise.laplace_inversion(scale),
            "gaussian": noise.gaussian_inversion(scale),
            "gaussian tail": noise.gaussian_tail_inversion(scale, threshold),
        }
        for name, law in laws.items():
            if math.isinf(law.offset):
                continue  # left to 50 digits and more as a whole
            error = largest_error(law, name, scale, threshold, words(each))
            worst = max(worst, error)
            print(f"{name:14s} scale {scale:<12.6g} largest error 2^{math.log2(error):.1f}", flush=True)
    ratio = noise.GUARD / worst
    print(f"guard 2^{math.log2(noise.GUARD):.0f} is {ratio:.0f} times the largest error (bar 1000)")


def words(count: int) -> np.ndarray:
    """63-bit words: half uniform, half spread over all magnitudes, so that the tails are in."""
    generator = np.random.default_rng(20261130)
    uniform = generator.integers(1, 2**63, count - count // 2)
    spread = np.exp2(generator.uniform(0, 63, count // 2)).astype(np.int64)
    return np.concatenate([uniform, spread])


def largest_error(law: noise.Inversion, name: str, scale: float, threshold: int, drawn: np.ndarray) -> float:
    """Largest error of a position, over its size plus the law's, against 60 digits."""
    found = law.position((drawn + 0.5) * 2.0**-63)
    worst = mpf(0)
    with mp.workdps(60):
        true_error = ERRORS[name](scale, threshold)
        for word, position in zip(drawn.tolist(), found.tolist(), strict=True):
            uniform = mpf(2 * word + 1) / mpf(2) ** 64
            error = abs(true_error(uniform, mpf(position))) / (abs(position) + law.offset + law.scale)
            worst = max(worst, error)
    return float(worst)


def laplace_error(scale: float, threshold: int) -> Callable[[mpf, mpf], mpf]:
    length = mpf(scale)
    shift = mp.log((1 + mp.exp(-1 / length)) / 2)
    return lambda uniform, position: position + length * (mp.log(uniform) + shift)


def gaussian_error(scale: float, threshold: int) -> Callable[[mpf, mpf], mpf]:
    return _inverse_error(scale, mpf(1) / 2, mpf(1) / 2)


def tail_error(scale: float, threshold: int) -> Callable[[mpf, mpf], mpf]:
    start = threshold - mpf(1) / 2
    return _inverse_error(scale, mp.ncdf(-start / scale), -start)


def _inverse_error(scale: float, mass: mpf, shift: mpf) -> Callable[[mpf, mpf], mpf]:
    """First-order error of x where Phi(-x) = mass * uniform and position = scale * x + shift."""

    def error(uniform: mpf, position: mpf) -> mpf:
        x = (position - shift) / scale
        return scale * (mp.erfc(x / mp.sqrt(2)) / 2 - mass * uniform) / mp.npdf(x)

    return error


ERRORS = {"laplace": laplace_error, "gaussian": gaussian_error, "gaussian tail": tail_error}


if __name__ == "__main__":
    main()
