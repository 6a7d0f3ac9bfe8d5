#include "bench/cuda/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace harpe::bench {
namespace {

std::string text_of(const Cell& cell) {
  if (const bool* flag = std::get_if<bool>(&cell)) return *flag ? "yes" : "no";
  if (const auto* number = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&cell)) {
    return *number < 10 ? fmt::format("{:.4f}", *number) : fmt::format("{:.2f}", *number);
  }
  return std::get<std::string>(cell);
}

nlohmann::json json_of(const Cell& cell) {
  return std::visit([](const auto& value) { return nlohmann::json(value); }, cell);
}

// Columns of all rows, in order of their first appearance.
std::vector<std::string> columns_of(const std::vector<Row>& rows) {
  std::vector<std::string> columns;
  for (const Row& row : rows) {
    for (const auto& [name, cell] : row.cells) {
      if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
    }
  }
  return columns;
}

std::string cell_text(const Row& row, const std::string& column) {
  for (const auto& [name, cell] : row.cells) {
    if (name == column) return text_of(cell);
  }
  return "-";
}

void print_table(const std::string& experiment, const std::vector<Row>& rows) {
  const std::vector<std::string> columns = columns_of(rows);
  std::size_t name_width = experiment.size();
  std::vector<std::size_t> widths;
  for (const Row& row : rows) name_width = std::max(name_width, row.name.size());
  for (const std::string& column : columns) {
    std::size_t width = column.size();
    for (const Row& row : rows) width = std::max(width, cell_text(row, column).size());
    widths.push_back(width);
  }
  fmt::print("\n{:{}}", experiment, name_width);
  for (std::size_t i = 0; i < columns.size(); ++i) fmt::print("  {:>{}}", columns[i], widths[i]);
  fmt::print("\n");
  for (const Row& row : rows) {
    fmt::print("{:{}}", row.name, name_width);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      fmt::print("  {:>{}}", cell_text(row, columns[i]), widths[i]);
    }
    fmt::print("\n");
  }
}

}  // namespace

Report::Report(const Options& options) : options_(options) {
  if (!options_.json.empty()) std::ofstream(options_.json, std::ios::trunc);
}

double Report::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool Report::begins(const std::string& experiment, const std::string& name) {
  if (name.find(options_.filter) == std::string::npos) return false;
  if (options_.budget > 0 && seconds() > options_.budget) {
    ++left_out_;
    return false;
  }
  fmt::print(stderr, "[{:7.2f} s] {} {}\n", seconds(), experiment, name);
  return true;
}

void Report::write_line(const Row& row) const {
  if (options_.json.empty()) return;
  nlohmann::ordered_json line = {{"experiment", row.experiment}, {"name", row.name}};
  for (const auto& [name, cell] : row.cells) line[name] = json_of(cell);
  std::ofstream(options_.json, std::ios::app) << line.dump() << "\n";
}

void Report::add(Row row) {
  write_line(row);
  std::vector<Row>& rows = rows_[row.experiment];
  if (rows.empty()) experiments_.push_back(row.experiment);
  rows.push_back(std::move(row));
}

void Report::add_check(const std::string& experiment, const std::string& name,
                       const std::string& wrong, std::vector<std::pair<std::string, Cell>> cells) {
  ++(wrong.empty() ? passes_ : failures_);
  if (!wrong.empty()) fmt::print(stderr, "  FAILED {} {}: {}\n", experiment, name, wrong);
  cells.insert(cells.begin(), {"ok", wrong.empty()});
  if (!wrong.empty()) cells.emplace_back("wrong", wrong);
  add({.experiment = experiment, .name = name, .cells = std::move(cells)});
}

void Report::skip(const std::string& experiment, const std::string& name,
                  const std::string& reason) {
  add({.experiment = experiment, .name = name, .cells = {{"skipped", reason}}});
}

void Report::note(const std::string& text) const {
  fmt::print(stderr, "[{:7.2f} s] {}\n", seconds(), text);
}

void Report::print_tables() const {
  for (const std::string& experiment : experiments_) print_table(experiment, rows_.at(experiment));
  fmt::print("\n{} checks passed, {} failed; {} cases left out for want of time; {:.1f} s\n",
             passes_, failures_, left_out_, seconds());
}

}  // namespace harpe::bench
