// The steps of a fetch, in the directory that systemd made for it.
#pragma once

#include "common/agents/fetch_order.hpp"

namespace pi_agent {

using TellFetch = std::function<void(const FetchLine &line)>;

// What lies in the directory fetched_tree at the end: the node, and what npm made. Throws Failure, in words for the administrator.
FetchLine fetch_agent(const FetchOrder &order, const TellFetch &tell);

} // namespace pi_agent
