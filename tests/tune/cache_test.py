#!/usr/bin/env python3
"""A cache entry may be corrupt in any way: every command warns, ignores it, and succeeds.

cache_test.py HARPE
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HARPE = sys.argv[1]
LIMIT = 120  # seconds; each run takes far less, and none may block on a pipe
SUBJECT = ["attention", "seq=256", "heads=8", "--mesh", "cp=4"]
VERBS = {
    "run": [*SUBJECT],
    "simulate": [*SUBJECT],
    "taxes": [*SUBJECT, "--schedule", "auto"],
    "verify": [*SUBJECT],
    "show": [*SUBJECT, "--stage", "schedule"],
    "lower": [*SUBJECT],
    "schedules": [*SUBJECT],
    "tune": [*SUBJECT],
}


def check(condition, *said):
    if not condition:
        raise AssertionError("\n".join(map(str, said)))


def harpe(*words):
    return subprocess.run([HARPE, *map(str, words)], capture_output=True, text=True, timeout=LIMIT)


def hash_text(text):
    """FNV-1a of 128 bits, as in src/support/hash.cpp."""
    value = 0x6c62272e07bb014262b821756295c58d
    for byte in text.encode():
        value = (value ^ byte) * 0x1000000000000000000013b % (1 << 128)
    return f"{value:032x}"


def with_hash(body):
    return f'cache version 3 hash "{hash_text(body)}"\n{body}'


def body_of(text):
    return text.split("\n", 1)[1]


# Each function gets the path of the entry and its text, and leaves something broken there.
def form_without_its_moves(place, text):
    body = "".join(line for line in body_of(text).splitlines(True)
                   if not line.lstrip().startswith(("stage ", "drain ")))
    place.write_text(with_hash(body))


def form_of_other_names(place, text):
    place.write_text(with_hash(body_of(text).replace("place k[", "place nothing[")))


def form_of_other_extents(place, text):
    place.write_text(with_hash(body_of(text).replace(":4 *", ":3 *").replace(":2 *", ":3 *")))


def cut_short(place, text):
    place.write_text(text[:len(text) // 2])


def empty(place, _):
    place.write_text("")


def bytes_of_no_text(place, _):
    place.write_bytes(os.urandom(4096))


def hole_of_a_terabyte(place, _):
    place.write_text("")
    os.truncate(place, 1 << 40)


def pipe(place, _):
    place.unlink()
    os.mkfifo(place)


def link_to_a_device(place, _):
    place.unlink()
    place.symlink_to("/dev/zero")


def link_to_nothing(place, _):
    place.unlink()
    place.symlink_to("nowhere")


def folder(place, _):
    place.unlink()
    place.mkdir()


def folder_that_holds_something(place, _):
    place.unlink()
    (place / "some").mkdir(parents=True)


# Each with the code of the warning.
BROKEN = [(form_without_its_moves, "I410"), (form_of_other_names, "I410"),
          (form_of_other_extents, "I410"), (cut_short, "I410"), (empty, "I410"),
          (bytes_of_no_text, "I410"), (hole_of_a_terabyte, "I101"), (pipe, "I101"),
          (link_to_a_device, "I101"), (link_to_nothing, "I101"), (folder, "I101"),
          (folder_that_holds_something, "I101")]
# `cache list` does not check forms; only commands that use them do.
HIDDEN_FROM_LIST = {form_without_its_moves, form_of_other_names, form_of_other_extents}


def expect_passed_over(done, code, place, *said):
    check(done.returncode == 0, *said, f"exit status {done.returncode}:", done.stderr)
    lines = [line for line in done.stderr.splitlines() if f"warning[{code}]" in line]
    check(len(lines) == 1 and str(place) in lines[0], *said, "not one warning:", done.stderr)


def remove(place):
    subprocess.run(["rm", "-rf", place], check=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        cache = pathlib.Path(name)
        done = harpe("tune", *SUBJECT, "--cache", cache)
        check(done.returncode == 0, done.stderr)
        [place] = cache.glob("*.entry")
        good = place.read_text()
        check(with_hash(body_of(good)) == good, "the hash is another one now")
        for verb, words in VERBS.items():
            done = harpe(verb, *words, "--cache", cache)
            check(done.returncode == 0 and "warning" not in done.stderr, verb, done.stderr)
        for breaks, code in BROKEN:
            for verb, words in VERBS.items():
                remove(place)
                place.write_text(good)
                breaks(place, good)
                done = harpe(verb, *words, "--cache", cache)
                if verb == "tune" and breaks is folder_that_holds_something:
                    # The new entry cannot replace it either.
                    check(done.returncode == 0 and "warning[I102]" in done.stderr, done.stderr)
                expect_passed_over(done, code, place, breaks.__name__, verb)
            remove(place)
            place.write_text(good)
            breaks(place, good)
            listed = harpe("cache", "list", "--dir", cache)
            if breaks in HIDDEN_FROM_LIST:
                check(listed.returncode == 0 and not listed.stderr, listed.stderr)
            else:
                expect_passed_over(listed, code, place, breaks.__name__, "cache list")
                check(harpe("cache", "prune", "--dir", cache).returncode == 0, breaks.__name__)
                check(os.path.lexists(place) == (breaks is folder_that_holds_something),
                      breaks.__name__, "was not removed")
            print(breaks.__name__.replace("_", " "), "passed", flush=True)


main()
