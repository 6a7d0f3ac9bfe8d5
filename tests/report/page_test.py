#!/usr/bin/env python3
"""The report page in a headless browser: page_test.py WRITE_PAGES HARPE. Skipped without one."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import browser  # noqa: E402

SKIPPED = 77
SECTIONS = ["front", "taxes", "timeline", "path", "roofline", "memory", "utilisation",
            "candidates", "refused", "schedule", "plan"]
# Pages of searches, made by the commands that a user runs.
REAL = {
    "attention": ["tune", "attention", "seq=16384", "heads=16", "causal=true", "--mesh", "cp=8",
                  "--machine", "h200x8", "--cache", "off"],
    "gemm_rs": ["tune", "gemm_rs", "m=8192", "n=8192", "k=28672", "--mesh", "tp=8", "--machine",
                "h200x8", "--cache", "off"],
}
CHARTS = ["front-chart", "timeline-chart", "path-chart", "roofline-chart", "memory-chart"]

# JavaScript: faults of the layout, as sentences.
LAYOUT = """(() => {
  const wrong = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth)
    wrong.push(`the page is ${page.scrollWidth} wide in a window of ${page.clientWidth}`);
  for (const id of CHARTS) {
    const box = document.querySelector(`#${id} svg`).getBoundingClientRect();
    if (200 > box.width || 20 > box.height) wrong.push(`${id} is ${box.width} x ${box.height}`);
  }
  for (const svg of document.querySelectorAll('.frame > svg')) {
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.width > 0 && (0 > box.left || box.right > page.clientWidth + 0.5))
        wrong.push(`"${text.textContent}" leaves the page: ${box.left} to ${box.right}`);
    }
  }
  for (const cell of document.querySelectorAll('h1, p, dd, li, td, th, .stack-total')) {
    if (cell.closest('.scroll') || getComputedStyle(cell).overflow !== 'visible') continue;
    if (cell.scrollWidth > cell.clientWidth + 1 && cell.clientWidth > 0)
      wrong.push(`"${cell.textContent.slice(0, 40)}" overflows by `
        + (cell.scrollWidth - cell.clientWidth));
  }
  return wrong;
})()""".replace("CHARTS", str(CHARTS))

# JavaScript: pairs of overlapping labels within one chart.
OVERLAPS = """[...document.querySelectorAll('.frame > svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('.label, .tick')].map(text =>
    [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([name, a], i) => boxes.slice(i + 1)
    .filter(([, b]) => b.right > a.left + 1 && a.right > b.left + 1
      && b.bottom > a.top + 2 && a.bottom > b.top + 2)
    .map(([other]) => `"${name}" over "${other}"`));
})"""

# JavaScript: the lowest contrast of text against its background, with the text.
CONTRAST = """(() => {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[0-9.]+/g).map(Number);
  const solid = (text) => text.startsWith('rgb') && (parse(text)[3] ?? 1) === 1;
  let lowest = [21, ''];
  for (const element of document.querySelectorAll('h1,h2,p,dd,dt,li,td,th,b,summary,svg text')) {
    if (!element.textContent.trim() || element.matches('.bar-name, .plan *')) continue;
    const style = getComputedStyle(element);
    const front = element instanceof SVGElement ? style.fill : style.color;
    let behind = element;
    while (behind && !solid(getComputedStyle(behind).backgroundColor))
      behind = behind.parentElement;
    if (!solid(front) || !behind) continue;
    const [a, b] = [light(parse(front)), light(parse(getComputedStyle(behind).backgroundColor))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (lowest[0] > ratio) lowest = [ratio, element.textContent.slice(0, 30)];
  }
  return lowest;
})()"""

failures = []


def expect(holds, sentence):
    if not holds:
        failures.append(sentence)


def check_quiet(tab, name):
    """The browser logged nothing, and no request failed or went beyond the file."""
    for event in tab.events:
        method, values = event["method"], event["params"]
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            failures.append(f"{name}: {method}: {values}")
        if method == "Network.requestWillBeSent":
            address = values["request"]["url"]
            expect(address.startswith("file:"), f"{name}: asks for {address}")


def check_layout(tab, path, sections):
    for width in (1280, 700):
        for dark in (False, True):
            name = f"{pathlib.Path(path).stem} at {width}{' dark' if dark else ''}"
            tab.open(path, width, 900, dark=dark)
            check_quiet(tab, name)
            for sentence in tab.evaluate(LAYOUT) + tab.evaluate(OVERLAPS):
                failures.append(f"{name}: {sentence}")
            ratio, text = tab.evaluate(CONTRAST)
            expect(ratio >= 4.5, f"{name}: contrast {ratio:.2f} of `{text}`")
            found = tab.evaluate("[...document.querySelectorAll('section')].map(s => s.id)")
            expect([s for s in found if s != "refused"] == [s for s in sections if s != "refused"],
                   f"{name}: sections {found}")


def check_print(tab, path):
    tab.open(path, 1280, 900, media="print")
    expect(tab.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none",
           "navigation is printed")
    expect(tab.pdf().startswith(b"%PDF"), "the page does not print")


def centre(tab, selector):
    return tab.evaluate(f"""(async () => {{
      const element = document.querySelector({selector!r});
      element.scrollIntoView({{block: 'center'}});
      await new Promise(done => setTimeout(done, 100));  // scrolling hides what hovering shows
      const box = element.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    }})()""")


def check_hovering(tab, path):
    tab.open(path)
    tip = "document.querySelector('#tip:not([hidden])')?.innerText ?? ''"
    tab.move(*centre(tab, "#front-chart .point.winner circle"))
    expect("commir attention" in tab.evaluate(tip), "a point does not show its schedule")
    tab.move(*centre(tab, "#path-chart svg"))
    expect("spent on" in tab.evaluate(tip), "the critical path does not tell what it is spent on")
    x, y = centre(tab, "#timeline-chart svg")
    tab.evaluate("document.querySelector('[data-zoom=in]').click()")
    extent = "Number(document.querySelector('.stretched').getAttribute('viewBox').split(' ')[2])"
    expect(abs(tab.evaluate(extent) - 5e5) < 1, "the timeline does not zoom")
    tab.move(x, y + 5)
    expect("takes" in tab.evaluate(tip), "a task does not tell its time")
    tab.evaluate("document.querySelector('[data-zoom=all]').click()")
    expect(abs(tab.evaluate(extent) - 1e6) < 1, "the timeline does not show the whole time again")
    check_quiet(tab, "hovering")


def check_static(tab, path):
    """The charts are visible without JavaScript."""
    tab.open(path, 1280, 900, script=False)
    for chart in CHARTS:
        marks = tab.evaluate(
            f"document.querySelectorAll('#{chart} :is(path, circle, line)').length")
        expect(marks > 2, f"{chart} holds {marks} marks without JavaScript")
    hidden = tab.evaluate("document.querySelector('.tools').hidden")
    expect(hidden, "tools that need JavaScript are shown without it")


def main():
    program = browser.find()
    if program is None:
        print("skipped: no browser; packaging/apt-dev.txt names one")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder, browser.Browser(program) as tab:
        subprocess.run([sys.argv[1], folder], check=True)
        check_layout(tab, f"{folder}/sample.html", SECTIONS)
        check_print(tab, f"{folder}/sample.html")
        check_hovering(tab, f"{folder}/sample.html")
        check_static(tab, f"{folder}/sample.html")
        for name in ("large", "hostile", "bare"):
            tab.open(f"{folder}/{name}.html", 700)
            check_quiet(tab, name)
            wide = tab.evaluate("document.documentElement.scrollWidth")
            expect(wide <= 700, f"{name}: {wide} wide in a window of 700")
        for name, words in REAL.items():
            subprocess.run([sys.argv[2], *words, "--report", f"{folder}/{name}.html"], check=True,
                           cwd=folder, stdout=subprocess.DEVNULL)
            check_layout(tab, f"{folder}/{name}.html", SECTIONS)
    print("\n".join(failures) or "the pages are as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
