"""What reads the files of a case besides whole tools: the library's own ways, without TensorFlow
where they need none.

Each works in the case's folder, and raises `UserError` for what a user can mend.
"""

import importlib
from collections.abc import Callable
from pathlib import Path

from tools.table import tool_named

_FAMILIES = {"classifier": "labels", "squad": "questions", "swag": "choices", "ner": "tagging"}


def checked(tool: str, words: str) -> Callable[[], None]:
    """A run up to where TensorFlow is needed, with all examples that it would read."""

    def check() -> None:
        from pipelines.fine_tuning.start import check_run, wanted_splits

        flags = tool_named(f"run_{tool}").flags
        flags.parse(words.split())
        room = importlib.import_module(f"pipelines.tasks.{_FAMILIES[tool]}.task")
        run = check_run(flags.config(), room.task_of)
        for split in wanted_splits(run.config, run.task):
            examples = list(run.task.examples(split))
            tokenizer = _tokenizer(run.start.text)
            run.task.rows(examples[:20], tokenizer, run.config.max_seq_length)

    check.__name__ = f"checked {tool} {words}"
    return check


def _tokenizer(text):
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

    return Tokenizer(text)


def model_and_weights(name: str) -> Callable[[], None]:
    """Finds a model, and reads all of its weights."""

    def read() -> None:
        from keras_bert_impl.checkpoints.model_source import find_model

        source = find_model(name, default_lower_case=True)
        tensors = source.tensors()
        for tensor in tensors.names():
            tensors.read(tensor)
        source.labels  # noqa: B018

    read.__name__ = f"weights of {name}"
    return read


def served_settings() -> None:
    """Makes the task of a model directory's settings, as what serves it does."""
    from keras_bert_impl.checkpoints.model_source import find_model
    from keras_bert_impl.checkpoints.task_settings import num_texts, served_length, task_settings
    from pipelines.tasks.register import SERVED_TASKS

    source = find_model("model", default_lower_case=True)
    served_length(source.config, None)
    num_texts(source.config)
    name = task_settings(source.config).get("task", "")
    if name in SERVED_TASKS:
        SERVED_TASKS[name](source.config).configure(source.config)


def vocabulary() -> None:
    """Opens a vocabulary, and cuts text by it."""
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

    text = TextSettings(Vocabulary.load("vocab.txt"))
    _tokenizer(text).encode_lines(["the dog's value é 배 [MASK]", ""])


def trivia_questions() -> None:
    """Reads TriviaQA's tree; what lies beside it must not be read."""
    from pipelines.tasks.questions.files import read_questions

    path = Path("qa/wikipedia-train.json")
    for training in (False, True):
        for question in read_questions(path, version_2_with_negative=False, training=training):
            if "the secret is" in question.passage.text:
                raise RuntimeError("a file beside the tree was read")


def request_bodies() -> None:
    """Sends bodies to the server's three forms, without sockets and without a model."""
    from keras_bert_impl.errors import UserError
    from keras_bert_impl.serving.http.app import make_app
    from keras_bert_impl.serving.http.config import ServerConfig
    from tests.support.asgi_client import ask
    from tests.support.toy_answerer import ToyModel, ToyVectors

    toys = {"toy": ToyModel(), "vectors": ToyModel({"embed": ToyVectors()})}
    app = make_app(toys, ServerConfig())
    forms = {"predict": "models/toy:predict", "regress": "models/toy:regress"}
    for name, form in (forms | {"vectors": "embeddings"}).items():
        body = Path(f"{name}.json").read_bytes()
        kind = [("content-type", "application/json")]
        reply = ask(app, "POST", f"/v1/{form}", body, kind)
        if reply.status >= 500:
            raise RuntimeError(f"{reply.status}: {reply.body[:200]!r}")
        if reply.status != 200:
            said = reply.json()["error"]
            raise UserError(f"{name}.json: {said if isinstance(said, str) else said['message']}")


def google_configuration() -> None:
    """Reads google's configuration."""
    from keras_bert_impl.config import BertConfig

    BertConfig.from_google_file("bert_config.json").to_hugging_face()


def sentence_files() -> None:
    """Reads sentence-transformers' files."""
    from keras_bert_impl.checkpoints.sentence_modules import read_dense, read_sentence_settings

    read_sentence_settings(Path("model"))
    read_dense(Path("model"))
