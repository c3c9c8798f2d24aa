"""One browser for all tests of a worker, and pages of releases opened in it."""

import pytest
from browser import Browser, chromium

import geodp


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine; apt-get install chromium")
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Write a release as a page and open it; whatever it does, it must do without complaints and requests."""
    pages = []

    def show(frame, *, size=(1000, 700), mobile=False, dark=False, **asked):
        path = geodp.to_html(frame, tmp_path / f"{len(pages)}.html", **asked)
        page = browser.page(*size, mobile=mobile, dark=dark)
        pages.append((page, path, asked))
        page.open(path)
        return page

    yield show
    for page, path, asked in pages:
        assert page.complaints() == []
        assert page.requests()[0] == path.as_uri()
        assert len(page.requests()) == 1 or "tiles" in asked
        page.close()
