#include <algorithm>
#include <cstdlib>

#include "report/draw.h"
#include "report/page_text.h"

namespace harpe {
namespace {

// A cell's lines in order: what arrives, the work in brackets, what is received.
std::vector<std::string> lines_of(const DrawnCell& cell) {
  std::vector<std::string> lines = cell.arrives;
  for (const std::string& work : cell.works) lines.push_back("[" + work + "]");
  lines.insert(lines.end(), cell.receives.begin(), cell.receives.end());
  return lines;
}

struct Row {
  std::string label;
  std::vector<std::vector<std::string>> cells;
};

std::vector<Row> rows_of(const Drawing& drawing) {
  std::vector<Row> rows = {{.label = "home", .cells = drawing.homes}};
  for (const DrawnStep& step : drawing.steps) {
    Row& row = rows.emplace_back(Row{.label = step.label, .cells = {}});
    for (const DrawnCell& cell : step.ranks) row.cells.push_back(lines_of(cell));
  }
  return rows;
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Sizes of the image, in pixels.
constexpr int kLine = 15;
constexpr int kCharacter = 7;
constexpr int kMargin = 10;
constexpr int kGap = 14;

std::string text_at(int x, int y, std::string_view style, const std::string& text) {
  return "  <text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" class=\"" +
         std::string(style) + "\">" + page::escape(text) + "</text>\n";
}

class Image {
 public:
  explicit Image(const Drawing& drawing) : drawing_(drawing), rows_(rows_of(drawing)) {
    for (const Row& row : rows_) {
      label_ = std::max(label_, row.label.size());
      for (const auto& cell : row.cells) {
        for (const std::string& line : cell) cell_ = std::max(cell_, line.size());
      }
    }
  }

  std::string print() {
    int y = kMargin + kLine;
    body_ += text_at(kMargin, y, "title", drawing_.title);
    y += kLine + kGap / 2;
    for (std::size_t rank = 0; rank < drawing_.homes.size(); ++rank) {
      body_ += text_at(left_of(rank) + kMargin / 2, y, "head", "rank " + std::to_string(rank));
    }
    y += kGap / 2;
    for (std::size_t i = 0; i < rows_.size(); ++i) y = draw_row(i, y);
    const int width = left_of(drawing_.homes.size()) + kMargin;
    // The rules of its style sheet apply only inside it, since it may be part of a page.
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plan\" width=\"" +
           std::to_string(width) + "\" height=\"" + std::to_string(y + kMargin) +
           "\" font-family=\"monospace\" font-size=\"11\">\n"
           "  <style>.plan .title{font-size:13px;font-weight:bold}.plan .head,.plan "
           ".home{fill:#555}"
           ".plan .arrives{fill:#1a5fb4}.plan .works{font-weight:bold}.plan .receives{fill:#a51d2d}"
           ".plan rect{fill:#f6f6f4;stroke:#bbb}.plan line{stroke:#1a5fb4;stroke-opacity:.5}"
           "</style>\n" +
           body_ + "</svg>\n";
  }

 private:
  [[nodiscard]] int width_of_cell() const { return static_cast<int>(cell_) * kCharacter + kMargin; }
  [[nodiscard]] int left_of(std::size_t rank) const {
    return 2 * kMargin + static_cast<int>(label_) * kCharacter +
           static_cast<int>(rank) * (width_of_cell() + kGap);
  }

  int draw_row(std::size_t index, int y) {
    const Row& row = rows_[index];
    std::size_t lines = 1;
    for (const auto& cell : row.cells) lines = std::max(lines, cell.size());
    const int height = static_cast<int>(lines) * kLine + kMargin / 2;
    body_ += text_at(kMargin, y + kLine, "head", row.label);
    for (std::size_t rank = 0; rank < row.cells.size(); ++rank) {
      if (index > 0) draw_arrows(drawing_.steps[index - 1].ranks[rank], rank, y);
      body_ += "  <rect x=\"" + std::to_string(left_of(rank)) + "\" y=\"" + std::to_string(y) +
               "\" width=\"" + std::to_string(width_of_cell()) + "\" height=\"" +
               std::to_string(height) + "\" rx=\"3\"/>\n";
      int line = y;
      for (const std::string& text : row.cells[rank]) {
        line += kLine;
        body_ += text_at(left_of(rank) + kMargin / 2, line - 3, style_of(index, text), text);
      }
    }
    return y + height + kGap;
  }

  static std::string_view style_of(std::size_t row, const std::string& text) {
    if (row == 0) return "home";
    if (text.front() == '[') return "works";
    const bool received = text.starts_with("+ ") || text.starts_with("= ");
    return received ? "receives" : "arrives";
  }

  // From the column of the one rank that a block comes from, across the row above.
  void draw_arrows(const DrawnCell& cell, std::size_t rank, int y) {
    for (const std::string& line : cell.arrives) {
      const std::string from = line.substr(line.rfind("< ") + 2);
      if (from.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto source = static_cast<std::size_t>(std::strtol(from.c_str(), nullptr, 10));
      const auto middle = [&](std::size_t column) {
        return std::to_string(left_of(column) + width_of_cell() / 2);
      };
      body_ += "  <line x1=\"" + middle(source) + "\" y1=\"" + std::to_string(y - kGap) +
               "\" x2=\"" + middle(rank) + "\" y2=\"" + std::to_string(y) + "\"/>\n";
    }
  }

  const Drawing& drawing_;
  std::vector<Row> rows_;
  std::size_t label_ = 4;
  std::size_t cell_ = 6;
  std::string body_;
};

}  // namespace

std::string print_text(const Drawing& drawing) {
  const std::vector<Row> rows = rows_of(drawing);
  std::size_t label = 4;
  std::vector<std::size_t> widths;
  for (std::size_t rank = 0; rank < drawing.homes.size(); ++rank) {
    std::size_t width = std::string("rank ").size() + std::to_string(rank).size();
    for (const Row& row : rows) {
      for (const std::string& line : row.cells[rank]) width = std::max(width, line.size());
    }
    widths.push_back(width);
  }
  for (const Row& row : rows) label = std::max(label, row.label.size());
  std::string out = drawing.title + "\n\n";
  std::string line = padded("", label);
  for (std::size_t rank = 0; rank < widths.size(); ++rank) {
    line += "  " + padded("rank " + std::to_string(rank), widths[rank]);
  }
  out += without_trailing_spaces(line) + "\n";
  for (const Row& row : rows) {
    std::size_t height = 1;
    for (const auto& cell : row.cells) height = std::max(height, cell.size());
    for (std::size_t i = 0; i < height; ++i) {
      line = padded(i == 0 ? row.label : "", label);
      for (std::size_t rank = 0; rank < widths.size(); ++rank) {
        const auto& cell = row.cells[rank];
        line += "  " + padded(i < cell.size() ? cell[i] : "", widths[rank]);
      }
      out += without_trailing_spaces(line) + "\n";
    }
  }
  return out;
}

std::string print_svg(const Drawing& drawing) { return Image(drawing).print(); }

Checked<std::string> draw_plan(const Plan& plan, DrawingFormat format) {
  constexpr std::int64_t kMostColumns = 16;
  if (plan.mesh.ranks() > kMostColumns) {
    return make_diag(DiagCode::U121, {{"ranks", plan.mesh.ranks()}, {"limit", kMostColumns}});
  }
  const Drawing drawing = draw(plan);
  return format == DrawingFormat::Svg ? print_svg(drawing) : print_text(drawing);
}

}  // namespace harpe
