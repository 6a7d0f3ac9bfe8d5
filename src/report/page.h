#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/simulate.h"
#include "support/units.h"

namespace harpe {

// The report page: one HTML file that is opened from disk and needs no network. Everything on it is
// visible without JavaScript, which only adds hovering and zooming. Sections without values are
// left out.

// A figure at the head of the page: "412 µs", "simulated time", "26 % below ring".
struct PageFigure {
  std::string value;
  std::string name;
  std::string note;  // or ""
  friend bool operator==(const PageFigure&, const PageFigure&) = default;
};

struct PageCandidate {
  std::string label;
  std::string schedule;  // its text
  Picoseconds time;
  std::optional<Picoseconds> bound;  // lower bound for all schedules of its kind
  std::int64_t memory_bytes = 0;
  std::string excluded;    // why it is listed but could not be chosen; or ""
  bool named = false;      // a hand-written baseline
  bool front = false;      // no other is faster and smaller
  bool winner = false;     // the subject of the rest of the page
  bool simulated = false;  // otherwise estimated
  friend bool operator==(const PageCandidate&, const PageCandidate&) = default;
};

struct PageRefusal {
  std::string reason;
  std::int64_t count = 0;
  friend bool operator==(const PageRefusal&, const PageRefusal&) = default;
};

// The kind of a task, which selects its colour: it computes results, moves them by one rank or by a
// group, or combines them.
enum class PageTaskKind : std::uint8_t { Compute, Copy, Collective, Fold, Other };

struct PageQueue {
  std::int32_t rank = 0;
  std::string name;  // "sm", "ce"
  friend bool operator==(const PageQueue&, const PageQueue&) = default;
};

struct PageTask {
  std::int32_t queue = 0;  // index into PageTimeline::queues
  PageTaskKind kind = PageTaskKind::Other;
  std::string name;      // "fwd q0=2 k0=1"
  std::int32_t id = -1;  // in the plan
  Picoseconds ready;     // as in Span
  Picoseconds begin;
  Picoseconds end;
  std::int32_t cause = -1;  // index into PageTimeline::tasks: the task that it waited for
  WaitKind wait = WaitKind::Queue;
  std::string bound;  // the resource that limited it: "rank 3 nvlink in"; or ""
  friend bool operator==(const PageTask&, const PageTask&) = default;
};

struct PageTimeline {
  Picoseconds total;
  std::vector<PageQueue> queues;  // by rank
  std::vector<PageTask> tasks;    // the tasks of a queue in time order
  friend bool operator==(const PageTimeline&, const PageTimeline&) = default;
};

// One bar of the taxes: total is the sum of the parts.
struct PageTaxes {
  std::string label;
  bool winner = false;
  Picoseconds roofline;
  Picoseconds launch;
  Picoseconds synchronization;
  Picoseconds locality;
  Picoseconds residual;
  std::string bound;  // the roofline's resource
  std::optional<double> skew_sensitivity;
  friend bool operator==(const PageTaxes&, const PageTaxes&) = default;
};

// The rate over the intensity of one rank: limited by `peak`, and by one slope per source of bytes.
struct PageSlope {
  std::string name;      // "HBM", "nvlink"
  double bandwidth = 0;  // bytes per second
  friend bool operator==(const PageSlope&, const PageSlope&) = default;
};
struct PageRoofPoint {
  std::string label;
  std::int32_t slope = 0;  // the bytes that its intensity counts
  double intensity = 0;    // operations per byte
  double rate = 0;         // operations per second
  bool winner = false;
  friend bool operator==(const PageRoofPoint&, const PageRoofPoint&) = default;
};
struct PageRoofline {
  double peak = 0;  // operations per second
  std::vector<PageSlope> slopes;
  std::vector<PageRoofPoint> points;
  friend bool operator==(const PageRoofline&, const PageRoofline&) = default;
};

struct PageMemory {
  Picoseconds total;
  std::vector<MemoryPoint> points;  // bytes from `time` on
  std::int64_t peak_bytes = 0;
  std::optional<std::int64_t> limit_bytes;  // of the machine
  friend bool operator==(const PageMemory&, const PageMemory&) = default;
};

struct ReportPage {
  std::string title;    // "attention on cp=8"
  std::string verdict;  // one sentence: the result
  std::string command;  // as typed
  std::string machine;  // "h200x8: eight H200 behind NVSwitch"
  std::string version;
  std::vector<PageFigure> figures;

  std::vector<PageCandidate> candidates;  // best first
  std::string search;                     // one sentence on the space; or ""
  std::vector<PageTaxes> taxes;           // the winner first
  std::optional<PageTimeline> timeline;
  std::vector<Segment> critical_path;
  std::optional<PageRoofline> roofline;
  std::optional<PageMemory> memory;
  std::vector<ResourceShare> utilisation;
  std::vector<PageRefusal> refused;
  std::string schedule;  // text of the winner's schedule
  std::string drawing;   // SVG of its plan, from print_svg: the only text that is not escaped
  friend bool operator==(const ReportPage&, const ReportPage&) = default;
};

// The whole file. Equal pages give equal texts.
[[nodiscard]] std::string print_html(const ReportPage& page);

}  // namespace harpe
