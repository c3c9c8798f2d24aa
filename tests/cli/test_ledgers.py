"""The command line's books: paying, replaying, refusing, and reading them."""

import json
import os
from pathlib import Path

import pytest
from commands import ASKED, WHO

import geodp

PAID = ["--ledger", "city.ledger"]


def test_a_label_is_paid_once_and_replayed_without_its_data(run, ledger):
    first = run("heatmap", "trips.parquet", "-o", "heat.geojson", *ASKED, *PAID, "--label", "2026-11-30")
    assert first.code == 0, first.err
    published = json.loads(Path("heat.geojson").read_text())
    os.remove("trips.parquet")
    os.remove("heat.geojson")
    again = run(
        "heatmap", "trips.parquet", "-o", "heat.geojson", *ASKED, *PAID, "--label", "2026-11-30", "--json"
    )
    assert again.code == 0, again.err
    assert json.loads(Path("heat.geojson").read_text()) == published
    assert 'geodp: warning: label "2026-11-30": stored release of' in again.err
    assert "reading" not in again.err
    assert again.facts["replayed"] is True
    assert [heard["category"] for heard in again.facts["warnings"]] == ["ReplayWarning"]
    assert geodp.Ledger(ledger).spent()["eps"] == 1


@pytest.mark.parametrize(
    "more", [["--cap", "auto"], ["--by", "hour=0,1"], ["--sum", "minutes", "--value-bounds", "0,9"]]
)
def test_every_question_is_replayed(run, ledger, more):
    asked = ["trips.parquet", "-o", "heat.csv", *ASKED, *PAID, "--label", "a", *more]
    assert run("heatmap", *asked).code == 0
    published = Path("heat.csv").read_text()
    os.remove("trips.parquet")
    assert run("heatmap", *asked).code == 0
    assert Path("heat.csv").read_text() == published


def test_an_exhausted_budget_is_3_and_reads_no_data(run, ledger):
    for night in range(3):
        assert (
            run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, *PAID, "--label", f"night {night}").code
            == 0
        )
    before = Path("heat.csv").read_text()
    done = run("heatmap", "nowhere.parquet", "-o", "heat.csv", *ASKED, *PAID, "--label", "night 3", "--json")
    assert done.code == 3
    assert "left" in done.err
    assert done.facts["asked"]["eps"] == 1
    assert done.facts["left"]["eps"] == 0
    assert Path("heat.csv").read_text() == before


def test_bad_input_spends_nothing(run, ledger):
    assert run("heatmap", "nowhere.parquet", "-o", "heat.csv", *ASKED, *PAID, "--label", "a").code == 4
    assert (
        run(
            "heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, *PAID, "--label", "a", "--subject", "x"
        ).code
        == 4
    )
    assert geodp.Ledger(ledger).spent()["eps"] == 0


def test_a_ledger_needs_a_label_and_must_exist(run, ledger):
    done = run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, *PAID)
    assert done.code == 2
    assert "label is required" in done.err
    missing = run(
        "heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, "--ledger", "other.ledger", "--label", "a"
    )
    assert missing.code == 4
    assert "geodp ledger create other.ledger" in missing.err
    assert not os.path.exists("other.ledger")
    Path("damaged.ledger").write_text("nonsense" * 1000)
    assert (
        run(
            "heatmap", "trips.parquet", "-o", "h.csv", *ASKED, "--ledger", "damaged.ledger", "--label", "a"
        ).code
        == 4
    )


def test_the_environment_names_a_ledger_too(run, ledger, monkeypatch):
    monkeypatch.setenv("GEODP_LEDGER", str(ledger))
    assert run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED).code == 2
    assert run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, "--label", "a").code == 0
    os.remove("trips.parquet")
    assert run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, "--label", "a").code == 0
    assert geodp.Ledger(ledger).spent()["eps"] == 1


def test_a_label_left_reserved_wants_a_retry(run, ledger, monkeypatch):
    asked = ["heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, *PAID, "--label", "a"]
    with monkeypatch.context() as patched:
        patched.setattr("geodp.release.drawn", lambda *a: (_ for _ in ()).throw(RuntimeError("r07")))
        broken = run(*asked)
    assert broken.code == 1
    assert "r07" not in broken.err
    assert "geodp ledger show" in broken.err
    assert run(*asked).code == 4
    assert run(*asked, "--retry", "--reason", "power cut").code == 0
    shown = run("ledger", "show", "city.ledger")
    assert "abandoned" in shown.out
    assert "power cut" in shown.out


def test_a_ledger_shows_its_releases_what_was_spent_and_what_is_left(run, ledger):
    empty = run("ledger", "show", "city.ledger")
    assert empty.code == 0
    assert "0 debits" in empty.out
    assert run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, *PAID, "--label", "2026-11-30").code == 0
    shown = run("ledger", "show", "city.ledger")
    assert "2026-11-30" in shown.out
    assert "released" in shown.out
    facts = run("ledger", "show", "city.ledger", "--json").facts
    assert facts["ceiling"]["eps"] == 3
    assert (facts["spent"]["eps"], facts["remaining"]["eps"]) == (1, 2)
    assert facts["releases"][0]["label"] == "2026-11-30"
    assert facts["releases"][0]["reason"] is None
    explained = run("show", "city.ledger", "2026-11-30")
    assert explained.out.startswith("Released    distinct riders")
    assert run("show", "city.ledger", "another").code == 4
    assert run("ledger", "show", "other.ledger").code == 4


def test_creating_twice_must_agree(run, ledger):
    assert run("ledger", "create", "city.ledger", "--eps", "3.0", "--delta", "0.00001").code == 0
    other = run("ledger", "create", "city.ledger", "--eps", "4", "--delta", "1e-5")
    assert other.code == 4
    assert run("ledger", "create", "new.ledger", "--eps", "-1").code == 2
    assert run("ledger", "create", "new.ledger", "--eps", "1", "--tier", "public").code == 2
    assert not os.path.exists("new.ledger")
    asked = [
        "--tier",
        "public=0.1",
        "--tier",
        "partner=0.5",
        "--control",
        "DPIA-2026-14",
        "--accountant",
        "basic",
    ]
    assert run("ledger", "create", "new.ledger", "--eps", "1", *asked).code == 0
    made = geodp.Ledger("new.ledger")
    assert (made.control, set(made.tiers)) == ("DPIA-2026-14", {"public", "partner"})


def test_verifying_says_what_disagrees(run, ledger):
    asked = ["trips.parquet", "-o", "heat.parquet", *ASKED, *PAID, "--label", "a"]
    assert run("heatmap", *asked).code == 0
    well = run("ledger", "verify", "city.ledger", "--release", "heat.parquet")
    assert (well.code, well.out) == (0, "city.ledger: all is well.\n")
    import sqlite3

    with sqlite3.connect("city.ledger") as connection:
        connection.execute("UPDATE geodp_entries SET label = 'b'")
    connection.close()
    wrong = run("ledger", "verify", "city.ledger", "--json")
    assert wrong.code == 4
    assert "problem" in wrong.err


def test_a_config_gives_defaults_and_the_command_line_wins(run, ledger, monkeypatch):
    Path("nightly.toml").write_text(
        'subject = "rider"\ncap = 3\nbounds = [-74.3, 40.4, -73.6, 41.0]\ngrid = "h3:6"\n'
        'eps = 0.1\ndelta = "1e-6"\n'
        '[heatmap]\ninput = "trips.parquet"\noutput = ["heat.geojson", "heat.csv"]\nledger = "city.ledger"\n'
        'outside = "drop"\nby = { hour = "0:2" }\n'
    )
    monkeypatch.chdir("/")
    config = ["--config", ledger.parent / "nightly.toml"]
    done = run("heatmap", *config, "--label", "2026-11-30", "--json", "--eps", "0.2")
    assert done.code == 0, done.err
    assert done.facts["record"]["charge"]["eps"] == "1/5"
    assert (ledger.parent / "heat.csv").exists()
    plan = run("plan", *config, "--json").facts["plan"]
    assert plan["charge"]["eps"] == "0.1"
    assert plan["by"] in ({}, None) or "levels" not in plan["by"]


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("[heatmap]\ncolour = 1", 2, "no option 'colour'"),
        ("colour = 1", 2, "no option 'colour'"),
        ("eps = ", 2, "no TOML"),
        ('[heatmap]\nlabel = "nightly"', 2, "first night for ever"),
        ('label = "nightly"', 2, "first night for ever"),
        ("heatmap = 1", 2, "table"),
        ("eps = true", 2, "no number"),
        ("eps = 1\nbounds = 4", 2, "four numbers"),
    ],
)
def test_a_config_that_is_wrong_says_where(run, folder, text, code, word):
    Path("bad.toml").write_text(text)
    done = run("heatmap", "--config", "bad.toml", "trips.parquet", "-o", "heat.csv", *WHO)
    assert done.code == code
    assert word in done.err.splitlines()[-1]
    assert run("plan", "--config", "nowhere.toml").code == 4
