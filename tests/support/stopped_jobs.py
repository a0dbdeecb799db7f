"""Tiny jobs of the tools for `random_stops`: what they read is made here."""

import json

import numpy as np

from tests.support.random_stops import Job

TOOLS = "keras_bert_impl"


def made_text(path, documents, seed=1, words=4000, sentences=8):
    """Documents of made words, some frequent and most rare, one sentence a line."""
    draw = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlu"))
    known = ["".join(draw.choice(letters, draw.integers(2, 9))) for _ in range(words)]
    shares = 1 / np.arange(1, words + 1)
    shares /= shares.sum()
    with path.open("w", encoding="utf-8") as file:
        for _ in range(documents):
            chosen = draw.choice(words, [sentences, 9], p=shares)
            for line in chosen:
                file.write(" ".join(known[word] for word in line).capitalize() + ".\n")
            file.write("\n")
    return path


def made_documents(path, documents):
    """The same as JSON lines, one document a line."""
    lines = made_text(path.with_suffix(".txt"), documents).read_text().split("\n\n")
    with path.open("w", encoding="utf-8") as file:
        for text in lines[:-1]:
            file.write(json.dumps({"text": text.replace("\n", " ")}) + "\n")
    return path


def _vocabulary(folder):
    from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS

    letters = "etaoinshrdlu."
    tokens = [*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)]
    tokens += [a + b for a in letters[:12] for b in letters[:12]]
    tokens += [f"##{a}{b}" for a in letters[:12] for b in letters[:12]]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    return folder / "vocab.txt"


def _encoder(folder, write="write_encoder", *arguments, positions=64, **changes):
    from keras_bert_impl.tokenization.vocabulary import Vocabulary
    from tests.support import model_folders

    vocabulary = Vocabulary.load(_vocabulary(folder))
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
    changes = {**sizes, "max_position_embeddings": positions, **changes}
    config = model_folders.tiny_config(vocab_size=len(vocabulary), **changes)
    kinds = {
        "write_encoder": model_folders.BertEncoder,
        "write_pretrainer": model_folders.BertPretrainer,
    }
    model_folders.write_any(folder / "model", kinds[write](config), vocabulary)


def _lines(folder, count=6000):
    made_text(folder / "lines.txt", count // 8)
    text = (folder / "lines.txt").read_text()
    (folder / "lines.txt").write_text(text.replace("\n\n", "\n"))


def _shards(folder, documents=300):
    from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe
    from pipelines.runners.local import run_local
    from tests.support.model_folders import tiny_config

    made_text(folder / "text.txt", documents)
    made_text(folder / "held_out.txt", documents // 2, seed=2)
    vocabulary = _vocabulary(folder)
    for name in ("text", "held_out"):
        run_local(
            PretrainingDataConfig(
                input_file=str(folder / f"{name}.txt"),
                vocab_file=str(vocabulary),
                output_file=str(folder / f"{name}.tfrecord"),
                recipe=Recipe(max_seq_length=64, max_predictions_per_seq=10, dupe_factor=2),
                num_workers=0,
            )
        )
    size = len(vocabulary.read_text().splitlines())
    config = tiny_config(vocab_size=size, hidden_size=64, max_position_embeddings=64)
    (folder / "bert_config.json").write_text(json.dumps(config.to_google()))


def _of_helpers(folder, *writes):
    """Files of the tests' own helpers, and the tiny model that starts from their words."""
    from tests.support.model_folders import write_start

    write_start(folder / "model", hidden_size=64, num_attention_heads=4, intermediate_size=128)
    for write, name, *arguments in writes:
        write(folder / name, *arguments)


def _classifier_files(folder, train):
    from tests.support.glue_files import write_cola

    _of_helpers(folder, (write_cola, "cola", train, train, train))


def _squad_files(folder, train, dev):
    from tests.support.squad_files import write_squad

    _of_helpers(folder, (write_squad, "train.json", train), (write_squad, "dev.json", dev, 2))


def _swag_files(folder):
    from tests.support.choice_files import write_swag

    _of_helpers(
        folder,
        *((write_swag, f"{name}.csv", 1500, seed) for seed, name in enumerate(("train", "val"))),
        (write_swag, "test.csv", 800, 5, 4, False),
    )


def _tagged_files(folder):
    from tests.support.tagged_files import write_tagged

    _of_helpers(
        folder,
        *((write_tagged, f"{name}.txt", 1500, seed) for seed, name in enumerate(("train", "dev"))),
        (write_tagged, "test.txt", 800, 5),
    )


def _questions_and_answers(folder):
    _squad_files(folder, 10, 60_000)
    data = json.loads((folder / "dev.json").read_text())["data"]
    questions = [one["qas"][0] for article in data for one in article["paragraphs"]]
    said = {one["id"]: one["answers"][0]["text"] for one in questions}
    (folder / "predictions.json").write_text(json.dumps(said))


def _vectors_of_lines(folder, count=100_000):
    """As many vectors as lines; that no model made them is nothing that a search could see."""
    _encoder(folder)
    _lines(folder, count)
    number = len((folder / "lines.txt").read_text().splitlines())
    np.save(folder / "lines.npy", np.random.default_rng(1).normal(size=(number, 64)).astype("f4"))
    made_text(folder / "queries.txt", 10, seed=3)


def _passage(folder, repeats=3000):
    from keras_bert_impl.checkpoints.task_settings import with_task_settings
    from keras_bert_impl.models.token_models import BertSpanLabeler
    from tests.support.model_folders import WORDS, tiny_config, write_any

    kept = {"task": "squad", "max_seq_length": 12, "doc_stride": 2, "max_query_length": 4}
    kept |= {"version_2_with_negative": False, "null_score_diff_threshold": 0.0}
    write_any(folder / "model", BertSpanLabeler(with_task_settings(tiny_config(), kept)))
    (folder / "passage.txt").write_text(" ".join(WORDS * repeats))


def _test_set_answers(folder):
    from pipelines.tasks.labels.submission import ROWS

    for number, (name, answer) in enumerate((("QQP.tsv", "1"), ("QNLI.tsv", "entailment"))):
        path = folder / "runs" / str(number) / name
        path.parent.mkdir(parents=True)
        rows = (f"{row}\t{answer}\n" for row in range(ROWS[name]))
        path.write_text("index\tprediction\n" + "".join(rows))


def _tags(folder, sentences=30_000):
    from tests.support.tagged_files import write_tagged

    for name, wrong in (("first", 7), ("second", 11)):
        lines = write_tagged(folder / f"{name}.txt", sentences).read_text().splitlines()
        said = [
            f"{line}\t{'O' if not number % wrong else line.split()[-1]}" if line else line
            for number, line in enumerate(lines)
        ]
        (folder / f"{name}.txt").write_text("\n".join(said) + "\n")


def _labels_to_predict(folder):
    from tests.support.labelled_files import CLASSES, write_classes
    from tests.support.model_folders import write_classifier

    write_classifier(folder / "model", CLASSES)
    write_classes(folder / "test.csv", 20_000)


def _tags_to_predict(folder):
    from tests.support.model_folders import write_tagger
    from tests.support.tagged_files import write_tagged

    write_tagger(folder / "model", ["O", "B-PER", "I-PER", "B-LOC"])
    write_tagged(folder / "test.txt", 10_000)


def _endings_to_predict(folder):
    from tests.support.choice_files import write_swag
    from tests.support.model_folders import write_chooser

    write_chooser(folder / "model")
    write_swag(folder / "test.csv", 5000, labelled=False)


def _masked_lines(folder):
    _encoder(folder, "write_pretrainer")
    made_text(folder / "masked.txt", 400)
    lines = [line for line in (folder / "masked.txt").read_text().splitlines() if line]
    masked = [" ".join(["[MASK]", *line.split()[1:]]) for line in lines]
    (folder / "masked.txt").write_text("\n".join(masked) + "\n")


def _job(name, *flags, called=None, **more):
    return Job(called or name, ["-m", TOOLS, name, *flags], **more)


_TINY = ("--init_checkpoint=INPUTS/model", "--output_dir=out", "--learning_rate=1e-3")
_OFTEN = ("--log_steps=10", "--save_checkpoints_steps=200", "--notrim_padding")
_ALL = ("--do_train", "--do_eval", "--do_predict")

_CLASSIFIER = (
    "--task_name=CoLA",
    "--data_dir=INPUTS/cola",
    *_TINY,
    *_OFTEN,
    "--max_seq_length=12",
    "--train_batch_size=8",
)

_STUDY = (
    "--input_file=INPUTS/text.jsonl",
    "--data_dir=INPUTS",
    "--output_dir=out",
    "--num_shards=2",
    "--vocab_size=200",
    "--vocabulary_flags=--do_lower_case --min_frequency=1",
    "--data_flags=--do_lower_case --max_seq_length=32 --max_predictions_per_seq=5 --dupe_factor=1",
    '--model_settings={"max_position_embeddings": 32}',
    "--size=tiny 1 16 2",
    "--pretraining_flags=--max_seq_length=32 --max_predictions_per_seq=5 --train_batch_size=8"
    " --num_train_steps=60 --num_warmup_steps=1 --save_checkpoints_steps=10 --eval_batch_size=8",
    "--task=cola eval_accuracy run_classifier --train_file={data}/train.tsv"
    " --dev_file={data}/dev.tsv",
    "--fine_tuning_flags=--max_seq_length=16 --train_batch_size=16 --num_train_epochs=1",
    "--tables=sizes",
    "--seeds=1",
    "--num_models=2",
    "--ignore_check",
)


def _study_files(folder):
    made_documents(folder / "text.jsonl", 100)
    lines = [line for line in (folder / "text.txt").read_text().splitlines() if line][:200]
    rows = [f"{line}\t{'yes' if 'e' in line[:4] else 'no'}" for line in lines]
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")


def pretraining_job(steps):
    """Some steps of pre-training with evaluations on the way and at the end."""
    return _job(
        "run_pretraining",
        *("--input_file=INPUTS/text.tfrecord*", "--eval_input_file=INPUTS/held_out.tfrecord*"),
        *("--output_dir=out", "--bert_config_file=INPUTS/bert_config.json"),
        *("--vocab_file=INPUTS/vocab.txt", "--max_seq_length=64", "--max_predictions_per_seq=10"),
        *("--do_train", "--do_eval", "--train_batch_size=16", f"--num_train_steps={steps}"),
        *(f"--num_warmup_steps={steps // 10}", "--learning_rate=1e-3", "--log_steps=10"),
        *(f"--save_checkpoints_steps={steps // 5}", f"--eval_steps={steps // 2}"),
        "--max_eval_steps=100",
        prepare=_shards,
        trains=True,
    )


def classifier_job(rows):
    """Three epochs of so many rows, evaluations on the way, the dev and the test set."""
    return _job(
        "run_classifier",
        *_CLASSIFIER,
        *_ALL,
        *("--num_train_epochs=3", f"--eval_steps={rows // 7}"),
        prepare=lambda folder: _classifier_files(folder, rows),
        trains=True,
    )


def squad_job(questions):
    """An epoch of so many questions, and as many to be answered."""
    return _job(
        "run_squad",
        *("--train_file=INPUTS/train.json", "--predict_file=INPUTS/dev.json"),
        *(*_TINY, *_OFTEN, *_ALL, "--max_seq_length=12", "--doc_stride=4"),
        *("--max_query_length=4", "--train_batch_size=8", "--num_train_epochs=1"),
        prepare=lambda folder: _squad_files(folder, questions, questions),
        trains=True,
    )


def many_runs_job(rows):
    """Two seeds of an epoch each."""
    flags = ("--do_train", "--do_eval", "--num_seeds=2", "--num_train_epochs=1")
    return Job(
        "many_runs",
        ["-m", TOOLS, "run_classifier", *_CLASSIFIER, *flags],
        prepare=lambda folder: _classifier_files(folder, rows),
    )


def _data_job(text, called=None, **flags):
    """The creation of pre-training data."""
    return _job(
        "create_pretraining_data",
        *("--input_file=INPUTS/text.txt", "--vocab_file=INPUTS/vocab.txt"),
        *("--output_file=out/data.tfrecord", "--num_shards=4"),
        *("--max_seq_length=64", "--max_predictions_per_seq=10", "--dupe_factor=4"),
        *(f"--{name}={value}" for name, value in flags.items()),
        called=called,
        prepare=lambda folder: (made_text(folder / "text.txt", text), _vocabulary(folder)),
        prints=True,
    )


def _prediction_job(tool, test_file, prepare):
    """The answers of a trained model to a file, no more."""
    return _job(
        tool,
        *(f"--test_file=INPUTS/{test_file}", "--init_checkpoint=INPUTS/model", "--do_predict"),
        *("--output_dir=out", "--max_seq_length=12", "--notrim_padding"),
        called=f"{tool}'s prediction",
        prepare=prepare,
    )


_JOBS = (
    _job(
        "split_sentences",
        *("--input_file=INPUTS/text.jsonl", "--output_dir=out", "--num_shards=3"),
        "--num_workers=2",
        prepare=lambda folder: made_documents(folder / "text.jsonl", 50_000),
    ),
    _job(
        "learn_vocabulary",
        *("--input_file=INPUTS/text.txt", "--vocab_file=out/vocab.txt", "--vocab_size=2000"),
        "--num_workers=2",
        prepare=lambda folder: made_text(folder / "text.txt", 60_000),
        prints=True,
    ),
    _job(
        "tokenize_text",
        *("--input_file=INPUTS/text.txt", "--vocab_file=INPUTS/vocab.txt"),
        "--output_file=out/tokens.jsonl",
        prepare=lambda folder: (made_text(folder / "text.txt", 4000), _vocabulary(folder)),
    ),
    _data_job(4000, num_workers=2),
    _data_job(400, called="create_pretraining_data on Beam", runner="DirectRunner"),
    _job(
        "inspect_pretraining_data",
        *("--input_file=INPUTS/text.tfrecord*", "--vocab_file=INPUTS/vocab.txt"),
        "--html=out.html",
        prepare=lambda folder: _shards(folder, 6000),
        prints=True,
    ),
    pretraining_job(1000),
    classifier_job(4000),
    squad_job(2500),
    _job(
        "run_swag",
        *("--data_dir=INPUTS", *_TINY, *_OFTEN, *_ALL, "--max_seq_length=12"),
        *("--train_batch_size=8", "--num_train_epochs=2", "--test_file=INPUTS/test.csv"),
        prepare=_swag_files,
        trains=True,
    ),
    _job(
        "run_ner",
        *("--data_dir=INPUTS", *_TINY, *_OFTEN, *_ALL, "--max_seq_length=12"),
        *("--train_batch_size=8", "--num_train_epochs=2", "--test_file=INPUTS/test.txt"),
        prepare=_tagged_files,
        trains=True,
    ),
    _prediction_job("run_classifier", "test.csv", _labels_to_predict),
    _prediction_job("run_ner", "test.txt", _tags_to_predict),
    _prediction_job("run_swag", "test.csv", _endings_to_predict),
    many_runs_job(2000),
    _job(
        "run_ablations",
        *_STUDY,
        prepare=_study_files,
        left_out=("result.json", "ablations.*", "metrics.jsonl"),
    ),
    _job(
        "adapt",
        *("--init_checkpoint=INPUTS/model", "--input_file=INPUTS/text.txt", "--output_dir=out"),
        *("--held_out_every=4", "--num_new_tokens=300", "--max_seq_length=64"),
        *("--max_predictions_per_seq=10", "--num_train_steps=100", "--max_eval_steps=5"),
        "--num_workers=2",
        "--pretraining_flags=--save_checkpoints_steps=10 --log_steps=10",
        prepare=lambda folder: (_encoder(folder), made_text(folder / "text.txt", 400)),
        left_out=("result.json", "metrics.jsonl"),
    ),
    _job(
        "extract_features",
        *("--input_file=INPUTS/lines.txt", "--output_file=out/lines.npz", "--output_format=npz"),
        *("--model=INPUTS/model", "--layers=-1", "--max_seq_length=64"),
        prepare=lambda folder: (_encoder(folder), _lines(folder)),
    ),
    _job(
        "embed",
        *("--input_file=INPUTS/lines.txt", "--output_file=out/lines.npy", "--model=INPUTS/model"),
        prepare=lambda folder: (_encoder(folder), _lines(folder, 34_000)),
    ),
    _job(
        "predict",
        *("--input_file=INPUTS/lines.txt", "--output_file=out.jsonl", "--model=INPUTS/model"),
        "--format=json",
        prepare=lambda folder: (_encoder(folder), _lines(folder, 4000)),
    ),
    _job(
        "similar",
        *("--input_file=INPUTS/lines.txt", "--vectors_file=INPUTS/lines.npy"),
        *("--model=INPUTS/model", "--query_file=INPUTS/queries.txt"),
        prepare=_vectors_of_lines,
        prints=True,
    ),
    _job(
        "score_answers",
        *("--data_file=INPUTS/dev.json", "--predictions_file=INPUTS/predictions.json"),
        prepare=_questions_and_answers,
        prints=True,
    ),
    _job(
        "answer",
        *("--model=INPUTS/model", "--passage_file=INPUTS/passage.txt", "--format=json"),
        *(f"--question={question}" for question in ("the dog", "a cat runs", "the list .")),
        prepare=_passage,
        prints=True,
    ),
    _job(
        "score_tags",
        *("--predictions_file=INPUTS/first.txt", "--compared_with=INPUTS/second.txt"),
        prepare=_tags,
        prints=True,
    ),
    _job(
        "glue_submission",
        *("--run_dir=INPUTS/runs", "--output_file=out/submission.zip"),
        prepare=_test_set_answers,
        prints=True,
    ),
    _job(
        "plan_run",
        *("--model_size=tiny", "--measure_steps=100", "--train_batch_size=16"),
        *("--num_train_steps=100", "--num_warmup_steps=10", "--vocab_size=600"),
        prints=True,
    ),
    _job(
        "convert_checkpoint",
        *("--input=INPUTS/model", "--output=out/model.ckpt"),
        prepare=lambda folder: _encoder(folder, hidden_size=512, num_hidden_layers=4),
    ),
    _job(
        "grow_vocabulary",
        *("--input=INPUTS/model", "--output=out", "--words=ablaut"),
        prepare=_encoder,
    ),
    _job(
        "export_saved_model",
        *("--model=INPUTS/model", "--output_dir=out"),
        prepare=_masked_lines,
        left_out=("variables.*",),
    ),
    _job(
        "export_model",
        *("--model=INPUTS/model", "--output_dir=out", "--format=openvino"),
        prepare=_encoder,
    ),
    _job(
        "fill_mask",
        *("--model=INPUTS/model", "--input_file=INPUTS/masked.txt"),
        prepare=_masked_lines,
        prints=True,
    ),
    _job(
        "explain",
        *("--model=INPUTS/model", "--output_file=out.html"),
        *(f"--text={text}" for text in ("the dog", "a cat runs", "the list .")),
        prepare=_encoder,
    ),
    _job(
        "demo",
        *("--output_dir=out", "--num_train_steps=60", "--vocab_size=600"),
        left_out=("variables.*",),
        sentences=(1, 2),
    ),
)

_QUICK = (pretraining_job(60), classifier_job(160), squad_job(150), many_runs_job(200))
QUICK = {job.name: job for job in _QUICK}
"""Shorter ones, for the tests."""

JOBS = {job.name: job for job in _JOBS}
"""A job for each tool, and for parts of some."""

SERVERS = {"playground", "serve"}
"""Tools that go on until they are stopped; tests of `serving/http` stop their server."""
