#include "report/page_parts.h"

namespace harpe::page {

std::string_view style_of(Spending spending) {
  switch (spending) {
    case Spending::Compute:
      return "k-compute";
    case Spending::Memory:
      return "k-memory";
    case Spending::Link:
      return "k-link";
    case Spending::Message:
      return "k-message";
    case Spending::Launch:
      return "k-launch";
    case Spending::Signal:
      return "k-signal";
    case Spending::Barrier:
      return "k-barrier";
    case Spending::Fold:
      return "k-fold";
  }
  return "";
}

std::string_view name_of(Spending spending) {
  switch (spending) {
    case Spending::Compute:
      return "compute";
    case Spending::Memory:
      return "memory";
    case Spending::Link:
      return "links";
    case Spending::Message:
      return "messages";
    case Spending::Launch:
      return "launches";
    case Spending::Signal:
      return "signals";
    case Spending::Barrier:
      return "barriers";
    case Spending::Fold:
      return "folds";
  }
  return "";
}

std::string_view style_of(PageTaskKind kind) {
  switch (kind) {
    case PageTaskKind::Compute:
      return "k-compute";
    case PageTaskKind::Copy:
      return "k-link";
    case PageTaskKind::Collective:
      return "k-message";
    case PageTaskKind::Fold:
      return "k-fold";
    case PageTaskKind::Other:
      return "k-rest";
  }
  return "";
}

std::string_view name_of(PageTaskKind kind) {
  switch (kind) {
    case PageTaskKind::Compute:
      return "compute";
    case PageTaskKind::Copy:
      return "copy";
    case PageTaskKind::Collective:
      return "collective";
    case PageTaskKind::Fold:
      return "fold";
    case PageTaskKind::Other:
      return "other";
  }
  return "";
}

std::string_view style_of(WaitKind wait) {
  switch (wait) {
    case WaitKind::Queue:
      return "w-lane";
    case WaitKind::Event:
      return "w-event";
    case WaitKind::Signal:
      return "w-signal";
    case WaitKind::Barrier:
      return "w-barrier";
    case WaitKind::Member:
      return "w-member";
  }
  return "";
}

std::string_view name_of(WaitKind wait) {
  switch (wait) {
    case WaitKind::Queue:
      return "its queue";
    case WaitKind::Event:
      return "an event";
    case WaitKind::Signal:
      return "a signal";
    case WaitKind::Barrier:
      return "a barrier";
    case WaitKind::Member:
      return "a member";
  }
  return "";
}

}  // namespace harpe::page
