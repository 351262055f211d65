"""TLS and SASL of connections of one's own."""

from __future__ import annotations

import pytest

from flinkpy.connectors.kafka.writing.security import Scram, Security
from flinkpy.core.errors import ProgramError


def test_scram_gives_the_messages_of_the_rfc() -> None:
    """RFC 7677, section 3."""
    scram = Scram("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    challenge = (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert scram.final(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    scram.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(PermissionError, match="did not prove"):
        scram.check(b"v=AAAA")


@pytest.mark.parametrize(
    ("challenge", "says"),
    [(b"e=other-error", "cannot be read"), (b"r=another,s=AAAA,i=1", "another client's")],
)
def test_a_wrong_challenge_is_refused(challenge: bytes, says: str) -> None:
    with pytest.raises(PermissionError, match=says):
        Scram("sha512", "a,b=c", "secret").final(challenge)


def test_names_are_escaped() -> None:
    assert Scram("sha512", "a,b=c", "secret", "1").first() == b"n,,n=a=2Cb=3Dc,r=1"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"security.protocol": "sasl_ssl"},
            (
                "cannot be kept with sasl.mechanism=GSSAPI.*PLAIN, SCRAM-SHA-256, "
                "SCRAM-SHA-512.*AT_LEAST_ONCE"
            ),
        ),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"security.protocol": "tls"}, "is one of plaintext, ssl"),
        ({"security.protocol": "ssl", "ssl.ca.location": "/no/such/file"}, "cannot be used"),
        ({"security.protocol": "ssl", "ssl.ca.pem": "…"}, "cannot be kept with ssl.ca.pem"),
    ],
)
def test_what_cannot_be_spoken_is_refused_while_the_program_is_built(
    settings: dict[str, str], says: str
) -> None:
    with pytest.raises(ProgramError, match=says):
        Security.of(settings)


def test_a_password_is_in_no_text() -> None:
    security = Security.of(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "plain",
            "sasl.username": "me",
            "sasl.password": "secret",
        }
    )
    assert repr(security) == "Security(plain, PLAIN)"
    sent: list[bytes] = []
    security.authenticate(lambda data: sent.append(data) or b"")  # type: ignore[func-returns-value]
    assert sent == [b"\0me\0secret"]
