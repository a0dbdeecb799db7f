"""Which tools read text in any encoding, and what the others say of what is not UTF-8."""

import json
import unicodedata

import numpy as np
import pytest

from keras_bert_impl.models.token_models import BertSpanLabeler
from tests.support.model_folders import tiny_config, write_any, write_classifier
from tools.table import tool_named, tool_names

SENTENCE = "한국어 위키백과는 모두가 함께 만들어 가는 백과사전이다."
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MODEL = "--model=/no/bert"
TRAIN = "--do_train --init_checkpoint={0}/model --output_dir={0}/run --max_seq_length=999"
SPLITS = TRAIN + " --train_file={0}/%s --dev_file={0}/%s"

# What each tool with `encoding` and `unicode_form` is asked; nothing of it comes to a model.
READERS = {
    "answer": "--model={0}/spans --question=who --passage_file={0}/texts.txt",
    "create_pretraining_data": "--input_file={0}/texts.txt --output_file={0}/x.tfrecord"
    " --vocab_file={0}/vocab.txt --nodo_lower_case --num_workers=0",
    "embed": f"{MODEL} --input_file={{0}}/texts.txt --output_file={{0}}/x.npy",
    "extract_features": f"{MODEL} --input_file={{0}}/texts.txt --output_file={{0}}/x.jsonl",
    "learn_vocabulary": "--input_file={0}/texts.txt --vocab_file={0}/learned.txt"
    " --vocab_size=50 --nodo_lower_case --num_workers=1",
    "predict": "--model={0}/model --input_file={0}/texts.txt",
    "run_classifier": SPLITS % ("rows.csv", "rows.csv")
    + " --text_column=text --label_column=label",
    "run_embedder": SPLITS % ("rows.csv", "rows.csv")
    + " --query_column=text --document_column=label",
    "run_ner": SPLITS % ("tags.txt", "tags.txt"),
    "run_reranker": SPLITS % ("rows.csv", "rows.csv")
    + " --query_column=text --document_column=label",
    "run_squad": TRAIN.replace("999", "8 --max_query_length=4")
    + " --train_file={0}/squad.json --predict_file={0}/squad.json",
    "run_swag": SPLITS % ("endings.csv", "endings.csv"),
    "score_answers": "--data_file={0}/squad.json --predictions_file={0}/answers.json",
    "score_tags": "--predictions_file={0}/tags.txt",
    "search": f"{MODEL} --index={{0}}/index --input_file={{0}}/texts.txt",
    "similar": f"{MODEL} --input_file={{0}}/texts.txt --vectors_file={{0}}/x.npy --query=a",
    "split_sentences": "--input_file={0}/texts.txt --output_file={0}/sentences.txt",
    "tokenize_text": "--input_file={0}/texts.txt --vocab_file={0}/vocab.txt --nodo_lower_case",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same Korean texts in every kind of file, in a folder for each encoding."""
    base = tmp_path_factory.mktemp("korean")
    model = write_classifier(base / "model", ["no", "yes"])
    write_any(base / "spans", BertSpanLabeler(tiny_config()))
    rows = [f"{SENTENCE} {number}" for number in range(4)]
    texts = {
        "texts.txt": f"{SENTENCE}\n" * 30,
        "rows.csv": "text,label\n" + "".join(f"{row},{row[-1]}\n" for row in rows),
        "tags.txt": "한국어 B-X B-X\n위키백과는 O O\n",
        "endings.csv": f"sent1,sent2,ending0,ending1,label\n{SENTENCE},,그렇다.,아니다.,0\n",
        "squad.json": json.dumps({"data": [article("가"), article("나")]}, ensure_ascii=False),
        "answers.json": json.dumps({"가1": "한국어"}),  # our own files are UTF-8
    }
    for encoding in ("cp949", "utf-8"):
        folder = base / encoding
        folder.mkdir()
        for name, text in texts.items():
            (folder / name).write_bytes(text.encode(encoding))
        (folder / "vocab.txt").write_text("\n".join([*SPECIAL, "한국어"]))
        np.save(folder / "x.npy", np.ones((30, 16), np.float32))
        (folder / "model").symlink_to(model)
        (folder / "spans").symlink_to(base / "spans")
    return base


def article(title):
    """Two paragraphs of an article, with a question each."""
    texts = [(SENTENCE, "한국어"), ("서울은 대한민국의 수도이다.", "서울")]
    return {
        "title": title,
        "paragraphs": [
            {
                "context": text,
                "qas": [
                    {
                        "id": f"{title}{number}",
                        "question": "무엇인가?",
                        "answers": [{"text": answer, "answer_start": 0}],
                    }
                ],
            }
            for number, (text, answer) in enumerate(texts)
        ],
    }


def run(tool, command, folder, capsys):
    """The exit code of a tool, and what it says of a mistake."""
    module = tool_named(tool)
    code = module.main(command.format(folder).split())
    lines = capsys.readouterr().err.splitlines()
    return code, "\n".join(line for line in lines if line.startswith("Error")).replace(
        str(folder), "FOLDER"
    )


@pytest.mark.parametrize("tool", tool_names())
def test_a_tool_has_both_flags_or_none_as_the_table_says(tool, capsys):
    assert tool_named(tool).main(["--helpfull"]) == 0
    said = capsys.readouterr().out.split()
    found = {flag for flag in ("--encoding", "--unicode_form=as_is|nfc") if flag in said}
    assert len(found) == (2 if tool in READERS or tool == "adapt" else 0)


@pytest.mark.parametrize(("tool", "command"), READERS.items())
def test_text_in_another_encoding_is_told_with_the_flag_that_reads_it(
    folders, tool, command, capsys
):
    code, error = run(tool, command, folders / "cp949", capsys)
    assert code == 1
    assert "is not UTF-8" in error
    assert "give its --encoding" in error


@pytest.mark.parametrize(("tool", "command"), [*READERS.items()][::3])
def test_with_the_flag_it_is_as_if_it_were_utf_8(folders, tool, command, capsys):
    found = run(tool, f"{command} --encoding=cp949", folders / "cp949", capsys)
    assert found == run(tool, command, folders / "utf-8", capsys)
    assert "UTF-8" not in found[1]


def test_decomposed_text_is_known_to_a_vocabulary_once_it_is_composed(tmp_path):
    words = SENTENCE.removesuffix(".").split()
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, ".", *words]))
    (tmp_path / "texts.txt").write_text(
        unicodedata.normalize("NFD", f"{SENTENCE}\n" * 2 + "\n") * 4
    )
    flags = READERS["create_pretraining_data"].format(tmp_path).split()

    def counted(*more):
        main = tool_named("create_pretraining_data").main
        assert main([*flags, "--max_seq_length=32", "--allow_unknown_words", *more]) == 0
        made = json.loads((tmp_path / "x.tfrecord.recipe.json").read_text())["source"]
        return made["unknown_words"], made["words"]

    assert counted() == (7 * 8, 8 * 8)  # all but the full stop
    assert counted("--unicode_form=nfc") == (0, 8 * 8)
