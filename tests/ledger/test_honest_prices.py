"""A release cannot be charged, or claim, less than its noise costs."""

import dataclasses
from fractions import Fraction

import pytest

import geodp

BOX = (0, 0, 10, 1)
SETTING = {"subject": "rider", "cap": 2, "bounds": BOX, "grid": "square:1"}


@pytest.mark.parametrize(
    ("eps", "delta", "rho"),
    [(Fraction(1, 100), Fraction(1, 10**8), Fraction(1, 2)), (1, "1e-6", 0.5)],
)
def test_a_budget_of_ones_own_is_held_to_its_rho(eps, delta, rho):
    with pytest.raises(ValueError, match="costs delta"):
        geodp.Budget(eps, delta, rho, "gaussian")


def test_an_honest_budget_of_ones_own_works_in_any_number():
    budget = geodp.Budget(1, "1e-6", 0.02, "gaussian")
    assert budget.rho == Fraction(1, 50)
    assert geodp.plan(budget, **SETTING).mechanism == "gaussian"


def test_an_edited_plan_is_refused():
    plan = geodp.plan(1, **SETTING)
    with pytest.raises(ValueError, match="not edited"):
        dataclasses.replace(plan, eps=Fraction(1, 1000))


def _edited(field, value):
    return lambda plan: dataclasses.replace(plan, policy=dataclasses.replace(plan.policy, **{field: value}))


MORE_OF_A_PERSON = {
    "cap": _edited("cap", 4),
    "rows": _edited("rows_per_cell", 2),
    "neighboring": _edited("neighboring", "replace_one"),
    "query": lambda plan: dataclasses.replace(plan, query=geodp.Sum("fare", (0, 100))),
    "slots": lambda plan: dataclasses.replace(plan, slots=geodp.plan(1, **SETTING, by={"h": range(3)}).slots),
}


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("edit", MORE_OF_A_PERSON.values(), ids=MORE_OF_A_PERSON)
def test_a_plan_edited_to_count_more_of_a_person_is_refused(edit, mechanism):
    """Noise for one cap, and rows bounded by another: the record would state an eps that does not hold."""
    plan = geodp.plan(1, "1e-6", **{**SETTING, "cap": 2, "mechanism": mechanism})
    with pytest.raises(ValueError, match="not edited"):
        edit(plan)


def _ways(**asked):
    return lambda plan: dataclasses.replace(plan, ways=dataclasses.replace(plan.ways, **asked))


@pytest.mark.parametrize("cells", ["all", "sparse", "select"])
@pytest.mark.parametrize("other", ["all", "sparse", "select"])
def test_a_plan_is_refused_before_it_is_paid_where_its_ways_are_not_its_querys(cells, other):
    plan = geodp.plan(1, "1e-6", **SETTING, cells=cells)
    if cells == other:
        assert _ways(cells=other)(plan) == plan
        return
    with pytest.raises(ValueError, match="not edited"):
        _ways(cells=other)(plan)


@pytest.mark.parametrize(
    "edit",
    [
        _edited("contribution", "weighted"),
        _ways(strategy="levels"),
        lambda plan: dataclasses.replace(plan, measurements=()),
        lambda plan: dataclasses.replace(plan, query=geodp.plan(1, **SETTING, cells="sparse").query),
    ],
)
def test_a_plan_whose_parts_do_not_go_together_is_refused(edit):
    with pytest.raises(ValueError, match="not edited"):
        edit(geodp.plan(1, "1e-6", **SETTING))


def test_a_selection_without_its_delta_is_refused():
    plan = geodp.plan(1, "1e-6", **SETTING, cells="select")
    with pytest.raises(ValueError, match="not edited"):
        dataclasses.replace(plan, delta=Fraction(0))


@pytest.mark.parametrize(
    "edit",
    [
        _edited("neighboring", "replace_one"),
        _edited("cap", 4),
        lambda plan: dataclasses.replace(plan, options=plan.options[1:]),
        lambda plan: dataclasses.replace(plan, options=plan.options[::-1]),
        lambda plan: dataclasses.replace(plan, measurements=plan.measurements[-1:]),
        lambda plan: dataclasses.replace(
            plan, selection=dataclasses.replace(plan.selection, eps=Fraction(1))
        ),
    ],
)
def test_an_edited_plan_of_two_stages_is_refused(edit):
    plan = geodp.plan(1, "1e-6", **{**SETTING, "cap": "auto"})
    with pytest.raises(ValueError, match="not edited"):
        edit(plan)


JOINT_EDITS = {
    "both at the whole eps": lambda joint, plan: dataclasses.replace(joint, parts=(plan, plan)),
    "one at another eps": lambda joint, plan: dataclasses.replace(joint, parts=(joint.parts[0], plan)),
    "other people": lambda joint, plan: dataclasses.replace(
        joint, parts=(joint.parts[0], geodp.plan(1, **{**SETTING, "subject": "driver"}))
    ),
    "a view more": lambda joint, plan: dataclasses.replace(joint, parts=(*joint.parts, joint.parts[0])),
}


@pytest.mark.parametrize("edit", JOINT_EDITS.values(), ids=JOINT_EDITS)
def test_an_edited_joint_plan_is_refused(edit):
    setting = {name: SETTING[name] for name in SETTING if name != "grid"}
    joint = geodp.plan_together({"a": {"grid": "square:1"}, "b": {"grid": "square:2"}}, 1, **setting)
    for eps in (1, 2):
        with pytest.raises(ValueError, match=r"not edited|different people"):
            edit(joint, geodp.plan(eps, **SETTING))


def test_a_ledger_refuses_a_charge_below_the_price_of_its_record(tmp_path):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=1, unit="rider")
    plan = geodp.plan(1, **SETTING)
    with pytest.raises(geodp.LedgerError, match="charged"):
        ledger.debit("x", plan.key, geodp.Charge(Fraction(1, 1000)), plan.to_dict())
    assert ledger.spent()["eps"] == 0


def test_a_ledger_without_a_unit_takes_that_of_its_first_debit(tmp_path, trips):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=3)
    trips["trip"] = [f"t{i}" for i in range(len(trips))]
    where = {"bounds": (-74.3, 40.4, -73.6, 41.0), "grid": "h3:5", "cap": 1, "ledger": ledger}
    trips.dp.heatmap(1, subject="rider", **where, label="a")
    with pytest.raises(geodp.LedgerError, match="unit"):
        trips.dp.heatmap(1, subject="trip", **where, label="b")


def test_a_path_is_no_ledger(trips):
    with pytest.raises(TypeError, match="Ledger"):
        trips.dp.heatmap(
            1, subject="rider", cap=1, bounds=(-74.3, 40.4, -73.6, 41.0), ledger="city.ledger", label="a"
        )


def test_rows_can_have_a_ledger_when_they_are_meant(tmp_path, trips):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=3)
    where = {"bounds": (-74.3, 40.4, -73.6, 41.0), "grid": "h3:5", "ledger": ledger}
    heat = trips.dp.heatmap(1, subject=geodp.EACH_ROW, **where, label="a")
    assert heat.attrs["geodp"]["unit"] == "row"
    with pytest.raises(ValueError, match="EACH_ROW"), pytest.warns(geodp.PrivacyUnitWarning):
        trips.dp.heatmap(1, **where, label="b")


def test_pandas_47667_one_ledger_knows_every_copy_of_a_frame(tmp_path, trips):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=3, unit="rider")
    setting = {
        "subject": "rider",
        "cap": 1,
        "bounds": (-74.3, 40.4, -73.6, 41.0),
        "grid": "h3:5",
        "ledger": ledger,
    }
    trips.dp(**setting).heatmap(1, label="a")
    trips.copy().dp(**setting).heatmap(1, label="b")
    trips.dp(**setting).heatmap(1, label="c")
    assert ledger.spent()["eps"] == 3
    with pytest.raises(geodp.BudgetExceeded):
        trips.dp(**setting).heatmap(0.1, label="d")
