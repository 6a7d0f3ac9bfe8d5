#include "search/canonical.h"

#include <map>

#include "ir/text.h"
#include "schedule/replay.h"

namespace harpe {
namespace {

class Renamer {
 public:
  explicit Renamer(const NormalForm& form) {
    for (const Refine& refine : form.refines) {
      for (const MeshAxis& part : refine.parts) add(part.name, "m");
    }
    for (const Split& split : form.splits) {
      for (const Digit& digit : split.digits) add(digit.name, "d");
    }
  }

  void rename(NormalForm& form) const {
    for (Refine& refine : form.refines) {
      for (MeshAxis& part : refine.parts) change(part.name);
    }
    for (Split& split : form.splits) {
      for (Digit& digit : split.digits) change(digit.name);
    }
    for (Layout& layout : form.layouts) change(layout.map);
    for (Place& place : form.places) {
      for (Placement& at : place.at) {
        change(at.digit);
        change(at.axes);
      }
      for (PartialHome& partial : place.partial) change(partial.axes);
    }
    for (NestForm& nest : form.nests) rename(nest);
  }

 private:
  void add(const std::string& name, const std::string& base) {
    names_.emplace(name, base + std::to_string(names_.size()));
  }

  void change(std::string& name) const {
    const auto found = names_.find(name);
    if (found != names_.end()) name = found->second;
  }
  void change(std::vector<std::string>& names) const {
    for (std::string& name : names) change(name);
  }
  void change(Call& call) const {
    for (Scalar& arg : call.args) {
      if (auto* name = std::get_if<Name>(&arg)) change(name->text);
    }
  }

  void rename(NestForm& nest) const {
    for (NestItem& item : nest.items) {
      if (auto* par = std::get_if<Par>(&item)) {
        change(par->digit);
        change(par->axes);
      } else if (auto* loop = std::get_if<For>(&item)) {
        change(loop->digit);
        change(loop->skew);
      } else if (auto* move = std::get_if<Move>(&item)) {
        change(move->over);
        if (move->chunk) change(*move->chunk);
      }
    }
    if (nest.leaf.chunk) change(*nest.leaf.chunk);
    if (nest.leaf.order) change(*nest.leaf.order);
  }

  std::map<std::string, std::string> names_;
};

}  // namespace

std::string canonical_text(const Program& program, const NormalForm& form) {
  NormalForm canonical = canonicalise(program, form);
  canonical.name = "_";
  Renamer(canonical).rename(canonical);
  return print(canonical);
}

}  // namespace harpe
