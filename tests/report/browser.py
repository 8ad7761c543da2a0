"""A page in a real browser: Chromium, where it is installed."""

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def find_chromium() -> str | None:
    """Path of a Chromium: the environment's CHROMIUM, or the first of its usual names."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def launched():
    """Start a browser for the tests of a session, or skip them with the reason."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = find_chromium()
    if path is None:
        pytest.skip(f"no Chromium: none of {', '.join(NAMES)} is on the path, and CHROMIUM is not set")
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except sync_api.Error as error:  # a name on the path may stand for a package that is not installed
            pytest.skip(f"{path} does not start: {error.message.splitlines()[0]}")
        yield browser
        browser.close()


class Opened:
    """A page that is open, and what it complained about or asked the network for."""

    def __init__(self, page, path):
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())
        self.settle()

    def settle(self):
        """Wait until what was asked for is drawn."""
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.page.evaluate(f"() => {frames}")

    def place(self, stage, ms, of="#timeline-view canvas", above_middle=0.0):
        """Pixel of a moment on a stage, in shares of its row, while the whole step is shown."""
        box = self.page.locator(of).bounding_box()
        gutter, axis = self.page.evaluate("[GUTTER, AXIS]")
        step, stages = self.page.evaluate("[pageData.step_ms, pageData.stages]")
        row = (box["height"] - axis - 4) / stages
        x = box["x"] + gutter + (box["width"] - gutter) * ms / step
        return x, box["y"] + axis + row * (stage + 0.5 - above_middle)

    def hover(self, stage, ms, of="#timeline-view canvas", above_middle=0.0):
        """Move the pointer to a moment on a stage; gives the lines of the tip, none when it is hidden."""
        self.page.locator(of).scroll_into_view_if_needed()
        self.page.mouse.move(*self.place(stage, ms, of, above_middle))
        self.settle()
        return self.page.locator("#tip:not([hidden]) > div").all_inner_texts()

    def colour(self, stage, ms, above_middle=0.3):
        """Colour of the canvas at a moment, above the text in the middle of the row: red, green, blue."""
        box = self.page.locator("#timeline-view canvas").bounding_box()
        x = self.place(stage, ms)[0]
        return tuple(
            self.page.evaluate(
                """([x, share, stage]) => {
                    const canvas = document.querySelector("#timeline-view canvas");
                    const row = (canvas.height - AXIS - 4) / pageData.stages;
                    const y = AXIS + row * (stage + 0.5 - share);
                    const pixel = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
                    pixel.drawImage(canvas, Math.floor(x), Math.floor(y), 1, 1, 0, 0, 1, 1);
                    return [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)];
                }""",
                [x - box["x"], above_middle, stage],
            )
        )


@contextmanager
def opened(browser, path, *, width=1280, scheme="light", **context):
    """Open a page in a window of its own."""
    window = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **context)
    try:
        yield Opened(window.new_page(), path)
    finally:
        window.close()
