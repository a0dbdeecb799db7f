"""Cutting a paragraph into sentences."""

import re

_END = re.compile(r"""[.!?…。]+["'”’)\]]*\s+(?=["'“‘(\[]?[A-Z0-9가-힣])""")


def split_paragraph(paragraph: str) -> list[str]:
    """Cuts a paragraph into sentences.

    Example:
        >>> split_paragraph("It works. So they say!")
        ['It works.', 'So they say!']
    """
    sentences, start = [], 0
    for match in _END.finditer(paragraph):
        sentences.append(paragraph[start : match.end()].strip())
        start = match.end()
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]
