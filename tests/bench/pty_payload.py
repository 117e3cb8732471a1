#!/usr/bin/python3 -IS
"""What runs behind each terminal of the bench: `text BYTES` prints lines, `echo` gives back what is typed until `q`."""

import os
import sys
import termios
import tty

LINE = b"The quick brown fox jumps over the lazy dog, and the terminal shows every letter.\n"
MARK_BEGIN, MARK_END = b"<begin>", b"<end>"


def write(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def print_text(size):
    piece = LINE * 500
    write(MARK_BEGIN)
    while size > 0:
        write(piece[: min(size, len(piece))])
        size -= len(piece)
    write(MARK_END)


def echo():
    settings = termios.tcgetattr(0)
    tty.setraw(0)
    write(MARK_BEGIN)
    while (typed := os.read(0, 1024)) != b"q":
        os.write(1, typed)
    termios.tcsetattr(0, termios.TCSADRAIN, settings)
    write(MARK_END)


if sys.argv[1] == "text":
    print_text(int(sys.argv[2]))
else:
    echo()
