"""Forms in which people write secrets, and what only looks like them."""

from __future__ import annotations

import pytest

from trainer_dashboard.history.content import without_secrets
from trainer_dashboard.recipe.secret_forms import clean_text

SECRET = "hunter2hunter2"

SECRET_TEXTS = {
    # Commands and scripts.
    "export": f"export MY_SECRET={SECRET}",
    "export of a quoted text": f"export MY_SECRET='{SECRET}'; python train.py",
    "variable before a command": f"HF_TOKEN={SECRET} python train.py --lr 1",
    "env": f"env WANDB_API_KEY={SECRET} python train.py",
    "default of a shell": f"token=${{HF_TOKEN:-{SECRET}}}",
    "option": f"train --token {SECRET} --lr 1",
    "option with one dash": f"train -token {SECRET}",
    "option of several words": f"train --hub-token {SECRET}",
    "--pass": f"train --pass {SECRET}",
    "--auth": f"train --auth {SECRET}",
    "--access-key": f"aws --access-key {SECRET}",
    "--secret_key": f"mc --secret_key={SECRET}",
    "--api-key of Hydra": f"python train.py +logger.api_key={SECRET}",
    "--password=": f"mysql --password={SECRET} -h db",
    "--registry-password": f'docker login --registry-password "{SECRET}"',
    "-p of docker": f"docker login registry.example.com -u me -p {SECRET}",
    "-p of sshpass": f"sshpass -p {SECRET} ssh me@host",
    "-p of sshpass without a blank": f"sshpass -p'{SECRET}' ssh me@host",
    "wandb login": f"wandb login --relogin {SECRET} && python train.py",
    "--from-literal": f"kubectl create secret generic a --from-literal=password={SECRET}",
    "name and password": f"curl -u me:{SECRET} https://example.com",
    "--user": f"curl --user 'me:{SECRET}' https://example.com",
    "header of curl": f"curl -H 'X-Api-Key: {SECRET}' https://example.com",
    "header without a blank": f"curl -H X-Api-Key:{SECRET} https://example.com",
    "header with a scheme": f'curl -H "Authorization: token {SECRET}"',
    "header with a bearer token": f'curl -H "Authorization: Bearer {SECRET}"',
    "private token": f'curl --header "PRIVATE-TOKEN: {SECRET}"',
    "cookie": f"Cookie: {SECRET}",
    "list of options in a text": f'["train", "--token", "{SECRET}"]',
    "option in quotes": f"train '--token' '{SECRET}' --lr 1",
    "option in escaped quotes": f'bash -c "train \\"--token\\" \\"{SECRET}\\""',
    "value in the next line": f"train --token \\\n    {SECRET} \\\n  --lr 1",
    "value far behind": f"train --token{' ' * 20}{SECRET}",
    "quotes of bash": f"train --token=$'{SECRET}'",
    "word of several parts": f"""export TOKEN=a"{SECRET}"; train""",
    "word of several parts in quotes": f"train --token='a'{SECRET} --lr 1",
    "word behind empty quotes": f"train --token=''{SECRET} --lr 1",
    "word of several quotes": f"""train --token="a""{SECRET}" --lr 1""",
    "key of a service": f"train --wandb-key {SECRET}",
    "standard input": f"echo {SECRET} | docker login --password-stdin registry; python train.py",
    "standard input in quotes": f"printf '%s' '{SECRET}' | huggingface-cli login --token $(cat -)",
    "@ in a password": f"psql postgres://me:p@{SECRET}@db/a",
    # Programs.
    "login of wandb": f"import wandb; wandb.login(relogin=True, key='{SECRET}')",
    "list in JSON": f'{{"wandb": {{"api_keys": ["{SECRET}", "{SECRET}"]}}, "lr": 1}}',
    "environment of Python": f'os.environ["HF_TOKEN"] = "{SECRET}"',
    "environment of Python, single quotes": f"os.environ['HF_TOKEN']='{SECRET}'",
    "default in Python": f'os.getenv("HF_TOKEN", "{SECRET}")',
    "setdefault": f'os.environ.setdefault("HF_TOKEN", "{SECRET}")',
    "keyword": f'wandb.login(key=x, api_key="{SECRET}")',
    "assignment": f'db_password = "{SECRET}"',
    "attribute": f'self.client_secret = "{SECRET}"',
    "comparison": f'if token == "{SECRET}":',
    "bytes": f'API_KEY = b"{SECRET}"',
    "three quotes": f'token = """{SECRET}"""',
    "three quotes, several lines": f"password = '''\n{SECRET}\n'''; lr = 1",
    "dictionary": f"{{'password': '{SECRET}', 'lr': 1}}",
    "hash of Ruby": f'"password" => "{SECRET}"',
    "assignment of Go": f'token := "{SECRET}"',
    # Files of settings.
    ".env": f"LR=1\nDB_PASSWORD={SECRET}\nBATCH=8",
    ".env with quotes": f'SECRET_KEY="{SECRET}"',
    "YAML": f"lr: 1\npassword: {SECRET}\n",
    "YAML with quotes": f'auth_token: "{SECRET}"',
    "YAML, several words": f"password: correct horse {SECRET}",
    "YAML, a list": f"users:\n- name: a\n  password: {SECRET}",
    "YAML, a block": f"token: |\n  {SECRET}\nlr: 1",
    "YAML in braces": f"{{user: me, password: {SECRET}, lr: 1}}",
    "JSON": f'{{"apiKey": "{SECRET}", "lr": 1}}',
    "JSON without blanks": f'{{"password":"{SECRET}","lr":1}}',
    "JSON in JSON": f'{{"config": "{{\\"token\\": \\"{SECRET}\\"}}"}}',
    "INI": f"[db]\npassword = {SECRET}",
    "properties": f"spark.hadoop.fs.s3a.secret.key={SECRET}",
    "TOML": f'api-key = "{SECRET}"',
    "XML": f"<server><password>{SECRET}</password></server>",
    ".npmrc": f"//registry.example.com/:_authToken={SECRET}",
    ".netrc": f"machine example.com login me password {SECRET}",
    "manifest": f"env:\n- name: HF_TOKEN\n  value: {SECRET}\n",
    "manifest with quotes": f'- name: "HF_TOKEN"\n  value: "{SECRET}"',
    "manifest as JSON": f'[{{"name": "HF_TOKEN", "value": "{SECRET}"}}]',
    "connection string": f"AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=https;AccountKey={SECRET}",
    "AccountKey": f"DefaultEndpointsProtocol=https;AccountKey={SECRET};EndpointSuffix=core",
    # URLs.
    "password in a URL": f"postgresql://me:{SECRET}@db/runs",
    "token in a URL": f"git clone https://{SECRET}@github.com/a/b",
    "user and token in a URL": f"pip install git+https://oauth2:{SECRET}@example.com/a.git",
    "query": f"https://example.com/a?access_token={SECRET}&page=2",
    "query of Azure": f"https://a.blob.core.windows.net/b?sv=2024-01-01&sig={SECRET}&se=1",
    "query of S3": f"https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={SECRET}",
    "session of S3": f"https://b.s3.amazonaws.com/k?X-Amz-Security-Token={SECRET}&X-Amz-Date=1",
    "query of GCS": f"https://storage.googleapis.com/b/k?X-Goog-Signature={SECRET}",
    "webhook of Slack": f"curl https://hooks.slack.com/services/T0/B0/{SECRET}",
    # Logs and known forms.
    "log of a program": f"2026-01-01 INFO login with password={SECRET} as me",
    "Namespace": f"Namespace(lr=0.1, hub_token='{SECRET}', seed=1)",
    "token of Hugging Face": f"login('hf_{SECRET}')",
    "token of GitHub": f"ghp_{SECRET}{SECRET}",
    "token of GitLab": f"glpat-{SECRET}",
    "token of PyPI": f"pypi-{SECRET}",
    "token of Vault": f"hvs.{SECRET}",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SECRET_TEXTS.items()])
def test_secrets(text: str) -> None:
    """The secret goes and the name stays, in a text, in an item of a command, and in an entry of a ConfigMap."""
    assert SECRET not in clean_text(text)
    assert "[redacted]" in clean_text(text)
    assert SECRET not in str(without_secrets({"spec": {"command": ["sh", "-c", text]}}))
    assert SECRET not in str(without_secrets({"kind": "ConfigMap", "data": {".env": text}}))
    assert SECRET not in clean_text(f"# a line before\n{text}\n# and one behind")


JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"sent Bearer {JWT}.", "sent Bearer [redacted]", id="bearer"),
        pytest.param("sent Basic dXNlcjpwYXNzd29yZA==", "sent Basic [redacted]", id="basic"),
        pytest.param(f"got {JWT!r} as answer", "got '[redacted]' as answer", id="JWT"),
        pytest.param(f"sent id-{JWT}", "sent id-[redacted]", id="JWT behind a dash"),
        pytest.param("via http://user:hunter2@proxy:80", "via http://user:[redacted]@proxy:80", id="URL"),
        pytest.param(f"read {KEY} from file", "read [redacted] EC PRIVATE KEY----- from file", id="PEM"),
        pytest.param(KEY[:40], "[redacted]", id="PEM that is cut"),
    ],
)
def test_forms(text: str, expected: str) -> None:
    """What has the form of a credential is one, whatever stands before it."""
    assert clean_text(text) == expected


HARMLESS_TEXTS = (
    "secretName: hub",
    '{"secretName": "hub", "key": "token"}',
    "secretKeyRef: {name: hub, key: token}",
    "imagePullSecrets: [{name: regcred}]",
    "tokenizer=llama",
    "--tokenizer llama --max-steps 10",
    "tokenizer: meta-llama/Llama-3",
    "max_tokens: 512",
    "--max-new-tokens 512",
    'MAX_TOKENS="512"',
    "tokens: 1,234,567",
    "tokens=1024/4096 loss=0.1",
    "token: 5/10",
    "tokens: 3 / 7",
    "wandb login --help",
    "wandb login && python train.py",
    "docker login -u me --password-stdin && docker run -p 8080:80 image",
    "docker run -p 8080:80 image",
    "token_classification: bert-base",
    "tokens per second = 52.3k",
    "tokens_per_sec: 1.2e4",
    "total_tokens=9 loss=0.1",
    "eos_token: </s>",
    "--pad-token '<pad>' --lr 1",
    'tokenizer.pad_token = tokenizer.eos_token = "</s>"',
    "passes=3",
    "num_passes: 3",
    "forward pass: 12.5 ms",
    "--bypass x",
    "compass: north",
    "author: Ada",
    "authors = A, B",
    "--authority x",
    "keyword: a",
    "sort_key: name",
    "topologyKey: kubernetes.io/hostname",
    "dataset_key = text",
    "PUBLIC_KEY=abc",
    "monkey: banana",
    "sshAuthMountPath: /root/.ssh",
    "token_type: bearer",
    "--token-file /run/secrets/token",
    "TOKEN_URL=https://example.com/token",
    "automountServiceAccountToken: false",
    "use_auth_token=True",
    "password: null",
    "export HF_TOKEN=$HF_TOKEN",
    "--token ${HF_TOKEN} --lr 1",
    "--token=$(HF_TOKEN)",
    "train --use-auth-token --lr 1",
    "image: example.com/auth:v1",
    "image: example.com/my-token:latest",
    'MountVolume.SetUp failed for volume "v": secret "hub" not found',
    "signal: 9",
    "ssh://git@github.com/a/b",
    "https://example.com/@user/password",
    "s3://bucket/key",
    "see https://example.com/docs/token?page=2",
    "a sentence about tokens, passwords and keys",
    "sh -c 'x --token ' y",
    "unknown option 'token=' in file",
)


@pytest.mark.parametrize("text", HARMLESS_TEXTS)
def test_harmless(text: str) -> None:
    """What has only a part of such a word in its name, says that it is about one, or names where it is, stays."""
    assert clean_text(text) == text
    assert without_secrets({"spec": {"args": [text]}}) == {"metadata": {}, "spec": {"args": [text]}}
    assert clean_text(f"before\n{text}\nbehind") == f"before\n{text}\nbehind"


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        pytest.param(["x", "--pass", SECRET], ["x", "--pass", "[redacted]"], id="option"),
        pytest.param(["x", "--auth", "--lr", "1"], ["x", "--auth", "--lr", "1"], id="flag"),
        pytest.param(["x", "--max-tokens", "512"], ["x", "--max-tokens", "512"], id="number"),
        pytest.param(["x", "--tokenizer", "llama"], ["x", "--tokenizer", "llama"], id="tokenizer"),
        pytest.param(["curl", "-u", f"me:{SECRET}"], ["curl", "-u", "me:[redacted]"], id="name-and-password"),
    ],
)
def test_items(command: list[str], kept: list[str]) -> None:
    """An option and its value may be two items."""
    assert without_secrets({"spec": {"command": command}})["spec"]["command"] == kept


@pytest.mark.parametrize(
    ("key", "value", "is_kept"),
    [
        pytest.param("db-password", SECRET, False, id="dash"),
        pytest.param("password.txt", SECRET, False, id="text-file"),
        pytest.param("api.key", SECRET, False, id="key-file"),
        pytest.param("API_KEY", SECRET, False, id="variable"),
        pytest.param("tokenizer", "llama", True, id="tokenizer"),
        pytest.param("auth.py", "import auth", True, id="program"),
        pytest.param("token_count.txt", "nine", True, id="about-it"),
    ],
)
def test_entries(key: str, value: str, *, is_kept: bool) -> None:
    """An entry of a ConfigMap may be a variable, or a file with nothing but a secret."""
    kept = without_secrets({"kind": "ConfigMap", "data": {key: value}})["data"]
    assert kept == {key: value if is_kept else "[redacted]"}


PUMPS = (
    "a", "a=", "a: ", "a: b: ", 'a="', "-a ", "token", "token=", "token: ", "token=[", "token:{", "--token ", '"token',
    '"token": "', 'token\\"', "name: token value: ", "password.", "x-", "-", "https://", "https://a", "-u a", "$", "{",
    "login a password ", "|\n ", "\n", "\ntoken: ", " ", "\t", "secret ", "<token>", '"HF_TOKEN",', "token:-", "eyJ",
    "hf_", "'", "\\", "--token'\\\n", "token=''a", "token=a'b", 'token=["', "://a:@", "echo a |", "wandb.login(key ",
)  # fmt: skip


@pytest.mark.parametrize("pump", PUMPS)
def test_linear_time(pump: str) -> None:
    """A text of a tenant cannot make the search take long: a minute is the limit of every test, and this needs none."""
    clean_text("token" + pump * (1_000_000 // len(pump)))
