// Counting denials, and telling the runner of them.
#include "gate/denials.hpp"

#include <chrono>

namespace pi_agent {

void Denials::report(GateDenial denial)
{
    Key key{denial.kind, denial.host, denial.port, denial.path, denial.reason};
    if (recent_.size() >= denials_a_second && !recent_.contains(key)) {
        denial.host.clear();
        denial.path.clear();
        denial.where.clear();
        denial.port = 0;
        key = {denial.kind, {}, 0, {}, denial.reason};
    }
    denial.count = 0;
    ++recent_.emplace(std::move(key), std::move(denial)).first->second.count;
    if (!waits_) send_and_wait();
}

void Denials::send_and_wait()
{
    waits_ = true;
    send_waiting();
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](const boost::system::error_code &problem) {
        if (problem) return;
        std::erase_if(recent_, [](const auto &one) { return one.second.count == 0; });
        waits_ = false;
        if (!recent_.empty()) send_and_wait();
    });
}

void Denials::send_waiting()
{
    for (auto &[key, denial] : recent_) {
        if (denial.count == 0) continue;
        try {
            send_packet(channel_, encode(denial), {}, Clock::now());
        } catch (const Failure &) { // the runner does not read, or is gone: then the channel's end ends the gate
            return;
        }
        denial.count = 0;
    }
}

std::string text_of_denial(const GateDenial &denial)
{
    const DenialReason *reason = find_denial_reason(denial.reason);
    std::string text = denial.host + (denial.port == 0 ? "" : ":" + std::to_string(denial.port)) + denial.path + " is denied: " +
                       (reason == nullptr ? denial.reason : reason->meaning) + ".";
    if (!denial.where.empty()) text += " The rule is at " + denial.where + ".";
    if (reason != nullptr && reason->key[0] != '\0')
        text += std::string(" Ask the administrator: the policy's key '") + reason->key + "' would change it.";
    return text;
}

} // namespace pi_agent
