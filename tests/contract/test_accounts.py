"""Users, accounts, tokens, sessions and reports, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import DAY, MINUTE, NOW, Archive, at

from daskscope.server.http.passwords import MAX_ATTEMPTS, MAX_PER_USER
from daskscope.storage import schema
from daskscope.storage.base.database import Database, StorageError
from daskscope.storage.catalog import reports
from daskscope.storage.catalog.clusters import ClusterFilter, list_clusters
from daskscope.storage.catalog.error_groups import list_error_groups
from daskscope.storage.people import accounts, sessions, tokens, users
from daskscope.storage.people.accounts import Preferences


def add_user(archive: Archive, name: str, role: str = "") -> int:
    with archive.write() as tx:
        number = users.create_user(tx, name, "").id
        if role:
            accounts.set_member(tx, archive.account, number, role)
    return number


# ---------------------------------------------------------------- accounts and members


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "api", "a b", "ü", "x" * 41, "a\0", "../etc"])
def test_names_that_do_not_work_in_a_url_are_refused(archive: Archive, name: str) -> None:
    with archive.write() as tx:
        with pytest.raises(StorageError, match="cannot be the name"):
            accounts.create_account(tx, name)
        with pytest.raises(StorageError, match="cannot be the name"):
            users.create_user(tx, name, "")


def test_a_name_is_not_reused_even_if_its_user_is_disabled(archive: Archive) -> None:
    add_user(archive, "ann")
    archive.execute(sa.update(schema.users).values(disabled_us=NOW))
    with archive.write() as tx:
        with pytest.raises(StorageError, match="already"):
            users.create_user(tx, "ann", "")
        with pytest.raises(StorageError, match="already"):
            accounts.create_account(tx, "team")
        # The transaction is still usable.
        assert users.create_user(tx, "bob", "").name == "bob"
    with archive.read() as tx:
        assert [user is None for user in (users.find_user(tx, "ann"), users.find_user(tx, "bob"))] == [
            True,
            False,
        ]


def test_an_account_always_has_an_owner(archive: Archive) -> None:
    ann, bob = add_user(archive, "ann", "owner"), add_user(archive, "bob", "member")
    with archive.write() as tx:
        with pytest.raises(StorageError, match="only owner"):
            accounts.set_member(tx, archive.account, ann, "viewer")
        with pytest.raises(StorageError, match="only owner"):
            accounts.remove_member(tx, archive.account, ann)
        with pytest.raises(StorageError, match="no role"):
            accounts.set_member(tx, archive.account, bob, "king")
        accounts.set_member(tx, archive.account, bob, "owner")
        assert accounts.remove_member(tx, archive.account, ann)
        assert not accounts.remove_member(tx, archive.account, ann)
        assert accounts.roles_of(tx, bob) == {archive.account: "owner"}
        assert [row.name for row in accounts.list_members(tx, archive.account)] == ["bob"]


def test_a_disabled_owner_does_not_count(archive: Archive) -> None:
    add_user(archive, "ann", "owner")
    bob = add_user(archive, "bob", "owner")
    archive.execute(sa.update(schema.users).where(schema.users.c.name == "ann").values(disabled_us=NOW))
    with archive.write() as tx, pytest.raises(StorageError, match="only owner"):
        accounts.remove_member(tx, archive.account, bob)


def test_two_owners_cannot_remove_each_other(postgres_url: str, tmp_path: Any) -> None:
    from daskscope.storage.base.blobs import LocalStore

    archive = Archive(Database(postgres_url), LocalStore(tmp_path / "blobs"))
    numbers = [add_user(archive, name, "owner") for name in ("ann", "bob")]
    removed, barrier = [], threading.Barrier(2)

    def remove(number: int) -> None:
        barrier.wait(10)
        try:
            with archive.write() as tx:
                accounts.remove_member(tx, archive.account, number)
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


def test_preferences_are_stored_and_unknown_ones_are_ignored(archive: Archive) -> None:
    wanted = Preferences(visibility="private", keep_rows_days=5, price_overrides={"gpu": {"core_hour": 2.0}})
    with archive.write() as tx:
        accounts.set_preferences(tx, archive.account, wanted)
        assert accounts.get_account(tx, archive.account).preferences == wanted
    assert Preferences.of('{"visibility": "private", "from_the_future": 1}') == Preferences(visibility="private")
    assert asdict(Preferences.of("")) == asdict(Preferences())


# ---------------------------------------------------------------- passwords


def test_a_password_matches_itself_and_a_new_password_ends_sessions(archive: Archive) -> None:
    ann = add_user(archive, "ann")
    stored = users.hash_password("correct horse battery")
    with archive.write() as tx:
        users.set_password(tx, ann, stored)
        cookie = sessions.open_session(tx, ann, "browser").cookie
        assert users.stored_password(tx, "ann") == (ann, stored)
        number, nobody = users.stored_password(tx, "nobody")
    assert (number, users.password_matches("anything", nobody)) == (0, False)
    assert users.password_matches("correct horse battery", stored)
    assert not users.password_matches("Correct horse battery", stored)
    assert not users.password_matches("x", "no hash")
    with pytest.raises(StorageError, match="at least"):
        users.hash_password("short")
    with archive.write() as tx:
        assert sessions.find_session(tx, cookie) is not None
        users.set_password(tx, ann, users.hash_password("another password"))
        assert sessions.find_session(tx, cookie) is None


def test_too_many_password_attempts_are_blocked_for_a_while(archive: Archive) -> None:
    def guess(now_us: int, subject: str = "user ann") -> None:
        with archive.write() as tx:
            users.count_attempt(at(tx, now_us), {subject: MAX_PER_USER, "address 1": MAX_ATTEMPTS})

    for number in range(MAX_ATTEMPTS):
        guess(NOW + number)
    with pytest.raises(users.TooManyAttempts):
        guess(NOW + 100)
    # The limit per address holds for every user.
    with pytest.raises(users.TooManyAttempts):
        guess(NOW + 100, "user bob")
    guess(NOW + users.LOCK_US + 200)
    assert {row["tries"] for row in archive.rows(schema.attempts)} == {1}
    with archive.write() as tx:
        users.forget_attempts(tx, "user ann")
        users.forget_attempt(tx, "address 1")
    assert [(row["subject"], row["tries"]) for row in archive.rows(schema.attempts)] == [("address 1", 0)]


def test_the_limit_per_user_counts_attempts_from_all_addresses(archive: Archive) -> None:
    with archive.write() as tx:
        for number in range(MAX_PER_USER):
            users.count_attempt(tx, {"user ann": MAX_PER_USER, f"address {number}": 1})
        with pytest.raises(users.TooManyAttempts):
            users.count_attempt(tx, {"user ann": MAX_PER_USER, "address": 1})


def test_disabling_tokens_affects_only_users_without_a_password(archive: Archive) -> None:
    with archive.write() as tx:
        local = users.open_user(tx, "local", admin=True)
        ann = users.create_user(tx, "ann", "a hash", admin=True)
        for user in (local.id, ann.id):
            accounts.set_member(tx, archive.account, user, "owner")
    secrets = [new_token(archive, user, "admin")[1] for user in (local.id, ann.id)]
    with archive.write() as tx:
        for name in ("local", "ann", "nobody"):
            users.disable_tokens(tx, name)
    with archive.read() as tx:
        assert [tokens.find_token(tx, secret) is None for secret in secrets] == [True, False]
        found = [users.find_user(tx, name) for name in ("local", "ann")]
    assert [user.admin for user in found if user] == [False, True]


def test_old_password_attempts_are_deleted(archive: Archive) -> None:
    with archive.write() as tx:
        users.count_attempt(tx, {f"user {n}": 1 for n in range(50)})
        users.count_attempt(at(tx, NOW + users.LOCK_US), {"user now": 1})
    assert archive.count(schema.attempts) == 1


# ---------------------------------------------------------------- tokens


def new_token(archive: Archive, user: int, *scopes: str, **values: Any) -> tuple[int, str]:
    with archive.write() as tx:
        return tokens.create_token(tx, account=archive.account, user=user, scopes=frozenset(scopes), **values)


def find(archive: Archive, secret: str, now: int = NOW) -> tokens.Token | None:
    with archive.read() as tx:
        return tokens.find_token(at(tx, now), secret)


def test_a_token_is_found_by_its_secret_which_is_not_stored(archive: Archive) -> None:
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


def test_a_token_ends_when_it_expires_is_revoked_or_its_user_is_removed(archive: Archive) -> None:
    ann, bob = add_user(archive, "ann", "owner"), add_user(archive, "bob", "member")
    _, short = new_token(archive, ann, "read", expires_us=NOW + MINUTE)
    number, revoked = new_token(archive, ann, "read")
    _, removed = new_token(archive, bob, "read", "write", "admin")
    assert find(archive, short, NOW + MINUTE - 1) is not None
    assert find(archive, short, NOW + MINUTE) is None
    with archive.write() as tx:
        assert not tokens.revoke_token(tx, archive.account + 1, None, number)
        assert not tokens.revoke_token(tx, archive.account, bob, number)
        assert tokens.revoke_token(tx, archive.account, ann, number)
        assert not tokens.revoke_token(tx, archive.account, ann, number)
    assert find(archive, revoked) is None
    # No more than the user's current role allows.
    found = find(archive, removed)
    assert found is not None
    assert found.scopes == {"read", "write"}
    with archive.write() as tx:
        accounts.set_member(tx, archive.account, bob, "viewer")
    demoted = find(archive, removed)
    assert demoted is not None
    assert demoted.scopes == {"read"}
    with archive.write() as tx:
        accounts.remove_member(tx, archive.account, bob)
    assert find(archive, removed) is None


def test_tokens_of_clusters_are_not_listed(archive: Archive) -> None:
    ann = add_user(archive, "ann", "owner")
    bob = add_user(archive, "bob", "member")
    first, _ = new_token(archive, ann, "read")
    second, _ = new_token(archive, bob, "ingest", expires_us=NOW + 1)
    new_token(archive, bob, "ingest", cluster="c")

    def listed(user: int | None, *, all_: bool = False) -> list[tuple[int, bool]]:
        with archive.read() as tx:
            rows = tokens.list_tokens(at(tx, NOW + MINUTE), archive.account, user, include_inactive=all_)
        return [(row.id, row.expired) for row in rows]

    assert listed(None) == [(first, False)]
    assert listed(None, all_=True) == [(first, False), (second, True)]
    assert listed(bob, all_=True) == [(second, True)]


def test_revoking_a_token_revokes_the_recorder_tokens_made_with_it(archive: Archive) -> None:
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
        with archive.read() as tx:
            rows = tokens.list_tokens(tx, archive.account, None, include_inactive=True)
        return {row.id: row.recorders for row in rows}

    assert counts() == {laptop: 2, other: 1}
    with archive.write() as tx:
        assert tokens.has_cluster_token(tx, archive.account, ann, "c0")
        revoked = tokens.revoke_token(tx, archive.account, ann, laptop)
        assert revoked is not None
        assert (revoked.recorders, revoked.children) == (3, 0)
        assert not tokens.has_cluster_token(tx, archive.account, ann, "c0")
    assert [find(archive, secret) for secret in below] == [None, None]
    assert None not in [find(archive, secret) for secret in beside]
    assert counts() == {laptop: 0, other: 1}
    # Another server, which did not know of the revocation yet, created one more.
    _, late = new_token(archive, ann, "ingest", cluster="late", parent=laptop)
    assert find(archive, late) is None


def test_revoking_a_token_revokes_its_descendants_at_any_depth(archive: Archive) -> None:
    ann = add_user(archive, "ann", "owner")
    first, top = new_token(archive, ann, "tokens")
    _, beside = new_token(archive, ann, "read")
    parent, secrets = first, [top]
    for _ in range(3):
        parent, secret = new_token(archive, ann, "tokens", parent=parent)
        secrets.append(secret)
    secrets.append(new_token(archive, ann, "ingest", cluster="c", parent=parent)[1])
    assert None not in [find(archive, secret) for secret in secrets]
    with archive.write() as tx:
        revoked = tokens.revoke_token(tx, archive.account, ann, first)
    assert revoked is not None
    assert (revoked.children, revoked.recorders) == (3, 1)
    assert [find(archive, secret) for secret in secrets] == [None] * 5
    assert find(archive, beside) is not None
    # Another server, which did not know of the revocation yet, created one more.
    assert find(archive, new_token(archive, ann, "read", parent=parent)[1]) is None


def test_a_token_is_invalid_once_an_ancestor_has_expired_or_is_missing(archive: Archive) -> None:
    ann = add_user(archive, "ann", "owner")
    first, _ = new_token(archive, ann, "tokens", expires_us=NOW + MINUTE)
    second, _ = new_token(archive, ann, "tokens", parent=first)
    _, third = new_token(archive, ann, "read", parent=second)
    assert find(archive, third) is not None
    with archive.read() as tx:
        assert tokens.find_token(at(tx, NOW + MINUTE), third) is None
    assert find(archive, new_token(archive, ann, "read", parent=999)[1]) is None


def test_a_recorder_token_outlives_the_expiry_of_an_ancestor_and_not_its_revocation(archive: Archive) -> None:
    ann = add_user(archive, "ann", "owner")
    first, _ = new_token(archive, ann, "tokens", expires_us=NOW + MINUTE)
    second, _ = new_token(archive, ann, "tokens", parent=first)
    _, recorder = new_token(archive, ann, "ingest", cluster="c", parent=second)
    with archive.read() as tx:
        assert tokens.find_token(at(tx, NOW + MINUTE), recorder) is not None
    with archive.write() as tx:
        assert tokens.revoke_token(tx, archive.account, None, first) is not None
    assert find(archive, recorder) is None


def test_a_recorder_token_ends_with_its_user(archive: Archive) -> None:
    add_user(archive, "ann", "owner")
    secrets = {}
    for name in ("removed", "disabled", "deleted"):
        user = add_user(archive, name, "member")
        parent, _ = new_token(archive, user, "ingest")
        secrets[user] = new_token(archive, user, "ingest", cluster=name, parent=parent)[1]
    assert None not in [find(archive, secret) for secret in secrets.values()]
    removed, disabled, deleted = secrets
    with archive.write() as tx:
        assert accounts.remove_member(tx, archive.account, removed)
        # A member who is added again does not get their old tokens back.
        accounts.set_member(tx, archive.account, removed, "member")
    archive.execute(sa.update(schema.users).where(schema.users.c.id == disabled).values(disabled_us=NOW))
    archive.execute(sa.delete(schema.users).where(schema.users.c.id == deleted))
    assert [find(archive, secret) for secret in secrets.values()] == [None, None, None]


# ---------------------------------------------------------------- sessions and sign-ins


def test_a_session_lasts_until_it_is_closed_or_expires(archive: Archive) -> None:
    ann = add_user(archive, "ann")
    with archive.write() as tx:
        first, second = (sessions.open_session(tx, ann, "x" * 999) for _ in range(2))
        sessions.close_session(tx, first.cookie)
        assert sessions.find_session(tx, first.cookie) is None
        expected = sessions.Session(ann, tokens.digest(second.page))
        assert sessions.find_session(tx, second.cookie) == expected
        assert sessions.find_session(at(tx, NOW + sessions.SESSION_US), second.cookie) is None
        sessions.open_session(at(tx, NOW + sessions.SESSION_US + 1), ann, "")
    assert archive.count(schema.sessions) == 1


def test_a_sign_in_is_decided_once_and_collected_once(archive: Archive) -> None:
    ann = add_user(archive, "ann")
    with archive.write() as tx:
        secret, code = sessions.begin_login(tx, "laptop")
        waiting = sessions.collect_login(tx, secret)
        assert waiting is not None
        assert waiting.state == "waiting"
        assert sessions.find_login(tx, f" {code.lower()} ") == waiting
        assert sessions.find_login(tx, "\0") is None
        assert sessions.decide_login(tx, code, ann, archive.account, approve=True)
        assert not sessions.decide_login(tx, code, ann, archive.account, approve=False)
        approved = sessions.collect_login(tx, secret)
        assert approved is not None
        assert (approved.state, approved.user_id, approved.account_id) == ("approved", ann, archive.account)
        assert sessions.collect_login(tx, secret) is None
        late, code = sessions.begin_login(tx, "late")
        assert not sessions.decide_login(at(tx, NOW + DAY), code, ann, archive.account, approve=True)
        assert sessions.collect_login(at(tx, NOW + DAY), late) is None


# ---------------------------------------------------------------- reports


def new_report(archive: Archive, title: str, **values: Any) -> reports.Report:
    settings: dict[str, Any] = {
        "filename": f"{title}.html",
        "kind": "html",
        "path": f"1/{title}",
        "nbytes": 5,
        "visibility": "public",
        **values,
    }
    with archive.write() as tx:
        return reports.add_report(tx, archive.account, 0, reports.NewReport(title=title, **settings))


def titles(archive: Archive, **wanted: Any) -> list[str]:
    with archive.read() as tx:
        return [row.title for row in reports.list_reports(tx, archive.account, **wanted)]


def test_reports_are_numbered_shared_changed_and_deleted(archive: Archive) -> None:
    first = new_report(archive, "first", tags=("a", "ü"))
    second = new_report(archive, "100% done", visibility="private", expires_us=NOW + 5)
    assert (first.number, second.number, second.share) == (1, 2, "")
    assert titles(archive) == ["100% done", "first"]
    assert titles(archive, search="0%") == ["100% done"]
    assert titles(archive, search="%") == ["100% done"]
    assert titles(archive, search="\0") == []
    assert titles(archive, tag="ü") == ["first"]
    assert titles(archive, before=2) == ["first"]
    assert titles(archive, user="nobody") == []
    with archive.write() as tx:
        found = reports.find_shared(tx, first.share)
        assert found is not None
        assert found.number == 1
        for nothing in ("", "wrong", "\0", second.share):
            assert reports.find_shared(tx, nothing) is None
        assert reports.find_report(at(tx, NOW + 5), archive.account, 2) is None
        reports.change_report(tx, first.id, {"visibility": "private", "tags": ["b"], "title": "new"})
        assert reports.find_shared(tx, first.share) is None
        assert reports.delete_report(tx, second.id) == ["1/100% done"]
    assert titles(archive, tag="b") == ["new"]
    # A number is not reused.
    assert new_report(archive, "third").number == 3


def test_the_reports_of_an_account_have_a_size_limit(archive: Archive) -> None:
    def add(nbytes: int, limit: int, account: int = 0, **values: Any) -> int:
        new = reports.NewReport("f", "t", "html", "1/p", nbytes, "private", **values)
        with archive.write() as tx:
            return reports.add_report(tx, account or archive.account, 0, new, limit=limit).number

    assert [add(60, 100), add(40, 100)] == [1, 2]
    with pytest.raises(reports.ReportsFull, match=r"use 100 B of 100 B.* reports delete .* --max-reports"):
        add(1, 100)
    # Each account has its own limit, and 0 means unlimited.
    assert add(100, 100, archive.new_account("others")) == 1
    assert add(10**12, 0, expires_us=NOW + 5) == 3
    with archive.read() as tx:
        assert reports.used_nbytes(tx, archive.account) == 100 + 10**12
        # Expired reports do not count.
        assert reports.used_nbytes(at(tx, NOW + 5), archive.account) == 100


def test_concurrent_uploads_do_not_exceed_the_limit(postgres_url: str, tmp_path: Any) -> None:
    from daskscope.storage.base.blobs import LocalStore

    archive = Archive(Database(postgres_url), LocalStore(tmp_path / "blobs"))
    done, barrier = list[str](), threading.Barrier(4)

    def add() -> None:
        barrier.wait(10)
        try:
            with archive.write() as tx:
                new = reports.NewReport("f", "t", "html", "1/p", 60, "private")
                reports.add_report(tx, archive.account, 0, new, limit=100)
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


# ---------------------------------------------------------------- hostile input


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "'; DROP TABLE runs; --", "%" * 1000, "\\", "x" * 100_000])
def test_any_text_can_be_searched_for(archive: Archive, text: str) -> None:
    with archive.read() as tx:
        for wanted in (ClusterFilter(search=text), ClusterFilter(user=text), ClusterFilter(tag=text)):
            assert list_clusters(tx, archive.account, wanted) == []
        assert list_error_groups(tx, archive.account, fingerprint=text) == []
        assert users.find_user(tx, text) is None
        assert accounts.find_account(tx, text) is None
