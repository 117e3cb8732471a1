// The outcome table of the config sync.
#include "runner/plan/sync_decision.hpp"

namespace pi_agent {

namespace {

SyncAction decide_mirror(bool known, HostState host, InsideState inside) noexcept
{
    if (host == HostState::absent) return known ? SyncAction::remove : SyncAction::leave;
    const bool is_right = known && host == HostState::unchanged && inside == InsideState::as_synced;
    return is_right ? SyncAction::leave : SyncAction::copy;
}

SyncAction decide_seed(bool known, HostState host, InsideState inside) noexcept
{
    if (host == HostState::absent) {
        if (!known) return SyncAction::leave;
        return inside == InsideState::other ? SyncAction::forget : SyncAction::remove;
    }
    if (inside == InsideState::absent) return SyncAction::copy;
    if (!known) return SyncAction::adopt;
    return host == HostState::changed ? SyncAction::copy : SyncAction::leave;
}

} // namespace

SyncAction decide_file(FileClass file_class, bool known, HostState host, InsideState inside) noexcept
{
    switch (file_class) {
    case FileClass::mirror:
        return decide_mirror(known, host, inside);
    case FileClass::seed:
        return decide_seed(known, host, inside);
    case FileClass::agent:
        return known ? SyncAction::forget : SyncAction::leave;
    case FileClass::never:
        return known ? SyncAction::remove : SyncAction::leave;
    }
    return SyncAction::leave;
}

} // namespace pi_agent
