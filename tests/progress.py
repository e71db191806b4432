"""A line of progress: it moves on a terminal; elsewhere a line is printed now and then."""

import shutil
import sys
import threading
import time

SECONDS_OF_SILENCE = 10


class Progress:
    def __init__(self):
        self.begin = time.monotonic()
        self.parts = {}
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.is_terminal = sys.stdout.isatty()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        self.thread.start()

    def set(self, part, text):
        """Show `text` as one of the parts of the line, or nothing if it is None."""
        with self.lock:
            self.parts[part] = text

    def line(self):
        seconds = int(time.monotonic() - self.begin)
        return f"{seconds // 60}:{seconds % 60:02d}  " + " · ".join(text for text in self.parts.values() if text)

    def say(self, *texts):
        """Print lines that stay."""
        with self.lock:
            for text in texts:
                print(("\r\x1b[K" if self.is_terminal else "") + text, flush=True)

    def run(self):
        while not self.stopped.wait(0.5 if self.is_terminal else SECONDS_OF_SILENCE):
            with self.lock:
                if self.is_terminal:
                    width = shutil.get_terminal_size().columns - 1
                    print("\r\x1b[K" + self.line()[:width], end="", flush=True)
                else:
                    print(self.line(), flush=True)

    def stop(self):
        self.stopped.set()
        self.thread.join()
        if self.is_terminal:
            print("\r\x1b[K", end="")
