"""A browser driven by its DevTools protocol over a pipe: real clicks and keys, console errors, pictures.

Only the standard library: messages are JSON ended by a zero byte, written to the browser's file descriptor 3 and read
from its 4.
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MISSING = f"the page is not tested: no browser is installed (looked for {', '.join(NAMES)})"
PATIENCE = 300.0  # seconds for one answer: a machine may be busy


def installed() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def required(environment: Mapping[str, str]) -> bool:
    """Whether a missing browser is a failure: where CI is set, nobody reads what was skipped."""
    return environment.get("CI", "").lower() in ("true", "1")


class Browser:
    """One browser with one tab, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        program = installed()
        assert program, MISSING
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        options = (
            "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
            "--disable-background-networking", "--force-color-profile=srgb", "--force-device-scale-factor=1",
            "--window-size=1280,900", f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe", "about:blank",
        )  # fmt: skip
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs_in, theirs_out)]  # away from 3 and 4
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        places = [(os.POSIX_SPAWN_DUP2, end, number) for end, number in zip(high, (3, 4), strict=True)]
        self._process = os.posix_spawn(program, [program, *options], dict(os.environ), file_actions=[*nowhere, *places])
        for end in (theirs_in, theirs_out, *high):
            os.close(end)
        self._out, self._in, self._rest = ours_out, ours_in, b""
        self._numbers = itertools.count(1)
        self.errors: list[str] = []  # of the console, and exceptions nobody caught
        self.asked: list[str] = []  # addresses the page asked for
        self._events: list[dict[str, Any]] = []
        self.downloads = folder / "downloads"
        self.downloads.mkdir(parents=True, exist_ok=True)
        (target,) = [
            info["targetId"] for info in self._targets() if info["type"] == "page"
        ]  # the tab that was opened at the start
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True, outside=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        where = {"behavior": "allow", "downloadPath": str(self.downloads)}
        self.send("Browser.setDownloadBehavior", outside=True, **where)

    def _targets(self) -> list[dict[str, Any]]:
        for _ in range(100):
            found: list[dict[str, Any]] = self.send("Target.getTargets", outside=True)["targetInfos"]
            if any(info["type"] == "page" for info in found):
                return found
            time.sleep(0.1)
        raise AssertionError("the browser opened no tab")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._process, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while os.waitpid(self._process, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self._process, signal.SIGKILL)
            time.sleep(0.05)
        os.close(self._out)
        os.close(self._in)

    # the protocol

    def send(self, method: str, *, outside: bool = False, **parameters: Any) -> dict[str, Any]:
        """outside: to the browser, not to the tab."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if not outside:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._read(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            found = os.read(self._in, 1 << 20)
            assert found, "the browser has ended"
            self._rest += found
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(found["exceptionDetails"].get("exception", found["exceptionDetails"])))
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in found["args"]))
        elif method == "Log.entryAdded" and found["entry"]["level"] == "error":
            self.errors.append(found["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.asked.append(found["request"]["url"])
        self._events.append(event)

    # what a person does

    def open(self, page: Path, fragment: str = "") -> None:
        """fragment: what follows the address, with its #."""
        self.errors.clear()
        self.asked.clear()
        self._events.clear()
        self.send("Page.navigate", url="about:blank")  # an address that differs in its fragment alone loads nothing
        self.send("Page.navigate", url=page.as_uri() + fragment)
        self.wait("document.readyState === 'complete'")

    def value(self, code: str) -> Any:
        found = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, code: str, seconds: float = PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while not self.value(f"Boolean({code})"):
            assert time.monotonic() < deadline, f"it never came true: {code}"
            time.sleep(0.03)

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({json.dumps(selector)}).textContent"))

    def place(self, selector: str) -> tuple[float, float]:
        """The middle of an element, scrolled into view."""
        code = (
            f"(() => {{ const box = document.querySelector({json.dumps(selector)});"
            " box.scrollIntoView({block: 'center', behavior: 'instant'}); const r = box.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        x, y = self.value(code)
        return x, y

    def click(self, selector: str) -> None:
        x, y = self.place(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            held = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **held)

    def press(self, key: str) -> None:
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}
        told = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        self.send("Input.dispatchKeyEvent", type="keyDown", **told, **({"text": "\r"} if key == "Enter" else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **told)

    def choose(self, selector: str, label: str) -> None:
        """Choose an option of a list by its text."""
        code = (
            f"(() => {{ const list = document.querySelector({json.dumps(selector)});"
            f" const at = [...list.options].findIndex((one) => one.textContent === {json.dumps(label)});"
            " list.selectedIndex = at; list.dispatchEvent(new Event('change', {bubbles: true})); return at; })()"
        )
        assert self.value(code) >= 0, f"{selector} has no {label}"

    def screen(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)

    def picture(self, file: Path, *, whole: bool = False) -> Path:
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(found["data"]))
        return file

    def downloaded(self, name: str, seconds: float = PATIENCE) -> bytes:
        deadline = time.monotonic() + seconds
        file = self.downloads / name
        while not file.is_file() or not file.stat().st_size:
            assert time.monotonic() < deadline, f"{name} was not downloaded; there are {os.listdir(self.downloads)}"
            time.sleep(0.05)
        return file.read_bytes()
