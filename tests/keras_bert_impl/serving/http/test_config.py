import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.http import config
from keras_bert_impl.serving.http.config import ServerConfig
from tests.support.served import CERTIFICATE, KEY


def test_the_file_of_the_key_comes_before_the_option_and_this_before_the_environment(
    monkeypatch, tmp_path
):
    monkeypatch.setenv(config.API_KEY_VARIABLE, "first")
    assert ServerConfig().key() == "first"
    assert ServerConfig(api_key="second").key() == "second"
    (tmp_path / "key").write_text(" third \n")
    assert ServerConfig(api_key="second", api_key_file=tmp_path / "key").key() == "third"
    monkeypatch.delenv(config.API_KEY_VARIABLE)
    assert ServerConfig().key() is None


@pytest.mark.parametrize("key", ["", "a b", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_refused(tmp_path, key):
    (tmp_path / "key").write_bytes(key.encode() + b"\x01")
    with pytest.raises(UserError, match="is no API key"):
        ServerConfig(api_key=key).key()
    with pytest.raises(UserError, match="is no API key"):
        ServerConfig(api_key_file=tmp_path / "key").key()


@pytest.mark.parametrize("name", ["read_seconds", "answer_seconds", "idle_seconds", "stop_seconds"])
@pytest.mark.parametrize("value", [0, float("nan"), 1e300])
def test_times_are_more_than_nothing_and_no_more_than_a_day(name, value):
    with pytest.raises(UserError, match=name):
        ServerConfig(**{name: value})


@pytest.mark.parametrize(
    "names",
    [
        {"allowed_hosts": ("https://a.example",)},
        {"allowed_hosts": ("a.example", "")},
        {"allowed_hosts": ("a.example:443",)},
        {"allowed_hosts": ("*.example",)},
        {"allowed_hosts": ("10.0.0.5:8501",)},
        {"allowed_hosts": ("cafe:8501",)},
        {"allowed_origins": ("a.example",)},
        {"allowed_origins": ("https://a.example/",)},
        {"allowed_origins": ("null",)},
    ],
)
def test_names_that_no_browser_sends_are_refused(names):
    with pytest.raises(UserError, match="is none; write it as"):
        ServerConfig(**names)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"certfile": CERTIFICATE}, "name a certificate and its private key"),
        ({"certfile": "no.pem", "keyfile": KEY}, "no.pem.*: No such file"),
        ({"certfile": KEY, "keyfile": KEY}, "name a certificate and its private key"),
        ({"keyfile": KEY}, "give `certfile`, too"),
        ({"access_log": "no/folder/log"}, "`access_log=no/folder/log`: No such file"),
        ({"access_log": "."}, "Is a directory"),
    ],
)
def test_files_that_do_not_do_are_told_before_models_are_opened(files, sentence):
    with pytest.raises(UserError, match=sentence):
        ServerConfig(**files).check_files()
    ServerConfig(certfile=CERTIFICATE, keyfile=KEY, access_log="-").check_files()


def test_a_missing_package_is_named(monkeypatch):
    config.need_server()
    monkeypatch.setattr(config, "_PACKAGES", ("no_such_package",))
    with pytest.raises(UserError, match="no_such_package"):
        config.need_server()
