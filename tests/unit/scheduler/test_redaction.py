"""A secret that was planted anywhere is nowhere in what comes out."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ardea.scheduler.redaction import REDACTED, SHORTEST, Redaction, names_credential, written_in

SECRETS = st.text(min_size=SHORTEST, max_size=40).filter(lambda text: len(text.strip()) >= SHORTEST)
KEYS = st.sampled_from(
    [
        *(
            "postgres.password",
            "DB_PASSWORD",
            "sasl_passwd",
            "api_key",
            "api-key",
            "apiKey",
            "client.secret",
            "authToken",
        ),
        *("AWS_SECRET_ACCESS_KEY", "aws_access_key_id", "ssl.private.key", "Authorization", "cookie", "db.conninfo"),
    ]
)
WAYS = (
    lambda secret: f"cannot log in with {secret}!",
    lambda secret: json.dumps({"message": f"user:{secret}@host"}),
    lambda secret: json.dumps({"message": secret}, ensure_ascii=False),
    lambda secret: repr({"message": secret}),
    lambda secret: json.dumps({"message": repr([secret])}),
    lambda secret: f"http://host/?x={quote(secret, safe='')}&y=1",
)


def forms(secret: str) -> set[bytes]:
    text = secret.strip()
    shown = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]}
    return {form.encode(errors="backslashreplace") for form in shown}


@given(SECRETS, KEYS, st.sampled_from(WAYS), st.binary(max_size=50), st.binary(max_size=50))
def test_a_value_that_is_named_like_a_credential_is_nowhere(secret, key, way, before, after):
    assume(secret.strip() not in REDACTED)
    redaction = Redaction()
    redaction.learn_from({"deep": [{"er": {key: secret}}]})
    written = way(secret.strip()).encode(errors="backslashreplace")
    cleaned = redaction.clean(before + b"\n" + written + b"\n" + after)
    assert [form for form in forms(secret) if form in cleaned.replace(before, b"").replace(after, b"")] == []


@given(SECRETS, KEYS)
def test_a_document_has_none(secret, key):
    assume(secret.strip() not in REDACTED and secret.strip() not in key)
    redaction = Redaction()
    redaction.learn_from({key: secret})
    document = redaction.document({key: secret, "list": [secret, {secret: 1}], "said": f"it was {secret}", "n": 5})
    assert document[key] == REDACTED
    assert (document["list"][0].strip(), document["n"]) == (REDACTED, 5)
    assert secret.strip() not in json.dumps(document, ensure_ascii=False)


@pytest.mark.parametrize(
    "line",
    [
        "connecting to postgres://me:{}@db:5432/words",
        "connecting to postgres://me:a/{}/b@db",
        "password={}",
        "password = '{} and more'",
        '{{"sasl.password": "{}"}}',
        '{{"message": "{{\\"client_secret\\": \\"{}\\"}}"}}',
        "DB_PASSWORD: {}",
        "GET /?token={}&x=1",
        "Authorization: Bearer {}",
        "authorization: Basic {}",
        'sasl.jaas.config=... username="x" password="{}";',
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n{}\n",
        "{}\n-----END PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_replaced_though_nobody_knows_it(line):
    redaction = Redaction()
    cleaned = redaction.clean(b"before\n" * ("END" not in line or "BEGIN" in line) + line.format("hunter2abc").encode())
    assert b"hunter2abc" not in cleaned
    assert REDACTED.encode() in cleaned
    assert redaction.count >= 1
    assert redaction.clean(cleaned) == cleaned


def test_tokens_by_their_shape():
    cleaned = Redaction().clean(b"got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1 and AKIAIOSFODNN7EXAMPLE here")
    assert cleaned == b"got [redacted] and [redacted] here"


@pytest.mark.parametrize(
    "line",
    [
        b"2026-11-28 09:14:03,120 INFO stream-manager: plan received epoch=3 admission=1 life=1",
        b"http://host:8080/users/@me",
        b"ardea_process_threads{container=\"1\"} 4.0",
        b"\xff\xfe\x00 bytes that are no text",
        b"topology.key.groups=720",
    ],
)  # fmt: skip
def test_what_is_none_stays_as_it_is(line):
    redaction = Redaction()
    redaction.learn_from({"password": "abc", "secret.enabled": True, "token": None})
    assert redaction.clean(line) == line
    assert redaction.count == 0


def test_a_password_of_an_address_is_known_everywhere():
    redaction = Redaction()
    redaction.learn_from({"url": "postgres://me:p%40ssw0rd@db/x"})
    assert redaction.clean(b"it said p@ssw0rd, and p%40ssw0rd") == b"it said [redacted], and [redacted]"


@pytest.mark.parametrize(
    ("key", "is_one"),
    [
        *(("kafka.sasl.password", True), ("ARDEA_ZOOKEEPER_AUTH", True), ("MYSQL_PWD", True), ("sentry_dsn", True)),
        *(("topology.key.groups", False), ("author", False), ("OLDPWD", False)),
    ],
)
def test_names(key, is_one):
    assert names_credential(key) == is_one


@pytest.mark.parametrize("hostile", [b"token" * 40_000, b"://a:b" * 40_000, b"eyJ-" * 40_000, b"password='" * 20_000])
def test_hostile_lines_take_no_more_time_than_others(hostile):
    """Quadratic, a megabyte would take hours: the test's own time limit would see it."""
    assert len(Redaction().clean(hostile)) <= len(hostile) + len(REDACTED)


def test_strings_in_code_that_are_given_to_a_credential():
    code = """
PASSWORD = "one"
self.api_key: str = "two"
config = {"db.password": "three", "db.host": "none", **more}
connect(secret="four", host="none", token=read())
"""
    assert sorted(written_in(code)) == ["four", "one", "three", "two"]
    assert list(written_in("PASSWORD = (")) == list(written_in("\0")) == []
