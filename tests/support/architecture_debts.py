"""What does not yet keep the rules of tests/test_architecture.py. These sets only shrink."""

OPTIONAL_MEMBERS: set[str] = {
    "_files",
}

NAME_FLAGS: set[str] = {
    "keras_bert_impl/checkpoints/convert.py",
    "keras_bert_impl/checkpoints/model_directory.py",
    "keras_bert_impl/config.py",
    "keras_bert_impl/serving/export.py",
    "keras_bert_impl/serving/fill_mask.py",
    "keras_bert_impl/training/tf1_state.py",
}

WITHOUT_A_TEST: set[str] = {
    "keras_bert_impl/errors.py",
    "tools/demo.py",
    "tools/inspect_pretraining_data.py",
    "tools/learn_vocabulary.py",
    "tools/plan_run.py",
    "tools/split_sentences.py",
    "tools/tokenize_text.py",
    "tools/write_python_documentation.py",
}
