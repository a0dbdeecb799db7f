"""The register: every kind of file that is read, its mutators, and what reads it.

A new kind joins by one entry in `KINDS`.
"""

from tests.fuzz import readers, seeds
from tests.fuzz.readers import checked
from tests.fuzz.runner import Kind

_JSON = "json json bytes lines special"
_LINES = "jsonl jsonl lines bytes special"
_TABLE = "table table lines bytes special"
_TEXT = "lines lines lines lines bytes bytes special special bombs"
_TUNED = {"model/config.json": "json json json json bytes special"}
_MODEL = {
    "model/config.json": f"{_JSON} json",
    "model/tokenizer_config.json": "json special",
    "model/vocab.txt": "lines bytes special",
    "model/model.safetensors": "safetensors bytes special",
}
_SHAPE = "--max_query_length=4 --doc_stride=4"
_TRAIN = "--init_checkpoint=model --output_dir=out --do_train --do_eval --max_seq_length=12"
_NUMBERED = "--label_column=1 --text_column=2 --dev_share=0.3"
_TO_LINES = "--output_file=out.txt --num_workers=1"
_SPLIT = f"split_sentences --input_file=text.txt {_TO_LINES}"
_TOKENIZE = "tokenize_text --input_file=text.txt --vocab_file=vocab.txt"
_TOKENIZE_TO = f"{_TOKENIZE} --output_file=out.txt"
_PREPARE = (
    "create_pretraining_data --input_file=text.txt --vocab_file=vocab.txt --num_workers=0"
    " --output_file=out/train.tfrecord --max_seq_length=32 --max_predictions_per_seq=4"
)


def _learn(text: str) -> str:
    shape = "--vocab_file=out.txt --vocab_size=60 --num_workers=1"
    return f"learn_vocabulary --input_file={text} {shape}"


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "text",
            seeds.text,
            {
                "text.txt": _TEXT,
                "text.jsonl": f"{_TEXT} jsonl",
                "text.txt.*": "packed special bombs",
            },
            (
                _SPLIT,
                f"split_sentences --input_file=text.txt.gz {_TO_LINES}",
                f"split_sentences --input_file=text.txt.xz {_TO_LINES}",
                f"split_sentences --input_file=text.txt.bz2 {_TO_LINES}",
                f"split_sentences --input_file=text.jsonl {_TO_LINES}",
                _learn("text.*"),
                _TOKENIZE_TO,
                "tokenize_text --input_file=text.txt.xz --vocab_file=vocab.txt",
                _PREPARE,
            ),
            weight=50,
        ),
        Kind(
            "vocabulary",
            seeds.text,
            {"vocab.txt": _TEXT},
            (
                readers.vocabulary,
                _TOKENIZE,
                _PREPARE,
            ),
            weight=25,
        ),
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
            {**_MODEL, "model/*.json": _JSON},
            (
                readers.model_and_weights("model"),
                "convert_checkpoint --input=model --output=out",
                "grow_vocabulary --input=model --output=out --words=ablaut",
            ),
            weight=60,
        ),
        Kind(
            "sentence_modules",
            seeds.encoder,
            {"model/*.json": _JSON, "model/*/*": f"{_JSON} safetensors"},
            (readers.sentence_files,),
            weight=20,
        ),
        Kind(
            "fast_tokenizer",
            seeds.fast_tokenizer,
            {"model/tokenizer.json": f"{_JSON} json"},
            (readers.model_and_weights("model"), "convert_checkpoint --input=model --output=out"),
            weight=25,
        ),
        Kind(
            "labels",
            seeds.labels,
            {
                **dict.fromkeys(("train.csv", "dev.csv", "numbers.tsv"), f"{_TABLE} bombs"),
                "several.jsonl": f"{_LINES} bombs",
            },
            (
                checked("classifier", f"{_TRAIN} --train_file=train.csv --dev_file=dev.csv"),
                checked("classifier", f"{_TRAIN} --train_file=train.csv --dev_share=0.3"),
                checked("classifier", f"{_TRAIN} --train_file=several.jsonl --dev_share=0.3"),
                checked(
                    "classifier", f"{_TRAIN} --train_file=numbers.tsv --regression {_NUMBERED}"
                ),
                checked(
                    "classifier", "--output_dir=out --model=model --do_eval --dev_file=dev.csv"
                ),
            ),
            weight=60,
        ),
        Kind(
            "labels_model",
            seeds.labels,
            _TUNED,
            (
                checked(
                    "classifier", "--output_dir=out --model=model --do_eval --dev_file=dev.csv"
                ),
                checked(
                    "classifier", "--output_dir=out --model=model --do_predict --test_file=dev.csv"
                ),
                readers.served_settings,
                readers.model_and_weights("model"),
            ),
            weight=50,
        ),
        Kind(
            "glue",
            seeds.glue,
            {"cola/*.tsv": _TABLE, "sts/*.tsv": _TABLE},
            (
                checked("classifier", f"{_TRAIN} --task_name=CoLA --data_dir=cola --do_predict"),
                checked("classifier", f"{_TRAIN} --task_name=STS-B --data_dir=sts --do_predict"),
            ),
            weight=30,
        ),
        Kind(
            "questions",
            seeds.questions,
            {"*.json": f"{_JSON} json bombs", "passage.txt": "special"},
            (
                checked(
                    "squad", f"{_TRAIN} {_SHAPE} --train_file=dev.json --predict_file=dev.json"
                ),
                checked(
                    "squad",
                    f"{_TRAIN} {_SHAPE} --train_file=dev2.json --predict_file=dev2.json"
                    " --version_2_with_negative",
                ),
                "score_answers --data_file=dev.json --predictions_file=predictions.json",
                "score_answers --data_file=dev2.json --predictions_file=predictions.json"
                " --null_odds_file=null_odds.json --version_2_with_negative",
            ),
            weight=70,
            megabytes=1500,
        ),
        Kind(
            "questions_model",
            seeds.questions,
            _TUNED,
            (
                checked(
                    "squad", "--output_dir=out --model=model --do_predict --predict_file=dev.json"
                ),
                readers.served_settings,
            ),
            weight=30,
            megabytes=1500,
        ),
        Kind(
            "trivia",
            seeds.trivia,
            {"qa/*.json": f"{_JSON} json", "predictions.json": _JSON, "evidence/*/*": _TEXT},
            (
                readers.trivia_questions,
                "score_answers --data_file=qa/wikipedia-train.json"
                " --predictions_file=predictions.json",
            ),
            weight=40,
            megabytes=1500,
        ),
        Kind(
            "tags",
            seeds.tags,
            {"*.txt": f"{_TABLE} bombs"},
            (
                checked("ner", f"{_TRAIN} --train_file=train.txt --dev_file=train.txt"),
                checked("ner", f"{_TRAIN} --train_file=dev.txt --dev_file=dev.txt"),
                "score_tags --predictions_file=predictions.txt",
                "score_tags --predictions_file=predictions.txt --compared_with=predictions.txt",
            ),
            weight=50,
        ),
        Kind(
            "tags_model",
            seeds.tags,
            _TUNED,
            (
                checked("ner", "--output_dir=out --model=model --do_predict --test_file=train.txt"),
                checked("ner", "--output_dir=out --model=model --do_eval --dev_file=train.txt"),
                readers.served_settings,
            ),
            weight=35,
        ),
        Kind(
            "choices",
            seeds.choices,
            {"train.csv": f"{_TABLE} bombs", "train.jsonl": f"{_LINES} bombs"},
            (
                checked("swag", f"{_TRAIN} --train_file=train.csv --dev_file=train.csv"),
                checked("swag", f"{_TRAIN} --train_file=train.jsonl --dev_file=train.jsonl"),
            ),
            weight=35,
        ),
        Kind(
            "choices_model",
            seeds.choices,
            _TUNED,
            (
                checked("swag", "--output_dir=out --model=model --do_eval --dev_file=train.csv"),
                readers.served_settings,
            ),
            weight=20,
        ),
        Kind(
            "tf1_checkpoint",
            seeds.tf1_checkpoint,
            {"tf1/*": "bytes special gone"},
            (
                readers.model_and_weights("tf1/bert.ckpt"),
                "convert_checkpoint --input=tf1/bert.ckpt --output=out --do_lower_case",
            ),
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
                "predict --model=exported --text=dog --format=json",
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
}
