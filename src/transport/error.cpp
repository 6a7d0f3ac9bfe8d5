#include "transport/error.h"

namespace harpe::transport {

Diag to_diag(const TransportError& error) {
  switch (error.kind) {
    case Failure::Expired:
      return make_diag(DiagCode::N020, {{"rank", error.rank},
                                        {"elapsed", error.elapsed.count()},
                                        {"what", error.what},
                                        {"peer", error.peer}});
    case Failure::PeerLost:
      return make_diag(DiagCode::N021,
                       {{"rank", error.rank}, {"peer", error.peer}, {"what", error.what}});
    case Failure::Malformed:
      break;
  }
  return make_diag(
      DiagCode::N022,
      {{"rank", error.rank}, {"what", error.what}, {"peer", error.peer}, {"reason", error.reason}});
}

}  // namespace harpe::transport
