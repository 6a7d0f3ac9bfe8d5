#include "tests/property/launches/launch_mutants.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/property/launches/launch_facts.h"

namespace harpe::test {
namespace {

using launch::Arrival;
using launch::Kernel;
using launch::LaunchPlan;
using launch::Panel;
using launch::Place;
using launch::Raise;
using launch::SignalId;

using Edit = std::function<void(LaunchPlan&)>;

template <class Launches>
[[nodiscard]] auto& kernel(Launches& plan, std::size_t l, std::size_t k) {
  return plan.launches[l].kernels[k];
}
template <class Launches>
[[nodiscard]] auto& panel(Launches& plan, std::size_t l, std::size_t k, std::size_t p) {
  return kernel(plan, l, k).panels[p];
}

class Mutator {
 public:
  Mutator(const Plan& plan, const LaunchPlan& launches, std::size_t per_kind)
      : plan_(plan), launches_(launches), per_kind_(per_kind) {}

  std::vector<LaunchMutant> make() {
    for (std::size_t l = 0; l < launches_.launches.size(); ++l) {
      edit_launch(l);
      edit_waits(l);
      edit_raises(l);
      for (std::size_t k = 0; k < launches_.launches[l].kernels.size(); ++k) {
        edit_kernel(l, k);
        for (std::size_t p = 0; p < kernel(launches_, l, k).panels.size(); ++p) {
          edit_panel(l, k, p);
          edit_addends(l, k, p);
          edit_maps(l, k, p);
        }
      }
    }
    edit_all();
    edit_plan();
    std::vector<LaunchMutant> mutants;
    for (const auto& [name, kind] : kinds_) {
      const std::size_t count = std::min(per_kind_, kind.edits.size());
      for (std::size_t i = 0; i < count; ++i) {
        LaunchMutant mutant{
            .mutation = name, .is_of_order = kind.is_of_order, .launches = launches_};
        kind.edits[i * kind.edits.size() / count](mutant.launches);
        if (mutant.launches != launches_) mutants.push_back(std::move(mutant));
      }
    }
    return mutants;
  }

 private:
  struct Kind {
    bool is_of_order = false;
    std::vector<Edit> edits;
  };

  void add(const std::string& name, Edit edit) { kind_of(name).edits.push_back(std::move(edit)); }
  void add_order(const std::string& name, Edit edit) {
    Kind& kind = kind_of(name);
    kind.is_of_order = true;
    kind.edits.push_back(std::move(edit));
  }
  Kind& kind_of(const std::string& name) {
    const auto found = std::ranges::find(kinds_, name, &std::pair<std::string, Kind>::first);
    return found != kinds_.end() ? found->second : kinds_.emplace_back(name, Kind()).second;
  }

  template <class List>
  static void erase_at(List& list, std::size_t at) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
  }
  template <class List>
  static void repeat_at(List& list, std::size_t at) {
    auto item = list[at];
    list.push_back(std::move(item));
  }

  void edit_launch(std::size_t l) {
    const launch::Launch& launch = launches_.launches[l];
    if (!launch.is_skipped && touches(plan_, launch)) {
      add("skip a launch", [=](LaunchPlan& m) {
        m.launches[l].is_skipped = true;
        m.launches[l].kernels.clear();
      });
      add("drop a launch's kernels", [=](LaunchPlan& m) { m.launches[l].kernels.clear(); });
    }
    add("drop a task", [=](LaunchPlan& m) { m.launches[l].does.pop_back(); });
    add("do a task twice", [=](LaunchPlan& m) {
      m.launches[l].does.push_back(m.launches[(l + 1) % m.launches.size()].does.front());
    });
    add(launch.begins_epoch ? "begin no execution" : "begin an execution twice",
        [=](LaunchPlan& m) { m.launches[l].begins_epoch = !m.launches[l].begins_epoch; });
    add_order("bound an epoch otherwise",
              [=](LaunchPlan& m) { m.launches[l].bounds_epoch = !m.launches[l].bounds_epoch; });
    for (std::size_t other = l + 1; other < launches_.launches.size(); ++other) {
      const launch::Launch& next = launches_.launches[other];
      if (next.rank != launch.rank || next.queue != launch.queue) continue;
      if (launch.begins_epoch || !touches(plan_, next)) break;
      add_order("swap neighbours of a queue", [=](LaunchPlan& m) {
        std::swap(m.launches[l].does, m.launches[other].does);
        std::swap(m.launches[l].kernels, m.launches[other].kernels);
        std::swap(m.launches[l].is_skipped, m.launches[other].is_skipped);
      });
      break;
    }
    if (launch.reserved_sms > 0) {
      add("reserve every SM", [=](LaunchPlan& m) { m.launches[l].reserved_sms = 132; });
    }
    if (!launch.kernels.empty() && needs_kernel(plan_, launch)) {
      add("name a kernel otherwise",
          [=](LaunchPlan& m) { m.launches[l].kernels.front().name = "copy_engine"; });
    }
  }

  void edit_waits(std::size_t l) {
    const launch::Launch& launch = launches_.launches[l];
    for (std::size_t i = 0; i < launch.after.size(); ++i) {
      add_order("drop an event", [=](LaunchPlan& m) { erase_at(m.launches[l].after, i); });
    }
    for (std::size_t i = 0; i < launch.begun.size(); ++i) {
      add_order("drop a beginning", [=](LaunchPlan& m) { erase_at(m.launches[l].begun, i); });
    }
    for (std::size_t i = 0; i < launch.awaits.size(); ++i) {
      const bool is_credit =
          launches_.signals[launch.awaits[i].index()].kind == launch::SignalKind::Credit;
      add_order(is_credit ? "drop the wait for a credit" : "drop a wait",
                [=](LaunchPlan& m) { erase_at(m.launches[l].awaits, i); });
    }
    if (launch.all_ready) {
      add_order("drop the wait for members", [=](LaunchPlan& m) { m.launches[l].all_ready = {}; });
    }
    if (launch.all_pulled) {
      add_order("drop the wait for readers", [=](LaunchPlan& m) { m.launches[l].all_pulled = {}; });
      add_order("swap what members wait for", [=](LaunchPlan& m) {
        std::swap(m.launches[l].all_ready, m.launches[l].all_pulled);
      });
    }
    if (!launch.does.empty() && touches(plan_, launch)) {
      add("wait for oneself", [=](LaunchPlan& m) {
        m.launches[l].after.push_back(launch::LaunchId(static_cast<std::int64_t>(l)));
      });
    }
  }

  void edit_raises(std::size_t l) {
    const launch::Launch& launch = launches_.launches[l];
    for (std::size_t i = 0; i < launch.raises.size(); ++i) {
      const bool is_credit =
          launches_.signals[launch.raises[i].signal.index()].kind == launch::SignalKind::Credit;
      const std::string what = is_credit ? "a credit" : "a signal";
      add("never raise " + what, [=](LaunchPlan& m) { erase_at(m.launches[l].raises, i); });
      add("raise twice " + what, [=](LaunchPlan& m) { repeat_at(m.launches[l].raises, i); });
      for (std::size_t early = l; early-- > 0;) {
        const launch::Launch& other = launches_.launches[early];
        if (other.rank != launch.rank || (other.queue != launch.queue && !is_credit)) continue;
        add_order("raise early " + what, [=](LaunchPlan& m) {
          m.launches[early].raises.push_back(m.launches[l].raises[i]);
          erase_at(m.launches[l].raises, i);
        });
        break;
      }
      for (std::size_t other = l + 1; other < launches_.launches.size(); ++other) {
        if (launches_.launches[other].raises.empty()) continue;
        const SignalId mine = launch.raises[i].signal;
        const SignalId theirs = launches_.launches[other].raises.front().signal;
        if (launches_.signals[mine.index()].rank == launches_.signals[theirs.index()].rank) {
          add_order("swap whose signal is raised", [=](LaunchPlan& m) {
            std::swap(m.launches[l].raises[i], m.launches[other].raises.front());
          });
        }
        break;
      }
    }
    for (std::size_t i = 0; i < launch.ready.size(); ++i) {
      add("never say that a part is ready",
          [=](LaunchPlan& m) { erase_at(m.launches[l].ready, i); });
    }
    for (std::size_t i = 0; i < launch.pulled.size(); ++i) {
      add("never say that a part was read",
          [=](LaunchPlan& m) { erase_at(m.launches[l].pulled, i); });
      add_order("say that a part was read before it is", [=](LaunchPlan& m) {
        m.launches[l].ready.push_back(m.launches[l].pulled[i]);
        erase_at(m.launches[l].pulled, i);
      });
    }
  }

  void edit_kernel(std::size_t l, std::size_t k) {
    const Kernel& own = kernel(launches_, l, k);
    if (!own.panels.empty() && launches_.launches[l].kernels.size() > 1) {
      add("drop a kernel", [=](LaunchPlan& m) { erase_at(m.launches[l].kernels, k); });
      add("run a kernel twice", [=](LaunchPlan& m) { repeat_at(m.launches[l].kernels, k); });
    }
    for (std::size_t a = 0; a < own.arrivals.size(); ++a) {
      if (own.arrivals[a].when) {
        add_order("drop a wait inside",
                  [=](LaunchPlan& m) { kernel(m, l, k).arrivals[a].when = {}; });
      }
      const std::size_t other = (a + 1) % own.arrivals.size();
      if (other != a) {
        add_order("swap waits inside", [=](LaunchPlan& m) {
          std::swap(kernel(m, l, k).arrivals[a].when, kernel(m, l, k).arrivals[other].when);
        });
        add("read another arrival's operand", [=](LaunchPlan& m) {
          kernel(m, l, k).arrivals[a].reads.front() = kernel(m, l, k).arrivals[other].reads.front();
        });
        add("read another arrival's operand", [=](LaunchPlan& m) {
          kernel(m, l, k).arrivals[a].reads.back() = kernel(m, l, k).arrivals[other].reads.back();
        });
      }
      for (std::size_t i = 0; i < own.arrivals[a].reads.size(); ++i) {
        edit_place("read an operand of",
                   [=](LaunchPlan& m) -> Place& { return kernel(m, l, k).arrivals[a].reads[i]; });
      }
      add("drop an operand", [=](LaunchPlan& m) { kernel(m, l, k).arrivals[a].reads.pop_back(); });
    }
    for (std::size_t i = 0; i < own.fused_stores.size(); ++i) {
      add("raise another rank's signal for a fused store", [=](LaunchPlan& m) {
        std::vector<Raise>& stores = kernel(m, l, k).fused_stores;
        std::swap(stores[i], stores[(i + 1) % stores.size()]);
      });
    }
    for (std::size_t i = 0; i < own.fused_copies.size(); ++i) {
      add("drop a fused copy", [=](LaunchPlan& m) { erase_at(kernel(m, l, k).fused_copies, i); });
      add("copy from another place", [=](LaunchPlan& m) {
        auto& copies = kernel(m, l, k).fused_copies;
        copies[i].from = copies[(i + 1) % copies.size()].from;
      });
      add("copy in silence", [=](LaunchPlan& m) { kernel(m, l, k).fused_copies[i].raises = {}; });
      add("copy with every thread block",
          [=](LaunchPlan& m) { kernel(m, l, k).copy_blocks = 132; });
      edit_place("copy to",
                 [=](LaunchPlan& m) -> Place& { return kernel(m, l, k).fused_copies[i].to; });
    }
  }

  // Moves a place to the same slot of another rank, or to a neighbouring block.
  void edit_place(const std::string& verb, std::function<Place&(LaunchPlan&)> at) {
    LaunchPlan copy = launches_;
    const Place place = at(copy);
    if (place.alloc.index() >= plan_.allocs.size()) return;
    const Alloc& own = plan_.allocs[place.alloc.index()];
    for (std::size_t id = plan_.allocs.size(); id-- > 0;) {
      const Alloc& other = plan_.allocs[id];
      if (other.name != own.name || other.rank == own.rank) continue;
      add(verb + " another rank",
          [=](LaunchPlan& m) { at(m).alloc = AllocId(static_cast<std::int64_t>(id)); });
      break;
    }
    for (std::size_t axis = 0; axis < place.span.size(); ++axis) {
      const std::int64_t size = place.span[axis].size();
      if (place.span[axis].begin >= size) {
        add(verb + " a neighbour", [=](LaunchPlan& m) {
          at(m).span[axis].begin -= size;
          at(m).span[axis].end -= size;
        });
        break;
      }
    }
  }

  void edit_panel(std::size_t l, std::size_t k, std::size_t p) {
    const Panel& own = panel(launches_, l, k, p);
    const std::size_t count = kernel(launches_, l, k).panels.size();
    if (count > 1) {
      add("drop a panel", [=](LaunchPlan& m) { erase_at(kernel(m, l, k).panels, p); });
      add("store a panel where another is", [=](LaunchPlan& m) {
        panel(m, l, k, p).stores = panel(m, l, k, (p + 1) % count).stores;
      });
    }
    add("make a panel twice", [=](LaunchPlan& m) { repeat_at(kernel(m, l, k).panels, p); });
    for (std::size_t i = 0; i < own.meets.size(); ++i) {
      add("drop a meeting", [=](LaunchPlan& m) { erase_at(panel(m, l, k, p).meets, i); });
      add("meet twice", [=](LaunchPlan& m) { repeat_at(panel(m, l, k, p).meets, i); });
      if (i > 0) {
        add("meet in another order", [=](LaunchPlan& m) {
          std::swap(panel(m, l, k, p).meets[i - 1], panel(m, l, k, p).meets[i]);
        });
      }
    }
    for (std::size_t i = 0; i < own.reads.size(); ++i) {
      add(i == 0 ? "drop the queries" : "drop a part of a state",
          [=](LaunchPlan& m) { erase_at(panel(m, l, k, p).reads, i); });
      edit_place("take a panel's operand from",
                 [=](LaunchPlan& m) -> Place& { return panel(m, l, k, p).reads[i]; });
    }
    if (own.reads.size() > 1) {
      add("go on from nothing", [=](LaunchPlan& m) { panel(m, l, k, p).reads.resize(1); });
    }
    for (std::size_t i = 0; i < own.stores.size(); ++i) {
      edit_place("store at", [=](LaunchPlan& m) -> Place& { return panel(m, l, k, p).stores[i]; });
    }
    if (own.stores.size() > 1) {
      add("store a part of a result", [=](LaunchPlan& m) { panel(m, l, k, p).stores.pop_back(); });
    }
    add("store in another type", [=](LaunchPlan& m) {
      DType& dtype = panel(m, l, k, p).dtype;
      dtype = dtype == DType::F32 ? DType::BF16 : DType::F32;
    });
    add("add to what is there", [=](LaunchPlan& m) { panel(m, l, k, p).adds = true; });
    if (own.fused_store) {
      add("store without a signal", [=](LaunchPlan& m) { panel(m, l, k, p).fused_store = {}; });
      if (p > 0) {
        add_order("raise one panel early", [=](LaunchPlan& m) {
          std::swap(panel(m, l, k, p).fused_store, panel(m, l, k, p - 1).fused_store);
        });
      }
    }
  }

  void edit_addends(std::size_t l, std::size_t k, std::size_t p) {
    const Panel& own = panel(launches_, l, k, p);
    for (std::size_t i = 0; i < own.addends.size(); ++i) {
      add("drop an addend", [=](LaunchPlan& m) { erase_at(panel(m, l, k, p).addends, i); });
      add("add an addend twice", [=](LaunchPlan& m) { repeat_at(panel(m, l, k, p).addends, i); });
      if (own.addends[i].when) {
        add_order("drop the wait for an addend",
                  [=](LaunchPlan& m) { panel(m, l, k, p).addends[i].when = {}; });
      }
      if (p > 0 && panel(launches_, l, k, p - 1).stores == own.addends[i].reads) {
        add("add what is stored later",
            [=](LaunchPlan& m) { std::swap(panel(m, l, k, p - 1), panel(m, l, k, p)); });
      }
      for (std::size_t part = 0; part < own.addends[i].reads.size(); ++part) {
        const auto reads = [=](LaunchPlan& m) -> auto& {
          return panel(m, l, k, p).addends[i].reads;
        };
        edit_place("take an addend from", [=](LaunchPlan& m) -> Place& { return reads(m)[part]; });
        add("drop a part of an addend", [=](LaunchPlan& m) { erase_at(reads(m), part); });
      }
      if (i == 0) continue;
      add("add in another order", [=](LaunchPlan& m) {
        std::swap(panel(m, l, k, p).addends[i - 1], panel(m, l, k, p).addends[i]);
      });
      add_order("swap waits for addends", [=](LaunchPlan& m) {
        std::swap(panel(m, l, k, p).addends[i - 1].when, panel(m, l, k, p).addends[i].when);
      });
    }
  }

  void edit_maps(std::size_t l, std::size_t k, std::size_t p) {
    const Panel& own = panel(launches_, l, k, p);
    for (std::size_t i = 0; i < own.maps.size(); ++i) {
      add("drop a map", [=](LaunchPlan& m) { erase_at(panel(m, l, k, p).maps, i); });
      add("apply a map twice", [=](LaunchPlan& m) {
        auto& maps = panel(m, l, k, p).maps;
        maps.insert(maps.begin() + static_cast<std::ptrdiff_t>(i), launch::Map(maps[i]));
      });
      if (i > 0) {
        add("apply maps in another order", [=](LaunchPlan& m) {
          std::swap(panel(m, l, k, p).maps[i - 1], panel(m, l, k, p).maps[i]);
        });
        add("apply another map", [=](LaunchPlan& m) {
          panel(m, l, k, p).maps[i].nest = panel(m, l, k, p).maps[i - 1].nest;
        });
      }
      add("apply what is no pointwise function", [=, this](LaunchPlan& m) {
        panel(m, l, k, p).maps[i].nest = plan_.program.nests.front().name;
      });
      for (std::size_t r = 0; r < own.maps[i].reads.size(); ++r) {
        edit_place("take a map's operand from",
                   [=](LaunchPlan& m) -> Place& { return panel(m, l, k, p).maps[i].reads[r]; });
        add("take a half of a map's operand", [=](LaunchPlan& m) {
          Interval& along = panel(m, l, k, p).maps[i].reads[r].span.back();
          along.end = along.begin + (along.size() + 1) / 2;
        });
        add("drop a map's operand",
            [=](LaunchPlan& m) { erase_at(panel(m, l, k, p).maps[i].reads, r); });
        add("give a map its operand twice",
            [=](LaunchPlan& m) { repeat_at(panel(m, l, k, p).maps[i].reads, r); });
      }
      edit_result(l, k, p, i);
    }
  }

  // Stores the operand of a map in place of its result, as if the panel's maps ended before it.
  void edit_result(std::size_t l, std::size_t k, std::size_t p, std::size_t map) {
    const Panel& own = panel(launches_, l, k, p);
    const Nest& nest = *find_nest(plan_.program, own.maps[map].nest);
    const Stmt& stmt = nest.stmts[static_cast<std::size_t>(own.maps[map].stmt)];
    for (std::size_t id = 0; id < plan_.allocs.size(); ++id) {
      const Alloc& alloc = plan_.allocs[id];
      if (alloc.rank != launches_.launches[l].rank || alloc.level != Level::Home ||
          alloc.buffer != stmt.operands.front().buffer) {
        continue;
      }
      add("store what a map is applied to", [=, this](LaunchPlan& m) {
        Panel& edited = panel(m, l, k, p);
        edited.maps.resize(map);
        edited.stores.front().alloc = AllocId(static_cast<std::int64_t>(id));
        edited.dtype = plan_.allocs[id].dtype;
      });
    }
  }

  // Makes a fault on every rank.
  void edit_all() {
    const auto has = [&](const KernelTest& test) { return any_kernel(launches_, test); };
    if (has([](const auto&, const Kernel& own) { return !own.fused_stores.empty(); })) {
      add("take totals before departures", [=](LaunchPlan& m) {
        for_each_kernel(m, [](auto&, Kernel& own) { std::ranges::reverse(own.panels); });
      });
    }
    // A kernel that waits inside for signals that other kernels raise only at their end never ends.
    const auto waits_for = [](const auto& each) { return each.when.has_value(); };
    if (has([&](const auto&, const Kernel& own) {
          return !own.fused_stores.empty() && std::ranges::any_of(own.panels, [&](const auto& one) {
            return std::ranges::any_of(one.addends, waits_for);
          });
        })) {
      add("raise what departs at the end", [=](LaunchPlan& m) {
        for_each_kernel(m, [](launch::Launch& each, Kernel& own) {
          each.raises.insert(each.raises.end(), own.fused_stores.begin(), own.fused_stores.end());
          own.fused_stores.clear();
          for (Panel& panel : own.panels) panel.fused_store = {};
        });
      });
    }
    const auto waits = [&](const Kernel& own) {
      return std::ranges::any_of(own.arrivals, waits_for);
    };
    const auto sends = [](const launch::Launch& each) { return each.raised_by_engine; };
    if (has([&](const auto&, const Kernel& own) { return waits(own); }) &&
        std::ranges::any_of(launches_.launches, sends)) {
      add("leave no SM to kernels that raise", [=](LaunchPlan& m) {
        for (launch::Launch& each : m.launches) {
          each.reserved_sms = 0;
          each.raised_by_engine = false;
        }
      });
    }
  }

  void edit_plan() {
    const std::vector<bool> is_awaited = find_awaited(launches_);
    const std::vector<bool> is_fit = find_fit_for_data(launches_);
    for (std::size_t id = 0; id < launches_.signals.size(); ++id) {
      if (!is_awaited[id]) continue;
      if (!is_fit[id]) {
        add("carry a signal in data", [=](LaunchPlan& m) { m.signals[id].is_in_data = true; });
      }
      add("one arrival more", [=](LaunchPlan& m) { ++m.signals[id].arrivals; });
      if (launches_.signals[id].arrivals > 1) {
        add("one arrival less", [=](LaunchPlan& m) { --m.signals[id].arrivals; });
      }
      if (launches_.signals[id].kind == launch::SignalKind::Credit) {
        add_order("take a credit for this execution's",
                  [=](LaunchPlan& m) { m.signals[id].kind = launch::SignalKind::Sync; });
      } else {
        add_order("take a signal for a credit",
                  [=](LaunchPlan& m) { m.signals[id].kind = launch::SignalKind::Credit; });
      }
      const std::int64_t ranks = plan_.mesh.ranks();
      add("put a signal in another page", [=](LaunchPlan& m) {
        m.signals[id].rank = RankId((m.signals[id].rank.value + 1) % ranks);
      });
    }
    for (const AllocId alloc : launches_.partials16) {
      add("leave a narrow state wide", [=](LaunchPlan& m) { std::erase(m.partials16, alloc); });
    }
    for (const AllocId alloc : find_states(plan_, launches_)) {
      const bool is_wide = std::ranges::count(launches_.partials16, alloc) == 0;
      if (is_wide && plan_.allocs[alloc.index()].dtype == DType::F32) {
        add("narrow a state", [=](LaunchPlan& m) { m.partials16.push_back(alloc); });
      }
    }
  }

  const Plan& plan_;
  const LaunchPlan& launches_;
  std::size_t per_kind_;
  std::vector<std::pair<std::string, Kind>> kinds_;
};

}  // namespace

std::vector<LaunchMutant> make_launch_mutants(const Plan& plan, const LaunchPlan& launches,
                                              std::size_t per_kind) {
  return Mutator(plan, launches, per_kind).make();
}

}  // namespace harpe::test
