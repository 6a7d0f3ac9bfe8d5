#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/cuda/options.h"

namespace harpe::bench {

using Cell = std::variant<bool, std::int64_t, double, std::string>;

// One case of an experiment: its measurements or findings, in the order of the table's columns.
struct Row {
  std::string experiment;
  std::string name;
  std::vector<std::pair<std::string, Cell>> cells;
};

// Collects rows. Each row is written as a JSON line at once, so that a run that crashes keeps it;
// tables come last.
class Report {
 public:
  explicit Report(const Options& options);

  // Whether to run a case: its name passes the filter and time is left. Prints what it starts.
  [[nodiscard]] bool begins(const std::string& experiment, const std::string& name);
  void add(Row row);
  // The outcome of a check; `wrong` is "" if it passed.
  void add_check(const std::string& experiment, const std::string& name, const std::string& wrong,
                 std::vector<std::pair<std::string, Cell>> cells = {});
  // Records what cannot run here.
  void skip(const std::string& experiment, const std::string& name, const std::string& reason);
  void note(const std::string& text) const;

  void print_tables() const;
  [[nodiscard]] bool failed() const { return failures_ > 0; }

 private:
  [[nodiscard]] double seconds() const;
  void write_line(const Row& row) const;

  Options options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::string> experiments_;  // in order of their first row
  std::map<std::string, std::vector<Row>> rows_;
  int failures_ = 0;
  int passes_ = 0;
  int left_out_ = 0;  // for lack of time
};

}  // namespace harpe::bench
