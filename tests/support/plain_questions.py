"""The original's rules for questions as plain loops over strings: slow, obvious, for comparison."""

from keras_bert_impl.tokenization.reference import tokenize


def words_of(text):
    words, word_of_character, blank = [], [], True
    for character in text:
        if character in " \t\r\n\u202f":
            blank = True
        else:
            words += [""] if blank else []
            words[-1] += character
            blank = False
        word_of_character.append(len(words) - 1)
    return words, word_of_character


def make_windows(length, room, stride):
    windows, start = [], 0
    while start < length:
        end = min(start + room, length)
        windows.append((start, end))
        if end == length:
            break
        start += min(end - start, stride)
    return windows


def shows_best(windows, number, position):
    def context(window):
        start, end = window
        if not start <= position < end:
            return -1.0
        return min(position - start, end - 1 - position) + 0.01 * (end - start)

    values = [context(window) for window in windows]
    return values.index(max(values)) == number


def improve(tokens, first, last, answer):
    for start in range(first, last + 1):
        for end in range(last, start - 1, -1):
            if tokens[start : end + 1] == answer:
                return start, end
    return first, last


def features_of(question, vocabulary, settings):
    """The rows of one question: tokens, words and owners by position, the answer's positions."""

    def cut(text):
        return tokenize(text, vocabulary)

    asked = cut(question.text)[: settings.max_query_length]
    words, word_of_character = words_of(question.passage.text)
    tokens, word_of_token, token_of_word = [], [], []
    for number, word in enumerate(words):
        token_of_word.append(len(tokens))
        found = cut(word)
        tokens += found
        word_of_token += [number] * len(found)
    first = last = None
    if question.answers:
        text, start = question.answers[0]
        first_word, last_word = (word_of_character[start], word_of_character[start + len(text) - 1])
        first = token_of_word[first_word]
        last = len(tokens) - 1
        if last_word < len(words) - 1:
            last = token_of_word[last_word + 1] - 1
        first, last = improve(tokens, first, last, cut(text))
    room = settings.max_seq_length - len(asked) - 3
    windows = make_windows(len(tokens), room, settings.doc_stride)
    rows = []
    for number, (start, end) in enumerate(windows):
        shift = len(asked) + 2 - start
        inside = first is not None and first >= start and last < end
        rows.append(
            {
                "tokens": ["[CLS]", *asked, "[SEP]", *tokens[start:end], "[SEP]"],
                "words": {x + shift: word_of_token[x] for x in range(start, end)},
                "is_max_context": {
                    x + shift: shows_best(windows, number, x) for x in range(start, end)
                },
                "positions": (first + shift, last + shift) if inside else (0, 0),
            }
        )
    return rows
