"""Runs of harpe, each in its own process or one after another in a resident process."""
import os
import queue
import signal
import subprocess
import threading

LIMIT = 120  # seconds of a run, including kernel compilation
SEPARATOR = "\x1e"


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended already


def start(words, folder, environment, **pipes):
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors="replace", start_new_session=True, env=environment,
                            **pipes)


def run_alone(words, folder, environment):
    """(exit status, or None if the process hangs; its output)."""
    process = start(words, folder, environment)
    try:
        text, _ = process.communicate(timeout=LIMIT)
        return process.returncode, text
    except subprocess.TimeoutExpired:
        kill(process)
        return None, process.communicate()[0]


class Server:
    """A running serve.cpp, restarted after a run that may have corrupted the process."""

    def __init__(self, words, folder, environment):
        self.how = (words, folder, environment)
        self.process = None

    def run(self, words):
        """(exit status, None if it hangs, negative if a signal ended it; its output)."""
        if self.process is None:
            self.process = start(*self.how, stdin=subprocess.PIPE)
        process, said = self.process, []
        hangs = threading.Event()

        def give_up():
            hangs.set()
            kill(process)

        timer = threading.Timer(LIMIT, give_up)
        timer.start()
        process.stdin.write("\t".join(words) + "\n")
        process.stdin.flush()
        status = None
        for line in process.stdout:
            if line.startswith(SEPARATOR):
                status = int(line[1:])
                break
            said.append(line)
        timer.cancel()
        if status is None and not hangs.is_set():
            status = process.wait()  # it crashed
        if status not in (0, 1):
            self.stop()
        return status, "".join(said)

    def stop(self):
        if self.process is None:
            return
        kill(self.process)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.process = None


class Servers:
    """Several servers, each with one run at a time."""

    def __init__(self, count, words, folder, environment):
        self.free = queue.Queue()
        for _ in range(count):
            self.free.put(Server(words, folder, environment))

    def run(self, words):
        server = self.free.get()
        try:
            return server.run(words)
        finally:
            self.free.put(server)

    def stop(self):
        while not self.free.empty():
            self.free.get().stop()
