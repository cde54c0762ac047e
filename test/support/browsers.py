"""Headless Chromium, controlled through its driver, for tests of web pages."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1800,1100",
)  # fmt: skip


def browser_path() -> str | None:
    """Return the path of Chromium, or None if it or its driver is missing."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    return found if shutil.which("chromedriver") else None


@contextmanager
def browser(*flags: str) -> Generator[Any]:
    """Start a browser with a fresh profile that records the console."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    with TemporaryDirectory(prefix="cute-browser-", ignore_cleanup_errors=True) as profile:
        options = Options()
        options.binary_location = browser_path() or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}", *flags):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def open_page(driver: Any, path: Path) -> None:
    """Open a page of cute-explore and wait until it is ready."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(path.resolve().as_uri())
    WebDriverWait(driver, 30).until(lambda d: d.execute_script("return document.body.dataset.ready !== undefined"))
