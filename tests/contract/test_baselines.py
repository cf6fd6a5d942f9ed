"""Baselines are kept per account, name and test, encrypted, within limits, and go with the account."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from tests.helpers.archive import MINUTE, NOW, Archive
from tests.helpers.compared_runs import measured_run

from daskscope.storage import schema
from daskscope.storage.base.vault import BrokenSeal
from daskscope.storage.catalog import baselines
from daskscope.storage.catalog.baselines import (
    Baseline,
    BaselinesFull,
    delete_baseline,
    find_runs,
    keep_baseline,
    list_baselines,
)

RUNS = [measured_run(seed).to_dict() for seed in range(2)]
OTHER = [measured_run(7, 2.0).to_dict()]


def keep(archive: Archive, name: str, test: str, runs: list[dict[str, object]] = RUNS, account: int = 0) -> Baseline:
    with archive.write() as tx:
        return keep_baseline(tx, account or archive.account, "mia", name, test, runs)


def listed(archive: Archive, account: int = 0) -> list[tuple[str, str]]:
    with archive.read() as tx:
        return [(row.name, row.test) for row in list_baselines(tx, account or archive.account)]


def test_a_baseline_is_read_as_it_was_kept_and_replaced_by_a_newer_one(archive: Archive) -> None:
    first = keep(archive, "main", "test-a")
    assert first == Baseline("main", "test-a", 2, first.nbytes, NOW, NOW, "mia")
    archive.now_us += MINUTE
    with archive.write() as tx:
        second = keep_baseline(tx, archive.account, "olga", "main", "test-a", OTHER)
    assert second == Baseline("main", "test-a", 1, second.nbytes, NOW, NOW + MINUTE, "olga")
    with archive.read() as tx:
        assert find_runs(tx, archive.account, "main", "test-a") == OTHER
        assert find_runs(tx, archive.account, "main", "test-b") is None


def test_code_in_baselines_is_encrypted_and_bound_to_its_row(archive: Archive) -> None:
    keep(archive, "main", "test-a")
    keep(archive, "main", "test-b", OTHER)
    first, second = archive.rows(schema.baselines, "sealed_runs")
    assert "scored.compute()" in str(RUNS)
    assert b"scored" not in bytes(first["sealed_runs"])
    archive.execute(
        sa.update(schema.baselines).where(schema.baselines.c.test == "test-a").values(sealed_runs=second["sealed_runs"])
    )
    with archive.read() as tx, pytest.raises(BrokenSeal):
        find_runs(tx, archive.account, "main", "test-a")


def test_an_account_sees_and_deletes_only_its_own(archive: Archive) -> None:
    other = archive.new_account("other")
    keep(archive, "main", "test-a")
    keep(archive, "main", "test-a", OTHER, other)
    with archive.write() as tx:
        assert delete_baseline(tx, other, "main", "test-a")
        assert not delete_baseline(tx, other, "main", "test-a")
    with archive.read() as tx:
        assert find_runs(tx, archive.account, "main", "test-a") == RUNS
        assert find_runs(tx, other, "main", "test-a") is None


def test_a_list_goes_on_after_its_last_item(archive: Archive) -> None:
    keys = [(name, test) for name in ("branch", "main") for test in ("a", "b", "c")]
    for name, test in reversed(keys):
        keep(archive, name, test)
    found: list[tuple[str, str]] = []
    with archive.read() as tx:
        while page := list_baselines(tx, archive.account, limit=4, after=found[-1] if found else None):
            found += [(row.name, row.test) for row in page]
        assert [row.test for row in list_baselines(tx, archive.account, name="main")] == ["a", "b", "c"]
    assert found == keys


@pytest.mark.parametrize("limit", ["MAX_BASELINES", "MAX_NBYTES"])
def test_an_account_has_limits(archive: Archive, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    used = keep(archive, "main", "a").nbytes + keep(archive, "main", "b").nbytes
    monkeypatch.setattr(baselines, limit, 2 if limit == "MAX_BASELINES" else used)
    with pytest.raises(
        BaselinesFull, match=r"The account has 2 of .* Delete some with DELETE /api/v1/baselines/NAME/TEST"
    ):
        keep(archive, "main", "c")
    # One that is there already is replaced, and other accounts have their own limits.
    keep(archive, "main", "b", OTHER)
    keep(archive, "main", "c", account=archive.new_account("other"))
    assert listed(archive) == [("main", "a"), ("main", "b")]


def test_baselines_go_with_the_account(archive: Archive) -> None:
    other = archive.new_account("other")
    keep(archive, "main", "a", account=other)
    keep(archive, "main", "a")
    archive.execute(sa.delete(schema.accounts).where(schema.accounts.c.id == other))
    assert [row["account_id"] for row in archive.rows(schema.baselines, "account_id")] == [archive.account]
