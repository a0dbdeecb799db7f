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
    "certify": "use python -m tools.benchmarks.tokenizer --task=certify in a checkout",
    **dict.fromkeys(
        ("features", "lstm_size", "lstm_learning_rate"),
        "use extract_features --output_format=npz, and learn over its vectors",
    ),
    "ensemble": "evaluate each model in a run of its own",
    "reinit_layers": "--bias_correction and --num_train_epochs help most on small data",
    "reinit_pooler": "--bias_correction and --num_train_epochs help most on small data",
    "xnli_eval_languages": "evaluate each language in a run of its own, --task_name=XNLI-ar",
    "xnli_language": "the task's name has it, --task_name=XNLI-zh",
    "work_dir": "leave it out, rows are kept in memory",
}


def without_defaults(words: Sequence[str]) -> list[str]:
    """The words of a flag file without flags that are gone and asked for nothing there.

    Example:
        >>> without_defaults(["--seed=1", "--reinit_layers=0", "--noreinit_pooler", "--ensemble="])
        ['--seed=1']
    """
    nothing = {f"--{name}={value}" for name in FLAGS for value in ("", "0")}
    nothing |= {"--xnli_language=en", "--lstm_size=768", "--lstm_learning_rate=0.001"}
    nothing |= {f"--no{name}" for name in FLAGS}
    return [word for word in words if word not in nothing]
