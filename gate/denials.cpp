// Counting denials, and telling the runner of them.
#include "gate/denials.hpp"

#include <chrono>

namespace pi_agent {

void Denials::report(GateDenial denial)
{
    Key key{denial.kind, denial.host, denial.port, denial.reason};
    if (recent_.size() >= denials_a_second && !recent_.contains(key)) {
        denial.host.clear();
        denial.where.clear();
        denial.port = 0;
        key = {denial.kind, {}, 0, denial.reason};
    }
    denial.count = 0;
    const auto [place, is_new] = recent_.emplace(std::move(key), std::move(denial));
    ++place->second.count;
    if (is_new) send(place->second);
    if (!waits_) wait();
}

void Denials::wait()
{
    waits_ = true;
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](const boost::system::error_code &problem) {
        if (problem) return;
        waits_ = false;
        std::erase_if(recent_, [](const auto &one) { return one.second.count == 0; });
        tell_rest();
        if (!recent_.empty()) wait();
    });
}

void Denials::tell_rest()
{
    for (auto &[key, denial] : recent_)
        if (denial.count > 0) send(denial);
}

void Denials::send(GateDenial &denial) const
{
    try {
        write_packet(runner_, encode(denial));
        denial.count = 0;
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): it stays counted; where the runner is gone, the channel's end ends the gate
    }
}

std::string text_of_denial(const GateDenial &denial)
{
    const DenialText &reason = text_of(denial.reason);
    const std::string what = denial.host.empty() ? "The connection" : denial.host + ":" + std::to_string(denial.port);
    std::string text = what + " is denied: " + reason.meaning + ".";
    if (!denial.where.empty()) text += " The rule is at " + denial.where + ".";
    if (*reason.key != '\0') text += std::string(" Ask the administrator: the policy's key '") + reason.key + "' would change it.";
    return text;
}

} // namespace pi_agent
