"""A browser without a window, driven as a person would, and an accessibility checker."""

import importlib.util
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
_AXE = """
const [rules, done] = arguments;
const options = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
axe.run(options).then((found) => done(found.violations.map(
  (one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`)));
"""


def need_browser():
    """The paths of the browser and its driver; skips where one is missing."""
    selenium = importlib.util.find_spec("selenium")
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if selenium is None:
        pytest.skip("selenium is not installed; pip install '.[dev]'")
    if browser is None or driver is None:
        pytest.skip("no Chromium with its driver; apt-get install chromium chromium-driver")
    return browser, driver


def axe_script():
    """The accessibility checker axe-core; skips where it is missing."""
    # The package is found, not imported: it would import another way to drive browsers.
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("no axe-core; pip install --no-deps axe-playwright-python")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


class Browser:
    """One page in a browser.

    Args:
        driver: selenium's.
        address: of the server.
    """

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, **state):
        """Opens the playground with a state in its address, and waits for the answer."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}#{urlencode(state)}")
        return self.wait()

    def go(self, **state):
        """Goes there by a link of the page itself, which loads nothing anew."""
        self.run("document.querySelector('[role=status]').textContent = ''")
        self.run("location.hash = arguments[0]", urlencode(state))
        return self.wait()

    def wait(self):
        """Waits until what was asked is answered or refused; gives what the page says of it."""
        self.until(lambda: self.status() not in ("", "Computing…"))
        return self.status()

    def until(self, holds, seconds=60):
        """Waits until something holds."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _: holds())

    def status(self):
        return self.run("return document.querySelector('[role=status]')?.textContent ?? ''")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        """The first element of a selector."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector):
        """What elements show, in their order."""
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        return self.run(script, selector)

    def write(self, field, text):
        """Types a text in place of what a field holds, and sends the form."""
        self.type(field, text)
        self.send()
        return self.wait()

    def type(self, field, text):
        """Types a text in place of what a field holds."""
        from selenium.webdriver.common.keys import Keys

        area = self.one(f"textarea[name={field}]")
        area.send_keys(Keys.CONTROL, "a")
        area.send_keys(text)

    def send(self):
        """Sends the form, as Enter does."""
        self.run("document.querySelector('[role=status]').textContent = ''")
        self.run("document.forms[0].requestSubmit()")

    def press(self, *keys):
        """Presses keys where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def look(self, width=1000, scheme="light"):
        """Sets the width of the window, and the colour scheme."""
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def complaints(self, *rules):
        """What the accessibility checker says, of some of its rules or of all."""
        if not self.run("return 'axe' in window"):
            self.run(axe_script())
        return self.driver.execute_async_script(_AXE, list(rules))

    def log(self):
        """What the browser has logged since the last call: errors, and what a policy forbids."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextmanager
def opened_browser(address=""):
    """A browser that reaches nothing but this machine."""
    browser, path = need_browser()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (*_ARGUMENTS, "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(path))
    try:
        yield Browser(driver, address)
    finally:
        driver.quit()
