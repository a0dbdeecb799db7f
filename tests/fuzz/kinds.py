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
_DATA_RUN = (
    "create_pretraining_data --vocab_file=vocab.txt --output_file=out/train.tfrecord"
    " --max_seq_length=32 --max_predictions_per_seq=4 --dupe_factor=3 --random_seed=5"
    " --num_workers=0"
)
_SPLIT = f"split_sentences --input_file=text.txt {_TO_LINES}"
_TOKENIZE = "tokenize_text --input_file=text.txt --vocab_file=vocab.txt"
_TOKENIZE_TO = f"{_TOKENIZE} --output_file=out.txt"
_PREPARE = f"{_DATA_RUN} --input_file=text.txt"


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
            streams=("*",),
            outputs=("out.*",),
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
            needed=("vocab.txt",),
        ),
        Kind(
            "graph_vocabulary",
            seeds.text,
            {"vocab.txt": _LINES},
            (readers.graph_vocabulary,),
            weight=3,
            needed=("vocab.txt",),
            megabytes=1000,
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
            needed=("*",),
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
            needed=("model/config.json", "model/model.safetensors", "model/vocab.txt"),
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
            needed=("*",),
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
            streams=("*.csv", "*.tsv", "*.jsonl"),
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
            streams=("*.tsv",),
        ),
        Kind(
            "submission",
            seeds.submission,
            {"runs/cola/CoLA.tsv": _TABLE},
            ("glue_submission --run_dir=runs --output_file=out.zip",),
            weight=10,
            needed=("*",),
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
            streams=("*.txt",),
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
            streams=("train.*",),
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
            "shards",
            seeds.shards,
            {
                "out/train.tfrecord-*[0-9]": "records bytes special",
                "bare/*": "records records records bytes special",
                "out/*.index": "bytes special gone",
                "out/*.json": f"{_JSON} json gone",
                "vocab.txt": "lines",
            },
            (
                readers.records_of_shards,
                "inspect_pretraining_data --input_file=out/train.tfrecord --vocab_file=vocab.txt",
                "inspect_pretraining_data --input_file=bare/* --vocab_file=vocab.txt"
                " --html=page.html",
            ),
            weight=60,
            outputs=("page.html",),
        ),
        Kind(
            "stopped_data_run",
            seeds.stopped_data_run,
            {
                "out/*": "bytes gone",
            },
            (f"{_DATA_RUN} --input_file=corpus.txt --num_shards=2",),
            weight=30,
            outputs=("out/*.json",),
            check=readers.same_shards,
            in_place=True,
        ),
        Kind(
            "vectors",
            seeds.vectors,
            {"lines.npy": "npy npy bytes special"},
            (readers.vectors_of_a_file,),
            weight=20,
            needed=("*",),
        ),
        Kind(
            "run_files",
            seeds.run,
            {
                "*/*.jsonl": _LINES,
                "*/*.json": _JSON,
                "*/.finished": _LINES,
                "*/eval_results.txt": _LINES,
                "*/checkpoints/*/*.json": _JSON,
            },
            (readers.model_and_weights("run/checkpoints"),),
            weight=30,
        ),
        Kind(
            "flag_files",
            seeds.recipe,
            {"*.cfg": "lines lines bytes special bombs"},
            (
                "run_ablations --recipe=recipe.cfg --output_dir=out --data_dir=. --dry_run",
                "plan_run --flagfile=plan.cfg",
            ),
            weight=30,
            needed=("*.cfg",),
            streams=("*.cfg",),
        ),
        Kind(
            "flags",
            seeds.for_flags,
            {},
            (
                _SPLIT,
                _learn("text.txt"),
                _TOKENIZE,
                _PREPARE,
                "score_answers --data_file=dev.json --predictions_file=predictions.json",
                "score_tags --predictions_file=predictions.txt",
                "plan_run --model_size=tiny --num_train_steps=9 --num_warmup_steps=1",
                "run_ablations --recipe=recipe.cfg --output_dir=out --data_dir=. --dry_run",
                "convert_checkpoint --input=model --output=made",
                "grow_vocabulary --input=model --output=made --words=ablaut",
                "inspect_pretraining_data --input_file=out/train.tfrecord --vocab_file=vocab.txt",
            ),
            weight=60,
            outputs=("out.*",),
        ),
        Kind(
            "pretraining_flags",
            seeds.for_flags,
            {},
            (
                "run_pretraining --input_file=out/train.tfrecord --vocab_file=vocab.txt --dry_run"
                " --output_dir=run --do_train --bert_config_file=bert_config.json"
                " --max_seq_length=32 --max_predictions_per_seq=4 --train_batch_size=4",
            ),
            weight=3,
            seconds=90,
            megabytes=2000,
        ),
        Kind(
            "training_flags",
            seeds.for_flags,
            {},
            (
                f"run_classifier {_TRAIN} --train_file=train.csv --dev_file=train.csv",
                f"run_squad {_TRAIN} {_SHAPE} --train_file=dev.json --predict_file=dev.json",
                f"run_ner {_TRAIN} --train_file=train.txt --dev_file=train.txt",
                f"run_swag {_TRAIN} --train_file=swag.csv --dev_file=swag.csv",
            ),
            weight=30,
            up_to_training=True,
        ),
        Kind(
            "vectors_flags",
            seeds.vectors,
            {},
            (
                "embed --model=model --input_file=lines.txt --output_file=out.npy",
                "similar --model=model --input_file=lines.txt --vectors_file=lines.npy --query=dog",
                "extract_features --model=model --input_file=lines.txt --output_file=out.jsonl"
                " --layers=-1 --max_seq_length=12",
                "adapt --init_checkpoint=model --input_file=lines.txt --output_dir=out --dry_run"
                " --num_train_steps=1 --num_workers=1 --max_seq_length=12"
                " --max_predictions_per_seq=2",
                "predict --model=model --input_file=lines.txt --output_file=out.jsonl"
                " --format=json",
                "explain --model=model --text=dog --output_file=out.html",
            ),
            weight=5,
            outputs=("out.*",),
            seconds=90,
            megabytes=1500,
        ),
        Kind(
            "outputs",
            seeds.for_outputs,
            {"out*": "special"},
            (
                _SPLIT,
                _learn("text.txt"),
                _TOKENIZE_TO,
                "glue_submission --run_dir=runs --output_file=out.txt",
                "inspect_pretraining_data --input_file=out/train.tfrecord --vocab_file=vocab.txt"
                " --html=out.txt",
            ),
            weight=8,
            streams=("out*",),
        ),
        Kind(
            "pretrained_weights",
            seeds.run,
            {"run/checkpoints/*/*": "json bytes special gone"},
            (readers.model_and_weights("run/checkpoints"),),
            weight=6,
            megabytes=1000,
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
            "vectors_and_model",
            seeds.vectors,
            {"lines.*": f"npy {_TEXT}", "model/*.json": _JSON},
            (
                "similar --model=model --input_file=lines.txt --vectors_file=lines.npy --query=dog",
                "embed --model=model --input_file=lines.txt --output_file=out.npy",
                "extract_features --model=model --input_file=lines.txt --output_file=out.jsonl"
                " --layers=-1 --max_seq_length=12",
            ),
            weight=5,
            seconds=90,
            megabytes=1500,
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
            streams=("train.csv",),
            seconds=60,
            megabytes=1000,
        ),
        Kind(
            "kept_graph",
            seeds.exported,
            {"model/openvino_graphs/**/*": "json bytes special gone"},
            ("predict --model=model --engine=openvino --text=dog --format=json",),
            weight=6,
            made_again=("model/openvino_graphs/**/*",),
            seconds=120,
            megabytes=2000,
        ),
        Kind(
            "request_bodies",
            seeds.request_bodies,
            {"*.json": "json json json bytes"},
            (readers.request_bodies,),
            weight=30,
        ),
        Kind(
            "answered_questions",
            seeds.questions,
            {**_TUNED, "passage.txt": _TEXT},
            ("answer --model=model --question=dog --passage_file=passage.txt",),
            weight=4,
            seconds=90,
            megabytes=1500,
        ),
    )
}
