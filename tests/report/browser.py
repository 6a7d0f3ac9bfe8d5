"""A headless Chromium, driven over its debugging pipe with the standard library alone."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile

SECONDS = 60  # limit of an answer
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One tab. `events` collects the browser's reports about it."""

    def __init__(self, program):
        # The browser reads commands from descriptor 3 and writes answers to 4.
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

        def connect():
            read, write = os.dup(command_read), os.dup(answer_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--no-first-run",
             "--remote-debugging-pipe", f"--user-data-dir={self._folder.name}", "about:blank"],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(command_read)
        os.close(answer_write)
        self._buffer = b""
        self._next = 0
        self.events = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = None
        self._session = self._call("Target.attachToTarget",
                                   {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    def _receive(self):
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], SECONDS)[0]:
                raise RuntimeError(f"the browser is silent for {SECONDS} seconds")
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _call(self, method, arguments=None):
        self._next += 1
        message = {"id": self._next, "method": method, "params": arguments or {}}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, path, width=1280, height=900, media=None, dark=False, script=True):
        """Loads a file; returns when it has been drawn."""
        self.events.clear()
        self._call("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self._call("Emulation.setEmulatedMedia", {"media": media or "", "features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self._call("Emulation.setScriptExecutionDisabled", {"value": not script})
        self._call("Page.navigate", {"url": "file://" + os.path.abspath(path)})
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            message = self._receive()
            if "method" in message:
                self.events.append(message)
        if script:
            self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def evaluate(self, expression):
        """The value of a JavaScript expression; waits for a promise."""
        answer = self._call("Runtime.evaluate", {
            "expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def move(self, x, y):
        self._call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def screenshot(self, clip=None):
        """PNG bytes of the whole page, or of a rectangle (x, y, width, height)."""
        arguments = {"captureBeyondViewport": True}
        if clip:
            arguments["clip"] = dict(zip(("x", "y", "width", "height"), clip), scale=1)
        return base64.b64decode(self._call("Page.captureScreenshot", arguments)["data"])

    def pdf(self):
        return base64.b64decode(self._call("Page.printToPDF", {"printBackground": True})["data"])
