"""Whole releases of neighbours, tens of thousands of them, with the noise of the operating system.

Each audit bounds from below what a release really gives away. No bound may exceed the claim (false alarm: 1e-6 for
each audit, if the claim is exactly what is given away), and each reaches what its event allows, computed beforehand
from the law (false alarm: 2e-9). Discrete Laplace noise is held to 80 % of eps, Gaussian noise to 80 % of
mu = L2 / sigma: no event attains both numbers of an (eps, delta) at once, so a bound on its eps stays far below.

``pytest -m audit tests/attacks/test_release_audits.py -rP`` prints the bounds beside the claims.
"""

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pytest
from audited_releases import GAUSSIAN, LAPLACE, ME, NOBODY, people, plan_of, selected, shown_from, tail
from comparing_neighbours import masked
from sampled_bounds import ALARM, bounds, sure, trained
from scipy.special import ndtri

import geodp
from geodp import release, testing
from geodp.exact import sqrt_up
from geodp.mechanisms import DiscreteLaplace, RoundedGaussian
from geodp.quantiles import selection
from geodp.sphere import RADIUS_KM

pytestmark = pytest.mark.audit

ENTROPY = testing.Mode(testing.OS_ENTROPY, bytes(16))


def tell(name, what, measured, allowed, claim, n):
    print(
        f"{name}: {what} measured >= {measured:.3f}, event allows {allowed:.3f}, claimed {claim:.3f}; 2 x {n}"
    )


def learned(numbers, others):
    """Return an event learned from a quarter of the releases, in the rest of both."""
    quarter = len(numbers) // 4
    event = trained(numbers[:quarter], others[:quarter])
    return event(numbers[quarter:]), event(others[quarter:])


@pytest.mark.sampled(rate=2.1e-6)
@pytest.mark.parametrize("name", LAPLACE)
def test_no_laplace_release_gives_away_more_than_eps(name):
    audit = LAPLACE[name]()
    eps, allowed = float(audit.plan.charge.eps), math.log(audit.p / audit.q)
    certain = sure(audit.n, audit.p, audit.q, ALARM / 2).eps()
    assert certain > (0.8 * eps if name == "count, one cell" else 0.35 * allowed)
    (one, numbers), (other, others) = audit.run()
    fixed = bounds(one, other, ALARM / 2).eps()
    tell(name, "eps", fixed, allowed, eps, audit.n)
    assert certain <= fixed <= eps
    assert bounds(*learned(numbers, others), ALARM / 2).eps() <= eps
    if name == "count, one cell":
        assert_the_map_gives_away_no_more(audit, numbers, others)


def assert_the_map_gives_away_no_more(audit, numbers, others):
    """The columns that are made of the measurement, of the same releases."""
    for i, column in enumerate(["count", "estimate"]):
        least, first = shown_from(audit.plan, column, 1)
        noise = audit.plan.measurements[0].law
        p, q = float(noise.sf(first - 2)), float(noise.sf(first - 1))
        fixed = bounds(numbers[:, i] >= least, others[:, i] >= least, ALARM / 2).eps()
        tell(column, "eps", fixed, math.log(p / q), float(audit.plan.charge.eps), audit.n)
        assert sure(audit.n, p, q, ALARM / 2).eps() <= fixed <= audit.plan.charge.eps


@pytest.mark.sampled(rate=1.1e-6)
@pytest.mark.parametrize("name", GAUSSIAN)
def test_no_gaussian_release_gives_away_more_than_mu(name):
    audit = GAUSSIAN[name]()
    claim = sqrt_up(2 * audit.plan.charge.rho)
    allowed = float(ndtri(1 - audit.q) - ndtri(1 - audit.p))
    certain = sure(audit.n, audit.p, audit.q, ALARM / 2).mu
    assert certain > (0.8 * claim if name == "count" else 0.6 * claim)
    (one, numbers), (other, others) = audit.run()
    fixed = bounds(one, other, ALARM / 2)
    tell(name, "mu", fixed.mu, allowed, claim, audit.n)
    assert certain <= fixed.mu <= claim
    assert fixed.delta(audit.plan.charge.eps) <= audit.plan.charge.delta
    assert bounds(*learned(numbers, others), ALARM / 2).mu <= claim


@pytest.mark.sampled(rate=1.1e-6)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_no_selection_gives_away_more_than_delta(mechanism):
    """A row that is there tells of the one subject who could be in it, whatever eps is."""
    audit = selected(mechanism)
    charge = audit.plan.charge
    certain = sure(audit.n, audit.p, 0.0, ALARM / 2).delta(charge.eps)
    assert certain > 0.3 * audit.p
    (one, numbers), (other, others) = audit.run()
    fixed = bounds(one, other, ALARM / 2).delta(charge.eps)
    tell(f"select, {mechanism}", "delta", fixed, audit.p, float(charge.delta_select), audit.n)
    assert not any(other)
    assert certain <= fixed <= charge.delta_select <= charge.delta
    assert bounds(*learned(numbers, others), ALARM / 2).delta(charge.eps) <= charge.delta


# What no column shows alone --------------------------------------------------------------------------------


def drawn(plan, rows, n):
    """Return n draws of all that a release adds noise to, without laying out frames."""
    exact = release.tally(plan, rows, ENTROPY)
    return [plan.query.draw(plan, exact, ENTROPY) for _ in range(n)]


@pytest.mark.sampled(rate=1.1e-6)
def test_cells_and_blocks_together_give_away_no_more_than_eps():
    """Totals of blocks show in estimates only, so here all that is drawn is looked at: cell and block at once."""
    plan, n = plan_of(1, strategy="levels", bounds=(0, 0, 32, 24)), 8_000
    cells, blocks = plan.measurements
    there = release.tally(plan, ME, ENTROPY)
    cell, block = (int(np.flatnonzero(there[m.name])[0]) for m in (cells, blocks))
    event = lambda noisy: bool(noisy["count"][cell] >= 1 and noisy[blocks.name][block] >= 1)  # noqa: E731
    p, q = (tail(cells.law, k) * tail(blocks.law, k) for k in (0, 1))
    fixed = bounds(*([event(noisy) for noisy in drawn(plan, rows, n)] for rows in (ME, NOBODY))).eps()
    tell("levels", "eps", fixed, math.log(p / q), 1.0, n)
    assert 0.55 < sure(n, p, q).eps() <= fixed <= plan.charge.eps


# The cap itself --------------------------------------------------------------------------------------------

CAPS = {"subject": "rider", "bounds": (0, 0, 20, 1), "grid": "square:1"}
CANDIDATES = (1, 2, 3, 4, 9)


def in_cells(*numbers):
    return people(*[(f"p{i}", cell, 1.0) for i, n in enumerate(numbers) for cell in range(n)])


@pytest.mark.sampled(rate=1.1e-6)
def test_no_chosen_cap_gives_away_more_than_eps():
    """The pair that pulls penalties apart by all of the reach; the exponential mechanism gives away less than eps.

    Whole calls first, then the draw alone, which is what chance there is.
    """
    n, eps = 12_000, 2
    pair = [1, 2, 3, 4, 9], [1, 2, 3, 4]
    whole = [
        np.array(
            [geodp.choose_cap(in_cells(*lengths), eps, CANDIDATES, quantile=0.5, **CAPS) for _ in range(300)]
        )
        for lengths in pair
    ]
    policy = geodp.Policy(cap="auto", **CAPS)
    stage = selection(policy, eps, CANDIDATES, Fraction(1, 2), None)
    chosen = [np.array([stage.draw(np.array(lengths), ENTROPY) for _ in range(n)]) for lengths in pair]
    p, q = (float(law_of_caps(lengths, eps)[-2:].sum()) for lengths in pair)
    fixed = bounds(*(caps >= CANDIDATES[-2] for caps in chosen), ALARM / 2).eps()
    tell("choose_cap", "eps", fixed, math.log(p / q), eps, n)
    certain = sure(n, p, q, ALARM / 2).eps()
    assert 0.5 * math.log(p / q) < certain <= fixed <= eps
    for one, other in (chosen, chosen[::-1], whole, whole[::-1]):
        for cap in CANDIDATES:
            assert bounds(one == cap, other == cap, ALARM / 40).eps() <= eps


def law_of_caps(lengths, eps):
    """The probabilities of the candidates, from the definition: how far half of the people lies from each."""
    wanted, within = len(lengths) / 2, [sum(k <= c for k in lengths) for c in CANDIDATES[:-1]]
    ends = list(zip([0, *within], [*within, len(lengths)], strict=True))
    far = np.array([max(0.0, wanted - b, a - wanted) for a, b in ends])
    weights = np.exp(-far * eps)  # the reach is 2 max(q, 1 - q) = 1
    return weights / weights.sum()


# Points ----------------------------------------------------------------------------------------------------


@pytest.mark.sampled(rate=1.1e-6)
@pytest.mark.parametrize("reports", [1, 2])
def test_no_moved_point_gives_away_more_than_eps_per_distance(reports):
    """All places behind one of two, as seen from the other, within 25 degrees: there odds are e^(eps d) or nearly.

    A place that far off or further is 2 km nearer to one than to the other but for the cosine, so that bounds q.
    """
    n, eps, apart, angle = 120_000, 1.0, 2.0 / reports, 25.0
    degrees = apart / float(RADIUS_KM)
    here, there = np.zeros(n * reports), np.full(n * reports, math.degrees(degrees))
    found = []
    for lat in (there, here):
        points = gpd.GeoDataFrame(geometry=gpd.points_from_xy(np.zeros(len(lat)), lat), crs=4326)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            moved = geodp.perturb(points, eps)
        bearing = np.degrees(np.arctan2(moved.geometry.x.to_numpy(), moved.geometry.y.to_numpy() - there))
        found.append((np.abs(bearing) < angle).reshape(reports, n).all(axis=0))
    p, q = (
        (angle / 180) ** reports,
        (angle / 180 * math.exp(-eps * apart * math.cos(math.radians(angle)))) ** reports,
    )
    fixed = bounds(*found).eps()
    tell(f"perturb, {reports} reports", "eps·d", fixed, math.log(p / q), eps * apart * reports, n)
    assert 0.6 * math.log(p / q) < sure(n, p, q).eps() <= fixed <= eps * apart * reports


# Bytes -----------------------------------------------------------------------------------------------------

WRITTEN = {
    "count": {},
    "slots": {"by": {"v": [1.0, 2.0]}},
    "sum": {"query": geodp.Sum("v", (0, 4))},
    "mean": {"query": geodp.Mean("v", (0, 4))},
    "centroid": {"query": geodp.Centroid()},
    "weighted": {"contribution": "weighted", "rescale": 4},
    "auto": {"cap": "auto"},
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_bytes_of_a_file_are_the_same_but_for_its_numbers(name):
    plan = plan_of(1, bounds=(0, 0, 3, 2), return_geometry=True, **WRITTEN[name])
    crowd = people(*[(f"p{i}", i % 3, 2.0) for i in range(50)])
    written = {masked(plan.release(rows)) for rows in (ME, NOBODY, crowd) for _ in range(15)}
    assert len(written) == 1
    assert '"id": ' in next(iter(written))


# Planted faults: the same events and bounds, on what is drawn ----------------------------------------------


@pytest.fixture
def _smaller_noise(monkeypatch):
    """Noise at 80 % of its scale; plans, records and thresholds know nothing of it."""
    from geodp.mechanisms import laws

    laplace, gaussian = laws.laplace_inversion, laws.gaussian_inversion
    monkeypatch.setattr(DiscreteLaplace, "_inversion", lambda self: laplace(0.8 * self.scale))
    monkeypatch.setattr(RoundedGaussian, "_inversion", lambda self: gaussian(0.8 * self.scale))


@pytest.mark.sampled(rate=2e-8)
@pytest.mark.usefixtures("_smaller_noise")
def test_laplace_noise_at_80_percent_is_seen():
    audit = LAPLACE["count, one cell"]()
    smaller = DiscreteLaplace(0.8 * audit.plan.scale)
    assert sure(audit.n, tail(smaller, 0), tail(smaller, 1), ALARM / 2).eps() > 2
    happened = [[draw["count"][0] >= 1 for draw in drawn(audit.plan, rows, audit.n)] for rows in (ME, NOBODY)]
    assert bounds(*happened, ALARM / 2).eps() > 2


@pytest.mark.sampled(rate=2e-8)
@pytest.mark.usefixtures("_smaller_noise")
def test_gaussian_noise_at_80_percent_is_seen():
    audit = GAUSSIAN["count"]()
    claim, smaller = sqrt_up(2 * audit.plan.charge.rho), RoundedGaussian(0.8 * audit.plan.scale)
    assert sure(audit.n, tail(smaller, -5), tail(smaller, 5), ALARM / 2).mu > claim
    happened = [
        [draw["count"][0] >= 5 for draw in drawn(audit.plan, rows, audit.n)]
        for rows in (audit.one, audit.other)
    ]
    assert bounds(*happened, ALARM / 2).mu > claim


@pytest.mark.sampled(rate=1e-9)
def test_noise_shared_by_two_cells_is_seen_by_what_is_learned(monkeypatch):
    """No event of one cell shows it; the difference of both is exact, and the learner finds it."""
    plan = plan_of(1, bounds=(0, 0, 2, 1))
    honest = DiscreteLaplace.sample
    monkeypatch.setattr(
        DiscreteLaplace, "sample", lambda self, size, bits=None: np.resize(honest(self, 1, bits), size)
    )
    numbers = [np.array([draw["count"] for draw in drawn(plan, rows, 400)], float) for rows in (ME, NOBODY)]
    assert bounds(*learned(*numbers)).eps() > 2


@pytest.mark.sampled(rate=2e-8)
def test_a_cap_that_is_not_kept_is_seen(monkeypatch):
    from geodp import contribution

    monkeypatch.setattr(contribution, "_lowest", lambda priority, *rest: np.ones(len(priority), bool))
    plan = plan_of(2, bounds=(0, 0, 2, 1))
    me = people(("me", 0, 1.0), ("me", 1, 1.0))
    happened = [[(draw["count"] >= 1).all() for draw in drawn(plan, rows, 12_000)] for rows in (me, NOBODY)]
    noise = plan.measurements[0].law
    assert sure(12_000, tail(noise, 0) ** 2, tail(noise, 1) ** 2).eps() > 2
    assert bounds(*happened).eps() > 2


@pytest.mark.sampled(rate=2e-8)
def test_the_threshold_of_one_cell_is_seen(monkeypatch):
    """A subject alone in eight cells shows nearly eight times as often as declared."""
    from geodp.queries import selected as module

    honest = module.selection_threshold
    monkeypatch.setattr(
        module, "selection_threshold", lambda law, delta, keys, rows: honest(law, delta, 1, rows)
    )
    plan = plan_of(1, "0.05", cells="select", cap=8, population=10, bounds=(0, 0, 8, 1), mechanism="laplace")
    me = people(*[("me", cell, 1.0) for cell in range(8)])
    happened = [[len(draw["key"]) > 0 for draw in drawn(plan, rows, 3000)] for rows in (me, NOBODY)]
    assert bounds(*happened).delta(plan.charge.eps) > plan.charge.delta


@pytest.mark.sampled(rate=2e-8)
def test_a_cap_chosen_at_an_eighth_of_the_scale_is_seen(monkeypatch):
    from geodp import quantiles

    honest, n, pair = quantiles.choose, 5000, ([1, 2, 3, 4, 9], [1, 2, 3, 4])
    monkeypatch.setattr(quantiles, "choose", lambda penalties, bits: honest([8 * d for d in penalties], bits))
    stage = selection(geodp.Policy(cap="auto", **CAPS), "0.25", CANDIDATES, Fraction(1, 2), None)
    assert sure(n, *(float(law_of_caps(lengths, 2)[-2:].sum()) for lengths in pair)).eps() > 0.25
    chosen = [np.array([stage.draw(np.array(lengths), ENTROPY) for _ in range(n)]) for lengths in pair]
    assert bounds(*(caps >= CANDIDATES[-2] for caps in chosen)).eps() > 0.25


@pytest.mark.sampled(rate=2e-8)
def test_points_moved_by_less_are_seen(monkeypatch):
    from geodp import locations

    honest = locations.displace
    monkeypatch.setattr(
        locations, "displace", lambda lon, lat, k, bits=None: honest(lon, lat, 1.25 * k, bits)
    )
    with pytest.raises(AssertionError):
        test_no_moved_point_gives_away_more_than_eps_per_distance(1)


@pytest.mark.sampled(rate=1e-60)
def test_a_dtype_that_follows_the_rows_is_seen(monkeypatch):
    """Nothing is counted here: one release that looks different is enough."""
    audit = LAPLACE["sum"]()
    kind = type(audit.plan.query)
    honest = kind.columns

    def narrow(self, plan, noisy):
        made = honest(self, plan, noisy)
        return {**made, "sum": made["sum"].astype(np.float32 if noisy["sum"][0] % 2 else np.float64)}

    monkeypatch.setattr(kind, "columns", narrow)
    with pytest.raises(AssertionError):
        replace(audit, n=200).run()
