#include "ir/text.h"

#include "ir/text_parts.h"

namespace harpe {
namespace {

// ` key value` when there is a value.
template <class T>
std::string print_attr(std::string_view key, const std::optional<T>& value) {
  if (!value) return "";
  std::string out = " " + std::string(key) + " ";
  if constexpr (std::is_same_v<T, std::int64_t>) {
    out += std::to_string(*value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out += *value;
  } else {
    out += print(*value);
  }
  return out;
}

std::string print_line(const Refine& refine) {
  return "refine " + refine.axis + " = " +
         text::join(refine.parts, " * ", [](const MeshAxis& part) {
           return part.name + ":" + std::to_string(part.size);
         });
}

std::string print_line(const Split& split) {
  return "split " + split.axis + " = " + text::join(split.digits, " * ", [](const Digit& digit) {
           return digit.name + ":" + (digit.extent ? std::to_string(*digit.extent) : "_");
         });
}

std::string print_line(const Layout& layout) {
  return "layout " + layout.axis + " " + print(layout.map);
}

std::string print_line(const Place& place) {
  std::string out = "place " + place.buffer + "[" +
                    text::join(place.at, ", ",
                               [](const Placement& placement) {
                                 return placement.digit + "@" + print_mesh_ref(placement.axes);
                               }) +
                    "]";
  for (const PartialHome& partial : place.partial) {
    out += " partial " + std::string(print(partial.monoid)) + "@" + print_mesh_ref(partial.axes);
  }
  return out;
}

std::string print_line(const Par& par) {
  return "par " + par.digit + " on " + print_mesh_ref(par.axes);
}

std::string print_line(const For& loop) {
  std::string out = "for " + loop.digit;
  if (!loop.skew.empty()) out += " skew " + print_mesh_ref(loop.skew);
  if (loop.offset != 0) out += " + " + std::to_string(loop.offset);
  return out + (loop.reverse ? " rev" : "");
}

std::string print_line(const Move& move) {
  return std::string(print(move.kind)) + " " + move.buffer + " over " + print_mesh_ref(move.over) +
         " " + std::string(print(move.how)) + print_attr("by", move.by) +
         print_attr("depth", move.depth) + print_attr("grain", move.chunk) +
         print_attr("wire", move.wire) + print_attr("via", move.via) +
         print_attr("signal", move.signal) + print_attr("fence", move.fence) +
         print_attr("sm", move.sm);
}

std::string print_line(const LeafChoice& leaf) {
  const std::string kernel = leaf.kernel ? " kernel " + text::quote(*leaf.kernel) : "";
  return "leaf" + kernel + print_attr("sm", leaf.sm) + print_attr("chunk", leaf.chunk) +
         print_attr("order", leaf.order);
}

std::string print_line(const Fuse& fuse) {
  return "fuse " + fuse.name + " = " + text::print_names(fuse.nests) +
         (fuse.persistent ? " persistent" : "") + print_attr("sm", fuse.sm) +
         print_attr("warps", fuse.warps);
}

std::string print_nest(const NestForm& nest) {
  std::string out = "  nest " + nest.nest + " {\n";
  for (const NestItem& item : nest.items) {
    out += "    " + std::visit([](const auto& line) { return print_line(line); }, item) + "\n";
  }
  return out + "    " + print_line(nest.leaf) + "\n  }\n";
}

template <class Line>
std::string print_lines(const std::vector<Line>& lines) {
  std::string out;
  for (const Line& line : lines) out += "  " + print_line(line) + "\n";
  return out;
}

}  // namespace

std::string print(const NormalForm& form) {
  std::string out = "commir " + form.name + " for " + form.program + " on " + form.mesh + " {\n" +
                    print_lines(form.refines) + print_lines(form.splits) +
                    print_lines(form.layouts) + print_lines(form.places);
  for (const NestForm& nest : form.nests) out += print_nest(nest);
  return out + print_lines(form.fuses) + "}\n";
}

std::vector<std::string> print_steps(const NormalForm& form) {
  std::vector<std::string> lines;
  for (const NestForm& nest : form.nests) {
    lines.push_back(nest.nest + ": " + text::join(nest.items, "; ", [](const NestItem& item) {
                      return std::visit([](const auto& line) { return print_line(line); }, item);
                    }));
  }
  return lines;
}

}  // namespace harpe
