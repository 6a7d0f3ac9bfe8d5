#include "tests/support/sample_page.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace harpe {
namespace {

constexpr std::string_view kSchedule =
    "commir attention {\n"
    "  split Sq = q0:8 * qh:2 * q1:_\n  split Sk = k0:8 * kh:2 * k1:_\n"
    "  layout Sq zigzag(q0, qh)\n  layout Sk zigzag(k0, kh)\n"
    "  place q[q0@cp]\n  place k[k0@cp]\n  place v[k0@cp]\n"
    "  nest fwd {\n    par q0@cp\n    for k0 skew cp\n"
    "    stage k over cp relay depth 2 via ce\n    stage v over cp relay depth 2 via ce\n  }\n}\n";

Picoseconds us(double value) { return from_microseconds(value); }

std::int64_t mib(double value) { return static_cast<std::int64_t>(value * 1048576); }

void add_candidates(ReportPage& page) {
  struct Known {
    const char* label;
    double time, memory;
    bool named, front, winner;
  };
  constexpr std::array kKnown = {Known{"hybrid 4x2", 412.3, 1480, false, true, true},
                                 Known{"zigzag_ring", 486.0, 940, true, true, false},
                                 Known{"double_ring", 501.2, 1010, true, false, false},
                                 Known{"ulysses", 533.8, 1920, true, false, false},
                                 Known{"usp", 541.0, 1700, true, false, false},
                                 Known{"allgather", 602.5, 3900, true, false, false},
                                 Known{"ring", 871.9, 910, true, true, false},
                                 Known{"q_rotation", 930.4, 1300, true, false, false}};
  for (const Known& known : kKnown) {
    page.candidates.push_back({.label = known.label,
                               .schedule = std::string(kSchedule),
                               .time = us(known.time),
                               .bound = us(known.time * 0.9),
                               .memory_bytes = mib(known.memory),
                               .excluded = known.time > 900 ? "its inputs live elsewhere" : "",
                               .named = known.named,
                               .front = known.front,
                               .winner = known.winner,
                               .simulated = true});
  }
  for (int i = 0; i < 36; ++i) {
    const double wave = std::abs(std::sin(1.7 * i));
    page.candidates.push_back({.label = "ring over q" + std::to_string(i % 5) + ", heads in two",
                               .schedule = std::string(kSchedule),
                               .time = us(430 + 31 * i + 200 * wave),
                               .bound = {},
                               .memory_bytes = mib(1000 + 2400 * std::abs(std::cos(2.3 * i))),
                               .excluded = "",
                               .named = false,
                               .front = false,
                               .winner = false,
                               .simulated = i % 3 != 0});
  }
  std::ranges::stable_sort(page.candidates, {}, &PageCandidate::time);
}

void add_step(ReportPage& page, double begin, double work, double step, TaskId compute,
              TaskId copy) {
  const std::array<double, 5> at = {begin - 0.04 * step, begin, begin + work, begin + 0.93 * step,
                                    begin + 0.96 * step};
  const auto add = [&](Spending spending, std::size_t part, TaskId task, const char* what) {
    page.critical_path.push_back({spending, us(at[part]), us(at[part + 1]), task, what});
  };
  add(Spending::Launch, 0, compute, "launch of fwd, rank 0");
  add(Spending::Compute, 1, compute, "fwd, rank 0");
  add(Spending::Link, 2, copy, "link into rank 1");
  add(Spending::Signal, 3, copy, "signal of rank 7");
}

// Adds the collective of all ranks and the fold that waits for it.
template <class Add>
void add_end(const Add& add, std::int32_t queue) {
  add({.queue = queue + 2,
       .kind = PageTaskKind::Collective,
       .name = "all_gather o",
       .ready = us(400),
       .begin = us(402),
       .end = us(409),
       .wait = WaitKind::Member,
       .bound = {}});
  add({.queue = queue,
       .kind = PageTaskKind::Fold,
       .name = "fold",
       .ready = us(409.5),
       .begin = us(410),
       .end = us(412.3),
       .wait = WaitKind::Barrier,
       .bound = {}});
}

// Every rank computes on one queue and copies on another; a step waits for the preceding copy.
void add_timeline(ReportPage& page, int ranks, int steps) {
  const double step = 400.0 / steps;
  PageTimeline timeline;
  timeline.total = us(412.3);
  const auto add = [&](PageTask task) {
    task.id = static_cast<std::int32_t>(timeline.tasks.size());
    timeline.tasks.push_back(std::move(task));
    return static_cast<std::int32_t>(timeline.tasks.size() - 1);
  };
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto queue = static_cast<std::int32_t>(timeline.queues.size());
    for (const char* name : {"sm", "ce", "nccl"}) timeline.queues.push_back({rank, name});
    std::int32_t copy = -1;
    std::int32_t compute = -1;
    for (int k = 0; k < steps; ++k) {
      const double begin = 6 + step * k;
      const double work = step * (0.78 + 0.10 * std::sin(rank * 1.3 + k));
      const std::string at = std::to_string((rank + k) % ranks);
      const std::int32_t before = compute;
      const WaitKind wait = k == 0       ? WaitKind::Queue
                            : k % 4 == 3 ? WaitKind::Signal
                                         : WaitKind::Event;
      compute = add({.queue = queue,
                     .kind = PageTaskKind::Compute,
                     .name = "fwd k0=" + at,
                     .ready = us(begin - 0.04 * step),
                     .begin = us(begin),
                     .end = us(begin + work),
                     .cause = copy,
                     .wait = wait,
                     .bound = ""});
      copy = add({.queue = queue + 1,
                  .kind = PageTaskKind::Copy,
                  .name = "k, v k0=" + at,
                  .ready = us(begin + 0.02 * step),
                  .begin = us(begin + 0.06 * step),
                  .end = us(begin + 0.7 * step),
                  .cause = before,
                  .wait = WaitKind::Signal,
                  .bound = "rank " + std::to_string((rank + 1) % ranks) + " nvlink in"});
      if (rank == 0) add_step(page, begin, work, step, TaskId(compute), TaskId(copy));
    }
    add_end(add, queue);
  }
  page.timeline = std::move(timeline);
}

void add_curves(ReportPage& page) {
  page.taxes = {{"hybrid 4x2", true, us(331), us(12), us(38), us(9), us(22.3), "rank 0 SMs", 0.62},
                {"zigzag_ring", false, us(331), us(19), us(88), us(9), us(39), "rank 0 SMs", 1},
                {"ulysses", false, us(318), us(6), us(141), us(48), us(20.8), "rank 3 SMs", 0.9},
                {"ring", false, us(331), us(19), us(97), us(9), us(415.9), "rank 7 SMs", {}}};
  page.roofline = PageRoofline{.peak = 989e12,
                               .slopes = {{"HBM", 4.8e12}, {"nvlink", 450e9}},
                               .points = {{"nvlink", 1, 4100, 690e12, true},
                                          {"zigzag_ring", 1, 2900, 585e12, false},
                                          {"ring", 1, 2900, 326e12, false},
                                          {"HBM", 0, 1300, 690e12, true}}};
  PageMemory memory{
      .total = us(412.3), .points = {}, .peak_bytes = mib(1480), .limit_bytes = mib(2200)};
  for (int i = 0; i < 40; ++i) {
    memory.points.push_back({us(10.3 * i), mib(i == 17 ? 1480 : 900 + 500 * std::sin(i / 12.6))});
  }
  page.memory = std::move(memory);
}

}  // namespace

ReportPage sample_page(int ranks, int steps) {
  ReportPage page;
  page.title = "attention on cp=8";
  page.verdict =
      "`hybrid 4x2` takes 412 µs, 15 % less than `zigzag_ring`, the best named schedule.";
  page.command =
      "harpe tune attention seq=131072 heads=32 causal=true --mesh cp=8 --machine h200x8 --report "
      "page.html";
  page.machine = "h200x8: eight H200 behind NVSwitch, measured 2026-11-21";
  page.version = "0.1.0";
  page.figures = {{"412 µs", "simulated time", "of one execution"},
                  {"1.18×", "faster than zigzag_ring", "the best named schedule"},
                  {"80 %", "of the roofline", "the SMs of rank 0"},
                  {"1.45 GiB", "memory per rank", "of 141 GiB"},
                  {"15,320", "candidates", "in 2.3 s, 412 simulated"}};
  page.search = "15,320 candidates, 9,204 unique, 8,110 within memory, 7,500 pruned by bound.";
  add_candidates(page);
  add_timeline(page, ranks, steps);
  add_curves(page);
  for (int rank = 0; rank < ranks; ++rank) {
    page.utilisation.push_back({{}, "rank " + std::to_string(rank) + " SMs", 0.80 + 0.01 * rank});
    page.utilisation.push_back({{}, "rank " + std::to_string(rank) + " nvlink in", 0.61});
  }
  page.refused = {{"M117 memory 91 GiB > 80 GiB", 180},
                  {"S204 `ulysses` needs at least one head per rank", 12}};
  page.schedule = std::string(kSchedule);
  page.drawing =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plan\" width=\"300\" height=\"60\">"
      "<rect x=\"5\" y=\"5\" width=\"120\" height=\"40\"/>"
      "<text x=\"10\" y=\"30\" class=\"works\">[q0=0 k0=0]</text></svg>";
  return page;
}

ReportPage hostile_page() {
  const std::string text = "</script><script>alert(1)</script>\"'><b>&amp; ]]> \x01";
  ReportPage page = sample_page(2, 3);
  for (std::string* field : {&page.title, &page.verdict, &page.command, &page.machine,
                             &page.version, &page.search, &page.schedule}) {
    *field = text;
  }
  for (PageFigure& figure : page.figures) figure = {text, text, text};
  for (PageCandidate& candidate : page.candidates) {
    candidate.label = candidate.schedule = candidate.excluded = text;
  }
  for (PageTaxes& taxes : page.taxes) taxes.label = taxes.bound = text;
  for (PageQueue& queue : page.timeline->queues) queue.name = text;
  for (PageTask& task : page.timeline->tasks) task.name = task.bound = text;
  for (Segment& segment : page.critical_path) segment.what = text;
  for (PageSlope& slope : page.roofline->slopes) slope.name = text;
  for (PageRoofPoint& point : page.roofline->points) point.label = text;
  for (ResourceShare& share : page.utilisation) share.name = text;
  for (PageRefusal& refusal : page.refused) refusal.reason = text;
  return page;
}

}  // namespace harpe
