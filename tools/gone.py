"""Tools and flags that are gone, and what to use instead."""

from collections.abc import Mapping, Sequence

TOOLS: Mapping[str, str] = {
    "compare_word_senses": "use extract_features, as the tutorial on word senses does",
    "make_swag": "run tools/recipes/make_swag.py of a checkout",
    "make_unanswerable": "run tools/recipes/make_unanswerable.py of a checkout",
    "split_squad": "use run_squad --dev_share",
    "write_python_documentation": "use demo --only_text",
}

FLAGS: Mapping[str, str] = {
    "best_figure": "the best evaluation is that of the loss, or of the task's own figure",
    "ignore_check": "nothing is refused; the report's first table has BERT beside random weights",
    "held_out_every": "one document of 20 is held out",
    "task_seeds": "the task is learned with three seeds",
    "certify": "use python -m tools.benchmarks.tokenizer --task=certify in a checkout",
    **dict.fromkeys(
        ("features", "lstm_size", "lstm_learning_rate"),
        "use extract_features --output_format=npz, and learn over its vectors",
    ),
    "ignored_labels": "take the rows out of the file",
    "keep_broken_tags": "leave it out, broken tags are read as conlleval does",
    "num_mistakes": "leave it out, the 1,000 hardest mistakes are written",
    "prediction_format": "leave it out, predictions are TSV",
    "scale_labels": "leave it out, your own numbers are always learned in units of their spread",
    "tag_unit": "leave it out, files of characters are recognised",
    "group_by_length": "leave it out, a batch of training has rows of like lengths",
    "input_format": "a file's beginning tells its form; tfds:NAME:SPLIT is a data set",
    "compared_with": "score each system by itself, the figures have intervals",
    "ensemble": "evaluate each model in a run of its own",
    "peak_tflops": "divide the work that plan_run prints by the seconds of metrics.jsonl",
    "quotation": "leave it out, a file's first megabytes show whether fields are quoted",
    **dict.fromkeys(
        ("data_dir", "tfds_data_dir"),
        "name files one by one; for tfds:NAME:SPLIT set the variable TFDS_DATA_DIR",
    ),
    "reinit_layers": "--bias_correction and --num_train_epochs help most on small data",
    "invalid_utf8": "correct the text: iconv -f UTF-8 -t UTF-8 -c leaves ill-formed bytes out",
    "max_words": "the rarest words are dropped beyond five million",
    "reinit_pooler": "--bias_correction and --num_train_epochs help most on small data",
    "work_dir": "leave it out, rows are kept in memory",
    "work_folder": "leave it out, the same command goes on where it was stopped",
    "save_checkpoints_secs": "a checkpoint is saved every ten minutes, too",
    "show_merges": "the vocabulary has them in their order, after the characters",
    "xnli_eval_languages": "evaluate each language in a run of its own, --task_name=XNLI-ar",
    "xnli_language": "the task's name has it, --task_name=XNLI-zh",
}


def without_defaults(words: Sequence[str]) -> list[str]:
    """The words of a flag file without flags that are gone and asked for nothing there.

    Example:
        >>> without_defaults(["--seed=1", "--reinit_layers=0", "--noreinit_pooler", "--ensemble="])
        ['--seed=1']
    """
    nothing = {f"--{name}={value}" for name in FLAGS for value in ("", "0")}
    nothing |= {"--xnli_language=en", "--lstm_size=768", "--lstm_learning_rate=0.001"}
    nothing |= {"--num_mistakes=1000", "--prediction_format=tsv", "--tag_unit=auto"}
    nothing |= {"--save_checkpoints_secs=600.0", "--group_by_length", "--quotation=auto"}
    nothing |= {f"--no{name}" for name in FLAGS} | {"--engine_precision=float32"}
    return [word for word in words if word not in nothing]
