#include "exec/actions/addresses.h"

#include <type_traits>

namespace harpe::actions {
namespace {

// Visits the address fields of each type of action.
class AddressFields {
 public:
  using Visit = std::function<void(void* field, std::byte* value)>;
  explicit AddressFields(const Visit& visit) : visit_(visit) {}

  void operator()(Assign& assign) { visit_all(assign.to.data, assign.from.data); }
  void operator()(Add& add) { visit_all(add.to.data, add.from.data); }
  void operator()(Fill& fill) { visit_all(fill.to.data); }
  void operator()(Sum& sum) {
    visit_all(sum.to.data);
    for (Sum::Source& source : sum.from) visit_all(source.view.data);
  }
  void operator()(Combine& combine) {
    visit_all(combine.to.o, combine.to.l);
    for (Combine::Side& source : combine.from) visit_all(source.o, source.l);
  }
  void operator()(Multiply& multiply) {
    visit_all(multiply.first.a.data, multiply.first.b.data, multiply.first.c);
  }
  void operator()(Attend& attend) {
    AttentionProblem& p = attend.first;
    visit_all(p.q.data, p.k.data, p.v.data, p.o, p.lse);
    (*this)(p.tables);
  }
  void operator()(Differentiate& differentiate) {
    AttentionBackwardProblem& p = differentiate.first;
    visit_all(p.q.data, p.k.data, p.v.data, p.d_o.data, p.lse.data, p.delta.data);
    visit_all(p.dq.data, p.dk.data, p.dv.data);
    (*this)(p.tables);
  }
  void operator()(RowDot& dot) { visit_all(dot.first.a.data, dot.first.b.data, dot.first.c); }
  void operator()(AddRmsNorm& norm) {
    AddRmsNormProblem& p = norm.first;
    visit_all(p.x.data, p.residual.data, p.weight.data, p.sum.data, p.y.data);
  }
  void operator()(Apply& apply) {
    visit_all(apply.first.a.data, apply.first.b.data, apply.first.to);
  }
  void operator()(ChooseExperts& choose) { visit_all(choose.logits, choose.index, choose.weights); }
  void operator()(LimitChoices& limit) { visit_all(limit.wanted, limit.kept); }
  void operator()(GatherRows& gather) { (*this)(gather.walk); }
  void operator()(CombineRows& combine) { (*this)(combine.walk); }

 private:
  void operator()(MaskTables& tables) {
    visit_all(tables.documents.data, tables.length.data, tables.pages.data);
  }
  void operator()(SlabWalk& walk) {
    for (TokenRun& run : walk.runs) visit_all(run.index, run.rows, run.weights);
    for (std::vector<SlotRun>& expert : walk.slots) {
      for (SlotRun& run : expert) visit_all(run.data);
    }
  }

  template <class... Pointee>
  void visit_all(Pointee*&... fields) {
    (visit_(&fields, static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(fields)))),
     ...);
  }

  const Visit& visit_;
};

}  // namespace

void for_each_address(TaskWork& work,
                      const std::function<void(void* field, std::byte* value)>& visit) {
  AddressFields fields(visit);
  for (Action& action : work.actions) std::visit(fields, action);
}

}  // namespace harpe::actions
