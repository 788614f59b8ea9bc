"""Texts without what has the form of a secret: in commands, scripts, files of settings, headers, URLs and logs.

All takes linear time, since tenants choose the texts: a search goes on behind what it has found, and what has no bound
is read once.
"""

from __future__ import annotations

import re

from trainer.kube.logs.redaction import REDACTED
from trainer.kube.logs.secret_words import is_secret, names_secret

_SECRET_FORM = re.compile(
    r"""
    (?P<scheme>\b(?:Bearer|Basic)\s++)[\w.~+/=-]{16,}+     # Authorization header (RFC 6750, RFC 7617)
    | (?<![\w-])(?P<prefix>(?>[\w-]*?\b(?=eyJ)))[\w-]{4,}+\.[\w-]++\.[\w-]++  # JSON web token
    | (?P<userinfo>://[^\s/:@]*+:)[^\s/@]++(?:@[^\s/@]++(?=@))*+(?=@)  # password in a URL, also with an @ in it
    | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----.*?(?:-----END|\Z) # PEM
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""No repeat gives back what it has matched, and no part of a text is read again from another start, for each
alternative begins with what its own repeats cannot contain."""
_KNOWN_TOKEN = re.compile(
    r"\b(?:hf_|api_org_|gh[opsur]_|github_pat_|glpat-|glrt-|xox[abeprs]-|sk-|[rs]k_live_|AKIA|ASIA|AIza|npm_|pypi-|dop_v1_"
    r"|nvapi-|gsk_|r8_|whsec_|ya29\.|hvs\.|SG\.)[\w.-]{12,}"
)
_OTHER_FORMS = re.compile(
    r"""
    (?P<host>\bhttps?://)[^\s/:@'"]++(?=@)                                         # https://TOKEN@host
    | (?P<hook>\bhttps://(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/)[^\s'"]++
    | (?P<user>(?<![\w-])(?:-u|--user)[\ =]['"]?[^\s:'"]{1,100}+:)[^\s'"]++            # curl -u NAME:PASSWORD
    | (?P<option>\b(?:(?:docker|podman)\ login|sshpass)\b[^\n;&|]{0,200}?\ -p[\ =]?['"]?)[^\s'"]++
    | (?P<key>\bwandb\ login\ (?:--relogin\ )?['"]?)(?![-&|;<>])[^\s'"]++
    | (?P<call>\bwandb\.login\((?:[^()\n]{0,200}?[ ,])?key[ ]?=[ ]?['"])[^\s'"]++
    | (?P<piped>\b(?:echo|printf)[ ]{1,8}(?:-n[ ]{1,8}|['"]?%s(?:\\n)?['"]?[ ]{1,8})?['"]?)(?!\$)[^\s'"|;&]++
      (?=['"]?[ ]{0,8}\|[^\n|;&]{0,100}\b(?:login|password-stdin|with-token)\b)  # echo TOKEN | docker login
    | (?P<login>\blogin[ \t]{1,8}[^\s]{1,100}+\s{1,8}password[ \t]{1,8})[^\s]++     # .netrc
    """,
    re.VERBOSE,
)
_VARIABLE = re.compile(
    r"""
    \bname\\{0,3}["']?[ \t]{0,8}:[ \t]{0,8}\\{0,3}["']?(?P<name>[\w.-]{1,128}+)\\{0,3}["']?,?\s{1,64}
    \\{0,3}["']?value\\{0,3}["']?[ \t]{0,8}:[ \t]{0,8}
    """,
    re.VERBOSE,
)
"""A variable of a container, in a manifest."""
_ASSIGNMENT = re.compile(
    r"""
    (?<![\w.-])(?P<name>-{0,2}[A-Za-z_][\w.-]{0,127}+)
    (?:
        (?P<closed>\\{0,3}["']?\]?)[ \t]{0,8}(?P<sign>:[-=]|={1,2}>?|:)[ \t]{0,8}
        | (?<=[\w])\\{0,3}["'][ \t]{0,8}(?P<comma>,)[ \t]{0,8}(?=\\{0,3}["'])(?!\\{0,3}["']value)
        | (?P<blank>\\{0,3}["']?(?:[ \t]|\\\r?\n){1,64})
        | (?P<tag>>)
    )
    """,
    re.VERBOSE,
)
"""A name, and what may stand between it and its value."""
_HINT = re.compile("token|pass|pwd|secret|cred|auth|cookie|jwt|bearer|dsn|webhook|sig|key|pat|conn", re.IGNORECASE)
"""A part of each word of secrets: most texts have none."""
_HEADER = re.compile(r"(?:x-|proxy-|set-)?[a-z-]+", re.IGNORECASE)
_IN_QUOTES = re.compile(r"""(?:\$|[bfru]{0,2})(?P<open>"(?!\s)|'(?!\s))""")
_QUOTED = {
    '"': re.compile(r'(?:[^"\\\n]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]++|\\.)*+", re.DOTALL),
}
_IN_THREE_QUOTES = re.compile(
    r"""[bfru]{0,2}(?:"{3}(?P<double>(?:(?!"{3}).)*+)|'{3}(?P<single>(?:(?!'{3}).)*+))""", re.DOTALL
)
_ESCAPED = re.compile(r"""\\{1,3}["'](?P<value>[^"'\\\n]++)""")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}[ \t]{0,8}\n[ \t]{1,64}(?P<value>[^\n]++)")
_SCHEME = re.compile(r"(?:Bearer|Basic|Digest|Token|ApiKey)[ \t]{1,8}(?=[^\s])", re.IGNORECASE)
_WORD = re.compile(r"""[^\s'"]++""")
_LIST = re.compile(r"""\[\s{0,8}(?P<value>\\{0,3}["'][^\]\n]*+)""")
_PIECE = re.compile(r"""(?:(?<=["'])[\w$][^\s'"\\;&|()<>]*+|'(?=[\w$])[^'\n]*+'|"(?=[\w$])(?:[^"\\\n]++|\\.)*+")""")
"""What stands right behind a text in quotes, or is in quotes right behind one that is not: of one word of a shell."""
_PARAMETER = re.compile(r"""[^\s'"&\#]++""")
_FIELD = re.compile(r"""[^\s'",)}\]]++""")
_ELEMENT = re.compile(r"[^<\s]++")
_LINE = re.compile(r"[^\n\r]++")
_REFERENCE = re.compile(r"\$[({]?[A-Z][A-Z0-9_]{0,127}[)}]?;?")
"""The value is elsewhere."""


def clean_text(text: str) -> str:
    """A text without what has the form of a secret, or stands behind the name of one."""
    text = _SECRET_FORM.sub(_redacted, text)
    if _HINT.search(text):
        text = _without_values(text, _VARIABLE)
        text = _without_values(text, _ASSIGNMENT)
    return _KNOWN_TOKEN.sub(REDACTED, _OTHER_FORMS.sub(_redacted, text))


def _redacted(match: re.Match[str]) -> str:
    return (match[match.lastgroup] if match.lastgroup else "") + REDACTED


def _without_values(text: str, pattern: re.Pattern[str]) -> str:
    kept: list[str] = []
    shown = position = 0
    while (match := pattern.search(text, position)) is not None:
        position = match.end("name")
        # First the name: a value may reach to the end of the text, and what is read of a secret is not read again.
        span = _value_of(text, match) if names_secret(match["name"]) else None
        if span is None or not is_secret(match["name"], text[slice(*span)].strip().rstrip(",;")):
            continue
        start, position = span
        kept += (text[shown:start], REDACTED)
        shown = position
    return "".join([*kept, text[shown:]])


def _value_of(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Where the value begins and ends; None where there is none, or another sign than that of an assignment."""
    groups, start = match.groupdict(), match.end()
    if match.re is _ASSIGNMENT and not _is_assignment(text, groups, match):
        return None
    if (quoted := _quoted(text, start)) is not None:
        span = quoted[0], _end_of_word(text, quoted[1], is_in_quotes=True)
        return span if span[0] < span[1] else None
    if (items := _LIST.match(text, start)) is not None:
        return items.span("value")
    if text[start : start + 1] in {"[", "{"}:
        return None
    sign = groups.get("sign") or ":"
    if groups.get("tag"):
        value = _ELEMENT.match(text, start)
    elif groups.get("blank"):
        value = None if text.startswith("--", start) else _WORD.match(text, start)
    elif (block := _BLOCK.match(text, start)) is not None:
        return block.span("value")
    elif _begins_line(text, match) and (sign == ":" or text[match.end() - 1].isspace()):
        value = _LINE.match(text, _behind_scheme(text, start))
    elif sign == ":":
        value = _FIELD.match(text, _behind_scheme(text, start))
    else:
        is_parameter = match.start() > 0 and text[match.start() - 1] in "?&"
        value = (_PARAMETER if is_parameter else _WORD).match(text, start)
    if value is None or _REFERENCE.fullmatch(value[0]):
        return None
    return value.start(), _end_of_word(text, value.end(), is_in_quotes=False)


def _end_of_word(text: str, end: int, *, is_in_quotes: bool) -> int:
    """Where the word of a shell ends that a value is the first part of, such as that of `a"b"c`."""
    place = end + is_in_quotes
    while (piece := _PIECE.match(text, place)) is not None:
        place = end = piece.end()
    return end


def _is_assignment(text: str, groups: dict[str, str | None], match: re.Match[str]) -> bool:
    name = match["name"]
    if groups["blank"]:
        return name.startswith("-")
    if groups["comma"]:
        return name.startswith("-") or ("_" in name and name.isupper())
    if groups["tag"]:
        return text[match.start() - 1 : match.start()] == "<"
    if groups["sign"] != ":" or groups["closed"] or text[match.end() - 1] in " \t":
        return True
    # What stands right behind a colon may be the tag of an image, or a port.
    follows = text[match.end() : match.end() + 1]
    return follows in {'"', "'", "\n"} or ("-" in name and _HEADER.fullmatch(name) is not None and name[0].isupper())


def _quoted(text: str, start: int) -> tuple[int, int] | None:
    if (escaped := _ESCAPED.match(text, start)) is not None:
        return escaped.span("value")
    if (whole := _IN_THREE_QUOTES.match(text, start)) is not None:
        return whole.span(whole.lastgroup or 0)
    if (opened := _IN_QUOTES.match(text, start)) is None:
        return None
    value = _QUOTED[opened["open"]].match(text, opened.end())
    return value.span() if value is not None else None


def _begins_line(text: str, match: re.Match[str]) -> bool:
    """Whether nothing but blanks and the dash of a list stands before a name in its line."""
    start = max(text.rfind("\n", max(match.start() - 64, 0), match.start()) + 1, match.start() - 64, 0)
    is_whole = start == 0 or text[start - 1] == "\n"
    return is_whole and not text[start : match.start()].strip(" \t-\"'")


def _behind_scheme(text: str, start: int) -> int:
    scheme = _SCHEME.match(text, start)
    return scheme.end() if scheme is not None else start
