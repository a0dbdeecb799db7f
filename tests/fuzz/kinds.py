"""The register: every kind of file that is read, its mutators, and what reads it.

A new kind joins by one entry in `KINDS`.
"""

from tests.fuzz import readers, seeds
from tests.fuzz.readers import checked, model_and_weights
from tests.fuzz.runner import Kind

_JSON = "json json json bytes lines special"
_LINES = "jsonl jsonl lines bytes special bombs"
_TABLE = "table table lines bytes special bombs"
_TEXT = "lines lines lines lines bytes bytes special special bombs"
_TUNED = {"model/config.json": "json json json json bytes special"}
_MODEL = {
    "model/vocab.txt": "lines bytes special",
    "model/model.safetensors": "safetensors bytes special",
    "model/*.json": _JSON,
    "model/*/*": f"{_JSON} safetensors",
}
_TRAIN = "--init_checkpoint=model --output_dir=out --do_train --do_eval --max_seq_length=12"
_EVALUATE = "--output_dir=out --model=model --do_eval"
_ANSWER = "--output_dir=out --model=model --do_predict"
_SHAPE = "--max_query_length=4 --doc_stride=4"
_TO_LINES = "--output_file=out.txt --num_workers=1"
_PREPARE = (
    "create_pretraining_data --input_file=text.txt --vocab_file=vocab.txt --num_workers=0"
    " --output_file=out/train.tfrecord --max_seq_length=32 --max_predictions_per_seq=4"
)
_SCORE = "score_answers --predictions_file=predictions.json"

_ALL = (
    Kind(
        "text",
        seeds.text,
        {"text.txt": _TEXT, "text.jsonl": f"{_TEXT} jsonl", "text.txt.*": "packed special bombs"},
        (
            f"split_sentences --input_file=text.txt {_TO_LINES}",
            f"split_sentences --input_file=text.txt.gz {_TO_LINES}",
            f"split_sentences --input_file=text.txt.bz2 {_TO_LINES}",
            f"split_sentences --input_file=text.jsonl {_TO_LINES}",
            "learn_vocabulary --input_file=text.* --vocab_file=out.txt --vocab_size=60"
            " --num_workers=1",
            "tokenize_text --input_file=text.txt --vocab_file=vocab.txt --output_file=out.txt",
            "tokenize_text --input_file=text.txt.xz --vocab_file=vocab.txt",
            _PREPARE,
        ),
        weight=50,
    ),
    Kind("vocabulary", seeds.text, {"vocab.txt": _TEXT}, (readers.vocabulary, _PREPARE), weight=25),
    Kind(
        "google_config",
        seeds.google_config,
        {"bert_config.json": _JSON},
        (
            readers.google_configuration,
            "plan_run --bert_config_file=bert_config.json --num_train_steps=9"
            " --num_warmup_steps=1 --max_seq_length=12 --max_predictions_per_seq=2",
        ),
        weight=40,
    ),
    Kind(
        "encoder",
        seeds.encoder,
        _MODEL,
        (
            model_and_weights("model"),
            readers.sentence_files,
            "convert_checkpoint --input=model --output=out",
            "grow_vocabulary --input=model --output=out --words=ablaut",
        ),
        weight=80,
    ),
    Kind(
        "adapter",
        seeds.adapter,
        {"adapter/*.json": _JSON, "adapter/*.safetensors": "safetensors bytes special gone"},
        (model_and_weights("adapter"),),
        weight=20,
    ),
    Kind(
        "fast_tokenizer",
        seeds.fast_tokenizer,
        {"model/tokenizer.json": _JSON},
        (model_and_weights("model"), "convert_checkpoint --input=model --output=out"),
        weight=25,
    ),
    Kind(
        "labels",
        seeds.labels,
        {"*.csv": _TABLE, "numbers.tsv": _TABLE, "several.jsonl": _LINES, **_TUNED},
        (
            checked("classifier", f"{_TRAIN} --train_file=train.csv --dev_file=dev.csv"),
            checked("classifier", f"{_TRAIN} --train_file=several.jsonl --dev_share=0.3"),
            checked(
                "classifier",
                f"{_TRAIN} --train_file=numbers.tsv --regression --label_column=1"
                " --text_column=2 --dev_share=0.3",
            ),
            checked("classifier", f"{_EVALUATE} --dev_file=dev.csv"),
            checked("classifier", f"{_ANSWER} --test_file=dev.csv"),
            readers.served_settings,
            model_and_weights("model"),
        ),
        weight=110,
    ),
    Kind(
        "questions",
        seeds.questions,
        {"*.json": f"{_JSON} bombs", **_TUNED},
        (
            checked("squad", f"{_TRAIN} {_SHAPE} --train_file=dev.json --predict_file=dev.json"),
            checked(
                "squad",
                f"{_TRAIN} {_SHAPE} --train_file=dev2.json --predict_file=dev2.json"
                " --version_2_with_negative",
            ),
            checked("squad", f"{_ANSWER} --predict_file=dev.json"),
            f"{_SCORE} --data_file=dev.json",
            f"{_SCORE} --data_file=dev2.json --null_odds_file=null_odds.json"
            " --version_2_with_negative",
            readers.served_settings,
        ),
        weight=90,
        megabytes=1500,
    ),
    Kind(
        "trivia",
        seeds.trivia,
        {"qa/*.json": _JSON, "predictions.json": _JSON, "evidence/*/*": _TEXT},
        (readers.trivia_questions, f"{_SCORE} --data_file=qa/wikipedia-train.json"),
        weight=40,
        megabytes=1500,
    ),
    Kind(
        "tags",
        seeds.tags,
        {"*.txt": _TABLE, **_TUNED},
        (
            checked("ner", f"{_TRAIN} --train_file=train.txt --dev_file=train.txt"),
            checked("ner", f"{_TRAIN} --train_file=dev.txt --dev_file=dev.txt"),
            checked("ner", f"{_ANSWER} --test_file=train.txt"),
            "score_tags --predictions_file=predictions.txt",
            readers.served_settings,
        ),
        weight=80,
    ),
    Kind(
        "choices",
        seeds.choices,
        {"train.csv": _TABLE, "train.jsonl": _LINES, **_TUNED},
        (
            checked("swag", f"{_TRAIN} --train_file=train.csv --dev_file=train.csv"),
            checked("swag", f"{_TRAIN} --train_file=train.jsonl --dev_file=train.jsonl"),
            checked("swag", f"{_EVALUATE} --dev_file=train.csv"),
            readers.served_settings,
        ),
        weight=50,
    ),
    Kind(
        "tf1_checkpoint",
        seeds.tf1_checkpoint,
        {"tf1/*": "bytes special gone"},
        (model_and_weights("tf1/bert.ckpt"),),
        weight=10,
        megabytes=1000,
    ),
    Kind(
        "exported",
        seeds.exported,
        {
            "exported/*.json": f"{_JSON} gone",
            "exported/vocab.txt": "lines bytes special gone",
            "exported/model.*": "bytes special gone",
            "train.csv": _TABLE,
        },
        (
            "predict --model=exported --input_file=train.csv --text_column=text"
            " --output_file=out.jsonl --format=json",
        ),
        weight=20,
        seconds=60,
        megabytes=1000,
    ),
    Kind(
        "request_bodies",
        seeds.request_bodies,
        {"*.json": "json json json bytes"},
        (readers.request_bodies,),
        weight=30,
    ),
)
KINDS = {kind.name: kind for kind in _ALL}
