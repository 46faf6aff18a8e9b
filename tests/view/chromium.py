"""A headless Chromium driven over the DevTools protocol through two pipes: the standard library is enough."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

EXECUTABLE = shutil.which("chromium") or shutil.which("google-chrome")

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe "
    "--use-angle=swiftshader --enable-unsafe-swiftshader"
).split()

# Chromium reads commands from descriptor 3 and answers on 4; Popen cannot renumber, so this step between does.
RENUMBER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Chromium:
    """One page of a headless browser, and every address that it asked for."""

    def __init__(self, profile: Path, width: int = 800, height: int = 600):
        child_in, to_child = os.pipe()
        from_child, child_out = os.pipe()
        # Above 3 and 4, so that renumbering one does not overwrite the other.
        high_in, high_out = (fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (child_in, child_out))
        arguments = [*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", RENUMBER, str(high_in), str(high_out), EXECUTABLE, *arguments],
            pass_fds=(high_in, high_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (child_in, child_out, high_in, high_out):
            os.close(fd)
        self._to, self._from = to_child, from_child
        self._buffer, self._last_id, self._session = b"", 0, None
        self._loaded = False
        self.requests: list[str] = []
        self.messages: list[str] = []
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.command(f"{domain}.enable")

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._session = None
            self.command("Browser.close", seconds=10.0)
        except (OSError, TimeoutError):
            self._process.terminate()
        finally:
            self._process.wait(timeout=20)
            os.close(self._to)
            os.close(self._from)

    def command(self, method: str, seconds: float = 60.0, **params: Any) -> dict[str, Any]:
        """The result of a DevTools command; RuntimeError when the browser refuses it, TimeoutError when it is mute."""
        self._last_id += 1
        call = {"id": self._last_id, "method": method, "params": params}
        if self._session is not None:
            call["sessionId"] = self._session
        os.write(self._to, json.dumps(call).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            message = self._receive(deadline)
            if message.get("id") == self._last_id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def _receive(self, deadline: float) -> dict[str, Any]:
        """The next message; requests and complaints of the page are noted on the way."""
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self._from, 1 << 20)
            if not data:
                raise TimeoutError("Chromium has gone")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        params = message.get("params", {})
        if message.get("method") == "Page.loadEventFired":
            self._loaded = True
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(params["exceptionDetails"])[:500])
        elif message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.messages.append(params["entry"]["text"][:500])
        return message

    def open(self, url: str, seconds: float = 60.0) -> None:
        """Go to an address, and wait until the page has loaded."""
        self._loaded = False
        self.command("Page.navigate", url=url)
        deadline = time.monotonic() + seconds
        while not self._loaded:
            self._receive(deadline)

    def screenshot(self) -> bytes:
        """The page as a PNG."""
        return base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"])
