"""The job behind `split_sentences`: documents in, one sentence a line out."""

from dataclasses import dataclass

from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.progress import Progress
from pipelines.corpora.readers import expand_patterns, read_documents
from pipelines.corpora.sentences import split_paragraph


@dataclass(frozen=True)
class SplitSentencesConfig:
    """What to split and where to write it."""

    input_files: list[str]
    output_file: str
    text_field: str = "text"


def split_sentences(config: SplitSentencesConfig) -> tuple[int, int]:
    """Writes the sentences; gives the numbers of documents and sentences."""
    from pathlib import Path

    documents = sentences = 0
    make_folder(Path(config.output_file).parent)
    progress = Progress("split sentences", None, "documents")
    with open_whole(config.output_file) as output:
        for path in expand_patterns(config.input_files):
            for paragraphs in read_documents(path, config.text_field):
                lines = [s for paragraph in paragraphs for s in split_paragraph(paragraph)]
                if lines:
                    output.write("\n".join(lines) + "\n\n")
                    documents, sentences = documents + 1, sentences + len(lines)
                progress.advance()
    progress.close()
    return documents, sentences
