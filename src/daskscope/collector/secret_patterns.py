r"""Text that looks like a secret.

The formats of tokens are those that the rule lists of gitleaks (MIT) and detect-secrets (Apache-2.0) look for; the expressions are
written anew, because scrubbing must take linear time on any text, and must mask too much rather than too little. A scanner of
repositories has the opposite aim.

Linear by construction: a rule starts with a fixed text, its repetitions are bounded by a length or end at a character that they
cannot contain, and what a match has read is never read again by the same rule. Each rule lists hints, lower-case texts without
which it cannot match; looking for them takes nanoseconds and saves most texts from the expressions.

The named group of a match is masked. A match without one only consumes text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Rule:
    """An expression, and the hints of which a text must contain one."""

    hints: tuple[str, ...]
    regex: re.Pattern[str]


#: A value in quotes, or one that ends at white space or punctuation.
_VALUE = r"""(?:[bBfFrRuU]{0,2}\\?"[^"\n]*"?|[bBfFrRuU]{0,2}\\?'[^'\n]*'?|(?:(?:Basic|Bearer|Digest|Negotiate|Token|ApiKey|basic
    |bearer|digest|negotiate|token|apikey)\s{1,4})?[^\s"'&,;)\]}<]+)"""

#: Names whose value is a secret.
_NAME = r"""(?:passw(?:or)?d|passphrase|passwort|pwd|secrets?|token|credentials?|cookies?|dsn|signature|(?<![a-z])auth(?:orization)?
    |(?:api|access|account|private|secret|shared|storage|encryption|master|signing|service|session|app|client|consumer|license|ssh)
     [-_]?key)"""


def _rule(hints: str, pattern: str) -> Rule:
    return Rule(tuple(hints.split()), re.compile(pattern, re.VERBOSE))


#: Tokens with a prefix that names their issuer, by hint. Lengths are lower limits.
TOKENS: dict[str, str] = {
    # Source hosting and packages.
    "ghp_": r"ghp_\w{16,}",
    "gho_": r"gho_\w{16,}",
    "ghu_": r"ghu_\w{16,}",
    "ghs_": r"ghs_\w{16,}",
    "ghr_": r"ghr_\w{16,}",
    "github_pat_": r"github_pat_\w{20,}",
    "glpat-": r"glpat-[\w.-]{16,}",
    "glptt-": r"glptt-[\w-]{16,}",
    "gldt-": r"gldt-[\w-]{16,}",
    "glrt-": r"glrt-[\w-]{16,}",
    "npm_": r"npm_[A-Za-z0-9]{30,}",
    "pypi-": r"pypi-[\w-]{40,}",
    "rubygems_": r"rubygems_[0-9a-f]{32,}",
    "dckr_pat_": r"dckr_pat_[\w-]{16,}",
    "atatt3": r"ATATT3[\w=-]{20,}",
    # Clouds.
    "akia": r"AKIA[A-Z0-9]{12,}",
    "asia": r"ASIA[A-Z0-9]{12,}",
    "abia": r"ABIA[A-Z0-9]{12,}",
    "acca": r"ACCA[A-Z0-9]{12,}",
    "aiza": r"AIza[\w-]{30,}",
    "ya29.": r"ya29\.[\w-]{16,}",
    "gocspx-": r"GOCSPX-[\w-]{16,}",
    "q~": r"[\w~.]{3}\dQ~[\w~.-]{28,}",
    "_v1_": r"do[opr]_v1_[0-9a-f]{32,}",
    "hvs.": r"hvs\.[\w-]{16,}",
    "hvb.": r"hvb\.[\w-]{16,}",
    "hvr.": r"hvr\.[\w-]{16,}",
    "dapi": r"dapi[0-9a-f]{32}(?:-\d)?",
    "age-secret-key-1": r"AGE-SECRET-KEY-1[A-Z0-9]{40,}",
    "pul-": r"pul-[0-9a-f]{40}",
    "pscale_": r"pscale_(?:tkn|pw|oauth)_[\w.-]{16,}",
    "dp.": r"dp\.(?:ct|pt|sa|scim|st)\.[\w.-]{16,}",
    # Services.
    "hf_": r"hf_[A-Za-z0-9]{16,}",
    "sk-": r"sk-[\w-]{20,}",
    "sk_": r"sk_(?:live|test|prod)_\w{10,}",
    "rk_": r"rk_(?:live|test|prod)_\w{10,}",
    "whsec_": r"whsec_[\w+/=]{16,}",
    "gsk_": r"gsk_[A-Za-z0-9]{30,}",
    "r8_": r"r8_[A-Za-z0-9]{30,}",
    "xox": r"xox[a-z]-[\w-]{10,}",
    "xapp-": r"xapp-\d-[\w-]{10,}",
    "hooks.slack.com": r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{10,}",
    "/api/webhooks/": r"discord(?:app)?\.com/api/webhooks/\d{1,24}/[\w-]{16,}",
    ":aa": r"\d{6,16}:AA[\w-]{30,}",
    "sg.": r"SG\.[\w-]{10,}\.[\w-]{16,}",
    "shpat_": r"shpat_[0-9a-fA-F]{32}",
    "shpca_": r"shpca_[0-9a-fA-F]{32}",
    "shppa_": r"shppa_[0-9a-fA-F]{32}",
    "shpss_": r"shpss_[0-9a-fA-F]{32}",
    "sq0": r"sq0[a-z]{3}-[\w-]{16,}",
    "glsa_": r"glsa_\w{20,}",
    "glc_": r"glc_[\w+/=]{20,}",
    "lin_api_": r"lin_api_\w{16,}",
    "nrak-": r"NRAK-[A-Z0-9]{20,}",
    "pmak-": r"PMAK-[\w-]{20,}",
    "figd_": r"figd_[\w-]{20,}",
    "sntrys_": r"sntrys_[\w+/=]{20,}",
    "dscope_": r"dscope_[\w-]{16,}",
}

RULES: tuple[Rule, ...] = (
    _rule(
        "private",
        r"""-----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?P<secret>(?s:.*?))(?:-----END\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)""",
    ),
    # A user and a password, up to the last @ of the word, because a password may contain / and @. Digits and a slash after the
    # colon are a port. The second line: a long user name without a password is a token.
    _rule(
        "://",
        r"""://(?:(?P<secret>[^\s/@:'"<>]{0,128}:(?!\d{1,5}(?:[/?\#]|\Z))[^\s'"<>]{1,256})@
        |(?P<token>[^\s/@:'"<>?\#]{20,256})@)""",
    ),
    _rule("jdbc:", r"""(?i:jdbc:[a-z0-9]{1,32}:[a-z0-9]{1,16}:)[^\s/@'"]{1,128}/(?P<secret>[^\s@'"]{1,256})@"""),
    # Consumes the whole word, so that the next search begins after it.
    _rule("eyj", r"(?<![A-Za-z0-9])(?=eyJ)(?:(?P<secret>eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?(?:\.[\w.-]*)?)|[\w-]+)"),
    *(Rule((hint,), re.compile(rf"(?<![A-Za-z0-9])(?P<secret>{pattern})")) for hint, pattern in TOKENS.items()),
    _rule("bearer", r"(?i:\bbearer)\s{1,4}(?P<secret>[\w.~+/=-]{6,})"),
    _rule(
        "passw pwd passphrase secret token key credential cookie dsn signature auth",
        rf"""(?i:{_NAME})(?:[-_]\w{{0,40}})?
        (?:\\?["']\]?\s{{0,3}}(?:[=:]|,(?=\s{{0,3}}[bBfFrRuU]{{0,2}}\\?["']))|\s{{0,3}}[=:])\s{{0,3}}
        (?!(?i:none|true|false|null)\b)(?P<secret>{_VALUE})""",
    ),
    _rule(
        "pass",
        # Also after an escaped line break. A small number is a count: "first pass: 12 rows".
        rf"""(?i:(?:(?<![a-z])|(?<=\\[nrt]))pass)(?:\\?["'])?\s{{0,3}}[=:]\s{{0,3}}
        (?!(?i:none|true|false|null)\b|\d{{1,4}}(?:\s|\Z))(?P<secret>{_VALUE})""",
    ),
    _rule("sig", rf"""(?i:(?<![a-z])(?:sig|sas))\\?["']?=(?P<secret>{_VALUE})"""),
    _rule("<", rf"""<(?i:[\w:.-]{{0,40}}{_NAME})>(?P<secret>[^<\n]{{1,500}})(?=</)"""),
    # On a command line.
    _rule(
        "--",
        r"""(?<!\S)--(?i:(?:[a-z0-9]{1,20}[-_]){0,3}(?:password|passwd|passphrase|pass|pwd|token|secret|credentials?|key))\s{1,4}
        (?!-)(?P<secret>'[^'\n]*'?|"[^"\n]*"?|[^\s'"]+)""",
    ),
    _rule("sshpass", r"""\bsshpass\s{1,4}-p\s{0,4}(?P<secret>[^\s]+)"""),
    # Programs whose -p, -a, -w or -P is a password.
    _rule(
        "login mongo cqlsh",
        r"""\b(?:login|mongo[a-z]{0,10}|cqlsh)\s[^\n|;&]{0,200}?(?<=\s)-p\s{0,4}(?P<secret>'[^'\n]*'?|"[^"\n]*"?|[^\s'"]+)""",
    ),
    _rule("redis-cli", r"""\bredis-cli\s(?:[^\n|;&]{0,200}?\s)?-a\s{0,4}(?P<secret>'[^'\n]*'?|"[^"\n]*"?|[^\s'"]+)"""),
    _rule("ldap", r"""\bldap[a-z]{1,10}\s(?:[^\n|;&]{0,200}?\s)?-w\s{0,4}(?P<secret>[^\s]+)"""),
    _rule(
        "sqlcmd mosquitto_ zip",
        r"""\b(?:sqlcmd|mosquitto_[a-z]{3}|(?:un)?zip)\s(?:[^\n|;&]{0,200}?\s)?-P\s{0,4}(?P<secret>[^\s]+)""",
    ),
    # Without a space after -p, and only where it must be a password: -p is a port elsewhere.
    _rule("mysql mariadb", r"""(?i:\b(?:mysql|mariadb)[a-z-]{0,16})\s[^\n|;&]{0,200}?(?<=\s)-p(?P<secret>[^\s]+)"""),
    # Words that begin with -p are options of compilers and of find; a number is a port.
    Rule(
        (" -p",),
        re.compile(
            r"(?<=\s)-p(?!(?:thread|edantic|ath|ort|rint|rofile|ipe|ie|id|arallel|refix|roject|ackage)\w{0,20}\b)"
            r"(?![\d:.,-]{1,64}(?:\s|\Z))(?P<secret>[^\s=:/-][^\s]{3,})"
        ),
    ),
    _rule("-p", r"""(?<=\s)-u\s{0,4}\S{1,64}\s{1,4}(?:-h\s{0,4}\S{1,128}\s{1,4})?-p(?P<secret>[^\s]+)"""),
    _rule(
        "curl wget",
        r"""\b(?:curl|wget)\s[^\n|;&]{0,300}?(?<=\s)(?:-u|--user|--proxy-user)[\s=]{0,4}['"]?[^\s:'"]{1,64}:(?P<secret>[^\s'"]+)""",
    ),
    # In SQL.
    _rule(
        "identified password",
        r"""(?i:\b(?:identified\s{1,4}by|password))\s{1,4}(?P<secret>'[^'\n]{1,200}'|"[^"\n]{1,200}")""",
    ),
)
