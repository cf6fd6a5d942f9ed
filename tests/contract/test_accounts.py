"""Users, accounts, tokens, sessions and reports, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

import pytest
import sqlalchemy as sa
from tests.archive import DAY, LOST_AFTER, MINUTE, NOW, Archive

from daskscope.storage import accounts, reports, schema, sessions, tokens, users
from daskscope.storage.accounts import Preferences
from daskscope.storage.clusters import ClusterFilter, list_clusters
from daskscope.storage.database import Database, StorageError
from daskscope.storage.failures import list_error_groups


def add_user(archive: Archive, name: str, role: str = "") -> int:
    with archive.database.write() as connection:
        number = users.create_user(connection, name, "", NOW).id
        if role:
            accounts.set_member(connection, archive.account, number, role, NOW)
    return number


# ---------------------------------------------------------------- accounts and members


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "api", "a b", "ü", "x" * 41, "a\0", "../etc"])
def test_names_that_could_not_be_reached_are_refused(archive: Archive, name: str) -> None:
    with archive.database.write() as connection:
        with pytest.raises(StorageError, match="cannot be the name"):
            accounts.create_account(connection, archive.vault, name, NOW)
        with pytest.raises(StorageError, match="cannot be the name"):
            users.create_user(connection, name, "", NOW)


def test_a_name_is_given_once_even_if_its_owner_is_gone(archive: Archive) -> None:
    add_user(archive, "ann")
    archive.execute(sa.update(schema.users).values(disabled_us=NOW))
    with archive.database.write() as connection:
        with pytest.raises(StorageError, match="already"):
            users.create_user(connection, "ann", "", NOW)
        with pytest.raises(StorageError, match="already"):
            accounts.create_account(connection, archive.vault, "team", NOW)
        # The transaction goes on.
        assert users.create_user(connection, "bob", "", NOW).name == "bob"
    with archive.database.read() as connection:
        assert [user is None for user in (users.find_user(connection, "ann"), users.find_user(connection, "bob"))] == [
            True,
            False,
        ]


def test_an_account_always_has_an_owner(archive: Archive) -> None:
    ann, bob = add_user(archive, "ann", "owner"), add_user(archive, "bob", "member")
    with archive.database.write() as connection:
        with pytest.raises(StorageError, match="only owner"):
            accounts.set_member(connection, archive.account, ann, "viewer", NOW)
        with pytest.raises(StorageError, match="only owner"):
            accounts.remove_member(connection, archive.account, ann)
        with pytest.raises(StorageError, match="no role"):
            accounts.set_member(connection, archive.account, bob, "king", NOW)
        accounts.set_member(connection, archive.account, bob, "owner", NOW)
        assert accounts.remove_member(connection, archive.account, ann)
        assert not accounts.remove_member(connection, archive.account, ann)
        assert accounts.roles_of(connection, bob) == {archive.account: "owner"}
        assert [row["name"] for row in accounts.list_members(connection, archive.account)] == ["bob"]


def test_an_owner_who_is_gone_does_not_count(archive: Archive) -> None:
    add_user(archive, "ann", "owner")
    bob = add_user(archive, "bob", "owner")
    archive.execute(sa.update(schema.users).where(schema.users.c.name == "ann").values(disabled_us=NOW))
    with archive.database.write() as connection, pytest.raises(StorageError, match="only owner"):
        accounts.remove_member(connection, archive.account, bob)


def test_two_owners_cannot_take_each_other_out(postgres_url: str, tmp_path: Any) -> None:
    from daskscope.storage.blobs import LocalStore

    archive = Archive(Database(postgres_url), LocalStore(tmp_path / "blobs"))
    numbers = [add_user(archive, name, "owner") for name in ("ann", "bob")]
    removed, barrier = [], threading.Barrier(2)

    def remove(number: int) -> None:
        barrier.wait(10)
        try:
            with archive.database.write() as connection:
                accounts.remove_member(connection, archive.account, number)
            removed.append(number)
        except StorageError:
            pass

    threads = [threading.Thread(target=remove, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(removed) == 1
    archive.database.close()


def test_preferences_are_kept_and_unknown_ones_ignored(archive: Archive) -> None:
    wanted = Preferences(visibility="private", keep_rows_days=5, price_overrides={"gpu": {"core_hour": 2.0}})
    with archive.database.write() as connection:
        accounts.set_preferences(connection, archive.account, wanted)
        assert accounts.get_account(connection, archive.account).preferences == wanted
    assert Preferences.of('{"visibility": "private", "from_the_future": 1}') == Preferences(visibility="private")
    assert asdict(Preferences.of("")) == asdict(Preferences())


# ---------------------------------------------------------------- passwords


def test_a_password_matches_itself_and_a_new_one_ends_sessions(archive: Archive) -> None:
    ann = add_user(archive, "ann")
    stored = users.hash_password("correct horse battery")
    with archive.database.write() as connection:
        users.set_password(connection, ann, stored)
        secret = sessions.open_session(connection, ann, "browser", NOW)
        assert users.stored_password(connection, "ann") == (ann, stored)
        number, nobody = users.stored_password(connection, "nobody")
    assert (number, users.password_matches("anything", nobody)) == (0, False)
    assert users.password_matches("correct horse battery", stored)
    assert not users.password_matches("Correct horse battery", stored)
    assert not users.password_matches("x", "no hash")
    with pytest.raises(StorageError, match="at least"):
        users.hash_password("short")
    with archive.database.write() as connection:
        assert sessions.session_user(connection, secret, NOW) == ann
        users.set_password(connection, ann, users.hash_password("another password"))
        assert sessions.session_user(connection, secret, NOW) is None


def test_guessing_is_stopped_and_allowed_again_later(archive: Archive) -> None:
    def guess(at: int, subject: str = "user ann") -> None:
        with archive.database.write() as connection:
            users.count_attempt(connection, {subject: users.MOST_FOR_A_USER, "address 1": users.MOST_ATTEMPTS}, at)

    for number in range(users.MOST_ATTEMPTS):
        guess(NOW + number)
    with pytest.raises(users.TooManyAttempts):
        guess(NOW + 100)
    # From the same address, for whomever.
    with pytest.raises(users.TooManyAttempts):
        guess(NOW + 100, "user bob")
    guess(NOW + users.LOCK_US + 200)
    assert {row["tries"] for row in archive.rows(schema.attempts)} == {1}
    with archive.database.write() as connection:
        users.forget_attempts(connection, "user ann")
        users.take_back_attempt(connection, "address 1")
    assert [(row["subject"], row["tries"]) for row in archive.rows(schema.attempts)] == [("address 1", 0)]


def test_ten_guesses_from_elsewhere_do_not_keep_a_user_out(archive: Archive) -> None:
    with archive.database.write() as connection:
        for number in range(users.MOST_FOR_A_USER):
            users.count_attempt(connection, {"user ann": users.MOST_FOR_A_USER, f"address {number}": 1}, NOW)
        with pytest.raises(users.TooManyAttempts):
            users.count_attempt(connection, {"user ann": users.MOST_FOR_A_USER, "address": 1}, NOW)


def test_a_user_without_a_password_is_shut_out_with_every_token(archive: Archive) -> None:
    with archive.database.write() as connection:
        local = users.open_user(connection, "local", NOW, admin=True)
        ann = users.create_user(connection, "ann", "a hash", NOW, admin=True)
        for user in (local.id, ann.id):
            accounts.set_member(connection, archive.account, user, "owner", NOW)
    secrets = [new_token(archive, user, "admin")[1] for user in (local.id, ann.id)]
    with archive.database.write() as connection:
        for name in ("local", "ann", "nobody"):
            users.shut_out(connection, name, NOW)
    with archive.database.read() as connection:
        assert [tokens.find_token(connection, secret, NOW) is None for secret in secrets] == [True, False]
        found = [users.find_user(connection, name) for name in ("local", "ann")]
    assert [user.admin for user in found if user] == [False, True]


def test_guesses_of_long_ago_are_forgotten(archive: Archive) -> None:
    with archive.database.write() as connection:
        users.count_attempt(connection, {f"user {n}": 1 for n in range(50)}, NOW)
        users.count_attempt(connection, {"user now": 1}, NOW + users.LOCK_US)
    assert archive.count(schema.attempts) == 1


# ---------------------------------------------------------------- tokens


def new_token(archive: Archive, user: int, *scopes: str, **values: Any) -> tuple[int, str]:
    with archive.database.write() as connection:
        return tokens.create_token(
            connection, account=archive.account, user=user, scopes=frozenset(scopes), now_us=NOW, **values
        )


def find(archive: Archive, secret: str, now: int = NOW) -> tokens.Token | None:
    with archive.database.read() as connection:
        return tokens.find_token(connection, secret, now)


def test_a_token_is_known_by_its_secret_which_is_kept_nowhere(archive: Archive) -> None:
    ann = add_user(archive, "ann", "owner")
    number, secret = new_token(archive, ann, "read", "admin", label="laptop", cluster="c")
    assert tokens.well_formed(secret)
    assert not tokens.well_formed(secret[:-1] + "x")
    found = find(archive, secret)
    assert found is not None
    assert (found.id, found.account, found.user_name, found.cluster) == (number, archive.account, "ann", "c")
    assert found.scopes == {"read", "admin"}
    assert find(archive, secret + "x") is None
    assert find(archive, "\0") is None
    assert secret not in repr(archive.rows(schema.tokens))
    with pytest.raises(StorageError, match="scopes"):
        new_token(archive, ann, "everything")
    with pytest.raises(StorageError, match="scopes"):
        new_token(archive, ann)


def test_a_token_ends_with_its_time_its_revocation_and_its_user(archive: Archive) -> None:
    ann, bob = add_user(archive, "ann", "owner"), add_user(archive, "bob", "member")
    _, short = new_token(archive, ann, "read", expires_us=NOW + MINUTE)
    number, revoked = new_token(archive, ann, "read")
    _, removed = new_token(archive, bob, "read", "write", "admin")
    assert find(archive, short, NOW + MINUTE - 1) is not None
    assert find(archive, short, NOW + MINUTE) is None
    with archive.database.write() as connection:
        assert not tokens.revoke_token(connection, archive.account + 1, None, number, NOW)
        assert not tokens.revoke_token(connection, archive.account, bob, number, NOW)
        assert tokens.revoke_token(connection, archive.account, ann, number, NOW)
        assert not tokens.revoke_token(connection, archive.account, ann, number, NOW)
    assert find(archive, revoked) is None
    # Not more than its user may at the moment.
    found = find(archive, removed)
    assert found is not None
    assert found.scopes == {"read", "write"}
    with archive.database.write() as connection:
        accounts.set_member(connection, archive.account, bob, "viewer", NOW)
    demoted = find(archive, removed)
    assert demoted is not None
    assert demoted.scopes == {"read"}
    with archive.database.write() as connection:
        accounts.remove_member(connection, archive.account, bob)
    assert find(archive, removed) is None


def test_tokens_are_listed_without_those_of_clusters(archive: Archive) -> None:
    ann = add_user(archive, "ann", "owner")
    bob = add_user(archive, "bob", "member")
    first, _ = new_token(archive, ann, "read")
    second, _ = new_token(archive, bob, "ingest", expires_us=NOW + 1)
    new_token(archive, bob, "ingest", cluster="c")

    def listed(user: int | None, *, all_: bool = False) -> list[tuple[int, bool]]:
        with archive.database.read() as connection:
            rows = tokens.list_tokens(connection, archive.account, user, include_inactive=all_, now_us=NOW + MINUTE)
        return [(row["id"], row["expired"]) for row in rows]

    assert listed(None) == [(first, False)]
    assert listed(None, all_=True) == [(first, False), (second, True)]
    assert listed(bob, all_=True) == [(second, True)]


def test_a_revoked_token_takes_those_of_recorders_with_it(archive: Archive) -> None:
    ann, bob = add_user(archive, "ann", "owner"), add_user(archive, "bob", "member")
    laptop, _ = new_token(archive, ann, "ingest", "read")
    other, _ = new_token(archive, ann, "ingest")
    below = [new_token(archive, ann, "ingest", cluster=f"c{n}", parent=laptop)[1] for n in range(2)]
    new_token(archive, ann, "ingest", cluster="old", parent=laptop, expires_us=NOW - 1)
    beside = [
        new_token(archive, ann, "ingest", cluster="d", parent=other)[1],
        new_token(archive, bob, "ingest", cluster="e")[1],
    ]

    def counts() -> dict[int, int]:
        with archive.database.read() as connection:
            rows = tokens.list_tokens(connection, archive.account, None, include_inactive=True, now_us=NOW)
        return {row["id"]: row["recorders"] for row in rows}

    assert counts() == {laptop: 2, other: 1}
    with archive.database.write() as connection:
        assert tokens.has_cluster_token(connection, archive.account, ann, "c0")
        assert tokens.revoke_token(connection, archive.account, ann, laptop, NOW) == tokens.Revoked(recorders=3)
        assert not tokens.has_cluster_token(connection, archive.account, ann, "c0")
    assert [find(archive, secret) for secret in below] == [None, None]
    assert None not in [find(archive, secret) for secret in beside]
    assert counts() == {laptop: 0, other: 1}
    # A server that had not heard of it yet made one more.
    _, late = new_token(archive, ann, "ingest", cluster="late", parent=laptop)
    assert find(archive, late) is None


def test_a_recorders_token_ends_with_its_user(archive: Archive) -> None:
    add_user(archive, "ann", "owner")
    secrets = {}
    for name in ("removed", "disabled", "deleted"):
        user = add_user(archive, name, "member")
        parent, _ = new_token(archive, user, "ingest")
        secrets[user] = new_token(archive, user, "ingest", cluster=name, parent=parent)[1]
    assert None not in [find(archive, secret) for secret in secrets.values()]
    removed, disabled, deleted = secrets
    with archive.database.write() as connection:
        assert accounts.remove_member(connection, archive.account, removed)
        # Somebody who comes back has none of what they had.
        accounts.set_member(connection, archive.account, removed, "member", NOW)
    archive.execute(sa.update(schema.users).where(schema.users.c.id == disabled).values(disabled_us=NOW))
    archive.execute(sa.delete(schema.users).where(schema.users.c.id == deleted))
    assert [find(archive, secret) for secret in secrets.values()] == [None, None, None]


# ---------------------------------------------------------------- sessions and logins


def test_a_session_lasts_until_it_is_closed_or_old(archive: Archive) -> None:
    ann = add_user(archive, "ann")
    with archive.database.write() as connection:
        first, second = (sessions.open_session(connection, ann, "x" * 999, NOW) for _ in range(2))
        sessions.close_session(connection, first)
        assert sessions.session_user(connection, first, NOW) is None
        assert sessions.session_user(connection, second, NOW) == ann
        assert sessions.session_user(connection, second, NOW + sessions.SESSION_US) is None
        sessions.open_session(connection, ann, "", NOW + sessions.SESSION_US + 1)
    assert archive.count(schema.sessions) == 1


def test_a_login_is_decided_once_and_collected_once(archive: Archive) -> None:
    ann = add_user(archive, "ann")
    with archive.database.write() as connection:
        secret, code = sessions.begin_login(connection, "laptop", NOW)
        waiting = sessions.collect_login(connection, secret, NOW)
        assert waiting is not None
        assert waiting.state == "waiting"
        assert sessions.find_login(connection, f" {code.lower()} ", NOW) == waiting
        assert sessions.find_login(connection, "\0", NOW) is None
        assert sessions.decide_login(connection, code, ann, archive.account, NOW, approve=True)
        assert not sessions.decide_login(connection, code, ann, archive.account, NOW, approve=False)
        approved = sessions.collect_login(connection, secret, NOW)
        assert approved is not None
        assert (approved.state, approved.user, approved.account) == ("approved", ann, archive.account)
        assert sessions.collect_login(connection, secret, NOW) is None
        late, code = sessions.begin_login(connection, "late", NOW)
        assert not sessions.decide_login(connection, code, ann, archive.account, NOW + DAY, approve=True)
        assert sessions.collect_login(connection, late, NOW + DAY) is None


# ---------------------------------------------------------------- reports


def new_report(archive: Archive, title: str, **values: Any) -> dict[str, Any]:
    settings = {
        "filename": f"{title}.html",
        "kind": "html",
        "path": f"1/{title}",
        "nbytes": 5,
        "visibility": "public",
        **values,
    }
    with archive.database.write() as connection:
        return reports.add_report(connection, archive.account, 0, reports.NewReport(title=title, **settings), NOW)


def titles(archive: Archive, **wanted: Any) -> list[str]:
    with archive.database.read() as connection:
        return [row["title"] for row in reports.list_reports(connection, archive.account, NOW, **wanted)]


def test_reports_are_numbered_shared_changed_and_deleted(archive: Archive) -> None:
    first = new_report(archive, "first", tags=("a", "ü"))
    second = new_report(archive, "100% done", visibility="private", expires_us=NOW + 5)
    assert (first["number"], second["number"], second["share"]) == (1, 2, "")
    assert titles(archive) == ["100% done", "first"]
    assert titles(archive, search="0%") == ["100% done"]
    assert titles(archive, search="%") == ["100% done"]
    assert titles(archive, search="\0") == []
    assert titles(archive, tag="ü") == ["first"]
    assert titles(archive, before=2) == ["first"]
    assert titles(archive, user="nobody") == []
    with archive.database.write() as connection:
        found = reports.find_shared(connection, first["share"], NOW)
        assert found is not None
        assert found["number"] == 1
        for nothing in ("", "wrong", "\0", second["share"]):
            assert reports.find_shared(connection, nothing, NOW) is None
        assert reports.find_report(connection, archive.account, 2, NOW + 5) is None
        reports.change_report(connection, first["id"], {"visibility": "private", "tags": ["b"], "title": "new"})
        assert reports.find_shared(connection, first["share"], NOW) is None
        assert reports.delete_report(connection, second["id"]) == ["1/100% done"]
    assert titles(archive, tag="b") == ["new"]
    # A number is not given again.
    assert new_report(archive, "third")["number"] == 3


def test_reports_of_an_account_have_an_end(archive: Archive) -> None:
    def add(nbytes: int, limit: int, account: int = 0, **values: Any) -> int:
        new = reports.NewReport("f", "t", "html", "1/p", nbytes, "private", **values)
        with archive.database.write() as connection:
            return int(reports.add_report(connection, account or archive.account, 0, new, NOW, limit=limit)["number"])

    assert [add(60, 100), add(40, 100)] == [1, 2]
    with pytest.raises(reports.ReportsFull, match=r"have 100 B of the 100 B .* reports delete .* --max-reports"):
        add(1, 100)
    # Another account's room is its own, and 0 is no limit.
    assert add(100, 100, archive.new_account("others")) == 1
    assert add(10**12, 0, expires_us=NOW + 5) == 3
    with archive.database.read() as connection:
        assert reports.used_nbytes(connection, archive.account, NOW) == 100 + 10**12
        # What has expired counts no more.
        assert reports.used_nbytes(connection, archive.account, NOW + 5) == 100


def test_two_uploads_do_not_both_get_the_last_of_the_room(postgres_url: str, tmp_path: Any) -> None:
    from daskscope.storage.blobs import LocalStore

    archive = Archive(Database(postgres_url), LocalStore(tmp_path / "blobs"))
    done, barrier = list[str](), threading.Barrier(4)

    def add() -> None:
        barrier.wait(10)
        try:
            with archive.database.write() as connection:
                new = reports.NewReport("f", "t", "html", "1/p", 60, "private")
                reports.add_report(connection, archive.account, 0, new, NOW, limit=100)
            done.append("stored")
        except reports.ReportsFull:
            done.append("full")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    archive.database.close()
    assert sorted(done) == ["full", "full", "full", "stored"]


# ---------------------------------------------------------------- what nobody should ask


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "'; DROP TABLE runs; --", "%" * 1000, "\\", "x" * 100_000])
def test_any_text_may_be_asked_for(archive: Archive, text: str) -> None:
    with archive.database.read() as connection:
        for wanted in (ClusterFilter(search=text), ClusterFilter(user=text), ClusterFilter(tag=text)):
            assert list_clusters(connection, archive.account, wanted, NOW, LOST_AFTER) == []
        assert list_error_groups(connection, archive.vault, archive.account, fingerprint=text) == []
        assert users.find_user(connection, text) is None
        assert accounts.find_account(connection, text) is None
