"""Headless Chromium over its debugging pipe: two file descriptors, no port, no driver, no package."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

__all__ = ["Browser", "Page", "chromium"]

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
PATIENCE = 60  # seconds until an answer that never comes fails a test


def chromium() -> str | None:
    """Return the browser's path, None if there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A browser with a profile of its own."""

    def __init__(self, program: str, profile: Path) -> None:
        (reads, self._writes), (self._reads, writes) = _pipe(), _pipe()
        command = [program, *FLAGS, f"--user-data-dir={profile}"]
        # The browser reads commands from descriptor 3 and writes to 4.
        shell = f'exec "$@" 3<&{reads} 4>&{writes} {reads}<&- {writes}>&-'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "browser", *command],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._rest, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {} if session is None else {"sessionId": session}
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(PATIENCE)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self, patience: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._reads], [], [], patience)
            part = os.read(self._reads, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser does not answer")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def page(
        self, width: int = 1200, height: int = 800, *, mobile: bool = False, dark: bool = False
    ) -> "Page":
        """Open an empty tab."""
        return Page(self, width, height, mobile=mobile, dark=dark)

    def close(self) -> None:
        """End the browser."""
        self.send("Browser.close")
        os.close(self._writes)
        os.close(self._reads)
        self.process.wait(PATIENCE)


def _pipe() -> list[int]:
    """Return a pipe whose descriptors are neither 3 nor 4."""
    low = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
    for end in low:
        os.close(end)
    return high


class Page:
    """A tab: what it asked the network for, what its console said, and what a person would do in it."""

    def __init__(
        self, browser: Browser, width: int, height: int, *, mobile: bool = False, dark: bool = False
    ) -> None:
        self.browser = browser
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if mobile else 1,
            mobile=mobile,
        )
        self.send("Emulation.setTouchEmulationEnabled", enabled=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command to this tab."""
        return self.browser.send(method, self.session, **params)

    def events(self, method: str) -> list[dict[str, Any]]:
        """Return what was reported of this tab."""
        found = self.browser.events
        return [e["params"] for e in found if e.get("sessionId") == self.session and e["method"] == method]

    def open(self, path: Path, ready: str = "document.documentElement?.dataset.ready === 'yes'") -> None:
        """Open a file and wait until the page says that it is drawn."""
        self.send("Page.navigate", url=path.as_uri())
        self.wait(ready)

    def run(self, code: str) -> Any:
        """Return the value of an expression, promises awaited."""
        done = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"]["exception"].get("description"))
        return done["result"].get("value")

    def do(self, code: str) -> None:
        """Run statements, whose value nobody needs."""
        self.run(f"(() => {{ {code}; }})()")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {condition}; {self.complaints()}")
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """Return what a console would show in yellow or red."""
        said = [str(e["exceptionDetails"]) for e in self.events("Runtime.exceptionThrown")]
        said += [e["entry"]["text"] for e in self.events("Log.entryAdded")]
        loud = [
            e for e in self.events("Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")
        ]
        return said + [str(e["args"]) for e in loud]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for, data inside the page left out."""
        urls = [e["request"]["url"] for e in self.events("Network.requestWillBeSent")]
        return [url for url in urls if not url.startswith("data:")]

    def text(self, selector: str) -> str:
        """Return what is read in an element; nothing where it is hidden."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def pixel(self, lon: float, lat: float) -> tuple[float, float]:
        """Return where a place is drawn."""
        x, y = self.run(
            f"(() => {{ const at = page.map.latLngToContainerPoint([{lat}, {lon}]), "
            "box = page.map.getContainer().getBoundingClientRect(); return [box.x + at.x, box.y + at.y]; })()"
        )
        return x, y

    def hover(self, lon: float, lat: float) -> str:
        """Point at a place and return what the card says; from now on nothing lies over the map."""
        self.do(
            "for (const over of document.querySelectorAll('details, .leaflet-control')) over.hidden = true"
        )
        x, y = self.pixel(lon, lat)
        self.mouse(x + 1, y)
        self.mouse(x, y)
        return self.text("#card")

    def tap(self, x: float, y: float) -> None:
        """Touch the screen and let go."""
        self.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def mouse(self, x: float, y: float, kind: str = "mouseMoved", **more: Any) -> None:
        """Move the mouse, or do what ``kind`` says."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = self.run(f"(() => {{ const b = {box}; return [b.x + b.width / 2, b.y + b.height / 2]; }})()")
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(x, y, kind, button="left", clickCount=1)

    def key(self, name: str, code: int, **more: Any) -> None:
        """Press a key, by its name and its number."""
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more
            )

    def screenshot(self, path: Path) -> Path:
        """Write a PNG of what is seen."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
        return path

    def close(self) -> None:
        """Close the tab."""
        self.browser.send("Target.closeTarget", targetId=self.target)
