"""What is masked, what stays readable, and what looking for it costs."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.redaction import MARK, REDACT, Redactor

KEYS = {
    "api key": [
        "sk-proj-" + "aB3" * 16,
        "sk-ant-api03-" + "Xy9_" * 20,
        "sk-" + "a1B2c3D4" * 6,
        "gsk_" + "a1B2" * 12,
    ],
    "bot token": [
        "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawX",
        "7123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawX",
    ],
    "aws key": ["AKIAIOSFODNN7EXAMPLE", "ASIAQNZGKIQY56JQ7WML"],
    "github token": ["ghp_" + "a1B2" * 9, "github_pat_11ABCDEFG0abcdefghijkl_" + "mN0p" * 12],
    "slack token": ["xoxb-123456789012-123456789012-abcdefABCDEF123456abcdef", "xapp-1-A0B1C2-1234-abcdef0123"],
    "stripe key": ["sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "whsec_" + "a1B2c3D4e5F6"],
    "google key": ["AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"],
    "gitlab token": ["glpat-" + "a1B2c3D4e5F6g7H8i9J0"],
    "token": ["SG." + "a1B2c3D4e5F6g7H8i9J0kL" + "." + "a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8i9J0abc"],
    "azure key": ["AccountKey=" + "aB3/" * 22],
}
NAMED = [
    ("password: hunter2", "hunter2"),
    ("Password = hunter2.", "hunter2"),
    ("**Password:** hunter2", "hunter2"),
    ("my password is hunter2, keep it", "hunter2"),
    ("the password for the wifi is Falcon99!", "Falcon99"),
    ('{"password": "hunter2", "n": 1}', "hunter2"),
    ("DB_PASSWORD=swordfish", "swordfish"),
    ("export API_KEY='abcdef1234567890'", "abcdef1234567890"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("Authorization: Bearer abcdef1234567890abcdef", "abcdef123"),
    ("https://example.org/hook?token=abcdef123456&y=1", "abcdef123456"),
    ("postgres://bob:s3cr3t@db.example.org/x", "s3cr3t"),
    ("https://bob:p@ss@example.org/", "p@ss"),
    ("PIN: 4411", "4411"),
    ("كلمة السر: hunter2", "hunter2"),
    ("كلمة سر الواي فاي: Falcon99", "Falcon99"),
    ("كلمة المرور هي Abc12345", "Abc12345"),
    ("الرقم السري: ٤٤١١", "٤٤١١"),
    ("密码：hunter2", "hunter2"),
    ("пароль: qwerty123", "qwerty123"),
    ("Das Kennwort lautet Wolke7Blau", "Wolke7Blau"),
    ("a senha é Floresta88", "Floresta88"),
    ("密码是Abc12345", "Abc12345"),
    ("パスワードは Sakura2024 です", "Sakura2024"),
    ("비밀번호는 Gangnam99 입니다", "Gangnam99"),
    ("wachtwoord is Tulp2024!", "Tulp2024"),
    ("şifre: Bahar2024!", "Bahar2024"),
    ("the password's Kamel@77", "Kamel@77"),
    ("Password - Kamel@77", "Kamel@77"),
    ("| Password | Kamel@77 |", "Kamel@77"),
    ("user\tomar\npassword\tKamel@77", "Kamel@77"),
    ("Password\n\nKamel@77\n", "Kamel@77"),
    ("WiFi: HomeNet / Pass: home1234", "home1234"),
    ("Pass: home1234", "home1234"),
    ("الرقم السري ٤٤١١", "٤٤١١"),
    ("pin ist 4411", "4411"),
    ("mysql -u root -pS3cretPass shop", "S3cretPass"),
    ("curl -u admin:S3cret99 https://x.example", "S3cret99"),
    ("sshpass -p 'S3 cret' ssh host", "S3 cret"),
    ("secret_key_base: 0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75\n-----END RSA PRIVATE KEY-----\n", "MIIEp"),
    ("MIIEpAIBAAKCAQEA75aB\nabcdabcdabcdabcd\n-----END RSA PRIVATE KEY-----", "MIIEp"),
]
READABLE = [
    "I forgot my password again, sorry",
    "the password: I forgot it",
    "Password: required",
    "password must be 12 characters",
    "a new token is needed; token count: 1500, input_tokens: 1234567",
    "api key: see the vault",
    "password=os.environ['X'] and password: <your password>",
    "password manager: Bitwarden",
    "the password to the door is on the table",
    "Das Passwort ist vergessen, Passwort: vergessen",
    "كلمة السر نسيتها",
    "كلمة السر: نسيتها",
    "الرقم السري لا أعرفه",
    "كلمة السر تغيرت أمس: لا أعرفها",
    "我的密码忘了，明天再说",
    "パスワードを忘れました",
    "비밀번호를 잊어버렸어요",
    "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "550e8400-e29b-41d4-a716-446655440000",
    "+966 55 123 4567, 00966551234567, رقمي 0551234567",
    "IBAN SA03 8000 0000 6080 1016 7519, card ends in 4242",
    "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAUA" * 40,
    "A" * 40 + "AKIAIOSFODNN7EXAMPLE" + "b" * 60,
    "conversation:261130-1a2b3c4d#3.1 and file:brain/hippocampus/knowledge/people.md#L12",
    "sessionKey: telegram:123456789, TASK-261130174500-1a2b3c4d, INV-2041",
    "https://example.org:8080/path@2x.png?q=1&page=22",
    "mailto:ali@example.org at 10:30: AA meeting",
    "sk-learn, risk-averse-and-long-words-here-without-digits",
    "The secret: be kind. secret ingredient: cinnamon",
    "Password - see the drawer\nPassword\nUser name\n| Password | required |\n| Password | 12 characters |",
    "curl -u admin https://example.org/v2/a:b and curl -s https://example.org; mysql -u root -p shop",
    "boarding pass: A12B34; the pass is closed; compass: N42",
    "密码是必填项; パスワードは必須です; 비밀번호는 필수입니다",
    "una parola è poco e due sono troppe; der Pin ist rot; 1 şifre yeter",
    "pin it on the wall; Spin: 4411; keyboard: Logitech-K380",
]


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in KEYS.items() for key in keys])
@pytest.mark.parametrize("around", ["{}", "my key {} ok", "المفتاح {}، احفظه", '{{"x": "{}"}}', "\n- {}\n", "(`{}`)"])
def test_a_key_is_masked_wherever_it_stands(kind: str, key: str, around: str) -> None:
    masked = REDACT(around.format(key))
    assert key not in masked
    assert f"{MARK} {kind}]" in masked or (kind == "azure key" and MARK in masked)
    before, _, after = around.format("\0").partition("\0")
    assert masked.startswith(before.rstrip())
    assert masked.endswith(after)


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_what_is_named_a_secret_is_masked(text: str, secret: str) -> None:
    masked = REDACT(text)
    assert secret not in masked
    assert MARK in masked


@pytest.mark.parametrize("text", READABLE)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert REDACT(text) == text


def test_the_secrets_of_the_program_are_masked_wherever_they_stand() -> None:
    redact = Redactor(["a plain sentence", 'quo"ted-one', "short", ""])
    assert redact("so a plain sentence, short") == f"so {MARK} secret], short"
    assert redact(json.dumps({"x": 'quo"ted-one'})) == f'{{"x": "{MARK} secret]"}}'


def test_a_json_value_is_masked_in_depth_by_the_names_of_its_members_too() -> None:
    value = {"password": "correct horse", "n": 3, "list": ["password: hunter2", {"api_key": "abcdefgh12345678"}]}
    assert REDACT.deep(value) == {
        "password": f"{MARK} password]",
        "n": 3,
        "list": [f"password: {MARK} password]", {"api_key": f"{MARK} api key]"}],
    }


@given(st.text(alphabet=st.sampled_from("passwordPIN :=\"'-_[]/@sk0123AB\nكلمة السر"), max_size=120))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = REDACT(text)
    assert REDACT(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "eyJ" * 40_000,
        "://a:" * 30_000,
        "password: " * 12_000,
        "-----BEGIN PRIVATE KEY-----" * 4_000,
        "sk-" * 40_000,
        "A" * 120_000,
        "a_" * 60_000,
        "password" + " " * 120_000,
        ("abcdef1234567890" * 60 + " ") * 120,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    REDACT("sk-" + "a1B2c3D4" * 6)
    start = time.process_time()
    REDACT(text)
    assert time.process_time() - start < 5.0
