import base64
import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np

import keras_bert_impl.serving.page as page_package
from keras_bert_impl.serving.attention import TextAttention
from keras_bert_impl.serving.page.explain import attention_page, written_attention

STATIC = Path(page_package.__file__).parent / "static"
HOSTILE = "</script><script>alert(1)</script>\u2028\u202e<!--"


def page_of(*tokens, title="Attention"):
    shares = np.full([1, 1, len(tokens), len(tokens)], 1 / len(tokens), np.float32)
    return attention_page([TextAttention(tokens, (0,) * len(tokens), shares)], title)


def test_a_text_that_is_markup_stays_text():
    page = page_of("a", HOSTILE, title=HOSTILE)
    assert "alert(1)</script>" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(data)[0]["tokens"] == ["a", HOSTILE]


def test_the_page_allows_its_own_script_and_style_and_nothing_else():
    page = page_of("a")
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    for tag in ('<script type="module">', "<style>"):
        content = page.split(tag)[1].split(f"</{tag[1:].split()[0].rstrip('>')}>")[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(re.findall(r"https?://", page.replace("http://www.w3.org/2000/svg", ""))) == 0


def test_modules_that_become_one_script_share_no_name():
    joined = re.search(r'type="module">(.*?)</script>', page_of("a"), re.DOTALL)[1]
    names = re.findall(r"^(?:async )?(?:function\*?|const|let|class) (\w+)", joined, re.MULTILINE)
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert not re.search(r"^(?:import|export)\b", joined, re.MULTILINE)


def test_no_script_makes_markup_of_text_or_runs_it():
    for file in STATIC.glob("*.js"):
        code = file.read_text(encoding="utf-8")
        found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", code)
        assert found == [], file.name


def test_shares_come_back_to_a_thirty_thousandth():
    shares = np.random.default_rng(0).dirichlet(np.ones(7), size=(2, 3, 7)).astype(np.float32)
    written = written_attention(TextAttention(tuple("abcdefg"), (0,) * 7, shares))
    flat = np.frombuffer(base64.b64decode(written["probabilities"]), "<u2")
    read = flat.reshape(written["layers"], written["heads"], 7, 7) / 65535
    assert np.abs(read - shares).max() < 1 / 65535
