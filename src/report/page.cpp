#include "report/page.h"

#include "report/assets.h"
#include "report/page_chart.h"
#include "report/page_parts.h"
#include "report/page_text.h"

namespace harpe {
namespace {

using page::escape;

struct Part {
  std::string_view id;
  std::string_view name;
  std::string text;
};

std::vector<Part> parts_of(const ReportPage& value) {
  std::vector<Part> all = {{"front", "Time and memory", page::draw_front(value)},
                           {"taxes", "Taxes", page::draw_taxes(value)},
                           {"timeline", "Timeline", page::draw_timeline(value)},
                           {"path", "Critical path", page::draw_critical_path(value)},
                           {"roofline", "Roofline", page::draw_roofline(value)},
                           {"memory", "Memory", page::draw_memory(value)},
                           {"utilisation", "Utilisation", page::draw_utilisation(value)},
                           {"candidates", "Candidates", page::draw_candidates(value)},
                           {"refused", "Refused", page::draw_refused(value)},
                           {"schedule", "Schedule", page::draw_schedule(value)},
                           {"plan", "Plan", page::draw_plan(value)}};
  std::erase_if(all, [](const Part& part) { return part.text.empty(); });
  return all;
}

std::string print_head(const ReportPage& value) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" +
         escape(value.title) +
         " · Harpe</title>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'\">\n<style>\n" +
         std::string(report_asset::style) + "</style>\n</head>\n";
}

std::string print_fact(std::string_view name, const std::string& value) {
  return value.empty() ? "" : "<dt>" + std::string(name) + "</dt><dd>" + escape(value) + "</dd>\n";
}

std::string print_masthead(const ReportPage& value) {
  std::string out =
      "<header>\n<p class=\"brand\">Harpe report</p>\n<h1>" + escape(value.title) + "</h1>\n";
  if (!value.verdict.empty())
    out += "<p class=\"verdict\">" + page::escape_prose(value.verdict) + "</p>\n";
  if (!value.figures.empty()) {
    out += "<ul class=\"figures\">\n";
    for (const PageFigure& figure : value.figures) {
      out += "<li><b>" + escape(figure.value) + "</b><span>" + escape(figure.name) + "</span>";
      if (!figure.note.empty()) out += "<small>" + escape(figure.note) + "</small>";
      out += "</li>\n";
    }
    out += "</ul>\n";
  }
  out += "<dl class=\"facts\">\n" + print_fact("Machine", value.machine);
  if (!value.command.empty()) {
    out += "<dt>Command</dt><dd><code>" + escape(value.command) + "</code></dd>\n";
  }
  return out + print_fact("Version", value.version) + "</dl>\n</header>\n";
}

}  // namespace

std::string print_html(const ReportPage& value) {
  const std::vector<Part> parts = parts_of(value);
  std::string out = print_head(value) + "<body>\n<main>\n" + print_masthead(value);
  if (parts.size() > 1) {
    out += "<nav aria-label=\"Sections\">";
    for (const Part& part : parts) {
      out += "<a href=\"#" + std::string(part.id) + "\">" + std::string(part.name) + "</a>";
    }
    out += "</nav>\n";
  }
  for (const Part& part : parts) out += part.text;
  return out +
         "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n"
         "<script type=\"application/json\" id=\"data\">" +
         page::data_of(value) + "</script>\n<script>\n" + std::string(report_asset::script) +
         "</script>\n</body>\n</html>\n";
}

}  // namespace harpe
