"""Secrets of every shape, made up; assembled here so that no scanner takes this file for a leak."""

from __future__ import annotations

import base64
import random
import string

_random = random.Random(7)
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def some(count: int, alphabet: str = ALNUM) -> str:
    """A made-up run of characters with a digit and a letter in it."""
    return "".join(_random.choice(alphabet) for _ in range(count - 2)) + "7" + alphabet[-1]


def _jwt() -> str:
    parts = [
        base64.urlsafe_b64encode(text).decode().rstrip("=")
        for text in (b'{"alg":"HS256"}', b'{"sub":"1234567"}')
    ]
    return ".".join([*parts, some(43)])


def _pem(kind: str) -> str:
    body = "\n".join(some(64) for _ in range(6))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


TOKENS: dict[str, str] = {
    "openai": "sk-" + some(48),
    "openai project": "sk-proj-" + some(60) + "_" + some(20),
    "anthropic": "sk-ant-api03-" + some(40) + "-" + some(40) + "AA",
    "openrouter": "sk-or-v1-" + some(64, HEX),
    "github": "ghp_" + some(36),
    "github oauth": "gho_" + some(36),
    "github app": "ghs_" + some(36),
    "github fine": "github_pat_" + some(22) + "_" + some(59),
    "gitlab": "glpat-" + some(20),
    "aws": "AKIA" + some(16, string.ascii_uppercase + string.digits),
    "slack bot": "xoxb-123456789012-" + some(24),
    "slack app": "xapp-1-" + some(30),
    "jwt": _jwt(),
    "google": "AIza" + some(35),
    "google oauth": "ya29." + some(60),
    "stripe": "sk_live_" + some(24),
    "npm": "npm_" + some(36),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + some(80),
    "hugging face": "hf_" + some(34),
    "sendgrid": f"SG.{some(22)}.{some(43)}",
    "twilio": "SK" + some(32, HEX),
    "telegram": "123456789:AA" + some(33),
    "digitalocean": "dop_v1_" + some(64, HEX),
    "groq": "gsk_" + some(52),
    "vault": "hvs." + some(40),
    "rsa key": _pem("RSA "),
    "openssh key": _pem("OPENSSH "),
    "plain key": _pem(""),
}
"""Secrets that are known by themselves."""

PLACED: dict[str, tuple[str, str]] = {
    "bearer": ("Authorization: Bearer {}", some(40)),
    "basic": ('"authorization": "Basic {}"', some(40)),
    "api key header": ("x-api-key: {}", some(32)),
    "aws secret": ("aws_secret_access_key = {}", some(40)),
    "password in a url": ("postgres://admin:{}@db.example.com:5432/app", some(16)),
    "parameter": ("https://api.example.com/v1?x=1&access_token={}&y=2", some(32)),
    "environment": ("DATABASE_PASSWORD={}", some(20)),
    "quoted environment": ('export MY_API_KEY="{}"', some(20)),
    "azure": ("DefaultEndpointsProtocol=https;AccountKey={};x", some(86) + "=="),
    "json": ('"user": "ann", "password": "{}"', "hunter22"),
    "json in one piece": ('"client_secret":"{}","x":1', some(24)),
    "json in a string": (r"x = '\"dbPassword\": \"{}\"'", "s3cret!pass"),
    "camel case": ('  apiKey: "{}",', some(20)),
    "yaml": ("  db_password: {}", "hunter22"),
    "quoted yaml": ("  api_key: '{}' # mine", some(20)),
    "plain yaml token": ("auth_token: {}", some(20)),
    "upper case yaml": ("PASSWORD: {}", "hunter22"),
    "toml": ('password = "{}"', "hunter22"),
    "toml token": ("access-token = '{}'", some(20)),
    "passphrase": ('passphrase = "{}"', "correct-horse-9"),
    "ruby hash": ("'secret' => '{}'", some(20)),
    "netrc": ("machine example.com login ann password {}", "hunter22"),
    "netrc default": ("default login ann password {}", "x1-word-y"),
    "netrc line": ("  password {}", "hunter22"),
    "cookie": ("Cookie: sid={}", some(24)),
    "cookie in code": ("headers['Cookie'] = 'session={}'", some(24)),
    "set-cookie": ("< set-cookie: SID={}", some(24)),
    "curl": ("curl -s -u ann:{} https://example.com", "hunter22"),
    "curl quoted": ("curl -X POST --user 'ann:{}' https://example.com", "hunter22"),
    "curl with equals": ("curl --user=ann:{} https://example.com", "hunter22"),
    "curl without a space": ("curl -uann:{} https://example.com", "hunter22"),
    "curl with several letters": ("curl -sSLu 'ann:{}' https://example.com", "hunter22"),
    "curl behind another u": ("curl -A u -fsku ann:{} https://example.com", "hunter22"),
    "second cookie": ("Cookie: {}", f"theme=dark; sid={some(24)}"),
    "cookie jar": (".example.com\tTRUE\t/\tFALSE\t1999999999\tsid\t{}", some(24)),
    "cookie jar, for programs": ("#HttpOnly_a.b\tFALSE\t/x\tTRUE\t0\tS\t{}", some(24)),
    "yaml with blanks": ("password    :   {}", "hunter22"),
    "yaml with a tag": ("password: !!str {}", "hunter22"),
    "yaml with an anchor": ("password: &main {}", "hunter22"),
    "long toml": ('password = """{}"""', "hunter22"),
    "name and value": ("- name: DB_PASSWORD\n  value: {}\n- x: 1", "hunter22"),
    "name and quoted value": ('  - name: "API_TOKEN"\n    value: "{}"', some(20)),
    "name and value in json": ('{{"name": "DB_PASSWORD", "value": "{}"}}', "hunter22"),
    "name and value in json lines": ('"name": "CLIENT_SECRET",\n  "value": "{}"', some(20)),
    "name and value in xml": ('<add key="ApiKey" value="{}" />', some(20)),
    "option with a token": ("tool --token {} --verbose", some(24)),
    "option with a key": ("tool --api-key '{}'", some(24)),
    "line of a dockerfile": ("ENV DB_PASSWORD {}", "hunter22xyz"),
    "connection string in short": ("Server=db;Uid=ann;Pwd={};Timeout=5", "hunter22"),
    "redis option": ("redis-cli -h db -a {} ping", "hunter22"),
    "docker login": ("docker login -u ann -p {} example.com", "hunter22"),
    "openssl": ("openssl rsa -in k -passin pass:{} -out x", "hunter22"),
    "variable for a pass": ("DB_PASS={}", some(20)),
    "variable for a token": ("export AZURE_DEVOPS_EXT_PAT={}", some(40)),
    "variable for a dsn": ("SENTRY_DSN={}", f"https://{some(32)}@sentry.example.com/1"),
    "npmrc": ("//registry.npmjs.org/:_authToken={}", some(30)),
    "docker": ('"example.com": ["auth", "x"], "auth": "{}"', some(40)),
    "property": ("spring.datasource.password={}", "hunter22"),
    "option": ("wget --http-password={} https://example.com", "hunter22"),
    "connection string": ("Server=db;User=ann;Password={};Timeout=5", "hunter22"),
    "ini": ("password = {}", "Hu9nterX" + some(8)),
    "xml": ("  <password>{}</password>", "hunter22!"),
    "rails": ("secret_key_base: {}", some(64, HEX)),
    "sshpass": ("sshpass -p {} ssh ann@example.com", "hunter22"),
    "sql": ("CREATE USER ann IDENTIFIED BY '{}'", "hunter22"),
    "redis": ("requirepass {}", "hunter22"),
    "shared access key": ("Endpoint=sb://x;SharedAccessKey={};y", some(43) + "="),
    "netrc line with a tab": ("\tpassword\t{}", "hunter22"),
    "yaml block": ("db:\n  password: |\n    {}\n  user: ann\n", "hunter22"),
    "folded yaml block": ("password: >-\n  {}\nuser: ann\n", f"{some(20)}\n  {some(20)}"),
    "yaml block with a gap": ("a_secret: |+\n  {}\nx: 1", f"{some(20)}\n\n  {some(20)}"),
    "yaml block of words": ("passphrase: |2-\n  {}\n", "correct horse 9 staple"),
    "mysql": ("mysql -u root -p{} -h db shop", "hunter"),
    "mysql quoted": ("mysqldump -uroot -p'{}' shop > shop.sql", "hun ter"),
    "mysql option": ("mysqladmin --user=root --password={} ping", "hunter"),
    "mariadb": ("mariadb -p{}", "letmein"),
    "password option": ("docker login -u ann --password {} example.com", "hunter2"),
    "password option with equals": ("tool --password={}", "hunter2"),
    "pgpass": ("db.example.com:5432:shop:ann:{}", "hunter"),
    "pgpass with stars": ("*:*:*:ann:{}\n", "hunt\\:er"),
    "pgpass of a search": (".pgpass:3:localhost:5432:*:ann:{}", "letmein"),
    "setter": ('  config.setPassword("{}");', "hunter22"),
    "setter with single quotes": ("user.set_db_password( '{}' )", "hunter22"),
    "setter of a key": ('new Client().withApiKey("{}")', some(20)),
    "setter of a builder": ('.username("ann").password("{}")', "hunter22"),
    "setter in a string": (r'"code": "c.setPassword(\\"{}\\")"', "hunter22"),
    "call with name and value": ('properties.put("db.password", "{}");', "hunter22"),
    "wrapped value": ('password=SecretStr("{}")', "hunter22"),
    "percent-encoded": ("/login?next=%2Fx%3Fpassword%3D{}%26y%3D1", "hunter22"),
    "percent-encoded twice": ("u=%253Fapi_key%253D{}%2526y", some(20)),
    "percent-encoded json": ("q=%7B%22password%22%3A%22{}%22%7D", "hunter22"),
    "percent-encoded variable": ("env=DB_PASS%3d{}", some(20)),
    "escaped equals": (r"password\u003d{}\u0026user\u003dann", "hunter22"),
    "escaped equals in a string": (r"x?access_token\\u003d{}", some(20)),
    "escaped json": (r"{{\u0022password\u0022:\u0022{}\u0022}}", "hunter22"),
    "escaped by hex": (r"'token\x3d{}'", some(20)),
    "equals of a page": ("client_secret&#61;{}&amp;x=1", some(20)),
    "quotes of a page": ("&quot;password&quot;:&quot;{}&quot;", "hunter22"),
    "token before a host": ("git clone https://{}@git.example.com/a/b.git", some(40, HEX)),
    "token before a host and a colon": ("https://{}:@git.example.com/", some(24)),
    "token as the user": ("https://{}:x-oauth-basic@git.example.com/", some(24)),
    "yaml on the next line": ("db:\n  password:\n    {}\n  user: ann\n", "hunter22"),
    "quoted yaml on the next line": ("api_key:\n  '{}'\nx: 1", some(20)),
    "tagged yaml on the next line": ("token: !!str\n  {}", some(20)),
    "json on the next line": ('  "client_secret":\n    "{}",\n', some(60)),
    "toml value on the next line": ("apiKey =\n    '{}';", some(60)),
    "slack webhook": ("https://hooks.slack.com/services/{}", f"T{some(9)}/B{some(9)}/{some(24)}"),
}
"""Secrets that are known by where they stand."""
