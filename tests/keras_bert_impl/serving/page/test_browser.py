"""The playground in a real browser: typed in, clicked on, read."""

import base64
import re
import time
from xml.etree import ElementTree

import numpy as np
import pytest

from keras_bert_impl.serving.attention import TextAttention
from keras_bert_impl.serving.page.explain import ShownAttention
from tests.support.browser import need_browser, opened_browser
from tests.support.toy_page import MODELS, running_page

pytestmark = pytest.mark.slow

HOSTILE = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
RIGHT_TO_LEFT = "القطة تنام \u202edlrow\u202c على السجادة"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    need_browser()
    folder = tmp_path_factory.mktemp("page") / "model"
    with running_page(folder) as address, opened_browser(address) as browser:
        yield browser


@pytest.fixture(autouse=True)
def quiet(page):
    """Whatever a test does, the page logs no error and meets its own policy."""
    page.look()
    page.log()
    yield
    assert page.log() == []


def test_typed_words_are_filled_in_with_bars(page):
    page.open(model="words")
    assert page.write("text", "The [MASK] and the [MASK].") == "Done."
    assert page.texts("caption") == ["What may stand at [MASK] 1", "What may stand at [MASK] 2"]
    assert page.texts("tbody tr:first-child :is(th, td)")[:2] == ["dog", "75 %"]
    widths = [bar.size["width"] for bar in page.all(".bars .bar")[:2]]
    assert widths[0] == pytest.approx(6 * widths[1], rel=0.1)  # 75 % and 12.5 %


def test_a_text_without_a_mask_is_told_so_and_of_a_long_one_what_was_left_out(page):
    page.open(model="words", text="The dog.")
    assert page.texts(".result p") == ["The text has no [MASK]; write [MASK] for the word to find."]
    page.open(model="words", text=f"The [MASK] {'dog ' * 80}")
    note = page.texts(".result p")[0]
    assert note == "The text is longer than the model reads; 20 tokens left out."
    page.open(model="label", text=f"dog {'dog ' * 62}")
    note = page.texts(".result p")[0]
    assert note == "The text is longer than the model reads; 1 token left out."


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ({"model": "words", "show": "next_sentence_text"}, ["it follows25 %", "it does not75 %"]),
        ({"model": "label"}, ["Label: good 70 %", "good70 %", "<b>odd</b>10 %"]),
        ({"model": "labels"}, ["Labels: good", "bad20 %"]),
        ({"model": "number"}, ["3.142"]),
        ({"model": "share"}, ["0.5", "A share from 0 to 1."]),
        ({"model": "choices", "endings": "a\n\nb"}, ["a50 %", "b50 %"]),
    ],
    ids=["next sentence", "label", "labels", "number", "share", "choices"],
)
def test_each_kind_of_answer_has_its_panel(page, state, shown):
    assert page.open(**state) == "Done."
    text = page.texts(".result")[0]
    assert [part for part in shown if part not in text] == []


def test_a_model_has_the_panels_of_what_it_answers_and_no_others(page):
    page.open(model="words")
    assert page.texts("nav a") == ["Fill in words", "Next sentence", "Tokens", "Attention"]
    page.open(model="vectors")
    assert page.texts("nav a") == ["Similarity", "Map", "Tokens", "Attention"]


def test_an_answer_is_marked_at_its_characters_where_emoji_stand_before_it(page):
    page.open(model="questions", question="Who?", passage="👩‍👩‍👧 🐧 penguins live on the ice.")
    assert page.texts(".marked-text mark") == ["🐧 penguins"]
    assert page.texts(".bars td:nth-child(2)") == ["66 %", "24 %", "8.9 %", "1.2 %"]
    page.one("tbody tr:nth-child(2) button").click()
    assert page.texts(".marked-text mark") == ["the ice"]
    assert page.texts(".headline bdi") == ["the ice"]


def test_a_passage_without_an_answer_says_so(page):
    page.open(model="questions", question="Who?", passage="Nobody.")
    assert page.texts(".headline bdi") == ["The passage has no answer."]
    assert page.all(".marked-text mark") == []


def test_entities_are_coloured_by_their_kinds(page):
    page.open(model="entities", text="e\u0301😀 Angela of 😀 Hamburg saw 서울\u0301, then القاهرة.")
    marks = [mark.replace("\u0301", "") for mark in page.texts(".marked-text mark")]
    assert "서울\u0301 LOC" in page.texts(".marked-text mark")  # the mark stays with its letter
    assert marks == ["Angela PER", "😀 Hamburg LOC", "서울 LOC", "القاهرة LOC"]
    colours = [mark.value_of_css_property("background-color") for mark in page.all("p mark")]
    assert colours[0] != colours[1] == colours[2] == colours[3]
    assert page.texts(".legend li") == ["PER", "LOC"]


def test_a_long_text_with_many_entities_is_marked_at_once(page):
    started = time.monotonic()
    page.open(model="entities", text="Angela of Hamburg " * 3000)
    assert time.monotonic() - started < 15
    assert page.run("return document.querySelectorAll('.marked-text mark').length") == 3000


def test_of_many_sentences_the_first_are_compared(page):
    page.open(model="vectors", text="a\n" * 120)
    assert page.texts(".result p")[0] == "The first 100 texts; 20 texts left out."
    assert len(page.all(".heat tbody tr")) == 100
    page.open(model="vectors", show="map", text="a\ne\n" * 300)
    assert page.texts(".result p")[0] == "The first 500 texts; 100 texts left out."
    assert len(page.all(".dot")) == 500


def test_sentences_are_compared_in_a_heat_map(page):
    page.open(model="vectors", text="a\na\ne")
    numbers = np.array(page.texts(".heat tbody td"), float).reshape(3, 3)
    assert numbers.tolist() == [[1, 1, 0.5], [1, 1, 0.5], [0.5, 0.5, 1]]


@pytest.mark.parametrize(
    ("text", "tokens", "direction"),
    [
        ("The cats <script>", ["[CLS]", "the", "cat", "##s", "<", "script", ">", "[SEP]"], "ltr"),
        ("고양이 zzz", ["[CLS]", "고", "##양", "##이", "[UNK]", "[SEP]"], "ltr"),
        ("مرحبا", ["[CLS]", "م", "##ر", "##ح", "##ب", "##ا", "[SEP]"], "rtl"),
    ],
    ids=["English", "Korean", "Arabic"],
)
def test_tokens_are_shown_as_the_model_sees_them(page, text, tokens, direction):
    page.open(model="words", show="tokens", text=text)
    assert page.texts(".tokens .word") == tokens
    assert page.one(".tokens").get_attribute("dir") == direction
    assert page.texts(".tokens .unknown .word") == [one for one in tokens if one == "[UNK]"]


def open_attention(page, **state):
    state = {"model": "words", "text": "The dog was tired.", "layer": 1, "head": 1, **state}
    assert page.open(show="attention", **state) == "Done."
    page.one("details.more summary").click()


def test_layer_heads_and_token_are_chosen_by_picture_and_by_link(page):
    open_attention(page)
    page.one('button[aria-label^="Layer 1, head 2"]').click()
    page.all(".heads button")[0].click()
    page.all(".one-head button")[2].click()
    link = page.one("form a.link").get_attribute("href")
    assert page.run("return location.href") == link
    page.driver.get("about:blank")
    page.driver.get(link)
    page.wait()
    assert "Attention of layer 1, heads 2, 1;" in page.one("svg").get_attribute("aria-label")
    assert page.texts('.one-head button[aria-pressed="true"]') == ["dog"]


def test_a_token_shows_its_own_lines_with_shares_that_the_table_says_too(page):
    open_attention(page)
    page.one(".one-head ol li:nth-child(3) button").click()
    assert page.run("return document.activeElement.textContent") == "dog"
    shares = [float(share.split()[0]) for share in page.texts(".one-head .share")]
    assert sum(shares) == pytest.approx(100, abs=4)
    page.all("details summary")[1].click()
    said = page.texts("details tbody tr:nth-child(3) td")[0]
    assert f"{max(shares):g} %" in said.replace(".0 ", " ")


def test_any_heads_are_shown_together_in_colours(page):
    open_attention(page)
    alone = len(page.all(".one-head path"))
    page.all(".heads button")[1].click()
    assert "Attention of layer 1, heads 1, 2;" in page.one("svg").get_attribute("aria-label")
    lines = page.all(".one-head path.hued")
    assert len(lines) > alone
    assert len({line.value_of_css_property("stroke") for line in (lines[0], lines[-1])}) == 2
    page.all(".heads button")[0].click()
    assert "Attention of layer 1, head 2;" in page.one("svg").get_attribute("aria-label")
    assert page.all(".one-head path.hued") == []
    page.all(".heads button")[1].click()  # one is always shown
    assert "Attention of layer 1, head 2;" in page.one("svg").get_attribute("aria-label")
    assert page.complaints() == []


def test_special_tokens_are_dimmed_by_choice(page):
    open_attention(page)
    assert len(page.all(".one-head .dimmed")) == 4  # [CLS] and [SEP], on both sides
    page.one("input[type=checkbox]").click()
    assert page.all(".one-head .dimmed") == []


def test_arrow_keys_go_from_head_to_head_and_enter_chooses(page):
    from selenium.webdriver.common.keys import Keys

    open_attention(page)
    page.run("document.querySelector('button.head').focus()")
    page.press(Keys.ARROW_DOWN)
    page.press(Keys.ARROW_RIGHT)
    page.press(Keys.ENTER)
    assert "Attention of layer 2, head 2" in page.one("svg").get_attribute("aria-label")


def test_a_model_without_attention_says_why(page):
    page.open(model="words")
    page.driver.get("about:blank")
    page.driver.get(f"{page.address}#model=label&show=attention")
    page.until(lambda: page.all(".refused"))
    assert page.texts(".refused") == ["This export gives its outputs and not its attention."]


def test_the_first_text_of_a_pair_may_be_seen_alone(page):
    from selenium.webdriver.support.select import Select

    open_attention(page)
    assert "From and to" not in page.texts("label")
    open_attention(page, model="pair", text_a="the dog", text_b="the cat")
    lines = len(page.all(".one-head path"))
    Select(page.one(".controls select")).select_by_visible_text("first text to second")
    assert 0 < len(page.all(".one-head path")) < lines


@pytest.mark.parametrize("text", [HOSTILE, RIGHT_TO_LEFT], ids=["markup", "right to left"])
def test_a_text_is_shown_as_text_everywhere(page, text):
    states = [
        {"model": "questions", "question": text, "passage": f"{text} the ice"},
        {"model": "entities", "text": f"{text} Angela"},
        {"model": "choices", "context": text, "endings": f"{text}\nb"},
        {"model": "vectors", "text": f"{text}\nb"},
        {"model": "words", "show": "tokens", "text": text},
        {"model": "words", "show": "attention", "text": text},
    ]
    page.open(model="words")
    for state in states:
        assert page.go(**state) == "Done.", state
        assert page.run("return [window.hacked, document.images.length]") == [None, 0]
    page.open(model="vectors", text=f"{text}\nb")
    assert page.texts(".heat tbody bdi")[0] == text


@pytest.mark.parametrize(
    "script",
    [
        "document.body.innerHTML = '<p>'",
        "document.body.setAttribute('onclick', 'window.hacked = 1')",
        "document.body.append(document.createElement('script').text = 'window.hacked = 1')",
    ],
    ids=["markup", "a listener", "a script"],
)
def test_the_policy_forbids_to_make_markup_and_scripts_of_text(page, script):
    page.open(model="words")
    name = page.run(f"try {{ {script} }} catch (error) {{ return error.name }}")
    assert name == "TypeError"
    assert "requires 'Trusted" in " ".join(page.log())


def test_a_mistake_is_told_and_the_next_text_answered(page):
    page.open(model="words")
    assert page.write("text", "refuse") == "instance 1: is refused; write another text."
    assert page.texts(".result") == [""]
    assert page.log() != []  # Chromium logs every answer that is no success
    assert page.write("text", "The [MASK].") == "Done."


def test_enter_sends_and_the_way_back_finds_the_other_panel(page):
    from selenium.webdriver.common.keys import Keys

    page.open(model="words")
    page.one("nav li:nth-child(3) a").click()
    page.until(lambda: page.texts("h2") == ["Tokens"])
    area = page.one("textarea")
    area.send_keys(" dog")
    area.send_keys(Keys.ENTER)
    page.until(lambda: page.texts(".tokens .word")[-2:] == ["dog", "[SEP]"])
    assert area.get_attribute("value").endswith(" dog")
    page.driver.back()
    page.until(lambda: page.texts(".tokens .word")[-2:] == [".", "[SEP]"])
    assert page.texts("h2") == ["Tokens"]
    page.driver.back()
    page.until(lambda: page.texts("h2") == ["Fill in words"])


def test_a_text_is_answered_while_it_is_typed_and_the_last_answer_wins(page):
    page.open(model="words", show="tokens", text="dog")
    page.type("text", "the cat")
    page.until(lambda: page.texts(".tokens .word") == ["[CLS]", "the", "cat", "[SEP]"])
    page.type("text", "the dog")
    page.until(lambda: page.texts(".tokens .word") == ["[CLS]", "the", "dog", "[SEP]"])
    page.driver.back()
    page.until(lambda: page.texts(".tokens .word") == ["[CLS]", "dog", "[SEP]"])


def test_a_busy_server_is_asked_again_without_noise(page):
    page.open(model="label")
    page.run(
        "const asked = window.fetch; window.fetch = () => { window.fetch = asked;"
        "return Promise.resolve(new Response('{}', { status: 429 })); }"
    )
    page.send()
    assert page.wait().startswith("The server has much to do")
    assert page.texts(".headline bdi") == ["good"]  # of the text before
    page.until(lambda: page.status() == "Done.")


def test_examples_are_in_the_languages_of_the_vocabulary(page):
    page.open(model="vectors")
    names = page.texts(".examples button")
    assert [len(names), names[1][:3], names[2][:6]] == [5, "서울의", "Doctor"]
    page.one(".examples li:nth-child(2) button").click()
    page.until(lambda: page.texts(".heat tbody bdi")[0] == names[1])


def test_why_says_what_an_answer_rests_on_and_a_word_is_left_out_by_a_click(page):
    passage = "🐧 penguins live on the ice."
    page.open(model="questions", question="Who?", passage=passage)
    assert page.texts(".why p")[0].startswith(
        "Without ice, 🐧 penguins goes from 66 % to 98 %. The"
    )
    assert page.texts(".why mark") == ["🐧 penguins"]  # no word of the answer itself
    words = [(one.text, one.get_attribute("title")) for one in page.all(".word.against")]
    assert words == [("the", "Without it: 72 %"), ("ice", "Without it: 98 %")]
    page.one(".word.against:last-of-type").click()
    page.until(lambda: page.texts(".left-out strong") == ["ice"])
    assert page.texts(".answer .marked-text") == ["🐧 penguins live on the ."]
    assert page.one(".former").get_attribute("textContent") == "was 66 %"
    assert page.complaints() == []
    link = page.run("return location.href")
    page.driver.get("about:blank")
    page.driver.get(link)
    page.until(lambda: page.texts(".left-out strong") == ["ice"])
    page.one(".left-out button").click()
    page.until(lambda: page.texts(".answer .marked-text") == [passage])


def test_why_explains_that_one_of_two_equal_names_which_is_chosen(page):
    for name, said in (
        ("Angela (PER)", "No single word decides: Angela (PER) stays at about 90 % without"),
        ("Angela (PER) 2", "Without Angela, Angela (PER) 2 goes from 60 % to 90 %."),
    ):
        page.open(model="entities", text="Then Angela saw Angela.", why=name)
        assert page.texts(".why p")[0].startswith(said)
        assert page.texts(".why mark") == ["Angela"]


def test_of_a_word_that_leaves_the_list_why_says_the_most_that_it_can_have(page):
    page.open(model="words", text="The [MASK] barks.", why="mouse")
    assert page.texts(".why p")[0].startswith(
        "Without barks, mouse goes from 40 % to at most 13 %."
    )


def test_two_texts_and_two_models_stand_side_by_side_and_the_text_stays(page):
    from selenium.webdriver.support.select import Select

    def choose(name, value):
        Select(page.one(f"#{name}")).select_by_visible_text(value)

    page.open(model="label", text="cat", beside="+", text2="dog")
    assert page.texts(".result .headline bdi") == ["good", "good"]
    choose("beside", "nothing")
    choose("models", "pair")
    page.until(lambda: page.one("textarea").get_attribute("name") == "text_a")
    assert page.one("textarea").get_attribute("value") == "cat"
    page.open(model="words", show="tokens", text="cat")
    choose("beside", "label")
    page.until(lambda: page.texts(".result h3") == ["words", "label"])
    assert page.texts(".tokens .word") == ["[CLS]", "cat", "[SEP]"] * 2


def test_the_way_back_finds_each_text_that_was_asked_and_the_way_forward_too(page):
    page.open(model="label")
    first = page.one("textarea").get_attribute("value")
    for text in ("고양이", "مرحبا"):
        page.write("text", text)
    for go, text in (
        ("back", "고양이"),
        ("back", first),
        ("forward", "고양이"),
        ("forward", "مرحبا"),
    ):
        page.run(f"history.{go}()")
        page.until(lambda text=text: page.one("textarea").get_attribute("value") == text)
        assert page.wait() == "Done."


def test_a_server_that_is_gone_is_told_in_a_sentence(page, tmp_path):
    with running_page(tmp_path / "model") as address:
        page.driver.get(address)
        page.until(lambda: page.status() == "Done.")
    assert page.write("text", "The [MASK].") == "The server does not answer. Is it still running?"
    assert page.texts(".result") == [""]
    page.log()


def test_a_text_that_no_address_can_hold_is_answered(page):
    page.open(model="label")
    page.run("document.querySelector('textarea').value = '가'.repeat(300_000)")
    page.send()
    assert page.wait() == "Done."


def test_the_first_key_leads_past_the_navigation(page):
    from selenium.webdriver.common.keys import Keys

    page.open(model="words")
    page.run("document.activeElement.blur(); window.getSelection().removeAllRanges()")
    page.one("body").send_keys(Keys.TAB)
    assert page.run("return document.activeElement.textContent") == "Skip to the content"
    page.press(Keys.ENTER)
    assert page.run("return document.activeElement.id") == "content"


# What is dark differs from what is light in its colours alone.
@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", ("color-contrast",))])
def test_the_accessibility_checker_has_no_complaint_and_nothing_is_cut_off(page, scheme, rules):
    page.look(width=360, scheme=scheme)
    states = [{"model": name} for name in MODELS]
    states += [{"model": "words", "show": show} for show in ("tokens", "attention")]
    states += [{"model": "entities", "text": "Angela of 😀 Hamburg"}]
    states += [
        {"model": "questions", "question": "Who?", "passage": "🐧 penguins, ice", "beside": "+"}
    ]
    states += [{"model": "vectors", "show": "map", "text": "x\ta\ny\te\naa ee\naa e", "point": 2}]
    page.open(model="words")
    for state in states:
        page.go(**state)
        assert page.complaints(*rules) == [], state
        width = page.run("return document.documentElement.scrollWidth")
        assert width <= 360, state


def test_colours_follow_the_scheme(page):
    page.open(model="words", show="attention", text="The dog.")
    seen = set()
    for scheme in ("light", "dark"):
        page.look(scheme=scheme)
        seen.add(page.one("body").value_of_css_property("background-color"))
    assert len(seen) == 2


def shown_attention():
    shares = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 3, 5)).astype(np.float32)
    tokens = ("[CLS]", HOSTILE, "고", "مر", "[SEP]")
    return ShownAttention([TextAttention(tokens, (0,) * 5, shares)] * 2)


def test_a_page_in_one_file_shows_both_views_without_a_server(page, tmp_path):
    from selenium.webdriver.support.select import Select

    (tmp_path / "page.html").write_text(shown_attention().page(), encoding="utf-8")
    page.driver.get((tmp_path / "page.html").as_uri())
    assert len(page.all("button.head canvas")) == 6
    assert page.texts(".one-head ol:first-of-type button")[1] == HOSTILE
    Select(page.one("#text")).select_by_index(1)
    page.one('button[aria-label^="Layer 2, head 3"]').click()
    assert "Attention of layer 2, head 3" in page.one("svg").get_attribute("aria-label")
    assert page.run("return location.hash") == "#text=2&layer=2&head=3"
    assert page.complaints() == []
    assert page.run("return window.hacked") is None


def attention_of(*heads):
    """One layer whose heads look where they are told: `from: to` of tokens, all others alike."""
    tokens = ["[CLS]", "the", "dog", "was", "late", "because", "it", "was", "tir", "##ed", "[SEP]"]
    shares = np.full([1, len(heads), len(tokens), len(tokens)], 0.02, np.float32)
    for head, looks in enumerate(heads):
        for one in range(len(tokens)):
            shares[0, head, one, looks(one)] = 0.8
    shares /= shares.sum(-1, keepdims=True)
    return ShownAttention([TextAttention(tuple(tokens), (0,) * len(tokens), shares)])


def test_attention_opens_on_the_head_that_says_most_and_each_head_is_told_in_a_sentence(
    page, tmp_path
):
    shown = attention_of(
        lambda one: slice(None),
        lambda one: 10,
        lambda one: max(0, one - 1),
        lambda one: {6: 2, 9: 5}.get(one, 0),
        lambda one: {6: 5}.get(one, one),
    )
    (tmp_path / "page.html").write_text(shown.page(), encoding="utf-8")
    page.driver.get((tmp_path / "page.html").as_uri())
    assert page.texts(".finding") == ["Here it looks at dog: 80 % of its attention"]
    assert page.texts(".finds button") == ["it → dog"]
    said = []
    for button in page.all("button.head"):
        button.click()
        said.append(page.one(".finding + .sum").text.partition(". ")[2])
    assert [one.removesuffix(" in this head.") for one in said] == [
        "Tokens look at all the others alike",
        "Most tokens find nothing in this head: they look at [CLS] or [SEP].",
        "Most tokens look at the one before them",
        "Most tokens find nothing in this head: they look at [CLS] or [SEP].",
        "Most tokens look at themselves",
    ]


def test_pointing_at_a_token_shows_where_it_looks_for_as_long(page, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    (tmp_path / "page.html").write_text(attention_of(lambda one: 10 - one).page(), encoding="utf-8")
    page.driver.get((tmp_path / "page.html").as_uri())
    before, tokens = page.texts(".finding"), page.all(".one-head button")
    ActionChains(page.driver).move_to_element(tokens[2]).perform()
    assert page.texts(".finding") == ["dog looks at tired 80 %"]  # the word, of its piece
    ActionChains(page.driver).move_to_element(page.one("h1")).perform()
    assert page.texts(".finding") == before
    page.run("arguments[0].focus()", tokens[0])
    page.press(Keys.ARROW_DOWN)
    assert page.texts(".finding") == ["the looks at tired 80 %"]


SAVED = """
const [number, done] = arguments;
HTMLAnchorElement.prototype.click = () => {};
URL.createObjectURL = (blob) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.readAsDataURL(blob);
  return "#";
};
document.querySelectorAll(".save button")[number].click();
"""


def test_a_picture_of_attention_is_saved_as_drawing_and_as_painting(page):
    open_attention(page)
    drawing, painting = (page.driver.execute_async_script(SAVED, number) for number in (0, 1))
    kind, _, data = drawing.partition(";base64,")
    root = ElementTree.fromstring(base64.b64decode(data))
    words = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert kind == "data:image/svg+xml"
    assert words.count("dog") >= 2
    assert {"layer", "tired"} <= {word.lower() for word in words}
    assert len(painting) > 10_000
    assert painting.startswith("data:image/png;")


def test_a_map_has_the_principal_components_of_the_vectors(page):
    page.open(model="vectors")
    vectors = np.random.default_rng(0).normal(size=(40, 12)) * np.arange(1, 13)
    script = """
    const [vectors, done] = arguments;
    const dot = (one, other) => one.reduce((sum, number, n) => sum + number * other[n], 0);
    import("/playground/projection.js").then(({ mapOf }) =>
      done(mapOf(vectors.map((one) => vectors.map((other) => dot(one, other))))));
    """
    found = page.driver.execute_async_script(script, vectors.tolist())
    left, spread, _ = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    wanted = (left * spread)[:, :2]
    wanted *= np.sign(wanted[np.abs(wanted).argmax(0), [0, 1]])
    assert np.array(found["places"]) == pytest.approx(wanted, abs=0.05)
    assert found["share"] == pytest.approx((spread[:2] ** 2).sum() / (spread**2).sum(), abs=1e-4)


def test_a_map_tells_the_text_of_a_dot_and_those_most_like_it(page):
    from selenium.webdriver.common.keys import Keys

    lines = "low\ta\nlow\taa e\nhigh\te\nhigh\tee a\naaa eee"
    page.open(model="vectors", show="map", text=lines)
    assert page.texts(".legend li") == ["low", "high"]
    names = [dot.get_attribute("aria-label") for dot in page.all(".dot")]
    assert sorted(names) == sorted([*(line.replace("\t", ": ") for line in lines.split("\n"))])
    page.one(".map > svg").click()
    assert re.match(".+ Most like it: .+ [01]\\.[0-9]{2}$", page.texts(".pointed")[0])
    assert re.search("&point=[1-5]$", page.run("return location.hash"))
    page.run("document.querySelector('.dot').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert page.texts(".pointed")[0].startswith(names[1].split(": ")[-1])
    assert len(page.all("details tbody tr")) == 5


def test_a_notebook_s_frame_shows_the_page(page, tmp_path):
    frame = shown_attention()._repr_html_()
    (tmp_path / "page.html").write_text(f"<!doctype html>{frame}", encoding="utf-8")
    page.driver.get((tmp_path / "page.html").as_uri())
    page.driver.switch_to.frame(0)
    page.until(lambda: page.texts("h1") == ["Attention"])
    assert len(page.all("button.head canvas")) == 6
    page.driver.switch_to.default_content()


def test_heads_are_painted(page):
    open_attention(page)
    painted = page.run(
        "const canvas = document.querySelector('canvas');"
        "const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "return data.some((one) => one > 0)"
    )
    assert painted


def test_a_server_with_a_key_asks_for_it_once(page, tmp_path):
    with running_page(tmp_path / "model", api_key="open-sesame") as address:
        page.driver.get(address)
        page.until(lambda: page.all("input[type=password]"))
        assert re.search("401", " ".join(page.log()))
        for wrong in ("열려라", "open-barley"):
            page.one("input[type=password]").send_keys(f"{wrong}\n")
            page.until(lambda: page.texts("[role=alert]") == ["This is not the server's key."])
            page.until(lambda: page.run("return !document.querySelector('#key').value"))
        page.log()
        page.one("input[type=password]").send_keys("open-sesame\n")
        page.until(lambda: page.status() == "Done.")
        assert page.texts("caption") == ["What may stand at [MASK]"]
