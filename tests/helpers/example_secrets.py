"""Sixty secrets as they occur in texts, made at random at run time so that no file contains them."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Example:
    """A text with a secret, and the part of the text that must not be found."""

    name: str
    text: str
    secret: str


def examples(seed: int) -> list[Example]:
    """Return one example of each sort of secret."""
    random_ = random.Random(seed)

    def letters(length: int) -> str:
        return "".join(random_.choices(_LETTERS, k=length))

    def hexadecimal(length: int) -> str:
        return "".join(random_.choices(_HEX, k=length))

    tokens = {
        "AWS access key": "AKIA" + letters(16).upper(),
        "AWS session key": "ASIA" + letters(16).upper(),
        "Google API key": "AIza" + letters(35),
        "Google OAuth": "ya29." + letters(60),
        "Google client secret": "GOCSPX-" + letters(28),
        "Azure client secret": letters(3) + "8Q~" + letters(34),
        "GitHub classic": "ghp_" + letters(36),
        "GitHub OAuth": "gho_" + letters(36),
        "GitHub fine-grained": "github_pat_" + letters(22) + "_" + letters(59),
        "GitLab": "glpat-" + letters(20),
        "Hugging Face": "hf_" + letters(34),
        "Databricks": "dapi" + hexadecimal(32),
        "Slack bot": f"xoxb-{random_.randrange(10**11)}-{letters(24)}",
        "Slack user": f"xoxp-{random_.randrange(10**11)}-{letters(24)}",
        "Slack webhook": f"https://hooks.slack.com/services/T{letters(8)}/B{letters(8)}/{letters(24)}",
        "Stripe live": "sk_live_" + letters(24),
        "Stripe restricted": "rk_live_" + letters(24),
        "OpenAI": "sk-proj-" + letters(48),
        "Anthropic": "sk-ant-api03-" + letters(90),
        "npm": "npm_" + letters(36),
        "PyPI": "pypi-AgEIcHlwaS5vcmc" + letters(60),
        "SendGrid": f"SG.{letters(22)}.{letters(43)}",
        "DigitalOcean": "dop_v1_" + hexadecimal(64),
        "Vault": "hvs." + letters(90),
        "Docker Hub": "dckr_pat_" + letters(27),
        "Telegram": f"{random_.randrange(10**9, 10**10)}:AA{letters(33)}",
        "Shopify": "shpat_" + hexadecimal(32),
        "Grafana": "glsa_" + letters(32) + "_" + hexadecimal(8),
        "daskscope": "dscope_" + letters(43) + hexadecimal(8),
        "JWT": f"eyJ{letters(20)}.eyJ{letters(40)}.{letters(43)}",
    }
    found = [Example(name, token, token) for name, token in tokens.items()]

    def add(name: str, before: str, secret: str, after: str = "") -> None:
        found.append(Example(name, before + secret + after, secret))

    add("URL", "postgresql://ann:", letters(16), "@db.example.com/x")
    add("URL without a user", "redis://:", letters(16), "@cache:6379")
    add("URL with a slash", "mysql://ann:", f"{letters(8)}/{letters(8)}", "@db:3306/x")
    add("URL with an at sign", "https://ann:", f"{letters(8)}@{letters(8)}", "@example.com/")
    add("URL with a token", "https://", letters(32), "@git.example.com/x.git")
    add("JDBC Oracle", "jdbc:oracle:thin:scott/", letters(16), "@//db:1521/x")
    add("JDBC SQL Server", "jdbc:sqlserver://db:1433;user=sa;password=", letters(16), ";encrypt=true")
    add("SAS", "https://x.blob.core.windows.net/c?sv=2022&sp=r&sig=", letters(40) + "%3D", "&se=2030")
    add("storage key", "DefaultEndpointsProtocol=https;AccountKey=", letters(64) + "==", ";EndpointSuffix=x")
    add("S3 signature", "https://b.s3.amazonaws.com/k?X-Amz-Signature=", hexadecimal(64), "&X-Amz-Expires=1")
    add("AWS secret", "AWS_SECRET_ACCESS_KEY=", f"{letters(20)}/{letters(19)}")
    add("bearer", "Authorization: Bearer ", letters(40))
    add("basic", "Authorization: Basic ", letters(40) + "==")
    add("pass", "pass=", letters(12))
    add("pwd", "server=db;uid=sa;pwd=", letters(12), ";")
    add("password in a dict", "{'db_password': '", letters(12), "'}")
    add("password option", '.option("password", "', letters(12), '")')
    add("password flag", "psql --password ", letters(12), " -h db")
    add("mysql -p", "mysql -u root -p", letters(12), " -h db")
    add("pass in JSON", '{"pass": "', letters(12), '"}')
    add("pass in YAML", "user: ann\npass: ", letters(12), "\nhost: db")
    add("pass with spaces", "pass = ", letters(12))
    add("openssl", "openssl rsa -passin pass:", letters(12), " -in key.pem")
    add("-p of any program", "dbtool --host db -p", "Z" + letters(11), " dump")  # not a word such as -pid
    add("docker login", "docker login -u ann -p ", letters(12), " registry.example.com")
    add("redis-cli", "redis-cli -h cache -a ", letters(12), " PING")
    add("mongosh", "mongosh -u ann -p ", letters(12), " --host db")
    add("ldapsearch", "ldapsearch -x -D cn=ann -w ", letters(12), " -b dc=x")
    add("sqlcmd", "sqlcmd -S db -U sa -P ", letters(12), " -Q x")
    add("private key", "-----BEGIN RSA PRIVATE KEY-----\n", letters(64), "\n-----END RSA PRIVATE KEY-----")
    return found
